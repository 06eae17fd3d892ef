//! Functions of complex numbers, in f64: principal branches, with signed zeros on the cuts, and without overflow of
//! intermediate results.
//!
//! Infinities and NaN follow Annex G of C99. Where it leaves a sign open, and for functions that it lacks, they follow
//! NumPy. Inverse functions are those of Kahan, Branch Cuts for Complex Elementary Functions (1987).
//!
//! What holds for most numbers is computed first. Special ones are patched behind a side exit, those that come first in
//! an order of cases last.

mod arc;
mod exp;
mod log;

use super::super::{Builder, Elem, Op, Val};
use super::floats::{Floats, Operand};
use super::tables::DOUBLE;

/// Functions of one complex number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ComplexFunction {
    /// `z / |z|`; zero stays zero.
    Sign,
    /// `1 / sqrt(z)`.
    Rsqrt,
    /// The square root with a real part that is not negative.
    Sqrt,
    /// The cube root whose argument is a third of the principal one.
    Cbrt,
    /// `e^z`.
    Exp,
    /// `e^z - 1`.
    Expm1,
    /// `1 / (1 + e^-z)`.
    Sigmoid,
    /// The logarithm, cut along the negative real axis.
    Log,
    /// `log(1 + z)`.
    Log1p,
    Sinh,
    Cosh,
    Tanh,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Asinh,
    Acosh,
    Atanh,
}

/// A complex number: its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Complex {
    pub(crate) re: Val,
    pub(crate) im: Val,
}

impl Complex {
    fn new(re: Val, im: Val) -> Complex {
        Complex { re, im }
    }
}

impl Builder {
    /// A function of a complex number of two f64.
    pub(crate) fn complex_function(&mut self, function: ComplexFunction, z: Complex) -> Complex {
        let m = &mut self.doubles();
        match function {
            ComplexFunction::Sign => sign(m, z),
            ComplexFunction::Rsqrt => {
                let (root, one) = (sqrt(m, z), m.one());
                divide(m, one, root)
            }
            ComplexFunction::Sqrt => sqrt(m, z),
            ComplexFunction::Cbrt => log::cbrt(m, z),
            ComplexFunction::Exp => exp::exp(m, z),
            ComplexFunction::Expm1 => exp::expm1(m, z),
            ComplexFunction::Sigmoid => exp::sigmoid(m, z),
            ComplexFunction::Log => log::log(m, z),
            ComplexFunction::Log1p => log::log1p(m, z),
            ComplexFunction::Sinh => exp::sinh(m, z),
            ComplexFunction::Cosh => exp::cosh(m, z),
            ComplexFunction::Tanh => exp::tanh(m, z),
            // i sinh(-iz), cosh(iz) and -i tanh(iz).
            ComplexFunction::Sin => {
                let negative = m.neg(z.re);
                let w = exp::sinh(m, Complex::new(z.im, negative));
                Complex::new(m.neg(w.im), w.re)
            }
            ComplexFunction::Cos => {
                let turned = Complex::new(m.neg(z.im), z.re);
                exp::cosh(m, turned)
            }
            ComplexFunction::Tan => turned(m, z, exp::tanh),
            ComplexFunction::Asin => arc::asin(m, z),
            ComplexFunction::Acos => arc::acos(m, z),
            // -i atanh(iz) and -i asin(iz).
            ComplexFunction::Atan => turned(m, z, arc::atanh),
            ComplexFunction::Asinh => turned(m, z, arc::asin),
            ComplexFunction::Acosh => arc::acosh(m, z),
            ComplexFunction::Atanh => arc::atanh(m, z),
        }
    }

    /// The power of complex numbers of two f64; to the power of 0 it is 1.
    pub(crate) fn complex_power(&mut self, a: Complex, b: Complex) -> Complex {
        log::pow(&mut self.doubles(), a, b)
    }

    /// The quotient of complex numbers of two f64.
    pub(crate) fn complex_quotient(&mut self, a: Complex, b: Complex) -> Complex {
        divide(&mut self.doubles(), a, b)
    }

