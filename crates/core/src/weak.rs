//! Weak numbers: arguments of a traced function that adopt the dtype of the tensors they are combined with.
//!
//! Weakness belongs to the handle of a value, never to the graph. A weak tensor is an ordinary value of its
//! number's default dtype: s32, f32 or c64. It also records how it was computed from arguments and numbers,
//! so that it can be recomputed in the dtype of a tensor: an argument becomes a parameter of that dtype, and
//! the operators are applied again. Unneeded nodes are dropped when the trace is closed.

use std::mem;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::builder::{Arg, BuildElementwise, Builder, Ops};
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::op::{ArithmeticOp, BinaryOp, UnaryOp};
use crate::scalar::Number;
use crate::shape::TensorType;
use crate::tensor::{Data, Tensor};

/// An operator of the host language whose result is weak if all of its operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// With one operand.
    Unary(UnaryOp),
    /// With two operands.
    Binary(BinaryOp),
    /// The quotient rounded down.
    FloorDivide,
    /// The remainder of [`Operator::FloorDivide`].
    FloorModulo,
}

impl Operator {
    /// The operator for a unary op, if it keeps its operand weak.
    pub fn of_unary(op: UnaryOp) -> Option<Operator> {
        [UnaryOp::NEGATE, UnaryOp::ABS, UnaryOp::BITWISE_NOT].contains(&op).then_some(Operator::Unary(op))
    }

    /// As [`Operator::of_unary`], with two operands.
    pub fn of_binary(op: BinaryOp) -> Option<Operator> {
        let is_operator = match op {
            BinaryOp::Bitwise(_) => true,
            BinaryOp::Arithmetic(op) => match op {
                ArithmeticOp::Add
                | ArithmeticOp::Subtract
                | ArithmeticOp::Multiply
                | ArithmeticOp::Divide
                | ArithmeticOp::Pow => true,
                ArithmeticOp::Atan2
                | ArithmeticOp::Quotient
                | ArithmeticOp::Remainder
                | ArithmeticOp::Max
                | ArithmeticOp::Min => false,
            },
            BinaryOp::Comparison(_) | BinaryOp::Logical(_) | BinaryOp::Complex => false,
        };
        is_operator.then_some(Operator::Binary(op))
    }

    /// The dtype in which the operator computes a value of default dtype `own` for the dtype `target`: narrow
    /// floats are rounded once at the end, real values are computed as reals, and bitwise operators compute
    /// on integers.
    fn computed_in(self, own: DType, target: DType) -> DType {
        let is_bitwise = match self {
            Operator::Unary(op) => op == UnaryOp::BITWISE_NOT,
            Operator::Binary(BinaryOp::Bitwise(_)) => true,
            Operator::Binary(
                BinaryOp::Arithmetic(_) | BinaryOp::Comparison(_) | BinaryOp::Logical(_) | BinaryOp::Complex,
            ) => false,
            Operator::FloorDivide | Operator::FloorModulo => false,
        };
        if is_bitwise && !target.is_integer() {
            return if target.to_real().bits() == 64 { DType::S64 } else { own };
        }
        let target = if target.is_complex() && !own.is_complex() { target.to_real() } else { target };
        if target.kind() == Kind::Float && target.bits() < DType::F32.bits() { DType::F32 } else { target }
    }

    fn name(self) -> &'static str {
        match self {
            Operator::Unary(op) => op.name(),
            Operator::Binary(op) => op.name(),
            Operator::FloorDivide => "floor_divide",
            Operator::FloorModulo => "floor_modulo",
        }
    }
}

/// The definition of a weak value.
#[derive(Debug)]
pub struct Weak {
    /// None for an argument: the tensor is its parameter.
    operator: Option<Operator>,
    /// Weak tensors and numbers.
    operands: SmallVec<[Arg<Tensor>; 2]>,
}

impl Weak {
    /// A number that is an argument of a function.
    pub fn argument() -> Arc<Weak> {
        Arc::new(Weak { operator: None, operands: SmallVec::new() })
    }

    /// The result of an operator on weak operands.
    pub fn of(operator: Operator, operands: &[Arg<Tensor>]) -> Arc<Weak> {
        Arc::new(Weak { operator: Some(operator), operands: operands.into() })
    }
}

/// Long chains of operators would overflow the stack in a recursive drop.
impl Drop for Weak {
    fn drop(&mut self) {
        let mut rest = mem::take(&mut self.operands);
        while let Some(operand) = rest.pop() {
            if let Arg::Value(tensor) = operand
                && let Some(mut last) = tensor.into_weak().and_then(Arc::into_inner)
            {
                rest.append(&mut last.operands);
            }
        }
    }
}

