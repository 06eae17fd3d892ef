//! What only the elements of operands tell, looked for here on behalf of backends that do not look themselves:
//! positions out of range, integer divisors of zero, negative shifts and exponents, zeros on a diagonal.

use crate::backend::{Backend, Operand};
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::op::{Block, Op, Refused, Starts};
use crate::scalar::{Number, Scalar};
use crate::shape::{Axis, TensorType};
use crate::tensor::Tensor;

/// What an op is not defined for, in the elements of one operand.
enum Wrong<'a> {
    /// Positions on these axes of the first operand that it does not have.
    Positions(&'a [Axis]),
    /// Starts of windows, the operands from this one on, at which the window is not inside.
    Starts(&'a Starts),
    /// Zeros on the diagonal.
    Diagonal,
    /// Integers that are zero, divisors of the operation of this name.
    Zero(&'static str),
    /// Integers below zero, and the error for one.
    Negative(fn(&'static str, i128) -> ErrorKind),
}

/// Where a window begins that operands of an op say, and the first of them.
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

/// Whether an op that runs at once moves or drops what is out of range, as it does in a compiled program: a window whose
/// starts do not count from the end, and whatever has positions where a backend does not refuse them.
pub(super) fn moves_at_once(op: &Op, out: &TensorType, backend: &dyn Backend) -> bool {
    match wrong(op, out) {
        Some((_, Wrong::Starts(starts))) => !starts.count_from_end() || !backend.refuses_positions(),
        Some((_, Wrong::Positions(_))) => !backend.refuses_positions(),
        Some((_, Wrong::Diagonal | Wrong::Zero(_) | Wrong::Negative(_))) | None => false,
    }
}

/// What an op with this result is not defined for, and in which operand; elements count only if the result has any.
fn wrong<'a>(op: &'a Op, out: &TensorType) -> Option<(usize, Wrong<'a>)> {
    if let Op::Gather { axes } | Op::Scatter { op: _, axes } = op {
        return Some((1, Wrong::Positions(axes)));
    }
    if let Op::Block(Block::Take { axis } | Block::TakeAlongAxis { axis }) = op {
        return Some((1, Wrong::Positions(std::slice::from_ref(axis))));
    }
    if let Some((first, starts)) = start_operands(op) {
        return Some((first, Wrong::Starts(starts)));
    }
    if out.size() == 0 {
        return None;
    }
    if let Op::TriangularSolve { .. } = op {
        return Some((0, Wrong::Diagonal));
    }
    if !out.dtype.is_integer() {
        return None;
    }
    if let Op::Block(Block::RandomBelow { .. }) = op {
        return Some((1, Wrong::Zero("remainder")));
    }
    let Op::Binary(binary) = op else { return None };
    let wrong = match binary.traits().refused? {
        Refused::ZeroDivisor => Wrong::Zero(binary.name()),
        Refused::NegativeExponent => Wrong::Negative(|_, value| ErrorKind::NegativeExponent { value }),
        Refused::NegativeShift => Wrong::Negative(|op, value| ErrorKind::NegativeShift { op, value }),
    };
    Some((1, wrong))
}

/// Whether only the elements of operands tell if an op with this result is defined for them.
pub(crate) fn depends(op: &Op, out: &TensorType) -> bool {
    wrong(op, out).is_some()
}

/// Refuses operands with elements that the op is not defined for.
pub(super) fn check(op: &Op, operands: &[Operand], out: &TensorType) -> Result<()> {
    let Some((at, wrong)) = wrong(op, out) else { return Ok(()) };
    let operand = &operands[at];
    let name = form::name(op);
    match wrong {
        Wrong::Positions(axes) => positions(op, operands, axes),
        Wrong::Starts(starts) => windows(op, starts, operands, at),
        Wrong::Diagonal => diagonal(op, operand),
        Wrong::Zero(name) => each(op, operand, |_, number| match number {
            Number::Int(0) | Number::Bool(false) => Err(ErrorKind::DivisionByZero { op: name }.into()),
            Number::Bool(true) | Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
                Ok(())
            }
        }),
        Wrong::Negative(error) => each(op, operand, |_, number| match number {
            Number::Int(value) if value < 0 => Err(error(name, value).into()),
            Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
                Ok(())
            }
        }),
    }
}

/// Whether the functions inside an op have any whose operands have to be looked at while they run.
pub(super) fn counts_inside(op: &Op) -> bool {
    op.regions().iter().any(|region| {
        let graph = region.graph();
        graph.nodes().iter().any(|node| {
            let looks = wrong(&node.op, &node.outputs[0]).is_some_and(|(at, wrong)| {
                // Numbers that the program says are right or not, whatever it is run on.
                let Op::Constant(scalar) = &graph.node(node.inputs[at]).op else { return true };
                match (wrong, scalar.value()) {
                    (Wrong::Zero(_), Number::Int(number)) => number == 0,
                    (Wrong::Zero(_), Number::Bool(number)) => !number,
                    (Wrong::Negative(_), Number::Int(number)) => number < 0,
                    (
                        Wrong::Positions(_)
                        | Wrong::Starts(_)
                        | Wrong::Diagonal
                        | Wrong::Zero(_)
                        | Wrong::Negative(_),
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

/// The elements of an operand as numbers, in order, until `look` fails.
fn each(op: &Op, operand: &Operand, mut look: impl FnMut(usize, Number) -> Result<()>) -> Result<()> {
    let dtype = operand.ty.dtype;
    let bytes = Tensor::concrete(operand.ty.clone(), operand.buffer.clone()).host_bytes(form::name(op))?;
    for (at, bytes) in bytes.bytes().chunks_exact(dtype.storage_bytes()).enumerate() {
        look(at, Scalar::from_bytes(dtype, bytes).value())?;
    }
    Ok(())
}

/// Refuses a position out of range among the operands of an op that reads or writes at positions.
fn positions(op: &Op, operands: &[Operand], axes: &[Axis]) -> Result<()> {
    let (x, indices) = (&operands[0].ty, &operands[1]);
    each(op, indices, |entry, number| {
        let Number::Int(index) = number else { unreachable!("indices are integers, and not {}", indices.ty) };
        // The entries of a position lie side by side.
        let axis = axes[entry % axes.len()];
        let size = x.shape[axis] as i128;
        if (-size..size).contains(&index) {
            return Ok(());
        }
        Err(ErrorKind::IndexRange { op: form::name(op), index, axis: axis.index(), got: x.clone() }.into())
    })
}

/// Refuses a window that is not inside its tensor. Its starts are the operands from `first` on.
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

/// Refuses a zero on the diagonal of square matrices.
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
