//! Eigenvalues of general matrices in primitive ops: reflections to a Hessenberg matrix, shifted QR steps to a triangular
//! one, and back substitution for its eigenvectors (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, 7.4 to 7.6;
//! J. G. F. Francis, "The QR transformation", Computer Journal 4, 1961).
//!
//! All arithmetic is complex. All matrices of a batch take a step together; each has its own shift and its own last row
//! that is not yet decoupled. The Schur factors are determined up to the phases of the vectors, and the order of the
//! eigenvalues is not specified.

use smallvec::{SmallVec, smallvec};

use super::batch::{
    Batch, adjoint, axis_indices, broadcast_select, conjugated, constant_like, is_all_finite, loop_while,
    machine_epsilon, magnitude, nan_unless, product, repeat, slice_range, square,
};
use super::factor::{reflect, reflector_below};
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::TieBreak;
use crate::shape::{Axes, AxisRef, Shape};

type List<V> = SmallVec<[V; 1]>;

/// Most steps for each row before the iteration gives up; two or three are usual.
const STEPS_PER_ROW: usize = 30;

/// Steps without a decoupled row after which one step has another shift.
const PATIENCE: i64 = 10;

/// Elements of eigenvectors above this scale their vector down.
const LARGE: f64 = 1024.0;

/// The matrices with NaN and infinities replaced by 0, divided by their greatest magnitude: the scaled matrices, their
/// magnitudes, and which of them are finite.
struct Scaled<V> {
    matrix: V,
    magnitude: V,
    good: V,
}

impl<V: Clone + Into<crate::builder::Arg<V>>> Scaled<V> {
    fn new<B: Builder<V = V>>(b: &mut B, x: &V) -> Result<Scaled<V>> {
        let shape = b.ty(x).shape;
        let good = is_all_finite(b, x)?;
        let zero = constant_like(b, x, 0.0)?;
        let matrix = broadcast_select(b, &good, x, &zero, &shape)?;
        let magnitude = magnitude(b, &matrix)?;
        let matrix = b.divide(matrix, magnitude.clone())?;
        Ok(Scaled { matrix, magnitude, good })
    }
}

/// A factor with one subdiagonal, and a unitary factor. If an element is not finite, both are NaN.
///
/// # Errors
/// The errors of the definition's ops.
pub fn hessenberg<B: Builder>(b: &mut B, x: &B::V) -> Result<List<B::V>> {
    let batch = Batch::new(b, x)?;
    if batch.rows == 0 || batch.count == 0 {
        let empty = batch.restore_leading_axes(b, &batch.value, batch.dtype)?;
        return Ok(smallvec![empty.clone(), empty]);
    }
    let scaled = Scaled::new(b, &batch.value)?;
    let (reduced, unitary) = reduce(b, &scaled.matrix)?;
    let reduced = b.multiply(reduced, scaled.magnitude)?;
    let mut results = List::new();
    for factor in [reduced, unitary] {
        let factor = nan_unless(b, &scaled.good, &factor)?;
        results.push(batch.restore_leading_axes(b, &factor, batch.dtype)?);
    }
    Ok(results)
}

/// The factors of matrices of rank 3.
fn reduce<B: Builder>(b: &mut B, x: &B::V) -> Result<(B::V, B::V)> {
    let ty = b.ty(x);
    let n = ty.shape.sizes()[1];
    let eye = b.eye(ty.shape.clone(), ty.dtype)?;
    if n < 3 {
        return Ok((x.clone(), eye));
    }
    let state = repeat(b, n - 2, &[x.clone(), eye], &[], |graph, j, state, _| {
        let row = graph.add(j, 1)?;
        let vector = reflector_below(graph, j, row, state[0])?;
        let left = reflect(graph, vector, state[0])?;
        Ok(vec![reflect_columns(graph, vector, left)?, reflect_columns(graph, vector, state[1])?])
    })?;
    let (rows, columns) = (axis_indices(b, 1, n)?, axis_indices(b, 2, n)?);
    let next = b.add(columns, 1)?;
    let below = b.greater(rows, next)?;
    let zero = constant_like(b, x, 0.0)?;
    let reduced = broadcast_select(b, &below, &zero, &state[0], &ty.shape)?;
    Ok((reduced, state[1].clone()))
}

