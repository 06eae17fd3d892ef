//! Vectorized axes: creating, moving and aligning them.

use defn_core::builder::{BuildElementwise, Size};
use defn_core::vectorize::{self, AxisRequest, Level, NamedAxes};
use defn_core::{Name, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{Parse, mapped};
use crate::control::{container, controlled, map_leaves, tensors};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::jit::result_tensor;
use crate::ops;
use crate::tensor::PyTensor;

/// The required form of vectorized axes, for messages.
const REQUIRED: &str = "a name, a list of names or of (name, size), or a dict of names and sizes";

/// Names, each with its size object if given.
fn entries<'py>(
    op: &'static str,
    value: &Bound<'py, PyAny>,
) -> Fallible<Vec<(Name, Option<Bound<'py, PyAny>>)>> {
    let name = |value: &Bound<'py, PyAny>| -> Option<Name> {
        let text = value.cast::<PyString>().ok()?;
        text.to_str().ok().map(Name::from)
    };
    if let Some(name) = name(value) {
        return Ok(vec![(name, None)]);
    }
    let refused = || convert::bad(op, "axes", value, REQUIRED);
    let mut found = Vec::new();
    if let Ok(dict) = value.cast::<PyDict>() {
        for (key, size) in dict.iter() {
            let Some(name) = name(&key) else { return Err(refused()?) };
            found.push((name, Some(size).filter(|size| !size.is_none())));
        }
        return Ok(found);
    }
    if value.is_instance_of::<PyTensor>() {
        return Err(refused()?);
    }
    let Some(items) = if_fits(value.py(), value.try_iter())? else { return Err(refused()?) };
    for item in items {
        let item = item?;
        if let Some(name) = name(&item) {
            found.push((name, None));
            continue;
        }
        let pair = item.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
        let Some(pair) = pair else { return Err(refused()?) };
        let Some(name) = name(&pair.get_item(0)?) else { return Err(refused()?) };
        found.push((name, Some(pair.get_item(1)?).filter(|size| !size.is_none())));
    }
    Ok(found)
}

fn size(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<usize> {
    match convert::index(value)?.map(usize::try_from) {
        Some(Ok(size)) => Ok(size),
        Some(Err(_)) | None => Err(convert::bad(op, "the size of an axis", value, "an int of at least 0")?),
    }
}

fn open_size(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Size> {
    let is_auto = value.cast::<PyString>().is_ok_and(|text| text.to_str().is_ok_and(|text| text == "auto"));
    match convert::index(value)? {
        _ if is_auto => Ok(Size::Auto),
        Some(size) => Ok(Size::from(size)),
        None => Err(convert::bad(op, "a size", value, "an int, or -1 or \"auto\" for what is left")?),
    }
}

/// Vectorized axes with their sizes; empty if left out.
pub(super) struct WantedLanes(pub(super) NamedAxes);

impl Parse for WantedLanes {
    fn parse(op: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(WantedLanes(NamedAxes::new())) };
        let mut lanes = NamedAxes::new();
        for (name, given) in entries(op, value)? {
            let Some(given) = given else {
                return Err(convert::bad(op, "vectorized_axes", value, "a dict of names and sizes")?);
            };
            lanes.push((name, size(op, &given)?));
        }
        Ok(WantedLanes(lanes))
    }
}

/// Turns leading axes into vectorized ones, leaf by leaf.
#[pyfunction]
#[pyo3(name = "vectorize")]
fn to_vectorized<'py>(value: &Bound<'py, PyAny>, axes: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyAny>> {
    let requests: Vec<AxisRequest> = guard(|| {
        entries("vectorize", axes)?
            .into_iter()
            .map(|(name, given)| Ok((name, given.map(|given| size("vectorize", &given)).transpose()?)))
            .collect()
    })?;
    map_leaves("vectorize", value, |ops, x| vectorize::vectorize(ops, &x, &requests))
}

/// Turns vectorized axes into leading ones, leaf by leaf.
#[pyfunction]
fn devectorize<'py>(value: &Bound<'py, PyAny>, keep_names: bool) -> Fallible<Bound<'py, PyAny>> {
    map_leaves("devectorize", value, |ops, x| vectorize::devectorize(ops, &x, keep_names))
}

