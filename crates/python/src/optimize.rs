//! Zeros and minima of functions of containers.

use std::cell::RefCell;

use defn_core::Tensor;
use defn_core::builder::{
    self, Arg, Builder, LbfgsState, LeastSquaresMethod, LeastSquaresOptions, LinearFunction, MinimizeMethod,
    MinimizeOptions, Ops, Optimum, RootMethod, RootOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::containers::Tree;
use crate::control::{FaultCarrier, container, controlled, operands, same_structure, tensors};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::wrap;
use crate::ops::{self, Parse};
use crate::solvers::is_function;

/// The options of all functions, as the user gives them.
struct Requested<'a, 'py> {
    op: &'static str,
    method: &'a Bound<'py, PyAny>,
    maxiter: &'a Bound<'py, PyAny>,
}

impl Requested<'_, '_> {
    /// The method, if it is the name of one.
    fn method<T>(&self, of_name: impl FnOnce(&str) -> Option<T>, names: &[&str]) -> Fallible<T> {
        convert::one_of(self.op, "method", self.method, names, |name| Ok(of_name(name)))
    }

    fn maxiter(&self) -> Fallible<i64> {
        match convert::index(self.maxiter)? {
            Some(limit) => Ok(limit),
            None => Err(convert::bad(self.op, "maxiter", self.maxiter, "an int of at least 1")?),
        }
    }
}

/// Refuses what cannot be called.
fn require_function(op: &'static str, fun: &Bound<'_, PyAny>) -> Fallible<()> {
    if is_function(fun) {
        return Ok(());
    }
    Err(convert::bad(op, "fun", fun, "a function")?)
}

/// The fields of a result, in their order.
fn fields<'py>(
    py: Python<'py>,
    found: Optimum,
    tree: &Tree,
    results: &Tree,
) -> Fallible<Bound<'py, PyTuple>> {
    let (x, fun) = (container(py, tree, &found.x)?, container(py, results, &found.fun)?);
    let numbers = [found.status, found.iterations, found.evaluations, found.gradient_norm];
    let numbers = wrap(py, numbers.into_iter())?;
    let fields = [x, fun].into_iter().chain(numbers.into_iter().map(|number| number.into_any()));
    Ok(PyTuple::new(py, fields.collect::<Vec<_>>())?)
}

/// A zero of a function from a container to one like it.
#[pyfunction]
fn root<'py>(
    fun: &Bound<'py, PyAny>,
    x0: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    rtol: Option<&Bound<'py, PyAny>>,
    atol: &Bound<'py, PyAny>,
    maxiter: &Bound<'py, PyAny>,
    restart: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    controlled(|| {
        let op = "root";
        require_function(op, fun)?;
        let restart = usize::parse(op, "restart", Some(restart))?;
        let requested = Requested { op, method, maxiter };
        let options = RootOptions {
            method: requested.method(|name| RootMethod::of_name(name, restart), RootMethod::NAMES)?,
            rtol: Option::parse(op, "rtol", rtol)?,
            atol: f64::parse(op, "atol", Some(atol))?,
            maxiter: requested.maxiter()?,
        };
        found(op, fun, x0, true, |ops, start, function| builder::root(ops, &options, start, function))
    })
}

/// A minimum of a function of a container.
#[pyfunction]
fn minimize<'py>(
    fun: &Bound<'py, PyAny>,
    x0: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    gtol: Option<&Bound<'py, PyAny>>,
    maxiter: &Bound<'py, PyAny>,
    history: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    controlled(|| {
        let op = "minimize";
        require_function(op, fun)?;
        let history = usize::parse(op, "history", Some(history))?;
        let requested = Requested { op, method, maxiter };
        let options = MinimizeOptions {
            method: requested.method(|name| MinimizeMethod::of_name(name, history), MinimizeMethod::NAMES)?,
            gtol: Option::parse(op, "gtol", gtol)?,
            maxiter: requested.maxiter()?,
        };
        found(op, fun, x0, false, |ops, start, function| builder::minimize(ops, &options, start, function))
    })
}

/// A minimum of the sum of squares of the values in a function's container.
#[pyfunction]
fn least_squares<'py>(
    fun: &Bound<'py, PyAny>,
    x0: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    rtol: Option<&Bound<'py, PyAny>>,
    gtol: Option<&Bound<'py, PyAny>>,
    maxiter: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    controlled(|| {
        let op = "least_squares";
        require_function(op, fun)?;
        let requested = Requested { op, method, maxiter };
        let options = LeastSquaresOptions {
            method: requested.method(LeastSquaresMethod::of_name, LeastSquaresMethod::NAMES)?,
            rtol: Option::parse(op, "rtol", rtol)?,
            gtol: Option::parse(op, "gtol", gtol)?,
            maxiter: requested.maxiter()?,
        };
        found(op, fun, x0, false, |ops, start, function| {
            builder::least_squares(ops, &options, start, function)
        })
    })
}

