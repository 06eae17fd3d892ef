//! Positions in an ordered vector, and what is counted or interpolated between them.

use crate::builder::{
    Bins, BuildControl, BuildCreate, BuildElementwise, BuildIndex, BuildOrder, BuildReduce, BuildShape,
    Builder, Side,
};
use crate::compose::{accumulation_dtype, unnamed, working_dtype};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::index::require_integers;
use crate::infer::reduce::{index_dtype, require_real};
use crate::op::{Block, Direction, Op};
use crate::scalar::Number;
use crate::shape::Axes;

/// The number of elements of a real vector.
fn vector<B: Builder>(b: &B, op: &'static str, x: &B::V, required: &'static str) -> Result<usize> {
    let got = b.ty(x);
    require_real(op, &got)?;
    match got.shape.sizes() {
        &[size] => Ok(size),
        _ => Err(ErrorKind::Rank { op, got, required }.into()),
    }
}

/// The elements of a vector at positions of any shape, without names.
fn at<B: Builder>(b: &mut B, x: &B::V, positions: &B::V) -> Result<B::V> {
    let positions = b.new_axis(positions, -1, None)?;
    b.gather(x, positions, 0)
}

/// See [`BuildSearch::searchsorted`](crate::builder::BuildSearch::searchsorted).
///
/// # Errors
/// As the method.
pub fn searchsorted<B: Builder>(b: &mut B, ordered: &B::V, values: &B::V, side: Side) -> Result<B::V> {
    let op = "searchsorted";
    vector(b, op, ordered, "the ordered elements must be a vector")?;
    require_real(op, &b.ty(values))?;
    let shape = b.ty(values).shape;
    let ordered = unnamed(b, ordered)?;
    let values = unnamed(b, values)?;
    let found = positions(b, &ordered, &values, side)?;
    b.reshape_to(found, shape)
}

/// The binary search of all values together. Its steps are known before the run: each halves the number of elements
/// that are left, the same number for all values, so that no position is out of range.
fn positions<B: Builder>(b: &mut B, ordered: &B::V, values: &B::V, side: Side) -> Result<B::V> {
    let ordered = b.stop_grad(ordered)?;
    let values = b.stop_grad(values)?;
    let size = b.ty(&ordered).shape.sizes()[0];
    let ty = b.ty(&values);
    let dtype = index_dtype(size.saturating_add(1));
    if size == 0 {
        // Zeros on the backend of the values.
        let is_less = b.less(&values, &values)?;
        return b.as_type(is_less, dtype);
    }
    let zero = b.constant(dtype, 0)?;
    let mut base = b.broadcast(zero, ty.shape.clone(), Axes::All)?;
    let precedes = |b: &mut B, base: &B::V, length: usize, middle: B::V| {
        let before = match side {
            Side::Left => b.less(middle, &values)?,
            Side::Right => b.less_equal(middle, &values)?,
        };
        let further = b.add(base, Number::from(length))?;
        b.select(before, further, base)
    };
    let mut left = size;
    while left > 1 {
        let half = left / 2;
        let middle = b.add(&base, Number::from(half - 1))?;
        let middle = at(b, &ordered, &middle)?;
        base = precedes(b, &base, half, middle)?;
        left -= half;
    }
    let last = at(b, &ordered, &base)?;
    base = precedes(b, &base, 1, last)?;
    if !ty.dtype.is_float() {
        return Ok(base);
    }
    // Nothing compares with NaN, whose place is behind all numbers.
    let is_nan = b.is_nan(&values)?;
    let end = match side {
        Side::Left => {
            let is_number = b.equal(&ordered, &ordered)?;
            let counted = b.as_type(is_number, dtype)?;
            b.sum(counted, Axes::All, false)?
        }
        Side::Right => b.constant(dtype, Number::from(size))?,
    };
    b.select(is_nan, end, base)
}

/// See [`BuildSearch::digitize`](crate::builder::BuildSearch::digitize).
///
/// # Errors
/// As the method.
pub fn digitize<B: Builder>(b: &mut B, x: &B::V, bins: &B::V, right: bool) -> Result<B::V> {
    let op = "digitize";
    let size = vector(b, op, bins, "the bins must be a vector")?;
    require_real(op, &b.ty(x))?;
    let shape = b.ty(x).shape;
    let (x, bins) = (unnamed(b, x)?, unnamed(b, bins)?);
    let side = if right { Side::Left } else { Side::Right };
    if size < 2 {
        let found = positions(b, &bins, &x, side)?;
        return b.reshape_to(found, shape);
    }
    let first = b.slice_along_axis(&bins, 0, 1, 0, 1)?;
    let last = b.slice_along_axis(&bins, size as i64 - 1, 1, 0, 1)?;
    let descends = b.greater(first, last)?;
    let turned = b.reverse(&bins, 0)?;
    let ordered = b.select(&descends, turned, bins)?;
    let found = positions(b, &ordered, &x, side)?;
    let opposite = b.subtract(Number::from(size), &found)?;
    let descends = b.squeeze(descends, 0)?;
    let found = b.select(descends, opposite, found)?;
    b.reshape_to(found, shape)
}