/// Changes the vectorized axes and the shape, leaf by leaf.
#[pyfunction]
#[pyo3(signature = (value, target_axes, target_shape = None, target_names = None))]
fn revectorize<'py>(
    value: &Bound<'py, PyAny>,
    target_axes: &Bound<'py, PyAny>,
    target_shape: Option<&Bound<'py, PyAny>>,
    target_names: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    let op = "revectorize";
    let (axes, shape, names) = guard(|| {
        let mut axes = Vec::new();
        for (name, given) in entries(op, target_axes)? {
            let Some(given) = given else {
                return Err(convert::bad(op, "target_axes", target_axes, "a dict of names and sizes")?);
            };
            axes.push((name, open_size(op, &given)?));
        }
        let shape: Option<Vec<Size>> = match target_shape {
            None => None,
            Some(given) if convert::index(given)?.is_some() => Some(vec![open_size(op, given)?]),
            Some(given) => {
                Some(given.try_iter()?.map(|size| open_size(op, &size?)).collect::<Fallible<_>>()?)
            }
        };
        let names = target_names.map(|names| convert::names(op, names)).transpose()?;
        Ok((axes, shape, names))
    })?;
    map_leaves(op, value, |ops, x| vectorize::revectorize(ops, &x, &axes, shape.as_deref(), names.as_deref()))
}

/// Gives each leaf the vectorized axes of all leaves, with size 1 where it lacks them.
#[pyfunction]
fn reshape_vectors<'py>(values: &Bound<'py, PyAny>, align_ranks: bool) -> Fallible<Bound<'py, PyAny>> {
    together("reshape_vectors", values, |ops, x| vectorize::reshape_vectors(ops, x, align_ranks))
}

/// Gives each leaf the vectorized axes of all leaves, broadcast to their full sizes.
#[pyfunction]
fn broadcast_vectors<'py>(values: &Bound<'py, PyAny>, align_ranks: bool) -> Fallible<Bound<'py, PyAny>> {
    together("broadcast_vectors", values, |ops, x| vectorize::broadcast_vectors(ops, x, align_ranks))
}

fn together<'py>(
    op: &'static str,
    values: &Bound<'py, PyAny>,
    apply: impl FnOnce(&mut defn_core::builder::Ops, &[Tensor]) -> defn_core::Result<Vec<Tensor>>,
) -> Fallible<Bound<'py, PyAny>> {
    controlled(|| {
        let (leaves, tree) = tensors(op, values)?;
        let joined = ops::with(|ops| apply(ops, &leaves))?;
        container(values.py(), &tree, &joined)
    })
}

/// Applies a function of a scalar to each element of a tensor, by vectorizing the tensor along all its axes.
#[pyfunction]
#[pyo3(signature = (tensor, fun, dtype = None))]
fn map_elements(
    tensor: &Bound<'_, PyAny>,
    fun: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    controlled(|| {
        let x = convert::tensor("map", tensor)?;
        let dtype = dtype.map(crate::dtype::parse).transpose()?;
        let level = Level::enter();
        let name = level.axis_name("map", std::slice::from_ref(&x));
        let element = ops::with(|ops| vectorize::elements(ops, &x, &name))?;
        let given = fun.call1((Bound::new(fun.py(), PyTensor::new(element))?,))?;
        let result = result_tensor("map", &given)?;
        let mapped = ops::with(|ops| {
            let result = match dtype {
                Some(dtype) => ops.as_type(&result, dtype)?,
                None => result,
            };
            vectorize::from_elements(ops, &x, &name, &result)
        })?;
        Ok(PyTensor::new(mapped))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(to_vectorized, module)?)?;
    module.add_function(wrap_pyfunction!(devectorize, module)?)?;
    module.add_function(wrap_pyfunction!(revectorize, module)?)?;
    module.add_function(wrap_pyfunction!(reshape_vectors, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_vectors, module)?)?;
    module.add_function(wrap_pyfunction!(mapped::map_axes, module)?)?;
    module.add_function(wrap_pyfunction!(map_elements, module)?)
}
