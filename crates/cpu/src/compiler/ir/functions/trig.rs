//! Sine, cosine and tangent in f64.
//!
//! The argument is reduced modulo a quadrant in three steps, all exact but the last, as in fdlibm (Sun
//! Microsystems, 1993). Arguments beyond [`LIMIT`] are rare: compiled code reduces them one by one.

use super::super::{Op, Rare, Val};
use super::floats::{Exponent, Floats};
use super::tables::{HALF_PI_1, HALF_PI_2, HALF_PI_3};

/// Up to this limit the number of quadrants has 20 bits, and its product with 33 bits is exact.
pub(super) const LIMIT: f64 = 1.0e6;

/// A reduced number: the remainder in a high and a low part, and the number of quadrants in the low bits.
struct Reduced {
    high: Val,
    low: Val,
    quadrants: Val,
}

fn reduce(m: &mut Floats, x: Val) -> Reduced {
    let Exponent { number: n, bits: quadrants } = m.exponent(x, std::f64::consts::FRAC_2_PI);
    let first = m.fnma(n, HALF_PI_1, x);
    let second = m.mul(n, HALF_PI_2);
    let near = m.sub(first, second);
    // Exact two-sum, after Knuth, The Art of Computer Programming 2 (1969).
    let back = m.sub(near, first);
    let lost = m.sub(near, back);
    let lost = m.sub(first, lost);
    let more = m.add(second, back);
    let lost = m.sub(lost, more);
    let rest = m.fnma(n, HALF_PI_3, lost);
    let high = m.add(near, rest);
    let low = m.sub(near, high);
    Reduced { high, low: m.add(low, rest), quadrants }
}

/// Sine of the remainder.
fn sin_rest(m: &mut Floats, r: &Reduced) -> Val {
    let z = m.mul(r.high, r.high);
    let cube = m.mul(z, r.high);
    let q = m.poly(z, m.precision.sin);
    let half = m.mul(0.5, z);
    let low = m.fnma(half, r.low, r.low);
    let tail = m.fma(cube, q, low);
    m.add(r.high, tail)
}

/// Cosine of the remainder.
fn cos_rest(m: &mut Floats, r: &Reduced) -> Val {
    let z = m.mul(r.high, r.high);
    let half = m.mul(0.5, z);
    let q = m.poly(z, m.precision.cos);
    let fourth = m.mul(z, z);
    let near = m.sub(1.0, half);
    let lost = m.sub(1.0, near);
    let lost = m.sub(lost, half);
    let low = m.mul(r.high, r.low);
    // The tail with the other sign.
    let tail = m.fnma(fourth, q, low);
    let tail = m.sub(lost, tail);
    m.add(near, tail)
}

/// Sine of the number plus `more` quadrants.
fn turned(m: &mut Floats, r: &Reduced, more: u64) -> Val {
    let quadrants = if more == 0 { r.quadrants } else { m.plus(r.quadrants, more) };
    let (sin, cos) = (sin_rest(m, r), cos_rest(m, r));
    let odd = m.has_bits(quadrants, 1);
    let value = m.select(odd, cos, sin);
    let sign = m.shl(quadrants, 62);
    let sign = m.of_bits(sign);
    m.flipped(value, sign)
}

/// The sine, up to the limit.
fn near_sin(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let r = reduce(m, magnitude);
    let sin = turned(m, &r, 0);
    m.flipped(sin, x)
}

/// The cosine, up to the limit.
fn near_cos(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let r = reduce(m, magnitude);
    turned(m, &r, 1)
}

/// The tangent, up to the limit.
fn near_tan(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let r = reduce(m, magnitude);
    let (sin, cos) = (sin_rest(m, &r), cos_rest(m, &r));
    let odd = m.has_bits(r.quadrants, 1);
    let above = m.select(odd, cos, sin);
    let below = m.select(odd, sin, cos);
    let ratio = m.div(above, below);
    let sign = m.shl(r.quadrants, 63);
    let sign = m.of_bits(sign);
    let tan = m.flipped(ratio, sign);
    m.flipped(tan, x)
}

/// `near`, which is right up to a limit, or what compiled code computes beyond it.
pub(super) fn or_far(m: &mut Floats, x: Val, limit: f64, near: Val, rare: Rare) -> Val {
    let magnitude = m.abs(x);
    let far = m.lt(limit, magnitude);
    m.unless_any(far, near, |m| {
        let applied = m.ir.op(Op::Apply(rare), [x]);
        m.select(far, applied, near)
    })
}

/// The sine.
pub(super) fn sin(m: &mut Floats, x: Val) -> Val {
    let near = near_sin(m, x);
    or_far(m, x, LIMIT, near, Rare::Sin)
}

/// The cosine.
pub(super) fn cos(m: &mut Floats, x: Val) -> Val {
    let near = near_cos(m, x);
    or_far(m, x, LIMIT, near, Rare::Cos)
}

/// The sine and the cosine.
pub(super) fn sin_cos(m: &mut Floats, x: Val) -> (Val, Val) {
    let (sin, cos) = (near_sin(m, x), near_cos(m, x));
    let magnitude = m.abs(x);
    let far = m.lt(LIMIT, magnitude);
    let any = if m.ir.ty(far).is_vector { m.ir.any(far) } else { far };
    m.ir.begin_if(any);
    let far_sin = m.ir.op(Op::Apply(Rare::Sin), [x]);
    let far_sin = m.select(far, far_sin, sin);
    let far_cos = m.ir.op(Op::Apply(Rare::Cos), [x]);
    let far_cos = m.select(far, far_cos, cos);
    m.ir.begin_else();
    let joined = m.ir.end_if(&[(far_sin, sin), (far_cos, cos)]);
    (joined[0], joined[1])
}

/// The tangent.
pub(super) fn tan(m: &mut Floats, x: Val) -> Val {
    let near = near_tan(m, x);
    or_far(m, x, LIMIT, near, Rare::Tan)
}
