//! Checks that every device of a mesh reaches the same collectives.
//!
//! A device waits in a collective until the others reach it, and would wait for ever if one does not.
//! Collectives are therefore allowed only where every device executes them equally often: not in branches,
//! which depend on a device's data, nor in loops whose end depends on it.

use super::MeshError;
use crate::error::{Error, Result};
use crate::form;
use crate::op::OpClass;
use crate::region::Region;

/// Refuses a program in which the devices of a mesh could diverge, and one for another number of devices.
///
/// # Errors
/// A collective in a branch, in a loop with an unknown number of trips or in the function of a fold; one over
/// another number of devices; and effects, which need the host.
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
                let given = op.groups.devices().len();
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
            // The rule adds nodes to the program where a gradient is taken.
            OpClass::CustomGrad(_) | OpClass::Implicit(_) => continue,
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity(_)
            | OpClass::Barrier
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => inside,
        };
        for region in node.op.regions() {
            visit(region, count, within.or(inside))?;
        }
    }
    Ok(())
}
