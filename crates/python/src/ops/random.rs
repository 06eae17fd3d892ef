//! Random numbers, and named mathematical constants.
//!
//! A sampling function has two forms: one returns the sample and the next key, the other uses the key itself.

use defn_core::builder::{Arg, Builder, Ops};
use defn_core::compose::random::{self, Choice, Method, Sample};
use defn_core::constants::Constant;
use defn_core::{AxisRef, DType, ErrorKind, Name, Shape, Tensor};
use pyo3::prelude::*;

use super::parse::Names;
use super::{Parse, run};
use crate::backends;
use crate::convert;
use crate::error::{Fallible, Fault, guard};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

type OptionalArg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

pub(super) fn parse_sample(
    op: &'static str,
    shape: OptionalArg<'_, '_>,
    dtype: OptionalArg<'_, '_>,
    names: OptionalArg<'_, '_>,
) -> Fallible<Sample> {
    let mut shape: Shape = Parse::parse(op, "the shape", shape)?;
    let names: Names = Parse::parse(op, "names", names)?;
    if let Some(names) = names {
        shape = shape.with_names(names)?;
    }
    Ok(Sample { shape, dtype: Parse::parse(op, "the dtype", dtype)? })
}

/// A parameter of a distribution. JAX's functions take the shape in this place, so the error about a tuple or a list
/// names the option for it.
pub(super) fn parse_parameter<T: Parse>(
    op: &'static str,
    what: &'static str,
    value: OptionalArg<'_, '_>,
) -> Fallible<T> {
    let mut parsed = T::parse(op, what, value);
    if let Err(Fault::Misuse(misuse)) = &mut parsed
        && let Misuse::NotATensor { hint, .. } = &mut **misuse
        && !hint.is_empty()
    {
        *hint = "; give the shape of the result as shape=, make a tensor of a list with dn.tensor";
    }
    parsed
}

/// The number of bytes of a sample; `usize::MAX` on overflow.
pub(super) fn size_of(sample: &Sample) -> usize {
    sample.shape.checked_size().and_then(|size| size.checked_mul(4)).unwrap_or(usize::MAX)
}

pub(super) fn key_of(ops: &mut Ops, key: Arg<Tensor>) -> defn_core::Result<Tensor> {
    ops.operand(key)
}

/// Declares both forms of sampling functions: `"name": with the next key, without (parameters)`.
macro_rules! draws {
    ($($op:literal: $next:ident, $split:ident($($arg:ident: $ty:ty),*)
        |$ops:ident, $key:ident, $sample:ident| $body:expr;)*) => {
        $(
            #[allow(clippy::too_many_arguments, reason = "they are those of the public function")]
            #[pyfunction]
            #[pyo3(signature = (key, $($arg,)* shape, dtype = None, names = None))]
            fn $next(
                key: OptionalArg<'_, '_>,
                $($arg: OptionalArg<'_, '_>,)*
                shape: OptionalArg<'_, '_>,
                dtype: OptionalArg<'_, '_>,
                names: OptionalArg<'_, '_>,
            ) -> Fallible<(PyTensor, PyTensor)> {
                guard(|| {
                    let key: Arg<Tensor> = Parse::parse($op, "the key", key)?;
                    $(let $arg: $ty = $crate::ops::random::parse_parameter($op, stringify!($arg), $arg)?;)*
                    let $sample = &$crate::ops::random::parse_sample($op, shape, dtype, names)?;
                    let (value, next) = run($crate::ops::random::size_of($sample), move |$ops| {
                        let key = $crate::ops::random::key_of($ops, key)?;
                        let (used, next) = defn_core::compose::random::fresh($ops, $op, &key)?;
                        let $key = &used;
                        Ok(($body?, next))
                    })?;
                    Ok((PyTensor::new(value), PyTensor::new(next)))
                })
            }

            #[allow(clippy::too_many_arguments, reason = "they are those of the public function")]
            #[pyfunction]
            #[pyo3(signature = (key, $($arg,)* shape, dtype = None, names = None))]
            fn $split(
                key: OptionalArg<'_, '_>,
                $($arg: OptionalArg<'_, '_>,)*
                shape: OptionalArg<'_, '_>,
                dtype: OptionalArg<'_, '_>,
                names: OptionalArg<'_, '_>,
            ) -> Fallible<PyTensor> {
                guard(|| {
                    let key: Arg<Tensor> = Parse::parse($op, "the key", key)?;
                    $(let $arg: $ty = $crate::ops::random::parse_parameter($op, stringify!($arg), $arg)?;)*
                    let $sample = &$crate::ops::random::parse_sample($op, shape, dtype, names)?;
                    let value = run($crate::ops::random::size_of($sample), move |$ops| {
                        let $key = &$crate::ops::random::key_of($ops, key)?;
                        $body
                    })?;
                    Ok(PyTensor::new(value))
                })
            }
        )*

        fn add_draws(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(
                module.add_function(wrap_pyfunction!($next, module)?)?;
                module.add_function(wrap_pyfunction!($split, module)?)?;
            )*
            Ok(())
        }
    };
}
pub(super) use draws;

