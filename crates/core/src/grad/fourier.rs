//! Gradients of Fourier transforms. `g` is the cotangent of the result.

use smallvec::SmallVec;

use super::{Site, Vjp};
use crate::builder::Builder;
use crate::error::Result;
use crate::graph::Value;
use crate::op::{FftOp, Op, Padding, Tolerance};
use crate::shape::Axis;

/// The same transform of `g`, truncated or zero-padded to the operand's size: the matrix of the transform is
/// symmetric.
pub(super) fn fft(
    site: &mut Site<'_>,
    op: FftOp,
    axis: Axis,
    length: usize,
    eps: Tolerance,
    g: Value,
) -> Result<Vjp> {
    let shape = site.input_ty(0).shape;
    let contribution = site.graph.emit_one(Op::Fft { op, axis, length, eps }, &[g])?;
    let mut config: SmallVec<[Padding; 4]> = SmallVec::from_elem(Padding::default(), shape.rank());
    config[axis.index()].high = shape[axis] as i64 - length as i64;
    let zero = site.zero_of(contribution)?;
    Ok(Vjp::one(site.graph.emit_one(Op::Pad { config }, &[contribution, zero])?))
}
