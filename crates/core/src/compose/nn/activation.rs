//! Activations. At a kink the derivative is that of the branch which the comparison selects.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use crate::builder::{BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::compose::{derived, of_real};
use crate::error::{ErrorKind, Result};
use crate::shape::AxisRef;

/// See [`BuildNn::relu`](crate::builder::BuildNn::relu).
///
/// # Errors
/// As the method.
pub fn relu<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    // Selected rather than a maximum, whose gradient would be one half at 0. NaN stays NaN.
    of_real(b, "relu", x, |b, x| {
        let is_below = b.less_equal(x, 0)?;
        b.select(is_below, 0, x)
    })
}

/// See [`BuildNn::relu6`](crate::builder::BuildNn::relu6).
///
/// # Errors
/// As the method.
pub fn relu6<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "relu6", x, up_to_six)
}

/// `x` between 0 and 6, flat at both ends.
fn up_to_six<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let (is_below, is_above) = (b.less_equal(x, 0)?, b.greater_equal(x, 6)?);
    let x = b.select(is_above, 6, x)?;
    b.select(is_below, 0, x)
}

/// See [`BuildNn::leaky_relu`](crate::builder::BuildNn::leaky_relu).
///
/// # Errors
/// As the method.
pub fn leaky_relu<B: Builder>(b: &mut B, x: &B::V, negative_slope: f64) -> Result<B::V> {
    of_real(b, "leaky_relu", x, |b, x| {
        let is_kept = b.greater_equal(x, 0)?;
        let scaled = b.multiply(x, negative_slope)?;
        b.select(is_kept, x, scaled)
    })
}

/// See [`BuildNn::elu`](crate::builder::BuildNn::elu).
///
/// # Errors
/// As the method.
pub fn elu<B: Builder>(b: &mut B, x: &B::V, alpha: f64) -> Result<B::V> {
    of_real(b, "elu", x, |b, x| with_exponential(b, x, alpha, 1.0))
}

/// `x` where it is positive, else `alpha * (exp(x / width) - 1)`.
fn with_exponential<B: Builder>(b: &mut B, x: &B::V, alpha: f64, width: f64) -> Result<B::V> {
    let is_kept = b.greater(x, 0)?;
    // The exponential of what is kept may overflow, and its derivative with it.
    let below = b.select(&is_kept, 0, x)?;
    let below = if width == 1.0 { below } else { b.divide(below, width)? };
    let exponential = b.expm1(below)?;
    let scaled = b.multiply(exponential, alpha)?;
    b.select(is_kept, x, scaled)
}

/// The fixed point of the mean 0 and the variance 1: Klambauer, Unterthiner, Mayr & Hochreiter, "Self-normalizing
/// neural networks" (2017), equation 14.
const SELU_ALPHA: f64 = 1.673_263_242_354_377_3;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// See [`BuildNn::selu`](crate::builder::BuildNn::selu).
///
/// # Errors
/// As the method.
pub fn selu<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "selu", x, |b, x| {
        let value = with_exponential(b, x, SELU_ALPHA, 1.0)?;
        b.multiply(value, SELU_SCALE)
    })
}

/// See [`BuildNn::celu`](crate::builder::BuildNn::celu).
///
/// # Errors
/// As the method.
pub fn celu<B: Builder>(b: &mut B, x: &B::V, alpha: f64) -> Result<B::V> {
    if alpha == 0.0 || alpha.is_nan() {
        let (option, given, required) = ("alpha", alpha.to_string(), "a number other than 0".to_owned());
        return Err(ErrorKind::OptionValue { op: "celu", option, given, required }.into());
    }
    of_real(b, "celu", x, |b, x| with_exponential(b, x, alpha, alpha))
}

/// The coefficient of the cube in the argument of the tangent: Hendrycks & Gimpel, "Gaussian error linear units" (2016).
const GELU_CUBE: f64 = 0.044_715;

/// Where the approximation's sigmoid is exactly 0 or 1 in f64.
const GELU_FLAT: f64 = 64.0;

/// See [`BuildNn::gelu`](crate::builder::BuildNn::gelu).
///
/// # Errors
/// As the method.
pub fn gelu<B: Builder>(b: &mut B, x: &B::V, approximate: bool) -> Result<B::V> {
    of_real(b, "gelu", x, |b, x| {
        let gate = if approximate { gelu_sigmoid(b, x)? } else { normal_distribution(b, x)? };
        b.multiply(x, gate)
    })
}

