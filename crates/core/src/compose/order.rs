//! Definitions of what is found by putting elements in order.

use smallvec::SmallVec;

use crate::builder::Builder;
use crate::error::Result;

/// The greatest elements along the last axis, descending, and their positions.
///
/// # Errors
/// What the ops of the definition have against the operands.
pub fn top_k<B: Builder>(b: &mut B, x: &B::V, k: usize) -> Result<SmallVec<[B::V; 1]>> {
    let _ = (b, x, k);
    todo!()
}
