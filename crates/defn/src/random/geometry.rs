//! Random orthogonal matrices, and points of balls.

use defn_core::Location;
use defn_core::compose::random::{self, Sample};

use super::Key;
use crate::expr::Operand;

/// Random orthogonal matrices of size `n`, for complex dtypes unitary ones, and the next key. They are uniformly
/// distributed: a product with any orthogonal matrix has the same distribution.
///
/// Stewart, "The efficient generation of random orthogonal matrices with an application to condition estimators"
/// (1980); Mezzadri, "How to generate random matrices from the classical compact groups" (2007).
///
/// - Shape: that of the sample, then `[n][n]`.
/// - Dtypes: floats and complex; f32 where the sample names none.
/// - Gradient: none.
///
/// ```
/// # use defn::{random, random::Sample};
/// let (q, next) = random::orthogonal(&random::key(1)?, 3, &Sample::default())?;
/// let columns = q.to_vec::<f32>()?;
/// let square: f32 = columns.chunks(3).map(|row| row[0] * row[0]).sum();
/// assert!((square - 1.0).abs() < 1e-5);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`); a dtype of the sample that is not a float or complex
/// (`Option`).
#[track_caller]
pub fn orthogonal<K: Key>(key: &K, n: usize, sample: impl Into<Sample>) -> K::Two {
    let sample = sample.into();
    key.two(Location::caller(), |ops, key| {
        let (used, next) = random::fresh(ops, "orthogonal", key)?;
        Ok((random::orthogonal(ops, &used, n, &sample)?, next))
    })
}

/// As [`orthogonal`], but drawn from `key` itself, and without the next key.
///
/// - Shape: that of the sample, then `[n][n]`.
/// - Dtypes: as for [`orthogonal`].
/// - Gradient: none.
///
/// ```
/// # use defn::random;
/// let q = random::orthogonal_split(&random::key(1)?, 3, [2])?;
/// assert_eq!(q.ty().to_string(), "f32[2][3][3]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`orthogonal`].
#[track_caller]
pub fn orthogonal_split<K: Key>(key: &K, n: usize, sample: impl Into<Sample>) -> K::One {
    let sample = sample.into();
    key.one(Location::caller(), |ops, key| random::orthogonal(ops, key, n, &sample))
}

/// Random points of the unit ball of the `p`-norm in `d` dimensions, uniformly distributed, and the next key. NaN
/// where `p` is not positive.
///
/// Barthe, Guedon, Mendelson & Naor, "A probabilistic approach to the geometry of the l_p^n-ball" (2005).
///
/// - Shape: that of the sample, to which `p` broadcasts, then `[d]`.
/// - Dtypes: floats; where the sample names none, that of `p`, f32 for a number.
/// - Gradient: to `p`, as for [`gamma`](super::gamma).
///
/// ```
/// # use defn::{random, random::Sample};
/// let (point, next) = random::ball(&random::key(1)?, 3, 2.0, &Sample::default())?;
/// let square: f32 = point.to_vec::<f32>()?.iter().map(|x| x * x).sum();
/// assert!(square <= 1.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`); a dtype of the sample that is not a float (`Option`); a `p`
/// that is complex (`DType`) or does not broadcast (`Shape`).
#[track_caller]
pub fn ball<K: Key>(key: &K, d: usize, p: impl Into<Operand>, sample: impl Into<Sample>) -> K::Two {
    let (p, sample) = (p.into(), sample.into());
    key.two(Location::caller(), |ops, key| {
        let (used, next) = random::fresh(ops, "ball", key)?;
        Ok((random::ball(ops, &used, d, &p.0?, &sample)?, next))
    })
}

/// As [`ball`], but drawn from `key` itself, and without the next key.
///
/// - Shape: that of the sample, to which `p` broadcasts, then `[d]`.
/// - Dtypes: as for [`ball`].
/// - Gradient: as for [`ball`].
///
/// ```
/// # use defn::random;
/// let points = random::ball_split(&random::key(1)?, 3, 1.0, [2])?;
/// assert_eq!(points.ty().to_string(), "f32[2][3]");
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`ball`].
#[track_caller]
pub fn ball_split<K: Key>(key: &K, d: usize, p: impl Into<Operand>, sample: impl Into<Sample>) -> K::One {
    let (p, sample) = (p.into(), sample.into());
    key.one(Location::caller(), |ops, key| random::ball(ops, key, d, &p.0?, &sample))
}
