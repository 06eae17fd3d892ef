//! Ops of one operand.

use defn_core::DType;
use defn_core::op::{BitsOp, FunctionOp, PartOp, RoundingOp, SignOp, TestOp, UnaryOp};

use super::{Element, Elements, computed, is_signed};
use crate::compiler::ir::functions::Function1;
use crate::compiler::ir::{Cmp, Elem, Op, Val};

/// A base of logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Two,
    Ten,
}

/// The function of floats that an op is, but for roots.
fn function_of(op: FunctionOp) -> Function1 {
    match op {
        FunctionOp::Exp => Function1::Exp,
        FunctionOp::Expm1 => Function1::Expm1,
        FunctionOp::Log => Function1::Log,
        FunctionOp::Log1p => Function1::Log1p,
        FunctionOp::Sigmoid => Function1::Sigmoid,
        FunctionOp::Sin => Function1::Sin,
        FunctionOp::Cos => Function1::Cos,
        FunctionOp::Tan => Function1::Tan,
        FunctionOp::Sinh => Function1::Sinh,
        FunctionOp::Cosh => Function1::Cosh,
        FunctionOp::Tanh => Function1::Tanh,
        FunctionOp::Asin => Function1::Asin,
        FunctionOp::Acos => Function1::Acos,
        FunctionOp::Atan => Function1::Atan,
        FunctionOp::Asinh => Function1::Asinh,
        FunctionOp::Acosh => Function1::Acosh,
        FunctionOp::Atanh => Function1::Atanh,
        FunctionOp::Cbrt => Function1::Cbrt,
        FunctionOp::Erf => Function1::Erf,
        FunctionOp::Erfc => Function1::Erfc,
        FunctionOp::ErfInv => Function1::ErfInv,
        FunctionOp::Sqrt | FunctionOp::Rsqrt => unreachable!("they are ops of the IR"),
    }
}

impl Elements {
    /// An op of one operand, with a result of `dtype`.
    pub(in super::super) fn unary(&mut self, op: UnaryOp, x: Element, dtype: DType) -> Element {
        match op {
            UnaryOp::Test(test) => return Element::new(self.test(test, x), DType::Bool),
            UnaryOp::Part(part) => return self.part(part, x, dtype),
            UnaryOp::Sign(SignOp::Abs) if x.dtype.is_complex() => return self.modulus(x),
            UnaryOp::Sign(_) | UnaryOp::Rounding(_) | UnaryOp::Bits(_) | UnaryOp::Function(_) => {}
        }
        let x = self.convert(x, dtype);
        if dtype.is_complex() {
            return self.complex_unary(op, x);
        }
        let x = x.value;
        let elem = self.b.ty(x).elem;
        let is_float = elem.is_float();
        let value = match op {
            // Predicates are 0 or 1.
            UnaryOp::Sign(_) | UnaryOp::Rounding(_) if dtype.is_bool() => x,
            UnaryOp::Sign(SignOp::Negate) if is_float => self.flip_sign(x),
            UnaryOp::Sign(SignOp::Negate) => {
                let zero = self.number(elem, 0);
                self.b.sub(zero, x)
            }
            UnaryOp::Sign(SignOp::Abs) if is_float => self.magnitude(x),
            UnaryOp::Sign(SignOp::Abs) if is_signed(dtype) => {
                let zero = self.number(elem, 0);
                let negative = self.b.sub(zero, x);
                self.b.op(Op::Max, [x, negative])
            }
            UnaryOp::Sign(SignOp::Abs) => x,
            UnaryOp::Sign(SignOp::Sign) => self.sign(x, dtype),
            UnaryOp::Rounding(_) if !is_float => x,
            UnaryOp::Rounding(RoundingOp::Floor) => self.b.op(Op::Floor, [x]),
            UnaryOp::Rounding(RoundingOp::Ceil) => self.b.op(Op::Ceil, [x]),
            UnaryOp::Rounding(RoundingOp::Round) => self.round(x),
            UnaryOp::Bits(BitsOp::Not) => self.b.op(Op::Not, [x]),
            UnaryOp::Bits(BitsOp::PopulationCount) => {
                let own = self.own_bits(x, dtype);
                self.b.op(Op::PopCount, [own])
            }
            UnaryOp::Bits(BitsOp::CountLeadingZeros) => {
                let own = self.own_bits(x, dtype);
                let zeros = self.b.op(Op::LeadingZeros, [own]);
                let more = self.number(elem, (8 * elem.bytes() - dtype.bits()) as i64);
                self.b.sub(zeros, more)
            }
            UnaryOp::Function(FunctionOp::Sqrt) => self.b.op(Op::Sqrt, [x]),
            UnaryOp::Function(FunctionOp::Rsqrt) => {
                let (one, root) = (self.number(elem, 1), self.b.op(Op::Sqrt, [x]));
                self.b.div(one, root)
            }
            UnaryOp::Function(op) => self.b.function(function_of(op), x),
            UnaryOp::Part(_) | UnaryOp::Test(_) => unreachable!("done above"),
        };
        self.fit(value, dtype)
    }

