//! Functions of complex numbers: principal branches, with signed zeros on the cuts, and without overflow of
//! intermediate results.
//!
//! Infinities and NaN follow Annex G of C99. Where it leaves a sign open, and for functions that it lacks, they follow
//! NumPy.
//!
//! Inverse functions after Kahan, Branch Cuts for Complex Elementary Functions (1987). Everything is computed in f64;
//! c64 rounds once.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};
use std::hint::select_unpredictable;

use num_complex::Complex;

use crate::kernels::math::scalar as math;

/// The type of all computations.
type C = Complex<f64>;

const ONE: C = Complex::new(1.0, 0.0);

/// `|x|` with the sign of another number. That of NaN depends on the order of operands, and counts as positive.
fn with_sign(x: f64, sign: f64) -> f64 {
    if sign.is_nan() { x.abs() } else { x.copysign(sign) }
}

/// `|z|`; infinite if either part is.
pub(crate) fn abs(z: C) -> f64 {
    math::hypot(z.re, z.im)
}

/// `z / |z|`; zero stays zero.
pub(crate) fn sign(z: C) -> C {
    let abs = abs(z);
    if abs == 0.0 { C::new(0.0, 0.0) } else { C::new(z.re / abs, z.im / abs) }
}

/// The quotient, after Smith, Algorithm 116 (1962); a divisor of zero divides each part.
pub(crate) fn divide(a: C, b: C) -> C {
    if b.re == 0.0 && b.im == 0.0 {
        return C::new(a.re / b.re.abs(), a.im / b.re.abs());
    }
    if b.re.is_infinite() || b.im.is_infinite() {
        if a.re.is_finite() && a.im.is_finite() && !b.re.is_nan() && !b.im.is_nan() {
            return C::new(0.0, 0.0);
        }
        return C::new(f64::NAN, f64::NAN);
    }
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let scale = b.re + b.im * ratio;
        C::new((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
    } else {
        let ratio = b.re / b.im;
        let scale = b.re * ratio + b.im;
        C::new((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale)
    }
}

/// The same without branches, for parts whose squares neither overflow nor underflow.
#[inline(always)]
pub(crate) fn divide_narrow(a: C, b: C) -> C {
    let norm = b.re * b.re + b.im * b.im;
    let (re, im) = ((a.re * b.re + a.im * b.im) / norm, (a.im * b.re - a.re * b.im) / norm);
    let scale = b.re.abs();
    let (over_re, over_im) = (a.re / scale, a.im / scale);
    let zero = norm == 0.0;
    let (re, im) = (select_unpredictable(zero, over_re, re), select_unpredictable(zero, over_im, im));
    let vanishes = (norm == f64::INFINITY) & a.re.is_finite() & a.im.is_finite();
    C::new(select_unpredictable(vanishes, 0.0, re), select_unpredictable(vanishes, 0.0, im))
}

/// `e^x (cos y + i sin y)`.
pub(crate) fn exp(z: C) -> C {
    if z.im == 0.0 {
        return C::new(math::exp(z.re), z.im);
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return if z.re < 0.0 { C::new(0.0, vanished(z.im)) } else { C::new(f64::INFINITY, f64::NAN) };
    }
    if z.re > 700.0 {
        return large_exp(z.re, z.im, 1.0);
    }
    let (sin, cos) = math::sin_cos(z.im);
    let exp = math::exp(z.re);
    C::new(exp * cos, exp * sin)
}

/// A zero with the sign of `y`, positive if `y` is NaN.
fn vanished(y: f64) -> f64 {
    if y < 0.0 { -0.0 } else { 0.0 }
}

/// `scale * e^x (cos y + i sin y)` for an `x` whose exponential may overflow although the product does not.
fn large_exp(x: f64, y: f64, scale: f64) -> C {
    let (sin, cos) = math::sin_cos(y);
    let half = math::exp(x / 2.0);
    C::new(half * scale * cos * half, half * scale * sin * half)
}

/// `e^z - 1`, accurate near zero.
pub(crate) fn expm1(z: C) -> C {
    if !z.im.is_finite() {
        return C::new(f64::NAN, f64::NAN);
    }
    if z.im == 0.0 {
        // Infinity times zero is NaN.
        let defined = z.re < f64::INFINITY;
        return C::new(math::expm1(z.re), if defined { z.im } else { f64::NAN });
    }
    if z.re.abs() > 40.0 {
        return exp(z) - ONE;
    }
    let half = math::sin_cos(z.im / 2.0).0;
    C::new(
        math::expm1(z.re) * math::sin_cos(z.im).1 - 2.0 * half * half,
        math::exp(z.re) * math::sin_cos(z.im).0,
    )
}

/// The logarithm, cut along the negative real axis.
pub(crate) fn log(z: C) -> C {
    C::new(log_abs(z), math::atan2(z.im, z.re))
}

/// `ln |z|`, accurate where `|z|` is near 1.
fn log_abs(z: C) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let (large, small) = if x >= y { (x, y) } else { (y, x) };
    if large.is_finite() && (0.5..=2.0).contains(&large) && small <= 2.0 {
        return 0.5 * math::log1p((large - 1.0) * (large + 1.0) + small * small);
    }
    if large.is_finite() && large > 1e300 {
        // The hypotenuse could overflow.
        return math::log(abs(z / 2.0)) + LN_2;
    }
    math::log(abs(z))
}

/// `log(1 + z)`, accurate near zero.
pub(crate) fn log1p(z: C) -> C {
    let re = if z.re.abs() < 0.5 && z.im.abs() < 0.5 {
        0.5 * math::log1p(z.re * (2.0 + z.re) + z.im * z.im)
    } else {
        log_abs(C::new(1.0 + z.re, z.im))
    };
    C::new(re, math::atan2(z.im, 1.0 + z.re))
}

/// `1 / (1 + e^-z)`; each form is used on the side where it does not overflow.
pub(crate) fn sigmoid(z: C) -> C {
    if z.re >= 0.0 {
        divide(ONE, ONE + exp(-z))
    } else {
        let exp = exp(z);
        divide(exp, ONE + exp)
    }
}

/// The square root with a non-negative real part.
pub(crate) fn sqrt(z: C) -> C {
    if z.re == 0.0 && z.im == 0.0 {
        return C::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() && !z.im.is_nan() {
        return if z.re > 0.0 {
            C::new(z.re, with_sign(0f64, z.im))
        } else {
            C::new(0.0, with_sign(f64::INFINITY, z.im))
        };
    }
    // Powers of four scale exactly, and keep the hypotenuse in range.
    let (z, scale) = if z.re.abs().max(z.im.abs()) > 1e300 {
        (z / 4.0, 2.0)
    } else if z.re.abs().max(z.im.abs()) < 1e-290 {
        (z * 324_518_553_658_426_726_783_156_020_576_256.0, 1.0 / 18_014_398_509_481_984.0)
    } else {
        (z, 1.0)
    };
    let root = ((z.re.abs() + abs(z)) / 2.0).sqrt();
    let (re, im) = if z.re >= 0.0 {
        (root, z.im / (2.0 * root))
    } else {
        (z.im.abs() / (2.0 * root), with_sign(root, z.im))
    };
    C::new(re * scale, im * scale)
}

/// `1 / sqrt(z)`.
pub(crate) fn rsqrt(z: C) -> C {
    divide(ONE, sqrt(z))
}

/// The cube root whose argument is a third of the principal one.
pub(crate) fn cbrt(z: C) -> C {
    // With a real part of +infinity a finite imaginary part is negligible: the angle is 0, which avoids infinity times
    // 0.
    let is_flat = z.im == 0.0 || (z.re == f64::INFINITY && z.im.is_finite());
    if is_flat && z.re >= 0.0 {
        return C::new(math::cbrt(z.re), with_sign(0.0_f64, z.im));
    }
    let (sin, cos) = math::sin_cos(math::atan2(z.im, z.re) / 3.0);
    let abs = math::cbrt(abs(z));
    C::new(abs * cos, abs * sin)
}

/// `a^b`: by multiplication for small integers, else `e^(b log a)`; `z^0` is 1.
pub(crate) fn pow(a: C, b: C) -> C {
    if b.re == 0.0 && b.im == 0.0 {
        return ONE;
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 { C::new(0.0, 0.0) } else { C::new(f64::NAN, f64::NAN) };
    }
    if b.im == 0.0 && b.re.trunc() == b.re && b.re.abs() <= 64.0 {
        let power = power(a, b.re.abs() as u32);
        return if b.re < 0.0 { divide(ONE, power) } else { power };
    }
    exp(b * log(a))
}

fn power(mut base: C, mut exponent: u32) -> C {
    let mut result = None;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = Some(result.map_or(base, |result: C| result * base));
        }
        base = base * base;
        exponent >>= 1;
    }
    result.unwrap_or(ONE)
}

