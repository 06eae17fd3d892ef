//! Conversions between all element types, compared with their definition on one number.

use crate::common::*;
use defn_core::op::Op;
use defn_core::{DType, Kind, Number, Scalar, Shape, TensorType};

/// The conversion of one number, by the rules of `as_type`.
fn converted(x: Scalar, to: DType) -> Scalar {
    let number = match (x.value(), to.kind()) {
        (value, Kind::Bool) => Number::Bool(value.is_true()),
        (Number::Bool(value), _) => Number::Int(i128::from(value)),
        (Number::Int(value), _) => Number::Int(value),
        (Number::Huge(value) | Number::Float(value), Kind::Unsigned | Kind::Signed) => saturated(value, to),
        (Number::Complex(value), Kind::Unsigned | Kind::Signed) => saturated(value.re, to),
        (Number::Huge(value) | Number::Float(value), Kind::Float | Kind::Complex) => Number::Float(value),
        (Number::Complex(value), Kind::Float) => Number::Float(value.re),
        (Number::Complex(value), Kind::Complex) => Number::Complex(value),
    };
    Scalar::new(to, number).unwrap()
}

fn saturated(value: f64, to: DType) -> Number {
    let (Number::Int(low), Number::Int(high)) = (to.lowest(), to.highest()) else { unreachable!() };
    // A cast from float to integer in Rust truncates, saturates and converts NaN to 0.
    Number::Int((value as i128).clamp(low, high))
}

fn same(a: Scalar, b: Scalar) -> bool {
    let nan = |x: f64, y: f64| x.is_nan() && y.is_nan();
    match (a.value(), b.value()) {
        (Number::Float(x), Number::Float(y)) => nan(x, y) || a == b,
        (Number::Complex(x), Number::Complex(y)) => {
            let part = |x: f64, y: f64| nan(x, y) || x.to_bits() == y.to_bits();
            part(x.re, y.re) && part(x.im, y.im)
        }
        _ => a == b,
    }
}

#[test]
fn edges_of_every_type_become_every_type() {
    for &from in DType::ALL {
        let x = edges(from);
        let operand = tensor(from, &[x.len()], &x);
        // The conversion to bool is a comparison with zero.
        for &to in DType::ALL.iter().filter(|to| !to.is_bool() || from.is_bool()) {
            let got = elements(&run(&Op::AsType { dtype: to }, &[&operand]).unwrap());
            for (&x, got) in x.iter().zip(got) {
                let want = converted(x, to);
                assert!(same(got, want), "{from} {x} as {to}: {got} and not {want}");
            }
        }
    }
}

#[test]
fn every_bit_pattern_of_the_small_floats_is_read_and_written() {
    for dtype in [DType::F16, DType::BF16, DType::F8E5M2, DType::F8E4M3FN] {
        let count = 1usize << dtype.bits();
        let bytes: Vec<u8> = match dtype.storage_bytes() {
            1 => (0..=255).collect(),
            _ => (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect(),
        };
        let all = place(TensorType::new(dtype, Shape::new(&[count])).unwrap(), bytes);
        for wide in [DType::F32, DType::F64] {
            let widened = run(&Op::AsType { dtype: wide }, &[&all]).unwrap();
            for (x, got) in elements(&all).into_iter().zip(floats(&widened)) {
                let Number::Float(want) = x.value() else { unreachable!() };
                assert!(got == want || got.is_nan() && want.is_nan(), "{dtype} {x}");
            }
            let back = run(&Op::AsType { dtype }, &[&widened]).unwrap();
            for (x, got) in elements(&all).into_iter().zip(elements(&back)) {
                assert!(same(x, got), "{dtype} {x} through {wide}: {got}");
            }
        }
    }
}

/// The middle between two neighbours is rounded to the even one, other values to the nearest.
#[test]
fn narrowing_rounds_to_the_nearest_once() {
    for (dtype, bits) in [(DType::F16, 10), (DType::BF16, 7), (DType::F8E5M2, 2), (DType::F8E4M3FN, 3)] {
        let unit = 2f64.powi(-bits);
        for (x, want) in [
            (1.0 + 0.5 * unit, 1.0),
            (1.0 + 0.5 * unit + 1e-13, 1.0 + unit),
            (1.0 + 0.5 * unit - 1e-13, 1.0),
            (1.0 + 1.5 * unit, 1.0 + 2.0 * unit),
            (1.0 + 1.5 * unit - 1e-13, 1.0 + unit),
        ] {
            for sign in [1.0, -1.0] {
                let got = run(&Op::AsType { dtype }, &[&scalar(DType::F64, sign * x)]).unwrap();
                assert_eq!(floats(&got), [sign * want], "{dtype} {x:e}");
            }
        }
    }
    // Integers are rounded once too: f32 would make a tie of this one.
    let near_tie = (1i64 << 40) + (1 << 32) + 1;
    let got = run(&Op::AsType { dtype: DType::BF16 }, &[&vector(DType::S64, &[near_tie])]).unwrap();
    assert_eq!(floats(&got), [((1i64 << 40) + (1i64 << 33)) as f64]);
}

#[test]
fn bits_are_kept_by_bitcasts() {
    let x = vector(DType::F32, &[1.0, -2.0]);
    let got = run(&Op::Bitcast { dtype: DType::U32 }, &[&x]).unwrap();
    assert_eq!(integers(&got), [0x3F80_0000, 0xC000_0000]);
    let small = vector(DType::S4, &[-1i64, 7, -8]);
    let got = run(&Op::Bitcast { dtype: DType::U4 }, &[&small]).unwrap();
    assert_eq!(integers(&got), [15, 7, 8]);
    let back = run(&Op::Bitcast { dtype: DType::S4 }, &[&got]).unwrap();
    assert_eq!(integers(&back), [-1, 7, -8]);
}

#[test]
fn bytes_of_narrow_integers_are_brought_into_range() {
    for (dtype, want) in [
        (DType::U2, [0, 3, 2, 3]),
        (DType::S2, [0, -1, -2, -1]),
        (DType::U4, [0, 7, 10, 15]),
        (DType::S4, [0, 7, -6, -1]),
    ] {
        let x = place(TensorType::new(dtype, Shape::new(&[4])).unwrap(), vec![0x00, 0x07, 0xAA, 0xFF]);
        let sum = run(&Op::AsType { dtype: DType::S32 }, &[&x]).unwrap();
        assert_eq!(integers(&sum), want, "{dtype}");
    }
}
