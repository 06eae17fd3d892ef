//! Positions on vectorized axes over which a loop iterates.
//!
//! While the body of such a loop is traced, a tensor from outside that has the axes is sliced at the
//! position: ops use the slice in its place.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::{NamedAxes, NamedAxis, whole_shape};
use crate::builder::{BuildCreate, BuildElementwise, BuildShape, Builder, Ops};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Op, Starts};
use crate::scalar::Number;
use crate::shape::Sizes;
use crate::tensor::{Data, Tensor};
use crate::trace;

thread_local! {
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
}

/// A loop over positions whose body is being traced.
#[derive(Clone, Debug)]
struct Scope {
    axes: NamedAxes,
    /// The scalar index on each axis.
    indices: Vec<Tensor>,
    /// Tensors of traces with this id or a later one are inside the loop.
    inside: u64,
}

/// Keeps a scope open.
#[derive(Debug)]
pub(crate) struct Guard(());

impl Drop for Guard {
    fn drop(&mut self) {
        SCOPES.with_borrow_mut(Vec::pop);
    }
}

/// Opens a scope in the current trace for the positions of `axes` at `flat`, an index into all of them in
/// row-major order.
///
/// # Errors
/// Those of the builder.
pub(crate) fn enter(ops: &mut Ops, axes: &[NamedAxis], flat: &Tensor) -> Result<Guard> {
    let dtype = flat.ty().dtype;
    let mut indices = Vec::with_capacity(axes.len());
    let mut step: usize = axes.iter().map(|(_, size)| size).product();
    for (_, size) in axes {
        step /= (*size).max(1);
        let divisor = ops.constant(dtype, Number::from(step.max(1)))?;
        let quotient = ops.quotient(flat, divisor)?;
        let modulus = ops.constant(dtype, Number::from((*size).max(1)))?;
        indices.push(ops.remainder(quotient, modulus)?);
    }
    let inside = trace::current().map_or(u64::MAX, |trace| trace.id());
    SCOPES.with_borrow_mut(|scopes| scopes.push(Scope { axes: axes.into(), indices, inside }));
    Ok(Guard(()))
}

/// The tensors, sliced for the open loops.
///
/// # Errors
/// Those of the builder.
pub(crate) fn read_all(ops: &mut Ops, tensors: &[Tensor]) -> Result<SmallVec<[Tensor; 3]>> {
    tensors.iter().map(|tensor| read(ops, tensor)).collect()
}

/// The tensor, sliced for the open loops.
///
/// # Errors
/// Those of the builder.
pub(crate) fn read(ops: &mut Ops, tensor: &Tensor) -> Result<Tensor> {
    if !tensor.is_vectorized() || SCOPES.with_borrow(Vec::is_empty) {
        return Ok(tensor.clone());
    }
    let scopes = SCOPES.with_borrow(Clone::clone);
    let mut tensor = tensor.clone();
    for scope in &scopes {
        let outside = match tensor.data() {
            Data::Traced { trace, .. } => trace.id() < scope.inside,
            Data::Buffer(_) | Data::Template => true,
        };
        if outside && tensor.vectorized_axes().iter().any(|lane| scope.index_of(lane).is_some()) {
            tensor = scope.slice(ops, &tensor)?;
        }
    }
    Ok(tensor)
}

impl Scope {
    fn index_of(&self, lane: &NamedAxis) -> Option<&Tensor> {
        self.axes.iter().position(|(name, _)| *name == lane.0).map(|at| &self.indices[at])
    }

    /// The tensor at the position, without the axes of the scope.
    fn slice(&self, ops: &mut Ops, tensor: &Tensor) -> Result<Tensor> {
        let lanes: NamedAxes = tensor.vectorized_axes().into();
        let flat = tensor.flat();
        let zero = ops.constant(self.indices.first().map_or(DType::S32, |index| index.ty().dtype), 0)?;
        let mut lengths: Sizes = flat.ty().shape.sizes().into();
        let mut starts = vec![zero; lengths.len()];
        for (axis, lane) in lanes.iter().enumerate() {
            // An axis of size 1 has one index for all.
            if let Some(index) = self.index_of(lane)
                && lane.1 > 1
            {
                starts[axis] = index.clone();
                lengths[axis] = 1;
            }
        }
        let strides = std::iter::repeat_n(1, lengths.len()).collect();
        let mut operands = vec![flat];
        operands.extend(starts);
        let slice = ops.emit_one(Op::Slice { starts: Starts::Dynamic, lengths, strides }, &operands)?;
        let rest: NamedAxes = lanes.into_iter().filter(|lane| self.index_of(lane).is_none()).collect();
        let shape = whole_shape(&rest, &tensor.ty().shape);
        Ok(ops.reshape_to(slice, shape)?.with_vectorized(&rest))
    }
}
