//! Positions in an ordered vector, counts and interpolation.

use defn_core::builder::{Arg, Bins, BuildReduce, BuildSearch, Builder, Side};
use defn_core::error::ErrorKind;
use defn_core::{Axes, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::arrange::several;
use super::{Operands, Parse, run, shared, with};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::read;
use crate::tensor::PyTensor;

impl Parse for Side {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(Side::Left) };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        match name.as_deref() {
            Some("left") => Ok(Side::Left),
            Some("right") => Ok(Side::Right),
            Some(_) | None => Err(convert::bad(op, what, value, "\"left\" or \"right\"")?),
        }
    }
}

defn_core::search_functions!(shared);

/// The number of bins for all elements of a vector of integers, which must have values.
fn length_of(x: &Arg<Tensor>, least: usize) -> Fallible<usize> {
    let x = with(|ops| ops.operand(x.clone()))?;
    let refused = |given: &str, required: &str| {
        let (given, required) = (given.to_owned(), required.to_owned());
        ErrorKind::OptionValue { op: "bincount", option: "length", given, required }
    };
    if x.is_traced() || x.is_vectorized() {
        let required = "the size of the result here: it depends on the values of the tensor, which a definition does \
            not know before it runs";
        return Err(defn_core::Error::from(refused("None", required)).into());
    }
    if x.ty().shape.size() == 0 || !x.ty().dtype.is_integer() {
        return Ok(least);
    }
    let (low, high) =
        with(|ops| Ok((ops.reduce_min(&x, Axes::All, false)?, ops.reduce_max(&x, Axes::All, false)?)))?;
    let (low, high) = (read::to_float(&low)?, read::to_float(&high)?);
    if low < 0.0 {
        let required = "given where elements are negative, which are then left out";
        return Err(defn_core::Error::from(refused("None", required)).into());
    }
    Ok(least.max(high as usize + 1))
}

/// The number of each integer, or the sum of its weights.
#[pyfunction]
fn bincount(
    tensor: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
    minlength: &Bound<'_, PyAny>,
    length: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    guard(|| {
        let op = "bincount";
        let x = convert::arg(op, tensor)?;
        let weights: Option<Arg<Tensor>> = Parse::parse(op, "weights", weights)?;
        let least: usize = Parse::parse(op, "minlength", Some(minlength))?;
        let length = match length {
            Some(length) => Parse::parse(op, "length", Some(length))?,
            None => length_of(&x, least)?,
        };
        let mut operands = Operands::new();
        operands.add_arg("tensor", &x);
        Parse::note(&weights, "weights", &mut operands);
        let bytes = Parse::bytes(&x) + Parse::bytes(&weights);
        let counts = run(bytes, move |ops| ops.bincount(x, weights, length));
        counts.map(PyTensor::new).map_err(|fault| operands.blame(fault))
    })
}

/// The number of elements in each bin, and the edges.
#[pyfunction]
fn histogram<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    bins: &Bound<'py, PyAny>,
    range: Option<&Bound<'py, PyAny>>,
    density: &Bound<'py, PyAny>,
    weights: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let op = "histogram";
        let x = convert::arg(op, tensor)?;
        let density: bool = Parse::parse(op, "density", Some(density))?;
        let range: Option<(f64, f64)> = match range {
            None => None,
            // A traced tensor has no floats to read.
            Some(range) if range.is_instance_of::<PyTensor>() => {
                return Err(convert::bad(op, "range", range, "two floats")?);
            }
            Some(range) => match if_fits(py, range.extract::<Vec<f64>>())?.as_deref() {
                Some(&[low, high]) => Some((low, high)),
                Some(_) | None => return Err(convert::bad(op, "range", range, "two floats")?),
            },
        };
        let weights: Option<Arg<Tensor>> = Parse::parse(op, "weights", weights)?;
        let count = convert::index(bins)?;
        let edges = match count {
            Some(_) => None,
            None => Some(convert::arg(op, bins)?),
        };
        let has_edges = edges.is_some();
        let operands: Vec<Arg<Tensor>> = std::iter::once(x).chain(edges).chain(weights).collect();
        several(py, &operands, |ops, operands| {
            let bins =
                if has_edges { Bins::Edges(operands[1].clone()) } else { Bins::Count(count.unwrap_or(0)) };
            let weights = operands.get(1 + usize::from(has_edges)).map(Arg::from);
            let (counts, edges) = ops.histogram(&operands[0], bins, range, density, weights)?;
            Ok(vec![counts, edges])
        })
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    module.add_function(wrap_pyfunction!(bincount, module)?)?;
    module.add_function(wrap_pyfunction!(histogram, module)?)
}
