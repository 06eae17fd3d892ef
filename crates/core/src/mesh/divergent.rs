//! Programs that every device of a mesh comes through in the same way.
//!
//! A device waits in an exchange until the others have come to it. Where one does not come the others wait for ever, so
//! that exchanges stand only where every device comes equally often: not in branches, which depend on what a device
//! has, nor in loops that end by it.

use super::MeshError;
use crate::error::{Error, Result};
use crate::form;
use crate::op::OpClass;
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
        let within = match node.op.class() {
            OpClass::Collective(op) => {
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
            OpClass::Hook(_) | OpClass::RuntimeCall(_) => {
                return at(MeshError::Effect { op: form::name(&node.op) });
            }
            OpClass::Cond(_) => Some("a branch"),
            OpClass::While(op) if op.trips.is_some() => {
                // The condition runs once more than the body, on every device.
                inside
            }
            OpClass::While(_) => Some("a loop that ends by what a device has"),
            OpClass::Fold(_) | OpClass::WindowFold(_) => Some("the function of a reduction"),
            // Its rule stands in the program where a gradient was taken.
            OpClass::CustomGrad(_) => continue,
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity { .. }
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => inside,
        };
        for region in node.op.regions() {
            visit(region, count, within.or(inside))?;
        }
    }
    Ok(())
}
