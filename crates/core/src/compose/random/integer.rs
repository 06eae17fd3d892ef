//! Random integers between bounds.

use super::{Parameter, Sample, check_key, is_number, merged_dtype, own_dtype, parameter, wrong_dtype};
use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Op};
use crate::scalar::{Number, wrap};
use crate::shape::{Shape, TensorType};

/// The number of integers between the bounds.
enum IntervalSize<V> {
    /// 2^64, the number of values of u64.
    All,
    /// This number, a u64.
    Value(V),
}

/// Random integers in the half-open interval from `min` to `max`. If the bounds are tensors and the interval is
/// empty, the sample is `min`.
///
/// # Errors
/// A value that is no key, an element type that is no integer type, bounds that are no integers, do not broadcast to
/// the shape or do not fit the type, and numbers whose interval is empty.
pub fn randint<B: Builder>(
    b: &mut B,
    key: &B::V,
    min: &Arg<B::V>,
    max: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    let value = randint_of(b, key, min, max, sample)?;
    b.order_vectorized_axes(value, &[&key.into(), min, max])
}

fn randint_of<B: Builder>(
    b: &mut B,
    key: &B::V,
    min: &Arg<B::V>,
    max: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    check_key(b, "randint", key)?;
    let dtype = sample.dtype.unwrap_or_else(|| merged_dtype(b, min, max));
    if !dtype.is_integer() {
        return Err(wrong_dtype("randint", dtype, "an integer dtype"));
    }
    let (min, max) = (Parameter { name: "min", value: min }, Parameter { name: "max", value: max });
    for Parameter { name: what, value } in [&min, &max] {
        let own = own_dtype(b, value);
        if !own.is_integer() {
            let got = match value {
                Arg::Value(value) => b.ty(value),
                Arg::Number(_) => TensorType::scalar(own),
            };
            let (op, required) = ("randint", "an integer");
            return Err(ErrorKind::ParameterDType { op, what, got, required }.into());
        }
    }
    let shape = sample.shape.without_names();
    let count = TensorType::new(dtype, shape.clone())?.size();
    let span = span(b, &min, &max, dtype, &shape)?;
    let offset = match span {
        IntervalSize::Value(span) if b.ty(&span).shape.rank() == 0 => {
            let draw = Op::Block(Block::RandomBelow { dtype, count });
            let flat = b.emit_one(draw, &[key.clone(), span])?;
            b.reshape_to(flat, shape.clone())?
        }
        span @ (IntervalSize::All | IntervalSize::Value(_)) => offset(b, key, dtype, count, &shape, span)?,
    };
    let values = if is_number(min.value, 0.0) {
        offset
    } else {
        let min = parameter(b, "randint", &min, dtype, &shape)?;
        b.add(min, offset)?
    };
    let values = b.reshape_to(values, sample.shape.clone())?;
    b.stop_grad(values)
}

/// See [`Block::RandomBelow`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn plain_below<B: Builder>(
    b: &mut B,
    key: &B::V,
    bound: &B::V,
    dtype: DType,
    count: usize,
) -> Result<B::V> {
    offset(b, key, dtype, count, &Shape::new(&[count]), IntervalSize::Value(bound.clone()))
}

/// Random integers of a dtype in `0..span`.
fn offset<B: Builder>(
    b: &mut B,
    key: &B::V,
    dtype: DType,
    count: usize,
    shape: &Shape,
    span: IntervalSize<B::V>,
) -> Result<B::V> {
    let offset = match dtype.bits() {
        64 => wide_offset(b, key, count, shape, span)?,
        bits => narrow_offset(b, key, bits, count, shape, span)?,
    };
    b.as_type(offset, dtype)
}

