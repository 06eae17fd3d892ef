//! Gradients of functions of expressions.

use std::fmt;
use std::marker::PhantomData;

use defn_core as core;
use defn_core::builder::{self, BuildControl, Rules};
use defn_core::grad::TracedPullback;
use defn_core::jvp::has_few_variables;
use defn_core::region::Region;
use defn_core::trace::Trace;
use defn_core::vectorize::NamedAxes;
use defn_core::{ErrorKind, Location, Result, grad as core_grad, vectorize};

use crate::control::{Exprs, refill, results, tensors};
use crate::expr::{both, record};
use crate::{Expr, jvp};

/// The gradient of a function at a container of expressions. It may be used on another gradient.
///
/// If the value is not a scalar, the gradient is that of the sum of its elements. Captured expressions are constants. If
/// they have vectorized axes, as in a mapped function ([`vmap`](fn@crate::vmap)), there is a gradient for each position; the
/// function is called twice then, while it is traced.
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
pub fn grad<A: Exprs>(at: &A, fun: impl FnMut(A) -> Expr) -> A {
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
pub fn value_and_grad<A: Exprs>(at: &A, fun: impl FnMut(A) -> Expr) -> (Expr, A) {
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
    fun: impl FnMut(A) -> R,
    loss: impl Fn(&R) -> Expr,
) -> (R, A) {
    let location = Location::caller();
    let (value, traced) = traced(at, fun, |value| Some(loss(value)), location.clone());
    let outcome = traced.and_then(|Traced { region, arguments, variables, lanes }| {
        record(location, |ops| {
            let wrt: Vec<usize> = (0..variables.len()).collect();
            let region = core_grad::value_and_grad(&region, lanes.len() - 1, &wrt)?;
            let of_variables = variables.iter().map(core::Tensor::vectorized_axes);
            let axes = lanes.iter().map(|lanes| &lanes[..]).chain(of_variables);
            let outputs = ops.inline(&region, &arguments)?.into_iter().zip(axes);
            let mut outputs: Vec<core::Tensor> = outputs.map(|(x, axes)| x.with_vectorized(axes)).collect();
            let gradient = outputs.split_off(lanes.len());
            outputs.pop();
            Ok((outputs, gradient))
        })
    });
    let (outputs, gradient) = both(outcome);
    (refill(&value, outputs), refill(at, gradient))
}

/// The value of a function, which is a container, and its vector-Jacobian product, which maps a cotangent of the value to
/// the cotangents of the variables.
///
/// - Shapes: each cotangent of a variable has the shape of the variable.
/// - Dtypes: as for [`grad`].
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|(x, g): (Expr, Expr)| {
///     let (value, pullback) = vjp(&x, |x| &x * &x);
///     (value, pullback.call(&g))
/// });
/// let (value, slope) = f.call((tensor![1.0, 2.0]?, tensor![1.0, 10.0]?))?;
/// assert_eq!(value.to_vec::<f32>()?, [1.0, 4.0]);
/// assert_eq!(slope.to_vec::<f32>()?, [2.0, 40.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An operation without a gradient (`Trace`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn vjp<A: Exprs, R: Exprs>(at: &A, fun: impl FnMut(A) -> R) -> (R, Pullback<A, R>) {
    let location = Location::caller();
    let (value, traced) = traced(at, fun, |_| None, location.clone());
    let outcome = traced.and_then(|traced| {
        record(location, |ops| {
            let values = ops.inline(&traced.region, &traced.arguments)?.into_iter().zip(&traced.lanes);
            let values: Vec<_> = values.map(|(value, lanes)| value.with_vectorized(lanes)).collect();
            Ok((values, traced.pullback()?))
        })
    });
    let (values, pull) = both(outcome);
    let variables = refill(at, tensors(at));
    (refill(&value, values), Pullback { pull, variables, value: PhantomData })
}

/// Maps cotangents of a function's value to cotangents of its variables. [`vjp`] makes it.
///
/// ```
/// use defn::prelude::*;
/// use defn::Pullback;
///
/// fn row(pullback: &Pullback<Expr, Expr>, at: usize) -> Expr {
///     pullback.call(&Expr::eye(&[2, 2], DType::F32).at(at))
/// }
/// let second = jit(|x: Expr| row(&vjp(&x, |x| x.pow(2)).1, 1));
/// assert_eq!(second.call(tensor![1.0, 5.0]?)?.to_vec::<f32>()?, [0.0, 10.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[must_use = "a pullback computes nothing unless it is called"]
pub struct Pullback<A, R> {
    pull: Result<TracedPullback>,
    /// The variables, for their form.
    variables: A,
    value: PhantomData<fn(&R) -> A>,
}

impl<A, R> fmt::Debug for Pullback<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pull {
            Ok(pull) => write!(f, "Pullback({} results)", pull.results().len()),
            Err(error) => write!(f, "Pullback({error})"),
        }
    }
}

