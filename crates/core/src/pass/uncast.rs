//! Products of converted operands: compilers read an operand of a narrower type as it is, and convert a part of it at a
//! time.

use super::product_sizes;
use crate::dtype::DType;
use crate::graph::{Graph, Value, Values};
use crate::op::{Op, Outputs};

/// Multiplications of a product from which on an operand need not be converted beforehand.
const MIN_WORK: usize = 1 << 20;

/// The operands of an op, the larger one without its conversion, if it is a product of large matrices in f32. Every
/// element of the narrower types is one of f32, so that the product has the same bits.
pub(super) fn uncast(graph: &Graph, op: &Op, inputs: &[Value], outputs: &Outputs) -> Option<Values> {
    let (Op::Dot { contract_a, batch_a, contract_b, .. }, &[a, b]) = (op, inputs) else { return None };
    let [left, right] = [a, b].map(|value| graph.ty(value).shape.sizes());
    let [m, n, k] = product_sizes((left, contract_a), (right, contract_b), batch_a.len());
    if outputs[0].dtype != DType::F32 || m.min(n) < 2 || m.saturating_mul(n).saturating_mul(k) < MIN_WORK {
        return None;
    }
    let (large, other) = if m > n { (a, b) } else { (b, a) };
    let from = graph.node(large);
    let Op::AsType { dtype: DType::F32 } = from.op else { return None };
    let own = graph.ty(from.inputs[0]).dtype;
    let is_narrow = own.is_float() && own.bits() < 32 || own == DType::S8 || own == DType::U8;
    // The type of the product stays that of the other operand.
    if !is_narrow || graph.ty(other).dtype != DType::F32 {
        return None;
    }
    let pair = if m > n { [from.inputs[0], b] } else { [a, from.inputs[0]] };
    Some(pair.into_iter().collect())
}
