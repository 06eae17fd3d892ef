//! Quotients and powers of integers.

use defn_core::DType;

use super::{Elements, is_signed};
use crate::compiler::ir::{Cmp, Op, Val};

impl Elements {
    /// The quotient, towards zero.
    pub(super) fn quotient(&mut self, a: Val, b: Val, dtype: DType) -> Val {
        self.b.op(if is_signed(dtype) { Op::DivS } else { Op::DivU }, [a, b])
    }

    /// `a` to the power of `b`, which is read as unsigned, by squares.
    ///
    /// Bits of the exponent beyond the width of the type would not change the result: the power of an odd number to
    /// `2^k` is 1 for such `k`, and that of an even number 0.
    pub(super) fn power(&mut self, a: Val, b: Val) -> Val {
        let elem = self.b.ty(a).elem;
        let [zero, one] = [0, 1].map(|number| self.number(elem, number));
        if let Some(exponent) = self.b.constant_bits(b) {
            return self.power_of_known(a, exponent);
        }
        let is_vector = self.b.ty(a).is_vector || self.b.ty(b).is_vector;
        let carried = [(one, is_vector), (a, is_vector), (b, self.b.ty(b).is_vector)];
        let (_, carries) = self.b.begin_loop(None, &carried);
        let &[power, square, left] = carries.as_slice() else { unreachable!("three are carried") };
        let is_left = self.b.compare(Cmp::Ne, left, zero);
        let goes_on = if self.b.ty(is_left).is_vector { self.b.any(is_left) } else { is_left };
        self.b.while_(goes_on);
        let is_odd = self.b.test(left, one);
        let product = self.b.mul(power, square);
        let next_power = self.b.select(is_odd, product, power);
        let next_square = self.b.mul(square, square);
        let next_left = self.b.op(Op::ShrBy(1), [left]);
        self.b.end_loop(&[(power, next_power), (square, next_square), (left, next_left)]);
        power
    }

    /// `a` to a power that is known.
    fn power_of_known(&mut self, a: Val, exponent: u64) -> Val {
        let mut power = None;
        let (mut square, mut left) = (a, exponent);
        while left > 0 {
            if left & 1 == 1 {
                power = Some(power.map_or(square, |power| self.b.mul(power, square)));
            }
            left >>= 1;
            if left > 0 {
                square = self.b.mul(square, square);
            }
        }
        power.unwrap_or_else(|| self.number(self.b.ty(a).elem, 1))
    }
}
