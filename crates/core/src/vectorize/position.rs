//! Code that the positions on vectorized axes run differently: the body of a loop over the positions, and a
//! branch that some of them take.
//!
//! While such code is traced, ops use another tensor in the place of one from outside that has the axes. In a
//! loop it is the slice at the position. In a branch it has, at the positions that do not take the branch,
//! the elements of the first one that does: what they compute is dropped, and must neither fail, nor loop for
//! ever, nor make a gradient NaN.

use std::cell::RefCell;

use smallvec::SmallVec;

use super::{NamedAxes, NamedAxis, broadcast_lanes, whole_shape};
use crate::builder::{BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder, Ops, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Op, Starts};
use crate::scalar::Number;
use crate::shape::{Name, Shape, Sizes};
use crate::tensor::{Data, Tensor};
use crate::trace;

thread_local! {
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
}

/// Code that is being traced, which the positions on some axes run differently.
#[derive(Clone, Debug)]
struct Scope {
    axes: NamedAxes,
    code: Code,
    /// Tensors of traces with this id or a later one are inside.
    inside: u64,
}

#[derive(Clone, Debug)]
enum Code {
    /// The body of a loop over the positions, with the scalar index on each axis.
    Loop(Vec<Tensor>),
    /// A branch.
    Branch(Taken),
}

/// The positions that take a branch.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// True at the positions that take it.
    pub(crate) mask: Tensor,
    /// The index of the first of them, in row-major order.
    pub(crate) first: Tensor,
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
    Ok(open(axes.into(), Code::Loop(indices)))
}

/// Opens a scope in the current trace, of a branch that these positions take.
pub(crate) fn enter_branch(taken: &Taken) -> Guard {
    open(taken.mask.vectorized_axes().into(), Code::Branch(taken.clone()))
}

fn open(axes: NamedAxes, code: Code) -> Guard {
    let inside = trace::current().map_or(u64::MAX, |trace| trace.id());
    SCOPES.with_borrow_mut(|scopes| scopes.push(Scope { axes, code, inside }));
    Guard(())
}

/// What the open code is that the positions on an axis run differently, if there is any.
pub(crate) fn diverging(name: &Name) -> Option<&'static str> {
    let differs = |scope: &&Scope| scope.axes.iter().any(|axis| axis.0 == *name);
    SCOPES.with_borrow(|scopes| {
        scopes.iter().find(differs).map(|scope| match scope.code {
            Code::Loop(_) => "a loop that ends at another time at each position",
            Code::Branch(_) => "a branch that not every position takes",
        })
    })
}

/// The tensors as the open code reads them.
///
/// # Errors
/// Those of the builder.
pub(crate) fn read_all(ops: &mut Ops, tensors: &[Tensor]) -> Result<SmallVec<[Tensor; 3]>> {
    tensors.iter().map(|tensor| read(ops, tensor)).collect()
}

/// The tensor as the open code reads it.
///
/// # Errors
/// Those of the builder.
pub(crate) fn read(ops: &mut Ops, tensor: &Tensor) -> Result<Tensor> {
    if !tensor.is_vectorized() || SCOPES.with_borrow(Vec::is_empty) {
        return Ok(tensor.clone());
    }
    let scopes = SCOPES.with_borrow(Clone::clone);
    let mut tensor = tensor.clone();
    // What stands for the tensor in outer code is outside of the inner code if the tensor is.
    let made_in = match tensor.data() {
        Data::Traced { trace, .. } => Some(trace.id()),
        Data::Buffer(_) | Data::Template => None,
    };
    for scope in &scopes {
        let is_outside = made_in.is_none_or(|id| id < scope.inside);
        if is_outside && tensor.vectorized_axes().iter().any(|lane| scope.position_of(lane).is_some()) {
            tensor = match &scope.code {
                Code::Loop(indices) => scope.slice(ops, &tensor, indices)?,
                Code::Branch(taken) => scope.replace(ops, &tensor, taken)?,
            };
        }
    }
    Ok(tensor)
}

impl Scope {
    fn position_of(&self, lane: &NamedAxis) -> Option<usize> {
        self.axes.iter().position(|(name, _)| *name == lane.0)
    }

    /// The tensor, with the elements of the first position that takes the branch at those that do not. No
    /// gradient flows into the latter: those that the branch makes of them are dropped, whatever they are.
    fn replace(&self, ops: &mut Ops, tensor: &Tensor, taken: &Taken) -> Result<Tensor> {
        let (own, inner) = (tensor.vectorized_axes(), &tensor.ty().shape);
        let others = own.iter().filter(|lane| self.position_of(lane).is_none()).cloned();
        let order: NamedAxes = self.axes.iter().cloned().chain(others).collect();
        let whole = broadcast_lanes(ops, &tensor.flat(), own, &order, inner)?;
        let count: usize = self.axes.iter().map(|(_, size)| size).product();
        let rest = Shape::from_axes(whole.ty().shape.entries().skip(self.axes.len()));
        let rows = Shape::from_axes([(count, None)].into_iter().chain(rest.entries()));
        let rows = ops.reshape_to(whole, rows)?;
        let first = ops.slice_along_axis(&rows, Start::Value(taken.first.clone()), 1, 0, 1)?;
        let first = ops.stop_grad(first)?;
        let column = [(count, None)].into_iter().chain(std::iter::repeat_n((1, None), rest.rank()));
        let mask = ops.reshape_to(taken.mask.flat(), Shape::from_axes(column))?;
        let replaced = ops.select(mask, rows, first)?;
        let replaced = ops.reshape_to(replaced, whole_shape(&order, inner))?;
        let added = self.axes.iter().filter(|lane| !own.iter().any(|known| known.0 == lane.0)).cloned();
        let size =
            |lane: &NamedAxis| order.iter().find(|known| known.0 == lane.0).map_or(lane.1, |known| known.1);
        let lanes: NamedAxes = own.iter().map(|lane| (lane.0.clone(), size(lane))).chain(added).collect();
        Ok(broadcast_lanes(ops, &replaced, &order, &lanes, inner)?.with_vectorized(&lanes))
    }

    /// The tensor at the position, without the axes of the scope.
    fn slice(&self, ops: &mut Ops, tensor: &Tensor, indices: &[Tensor]) -> Result<Tensor> {
        let lanes: NamedAxes = tensor.vectorized_axes().into();
        let flat = tensor.flat();
        let zero = ops.constant(indices.first().map_or(DType::S32, |index| index.ty().dtype), 0)?;
        let mut lengths: Sizes = flat.ty().shape.sizes().into();
        let mut starts = vec![zero; lengths.len()];
        for (axis, lane) in lanes.iter().enumerate() {
            // An axis of size 1 has one index for all.
            if let Some(at) = self.position_of(lane)
                && lane.1 > 1
            {
                starts[axis] = indices[at].clone();
                lengths[axis] = 1;
            }
        }
        let strides = std::iter::repeat_n(1, lengths.len()).collect();
        let mut operands = vec![flat];
        operands.extend(starts);
        let slice = ops.emit_one(Op::Slice { starts: Starts::Dynamic, lengths, strides }, &operands)?;
        let rest: NamedAxes = lanes.into_iter().filter(|lane| self.position_of(lane).is_none()).collect();
        let shape = whole_shape(&rest, &tensor.ty().shape);
        Ok(ops.reshape_to(slice, shape)?.with_vectorized(&rest))
    }
}
