//! The regularized incomplete gamma functions.
//!
//! Four forms cover the quarter plane. Each is accurate for the smaller of the two functions, the other is 1 minus it.
//!
//! - The power series of the lower function, for `x` below `a`.
//! - Legendre's continued fraction of the upper function, for `x` above `a`.
//! - A series of the upper function in powers of `x`, for small `a` and `x`, where it is close to 1 or to 0: Moshier's
//!   Cephes library (1989).
//! - Temme's uniform expansion for large `a` and `x` close to it (1979), in whose region the others converge slowly.
//!
//! The sums have fixed numbers of terms and are evaluated from the last one, which rounds least. Derivatives with
//! respect to `a` are those of the same terms: Moore, "Algorithm AS 187: derivatives of the incomplete gamma
//! integral" (1982).

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::gamma::{digamma_of, log_gamma, log_gamma_1p, stirling_remainder};
use super::tables::TEMME;
use super::{SpecialBuilder, of_reals, polynomial, with_gradient};
use crate::builder::{BuildCreate, BuildElementwise, Builder};
use crate::compose::matrix::batch::repeat;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};

/// Which of the two functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

/// See [`BuildSpecial::gammainc`](crate::builder::BuildSpecial::gammainc).
///
/// # Errors
/// As the method.
pub fn gammainc<B: Builder>(b: &mut B, a: &B::V, x: &B::V) -> Result<B::V> {
    of_reals(b, "gammainc", a, x, |b, a, x| ratio(b, a, x, Side::Lower))
}

/// See [`BuildSpecial::gammaincc`](crate::builder::BuildSpecial::gammaincc).
///
/// # Errors
/// As the method.
pub fn gammaincc<B: Builder>(b: &mut B, a: &B::V, x: &B::V) -> Result<B::V> {
    of_reals(b, "gammaincc", a, x, |b, a, x| ratio(b, a, x, Side::Upper))
}

fn ratio<B: Builder>(b: &mut B, a: &B::V, x: &B::V, side: Side) -> Result<B::V> {
    let value = value(b, a, x, side)?;
    with_gradient(b, &value, &[a.clone(), x.clone()], move |graph, g, inputs| {
        let (a, x) = (&inputs[0], &inputs[1]);
        let forms = Forms::new(graph, a, x)?;
        let by_a = forms.slope(graph)?;
        let by_a = graph.select(forms.is_inside, by_a, 0)?;
        let by_x = density(graph, &forms, a, x)?;
        let g = match side {
            Side::Lower => g,
            Side::Upper => graph.negate(g)?,
        };
        Ok(vec![graph.multiply(g, by_a)?, graph.multiply(g, by_x)?])
    })
}

/// The derivative of the lower function with respect to `x`, at the ends as well.
fn density<B: Builder>(b: &mut B, forms: &Forms<B>, a: &B::V, x: &B::V) -> Result<B::V> {
    let power = b.multiply(&forms.power, &forms.a)?;
    let inside = b.divide(power, &forms.x)?;
    let (nan, zero, one) =
        (b.constant_like(x, f64::NAN)?, b.constant_like(x, 0.0)?, b.constant_like(x, 1.0)?);
    let (below, at) = (b.less(a, 1)?, b.equal(a, 1)?);
    let edge = b.select(at, one, &zero)?;
    let edge = b.select(below, f64::INFINITY, edge)?;
    let is_start = b.equal(x, 0)?;
    let outside = b.select(is_start, edge, zero)?;
    let negative = is_outside(b, a, x)?;
    let outside = b.select(negative, nan, outside)?;
    b.select(&forms.is_inside, inside, outside)
}

/// Whether an operand is negative or NaN.
fn is_outside<B: Builder>(b: &mut B, a: &B::V, x: &B::V) -> Result<B::V> {
    let (left, right) = (b.greater_equal(a, 0)?, b.greater_equal(x, 0)?);
    let both = b.logical_and(left, right)?;
    b.logical_not(both)
}

