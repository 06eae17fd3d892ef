//! Matrix products.

use defn_core::Tensor;
use defn_core::builder::{Arg, BuildLinalg};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Operands, functions, run, size_of_arg};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

functions! {
    matmul(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.matmul(a, b);
    outer(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.outer(a, b);
}

/// `dot(a, b)`, `dot(a, axes_a, b, axes_b)` or `dot(a, axes_a, batch_a, b, axes_b, batch_b)`.
#[pyfunction]
#[pyo3(signature = (*args))]
fn dot(args: &Bound<'_, PyTuple>) -> Fallible<PyTensor> {
    guard(|| {
        let operand = |at: usize| convert::arg("dot", &args.get_item(at)?);
        let axes = |at: usize| convert::axes("dot", Some(&args.get_item(at)?));
        let operands;
        let out = match args.len() {
            2 => {
                let (a, b) = (operand(0)?, operand(1)?);
                operands = Operands::sides(&a, &b);
                run(size_of_arg(&a) + size_of_arg(&b), |ops| ops.dot(a, b))
            }
            4 => {
                let (a, axes_a, b, axes_b) = (operand(0)?, axes(1)?, operand(2)?, axes(3)?);
                operands = Operands::sides(&a, &b);
                run(size_of_arg(&a) + size_of_arg(&b), |ops| ops.dot_axes(a, axes_a, b, axes_b))
            }
            6 => {
                let (a, axes_a, batch_a) = (operand(0)?, axes(1)?, axes(2)?);
                let (b, axes_b, batch_b) = (operand(3)?, axes(4)?, axes(5)?);
                operands = Operands::sides(&a, &b);
                run(size_of_arg(&a) + size_of_arg(&b), |ops| {
                    ops.dot_general(a, axes_a, batch_a, b, axes_b, batch_b)
                })
            }
            count => {
                let required =
                    "(a, b), (a, axes_a, b, axes_b) or (a, axes_a, batch_a, b, axes_b, batch_b) are required";
                let what = format!("{count} arguments");
                return Err(Misuse::Call { op: "dot".into(), what, required: required.into() }.into());
            }
        };
        out.map(PyTensor::new).map_err(|fault| operands.blame(fault))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(dot, module)?)
}
