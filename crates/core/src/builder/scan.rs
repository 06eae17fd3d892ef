//! Loops that keep an output of each trip.

use super::{Arg, BuildCreate, BuildElementwise, BuildShape, Builder, LoopOptions, Ops, Start, while_};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{Shape, TensorType};
use crate::tensor::Tensor;

/// The positions of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// The dtype of the position.
    pub counter: DType,
    /// The number of positions.
    pub trips: usize,
    /// Whether the last position comes first.
    pub reverse: bool,
    /// As that of [`LoopOptions`].
    pub snapshots: Option<usize>,
}

/// Repeats `body`, which takes the position and the state and returns the next state and the outputs. Returns the last state, and the outputs
/// along new first axes, each at its position; `outputs` are the types of those of one position.
///
/// # Errors
/// Those of a loop ([`while_`]), and those of `body`.
pub fn scan(
    ops: &mut Ops,
    options: ScanOptions,
    state: Vec<Tensor>,
    outputs: impl IntoIterator<Item = TensorType>,
    mut body: impl FnMut(&mut Ops, &Tensor, &[Tensor]) -> Result<(Vec<Arg<Tensor>>, Vec<Arg<Tensor>>)>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let ScanOptions { counter, trips, reverse, snapshots } = options;
    let states = state.len();
    let mut all = vec![ops.constant(counter, 0)?];
    all.extend(state);
    for ty in outputs {
        let shape = Shape::from_axes(std::iter::once((trips, None)).chain(ty.shape.entries()));
        all.push(ops.full(shape, ty.dtype, 0)?);
    }
    if trips > 0 {
        all = while_(
            ops,
            all,
            LoopOptions { trips: Some(trips as u64), snapshots },
            |ops, all| Ok(Arg::Value(ops.less(&all[0], trips as i64)?)),
            |ops, all| {
                let position =
                    if reverse { ops.subtract(trips as i64 - 1, &all[0])? } else { all[0].clone() };
                let (next, outputs) = body(ops, &position, &all[1..=states])?;
                let mut results = vec![Arg::Value(ops.add(&all[0], 1)?)];
                results.extend(next);
                for (buffer, value) in all[1 + states..].iter().zip(outputs) {
                    let ty = TensorType::scalar(buffer.ty().dtype);
                    let value = ops.promote_weak("scan", value, &ty)?;
                    let row = ops.new_axis(value, 0, None)?;
                    let mut starts = vec![Start::Index(0); buffer.ty().shape.rank()];
                    starts[0] = Start::Value(position.clone());
                    results.push(Arg::Value(ops.put_slice(buffer, &starts, row)?));
                }
                Ok(results)
            },
        )?;
    }
    let outputs = all.split_off(1 + states);
    Ok((all.split_off(1), outputs))
}

/// The part of a tensor at a position of its first axis, without that axis.
///
/// # Errors
/// A tensor whose first axis is missing or empty.
pub fn item(ops: &mut Ops, tensor: &Tensor, position: &Tensor) -> Result<Tensor> {
    let slice = ops.slice_along_axis(tensor, Start::Value(position.clone()), 1, 0, 1)?;
    ops.squeeze(slice, 0)
}