/// What a search with a function of containers finds. `keeps` says whether its value must be a container like `x0`.
fn found<'py>(
    op: &'static str,
    fun: &Bound<'py, PyAny>,
    x0: &Bound<'py, PyAny>,
    keeps: bool,
    search: impl FnOnce(&mut Ops, &[Tensor], LinearFunction<'_>) -> defn_core::Result<Optimum>,
) -> Fallible<Bound<'py, PyTuple>> {
    let py = fun.py();
    let (start, tree) = tensors(op, x0)?;
    let carrier = FaultCarrier::default();
    let results: RefCell<Option<Tree>> = RefCell::default();
    let mut function = |_: &mut Ops, x: &[Tensor]| -> defn_core::Result<Vec<Arg<Tensor>>> {
        carrier.run_user_function(|| {
            let value = operands(op, &fun.call1((container(py, &tree, x)?,))?)?;
            if keeps {
                return same_structure(py, op, "the value of fun", value, "x0", &tree);
            }
            results.replace(Some(value.tree));
            Ok(value.args)
        })
    };
    let outcome = search(&mut ops::builder()?, &start, &mut function);
    let outcome = carrier.into_result(outcome)?;
    let results = results.into_inner();
    fields(py, outcome, &tree, results.as_ref().unwrap_or(&tree))
}

/// The state of L-BFGS before the first step.
#[pyfunction]
fn lbfgs_begin<'py>(
    params: &Bound<'py, PyAny>,
    history: &Bound<'py, PyAny>,
) -> Fallible<Vec<Bound<'py, PyAny>>> {
    controlled(|| {
        let op = "lbfgs";
        let history = usize::parse(op, "history", Some(history))?;
        let (params_, _) = tensors(op, params)?;
        parts(params.py(), builder::lbfgs_begin(&mut ops::builder()?, &params_, history)?)
    })
}

/// A step of L-BFGS: updates and the next state.
#[pyfunction]
fn lbfgs_update<'py>(
    fun: &Bound<'py, PyAny>,
    updates: &Bound<'py, PyAny>,
    state: [Bound<'py, PyAny>; 5],
    params: &Bound<'py, PyAny>,
) -> Fallible<(Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>)> {
    controlled(|| {
        let (op, py) = ("lbfgs", fun.py());
        require_function(op, fun)?;
        let (at, tree) = tensors(op, params)?;
        let mut ops = ops::builder()?;
        let gradients =
            same_structure(py, op, "the updates", operands(op, updates)?, "the parameters", &tree)?;
        let gradients = gradients.into_iter().map(|x| ops.operand(x)).collect::<Result<Vec<_>, _>>()?;
        let known = state.iter().map(|part| Ok(tensors(op, part)?.0)).collect::<Fallible<Vec<_>>>()?.concat();
        let Ok(known) = <[Tensor; 5]>::try_from(known) else {
            return Err(convert::bad(op, "state", state[0].as_any(), "a state that init has made")?);
        };
        let known = LbfgsState::from_array(known);
        let carrier = FaultCarrier::default();
        let mut function = |_: &mut Ops, x: &[Tensor]| -> defn_core::Result<Vec<Arg<Tensor>>> {
            carrier.run_user_function(|| Ok(operands(op, &fun.call1((container(py, &tree, x)?,))?)?.args))
        };
        let outcome = builder::lbfgs_update(&mut ops, &at, &gradients, known, &mut function);
        let (updates, known) = carrier.into_result(outcome)?;
        Ok((container(py, &tree, &updates)?, parts(py, known)?))
    })
}

/// The parts of a state, in their order.
fn parts(py: Python<'_>, state: LbfgsState<Tensor>) -> Fallible<Vec<Bound<'_, PyAny>>> {
    let parts = wrap(py, state.into_array().into_iter())?;
    Ok(parts.into_iter().map(|part| part.into_any()).collect())
}

/// Raises unless all statuses are 0.
#[pyfunction]
fn require_converged(
    function: &str,
    status: Vec<i64>,
    iterations: Vec<i64>,
    gradient_norms: Vec<f64>,
) -> Fallible<()> {
    let op = match function {
        "minimize" => "minimize",
        "least_squares" => "least_squares",
        _ => "root",
    };
    guard(|| Ok(builder::require_converged(op, &status, &iterations, &gradient_norms)?))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(root, module)?)?;
    module.add_function(wrap_pyfunction!(minimize, module)?)?;
    module.add_function(wrap_pyfunction!(least_squares, module)?)?;
    module.add_function(wrap_pyfunction!(lbfgs_begin, module)?)?;
    module.add_function(wrap_pyfunction!(lbfgs_update, module)?)?;
    module.add_function(wrap_pyfunction!(require_converged, module)?)
}
