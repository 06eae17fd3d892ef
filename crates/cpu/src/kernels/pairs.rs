//! Two simple ops on f32, the second on what the first gives, which never leaves the processor's registers: loops over
//! cheap ops take as long as what they load and store. Each op rounds, as it does by itself.

use std::mem::MaybeUninit;

use defn_core::op::BinaryOp;

use super::Element;
use super::simd::vectorized;

/// An op of `x` and another number.
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
    /// An op of which `x` is the first operand, or the second.
    pub(crate) fn of(op: BinaryOp, is_second: bool) -> Option<Simple> {
        if op == BinaryOp::Add {
            Some(Simple::Plus)
        } else if op == BinaryOp::Multiply {
            Some(Simple::Times)
        } else if op == BinaryOp::Subtract {
            Some(if is_second { Simple::From } else { Simple::Minus })
        } else {
            None
        }
    }
}

/// The other numbers of an op.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Other<'x> {
    /// One for each element.
    Each(&'x [f32]),
    /// One for all of them.
    All(f32),
}

pub(super) const PLUS: u8 = 0;
pub(super) const MINUS: u8 = 1;
pub(super) const FROM: u8 = 2;
pub(super) const TIMES: u8 = 3;

/// The result of an op.
#[inline(always)]
pub(super) fn apply<T: Element, const OP: u8>(x: T, other: T) -> T {
    match OP {
        PLUS => x.plus(other),
        MINUS => x.minus(other),
        FROM => other.minus(x),
        TIMES.. => x.times(other),
    }
}

/// Writes `second(first(x, y), z)` for every element.
pub(crate) fn pair(
    (first, second): (Simple, Simple),
    x: &[f32],
    y: Other<'_>,
    z: Other<'_>,
    out: &mut [MaybeUninit<f32>],
) {
    match first {
        Simple::Plus => of_first::<PLUS>(second, x, y, z, out),
        Simple::Minus => of_first::<MINUS>(second, x, y, z, out),
        Simple::From => of_first::<FROM>(second, x, y, z, out),
        Simple::Times => of_first::<TIMES>(second, x, y, z, out),
    }
}

fn of_first<const A: u8>(
    second: Simple,
    x: &[f32],
    y: Other<'_>,
    z: Other<'_>,
    out: &mut [MaybeUninit<f32>],
) {
    match second {
        Simple::Plus => of_both::<A, PLUS>(x, y, z, out),
        Simple::Minus => of_both::<A, MINUS>(x, y, z, out),
        Simple::From => of_both::<A, FROM>(x, y, z, out),
        Simple::Times => of_both::<A, TIMES>(x, y, z, out),
    }
}

vectorized! {
    /// Writes the result of both for every element.
    fn of_both[const A: u8, const B: u8] of [A, B] (
        x: &[f32],
        y: Other<'_>,
        z: Other<'_>,
        out: &mut [MaybeUninit<f32>],
    ) {
        let of = |x: f32, y: f32, z: f32| apply::<f32, B>(apply::<f32, A>(x, y), z);
        match (y, z) {
            (Other::Each(y), Other::Each(z)) => {
                for (((out, &x), &y), &z) in out.iter_mut().zip(x).zip(y).zip(z) {
                    out.write(of(x, y, z));
                }
            }
            (Other::Each(y), Other::All(z)) => {
                for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
                    out.write(of(x, y, z));
                }
            }
            (Other::All(y), Other::Each(z)) => {
                for ((out, &x), &z) in out.iter_mut().zip(x).zip(z) {
                    out.write(of(x, y, z));
                }
            }
            (Other::All(y), Other::All(z)) => {
                for (out, &x) in out.iter_mut().zip(x) {
                    out.write(of(x, y, z));
                }
            }
        }
    }
}