    /// Whether a number, or a part of a complex one, is NaN or infinite.
    fn test(&mut self, test: TestOp, x: Element) -> Val {
        let elem = self.b.ty(x.value).elem;
        if !elem.is_float() {
            return self.b.bits(Elem::Bit, 0);
        }
        let mut of = |x: Val| match test {
            TestOp::Nan => self.b.compare(Cmp::Ne, x, x),
            TestOp::Infinity => {
                let magnitude = self.magnitude(x);
                let infinity = self.b.float(elem, f64::INFINITY);
                self.b.compare(Cmp::Eq, magnitude, infinity)
            }
        };
        let (value, imag) = (of(x.value), x.imag.map(&mut of));
        match imag {
            Some(imag) => self.b.op(Op::Or, [value, imag]),
            None => value,
        }
    }

    fn part(&mut self, part: PartOp, x: Element, dtype: DType) -> Element {
        match part {
            PartOp::Real => self.convert(x, dtype),
            PartOp::Imag => {
                let value = x.imag.unwrap_or_else(|| self.number(computed(dtype), 0));
                Element::new(value, dtype)
            }
            PartOp::Conjugate => {
                let Element { value, imag, .. } = self.convert(x, dtype);
                Element { value, imag: imag.map(|imag| self.flip_sign(imag)), dtype }
            }
        }
    }

    /// The bits of an integer that its dtype has.
    fn own_bits(&mut self, x: Val, dtype: DType) -> Val {
        let elem = self.b.ty(x).elem;
        if dtype.bits() == 8 * elem.bytes() {
            return x;
        }
        let mask = self.number(elem, (1 << dtype.bits()) - 1);
        self.b.op(Op::And, [x, mask])
    }

    fn sign_bit(&mut self, elem: Elem) -> Val {
        self.b.bits(elem, 1 << (8 * elem.bytes() - 1))
    }

    pub(super) fn flip_sign(&mut self, x: Val) -> Val {
        let sign = self.sign_bit(self.b.ty(x).elem);
        self.b.op(Op::Xor, [x, sign])
    }

    pub(super) fn magnitude(&mut self, x: Val) -> Val {
        let elem = self.b.ty(x).elem;
        let others = self.b.bits(elem, u64::MAX >> (65 - 8 * elem.bytes()));
        self.b.op(Op::And, [x, others])
    }

    /// -1, 0 or 1; NaN stays NaN.
    fn sign(&mut self, x: Val, dtype: DType) -> Val {
        let elem = self.b.ty(x).elem;
        let [zero, one, minus] = [0, 1, -1].map(|number| self.number(elem, number));
        if !elem.is_float() && !is_signed(dtype) {
            let is_zero = self.b.compare(Cmp::Eq, x, zero);
            return self.b.select(is_zero, zero, one);
        }
        let (above, below) = (self.b.compare(Cmp::Lt, zero, x), self.b.compare(Cmp::Lt, x, zero));
        let sign = self.b.select(above, one, zero);
        let sign = self.b.select(below, minus, sign);
        if !elem.is_float() {
            return sign;
        }
        let is_nan = self.b.compare(Cmp::Ne, x, x);
        self.b.select(is_nan, x, sign)
    }

    /// The nearest integer, halves away from zero: what is cut off decides, which is exact.
    fn round(&mut self, x: Val) -> Val {
        let elem = self.b.ty(x).elem;
        let (half, one, sign) = (self.b.float(elem, 0.5), self.b.float(elem, 1.0), self.sign_bit(elem));
        let whole = self.b.op(Op::Trunc, [x]);
        let rest = self.b.sub(x, whole);
        let rest = self.magnitude(rest);
        let one = self.b.op(Op::Flip, [one, x, sign]);
        let further = self.b.add(whole, one);
        let is_far = self.b.compare(Cmp::Le, half, rest);
        // NaN and infinities have no rest.
        self.b.select(is_far, further, whole)
    }

    /// The logarithm to a base, with a result of `dtype`.
    pub(in super::super) fn log_to(&mut self, base: Base, x: Element, dtype: DType) -> Element {
        let x = self.convert(x, dtype);
        if dtype.is_complex() {
            return self.complex_log_to(base, x);
        }
        let function = match base {
            Base::Two => Function1::Log2,
            Base::Ten => Function1::Log10,
        };
        let value = self.b.function(function, x.value);
        self.fit(value, dtype)
    }
}
