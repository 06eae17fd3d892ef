//! Quantiles.

use super::reduce::mean_axes;
use super::statistics::SortedAxis;
use super::working_dtype;
use crate::builder::{
    Arg, BuildArrange, BuildCreate, BuildElementwise, BuildIndex, BuildReduce, BuildShape, Builder,
    QuantileMethod,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::{index_dtype, require_real};
use crate::scalar::Number;
use crate::shape::{Axes, AxisRef, Shape};

/// What the functions of quantiles differ in.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name, for messages.
    pub op: &'static str,
    /// What all elements below the quantile amount to: 1 or 100.
    pub whole: f64,
    /// Whether NaN is left out. Otherwise the quantile of elements with NaN is NaN.
    pub skips_nan: bool,
}

/// See [`BuildQuantile::quantile`](crate::builder::BuildQuantile::quantile),
/// [`BuildQuantile::percentile`](crate::builder::BuildQuantile::percentile),
/// [`BuildQuantile::nanquantile`](crate::builder::BuildQuantile::nanquantile) and
/// [`BuildQuantile::nanpercentile`](crate::builder::BuildQuantile::nanpercentile).
///
/// The quantile of elements with NaN is NaN, which sorts last.
///
/// # Errors
/// As the methods.
pub fn quantile<B: Builder>(
    b: &mut B,
    kind: Kind,
    x: &B::V,
    q: Arg<B::V>,
    axis: Option<&AxisRef>,
    keep_axis: bool,
    method: QuantileMethod,
) -> Result<B::V> {
    let got = b.ty(x);
    let op = kind.op;
    require_real(op, &got)?;
    let out = match method {
        QuantileMethod::Linear | QuantileMethod::Midpoint => got.dtype.to_float(),
        QuantileMethod::Lower | QuantileMethod::Higher | QuantileMethod::Nearest => got.dtype,
    };
    let sorted = SortedAxis::new(b, op, x, axis, keep_axis)?;
    let (size, axis) = (sorted.size, sorted.axis);
    let share = shares(b, kind, q, size)?;
    let ty = b.ty(&share);
    let count = ty.shape.size();
    let shape = Shape::from_axes(ty.shape.entries().chain(sorted.shape.entries()));
    if size == 0 {
        return b.full(shape, out, 0);
    }
    let values = b.ty(&sorted.values).shape.without_names();
    let values = b.reshape_to(&sorted.values, values)?;
    let rank = b.ty(&values).shape.rank();
    let share = b.reshape_to(share, Shape::new(&[count]))?;
    let is_float = got.dtype.is_float();
    let index = index_dtype(size);
    let (place, along) = if kind.skips_nan && is_float {
        // One position for each quantile and each place along the other axes.
        let is_number = b.equal(&values, &values)?;
        let ones = b.as_type(is_number, index_dtype(size + 1))?;
        let last = b.sum(ones, axis, true)?;
        let last = b.subtract(last, 1)?;
        let last = b.max(last, 0)?;
        let last = b.as_type(last, ty.dtype)?;
        let mut sizes = vec![1; rank];
        sizes[axis.index()] = count;
        let share = b.reshape_to(share, Shape::new(&sizes))?;
        (b.multiply(share, last)?, true)
    } else {
        (b.multiply(share, Number::Float((size - 1) as f64))?, false)
    };
    let floor = b.floor(&place)?;
    let rest = b.subtract(&place, &floor)?;
    let below = b.as_type(&floor, index)?;
    let above = b.add(&below, 1)?;
    let above = b.min(above, Number::from(size - 1))?;
    let is_whole = b.equal(&rest, 0)?;
    let above = b.select(&is_whole, &below, above)?;
    let read = |b: &mut B, positions: B::V| {
        let read = if along {
            b.take_along_axis(&values, positions, axis)?
        } else {
            b.take(&values, positions, axis)?
        };
        Ok::<_, crate::error::Error>(read)
    };
    let found = match method {
        QuantileMethod::Lower => read(b, below)?,
        QuantileMethod::Higher => read(b, above)?,
        QuantileMethod::Nearest => {
            // Half way it is the even position.
            let half = b.multiply(&floor, 0.5)?;
            let whole = b.floor(&half)?;
            let is_even = b.equal(half, whole)?;
            let (is_less, is_half) = (b.less(&rest, 0.5)?, b.equal(&rest, 0.5)?);
            let is_even = b.logical_and(is_half, is_even)?;
            let is_below = b.logical_or(is_less, is_even)?;
            let nearest = b.select(is_below, below, above)?;
            read(b, nearest)?
        }
        QuantileMethod::Linear | QuantileMethod::Midpoint => {
            let working = if got.dtype.is_inexact() { working_dtype(got.dtype) } else { DType::F64 };
            let (low, high) = (read(b, below)?, read(b, above)?);
            let (low, high) = (b.as_type(low, working)?, b.as_type(high, working)?);
            if method == QuantileMethod::Midpoint {
                middle(b, &low, &high)?
            } else {
                let mut rest = b.as_type(rest, working)?;
                if !along {
                    let mut sizes = vec![1; rank];
                    sizes[axis.index()] = count;
                    rest = b.reshape_to(rest, Shape::new(&sizes))?;
                }
                between(b, &low, &high, &rest)?
            }
        }
    };
    let found = b.as_type(found, out)?;
    let found = if kind.skips_nan || !is_float {
        found
    } else {
        let last = b.slice_along_axis(&values, size as i64 - 1, 1, axis, 1)?;
        let is_nan = b.is_nan(last)?;
        b.select(is_nan, f64::NAN, found)?
    };
    let found = b.moveaxis(found, axis, 0)?;
    b.reshape_to(found, shape)
}

