//! What optimizers compute of one parameter: moving averages of gradients, and the directions of steps.
//!
//! Elements are computed in f32, in f64 if an operand has 64 bits, and for complex numbers in their dtype.

use crate::builder::{BuildElementwise, Builder};
use crate::compose::working_dtype;
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};

/// The operands in the dtype of the computation, and the dtype of the result. Their shapes are equal: a gradient that
/// broadcasts with a moment is a mistake.
fn operands<B: Builder, const N: usize>(
    b: &mut B,
    op: &'static str,
    values: [&B::V; N],
) -> Result<([B::V; N], DType)> {
    let types = values.map(|value| b.ty(value));
    let shape = &types[0].shape;
    for got in &types[1..] {
        if got.shape.sizes() != shape.sizes() {
            let (what, got, shape) = ("the state", got.clone(), shape.clone());
            return Err(ErrorKind::StateShape { op, what, got, shape }.into());
        }
    }
    let dtype = types[1..].iter().fold(types[0].dtype, |dtype, ty| dtype.merge(ty.dtype)).to_float();
    let complex = dtype.kind() == Kind::Complex;
    let mut given = Vec::with_capacity(N);
    for (value, ty) in values.iter().zip(&types) {
        // Squares of absolute values are real beside complex gradients.
        let own = ty.dtype.to_float();
        let real = complex && own.kind() != Kind::Complex;
        let dtype = if real { dtype.to_real() } else { dtype };
        given.push(b.as_type(*value, working_dtype(dtype))?);
    }
    Ok((given.try_into().unwrap_or_else(|_| unreachable!("as many operands as values")), dtype))
}

/// `decay * mean + (1 - decay) * x`.
///
/// # Errors
/// Operands of different shapes.
pub fn moving_mean<B: Builder>(b: &mut B, x: &B::V, mean: &B::V, decay: f64) -> Result<B::V> {
    let ([x, mean], dtype) = operands(b, "moving_mean", [x, mean])?;
    let value = mixed(b, x, mean, decay)?;
    b.as_type(value, dtype)
}

/// `decay * square + (1 - decay) * |x|^2`, which is real.
///
/// # Errors
/// Operands of different shapes.
pub fn moving_square<B: Builder>(b: &mut B, x: &B::V, square: &B::V, decay: f64) -> Result<B::V> {
    let ([x, square], dtype) = operands(b, "moving_square", [x, square])?;
    let own = squared(b, &x)?;
    let square = if b.ty(&square).dtype.kind() == Kind::Complex { b.real(square)? } else { square };
    let value = mixed(b, own, square, decay)?;
    b.as_type(value, dtype.to_real())
}

/// `(mean / (1 - b1^count)) / (sqrt(square / (1 - b2^count) + eps_root) + eps)`: a step of Adam, without its length.
///
/// Kingma & Ba, "Adam: a method for stochastic optimization" (2014).
///
/// # Errors
/// Operands of different shapes.
pub fn adam_direction<B: Builder>(
    b: &mut B,
    mean: &B::V,
    square: &B::V,
    count: &B::V,
    [b1, b2, eps, eps_root]: [f64; 4],
) -> Result<B::V> {
    let ([mean, square], dtype) = operands(b, "adam_direction", [mean, square])?;
    let (first, second) = (weight(b, count, &square, b1)?, weight(b, count, &square, b2)?);
    let square = b.divide(square, second)?;
    let square = if eps_root == 0.0 { square } else { b.add(square, eps_root)? };
    let root = b.sqrt(square)?;
    let root = b.add(root, eps)?;
    let root = b.multiply(root, first)?;
    let value = b.divide(mean, root)?;
    b.as_type(value, dtype)
}

/// `b1 * mean / (1 - b1^(count + 1)) + (1 - b1) * x / (1 - b1^count)`: the average of Adam a step ahead.
///
/// Dozat, "Incorporating Nesterov momentum into Adam" (2016).
///
/// # Errors
/// Operands of different shapes.
pub fn adam_ahead<B: Builder>(b: &mut B, x: &B::V, mean: &B::V, count: &B::V, b1: f64) -> Result<B::V> {
    let ([x, mean], dtype) = operands(b, "adam_ahead", [x, mean])?;
    let own = weight(b, count, &x, b1)?;
    let count = b.as_type(count, DType::F64)?;
    let next = b.add(count, 1)?;
    let next = weight(b, &next, &x, b1)?;
    let (x, mean) = (b.divide(x, own)?, b.divide(mean, next)?);
    let value = mixed(b, x, mean, b1)?;
    b.as_type(value, dtype)
}

/// `x / sqrt(square + eps)`, or `x / (sqrt(square) + eps)`: a step of RMSProp, without its length.
///
/// Tieleman & Hinton, "Lecture 6.5: rmsprop" (2012).
///
/// # Errors
/// Operands of different shapes.
pub fn rms_direction<B: Builder>(
    b: &mut B,
    x: &B::V,
    square: &B::V,
    eps: f64,
    eps_in_sqrt: bool,
) -> Result<B::V> {
    let ([x, square], dtype) = operands(b, "rms_direction", [x, square])?;
    let root = if eps_in_sqrt {
        let square = b.add(square, eps)?;
        b.sqrt(square)?
    } else {
        let root = b.sqrt(square)?;
        b.add(root, eps)?
    };
    let value = b.divide(x, root)?;
    b.as_type(value, dtype)
}

/// `x + decay * trace`.
///
/// # Errors
/// Operands of different shapes.
pub fn momentum<B: Builder>(b: &mut B, x: &B::V, trace: &B::V, decay: f64) -> Result<B::V> {
    let ([x, trace], dtype) = operands(b, "momentum", [x, trace])?;
    let kept = b.multiply(trace, decay)?;
    let value = b.add(x, kept)?;
    b.as_type(value, dtype)
}

fn mixed<B: Builder>(b: &mut B, x: B::V, mean: B::V, decay: f64) -> Result<B::V> {
    let (kept, new) = (b.multiply(mean, decay)?, b.multiply(x, 1.0 - decay)?);
    b.add(kept, new)
}

/// `|x|^2`, without a root in between.
fn squared<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.kind() != Kind::Complex {
        return b.multiply(x, x);
    }
    let (real, imaginary) = (b.real(x)?, b.imag(x)?);
    let (real, imaginary) = (b.multiply(&real, &real)?, b.multiply(&imaginary, &imaginary)?);
    b.add(real, imaginary)
}

/// `1 - decay^count`, the sum of the weights of so many gradients, in the dtype of `like`. Without cancellation: near 1 a
/// power would lose most digits.
fn weight<B: Builder>(b: &mut B, count: &B::V, like: &B::V, decay: f64) -> Result<B::V> {
    let dtype = b.ty(like).dtype.to_real();
    let count = b.as_type(count, dtype)?;
    let exponent = b.multiply(count, decay.ln())?;
    let weight = b.expm1(exponent)?;
    b.negate(weight)
}
