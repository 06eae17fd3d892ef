//! Functions of complex numbers: principal branches, with signed zeros on the cuts, as in the CPU's kernels.
//!
//! Plugins differ in both, and in accuracy, so the functions are written as formulas, in f64 for both complex types.
//! Inverse functions follow Kahan, Branch Cuts for Complex Elementary Functions (1987); the quotient follows Smith,
//! Algorithm 116 (1962).

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};

use super::numeric::{FloatExpr, PredicateExpr};
use super::text::{Ssa, Writer};
use super::value::half;
use crate::element::ElementType as E;

/// A function of a complex number, as a formula.
pub(super) type ComplexFunction = for<'a> fn(&ComplexExpr<'a>) -> ComplexExpr<'a>;

/// A complex number in a formula.
#[derive(Clone)]
pub(super) struct ComplexExpr<'a> {
    re: FloatExpr<'a>,
    im: FloatExpr<'a>,
}

impl Writer {
    /// A function of complex numbers.
    pub fn complex_function(&mut self, function: ComplexFunction, z: &Ssa) -> Ssa {
        self.in_parts(&[z], |z| function(&z[0]))
    }

    /// `z / |z|`, and 0 for 0.
    pub fn complex_sign(&mut self, z: &Ssa) -> Ssa {
        self.in_parts(&[z], |z| sign(&z[0]))
    }

    /// `|z|`, in the real type of the complex type.
    pub fn complex_abs(&mut self, z: &Ssa) -> Ssa {
        let element = half(z.element());
        let parts = self.wide_parts(z);
        let value =
            self.formulas(|w| abs(&c(FloatExpr::new(w, &parts[0]), FloatExpr::new(w, &parts[1]))).value);
        self.convert(&value, element)
    }

    /// `a / b`.
    pub fn complex_divide(&mut self, a: &Ssa, b: &Ssa) -> Ssa {
        self.in_parts(&[a, b], |z| divide(&z[0], &z[1]))
    }

    /// `a^b`.
    pub fn complex_pow(&mut self, a: &Ssa, b: &Ssa) -> Ssa {
        self.in_parts(&[a, b], |z| pow(&z[0], &z[1]))
    }

    /// Real and imaginary part in f64.
    fn wide_parts(&mut self, z: &Ssa) -> [Ssa; 2] {
        ["real", "imag"].map(|name| {
            let part = self.op(name, &[z], "", z.ty.of(half(z.element())));
            self.convert(&part, E::F64)
        })
    }

    /// A formula over complex numbers of one type.
    fn in_parts(
        &mut self,
        operands: &[&Ssa],
        formula: impl for<'a> FnOnce(&[ComplexExpr<'a>]) -> ComplexExpr<'a>,
    ) -> Ssa {
        let ty = operands[0].ty.clone();
        let parts: Vec<[Ssa; 2]> = operands.iter().map(|z| self.wide_parts(z)).collect();
        let [re, im] = self.formulas(|w| {
            let operands: Vec<ComplexExpr<'_>> =
                parts.iter().map(|[re, im]| c(FloatExpr::new(w, re), FloatExpr::new(w, im))).collect();
            let result = formula(&operands);
            [result.re.value, result.im.value]
        });
        let (re, im) = (self.convert(&re, half(ty.element)), self.convert(&im, half(ty.element)));
        self.op("complex", &[&re, &im], "", ty)
    }
}

fn c<'a>(re: FloatExpr<'a>, im: FloatExpr<'a>) -> ComplexExpr<'a> {
    ComplexExpr { re, im }
}

fn one<'a>(like: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    c(like.re.number(1.0), like.re.number(0.0))
}

impl<'a> ComplexExpr<'a> {
    /// `self` where a condition is false, else `re` and `im`.
    fn replace_where(
        self,
        condition: &PredicateExpr<'a>,
        re: &FloatExpr<'a>,
        im: &FloatExpr<'a>,
    ) -> ComplexExpr<'a> {
        c(condition.choose(re, &self.re), condition.choose(im, &self.im))
    }

    fn plus_one(&self) -> ComplexExpr<'a> {
        c(1.0 + &self.re, self.im.clone())
    }

    fn times(&self, other: &ComplexExpr<'a>) -> ComplexExpr<'a> {
        let re = &self.re * &other.re - &self.im * &other.im;
        c(re, &self.re * &other.im + &self.im * &other.re)
    }
}