/// The distribution function of the standard normal distribution, without cancellation at negative numbers.
fn normal_distribution<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let place = b.multiply(x, -FRAC_1_SQRT_2)?;
    let value = b.erfc(place)?;
    b.multiply(value, 0.5)
}

/// `(1 + tanh(u)) / 2` as `sigmoid(2 u)`, which does not cancel at negative numbers. The cube of a large operand would
/// overflow.
fn gelu_sigmoid<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let x = b.clip(x, -GELU_FLAT, GELU_FLAT)?;
    let square = b.multiply(&x, &x)?;
    let scale = SQRT_2 * FRAC_2_SQRT_PI;
    let cubic = b.multiply(square, scale * GELU_CUBE)?;
    let factor = b.add(cubic, scale)?;
    let place = b.multiply(x, factor)?;
    b.sigmoid(place)
}

/// See [`BuildNn::silu`](crate::builder::BuildNn::silu).
///
/// # Errors
/// As the method.
pub fn silu<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "silu", x, |b, x| {
        let gate = b.sigmoid(x)?;
        b.multiply(x, gate)
    })
}

/// See [`BuildNn::softplus`](crate::builder::BuildNn::softplus).
///
/// # Errors
/// As the method.
pub fn softplus<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "softplus", x, log_of_one_and_exp)
}

/// `log(1 + exp(x))` without overflow.
pub(super) fn log_of_one_and_exp<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let zero = b.constant(b.ty(x).dtype, 0)?;
    derived::logaddexp(b, x, &zero)
}

/// See [`BuildNn::softsign`](crate::builder::BuildNn::softsign).
///
/// # Errors
/// As the method.
pub fn softsign<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "softsign", x, |b, x| {
        let size = b.abs(x)?;
        let divisor = b.add(size, 1)?;
        b.divide(x, divisor)
    })
}

/// See [`BuildNn::hard_tanh`](crate::builder::BuildNn::hard_tanh).
///
/// # Errors
/// As the method.
pub fn hard_tanh<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "hard_tanh", x, |b, x| {
        let (is_below, is_above) = (b.less(x, -1)?, b.greater(x, 1)?);
        let x = b.select(is_above, 1, x)?;
        b.select(is_below, -1, x)
    })
}

/// See [`BuildNn::hard_sigmoid`](crate::builder::BuildNn::hard_sigmoid).
///
/// # Errors
/// As the method.
pub fn hard_sigmoid<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "hard_sigmoid", x, hard_gate)
}

/// The piecewise linear form of the sigmoid.
fn hard_gate<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let moved = b.add(x, 3)?;
    let six = up_to_six(b, &moved)?;
    b.divide(six, 6)
}

/// See [`BuildNn::hard_silu`](crate::builder::BuildNn::hard_silu).
///
/// # Errors
/// As the method.
pub fn hard_silu<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "hard_silu", x, |b, x| {
        let gate = hard_gate(b, x)?;
        b.multiply(x, gate)
    })
}

/// See [`BuildNn::log_sigmoid`](crate::builder::BuildNn::log_sigmoid).
///
/// # Errors
/// As the method.
pub fn log_sigmoid<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "log_sigmoid", x, |b, x| {
        let opposite = b.negate(x)?;
        let value = log_of_one_and_exp(b, &opposite)?;
        b.negate(value)
    })
}

/// See [`BuildNn::mish`](crate::builder::BuildNn::mish).
///
/// # Errors
/// As the method.
pub fn mish<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "mish", x, |b, x| {
        let place = log_of_one_and_exp(b, x)?;
        let gate = b.tanh(place)?;
        b.multiply(x, gate)
    })
}

/// See [`BuildNn::glu`](crate::builder::BuildNn::glu).
///
/// # Errors
/// As the method.
pub fn glu<B: Builder>(b: &mut B, x: &B::V, axis: &AxisRef) -> Result<B::V> {
    let ty = b.ty(x);
    let size = ty.shape[ty.shape.resolve("glu", axis)?];
    if !size.is_multiple_of(2) {
        let required = "an even size is required on the axis that is halved";
        return Err(ErrorKind::Rank { op: "glu", got: ty, required }.into());
    }
    of_real(b, "glu", x, |b, x| {
        let half = (size / 2) as i64;
        let value = b.slice_along_axis(x, 0, half, axis.clone(), 1)?;
        let gate = b.slice_along_axis(x, half, half, axis.clone(), 1)?;
        let gate = b.sigmoid(gate)?;
        b.multiply(value, gate)
    })
}
