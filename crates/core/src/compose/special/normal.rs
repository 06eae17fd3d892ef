//! The normal distribution function and its inverse.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::tables::{
    QUANTILE_CENTRE_ABOVE, QUANTILE_CENTRE_BELOW, QUANTILE_SIDE_ABOVE, QUANTILE_SIDE_BELOW,
    QUANTILE_TAIL_ABOVE, QUANTILE_TAIL_BELOW,
};
use super::{SpecialBuilder, of_real, polynomial, with_gradient};
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;

/// See [`BuildSpecial::ndtr`](crate::builder::BuildSpecial::ndtr).
///
/// # Errors
/// As the method.
pub fn ndtr<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "ndtr", x, |b, x| {
        let place = b.multiply(x, -FRAC_1_SQRT_2)?;
        let value = b.erfc(place)?;
        b.multiply(value, 0.5)
    })
}

/// See [`BuildSpecial::ndtri`](crate::builder::BuildSpecial::ndtri).
///
/// # Errors
/// As the method.
pub fn ndtri<B: Builder>(b: &mut B, p: &B::V) -> Result<B::V> {
    of_real(b, "ndtri", p, |b, p| {
        let value = quantile(b, p)?;
        with_gradient(b, &value, std::slice::from_ref(p), |graph, g, inputs| {
            // One over the density.
            let x = quantile(graph, &inputs[0])?;
            let square = graph.multiply(x, x)?;
            let half = graph.multiply(square, 0.5)?;
            let exp = graph.exp(half)?;
            let slope = graph.multiply(exp, TAU.sqrt())?;
            Ok(vec![graph.multiply(g, slope)?])
        })
    })
}

/// The quantile without a gradient rule: Wichura, "Algorithm AS 241: the percentage points of the normal
/// distribution", Applied Statistics 37 (1988).
fn quantile<B: Builder>(b: &mut B, p: &B::V) -> Result<B::V> {
    let ratio = |b: &mut B, x: &B::V, above: &[f64], below: &[f64]| {
        let (above, below) = (polynomial(b, x, above)?, polynomial(b, x, below)?);
        b.divide(above, below)
    };
    let q = b.subtract(p, 0.5)?;
    let size = b.abs(&q)?;
    let is_central = b.less_equal(size, 0.425)?;
    let central = b.only(&is_central, &q, 0.0)?;
    let square = b.multiply(&central, &central)?;
    let place = b.subtract(0.180_625, square)?;
    let centre = ratio(b, &place, &QUANTILE_CENTRE_ABOVE, &QUANTILE_CENTRE_BELOW)?;
    let centre = b.multiply(centre, central)?;

    let is_left = b.less(&q, 0)?;
    let rest = b.subtract(1, p)?;
    let tail = b.select(&is_left, p, rest)?;
    let tail = b.select(&is_central, 0.05, tail)?;
    let is_end = b.equal(&tail, 0)?;
    let log = b.log(tail)?;
    let log = b.negate(log)?;
    let root = b.sqrt(log)?;
    let is_side = b.less_equal(&root, 5)?;
    let place = b.only(&is_side, &root, 5.0)?;
    let place = b.subtract(place, 1.6)?;
    let side = ratio(b, &place, &QUANTILE_SIDE_ABOVE, &QUANTILE_SIDE_BELOW)?;
    let place = b.select(&is_side, 5, root)?;
    let place = b.subtract(place, 5)?;
    let far = ratio(b, &place, &QUANTILE_TAIL_ABOVE, &QUANTILE_TAIL_BELOW)?;
    let far = b.select(is_end, f64::INFINITY, far)?;
    let value = b.select(is_side, side, far)?;
    let opposite = b.negate(&value)?;
    let value = b.select(is_left, opposite, value)?;
    b.select(is_central, centre, value)
}
