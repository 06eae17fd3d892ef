//! Factorizations and linear systems, column by column in primitive ops.
//!
//! The algorithms are those of Golub & Van Loan, "Matrix Computations", 4th ed. 2013: Cholesky by columns (4.2), LU
//! with row pivoting (3.4) and Householder's QR (5.2). Each loop runs over columns. Its iterations operate on whole
//! matrices, so that shapes stay the same.

use smallvec::{SmallVec, smallvec};

use super::batch::{
    Batch, adjoint, axis_indices, broadcast_select, constant_like, loop_while, magnitude, product, real_part,
    repeat, slice_range, square,
};
use super::semidefinite;
use crate::builder::{BuildCreate, BuildElementwise, BuildMatrix, BuildReduce, BuildShape, Builder, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::{QrMode, TieBreak, Transform};
use crate::shape::{Axes, AxisRef, Shape};

type List<V> = SmallVec<[V; 1]>;

/// The lower factor. All its elements are NaN if the matrix has a negative eigenvalue. Only the lower triangle is
/// read.
///
/// If a pivot is not positive, a root with diagonal pivoting determines whether the matrix is singular or has no
/// factor.
///
/// # Errors
/// The errors of the definition's ops.
pub fn cholesky<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let batch = Batch::new(b, x)?;
    let n = batch.rows;
    if n == 0 {
        let lower = batch.restore_leading_axes(b, &batch.value, batch.dtype)?;
        return b.reshape_to(lower, shape);
    }
    let zeros = b.zeros_like(batch.value.clone())?;
    let captures = [batch.value.clone()];
    let lower = repeat(b, n, &[zeros], &captures, |graph, j, state, captures| {
        Ok(vec![cholesky_column(graph, j, state[0], captures[0])?])
    })?
    .remove(0);
    // One bad pivot leads to a NaN on the diagonal.
    let diagonal = b.take_diagonal(lower.clone(), 0)?;
    let bad = b.is_nan(diagonal)?;
    let bad = b.any(bad, [1], true)?;
    let bad = b.new_axis(bad, -1, None)?;
    let any = b.any(bad.clone(), Axes::All, false)?;
    // A loop with at most one iteration, because most matrices have a factor without pivoting.
    let other = loop_while(
        b,
        None,
        &[any, lower.clone()],
        &captures,
        |_, state, _| Ok(state[0]),
        |graph, _, captures| {
            let done = graph.constant(DType::Bool, false)?;
            Ok(vec![done, semidefinite::factor(graph, captures[0])?])
        },
    )?
    .remove(1);
    let lower = broadcast_select(b, &bad, &other, &lower, &b.ty(&lower).shape.clone())?;
    let lower = batch.restore_leading_axes(b, &lower, batch.dtype)?;
    b.reshape_to(lower, shape)
}

/// The lower factor of matrices that Cholesky's method does not factorize, since they are singular. All its elements
/// are NaN if a matrix has a negative eigenvalue. Only the lower triangle is read.
///
/// # Errors
/// The errors of the definition's ops.
pub fn cholesky_of_singular(graph: &mut Graph, x: &Value) -> Result<Value> {
    let shape = graph.ty(*x).shape.clone();
    let batch = Batch::new(graph, x)?;
    let lower = semidefinite::factor(graph, batch.value)?;
    let lower = batch.restore_leading_axes(graph, &lower, batch.dtype)?;
    graph.reshape_to(lower, shape)
}

/// The factor with column `j`, computed from the columns before it.
fn cholesky_column(graph: &mut Graph, j: Value, lower: Value, x: Value) -> Result<Value> {
    let n = graph.ty(x).shape.sizes()[1];
    let column = slice_range(graph, &x, Start::Value(j), 1, 2)?;
    let row = slice_range(graph, &lower, Start::Value(j), 1, 1)?;
    let row = adjoint(graph, &row)?;
    let before = product(graph, &lower, &row)?;
    let rest = graph.subtract(column, before)?;
    let rows = axis_indices(graph, 1, n)?;
    let (below, on) = (graph.greater(rows, j)?, graph.equal(rows, j)?);
    let pivot = slice_range(graph, &rest, Start::Value(j), 1, 1)?;
    let pivot = real_part(graph, &pivot)?;
    let shape = graph.ty(pivot).shape.clone();
    let positive = graph.greater(pivot, 0)?;
    let nan = constant_like(graph, &pivot, f64::NAN)?;
    let pivot = broadcast_select(graph, &positive, &pivot, &nan, &shape)?;
    let root = graph.sqrt(pivot)?;
    let scaled = graph.divide(rest, root)?;
    let tall = graph.ty(scaled).shape.clone();
    let zero = constant_like(graph, &scaled, 0.0)?;
    let dtype = graph.ty(scaled).dtype;
    let root = graph.as_type(root, dtype)?;
    let edge = broadcast_select(graph, &on, &root, &zero, &tall)?;
    let column = broadcast_select(graph, &below, &scaled, &edge, &tall)?;
    graph.put_slice(lower, &[0.into(), 0.into(), Start::Value(j)], column)
}

