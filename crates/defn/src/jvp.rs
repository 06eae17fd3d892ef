//! Tangents of functions of expressions: forward mode.

use std::fmt;

use defn_core::builder::Ops;
use defn_core::jvp::{Control, TracedPushforward, require_tangent};
use defn_core::shape::Name;
use defn_core::{ErrorKind, Location, Result, Tensor as CoreTensor};

use crate::Expr;
use crate::control::{Exprs, refill, tensors};
use crate::expr::{both, record};
use crate::grad::{Traced, grad, traced};

/// The value of a function, which is a container, and its Jacobian-vector product: the tangent of the value for a tangent of
/// the variables.
///
/// It takes about twice the time of the function, whatever its size, and no memory beyond it: loops carry the tangents
/// along. Captured expressions are constants.
///
/// - Shapes: those of the value, twice. A tangent has the shape of its variable.
/// - Dtypes: those of the value; f32 for integers. A tangent has the dtype of its variable.
/// - Gradient: differentiable to any order, in both modes.
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|(x, t): (Expr, Expr)| jvp(&x, &t, |x| x.sin()));
/// let (value, tangent) = f.call((tensor![0.0]?, tensor![3.0]?))?;
/// assert_eq!(value.to_vec::<f32>()?, [0.0]);
/// assert_eq!(tangent.to_vec::<f32>()?, [3.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A tangent of another shape (`Shape`) or dtype (`DType`) than its variable, the tangent of an integer (`DType`), and an
/// operation without a derivative (`Trace`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn jvp<A: Exprs, R: Exprs>(at: &A, tangent: &A, fun: impl FnMut(A) -> R) -> (R, R) {
    let location = Location::caller();
    let (value, traced) = traced(at, fun, |_| None, location.clone());
    let outcome = traced.and_then(|traced| {
        let tangents = tensors(tangent)?;
        record(location, |ops| {
            require_all(at, &tangents)?;
            pushforward(&traced, Control::Joint)?.apply(ops, &tangents, &|_, tangents| Ok(tangents.to_vec()))
        })
    });
    let (values, pushed) = both(outcome);
    (refill(&value, values), refill(&value, pushed))
}

/// The value of a function, and its linearization: the function from tangents of the variables to tangents of the value.
///
/// What the tangents need of the values is computed once, for any number of directions; branches and loops are run again
/// with each. Shapes and dtypes are those of [`jvp`].
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|(x, t): (Expr, Expr)| {
///     let (value, linear) = linearize(&x, |x| x.sin());
///     (value, linear.call(&t), linear.call(&(2.0 * &t)))
/// });
/// let (value, once, twice) = f.call((tensor![0.0]?, tensor![3.0]?))?;
/// assert_eq!(value.to_vec::<f32>()?, [0.0]);
/// assert_eq!((once.to_vec::<f32>()?, twice.to_vec::<f32>()?), (vec![3.0], vec![6.0]));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An operation without a derivative (`Trace`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn linearize<A: Exprs, R: Exprs>(at: &A, fun: impl FnMut(A) -> R) -> (R, Linear<A, R>) {
    let location = Location::caller();
    let (value, traced) = traced(at, fun, |_| None, location.clone());
    let outcome = traced
        .and_then(|traced| record(location, |ops| pushforward(&traced, Control::Apart)?.linearize(ops)));
    let (values, linear) = both(outcome);
    let value = refill(&value, values);
    let (variables, form) = (refill(at, tensors(at)), refill(&value, tensors(&value)));
    (value, Linear { linear, variables, form })
}

