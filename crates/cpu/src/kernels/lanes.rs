//! What is computed within a tile: one match over the ops outside, one loop without branches inside.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::{BinaryOp, UnaryOp};
use num_complex::Complex;

use super::math::{self, Float};
use super::simd::{each, each_pair, vectorized};
use super::{Element, Integer, complex};

/// Element types with every op of the catalogue that they are in the domain of.
pub(crate) trait Lanes: Element {
    /// `op(x)` for ops whose result has the type of the operand. `bits` is the width of the dtype, for ops that
    /// count bits.
    fn unary(op: UnaryOp, bits: u32, x: &[Self], out: &mut [MaybeUninit<Self>]);
    /// `op(a, b)` for ops whose result has the type of the operands.
    fn binary(op: BinaryOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<Self>]);
    /// `op(x, y)` for a sequence of runs of `x`, each with one element `y` of `with`, which is the first operand if
    /// `is_first`. Only for ops that [`is_simple`] names.
    fn binary_with(op: BinaryOp, _: Runs<'_, Self>, _is_first: bool, _: &mut [MaybeUninit<Self>]) {
        misplaced(op.name(), Self::DTYPE);
    }
    /// The logarithm to a base, of floats and complex numbers.
    fn log_to(base: Base, x: &[Self], out: &mut [MaybeUninit<Self>]);
    /// `op(a, b)` for comparisons.
    fn compare(op: BinaryOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<u8>]);
}

/// Elements, and those that are the other operand of a run of them each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs<'x, C> {
    pub(crate) x: &'x [C],
    pub(crate) with: &'x [C],
    /// How long the first run is that is left, and the others.
    pub(crate) first: usize,
    pub(crate) each: usize,
}

/// Whether an op is done on runs as [`Lanes::binary_with`] does it: one that takes no longer than reading its operands.
pub(crate) fn is_simple(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Max
        | BinaryOp::Min => dtype == DType::F32 || dtype == DType::F64,
        BinaryOp::Atan2
        | BinaryOp::Pow
        | BinaryOp::Quotient
        | BinaryOp::Remainder
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => false,
    }
}

vectorized! {
    /// Writes `f` of every element and the one of its run.
    fn each_run[T: Copy, F: Fn(T, T) -> T] of [T, F] (runs: Runs<'_, T>, out: &mut [MaybeUninit<T>], f: F) {
        let Runs { mut x, with, first, each } = runs;
        let (mut out, mut len) = (out, first);
        for &y in with {
            let run = len.min(x.len());
            let (own, rest) = out.split_at_mut(run);
            for (out, &x) in own.iter_mut().zip(&x[..run]) {
                out.write(f(x, y));
            }
            (x, out, len) = (&x[run..], rest, each);
        }
    }
}

/// A base of logarithms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Two,
    Ten,
}

/// The op cannot come here: its domain or its rule forbids it, and `infer` keeps to both.
#[cold]
fn misplaced(op: &'static str, dtype: defn_core::DType) -> ! {
    unreachable!("{op} is not computed in {dtype}")
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
        impl Lanes for $ty {
            fn unary(op: UnaryOp, bits: u32, x: &[$ty], out: &mut [MaybeUninit<$ty>]) {
                integer_unary(op, bits, x, out);
            }
            fn binary(op: BinaryOp, a: &[$ty], b: &[$ty], out: &mut [MaybeUninit<$ty>]) {
                integer_binary(op, a, b, out);
            }
            fn log_to(_: Base, _: &[$ty], _: &mut [MaybeUninit<$ty>]) {
                misplaced("log", <$ty>::DTYPE);
            }
            fn compare(op: BinaryOp, a: &[$ty], b: &[$ty], out: &mut [MaybeUninit<u8>]) {
                compare(op, a, b, out, |a| a, |b| b);
            }
        }
    )*};
}
integer!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! float {
    ($($ty:ty),*) => {$(
        impl Lanes for $ty {
            fn unary(op: UnaryOp, _: u32, x: &[$ty], out: &mut [MaybeUninit<$ty>]) {
                float_unary(op, x, out);
            }
            fn binary(op: BinaryOp, a: &[$ty], b: &[$ty], out: &mut [MaybeUninit<$ty>]) {
                float_binary(op, a, b, out);
            }
            fn binary_with(op: BinaryOp, runs: Runs<'_, $ty>, is_first: bool, out: &mut [MaybeUninit<$ty>]) {
                float_binary_with(op, runs, is_first, out);
            }
            fn log_to(base: Base, x: &[$ty], out: &mut [MaybeUninit<$ty>]) {
                match base {
                    Base::Two => math::log2(x, out),
                    Base::Ten => math::log10(x, out),
                }
            }
            fn compare(op: BinaryOp, a: &[$ty], b: &[$ty], out: &mut [MaybeUninit<u8>]) {
                compare(op, a, b, out, |a| a, |b| b);
            }
        }

        impl Lanes for Complex<$ty> {
            fn unary(op: UnaryOp, _: u32, x: &[Self], out: &mut [MaybeUninit<Self>]) {
                complex_unary(op, x, out);
            }
            fn binary(op: BinaryOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<Self>]) {
                complex_binary(op, a, b, out);
            }
            fn log_to(base: Base, x: &[Self], out: &mut [MaybeUninit<Self>]) {
                let log = match base {
                    Base::Two => std::f64::consts::LN_2,
                    Base::Ten => std::f64::consts::LN_10,
                };
                each(x, out, |z| nearest(complex::log(wide(z)) / log));
            }
            fn compare(op: BinaryOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<u8>]) {
                compare(op, a, b, out, Unordered, Unordered);
            }
        }
    )*};
}
float!(f32, f64);

