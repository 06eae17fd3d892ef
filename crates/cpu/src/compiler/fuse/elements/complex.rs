//! Complex numbers. Their functions are computed in f64; those of c64 are rounded once.

use std::f64::consts::{LN_2, LN_10};

use defn_core::DType;
use defn_core::op::{ArithmeticOp, FunctionOp, SignOp, UnaryOp};

use super::{Base, Element, Elements};
use crate::compiler::ir::functions::{Complex, ComplexFunction};
use crate::compiler::ir::{Conv, Elem};

/// The function of complex numbers that an op is.
fn function_of(op: FunctionOp) -> ComplexFunction {
    match op {
        FunctionOp::Exp => ComplexFunction::Exp,
        FunctionOp::Expm1 => ComplexFunction::Expm1,
        FunctionOp::Log => ComplexFunction::Log,
        FunctionOp::Log1p => ComplexFunction::Log1p,
        FunctionOp::Sigmoid => ComplexFunction::Sigmoid,
        FunctionOp::Sin => ComplexFunction::Sin,
        FunctionOp::Cos => ComplexFunction::Cos,
        FunctionOp::Tan => ComplexFunction::Tan,
        FunctionOp::Sinh => ComplexFunction::Sinh,
        FunctionOp::Cosh => ComplexFunction::Cosh,
        FunctionOp::Tanh => ComplexFunction::Tanh,
        FunctionOp::Asin => ComplexFunction::Asin,
        FunctionOp::Acos => ComplexFunction::Acos,
        FunctionOp::Atan => ComplexFunction::Atan,
        FunctionOp::Asinh => ComplexFunction::Asinh,
        FunctionOp::Acosh => ComplexFunction::Acosh,
        FunctionOp::Atanh => ComplexFunction::Atanh,
        FunctionOp::Sqrt => ComplexFunction::Sqrt,
        FunctionOp::Rsqrt => ComplexFunction::Rsqrt,
        FunctionOp::Cbrt => ComplexFunction::Cbrt,
        FunctionOp::Erf | FunctionOp::Erfc | FunctionOp::ErfInv => unreachable!("{op:?} is of real numbers"),
    }
}

impl Elements {
    /// The parts of a complex number.
    fn parts(&self, z: Element) -> Complex {
        Complex { re: z.value, im: z.imag.expect("a complex number has two parts") }
    }

    fn of_parts(&self, z: Complex, dtype: DType) -> Element {
        Element { value: z.re, imag: Some(z.im), dtype }
    }

    /// The parts in f64.
    fn wide(&mut self, z: Element) -> Complex {
        let Complex { re, im } = self.parts(z);
        let [re, im] = [re, im].map(|part| self.b.convert(Conv::Float, Elem::F64, part));
        Complex { re, im }
    }

    /// The nearest complex number of a dtype.
    fn nearest(&mut self, z: Complex, dtype: DType) -> Element {
        let part = if dtype == DType::C64 { Elem::F32 } else { Elem::F64 };
        let [re, im] = [z.re, z.im].map(|part_of| self.b.convert(Conv::Float, part, part_of));
        self.of_parts(Complex { re, im }, dtype)
    }

    /// An op of one complex number, with a complex result.
    pub(super) fn complex_unary(&mut self, op: UnaryOp, x: Element) -> Element {
        let dtype = x.dtype;
        let function = match op {
            UnaryOp::Sign(SignOp::Negate) => {
                let Complex { re, im } = self.parts(x);
                let (re, im) = (self.flip_sign(re), self.flip_sign(im));
                return self.of_parts(Complex { re, im }, dtype);
            }
            UnaryOp::Sign(SignOp::Sign) => ComplexFunction::Sign,
            UnaryOp::Function(op) => function_of(op),
            UnaryOp::Sign(SignOp::Abs)
            | UnaryOp::Rounding(_)
            | UnaryOp::Bits(_)
            | UnaryOp::Part(_)
            | UnaryOp::Test(_) => unreachable!("{op:?} has no complex result"),
        };
        let wide = self.wide(x);
        let value = self.b.complex_function(function, wide);
        self.nearest(value, dtype)
    }

    pub(super) fn modulus(&mut self, x: Element) -> Element {
        let Complex { re, im } = self.parts(x);
        Element::new(self.b.hypotenuse(re, im), x.dtype.to_real())
    }

    pub(super) fn complex_log_to(&mut self, base: Base, x: Element) -> Element {
        let wide = self.wide(x);
        let log = self.b.complex_function(ComplexFunction::Log, wide);
        let base = self.b.f64(match base {
            Base::Two => LN_2,
            Base::Ten => LN_10,
        });
        let (re, im) = (self.b.div(log.re, base), self.b.div(log.im, base));
        self.nearest(Complex { re, im }, x.dtype)
    }

    pub(super) fn complex_arithmetic(&mut self, op: ArithmeticOp, a: Element, b: Element) -> Element {
        let dtype = a.dtype;
        let (x, y) = (self.parts(a), self.parts(b));
        let value = match op {
            ArithmeticOp::Add => Complex { re: self.b.add(x.re, y.re), im: self.b.add(x.im, y.im) },
            ArithmeticOp::Subtract => Complex { re: self.b.sub(x.re, y.re), im: self.b.sub(x.im, y.im) },
            ArithmeticOp::Multiply => {
                let (first, second) = (self.b.mul(x.re, y.re), self.b.mul(x.im, y.im));
                let re = self.b.sub(first, second);
                let (first, second) = (self.b.mul(x.re, y.im), self.b.mul(x.im, y.re));
                Complex { re, im: self.b.add(first, second) }
            }
            ArithmeticOp::Divide | ArithmeticOp::Pow => {
                let (x, y) = (self.wide(a), self.wide(b));
                let value = match (op, dtype) {
                    (ArithmeticOp::Pow, _) => self.b.complex_power(x, y),
                    // The squares of f32 values do not overflow in f64.
                    (_, DType::C64) => self.b.complex_quotient_of_singles(x, y),
                    _ => self.b.complex_quotient(x, y),
                };
                return self.nearest(value, dtype);
            }
            ArithmeticOp::Atan2
            | ArithmeticOp::Quotient
            | ArithmeticOp::Remainder
            | ArithmeticOp::Max
            | ArithmeticOp::Min => unreachable!("{op:?} is of real numbers"),
        };
        self.of_parts(value, dtype)
    }
}