impl<A: Exprs, R: Exprs> Pullback<A, R> {
    /// The cotangents of the variables. A vectorized axis of the cotangent that the value lacks is a batch axis: each
    /// position on it is pulled back separately.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let f = jit(|(x, g): (Expr, Expr)| vjp(&x, |x| x.sin()).1.call(&g));
    /// assert_eq!(f.call((tensor![0.0]?, tensor![3.0]?))?.to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A cotangent of another shape than the value (`Shape`), and one of another structure (`Container`). The error comes
    /// out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn call(&self, cotangent: &R) -> A {
        let location = Location::caller();
        let outcome = self.pull.as_ref().map_err(Clone::clone).and_then(|pull| {
            let given = tensors(cotangent)?;
            record(location, |ops| {
                let (got, expected) = (given.len(), pull.results().len());
                if got != expected {
                    let what = "cotangent";
                    return Err(ErrorKind::RegionResults { op: "vjp", what, got, expected }.into());
                }
                pull.require_shapes(&given)?;
                pull.apply(ops, &given, &|_, gradients| Ok(gradients))
            })
        });
        refill(&self.variables, outcome)
    }
}

/// The derivative of each element of a function's value by each element of the variables.
///
/// Where the variables have no more elements than the value, it is computed in forward mode, else in reverse.
///
/// - Shapes: for each variable the axes of the value, followed by those of the variable.
/// - Dtypes: as for [`grad`].
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|x: Expr| jacobian(&x, |x| &x * x.sum(Axes::All, false)));
/// let slopes = f.call(tensor![1.0, 2.0]?)?;
/// assert_eq!(slopes.ty().to_string(), "f32[2][2]");
/// assert_eq!(slopes.to_vec::<f32>()?, [4.0, 1.0, 2.0, 5.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An operation without a gradient (`Trace`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn jacobian<A: Exprs>(at: &A, fun: impl FnMut(A) -> Expr) -> A {
    jacobian_in(None, at, fun, Location::caller())
}

/// The derivative of each element of a function's value by each element of the variables, in forward mode.
///
/// It suits functions of few numbers with large values. Loops take no memory for their iterations.
///
/// Shapes and dtypes are those of [`jacobian`].
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|t: Expr| jacfwd(&t, |t| t * Expr::iota(&[3], DType::F32, None)));
/// assert_eq!(f.call(Tensor::scalar(5.0)?)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An operation without a derivative, and a gradient rule of [`custom_grad`] that is not linear (`Trace`). The error comes
/// out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn jacfwd<A: Exprs>(at: &A, fun: impl FnMut(A) -> Expr) -> A {
    jacobian_in(Some(Mode::Forward), at, fun, Location::caller())
}

/// The derivative of each element of a function's value by each element of the variables, in reverse mode.
///
/// It suits functions with few results. Shapes, dtypes and errors are those of [`jacobian`].
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|x: Expr| jacrev(&x, |x| (&x * &x).sum(Axes::All, false)));
/// assert_eq!(f.call(tensor![1.0, 2.0]?)?.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[track_caller]
pub fn jacrev<A: Exprs>(at: &A, fun: impl FnMut(A) -> Expr) -> A {
    jacobian_in(Some(Mode::Reverse), at, fun, Location::caller())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Forward,
    Reverse,
}

