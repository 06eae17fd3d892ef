//! Gradients of functions of expressions.

use defn_core as core;
use defn_core::builder::{self, BuildControl};
use defn_core::trace::Trace;
use defn_core::{Location, Result, grad as core_grad, vectorize};

use crate::Expr;
use crate::control::{Exprs, refill, results, tensors};
use crate::expr::record;

/// The gradient of a function at a container of expressions. It may be used on another gradient.
///
/// If the value is not a scalar, the gradient is that of the sum of its elements. Captured expressions are constants.
///
/// - Shapes: those of the variables, in their container.
/// - Dtypes: those of the variables; f32 for integers.
///
/// ```
/// use defn::prelude::*;
///
/// let slope = jit(|x: Expr| grad(&x, |x| x.pow(3).sum(Axes::All, false)));
/// let at = Tensor::from_slice(&[1f32, 2.0], &[2])?;
/// assert_eq!(slope.call(at)?.to_vec::<f32>()?, [3.0, 12.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An operation without a gradient (`Trace`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn grad<A: Exprs>(at: &A, fun: impl FnOnce(A) -> Expr) -> A {
    value_and_grad(at, fun).1
}

/// The value of a function at a container of expressions, and its gradient, from one trace.
///
/// Shapes, dtypes and errors are those of [`grad`].
///
/// ```
/// use defn::prelude::*;
///
/// let square = jit(|x: Expr| value_and_grad(&x, |x| &x * &x));
/// let (value, slope) = square.call(Tensor::scalar(3.0)?)?;
/// assert_eq!((value.item::<f32>()?, slope.item::<f32>()?), (9.0, 6.0));
/// # Ok::<(), defn::Error>(())
/// ```
#[track_caller]
pub fn value_and_grad<A: Exprs>(at: &A, fun: impl FnOnce(A) -> Expr) -> (Expr, A) {
    value_and_grad_of(at, fun, Expr::clone)
}

/// The value of a function, which is a container, and the gradient of the loss that `loss` picks from it. So a function
/// can return more than its loss.
///
/// If the loss is not a scalar, the gradient is that of the sum of its elements. Shapes, dtypes and errors are those of
/// [`grad`].
///
/// ```
/// use defn::prelude::*;
///
/// let fit = jit(|(w, x): (Expr, Expr)| {
///     value_and_grad_of(&w, |w| (w.pow(2), &w * &x), |(loss, _)| loss.clone())
/// });
/// let ((loss, product), slope) = fit.call((Tensor::scalar(3.0)?, Tensor::scalar(10.0)?))?;
/// assert_eq!((loss.item::<f32>()?, product.item::<f32>()?), (9.0, 30.0));
/// assert_eq!(slope.item::<f32>()?, 6.0);
/// # Ok::<(), defn::Error>(())
/// ```
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

/// The value with a gradient of one's own: `rule` takes the cotangent of the value, in its container, and returns one
/// cotangent for each of `inputs`, in theirs. The operations that compute the value are not differentiated.
///
/// - Shapes: those of the value; each cotangent has the shape of its input.
/// - Dtypes: any; a cotangent is at least f32.
/// - Gradient: what the rule returns.
///
/// ```
/// use defn::prelude::*;
///
/// // The gradient of a square, limited to the range from -1 to 1.
/// let slope = jit(|x: Expr| {
///     grad(&x, |x| custom_grad(&x * &x, &x, |g: Expr| (g * 2.0 * &x).clip(-1.0, 1.0)))
/// });
/// assert_eq!(slope.call(Tensor::scalar(3.0)?)?.item::<f32>()?, 1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A rule whose container has another number of leaves than the inputs (`Container`), and cotangents of other shapes
/// (`Shape`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn custom_grad<V: Exprs, A: Exprs>(value: V, inputs: &A, rule: impl FnOnce(V) -> A) -> V {
    let location = Location::caller();
    let operands = tensors(&value).and_then(|values| Ok((values, tensors(inputs)?)));
    let outcome = operands.and_then(|(values, inputs)| {
        record(location, |ops| {
            builder::custom_grad(ops, values, inputs, |_, cotangents| {
                results(&rule(refill(&value, Ok(cotangents.to_vec()))))
            })
        })
    });
    refill(&value, outcome)
}
