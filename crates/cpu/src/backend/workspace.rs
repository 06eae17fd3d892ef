//! Memory of an op that is known before it runs: which operands the result may overwrite, and the workspace.

use defn_core::op::{Op, OpClass, Primitive};
use defn_core::{DType, TensorType, form};
use smallvec::SmallVec;

use super::scratch_allocator::{ScratchAllocator, Tally};
use super::{CpuBackend, Memory, OpRun, Views, fits, index, matrix, parallel};
use crate::kernels::matrix::Task;
use crate::view::{View, ViewMut, dangling};

/// The operands in whose memory the only result of an op may be stored, starting at the first element. If several of
/// them share the same memory, the result may still be stored there; if another operand shares it, it may not.
pub(crate) fn may_overwrite(
    op: &Op,
    operands: &[&TensorType],
    outputs: &[TensorType],
) -> SmallVec<[usize; 4]> {
    let [output] = outputs else { return SmallVec::new() };
    let declared = op.in_place();
    let task = |task: Option<Task>| {
        let overwritten_index = task.and_then(|task| matrix::aliased_operand(task, operands, output));
        overwritten_index.into_iter().collect::<SmallVec<[usize; 4]>>()
    };
    let candidates = if let Op::TriangularSolve { lower, left_side, transform_a } = op {
        task(Some(Task::of_triangular(*lower, *left_side, *transform_a, false)))
    } else if let Op::Block(block) = op
        && declared.is_empty()
    {
        task(Task::of_block(block))
    } else if let OpClass::Primitive(Primitive::Update) = op.class()
        && !stays(op, operands[0].dtype, output.dtype)
    {
        SmallVec::new()
    } else {
        declared.into()
    };
    candidates.into_iter().filter(|&index| fits(operands[index], output)).collect()
}

/// Whether an in-place write to a part of an operand leaves the other elements unchanged.
fn stays(op: &Op, operand: DType, result: DType) -> bool {
    if let Op::Scatter { op, .. } = op { index::stays(*op, operand, result) } else { operand == result }
}

/// The most bytes that [`run_into`](super::run_into) allocates at once beside operands and results, with the
/// parallelism that [`parallel`] chooses. An op that the backend refuses allocates none.
///
/// The function runs the op without its kernels, and so counts exactly what a run allocates. Not counted are heap
/// allocations of kernels that do not grow with the number of elements, or grow far more slowly:
///
/// - a convolution that lays out columns: `COLUMNS` elements of them and the packed kernel, for each thread;
/// - factorizations: the row permutation of each matrix in work, one `usize` a row;
/// - transforms: roots of unity, the square root of the length of a line that is split; tables are cached for the next
///   call, at most `KEPT_BYTES` of them;
/// - folds: one instruction for each op of their function, and the offset of its register.
pub(crate) fn workspace(op: &Op, operands: &[&TensorType], outputs: &[TensorType]) -> usize {
    let par = parallel(operands.iter().copied().chain(outputs));
    // SAFETY: no kernel runs, so that nothing is read.
    let views: Views<'_> = operands.iter().map(|ty| unsafe { View::of_part(ty, dangling()) }).collect();
    // SAFETY: no kernel runs, so that nothing is written.
    let results = outputs.iter().map(|ty| unsafe { ViewMut::new(ty, dangling()) });
    let results: SmallVec<[ViewMut<'_>; 3]> = results.collect();
    let tally = Tally::default();
    let memory = Memory::Planned { operands: &views, results: &results, aliased_operand: None };
    let run = OpRun {
        allocator: ScratchAllocator::counting(form::name(op), &tally),
        par,
        checked: true,
        memory,
        epilogue: None,
    };
    // The run reports errors.
    let _refused = CpuBackend(()).dispatch(op, run, &|| Ok(()));
    tally.peak()
}
