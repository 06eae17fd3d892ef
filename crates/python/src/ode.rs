//! Initial value problems over containers.

use defn_core::Tensor;
use defn_core::builder::{self, OdeEvent, OdeGradient, OdeMethod, OdeOptions, OdeSolution, Ops};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::control::{
    FaultCarrier, container, controlled, operands, same_structure, snapshot_count, tensors,
};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::wrap;
use crate::ops::{self, Parse};

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

const OP: &str = "odeint";

/// A number that may be left out.
fn number(name: &'static str, value: OptionalArg<'_, '_>) -> Fallible<Option<f64>> {
    value.map(|value| f64::parse(OP, name, Some(value))).transpose()
}

fn options(
    (method, gradient): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
    (rtol, atol, first_step): (OptionalArg<'_, '_>, OptionalArg<'_, '_>, OptionalArg<'_, '_>),
    max_steps: &Bound<'_, PyAny>,
    snapshots: OptionalArg<'_, '_>,
) -> Fallible<OdeOptions> {
    let Some(most) = convert::index(max_steps)? else {
        return Err(convert::bad(OP, "max_steps", max_steps, "an integer from 1 to 2147483647")?);
    };
    Ok(OdeOptions {
        method: convert::one_of(OP, "method", method, &OdeMethod::NAMES, |name| {
            Ok(OdeMethod::of_name(name))
        })?,
        rtol: number("rtol", rtol)?,
        atol: number("atol", atol)?,
        max_steps: most,
        first_step: number("first_step", first_step)?,
        gradient: convert::one_of(OP, "gradient", gradient, &OdeGradient::NAMES, |name| {
            Ok(OdeGradient::of_name(name))
        })?,
        snapshots: snapshot_count(OP, snapshots)?,
    })
}

/// The solution of an initial value problem: the unknowns at all times, the status, the time that was reached, and how many
/// steps were accepted and rejected; with an event, also its time and the unknowns at it.
#[pyfunction]
#[pyo3(signature = (function, event, y0, ts, method, rtol, atol, max_steps, first_step, gradient, snapshots))]
#[expect(clippy::too_many_arguments, reason = "they are the options of the Python function")]
fn odeint<'py>(
    function: &Bound<'py, PyAny>,
    event: Option<&Bound<'py, PyAny>>,
    y0: &Bound<'py, PyAny>,
    ts: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    rtol: Option<&Bound<'py, PyAny>>,
    atol: Option<&Bound<'py, PyAny>>,
    max_steps: &Bound<'py, PyAny>,
    first_step: Option<&Bound<'py, PyAny>>,
    gradient: &Bound<'py, PyAny>,
    snapshots: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyTuple>> {
    let options = guard(|| options((method, gradient), (rtol, atol, first_step), max_steps, snapshots))?;
    controlled(|| {
        let py = y0.py();
        if !function.is_callable() {
            return Err(convert::bad(OP, "f", function, "a function of the time and the unknowns")?);
        }
        if let Some(event) = event
            && !event.is_callable()
        {
            let required = "None, or a function of the time and the unknowns";
            return Err(convert::bad(OP, "event", event, required)?);
        }
        let (unknowns, tree) = tensors(OP, y0)?;
        let times = convert::tensor(OP, ts)?;
        let carrier = FaultCarrier::default();
        let mut slopes = |_: &mut Ops, t: &Tensor, y: &[Tensor]| {
            carrier.run_user_function(|| {
                let t = wrap(py, std::iter::once(t.clone()))?.remove(0);
                let value = function.call1((t, container(py, &tree, y)?))?;
                same_structure(py, OP, "the value of f", operands(OP, &value)?, "y0", &tree)
            })
        };
        let mut numbers = |_: &mut Ops, t: &Tensor, y: &[Tensor]| {
            let Some(event) = event else { return Ok(Vec::new()) };
            carrier.run_user_function(|| {
                let t = wrap(py, std::iter::once(t.clone()))?.remove(0);
                let value = event.call1((t, container(py, &tree, y)?))?;
                Ok(operands(OP, &value)?.args)
            })
        };
        let mut ops = ops::builder()?;
        let result = match event {
            None => builder::odeint(&mut ops, &options, &mut slopes, &unknowns, &times),
            Some(_) => {
                builder::odeint_until(&mut ops, &options, &mut slopes, &mut numbers, &unknowns, &times)
            }
        };
        let OdeSolution { ys, status, t_reached, steps, rejected, event } = carrier.into_result(result)?;
        let mut parts = vec![container(py, &tree, &ys)?];
        parts.extend(wrap(py, [status, t_reached, steps, rejected].into_iter())?);
        if let Some(OdeEvent { t, y }) = event {
            parts.extend(wrap(py, std::iter::once(t))?);
            parts.push(container(py, &tree, &y)?);
        }
        Ok(PyTuple::new(py, parts)?)
    })
}

/// Raises for statuses other than 0 and that of an event.
#[pyfunction]
fn require_reached(status: Vec<i64>, times: Vec<f64>) -> Fallible<()> {
    guard(|| Ok(builder::require_reached(&status, &times)?))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(odeint, module)?)?;
    module.add_function(wrap_pyfunction!(require_reached, module)?)
}
