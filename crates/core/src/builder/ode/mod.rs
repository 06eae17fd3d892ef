//! Initial value problems: explicit Runge-Kutta methods whose steps follow an estimate of their error.
//!
//! The state is one vector for all unknowns. A loop over the times contains a loop over steps: values at the times are
//! those of dense output, so that the times do not determine the steps. Steps do not go beyond the last time.
//!
//! Derivatives are those of the steps that were taken, whose lengths count as constants, or those of the adjoint equation.

mod adjoint;
mod event;
mod state;
mod steps;
mod tableau;

use super::implicit::{not_valid, require_tolerances};
use super::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildIndex, BuildReduce, BuildShape, Builder, Ops,
    ScanOptions, scan,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::shape::{Axes, AxisRef, Shape};
use crate::tensor::Tensor;
use state::{Layout, State};
use tableau::{DORMAND_PRINCE, TSITOURAS, Tableau};

/// A method of initial value problems.
///
/// ```
/// use defn_core::builder::OdeMethod;
/// assert_eq!(OdeMethod::of_name("dopri5"), Some(OdeMethod::Dopri5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OdeMethod {
    /// Tsitouras's pair of order 5(4).
    #[default]
    Tsit5,
    /// Dormand and Prince's pair of order 5(4).
    Dopri5,
}

impl OdeMethod {
    /// The names of the methods.
    pub const NAMES: [&'static str; 2] = ["tsit5", "dopri5"];

    /// The method of a name.
    pub fn of_name(name: &str) -> Option<OdeMethod> {
        match name {
            "tsit5" => Some(OdeMethod::Tsit5),
            "dopri5" => Some(OdeMethod::Dopri5),
            _ => None,
        }
    }

    fn tableau(self) -> &'static Tableau {
        match self {
            OdeMethod::Tsit5 => &TSITOURAS,
            OdeMethod::Dopri5 => &DORMAND_PRINCE,
        }
    }
}

/// How gradients of a solution are computed.
///
/// ```
/// use defn_core::builder::OdeGradient;
/// assert_eq!(OdeGradient::of_name("adjoint"), Some(OdeGradient::Adjoint));
/// assert_eq!(OdeGradient::default(), OdeGradient::Direct);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OdeGradient {
    /// Those of the steps that were taken, in both modes and of any order.
    #[default]
    Direct,
    /// By the adjoint equation, which is solved from the last time to the first, in reverse mode.
    Adjoint,
}

impl OdeGradient {
    /// The names of the gradients.
    pub const NAMES: [&'static str; 2] = ["direct", "adjoint"];

    /// The gradient of a name.
    pub fn of_name(name: &str) -> Option<OdeGradient> {
        match name {
            "direct" => Some(OdeGradient::Direct),
            "adjoint" => Some(OdeGradient::Adjoint),
            _ => None,
        }
    }
}

/// The options of [`odeint`].
///
/// ```
/// use defn_core::builder::{OdeMethod, OdeOptions};
/// let options = OdeOptions { rtol: Some(1e-9), ..OdeOptions::default() };
/// assert_eq!((options.method, options.max_steps), (OdeMethod::Tsit5, 4096));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OdeOptions {
    /// The method.
    pub method: OdeMethod,
    /// The error of a step relative to the unknowns; by default 1e-6 for f64 and 1e-4 for narrower dtypes.
    pub rtol: Option<f64>,
    /// The error of a step beside unknowns that are near zero; by default a hundredth of `rtol`.
    pub atol: Option<f64>,
    /// The most steps, accepted or not.
    pub max_steps: i64,
    /// The length of the first step.
    pub first_step: Option<f64>,
    /// How gradients are computed.
    pub gradient: OdeGradient,
    /// The number of states that reverse mode keeps of each loop.
    pub snapshots: Option<usize>,
}

