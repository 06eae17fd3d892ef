//! Element-wise functions that are built from other operations.

use std::f64::consts::PI;

use super::working_dtype;
use crate::builder::{BuildControl, BuildCreate, BuildElementwise, Builder};
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_real;
use crate::op::Domain;
use crate::scalar::Number;

/// See [`BuildElementwise::isfinite`].
///
/// # Errors
/// As the method.
pub fn isfinite<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    match dtype.kind() {
        Kind::Bool | Kind::Unsigned | Kind::Signed => b.equal(x, x),
        Kind::Float => {
            // The comparison is false for NaN.
            let x = b.as_type(x, working_dtype(dtype))?;
            let size = b.abs(x)?;
            b.less(size, f64::INFINITY)
        }
        Kind::Complex => {
            let (real, imag) = (b.real(x)?, b.imag(x)?);
            let (real, imag) = (isfinite(b, &real)?, isfinite(b, &imag)?);
            b.logical_and(real, imag)
        }
    }
}

/// See [`BuildElementwise::signbit`].
///
/// # Errors
/// As the method.
pub fn signbit<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    require_real("signbit", &ty)?;
    match ty.dtype.kind() {
        Kind::Bool | Kind::Unsigned => b.not_equal(x, x),
        Kind::Signed => b.less(x, 0),
        Kind::Float | Kind::Complex => {
            let bits = b.bitcast(x, DType::signed(ty.dtype.bits()))?;
            b.less(bits, 0)
        }
    }
}

/// See [`BuildElementwise::trunc`].
///
/// # Errors
/// As the method.
pub fn trunc<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let ty = b.ty(x);
    require_real("trunc", &ty)?;
    if !ty.dtype.is_float() {
        return Ok(x.clone());
    }
    let negative = b.less(x, 0)?;
    let (up, down) = (b.ceil(x)?, b.floor(x)?);
    b.select(negative, up, down)
}

/// See [`BuildElementwise::exp2`].
///
/// # Errors
/// As the method.
pub fn exp2<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_float();
    let x = b.as_type(x, dtype)?;
    b.pow(2.0, x)
}

/// See [`BuildElementwise::radians`].
///
/// # Errors
/// As the method.
pub fn radians<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    scaled(b, "radians", x, PI / 180.0)
}

/// See [`BuildElementwise::degrees`].
///
/// # Errors
/// As the method.
pub fn degrees<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    scaled(b, "degrees", x, 180.0 / PI)
}

/// A real operand times a number, rounded once. `op` is for the message.
fn scaled<B: Builder>(b: &mut B, op: &'static str, x: &B::V, factor: f64) -> Result<B::V> {
    let ty = b.ty(x);
    require_real(op, &ty)?;
    let x = b.as_type(x, working_dtype(ty.dtype))?;
    let product = b.multiply(x, factor)?;
    b.as_type(product, ty.dtype.to_float())
}

/// The terms of the series of `sin(u) / u`. For `u` below 1 the next term is 2e-20, its second derivative 8e-18.
const TERMS: i32 = 10;

/// See [`BuildElementwise::sinc`].
///
/// Near 0 the derivatives of `sin(u) / u` are differences of nearly equal numbers, those of its series are not.
///
/// # Errors
/// As the method.
pub fn sinc<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype.to_float();
    let x = b.as_type(x, working_dtype(dtype))?;
    let angle = b.multiply(&x, PI)?;
    let size = b.abs(&angle)?;
    let is_near = b.less(size, 1)?;
    // Each form gets operands for which its derivatives are finite.
    let (near, far) = (b.select(&is_near, &angle, 0)?, b.select(&is_near, 1, x)?);
    let square = b.multiply(&near, &near)?;
    let mut series = b.multiply(&square, coefficient(TERMS - 1))?;
    for term in (1..TERMS - 1).rev() {
        let sum = b.add(series, coefficient(term))?;
        series = b.multiply(sum, &square)?;
    }
    let series = b.add(series, 1)?;
    let sine = sine_of_pi(b, &far)?;
    let divisor = b.multiply(far, PI)?;
    let ratio = b.divide(sine, divisor)?;
    let result = b.select(is_near, series, ratio)?;
    b.as_type(result, dtype)
}

/// `sin(pi x)`, for real numbers exactly 0 at whole ones: what is left of `x` beside a whole number is exact, the angle
/// is not.
fn sine_of_pi<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.is_complex() {
        let angle = b.multiply(x, PI)?;
        return b.sin(angle);
    }
    let whole = b.round(x)?;
    let rest = b.subtract(x, &whole)?;
    let angle = b.multiply(rest, PI)?;
    let sine = b.sin(angle)?;
    let half = b.multiply(whole, 0.5)?;
    let floor = b.floor(&half)?;
    let is_odd = b.not_equal(half, floor)?;
    let negative = b.negate(&sine)?;
    b.select(is_odd, negative, sine)
}

