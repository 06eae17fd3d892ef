//! What derivatives keep in memory: snapshots of loops, and checkpointed functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use defn::prelude::*;
use defn::{Error, ErrorClass, Kept, LoopOptions, MemorySpace, checkpoint};

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

/// A network of blocks, which `block` makes of a function.
fn network(w: &Expr, x: &Expr, blocks: usize, block: impl Fn(&dyn Fn() -> Expr) -> Expr) -> Expr {
    let mut x = x.clone();
    for _ in 0..blocks {
        x = block(&|| {
            let inner = x.matmul(w).mark("inner");
            inner.sin().exp().mark("outer") * inner.cos() + &x
        });
    }
    x
}

fn policies() -> [Kept; 5] {
    [
        Kept::nothing(),
        Kept::products(),
        Kept::marked(&["inner"]),
        Kept::marked(&["inner", "outer"]),
        Kept::marked_in(&[("outer", MemorySpace::Host), ("inner", MemorySpace::Device)]),
    ]
}

fn arguments() -> Result<(Tensor, Tensor)> {
    Ok((tensor![[0.5, -0.25], [0.125, 0.75]; f64]?, tensor![[1.0, 2.0], [-0.5, 0.25]; f64]?))
}

#[test]
fn derivatives_of_a_checkpointed_function_are_its_own() -> Result {
    // The value, the gradient, a tangent and the second derivatives.
    fn all(
        w: &Expr,
        x: &Expr,
        block: impl Fn(&dyn Fn() -> Expr) -> Expr,
    ) -> ((Expr, (Expr, Expr)), Expr, Expr) {
        let at = (w.clone(), x.clone());
        let loss = |(w, x): (Expr, Expr)| network(&w, &x, 3, &block).sum(Axes::All, false);
        let by_w = |w: Expr| network(&w, x, 2, &block).sum(Axes::All, false);
        let tangent = jvp(w, &w.ones_like(), by_w).1;
        (value_and_grad(&at, loss), tangent, hvp(w, &w.ones_like(), by_w))
    }
    let plain = jit(|(w, x): (Expr, Expr)| all(&w, &x, |fun| fun()));
    let ((value, (by_w, by_x)), tangent, second) = plain.call(arguments()?)?;
    for kept in policies() {
        let f = jit(move |(w, x): (Expr, Expr)| all(&w, &x, |fun| checkpoint(&kept, fun)));
        let found = f.call(arguments()?)?;
        assert_near(&found.0.0, &value.to_vec::<f64>()?)?;
        assert_near(&found.0.1.0, &by_w.to_vec::<f64>()?)?;
        assert_near(&found.0.1.1, &by_x.to_vec::<f64>()?)?;
        assert_near(&found.1, &tangent.to_vec::<f64>()?)?;
        assert_near(&found.2, &second.to_vec::<f64>()?)?;
    }
    Ok(())
}

#[test]
fn a_checkpointed_function_maps_and_gives_containers() -> Result {
    let pair = |x: &Expr, scale: &Expr| (x.sin() * scale, vec![x.exp()]);
    let f = jit(move |(x, scale): (Expr, Expr)| {
        vmap(x, |x| {
            grad(&x, |x| {
                let (a, b) = checkpoint(&Kept::nothing(), || pair(&x, &scale));
                b.iter().fold(a, |sum, b| sum * b)
            })
        })
    });
    let x = [0.25f64, 1.5];
    let by_hand = x.map(|x| 3.0 * (x.sin() + x.cos()) * x.exp());
    let scale = tensor![3.0; f64]?.reshape(&[])?;
    assert_near(&f.call((tensor![x[0], x[1]; f64]?, scale))?, &by_hand)
}

#[test]
fn a_checkpointed_network_takes_less_memory() -> Result {
    let (size, blocks) = (100, 12);
    let peak = |block: fn(&dyn Fn() -> Expr) -> Expr| -> Result<usize> {
        let f = jit(move |(w, x): (Expr, Expr)| {
            grad(&w, |w| network(&w, &x, blocks, block).sum(Axes::All, false))
        });
        let matrix = Tensor::template(&[size, size], DType::F64)?;
        Ok(f.compile((matrix.clone(), matrix))?.memory()?.peak())
    };
    let plain = peak(|fun| fun())?;
    let nothing = peak(|fun| checkpoint(&Kept::nothing(), fun))?;
    let products = peak(|fun| checkpoint(&Kept::products(), fun))?;
    let state = 8 * size * size;
    assert!(nothing + 4 * state < products, "{nothing} bytes, with the products {products}");
    assert!(products + 4 * state < plain, "with the products {products} bytes, without checkpoint {plain}");
    Ok(())
}

#[test]
fn hooks_in_a_checkpointed_function_run_once() -> Result {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let slope = jit(move |x: Expr| {
        grad(&x, |x| {
            checkpoint(&Kept::nothing(), || {
                let counted = counted.clone();
                hook(x.sin(), move |_: Tensor| _ = counted.fetch_add(1, Ordering::Relaxed)).exp()
            })
        })
    });
    let found = slope.call(tensor![0.5; f64]?)?;
    assert_near(&found, &[0.5f64.cos() * 0.5f64.sin().exp()])?;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn errors_of_a_checkpointed_function_come_out() -> Result {
    let inner = jit(|x: Expr| checkpoint(&Kept::nothing(), || (x.reshape(&[5]), x.clone())));
    let error = inner.call(tensor![1.0, 2.0]?).unwrap_err();
    assert!(error.to_string().starts_with("reshape: "), "{error}");
    let kept = Kept::marked(&["inner", "middle"]);
    let unknown = jit(move |(w, x): (Expr, Expr)| network(&w, &x, 1, |fun| checkpoint(&kept, fun)));
    let error = unknown.call(arguments()?).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Option);
    assert!(error.to_string().starts_with("checkpoint: a name in policy is \"middle\""), "{error}");
    Ok(())
}
