//! Rolls, repeats, pieces and grids.

use defn_core::builder::{Arg, BuildArrange, Builder, Indexing, Ops, Sections};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::parse::require;
use super::{Operands, Parse, functions, run};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::tensor::PyTensor;

/// A list of integers, or one of them; `None` if the object is neither.
fn integers(value: &Bound<'_, PyAny>) -> Fallible<Option<Vec<i64>>> {
    if let Some(number) = convert::index(value)? {
        return Ok(Some(vec![number]));
    }
    if value.is_instance_of::<PyTensor>() || value.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let Some(items) = if_fits(value.py(), value.try_iter())? else { return Ok(None) };
    let mut list = Vec::new();
    for item in items {
        match convert::index(&item?)? {
            Some(number) => list.push(number),
            None => return Ok(None),
        }
    }
    Ok(Some(list))
}

const INTEGERS: &str = "an int or a sequence of ints";

/// One integer, or several.
struct Shifts(Vec<i64>);

impl Parse for Shifts {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let value = require(op, what, value, INTEGERS)?;
        match integers(value)? {
            Some(list) => Ok(Shifts(list)),
            None => Err(convert::bad(op, what, value, INTEGERS)?),
        }
    }
}

/// How often each element is repeated.
struct Repeats(Vec<i64>);

impl Parse for Repeats {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let value = require(op, what, value, INTEGERS)?;
        match integers(value)? {
            Some(list) => Ok(Repeats(list)),
            None if value.is_instance_of::<PyTensor>() => {
                let required = "an int or a sequence of ints; its values decide the size of the result, which is \
                    fixed before the run";
                Err(convert::bad(op, what, value, required)?)
            }
            None => Err(convert::bad(op, what, value, INTEGERS)?),
        }
    }
}

/// The number of parts, or the positions of the cuts.
struct Cuts(Sections);

impl Parse for Cuts {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let value = require(op, what, value, INTEGERS)?;
        if let Some(count) = convert::index(value)? {
            return Ok(Cuts(Sections::Count(count)));
        }
        match integers(value)? {
            Some(cuts) => Ok(Cuts(Sections::At(cuts))),
            None => Err(convert::bad(op, what, value, INTEGERS)?),
        }
    }
}

impl Parse for Indexing {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(Indexing::Xy) };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        match name.as_deref() {
            Some("xy") => Ok(Indexing::Xy),
            Some("ij") => Ok(Indexing::Ij),
            Some(_) | None => Err(convert::bad(op, what, value, "\"xy\" or \"ij\"")?),
        }
    }
}

functions! {
    roll(tensor: Arg<Tensor>, shift: Shifts, axis: Axes = None) => |ops| ops.roll(tensor, &shift.0, axis);
    repeat(tensor: Arg<Tensor>, repeats: Repeats, axis: Option<AxisRef> = None)
        => |ops| ops.repeat(tensor, &repeats.0, axis);
    column_stack(tensors: Vec<Arg<Tensor>>) => |ops| {
        let tensors = ops.weak_all("column_stack", tensors)?;
        ops.column_stack(&tensors)
    };
    dstack(tensors: Vec<Arg<Tensor>>) => |ops| {
        let tensors = ops.weak_all("dstack", tensors)?;
        ops.dstack(&tensors)
    };
}

/// The tensors of a function with several results.
pub(super) fn several<'py>(
    py: Python<'py>,
    operands: &[Arg<Tensor>],
    body: impl FnOnce(&mut Ops, Vec<Tensor>) -> defn_core::Result<Vec<Tensor>> + Send,
) -> Fallible<Bound<'py, PyTuple>> {
    let mut noted = Operands::new();
    let bytes = operands.iter().map(super::size_of_arg).sum();
    for operand in operands {
        if let Arg::Value(tensor) = operand {
            noted.add(None, tensor);
        }
    }
    let results = run(bytes, |ops| {
        let tensors =
            operands.iter().map(|operand| ops.operand(operand.clone())).collect::<Result<_, _>>()?;
        body(ops, tensors)
    });
    let results = results.map_err(|fault| noted.blame(fault))?;
    Ok(PyTuple::new(py, results.into_iter().map(PyTensor::new))?)
}

/// The parts of a tensor along an axis.
#[pyfunction]
fn unstack<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let x = convert::arg("unstack", tensor)?;
        let axis = convert::axis("unstack", axis)?;
        several(py, &[x], |ops, x| ops.unstack(&x[0], axis))
    })
}

/// The parts of a tensor between cuts.
#[pyfunction]
fn array_split<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    sections_or_indices: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let x = convert::arg("array_split", tensor)?;
        let cuts: Cuts = Parse::parse("array_split", "sections_or_indices", Some(sections_or_indices))?;
        let axis = convert::axis("array_split", axis)?;
        several(py, &[x], |ops, x| ops.array_split(&x[0], cuts.0, axis))
    })
}

/// The operands of a function that takes any number of them.
fn operands_of(op: &'static str, tensors: &Bound<'_, PyTuple>) -> Fallible<Vec<Arg<Tensor>>> {
    tensors.iter().map(|tensor| convert::arg(op, &tensor)).collect()
}

/// Tensors broadcast to one shape.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn broadcast_arrays<'py>(py: Python<'py>, tensors: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let operands = operands_of("broadcast_arrays", tensors)?;
        several(py, &operands, |ops, tensors| ops.broadcast_arrays(&tensors))
    })
}

/// The grid of several vectors; the last argument is the indexing.
#[pyfunction]
#[pyo3(signature = (*args))]
fn meshgrid<'py>(py: Python<'py>, args: &Bound<'py, PyTuple>) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let last = args.len().saturating_sub(1);
        let indexing: Indexing = Parse::parse("meshgrid", "indexing", Some(&args.get_item(last)?))?;
        let operands = operands_of("meshgrid", &args.get_slice(0, last))?;
        several(py, &operands, |ops, tensors| ops.meshgrid(&tensors, indexing))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(unstack, module)?)?;
    module.add_function(wrap_pyfunction!(array_split, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_arrays, module)?)?;
    module.add_function(wrap_pyfunction!(meshgrid, module)?)
}
