//! What is known of an op's memory before it runs: where its result may lie, and how much it takes meanwhile.

use defn_core::op::{Op, OpClass, Primitive};
use defn_core::{DType, TensorType, form};
use smallvec::SmallVec;

use super::room::{Room, Tally};
use super::{CpuBackend, Memory, Run, Views, fits, index, matrix, parallel};
use crate::kernels::matrix::Task;
use crate::view::{View, ViewMut, nowhere};

/// The operands in whose memory the only result of an op may lie, from its first element on. Where several of them are
/// one and the same memory, the result may lie there too; where any other operand is, it may not.
pub(crate) fn may_overwrite(
    op: &Op,
    operands: &[&TensorType],
    outputs: &[TensorType],
) -> SmallVec<[usize; 3]> {
    let [output] = outputs else { return SmallVec::new() };
    let declared = op.in_place();
    let task = |task: Option<Task>| {
        let place = task.and_then(|task| matrix::place_of(task, operands, output));
        place.into_iter().collect::<SmallVec<[usize; 3]>>()
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

/// Whether a write into a part of an operand leaves the other elements as they are.
fn stays(op: &Op, operand: DType, result: DType) -> bool {
    if let Op::Scatter { op, .. } = op { index::stays(*op, operand, result) } else { operand == result }
}

/// The most bytes that [`run_into`](super::run_into) takes at once beside operands and results, where its kernels run
/// on the threads that [`parallel`] chooses. An op that is refused takes none.
///
/// It does all that a run does but for the kernels, and so takes what a run takes. What kernels keep on the heap beside
/// that does not grow with their elements, or far more slowly:
///
/// - a convolution that lays out columns, `COLUMNS` elements of them and what multiplies these, for each thread;
/// - factorizations, the order of the rows of each matrix that is being worked on, a `usize` for each row;
/// - transforms, roots of unity, as many as the square root of a line that is split; tables are kept for the next
///   call, `KEPT_BYTES` of them at most;
/// - folds, an instruction for each op of their function, and where its register lies.
pub(crate) fn workspace(op: &Op, operands: &[&TensorType], outputs: &[TensorType]) -> usize {
    let par = parallel(operands.iter().copied().chain(outputs));
    // SAFETY: no kernel runs, so that nothing is read.
    let views: Views<'_> = operands.iter().map(|ty| unsafe { View::of_part(ty, nowhere()) }).collect();
    // SAFETY: no kernel runs, so that nothing is written.
    let results = outputs.iter().map(|ty| unsafe { ViewMut::new(ty, nowhere()) });
    let results: SmallVec<[ViewMut<'_>; 3]> = results.collect();
    let tally = Tally::default();
    let memory = Memory::Given { operands: &views, results: &results, over: None };
    let run = Run { room: Room::counting(form::name(op), &tally), par, checked: true, memory, tail: None };
    // A refusal is the run's to report.
    let _refused = CpuBackend(()).dispatch(op, run, &|| Ok(()));
    tally.peak()
}
