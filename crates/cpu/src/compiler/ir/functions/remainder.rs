//! The remainder of truncated division, which is exact.

use super::super::{Conv, Op, Val};
use super::floats::Floats;

/// The remainder of `x` by `y`, with the sign of `x`; NaN for infinite `x`, for `y = 0` and for NaN.
///
/// Where the quotient of the magnitudes is below half of what counts integers, its rounding moves it by less than one,
/// and never beyond an integer that it would have been cut to but one: `q` is the whole quotient, or, where it was
/// rounded up to an integer, one more. Then `x - q y` is a multiple of the last bit of `y`, and less than `y` in
/// magnitude, so that the fused product is exact; and so is the correction by `y`. Larger quotients are reduced step by
/// step, by `y` times powers of two.
pub(super) fn remainder(m: &mut Floats, x: Val, y: Val) -> Val {
    let (a, b) = (m.abs(x), m.abs(y));
    let quotient = m.div(a, b);
    let near = step(m, a, b);
    // An infinite divisor would give no number.
    let is_less = m.lt(a, b);
    let near = m.select(is_less, a, near);
    let limit = (1u64 << (m.mantissa_width() - 1)) as f64;
    let is_near = m.lt(quotient, limit);
    let far = m.not(is_near);
    let rest = m.unless_any(far, near, |m| {
        let rest = reduced(m, a, b);
        // Of finite numbers by those above 0.
        let is_finite = m.lt(a, f64::INFINITY);
        let is_above = m.lt(0.0, b);
        let is_number = m.both(is_finite, is_above);
        let rest = m.select(is_number, rest, f64::NAN);
        m.select(far, rest, near)
    });
    m.flipped(rest, x)
}

/// `a - q b` for the whole quotient `q` of numbers above 0, if that is small enough.
fn step(m: &mut Floats, a: Val, b: Val) -> Val {
    let quotient = m.div(a, b);
    let whole = m.ir.op(Op::Trunc, [quotient]);
    let rest = m.fnma(whole, b, a);
    let is_negative = m.lt(rest, 0.0);
    let raised = m.add(rest, b);
    m.select(is_negative, raised, rest)
}

/// The remainder of any finite numbers above 0.
fn reduced(m: &mut Floats, a: Val, b: Val) -> Val {
    let digits = f64::from(m.mantissa_width());
    let lowest = exponent(m, b);
    let (_, carries) = m.ir.begin_loop(None, &[(a, m.ir.ty(a).is_vector || m.ir.ty(b).is_vector)]);
    let rest = carries[0];
    let (is_left, is_finite) = (m.le(b, rest), m.lt(rest, f64::INFINITY));
    let (is_left, is_above) = (m.both(is_left, is_finite), m.lt(0.0, b));
    let is_left = m.both(is_left, is_above);
    let goes_on = if m.ir.ty(is_left).is_vector { m.ir.any(is_left) } else { is_left };
    m.ir.while_(goes_on);
    // The quotient by the raised divisor has a few bits less than a number has.
    let highest = exponent(m, rest);
    let apart = m.sub(highest, lowest);
    let power = m.sub(apart, digits - 2.0);
    let power = m.at_least(0.0, power);
    // In two steps, neither of which is far.
    let half = m.mul(power, 0.5);
    let half = m.ir.op(Op::Floor, [half]);
    let other = m.sub(power, half);
    let raised = m.ir.op(Op::Scale, [b, half]);
    let raised = m.ir.op(Op::Scale, [raised, other]);
    let next = step(m, rest, raised);
    let next = m.select(is_left, next, rest);
    m.ir.end_loop(&[(rest, next)]);
    rest
}

/// The exponent of a number above 0, and a constant more.
fn exponent(m: &mut Floats, x: Val) -> Val {
    let (width, least) = match m.mantissa_width() {
        23 => (23, f64::from(f32::MIN_POSITIVE)),
        width => (width, f64::MIN_POSITIVE),
    };
    let is_subnormal = m.lt(x, least);
    let raised = m.mul(x, (1u64 << width) as f64);
    let normal = m.select(is_subnormal, raised, x);
    let bits = m.bits(normal);
    let biased = m.shr(bits, width);
    let number = m.ir.convert(Conv::FloatOfS, m.elem, biased);
    let more = m.select(is_subnormal, f64::from(width), 0.0);
    m.sub(number, more)
}