fn span<B: Builder>(
    b: &mut B,
    min: &Parameter<'_, B::V>,
    max: &Parameter<'_, B::V>,
    dtype: DType,
    shape: &Shape,
) -> Result<IntervalSize<B::V>> {
    let refuse = |option: &'static str, given: i128, required: String| {
        let given = given.to_string();
        Err(ErrorKind::OptionValue { op: "randint", option, given, required }.into())
    };
    let static_value = |arg: &Arg<B::V>| match arg {
        Arg::Number(Number::Int(value)) => Some(*value),
        Arg::Number(Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_))
        | Arg::Value(_) => None,
    };
    let (low, high) = (static_value(min.value), static_value(max.value));
    if let Some(low) = low
        && wrap(dtype, low) != low
    {
        return refuse("min", low, format!("an integer of {dtype}"));
    }
    if let Some(high) = high
        && wrap(dtype, high.saturating_sub(1)) != high.saturating_sub(1)
    {
        return refuse("max", high, format!("an integer of {dtype}, or the one after the greatest"));
    }
    if let (Some(low), Some(high)) = (low, high) {
        if high <= low {
            return refuse("max", high, format!("above min, which is {low}"));
        }
        let span = high - low;
        return if wrap(DType::U64, span) == span {
            Ok(IntervalSize::Value(b.constant(DType::U64, Number::Int(span))?))
        } else {
            Ok(IntervalSize::All)
        };
    }
    let wide = |b: &mut B, bound: &Parameter<'_, B::V>| -> Result<B::V> {
        let signed = own_dtype(b, bound.value).kind() == Kind::Signed;
        let value = parameter(b, "randint", bound, if signed { DType::S64 } else { DType::U64 }, shape)?;
        b.bitcast(value, DType::U64)
    };
    let (first, last) = (wide(b, min)?, wide(b, max)?);
    let span = b.subtract(last, first)?;
    // A u64 constant and signed bounds would merge to a dtype that cannot hold the constant.
    let (first, last) = (comparable(b, min)?, comparable(b, max)?);
    let some = b.greater(last, first)?;
    let one = b.constant(DType::U64, 1)?;
    let some = {
        let shape = b.ty(&span).shape;
        b.broadcast(some, shape, crate::shape::Axes::All)?
    };
    Ok(IntervalSize::Value(b.select(some, span, one)?))
}

/// A bound with its own element type, without names.
fn comparable<B: Builder>(b: &mut B, bound: &Parameter<'_, B::V>) -> Result<B::V> {
    match bound.value {
        Arg::Number(Number::Int(value)) if *value > i128::from(i64::MAX) => {
            b.constant(DType::U64, Number::Int(*value))
        }
        Arg::Number(number) => b.constant(DType::S64, *number),
        Arg::Value(value) => {
            let shape = b.ty(value).shape.without_names();
            b.reshape_to(value, shape)
        }
    }
}

/// `(high * 2^bits + low) mod span` for pairs of random words of `bits` bits. The value fits u64.
fn narrow_offset<B: Builder>(
    b: &mut B,
    key: &B::V,
    bits: usize,
    count: usize,
    shape: &Shape,
    span: IntervalSize<B::V>,
) -> Result<B::V> {
    // Of `2 * count` 32-bit words, the first half are the upper halves of `count` 64-bit words, and the second half
    // the lower ones.
    let mut words = random_words(b, key, count, shape)?;
    if bits < 32 {
        let mask = (1u64 << bits) - 1;
        let high = b.right_shift(&words, 32)?;
        let high = b.bitwise_and(high, mask)?;
        let high = b.left_shift(high, bits)?;
        let low = b.bitwise_and(words, mask)?;
        words = b.bitwise_or(high, low)?;
    }
    match span {
        IntervalSize::All => Ok(words),
        IntervalSize::Value(span) => b.remainder(words, span),
    }
}

/// Like [`narrow_offset`] for 64-bit words; intermediate results are modulo 2^64, as in Nx.
fn wide_offset<B: Builder>(
    b: &mut B,
    key: &B::V,
    count: usize,
    shape: &Shape,
    span: IntervalSize<B::V>,
) -> Result<B::V> {
    let both = Shape::new(&[&[2], shape.sizes()].concat());
    let twice = TensorType::new(DType::U64, both.clone())?.size();
    debug_assert_eq!(twice, 2 * count);
    let words = random_words(b, key, twice, &both)?;
    let mut row = |at: i64| -> Result<B::V> {
        let row = b.slice_along_axis(&words, at, 1, 0, 1)?;
        b.squeeze(row, 0)
    };
    let (high, low) = (row(0)?, row(1)?);
    let IntervalSize::Value(span) = span else { return Ok(low) };
    let half = b.constant(DType::U64, Number::Int(1 << 32))?;
    let half = b.remainder(half, &span)?;
    let square = b.multiply(&half, &half)?;
    let multiplier = b.remainder(square, &span)?;
    let high = b.remainder(high, &span)?;
    let high = b.multiply(high, multiplier)?;
    let low = b.remainder(low, &span)?;
    let sum = b.add(high, low)?;
    b.remainder(sum, span)
}

/// Random 64-bit words.
fn random_words<B: Builder>(b: &mut B, key: &B::V, count: usize, shape: &Shape) -> Result<B::V> {
    let draw = Op::Block(Block::RandomBits { dtype: DType::U64, count });
    let flat = b.emit_one(draw, std::slice::from_ref(key))?;
    b.reshape_to(flat, shape.clone())
}
