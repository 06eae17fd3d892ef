//! Formulas: floats of a program with arithmetic operators that write the operations.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::text::{Ssa, Ty, Writer};
use crate::element::ElementType as E;

/// A tensor of f32 or f64 in a formula.
#[derive(Clone)]
pub(super) struct FloatExpr<'a> {
    writer: &'a RefCell<Writer>,
    pub value: Ssa,
}

/// A predicate in a formula.
#[derive(Clone)]
pub(super) struct PredicateExpr<'a> {
    writer: &'a RefCell<Writer>,
    value: Ssa,
}

impl Writer {
    /// Writes formulas, which share the writer.
    pub fn formulas<R>(&mut self, write: impl FnOnce(&RefCell<Writer>) -> R) -> R {
        let shared = RefCell::new(std::mem::take(self));
        let result = write(&shared);
        *self = shared.into_inner();
        result
    }

    /// A number in the type of `like` (f32 or f64), broadcast to its shape.
    pub fn float_like(&mut self, like: &Ssa, number: f64) -> Ssa {
        let element = like.element();
        let bytes = if element == E::F64 {
            number.to_le_bytes().to_vec()
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "rounded to the type of the value")]
            let narrow = number as f32;
            narrow.to_le_bytes().to_vec()
        };
        let scalar = self.literal(Ty::scalar(element), &bytes);
        self.splat(&scalar, like.dims())
    }
}

impl<'a> FloatExpr<'a> {
    pub fn new(writer: &'a RefCell<Writer>, value: &Ssa) -> FloatExpr<'a> {
        FloatExpr { writer, value: value.clone() }
    }

    fn with(&self, value: Ssa) -> FloatExpr<'a> {
        FloatExpr { writer: self.writer, value }
    }

    fn apply(&self, name: &str, operands: &[&FloatExpr<'a>]) -> FloatExpr<'a> {
        let operands: Vec<&Ssa> = operands.iter().map(|operand| &operand.value).collect();
        self.with(self.writer.borrow_mut().op(name, &operands, "", self.value.ty.clone()))
    }

    /// A number, broadcast to the shape of this value.
    pub fn number(&self, number: f64) -> FloatExpr<'a> {
        self.with(self.writer.borrow_mut().float_like(&self.value, number))
    }

    /// An operation of StableHLO.
    pub fn call(&self, name: &str) -> FloatExpr<'a> {
        self.apply(name, &[self])
    }

    /// An operation of CHLO, the dialect built on StableHLO.
    pub fn library(&self, name: &str) -> FloatExpr<'a> {
        let ty = self.value.ty.clone();
        self.with(self.writer.borrow_mut().dialect_op("chlo", name, &[&self.value], ty))
    }

    pub fn abs(&self) -> FloatExpr<'a> {
        self.call("abs")
    }

    pub fn exp(&self) -> FloatExpr<'a> {
        self.call("exponential")
    }

    pub fn sin(&self) -> FloatExpr<'a> {
        self.call("sine")
    }

    pub fn cos(&self) -> FloatExpr<'a> {
        self.call("cosine")
    }

    pub fn log(&self) -> FloatExpr<'a> {
        self.call("log")
    }

    pub fn log1p(&self) -> FloatExpr<'a> {
        self.call("log_plus_one")
    }

    pub fn expm1(&self) -> FloatExpr<'a> {
        self.call("exponential_minus_one")
    }

    pub fn sqrt(&self) -> FloatExpr<'a> {
        self.call("sqrt")
    }

    pub fn asinh(&self) -> FloatExpr<'a> {
        self.library("asinh")
    }

    /// The angle of the point (x, self).
    pub fn atan2(&self, x: &FloatExpr<'a>) -> FloatExpr<'a> {
        self.apply("atan2", &[self, x])
    }

    pub fn compare(&self, other: &FloatExpr<'a>, direction: &str) -> PredicateExpr<'a> {
        let value = self.writer.borrow_mut().compare(&self.value, &other.value, direction);
        PredicateExpr { writer: self.writer, value }
    }

    /// A comparison with a number.
    pub fn is(&self, direction: &str, number: f64) -> PredicateExpr<'a> {
        self.compare(&self.number(number), direction)
    }

    pub fn is_nan(&self) -> PredicateExpr<'a> {
        self.compare(self, "NE")
    }

    pub fn is_infinite(&self) -> PredicateExpr<'a> {
        self.abs().is("EQ", f64::INFINITY)
    }

    pub fn is_finite(&self) -> PredicateExpr<'a> {
        let truth = self.value.ty.of(E::Pred);
        let value = self.writer.borrow_mut().op("is_finite", &[&self.value], "", truth);
        PredicateExpr { writer: self.writer, value }
    }

    /// This magnitude with the sign of another number, zeros and NaN included.
    pub fn copysign(&self, sign: &FloatExpr<'a>) -> FloatExpr<'a> {
        let w = &mut self.writer.borrow_mut();
        let (bits, mask) = if self.value.element() == E::F64 {
            (self.value.ty.of(E::U64), (1_u64 << 63).to_le_bytes().to_vec())
        } else {
            (self.value.ty.of(E::U32), (1_u32 << 31).to_le_bytes().to_vec())
        };
        let mask = w.literal(Ty::scalar(bits.element), &mask);
        let mask = w.splat(&mask, &bits.dims);
        let rest = w.op("not", &[&mask], "", bits.clone());
        let mut masked_bits = |x: &FloatExpr<'a>, mask: &Ssa| {
            let x = w.op("bitcast_convert", &[&x.value], "", bits.clone());
            w.op("and", &[&x, mask], "", bits.clone())
        };
        let (magnitude, sign) = (masked_bits(self, &rest), masked_bits(sign, &mask));
        let both = w.op("or", &[&magnitude, &sign], "", bits);
        self.with(w.op("bitcast_convert", &[&both], "", self.value.ty.clone()))
    }

    /// Hyperbolic sine: by `expm1` near zero, else by the root of the exponential, which does not overflow before the
    /// result.
    pub fn sinh(&self) -> FloatExpr<'a> {
        let size = self.abs();
        let small = size.expm1();
        let near = (&small + &small / (&small + 1.0)) * 0.5;
        let half = (&size * 0.5).exp();
        let far = &half * 0.5 * &half - 0.5 / &half / &half;
        size.is("LT", 1.0).choose(&near, &far).copysign(self)
    }

    /// Hyperbolic cosine.
    pub fn cosh(&self) -> FloatExpr<'a> {
        let half = (self.abs() * 0.5).exp();
        &half * 0.5 * &half + 0.5 / &half / &half
    }

    /// The cube root: the device's, improved by one step of Newton's method. Small numbers are scaled up, so that the
    /// step has bits to correct.
    pub fn cbrt(&self) -> FloatExpr<'a> {
        let is_small = self.abs().is("LT", if self.value.element() == E::F64 { 1e-290 } else { 1e-30 });
        let scaled = is_small.choose(&(self * 2f64.powi(54)), self);
        let root = scaled.call("cbrt");
        let square = &root * &root;
        let next = &root - (&square * &root - &scaled) / (&square * 3.0);
        let better = next.is_finite().choose(&next, &root);
        is_small.choose(&(&better * 2f64.powi(-18)), &better)
    }
}

