//! Folds with user functions, which are called once, while they are traced.

use defn_core::builder::{self, Arg, FoldFunction, Ops, PerAxis, WindowOptions, WindowPadding};
use defn_core::{Axes, DType, Tensor};
use pyo3::prelude::*;

use super::Parse;
use crate::control::{FaultCarrier, controlled};
use crate::convert;
use crate::error::Fallible;
use crate::jit::wrap;
use crate::tensor::PyTensor;

/// Calls `body` with the user's function in the form that the core takes. An exception of the user's function
/// passes through.
fn with_function(
    op: &'static str,
    fun: &Bound<'_, PyAny>,
    body: impl FnOnce(&mut Ops, FoldFunction<'_>) -> defn_core::Result<Tensor>,
) -> Fallible<PyTensor> {
    if !fun.is_callable() {
        return Err(convert::bad(op, "fun", fun, "a function of an element and the accumulator")?);
    }
    let bridge = FaultCarrier::default();
    let call = |element: &Tensor, acc: &Tensor| {
        bridge.run_user_function(|| {
            let mut scalars = wrap(fun.py(), [element.clone(), acc.clone()].into_iter())?.into_iter();
            let result = match (scalars.next(), scalars.next()) {
                (Some(element), Some(acc)) => fun.call1((element, acc))?,
                (_, _) => unreachable!("two tensors were wrapped"),
            };
            convert::arg(op, &result)
        })
    };
    let function: FoldFunction<'_> =
        Box::new(|_: &mut Ops, element: &Tensor, acc: &Tensor| call(element, acc));
    let result = body(&mut super::builder()?, function);
    bridge.into_result(result).map(PyTensor::new)
}

/// Folds elements over axes.
#[pyfunction]
fn reduce(
    tensor: &Bound<'_, PyAny>,
    acc: &Bound<'_, PyAny>,
    fun: &Bound<'_, PyAny>,
    axes: Option<&Bound<'_, PyAny>>,
    keep_axes: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    controlled(|| {
        let x: Arg<Tensor> = Parse::parse("reduce", "tensor", Some(tensor))?;
        let acc: Arg<Tensor> = Parse::parse("reduce", "acc", Some(acc))?;
        let axes: Axes = Parse::parse("reduce", "axes", axes)?;
        let keep_axes: bool = Parse::parse("reduce", "keep_axes", keep_axes)?;
        let dtype: Option<DType> = Parse::parse("reduce", "dtype", dtype)?;
        with_function("reduce", fun, |ops, fun| builder::reduce(ops, x, acc, &axes, keep_axes, dtype, fun))
    })
}

/// Folds the elements at each position of a window.
#[pyfunction]
fn window_reduce(
    tensor: &Bound<'_, PyAny>,
    acc: &Bound<'_, PyAny>,
    window: &Bound<'_, PyAny>,
    fun: &Bound<'_, PyAny>,
    strides: Option<&Bound<'_, PyAny>>,
    padding: Option<&Bound<'_, PyAny>>,
    window_dilations: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    controlled(|| {
        let op = "window_reduce";
        let x: Arg<Tensor> = Parse::parse(op, "tensor", Some(tensor))?;
        let acc: Arg<Tensor> = Parse::parse(op, "acc", Some(acc))?;
        let window: Vec<i64> = Parse::parse(op, "window", Some(window))?;
        let strides: PerAxis = Parse::parse(op, "strides", strides)?;
        let padding: WindowPadding = Parse::parse(op, "padding", padding)?;
        let dilations: PerAxis = Parse::parse(op, "window_dilations", window_dilations)?;
        let options = WindowOptions { strides, padding, dilations };
        with_function(op, fun, |ops, fun| builder::window_reduce(ops, x, acc, &window, &options, fun))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(reduce, module)?)?;
    module.add_function(wrap_pyfunction!(window_reduce, module)?)
}
