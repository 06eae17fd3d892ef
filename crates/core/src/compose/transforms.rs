//! Fourier transforms of several axes, of real elements and with other scales, by transforms along one axis.

use crate::builder::fourier::real_operand;
use crate::builder::shape::axes_text;
use crate::builder::{Arg, BuildArrange, BuildCreate, BuildElementwise, Builder, FftLength, FftNorm};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::op::{Block, FftOp, Op, Tolerance};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisList, Name, Shape};

/// The direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To frequencies.
    Forward,
    /// From frequencies.
    Inverse,
}

impl Direction {
    /// The direction of an op.
    #[must_use]
    pub const fn of(op: FftOp) -> Direction {
        match op {
            FftOp::Fft => Direction::Forward,
            FftOp::Ifft => Direction::Inverse,
        }
    }

    const fn op(self) -> FftOp {
        match self {
            Direction::Forward => FftOp::Fft,
            Direction::Inverse => FftOp::Ifft,
        }
    }
}

impl FftNorm {
    /// The norm that has this one's factors on the other directions.
    const fn swapped(self) -> FftNorm {
        match self {
            FftNorm::Backward => FftNorm::Forward,
            FftNorm::Ortho => FftNorm::Ortho,
            FftNorm::Forward => FftNorm::Backward,
        }
    }

    /// The factor of a transform whose inverse is already divided by the number of elements.
    fn factor(self, direction: Direction, lengths: &[usize]) -> Option<f64> {
        let count: f64 = lengths.iter().map(|&length| length as f64).product();
        match (self, direction) {
            (FftNorm::Backward, _) => None,
            // A transform without elements has no factor.
            (FftNorm::Ortho | FftNorm::Forward, _) if count <= 1.0 => None,
            (FftNorm::Ortho, Direction::Forward) => Some(1.0 / count.sqrt()),
            (FftNorm::Ortho, Direction::Inverse) => Some(count.sqrt()),
            (FftNorm::Forward, Direction::Forward) => Some(1.0 / count),
            (FftNorm::Forward, Direction::Inverse) => Some(count),
        }
    }
}

/// A transform with the factor of its norm, of one that has the factor of [`FftNorm::Backward`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn scaled<B: Builder>(
    b: &mut B,
    x: B::V,
    direction: Direction,
    lengths: &[usize],
    norm: FftNorm,
) -> Result<B::V> {
    match norm.factor(direction, lengths) {
        Some(factor) => b.multiply(x, factor),
        None => Ok(x),
    }
}

/// See [`crate::builder::BuildFourier::rfft`]; the operand is real.
///
/// # Errors
/// The errors of the definition's ops.
pub fn rfft<B: Builder>(
    b: &mut B,
    x: &B::V,
    axis: Axis,
    length: usize,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let block = Block::Rfft { axis, length, eps: Tolerance(eps) };
    let transformed = b.emit_one(Op::Block(block), std::slice::from_ref(x))?;
    scaled(b, transformed, Direction::Forward, &[length], norm)
}

/// See [`crate::builder::BuildFourier::irfft`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn irfft<B: Builder>(
    b: &mut B,
    x: &B::V,
    axis: Axis,
    length: usize,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let block = Op::Block(Block::Irfft { axis, length, eps: Tolerance(eps) });
    let real = b.ty(x).dtype.to_real();
    let small = real.is_float() && real.bits() < 32;
    if small && norm.factor(Direction::Inverse, &[length]).is_some() {
        // Small floats are divided and multiplied in f32, so that they are rounded once.
        let wide = b.as_type(x, DType::F32)?;
        let transformed = b.emit_one(block, &[wide])?;
        let transformed = scaled(b, transformed, Direction::Inverse, &[length], norm)?;
        return b.as_type(transformed, real);
    }
    let transformed = b.emit_one(block, std::slice::from_ref(x))?;
    scaled(b, transformed, Direction::Inverse, &[length], norm)
}

/// The conjugate; real elements stay as they are.
fn conjugate<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.is_complex() { b.conjugate(x) } else { Ok(x.clone()) }
}

