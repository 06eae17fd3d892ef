//! Identity matrices that are combined with other elements: `as_type(position of the row == position of the column)`.

use rustc_hash::FxHashSet;

use super::slices::element_wise;
use super::{FEW, named, push, users};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Value};
use crate::op::{BinaryOp, Op};
use crate::region::Region;
use crate::shape::Shape;

/// The positions of identity matrices that nothing but element-wise ops read.
pub(super) fn read_by_elements(region: &Region) -> FxHashSet<usize> {
    let nodes = region.graph().nodes();
    let is_eye = |node: &Node| {
        let Op::Eye { .. } = node.op else { return false };
        true
    };
    if !nodes.iter().any(is_eye) {
        return FxHashSet::default();
    }
    let users = users(region);
    let is_read_so = |position: usize| {
        let is_result = region.results().iter().any(|result| result.node as usize == position);
        let users = &users[position];
        !is_result
            && !users.is_empty()
            && users.iter().all(|&user| element_wise(&nodes[user as usize].op).is_some())
    };
    (0..nodes.len()).filter(|&position| is_eye(&nodes[position]) && is_read_so(position)).collect()
}

/// The node as element-wise ops, if it is an identity matrix.
pub(super) fn written(graph: &mut Graph, node: &Node) -> Result<Option<Value>> {
    let Op::Eye { shape, dtype } = &node.op else { return Ok(None) };
    let sizes = shape.sizes();
    let is_narrow = sizes.iter().all(|&size| i32::try_from(size).is_ok());
    if !is_narrow || shape.size() < FEW {
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