draws! {
    "bits": random_bits, random_bits_split() |ops, key, sample| random::bits(ops, key, sample);
    "uniform": random_uniform, random_uniform_split(min: Arg<Tensor>, max: Arg<Tensor>)
        |ops, key, sample| random::uniform(ops, key, &min, &max, sample);
    "normal": random_normal, random_normal_split(mean: Arg<Tensor>, standard_deviation: Arg<Tensor>)
        |ops, key, sample| random::normal(ops, key, &mean, &standard_deviation, sample);
    "randint": random_randint, random_randint_split(min: Arg<Tensor>, max: Arg<Tensor>)
        |ops, key, sample| random::randint(ops, key, &min, &max, sample);
    "gumbel": random_gumbel, random_gumbel_split() |ops, key, sample| random::gumbel(ops, key, sample);
    "exponential": random_exponential, random_exponential_split(scale: Arg<Tensor>)
        |ops, key, sample| random::exponential(ops, key, &scale, sample);
    "laplace": random_laplace, random_laplace_split(loc: Arg<Tensor>, scale: Arg<Tensor>)
        |ops, key, sample| random::laplace(ops, key, &loc, &scale, sample);
    "logistic": random_logistic, random_logistic_split(loc: Arg<Tensor>, scale: Arg<Tensor>)
        |ops, key, sample| random::logistic(ops, key, &loc, &scale, sample);
    "truncated_normal": random_truncated_normal, random_truncated_normal_split(lower: Arg<Tensor>, upper: Arg<Tensor>)
        |ops, key, sample| random::truncated_normal(ops, key, &lower, &upper, sample);
    "gamma": random_gamma, random_gamma_split(a: Arg<Tensor>)
        |ops, key, sample| random::gamma(ops, key, &a, sample);
    "beta": random_beta, random_beta_split(a: Arg<Tensor>, b: Arg<Tensor>)
        |ops, key, sample| random::beta(ops, key, &a, &b, sample);
    "chisquare": random_chisquare, random_chisquare_split(df: Arg<Tensor>)
        |ops, key, sample| random::chisquare(ops, key, &df, sample);
    "t": random_t, random_t_split(df: Arg<Tensor>)
        |ops, key, sample| random::t(ops, key, &df, sample);
    "rademacher": random_rademacher, random_rademacher_split()
        |ops, key, sample| random::rademacher(ops, key, sample);
    "bernoulli": random_bernoulli, random_bernoulli_split(p: Arg<Tensor>)
        |ops, key, sample| random::bernoulli(ops, key, &p, sample);
    "poisson": random_poisson, random_poisson_split(lam: Arg<Tensor>)
        |ops, key, sample| random::poisson(ops, key, &lam, sample);
    "binomial": random_binomial, random_binomial_split(n: Arg<Tensor>, p: Arg<Tensor>)
        |ops, key, sample| random::binomial(ops, key, &n, &p, sample);
    "dirichlet": random_dirichlet, random_dirichlet_split(alpha: Arg<Tensor>)
        |ops, key, sample| random::dirichlet(ops, key, &alpha, sample, None);
    "orthogonal": random_orthogonal, random_orthogonal_split(n: usize)
        |ops, key, sample| random::orthogonal(ops, key, n, sample);
    "ball": random_ball, random_ball_split(d: usize, p: Arg<Tensor>)
        |ops, key, sample| random::ball(ops, key, d, &p, sample);
    "categorical": random_categorical, random_categorical_split(logits: Arg<Tensor>, axis: AxisRef)
        |ops, key, sample| random::categorical(ops, key, &logits, &axis, sample);
}

