//! Gradients of reductions. `g` is the cotangent of the result.

use smallvec::SmallVec;

use super::region::{self, fill};
use super::{Site, Vjp};
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::graph::Value;
use crate::op::{Op, Padding, ReduceOp, Starts};
use crate::scalar::Scalar;
use crate::shape::{Axis, AxisList, Shape};

/// `y = op(x)` over `axes`.
pub(super) fn reduce(
    site: &mut Site<'_>,
    op: ReduceOp,
    axes: &[Axis],
    keep_axes: bool,
    g: Value,
) -> Result<Vjp> {
    let contribution = match op {
        ReduceOp::Sum => broadcast_back(site, g, axes, keep_axes)?,
        ReduceOp::Product => product(site, axes, g)?,
        ReduceOp::ReduceMax | ReduceOp::ReduceMin => extreme(site, axes, keep_axes, g)?,
        ReduceOp::All | ReduceOp::Any => return Ok(Vjp::Zero),
    };
    Ok(Vjp::one(contribution))
}

/// Broadcasts a value of the result's shape along the reduced axes.
pub(crate) fn broadcast_back(
    site: &mut Site<'_>,
    value: Value,
    axes: &[Axis],
    keep_axes: bool,
) -> Result<Value> {
    let shape = site.input_ty(0).shape.without_names();
    let retained: AxisList = shape.axes().filter(|axis| keep_axes || !axes.contains(axis)).collect();
    site.graph.emit_one(Op::Broadcast { shape, axes: retained }, &[value])
}

/// Equal shares for the elements that equal the result. A NaN equals none, so that its share is 0 / 0.
fn extreme(site: &mut Site<'_>, axes: &[Axis], keep_axes: bool, g: Value) -> Result<Value> {
    let (x, y) = (site.input(0)?, site.output(0)?);
    let y = broadcast_back(site, y, axes, keep_axes)?;
    let ties = site.graph.equal(x, y)?;
    let axes_list: AxisList = axes.into();
    let count = Op::Reduce { op: ReduceOp::Sum, axes: axes_list, keep_axes };
    let count = site.graph.emit_one(count, &[ties])?;
    let each = site.graph.divide(g, count)?;
    let each = broadcast_back(site, each, axes, keep_axes)?;
    site.graph.multiply(each, ties)
}

/// `g` times the product of the other elements, without a division, so that zeros are exact.
///
/// A tree of slices multiplies the elements pair by pair. The tree is then walked down again: the cotangent
/// of each factor is its parent's times the other factor.
fn product(site: &mut Site<'_>, axes: &[Axis], g: Value) -> Result<Value> {
    let x = site.float_input(0)?;
    let graph = &mut *site.graph;
    let shape = graph.ty(x).shape.clone();
    let retained: AxisList = shape.axes().filter(|axis| !axes.contains(axis)).collect();
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    let rest: usize = retained.iter().map(|&axis| shape[axis]).product();
    if shape.size() == 0 {
        let zero = graph.scalar(Scalar::zero(graph.ty(g).dtype))?;
        return fill(graph, zero, &shape);
    }
    // The reduced axes first, flattened.
    let order: AxisList = axes.iter().chain(&retained).copied().collect();
    let x = graph.emit_one(Op::Transpose { axes: order.clone() }, &[x])?;
    let mut factors = graph.emit_one(Op::Reshape { shape: Shape::new(&[count, rest]) }, &[x])?;
    let mut levels: SmallVec<[(Value, Value, bool); 8]> = SmallVec::new();
    let mut length = count;
    while length > 1 {
        let odd = length % 2 == 1;
        if odd {
            let one = graph.scalar(Scalar::one(graph.ty(factors).dtype))?;
            factors = lengthen(graph, factors, one, 1)?;
            length += 1;
        }
        length /= 2;
        let left = rows(graph, factors, 0, length)?;
        let right = rows(graph, factors, length, length)?;
        levels.push((left, right, odd));
        factors = graph.multiply(left, right)?;
    }
    let mut g = graph.emit_one(Op::Reshape { shape: Shape::new(&[1, rest]) }, &[g])?;
    for (left, right, odd) in levels.into_iter().rev() {
        let to_left = graph.multiply(g, right)?;
        let to_right = graph.multiply(g, left)?;
        let axis = Axis(0);
        g = graph.emit_one(Op::Concatenate { axis }, &[to_left, to_right])?;
        if odd {
            let zero = graph.scalar(Scalar::zero(graph.ty(g).dtype))?;
            g = lengthen(graph, g, zero, -1)?;
        }
    }
    let permuted = shape.permuted(&order);
    let g = graph.emit_one(Op::Reshape { shape: permuted }, &[g])?;
    let axes = region::inverse(&order);
    graph.emit_one(Op::Transpose { axes }, &[g])
}

/// Rows of a matrix.
pub(crate) fn rows(graph: &mut crate::graph::Graph, x: Value, start: usize, count: usize) -> Result<Value> {
    let width = graph.ty(x).shape.sizes()[1];
    let starts = Starts::Static(SmallVec::from_slice(&[start, 0]));
    region::window(graph, x, starts, &[], SmallVec::from_slice(&[count, width]))
}

/// A matrix with rows appended at the end, or removed there.
fn lengthen(graph: &mut crate::graph::Graph, x: Value, value: Value, by: i64) -> Result<Value> {
    let config = SmallVec::from_slice(&[Padding { high: by, ..Padding::default() }, Padding::default()]);
    graph.emit_one(Op::Pad { config }, &[x, value])
}
