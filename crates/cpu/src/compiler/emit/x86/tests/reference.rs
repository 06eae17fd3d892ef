//! What ops mean, lane by lane, in scalar Rust.

use half::f16;

use super::harness::Random;
use crate::compiler::emit::mir::{Cmp, Conv, Elem, Op};

unsafe extern "C" {
    fn ldexp(x: f64, by: i32) -> f64;
    fn ldexpf(x: f32, by: i32) -> f32;
}

/// The low bits of a number.
pub(crate) fn low(bits: u64, elem: Elem) -> u64 {
    bits & (u64::MAX >> (64 - 8 * elem.bytes()))
}

/// An integer with its sign.
pub(crate) fn signed(bits: u64, elem: Elem) -> i64 {
    let unused = 64 - 8 * elem.bytes();
    (bits << unused) as i64 >> unused
}

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// An op of floats, for one of the two types.
macro_rules! float_op {
    ($float:ty, $of:ident, $scale:ident, $op:expr, $args:expr) => {{
        let [a, b, c] = $args.map($of);
        let bits = |x: $float| u64::from(x.to_bits());
        match $op {
            Op::Sqrt => bits(a.sqrt()),
            Op::Floor => bits(a.floor()),
            Op::Ceil => bits(a.ceil()),
            Op::Trunc => bits(a.trunc()),
            Op::Nearest => bits(a.round_ties_even()),
            Op::Add => bits(a + b),
            Op::Sub => bits(a - b),
            Op::Mul => bits(a * b),
            Op::Div => bits(a / b),
            Op::Min => bits(if a < b { a } else { b }),
            Op::Max => bits(if a > b { a } else { b }),
            Op::Fma => bits(a.mul_add(b, c)),
            Op::Fnma => bits((-a).mul_add(b, c)),
            // SAFETY: this is a function of numbers.
            Op::Scale => bits(unsafe { $scale(a, b.clamp(-10000.0, 10000.0) as i32) }),
            Op::Compare(Cmp::Eq) => (a == b).into(),
            Op::Compare(Cmp::Ne) => (a != b).into(),
            Op::Compare(Cmp::Lt) => (a < b).into(),
            Op::Compare(Cmp::Le) => (a <= b).into(),
            other => panic!("no reference for {other:?}"),
        }
    }};
}

/// The result of an op on a lane. Masks are 0 or 1.
pub(crate) fn lane(op: Op, elem: Elem, args: [u64; 3]) -> u64 {
    let [a, b, c] = args;
    match op {
        Op::Not => return low(!a, elem),
        Op::And => return a & b,
        Op::Or => return a | b,
        Op::Xor => return a ^ b,
        Op::AndNot => return a & !b,
        Op::Flip => return a ^ (b & c),
        Op::Select => return if a != 0 { b } else { c },
        Op::Convert(conv, from) => return convert(conv, from, elem, a),
        _ => {}
    }
    match elem {
        Elem::F32 => float_op!(f32, single, ldexpf, op, args),
        Elem::F64 => float_op!(f64, double, ldexp, op, args),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => integer(op, elem, a, b),
    }
}

fn integer(op: Op, elem: Elem, a: u64, b: u64) -> u64 {
    let width = 8 * elem.bytes() as u64;
    let (x, y) = (signed(a, elem), signed(b, elem));
    let result = match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Min => x.min(y) as u64,
        Op::Max => x.max(y) as u64,
        Op::MinU => a.min(b),
        Op::MaxU => a.max(b),
        Op::Shl => {
            if b < width {
                a << b
            } else {
                0
            }
        }
        Op::Shr => {
            if b < width {
                a >> b
            } else {
                0
            }
        }
        Op::Sar => (x >> b.min(width - 1)) as u64,
        Op::ShlBy(by) => a << by,
        Op::ShrBy(by) => a >> by,
        Op::SarBy(by) => (x >> by) as u64,
        Op::RotBy(0) => a,
        Op::RotBy(by) => a << by | a >> (width - u64::from(by)),
        Op::Compare(Cmp::Eq) => (a == b).into(),
        Op::Compare(Cmp::Ne) => (a != b).into(),
        Op::Compare(Cmp::Lt) => (x < y).into(),
        Op::Compare(Cmp::Le) => (x <= y).into(),
        Op::Compare(Cmp::LtU) => (a < b).into(),
        Op::Compare(Cmp::LeU) => (a <= b).into(),
        Op::Test => (a & b != 0).into(),
        other => panic!("no reference for {other:?}"),
    };
    low(result, elem)
}

