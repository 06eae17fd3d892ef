//! Tangents of element-wise ops. `t` are the tangents of the operands.

use crate::builder::{BuildElementwise, Builder};
use crate::error::{ErrorKind, Result};
use crate::grad::matrix::sum;
use crate::grad::{Site, elementwise};
use crate::graph::Value;
use crate::op::{BinaryOp, Op, UnaryOp};

/// `y = op(x)`: the product with the slope, as in reverse. The Jacobian is diagonal, so that it is its own transpose.
pub(super) fn unary(site: &mut Site<'_>, op: UnaryOp, t: &[Option<Value>]) -> Result<Option<Value>> {
    let Some(t) = t[0] else { return Ok(None) };
    elementwise::times_slope(site, op, t)
}

/// `y = op(a, b)`.
pub(super) fn binary(site: &mut Site<'_>, op: BinaryOp, t: &[Option<Value>]) -> Result<Option<Value>> {
    let (left, right) = (t[0], t[1]);
    let terms = match op {
        BinaryOp::ADD => [left, right],
        BinaryOp::SUBTRACT => return difference(site, left, right).map(Some),
        BinaryOp::MULTIPLY => products(site, left, right)?,
        BinaryOp::DIVIDE => return divide(site, left, right).map(Some),
        BinaryOp::POW => [
            left.map(|t| elementwise::base(site, t)).transpose()?,
            right.map(|t| elementwise::exponent(site, t)).transpose()?,
        ],
        BinaryOp::ATAN2 => return atan2(site, left, right).map(Some),
        BinaryOp::QUOTIENT => {
            let hint = "use divide, or cut the gradient with stop_grad or custom_grad";
            return Err(ErrorKind::NoGradient { op: op.name(), hint }.into());
        }
        BinaryOp::REMAINDER => return remainder(site, left, right).map(Some),
        BinaryOp::MAX => [winner(site, left, right, [BinaryOp::GREATER, BinaryOp::LESS])?, None],
        BinaryOp::MIN => [winner(site, left, right, [BinaryOp::LESS, BinaryOp::GREATER])?, None],
        BinaryOp::Complex => {
            let parts = super::all(site, t)?;
            [Some(site.graph.emit_one(Op::Binary(op), &parts)?), None]
        }
        BinaryOp::Bitwise(_) | BinaryOp::Comparison(_) | BinaryOp::Logical(_) => [None, None],
    };
    sum(site.graph, terms)
}

fn difference(site: &mut Site<'_>, left: Option<Value>, right: Option<Value>) -> Result<Value> {
    match (left, right) {
        (Some(left), Some(right)) => site.graph.subtract(left, right),
        (Some(left), None) => Ok(left),
        (None, right) => site.graph.negate(right.expect("a tangent is there")),
    }
}

/// `left * b` and `right * a`.
fn products(site: &mut Site<'_>, left: Option<Value>, right: Option<Value>) -> Result<[Option<Value>; 2]> {
    let (a, b) = (site.input(0)?, site.input(1)?);
    Ok([
        left.map(|t| site.graph.multiply(t, b)).transpose()?,
        right.map(|t| site.graph.multiply(a, t)).transpose()?,
    ])
}

/// `(left - y right) / b`.
fn divide(site: &mut Site<'_>, left: Option<Value>, right: Option<Value>) -> Result<Value> {
    let (b, y) = (site.input(1)?, site.output(0)?);
    let right = right.map(|t| site.graph.multiply(y, t)).transpose()?;
    let numerator = difference(site, left, right)?;
    site.graph.divide(numerator, b)
}

/// `(left b - right a) / (a^2 + b^2)`.
fn atan2(site: &mut Site<'_>, left: Option<Value>, right: Option<Value>) -> Result<Value> {
    let (a, b) = (site.float_input(0)?, site.float_input(1)?);
    let (aa, bb) = (site.graph.multiply(a, a)?, site.graph.multiply(b, b)?);
    let norm = site.graph.add(aa, bb)?;
    let [left, right] = products(site, left, right)?;
    let numerator = difference(site, left, right)?;
    site.graph.divide(numerator, norm)
}

/// `left - right floor(a / b)`.
fn remainder(site: &mut Site<'_>, left: Option<Value>, right: Option<Value>) -> Result<Value> {
    let right = match right {
        Some(t) => {
            let (a, b) = (site.input(0)?, site.input(1)?);
            let ratio = site.graph.divide(a, b)?;
            let whole = site.graph.floor(ratio)?;
            Some(site.graph.multiply(t, whole)?)
        }
        None => None,
    };
    difference(site, left, right)
}

/// The tangent of the operand that wins its comparison, half of each where the operands are equal. Neither wins against
/// a NaN.
fn winner(
    site: &mut Site<'_>,
    left: Option<Value>,
    right: Option<Value>,
    [left_wins, right_wins]: [BinaryOp; 2],
) -> Result<Option<Value>> {
    let (a, b) = (site.input(0)?, site.input(1)?);
    let Some(both) = sum(site.graph, [left, right])? else { return Ok(None) };
    let mut chosen = site.zero_of(both)?;
    for (tangent, wins) in [(right, right_wins), (left, left_wins)] {
        let Some(tangent) = tangent else { continue };
        let wins = site.graph.emit_one(Op::Binary(wins), &[a, b])?;
        chosen = site.graph.emit_one(Op::Select, &[wins, tangent, chosen])?;
    }
    let equal = site.graph.equal(a, b)?;
    let half = site.graph.multiply(both, 0.5)?;
    site.graph.emit_one(Op::Select, &[equal, half, chosen]).map(Some)
}

/// `(pred, a, b)`: the tangent of the branch that was selected.
pub(super) fn select(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Option<Value>> {
    let Some(some) = t[1].or(t[2]) else { return Ok(None) };
    let (pred, zero) = (site.input(0)?, site.zero_of(some)?);
    site.graph.emit_one(Op::Select, &[pred, t[1].unwrap_or(zero), t[2].unwrap_or(zero)]).map(Some)
}

/// `(x, lo, hi)`: the tangent of `x` where it is within the bounds, boundaries included; elsewhere that of the bound.
pub(super) fn clip(site: &mut Site<'_>, t: &[Option<Value>]) -> Result<Option<Value>> {
    let (x, lo, hi) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let inside = match t[0] {
        Some(t) => {
            let (above, below) = (site.graph.greater_equal(x, lo)?, site.graph.less_equal(x, hi)?);
            let both = site.graph.logical_and(above, below)?;
            Some(site.masked(both, t)?)
        }
        None => None,
    };
    let low = match t[1] {
        Some(t) => {
            // With lo >= hi the result is hi everywhere.
            let (below, proper) = (site.graph.less(x, lo)?, site.graph.less(lo, hi)?);
            let both = site.graph.logical_and(below, proper)?;
            Some(site.masked(both, t)?)
        }
        None => None,
    };
    let high = match t[2] {
        Some(t) => {
            let above = site.graph.greater(x, hi)?;
            Some(site.masked(above, t)?)
        }
        None => None,
    };
    sum(site.graph, [inside, low, high])
}
