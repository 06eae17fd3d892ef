//! Definitions of transforms by others.

use crate::builder::Builder;
use crate::error::Result;
use crate::op::FftOp;
use crate::shape::Axis;

/// A transform along two axes.
///
/// # Errors
/// What the ops of the definition have against the operands.
pub fn fft2<B: Builder>(
    b: &mut B,
    x: &B::V,
    op: FftOp,
    axes: [Axis; 2],
    lengths: [usize; 2],
    eps: f64,
) -> Result<B::V> {
    let _ = (b, x, op, axes, lengths, eps);
    todo!()
}

/// The first half of the frequencies of real elements.
///
/// # Errors
/// What the ops of the definition have against the operands.
pub fn rfft<B: Builder>(b: &mut B, x: &B::V, axis: Axis, length: usize, eps: f64) -> Result<B::V> {
    let _ = (b, x, axis, length, eps);
    todo!()
}

/// Real elements from the first half of their frequencies.
///
/// # Errors
/// What the ops of the definition have against the operands.
pub fn irfft<B: Builder>(b: &mut B, x: &B::V, axis: Axis, length: usize, eps: f64) -> Result<B::V> {
    let _ = (b, x, axis, length, eps);
    todo!()
}