/// Hyperbolic sine.
pub(crate) fn sinh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C::new(math::sinh(x), y);
    }
    if x == 0.0 {
        let (sin, cos) = math::sin_cos(y);
        return C::new(if y.is_finite() { x * cos } else { x }, sin);
    }
    if x.is_infinite() && !y.is_finite() {
        return C::new(f64::INFINITY, f64::NAN);
    }
    if x.abs() > 700.0 {
        // All terms but one vanish.
        let large = large_exp(x.abs(), y, 0.5);
        return C::new(large.re * x.signum(), large.im);
    }
    let (sin, cos) = math::sin_cos(y);
    C::new(math::sinh(x) * cos, math::cosh(x) * sin)
}

/// Hyperbolic cosine.
pub(crate) fn cosh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        let is_negative = x.is_sign_negative() && !x.is_nan();
        return C::new(math::cosh(x), if is_negative { -y } else { y });
    }
    if x == 0.0 {
        let (sin, cos) = math::sin_cos(y);
        return C::new(cos, if y.is_finite() { x * sin } else { 0.0 });
    }
    if x.is_infinite() && !y.is_finite() {
        return C::new(f64::INFINITY, f64::NAN);
    }
    if x.abs() > 700.0 {
        let large = large_exp(x.abs(), y, 0.5);
        return C::new(large.re, large.im * x.signum());
    }
    let (sin, cos) = math::sin_cos(y);
    C::new(math::cosh(x) * cos, math::sinh(x) * sin)
}

