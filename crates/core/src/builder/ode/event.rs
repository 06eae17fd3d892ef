//! Events: numbers of a solution whose change of sign ends it.
//!
//! A step at whose end a number has another sign is the last one. The time is then found on its dense output by bisection,
//! and has the derivative of an implicit function.

use super::state::State;
use super::{EVENT, OdeEvent, OdeFunction, Problem, Times};
use crate::builder::implicit::not_valid;
use crate::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildIndex, BuildReduce, BuildShape, Builder,
    LinearOptions, LoopOptions, Ops, implicit, while_,
};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::TieBreak;
use crate::shape::{Axes, AxisRef, Shape};
use crate::tensor::Tensor;

impl Problem {
    /// The numbers of an event as one vector.
    ///
    /// # Errors
    /// No numbers, and complex ones.
    pub(super) fn numbers(
        &self,
        ops: &mut Ops,
        event: OdeFunction<'_>,
        t: &Tensor,
        y: &Tensor,
    ) -> Result<Tensor> {
        let unknowns = self.layout.split(ops, y)?;
        let mut parts = Vec::new();
        for number in event(ops, t, &unknowns)? {
            let number = ops.operand(number)?;
            let ty = ops.ty(&number);
            if ty.dtype.is_complex() {
                return Err(not_valid("odeint", "event", format!("{ty}"), "a function to real numbers"));
            }
            let number = ops.as_type(number, self.layout.dtype().to_real())?;
            parts.push(ops.reshape_to(number, Shape::new(&[ty.shape.size()]))?);
        }
        match parts.len() {
            0 => Err(not_valid(
                "odeint",
                "event",
                "a function to nothing".to_owned(),
                "a function to real numbers",
            )),
            1 => Ok(parts.remove(0)),
            _ => ops.concatenate(&parts, AxisRef::Index(0)),
        }
    }

    /// The state after a step, which is the last one if a number of the event changed its sign.
    pub(super) fn watched(
        &self,
        ops: &mut Ops,
        event: OdeFunction<'_>,
        (before, mut next): (&State, State),
        (t, y): (&Tensor, &Tensor),
    ) -> Result<State> {
        let numbers = self.numbers(ops, event, t, y)?;
        let numbers = ops.stop_grad(numbers)?;
        let numbers = ops.select(&next.accepted, numbers, &before.event[0])?;
        let changed = changed(ops, &before.event[0], &numbers)?;
        let happened = ops.any(changed, Axes::All, false)?;
        // The numbers before the event are those that bisection compares with.
        next.event = vec![ops.select(&happened, &before.event[0], numbers)?];
        let status = ops.select(happened, EVENT, &next.status)?;
        next.status = ops.as_type(status, DType::S32)?;
        Ok(next)
    }

    /// The event within the last step, NaN where there is none, and the rows with NaN at later times.
    pub(super) fn located(
        &self,
        ops: &mut Ops,
        event: OdeFunction<'_>,
        times: &Times,
        state: &mut State,
        (ts, rows): (&Tensor, &Tensor),
    ) -> Result<(OdeEvent, Tensor)> {
        let happened = ops.equal(&state.status, EVENT)?;
        let (found, which) = self.bisected(ops, event, state, &happened)?;
        let mut condition = |ops: &mut Ops, t: &[Tensor]| {
            let y = self.within(ops, state, &t[0])?;
            let numbers = self.numbers(ops, event, &t[0], &y)?;
            let number = ops.take(numbers, &which, AxisRef::Index(0))?;
            let number = ops.as_type(number, self.time)?;
            let rest = ops.subtract(&t[0], &found)?;
            Ok(vec![Arg::Value(ops.select(&happened, number, rest)?)])
        };
        let options = LinearOptions::dense();
        let t = implicit(ops, std::slice::from_ref(&found), &options, &mut condition)?.remove(0);
        let y = self.within(ops, state, &t)?;

        let late = ops.subtract(ts, &t)?;
        let late = ops.multiply(late, &times.direction)?;
        let late = ops.greater(late, 0)?;
        let late = ops.logical_and(late, &happened)?;
        let late = ops.new_axis(late, 1, None)?;
        let in_time = ops.logical_not(late)?;
        let rows = or_nan(ops, &in_time, rows)?;
        let reached = ops.select(&happened, &t, &state.t)?;
        state.t = reached;
        let t = or_nan(ops, &happened, &t)?;
        let y = or_nan(ops, &happened, &y)?;
        let y = self.layout.split(ops, &y)?;
        Ok((OdeEvent { t, y }, rows))
    }

