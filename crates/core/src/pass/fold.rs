//! Constant folding.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{finish, rebuild};
use crate::backend::{Backend, HostMemory, Operand};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::infer;
use crate::op::{BinaryOp, ElementWise, Op, OpClass, Primitive, UnaryOp};
use crate::pass::simplify::constant;
use crate::region::Region;
use crate::scalar::{Number, Scalar};
use crate::shape::TensorType;

/// Replaces element-wise ops on constants by their values. `backend` computes those whose bits are not specified, so
/// that no second implementation of the arithmetic could differ from it. Ops on broadcast constants become one
/// broadcast.
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
    let OpClass::Primitive(Primitive::ElementWise(elementwise)) = op.class() else { return Ok(None) };
    let constants: Option<SmallVec<[Scalar; 3]>> =
        inputs.iter().map(|&input| constant(graph, input)).collect();
    let ([output], Some(constants)) = (outputs, constants) else { return Ok(None) };
    let scalar = specified(elementwise, &constants, output.dtype);
    let Some(scalar) = scalar.or_else(|| evaluate(op, &constants, backend)) else {
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

/// The ops whose results IEEE 754 rounds to nearest.
const ARITHMETIC: [(BinaryOp, fn(f64, f64) -> f64); 4] = [
    (BinaryOp::ADD, |a, b| a + b),
    (BinaryOp::SUBTRACT, |a, b| a - b),
    (BinaryOp::MULTIPLY, |a, b| a * b),
    (BinaryOp::DIVIDE, |a, b| a / b),
];

/// The result of an op for which IEEE 754 specifies every bit, so that the backend need not be asked: conversions of
/// floats and their arithmetic. None for other ops, and where a result or an operand is not normal: NaN have no
/// specified bits, and another library may have set the processor to flush the smallest numbers.
///
/// f32 is computed in f64 and rounded again, which gives the nearest f32: 53 bits are more than twice 24 (Figueroa,
/// "When is double rounding innocuous?", 1995).
fn specified(op: ElementWise, constants: &[Scalar], dtype: DType) -> Option<Scalar> {
    let normal = |scalar: Scalar| match (scalar.dtype(), scalar.value()) {
        (DType::F64, Number::Float(value)) => value.is_normal().then_some(value),
        (DType::F32, Number::Float(value)) => (value as f32).is_normal().then_some(value),
        _ => None,
    };
    let value = match (op, constants) {
        (ElementWise::AsType(_), &[x]) => normal(x)?,
        (ElementWise::Unary(UnaryOp::NEGATE), &[x]) => -normal(x)?,
        (ElementWise::Binary(op), &[a, b]) if a.dtype() == dtype && b.dtype() == dtype => {
            let (_, of) = ARITHMETIC.iter().find(|(known, _)| *known == op)?;
            of(normal(a)?, normal(b)?)
        }
        _ => return None,
    };
    if dtype != DType::F32 && dtype != DType::F64 {
        return None;
    }
    let scalar = Scalar::new(dtype, value).ok()?;
    normal(scalar).map(|_| scalar)
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
