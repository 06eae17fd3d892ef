//! Random vectors with correlated elements.

use super::{Sample, check_key, merged_dtype, normal, wrong_dtype};
use crate::builder::{Arg, BuildControl, BuildElementwise, BuildLinalg, BuildMatrix, BuildShape, Builder};
use crate::error::{ErrorKind, Result};
use crate::op::catalogue;
use crate::scalar::Number;
use crate::shape::{Name, Shape, TensorType};

catalogue! {
    /// The method that computes a root of the covariance.
    ///
    /// ```
    /// use defn_core::compose::random::Method;
    /// assert_eq!(Method::Cholesky.name(), "cholesky");
    /// ```
    pub enum Method {
        /// The Cholesky factor.
        Cholesky = "cholesky",
        /// From the singular values.
        Svd = "svd",
        /// From the eigenvalues.
        Eigh = "eigh",
    }
}

/// The maximum number of sweeps, the same as the defaults of the public functions.
const SVD_SWEEPS: usize = 100;
const EIGH_SWEEPS: usize = 1000;

/// Normally distributed vectors with a mean, which is a vector, and a covariance, which is a symmetric matrix without
/// negative eigenvalues. The sample's shape is the batch shape. The axis of the vectors is last and has its own
/// `name`.
///
/// # Errors
/// A value that is no key, an element type that is no float, and a mean and a covariance whose shapes do not match.
pub fn multivariate_normal<B: Builder>(
    b: &mut B,
    key: &B::V,
    mean: &Arg<B::V>,
    covariance: &Arg<B::V>,
    method: Method,
    sample: &Sample,
    name: Option<Name>,
) -> Result<B::V> {
    let value = multivariate_normal_of(b, key, mean, covariance, method, sample, name)?;
    b.order_vectorized_axes(value, &[&key.into(), mean, covariance])
}

fn multivariate_normal_of<B: Builder>(
    b: &mut B,
    key: &B::V,
    mean: &Arg<B::V>,
    covariance: &Arg<B::V>,
    method: Method,
    sample: &Sample,
    name: Option<Name>,
) -> Result<B::V> {
    let op = "multivariate_normal";
    check_key(b, op, key)?;
    let dtype = sample.dtype.unwrap_or_else(|| merged_dtype(b, mean, covariance).to_float());
    let (mean, covariance) = (b.operand(mean.clone())?, b.operand(covariance.clone())?);
    let (left, right) = (b.ty(&mean), b.ty(&covariance));
    let (dimensions, fits) = match left.shape.sizes() {
        [size] => (*size, right.shape.sizes() == [*size; 2]),
        _ => (0, false),
    };
    if !fits {
        return Err(ErrorKind::MultivariateShapes { mean: left, covariance: right }.into());
    }
    // A requested float dtype must not drop an imaginary part.
    if !dtype.is_float() || left.dtype.is_complex() || right.dtype.is_complex() {
        let merged = dtype.merge(left.dtype).merge(right.dtype);
        return Err(wrong_dtype(op, if dtype.is_float() { merged } else { dtype }, "a float dtype"));
    }
    let mean = b.reshape_to(mean, left.shape.without_names())?;
    let mean = b.as_type(mean, dtype)?;
    let covariance = b.reshape_to(covariance, right.shape.without_names())?;
    let covariance = b.as_type(covariance, dtype)?;
    let root = match method {
        Method::Cholesky => b.cholesky(covariance)?,
        Method::Svd => {
            let (vectors, values, _) = b.svd(covariance, SVD_SWEEPS, true)?;
            let values = b.sqrt(values)?;
            b.multiply(vectors, values)?
        }
        Method::Eigh => {
            let (values, vectors) = b.eigh(covariance, EIGH_SWEEPS, 0.0)?;
            // Rounding may make an eigenvalue of 0 negative.
            let values = b.max(values, 0)?;
            let values = b.sqrt(values)?;
            b.multiply(vectors, values)?
        }
    };
    let shape = Shape::from_axes(sample.shape.entries().chain([(dimensions, name)]));
    let count = TensorType::new(dtype, shape.clone())?.size();
    let rows = count.checked_div(dimensions).unwrap_or(0);
    let standard = [0, 1].map(|number| Arg::Number(Number::Int(number)));
    let flat = Sample::of(Shape::new(&[rows, dimensions])).with_dtype(dtype);
    let values = normal(b, key, &standard[0], &standard[1], &flat)?;
    let values = b.dot_axes(values, 1, root, 1)?;
    let values = b.add(mean, values)?;
    let values = b.reshape_to(values, shape)?;
    b.stop_grad(values)
}