/// The share of the elements below each quantile, from 0 to 1. Positions are computed in the dtype of the shares, as
/// long as it has them: a share that was rounded to it then gives a whole position where its number does.
fn shares<B: Builder>(b: &mut B, kind: Kind, q: Arg<B::V>, size: usize) -> Result<B::V> {
    if let Some(number) = b.weak_number(&q) {
        let number = number.to_f64();
        if let Arg::Number(_) = &q {
            if !(0.0..=kind.whole).contains(&number) {
                let (option, given) = ("q", number.to_string());
                let required = format!("at least 0 and at most {}", kind.whole);
                return Err(ErrorKind::OptionValue { op: kind.op, option, given, required }.into());
            }
            return b.constant(DType::F64, number / kind.whole);
        }
    }
    let q = b.operand(q)?;
    let got = b.ty(&q);
    require_real(kind.op, &got)?;
    let dtype = got.dtype.to_float();
    let exact = got.dtype.is_inexact() && dtype.bits() >= 32 && size < 1 << 22;
    let q = b.as_type(q, if exact { dtype } else { DType::F64 })?;
    let share = if kind.whole == 1.0 { q } else { b.divide(q, kind.whole)? };
    b.clip(share, 0, 1)
}

/// The number between two at a share of their distance; each of them exactly at 0 and 1.
fn between<B: Builder>(b: &mut B, low: &B::V, high: &B::V, share: &B::V) -> Result<B::V> {
    let is_equal = b.equal(low, high)?;
    let is_start = b.equal(share, 0)?;
    let is_low = b.logical_or(is_equal, is_start)?;
    let distance = b.subtract(high, low)?;
    let step = b.multiply(&distance, share)?;
    let upwards = b.add(low, step)?;
    let rest = b.subtract(1, share)?;
    let step = b.multiply(distance, rest)?;
    let downwards = b.subtract(high, step)?;
    let is_near = b.less(share, 0.5)?;
    let moved = b.select(is_near, upwards, downwards)?;
    b.select(is_low, low, moved)
}

/// The mean of two numbers, rounded once; halves of large ones do not overflow.
fn middle<B: Builder>(b: &mut B, low: &B::V, high: &B::V) -> Result<B::V> {
    let is_equal = b.equal(low, high)?;
    let (lower, upper) = (b.multiply(low, 0.5)?, b.multiply(high, 0.5)?);
    let mean = b.add(lower, upper)?;
    b.select(is_equal, low, mean)
}

/// See [`BuildQuantile::nanmedian`](crate::builder::BuildQuantile::nanmedian).
///
/// # Errors
/// As the method.
pub fn nanmedian<B: Builder>(b: &mut B, x: &B::V, axis: Option<&AxisRef>, keep_axis: bool) -> Result<B::V> {
    let got = b.ty(x);
    require_real("nanmedian", &got)?;
    if !got.dtype.is_float() {
        return super::statistics::middle(b, "nanmedian", x, axis, keep_axis);
    }
    let kind = Kind { op: "nanmedian", whole: 1.0, skips_nan: true };
    quantile(b, kind, x, Arg::Number(Number::Float(0.5)), axis, keep_axis, QuantileMethod::Midpoint)
}

/// See [`BuildQuantile::average`](crate::builder::BuildQuantile::average).
///
/// # Errors
/// As the method.
pub fn average<B: Builder>(
    b: &mut B,
    x: Arg<B::V>,
    axes: &Axes,
    weights: Option<Arg<B::V>>,
    keep_axes: bool,
) -> Result<B::V> {
    let op = "average";
    // The axes and shapes are checked first, so that errors name this function.
    let Some(weights) = weights else {
        let x = b.operand(x)?;
        let (axes, _) = mean_axes(op, &b.ty(&x), axes)?;
        return b.mean(x, axes, keep_axes);
    };
    let (x, weights) = b.weak_pair(op, x, weights)?;
    let (left, right) = (b.ty(&x), b.ty(&weights));
    let resolved = left.shape.resolve_all(op, axes)?;
    let sizes: Vec<usize> = resolved.iter().map(|&axis| left.shape[axis]).collect();
    let is_for_axes = !matches!(axes, Axes::All) && right.shape.sizes() == &sizes[..];
    if !is_for_axes && left.shape.sizes() != right.shape.sizes() {
        return Err(ErrorKind::ShapesDiffer { op, left, right }.into());
    }
    b.weighted_mean(x, weights, axes.clone(), keep_axes)
}
