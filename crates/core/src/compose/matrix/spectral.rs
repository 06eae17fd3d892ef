//! Eigenvalues and singular values by Jacobi rotations, in primitive ops.
//!
//! Half of the columns are paired with the other half, and all pairs are rotated together. Then the columns move one
//! position on, as in a round-robin tournament, so that after n - 1 rounds every pair has been rotated (Brent & Luk,
//! "The solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays", SIAM J. Sci. Stat.
//! Comput. 6, 1985). For singular values, columns are rotated until they are orthogonal (Hestenes, "Inversion of
//! matrices by biorthogonalization", J. SIAM 6, 1958). Both converge quadratically, in about ten sweeps.

use smallvec::{SmallVec, smallvec};

use super::batch::{
    Batch, adjoint, axis_indices, broadcast_select, conjugated, constant_like, is_all_finite, loop_while,
    machine_epsilon, magnitude, nan_unless, product, real_part, slice_range, square,
};
use super::factor::qr_of;
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::QrMode;
use crate::shape::{Axes, Shape};

type List<V> = SmallVec<[V; 1]>;

/// More sweeps than any matrix needs. The limit ends iterations that do not converge because of rounding.
const SWEEP_LIMIT: usize = 60;

/// Eigenvalues, ascending, and eigenvectors in columns. Both triangles are read; their Hermitian part is used. If an
/// element is not finite, all results are NaN.
///
/// # Errors
/// The errors of the definition's ops.
pub fn eigh<B: Builder>(b: &mut B, x: &B::V, max_iter: usize, eps: f64) -> Result<List<B::V>> {
    let batch = Batch::new(b, x)?;
    let n = batch.rows;
    if n == 0 || batch.count == 0 {
        let values = b.full(Shape::new(&[batch.count, n]), batch.dtype, 0)?;
        let values = batch.restore_leading_axes(b, &values, batch.dtype)?;
        let vectors = batch.restore_leading_axes(b, &batch.value, batch.dtype)?;
        return Ok(smallvec![values, vectors]);
    }
    let shape = b.ty(&batch.value).shape;
    let good = is_all_finite(b, &batch.value)?;
    let zero = constant_like(b, &batch.value, 0.0)?;
    let matrix = broadcast_select(b, &good, &batch.value, &zero, &shape)?;
    let scale = magnitude(b, &matrix)?;
    let matrix = b.divide(matrix, scale.clone())?;
    let turned = adjoint(b, &matrix)?;
    let sum = b.add(matrix, turned)?;
    let matrix = b.multiply(sum, 0.5)?;
    let (diagonal, vectors) = rotate_symmetric(b, &matrix, max_iter)?;
    let scale = b.reshape_to(scale, Shape::new(&[batch.count, 1]))?;
    let values = b.multiply(diagonal, scale)?;
    let opposite = b.negate(values.clone())?;
    let mask = descending_order_mask(b, &opposite)?;
    let values = move_to_targets(b, &values, &mask)?;
    let mask = b.as_type(mask, batch.working)?;
    let vectors = product(b, &vectors, &mask)?;
    let values = zero_small(b, &values, eps)?;
    let vectors = zero_small(b, &vectors, eps)?;
    let values = nan_unless(b, &good, &values)?;
    let vectors = nan_unless(b, &good, &vectors)?;
    Ok(smallvec![
        batch.restore_leading_axes(b, &values, batch.dtype)?,
        batch.restore_leading_axes(b, &vectors, batch.dtype)?
    ])
}

/// `x` with elements of at most this magnitude replaced by 0.
fn zero_small<B: Builder>(b: &mut B, x: &B::V, eps: f64) -> Result<B::V> {
    if eps == 0.0 {
        return Ok(x.clone());
    }
    let size = b.abs(x.clone())?;
    let small = b.less_equal(size, eps)?;
    let zero = constant_like(b, x, 0.0)?;
    b.select(small, zero, x.clone())
}