/// `iz`.
fn times_i<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    c(-&z.im, z.re.clone())
}

/// `-iz`.
fn times_minus_i<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    c(z.im.clone(), -&z.re)
}

fn abs<'a>(z: &ComplexExpr<'a>) -> FloatExpr<'a> {
    let (x, y) = (z.re.abs(), z.im.abs());
    let order = x.compare(&y, "GE");
    let (large, small) = (order.choose(&x, &y), order.choose(&y, &x));
    let ratio = &small / &large;
    let size = &large * (&ratio * &ratio + 1.0).sqrt();
    let size = large.is("EQ", 0.0).choose(&small, &size);
    z.re.is_infinite().or(&z.im.is_infinite()).choose(&size.number(f64::INFINITY), &size)
}

fn sign<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let size = abs(z);
    let zero = size.number(0.0);
    c(&z.re / &size, &z.im / &size).replace_where(&size.is("EQ", 0.0), &zero, &zero)
}

/// Smith's algorithm; a divisor of zero divides each part.
fn divide<'a>(a: &ComplexExpr<'a>, b: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let wide = b.re.abs().compare(&b.im.abs(), "GE");
    let (large, small) = (wide.choose(&b.re, &b.im), wide.choose(&b.im, &b.re));
    let ratio = &small / &large;
    let scale = &large + &small * &ratio;
    let re = wide.choose(&(&a.re + &a.im * &ratio), &(&a.re * &ratio + &a.im));
    let im = wide.choose(&(&a.im - &a.re * &ratio), &(&a.im * &ratio - &a.re));
    let (zero, nan) = (a.re.number(0.0), a.re.number(f64::NAN));
    let endless = b.re.is_infinite().or(&b.im.is_infinite());
    let defined = a.re.is_finite().and(&a.im.is_finite()).and(&b.re.is_nan().or(&b.im.is_nan()).not());
    let signed_zero = defined.choose(&zero, &nan);
    let nothing = b.re.is("EQ", 0.0).and(&b.im.is("EQ", 0.0));
    let by = b.re.abs();
    c(re / &scale, im / &scale).replace_where(&endless, &signed_zero, &signed_zero).replace_where(
        &nothing,
        &(&a.re / &by),
        &(&a.im / &by),
    )
}

/// A zero with the sign of `y`, positive if `y` is NaN.
fn signed_zero<'a>(y: &FloatExpr<'a>) -> FloatExpr<'a> {
    y.is("LT", 0.0).choose(&y.number(-0.0), &y.number(0.0))
}

/// `scale * e^x (cos y + i sin y)`, for `x` where `e^x` may overflow although the product does not.
fn large_exp<'a>(x: &FloatExpr<'a>, y: &FloatExpr<'a>, scale: f64) -> ComplexExpr<'a> {
    let half = (x * 0.5).exp();
    c(&half * scale * y.cos() * &half, &half * scale * y.sin() * &half)
}

pub(super) fn exp<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (x, y) = (&z.re, &z.im);
    let size = x.exp();
    let large = large_exp(x, y, 1.0);
    let lost = x.is_infinite().and(&y.is_finite().not());
    let below = x.is("LT", 0.0);
    let lost_re = below.choose(&x.number(0.0), &x.number(f64::INFINITY));
    let lost_im = below.choose(&signed_zero(y), &x.number(f64::NAN));
    c(&size * y.cos(), &size * y.sin())
        .replace_where(&x.is("GT", 700.0), &large.re, &large.im)
        .replace_where(&lost, &lost_re, &lost_im)
        .replace_where(&y.is("EQ", 0.0), &size, y)
}

pub(super) fn expm1<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (x, y) = (&z.re, &z.im);
    let half = (y * 0.5).sin();
    let near = c(x.expm1() * y.cos() - 2.0 * &half * &half, x.exp() * y.sin());
    let far = exp(z);
    let nan = x.number(f64::NAN);
    let im_on_axis = x.is("LT", f64::INFINITY).choose(y, &nan);
    near.replace_where(&x.abs().is("GT", 40.0), &(&far.re - 1.0), &far.im)
        .replace_where(&y.is("EQ", 0.0), &x.expm1(), &im_on_axis)
        .replace_where(&y.is_finite().not(), &nan, &nan)
}

