//! Reads and writes at positions in a tensor. Where both sides are vectorized, the index on a vectorized axis
//! becomes an additional entry of each position.

use smallvec::SmallVec;

use super::{NamedAxis, Rewrite, align};
use crate::builder::{BuildCreate, BuildShape};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Op, ScatterOp};
use crate::shape::{Axes, Axis, AxisList, AxisRef, Shape};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    pub(super) fn gather(&mut self, axes: &[Axis], operands: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>> {
        let [x, indices] = operands else { unreachable!("gather has two operands") };
        if !x.is_vectorized() {
            return self.emit(Op::Gather { axes: axes.into() }, &[x.clone(), indices.flat()]);
        }
        if !indices.is_vectorized() {
            // The same positions for all: the result has the vectorized axes after those of the indices.
            let axes = self.shifted(axes);
            let read = self.emit_one(Op::Gather { axes }, &[x.flat(), indices.clone()])?;
            let before = indices.ty().shape.rank() - 1;
            let (lanes, rank) = (self.axes.len(), read.ty().shape.rank());
            let order = (before..before + lanes).chain(0..before).chain(before + lanes..rank);
            return Ok(SmallVec::from_elem(self.transposed(read, order)?, 1));
        }
        let lanes = x.vectorized_axes();
        let positions = self.with_lane_indices(lanes, indices)?;
        let axes = (0..lanes.len()).map(Axis).chain(axes.iter().map(|axis| Axis(axis.0 + lanes.len())));
        self.emit(Op::Gather { axes: axes.collect() }, &[x.flat(), positions])
    }

    pub(super) fn scatter(
        &mut self,
        op: ScatterOp,
        axes: &[Axis],
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let [x, indices, updates] = operands else { unreachable!("a scatter has three operands") };
        let lanes = self.axes.clone();
        let target = self.full(x)?;
        let rest = updates.ty().shape.without_names();
        if !indices.is_vectorized() && indices.ty().shape.rank() == 2 {
            // The same positions for all: each update covers all positions on the vectorized axes.
            let updates = self.full(updates)?;
            let (count, rank) = (lanes.len(), updates.ty().shape.rank());
            let order = std::iter::once(count).chain(0..count).chain(count + 1..rank);
            let updates = self.transposed(updates, order)?;
            let axes = self.shifted(axes);
            return self.emit(Op::Scatter { op, axes }, &[target, indices.clone(), updates]);
        }
        let positions = self.with_lane_indices(&lanes, indices)?;
        let entries = positions.ty().shape.sizes().last().copied().unwrap_or(0);
        let rows: usize = positions.ty().shape.sizes().iter().rev().skip(1).product();
        let positions = self.ops.reshape_to(positions, Shape::new(&[rows, entries]))?;
        let updates = self.full(updates)?;
        let trailing = rest.entries().skip(indices.ty().shape.rank() - 1);
        let shape = Shape::from_axes(std::iter::once((rows, None)).chain(trailing));
        let updates = self.ops.reshape_to(updates, shape)?;
        let axes = self.with_lanes_first(axes);
        self.emit(Op::Scatter { op, axes }, &[target, positions, updates])
    }

    /// The indices broadcast in full, with the index on each of `lanes` before the entries of every position.
    /// A lane of size 1 that others broadcast has one index.
    fn with_lane_indices(&mut self, lanes: &[NamedAxis], indices: &Tensor) -> Result<Tensor> {
        let indices = self.full(indices)?;
        let shape = indices.ty().shape.without_names();
        let indices = self.ops.reshape_to(indices, shape.clone())?;
        let column = Shape::from_axes(shape.entries().take(shape.rank() - 1).chain([(1, None)]));
        let small = lanes.iter().all(|(_, size)| i32::try_from(*size).is_ok());
        let dtype = if indices.ty().dtype == DType::U64 {
            DType::U64
        } else if small {
            DType::S32
        } else {
            DType::S64
        };
        let mut columns = Vec::with_capacity(lanes.len() + 1);
        for (name, size) in lanes {
            let at = self.axes.iter().position(|(known, _)| known == name).expect("a joined axis");
            columns.push(if *size == self.axes[at].1 {
                self.ops.iota(column.clone(), dtype, Some(AxisRef::Index(at as i64)))?
            } else {
                self.ops.full(column.clone(), dtype, 0)?
            });
        }
        columns.push(indices);
        self.ops.concatenate(&columns, -1)
    }

    /// A plain tensor with its axes in another order.
    pub(super) fn transposed(&mut self, x: Tensor, order: impl Iterator<Item = usize>) -> Result<Tensor> {
        let axes: AxisList = order.map(Axis).collect();
        self.ops.transpose(x, Axes::from(axes))
    }

    /// An operand with other vectorized axes than those of the result.
    pub(super) fn lead_by(&mut self, x: &Tensor, to: &[NamedAxis]) -> Result<Tensor> {
        align::lead(self.ops, &x.flat(), x.vectorized_axes(), to, 0)
    }
}