/// A value without a gradient rule.
fn value<B: Builder>(b: &mut B, a: &B::V, x: &B::V, side: Side) -> Result<B::V> {
    let forms = Forms::new(b, a, x)?;
    let lower = forms.series(b)?;
    let lower = b.multiply(lower.0, &forms.power)?;
    let fraction = forms.fraction(b)?;
    let power = b.multiply(&forms.power, &forms.a)?;
    let upper = b.divide(power, fraction.0)?;
    let start = forms.start(b)?;
    let upper = b.select(&forms.is_start, start.0, upper)?;
    let [temme_lower, temme_upper] = forms.temme(b)?;
    let inside = match side {
        Side::Lower => {
            let rest = b.subtract(1, upper)?;
            let value = b.select(&forms.is_series, lower, rest)?;
            b.select(&forms.is_temme, temme_lower, value)?
        }
        Side::Upper => {
            let rest = b.subtract(1, lower)?;
            let value = b.select(&forms.is_series, rest, upper)?;
            b.select(&forms.is_temme, temme_upper, value)?
        }
    };
    // At the ends the functions are 0 and 1: the lower one is 1 at `a = 0` and at infinite `x`.
    let (is_zero, is_infinite) = (b.equal(a, 0)?, b.equal(x, f64::INFINITY)?);
    let is_whole = b.logical_or(is_zero, is_infinite)?;
    let (zero, one) = (b.constant_like(x, 0.0)?, b.constant_like(x, 1.0)?);
    let outside = match side {
        Side::Lower => b.select(is_whole, one, zero)?,
        Side::Upper => b.select(is_whole, zero, one)?,
    };
    let negative = is_outside(b, a, x)?;
    let (no_shape, no_place) = (b.equal(a, 0)?, b.equal(x, 0)?);
    let nothing = b.logical_and(no_shape, no_place)?;
    let (whole_shape, whole_place) = (b.equal(a, f64::INFINITY)?, b.equal(x, f64::INFINITY)?);
    let everything = b.logical_and(whole_shape, whole_place)?;
    let undefined = b.logical_or(nothing, everything)?;
    let undefined = b.logical_or(undefined, negative)?;
    let outside = b.select(undefined, f64::NAN, outside)?;
    b.select(&forms.is_inside, inside, outside)
}

/// The derivative by the parameter `a` of the logarithm of a gamma quantile at a fixed probability, from that
/// logarithm: `-dP/da / (x dP/dx)` for the lower function `P`. Figurnov, Mohamed & Mnih, "Implicit
/// reparameterization gradients" (2018). Where `x` is so small that `P` is `x^a / gamma(a + 1)`, it is that of this
/// power.
///
/// # Errors
/// As [`Builder::emit`].
pub(crate) fn log_quantile_slope<B: Builder>(b: &mut B, a: &B::V, log_x: &B::V) -> Result<B::V> {
    let bound = if b.ty(a).dtype == DType::F64 { -600.0 } else { -60.0 };
    let is_tiny = b.less(log_x, bound)?;
    let usual = b.select(&is_tiny, 0, log_x)?;
    let x = b.exp(usual)?;
    let forms = Forms::new(b, a, &x)?;
    let by_a = forms.slope(b)?;
    let power = b.multiply(&forms.power, &forms.a)?;
    let ratio = b.divide(by_a, &power)?;
    let slope = b.negate(ratio)?;
    let is_positive = b.greater(power, 0)?;
    let is_defined = b.logical_and(&forms.is_inside, is_positive)?;
    let slope = b.select(is_defined, slope, 0)?;

    let (log_x, a) = (b.only(&is_tiny, log_x, 0.0)?, b.only(&is_tiny, a, 1.0)?);
    let next = b.add(&a, 1)?;
    let digamma = digamma_of(b, &next)?;
    let rest = b.subtract(digamma, log_x)?;
    let tiny = b.divide(rest, a)?;
    b.select(is_tiny, tiny, slope)
}

/// The forms of the functions, and where each is used. Where a form is not used, it gets operands for which it and its
/// derivatives are finite.
struct Forms<B: Builder> {
    /// Whether both operands are positive and finite.
    is_inside: B::V,
    is_temme: B::V,
    is_series: B::V,
    is_start: B::V,
    a: B::V,
    x: B::V,
    /// `(x - a) / a`.
    distance: B::V,
    /// `(d - log1p(d)) / d^2` of the distance `d`, for `|d| <= 0.5`, and elsewhere of 0.
    curvature: B::V,
    /// `x^a exp(-x) / gamma(a + 1)`.
    power: B::V,
    is_double: bool,
}

