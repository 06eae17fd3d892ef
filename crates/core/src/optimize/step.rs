//! Steps that make linearized residuals zero.

use super::function::Function;
use super::state;
use crate::builder::{BuildCreate, BuildElementwise, BuildLinalg, BuildMatrix, BuildReduce, BuildShape};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::{LinearMethod, LinearSolver, QrMode, Tolerance, Transform};
use crate::shape::Shape;
use crate::solvers::{Problem, iteration, vectors};

/// How far the residuals of the linearization decrease in a step of Newton and Krylov. The iteration converges by this factor.
const FORCING: f64 = 1e-3;
/// The most cycles for a step. A step that is not found so soon is worth trying as it is.
const MOST_CYCLES: usize = 10;

/// How a step is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// By LU of the Jacobian, which is square.
    Lu,
    /// By GMRES with products with the Jacobian.
    Krylov {
        /// The products of a cycle.
        restart: usize,
    },
}

/// A step.
pub(super) struct Step {
    pub(super) p: Value,
    /// The product of the Jacobian and the step.
    pub(super) image: Value,
    /// Where the step is what was wanted, so that its length says how far the end is. Elsewhere the Jacobian is singular.
    pub(super) exact: Value,
}

impl Direction {
    /// The step from `x`, where the residuals are `r`.
    pub(super) fn step(
        self,
        graph: &mut Graph,
        function: &Function<'_>,
        captures: &[Value],
        x: Value,
        r: Value,
    ) -> Result<Step> {
        match self {
            Direction::Krylov { restart } => krylov(graph, function, captures, restart, x, r),
            Direction::Lu => {
                let jacobian = function.jacobian(graph, captures, x)?;
                let rhs = graph.negate(r)?;
                let p = graph.solve(jacobian, rhs)?;
                let (p, _) = or_damped(graph, jacobian, r, p)?;
                zeroing(graph, r, p, |graph, p| product(graph, jacobian, p))
            }
        }
    }
}

/// A step by GMRES. It need not be exact: the search decides how much it is worth.
fn krylov(
    graph: &mut Graph,
    function: &Function<'_>,
    captures: &[Value],
    restart: usize,
    x: Value,
    r: Value,
) -> Result<Step> {
    let (map, coordinates) = (function.linearized()?, function.widened());
    let mut given = function.unknowns.split(graph, x)?;
    given.extend(captures);
    let problem = Problem { coordinates: &coordinates, map: &map, preconditioner: None };
    let method = LinearMethod::Gmres { restart };
    let solver =
        LinearSolver { method, rtol: Tolerance(FORCING), atol: Tolerance(0.0), maxiter: Some(MOST_CYCLES) };
    // Products of small residuals would vanish.
    let norm = state::norm(graph, r)?;
    let rhs = state::divided(graph, r, norm)?;
    let rhs = graph.negate(rhs)?;
    let (unit, _) = iteration::run(graph, &problem, &solver, &given, rhs, None)?;
    let p = vectors::scale(graph, norm, unit)?;
    zeroing(graph, r, p, |graph, p| problem.apply(graph, &given, p))
}

/// A step that is to make the linearized residuals zero.
fn zeroing(
    graph: &mut Graph,
    r: Value,
    p: Value,
    multiply: impl FnOnce(&mut Graph, Value) -> Result<Value>,
) -> Result<Step> {
    let image = multiply(graph, p)?;
    let rest = graph.add(image, r)?;
    let (rest, norm) = (state::norm(graph, rest)?, state::norm(graph, r)?);
    let small = graph.multiply(norm, 0.1)?;
    Ok(Step { p, image, exact: graph.less_equal(rest, small)? })
}

/// The products of matrices and vectors.
pub(super) fn product(graph: &mut Graph, matrix: Value, x: Value) -> Result<Value> {
    graph.dot_general(matrix, 2, 0, x, 1, 0)
}

/// The products of transposed matrices and vectors.
pub(super) fn transposed_product(graph: &mut Graph, matrix: Value, x: Value) -> Result<Value> {
    graph.dot_general(matrix, 1, 0, x, 1, 0)
}

/// The steps with the least `|J p + r|`, by QR.
fn least_squares(graph: &mut Graph, jacobian: Value, r: Value) -> Result<Value> {
    let (q, triangle) = graph.qr(jacobian, QrMode::Reduced, 0.0)?;
    let rhs = transposed_product(graph, q, r)?;
    let p = graph.triangular_solve(triangle, rhs, false, true, Transform::None)?;
    graph.negate(p)
}

/// The steps with the least `|J p + r|^2 + |w p|^2`, by QR of the Jacobian above the diagonal matrix of `w`: no product of the
/// Jacobian with itself loses digits.
pub(super) fn damped(graph: &mut Graph, jacobian: Value, r: Value, weights: Value) -> Result<Value> {
    let ty = graph.ty(weights).clone();
    let &[lanes, n] = ty.shape.sizes() else { unreachable!("a vector for each lane") };
    let eye = graph.eye(Shape::new(&[lanes, n, n]), ty.dtype)?;
    let rows = graph.new_axis(weights, 2, None)?;
    let diagonal = graph.multiply(eye, rows)?;
    let matrix = graph.concatenate(&[jacobian, diagonal], 1)?;
    let zeros = graph.full(Shape::new(&[lanes, n]), ty.dtype, 0)?;
    let rhs = graph.concatenate(&[r, zeros], 1)?;
    least_squares(graph, matrix, rhs)
}

/// The steps, and where one is not finite because the Jacobian is singular, one that is damped a little.
/// The mask holds for the others.
fn or_damped(graph: &mut Graph, jacobian: Value, r: Value, p: Value) -> Result<(Value, Value)> {
    let dtype = graph.ty(p).dtype;
    let finite = state::all_finite(graph, p)?;
    let squares = graph.multiply(jacobian, jacobian)?;
    let columns = graph.sum(squares, 1, false)?;
    let most = graph.reduce_max(columns, 1, false)?;
    let weight = graph.sqrt(most)?;
    let weight = graph.multiply(weight, dtype.epsilon().to_f64().powf(0.25))?;
    let zero = graph.equal(weight, 0)?;
    let weight = graph.select(zero, 1, weight)?;
    let weights = graph.ones_like(p)?;
    let weights = vectors::scale(graph, weight, weights)?;
    let regular = damped(graph, jacobian, r, weights)?;
    Ok((vectors::choose(graph, finite, p, regular)?, finite))
}
