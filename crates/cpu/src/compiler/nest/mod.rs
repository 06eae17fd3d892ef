//! Loop nests as steps of a plan: what they read and write, and how they are run.

mod blocks;
mod cache;
mod one_op;
mod processor;
mod product;
mod random;
mod reduction;
mod shared;
#[cfg(all(any(test, fuzzing), target_os = "linux"))]
pub(super) mod test_hooks;

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use smallvec::SmallVec;

use super::emit::Limits;
use super::fuse::{Domain, DomainBox, Fused, NodeRole, fuse, fuse_boxes, gathered};
use super::fusion_groups::{FusionGroup, FusionGroups};
use super::ir::Function;
use super::row_blocks::RowBlockFusion;
use super::users::Uses;
use crate::kernels::StridedView;
use crate::kernels::stream::StoreKind;
use crate::kernels::thread_memory::with_thread_memory;
use crate::par::Par;
pub(super) use blocks::{BlockInput, BlockNest};
pub(crate) use one_op::{InOrder, convert_in_order, run_elementwise, run_in_order};
pub(super) use processor::{allocated, instruction_sets, processor};
pub use processor::{machine_code, refused_memory_for_code};
pub(crate) use product::OneProduct;
pub(crate) use random::run_random;
pub(crate) use reduction::OneReduction;
pub(super) use shared::SharedCode;

/// Instructions on elements that one thread does at a time.
const CHUNK_WORK: usize = 1 << 18;

/// About how many chunks there are at most. Horner's scheme over 16 M elements takes 2.6 ms in so many, and 2.8 ms in
/// five times as many.
const MAX_CHUNKS: usize = 256;

/// The fewest elements of nests that do several rows at once.
const MIN_TOGETHER: usize = 32;

/// Groups whose partial results one thread combines at a time.
const COMBINE_GRAIN: usize = 64;

/// The function of a nest of so many elements, with several rows at once where they are short and there are many.
fn with_rows_together(function: Function, elements: usize) -> Function {
    let Some(target) = processor().filter(|_| elements >= MIN_TOGETHER) else { return function };
    // The other half of the registers is for elements.
    let Limits { vectors, vector_bytes, .. } = target.limits();
    function.with_rows_together(vectors.len().div_ceil(2), vector_bytes)
}

/// A nest, ready to run.
#[derive(Debug)]
pub(super) struct Nest {
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The inputs of gathers, which no result may alias.
    unaliasable_inputs: SmallVec<[usize; 4]>,
    /// The results that may alias no input.
    unaliasable_results: SmallVec<[usize; 4]>,
    /// The indices of the fusion groups that are gathers fused into the nest.
    pub(super) gathers: SmallVec<[usize; 4]>,
    pub(super) results: Values,
    code: Arc<SharedCode>,
    /// The nest that stores past the caches, where its results are too large for them.
    streaming: Option<Streaming>,
    parts: ThreadPartition,
    /// The bytes that all threads share, for the results of pieces.
    partial: usize,
    /// The code that combines partial results, and its number of steps.
    combining: Option<(Arc<SharedCode>, usize)>,
    pub(super) elements: usize,
    #[cfg(all(any(test, fuzzing), target_os = "linux"))]
    types: test_hooks::Types,
}

/// The code of a nest that stores past the caches.
#[derive(Debug)]
struct Streaming {
    code: Arc<SharedCode>,
    /// With more threads, the code with ordinary stores is faster.
    max_threads: usize,
}

/// How threads divide a nest.
#[derive(Clone, Copy, Debug)]
struct ThreadPartition {
    /// The bytes that each thread has for itself.
    scratch: usize,
    /// The steps of the axis that is divided.
    steps: usize,
    /// The steps that one thread does at a time.
    grain: usize,
    /// Whether several threads have as much to do each as is worth a thread that may have to be woken.
    has_full_chunks: bool,
}

impl ThreadPartition {
    /// Whether one call on the calling thread is all that there is.
    fn is_single(self) -> bool {
        self.steps <= self.grain
    }

