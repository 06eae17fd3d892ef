//! Attention: means of values, weighted by how well queries and keys match.

use crate::builder::{BuildCreate, BuildElementwise, BuildLinalg, BuildShape, Builder};
use crate::compose::nn::softmax;
use crate::compose::working_dtype;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::{index_dtype, require_real};
use crate::shape::{Axes, AxisRef, Shape, TensorType};

/// What the scores of attention are, and which of them count.
///
/// ```
/// use defn_core::compose::nn::Attention;
/// let options: Attention<()> = Attention::default();
/// assert!(!options.causal && options.scale.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Attention<V> {
    /// Bools that select keys: they broadcast to `[..., heads, queries, keys]`.
    pub mask: Option<V>,
    /// Added to the scores; it broadcasts as the mask does.
    pub bias: Option<V>,
    /// Whether a query sees no keys after its own place. The last query is at the place of the last key.
    pub causal: bool,
    /// The factor of the products; by default 1 over the square root of the size of a head.
    pub scale: Option<f64>,
}

impl<V> Default for Attention<V> {
    fn default() -> Attention<V> {
        Attention { mask: None, bias: None, causal: false, scale: None }
    }
}

/// The sizes of the operands.
struct Sizes {
    batch: Vec<usize>,
    queries: usize,
    keys: usize,
    /// Heads of keys and values, each for a group of queries' heads.
    heads: usize,
    group: usize,
    size: usize,
    of_values: usize,
}

fn sizes(query: &TensorType, key: &TensorType, value: &TensorType) -> Result<Sizes> {
    let fault = |required| {
        let (query, key, value) = (query.clone(), key.clone(), value.clone());
        Err(ErrorKind::Attention { query, key, value, required }.into())
    };
    let [q, k, v] = [query, key, value].map(|ty| ty.shape.sizes());
    let (&[ref batch @ .., queries, all, size], &[ref of_key @ .., keys, heads, of_keys]) = (q, k) else {
        return fault("all must have axes of the length, of the heads and of their size");
    };
    let &[ref of_value @ .., values, value_heads, of_values] = v else {
        return fault("all must have axes of the length, of the heads and of their size");
    };
    if batch != of_key || batch != of_value {
        return fault("the axes before the length must be equal");
    }
    if size != of_keys {
        return fault("the heads of query and key must have the same size");
    }
    if (keys, heads) != (values, value_heads) {
        return fault("key and value must have the same length and number of heads");
    }
    if heads == 0 || all % heads != 0 {
        return fault("the number of the query's heads must be a multiple of that of the key");
    }
    Ok(Sizes { batch: batch.to_vec(), queries, keys, heads, group: all / heads, size, of_values })
}

