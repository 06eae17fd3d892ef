//! Ops that move, reduce and multiply elements, through the backend: sharing, reuse and conversion.

use crate::common::*;
use defn_core::backend::Operand;
use defn_core::op::{ArgOp, Op, Padding, ReduceOp, Starts, TieBreak};
use defn_core::scalar::{round_float, wrap};
use defn_core::shape::AxisList;
use defn_core::{DType, Kind, Number, Scalar, Shape};
use smallvec::{SmallVec, smallvec};

fn axes(positions: &[usize]) -> AxisList {
    let shape = Shape::new(&[1; 8]);
    positions.iter().map(|&position| shape.axis(position).unwrap()).collect()
}

/// The numbers from 0 on.
fn count(dtype: DType, sizes: &[usize]) -> Operand {
    let count = sizes.iter().product::<usize>() as i128;
    let scalars: Vec<Scalar> = (0..count).map(|i| Scalar::new(dtype, Number::Int(i)).unwrap()).collect();
    tensor(dtype, sizes, &scalars)
}

fn put_slice() -> Op {
    Op::PutSlice { starts: Starts::Dynamic }
}

fn slice(starts: &[usize], lengths: &[usize]) -> Op {
    let strides = SmallVec::from_elem(1, lengths.len());
    Op::Slice { starts: Starts::Static(starts.into()), lengths: lengths.into(), strides }
}

#[test]
fn views_of_what_lies_in_order_share_storage() {
    let x = count(DType::S32, &[4, 1, 3]);
    let first = address(&x.buffer);
    for (op, offset) in [
        (Op::Reshape { shape: Shape::new(&[12]) }, 0),
        (Op::Squeeze { axes: axes(&[1]) }, 0),
        (Op::Transpose { axes: axes(&[1, 0, 2]) }, 0),
        (Op::Broadcast { shape: Shape::new(&[1, 4, 1, 3]), axes: axes(&[1, 2, 3]) }, 0),
        (Op::Reverse { axes: axes(&[1]) }, 0),
        (slice(&[1, 0, 0], &[2, 1, 3]), 3),
        (slice(&[2, 0, 1], &[1, 1, 2]), 7),
    ] {
        let got = run(&op, &[&x]).unwrap();
        assert_eq!(address(&got.buffer), first.wrapping_add(4 * offset), "{op:?}");
        let expected: Vec<i128> = (offset as i128..).take(got.ty.size()).collect();
        assert_eq!(integers(&got), expected, "{op:?}");
    }
    for op in [Op::Transpose { axes: axes(&[2, 0, 1]) }, Op::Reverse { axes: axes(&[0]) }] {
        assert_ne!(address(&run(&op, &[&x]).unwrap().buffer), first, "{op:?}");
    }
}

#[test]
fn slices_move_dynamic_starts_into_range() {
    let x = count(DType::F16, &[5]);
    let op = Op::Slice { starts: Starts::Dynamic, lengths: smallvec![3], strides: smallvec![2] };
    for (start, expected) in [(-7, [0.0, 2.0]), (1, [1.0, 3.0]), (2, [2.0, 4.0]), (100, [2.0, 4.0])] {
        let start = scalar(DType::S8, start);
        assert_eq!(floats(&unchecked(&op, &[&x, &start])), expected);
        assert_eq!(run(&op, &[&x, &start]).is_ok(), expected[0] == floats(&start)[0], "{expected:?}");
    }
    let huge = Scalar::new(DType::U64, Number::Int((1 << 64) - 1)).unwrap();
    assert_eq!(floats(&unchecked(&op, &[&x, &tensor(DType::U64, &[], &[huge])])), [2.0, 4.0]);
}

