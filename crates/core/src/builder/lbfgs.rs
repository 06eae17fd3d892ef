//! L-BFGS as a transformation of gradients: one step at a time, with a state that the caller keeps.

use super::draft::Draft;
use super::implicit::{at_least_one, traced};
use super::optimize::{real_scalar, unknowns};
use super::{BuildControl, BuildCreate, BuildElementwise, BuildReduce, LinearFunction, Ops};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::grad::region::Draft as RegionDraft;
use crate::graph::Value;
use crate::optimize::LbfgsStep;
use crate::shape::{Axes, Shape};
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
    fn into_array(self) -> [T; 5] {
        let LbfgsState { steps, changes, factors, scale, fresh } = self;
        [steps, changes, factors, scale, fresh]
    }

    fn from_array([steps, changes, factors, scale, fresh]: [T; 5]) -> LbfgsState<T> {
        LbfgsState { steps, changes, factors, scale, fresh }
    }
}

/// How many numbers parameters are, real and imaginary parts apart, and the dtype that they are computed in.
fn coordinates(params: &[Tensor]) -> (usize, DType) {
    let parts = |x: &Tensor| x.ty().shape.size() * (1 + usize::from(x.ty().dtype.is_complex()));
    let dtype = params.iter().map(|x| x.ty().dtype.to_real()).fold(DType::F32, DType::merge);
    (params.iter().map(parts).sum(), dtype)
}

/// The state before the first step, for `history` steps.
///
/// # Errors
/// No parameters, and no steps.
pub fn lbfgs_begin(ops: &mut Ops, params: &[Tensor], history: usize) -> Result<LbfgsState<Tensor>> {
    let history = at_least_one(OP, "history", i64::try_from(history).ok())?.unwrap_or(1);
    let params = unknowns(ops, OP, params)?;
    let (count, dtype) = coordinates(&params);
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
    let mut arguments: Vec<Tensor> = traced.at.iter().map(Tensor::flat).collect();
    arguments.extend(traced.captures.iter().cloned());

    let mut draft = RegionDraft::new();
    let inputs: Vec<Value> = arguments.iter().map(|x| draft.input(x.ty().clone())).collect();
    let (unknown, rest) = inputs.split_at(count);
    let step = LbfgsStep { function: &traced.functions[0], lanes: traced.lanes.len() };
    // For the function what is not a parameter is a capture.
    let (gradient, known) = (&rest[..count], &rest[count..count + 5]);
    let (updates, known) = step.take(&mut draft.graph, (unknown, gradient), known, rest)?;
    let results: Vec<Value> = updates.into_iter().chain(known).collect();
    let region = draft.close(inputs.len(), &results)?;
    let mut results = ops.inline(&region, &arguments)?.into_iter().map(|x| x.with_vectorized(&traced.lanes));
    let updates = results.by_ref().take(count).collect();
    let known = [(); 5].map(|()| results.next().expect("five values are known"));
    Ok((updates, LbfgsState::from_array(known)))
}

/// Refuses the state of other parameters.
fn require_state(params: &[Tensor], state: &[Tensor; 5]) -> Result<()> {
    let (count, _) = coordinates(params);
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
