//! Gradients over containers: a region of the function is traced, differentiated by the core, and put in place.

use defn_core::builder::BuildControl;
use defn_core::trace::{Closed, Trace};
use defn_core::{Tensor, TensorType, grad};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::containers::{self, Flat, Leaves, Mode};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::{Jitted, function_name, leaf_type, result_tensor, wrap};
use crate::misuse::Misuse;
use crate::ops;

/// Which gradient of a function is taken.
pub(crate) struct Gradient {
    /// The positional arguments to differentiate by.
    pub(crate) argnums: Vec<i64>,
    /// Whether there is one gradient rather than a tuple of them.
    pub(crate) single: bool,
    /// From the function's value to the tensor that is differentiated.
    pub(crate) transform: Option<Py<PyAny>>,
    /// Whether the function's value is returned besides.
    pub(crate) with_value: bool,
}

impl Gradient {
    /// Differentiates a function at arguments: in the open trace, or at once.
    pub(crate) fn call<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let py = args.py();
        let positions = self.positions(fun, args.len())?;
        let mut variables: Vec<Flat<'py>> = Vec::with_capacity(positions.len());
        for &position in &positions {
            let flat = containers::flatten("grad", Mode::State, &args.get_item(position)?)?;
            if flat.leaves.is_empty() {
                return Err(Misuse::StaticGrad { position, fun: function_name(fun) }.into());
            }
            variables.push(flat);
        }
        let mut tensors = Vec::new();
        for leaf in variables.iter().flat_map(|flat| &flat.leaves) {
            tensors.push(result_tensor("grad", leaf)?);
        }
        let types: Vec<TensorType> = tensors.iter().map(|tensor| tensor.ty().clone()).collect();

        let (tracing, parameters) = Trace::begin(&types);
        let mut wrapped = wrap(py, parameters.into_iter())?.into_iter();
        let mut inner: Vec<Bound<'py, PyAny>> = args.iter().collect();
        for (&position, flat) in positions.iter().zip(&variables) {
            inner[position] = flat.tree.unflatten(py, &mut wrapped)?;
        }
        let value = fun.call(PyTuple::new(py, inner)?, kwargs)?;
        let chosen = match &self.transform {
            Some(transform) => transform.bind(py).call1((&value,))?,
            None => value.clone(),
        };
        let loss = loss(&chosen)?;
        let value = containers::flatten("grad", Mode::State, &value)?;
        let mut results: Vec<Tensor> =
            value.leaves.iter().map(|leaf| result_tensor("grad", leaf)).collect::<Fallible<_>>()?;
        results.push(loss);
        let Closed { region, captures } = tracing.finish("grad", &results)?;

        let wrt: Vec<usize> = (0..types.len()).collect();
        let count = value.leaves.len();
        let outputs = ops::with(|ops| {
            let region = grad::value_and_grad(&region, count, &wrt)?;
            let arguments = [tensors, captures].concat();
            ops.inline(&region, &arguments)
        })?;
        let mut wrapped = wrap(py, outputs.into_iter())?.into_iter();
        let values: Leaves<'py> = wrapped.by_ref().take(count).collect();
        // The loss stands between the value and the gradients.
        let mut gradients = wrapped.skip(1);
        let mut parts = Vec::with_capacity(variables.len());
        for flat in &variables {
            parts.push(flat.tree.unflatten(py, &mut gradients)?);
        }
        let gradient = if self.single { parts.remove(0) } else { PyTuple::new(py, parts)?.into_any() };
        if !self.with_value {
            return Ok(gradient);
        }
        let value = value.tree.unflatten(py, &mut values.into_iter())?;
        Ok(PyTuple::new(py, [value, gradient])?.into_any())
    }

    fn positions(&self, fun: &Bound<'_, PyAny>, count: usize) -> Fallible<Vec<usize>> {
        let mut positions = Vec::with_capacity(self.argnums.len());
        for &argnum in &self.argnums {
            let extent = count as i64;
            if !(-extent..extent).contains(&argnum) {
                let given = argnum.to_string();
                return Err(Misuse::ArgNums { given, fun: function_name(fun), count }.into());
            }
            let position = argnum.rem_euclid(extent) as usize;
            if positions.contains(&position) {
                let (option, got) = ("argnums".to_owned(), format!("{:?}", self.argnums));
                let required = "a list that names each argument once".to_owned();
                return Err(Misuse::OptionValue { op: "grad", option, got, required }.into());
            }
            positions.push(position);
        }
        Ok(positions)
    }
}

/// The one tensor that is differentiated.
fn loss(value: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    if leaf_type("grad", value).is_ok() {
        return result_tensor("grad", value);
    }
    let what = match containers::flatten("grad", Mode::State, value) {
        Ok(flat) => flat.tree.text(value.py())?,
        Err(_) => format!("of type {}", value.get_type().name()?),
    };
    Err(Misuse::GradValue { what }.into())
}

/// A definition that gives the gradient of a function, and its value where that is asked for.
#[pyfunction]
#[pyo3(signature = (fun, argnums = None, transform = None, with_value = false))]
fn gradient(
    fun: &Bound<'_, PyAny>,
    argnums: Option<&Bound<'_, PyAny>>,
    transform: Option<Py<PyAny>>,
    with_value: bool,
) -> Fallible<Jitted> {
    guard(|| {
        let (argnums, single) = match argnums {
            None => (vec![0], true),
            Some(value) => match convert::index(value) {
                Some(argnum) => (vec![argnum], true),
                None => match value.extract::<Vec<i64>>() {
                    Ok(list) if !list.is_empty() => (list, false),
                    Ok(_) | Err(_) => {
                        return Err(convert::bad("grad", "argnums", value, "an int or a tuple of ints")?);
                    }
                },
            },
        };
        Jitted::gradient(fun, Gradient { argnums, single, transform, with_value })
    })
}

/// The gradient of a function of one argument at a container.
#[pyfunction]
#[pyo3(signature = (vars, fun, transform = None, with_value = false))]
fn gradient_at<'py>(
    vars: &Bound<'py, PyAny>,
    fun: &Bound<'py, PyAny>,
    transform: Option<Py<PyAny>>,
    with_value: bool,
) -> Fallible<Bound<'py, PyAny>> {
    let spec = Gradient { argnums: vec![0], single: true, transform, with_value };
    let definition = guard(|| Jitted::gradient(fun, spec))?;
    Ok(Bound::new(fun.py(), definition)?.call1((vars,))?)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(gradient, module)?)?;
    module.add_function(wrap_pyfunction!(gradient_at, module)?)
}