/// The real diagonal after the rotations, and the vectors, for matrices whose greatest magnitude is 1.
fn rotate_symmetric<B: Builder>(b: &mut B, x: &B::V, max_iter: usize) -> Result<(B::V, B::V)> {
    let ty = b.ty(x);
    let (count, n) = (ty.shape.sizes()[0], ty.shape.sizes()[1]);
    let eye = b.eye(ty.shape.clone(), ty.dtype)?;
    let (diagonal, vectors) = if n == 1 {
        (x.clone(), eye)
    } else {
        // The column that makes their number even is never rotated, because it is zero.
        let even = n + n % 2;
        let tolerance = 10.0 * n as f64 * machine_epsilon(ty.dtype);
        let extra = (even - n) as i64;
        let zero = b.constant(ty.dtype, 0)?;
        let matrix = b.pad(x.clone(), zero.clone(), &[(0, 0, 0), (0, extra, 0), (0, extra, 0)])?;
        let vectors = b.pad(eye, zero, &[(0, 0, 0), (0, 0, 0), (0, extra, 0)])?;
        let sweep = Sweep { rounds: even - 1, max_sweeps: max_iter.min(SWEEP_LIMIT), tolerance };
        let turned = sweep.run(b, &[matrix, vectors], |graph, state| {
            let (matrix, vectors, off) = symmetric_round(graph, state[0], state[1])?;
            Ok((vec![matrix, vectors], off))
        })?;
        // The columns are in the order of the last round. The extra column is the one whose vector is zero.
        (turned[0].clone(), turned[1].clone())
    };
    let size = b.ty(&diagonal).shape.sizes()[1];
    let diagonal = b.take_diagonal(diagonal, 0)?;
    let diagonal = real_part(b, &diagonal)?;
    if size == n {
        return Ok((diagonal, vectors));
    }
    let squares = square(b, &vectors)?;
    let lengths = b.sum(squares, [1], false)?;
    let real = b.greater(lengths, 0.5)?;
    let mask = compaction_mask(b, &real, n)?;
    let diagonal = move_to_targets(b, &diagonal, &mask)?;
    let mask = b.as_type(mask, ty.dtype)?;
    let vectors = product(b, &vectors, &mask)?;
    debug_assert_eq!(b.ty(&vectors).shape.sizes(), [count, n, n]);
    Ok((diagonal, vectors))
}

/// The target positions of the marked columns, in their order: bool of sizes (count, columns, n).
fn compaction_mask<B: Builder>(b: &mut B, marked: &B::V, n: usize) -> Result<B::V> {
    let size = b.ty(marked).shape.sizes()[1];
    let row = b.new_axis(marked.clone(), 1, None)?;
    let (rows, columns) = (axis_indices(b, 1, size)?, axis_indices(b, 2, size)?);
    let before = b.less(columns, rows)?;
    let earlier = b.logical_and(before, row)?;
    let target = b.sum(earlier, [2], true)?;
    let targets = axis_indices(b, 2, n)?;
    let here = b.equal(target, targets)?;
    let column = b.new_axis(marked.clone(), 2, None)?;
    b.logical_and(here, column)
}

/// The target position of each value in descending order, equal values in their original order: bool of sizes (count,
/// n, n).
fn descending_order_mask<B: Builder>(b: &mut B, size: &B::V) -> Result<B::V> {
    let n = b.ty(size).shape.sizes()[1];
    let own = b.new_axis(size.clone(), 2, None)?;
    let other = b.new_axis(size.clone(), 1, None)?;
    let greater = b.greater(other.clone(), own.clone())?;
    let same = b.equal(other, own)?;
    let (rows, columns) = (axis_indices(b, 1, n)?, axis_indices(b, 2, n)?);
    let before = b.less(columns.clone(), rows)?;
    let tie = b.logical_and(same, before)?;
    let ahead = b.logical_or(greater, tie)?;
    let rank = b.sum(ahead, [2], true)?;
    b.equal(rank, columns)
}

/// Values moved to their target positions.
fn move_to_targets<B: Builder>(b: &mut B, values: &B::V, mask: &B::V) -> Result<B::V> {
    let shape = b.ty(mask).shape;
    let column = b.new_axis(values.clone(), 2, None)?;
    let column = b.broadcast(column, shape, Axes::All)?;
    let zero = constant_like(b, values, 0.0)?;
    let chosen = b.select(mask.clone(), column, zero)?;
    b.sum(chosen, [1], false)
}

/// Rounds of rotations, until a whole sweep is within the tolerance.
struct Sweep {
    rounds: usize,
    max_sweeps: usize,
    tolerance: f64,
}

