//! Programs that every device of a mesh comes through in the same way.
//!
//! A device waits in an exchange until the others have come to it. Where one does not come the others wait for ever, so
//! that exchanges stand only where every device comes equally often: not in branches, which depend on what a device
//! has, nor in loops that end by it.

use super::MeshError;
use crate::error::{Error, Result};
use crate::form;
use crate::op::Op;
use crate::region::Region;

/// Refuses a program that the devices of a mesh cannot all come through, and one for another number of devices.
///
/// # Errors
/// An exchange in a branch, in a loop whose trips are not known or in the function of a fold; one between another
/// number of devices; and effects, which the host would have to make.
pub fn check(program: &Region, count: usize) -> Result<()> {
    visit(program, count, None)
}

fn visit(region: &Region, count: usize, inside: Option<&'static str>) -> Result<()> {
    for node in region.graph().nodes() {
        let at = |error: MeshError| Err(Error::from(error).at(node.location.clone()));
        let within = match &node.op {
            Op::Collective(op) => {
                let name = op.kind.name();
                if let Some(inside) = inside {
                    return at(MeshError::Divergent { op: name, inside });
                }
                let given = op.over.devices().len();
                if given != count {
                    return at(MeshError::OtherMesh { op: name, given, count });
                }
                continue;
            }
            Op::Hook(_) | Op::RuntimeCall(_) => {
                return at(MeshError::Effect { op: form::name(&node.op) });
            }
            Op::Cond(_) => Some("a branch"),
            Op::While(op) if op.trips.is_some() => {
                // The condition runs once more than the body, on every device.
                inside
            }
            Op::While(_) => Some("a loop that ends by what a device has"),
            Op::Fold(_) | Op::WindowFold(_) => Some("the function of a reduction"),
            // Its rule stands in the program where a gradient was taken.
            Op::CustomGrad(_) => continue,
            Op::UserBlock(_)
            | Op::Parameter { .. }
            | Op::Constant(_)
            | Op::Literal(_)
            | Op::Iota { .. }
            | Op::Eye { .. }
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::AsType { .. }
            | Op::Bitcast { .. }
            | Op::Select
            | Op::Clip
            | Op::Reshape { .. }
            | Op::Squeeze { .. }
            | Op::Broadcast { .. }
            | Op::Transpose { .. }
            | Op::Pad { .. }
            | Op::Reverse { .. }
            | Op::Concatenate { .. }
            | Op::Stack { .. }
            | Op::Slice { .. }
            | Op::PutSlice { .. }
            | Op::Reduce { .. }
            | Op::ArgReduce { .. }
            | Op::Gather { .. }
            | Op::Scatter { .. }
            | Op::Sort { .. }
            | Op::Argsort { .. }
            | Op::Window { .. }
            | Op::WindowScatter { .. }
            | Op::Conv(_)
            | Op::Fft { .. }
            | Op::Dot { .. }
            | Op::TriangularSolve { .. }
            | Op::StopGrad
            | Op::Mark { .. }
            | Op::Block(_) => inside,
        };
        for region in node.op.regions() {
            visit(region, count, within.or(inside))?;
        }
    }
    Ok(())
}
