//! What derivatives keep in memory: snapshots of loops.

use defn::prelude::*;
use defn::{Error, ErrorClass, LoopOptions};

type Result<T = ()> = std::result::Result<T, Error>;

fn assert_near(found: &Tensor, expected: &[f64]) -> Result {
    let found = found.to_vec::<f64>()?;
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= 1e-12 * y.abs().max(1.0), "{found:?} {expected:?}");
    }
    Ok(())
}

/// A function of a vector by each of the loops, of `trips` trips.
fn loops(options: LoopOptions, trips: i32) -> [Box<dyn Fn(Expr) -> Expr>; 5] {
    let step = |x: &Expr| (x + 0.25 * x.sin()).cos();
    let trips_of_items = trips as usize;
    [
        Box::new(move |x| {
            let start = x.at(0).zeros_like();
            let more = move |(i, _): (Expr, Expr)| i.less(trips);
            options.while_((start, x), more, |(i, x)| (i + 1, step(&x))).1
        }),
        Box::new(move |x| options.for_(x, 0..trips, |x, _| step(&x))),
        Box::new(move |x| {
            let items = Expr::full(&[trips_of_items], DType::F64, 0);
            options.scan(x, &items, |x, item| (step(&x) + &item, item)).0
        }),
        Box::new(move |x| {
            let items = Expr::full(&[trips_of_items], DType::F64, 0);
            options.scan_reverse(x, &items, |x, item| (step(&x) + &item, item)).0
        }),
        Box::new(move |x| options.scan_times(x, trips_of_items, |x| (step(&x), step(&x))).0),
    ]
}

#[test]
fn gradients_with_snapshots_are_those_by_hand() -> Result {
    let trips = 23;
    let at = [0.3f64, 1.7];
    let by_hand = at.map(|mut x| {
        let mut slope = 1.0;
        for _ in 0..trips {
            let inner = x + 0.25 * x.sin();
            slope *= -inner.sin() * (1.0 + 0.25 * x.cos());
            x = inner.cos();
        }
        slope
    });
    for count in [1, 2, 3, 5, 22, 23, 100] {
        for fun in loops(LoopOptions::new().with_snapshots(count), trips) {
            let slope = jit(move |x: Expr| grad(&x, &fun));
            assert_near(&slope.call(tensor![at[0], at[1]; f64]?)?, &by_hand)?;
        }
    }
    Ok(())
}

#[test]
fn snapshots_are_what_a_gradient_keeps() -> Result {
    let size = 1000;
    let peak = |count: usize, which: usize| -> Result<usize> {
        let [fun] = loops(LoopOptions::new().with_snapshots(count), 60)
            .into_iter()
            .skip(which)
            .take(1)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|_| panic!("one loop"));
        let slope = jit(move |x: Expr| grad(&x, &fun));
        Ok(slope.compile(Tensor::template(&[size], DType::F64)?)?.memory()?.peak())
    };
    for which in 0..5 {
        let (few, many) = (peak(2, which)?, peak(50, which)?);
        // 48 states of 8000 bytes.
        assert!(many > few + 40 * 8 * size, "loop {which}: {few} bytes with 2, {many} with 50");
    }
    Ok(())
}

#[test]
fn a_number_of_snapshots_out_of_range_is_refused() -> Result {
    let options = [LoopOptions::new().with_snapshots(0), LoopOptions::new().with_snapshots(usize::MAX)];
    for (options, given) in options.into_iter().zip(["0", "18446744073709551615"]) {
        // A loop without trips has options, too.
        for trips in [0, 3] {
            for (fun, name) in
                loops(options, trips).into_iter().zip(["while_", "for_", "scan", "scan", "scan"])
            {
                let error = jit(fun).call(tensor![1.0; f64]?).unwrap_err();
                assert_eq!(error.class(), ErrorClass::Option);
                let text = format!("{name}: snapshots is {given}, it must be from 1 to 1073741824");
                assert!(error.to_string().starts_with(&text), "{error}");
            }
        }
    }
    Ok(())
}