impl<B: Builder> Forms<B> {
    fn new(b: &mut B, a: &B::V, x: &B::V) -> Result<Forms<B>> {
        let is_double = b.ty(x).dtype == DType::F64;
        let positive = |b: &mut B, x: &B::V| {
            let (above, below) = (b.greater(x, 0)?, b.less(x, f64::INFINITY)?);
            b.logical_and(above, below)
        };
        let (left, right) = (positive(b, a)?, positive(b, x)?);
        let is_inside = b.logical_and(left, right)?;
        let (a, x) = (b.only(&is_inside, a, 1.0)?, b.only(&is_inside, x, 1.0)?);

        let distance = b.subtract(&x, &a)?;
        let distance = b.divide(distance, &a)?;
        let (above, below) = (b.greater_equal(&distance, -0.3)?, b.less_equal(&distance, 0.4)?);
        let is_close = b.logical_and(above, below)?;
        let is_large = b.greater_equal(&a, if is_double { 40 } else { 20 })?;
        let is_temme = b.logical_and(is_close, is_large)?;

        // The continued fraction is used from 1.1 and `a` on.
        let (beyond, after) = (b.greater(&x, 1.1)?, b.greater_equal(&x, &a)?);
        let is_fraction = b.logical_and(beyond, after)?;
        // Below, the series in powers of `x` is used where the upper function is less than about 0.7.
        let low = b.less_equal(&x, 0.5)?;
        let shallow = b.only(&low, &x, 0.25)?;
        let log = b.log(shallow)?;
        let bound = b.divide(-0.4, log)?;
        let wide = b.multiply(&x, 1.1)?;
        let bound = b.select(low, bound, wide)?;
        let is_small = b.less_equal(&a, bound)?;
        let within = b.less_equal(&x, 1.1)?;
        let is_start = b.logical_and(is_small, within)?;
        let other = b.logical_or(is_fraction, &is_start)?;
        let is_series = b.logical_not(other)?;

        let curvature = curvature(b, &distance)?;
        let power = power(b, &a, &x, &distance, &curvature)?;
        Ok(Forms { is_inside, is_temme, is_series, is_start, a, x, distance, curvature, power, is_double })
    }

    /// `1 + x / (a + 1) (1 + x / (a + 2) (1 + ...))`, and its derivative by `a`.
    fn series(&self, b: &mut B) -> Result<(B::V, B::V)> {
        // For `x <= a < 40`, and for `x <= 0.7 a`, the next term is below the rounding of the sum.
        let terms = if self.is_double { 110 } else { 55 };
        let mask = self.without_temme(b, &self.is_series)?;
        let (a, x) = (b.only(&mask, &self.a, 1.0)?, b.only(&mask, &self.x, 1.0)?);
        let dtype = b.ty(&x).dtype;
        let (one, zero) = (self.like(b, &x, 1.0)?, self.like(b, &x, 0.0)?);
        let last = sum_terms(b, terms, &[one, zero], &[a, x], |graph, step, state, captures| {
            let rest = graph.subtract(terms as i64, step)?;
            let rest = graph.as_type(rest, dtype)?;
            let below = graph.add(captures[0], rest)?;
            let ratio = graph.divide(captures[1], below)?;
            let product = graph.multiply(ratio, state[0])?;
            let by_ratio = graph.divide(product, below)?;
            let inner = graph.multiply(ratio, state[1])?;
            Ok(vec![graph.add(product, 1)?, graph.subtract(inner, by_ratio)?])
        })?;
        Ok((last[0].clone(), last[1].clone()))
    }

