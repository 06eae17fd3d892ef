//! Functions of one variable: how each is written for floats, and for complex numbers.

use defn_core::op::FunctionOp;

use super::complex::{self, ComplexFunction};
use super::numeric::FloatExpr;
use super::text::{Ssa, Writer};

/// How a function of floats is written.
enum OfFloats {
    /// An operation of StableHLO.
    Stable(&'static str),
    /// An operation of CHLO, which XLA expands.
    Library(&'static str),
    /// A formula, where XLA's operation is less accurate.
    Formula(for<'a> fn(FloatExpr<'a>) -> FloatExpr<'a>),
}

use OfFloats::{Formula, Library, Stable};

/// How a function is written for floats and for complex numbers; `None` if inference rejects complex numbers.
fn forms(op: FunctionOp) -> (OfFloats, Option<ComplexFunction>) {
    match op {
        FunctionOp::Exp => (Stable("exponential"), Some(complex::exp)),
        FunctionOp::Expm1 => (Stable("exponential_minus_one"), Some(complex::expm1)),
        FunctionOp::Log => (Stable("log"), Some(complex::log)),
        FunctionOp::Log1p => (Stable("log_plus_one"), Some(complex::log1p)),
        FunctionOp::Sigmoid => (Stable("logistic"), Some(complex::sigmoid)),
        FunctionOp::Sin => (Stable("sine"), Some(complex::sin)),
        FunctionOp::Cos => (Stable("cosine"), Some(complex::cos)),
        FunctionOp::Tan => (Stable("tan"), Some(complex::tan)),
        FunctionOp::Sinh => (Formula(|x| x.sinh()), Some(complex::sinh)),
        FunctionOp::Cosh => (Formula(|x| x.cosh()), Some(complex::cosh)),
        FunctionOp::Tanh => (Stable("tanh"), Some(complex::tanh)),
        FunctionOp::Asin => (Library("asin"), Some(complex::asin)),
        FunctionOp::Acos => (Library("acos"), Some(complex::acos)),
        FunctionOp::Atan => (Library("atan"), Some(complex::atan)),
        FunctionOp::Asinh => (Library("asinh"), Some(complex::asinh)),
        FunctionOp::Acosh => (Library("acosh"), Some(complex::acosh)),
        FunctionOp::Atanh => (Library("atanh"), Some(complex::atanh)),
        FunctionOp::Sqrt => (Stable("sqrt"), Some(complex::sqrt)),
        FunctionOp::Rsqrt => (Stable("rsqrt"), Some(complex::rsqrt)),
        FunctionOp::Cbrt => (Formula(|x| x.cbrt()), Some(complex::cbrt)),
        FunctionOp::Erf => (Library("erf"), None),
        FunctionOp::Erfc => (Library("erfc"), None),
        FunctionOp::ErfInv => (Library("erf_inv"), None),
    }
}

impl Writer {
    /// A function of floats or of complex numbers.
    pub fn function(&mut self, op: FunctionOp, x: &Ssa) -> Ssa {
        let (of_floats, of_complex) = forms(op);
        if x.is_complex() {
            return self.complex_function(of_complex.expect("inference accepts complex numbers"), x);
        }
        match of_floats {
            Stable(name) => self.op(name, &[x], "", x.ty.clone()),
            Library(name) => self.dialect_op("chlo", name, &[x], x.ty.clone()),
            Formula(formula) => self.formula(x, formula),
        }
    }
}
