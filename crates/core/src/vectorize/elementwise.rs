//! Element-wise ops: inner ranks are aligned after the vectorized axes.

use smallvec::SmallVec;

use super::Rewrite;
use crate::builder::{BuildElementwise, BuildShape};
use crate::error::Result;
use crate::op::{ElementWise, Op};
use crate::shape::Axes;
use crate::tensor::Tensor;

impl Rewrite<'_> {
    /// An operand that broadcasts to a result of inner rank `rank`. An operand that is not vectorized aligns
    /// from its last axis without a change.
    fn broadcasting(&mut self, x: &Tensor, rank: usize) -> Result<Tensor> {
        if x.is_vectorized() { self.lead(x, rank) } else { Ok(x.clone()) }
    }

    /// An element-wise op.
    pub(super) fn element_wise(
        &mut self,
        op: &Op,
        class: ElementWise,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        match class {
            ElementWise::Unary(_) | ElementWise::AsType(_) | ElementWise::Bitcast(_) => {
                self.emit(op.clone(), &[operands[0].flat()])
            }
            ElementWise::Binary(_) => self.binary(op, operands),
            ElementWise::Select => self.select(operands),
            ElementWise::Clip => self.clip(operands),
        }
    }

    fn binary(&mut self, op: &Op, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let rank = self.inner[0].shape.rank();
        let a = self.broadcasting(&operands[0], rank)?;
        let b = self.broadcasting(&operands[1], rank)?;
        self.emit(op.clone(), &[a, b])
    }

    /// The predicate is broadcast to the result, except a scalar that is not vectorized.
    fn select(&mut self, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let out = self.inner[0].shape.without_names();
        let mut pred = operands[0].clone();
        if pred.is_vectorized() || pred.ty().shape.rank() > 0 {
            pred = self.lead(&pred, out.rank())?;
            pred = self.ops.broadcast(pred, self.with_lead(&out), Axes::All)?;
        }
        let mut branches = SmallVec::<[Tensor; 3]>::new();
        for branch in &operands[1..] {
            // The result has the names.
            let nameless = self.ops.reshape_to(branch, branch.ty().shape.without_names())?;
            branches.push(self.broadcasting(&nameless, out.rank())?);
        }
        self.emit(Op::Select, &[pred, branches.remove(0), branches.remove(0)])
    }

    fn clip(&mut self, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        if operands[1].is_vectorized() || operands[2].is_vectorized() {
            return self.clip_each(operands);
        }
        self.emit(Op::Clip, &[operands[0].flat(), operands[1].clone(), operands[2].clone()])
    }

    /// Bounds that differ between positions. As with common bounds, a value on a bound is inside, and a NaN
    /// bound gives NaN.
    fn clip_each(&mut self, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let (dtype, shape) = (self.inner[0].dtype, self.inner[0].shape.without_names());
        let ops = &mut *self.ops;
        let mut x = ops.reshape_to(operands[0].clone(), shape)?;
        x = ops.as_type(x, dtype)?;
        for (bound, is_low) in [(&operands[1], true), (&operands[2], false)] {
            let bound = ops.as_type(bound, dtype)?;
            let mut is_beyond = if is_low { ops.less(&x, &bound)? } else { ops.greater(&x, &bound)? };
            if !dtype.is_integer() {
                let is_nan = ops.is_nan(&bound)?;
                is_beyond = ops.logical_or(is_beyond, is_nan)?;
            }
            x = ops.select(is_beyond, bound, x)?;
        }
        self.flattened(&x)
    }
}