/// `x` times the reflection at the hyperplane orthogonal to a unit vector.
fn reflect_columns(graph: &mut Graph, vector: Value, x: Value) -> Result<Value> {
    let along = product(graph, &x, &vector)?;
    let twice = graph.multiply(along, 2)?;
    let row = adjoint(graph, &vector)?;
    let update = product(graph, &twice, &row)?;
    graph.subtract(x, update)
}

/// An upper triangular and a unitary factor. If an element is not finite or the steps do not converge, both are NaN.
///
/// # Errors
/// The errors of the definition's ops.
pub fn schur<B: Builder>(b: &mut B, x: &B::V) -> Result<List<B::V>> {
    let dtype = b.ty(x).dtype.to_complex();
    let x = b.as_type(x.clone(), dtype)?;
    let batch = Batch::new(b, &x)?;
    if batch.rows == 0 || batch.count == 0 {
        let empty = batch.restore_leading_axes(b, &batch.value, dtype)?;
        return Ok(smallvec![empty.clone(), empty]);
    }
    let scaled = Scaled::new(b, &batch.value)?;
    let (triangle, unitary, good) = triangularize(b, &scaled)?;
    let triangle = b.multiply(triangle, scaled.magnitude)?;
    let mut results = List::new();
    for factor in [triangle, unitary] {
        let factor = nan_unless(b, &good, &factor)?;
        results.push(batch.restore_leading_axes(b, &factor, dtype)?);
    }
    Ok(results)
}

/// Eigenvalues, and unit eigenvectors in columns, whose element of the greatest magnitude is positive. If an element is
/// not finite or the steps do not converge, all results are NaN.
///
/// # Errors
/// The errors of the definition's ops.
pub fn eig<B: Builder>(b: &mut B, x: &B::V, vectors: bool) -> Result<List<B::V>> {
    let dtype = b.ty(x).dtype.to_complex();
    let x = b.as_type(x.clone(), dtype)?;
    let batch = Batch::new(b, &x)?;
    let (count, n) = (batch.count, batch.rows);
    if n == 0 || count == 0 {
        let values = b.full(Shape::new(&[count, n]), dtype, 0)?;
        let mut results = smallvec![batch.restore_leading_axes(b, &values, dtype)?];
        if vectors {
            results.push(batch.restore_leading_axes(b, &batch.value, dtype)?);
        }
        return Ok(results);
    }
    let scaled = Scaled::new(b, &batch.value)?;
    let (triangle, unitary, good) = triangularize(b, &scaled)?;
    let values = b.take_diagonal(triangle.clone(), 0)?;
    let scale = b.reshape_to(scaled.magnitude, Shape::new(&[count, 1]))?;
    let values = b.multiply(values, scale)?;
    let values = nan_unless(b, &good, &values)?;
    let mut results = smallvec![batch.restore_leading_axes(b, &values, dtype)?];
    if vectors {
        let own = triangular_vectors(b, &triangle)?;
        let own = product(b, &unitary, &own)?;
        let own = normalized(b, &own)?;
        let own = nan_unless(b, &good, &own)?;
        results.push(batch.restore_leading_axes(b, &own, dtype)?);
    }
    Ok(results)
}

/// The Schur factors of complex matrices of rank 3, and which of them are finite and have converged.
fn triangularize<B: Builder>(b: &mut B, scaled: &Scaled<B::V>) -> Result<(B::V, B::V, B::V)> {
    let (reduced, unitary) = reduce(b, &scaled.matrix)?;
    let ty = b.ty(&reduced);
    let (count, n) = (ty.shape.sizes()[0], ty.shape.sizes()[1]);
    let limit = (STEPS_PER_ROW * n) as i64;
    let (reduced, last) = decoupled(b, &reduced)?;
    let steps = b.constant(DType::S32, 0)?;
    let waited = b.full(Shape::new(&[count, 1, 1]), DType::S32, 0)?;
    let state = loop_while(
        b,
        None,
        &[steps, reduced, unitary, last, waited],
        &[],
        |graph, state, _| {
            let open = graph.greater(state[3], 0)?;
            let open = graph.any(open, Axes::All, false)?;
            let more = graph.less(state[0], limit)?;
            graph.logical_and(open, more)
        },
        |graph, state, _| {
            let (matrix, unitary) = step(graph, state[1], state[2], state[3], state[4])?;
            let (matrix, last) = decoupled(graph, &matrix)?;
            let stays = graph.equal(last, state[3])?;
            let longer = graph.add(state[4], 1)?;
            let zero = graph.constant(DType::S32, 0)?;
            let waited = graph.select(stays, longer, zero)?;
            Ok(vec![graph.add(state[0], 1)?, matrix, unitary, last, waited])
        },
    )?;
    let rows = axis_indices(b, 1, n)?;
    let columns = axis_indices(b, 2, n)?;
    let below = b.greater(rows, columns)?;
    let zero = constant_like(b, &state[1], 0.0)?;
    let triangle = broadcast_select(b, &below, &zero, &state[1], &ty.shape)?;
    let converged = b.equal(state[3].clone(), 0)?;
    let good = b.logical_and(converged, scaled.good.clone())?;
    Ok((triangle, state[2].clone(), good))
}