impl Default for OdeOptions {
    fn default() -> OdeOptions {
        OdeOptions {
            method: OdeMethod::default(),
            rtol: None,
            atol: None,
            max_steps: 4096,
            first_step: None,
            gradient: OdeGradient::default(),
            snapshots: None,
        }
    }
}

/// A right-hand side: the slopes of the unknowns at a time.
pub type OdeFunction<'a> = &'a mut dyn FnMut(&mut Ops, &Tensor, &[Tensor]) -> Result<Vec<Arg<Tensor>>>;

/// What became of an initial value problem.
#[derive(Clone, Debug)]
pub struct OdeSolution {
    /// The unknowns at the times, along a new first axis; NaN at times that were not reached.
    pub ys: Vec<Tensor>,
    /// 0 if all times were reached; 1 after too many steps; 2 where a step would be too short to change the time, or is not
    /// finite; 3 for times that are not in order; 4 at an event. An s32.
    pub status: Tensor,
    /// The time that was reached.
    pub t_reached: Tensor,
    /// The number of accepted steps, an s32.
    pub steps: Tensor,
    /// The number of rejected steps, an s32.
    pub rejected: Tensor,
    /// The event, if one was asked for.
    pub event: Option<OdeEvent>,
}

/// The event that ended a solution, NaN if none did.
#[derive(Clone, Debug)]
pub struct OdeEvent {
    /// The time.
    pub t: Tensor,
    /// The unknowns at the time.
    pub y: Vec<Tensor>,
}

/// The status of a problem whose times are not in order.
const OUT_OF_ORDER: i64 = 3;

/// The status of a problem that ended at an event.
const EVENT: i64 = 4;

/// The tolerances and constants of a problem.
struct Problem {
    tableau: &'static Tableau,
    layout: Layout,
    /// The dtype of times.
    time: DType,
    rtol: f64,
    atol: f64,
    max_steps: i64,
}

/// The last time, and 1 or -1 for the direction.
struct Times {
    end: Tensor,
    direction: Tensor,
}

/// The solution of `dy/dt = function(t, y)` with `y = y0` at the first of the times, at all times.
///
/// # Errors
/// Times that are not a vector of at least one real number, unknowns that are not numbers, slopes of other shapes than
/// their unknowns, complex slopes of real unknowns, and options out of range.
pub fn odeint(
    ops: &mut Ops,
    options: &OdeOptions,
    function: OdeFunction<'_>,
    y0: &[Tensor],
    ts: &Tensor,
) -> Result<OdeSolution> {
    solution(ops, options, (function, None), y0, ts)
}

/// As [`odeint`], up to the first time at which a number of `event` changes its sign. The event returns real numbers of
/// any shapes; it is found if a sign differs at the end of a step. The unknowns are NaN at later times.
///
/// # Errors
/// As [`odeint`]; numbers that are complex, and another gradient than the direct one.
pub fn odeint_until(
    ops: &mut Ops,
    options: &OdeOptions,
    function: OdeFunction<'_>,
    event: OdeFunction<'_>,
    y0: &[Tensor],
    ts: &Tensor,
) -> Result<OdeSolution> {
    if options.gradient == OdeGradient::Adjoint {
        return Err(not_valid("odeint", "gradient", "\"adjoint\"".to_owned(), "\"direct\" with an event"));
    }
    solution(ops, options, (function, Some(event)), y0, ts)
}

