//! Reductions of small windows without padding: the slices that each element of a window is, joined one by one.

use smallvec::SmallVec;

use super::{Cut, FEW, named, push, slice};
use crate::error::Result;
use crate::graph::{Graph, Node, Value};
use crate::op::{BinaryOp, Op, Window, WindowOp};
use crate::shape::{Shape, Sizes};

/// The most elements of a window.
const MOST: usize = 16;

/// The longest step along the last axis: elements that are farther apart are read one by one.
const LONGEST_STEP: usize = 4;

/// The node as element-wise ops, if it reduces such windows.
pub(super) fn written(graph: &mut Graph, node: &Node, inputs: &[Value]) -> Result<Option<Value>> {
    let (Op::Window { op, window }, &[x]) = (&node.op, inputs) else { return Ok(None) };
    let (from, to) = (graph.ty(x).clone(), &node.outputs[0]);
    // Sums of narrow floats are rounded once; vectors of narrow integers have to be side by side.
    let is_wide = !to.dtype.is_complex() && to.dtype.storage_bytes() >= 4;
    let count = window.sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let is_small = count.is_some_and(|count| count > 1 && count <= MOST);
    let step = to.shape.sizes().iter().zip(&window.strides).rev().find(|(size, _)| **size > 1);
    if from.dtype != to.dtype || !is_wide || !is_small || to.size() < FEW {
        return Ok(None);
    }
    if window.padding.iter().any(|padding| *padding != (0, 0))
        || step.is_none_or(|(_, &step)| step > LONGEST_STEP)
    {
        return Ok(None);
    }
    let join = match op {
        WindowOp::WindowSum => BinaryOp::ADD,
        WindowOp::WindowProduct => BinaryOp::MULTIPLY,
        WindowOp::WindowMax => BinaryOp::MAX,
        WindowOp::WindowMin => BinaryOp::MIN,
    };
    let axes = window.order(from.shape.sizes(), to.shape.sizes());
    let mut joining = Joining { graph, x, window, join, axes, counts: &to.shape };
    let mut starts = Sizes::from_elem(0, to.shape.rank());
    let depth = joining.axes.len();
    let value = joining.joined(depth, &mut starts)?;
    named(graph, value, to).map(Some)
}

struct Joining<'a> {
    graph: &'a mut Graph,
    x: Value,
    window: &'a Window,
    join: BinaryOp,
    /// The axes of the window, in the order in which they are reduced.
    axes: SmallVec<[usize; 4]>,
    counts: &'a Shape,
}

impl Joining<'_> {
    /// The reduction along the first axes, for elements of the window that begin at `starts` along the others.
    fn joined(&mut self, depth: usize, starts: &mut Sizes) -> Result<Value> {
        let Some(&axis) = depth.checked_sub(1).and_then(|last| self.axes.get(last)) else {
            let counts = self.counts.sizes().iter().zip(&self.window.strides);
            let lengths = counts.map(|(&count, &stride)| (count - 1) * stride + 1).collect();
            let cut = Cut { starts: starts.clone(), lengths, strides: self.window.strides.clone() };
            return slice(self.graph, self.x, &cut);
        };
        let mut all: Option<Value> = None;
        for element in 0..self.window.sizes[axis] {
            starts[axis] = element * self.window.dilations[axis];
            let next = self.joined(depth - 1, starts)?;
            all = Some(match all {
                None => next,
                Some(all) => push(self.graph, Op::Binary(self.join), &[all, next])?,
            });
        }
        starts[axis] = 0;
        Ok(all.expect("a window has elements"))
    }
}
