//! Batches of matrices, and loops over their columns: shared code of the definitions of factorizations.

use std::sync::Arc;

use crate::builder::{BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, BuildShape};
use crate::builder::{Builder, Start};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::region::Region;
use crate::shape::{Axes, Axis, AxisRef, Shape, TensorType};

/// A batch of matrices: the operand with its leading axes merged into one, without names, in the dtype of the
/// computation.
pub(crate) struct Batch<V> {
    /// The matrices, of rank 3.
    pub value: V,
    /// The leading sizes of the operand.
    pub lead: Vec<usize>,
    /// The number of matrices.
    pub count: usize,
    /// The number of rows of each.
    pub rows: usize,
    /// The number of columns of each.
    pub columns: usize,
    /// The dtype of the computation.
    pub working: DType,
    /// The dtype of the results.
    pub dtype: DType,
}

impl<V: Clone> Batch<V> {
    /// Merges the leading axes of `x`, which has rank 2 or more.
    pub fn new<B: Builder<V = V>>(b: &mut B, x: &V) -> Result<Batch<V>>
    where
        V: Into<crate::builder::Arg<V>>,
    {
        let ty = b.ty(x);
        let sizes = ty.shape.sizes();
        let (lead, matrix) = sizes.split_at(sizes.len() - 2);
        let (rows, columns) = (matrix[0], matrix[1]);
        let count = lead.iter().product();
        let dtype = ty.dtype.to_float();
        let working = working_dtype(dtype);
        let value = b.as_type(x.clone(), working)?;
        let value = b.reshape_to(value, Shape::new(&[count, rows, columns]))?;
        Ok(Batch { value, lead: lead.to_vec(), count, rows, columns, working, dtype })
    }

    /// A result with the original leading axes, in a dtype.
    pub fn restore_leading_axes<B: Builder<V = V>>(&self, b: &mut B, x: &V, dtype: DType) -> Result<V>
    where
        V: Into<crate::builder::Arg<V>>,
    {
        let shape = b.ty(x).shape;
        let sizes: Vec<usize> = self.lead.iter().chain(&shape.sizes()[1..]).copied().collect();
        let x = b.as_type(x.clone(), dtype)?;
        b.reshape_to(x, Shape::new(&sizes))
    }
}

/// Runs `body` on a state `trips` times. `body` receives the iteration's index, an s32 scalar, the state and the
/// captures, and returns the next state.
pub(crate) fn repeat<B: Builder>(
    b: &mut B,
    trips: usize,
    state: &[B::V],
    captures: &[B::V],
    body: impl FnOnce(&mut Graph, Value, &[Value], &[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<B::V>> {
    let mut all = vec![b.constant(DType::S32, 0)?];
    all.extend_from_slice(state);
    let trips = trips as i64;
    let mut last = loop_while(
        b,
        Some(trips as u64),
        &all,
        captures,
        |graph, state, _| graph.less(state[0], trips),
        |graph, state, captures| {
            let mut next = body(graph, state[0], &state[1..], captures)?;
            next.insert(0, graph.add(state[0], 1)?);
            Ok(next)
        },
    )?;
    last.remove(0);
    Ok(last)
}

/// Runs `body` on a state while `cond` is true; both receive the state and the captures.
pub(crate) fn loop_while<B: Builder>(
    b: &mut B,
    trips: Option<u64>,
    state: &[B::V],
    captures: &[B::V],
    cond: impl FnOnce(&mut Graph, &[Value], &[Value]) -> Result<Value>,
    body: impl FnOnce(&mut Graph, &[Value], &[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<B::V>> {
    let inputs: Vec<TensorType> = state.iter().chain(captures).map(|value| b.ty(value)).collect();
    let region = |make: &mut dyn FnMut(&mut Graph, &[Value], &[Value]) -> Result<Vec<Value>>| {
        let mut graph = Graph::new();
        let values: Vec<Value> =
            inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
        let (own, captured) = values.split_at(state.len());
        let results = make(&mut graph, own, captured)?;
        Ok::<_, crate::Error>(Region::new(graph, inputs.clone(), state.len(), results.into()))
    };
    let (mut cond, mut body) = (Some(cond), Some(body));
    let condition = region(&mut |graph, state, captures| {
        let cond = cond.take().expect("a region is made once");
        Ok(vec![cond(graph, state, captures)?])
    })?;
    let step = region(&mut |graph, state, captures| {
        let body = body.take().expect("a region is made once");
        body(graph, state, captures)
    })?;
    Ok(b.emit_while(Arc::new(condition), Arc::new(step), trips, state, captures)?.into_vec())
}

/// The batch axes of a product of values of this rank: all axes but the last two.
pub(crate) fn batch_axes(rank: usize) -> Axes {
    Axes::List((0..rank.saturating_sub(2) as i64).map(AxisRef::Index).collect())
}

/// The matrix product over the last two axes; both operands have the same leading axes.
pub(crate) fn product<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let rank = b.ty(x).shape.rank();
    b.dot_general(x.clone(), -1, batch_axes(rank), y.clone(), -2, batch_axes(rank))
}

/// The last two axes exchanged.
pub(crate) fn transposed<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let rank = b.ty(x).shape.rank() as i64;
    let mut axes: Vec<AxisRef> = (0..rank).map(AxisRef::Index).collect();
    axes.swap(rank as usize - 2, rank as usize - 1);
    b.transpose(x.clone(), Axes::List(axes))
}

/// The last two axes exchanged, and complex elements conjugated.
pub(crate) fn adjoint<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let x = conjugated(b, x)?;
    transposed(b, &x)
}

/// Complex elements conjugated; real elements unchanged.
pub(crate) fn conjugated<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.is_complex() { b.conjugate(x.clone()) } else { Ok(x.clone()) }
}

/// The real part of complex elements; real elements unchanged.
pub(crate) fn real_part<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.is_complex() { b.real(x.clone()) } else { Ok(x.clone()) }
}

/// The square of the magnitude of each element.
pub(crate) fn square<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.is_complex() {
        let (re, im) = (b.real(x.clone())?, b.imag(x.clone())?);
        let (re, im) = (b.multiply(re.clone(), re)?, b.multiply(im.clone(), im)?);
        b.add(re, im)
    } else {
        b.multiply(x.clone(), x.clone())
    }
}

