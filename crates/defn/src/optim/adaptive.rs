//! What Adam, RMSProp and Lion remember of gradients, and the directions of their steps.

use defn_core::builder::{BuildElementwise, BuildOptim, Ops};
use defn_core::{Location, Result};

use super::scaling::{fraction, kept, not_negative, one_container, pairs, states};
use super::{GradientTransformation, next_count, no_steps, zeros};
use crate::tree::arithmetic::combine;
use crate::{Expr, Exprs, Leaf, Tree, Visit, core};

states! {
    /// The state of [`scale_by_adam`].
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::optim::AdamState;
    /// let state = AdamState { count: Tensor::scalar(0)?, mu: tensor![1.0]?, nu: tensor![2.0]? };
    /// let names: Vec<String> = defn::named_leaves(&state).into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["count", "mu", "nu"]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    AdamState<T, P> {
        /// The number of steps, an s32 that stays at its greatest value.
        count: T,
        /// The moving averages of gradients.
        mu: P,
        /// The moving averages of their squares.
        nu: P
    }
}

one_container! {
    /// The state of [`scale_by_rms`].
    ///
    /// ```
    /// let state = defn::optim::RmsState { nu: defn::Tensor::scalar(1.0)? };
    /// assert_eq!(defn::leaves(&state).len(), 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    RmsState {
        /// The moving averages of squares of gradients.
        nu
    }
    /// The state of [`scale_by_lion`].
    ///
    /// ```
    /// let state = defn::optim::LionState { mu: defn::Tensor::scalar(1.0)? };
    /// assert_eq!(defn::leaves(&state).len(), 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    LionState {
        /// The moving averages of gradients.
        mu
    }
}

/// Options of [`scale_by_adam`]: decays of averages, and what is added to denominators.
///
/// ```
/// use defn::optim::AdamOptions;
/// let options = AdamOptions { b2: 0.95, ..AdamOptions::default() };
/// assert_eq!((options.b1, options.eps, options.nesterov), (0.9, 1e-8, false));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AdamOptions {
    /// The decay of the average of gradients, in `[0, 1)`.
    pub b1: f64,
    /// The decay of the average of their squares, in `[0, 1)`.
    pub b2: f64,
    /// Added to the root.
    pub eps: f64,
    /// Added below the root.
    pub eps_root: f64,
    /// Whether the average of gradients looks a step ahead (Dozat, "Incorporating Nesterov momentum into Adam", 2016).
    pub nesterov: bool,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions { b1: 0.9, b2: 0.999, eps: 1e-8, eps_root: 0.0, nesterov: false }
    }
}

/// The directions of Adam: moving averages of gradients over the roots of those of squares.
///
/// Both averages count as if they had not begun with zeros. Kingma & Ba, "Adam: a method for stochastic optimization"
/// (2014).
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let adam = optim::scale_by_adam(Default::default())?;
/// let directions = jit(|x: Expr| adam.update(&x, adam.init(&x), &x).0);
/// let x = directions.call(tensor![3.0, -0.5]?)?.to_vec::<f32>()?;
/// assert!((x[0] - 1.0).abs() < 1e-6 && (x[1] + 1.0).abs() < 1e-6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Decays that are not in `[0, 1)`, and a negative `eps` or `eps_root` (`Option`). A state of other parameters is an
/// error of the program (`Container`, `Shape`).
pub fn scale_by_adam(options: AdamOptions) -> Result<ScaleByAdam> {
    let op = "scale_by_adam";
    fraction(op, "b1", options.b1)?;
    fraction(op, "b2", options.b2)?;
    not_negative(op, "eps", options.eps)?;
    not_negative(op, "eps_root", options.eps_root)?;
    Ok(ScaleByAdam { options })
}

/// What [`scale_by_adam`] returns.
///
/// ```
/// let _: defn::optim::ScaleByAdam = defn::optim::scale_by_adam(Default::default())?;
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScaleByAdam {
    options: AdamOptions,
}

impl GradientTransformation for ScaleByAdam {
    type State<P: Exprs> = AdamState<Expr, P>;

    #[track_caller]
    fn init<P: Exprs>(&self, params: &P) -> AdamState<Expr, P> {
        let at = Location::caller();
        let mu = zeros("scale_by_adam", at.clone(), params, false);
        AdamState { count: no_steps(), mu, nu: zeros("scale_by_adam", at, params, true) }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: AdamState<Expr, P>, _: &P) -> (P, AdamState<Expr, P>) {
        let (op, at) = ("scale_by_adam", Location::caller());
        let AdamOptions { b1, b2, eps, eps_root, nesterov } = self.options;
        let count = next_count(&state.count);
        let mu = pairs(op, &at, updates, &state.mu, |ops, x, mu| ops.moving_mean(x, mu, b1));
        let nu = pairs(op, &at, updates, &state.nu, |ops, x, nu| ops.moving_square(x, nu, b2));
        let direction = |ops: &mut Ops, mu: core::Tensor, nu, b1| {
            ops.adam_direction(mu, nu, count.0.clone()?, b1, b2, eps, eps_root)
        };
        let moved = if nesterov {
            let ahead =
                pairs(op, &at, updates, &mu, |ops, x, mu| ops.adam_ahead(x, mu, count.0.clone()?, b1));
            // What looks ahead has divided by the sum of the weights.
            pairs(op, &at, &ahead, &nu, |ops, mu, nu| direction(ops, mu, nu, 0.0))
        } else {
            pairs(op, &at, &mu, &nu, |ops, mu, nu| direction(ops, mu, nu, b1))
        };
        let (mu, nu) = (kept(op, &at, &mu, &state.mu), kept(op, &at, &nu, &state.nu));
        (moved, AdamState { count, mu, nu })
    }
}

