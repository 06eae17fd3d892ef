//! Optimizers: composable transformations of gradients.
//!
//! A [`GradientTransformation`] makes a state for parameters, and updates of gradients. States are containers like the
//! parameters: a program takes them, donates them and returns them. A tuple of transformations is their [`chain`];
//! [`adamw`] and its like are chains that end with a learning rate. The functions work on expressions, inside of
//! [`jit`](crate::jit).
//!
//! ```
//! use defn::prelude::*;
//! use defn::optim::{self, Adam, GradientTransformation};
//!
//! type State = <Adam as GradientTransformation>::State<Expr>;
//! let optimizer = optim::adam(0.1, Default::default())?;
//! let init = jit(|params: Expr| optimizer.init(&params));
//! let step = jit(|(params, state): (Expr, State)| {
//!     let gradients = grad(&params, |x| (&x * &x).sum(Axes::All, false));
//!     let (updates, state) = optimizer.update(&gradients, state, &params);
//!     (optim::apply_updates(&params, &updates), state)
//! });
//! let mut params = tensor![1.0, -2.0]?;
//! let mut state = init.call(params.clone())?;
//! for _ in 0..200 {
//!     (params, state) = step.call((params, state))?;
//! }
//! assert!(params.to_vec::<f32>()?.iter().all(|x| x.abs() < 0.01));
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core::Location;
use defn_core::builder::{BuildCreate, BuildElementwise, Builder};

use crate::control::refill;
use crate::tree::arithmetic::combine;
use crate::tree::{map, named_leaves};
use crate::{Expr, Exprs};

mod adaptive;
mod alias;
mod guard;
mod quasi_newton;
mod scaling;
mod schedule;

pub use adaptive::{
    AdamOptions, AdamState, LionState, RmsOptions, RmsState, ScaleByAdam, ScaleByLion, ScaleByRms,
    scale_by_adam, scale_by_lion, scale_by_rms,
};
pub use alias::{Adam, AdamW, Lion, RmsProp, Sgd, adam, adamw, lion, rmsprop, sgd};
pub use guard::{Accumulate, AccumulateState, ApplyIfFinite, FiniteState, accumulate, apply_if_finite};
pub use quasi_newton::{Lbfgs, LbfgsState, lbfgs};
pub use scaling::{
    AddDecayedWeights, Clip, ClipByGlobalNorm, Scale, ScaleBySchedule, ScheduleState, Trace, TraceState,
    add_decayed_weights, clip, clip_by_global_norm, scale, scale_by_learning_rate, scale_by_schedule, trace,
};
pub use schedule::{
    Schedule, constant_schedule, cosine_decay_schedule, exponential_decay, join_schedules, linear_schedule,
    piecewise_constant_schedule, warmup_cosine_decay_schedule,
};

/// Makes updates of gradients: a state for parameters, and from gradients and a state the updates and the next state.
///
/// A tuple of transformations is one too: each receives the updates of the one before.
///
/// ```
/// use defn::prelude::*;
/// use defn::Exprs;
/// use defn::optim::GradientTransformation;
///
/// struct Signs;
/// impl GradientTransformation for Signs {
///     type State<P: Exprs> = ();
///     fn init<P: Exprs>(&self, _params: &P) {}
///     fn update<P: Exprs>(&self, updates: &P, _state: (), _params: &P) -> (P, ()) {
///         (each([updates], |[x]| x.sign()), ())
///     }
/// }
/// let signs = jit(|x: Expr| Signs.update(&x, (), &x).0);
/// assert_eq!(signs.call(tensor![3.0, -0.5]?)?.to_vec::<f32>()?, [1.0, -1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub trait GradientTransformation {
    /// The state for parameters in a container `P`.
    type State<P: Exprs>: Exprs;

    /// The state before the first update.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::optim::{self, GradientTransformation};
    /// let momentum = optim::trace(0.9, false)?;
    /// let init = jit(|params: Expr| momentum.init(&params).trace);
    /// assert_eq!(init.call(tensor![1.0, 2.0]?)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    fn init<P: Exprs>(&self, params: &P) -> Self::State<P>;

    /// The transformed updates, and the next state.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::optim::{self, GradientTransformation};
    /// let half = jit(|x: Expr| optim::scale(0.5).update(&x, (), &x).0);
    /// assert_eq!(half.call(tensor![1.0, 2.0]?)?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    fn update<P: Exprs>(&self, updates: &P, state: Self::State<P>, params: &P) -> (P, Self::State<P>);
}

macro_rules! chains {
    ($(($($name:ident $index:tt),+))*) => {$(
        impl<$($name: GradientTransformation),+> GradientTransformation for ($($name,)+) {
            type State<P: Exprs> = ($($name::State<P>,)+);

            fn init<P: Exprs>(&self, params: &P) -> Self::State<P> {
                ($(self.$index.init(params),)+)
            }

            fn update<P: Exprs>(&self, updates: &P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
                let mut updates = copy(updates);
                let next = ($({
                    let (changed, next) = self.$index.update(&updates, state.$index, params);
                    updates = changed;
                    next
                },)+);
                (updates, next)
            }
        }
    )*};
}
for_tuples! { chains }

