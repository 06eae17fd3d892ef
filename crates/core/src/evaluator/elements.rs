//! What only the elements of operands tell, looked for here on behalf of backends that do not look themselves:
//! positions out of range, integer divisors of zero, negative shifts and exponents, zeros on a diagonal.

use crate::backend::Operand;
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::op::{BinaryOp, Block, Op};
use crate::scalar::{Number, Scalar};
use crate::shape::{Axis, TensorType};
use crate::tensor::Tensor;

/// Refuses operands with elements that the op is not defined for. Elements count only if the result has any.
pub(super) fn check(op: &Op, operands: &[Operand], out: &TensorType) -> Result<()> {
    if let Op::Gather { axes } | Op::Scatter { op: _, axes } = op {
        return positions(op, operands, axes);
    }
    if let Op::Block(Block::Take { axis } | Block::TakeAlongAxis { axis }) = op {
        return positions(op, operands, std::slice::from_ref(axis));
    }
    if let Op::TriangularSolve { .. } = op {
        return if out.size() == 0 { Ok(()) } else { diagonal(op, &operands[0]) };
    }
    if !out.dtype.is_integer() || out.size() == 0 {
        return Ok(());
    }
    if let Op::Block(Block::RandomBelow { .. }) = op {
        let zero = |_| ErrorKind::DivisionByZero { op: "remainder" };
        return refuse(op, &operands[1], |bound| bound == 0, zero);
    }
    let Op::Binary(binary) = op else { return Ok(()) };
    match binary {
        BinaryOp::Quotient | BinaryOp::Remainder => refuse(
            op,
            &operands[1],
            |number| number == 0,
            |_| ErrorKind::DivisionByZero { op: binary.name() },
        ),
        BinaryOp::LeftShift | BinaryOp::RightShift => refuse(
            op,
            &operands[1],
            |number| number < 0,
            |value| ErrorKind::NegativeShift { op: binary.name(), value },
        ),
        BinaryOp::Pow => {
            refuse(op, &operands[1], |number| number < 0, |value| ErrorKind::NegativeExponent { value })
        }
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Atan2
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => Ok(()),
    }
}

/// The elements of an operand as numbers, in order, until `look` fails.
fn each(op: &Op, operand: &Operand, mut look: impl FnMut(usize, Number) -> Result<()>) -> Result<()> {
    let dtype = operand.ty.dtype;
    let bytes = Tensor::concrete(operand.ty.clone(), operand.buffer.clone()).host_bytes(form::name(op))?;
    for (at, bytes) in bytes.bytes().chunks_exact(dtype.storage_bytes()).enumerate() {
        look(at, Scalar::from_bytes(dtype, bytes).value())?;
    }
    Ok(())
}

/// The number that an element of integers is.
fn integer(number: Number, operand: &Operand) -> i128 {
    let Number::Int(number) = number else { unreachable!("integers, and not {}", operand.ty) };
    number
}

/// Refuses the first integer of an operand that is wrong.
fn refuse(
    op: &Op,
    operand: &Operand,
    is_wrong: impl Fn(i128) -> bool,
    error: impl Fn(i128) -> ErrorKind,
) -> Result<()> {
    each(op, operand, |_, number| {
        let number = integer(number, operand);
        if is_wrong(number) { Err(error(number).into()) } else { Ok(()) }
    })
}

/// Refuses a position out of range among the operands of an op that reads or writes at positions.
fn positions(op: &Op, operands: &[Operand], axes: &[Axis]) -> Result<()> {
    let (x, indices) = (&operands[0].ty, &operands[1]);
    each(op, indices, |entry, number| {
        let index = integer(number, indices);
        // The entries of a position lie side by side.
        let axis = axes[entry % axes.len()];
        if usize::try_from(index).is_ok_and(|index| index < x.shape[axis]) {
            return Ok(());
        }
        Err(ErrorKind::IndexRange { op: form::name(op), index, axis: axis.index(), got: x.clone() }.into())
    })
}

/// Refuses a zero on the diagonal of square matrices.
fn diagonal(op: &Op, operand: &Operand) -> Result<()> {
    let sizes = operand.ty.shape.sizes();
    let rows = sizes[sizes.len() - 1];
    each(op, operand, |at, number| {
        let is_zero = match number {
            Number::Int(number) => number == 0,
            Number::Float(number) => number == 0.0,
            Number::Complex(number) => number.re == 0.0 && number.im == 0.0,
        };
        if is_zero && at % rows == at / rows % rows {
            return Err(ErrorKind::ZeroDiagonal { got: operand.ty.clone() }.into());
        }
        Ok(())
    })
}