/// The Jacobian in a mode, or in the one with fewer passes.
fn jacobian_in<A: Exprs>(mode: Option<Mode>, at: &A, fun: impl FnMut(A) -> Expr, location: Location) -> A {
    let (_, traced) = traced(at, fun, |_| None, location.clone());
    let outcome = traced.and_then(|traced| {
        record(location, |ops| {
            let name = vectorize::fresh_name("element", &traced.variables);
            let is_forward = match mode {
                Some(mode) => mode == Mode::Forward,
                None => has_few_variables(&traced.region, &traced.lanes, &traced.variables),
            };
            if is_forward {
                match jvp::columns(ops, &traced, &name) {
                    // A user's rule for gradients may have no forward mode.
                    Err(error) if mode.is_none() && matches!(error.kind(), ErrorKind::NoGradient { .. }) => {}
                    outcome => return outcome,
                }
            }
            traced.pullback()?.jacobian(ops, 0, &name, &|_, gradients| Ok(gradients))
        })
    });
    refill(at, outcome)
}

/// The second derivatives of a scalar function: the Jacobian of its gradient.
///
/// - Shapes: the axes of the variable twice.
/// - Dtypes: as for [`grad`].
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|x: Expr| hessian(&x, |x| x.at(0).pow(2) * x.at(1)));
/// assert_eq!(f.call(tensor![3.0, 5.0]?)?.to_vec::<f32>()?, [10.0, 6.0, 6.0, 0.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`jacobian`].
#[track_caller]
pub fn hessian(at: &Expr, mut fun: impl FnMut(Expr) -> Expr) -> Expr {
    jacobian(at, |x| grad(&x, &mut fun))
}

/// A function that was traced at its variables.
pub(crate) struct Traced {
    pub(crate) region: Region,
    /// The variables without vectorized axes, then the captures.
    pub(crate) arguments: Vec<core::Tensor>,
    pub(crate) variables: Vec<core::Tensor>,
    /// The vectorized axes of the results.
    pub(crate) lanes: Vec<NamedAxes>,
}

impl Traced {
    fn pullback(self) -> Result<TracedPullback> {
        let Traced { region, arguments, variables, lanes } = self;
        TracedPullback::new(&region, variables.len(), &lanes, arguments, &variables)
    }
}

/// Traces a function at a container, to the leaves of its value, and to the loss that is differentiated if there is one;
/// gives the value, whose leaves belong to that trace, for its form.
///
/// The function is traced again if captured expressions bring in vectorized axes: there is a derivative for each position.
pub(crate) fn traced<A: Exprs, R: Exprs>(
    at: &A,
    mut fun: impl FnMut(A) -> R,
    loss_of: impl Fn(&R) -> Option<Expr>,
    location: Location,
) -> (R, Result<Traced>) {
    let mut joined = tensors(at).and_then(|variables| {
        record(location.clone(), |ops| vectorize::broadcast_vectors(ops, &variables, false))
    });
    loop {
        let variables = match joined {
            Ok(variables) => variables,
            // What depends on an error is void, but it has its form.
            Err(error) => return (fun(refill(at, Err(error.clone()))), Err(error)),
        };
        let (tracing, parameters) = Trace::begin_like(&variables);
        let value = fun(refill(at, Ok(parameters)));
        let loss = loss_of(&value);
        let outcome = record(location.clone(), |ops| {
            let own = vectorize::union("grad", &variables)?;
            let results = tensors(&value).and_then(|mut results| {
                let differentiated = if loss.is_some() { results.len() } else { 0 };
                if let Some(loss) = loss {
                    results.push(core_grad::loss_at_positions(ops, &loss.0?, &own)?);
                }
                Ok((results, differentiated))
            });
            let (results, differentiated) = match results {
                Ok(results) => results,
                Err(error) => return Err(tracing.finish("grad", &[]).err().unwrap_or(error)),
            };
            let closed = tracing.finish("grad", &results)?;
            let lanes: Vec<NamedAxes> =
                results.iter().map(|result| result.vectorized_axes().into()).collect();
            let of_results = lanes.get(differentiated..).unwrap_or_default();
            let axes = core_grad::axes_of_variables(&own, &closed.lanes, of_results);
            Ok((closed, lanes, (axes != own).then_some(axes)))
        });
        let (closed, lanes, further) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return (value, Err(error)),
        };
        let Some(axes) = further else {
            let arguments = variables.iter().map(core::Tensor::flat).chain(closed.captures).collect();
            return (value, Ok(Traced { region: closed.region, arguments, variables, lanes }));
        };
        joined = record(location.clone(), |ops| {
            variables.iter().map(|x| vectorize::broadcast_vectorized(ops, "grad", x, &axes)).collect()
        });
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
    with_rules(&value, inputs, |value| {
        Rules::Reverse(Box::new(|_, cotangents| results(&rule(refill(value, Ok(cotangents.to_vec()))))))
    })
}