/// The factor of `u^(2 term)` in the series of `sin(u) / u`.
fn coefficient(term: i32) -> f64 {
    let factorial: f64 = (1..=2 * term + 1).map(f64::from).product();
    (if term % 2 == 0 { 1.0 } else { -1.0 }) / factorial
}

/// The float dtype in which two real operands merge. `op` is for the messages.
pub(super) fn merged_float<B: Builder>(b: &B, op: &'static str, x: &B::V, y: &B::V) -> Result<DType> {
    let (left, right) = (b.ty(x), b.ty(y));
    let dtype = left.dtype.merge(right.dtype).to_float();
    if dtype.is_complex() {
        let (required, hint) = (Domain::Real.text(), "; take real, imag or abs first");
        return Err(ErrorKind::OperandsDType { op, left, right, required, hint }.into());
    }
    left.shape.broadcast_with(op, &right.shape)?;
    Ok(dtype)
}

/// See [`BuildElementwise::copysign`].
///
/// # Errors
/// As the method.
pub fn copysign<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let dtype = merged_float(b, "copysign", x, y)?;
    let x = b.as_type(x, dtype)?;
    let positive = b.abs(x)?;
    let negative = b.negate(&positive)?;
    let is_negative = signbit(b, y)?;
    b.select(is_negative, negative, positive)
}

/// See [`BuildElementwise::hypot`].
///
/// Operands whose squares overflow or lose digits are multiplied by a power of two, which is exact.
///
/// # Errors
/// As the method.
pub fn hypot<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let dtype = merged_float(b, "hypot", x, y)?;
    let working = working_dtype(dtype);
    let (x, y) = (b.as_type(x, working)?, b.as_type(y, working)?);
    // An infinite side makes an infinite result, even beside NaN. At 0 the square root has no slope.
    let (left, right) = (b.is_infinity(&x)?, b.is_infinity(&y)?);
    let infinite = b.logical_or(left, right)?;
    let (left, right) = (b.equal(&x, 0)?, b.equal(&y, 0)?);
    let zero = b.logical_and(left, right)?;
    let special = b.logical_or(&infinite, zero)?;
    let (x, y) = (b.select(&special, 1, x)?, b.select(&special, 1, y)?);
    let (left, right) = (b.abs(&x)?, b.abs(&y)?);
    let greater = b.max(left, right)?;
    // Powers of two: above the first an operand is multiplied by the second, below the third by the fourth.
    let [large, down, small, up] =
        if working == DType::F64 { [500, -600, -500, 600] } else { [60, -80, -50, 100] };
    let power = |b: &mut B, exponent: i32| b.constant(working, 2f64.powi(exponent));
    let (is_large, is_small) = (b.greater(&greater, 2f64.powi(large))?, b.less(&greater, 2f64.powi(small))?);
    let scale = |b: &mut B, down: i32, up: i32| {
        let (one, down, up) = (power(b, 0)?, power(b, down)?, power(b, up)?);
        let other = b.select(&is_small, up, one)?;
        b.select(&is_large, down, other)
    };
    let (scale, unscale) = (scale(b, down, up)?, scale(b, -down, -up)?);
    let (x, y) = (b.multiply(x, &scale)?, b.multiply(y, scale)?);
    let (x, y) = (b.multiply(&x, &x)?, b.multiply(&y, &y)?);
    let sum = b.add(x, y)?;
    let root = b.sqrt(sum)?;
    let length = b.multiply(root, unscale)?;
    let nothing = b.constant(working, 0)?;
    let limit = b.select(infinite, f64::INFINITY, nothing)?;
    let length = b.select(special, limit, length)?;
    b.as_type(length, dtype)
}

/// See [`BuildElementwise::logaddexp`].
///
/// The greater operand is selected instead of computed by `max`, so that for equal operands the derivatives are those
/// of a smooth function.
///
/// # Errors
/// As the method.
pub fn logaddexp<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let dtype = merged_float(b, "logaddexp", x, y)?;
    let working = working_dtype(dtype);
    let (x, y) = (b.as_type(x, working)?, b.as_type(y, working)?);
    let less = b.less(&x, &y)?;
    let (high, low) = (b.select(&less, &y, &x)?, b.select(less, x, y)?);
    // The difference of equal infinities is NaN.
    let (equal, infinite) = (b.equal(&high, &low)?, b.is_infinity(&high)?);
    let are_infinite = b.logical_and(equal, infinite)?;
    let difference = b.subtract(low, &high)?;
    let difference = b.select(are_infinite, 0, difference)?;
    let exp = b.exp(difference)?;
    let rest = b.log1p(exp)?;
    let sum = b.add(high, rest)?;
    b.as_type(sum, dtype)
}

