//! Initial value problems: explicit Runge-Kutta methods whose steps follow an estimate of their error.
//!
//! The state is one vector for all unknowns. A loop over the times contains a loop over steps: values at the times are
//! those of dense output, so that the times do not determine the steps. Steps do not go beyond the last time.
//!
//! Derivatives are those of the steps that were taken: the lengths of steps count as constants.

mod state;
mod tableau;

use std::sync::Arc;

use super::implicit::{LinearFunction, Traced, not_valid, require_tolerances, traced};
use super::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildIndex, BuildReduce, BuildShape, Builder,
    LoopOptions, Ops, ScanOptions, scan, while_,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::op::CustomRules;
use crate::region::Region;
use crate::shape::{Axes, AxisRef, Shape};
use crate::tensor::Tensor;
use crate::vectorize;
use state::{Layout, Stages, State};
use tableau::{DORMAND_PRINCE, POWERS, STAGES, TSITOURAS, Tableau};

/// A method of initial value problems.
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
    /// finite; 3 for times that are not in order. An s32.
    pub status: Tensor,
    /// The time that was reached.
    pub t_reached: Tensor,
    /// The number of accepted steps, an s32.
    pub steps: Tensor,
    /// The number of rejected steps, an s32.
    pub rejected: Tensor,
}

/// The status of a problem whose times are not in order.
const OUT_OF_ORDER: i64 = 3;

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
    problem.solve(ops, options, function, y0, ts)
}

