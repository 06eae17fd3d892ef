//! Random orthogonal matrices, and points of balls.

use super::families::{Draw, dtype_of, family};
use super::gamma::{keys, log_gamma};
use super::{Parameter, Sample, check_key, normal, parameter, rademacher, wrong_dtype};
use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildMatrix, BuildReduce};
use crate::builder::{BuildShape, Builder};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::QrMode;
use crate::scalar::Number;
use crate::shape::{Shape, TensorType};

/// Orthogonal matrices of size `n`, for complex dtypes unitary ones, uniformly distributed (the Haar measure). The
/// sample's shape is the batch shape. Stewart, "The efficient generation of random orthogonal matrices with an
/// application to condition estimators" (1980), and Mezzadri, "How to generate random matrices from the classical
/// compact groups" (2007): the factor `q` of a normal matrix, whose columns take the signs of the diagonal of `r`.
/// Without the signs the distribution would depend on how the factorization chooses them.
///
/// # Errors
/// A value that is no key, and an element type that is neither float nor complex.
pub fn orthogonal<B: Builder>(b: &mut B, key: &B::V, n: usize, sample: &Sample) -> Result<B::V> {
    let op = "orthogonal";
    check_key(b, op, key)?;
    let dtype = sample.dtype.unwrap_or(DType::F32);
    if !dtype.is_inexact() {
        return Err(wrong_dtype(op, dtype, "a float or complex dtype"));
    }
    let shape = Shape::from_axes(sample.shape.entries().chain([(n, None), (n, None)]));
    TensorType::new(dtype, shape.without_names())?;
    let value = orthonormal_columns(b, key, &shape.without_names(), dtype)?;
    let value = b.as_type(value, dtype)?;
    let value = b.reshape_to(value, shape)?;
    let value = b.stop_grad(value)?;
    b.order_vectorized_axes(value, &[&key.into()])
}

/// Matrices with at least as many rows as columns, whose columns are orthonormal and uniformly distributed, in the
/// dtype in which functions of `dtype` compute.
///
/// # Errors
/// A shape that has too many elements.
pub(crate) fn orthonormal_columns<B: Builder>(
    b: &mut B,
    key: &B::V,
    shape: &Shape,
    dtype: DType,
) -> Result<B::V> {
    let working = if dtype.is_complex() { dtype } else { working_dtype(dtype) };
    let standard = [0, 1].map(|number| Arg::Number(Number::Int(number)));
    let x = normal(b, key, &standard[0], &standard[1], &Sample::of(shape.clone()).with_dtype(working))?;
    let (q, r) = b.qr(x, QrMode::Reduced, 0.0)?;
    let diagonal = b.take_diagonal(r, 0)?;
    let signs = b.sign(diagonal)?;
    // A column keeps its length where the diagonal is 0.
    let is_zero = b.equal(&signs, 0)?;
    let signs = b.select(is_zero, 1, signs)?;
    let signs = b.new_axis(signs, -2, None)?;
    b.multiply(q, signs)
}

/// Points that are uniformly distributed in the unit ball of the `p`-norm in `d` dimensions. The sample's shape is
/// the batch shape; the axis of the coordinates is last. Barthe, Guedon, Mendelson & Naor, "A probabilistic approach
/// to the geometry of the l_p^n-ball" (2005): of gamma-distributed numbers `g` with the shape parameter `1 / p`, an
/// exponential one `e` and random signs, `sign (g / (sum(g) + e))^(1 / p)`. For infinite `p` the coordinates are
/// uniform. NaN where `p` is not positive.
///
/// # Errors
/// As [`exponential`](super::exponential).
pub fn ball<B: Builder>(b: &mut B, key: &B::V, d: usize, p: &Arg<B::V>, sample: &Sample) -> Result<B::V> {
    let op = "ball";
    check_key(b, op, key)?;
    let dtype = sample.dtype.unwrap_or(dtype_of(b, op, &[("p", p)])?);
    if !dtype.is_float() {
        return Err(wrong_dtype(op, dtype, "a float dtype"));
    }
    let batch = sample.shape.without_names();
    let p = parameter(b, op, &Parameter { name: "p", value: p }, working_dtype(dtype), &batch)?;
    let p = if b.ty(&p).shape.rank() > 0 { b.new_axis(p, -1, None)? } else { p };
    let p = Arg::Value(p);
    let floats =
        Sample { shape: Shape::from_axes(sample.shape.entries().chain([(d, None)])), dtype: Some(dtype) };
    family(b, op, key, [("p", &p)], &floats, |b, draw, [p]| {
        let [of_gamma, of_signs, of_radius, of_cube] = keys(b, draw.key)?;
        let with_key = |key, shape| Draw { op, key, dtype: draw.dtype, shape };
        let is_infinite = b.equal(&p, f64::INFINITY)?;
        let finite = b.select(&is_infinite, 1, &p)?;
        let shape_parameter = b.divide(1, finite)?;
        let logs = log_gamma(b, &with_key(&of_gamma, draw.shape.clone()), &shape_parameter)?;
        let edge = Shape::from_axes(batch.entries().chain([(1, None)]));
        let u = with_key(&of_radius, edge).uniform(b, draw.dtype.smallest_normal())?;
        let log = b.log(u)?;
        let exponential = b.negate(log)?;
        let log = b.log(exponential)?;
        let sum = b.logsumexp(&logs, [-1], true, None)?;
        let sum = b.logaddexp(sum, log)?;
        let ratio = b.subtract(logs, sum)?;
        let exponent = b.multiply(ratio, shape_parameter)?;
        let size = b.exp(exponent)?;
        let in_cube = with_key(&of_cube, draw.shape.clone()).uniform(b, Number::Int(0))?;
        let size = b.select(is_infinite, in_cube, size)?;
        let signs = Sample { shape: draw.shape.clone(), dtype: Some(draw.dtype) };
        let signs = rademacher(b, &of_signs, &signs)?;
        b.multiply(size, signs)
    })
}
