//! Aligns leading axes: brings them into one order and broadcasts them to one size.

use super::{NamedAxes, NamedAxis};
use crate::builder::{BuildShape, Builder};
use crate::error::{ErrorKind, Result};
use crate::shape::{Axes, AxisRef, Shape};
use crate::tensor::Tensor;

/// The union of the vectorized axes of several tensors, in the order of first appearance.
///
/// # Errors
/// Axes of one name whose sizes differ, neither being 1.
pub(crate) fn join<'a>(op: &'static str, tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<NamedAxes> {
    let mut joined = NamedAxes::new();
    for tensor in tensors {
        join_into(op, &mut joined, tensor.vectorized_axes())?;
    }
    Ok(joined)
}

/// Adds axes to a union.
///
/// # Errors
/// As [`join`].
pub(crate) fn join_into(op: &'static str, joined: &mut NamedAxes, axes: &[NamedAxis]) -> Result<()> {
    for (name, size) in axes {
        match joined.iter_mut().find(|(known, _)| known == name) {
            None => joined.push((name.clone(), *size)),
            Some((_, known)) if *known == *size || *size == 1 => {}
            Some((_, known)) if *known == 1 => *known = *size,
            Some((_, known)) => {
                let (name, left, right) = (name.clone(), *known, *size);
                return Err(ErrorKind::VectorizedSizes { op, name, left, right }.into());
            }
        }
    }
    Ok(())
}

/// A value with leading axes `from`, reshaped to the leading axes `to`: in their order, with size 1 where
/// `from` lacks one. The inner shape is padded to `rank` with leading axes of size 1.
pub(crate) fn lead<B: Builder>(
    b: &mut B,
    x: &B::V,
    from: &[NamedAxis],
    to: &[NamedAxis],
    rank: usize,
) -> Result<B::V> {
    let position = |lane: &NamedAxis| to.iter().position(|(name, _)| *name == lane.0).expect("a joined axis");
    let mut order: Vec<usize> = (0..from.len()).collect();
    order.sort_by_key(|&at| position(&from[at]));
    let whole = b.ty(x).shape.rank();
    let axes =
        order.iter().copied().chain(from.len()..whole).map(|axis| AxisRef::Index(axis as i64)).collect();
    let x = b.transpose(x, Axes::List(axes))?;
    let size = |lane: &NamedAxis| from.iter().find(|(name, _)| *name == lane.0).map_or(1, |(_, size)| *size);
    let inner: Vec<_> = b.ty(&x).shape.entries().skip(from.len()).collect();
    let filled = rank.saturating_sub(inner.len());
    let leading = to.iter().map(|lane| (size(lane), None));
    let shape = Shape::from_axes(leading.chain(std::iter::repeat_n((1, None), filled)).chain(inner));
    b.reshape_to(x, shape)
}

/// A value with leading axes `from`, broadcast to the leading axes `to` and to the inner shape, whose names
/// it gets.
pub(crate) fn broadcast_lanes<B: Builder>(
    b: &mut B,
    x: &B::V,
    from: &[NamedAxis],
    to: &[NamedAxis],
    inner: &Shape,
) -> Result<B::V> {
    let x = lead(b, x, from, to, inner.rank())?;
    let target = super::with_lead(to, inner);
    if b.ty(&x).shape.sizes() == target.sizes() {
        return b.reshape_to(x, target);
    }
    b.broadcast(x, target, Axes::All)
}
