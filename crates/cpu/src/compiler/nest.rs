//! Loop nests as steps of a plan: their code, shared by all programs of the process, and how they are run.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use defn_core::graph::{Graph, Value, Values};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::cluster::{Cluster, Clusters};
use super::emit::check::check;
use super::emit::evex::Evex;
use super::emit::neon::Neon;
use super::emit::registers::allocate;
use super::emit::vex::Vex;
use super::emit::{Allocated, Entry, Target};
use super::fuse::{Fused, Part, fuse};
use super::interpret::Interpreter;
use super::ir::{Function, Status};
use super::memory::code::{CodeBlock, CodeMemory};
use super::schedule::{Unsupported, lower};
use super::strip::Uses;
use super::strips::{self, Strip};
use crate::kernels::StridedView;
use crate::kernels::stream::StoreKind;
use crate::kernels::tiles::with_memory_between;
use crate::par::Par;

/// Instructions on elements that one thread does at a time.
const CHUNK_WORK: usize = 1 << 18;

/// The least elements of a chunk that begins within a row: whole lines of every type.
const CHUNK_LINES: usize = 1 << 12;

/// The run from which on a nest gets machine code, however short it is.
const WARM: u32 = 8;

/// Instructions that the portable executor may run before code is worth while, for each instruction of the nest.
const COLD_WORK: usize = 1 << 10;

/// A nest, ready to run.
#[derive(Debug)]
pub(super) struct Nest {
    pub(super) inputs: Vec<(Value, StridedView)>,
    pub(super) results: Values,
    code: Arc<Shared>,
    /// The nest that stores past the caches, where its results are too large for them.
    streaming: Option<Arc<Shared>>,
    /// The bytes that each thread has for itself.
    scratch: usize,
    steps: usize,
    grain: usize,
    pub(super) elements: usize,
}

impl Nest {
    /// The nest of a cluster of element-wise ops that gives `results`.
    pub(super) fn of_elements(
        graph: &Graph,
        clusters: &Clusters,
        cluster: &Cluster,
        results: &Values,
    ) -> Option<Nest> {
        let nodes = cluster.nodes.iter().map(|&node| (node, Part::Elements)).collect();
        Nest::of_nodes(graph, clusters, nodes, None, results)
    }

    /// The nest of clusters that go through rows together.
    pub(super) fn of_rows(
        graph: &Graph,
        clusters: &Clusters,
        uses: &dyn Uses,
        strip: &Strip,
    ) -> Option<Nest> {
        let mut nodes = Vec::new();
        let mut results = Values::new();
        for (place, part) in &strip.parts {
            let part = match part {
                strips::Part::Elements => Part::Elements,
                strips::Part::Rows => Part::Rows,
                strips::Part::Fold(op) => Part::Fold(*op),
            };
            nodes.extend(clusters.order[*place].nodes.iter().map(|&node| (node, part)));
            let is_needed = |value: &Value| uses.is_needed_beyond(*value, &|place| strip.has(place));
            results.extend(uses.of(*place).iter().copied().filter(is_needed));
        }
        Nest::of_nodes(graph, clusters, nodes, Some((strip.rows, strip.len)), &results)
    }

    fn of_nodes(
        graph: &Graph,
        clusters: &Clusters,
        nodes: Vec<(usize, Part)>,
        rows: Option<(usize, usize)>,
        results: &Values,
    ) -> Option<Nest> {
        let fused = fuse(graph, clusters, nodes.clone(), rows, results, false)?;
        let bytes = |value: Value| graph.ty(value).byte_size();
        let read = fused.inputs.iter().map(|(value, _)| bytes(*value)).sum();
        let written = fused.results.iter().map(|&value| bytes(value)).sum();
        let streaming = match StoreKind::for_transfer(read, written) {
            StoreKind::Cached => None,
            StoreKind::NonTemporal => {
                let streaming = fuse(graph, clusters, nodes, rows, results, true)?;
                Some(Shared::of(streaming.function))
            }
        };
        let Fused { function, inputs, results, scratch, steps, elements, cost } = fused;
        let step = elements.div_ceil(steps.max(1)).max(1);
        let grain = (CHUNK_WORK / cost.max(1) / step).max(1);
        let grain = if step == 1 { grain.next_multiple_of(CHUNK_LINES) } else { grain };
        let code = Shared::of(function);
        Some(Nest { inputs, results, code, streaming, scratch, steps, grain, elements })
    }

    /// What it computes.
    pub(super) fn function(&self) -> &Function {
        &self.code.function
    }

    /// Does not store past the caches: a result is in the memory of an input.
    pub(super) fn set_in_place(&mut self) {
        self.streaming = None;
    }

    /// Whether one call on the calling thread is all that there is.
    pub(super) fn is_single(&self) -> bool {
        self.steps <= self.grain
    }