fn solution(
    ops: &mut Ops,
    options: &OdeOptions,
    (function, event): (OdeFunction<'_>, Option<OdeFunction<'_>>),
    y0: &[Tensor],
    ts: &Tensor,
) -> Result<OdeSolution> {
    let ty = ops.ty(ts);
    if ty.shape.rank() != 1 || ty.shape.size() == 0 || ty.dtype.is_complex() {
        let required = "a vector of at least one real number is required";
        return Err(ErrorKind::Rank { op: "odeint", got: ty, required }.into());
    }
    let layout = Layout::new(ops, y0)?;
    let real = layout.dtype().to_real();
    let time = ty.dtype.to_float().merge(real);
    let digits = if real == DType::F64 { 1e-6 } else { 1e-4 };
    require_tolerances("odeint", &[("rtol", options.rtol), ("atol", options.atol)])?;
    let rtol = options.rtol.unwrap_or(digits);
    let atol = options.atol.unwrap_or(rtol * 1e-2);
    if options.max_steps < 1 || options.max_steps > i64::from(i32::MAX) {
        return Err(not_valid(
            "odeint",
            "max_steps",
            options.max_steps.to_string(),
            "an integer from 1 to 2147483647",
        ));
    }
    let tableau = options.method.tableau();
    let problem = Problem { tableau, layout, time, rtol, atol, max_steps: options.max_steps };
    let count = ty.shape.size();
    let ts = ops.as_type(ts, time)?;
    let ts = ops.reshape_to(ts, Shape::new(&[count]))?;
    let y = problem.layout.join(ops, y0)?;
    let (state, rows, event) = match options.gradient {
        OdeGradient::Direct => problem.solve(ops, options, (function, event), &y, &ts)?,
        OdeGradient::Adjoint => {
            let (state, rows) = adjoint::solve(&problem, ops, options, function, &y, &ts)?;
            (state, rows, None)
        }
    };
    let ys = problem.layout.split_rows(ops, &rows, count)?;
    let State { t: t_reached, status, steps, rejected, .. } = state;
    Ok(OdeSolution { ys, status, t_reached, steps, rejected, event })
}

/// Refuses statuses of which one is neither 0 nor that of an event. The error describes the first position with the greatest.
///
/// ```
/// use defn_core::builder::require_reached;
/// assert!(require_reached(&[0, 0], &[1.0, 1.0]).is_ok());
/// let error = require_reached(&[0, 1], &[1.0, 0.5]).unwrap_err();
/// assert_eq!(error.to_string(), "odeint: stopped at the time 0.5, max_steps steps were taken");
/// ```
///
/// # Errors
/// A status other than 0 and 4.
pub fn require_reached(status: &[i64], times: &[f64]) -> Result<()> {
    let worst = status.iter().copied().filter(|&status| status != EVENT).max().unwrap_or(0);
    let reason = match worst {
        0 => return Ok(()),
        1 => "max_steps steps were taken",
        2 => "steps became too short: the problem is stiff, or its solution is not finite",
        _ => "the times are not in order",
    };
    let position = status.iter().position(|&status| status == worst);
    let time = position.and_then(|position| times.get(position)).copied().unwrap_or(f64::NAN);
    Err(ErrorKind::OdeStopped { time: with_nine_digits(time), reason }.into())
}

/// The last digits of a time at which steps become too short are those of the rounding, which compilers choose.
fn with_nine_digits(time: f64) -> String {
    let rounded: f64 = format!("{time:.8e}").parse().unwrap_or(time);
    format!("{rounded:?}")
}

impl Problem {
    /// The problem whose only unknown is the vector.
    fn of_vectors(&self) -> Problem {
        Problem { layout: self.layout.of_vectors(), ..*self }
    }

