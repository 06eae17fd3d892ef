//! Random numbers from keys, of expressions and of tensors.
//!
//! A key is a vector of two u32. A function that draws returns its sample and the next key. Its other form, with
//! `_split` in its name, draws from the key itself and returns only the sample. The same key yields the same sample.
//! Gradients flow to the parameters of the distributions in this list: `exponential`, `laplace`, `logistic`,
//! `truncated_normal`, `gamma`, `beta`, `chisquare`, `t`, `dirichlet` and `ball`.
//!
//! Keys are tensors, whose result is a `Result`, or expressions, whose result is an expression: see [`Key`].
//!
//! ```
//! use defn::{Expr, random};
//! use defn::random::Sample;
//!
//! let key = random::key(1701)?;
//! let (sample, key) = random::randint(&key, 1, 100, [3])?;
//! assert_eq!(sample.to_vec::<i32>()?.len(), 3);
//! let noise = defn::jit(|key: Expr| random::uniform_split(&key, 0.0, 1.0, &Sample::default()));
//! assert!((0.0..1.0).contains(&noise.call(key)?.item::<f32>()?));
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core as core;
use defn_core::builder::{Arg, Builder, Ops};
use defn_core::compose::random::{self, Choice};
pub use defn_core::compose::random::{Method, Sample};
use defn_core::{AxisRef, Location, Number, Result};

use crate::expr::Operand;
#[cfg(feature = "rand")]
pub use crate::neighbours::rand::key_from_rng;
use crate::ops::eager;
use crate::{Expr, Tensor};

/// The values that a key may be: an expression, or a tensor.
///
/// ```
/// use defn::prelude::*;
/// use defn::random::{self, Key, Sample};
///
/// fn noise<K: Key>(key: &K) -> K::One {
///     random::normal_split(key, 0.0, 1.0, &Sample::default())
/// }
/// let key = random::key(1)?;
/// let compiled = jit(|key: Expr| noise(&key)).call(key.clone())?;
/// assert_eq!(noise(&key)?.item::<f32>()?, compiled.item::<f32>()?);
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Key: sealed::Sealed {
    /// One result: an expression, which keeps an error, or a `Result` of a tensor.
    type One;
    /// A sample and the next key.
    type Two;

    #[doc(hidden)]
    fn one(
        &self,
        at: Location,
        draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<core::Tensor>,
    ) -> Self::One;

    #[doc(hidden)]
    fn two(
        &self,
        at: Location,
        draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<(core::Tensor, core::Tensor)>,
    ) -> Self::Two;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Expr {}
    impl Sealed for crate::Tensor {}
}

impl Key for Expr {
    type One = Expr;
    type Two = (Expr, Expr);

    fn one(&self, at: Location, draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<core::Tensor>) -> Expr {
        Expr(self.record(at, draw))
    }

    fn two(
        &self,
        at: Location,
        draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<(core::Tensor, core::Tensor)>,
    ) -> (Expr, Expr) {
        Expr::both(self.record(at, draw))
    }
}

impl Key for Tensor {
    type One = Result<Tensor>;
    type Two = Result<(Tensor, Tensor)>;

    fn one(
        &self,
        at: Location,
        draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<core::Tensor>,
    ) -> Result<Tensor> {
        eager(at, |ops| draw(ops, &self.0)).map(Tensor)
    }

    fn two(
        &self,
        at: Location,
        draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<(core::Tensor, core::Tensor)>,
    ) -> Result<(Tensor, Tensor)> {
        eager(at, |ops| draw(ops, &self.0)).map(|(sample, next)| (Tensor(sample), Tensor(next)))
    }
}

/// The key of a seed: its upper and its lower 32 bits. A negative seed is read as two's complement.
///
/// - Shape: `[2]`.
/// - Dtypes: u32; the seed is an integer of at most 64 bits.
///
/// ```
/// # use defn::random;
/// let key = random::key(999_999_999_999i64)?;
/// assert_eq!(key.to_vec::<u32>()?, [232, 3_567_587_327]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another number (`DType`).
#[track_caller]
pub fn key(seed: impl Into<Number>) -> Result<Tensor> {
    eager(Location::caller(), |ops| random::key(ops, &Arg::Number(seed.into()))).map(Tensor)
}

