//! Integrals, slopes, convolutions and polynomials.

use defn_core::builder::{Arg, BuildSequence, Overlap};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::arrange::several;
use super::{Parse, functions, shared};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

impl Parse for Overlap {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let Some(value) = value else { return Ok(Overlap::Full) };
        let name = value.cast::<PyString>().ok().map(|name| name.to_string());
        match name.as_deref() {
            Some("full") => Ok(Overlap::Full),
            Some("same") => Ok(Overlap::Same),
            Some("valid") => Ok(Overlap::Valid),
            Some(_) | None => Err(convert::bad(op, what, value, "\"full\", \"same\" or \"valid\"")?),
        }
    }
}

defn_core::sequence_functions!(shared);

functions! {
    trapezoid(tensor: Arg<Tensor>, x: Option<Arg<Tensor>>, dx: f64, axis: AxisRef)
        => |ops| ops.trapezoid(tensor, x, dx, axis);
}

/// The slopes along axes, `dn.gradient`; the last two arguments are the axes and the order at the edges. The extension's
/// `gradient` is that of functions.
#[pyfunction]
#[pyo3(signature = (tensor, *args))]
fn slopes<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
) -> Fallible<Bound<'py, PyAny>> {
    guard(|| {
        let op = "gradient";
        let count = args.len().saturating_sub(2);
        let axes = args.get_item(count)?;
        let axes: Axes = Parse::parse(op, "axes", (!axes.is_none()).then_some(&axes))?;
        let edge_order: i64 = Parse::parse(op, "edge_order", Some(&args.get_item(count + 1)?))?;
        let spacing: Vec<Arg<Tensor>> =
            args.get_slice(0, count).iter().map(|one| convert::arg(op, &one)).collect::<Fallible<_>>()?;
        let x = convert::arg(op, tensor)?;
        let values: Vec<Arg<Tensor>> = spacing.iter().filter(|one| one.number().is_none()).cloned().collect();
        let operands: Vec<Arg<Tensor>> = std::iter::once(x).chain(values).collect();
        let slopes = several(py, &operands, |ops, operands| {
            let mut values = operands[1..].iter();
            let spacing: Vec<Arg<Tensor>> = spacing
                .iter()
                .map(|one| match one.number() {
                    Some(number) => Arg::Number(number),
                    None => values.next().map_or_else(|| one.clone(), Arg::from),
                })
                .collect();
            ops.gradient(&operands[0], &spacing, axes, edge_order)
        })?;
        if slopes.len() == 1 { Ok(slopes.get_item(0)?) } else { Ok(slopes.into_any()) }
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_shared(module)?;
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(slopes, module)?)
}