/// The key for a seed.
#[pyfunction]
fn random_key(seed: OptionalArg<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let seed: Arg<Tensor> = Parse::parse("key", "the seed", seed)?;
        run(0, move |ops| random::key(ops, &seed)).map(PyTensor::new)
    })
}

/// Splits a key into several keys.
#[pyfunction]
fn random_split(key: OptionalArg<'_, '_>, parts: OptionalArg<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let key: Arg<Tensor> = Parse::parse("split", "the key", key)?;
        let parts: usize = Parse::parse("split", "parts", parts)?;
        let result = run(parts.saturating_mul(8), move |ops| {
            let key = key_of(ops, key)?;
            random::split(ops, &key, parts)
        });
        result.map(PyTensor::new)
    })
}

/// Keys derived from a key and integers.
#[pyfunction]
fn random_fold_in(key: OptionalArg<'_, '_>, data: OptionalArg<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let key: Arg<Tensor> = Parse::parse("fold_in", "the key", key)?;
        let data: Arg<Tensor> = Parse::parse("fold_in", "the data", data)?;
        let result = run(data.bytes(), move |ops| {
            let key = key_of(ops, key)?;
            random::fold_in(ops, &key, &data)
        });
        result.map(PyTensor::new)
    })
}

/// `tensor` in random order along an axis, and the next key.
#[pyfunction]
fn random_shuffle(
    key: OptionalArg<'_, '_>,
    tensor: OptionalArg<'_, '_>,
    axis: OptionalArg<'_, '_>,
    independent: OptionalArg<'_, '_>,
) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let key: Arg<Tensor> = Parse::parse("shuffle", "the key", key)?;
        let tensor: Arg<Tensor> = Parse::parse("shuffle", "the tensor", tensor)?;
        let axis: AxisRef = Parse::parse("shuffle", "axis", axis)?;
        let independent: bool = Parse::parse("shuffle", "independent", independent)?;
        let (value, next) = run(tensor.bytes(), move |ops| {
            let (key, tensor) = (key_of(ops, key)?, ops.operand(tensor)?);
            random::shuffle(ops, &key, &tensor, &axis, independent)
        })?;
        Ok((PyTensor::new(value), PyTensor::new(next)))
    })
}

/// The key, the tensor to choose from, and the options of the choice.
type Choosing = (Arg<Tensor>, Arg<Tensor>, Choice<Tensor>);

fn parse_choice(
    key: OptionalArg<'_, '_>,
    tensor: OptionalArg<'_, '_>,
    p: OptionalArg<'_, '_>,
    samples: OptionalArg<'_, '_>,
    axis: OptionalArg<'_, '_>,
    replace: OptionalArg<'_, '_>,
) -> Fallible<Choosing> {
    let key: Arg<Tensor> = Parse::parse("choice", "the key", key)?;
    let tensor: Arg<Tensor> = Parse::parse("choice", "the tensor", tensor)?;
    let p: Option<Arg<Tensor>> = Parse::parse("choice", "p", p)?;
    let samples: i64 = Parse::parse("choice", "samples", samples)?;
    let axis: Option<AxisRef> = Parse::parse("choice", "axis", axis)?;
    let replace: bool = Parse::parse("choice", "replace", replace)?;
    Ok((key, tensor, Choice { p, samples, axis, replace }))
}

