//! Loop nests as steps of a plan: what they read and write, and how they are run.

mod processor;
mod shared;
#[cfg(all(test, target_os = "linux"))]
pub(super) mod tested;

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use smallvec::SmallVec;

use super::cluster::{Cluster, Clusters};
use super::fuse::{Domain, Fused, Part, fuse, gathered};
use super::ir::Function;
use super::strip::Uses;
use super::strips::{self, Strip};
use crate::kernels::StridedView;
use crate::kernels::stream::StoreKind;
use crate::kernels::tiles::with_memory_between;
use crate::par::Par;
pub(super) use processor::{allocated, instruction_sets, processor};
pub use processor::{machine_code, refused_memory_for_code};
use shared::Shared;

/// Instructions on elements that one thread does at a time.
const CHUNK_WORK: usize = 1 << 18;

/// A nest, ready to run.
#[derive(Debug)]
pub(super) struct Nest {
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The inputs of gathers, in whose memory no result may lie.
    moved: SmallVec<[usize; 4]>,
    /// The places of the clusters that are gathers which the nest does itself.
    pub(super) gathers: SmallVec<[usize; 2]>,
    pub(super) results: Values,
    code: Arc<Shared>,
    /// The nest that stores past the caches, where its results are too large for them.
    streaming: Option<Arc<Shared>>,
    /// The bytes that each thread has for itself.
    scratch: usize,
    steps: usize,
    grain: usize,
    pub(super) elements: usize,
    #[cfg(all(test, target_os = "linux"))]
    bytes: tested::Bytes,
}

impl Nest {
    /// The nest of a cluster of element-wise ops that gives `results`.
    pub(super) fn of_elements(
        graph: &Graph,
        clusters: &Clusters,
        uses: &dyn Uses,
        cluster: &Cluster,
        results: &Values,
    ) -> Option<Nest> {
        let nodes: Vec<(usize, Part)> = cluster.nodes.iter().map(|&node| (node, Part::Elements)).collect();
        let elements = graph.nodes()[nodes[0].0].outputs[0].size();
        Nest::with_gathers(graph, clusters, uses, nodes, &Domain::of_elements(elements), results)
    }

    /// The nest of clusters that go through groups of elements together.
    pub(super) fn of_groups(
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
        Nest::with_gathers(graph, clusters, uses, nodes, &strip.domain, &results)
    }

    /// The nest of nodes that reads at positions what it can, in place of a step that does so before.
    fn with_gathers(
        graph: &Graph,
        clusters: &Clusters,
        uses: &dyn Uses,
        nodes: Vec<(usize, Part)>,
        domain: &Domain,
        results: &Values,
    ) -> Option<Nest> {
        let gathered = gathered(graph, clusters, uses, &nodes);
        if !gathered.is_empty() {
            let nest = Nest::of_nodes(graph, clusters, nodes.clone(), domain, results, &gathered);
            if let Some(mut nest) = nest {
                nest.gathers = gathered.iter().filter_map(|&node| clusters.place[node]).collect();
                return Some(nest);
            }
        }
        Nest::of_nodes(graph, clusters, nodes, domain, results, &[])
    }

    fn of_nodes(
        graph: &Graph,
        clusters: &Clusters,
        nodes: Vec<(usize, Part)>,
        domain: &Domain,
        results: &Values,
        gathered: &[usize],
    ) -> Option<Nest> {
        let fused = fuse(graph, clusters, nodes.clone(), domain, results, gathered, false)?;
        let bytes = |value: Value| graph.ty(value).byte_size();
        let read = fused.inputs.iter().map(|(value, _)| bytes(*value)).sum();
        let written = fused.results.iter().map(|&value| bytes(value)).sum();
        let streaming = match StoreKind::for_transfer(read, written) {
            StoreKind::Cached => None,
            StoreKind::NonTemporal => {
                let streaming = fuse(graph, clusters, nodes, domain, results, gathered, true)?;
                Some(Shared::of(streaming.function))
            }
        };
        let Fused { function, inputs, moved, results, scratch, steps, least_steps, elements, cost } = fused;
        let step = elements.div_ceil(steps.max(1)).max(1);
        #[cfg(all(test, target_os = "linux"))]
        let work = tested::work();
        #[cfg(not(all(test, target_os = "linux")))]
        let work = CHUNK_WORK;
        let grain = (work / cost.max(1) / step).max(1).next_multiple_of(least_steps);
        let code = Shared::of(function);
        let gathers = SmallVec::new();
        Some(Nest {
            #[cfg(all(test, target_os = "linux"))]
            bytes: tested::Bytes {
                inputs: inputs.iter().map(|(value, _)| bytes(*value)).collect(),
                results: results.iter().map(|&value| bytes(value)).collect(),
            },
            inputs,
            moved,
            gathers,
            results,
            code,
            streaming,
            scratch,
            steps,
            grain,
            elements,
        })
    }

    /// Whether the elements of an input are read as the result's are written: one of them may lie in its memory.
    pub(super) fn reads_in_order(&self, input: usize) -> bool {
        self.inputs[input].1.is_plain(self.elements) && !self.moved.contains(&input)
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
        #[cfg(all(test, target_os = "linux"))]
        // SAFETY: as the caller promises.
        if unsafe { self.run_tested(inputs, results) } {
            return;
        }
        // SAFETY: as the caller promises.
        unsafe { self.run_here(inputs, results, par) }
    }

    /// # Safety
    /// As for `run`.
    unsafe fn run_here(&self, inputs: &[*mut u8], results: &[*mut u8], par: Par) {
        let is_aligned = || results.iter().all(|result| result.addr().is_multiple_of(64));
        let code = self.streaming.as_ref().filter(|_| is_aligned()).unwrap_or(&self.code);
        let mut args: SmallVec<[u64; 12]> = SmallVec::new();
        args.extend(inputs.iter().chain(results).map(|pointer| pointer.expose_provenance() as u64));
        let scratch = args.len();
        args.extend([0, 0, self.steps as u64]);
        args.extend_from_slice(&code.applied);
        let runner = code.runner(self.elements);
        if self.is_single() && self.scratch == 0 {
            // SAFETY: as the caller promises.
            unsafe { runner.run(&args) };
            return;
        }
        #[cfg(all(test, target_os = "linux"))]
        let mode = tested::mode();
        par.for_chunks(self.steps, self.grain, |chunk| {
            let mut args = args.clone();
            args[scratch + 1] = chunk.start as u64;
            args[scratch + 2] = chunk.len() as u64;
            let run = |memory: *mut u8| {
                args[scratch] = memory.expose_provenance() as u64;
                // SAFETY: as the caller promises; chunks write to different elements, and the memory is this thread's.
                unsafe { runner.run(&args) };
            };
            #[cfg(all(test, target_os = "linux"))]
            if mode.is_some() {
                tested::with_scratch(mode, self.scratch, run);
                return;
            }
            with_memory_between(self.scratch, run);
        });
    }
}
