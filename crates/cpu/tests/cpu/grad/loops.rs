//! Branches and loops.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use defn_core::backend::{Backend, Buffer, Buffers, HostMemory, Operand};
use defn_core::builder::{BuildControl, BuildCreate, BuildElementwise, BuildReduce, Builder};
use defn_core::grad::{value_and_grad, vjp};
use defn_core::op::{Block, Op, UnaryOp};
use defn_core::region::Region;
use defn_core::{Axes, DType, Number, Result, Shape, TensorType};
use defn_cpu::cpu_backend;
use smallvec::SmallVec;

use super::*;

/// Repeats `x = tanh(w x + b) + x / 2` on x: f64[2] for `n` trips; inputs x, w, n. The trip count is static or not. `b`
/// is a leaf of the state that does not change.
fn recurrence(trips: Option<u64>) -> Region {
    let (x, w, n) = (ty(DType::F64, &[2]), ty(DType::F64, &[]), ty(DType::S32, &[]));
    let state = [n.clone(), x.clone(), w.clone()];
    let captures = [w.clone(), n.clone()];
    let cond = closed(&state, &captures, |g, v| Ok(vec![g.less(v[0], v[4])?]));
    let body = closed(&state, &captures, |g, v| {
        let scaled = g.multiply(v[1], v[3])?;
        let moved = g.add(scaled, v[2])?;
        let bent = g.tanh(moved)?;
        let half = g.divide(v[1], 2)?;
        Ok(vec![g.add(v[0], 1)?, g.add(bent, half)?, v[2]])
    });
    region(&[x, w, n], |g, v| {
        let zero = g.constant(DType::S32, 0)?;
        let b = g.multiply(v[1], 0.25)?;
        let results = g.emit_while(cond, body, trips, &[zero, v[0], b], &[v[1], v[2]])?;
        let loss = g.multiply(results[1], results[2])?;
        Ok(vec![weighted(g, loss)?])
    })
}

/// Checks finite differences in x and w; the number of trips is no variable.
fn check_recurrence(program: &Region, name: &str, trips: usize) {
    let inputs = vec![vec![0.3, -0.2], vec![0.9], vec![trips as f64]];
    let both = value_and_grad(program, 0, &[0, 1, 2]).unwrap();
    let found = run(&both, &inputs);
    let value = |inputs: &[Vec<f64>]| values(&run(program, inputs)[0])[0];
    assert_eq!(values(&found[0])[0], value(&inputs), "{name}: the value");
    assert_eq!(values(&found[3]), [0.0], "{name}: the number of trips");
    for (input, element) in [(0, 0), (0, 1), (1, 0)] {
        let at = |by: f64| {
            let mut inputs = inputs.clone();
            inputs[input][element] += by;
            value(&inputs)
        };
        let want = (at(1e-6) - at(-1e-6)) / 2e-6;
        let got = values(&found[1 + input])[element];
        assert!((got - want).abs() < 1e-6 * want.abs().max(1.0), "{name}: input {input}: {got}, {want}");
    }
}

#[test]
fn loops_of_every_length() {
    for trips in [0, 1, 2, 31, 1000, 5000] {
        check_recurrence(&recurrence(Some(trips as u64)), &format!("{trips} known trips"), trips);
        check_recurrence(&recurrence(None), &format!("{trips} unknown trips"), trips);
    }
}

#[test]
fn known_and_unknown_trips_agree_bit_by_bit() {
    for trips in [3, 127, 128, 129, 400, 20_000] {
        let inputs = vec![vec![0.3, -0.2], vec![0.9], vec![trips as f64]];
        let gradient = |known: Option<u64>| -> Vec<Vec<f64>> {
            let both = value_and_grad(&recurrence(known), 0, &[0, 1]).unwrap();
            run(&both, &inputs).iter().map(values).collect()
        };
        assert_eq!(gradient(Some(trips)), gradient(None), "{trips} trips");
    }
}

/// Counts the runs of one op, and of all ops.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn Backend>,
    op: UnaryOp,
    count: AtomicUsize,
    all: AtomicUsize,
}

