//! What is known of an op's memory before it runs: where its result may lie, and how much it takes meanwhile.

use defn_core::op::{Block, Op};
use defn_core::{TensorType, form};
use smallvec::{SmallVec, smallvec};

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
    let same = operands.first().is_some_and(|operand| operand.dtype == output.dtype);
    let candidates: SmallVec<[usize; 3]> = match op {
        Op::Unary(_)
        | Op::AsType { .. }
        | Op::Bitcast { .. }
        | Op::Clip
        | Op::Reshape { .. }
        | Op::Squeeze { .. }
        | Op::StopGrad
        | Op::Mark { .. }
        | Op::Block(Block::Log2 | Block::Log10) => smallvec![0],
        Op::Binary(_) => smallvec![0, 1],
        Op::Select => smallvec![1, 2, 0],
        Op::PutSlice { .. } if same => smallvec![0],
        Op::Scatter { op, .. } if index::stays(*op, operands[0].dtype, output.dtype) => smallvec![0],
        Op::TriangularSolve { lower, left_side, transform } => {
            let task = Task::of_triangular(*lower, *left_side, *transform, false);
            matrix::place_of(task, operands, output).into_iter().collect()
        }
        Op::Block(block) => {
            let task = Task::of_block(block);
            task.and_then(|task| matrix::place_of(task, operands, output)).into_iter().collect()
        }
        Op::PutSlice { .. }
        | Op::Scatter { .. }
        | Op::Parameter { .. }
        | Op::Constant(_)
        | Op::Literal(_)
        | Op::Iota { .. }
        | Op::Eye { .. }
        | Op::Broadcast { .. }
        | Op::Transpose { .. }
        | Op::Pad { .. }
        | Op::Reverse { .. }
        | Op::Concatenate { .. }
        | Op::Stack { .. }
        | Op::Slice { .. }
        | Op::Reduce { .. }
        | Op::ArgReduce { .. }
        | Op::Gather { .. }
        | Op::Sort { .. }
        | Op::Argsort { .. }
        | Op::Window { .. }
        | Op::WindowScatter { .. }
        | Op::Conv(_)
        | Op::Fft { .. }
        | Op::Dot { .. }
        | Op::Collective(_)
        | Op::Fold(_)
        | Op::WindowFold(_)
        | Op::Cond(_)
        | Op::While(_)
        | Op::CustomGrad(_)
        | Op::Hook(_)
        | Op::RuntimeCall(_)
        | Op::UserBlock(_) => SmallVec::new(),
    };
    candidates.into_iter().filter(|&index| fits(operands[index], output)).collect()
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