/// Refuses statuses of which one is not 0. The error describes the first position with the greatest.
///
/// ```
/// use defn_core::builder::require_reached;
/// assert!(require_reached(&[0, 0], &[1.0, 1.0]).is_ok());
/// let error = require_reached(&[0, 1], &[1.0, 0.5]).unwrap_err();
/// assert_eq!(error.to_string(), "odeint: stopped at the time 0.5, max_steps steps were taken");
/// ```
///
/// # Errors
/// A status other than 0.
pub fn require_reached(status: &[i64], times: &[f64]) -> Result<()> {
    let worst = status.iter().copied().max().unwrap_or(0);
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
    fn solve(
        &self,
        ops: &mut Ops,
        options: &OdeOptions,
        function: OdeFunction<'_>,
        y0: &[Tensor],
        ts: &Tensor,
    ) -> Result<OdeSolution> {
        let count = ops.ty(ts).shape.size();
        let ts = ops.as_type(ts, self.time)?;
        let ts = ops.reshape_to(ts, Shape::new(&[count]))?;
        let (start, end) = (at(ops, &ts, 0)?, at(ops, &ts, count as i64 - 1)?);
        let span = ops.subtract(&end, &start)?;
        let sign = ops.less(&span, 0)?;
        let direction = ops.select(sign, -1.0, 1.0)?;
        let direction = ops.as_type(direction, self.time)?;
        let times = Times { end, direction };
        let y = self.layout.join(ops, y0)?;
        let slope = self.slope(ops, function, &start, &y)?;
        let first = match options.first_step {
            Some(step) => {
                if !(step > 0.0 && step.is_finite()) {
                    return Err(not_valid("odeint", "first_step", step.to_string(), "a positive number"));
                }
                ops.full(Shape::scalar(), self.time, step)?
            }
            None => self.first_step(ops, function, &times, &start, (&y, &slope))?,
        };
        let mut state = State::begin(ops, self.time, start.clone(), y.clone(), slope, first)?;
        state.status = in_order(ops, &ts, &times.direction, count)?;
        let before = ops.reshape_to(&y, Shape::new(&[1, self.layout.size()]))?;
        let (state, ys) = if count == 1 {
            (state, before)
        } else {
            let ty = ops.ty(&y);
            let counter = index_dtype(count);
            let scanned =
                ScanOptions { counter, trips: count - 1, reverse: false, snapshots: options.snapshots };
            let (last, rows) = scan(ops, scanned, state.into_vec(), [ty], |ops, position, carried| {
                let state = State::from_slice(carried);
                let own = ops.add(position, 1)?;
                let target = row(ops, &ts, &own)?;
                let state = self.reach(ops, function, &times, options.snapshots, state, &target)?;
                let y = self.output(ops, &times, &state, &target)?;
                Ok((state.into_args(), vec![Arg::Value(y)]))
            })?;
            let state = State::from_slice(&last);
            let later = rows.into_iter().next().expect("one output");
            (state, ops.concatenate(&[before, later], AxisRef::Index(0))?)
        };
        let ys = self.layout.split_rows(ops, &ys, count)?;
        let State { t: t_reached, status, steps, rejected, .. } = state;
        Ok(OdeSolution { ys, status, t_reached, steps, rejected })
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

    /// Steps until a time is reached, or the status says that it is not.
    fn reach(
        &self,
        ops: &mut Ops,
        function: OdeFunction<'_>,
        times: &Times,
        snapshots: Option<usize>,
        state: State,
        target: &Tensor,
    ) -> Result<State> {
        let options = LoopOptions { trips: None, snapshots };
        let last = while_(
            ops,
            state.into_args(),
            options,
            |ops, carried| {
                let state = State::from_slice(carried);
                let open = self.is_before(ops, times, &state.t, target)?;
                let sound = ops.equal(&state.status, 0)?;
                Ok(Arg::Value(ops.logical_and(open, sound)?))
            },
            |ops, carried| {
                let state = State::from_slice(carried);
                Ok(self.step(ops, function, times, state)?.into_args())
            },
        )?;
        Ok(State::from_slice(&last))
    }

    fn is_before(&self, ops: &mut Ops, times: &Times, t: &Tensor, target: &Tensor) -> Result<Tensor> {
        let rest = ops.subtract(target, t)?;
        let rest = ops.multiply(rest, &times.direction)?;
        ops.greater(rest, 0)
    }

    /// A step, which is accepted if its error is small enough, and the length of the next one.
    fn step(&self, ops: &mut Ops, function: OdeFunction<'_>, times: &Times, state: State) -> Result<State> {
        let rest = ops.subtract(&times.end, &state.t)?;
        let rest = ops.multiply(rest, &times.direction)?;
        let is_last = ops.greater_equal(&state.h, &rest)?;
        let length = ops.select(&is_last, &rest, &state.h)?;
        let signed = ops.multiply(&length, &times.direction)?;
        let Stages { y, slopes, accepted, size } = self.stages(ops, function, &state, &signed)?;
        let h = self.next_length(ops, &state, &length, &size, &accepted)?;
        let least = ops.max(&size, 1e-4)?;
        let size = ops.select(&accepted, least, &state.size)?;

        let t = ops.add(&state.t, &signed)?;
        let t = ops.select(is_last, &times.end, t)?;
        let mut next = state.clone();
        let dense = self.dense(ops, &slopes)?;
        next.t = ops.select(&accepted, &t, &state.t)?;
        next.h = h;
        next.size = size;
        next.t_before = ops.select(&accepted, &state.t, &state.t_before)?;
        next.length = ops.select(&accepted, &signed, &state.length)?;
        next.y = ops.select(&accepted, y, &state.y)?;
        next.y_before = ops.select(&accepted, &state.y, &state.y_before)?;
        next.slope = ops.select(&accepted, &slopes[STAGES - 1], &state.slope)?;
        for ((to, new), old) in next.dense.iter_mut().zip(dense).zip(&state.dense) {
            *to = ops.select(&accepted, new, old)?;
        }
        next.accepted = accepted.clone();
        let one = ops.as_type(&accepted, DType::S32)?;
        next.steps = ops.add(&state.steps, &one)?;
        let other = ops.subtract(1, one)?;
        next.rejected = ops.add(&state.rejected, other)?;
        next.status = self.status(ops, times, &next)?;
        Ok(next)
    }

    /// 2 where the next step is too short to change the time, and 1 after the last step that there may be.
    fn status(&self, ops: &mut Ops, times: &Times, next: &State) -> Result<Tensor> {
        let (epsilon, tiny) = if self.time == DType::F64 {
            (f64::EPSILON, f64::MIN_POSITIVE)
        } else {
            (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE))
        };
        let size = ops.abs(&next.t)?;
        let shortest = ops.multiply(size, 10.0 * epsilon)?;
        let shortest = ops.max(shortest, 10.0 * tiny)?;
        let is_long = ops.greater_equal(&next.h, shortest)?;
        let is_short = ops.logical_not(is_long)?;
        let rejected = ops.logical_not(&next.accepted)?;
        let stuck = ops.logical_and(is_short, rejected)?;
        let total = ops.add(&next.steps, &next.rejected)?;
        let spent = ops.greater_equal(total, self.max_steps)?;
        let open = self.is_before(ops, times, &next.t, &times.end)?;
        let spent = ops.logical_and(spent, open)?;
        let spent = ops.as_type(spent, DType::S32)?;
        let status = ops.select(stuck, 2, spent)?;
        ops.as_type(status, DType::S32)
    }

    /// The stages of a step, and whether their error is small enough.
    ///
    /// A step that is rejected may have left the domain of the function, where its derivatives are not finite, and zero
    /// times infinity is NaN. Derivatives therefore compute the stages again, with a length of 0 for a rejected step: all
    /// stages are at the unknowns then.
    fn stages(
        &self,
        ops: &mut Ops,
        function: OdeFunction<'_>,
        state: &State,
        signed: &Tensor,
    ) -> Result<Stages> {
        let at = [&state.t, &state.y, &state.slope, signed].map(Clone::clone);
        let mut later = |ops: &mut Ops, at: &[Tensor]| self.later_stages(ops, function, at);
        let function: LinearFunction<'_> = &mut later;
        let Traced { at, lanes, functions, captures } =
            traced(ops, "odeint", &at, vec![("the function", function)], |_, _, _, draft| {
                Ok((0..draft.results.len()).map(|leaf| draft.leaf_type(leaf)).collect())
            })?;
        let mut inputs: Vec<Tensor> = at.iter().map(Tensor::flat).chain(captures).collect();
        let tried = ops.inline(&functions[0], &inputs)?;
        let vectorized = |tensors: Vec<Tensor>| -> Vec<Tensor> {
            tensors.into_iter().map(|tensor| tensor.with_vectorized(&lanes)).collect()
        };
        let stages = vectorized(tried.clone());
        let [_, y, slope, signed] = &at[..] else { unreachable!("the four inputs of the stages") };
        let slopes: Vec<Tensor> = std::iter::once(slope).chain(&stages[1..]).cloned().collect();
        let own = ops.as_type(signed, self.layout.dtype().to_real())?;
        let error = combined(ops, &self.tableau.error, &slopes)?;
        let error = ops.multiply(error, own)?;
        let size = self.size_of(ops, &error, y, &stages[0])?;
        let size = ops.stop_grad(size)?;
        let size = ops.as_type(size, self.time)?;
        let accepted = ops.less_equal(&size, 1.0)?;

        let length = ops.select(&accepted, signed, 0)?;
        inputs[3] = vectorize::broadcast_vectorized(ops, "odeint", &length, &lanes)?.flat();
        let (graph, types, _, results) = (*functions[0]).clone().into_parts();
        let region = Arc::new(Region::new(graph, types, inputs.len(), results));
        let rules = CustomRules::Recompute { region, kept: 0, offloaded: 0 };
        let mut stages = vectorized(ops.emit_custom_grad(rules, &tried, &inputs, &[])?.into_vec());
        let y = stages.remove(0);
        let slopes = std::iter::once(state.slope.clone()).chain(stages).collect();
        Ok(Stages { y, slopes, accepted, size })
    }

    /// The result of a step and the slopes of all stages but the first, from the time, the unknowns, their slopes and the
    /// length of the step.
    fn later_stages(
        &self,
        ops: &mut Ops,
        function: OdeFunction<'_>,
        at: &[Tensor],
    ) -> Result<Vec<Arg<Tensor>>> {
        let [start, before, slope, signed] = at else { unreachable!("the four inputs of the stages") };
        let own = ops.as_type(signed, self.layout.dtype().to_real())?;
        let mut slopes = vec![slope.clone()];
        let mut y = before.clone();
        for (row, part) in self.tableau.stages.iter().zip(self.tableau.times) {
            let change = combined(ops, row, &slopes)?;
            let change = ops.multiply(change, &own)?;
            y = ops.add(before, change)?;
            let ahead = ops.multiply(signed, part)?;
            let t = ops.add(start, ahead)?;
            slopes.push(self.slope(ops, function, &t, &y)?);
        }
        slopes[0] = y;
        Ok(slopes.into_iter().map(Arg::Value).collect())
    }

    /// The coefficients of dense output.
    fn dense(&self, ops: &mut Ops, slopes: &[Tensor]) -> Result<Vec<Tensor>> {
        let powers = 0..POWERS;
        powers.map(|power| combined(ops, &self.tableau.dense.map(|stage| stage[power]), slopes)).collect()
    }

    /// The length of the next step: a proportional-integral controller (Gustafsson, 1991), with the constants of Hairer,
    /// Norsett & Wanner (1993), II.4.
    fn next_length(
        &self,
        ops: &mut Ops,
        state: &State,
        length: &Tensor,
        size: &Tensor,
        accepted: &Tensor,
    ) -> Result<Tensor> {
        let size = ops.max(size, 1e-10)?;
        let now = ops.pow(&size, -0.17)?;
        let before = ops.pow(&state.size, 0.04)?;
        let both = ops.multiply(&now, before)?;
        let factor = ops.select(accepted, both, now)?;
        let factor = ops.multiply(factor, 0.9)?;
        let factor = ops.clip(factor, 0.2, 10.0)?;
        // A step after a rejected one does not grow.
        let after_rejected = ops.logical_not(&state.accepted)?;
        let bounded = ops.min(&factor, 1.0)?;
        let factor = ops.select(after_rejected, bounded, factor)?;
        // What is not finite says nothing of the right length.
        let finite = ops.isfinite(&size)?;
        let factor = ops.select(finite, factor, 0.1)?;
        let length = ops.stop_grad(length)?;
        ops.multiply(length, factor)
    }

    /// The unknowns at a time of the last step, NaN if it was not reached.
    fn output(&self, ops: &mut Ops, times: &Times, state: &State, target: &Tensor) -> Result<Tensor> {
        let is_open = self.is_before(ops, times, &state.t, target)?;
        let unordered = ops.equal(&state.status, OUT_OF_ORDER)?;
        let missing = ops.logical_or(is_open, unordered)?;
        let part = ops.subtract(target, &state.t_before)?;
        let part = ops.divide(part, &state.length)?;
        let real = self.layout.dtype().to_real();
        let (part, length) = (ops.as_type(part, real)?, ops.as_type(&state.length, real)?);
        let mut sum = ops.multiply(&state.dense[POWERS - 1], &part)?;
        for coefficient in state.dense.iter().rev().skip(1) {
            let next = ops.add(sum, coefficient)?;
            sum = ops.multiply(next, &part)?;
        }
        let change = ops.multiply(sum, length)?;
        let y = ops.add(&state.y_before, change)?;
        // NaN only where a time was not reached: under checks a constant would be an error for all times.
        let reached = ops.logical_not(missing)?;
        let one = ops.as_type(&reached, real)?;
        let nan = ops.divide(&one, &one)?;
        let y = ops.select(reached, y, nan)?;
        ops.as_type(y, self.layout.dtype())
    }
}

/// The sum of vectors times constants; those of 0 are left out.
fn combined(ops: &mut Ops, coefficients: &[f64], vectors: &[Tensor]) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (&coefficient, vector) in coefficients.iter().zip(vectors) {
        if coefficient == 0.0 {
            continue;
        }
        let part = if coefficient == 1.0 { vector.clone() } else { ops.multiply(vector, coefficient)? };
        sum = Some(match sum {
            None => part,
            Some(sum) => ops.add(sum, part)?,
        });
    }
    sum.map_or_else(|| ops.multiply(&vectors[0], 0), Ok)
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