/// The modulus of a complex number of either width.
#[inline(always)]
pub(crate) fn abs<T: Float>(z: Complex<T>) -> T {
    if T::DTYPE == DType::F32 {
        return T::of_narrow(math::scalar::hypot_f32(z.re.narrow(), z.im.narrow()));
    }
    T::nearest(math::scalar::hypot(z.re.wide(), z.im.wide()))
}

vectorized! {
    /// Writes the quotient of every pair.
    fn divide_complex[T: Float] of [T] (
        a: &[Complex<T>],
        b: &[Complex<T>],
        out: &mut [MaybeUninit<Complex<T>>],
    ) {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            let (a, b) = (wide(a), wide(b));
            // What f32 holds can be squared in f64.
            let narrow = T::DTYPE == DType::F32;
            out.write(nearest(if narrow { complex::divide_narrow(a, b) } else { complex::divide(a, b) }));
        }
    }
}

#[inline(always)]
fn wide<T: Float>(z: Complex<T>) -> Complex<f64> {
    Complex::new(z.re.wide(), z.im.wide())
}

#[inline(always)]
fn nearest<T: Float>(z: Complex<f64>) -> Complex<T> {
    Complex::new(T::nearest(z.re), T::nearest(z.im))
}

fn integer_unary<T: Integer>(op: UnaryOp, bits: u32, x: &[T], out: &mut [MaybeUninit<T>]) {
    // The bits of the dtype itself, of which the 2- and 4-bit types have fewer than T.
    let own = |x: T| x.extended() & (u64::MAX >> (64 - bits));
    match op {
        UnaryOp::Negate => each(x, out, T::negated),
        UnaryOp::Abs => each(x, out, T::magnitude),
        UnaryOp::Sign => each(x, out, T::signum),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round => each(x, out, |x| x),
        UnaryOp::BitwiseNot => each(x, out, |x| T::truncated(!x.extended())),
        UnaryOp::PopulationCount => {
            let mask = T::truncated(u64::MAX >> (64 - bits));
            each(x, out, |x| x.both(mask).ones());
        }
        UnaryOp::CountLeadingZeros => {
            each(x, out, |x| T::truncated(u64::from(own(x).leading_zeros() - (64 - bits))));
        }
        UnaryOp::Exp
        | UnaryOp::Expm1
        | UnaryOp::Log
        | UnaryOp::Log1p
        | UnaryOp::Sigmoid
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Tanh
        | UnaryOp::Asin
        | UnaryOp::Acos
        | UnaryOp::Atan
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Sqrt
        | UnaryOp::Rsqrt
        | UnaryOp::Cbrt
        | UnaryOp::Erf
        | UnaryOp::Erfc
        | UnaryOp::ErfInv
        | UnaryOp::Conjugate
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity => misplaced(op.name(), T::DTYPE),
    }
}

fn float_unary<T: Float>(op: UnaryOp, x: &[T], out: &mut [MaybeUninit<T>]) {
    match op {
        UnaryOp::Negate => each(x, out, T::negated),
        UnaryOp::Abs => each(x, out, T::magnitude),
        UnaryOp::Sign => each(x, out, math::sign),
        UnaryOp::Floor => each(x, out, T::floor),
        UnaryOp::Ceil => each(x, out, T::ceil),
        UnaryOp::Round => each(x, out, T::round),
        UnaryOp::Exp => math::exp(x, out),
        UnaryOp::Expm1 => math::expm1(x, out),
        UnaryOp::Log => math::log(x, out),
        UnaryOp::Log1p => math::log1p(x, out),
        UnaryOp::Sigmoid => math::sigmoid(x, out),
        UnaryOp::Sin => math::sin(x, out),
        UnaryOp::Cos => math::cos(x, out),
        UnaryOp::Tan => math::tan(x, out),
        UnaryOp::Sinh => math::sinh(x, out),
        UnaryOp::Cosh => math::cosh(x, out),
        UnaryOp::Tanh => math::tanh(x, out),
        UnaryOp::Asin => math::asin(x, out),
        UnaryOp::Acos => math::acos(x, out),
        UnaryOp::Atan => math::atan(x, out),
        UnaryOp::Asinh => math::asinh(x, out),
        UnaryOp::Acosh => math::acosh(x, out),
        UnaryOp::Atanh => math::atanh(x, out),
        UnaryOp::Sqrt => each(x, out, T::sqrt),
        UnaryOp::Rsqrt => each(x, out, T::rsqrt),
        UnaryOp::Cbrt => math::cbrt(x, out),
        UnaryOp::Erf => math::erf(x, out),
        UnaryOp::Erfc => math::erfc(x, out),
        UnaryOp::ErfInv => math::erf_inv(x, out),
        UnaryOp::Conjugate
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::BitwiseNot
        | UnaryOp::PopulationCount
        | UnaryOp::CountLeadingZeros
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity => misplaced(op.name(), T::DTYPE),
    }
}

