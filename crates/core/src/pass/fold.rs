//! Constant folding.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{finish, rebuild};
use crate::backend::{Backend, HostMemory, Operand};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::infer;
use crate::op::{Op, OpClass, Primitive};
use crate::pass::simplify::constant;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// Replaces element-wise ops on constants by their values. `backend` computes them, so that no second
/// implementation of the arithmetic could differ from it. Ops on broadcast constants become one broadcast.
///
/// Ops that fail on the backend stay in the graph, so that a run that reaches them reports the error at its
/// line.
///
/// # Errors
/// None is known; the signature is that of all passes.
pub fn fold(region: &Region, backend: &Arc<dyn Backend>) -> Result<Region> {
    let new = rebuild(region, |graph, _, node, inputs| {
        if let Some(value) = fold_node(graph, &node.op, &inputs, &node.outputs[..], backend)? {
            return Ok(SmallVec::from_elem(value, 1));
        }
        graph.push_typed(node.op.clone(), inputs, node.outputs.clone())
    })?;
    Ok(finish("fold", region, new))
}

/// The value of an element-wise op on constants, added to the graph.
pub(super) fn fold_node(
    graph: &mut Graph,
    op: &Op,
    inputs: &[Value],
    outputs: &[TensorType],
    backend: &Arc<dyn Backend>,
) -> Result<Option<Value>> {
    if !is_elementwise(op) {
        return Ok(None);
    }
    let constants: Option<SmallVec<[Scalar; 3]>> =
        inputs.iter().map(|&input| constant(graph, input)).collect();
    let [output] = outputs else { return Ok(None) };
    let Some(scalar) = constants.and_then(|constants| evaluate(op, &constants, backend)) else {
        return Ok(None);
    };
    if scalar.dtype() != output.dtype {
        return Ok(None);
    }
    let known = graph.find_constant(scalar);
    let value = match known {
        Some(value) => value,
        None => graph.push(Op::Constant(scalar), &[])?[0],
    };
    if output.shape.rank() == 0 {
        return Ok(Some(value));
    }
    let broadcast = Op::Broadcast { shape: output.shape.clone(), axes: SmallVec::new() };
    Ok(Some(graph.push(broadcast, &[value])?[0]))
}

/// Runs an op on scalars.
fn evaluate(op: &Op, constants: &[Scalar], backend: &Arc<dyn Backend>) -> Option<Scalar> {
    let types: SmallVec<[TensorType; 3]> =
        constants.iter().map(|scalar| TensorType::scalar(scalar.dtype())).collect();
    let borrowed: SmallVec<[&TensorType; 3]> = types.iter().collect();
    let outputs = infer::infer(op, &borrowed).ok()?;
    let mut operands = SmallVec::new();
    for (scalar, ty) in constants.iter().zip(&types) {
        let memory = HostMemory::new(Arc::new(scalar.to_bytes()));
        operands.push(Operand { ty: ty.clone(), buffer: backend.from_host(ty, memory).ok()? });
    }
    let buffers = backend.run(op, operands, &outputs).ok()?;
    let dtype = outputs[0].dtype;
    let mut bytes = vec![0; dtype.storage_bytes()];
    buffers[0].read(&mut bytes).ok()?;
    Some(Scalar::from_bytes(dtype, &bytes))
}

/// Whether each element of the result depends on one element of each operand.
fn is_elementwise(op: &Op) -> bool {
    matches!(op.class(), OpClass::Primitive(Primitive::ElementWise(_)))
}
