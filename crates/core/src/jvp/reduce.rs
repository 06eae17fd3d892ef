//! Tangents of reductions. `t` are the tangents of the operands.

use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::grad::{Site, reduce as reverse, region};
use crate::graph::{Graph, Value};
use crate::op::{Op, ReduceOp};
use crate::shape::{Axis, AxisList, Shape, TensorType};

/// `y = op(x)` over `axes`.
pub(super) fn reduce(
    site: &mut Site<'_>,
    op: ReduceOp,
    axes: &[Axis],
    keep_axes: bool,
    t: &[Option<Value>],
) -> Result<Option<Value>> {
    let Some(t) = t[0] else { return Ok(None) };
    match op {
        ReduceOp::Sum => total(site, axes, keep_axes, t).map(Some),
        ReduceOp::Product => product(site, axes, t).map(Some),
        ReduceOp::ReduceMax | ReduceOp::ReduceMin => extreme(site, axes, keep_axes, t).map(Some),
        ReduceOp::All | ReduceOp::Any => Ok(None),
    }
}

fn total(site: &mut Site<'_>, axes: &[Axis], keep_axes: bool, x: Value) -> Result<Value> {
    site.graph.emit_one(Op::Reduce { op: ReduceOp::Sum, axes: axes.into(), keep_axes }, &[x])
}

/// The mean of the tangents of the elements that equal the result. A NaN equals none, so that the mean is 0 / 0.
fn extreme(site: &mut Site<'_>, axes: &[Axis], keep_axes: bool, t: Value) -> Result<Value> {
    let (x, y) = (site.input(0)?, site.output(0)?);
    let y = reverse::broadcast_back(site, y, axes, keep_axes)?;
    let ties = site.graph.equal(x, y)?;
    let masked = site.masked(ties, t)?;
    let (sum, count) = (total(site, axes, keep_axes, masked)?, total(site, axes, keep_axes, ties)?);
    site.graph.divide(sum, count)
}

/// The product rule, without a division, so that zeros are exact: a tree of slices multiplies pairs of elements and of
/// their tangents.
fn product(site: &mut Site<'_>, axes: &[Axis], t: Value) -> Result<Value> {
    let x = site.float_input(0)?;
    let result = site.output_ty(0).shape.without_names();
    let graph = &mut *site.graph;
    let shape = graph.ty(x).shape.clone();
    let retained: AxisList = shape.axes().filter(|axis| !axes.contains(axis)).collect();
    let mut length: usize = axes.iter().map(|&axis| shape[axis]).product();
    let rest: usize = retained.iter().map(|&axis| shape[axis]).product();
    if shape.size() == 0 {
        let dtype = graph.ty(t).dtype;
        return region::zeros(graph, &TensorType { dtype, shape: result });
    }
    // The reduced axes first, flattened.
    let axes: AxisList = axes.iter().chain(&retained).copied().collect();
    let rows = Op::Reshape { shape: Shape::new(&[length, rest]) };
    let flat = |graph: &mut Graph, x: Value| {
        let x = graph.emit_one(Op::Transpose { axes: axes.clone() }, &[x])?;
        graph.emit_one(rows.clone(), &[x])
    };
    let (mut x, mut t) = (flat(graph, x)?, flat(graph, t)?);
    while length > 1 {
        let half = length / 2;
        let (x0, x1) = (reverse::rows(graph, x, 0, half)?, reverse::rows(graph, x, half, half)?);
        let (t0, t1) = (reverse::rows(graph, t, 0, half)?, reverse::rows(graph, t, half, half)?);
        let (mut values, tangents) =
            (graph.multiply(x0, x1)?, (graph.multiply(t0, x1)?, graph.multiply(x0, t1)?));
        let mut tangents = graph.add(tangents.0, tangents.1)?;
        if length % 2 == 1 {
            // The last row of an odd number waits for the next level.
            let axis = Axis(0);
            let (last, tangent) =
                (reverse::rows(graph, x, length - 1, 1)?, reverse::rows(graph, t, length - 1, 1)?);
            values = graph.emit_one(Op::Concatenate { axis }, &[values, last])?;
            tangents = graph.emit_one(Op::Concatenate { axis }, &[tangents, tangent])?;
        }
        (x, t) = (values, tangents);
        length = half + length % 2;
    }
    graph.emit_one(Op::Reshape { shape: result }, &[t])
}
