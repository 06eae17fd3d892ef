//! Linear systems that are solved by products with the matrix.

use defn_core as core;
use defn_core::builder::{self, Arg, LinearFunction, LinearMap, LinearOptions, Ops};
use defn_core::{Location, Result};

use crate::Expr;
use crate::control::{Exprs, refill, require_structure, results, tensors};
use crate::expr::{both, record};

/// The options of [`cg`], [`bicgstab`] and [`gmres`].
///
/// ```
/// use defn::linalg::{Iterations, cg};
/// use defn::prelude::*;
///
/// let solve = jit(|b: Expr| {
///     let options = Iterations::default().rtol(1e-6).maxiter(10).start(b.zeros_like());
///     cg(|x: Expr| 4.0 * x, &b, options.preconditioner(|r| 0.25 * r)).0
/// });
/// assert_eq!(solve.call(tensor![4.0, 8.0]?)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub struct Iterations<'a, A> {
    rtol: f64,
    atol: f64,
    maxiter: Option<i64>,
    start: Option<A>,
    preconditioner: Option<Box<dyn FnMut(A) -> A + 'a>>,
}

impl<A> Default for Iterations<'_, A> {
    fn default() -> Self {
        Iterations { rtol: 1e-5, atol: 0.0, maxiter: None, start: None, preconditioner: None }
    }
}

impl<A> std::fmt::Debug for Iterations<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Iterations { rtol, atol, maxiter, .. } = self;
        write!(f, "Iterations(rtol: {rtol}, atol: {atol}, maxiter: {maxiter:?})")
    }
}

impl<'a, A> Iterations<'a, A> {
    /// A system is solved when the norm of its residual is at most this part of the right-hand side's, 1e-5 by default, or
    /// at most [`Iterations::atol`].
    ///
    /// ```
    /// use defn::linalg::{Iterations, cg};
    /// use defn::prelude::*;
    ///
    /// let solve = jit(|b: Expr| cg(|x: Expr| 4.0 * x, &b, Iterations::default().rtol(1e-6)).0);
    /// assert_eq!(solve.call(tensor![4.0, 8.0]?)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn rtol(self, rtol: f64) -> Self {
        Iterations { rtol, ..self }
    }

    /// The absolute tolerance, 0 by default.
    ///
    /// ```
    /// use defn::linalg::{Iterations, cg};
    /// use defn::prelude::*;
    ///
    /// // A right-hand side that is small enough is solved by zeros.
    /// let solve = jit(|b: Expr| cg(|x: Expr| 4.0 * x, &b, Iterations::default().atol(1.0)).0);
    /// assert_eq!(solve.call(tensor![0.4, 0.8]?)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn atol(self, atol: f64) -> Self {
        Iterations { atol, ..self }
    }

    /// The maximum number of iterations, by default ten for each unknown.
    ///
    /// ```
    /// use defn::linalg::{Iterations, cg};
    /// use defn::prelude::*;
    ///
    /// // One iteration is too few for two eigenvalues.
    /// let solve = jit(|(scales, b): (Expr, Expr)| {
    ///     cg(|x: Expr| &scales * x, &b, Iterations::default().maxiter(1)).1
    /// });
    /// let info = solve.call((tensor![1.0, 2.0]?, tensor![1.0, 1.0]?))?;
    /// assert_eq!(info.item::<i32>()?, 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn maxiter(self, maxiter: i64) -> Self {
        Iterations { maxiter: Some(maxiter), ..self }
    }

    /// Where the iterations begin, by default at zeros.
    ///
    /// ```
    /// use defn::linalg::{Iterations, cg};
    /// use defn::prelude::*;
    ///
    /// // The solution takes no iteration.
    /// let solve = jit(|(b, x): (Expr, Expr)| {
    ///     cg(|x: Expr| 4.0 * x, &b, Iterations::default().start(x).maxiter(1)).1
    /// });
    /// let info = solve.call((tensor![4.0, 8.0]?, tensor![1.0, 2.0]?))?;
    /// assert_eq!(info.item::<i32>()?, 0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn start(self, start: A) -> Self {
        Iterations { start: Some(start), ..self }
    }

    /// A linear function that approximates the inverse of the matrix.
    ///
    /// ```
    /// use defn::linalg::{Iterations, cg};
    /// use defn::prelude::*;
    ///
    /// // The inverse of the matrix makes one iteration enough.
    /// let solve = jit(|(scales, b): (Expr, Expr)| {
    ///     let options = Iterations::default().maxiter(1).preconditioner(|r: Expr| r / &scales);
    ///     cg(|x: Expr| &scales * x, &b, options).1
    /// });
    /// let info = solve.call((tensor![1.0, 2.0]?, tensor![1.0, 1.0]?))?;
    /// assert_eq!(info.item::<i32>()?, 0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[must_use]
    pub fn preconditioner(self, function: impl FnMut(A) -> A + 'a) -> Self {
        Iterations { preconditioner: Some(Box::new(function)), ..self }
    }
}

