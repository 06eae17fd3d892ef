//! Random numbers: keys and samples in the style of Nx.Random, with the generator Threefry.
//!
//! A key is a vector of two u32. Each function uses its key directly, once and for one purpose. [`fresh`] splits a
//! key into one to use and the next one. Uniform and normal numbers, bits and integers have no gradient, as in Nx;
//! those of the other continuous distributions have one by their parameters.

mod discrete;
mod families;
mod gamma;
mod generator;
mod geometry;
mod integer;
mod multivariate;
mod pick;
mod rejection;

pub use discrete::{binomial, categorical, poisson};
pub use families::{bernoulli, exponential, laplace, logistic, rademacher, truncated_normal};
pub use gamma::{beta, chisquare, dirichlet, gamma, t};
pub use generator::{bits, fold_in, fresh, key, plain_bits, plain_uniform, split, threefry};
pub(crate) use geometry::orthonormal_columns;
pub use geometry::{ball, orthogonal};
pub use integer::{plain_below, randint};
pub use multivariate::{Method, multivariate_normal};
pub use pick::{Choice, choice, choice_split, shuffle};

use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Domain, Op};
use crate::scalar::Number;
use crate::shape::{AxisRef, Shape, TensorType};

/// The requested sample: its shape with names, and its element type unless the parameters determine it.
///
/// ```
/// use defn_core::compose::random::Sample;
/// use defn_core::{DType, Shape};
/// let sample = Sample::of(Shape::new(&[2])).with_dtype(DType::F64);
/// assert_eq!((sample.shape.size(), sample.dtype), (2, Some(DType::F64)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The shape.
    pub shape: Shape,
    /// The element type; by default the merged type of the function's parameters.
    pub dtype: Option<DType>,
}

impl Sample {
    /// A sample of a shape, with the type of its parameters.
    pub fn of(shape: Shape) -> Sample {
        Sample { shape, dtype: None }
    }

    /// The same sample with elements of a type.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Sample {
        Sample { dtype: Some(dtype), ..self }
    }
}

/// A sample of a shape, with the type of its parameters.
impl From<Shape> for Sample {
    fn from(shape: Shape) -> Sample {
        Sample::of(shape)
    }
}

/// A sample of sizes, with the type of its parameters.
///
/// ```
/// use defn_core::compose::random::Sample;
/// assert_eq!(Sample::from([2, 3]).shape.sizes(), [2, 3]);
/// ```
impl<const N: usize> From<[usize; N]> for Sample {
    fn from(sizes: [usize; N]) -> Sample {
        Sample::of(Shape::new(&sizes))
    }
}

/// As of an array.
impl From<&[usize]> for Sample {
    fn from(sizes: &[usize]) -> Sample {
        Sample::of(Shape::new(sizes))
    }
}

/// The same sample.
impl From<&Sample> for Sample {
    fn from(sample: &Sample) -> Sample {
        sample.clone()
    }
}

/// A parameter of a distribution, and its name in messages.
struct Parameter<'a, V> {
    name: &'static str,
    value: &'a Arg<V>,
}

/// The element type of a parameter by itself.
fn own_dtype<B: Builder>(b: &B, arg: &Arg<B::V>) -> DType {
    match arg {
        Arg::Value(value) => b.ty(value).dtype,
        Arg::Number(number) => number.dtype(),
    }
}

/// The merged dtype of two parameters; numbers take the dtype of a tensor.
fn merged_dtype<B: Builder>(b: &B, left: &Arg<B::V>, right: &Arg<B::V>) -> DType {
    match b.weak_type([left, right]) {
        Some(ty) => ty.dtype,
        None => own_dtype(b, left).merge(own_dtype(b, right)),
    }
}

/// Returns an error if a value is no key.
pub(crate) fn check_key<B: Builder>(b: &B, op: &'static str, key: &B::V) -> Result<()> {
    let got = b.ty(key);
    if got.dtype == DType::U32 && got.shape.sizes() == [2] {
        return Ok(());
    }
    Err(ErrorKind::RandomKey { op, got }.into())
}

/// The error for an element type that a function's samples cannot have.
pub(crate) fn wrong_dtype(op: &'static str, dtype: DType, required: &str) -> crate::error::Error {
    let (option, given, required) = ("the dtype", dtype.to_string(), required.to_owned());
    ErrorKind::OptionValue { op, option, given, required }.into()
}

