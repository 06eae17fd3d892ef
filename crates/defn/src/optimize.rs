//! Zeros and minima of functions of containers.
//!
//! A [`Solution`] says by its status how the iterations ended, and [`Solution::check`] refuses one that did not converge.
//! Derivatives of what was found are those of the implicit function, as those of [`implicit`](crate::implicit): the iterations
//! are not differentiated. The functions work on expressions, inside of [`jit`](crate::jit).
//!
//! ```
//! use defn::optimize::{RootOptions, root};
//! use defn::prelude::*;
//!
//! let solve = jit(|(start, total): ((Expr, Expr), Expr)| {
//!     root(|(a, b): (Expr, Expr)| (&a * &b - 6.0, a + b - &total), &start, &RootOptions::default())
//! });
//! let start = (Tensor::scalar(1.0)?, Tensor::scalar(4.0)?);
//! let (a, b) = solve.call((start, Tensor::scalar(5.0)?))?.check()?.x;
//! assert!((a.item::<f32>()? - 2.0).abs() < 1e-5 && (b.item::<f32>()? - 3.0).abs() < 1e-5);
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core as core;
use defn_core::builder::{self, Optimum};
pub use defn_core::builder::{RootMethod, RootOptions};
use defn_core::{Location, Result};

use crate::control::{Exprs, refill, tensors};
use crate::expr::record;
use crate::linalg::on_leaves;
use crate::{Element, Expr, Leaf, Tensor, Tree, Visit};

/// What an optimization found, and how it ended: a container.
///
/// ```
/// use defn::optimize::{RootOptions, root};
/// use defn::prelude::*;
///
/// let solve = jit(|x: Expr| root(|x: Expr| &x * &x + 1.0, &x, &RootOptions::default()));
/// let found = solve.call(Tensor::scalar(1.0)?)?;
/// assert_eq!(found.status.item::<i32>()?, 2);
/// assert_eq!(found.check().unwrap_err().class(), defn::ErrorClass::Convergence);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Solution<T, X, F> {
    /// The unknowns: the best that were found, whatever the status.
    pub x: X,
    /// The value of the function there: the residuals, or the number to be minimized.
    pub fun: F,
    /// 0 where the iterations converged; 1 where the last that is allowed was done; 2 where no step makes progress; 3 where a
    /// value or a derivative is NaN or infinite.
    pub status: T,
    /// The number of steps.
    pub iterations: T,
    /// How often the function was evaluated.
    pub evaluations: T,
    /// The greatest magnitude in the gradient of the number to be minimized: for residuals, of half their sum of squares.
    pub gradient_norm: T,
    /// The name of the function that made the solution.
    pub function: &'static str,
}

impl<T: Leaf, X: Tree<T>, F: Tree<T>> Tree<T> for Solution<T, X, F> {
    type Of<U: Leaf> = Solution<U, X::Of<U>, F::Of<U>>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U> {
        Solution {
            x: visit.part("x", &self.x),
            fun: visit.part("fun", &self.fun),
            status: visit.part("status", &self.status),
            iterations: visit.part("iterations", &self.iterations),
            evaluations: visit.part("evaluations", &self.evaluations),
            gradient_norm: visit.part("gradient_norm", &self.gradient_norm),
            function: self.function,
        }
    }
}

impl<X, F> Solution<Tensor, X, F> {
    /// The solution, if it converged at every position.
    ///
    /// ```
    /// use defn::optimize::{RootOptions, root};
    /// use defn::prelude::*;
    ///
    /// let solve = jit(|x: Expr| root(|x: Expr| &x * &x - 4.0, &x, &RootOptions::default()));
    /// assert_eq!(solve.call(Tensor::scalar(1.0)?)?.check()?.x.item::<f32>()?, 2.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A status that is not 0 (`Convergence`), with the iterations and the gradient of its position.
    pub fn check(self) -> Result<Self> {
        fn numbers<E: Element>(x: &Tensor) -> Result<Vec<E>> {
            x.to_vec::<E>()
        }
        let status: Vec<i64> = numbers::<i32>(&self.status)?.into_iter().map(i64::from).collect();
        let iterations: Vec<i64> = numbers::<i32>(&self.iterations)?.into_iter().map(i64::from).collect();
        let gradient = self.gradient_norm.as_type(crate::DType::F64)?;
        builder::require_converged(self.function, &status, &iterations, &numbers::<f64>(&gradient)?)?;
        Ok(self)
    }
}

/// A zero near `x0` of a function from a container to one like it.
///
/// The steps are those of Newton's method, shortened until the norm of the residuals decreases (Dennis and Schnabel, 1983). With
/// [`RootMethod::Newton`] the Jacobian is formed and factored; [`RootMethod::Krylov`] takes products with it in GMRES (Brown and
/// Saad, 1990), which suits many unknowns.
///
/// - Shapes: any; the function keeps them. With vectorized axes each position iterates by itself.
/// - Dtypes: floats and complex, which the function keeps; integers become f32.
/// - Gradient: that of the implicit function, in both modes and of any order, to what the function captures. It is NaN where
///   the status is not 0.
///
/// ```
/// use defn::optimize::{RootOptions, root};
/// use defn::prelude::*;
///
/// // The square root and its derivative, 1 / (2 sqrt(a)).
/// let slope = jit(|a: Expr| {
///     grad(&a, |a| root(|x: Expr| &x * &x - &a, &a.ones_like(), &RootOptions::default()).x)
/// });
/// assert!((slope.call(Tensor::scalar(4.0)?)?.item::<f32>()? - 0.25).abs() < 1e-6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Residuals unlike the unknowns (`Shape`, `DType`, `Container`) and options out of range (`Option`). The error comes out of
/// [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn root<A: Exprs>(fun: impl FnMut(A) -> A, x0: &A, options: &RootOptions) -> Solution<Expr, A, A> {
    let location = Location::caller();
    let outcome = tensors(x0).and_then(|start| {
        record(location, |ops| builder::root(ops, options, &start, &mut on_leaves("root", x0, fun)))
    });
    solution("root", outcome, x0, x0)
}

/// The fields of an outcome, with the error in each if there is one.
fn solution<X: Exprs, F: Exprs>(
    function: &'static str,
    outcome: Result<Optimum>,
    x: &X,
    fun: &F,
) -> Solution<Expr, X, F> {
    let part = |choose: fn(&Optimum) -> &core::Tensor| {
        Expr(outcome.as_ref().map(choose).cloned().map_err(Clone::clone))
    };
    Solution {
        status: part(|found| &found.status),
        iterations: part(|found| &found.iterations),
        evaluations: part(|found| &found.evaluations),
        gradient_norm: part(|found| &found.gradient_norm),
        x: refill(x, outcome.clone().map(|found| found.x)),
        fun: refill(fun, outcome.map(|found| found.fun)),
        function,
    }
}