/// Hessenberg matrices of magnitude 1 with their negligible subdiagonal elements set to 0, and the last row with another
/// one, 0 if there is none: s32 of sizes (count, 1, 1).
fn decoupled<B: Builder>(b: &mut B, x: &B::V) -> Result<(B::V, B::V)> {
    let ty = b.ty(x);
    let n = ty.shape.sizes()[1];
    let eps = machine_epsilon(ty.dtype);
    let sizes = b.abs(x.clone())?;
    let diagonal = b.take_diagonal(sizes.clone(), 0)?;
    let own = b.new_axis(diagonal.clone(), 2, None)?;
    let before = b.new_axis(diagonal, 1, None)?;
    let sums = b.add(own, before)?;
    let limits = b.multiply(sums, eps)?;
    let limits = b.max(limits, eps * eps)?;
    let (rows, columns) = (axis_indices(b, 1, n)?, axis_indices(b, 2, n)?);
    let next = b.add(columns, 1)?;
    let below = b.equal(rows.clone(), next)?;
    let negligible = b.less_equal(sizes.clone(), limits.clone())?;
    let dropped = b.logical_and(below.clone(), negligible)?;
    let zero = constant_like(b, x, 0.0)?;
    let matrix = b.select(dropped, zero, x.clone())?;
    let significant = b.greater(sizes, limits)?;
    let open = b.logical_and(below, significant)?;
    let none = b.constant(DType::S32, 0)?;
    let rows = b.broadcast(rows, ty.shape.clone(), Axes::All)?;
    let open = b.select(open, rows, none)?;
    Ok((matrix, b.reduce_max(open, [1, 2], true)?))
}

/// The element in a row and a column, which are s32 of sizes (count, 1, 1); 0 if there is none.
fn element_at(graph: &mut Graph, x: Value, row: Value, column: Value) -> Result<Value> {
    let shape = graph.ty(x).shape.clone();
    let n = shape.sizes()[1];
    let (rows, columns) = (axis_indices(graph, 1, n)?, axis_indices(graph, 2, n)?);
    let (in_row, in_column) = (graph.equal(rows, row)?, graph.equal(columns, column)?);
    let here = graph.logical_and(in_row, in_column)?;
    let zero = constant_like(graph, &x, 0.0)?;
    let only = broadcast_select(graph, &here, &x, &zero, &shape)?;
    graph.sum(only, [1, 2], true)
}

/// The eigenvalue of the last two rows that is closer to the last diagonal element (Wilkinson's shift). After some steps
/// without progress it is another number of that size.
fn shift(graph: &mut Graph, x: Value, last: Value, waited: Value) -> Result<Value> {
    let before = graph.subtract(last, 1)?;
    let a = element_at(graph, x, before, before)?;
    let b = element_at(graph, x, before, last)?;
    let c = element_at(graph, x, last, before)?;
    let d = element_at(graph, x, last, last)?;
    let difference = graph.subtract(a, d)?;
    let half = graph.multiply(difference, 0.5)?;
    let squared = graph.multiply(half, half)?;
    let cross = graph.multiply(b, c)?;
    let discriminant = graph.add(squared, cross)?;
    let root = graph.sqrt(discriminant)?;
    let (plus, minus) = (graph.add(half, root)?, graph.subtract(half, root)?);
    let (plus_size, minus_size) = (graph.abs(plus)?, graph.abs(minus)?);
    let first = graph.greater_equal(plus_size, minus_size)?;
    let divisor = graph.select(first, plus, minus)?;
    let nothing = graph.equal(divisor, 0)?;
    let one = constant_like(graph, &divisor, 1.0)?;
    let divisor = graph.select(nothing, one, divisor)?;
    let quotient = graph.divide(cross, divisor)?;
    let usual = graph.subtract(d, quotient)?;
    let size = graph.abs(c)?;
    let size = graph.multiply(size, 0.75)?;
    let other = graph.add(d, size)?;
    let rest = graph.remainder(waited, PATIENCE)?;
    let late = graph.equal(rest, PATIENCE - 1)?;
    graph.select(late, other, usual)
}

