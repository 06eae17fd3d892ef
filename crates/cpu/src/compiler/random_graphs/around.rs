//! Windows of what is joined with slices of itself, as stencils on a torus read them, and of other joins.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{BinaryOp, Op, Padding, Starts};
use defn_core::{Axis, DType};
use smallvec::SmallVec;

use super::generate::Choices;
use super::values::scalar;

/// The most elements that a join has more along an axis, on each side.
const MARGIN: usize = 3;

/// Joins a value with others along some axes, and computes one value of its windows. `other` is joined too, where it
/// fits.
pub(super) fn around(
    source: &mut Choices<'_>,
    graph: &mut Graph,
    x: Value,
    other: Value,
) -> Option<(Op, Values)> {
    let ty = graph.ty(x).clone();
    let sizes = ty.shape.sizes();
    let axes: Vec<Axis> = ty.shape.axes().collect();
    let mut joined = x;
    for &axis in &axes {
        if source.below(4) > 0 {
            joined = joined_along(source, graph, joined, axis, other).unwrap_or(joined);
        }
    }
    if source.below(4) == 0 {
        // A window of it is written anew.
        let all = graph.ty(joined).shape.sizes().to_vec();
        let starts: SmallVec<[usize; 4]> = all.iter().zip(sizes).map(|(all, own)| (all - own) / 2).collect();
        let is_other = source.below(2) == 0 && graph.ty(other).shape.sizes() == sizes;
        let operands = [joined, if is_other { other } else { x }];
        let put = Op::PutSlice { starts: Starts::Static(starts) };
        joined = graph.push(put, &operands).map_or(joined, |made| made[0]);
    }
    let ops = [BinaryOp::ADD, BinaryOp::SUBTRACT, BinaryOp::MAX, BinaryOp::MIN, BinaryOp::EQUAL];
    let mut sum: Option<Value> = None;
    for at in 0..2 + source.below(4) {
        let most: Vec<usize> =
            graph.ty(joined).shape.sizes().iter().zip(sizes).map(|(all, own)| all - own).collect();
        let starts: Vec<usize> = most.iter().map(|&most| source.below(most + 1)).collect();
        let window = slice(graph, joined, &starts, sizes)?;
        let Some(known) = sum else {
            sum = Some(window);
            continue;
        };
        let op = Op::Binary(ops[source.below(ops.len())]);
        // The last is left to the caller.
        if at > 1 && source.below(3) == 0 {
            return Some((op, [known, window].into_iter().collect()));
        }
        sum = Some(graph.push(op, &[known, window]).ok()?[0]);
    }
    let y = if source.below(2) == 0 { x } else { joined_window(graph, joined, sizes)? };
    Some((Op::Binary(BinaryOp::ADD), [sum?, y].into_iter().collect()))
}

/// The first window.
fn joined_window(graph: &mut Graph, joined: Value, sizes: &[usize]) -> Option<Value> {
    let starts = vec![0; sizes.len()];
    slice(graph, joined, &starts, sizes)
}

/// A value with something before and behind it along an axis.
fn joined_along(
    source: &mut Choices<'_>,
    graph: &mut Graph,
    x: Value,
    axis: Axis,
    other: Value,
) -> Option<Value> {
    let ty = graph.ty(x).clone();
    let (sizes, at) = (ty.shape.sizes(), axis.index());
    let size = sizes[at];
    let [low, high] = [0, 1].map(|_| source.below(MARGIN.min(size) + 1));
    let part = |graph: &mut Graph, start: usize, length: usize| {
        let (mut starts, mut lengths) = (vec![0; sizes.len()], sizes.to_vec());
        (starts[at], lengths[at]) = (start, length);
        slice(graph, x, &starts, &lengths)
    };
    let mut parts: Vec<Value> = Vec::new();
    match source.below(8) {
        0..=3 => {
            if low > 0 {
                parts.push(part(graph, size - low, low)?);
            }
            parts.push(x);
            if high > 0 {
                parts.push(part(graph, 0, high)?);
            }
        }
        4 => {
            // What is rolled is as long as it was.
            let by = 1 + source.below(size.max(2) - 1).min(size - 1);
            parts.push(part(graph, by.min(size - 1), size - by.min(size - 1))?);
            parts.push(part(graph, 0, by.min(size - 1).max(1))?);
        }
        5 => {
            let mut config: SmallVec<[Padding; 4]> =
                sizes.iter().map(|_| Padding { low: 0, high: 0, interior: 0 }).collect();
            config[at] = Padding { low: low as i64, high: high as i64, interior: 0 };
            let value = graph.push(Op::Constant(scalar(ty.dtype, 1.0)), &[]).ok()?[0];
            let config = config.into_iter().collect();
            return Some(graph.push(Op::Pad { config }, &[x, value]).ok()?[0]);
        }
        6 => {
            let reversed = part(graph, 0, low.max(1))?;
            let axes = [axis].into_iter().collect();
            parts.push(graph.push(Op::Reverse { axes }, &[reversed]).ok()?[0]);
            parts.push(x);
        }
        _ => {
            // Now and then of another dtype.
            let other = if source.below(2) == 0 {
                let to = [DType::F32, DType::S8, DType::F64, ty.dtype][source.below(4)];
                let first = part(graph, 0, low.max(1))?;
                graph.push(Op::AsType { dtype: to }, &[first]).ok()?[0]
            } else {
                other
            };
            parts.extend([x, other]);
        }
    }
    if parts.len() == 1 {
        return Some(x);
    }
    Some(graph.push(Op::Concatenate { axis }, &parts).ok()?[0])
}

fn slice(graph: &mut Graph, x: Value, starts: &[usize], lengths: &[usize]) -> Option<Value> {
    let strides = starts.iter().map(|_| 1).collect();
    let starts = Starts::Static(starts.iter().copied().collect());
    Some(graph.push(Op::Slice { starts, lengths: lengths.iter().copied().collect(), strides }, &[x]).ok()?[0])
}
