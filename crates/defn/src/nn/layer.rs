//! Rows of a table, and elements dropped at random.

use defn_core::builder::{BuildNn, Builder};
use defn_core::compose::random;
use defn_core::{Axes, Location};

use super::Values;
use crate::expr::Operand;

/// The rows of a table, along its first axis, at indices.
///
/// - Shape: that of the indices, then that of the table without its first axis; axis names are kept.
/// - Dtypes: any but complex for the table, whose integers become f32, and integers for the indices.
/// - Gradient: added to the table at the indices.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn;
/// let table = tensor![[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]?;
/// assert_eq!(nn::embedding(&table, tensor![2, 0]?)?.to_vec::<f32>()?, [4.0, 5.0, 0.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A complex table, and indices that are not integers (`DType`), a table without axes (`Axis`), and an index out of
/// range, also a negative one (`Bounds`); of expressions, such an index makes a row of NaN.
#[track_caller]
pub fn embedding<V: Values>(table: &V, indices: impl Into<Operand>) -> V::One {
    let indices = indices.into();
    table.one(Location::caller(), |ops, table| ops.embedding(table, indices.0?))
}

/// Elements that are 0 with the probability `rate`, and the next key. What is left is divided by `1 - rate`, so that
/// means stay. Along `shared_axes` all elements share one draw.
///
/// Srivastava, Hinton, Krizhevsky, Sutskever & Salakhutdinov, "Dropout: a simple way to prevent neural networks from
/// overfitting" (2014).
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any but complex; integers and bools become f32.
/// - Gradient: through the elements that are left.
///
/// ```
/// # use defn::prelude::*;
/// use defn::{Axes, nn, random};
/// let x = tensor![1.0, 1.0, 1.0]?;
/// let (dropped, next) = nn::dropout(&x, &random::key(1)?, 0.5, Axes::NONE)?;
/// assert!(dropped.to_vec::<f32>()?.iter().all(|x| *x == 0.0 || *x == 2.0));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A complex operand, and a key that is not one vector of two u32 (`DType`); a rate that is not from 0 to 1
/// (`Option`); axes that there are not (`Axis`).
#[track_caller]
pub fn dropout<V: Values>(x: &V, key: impl Into<Operand>, rate: f64, shared_axes: impl Into<Axes>) -> V::Two {
    let (key, shared_axes) = (key.into(), shared_axes.into());
    x.two(Location::caller(), |ops, x| {
        let key = ops.operand(key.0?)?;
        let (used, next) = random::fresh(ops, "dropout", &key)?;
        Ok((ops.dropout(x, used, rate, shared_axes)?, next))
    })
}

/// As [`dropout`], but drawn from `key` itself, and without the next key.
///
/// - Shape: unchanged; axis names are kept.
/// - Dtypes: any but complex; integers and bools become f32.
/// - Gradient: through the elements that are left.
///
/// ```
/// # use defn::prelude::*;
/// use defn::{nn, random};
/// let x = tensor![[1.0, 1.0], [1.0, 1.0]]?;
/// let rows = nn::dropout_split(&x, &random::key(1)?, 0.5, [1])?.to_vec::<f32>()?;
/// assert!(rows[0] == rows[1] && rows[2] == rows[3]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`dropout`].
#[track_caller]
pub fn dropout_split<V: Values>(
    x: &V,
    key: impl Into<Operand>,
    rate: f64,
    shared_axes: impl Into<Axes>,
) -> V::One {
    let (key, shared_axes) = (key.into(), shared_axes.into());
    x.one(Location::caller(), |ops, x| ops.dropout(x, key.0?, rate, shared_axes))
}
