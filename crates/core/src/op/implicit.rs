//! Values that a condition defines, and the solvers of the linear systems of their derivatives.

use std::sync::Arc;

use super::Tolerance;
use crate::region::Region;

/// Operands: the values, then the captures. Outputs: the values.
///
/// The values are a zero of the condition, which the captures determine. How they were computed does not count: their
/// derivative is that of the implicit function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImplicitOp {
    /// The number of operands that are values.
    pub values: usize,
    /// The number of leading axes that all values have and that count independent systems.
    pub lanes: usize,
    /// Solves the linear systems of the derivative.
    pub solver: LinearSolver,
    /// Whether the condition is known to be holomorphic in complex values. Otherwise their real and imaginary parts are
    /// separate unknowns.
    pub holomorphic: bool,
    /// The region from the values and the captures to one residual for each value, of its type.
    pub condition: Arc<Region>,
    /// The region from residuals and the captures to an approximate solution of the condition's linearization.
    pub preconditioner: Option<Arc<Region>>,
}

/// How a linear system is solved. It is solved when the norm of the residual is at most `max(rtol * |b|, atol)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinearSolver {
    /// The algorithm.
    pub method: LinearMethod,
    /// The tolerance relative to the norm of the right-hand side.
    pub rtol: Tolerance,
    /// The absolute tolerance.
    pub atol: Tolerance,
    /// The maximum number of iterations; ten for each unknown if it is `None`.
    pub maxiter: Option<usize>,
}

/// An algorithm for linear systems. All but [`LinearMethod::Dense`] only multiply by the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinearMethod {
    /// Conjugate gradients, for Hermitian positive definite systems.
    Cg,
    /// Stabilized biconjugate gradients.
    Bicgstab,
    /// Generalized minimal residuals. An iteration is a cycle of this many products with the matrix.
    Gmres {
        /// The number of products after which it begins again from the current solution.
        restart: usize,
    },
    /// An LU factorization of the matrix, which is formed column by column.
    Dense,
}

impl LinearMethod {
    /// The names of the algorithms.
    pub const NAMES: &'static [&'static str] = &["cg", "bicgstab", "gmres", "dense"];

    /// The algorithm of a name. `restart` is that of `gmres`.
    pub fn of_name(name: &str, restart: usize) -> Option<LinearMethod> {
        match name {
            "cg" => Some(LinearMethod::Cg),
            "bicgstab" => Some(LinearMethod::Bicgstab),
            "gmres" => Some(LinearMethod::Gmres { restart }),
            "dense" => Some(LinearMethod::Dense),
            _ => None,
        }
    }

    /// The name of the algorithm.
    pub const fn name(self) -> &'static str {
        match self {
            LinearMethod::Cg => "cg",
            LinearMethod::Bicgstab => "bicgstab",
            LinearMethod::Gmres { .. } => "gmres",
            LinearMethod::Dense => "dense",
        }
    }

    /// The products of a cycle, none for algorithms without cycles.
    pub const fn restart(self) -> Option<usize> {
        match self {
            LinearMethod::Gmres { restart } => Some(restart),
            LinearMethod::Cg | LinearMethod::Bicgstab | LinearMethod::Dense => None,
        }
    }
}