/// The value with a tangent of one's own: `rule` takes the tangents of the inputs, in their container, and returns the
/// tangent of the value. The operations that compute the value are not differentiated.
///
/// Reverse mode applies the transpose of the rule, which must be linear in the tangents for that.
///
/// - Shapes: those of the value; a tangent has the shape of its input or value.
/// - Dtypes: any; a tangent has the dtype of its input.
/// - Gradient: what the rule returns.
///
/// ```
/// use defn::prelude::*;
///
/// // The logarithm of 1 + exp(x), whose derivative does not overflow.
/// fn softplus(x: &Expr) -> Expr {
///     let value = (x.exp() + 1.0).log();
///     custom_jvp(value, x, |t| t * (1.0 - 1.0 / (x.exp() + 1.0)))
/// }
/// let slope = jit(|x: Expr| grad(&x, |x| softplus(&x)));
/// assert_eq!(slope.call(Tensor::scalar(100.0)?)?.item::<f32>()?, 1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A rule whose container has another number of leaves than the value (`Container`), and tangents of other shapes
/// (`Shape`). A rule that is not linear is an error in reverse mode (`Trace`). The error comes out of
/// [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn custom_jvp<V: Exprs, A: Exprs>(value: V, inputs: &A, rule: impl FnOnce(A) -> V) -> V {
    with_rules(&value, inputs, |_| {
        Rules::Forward(Box::new(|_, tangents| results(&rule(refill(inputs, Ok(tangents.to_vec()))))))
    })
}

/// The value with a rule for each mode: `reverse` is as that of [`custom_grad`], `forward` as that of [`custom_jvp`].
/// Neither needs to be linear.
///
/// ```
/// use defn::prelude::*;
///
/// // A square whose derivatives are limited in both modes.
/// let slope = |x: &Expr, t: Expr| (t * 2.0 * x).clip(-1.0, 1.0);
/// let f = jit(move |x: Expr| {
///     let limited = |x: Expr| custom_derivative(&x * &x, &x, |g| slope(&x, g), |t| slope(&x, t));
///     (grad(&x, limited), jvp(&x, &x.ones_like(), limited).1)
/// });
/// let (gradient, tangent) = f.call(Tensor::scalar(3.0)?)?;
/// assert_eq!((gradient.item::<f32>()?, tangent.item::<f32>()?), (1.0, 1.0));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Those of [`custom_grad`] and [`custom_jvp`].
#[track_caller]
pub fn custom_derivative<V: Exprs, A: Exprs>(
    value: V,
    inputs: &A,
    reverse: impl FnOnce(V) -> A,
    forward: impl FnOnce(A) -> V,
) -> V {
    with_rules(&value, inputs, |value| Rules::Both {
        reverse: Box::new(|_, cotangents| results(&reverse(refill(value, Ok(cotangents.to_vec()))))),
        forward: Box::new(|_, tangents| results(&forward(refill(inputs, Ok(tangents.to_vec()))))),
    })
}

/// The value with derivative rules.
#[track_caller]
fn with_rules<'a, V: Exprs, A: Exprs>(value: &'a V, inputs: &A, rules: impl FnOnce(&'a V) -> Rules<'a>) -> V {
    let location = Location::caller();
    let operands = tensors(value).and_then(|values| Ok((values, tensors(inputs)?)));
    let outcome = operands.and_then(|(values, inputs)| {
        record(location, |ops| builder::custom_derivative(ops, values, inputs, rules(value)))
    });
    refill(value, outcome)
}
