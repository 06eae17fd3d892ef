//! Transformations of single leaves: factors, limits, decay, and what the known methods remember.

use defn_core::builder::{BuildElementwise, BuildOptim, Builder, Ops};
use defn_core::{ErrorKind, Location, Result};

use super::{GradientTransformation, Schedule, next_count, no_steps, zeros};
use crate::tree::arithmetic::combine;
use crate::{Expr, Exprs, Leaf, Tree, Visit, core, tree};

/// Declares states: structs with leaves and containers like the parameters.
macro_rules! states {
    ($($(#[$doc:meta])* $name:ident<T $(, $like:ident)?> { $($(#[$field_doc:meta])* $field:ident: $ty:ty),+ })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<T $(, $like)?> {
            $($(#[$field_doc])* pub $field: $ty),+
        }

        impl<T: Leaf $(, $like: Tree<T>)?> Tree<T> for $name<T $(, $like)?> {
            type Of<U: Leaf> = $name<U $(, $like::Of<U>)?>;

            fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U> {
                $name { $($field: visit.part(stringify!($field), &self.$field)),+ }
            }
        }
    )*};
}

pub(super) use states;

states! {
    /// The state of [`scale_by_schedule`].
    ///
    /// ```
    /// use defn::optim::ScheduleState;
    /// let state = ScheduleState { count: defn::Tensor::scalar(3)? };
    /// assert_eq!(defn::named_leaves(&state)[0].0, "count");
    /// # Ok::<(), defn::Error>(())
    /// ```
    ScheduleState<T> {
        /// The number of steps, an s32 that stays at its greatest value.
        count: T
    }
}

/// Declares states of one container like the parameters.
macro_rules! one_container {
    ($($(#[$doc:meta])* $name:ident { $(#[$field_doc:meta])* $field:ident })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<P> {
            $(#[$field_doc])*
            pub $field: P,
        }

        impl<T: Leaf, P: Tree<T>> Tree<T> for $name<P> {
            type Of<U: Leaf> = $name<P::Of<U>>;

            fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U> {
                $name { $field: visit.part(stringify!($field), &self.$field) }
            }
        }
    )*};
}

pub(super) use one_container;

one_container! {
    /// The state of [`trace`].
    ///
    /// ```
    /// let state = defn::optim::TraceState { trace: defn::Tensor::scalar(1.0)? };
    /// assert_eq!(defn::leaves(&state).len(), 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    TraceState {
        /// The decaying sums of updates.
        trace
    }
}

/// Declares transformations without a state, by what they do to updates.
macro_rules! stateless {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty),* }
        |$this:ident, $updates:ident, $params:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $($field: $ty),*
        }

        impl GradientTransformation for $name {
            type State<P: Exprs> = ();

            fn init<P: Exprs>(&self, _params: &P) {}

            #[track_caller]
            fn update<P: Exprs>(&self, $updates: &P, _state: (), $params: &P) -> (P, ()) {
                let $this = self;
                ($body, ())
            }
        }
    )*};
}

stateless! {
    /// What [`scale`] returns.
    ///
    /// ```
    /// let _: defn::optim::Scale = defn::optim::scale(0.5);
    /// ```
    Scale { factor: f64 } |this, updates, _params| tree::scale(this.factor, updates);
    /// What [`clip`] returns.
    ///
    /// ```
    /// let _: defn::optim::Clip = defn::optim::clip(0.5)?;
    /// # Ok::<(), defn::Error>(())
    /// ```
    Clip { limit: f64 } |this, updates, _params| {
        combine("clip", Location::caller(), [updates], |ops, [x]| ops.clip(x, -this.limit, this.limit))
    };
    /// What [`clip_by_global_norm`] returns.
    ///
    /// ```
    /// let _: defn::optim::ClipByGlobalNorm = defn::optim::clip_by_global_norm(0.5)?;
    /// # Ok::<(), defn::Error>(())
    /// ```
    ClipByGlobalNorm { max_norm: f64 } |this, updates, _params| {
        let norm = tree::norm(updates, None);
        let factor = norm.less(this.max_norm).select(1.0, this.max_norm / &norm);
        tree::scale(factor, updates)
    };
    /// What [`add_decayed_weights`] returns.
    ///
    /// ```
    /// let _: defn::optim::AddDecayedWeights = defn::optim::add_decayed_weights(0.5)?;
    /// # Ok::<(), defn::Error>(())
    /// ```
    AddDecayedWeights { weight_decay: f64 } |this, updates, params| {
        let at = Location::caller();
        combine("add_decayed_weights", at, [updates, params], |ops, [x, p]| ops.momentum(x, p, this.weight_decay))
    };
}