#[test]
fn put_slice_reuses_what_nobody_else_holds() {
    let start = scalar(DType::S32, 1);
    let x = count(DType::F32, &[4]);
    let first = address(&x.buffer);
    let kept = x.clone();
    let got = run_owned(&put_slice(), vec![x, vector(DType::F32, &[7.5, 8.5]), start.clone()]).unwrap();
    assert_ne!(address(&got.buffer), first);
    assert_eq!(floats(&kept), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(floats(&got), [0.0, 7.5, 8.5, 3.0]);

    // Memory of the backend without other owners is written in place, by updates of any type that fits.
    let own = address(&got.buffer);
    let got = run_owned(&put_slice(), vec![got, vector(DType::S8, &[-1]), start.clone()]).unwrap();
    assert_eq!(address(&got.buffer), own);
    assert_eq!(floats(&got), [0.0, -1.0, 8.5, 3.0]);

    // A wider update requires a wider result; one of the same width, but of another kind, needs new memory as well.
    let wide = run_owned(&put_slice(), vec![got, vector(DType::F64, &[0.1]), start.clone()]).unwrap();
    assert_eq!(wide.ty.dtype, DType::F64);
    assert_eq!(floats(&wide), [0.0, 0.1, 8.5, 3.0]);
    let whole = run(&Op::AsType { dtype: DType::S32 }, &[&wide]).unwrap();
    let got = run_owned(&put_slice(), vec![whole, vector(DType::F32, &[0.5]), start]).unwrap();
    assert_eq!(floats(&got), [0.0, 0.5, 8.0, 3.0]);
}

#[test]
fn put_slice_of_itself_reads_before_it_writes() {
    let x = run(&Op::AsType { dtype: DType::S64 }, &[&count(DType::S32, &[3])]).unwrap();
    let start = scalar(DType::S32, 0);
    let got = run_owned(&put_slice(), vec![x.clone(), x, start]).unwrap();
    assert_eq!(integers(&got), [0, 1, 2]);
}

#[test]
fn parts_of_a_result_are_converted_to_its_type() {
    let (a, b) = (vector(DType::U8, &[1, 200]), vector(DType::BF16, &[0.5]));
    let joined = run(&Op::Concatenate { axis: axes(&[0])[0] }, &[&a, &b, &a]).unwrap();
    assert_eq!(joined.ty.dtype, DType::BF16);
    assert_eq!(floats(&joined), [1.0, 200.0, 0.5, 1.0, 200.0]);

    let stacked = run(&Op::Stack { axis: 1, name: None }, &[&a, &vector(DType::S8, &[-1, 5])]).unwrap();
    assert_eq!(stacked.ty.dtype, DType::S16);
    assert_eq!(integers(&stacked), [1, -1, 200, 5]);

    let config = smallvec![Padding { low: 1, high: -1, interior: 2 }];
    let padded = run(&Op::Pad { config }, &[&a, &scalar(DType::F32, 0.25)]).unwrap();
    assert_eq!(floats(&padded), [0.25, 1.0, 0.25, 0.25]);
    let config = smallvec![Padding { low: 2, high: 1, interior: 0 }];
    let empty = tensor(DType::U8, &[0], &[]);
    assert_eq!(integers(&run(&Op::Pad { config }, &[&empty, &scalar(DType::U8, 9)]).unwrap()), [9, 9, 9]);
}

#[test]
fn every_type_moves() {
    for &dtype in DType::ALL {
        let x = edges(dtype);
        let mut turned = x.clone();
        turned.reverse();
        let got = run(&Op::Reverse { axes: axes(&[0]) }, &[&tensor(dtype, &[x.len()], &x)]).unwrap();
        let bytes = |x: &[Scalar]| x.iter().map(|x| x.to_bytes()).collect::<Vec<_>>();
        assert_eq!(bytes(&elements(&got)), bytes(&turned), "{dtype}");
    }
}

#[test]
fn every_type_adds_up() {
    for &dtype in DType::ALL {
        let x = count(dtype, &[2, 3]);
        let op = Op::Reduce { op: ReduceOp::Sum, axes: axes(&[0]), keep_axes: true };
        let got = run(&op, &[&x]).unwrap();
        assert_eq!(got.ty.shape.sizes(), [1, 3]);
        // The elements of u2 and s2 wrap before they are added.
        let at = |i: i128| Scalar::new(dtype, Number::Int(i)).unwrap().value().to_f64();
        let expected: Vec<f64> = (0..3).map(|i| at(i) + at(i + 3)).collect();
        assert_eq!(floats(&got), expected, "{dtype}");
        let none = Op::Reduce { op: ReduceOp::Product, axes: axes(&[0]), keep_axes: false };
        assert_eq!(floats(&run(&none, &[&tensor(dtype, &[0, 2], &[])]).unwrap()), [1.0, 1.0], "{dtype}");
    }
    // Small floats round once: 2048 + 1 is no f16, but 2048 + 1 + 1 is.
    let x = vector(DType::F16, &[2048.0, 1.0, 1.0]);
    let op = Op::Reduce { op: ReduceOp::Sum, axes: axes(&[0]), keep_axes: false };
    assert_eq!(floats(&run(&op, &[&x]).unwrap()), [2050.0]);
}

#[test]
fn extremes_are_found_and_named_in_any_type() {
    let x = vector(DType::F32, &[1.0, f64::NAN, 3.0, f64::NAN]);
    for (tie_break, expected) in [(TieBreak::Low, 1.0), (TieBreak::High, 3.0)] {
        for &dtype in DType::ALL {
            let op = Op::ArgReduce { op: ArgOp::Argmin, axis: None, keep_axis: true, tie_break, dtype };
            // Dtypes that can hold the last index, unlike s2.
            let Ok(got) = run(&op, &[&x]) else { continue };
            assert_eq!(floats(&got), [expected], "{dtype}");
        }
    }
}

#[test]
fn every_type_multiplies() {
    let dot =
        Op::Dot { contract_a: axes(&[1]), batch_a: axes(&[]), contract_b: axes(&[0]), batch_b: axes(&[]) };
    for &dtype in DType::ALL {
        for other in [dtype, DType::Bool, DType::U8, DType::F32] {
            let (a, b) = (count(dtype, &[2, 3]), count(other, &[3, 2]));
            let got = run(&dot, &[&a, &b]).unwrap();
            let to = got.ty.dtype;
            let merged = dtype.merge(other);
            assert_eq!(to, if merged.is_bool() { DType::S32 } else { merged });
            let (x, y) = (floats(&a), floats(&b));
            for (place, got) in floats(&got).into_iter().enumerate() {
                let (row, column) = (place / 2, place % 2);
                let exact: f64 = (0..3).map(|k| x[row * 3 + k] * y[k * 2 + column]).sum();
                let expected = match to.kind() {
                    Kind::Bool => unreachable!("products of bools are counted in s32"),
                    Kind::Unsigned | Kind::Signed => wrap(to, exact as i128) as f64,
                    Kind::Float => round_float(to, exact),
                    Kind::Complex => exact,
                };
                assert_eq!(got, expected, "{dtype} and {other} at {place}");
            }
        }
    }
    // An empty sum gives zeros.
    let got = run(&dot, &[&tensor(DType::F16, &[2, 0], &[]), &tensor(DType::F16, &[0, 1], &[])]).unwrap();
    assert_eq!(floats(&got), [0.0, 0.0]);
}

#[test]
fn batches_multiply_one_by_one() {
    let dot =
        Op::Dot { contract_a: axes(&[1]), batch_a: axes(&[0]), contract_b: axes(&[2]), batch_b: axes(&[0]) };
    // a[batch, k, i] and b[batch, j, k].
    let (a, b) = (count(DType::BF16, &[2, 2, 2]), count(DType::BF16, &[2, 1, 2]));
    assert_eq!(floats(&run(&dot, &[&a, &b]).unwrap()), [2.0, 3.0, 26.0, 31.0]);
}