impl Sweep {
    /// Runs rounds on a state. A round also returns the largest deviation of its pairs, a real scalar.
    fn run<B: Builder>(
        &self,
        b: &mut B,
        state: &[B::V],
        round: impl FnOnce(&mut Graph, &[Value]) -> Result<(Vec<Value>, Value)>,
    ) -> Result<Vec<B::V>> {
        let dtype = b.ty(&state[0]).dtype.to_real();
        // The number of rounds, the largest deviation of this sweep, and that of the last complete sweep.
        let mut all = vec![b.constant(DType::S32, 0)?, b.constant(dtype, 0)?];
        all.push(b.constant(dtype, f64::INFINITY)?);
        all.extend_from_slice(state);
        let limit = (self.max_sweeps * self.rounds) as i64;
        let rounds = self.rounds as i64;
        let tolerance = self.tolerance;
        let mut last = loop_while(
            b,
            None,
            &all,
            &[],
            |graph, state, _| {
                let more = graph.less(state[0], limit)?;
                let open = graph.greater(state[2], tolerance)?;
                graph.logical_and(more, open)
            },
            |graph, state, _| {
                let (next, off) = round(graph, &state[3..])?;
                let worst = graph.max(state[1], off)?;
                let done = graph.add(state[0], 1)?;
                let round_number = graph.remainder(done, rounds)?;
                let ended = graph.equal(round_number, 0)?;
                let last = graph.select(ended, worst, state[2])?;
                let zero = graph.constant(dtype, 0)?;
                let worst = graph.select(ended, zero, worst)?;
                let mut all = vec![done, worst, last];
                all.extend(next);
                Ok(all)
            },
        )?;
        Ok(last.split_off(3))
    }
}

/// The cosines and sines of the rotations that zero the elements `off` between the diagonals `first` and `last`.
fn rotation(graph: &mut Graph, first: Value, last: Value, off: Value) -> Result<(Value, Value)> {
    let size = graph.abs(off)?;
    let shape = graph.ty(size).shape.clone();
    let nothing = graph.equal(size, 0)?;
    let one = constant_like(graph, &size, 1.0)?;
    let divisor = broadcast_select(graph, &nothing, &one, &size, &shape)?;
    let difference = graph.subtract(last, first)?;
    let half = graph.multiply(difference, 0.5)?;
    let tau = graph.divide(half, divisor)?;
    let magnitude = graph.abs(tau)?;
    let squared = graph.multiply(tau, tau)?;
    let root = graph.add(squared, 1)?;
    let root = graph.sqrt(root)?;
    let sum = graph.add(magnitude, root)?;
    let tangent = graph.divide(1, sum)?;
    let negative = graph.less(tau, 0)?;
    let opposite = graph.negate(tangent)?;
    let tangent = graph.select(negative, opposite, tangent)?;
    let zero = constant_like(graph, &tangent, 0.0)?;
    let tangent = broadcast_select(graph, &nothing, &zero, &tangent, &shape)?;
    let squared = graph.multiply(tangent, tangent)?;
    let root = graph.add(squared, 1)?;
    let cosine = graph.rsqrt(root)?;
    let sine = graph.multiply(tangent, cosine)?;
    let phase = graph.divide(off, divisor)?;
    let sine = graph.multiply(sine, phase)?;
    Ok((cosine, sine))
}

/// The two halves of the columns of `x`, rotated: `(left c - right conj(s), left s + right c)`.
fn turned(graph: &mut Graph, x: Value, cosine: Value, sine: Value) -> Result<(Value, Value)> {
    let half = graph.ty(x).shape.sizes()[2] / 2;
    let (left, right) = (slice_range(graph, &x, 0, half, 2)?, slice_range(graph, &x, half as i64, half, 2)?);
    let back = conjugated(graph, &sine)?;
    let (first, second) = (graph.multiply(left, cosine)?, graph.multiply(right, back)?);
    let new_left = graph.subtract(first, second)?;
    let (first, second) = (graph.multiply(left, sine)?, graph.multiply(right, cosine)?);
    let new_right = graph.add(first, second)?;
    Ok((new_left, new_right))
}

/// The two halves, concatenated so that every column but the first has another partner in the next round.
fn next_pairing(graph: &mut Graph, left: Value, right: Value) -> Result<Value> {
    let half = graph.ty(left).shape.sizes()[2];
    if half == 1 {
        return graph.concatenate(&[left, right], 2);
    }
    let parts = [
        slice_range(graph, &left, 0, 1, 2)?,
        slice_range(graph, &right, 0, 1, 2)?,
        slice_range(graph, &left, 1, half - 2, 2)?,
        slice_range(graph, &right, 1, half - 1, 2)?,
        slice_range(graph, &left, half as i64 - 1, 1, 2)?,
    ];
    graph.concatenate(&parts, 2)
}

