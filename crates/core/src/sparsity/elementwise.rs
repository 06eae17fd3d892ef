//! Sets of element-wise ops.

use std::ops::Range;

use super::sets::{EMPTY, Id};
use super::{Dependence, Site, axes};
use crate::error::Result;
use crate::op::{ArithmeticOp, BinaryOp, PartOp, SignOp, UnaryOp};

/// `y = op(x)`: none where the slope is zero.
pub(super) fn unary(site: &Site<'_, '_, '_>, op: UnaryOp) -> Dependence {
    match op {
        UnaryOp::Sign(SignOp::Sign) | UnaryOp::Rounding(_) | UnaryOp::Bits(_) | UnaryOp::Test(_) => None,
        // The imaginary part of a real number.
        UnaryOp::Part(PartOp::Imag) if !site.input_type(0).dtype.is_complex() => None,
        UnaryOp::Sign(SignOp::Negate | SignOp::Abs)
        | UnaryOp::Function(_)
        | UnaryOp::Part(PartOp::Conjugate | PartOp::Real | PartOp::Imag) => site.inputs[0].clone(),
    }
}

/// `y = op(a, b)`.
pub(super) fn binary(site: &mut Site<'_, '_, '_>, op: BinaryOp) -> Dependence {
    match op {
        BinaryOp::Arithmetic(
            ArithmeticOp::Add
            | ArithmeticOp::Subtract
            | ArithmeticOp::Multiply
            | ArithmeticOp::Divide
            | ArithmeticOp::Pow
            | ArithmeticOp::Atan2
            | ArithmeticOp::Quotient
            | ArithmeticOp::Remainder
            | ArithmeticOp::Max
            | ArithmeticOp::Min,
        )
        | BinaryOp::Complex => union(site, 0..2),
        BinaryOp::Bitwise(_) | BinaryOp::Comparison(_) | BinaryOp::Logical(_) => None,
    }
}

/// The union of some operands, broadcast to the result.
pub(super) fn union(site: &mut Site<'_, '_, '_>, operands: Range<usize>) -> Dependence {
    let to = site.output_sizes(0);
    let mut found: Option<Vec<Id>> = None;
    let given: Vec<usize> = operands.filter(|&operand| site.inputs[operand].is_some()).collect();
    if let [only] = given[..]
        && site.input_sizes(only) == to
    {
        return site.inputs[only].clone();
    }
    for operand in given {
        let x = axes::broadcast(&site.all(operand), site.input_sizes(operand), to);
        match &mut found {
            Some(found) => axes::unite(&mut site.analysis.sets, found, &x),
            None => found = Some(x),
        }
    }
    found.map(Into::into)
}

/// `(pred, a, b)`: the operand that is chosen, where the predicate is known.
pub(super) fn select(site: &mut Site<'_, '_, '_>) -> Result<Dependence> {
    if site.inputs[1].is_none() && site.inputs[2].is_none() {
        return Ok(None);
    }
    let Some(known) = site.value(0) else { return Ok(union(site, 1..3)) };
    let (truths, to) = (known.truths()?, site.output_sizes(0));
    let numbers: Vec<Id> = truths.into_iter().map(Id::from).collect();
    let chosen = axes::broadcast(&numbers, site.input_sizes(0), to);
    let a = axes::broadcast(&site.all(1), site.input_sizes(1), to);
    let b = axes::broadcast(&site.all(2), site.input_sizes(2), to);
    let found =
        chosen.iter().zip(a.iter().zip(&b)).map(|(&chosen, (&a, &b))| if chosen == EMPTY { b } else { a });
    Ok(Some(found.collect()))
}
