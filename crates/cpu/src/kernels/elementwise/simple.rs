//! Simple ops of an element and a second number.

use defn_core::op::BinaryOp;

use crate::kernels::Element;

/// An op of `x` and a second number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simple {
    /// `x + other`
    Plus,
    /// `x - other`
    Minus,
    /// `other - x`
    From,
    /// `x * other`
    Times,
}

impl Simple {
    /// The op with `x` as its first or second operand.
    pub(crate) fn of(op: BinaryOp, is_second: bool) -> Option<Simple> {
        match op {
            BinaryOp::ADD => Some(Simple::Plus),
            BinaryOp::MULTIPLY => Some(Simple::Times),
            BinaryOp::SUBTRACT => Some(if is_second { Simple::From } else { Simple::Minus }),
            BinaryOp::Arithmetic(_)
            | BinaryOp::Comparison(_)
            | BinaryOp::Logical(_)
            | BinaryOp::Bitwise(_)
            | BinaryOp::Complex => None,
        }
    }
}

pub(crate) const PLUS: u8 = 0;
pub(crate) const MINUS: u8 = 1;
pub(crate) const FROM: u8 = 2;
pub(crate) const TIMES: u8 = 3;

/// The result of an op.
#[inline(always)]
pub(crate) fn apply<T: Element, const OP: u8>(x: T, other: T) -> T {
    match OP {
        PLUS => x.plus(other),
        MINUS => x.minus(other),
        FROM => other.minus(x),
        TIMES.. => x.times(other),
    }
}
