//! Sums, slopes and products of sampled functions and polynomials.

use super::{accumulation_dtype, working_dtype};
use crate::builder::{
    Arg, BuildCreate, BuildElementwise, BuildFourier, BuildMatrix, BuildReduce, BuildShape, BuildWindow,
    Builder, Composite, ConvOptions, FFT_EPS, FftLength, FftNorm, Overlap, WindowPadding,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::{require_number, require_real};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisRef, Shape, TensorType};

/// The dtype in which elements of a dtype are computed: integers exactly.
fn exact_dtype(dtype: DType) -> DType {
    if dtype.is_inexact() { working_dtype(dtype) } else { DType::F64 }
}

/// A vector along an axis of a shape, with axes of size 1 for the others.
fn along<B: Builder>(b: &mut B, x: &B::V, axis: Axis, rank: usize) -> Result<B::V> {
    let size = b.ty(x).shape.size();
    let mut sizes = vec![1; rank];
    sizes[axis.index()] = size;
    b.reshape_to(x, Shape::new(&sizes))
}

/// See [`BuildSequence::trapezoid`](crate::builder::BuildSequence::trapezoid).
///
/// # Errors
/// As the method.
pub fn trapezoid<B: Builder>(b: &mut B, y: &B::V, x: Option<&B::V>, dx: f64, axis: &AxisRef) -> Result<B::V> {
    let got = b.ty(y);
    let axis = got.shape.resolve("trapezoid", axis)?;
    let size = got.shape[axis];
    let mut dtype = got.dtype;
    let positions = match x {
        None => None,
        Some(x) => {
            let right = b.ty(x);
            dtype = dtype.merge(right.dtype);
            let plain = right.shape.without_names();
            let x = b.reshape_to(x, plain)?;
            // Differences of integers are exact, those of floats are as exact as the heights.
            let place = if right.dtype.is_complex() {
                dtype
            } else if right.dtype.is_float() {
                dtype.to_real()
            } else {
                right.dtype
            };
            let x = b.as_type(x, exact_dtype(place))?;
            match right.shape.sizes() {
                &[length] if length == size => Some(along(b, &x, axis, got.shape.rank())?),
                sizes if sizes == got.shape.sizes() => Some(x),
                _ => {
                    return Err(ErrorKind::ShapesDiffer { op: "trapezoid", left: got, right }.into());
                }
            }
        }
    };
    let out = dtype.to_float();
    let y = b.reshape_to(y, got.shape.without_names())?;
    let y = b.as_type(y, exact_dtype(dtype))?;
    let result = got.shape.reduced(&[axis], false);
    if size < 2 {
        return b.full(result, out, 0);
    }
    let rest = size as i64 - 1;
    let (later, earlier) =
        (b.slice_along_axis(&y, 1, rest, axis, 1)?, b.slice_along_axis(&y, 0, rest, axis, 1)?);
    let heights = b.add(later, earlier)?;
    let heights = b.multiply(heights, 0.5)?;
    let areas = match positions {
        Some(x) => {
            let widths = b.diff(x, 1, axis)?;
            b.multiply(heights, widths)?
        }
        None => b.multiply(heights, dx)?,
    };
    let sum = b.sum(areas, axis, false)?;
    let sum = b.as_type(sum, out)?;
    b.reshape_to(sum, result)
}

