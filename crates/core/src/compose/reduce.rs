//! Means, variances, covariances, sums of exponentials and scans.

use super::derived::isclose;
use super::{accumulation_dtype, working_dtype};
use crate::builder::{
    BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, BuildShape, Builder,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::op::{BinaryOp, CumulativeOp, Op, ReduceOp};
use crate::scalar::Number;
use crate::shape::{Axes, Axis, AxisList, AxisRef, TensorType};

/// The axes of a mean and the number of elements along them.
pub(super) fn mean_axes(op: &'static str, ty: &TensorType, axes: &Axes) -> Result<(AxisList, usize)> {
    let axes = ty.shape.resolve_all(op, axes)?;
    let count = axes.iter().map(|&axis| ty.shape[axis]).product();
    let empty = axes.iter().find(|&&axis| ty.shape[axis] == 0);
    match empty {
        Some(axis) if ty.shape.reduced(&axes, false).size() > 0 => {
            Err(ErrorKind::EmptyReduction { op, got: ty.clone(), axis: axis.index() }.into())
        }
        Some(_) | None => Ok((axes, count)),
    }
}

/// See [`BuildReduce::mean`].
///
/// # Errors
/// As the method.
pub fn mean<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool) -> Result<B::V> {
    let ty = b.ty(x);
    let (axes, count) = mean_axes("mean", &ty, axes)?;
    let mean = working_mean(b, x, axes, count, keep_axes)?;
    b.as_type(mean, ty.dtype.to_float())
}

/// The mean before it is rounded to its final dtype.
fn working_mean<B: Builder>(
    b: &mut B,
    x: &B::V,
    axes: AxisList,
    count: usize,
    keep_axes: bool,
) -> Result<B::V> {
    let dtype = accumulation_dtype(b.ty(x).dtype);
    let sum = if axes.is_empty() {
        b.as_type(x, dtype)?
    } else {
        let mut axes = axes;
        axes.sort_unstable();
        b.emit_converted(Op::Reduce { op: ReduceOp::Sum, axes, keep_axes }, x, dtype)?
    };
    b.divide(sum, Number::from(count))
}

/// See [`BuildReduce::weighted_mean`].
///
/// # Errors
/// As the method.
pub fn weighted_mean<B: Builder>(
    b: &mut B,
    x: &B::V,
    weights: &B::V,
    axes: &Axes,
    keep_axes: bool,
) -> Result<B::V> {
    let (left, right) = (b.ty(x), b.ty(weights));
    let resolved = left.shape.resolve_all("weighted_mean", axes)?;
    let dtype = left.dtype.merge(right.dtype).to_float();
    // The wider summation dtype of both, because an integer next to a small float has more digits than the float.
    let summing = accumulation_dtype(left.dtype).merge(accumulation_dtype(right.dtype));
    let x = b.as_type(x, summing)?;
    let weights = b.as_type(weights, summing)?;
    let weights = if left.shape.sizes() == right.shape.sizes() {
        weights
    } else {
        let fits = match axes {
            Axes::All => false,
            Axes::List(_) => {
                right.shape.rank() == resolved.len()
                    && right.shape.axes().zip(&resolved).all(|(i, &axis)| right.shape[i] == left.shape[axis])
            }
        };
        if !fits {
            return Err(ErrorKind::ShapesDiffer { op: "weighted_mean", left, right }.into());
        }
        // The weights' axes are in the order of `axes`; a broadcast requires them ascending.
        let mut order: Vec<usize> = (0..resolved.len()).collect();
        order.sort_by_key(|&at| resolved[at]);
        let permutation = Axes::List(order.iter().map(|&at| AxisRef::Index(at as i64)).collect());
        let weights = b.transpose(weights, permutation)?;
        let sorted_axes: AxisList = order.iter().map(|&at| resolved[at]).collect();
        b.broadcast(weights, left.shape.without_names(), sorted_axes)?
    };
    let product = b.multiply(x, &weights)?;
    let sum = b.sum(product, resolved.clone(), keep_axes)?;
    let total = b.sum(weights, resolved, keep_axes)?;
    let mean = b.divide(sum, total)?;
    b.as_type(mean, dtype)
}

/// See [`BuildReduce::variance`].
///
/// # Errors
/// As the method.
pub fn variance<B: Builder>(b: &mut B, x: &B::V, axes: &Axes, keep_axes: bool, ddof: i64) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_float();
    let variance = working_variance(b, "variance", x, axes, keep_axes, ddof)?;
    b.as_type(variance, dtype)
}

