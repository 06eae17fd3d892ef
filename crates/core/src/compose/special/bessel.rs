//! The modified Bessel functions of the first kind, of order 0 and 1.
//!
//! Below 8 they are their power series, whose terms have the same sign (Abramowitz & Stegun, 9.6.10). From 8 on they
//! are `exp(x) / sqrt(x)` times a polynomial in `1 / x`, as in Moshier's Cephes library (1989).

use super::tables::{BESSEL_0, BESSEL_1};
use super::{SpecialBuilder, of_real, polynomial, with_gradient};
use crate::builder::{BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;

/// The order of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Zero,
    One,
}

/// See [`BuildSpecial::i0`](crate::builder::BuildSpecial::i0).
///
/// # Errors
/// As the method.
pub fn i0<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "i0", x, |b, x| {
        let value = plain(b, x, Order::Zero)?;
        with_gradient(b, &value, std::slice::from_ref(x), |graph, g, inputs| {
            let slope = plain(graph, &inputs[0], Order::One)?;
            Ok(vec![graph.multiply(g, slope)?])
        })
    })
}

/// See [`BuildSpecial::i1`](crate::builder::BuildSpecial::i1).
///
/// # Errors
/// As the method.
pub fn i1<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "i1", x, |b, x| {
        let value = plain(b, x, Order::One)?;
        with_gradient(b, &value, std::slice::from_ref(x), |graph, g, inputs| {
            let even = plain(graph, &inputs[0], Order::Zero)?;
            let ratio = quotient(graph, &inputs[0], false)?;
            let slope = graph.subtract(even, ratio)?;
            Ok(vec![graph.multiply(g, slope)?])
        })
    })
}

/// See [`BuildSpecial::i0e`](crate::builder::BuildSpecial::i0e).
///
/// # Errors
/// As the method.
pub fn i0e<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "i0e", x, |b, x| {
        let value = scaled(b, x, Order::Zero)?;
        with_gradient(b, &value, std::slice::from_ref(x), |graph, g, inputs| {
            let (even, odd) =
                (scaled(graph, &inputs[0], Order::Zero)?, scaled(graph, &inputs[0], Order::One)?);
            let sign = graph.sign(inputs[0])?;
            let even = graph.multiply(even, sign)?;
            let slope = graph.subtract(odd, even)?;
            Ok(vec![graph.multiply(g, slope)?])
        })
    })
}

/// See [`BuildSpecial::i1e`](crate::builder::BuildSpecial::i1e).
///
/// # Errors
/// As the method.
pub fn i1e<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    of_real(b, "i1e", x, |b, x| {
        let value = scaled(b, x, Order::One)?;
        with_gradient(b, &value, std::slice::from_ref(x), |graph, g, inputs| {
            let (even, odd) =
                (scaled(graph, &inputs[0], Order::Zero)?, scaled(graph, &inputs[0], Order::One)?);
            let sign = graph.sign(inputs[0])?;
            let odd = graph.multiply(odd, sign)?;
            let ratio = quotient(graph, &inputs[0], true)?;
            let slope = graph.subtract(even, odd)?;
            let slope = graph.subtract(slope, ratio)?;
            Ok(vec![graph.multiply(g, slope)?])
        })
    })
}

/// `1 / (k! (k + order)!)`, the coefficients of `(x / 2)^(2 k)` below 8. The next term is 2^-28 of the sum for f32 and
/// 2^-58 for f64.
fn series(dtype: DType, order: Order) -> Vec<f64> {
    let terms = if dtype == DType::F64 { 23 } else { 16 };
    let mut coefficient = 1.0;
    (0..terms)
        .map(|k| {
            let k = f64::from(k);
            if k > 0.0 {
                coefficient /= match order {
                    Order::Zero => k * k,
                    Order::One => k * (k + 1.0),
                };
            }
            coefficient
        })
        .collect()
}

