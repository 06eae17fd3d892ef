//! Matrix products.

use defn_core::builder::{Arg, BuildLinalg, Builder, Contracted};
use defn_core::{Axes, AxisRef, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::{Operands, Parse, functions, run, size_of_arg};
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

functions! {
    cross(a: Arg<Tensor>, b: Arg<Tensor>, axis: AxisRef) => |ops| ops.cross(a, b, axis);
    inner(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.inner(a, b);
    kron(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.kron(a, b);
    matmul(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.matmul(a, b);
    outer(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.outer(a, b);
    tensordot(a: Arg<Tensor>, b: Arg<Tensor>, axes: Contracted) => |ops| ops.tensordot(a, b, axes);
    vdot(a: Arg<Tensor>, b: Arg<Tensor>) => |ops| ops.vdot(a, b);
    vecdot(a: Arg<Tensor>, b: Arg<Tensor>, axis: AxisRef) => |ops| ops.vecdot(a, b, axis);
}

impl Parse for Contracted {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let required = "an int, or a pair of axes of the one and of the other tensor";
        let Some(value) = value else {
            let (op, what, required) = (op.to_owned(), what.to_owned(), required.to_owned());
            return Err(Misuse::BadArgument { op, what, got: "None".to_owned(), required }.into());
        };
        if let Some(count) = convert::index(value)? {
            return Ok(Contracted::Last(count));
        }
        if value.is_instance_of::<PyString>() || value.is_instance_of::<PyTensor>() {
            return Err(convert::bad(op, what, value, required)?);
        }
        let Some(items) = if_fits(value.py(), value.try_iter())? else {
            return Err(convert::bad(op, what, value, required)?);
        };
        let mut pair = Vec::with_capacity(2);
        for item in items {
            pair.push(convert::axes(op, Some(&item?))?);
        }
        match <[Axes; 2]>::try_from(pair) {
            Ok([left, right]) => Ok(Contracted::Pairs(left, right)),
            Err(_) => Err(convert::bad(op, what, value, required)?),
        }
    }
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

/// `einsum(equation, *operands)`.
#[pyfunction]
#[pyo3(signature = (*args))]
fn einsum(args: &Bound<'_, PyTuple>) -> Fallible<PyTensor> {
    guard(|| {
        let required = "a str such as \"ij,jk->ik\"";
        let first = args.get_item(0)?;
        let Ok(equation) = first.cast::<PyString>() else {
            return Err(convert::bad("einsum", "the equation", &first, required)?);
        };
        let equation = equation.to_str()?.to_owned();
        let (mut operands, mut values, mut bytes) = (Operands::new(), Vec::new(), 0);
        for operand in args.iter().skip(1) {
            let operand = convert::arg("einsum", &operand)?;
            bytes += size_of_arg(&operand);
            values.push(operand);
        }
        Parse::note(&values, "operands", &mut operands);
        let result = run(bytes, |ops| {
            let values = ops.weak_all("einsum", values)?;
            ops.einsum(&equation, &values)
        });
        result.map(PyTensor::new).map_err(|fault| operands.blame(fault))
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(dot, module)?)?;
    module.add_function(wrap_pyfunction!(einsum, module)?)
}
