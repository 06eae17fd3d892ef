//! Conversions between tensors and the types of other crates, one file for each crate. Each is a feature.

#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "rand")]
pub(crate) mod rand;
#[cfg(feature = "serde")]
mod serde;

/// The sizes of a tensor that must have `N` axes, vectorized ones included.
#[cfg(any(feature = "arrow", feature = "faer", feature = "image", feature = "nalgebra"))]
fn sizes<const N: usize>(
    op: &'static str,
    tensor: &crate::Tensor,
    required: &'static str,
) -> defn_core::Result<[usize; N]> {
    let whole = tensor.core().whole();
    <[usize; N]>::try_from(whole.shape.sizes())
        .map_err(|_| defn_core::ErrorKind::Rank { op, got: whole.clone(), required }.into())
}

/// The elements of a matrix, given row by row, column by column. Given column by column, with rows and columns
/// exchanged, it returns them row by row.
#[cfg(any(feature = "faer", feature = "nalgebra"))]
#[expect(clippy::indexing_slicing, reason = "the positions of a matrix of these sizes")]
fn transposed<T: crate::Element>(
    op: &'static str,
    elements: &[T],
    rows: usize,
    columns: usize,
) -> defn_core::Result<Vec<T>> {
    // Blocks of this size keep the rows of one side and the columns of the other in the cache.
    const BLOCK: usize = 32;
    let mut out = crate::host::copied(op, elements)?;
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    out[column * rows + row] = elements[row * columns + column];
                }
            }
        }
    }
    Ok(out)
}
