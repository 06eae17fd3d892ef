//! Steps that make linearized residuals zero, or as small as they can be.

use super::function::Function;
use super::state;
use crate::builder::{BuildCreate, BuildElementwise, BuildLinalg, BuildMatrix, BuildReduce, BuildShape};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::op::{LinearMethod, LinearSolver, QrMode, Tolerance, Transform};
use crate::scalar::Number;
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
    /// By QR of the Jacobian, which has as many rows as columns or more.
    Qr,
}

/// A step.
pub(super) struct Step {
    pub(super) p: Value,
    /// The product of the Jacobian and the step.
    pub(super) image: Value,
    /// Where the step is what was wanted, so that its length says how far the end is. Elsewhere the Jacobian is singular.
    pub(super) exact: Value,
    /// The cosine of the residuals and the range of the Jacobian, which is 0 at a minimum of their norm. `None` where zeros
    /// are wanted.
    pub(super) stationary: Option<Value>,
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
                let reduced = Reduced::new(graph, jacobian, r)?;
                let (p, _) = or_damped(graph, jacobian, &reduced, p)?;
                zeroing(graph, r, p, |graph, p| product(graph, jacobian, p))
            }
            Direction::Qr => {
                let jacobian = function.jacobian(graph, captures, x)?;
                let reduced = Reduced::new(graph, jacobian, r)?;
                let whole = reduced.step(graph)?;
                let (p, exact) = or_damped(graph, jacobian, &reduced, whole)?;
                let stationary = Some(reduced.offset(graph, r)?);
                Ok(Step { p, image: product(graph, jacobian, p)?, exact, stationary })
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
    Ok(Step { p, image, exact: graph.less_equal(rest, small)?, stationary: None })
}

/// The products of matrices and vectors.
pub(super) fn product(graph: &mut Graph, matrix: Value, x: Value) -> Result<Value> {
    graph.dot_general(matrix, 2, 0, x, 1, 0)
}

/// The products of transposed matrices and vectors.
pub(super) fn transposed_product(graph: &mut Graph, matrix: Value, x: Value) -> Result<Value> {
    graph.dot_general(matrix, 1, 0, x, 1, 0)
}

/// A problem of least squares, `|J p + r|`, as one of as many equations as unknowns, by QR: no product of the Jacobian with
/// itself loses digits.
pub(super) struct Reduced {
    triangle: Value,
    rhs: Value,
}

impl Reduced {
    /// The problem of a triangle and a right-hand side.
    pub(super) fn of(triangle: Value, rhs: Value) -> Reduced {
        Reduced { triangle, rhs }
    }

    /// The triangle and the right-hand side.
    pub(super) fn parts(&self) -> (Value, Value) {
        (self.triangle, self.rhs)
    }

    pub(super) fn new(graph: &mut Graph, jacobian: Value, r: Value) -> Result<Reduced> {
        let ty = graph.ty(jacobian).clone();
        let &[lanes, m, n] = ty.shape.sizes() else { unreachable!("a matrix for each lane") };
        let (mut matrix, mut rhs) = (jacobian, r);
        if m < n {
            let rows = graph.full(Shape::new(&[lanes, n - m, n]), ty.dtype, 0)?;
            let zeros = graph.full(Shape::new(&[lanes, n - m]), ty.dtype, 0)?;
            matrix = graph.concatenate(&[matrix, rows], 1)?;
            rhs = graph.concatenate(&[rhs, zeros], 1)?;
        }
        let (q, triangle) = graph.qr(matrix, QrMode::Reduced, 0.0)?;
        Ok(Reduced { triangle, rhs: transposed_product(graph, q, rhs)? })
    }

    /// The steps with the least `|J p + r|`: infinite or NaN where the Jacobian has dependent columns.
    pub(super) fn step(&self, graph: &mut Graph) -> Result<Value> {
        // A zero on the diagonal would be an error where the values are known.
        let ty = graph.ty(self.triangle).clone();
        let (eye, zero) = (graph.eye(ty.shape, DType::Bool)?, graph.equal(self.triangle, 0)?);
        let singular = graph.logical_and(eye, zero)?;
        let triangle = graph.select(singular, Number::Float(f64::NAN), self.triangle)?;
        let p = graph.triangular_solve(triangle, self.rhs, false, true, Transform::None)?;
        graph.negate(p)
    }

    /// The steps with the least `|J p + r|^2 + |w p|^2`.
    pub(super) fn damped(&self, graph: &mut Graph, weights: Value) -> Result<Value> {
        let ty = graph.ty(weights).clone();
        let &[lanes, n] = ty.shape.sizes() else { unreachable!("a vector for each lane") };
        let eye = graph.eye(Shape::new(&[lanes, n, n]), ty.dtype)?;
        let rows = graph.new_axis(weights, 2, None)?;
        let diagonal = graph.multiply(eye, rows)?;
        let matrix = graph.concatenate(&[self.triangle, diagonal], 1)?;
        let zeros = graph.full(Shape::new(&[lanes, n]), ty.dtype, 0)?;
        let rhs = graph.concatenate(&[self.rhs, zeros], 1)?;
        Reduced::new(graph, matrix, rhs)?.step(graph)
    }

    /// The cosine of the residuals and the range of the Jacobian (Bates and Watts, A Relative Offset Orthogonality Convergence
    /// Criterion for Nonlinear Least Squares, 1981).
    pub(super) fn offset(&self, graph: &mut Graph, r: Value) -> Result<Value> {
        let (inside, whole) = (state::norm(graph, self.rhs)?, state::norm(graph, r)?);
        vectors::quotient(graph, inside, whole)
    }
}

/// The steps, and where one is not finite because the Jacobian is singular, one that is damped a little.
/// The mask holds for the others.
fn or_damped(graph: &mut Graph, jacobian: Value, reduced: &Reduced, p: Value) -> Result<(Value, Value)> {
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
    let regular = reduced.damped(graph, weights)?;
    Ok((vectors::choose(graph, finite, p, regular)?, finite))
}
