//! GMRES with restarts (Saad and Schultz, GMRES: A Generalized Minimal Residual Algorithm for Solving Nonsymmetric Linear
//! Systems, 1986), preconditioned on the right.
//!
//! The basis is orthogonalized by the classical Gram-Schmidt method, twice, in products with the whole basis (Giraud, Langou,
//! Rozložník and van den Eshof, Rounding Error Analysis of the Classical Gram-Schmidt Orthogonalization Process, 2005).
//! The rotations that make the Hessenberg matrix triangular are kept as their product, so that a new column takes one
//! product with it.

use super::iteration::{Stepped, Target};
use super::{Problem, vectors};
use crate::builder::{
    BuildCreate, BuildElementwise, BuildLinalg, BuildMatrix, BuildReduce, BuildShape, Start,
};
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::region;
use crate::graph::{Graph, Value};
use crate::op::Transform;
use crate::shape::{Axes, Shape};

/// A row or a column of matrices, one for each lane, at a position of an axis.
fn row(graph: &mut Graph, x: Value, position: Value, axis: i64) -> Result<Value> {
    let part = graph.slice_along_axis(x, Start::Value(position), 1, axis, 1)?;
    graph.squeeze(part, axis)
}

/// The matrices with a row or a column replaced.
fn put(graph: &mut Graph, x: Value, position: Value, axis: usize, part: Value) -> Result<Value> {
    let part = graph.new_axis(part, axis as i64, None)?;
    let mut starts = vec![Start::Index(0); 3];
    starts[axis] = Start::Value(position);
    graph.put_slice(x, &starts, part)
}

/// For each lane the product of a matrix and a vector.
fn product(graph: &mut Graph, matrix: Value, vector: Value) -> Result<Value> {
    graph.dot_general(matrix, 2, 0, vector, 1, 0)
}

/// For each lane the combination of the rows of a matrix.
fn combination(graph: &mut Graph, coefficients: Value, rows: Value) -> Result<Value> {
    graph.dot_general(coefficients, 1, 0, rows, 1, 0)
}

/// The elements of a vector at a position: one number for each lane.
fn element(graph: &mut Graph, x: Value, position: Value) -> Result<Value> {
    row(graph, x, position, 1)
}

/// A cycle: the solution with the least residual in the space that `restart` products span. It ends early where the residual
/// is small enough.
pub(super) fn cycle(
    graph: &mut Graph,
    problem: &Problem<'_>,
    captures: &[Value],
    target: &Target,
    x: Value,
    r: Value,
    restart: usize,
) -> Result<Stepped> {
    let (lanes, n, dtype) =
        (problem.coordinates.lanes(), problem.coordinates.count(), problem.coordinates.dtype());
    // More directions than unknowns are dependent.
    let m = restart.min(n);
    let size = vectors::norm(graph, r)?;
    let size = graph.as_type(size, dtype)?;
    let unit = normalized(graph, r, size)?;
    let begin = graph.constant(DType::S32, 0)?;
    let basis = graph.full(Shape::new(&[lanes, m + 1, n]), dtype, 0)?;
    let basis = put(graph, basis, begin, 1, unit)?;
    let rotations = graph.eye(Shape::new(&[lanes, m + 1, m + 1]), dtype)?;
    let triangle = graph.eye(Shape::new(&[lanes, m, m]), dtype)?;
    let used = graph.full(Shape::new(&[lanes, m]), dtype, 0)?;
    let open = graph.not_equal(size, 0)?;
    let state = [begin, basis, rotations, triangle, used, open];
    let mut all = captures.to_vec();
    all.extend([size, target.tolerance]);
    let given = captures.len();

    let last = region::while_(
        graph,
        None,
        &state,
        &all,
        |graph, state, _| {
            let may_go_on = graph.less(state[0], m as i64)?;
            let any = graph.any(state[5], Axes::All, false)?;
            graph.logical_and(may_go_on, any)
        },
        |graph, state, all| {
            let &[at, basis, rotations, triangle, used, open] = state else {
                unreachable!("six values are carried")
            };
            let (captures, size, tolerance) = (&all[..given], all[given], all[given + 1]);
            let next = graph.add(at, 1)?;
            let direction = row(graph, basis, at, 1)?;
            let direction = problem.precondition(graph, captures, direction)?;
            let image = problem.apply(graph, captures, direction)?;
            let (image, column, length) = orthogonalized(graph, basis, image)?;
            let image = normalized(graph, image, length)?;

            // The new column of the Hessenberg matrix, with the rotations so far, and the rotation of its last two elements.
            let positions = graph.iota(Shape::new(&[1, m + 1]), DType::S32, Some(1.into()))?;
            let is_next = graph.equal(positions, next)?;
            let below = vectors::spread(graph, length, 2)?;
            let column = graph.select(is_next, below, column)?;
            let rotated = product(graph, rotations, column)?;
            let (a, b) = (element(graph, rotated, at)?, element(graph, rotated, next)?);
            let radius = radius(graph, a, b)?;
            let is_regular = graph.not_equal(radius, 0)?;
            let extends = graph.logical_and(open, is_regular)?;
            let turned = rotated_rows(graph, rotations, (at, next), (a, b), radius)?;
            let rotations = vectors::choose(graph, extends, turned, rotations)?;
            let column = product(graph, rotations, column)?;
            let column = graph.slice_along_axis(column, 0, m as i64, 1, 1)?;
            let unit = graph.iota(Shape::new(&[lanes, m]), DType::S32, Some(1.into()))?;
            let is_here = graph.equal(unit, at)?;
            let unit = graph.as_type(is_here, dtype)?;
            let column = vectors::choose(graph, extends, column, unit)?;

            let part = element_of_first_column(graph, rotations, next)?;
            let residual = graph.multiply(part, size)?;
            let residual = graph.abs(residual)?;
            let is_large = graph.greater(residual, tolerance)?;
            let goes_on = graph.logical_and(extends, is_large)?;
            let has_next = graph.not_equal(length, 0)?;
            let mark = graph.as_type(extends, dtype)?;
            let mark = vectors::scale(graph, mark, unit)?;
            Ok(vec![
                next,
                put(graph, basis, next, 1, image)?,
                rotations,
                put(graph, triangle, at, 2, column)?,
                graph.add(used, mark)?,
                graph.logical_and(goes_on, has_next)?,
            ])
        },
    )?;
    let (basis, rotations, triangle, used) = (last[1], last[2], last[3], last[4]);
    let first = graph.slice_along_axis(rotations, 0, 1, 2, 1)?;
    let first = graph.squeeze(first, 2)?;
    let first = graph.slice_along_axis(first, 0, m as i64, 1, 1)?;
    let reduced = graph.multiply(first, used)?;
    let reduced = vectors::scale(graph, size, reduced)?;
    let weights = graph.triangular_solve(triangle, reduced, false, true, Transform::None)?;
    let basis = graph.slice_along_axis(basis, 0, m as i64, 1, 1)?;
    let correction = combination(graph, weights, basis)?;
    let correction = problem.precondition(graph, captures, correction)?;
    Ok(Stepped { x: graph.add(x, correction)?, residual: None, carried: Vec::new() })
}

