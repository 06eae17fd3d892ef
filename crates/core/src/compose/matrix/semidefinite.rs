//! The lower factor of a singular matrix without negative eigenvalues. Such a matrix has many lower factors; this one
//! has nonzero columns only for rows that are independent of the rows above them.
//!
//! Without pivoting, Cholesky's method takes square roots of the rounding errors of zeros. With diagonal pivoting
//! (Higham, "Analysis of the Cholesky Decomposition of a Semi-definite Matrix", 1990) it ends at the rank, with a
//! root B, B B* = A, that is not triangular. The modified Gram-Schmidt method on the rows of B makes it triangular
//! (Björck, "Solving Linear Least Squares Problems by Gram-Schmidt Orthogonalization", 1967).

use super::batch::{
    adjoint, axis_indices, broadcast_select, constant_like, machine_epsilon, nan_unless, product, real_part,
    repeat, slice_range, square,
};
use crate::builder::{BuildCreate, BuildElementwise, BuildReduce, BuildShape, Start};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::TieBreak;
use crate::shape::{Axes, Axis};

/// The factors of matrices of rank 3; only the lower triangles are read. All elements are NaN if an eigenvalue is
/// negative by more than rounding errors.
pub(super) fn factor(graph: &mut Graph, x: Value) -> Result<Value> {
    let ty = graph.ty(x).clone();
    let n = ty.shape.sizes()[1];
    let (lower, strictly) = (graph.tril(x, 0)?, graph.tril(x, -1)?);
    let upper = adjoint(graph, &strictly)?;
    let diagonal = graph.take_diagonal(x, 0)?;
    let diagonal = real_part(graph, &diagonal)?;
    let whole = graph.add(lower, upper)?;
    let zeros = graph.zeros_like(x)?;
    // The bound for the rounding error of a zero, relative to the minuend.
    let tolerance = 4.0 * n as f64 * machine_epsilon(ty.dtype);
    let flat = graph.ty(diagonal).shape.clone();
    let used = graph.full(flat, DType::Bool, false)?;
    let state = repeat(graph, n, &[whole, zeros, used], &[diagonal], |graph, j, state, captures| {
        pivot(graph, j, (state[0], state[1], state[2]), captures[0], tolerance)
    })?;
    let (rest, root, used) = (state[0], state[1], state[2]);

    let sizes = graph.sqrt(diagonal)?;
    let tall = graph.new_axis(sizes, -1, None)?;
    let good = {
        let wide = graph.new_axis(sizes, 1, None)?;
        let bound = graph.multiply(tall, wide)?;
        let bound = graph.multiply(bound, tolerance)?;
        let remaining = graph.abs(rest)?;
        let small = graph.less_equal(remaining, bound)?;
        let (own, other) = (graph.new_axis(used, -1, None)?, graph.new_axis(used, 1, None)?);
        let done = graph.logical_or(own, other)?;
        let fits = graph.logical_or(small, done)?;
        let fits = graph.all(fits, [1, 2], true)?;
        let proper = graph.greater_equal(tall, 0)?;
        let proper = graph.all(proper, [1, 2], true)?;
        graph.logical_and(fits, proper)?
    };
    let state = repeat(graph, n, &[root, zeros], &[tall], |graph, i, state, captures| {
        column(graph, i, (state[0], state[1]), captures[0], tolerance)
    })?;
    nan_unless(graph, &good, &state[1])
}

