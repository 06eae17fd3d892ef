//! Ops with an epilogue that runs while they compute their result.

use std::cell::Cell;

use defn_core::backend::Poll;
use defn_core::op::Op;
use defn_core::{Result, TensorType, form};

use super::scratch_allocator::ScratchAllocator;
use super::{CpuBackend, Memory, OpRun};
use crate::kernels::epilogue::EpilogueFn;
use crate::kernels::linalg::{self, Dot, DotAxes};
use crate::kernels::window::AxisOrder;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The least size in bytes of a result for which an epilogue pays: no cache holds all of it until its consumer reads
/// it. For smaller results two separate passes are as fast.
const MIN_EPILOGUE_BYTES: usize = 16 << 20;

/// The most elements of a row, and of a sum. The epilogue takes whole rows, and is a relevant share of the time only if
/// sums are short.
const MAX_EPILOGUE_ROW: usize = 512;

thread_local! {
    /// Whether tests on this thread use epilogues at any size.
    static FORCE_EPILOGUES: Cell<bool> = const { Cell::new(false) };
}

/// Compiles with epilogues wherever they are possible; for tests, which need no large results then.
#[doc(hidden)]
pub fn with_epilogues_always<T>(body: impl FnOnce() -> T) -> T {
    let before = FORCE_EPILOGUES.replace(true);
    let outcome = body();
    FORCE_EPILOGUES.set(before);
    outcome
}

/// Whether programs have epilogues wherever they are possible.
pub(crate) fn forces_epilogues() -> bool {
    FORCE_EPILOGUES.get()
}

/// Whether an op can run an epilogue on its only result, and this is faster.
pub(crate) fn supports_epilogue(op: &Op, operands: &[&TensorType], outputs: &[TensorType]) -> bool {
    let ([out], is_forced) = (outputs, FORCE_EPILOGUES.get()) else { return false };
    let lies_as_computed = !out.dtype.is_integer() && linalg::compute_dtype(out.dtype) == out.dtype;
    if !lies_as_computed || out.byte_size() < MIN_EPILOGUE_BYTES && !is_forced {
        return false;
    }
    if let Op::Dot { contract_a, batch_a, contract_b, .. } = op {
        let [a, b] = [(0, contract_a), (1, contract_b)].map(|(index, contract)| DotAxes {
            sizes: operands[index].shape.sizes(),
            contract,
            batch: batch_a.len(),
        });
        let dot = Dot::new(a, b, true);
        return linalg::completes_blocks_early(&dot, out.dtype)
            && (is_forced || dot.n.max(dot.k) <= MAX_EPILOGUE_ROW);
    }
    let Op::Conv(conv) = op else { return false };
    // Complex convolutions lay out their columns in other pieces.
    if out.dtype.is_complex() || AxisOrder::of(&conv.output_permutation).is_none() {
        return false;
    }
    let positions: usize = out.shape.permuted(&conv.output_permutation).sizes()[2..].iter().product();
    let features = operands[1].shape.permuted(&conv.kernel_permutation).sizes()[0];
    is_forced || positions >= MAX_EPILOGUE_ROW && operands[1].size() <= MAX_EPILOGUE_ROW * features
}

/// As [`run_into`](super::run_into), unchecked, with an epilogue. `epilogue` is called on elements of the result when they
/// are complete, and may overwrite them; for ops that [`supports_epilogue`] accepts.
///
/// # Errors
/// As there.
pub(crate) fn run_with_epilogue(
    op: &Op,
    operands: &[View<'_>],
    result: &ViewMut<'_>,
    epilogue: EpilogueFn<'_>,
    par: Par,
    poll: Poll<'_>,
) -> Result<()> {
    let memory = Memory::Planned { operands, results: std::slice::from_ref(result), aliased_operand: None };
    let run = OpRun {
        allocator: ScratchAllocator::of(form::name(op)),
        par,
        checked: false,
        memory,
        epilogue: Some(epilogue),
    };
    CpuBackend(()).dispatch(op, run, poll).map(drop)
}