/// Hyperbolic tangent.
pub(crate) fn tanh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C::new(math::tanh(x), y);
    }
    if x == 0.0 && !y.is_finite() {
        return C::new(x, f64::NAN);
    }
    if x.abs() > 22.0 {
        // 1 - 2e^(-2x) rounds to 1.
        let small = if y.is_finite() {
            4.0 * math::sin_cos(y).0 * math::sin_cos(y).1 * math::exp(-2.0 * x.abs())
        } else {
            vanished(y)
        };
        return C::new(with_sign(1f64, x), small);
    }
    let (sin, cos) = math::sin_cos(y);
    let sinh = math::sinh(x);
    // |cosh z|^2 as a sum of two terms that do not cancel.
    let norm = sinh * sinh + cos * cos;
    C::new(sinh * math::cosh(x) / norm, sin * cos / norm)
}

/// Sine: `i sinh(-iz)`.
pub(crate) fn sin(z: C) -> C {
    let w = sinh(C::new(z.im, -z.re));
    C::new(-w.im, w.re)
}

/// Cosine: `cosh(iz)`.
pub(crate) fn cos(z: C) -> C {
    cosh(C::new(-z.im, z.re))
}

/// Tangent: `-i tanh(iz)`.
pub(crate) fn tan(z: C) -> C {
    turned(tanh, z)
}

/// Inverse hyperbolic sine: `-i asin(iz)`.
pub(crate) fn asinh(z: C) -> C {
    turned(asin, z)
}

/// Arc tangent: `-i atanh(iz)`.
pub(crate) fn atan(z: C) -> C {
    turned(atanh, z)
}