impl Tensor {
    /// For a weak value, a number of its kind.
    pub fn weakness(&self) -> Option<Number> {
        self.is_weak().then(|| number_of(self.ty().dtype))
    }
}

impl Arg<Tensor> {
    /// For a weak operand, a number of its kind: for a plain number the number itself.
    pub fn weakness(&self) -> Option<Number> {
        match self {
            Arg::Value(tensor) => tensor.weakness(),
            Arg::Number(number) => Some(*number),
        }
    }
}

/// A number of the kind of a dtype.
pub(crate) fn number_of(dtype: DType) -> Number {
    match dtype.kind() {
        Kind::Bool => Number::Bool(false),
        Kind::Unsigned | Kind::Signed => Number::Int(0),
        Kind::Float => Number::Float(0.0),
        Kind::Complex => Number::complex(0.0, 0.0),
    }
}

/// A weak value, converted to a dtype; the result is not weak.
///
/// # Errors
/// A number among the operands that the dtype does not hold, and operators that it does not support.
pub(crate) fn in_dtype(ops: &mut Ops, value: &Tensor, dtype: DType) -> Result<Tensor> {
    let mut computed: FxHashMap<(*const Weak, DType), Tensor> = FxHashMap::default();
    // The values to compute, with a flag for those whose operands are already on the stack.
    let mut pending = vec![(value, dtype, false)];
    while let Some((value, dtype, has_operands)) = pending.pop() {
        let Some(weak) = value.weak() else { continue };
        let key = (Arc::as_ptr(weak), dtype);
        if computed.contains_key(&key) {
            continue;
        }
        let Some(operator) = weak.operator else {
            computed.insert(key, argument_in(value, dtype));
            continue;
        };
        let inner = operator.computed_in(value.ty().dtype, dtype);
        if inner == value.ty().dtype && is_open(value) {
            computed.insert(key, ops.as_type(value.clone().strong(), dtype)?);
            continue;
        }
        if !has_operands {
            pending.push((value, dtype, true));
            for operand in &weak.operands {
                if let Arg::Value(operand) = operand {
                    pending.push((operand, inner.merge_weak(number_of(operand.ty().dtype)), false));
                }
            }
            continue;
        }
        let mut operands: SmallVec<[Tensor; 2]> = SmallVec::new();
        for operand in &weak.operands {
            operands.push(match operand {
                Arg::Value(operand) => {
                    let dtype = inner.merge_weak(number_of(operand.ty().dtype));
                    let result = operand.weak().and_then(|weak| computed.get(&(Arc::as_ptr(weak), dtype)));
                    result.expect("operands are computed before").clone()
                }
                Arg::Number(number) => {
                    let ty = TensorType::scalar(inner.merge_weak(*number));
                    ops.promote_weak(operator.name(), Arg::Number(*number), &ty)?
                }
            });
        }
        let result = apply(ops, operator, &operands)?;
        computed.insert(key, ops.as_type(result, dtype)?);
    }
    let result = value.weak().and_then(|weak| computed.remove(&(Arc::as_ptr(weak), dtype)));
    Ok(result.unwrap_or_else(|| value.clone()))
}

fn apply(ops: &mut Ops, operator: Operator, operands: &[Tensor]) -> Result<Tensor> {
    match operator {
        Operator::Unary(op) => ops.unary(op, &operands[0]),
        Operator::Binary(op) => ops.binary(op, &operands[0], &operands[1]),
        Operator::FloorDivide => ops.floor_divide(&operands[0], &operands[1]),
        Operator::FloorModulo => ops.floor_modulo(&operands[0], &operands[1]),
    }
}

/// Whether the region in which a value was computed is still being traced: a branch may return a value that
/// is used outside it.
fn is_open(value: &Tensor) -> bool {
    match value.data() {
        Data::Traced { trace, .. } => trace.is_open(),
        Data::Buffer(_) | Data::Template => false,
    }
}

/// The parameter in a dtype for an argument; that of a closed trace is returned unchanged, and refused where
/// it is used.
fn argument_in(argument: &Tensor, dtype: DType) -> Tensor {
    let found = match argument.data() {
        Data::Traced { trace, value } => trace.weak_parameter(*value, dtype),
        Data::Buffer(_) | Data::Template => None,
    };
    found.unwrap_or_else(|| argument.clone().strong())
}
