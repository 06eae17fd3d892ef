//! The math library: functions of real numbers in f32 and f64, shared by eager operations and compiled code.
//!
//! The functions have no branches, so a loop over an array is vectorised at any SIMD width. Common and cheap functions
//! of f32 are computed in f32 (`narrow`), the others in f64 with shorter polynomials and one rounding at the end.
//! `docs/ulp.md` lists the measured errors: at most 2 ulp in f32, 4 in f64. Products and sums use fused multiply-add
//! where the processor has a fast instruction for it. All such processors give the same bits, whatever their SIMD
//! width.
//!
//! Special values are those of C99, Annex F. Polynomials and constants come from `tools/minimax.py`.

mod arc;
mod bits;
mod erf;
mod exp;
mod log;
mod narrow;
mod power;
mod tables;
mod trig;

use std::mem::MaybeUninit;

use super::Real;
use super::simd::{at_level, vectorized};
use crate::compiler::ir::Rare;
use crate::compiler::ir::functions::narrow::trig::{NARROW_LIMIT, TAN_LIMIT};
use tables::{Double, Precision, Single};

/// The types f32 and f64.
pub(crate) trait Float: Real {
    /// The precision of its functions.
    type Precision: Precision;
    /// The same value, in f64.
    fn wide(self) -> f64;
    /// The nearest value.
    fn nearest(x: f64) -> Self;
    /// The value rounded to f32.
    fn narrow(self) -> f32;
    /// The value of an f32.
    fn of_narrow(x: f32) -> Self;
    /// `|x|`.
    fn magnitude(self) -> Self;
    /// The greatest integer that is not above.
    fn floor(self) -> Self;
    /// The least integer that is not below.
    fn ceil(self) -> Self;
    /// The nearest integer, halves away from zero.
    fn round(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(x)`.
    fn rsqrt(self) -> Self;
    /// The quotient.
    fn over(self, other: Self) -> Self;
}

macro_rules! float {
    ($ty:ty, $precision:ty) => {
        impl Float for $ty {
            type Precision = $precision;
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn nearest(x: f64) -> $ty {
                x as $ty
            }
            #[inline(always)]
            fn narrow(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn of_narrow(x: f32) -> $ty {
                x as $ty
            }
            #[inline(always)]
            fn magnitude(self) -> $ty {
                self.abs()
            }
            #[inline(always)]
            fn floor(self) -> $ty {
                self.floor()
            }
            #[inline(always)]
            fn ceil(self) -> $ty {
                self.ceil()
            }
            #[inline(always)]
            fn round(self) -> $ty {
                self.round()
            }
            #[inline(always)]
            fn sqrt(self) -> $ty {
                self.sqrt()
            }
            #[inline(always)]
            fn rsqrt(self) -> $ty {
                1.0 / self.sqrt()
            }
            #[inline(always)]
            fn over(self, other: $ty) -> $ty {
                self / other
            }
        }
    };
}
float!(f32, Single);
float!(f64, Double);

/// Defines a function over slices whose loop is compiled for several instruction sets. `$P` is the precision of `T` on
/// each.
macro_rules! accurate {
    ($(#[$meta:meta])* fn $name:ident[$T:ident, $P:ident]($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        pub(crate) fn $name<$T: Float>($($arg: $ty),*) {
            #[inline(always)]
            fn body<$T: Float, $P: Precision>($($arg: $ty),*) $body

            at_level!(
                [$T: Float],
                [$T],
                ($($arg: $ty),*),
                (),
                body::<$T, <$T as Float>::Precision>,
                body::<$T, <<$T as Float>::Precision as Precision>::Fused>
            )
        }
    };
}

/// Functions of one number. Those with a second module (`narrow`) are computed in f32 for f32; the others are computed
/// in f64.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $($module:ident),+;)*) => {$(
        accurate! {
            $(#[$doc])*
            fn $name[T, P](x: &[T], out: &mut [MaybeUninit<T>]) {
                for (out, &x) in out.iter_mut().zip(x) {
                    out.write(unary!(@$name, P, x, $($module),+));
                }
            }
        }
    )*};
    (@$name:ident, $P:ident, $x:ident, $module:ident) => {
        Float::nearest($module::$name::<$P>($x.wide()))
    };
    (@$name:ident, $P:ident, $x:ident, $module:ident, narrow) => {
        if $P::DOUBLE {
            Float::nearest($module::$name::<$P>($x.wide()))
        } else {
            Float::of_narrow(narrow::$module::$name::<$P>($x.narrow()))
        }
    };
}

unary! {
    /// Writes `e^x - 1` of every element.
    expm1 = exp, narrow;
    /// Writes `1 / (1 + e^-x)` of every element.
    sigmoid = exp, narrow;
    /// Writes the hyperbolic sine of every element.
    sinh = exp, narrow;
    /// Writes the hyperbolic cosine of every element.
    cosh = exp, narrow;
    /// Writes the hyperbolic tangent of every element.
    tanh = exp, narrow;
    /// Writes the natural logarithm of every element.
    log = log, narrow;
    /// Writes the logarithm to base 2 of every element.
    log2 = log, narrow;
    /// Writes the logarithm to base 10 of every element.
    log10 = log, narrow;
    /// Writes `log(1 + x)` of every element.
    log1p = log, narrow;
    /// Writes the inverse hyperbolic sine of every element.
    asinh = log, narrow;
    /// Writes the inverse hyperbolic cosine of every element.
    acosh = log, narrow;
    /// Writes the inverse hyperbolic tangent of every element.
    atanh = log, narrow;
    /// Writes the arc sine of every element.
    asin = arc, narrow;
    /// Writes the arc cosine of every element.
    acos = arc, narrow;
    /// Writes the arc tangent of every element.
    atan = arc, narrow;
    /// Writes the cube root of every element.
    cbrt = power, narrow;
    /// Writes the error function of every element.
    erf = erf;
    /// Writes `1 - erf(x)` of every element.
    erfc = erf;
    /// Writes the inverse of the error function of every element.
    erf_inv = erf;
    /// Writes the sine of every element up to a limit.
    near_sin = trig, narrow;
    /// Writes the cosine of every element up to a limit.
    near_cos = trig, narrow;
    /// Writes the tangent of every element up to a limit.
    near_tan = trig, narrow;
}

accurate! {
    /// Writes `e^x` of every element.
    fn exp[T, P](x: &[T], out: &mut [MaybeUninit<T>]) {
        // Inputs whose results may be subnormal or infinite are rare. The loop without them takes half the time.
        let most = T::of_narrow(narrow::exp::PLAIN);
        let plain = x.iter().fold(1u32, |all, &x| all & u32::from(x.magnitude() <= most));
        for (out, &x) in out.iter_mut().zip(x) {
            out.write(match (P::DOUBLE, plain == 1) {
                (true, _) => T::nearest(exp::exp::<P>(x.wide())),
                (false, false) => T::of_narrow(narrow::exp::exp::<P>(x.narrow())),
                (false, true) => T::of_narrow(narrow::exp::plain_exp::<P>(x.narrow())),
            });
        }
    }
}

accurate! {
    /// Writes the angle of every point `(x, y)`.
    fn atan2[T, P](y: &[T], x: &[T], out: &mut [MaybeUninit<T>]) {
        for ((out, &y), &x) in out.iter_mut().zip(y).zip(x) {
            out.write(if P::DOUBLE {
                T::nearest(arc::atan2::<P>(y.wide(), x.wide()))
            } else {
                T::of_narrow(narrow::arc::atan2::<P>(y.narrow(), x.narrow()))
            });
        }
    }
}

accurate! {
    /// Writes `x^y` of every pair.
    fn pow[T, P](x: &[T], y: &[T], out: &mut [MaybeUninit<T>]) {
        // Special values are rare. The loop without them takes two thirds of the time.
        let (most, infinite) = (T::nearest(power::LARGE), T::nearest(f64::INFINITY));
        let special = x.iter().zip(y).fold(0u32, |any, (&x, &y)| {
            any | u32::from(!((x > T::ZERO) & (x < infinite) & (y.magnitude() <= most)))
        });
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            out.write(match (P::DOUBLE, special != 0) {
                (true, true) => T::nearest(power::pow::<P>(x.wide(), y.wide())),
                (true, false) => T::nearest(power::ordinary::<P>(x.wide(), y.wide())),
                (false, true) => T::of_narrow(narrow::power::pow::<P>(x.narrow(), y.narrow())),
                (false, false) => T::nearest(power::ordinary::<P>(x.wide(), y.wide())),
            });
        }
    }
}

vectorized! {
    /// Whether any element is beyond a limit.
    fn any_far[T: Float] of [T] (x: &[T], limit: f64) -> bool {
        x.iter().fold(0u32, |any, x| any | u32::from(x.wide().abs() > limit)) != 0
    }
}

/// Writes the sine of every element.
pub(crate) fn sin<T: Float>(x: &[T], out: &mut [MaybeUninit<T>]) {
    near_sin(x, out);
    patch(x, out, NARROW_LIMIT, Rare::Sin);
}

/// Writes the cosine of every element.
pub(crate) fn cos<T: Float>(x: &[T], out: &mut [MaybeUninit<T>]) {
    near_cos(x, out);
    patch(x, out, NARROW_LIMIT, Rare::Cos);
}

/// Writes the tangent of every element.
pub(crate) fn tan<T: Float>(x: &[T], out: &mut [MaybeUninit<T>]) {
    near_tan(x, out);
    patch(x, out, TAN_LIMIT, Rare::Tan);
}

/// Writes a function of the elements beyond the limit, one by one. That of f64 is [`trig::LIMIT`].
fn patch<T: Float>(x: &[T], out: &mut [MaybeUninit<T>], narrow_limit: f64, rare: Rare) {
    let limit = if T::Precision::DOUBLE { trig::LIMIT } else { narrow_limit };
    if any_far(x, limit) {
        for (x, out) in x.iter().map(|x| x.wide()).zip(out) {
            if x.abs() > limit {
                out.write(T::nearest(rare.of(x)));
            }
        }
    }
}

/// -1, 0 or 1; NaN stays NaN.
#[inline(always)]
pub(crate) fn sign<T: Float>(x: T) -> T {
    let above = if x > T::ZERO { T::ONE } else { T::ZERO };
    let sign = if x < T::ZERO { T::ONE.negated() } else { above };
    if x.nan() { x } else { sign }
}

macro_rules! scalar_functions {
    ($($(#[$doc:meta])* $name:ident = $module:ident::$function:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(x: f64) -> f64 {
            at_level!(
                [],
                [],
                (x: f64),
                (f64),
                super::$module::$function::<Double>,
                super::$module::$function::<Fused>
            )
        }
    )*};
}

/// The functions of one f64, for code that has branches in any case.
pub(crate) mod scalar {
    use super::tables::{Double, Precision};
    use super::{arc, power, trig};
    use crate::compiler::ir::Rare;
    use crate::kernels::simd::at_level;

    type Fused = <Double as Precision>::Fused;

    scalar_functions! {
        /// `e^x`.
        exp = exp::exp;
        /// `e^x - 1`.
        expm1 = exp::expm1;
        /// Hyperbolic sine.
        sinh = exp::sinh;
        /// Hyperbolic cosine.
        cosh = exp::cosh;
        /// Hyperbolic tangent.
        tanh = exp::tanh;
        /// The natural logarithm.
        log = log::log;
        /// `log(1 + x)`.
        log1p = log::log1p;
        /// Inverse hyperbolic sine.
        asinh = log::asinh;
        /// Inverse hyperbolic tangent.
        atanh = log::atanh;
        /// The cube root.
        cbrt = power::cbrt;
    }

    /// `sqrt(x^2 + y^2)`.
    #[inline(always)]
    pub(crate) fn hypot(x: f64, y: f64) -> f64 {
        power::hypot(x, y)
    }

    /// `sqrt(x^2 + y^2)` in single precision.
    #[inline(always)]
    pub(crate) fn hypot_f32(x: f32, y: f32) -> f32 {
        power::hypot_f32(x, y)
    }

    /// The angle of the point `(x, y)`.
    pub(crate) fn atan2(y: f64, x: f64) -> f64 {
        at_level!([], [], (y: f64, x: f64), (f64), arc::atan2::<Double>, arc::atan2::<Fused>)
    }

    /// Sine and cosine.
    pub(crate) fn sin_cos(x: f64) -> (f64, f64) {
        if x.abs() > trig::LIMIT {
            return (Rare::Sin.of(x), Rare::Cos.of(x));
        }
        near_sin_cos(x)
    }

    fn near_sin_cos(x: f64) -> (f64, f64) {
        at_level!(
            [],
            [],
            (x: f64),
            ((f64, f64)),
            trig::near_sin_cos::<Double>,
            trig::near_sin_cos::<Fused>
        )
    }
}

#[cfg(test)]
mod tests;
