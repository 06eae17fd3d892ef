//! L-BFGS, whose steps follow a line search.

use std::marker::PhantomData;

use defn_core::builder;
pub use defn_core::builder::LbfgsState;
use defn_core::{Location, Result};

use crate::control::{refill, results, tensors};
use crate::expr::record;
use crate::{Expr, Exprs, Leaf, Tree, Visit, core};

impl<T: Leaf> Tree<T> for LbfgsState<T> {
    type Of<U: Leaf> = LbfgsState<U>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> LbfgsState<U> {
        LbfgsState {
            steps: visit.part("steps", &self.steps),
            changes: visit.part("changes", &self.changes),
            factors: visit.part("factors", &self.factors),
            scale: visit.part("scale", &self.scale),
            fresh: visit.part("fresh", &self.fresh),
        }
    }
}

/// Steps of L-BFGS with a line search, for a number that does not change, a function of parameters in a container `P`.
///
/// It keeps the last `history` steps. [`Lbfgs::update`] takes the gradient of the number at the parameters; the length of a step
/// is the optimizer's own. [`optimize::minimize`](crate::optimize::minimize) iterates by itself until it has converged. Nocedal,
/// Updating Quasi-Newton Matrices with Limited Storage (1980); Nocedal and Wright, Numerical Optimization (2006), algorithms
/// 3.5, 3.6 and 7.4.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, LbfgsState};
///
/// fn rosenbrock((a, b): (Expr, Expr)) -> Expr {
///     let (slow, steep) = (1.0 - &a, b - &a * &a);
///     &slow * &slow + 100.0 * (&steep * &steep)
/// }
/// let init = jit(|x: (Expr, Expr)| optim::lbfgs(rosenbrock, 10).init(&x));
/// let step = jit(|(x, state): ((Expr, Expr), LbfgsState<Expr>)| {
///     let gradients = grad(&x, |(a, b)| rosenbrock((a.clone(), b.clone())));
///     let (updates, state) = optim::lbfgs(rosenbrock, 10).update(&gradients, state, &x);
///     (optim::apply_updates(&x, &updates), state)
/// });
/// let mut x = (Tensor::scalar(-1.2)?, Tensor::scalar(1.0)?);
/// let mut state = init.call(x.clone())?;
/// for _ in 0..60 {
///     (x, state) = step.call((x, state))?;
/// }
/// assert!((x.0.item::<f32>()? - 1.0).abs() < 1e-2 && (x.1.item::<f32>()? - 1.0).abs() < 1e-2);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn lbfgs<P: Exprs, F: Fn(P) -> Expr>(fun: F, history: usize) -> Lbfgs<P, F> {
    Lbfgs { fun, history, params: PhantomData }
}

/// What [`lbfgs`] returns. It is for one kind of container, that of its function's parameters.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{Lbfgs, lbfgs};
/// fn square(x: Expr) -> Expr {
///     &x * &x
/// }
/// let _: Lbfgs<Expr, fn(Expr) -> Expr> = lbfgs(square, 10);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lbfgs<P, F> {
    fun: F,
    history: usize,
    params: PhantomData<fn(P)>,
}

impl<P: Exprs, F: Fn(P) -> Expr> Lbfgs<P, F> {
    /// The state before the first step.
    ///
    /// ```
    /// use defn::prelude::*;
    /// let init = jit(|x: Expr| defn::optim::lbfgs(|x: Expr| x.sum(Axes::All, false), 4).init(&x).steps);
    /// assert_eq!(init.call(tensor![1.0, 2.0, 3.0]?)?.shape().sizes(), [4, 3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No steps, and no parameters (`Option`); they come out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn init(&self, params: &P) -> LbfgsState<Expr> {
        let location = Location::caller();
        let begun = tensors(params)
            .and_then(|params| record(location, |ops| builder::lbfgs_begin(ops, &params, self.history)));
        state(begun)
    }

    /// What is to be added to parameters with this gradient, and the next state.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::optim::{apply_updates, lbfgs};
    /// fn valley(x: Expr) -> Expr {
    ///     let away = x - 3.0;
    ///     &away * &away
    /// }
    /// let step = jit(|x: Expr| {
    ///     let (optimizer, slope) = (lbfgs(valley, 4), grad(&x, |x| valley(x.clone())));
    ///     apply_updates(&x, &optimizer.update(&slope, optimizer.init(&x), &x).0)
    /// });
    /// let near = (step.call(Tensor::scalar(0.0)?)?.item::<f32>()? - 3.0).abs();
    /// assert!(near < 3.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Gradients of other shapes and the state of other parameters (`Shape`), and a number that is no real scalar (`Shape`,
    /// `DType`); they come out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn update(&self, gradients: &P, known: LbfgsState<Expr>, params: &P) -> (P, LbfgsState<Expr>) {
        let location = Location::caller();
        let outcome = self.stepped(location, gradients, known, params);
        let (updates, next) = match outcome {
            Ok((updates, next)) => (Ok(updates), Ok(next)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        (refill(params, updates), state(next))
    }

    fn stepped(
        &self,
        location: Location,
        gradients: &P,
        state: LbfgsState<Expr>,
        params: &P,
    ) -> Result<(Vec<core::Tensor>, LbfgsState<core::Tensor>)> {
        let (at, slopes) = (tensors(params)?, tensors(gradients)?);
        let [steps, changes, factors, scale, fresh] = state.into_array().map(|part| part.0);
        let known = LbfgsState::from_array([steps?, changes?, factors?, scale?, fresh?]);
        record(location, |ops| {
            builder::lbfgs_update(ops, &at, &slopes, known, &mut |_, leaves| {
                results(&(self.fun)(refill(params, Ok(leaves.to_vec()))))
            })
        })
    }
}

/// A state of expressions, with the error in each if there is one.
fn state(outcome: Result<LbfgsState<core::Tensor>>) -> LbfgsState<Expr> {
    LbfgsState::from_array(match outcome {
        Ok(state) => state.into_array().map(|part| Expr(Ok(part))),
        Err(error) => std::array::from_fn(|_| Expr(Err(error.clone()))),
    })
}