/// See [`BuildNn::attention`](crate::builder::BuildNn::attention).
///
/// # Errors
/// As the method.
pub fn attention<B: Builder>(
    b: &mut B,
    query: &B::V,
    key: &B::V,
    value: &B::V,
    options: &Attention<&B::V>,
) -> Result<B::V> {
    let op = "attention";
    let types = [query, key, value].map(|operand| b.ty(operand));
    for ty in &types {
        require_real(op, ty)?;
    }
    let [of_query, of_key, of_value] = &types;
    let sizes = sizes(of_query, of_key, of_value)?;
    let dtype = of_query.dtype.merge(of_key.dtype).merge(of_value.dtype).to_float();
    let working = working_dtype(dtype);
    let rank = sizes.batch.len();
    let shaped = |rest: &[usize]| Shape::new(&[&sizes.batch, rest].concat());

    // `[..., heads, queries * group, size]`: the queries of a group meet the same keys in one product.
    let (rows, columns) = (sizes.queries * sizes.group, sizes.keys);
    let query = b.as_type(query, working)?;
    let query = b.reshape_to(query, shaped(&[sizes.queries, sizes.heads, sizes.group, sizes.size]))?;
    let query = b.transpose(query, order(rank, [1, 2, 0, 3]))?;
    let query = b.reshape_to(query, shaped(&[sizes.heads, rows, sizes.size]))?;
    let by_head = |b: &mut B, x: &B::V, ty: &TensorType| -> Result<B::V> {
        let x = b.reshape_to(x, ty.shape.without_names())?;
        let x = b.as_type(x, working)?;
        b.transpose(x, order(rank, [1, 0, 2]))
    };
    let (key, value) = (by_head(b, key, of_key)?, by_head(b, value, of_value)?);
    let batch = (0..=rank as i64).collect::<Vec<_>>();
    let size_axis = rank as i64 + 2;
    let scores = b.dot_general(query, size_axis, batch.as_slice(), key, size_axis, batch.as_slice())?;
    let scale = options.scale.unwrap_or_else(|| (sizes.size as f64).sqrt().recip());
    let scores = b.multiply(scores, scale)?;
    // `[..., heads of the query, queries, keys]`, as masks and the bias have it.
    let mut scores = b.reshape_to(scores, shaped(&[sizes.heads * sizes.group, sizes.queries, sizes.keys]))?;
    let of_scores = b.ty(&scores);
    if let Some(bias) = options.bias {
        let ty = b.ty(bias);
        require_real(op, &ty)?;
        fits(op, "the bias", &ty, &of_scores.shape)?;
        let bias = b.reshape_to(bias, ty.shape.without_names())?;
        let bias = b.as_type(bias, working)?;
        scores = b.add(scores, bias)?;
    }
    let mask = match options.mask {
        Some(mask) => {
            let ty = b.ty(mask);
            fits(op, "the mask", &ty, &of_scores.shape)?;
            Some(b.reshape_to(mask, ty.shape.without_names())?)
        }
        None => None,
    };
    let mask = match (mask, options.causal) {
        (mask, false) => mask,
        (None, true) => Some(until_own_place(b, sizes.queries, sizes.keys)?),
        (Some(mask), true) => {
            let causal = until_own_place(b, sizes.queries, sizes.keys)?;
            Some(b.logical_and(mask, causal)?)
        }
    };
    let last = of_scores.shape.resolve(op, &AxisRef::Index(-1))?;
    let weights = softmax(b, &scores, &[last], mask.as_ref())?;
    let weights = b.reshape_to(weights, shaped(&[sizes.heads, rows, columns]))?;
    let result =
        b.dot_general(weights, size_axis, batch.as_slice(), value, rank as i64 + 1, batch.as_slice())?;
    let shape = shaped(&[sizes.heads, sizes.group, sizes.queries, sizes.of_values]);
    let result = b.reshape_to(result, shape)?;
    let result = b.transpose(result, order(rank, [2, 0, 1, 3]))?;
    let result = b.as_type(result, dtype)?;
    let all = of_query.shape.entries().take(rank + 2).chain(of_value.shape.entries().skip(rank + 2));
    b.reshape_to(result, Shape::from_axes(all))
}

/// The axes of the batch, and the others in an order.
fn order<const N: usize>(rank: usize, others: [usize; N]) -> Axes {
    let axes = (0..rank).chain(others.map(|axis| rank + axis));
    Axes::List(axes.map(|axis| AxisRef::Index(axis as i64)).collect())
}

fn fits(op: &'static str, what: &'static str, got: &TensorType, scores: &Shape) -> Result<()> {
    let broadcast = got.shape.without_names().broadcast_with(op, scores)?;
    if broadcast.sizes() == scores.sizes() {
        return Ok(());
    }
    Err(ErrorKind::ParameterShape { op, what, got: got.clone(), shape: scores.clone() }.into())
}

/// Whether a key is not after the place of a query, where the last of both are at one place.
fn until_own_place<B: Builder>(b: &mut B, queries: usize, keys: usize) -> Result<B::V> {
    let dtype = index_dtype(queries.max(keys));
    let column = Shape::new(&[queries, 1]);
    let place = b.iota(column, dtype, Some(AxisRef::Index(0)))?;
    let other = b.iota(Shape::new(&[1, keys]), dtype, Some(AxisRef::Index(1)))?;
    // Both sides are counted from 0: `key <= query + keys - queries`.
    if keys >= queries {
        let place = b.add(place, (keys - queries) as i64)?;
        b.less_equal(other, place)
    } else {
        let other = b.add(other, (queries - keys) as i64)?;
        b.less_equal(other, place)
    }
}