/// Step `j` of the root. It returns the remaining matrix, the columns so far, and which rows were pivots.
fn pivot(
    graph: &mut Graph,
    j: Value,
    (rest, root, used): (Value, Value, Value),
    diagonal: Value,
    tolerance: f64,
) -> Result<Vec<Value>> {
    let ty = graph.ty(rest).clone();
    let n = ty.shape.sizes()[1];
    let remaining = graph.take_diagonal(rest, 0)?;
    let remaining = real_part(graph, &remaining)?;
    let flat = graph.ty(remaining).shape.clone();
    let none = graph.less_equal(diagonal, 0)?;
    let none = graph.logical_or(none, used)?;
    let (zero, one) = (constant_like(graph, &remaining, 0.0)?, constant_like(graph, &remaining, 1.0)?);
    let divisor = broadcast_select(graph, &none, &one, &diagonal, &flat)?;
    let ratios = graph.divide(remaining, divisor)?;
    let ratios = broadcast_select(graph, &none, &zero, &ratios, &flat)?;
    let greatest = graph.reduce_max(ratios, [1], true)?;
    let is_pivot = graph.greater(greatest, tolerance)?;
    let at = graph.argmax(ratios, Some(Axis(1).into()), true, TieBreak::Low, DType::S32)?;
    let rows = axis_indices(graph, 1, n)?;
    let rows = graph.squeeze(rows, 2)?;
    let hit = graph.equal(rows, at)?;
    let hit = graph.logical_and(hit, is_pivot)?;

    let head = broadcast_select(graph, &hit, &remaining, &zero, &flat)?;
    let head = graph.sum(head, [1], true)?;
    let single = graph.ty(head).shape.clone();
    let head = broadcast_select(graph, &is_pivot, &head, &one, &single)?;
    let head = graph.sqrt(head)?;
    let head = graph.new_axis(head, -1, None)?;
    let chosen = graph.as_type(hit, ty.dtype)?;
    let chosen = graph.new_axis(chosen, -1, None)?;
    let column = product(graph, &rest, &chosen)?;
    let column = graph.divide(column, head)?;
    let tall = graph.ty(column).shape.clone();
    let zero = constant_like(graph, &column, 0.0)?;
    let blank = graph.new_axis(used, -1, None)?;
    let column = broadcast_select(graph, &blank, &zero, &column, &tall)?;
    let row = adjoint(graph, &column)?;
    let update = product(graph, &column, &row)?;
    let rest = graph.subtract(rest, update)?;
    let root = graph.put_slice(root, &[0.into(), 0.into(), Start::Value(j)], column)?;
    Ok(vec![rest, root, graph.logical_or(used, hit)?])
}

/// Column `i` of the factor, and the rows of the root without their components along it.
fn column(
    graph: &mut Graph,
    i: Value,
    (root, lower): (Value, Value),
    sizes: Value,
    tolerance: f64,
) -> Result<Vec<Value>> {
    let n = graph.ty(root).shape.sizes()[1];
    let row = slice_range(graph, &root, Start::Value(i), 1, 1)?;
    let squares = square(graph, &row)?;
    let norm = graph.sum(squares, [1, 2], true)?;
    let norm = graph.sqrt(norm)?;
    let single = graph.ty(norm).shape.clone();
    let own = slice_range(graph, &sizes, Start::Value(i), 1, 1)?;
    let bound = graph.multiply(own, tolerance)?;
    let counts = graph.greater(norm, bound)?;
    let (zero, one) = (constant_like(graph, &norm, 0.0)?, constant_like(graph, &norm, 1.0)?);
    let divisor = broadcast_select(graph, &counts, &norm, &one, &single)?;
    let direction = graph.divide(row, divisor)?;
    let wide = graph.ty(direction).shape.clone();
    let nothing = constant_like(graph, &direction, 0.0)?;
    let direction = broadcast_select(graph, &counts, &direction, &nothing, &wide)?;
    let norm = broadcast_select(graph, &counts, &norm, &zero, &single)?;

    let along = adjoint(graph, &direction)?;
    let along = product(graph, &root, &along)?;
    let tall = graph.ty(along).shape.clone();
    let rows = axis_indices(graph, 1, n)?;
    let (below, on) = (graph.greater(rows, i)?, graph.equal(rows, i)?);
    let dtype = graph.ty(along).dtype;
    let norm = graph.as_type(norm, dtype)?;
    let norm = graph.broadcast(norm, tall.clone(), Axes::All)?;
    let edge = broadcast_select(graph, &on, &norm, &nothing, &tall)?;
    let column = broadcast_select(graph, &below, &along, &edge, &tall)?;
    let update = product(graph, &column, &direction)?;
    let root = graph.subtract(root, update)?;
    let lower = graph.put_slice(lower, &[0.into(), 0.into(), Start::Value(i)], column)?;
    Ok(vec![root, lower])
}