/// The key of a seed that is a scalar tensor or expression.
///
/// - Shape: `[2]`.
/// - Dtypes: u32; the seed is u64 or s64.
///
/// ```
/// # use defn::{Tensor, random};
/// let seed = Tensor::from_slice(&[5u64], &[])?;
/// assert_eq!(random::key_of(&seed)?.to_vec::<u32>()?, [0, 5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another dtype, and a seed that is not a scalar (`DType`).
#[track_caller]
pub fn key_of<K: Key>(seed: &K) -> K::One {
    seed.one(Location::caller(), |ops, seed| random::key(ops, &Arg::Value(seed.clone())))
}

/// `parts` new keys from one key, one in each row.
///
/// - Shape: `[parts][2]`.
/// - Dtypes: u32.
///
/// ```
/// # use defn::random;
/// let keys = random::split(&random::key(1701)?, 2)?;
/// assert_eq!(keys.to_vec::<u32>()?, [56197195, 1801093307, 961309823, 1704866707]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`).
#[track_caller]
pub fn split<K: Key>(key: &K, parts: usize) -> K::One {
    key.one(Location::caller(), |ops, key| random::split(ops, key, parts))
}

/// One key from `key` for each integer of `data`, such as the number of a step.
///
/// - Shape: that of the data with a new last axis of size 2; names are dropped.
/// - Dtypes: u32; the data are integers.
///
/// ```
/// # use defn::random;
/// let key = random::fold_in(&random::key(42)?, 99)?;
/// assert_eq!(key.to_vec::<u32>()?, [2015327502, 1351855566]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`), and data that are not integers (`DType`).
#[track_caller]
pub fn fold_in<K: Key>(key: &K, data: impl Into<Operand>) -> K::One {
    let data = data.into();
    key.one(Location::caller(), |ops, key| random::fold_in(ops, key, &data.0?))
}

