//! Products of converted operands: backends read an operand of a narrower type as it is, and convert a part of it at a
//! time.

use std::sync::Arc;

use crate::backend::Backend;
use crate::dtype::DType;
use crate::graph::{Graph, Value, Values};
use crate::op::{Op, Outputs};

/// The operands of an op without the conversion of one of them, if it is a product in f32 for which the backend reads
/// this operand as it is stored. Every element of the narrower types is one of f32, so that the product has the same bits.
pub(super) fn uncast(
    graph: &Graph,
    op: &Op,
    inputs: &[Value],
    outputs: &Outputs,
    backend: &Arc<dyn Backend>,
) -> Option<Values> {
    let (Op::Dot { .. }, &[a, b]) = (op, inputs) else { return None };
    let converted = |value: Value| {
        let node = graph.node(value);
        if let Op::AsType { dtype: DType::F32 } = node.op { Some(node.inputs[0]) } else { None }
    };
    let sources = [converted(a), converted(b)];
    if outputs[0].dtype != DType::F32 || sources == [None; 2] {
        return None;
    }
    let [left, right] = [sources[0].unwrap_or(a), sources[1].unwrap_or(b)];
    let [reads_left, reads_right] = backend.reads_as_stored(op, [graph.ty(left), graph.ty(right)]);
    // The type of the product stays that of the other operand.
    let is_f32 = |value: Value| graph.ty(value).dtype == DType::F32;
    let pair = if reads_left && is_f32(b) {
        [left, b]
    } else if reads_right && is_f32(a) {
        [a, right]
    } else {
        return None;
    };
    (pair != [a, b]).then(|| pair.into_iter().collect())
}
