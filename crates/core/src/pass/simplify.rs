//! Rewrites of single nodes that keep their values and make the graph smaller.

use crate::builder::Builder;
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::graph::{Graph, Value};
use crate::infer;
use crate::op::{ArithmeticOp, BinaryOp, ElementWise, Op, OpClass, OperandOrder, Outputs, Primitive, Starts};
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// A value equal to `op` on `operands`, where no new node or a simpler one is enough.
///
/// Nx makes the same simplifications during construction, and users see them in printed graphs: `x + 0`,
/// `x - 0`, `x * 1`, `x / 1` and `x ** 1` are `x`, converted; `x + (0 - y)` is `x - y`; `x * (1 / y)` is
/// `x / y`. Parameters of one index are one value, and so are equal constants. Ops that change nothing return
/// their operand. `x * 0` stays, since `x` may be infinite or NaN.
///
/// # Errors
/// Those of `infer` for the simpler op; none is known that `op` would not have too.
pub fn at_construction(graph: &mut Graph, op: &Op, operands: &[Value]) -> Result<Option<Value>> {
    match op.class() {
        OpClass::Parameter { index, ty } => {
            Ok(graph.find_parameter(index).filter(|&value| graph.ty(value) == ty))
        }
        OpClass::Constant(scalar) => Ok(graph.find_constant(scalar)),
        OpClass::Primitive(Primitive::ElementWise(ElementWise::Binary(op))) => {
            let &[a, b] = operands else { return Ok(None) };
            binary(graph, op, a, b)
        }
        OpClass::Primitive(Primitive::ElementWise(ElementWise::AsType(dtype))) => {
            let &[x] = operands else { return Ok(None) };
            as_type(graph, dtype, x)
        }
        OpClass::Primitive(
            Primitive::ElementWise(ElementWise::Bitcast(_))
            | Primitive::View
            | Primitive::Broadcast
            | Primitive::Movement
            | Primitive::Selection,
        ) => Ok(identity(graph, op, operands)),
        OpClass::Primitive(
            Primitive::Creation
            | Primitive::ElementWise(ElementWise::Unary(_) | ElementWise::Select | ElementWise::Clip)
            | Primitive::Update
            | Primitive::Reduction
            | Primitive::Order
            | Primitive::Positions
            | Primitive::Window
            | Primitive::Contraction
            | Primitive::Transform
            | Primitive::Solve,
        )
        | OpClass::Literal(_)
        | OpClass::Identity(_)
        | OpClass::Barrier
        | OpClass::Collective(_)
        | OpClass::Fold(_)
        | OpClass::WindowFold(_)
        | OpClass::Cond(_)
        | OpClass::While(_)
        | OpClass::CustomGrad(_)
        | OpClass::Implicit(_)
        | OpClass::Hook(_)
        | OpClass::RuntimeCall(_)
        | OpClass::Block(_)
        | OpClass::UserBlock(_) => Ok(None),
    }
}

/// The types of `op`'s outputs, unless it is illegal: the builder then reports the error.
fn types_of(graph: &Graph, op: &Op, operands: &[Value]) -> Option<Outputs> {
    let types: smallvec::SmallVec<[&TensorType; 4]> =
        operands.iter().map(|&operand| graph.ty(operand)).collect();
    infer::infer(op, &types).ok()
}

fn binary(graph: &mut Graph, op: BinaryOp, a: Value, b: Value) -> Result<Option<Value>> {
    let BinaryOp::Arithmetic(arithmetic) = op else { return Ok(None) };
    // The number that makes the op an identity: on the right, and for commutative ops on the left too.
    let right = match arithmetic {
        ArithmeticOp::Add | ArithmeticOp::Subtract => Some(0),
        ArithmeticOp::Multiply | ArithmeticOp::Divide | ArithmeticOp::Pow => Some(1),
        ArithmeticOp::Atan2
        | ArithmeticOp::Quotient
        | ArithmeticOp::Remainder
        | ArithmeticOp::Max
        | ArithmeticOp::Min => return Ok(None),
    };
    let left = right.filter(|_| op.traits().order == OperandOrder::Commutes);
    let is = |graph: &Graph, value: Value, number: Option<i32>| {
        number.is_some_and(|number| constant(graph, value).is_some_and(|scalar| scalar.is(number)))
    };
    for (operand, neutral, number) in [(a, b, right), (b, a, left)] {
        if is(graph, neutral, number)
            && let Some(types) = types_of(graph, &Op::Binary(op), &[a, b])
            && types[0].shape == graph.ty(operand).shape
        {
            let dtype = types[0].dtype;
            return if graph.ty(operand).dtype == dtype {
                Ok(Some(operand))
            } else {
                Ok(Some(graph.emit_one(Op::AsType { dtype }, &[operand])?))
            };
        }
    }
    // `x + (0 - y)` and `x * (1 / y)`, in either order.
    let (outer, number) = match arithmetic {
        ArithmeticOp::Add => (BinaryOp::SUBTRACT, 0),
        ArithmeticOp::Multiply => (BinaryOp::DIVIDE, 1),
        ArithmeticOp::Subtract
        | ArithmeticOp::Divide
        | ArithmeticOp::Pow
        | ArithmeticOp::Atan2
        | ArithmeticOp::Quotient
        | ArithmeticOp::Remainder
        | ArithmeticOp::Max
        | ArithmeticOp::Min => return Ok(None),
    };
    for (x, side) in [(a, b), (b, a)] {
        let node = graph.node(side);
        if node.op != Op::Binary(outer) || !is(graph, node.inputs[0], Some(number)) {
            continue;
        }
        let y = node.inputs[1];
        let Some(now) = types_of(graph, &Op::Binary(op), &[a, b]) else { continue };
        let Some(then) = types_of(graph, &Op::Binary(outer), &[x, y]) else { continue };
        // A narrower intermediate type would wrap or round where the simpler op does not.
        let exact = op != BinaryOp::ADD || graph.ty(y).dtype == now[0].dtype;
        if now == then && graph.ty(side).dtype == now[0].dtype && exact {
            return Ok(Some(graph.emit_one(Op::Binary(outer), &[x, y])?));
        }
    }
    Ok(None)
}

