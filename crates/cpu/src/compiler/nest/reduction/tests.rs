use defn_core::op::{ArgOp, TieBreak};
use defn_core::scalar;
use num_complex::Complex;
use proptest::prelude::*;

use super::*;
use crate::kernels::testing::{Array, dtype, flat_of, index_of, noise, sizes};

fn axes_of(sizes: &[usize], chosen: u8) -> Vec<Axis> {
    Shape::new(sizes).axes().filter(|axis| chosen >> axis.index() & 1 == 1).collect()
}

fn result_dtype(op: ReduceOp, dtype: DType) -> DType {
    match op {
        ReduceOp::Sum | ReduceOp::Product => dtype.to_aggregate(),
        ReduceOp::ReduceMax | ReduceOp::ReduceMin => dtype,
        ReduceOp::All | ReduceOp::Any => DType::Bool,
    }
}

fn run(op: ReduceOp, x: &Array, axes: &[Axis], par: Par) -> Array {
    let ty = TensorType::new(result_dtype(op, x.ty.dtype), x.ty.shape.reduced(axes, false)).unwrap();
    run_op(&Op::Reduce { op, axes: axes.iter().copied().collect(), keep_axes: false }, x, ty, par)
}

fn run_op(op: &Op, x: &Array, ty: TensorType, par: Par) -> Array {
    let reduction = OneReduction::new(op, &x.ty, &ty);
    let mut scratch =
        Array::unwritten(TensorType::new(DType::U8, Shape::new(&[reduction.scratch()])).unwrap());
    let mut out = Array::unwritten(ty);
    reduction.run(x.view(), &mut out.view_mut(), &mut scratch.view_mut(), par).unwrap();
    out
}

/// The elements that are reduced to each result, in order.
fn groups(x: &Array, axes: &[Axis]) -> Vec<Vec<Scalar>> {
    let recorded: Vec<Axis> = x.ty.shape.axes().filter(|axis| !axes.contains(axis)).collect();
    let result: Vec<usize> = recorded.iter().map(|&axis| x.ty.shape[axis]).collect();
    let mut groups = vec![Vec::new(); result.iter().product()];
    for (flat, scalar) in x.scalars().into_iter().enumerate() {
        let index = index_of(x.ty.shape.sizes(), flat);
        let position: Vec<usize> = recorded.iter().map(|axis| index[axis.index()]).collect();
        groups[flat_of(&result, &position)].push(scalar);
    }
    groups
}

/// The reduction by its definition, exact: the tests choose numbers whose sums and products are exact.
fn naive(op: ReduceOp, dtype: DType, items: &[Scalar]) -> Scalar {
    let to = result_dtype(op, dtype);
    let is_nan = |x: &Scalar| match x.value() {
        Number::Bool(_) | Number::Int(_) => false,
        Number::Huge(value) | Number::Float(value) => value.is_nan(),
        Number::Complex(value) => value.is_nan(),
    };
    let truth = |x: &Scalar| match x.value() {
        Number::Bool(value) => value,
        Number::Int(value) => value != 0,
        Number::Huge(value) | Number::Float(value) => value != 0.0,
        Number::Complex(value) => value != Complex::new(0.0, 0.0),
    };
    let extreme = |greatest: bool| {
        items.iter().copied().reduce(|a, b| {
            let less = match (a.value(), b.value()) {
                (Number::Int(a), Number::Int(b)) => a < b,
                (a, b) => a.to_f64() < b.to_f64(),
            };
            if is_nan(&a) || !is_nan(&b) && less != greatest { a } else { b }
        })
    };
    let fold =
        |start: i32, join: fn(Complex<f64>, Complex<f64>) -> Complex<f64>, exact: fn(i128, i128) -> i128| {
            match !dtype.is_inexact() {
                true => Number::Int(items.iter().fold(i128::from(start), |acc, x| match x.value() {
                    Number::Int(value) => scalar::wrap(DType::S64, exact(acc, value)),
                    Number::Bool(value) => exact(acc, i128::from(value)),
                    Number::Huge(_) | Number::Float(_) | Number::Complex(_) => unreachable!(),
                })),
                false => {
                    let total =
                        items.iter().fold(Complex::new(f64::from(start), 0.0), |acc, x| match x.value() {
                            Number::Complex(value) => join(acc, value),
                            Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_) => {
                                Complex::new(join(acc, x.value().to_f64().into()).re, 0.0)
                            }
                        });
                    if dtype.is_complex() { Number::Complex(total) } else { Number::Float(total.re) }
                }
            }
        };
    let number = match op {
        ReduceOp::Sum => fold(0, |a, b| a + b, |a, b| a + b),
        ReduceOp::Product => fold(1, |a, b| a * b, |a, b| a * b),
        ReduceOp::ReduceMax => extreme(true).map_or_else(|| dtype.lowest(), Scalar::value),
        ReduceOp::ReduceMin => extreme(false).map_or_else(|| dtype.highest(), Scalar::value),
        ReduceOp::All => Number::Int(i128::from(items.iter().all(truth))),
        ReduceOp::Any => Number::Int(i128::from(items.iter().any(truth))),
    };
    Scalar::new(to, number).unwrap()
}