/// One round on symmetric matrices and their vectors.
fn symmetric_round(graph: &mut Graph, x: Value, vectors: Value) -> Result<(Value, Value, Value)> {
    let shape = graph.ty(x).shape.clone();
    let half = shape.sizes()[1] / 2;
    let diagonal = graph.take_diagonal(x, 0)?;
    let diagonal = real_part(graph, &diagonal)?;
    let diagonal = graph.new_axis(diagonal, 1, None)?;
    let (first, last) =
        (slice_range(graph, &diagonal, 0, half, 2)?, slice_range(graph, &diagonal, half as i64, half, 2)?);
    let off = graph.take_diagonal(x, half as i64)?;
    let off = graph.new_axis(off, 1, None)?;
    let (cosine, sine) = rotation(graph, first, last, off)?;
    // First columns, then rows: the adjoint of the rotated matrix is rotated in the same way.
    let (left, right) = turned(graph, x, cosine, sine)?;
    let columns = next_pairing(graph, left, right)?;
    let rows = adjoint(graph, &columns)?;
    let (left, right) = turned(graph, rows, cosine, sine)?;
    let matrix = next_pairing(graph, left, right)?;
    let (left, right) = turned(graph, vectors, cosine, sine)?;
    let vectors = next_pairing(graph, left, right)?;
    let size = graph.abs(off)?;
    let worst = graph.reduce_max(size, Axes::All, false)?;
    Ok((matrix, vectors, worst))
}

/// One round on the columns of matrices and the accumulated rotations.
fn column_round(graph: &mut Graph, x: Value, vectors: Value) -> Result<(Value, Value, Value)> {
    let half = graph.ty(x).shape.sizes()[2] / 2;
    let (left, right) = (slice_range(graph, &x, 0, half, 2)?, slice_range(graph, &x, half as i64, half, 2)?);
    let (first, last) = (square(graph, &left)?, square(graph, &right)?);
    let (first, last) = (graph.sum(first, [1], true)?, graph.sum(last, [1], true)?);
    let conjugates = conjugated(graph, &left)?;
    let products = graph.multiply(conjugates, right)?;
    let off = graph.sum(products, [1], true)?;
    let (cosine, sine) = rotation(graph, first, last, off)?;
    let (left, right) = turned(graph, x, cosine, sine)?;
    let matrix = next_pairing(graph, left, right)?;
    let (left, right) = turned(graph, vectors, cosine, sine)?;
    let vectors = next_pairing(graph, left, right)?;
    // The cosine of the angle between the columns; zero columns are orthogonal to all.
    let (first, last) = (graph.sqrt(first)?, graph.sqrt(last)?);
    let lengths = graph.multiply(first, last)?;
    let shape = graph.ty(lengths).shape.clone();
    let nothing = graph.equal(lengths, 0)?;
    let one = constant_like(graph, &lengths, 1.0)?;
    let lengths = broadcast_select(graph, &nothing, &one, &lengths, &shape)?;
    let size = graph.abs(off)?;
    let angle = graph.divide(size, lengths)?;
    let worst = graph.reduce_max(angle, Axes::All, false)?;
    Ok((matrix, vectors, worst))
}

/// The left singular vectors, the singular values, descending, and the right singular vectors in rows. If an element
/// is not finite, all results are NaN.
///
/// # Errors
/// The errors of the definition's ops.
pub fn svd<B: Builder>(b: &mut B, x: &B::V, max_iter: usize, full_matrices: bool) -> Result<List<B::V>> {
    let batch = Batch::new(b, x)?;
    let (count, m, n) = (batch.count, batch.rows, batch.columns);
    let (k, real) = (m.min(n), batch.dtype.to_real());
    if k == 0 || count == 0 {
        let (rows, columns) = if full_matrices { (m, n) } else { (k, k) };
        let left = b.eye(Shape::new(&[count, m, rows]), batch.dtype)?;
        let values = b.full(Shape::new(&[count, k]), real, 0)?;
        let right = b.eye(Shape::new(&[count, columns, n]), batch.dtype)?;
        let left = batch.restore_leading_axes(b, &left, batch.dtype)?;
        let values = batch.restore_leading_axes(b, &values, real)?;
        return Ok(smallvec![left, values, batch.restore_leading_axes(b, &right, batch.dtype)?]);
    }
    let shape = b.ty(&batch.value).shape;
    let good = is_all_finite(b, &batch.value)?;
    let zero = constant_like(b, &batch.value, 0.0)?;
    let matrix = broadcast_select(b, &good, &batch.value, &zero, &shape)?;
    let scale = magnitude(b, &matrix)?;
    let matrix = b.divide(matrix, scale.clone())?;
    let wide = m < n;
    let tall = if wide { adjoint(b, &matrix)? } else { matrix };
    let (left, values, right) = svd_of_tall(b, &tall, max_iter, full_matrices)?;
    let scale = b.reshape_to(scale, Shape::new(&[count, 1]))?;
    let values = b.multiply(values, scale)?;
    let values = nan_unless(b, &good, &values)?;
    let (left, right) = if wide { (right, left) } else { (left, right) };
    let left = nan_unless(b, &good, &left)?;
    let right = adjoint(b, &right)?;
    let right = nan_unless(b, &good, &right)?;
    Ok(smallvec![
        batch.restore_leading_axes(b, &left, batch.dtype)?,
        batch.restore_leading_axes(b, &values, real)?,
        batch.restore_leading_axes(b, &right, batch.dtype)?,
    ])
}

