//! Blocks: native where StableHLO has the operation, otherwise their definitions inlined.

use std::f64::consts::{LN_2, LN_10};
use std::sync::Arc;

use defn_core::graph::{Graph, Value};
use defn_core::op::Block;
use defn_core::region::Region;
use defn_core::{TensorType, compose};

use super::text::Ssa;
use super::{Lowering, Operands, Result};

/// The region of a definition applied to operands.
pub(super) fn defined(
    x: &Operands<'_>,
    build: impl FnOnce(&mut Graph, &[Value]) -> defn_core::Result<Vec<Value>>,
) -> Result<Region> {
    let mut graph = Graph::new();
    let inputs: Vec<TensorType> = x.types.iter().map(|ty| (*ty).clone()).collect();
    let operands: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = build(&mut graph, &operands)?;
    let count = inputs.len();
    Ok(Region::new(graph, inputs, count, results.into_iter().collect()))
}

impl Lowering {
    /// A block for which StableHLO has an operation, or a formula that rounds less than its default graph.
    pub(super) fn native(
        &mut self,
        block: &Block,
        x: &Operands<'_>,
        out: &TensorType,
    ) -> Result<Option<Ssa>> {
        Ok(match block {
            Block::Log2 => Some(self.log_to(LN_2, x, out)),
            Block::Log10 => Some(self.log_to(LN_10, x, out)),
            Block::Fft2 { op, axes, lengths, eps } => {
                Some(self.fft_along(op.each(), x, axes, lengths, *eps, out))
            }
            Block::Rfft { axis, length, eps } => Some(self.rfft(x, *axis, *length, *eps, out)),
            Block::Irfft { axis, length, eps } => Some(self.irfft(x, *axis, *length, *eps, out)),
            Block::Cholesky => Some(self.cholesky(x, out)?),
            Block::Composite(_)
            | Block::Cumulative { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Isin
            | Block::Bincount { .. }
            | Block::Solve
            | Block::Qr { .. }
            | Block::Lu
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Eig { .. }
            | Block::Schur
            | Block::Hessenberg
            | Block::Svdvals
            | Block::Eigvalsh
            | Block::Determinant
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => None,
        })
    }

    /// A block by its default graph.
    pub(super) fn block(&mut self, block: &Block, x: &Operands<'_>) -> Result<Vec<Ssa>> {
        self.default(x, |graph, operands| Ok(compose::block::default(graph, block, operands)?.into_vec()))
    }

    /// Inlines the result of a function, which builds it from the operands in a graph of its own.
    pub(super) fn default(
        &mut self,
        x: &Operands<'_>,
        build: impl FnOnce(&mut Graph, &[Value]) -> defn_core::Result<Vec<Value>>,
    ) -> Result<Vec<Ssa>> {
        let region = Arc::new(defined(x, build)?);
        self.region(&region, &x.values)
    }
}
