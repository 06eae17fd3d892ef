//! Where the values of a plan lie: in arguments, in what the program has written in it, in results, and between them in
//! one block of memory, in which values lie where others lay that nothing reads any more.

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

/// Where a value lies, and how many bytes from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Argument(usize, usize),
    Kept(usize, usize),
    Result(usize, usize),
    Arena(usize),
}

impl Place {
    /// The place so many bytes further on.
    fn after(self, bytes: usize) -> Place {
        match self {
            Place::Argument(index, offset) => Place::Argument(index, offset + bytes),
            Place::Kept(index, offset) => Place::Kept(index, offset + bytes),
            Place::Result(index, offset) => Place::Result(index, offset + bytes),
            Place::Arena(offset) => Place::Arena(offset + bytes),
        }
    }
}

/// What is written in the program.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) window: Window,
    start: *const u8,
}

// SAFETY: the memory is only read, and it is kept.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl Kept {
    /// Where it begins.
    pub(super) fn start(&self) -> *const u8 {
        self.start
    }
}

/// How a result is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// A step writes it.
    Written,
    /// It is an earlier one.
    Same(usize),
    /// It is there before anything runs.
    There(Place),
    /// It is copied from there when all is done.
    Copied(Place),
}

/// The values of a region by numbers, and which are others under another type.
#[derive(Debug)]
pub(super) struct Slots {
    /// The slot of each node's first output.
    first: Vec<usize>,
    /// What each slot is of another, if it has no memory of its own: which, and from which byte on.
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

    fn of(&self, value: Value) -> usize {
        self.first[value.node as usize] + value.output as usize
    }

    /// The slot that has the memory of a value, and where in it the value begins.
    fn root(&self, value: Value) -> (usize, usize) {
        let slot = self.of(value);
        self.alias[slot].unwrap_or((slot, 0))
    }

