//! Addresses of elements, for other languages in the same process.

use defn_core::{Shape, Tensor, TensorType};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::array::Memory;
use crate::backends;
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, guard, if_fits};
use crate::memory;
use crate::misuse::Misuse;
use crate::pjrt;
use crate::pybackend::{self, PythonBuffer};
use crate::tensor::PyTensor;
use crate::trace_allocations;

/// The address of a tensor's elements, their size in bytes, and the object that keeps them alive.
#[pyfunction]
fn to_pointer<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    mode: &Bound<'py, PyAny>,
) -> Fallible<(usize, usize, Bound<'py, PyAny>)> {
    guard(|| {
        let op = "to_pointer";
        check_mode(op, mode)?;
        let tensor = convert::tensor(op, tensor)?;
        let buffer = tensor.require_buffer(op, "return it from the definition, and use it there")?;
        if let Some(own) = buffer.as_any().downcast_ref::<PythonBuffer>() {
            let address = own.address(mode)?;
            let keeper = Bound::new(py, PyTensor::new(tensor.clone()))?;
            return Ok((address, tensor.whole().byte_size(), keeper.into_any()));
        }
        // Reading a device's elements would return the address of a copy.
        let memory = match buffer.host()? {
            Some(_) => tensor.host_bytes(op)?,
            None => {
                let device = buffer.backend().device_name();
                return Err(Misuse::NotOnHost { op, device }.into());
            }
        };
        let address = memory.bytes().as_ptr().expose_provenance();
        Ok((address, tensor.whole().byte_size(), Bound::new(py, Memory::new(memory))?.into_any()))
    })
}

/// A tensor of the elements at an address.
#[pyfunction]
#[pyo3(signature = (address, size, dtype, shape, names = None, backend = None))]
fn from_pointer(
    address: &Bound<'_, PyAny>,
    size: Option<&Bound<'_, PyAny>>,
    dtype: &Bound<'_, PyAny>,
    shape: &Bound<'_, PyAny>,
    names: Option<&Bound<'_, PyAny>>,
    backend: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    guard(|| {
        let op = "from_pointer";
        let backend = backends::parse(backend)?;
        let shape: Shape = convert::named(convert::shape(op, shape)?, op, names)?;
        let ty = TensorType::new(dtype::parse(dtype)?, shape)?;
        let len = ty.byte_size();
        let width = ty.dtype.storage_bytes();
        let component = if ty.dtype.is_complex() { width / 2 } else { width };
        let required = format!("an address that is not 0 and a multiple of {component}");
        let parsed = if_fits(address.py(), address.extract::<usize>())?;
        let Some(start) = parsed.filter(|&start| start != 0 && start % component == 0) else {
            return Err(convert::bad(op, "the address", address, &required)?);
        };
        if start.checked_add(len).is_none_or(|end| end > isize::MAX as usize) {
            return Err(convert::bad(op, "the address", address, &required)?);
        }
        if let Some(size) = size
            && !size.eq(len)?
        {
            let required = format!("{len}, the bytes of {ty}");
            return Err(convert::bad(op, "the data size", size, &required)?);
        }
        if let Some(own) = pybackend::to_object(address.py(), &*backend) {
            let tensor = pybackend::from_pointer(&own, address, &ty)?;
            return Ok(PyTensor::new(trace_allocations::note(tensor)));
        }
        let memory = memory::foreign(start, len);
        let buffer = match pjrt::borrow(&*backend, &ty, &memory) {
            Some(buffer) => buffer?,
            None => backend.from_host(&ty, memory)?,
        };
        Ok(PyTensor::new(trace_allocations::note(Tensor::concrete(ty, buffer))))
    })
}

/// Host memory is private to its process.
fn check_mode(op: &'static str, mode: &Bound<'_, PyAny>) -> Fallible<()> {
    let is_local = mode.cast::<PyString>().is_ok_and(|mode| mode == "local");
    if is_local {
        return Ok(());
    }
    let required = "\"local\": memory of the host belongs to its process; send others what serialize gives";
    Err(convert::bad(op, "mode", mode, required)?)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(to_pointer, module)?)?;
    module.add_function(wrap_pyfunction!(from_pointer, module)?)
}