/// Updates times a factor.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let half = jit(|x: Expr| optim::scale(0.5).update(&x, (), &x).0);
/// assert_eq!(half.call(tensor![2.0, 4.0]?)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn scale(factor: f64) -> Scale {
    Scale { factor }
}

/// Elements limited to the range from `-limit` to `limit`.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let clip = optim::clip(1.0)?;
/// let clipped = jit(|x: Expr| clip.update(&x, (), &x).0);
/// assert_eq!(clipped.call(tensor![-3.0, 0.5]?)?.to_vec::<f32>()?, [-1.0, 0.5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A limit that is not positive (`Option`).
pub fn clip(limit: f64) -> Result<Clip> {
    Ok(Clip { limit: positive("clip", "limit", limit)? })
}

/// Updates scaled so that the norm of all together is at most `max_norm`.
///
/// The norm is the root of the sum of squares over all elements of all leaves, summed in at least f32. Pascanu, Mikolov
/// & Bengio, "On the difficulty of training recurrent neural networks" (2012).
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let clip = optim::clip_by_global_norm(2.5)?;
/// let clipped = jit(|x: Expr| clip.update(&x, (), &x).0);
/// assert_eq!(clipped.call(tensor![3.0, 4.0]?)?.to_vec::<f32>()?, [1.5, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A norm that is not positive (`Option`).
pub fn clip_by_global_norm(max_norm: f64) -> Result<ClipByGlobalNorm> {
    Ok(ClipByGlobalNorm { max_norm: positive("clip_by_global_norm", "max_norm", max_norm)? })
}

/// Updates plus `weight_decay` times the parameters; [`masked`](super::masked) selects some of these.
///
/// Loshchilov & Hutter, "Decoupled weight decay regularization" (2017).
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let decay = optim::add_decayed_weights(0.5)?;
/// let decayed = jit(|(x, p): (Expr, Expr)| decay.update(&x, (), &p).0);
/// assert_eq!(decayed.call((Tensor::scalar(1.0)?, Tensor::scalar(4.0)?))?.item::<f32>()?, 3.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A decay that is negative (`Option`).
pub fn add_decayed_weights(weight_decay: f64) -> Result<AddDecayedWeights> {
    Ok(AddDecayedWeights { weight_decay: not_negative("add_decayed_weights", "weight_decay", weight_decay)? })
}

/// Updates times the value of a schedule.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let rate = optim::scale_by_schedule(0.5);
/// let scaled = jit(|x: Expr| rate.update(&x, rate.init(&x), &x).0);
/// assert_eq!(scaled.call(tensor![2.0, 4.0]?)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn scale_by_schedule(schedule: impl Into<Schedule>) -> ScaleBySchedule {
    ScaleBySchedule { schedule: schedule.into(), sign: 1.0 }
}

/// Updates times a learning rate, a number or a schedule, with the sign of descent.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let rate = optim::scale_by_learning_rate(0.5);
/// let scaled = jit(|x: Expr| rate.update(&x, rate.init(&x), &x).0);
/// assert_eq!(scaled.call(tensor![2.0, 4.0]?)?.to_vec::<f32>()?, [-1.0, -2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn scale_by_learning_rate(learning_rate: impl Into<Schedule>) -> ScaleBySchedule {
    ScaleBySchedule { schedule: learning_rate.into(), sign: -1.0 }
}

/// What [`scale_by_schedule`] and [`scale_by_learning_rate`] return.
///
/// ```
/// let _: defn::optim::ScaleBySchedule = defn::optim::scale_by_learning_rate(0.5);
/// ```
#[derive(Clone, Debug)]
pub struct ScaleBySchedule {
    schedule: Schedule,
    sign: f64,
}