    /// The denominator of Legendre's continued fraction `x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)`, and its
    /// derivative by `a`. The upper function is `x^a exp(-x) / gamma(a)` divided by it.
    fn fraction(&self, b: &mut B) -> Result<(B::V, B::V)> {
        let terms = if self.is_double { 90 } else { 32 };
        let other = b.logical_or(&self.is_series, &self.is_start)?;
        let own = b.logical_not(other)?;
        let mask = self.without_temme(b, &own)?;
        let (a, x) = (b.only(&mask, &self.a, 1.0)?, b.only(&mask, &self.x, 2.0)?);
        let dtype = b.ty(&x).dtype;
        let first = b.subtract(&x, &a)?;
        let start = b.add(&first, 2 * terms as i64 + 1)?;
        let slope = self.like(b, &x, -1.0)?;
        let last = sum_terms(b, terms, &[start, slope], &[a, first], |graph, step, state, captures| {
            // n from the last number of terms down to 1
            let n = graph.subtract(terms as i64, step)?;
            let n = graph.as_type(n, dtype)?;
            let rest = graph.subtract(n, captures[0])?;
            let factor = graph.multiply(rest, n)?;
            let quotient = graph.divide(factor, state[0])?;
            let twice = graph.multiply(n, 2)?;
            let shift = graph.subtract(twice, 1)?;
            let own = graph.add(captures[1], shift)?;
            let value = graph.subtract(own, quotient)?;
            // d/da of -n (n - a) / f is n / f + n (n - a) f' / f^2.
            let inner = graph.multiply(quotient, state[1])?;
            let inner = graph.add(n, inner)?;
            let inner = graph.divide(inner, state[0])?;
            Ok(vec![value, graph.subtract(inner, 1)?])
        })?;
        Ok((last[0].clone(), last[1].clone()))
    }

    /// The upper function for small operands, and its derivative by `a`.
    ///
    /// With `L = a log(x) - log(gamma(1 + a))` it is `-expm1(L) - a exp(L) sum((-x)^n / ((a + n) n!))`, `n` from 1.
    fn start(&self, b: &mut B) -> Result<(B::V, B::V)> {
        let terms = if self.is_double { 20 } else { 12 };
        let (a, x) = (b.only(&self.is_start, &self.a, 1.0)?, b.only(&self.is_start, &self.x, 1.0)?);
        let mut factor = self.like(b, &x, 1.0)?;
        let (mut sum, mut slope) = (self.like(b, &x, 0.0)?, self.like(b, &x, 0.0)?);
        for n in 1..=terms {
            let ratio = b.multiply(&x, -1.0 / f64::from(n))?;
            factor = b.multiply(factor, ratio)?;
            let below = b.add(&a, n)?;
            let term = b.divide(&factor, &below)?;
            sum = b.add(sum, &term)?;
            let term = b.divide(term, below)?;
            slope = b.subtract(slope, term)?;
        }
        let is_low = b.less_equal(&a, 0.5)?;
        let low = b.only(&is_low, &a, 0.25)?;
        let low = log_gamma_1p(b, &low)?;
        let next = b.add(&a, 1)?;
        let high = log_gamma(b, &next)?;
        let log_gamma = b.select(is_low, low, high)?;
        let log_x = b.log(x)?;
        let exponent = b.multiply(&a, &log_x)?;
        let exponent = b.subtract(exponent, log_gamma)?;
        let main = b.expm1(&exponent)?;
        let exp = b.exp(exponent)?;
        let series = b.multiply(&a, &sum)?;
        let rest = b.multiply(&exp, &series)?;
        let both = b.add(main, rest)?;
        let value = b.negate(both)?;

        let digamma = digamma_of(b, &next)?;
        let rate = b.subtract(log_x, digamma)?;
        let series = b.add(series, 1)?;
        let first = b.multiply(rate, series)?;
        let second = b.multiply(a, slope)?;
        let second = b.add(second, sum)?;
        let both = b.add(first, second)?;
        let slope = b.multiply(exp, both)?;
        Ok((value, b.negate(slope)?))
    }