pub(super) fn log<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    c(log_abs(z), z.im.atan2(&z.re))
}

/// `ln |z|`, accurate where `|z|` is near 1.
fn log_abs<'a>(z: &ComplexExpr<'a>) -> FloatExpr<'a> {
    let (x, y) = (z.re.abs(), z.im.abs());
    let order = x.compare(&y, "GE");
    let (large, small) = (order.choose(&x, &y), order.choose(&y, &x));
    let near = 0.5 * ((&large - 1.0) * (&large + 1.0) + &small * &small).log1p();
    let halved = abs(&c(&z.re * 0.5, &z.im * 0.5)).log() + LN_2;
    let is_far = large.is_finite().and(&large.is("GT", 1e300));
    let is_near = large.is("GE", 0.5).and(&large.is("LE", 2.0)).and(&small.is("LE", 2.0));
    is_near.choose(&near, &is_far.choose(&halved, &abs(z).log()))
}

pub(super) fn log1p<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let near = 0.5 * (&z.re * (2.0 + &z.re) + &z.im * &z.im).log1p();
    let is_near = z.re.abs().is("LT", 0.5).and(&z.im.abs().is("LT", 0.5));
    let next = z.plus_one();
    c(is_near.choose(&near, &log_abs(&next)), z.im.atan2(&next.re))
}

pub(super) fn sin<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    times_i(&sinh(&times_minus_i(z)))
}

pub(super) fn cos<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    cosh(&times_i(z))
}

pub(super) fn tan<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    times_minus_i(&tanh(&times_i(z)))
}

pub(super) fn atan<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    times_minus_i(&atanh(&times_i(z)))
}

pub(super) fn asinh<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    times_minus_i(&asin(&times_i(z)))
}

pub(super) fn rsqrt<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    divide(&one(z), &sqrt(z))
}

pub(super) fn sigmoid<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let right = divide(&one(z), &exp(&c(-&z.re, -&z.im)).plus_one());
    let grown = exp(z);
    let left = divide(&grown, &grown.plus_one());
    left.replace_where(&z.re.is("GE", 0.0), &right.re, &right.im)
}

pub(super) fn sqrt<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let most = {
        let (x, y) = (z.re.abs(), z.im.abs());
        x.compare(&y, "GE").choose(&x, &y)
    };
    // Powers of four scale exactly, and keep the hypotenuse in range.
    let (up, down) = (most.is("GT", 1e300), most.is("LT", 1e-290));
    let number =
        |a: f64, b: f64| up.choose(&most.number(a), &down.choose(&most.number(b), &most.number(1.0)));
    let before = number(0.25, 324_518_553_658_426_726_783_156_020_576_256.0);
    let after = number(2.0, 1.0 / 18_014_398_509_481_984.0);
    let scaled = c(&z.re * &before, &z.im * &before);
    let root = ((scaled.re.abs() + abs(&scaled)) * 0.5).sqrt();
    let side = z.re.is("GE", 0.0);
    let other = &scaled.im / (2.0 * &root);
    let re = side.choose(&root, &other.abs()) * &after;
    let im = side.choose(&other, &root.copysign(&z.im)) * &after;
    let (zero, endless) = (z.re.number(0.0), z.re.number(f64::INFINITY));
    let right = z.re.is("GT", 0.0);
    let far_re = right.choose(&z.re, &zero);
    let far_im = right.choose(&zero, &endless).copysign(&z.im);
    c(re, im)
        .replace_where(&z.re.is_infinite().and(&z.im.is_nan().not()), &far_re, &far_im)
        .replace_where(&z.im.is_infinite(), &endless, &z.im)
        .replace_where(&z.re.is("EQ", 0.0).and(&z.im.is("EQ", 0.0)), &zero, &z.im)
}

