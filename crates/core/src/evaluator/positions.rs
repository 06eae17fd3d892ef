//! Positions out of range, looked for here on behalf of backends that do not look themselves.

use crate::backend::Operand;
use crate::error::{ErrorKind, Result};
use crate::form;
use crate::op::{Block, Op};
use crate::scalar::{Number, Scalar};
use crate::shape::Axis;
use crate::tensor::Tensor;

/// Refuses a position out of range among the operands of an op that reads or writes at positions.
pub(super) fn check(op: &Op, operands: &[Operand]) -> Result<()> {
    let axes: &[Axis] = if let Op::Gather { axes } | Op::Scatter { op: _, axes } = op {
        axes
    } else if let Op::Block(Block::Take { axis } | Block::TakeAlongAxis { axis }) = op {
        std::slice::from_ref(axis)
    } else {
        return Ok(());
    };
    let (x, indices) = (&operands[0].ty, &operands[1]);
    let name = form::name(op);
    let bytes = Tensor::concrete(indices.ty.clone(), indices.buffer.clone()).host_bytes(name)?;
    let width = indices.ty.dtype.storage_bytes();
    for (entry, bytes) in bytes.bytes().chunks_exact(width).enumerate() {
        let Number::Int(index) = Scalar::from_bytes(indices.ty.dtype, bytes).value() else {
            unreachable!("indices are integers, and not {}", indices.ty)
        };
        // The entries of a position lie side by side.
        let axis = axes[entry % axes.len()];
        if usize::try_from(index).is_ok_and(|index| index < x.shape[axis]) {
            continue;
        }
        return Err(ErrorKind::IndexRange { op: name, index, axis: axis.index(), got: x.clone() }.into());
    }
    Ok(())
}