/// Numbers whose reductions are exact in every dtype that accumulates them.
fn numbers(op: ReduceOp, dtype: DType, seed: u64) -> impl Iterator<Item = Number> {
    noise(seed).map(move |bits| {
        let pick = |choices: &[f64]| choices[bits as usize % choices.len()];
        let value = match op {
            ReduceOp::Sum => pick(&[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]),
            // Twos in complex numbers would reach infinity, whose product with 0 is NaN.
            ReduceOp::Product if dtype.is_complex() => pick(&[1.0, -1.0]),
            ReduceOp::Product => pick(&[1.0, 1.0, 1.0, -1.0, 2.0]),
            ReduceOp::ReduceMax | ReduceOp::ReduceMin if bits >> 60 == 0 && !dtype.is_integer() => f64::NAN,
            ReduceOp::ReduceMax | ReduceOp::ReduceMin => pick(&[-300.0, -7.0, -1.0, 1.0, 5.0, 6.0, 99.0]),
            ReduceOp::All => pick(&[1.0, 2.0, 1.0, if bits >> 60 == 0 { 0.0 } else { f64::NAN }]),
            ReduceOp::Any => pick(&[0.0, 0.0, 0.0, if bits >> 60 == 0 { 1.0 } else { -0.0 }]),
        };
        if dtype.is_integer() {
            Number::Int(if value.is_nan() { 1 } else { value as i128 })
        } else {
            Number::Float(value)
        }
    })
}

fn check(op: ReduceOp, dtype: DType, sizes: &[usize], axes: &[Axis], seed: u64) {
    if dtype.is_complex() && matches!(op, ReduceOp::ReduceMax | ReduceOp::ReduceMin) {
        return;
    }
    let count = sizes.iter().product();
    let x = Array::new(dtype, sizes, numbers(op, dtype, seed).take(count));
    let got = run(op, &x, axes, Par::Pool);
    let groups = groups(&x, axes);
    assert_eq!(groups.len(), got.ty.size());
    for (got, items) in got.scalars().into_iter().zip(groups) {
        let want = naive(op, dtype, &items);
        // The narrow integers cannot hold the neutral element of an extreme; the core rejects this case.
        if items.is_empty() && matches!(op, ReduceOp::ReduceMax | ReduceOp::ReduceMin) {
            continue;
        }
        let both_nan = got.value().to_f64().is_nan() && want.value().to_f64().is_nan();
        let equal = both_nan || got.value() == want.value();
        assert!(equal, "{op:?} of {dtype} {sizes:?} over {axes:?}: {got} and not {want}");
    }
}

proptest! {
    #[test]
    fn every_reduction_of_every_dtype(
        op in prop::sample::select(ReduceOp::ALL),
        dtype in dtype(),
        sizes in sizes(),
        chosen in any::<u8>(),
        seed in any::<u64>(),
    ) {
        check(op, dtype, &sizes, &axes_of(&sizes, chosen), seed);
    }
}

#[test]
fn large_reductions_in_every_layout() {
    for dtype in [DType::F32, DType::BF16, DType::U8, DType::C128] {
        for (sizes, chosen) in [
            (&[200_001][..], 1),
            (&[70_000, 9], 1),
            (&[2, 70_000, 9], 2),
            (&[40, 700], 1),
            (&[40, 700], 2),
            (&[3, 1500, 40], 5),
            (&[66_000, 3], 1),
            (&[3, 66_000], 2),
            (&[1200, 2], 2),
        ] {
            let axes = axes_of(sizes, chosen);
            check(ReduceOp::Sum, dtype, sizes, &axes, 7);
            check(ReduceOp::ReduceMax, dtype, sizes, &axes, 8);
        }
    }
}

fn floats(count: usize, value: impl Fn(u64) -> f64) -> Array {
    Array::new(DType::F32, &[count], noise(3).take(count).map(|bits| Number::Float(value(bits))))
}

