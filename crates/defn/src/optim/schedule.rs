//! Schedules: functions of the number of steps done.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use defn_core::{DType, ErrorKind, Result};

use super::scaling;
use crate::Expr;

/// A function of the number of steps done. A number is the schedule that has this value at each step.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::Schedule;
///
/// let halves = Schedule::new(|count| 1.0 / (count + 1));
/// let value = jit(|count: Expr| 2.0 * halves.at(&count));
/// assert_eq!(value.call(Tensor::scalar(3)?)?.item::<f32>()?, 0.5);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone)]
pub struct Schedule(Arc<dyn Fn(&Expr) -> Expr + Send + Sync>);

impl Schedule {
    /// The schedule of a function.
    ///
    /// ```
    /// use defn::optim::Schedule;
    /// let line = Schedule::new(|count| 0.1 * count);
    /// assert!(format!("{line:?}").starts_with("Schedule"));
    /// ```
    pub fn new(value: impl Fn(&Expr) -> Expr + Send + Sync + 'static) -> Schedule {
        Schedule(Arc::new(value))
    }

    /// The value after a number of steps.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::optim::Schedule;
    /// let value = jit(|count: Expr| Schedule::from(0.5).at(&count));
    /// assert_eq!(value.call(Tensor::scalar(3)?)?.item::<f32>()?, 0.5);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn at(&self, count: &Expr) -> Expr {
        (self.0)(count)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").finish_non_exhaustive()
    }
}

impl From<f64> for Schedule {
    fn from(value: f64) -> Schedule {
        constant_schedule(value)
    }
}

/// The same value at each step.
///
/// ```
/// use defn::prelude::*;
/// let value = jit(|count: Expr| defn::optim::constant_schedule(0.5).at(&count));
/// assert_eq!(value.call(Tensor::scalar(7)?)?.item::<f32>()?, 0.5);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn constant_schedule(value: f64) -> Schedule {
    Schedule::new(move |_| Expr::from(value))
}

/// A line from `from` to `to` over `steps` steps, after `begin` steps; both stay.
///
/// ```
/// use defn::prelude::*;
/// let line = defn::optim::linear_schedule(1.0, 0.0, 4, 0)?;
/// let value = jit(|count: Expr| line.at(&count));
/// assert_eq!(value.call(Tensor::scalar(1)?)?.item::<f32>()?, 0.75);
/// assert_eq!(value.call(Tensor::scalar(9)?)?.item::<f32>()?, 0.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A number of steps of 0 (`Option`).
pub fn linear_schedule(from: f64, to: f64, steps: u32, begin: u32) -> Result<Schedule> {
    let steps = positive("linear_schedule", "steps", steps)?;
    Ok(Schedule::new(move |count| {
        let left = 1.0 - done(count, begin).min(steps) / steps;
        left * (from - to) + to
    }))
}

/// Half a period of a cosine, from `from` to `alpha * from`, which stays, to the power `exponent`.
///
/// Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts" (2016).
///
/// ```
/// use defn::prelude::*;
/// let cosine = defn::optim::cosine_decay_schedule(1.0, 4, 0.0, 1.0)?;
/// let value = jit(|count: Expr| cosine.at(&count));
/// assert!((value.call(Tensor::scalar(2)?)?.item::<f32>()? - 0.5).abs() < 1e-6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A number of steps of 0 (`Option`).
pub fn cosine_decay_schedule(from: f64, steps: u32, alpha: f64, exponent: f64) -> Result<Schedule> {
    let steps = positive("cosine_decay_schedule", "steps", steps)?;
    Ok(Schedule::new(move |count| {
        let share = ((done(count, 0).min(steps) * (PI / steps)).cos() + 1.0) * 0.5;
        let share = if exponent == 1.0 { share } else { share.pow(exponent) };
        (share * (1.0 - alpha) + alpha) * from
    }))
}

/// A line from `from` to `peak` over `warmup` steps, then a cosine to `to`, which stays. `steps` counts the steps of
/// both.
///
/// ```
/// use defn::prelude::*;
/// let schedule = defn::optim::warmup_cosine_decay_schedule(0.0, 1.0, 2, 6, 0.0)?;
/// let value = jit(|count: Expr| schedule.at(&count));
/// assert_eq!(value.call(Tensor::scalar(1)?)?.item::<f32>()?, 0.5);
/// assert_eq!(value.call(Tensor::scalar(2)?)?.item::<f32>()?, 1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A warmup of 0 steps, and of all steps (`Option`).
pub fn warmup_cosine_decay_schedule(
    from: f64,
    peak: f64,
    warmup: u32,
    steps: u32,
    to: f64,
) -> Result<Schedule> {
    let line = linear_schedule(from, peak, warmup, 0)?;
    let alpha = if peak == 0.0 { 0.0 } else { to / peak };
    let cosine = cosine_decay_schedule(peak, steps.saturating_sub(warmup), alpha, 1.0)?;
    join_schedules(vec![line, cosine], vec![warmup])
}

