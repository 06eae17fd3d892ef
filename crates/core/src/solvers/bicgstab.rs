//! BiCGSTAB (van der Vorst, Bi-CGSTAB: A Fast and Smoothly Converging Variant of Bi-CG, 1992), preconditioned on the right.

use super::iteration::Stepped;
use super::{Problem, vectors};
use crate::builder::{BuildCreate, BuildElementwise};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::shape::Shape;

/// The shadow residual, the direction and its image, and the numbers rho, alpha and omega.
pub(super) fn begin(graph: &mut Graph, r: Value) -> Result<Vec<Value>> {
    let ty = graph.ty(r).clone();
    let (zeros, ones) = (graph.zeros_like(r)?, graph.full(Shape::new(&ty.shape.sizes()[..1]), ty.dtype, 1)?);
    Ok(vec![r, zeros, zeros, ones, ones, ones])
}

/// A step of BiCG, and one that minimizes the residual.
pub(super) fn step(
    graph: &mut Graph,
    problem: &Problem<'_>,
    captures: &[Value],
    x: Value,
    r: Value,
    carried: &[Value],
) -> Result<Stepped> {
    let &[shadow, direction, image, rho_before, alpha, omega] = carried else {
        unreachable!("six values are carried")
    };
    let rho = vectors::dot(graph, shadow, r)?;
    let ratio = vectors::quotient(graph, rho, rho_before)?;
    let factor = vectors::quotient(graph, alpha, omega)?;
    let beta = graph.multiply(ratio, factor)?;
    let direction = vectors::subtract_scaled(graph, direction, omega, image)?;
    let direction = vectors::add_scaled(graph, r, beta, direction)?;
    let toward = problem.precondition(graph, captures, direction)?;
    let image = problem.apply(graph, captures, toward)?;
    let along = vectors::dot(graph, shadow, image)?;
    let alpha = vectors::quotient(graph, rho, along)?;
    let half = vectors::subtract_scaled(graph, r, alpha, image)?;
    let correction = problem.precondition(graph, captures, half)?;
    let corrected = problem.apply(graph, captures, correction)?;
    let squared = vectors::dot(graph, corrected, corrected)?;
    let product = vectors::dot(graph, corrected, half)?;
    let omega = vectors::quotient(graph, product, squared)?;
    let x = vectors::add_scaled(graph, x, alpha, toward)?;
    let x = vectors::add_scaled(graph, x, omega, correction)?;
    let r = vectors::subtract_scaled(graph, half, omega, corrected)?;
    // The next step divides by both.
    let (moves, stabilizes) = (graph.not_equal(alpha, 0)?, graph.not_equal(omega, 0)?);
    let succeeded = graph.logical_and(moves, stabilizes)?;
    let carried = vec![shadow, direction, image, rho, alpha, omega];
    Ok(Stepped { x, residual: Some((r, succeeded)), carried })
}
