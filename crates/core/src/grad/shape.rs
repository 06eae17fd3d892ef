//! Gradients of ops that move elements. `g` is the cotangent of the result.

use smallvec::SmallVec;

use super::region::{self, fill, window};
use super::{Contribution, Site, Vjp};
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::graph::{Value, Values};
use crate::op::{Op, Padding, Starts};
use crate::scalar::Scalar;
use crate::shape::{Axis, AxisList, Sizes};

/// Elements keep their order, so that a reshape to the operand's shape is enough.
pub(super) fn reshape(site: &mut Site<'_>, g: Value) -> Result<Vjp> {
    let shape = site.input_ty(0).shape.without_names();
    Ok(Vjp::one(site.graph.emit_one(Op::Reshape { shape }, &[g])?))
}

/// Sums over the axes that were added, and those of size 1 that were broadcast.
pub(super) fn broadcast(site: &mut Site<'_>, axes: &[Axis], g: Value) -> Result<Vjp> {
    let (from, to) = (site.input_ty(0).shape.without_names(), site.output_ty(0).shape);
    let is_repeated = |axis: &Axis| match axes.iter().position(|target| target == axis) {
        None => true,
        Some(source) => from.sizes()[source] != to[*axis],
    };
    let repeated: AxisList = to.axes().filter(is_repeated).collect();
    let sum = region::sum(site.graph, g, repeated)?;
    Ok(Vjp::one(site.graph.emit_one(Op::Reshape { shape: from }, &[sum])?))
}

/// The inverse permutation.
pub(super) fn transpose(site: &mut Site<'_>, axes: &[Axis], g: Value) -> Result<Vjp> {
    let axes = region::inverse(axes);
    Ok(Vjp::one(site.graph.emit_one(Op::Transpose { axes }, &[g])?))
}

/// `(x, value)`: the operand gets its own elements; the padding value gets the sum of all others.
pub(super) fn pad(site: &mut Site<'_>, config: &[Padding], g: Value) -> Result<Vjp> {
    let sizes: Sizes = site.input_ty(0).shape.sizes().into();
    let zero = site.zero_of(g)?;
    let undo = |padding: &Padding| Padding { low: -padding.low, high: -padding.high, interior: 0 };
    let undo = Op::Pad { config: config.iter().map(undo).collect() };
    let dilated = site.graph.emit_one(undo, &[g, zero])?;
    let op = Op::Slice {
        starts: Starts::Static(SmallVec::from_elem(0, sizes.len())),
        lengths: site.graph.ty(dilated).shape.sizes().into(),
        strides: config.iter().map(|padding| padding.interior + 1).collect(),
    };
    let contribution = site.graph.emit_one(op, &[dilated])?;
    let value = if site.needs_gradient(1) {
        let (all, inner) = (total(site, g)?, total(site, contribution)?);
        Some(site.graph.subtract(all, inner)?)
    } else {
        None
    };
    Ok(Vjp::flows([Some(contribution), value]))
}

fn total(site: &mut Site<'_>, value: Value) -> Result<Value> {
    let axes = site.graph.ty(value).shape.axes().collect();
    region::sum(site.graph, value, axes)
}

/// Each operand gets its piece.
pub(super) fn concatenate(site: &mut Site<'_>, axis: Axis, g: Value) -> Result<Vjp> {
    let mut start = 0;
    let mut contributions = Vec::with_capacity(site.inputs.len());
    for input in 0..site.inputs.len() {
        let lengths: Sizes = site.input_ty(input).shape.sizes().into();
        let length = lengths[axis.index()];
        contributions.push(if site.needs_gradient(input) {
            let mut starts = SmallVec::from_elem(0, lengths.len());
            starts[axis.index()] = start;
            Some(window(site.graph, g, Starts::Static(starts), &[], lengths)?)
        } else {
            None
        });
        start += length;
    }
    Ok(Vjp::flows(contributions))
}

/// Each operand gets its slice along the new axis.
pub(super) fn stack(site: &mut Site<'_>, axis: usize, g: Value) -> Result<Vjp> {
    let mut contributions = Vec::with_capacity(site.inputs.len());
    for input in 0..site.inputs.len() {
        contributions.push(if site.needs_gradient(input) {
            let shape = site.input_ty(input).shape.without_names();
            let mut starts = SmallVec::from_elem(0, shape.rank() + 1);
            starts[axis] = input;
            let mut lengths: Sizes = shape.sizes().into();
            lengths.insert(axis, 1);
            let layer = window(site.graph, g, Starts::Static(starts), &[], lengths)?;
            Some(site.graph.emit_one(Op::Reshape { shape }, &[layer])?)
        } else {
            None
        });
    }
    Ok(Vjp::flows(contributions))
}

/// The window gets `g`, with zeros between its elements where the stride skipped some; starts get nothing.
pub(super) fn slice(
    site: &mut Site<'_>,
    starts: &Starts,
    lengths: &[usize],
    strides: &[usize],
    g: Value,
) -> Result<Vjp> {
    let mut update = g;
    if strides.iter().any(|&stride| stride != 1) {
        let output_shape = site.output_ty(0).shape;
        let config = output_shape.axes().map(|axis| {
            let (count, stride) = (output_shape[axis], strides[axis.index()]);
            let spanned = if count == 0 { 0 } else { (count - 1) * stride + 1 };
            let high = (lengths[axis.index()] - spanned) as i64;
            Padding { low: 0, high, interior: stride - 1 }
        });
        let op = Op::Pad { config: config.collect() };
        let zero = site.zero_of(g)?;
        update = site.graph.emit_one(op, &[g, zero])?;
    }
    let operands = start_operands(site, 1)?;
    let mut contributions: SmallVec<[Contribution; 3]> = SmallVec::new();
    contributions.push(Contribution::Window { update, starts: starts.clone(), operands });
    contributions.extend(site.inputs[1..].iter().map(|_| Contribution::None));
    Ok(Vjp::Flows(contributions))
}

/// `(x, update)`: the update gets the window, the target gets `g` with zeros in the window.
pub(super) fn put_slice(site: &mut Site<'_>, starts: &Starts, g: Value) -> Result<Vjp> {
    let operands = start_operands(site, 2)?;
    let shape = site.input_ty(1).shape.without_names();
    // The window is read first: `g` then has its last use below, and is overwritten in place.
    let update = if site.needs_gradient(1) {
        Some(window(site.graph, g, starts.clone(), &operands, shape.sizes().into())?)
    } else {
        None
    };
    let target = if site.needs_gradient(0) {
        let zero = site.graph.scalar(Scalar::zero(site.graph.ty(g).dtype))?;
        let zeros = fill(site.graph, zero, &shape)?;
        let operands: Values = [g, zeros].into_iter().chain(operands).collect();
        Some(site.graph.emit_one(Op::PutSlice { starts: starts.clone() }, &operands)?)
    } else {
        None
    };
    let starts = site.inputs[2..].iter().map(|_| None);
    Ok(Vjp::flows([target, update].into_iter().chain(starts)))
}

/// The dynamic starts among a node's inputs.
fn start_operands(site: &mut Site<'_>, first: usize) -> Result<Values> {
    (first..site.inputs.len()).map(|input| site.input(input)).collect()
}