/// The solution by LU.
///
/// # Errors
/// The errors of the definition's ops.
pub fn solve<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let (left, right) = (b.ty(x), b.ty(y));
    let dtype = left.dtype.merge(right.dtype).to_float();
    let working = super::working_dtype(dtype);
    let x = b.as_type(x.clone(), working)?;
    let x = b.reshape_to(x, left.shape.without_names())?;
    let y = b.as_type(y.clone(), working)?;
    let vector = right.shape.rank() < left.shape.rank();
    let plain = right.shape.without_names();
    let y = b.reshape_to(y, plain.clone())?;
    let y = if vector { b.new_axis(y, -1, None)? } else { y };
    let (permutation, lower, upper) = b.lu(x)?;
    let permutation = super::batch::transposed(b, &permutation)?;
    let y = product(b, &permutation, &y)?;
    let y = b.triangular_solve(lower, y, true, true, Transform::None)?;
    // The solution for a singular matrix is NaN, while a triangular system with a zero on its diagonal is an error.
    let diagonal = b.eye(left.shape.without_names(), DType::Bool)?;
    let zero = b.equal(upper.clone(), 0)?;
    let singular = b.logical_and(diagonal, zero)?;
    let nan = constant_like(b, &upper, f64::NAN)?;
    let upper = b.select(singular, nan, upper)?;
    let y = b.triangular_solve(upper, y, false, true, Transform::None)?;
    let y = b.reshape_to(y, plain)?;
    b.as_type(y, dtype)
}

/// A permutation, a lower triangular and an upper triangular factor. The pivot is the element with the greatest
/// magnitude, the first of several.
///
/// # Errors
/// The errors of the definition's ops.
pub fn lu<B: Builder>(b: &mut B, x: &B::V) -> Result<List<B::V>> {
    let dtype = b.ty(x).dtype;
    let batch = Batch::new(b, x)?;
    let (count, n) = (batch.count, batch.rows);
    if n == 0 {
        let empty = batch.restore_leading_axes(b, &batch.value, batch.dtype)?;
        let permutation = b.as_type(empty.clone(), dtype)?;
        return Ok(smallvec![permutation, empty.clone(), empty]);
    }
    let order = axis_indices(b, 1, n)?;
    let order = b.broadcast(order, Shape::new(&[count, n, 1]), Axes::All)?;
    let state = repeat(b, n, &[batch.value.clone(), order], &[], |graph, j, state, _| {
        lu_column(graph, j, state[0], state[1])
    })?;
    let (packed, order) = (state[0].clone(), state[1].clone());
    let shape = b.ty(&packed).shape;
    let (rows, columns) = (axis_indices(b, 1, n)?, axis_indices(b, 2, n)?);
    let zero = constant_like(b, &packed, 0.0)?;
    let one = constant_like(b, &packed, 1.0)?;
    let one = b.broadcast(one, shape.clone(), Axes::List(Vec::new()))?;
    let (below, on) = (b.greater(rows.clone(), columns.clone())?, b.equal(rows.clone(), columns)?);
    let edge = broadcast_select(b, &on, &one, &zero, &shape)?;
    let lower = broadcast_select(b, &below, &packed, &edge, &shape)?;
    let upper = broadcast_select(b, &below, &zero, &packed, &shape)?;
    // Row i of the product of the factors is row order[i] of the matrix.
    let order = super::batch::transposed(b, &order)?;
    let permutation = b.equal(order, rows)?;
    Ok(smallvec![
        batch.restore_leading_axes(b, &permutation, dtype)?,
        batch.restore_leading_axes(b, &lower, batch.dtype)?,
        batch.restore_leading_axes(b, &upper, batch.dtype)?,
    ])
}

