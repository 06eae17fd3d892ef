//! Directions of descent, from what is known of the curvature.
//!
//! BFGS (Broyden, Fletcher, Goldfarb and Shanno, 1970) keeps an approximate inverse of the Hessian; L-BFGS (Nocedal, Updating
//! Quasi-Newton Matrices with Limited Storage, 1980) keeps the last steps and changes of the gradient. Newton's method forms the
//! Hessian and takes the magnitudes of its eigenvalues, so that it descends from saddles, too (Nocedal and Wright, Numerical
//! Optimization, 2006, section 3.4).

use super::objective::Objective;
use super::state;
use super::step::{product, transposed_product};
use crate::builder::{BuildCreate, BuildElementwise, BuildMatrix, BuildReduce, BuildShape};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::shape::Shape;
use crate::solvers::vectors;

/// The most sweeps for eigenvalues.
const SWEEPS: usize = 50;

/// What is known of the curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curvature {
    /// An approximate inverse of the Hessian.
    Bfgs,
    /// The last steps, this many at most.
    Lbfgs(usize),
    /// The Hessian.
    Newton,
}

impl Curvature {
    /// Whether a direction has the length of the step also before the first update.
    pub(super) fn scales_itself(self) -> bool {
        self == Curvature::Newton
    }

    /// What is known before the first step.
    pub(super) fn begin(self, graph: &mut Graph, x: Value) -> Result<Vec<Value>> {
        let ty = graph.ty(x).clone();
        let &[lanes, n] = ty.shape.sizes() else { unreachable!("a vector for each lane") };
        match self {
            Curvature::Newton => Ok(Vec::new()),
            Curvature::Bfgs => Ok(vec![graph.eye(Shape::new(&[lanes, n, n]), ty.dtype)?]),
            Curvature::Lbfgs(history) => {
                let pairs = graph.full(Shape::new(&[lanes, history, n]), ty.dtype, 0)?;
                let factors = graph.full(Shape::new(&[lanes, history]), ty.dtype, 0)?;
                Ok(vec![pairs, pairs, factors, state::numbers(graph, lanes, ty.dtype, 1.0)?])
            }
        }
    }

    /// The direction at `x`, where the gradient is `g`.
    pub(super) fn direction(
        self,
        graph: &mut Graph,
        objective: &Objective<'_>,
        captures: &[Value],
        known: &[Value],
        x: Value,
        g: Value,
    ) -> Result<Value> {
        match self {
            Curvature::Bfgs => {
                let p = product(graph, known[0], g)?;
                graph.negate(p)
            }
            Curvature::Lbfgs(history) => two_loops(graph, known, history, g),
            Curvature::Newton => {
                let hessian = objective.hessian(graph, captures, x)?;
                newton(graph, hessian, g)
            }
        }
    }

    /// What is known after a step `s` and the change `y` of the gradient, in the lanes that moved.
    pub(super) fn update(
        self,
        graph: &mut Graph,
        known: &[Value],
        (s, y): (Value, Value),
        (moved, fresh): (Value, Value),
    ) -> Result<Vec<Value>> {
        if self == Curvature::Newton {
            return Ok(Vec::new());
        }
        let (sy, yy) = (vectors::dot(graph, s, y)?, vectors::dot(graph, y, y)?);
        // Without positive curvature along the step the matrix would lose its definiteness.
        let (length, change) = (state::norm(graph, s)?, state::norm(graph, y)?);
        let least = graph.multiply(length, change)?;
        let least = graph.multiply(least, graph.ty(s).dtype.epsilon().to_f64())?;
        let curved = graph.greater(sy, least)?;
        let updates = graph.logical_and(moved, curved)?;
        let one = graph.ones_like(sy)?;
        let factor = vectors::quotient(graph, one, sy)?;
        let scale = vectors::quotient(graph, sy, yy)?;
        match self {
            Curvature::Newton => unreachable!("it keeps nothing"),
            Curvature::Bfgs => {
                let scaled = vectors::scale(graph, scale, known[0])?;
                let matrix = vectors::choose(graph, fresh, scaled, known[0])?;
                let next = bfgs(graph, matrix, (s, y), factor)?;
                Ok(vec![vectors::choose(graph, updates, next, known[0])?])
            }
            Curvature::Lbfgs(history) => {
                let (steps, changes) = (pushed(graph, known[0], s)?, pushed(graph, known[1], y)?);
                let factors = if history > 1 {
                    let kept = graph.slice_along_axis(known[2], 1, history as i64 - 1, 1, 1)?;
                    let factor = graph.new_axis(factor, 1, None)?;
                    graph.concatenate(&[kept, factor], 1)?
                } else {
                    graph.new_axis(factor, 1, None)?
                };
                let next = [steps, changes, factors, scale];
                let pairs = next.into_iter().zip(known);
                pairs.map(|(next, &known)| vectors::choose(graph, updates, next, known)).collect()
            }
        }
    }

