//! Buffer assignment: each value of a plan is stored in an argument, a constant, a result, or the arena, which is one
//! block of memory for all temporaries. Temporaries whose live ranges do not overlap share memory.

use std::sync::Arc;

use defn_core::Result;
use defn_core::backend::{Backend, Operand};
use defn_core::form;
use defn_core::graph::{Graph, Value};
use defn_core::op::{ElementWise, Op, OpClass, Primitive};
use defn_core::region::Region;
use smallvec::SmallVec;

use super::arena::Arena;
use super::fusion_groups::FusionGroups;
use super::plan::Step;
use crate::backend::window;
use crate::buffer::Window;

/// A buffer, and the offset in bytes at which a value begins in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferRef {
    Argument(usize, usize),
    Constant(usize, usize),
    Result(usize, usize),
    Arena(usize),
}

impl BufferRef {
    /// The same buffer, further on by some bytes.
    fn offset_by(self, bytes: usize) -> BufferRef {
        match self {
            BufferRef::Argument(index, offset) => BufferRef::Argument(index, offset + bytes),
            BufferRef::Constant(index, offset) => BufferRef::Constant(index, offset + bytes),
            BufferRef::Result(index, offset) => BufferRef::Result(index, offset + bytes),
            BufferRef::Arena(offset) => BufferRef::Arena(offset + bytes),
        }
    }
}

/// A constant of the program.
#[derive(Debug)]
pub(super) struct ConstantBuffer {
    pub(super) window: Window,
    start: *const u8,
}

// SAFETY: the memory is only read, and it is kept.
unsafe impl Send for ConstantBuffer {}
// SAFETY: as above.
unsafe impl Sync for ConstantBuffer {}

impl ConstantBuffer {
    /// Where it begins.
    pub(super) fn start(&self) -> *const u8 {
        self.start
    }
}

/// How a result gets its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultBinding {
    /// A step writes it.
    Computed,
    /// It is the same as an earlier one.
    SameAs(usize),
    /// It is an argument or a constant, or a part of one.
    Existing(BufferRef),
    /// It is copied from there after the last step.
    Copied(BufferRef),
}

/// Numbers the values of a region, and tells which alias others.
#[derive(Debug)]
pub(super) struct Slots {
    /// The slot of each node's first output.
    first: Vec<usize>,
    /// For each slot without memory of its own: the slot that it aliases, and its offset there in bytes.
    alias: Vec<Option<(usize, usize)>>,
}

impl Slots {
    pub(super) fn new(region: &Region) -> Slots {
        let mut count = 0;
        let first = region.graph().nodes().iter().map(|node| {
            count += node.outputs.len();
            count - node.outputs.len()
        });
        let first = first.collect();
        Slots { first, alias: vec![None; count] }
    }

    fn slot_of(&self, value: Value) -> usize {
        self.first[value.node as usize] + value.output as usize
    }

    /// The slot that has the memory of a value, and where in it the value begins.
    fn root(&self, value: Value) -> (usize, usize) {
        let slot = self.slot_of(value);
        self.alias[slot].unwrap_or((slot, 0))
    }

