//! Sorting and ordering.

use defn_core::builder::{Arg, BuildOrder, Builder};
use defn_core::op::Direction;
use defn_core::{AxisRef, DType, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Parse, functions, with};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

impl Parse for Direction {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else {
            return Ok(Direction::Asc);
        };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        let found = Direction::ALL.iter().find(|known| name.as_deref() == Some(known.name()));
        match found {
            Some(&found) => Ok(found),
            None => Err(convert::bad(op, what, value, "\"asc\" or \"desc\"")?),
        }
    }
}

/// The `stable` option. It is checked and ignored: sorting is always stable.
struct Stable;

impl Parse for Stable {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let _: bool = Parse::parse(op, what, value)?;
        Ok(Stable)
    }
}

functions! {
    sort(tensor: Arg<Tensor>, axis: AxisRef, direction: Direction = None, stable: Stable = None) => |ops| {
        let Stable = stable;
        ops.sort(tensor, axis, direction)
    };
    argsort(tensor: Arg<Tensor>, axis: AxisRef, direction: Direction = None, stable: Stable = None,
            dtype: Option<DType> = None) => |ops| {
        let Stable = stable;
        ops.argsort(tensor, axis, direction, dtype)
    };
    lexsort(keys: Vec<Arg<Tensor>>, axis: AxisRef) => |ops| {
        let keys = keys.into_iter().map(|key| ops.operand(key)).collect::<Result<Vec<_>, _>>()?;
        ops.lexsort(&keys, axis)
    };
    partition(tensor: Arg<Tensor>, kth: Vec<i64>, axis: AxisRef) => |ops| ops.partition(tensor, &kth, axis);
    argpartition(tensor: Arg<Tensor>, kth: Vec<i64>, axis: AxisRef) => |ops| ops.argpartition(tensor, &kth, axis);
}

#[pyfunction]
fn top_k(tensor: &Bound<'_, PyAny>, k: &Bound<'_, PyAny>) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let x = convert::arg("top_k", tensor)?;
        let k: i64 = Parse::parse("top_k", "k", Some(k))?;
        let (values, indices) = with(|ops| ops.top_k(x, k))?;
        Ok((PyTensor::new(values), PyTensor::new(indices)))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(top_k, module)?)
}
