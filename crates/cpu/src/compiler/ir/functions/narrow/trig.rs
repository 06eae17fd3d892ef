//! Sine, cosine and tangent.

use super::super::super::{Op, Rare, Val};
use super::super::floats::Floats;
use super::super::tables::narrow;
use super::super::trig::{LIMIT, reduce_single};

/// The tangent. The argument is reduced in f64. The remainder, in two parts, is at most an eighth of a turn.
pub(in super::super) fn tan(m: &mut Floats, x: Val) -> Val {
    let wide = m.widened(x);
    let magnitude = m.wide().abs(wide);
    let (rest, quadrants) = reduce_single(&mut m.wide(), magnitude);
    let r = m.narrowed(rest);
    let kept = m.widened(r);
    let low = m.wide().sub(rest, kept);
    let low = m.narrowed(low);
    let z = m.mul(r, r);
    // The slope of the tangent is about 1 + r^2.
    let q = m.poly(z, narrow::TAN);
    let low = m.fma(low, z, low);
    let cube = m.mul(r, z);
    let tail = m.fma(cube, q, low);
    let tan = m.add(r, tail);
    let odd = m.wide().has_bits(quadrants, 1);
    let above = m.select(odd, -1.0, tan);
    let below = m.select(odd, tan, 1.0);
    let ratio = m.div(above, below);
    let near = m.flipped(ratio, x);
    let far = m.wide().lt(LIMIT, magnitude);
    m.unless_any(far, near, |m| {
        let applied = m.ir.op(Op::Apply(Rare::Tan), [wide]);
        let applied = m.narrowed(applied);
        m.select(far, applied, near)
    })
}