/// The solution `x` of `a(x) = b` by conjugate gradients (Hestenes and Stiefel, 1952), for a linear function of a container
/// whose matrix is Hermitian and positive definite. The second result is 0 where it converged, else the number of iterations.
///
/// The function is called once, while it is traced. That it is linear is not checked.
///
/// - Shapes: those of `b`; the function keeps them.
/// - Dtypes: those of `b`, which the function keeps; integers become f32. The number of iterations is s32.
/// - Gradient: that of the solution, not of the iterations, of any order: to `b` and to what the function captures. It is
///   NaN where its own systems are not solved.
///
/// ```
/// use defn::linalg::{Iterations, cg};
/// use defn::prelude::*;
///
/// let slope = jit(|scale: Expr| {
///     grad(&scale, |scale| cg(|x: Expr| &scale * x, &scale.ones_like(), Iterations::default()).0)
/// });
/// assert_eq!(slope.call(Tensor::scalar(2.0)?)?.item::<f32>()?, -0.25);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A function that returns other types (`Shape`, `DType`) or another structure (`Container`) than it takes, a start of other
/// shapes (`Shape`), and options out of range (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn cg<A: Exprs>(a: impl FnMut(A) -> A, b: &A, options: Iterations<'_, A>) -> (A, Expr) {
    solved(Location::caller(), LinearOptions::cg(), a, b, options)
}

/// The solution of `a(x) = b` by BiCGSTAB (van der Vorst, 1992), for any linear function. See [`cg`].
///
/// ```
/// use defn::linalg::{Iterations, bicgstab};
/// use defn::prelude::*;
///
/// let solve = jit(|b: Expr| bicgstab(|x: Expr| -4.0 * x, &b, Iterations::default()));
/// let (x, info) = solve.call(tensor![4.0, 8.0]?)?;
/// assert_eq!((x.to_vec::<f32>()?, info.item::<i32>()?), (vec![-1.0, -2.0], 0));
/// # Ok::<(), defn::Error>(())
/// ```
#[track_caller]
pub fn bicgstab<A: Exprs>(a: impl FnMut(A) -> A, b: &A, options: Iterations<'_, A>) -> (A, Expr) {
    solved(Location::caller(), LinearOptions::bicgstab(), a, b, options)
}

/// The solution of `a(x) = b` by GMRES (Saad and Schultz, 1986), for any linear function, in cycles of at most `restart`
/// calls, which count as iterations. See [`cg`].
///
/// ```
/// use defn::linalg::{Iterations, gmres};
/// use defn::prelude::*;
///
/// let solve = jit(|b: Expr| gmres(|x: Expr| -4.0 * x, &b, 20, Iterations::default()));
/// let (x, info) = solve.call(tensor![4.0, 8.0]?)?;
/// assert_eq!((x.to_vec::<f32>()?, info.item::<i32>()?), (vec![-1.0, -2.0], 0));
/// # Ok::<(), defn::Error>(())
/// ```
#[track_caller]
pub fn gmres<A: Exprs>(
    a: impl FnMut(A) -> A,
    b: &A,
    restart: usize,
    options: Iterations<'_, A>,
) -> (A, Expr) {
    solved(Location::caller(), LinearOptions::gmres(restart), a, b, options)
}

fn solved<A: Exprs>(
    location: Location,
    method: LinearOptions,
    a: impl FnMut(A) -> A,
    b: &A,
    given: Iterations<'_, A>,
) -> (A, Expr) {
    let op = method.method.name();
    let options =
        LinearOptions { rtol: Some(given.rtol), atol: given.atol, maxiter: given.maxiter, ..method };
    let outcome = tensors(b).and_then(|rhs| {
        let start = given.start.as_ref().map(tensors).transpose()?;
        record(location, |ops| {
            let mut multiply = on_leaves(op, b, a);
            let mut approximate = given.preconditioner.map(|function| on_leaves(op, b, function));
            let preconditioner =
                approximate.as_mut().map(|function| LinearMap::Function(function as LinearFunction<'_>));
            let maps = (LinearMap::Function(&mut multiply), preconditioner);
            builder::linear_solve(ops, op, &options, maps, &rhs, start.as_deref())
        })
    });
    let (x, info) = both(outcome);
    (refill(b, x), Expr(info))
}

/// A function of containers like `form` as a function of their leaves.
pub(crate) fn on_leaves<A: Exprs>(
    op: &'static str,
    form: &A,
    mut function: impl FnMut(A) -> A,
) -> impl FnMut(&mut Ops, &[core::Tensor]) -> Result<Vec<Arg<core::Tensor>>> {
    move |_, leaves| {
        let value = function(refill(form, Ok(leaves.to_vec())));
        require_structure(op, "function's container of another structure", form, &value)?;
        results(&value)
    }
}
