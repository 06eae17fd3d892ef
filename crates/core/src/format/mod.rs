//! Tensors as bytes: NumPy's files, safetensors, and our own format, which keeps all properties of a tensor.
//!
//! Parsers take memory and return [`Array`]s that are views of it where possible. Every size in a file is
//! compared with the number of bytes present, so that no file can request more memory than its own size;
//! compressed archives also have a limit. The caller reads and writes the files.

mod cursor;
mod json;
pub mod native;
pub mod npy;
pub mod npz;
pub mod packed;
pub mod safetensors;

use std::sync::Arc;

use crate::backend::{Backend, HostMemory};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::TensorType;
use crate::tensor::{Tensor, VectorizedAxes};

/// The elements of a tensor that is not on a backend yet: row-major, in native byte order, one byte for each
/// 2- or 4-bit element.
#[derive(Clone, Debug)]
pub struct Array {
    /// Dtype, sizes and names; vectorized axes come first, without names.
    pub ty: TensorType,
    /// The vectorized axes.
    pub vectorized: VectorizedAxes,
    /// The bytes of the elements, exactly.
    pub memory: HostMemory,
}

impl Array {
    /// An array without vectorized axes.
    pub fn new(ty: TensorType, memory: HostMemory) -> Array {
        Array { ty, vectorized: VectorizedAxes::from([]), memory }
    }

    /// The elements of a tensor, without a copy where it is on the host.
    ///
    /// # Errors
    /// A traced tensor, a template, or elements that were freed.
    pub fn of(op: &'static str, tensor: &Tensor) -> Result<Array> {
        let memory = tensor.host_bytes(op)?;
        let ty = tensor.whole().clone();
        let len = ty.byte_size();
        let memory = if memory.bytes().len() == len { memory } else { memory.part(0..len) };
        Ok(Array { ty, vectorized: tensor.vectorized_axes().into(), memory })
    }

    /// The tensor of these elements on a backend.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn on(self, backend: &Arc<dyn Backend>) -> Result<Tensor> {
        let buffer = backend.from_host(&self.ty, self.memory)?;
        Ok(Tensor::concrete(self.ty, buffer).with_vectorized(&self.vectorized))
    }
}

/// An error about the contents of a file.
#[cold]
fn malformed(op: &'static str, problem: impl Into<String>, required: impl Into<String>) -> Error {
    ErrorKind::Malformed { op, problem: problem.into(), required: required.into() }.into()
}

/// The dtype of the numbers that make up an element: the parts of a complex number, else the element itself.
pub fn part_of(dtype: DType) -> DType {
    if dtype.is_complex() { dtype.to_real() } else { dtype }
}

/// Reverses the bytes of each number in place; a complex number has two.
pub fn swap_bytes(dtype: DType, bytes: &mut [u8]) {
    let part = part_of(dtype).storage_bytes();
    if part > 1 {
        bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
}
