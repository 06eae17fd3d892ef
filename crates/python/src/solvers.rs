//! Solutions of linear systems, and values that a condition defines, over containers.

use defn_core::Tensor;
use defn_core::builder::{self, Arg, LinearMap, LinearOptions, Ops};
use defn_core::op::LinearMethod;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::containers::Tree;
use crate::control::{FaultCarrier, container, controlled, operands, same_structure, tensors};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::wrap;
use crate::ops::{self, Parse};
use crate::tensor::PyTensor;

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The options of a solver, as the user gives them.
struct GivenOptions<'a, 'py> {
    rtol: OptionalArg<'a, 'py>,
    atol: OptionalArg<'a, 'py>,
    maxiter: OptionalArg<'a, 'py>,
    restart: OptionalArg<'a, 'py>,
}

impl GivenOptions<'_, '_> {
    fn parse(self, op: &'static str, method: &str) -> Fallible<Option<LinearOptions>> {
        let restart = match self.restart {
            Some(restart) => usize::parse(op, "restart", Some(restart))?,
            None => 0,
        };
        let Some(method) = LinearMethod::of_name(method, restart) else { return Ok(None) };
        let atol = self.atol.map_or(Ok(0.0), |atol| f64::parse(op, "atol", Some(atol)))?;
        let rtol = Option::parse(op, "rtol", self.rtol)?;
        let maxiter = match self.maxiter {
            None => None,
            Some(maxiter) => match convert::index(maxiter)? {
                Some(limit) => Some(limit),
                None => return Err(convert::bad(op, "maxiter", maxiter, "an int of at least 1, or None")?),
            },
        };
        Ok(Some(LinearOptions { method, rtol, atol, maxiter }))
    }
}

/// Whether a map is a function instead of a matrix.
pub(crate) fn is_function(map: &Bound<'_, PyAny>) -> bool {
    map.is_callable() && !map.is_instance_of::<PyTensor>()
}

/// Calls a user's function on leaves in a container, and returns the leaves of its value.
fn call(
    op: &'static str,
    what: &str,
    (carrier, tree): (&FaultCarrier, &Tree),
    function: &Bound<'_, PyAny>,
    leaves: &[Tensor],
) -> defn_core::Result<Vec<Arg<Tensor>>> {
    carrier.run_user_function(|| {
        let py = function.py();
        let value = function.call1((container(py, tree, leaves)?,))?;
        same_structure(py, op, what, operands(op, &value)?, "what it is given", tree)
    })
}

/// The solution of a linear system, and 0 where the method converged, else the number of iterations.
fn solve<'py>(
    op: &'static str,
    options: LinearOptions,
    (a, m): (&Bound<'py, PyAny>, Option<&Bound<'py, PyAny>>),
    b: &Bound<'py, PyAny>,
    x0: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyTuple>> {
    controlled(|| {
        let py = b.py();
        let (rhs, tree) = tensors(op, b)?;
        let start = match x0 {
            None => None,
            Some(x0) => {
                let args = same_structure(py, op, "x0", operands(op, x0)?, "b", &tree)?;
                let leaves = args.into_iter().map(|arg| ops::with(|ops| builder::Builder::operand(ops, arg)));
                Some(leaves.collect::<Fallible<Vec<Tensor>>>()?)
            }
        };
        let carrier = FaultCarrier::default();
        let mut multiply = |_: &mut Ops, x: &[Tensor]| call(op, "the value of a", (&carrier, &tree), a, x);
        let mut approximate =
            |_: &mut Ops, x: &[Tensor]| call(op, "the value of m", (&carrier, &tree), m.unwrap_or(a), x);
        let map = match is_function(a) {
            true => LinearMap::Function(&mut multiply),
            false => LinearMap::Matrix(convert::tensor(op, a)?),
        };
        let preconditioner = match m {
            None => None,
            Some(m) if is_function(m) => Some(LinearMap::Function(&mut approximate)),
            Some(m) => Some(LinearMap::Matrix(convert::tensor(op, m)?)),
        };
        let result = builder::linear_solve(
            &mut ops::builder()?,
            op,
            &options,
            (map, preconditioner),
            &rhs,
            start.as_deref(),
        );
        let (x, info) = carrier.into_result(result)?;
        let x = container(py, &tree, &x)?;
        let info = wrap(py, std::iter::once(info))?.remove(0);
        Ok(PyTuple::new(py, [x, info])?)
    })
}

/// The solution of a system by the iterative method of a name.
#[pyfunction]
#[pyo3(signature = (method, a, b, x0, rtol, atol, maxiter, m, restart = None))]
#[expect(clippy::too_many_arguments, reason = "they are the options of the Python functions")]
fn linear_solve<'py>(
    method: &str,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    x0: Option<&Bound<'py, PyAny>>,
    rtol: Option<&Bound<'py, PyAny>>,
    atol: Option<&Bound<'py, PyAny>>,
    maxiter: Option<&Bound<'py, PyAny>>,
    m: Option<&Bound<'py, PyAny>>,
    restart: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyTuple>> {
    let known = LinearMethod::of_name(method, 1).expect("the name of a method");
    let given = GivenOptions { rtol, atol, maxiter, restart };
    let options = guard(|| given.parse(known.name(), method))?.expect("the name of a method");
    solve(known.name(), options, (a, m), b, x0)
}

/// Values with the derivatives of the zero of a condition.
#[pyfunction]
#[pyo3(signature = (value, condition, solver, rtol = None, atol = None, maxiter = None, restart = None))]
fn implicit<'py>(
    value: &Bound<'py, PyAny>,
    condition: &Bound<'py, PyAny>,
    solver: &Bound<'py, PyAny>,
    rtol: Option<&Bound<'py, PyAny>>,
    atol: Option<&Bound<'py, PyAny>>,
    maxiter: Option<&Bound<'py, PyAny>>,
    restart: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (py, op) = (value.py(), "implicit");
        let given = GivenOptions { rtol, atol, maxiter, restart };
        let options =
            convert::one_of(op, "solver", solver, LinearMethod::NAMES, |name| given.parse(op, name))?;
        if !is_function(condition) {
            return Err(convert::bad(op, "condition", condition, "a function")?);
        }
        let (values, tree) = tensors(op, value)?;
        let carrier = FaultCarrier::default();
        let mut function =
            |_: &mut Ops, x: &[Tensor]| call(op, "the condition", (&carrier, &tree), condition, x);
        let result = builder::implicit(&mut ops::builder()?, &values, &options, &mut function);
        container(py, &tree, &carrier.into_result(result)?)
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(linear_solve, module)?)?;
    module.add_function(wrap_pyfunction!(implicit, module)?)
}
