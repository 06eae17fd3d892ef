//! Identity matrices that are combined with other elements: `as_type(position of the row == position of the column)`.

use super::slices::element_wise;
use super::{FEW, named, push};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Value};
use crate::op::{BinaryOp, Op};
use crate::shape::Shape;

/// The node as element-wise ops, if it is an identity matrix that nothing but element-wise ops read.
pub(super) fn written(graph: &mut Graph, node: &Node, users: &[&Op]) -> Result<Option<Value>> {
    let Op::Eye { shape, dtype } = &node.op else { return Ok(None) };
    let is_read_by_elements = !users.is_empty() && users.iter().all(|user| element_wise(user).is_some());
    let sizes = shape.sizes();
    let is_narrow = sizes.iter().all(|&size| i32::try_from(size).is_ok());
    if !is_read_by_elements || !is_narrow || shape.size() < FEW {
        return Ok(None);
    }
    let mut axes = shape.axes().rev();
    let (Some(column), Some(row)) = (axes.next(), axes.next()) else { return Ok(None) };
    let plain = Shape::new(sizes);
    let mut position =
        |axis| push(graph, Op::Iota { shape: plain.clone(), dtype: DType::S32, axis: Some(axis) }, &[]);
    let (row, column) = (position(row)?, position(column)?);
    let is_equal = push(graph, Op::Binary(BinaryOp::EQUAL), &[row, column])?;
    let value = push(graph, Op::AsType { dtype: *dtype }, &[is_equal])?;
    named(graph, value, &node.outputs[0]).map(Some)
}
