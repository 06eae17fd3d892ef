//! Random numbers from keys, of expressions and of tensors.
//!
//! A key is a vector of two u32. A function that draws gives the next key beside its sample; its other form, with
//! `_split` in its name, uses the key itself and gives the sample only. No gradient flows.
//!
//! ```
//! use defn::{Expr, Shape, random};
//! use defn::random::Sample;
//!
//! let key = random::key(1701)?;
//! let (sample, key) = random::randint(&key, 1, 100, &Sample::of(Shape::new(&[3])))?;
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

use crate::expr::{Operand, record};
use crate::ops::eager;
use crate::{Expr, Tensor};

/// What a key may be: an expression, or a tensor.
pub trait Key: sealed::Sealed {
    /// One result: an expression keeps its error, a tensor gives it.
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
        match &self.0 {
            Ok(key) => Expr::make(at, |ops| draw(ops, key)),
            Err(error) => Expr(Err(error.clone())),
        }
    }

    fn two(
        &self,
        at: Location,
        draw: impl FnOnce(&mut Ops, &core::Tensor) -> Result<(core::Tensor, core::Tensor)>,
    ) -> (Expr, Expr) {
        let drawn = match &self.0 {
            Ok(key) => record(at, |ops| draw(ops, key)),
            Err(error) => Err(error.clone()),
        };
        match drawn {
            Ok((sample, next)) => (Expr(Ok(sample)), Expr(Ok(next))),
            Err(error) => (Expr(Err(error.clone())), Expr(Err(error))),
        }
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

/// The key of a seed, an integer of 64 bits.
///
/// # Errors
/// Another number.
#[track_caller]
pub fn key(seed: impl Into<Number>) -> Result<Tensor> {
    eager(Location::caller(), |ops| random::key(ops, &Arg::Number(seed.into()))).map(Tensor)
}

/// The key of a seed, a scalar of u64 or s64.
#[track_caller]
pub fn key_of<K: Key>(seed: &K) -> K::One {
    seed.one(Location::caller(), |ops, seed| random::key(ops, &Arg::Value(seed.clone())))
}

/// `parts` new keys in place of one, side by side on axis 0.
#[track_caller]
pub fn split<K: Key>(key: &K, parts: usize) -> K::One {
    key.one(Location::caller(), |ops, key| random::split(ops, key, parts))
}

/// New keys of a key and integers, one for each; their words are on a new last axis.
#[track_caller]
pub fn fold_in<K: Key>(key: &K, data: impl Into<Operand>) -> K::One {
    let data = data.into();
    key.one(Location::caller(), |ops, key| random::fold_in(ops, key, &data.0?))
}

/// Both forms of functions that draw.
macro_rules! draws {
    ($($(#[$doc:meta])* $name:ident, $split:ident($($arg:ident),*) |$ops:ident, $key:ident, $sample:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// Gives the sample and the next key.
        #[track_caller]
        pub fn $name<K: Key>(key: &K, $($arg: impl Into<Operand>,)* $sample: &Sample) -> K::Two {
            $(let $arg = $arg.into();)*
            key.two(Location::caller(), |$ops, key| {
                $(let $arg = $arg.0?;)*
                let (used, next) = random::fresh($ops, stringify!($name), key)?;
                let $key = &used;
                Ok(($body?, next))
            })
        }

        $(#[$doc])*
        ///
        /// Uses the key itself, and gives the sample only.
        #[track_caller]
        pub fn $split<K: Key>(key: &K, $($arg: impl Into<Operand>,)* $sample: &Sample) -> K::One {
            $(let $arg = $arg.into();)*
            key.one(Location::caller(), |$ops, $key| {
                $(let $arg = $arg.0?;)*
                $body
            })
        }
    )*};
}

draws! {
    /// Random bits as unsigned integers, u32 where the sample says no type.
    bits, bits_split() |ops, key, sample| random::bits(ops, key, sample);
    /// Numbers of the half-open interval between bounds, evenly distributed.
    uniform, uniform_split(min, max) |ops, key, sample| random::uniform(ops, key, &min, &max, sample);
    /// Normally distributed numbers.
    normal, normal_split(mean, standard_deviation)
        |ops, key, sample| random::normal(ops, key, &mean, &standard_deviation, sample);
    /// Integers of the half-open interval between bounds.
    randint, randint_split(min, max) |ops, key, sample| random::randint(ops, key, &min, &max, sample);
    /// Numbers of the standard Gumbel distribution.
    gumbel, gumbel_split() |ops, key, sample| random::gumbel(ops, key, sample);
}

/// Normally distributed vectors with a mean and a covariance, and the next key. The sample's shape is that of the
/// batch, the vectors' axis comes last.
#[track_caller]
pub fn multivariate_normal<K: Key>(
    key: &K,
    mean: impl Into<Operand>,
    covariance: impl Into<Operand>,
    method: Method,
    sample: &Sample,
) -> K::Two {
    let (mean, covariance) = (mean.into(), covariance.into());
    key.two(Location::caller(), |ops, key| {
        let (mean, covariance) = (mean.0?, covariance.0?);
        let (used, next) = random::fresh(ops, "multivariate_normal", key)?;
        let value = random::multivariate_normal(ops, &used, &mean, &covariance, method, sample, None)?;
        Ok((value, next))
    })
}

/// As [`multivariate_normal`], of the key itself and without the next one.
#[track_caller]
pub fn multivariate_normal_split<K: Key>(
    key: &K,
    mean: impl Into<Operand>,
    covariance: impl Into<Operand>,
    method: Method,
    sample: &Sample,
) -> K::One {
    let (mean, covariance) = (mean.into(), covariance.into());
    key.one(Location::caller(), |ops, key| {
        random::multivariate_normal(ops, key, &mean.0?, &covariance.0?, method, sample, None)
    })
}

/// The elements along an axis in random order, and the next key. The order is one for all places along the other
/// axes, or `independent` for each.
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

/// As [`shuffle`], of the key itself and without the next one.
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

/// Elements chosen along an axis, or of the flat tensor, and the next key; `p` holds their probabilities.
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

/// As [`choice`], of the key itself and without the next one.
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