    /// `exp(-a f) / sqrt(2 pi a)`, `f = d - log1p(d)` of the distance `d`; `f`, `eta` with the distance's sign and
    /// `eta^2 / 2 = f`; and Temme's sum and its derivative by `a`.
    fn expansion(&self, b: &mut B) -> Result<Expansion<B::V>> {
        let a = b.only(&self.is_temme, &self.a, 100.0)?;
        let distance = b.only(&self.is_temme, &self.distance, 0.0)?;
        let curvature = b.only(&self.is_temme, &self.curvature, 0.5)?;
        let square = b.multiply(&distance, &distance)?;
        let exponent = b.multiply(square, &curvature)?;
        let twice = b.multiply(curvature, 2)?;
        let root = b.sqrt(twice)?;
        let eta = b.multiply(distance, root)?;
        let rows = if self.is_double { TEMME.double } else { TEMME.single };
        let (mut sum, mut slope) = (self.like(b, &a, 0.0)?, self.like(b, &a, 0.0)?);
        for (k, row) in rows.iter().enumerate().rev() {
            let value = polynomial(b, &eta, row)?;
            let scaled = b.divide(&sum, &a)?;
            sum = b.add(scaled, &value)?;
            let term = b.multiply(value, -(k as f64))?;
            let scaled = b.divide(slope, &a)?;
            slope = b.add(scaled, term)?;
        }
        let slope = b.divide(slope, &a)?;
        let product = b.multiply(&a, &exponent)?;
        let opposite = b.negate(product)?;
        let exp = b.exp(opposite)?;
        let spread = b.multiply(&a, TAU)?;
        let spread = b.sqrt(spread)?;
        let scale = b.divide(exp, spread)?;
        Ok(Expansion { a, exponent, eta, scale, sum, slope })
    }

    /// Temme's lower and upper function.
    fn temme(&self, b: &mut B) -> Result<[B::V; 2]> {
        let Expansion { a, exponent: _, eta, scale, sum, slope: _ } = self.expansion(b)?;
        let rest = b.multiply(scale, sum)?;
        let root = b.sqrt(a)?;
        let place = b.multiply(eta, root)?;
        let place = b.multiply(place, FRAC_1_SQRT_2)?;
        let upper = b.erfc(&place)?;
        let upper = b.multiply(upper, 0.5)?;
        let upper = b.add(upper, &rest)?;
        let place = b.negate(place)?;
        let lower = b.erfc(place)?;
        let lower = b.multiply(lower, 0.5)?;
        Ok([b.subtract(lower, rest)?, upper])
    }

    /// The derivative of the lower function by `a`.
    fn slope(&self, b: &mut B) -> Result<B::V> {
        let log = b.log(&self.x)?;
        let digamma = digamma_of(b, &self.a)?;
        let rate = b.subtract(log, digamma)?;
        let inverse = b.inverse(&self.a)?;

        // P = power * sum
        let (sum, by_a) = self.series(b)?;
        let after = b.subtract(&rate, &inverse)?;
        let first = b.multiply(after, sum)?;
        let lower = b.add(first, by_a)?;
        let lower = b.multiply(lower, &self.power)?;

        // Q = power * a / fraction
        let (fraction, by_a) = self.fraction(b)?;
        let relative = b.divide(by_a, &fraction)?;
        let first = b.subtract(rate, relative)?;
        let upper = b.multiply(&self.power, &self.a)?;
        let upper = b.divide(upper, fraction)?;
        let upper = b.multiply(upper, first)?;
        let (_, start) = self.start(b)?;
        let upper = b.select(&self.is_start, start, upper)?;
        let rest = b.negate(upper)?;
        let value = b.select(&self.is_series, lower, rest)?;

        // At a fixed distance the derivative of Q is that of the expansion; its move is `power`.
        let Expansion { a, exponent, eta, scale, sum, slope } = self.expansion(b)?;
        let half = b.divide(0.5, a)?;
        let decay = b.add(exponent, half)?;
        let decay = b.multiply(decay, sum)?;
        let half = b.multiply(eta, 0.5)?;
        let change = b.subtract(slope, half)?;
        let change = b.subtract(change, decay)?;
        let change = b.multiply(change, scale)?;
        let upper = b.add(change, &self.power)?;
        let temme = b.negate(upper)?;
        b.select(&self.is_temme, temme, value)
    }

    /// The elements of a mask that are not Temme's.
    fn without_temme(&self, b: &mut B, mask: &B::V) -> Result<B::V> {
        let other = b.logical_not(&self.is_temme)?;
        b.logical_and(mask, other)
    }

    /// A number in the shape of `x`.
    fn like(&self, b: &mut B, x: &B::V, number: f64) -> Result<B::V> {
        let ty = b.ty(x);
        b.full(ty.shape, ty.dtype, number)
    }
}

