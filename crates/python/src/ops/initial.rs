//! Initial values of what is learnt.

use defn_core::builder::Arg;
use defn_core::compose::nn::{self, Distribution, FanAxes, FanMode};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::parse::require;
use super::random::draws;
use super::{Parse, run};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The entry of a list that has a name.
fn parse_name<T: Copy>(
    (op, what): (&'static str, &'static str),
    value: OptionalArg<'_, '_>,
    known: &[T],
    name: impl Fn(T) -> &'static str,
    required: &str,
) -> Fallible<T> {
    let value = require(op, what, value, required)?;
    let given = value.cast::<PyString>().ok().map(|name| name.to_string());
    match known.iter().find(|&&known| given.as_deref() == Some(name(known))) {
        Some(&found) => Ok(found),
        None => Err(convert::bad(op, what, value, required)?),
    }
}

impl Parse for FanMode {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "\"fan_in\", \"fan_out\" or \"fan_avg\"";
        parse_name((op, what), value, FanMode::ALL, FanMode::name, required)
    }
}

impl Parse for Distribution {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "\"uniform\", \"normal\" or \"truncated_normal\"";
        parse_name((op, what), value, Distribution::ALL, Distribution::name, required)
    }
}

draws! {
    "variance_scaling": variance_scaling, variance_scaling_split(
        scale: f64, mode: FanMode, distribution: Distribution, in_axis: Axes, out_axis: Axes, batch_axes: Axes)
        |ops, key, sample| {
            let axes = FanAxes { input: in_axis, output: out_axis, batch: batch_axes };
            nn::variance_scaling(ops, "variance_scaling", key, scale, mode, distribution, &axes, sample)
        };
    "glorot": glorot, glorot_split(distribution: Distribution, in_axis: Axes, out_axis: Axes, batch_axes: Axes)
        |ops, key, sample| {
            let axes = FanAxes { input: in_axis, output: out_axis, batch: batch_axes };
            nn::glorot(ops, key, distribution, &axes, sample)
        };
    "he": he, he_split(distribution: Distribution, in_axis: Axes, out_axis: Axes, batch_axes: Axes)
        |ops, key, sample| {
            let axes = FanAxes { input: in_axis, output: out_axis, batch: batch_axes };
            nn::he(ops, key, distribution, &axes, sample)
        };
    "lecun": lecun, lecun_split(distribution: Distribution, in_axis: Axes, out_axis: Axes, batch_axes: Axes)
        |ops, key, sample| {
            let axes = FanAxes { input: in_axis, output: out_axis, batch: batch_axes };
            nn::lecun(ops, key, distribution, &axes, sample)
        };
    "orthogonal": orthogonal, orthogonal_split(scale: f64, axis: AxisRef)
        |ops, key, sample| nn::orthogonal(ops, key, scale, &axis, sample);
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_draws(module)
}
