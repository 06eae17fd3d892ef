//! Optimizers: chains that end with a learning rate, under the names of their authors.

use defn_core::Result;

use super::{
    AdamOptions, AddDecayedWeights, RmsOptions, ScaleByAdam, ScaleByLion, ScaleByRms, ScaleBySchedule,
    Schedule, Trace, add_decayed_weights, scale_by_adam, scale_by_learning_rate, scale_by_lion, scale_by_rms,
    trace,
};

/// What [`sgd`] returns.
///
/// ```
/// let _: defn::optim::Sgd = defn::optim::sgd(0.1, 0.9, false)?;
/// # Ok::<(), defn::Error>(())
/// ```
pub type Sgd = (Trace, ScaleBySchedule);

/// What [`adam`] returns.
///
/// ```
/// let _: defn::optim::Adam = defn::optim::adam(0.1, Default::default())?;
/// # Ok::<(), defn::Error>(())
/// ```
pub type Adam = (ScaleByAdam, ScaleBySchedule);

/// What [`adamw`] returns.
///
/// ```
/// let _: defn::optim::AdamW = defn::optim::adamw(0.1, 1e-4, Default::default())?;
/// # Ok::<(), defn::Error>(())
/// ```
pub type AdamW = (ScaleByAdam, AddDecayedWeights, ScaleBySchedule);

/// What [`lion`] returns.
///
/// ```
/// let _: defn::optim::Lion = defn::optim::lion(0.1, 0.9, 0.99, 1e-3)?;
/// # Ok::<(), defn::Error>(())
/// ```
pub type Lion = (ScaleByLion, AddDecayedWeights, ScaleBySchedule);

/// What [`rmsprop`] returns.
///
/// ```
/// let _: defn::optim::RmsProp = defn::optim::rmsprop(0.1, Default::default())?;
/// # Ok::<(), defn::Error>(())
/// ```
pub type RmsProp = (ScaleByRms, ScaleBySchedule);

/// Gradient descent with momentum, which may be 0; see [`trace`].
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let sgd = optim::sgd(0.5, 0.0, false)?;
/// let update = jit(|x: Expr| sgd.update(&x, sgd.init(&x), &x).0);
/// assert_eq!(update.call(tensor![2.0]?)?.item::<f32>()?, -1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A momentum that is not in `[0, 1)` (`Option`).
pub fn sgd(learning_rate: impl Into<Schedule>, momentum: f64, nesterov: bool) -> Result<Sgd> {
    Ok((trace(momentum, nesterov)?, scale_by_learning_rate(learning_rate)))
}

/// Adam; see [`scale_by_adam`].
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let adam = optim::adam(0.5, Default::default())?;
/// let update = jit(|x: Expr| adam.update(&x, adam.init(&x), &x).0);
/// assert!((update.call(tensor![2.0]?)?.item::<f32>()? + 0.5).abs() < 1e-6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`scale_by_adam`].
pub fn adam(learning_rate: impl Into<Schedule>, options: AdamOptions) -> Result<Adam> {
    Ok((scale_by_adam(options)?, scale_by_learning_rate(learning_rate)))
}

/// Adam with decay of weights, which is multiplied by the learning rate; see [`add_decayed_weights`].
///
/// For a decay of some parameters, chain [`scale_by_adam`], [`masked`](super::masked) and [`scale_by_learning_rate`].
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let adamw = optim::adamw(0.5, 0.5, Default::default())?;
/// let update = jit(|p: Expr| adamw.update(&(&p * 0), adamw.init(&p), &p).0);
/// assert_eq!(update.call(tensor![2.0]?)?.item::<f32>()?, -0.5);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`scale_by_adam`] and [`add_decayed_weights`].
pub fn adamw(learning_rate: impl Into<Schedule>, weight_decay: f64, options: AdamOptions) -> Result<AdamW> {
    let rate = scale_by_learning_rate(learning_rate);
    Ok((scale_by_adam(options)?, add_decayed_weights(weight_decay)?, rate))
}

/// Lion: steps of one length, with decay of weights; see [`scale_by_lion`].
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation};
/// let lion = optim::lion(0.5, 0.9, 0.99, 0.0)?;
/// let update = jit(|x: Expr| lion.update(&x, lion.init(&x), &x).0);
/// assert_eq!(update.call(tensor![2.0, -0.1]?)?.to_vec::<f32>()?, [-0.5, 0.5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`scale_by_lion`] and [`add_decayed_weights`].
pub fn lion(learning_rate: impl Into<Schedule>, b1: f64, b2: f64, weight_decay: f64) -> Result<Lion> {
    let rate = scale_by_learning_rate(learning_rate);
    Ok((scale_by_lion(b1, b2)?, add_decayed_weights(weight_decay)?, rate))
}

/// RMSProp; see [`scale_by_rms`]. For momentum, chain it with [`trace`].
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, GradientTransformation, RmsOptions};
/// let rms = optim::rmsprop(0.5, RmsOptions { decay: 0.75, eps: 0.0, ..RmsOptions::default() })?;
/// let update = jit(|x: Expr| rms.update(&x, rms.init(&x), &x).0);
/// assert_eq!(update.call(tensor![3.0]?)?.item::<f32>()?, -1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`scale_by_rms`].
pub fn rmsprop(learning_rate: impl Into<Schedule>, options: RmsOptions) -> Result<RmsProp> {
    Ok((scale_by_rms(options)?, scale_by_learning_rate(learning_rate)))
}
