//! Vectorized axes: rewrites an op on vectorized tensors into plain ops with leading axes.
//!
//! Only the [`Tensor`] has vectorized axes. Its elements are stored with the vectorized axes first, so that
//! most ops only need their axes shifted. The axes of several operands are joined by name, in the order of
//! first appearance; an axis that an operand lacks, or has with size 1, is broadcast. Each family of ops has
//! its rules in the file of its name.

mod align;
mod axes;
mod block;
mod collective;
pub(crate) mod control;
mod elementwise;
mod index;
mod linalg;
mod mapped;
pub mod named;
pub(crate) mod position;
mod reduce;
mod shape;
mod window;

use smallvec::SmallVec;

pub(crate) use align::{broadcast_lanes, join, join_into};
pub use axes::{
    AxisRequest, broadcast_vectorized, broadcast_vectors, check_names, devectorize, eye, fresh_name,
    named_shape, reshape_vectors, revectorize, type_text, union, vectorize, whole_shape,
};
pub use mapped::{Level, elements, enter, from_elements, leave};

use crate::builder::{BuildControl, BuildShape, Builder, Ops};
use crate::error::{ErrorKind, Result};
use crate::form::{self, Attribute};
use crate::infer;
use crate::op::{Op, OpClass, Outputs, Primitive, Row, VectorizeRule};
use crate::shape::{Axis, AxisList, Name, Shape, TensorType};
use crate::tensor::Tensor;
use crate::trace;

/// A vectorized axis: its name and its size.
pub type NamedAxis = (Name, usize);

/// The vectorized axes of a tensor, or the union of several.
pub type NamedAxes = SmallVec<[NamedAxis; 2]>;

/// Applies an op to operands of which some are vectorized.
///
/// # Errors
/// Axes of one name whose sizes differ, an operand that may not be vectorized, and errors of `infer` for the
/// inner types.
pub(crate) fn emit(ops: &mut Ops, op: Op, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
    let name = form::name(&op);
    let operands = position::read_all(ops, operands)?;
    operands.iter().filter(|operand| operand.is_vectorized()).for_each(trace::note_vectorized);
    if !operands.iter().any(Tensor::is_vectorized) {
        return ops.emit(op, &operands);
    }
    let located = |ops: &Ops, error: crate::error::Error| error.at(ops.source.locate());
    let axes = join(name, &operands).map_err(|error| located(ops, error))?;
    let types: SmallVec<[&TensorType; 4]> = operands.iter().map(Tensor::ty).collect();
    let inner = infer::infer(&op, &types)
        .map_err(|error| located(ops, error.with_operands(types.iter().copied())))?;
    drop(types);
    Rewrite { ops, name, axes, inner }.rewrite(&op, &operands)
}

/// An op on vectorized operands that is being rewritten.
struct Rewrite<'a> {
    ops: &'a mut Ops,
    name: &'static str,
    /// The union of the operands' vectorized axes.
    axes: NamedAxes,
    /// The types of the outputs, without the vectorized axes.
    inner: Outputs,
}

