//! Gradients of element-wise ops. `g` is the cotangent of the result.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use super::{Site, Vjp};
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::graph::Value;
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::scalar::{Number, Scalar};

/// `y = op(x)`.
pub(super) fn unary(site: &mut Site<'_>, op: UnaryOp, g: Value) -> Result<Vjp> {
    Ok(times_slope(site, op, g)?.map_or(Vjp::Zero, Vjp::one))
}

/// `g` times the slope of `y = op(x)`, which is the rule of both modes: `g` is a cotangent of `y` or a tangent of `x`. None
/// where the slope is zero.
pub(crate) fn times_slope(site: &mut Site<'_>, op: UnaryOp, g: Value) -> Result<Option<Value>> {
    let product = match op {
        UnaryOp::NEGATE => site.graph.negate(g)?,
        UnaryOp::ABS => abs(site, g)?,
        // Flat almost everywhere.
        UnaryOp::SIGN | UnaryOp::FLOOR | UnaryOp::CEIL | UnaryOp::ROUND => return Ok(None),
        UnaryOp::EXP => {
            let y = site.output(0)?;
            site.graph.multiply(g, y)?
        }
        // e^x = y + 1, so that the exponential is not recomputed.
        UnaryOp::EXPM1 => {
            let y = site.output(0)?;
            let exp = site.graph.add(y, 1)?;
            site.graph.multiply(g, exp)?
        }
        UnaryOp::LOG => {
            let x = site.float_input(0)?;
            site.graph.divide(g, x)?
        }
        UnaryOp::LOG1P => {
            let x = site.float_input(0)?;
            let denominator = site.graph.add(x, 1)?;
            site.graph.divide(g, denominator)?
        }
        // y (1 - y) rather than y^2 e^-x, which overflows for very negative x.
        UnaryOp::SIGMOID => {
            let y = site.output(0)?;
            let rest = site.graph.subtract(1, y)?;
            let slope = site.graph.multiply(y, rest)?;
            site.graph.multiply(g, slope)?
        }
        UnaryOp::SIN => {
            let x = site.input(0)?;
            let cos = site.graph.cos(x)?;
            site.graph.multiply(g, cos)?
        }
        UnaryOp::COS => {
            let x = site.input(0)?;
            let sin = site.graph.sin(x)?;
            let contribution = site.graph.multiply(g, sin)?;
            site.graph.negate(contribution)?
        }
        // 1 / cos^2 x = 1 + y^2.
        UnaryOp::TAN => {
            let y = site.output(0)?;
            let square = site.graph.multiply(y, y)?;
            let slope = site.graph.add(square, 1)?;
            site.graph.multiply(g, slope)?
        }
        UnaryOp::SINH => {
            let x = site.input(0)?;
            let cosh = site.graph.cosh(x)?;
            site.graph.multiply(g, cosh)?
        }
        UnaryOp::COSH => {
            let x = site.input(0)?;
            let sinh = site.graph.sinh(x)?;
            site.graph.multiply(g, sinh)?
        }
        UnaryOp::TANH => {
            let y = site.output(0)?;
            let square = site.graph.multiply(y, y)?;
            let slope = site.graph.subtract(1, square)?;
            site.graph.multiply(g, slope)?
        }
        UnaryOp::ASIN => divide_by_root(site, g, |site, square| site.graph.subtract(1, square))?,
        UnaryOp::ACOS => {
            let contribution = divide_by_root(site, g, |site, square| site.graph.subtract(1, square))?;
            site.graph.negate(contribution)?
        }
        UnaryOp::ATAN => {
            let square = square_of_input(site)?;
            let denominator = site.graph.add(square, 1)?;
            site.graph.divide(g, denominator)?
        }
        UnaryOp::ASINH => divide_by_root(site, g, |site, square| site.graph.add(square, 1))?,
        UnaryOp::ACOSH if site.input_ty(0).dtype.is_complex() => {
            // The root of the product would be on the wrong branch in the left half plane.
            let x = site.input(0)?;
            let (above, below) = (site.graph.add(x, 1)?, site.graph.subtract(x, 1)?);
            let (above, below) = (site.graph.sqrt(above)?, site.graph.sqrt(below)?);
            let contribution = site.graph.divide(g, above)?;
            site.graph.divide(contribution, below)?
        }
        UnaryOp::ACOSH => divide_by_root(site, g, |site, square| site.graph.subtract(square, 1))?,
        UnaryOp::ATANH => {
            let square = square_of_input(site)?;
            let denominator = site.graph.subtract(1, square)?;
            site.graph.divide(g, denominator)?
        }
        UnaryOp::SQRT => {
            let y = site.output(0)?;
            let twice = site.graph.multiply(y, 2)?;
            site.graph.divide(g, twice)?
        }
        // x^-1.5 = y^3.
        UnaryOp::RSQRT => {
            let y = site.output(0)?;
            let square = site.graph.multiply(y, y)?;
            let cube = site.graph.multiply(square, y)?;
            let contribution = site.graph.multiply(g, cube)?;
            site.graph.multiply(contribution, -0.5)?
        }
        UnaryOp::CBRT => {
            let y = site.output(0)?;
            let square = site.graph.multiply(y, y)?;
            let denominator = site.graph.multiply(square, 3)?;
            site.graph.divide(g, denominator)?
        }
        UnaryOp::ERF => bell(site, g, FRAC_2_SQRT_PI)?,
        UnaryOp::ERFC => bell(site, g, -FRAC_2_SQRT_PI)?,
        UnaryOp::ERF_INV => {
            let y = site.output(0)?;
            let square = site.graph.multiply(y, y)?;
            let exp = site.graph.exp(square)?;
            let contribution = site.graph.multiply(g, exp)?;
            site.graph.multiply(contribution, PI.sqrt() / 2.0)?
        }
        UnaryOp::CONJUGATE if site.graph.ty(g).dtype.is_complex() => site.graph.conjugate(g)?,
        UnaryOp::CONJUGATE | UnaryOp::REAL => g,
        UnaryOp::IMAG if site.input_ty(0).dtype.is_complex() => {
            // imag(dz) = real(-i dz).
            site.graph.multiply(g, Number::complex(0.0, -1.0))?
        }
        UnaryOp::IMAG
        | UnaryOp::BITWISE_NOT
        | UnaryOp::POPULATION_COUNT
        | UnaryOp::COUNT_LEADING_ZEROS
        | UnaryOp::IS_NAN
        | UnaryOp::IS_INFINITY => return Ok(None),
    };
    Ok(Some(product))
}

