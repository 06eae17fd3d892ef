//! Types of Fourier transforms.

use crate::error::Result;
use crate::op::FftOp;
use crate::shape::{Axis, TensorType};

/// Complex, with the transform's length on its axis.
pub(super) fn fft(op: FftOp, x: &TensorType, axis: Axis, length: usize) -> Result<TensorType> {
    let mut shape = x.shape.clone();
    shape[axis] = length;
    match op {
        FftOp::Fft | FftOp::Ifft => TensorType::new(x.dtype.to_complex(), shape),
    }
}