    /// Notes that a node's outputs are its operands under other types, if they are.
    pub(super) fn alias(&mut self, graph: &Graph, fusion: &FusionGroups, position: usize) -> bool {
        let node = &graph.nodes()[position];
        let (count, from) = match node.op.class() {
            OpClass::Hook(_) => (node.inputs.len(), None),
            OpClass::Identity { .. } => (1, None),
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

/// A plan's steps with places for all that they read and write.
pub(super) struct Layout {
    pub(super) kept: Vec<Kept>,
    pub(super) results: Vec<Given>,
    pub(super) over: Vec<bool>,
    pub(super) arena: usize,
    pub(super) largest: Option<usize>,
    pub(super) arguments: Vec<usize>,
}

/// The memory of one value, or of several of which each takes the place of the one before.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: usize,
    /// Where it is; what has no place yet gets one in the arena.
    place: Option<Place>,
    /// The step after which nothing reads the last of the values.
    end: usize,
    node: usize,
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    bytes: usize,
    /// The last step that reads it, or the number of steps for what results are.
    end: Option<usize>,
    block: Option<usize>,
    /// Whether a step writes it.
    is_written: bool,
    /// The first result that it is as a whole.
    result: Option<usize>,
}

/// The layout as it is made.
struct Making<'a> {
    graph: &'a Graph,
    slots: &'a Slots,
    lives: Vec<Life>,
    blocks: Vec<Block>,
    /// For each argument the result that may take its memory.
    lent: Vec<Option<usize>>,
    /// For each result whether it does.
    over: Vec<bool>,
}

impl Layout {
    /// Gives everything in `steps` its place. `offered` says for each result whose argument's memory it may take.
    pub(super) fn new(
        region: &Region,
        fusion: &FusionGroups,
        slots: &Slots,
        steps: &mut [Step],
        backend: &Arc<dyn Backend>,
        offered: &[Option<usize>],
    ) -> Result<Layout> {
        let graph = region.graph();
        let mut lent = vec![None; region.inputs().len()];
        for (result, argument) in offered.iter().enumerate() {
            if let Some(argument) = argument {
                lent[*argument] = Some(result);
            }
        }
        let outputs = graph.nodes().iter().flat_map(|node| &node.outputs);
        let lives = outputs.map(|ty| Life { bytes: ty.byte_size(), ..Life::default() }).collect();
        let over = vec![false; region.results().len()];
        let mut making = Making { graph, slots, lives, blocks: Vec::new(), lent, over };
        for (at, step) in steps.iter().enumerate() {
            for (input, _) in &step.inputs {
                making.lives[slots.root(*input).0].end = Some(at);
            }
            step.outputs.iter().for_each(|(output, _)| making.lives[slots.of(*output)].is_written = true);
        }
        for (at, &value) in region.results().iter().enumerate() {
            let (root, _) = slots.root(value);
            let is_whole = making.lives[root].bytes == graph.ty(value).byte_size();
            let life = &mut making.lives[root];
            life.end = Some(steps.len());
            if is_whole {
                life.result.get_or_insert(at);
            }
        }
        let (kept, arguments) = making.given(fusion, backend, steps.len())?;
        for (at, step) in steps.iter_mut().enumerate() {
            making.write(at, step);
        }
        let (arena, largest) = making.arrange(steps);
        for (value, place) in
            steps.iter_mut().flat_map(|step| step.inputs.iter_mut().chain(&mut step.outputs))
        {
            *place = making.place(*value);
        }
        let results = region.results().iter().enumerate();
        let results = results.map(|(at, &value)| making.how(at, value)).collect();
        Ok(Layout { kept, results, over: making.over, arena, largest, arguments })
    }
}

impl Making<'_> {
    /// Makes blocks of the arguments that are read, and of what is written in the program.
    fn given(
        &mut self,
        fusion: &FusionGroups,
        backend: &Arc<dyn Backend>,
        always: usize,
    ) -> Result<(Vec<Kept>, Vec<usize>)> {
        let (mut kept, mut arguments) = (Vec::new(), Vec::new());
        for (position, node) in self.graph.nodes().iter().enumerate() {
            let slot = self.slots.first[position];
            if fusion.group_of[position].is_some()
                || self.lives.get(slot).is_none_or(|life| life.end.is_none())
            {
                continue;
            }
            let (place, end) = if let Op::Parameter { index, .. } = &node.op {
                if !arguments.contains(index) {
                    arguments.push(*index);
                } else {
                    // What is read under two names ends with the later of both.
                    self.lent[*index] = None;
                }
                (Place::Argument(*index, 0), self.lives[slot].end.unwrap_or(always))
            } else {
                let made = backend.run(&node.op, SmallVec::new(), &node.outputs);
                let buffer = made.map_err(|error| error.at(node.location.clone()))?.remove(0);
                let window = window(form::name(&node.op), &Operand { ty: node.outputs[0].clone(), buffer })?;
                let start = window.bytes().as_ptr();
                kept.push(Kept { window, start });
                (Place::Kept(kept.len() - 1, 0), always)
            };
            self.add(slot, Some(place), end, position);
            // A result that is an argument lies in its memory.
            if let (Some(result), Place::Argument(index, 0)) = (self.lives[slot].result, place)
                && self.lent[index] == Some(result)
            {
                self.over[result] = true;
            }
        }
        Ok((kept, arguments))
    }

    fn add(&mut self, slot: usize, place: Option<Place>, end: usize, node: usize) {
        self.lives[slot].block = Some(self.blocks.len());
        self.blocks.push(Block { bytes: self.lives[slot].bytes, place, end, node });
    }

