//! Blocks: their axes are shifted, or their default graph replaces them.

use smallvec::SmallVec;

use super::Rewrite;
use crate::compose;
use crate::error::Result;
use crate::op::{Block, Op, Vectors};
use crate::tensor::Tensor;

/// The rewritten block.
pub(super) enum RewrittenBlock {
    /// Plain outputs, with the vectorized axes first.
    Flat(SmallVec<[Tensor; 1]>),
    /// Vectorized outputs.
    Done(SmallVec<[Tensor; 1]>),
}

impl Rewrite<'_> {
    pub(super) fn block(&mut self, block: &Block, operands: &[Tensor]) -> Result<RewrittenBlock> {
        let operands = match block {
            Block::Composite(block) if block.traits().vectors == Vectors::Leading => vec![operands[0].flat()],
            Block::Log2
            | Block::Log10
            // Element-wise, along axes, on the last axis, or on the last two with batch axes before them.
            | Block::Cumulative { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Fft2 { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. }
            | Block::Cholesky
            | Block::Qr { .. }
            | Block::Lu
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Eig { .. }
            | Block::Schur
            | Block::Hessenberg
            | Block::Svdvals
            | Block::Eigvalsh
            | Block::Determinant => vec![operands[0].flat()],

            Block::Take { .. } if !operands[1].is_vectorized() => {
                vec![operands[0].flat(), operands[1].clone()]
            }
            Block::Isin if !operands[1].is_vectorized() => vec![operands[0].flat(), operands[1].clone()],
            Block::TakeAlongAxis { .. } | Block::Solve => self.all_full(operands)?,

            // One verdict, one set of elements, positions or integers, or one key for each position on the vectorized axes.
            Block::Composite(_)
            | Block::Take { .. }
            | Block::Isin
            | Block::Bincount { .. }
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => {
                return Ok(RewrittenBlock::Done(compose::block::default(self.ops, block, operands)?));
            }
        };
        let shifted = Op::Block(block.shifted(self.axes.len()));
        Ok(RewrittenBlock::Flat(self.emit(shifted, &operands)?))
    }
}
