//! L-BFGS as a transformation of gradients: one step at a time, with a state that the caller keeps.

use super::draft::Draft;
use super::implicit::{at_least_one, traced};
use super::optimize::{real_scalar, unknowns};
use super::{BuildCreate, BuildElementwise, BuildReduce, LinearFunction, Ops};
use crate::error::{ErrorKind, Result};
use crate::optimize::LbfgsStep;
use crate::shape::{Axes, Shape};
use crate::solvers::coordinates::Coordinates;
use crate::tensor::Tensor;

/// The name for messages.
const OP: &str = "lbfgs";

/// What L-BFGS knows of the curvature: one vector of all parameters for each step.
///
/// ```
/// use defn_core::builder::LbfgsState;
/// let state = LbfgsState { steps: 0, changes: 1, factors: 2, scale: 3, fresh: 4 };
/// assert_eq!(state.fresh, 4);
/// ```
#[derive(Clone, Debug)]
pub struct LbfgsState<T> {
    /// The last steps, `{history, n}`, the newest last.
    pub steps: T,
    /// The changes of the gradient along them.
    pub changes: T,
    /// The reciprocals of the products of a step and its change, `{history}`; 0 where there is no step.
    pub factors: T,
    /// The scale of the inverse of the Hessian before the steps.
    pub scale: T,
    /// Whether nothing is known.
    pub fresh: T,
}

impl<T> LbfgsState<T> {
    /// The parts, in their order.
    pub fn into_array(self) -> [T; 5] {
        let LbfgsState { steps, changes, factors, scale, fresh } = self;
        [steps, changes, factors, scale, fresh]
    }

    /// The state of these parts.
    pub fn from_array([steps, changes, factors, scale, fresh]: [T; 5]) -> LbfgsState<T> {
        LbfgsState { steps, changes, factors, scale, fresh }
    }
}

/// The parameters as one vector.
fn coordinates(params: &[Tensor]) -> Coordinates {
    Coordinates::new(params.iter().map(|x| x.ty().clone()).collect(), 0, false)
}

/// The state before the first step, for `history` steps.
///
/// # Errors
/// No parameters, and no steps.
pub fn lbfgs_begin(ops: &mut Ops, params: &[Tensor], history: usize) -> Result<LbfgsState<Tensor>> {
    let history = at_least_one(OP, "history", i64::try_from(history).ok())?.unwrap_or(1);
    let params = unknowns(ops, OP, params)?;
    let unknown = coordinates(&params);
    let (count, dtype) = (unknown.count(), unknown.dtype());
    // Each vectorized position has a state of its own.
    let mut zero = ops.full(Shape::scalar(), dtype, 0)?;
    for x in &params {
        let none = ops.fill(x, 0, Some(dtype))?;
        let none = ops.sum(none, Axes::All, false)?;
        zero = ops.add(zero, none)?;
    }
    let mut zeros = |shape: Shape| -> Result<Tensor> {
        let zeros = ops.full(shape, dtype, 0)?;
        ops.add(zeros, &zero)
    };
    let pairs = Shape::new(&[history, count]);
    let (steps, changes, factors) = (zeros(pairs.clone())?, zeros(pairs)?, zeros(Shape::new(&[history]))?);
    Ok(LbfgsState { steps, changes, factors, scale: ops.add(&zero, 1)?, fresh: ops.equal(&zero, 0)? })
}

/// A step of L-BFGS from parameters with a gradient: what is to be added to them, and the next state. The length is that of a
/// line search for the strong Wolfe conditions along `function`.
///
/// # Errors
/// Gradients unlike the parameters, the state of other parameters, a value of `function` that is no real scalar, and its errors.
pub fn lbfgs_update(
    ops: &mut Ops,
    params: &[Tensor],
    gradients: &[Tensor],
    state: LbfgsState<Tensor>,
    function: LinearFunction<'_>,
) -> Result<(Vec<Tensor>, LbfgsState<Tensor>)> {
    let params = unknowns(ops, OP, params)?;
    let state = state.into_array();
    require_state(&params, &state)?;
    let mut all = params.clone();
    for (gradient, x) in gradients.iter().zip(&params) {
        if gradient.ty().shape != x.ty().shape {
            let (got, shape) = (gradient.ty().clone(), x.ty().shape.clone());
            return Err(ErrorKind::StateShape { op: OP, what: "a gradient", got, shape }.into());
        }
        all.push(ops.as_type(gradient, x.ty().dtype)?);
    }
    all.extend(state);

    let count = params.len();
    let mut of_params = |ops: &mut Ops, inputs: &[Tensor]| function(ops, &inputs[..count]);
    let types = |op, what, at: &[Tensor], draft: &Draft| real_scalar(op, what, &at[..count], draft);
    let traced = traced(ops, OP, &all, vec![("the value of fun", &mut of_params)], types)?;
    let step = LbfgsStep { function: &traced.functions[0], lanes: traced.lanes.len() };
    let mut updates = traced.inlined(ops, Vec::new(), |graph, inputs| {
        let (unknown, rest) = inputs.split_at(count);
        // For the function what is not a parameter is a capture.
        let (gradient, known) = (&rest[..count], &rest[count..count + 5]);
        let (updates, known) = step.take(graph, (unknown, gradient), known, rest)?;
        Ok(updates.into_iter().chain(known).collect())
    })?;
    let known = <[Tensor; 5]>::try_from(updates.split_off(count)).expect("five values are known");
    Ok((updates, LbfgsState::from_array(known)))
}

/// Refuses the state of other parameters.
fn require_state(params: &[Tensor], state: &[Tensor; 5]) -> Result<()> {
    let count = coordinates(params).count();
    let history = state[2].ty().shape.size().max(1);
    let (pairs, scalar) = (Shape::new(&[history, count]), Shape::scalar());
    let shapes = [pairs.clone(), pairs, Shape::new(&[history]), scalar.clone(), scalar];
    for (part, shape) in state.iter().zip(shapes) {
        if part.ty().shape != shape {
            return Err(
                ErrorKind::StateShape { op: OP, what: "the state", got: part.ty().clone(), shape }.into()
            );
        }
    }
    Ok(())
}
