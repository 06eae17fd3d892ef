//! The arguments of a run and the results of host functions, for compilers whose programs run on one backend.

use std::sync::Arc;

use crate::backend::{Backend, Buffer, Buffers, check_arguments};
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::op::Op;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::TensorType;
use crate::tensor::Tensor;

/// The buffers of a run's `used` arguments, all of which must be on `backend`.
///
/// # Errors
/// As [`check_arguments`], tensors without elements, and tensors on another backend.
pub fn argument_buffers(
    program: &Region,
    used: impl Fn(usize) -> bool,
    backend: &Arc<dyn Backend>,
    arguments: Vec<Tensor>,
) -> Result<Vec<Option<Arc<dyn Buffer>>>> {
    check_arguments("run", program.inputs(), arguments.iter())?;
    let mut buffers = Vec::with_capacity(arguments.len());
    for (position, argument) in arguments.into_iter().enumerate() {
        if !used(position) {
            buffers.push(None);
            continue;
        }
        let buffer = argument.require_buffer("run", "return it from the definition, and pass it then")?;
        let owner = buffer.backend();
        if !is_on_backend(backend, &owner) {
            let (left, right) = (backend.device_name(), owner.device_name());
            return Err(ErrorKind::BackendConflict { op: "run", left, right }.into());
        }
        buffers.push(argument.into_buffer());
    }
    Ok(buffers)
}

/// The buffers of a host function's results for an op with these outputs, copied to the program's backend.
///
/// # Errors
/// A wrong number of tensors, one of another type or without elements, and memory.
pub fn adopt(
    op: &Op,
    results: Vec<Tensor>,
    outputs: &[TensorType],
    backend: &Arc<dyn Backend>,
) -> Result<Buffers> {
    let name = form::name(op);
    if results.len() != outputs.len() {
        let (got, expected) = (results.len(), outputs.len());
        return Err(ErrorKind::RegionResults { op: name, what: "function", got, expected }.into());
    }
    let mut buffers = Buffers::new();
    for (index, (result, expected)) in results.into_iter().zip(outputs).enumerate() {
        if !expected.is_compatible(result.whole()) {
            let (got, expected) = (result.whole().clone(), expected.clone());
            return Err(ErrorKind::CallResult { op: name, index, got, expected }.into());
        }
        let buffer = result.require_buffer(name, "a host function computes with values")?;
        buffers.push(if is_on_backend(backend, &buffer.backend()) {
            buffer.clone()
        } else {
            backend.from_host(expected, result.host_bytes(name)?)?
        });
    }
    Ok(buffers)
}

fn is_on_backend(backend: &Arc<dyn Backend>, owner: &Arc<dyn Backend>) -> bool {
    Arc::ptr_eq(owner, backend) || owner.is_same_device(&**backend)
}

/// Buffers as tensors, for host functions.
pub fn tensors_of(types: &[TensorType], buffers: &[Arc<dyn Buffer>]) -> Vec<Tensor> {
    let pairs = types.iter().zip(buffers);
    pairs.map(|(ty, buffer)| Tensor::concrete(ty.clone(), buffer.clone())).collect()
}

/// Reads a scalar predicate: zero is false; every other value, including NaN, is true.
///
/// # Errors
/// Those of reading the buffer.
pub fn is_true(ty: &TensorType, buffer: &dyn Buffer) -> Result<bool> {
    let mut bytes = [0; 16];
    let bytes = &mut bytes[..ty.dtype.storage_bytes()];
    buffer.read(bytes)?;
    Ok(Scalar::from_bytes(ty.dtype, bytes).value().is_true())
}
