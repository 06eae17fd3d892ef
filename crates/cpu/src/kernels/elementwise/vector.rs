//! Loops over a tile: one match over the ops outside, one loop without branches inside.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::{ArithmeticOp, BinaryOp, ComparisonOp, FunctionOp, SignOp, UnaryOp};
use num_complex::Complex;

use super::complex;
use crate::kernels::math::{self, Float};
use crate::kernels::simd::{each, each_pair, vectorized};
use crate::kernels::{Element, Integer};

/// Element types with every op of the catalogue whose domain they belong to.
pub(crate) trait Lanes: Element {
    /// `op(x)` for ops whose result has the type of the operand. `bits` is the width of the dtype, for ops that
    /// count bits.
    fn unary(op: UnaryOp, bits: u32, x: &[Self], out: &mut [MaybeUninit<Self>]);
    /// `op(a, b)` for ops whose result has the type of the operands.
    fn binary(op: BinaryOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<Self>]);
    /// `op(x, y)` for consecutive runs of `x`, each with one element `y` of `with`, which is the first operand if
    /// `is_first`. Only for ops that [`is_simple`] accepts.
    fn binary_with(op: BinaryOp, _: Runs<'_, Self>, _is_first: bool, _: &mut [MaybeUninit<Self>]) {
        misplaced(op.name(), Self::DTYPE);
    }
    /// The logarithm to a base, of floats and complex numbers.
    fn log_to(base: Base, x: &[Self], out: &mut [MaybeUninit<Self>]);
    /// `op(a, b)` for comparisons.
    fn compare(op: ComparisonOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<u8>]);
}

/// Elements in runs, and for each run the element that is its other operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs<'x, C> {
    pub(crate) x: &'x [C],
    pub(crate) with: &'x [C],
    /// The length of the first run, of which a part may be done already, and of the others.
    pub(crate) first: usize,
    pub(crate) each: usize,
}

/// Whether [`Lanes::binary_with`] supports an op: only ops that take no longer than reading their operands.
pub(crate) fn is_simple(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::ADD
        | BinaryOp::SUBTRACT
        | BinaryOp::MULTIPLY
        | BinaryOp::DIVIDE
        | BinaryOp::MAX
        | BinaryOp::MIN => dtype == DType::F32 || dtype == DType::F64,
        BinaryOp::Arithmetic(_)
        | BinaryOp::Bitwise(_)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => false,
    }
}

vectorized! {
    /// Writes `f` of each element and the other operand of its run.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Two,
    Ten,
}