impl<'a> PredicateExpr<'a> {
    fn apply(&self, name: &str, operands: &[&Ssa]) -> PredicateExpr<'a> {
        let value = self.writer.borrow_mut().op(name, operands, "", self.value.ty.clone());
        PredicateExpr { writer: self.writer, value }
    }

    pub fn and(&self, other: &PredicateExpr<'a>) -> PredicateExpr<'a> {
        self.apply("and", &[&self.value, &other.value])
    }

    pub fn or(&self, other: &PredicateExpr<'a>) -> PredicateExpr<'a> {
        self.apply("or", &[&self.value, &other.value])
    }

    pub fn not(&self) -> PredicateExpr<'a> {
        self.apply("not", &[&self.value])
    }

    pub fn choose(&self, yes: &FloatExpr<'a>, no: &FloatExpr<'a>) -> FloatExpr<'a> {
        let value = self.writer.borrow_mut().choose(&self.value, &yes.value, &no.value);
        yes.with(value)
    }
}

/// An operator between formulas, and with a number on either side.
macro_rules! operator {
    ($trait:ident, $method:ident, $name:literal) => {
        impl<'a> $trait<&FloatExpr<'a>> for &FloatExpr<'a> {
            type Output = FloatExpr<'a>;
            fn $method(self, other: &FloatExpr<'a>) -> FloatExpr<'a> {
                self.apply($name, &[self, other])
            }
        }

        impl<'a> $trait<FloatExpr<'a>> for &FloatExpr<'a> {
            type Output = FloatExpr<'a>;
            fn $method(self, other: FloatExpr<'a>) -> FloatExpr<'a> {
                self.$method(&other)
            }
        }

        impl<'a> $trait<&FloatExpr<'a>> for FloatExpr<'a> {
            type Output = FloatExpr<'a>;
            fn $method(self, other: &FloatExpr<'a>) -> FloatExpr<'a> {
                (&self).$method(other)
            }
        }

        impl<'a> $trait<FloatExpr<'a>> for FloatExpr<'a> {
            type Output = FloatExpr<'a>;
            fn $method(self, other: FloatExpr<'a>) -> FloatExpr<'a> {
                (&self).$method(&other)
            }
        }

        impl<'a> $trait<f64> for &FloatExpr<'a> {
            type Output = FloatExpr<'a>;
            fn $method(self, other: f64) -> FloatExpr<'a> {
                self.$method(&self.number(other))
            }
        }

        impl<'a> $trait<f64> for FloatExpr<'a> {
            type Output = FloatExpr<'a>;
            fn $method(self, other: f64) -> FloatExpr<'a> {
                (&self).$method(other)
            }
        }

        impl<'a> $trait<&FloatExpr<'a>> for f64 {
            type Output = FloatExpr<'a>;
            fn $method(self, other: &FloatExpr<'a>) -> FloatExpr<'a> {
                (&other.number(self)).$method(other)
            }
        }

        impl<'a> $trait<FloatExpr<'a>> for f64 {
            type Output = FloatExpr<'a>;
            fn $method(self, other: FloatExpr<'a>) -> FloatExpr<'a> {
                self.$method(&other)
            }
        }
    };
}

operator!(Add, add, "add");
operator!(Sub, sub, "subtract");
operator!(Mul, mul, "multiply");
operator!(Div, div, "divide");

impl<'a> Neg for &FloatExpr<'a> {
    type Output = FloatExpr<'a>;
    fn neg(self) -> FloatExpr<'a> {
        self.call("negate")
    }
}

impl<'a> Neg for FloatExpr<'a> {
    type Output = FloatExpr<'a>;
    fn neg(self) -> FloatExpr<'a> {
        -&self
    }
}
