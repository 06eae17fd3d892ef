//! Products of transposed operands: their axes are renumbered, so that the operands are read as they lie.

use super::product_sizes;
use crate::graph::{Graph, Value, Values};
use crate::op::Op;
use crate::shape::AxisList;

/// An op and its operands without transpositions, if it is a product of matrices and one of these is transposed.
///
/// The products of an element are added in the same order. Those with vectors stay: theirs is the order of the matrix.
pub(super) fn untransposed(graph: &Graph, op: &Op, inputs: &[Value]) -> Option<(Op, Values)> {
    let (Op::Dot { contract_a, batch_a, contract_b, batch_b }, &[a, b]) = (op, inputs) else { return None };
    let batch = batch_a.len();
    let [left, right] = [a, b].map(|value| graph.ty(value).shape.sizes());
    if product_sizes((left, contract_a), (right, contract_b), batch).iter().any(|&size| size < 2) {
        return None;
    }
    let (left, right) = (source(graph, a, contract_a, batch), source(graph, b, contract_b, batch));
    if left.is_none() && right.is_none() {
        return None;
    }
    let (a, contract_a) = left.unwrap_or((a, contract_a.clone()));
    let (b, contract_b) = right.unwrap_or((b, contract_b.clone()));
    let op = Op::Dot { contract_a, batch_a: batch_a.clone(), contract_b, batch_b: batch_b.clone() };
    Some((op, [a, b].into_iter().collect()))
}

/// The value that an operand is the transpose of, and its contracted axes, if its other axes keep their order.
fn source(graph: &Graph, value: Value, contract: &AxisList, batch: usize) -> Option<(Value, AxisList)> {
    let node = graph.node(value);
    let Op::Transpose { axes } = &node.op else { return None };
    let kept = graph.ty(value).shape.axes().filter(|axis| !contract.contains(axis));
    let kept: AxisList = kept.map(|axis| axes[axis.index()]).collect();
    let keeps_batch = kept.iter().take(batch).enumerate().all(|(at, axis)| axis.index() == at);
    let contract = contract.iter().map(|axis| axes[axis.index()]).collect();
    (keeps_batch && kept.is_sorted()).then_some((node.inputs[0], contract))
}
