//! Zeros and minima of functions of containers.

use defn_core::Tensor;
use defn_core::builder::{self, Arg, Ops, Optimum, RootMethod, RootOptions};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

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
        let name = self.method.cast::<PyString>().map_or_else(|_| String::new(), |name| name.to_string());
        match of_name(&name) {
            Some(method) => Ok(method),
            None => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                Err(convert::bad(self.op, "method", self.method, &names.join(" or "))?)
            }
        }
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
        let (py, op) = (fun.py(), "root");
        require_function(op, fun)?;
        let restart = usize::parse(op, "restart", Some(restart))?;
        let given = Requested { op, method, maxiter };
        let options = RootOptions {
            method: given.method(|name| RootMethod::of_name(name, restart), RootMethod::NAMES)?,
            rtol: Option::parse(op, "rtol", rtol)?,
            atol: f64::parse(op, "atol", Some(atol))?,
            maxiter: given.maxiter()?,
        };
        let (start, tree) = tensors(op, x0)?;
        let carrier = FaultCarrier::default();
        let mut function = |_: &mut Ops, x: &[Tensor]| -> defn_core::Result<Vec<Arg<Tensor>>> {
            carrier.run_user_function(|| {
                let value = fun.call1((container(py, &tree, x)?,))?;
                same_structure(py, op, "the value of fun", operands(op, &value)?, "x0", &tree)
            })
        };
        let result = builder::root(&mut ops::builder()?, &options, &start, &mut function);
        fields(py, carrier.into_result(result)?, &tree, &tree)
    })
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
    module.add_function(wrap_pyfunction!(require_converged, module)?)
}