    /// The same for parts whose squares neither overflow nor underflow.
    pub(crate) fn complex_quotient_of_singles(&mut self, a: Complex, b: Complex) -> Complex {
        divide_singles(&mut self.doubles(), a, b)
    }

    /// `sqrt(x^2 + y^2)` of two f64 or f32; it is infinite if either is.
    pub(crate) fn hypotenuse(&mut self, x: Val, y: Val) -> Val {
        if self.ty(x).elem == Elem::F32 {
            return hypot_single(&mut self.doubles(), x, y);
        }
        hypot(&mut self.doubles(), x, y)
    }

    fn doubles(&mut self) -> Floats<'_> {
        Floats { ir: self, elem: Elem::F64, precision: &DOUBLE }
    }
}

/// `-i f(iz)`.
fn turned(m: &mut Floats, z: Complex, f: fn(&mut Floats, Complex) -> Complex) -> Complex {
    let around = Complex::new(m.neg(z.im), z.re);
    let w = f(m, around);
    Complex::new(w.im, m.neg(w.re))
}

impl Floats<'_> {
    fn one(&mut self) -> Complex {
        Complex::new(self.value(1.0), self.value(0.0))
    }

    fn complex(&mut self, re: impl Into<Operand>, im: impl Into<Operand>) -> Complex {
        Complex::new(self.value(re), self.value(im))
    }

    fn choose(&mut self, predicate: Val, a: Complex, b: Complex) -> Complex {
        Complex::new(self.select(predicate, a.re, b.re), self.select(predicate, a.im, b.im))
    }

    /// As [`Floats::unless_any`].
    fn patched(&mut self, special: Val, z: Complex, rare: impl FnOnce(&mut Self) -> Complex) -> Complex {
        let any = if self.ir.ty(special).is_vector { self.ir.any(special) } else { special };
        self.ir.begin_if(any);
        let patched = rare(self);
        self.ir.begin_else();
        let joined = self.ir.end_if(&[(patched.re, z.re), (patched.im, z.im)]);
        Complex::new(joined[0], joined[1])
    }

    /// `|x|` with the sign of another number. That of NaN depends on the order of operands, and counts as positive.
    fn with_sign(&mut self, x: impl Into<Operand>, sign: Val) -> Val {
        let x = self.value(x);
        let magnitude = self.abs(x);
        let is_nan = self.is_nan(sign);
        let flipped = self.flipped(magnitude, sign);
        self.select(is_nan, magnitude, flipped)
    }

    fn is_infinite(&mut self, x: Val) -> Val {
        let magnitude = self.abs(x);
        self.eq(magnitude, f64::INFINITY)
    }

    fn is_finite(&mut self, x: Val) -> Val {
        let magnitude = self.abs(x);
        self.lt(magnitude, f64::INFINITY)
    }

    fn times(&mut self, a: Complex, b: Complex) -> Complex {
        let (first, second) = (self.mul(a.re, b.re), self.mul(a.im, b.im));
        let re = self.sub(first, second);
        let (first, second) = (self.mul(a.re, b.im), self.mul(a.im, b.re));
        Complex::new(re, self.add(first, second))
    }

    /// 2^power.
    fn power(power: i64) -> f64 {
        f64::from_bits(((1023 + power) as u64) << 52)
    }
}

/// `sqrt(x^2 + y^2)`, scaled so that no square over- or underflows.
fn hypot(m: &mut Floats, x: Val, y: Val) -> Val {
    let (x, y) = (m.abs(x), m.abs(y));
    let is_more = m.lt(y, x);
    let large = m.select(is_more, x, y);
    let (is_huge, is_tiny) = (m.lt(1e150, large), m.lt(large, 1e-140));
    let (up, down) = (Floats::power(600), Floats::power(-600));
    let scale = m.select(is_huge, down, 1.0);
    let scale = m.select(is_tiny, up, scale);
    let back = m.select(is_huge, up, 1.0);
    let back = m.select(is_tiny, down, back);
    let (a, b) = (m.mul(x, scale), m.mul(y, scale));
    let (a, b) = (m.mul(a, a), m.mul(b, b));
    let sum = m.add(a, b);
    let root = m.sqrt(sum);
    let root = m.mul(root, back);
    let (a, b) = (m.eq(x, f64::INFINITY), m.eq(y, f64::INFINITY));
    let is_infinite = m.either(a, b);
    m.select(is_infinite, f64::INFINITY, root)
}