    /// What is known, forgotten in the lanes that begin again.
    pub(super) fn restarted(self, graph: &mut Graph, known: &[Value], again: Value) -> Result<Vec<Value>> {
        match self {
            Curvature::Newton => Ok(Vec::new()),
            Curvature::Bfgs => {
                let ty = graph.ty(known[0]).clone();
                let eye = graph.eye(ty.shape, ty.dtype)?;
                Ok(vec![vectors::choose(graph, again, eye, known[0])?])
            }
            Curvature::Lbfgs(_) => {
                let zeros = graph.zeros_like(known[2])?;
                let factors = vectors::choose(graph, again, zeros, known[2])?;
                let scale = graph.select(again, 1, known[3])?;
                Ok(vec![known[0], known[1], factors, scale])
            }
        }
    }
}

/// The updated inverse: `(1 - r s y') H (1 - r y s') + r s s'`, where `r` is `1 / s'y`.
fn bfgs(graph: &mut Graph, matrix: Value, (s, y): (Value, Value), factor: Value) -> Result<Value> {
    let image = product(graph, matrix, y)?;
    let quadratic = vectors::dot(graph, y, image)?;
    let weight = graph.multiply(quadratic, factor)?;
    let weight = graph.add(weight, 1)?;
    let weight = graph.multiply(weight, factor)?;
    let (row, column) = (graph.new_axis(s, 1, None)?, graph.new_axis(s, 2, None)?);
    let squares = graph.multiply(column, row)?;
    let grown = vectors::scale(graph, weight, squares)?;
    let other = graph.new_axis(image, 1, None)?;
    let mixed = graph.multiply(column, other)?;
    let turned = graph.transpose(mixed, [0, 2, 1])?;
    let mixed = graph.add(mixed, turned)?;
    let mixed = vectors::scale(graph, factor, mixed)?;
    let matrix = graph.add(matrix, grown)?;
    graph.subtract(matrix, mixed)
}

/// The vectors without the oldest, and a new one.
fn pushed(graph: &mut Graph, vectors: Value, newest: Value) -> Result<Value> {
    let history = graph.ty(vectors).shape.sizes()[1];
    let newest = graph.new_axis(newest, 1, None)?;
    if history == 1 {
        return Ok(newest);
    }
    let kept = graph.slice_along_axis(vectors, 1, history as i64 - 1, 1, 1)?;
    graph.concatenate(&[kept, newest], 1)
}

/// The product of the gradient and the inverse that the last steps define (Nocedal and Wright, algorithm 7.4). A factor of 0
/// leaves its step out.
fn two_loops(graph: &mut Graph, known: &[Value], history: usize, g: Value) -> Result<Value> {
    let item = |graph: &mut Graph, of: Value, at: usize| -> Result<Value> {
        let part = graph.slice_along_axis(of, at as i64, 1, 1, 1)?;
        graph.squeeze(part, 1)
    };
    let mut q = g;
    let mut weights = Vec::with_capacity(history);
    for at in (0..history).rev() {
        let (s, y) = (item(graph, known[0], at)?, item(graph, known[1], at)?);
        let factor = item(graph, known[2], at)?;
        let along = vectors::dot(graph, s, q)?;
        let weight = graph.multiply(factor, along)?;
        q = vectors::subtract_scaled(graph, q, weight, y)?;
        weights.push((s, y, factor, weight));
    }
    let mut r = vectors::scale(graph, known[3], q)?;
    for &(s, y, factor, weight) in weights.iter().rev() {
        let along = vectors::dot(graph, y, r)?;
        let back = graph.multiply(factor, along)?;
        let rest = graph.subtract(weight, back)?;
        r = vectors::add_scaled(graph, r, rest, s)?;
    }
    graph.negate(r)
}

/// The step of Newton's method, with the magnitudes of the eigenvalues. Those that rounding may have made are raised.
fn newton(graph: &mut Graph, hessian: Value, g: Value) -> Result<Value> {
    let turned = graph.transpose(hessian, [0, 2, 1])?;
    let hessian = graph.add(hessian, turned)?;
    let hessian = graph.multiply(hessian, 0.5)?;
    let (values, axes) = graph.eigh(hessian, SWEEPS, 0.0)?;
    let values = graph.abs(values)?;
    let most = graph.reduce_max(values, 1, true)?;
    let least = graph.multiply(most, 10.0 * graph.ty(g).dtype.epsilon().to_f64())?;
    let values = graph.max(values, least)?;
    let zero = graph.equal(values, 0)?;
    let values = graph.select(zero, 1, values)?;
    let along = transposed_product(graph, axes, g)?;
    let along = graph.divide(along, values)?;
    let p = product(graph, axes, along)?;
    graph.negate(p)
}
