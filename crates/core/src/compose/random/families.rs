//! Continuous distributions whose samples are functions of uniform or normal ones. Gradients flow to the parameters.

use super::{
    Parameter, Sample, check_key, own_dtype, parameter, standard_normal, uniform_floats, wrong_dtype,
};
use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildShape, BuildSpecial, Builder};
use crate::compose::working_dtype;
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Domain, Op};
use crate::scalar::Number;
use crate::shape::{Shape, TensorType};

/// What a family draws with: the key, the dtype in which it computes, and the shape without names.
pub(super) struct Draw<'a, V> {
    pub(super) op: &'static str,
    pub(super) key: &'a V,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
}

impl<V: Clone> Draw<'_, V> {
    /// Uniform floats in the half-open interval from `min` to 1.
    pub(super) fn uniform<B: Builder<V = V>>(&self, b: &mut B, min: Number) -> Result<V> {
        let bounds = [Arg::Number(min), Arg::Number(Number::Int(1))];
        let bounds =
            [Parameter { name: "min", value: &bounds[0] }, Parameter { name: "max", value: &bounds[1] }];
        uniform_floats(b, self.op, self.key, bounds, self.dtype, &self.shape)
    }

    /// Normal floats.
    pub(super) fn normal<B: Builder<V = V>>(&self, b: &mut B) -> Result<V> {
        standard_normal(b, self.op, self.key, self.dtype, &self.shape)
    }
}

