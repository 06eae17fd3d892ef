//! Every op of values, of every type that has it, beside plain Rust.

use super::*;

/// `min` and `max` as the IR has them.
macro_rules! ordered {
    ($type:ident) => {
        binary::<$type, $type>(Op::Min, |a, b| {
            if a.is_nan() || b.is_nan() {
                $type::NAN
            } else if a < b {
                a
            } else {
                b
            }
        });
        binary::<$type, $type>(Op::Max, |a, b| {
            if a.is_nan() || b.is_nan() {
                $type::NAN
            } else if a > b {
                a
            } else {
                b
            }
        });
    };
}

macro_rules! floats {
    ($name:ident, $type:ident) => {
        #[test]
        fn $name() {
            unary::<$type, $type>(Op::Sqrt, |a| a.sqrt());
            unary::<$type, $type>(Op::Floor, |a| a.floor());
            unary::<$type, $type>(Op::Ceil, |a| a.ceil());
            unary::<$type, $type>(Op::Trunc, |a| a.trunc());
            unary::<$type, $type>(Op::Not, |a| $type::from_bits(!a.to_bits()));
            binary::<$type, $type>(Op::Add, |a, b| a + b);
            binary::<$type, $type>(Op::Sub, |a, b| a - b);
            binary::<$type, $type>(Op::Mul, |a, b| a * b);
            binary::<$type, $type>(Op::Div, |a, b| a / b);
            ordered!($type);
            binary::<$type, $type>(Op::And, |a, b| $type::from_bits(a.to_bits() & b.to_bits()));
            binary::<$type, $type>(Op::Or, |a, b| $type::from_bits(a.to_bits() | b.to_bits()));
            binary::<$type, $type>(Op::Xor, |a, b| $type::from_bits(a.to_bits() ^ b.to_bits()));
            binary::<$type, $type>(Op::AndNot, |a, b| $type::from_bits(a.to_bits() & !b.to_bits()));
            binary::<$type, Flag>(Op::Compare(Cmp::Eq), |a, b| Flag(a == b));
            binary::<$type, Flag>(Op::Compare(Cmp::Ne), |a, b| Flag(a != b));
            binary::<$type, Flag>(Op::Compare(Cmp::Lt), |a, b| Flag(a < b));
            binary::<$type, Flag>(Op::Compare(Cmp::Le), |a, b| Flag(a <= b));
            ternary::<$type, $type>(Op::Fma, |a, b, c| a.mul_add(b, c));
            ternary::<$type, $type>(Op::Fnma, |a, b, c| (-a).mul_add(b, c));
            ternary::<$type, $type>(Op::Flip, |a, b, c| {
                $type::from_bits(a.to_bits() ^ b.to_bits() & c.to_bits())
            });
            ternary::<Flag, $type>(Op::Select, |a, b, c| if a.0 { b } else { c });
        }
    };
}

floats!(f32_ops, f32);
floats!(f64_ops, f64);

