//! Cells of recurrent networks, and their parameters.

use defn_core::builder::{Arg, Builder, Ops};
use defn_core::compose::nn::{self, Weights};
use defn_core::compose::random;
use defn_core::{DType, Tensor};
use pyo3::prelude::*;

use super::{Operands, Parse, run};
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The operands of a cell: the inputs, the states, and what is learnt.
struct Parsed {
    op: &'static str,
    bytes: usize,
    notes: Operands,
}

impl Parsed {
    fn operand(&mut self, name: &'static str, value: OptionalArg<'_, '_>) -> Fallible<Arg<Tensor>> {
        let operand: Arg<Tensor> = Parse::parse(self.op, name, value)?;
        self.bytes += Parse::bytes(&operand);
        Parse::note(&operand, name, &mut self.notes);
        Ok(operand)
    }

    fn optional(&mut self, name: &'static str, value: OptionalArg<'_, '_>) -> Fallible<Option<Arg<Tensor>>> {
        value.map(|value| self.operand(name, Some(value))).transpose()
    }
}

fn optional(ops: &mut Ops, value: Option<Arg<Tensor>>) -> defn_core::Result<Option<Tensor>> {
    value.map(|value| ops.operand(value)).transpose()
}

/// The next output and the next state of the cells.
#[pyfunction]
#[pyo3(name = "lstm_step", signature = (x, hidden, cell, kernel, recurrent_kernel, bias = None))]
fn lstm_cell(
    x: OptionalArg<'_, '_>,
    hidden: OptionalArg<'_, '_>,
    cell: OptionalArg<'_, '_>,
    kernel: OptionalArg<'_, '_>,
    recurrent_kernel: OptionalArg<'_, '_>,
    bias: OptionalArg<'_, '_>,
) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let mut parsed = Parsed { op: "lstm_cell", bytes: 0, notes: Operands::new() };
        let x = parsed.operand("x", x)?;
        let (hidden, cell) = (parsed.operand("hidden", hidden)?, parsed.operand("cell", cell)?);
        let kernel = parsed.operand("kernel", kernel)?;
        let recurrent_kernel = parsed.operand("recurrent_kernel", recurrent_kernel)?;
        let bias = parsed.optional("bias", bias)?;
        let results = run(parsed.bytes, move |ops| {
            let (x, hidden, cell) = (ops.operand(x)?, ops.operand(hidden)?, ops.operand(cell)?);
            let (kernel, recurrent_kernel) = (ops.operand(kernel)?, ops.operand(recurrent_kernel)?);
            let bias = optional(ops, bias)?;
            let weights = Weights {
                kernel: &kernel,
                recurrent_kernel: &recurrent_kernel,
                bias: bias.as_ref(),
                recurrent_bias: None,
            };
            nn::lstm_cell(ops, &x, [&hidden, &cell], &weights)
        });
        let [hidden, cell] = results.map_err(|fault| parsed.notes.blame(fault))?;
        Ok((PyTensor::new(hidden), PyTensor::new(cell)))
    })
}

/// The next output.
#[pyfunction]
#[pyo3(signature = (x, hidden, kernel, recurrent_kernel, bias = None, recurrent_bias = None))]
fn gru_cell(
    x: OptionalArg<'_, '_>,
    hidden: OptionalArg<'_, '_>,
    kernel: OptionalArg<'_, '_>,
    recurrent_kernel: OptionalArg<'_, '_>,
    bias: OptionalArg<'_, '_>,
    recurrent_bias: OptionalArg<'_, '_>,
) -> Fallible<PyTensor> {
    guard(|| {
        let mut parsed = Parsed { op: "gru_cell", bytes: 0, notes: Operands::new() };
        let (x, hidden) = (parsed.operand("x", x)?, parsed.operand("hidden", hidden)?);
        let kernel = parsed.operand("kernel", kernel)?;
        let recurrent_kernel = parsed.operand("recurrent_kernel", recurrent_kernel)?;
        let bias = parsed.optional("bias", bias)?;
        let recurrent_bias = parsed.optional("recurrent_bias", recurrent_bias)?;
        let result = run(parsed.bytes, move |ops| {
            let (x, hidden) = (ops.operand(x)?, ops.operand(hidden)?);
            let (kernel, recurrent_kernel) = (ops.operand(kernel)?, ops.operand(recurrent_kernel)?);
            let (bias, recurrent_bias) = (optional(ops, bias)?, optional(ops, recurrent_bias)?);
            let weights = Weights {
                kernel: &kernel,
                recurrent_kernel: &recurrent_kernel,
                bias: bias.as_ref(),
                recurrent_bias: recurrent_bias.as_ref(),
            };
            nn::gru_cell(ops, &x, &hidden, &weights)
        });
        result.map(PyTensor::new).map_err(|fault| parsed.notes.blame(fault))
    })
}

/// Declares both forms of functions that draw parameters.
macro_rules! parameters {
    ($($op:literal $name:ident as $drawn:literal, $split:ident as $drawn_split:literal;)*) => {
        $(
            /// The parameters and the next key.
            #[pyfunction]
            #[pyo3(name = $drawn)]
            fn $name(
                key: OptionalArg<'_, '_>,
                inputs: OptionalArg<'_, '_>,
                units: OptionalArg<'_, '_>,
                dtype: OptionalArg<'_, '_>,
            ) -> Fallible<[PyTensor; 4]> {
                guard(|| {
                    let key: Arg<Tensor> = Parse::parse($op, "the key", key)?;
                    let inputs: usize = Parse::parse($op, "inputs", inputs)?;
                    let units: usize = Parse::parse($op, "units", units)?;
                    let dtype: DType = Parse::parse($op, "the dtype", dtype)?;
                    let results = run(inputs.saturating_add(units).saturating_mul(units), move |ops| {
                        let key = ops.operand(key)?;
                        let (used, next) = random::fresh(ops, $op, &key)?;
                        let [kernel, recurrent, bias] = nn::$name(ops, &used, inputs, units, dtype)?;
                        Ok([kernel, recurrent, bias, next])
                    })?;
                    Ok(results.map(PyTensor::new))
                })
            }

            /// The parameters.
            #[pyfunction]
            #[pyo3(name = $drawn_split)]
            fn $split(
                key: OptionalArg<'_, '_>,
                inputs: OptionalArg<'_, '_>,
                units: OptionalArg<'_, '_>,
                dtype: OptionalArg<'_, '_>,
            ) -> Fallible<[PyTensor; 3]> {
                guard(|| {
                    let key: Arg<Tensor> = Parse::parse($op, "the key", key)?;
                    let inputs: usize = Parse::parse($op, "inputs", inputs)?;
                    let units: usize = Parse::parse($op, "units", units)?;
                    let dtype: DType = Parse::parse($op, "the dtype", dtype)?;
                    let results = run(inputs.saturating_add(units).saturating_mul(units), move |ops| {
                        let key = ops.operand(key)?;
                        nn::$name(ops, &key, inputs, units, dtype)
                    })?;
                    Ok(results.map(PyTensor::new))
                })
            }
        )*

        pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(
                module.add_function(wrap_pyfunction!($name, module)?)?;
                module.add_function(wrap_pyfunction!($split, module)?)?;
            )*
            module.add_function(wrap_pyfunction!(lstm_cell, module)?)?;
            module.add_function(wrap_pyfunction!(gru_cell, module)?)
        }
    };
}

parameters! {
    "lstm_parameters" lstm_parameters as "lstm_values", lstm_parameters_split as "lstm_values_split";
    "gru_parameters" gru_parameters as "gru_values", gru_parameters_split as "gru_values_split";
}
