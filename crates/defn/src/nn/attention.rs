//! Attention: means of values, weighted by how well queries and keys match.

use defn_core::Location;
use defn_core::builder::BuildNn;
use defn_core::compose::nn;

use super::Values;
use crate::expr::Operand;

/// What the scores of [`attention`] are, and which of them count.
///
/// ```
/// use defn::nn::Attention;
/// let options = Attention { causal: true, ..Attention::default() };
/// assert!(options.mask.is_none() && options.scale.is_none());
/// ```
pub type Attention = nn::Attention<Operand>;

/// Means of values, weighted by the softmax of the products of queries with keys: of each head
/// `softmax(scale * query * key + bias)`, over the keys that the mask selects.
///
/// A query that sees no key has zeros, without NaN in gradients. There may be fewer heads of keys and values than of
/// queries: each serves as many neighbouring heads of queries as there are for it. Vaswani et al., "Attention is all
/// you need" (2017), and Ainslie et al., "GQA: training generalized multi-query transformer models from multi-head
/// checkpoints" (2023).
///
/// - Shape: `[..., queries, heads, size]`, `[..., keys, heads, size]` and `[..., keys, heads, size of values]` to
///   `[..., queries, heads, size of values]` with the names of the query; mask and bias broadcast to
///   `[..., heads, queries, keys]`.
/// - Dtypes: any but complex; promoted, integers and bools to f32. Scores and weights are computed in f32, for f64 in
///   f64.
/// - Gradient: to all but the mask.
///
/// ```
/// # use defn::prelude::*;
/// use defn::nn::{self, Attention};
/// let x = Tensor::from_slice(&[1f32; 6], &[3, 1, 2])?;
/// let values = Tensor::from_slice(&[1f32, 2.0, 6.0], &[3, 1, 1])?;
/// let causal = Attention { causal: true, ..Attention::default() };
/// assert_eq!(nn::attention(&x, &x, &values, causal)?.to_vec::<f32>()?, [1.0, 1.5, 3.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Complex operands (`DType`), and sizes that do not fit (`Shape`).
#[track_caller]
pub fn attention<V: Values>(
    query: &V,
    key: impl Into<Operand>,
    value: impl Into<Operand>,
    options: Attention,
) -> V::One {
    let (key, value) = (key.into(), value.into());
    query.one(Location::caller(), |ops, query| {
        let mask = options.mask.map(|mask| mask.0).transpose()?;
        let bias = options.bias.map(|bias| bias.0).transpose()?;
        let options = nn::Attention { mask, bias, causal: options.causal, scale: options.scale };
        ops.attention(query, key.0?, value.0?, options)
    })
}
