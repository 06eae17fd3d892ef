//! Assigns the memory of donated arguments to results.

use crate::device::DeviceError;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Value;
use crate::op::Op;
use crate::region::Region;
use crate::tensor::Tensor;

/// The index of the input that a value of a program is, if it is one.
pub fn input_of(program: &Region, value: Value) -> Option<usize> {
    if let Op::Parameter { index, .. } = &program.graph().node(value).op { Some(*index) } else { None }
}

/// The positions of donated arguments, ascending and each once.
pub fn positions(donate: &[usize]) -> Vec<usize> {
    let mut positions = donate.to_vec();
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// For each donated argument, the position of the result that takes its memory: a result of the same dtype
/// and shape that takes no other argument's. An argument that is returned unchanged needs none and is left
/// out.
///
/// # Errors
/// A position without an argument, and an argument whose memory no result can take.
pub fn aliases(program: &Region, donate: &[usize]) -> Result<Vec<(usize, usize)>> {
    let mut aliases: Vec<(usize, usize)> = Vec::new();
    for &argument in donate {
        let count = program.inputs().len();
        let Some(ty) = program.inputs().get(argument) else {
            return Err(DeviceError::DonatePosition { position: argument, count }.into());
        };
        let results = program.results();
        // A result that is an argument needs no memory, and cannot take another argument's.
        if results.iter().any(|&value| input_of(program, value) == Some(argument)) {
            continue;
        }
        let free = results.iter().enumerate().position(|(at, &value)| {
            let own = program.graph().ty(value);
            input_of(program, value).is_none()
                && (own.dtype, own.shape.sizes()) == (ty.dtype, ty.shape.sizes())
                && !aliases.iter().any(|&(_, result)| results[result] == results[at])
        });
        let Some(result) = free else {
            return Err(DeviceError::DonateType { argument: argument.into(), got: ty.clone() }.into());
        };
        aliases.push((argument, result));
    }
    Ok(aliases)
}

/// Names the argument in an error about a buffer that is gone.
#[cold]
pub fn named(error: Error, position: usize, argument: &Tensor) -> Error {
    let ErrorKind::BufferGone { op, gone } = error.kind() else { return error };
    let (got, gone) = (argument.whole().clone(), gone.clone());
    Error::from(DeviceError::ArgumentGone { op, argument: position.into(), got, gone })
        .at(error.location().cloned())
}