impl Rewrite<'_> {
    fn rewrite(mut self, op: &Op, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let outputs = match op.row() {
            Row::Declared(traits) => self.primitive(op, traits.vectorize, operands)?,
            Row::Other(class) => match class {
                OpClass::Parameter { .. } | OpClass::Constant(_) | OpClass::Literal(_) => {
                    unreachable!("an op without operands has none that is vectorized")
                }
                OpClass::Primitive(Primitive::ElementWise(class)) => {
                    self.element_wise(op, class, operands)?
                }
                OpClass::Primitive(_) => unreachable!("a primitive that is not element-wise has a row"),
                OpClass::Identity(_) => self.emit(op.clone(), &[operands[0].flat()])?,
                OpClass::Collective(op) => self.collective(op, &operands[0])?,
                OpClass::Fold(op) => self.fold(op, operands)?,
                OpClass::WindowFold(op) => self.window_fold(op, operands)?,
                OpClass::Cond(op) => return control::cond(self.ops, op, operands),
                OpClass::While(op) => return control::while_(self.ops, op, operands),
                OpClass::CustomGrad(op) => return control::custom_grad(self.ops, op, operands),
                OpClass::Implicit(op) => return control::implicit(self.ops, op, operands),
                OpClass::Barrier | OpClass::Hook(_) => return self.each(op, operands),
                OpClass::RuntimeCall(_) => {
                    let vectorized = operands.iter().find(|x| x.is_vectorized());
                    let x = vectorized.expect("an op is rewritten for an operand that is vectorized");
                    let error = not_vectorizable(self.name, "a value", x);
                    return Err(error.at(self.ops.source.locate()));
                }
                OpClass::UserBlock(op) => return Ok(self.ops.inline(&op.default, operands)?.into()),
                OpClass::Block(block) => match self.block(block, operands)? {
                    block::RewrittenBlock::Flat(outputs) => outputs,
                    block::RewrittenBlock::Done(outputs) => return Ok(outputs),
                },
            },
        };
        self.finish(outputs)
    }

    /// A primitive, by the rule that its row declares.
    fn primitive(
        &mut self,
        op: &Op,
        rule: VectorizeRule<'_>,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let x = || &operands[0];
        match rule {
            VectorizeRule::ShiftAxes => {
                let op = op.row_with_leading_axes(self.axes.len()).expect("an op with this rule has a row");
                // A single operand has all vectorized axes.
                let operands = if operands.len() == 1 { vec![x().flat()] } else { self.all_full(operands)? };
                self.emit(op, &operands)
            }
            VectorizeRule::Reshape(shape) => {
                let shape = self.with_lead(shape);
                self.emit(Op::Reshape { shape }, &[x().flat()])
            }
            VectorizeRule::Broadcast(shape, axes) => {
                let (shape, axes) = (self.with_lead(shape), self.with_lanes_first(axes));
                self.emit(Op::Broadcast { shape, axes }, &[x().flat()])
            }
            VectorizeRule::Transpose(axes) => {
                let axes = self.with_lanes_first(axes);
                self.emit(Op::Transpose { axes }, &[x().flat()])
            }
            VectorizeRule::Pad(config) => self.pad(config, operands),
            VectorizeRule::Stack(axis, name) => {
                let operands = self.all_full(operands)?;
                let axis = axis + self.axes.len();
                self.emit(Op::Stack { axis, name: name.cloned() }, &operands)
            }
            VectorizeRule::Slice { starts, lengths, strides } => {
                if operands[1..].iter().any(Tensor::is_vectorized) {
                    self.slice_by_gather(starts, lengths, strides, operands)
                } else {
                    self.slice(starts, lengths, strides, operands)
                }
            }
            VectorizeRule::PutSlice(starts) => self.put_slice(starts, operands),
            VectorizeRule::ArgReduce { op, axis, keep_axis, tie_break, dtype } => {
                self.arg_reduce((op, axis, keep_axis, tie_break, dtype), x())
            }
            VectorizeRule::Gather(axes) => self.gather(axes, operands),
            VectorizeRule::Scatter(op, axes) => self.scatter(op, axes, operands),
            VectorizeRule::WindowScatter(op, window) => self.window_scatter(op, window, operands),
            VectorizeRule::Conv(op) => self.conv(op, operands),
            VectorizeRule::Dot { a: (contract_a, batch_a), b: (contract_b, batch_b) } => {
                self.dot((contract_a, batch_a), (contract_b, batch_b), operands)
            }
        }
    }

    /// Hooks get the values with the vectorized axes as leading ones; the outputs keep them as vectorized axes.
    fn each(mut self, op: &Op, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let flat: Vec<Tensor> = operands.iter().map(Tensor::flat).collect();
        let outputs = self.emit(op.clone(), &flat)?;
        let lanes = operands.iter().map(Tensor::vectorized_axes);
        Ok(outputs.into_iter().zip(lanes).map(|(out, axes)| out.with_vectorized(axes)).collect())
    }

    /// Applies a plain op.
    fn emit(&mut self, op: Op, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        debug_assert!(!operands.iter().any(Tensor::is_vectorized));
        self.ops.emit(op, operands)
    }

    /// Applies a plain op that has one output.
    fn emit_one(&mut self, op: Op, operands: &[Tensor]) -> Result<Tensor> {
        Ok(self.emit(op, operands)?.remove(0))
    }

    /// Vectorizes the leading axes of plain outputs.
    fn finish(self, outputs: SmallVec<[Tensor; 1]>) -> Result<SmallVec<[Tensor; 1]>> {
        let Rewrite { ops, name: op, axes, inner } = self;
        let mut finished = SmallVec::with_capacity(outputs.len());
        for (output, ty) in outputs.into_iter().zip(&inner) {
            if let Some(name) = self::axes::clash(&axes, ty.shape.names().flatten()) {
                let error = crate::error::Error::from(ErrorKind::VectorizedName { op, name });
                return Err(error.at(ops.source.locate()));
            }
            // Ops that take their names from an operand may have lost them in the rewrite.
            let output = ops.reshape_to(output, with_lead(&axes, &ty.shape))?;
            finished.push(output.with_vectorized(&axes));
        }
        Ok(finished)
    }

    /// The axis, shifted by the vectorized ones.
    fn shift(&self, axis: Axis) -> Axis {
        axis.shifted(self.axes.len())
    }

    /// The axes, shifted by the vectorized ones.
    fn shifted(&self, axes: &[Axis]) -> AxisList {
        axes.iter().map(|&axis| self.shift(axis)).collect()
    }

    /// The vectorized axes, then the shifted axes.
    fn with_lanes_first(&self, axes: &[Axis]) -> AxisList {
        (0..self.axes.len()).map(Axis).chain(axes.iter().map(|&axis| self.shift(axis))).collect()
    }

    /// A shape with the vectorized axes in front.
    fn with_lead(&self, shape: &Shape) -> Shape {
        with_lead(&self.axes, shape)
    }

    /// The operand with all vectorized axes in front, with size 1 where it lacks one, and an inner shape
    /// padded to `rank` with axes of size 1.
    fn lead(&mut self, x: &Tensor, rank: usize) -> Result<Tensor> {
        align::lead(self.ops, &x.flat(), x.vectorized_axes(), &self.axes, rank)
    }

    /// The operand broadcast to all vectorized axes, in front.
    fn full(&mut self, x: &Tensor) -> Result<Tensor> {
        broadcast_lanes(self.ops, &x.flat(), x.vectorized_axes(), &self.axes, &x.ty().shape)
    }

    fn all_full(&mut self, operands: &[Tensor]) -> Result<Vec<Tensor>> {
        operands.iter().map(|x| self.full(x)).collect()
    }

    /// Refuses an operand that may not be vectorized.
    fn refuse_vectorized(&self, what: &'static str, x: &Tensor) -> Result<()> {
        if !x.is_vectorized() {
            return Ok(());
        }
        let error = not_vectorizable(self.name, what, x);
        Err(error.at(self.ops.source.locate()))
    }
}

/// A shape with leading axes without names.
fn with_lead(axes: &[NamedAxis], shape: &Shape) -> Shape {
    Shape::from_axes(axes.iter().map(|&(_, size)| (size, None)).chain(shape.entries()))
}

/// The error about an operand that may not be vectorized.
pub(crate) fn not_vectorizable(op: &'static str, what: &'static str, x: &Tensor) -> crate::error::Error {
    let axes = vectorized_axes_text(x.vectorized_axes());
    ErrorKind::NotVectorizable { op, what, axes }.into()
}

/// `vectorized[v: 2][w: 3]`.
pub fn vectorized_axes_text(axes: &[NamedAxis]) -> String {
    let axes: String = axes.iter().map(|(name, size)| format!("[{name}: {size}]")).collect();
    format!("vectorized{axes}")
}