    /// The first time of the last step at which a number has another sign than before it, and the position of that number.
    fn bisected(
        &self,
        ops: &mut Ops,
        mut event: OdeFunction<'_>,
        state: &State,
        happened: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let start = ops.stop_grad(&state.t_before)?;
        let length = ops.stop_grad(&state.length)?;
        let halvings = if self.time == DType::F64 { 52 } else { 24 };
        let (low, high) = (ops.constant(self.time, 0)?, ops.constant(self.time, 1)?);
        let count = ops.constant(DType::S32, 0)?;
        let changed_at = |ops: &mut Ops, event: OdeFunction<'_>, part: &Tensor| {
            let ahead = ops.multiply(part, &length)?;
            let t = ops.add(&start, ahead)?;
            let y = self.within(ops, state, &t)?;
            let y = ops.stop_grad(y)?;
            let numbers = self.numbers(ops, event, &t, &y)?;
            let numbers = ops.stop_grad(numbers)?;
            Ok::<_, crate::error::Error>((t, changed(ops, &state.event[0], &numbers)?))
        };
        let last = while_(
            ops,
            [count, low, high].map(Arg::Value).to_vec(),
            LoopOptions { trips: None, snapshots: None },
            |ops, carried| {
                let open = ops.less(&carried[0], halvings)?;
                Ok(Arg::Value(ops.logical_and(open, happened)?))
            },
            |ops, carried| {
                let sum = ops.add(&carried[1], &carried[2])?;
                let middle = ops.multiply(sum, 0.5)?;
                let (_, changed) = changed_at(ops, &mut event, &middle)?;
                let is_late = ops.any(changed, Axes::All, false)?;
                let low = ops.select(&is_late, &carried[1], &middle)?;
                let high = ops.select(&is_late, &middle, &carried[2])?;
                Ok([ops.add(&carried[0], 1)?, low, high].map(Arg::Value).to_vec())
            },
        )?;
        let (t, changed) = changed_at(ops, event, &last[2])?;
        let changed = ops.as_type(changed, DType::S32)?;
        let which = ops.argmax(changed, Some(AxisRef::Index(0)), false, TieBreak::Low, None)?;
        Ok((ops.stop_grad(t)?, which))
    }
}

/// Whether numbers have another sign than before; a zero before has none.
fn changed(ops: &mut Ops, before: &Tensor, after: &Tensor) -> Result<Tensor> {
    let (was_above, is_below) = (ops.greater(before, 0)?, ops.less_equal(after, 0)?);
    let falls = ops.logical_and(was_above, is_below)?;
    let (was_below, is_above) = (ops.less(before, 0)?, ops.greater_equal(after, 0)?);
    let rises = ops.logical_and(was_below, is_above)?;
    ops.logical_or(falls, rises)
}

/// A tensor where a mask is true, else NaN. No constant is NaN: under checks that would be an error of its own.
pub(super) fn or_nan(ops: &mut Ops, mask: &Tensor, x: &Tensor) -> Result<Tensor> {
    let one = ops.as_type(mask, ops.ty(x).dtype.to_real())?;
    let nan = ops.divide(&one, &one)?;
    let chosen = ops.select(mask, x, nan)?;
    ops.as_type(chosen, ops.ty(x).dtype)
}