/// Elements chosen from a tensor, and the next key.
#[pyfunction]
fn random_choice(
    key: OptionalArg<'_, '_>,
    tensor: OptionalArg<'_, '_>,
    p: OptionalArg<'_, '_>,
    samples: OptionalArg<'_, '_>,
    axis: OptionalArg<'_, '_>,
    replace: OptionalArg<'_, '_>,
) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let (key, tensor, choice) = parse_choice(key, tensor, p, samples, axis, replace)?;
        let (value, next) = run(tensor.bytes(), move |ops| {
            let (key, tensor) = (key_of(ops, key)?, ops.operand(tensor)?);
            random::choice(ops, &key, &tensor, &choice)
        })?;
        Ok((PyTensor::new(value), PyTensor::new(next)))
    })
}

/// Elements chosen from a tensor.
#[pyfunction]
fn random_choice_split(
    key: OptionalArg<'_, '_>,
    tensor: OptionalArg<'_, '_>,
    p: OptionalArg<'_, '_>,
    samples: OptionalArg<'_, '_>,
    axis: OptionalArg<'_, '_>,
    replace: OptionalArg<'_, '_>,
) -> Fallible<PyTensor> {
    guard(|| {
        let (key, tensor, choice) = parse_choice(key, tensor, p, samples, axis, replace)?;
        let value = run(tensor.bytes(), move |ops| {
            let (key, tensor) = (key_of(ops, key)?, ops.operand(tensor)?);
            random::choice_split(ops, &key, &tensor, &choice)
        })?;
        Ok(PyTensor::new(value))
    })
}

/// The parameters of a multivariate normal distribution, the sample shape, and the name of the vectors' axis.
struct Multivariate {
    key: Arg<Tensor>,
    mean: Arg<Tensor>,
    covariance: Arg<Tensor>,
    method: Method,
    sample: Sample,
    name: Option<Name>,
}

impl Multivariate {
    fn parse(
        key: OptionalArg<'_, '_>,
        mean: OptionalArg<'_, '_>,
        covariance: OptionalArg<'_, '_>,
        shape: OptionalArg<'_, '_>,
        dtype: OptionalArg<'_, '_>,
        names: OptionalArg<'_, '_>,
        method: OptionalArg<'_, '_>,
    ) -> Fallible<Multivariate> {
        let op = "multivariate_normal";
        let text: String = method.and_then(|method| method.extract().ok()).unwrap_or_default();
        let Some(&method) = Method::ALL.iter().find(|known| known.name() == text) else {
            let (option, required) = ("method", "\"cholesky\", \"svd\" or \"eigh\"".to_owned());
            let given = method.map_or(Ok("None".to_owned()), |method| convert::text(method))?;
            return Err(ErrorKind::OptionValue { op, option, given, required }.into());
        };
        let mut shape: Shape = Parse::parse(op, "the shape", shape)?;
        let names: Names = Parse::parse(op, "names", names)?;
        let mut name = None;
        if let Some(names) = names {
            // The names cover the whole result, whose last axis is not part of `shape`.
            let whole = Shape::from_axes(shape.entries().chain([(1, None)])).with_names(names)?;
            let mut entries: Vec<_> = whole.entries().collect();
            name = entries.pop().and_then(|(_, name)| name);
            shape = Shape::from_axes(entries);
        }
        Ok(Multivariate {
            key: Parse::parse(op, "the key", key)?,
            mean: Parse::parse(op, "the mean", mean)?,
            covariance: Parse::parse(op, "the covariance", covariance)?,
            method,
            sample: Sample { shape, dtype: Parse::parse(op, "the dtype", dtype)? },
            name,
        })
    }

