//! Steps: their stages, whether they are accepted, and the values of dense output within them.

use std::sync::Arc;

use super::event::or_nan;
use super::state::{Stages, State};
use super::tableau::{POWERS, STAGES};
use super::{OUT_OF_ORDER, OdeFunction, Problem, Times, reborrowed};
use crate::builder::implicit::{LinearFunction, Traced, traced};
use crate::builder::{Arg, BuildControl, BuildElementwise, LoopOptions, Ops, while_};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::CustomRules;
use crate::region::Region;
use crate::tensor::Tensor;
use crate::vectorize;

impl Problem {
    /// Steps until a time is reached, or the status says that it is not.
    pub(super) fn reach(
        &self,
        ops: &mut Ops,
        (mut function, mut event): (OdeFunction<'_>, Option<OdeFunction<'_>>),
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
                let watched = reborrowed(&mut event);
                Ok(self.step(ops, (&mut function, watched), times, state)?.into_args())
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
    fn step(
        &self,
        ops: &mut Ops,
        (function, event): (OdeFunction<'_>, Option<OdeFunction<'_>>),
        times: &Times,
        state: State,
    ) -> Result<State> {
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
        next.y = ops.select(&accepted, &y, &state.y)?;
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
        match event {
            Some(event) => self.watched(ops, event, (&state, next), (&t, &y)),
            None => Ok(next),
        }
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
    pub(super) fn output(
        &self,
        ops: &mut Ops,
        times: &Times,
        state: &State,
        target: &Tensor,
    ) -> Result<Tensor> {
        let is_open = self.is_before(ops, times, &state.t, target)?;
        let unordered = ops.equal(&state.status, OUT_OF_ORDER)?;
        let missing = ops.logical_or(is_open, unordered)?;
        let y = self.within(ops, state, target)?;
        let reached = ops.logical_not(missing)?;
        or_nan(ops, &reached, &y)
    }

    /// The dense output of the last step at a time.
    pub(super) fn within(&self, ops: &mut Ops, state: &State, t: &Tensor) -> Result<Tensor> {
        let part = ops.subtract(t, &state.t_before)?;
        let part = ops.divide(part, &state.length)?;
        let real = self.layout.dtype().to_real();
        let (part, length) = (ops.as_type(part, real)?, ops.as_type(&state.length, real)?);
        let mut sum = ops.multiply(&state.dense[POWERS - 1], &part)?;
        for coefficient in state.dense.iter().rev().skip(1) {
            let next = ops.add(sum, coefficient)?;
            sum = ops.multiply(next, &part)?;
        }
        let change = ops.multiply(sum, length)?;
        ops.add(&state.y_before, change)
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
