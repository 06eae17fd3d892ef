//! Windows are extended over vectorized axes with size 1. A convolution merges these axes into its batch,
//! channels or groups.

use smallvec::{SmallVec, smallvec};

use super::Rewrite;
use crate::builder::{BuildCreate, BuildShape};
use crate::error::Result;
use crate::form::Attribute;
use crate::op::{ConvOp, Op, Window, WindowScatterOp};
use crate::shape::{Axis, Shape, Sizes};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    pub(super) fn window_scatter(
        &mut self,
        op: WindowScatterOp,
        window: &Window,
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        self.refuse_vectorized("the initial value", &operands[2])?;
        let window = window.shifted(self.axes.len());
        let mut all = self.all_full(&operands[..2])?;
        all.push(operands[2].clone());
        self.emit(Op::WindowScatter { op, window: Box::new(window) }, &all)
    }

    pub(super) fn conv(&mut self, op: &ConvOp, operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let [x, kernel] = operands else { unreachable!("conv has two operands") };
        let lanes: usize = self.axes.iter().map(|(_, size)| size).product();
        if lanes == 0 {
            let shape = self.with_lead(&self.inner[0].shape);
            return Ok(smallvec![self.ops.full(shape, self.inner[0].dtype, 0)?]);
        }
        let identity = || (0..x.ty().shape.rank()).map(Axis).collect();
        let mut plain = ConvOp {
            input_permutation: identity(),
            kernel_permutation: identity(),
            output_permutation: identity(),
            ..op.clone()
        };
        // The axis of the result that holds the lanes, batch or channels, and its number of groups.
        let (input, filter, side, groups) = match (x.is_vectorized(), kernel.is_vectorized()) {
            (true, false) => {
                let x = self.roles(x, &op.input_permutation, lanes)?;
                let x = self.fold_lanes(x, 0, op.batch_groups)?;
                (x, self.roles(kernel, &op.kernel_permutation, 0)?, 0, 1)
            }
            (false, true) => {
                let groups = op.batch_groups * op.feature_groups;
                let kernel = self.roles(kernel, &op.kernel_permutation, lanes)?;
                let kernel = self.fold_lanes(kernel, 0, groups)?;
                (self.roles(x, &op.input_permutation, 0)?, kernel, 1, groups)
            }
            (true, true) | (false, false) => {
                // Each position is a group of its own: of channels, or of the batch where that has groups.
                let x = self.roles(x, &op.input_permutation, lanes)?;
                let axis = if op.batch_groups > 1 {
                    plain.batch_groups *= lanes;
                    0
                } else {
                    plain.feature_groups *= lanes;
                    1
                };
                let x = self.fold_lanes(x, axis, 1)?;
                let kernel = self.roles(kernel, &op.kernel_permutation, lanes)?;
                (x, self.fold_lanes(kernel, 0, 1)?, 1, 1)
            }
        };
        let out = self.emit_one(Op::Conv(Box::new(plain)), &[input, filter])?;
        let out = self.unfold_lanes(out, side, groups, lanes)?;
        // Role i is on axis i + 1 and moves to the axis given by the permutation, after the lanes.
        let mut order = vec![0; op.output_permutation.len() + 1];
        for (role, axis) in op.output_permutation.iter().enumerate() {
            order[axis.0 + 1] = role + 1;
        }
        let out = self.transposed(out, order.into_iter())?;
        let shape = self.with_lead(&self.inner[0].shape.without_names());
        Ok(smallvec![self.ops.reshape_to(out, shape)?])
    }

    /// An operand with its axes in the order of their roles, after one axis of all lanes if there are any.
    fn roles(&mut self, x: &Tensor, permutation: &[Axis], lanes: usize) -> Result<Tensor> {
        let inner = x.ty().shape.without_names();
        if lanes == 0 {
            let x = self.ops.reshape_to(x, inner)?;
            return self.transposed(x, permutation.iter().map(|axis| axis.0));
        }
        let x = self.full(x)?;
        let shape = Shape::from_axes(std::iter::once((lanes, None)).chain(inner.entries()));
        let x = self.ops.reshape_to(x, shape)?;
        self.transposed(x, std::iter::once(0).chain(permutation.iter().map(|axis| axis.0 + 1)))
    }

    /// Merges the leading lanes into another axis, within each of `groups` groups of it.
    fn fold_lanes(&mut self, x: Tensor, axis: usize, groups: usize) -> Result<Tensor> {
        let sizes: Sizes = x.ty().shape.sizes().into();
        let (lanes, at) = (sizes[0], axis + 1);
        let mut split: Sizes = sizes[..at].into();
        split.extend([groups, sizes[at] / groups]);
        split.extend_from_slice(&sizes[at + 1..]);
        let x = self.ops.reshape_to(x, Shape::new(&split))?;
        // lanes, before, groups, within, after -> before, groups, lanes, within, after
        let order = (1..=at).chain([0]).chain(at + 1..split.len());
        let x = self.transposed(x, order)?;
        let mut joined: Sizes = sizes[1..].into();
        joined[axis] *= lanes;
        self.ops.reshape_to(x, Shape::new(&joined))
    }

    /// The inverse of [`Rewrite::fold_lanes`].
    fn unfold_lanes(&mut self, x: Tensor, axis: usize, groups: usize, lanes: usize) -> Result<Tensor> {
        let sizes: Sizes = x.ty().shape.sizes().into();
        let mut split: Sizes = sizes[..axis].into();
        split.extend([groups, lanes, sizes[axis] / (groups * lanes)]);
        split.extend_from_slice(&sizes[axis + 1..]);
        let x = self.ops.reshape_to(x, Shape::new(&split))?;
        let order = std::iter::once(axis + 1).chain(0..=axis).chain(axis + 2..split.len());
        let x = self.transposed(x, order)?;
        let mut joined: Sizes = smallvec![lanes];
        joined.extend_from_slice(&sizes);
        joined[axis + 1] /= lanes;
        self.ops.reshape_to(x, Shape::new(&joined))
    }
}