    /// The last state, the unknowns at the times as rows, and the event.
    fn solve(
        &self,
        ops: &mut Ops,
        options: &OdeOptions,
        (mut function, mut event): (OdeFunction<'_>, Option<OdeFunction<'_>>),
        y: &Tensor,
        ts: &Tensor,
    ) -> Result<(State, Tensor, Option<OdeEvent>)> {
        let count = ops.ty(ts).shape.size();
        let (start, end) = (at(ops, ts, 0)?, at(ops, ts, count as i64 - 1)?);
        let span = ops.subtract(&end, &start)?;
        let sign = ops.less(&span, 0)?;
        let direction = ops.select(sign, -1.0, 1.0)?;
        let direction = ops.as_type(direction, self.time)?;
        let times = Times { end, direction };
        let slope = self.slope(ops, &mut function, &start, y)?;
        let first = match options.first_step {
            Some(step) => {
                if !(step > 0.0 && step.is_finite()) {
                    return Err(not_valid("odeint", "first_step", step.to_string(), "a positive number"));
                }
                ops.full(Shape::scalar(), self.time, step)?
            }
            None => self.first_step(ops, &mut function, &times, &start, (y, &slope))?,
        };
        let mut state = State::begin(ops, self.time, start.clone(), y.clone(), slope, first)?;
        state.status = in_order(ops, ts, &times.direction, count)?;
        if let Some(event) = reborrowed(&mut event) {
            let numbers = self.numbers(ops, event, &start, y)?;
            state.event = vec![ops.stop_grad(numbers)?];
        }
        let mut rows = ops.reshape_to(y, Shape::new(&[1, self.layout.size()]))?;
        if count > 1 {
            (state, rows) =
                self.steps(ops, options, (&mut function, reborrowed(&mut event)), &times, (state, rows, ts))?;
        }
        let Some(event) = event else { return Ok((state, rows, None)) };
        let (event, rows) = self.located(ops, event, &times, &mut state, (ts, &rows))?;
        Ok((state, rows, Some(event)))
    }