/// Maps tangents of a function's variables to tangents of its value. [`linearize`] makes it.
///
/// ```
/// use defn::prelude::*;
/// use defn::Linear;
///
/// fn along(linear: &Linear<Expr, Expr>, axis: usize) -> Expr {
///     linear.call(&Expr::eye(&[2, 2], DType::F32).at(axis))
/// }
/// let column = jit(|x: Expr| along(&linearize(&x, |x| x.pow(2)).1, 1));
/// assert_eq!(column.call(tensor![1.0, 5.0]?)?.to_vec::<f32>()?, [0.0, 10.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[must_use = "a linearization computes nothing unless it is called"]
pub struct Linear<A, R> {
    linear: Result<TracedPushforward>,
    variables: A,
    /// The value, for its form.
    form: R,
}

impl<A, R> fmt::Debug for Linear<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.linear {
            Ok(_) => write!(f, "Linear(..)"),
            Err(error) => write!(f, "Linear({error})"),
        }
    }
}

impl<A: Exprs, R: Exprs> Linear<A, R> {
    /// The tangent of the value.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let f = jit(|(x, t): (Expr, Expr)| linearize(&x, |x| x.exp()).1.call(&t));
    /// assert_eq!(f.call((tensor![0.0]?, tensor![3.0]?))?.to_vec::<f32>()?, [3.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`jvp`].
    #[track_caller]
    pub fn call(&self, tangent: &A) -> R {
        let location = Location::caller();
        let outcome = self.linear.as_ref().map_err(Clone::clone).and_then(|linear| {
            let tangents = tensors(tangent)?;
            record(location, |ops| {
                require_all(&self.variables, &tangents)?;
                Ok(linear.apply(ops, &tangents, &|_, tangents| Ok(tangents.to_vec()))?.1)
            })
        });
        refill(&self.form, outcome)
    }
}

/// Refuses tangents of other types than their variables.
fn require_all<A: Exprs>(at: &A, tangents: &[CoreTensor]) -> Result<()> {
    let values = tensors(at)?;
    if values.len() != tangents.len() {
        let (got, expected, what) = (tangents.len(), values.len(), "tangent");
        return Err(ErrorKind::RegionResults { op: "jvp", what, got, expected }.into());
    }
    values.iter().zip(tangents).try_for_each(|(value, tangent)| require_tangent("jvp", value, tangent))
}

/// The Hessian-vector product of a scalar function: the derivative of its gradient along a tangent of the variables.
///
/// It takes about three times the time of the gradient, and never forms the Hessian.
///
/// - Shapes: those of the variables, in their container.
/// - Dtypes: those of the variables.
///
/// ```
/// use defn::prelude::*;
///
/// let f = jit(|(x, t): (Expr, Expr)| hvp(&x, &t, |x| x.at(0).pow(2) * x.at(1)));
/// let product = f.call((tensor![3.0, 5.0]?, tensor![1.0, 0.0]?))?;
/// assert_eq!(product.to_vec::<f32>()?, [10.0, 6.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`jvp`].
#[track_caller]
pub fn hvp<A: Exprs>(at: &A, tangent: &A, mut fun: impl FnMut(A) -> Expr) -> A {
    jvp(at, tangent, |at| grad(&at, &mut fun)).1
}

/// The forward mode of a traced function, with tangents of all variables and results.
fn pushforward(traced: &Traced, control: Control) -> Result<TracedPushforward> {
    let Traced { region, arguments, variables, lanes } = traced;
    let (wrt, of): (Vec<usize>, Vec<usize>) = ((0..variables.len()).collect(), (0..lanes.len()).collect());
    let variables: Vec<&CoreTensor> = variables.iter().collect();
    TracedPushforward::new(region, (&wrt, &of), lanes, arguments.clone(), &variables, control)
}

/// The Jacobians of the first result of a traced function by its variables.
pub(crate) fn columns(ops: &mut Ops, traced: &Traced, name: &Name) -> Result<Vec<CoreTensor>> {
    let pushforward = pushforward(traced, Control::Joint)?;
    let variables = 0..traced.variables.len();
    let columns = variables.map(|variable| {
        Ok(pushforward.jacobian(ops, variable, name, &|_, tangents| Ok(tangents.to_vec()))?.swap_remove(0))
    });
    columns.collect()
}
