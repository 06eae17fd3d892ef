//! Batches of data: their order, their positions, and threads that make them ahead.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use defn::data::{BatchOptions, Position, batches, prefetch};
use defn::prelude::*;
use defn::{ErrorClass, random};

/// The numbers in each of the batches.
fn numbers(rows: &Tensor, size: usize, options: &BatchOptions) -> Result<Vec<Vec<i32>>, defn::Error> {
    batches(rows.clone(), size, options)?.map(|batch| batch?.to_vec()).collect()
}

/// The same numbers stand in the example of Python's module.
#[test]
fn the_order_is_that_of_python() -> Result<(), defn::Error> {
    let rows = Tensor::iota(&[10], DType::S32, None)?;
    let options = BatchOptions::default().shuffled(random::key(0)?).epochs(2);
    let first = [vec![7, 4, 6, 3], vec![9, 5, 8, 2], vec![1, 0]];
    let second = [vec![0, 2, 1, 6], vec![8, 4, 3, 5], vec![9, 7]];
    assert_eq!(numbers(&rows, 4, &options)?, [first, second].concat());
    Ok(())
}

#[test]
fn every_position_goes_on_with_the_same_batches() -> Result<(), defn::Error> {
    let rows = Tensor::iota(&[7], DType::S32, None)?;
    let plain = BatchOptions::default().epochs(3);
    let shuffled = plain.clone().shuffled(random::key(5)?);
    for options in [plain.clone(), plain.dropping_last(), shuffled.clone(), shuffled.dropping_last()] {
        let whole = numbers(&rows, 3, &options)?;
        let mut all = batches(rows.clone(), 3, &options)?;
        for taken in 0..=whole.len() {
            assert_eq!(all.size_hint(), (whole.len() - taken, Some(whole.len() - taken)));
            let position = Position::from_tensor(&all.position().to_tensor()?)?;
            assert_eq!(numbers(&rows, 3, &options.clone().from(position))?, whole[taken..]);
            assert_eq!(all.next().is_some(), taken < whole.len());
        }
    }
    Ok(())
}

#[test]
fn what_has_no_batches_is_refused() -> Result<(), defn::Error> {
    let (x, y) = (tensor![1, 2, 3]?, tensor![1, 2]?);
    let plain = BatchOptions::default();
    let class = |result: Result<(), defn::Error>| result.unwrap_err().class();
    let error = batches((x.clone(), y), 2, &plain).map(drop).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Shape);
    assert!(error.to_string().contains("the leaf 1"), "{error}");
    assert_eq!(class(batches(Tensor::scalar(1)?, 1, &plain).map(drop)), ErrorClass::Shape);
    assert_eq!(class(batches(x.clone(), 0, &plain).map(drop)), ErrorClass::Option);
    assert_eq!(class(batches(x.clone(), 4, &plain.clone().dropping_last()).map(drop)), ErrorClass::Option);
    let behind = plain.clone().from(Position { epoch: 0, rows: 4 });
    assert_eq!(class(batches(x.clone(), 1, &behind).map(drop)), ErrorClass::Option);
    assert_eq!(class(batches(x.clone(), 1, &plain.shuffled(x)).map(drop)), ErrorClass::DType);
    Ok(())
}

/// Says that it was dropped.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn threads_end_and_panics_go_on() -> Result<(), defn::Error> {
    for size in [0, 1, 3] {
        assert_eq!(prefetch(0..5, size)?.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let ended = Arc::new(AtomicBool::new(false));
        let guard = Ends(ended.clone());
        let mut endless = prefetch((0..).inspect(move |_| assert!(!guard.0.load(Ordering::SeqCst))), size)?;
        assert_eq!(endless.next(), Some(0));
        // Dropping waits for the thread, which has dropped what it had.
        drop(endless);
        assert!(ended.load(Ordering::SeqCst));
        let mut failing = prefetch((0..3).map(|at| if at == 2 { panic!("no third") } else { at }), size)?;
        assert_eq!((failing.next(), failing.next()), (Some(0), Some(1)));
        let panic = catch_unwind(AssertUnwindSafe(|| failing.next())).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"no third"));
        assert_eq!(failing.next(), None);
    }
    Ok(())
}