/// Vectors divided by their norms; zeros stay zeros.
fn normalized(graph: &mut Graph, x: Value, norm: Value) -> Result<Value> {
    let ones = graph.ones_like(norm)?;
    let inverse = vectors::quotient(graph, ones, norm)?;
    vectors::scale(graph, inverse, x)
}

/// Vectors without their components along the basis, the components, and what remains of their norms: 0 where that is
/// rounding.
fn orthogonalized(graph: &mut Graph, basis: Value, x: Value) -> Result<(Value, Value, Value)> {
    let dtype = graph.ty(x).dtype;
    let dual = vectors::conjugate(graph, basis)?;
    let before = vectors::norm(graph, x)?;
    let first = product(graph, dual, x)?;
    let along = combination(graph, first, basis)?;
    let rest = graph.subtract(x, along)?;
    let second = product(graph, dual, rest)?;
    let along = combination(graph, second, basis)?;
    let rest = graph.subtract(rest, along)?;
    let components = graph.add(first, second)?;
    let length = vectors::norm(graph, rest)?;
    let rounding = graph.multiply(before, dtype.to_real().epsilon())?;
    let is_rounding = graph.less_equal(length, rounding)?;
    let length = graph.select(is_rounding, 0, length)?;
    Ok((rest, components, graph.as_type(length, dtype)?))
}

/// The norms of pairs of numbers.
fn radius(graph: &mut Graph, a: Value, b: Value) -> Result<Value> {
    let dtype = graph.ty(a).dtype;
    let (a, b) = (graph.abs(a)?, graph.abs(b)?);
    let radius = graph.hypot(a, b)?;
    graph.as_type(radius, dtype)
}

/// Matrices whose rows at two positions are rotated so that numbers `a` and `b` there would become their norm and 0.
fn rotated_rows(
    graph: &mut Graph,
    x: Value,
    (at, next): (Value, Value),
    (a, b): (Value, Value),
    radius: Value,
) -> Result<Value> {
    let (cosine, sine) = (vectors::quotient(graph, a, radius)?, vectors::quotient(graph, b, radius)?);
    let (upper, lower) = (row(graph, x, at, 1)?, row(graph, x, next, 1)?);
    let adjoint = (vectors::conjugate(graph, cosine)?, vectors::conjugate(graph, sine)?);
    let first = vectors::scale(graph, adjoint.0, upper)?;
    let first = vectors::add_scaled(graph, first, adjoint.1, lower)?;
    let second = vectors::scale(graph, cosine, lower)?;
    let second = vectors::subtract_scaled(graph, second, sine, upper)?;
    let x = put(graph, x, at, 1, first)?;
    put(graph, x, next, 1, second)
}

/// The elements in the first column of matrices, in a row.
fn element_of_first_column(graph: &mut Graph, x: Value, position: Value) -> Result<Value> {
    let row = row(graph, x, position, 1)?;
    let first = graph.slice_along_axis(row, 0, 1, 1, 1)?;
    graph.squeeze(first, 1)
}