macro_rules! integers {
    ($name:ident, $signed:ident, $unsigned:ident) => {
        #[test]
        fn $name() {
            const WIDTH: u32 = $unsigned::BITS;
            unary::<$unsigned, $unsigned>(Op::Not, |a| !a);
            unary::<$unsigned, $unsigned>(Op::PopCount, |a| a.count_ones() as $unsigned);
            unary::<$unsigned, $unsigned>(Op::LeadingZeros, |a| a.leading_zeros() as $unsigned);
            binary::<$unsigned, $unsigned>(Op::Add, |a, b| a.wrapping_add(b));
            binary::<$unsigned, $unsigned>(Op::Sub, |a, b| a.wrapping_sub(b));
            binary::<$unsigned, $unsigned>(Op::Mul, |a, b| a.wrapping_mul(b));
            binary::<$signed, $signed>(Op::DivS, |a, b| if b == 0 { -1 } else { a.wrapping_div(b) });
            binary::<$signed, $signed>(Op::RemS, |a, b| if b == 0 { a } else { a.wrapping_rem(b) });
            binary::<$unsigned, $unsigned>(Op::DivU, |a, b| if b == 0 { $unsigned::MAX } else { a / b });
            binary::<$unsigned, $unsigned>(Op::RemU, |a, b| if b == 0 { a } else { a % b });
            binary::<$signed, $signed>(Op::Min, |a, b| a.min(b));
            binary::<$signed, $signed>(Op::Max, |a, b| a.max(b));
            binary::<$unsigned, $unsigned>(Op::MinU, |a, b| a.min(b));
            binary::<$unsigned, $unsigned>(Op::MaxU, |a, b| a.max(b));
            binary::<$unsigned, $unsigned>(Op::And, |a, b| a & b);
            binary::<$unsigned, $unsigned>(Op::Or, |a, b| a | b);
            binary::<$unsigned, $unsigned>(Op::Xor, |a, b| a ^ b);
            binary::<$unsigned, $unsigned>(Op::AndNot, |a, b| a & !b);
            let by = |b: $unsigned| u32::try_from(b).unwrap_or(u32::MAX);
            binary::<$unsigned, $unsigned>(Op::Shl, |a, b| a.checked_shl(by(b)).unwrap_or(0));
            binary::<$unsigned, $unsigned>(Op::Shr, |a, b| a.checked_shr(by(b)).unwrap_or(0));
            binary::<$unsigned, $unsigned>(Op::Sar, |a, b| {
                let sign = if (a as $signed) < 0 { $unsigned::MAX } else { 0 };
                (a as $signed).checked_shr(by(b)).map_or(sign, |shifted| shifted as $unsigned)
            });
            for by in [0, 1, 3, WIDTH / 2, WIDTH - 1] {
                unary::<$unsigned, $unsigned>(Op::ShlBy(by as u8), |a| a << by);
                unary::<$unsigned, $unsigned>(Op::ShrBy(by as u8), |a| a >> by);
                unary::<$signed, $signed>(Op::SarBy(by as u8), |a| a >> by);
                unary::<$unsigned, $unsigned>(Op::RotBy(by as u8), |a| a.rotate_left(by));
            }
            binary::<$unsigned, Flag>(Op::Compare(Cmp::Eq), |a, b| Flag(a == b));
            binary::<$unsigned, Flag>(Op::Compare(Cmp::Ne), |a, b| Flag(a != b));
            binary::<$signed, Flag>(Op::Compare(Cmp::Lt), |a, b| Flag(a < b));
            binary::<$signed, Flag>(Op::Compare(Cmp::Le), |a, b| Flag(a <= b));
            binary::<$unsigned, Flag>(Op::Compare(Cmp::LtU), |a, b| Flag(a < b));
            binary::<$unsigned, Flag>(Op::Compare(Cmp::LeU), |a, b| Flag(a <= b));
            binary::<$unsigned, Flag>(Op::Test, |a, b| Flag(a & b != 0));
            ternary::<$unsigned, $unsigned>(Op::Flip, |a, b, c| a ^ b & c);
            ternary::<Flag, $unsigned>(Op::Select, |a, b, c| if a.0 { b } else { c });
        }
    };
}

integers!(i8_ops, i8, u8);
integers!(i16_ops, i16, u16);
integers!(i32_ops, i32, u32);
integers!(i64_ops, i64, u64);

#[test]
fn predicate_ops() {
    unary::<Flag, Flag>(Op::Not, |a| Flag(!a.0));
    binary::<Flag, Flag>(Op::And, |a, b| Flag(a.0 & b.0));
    binary::<Flag, Flag>(Op::Or, |a, b| Flag(a.0 | b.0));
    binary::<Flag, Flag>(Op::Xor, |a, b| Flag(a.0 ^ b.0));
    binary::<Flag, Flag>(Op::AndNot, |a, b| Flag(a.0 & !b.0));
    binary::<Flag, Flag>(Op::Compare(Cmp::Eq), |a, b| Flag(a.0 == b.0));
    binary::<Flag, Flag>(Op::Compare(Cmp::Ne), |a, b| Flag(a.0 != b.0));
    binary::<Flag, Flag>(Op::Test, |a, b| Flag(a.0 & b.0));
    ternary::<Flag, Flag>(Op::Flip, |a, b, c| Flag(a.0 ^ (b.0 & c.0)));
    ternary::<Flag, Flag>(Op::Select, |a, b, c| if a.0 { b } else { c });
}

