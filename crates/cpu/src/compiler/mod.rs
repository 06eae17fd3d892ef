//! The compiler: a graph as steps, of which those that can be are loop nests in machine code.
//!
//! The phases are:
//!
//! 1. [`pass::expand`] simplifies the region and leaves only ops that the backend runs, and [`pass::by_elements`]
//!    writes small windows and the like as element-wise ops. [`pass::hoist`] computes before a loop what all trips would
//!    compute alike.
//! 2. `fusion_groups` gives each node a role: it exists before the run, is a strided view (`views`), is generated where
//!    it is read, is element-wise, or is a step of its own. Element-wise nodes are fused level by level, and with
//!    reductions of the same rows (`row_blocks`). Gathers (`gathers`), concatenations, paddings and transpositions
//!    (`data_movement`) are fused into their consumers. Large values that a later group reads are computed again in it,
//!    where that is cheap (`recompute`).
//! 3. Such a group becomes a nest (`nest`), if the IR has all that it needs: `fuse` makes a function of the typed IR
//!    (`ir`). `schedule` lowers it to instructions of the processor's kind, `emit` chooses registers and writes bytes,
//!    and `memory` keeps them where they can be executed. `interpret` runs the IR itself where there is no machine
//!    code, and until code pays. Equal functions of a process share their code. `assembly` prints both. Each op has one
//!    meaning, so that all executors give the same bits (`executor_tests` test it).
//! 4. Nests also run within products and convolutions (`nest/blocks`). Element-wise ops that consume one are
//!    its epilogue (`epilogues`), which runs on each block as soon as it is complete. This pays only if no cache holds
//!    the result, and sums and rows are short. Two products with rows between them, as in attention, are fused block by
//!    block (`back_to_back`), so that neither the first product nor the rows are written to memory.
//!
//! Eager element-wise ops, and conversions within kernels, are nests of one op (`nest/one_op.rs`), which a cache keeps,
//! and so are ops of random numbers (`nest/random.rs`).
//!
//! After that:
//!
//! 5. `buffer_assignment` and `arena` assign memory: a value is stored in an argument, a constant, a result, or the one
//!    block that a run allocates for temporaries. Reshapes, leading slices and the values of hooks alias their operand.
//!    An op writes in place of an operand that it reads last, where its kernel allows it. A chain of such ops that ends
//!    in a result computes in that result's memory from the start; one that begins with a donated argument computes in
//!    the argument's.
//! 6. A loop or a branch is one function (`control`): the plans of its regions are linked. Nests are parts of the
//!    function, scalars and small arrays its registers, and what else the regions do it calls. Other state is updated
//!    in place or alternates between two buffers.
//!
//! `run` executes the steps on raw pointers, by the code that runs ops eagerly (`run_into` of the backend). The memory
//! of a run is known before it: results, temporaries, and the largest workspace. A plan of one small nest runs
//! without a frame (`fast_path`). The values between fused rows are a few hundred KiB per thread, which no run's figure
//! counts.
//!
//! Results have the evaluator's bits on the expanded region, because nests and kernels add in the same order
//! (`docs/order.md`) and compute functions by the same operations. The exception is the bits of a NaN that is computed
//! from two NaNs.

mod arena;
mod assembly;
mod back_to_back;
mod background;
mod buffer_assignment;
mod control;
mod data_movement;
mod emit;
mod epilogues;
#[cfg(test)]
mod executor_tests;
mod fast_path;
mod fuse;
mod fusion_groups;
mod gathers;
mod interpret;
mod ir;
mod memory;
mod nest;
mod plan;
mod recompute;
// Cargo-fuzz, too, has it: see `fuzz`.
#[cfg(all(any(test, fuzzing), target_os = "linux"))]
pub(crate) mod random_graphs;
mod row_blocks;
mod run;
mod schedule;
mod threaded;
mod users;
mod views;

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{
    Backend, Buffers, Checks, Compiler, Executable, Gone, Hooks, MemoryNeed, check_arguments,
};
use defn_core::background::First;
use defn_core::device::DeviceError;
use defn_core::donation::{aliases, named};
use defn_core::evaluator::Evaluator;
use defn_core::profile::{self, Recorder};
use defn_core::region::Region;
use defn_core::{ErrorKind, Result, Tensor, pass};

use crate::backend::cpu_backend;
use crate::buffer::{CpuBuffer, Window};
use crate::modes::DefaultModes;
use crate::par::{interruptible, with_count};
use crate::settings;
use background::FirstCalls;
use fast_path::FastPath;
pub(crate) use fuse::Base;
pub(crate) use nest::{
    InOrder, OneProduct, OneReduction, convert_in_order, run_elementwise, run_in_order, run_random,
};
pub use nest::{machine_code, refused_memory_for_code};
use plan::Plan;
use run::{PlanRun, RunMemory};
use smallvec::SmallVec;
use threaded::Threaded;