/// Options of [`scale_by_rms`].
///
/// ```
/// let options = defn::optim::RmsOptions::default();
/// assert_eq!((options.decay, options.eps, options.eps_in_sqrt), (0.9, 1e-8, true));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RmsOptions {
    /// The decay of the average of squares, in `[0, 1)`.
    pub decay: f64,
    /// Added to the average, or to its root.
    pub eps: f64,
    /// What the average begins with.
    pub initial_scale: f64,
    /// Whether `eps` is added below the root.
    pub eps_in_sqrt: bool,
}

impl Default for RmsOptions {
    fn default() -> RmsOptions {
        RmsOptions { decay: 0.9, eps: 1e-8, initial_scale: 0.0, eps_in_sqrt: true }
    }
}

/// Updates over the root of the moving average of their squares.
///
/// Tieleman & Hinton, "Lecture 6.5: rmsprop" (2012).
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation, RmsOptions};
/// let rms = optim::scale_by_rms(RmsOptions { decay: 0.75, eps: 0.0, ..RmsOptions::default() })?;
/// let directions = jit(|x: Expr| rms.update(&x, rms.init(&x), &x).0);
/// assert_eq!(directions.call(tensor![3.0, -0.5]?)?.to_vec::<f32>()?, [2.0, -2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A decay that is not in `[0, 1)`, and a negative `eps` (`Option`).
pub fn scale_by_rms(options: RmsOptions) -> Result<ScaleByRms> {
    fraction("scale_by_rms", "decay", options.decay)?;
    not_negative("scale_by_rms", "eps", options.eps)?;
    Ok(ScaleByRms { options })
}

/// What [`scale_by_rms`] returns.
///
/// ```
/// let _: defn::optim::ScaleByRms = defn::optim::scale_by_rms(Default::default())?;
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScaleByRms {
    options: RmsOptions,
}

impl GradientTransformation for ScaleByRms {
    type State<P: Exprs> = RmsState<P>;

    #[track_caller]
    fn init<P: Exprs>(&self, params: &P) -> RmsState<P> {
        let begun = zeros("scale_by_rms", Location::caller(), params, true);
        let initial = self.options.initial_scale;
        RmsState {
            nu: combine("scale_by_rms", Location::caller(), [&begun], |ops, [nu]| ops.add(nu, initial)),
        }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: RmsState<P>, _: &P) -> (P, RmsState<P>) {
        let (op, at) = ("scale_by_rms", Location::caller());
        let RmsOptions { decay, eps, eps_in_sqrt, initial_scale: _ } = self.options;
        let nu = pairs(op, &at, updates, &state.nu, |ops, x, nu| ops.moving_square(x, nu, decay));
        let moved = pairs(op, &at, updates, &nu, |ops, x, nu| ops.rms_direction(x, nu, eps, eps_in_sqrt));
        let nu = kept(op, &at, &nu, &state.nu);
        (moved, RmsState { nu })
    }
}

/// The signs of moving averages of gradients: the average whose sign is taken has the decay `b1`, the one that is kept
/// `b2`.
///
/// Chen et al., "Symbolic discovery of optimization algorithms" (2023).
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let lion = optim::scale_by_lion(0.9, 0.99)?;
/// let directions = jit(|x: Expr| lion.update(&x, lion.init(&x), &x).0);
/// assert_eq!(directions.call(tensor![3.0, -0.5]?)?.to_vec::<f32>()?, [1.0, -1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Decays that are not in `[0, 1)` (`Option`).
pub fn scale_by_lion(b1: f64, b2: f64) -> Result<ScaleByLion> {
    let op = "scale_by_lion";
    Ok(ScaleByLion { b1: fraction(op, "b1", b1)?, b2: fraction(op, "b2", b2)? })
}

/// What [`scale_by_lion`] returns.
///
/// ```
/// let _: defn::optim::ScaleByLion = defn::optim::scale_by_lion(0.9, 0.99)?;
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScaleByLion {
    b1: f64,
    b2: f64,
}

impl GradientTransformation for ScaleByLion {
    type State<P: Exprs> = LionState<P>;

    #[track_caller]
    fn init<P: Exprs>(&self, params: &P) -> LionState<P> {
        LionState { mu: zeros("scale_by_lion", Location::caller(), params, false) }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: LionState<P>, _: &P) -> (P, LionState<P>) {
        let (op, at) = ("scale_by_lion", Location::caller());
        let moved = pairs(op, &at, updates, &state.mu, |ops, x, mu| {
            let mean = ops.moving_mean(x, mu, self.b1)?;
            ops.sign(mean)
        });
        let mu = pairs(op, &at, updates, &state.mu, |ops, x, mu| ops.moving_mean(x, mu, self.b2));
        let mu = kept(op, &at, &mu, &state.mu);
        (moved, LionState { mu })
    }
}