impl Backend for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        self.inner.from_host(ty, bytes)
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        self.all.fetch_add(1, Ordering::Relaxed);
        if *op == Op::Unary(self.op) {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.run(op, operands, outputs)
    }

    fn has_native(&self, block: &Block) -> bool {
        self.inner.has_native(block)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// How often the body is evaluated, also inside its gradient, which needs the result of its `tanh`; and how many ops
/// run altogether.
fn evaluations(program: &Region, inputs: &[Vec<f64>]) -> (usize, usize) {
    let (count, all) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let counting = Arc::new(Counting { inner: cpu_backend(), op: UnaryOp::TANH, count, all });
    let backend: Arc<dyn Backend> = counting.clone();
    run_on(&backend, program, inputs);
    (counting.count.load(Ordering::Relaxed), counting.all.load(Ordering::Relaxed))
}

#[test]
fn bodies_are_evaluated_a_few_times_a_trip() {
    for trips in [1, 100, 1000, 3000, 10_000, 40_000] {
        let inputs = vec![vec![0.3, -0.2], vec![0.9], vec![trips as f64]];
        let known = value_and_grad(&recurrence(Some(trips)), 0, &[0, 1]).unwrap();
        let known = evaluations(&known, &inputs).0 as f64 / trips as f64;
        let unknown = value_and_grad(&recurrence(None), 0, &[0, 1]).unwrap();
        let unknown = evaluations(&unknown, &inputs).0 as f64 / trips as f64;
        println!("{trips} trips: {known} evaluations each, {unknown} where the number is not known");
        assert!(known <= 2.0, "{trips} known trips: {known} evaluations each");
        assert!(unknown <= 4.0, "{trips} unknown trips: {unknown} evaluations each");
    }
}

#[test]
fn ten_times_the_trips_are_about_ten_times_the_work() {
    let work = |known: bool, trips: u64| {
        let program = value_and_grad(&recurrence(known.then_some(trips)), 0, &[0, 1]).unwrap();
        let start = std::time::Instant::now();
        let all = evaluations(&program, &[vec![0.3, -0.2], vec![0.9], vec![trips as f64]]).1;
        println!("{trips} trips, known: {known}: {all} ops, {:?}", start.elapsed());
        all
    };
    for known in [true, false] {
        assert!(work(known, 10_000) <= 12 * work(known, 1000));
    }
}

#[test]
fn an_open_graph_runs_the_loop_once_more() {
    let inner = recurrence(None);
    let types = inner.inputs().to_vec();
    let program = region(&types, |g, v| {
        let y = g.inline(&inner, v)?[0];
        let one = g.constant(DType::F32, 1)?;
        let found = vjp(g, &[y], &[one], &[v[0], v[1]])?;
        Ok(found.into_iter().flatten().collect())
    });
    let inputs = vec![vec![0.3, -0.2], vec![0.9], vec![50.0]];
    let want = run(&value_and_grad(&inner, 0, &[0, 1]).unwrap(), &inputs);
    let found = run(&program, &inputs);
    for (found, want) in found.iter().zip(&want[1..]) {
        let pairs = values(found).into_iter().zip(values(want));
        pairs.for_each(|(found, want)| assert!((found - want).abs() <= 1e-15, "{found}, {want}"));
    }
}

/// A loop of `outer` trips around a loop of `inner` trips around a branch; inputs x, w: f64.
fn nested(outer: i32, inner: i32, known: bool) -> Region {
    let (f, i) = (ty(DType::F64, &[]), ty(DType::S32, &[]));
    let less_than = |count: i32, captures: &[TensorType]| {
        closed(&[i.clone(), f.clone()], captures, |g, v| Ok(vec![g.less(v[0], count)?]))
    };
    let w = [f.clone()];
    let one = closed(&[], &[f.clone(), f.clone()], |g, v| {
        let product = g.multiply(v[0], v[1])?;
        Ok(vec![g.sin(product)?])
    });
    let other = closed(&[], &[f.clone(), f.clone()], |g, v| Ok(vec![g.multiply(v[0], 0.75)?]));
    let inner_body = closed(&[i.clone(), f.clone()], &w, |g, v| {
        let odd = g.bitwise_and(v[0], 1)?;
        let x = g.emit_cond([one, other], &[odd], &[v[1], v[2]])?[0];
        Ok(vec![g.add(v[0], 1)?, x])
    });
    let inner_cond = less_than(inner, &w);
    let trips = |count: i32| known.then_some(count as u64);
    let outer_body = closed(&[i.clone(), f.clone()], &w, |g, v| {
        let zero = g.constant(DType::S32, 0)?;
        let x = g.emit_while(inner_cond, inner_body, trips(inner), &[zero, v[1]], &[v[2]])?[1];
        let grown = g.multiply(x, 1.5)?;
        Ok(vec![g.add(v[0], 1)?, g.add(grown, v[2])?])
    });
    let outer_cond = less_than(outer, &w);
    region(&[f.clone(), f], |g, v| {
        let zero = g.constant(DType::S32, 0)?;
        let found = g.emit_while(outer_cond, outer_body, trips(outer), &[zero, v[0]], &[v[1]])?;
        Ok(vec![found[1]])
    })
}

#[test]
fn loops_in_loops_around_branches() {
    for known in [true, false] {
        for (outer, inner) in [(0, 3), (3, 0), (1, 1), (4, 5)] {
            let program = nested(outer, inner, known);
            check_region(&format!("{outer} x {inner}"), &program, &[vec![0.7], vec![1.2]]);
        }
    }
}

#[test]
fn second_and_third_derivatives_of_loops() {
    for known in [true, false] {
        // d/dx of x -> x w^n, and its derivatives with respect to w.
        let f = ty(DType::F64, &[]);
        let i = ty(DType::S32, &[]);
        let state = [i, f.clone()];
        let cond = closed(&state, std::slice::from_ref(&f), |g, v| Ok(vec![g.less(v[0], 6)?]));
        let body = closed(&state, std::slice::from_ref(&f), |g, v| {
            Ok(vec![g.add(v[0], 1)?, g.multiply(v[1], v[2])?])
        });
        let mut program = region(&[f.clone(), f], |g, v| {
            let zero = g.constant(DType::S32, 0)?;
            let found = g.emit_while(cond, body, known.then_some(6), &[zero, v[0]], &[v[1]])?;
            Ok(vec![found[1]])
        });
        let orders = if known { 3 } else { 2 };
        for order in 0..orders {
            program = value_and_grad(&program, order, &[1]).unwrap();
        }
        let found: Vec<f64> =
            run(&program, &[vec![2.0], vec![1.1]]).iter().map(|tensor| values(tensor)[0]).collect();
        let w = 1.1f64;
        let want = [2.0 * w.powi(6), 12.0 * w.powi(5), 60.0 * w.powi(4), 240.0 * w.powi(3)];
        let close = found.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-10 * want);
        assert!(close && found.len() == orders + 1, "{found:?}, {want:?}");
    }
}