pub(super) fn cbrt<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let angle = z.im.atan2(&z.re) / 3.0;
    let size = abs(z).cbrt();
    let real = z.im.is("EQ", 0.0).and(&z.re.is("GE", 0.0));
    c(&size * angle.cos(), &size * angle.sin()).replace_where(&real, &z.re.cbrt(), &z.im)
}

/// By multiplication for small integers, else `e^(b log a)`; `z^0` is 1.
fn pow<'a>(a: &ComplexExpr<'a>, b: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (zero, nan) = (a.re.number(0.0), a.re.number(f64::NAN));
    let real = b.im.is("EQ", 0.0);
    let size = b.re.abs();
    let counted = real.and(&b.re.call("floor").compare(&b.re, "EQ")).and(&size.is("LE", 64.0));
    let (mut power, mut base, mut rest) = (one(a), a.clone(), size);
    for _ in 0..7 {
        let halved = (&rest * 0.5).call("floor");
        let odd = (&rest - 2.0 * &halved).is("EQ", 1.0);
        let first = power.re.is("EQ", 1.0).and(&power.im.is("EQ", 0.0));
        let product = power.times(&base).replace_where(&first, &base.re, &base.im);
        power = power.replace_where(&odd, &product.re, &product.im);
        base = base.times(&base);
        rest = halved;
    }
    let inverse = divide(&one(a), &power);
    let power = power.replace_where(&b.re.is("LT", 0.0), &inverse.re, &inverse.im);
    let nothing = a.re.is("EQ", 0.0).and(&a.im.is("EQ", 0.0));
    let of_nothing = b.re.is("GT", 0.0).choose(&zero, &nan);
    let unit = one(a);
    exp(&b.times(&log(a)))
        .replace_where(&counted, &power.re, &power.im)
        .replace_where(&nothing, &of_nothing, &of_nothing)
        .replace_where(&real.and(&b.re.is("EQ", 0.0)), &unit.re, &unit.im)
}

pub(super) fn sinh<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (x, y) = (&z.re, &z.im);
    let unit = x.number(1.0).copysign(x);
    // One of the two exponentials vanishes.
    let large = large_exp(&x.abs(), y, 0.5);
    let (endless, nan) = (x.number(f64::INFINITY), x.number(f64::NAN));
    let upright = y.is_finite().choose(&(x * y.cos()), x);
    c(x.sinh() * y.cos(), x.cosh() * y.sin())
        .replace_where(&x.abs().is("GT", 700.0), &(&large.re * &unit), &large.im)
        .replace_where(&x.is_infinite().and(&y.is_finite().not()), &endless, &nan)
        .replace_where(&x.is("EQ", 0.0), &upright, &y.sin())
        .replace_where(&y.is("EQ", 0.0), &x.sinh(), y)
}

pub(super) fn cosh<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (x, y) = (&z.re, &z.im);
    let unit = x.number(1.0).copysign(x);
    let large = large_exp(&x.abs(), y, 0.5);
    let (endless, nan) = (x.number(f64::INFINITY), x.number(f64::NAN));
    let upright = y.is_finite().choose(&(x * y.sin()), &x.number(0.0));
    let im_on_axis = unit.is("LT", 0.0).and(&x.is_nan().not()).choose(&-y, y);
    c(x.cosh() * y.cos(), x.sinh() * y.sin())
        .replace_where(&x.abs().is("GT", 700.0), &large.re, &(&large.im * &unit))
        .replace_where(&x.is_infinite().and(&y.is_finite().not()), &endless, &nan)
        .replace_where(&x.is("EQ", 0.0), &y.cos(), &upright)
        .replace_where(&y.is("EQ", 0.0), &x.cosh(), &im_on_axis)
}

pub(super) fn tanh<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (x, y) = (&z.re, &z.im);
    let (sin, cos, sinh) = (y.sin(), y.cos(), x.sinh());
    // |cosh z|^2, as a sum of two terms that do not cancel.
    let norm = &sinh * &sinh + &cos * &cos;
    let small = 4.0 * &sin * &cos * (-2.0 * x.abs()).exp();
    let small = y.is_finite().choose(&small, &signed_zero(y));
    c(&sinh * x.cosh() / &norm, &sin * &cos / &norm)
        // 1 - 2e^(-2x) rounds to 1.
        .replace_where(&x.abs().is("GT", 22.0), &x.number(1.0).copysign(x), &small)
        .replace_where(&x.is("EQ", 0.0).and(&y.is_finite().not()), x, &x.number(f64::NAN))
        .replace_where(&y.is("EQ", 0.0), &x.call("tanh"), y)
}