/// See [`crate::builder::BuildFourier::hfft`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn hfft<B: Builder>(
    b: &mut B,
    x: &B::V,
    axis: Axis,
    length: usize,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let conjugate = conjugate(b, x)?;
    irfft(b, &conjugate, axis, length, norm.swapped(), eps)
}

/// See [`crate::builder::BuildFourier::ihfft`]; the operand is real.
///
/// # Errors
/// The errors of the definition's ops.
pub fn ihfft<B: Builder>(
    b: &mut B,
    x: &B::V,
    axis: Axis,
    length: usize,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let half = rfft(b, x, axis, length, norm.swapped(), eps)?;
    b.conjugate(half)
}

/// The axes of a transform, and its length along each.
fn axes_and_lengths(
    op: &'static str,
    shape: &Shape,
    axes: &Axes,
    lengths: Option<&[FftLength]>,
) -> Result<(AxisList, Vec<FftLength>)> {
    let mut resolved = shape.resolve_all(op, axes)?;
    let Some(lengths) = lengths else {
        let lengths = vec![FftLength::Axis; resolved.len()];
        return Ok((resolved, lengths));
    };
    if *axes == Axes::All && lengths.len() < resolved.len() {
        // As in NumPy, lengths without axes are those of the last axes.
        resolved = resolved[resolved.len() - lengths.len()..].iter().copied().collect();
    }
    if lengths.len() != resolved.len() {
        let (option, given) = ("lengths", format!("a list of {}", lengths.len()));
        let required = format!("one length for each of the axes {}", axes_text(&resolved));
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    Ok((resolved, lengths.to_vec()))
}

/// Transforms along axes, the last one first: it is contiguous, and is where lengths are cut before the others.
fn along<B: Builder>(
    b: &mut B,
    direction: Direction,
    x: &B::V,
    axes: &[Axis],
    lengths: &[usize],
    eps: f64,
) -> Result<B::V> {
    let mut transformed = x.clone();
    for (&axis, &length) in axes.iter().zip(lengths).rev() {
        let op = Op::Fft { op: direction.op(), axis, length, eps: Tolerance(eps) };
        transformed = b.emit_one(op, &[transformed])?;
    }
    Ok(transformed)
}

/// The lengths along axes of a shape.
fn resolved(op: &'static str, shape: &Shape, axes: &[Axis], lengths: &[FftLength]) -> Result<Vec<usize>> {
    axes.iter().zip(lengths).map(|(&axis, length)| length.resolve(op, shape[axis])).collect()
}

/// See [`crate::builder::BuildFourier::fftn`] and [`crate::builder::BuildFourier::ifftn`].
///
/// # Errors
/// As the methods.
#[allow(clippy::too_many_arguments, reason = "they are those of the method, and which method it is")]
pub fn several<B: Builder>(
    b: &mut B,
    op: &'static str,
    direction: Direction,
    x: &B::V,
    axes: &Axes,
    lengths: Option<&[FftLength]>,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let got = b.ty(x);
    let (axes, lengths) = axes_and_lengths(op, &got.shape, axes, lengths)?;
    let lengths = resolved(op, &got.shape, &axes, &lengths)?;
    if axes.is_empty() {
        return b.as_type(x, got.dtype.to_complex());
    }
    let transformed = along(b, direction, x, &axes, &lengths, eps)?;
    scaled(b, transformed, direction, &lengths, norm)
}

/// An error if a transform of real elements has no axis.
fn require_axis(op: &'static str, shape: &Shape, axes: &[Axis]) -> Result<()> {
    if axes.is_empty() {
        let (given, shape, required) = (0, shape.clone(), "at least one is required");
        return Err(ErrorKind::AxesCount { op, given, shape, required }.into());
    }
    Ok(())
}

/// See [`crate::builder::BuildFourier::rfftn`].
///
/// # Errors
/// As the method.
pub fn real_several<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    axes: &Axes,
    lengths: Option<&[FftLength]>,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let got = real_operand(op, b.ty(x), "; transform along several axes with fftn")?;
    let (axes, lengths) = axes_and_lengths(op, &got.shape, axes, lengths)?;
    require_axis(op, &got.shape, &axes)?;
    let lengths = resolved(op, &got.shape, &axes, &lengths)?;
    let last = axes.len() - 1;
    let half = rfft(b, x, axes[last], lengths[last], FftNorm::Backward, eps)?;
    let transformed = along(b, Direction::Forward, &half, &axes[..last], &lengths[..last], eps)?;
    scaled(b, transformed, Direction::Forward, &lengths, norm)
}