/// Panics. `infer` rejects ops outside the domain of a dtype, so that none reaches a kernel.
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
            fn compare(op: ComparisonOp, a: &[$ty], b: &[$ty], out: &mut [MaybeUninit<u8>]) {
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
            fn compare(op: ComparisonOp, a: &[$ty], b: &[$ty], out: &mut [MaybeUninit<u8>]) {
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
            fn compare(op: ComparisonOp, a: &[Self], b: &[Self], out: &mut [MaybeUninit<u8>]) {
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
            // The squares of f32 values do not overflow in f64.
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
    // The bits of the dtype itself; the 2- and 4-bit types have fewer than T.
    let own = |x: T| x.extended() & (u64::MAX >> (64 - bits));
    match op {
        UnaryOp::NEGATE => each(x, out, T::negated),
        UnaryOp::ABS => each(x, out, T::magnitude),
        UnaryOp::SIGN => each(x, out, T::signum),
        UnaryOp::FLOOR | UnaryOp::CEIL | UnaryOp::ROUND => each(x, out, |x| x),
        UnaryOp::BITWISE_NOT => each(x, out, |x| T::truncated(!x.extended())),
        UnaryOp::POPULATION_COUNT => {
            let mask = T::truncated(u64::MAX >> (64 - bits));
            each(x, out, |x| x.both(mask).ones());
        }
        UnaryOp::COUNT_LEADING_ZEROS => {
            each(x, out, |x| T::truncated(u64::from(own(x).leading_zeros() - (64 - bits))));
        }
        UnaryOp::Function(_) | UnaryOp::Part(_) | UnaryOp::Test(_) => misplaced(op.name(), T::DTYPE),
    }
}

fn float_unary<T: Float>(op: UnaryOp, x: &[T], out: &mut [MaybeUninit<T>]) {
    match op {
        UnaryOp::NEGATE => each(x, out, T::negated),
        UnaryOp::ABS => each(x, out, T::magnitude),
        UnaryOp::SIGN => each(x, out, math::sign),
        UnaryOp::FLOOR => each(x, out, T::floor),
        UnaryOp::CEIL => each(x, out, T::ceil),
        UnaryOp::ROUND => each(x, out, T::round),
        UnaryOp::EXP => math::exp(x, out),
        UnaryOp::EXPM1 => math::expm1(x, out),
        UnaryOp::LOG => math::log(x, out),
        UnaryOp::LOG1P => math::log1p(x, out),
        UnaryOp::SIGMOID => math::sigmoid(x, out),
        UnaryOp::SIN => math::sin(x, out),
        UnaryOp::COS => math::cos(x, out),
        UnaryOp::TAN => math::tan(x, out),
        UnaryOp::SINH => math::sinh(x, out),
        UnaryOp::COSH => math::cosh(x, out),
        UnaryOp::TANH => math::tanh(x, out),
        UnaryOp::ASIN => math::asin(x, out),
        UnaryOp::ACOS => math::acos(x, out),
        UnaryOp::ATAN => math::atan(x, out),
        UnaryOp::ASINH => math::asinh(x, out),
        UnaryOp::ACOSH => math::acosh(x, out),
        UnaryOp::ATANH => math::atanh(x, out),
        UnaryOp::SQRT => each(x, out, T::sqrt),
        UnaryOp::RSQRT => each(x, out, T::rsqrt),
        UnaryOp::CBRT => math::cbrt(x, out),
        UnaryOp::ERF => math::erf(x, out),
        UnaryOp::ERFC => math::erfc(x, out),
        UnaryOp::ERF_INV => math::erf_inv(x, out),
        UnaryOp::Part(_) | UnaryOp::Bits(_) | UnaryOp::Test(_) => misplaced(op.name(), T::DTYPE),
    }
}

fn complex_unary<T: Float>(op: UnaryOp, x: &[Complex<T>], out: &mut [MaybeUninit<Complex<T>>])
where
    Complex<T>: Element,
{
    let mut through = |f: fn(Complex<f64>) -> Complex<f64>| each(x, out, |z| nearest(f(wide(z))));
    match op {
        UnaryOp::NEGATE => each(x, out, Complex::<T>::negated),
        UnaryOp::SIGN => through(complex::sign),
        UnaryOp::EXP => through(complex::exp),
        UnaryOp::EXPM1 => through(complex::expm1),
        UnaryOp::LOG => through(complex::log),
        UnaryOp::LOG1P => through(complex::log1p),
        UnaryOp::SIGMOID => through(complex::sigmoid),
        UnaryOp::SIN => through(complex::sin),
        UnaryOp::COS => through(complex::cos),
        UnaryOp::TAN => through(complex::tan),
        UnaryOp::SINH => through(complex::sinh),
        UnaryOp::COSH => through(complex::cosh),
        UnaryOp::TANH => through(complex::tanh),
        UnaryOp::ASIN => through(complex::asin),
        UnaryOp::ACOS => through(complex::acos),
        UnaryOp::ATAN => through(complex::atan),
        UnaryOp::ASINH => through(complex::asinh),
        UnaryOp::ACOSH => through(complex::acosh),
        UnaryOp::ATANH => through(complex::atanh),
        UnaryOp::SQRT => through(complex::sqrt),
        UnaryOp::RSQRT => through(complex::rsqrt),
        UnaryOp::CBRT => through(complex::cbrt),
        UnaryOp::Sign(SignOp::Abs)
        | UnaryOp::Function(FunctionOp::Erf | FunctionOp::Erfc | FunctionOp::ErfInv)
        | UnaryOp::Rounding(_)
        | UnaryOp::Part(_)
        | UnaryOp::Bits(_)
        | UnaryOp::Test(_) => misplaced(op.name(), Complex::<T>::DTYPE),
    }
}

fn integer_binary<T: Integer>(op: BinaryOp, a: &[T], b: &[T], out: &mut [MaybeUninit<T>]) {
    match op {
        BinaryOp::ADD => each_pair(a, b, out, T::plus),
        BinaryOp::SUBTRACT => each_pair(a, b, out, T::minus),
        BinaryOp::MULTIPLY => each_pair(a, b, out, T::times),
        BinaryOp::POW => each_pair(a, b, out, power),
        BinaryOp::QUOTIENT => each_pair(a, b, out, T::quotient),
        BinaryOp::REMAINDER => each_pair(a, b, out, T::remainder),
        BinaryOp::MAX => each_pair(a, b, out, T::greater),
        BinaryOp::MIN => each_pair(a, b, out, T::lesser),
        BinaryOp::BITWISE_AND => each_pair(a, b, out, T::both),
        BinaryOp::BITWISE_OR => each_pair(a, b, out, T::either),
        BinaryOp::BITWISE_XOR => each_pair(a, b, out, T::one_of),
        BinaryOp::LEFT_SHIFT => each_pair(a, b, out, T::shifted_left),
        BinaryOp::RIGHT_SHIFT => each_pair(a, b, out, T::shifted_right),
        BinaryOp::Arithmetic(ArithmeticOp::Divide | ArithmeticOp::Atan2)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => misplaced(op.name(), T::DTYPE),
    }
}

/// Modulo 2^bits. The exponent is not negative: its bits are read as unsigned, since a large u64 may have become
/// negative in a merged type.
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
        BinaryOp::ADD => each_pair(a, b, out, T::plus),
        BinaryOp::SUBTRACT => each_pair(a, b, out, T::minus),
        BinaryOp::MULTIPLY => each_pair(a, b, out, T::times),
        BinaryOp::DIVIDE => each_pair(a, b, out, T::over),
        BinaryOp::POW => math::pow(a, b, out),
        BinaryOp::ATAN2 => math::atan2(a, b, out),
        BinaryOp::REMAINDER => each_pair(a, b, out, T::remainder),
        BinaryOp::MAX => each_pair(a, b, out, T::greater),
        BinaryOp::MIN => each_pair(a, b, out, T::lesser),
        BinaryOp::Arithmetic(ArithmeticOp::Quotient)
        | BinaryOp::Bitwise(_)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => misplaced(op.name(), T::DTYPE),
    }
}

