//! Random numbers, and numbers with a name.
//!
//! A function that draws has two forms: one gives the sample and the next key, the other uses the key itself.

use defn_core::builder::{Arg, Builder, Ops};
use defn_core::compose::random::{self, Sample};
use defn_core::constants::Constant;
use defn_core::{DType, Shape, Tensor};
use pyo3::prelude::*;

use super::parse::Names;
use super::{Parse, run};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::place;
use crate::tensor::PyTensor;

type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

fn parse_sample(
    op: &'static str,
    shape: Given<'_, '_>,
    dtype: Given<'_, '_>,
    names: Given<'_, '_>,
) -> Fallible<Sample> {
    let mut shape: Shape = Parse::parse(op, "the shape", shape)?;
    let names: Names = Parse::parse(op, "names", names)?;
    if let Some(names) = names {
        shape = shape.with_names(names)?;
    }
    Ok(Sample { shape, dtype: Parse::parse(op, "the dtype", dtype)? })
}

/// The bytes that a sample will have; more than memory has, where they cannot be counted.
fn size_of(sample: &Sample) -> usize {
    sample.shape.checked_size().and_then(|size| size.checked_mul(4)).unwrap_or(usize::MAX)
}

fn key_of(ops: &mut Ops, key: Arg<Tensor>) -> defn_core::Result<Tensor> {
    ops.operand(key)
}

/// Declares both forms of functions that draw: `"name": with the next key, without (parameters)`.
macro_rules! draws {
    ($($op:literal: $next:ident, $split:ident($($arg:ident: $ty:ty),*)
        |$ops:ident, $key:ident, $sample:ident| $body:expr;)*) => {
        $(
            #[pyfunction]
            #[pyo3(signature = (key, $($arg,)* shape, dtype = None, names = None))]
            fn $next(
                key: Given<'_, '_>,
                $($arg: Given<'_, '_>,)*
                shape: Given<'_, '_>,
                dtype: Given<'_, '_>,
                names: Given<'_, '_>,
            ) -> Fallible<(PyTensor, PyTensor)> {
                guard(|| {
                    let key: Arg<Tensor> = Parse::parse($op, "the key", key)?;
                    $(let $arg: $ty = Parse::parse($op, stringify!($arg), $arg)?;)*
                    let $sample = &parse_sample($op, shape, dtype, names)?;
                    let (value, next) = run(size_of($sample), move |$ops| {
                        let key = key_of($ops, key)?;
                        let (used, next) = random::fresh($ops, $op, &key)?;
                        let $key = &used;
                        Ok(($body?, next))
                    })?;
                    Ok((PyTensor::new(value), PyTensor::new(next)))
                })
            }

            #[pyfunction]
            #[pyo3(signature = (key, $($arg,)* shape, dtype = None, names = None))]
            fn $split(
                key: Given<'_, '_>,
                $($arg: Given<'_, '_>,)*
                shape: Given<'_, '_>,
                dtype: Given<'_, '_>,
                names: Given<'_, '_>,
            ) -> Fallible<PyTensor> {
                guard(|| {
                    let key: Arg<Tensor> = Parse::parse($op, "the key", key)?;
                    $(let $arg: $ty = Parse::parse($op, stringify!($arg), $arg)?;)*
                    let $sample = &parse_sample($op, shape, dtype, names)?;
                    let value = run(size_of($sample), move |$ops| {
                        let $key = &key_of($ops, key)?;
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

draws! {
    "bits": random_bits, random_bits_split() |ops, key, sample| random::bits(ops, key, sample);
    "uniform": random_uniform, random_uniform_split(min: Arg<Tensor>, max: Arg<Tensor>)
        |ops, key, sample| random::uniform(ops, key, &min, &max, sample);
    "normal": random_normal, random_normal_split(mean: Arg<Tensor>, standard_deviation: Arg<Tensor>)
        |ops, key, sample| random::normal(ops, key, &mean, &standard_deviation, sample);
    "randint": random_randint, random_randint_split(min: Arg<Tensor>, max: Arg<Tensor>)
        |ops, key, sample| random::randint(ops, key, &min, &max, sample);
    "gumbel": random_gumbel, random_gumbel_split() |ops, key, sample| random::gumbel(ops, key, sample);
}

/// The key of a seed.
#[pyfunction]
fn random_key(seed: Given<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let seed: Arg<Tensor> = Parse::parse("key", "the seed", seed)?;
        run(0, move |ops| random::key(ops, &seed)).map(PyTensor::new)
    })
}

/// Several keys of one.
#[pyfunction]
fn random_split(key: Given<'_, '_>, parts: Given<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let key: Arg<Tensor> = Parse::parse("split", "the key", key)?;
        let parts: usize = Parse::parse("split", "parts", parts)?;
        let made = run(parts.saturating_mul(8), move |ops| {
            let key = key_of(ops, key)?;
            random::split(ops, &key, parts)
        });
        made.map(PyTensor::new)
    })
}

/// Keys made of a key and integers.
#[pyfunction]
fn random_fold_in(key: Given<'_, '_>, data: Given<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let key: Arg<Tensor> = Parse::parse("fold_in", "the key", key)?;
        let data: Arg<Tensor> = Parse::parse("fold_in", "the data", data)?;
        let made = run(data.bytes(), move |ops| {
            let key = key_of(ops, key)?;
            random::fold_in(ops, &key, &data)
        });
        made.map(PyTensor::new)
    })
}

/// A number with a name.
#[pyfunction]
#[pyo3(signature = (name, dtype, backend = None))]
fn constant(name: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>, backend: Given<'_, '_>) -> Fallible<PyTensor> {
    guard(|| {
        let text: String = name.extract()?;
        let Some(&constant) = Constant::ALL.iter().find(|constant| constant.name() == text) else {
            return Err(convert::bad("constant", "the name", name, "that of a constant")?);
        };
        place::parse(backend)?;
        let dtype: DType = crate::dtype::parse(dtype)?;
        run(0, move |ops| ops.scalar(constant.scalar(dtype)?)).map(PyTensor::new)
    })
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_draws(module)?;
    module.add_function(wrap_pyfunction!(random_key, module)?)?;
    module.add_function(wrap_pyfunction!(random_split, module)?)?;
    module.add_function(wrap_pyfunction!(random_fold_in, module)?)?;
    module.add_function(wrap_pyfunction!(constant, module)?)
}
