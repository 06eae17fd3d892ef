//! Distributions whose samples are functions of uniform, normal and gamma-distributed numbers.

use defn_core::compose::random::{self, Sample};
use defn_core::{AxisRef, Location};

use super::Key;
use crate::expr::Operand;

draws! {
    /// Exponentially distributed random numbers with the mean `scale`.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: through the scale.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::exponential_split(&random::key(1)?, 2.0, &sample)?.item::<f32>()?;
    /// assert!(value >= 0.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    exponential, exponential_split(scale)
        |ops, key, sample| random::exponential(ops, key, &scale, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Random numbers of the Laplace distribution.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: through location and scale.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::laplace_split(&random::key(1)?, 0.0, 2.0, &sample)?.item::<f32>()?;
    /// assert!(value.is_finite());
    /// # Ok::<(), defn::Error>(())
    /// ```
    laplace, laplace_split(loc, scale)
        |ops, key, sample| random::laplace(ops, key, &loc, &scale, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Random numbers of the logistic distribution.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: through location and scale.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::logistic_split(&random::key(1)?, 0.0, 2.0, &sample)?.item::<f32>()?;
    /// assert!(value.is_finite());
    /// # Ok::<(), defn::Error>(())
    /// ```
    logistic, logistic_split(loc, scale)
        |ops, key, sample| random::logistic(ops, key, &loc, &scale, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Random numbers of the standard normal distribution within bounds; NaN where the lower is above the upper.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: to the bounds, at a fixed probability.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::truncated_normal_split(&random::key(1)?, -1.0, 2.0, &sample)?.item::<f32>()?;
    /// assert!((-1.0..=2.0).contains(&value));
    /// # Ok::<(), defn::Error>(())
    /// ```
    truncated_normal, truncated_normal_split(lower, upper)
        |ops, key, sample| random::truncated_normal(ops, key, &lower, &upper, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Gamma-distributed random numbers with the shape parameter `a` and the scale 1; NaN where `a` is not positive.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: to `a`, implicitly (Figurnov, Mohamed & Mnih, 2018); first and second derivatives.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::gamma_split(&random::key(1)?, 2.0, &sample)?.item::<f32>()?;
    /// assert!(value > 0.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    gamma, gamma_split(a)
        |ops, key, sample| random::gamma(ops, key, &a, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Beta-distributed random numbers; NaN where a parameter is not positive.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: to both parameters, as for [`gamma`].
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::beta_split(&random::key(1)?, 2.0, 3.0, &sample)?.item::<f32>()?;
    /// assert!((0.0..=1.0).contains(&value));
    /// # Ok::<(), defn::Error>(())
    /// ```
    beta, beta_split(a, b)
        |ops, key, sample| random::beta(ops, key, &a, &b, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Chi-square-distributed random numbers with `df` degrees of freedom; NaN where `df` is not positive.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: to `df`, as for [`gamma`].
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::chisquare_split(&random::key(1)?, 2.0, &sample)?.item::<f32>()?;
    /// assert!(value > 0.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    chisquare, chisquare_split(df)
        |ops, key, sample| random::chisquare(ops, key, &df, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Random numbers of Student's t distribution with `df` degrees of freedom; NaN where `df` is not positive.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: floats; where the sample names none, the parameters are promoted, integers to f32.
    /// - Gradient: to `df`, as for [`gamma`].
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::t_split(&random::key(1)?, 2.0, &sample)?.item::<f32>()?;
    /// assert!(value.is_finite());
    /// # Ok::<(), defn::Error>(())
    /// ```
    t, t_split(df)
        |ops, key, sample| random::t(ops, key, &df, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// -1 or 1 with equal probability.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: signed integers, floats and complex; s32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::rademacher_split(&random::key(1)?, &sample)?.item::<i32>()?;
    /// assert!(value.abs() == 1);
    /// # Ok::<(), defn::Error>(())
    /// ```
    rademacher, rademacher_split()
        |ops, key, sample| random::rademacher(ops, key, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// True with probability `p`.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: any; bool where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::bernoulli_split(&random::key(1)?, 1.0, &sample)?.item::<bool>()?;
    /// assert!(value);
    /// # Ok::<(), defn::Error>(())
    /// ```
    bernoulli, bernoulli_split(p)
        |ops, key, sample| random::bernoulli(ops, key, &p, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Poisson-distributed counts with the mean `lam`; for a mean that is negative or NaN they are NaN, or 0 as
    /// integers.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: integers and floats; s32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::poisson_split(&random::key(1)?, 3.0, &sample)?.item::<i32>()?;
    /// assert!(value >= 0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    poisson, poisson_split(lam)
        |ops, key, sample| random::poisson(ops, key, &lam, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Binomially distributed counts of `n` trials with the probability `p`; for invalid parameters they are NaN, or
    /// 0 as integers.
    ///
    /// - Shape: that of the sample, with its names.
    /// - Dtypes: integers and floats; s32 where the sample names none.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{random, random::Sample};
    /// let sample = Sample::default();
    /// let value = random::binomial_split(&random::key(1)?, 10, 0.5, &sample)?.item::<i32>()?;
    /// assert!((0..=10).contains(&value));
    /// # Ok::<(), defn::Error>(())
    /// ```
    binomial, binomial_split(n, p)
        |ops, key, sample| random::binomial(ops, key, &n, &p, sample);
    errors "; a dtype of the sample that it cannot have (`Option`); parameters that are complex (`DType`) or do not \
        broadcast to its shape (`Shape`).";

    /// Random vectors of the Dirichlet distribution with the concentrations `alpha`, whose last axis has the
    /// elements of a vector. NaN where a concentration is not positive.
    ///
    /// - Shape: that of the sample, with a last axis for the vectors.
    /// - Dtypes: floats; where the sample names none, that of the concentrations, f32 for integers.
    /// - Gradient: to the concentrations, as for [`gamma`].
    ///
    /// ```
    /// # use defn::{Tensor, random, random::Sample};
    /// let alpha = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3])?;
    /// let value = random::dirichlet_split(&random::key(1)?, &alpha, &Sample::default())?.to_vec::<f32>()?;
    /// assert!((value.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    /// # Ok::<(), defn::Error>(())
    /// ```
    dirichlet, dirichlet_split(alpha)
        |ops, key, sample| random::dirichlet(ops, key, &alpha, sample, None);
    errors "; a dtype of the sample that is not a float (`Option`); concentrations without an axis, or that do not \
        broadcast (`Shape`).";
}

/// Random positions along an axis of `logits`, with probabilities in proportion to their exponentials, and the next
/// key.
///
/// - Shape: that of the sample, then the other axes of the logits.
/// - Dtypes: integers; s32 where the sample names none.
/// - Gradient: none.
///
/// ```
/// # use defn::{Tensor, random, random::Sample};
/// let logits = Tensor::from_slice(&[0f32, f32::NEG_INFINITY], &[2])?;
/// let (value, next) = random::categorical(&random::key(1)?, &logits, -1, &Sample::default())?;
/// assert_eq!(value.item::<i32>()?, 0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32, and complex logits (`DType`); an axis that they do not have (`Axis`);
/// a dtype of the sample that is not an integer (`Option`).
#[track_caller]
pub fn categorical<K: Key>(
    key: &K,
    logits: impl Into<Operand>,
    axis: impl Into<AxisRef>,
    sample: impl Into<Sample>,
) -> K::Two {
    let (logits, axis, sample) = (logits.into(), axis.into(), sample.into());
    key.two(Location::caller(), |ops, key| {
        let (used, next) = random::fresh(ops, "categorical", key)?;
        Ok((random::categorical(ops, &used, &logits.0?, &axis, &sample)?, next))
    })
}

/// As [`categorical`], but drawn from `key` itself, and without the next key.
///
/// - Shape: that of the sample, then the other axes of the logits.
/// - Dtypes: integers; s32 where the sample names none.
/// - Gradient: none.
///
/// ```
/// # use defn::{Tensor, random};
/// let logits = Tensor::from_slice(&[f32::NEG_INFINITY, 0.0], &[2])?;
/// let value = random::categorical_split(&random::key(1)?, &logits, 0, [3])?;
/// assert_eq!(value.to_vec::<i32>()?, [1, 1, 1]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`categorical`].
#[track_caller]
pub fn categorical_split<K: Key>(
    key: &K,
    logits: impl Into<Operand>,
    axis: impl Into<AxisRef>,
    sample: impl Into<Sample>,
) -> K::One {
    let (logits, axis, sample) = (logits.into(), axis.into(), sample.into());
    key.one(Location::caller(), |ops, key| random::categorical(ops, key, &logits.0?, &axis, &sample))
}