fn float_binary_with<T: Float>(op: BinaryOp, runs: Runs<'_, T>, is_first: bool, out: &mut [MaybeUninit<T>]) {
    match (op, is_first) {
        (BinaryOp::ADD, _) => each_run(runs, out, T::plus),
        (BinaryOp::MULTIPLY, _) => each_run(runs, out, T::times),
        (BinaryOp::SUBTRACT, false) => each_run(runs, out, T::minus),
        (BinaryOp::SUBTRACT, true) => each_run(runs, out, |x, y| y.minus(x)),
        (BinaryOp::DIVIDE, false) => each_run(runs, out, T::over),
        (BinaryOp::DIVIDE, true) => each_run(runs, out, |x, y| y.over(x)),
        (BinaryOp::MAX, false) => each_run(runs, out, T::greater),
        (BinaryOp::MAX, true) => each_run(runs, out, |x, y| y.greater(x)),
        (BinaryOp::MIN, false) => each_run(runs, out, T::lesser),
        (BinaryOp::MIN, true) => each_run(runs, out, |x, y| y.lesser(x)),
        (
            BinaryOp::Arithmetic(_)
            | BinaryOp::Bitwise(_)
            | BinaryOp::Comparison(_)
            | BinaryOp::Logical(_)
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
        BinaryOp::ADD => each_pair(a, b, out, Complex::<T>::plus),
        BinaryOp::SUBTRACT => each_pair(a, b, out, Complex::<T>::minus),
        BinaryOp::MULTIPLY => each_pair(a, b, out, Complex::<T>::times),
        BinaryOp::DIVIDE => divide_complex(a, b, out),
        BinaryOp::POW => each_pair(a, b, out, |a, b| nearest(complex::pow(wide(a), wide(b)))),
        BinaryOp::Arithmetic(
            ArithmeticOp::Atan2
            | ArithmeticOp::Quotient
            | ArithmeticOp::Remainder
            | ArithmeticOp::Max
            | ArithmeticOp::Min,
        )
        | BinaryOp::Bitwise(_)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => misplaced(op.name(), Complex::<T>::DTYPE),
    }
}

/// Compares the values that `left` and `right` map elements to.
pub(crate) fn compare<A: Copy, B: Copy, K: PartialOrd>(
    op: ComparisonOp,
    a: &[A],
    b: &[B],
    out: &mut [MaybeUninit<u8>],
    left: impl Fn(A) -> K,
    right: impl Fn(B) -> K,
) {
    match op {
        ComparisonOp::Equal => each_pair(a, b, out, |a, b| u8::from(left(a) == right(b))),
        ComparisonOp::NotEqual => each_pair(a, b, out, |a, b| u8::from(left(a) != right(b))),
        ComparisonOp::Greater => each_pair(a, b, out, |a, b| u8::from(left(a) > right(b))),
        ComparisonOp::GreaterEqual => each_pair(a, b, out, |a, b| u8::from(left(a) >= right(b))),
        ComparisonOp::Less => each_pair(a, b, out, |a, b| u8::from(left(a) < right(b))),
        ComparisonOp::LessEqual => each_pair(a, b, out, |a, b| u8::from(left(a) <= right(b))),
    }
}

/// A complex number, which can be equal to another but has no order.
#[derive(PartialEq)]
struct Unordered<T>(T);

impl<T: PartialEq> PartialOrd for Unordered<T> {
    fn partial_cmp(&self, _: &Self) -> Option<std::cmp::Ordering> {
        None
    }
}