/// Slope 1 at 0. For complex numbers the direction away from 0, and 0 at 0.
fn abs(site: &mut Site<'_>, g: Value) -> Result<Value> {
    let x = site.input(0)?;
    if !site.input_ty(0).dtype.is_complex() {
        let ahead = site.graph.greater_equal(x, 0)?;
        let back = site.graph.negate(g)?;
        return site.graph.emit_one(Op::Select, &[ahead, g, back]);
    }
    let y = site.output(0)?;
    let one = site.graph.scalar(Scalar::one(site.output_ty(0).dtype))?;
    let at_zero = site.graph.equal(y, 0)?;
    // conj(0) / 1 is the required 0.
    let length = site.graph.emit_one(Op::Select, &[at_zero, one, y])?;
    let conjugate = site.graph.conjugate(x)?;
    let direction = site.graph.divide(conjugate, length)?;
    site.graph.multiply(g, direction)
}

fn square_of_input(site: &mut Site<'_>) -> Result<Value> {
    let x = site.float_input(0)?;
    site.graph.multiply(x, x)
}

/// `g / sqrt(inside(x^2))`.
fn divide_by_root(
    site: &mut Site<'_>,
    g: Value,
    inside: impl FnOnce(&mut Site<'_>, Value) -> Result<Value>,
) -> Result<Value> {
    let square = square_of_input(site)?;
    let inside = inside(site, square)?;
    let root = site.graph.sqrt(inside)?;
    site.graph.divide(g, root)
}

/// `g * scale * e^(-x^2)`.
fn bell(site: &mut Site<'_>, g: Value, scale: f64) -> Result<Value> {
    let square = square_of_input(site)?;
    let exponent = site.graph.negate(square)?;
    let exp = site.graph.exp(exponent)?;
    let contribution = site.graph.multiply(g, exp)?;
    site.graph.multiply(contribution, scale)
}

/// `y = op(a, b)`.
pub(super) fn binary(site: &mut Site<'_>, op: BinaryOp, g: Value) -> Result<Vjp> {
    let (left, right) = match op {
        BinaryOp::ADD => (site.contribution(0, |_| Ok(g))?, site.contribution(1, |_| Ok(g))?),
        BinaryOp::SUBTRACT => {
            (site.contribution(0, |_| Ok(g))?, site.contribution(1, |site| site.graph.negate(g))?)
        }
        BinaryOp::MULTIPLY => {
            let (a, b) = (site.input(0)?, site.input(1)?);
            let left = site.contribution(0, |site| site.graph.multiply(g, b))?;
            (left, site.contribution(1, |site| site.graph.multiply(g, a))?)
        }
        BinaryOp::DIVIDE => {
            let divisor = site.input(1)?;
            let quotient = site.graph.divide(g, divisor)?;
            let left = site.contribution(0, |_| Ok(quotient))?;
            let right = site.contribution(1, |site| {
                let y = site.output(0)?;
                let contribution = site.graph.multiply(quotient, y)?;
                site.graph.negate(contribution)
            })?;
            (left, right)
        }
        BinaryOp::POW => {
            (site.contribution(0, |site| base(site, g))?, site.contribution(1, |site| exponent(site, g))?)
        }
        BinaryOp::ATAN2 => {
            let (a, b) = (site.float_input(0)?, site.float_input(1)?);
            let (aa, bb) = (site.graph.multiply(a, a)?, site.graph.multiply(b, b)?);
            let norm = site.graph.add(aa, bb)?;
            let scaled = site.graph.divide(g, norm)?;
            let left = site.contribution(0, |site| site.graph.multiply(scaled, b))?;
            let right = site.contribution(1, |site| {
                let contribution = site.graph.multiply(scaled, a)?;
                site.graph.negate(contribution)
            })?;
            (left, right)
        }
        BinaryOp::QUOTIENT => {
            let hint = "use divide, or cut the gradient with stop_grad or custom_grad";
            return Ok(Vjp::Refused { hint });
        }
        BinaryOp::REMAINDER => {
            let (a, b) = (site.input(0)?, site.input(1)?);
            let left = site.contribution(0, |_| Ok(g))?;
            let right = site.contribution(1, |site| {
                let ratio = site.graph.divide(a, b)?;
                let whole = site.graph.floor(ratio)?;
                let contribution = site.graph.multiply(g, whole)?;
                site.graph.negate(contribution)
            })?;
            (left, right)
        }
        BinaryOp::MAX => winner(site, g, BinaryOp::GREATER, BinaryOp::LESS)?,
        BinaryOp::MIN => winner(site, g, BinaryOp::LESS, BinaryOp::GREATER)?,
        BinaryOp::Complex if site.graph.ty(g).dtype.is_complex() => {
            // real(g (da + i db)) = real(g) da - imag(g) db.
            let left = site.contribution(0, |site| site.graph.real(g))?;
            let right = site.contribution(1, |site| {
                let imag = site.graph.imag(g)?;
                site.graph.negate(imag)
            })?;
            (left, right)
        }
        BinaryOp::Complex => (site.contribution(0, |_| Ok(g))?, None),
        BinaryOp::Bitwise(_) | BinaryOp::Comparison(_) | BinaryOp::Logical(_) => return Ok(Vjp::Zero),
    };
    Ok(Vjp::flows([left, right]))
}

/// The value of a constant operand, broadcast or not.
fn number(site: &Site<'_>, input: usize) -> Option<Number> {
    let mut node = site.graph.node(site.inputs[input]);
    if let Op::Broadcast { .. } = &node.op {
        node = site.graph.node(node.inputs[0]);
    }
    if let Op::Constant(scalar) = &node.op { Some(scalar.value()) } else { None }
}

/// `g p x^(p-1)`, and 0 where `p` is 0, whatever `x`.
pub(crate) fn base(site: &mut Site<'_>, g: Value) -> Result<Value> {
    let x = site.float_input(0)?;
    let known = match number(site, 1) {
        Some(Number::Int(p)) => Some(p as f64),
        Some(Number::Huge(p) | Number::Float(p)) => Some(p),
        Some(Number::Bool(_) | Number::Complex(_)) | None => None,
    };
    if let Some(p) = known {
        if p == 0.0 {
            return site.graph.multiply(g, 0);
        }
        let power = site.graph.pow(x, p - 1.0)?;
        let slope = site.graph.multiply(power, p)?;
        return site.graph.multiply(g, slope);
    }
    let p = site.float_input(1)?;
    let one = site.graph.scalar(Scalar::one(site.graph.ty(p).dtype))?;
    let (is_zero, less) = (site.graph.equal(p, 0)?, site.graph.subtract(p, 1)?);
    let exponent = site.graph.emit_one(Op::Select, &[is_zero, one, less])?;
    let power = site.graph.pow(x, exponent)?;
    let slope = site.graph.multiply(p, power)?;
    site.graph.multiply(g, slope)
}

/// `g y log(x)`, with the logarithm taken as 0 where `x` is 0.
pub(crate) fn exponent(site: &mut Site<'_>, g: Value) -> Result<Value> {
    let (x, y) = (site.float_input(0)?, site.output(0)?);
    let one = site.graph.scalar(Scalar::one(site.graph.ty(x).dtype))?;
    let is_zero = site.graph.equal(x, 0)?;
    let safe = site.graph.emit_one(Op::Select, &[is_zero, one, x])?;
    let log = site.graph.log(safe)?;
    let slope = site.graph.multiply(y, log)?;
    site.graph.multiply(g, slope)
}

/// All of `g` to the larger (or smaller) operand, half to each where they are equal.
fn winner(
    site: &mut Site<'_>,
    g: Value,
    left_wins: BinaryOp,
    right_wins: BinaryOp,
) -> Result<(Option<Value>, Option<Value>)> {
    let (a, b) = (site.input(0)?, site.input(1)?);
    let equal = site.graph.equal(a, b)?;
    let half = site.graph.multiply(g, 0.5)?;
    let side = |site: &mut Site<'_>, wins: BinaryOp| {
        let wins = site.graph.emit_one(Op::Binary(wins), &[a, b])?;
        let whole = site.masked(wins, g)?;
        site.graph.emit_one(Op::Select, &[equal, half, whole])
    };
    let left = site.contribution(0, |site| side(site, left_wins))?;
    Ok((left, site.contribution(1, |site| side(site, right_wins))?))
}