/// See [`BuildReduce::standard_deviation`].
///
/// # Errors
/// As the method.
pub fn standard_deviation<B: Builder>(
    b: &mut B,
    x: &B::V,
    axes: &Axes,
    keep_axes: bool,
    ddof: i64,
) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_float();
    let variance = working_variance(b, "standard_deviation", x, axes, keep_axes, ddof)?;
    let deviation = b.sqrt(variance)?;
    b.as_type(deviation, dtype)
}

/// The variance before it is rounded to its final dtype.
fn working_variance<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    axes: &Axes,
    keep_axes: bool,
    ddof: i64,
) -> Result<B::V> {
    let ty = b.ty(x);
    let (axes, count) = mean_axes(op, &ty, axes)?;
    // Squares overflow long before sums do, so a wider dtype for the mean would not help floats.
    let working = if !ty.dtype.is_inexact() { DType::F64 } else { working_dtype(ty.dtype) };
    let x = b.as_type(x, working)?;
    let sum = b.sum(&x, axes.clone(), true)?;
    let mean = b.divide(sum, Number::from(count))?;
    let deviation = b.subtract(x, mean)?;
    let square = b.multiply(&deviation, &deviation)?;
    let sum = b.sum(square, axes, keep_axes)?;
    b.divide(sum, Number::Int(count as i128 - i128::from(ddof)))
}

/// See [`BuildReduce::covariance`].
///
/// # Errors
/// As the method.
pub fn covariance<B: Builder>(b: &mut B, x: &B::V, mean: Option<&B::V>, ddof: i64) -> Result<B::V> {
    let got = b.ty(x);
    let rank = got.shape.rank();
    if rank < 2 {
        let required = "at least two axes are required, rows being observations";
        return Err(ErrorKind::Rank { op: "covariance", got, required }.into());
    }
    if ddof < 0 {
        let (option, given) = ("ddof", ddof.to_string());
        let required = "an integer of at least 0".to_owned();
        return Err(ErrorKind::OptionValue { op: "covariance", option, given, required }.into());
    }
    let rows = Axis(rank - 2);
    let count = got.shape[rows];
    let x = b.reshape_to(x, got.shape.without_names())?;
    let (mean, mean_dtype) = match mean {
        None => {
            let (axes, count) = mean_axes("covariance", &got, &Axes::from(rows))?;
            (working_mean(b, &x, axes, count, true)?, got.dtype)
        }
        Some(mean) => {
            let ty = b.ty(mean);
            if ty.shape.rank() == 0 {
                let required = "a mean needs at least one axis";
                return Err(ErrorKind::Rank { op: "covariance", got: ty, required }.into());
            }
            let mean = b.reshape_to(mean, ty.shape.without_names())?;
            (b.new_axis(mean, -2, None)?, ty.dtype)
        }
    };
    let dtype = got.dtype.merge(mean_dtype).to_float();
    let exact = !got.dtype.is_inexact() && !mean_dtype.is_inexact();
    let working = if exact { DType::F64 } else { working_dtype(dtype) };
    let x = b.as_type(x, working)?;
    let mean = b.as_type(mean, working)?;
    b.ty(&x).shape.broadcast_with("covariance", &b.ty(&mean).shape)?;
    let deviation = b.subtract(x, mean)?;
    let rank = b.ty(&deviation).shape.rank();
    let rows = Axis(rank - 2);
    let conjugate = if dtype.is_complex() { b.conjugate(&deviation)? } else { deviation.clone() };
    let batch = || Axes::List((0..rank as i64 - 2).map(AxisRef::Index).collect());
    let products = b.dot_general(conjugate, rows, batch(), deviation, rows, batch())?;
    let covariance = b.divide(products, Number::Int(count as i128 - i128::from(ddof)))?;
    b.as_type(covariance, dtype)
}