    /// Runs the nest.
    ///
    /// # Safety
    /// At the pointers are the elements of the inputs, and room for those of the results, which nobody else uses and
    /// which are in the memory of inputs only where the nest was told so.
    pub(super) unsafe fn run(&self, inputs: &[*mut u8], results: &[*mut u8], par: Par) {
        let is_aligned = || results.iter().all(|result| result.addr().is_multiple_of(64));
        let code = self.streaming.as_ref().filter(|_| is_aligned()).unwrap_or(&self.code);
        let mut args: SmallVec<[u64; 12]> = SmallVec::new();
        args.extend(inputs.iter().chain(results).map(|pointer| pointer.expose_provenance() as u64));
        let scratch = args.len();
        args.extend([0, 0, self.steps as u64]);
        let runner = code.runner(self.elements);
        if self.is_single() && self.scratch == 0 {
            // SAFETY: as the caller promises.
            unsafe { runner.run(&args) };
            return;
        }
        par.for_chunks(self.steps, self.grain, |chunk| {
            let mut args = args.clone();
            args[scratch + 1] = chunk.start as u64;
            args[scratch + 2] = chunk.len() as u64;
            with_memory_between(self.scratch, |memory| {
                args[scratch] = memory.expose_provenance() as u64;
                // SAFETY: as the caller promises; chunks write to different elements, and the memory is this thread's.
                unsafe { runner.run(&args) };
            });
        });
    }
}

/// A function and its code, shared by all nests that are alike.
#[derive(Debug)]
pub(super) struct Shared {
    function: Function,
    runs: AtomicU32,
    interpreter: OnceLock<Interpreter>,
    /// None where there is no machine code: no memory for it, or an op that the processor lacks.
    machine: OnceLock<Option<CodeBlock>>,
}

/// What runs a function now.
#[derive(Clone, Copy)]
pub(super) enum Runner<'s> {
    Machine(Entry),
    Portable(&'s Interpreter),
}

impl Runner<'_> {
    /// # Safety
    /// The arguments are those of the function: pointers to the memory that it uses, scalars, kernels.
    pub(super) unsafe fn run(self, args: &[u64]) -> Status {
        match self {
            // SAFETY: as the caller promises.
            Runner::Machine(entry) => unsafe { entry(args.as_ptr()) },
            // SAFETY: as above.
            Runner::Portable(interpreter) => unsafe { interpreter.run(args.as_ptr()) },
        }
    }
}

/// The functions of the process by their hashes.
static KNOWN: Mutex<Option<FxHashMap<u64, Vec<Weak<Shared>>>>> = Mutex::new(None);

impl Shared {
    /// The code of a function: that of an equal one, if there is one.
    fn of(function: Function) -> Arc<Shared> {
        let mut hasher = FxHasher::default();
        function.hash(&mut hasher);
        let hash = hasher.finish();
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = known.get_or_insert_default().entry(hash).or_default();
        alike.retain(|code| code.strong_count() > 0);
        if let Some(code) = alike.iter().filter_map(Weak::upgrade).find(|code| code.function == function) {
            return code;
        }
        let code = Arc::new(Shared {
            function,
            runs: AtomicU32::new(0),
            interpreter: OnceLock::new(),
            machine: OnceLock::new(),
        });
        alike.push(Arc::downgrade(&code));
        code
    }

    /// What runs the function on so many elements: machine code once it pays.
    fn runner(&self, elements: usize) -> Runner<'_> {
        if let Some(Some(block)) = self.machine.get() {
            return Runner::Machine(entry_of(block));
        }
        if self.machine.get().is_none() {
            let runs = self.runs.fetch_add(1, Ordering::Relaxed);
            if (runs >= WARM || elements > COLD_WORK)
                && let Some(block) = self.machine.get_or_init(|| compiled(&self.function))
            {
                return Runner::Machine(entry_of(block));
            }
        }
        Runner::Portable(self.interpreter.get_or_init(|| Interpreter::new(&self.function)))
    }
}

fn entry_of(block: &CodeBlock) -> Entry {
    // SAFETY: the block begins with the code of a function that is called so.
    unsafe { std::mem::transmute::<*const u8, Entry>(block.entry()) }
}

/// The machine code of a function, where this processor has all that it needs.
fn compiled(function: &Function) -> Option<CodeBlock> {
    let target = processor()?;
    let allocated = allocated(function, target).ok()?;
    CodeMemory::add(&target.encode(&allocated), "nest")
}

/// A function with the registers of an instruction set. Debug builds check them.
///
/// # Errors
/// The instruction set lacks an op.
pub(super) fn allocated(function: &Function, target: &dyn Target) -> Result<Allocated, Unsupported> {
    let code = lower(function, target)?;
    let words = u32::from(function.buffers + function.params);
    if !cfg!(debug_assertions) {
        return Ok(allocate(&code, target, words, None));
    }
    let mut origins = Vec::new();
    let allocated = allocate(&code, target, words, Some(&mut origins));
    if let Err(problem) = check(&code, &allocated, &origins, target) {
        panic!("{problem}\n{function}");
    }
    Ok(allocated)
}

/// The instruction set of this processor, as far as the settings allow it.
#[cfg(target_arch = "x86_64")]
pub(super) fn processor() -> Option<&'static dyn Target> {
    use crate::kernels::simd::{Level, level};
    match level() {
        Level::Avx512 => Some(&Evex),
        Level::Avx2 if is_x86_feature_detected!("f16c") => Some(&Vex),
        Level::Avx2 | Level::Portable => None,
    }
}

/// The instruction set of this processor.
#[cfg(target_arch = "aarch64")]
pub(super) fn processor() -> Option<&'static dyn Target> {
    Some(&Neon)
}

/// Other processors have the portable executor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn processor() -> Option<&'static dyn Target> {
    None
}

/// The instruction sets that code is generated for, by their names.
pub(super) fn instruction_sets() -> [(&'static str, &'static dyn Target); 3] {
    [("avx512", &Evex), ("avx2", &Vex), ("neon", &Neon)]
}