/// Both forms of functions that draw.
macro_rules! draws {
    ($($(#[$doc:meta])* $name:ident, $split:ident($($arg:ident),*) |$ops:ident, $key:ident, $sample:ident| $body:expr;
        errors $errors:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// This function returns the sample and the next key.
        ///
        /// # Errors
        #[doc = concat!("A key that is not one vector of two u32 (`DType`)", $errors)]
        #[track_caller]
        pub fn $name<K: Key>(key: &K, $($arg: impl Into<Operand>,)* $sample: impl Into<Sample>) -> K::Two {
            $(let $arg = $arg.into();)*
            let $sample = &$sample.into();
            key.two(Location::caller(), |$ops, key| {
                $(let $arg = $arg.0?;)*
                let (used, next) = random::fresh($ops, stringify!($name), key)?;
                let $key = &used;
                Ok(($body?, next))
            })
        }

        $(#[$doc])*
        ///
        /// This function draws from the key itself and returns only the sample.
        ///
        /// # Errors
        #[doc = concat!("A key that is not one vector of two u32 (`DType`)", $errors)]
        #[track_caller]
        pub fn $split<K: Key>(key: &K, $($arg: impl Into<Operand>,)* $sample: impl Into<Sample>) -> K::One {
            $(let $arg = $arg.into();)*
            let $sample = &$sample.into();
            key.one(Location::caller(), |$ops, $key| {
                $(let $arg = $arg.0?;)*
                $body
            })
        }
    )*};
}

mod families;
mod geometry;

pub use geometry::{ball, ball_split, orthogonal, orthogonal_split};

pub use families::{
    bernoulli, bernoulli_split, beta, beta_split, binomial, binomial_split, categorical, categorical_split,
    chisquare, chisquare_split, dirichlet, dirichlet_split, exponential, exponential_split, gamma,
    gamma_split, laplace, laplace_split, logistic, logistic_split, poisson, poisson_split, rademacher,
    rademacher_split, t, t_split, truncated_normal, truncated_normal_split,
};

draws! {
    /// Random bits.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: unsigned integers; u32 where the sample names none.
    ///
    /// ```
    /// # use defn::{DType, Shape, random, random::Sample};
    /// let sample = Sample::of(Shape::new(&[2])).with_dtype(DType::U8);
    /// let (value, key) = random::bits(&random::key(42)?, &sample)?;
    /// assert_eq!(value.to_vec::<u8>()?, [10, 21]);
    /// let value = random::bits_split(&random::key(1701)?, [4])?;
    /// assert_eq!(value.to_vec::<u32>()?, [56197195, 1801093307, 961309823, 1704866707]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    bits, bits_split() |ops, key, sample| random::bits(ops, key, sample);
    errors "; a dtype of the sample that is not unsigned (`Option`).";

    /// Uniform random numbers from the half-open interval `[min, max)`. Of complex numbers both parts are drawn from
    /// it.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats and complex; where the sample names none, the bounds are promoted, integers to f32.
    ///
    /// ```
    /// # use defn::{DType, random, random::Sample};
    /// let sample = Sample::default().with_dtype(DType::F64);
    /// let value = random::uniform_split(&random::key(44)?, 0, 100, &sample)?;
    /// assert_eq!(value.item::<f64>()?, 49.70372348385783);
    /// let (value, next) = random::uniform(&random::key(44)?, -1.0, 1.0, &sample)?;
    /// assert!((-1.0..1.0).contains(&value.item::<f64>()?));
    /// # Ok::<(), defn::Error>(())
    /// ```
    uniform, uniform_split(min, max) |ops, key, sample| random::uniform(ops, key, &min, &max, sample);
    errors "; a dtype of the sample that is not a float or complex (`Option`); bounds that do not broadcast to its \
        shape (`Shape`).";

    /// Normally distributed random numbers. Of complex numbers both parts are drawn.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats and complex; where the sample names none, the parameters are promoted, integers to f32.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let (value, next) = random::normal(&random::key(42)?, 0.0, 1.0, &Sample::default())?;
    /// assert!((value.item::<f32>()? - 1.36947).abs() < 1e-5);
    /// let value = random::normal_split(&random::key(44)?, 0, 100, &Sample::default())?;
    /// assert!((value.item::<f32>()? + 234.924).abs() < 1e-3);
    /// # Ok::<(), defn::Error>(())
    /// ```
    normal, normal_split(mean, standard_deviation)
        |ops, key, sample| random::normal(ops, key, &mean, &standard_deviation, sample);
    errors "; a dtype of the sample that is not a float or complex (`Option`); parameters that do not broadcast to \
        its shape (`Shape`).";

    /// Random integers from the half-open interval `[min, max)`. If tensors as bounds have no integer between them,
    /// the value is `min`.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: integers; where the sample names none, the bounds are promoted, plain numbers alone to s32.
    ///
    /// ```
    /// # use defn::{DType, Shape, Tensor, random, random::Sample};
    /// let sample = Sample::of(Shape::new(&[3, 2])).with_dtype(DType::U32);
    /// let (value, next) = random::randint(&random::key(1701)?, 1, 100, &sample)?;
    /// assert_eq!(value.to_vec::<u32>()?, [9, 20, 19, 6, 71, 15]);
    /// let sample = Sample::default().with_dtype(DType::U8);
    /// assert_eq!(random::randint_split(&random::key(44)?, 0, 100, &sample)?.item::<u8>()?, 12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    randint, randint_split(min, max) |ops, key, sample| random::randint(ops, key, &min, &max, sample);
    errors "; bounds that are not integers (`DType`, `Option`); plain bounds with no integer between them, and a \
        dtype of the sample that is not an integer (`Option`); bounds that do not broadcast to its shape \
        (`Shape`).";

    /// Random numbers from the standard Gumbel distribution.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; f32 where the sample names none.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let (value, next) = random::gumbel(&random::key(1)?, &Sample::default())?;
    /// assert!((value.item::<f32>()? + 0.72946).abs() < 1e-5);
    /// let value = random::gumbel_split(&random::key(1)?, &Sample::default())?;
    /// assert!(value.item::<f32>()?.is_finite());
    /// # Ok::<(), defn::Error>(())
    /// ```
    gumbel, gumbel_split() |ops, key, sample| random::gumbel(ops, key, sample);
    errors "; a dtype of the sample that is not a float (`Option`).";
}

/// Normally distributed random vectors with a mean and a covariance, and the next key. `method` is the factorization
/// that computes a root of the covariance.
///
/// - Shape: that of the sample, with a last axis for the vectors. The mean is `[d]`, the covariance `[d][d]`.
/// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
///
/// ```
/// # use defn::{Tensor, random, random::Method};
/// let mean = Tensor::from_slice(&[0f32, 1.0], &[2])?;
/// let covariance = Tensor::from_slice(&[2f32, 1.0, 1.0, 2.0], &[2, 2])?;
/// let key = random::key(12)?;
/// let (x, next) = random::multivariate_normal(&key, &mean, &covariance, Method::Cholesky, [3])?;
/// assert_eq!(x.ty().to_string(), "f32[3][2]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`); a dtype of the sample that is not a float (`Option`); a mean and
/// a covariance that do not fit each other (`Shape`).
#[track_caller]
pub fn multivariate_normal<K: Key>(
    key: &K,
    mean: impl Into<Operand>,
    covariance: impl Into<Operand>,
    method: Method,
    sample: impl Into<Sample>,
) -> K::Two {
    let (mean, covariance, sample) = (mean.into(), covariance.into(), sample.into());
    key.two(Location::caller(), |ops, key| {
        let (mean, covariance) = (mean.0?, covariance.0?);
        let (used, next) = random::fresh(ops, "multivariate_normal", key)?;
        let value = random::multivariate_normal(ops, &used, &mean, &covariance, method, &sample, None)?;
        Ok((value, next))
    })
}

/// As [`multivariate_normal`], but drawn from `key` itself, and without the next key.
///
/// - Shape: that of the sample, with a last axis for the vectors.
/// - Dtypes: as for [`multivariate_normal`].
///
/// ```
/// # use defn::{Tensor, random, random::{Method, Sample}};
/// let mean = Tensor::from_slice(&[0f32, 1.0], &[2])?;
/// let covariance = Tensor::from_slice(&[2f32, 1.0, 1.0, 2.0], &[2, 2])?;
/// let key = random::key(12)?;
/// let sample = Sample::default();
/// let x = random::multivariate_normal_split(&key, &mean, &covariance, Method::Cholesky, &sample)?;
/// assert_eq!(x.ty().to_string(), "f32[2]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`multivariate_normal`].
#[track_caller]
pub fn multivariate_normal_split<K: Key>(
    key: &K,
    mean: impl Into<Operand>,
    covariance: impl Into<Operand>,
    method: Method,
    sample: impl Into<Sample>,
) -> K::One {
    let (mean, covariance, sample) = (mean.into(), covariance.into(), sample.into());
    key.one(Location::caller(), |ops, key| {
        random::multivariate_normal(ops, key, &mean.0?, &covariance.0?, method, &sample, None)
    })
}

/// The elements along an axis in random order, and the next key. All positions along the other axes share one order;
/// with `independent` each has its own.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any; unchanged.
///
/// ```
/// # use defn::{DType, Tensor, random};
/// let x = Tensor::iota(&[3, 2], DType::S32, Some(0.into()))?;
/// let (x, next) = random::shuffle(&random::key(42)?, &x, 0, false)?;
/// assert_eq!(x.to_vec::<i32>()?, [2, 2, 0, 0, 1, 1]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`), and an axis that the tensor does not have (`Axis`).
#[track_caller]
pub fn shuffle<K: Key>(
    key: &K,
    tensor: impl Into<Operand>,
    axis: impl Into<AxisRef>,
    independent: bool,
) -> K::Two {
    let (tensor, axis) = (tensor.into(), axis.into());
    key.two(Location::caller(), |ops, key| {
        let tensor = ops.operand(tensor.0?)?;
        random::shuffle(ops, key, &tensor, &axis, independent)
    })
}

/// As [`shuffle`], but drawn from `key` itself, and without the next key.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any; unchanged.
///
/// ```
/// # use defn::{DType, Tensor, random};
/// let x = Tensor::iota(&[3], DType::S32, None)?;
/// let x = random::shuffle_split(&random::key(42)?, &x, 0, false)?;
/// assert_eq!(x.to_vec::<i32>()?, [2, 0, 1]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`), and an axis that the tensor does not have (`Axis`).
#[track_caller]
pub fn shuffle_split<K: Key>(
    key: &K,
    tensor: impl Into<Operand>,
    axis: impl Into<AxisRef>,
    independent: bool,
) -> K::One {
    let (tensor, axis) = (tensor.into(), axis.into());
    key.one(Location::caller(), |ops, key| {
        let tensor = ops.operand(tensor.0?)?;
        Ok(random::shuffle(ops, key, &tensor, &axis, independent)?.0)
    })
}

/// Random elements along an axis, or of the flattened tensor, and the next key.
///
/// `p` holds the probabilities, which need not add up to 1; without it all elements are equally likely. Without
/// `replace` no element is chosen twice.
///
/// - Shape: the axis has size `samples`; without an axis, `[samples]`.
/// - Dtypes: any; unchanged. The probabilities are floats.
///
/// ```
/// # use defn::{DType, Tensor, random};
/// let x = Tensor::iota(&[4, 3], DType::S32, None)?;
/// let (rows, next) = random::choice(&random::key(1)?, &x, None, 2, Some(0.into()), true)?;
/// assert_eq!(rows.to_vec::<i32>()?, [9, 10, 11, 3, 4, 5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`); samples below 1, or above the number of elements without
/// `replace` (`Option`); nothing to choose from, and a `p` that is not a vector of floats with one for each element
/// (`Shape`); an axis that the tensor does not have (`Axis`).
#[track_caller]
pub fn choice<K: Key>(
    key: &K,
    tensor: impl Into<Operand>,
    p: Option<Operand>,
    samples: i64,
    axis: Option<AxisRef>,
    replace: bool,
) -> K::Two {
    let tensor = tensor.into();
    key.two(Location::caller(), |ops, key| {
        let tensor = ops.operand(tensor.0?)?;
        let p = p.map(|p| p.0).transpose()?;
        random::choice(ops, key, &tensor, &Choice { p, samples, axis, replace })
    })
}

/// As [`choice`], but drawn from `key` itself, and without the next key.
///
/// - Shape: the axis has size `samples`; without an axis, `[samples]`.
/// - Dtypes: any; unchanged. The probabilities are floats.
///
/// ```
/// # use defn::{Tensor, random};
/// let x = Tensor::from_slice(&[10, 20, 30], &[3])?;
/// let p = Tensor::from_slice(&[0f32, 0.0, 1.0], &[3])?;
/// let chosen = random::choice_split(&random::key(1)?, &x, Some((&p).into()), 2, None, true)?;
/// assert_eq!(chosen.to_vec::<i32>()?, [30, 30]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`choice`].
#[track_caller]
pub fn choice_split<K: Key>(
    key: &K,
    tensor: impl Into<Operand>,
    p: Option<Operand>,
    samples: i64,
    axis: Option<AxisRef>,
    replace: bool,
) -> K::One {
    let tensor = tensor.into();
    key.one(Location::caller(), |ops, key| {
        let tensor = ops.operand(tensor.0?)?;
        let p = p.map(|p| p.0).transpose()?;
        random::choice_split(ops, key, &tensor, &Choice { p, samples, axis, replace })
    })
}