#[test]
fn branches_that_ignore_a_value_give_zeros() {
    let f = ty(DType::F64, &[2]);
    for (chosen, want_x, want_y) in [(1, [2.0, 4.0], [0.0, 0.0]), (0, [0.0, 0.0], [3.0, 3.0])] {
        let captures = [f.clone(), f.clone()];
        let one = closed(&[], &captures, |g, v| Ok(vec![g.multiply(v[0], v[0])?]));
        let other = closed(&[], &captures, |g, v| Ok(vec![g.multiply(v[1], 3)?]));
        let found = gradients(&[f.clone(), f.clone()], &[vec![1.0, 2.0], vec![5.0, 6.0]], |g, v| {
            let pred = g.constant(DType::U8, chosen)?;
            Ok(g.emit_cond([one, other], &[pred], v)?[0])
        });
        assert_eq!((values(&found[0]), values(&found[1])), (want_x.to_vec(), want_y.to_vec()));
    }
}

#[test]
fn gradients_of_windows_in_loops_stay_linear() {
    // The state is read by a dynamic slice each trip; its gradient is a tape that is written in place.
    let n = 2000usize;
    let (xs, f, i) = (ty(DType::F64, &[n]), ty(DType::F64, &[]), ty(DType::S32, &[]));
    let state = [i, f];
    let cond = closed(&state, std::slice::from_ref(&xs), |g, v| Ok(vec![g.less(v[0], n as i32)?]));
    let body = closed(&state, std::slice::from_ref(&xs), |g, v| {
        let op = Op::Slice {
            starts: defn_core::op::Starts::Dynamic,
            lengths: [1].into_iter().collect(),
            strides: [1].into_iter().collect(),
        };
        let item = g.emit_one(op, &[v[2], v[0]])?;
        let item = g.emit_one(Op::Reshape { shape: Shape::scalar() }, &[item])?;
        let decayed = g.multiply(v[1], 0.5)?;
        Ok(vec![g.add(v[0], 1)?, g.add(decayed, item)?])
    });
    let inputs = noise(&[n], 1).values;
    let found = gradients(&[xs], &[inputs], |g, v| {
        let (zero, start) = (g.constant(DType::S32, 0)?, g.constant(DType::F64, 0)?);
        Ok(g.emit_while(cond, body, Some(n as u64), &[zero, start], v)?[1])
    });
    let last = &values(&found[0])[n - 3..];
    assert_eq!(last, [0.25, 0.5, 1.0]);
}