/// `a * 2^b` by hand: the fraction is shifted as an integer, and what is shifted out is rounded, ties to
/// even.
fn scaled(a: f64, b: f64, fraction_bits: i64, least_exponent: i64, most_exponent: i64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if b.is_infinite() {
        return if b > 0.0 { a * f64::INFINITY } else { a * 0.0 };
    }
    if a == 0.0 || a.is_infinite() {
        return a;
    }
    // a = fraction * 2^exponent, of 53 bits with the first one set.
    let bits = a.abs().to_bits();
    let (mut fraction, mut exponent) = match bits >> 52 {
        0 => (bits, -1074),
        exponent => (bits & ((1 << 52) - 1) | 1 << 52, exponent as i64 - 1075),
    };
    while fraction >> 52 == 0 {
        fraction <<= 1;
        exponent -= 1;
    }
    exponent += b.floor().clamp(-10_000.0, 10_000.0) as i64;
    // The exponent of the last bit that the result keeps.
    let last = (exponent + 52 - fraction_bits).max(least_exponent - fraction_bits);
    let dropped = last - exponent;
    let mut kept = fraction;
    if dropped > 0 {
        kept = if dropped > 60 { 0 } else { fraction >> dropped };
        let (rest, half) =
            if dropped > 60 { (0, 1) } else { (fraction - (kept << dropped), 1 << (dropped - 1)) };
        if rest > half || rest == half && kept & 1 == 1 {
            kept += 1;
        }
        exponent = last;
    }
    let top = 63 - i64::from(kept.leading_zeros()) + exponent;
    let magnitude = if kept != 0 && top > most_exponent {
        f64::INFINITY
    } else {
        // Exact: the result is one of f64.
        let half = exponent / 2;
        kept as f64 * 2_f64.powi(half as i32) * 2_f64.powi((exponent - half) as i32)
    };
    magnitude.copysign(a)
}

#[test]
fn scale_rounds_once() {
    let distances =
        [-3000.0, -1100.0, -1074.0, -1023.0, -1022.0, -970.0, -969.0, -300.0, -149.0, -127.0, -54.0];
    let distances =
        distances.into_iter().chain([-53.0, -24.0, -2.0, -1.0, 0.0, 1.0, 5.0, 127.0, 128.0, 276.0]);
    let distances: Vec<f64> = distances
        .chain([277.0, 1023.0, 1024.0, 2000.0, 2098.0, 2100.0, 1e30, -1e30])
        .chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN])
        .collect();
    let mut random = Random(5);
    let close = |operand: f64| (-1080..1080).step_by(7).map(move |by| [operand, f64::from(by)]);
    let mut doubles: Vec<[f64; 2]> = values::<f64>()
        .into_iter()
        .flat_map(|a| distances.iter().map(move |&b| [a, b]))
        .chain(values::<f64>().into_iter().flat_map(close))
        .collect();
    for _ in 0..2000 {
        // The result is often close to the least numbers.
        let a = f64::from_bits(random.next());
        let exponent = (a.to_bits() >> 52 & 0x7FF) as i64 - 1023;
        doubles.push([a, (-exponent - 1010 - random.below(70) as i64) as f64]);
    }
    let singles: Vec<[f32; 2]> = values::<f32>()
        .into_iter()
        .flat_map(|a| distances.iter().map(move |&b| [a, b as f32]))
        .chain((0..4000).map(|_| {
            let a = f32::from_bits(random.next() as u32);
            let exponent = (a.to_bits() >> 23 & 0xFF) as i64 - 127;
            [a, (-exponent - 120 - random.below(35) as i64) as f32]
        }))
        .collect();
    let make = |b: &mut Builder, args: [Val; 2]| b.op(Op::Scale, args);
    let doubles: Vec<[u64; 2]> = doubles.iter().map(|pair| pair.map(f64::to_bits)).collect();
    let singles: Vec<[u64; 2]> = singles.iter().map(|pair| pair.map(|x| x.to_bits().into())).collect();
    at_every_level(|| {
        check::<f64, f64, 2>([Elem::F64; 2], &doubles, make, Some(Op::Scale), |args| {
            let [a, b] = args.map(f64::from_bits);
            scaled(a, b, 52, -1022, 1023)
        });
        check::<f32, f32, 2>([Elem::F32; 2], &singles, make, Some(Op::Scale), |args| {
            let [a, b] = args.map(|bits| f64::from(f32::from_bits(bits as u32)));
            scaled(a, b, 23, -126, 127) as f32
        });
    });
}
