//! Folds by a user's function.

use defn_core::op::{FoldOp, WindowFoldOp};
use defn_core::{TensorType, compose};

use super::text::Ssa;
use super::{Lowering, Operands, Result};

impl Lowering {
    pub(super) fn fold(&mut self, op: &FoldOp, x: &Operands<'_>) -> Result<Ssa> {
        let results =
            self.default(x, |graph, operands| Ok(vec![compose::fold::fold(graph, op, operands)?]))?;
        Ok(results[0].clone())
    }

    pub(super) fn window_fold(
        &mut self,
        op: &WindowFoldOp,
        x: &Operands<'_>,
        out: &TensorType,
    ) -> Result<Ssa> {
        let results = self.default(x, |graph, operands| {
            Ok(vec![compose::fold::window_fold(graph, op, operands, &out.shape)?])
        })?;
        Ok(results[0].clone())
    }
}
