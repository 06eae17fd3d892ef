//! Blocks: either their axes are shifted, or their definition is put in their place.

use smallvec::SmallVec;

use super::Rewrite;
use crate::compose;
use crate::error::Result;
use crate::op::{Block, Op};
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
        let shifted = match block {
            // Elementwise, on the last axis, or on the last two with a batch before them.
            Block::LogicalNot
            | Block::Phase
            | Block::Log2
            | Block::Log10
            | Block::TopK { .. }
            | Block::Cholesky
            | Block::Qr { .. }
            | Block::Lu
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Determinant => block.clone(),

            Block::Logsumexp { axes, keep_axes } => {
                Block::Logsumexp { axes: self.shifted(axes), keep_axes: *keep_axes }
            }
            Block::Cumulative { op, axis, reverse } => {
                Block::Cumulative { op: *op, axis: self.shift(*axis), reverse: *reverse }
            }
            Block::Fft2 { op, axes, lengths, eps } => {
                Block::Fft2 { op: *op, axes: axes.map(|axis| self.shift(axis)), lengths: *lengths, eps: *eps }
            }
            Block::Rfft { axis, length, eps } => {
                Block::Rfft { axis: self.shift(*axis), length: *length, eps: *eps }
            }
            Block::Irfft { axis, length, eps } => {
                Block::Irfft { axis: self.shift(*axis), length: *length, eps: *eps }
            }

            Block::Take { axis } if !operands[1].is_vectorized() => {
                let take = Block::Take { axis: self.shift(*axis) };
                let operands = [operands[0].flat(), operands[1].clone()];
                return Ok(Outcome::Flat(self.emit(Op::Block(take), &operands)?));
            }
            Block::TakeAlongAxis { axis } => {
                let operands = self.all_full(operands)?;
                let take = Block::TakeAlongAxis { axis: self.shift(*axis) };
                return Ok(Outcome::Flat(self.emit(Op::Block(take), &operands)?));
            }
            Block::Solve => {
                let operands = self.all_full(operands)?;
                return Ok(Outcome::Flat(self.emit(Op::Block(Block::Solve), &operands)?));
            }

            // One verdict, one set of positions or one key for each place on the vectorized axes.
            Block::AllClose { .. }
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
