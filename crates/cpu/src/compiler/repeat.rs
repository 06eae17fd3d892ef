//! Loops: two regions over and over, on states that take turns in two places or are changed where they lie.

use std::sync::Arc;

use defn_core::Result;
use defn_core::TensorType;
use defn_core::backend::Backend;
use defn_core::op::WhileOp;
use smallvec::SmallVec;

use super::arena::rounded;
use super::plan::Plan;
use super::run::{PlanBuffers, PlanRun, is_true};

/// A loop, ready to run.
#[derive(Debug)]
pub(super) struct While {
    /// How many operands are state.
    pub(super) state: usize,
    predicate: TensorType,
    pub(super) cond: Plan,
    pub(super) body: Plan,
    /// For each part of the state its bytes, and where in the room its other place begins, if it has one.
    parts: Vec<(usize, Option<usize>)>,
    /// Where in the room the predicate is, and the memory of the regions.
    verdict: usize,
    inner: usize,
}

impl While {
    pub(super) fn new(op: &WhileOp, backend: &Arc<dyn Backend>) -> Result<While> {
        let cond = Plan::new(op.cond.clone(), backend, &[])?;
        // Each next state may take the place of the one before.
        let offered: Vec<Option<usize>> = (0..op.state).map(Some).collect();
        let body = Plan::new(op.body.clone(), backend, &offered)?;
        let mut end = 0;
        let parts = op.body.inputs()[..op.state].iter().zip(&body.reuses_argument).map(|(ty, over)| {
            let other = end;
            end += if *over { 0 } else { rounded(ty.byte_size()) };
            (ty.byte_size(), (!over).then_some(other))
        });
        let parts = parts.collect();
        let predicate = op.cond.graph().ty(op.cond.results()[0]).clone();
        let inner = end + rounded(predicate.byte_size());
        Ok(While { state: op.state, predicate, cond, body, parts, verdict: end, inner })
    }

    /// The bytes that the loop needs for itself.
    pub(super) fn room(&self) -> usize {
        self.inner + self.cond.arena.max(self.body.arena)
    }

    /// Runs the loop: from the operands, to the outputs, with `room` bytes from `room` on.
    ///
    /// # Safety
    /// Operands and outputs have the elements of their types, aligned, and the room its bytes, all of which nobody else
    /// uses meanwhile; an output may be the operand at its own place, and overlaps nothing else.
    pub(super) unsafe fn run(
        &self,
        run: &PlanRun<'_>,
        operands: &[*mut u8],
        outputs: &[*mut u8],
        room: *mut u8,
    ) -> Result<()> {
        let mut arguments: SmallVec<[*mut u8; 8]> = operands.into();
        let mut others: SmallVec<[*mut u8; 8]> = SmallVec::new();
        for (place, (bytes, other)) in self.parts.iter().enumerate() {
            // SAFETY: both have room for the state's part, and do not overlap unless they are one.
            unsafe { copy(operands[place], outputs[place], *bytes) };
            arguments[place] = outputs[place];
            others.push(other.map_or(outputs[place], |offset| room.wrapping_add(offset)));
        }
        let verdict = room.wrapping_add(self.verdict);
        let arena = room.wrapping_add(self.inner);
        loop {
            run.hooks.poll()?;
            let frame = PlanBuffers { arguments: &arguments, results: &[verdict], arena };
            // SAFETY: arguments and results are as the plan has them, and so is the room after the state's.
            unsafe { run.plan(&self.cond, &frame)? };
            // SAFETY: the plan has written the predicate.
            if !unsafe { is_true(&self.predicate, verdict) } {
                break;
            }
            let frame = PlanBuffers { arguments: &arguments, results: &others, arena };
            // SAFETY: as above; a part that has no other place is changed where it lies, as the plan was offered.
            unsafe { run.plan(&self.body, &frame)? };
            for (place, other) in others.iter_mut().enumerate() {
                std::mem::swap(&mut arguments[place], other);
            }
        }
        for (place, (bytes, _)) in self.parts.iter().enumerate() {
            // SAFETY: as for the copies above.
            unsafe { copy(arguments[place], outputs[place], *bytes) };
        }
        Ok(())
    }
}

/// Copies bytes, unless they are there already.
///
/// # Safety
/// Both places have as many, and are one or do not overlap.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    if from != to.cast_const() {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}
