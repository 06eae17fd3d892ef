//! Arithmetic of vectors, one for each lane, and of numbers, one for each lane.

use crate::builder::{BuildElementwise, BuildReduce, BuildShape};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::shape::Shape;

/// The conjugate; a real value itself.
pub(crate) fn conjugate(graph: &mut Graph, x: Value) -> Result<Value> {
    if graph.ty(x).dtype.is_complex() { graph.conjugate(x) } else { Ok(x) }
}

/// The inner products, the first factor conjugated.
pub(crate) fn dot(graph: &mut Graph, x: Value, y: Value) -> Result<Value> {
    let x = conjugate(graph, x)?;
    let products = graph.multiply(x, y)?;
    graph.sum(products, 1, false)
}

/// The Euclidean norms, which are real.
pub(crate) fn norm(graph: &mut Graph, x: Value) -> Result<Value> {
    let squared = dot(graph, x, x)?;
    let squared = graph.real(squared)?;
    graph.sqrt(squared)
}

/// Numbers with further axes of size 1, for products with a value of that rank.
pub(crate) fn spread(graph: &mut Graph, numbers: Value, rank: usize) -> Result<Value> {
    let mut sizes = vec![1; rank];
    sizes[0] = graph.ty(numbers).shape.size();
    graph.reshape_to(numbers, Shape::new(&sizes))
}

/// The products of numbers and vectors.
pub(crate) fn scale(graph: &mut Graph, numbers: Value, x: Value) -> Result<Value> {
    let numbers = spread(graph, numbers, graph.ty(x).shape.rank())?;
    graph.multiply(numbers, x)
}

/// `y + a x`.
pub(crate) fn add_scaled(graph: &mut Graph, y: Value, a: Value, x: Value) -> Result<Value> {
    let scaled = scale(graph, a, x)?;
    graph.add(y, scaled)
}

/// `y - a x`.
pub(crate) fn subtract_scaled(graph: &mut Graph, y: Value, a: Value, x: Value) -> Result<Value> {
    let scaled = scale(graph, a, x)?;
    graph.subtract(y, scaled)
}

/// `a` in lanes where the mask is not zero, else `b`.
pub(crate) fn choose(graph: &mut Graph, mask: Value, a: Value, b: Value) -> Result<Value> {
    let rank = graph.ty(a).shape.rank();
    let mask = spread(graph, mask, rank)?;
    graph.select(mask, a, b)
}

/// `a / b`, and 0 where `b` is 0.
pub(crate) fn quotient(graph: &mut Graph, a: Value, b: Value) -> Result<Value> {
    let is_zero = graph.equal(b, 0)?;
    let divisor = graph.select(is_zero, 1, b)?;
    let quotient = graph.divide(a, divisor)?;
    graph.select(is_zero, 0, quotient)
}
