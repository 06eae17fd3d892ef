//! Blocks: either their axes are shifted, or their definition is put in their place.

use smallvec::SmallVec;

use super::Rewrite;
use crate::compose;
use crate::error::Result;
use crate::op::{Block, Op, Vectors};
use crate::tensor::Tensor;

/// What became of a block.
pub(super) enum Outcome {
    /// Plain outputs, with the vectorized axes in front.
    Flat(SmallVec<[Tensor; 1]>),
    /// Vectorized outputs.
    Done(SmallVec<[Tensor; 1]>),
}

impl Rewrite<'_> {
    pub(super) fn block(&mut self, block: &Block, operands: &[Tensor]) -> Result<Outcome> {
        let lead = self.axes.len();
        let behind = |block: &Block| block.row_behind(lead).expect("every block with a kernel has a row");
        let shifted = match block {
            Block::Composite(block) if block.traits().vectors == Vectors::Leading => {
                Block::Composite(block.row_behind(lead).expect("every composite has a row"))
            }
            Block::Log2
            | Block::Log10
            // Elementwise, along axes, on the last axis, or on the last two with a batch before them.
            | Block::Cumulative { .. }
            | Block::TopK { .. }
            | Block::Fft2 { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. }
            | Block::Cholesky
            | Block::Qr { .. }
            | Block::Lu
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Determinant => behind(block),

            Block::Take { .. } if !operands[1].is_vectorized() => {
                let take = behind(block);
                let operands = [operands[0].flat(), operands[1].clone()];
                return Ok(Outcome::Flat(self.emit(Op::Block(take), &operands)?));
            }
            Block::TakeAlongAxis { .. } => {
                let operands = self.all_full(operands)?;
                let take = behind(block);
                return Ok(Outcome::Flat(self.emit(Op::Block(take), &operands)?));
            }
            Block::Solve => {
                let operands = self.all_full(operands)?;
                return Ok(Outcome::Flat(self.emit(Op::Block(Block::Solve), &operands)?));
            }

            // One verdict, one set of positions or one key for each place on the vectorized axes.
            Block::Composite(_)
            | Block::Take { .. }
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => {
                return Ok(Outcome::Done(compose::block::default(self.ops, block, operands)?));
            }
        };
        Ok(Outcome::Flat(self.emit(Op::Block(shifted), &[operands[0].flat()])?))
    }
}