/// See [`BuildSearch::bincount`](crate::builder::BuildSearch::bincount).
///
/// # Errors
/// As the method.
pub fn bincount<B: Builder>(b: &mut B, x: &B::V, weights: Option<&B::V>, length: usize) -> Result<B::V> {
    let got = b.ty(x);
    require_integers("bincount", &got)?;
    let [_] = got.shape.sizes() else {
        let required = "a vector is required; flatten it";
        return Err(ErrorKind::Rank { op: "bincount", got, required }.into());
    };
    if let Some(weights) = weights {
        let right = b.ty(weights);
        if right.shape.sizes() != got.shape.sizes() {
            return Err(ErrorKind::ShapesDiffer { op: "bincount", left: got, right }.into());
        }
    }
    counts(b, x, weights, length)
}

/// The definition of [`Block::Bincount`]: the sums of ones.
///
/// # Errors
/// Elements that are no integers, and another rank than 1.
pub(crate) fn ones_counted<B: Builder>(b: &mut B, ids: &B::V, length: usize) -> Result<B::V> {
    let ty = b.ty(ids);
    let counted = crate::infer::index::bincount(&ty, length)?;
    let ones = b.full(ty.shape.without_names(), counted.dtype, 1)?;
    let ones = b.vectorized_like(ones, ids)?;
    b.segment_sum(ones, ids, length)
}

/// The number of each id below `length`, or the sum of its weights. Other ids are left out.
fn counts<B: Builder>(b: &mut B, ids: &B::V, weights: Option<&B::V>, length: usize) -> Result<B::V> {
    let Some(weights) = weights else {
        return b.emit_one(Op::Block(Block::Bincount { length }), std::slice::from_ref(ids));
    };
    let dtype = b.ty(weights).dtype.to_number();
    let working = if dtype.is_inexact() { working_dtype(dtype) } else { dtype };
    let weights = b.as_type(weights, working)?;
    let sums = b.segment_sum(weights, ids, length)?;
    b.as_type(sums, dtype)
}

/// See [`BuildSearch::histogram`](crate::builder::BuildSearch::histogram).
///
/// # Errors
/// As the method.
pub fn histogram<B: Builder>(
    b: &mut B,
    x: &B::V,
    bins: &Bins<B::V>,
    range: Option<(f64, f64)>,
    density: bool,
    weights: Option<&B::V>,
) -> Result<(B::V, B::V)> {
    let op = "histogram";
    let got = b.ty(x);
    require_real(op, &got)?;
    let mut dtype = got.dtype.to_float();
    let flat = b.flatten(x, Axes::All)?;
    let flat = unnamed(b, &flat)?;
    let weights = match weights {
        None => None,
        Some(weights) => {
            let right = b.ty(weights);
            if right.shape.sizes() != got.shape.sizes() {
                return Err(ErrorKind::ShapesDiffer { op, left: got, right }.into());
            }
            dtype = dtype.merge(right.dtype).to_float();
            let weights = b.flatten(weights, Axes::All)?;
            Some(unnamed(b, &weights)?)
        }
    };
    let (ids, edges, length) = match bins {
        Bins::Count(count) => uniform(b, &flat, *count, range)?,
        Bins::Edges(edges) => between(b, &flat, edges)?,
    };
    let counted = counts(b, &ids, weights.as_ref(), length)?;
    let counted = if density {
        let working = working_dtype(dtype);
        let counted = b.as_type(counted, working)?;
        let total = b.sum(&counted, Axes::All, false)?;
        let widths = b.as_type(&edges, working)?;
        let widths = b.diff(widths, 1, 0)?;
        let share = b.divide(counted, total)?;
        let density = b.divide(share, widths)?;
        b.as_type(density, dtype)?
    } else {
        counted
    };
    let edges = match bins {
        Bins::Count(_) => b.as_type(edges, got.dtype.to_float())?,
        Bins::Edges(edges) => edges.clone(),
    };
    Ok((counted, edges))
}

