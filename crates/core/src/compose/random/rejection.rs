//! Rejection: candidates are drawn for each element until one is accepted.
//!
//! A trip of the loop draws for all elements, though after the first trip few need another candidate. So where all
//! elements have the same law, the few that are left after a trip or two are drawn as a short vector.

use std::sync::Arc;

use super::families::Draw;
use super::gamma::keys;
use super::pick::positions_dtype;
use crate::builder::{
    BuildControl, BuildCreate, BuildElementwise, BuildIndex, BuildReduce, BuildShape, Builder,
};
use crate::compose::matrix::batch::loop_while;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::region::Region;
use crate::shape::{Axes, Shape, TensorType};

/// A candidate for each element of a draw, and whether it is accepted.
pub(super) type Candidate<'a> = &'a dyn Fn(&mut Graph, &Draw<'_, Value>, &[Value]) -> Result<(Value, Value)>;

/// More trips than any sample needs.
const TRIPS: i64 = 10_000;

/// One in so many elements is drawn in the short vector.
const SHARE: usize = 8;

/// The least number of elements for which the short vector pays.
const LEAST: usize = 16_384;

/// The first accepted candidate of each element that `is_drawn` marks, and 0 elsewhere. If it marks none, there is no
/// trip. The captures broadcast to the draw's shape.
pub(super) fn first_accepted<B: Builder>(
    b: &mut B,
    draw: &Draw<'_, B::V>,
    is_drawn: &B::V,
    captures: &[B::V],
    candidate: Candidate<'_>,
) -> Result<B::V> {
    let value = b.full(draw.shape.clone(), draw.dtype, 0)?;
    let open = b.broadcast(is_drawn, draw.shape.clone(), Axes::All)?;
    let size = draw.shape.size();
    let has_one_law = captures.iter().all(|capture| b.ty(capture).shape.size() == 1);
    if size < LEAST || !has_one_law {
        let [_, _, value] = trips(b, draw, open, value, captures, 0, candidate)?;
        return Ok(value);
    }
    let mut scalars = Vec::with_capacity(captures.len());
    for capture in captures {
        scalars.push(b.reshape_to(capture, Shape::new(&[]))?);
    }
    let state = trips(b, draw, open, value, &scalars, size / SHARE, candidate)?;
    let any = b.any(&state[1], Axes::All, false)?;
    let captures: Vec<B::V> = state.into_iter().chain(scalars).collect();
    let inputs: Vec<TensorType> = captures.iter().map(|value| b.ty(value)).collect();
    let branch = |make: &dyn Fn(&mut Graph, &[Value]) -> Result<Value>| {
        let mut graph = Graph::new();
        let values: Vec<Value> =
            inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
        let result = make(&mut graph, &values)?;
        Ok::<_, crate::Error>(Arc::new(Region::new(graph, inputs.clone(), 0, [result].into_iter().collect())))
    };
    let some = branch(&|graph, values| {
        let draw = Draw { op: draw.op, key: &values[0], dtype: draw.dtype, shape: draw.shape.clone() };
        rest(graph, &draw, values[1], values[2], &values[3..], candidate)
    })?;
    let none = branch(&|_, values| Ok(values[2]))?;
    let value = b.emit_cond([some, none], &[any], &captures)?;
    Ok(value[0].clone())
}

/// Draws until at most `left` elements are open. The key for what follows, the open elements, and the values.
fn trips<B: Builder>(
    b: &mut B,
    draw: &Draw<'_, B::V>,
    open: B::V,
    value: B::V,
    captures: &[B::V],
    left: usize,
    candidate: Candidate<'_>,
) -> Result<[B::V; 3]> {
    let (op, dtype, shape) = (draw.op, draw.dtype, draw.shape.clone());
    let trip = b.constant(DType::S32, 0)?;
    let last = loop_while(
        b,
        None,
        &[trip, draw.key.clone(), open, value],
        captures,
        |graph, state, _| {
            let more = graph.less(state[0], TRIPS)?;
            let any = if left == 0 {
                graph.any(state[2], Axes::All, false)?
            } else {
                let count = graph.count_nonzero(state[2], Axes::All, false)?;
                graph.greater(count, left as i64)?
            };
            graph.logical_and(more, any)
        },
        |graph, state, captures| {
            let [next, own] = keys(graph, &state[1])?;
            let (value, accepted) = candidate(graph, &Draw { op, key: &own, dtype, shape }, captures)?;
            let takes = graph.logical_and(accepted, state[2])?;
            let rejected = graph.logical_not(accepted)?;
            Ok(vec![
                graph.add(state[0], 1)?,
                next,
                graph.logical_and(state[2], rejected)?,
                graph.select(takes, value, state[3])?,
            ])
        },
    )?;
    let Ok([_, key, open, value]) = <[B::V; 4]>::try_from(last) else {
        unreachable!("a loop returns its state");
    };
    Ok([key, open, value])
}

/// The values, of which the few open elements take those of a short vector in turn.
fn rest(
    graph: &mut Graph,
    draw: &Draw<'_, Value>,
    open: Value,
    value: Value,
    captures: &[Value],
    candidate: Candidate<'_>,
) -> Result<Value> {
    let (size, dtype) = (draw.shape.size(), positions_dtype(draw.shape.size()));
    let few = Shape::new(&[size / SHARE]);
    let marks = graph.reshape_to(open, Shape::new(&[size]))?;
    let marks = graph.as_type(marks, dtype)?;
    let ranks = graph.cumulative_sum(marks, 0, false)?;
    let count = graph.slice_along_axis(ranks, size as i64 - 1, 1, 0, 1)?;
    let position = graph.iota(few.clone(), dtype, None)?;
    let is_drawn = graph.less(position, count)?;
    let start = graph.full(few.clone(), draw.dtype, 0)?;
    let short = Draw { op: draw.op, key: draw.key, dtype: draw.dtype, shape: few };
    let [_, _, drawn] = trips(graph, &short, is_drawn, start, captures, 0, candidate)?;
    let place = graph.subtract(ranks, 1)?;
    let place = graph.max(place, 0)?;
    let own = graph.take(drawn, place, 0)?;
    let own = graph.reshape_to(own, draw.shape.clone())?;
    graph.select(open, own, value)
}