/// See [`BuildElementwise::heaviside`].
///
/// # Errors
/// As the method.
pub fn heaviside<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let dtype = merged_float(b, "heaviside", x, y)?;
    let (x, y) = (b.as_type(x, dtype)?, b.as_type(y, dtype)?);
    let x = b.stop_grad(x)?;
    let positive = b.greater(&x, 0)?;
    let step = b.as_type(positive, dtype)?;
    let is_nan = b.is_nan(&x)?;
    let step = b.select(is_nan, &x, step)?;
    let is_zero = b.equal(x, 0)?;
    b.select(is_zero, y, step)
}

/// See [`BuildElementwise::nextafter`].
///
/// The bits of a float without its sign, read as an integer, have the order of the magnitudes.
///
/// # Errors
/// As the method.
pub fn nextafter<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let dtype = merged_float(b, "nextafter", x, y)?;
    let (x, y) = (b.as_type(x, dtype)?, b.as_type(y, dtype)?);
    let (x, y) = (b.stop_grad(x)?, b.stop_grad(y)?);
    let unsigned = DType::unsigned(dtype.bits());
    let bits = b.bitcast(&x, unsigned)?;
    let (up, down) = (b.add(&bits, 1)?, b.subtract(bits, 1)?);
    // Upwards from a positive number, or downwards from a negative one.
    let (ascends, is_positive) = (b.less(&x, &y)?, b.greater(&x, 0)?);
    let grows = b.equal(ascends, is_positive)?;
    let moved = b.select(grows, up, down)?;
    // The least number has the sign of the direction.
    let sign = Number::Int((1 << (dtype.bits() - 1)) + 1);
    let (negative, positive) = (b.constant(unsigned, sign)?, b.constant(unsigned, 1)?);
    let descends = b.less(&y, 0)?;
    let least = b.select(descends, negative, positive)?;
    let is_zero = b.equal(&x, 0)?;
    let moved = b.select(is_zero, least, moved)?;
    let next = b.bitcast(moved, dtype)?;
    let equal = b.equal(&x, &y)?;
    let next = b.select(equal, &y, next)?;
    let (left, right) = (b.is_nan(&x)?, b.is_nan(&y)?);
    let unordered = b.logical_or(left, right)?;
    let nan = b.add(x, y)?;
    b.select(unordered, nan, next)
}

/// See [`BuildElementwise::isclose`].
///
/// # Errors
/// As the method.
pub fn isclose<B: Builder>(
    b: &mut B,
    x: &B::V,
    y: &B::V,
    equal_nan: bool,
    rtol: f64,
    atol: f64,
) -> Result<B::V> {
    let merged = b.ty(x).dtype.merge(b.ty(y).dtype);
    let working = if !merged.is_inexact() { DType::F64 } else { working_dtype(merged) };
    // Equal values are close without rounding: infinities, and integers beyond the precision of a float.
    let equal = b.equal(x, y)?;
    let (left, right) = (b.as_type(x, working)?, b.as_type(y, working)?);
    let difference = b.subtract(&left, &right)?;
    let difference = b.abs(difference)?;
    let size = b.abs(&right)?;
    let relative = b.multiply(&size, rtol)?;
    let bound = b.add(relative, atol)?;
    let within = b.less_equal(difference, bound)?;
    // The tolerance for an infinite `y` is infinite, so that every value would be within it.
    let finite = b.less(size, f64::INFINITY)?;
    let within = b.logical_and(within, finite)?;
    let close = b.logical_or(equal, within)?;
    if !equal_nan {
        return Ok(close);
    }
    let (left, right) = (b.is_nan(x)?, b.is_nan(y)?);
    let both = b.logical_and(left, right)?;
    b.logical_or(close, both)
}

/// See [`BuildElementwise::nan_to_num`].
///
/// # Errors
/// As the method.
pub fn nan_to_num<B: Builder>(
    b: &mut B,
    x: &B::V,
    nan: f64,
    posinf: Option<f64>,
    neginf: Option<f64>,
) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    match dtype.kind() {
        Kind::Bool | Kind::Unsigned | Kind::Signed => Ok(x.clone()),
        Kind::Float => {
            let is_nan = b.is_nan(x)?;
            let mut result = b.select(is_nan, nan, x)?;
            if dtype.has_infinity() {
                let highest = posinf.map_or(dtype.greatest_finite(), Number::Float);
                let lowest = neginf.map_or(dtype.least_finite(), Number::Float);
                for (infinity, number) in [(f64::INFINITY, highest), (f64::NEG_INFINITY, lowest)] {
                    let is_infinite = b.equal(x, infinity)?;
                    result = b.select(is_infinite, number, result)?;
                }
            }
            Ok(result)
        }
        Kind::Complex => {
            let (real, imag) = (b.real(x)?, b.imag(x)?);
            let real = nan_to_num(b, &real, nan, posinf, neginf)?;
            let imag = nan_to_num(b, &imag, nan, posinf, neginf)?;
            b.complex(real, imag)
        }
    }
}
