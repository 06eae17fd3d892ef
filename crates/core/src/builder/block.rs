//! Blocks that users define: a named default graph.

use std::sync::Arc;

use smallvec::SmallVec;

use super::draft::{Draft, ResultType, unify_captures};
use super::{Arg, BuildControl, BuildShape, Builder, Ops};
use crate::error::{ErrorKind, Result};
use crate::op::{Op, UserBlockOp};
use crate::shape::{Name, TensorType};
use crate::tensor::Tensor;

/// The name of a user's block and the key by which a backend of the host language finds it.
#[derive(Clone, Debug)]
pub struct Tag {
    /// Its name.
    pub name: Name,
    /// Its attributes as they are printed, empty if it has none.
    pub attributes: Name,
    /// Its index in the run's table.
    pub slot: usize,
}

/// Applies a user's block to `args`: `default` is traced into a region with the name of `tag`.
///
/// If `outputs` is given, the default must return these results: the same number of values, with these dtypes and
/// shapes, and with compatible names. A plain number takes the declared dtype. On vectorized tensors the default runs
/// inline, without a block node. `tag` is called after `default`.
///
/// # Errors
/// A default with other results, and the errors of the default.
pub fn block(
    ops: &mut Ops,
    tag: impl FnOnce() -> Tag,
    args: Vec<Tensor>,
    outputs: Option<&[TensorType]>,
    default: impl FnOnce(&mut Ops, &[Tensor]) -> Result<Vec<Arg<Tensor>>>,
) -> Result<Vec<Tensor>> {
    if args.iter().any(Tensor::is_vectorized) {
        let default_results = default(ops, &args)?;
        return inlined(ops, &tag(), default_results, outputs);
    }
    let types: Vec<TensorType> = args.iter().map(|arg| arg.whole().clone()).collect();
    let draft = Draft::trace(ops, "block", &types, default)?;
    let tag = tag();
    check_count(draft.results.len(), outputs)?;
    let mut leaves = Vec::with_capacity(draft.results.len());
    for leaf in 0..draft.results.len() {
        let expected = outputs.map(|outputs| &outputs[leaf]);
        let got = match expected {
            Some(expected) => draft.result_type(leaf, expected.dtype),
            None => draft.leaf_type(leaf),
        };
        leaves.push(ResultType {
            ty: result_type_with_names(&tag, leaf, got, expected)?,
            lanes: draft.lanes(leaf).into(),
        });
    }
    let (mut regions, captures) = unify_captures(vec![draft.close(ops, &leaves)?]);
    let region = regions.pop().expect("one region went in");
    let operands: Vec<Tensor> = args.iter().cloned().chain(captures).collect();
    let results: SmallVec<[Tensor; 1]> = if leaves.iter().any(|leaf| !leaf.lanes.is_empty()) {
        ops.inline(&region, &operands)?.into()
    } else {
        let Tag { name, attributes, slot } = tag;
        let op = UserBlockOp { name, attributes, slot, args: args.len(), default: Arc::new(region) };
        ops.emit(Op::UserBlock(op), &operands)?
    };
    Ok(results.into_iter().zip(leaves).map(|(x, leaf)| x.with_vectorized(&leaf.lanes)).collect())
}

/// The results of the inlined default, with the names of the declared outputs.
fn inlined(
    ops: &mut Ops,
    tag: &Tag,
    default_results: Vec<Arg<Tensor>>,
    outputs: Option<&[TensorType]>,
) -> Result<Vec<Tensor>> {
    check_count(default_results.len(), outputs)?;
    let mut results = Vec::with_capacity(default_results.len());
    for (leaf, arg) in default_results.into_iter().enumerate() {
        let expected = outputs.map(|outputs| &outputs[leaf]);
        let value = match (ops.weak_number(&arg), expected) {
            (Some(number), Some(expected)) => {
                let dtype = expected.dtype.merge_weak(number);
                ops.promote_weak("block", arg, &expected.with_dtype(dtype)?)?
            }
            (Some(_) | None, _) => ops.operand(arg)?,
        };
        let ty = result_type_with_names(tag, leaf, value.ty().clone(), expected)?;
        results.push(ops.reshape_to(value, ty.shape)?);
    }
    Ok(results)
}

fn check_count(got: usize, outputs: Option<&[TensorType]>) -> Result<()> {
    match outputs {
        Some(outputs) if outputs.len() != got => {
            let (what, expected) = ("default", outputs.len());
            Err(ErrorKind::RegionResults { op: "block", what, got, expected }.into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The type of a result: the default's, with the names of the declared output if that has any.
fn result_type_with_names(
    tag: &Tag,
    index: usize,
    got: TensorType,
    expected: Option<&TensorType>,
) -> Result<TensorType> {
    let Some(expected) = expected else { return Ok(got) };
    if !expected.is_compatible(&got) {
        let (name, expected) = (tag.name.clone(), expected.clone());
        return Err(ErrorKind::BlockResult { name, index, got, expected }.into());
    }
    TensorType::new(got.dtype, expected.shape.broadcast_with("block", &got.shape)?)
}