/// `from * rate^(count / steps)`, with the quotient rounded down for a staircase. The value does not go beyond `to`.
///
/// ```
/// use defn::prelude::*;
/// let decay = defn::optim::exponential_decay(1.0, 2, 0.25, false, Some(0.1))?;
/// let value = jit(|count: Expr| decay.at(&count));
/// assert_eq!(value.call(Tensor::scalar(2)?)?.item::<f32>()?, 0.25);
/// assert_eq!(value.call(Tensor::scalar(9)?)?.item::<f32>()?, 0.1);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A number of steps of 0, and a rate that is not positive (`Option`).
pub fn exponential_decay(
    from: f64,
    steps: u32,
    rate: f64,
    staircase: bool,
    to: Option<f64>,
) -> Result<Schedule> {
    let op = "exponential_decay";
    let steps = positive(op, "steps", steps)?;
    let rate = scaling::positive(op, "rate", rate)?;
    Ok(Schedule::new(move |count| {
        let power = done(count, 0) / steps;
        let power = if staircase { power.floor() } else { power };
        let value = (power * rate.ln()).exp() * from;
        match to {
            None => value,
            Some(to) if rate < 1.0 => value.max(to),
            Some(to) => value.min(to),
        }
    }))
}

/// A value that is multiplied by a factor at each of some numbers of steps.
///
/// ```
/// use defn::prelude::*;
/// let pieces = defn::optim::piecewise_constant_schedule(1.0, vec![(2, 0.5), (4, 0.5)]);
/// let value = jit(|count: Expr| pieces.at(&count));
/// assert_eq!(value.call(Tensor::scalar(1)?)?.item::<f32>()?, 1.0);
/// assert_eq!(value.call(Tensor::scalar(4)?)?.item::<f32>()?, 0.25);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn piecewise_constant_schedule(value: f64, factors: Vec<(u32, f64)>) -> Schedule {
    Schedule::new(move |count| {
        factors.iter().fold(Expr::from(value), |value, &(boundary, factor)| {
            value * count.less(as_count(boundary)).select(1.0, factor)
        })
    })
}

/// Schedules one after another; each counts from the boundary at which it begins.
///
/// ```
/// use defn::prelude::*;
/// use defn::optim::{self, Schedule};
/// let parts = vec![optim::linear_schedule(0.0, 1.0, 2, 0)?, Schedule::from(0.5)];
/// let schedule = optim::join_schedules(parts, vec![2])?;
/// let value = jit(|count: Expr| schedule.at(&count));
/// assert_eq!(value.call(Tensor::scalar(1)?)?.item::<f32>()?, 0.5);
/// assert_eq!(value.call(Tensor::scalar(9)?)?.item::<f32>()?, 0.5);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another number of boundaries than one between each two schedules, and boundaries that do not ascend (`Option`).
pub fn join_schedules(schedules: Vec<Schedule>, boundaries: Vec<u32>) -> Result<Schedule> {
    let number = schedules.len();
    let mut schedules = schedules.into_iter();
    let Some(first) = schedules.next().filter(|_| boundaries.len() + 1 == number && boundaries.is_sorted())
    else {
        let (op, option, given) = ("join_schedules", "boundaries", format!("{boundaries:?}"));
        let required = format!("one boundary between each two of {number} schedules, ascending");
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    };
    let later: Vec<_> = boundaries.into_iter().map(as_count).zip(schedules).collect();
    Ok(Schedule::new(move |count| {
        later.iter().fold(first.at(count), |value, (boundary, schedule)| {
            count.less(*boundary).select(value, schedule.at(&(count - *boundary)))
        })
    }))
}

fn positive(op: &'static str, option: &'static str, steps: u32) -> Result<f64> {
    if steps > 0 {
        return Ok(steps.into());
    }
    let (given, required) = (steps.to_string(), "a positive number".to_owned());
    Err(ErrorKind::OptionValue { op, option, given, required }.into())
}

/// The steps since the beginning of a schedule, as a float.
fn done(count: &Expr, begin: u32) -> Expr {
    (count - as_count(begin)).max(0).as_type(DType::F32)
}

/// Counts of steps go no further.
fn as_count(steps: u32) -> i32 {
    i32::try_from(steps).unwrap_or(i32::MAX)
}
