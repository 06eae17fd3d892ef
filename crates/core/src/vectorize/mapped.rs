//! Functions of one part of a tensor, applied to all: an axis becomes a vectorized axis, and then an axis again.

use std::cell::Cell;

use super::{NamedAxes, NamedAxis, broadcast_vectorized, fresh_name, vectorize, whole_shape};
use crate::builder::{BuildShape, Ops};
use crate::error::{ErrorKind, Result};
use crate::shape::{AxisRef, Name, Shape};
use crate::tensor::Tensor;

thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}

/// A call of a mapped function, which may be inside of others, until it is dropped. Each level has an axis name of its own.
#[derive(Debug)]
#[must_use = "the level ends when this is dropped"]
pub struct Level(u32);

impl Level {
    /// Begins a level inside of those that this thread has begun.
    pub fn enter() -> Level {
        let level = LEVEL.get() + 1;
        LEVEL.set(level);
        Level(level)
    }

    /// Whether a mapped function is running on this thread.
    pub fn is_inside() -> bool {
        LEVEL.get() > 0
    }

    /// A name for the mapped axis, which no axis of the tensors has.
    pub fn axis_name(&self, op: &str, tensors: &[Tensor]) -> Name {
        fresh_name(&format!("{op} {}", self.0), tensors)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVEL.set(self.0 - 1);
    }
}

/// The tensor with one of its axes as the vectorized axis `name`.
///
/// # Errors
/// An axis that the tensor does not have.
pub fn enter(ops: &mut Ops, x: &Tensor, axis: &AxisRef, name: &Name) -> Result<Tensor> {
    let at = x.ty().shape.resolve("vmap", axis)?.index();
    let order = std::iter::once(at).chain((0..x.ty().shape.rank()).filter(|&other| other != at));
    let order: Vec<i64> = order.map(|axis| axis as i64).collect();
    let moved = ops.transpose(x, order.as_slice())?;
    vectorize(ops, &moved, &[(name.clone(), None)])
}

/// The tensor with its vectorized axis `name`, of a size, as the axis at a position; without that axis, it is the same at
/// each position.
///
/// # Errors
/// A position that is out of range.
pub fn leave(ops: &mut Ops, x: &Tensor, position: i64, name: &Name, size: usize) -> Result<Tensor> {
    let others: NamedAxes = x.vectorized_axes().iter().filter(|axis| axis.0 != *name).cloned().collect();
    let order: NamedAxes = others.iter().cloned().chain([(name.clone(), size)]).collect();
    let spread = broadcast_vectorized(ops, "vmap", x, &order)?;
    let first = spread.flat().with_vectorized(&others);
    let rank = first.ty().shape.rank() as i64;
    if !(-rank..rank).contains(&position) {
        let shape = first.ty().shape.clone();
        return Err(ErrorKind::AxisRange { op: "vmap", axis: position, shape }.into());
    }
    let mut order: Vec<i64> = (1..rank).collect();
    order.insert(position.rem_euclid(rank) as usize, 0);
    ops.transpose(&first, order.as_slice())
}

/// The elements of a tensor as scalars along the vectorized axis `name`, which comes after its own.
///
/// # Errors
/// Those of reshape.
pub fn elements(ops: &mut Ops, x: &Tensor, name: &Name) -> Result<Tensor> {
    let axes = axes_of_elements(x, name);
    let lead = Shape::from_axes(axes.iter().map(|&(_, size)| (size, None)));
    Ok(ops.reshape_to(x.flat(), lead)?.with_vectorized(&axes))
}

/// What a function gives for [`elements`] of `x`, in the shape of `x`. Vectorized axes that the function adds come after
/// those of `x`.
///
/// # Errors
/// A result that is no scalar.
pub fn from_elements(ops: &mut Ops, x: &Tensor, name: &Name, result: &Tensor) -> Result<Tensor> {
    if result.ty().shape.rank() != 0 {
        let (what, got) = ("what the function gives", result.ty().clone());
        return Err(ErrorKind::NotScalar { op: "map", what, got }.into());
    }
    let axes = axes_of_elements(x, name);
    let own = axes.len() - 1;
    let others = result.vectorized_axes().iter().filter(|axis| !axes.contains(axis)).cloned();
    let before: NamedAxes = axes[..own].iter().cloned().chain(others).collect();
    let order: NamedAxes = before.iter().chain(&axes[own..]).cloned().collect();
    let spread = broadcast_vectorized(ops, "map", result, &order)?;
    let shape = whole_shape(&before, &x.ty().shape);
    Ok(ops.reshape_to(spread.flat(), shape)?.with_vectorized(&before))
}

fn axes_of_elements(x: &Tensor, name: &Name) -> Vec<NamedAxis> {
    x.vectorized_axes().iter().cloned().chain([(name.clone(), x.ty().shape.size())]).collect()
}
