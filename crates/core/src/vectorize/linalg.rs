//! Products: axes of both operands become batch axes, axes of one become free axes.

use smallvec::SmallVec;

use super::{NamedAxes, NamedAxis, Rewrite};
use crate::error::Result;
use crate::op::Op;
use crate::shape::{Axis, AxisList};
use crate::tensor::Tensor;

impl Rewrite<'_> {
    pub(super) fn dot(
        &mut self,
        (contract_a, batch_a): (&[Axis], &[Axis]),
        (contract_b, batch_b): (&[Axis], &[Axis]),
        operands: &[Tensor],
    ) -> Result<SmallVec<[Tensor; 1]>> {
        let [a, b] = operands else { unreachable!("dot has two operands") };
        // An axis of size 1 that the other side broadcasts does not count.
        let axes = self.axes.clone();
        let has = |x: &Tensor, lane: &NamedAxis| x.vectorized_axes().contains(lane);
        let pick = |condition: fn(bool, bool) -> bool| -> NamedAxes {
            axes.iter().filter(|lane| condition(has(a, lane), has(b, lane))).cloned().collect()
        };
        let both = pick(|a, b| a && b);
        let left = pick(|a, b| a && !b);
        let right = pick(|a, b| b && !a);
        let (x, contract_x) = self.side(a, contract_a, batch_a.len(), &both, &left)?;
        let (y, contract_y) = self.side(b, contract_b, batch_b.len(), &both, &right)?;
        let batch: AxisList = (0..both.len() + batch_a.len()).map(Axis).collect();
        let op = Op::Dot {
            contract_a: contract_x,
            batch_a: batch.clone(),
            contract_b: contract_y,
            batch_b: batch,
        };
        let product = self.emit_one(op, &[x, y])?;
        // The product's axes: both, batch, left, the rest of a, right, the rest of b.
        let rest_a = a.ty().shape.rank() - contract_a.len() - batch_a.len();
        let rest_b = b.ty().shape.rank() - contract_b.len() - batch_b.len();
        let batch_at = both.len();
        let left_at = batch_at + batch_a.len();
        let rest_a_at = left_at + left.len();
        let right_at = rest_a_at + rest_a;
        let rest_b_at = right_at + right.len();
        let position = |lane: &NamedAxis| {
            let within =
                |list: &NamedAxes, at: usize| list.iter().position(|known| known == lane).map(|i| i + at);
            let found = within(&both, 0).or_else(|| within(&left, left_at));
            found.or_else(|| within(&right, right_at)).expect("one side has the axis in full")
        };
        let order = axes
            .iter()
            .map(position)
            .chain(batch_at..left_at)
            .chain(rest_a_at..right_at)
            .chain(rest_b_at..rest_b_at + rest_b);
        Ok(SmallVec::from_elem(self.transposed(product, order)?, 1))
    }

    /// A side with its axes in this order: shared vectorized axes, the op's batch axes, its own vectorized
    /// axes, the rest; and the new positions of the contracted axes.
    fn side(
        &mut self,
        x: &Tensor,
        contract: &[Axis],
        batch: usize,
        both: &[NamedAxis],
        own: &[NamedAxis],
    ) -> Result<(Tensor, AxisList)> {
        // Axes that only the other side has in full have size 1 here, and are removed.
        let retained: NamedAxes = both.iter().chain(own).cloned().collect();
        let removed: NamedAxes =
            x.vectorized_axes().iter().filter(|lane| !retained.contains(lane)).cloned().collect();
        let to: NamedAxes = removed.iter().chain(&retained).cloned().collect();
        let lead = self.lead_by(x, &to)?;
        let ones = AxisList::from_iter((0..removed.len()).map(Axis));
        let x = if ones.is_empty() { lead } else { self.emit_one(Op::Squeeze { axes: ones }, &[lead])? };
        let (shared, lanes, rank) = (both.len(), retained.len(), x.ty().shape.rank());
        let order = (0..shared).chain(lanes..lanes + batch).chain(shared..lanes).chain(lanes + batch..rank);
        let x = self.transposed(x, order)?;
        Ok((x, contract.iter().map(|axis| Axis(axis.0 + lanes)).collect()))
    }
}
