//! Logarithms to a base, and division with Python's semantics.

use super::working_dtype;
use crate::builder::{Arg, BuildControl, BuildElementwise, BuildShape, Builder};
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};
use crate::op::Domain;
use crate::scalar::Number;
use crate::shape::Axes;

/// See [`BuildElementwise::log_base`].
///
/// # Errors
/// As the method.
pub fn log_base<B: Builder>(b: &mut B, x: Arg<B::V>, base: Arg<B::V>) -> Result<B::V> {
    match base {
        Arg::Value(base) => {
            let (x, base) = b.weak_pair("log", x, base)?;
            let (log, base) = (b.log(x)?, b.log(base)?);
            b.divide(log, base)
        }
        Arg::Number(Number::Complex(base)) => {
            let log = b.log(x)?;
            b.divide(log, Number::Complex(base.ln()))
        }
        Arg::Number(base @ (Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_))) => {
            let value = base.to_f64();
            if value.is_nan() || value <= 0.0 || value == 1.0 {
                let (option, given) = ("base", value.to_string());
                let required = "a number above 0 other than 1".to_owned();
                return Err(ErrorKind::OptionValue { op: "log", option, given, required }.into());
            }
            let log = b.log(x)?;
            b.divide(log, value.ln())
        }
    }
}

/// Both operands in their merged dtype, and that dtype. `op` is for the message.
fn merged<B: Builder>(b: &mut B, op: &'static str, x: &B::V, y: &B::V) -> Result<(B::V, B::V, DType)> {
    let (left, right) = (b.ty(x), b.ty(y));
    let dtype = left.dtype.merge(right.dtype);
    if dtype.is_bool() {
        let (required, hint) = (Domain::RealNumber.text(), "; convert with as_type");
        return Err(ErrorKind::OperandsDType { op, left, right, required, hint }.into());
    }
    if dtype.is_complex() {
        let required = Domain::RealNumber.text();
        return Err(ErrorKind::OperandsDType {
            op,
            left,
            right,
            required,
            hint: "; take real, imag or abs first",
        }
        .into());
    }
    let shape = left.shape.broadcast_with(op, &right.shape)?;
    let (x, y) = (b.as_type(x, dtype)?, b.as_type(y, dtype)?);
    // Predicates of the divisor select elements of the result. They must be scalars or have its shape.
    let y =
        if !dtype.is_inexact() || right.shape.rank() == 0 { y } else { b.broadcast(y, shape, Axes::All)? };
    Ok((x, y, dtype))
}

/// True where a nonzero remainder and the divisor have different signs.
fn signs_differ<B: Builder>(b: &mut B, remainder: &B::V, divisor: &B::V) -> Result<B::V> {
    let (left, right) = (b.less(remainder, 0)?, b.less(divisor, 0)?);
    let differ = b.not_equal(left, right)?;
    let some = b.not_equal(remainder, 0)?;
    b.logical_and(some, differ)
}

/// See [`BuildElementwise::floor_divide`].
///
/// # Errors
/// As the method.
pub fn floor_divide<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let (x, y, dtype) = merged(b, "floor_divide", x, y)?;
    floored_quotient(b, &x, &y, dtype)
}

/// See [`BuildElementwise::divmod`].
///
/// # Errors
/// As the method.
pub fn divmod<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<(B::V, B::V)> {
    let (x, y, dtype) = merged(b, "divmod", x, y)?;
    Ok((floored_quotient(b, &x, &y, dtype)?, floored_remainder(b, &x, &y, dtype)?))
}

/// The quotient, rounded down, of operands in their merged dtype.
fn floored_quotient<B: Builder>(b: &mut B, x: &B::V, y: &B::V, dtype: DType) -> Result<B::V> {
    match dtype.kind() {
        Kind::Bool | Kind::Unsigned => b.quotient(x, y),
        Kind::Signed => {
            let quotient = b.quotient(x, y)?;
            let remainder = b.remainder(x, y)?;
            let down = signs_differ(b, &remainder, y)?;
            b.subtract(quotient, down)
        }
        Kind::Float | Kind::Complex => floor_divide_floats(b, x, y, dtype),
    }
}

/// Divides `x - remainder`, whose quotient is an integer except for rounding. `floor(x / y)` would be one too high
/// where `x / y` rounds up to an integer.
fn floor_divide_floats<B: Builder>(b: &mut B, x: &B::V, y: &B::V, dtype: DType) -> Result<B::V> {
    let working = working_dtype(dtype);
    let (x, y) = (b.as_type(x, working)?, b.as_type(y, working)?);
    // The result is constant almost everywhere, and the division by zero must not produce a gradient.
    let (x, y) = (b.stop_grad(x)?, b.stop_grad(y)?);
    let ratio = b.divide(&x, &y)?;
    let remainder = b.remainder(&x, &y)?;
    let whole = b.subtract(&x, &remainder)?;
    let quotient = b.divide(whole, &y)?;
    let down = signs_differ(b, &remainder, &y)?;
    let quotient = b.subtract(quotient, down)?;
    let floor = b.floor(&quotient)?;
    let rest = b.subtract(&quotient, &floor)?;
    let up = b.greater(rest, 0.5)?;
    let floor = b.add(floor, up)?;
    // A zero has the sign of the exact quotient; a division by zero results in an infinity or NaN.
    let signed_zero = b.multiply(&ratio, 0.0)?;
    let is_zero = b.equal(&quotient, 0)?;
    let floor = b.select(is_zero, signed_zero, floor)?;
    let by_zero = b.equal(&y, 0)?;
    let floor = b.select(by_zero, ratio, floor)?;
    b.as_type(floor, dtype)
}

/// See [`BuildElementwise::floor_modulo`].
///
/// # Errors
/// As the method.
pub fn floor_modulo<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let (x, y, dtype) = merged(b, "floor_modulo", x, y)?;
    floored_remainder(b, &x, &y, dtype)
}

/// The remainder of [`floored_quotient`].
fn floored_remainder<B: Builder>(b: &mut B, x: &B::V, y: &B::V, dtype: DType) -> Result<B::V> {
    let remainder = b.remainder(x, y)?;
    match dtype.kind() {
        Kind::Bool | Kind::Unsigned => Ok(remainder),
        Kind::Signed => {
            let up = signs_differ(b, &remainder, y)?;
            let divisor = b.multiply(up, y)?;
            b.add(remainder, divisor)
        }
        Kind::Float | Kind::Complex => {
            let up = signs_differ(b, &remainder, y)?;
            // The gradient of `remainder` is already that of the floored remainder; this step must not contribute.
            let divisor = b.stop_grad(y)?;
            let moved = b.add(&remainder, divisor)?;
            let modulo = b.select(up, moved, remainder)?;
            // Gives a zero the sign of the divisor and leaves all other values unchanged, with slope 1: `0 - (0 - m)`
            // is `+0` for both zeros, and `-(0 - m)` is `-0`.
            let mirrored = b.subtract(0, modulo)?;
            let positive = b.subtract(0, &mirrored)?;
            let negative = b.negate(mirrored)?;
            let is_negative = b.less(y, 0)?;
            b.select(is_negative, negative, positive)
        }
    }
}
