//! Every conversion between types, beside Rust's `as`.

use super::*;

/// Integers to wider and narrower ones.
macro_rules! between {
    ($($signed:ident $unsigned:ident => $($wide_signed:ident $wide:ident),*;)*) => {$($(
        unary::<$unsigned, $wide>(Op::Convert(Conv::ZeroExtend), |a| a as $wide);
        unary::<$signed, $wide_signed>(Op::Convert(Conv::SignExtend), |a| a as $wide_signed);
        unary::<$wide, $unsigned>(Op::Convert(Conv::Truncate), |a| a as $unsigned);
    )*)*};
}

#[test]
fn integers_to_integers() {
    between! {
        i8 u8 => i16 u16, i32 u32, i64 u64;
        i16 u16 => i32 u32, i64 u64;
        i32 u32 => i64 u64;
    }
}

macro_rules! with_floats {
    ($($float:ident: $($signed:ident $unsigned:ident),*;)*) => {$($(
        unary::<$signed, $float>(Op::Convert(Conv::FloatOfS), |a| a as $float);
        unary::<$unsigned, $float>(Op::Convert(Conv::FloatOfU), |a| a as $float);
        unary::<$float, $signed>(Op::Convert(Conv::ToS), |a| a as $signed);
        unary::<$float, $unsigned>(Op::Convert(Conv::ToU), |a| a as $unsigned);
    )*)*};
}

#[test]
fn integers_and_floats() {
    with_floats! {
        f32: i8 u8, i16 u16, i32 u32, i64 u64;
        f64: i8 u8, i16 u16, i32 u32, i64 u64;
    }
}

#[test]
fn floats_to_floats() {
    unary::<f32, f64>(Op::Convert(Conv::Float), f64::from);
    unary::<f64, f32>(Op::Convert(Conv::Float), |a| a as f32);
}

#[test]
fn bits_of_floats() {
    unary::<f32, u32>(Op::Convert(Conv::Bitcast), f32::to_bits);
    unary::<u32, f32>(Op::Convert(Conv::Bitcast), f32::from_bits);
    unary::<f64, u64>(Op::Convert(Conv::Bitcast), f64::to_bits);
    unary::<u64, f64>(Op::Convert(Conv::Bitcast), f64::from_bits);
}

#[test]
fn predicates_to_numbers() {
    unary::<Flag, u8>(Op::Convert(Conv::OfBit), |a| a.0.into());
    unary::<Flag, u16>(Op::Convert(Conv::OfBit), |a| a.0.into());
    unary::<Flag, u32>(Op::Convert(Conv::OfBit), |a| a.0.into());
    unary::<Flag, u64>(Op::Convert(Conv::OfBit), |a| a.0.into());
    unary::<Flag, f32>(Op::Convert(Conv::OfBit), |a| f32::from(u8::from(a.0)));
    unary::<Flag, f64>(Op::Convert(Conv::OfBit), |a| f64::from(u8::from(a.0)));
}

/// The value of a half, by its definition.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3FF));
    let magnitude = match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

#[test]
fn halves() {
    // All halves, a row longer than several blocks.
    let all: Vec<[u64; 1]> = (0..=u16::MAX).map(|bits| [bits.into()]).collect();
    let make = |b: &mut Builder, [a]: [Val; 1]| b.convert(Conv::OfHalf, Elem::F32, a);
    let op = Some(Op::Convert(Conv::OfHalf));
    check::<u16, f32, 1>([Elem::I16], &all, make, op, |[bits]| half(bits as u16));

    // Each half, and numbers between it and the next one: the middle goes to the even one.
    let make = |b: &mut Builder, [a]: [Val; 1]| b.convert(Conv::ToHalf, Elem::I16, a);
    let op = Some(Op::Convert(Conv::ToHalf));
    let mut operands = Vec::new();
    let mut halves = Vec::new();
    let mut add = |x: f32, bits: u16| {
        for (x, bits) in [(x, bits), (-x, bits | 0x8000)] {
            operands.push([u64::from(x.to_bits())]);
            halves.push(bits);
        }
    };
    for bits in 0..0x7C00_u16 {
        // The next one after the greatest would be 65536, from whose middle on all is infinite.
        let next = if bits == 0x7BFF { 65_536.0 } else { half(bits + 1) };
        let middle = (half(bits) + next) / 2.0;
        add(half(bits), bits);
        add(middle, bits + (bits & 1));
        add(f32::from_bits(middle.to_bits() - 1), bits);
        add(f32::from_bits(middle.to_bits() + 1), bits + 1);
    }
    add(f32::INFINITY, 0x7C00);
    add(f32::MAX, 0x7C00);
    add(f32::from_bits(1), 0);
    let expected: std::collections::HashMap<u64, u16> =
        operands.iter().zip(halves).map(|([x], bits)| (*x, bits)).collect();
    check::<f32, u16, 1>([Elem::F32], &operands, make, op, |[x]| expected[&x]);
    let nan = compute(Op::Convert(Conv::ToHalf), Elem::F32, Elem::I16, [f32::NAN.to_bits().into(), 0, 0]);
    assert!(half(nan.unwrap() as u16).is_nan());
}

#[test]
fn indices() {
    // Indices are scalars only.
    let convert = |conv, from, to, bits| compute(Op::Convert(conv), from, to, [bits, 0, 0]).unwrap();
    for x in values::<i64>() {
        for (elem, sign_extended) in [
            (Elem::I8, x as i8 as i64),
            (Elem::I16, x as i16 as i64),
            (Elem::I32, x as i32 as i64),
            (Elem::I64, x),
        ] {
            assert_eq!(convert(Conv::ToIndex, elem, Elem::Index, x as u64), sign_extended as u64);
            let mask = u64::MAX >> (64 - 8 * elem.bytes());
            assert_eq!(convert(Conv::OfIndex, Elem::Index, elem, x as u64), x as u64 & mask);
        }
    }
    assert_eq!(compute(Op::Add, Elem::Index, Elem::Index, [7, u64::MAX, 0]), Some(6));
    assert_eq!(compute(Op::Mul, Elem::Index, Elem::Index, [7, u64::MAX, 0]), Some(7_u64.wrapping_neg()));
    assert_eq!(compute(Op::Compare(Cmp::Lt), Elem::Index, Elem::Bit, [u64::MAX, 0, 0]), Some(1));
}

#[test]
fn only_ops_of_values_are_computed() {
    assert_eq!(compute(Op::Lane, Elem::I32, Elem::I32, [0; 3]), None);
    assert_eq!(compute(Op::Sqrt, Elem::I32, Elem::I32, [4, 0, 0]), None);
    assert_eq!(compute(Op::Convert(Conv::Bitcast), Elem::I32, Elem::F64, [4, 0, 0]), None);
    assert_eq!(compute(Op::Convert(Conv::Truncate), Elem::I32, Elem::I64, [4, 0, 0]), None);
}