    /// How threads divide a function.
    fn of(fused: &Fused) -> ThreadPartition {
        let Fused { scratch, steps, least_steps, elements, cost, .. } = *fused;
        let step = elements.div_ceil(steps.max(1)).max(1);
        #[cfg(all(any(test, fuzzing), target_os = "linux"))]
        let work = test_hooks::work();
        #[cfg(not(all(any(test, fuzzing), target_os = "linux")))]
        let work = CHUNK_WORK;
        let least = (work / cost.max(1) / step).max(1);
        let least = least.max(steps / MAX_CHUNKS).next_multiple_of(least_steps);
        // Equal chunks: then two threads have as much to do each, and keep what is theirs in their caches.
        let grain = steps.div_ceil(steps.div_ceil(least).max(1)).next_multiple_of(least_steps);
        ThreadPartition { scratch, steps, grain: grain.max(1), has_full_chunks: steps >= 2 * least }
    }

    /// Runs a function part by part on so many elements.
    ///
    /// # Safety
    /// The pointers are those of the function's inputs and results, at whose memory nobody else is but for what is only
    /// read, and that of the memory for the results of pieces, if the function has such.
    unsafe fn run(
        self,
        code: &SharedCode,
        pointers: impl Iterator<Item = *mut u8>,
        shared: Option<*mut u8>,
        elements: usize,
        par: Par,
    ) {
        let ThreadPartition { scratch, steps, grain, .. } = self;
        // Each chunk has a copy. With ten scalars, and the copy in the heap, Horner's scheme over 16 M elements took 4.1
        // instead of 2.8 ms.
        let mut args: SmallVec<[u64; 32]> = SmallVec::new();
        args.extend(pointers.map(|pointer| pointer.expose_provenance() as u64));
        let own = args.len();
        args.push(0);
        args.extend(shared.map(|pointer| pointer.expose_provenance() as u64));
        let first = args.len();
        args.extend([0, steps as u64]);
        args.extend_from_slice(&code.applied);
        let runner = code.runner(elements);
        if self.is_single() && scratch == 0 {
            // SAFETY: as the caller promises.
            unsafe { runner.run(&args) };
            return;
        }
        #[cfg(all(any(test, fuzzing), target_os = "linux"))]
        let mode = test_hooks::mode();
        // One thread has nobody to share with, and each chunk waits for the non-temporal stores before it: Horner's scheme
        // over 16 M elements takes 2.5 instead of 2.9 ms.
        let grain = if par.threads() == 1 { grain.saturating_mul(8) } else { grain };
        par.for_chunks(steps, grain, |chunk| {
            let mut args = args.clone();
            args[first] = chunk.start as u64;
            args[first + 1] = chunk.len() as u64;
            let run = |memory: *mut u8| {
                args[own] = memory.expose_provenance() as u64;
                // SAFETY: as the caller promises; chunks write to different elements, and the memory is this thread's.
                unsafe { runner.run(&args) };
            };
            #[cfg(all(any(test, fuzzing), target_os = "linux"))]
            if mode.is_some() {
                test_hooks::with_scratch(mode, scratch, run);
                return;
            }
            with_thread_memory(scratch, run);
        });
    }
}

impl Nest {
    /// The nest of a fusion group of element-wise ops that gives `results`.
    pub(super) fn of_elements(
        graph: &Graph,
        fusion: &FusionGroups,
        uses: &dyn Uses,
        group: &FusionGroup,
        results: &Values,
    ) -> Option<Nest> {
        let nodes: Vec<(usize, NodeRole)> =
            group.nodes.iter().map(|&node| (node, NodeRole::Elements)).collect();
        let elements = graph.nodes()[nodes[0].0].outputs[0].size();
        Nest::with_gathers(graph, fusion, uses, nodes, &Domain::of_elements(elements), results)
    }

    /// The nest of fusion groups that go through groups of elements together.
    pub(super) fn of_row_blocks(
        graph: &Graph,
        fusion: &FusionGroups,
        uses: &dyn Uses,
        row_blocks: &RowBlockFusion,
    ) -> Option<Nest> {
        let (nodes, results) = (row_blocks.nodes(fusion), row_blocks.results(uses));
        Nest::with_gathers(graph, fusion, uses, nodes, &row_blocks.domain, &results)
    }