/// One step of the elimination and of the row order.
fn lu_column(graph: &mut Graph, j: Value, packed: Value, order: Value) -> Result<Vec<Value>> {
    let shape = graph.ty(packed).shape.clone();
    let n = shape.sizes()[1];
    let (rows, columns) = (axis_indices(graph, 1, n)?, axis_indices(graph, 2, n)?);
    let column = slice_range(graph, &packed, Start::Value(j), 1, 2)?;
    let size = graph.abs(column)?;
    let (above, at) = (graph.less(rows, j)?, graph.equal(rows, j)?);
    let tall = graph.ty(size).shape.clone();
    let never = constant_like(graph, &size, -1.0)?;
    let size = broadcast_select(graph, &above, &never, &size, &tall)?;
    let best = graph.argmax(size, Some(AxisRef::Index(1)), true, TieBreak::Low, DType::S32)?;
    let chosen = graph.equal(rows, best)?;
    let packed = exchange(graph, j, packed, at, chosen)?;
    let order = exchange(graph, j, order, at, chosen)?;

    let column = slice_range(graph, &packed, Start::Value(j), 1, 2)?;
    let row = slice_range(graph, &packed, Start::Value(j), 1, 1)?;
    let pivot = slice_range(graph, &row, Start::Value(j), 1, 2)?;
    // A column of zeros is unchanged: its factors are zero, and so is the pivot in the upper factor.
    let singular = graph.equal(pivot, 0)?;
    let one = constant_like(graph, &pivot, 1.0)?;
    let pivot_shape = graph.ty(pivot).shape.clone();
    let pivot = broadcast_select(graph, &singular, &one, &pivot, &pivot_shape)?;
    let factors = graph.divide(column, pivot)?;
    let below = graph.greater(rows, j)?;
    let zero = constant_like(graph, &factors, 0.0)?;
    let factors = broadcast_select(graph, &below, &factors, &zero, &tall)?;
    let right = graph.greater(columns, j)?;
    let row_shape = graph.ty(row).shape.clone();
    let row = broadcast_select(graph, &right, &row, &zero, &row_shape)?;
    let update = graph.multiply(factors, row)?;
    let reduced = graph.subtract(packed, update)?;
    // Infinite factors times zeros would be NaN. Therefore only elements below and to the right change.
    let (below, right) = (
        graph.broadcast(below, shape.clone(), Axes::All)?,
        graph.broadcast(right, shape.clone(), Axes::All)?,
    );
    let inside = graph.logical_and(below, right)?;
    let packed = graph.select(inside, reduced, packed)?;
    let column = slice_range(graph, &packed, Start::Value(j), 1, 2)?;
    let rows_below = graph.greater(rows, j)?;
    let column = broadcast_select(graph, &rows_below, &factors, &column, &tall)?;
    let packed = graph.put_slice(packed, &[0.into(), 0.into(), Start::Value(j)], column)?;
    Ok(vec![packed, order])
}

/// `x` with two rows exchanged: row `j`, where `at` is true, and the row where `chosen` is true.
fn exchange(graph: &mut Graph, j: Value, x: Value, at: Value, chosen: Value) -> Result<Value> {
    let ty = graph.ty(x).clone();
    let zero = graph.constant(ty.dtype, 0)?;
    let row = slice_range(graph, &x, Start::Value(j), 1, 1)?;
    let only = broadcast_select(graph, &chosen, &x, &zero, &ty.shape)?;
    let other = graph.sum(only, [1], true)?;
    let other = graph.broadcast(other, ty.shape.clone(), Axes::All)?;
    let row = graph.broadcast(row, ty.shape.clone(), Axes::All)?;
    let moved = broadcast_select(graph, &chosen, &row, &x, &ty.shape)?;
    broadcast_select(graph, &at, &other, &moved, &ty.shape)
}

/// An orthogonal factor and an upper triangular one, by Householder reflections. Small columns need no special case,
/// so that there is no `eps` below which they count as zero.
///
/// # Errors
/// The errors of the definition's ops.
pub fn qr<B: Builder>(b: &mut B, x: &B::V, mode: QrMode) -> Result<List<B::V>> {
    let batch = Batch::new(b, x)?;
    let (orthogonal, upper) = qr_of(b, &batch.value, mode)?;
    Ok(smallvec![
        batch.restore_leading_axes(b, &orthogonal, batch.dtype)?,
        batch.restore_leading_axes(b, &upper, batch.dtype)?
    ])
}