/// See [`BuildSequence::gradient`](crate::builder::BuildSequence::gradient).
///
/// # Errors
/// As the method.
pub fn gradient<B: Builder>(
    b: &mut B,
    x: &B::V,
    spacing: &[Arg<B::V>],
    axes: &Axes,
    edge_order: i64,
) -> Result<Vec<B::V>> {
    let op = "gradient";
    let got = b.ty(x);
    let axes = got.shape.resolve_all(op, axes)?;
    if !(1..=2).contains(&edge_order) {
        let (option, given, required) = ("edge_order", edge_order.to_string(), "1 or 2".to_owned());
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    if spacing.len() > 1 && spacing.len() != axes.len() {
        let (option, given) = ("spacing", format!("{} distances", spacing.len()));
        let required = format!("one distance, or one for each of the {} axes", axes.len());
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    let mut slopes = Vec::with_capacity(axes.len());
    for (at, &axis) in axes.iter().enumerate() {
        if (got.shape[axis] as i64) <= edge_order {
            let (option, given) = ("edge_order", edge_order.to_string());
            let required = format!("below the size of axis {} of {got}", axis.index());
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        let distance = match spacing {
            [] => Arg::Number(Number::Float(1.0)),
            [one] => one.clone(),
            several => several[at].clone(),
        };
        let options = [axis.index() as u64, edge_order.cast_unsigned()];
        slopes.push(match distance {
            Arg::Number(number) => {
                let function = Composite::new(op, &[options[0], options[1], number.to_f64().to_bits()]);
                b.composite(function, [x.clone()], &|b, [x]| {
                    slopes_of(b, x, axis, number.into(), edge_order)
                })?
            }
            Arg::Value(distance) => {
                b.composite(Composite::new(op, &options), [x.clone(), distance], &|b, [x, distance]| {
                    slopes_of(b, x, axis, distance.into(), edge_order)
                })?
            }
        });
    }
    Ok(slopes)
}

/// The slopes along one axis, with the names of the operand.
fn slopes_of<B: Builder>(
    b: &mut B,
    x: &B::V,
    axis: Axis,
    distance: Arg<B::V>,
    edge_order: i64,
) -> Result<B::V> {
    let got = b.ty(x);
    let values = b.reshape_to(x, got.shape.without_names())?;
    let values = b.as_type(values, exact_dtype(got.dtype))?;
    let slope = slope(b, &values, &got, axis, distance, edge_order)?;
    let slope = b.as_type(slope, got.dtype.to_float())?;
    b.reshape_to(slope, got.shape.clone())
}

/// The slopes along one axis: central differences, one-sided ones at both ends (Fornberg, Generation of Finite
/// Difference Formulas on Arbitrarily Spaced Grids, 1988).
fn slope<B: Builder>(
    b: &mut B,
    x: &B::V,
    got: &TensorType,
    axis: Axis,
    distance: Arg<B::V>,
    edge_order: i64,
) -> Result<B::V> {
    let size = got.shape[axis] as i64;
    let working = b.ty(x).dtype;
    let distance = match distance {
        Arg::Number(number) => b.constant(working.to_real(), number.to_f64())?,
        Arg::Value(value) => b.operand(value)?,
    };
    let given = b.ty(&distance);
    require_real("gradient", &given)?;
    let distance = b.reshape_to(distance, given.shape.without_names())?;
    let distance = b.as_type(distance, exact_dtype(given.dtype).merge(working.to_real()))?;
    // The distances of neighbours, along the axis; one number where they are equal.
    let widths = match given.shape.sizes() {
        [] => None,
        &[length] if length as i64 == size => {
            let positions = along(b, &distance, axis, got.shape.rank())?;
            Some(b.diff(positions, 1, axis)?)
        }
        _ => {
            let required =
                "the distance must be a scalar, or a vector with the position of each element on the axis";
            return Err(ErrorKind::Rank { op: "gradient", got: given, required }.into());
        }
    };
    let part = |b: &mut B, x: &B::V, start: i64, length: i64| b.slice_along_axis(x, start, length, axis, 1);
    let width = |b: &mut B, at: i64| match &widths {
        Some(widths) => b.slice_along_axis(widths, at, 1, axis, 1),
        None => Ok(distance.clone()),
    };
    let step = |b: &mut B, at: i64| {
        let (later, earlier) = (part(b, x, at + 1, 1)?, part(b, x, at, 1)?);
        let rise = b.subtract(later, earlier)?;
        let width = width(b, at)?;
        b.divide(rise, width)
    };
    let (mut first, mut last) = (step(b, 0)?, step(b, size - 2)?);
    if edge_order == 2 {
        // The slope between the first two elements, less half their distance times the curvature.
        let corrected = |b: &mut B, edge: &B::V, [near, far]: [i64; 2]| {
            let next = step(b, far)?;
            let change = b.subtract(edge, next)?;
            let (near, far) = (width(b, near)?, width(b, far)?);
            let sum = b.add(&near, far)?;
            let share = b.divide(near, sum)?;
            let change = b.multiply(change, share)?;
            b.add(edge, change)
        };
        (first, last) = (corrected(b, &first, [0, 1])?, corrected(b, &last, [size - 2, size - 3])?);
    }
    if size == 2 {
        return b.concatenate(&[first, last], axis);
    }
    let inner = match &widths {
        None => {
            let (later, earlier) = (part(b, x, 2, size - 2)?, part(b, x, 0, size - 2)?);
            let rise = b.subtract(later, earlier)?;
            let run = b.multiply(distance, 2)?;
            b.divide(rise, run)?
        }
        Some(widths) => {
            let (before, after) = (part(b, widths, 0, size - 2)?, part(b, widths, 1, size - 2)?);
            let rises = b.diff(x, 1, axis)?;
            let slopes = b.divide(rises, widths)?;
            let (left, right) = (part(b, &slopes, 0, size - 2)?, part(b, &slopes, 1, size - 2)?);
            let sum = b.add(&before, &after)?;
            let (left, right) = (b.multiply(left, after)?, b.multiply(right, before)?);
            let weighted = b.add(left, right)?;
            b.divide(weighted, sum)?
        }
    };
    b.concatenate(&[first, inner, last], axis)
}

/// From this length of both operands on, floats are convolved by their transforms.
const BY_TRANSFORM: usize = 512;

/// See [`BuildSequence::convolve`](crate::builder::BuildSequence::convolve).
///
/// # Errors
/// As the method.
pub fn convolve<B: Builder>(b: &mut B, x: &B::V, y: &B::V, overlap: Overlap) -> Result<B::V> {
    let (x, y) = vectors(b, "convolve", x, y)?;
    let (long, short) = if b.ty(&y).shape.size() > b.ty(&x).shape.size() { (y, x) } else { (x, y) };
    let reversed = b.reverse(short, 0)?;
    products(b, &long, &reversed, overlap)
}

/// See [`BuildSequence::correlate`](crate::builder::BuildSequence::correlate).
///
/// # Errors
/// As the method.
pub fn correlate<B: Builder>(b: &mut B, x: &B::V, y: &B::V, overlap: Overlap) -> Result<B::V> {
    let (x, mut y) = vectors(b, "correlate", x, y)?;
    if b.ty(&y).dtype.is_complex() {
        y = b.conjugate(y)?;
    }
    if b.ty(&y).shape.size() <= b.ty(&x).shape.size() {
        return products(b, &x, &y, overlap);
    }
    let swapped = products(b, &y, &x, overlap)?;
    b.reverse(swapped, 0)
}

/// Two vectors with elements, in their merged dtype and without names.
fn vectors<B: Builder>(b: &mut B, op: &'static str, x: &B::V, y: &B::V) -> Result<(B::V, B::V)> {
    let (left, right) = (b.ty(x), b.ty(y));
    for got in [&left, &right] {
        require_number(op, got, got.dtype)?;
        let required = match got.shape.sizes() {
            [0] => "a vector with elements is required",
            [_] => continue,
            _ => "a vector is required",
        };
        return Err(ErrorKind::Rank { op, got: got.clone(), required }.into());
    }
    let dtype = left.dtype.merge(right.dtype);
    let plain = |b: &mut B, x: &B::V, size: usize| {
        let x = b.reshape_to(x, Shape::new(&[size]))?;
        b.as_type(x, dtype)
    };
    Ok((plain(b, x, left.shape.size())?, plain(b, y, right.shape.size())?))
}

/// The sums of products of a vector with a shorter one at all its positions, as far as both overlap.
fn products<B: Builder>(b: &mut B, long: &B::V, short: &B::V, overlap: Overlap) -> Result<B::V> {
    let dtype = b.ty(long).dtype;
    let (size, width) = (b.ty(long).shape.size(), b.ty(short).shape.size());
    let (before, after) = match overlap {
        Overlap::Full => (width - 1, width - 1),
        Overlap::Same => (width / 2, width - 1 - width / 2),
        Overlap::Valid => (0, 0),
    };
    if dtype.is_inexact() && width >= BY_TRANSFORM {
        let whole = (size + width - 1) as i64;
        let (reversed, norm) = (b.reverse(short, 0)?, FftNorm::default());
        let found = if dtype.is_complex() {
            let length = FftLength::Explicit((whole as u64).next_power_of_two() as i64);
            let (left, right) =
                (b.fft(long, 0, length, norm, FFT_EPS)?, b.fft(reversed, 0, length, norm, FFT_EPS)?);
            let product = b.multiply(left, right)?;
            b.ifft(product, 0, FftLength::Axis, norm, FFT_EPS)?
        } else {
            let working = working_dtype(dtype);
            let length = FftLength::Explicit((whole as u64).next_power_of_two() as i64);
            let (left, right) = (b.as_type(long, working)?, b.as_type(reversed, working)?);
            let (left, right) =
                (b.rfft(left, 0, length, norm, FFT_EPS)?, b.rfft(right, 0, length, norm, FFT_EPS)?);
            let product = b.multiply(left, right)?;
            b.irfft(product, 0, length, norm, FFT_EPS)?
        };
        let count = (size + before + after + 1 - width) as i64;
        let found = b.slice_along_axis(found, (width - 1 - before) as i64, count, 0, 1)?;
        return b.as_type(found, dtype);
    }
    // A convolution of integers is one of floats. In f64 it is exact up to 2^53.
    let working = if dtype.is_integer() { DType::F64 } else { dtype };
    let (input, kernel) = (b.as_type(long, working)?, b.as_type(short, working)?);
    let input = b.reshape_to(input, Shape::new(&[1, 1, size]))?;
    let kernel = b.reshape_to(kernel, Shape::new(&[1, 1, width]))?;
    let padding = WindowPadding::Each(vec![(before as i64, after as i64)]);
    let options = ConvOptions { padding, ..ConvOptions::default() };
    let sums = b.conv(input, kernel, &options)?;
    // Converted at once, sums would saturate instead of wrapping.
    let sums = if dtype.is_integer() { b.as_type(sums, DType::S64)? } else { sums };
    let sums = b.as_type(sums, dtype)?;
    b.flatten(sums, Axes::All)
}

/// See [`BuildSequence::polyval`](crate::builder::BuildSequence::polyval).
///
/// # Errors
/// As the method.
pub fn polyval<B: Builder>(b: &mut B, p: &B::V, x: &B::V) -> Result<B::V> {
    let (left, right) = (b.ty(p), b.ty(x));
    let &[count] = left.shape.sizes() else {
        let required = "the coefficients must be a vector";
        return Err(ErrorKind::Rank { op: "polyval", got: left, required }.into());
    };
    let dtype = left.dtype.merge(right.dtype).to_number();
    let working = if dtype.is_inexact() { working_dtype(dtype) } else { dtype };
    let p = b.reshape_to(p, Shape::new(&[count]))?;
    let (p, x) = (b.as_type(p, working)?, b.as_type(x, working)?);
    let zero = b.constant(working, 0)?;
    let mut sum = b.multiply(&x, zero)?;
    for at in 0..count {
        let coefficient = b.slice_along_axis(&p, at as i64, 1, 0, 1)?;
        let coefficient = b.squeeze(coefficient, 0)?;
        sum = if at == 0 {
            b.broadcast(coefficient, right.shape.clone(), Axes::All)?
        } else {
            let product = b.multiply(sum, &x)?;
            b.add(product, coefficient)?
        };
    }
    b.as_type(sum, dtype)
}

/// See [`BuildSequence::polyfit`](crate::builder::BuildSequence::polyfit).
///
/// The columns of powers are divided by their lengths, so that the least singular value is that of their directions.
///
/// # Errors
/// As the method.
pub fn polyfit<B: Builder>(b: &mut B, x: &B::V, y: &B::V, degree: usize) -> Result<B::V> {
    let op = "polyfit";
    let (left, right) = (b.ty(x), b.ty(y));
    require_real(op, &left)?;
    require_real(op, &right)?;
    let size = match (left.shape.sizes(), right.shape.sizes()) {
        (&[size], &[other]) if size == other && size > 0 => size,
        _ => return Err(ErrorKind::ShapesDiffer { op, left, right }.into()),
    };
    if degree > 1000 {
        let (option, given) = ("deg", degree.to_string());
        return Err(ErrorKind::OptionValue { op, option, given, required: "at most 1000".to_owned() }.into());
    }
    let dtype = left.dtype.merge(right.dtype).to_float();
    let working = exact_dtype(left.dtype.merge(right.dtype));
    let plain = Shape::new(&[size]);
    let (x, y) = (b.reshape_to(x, plain.clone())?, b.reshape_to(y, plain.clone())?);
    let (x, y) = (b.as_type(x, working)?, b.as_type(y, working)?);
    let one = b.constant(working, 1)?;
    let mut powers = vec![b.broadcast(one, plain, Axes::All)?];
    for at in 0..degree {
        powers.push(b.multiply(&powers[at], &x)?);
    }
    powers.reverse();
    let matrix = b.stack(&powers, 1, None)?;
    let square = b.multiply(&matrix, &matrix)?;
    let square = b.sum(square, 0, false)?;
    let is_zero = b.equal(&square, 0)?;
    let square = b.select(is_zero, 1, square)?;
    let lengths = b.sqrt(square)?;
    let matrix = b.divide(matrix, &lengths)?;
    let epsilon = if working == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let found = b.least_squares(matrix, y, epsilon * size as f64)?;
    let found = b.divide(found, lengths)?;
    b.as_type(found, dtype)
}

/// See [`BuildSequence::corrcoef`](crate::builder::BuildSequence::corrcoef).
///
/// # Errors
/// As the method.
pub fn corrcoef<B: Builder>(b: &mut B, x: &B::V, rowvar: bool) -> Result<B::V> {
    let op = "corrcoef";
    let got = b.ty(x);
    let dtype = got.dtype.to_float();
    let x = b.reshape_to(x, got.shape.without_names())?;
    let x = b.as_type(
        x,
        if got.dtype.is_inexact() { working_dtype(dtype) } else { accumulation_dtype(got.dtype) },
    )?;
    let is_vector = match got.shape.rank() {
        1 => true,
        2 => false,
        _ => {
            let required = "a vector or a matrix is required";
            return Err(ErrorKind::Rank { op, got, required }.into());
        }
    };
    let x = if is_vector {
        b.new_axis(x, 1, None)?
    } else if rowvar {
        b.transpose(x, Axes::from([1, 0]))?
    } else {
        x
    };
    let covariance = b.covariance(x, None, 0)?;
    let variances = b.take_diagonal(&covariance, 0)?;
    let variances = if dtype.is_complex() { b.real(variances)? } else { variances };
    let deviations = b.sqrt(variances)?;
    let rows = b.new_axis(&deviations, 1, None)?;
    let columns = b.new_axis(deviations, 0, None)?;
    let found = b.divide(covariance, rows)?;
    let found = b.divide(found, columns)?;
    let found = if dtype.is_complex() { found } else { b.clip(found, -1, 1)? };
    let found = b.as_type(found, dtype)?;
    if is_vector { b.reshape_to(found, Shape::scalar()) } else { Ok(found) }
}