/// The indices along an axis of rank-3 values; the other axes have size 1.
pub(crate) fn axis_indices<B: Builder>(b: &mut B, axis: usize, size: usize) -> Result<B::V> {
    let mut sizes = [1; 3];
    sizes[axis] = size;
    b.iota(Shape::new(&sizes), DType::S32, Some(Axis(axis).into()))
}

/// A range of `x` along an axis. The start may be a value.
pub(crate) fn slice_range<B: Builder>(
    b: &mut B,
    x: &B::V,
    start: impl Into<Start<B::V>>,
    length: usize,
    axis: usize,
) -> Result<B::V> {
    b.slice_along_axis(x.clone(), start, length as i64, Axis(axis), 1)
}

/// `select` of values that broadcast to the shape of `like`.
pub(crate) fn broadcast_select<B: Builder>(
    b: &mut B,
    mask: &B::V,
    yes: &B::V,
    no: &B::V,
    like: &Shape,
) -> Result<B::V> {
    let mask = b.broadcast(mask.clone(), like.clone(), Axes::All)?;
    b.select(mask, yes.clone(), no.clone())
}

/// The distance from 1 to the next number of a dtype of the computation.
pub(crate) fn machine_epsilon(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// A constant of the dtype of `x`.
pub(crate) fn constant_like<B: Builder>(b: &mut B, x: &B::V, number: f64) -> Result<B::V> {
    let dtype = b.ty(x).dtype;
    b.constant(dtype, number)
}

/// Whether all elements of each of the matrices of rank 3 are finite: bool of sizes (count, 1, 1).
pub(crate) fn is_all_finite<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let (nan, infinite) = (b.is_nan(x.clone())?, b.is_infinity(x.clone())?);
    let bad = b.logical_or(nan, infinite)?;
    let bad = b.any(bad, [1, 2], true)?;
    b.equal(bad, 0)
}

/// `x`, or NaN where `good` of sizes (count, 1, 1) is false; `x` has rank 2 or 3.
pub(crate) fn nan_unless<B: Builder>(b: &mut B, good: &B::V, x: &B::V) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let nan = constant_like(b, x, f64::NAN)?;
    let good = if shape.rank() == 2 { b.squeeze(good.clone(), 2)? } else { good.clone() };
    broadcast_select(b, &good, x, &nan, &shape)
}

/// The greatest magnitude in each of the matrices of rank 3, with axes of size 1. It is 1 where the greatest
/// magnitude is zero or not finite.
pub(crate) fn magnitude<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let size = if b.ty(x).dtype.is_complex() {
        let (re, im) = (b.real(x.clone())?, b.imag(x.clone())?);
        let (re, im) = (b.abs(re)?, b.abs(im)?);
        b.max(re, im)?
    } else {
        b.abs(x.clone())?
    };
    let greatest = b.reduce_max(size, [1, 2], true)?;
    let usable = {
        let positive = b.greater(greatest.clone(), 0)?;
        let bounded = b.less(greatest.clone(), f64::INFINITY)?;
        b.logical_and(positive, bounded)?
    };
    let shape = b.ty(&greatest).shape;
    let one = constant_like(b, &greatest, 1.0)?;
    broadcast_select(b, &usable, &greatest, &one, &shape)
}

/// A range of columns of `x`, which has any rank.
pub(crate) fn slice_columns(graph: &mut Graph, x: Value, start: usize, length: usize) -> Result<Value> {
    graph.slice_along_axis(x, start as i64, length as i64, -1, 1)
}