fn complex_unary<T: Float>(op: UnaryOp, x: &[Complex<T>], out: &mut [MaybeUninit<Complex<T>>])
where
    Complex<T>: Element,
{
    let mut through = |f: fn(Complex<f64>) -> Complex<f64>| each(x, out, |z| nearest(f(wide(z))));
    match op {
        UnaryOp::Negate => each(x, out, Complex::<T>::negated),
        UnaryOp::Sign => through(complex::sign),
        UnaryOp::Exp => through(complex::exp),
        UnaryOp::Expm1 => through(complex::expm1),
        UnaryOp::Log => through(complex::log),
        UnaryOp::Log1p => through(complex::log1p),
        UnaryOp::Sigmoid => through(complex::sigmoid),
        UnaryOp::Sin => through(complex::sin),
        UnaryOp::Cos => through(complex::cos),
        UnaryOp::Tan => through(complex::tan),
        UnaryOp::Sinh => through(complex::sinh),
        UnaryOp::Cosh => through(complex::cosh),
        UnaryOp::Tanh => through(complex::tanh),
        UnaryOp::Asin => through(complex::asin),
        UnaryOp::Acos => through(complex::acos),
        UnaryOp::Atan => through(complex::atan),
        UnaryOp::Asinh => through(complex::asinh),
        UnaryOp::Acosh => through(complex::acosh),
        UnaryOp::Atanh => through(complex::atanh),
        UnaryOp::Sqrt => through(complex::sqrt),
        UnaryOp::Rsqrt => through(complex::rsqrt),
        UnaryOp::Cbrt => through(complex::cbrt),
        UnaryOp::Abs
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::Erf
        | UnaryOp::Erfc
        | UnaryOp::ErfInv
        | UnaryOp::Conjugate
        | UnaryOp::Real
        | UnaryOp::Imag
        | UnaryOp::BitwiseNot
        | UnaryOp::PopulationCount
        | UnaryOp::CountLeadingZeros
        | UnaryOp::IsNan
        | UnaryOp::IsInfinity => misplaced(op.name(), Complex::<T>::DTYPE),
    }
}

fn integer_binary<T: Integer>(op: BinaryOp, a: &[T], b: &[T], out: &mut [MaybeUninit<T>]) {
    match op {
        BinaryOp::Add => each_pair(a, b, out, T::plus),
        BinaryOp::Subtract => each_pair(a, b, out, T::minus),
        BinaryOp::Multiply => each_pair(a, b, out, T::times),
        BinaryOp::Pow => each_pair(a, b, out, power),
        BinaryOp::Quotient => each_pair(a, b, out, T::quotient),
        BinaryOp::Remainder => each_pair(a, b, out, T::remainder),
        BinaryOp::Max => each_pair(a, b, out, T::greater),
        BinaryOp::Min => each_pair(a, b, out, T::lesser),
        BinaryOp::BitwiseAnd => each_pair(a, b, out, T::both),
        BinaryOp::BitwiseOr => each_pair(a, b, out, T::either),
        BinaryOp::BitwiseXor => each_pair(a, b, out, T::one_of),
        BinaryOp::LeftShift => each_pair(a, b, out, T::shifted_left),
        BinaryOp::RightShift => each_pair(a, b, out, T::shifted_right),
        BinaryOp::Divide
        | BinaryOp::Atan2
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => misplaced(op.name(), T::DTYPE),
    }
}

/// Modulo 2^bits. The exponent is not negative: its bits are read as unsigned, since a large u64 may have
/// become negative in a merged type.
fn power<T: Integer>(mut base: T, exponent: T) -> T {
    let mut exponent = exponent.extended();
    let mut result = T::ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.times(base);
        }
        base = base.times(base);
        exponent >>= 1;
    }
    result
}

