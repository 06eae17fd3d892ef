//! Gradients of reads and writes at positions. `g` is the cotangent of the result.

use smallvec::{SmallVec, smallvec};

use super::region::{self, window};
use super::{Site, Vjp};
use crate::builder::starts::convert_starts;
use crate::builder::{BuildCreate, BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{Op, ReduceOp, ScatterOp, Starts};
use crate::scalar::Number;
use crate::shape::{Axis, AxisList, Shape, Sizes, TensorType};

/// Positions and the sizes of their axes, from 0 on: negative ones count from the end. One that is out of range stays so.
struct Positions {
    /// Signed integers, with the entries of a position along the last axis.
    value: Value,
    /// The size of the axis of each entry: a scalar, or a vector where they differ.
    sizes: Value,
}

impl Positions {
    fn new(graph: &mut Graph, indices: Value, sizes: &[usize]) -> Result<Positions> {
        let most = sizes.iter().copied().max().unwrap_or(0);
        let is_wide = [DType::S64, DType::U32, DType::U64].contains(&graph.ty(indices).dtype);
        let dtype = if is_wide || i32::try_from(most).is_err() { DType::S64 } else { DType::S32 };
        let indices = convert_starts(graph, &indices, dtype, most)?;
        let sizes = match sizes.iter().all(|&size| size == most) {
            true => graph.constant(dtype, Number::from(most))?,
            false => {
                let each = sizes.iter().map(|&size| graph.constant(dtype, Number::from(size)));
                let each: Vec<Value> = each.collect::<Result<_>>()?;
                graph.emit_one(Op::Stack { axis: 0, name: None }, &each)?
            }
        };
        let (is_negative, from_end) = (graph.less(indices, 0)?, graph.add(indices, sizes)?);
        let value = graph.emit_one(Op::Select, &[is_negative, from_end, indices])?;
        Ok(Positions { value, sizes })
    }

    /// The positions that a read takes: clamped to the axes.
    fn clamped(&self, graph: &mut Graph) -> Result<Value> {
        let last = graph.subtract(self.sizes, 1)?;
        let below = graph.min(self.value, last)?;
        graph.max(below, 0)
    }

    /// Whether a write at each position takes place: none does outside of the axes.
    fn are_written(&self, graph: &mut Graph) -> Result<Value> {
        let (above, below) = (graph.greater_equal(self.value, 0)?, graph.less(self.value, self.sizes)?);
        let inside = graph.logical_and(above, below)?;
        let entries = graph.ty(inside).shape.last_axis().expect("the entries are along an axis");
        graph
            .emit_one(Op::Reduce { op: ReduceOp::All, axes: smallvec![entries], keep_axes: false }, &[inside])
    }
}

/// The positions that a read of these takes, on axes of these sizes. Entries that were stacked are clamped one by one, so
/// that those that count along their axis stay as they are: passes look for them.
fn read_positions(graph: &mut Graph, indices: Value, sizes: &[usize]) -> Result<Value> {
    let mut stacked = indices;
    while let Op::Reshape { .. } = graph.node(stacked).op {
        stacked = graph.node(stacked).inputs[0];
    }
    let node = graph.node(stacked);
    let entries = node.inputs.clone();
    let is_last =
        if let Op::Stack { axis, .. } = node.op { axis + 1 == graph.ty(stacked).shape.rank() } else { false };
    if !is_last || entries.len() != sizes.len() {
        return Positions::new(graph, indices, sizes)?.clamped(graph);
    }
    let shape = graph.ty(indices).shape.without_names();
    let axis = graph.ty(stacked).shape.rank() - 1;
    let mut read = Values::new();
    for (&entry, &size) in entries.iter().zip(sizes) {
        let counts = if let Op::Iota { shape, axis: Some(axis), .. } = &graph.node(entry).op {
            shape[*axis] <= size
        } else {
            false
        };
        read.push(match counts {
            true => entry,
            false => Positions::new(graph, entry, &[size])?.clamped(graph)?,
        });
    }
    let stacked = graph.emit_one(Op::Stack { axis, name: None }, &read)?;
    graph.emit_one(Op::Reshape { shape }, &[stacked])
}

/// Adds `g` at the positions that were read.
pub(super) fn gather(site: &mut Site<'_>, axes: &[Axis], g: Value) -> Result<Vjp> {
    let indices = site.input(1)?;
    let sizes: Sizes = axes.iter().map(|&axis| site.input_ty(0).shape[axis]).collect();
    let indices = read_positions(site.graph, indices, &sizes)?;
    let (x, index_shape) = (site.input_ty(0), site.graph.ty(indices).shape.clone());
    let entries = axes.len();
    let count = index_shape.sizes()[..index_shape.rank() - 1].iter().product();
    let rows = Op::Reshape { shape: Shape::new(&[count, entries]) };
    let indices = site.graph.emit_one(rows, &[indices])?;
    let rest = x.shape.axes().filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]);
    let sizes: Vec<usize> = std::iter::once(count).chain(rest).collect();
    let dtype = site.graph.ty(g).dtype;
    let updates = site.graph.emit_one(Op::Reshape { shape: Shape::new(&sizes) }, &[g])?;
    let zeros = region::zeros(site.graph, &TensorType { dtype, shape: x.shape.without_names() })?;
    let op = Op::Scatter { op: ScatterOp::IndexedAdd, axes: axes.into() };
    let contribution = site.graph.emit_one(op, &[zeros, indices, updates])?;
    Ok(Vjp::flows([Some(contribution), None]))
}

/// The target gets `g`, with zeros where elements were replaced. Each update gets `g` from its position,
/// although of several updates of one position only one took effect.
pub(super) fn scatter(site: &mut Site<'_>, op: ScatterOp, axes: &[Axis], g: Value) -> Result<Vjp> {
    let indices = site.input(1)?;
    let shape = site.input_ty(2).shape.without_names();
    let axes: AxisList = axes.into();
    let dtype = site.graph.ty(g).dtype;
    let zeros = TensorType { dtype, shape };
    let x = site.input_ty(0).shape;
    let updates = if !site.needs_gradient(2) {
        None
    } else if axes.iter().any(|&axis| x[axis] == 0) {
        // Nothing can have been written.
        Some(region::zeros(site.graph, &zeros)?)
    } else {
        let gathered = site.graph.emit_one(Op::Gather { axes: axes.clone() }, &[g, indices])?;
        let lengths: Sizes = zeros.shape.sizes().into();
        let starts = Starts::Static(SmallVec::from_elem(0, lengths.len()));
        let pieces = window(site.graph, gathered, starts, &[], lengths)?;
        // A write that was dropped has no gradient, but a read is clamped.
        let sizes: Sizes = axes.iter().map(|&axis| x[axis]).collect();
        let written = Positions::new(site.graph, indices, &sizes)?.are_written(site.graph)?;
        let shape = site.graph.ty(pieces).shape.clone();
        let written = site.graph.emit_one(Op::Broadcast { shape, axes: smallvec![Axis(0)] }, &[written])?;
        Some(site.masked(written, pieces)?)
    };
    let target = if site.needs_gradient(0) {
        Some(match op {
            ScatterOp::IndexedAdd => g,
            ScatterOp::IndexedPut => {
                let zeros = region::zeros(site.graph, &zeros)?;
                site.graph.emit_one(Op::Scatter { op, axes }, &[g, indices, zeros])?
            }
        })
    } else {
        None
    };
    Ok(Vjp::flows([target, None, updates]))
}