/// Transformations one after another: a tuple of up to eight of them, which may be tuples.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
///
/// let clipped = optim::chain((optim::clip(1.0)?, optim::scale(-0.5)));
/// let update = jit(|x: Expr| clipped.update(&x, ((), ()), &x).0);
/// assert_eq!(update.call(tensor![3.0, 0.5]?)?.to_vec::<f32>()?, [-0.5, -0.25]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn chain<C: GradientTransformation>(transformations: C) -> C {
    transformations
}

/// The transformation that changes nothing.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let same = jit(|x: Expr| optim::identity().update(&x, (), &x).0);
/// assert_eq!(same.call(tensor![3.0]?)?.to_vec::<f32>()?, [3.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn identity() -> Identity {
    Identity
}

/// What [`identity`] returns.
///
/// ```
/// let _: defn::optim::Identity = defn::optim::identity();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Identity;

impl GradientTransformation for Identity {
    type State<P: Exprs> = ();

    fn init<P: Exprs>(&self, _params: &P) {}

    fn update<P: Exprs>(&self, updates: &P, _state: (), _params: &P) -> (P, ()) {
        (copy(updates), ())
    }
}

/// The sums of parameters and updates, in the dtypes of the parameters.
///
/// - Shape: corresponding leaves broadcast together.
/// - Dtypes: those of the parameters.
/// - Gradient: `g` to both.
///
/// ```
/// use defn::prelude::*;
/// let step = jit(|(x, u): (Expr, Expr)| defn::optim::apply_updates(&x, &u));
/// assert_eq!(step.call((tensor![1.0, 2.0]?, tensor![0.5, -0.5]?))?.to_vec::<f32>()?, [1.5, 1.5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Containers of another structure (`Container`), and leaves that do not broadcast (`Shape`); they come out of
/// [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn apply_updates<P: Exprs>(params: &P, updates: &P) -> P {
    combine("apply_updates", Location::caller(), [params, updates], |ops, [param, update]| {
        let dtype = ops.ty(&param).dtype;
        let sum = ops.add(param, update)?;
        ops.as_type(sum, dtype)
    })
}

/// A transformation of the leaves whose names a function selects; the others pass unchanged.
///
/// Names are those of [`named_leaves`], such as `layers.0.weight`. The inner state has no memory
/// for leaves that are not selected.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
///
/// let decay = optim::masked(optim::add_decayed_weights(0.5)?, |name| name == "0");
/// let update = jit(|x: (Expr, Expr)| decay.update(&x, decay.init(&x), &x).0);
/// let (w, b) = update.call((tensor![2.0]?, tensor![2.0]?))?;
/// assert_eq!((w.item::<f32>()?, b.item::<f32>()?), (3.0, 2.0));
/// # Ok::<(), defn::Error>(())
/// ```
pub fn masked<I: GradientTransformation, F: Fn(&str) -> bool>(inner: I, selects: F) -> Masked<I, F> {
    Masked { inner, selects }
}

/// What [`masked`] returns.
///
/// ```
/// use defn::optim::{self, GradientTransformation};
/// fn is_one(_: &impl GradientTransformation) {}
/// is_one(&optim::masked(optim::scale(2.0), |_| true));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Masked<I, F> {
    inner: I,
    selects: F,
}

impl<I, F: Fn(&str) -> bool> Masked<I, F> {
    fn selected<P: Exprs>(&self, tree: &P) -> Vec<Expr> {
        let leaves = named_leaves(tree).into_iter();
        leaves.filter(|(name, _)| (self.selects)(name)).map(|(_, leaf)| leaf).collect()
    }
}

impl<I: GradientTransformation, F: Fn(&str) -> bool> GradientTransformation for Masked<I, F> {
    type State<P: Exprs> = I::State<Vec<Expr>>;

    fn init<P: Exprs>(&self, params: &P) -> Self::State<P> {
        self.inner.init(&self.selected(params))
    }

    fn update<P: Exprs>(&self, updates: &P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let chosen = self.selected(updates);
        let (changed, state) = self.inner.update(&chosen, state, &self.selected(params));
        let mut changed = changed.into_iter();
        let leaves = named_leaves(updates).into_iter().map(|(name, leaf)| {
            let own = if (self.selects)(&name) { changed.next() } else { None };
            own.unwrap_or(leaf).0
        });
        (refill(updates, leaves.collect()), state)
    }
}

/// The same container; not every container is `Clone`.
fn copy<P: Exprs>(tree: &P) -> P {
    map(tree, Expr::clone)
}

/// Zeros like the parameters, in their dtypes; f32 for integers.
fn zeros<P: Exprs>(op: &'static str, at: Location, params: &P, real: bool) -> P {
    combine(op, at, [params], |ops, [param]| {
        let dtype = ops.ty(&param).dtype.to_float();
        ops.fill(param, 0, Some(if real { dtype.to_real() } else { dtype }))
    })
}

/// A count of no steps.
#[track_caller]
fn no_steps() -> Expr {
    Expr::from(0)
}

/// One more, which stays at the greatest value.
fn next_count(count: &Expr) -> Expr {
    count.min(i32::MAX - 1) + 1
}