    /// The nest of nodes, with gathers fused into it where it can have them.
    fn with_gathers(
        graph: &Graph,
        fusion: &FusionGroups,
        uses: &dyn Uses,
        nodes: Vec<(usize, NodeRole)>,
        domain: &Domain,
        results: &Values,
    ) -> Option<Nest> {
        let gathered = gathered(graph, fusion, uses, &nodes);
        if !gathered.is_empty() && domain.is_in_order() {
            let nest = Nest::of_nodes(graph, fusion, nodes.clone(), domain, results, &gathered);
            if let Some(mut nest) = nest {
                nest.gathers = gathered.iter().filter_map(|&node| fusion.group_of[node]).collect();
                return Some(nest);
            }
        }
        Nest::of_nodes(graph, fusion, nodes, domain, results, &[])
    }

    /// The nest of an op by itself that makes random numbers.
    pub(super) fn of_node(graph: &Graph, fusion: &FusionGroups, node: usize, results: &Values) -> Nest {
        let domain = Domain::of_elements(graph.nodes()[node].outputs[0].size());
        let nest = Nest::of_nodes(graph, fusion, vec![(node, NodeRole::Elements)], &domain, results, &[]);
        nest.expect("the operands of one op fit its axes")
    }

    fn of_nodes(
        graph: &Graph,
        fusion: &FusionGroups,
        nodes: Vec<(usize, NodeRole)>,
        domain: &Domain,
        results: &Values,
        gathered: &[usize],
    ) -> Option<Nest> {
        Nest::of_fused(graph, results, |is_streaming| {
            fuse(graph, fusion, nodes.clone(), domain, results, gathered, is_streaming)
        })
    }

    /// The nest that gives `results` box by box; with each come the nodes that are computed in it.
    pub(super) fn of_boxes(
        graph: &Graph,
        fusion: &FusionGroups,
        boxes: &[(DomainBox, Vec<usize>)],
        results: &Values,
    ) -> Option<Nest> {
        Nest::of_fused(graph, results, |is_streaming| fuse_boxes(graph, fusion, boxes, results, is_streaming))
    }

    /// The nest of a function that stores past the caches or not.
    fn of_fused(graph: &Graph, results: &Values, fuse: impl Fn(bool) -> Option<Fused>) -> Option<Nest> {
        let fused = fuse(false)?;
        let bytes = |value: Value| graph.ty(value).byte_size();
        let read = fused.inputs.iter().map(|(value, _)| bytes(*value)).sum();
        let written = results.iter().map(|&value| bytes(value)).sum();
        let streams = |threads| StoreKind::for_transfer(read, written, threads) == StoreKind::NonTemporal;
        let streaming = match streams(1) {
            false => None,
            true => Some(Streaming {
                code: SharedCode::of(fuse(true)?.function),
                max_threads: if streams(2) { usize::MAX } else { 1 },
            }),
        };
        let parts = ThreadPartition::of(&fused);
        let Fused {
            function,
            inputs,
            unaliasable_inputs,
            unaliasable_results,
            results,
            partial,
            combining,
            elements,
            ..
        } = fused;
        let code = SharedCode::of(with_rows_together(function, elements));
        let gathers = SmallVec::new();
        let combining = combining.map(|(function, steps)| (SharedCode::of(function), steps));
        Some(Nest {
            #[cfg(all(any(test, fuzzing), target_os = "linux"))]
            types: test_hooks::Types {
                inputs: inputs.iter().map(|(value, _)| graph.ty(*value).clone()).collect(),
                results: results.iter().map(|&value| graph.ty(value).clone()).collect(),
            },
            inputs,
            unaliasable_inputs,
            unaliasable_results,
            gathers,
            results,
            code,
            streaming,
            parts,
            partial,
            combining,
            elements,
        })
    }

    /// The results that may alias an input, as pairs of both: its elements are read as theirs are
    /// written, and not again.
    pub(super) fn alias_candidates(&self) -> impl Iterator<Item = (usize, usize)> {
        let in_order = |input: &usize| {
            self.inputs[*input].1.is_plain(self.elements) && !self.unaliasable_inputs.contains(input)
        };
        let results = || (0..self.results.len()).filter(|result| !self.unaliasable_results.contains(result));
        let inputs = (0..self.inputs.len()).filter(in_order);
        inputs.flat_map(move |input| results().map(move |result| (result, input)))
    }