impl GradientTransformation for ScaleBySchedule {
    type State<P: Exprs> = ScheduleState<Expr>;

    fn init<P: Exprs>(&self, _params: &P) -> ScheduleState<Expr> {
        ScheduleState { count: no_steps() }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: ScheduleState<Expr>, _: &P) -> (P, ScheduleState<Expr>) {
        let factor = self.schedule.at(&state.count) * self.sign;
        (tree::scale(factor, updates), ScheduleState { count: next_count(&state.count) })
    }
}

/// Momentum: `trace = update + decay * trace`. With `nesterov` the result is `update + decay * trace`.
///
/// Polyak, "Some methods of speeding up the convergence of iteration methods" (1964); Sutskever et al., "On the
/// importance of initialization and momentum in deep learning" (2013).
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation, TraceState};
/// let momentum = optim::trace(0.5, false)?;
/// let moved = jit(|x: Expr| momentum.update(&x, TraceState { trace: &x * 2 }, &x).0);
/// assert_eq!(moved.call(tensor![1.0, 2.0]?)?.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A decay that is not in `[0, 1)` (`Option`).
pub fn trace(decay: f64, nesterov: bool) -> Result<Trace> {
    Ok(Trace { decay: fraction("trace", "decay", decay)?, nesterov })
}

/// What [`trace`] returns.
///
/// ```
/// let _: defn::optim::Trace = defn::optim::trace(0.5, true)?;
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trace {
    decay: f64,
    nesterov: bool,
}

impl GradientTransformation for Trace {
    type State<P: Exprs> = TraceState<P>;

    #[track_caller]
    fn init<P: Exprs>(&self, params: &P) -> TraceState<P> {
        TraceState { trace: zeros("trace", Location::caller(), params, false) }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: TraceState<P>, _: &P) -> (P, TraceState<P>) {
        let at = Location::caller();
        let moved = pairs("trace", &at, updates, &state.trace, |ops, x, t| ops.momentum(x, t, self.decay));
        let trace = kept("trace", &at, &moved, &state.trace);
        if !self.nesterov {
            return (moved, TraceState { trace });
        }
        let ahead = pairs("trace", &at, updates, &moved, |ops, x, t| ops.momentum(x, t, self.decay));
        (ahead, TraceState { trace })
    }
}

/// The container of what ops give for corresponding leaves of two.
pub(super) fn pairs<P: Exprs>(
    op: &'static str,
    at: &Location,
    a: &P,
    b: &P,
    mut apply: impl FnMut(&mut Ops, core::Tensor, core::Tensor) -> Result<core::Tensor>,
) -> P {
    combine(op, at.clone(), [a, b], |ops, [a, b]| apply(ops, a, b))
}

/// The next state in the dtypes of the last, so that it can be the state of a loop.
pub(super) fn kept<P: Exprs>(op: &'static str, at: &Location, new: &P, old: &P) -> P {
    pairs(op, at, new, old, |ops, new, old| {
        let dtype = ops.ty(&old).dtype;
        ops.as_type(new, dtype)
    })
}

fn refused(op: &'static str, option: &'static str, given: f64, required: &str) -> ErrorKind {
    ErrorKind::OptionValue { op, option, given: given.to_string(), required: required.to_owned() }
}

pub(super) fn positive(op: &'static str, option: &'static str, given: f64) -> Result<f64> {
    if given > 0.0 { Ok(given) } else { Err(refused(op, option, given, "a positive number").into()) }
}

pub(super) fn not_negative(op: &'static str, option: &'static str, given: f64) -> Result<f64> {
    if given >= 0.0 { Ok(given) } else { Err(refused(op, option, given, "0 or more").into()) }
}

pub(super) fn fraction(op: &'static str, option: &'static str, given: f64) -> Result<f64> {
    let fits = (0.0..1.0).contains(&given);
    if fits { Ok(given) } else { Err(refused(op, option, given, "at least 0 and less than 1").into()) }
}
