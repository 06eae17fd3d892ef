use defn_core::op::{BinaryOp, UnaryOp};
use defn_core::{DType, Number, Scalar, Shape, TensorType};

use super::{Draft, Operand, Program};
use crate::kernels::{StridedOperand, StridedView};
use crate::view::{View, ViewMut};

/// A line of the cache, which registers begin at.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// Writes all elements of the results.
fn run_whole(program: &Program, inputs: &[StridedOperand<'_>], results: &[ViewMut<'_>], size: usize) {
    let mut bank = vec![Line { _bytes: [0; 64] }; program.bank().div_ceil(64)];
    let starts: Vec<*mut u8> = results.iter().map(ViewMut::start).collect();
    // SAFETY: the bank has room for the registers, the views for all elements, and inputs have as many.
    unsafe { program.ready(bank.as_mut_ptr().cast(), size).run(inputs, &starts, 0..size) };
}

/// A chain of so many sums and sines, each of which is read until the end.
fn chain(count: usize) -> Draft {
    let mut draft = Draft::default();
    let x = Operand::Input { index: 0, dtype: DType::F64, constant: false, run: None };
    let mut made = vec![x];
    for at in 0..count {
        let sine = draft.unary(UnaryOp::SIN, made[at], DType::F64);
        made.push(draft.binary(BinaryOp::ADD, sine.into(), x, DType::F64).into());
    }
    let all = made.into_iter().reduce(|a, b| draft.binary(BinaryOp::ADD, a, b, DType::F64).into());
    draft.store(all.expect("there is the input"));
    draft
}

fn run(draft: Draft, x: &[f64]) -> Vec<f64> {
    let ty = TensorType::new(DType::F64, Shape::new(&[x.len()])).unwrap();
    // SAFETY: the same memory as bytes, for as long.
    let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x)) };
    let walk = StridedView::strided(0, &[x.len()], &[1]);
    let source = StridedOperand::with_strided_view(View::new(&ty, bytes), &walk);
    let mut out = vec![0.0f64; x.len()];
    // SAFETY: the room is for these elements, and only the view reaches it.
    let view = unsafe { ViewMut::new(&ty, out.as_mut_ptr().cast()) };
    run_whole(&draft.finish(), &[source], &[view], x.len());
    out
}

/// The same by numbers.
fn expected(count: usize, x: f64) -> f64 {
    let mut made = vec![x];
    for at in 0..count {
        made.push(made[at].sin() + x);
    }
    made.into_iter().reduce(|a, b| a + b).unwrap()
}

#[test]
fn registers_that_are_read_late_keep_their_elements() {
    let x: Vec<f64> = (0..5000).map(|at| f64::from(at) / 1000.0 - 2.5).collect();
    for count in [0, 1, 7, 40] {
        let got = run(chain(count), &x);
        for (&x, got) in x.iter().zip(got) {
            let want = expected(count, x);
            assert!((want - got).abs() <= 1e-12 * want.abs().max(1.0), "{count}: {x} gave {got}, not {want}");
        }
    }
}

#[test]
fn tiles_shrink_where_many_registers_are_alive() {
    let (few, many) = (chain(1).finish(), chain(40).finish());
    assert!(few.tile > many.tile, "{} {}", few.tile, many.tile);
    assert!(many.bank <= few.bank * 50);
}

#[test]
fn two_ops_at_once_are_as_one_after_the_other() {
    let ops = [BinaryOp::ADD, BinaryOp::SUBTRACT, BinaryOp::MULTIPLY, BinaryOp::MAX];
    let by_number = |op: BinaryOp, a: f32, b: f32| {
        if op == BinaryOp::ADD {
            a + b
        } else if op == BinaryOp::SUBTRACT {
            a - b
        } else if op == BinaryOp::MULTIPLY {
            a * b
        } else {
            a.max(b)
        }
    };
    let input = |index| Operand::Input { index, dtype: DType::F32, constant: false, run: None };
    let x: [Vec<f32>; 3] = std::array::from_fn(|index| {
        (0..1500).map(|at| ((at * 7919 + index * 31) % 2003) as f32 / 7.0).collect()
    });
    let ty = TensorType::new(DType::F32, Shape::new(&[1500])).unwrap();
    let number = Scalar::new(DType::F32, Number::Float(1.25)).unwrap();
    for form in 0..256 {
        let (first, second) = (ops[form & 3], ops[form >> 2 & 3]);
        let is = |bit: usize| form >> bit & 1 == 1;
        let (is_y_one, is_z_one, is_first_turned, is_second_turned) = (is(4), is(5), is(6), is(7));
        let mut draft = Draft::default();
        let other = |draft: &mut Draft, index, is_one| {
            if is_one { draft.constant(number).into() } else { input(index) }
        };
        let turned = |is_turned, a, b| if is_turned { (b, a) } else { (a, b) };
        let y = other(&mut draft, 1, is_y_one);
        let (a, b) = turned(is_first_turned, input(0), y);
        let made = draft.binary(first, a, b, DType::F32);
        let z = other(&mut draft, 2, is_z_one);
        let (a, b) = turned(is_second_turned, made.into(), z);
        let made = draft.binary(second, a, b, DType::F32);
        draft.store(made.into());
        let mut out = vec![0.0f32; 1500];
        let plain = StridedView::strided(0, &[1500], &[1]);
        let sources = x.each_ref().map(|x| {
            // SAFETY: the same memory as bytes, for as long.
            let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(&**x)) };
            StridedOperand::with_strided_view(View::new(&ty, bytes), &plain)
        });
        // SAFETY: the room is for these elements, and only the view reaches it.
        let view = unsafe { ViewMut::new(&ty, out.as_mut_ptr().cast()) };
        run_whole(&draft.finish(), &sources, &[view], 1500);
        for (at, &out) in out.iter().enumerate() {
            let (y, z) = (if is_y_one { 1.25 } else { x[1][at] }, if is_z_one { 1.25 } else { x[2][at] });
            let (a, b) = if is_first_turned { (y, x[0][at]) } else { (x[0][at], y) };
            let made = by_number(first, a, b);
            let (a, b) = if is_second_turned { (z, made) } else { (made, z) };
            assert_eq!(out.to_bits(), by_number(second, a, b).to_bits(), "{first:?} {second:?} {form}");
        }
    }
}

