//! Reductions: axes are shifted by the vectorized ones.

use smallvec::SmallVec;

use super::Rewrite;
use crate::builder::BuildShape;
use crate::dtype::DType;
use crate::error::Result;
use crate::form::Attribute;
use crate::op::{ArgOp, FoldOp, Op, TieBreak, WindowFoldOp};
use crate::shape::{Axis, Shape};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    /// A flat index refers to the inner elements, which are reshaped to one axis.
    pub(super) fn arg_reduce(
        &mut self,
        (op, axis, keep_axis, tie_break, dtype): (ArgOp, Option<Axis>, bool, TieBreak, DType),
        x: &Tensor,
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let (axis, keep_axis, x) = match axis {
            Some(axis) => (self.shift(axis), keep_axis, x.flat()),
            None => {
                let shape = self.with_lead(&Shape::new(&[x.ty().size()]));
                (Axis(self.axes.len()), false, self.ops.reshape_to(x.flat(), shape)?)
            }
        };
        self.emit(Op::ArgReduce { op, axis: Some(axis), keep_axis, tie_break, dtype }, &[x])
    }

    /// The start and the function's captures must be the same for all positions.
    pub(super) fn fold(&mut self, op: &FoldOp, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        self.refuse_start(operands)?;
        let axes = self.shifted(&op.axes);
        let operands = first_flat(operands);
        self.emit(Op::Fold(FoldOp { axes, ..op.clone() }), &operands)
    }

    /// As [`Rewrite::fold`].
    pub(super) fn window_fold(
        &mut self,
        op: &WindowFoldOp,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        self.refuse_start(operands)?;
        let window = op.window.shifted(self.axes.len());
        let operands = first_flat(operands);
        self.emit(Op::WindowFold(WindowFoldOp { window, fun: op.fun.clone() }), &operands)
    }

    fn refuse_start(&self, operands: &[Tensor]) -> Result<()> {
        self.refuse_vectorized("the accumulator", &operands[1])?;
        operands[2..].iter().try_for_each(|capture| self.refuse_vectorized("what the function uses", capture))
    }
}

/// The first operand without its vectorized axes, the others unchanged.
fn first_flat(operands: &[Tensor]) -> Vec<Tensor> {
    let mut operands = operands.to_vec();
    operands[0] = operands[0].flat();
    operands
}
