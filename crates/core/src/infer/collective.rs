//! Types of collectives.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::mesh::MeshError;
use crate::op::{AllReduceOp, Collective, CollectiveOp};
use crate::shape::{Axis, Shape, TensorType};

/// Blocks keep their dtype, so that they are reduced in the type in which they are stored.
pub(super) fn collective(op: &CollectiveOp, operands: &[&TensorType]) -> Result<TensorType> {
    let count = op.groups.size();
    match &op.kind {
        Collective::AllReduce { op: AllReduceOp::Sum } => {
            super::reduce::require_number(op.kind.name(), operands[0], operands[0].dtype)?;
            Ok(operands[0].clone())
        }
        Collective::CollectivePermute { .. } => Ok(operands[0].clone()),
        Collective::AllReduce { op: AllReduceOp::Max | AllReduceOp::Min } => {
            super::reduce::require_real(op.kind.name(), operands[0])?;
            Ok(operands[0].clone())
        }
        Collective::AllGather { axis } => {
            let x = operands[0];
            let Some(size) = x.shape[*axis].checked_mul(count) else {
                return Err(ErrorKind::TooLarge { dtype: x.dtype, shape: x.shape.clone() }.into());
            };
            TensorType::new(x.dtype, with_size(&x.shape, *axis, size))
        }
        Collective::ReduceScatter { axis } => {
            let x = operands[0];
            super::reduce::require_number(op.kind.name(), x, x.dtype)?;
            let size = x.shape[*axis];
            if !size.is_multiple_of(count) {
                let (got, mesh_axes) = (x.clone(), op.groups.axes().clone());
                return Err(MeshError::Scatter { got, axis: axis.index(), size, mesh_axes, count }.into());
            }
            TensorType::new(x.dtype, with_size(&x.shape, *axis, size / count))
        }
        Collective::MeshIndex => Ok(TensorType::scalar(DType::S32)),
    }
}

/// A shape with the size of one axis replaced.
fn with_size(shape: &Shape, axis: Axis, size: usize) -> Shape {
    let entries = shape.entries().enumerate();
    Shape::from_axes(entries.map(|(at, (old, name))| (if at == axis.index() { size } else { old }, name)))
}
