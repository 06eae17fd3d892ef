//! What each op gives for one lane, by Rust's own arithmetic.

use half::f16;

use super::super::super::mir::{Cmp, Conv, Elem, Op};

/// The low bits of an element.
pub(super) fn low(elem: Elem, bits: u64) -> u64 {
    bits & u64::MAX >> (64 - 8 * elem.bytes())
}

/// An integer by its sign.
pub(super) fn signed(elem: Elem, bits: u64) -> i64 {
    let spare = 64 - 8 * elem.bytes();
    (bits << spare) as i64 >> spare
}

fn f32(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn f64(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The bits of a mask.
fn mask(elem: Elem, is_set: bool) -> u64 {
    if is_set { low(elem, u64::MAX) } else { 0 }
}

/// Whether two results are the same; all NaN are.
pub(super) fn is_same(elem: Elem, a: u64, b: u64) -> bool {
    let are_nan = match elem {
        Elem::F32 => f32(a).is_nan() && f32(b).is_nan(),
        Elem::F64 => f64(a).is_nan() && f64(b).is_nan(),
        Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => false,
    };
    a == b || are_nan
}

/// Whether both bits are those of a half that is NaN.
pub(super) fn are_nan_halves(a: u64, b: u64) -> bool {
    f16::from_bits(a as u16).is_nan() && f16::from_bits(b as u16).is_nan()
}

/// Floats as `f64`, which holds every `f32`.
fn float(elem: Elem, bits: u64) -> f64 {
    if elem == Elem::F32 { f32(bits).into() } else { f64(bits) }
}

/// The result of floats by either type.
fn by(elem: Elem, single: impl Fn() -> f32, double: impl Fn() -> f64) -> u64 {
    if elem == Elem::F32 { single().to_bits().into() } else { double().to_bits() }
}

/// The result of a lane-wise op.
pub(super) fn lane(op: Op, elem: Elem, [a, b, c]: [u64; 3]) -> u64 {
    let (sa, sb) = (signed(elem, a), signed(elem, b));
    let is_float = elem.is_float();
    let width = 8 * elem.bytes() as u64;
    let floats = |single: fn(f32, f32) -> f32, double: fn(f64, f64) -> f64| {
        by(elem, || single(f32(a), f32(b)), || double(f64(a), f64(b)))
    };
    let result = match op {
        Op::Not | Op::MaskNot => !a,
        Op::Sqrt => floats(|a, _| a.sqrt(), |a, _| a.sqrt()),
        Op::Floor => floats(|a, _| a.floor(), |a, _| a.floor()),
        Op::Ceil => floats(|a, _| a.ceil(), |a, _| a.ceil()),
        Op::Trunc => floats(|a, _| a.trunc(), |a, _| a.trunc()),
        Op::Nearest => floats(|a, _| a.round_ties_even(), |a, _| a.round_ties_even()),
        Op::PopCount => a.count_ones().into(),
        Op::LeadingZeros => u64::from(a.leading_zeros()) - (64 - width),
        Op::Add if is_float => floats(|a, b| a + b, |a, b| a + b),
        Op::Sub if is_float => floats(|a, b| a - b, |a, b| a - b),
        Op::Mul if is_float => floats(|a, b| a * b, |a, b| a * b),
        Op::Div => floats(|a, b| a / b, |a, b| a / b),
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Min if is_float => {
            if float(elem, a) < float(elem, b) {
                a
            } else {
                b
            }
        }
        Op::Max if is_float => {
            if float(elem, a) > float(elem, b) {
                a
            } else {
                b
            }
        }
        Op::Min => sa.min(sb) as u64,
        Op::Max => sa.max(sb) as u64,
        Op::MinU => a.min(b),
        Op::MaxU => a.max(b),
        Op::And | Op::MaskAnd => a & b,
        Op::Or | Op::MaskOr => a | b,
        Op::Xor | Op::MaskXor => a ^ b,
        Op::AndNot | Op::MaskAndNot => a & !b,
        Op::Shl if b >= width => 0,
        Op::Shl => a << b,
        Op::Shr if b >= width => 0,
        Op::Shr => a >> b,
        Op::Sar => (sa >> b.min(width - 1)) as u64,
        Op::ShlBy(n) => a << n,
        Op::ShrBy(n) => a >> n,
        Op::SarBy(n) => (sa >> n) as u64,
        Op::RotBy(0) => a,
        Op::RotBy(n) => a << n | a >> (width - u64::from(n)),
        Op::Fma => by(elem, || f32(a).mul_add(f32(b), f32(c)), || f64(a).mul_add(f64(b), f64(c))),
        Op::Fnma => by(elem, || (-f32(a)).mul_add(f32(b), f32(c)), || (-f64(a)).mul_add(f64(b), f64(c))),
        Op::Flip => a ^ b & c,
        Op::Compare(cmp) => mask(elem, compare(cmp, elem, a, b)),
        Op::Test => mask(elem, a & b != 0),
        Op::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Op::Convert(conv, from) => convert(conv, from, elem, a),
        Op::MaskResize(_) => mask(elem, a != 0),
        Op::Unzip(_) | Op::Zip(_) | Op::Fold { .. } | Op::Reverse | Op::Permute(_) => {
            unreachable!("{op:?} is not done lane by lane")
        }
        Op::Scale | Op::MaskFirst | Op::MaskSplat | Op::Const(_) | Op::Splat | Op::Upper(_) | Op::Load => {
            unreachable!("{op:?} is not done lane by lane")
        }
        Op::LoadSplat | Op::LoadPart | Op::Store | Op::StoreStreaming | Op::StorePart | Op::Gather(_) => {
            unreachable!("{op:?} is not done lane by lane")
        }
        Op::Number(_) | Op::Argument(_) | Op::AddNumber(_) | Op::MulNumber(_) | Op::GeneralAdd => {
            unreachable!("{op:?} is not done lane by lane")
        }
        Op::GeneralSub | Op::GeneralMul | Op::GeneralMin | Op::GeneralMax => {
            unreachable!("{op:?} is not done lane by lane")
        }
        Op::ToGeneral | Op::OfGeneral | Op::Loop(_) | Op::EndLoop(..) | Op::EndLoopAlways(_) | Op::While => {
            unreachable!("{op:?} is not done lane by lane")
        }
        Op::WhileGeneral(_)
        | Op::If
        | Op::IfGeneral(_)
        | Op::Else
        | Op::EndIf(_)
        | Op::Apply(_)
        | Op::Call(..) => {
            unreachable!("{op:?} is not done lane by lane")
        }
    };
    low(elem, result)
}

fn compare(cmp: Cmp, elem: Elem, a: u64, b: u64) -> bool {
    let (fa, fb) = (float(elem, a), float(elem, b));
    let (sa, sb) = (signed(elem, a), signed(elem, b));
    let is_float = elem.is_float();
    match cmp {
        Cmp::Eq => {
            if is_float {
                fa == fb
            } else {
                a == b
            }
        }
        Cmp::Ne => {
            if is_float {
                fa != fb
            } else {
                a != b
            }
        }
        Cmp::Lt => {
            if is_float {
                fa < fb
            } else {
                sa < sb
            }
        }
        Cmp::Le => {
            if is_float {
                fa <= fb
            } else {
                sa <= sb
            }
        }
        Cmp::LtU => a < b,
        Cmp::LeU => a <= b,
    }
}

fn convert(conv: Conv, from: Elem, to: Elem, a: u64) -> u64 {
    let x = float(from, a);
    match conv {
        Conv::ZeroExtend | Conv::Truncate | Conv::Bitcast => a,
        Conv::SignExtend => signed(from, a) as u64,
        Conv::FloatOfS => by(to, || signed(from, a) as f32, || signed(from, a) as f64),
        Conv::FloatOfU => by(to, || a as f32, || a as f64),
        // Casts truncate, saturate and give 0 for NaN. All results of narrower types are exact in f64.
        Conv::ToS => match to.bytes() {
            1 => x as i8 as u64,
            2 => x as i16 as u64,
            4 => x as i32 as u64,
            _ => x as i64 as u64,
        },
        Conv::ToU => match to.bytes() {
            1 => x as u8 as u64,
            2 => x as u16 as u64,
            4 => x as u32 as u64,
            _ => x as u64,
        },
        Conv::Float => by(to, || x as f32, || x),
        Conv::OfHalf => f16::from_bits(a as u16).to_f32().to_bits().into(),
        Conv::ToHalf => f16::from_f32(f32(a)).to_bits().into(),
        Conv::OfBit if to.is_float() => by(to, || (a & 1) as f32, || (a & 1) as f64),
        Conv::OfBit => a & 1,
        Conv::ToIndex | Conv::OfIndex => unreachable!("{conv:?} is no conversion of vectors"),
    }
}

/// Elements at which ops are likely to go wrong.
pub(super) fn special(elem: Elem) -> Vec<u64> {
    let width = 8 * elem.bytes() as u32;
    let floats = |doubles: &[f64]| doubles.iter().map(|&x| by(elem, || x as f32, || x)).collect::<Vec<_>>();
    if elem.is_float() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            0.499_999_97,
            127.5,
            128.0,
            -128.5,
            255.0,
            256.0,
            300.0,
            32767.5,
            65535.9,
            -32769.0,
            8_388_609.0,
            2_147_483_520.0,
            2_147_483_648.0,
            -2_147_483_648.0,
            4_294_967_295.0,
            4_294_967_296.0,
            9.2e18,
            9_223_372_036_854_775_808.0,
            -9_223_372_036_854_775_808.0,
            1.8e19,
            18_446_744_073_709_551_616.0,
            1e30,
            -1e30,
            3.4e38,
            1e-40,
            -1e-45,
            65504.0,
            65519.9,
            65520.0,
            6e-8,
            3e-8,
            2.98e-8,
            6.1e-5,
            f64::MIN_POSITIVE,
            4e-310,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            -f64::NAN,
        ];
        return floats(&numbers);
    }
    let top = 1_u64 << (width - 1);
    let numbers = [
        0,
        1,
        2,
        3,
        7,
        8,
        9,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        127,
        128,
        129,
        192,
        255,
        256,
        257,
        511,
        0x8000,
        0x7fff,
        0x100_0001,
        0x1_0000_0000,
        0xffff_ffff,
        0x7fff_ffff,
        0x8000_0000,
        0x100_0000_0001_0001,
        top,
        top - 1,
        top + 1,
        u64::MAX,
        u64::MAX - 1,
        0x7fff_ff40_0000_0001,
        0x7c00,
        0xfc00,
        0x7e00,
        0x3ff,
        0x400,
    ];
    numbers.iter().map(|&bits| low(elem, bits)).collect()
}