    /// The last state, and the rows of all times, from those before the first step.
    fn steps(
        &self,
        ops: &mut Ops,
        options: &OdeOptions,
        (mut function, mut event): (OdeFunction<'_>, Option<OdeFunction<'_>>),
        times: &Times,
        (state, before, ts): (State, Tensor, &Tensor),
    ) -> Result<(State, Tensor)> {
        let count = ops.ty(ts).shape.size();
        let ty = ops.ty(&state.y);
        let counter = index_dtype(count);
        let scanned = ScanOptions { counter, trips: count - 1, reverse: false, snapshots: options.snapshots };
        let (last, rows) = scan(ops, scanned, state.into_vec(), [ty], |ops, position, carried| {
            let state = State::from_slice(carried);
            let own = ops.add(position, 1)?;
            let target = row(ops, ts, &own)?;
            let functions: (OdeFunction<'_>, _) = (&mut function, reborrowed(&mut event));
            let state = self.reach(ops, functions, times, options.snapshots, state, &target)?;
            let y = self.output(ops, times, &state, &target)?;
            Ok((state.into_args(), vec![Arg::Value(y)]))
        })?;
        let later = rows.into_iter().next().expect("one output");
        Ok((State::from_slice(&last), ops.concatenate(&[before, later], AxisRef::Index(0))?))
    }

    /// The slopes of the unknowns, as a vector.
    fn slope(&self, ops: &mut Ops, function: OdeFunction<'_>, t: &Tensor, y: &Tensor) -> Result<Tensor> {
        let unknowns = self.layout.split(ops, y)?;
        let slopes = function(ops, t, &unknowns)?;
        self.layout.join_slopes(ops, slopes)
    }

    /// The algorithm of Hairer, Norsett & Wanner, "Solving ordinary differential equations I" (1993), II.4: a step of Euler's
    /// method tells how fast slopes change.
    fn first_step(
        &self,
        ops: &mut Ops,
        function: OdeFunction<'_>,
        times: &Times,
        start: &Tensor,
        (y, slope): (&Tensor, &Tensor),
    ) -> Result<Tensor> {
        let (y, slope) = (ops.stop_grad(y)?, ops.stop_grad(slope)?);
        let size = self.size_of(ops, &y, &y, &y)?;
        let speed = self.size_of(ops, &slope, &y, &y)?;
        let (tiny, slow) = (ops.less(&size, 1e-5)?, ops.less(&speed, 1e-5)?);
        let degenerate = ops.logical_or(tiny, slow)?;
        let divisor = ops.select(&degenerate, 1.0, &speed)?;
        let guess = ops.divide(size, divisor)?;
        let guess = ops.multiply(guess, 0.01)?;
        let guess = ops.select(degenerate, 1e-6, guess)?;
        let guess = ops.as_type(guess, self.time)?;
        let signed = ops.multiply(&guess, &times.direction)?;
        let t = ops.add(start, &signed)?;
        let t = ops.stop_grad(t)?;
        let length = ops.as_type(&signed, self.layout.dtype().to_real())?;
        let change = ops.multiply(&slope, length)?;
        let ahead = ops.add(&y, change)?;
        let later = self.slope(ops, function, &t, &ahead)?;
        let later = ops.stop_grad(later)?;
        let difference = ops.subtract(later, &slope)?;
        let bend = self.size_of(ops, &difference, &y, &y)?;
        let bend = ops.as_type(bend, self.time)?;
        let bend = ops.divide(bend, &guess)?;
        let speed = ops.as_type(speed, self.time)?;
        let fastest = ops.max(speed, bend)?;
        let still = ops.less_equal(&fastest, 1e-15)?;
        let divisor = ops.select(&still, 1.0, fastest)?;
        let quotient = ops.divide(0.01, divisor)?;
        let power = ops.pow(quotient, 0.2)?;
        let short = ops.multiply(&guess, 1e-3)?;
        let short = ops.max(short, 1e-6)?;
        let step = ops.select(still, short, power)?;
        let most = ops.multiply(guess, 100.0)?;
        let step = ops.min(step, most)?;
        // Slopes that are not finite say nothing.
        let finite = ops.isfinite(&step)?;
        let step = ops.select(finite, step, 1e-6)?;
        let step = ops.as_type(step, self.time)?;
        ops.stop_grad(step)
    }

    /// The root of the mean of the squares of a vector, each element divided by its tolerance.
    fn size_of(&self, ops: &mut Ops, x: &Tensor, before: &Tensor, after: &Tensor) -> Result<Tensor> {
        if self.layout.size() == 0 {
            return ops.full(Shape::scalar(), self.layout.dtype().to_real(), 0);
        }
        let (before, after) = (ops.abs(before)?, ops.abs(after)?);
        let larger = ops.max(before, after)?;
        let tolerance = ops.multiply(larger, self.rtol)?;
        let tolerance = ops.add(tolerance, self.atol)?;
        let x = ops.abs(x)?;
        let parts = ops.divide(x, tolerance)?;
        let squares = ops.multiply(&parts, &parts)?;
        let mean = ops.mean(squares, Axes::All, false)?;
        ops.sqrt(mean)
    }
}

/// A function that may be used again afterwards.
fn reborrowed<'a>(function: &'a mut Option<OdeFunction<'_>>) -> Option<OdeFunction<'a>> {
    match function {
        Some(function) => Some(&mut **function),
        None => None,
    }
}

/// The status before the first step: whether times follow each other in the direction of the last one.
fn in_order(ops: &mut Ops, ts: &Tensor, direction: &Tensor, count: usize) -> Result<Tensor> {
    let length = count as i64 - 1;
    let before = ops.slice_along_axis(ts, 0, length, AxisRef::Index(0), 1)?;
    let after = ops.slice_along_axis(ts, 1, length, AxisRef::Index(0), 1)?;
    let steps = ops.subtract(after, before)?;
    let steps = ops.multiply(steps, direction)?;
    let ordered = ops.greater_equal(steps, 0)?;
    let all = ops.all(ordered, Axes::All, false)?;
    let status = ops.select(all, 0, OUT_OF_ORDER)?;
    ops.as_type(status, DType::S32)
}

/// The element at a constant position.
fn at(ops: &mut Ops, ts: &Tensor, position: i64) -> Result<Tensor> {
    let part = ops.slice_along_axis(ts, position, 1, AxisRef::Index(0), 1)?;
    ops.reshape_to(part, Shape::scalar())
}

/// The element at a position.
fn row(ops: &mut Ops, ts: &Tensor, position: &Tensor) -> Result<Tensor> {
    ops.take(ts, position, AxisRef::Index(0))
}