/// The same of f32, with an error below 1 ulp. The squares are exact in f64. An f64 root would take most of the time, so
/// the sum is scaled to the range of f32 before the root.
fn hypot_single(m: &mut Floats, x: Val, y: Val) -> Val {
    let (a, b) = (m.widened(x), m.widened(y));
    let (a, b) = (m.abs(a), m.abs(b));
    let is_more = m.lt(b, a);
    let large = m.select(is_more, a, b);
    // The limits are those of f32.
    let (is_huge, is_tiny) = (m.lt(f64::from(1e15f32), large), m.lt(large, f64::from(1e-15f32)));
    let scale = m.select(is_tiny, Floats::power(200), 1.0);
    let scale = m.select(is_huge, Floats::power(-140), scale);
    let (square_a, square_b) = (m.mul(a, a), m.mul(b, b));
    let sum = m.add(square_a, square_b);
    let sum = m.mul(sum, scale);
    let root = m.narrowed(sum);
    let root = m.sqrt(root);
    let (up, down, one) = (m.ir.f32(2f32.powi(70)), m.ir.f32(2f32.powi(-100)), m.ir.f32(1.0));
    let back = m.ir.select(is_tiny, down, one);
    let back = m.ir.select(is_huge, up, back);
    let root = m.ir.mul(root, back);
    let (a, b) = (m.eq(a, f64::INFINITY), m.eq(b, f64::INFINITY));
    let (is_infinite, infinity) = (m.either(a, b), m.ir.f32(f32::INFINITY));
    m.ir.select(is_infinite, infinity, root)
}

fn sign(m: &mut Floats, z: Complex) -> Complex {
    let abs = hypot(m, z.re, z.im);
    let is_zero = m.eq(abs, 0.0);
    let (re, im) = (m.div(z.re, abs), m.div(z.im, abs));
    let (whole, zero) = (Complex::new(re, im), m.complex(0.0, 0.0));
    m.choose(is_zero, zero, whole)
}

/// The quotient, after Smith, Algorithm 116 (1962); a divisor of zero divides each part.
fn divide(m: &mut Floats, a: Complex, b: Complex) -> Complex {
    let (x, y) = (m.abs(b.re), m.abs(b.im));
    let is_flat = m.le(y, x);
    let (large, small) = (m.select(is_flat, b.re, b.im), m.select(is_flat, b.im, b.re));
    let (along, across) = (m.select(is_flat, a.re, a.im), m.select(is_flat, a.im, a.re));
    let ratio = m.div(small, large);
    let rest = m.mul(small, ratio);
    let scale = m.add(large, rest);
    let rest = m.mul(across, ratio);
    let re = m.add(along, rest);
    let re = m.div(re, scale);
    let rest = m.mul(along, ratio);
    // The signs of zeros differ otherwise.
    let (one, other) = (m.sub(across, rest), m.sub(rest, across));
    let im = m.select(is_flat, one, other);
    let im = m.div(im, scale);
    let (no_re, no_im) = (m.eq(b.re, 0.0), m.eq(b.im, 0.0));
    let is_zero = m.both(no_re, no_im);
    let (re_ends, im_ends) = (m.eq(x, f64::INFINITY), m.eq(y, f64::INFINITY));
    let is_endless = m.either(re_ends, im_ends);
    let special = m.either(is_zero, is_endless);
    m.patched(special, Complex::new(re, im), |m| {
        let (over_re, over_im) = (m.div(a.re, x), m.div(a.im, x));
        let (re_is_finite, im_is_finite) = (m.is_finite(a.re), m.is_finite(a.im));
        let vanishes = m.both(re_is_finite, im_is_finite);
        let (no_re, no_im) = (m.is_nan(b.re), m.is_nan(b.im));
        let no_number = m.either(no_re, no_im);
        let vanishes = m.ir.op(Op::AndNot, [vanishes, no_number]);
        let end = m.select(vanishes, 0.0, f64::NAN);
        let quotient = m.choose(is_endless, Complex::new(end, end), Complex::new(re, im));
        m.choose(is_zero, Complex::new(over_re, over_im), quotient)
    })
}

