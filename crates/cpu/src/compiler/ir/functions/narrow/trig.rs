//! Sine, cosine and tangent.
//!
//! Sine and cosine reduce the argument modulo a quadrant in three steps. The first is exact, and the others
//! lose half a unit in the last place of their results each, since fused products round once.

use super::super::super::{Rare, Val};
use super::super::floats::Floats;
use super::super::tables::narrow;
use super::super::trig::or_far;

/// Up to this limit the errors of [`sin`] and [`cos`] are below 1.6 ulp. Beyond it the number of quadrants is
/// so far from the exact quotient that the remainder is above pi / 4.
pub(in super::super) const NARROW_LIMIT: f64 = 131_072.0;

/// Up to this limit the error of [`tan`] is below 2 ulp.
pub(in super::super) const TAN_LIMIT: f64 = 65_536.0;

/// pi / 2 cut to f32, the rest of it cut to f32, and the rest of that. All are positive, so that the remainder of -0 is
/// -0.
pub(super) const HALF_PI: [f32; 3] = [f32::from_bits(0x3FC9_0FDA), 7.549_789_4e-8, 5.390_303e-15];

/// The sine of a number plus `more` quadrants, by f32 alone.
fn turned(m: &mut Floats, x: Val, more: f32, rare: Rare) -> Val {
    // The low bits count the quadrants; `more` is in them too.
    let round = 12_582_912.0 + more;
    let raised = m.fma(x, std::f32::consts::FRAC_2_PI, round);
    let n = m.sub(raised, round);
    let r = HALF_PI.iter().fold(x, |r, &part| m.fnma(n, part, r));
    let z = m.mul(r, r);
    // The sum keeps the sign of r where that is 0: it is r + 0 r then, not r - 0 r.
    let q = m.poly(z, narrow::SIN);
    let q = m.fma(z, q, 0.0);
    let sin = m.fma(q, r, r);
    let q = m.poly(z, narrow::COS);
    let q = m.fma(q, z, -0.5);
    let cos = m.fma(q, z, 1.0);
    let quadrants = m.bits(raised);
    let odd = m.has_bits(quadrants, 1);
    let value = m.select(odd, cos, sin);
    let sign = m.shl(quadrants, 30);
    let sign = m.of_bits(sign);
    let near = m.flipped(value, sign);
    or_far(m, x, NARROW_LIMIT, near, rare)
}

/// The sine.
pub(in super::super) fn sin(m: &mut Floats, x: Val) -> Val {
    turned(m, x, 0.0, Rare::Sin)
}

/// The cosine.
pub(in super::super) fn cos(m: &mut Floats, x: Val) -> Val {
    turned(m, x, 1.0, Rare::Cos)
}

/// The tangent of a remainder in two parts, which is at most an eighth of a turn, or what it is a quadrant
/// further.
fn tan_of(m: &mut Floats, r: Val, low: Val, odd: Val) -> Val {
    let z = m.mul(r, r);
    // The slope of the tangent is about 1 + r^2.
    let q = m.poly(z, narrow::TAN);
    let low = m.fma(low, z, low);
    let cube = m.mul(r, z);
    let tail = m.fma(cube, q, low);
    let tan = m.add(r, tail);
    let above = m.select(odd, -1.0, tan);
    let below = m.select(odd, tan, 1.0);
    m.div(above, below)
}

/// The tangent. The remainder takes two parts, because its error would be doubled.
pub(in super::super) fn tan(m: &mut Floats, x: Val) -> Val {
    let magnitude = m.abs(x);
    let n = m.exponent(magnitude, std::f32::consts::FRAC_2_PI);
    let first = m.fnma(n.number, HALF_PI[0], magnitude);
    // The next product, and what rounding it gained. It is below 1/128, and `first` is a multiple of 2^-23,
    // so that this is an exact two-sum whichever of them is greater.
    let second = m.mul(n.number, HALF_PI[1]);
    let gained = m.fnma(n.number, HALF_PI[1], second);
    let near = m.sub(first, second);
    let taken = m.sub(first, near);
    let low = m.sub(taken, second);
    let low = m.add(low, gained);
    let low = m.fnma(n.number, HALF_PI[2], low);
    let r = m.add(near, low);
    let rest = m.sub(near, r);
    let low = m.add(rest, low);
    let odd = m.has_bits(n.bits, 1);
    let tan = tan_of(m, r, low, odd);
    let near = m.flipped(tan, x);
    or_far(m, x, TAN_LIMIT, near, Rare::Tan)
}