/// `-i f(iz)`.
fn turned(f: impl Fn(C) -> C, z: C) -> C {
    let w = f(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// Beyond this magnitude, `asin`, `acos` and `acosh` equal logarithms, and their products would overflow.
const LARGE: f64 = 1e150;

fn is_large(z: C) -> bool {
    z.re.abs() > LARGE || z.im.abs() > LARGE
}

/// Arc sine, cut along the real axis outside [-1, 1].
pub(crate) fn asin(z: C) -> C {
    if is_large(z) {
        // The argument of the point mirrored to the right half-plane, and ln(2|z|).
        let re = math::atan2(z.re, z.im.abs());
        return C::new(re, with_sign(log_abs(z) + LN_2, z.im));
    }
    if z.re == 0.0 && z.im.is_nan() {
        return z;
    }
    let (minus, plus) = (sqrt(one_minus(z)), sqrt(one_plus(z)));
    let re = math::atan2(z.re, minus.re * plus.re - minus.im * plus.im);
    C::new(re, math::asinh(minus.re * plus.im - minus.im * plus.re))
}

/// Arc cosine, cut along the real axis outside [-1, 1].
pub(crate) fn acos(z: C) -> C {
    if is_large(z) {
        return C::new(math::atan2(z.im.abs(), z.re), -with_sign(log_abs(z) + LN_2, z.im));
    }
    if z.re == 0.0 && z.im.is_nan() {
        return C::new(FRAC_PI_2, f64::NAN);
    }
    let (minus, plus) = (sqrt(one_minus(z)), sqrt(one_plus(z)));
    let re = 2.0 * math::atan2(minus.re, plus.re);
    C::new(re, math::asinh(plus.re * minus.im - plus.im * minus.re))
}

/// Inverse hyperbolic cosine, cut along the real axis below 1.
pub(crate) fn acosh(z: C) -> C {
    if is_large(z) {
        return C::new(log_abs(z) + LN_2, math::atan2(z.im, z.re));
    }
    if z.re == 0.0 && z.im.is_nan() {
        return C::new(f64::NAN, FRAC_PI_2);
    }
    let (minus, plus) = (sqrt(C::new(z.re - 1.0, z.im)), sqrt(one_plus(z)));
    C::new(math::asinh(minus.re * plus.re + minus.im * plus.im), 2.0 * math::atan2(minus.im, plus.re))
}

/// Inverse hyperbolic tangent, cut along the real axis outside [-1, 1].
pub(crate) fn atanh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 && x.abs() <= 1.0 {
        return C::new(math::atanh(x), y);
    }
    if y.is_nan() && (x == 0.0 || x.is_infinite()) {
        return C::new(with_sign(0f64, x), f64::NAN);
    }
    if is_large(z) {
        // 1/z, without squaring |z|.
        let abs = abs(z);
        let re = if abs.is_finite() { x / abs / abs } else { with_sign(0f64, x) };
        return C::new(re, with_sign(FRAC_PI_2, y));
    }
    let to_end = math::hypot(1.0 - x.abs(), y);
    if to_end < 1e-150 {
        // Its square would underflow; the distance to the other end is 2.
        let re = (LN_2 - math::log(to_end)) / 2.0;
        return C::new(with_sign(re, x), with_sign(FRAC_PI_4, y));
    }
    let re = 0.25 * math::log1p(4.0 * x.abs() / ((1.0 - x.abs()) * (1.0 - x.abs()) + y * y));
    let im = 0.5 * math::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y);
    C::new(with_sign(re, x), im)
}

fn one_minus(z: C) -> C {
    C::new(1.0 - z.re, -z.im)
}