/// A parameter in the element type of the sample, without names; it broadcasts to the sample's shape.
fn parameter<B: Builder>(
    b: &mut B,
    op: &'static str,
    parameter: &Parameter<'_, B::V>,
    dtype: DType,
    shape: &Shape,
) -> Result<B::V> {
    let value = match parameter.value {
        Arg::Number(number) => return b.constant(dtype, *number),
        Arg::Value(value) => value,
    };
    if b.weakness(value).is_some() {
        return b.as_type(value, dtype);
    }
    let got = b.ty(value);
    let fits = got.shape.without_names().broadcast_with(op, &shape.without_names());
    if fits.is_ok_and(|broadcast| broadcast.sizes() == shape.sizes()) {
        let value = b.reshape_to(value, got.shape.without_names())?;
        return b.as_type(value, dtype);
    }
    let (what, shape) = (parameter.name, shape.clone());
    Err(ErrorKind::ParameterShape { op, what, got, shape }.into())
}

/// Whether a parameter is this plain number.
fn is_number<V>(arg: &Arg<V>, number: f64) -> bool {
    match arg {
        Arg::Number(own @ (Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_))) => {
            own.to_f64().to_bits() == number.to_bits()
        }
        Arg::Number(Number::Complex(_)) | Arg::Value(_) => false,
    }
}