/// See [`Forms::expansion`].
struct Expansion<V> {
    a: V,
    exponent: V,
    eta: V,
    scale: V,
    sum: V,
    slope: V,
}

/// As [`repeat`], several terms in each trip: between trips the state of all elements goes to memory.
fn sum_terms<B: Builder>(
    b: &mut B,
    terms: usize,
    state: &[B::V],
    captures: &[B::V],
    body: impl Fn(&mut Graph, Value, &[Value], &[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<B::V>> {
    let each = (8..=11).rev().find(|each| terms.is_multiple_of(*each)).unwrap_or(1);
    repeat(b, terms / each, state, captures, |graph, trip, state, captures| {
        let first = graph.multiply(trip, each as i64)?;
        let mut state = state.to_vec();
        for place in 0..each {
            let step = graph.add(first, place as i64)?;
            state = body(graph, step, &state, captures)?;
        }
        Ok(state)
    })
}

/// `(d - log1p(d)) / d^2` for `|d| <= 0.5`, and that of 0 elsewhere.
///
/// With `s = d / (2 + d)`, `log1p(d)` is `2 atanh(s)`. Without the first terms of its series, which cancel, the rest
/// is `1 / (2 + d) - 2 d / (2 + d)^3 (1 / 3 + s^2 / 5 + s^4 / 7 + ...)`: Loader, "Fast and accurate computation of
/// binomial probabilities" (2000).
pub(super) fn curvature<B: Builder>(b: &mut B, distance: &B::V) -> Result<B::V> {
    let terms = if b.ty(distance).dtype == DType::F64 { 17 } else { 8 };
    let size = b.abs(distance)?;
    let is_near = b.less_equal(size, 0.5)?;
    let d = b.only(&is_near, distance, 0.0)?;
    let below = b.add(&d, 2)?;
    let s = b.divide(&d, &below)?;
    let square = b.multiply(&s, &s)?;
    let coefficients: Vec<f64> = (0..terms).map(|k| 2.0 / f64::from(2 * k + 3)).collect();
    let sum = polynomial(b, &square, &coefficients)?;
    let factor = b.divide(&s, &below)?;
    let rest = b.multiply(sum, factor)?;
    let rest = b.subtract(1, rest)?;
    b.divide(rest, below)
}

/// `x^a exp(-x) / gamma(a + 1)`. From `a = 8` on the large terms of its logarithm cancel before they are rounded, as
/// in Loader's formula.
fn power<B: Builder>(b: &mut B, a: &B::V, x: &B::V, distance: &B::V, curvature: &B::V) -> Result<B::V> {
    let is_small = b.less(a, 8)?;
    // Beyond the bound the exponential is 0. It is in two factors, which are above the least normal numbers.
    let bound = if b.ty(x).dtype == DType::F64 { 800.0 } else { 120.0 };
    let within = b.less(x, bound)?;
    let (low, base) = (b.only(&is_small, a, 1.0)?, b.only(&within, x, bound)?);
    let next = b.add(&low, 1)?;
    let log = log_gamma(b, &next)?;
    let gamma = b.exp(log)?;
    let half = b.multiply(&base, -0.5)?;
    let root = b.exp(half)?;
    let near = b.pow(base, low)?;
    let near = b.multiply(near, &root)?;
    let near = b.divide(near, gamma)?;
    let near = b.multiply(near, root)?;

    let size = b.abs(distance)?;
    let is_close = b.less_equal(size, 0.5)?;
    let square = b.multiply(distance, distance)?;
    let close = b.multiply(square, curvature)?;
    let quotient = b.divide(x, a)?;
    let log = b.log(quotient)?;
    let distant = b.subtract(distance, log)?;
    let exponent = b.select(is_close, close, distant)?;
    let large = b.select(&is_small, 8, a)?;
    let exponent = b.multiply(exponent, &large)?;
    let remainder = stirling_remainder(b, &large)?;
    let sum = b.add(exponent, remainder)?;
    let opposite = b.negate(sum)?;
    let exp = b.exp(opposite)?;
    let spread = b.multiply(large, TAU)?;
    let spread = b.sqrt(spread)?;
    let far = b.divide(exp, spread)?;
    b.select(is_small, near, far)
}