/// `(pred, a, b)`: each branch gets `g` where it was selected.
pub(super) fn select(site: &mut Site<'_>, g: Value) -> Result<Vjp> {
    let pred = site.input(0)?;
    let on_true = site.contribution(1, |site| site.masked(pred, g))?;
    let on_false = site.contribution(2, |site| {
        let zero = site.zero_of(g)?;
        site.graph.emit_one(Op::Select, &[pred, zero, g])
    })?;
    Ok(Vjp::flows([None, on_true, on_false]))
}

/// `(x, lo, hi)`: `x` gets `g` where it is within the bounds, boundaries included; elsewhere the bound gets
/// it.
pub(super) fn clip(site: &mut Site<'_>, g: Value) -> Result<Vjp> {
    let (x, lo, hi) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let inside = site.contribution(0, |site| {
        let (above, below) = (site.graph.greater_equal(x, lo)?, site.graph.less_equal(x, hi)?);
        let both = site.graph.logical_and(above, below)?;
        site.masked(both, g)
    })?;
    let low = site.contribution(1, |site| {
        // With lo >= hi the result is hi everywhere.
        let (below, proper) = (site.graph.less(x, lo)?, site.graph.less(lo, hi)?);
        let both = site.graph.logical_and(below, proper)?;
        site.masked(both, g)
    })?;
    let high = site.contribution(2, |site| {
        let above = site.graph.greater(x, hi)?;
        site.masked(above, g)
    })?;
    Ok(Vjp::flows([inside, low, high]))
}