/// The factors of matrices of rank 3.
pub(super) fn qr_of<B: Builder>(b: &mut B, x: &B::V, mode: QrMode) -> Result<(B::V, B::V)> {
    let ty = b.ty(x);
    let (count, m, n) = (ty.shape.sizes()[0], ty.shape.sizes()[1], ty.shape.sizes()[2]);
    let k = m.min(n);
    let width = match mode {
        QrMode::Reduced => k,
        QrMode::Complete => m,
    };
    let eye = b.eye(Shape::new(&[count, m, width]), ty.dtype)?;
    if k == 0 {
        let upper = slice_range(b, x, 0, width, 1)?;
        return Ok((eye, upper));
    }
    // Scaled, so that squares neither overflow nor underflow.
    let scale = magnitude(b, x)?;
    let scaled = b.divide(x.clone(), scale.clone())?;
    let vectors = b.full(Shape::new(&[count, m, k]), ty.dtype, 0)?;
    let state = repeat(b, k, &[scaled, vectors], &[], |graph, j, state, _| {
        let vector = reflector(graph, j, state[0])?;
        let upper = reflect(graph, vector, state[0])?;
        let vectors = graph.put_slice(state[1], &[0.into(), 0.into(), Start::Value(j)], vector)?;
        Ok(vec![upper, vectors])
    })?;
    let orthogonal = repeat(b, k, &[eye], &state[1..2], |graph, trip, state, captures| {
        let last = graph.constant(DType::S32, k as i64 - 1)?;
        let j = graph.subtract(last, trip)?;
        let vector = slice_range(graph, &captures[0], Start::Value(j), 1, 2)?;
        Ok(vec![reflect(graph, vector, state[0])?])
    })?
    .remove(0);
    let upper = b.multiply(state[0].clone(), scale)?;
    let upper = slice_range(b, &upper, 0, width, 1)?;
    let shape = b.ty(&upper).shape;
    let (rows, columns) = (axis_indices(b, 1, width)?, axis_indices(b, 2, n)?);
    let below = b.greater(rows, columns)?;
    let zero = constant_like(b, &upper, 0.0)?;
    let upper = broadcast_select(b, &below, &zero, &upper, &shape)?;
    Ok((orthogonal, upper))
}

/// The unit vector whose reflection zeroes column `j` below the diagonal; a zero vector if the column is zero.
fn reflector(graph: &mut Graph, j: Value, x: Value) -> Result<Value> {
    reflector_below(graph, j, j, x)
}

/// The unit vector whose reflection zeroes column `j` below a row; a zero vector if the column is zero.
pub(super) fn reflector_below(graph: &mut Graph, j: Value, row: Value, x: Value) -> Result<Value> {
    let m = graph.ty(x).shape.sizes()[1];
    let rows = axis_indices(graph, 1, m)?;
    let column = slice_range(graph, &x, Start::Value(j), 1, 2)?;
    let tall = graph.ty(column).shape.clone();
    let above = graph.less(rows, row)?;
    let zero = constant_like(graph, &column, 0.0)?;
    let column = broadcast_select(graph, &above, &zero, &column, &tall)?;
    // Scaled again: a column may be smaller than the matrix by the whole range of exponents.
    let scale = magnitude(graph, &column)?;
    let column = graph.divide(column, scale)?;
    let norm = norm_of(graph, column)?;
    let head = slice_range(graph, &column, Start::Value(row), 1, 1)?;
    let size = graph.abs(head)?;
    let shape = graph.ty(size).shape.clone();
    let nothing = graph.equal(size, 0)?;
    let one = constant_like(graph, &size, 1.0)?;
    let divisor = broadcast_select(graph, &nothing, &one, &size, &shape)?;
    let sign = graph.divide(head, divisor)?;
    let one = constant_like(graph, &sign, 1.0)?;
    let sign = broadcast_select(graph, &nothing, &one, &sign, &shape)?;
    let shift = graph.multiply(sign, norm)?;
    let at = graph.equal(rows, row)?;
    let shift = graph.broadcast(shift, tall.clone(), Axes::All)?;
    let shift = broadcast_select(graph, &at, &shift, &zero, &tall)?;
    let vector = graph.add(column, shift)?;
    let length = norm_of(graph, vector)?;
    let nothing = graph.equal(length, 0)?;
    let one = constant_like(graph, &length, 1.0)?;
    let length = broadcast_select(graph, &nothing, &one, &length, &shape)?;
    graph.divide(vector, length)
}

