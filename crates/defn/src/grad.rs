//! Gradients of functions of expressions.

use defn_core as core;
use defn_core::builder::BuildControl;
use defn_core::trace::Trace;
use defn_core::{Location, Result, grad as core_grad, vectorize};

use crate::Expr;
use crate::control::{Exprs, refill, tensors};
use crate::expr::record;

/// The gradient of `fun`, which gives a scalar, at a container.
///
/// ```
/// use defn::prelude::*;
///
/// let slope = jit(|x: Expr| grad(&x, |x| x.pow(3).sum(Axes::All, false)));
/// let at = Tensor::from_slice(&[1f32, 2.0], &[2])?;
/// assert_eq!(slope.call(at)?.to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[track_caller]
pub fn grad<A: Exprs>(at: &A, fun: impl FnOnce(A) -> Expr) -> A {
    value_and_grad(at, fun).1
}

/// The value of `fun`, a scalar, and its gradient, at a container.
#[track_caller]
pub fn value_and_grad<A: Exprs>(at: &A, fun: impl FnOnce(A) -> Expr) -> (Expr, A) {
    value_and_grad_of(at, fun, Expr::clone)
}

/// The value of `fun`, a container, and the gradient of what `loss` picks from it, at a container.
///
/// A loss that is no scalar stands for the sum of its elements.
#[track_caller]
pub fn value_and_grad_of<A: Exprs, R: Exprs>(
    at: &A,
    fun: impl FnOnce(A) -> R,
    loss: impl FnOnce(&R) -> Expr,
) -> (R, A) {
    let location = Location::caller();
    let variables = match tensors(at) {
        Ok(variables) => variables,
        // What depends on an error is void, but it has its form.
        Err(error) => return (fun(refill(at, Err(error.clone()))), refill(at, Err(error))),
    };
    let joined = record(location.clone(), |ops| vectorize::broadcast_vectors(ops, &variables, false));
    let variables = match joined {
        Ok(variables) => variables,
        Err(error) => return (fun(refill(at, Err(error.clone()))), refill(at, Err(error))),
    };
    let (tracing, parameters) = Trace::begin_like(&variables);
    let value = fun(refill(at, Ok(parameters)));
    let loss = loss(&value);
    let results = (|| {
        let mut results = tensors(&value)?;
        results.push(loss.0?);
        Ok(results)
    })();
    let outcome: Result<_> = record(location, |ops| {
        let results = match results {
            Ok(results) => results,
            Err(error) => return Err(tracing.finish("grad", &[]).err().unwrap_or(error)),
        };
        let closed = tracing.finish("grad", &results)?;
        let wrt: Vec<usize> = (0..variables.len()).collect();
        let region = core_grad::value_and_grad(&closed.region, results.len() - 1, &wrt)?;
        let flat = variables.iter().map(core::Tensor::flat);
        let arguments: Vec<core::Tensor> = flat.chain(closed.captures).collect();
        let lanes = results.iter().chain(&variables).map(core::Tensor::vectorized_axes);
        let outputs = ops.inline(&region, &arguments)?.into_iter().zip(lanes);
        let mut outputs: Vec<core::Tensor> = outputs.map(|(x, axes)| x.with_vectorized(axes)).collect();
        let gradient = outputs.split_off(results.len());
        outputs.pop();
        Ok((outputs, gradient))
    });
    match outcome {
        Ok((outputs, gradient)) => (refill(&value, Ok(outputs)), refill(at, Ok(gradient))),
        Err(error) => (refill(&value, Err(error.clone())), refill(at, Err(error))),
    }
}