/// One QR step on the rows up to `last` of each matrix, and on the unitary factor.
///
/// The rotation of columns `j - 1` and `j` follows that of rows `j` and `j + 1`, which needs the columns unrotated.
fn step(graph: &mut Graph, x: Value, unitary: Value, last: Value, waited: Value) -> Result<(Value, Value)> {
    let ty = graph.ty(x).clone();
    let (count, n) = (ty.shape.sizes()[0], ty.shape.sizes()[1]);
    let shift = shift(graph, x, last, waited)?;
    let eye = graph.eye(ty.shape.clone(), DType::Bool)?;
    let rows = axis_indices(graph, 1, n)?;
    let within = graph.less_equal(rows, last)?;
    let shifted = graph.logical_and(eye, within)?;
    let shift = graph.broadcast(shift, ty.shape.clone(), Axes::All)?;
    let zero = constant_like(graph, &x, 0.0)?;
    let shift = graph.select(shifted, shift, zero)?;
    let x = graph.subtract(x, shift)?;
    let identity = graph.eye(Shape::new(&[count, 2, 2]), ty.dtype)?;
    let state = [x, unitary, identity];
    let state = repeat(graph, n - 1, &state, &[last], |graph, j, state, captures| {
        let pair = slice_range(graph, &state[0], Start::Value(j), 2, 1)?;
        let heads = slice_range(graph, &pair, Start::Value(j), 1, 2)?;
        let active = graph.less(j, captures[0])?;
        let rotation = rotation(graph, heads, active)?;
        let rotated = product(graph, &rotation, &pair)?;
        let x = graph.put_slice(state[0], &[0.into(), Start::Value(j), 0.into()], rotated)?;
        let before = graph.subtract(j, 1)?;
        let before = graph.max(before, 0)?;
        let x = rotate_columns(graph, x, before, state[2])?;
        let unitary = rotate_columns(graph, state[1], j, rotation)?;
        Ok(vec![x, unitary, rotation])
    })?;
    let end = graph.constant(DType::S32, n as i64 - 2)?;
    let x = rotate_columns(graph, state[0], end, state[2])?;
    Ok((graph.add(x, shift)?, state[1]))
}

/// Columns `start` and `start + 1` times the adjoint of a rotation.
fn rotate_columns(graph: &mut Graph, x: Value, start: Value, rotation: Value) -> Result<Value> {
    let pair = slice_range(graph, &x, Start::Value(start), 2, 2)?;
    let turned = adjoint(graph, &rotation)?;
    let rotated = product(graph, &pair, &turned)?;
    graph.put_slice(x, &[0.into(), 0.into(), Start::Value(start)], rotated)
}

/// The rotations that map columns of two elements to their first axis; the identity where they are not active.
fn rotation(graph: &mut Graph, heads: Value, active: Value) -> Result<Value> {
    let (first, second) = (slice_range(graph, &heads, 0, 1, 1)?, slice_range(graph, &heads, 1, 1, 1)?);
    let (first_size, second_size) = (graph.abs(first)?, graph.abs(second)?);
    let greatest = graph.max(first_size, second_size)?;
    let nothing = graph.equal(greatest, 0)?;
    let one = constant_like(graph, &greatest, 1.0)?;
    let scale = graph.select(nothing, one, greatest)?;
    // Scaled, so that squares neither overflow nor underflow.
    let (first, second) = (graph.divide(first, scale)?, graph.divide(second, scale)?);
    let (first_square, second_square) = (square(graph, &first)?, square(graph, &second)?);
    let sum = graph.add(first_square, second_square)?;
    let length = graph.sqrt(sum)?;
    let length = graph.select(nothing, one, length)?;
    let first_size = graph.sqrt(first_square)?;
    let empty = graph.equal(first_size, 0)?;
    let divisor = graph.select(empty, one, first_size)?;
    let phase = graph.divide(first, divisor)?;
    let unit = constant_like(graph, &phase, 1.0)?;
    let phase = graph.select(empty, unit, phase)?;
    let cosine = graph.divide(first_size, length)?;
    let turned = conjugated(graph, &second)?;
    let sine = graph.multiply(phase, turned)?;
    let sine = graph.divide(sine, length)?;
    // Two zeros need no rotation.
    let idle = graph.logical_not(active)?;
    let idle = graph.logical_or(idle, nothing)?;
    let cosine = graph.select(idle, one, cosine)?;
    let dtype = graph.ty(sine).dtype;
    let cosine = graph.as_type(cosine, dtype)?;
    let zero = constant_like(graph, &sine, 0.0)?;
    let sine = graph.select(idle, zero, sine)?;
    let back = conjugated(graph, &sine)?;
    let back = graph.negate(back)?;
    let above = graph.concatenate(&[cosine, sine], 2)?;
    let below = graph.concatenate(&[back, cosine], 2)?;
    graph.concatenate(&[above, below], 1)
}

