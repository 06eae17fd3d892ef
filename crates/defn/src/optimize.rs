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
use defn_core::builder::{self, LinearFunction, Ops, Optimum};
pub use defn_core::builder::{
    LeastSquaresMethod, LeastSquaresOptions, MinimizeMethod, MinimizeOptions, RootMethod, RootOptions,
};
use defn_core::{Location, Result};

use crate::control::{Exprs, refill, results, tensors};
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

/// A minimum near `x0` of a real number, a function of a container.
///
/// Steps go in a direction of descent, as far as a line search for the strong Wolfe conditions says (Nocedal and Wright, Numerical
/// Optimization, 2006, chapters 3, 6 and 7). [`MinimizeMethod::Bfgs`] suits up to some hundreds of unknowns, and
/// [`MinimizeMethod::Lbfgs`] many; [`MinimizeMethod::Newton`] descends from saddles, too.
///
/// - Shapes: any for `x0`; the function gives a scalar. With vectorized axes each position iterates by itself.
/// - Dtypes: floats and complex; integers become f32. The number is a float.
/// - Gradient: that of the zero of the gradient, in both modes and of any order, to what the function captures. It is NaN where
///   the status is not 0.
///
/// ```
/// use defn::optimize::{MinimizeOptions, minimize};
/// use defn::prelude::*;
///
/// let solve = jit(|start: (Expr, Expr)| {
///     minimize(
///         |(a, b): (Expr, Expr)| {
///             let (slow, steep) = (1.0 - &a, b - &a * &a);
///             &slow * &slow + 100.0 * (&steep * &steep)
///         },
///         &start,
///         &MinimizeOptions::default(),
///     )
/// });
/// let start = (Tensor::from_slice(&[-1.2_f64], &[])?, Tensor::from_slice(&[1.0_f64], &[])?);
/// let (a, b) = solve.call(start)?.check()?.x;
/// assert!((a.item::<f64>()? - 1.0).abs() < 1e-6 && (b.item::<f64>()? - 1.0).abs() < 1e-6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A value that is no real scalar (`Shape`, `DType`) and options out of range (`Option`). The error comes out of
/// [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn minimize<A: Exprs>(
    fun: impl FnMut(A) -> Expr,
    x0: &A,
    options: &MinimizeOptions,
) -> Solution<Expr, A, Expr> {
    found("minimize", fun, x0, |ops, start, function| builder::minimize(ops, options, start, function))
}

/// A minimum near `x0` of half the sum of squares of residuals, a function from a container to one of any structure.
///
/// [`LeastSquaresMethod::LevenbergMarquardt`] damps steps (Moré, The Levenberg-Marquardt Algorithm: Implementation and Theory,
/// 1978); [`LeastSquaresMethod::GaussNewton`] shortens them. Both factor the Jacobian by QR.
///
/// - Shapes: any. With vectorized axes each position iterates by itself.
/// - Dtypes: floats and complex; integer unknowns become f32.
/// - Gradient: as [`minimize`], with the second derivatives of the residuals.
///
/// ```
/// use defn::optimize::{LeastSquaresOptions, least_squares};
/// use defn::prelude::*;
///
/// // The decay 2 exp(-t / 2).
/// let fit = jit(|(start, t, y): ((Expr, Expr), Expr, Expr)| {
///     let residuals = |(scale, rate): (Expr, Expr)| scale * (-rate * &t).exp() - &y;
///     least_squares(residuals, &start, &LeastSquaresOptions::default())
/// });
/// let t = Tensor::from_slice(&[0.0_f32, 1.0, 2.0, 3.0], &[4])?;
/// let y = Tensor::from_slice(&[0.0_f32, 1.0, 2.0, 3.0].map(|t| 2.0 * (-0.5 * t).exp()), &[4])?;
/// let start = (Tensor::scalar(1.0)?, Tensor::scalar(1.0)?);
/// let (scale, rate) = fit.call((start, t, y))?.check()?.x;
/// assert!((scale.item::<f32>()? - 2.0).abs() < 1e-4 && (rate.item::<f32>()? - 0.5).abs() < 1e-4);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Residuals that are integers (`DType`), fewer residuals than unknowns for [`LeastSquaresMethod::GaussNewton`] and options out
/// of range (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn least_squares<A: Exprs, R: Exprs>(
    fun: impl FnMut(A) -> R,
    x0: &A,
    options: &LeastSquaresOptions,
) -> Solution<Expr, A, R> {
    found("least_squares", fun, x0, |ops, start, function| {
        builder::least_squares(ops, options, start, function)
    })
}

/// What a search with a function to containers of another structure finds.
#[track_caller]
fn found<A: Exprs, R: Exprs>(
    name: &'static str,
    mut fun: impl FnMut(A) -> R,
    x0: &A,
    search: impl FnOnce(&mut Ops, &[core::Tensor], LinearFunction<'_>) -> Result<Optimum>,
) -> Solution<Expr, A, R> {
    let location = Location::caller();
    let mut form = None;
    let outcome = tensors(x0).and_then(|start| {
        record(location, |ops| {
            search(ops, &start, &mut |_, leaves| {
                let value = fun(refill(x0, Ok(leaves.to_vec())));
                let leaves = results(&value);
                form = Some(value);
                leaves
            })
        })
    });
    // Where the function was not called, the structure of its value is that for errors.
    let form = form.unwrap_or_else(|| {
        fun(refill(x0, outcome.as_ref().map(|found| found.x.clone()).map_err(Clone::clone)))
    });
    solution(name, outcome, x0, &form)
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
