//! Transformations that decide whether another one makes a step.

use std::num::NonZeroU32;

use defn_core::builder::{BuildElementwise, Builder};
use defn_core::{Axes, Location};

use super::scaling::states;
use super::{GradientTransformation, copy, next_count, no_steps, zeros};
use crate::tree::arithmetic::combine;
use crate::{Expr, Exprs, Leaf, Tree, Visit, cond, leaves};

/// The state of [`accumulate`].
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::AccumulateState;
/// let zero = Tensor::scalar(0)?;
/// let state = AccumulateState { mini_step: zero.clone(), gradient_step: zero, mean: tensor![1.0]?, inner: () };
/// assert_eq!(defn::leaves(&state).len(), 3);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AccumulateState<T, P, S> {
    /// The number of gradients since the last step, an s32.
    pub mini_step: T,
    /// The number of steps, an s32 that stays at its greatest value.
    pub gradient_step: T,
    /// The mean of the gradients since the last step.
    pub mean: P,
    /// The state of the inner transformation.
    pub inner: S,
}

impl<T: Leaf, P: Tree<T>, S: Tree<T>> Tree<T> for AccumulateState<T, P, S> {
    type Of<U: Leaf> = AccumulateState<U, P::Of<U>, S::Of<U>>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U> {
        AccumulateState {
            mini_step: visit.part("mini_step", &self.mini_step),
            gradient_step: visit.part("gradient_step", &self.gradient_step),
            mean: visit.part("mean", &self.mean),
            inner: visit.part("inner", &self.inner),
        }
    }
}

states! {
    /// The state of [`apply_if_finite`].
    ///
    /// ```
    /// use defn::Tensor;
    /// use defn::optim::FiniteState;
    /// let state = FiniteState { not_finite: Tensor::scalar(0)?, total_not_finite: Tensor::scalar(0)?, inner: () };
    /// assert_eq!(defn::leaves(&state).len(), 2);
    /// # Ok::<(), defn::Error>(())
    /// ```
    FiniteState<T, S> {
        /// How many updates in a row were not finite, an s32.
        not_finite: T,
        /// How many updates were not finite at all, an s32 that stays at its greatest value.
        total_not_finite: T,
        /// The state of the inner transformation.
        inner: S
    }
}

/// A transformation of the mean of `every` gradients; in between, the updates are zeros. So a batch that does not fit
/// into memory is passed in parts.
///
/// ```
/// use std::num::NonZeroU32;
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
///
/// let every = NonZeroU32::new(2).unwrap();
/// let optimizer = optim::accumulate(optim::scale(-0.5), every);
/// let updates = jit(|(x, y): (Expr, Expr)| {
///     let (first, state) = optimizer.update(&x, optimizer.init(&x), &x);
///     let (second, _) = optimizer.update(&y, state, &x);
///     (first, second)
/// });
/// let (first, second) = updates.call((tensor![1.0]?, tensor![3.0]?))?;
/// assert_eq!((first.item::<f32>()?, second.item::<f32>()?), (0.0, -1.0));
/// # Ok::<(), defn::Error>(())
/// ```
pub fn accumulate<I: GradientTransformation>(inner: I, every: NonZeroU32) -> Accumulate<I> {
    Accumulate { inner, every }
}

/// What [`accumulate`] returns.
///
/// ```
/// use defn::optim::{self, Accumulate, Scale};
/// let _: Accumulate<Scale> = optim::accumulate(optim::scale(0.5), std::num::NonZeroU32::MIN);
/// ```
#[derive(Clone, Debug)]
pub struct Accumulate<I> {
    inner: I,
    every: NonZeroU32,
}

impl<I: GradientTransformation> GradientTransformation for Accumulate<I> {
    type State<P: Exprs> = AccumulateState<Expr, P, I::State<P>>;