fn float_binary<T: Float>(op: BinaryOp, a: &[T], b: &[T], out: &mut [MaybeUninit<T>]) {
    match op {
        BinaryOp::Add => each_pair(a, b, out, T::plus),
        BinaryOp::Subtract => each_pair(a, b, out, T::minus),
        BinaryOp::Multiply => each_pair(a, b, out, T::times),
        BinaryOp::Divide => each_pair(a, b, out, T::over),
        BinaryOp::Pow => math::pow(a, b, out),
        BinaryOp::Atan2 => math::atan2(a, b, out),
        BinaryOp::Remainder => each_pair(a, b, out, T::remainder),
        BinaryOp::Max => each_pair(a, b, out, T::greater),
        BinaryOp::Min => each_pair(a, b, out, T::lesser),
        BinaryOp::Quotient
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => misplaced(op.name(), T::DTYPE),
    }
}

fn float_binary_with<T: Float>(op: BinaryOp, runs: Runs<'_, T>, is_first: bool, out: &mut [MaybeUninit<T>]) {
    match (op, is_first) {
        (BinaryOp::Add, _) => each_run(runs, out, T::plus),
        (BinaryOp::Multiply, _) => each_run(runs, out, T::times),
        (BinaryOp::Subtract, false) => each_run(runs, out, T::minus),
        (BinaryOp::Subtract, true) => each_run(runs, out, |x, y| y.minus(x)),
        (BinaryOp::Divide, false) => each_run(runs, out, T::over),
        (BinaryOp::Divide, true) => each_run(runs, out, |x, y| y.over(x)),
        (BinaryOp::Max, false) => each_run(runs, out, T::greater),
        (BinaryOp::Max, true) => each_run(runs, out, |x, y| y.greater(x)),
        (BinaryOp::Min, false) => each_run(runs, out, T::lesser),
        (BinaryOp::Min, true) => each_run(runs, out, |x, y| y.lesser(x)),
        (
            BinaryOp::Pow
            | BinaryOp::Atan2
            | BinaryOp::Remainder
            | BinaryOp::Quotient
            | BinaryOp::BitwiseAnd
            | BinaryOp::BitwiseOr
            | BinaryOp::BitwiseXor
            | BinaryOp::LeftShift
            | BinaryOp::RightShift
            | BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr
            | BinaryOp::LogicalXor
            | BinaryOp::Complex,
            _,
        ) => misplaced(op.name(), T::DTYPE),
    }
}

fn complex_binary<T: Float>(
    op: BinaryOp,
    a: &[Complex<T>],
    b: &[Complex<T>],
    out: &mut [MaybeUninit<Complex<T>>],
) where
    Complex<T>: Element,
{
    match op {
        BinaryOp::Add => each_pair(a, b, out, Complex::<T>::plus),
        BinaryOp::Subtract => each_pair(a, b, out, Complex::<T>::minus),
        BinaryOp::Multiply => each_pair(a, b, out, Complex::<T>::times),
        BinaryOp::Divide => divide_complex(a, b, out),
        BinaryOp::Pow => each_pair(a, b, out, |a, b| nearest(complex::pow(wide(a), wide(b)))),
        BinaryOp::Atan2
        | BinaryOp::Quotient
        | BinaryOp::Remainder
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => misplaced(op.name(), Complex::<T>::DTYPE),
    }
}

/// Compares elements by what `left` and `right` make of them.
pub(crate) fn compare<A: Copy, B: Copy, K: PartialOrd>(
    op: BinaryOp,
    a: &[A],
    b: &[B],
    out: &mut [MaybeUninit<u8>],
    left: impl Fn(A) -> K,
    right: impl Fn(B) -> K,
) {
    match op {
        BinaryOp::Equal => each_pair(a, b, out, |a, b| u8::from(left(a) == right(b))),
        BinaryOp::NotEqual => each_pair(a, b, out, |a, b| u8::from(left(a) != right(b))),
        BinaryOp::Greater => each_pair(a, b, out, |a, b| u8::from(left(a) > right(b))),
        BinaryOp::GreaterEqual => each_pair(a, b, out, |a, b| u8::from(left(a) >= right(b))),
        BinaryOp::Less => each_pair(a, b, out, |a, b| u8::from(left(a) < right(b))),
        BinaryOp::LessEqual => each_pair(a, b, out, |a, b| u8::from(left(a) <= right(b))),
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Pow
        | BinaryOp::Atan2
        | BinaryOp::Quotient
        | BinaryOp::Remainder
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => unreachable!("{} is no comparison", op.name()),
    }
}

/// A complex number that can be asked whether it equals another, and has no order.
#[derive(PartialEq)]
struct Unordered<T>(T);

impl<T: PartialEq> PartialOrd for Unordered<T> {
    fn partial_cmp(&self, _: &Self) -> Option<std::cmp::Ordering> {
        None
    }
}