    /// Records that a node's outputs alias its operands, if they do.
    pub(super) fn alias(&mut self, graph: &Graph, fusion: &FusionGroups, position: usize) -> bool {
        let node = &graph.nodes()[position];
        let (count, from) = match node.op.class() {
            OpClass::Barrier | OpClass::Hook(_) => (node.inputs.len(), None),
            OpClass::Identity(_) => (1, None),
            OpClass::Primitive(Primitive::ElementWise(ElementWise::Bitcast(dtype))) if dtype.bits() >= 8 => {
                (1, None)
            }
            OpClass::Primitive(_) if node.op.view().is_some() => {
                let Some(value_view) = fusion.node_view(position) else { return false };
                let Some(start) = value_view.contiguous_start() else { return false };
                (1, Some((value_view.base, start * graph.ty(value_view.base).dtype.storage_bytes())))
            }
            OpClass::Primitive(_)
            | OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::CustomGrad(_)
            | OpClass::Implicit(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => return false,
        };
        for output in 0..count {
            let (base, offset) = from.unwrap_or((node.inputs[output], 0));
            let (root, start) = self.root(base);
            self.alias[self.first[position] + output] = Some((root, start + offset));
        }
        true
    }
}

/// The memory of a plan. The buffers of steps are in the steps.
pub(super) struct MemoryPlan {
    pub(super) constants: Vec<ConstantBuffer>,
    pub(super) results: Vec<ResultBinding>,
    pub(super) reuses_argument: Vec<bool>,
    pub(super) arena: usize,
    pub(super) largest_temporary: Option<usize>,
    pub(super) arguments: Vec<usize>,
}

/// The memory of one value, or of several that are updated in place one after the other.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    bytes: usize,
    /// Its buffer; an allocation that has none yet gets one in the arena.
    buffer_ref: Option<BufferRef>,
    /// The step after which nothing reads the last of the values.
    end: usize,
    node: usize,
}

/// The live range of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct LiveRange {
    bytes: usize,
    /// The last step that reads it, or the number of steps for what results are.
    end: Option<usize>,
    allocation: Option<usize>,
    /// Whether a step writes it.
    is_written: bool,
    /// The first result that it is as a whole.
    result: Option<usize>,
}

/// Buffer assignment in progress.
struct Assigner<'a> {
    graph: &'a Graph,
    slots: &'a Slots,
    live_ranges: Vec<LiveRange>,
    allocations: Vec<Allocation>,
    /// For each argument the result that may take its memory.
    donated_to: Vec<Option<usize>>,
    /// For each result whether it does.
    reuses_argument: Vec<bool>,
}

impl MemoryPlan {
    /// Assigns buffers to everything in `steps`. `donations` has for each result the argument whose memory it may
    /// reuse.
    pub(super) fn new(
        region: &Region,
        fusion: &FusionGroups,
        slots: &Slots,
        steps: &mut [Step],
        backend: &Arc<dyn Backend>,
        donations: &[Option<usize>],
    ) -> Result<MemoryPlan> {
        let graph = region.graph();
        let mut donated_to = vec![None; region.inputs().len()];
        for (result, argument) in donations.iter().enumerate() {
            if let Some(argument) = argument {
                donated_to[*argument] = Some(result);
            }
        }
        let outputs = graph.nodes().iter().flat_map(|node| &node.outputs);
        let live_ranges =
            outputs.map(|ty| LiveRange { bytes: ty.byte_size(), ..LiveRange::default() }).collect();
        let reuses_argument = vec![false; region.results().len()];
        let mut assigner =
            Assigner { graph, slots, live_ranges, allocations: Vec::new(), donated_to, reuses_argument };
        for (at, step) in steps.iter().enumerate() {
            for (input, _) in &step.inputs {
                assigner.live_ranges[slots.root(*input).0].end = Some(at);
            }
            step.outputs
                .iter()
                .for_each(|(output, _)| assigner.live_ranges[slots.slot_of(*output)].is_written = true);
        }
        for (at, &value) in region.results().iter().enumerate() {
            let (root, _) = slots.root(value);
            let is_whole = assigner.live_ranges[root].bytes == graph.ty(value).byte_size();
            let live_range = &mut assigner.live_ranges[root];
            live_range.end = Some(steps.len());
            if is_whole {
                live_range.result.get_or_insert(at);
            }
        }
        let (constants, arguments) = assigner.bind_inputs(fusion, backend, steps.len())?;
        for (at, step) in steps.iter_mut().enumerate() {
            assigner.assign_outputs(at, step);
        }
        let (arena, largest_temporary) = assigner.assign_arena(steps);
        for (value, buffer_ref) in
            steps.iter_mut().flat_map(|step| step.inputs.iter_mut().chain(&mut step.outputs))
        {
            *buffer_ref = assigner.buffer_ref(*value);
        }
        let results = region.results().iter().enumerate();
        let results = results.map(|(at, &value)| assigner.bind_result(at, value)).collect();
        Ok(MemoryPlan {
            constants,
            results,
            reuses_argument: assigner.reuses_argument,
            arena,
            largest_temporary,
            arguments,
        })
    }
}