#[test]
fn leaves_have_names_and_any_dtype() {
    let named = TensorType::new(DType::F64, Shape::named(&[2], &[Some("x")]).unwrap()).unwrap();
    let (z, i) = (ty(DType::C128, &[]), ty(DType::S32, &[]));
    for known in [Some(5), None] {
        let state = [i.clone(), named.clone(), z.clone()];
        let captures = [named.clone()];
        let cond = closed(&state, &captures, |g, v| Ok(vec![g.less(v[0], 5)?]));
        let body = closed(&state, &captures, |g, v| {
            let product = g.multiply(v[1], v[3])?;
            let x = g.sin(product)?;
            let sum = g.sum(x, Axes::All, false)?;
            let turned = g.multiply(v[2], Number::complex(0.6, 0.7))?;
            Ok(vec![g.add(v[0], 1)?, x, g.add(turned, sum)?])
        });
        let program = region(&[named.clone(), named.clone()], |g, v| {
            let zero = g.constant(DType::S32, 0)?;
            let z = g.sum(v[0], Axes::All, false)?;
            let z = g.as_type(z, DType::C128)?;
            let found = g.emit_while(cond, body, known, &[zero, v[0], z], &[v[1]])?;
            let length = g.abs(found[2])?;
            let sum = g.sum(found[1], Axes::All, false)?;
            Ok(vec![g.add(length, sum)?])
        });
        check_region(&format!("{known:?}"), &program, &[vec![0.7, -0.4], vec![1.2, 0.8]]);
    }
    // The gradient passes a state of integers, which each trip doubles, and has the dtype of its variable.
    for known in [Some(3), None] {
        let state = [i.clone(), ty(DType::S64, &[2])];
        let cond = closed(&state, &[], |g, v| Ok(vec![g.less(v[0], 3)?]));
        let body = closed(&state, &[], |g, v| Ok(vec![g.add(v[0], 1)?, g.multiply(v[1], 2)?]));
        let found = gradients(&[ty(DType::F64, &[2])], &[vec![1.5, 2.0]], |g, v| {
            let (zero, whole) = (g.constant(DType::S32, 0)?, g.as_type(v[0], DType::S64)?);
            Ok(g.emit_while(cond, body, known, &[zero, whole], &[])?[1])
        });
        assert_eq!((found[0].ty().to_string(), values(&found[0])), ("f64[2]".to_owned(), vec![8.0, 8.0]));
    }
}

#[test]
fn what_no_result_needs_is_not_differentiated() {
    // 1 / x is infinite at 0, and its slope times a zero cotangent would be NaN.
    for known in [Some(2), None] {
        let (f, i) = (ty(DType::F64, &[]), ty(DType::S32, &[]));
        let state = [i, f.clone(), f.clone()];
        let cond = closed(&state, &[], |g, v| Ok(vec![g.less(v[0], 2)?]));
        let body = closed(&state, &[], |g, v| {
            let inverse = g.divide(1, v[1])?;
            Ok(vec![g.add(v[0], 1)?, g.multiply(v[1], 3)?, inverse])
        });
        let found = gradients(&[f], &[vec![0.0]], |g, v| {
            let zero = g.constant(DType::S32, 0)?;
            Ok(g.emit_while(cond, body, known, &[zero, v[0], v[0]], &[])?[1])
        });
        assert_eq!(values(&found[0]), [9.0]);
    }
}

/// The forward pass has called the hooks; the reverse pass runs the body again without them.
#[test]
fn hooks_do_not_run_again() {
    use defn_core::Tensor;
    use defn_core::backend::{Checks, Compiler, Hooks};
    use defn_core::evaluator::Evaluator;

    #[derive(Default)]
    struct Calls(AtomicUsize);
    impl Hooks for Calls {
        fn call(&self, _: usize, _: &[Tensor]) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    for known in [Some(7), None] {
        let (f, i) = (ty(DType::F64, &[]), ty(DType::S32, &[]));
        let state = [i, f.clone()];
        let cond = closed(&state, &[], |g, v| Ok(vec![g.less(v[0], 7)?]));
        let body = closed(&state, &[], |g, v| {
            let seen = g.hook(0, None, &[v[1]])?[0];
            Ok(vec![g.add(v[0], 1)?, g.sin(seen)?])
        });
        let program = region(&[f], |g, v| {
            let zero = g.constant(DType::S32, 0)?;
            Ok(vec![g.emit_while(cond, body, known, &[zero, v[0]], &[])?[1]])
        });
        let both = value_and_grad(&program, 0, &[0]).unwrap();
        let compiled =
            Evaluator::new(cpu_backend()).compile(Arc::new(both.clone()), Checks::default()).unwrap();
        let argument = to_tensor(&cpu_backend(), &both.inputs()[0], &[0.5]);
        let calls = Calls::default();
        compiled.run(&cpu_backend(), vec![argument], &calls).unwrap();
        assert_eq!(calls.0.load(Ordering::Relaxed), 7);
    }
}