/// `log(sum(factor * exp(x)))` over resolved, ascending axes; see [`BuildReduce::logsumexp`].
///
/// # Errors
/// As the method.
pub fn logsumexp<B: Builder>(
    b: &mut B,
    x: &B::V,
    axes: &[Axis],
    keep_axes: bool,
    factor: Option<&B::V>,
) -> Result<B::V> {
    let got = b.ty(x);
    if got.dtype.is_complex() {
        let required = crate::op::Domain::Real.text();
        return Err(ErrorKind::OperandDType { op: "logsumexp", got, required, hint: "" }.into());
    }
    let dtype = match factor {
        Some(factor) => got.dtype.merge(b.ty(factor).dtype).to_float(),
        None => got.dtype.to_float(),
    };
    let list = AxisList::from(axes);
    let working = working_dtype(dtype);
    if axes.iter().any(|&axis| got.shape[axis] == 0) {
        // The logarithm of an empty sum; there is no maximum to subtract.
        let shape = got.shape.reduced(axes, keep_axes);
        let empty = b.full(shape, working, f64::NEG_INFINITY)?;
        return b.as_type(empty, dtype);
    }
    let x = b.as_type(x, working)?;
    let greatest = b.reduce_max(&x, list.clone(), true)?;
    let greatest = b.stop_grad(greatest)?;
    // The difference of equal infinities is NaN. Therefore an infinite maximum is not subtracted, and determines the
    // result itself.
    let infinite = b.is_infinity(&greatest)?;
    let zero = b.constant(working, 0)?;
    let greatest = b.select(infinite, zero, greatest)?;
    let shifted = b.subtract(x, &greatest)?;
    let mut terms = b.exp(shifted)?;
    if let Some(factor) = factor {
        let broadcast = b.ty(factor).shape.broadcast_with("logsumexp", &got.shape)?;
        if broadcast.sizes() != got.shape.sizes() {
            let (op, what) = ("logsumexp", "the factor");
            let (got, shape) = (b.ty(factor), got.shape);
            return Err(ErrorKind::ParameterShape { op, what, got, shape }.into());
        }
        let factor = b.as_type(factor, working)?;
        terms = b.multiply(terms, factor)?;
    }
    let sum = b.sum(terms, list.clone(), keep_axes)?;
    let log = b.log(sum)?;
    let greatest = if keep_axes || axes.is_empty() { greatest } else { b.squeeze(greatest, list)? };
    let total = b.add(log, greatest)?;
    b.as_type(total, dtype)
}

/// See [`BuildElementwise::all_close`].
///
/// # Errors
/// As the method.
pub fn all_close<B: Builder>(
    b: &mut B,
    x: &B::V,
    y: &B::V,
    equal_nan: bool,
    rtol: f64,
    atol: f64,
) -> Result<B::V> {
    let close = isclose(b, x, y, equal_nan, rtol, atol)?;
    b.all(close, Axes::All, false)
}

/// At each position of an axis, the reduction of the elements up to it, by doubling (Hillis and Steele, Data Parallel
/// Algorithms, 1986): after step i each position has the reduction of the last 2^i elements.
///
/// # Errors
/// Complex elements, for maximum and minimum.
pub fn cumulative<B: Builder>(
    b: &mut B,
    x: &B::V,
    op: CumulativeOp,
    axis: Axis,
    reverse: bool,
) -> Result<B::V> {
    let ty = b.ty(x);
    let binary = match op {
        CumulativeOp::CumulativeSum => BinaryOp::ADD,
        CumulativeOp::CumulativeProduct => BinaryOp::MULTIPLY,
        CumulativeOp::CumulativeMax => BinaryOp::MAX,
        CumulativeOp::CumulativeMin => BinaryOp::MIN,
    };
    let dtype = match op {
        // Sums and products of bools are integers.
        CumulativeOp::CumulativeSum | CumulativeOp::CumulativeProduct => ty.dtype.to_number(),
        CumulativeOp::CumulativeMax | CumulativeOp::CumulativeMin => {
            require_real(op.name(), &ty)?;
            ty.dtype
        }
    };
    let size = ty.shape[axis];
    let working = if dtype.is_inexact() { working_dtype(dtype) } else { dtype };
    let mut scanned = b.as_type(x, working)?;
    let mut distance = 1;
    while distance < size {
        let rest = (size - distance) as i64;
        let shift = distance as i64;
        let part = |b: &mut B, start: i64, length: i64| b.slice_along_axis(&scanned, start, length, axis, 1);
        // The elements with a partner at `distance`, and the others, which are complete.
        let (earlier, later) = (part(b, 0, rest)?, part(b, shift, rest)?);
        let whole = part(b, if reverse { rest } else { 0 }, shift)?;
        scanned = if reverse {
            let joined = b.binary(binary, later, earlier)?;
            b.concatenate(&[joined, whole], axis)?
        } else {
            let joined = b.binary(binary, earlier, later)?;
            b.concatenate(&[whole, joined], axis)?
        };
        distance *= 2;
    }
    b.as_type(scanned, dtype)
}