/// Whether the products of the inverse functions would overflow.
fn is_large<'a>(z: &ComplexExpr<'a>) -> PredicateExpr<'a> {
    z.re.abs().is("GT", 1e150).or(&z.im.abs().is("GT", 1e150))
}

/// The square roots of `1 - z` and `1 + z`.
fn roots<'a>(z: &ComplexExpr<'a>) -> (ComplexExpr<'a>, ComplexExpr<'a>) {
    (sqrt(&c(1.0 - &z.re, -&z.im)), sqrt(&z.plus_one()))
}

/// Whether the real part of `z` is 0 and its imaginary part is NaN.
fn is_lost<'a>(z: &ComplexExpr<'a>) -> PredicateExpr<'a> {
    z.re.is("EQ", 0.0).and(&z.im.is_nan())
}

pub(super) fn asin<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (minus, plus) = roots(z);
    let re = z.re.atan2(&(&minus.re * &plus.re - &minus.im * &plus.im));
    let im = (&minus.re * &plus.im - &minus.im * &plus.re).asinh();
    let far = (log_abs(z) + LN_2).copysign(&z.im);
    c(re, im).replace_where(&is_lost(z), &z.re, &z.im).replace_where(
        &is_large(z),
        &z.re.atan2(&z.im.abs()),
        &far,
    )
}

pub(super) fn acos<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (minus, plus) = roots(z);
    let re = 2.0 * minus.re.atan2(&plus.re);
    let im = (&plus.re * &minus.im - &plus.im * &minus.re).asinh();
    let far = -(log_abs(z) + LN_2).copysign(&z.im);
    c(re, im).replace_where(&is_lost(z), &z.re.number(FRAC_PI_2), &z.re.number(f64::NAN)).replace_where(
        &is_large(z),
        &z.im.abs().atan2(&z.re),
        &far,
    )
}

pub(super) fn acosh<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (minus, plus) = (sqrt(&c(&z.re - 1.0, z.im.clone())), sqrt(&z.plus_one()));
    let re = (&minus.re * &plus.re + &minus.im * &plus.im).asinh();
    c(re, 2.0 * minus.im.atan2(&plus.re))
        .replace_where(&is_lost(z), &z.re.number(f64::NAN), &z.re.number(FRAC_PI_2))
        .replace_where(&is_large(z), &(log_abs(z) + LN_2), &z.im.atan2(&z.re))
}

pub(super) fn atanh<'a>(z: &ComplexExpr<'a>) -> ComplexExpr<'a> {
    let (x, y) = (&z.re, &z.im);
    let (size, unit) = (x.abs(), x.number(1.0));
    let gap = &unit - &size;
    let re = (0.25 * (4.0 * &size / (&gap * &gap + y * y)).log1p()).copysign(x);
    let im = 0.5 * (2.0 * y).atan2(&((&unit - x) * (&unit + x) - y * y));
    // Where the square of the distance to the nearer of -1 and 1 would underflow; the distance to the other is 2.
    let to_end = abs(&c(gap, y.clone()));
    let end_re = ((LN_2 - to_end.log()) * 0.5).copysign(x);
    let end_im = x.number(FRAC_PI_4).copysign(y);
    // 1/z, computed without the square of |z|.
    let whole = abs(z);
    let nought = x.number(0.0).copysign(x);
    let far_re = whole.is_finite().choose(&(x / &whole / &whole), &nought);
    let far_im = x.number(FRAC_PI_2).copysign(y);
    let lost = y.is_nan().and(&x.is("EQ", 0.0).or(&x.is_infinite()));
    c(re, im)
        .replace_where(&to_end.is("LT", 1e-150), &end_re, &end_im)
        .replace_where(&is_large(z), &far_re, &far_im)
        .replace_where(&lost, &nought, &x.number(f64::NAN))
        .replace_where(&y.is("EQ", 0.0).and(&size.is("LE", 1.0)), &x.library("atanh"), y)
}