/// Compiles for the CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuCompiler {
    /// How many threads run its programs, where it says it.
    threads: Option<NonZeroUsize>,
}

impl CpuCompiler {
    /// The compiler.
    pub fn new() -> CpuCompiler {
        CpuCompiler::default()
    }

    /// The compiler of programs that so many threads run, the calling one among them, whatever
    /// [`set_threads`](crate::set_threads) says.
    ///
    /// # Errors
    /// No thread at all, or more than 1,024.
    pub fn with_threads(self, threads: usize) -> Result<CpuCompiler> {
        Ok(CpuCompiler { threads: Some(settings::checked_thread_count("compiler \"cpu\"", threads)?) })
    }
}

impl Compiler for CpuCompiler {
    fn name(&self) -> &str {
        "cpu"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        settings::check()?;
        match self.threads {
            None => compile(program, checks, donate),
            Some(threads) => {
                let executable = with_count(threads, || compile(program, checks, donate))?;
                Ok(Arc::new(Threaded { executable, threads }))
            }
        }
    }

    fn in_background(
        &self,
        program: &Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Option<First>> {
        // A program with checks runs op by op anyway.
        if checks != Checks::default() {
            return Ok(None);
        }
        settings::check()?;
        let first: Arc<dyn Executable> = Arc::new(FirstCalls::new(program, cpu_backend(), donate)?);
        let executable = match self.threads {
            None => first,
            Some(threads) => Arc::new(Threaded { executable: first, threads }),
        };
        Ok(Some(First { executable, start: background::start }))
    }
}

fn compile(program: Arc<Region>, checks: Checks, donate: &[usize]) -> Result<Arc<dyn Executable>> {
    let backend = cpu_backend();
    // What is looked at op by op is run op by op.
    if checks != Checks::default() {
        if donate.is_empty() {
            return Evaluator::new(backend).compile(program, checks);
        }
        let problem = "a program with checks runs op by op".to_owned();
        return Err(DeviceError::Donate { problem, required: "one without checks is required" }.into());
    }
    let expanded = pass::hoist(&Arc::new(pass::expand(&program, &backend)?))?;
    let mut offered = vec![None; program.results().len()];
    aliases(&expanded, donate)?.into_iter().for_each(|(argument, result)| offered[result] = Some(argument));
    let plan = Plan::new(expanded, &backend, &offered)?;
    let mut used = vec![false; program.inputs().len()];
    plan.arguments.iter().chain(donate).for_each(|&index| used[index] = true);
    let donated = donate.iter().map(|&argument| {
        let result = offered.iter().position(|offered| *offered == Some(argument));
        (argument, result.filter(|&result| plan.reuses_argument[result]))
    });
    let mut donated: Vec<(usize, Option<usize>)> = donated.collect();
    donated.sort_unstable();
    donated.dedup();
    let fast_path = if donated.is_empty() { FastPath::of(&plan) } else { None };
    Ok(Arc::new(Compiled {
        program,
        plan,
        used,
        fast_path,
        donated,
        backend,
        on_other_backends: OnceLock::new(),
    }))
}

/// A compiled program.
#[derive(Debug)]
struct Compiled {
    program: Arc<Region>,
    plan: Plan,
    /// For each input, whether anything uses it.
    used: Vec<bool>,
    /// The fast path of a plan of one short step.
    fast_path: Option<FastPath>,
    /// The donated arguments, and the results that reuse their memory.
    donated: Vec<(usize, Option<usize>)>,
    backend: Arc<dyn Backend>,
    /// The program for tensors of other backends, which runs op by op.
    on_other_backends: OnceLock<Arc<dyn Executable>>,
}

impl Compiled {
    fn on_other_backends(&self) -> Result<&Arc<dyn Executable>> {
        if let Some(known) = self.on_other_backends.get() {
            return Ok(known);
        }
        let evaluator = Evaluator::new(self.backend.clone());
        let made = evaluator.compile(self.program.clone(), Checks::default())?;
        Ok(self.on_other_backends.get_or_init(|| made))
    }
}

impl Executable for Compiled {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        self.used[input]
    }

    fn memory(&self) -> Result<MemoryNeed> {
        let used = self.program.inputs().iter().zip(&self.used).filter(|(_, used)| **used);
        Ok(MemoryNeed {
            arguments: used.map(|(ty, _)| ty.byte_size()).sum(),
            results: self.plan.owned_results.iter().map(|own| own.bytes).sum(),
            temporaries: self.plan.arena,
            workspace: self.plan.workspace,
        })
    }