    /// What it computes, in one part after the other.
    pub(super) fn functions(&self) -> impl Iterator<Item = &Function> {
        let combining = self.combining.as_ref().map(|(code, _)| &**code);
        std::iter::once(&*self.code).chain(combining).map(|code| &code.function)
    }

    /// Does not store past the caches, because a result aliases an input.
    pub(super) fn disable_streaming(&mut self) {
        self.streaming = None;
    }

    /// Whether one call on the calling thread is all that there is.
    pub(super) fn is_single(&self) -> bool {
        self.parts.is_single() && self.combining.is_none()
    }

    /// Whether it is worth threads in a loop: what one writes, others may read in the next trip, from another cache.
    pub(super) fn is_worth_threads_in_loops(&self) -> bool {
        self.parts.has_full_chunks
    }

    /// Whether its functions may be parts of another one: one thread calls each once.
    pub(super) fn is_inlinable(&self) -> bool {
        self.parts.is_single() && self.streaming.is_none()
    }

    /// Its functions, one after the other, and how many steps each has.
    pub(super) fn function_steps(&self) -> impl Iterator<Item = (&Function, usize)> {
        let combining = self.combining.as_ref().map(|(code, steps)| (&code.function, *steps));
        std::iter::once((&self.code.function, self.parts.steps)).chain(combining)
    }

    /// The bytes that each thread has for itself.
    pub(super) fn own_bytes(&self) -> usize {
        self.parts.scratch
    }

    /// The bytes of scratch memory that a run needs.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.partial
    }

    /// Runs the nest.
    ///
    /// # Safety
    /// At the pointers are the elements of the inputs, and room for those of the results, which nobody else uses and
    /// which are in the memory of inputs only where the nest was told so. At `scratch` are as many bytes as
    /// [`Nest::scratch_bytes`] says, aligned to a line of the cache, which nobody else uses.
    pub(super) unsafe fn run(&self, inputs: &[*mut u8], results: &[*mut u8], scratch: *mut u8, par: Par) {
        #[cfg(all(any(test, fuzzing), target_os = "linux"))]
        // SAFETY: as the caller promises.
        if unsafe { self.run_in_test_mode(inputs, results) } {
            return;
        }
        // SAFETY: as the caller promises.
        unsafe { self.run_here(inputs, results, scratch, par) }
    }

    /// How many steps the axis has that threads divide.
    pub(super) fn steps(&self) -> usize {
        self.parts.steps
    }

    /// Runs a nest that needs no memory beside on another number of steps than it was made for. Its code does not
    /// depend on it.
    ///
    /// # Safety
    /// As for `run`, of operands that have so many steps.
    pub(super) unsafe fn run_steps(&self, steps: usize, input: *mut u8, result: *mut u8, par: Par) {
        debug_assert!(self.combining.is_none());
        let elements = self.elements / self.parts.steps * steps;
        let parts = ThreadPartition { steps, ..self.parts };
        // SAFETY: as the caller promises.
        unsafe { parts.run(&self.code, [input, result].into_iter(), None, elements, par) }
    }

    /// # Safety
    /// As for `run`.
    unsafe fn run_here(&self, inputs: &[*mut u8], results: &[*mut u8], scratch: *mut u8, par: Par) {
        let is_aligned = || results.iter().all(|result| result.addr().is_multiple_of(64));
        let applies = |streaming: &&Streaming| par.threads() <= streaming.max_threads && is_aligned();
        let code = self.streaming.as_ref().filter(applies).map_or(&self.code, |streaming| &streaming.code);
        let pointers = || inputs.iter().chain(results).copied();
        let shared = self.combining.is_some().then_some(scratch);
        // SAFETY: as the caller promises.
        unsafe { self.parts.run(code, pointers(), shared, self.elements, par) };
        if let Some((code, steps)) = &self.combining {
            let parts =
                ThreadPartition { scratch: 0, steps: *steps, grain: COMBINE_GRAIN, has_full_chunks: true };
            // SAFETY: as above, and all pieces are done.
            unsafe { parts.run(code, pointers(), shared, self.elements, par) };
        }
    }
}
