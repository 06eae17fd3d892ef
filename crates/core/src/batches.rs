//! Batches of a tensor along its first axis, which is a vectorized one if there are any.

use crate::builder::{BuildShape, Ops};
use crate::error::{ErrorKind, Result};
use crate::tensor::Tensor;

const OP: &str = "to_batched";

/// The number of batches of `size` rows. If the rows do not come out even, the last batch counts if it is filled.
///
/// # Errors
/// A tensor without values or without an axis, and a batch longer than the axis.
pub fn count(tensor: &Tensor, size: usize, is_filled: bool) -> Result<usize> {
    tensor.require_buffer(OP, "return it from the definition, and read it there")?;
    let got = tensor.flat().ty().clone();
    let Some(&rows) = got.shape.sizes().first() else {
        let required = "it must have at least one axis, or be vectorized";
        return Err(ErrorKind::Rank { op: OP, got, required }.into());
    };
    if size == 0 {
        let (option, given, required) = ("the batch size", "0".to_owned(), "1 or more".to_owned());
        return Err(ErrorKind::OptionValue { op: OP, option, given, required }.into());
    }
    if size > rows {
        let required = "the first axis must be at least as long as a batch";
        return Err(ErrorKind::Rank { op: OP, got, required }.into());
    }
    Ok(if is_filled { rows.div_ceil(size) } else { rows / size })
}

/// The batch at a position below [`count`]. The last batch is filled with rows from the beginning.
///
/// # Errors
/// As [`Builder::emit`](crate::builder::Builder::emit).
pub fn batch(ops: &mut Ops, tensor: &Tensor, size: usize, position: usize) -> Result<Tensor> {
    let whole = tensor.flat();
    let rows = whole.ty().shape.sizes()[0];
    let start = position * size;
    let mut slice =
        |start: usize, length: usize| ops.slice_along_axis(&whole, start as i64, length as i64, 0, 1);
    let batch = if start + size <= rows {
        slice(start, size)?
    } else {
        let (tail, head) = (slice(start, rows - start)?, slice(0, size + start - rows)?);
        ops.concatenate(&[tail, head], 0)?
    };
    let mut axes = tensor.vectorized_axes().to_vec();
    if let Some((_, first)) = axes.first_mut() {
        *first = size;
    }
    Ok(batch.with_vectorized(&axes))
}