fn one_plus(z: C) -> C {
    C::new(1.0 + z.re, z.im)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn near(got: C, want: C) -> bool {
        (got - want).norm() <= 8.0 * f64::EPSILON * want.norm().max(f64::MIN_POSITIVE)
    }

    /// The sign of a zero selects the side of a cut.
    #[test]
    fn cuts_have_two_sides() {
        // acosh(2) and atanh(1/2).
        let (a, b) = ((2.0 + 3f64.sqrt()).ln(), 3f64.ln() / 2.0);
        for side in [1.0, -1.0] {
            let zero = with_sign(0f64, side);
            let check = |f: fn(C) -> C, z: C, want: C| assert!(near(f(z), want), "{z}: {} {want}", f(z));
            check(log, C::new(-1.0, zero), C::new(0.0, side * PI));
            check(sqrt, C::new(-4.0, zero), C::new(0.0, side * 2.0));
            check(asin, C::new(2.0, zero), C::new(FRAC_PI_2, side * a));
            check(asin, C::new(-2.0, zero), C::new(-FRAC_PI_2, side * a));
            check(acos, C::new(2.0, zero), C::new(0.0, -side * a));
            check(acos, C::new(-2.0, zero), C::new(PI, -side * a));
            check(atanh, C::new(2.0, zero), C::new(b, side * FRAC_PI_2));
            check(acosh, C::new(-2.0, zero), C::new(a, side * PI));
            check(acosh, C::new(0.5, zero), C::new(0.0, side * PI / 3.0));
            check(asinh, C::new(zero, 2.0), C::new(side * a, FRAC_PI_2));
            check(atan, C::new(zero, 2.0), C::new(side * FRAC_PI_2, b));
        }
    }

    #[test]
    fn inverse_functions_invert() {
        type Function = fn(C) -> C;
        let pairs: [(Function, Function); 9] = [
            (exp, log),
            (expm1, log1p),
            (sin, asin),
            (cos, acos),
            (tan, atan),
            (sinh, asinh),
            (cosh, acosh),
            (tanh, atanh),
            (|z| z * z, sqrt),
        ];
        let parts = [-3.5, -1.25, -0.1, 0.0, 1e-3, 0.7, 2.0];
        for (index, (f, inverse)) in pairs.into_iter().enumerate() {
            for z in parts.into_iter().flat_map(|re| parts.into_iter().map(move |im| C::new(re, im))) {
                let back = f(inverse(z));
                if z != C::new(0.0, 0.0) {
                    assert!((back - z).norm() <= 1e-13 * (1.0 + z.norm()), "pair {index}: {z} became {back}");
                }
            }
        }
    }

    #[test]
    fn nothing_overflows_on_the_way() {
        let large = C::new(3e200, 4e200);
        assert!((abs(large) / 5e200 - 1.0).abs() <= f64::EPSILON);
        assert!(near(divide(large, large), ONE));
        assert!(near(sqrt(large) * sqrt(large) / 1e200, C::new(3.0, 4.0)));
        assert!(near(sign(large), C::new(0.6, 0.8)));
        let log_abs = 5f64.ln() + 200.0 * 10f64.ln();
        assert!(near(log(large), C::new(log_abs, 4f64.atan2(3.0))));
        assert!(near(asinh(large), C::new(log_abs + LN_2, 4f64.atan2(3.0))));
        assert!(near(acosh(large), C::new(log_abs + LN_2, 4f64.atan2(3.0))));
        assert!(near(atanh(large), C::new(3.0 / 25e200, FRAC_PI_2)));
        assert!(near(atanh(C::new(1.0, 1e-160)), C::new((LN_2 - 1e-160f64.ln()) / 2.0, FRAC_PI_4)));
        // e^710 overflows, half of it does not.
        assert!(near(sinh(C::new(710.0, 1.0)), cosh(C::new(710.0, 1.0))));
        assert!(sinh(C::new(710.0, 1.0)).re.is_finite());
        assert_eq!(tanh(C::new(-1e9, 3.0)).re, -1.0);
        assert!(near(sigmoid(C::new(-1000.0, 1.0)), C::new(0.0, 0.0)));
        assert!(near(sigmoid(C::new(1000.0, 1.0)), ONE));
    }

    #[test]
    fn powers() {
        let i = C::new(0.0, 1.0);
        assert_eq!(pow(i, C::new(2.0, 0.0)), C::new(-1.0, 0.0));
        assert_eq!(pow(C::new(1.0, 2.0), C::new(3.0, 0.0)), C::new(-11.0, -2.0));
        assert_eq!(pow(C::new(0.0, 0.0), C::new(0.0, 0.0)), ONE);
        assert_eq!(pow(C::new(0.0, 0.0), C::new(2.0, 1.0)), C::new(0.0, 0.0));
        assert!(pow(C::new(0.0, 0.0), C::new(-1.0, 0.0)).is_nan());
        assert!(near(pow(C::new(2.0, 0.0), C::new(-1.0, 0.0)), C::new(0.5, 0.0)));
        assert!(near(pow(i, i), C::new((-FRAC_PI_2).exp(), 0.0)));
        assert!(near(pow(cbrt(C::new(-8.0, 1.0)), C::new(3.0, 0.0)), C::new(-8.0, 1.0)));
    }

    #[test]
    fn division_by_zero_gives_infinities() {
        let got = divide(C::new(1.0, -2.0), C::new(0.0, 0.0));
        assert_eq!((got.re, got.im), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(divide(C::new(0.0, 0.0), C::new(0.0, 0.0)).re.is_nan());
        assert_eq!(divide(ONE, C::new(f64::INFINITY, 1.0)), C::new(0.0, 0.0));
    }
}