fn convert(conv: Conv, from: Elem, to: Elem, a: u64) -> u64 {
    let x = signed(a, if from == Elem::Bit { Elem::I8 } else { from });
    let float = |single: f32, double: f64| {
        if to == Elem::F64 { double.to_bits() } else { single.to_bits().into() }
    };
    let is_double = from == Elem::F64;
    let result = match conv {
        Conv::ZeroExtend | Conv::Truncate | Conv::Bitcast => a,
        Conv::SignExtend => x as u64,
        Conv::FloatOfS => float(x as f32, x as f64),
        Conv::FloatOfU => float(a as f32, a as f64),
        Conv::ToS if is_double && to == Elem::I32 => double(a) as i32 as u64,
        Conv::ToS if is_double => double(a) as i64 as u64,
        Conv::ToS if to == Elem::I32 => single(a) as i32 as u64,
        Conv::ToS => single(a) as i64 as u64,
        Conv::ToU if is_double && to == Elem::I32 => (double(a) as u32).into(),
        Conv::ToU if is_double => double(a) as u64,
        Conv::ToU if to == Elem::I32 => (single(a) as u32).into(),
        Conv::ToU => single(a) as u64,
        Conv::Float if is_double => (double(a) as f32).to_bits().into(),
        Conv::Float => f64::from(single(a)).to_bits(),
        Conv::OfHalf => f16::from_bits(a as u16).to_f32().to_bits().into(),
        Conv::ToHalf => f16::from_f32(single(a)).to_bits().into(),
        Conv::OfBit if to.is_float() => float(a as f32, a as f64),
        Conv::OfBit => a,
        Conv::ToIndex | Conv::OfIndex => panic!("no reference for {conv:?}"),
    };
    low(result, to)
}

/// Whether two results are the same: all NaN are.
pub(crate) fn is_same(op: Op, elem: Elem, a: u64, b: u64) -> bool {
    let is_nan = |bits| match elem {
        Elem::F32 => single(bits).is_nan(),
        Elem::F64 => double(bits).is_nan(),
        Elem::I16 => op == Op::Convert(Conv::ToHalf, Elem::F32) && f16::from_bits(bits as u16).is_nan(),
        Elem::Bit | Elem::I8 | Elem::I32 | Elem::I64 | Elem::Index => false,
    };
    a == b || is_nan(a) && is_nan(b)
}

/// An operand: often one of those where something changes.
pub(crate) fn operand(random: &mut Random, op: Op, elem: Elem, source: usize) -> u64 {
    let any = random.next();
    if op == Op::Scale && source == 1 {
        let by = random.below(5000) as i32 - 2500;
        return match elem {
            Elem::F32 => ((by / 8) as f32).to_bits().into(),
            _ => f64::from(by).to_bits(),
        };
    }
    if matches!(op, Op::Shl | Op::Shr | Op::Sar) && source == 1 && any & 3 != 0 {
        return random.below(8 * elem.bytes() + 3) as u64;
    }
    let near = |power: i32| {
        let off = [0.0, 1.0, -1.0, 0.5, -0.5][random_index(any, 5)];
        let sign = if any >> 40 & 1 != 0 { -1.0 } else { 1.0 };
        sign * 2f64.powi(power) + off
    };
    let special = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5, -0.5, 1.5, 2.5];
    match elem {
        Elem::F32 => match any >> 60 {
            0..4 => (special[random_index(any, special.len())] as f32).to_bits().into(),
            4..8 => (near([7, 15, 23, 24, 31, 32, 53, 63, 64][random_index(any >> 20, 9)]) as f32)
                .to_bits()
                .into(),
            8..12 => {
                (f64::from((any >> 8) as i32) / 65536.0) as f32 as f64 as f32 as u32 as u64
                    | any & 0x3fff_ffff
            }
            _ => any >> 16 & 0xffff_ffff,
        },
        Elem::F64 => match any >> 60 {
            0..4 => special[random_index(any, special.len())].to_bits(),
            4..8 => near([24, 31, 32, 52, 53, 63, 64][random_index(any >> 20, 7)]).to_bits(),
            8..12 => ((any as i64) as f64 / 2f64.powi(random_index(any >> 7, 63) as i32)).to_bits(),
            _ => any,
        },
        Elem::Bit => any >> 60 & 1,
        Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => match any >> 60 {
            0..3 => low([0, 1, u64::MAX, u64::MAX >> (65 - 8 * elem.bytes())][random_index(any, 4)], elem),
            3..5 => 1 << (8 * elem.bytes() - 1),
            5..9 => low((any as i64 >> (any & 63)) as u64, elem),
            9..11 => low(any & 3, elem),
            11..13 => {
                // Next to the middle between singles, or doubles.
                let (bits, off) = if any & 1 == 0 { (25, 40) } else { (54, 11) };
                let middle = any >> (64 - bits) | 1 << (bits - 1) | 1;
                let shifted = middle << random_index(any >> 3, off);
                low(shifted.wrapping_add(any >> 1 & 3).wrapping_sub(1), elem)
            }
            _ => low(any.rotate_left(13), elem),
        },
    }
}

fn random_index(bits: u64, bound: usize) -> usize {
    ((bits >> 12) % bound as u64) as usize
}
