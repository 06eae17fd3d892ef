//! The portable executor: runs a function of the IR directly. It is the reference for what the IR means, and
//! runs where there is no machine code.
//!
//! [`Interpreter::new`] (`prepare`) turns the instructions into [`Step`]s: functions chosen by op and type
//! (`table`), with the slots of their operands in the frame, and jumps. What an op does to one element
//! stands in `scalars`; `lanes` has the loops over elements, `access` those between memory and registers.
//! `level` compiles loops for each instruction set.
//!
//! The frame has eight bytes for each scalar, a register for each vector that is alive, and the lanes of
//! accumulators.

mod access;
mod lanes;
pub(crate) mod level;
mod prepare;
mod run;
mod scalars;
mod step;
mod table;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use super::ir::Status;
#[cfg(test)]
use super::ir::{Elem, Op};
use run::InterpreterRun;
use step::{KernelCall, ResolvedAccess, Step, Term};

/// A function that can be run.
#[derive(Debug)]
pub(crate) struct Interpreter {
    /// The constants and parameters, which are made once a run.
    constants: Vec<Step>,
    steps: Vec<Step>,
    accesses: Vec<ResolvedAccess>,
    terms: Vec<Term>,
    calls: Vec<KernelCall>,
    /// The 64-byte lines of the frame.
    lines: usize,
    /// The words of the caller's before the first kernel.
    words: usize,
    /// The pointers of the caller's.
    buffers: usize,
}

/// A line of the frame.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "vectors are in it")] [u64; 8]);

/// A frame of more lines goes back to the system after a run: 1 MiB.
const MAX_CACHED_LINES: usize = (1 << 20) / size_of::<Line>();

thread_local! {
    /// The frame of the last run on this thread. A run takes it, so that a kernel may run another function.
    static FRAME: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

impl Interpreter {
    /// Runs the function, and returns 0 or what a kernel has returned.
    ///
    /// # Safety
    /// The arguments are those of the function: pointers, scalars, and kernels, each a
    /// [`BoundKernel`](super::ir::BoundKernel), in this order. All
    /// that it accesses is in memory, and is its own.
    pub(crate) unsafe fn run(&self, args: *const u64) -> Status {
        let mut lines = FRAME.take();
        if lines.len() < self.lines {
            lines.clear();
            lines.resize(self.lines, Line([0; 8]));
        }
        let mut run =
            InterpreterRun { interpreter: self, args, frame: lines.as_mut_ptr().cast(), start: 0, count: 1 };
        // SAFETY: as the caller says. The frame has the function's lines, and is initialized.
        let status = unsafe {
            run.all(&self.constants);
            run.all(&self.steps)
        };
        if lines.len() <= MAX_CACHED_LINES {
            FRAME.set(lines);
        }
        status
    }
}

/// The bits of what an op of scalars gives: its operands, the last of which has the type `from`, have the
/// bits `args`, and its result has the type `to`. None if it is no op of values, or has none of these types.
#[cfg(test)]
pub(crate) fn compute(op: Op, from: Elem, to: Elem, args: [u64; 3]) -> Option<u64> {
    let mut args = args;
    if let Some(by) = prepare::distance(op) {
        args[1] = by;
    }
    let functions = table::functions(op, from, to)?;
    let mut result = 0_u64;
    let [a, b, c] = args.each_ref().map(|arg| std::ptr::from_ref(arg).cast());
    // SAFETY: all have eight bytes, of which the function accesses those of its types; every bit pattern is a
    // value.
    unsafe { (functions.scalar)((&raw mut result).cast(), a, b, c) };
    Some(result)
}
