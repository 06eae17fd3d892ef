//! An op as a callback's call: a template of its result, then operands and attributes in the order of the
//! op's form, options by keyword, regions as functions.

use std::sync::Arc;

use defn_core::backend::Operand;
use defn_core::form::{self, Argument, Attr, Form};
use defn_core::op::Op;
use defn_core::{Number, Tensor, TensorType};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::PyBackend;
use super::functions::{BlockDefault, Function};
use crate::error::{Fallible, Fault};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// A callback with its arguments.
pub(super) struct Call<'py> {
    /// The callback's name.
    pub(super) name: &'static str,
    args: Bound<'py, PyTuple>,
    options: Bound<'py, PyDict>,
}

impl<'py> Call<'py> {
    /// The call for an op.
    pub(super) fn new(
        py: Python<'py>,
        backend: &Py<PyBackend>,
        op: &Op,
        operands: SmallVec<[Operand; 3]>,
        outputs: &[TensorType],
    ) -> Fallible<Call<'py>> {
        let out = match outputs {
            [ty] => template(py, ty)?,
            types => {
                let templates: Vec<_> = types.iter().map(|ty| template(py, ty)).collect::<PyResult<_>>()?;
                PyTuple::new(py, templates)?.into_any()
            }
        };
        let form = form::form(op);
        let tensors: Vec<Tensor> =
            operands.into_iter().map(|operand| Tensor::concrete(operand.ty, operand.buffer)).collect();
        let wrap = |tensor: &Tensor| -> PyResult<Bound<'py, PyAny>> {
            Ok(Bound::new(py, PyTensor::new(tensor.clone()))?.into_any())
        };
        if let Op::Block(block) = op {
            let tag = tag(py, &form)?;
            let operands = PyList::new(py, tensors.iter().map(wrap).collect::<PyResult<Vec<_>>>()?)?;
            let fun = Bound::new(py, BlockDefault::new(backend.clone_ref(py), block.clone()))?.into_any();
            let args = PyTuple::new(py, [tag, out, operands.into_any(), fun])?;
            return Ok(Call { name: "block", args, options: PyDict::new(py) });
        }
        let mut args = vec![out];
        let options = PyDict::new(py);
        let mut captures: &[Tensor] = &[];
        for argument in &form.arguments {
            match argument {
                Argument::Operand { index, .. } => args.push(wrap(&tensors[*index])?),
                Argument::Operands { name, start, count } => {
                    let end = count.map_or(tensors.len(), |count| start + count);
                    let list = &tensors[*start..end];
                    if *name == "captures" {
                        captures = list;
                    } else {
                        let list = list.iter().map(wrap).collect::<PyResult<Vec<_>>>()?;
                        args.push(PyList::new(py, list)?.into_any());
                    }
                }
                Argument::Attribute { value, .. } => args.push(attribute(py, value)?),
                Argument::Option { name, value } => options.set_item(name, option(py, name, value)?)?,
            }
        }
        for region in op.regions() {
            let function = Function::new(backend.clone_ref(py), Arc::clone(region), captures.to_vec())?;
            args.push(Bound::new(py, function)?.into_any());
        }
        Ok(Call { name: form.name, args: PyTuple::new(py, args)?, options })
    }

    /// Calls the callback of a backend.
    pub(super) fn apply(&self, backend: &Bound<'py, PyBackend>) -> Fallible<Bound<'py, PyAny>> {
        let py = backend.py();
        let Some(callback) = backend.getattr_opt(PyString::intern(py, self.name))? else {
            return Err(missing_callback(self.name, &backend.get().name));
        };
        Ok(callback.call(&self.args, Some(&self.options))?)
    }
}

/// The error for a callback that a backend lacks and that has no default.
fn missing_callback(callback: &str, backend: &str) -> Fault {
    Misuse::CallbackMissing { callback: callback.to_owned(), backend: backend.to_owned() }.into()
}

/// A type as the template that callbacks receive.
pub(crate) fn template<'py>(py: Python<'py>, ty: &TensorType) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, PyTensor::new(Tensor::template(ty.clone())))?.into_any())
}

/// The tag of a block.
pub(crate) fn tag<'py>(py: Python<'py>, form: &Form) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    for (name, value) in form.attributes() {
        fields.set_item(name, attribute(py, value)?)?;
    }
    py.import("defn.blocks")?.call_method1("tag", (form.name, fields))
}

/// An option as a Python object. The padding of a window has no interior padding.
pub(crate) fn option<'py>(py: Python<'py>, name: &str, value: &Attr) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Attr::Padding(sides) if name == "padding" => {
            let pairs: Vec<_> = sides.iter().map(|axis| (axis.low, axis.high)).collect();
            Ok(PyTuple::new(py, pairs)?.into_any())
        }
        Attr::Padding(_)
        | Attr::None
        | Attr::Bool(_)
        | Attr::Number(_)
        | Attr::Ints(_)
        | Attr::Text(_)
        | Attr::Bytes(_) => attribute(py, value),
    }
}

/// An attribute as a Python object.
pub(crate) fn attribute<'py>(py: Python<'py>, value: &Attr) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Attr::None => Ok(py.None().into_bound(py)),
        Attr::Bool(value) | Attr::Number(Number::Bool(value)) => value.into_bound_py_any(py),
        Attr::Number(Number::Int(value)) => value.into_bound_py_any(py),
        Attr::Number(Number::Huge(value) | Number::Float(value)) => value.into_bound_py_any(py),
        Attr::Number(Number::Complex(value)) => {
            Ok(PyComplex::from_doubles(py, value.re, value.im).into_any())
        }
        Attr::Ints(values) => Ok(PyTuple::new(py, values.iter().copied().collect::<Vec<_>>())?.into_any()),
        Attr::Padding(config) => {
            let entries = config.iter().map(|axis| (axis.low, axis.high, axis.interior));
            Ok(PyTuple::new(py, entries.collect::<Vec<_>>())?.into_any())
        }
        Attr::Text(text) => (&**text).into_bound_py_any(py),
        Attr::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
    }
}
