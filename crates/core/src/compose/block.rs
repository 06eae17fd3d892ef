//! What each block is in primitive ops.

use smallvec::SmallVec;

use super::reduce;
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::op::Block;

/// The results of a block by its definition; `infer`, gradients and backends without a native kernel use it.
///
/// # Errors
/// What the ops of the definition have against the operands.
///
/// # Panics
/// When there are fewer operands than the block has: a bug of the caller.
pub fn default<B: Builder>(b: &mut B, block: &Block, args: &[B::V]) -> Result<SmallVec<[B::V; 1]>> {
    let result = match block {
        Block::LogicalNot => b.equal(&args[0], 0)?,
        Block::Phase => {
            let (imag, real) = (b.imag(&args[0])?, b.real(&args[0])?);
            b.atan2(imag, real)?
        }
        Block::Logsumexp { axes, keep_axes } => reduce::logsumexp(b, &args[0], axes, *keep_axes, None)?,
        Block::AllClose { equal_nan, rtol, atol } => {
            reduce::all_close(b, &args[0], &args[1], *equal_nan, *rtol, *atol)?
        }
    };
    Ok(SmallVec::from_elem(result, 1))
}