    #[track_caller]
    fn init<P: Exprs>(&self, params: &P) -> Self::State<P> {
        let mean = zeros("accumulate", Location::caller(), params, false);
        let inner = self.inner.init(params);
        AccumulateState { mini_step: no_steps(), gradient_step: no_steps(), mean, inner }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let (op, at) = ("accumulate", Location::caller());
        let number = &state.mini_step + 1;
        let mean = combine(op, at.clone(), [updates, &state.mean], |ops, [update, mean]| {
            let dtype = ops.ty(&mean).dtype;
            let step = ops.subtract(update, &mean)?;
            let step = ops.divide(step, number.0.clone()?)?;
            let mean = ops.add(mean, step)?;
            ops.as_type(mean, dtype)
        });
        let none = || zeros(op, at.clone(), &mean, false);
        let stepped = || {
            let (moved, inner) = self.inner.update(&mean, copy(&state.inner), params);
            let gradient_step = next_count(&state.gradient_step);
            (moved, AccumulateState { mini_step: no_steps(), gradient_step, mean: none(), inner })
        };
        let waited = || {
            let (mini_step, gradient_step) = (number.clone(), state.gradient_step.clone());
            let mean = copy(&mean);
            (none(), AccumulateState { mini_step, gradient_step, mean, inner: copy(&state.inner) })
        };
        cond(&number.equal(i64::from(self.every.get())), stepped, waited)
    }
}

/// A transformation that leaves out updates with NaN or infinite elements: they are zeros, and the inner state stays.
/// After more than `max_consecutive` such updates in a row they are applied nevertheless, so that the failure shows.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let optimizer = optim::apply_if_finite(optim::scale(0.5), 3);
/// let update = jit(|x: Expr| optimizer.update(&x, optimizer.init(&x), &x).0);
/// assert_eq!(update.call(tensor![1.0, f32::NAN]?)?.to_vec::<f32>()?, [0.0, 0.0]);
/// assert_eq!(update.call(tensor![1.0, 2.0]?)?.to_vec::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn apply_if_finite<I: GradientTransformation>(inner: I, max_consecutive: u32) -> ApplyIfFinite<I> {
    ApplyIfFinite { inner, max_consecutive }
}

/// What [`apply_if_finite`] returns.
///
/// ```
/// use defn::optim::{self, ApplyIfFinite, Scale};
/// let _: ApplyIfFinite<Scale> = optim::apply_if_finite(optim::scale(0.5), 3);
/// ```
#[derive(Clone, Debug)]
pub struct ApplyIfFinite<I> {
    inner: I,
    max_consecutive: u32,
}

impl<I: GradientTransformation> GradientTransformation for ApplyIfFinite<I> {
    type State<P: Exprs> = FiniteState<Expr, I::State<P>>;

    #[track_caller]
    fn init<P: Exprs>(&self, params: &P) -> Self::State<P> {
        FiniteState { not_finite: no_steps(), total_not_finite: no_steps(), inner: self.inner.init(params) }
    }

    #[track_caller]
    fn update<P: Exprs>(&self, updates: &P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let at = Location::caller();
        let each = leaves(updates).into_iter().map(|leaf| leaf.isfinite().all(Axes::All, false));
        let Some(finite) = each.reduce(|a, b| a.logical_and(b)) else {
            return self.inner_update(updates, state, params);
        };
        let not_finite = finite.select(0, next_count(&state.not_finite));
        let total = finite.select(&state.total_not_finite, next_count(&state.total_not_finite));
        let apply = finite.logical_or(not_finite.greater(i64::from(self.max_consecutive)));
        let applied = || self.inner.update(updates, copy(&state.inner), params);
        let (moved, inner) =
            cond(&apply, applied, || (zeros("apply_if_finite", at, updates, false), copy(&state.inner)));
        (moved, FiniteState { not_finite, total_not_finite: total, inner })
    }
}

impl<I: GradientTransformation> ApplyIfFinite<I> {
    /// Without elements, nothing is not finite.
    fn inner_update<P: Exprs>(
        &self,
        updates: &P,
        state: FiniteState<Expr, I::State<P>>,
        params: &P,
    ) -> (P, FiniteState<Expr, I::State<P>>) {
        let (moved, inner) = self.inner.update(updates, state.inner, params);
        (moved, FiniteState { inner, ..state })
    }
}