/// The value of a constant, broadcast or not.
pub(super) fn constant(graph: &Graph, value: Value) -> Option<Scalar> {
    let mut node = graph.node(value);
    if let Op::Broadcast { .. } = &node.op {
        node = graph.node(node.inputs[0]);
    }
    if let Op::Constant(scalar) = &node.op { Some(*scalar) } else { None }
}

fn as_type(graph: &mut Graph, dtype: DType, x: Value) -> Result<Option<Value>> {
    if graph.ty(x).dtype == dtype {
        return Ok(Some(x));
    }
    let node = graph.node(x);
    let Op::AsType { dtype: middle } = node.op else { return Ok(None) };
    let source = node.inputs[0];
    let from = graph.ty(source).dtype;
    // Conversions between integers and floats and back follow other rules than those among integers.
    let is_composable = from == dtype || from.is_bool() || from.is_integer() == middle.is_integer();
    if represents(middle, from) && is_composable {
        return Ok(Some(graph.emit_one(Op::AsType { dtype }, &[source])?));
    }
    Ok(None)
}

/// Whether every value of type `narrow` is one of type `wide`.
fn represents(wide: DType, narrow: DType) -> bool {
    if wide == narrow {
        return true;
    }
    match (narrow.kind(), wide.kind()) {
        (Kind::Bool, _) => true,
        (Kind::Unsigned, Kind::Unsigned) | (Kind::Signed, Kind::Signed) => wide.bits() >= narrow.bits(),
        (Kind::Unsigned, Kind::Signed) => wide.bits() > narrow.bits(),
        (Kind::Unsigned | Kind::Signed, Kind::Float | Kind::Complex) => {
            narrow.bits() <= significand(wide.to_real())
        }
        (Kind::Float, Kind::Float | Kind::Complex) => match (narrow, wide.to_real()) {
            (narrow, wide) if narrow == wide => true,
            (DType::F8E5M2, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
            | (DType::F8E4M3FN, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
            | (DType::F16 | DType::BF16, DType::F32 | DType::F64)
            | (DType::F32, DType::F64) => true,
            _ => false,
        },
        (Kind::Complex, Kind::Complex) => wide.bits() >= narrow.bits(),
        (Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Complex, Kind::Bool)
        | (Kind::Signed | Kind::Float, Kind::Unsigned)
        | (Kind::Float, Kind::Signed)
        | (Kind::Complex, Kind::Unsigned | Kind::Signed | Kind::Float) => false,
    }
}

/// The bits of a float's significand, including the hidden bit: integers up to two to this power are exact.
fn significand(float: DType) -> usize {
    let bits = [
        (DType::F8E5M2, 3),
        (DType::F8E4M3FN, 4),
        (DType::BF16, 8),
        (DType::F16, 11),
        (DType::F32, 24),
        (DType::F64, 53),
    ];
    let found = bits.into_iter().find(|(dtype, _)| *dtype == float);
    found.expect("every float has a significand").1
}

/// The first operand, if an op that moves elements leaves all in their positions and keeps the type. Ops
/// without a pattern here are not simplified.
fn identity(graph: &Graph, op: &Op, operands: &[Value]) -> Option<Value> {
    let &x = operands.first()?;
    let ty = graph.ty(x);
    let same = if let Op::Bitcast { dtype } = op {
        ty.dtype == *dtype
    } else if let Op::Reshape { shape } = op {
        ty.shape == *shape
    } else if let Op::Broadcast { shape, axes } = op {
        ty.shape == *shape && axes.len() == shape.rank()
    } else if let Op::Squeeze { axes } | Op::Reverse { axes } = op {
        axes.is_empty()
    } else if let Op::Transpose { axes } = op {
        axes.len() == ty.shape.rank() && axes.iter().copied().eq(ty.shape.axes())
    } else if let Op::Pad { config } = op {
        config.len() == ty.shape.rank()
            && config.iter().all(|axis| *axis == crate::op::Padding::default())
            && operands.get(1).is_some_and(|&value| graph.ty(value).dtype == ty.dtype)
    } else if let Op::Concatenate { .. } = op {
        operands.len() == 1
    } else if let Op::Slice { starts: Starts::Static(starts), lengths, strides } = op {
        starts.iter().all(|&start| start == 0)
            && lengths[..] == *ty.shape.sizes()
            && strides.iter().all(|&stride| stride == 1)
    } else {
        false
    };
    // Legal ops only: an axis out of range remains an error.
    let legal = same && types_of(graph, op, operands).is_some_and(|types| types[0] == *ty);
    legal.then_some(x)
}
