//! Random graphs: the evaluator, which runs one op at a time, and compiled programs on all executors and with several
//! threads give the same bits, and nests touch nothing but their operands.
//!
//! Operands of nests are put between pages that cannot be accessed.

mod around;
mod control;
mod generate;
mod loops;
mod products;
#[cfg(test)]
mod tangents;
#[cfg(test)]
mod tests;
mod values;

use std::num::NonZeroUsize;
use std::sync::Arc;

use defn_core::backend::{Checks, Compiler, Executable, HostMemory, NoHooks};
use defn_core::donation::aliases;
use defn_core::evaluator::Evaluator;
use defn_core::{Tensor, pass};

use super::CpuCompiler;
use super::nest::test_hooks::{
    Executor, Mode, executors, with_chunk, with_mode, with_work, with_writes_in_place,
};
use crate::backend::{cpu_backend, with_epilogues_always};
use crate::difference::difference;
use crate::par::with_count;
use generate::{Choices, RandomProgram, program};

/// So little work is divided among threads.
const WORK: usize = 1 << 9;

type Results = Vec<Vec<u8>>;

impl RandomProgram {
    fn tensors(&self) -> Vec<Tensor> {
        let arguments = self.region.inputs().iter().zip(&self.arguments).map(|(ty, bytes)| {
            let buffer = cpu_backend().from_host(ty, HostMemory::new(Arc::new(bytes.clone())));
            Tensor::concrete(ty.clone(), buffer.expect("there is memory"))
        });
        arguments.collect()
    }

    fn run(&self, executable: &dyn Executable) -> Result<Results, String> {
        let results = executable.run(&cpu_backend(), self.tensors(), &NoHooks);
        let results = results.map_err(|error| error.to_string())?;
        let read = |tensor: &Tensor| {
            let mut bytes = vec![0; tensor.ty().byte_size()];
            tensor.require_buffer("test", "").and_then(|buffer| buffer.read(&mut bytes)).map(|()| bytes)
        };
        results.iter().map(read).collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    /// What is computed op by op.
    fn evaluated(&self) -> Result<Results, String> {
        let executable = Evaluator::new(cpu_backend()).compile(self.region.clone(), Checks::default());
        self.run(&*executable.map_err(|error| error.to_string())?)
    }

    fn compiled(&self, threads: usize) -> Result<Arc<dyn Executable>, String> {
        let compiler = CpuCompiler::new().with_threads(threads).map_err(|error| error.to_string())?;
        // One of the programs writes in place wherever it may, over its arguments too.
        let expanded = pass::expand(&self.region, &cpu_backend()).map_err(|error| error.to_string())?;
        let mut donate = Vec::new();
        for argument in (0..self.arguments.len()).filter(|_| threads > 1) {
            donate.push(argument);
            if aliases(&expanded, &donate).is_err() {
                donate.pop();
            }
        }
        let compile = || compiler.compile_donating(self.region.clone(), Checks::default(), &donate);
        let compile = || if threads > 1 { with_writes_in_place(compile) } else { compile() };
        let compile = || with_work(WORK, compile);
        let executable = if self.forces_epilogues { with_epilogues_always(compile) } else { compile() };
        executable.map_err(|error| error.to_string())
    }

    fn compare(&self, name: &str, want: &Results, got: &Results) -> Result<(), String> {
        for (at, (ty, (want, got))) in self.region.result_types().zip(want.iter().zip(got)).enumerate() {
            if let Some(difference) = difference(ty, want, got) {
                let text = self.region.to_text();
                return Err(format!("{name}: result {at}, {ty}, {difference} in\n{text}"));
            }
        }
        Ok(())
    }

    /// Compares all executors, with one thread and with this number; says how they differ. `at_end` is where operands
    /// have their pages. False if the program cannot be run.
    pub(crate) fn check(&self, threads: usize, at_end: bool, is_recorded: bool) -> Result<bool, String> {
        with_chunk(self.chunk, || self.check_in_pieces(threads, at_end, is_recorded))
    }

    fn check_in_pieces(&self, threads: usize, at_end: bool, is_recorded: bool) -> Result<bool, String> {
        let Ok(want) = self.evaluated() else { return Ok(false) };
        for threads in [1, threads] {
            let fails = |error| format!("{error} in\n{}", self.region.to_text());
            let executable = self.compiled(threads).map_err(fails)?;
            for (name, executor) in executors() {
                let is_recorded = is_recorded && threads == 1 && executor == Executor::Portable;
                let run = || with_mode(Mode { executor, at_end, is_recorded }, || self.run(&*executable));
                let count = NonZeroUsize::new(threads).expect("there is a thread");
                let got = with_count(count, run).map_err(fails)?;
                self.compare(&format!("{name}, {threads} threads"), &want, &got)?;
            }
        }
        Ok(true)
    }
}

/// Compares all executors on the program that the bytes choose; says how they differ. False if there is none, or it
/// cannot be run.
pub fn check_bytes(bytes: &[u8]) -> Result<bool, String> {
    let mut choices = Choices::Bytes(bytes);
    let (threads, at_end) = ([2, 7][choices.below(2)], choices.below(2) == 0);
    let is_looped = choices.below(4) == 0;
    let Some(program) = program(choices) else { return Ok(false) };
    let looped = if is_looped { program.looped() } else { None };
    looped.unwrap_or(program).check(threads, at_end, false)
}
