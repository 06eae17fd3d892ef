//! Conjugate gradients (Hestenes and Stiefel, Methods of Conjugate Gradients for Solving Linear Systems, 1952), with a
//! preconditioner.

use super::iteration::Stepped;
use super::{Problem, vectors};
use crate::builder::{BuildCreate, BuildElementwise};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::shape::Shape;

/// The direction before, and the product of the residual before and its preconditioned self. There is none before the
/// first: a quotient by 0 is 0.
pub(super) fn begin(graph: &mut Graph, r: Value) -> Result<Vec<Value>> {
    let ty = graph.ty(r).clone();
    let product = graph.full(Shape::new(&ty.shape.sizes()[..1]), ty.dtype, 0)?;
    Ok(vec![graph.zeros_like(r)?, product])
}

/// A step along the next direction, which is conjugate to those before.
pub(super) fn step(
    graph: &mut Graph,
    problem: &Problem<'_>,
    captures: &[Value],
    x: Value,
    r: Value,
    carried: &[Value],
) -> Result<Stepped> {
    let (before, product_before) = (carried[0], carried[1]);
    let z = problem.precondition(graph, captures, r)?;
    let product = vectors::dot(graph, r, z)?;
    let beta = vectors::quotient(graph, product, product_before)?;
    let direction = vectors::add_scaled(graph, z, beta, before)?;
    let image = problem.apply(graph, captures, direction)?;
    let curvature = vectors::dot(graph, direction, image)?;
    let alpha = vectors::quotient(graph, product, curvature)?;
    let x = vectors::add_scaled(graph, x, alpha, direction)?;
    let r = vectors::subtract_scaled(graph, r, alpha, image)?;
    let succeeded = graph.not_equal(alpha, 0)?;
    Ok(Stepped { x, residual: Some((r, succeeded)), carried: vec![direction, product] })
}