/// The same without scaling.
fn divide_singles(m: &mut Floats, a: Complex, b: Complex) -> Complex {
    let (x, y) = (m.mul(b.re, b.re), m.mul(b.im, b.im));
    let norm = m.add(x, y);
    let (x, y) = (m.mul(a.re, b.re), m.mul(a.im, b.im));
    let re = m.add(x, y);
    let re = m.div(re, norm);
    let (x, y) = (m.mul(a.im, b.re), m.mul(a.re, b.im));
    let im = m.sub(x, y);
    let im = m.div(im, norm);
    let (is_zero, is_endless) = (m.eq(norm, 0.0), m.eq(norm, f64::INFINITY));
    let special = m.either(is_zero, is_endless);
    m.patched(special, Complex::new(re, im), |m| {
        let scale = m.abs(b.re);
        let (over_re, over_im) = (m.div(a.re, scale), m.div(a.im, scale));
        let quotient = m.choose(is_zero, Complex::new(over_re, over_im), Complex::new(re, im));
        let (re_is_finite, im_is_finite) = (m.is_finite(a.re), m.is_finite(a.im));
        let vanishes = m.both(re_is_finite, im_is_finite);
        let vanishes = m.both(vanishes, is_endless);
        let zero = m.complex(0.0, 0.0);
        m.choose(vanishes, zero, quotient)
    })
}

fn sqrt(m: &mut Floats, z: Complex) -> Complex {
    // Powers of four scale exactly, and keep the hypotenuse in range.
    let (x, y) = (m.abs(z.re), m.abs(z.im));
    let is_more = m.lt(y, x);
    let large = m.select(is_more, x, y);
    let (is_huge, is_tiny) = (m.lt(1e300, large), m.lt(large, 1e-290));
    let factor = m.select(is_tiny, Floats::power(108), 1.0);
    let factor = m.select(is_huge, 0.25, factor);
    let scale = m.select(is_tiny, Floats::power(-54), 1.0);
    let scale = m.select(is_huge, 2.0, scale);
    let w = Complex::new(m.mul(z.re, factor), m.mul(z.im, factor));
    let abs = hypot(m, w.re, w.im);
    let (x, y) = (m.abs(w.re), m.abs(w.im));
    let sum = m.add(x, abs);
    let half = m.mul(sum, 0.5);
    let root = m.sqrt(half);
    let twice = m.mul(2.0, root);
    let is_right = m.le(0.0, w.re);
    let (im, re) = (m.div(w.im, twice), m.div(y, twice));
    let turned = m.with_sign(root, w.im);
    let (re, im) = (m.select(is_right, root, re), m.select(is_right, im, turned));
    let general = Complex::new(m.mul(re, scale), m.mul(im, scale));
    let (no_re, no_im) = (m.eq(z.re, 0.0), m.eq(z.im, 0.0));
    let is_zero = m.both(no_re, no_im);
    let (re_ends, im_ends) = (m.is_infinite(z.re), m.is_infinite(z.im));
    let special = m.either(re_ends, im_ends);
    let special = m.either(special, is_zero);
    m.patched(special, general, |m| {
        let (zero, infinity) = (m.with_sign(0.0, z.im), m.with_sign(f64::INFINITY, z.im));
        let is_right = m.lt(0.0, z.re);
        let (re, im) = (m.select(is_right, z.re, 0.0), m.select(is_right, zero, infinity));
        let no_number = m.is_nan(z.im);
        let is_flat = m.ir.op(Op::AndNot, [re_ends, no_number]);
        let root = m.choose(is_flat, Complex::new(re, im), general);
        let upwards = m.complex(f64::INFINITY, z.im);
        let root = m.choose(im_ends, upwards, root);
        let none = m.complex(0.0, z.im);
        m.choose(is_zero, none, root)
    })
}