    fn assembly(&self, instructions: Option<&str>) -> Result<String> {
        assembly::text(&self.plan, instructions)
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        if !backend.is_same_device(&*self.backend) {
            return self.on_other_backends()?.run(backend, arguments, hooks);
        }
        check_arguments("run", self.program.inputs(), arguments.iter())?;
        let arguments: SmallVec<[&Tensor; 8]> = arguments.iter().collect();
        let buffers = self.run_here(&arguments, hooks)?;
        let types = self.program.result_types().cloned();
        Ok(types.zip(buffers).map(|(ty, buffer)| Tensor::concrete(ty, buffer)).collect())
    }

    fn run_borrowed(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: &[&Tensor],
        hooks: &dyn Hooks,
    ) -> Result<Buffers> {
        if !backend.is_same_device(&*self.backend) {
            return self.on_other_backends()?.run_borrowed(backend, arguments, hooks);
        }
        self.run_here(arguments, hooks)
    }

    fn run_on_bytes(&self, arguments: &[&[u8]], results: &mut [&mut [u8]]) -> Result<()> {
        settings::check()?;
        let _modes = DefaultModes::set();
        interruptible(|| self.plan.run_on_bytes(&self.backend, arguments, results))
    }
}

impl Compiled {
    /// Runs on arguments of the program's types.
    fn run_here(&self, arguments: &[&Tensor], hooks: &dyn Hooks) -> Result<Buffers> {
        let recorder = profile::current();
        if let (Some(fast_path), None) = (&self.fast_path, &recorder) {
            return self.run_fast_path(fast_path, arguments);
        }
        let mut windows: SmallVec<[Option<Window>; 8]> = SmallVec::new();
        for (position, &argument) in arguments.iter().enumerate() {
            let is_locked =
                self.used[position] && !self.donated.iter().any(|(donated, _)| *donated == position);
            let lock = || self.buffer(argument)?.window("run");
            let window = if is_locked { Some(lock()) } else { None };
            windows.push(window.transpose().map_err(|error| named(error, position, argument))?);
        }
        let _modes = DefaultModes::set();
        let mut memory = RunMemory::default();
        memory.allocate(&self.plan)?;
        if !self.donated.is_empty() {
            self.take_donated(arguments, &mut windows, &mut memory)?;
        }
        let _program = recorder.as_deref().map(Recorder::program);
        let run = PlanRun { backend: &self.backend, hooks, recorder: recorder.as_deref() };
        interruptible(|| run.program(&self.plan, &windows, &mut memory))
            .inspect_err(|_| self.restore_donated(arguments, &mut windows))
    }

    /// Takes the donated arguments, or none of them.
    fn take_donated(
        &self,
        arguments: &[&Tensor],
        windows: &mut [Option<Window>],
        memory: &mut RunMemory,
    ) -> Result<()> {
        let gone = Gone::donated();
        for &(position, _) in &self.donated {
            let argument = arguments[position];
            match self.buffer(argument).and_then(|buffer| buffer.take_window("run", gone.clone())) {
                Ok(window) => windows[position] = Some(window),
                Err(error) => {
                    self.restore_donated(arguments, windows);
                    return Err(named(error, position, argument));
                }
            }
        }
        for &(position, result) in &self.donated {
            // An argument whose memory no result takes is held until the run is over.
            let Some(result) = result else { continue };
            let window = windows[position].take().expect("it was just taken");
            if let Err((error, window)) = memory.reuse_argument(position, result, window) {
                windows[position] = Some(window);
                self.restore_donated(arguments, windows);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives back the donated arguments that were not used up.
    #[cold]
    fn restore_donated(&self, arguments: &[&Tensor], windows: &mut [Option<Window>]) {
        for &(position, _) in &self.donated {
            if let (Some(window), Ok(buffer)) = (windows[position].take(), self.buffer(arguments[position])) {
                buffer.restore(window);
            }
        }
    }

    /// Where the elements of an argument are.
    fn buffer<'t>(&self, argument: &'t Tensor) -> Result<&'t CpuBuffer> {
        cpu_buffer(argument, &self.backend)
    }
}

/// Where the elements of an argument of a run on `backend`, the CPU, are.
fn cpu_buffer<'t>(argument: &'t Tensor, backend: &Arc<dyn Backend>) -> Result<&'t CpuBuffer> {
    let buffer = argument.require_buffer("run", "return it from the definition, and pass it then")?;
    buffer.as_any().downcast_ref::<CpuBuffer>().ok_or_else(|| {
        let (left, right) = (backend.device_name(), buffer.backend().device_name());
        ErrorKind::BackendConflict { op: "run", left, right }.into()
    })
}