/// A sample of floats or of complex numbers. `draw` returns floats of a dtype in a shape. For complex numbers its
/// last axis has the real and the imaginary part.
fn real_or_complex<B: Builder>(
    b: &mut B,
    op: &'static str,
    dtype: DType,
    shape: &Shape,
    parameters: [Parameter<'_, B::V>; 2],
    draw: impl FnOnce(&mut B, DType, &Shape, [Parameter<'_, B::V>; 2]) -> Result<B::V>,
) -> Result<B::V> {
    let plain = shape.without_names();
    TensorType::new(dtype, plain.clone())?;
    if !dtype.is_inexact() {
        return Err(wrong_dtype(op, dtype, "a float or complex dtype"));
    }
    for Parameter { name, value } in &parameters {
        if let Arg::Value(value) = value
            && b.ty(value).dtype.is_complex()
        {
            let (got, required) = (b.ty(value), Domain::Real.text());
            return Err(ErrorKind::ParameterDType { op, what: name, got, required }.into());
        }
    }
    let values = if dtype.is_float() {
        draw(b, dtype, &plain, parameters)?
    } else {
        let mut parts = plain.sizes().to_vec();
        parts.push(2);
        let [left, right] = &parameters;
        let wide = [with_parts(b, left.value)?, with_parts(b, right.value)?];
        let [left, right] =
            [Parameter { name: left.name, value: &wide[0] }, Parameter { name: right.name, value: &wide[1] }];
        let drawn = draw(b, dtype.to_real(), &Shape::new(&parts), [left, right])?;
        let [real, imag] = [0, 1].map(|part| -> Result<B::V> {
            let part = b.slice_along_axis(&drawn, part, 1, -1, 1)?;
            b.squeeze(part, AxisRef::Index(-1))
        });
        b.complex(real?, imag?)?
    };
    let values = b.reshape_to(values, shape.clone())?;
    b.stop_grad(values)
}

/// A parameter that applies to both the real and the imaginary part.
fn with_parts<B: Builder>(b: &mut B, arg: &Arg<B::V>) -> Result<Arg<B::V>> {
    match arg {
        Arg::Value(value) if b.ty(value).shape.rank() > 0 => b.new_axis(value, -1, None).map(Arg::Value),
        Arg::Value(_) | Arg::Number(_) => Ok(arg.clone()),
    }
}

/// Uniformly distributed floats in the half-open interval from `min` to `max`. For complex numbers both parts are so
/// distributed.
///
/// # Errors
/// A value that is no key, an element type that is neither float nor complex, and bounds that are complex or do not
/// broadcast to the shape.
pub fn uniform<B: Builder>(
    b: &mut B,
    key: &B::V,
    min: &Arg<B::V>,
    max: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    let value = uniform_of(b, key, min, max, sample)?;
    b.order_vectorized_axes(value, &[&key.into(), min, max])
}

fn uniform_of<B: Builder>(
    b: &mut B,
    key: &B::V,
    min: &Arg<B::V>,
    max: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    check_key(b, "uniform", key)?;
    let dtype = sample.dtype.unwrap_or_else(|| merged_dtype(b, min, max).to_float());
    let bounds = [Parameter { name: "min", value: min }, Parameter { name: "max", value: max }];
    real_or_complex(b, "uniform", dtype, &sample.shape, bounds, |b, dtype, shape, [min, max]| {
        uniform_floats(b, "uniform", key, [min, max], dtype, shape)
    })
}

fn uniform_floats<B: Builder>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    [min, max]: [Parameter<'_, B::V>; 2],
    dtype: DType,
    shape: &Shape,
) -> Result<B::V> {
    let draw = Op::Block(Block::RandomUniform { dtype, count: shape.size() });
    let flat = b.emit_one(draw, std::slice::from_ref(key))?;
    let unit = b.reshape_to(flat, shape.clone())?;
    if is_number(min.value, 0.0) && is_number(max.value, 1.0) {
        // Scaling would not change any bit.
        return Ok(unit);
    }
    let min = parameter(b, op, &min, dtype, shape)?;
    let max = parameter(b, op, &max, dtype, shape)?;
    let span = b.subtract(max, &min)?;
    let scaled = b.multiply(unit, span)?;
    let moved = b.add(scaled, &min)?;
    // Rounding may move the sum below the bound.
    b.max(moved, min)
}

/// Normally distributed floats. For complex numbers both parts are so distributed.
///
/// # Errors
/// As [`uniform`], for mean and standard deviation.
pub fn normal<B: Builder>(
    b: &mut B,
    key: &B::V,
    mean: &Arg<B::V>,
    standard_deviation: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    let value = normal_of(b, key, mean, standard_deviation, sample)?;
    b.order_vectorized_axes(value, &[&key.into(), mean, standard_deviation])
}

fn normal_of<B: Builder>(
    b: &mut B,
    key: &B::V,
    mean: &Arg<B::V>,
    standard_deviation: &Arg<B::V>,
    sample: &Sample,
) -> Result<B::V> {
    check_key(b, "normal", key)?;
    let dtype = sample.dtype.unwrap_or_else(|| merged_dtype(b, mean, standard_deviation).to_float());
    let parameters = [
        Parameter { name: "mean", value: mean },
        Parameter { name: "standard_deviation", value: standard_deviation },
    ];
    real_or_complex(b, "normal", dtype, &sample.shape, parameters, |b, dtype, shape, [mean, deviation]| {
        let normal = standard_normal(b, "normal", key, dtype, shape)?;
        if is_number(mean.value, 0.0) && is_number(deviation.value, 1.0) {
            return Ok(normal);
        }
        let mean = parameter(b, "normal", &mean, dtype, shape)?;
        let deviation = parameter(b, "normal", &deviation, dtype, shape)?;
        let scaled = b.multiply(deviation, normal)?;
        b.add(scaled, mean)
    })
}

/// Floats with mean 0 and standard deviation 1: the inverse of the cumulative distribution function at uniformly
/// distributed positions. They exclude -1, where the inverse is infinite.
fn standard_normal<B: Builder>(
    b: &mut B,
    op: &'static str,
    key: &B::V,
    dtype: DType,
    shape: &Shape,
) -> Result<B::V> {
    let above = 2f64.powi(-(dtype.mantissa_bits() as i32) - 1) - 1.0;
    let bounds = [Arg::Number(Number::Float(above)), Arg::Number(Number::Int(1))];
    let bounds = [Parameter { name: "min", value: &bounds[0] }, Parameter { name: "max", value: &bounds[1] }];
    let points = uniform_floats(b, op, key, bounds, dtype, shape)?;
    let inverse = b.erf_inv(points)?;
    let two = b.constant(dtype, 2)?;
    let root = b.sqrt(two)?;
    b.multiply(root, inverse)
}

/// Floats of the standard Gumbel distribution: `-log(-log(u))` of uniformly distributed `u`.
///
/// # Errors
/// A value that is no key, and an element type that is no float.
pub fn gumbel<B: Builder>(b: &mut B, key: &B::V, sample: &Sample) -> Result<B::V> {
    check_key(b, "gumbel", key)?;
    let dtype = sample.dtype.unwrap_or(DType::F32);
    if !dtype.is_float() {
        return Err(wrong_dtype("gumbel", dtype, "a float dtype"));
    }
    let shape = sample.shape.without_names();
    TensorType::new(dtype, shape.clone())?;
    let bounds = [Arg::Number(dtype.smallest_normal()), Arg::Number(Number::Int(1))];
    let bounds = [Parameter { name: "min", value: &bounds[0] }, Parameter { name: "max", value: &bounds[1] }];
    let u = uniform_floats(b, "gumbel", key, bounds, dtype, &shape)?;
    let log = b.log(u)?;
    let log = b.negate(log)?;
    let log = b.log(log)?;
    let values = b.negate(log)?;
    let values = b.reshape_to(values, sample.shape.clone())?;
    b.stop_grad(values)
}