/// The eigenvectors, in columns, of upper triangular matrices of magnitude 1. Differences of eigenvalues that are smaller
/// than their rounding errors are replaced by these, so that a defective matrix has nearly parallel vectors.
fn triangular_vectors<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    let n = ty.shape.sizes()[1];
    let values = b.take_diagonal(x.clone(), 0)?;
    let values = b.new_axis(values, 1, None)?;
    let sizes = b.abs(values.clone())?;
    let least =
        if ty.dtype.to_real() == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let eps = machine_epsilon(ty.dtype);
    let errors = b.multiply(sizes, eps)?;
    let errors = b.max(errors, least / eps)?;
    let eye = b.eye(ty.shape.clone(), ty.dtype)?;
    let captures = [x.clone(), values, errors];
    let vectors = repeat(b, n, &[eye], &captures, |graph, trip, state, captures| {
        let end = graph.constant(DType::S32, n as i64 - 1)?;
        let i = graph.subtract(end, trip)?;
        let columns = axis_indices(graph, 2, n)?;
        let right = graph.greater(columns, i)?;
        let row = slice_range(graph, &captures[0], Start::Value(i), 1, 1)?;
        let flat = graph.ty(row).shape.clone();
        let zero = constant_like(graph, &row, 0.0)?;
        let row = broadcast_select(graph, &right, &row, &zero, &flat)?;
        let sums = product(graph, &row, &state[0])?;
        let own = slice_range(graph, &captures[1], Start::Value(i), 1, 2)?;
        let difference = graph.subtract(captures[1], own)?;
        let size = graph.abs(difference)?;
        let small = graph.less(size, captures[2])?;
        let dtype = graph.ty(difference).dtype;
        let errors = graph.as_type(captures[2], dtype)?;
        let difference = graph.select(small, errors, difference)?;
        let quotients = graph.divide(sums, difference)?;
        let before = slice_range(graph, &state[0], Start::Value(i), 1, 1)?;
        let quotients = broadcast_select(graph, &right, &quotients, &before, &flat)?;
        let vectors = graph.put_slice(state[0], &[0.into(), Start::Value(i), 0.into()], quotients)?;
        let size = graph.abs(quotients)?;
        let large = graph.greater(size, LARGE)?;
        let one = constant_like(graph, &size, 1.0)?;
        let scale = graph.select(large, size, one)?;
        Ok(vec![graph.divide(vectors, scale)?])
    })?;
    Ok(vectors[0].clone())
}

/// Columns divided by their norms, turned so that the element of the greatest magnitude is positive.
fn normalized<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let n = shape.sizes()[1];
    let squares = square(b, x)?;
    let sums = b.sum(squares.clone(), [1], true)?;
    let norms = b.sqrt(sums)?;
    let x = b.divide(x.clone(), norms)?;
    let chosen = b.argmax(squares, Some(AxisRef::Index(1)), true, TieBreak::Low, DType::S32)?;
    let rows = axis_indices(b, 1, n)?;
    let here = b.equal(rows, chosen)?;
    let zero = constant_like(b, &x, 0.0)?;
    let only = b.select(here, x.clone(), zero)?;
    let greatest = b.sum(only, [1], true)?;
    let size = b.abs(greatest.clone())?;
    let phase = b.divide(greatest, size)?;
    let turned = conjugated(b, &phase)?;
    b.multiply(x, turned)
}
