//! Additions of one element to each row of a constant: `select(position == label, constant + update, constant)`.
//!
//! The gradients of `take_along_axis` are such. A scatter would write the constant, and then read and write each row
//! again; as an element-wise op it is computed where it is read.

use super::{FEW, named, push};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Value};
use crate::op::{BinaryOp, Op, ScatterOp};
use crate::pass::simplify::constant;
use crate::scalar::{Number, Scalar};
use crate::shape::{Axis, Shape, Sizes};

/// A position in each row: the label, its axis, and the sizes of all rows.
struct Labels {
    label: Value,
    axis: Axis,
    dtype: DType,
    rows: Sizes,
}

/// The node as element-wise ops, if it is such an addition.
pub(super) fn written(graph: &mut Graph, node: &Node, inputs: &[Value]) -> Result<Option<Value>> {
    let Op::Scatter { op: ScatterOp::IndexedAdd, axes } = &node.op else { return Ok(None) };
    let &[x, positions, updates] = inputs else { return Ok(None) };
    let ty = &node.outputs[0];
    let is_same = [x, updates].iter().all(|&operand| graph.ty(operand).dtype == ty.dtype);
    let Some(start) = constant(graph, x) else { return Ok(None) };
    if ty.size() < FEW || !is_same || ty.dtype.is_bool() || axes.len() != ty.shape.rank() {
        return Ok(None);
    }
    let Some(Labels { label, axis, dtype, rows }) = labels(graph, positions, &ty.shape) else {
        return Ok(None);
    };
    let rows = Shape::new(&rows);
    let scalar = |graph: &mut Graph, number: i128| -> Result<Value> {
        push(graph, Op::Constant(Scalar::new(dtype, Number::Int(number))?), &[])
    };
    // Negative positions count from the end; others out of range select nothing.
    let label =
        if graph.ty(label).dtype == dtype { label } else { push(graph, Op::AsType { dtype }, &[label])? };
    let label = push(graph, Op::Reshape { shape: rows.clone() }, &[label])?;
    let zero = scalar(graph, 0)?;
    let size = scalar(graph, ty.shape[axis] as i128)?;
    let is_negative = push(graph, Op::Binary(BinaryOp::LESS), &[label, zero])?;
    let from_end = push(graph, Op::Binary(BinaryOp::ADD), &[label, size])?;
    let label = push(graph, Op::Select, &[is_negative, from_end, label])?;
    let plain = Shape::new(ty.shape.sizes());
    let own = push(graph, Op::Iota { shape: plain, dtype, axis: Some(axis) }, &[])?;
    let is_there = push(graph, Op::Binary(BinaryOp::EQUAL), &[own, label])?;
    let start = push(graph, Op::Constant(start), &[])?;
    let updates = push(graph, Op::Reshape { shape: rows }, &[updates])?;
    let sum = push(graph, Op::Binary(BinaryOp::ADD), &[start, updates])?;
    let value = push(graph, Op::Select, &[is_there, sum, start])?;
    named(graph, value, ty).map(Some)
}

/// The labels of positions that have one in each row: of each entry but one the numbers that count along its axis.
fn labels(graph: &Graph, positions: Value, shape: &Shape) -> Option<Labels> {
    let mut node = graph.node(positions);
    while let Op::Reshape { .. } = node.op {
        node = graph.node(node.inputs[0]);
    }
    let Op::Stack { axis, .. } = &node.op else { return None };
    let rows: Sizes = graph.ty(node.inputs[0]).shape.sizes().into();
    let dtype = node.outputs[0].dtype;
    if node.inputs.len() != shape.rank() || rows.len() != shape.rank() || *axis != rows.len() {
        return None;
    }
    if graph.ty(positions).shape.rank() != 2 || ![DType::S32, DType::S64].contains(&dtype) {
        return None;
    }
    let mut found = None;
    for (axis, &entry) in shape.axes().zip(&node.inputs) {
        let at = axis.index();
        if let Op::Iota { axis: Some(along), .. } = &graph.node(entry).op
            && *along == axis
            && rows[at] == shape[axis]
        {
            continue;
        }
        if found.is_some() || rows[at] != 1 {
            return None;
        }
        found = Some((entry, axis));
    }
    let (label, axis) = found?;
    // Narrower labels cannot be compared with all positions.
    let is_wide = dtype == DType::S64 || i32::try_from(shape.size()).is_ok();
    is_wide.then_some(Labels { label, axis, dtype, rows })
}