/// The dtype of a sample whose type is that of its real parameters.
///
/// # Errors
/// A complex parameter.
pub(super) fn dtype_of<B: Builder>(
    b: &B,
    op: &'static str,
    parameters: &[(&'static str, &Arg<B::V>)],
) -> Result<DType> {
    for (what, value) in parameters {
        if own_dtype(b, value).is_complex() {
            let got = match value {
                Arg::Value(value) => b.ty(value),
                Arg::Number(number) => TensorType::scalar(number.dtype()),
            };
            let required = Domain::Real.text();
            return Err(ErrorKind::ParameterDType { op, what, got, required }.into());
        }
    }
    let merged = match b.weak_type(parameters.iter().map(|(_, value)| *value)) {
        Some(ty) => ty.dtype,
        None => {
            parameters.iter().map(|(_, value)| own_dtype(b, value)).reduce(DType::merge).unwrap_or(DType::F32)
        }
    };
    Ok(merged.to_float())
}

/// A sample of floats. `draw` gets the parameters in the dtype in which it computes.
pub(super) fn family<B: Builder, const N: usize>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    parameters: [(&'static str, &Arg<B::V>); N],
    sample: &Sample,
    draw: impl FnOnce(&mut B, &Draw<'_, B::V>, [B::V; N]) -> Result<B::V>,
) -> Result<B::V> {
    check_key(b, op, key)?;
    let merged = dtype_of(b, op, &parameters)?;
    let dtype = sample.dtype.unwrap_or(merged);
    if !dtype.is_float() {
        return Err(wrong_dtype(op, dtype, "a float dtype"));
    }
    let shape = sample.shape.without_names();
    TensorType::new(dtype, shape.clone())?;
    let working = working_dtype(dtype);
    let mut values = Vec::with_capacity(N);
    for (name, value) in parameters {
        values.push(parameter(b, op, &Parameter { name, value }, working, &shape)?);
    }
    let Ok(values) = <[B::V; N]>::try_from(values) else { unreachable!("one value for each parameter") };
    let value = draw(b, &Draw { op, key, dtype: working, shape }, values)?;
    let value = b.as_type(value, dtype)?;
    let value = b.reshape_to(value, sample.shape.clone())?;
    let key = key.into();
    let operands: Vec<&Arg<B::V>> =
        std::iter::once(&key).chain(parameters.iter().map(|(_, value)| *value)).collect();
    b.order_vectorized_axes(value, &operands)
}

/// Exponentially distributed floats with a mean of `scale`: `-log1p(-u)` of uniform `u`.
///
/// # Errors
/// A value that is no key, an element type that is no float, and a parameter that is complex or does not broadcast to
/// the shape.
pub fn exponential<B: Builder>(b: &mut B, key: &B::V, scale: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    family(b, "exponential", key, [("scale", scale)], sample, |b, draw, [scale]| {
        let u = draw.uniform(b, Number::Int(0))?;
        let opposite = b.negate(u)?;
        let log = b.log1p(opposite)?;
        let standard = b.negate(log)?;
        b.multiply(standard, scale)
    })
}

/// Floats with a location and a scale: `loc + scale * standard`.
fn location_scale<B: Builder>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    [loc, scale]: [&Arg<B::V>; 2],
    sample: &Sample,
    standard: impl FnOnce(&mut B, &Draw<'_, B::V>) -> Result<B::V>,
) -> Result<B::V> {
    family(b, op, key, [("loc", loc), ("scale", scale)], sample, |b, draw, [loc, scale]| {
        let standard = standard(b, draw)?;
        let moved = b.multiply(standard, scale)?;
        b.add(moved, loc)
    })
}

/// Floats of the Laplace distribution.
///
/// # Errors
/// As [`exponential`].
pub fn laplace<B: Builder>(
    b: &mut B,
    key: &B::V,
    loc: &Arg<B::V>,
    scale: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    location_scale(b, "laplace", key, [loc, scale], sample, |b, draw| {
        // From -1, exclusive, to 1: its sign and an exponential number.
        let above = 2f64.powi(-(draw.dtype.mantissa_bits() as i32) - 1) - 1.0;
        let u = draw.uniform(b, Number::Float(above))?;
        let size = b.abs(&u)?;
        let opposite = b.negate(size)?;
        let log = b.log1p(opposite)?;
        let sign = b.sign(u)?;
        let product = b.multiply(sign, log)?;
        b.negate(product)
    })
}

/// Floats of the logistic distribution: `log(u / (1 - u))` of uniform `u`.
///
/// # Errors
/// As [`exponential`].
pub fn logistic<B: Builder>(
    b: &mut B,
    key: &B::V,
    loc: &Arg<B::V>,
    scale: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    location_scale(b, "logistic", key, [loc, scale], sample, |b, draw| {
        let u = draw.uniform(b, draw.dtype.smallest_normal())?;
        let log = b.log(&u)?;
        let opposite = b.negate(u)?;
        let rest = b.log1p(opposite)?;
        b.subtract(log, rest)
    })
}

/// Floats of the standard normal distribution within bounds: the quantile of a uniform probability between those of
/// the bounds. In the right half the probabilities are those of the opposite numbers, which keep their digits.
///
/// # Errors
/// As [`exponential`].
pub fn truncated_normal<B: Builder>(
    b: &mut B,
    key: &B::V,
    lower: &Arg<B::V>,
    upper: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    let parameters = [("lower", lower), ("upper", upper)];
    family(b, "truncated_normal", key, parameters, sample, |b, draw, [lower, upper]| {
        let u = draw.uniform(b, Number::Int(0))?;
        let is_right = b.greater(&lower, 0)?;
        let (left, right) = (b.negate(&upper)?, b.negate(&lower)?);
        let (first, last) = (b.select(&is_right, left, &lower)?, b.select(&is_right, right, &upper)?);
        let (first, last) = (b.ndtr(first)?, b.ndtr(last)?);
        let span = b.subtract(last, &first)?;
        let step = b.multiply(u, span)?;
        let p = b.add(first, step)?;
        let x = b.ndtri(p)?;
        let opposite = b.negate(&x)?;
        let x = b.select(is_right, opposite, x)?;
        // Rounding may move it beyond a bound.
        let x = b.max(x, &lower)?;
        let x = b.min(x, &upper)?;
        let is_valid = b.less_equal(lower, upper)?;
        b.select(is_valid, x, f64::NAN)
    })
}

/// -1 or 1 with equal probability.
///
/// # Errors
/// A value that is no key, and an element type that is unsigned or bool.
pub fn rademacher<B: Builder>(b: &mut B, key: &B::V, sample: &Sample) -> Result<B::V> {
    check_key(b, "rademacher", key)?;
    let dtype = sample.dtype.unwrap_or(DType::S32);
    if dtype.kind() == Kind::Bool || dtype.kind() == Kind::Unsigned {
        return Err(wrong_dtype("rademacher", dtype, "a signed integer, a float or a complex dtype"));
    }
    let shape = sample.shape.without_names();
    let count = TensorType::new(dtype, shape.clone())?.size();
    let draw = Op::Block(Block::RandomBits { dtype: DType::U8, count });
    let words = b.emit_one(draw, std::slice::from_ref(key))?;
    let words = b.reshape_to(words, shape)?;
    let is_high = b.greater_equal(words, 128)?;
    let (one, minus) = (b.constant(dtype, 1)?, b.constant(dtype, -1)?);
    let value = b.select(is_high, one, minus)?;
    let value = b.reshape_to(value, sample.shape.clone())?;
    b.stop_grad(value)
}

/// True with probability `p`: whether a uniform number is below it.
///
/// # Errors
/// As [`exponential`]; the element type may be any.
pub fn bernoulli<B: Builder>(b: &mut B, key: &B::V, p: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    let dtype = sample.dtype.unwrap_or(DType::Bool);
    let floats = Sample { shape: sample.shape.clone(), dtype: None };
    let below = family(b, "bernoulli", key, [("p", p)], &floats, |b, draw, [p]| {
        let u = draw.uniform(b, Number::Int(0))?;
        b.less(u, p)
    })?;
    let value = b.not_equal(below, 0)?;
    let value = b.as_type(value, dtype)?;
    b.stop_grad(value)
}
