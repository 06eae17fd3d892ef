//! Checks that depend on the operands' elements, for backends that do not make them: positions out of range,
//! integer divisors of zero, negative shifts and exponents, zeros on a diagonal.

use crate::backend::{Backend, Operand};
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::op::{Block, Op, Refused, Starts};
use crate::scalar::{Number, Scalar};
use crate::shape::{Axis, TensorType};
use crate::tensor::Tensor;

/// Elements of one operand for which an op is not defined.
enum InvalidElements<'a> {
    /// Positions out of range on these axes of the first operand.
    Positions(&'a [Axis]),
    /// Starts of windows that are not inside the tensor. The starts are the operands from this one on.
    Starts(&'a Starts),
    /// Zeros on the diagonal.
    Diagonal,
    /// Zero integers as divisors of the operation of this name.
    Zero(&'static str),
    /// Negative integers, and the error for one.
    Negative(fn(&'static str, i128) -> ErrorKind),
}

/// The starts of an op's window and the position of the first operand among them, where operands hold the
/// starts.
fn start_operands(op: &Op) -> Option<(usize, &Starts)> {
    let (first, starts) = if let Op::Slice { starts, lengths: _, strides: _ } = op {
        (1, starts)
    } else if let Op::PutSlice { starts } = op {
        (2, starts)
    } else {
        return None;
    };
    starts.are_operands().then_some((first, starts))
}

/// Whether an eager op clamps or drops positions out of range, as compiled programs do: windows whose starts
/// do not count from the end, and all positions where the backend does not report them.
pub(super) fn clamps_when_eager(op: &Op, out: &TensorType, backend: &dyn Backend) -> bool {
    match wrong(op, out) {
        Some((_, InvalidElements::Starts(starts))) => {
            !starts.count_from_end() || !backend.checks_positions_eagerly()
        }
        Some((_, InvalidElements::Positions(_))) => !backend.checks_positions_eagerly(),
        Some((_, InvalidElements::Diagonal | InvalidElements::Zero(_) | InvalidElements::Negative(_)))
        | None => false,
    }
}

/// The operand and the elements for which an op with this result is not defined. Elements other than
/// positions matter only if the result has any.
fn wrong<'a>(op: &'a Op, out: &TensorType) -> Option<(usize, InvalidElements<'a>)> {
    if let Op::Gather { axes } | Op::Scatter { op: _, axes } = op {
        return Some((1, InvalidElements::Positions(axes)));
    }
    if let Op::Block(Block::Take { axis } | Block::TakeAlongAxis { axis }) = op {
        return Some((1, InvalidElements::Positions(std::slice::from_ref(axis))));
    }
    if let Some((first, starts)) = start_operands(op) {
        return Some((first, InvalidElements::Starts(starts)));
    }
    if out.size() == 0 {
        return None;
    }
    if let Op::TriangularSolve { .. } = op {
        return Some((0, InvalidElements::Diagonal));
    }
    if !out.dtype.is_integer() {
        return None;
    }
    if let Op::Block(Block::RandomBelow { .. }) = op {
        return Some((1, InvalidElements::Zero("remainder")));
    }
    let Op::Binary(binary) = op else { return None };
    let wrong = match binary.traits().refused? {
        Refused::ZeroDivisor => InvalidElements::Zero(binary.name()),
        Refused::NegativeExponent => {
            InvalidElements::Negative(|_, value| ErrorKind::NegativeExponent { value })
        }
        Refused::NegativeShift => {
            InvalidElements::Negative(|op, value| ErrorKind::NegativeShift { op, value })
        }
    };
    Some((1, wrong))
}

/// Whether the op with this result is defined only for some elements of its operands.
pub(crate) fn depends_on_elements(op: &Op, out: &TensorType) -> bool {
    wrong(op, out).is_some()
}

/// Reports operands with elements for which the op is not defined.
pub(super) fn check(op: &Op, operands: &[Operand], out: &TensorType) -> Result<()> {
    let Some((at, wrong)) = wrong(op, out) else { return Ok(()) };
    let operand = &operands[at];
    let name = form::name(op);
    match wrong {
        InvalidElements::Positions(axes) => positions(op, operands, axes),
        InvalidElements::Starts(starts) => windows(op, starts, operands, at),
        InvalidElements::Diagonal => diagonal(op, operand),
        InvalidElements::Zero(name) => each(op, operand, |_, number| match number {
            Number::Int(0) | Number::Bool(false) => Err(ErrorKind::DivisionByZero { op: name }.into()),
            Number::Bool(true) | Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
                Ok(())
            }
        }),
        InvalidElements::Negative(error) => each(op, operand, |_, number| match number {
            Number::Int(value) if value < 0 => Err(error(name, value).into()),
            Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
                Ok(())
            }
        }),
    }
}

/// Whether the functions inside an op have ops whose operands must be checked at run time.
pub(super) fn counts_inside(op: &Op) -> bool {
    op.regions().iter().any(|region| {
        let graph = region.graph();
        graph.nodes().iter().any(|node| {
            let looks = wrong(&node.op, &node.outputs[0]).is_some_and(|(at, wrong)| {
                // A constant is valid or not, independent of the operands.
                let Op::Constant(scalar) = &graph.node(node.inputs[at]).op else { return true };
                match (wrong, scalar.value()) {
                    (InvalidElements::Zero(_), Number::Int(number)) => number == 0,
                    (InvalidElements::Zero(_), Number::Bool(number)) => !number,
                    (InvalidElements::Negative(_), Number::Int(number)) => number < 0,
                    (
                        InvalidElements::Positions(_)
                        | InvalidElements::Starts(_)
                        | InvalidElements::Diagonal
                        | InvalidElements::Zero(_)
                        | InvalidElements::Negative(_),
                        Number::Bool(_)
                        | Number::Int(_)
                        | Number::Huge(_)
                        | Number::Float(_)
                        | Number::Complex(_),
                    ) => true,
                }
            });
            looks || counts_inside(&node.op)
        })
    })
}

/// Calls `look` on each element of an operand in order, until it fails.
fn each(op: &Op, operand: &Operand, mut look: impl FnMut(usize, Number) -> Result<()>) -> Result<()> {
    let dtype = operand.ty.dtype;
    let bytes = Tensor::concrete(operand.ty.clone(), operand.buffer.clone()).host_bytes(form::name(op))?;
    for (at, bytes) in bytes.bytes().chunks_exact(dtype.storage_bytes()).enumerate() {
        look(at, Scalar::from_bytes(dtype, bytes).value())?;
    }
    Ok(())
}

/// Reports a position out of range among the operands of an op that reads or writes at positions.
fn positions(op: &Op, operands: &[Operand], axes: &[Axis]) -> Result<()> {
    let (x, indices) = (&operands[0].ty, &operands[1]);
    each(op, indices, |entry, number| {
        let Number::Int(index) = number else { unreachable!("indices are integers, and not {}", indices.ty) };
        // The index entries of one position are adjacent.
        let axis = axes[entry % axes.len()];
        let size = x.shape[axis] as i128;
        if (-size..size).contains(&index) {
            return Ok(());
        }
        Err(ErrorKind::IndexRange { op: form::name(op), index, axis: axis.index(), got: x.clone() }.into())
    })
}

/// Reports a window that is not inside its tensor. Its starts are the operands from `first` on.
fn windows(op: &Op, starts: &Starts, operands: &[Operand], first: usize) -> Result<()> {
    let x = &operands[0].ty;
    let lengths = if let Op::Slice { lengths, .. } = op { lengths } else { operands[1].ty.shape.sizes() };
    for (axis, start) in x.shape.axes().zip(&operands[first..]) {
        each(op, start, |_, number| {
            let Number::Int(start) = number else { unreachable!("starts are integers") };
            starts.require(form::name(op), start, lengths[axis.index()], (x, axis))
        })?;
    }
    Ok(())
}

/// Reports a zero on the diagonal of square matrices.
fn diagonal(op: &Op, operand: &Operand) -> Result<()> {
    let sizes = operand.ty.shape.sizes();
    let rows = sizes[sizes.len() - 1];
    each(op, operand, |at, number| {
        let is_zero = match number {
            Number::Bool(number) => !number,
            Number::Int(number) => number == 0,
            Number::Huge(number) | Number::Float(number) => number == 0.0,
            Number::Complex(number) => number.re == 0.0 && number.im == 0.0,
        };
        if is_zero && at % rows == at / rows % rows {
            return Err(ErrorKind::ZeroDiagonal { got: operand.ty.clone() }.into());
        }
        Ok(())
    })
}
