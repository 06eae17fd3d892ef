//! Gradients by the adjoint equation: Pontryagin, "The mathematical theory of optimal processes" (1962); Chen, Rubanova,
//! Bettencourt & Duvenaud, "Neural ordinary differential equations" (2018).
//!
//! The cotangent `a` of the unknowns satisfies `da/dt = -J^T a`, which is solved from the last time to the first. The
//! gradient of a captured tensor is the integral of `(df/dp)^T a`. No step of the solution is kept: memory does not depend
//! on the number of steps.

use std::sync::Arc;

use super::state::State;
use super::{OdeFunction, OdeGradient, OdeOptions, Problem, at, odeint, row};
use crate::builder::draft::{Draft, ResultType};
use crate::builder::{
    Arg, BuildControl, BuildCreate, BuildElementwise, BuildReduce, BuildShape, Builder, Ops, Rules,
    ScanOptions, custom_derivative, scan,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::grad::vjp_region;
use crate::infer::reduce::index_dtype;
use crate::region::Region;
use crate::shape::{Axes, AxisRef, Shape, TensorType};
use crate::tensor::Tensor;

/// A right-hand side as a region from the time, the unknowns as one vector, and captures, to the slopes.
struct Equation {
    region: Arc<Region>,
    /// From the same, and a cotangent of the slopes, to those of the unknowns and of the variables.
    pullback: Region,
    captures: Vec<Tensor>,
    /// The captures to which gradients flow.
    variables: Vec<Tensor>,
    time: DType,
}

/// The last state and the unknowns at the times, with the derivatives of the adjoint equation.
pub(super) fn solve(
    problem: &Problem,
    ops: &mut Ops,
    options: &OdeOptions,
    function: OdeFunction<'_>,
    y: &Tensor,
    ts: &Tensor,
) -> Result<(State, Tensor)> {
    if problem.layout.dtype().is_complex() {
        let hint = "the adjoint equation is solved for real unknowns; use the gradient \"direct\"";
        return Err(ErrorKind::NoGradient { op: "odeint", hint }.into());
    }
    let equation = Equation::trace(ops, problem, function, y)?;
    let mut slope =
        |ops: &mut Ops, t: &Tensor, y: &[Tensor]| Ok(vec![Arg::Value(equation.slope(ops, t, &y[0])?)]);
    let whole = problem.of_vectors();
    let (mut state, rows, _) = whole.solve(ops, options, (&mut slope, None), y, ts)?;
    state.t = ops.stop_grad(&state.t)?;
    let inputs = [y, ts].into_iter().chain(&equation.variables).cloned().collect();
    let rule =
        |ops: &mut Ops, cotangents: &[Tensor]| equation.cotangents(ops, options, (&rows, ts), &cotangents[0]);
    let rows = custom_derivative(ops, vec![rows.clone()], inputs, Rules::Reverse(Box::new(rule)))?.remove(0);
    Ok((state, rows))
}

impl Equation {
    /// # Errors
    /// A function that captures vectorized tensors, and those of the function.
    fn trace(ops: &mut Ops, problem: &Problem, function: OdeFunction<'_>, y: &Tensor) -> Result<Equation> {
        let types = [TensorType::scalar(problem.time), y.ty().clone()];
        let draft = Draft::trace(ops, "odeint", &types, |ops, at| {
            Ok(vec![Arg::Value(problem.slope(ops, function, &at[0], &at[1])?)])
        })?;
        if !draft.lanes(0).is_empty() {
            let hint = "the function uses vectorized values, and positions have steps of their own, so that the adjoint \
                        equation has no gradient of these; use the gradient \"direct\", or a state with one more axis";
            return Err(ErrorKind::NoGradient { op: "odeint", hint }.into());
        }
        let ty = ResultType::from(draft.leaf_type(0));
        let closed = draft.close(ops, &[ty])?;
        // No gradient flows to constants, and tensors of integers have none.
        let flows: Vec<usize> = (0..closed.captures.len())
            .filter(|&position| {
                let capture = &closed.captures[position];
                capture.is_traced() && capture.ty().dtype.is_inexact()
            })
            .collect();
        let variables = flows.iter().map(|&position| closed.captures[position].clone()).collect();
        let wrt: Vec<usize> = std::iter::once(1).chain(flows.iter().map(|position| position + 2)).collect();
        let pullback = vjp_region(&closed.region, &wrt)?;
        let (region, captures) = (Arc::new(closed.region), closed.captures);
        Ok(Equation { region, pullback, captures, variables, time: problem.time })
    }

    fn slope(&self, ops: &mut Ops, t: &Tensor, y: &Tensor) -> Result<Tensor> {
        let mut inputs = vec![ops.as_type(t, self.time)?, y.clone()];
        inputs.extend(self.captures.iter().cloned());
        Ok(ops.inline(&self.region, &inputs)?.remove(0))
    }

    /// The slopes of the unknowns, of their cotangent and of the gradients of the variables.
    fn adjoint(&self, ops: &mut Ops, t: &Tensor, unknowns: &[Tensor]) -> Result<Vec<Arg<Tensor>>> {
        let [y, cotangent, ..] = unknowns else { unreachable!("the unknowns of the adjoint equation") };
        let mut slopes = vec![Arg::Value(self.slope(ops, t, y)?)];
        let mut inputs = vec![ops.as_type(t, self.time)?, y.clone()];
        inputs.extend(self.captures.iter().cloned());
        inputs.push(cotangent.clone());
        for part in ops.inline(&self.pullback, &inputs)? {
            slopes.push(Arg::Value(ops.negate(part)?));
        }
        Ok(slopes)
    }

    /// The cotangents of the initial values, the times and the variables, from those of the unknowns at the times.
    fn cotangents(
        &self,
        ops: &mut Ops,
        options: &OdeOptions,
        (rows, ts): (&Tensor, &Tensor),
        cotangents: &Tensor,
    ) -> Result<Vec<Arg<Tensor>>> {
        let count = ops.ty(ts).shape.size();
        let scale = scale_of(ops, cotangents)?;
        let cotangents = ops.divide(cotangents, &scale)?;
        let options = OdeOptions { gradient: OdeGradient::Direct, ..options.clone() };
        let last = ops.constant(DType::S32, count as i64 - 1)?;
        let last = row(ops, &cotangents, &last)?;
        let mut state = vec![ops.zeros_like(&last)?];
        for variable in &self.variables {
            let zeros = ops.zeros_like(variable)?;
            state.push(zeros);
        }
        let scanned = ScanOptions {
            counter: index_dtype(count),
            trips: count - 1,
            reverse: true,
            snapshots: options.snapshots,
        };
        let time = TensorType::scalar(self.time);
        let (mut state, times) = scan(ops, scanned, state, [time], |ops, position, state| {
            let own = ops.add(position, 1)?;
            let (y, t) = (row(ops, rows, &own)?, row(ops, ts, &own)?);
            let seed = row(ops, &cotangents, &own)?;
            let of_time = self.of_time(ops, &seed, &t, &y)?;
            let cotangent = ops.add(&state[0], seed)?;
            let before = row(ops, ts, position)?;
            let one = |ops: &mut Ops, t: &Tensor| ops.reshape_to(t, Shape::new(&[1]));
            let span = [one(ops, &t)?, one(ops, &before)?];
            let span = ops.concatenate(&span, AxisRef::Index(0))?;
            let unknowns: Vec<Tensor> =
                [y, cotangent].into_iter().chain(state[1..].iter().cloned()).collect();
            let mut adjoint = |ops: &mut Ops, t: &Tensor, unknowns: &[Tensor]| self.adjoint(ops, t, unknowns);
            let solution = odeint(ops, &options, &mut adjoint, &unknowns, &span)?;
            let mut next = Vec::with_capacity(state.len());
            for pair in &solution.ys[1..] {
                let end = ops.constant(DType::S32, 1)?;
                next.push(Arg::Value(row(ops, pair, &end)?));
            }
            Ok((next, vec![Arg::Value(of_time)]))
        })?;
        let first = ops.constant(DType::S32, 0)?;
        let (y, t) = (row(ops, rows, &first)?, at(ops, ts, 0)?);
        let before = self.of_time(ops, &state[0], &t, &y)?;
        let before = ops.negate(before)?;
        let before = ops.reshape_to(before, Shape::new(&[1]))?;
        let times = ops.concatenate(&[before, times[0].clone()], AxisRef::Index(0))?;
        let seed = row(ops, &cotangents, &first)?;
        state[0] = ops.add(&state[0], seed)?;
        state.insert(1, times);
        state.into_iter().map(|part| Ok(Arg::Value(ops.multiply(part, &scale)?))).collect()
    }

    /// The cotangent of a time, at which the unknowns have one.
    fn of_time(&self, ops: &mut Ops, cotangent: &Tensor, t: &Tensor, y: &Tensor) -> Result<Tensor> {
        let slope = self.slope(ops, t, y)?;
        let product = ops.multiply(cotangent, slope)?;
        let sum = ops.sum(product, Axes::All, false)?;
        ops.as_type(sum, self.time)
    }
}

/// The greatest cotangent. The adjoint equation is linear in it, and absolute tolerances are of numbers near 1.
fn scale_of(ops: &mut Ops, cotangents: &Tensor) -> Result<Tensor> {
    let size = ops.abs(cotangents)?;
    if ops.ty(&size).shape.size() == 0 {
        return ops.constant(ops.ty(&size).dtype, 1);
    }
    let size = ops.reduce_max(size, Axes::All, false)?;
    let size = ops.stop_grad(size)?;
    let is_positive = ops.greater(&size, 0)?;
    let is_finite = ops.isfinite(&size)?;
    let is_scale = ops.logical_and(is_positive, is_finite)?;
    ops.select(is_scale, size, 1)
}