impl Assigner<'_> {
    /// Adds allocations of the arguments that are read, and of constants.
    fn bind_inputs(
        &mut self,
        fusion: &FusionGroups,
        backend: &Arc<dyn Backend>,
        never_ends: usize,
    ) -> Result<(Vec<ConstantBuffer>, Vec<usize>)> {
        let (mut constants, mut arguments) = (Vec::new(), Vec::new());
        for (position, node) in self.graph.nodes().iter().enumerate() {
            let slot = self.slots.first[position];
            if fusion.group_of[position].is_some()
                || self.live_ranges.get(slot).is_none_or(|live_range| live_range.end.is_none())
            {
                continue;
            }
            let (buffer_ref, end) = if let Op::Parameter { index, .. } = &node.op {
                if !arguments.contains(index) {
                    arguments.push(*index);
                } else {
                    // What is read under two names ends with the later of both.
                    self.donated_to[*index] = None;
                }
                (BufferRef::Argument(*index, 0), self.live_ranges[slot].end.unwrap_or(never_ends))
            } else {
                let made = backend.run(&node.op, SmallVec::new(), &node.outputs);
                let buffer = made.map_err(|error| error.at(node.location.clone()))?.remove(0);
                let window = window(form::name(&node.op), &Operand { ty: node.outputs[0].clone(), buffer })?;
                let start = window.bytes().as_ptr();
                constants.push(ConstantBuffer { window, start });
                (BufferRef::Constant(constants.len() - 1, 0), never_ends)
            };
            self.add(slot, Some(buffer_ref), end, position);
            // A result that is an argument lies in its memory.
            if let (Some(result), BufferRef::Argument(index, 0)) = (self.live_ranges[slot].result, buffer_ref)
                && self.donated_to[index] == Some(result)
            {
                self.reuses_argument[result] = true;
            }
        }
        Ok((constants, arguments))
    }

    fn add(&mut self, slot: usize, buffer_ref: Option<BufferRef>, end: usize, node: usize) {
        self.live_ranges[slot].allocation = Some(self.allocations.len());
        self.allocations.push(Allocation { bytes: self.live_ranges[slot].bytes, buffer_ref, end, node });
    }

    /// Adds allocations of what a step writes, or aliases it with an input that nothing reads after the step.
    fn assign_outputs(&mut self, at: usize, step: &mut Step) {
        let mut candidates = step.alias_candidates(self.graph);
        let mut aliases: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for output in 0..step.outputs.len() {
            let slot = self.slots.slot_of(step.outputs[output].0);
            let end = self.live_ranges[slot].end.unwrap_or(at);
            let alias = candidates
                .iter()
                .position(|&(own, input)| own == output && self.can_reuse_buffer(at, step, input, slot));
            let Some(alias) = alias else {
                let buffer_ref = self.live_ranges[slot].result.map(|result| BufferRef::Result(result, 0));
                self.add(slot, buffer_ref, end, step.node);
                continue;
            };
            let (_, input) = candidates[alias];
            candidates.retain(|&mut (_, other)| other != input);
            aliases.push((output, input));
            let reused_slot = self.slots.root(step.inputs[input].0).0;
            let allocation =
                self.live_ranges[reused_slot].allocation.expect("what is read has an allocation");
            self.live_ranges[slot].allocation = Some(allocation);
            self.allocations[allocation].end = end;
            match (self.allocations[allocation].buffer_ref, self.live_ranges[slot].result) {
                (None, Some(result)) => {
                    self.allocations[allocation].buffer_ref = Some(BufferRef::Result(result, 0))
                }
                (Some(_), Some(result)) => self.reuses_argument[result] = true,
                (None | Some(_), None) => {}
            }
        }
        step.finalize_aliasing(self.graph, &aliases);
    }

    /// Whether the output in a slot may reuse the buffer of an input of a step.
    fn can_reuse_buffer(&self, at: usize, step: &Step, input: usize, slot: usize) -> bool {
        let (reused_slot, offset) = self.slots.root(step.inputs[input].0);
        let uses = step.inputs.iter().filter(|(other, _)| self.slots.root(*other).0 == reused_slot).count();
        let (live_range, out) = (self.live_ranges[reused_slot], self.live_ranges[slot]);
        let Some(allocation) = live_range.allocation else { return false };
        let is_free = match (self.allocations[allocation].buffer_ref, out.result) {
            (None, _) => true,
            (Some(BufferRef::Argument(index, 0)), None) => self.donated_to[index].is_some(),
            (Some(BufferRef::Argument(index, 0)), Some(result)) => self.donated_to[index] == Some(result),
            // The memory of another result.
            (
                Some(
                    BufferRef::Argument(..)
                    | BufferRef::Constant(..)
                    | BufferRef::Result(..)
                    | BufferRef::Arena(_),
                ),
                _,
            ) => false,
        };
        let is_whole =
            offset == 0 && live_range.bytes == out.bytes && self.allocations[allocation].bytes == out.bytes;
        let pays =
            self.allocations[allocation].buffer_ref.is_some() || step.benefits_from_aliasing(out.bytes);
        is_free && is_whole && pays && uses == 1 && live_range.end == Some(at)
    }

    /// Puts allocations without a buffer into the arena. Returns its size, and the node of the largest value in it.
    fn assign_arena(&mut self, steps: &mut [Step]) -> (usize, Option<usize>) {
        let mut arena = Arena::default();
        let mut largest_temporary: Option<(usize, usize)> = None;
        let mut ends: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new(); steps.len() + 1];
        for (at, step) in steps.iter_mut().enumerate() {
            for (value, _) in &step.outputs {
                let index = self.live_ranges[self.slots.slot_of(*value)]
                    .allocation
                    .expect("what is written has an allocation");
                let allocation = &mut self.allocations[index];
                if allocation.buffer_ref.is_none() {
                    allocation.buffer_ref = Some(BufferRef::Arena(arena.allocate(allocation.bytes)));
                    ends[allocation.end].push(index);
                    if largest_temporary.is_none_or(|(bytes, _)| bytes < allocation.bytes) {
                        largest_temporary = Some((allocation.bytes, allocation.node));
                    }
                }
            }
            let scratch_bytes = step.scratch_bytes(self.graph);
            step.scratch_offset = arena.allocate(scratch_bytes);
            arena.release(step.scratch_offset, scratch_bytes);
            for &index in &ends[at] {
                if let Some(BufferRef::Arena(start)) = self.allocations[index].buffer_ref {
                    arena.release(start, self.allocations[index].bytes);
                }
            }
        }
        (arena.bytes(), largest_temporary.map(|(_, node)| node))
    }

    fn buffer_ref(&self, value: Value) -> BufferRef {
        let (root, offset) = self.slots.root(value);
        let allocation = self.live_ranges[root].allocation.expect("operands and results have allocations");
        self.allocations[allocation].buffer_ref.expect("every allocation has a buffer").offset_by(offset)
    }

    /// How a result gets its buffer.
    fn bind_result(&self, at: usize, value: Value) -> ResultBinding {
        let live_range = self.live_ranges[self.slots.root(value).0];
        let buffer_ref = self.buffer_ref(value);
        if !live_range.is_written {
            return ResultBinding::Existing(buffer_ref);
        }
        match live_range.result.filter(|_| live_range.bytes == self.graph.ty(value).byte_size()) {
            Some(first) if first == at => ResultBinding::Computed,
            Some(first) => ResultBinding::SameAs(first),
            None => ResultBinding::Copied(buffer_ref),
        }
    }
}
