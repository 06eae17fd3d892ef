//! Functions that are computed in f32, with twice the lanes of f64. Their errors are within 2 ulp.

pub(super) mod arc;
pub(super) mod exp;
pub(super) mod log;
pub(super) mod power;
pub(super) mod trig;

use super::super::{Conv, Elem, Op, Val};
use super::floats::Floats;

/// `(m, k)` with `x = m * 2^k` and `m` between `sqrt(1/2)` and `sqrt(2)`, for positive normal `x`. The
/// exponent is a float.
fn split(m: &mut Floats, x: Val) -> (Val, Val) {
    // The bits of sqrt(1/2). After their subtraction the exponent is that of the nearest power of two.
    const ROOT: u32 = 0x3F35_04F3;
    let bits = m.bits(x);
    let moved = m.plus(bits, ROOT.wrapping_neg().into());
    let mantissa = m.masked(moved, 0x007F_FFFF);
    let mantissa = m.plus(mantissa, ROOT.into());
    let mantissa = m.of_bits(mantissa);
    let exponent = m.ir.op(Op::SarBy(23), [moved]);
    (mantissa, m.ir.convert(Conv::FloatOfS, Elem::F32, exponent))
}

/// As [`split`], also for positive subnormal numbers.
fn split_any(m: &mut Floats, x: Val) -> (Val, Val) {
    let small = m.lt(x, f32::MIN_POSITIVE);
    let raised = m.mul(x, 16_777_216.0);
    let x = m.select(small, raised, x);
    let (mantissa, k) = split(m, x);
    let lower = m.sub(k, 24.0);
    (mantissa, m.select(small, lower, k))
}
