//! Ops of two operands.

use defn_core::DType;
use defn_core::op::{ArithmeticOp, BinaryOp, BitwiseOp, LogicalOp};

use super::{Element, Elements, extremes, is_signed};
use crate::compiler::ir::functions::Function2;
use crate::compiler::ir::{Op, Val};

impl Elements {
    /// An op of two operands, with a result of `dtype`.
    pub(in super::super) fn binary(&mut self, op: BinaryOp, a: Element, b: Element, dtype: DType) -> Element {
        match op {
            BinaryOp::Comparison(op) => Element::new(self.compare(op, a, b), DType::Bool),
            BinaryOp::Logical(op) => {
                let (a, b) = (self.truth(a).value, self.truth(b).value);
                let op = match op {
                    LogicalOp::And => Op::And,
                    LogicalOp::Or => Op::Or,
                    LogicalOp::Xor => Op::Xor,
                };
                Element::new(self.b.op(op, [a, b]), DType::Bool)
            }
            BinaryOp::Complex => {
                let part = dtype.to_real();
                let (value, imag) = (self.convert(a, part).value, self.convert(b, part).value);
                Element { value, imag: Some(imag), dtype }
            }
            BinaryOp::Arithmetic(op) => {
                let (a, b) = (self.convert(a, dtype), self.convert(b, dtype));
                if dtype.is_complex() {
                    return self.complex_arithmetic(op, a, b);
                }
                let value = self.arithmetic(op, a.value, b.value, dtype);
                self.fit(value, dtype)
            }
            BinaryOp::Bitwise(op) => {
                let (a, b) = (self.convert(a, dtype).value, self.convert(b, dtype).value);
                let op = match op {
                    BitwiseOp::And => Op::And,
                    BitwiseOp::Or => Op::Or,
                    BitwiseOp::Xor => Op::Xor,
                    BitwiseOp::LeftShift => Op::Shl,
                    BitwiseOp::RightShift if is_signed(dtype) => Op::Sar,
                    BitwiseOp::RightShift => Op::Shr,
                };
                let value = self.b.op(op, [a, b]);
                self.fit(value, dtype)
            }
        }
    }

    /// An op on two values of a dtype that is not complex.
    fn arithmetic(&mut self, op: ArithmeticOp, a: Val, b: Val, dtype: DType) -> Val {
        let is_float = self.b.ty(a).elem.is_float();
        let (max, min) = extremes(dtype);
        match op {
            ArithmeticOp::Add => self.b.add(a, b),
            ArithmeticOp::Subtract => self.b.sub(a, b),
            ArithmeticOp::Multiply => self.b.mul(a, b),
            ArithmeticOp::Divide => self.b.div(a, b),
            ArithmeticOp::Max => self.b.op(max, [a, b]),
            ArithmeticOp::Min => self.b.op(min, [a, b]),
            ArithmeticOp::Pow if is_float => self.b.function2(Function2::Pow, a, b),
            ArithmeticOp::Pow => self.power(a, b),
            ArithmeticOp::Atan2 => self.b.function2(Function2::Atan2, a, b),
            ArithmeticOp::Quotient => self.quotient(a, b, dtype),
            ArithmeticOp::Remainder if is_float => self.b.function2(Function2::Remainder, a, b),
            ArithmeticOp::Remainder => {
                // By zero, where the quotient has all bits set, it is the dividend.
                let quotient = self.quotient(a, b, dtype);
                let product = self.b.mul(quotient, b);
                self.b.sub(a, product)
            }
        }
    }
}