/// See [`crate::builder::BuildFourier::irfftn`].
///
/// # Errors
/// As the method.
pub fn inverse_real_several<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    axes: &Axes,
    lengths: Option<&[FftLength]>,
    norm: FftNorm,
    eps: f64,
) -> Result<B::V> {
    let got = b.ty(x);
    let (axes, lengths) = axes_and_lengths(op, &got.shape, axes, lengths)?;
    require_axis(op, &got.shape, &axes)?;
    let last = axes.len() - 1;
    let mut sizes = resolved(op, &got.shape, &axes[..last], &lengths[..last])?;
    let length = lengths[last].of_reals(op, got.shape[axes[last]])?;
    let real = got.dtype.to_real();
    // Small floats are rounded once, at the end.
    let small = real.is_float() && real.bits() < 32;
    let x = if small { b.as_type(x, DType::F32)? } else { x.clone() };
    let half = along(b, Direction::Inverse, &x, &axes[..last], &sizes, eps)?;
    let transformed = irfft(b, &half, axes[last], length, FftNorm::Backward, eps)?;
    sizes.push(length);
    let transformed = scaled(b, transformed, Direction::Inverse, &sizes, norm)?;
    if small { b.as_type(transformed, real) } else { Ok(transformed) }
}

/// See [`crate::builder::BuildFourier::fftshift`] and [`crate::builder::BuildFourier::ifftshift`].
///
/// # Errors
/// As the methods.
pub fn shift<B: Builder>(
    b: &mut B,
    op: &'static str,
    direction: Direction,
    x: &B::V,
    axes: &Axes,
) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let axes = shape.resolve_all(op, axes)?;
    if axes.is_empty() {
        return Ok(x.clone());
    }
    let distances: Vec<i64> = axes
        .iter()
        .map(|&axis| {
            let half = shape[axis] as i64 / 2;
            match direction {
                Direction::Forward => half,
                Direction::Inverse => -half,
            }
        })
        .collect();
    b.roll(x, &distances, axes)
}

/// See [`crate::builder::BuildFourier::fftfreq`] and [`crate::builder::BuildFourier::rfftfreq`].
///
/// # Errors
/// As the methods.
pub fn frequencies<B: Builder>(
    b: &mut B,
    op: &'static str,
    n: i64,
    d: Arg<B::V>,
    name: Option<Name>,
    dtype: DType,
) -> Result<B::V> {
    let Some(size) = usize::try_from(n).ok().filter(|&size| size >= 1) else {
        let (option, given, required) = ("n", n.to_string(), "an integer of at least 1".to_owned());
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    };
    if !dtype.is_float() {
        let (option, given, required) = ("dtype", dtype.to_string(), "a real float dtype".to_owned());
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    let mut working = working_dtype(dtype);
    let span = match d {
        Arg::Value(value) => {
            let got = real_operand(op, b.ty(&value), "")?;
            if got.shape.rank() != 0 {
                return Err(ErrorKind::NotScalar { op, what: "d", got }.into());
            }
            working = working.merge(got.dtype);
            let value = b.as_type(value, working)?;
            b.multiply(value, n as f64)?
        }
        Arg::Number(Number::Complex(number)) => {
            let given = format!("{}{:+}j", number.re, number.im);
            let (option, required) = ("d", "a real number".to_owned());
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        Arg::Number(number) => b.constant(working, number.to_f64() * n as f64)?,
    };
    let count = if op == "rfftfreq" { size / 2 + 1 } else { size };
    let shape = Shape::from_axes([(count, name)]);
    let mut position = b.iota(shape, index_dtype(size + 1), None)?;
    if op != "rfftfreq" {
        let positive = b.less(&position, Number::from(size.div_ceil(2)))?;
        let negative = b.subtract(&position, Number::from(size))?;
        position = b.select(positive, position, negative)?;
    }
    let position = b.as_type(position, working)?;
    let values = b.divide(position, span)?;
    b.as_type(values, dtype)
}