/// The norms of columns of rank 3.
fn norm_of(graph: &mut Graph, column: Value) -> Result<Value> {
    let squares = square(graph, &column)?;
    let sum = graph.sum(squares, [1], true)?;
    graph.sqrt(sum)
}

/// `x` reflected at the hyperplane orthogonal to a unit vector.
pub(super) fn reflect(graph: &mut Graph, vector: Value, x: Value) -> Result<Value> {
    let row = adjoint(graph, &vector)?;
    let along = product(graph, &row, &x)?;
    let twice = graph.multiply(vector, 2)?;
    let update = product(graph, &twice, &along)?;
    graph.subtract(x, update)
}

/// The determinant: in closed form for up to three rows, else by LU.
///
/// # Errors
/// The errors of the definition's ops.
pub fn determinant<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let batch = Batch::new(b, x)?;
    let determinant = match batch.rows {
        0 => b.full(Shape::new(&[batch.count]), batch.working, 1)?,
        1 => b.reshape_to(batch.value.clone(), Shape::new(&[batch.count]))?,
        2 => minor(b, &batch.value, [0, 1], [0, 1])?,
        3 => {
            let mut terms = Vec::new();
            for (column, others) in [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])] {
                let head = element(b, &batch.value, 0, column)?;
                let rest = minor(b, &batch.value, [1, 2], others)?;
                terms.push(b.multiply(head, rest)?);
            }
            let difference = b.subtract(terms[0].clone(), terms[1].clone())?;
            b.add(difference, terms[2].clone())?
        }
        _ => determinant_by_lu(b, &batch)?,
    };
    batch.restore_leading_axes(b, &determinant, batch.dtype)
}

/// One element of each matrix.
fn element<B: Builder>(b: &mut B, x: &B::V, row: i64, column: i64) -> Result<B::V> {
    let count = b.ty(x).shape.sizes()[0];
    let value = slice_range(b, x, row, 1, 1)?;
    let value = slice_range(b, &value, column, 1, 2)?;
    b.reshape_to(value, Shape::new(&[count]))
}

/// The determinant of two rows and two columns.
fn minor<B: Builder>(b: &mut B, x: &B::V, rows: [i64; 2], columns: [i64; 2]) -> Result<B::V> {
    let (first, last) = (element(b, x, rows[0], columns[0])?, element(b, x, rows[1], columns[1])?);
    let down = b.multiply(first, last)?;
    let (first, last) = (element(b, x, rows[0], columns[1])?, element(b, x, rows[1], columns[0])?);
    let up = b.multiply(first, last)?;
    b.subtract(down, up)
}

fn determinant_by_lu<B: Builder>(b: &mut B, batch: &Batch<B::V>) -> Result<B::V> {
    let n = batch.rows;
    let (permutation, _, upper) = b.lu(batch.value.clone())?;
    let diagonal = b.take_diagonal(upper, 0)?;
    let size = b.product(diagonal, [1], false)?;
    let odd = odd_permutation(b, permutation, n)?;
    let negative = b.negate(size.clone())?;
    b.select(odd, negative, size)
}

/// Whether the determinant of each permutation matrix of `n` rows is -1, from the number of inversions.
pub(super) fn odd_permutation<B: Builder>(b: &mut B, permutation: B::V, n: usize) -> Result<B::V> {
    let permutation = b.not_equal(permutation, 0)?;
    let order = b.argmax(permutation, Some(AxisRef::Index(1)), false, TieBreak::Low, DType::S32)?;
    let before = b.new_axis(order.clone(), 2, None)?;
    let after = b.new_axis(order, 1, None)?;
    let wrong = b.greater(before, after)?;
    let (rows, columns) = (axis_indices(b, 1, n)?, axis_indices(b, 2, n)?);
    let earlier = b.less(rows, columns)?;
    let wrong = b.logical_and(wrong, earlier)?;
    let inversions = b.sum(wrong, [1, 2], false)?;
    b.remainder(inversions, 2)
}