#[test]
fn runs_take_one_element_each() {
    for (rows, len) in [(3, 16), (70, 100), (5, 3000), (40, 7)] {
        let types = [rows * len, rows].map(|size| TensorType::new(DType::F64, Shape::new(&[size])).unwrap());
        let walks =
            [StridedView::strided(0, &[rows * len], &[1]), StridedView::strided(0, &[rows, len], &[1, 0])];
        let values =
            types.each_ref().map(|ty| (0..ty.size()).map(|at| at as f64 + 0.5).collect::<Vec<f64>>());
        for is_first in [false, true] {
            let mut draft = Draft::default();
            let [x, by] = [0, 1].map(|index| {
                let run = walks[index].run();
                Operand::Input { index, dtype: DType::F64, constant: false, run }
            });
            let (a, b) = if is_first { (by, x) } else { (x, by) };
            let made = draft.binary(BinaryOp::SUBTRACT, a, b, DType::F64);
            draft.store(made.into());
            let sources = [0, 1].map(|index| {
                let values = &*values[index];
                // SAFETY: the same memory as bytes, for as long.
                let bytes =
                    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) };
                StridedOperand::with_strided_view(View::new(&types[index], bytes), &walks[index])
            });
            let mut out = vec![0.0f64; rows * len];
            // SAFETY: the room is for these elements, and only the view reaches it.
            let view = unsafe { ViewMut::new(&types[0], out.as_mut_ptr().cast()) };
            run_whole(&draft.finish(), &sources, &[view], rows * len);
            for (at, out) in out.into_iter().enumerate() {
                let apart = values[0][at] - values[1][at / len];
                assert_eq!(out, if is_first { -apart } else { apart }, "{rows} x {len} at {at}");
            }
        }
    }
}

#[test]
fn long_chains_are_as_one_op_after_the_other() {
    let input = |index| Operand::Input { index, dtype: DType::F32, constant: false, run: None };
    let values: [Vec<f32>; 2] = std::array::from_fn(|index| {
        (0..1100).map(|at| ((at * 7919 + index * 31) % 2003) as f32 / 70.0 - 9.0).collect()
    });
    let ty = TensorType::new(DType::F32, Shape::new(&[1100])).unwrap();
    let mut draft = Draft::default();
    let number = |draft: &mut Draft, x: f64| -> Operand {
        draft.constant(Scalar::new(DType::F32, Number::Float(x)).unwrap()).into()
    };
    let (x, y) = (input(0), input(1));
    let op = |draft: &mut Draft, op, a: Operand, b: Operand| -> Operand {
        draft.binary(op, a, b, DType::F32).into()
    };
    // The first is a result, and read by two that go on: one of them is the square of a difference, the other one ends
    // in a quotient of what both chains give.
    let quarter = number(&mut draft, 0.25);
    let first = op(&mut draft, BinaryOp::MULTIPLY, quarter, x);
    let apart = op(&mut draft, BinaryOp::SUBTRACT, y, first);
    let square = op(&mut draft, BinaryOp::MULTIPLY, apart, apart);
    let half = number(&mut draft, 0.5);
    let square = op(&mut draft, BinaryOp::ADD, square, half);
    let mut sum = op(&mut draft, BinaryOp::ADD, first, y);
    for at in 0..20 {
        let number = number(&mut draft, f64::from(at) / 8.0);
        sum = op(&mut draft, BinaryOp::MULTIPLY, sum, quarter);
        sum = op(&mut draft, BinaryOp::SUBTRACT, number, sum);
    }
    let last = op(&mut draft, BinaryOp::DIVIDE, sum, square);
    draft.store(first);
    draft.store(last);
    let mut out = [vec![0.0f32; 1100], vec![0.0f32; 1100]];
    let plain = StridedView::strided(0, &[1100], &[1]);
    let sources = values.each_ref().map(|x| {
        // SAFETY: the same memory as bytes, for as long.
        let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(&**x)) };
        StridedOperand::with_strided_view(View::new(&ty, bytes), &plain)
    });
    // SAFETY: the room is for these elements, and only the views reach it.
    let views = out.each_mut().map(|out| unsafe { ViewMut::new(&ty, out.as_mut_ptr().cast()) });
    run_whole(&draft.finish(), &sources, &views, 1100);
    for (at, (&x, &y)) in values[0].iter().zip(&values[1]).enumerate() {
        let first = 0.25 * x;
        let square = (y - first) * (y - first) + 0.5;
        let sum = (0..20u8).fold(first + y, |sum, at| f32::from(at) / 8.0 - sum * 0.25);
        assert_eq!((out[0][at].to_bits(), out[1][at].to_bits()), (first.to_bits(), (sum / square).to_bits()));
    }
}