    fn draw(self, ops: &mut Ops, key: &Tensor) -> defn_core::Result<Tensor> {
        let Multivariate { mean, covariance, method, sample, name, key: _ } = self;
        random::multivariate_normal(ops, key, &mean, &covariance, method, &sample, name)
    }
}

/// Normally distributed vectors, and the next key.
#[pyfunction]
#[pyo3(signature = (key, mean, covariance, shape, dtype = None, names = None, method = None))]
fn random_multivariate_normal(
    key: OptionalArg<'_, '_>,
    mean: OptionalArg<'_, '_>,
    covariance: OptionalArg<'_, '_>,
    shape: OptionalArg<'_, '_>,
    dtype: OptionalArg<'_, '_>,
    names: OptionalArg<'_, '_>,
    method: OptionalArg<'_, '_>,
) -> Fallible<(PyTensor, PyTensor)> {
    guard(|| {
        let drawn = Multivariate::parse(key, mean, covariance, shape, dtype, names, method)?;
        let (value, next) = run(size_of(&drawn.sample), move |ops| {
            let key = key_of(ops, drawn.key.clone())?;
            let (used, next) = random::fresh(ops, "multivariate_normal", &key)?;
            Ok((drawn.draw(ops, &used)?, next))
        })?;
        Ok((PyTensor::new(value), PyTensor::new(next)))
    })
}

/// Normally distributed vectors.
#[pyfunction]
#[pyo3(signature = (key, mean, covariance, shape, dtype = None, names = None, method = None))]
fn random_multivariate_normal_split(
    key: OptionalArg<'_, '_>,
    mean: OptionalArg<'_, '_>,
    covariance: OptionalArg<'_, '_>,
    shape: OptionalArg<'_, '_>,
    dtype: OptionalArg<'_, '_>,
    names: OptionalArg<'_, '_>,
    method: OptionalArg<'_, '_>,
) -> Fallible<PyTensor> {
    guard(|| {
        let drawn = Multivariate::parse(key, mean, covariance, shape, dtype, names, method)?;
        let value = run(size_of(&drawn.sample), move |ops| {
            let key = key_of(ops, drawn.key.clone())?;
            drawn.draw(ops, &key)
        })?;
        Ok(PyTensor::new(value))
    })
}

/// A named mathematical constant.
#[pyfunction]
#[pyo3(signature = (name, dtype, backend = None))]
fn constant(
    name: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    backend: OptionalArg<'_, '_>,
) -> Fallible<PyTensor> {
    guard(|| {
        let text: String = name.extract()?;
        let Some(&constant) = Constant::ALL.iter().find(|constant| constant.name() == text) else {
            return Err(convert::bad("constant", "the name", name, "that of a constant")?);
        };
        let backend = backends::parse(backend)?;
        let dtype: DType = crate::dtype::parse(dtype)?;
        run(0, move |ops| {
            ops.backend = backend;
            ops.scalar(constant.scalar(dtype)?)
        })
        .map(PyTensor::new)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_draws(module)?;
    module.add_function(wrap_pyfunction!(random_key, module)?)?;
    module.add_function(wrap_pyfunction!(random_split, module)?)?;
    module.add_function(wrap_pyfunction!(random_fold_in, module)?)?;
    module.add_function(wrap_pyfunction!(random_shuffle, module)?)?;
    module.add_function(wrap_pyfunction!(random_choice, module)?)?;
    module.add_function(wrap_pyfunction!(random_choice_split, module)?)?;
    module.add_function(wrap_pyfunction!(random_multivariate_normal, module)?)?;
    module.add_function(wrap_pyfunction!(random_multivariate_normal_split, module)?)?;
    module.add_function(wrap_pyfunction!(constant, module)?)
}