/// The bin of each element among bins of equal widths, the edges, and the number of bins. Elements outside have the bin
/// -1. A division finds the bin but for rounding, which the edges themselves correct.
fn uniform<B: Builder>(
    b: &mut B,
    x: &B::V,
    count: i64,
    range: Option<(f64, f64)>,
) -> Result<(B::V, B::V, usize)> {
    let op = "histogram";
    if !(1..=i64::from(i32::MAX - 1)).contains(&count) {
        let (option, given) = ("bins", count.to_string());
        let required = "at least 1 and at most 2147483646".to_owned();
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    let got = b.ty(x);
    let working = if got.dtype.is_inexact() { working_dtype(got.dtype) } else { DType::F64 };
    let (low, high) = match range {
        Some((low, high)) => {
            if !(low.is_finite() && high.is_finite() && low <= high) {
                let (option, given) = ("range", format!("({low}, {high})"));
                let required = "two finite numbers, the lower one first".to_owned();
                return Err(ErrorKind::OptionValue { op, option, given, required }.into());
            }
            (b.constant(working, low)?, b.constant(working, high)?)
        }
        None if got.shape.size() == 0 => (b.constant(working, 0)?, b.constant(working, 1)?),
        None => {
            let (low, high) = (b.reduce_min(x, Axes::All, false)?, b.reduce_max(x, Axes::All, false)?);
            (b.as_type(low, working)?, b.as_type(high, working)?)
        }
    };
    // A range of one number is widened to 1.
    let is_point = b.equal(&low, &high)?;
    let (below, above) = (b.subtract(&low, 0.5)?, b.add(&high, 0.5)?);
    let (low, high) = (b.select(&is_point, below, low)?, b.select(is_point, above, high)?);
    let edges = b.linspace(&low, &high, count + 1, None, working, true)?;
    let x = b.as_type(x, working)?;
    let (least, greatest) = (b.greater_equal(&x, &low)?, b.less_equal(&x, &high)?);
    let is_inside = b.logical_and(least, greatest)?;
    let width = b.subtract(high, &low)?;
    let share = b.subtract(&x, low)?;
    let share = b.divide(share, width)?;
    let share = b.multiply(share, count as f64)?;
    let bin = b.as_type(share, DType::S32)?;
    let bin = b.clip(bin, 0, count - 1)?;
    let after = b.add(&bin, 1)?;
    let (begin, end) = (at(b, &edges, &bin)?, at(b, &edges, &after)?);
    let is_before = b.less(&x, begin)?;
    let is_after = b.greater_equal(&x, end)?;
    let (is_before, is_after) = (b.as_type(is_before, DType::S32)?, b.as_type(is_after, DType::S32)?);
    let bin = b.subtract(bin, is_before)?;
    let bin = b.add(bin, is_after)?;
    let bin = b.min(bin, count - 1)?;
    let bin = b.select(is_inside, bin, -1)?;
    Ok((bin, edges, count as usize))
}

/// The bin of each element between edges, as [`uniform`].
fn between<B: Builder>(b: &mut B, x: &B::V, edges: &B::V) -> Result<(B::V, B::V, usize)> {
    let size = vector(b, "histogram", edges, "the edges of the bins must be a vector")?;
    let edges = unnamed(b, edges)?;
    if size < 2 {
        let (option, given) = ("bins", format!("a vector of size {size}"));
        let required = "at least two edges".to_owned();
        return Err(ErrorKind::OptionValue { op: "histogram", option, given, required }.into());
    }
    let found = positions(b, &edges, x, Side::Right)?;
    let last = b.slice_along_axis(&edges, size as i64 - 1, 1, 0, 1)?;
    let last = b.squeeze(last, 0)?;
    // The last bin has its upper edge. Beyond it, and for NaN, the position is that of no bin.
    let is_end = b.equal(x, last)?;
    let bin = b.subtract(found, 1)?;
    let bin = b.select(is_end, Number::from(size - 2), bin)?;
    Ok((bin, edges, size - 1))
}

/// See [`BuildSearch::interp`](crate::builder::BuildSearch::interp).
///
/// # Errors
/// As the method.
pub fn interp<B: Builder>(
    b: &mut B,
    x: &B::V,
    [xp, fp]: [&B::V; 2],
    [left, right]: [Option<f64>; 2],
    period: Option<f64>,
) -> Result<B::V> {
    let op = "interp";
    let (got, ends, values) = (b.ty(x), b.ty(xp), b.ty(fp));
    require_real(op, &got)?;
    let mut size = vector(b, op, xp, "the positions of the points must be a vector")?;
    if ends.shape.sizes() != values.shape.sizes() {
        return Err(ErrorKind::ShapesDiffer { op, left: ends, right: values }.into());
    }
    if size == 0 {
        let required = "at least one point is required";
        return Err(ErrorKind::Rank { op, got: ends, required }.into());
    }
    let merged = got.dtype.merge(ends.dtype);
    let dtype = merged.merge(values.dtype).to_float();
    let place = if merged.is_inexact() { working_dtype(merged.merge(dtype.to_real())) } else { DType::F64 };
    let value = if values.dtype.is_inexact() { working_dtype(dtype) } else { accumulation_dtype(dtype) };
    let (mut x, mut xp) = (unnamed(b, x)?, unnamed(b, xp)?);
    let fp = unnamed(b, fp)?;
    let mut fp = b.as_type(fp, value)?;
    if let Some(period) = period {
        if !(period.is_finite() && period != 0.0) {
            let (option, given) = ("period", period.to_string());
            let required = "finite, and not 0".to_owned();
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        }
        let period = period.abs();
        x = b.as_type(x, place)?;
        xp = b.as_type(xp, place)?;
        x = b.floor_modulo(x, period)?;
        xp = b.floor_modulo(xp, period)?;
        let order = b.argsort(&xp, 0, Direction::Asc, None)?;
        xp = b.take(xp, &order, 0)?;
        fp = b.take(fp, order, 0)?;
        // The last point of the period before, and the first one of the next.
        let (first, last) =
            (b.slice_along_axis(&xp, 0, 1, 0, 1)?, b.slice_along_axis(&xp, size as i64 - 1, 1, 0, 1)?);
        let (before, after) = (b.subtract(last, period)?, b.add(first, period)?);
        xp = b.concatenate(&[before, xp, after], 0)?;
        let (first, last) =
            (b.slice_along_axis(&fp, 0, 1, 0, 1)?, b.slice_along_axis(&fp, size as i64 - 1, 1, 0, 1)?);
        fp = b.concatenate(&[last, fp, first], 0)?;
        size += 2;
    }
    let found = positions(b, &xp, &x, Side::Right)?;
    let end = Number::from(size - 1);
    let first = b.slice_along_axis(&fp, 0, 1, 0, 1)?;
    let last = b.slice_along_axis(&fp, size as i64 - 1, 1, 0, 1)?;
    let (first, last) = (b.squeeze(first, 0)?, b.squeeze(last, 0)?);
    let (low, high) =
        (b.slice_along_axis(&xp, 0, 1, 0, 1)?, b.slice_along_axis(&xp, size as i64 - 1, 1, 0, 1)?);
    let (low, high) = (b.squeeze(low, 0)?, b.squeeze(high, 0)?);
    let (is_left, is_right) = (b.less(&x, low)?, b.greater(&x, high)?);
    let begin = b.subtract(&found, 1)?;
    let begin = b.clip(begin, 0, end)?;
    let x = b.as_type(x, place)?;
    let xp = b.as_type(xp, place)?;
    let (start, from) = (at(b, &xp, &begin)?, at(b, &fp, &begin)?);
    let distance = b.subtract(&x, start)?;
    let is_point = b.equal(&distance, 0)?;
    let mut result = from.clone();
    if size > 1 {
        // The slope behind each point; behind the last one there is none.
        let (rise, run) = (b.diff(&fp, 1, 0)?, b.diff(&xp, 1, 0)?);
        let is_step = b.equal(&run, 0)?;
        let run = b.select(is_step, 1, run)?;
        let run = b.as_type(run, value)?;
        let slopes = b.divide(rise, run)?;
        let slopes = b.pad(slopes, Number::Int(0), &[(0, 1, 0)])?;
        let slope = at(b, &slopes, &begin)?;
        let distance = b.as_type(&distance, value)?;
        let change = b.multiply(slope, distance)?;
        let moved = b.add(change, &from)?;
        result = b.select(is_point, from, moved)?;
    }
    // The distance of NaN is NaN, also behind the last point, where the slope is 0.
    let is_nan = b.is_nan(&distance)?;
    result = b.select(is_nan, f64::NAN, result)?;
    let outer = |b: &mut B, number: Option<f64>, point: B::V| match number {
        Some(number) => b.constant(value, number),
        None => Ok(point),
    };
    let (before, after) = (outer(b, left, first)?, outer(b, right, last)?);
    if period.is_none() {
        result = b.select(is_left, before, result)?;
        result = b.select(is_right, after, result)?;
    }
    let result = b.as_type(result, dtype)?;
    b.reshape_to(result, got.shape)
}