    /// Makes blocks of what a step writes, or lets it write over what nothing reads after it.
    fn write(&mut self, at: usize, step: &mut Step) {
        let mut pairs = step.pairs(self.graph);
        let mut overs: SmallVec<[(usize, usize); 3]> = SmallVec::new();
        for output in 0..step.outputs.len() {
            let slot = self.slots.of(step.outputs[output].0);
            let end = self.lives[slot].end.unwrap_or(at);
            let over =
                pairs.iter().position(|&(own, input)| own == output && self.gives_way(at, step, input, slot));
            let Some(over) = over else {
                let place = self.lives[slot].result.map(|result| Place::Result(result, 0));
                self.add(slot, place, end, step.node);
                continue;
            };
            let (_, input) = pairs[over];
            pairs.retain(|&mut (_, other)| other != input);
            overs.push((output, input));
            let below = self.slots.root(step.inputs[input].0).0;
            let block = self.lives[below].block.expect("what is read has a block");
            self.lives[slot].block = Some(block);
            self.blocks[block].end = end;
            match (self.blocks[block].place, self.lives[slot].result) {
                (None, Some(result)) => self.blocks[block].place = Some(Place::Result(result, 0)),
                (Some(_), Some(result)) => self.over[result] = true,
                (None | Some(_), None) => {}
            }
        }
        step.set_over(self.graph, &overs);
    }

    /// Whether the output in a slot may be written over an input of a step.
    fn gives_way(&self, at: usize, step: &Step, input: usize, slot: usize) -> bool {
        let (below, offset) = self.slots.root(step.inputs[input].0);
        let uses = step.inputs.iter().filter(|(other, _)| self.slots.root(*other).0 == below).count();
        let (life, out) = (self.lives[below], self.lives[slot]);
        let Some(block) = life.block else { return false };
        let is_free = match (self.blocks[block].place, out.result) {
            (None, _) => true,
            (Some(Place::Argument(index, 0)), None) => self.lent[index].is_some(),
            (Some(Place::Argument(index, 0)), Some(result)) => self.lent[index] == Some(result),
            // The memory of another result.
            (Some(Place::Argument(..) | Place::Kept(..) | Place::Result(..) | Place::Arena(_)), _) => false,
        };
        let is_whole = offset == 0 && life.bytes == out.bytes && self.blocks[block].bytes == out.bytes;
        let pays = self.blocks[block].place.is_some() || step.saves(out.bytes);
        is_free && is_whole && pays && uses == 1 && life.end == Some(at)
    }

    /// Puts what has no place yet into the arena. Its size, and the node of the largest value in it.
    fn arrange(&mut self, steps: &mut [Step]) -> (usize, Option<usize>) {
        let mut arena = Arena::default();
        let mut largest: Option<(usize, usize)> = None;
        let mut ends: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); steps.len() + 1];
        for (at, step) in steps.iter_mut().enumerate() {
            for (value, _) in &step.outputs {
                let index = self.lives[self.slots.of(*value)].block.expect("what is written has a block");
                let block = &mut self.blocks[index];
                if block.place.is_none() {
                    block.place = Some(Place::Arena(arena.take(block.bytes)));
                    ends[block.end].push(index);
                    if largest.is_none_or(|(bytes, _)| bytes < block.bytes) {
                        largest = Some((block.bytes, block.node));
                    }
                }
            }
            let room = step.room(self.graph);
            step.room = arena.take(room);
            arena.give(step.room, room);
            for &index in &ends[at] {
                if let Some(Place::Arena(start)) = self.blocks[index].place {
                    arena.give(start, self.blocks[index].bytes);
                }
            }
        }
        (arena.bytes(), largest.map(|(_, node)| node))
    }

    fn place(&self, value: Value) -> Place {
        let (root, offset) = self.slots.root(value);
        let block = self.lives[root].block.expect("what is read or given has a block");
        self.blocks[block].place.expect("every block has a place").after(offset)
    }

    /// How a result is given.
    fn how(&self, at: usize, value: Value) -> Given {
        let life = self.lives[self.slots.root(value).0];
        let place = self.place(value);
        if !life.is_written {
            return Given::There(place);
        }
        match life.result.filter(|_| life.bytes == self.graph.ty(value).byte_size()) {
            Some(first) if first == at => Given::Written,
            Some(first) => Given::Same(first),
            None => Given::Copied(place),
        }
    }
}
