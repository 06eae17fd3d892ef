//! The cost of blocks that a backend runs natively.
//!
//! Operation counts for matrices follow Golub and Van Loan, Matrix Computations, 4th edition, 2013: Cholesky
//! 4.2.5, LU 3.2.1, QR 5.2.1 with its factor 5.1.6, symmetric eigenvalues 8.3.3, singular values 8.6.3. They
//! are for real elements; a complex multiplication and addition count four times as much.

use super::op::{bytes, fft, multiply_add, parts, product, size, sorting};
use crate::dtype::DType;
use crate::op::{Block, Outputs, QrMode};
use crate::shape::{Shape, TensorType};

/// The number of operations of a block.
pub(super) fn flops(block: &Block, operands: &[&TensorType], outputs: &Outputs) -> u64 {
    let x = operands[0];
    let result = &outputs[0];
    let each = |factor: u64| size(result).saturating_mul(factor).saturating_mul(parts(result.dtype));
    match block {
        Block::Composite(block) => {
            let (traits, most) = (block.traits(), operands.iter().map(|ty| size(ty)).max().unwrap_or(0));
            most.saturating_mul(traits.operand_work).saturating_add(each(traits.result_work))
        }
        // A logarithm and a division.
        Block::Log2 | Block::Log10 => each(2),
        Block::Cumulative { .. } => each(1),
        Block::Take { .. } | Block::TakeAlongAxis { .. } => 0,
        Block::TopK { .. } => x.shape.last_axis().map_or(0, |axis| sorting(x, axis)),
        // Three comparisons with keys, of those of which one is selected, and of all of them with this one.
        Block::Partition { .. } | Block::Argpartition { .. } => size(x).saturating_mul(3),
        // A hash or a comparison for each element of both, and an addition for each integer.
        Block::Isin => size(x).saturating_add(size(operands[1])),
        Block::Bincount { .. } => size(x),
        Block::Fft2 { axes, lengths, .. } => {
            // The first axis, then the second on the result of the first.
            let first = fft(&x.shape, axes[0], lengths[0]);
            let intermediate = Shape::from_axes(
                x.shape.axes().map(|axis| (if axis == axes[0] { lengths[0] } else { x.shape[axis] }, None)),
            );
            first.saturating_add(fft(&intermediate, axes[1], lengths[1]))
        }
        // For real elements half of the transform is computed.
        Block::Rfft { axis, length, eps: _ } | Block::Irfft { axis, length, eps: _ } => {
            fft(&x.shape, *axis, *length) / 2
        }
        Block::Cholesky => {
            let (batch, _, n) = matrix(x);
            scaled(x.dtype, &[batch, n, n, n]) / 3
        }
        Block::Lu | Block::Determinant => lu(x),
        Block::Solve => {
            let (_, _, n) = matrix(x);
            // Two triangular systems per column.
            let systems = size(result).saturating_mul(n).saturating_mul(multiply_add(x.dtype));
            lu(x).saturating_add(systems)
        }
        Block::Qr { mode, eps: _ } => {
            let (batch, rows, columns) = matrix(x);
            let (m, n) = (rows.max(columns), rows.min(columns));
            // 2n²(m - n/3) for the triangle, and 4(m²n - mn² + n³/3) for a square factor or 2n²(m - n/3) for a slim one.
            let slim = scaled(x.dtype, &[2, n, n, (3 * m).saturating_sub(n)]) / 3;
            let factor = match mode {
                QrMode::Reduced => slim,
                QrMode::Complete => {
                    let grown = scaled(x.dtype, &[4, m, n, m - n]);
                    grown.saturating_add(scaled(x.dtype, &[4, n, n, n]) / 3)
                }
            };
            batch.saturating_mul(slim.saturating_add(factor))
        }
        Block::Svd { .. } => {
            let (batch, rows, columns) = matrix(x);
            let (m, n) = (rows.max(columns), rows.min(columns));
            // 14mn² + 8n³, after Golub and Reinsch.
            let tall = scaled(x.dtype, &[14, m, n, n]);
            batch.saturating_mul(tall.saturating_add(scaled(x.dtype, &[8, n, n, n])))
        }
        Block::Eigh { .. } => {
            let (batch, _, n) = matrix(x);
            scaled(x.dtype, &[batch, 9, n, n, n])
        }
        // The same without vectors: 4mn² - 4n³/3 and 4n³/3.
        Block::Svdvals => {
            let (batch, rows, columns) = matrix(x);
            let (m, n) = (rows.max(columns), rows.min(columns));
            batch.saturating_mul(scaled(x.dtype, &[4, n, n, (3 * m).saturating_sub(n)]) / 3)
        }
        Block::Eigvalsh => {
            let (batch, _, n) = matrix(x);
            scaled(x.dtype, &[batch, 4, n, n, n]) / 3
        }
        // Reductions, steps and vectors, after 7.5.6 of the same book; half of them for values alone.
        Block::Eig { .. } | Block::Schur => {
            let (batch, _, n) = matrix(x);
            scaled(result.dtype, &[batch, 25, n, n, n])
        }
        Block::Hessenberg => {
            let (batch, _, n) = matrix(x);
            scaled(x.dtype, &[batch, 14, n, n, n]) / 3
        }
        Block::Threefry => size(result).div_ceil(2).saturating_mul(THREEFRY),
        Block::RandomBits { count, dtype } => words(*dtype, *count, 1),
        // A shift, and a subtraction that converts.
        Block::RandomUniform { count, dtype } => words(*dtype, *count, 1).saturating_add(each(2)),
        // A remainder of two words per element.
        Block::RandomBelow { count, dtype } => words(*dtype, *count, 2).saturating_add(each(1)),
    }
}

/// The bytes that a block reads, where it does not read its whole operands.
pub(super) fn read(block: &Block, operands: &[&TensorType], outputs: &Outputs) -> Option<u64> {
    if let Block::Take { .. } | Block::TakeAlongAxis { .. } = block {
        return Some(bytes(&outputs[0]).saturating_add(bytes(operands[1])));
    }
    None
}

/// Operations of the generator per two 32-bit words: an addition, a rotation (two shifts and an or) and an
/// exclusive or in each of 20 rounds, and three additions after every fourth (Salmon and others, Parallel
/// Random Numbers: As Easy as 1, 2, 3, 2011).
const THREEFRY: u64 = 20 * 5 + 5 * 3;

/// Operations that generate `count` random elements, each of which consumes `times` its own size in random
/// words.
fn words(dtype: DType, count: usize, times: u64) -> u64 {
    let bytes = (count as u64).saturating_mul(dtype.storage_bytes() as u64).saturating_mul(times);
    bytes.div_ceil(8).saturating_mul(THREEFRY)
}

/// The number of matrices in a batch, and their numbers of rows and columns.
fn matrix(ty: &TensorType) -> (u64, u64, u64) {
    let [batch @ .., rows, columns] = ty.shape.sizes() else { unreachable!("{ty} is no matrix") };
    (product(batch.iter().copied()), *rows as u64, *columns as u64)
}

fn lu(x: &TensorType) -> u64 {
    let (batch, _, n) = matrix(x);
    scaled(x.dtype, &[batch, 2, n, n, n]) / 3
}

/// A product of factors: multiply-add pairs, converted to real operations.
fn scaled(dtype: DType, factors: &[u64]) -> u64 {
    factors.iter().fold(multiply_add(dtype) / 2, |product, &factor| product.saturating_mul(factor))
}