/// The parts of a function of `|x|`: whether it is below 8, the series, which for order 1 is to be multiplied by `x
/// / 2`, and the value from 8 on without its exponential.
struct Parts<V> {
    is_small: V,
    small: V,
    series: V,
    large: V,
    tail: V,
}

fn parts<B: Builder>(b: &mut B, x: &B::V, order: Order) -> Result<Parts<B::V>> {
    let dtype = b.ty(x).dtype;
    let size = b.abs(x)?;
    let is_small = b.less(&size, 8)?;
    let small = b.only(&is_small, &size, 1.0)?;
    let half = b.multiply(&small, 0.5)?;
    let square = b.multiply(&half, &half)?;
    let series = polynomial(b, &square, &series(dtype, order))?;
    let large = b.select(&is_small, 8, size)?;
    let place = b.divide(16, &large)?;
    let place = b.subtract(place, 1)?;
    let table = match order {
        Order::Zero => BESSEL_0,
        Order::One => BESSEL_1,
    };
    let tail = polynomial(b, &place, table.of(dtype))?;
    let root = b.sqrt(&large)?;
    let tail = b.divide(tail, root)?;
    Ok(Parts { is_small, small, series, large, tail })
}

/// The value below 8.
fn from_series<B: Builder>(b: &mut B, series: B::V, x: &B::V, order: Order) -> Result<B::V> {
    match order {
        Order::Zero => Ok(series),
        Order::One => {
            let half = b.multiply(x, 0.5)?;
            b.multiply(half, series)
        }
    }
}

/// The value with the sign of `x` for order 1, from the value of `|x|`.
fn with_sign<B: Builder>(b: &mut B, value: B::V, x: &B::V, order: Order) -> Result<B::V> {
    match order {
        Order::Zero => Ok(value),
        Order::One => {
            let is_negative = b.less(x, 0)?;
            let opposite = b.negate(&value)?;
            b.select(is_negative, opposite, value)
        }
    }
}

/// The function without a gradient rule.
fn plain<B: Builder>(b: &mut B, x: &B::V, order: Order) -> Result<B::V> {
    let Parts { is_small, small, series, large, tail } = parts(b, x, order)?;
    let near = from_series(b, series, &small, order)?;
    // In two factors, because the exponential overflows before the function does.
    let half = b.multiply(&large, 0.5)?;
    let root = b.exp(half)?;
    let far = b.multiply(tail, &root)?;
    let far = b.multiply(far, root)?;
    let is_infinite = b.equal(large, f64::INFINITY)?;
    let far = b.select(is_infinite, f64::INFINITY, far)?;
    let value = b.select(is_small, near, far)?;
    with_sign(b, value, x, order)
}

/// The function times `exp(-|x|)`, without a gradient rule.
fn scaled<B: Builder>(b: &mut B, x: &B::V, order: Order) -> Result<B::V> {
    let Parts { is_small, small, series, large: _, tail } = parts(b, x, order)?;
    let near = from_series(b, series, &small, order)?;
    let opposite = b.negate(small)?;
    let factor = b.exp(opposite)?;
    let near = b.multiply(near, factor)?;
    let value = b.select(is_small, near, tail)?;
    with_sign(b, value, x, order)
}

/// `i1(x) / x`, or `i1e(x) / x`; it is 0.5 at 0.
fn quotient<B: Builder>(b: &mut B, x: &B::V, is_scaled: bool) -> Result<B::V> {
    let Parts { is_small, small, series, large, tail } = parts(b, x, Order::One)?;
    let mut near = b.multiply(series, 0.5)?;
    let mut far = b.divide(tail, &large)?;
    if is_scaled {
        let opposite = b.negate(small)?;
        let factor = b.exp(opposite)?;
        near = b.multiply(near, factor)?;
    } else {
        let half = b.multiply(large, 0.5)?;
        let root = b.exp(half)?;
        far = b.multiply(far, &root)?;
        far = b.multiply(far, root)?;
    }
    b.select(is_small, near, far)
}
