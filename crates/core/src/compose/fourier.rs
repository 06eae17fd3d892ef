//! Definitions of transforms by other transforms.

use crate::builder::{BuildElementwise, BuildShape, Builder};
use crate::error::Result;
use crate::op::{FftOp, Op, Tolerance};
use crate::shape::Axis;

fn transform<B: Builder>(
    b: &mut B,
    x: &B::V,
    op: FftOp,
    axis: Axis,
    length: usize,
    eps: f64,
) -> Result<B::V> {
    b.emit_one(Op::Fft { op, axis, length, eps: Tolerance(eps) }, std::slice::from_ref(x))
}

/// A transform along two axes.
///
/// # Errors
/// The errors of the definition's ops.
pub fn fft2<B: Builder>(
    b: &mut B,
    x: &B::V,
    op: FftOp,
    axes: [Axis; 2],
    lengths: [usize; 2],
    eps: f64,
) -> Result<B::V> {
    let along_second = transform(b, x, op, axes[1], lengths[1], eps)?;
    transform(b, &along_second, op, axes[0], lengths[0], eps)
}

/// The first half of the frequencies of real elements.
///
/// # Errors
/// The errors of the definition's ops.
pub fn rfft<B: Builder>(b: &mut B, x: &B::V, axis: Axis, length: usize, eps: f64) -> Result<B::V> {
    let all = transform(b, x, FftOp::Fft, axis, length, eps)?;
    // An axis without elements has no frequencies.
    let count = if length == 0 { 0 } else { length / 2 + 1 };
    b.slice_along_axis(all, 0, count as i64, axis, 1)
}

/// The real elements that have the given first half of frequencies.
///
/// # Errors
/// The errors of the definition's ops.
pub fn irfft<B: Builder>(b: &mut B, x: &B::V, axis: Axis, length: usize, eps: f64) -> Result<B::V> {
    let ty = b.ty(x);
    let (size, half_size) = (ty.shape[axis], length / 2 + 1);
    let half = if size > half_size {
        b.slice_along_axis(x, 0, half_size as i64, axis, 1)?
    } else if size < half_size {
        let mut config = vec![(0, 0, 0); ty.shape.rank()];
        config[axis.index()].1 = (half_size - size) as i64;
        b.pad(x, 0, &config)?
    } else {
        x.clone()
    };
    // The other frequencies are the conjugates of these, in descending order.
    let others = b.slice_along_axis(&half, 1.min(length as i64 / 2), (length - half_size) as i64, axis, 1)?;
    let others = b.conjugate(others)?;
    let others = b.reverse(others, axis)?;
    let all = b.concatenate(&[half, others], axis)?;
    let elements = transform(b, &all, FftOp::Ifft, axis, length, eps)?;
    let elements = b.real(elements)?;
    b.as_type(elements, ty.dtype.to_real())
}
