//! Tensors as bytes: NumPy's files, safetensors, and a format of our own that keeps everything.
//!
//! Parsers take memory and give [`Array`]s that lie in it where they can. Nothing that a file says is believed
//! before it is compared with the bytes that are there, so that no file leads to more memory being asked for
//! than it holds; compressed archives take a limit besides. Reading and writing files is the caller's.

mod cursor;
mod json;
pub mod native;
pub mod npy;
pub mod npz;
pub mod packed;
pub mod safetensors;

use crate::backend::HostMemory;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::TensorType;
use crate::tensor::{Tensor, VectorizedAxes};

/// The elements of a tensor that is not placed yet: in row-major order and native byte order, a byte for each
/// 2- or 4-bit element.
#[derive(Clone, Debug)]
pub struct Array {
    /// Dtype, sizes and names; vectorized axes lead, without their names.
    pub ty: TensorType,
    /// The vectorized axes.
    pub vectorized: VectorizedAxes,
    /// The elements, and nothing else.
    pub memory: HostMemory,
}

impl Array {
    /// An array without vectorized axes.
    pub fn new(ty: TensorType, memory: HostMemory) -> Array {
        Array { ty, vectorized: VectorizedAxes::from([]), memory }
    }

    /// The elements of a tensor, which is not copied where it is on the host.
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
}

/// An error about what a file is.
#[cold]
fn malformed(op: &'static str, problem: impl Into<String>, required: impl Into<String>) -> Error {
    ErrorKind::Malformed { op, problem: problem.into(), required: required.into() }.into()
}

/// Reverses the bytes of each number, in place; complex numbers are two.
fn swap_bytes(dtype: DType, bytes: &mut [u8]) {
    let width = dtype.storage_bytes();
    let part = if dtype.is_complex() { width / 2 } else { width };
    if part > 1 {
        bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
}
