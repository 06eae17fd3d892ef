//! The batches of a tensor along its first axis.

use defn_core::{ErrorKind, Shape, TensorType, batches};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::convert;
use crate::error::{Fallible, guard};
use crate::jit::wrap;
use crate::ops;
use crate::pybackend::PythonBuffer;
use crate::tensor::PyTensor;

const OP: &str = "to_batched";

/// The number of batches.
#[pyfunction]
fn batch_count(
    tensor: &Bound<'_, PyTensor>,
    batch_size: &Bound<'_, PyAny>,
    leftover: &Bound<'_, PyAny>,
) -> Fallible<usize> {
    guard(|| {
        let tensor = &tensor.get().tensor;
        let size = match convert::index(batch_size)?.map(usize::try_from) {
            Some(Ok(size)) if size > 0 => size,
            _ => return Err(convert::bad(OP, "the batch size", batch_size, "an int that is at least 1")?),
        };
        let required = "\"repeat\" or \"discard\"";
        let Ok(leftover) = leftover.cast::<PyString>() else {
            return Err(convert::bad(OP, "leftover", leftover, required)?);
        };
        let is_filled = match leftover.to_str()? {
            "repeat" => true,
            "discard" => false,
            _ => return Err(convert::bad(OP, "leftover", leftover, required)?),
        };
        Ok(batches::count(tensor, size, is_filled)?)
    })
}

/// One batch. The last batch is completed with rows from the beginning.
#[pyfunction]
fn batch(tensor: &Bound<'_, PyTensor>, size: usize, position: usize) -> Fallible<PyTensor> {
    guard(|| {
        let tensor = &tensor.get().tensor;
        Ok(PyTensor::new(ops::with(|ops| batches::batch(ops, tensor, size, position))?))
    })
}

/// All batches in one call, if the tensor's backend has its own implementation.
#[pyfunction]
fn own_batches<'py>(
    tensor: &Bound<'py, PyTensor>,
    size: usize,
    leftover: &str,
) -> Fallible<Option<Bound<'py, PyList>>> {
    guard(|| {
        let (py, tensor) = (tensor.py(), &tensor.get().tensor);
        let own = tensor.buffer().and_then(|buffer| buffer.as_any().downcast_ref::<PythonBuffer>());
        let Some(own) = own.filter(|_| !tensor.is_vectorized()) else { return Ok(None) };
        let shape = &tensor.ty().shape;
        let first = shape.entries().take(1).map(|(_, name)| (size, name));
        let ty = TensorType::new(tensor.ty().dtype, Shape::from_axes(first.chain(shape.entries().skip(1))))?;
        match own.batches(&ty, leftover) {
            Some(batches) => Ok(Some(PyList::new(py, wrap(py, batches?.into_iter())?)?)),
            None => Ok(None),
        }
    })
}

/// Rejects tensors that cannot be drawn.
#[pyfunction]
fn check_heatmap(tensor: &Bound<'_, PyTensor>) -> Fallible<()> {
    guard(|| {
        let (op, tensor) = ("to_heatmap", &tensor.get().tensor);
        tensor.require_buffer(op, "return it from the definition, and draw it there")?;
        let got = tensor.whole().clone();
        if tensor.ty().dtype.is_complex() {
            let (required, hint) = ("real", "; take abs, real or imag first");
            return Err(ErrorKind::OperandDType { op, got, required, hint }.into());
        }
        if tensor.ty().shape.rank() == 0 {
            return Err(ErrorKind::Rank { op, got, required: "it must have at least one axis" }.into());
        }
        Ok(())
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(batch_count, module)?)?;
    module.add_function(wrap_pyfunction!(batch, module)?)?;
    module.add_function(wrap_pyfunction!(own_batches, module)?)?;
    module.add_function(wrap_pyfunction!(check_heatmap, module)?)
}