/// Left and right singular vectors in columns, and the singular values, for at least as many rows as columns.
fn svd_of_tall<B: Builder>(b: &mut B, x: &B::V, max_iter: usize, full: bool) -> Result<(B::V, B::V, B::V)> {
    let ty = b.ty(x);
    let (count, m, n) = (ty.shape.sizes()[0], ty.shape.sizes()[1], ty.shape.sizes()[2]);
    let mode = if full { QrMode::Complete } else { QrMode::Reduced };
    let (outer, triangle) = qr_of(b, x, mode)?;
    let triangle = slice_range(b, &triangle, 0, n, 1)?;
    let even = n + n % 2;
    let extra = (even - n) as i64;
    let zero = b.constant(ty.dtype, 0)?;
    let eye = b.eye(Shape::new(&[count, n, n]), ty.dtype)?;
    // The left singular vectors are the rotations of the columns of the triangle's adjoint.
    let columns = adjoint(b, &triangle)?;
    let columns = b.pad(columns, zero.clone(), &[(0, 0, 0), (0, 0, 0), (0, extra, 0)])?;
    let vectors = b.pad(eye, zero, &[(0, 0, 0), (0, 0, 0), (0, extra, 0)])?;
    let (columns, vectors) = if n == 1 {
        (columns, vectors)
    } else {
        let tolerance = 10.0 * n as f64 * machine_epsilon(ty.dtype);
        let sweep = Sweep { rounds: even - 1, max_sweeps: max_iter.min(SWEEP_LIMIT), tolerance };
        let state = sweep.run(b, &[columns, vectors], |graph, state| {
            let (matrix, vectors, off) = column_round(graph, state[0], state[1])?;
            Ok((vec![matrix, vectors], off))
        })?;
        (state[0].clone(), state[1].clone())
    };
    // Drops the extra column that makes their number even; its vector is zero.
    let squares = square(b, &vectors)?;
    let lengths = b.sum(squares, [1], false)?;
    let marked = b.greater(lengths, 0.5)?;
    let mask = compaction_mask(b, &marked, n)?;
    let mask = b.as_type(mask, ty.dtype)?;
    let columns = product(b, &columns, &mask)?;
    let vectors = product(b, &vectors, &mask)?;
    let squares = square(b, &columns)?;
    let sums = b.sum(squares, [1], false)?;
    let values = b.sqrt(sums)?;
    let mask = descending_order_mask(b, &values)?;
    let values = move_to_targets(b, &values, &mask)?;
    let mask = b.as_type(mask, ty.dtype)?;
    let columns = product(b, &columns, &mask)?;
    let vectors = product(b, &vectors, &mask)?;
    // Division of the columns by their lengths would leave columns of length zero undefined. The orthogonal factor
    // has a direction for each column, up to a sign or phase.
    let (right, signs) = qr_of(b, &columns, QrMode::Reduced)?;
    let signs = b.take_diagonal(signs, 0)?;
    let signs = b.sign(signs)?;
    let nothing = b.equal(signs.clone(), 0)?;
    let one = constant_like(b, &signs, 1.0)?;
    let signs = b.select(nothing, one, signs)?;
    let signs = b.new_axis(signs, 1, None)?;
    let right = b.multiply(right, signs)?;
    let inner = slice_range(b, &outer, 0, n, 2)?;
    let mut left = product(b, &inner, &vectors)?;
    if full && m > n {
        let rest = slice_range(b, &outer, n as i64, m - n, 2)?;
        left = b.concatenate(&[left, rest], 2)?;
    }
    Ok((left, values, right))
}