#[test]
fn long_float_sums_are_accurate() {
    let count = 1 << 24;
    for value in [|_| f64::from(0.1f32), |bits: u64| (bits >> 40) as f64 / (1u64 << 24) as f64] {
        let x = floats(count, value);
        let exact: f64 = x.view().slice::<f32>().iter().map(|&x| f64::from(x)).sum();
        let got = run(ReduceOp::Sum, &x, &axes_of(&[count], 1), Par::Pool).scalars()[0].value().to_f64();
        assert!(((got - exact) / exact).abs() < 1e-6, "{got} and not {exact}");
    }
    // Down the columns too, where many sums run in parallel.
    let x = floats(1 << 20, |_| f64::from(0.1f32));
    let x = Array::new(DType::F32, &[1 << 16, 16], x.scalars().into_iter().map(Scalar::value));
    let exact = f64::from(0.1f32) * f64::from(1 << 16);
    for got in run(ReduceOp::Sum, &x, &axes_of(&[1 << 16, 16], 1), Par::Pool).scalars() {
        assert!(((got.value().to_f64() - exact) / exact).abs() < 1e-6, "{got} and not {exact}");
    }
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let random = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.3;
    for sizes in [&[1_000_003][..], &[3000, 333], &[9, 70_000], &[70_000, 9], &[20, 300, 40]] {
        let count = sizes.iter().product();
        let x = Array::new(DType::F32, sizes, noise(5).take(count).map(|bits| Number::Float(random(bits))));
        for chosen in 1..8 {
            let axes = axes_of(sizes, chosen);
            let (serial, pool) =
                (run(ReduceOp::Sum, &x, &axes, Par::Serial), run(ReduceOp::Sum, &x, &axes, Par::Pool));
            assert_eq!(serial.bytes(), pool.bytes(), "{sizes:?} over {axes:?}");
        }
    }
}

fn run_arg(op: ArgOp, tie_break: TieBreak, x: &Array, axis: Option<Axis>, dtype: DType) -> Array {
    let shape = axis.map_or(Shape::scalar(), |axis| x.ty.shape.reduced(&[axis], false));
    let op = Op::ArgReduce { op, tie_break, axis, keep_axis: false, dtype };
    run_op(&op, x, TensorType::new(dtype, shape).unwrap(), Par::Pool)
}

fn check_arg(op: ArgOp, tie: TieBreak, dtype: DType, sizes: &[usize], axis: Option<usize>, seed: u64) {
    let count: usize = sizes.iter().product();
    let axis = axis.and_then(|axis| Shape::new(sizes).axis(axis));
    if dtype.is_complex() || axis.map_or(count, |axis| sizes[axis.index()]) == 0 {
        return;
    }
    let x = Array::new(dtype, sizes, numbers(ReduceOp::ReduceMax, dtype, seed).take(count));
    let all: Vec<Axis> = axis.map_or(x.ty.shape.axes().collect(), |axis| vec![axis]);
    let got = run_arg(op, tie, &x, axis, DType::S32);
    for (got, items) in got.scalars().into_iter().zip(groups(&x, &all)) {
        // The numbers are integers in every dtype; as f64, the greatest of u64 would be equal.
        let number = |x: &Scalar| match x.value() {
            Number::Bool(value) => i128::from(value),
            Number::Int(value) => value,
            Number::Huge(value) | Number::Float(value) => value as i128,
            Number::Complex(_) => unreachable!(),
        };
        let key = |x: &Scalar| match op {
            _ if x.value().to_f64().is_nan() => i128::MAX,
            ArgOp::Argmax => number(x),
            ArgOp::Argmin => -number(x),
        };
        let best = items.iter().map(key).max().unwrap();
        let want = match tie {
            TieBreak::Low => items.iter().position(|x| key(x) == best),
            TieBreak::High => items.iter().rposition(|x| key(x) == best),
        };
        assert_eq!(
            got.value(),
            Number::Int(want.unwrap() as i128),
            "{op:?} {tie:?} of {dtype} {sizes:?}, {axis:?}"
        );
    }
}

proptest! {
    #[test]
    fn every_extreme_is_found(
        op in prop::sample::select(ArgOp::ALL),
        tie in prop::sample::select(TieBreak::ALL),
        dtype in dtype(),
        sizes in sizes(),
        axis in prop::option::of(0usize..4),
        seed in any::<u64>(),
    ) {
        check_arg(op, tie, dtype, &sizes, axis, seed);
    }
}

#[test]
fn extremes_of_large_tensors() {
    for &tie in TieBreak::ALL {
        for dtype in [DType::S64, DType::F32, DType::F16] {
            check_arg(ArgOp::Argmax, tie, dtype, &[200_001], None, 1);
            check_arg(ArgOp::Argmin, tie, dtype, &[3, 70_000], Some(1), 2);
            check_arg(ArgOp::Argmin, tie, dtype, &[300, 700], Some(0), 3);
            check_arg(ArgOp::Argmax, tie, dtype, &[5, 30, 17], Some(1), 4);
        }
    }
    // Without NaN and ties: one winner in the middle of a long row.
    let mut values = vec![Number::Float(1.0); 150_000];
    values[99_999] = Number::Float(2.0);
    let x = Array::new(DType::F64, &[150_000], values);
    for (dtype, want) in [(DType::S64, 99_999.0), (DType::F32, 99_999.0), (DType::BF16, 99_840.0)] {
        let got = run_arg(ArgOp::Argmax, TieBreak::Low, &x, None, dtype).scalars()[0];
        assert_eq!(got.value().to_f64(), want);
    }
}
