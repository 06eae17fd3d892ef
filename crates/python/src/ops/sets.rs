//! Positions of elements, and tensors as sets.

use defn_core::Tensor;
use defn_core::builder::{Arg, BuildSets, UniqueOutputs};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arrange::several;
use super::{Parse, functions};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

/// The size of a result, or `None` if the values decide it.
struct Size(Option<i64>);

impl Parse for Size {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(Size(None)) };
        match convert::index(value)? {
            Some(size) => Ok(Size(Some(size))),
            None => Err(convert::bad(op, what, value, "an int or None")?),
        }
    }
}

functions! {
    flatnonzero(tensor: Arg<Tensor>, size: Size = None, fill_value: i64 = None)
        => |ops| ops.flatnonzero(tensor, size.0, fill_value);
    argwhere(tensor: Arg<Tensor>, size: Size = None, fill_value: i64 = None)
        => |ops| ops.argwhere(tensor, size.0, fill_value);
    isin(element: Arg<Tensor>, test_elements: Arg<Tensor>, invert: bool)
        => |ops| ops.isin(element, test_elements, invert);
    setdiff1d(a: Arg<Tensor>, b: Arg<Tensor>, size: Size = None, fill_value: Option<Arg<Tensor>> = None)
        => |ops| ops.setdiff1d(a, b, size.0, fill_value);
    intersect1d(a: Arg<Tensor>, b: Arg<Tensor>, size: Size = None, fill_value: Option<Arg<Tensor>> = None)
        => |ops| ops.intersect1d(a, b, size.0, fill_value);
    union1d(a: Arg<Tensor>, b: Arg<Tensor>, size: Size = None, fill_value: Option<Arg<Tensor>> = None)
        => |ops| ops.union1d(a, b, size.0, fill_value);
    unique_values(tensor: Arg<Tensor>, size: Size = None, fill_value: Option<Arg<Tensor>> = None)
        => |ops| {
            let found = ops.unique_as(
                "unique_values", tensor, UniqueOutputs::default(), false, size.0, fill_value,
            );
            found.map(|found| found.values)
        };
}

/// The positions of the elements that are not 0, a vector for each axis.
#[pyfunction]
#[pyo3(signature = (tensor, size, fill_value))]
fn nonzero<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    size: Option<&Bound<'py, PyAny>>,
    fill_value: &Bound<'py, PyAny>,
) -> Fallible<Bound<'py, PyTuple>> {
    guard(|| {
        let x = convert::arg("nonzero", tensor)?;
        let Size(size) = Parse::parse("nonzero", "size", size)?;
        let fill: i64 = Parse::parse("nonzero", "fill_value", Some(fill_value))?;
        several(py, &[x], |ops, x| ops.nonzero(&x[0], size, fill))
    })
}

/// The distinct elements, and what is asked for besides.
fn uniques<'py>(
    py: Python<'py>,
    op: &'static str,
    tensor: &Bound<'py, PyAny>,
    (outputs, equal_nan): (UniqueOutputs, bool),
    size: Option<&Bound<'py, PyAny>>,
    fill_value: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyTuple>> {
    let x = convert::arg(op, tensor)?;
    let Size(size) = Parse::parse(op, "size", size)?;
    let fill: Option<Arg<Tensor>> = Parse::parse(op, "fill_value", fill_value)?;
    several(py, &[x], |ops, x| Ok(ops.unique_as(op, &x[0], outputs, equal_nan, size, fill)?.into_vec()))
}

/// The distinct elements: a tensor, or a tuple with what is asked for besides.
#[allow(clippy::too_many_arguments, reason = "they are those of the public function")]
#[pyfunction]
#[pyo3(signature = (tensor, return_index, return_inverse, return_counts, equal_nan, size, fill_value))]
fn unique<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    return_index: &Bound<'py, PyAny>,
    return_inverse: &Bound<'py, PyAny>,
    return_counts: &Bound<'py, PyAny>,
    equal_nan: &Bound<'py, PyAny>,
    size: Option<&Bound<'py, PyAny>>,
    fill_value: Option<&Bound<'py, PyAny>>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let flag = |what, value| bool::parse("unique", what, Some(value));
        let outputs = UniqueOutputs {
            indices: flag("return_index", return_index)?,
            inverse: flag("return_inverse", return_inverse)?,
            counts: flag("return_counts", return_counts)?,
        };
        let equal_nan = flag("equal_nan", equal_nan)?;
        let found = uniques(py, "unique", tensor, (outputs, equal_nan), size, fill_value)?;
        if outputs == UniqueOutputs::default() { Ok(found.get_item(0)?) } else { Ok(found.into_any()) }
    })
}

/// Declares the functions of the standard, in which each NaN is distinct.
macro_rules! standard {
    ($($name:ident: $outputs:expr;)*) => {
        $(
            /// The distinct elements, with what the standard's function of this name gives besides.
            #[pyfunction]
            #[pyo3(signature = (tensor, size, fill_value))]
            fn $name<'py>(
                py: Python<'py>,
                tensor: &Bound<'py, PyAny>,
                size: Option<&Bound<'py, PyAny>>,
                fill_value: Option<&Bound<'py, PyAny>>,
            ) -> Fallible<Bound<'py, PyTuple>> {
                guard(|| {
                    uniques(py, stringify!($name), tensor, ($outputs, false), size, fill_value)
                })
            }
        )*
    };
}

standard! {
    unique_all: UniqueOutputs::ALL;
    unique_counts: UniqueOutputs { counts: true, ..UniqueOutputs::default() };
    unique_inverse: UniqueOutputs { inverse: true, ..UniqueOutputs::default() };
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(nonzero, module)?)?;
    module.add_function(wrap_pyfunction!(unique, module)?)?;
    module.add_function(wrap_pyfunction!(unique_all, module)?)?;
    module.add_function(wrap_pyfunction!(unique_counts, module)?)?;
    module.add_function(wrap_pyfunction!(unique_inverse, module)?)
}
