//! Builds the function of a loop or a branch: what the steps of its regions do, one after the other.
//!
//! Nests that one thread runs are copied into the function. Everything else is a kernel that the function calls. The
//! scalars of the regions are in registers, and in memory only where a kernel reads them.

use std::sync::Arc;

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::Op as GraphOp;
use defn_core::{Kind, Scalar, TensorType};

use super::flow::FUEL;
use super::inline::{Binding, Original, inline};
use super::places::{NOWHERE, PerElement, Place, Scalars, elements_of, parts_of};
use super::regions::Regions;
use super::windows::Window;
use crate::compiler::buffer_assignment::{BufferRef, ResultBinding};
use crate::compiler::ir::{Access, Builder, Call, CallArg, Cmp, Conv, Elem, Function, Op, Val};
use crate::compiler::nest::Nest;
use crate::compiler::plan::{Plan, Work};

/// Nests of so many elements have instructions for each.
const MAX_UNROLLED: usize = 9;

/// Arrays of so many bytes are copied by instructions of the function.
const MAX_INLINE_COPY: usize = 1 << 10;

/// A kernel that a function calls.
#[derive(Clone, Debug)]
pub(super) enum Kernel {
    /// Copies: from, to, bytes.
    Copy,
    /// Asks the host whether to go on.
    Poll,
    /// A step of a plan: the addresses of what it reads, of what it gives, and of its own memory.
    Step(Arc<Plan>, usize),
}

/// A function with what its caller passes. Its pointers are one that is 0, the operands, the results, the memory beside
/// them, and the constants; its numbers are the addresses of all these.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) function: Function,
    pub(super) kernels: Vec<Kernel>,
    /// The constants of plans.
    pub(super) constants: Vec<(Arc<Plan>, usize)>,
    /// The bytes of the memory beside operands and results.
    pub(super) scratch: usize,
}

/// The memory of a region.
pub(super) struct Frame<'f> {
    pub(super) arguments: &'f [Place],
    pub(super) results: &'f [Place],
    pub(super) arena: Place,
}

pub(super) struct Linker {
    pub(super) b: Builder,
    kernels: Vec<Kernel>,
    constants: Vec<(Arc<Plan>, usize)>,
    /// The pointer of the first constant.
    first_constant: u16,
    pub(super) scalars: Scalars,
    /// Where memory is that nests have for themselves, and its bytes.
    own: Place,
    own_bytes: usize,
    /// What is left until the host is asked.
    pub(super) fuel: Option<Val>,
    /// The windows of the region that are read where they are.
    pub(super) windows: Vec<Window>,
}

/// Builds the function of the regions of a node.
pub(super) fn link(regions: &Regions, graph: &Graph, node: &Node) -> Linked {
    let operands = &types(graph, &node.inputs)[..];
    let results = &node.outputs[..];
    let scratch = 1 + (operands.len() + results.len()) as u16;
    let beside = regions.scratch_bytes();
    let mut linker = Linker {
        b: Builder::new(0, 0, 0),
        kernels: Vec::new(),
        constants: Vec::new(),
        first_constant: scratch + 1,
        scalars: Scalars::default(),
        own: Place::new(scratch, beside),
        own_bytes: 0,
        fuel: None,
        windows: Vec::new(),
    };
    if regions.polls() {
        linker.fuel = Some(linker.b.index(FUEL));
    }
    // Pointer 0 is that of addresses.
    let place = |at: usize| Place::new(at as u16 + 1, 0);
    let given: Vec<Place> = (0..operands.len()).map(place).collect();
    let made: Vec<Place> = (operands.len()..operands.len() + results.len()).map(place).collect();
    for (place, &operand) in given.iter().zip(&node.inputs) {
        if let GraphOp::Constant(scalar) = graph.node(operand).op {
            linker.set_constant(place, scalar);
        }
    }
    linker.regions(regions, (&given, operands), (&made, results), Place::new(scratch, 0));
    for (place, ty) in made.iter().zip(results) {
        linker.store(place, ty.byte_size());
    }
    let Linker { b, kernels, constants, own_bytes, .. } = linker;
    let buffers = usize::from(scratch) + 1 + constants.len();
    let function = b.finish_with(buffers as u16, buffers as u16, kernels.len() as u16);
    // To ask the host touches no memory.
    let poll = kernels.iter().position(|kernel| matches!(kernel, Kernel::Poll));
    let function = function.with_forwarded_stores(NOWHERE, poll.map(|at| at as u16));
    Linked { function, kernels, constants, scratch: beside + own_bytes }
}

/// The types of values.
fn types(graph: &Graph, values: &[Value]) -> Vec<TensorType> {
    values.iter().map(|&value| graph.ty(value).clone()).collect()
}

impl Linker {
    fn regions(
        &mut self,
        regions: &Regions,
        operands: (&[Place], &[TensorType]),
        results: (&[Place], &[TensorType]),
        scratch: Place,
    ) {
        let inner = scratch.offset_by(regions.inner());
        match regions {
            Regions::While(of) => self.repeat(of, regions.polls(), operands, results, (scratch, inner)),
            Regions::Cond(of) => self.branch(of, regions.polls(), operands, results, inner),
        }
    }

    // Memory.

    /// The address of a place.
    pub(super) fn address(&mut self, place: &Place) -> Val {
        let mut sum = self.b.index(place.offset);
        if place.buffer != NOWHERE {
            let base = self.b.param(place.buffer, Elem::Index);
            sum = self.b.computed(Op::Add, Elem::Index, [base, sum, Val::NONE]);
        }
        for &(term, by) in &place.terms {
            let by = self.b.index(by);
            let moved = self.b.computed(Op::Mul, Elem::Index, [term, by, Val::NONE]);
            sum = self.b.computed(Op::Add, Elem::Index, [moved, sum, Val::NONE]);
        }
        sum
    }

    /// Where a buffer of a plan is.
    pub(super) fn place(&mut self, plan: &Arc<Plan>, frame: &Frame<'_>, buffer: BufferRef) -> Place {
        match buffer {
            BufferRef::Argument(index, offset) => frame.arguments[index].offset_by(offset),
            BufferRef::Result(index, offset) => frame.results[index].offset_by(offset),
            BufferRef::Arena(offset) => frame.arena.offset_by(offset),
            BufferRef::Constant(index, offset) => {
                let same = |(other, at): &(Arc<Plan>, usize)| Arc::ptr_eq(other, plan) && *at == index;
                let at = self.constants.iter().position(same).unwrap_or_else(|| {
                    self.constants.push((plan.clone(), index));
                    self.constants.len() - 1
                });
                Place::new(self.first_constant + at as u16, offset)
            }
        }
    }

    /// Stores the scalars of some bytes that memory lacks.
    pub(super) fn store(&mut self, place: &Place, bytes: usize) {
        for (offset, value) in self.scalars.take_unstored(place, bytes) {
            self.b.store(value, place.element(offset));
        }
    }

    /// The elements of a small value that are in registers, if all are.
    pub(super) fn known(&mut self, place: &Place, ty: &TensorType) -> Option<PerElement<Val>> {
        let word = |&(offset, elem): &(i64, Elem)| {
            let value = self.scalars.get(&place.offset_by(offset as usize), elem.bytes())?;
            Some((offset, self.b.convert(Conv::Bitcast, elem, value)))
        };
        elements_of(ty)?.iter().map(word).collect()
    }

    /// The elements of a small value, loaded if they are not in registers.
    pub(super) fn elements(&mut self, place: &Place, ty: &TensorType) -> PerElement<Val> {
        if let Some(known) = self.known(place, ty) {
            return known;
        }
        self.store(place, ty.byte_size());
        let words = elements_of(ty).expect("the value is small");
        let load = |&(offset, elem): &(i64, Elem)| {
            let here = place.offset_by(offset as usize);
            let value = match self.constant(&here, elem.bytes()) {
                Some(bits) => self.b.bits(elem, bits),
                None => self.b.load(elem, place.element(offset)),
            };
            self.scalars.insert(&place.offset_by(offset as usize), elem.bytes(), value, true);
            (offset, value)
        };
        words.iter().map(load).collect()
    }

    /// Records the elements of a small value, which memory lacks.
    pub(super) fn set_elements(&mut self, place: &Place, words: impl IntoIterator<Item = (i64, Val)>) {
        for (offset, value) in words {
            let bytes = self.b.ty(value).elem.bytes();
            self.scalars.insert(&place.offset_by(offset as usize), bytes, value, false);
        }
    }

    /// Records what a scalar is that is in memory.
    fn set_constant(&mut self, place: &Place, scalar: Scalar) {
        let (elem, parts) = parts_of(scalar.dtype());
        let bytes = scalar.to_bytes();
        debug_assert_eq!(bytes.len(), parts * elem.bytes());
        for (part, bytes) in bytes.chunks(elem.bytes()).enumerate() {
            let value = self.b.bits(elem, word(bytes));
            self.scalars.insert(&place.offset_by(part * elem.bytes()), elem.bytes(), value, true);
        }
    }

    /// Whether a scalar is not zero.
    pub(super) fn predicate(&mut self, place: &Place, ty: &TensorType) -> Val {
        let mut known = None;
        for (_, word) in self.elements(place, ty) {
            let elem = self.b.ty(word).elem;
            let (zero, mut word) = (self.b.bits(elem, 0), word);
            if ty.dtype.kind() == Kind::Float && !elem.is_float() {
                // -0 is zero.
                let but_sign = self.b.bits(elem, (1 << (8 * elem.bytes() - 1)) - 1);
                word = self.b.op(Op::And, [word, but_sign]);
            }
            let mut holds = self.b.computed(Op::Compare(Cmp::Ne), Elem::Bit, [word, zero, Val::NONE]);
            if let Some(known) = known {
                holds = self.b.op(Op::Or, [known, holds]);
            }
            known = Some(holds);
        }
        known.expect("a scalar has a part")
    }

    /// Copies a value, unless it is there.
    pub(super) fn copy(&mut self, from: &Place, to: &Place, ty: &TensorType) {
        let bytes = ty.byte_size();
        if from == to || bytes == 0 {
            return;
        }
        if elements_of(ty).is_some() {
            let words = self.elements(from, ty);
            self.set_elements(to, words);
            return;
        }
        self.store(from, bytes);
        self.scalars.forget(to, bytes);
        if bytes > MAX_INLINE_COPY {
            let from = CallArg::Index(self.address(from));
            let (to, bytes) = (CallArg::Index(self.address(to)), CallArg::Index(self.b.index(bytes as i64)));
            self.call(Kernel::Copy, &[from, to, bytes]);
            return;
        }
        let elem = match bytes {
            bytes if bytes.is_multiple_of(8) => Elem::I64,
            bytes if bytes.is_multiple_of(4) => Elem::I32,
            _ => Elem::I8,
        };
        let extent = self.b.index((bytes / elem.bytes()) as i64);
        let along = |place: &Place| Access { lane: elem.bytes() as i64, ..place.element(0) };
        self.b.begin_lanes(extent);
        let loaded = self.b.load(elem, along(from));
        self.b.store(loaded, along(to));
        self.b.end_lanes();
    }

    pub(super) fn call(&mut self, kernel: Kernel, args: &[CallArg]) {
        let is_same = |other: &Kernel| match (other, &kernel) {
            (Kernel::Copy, Kernel::Copy) | (Kernel::Poll, Kernel::Poll) => true,
            (Kernel::Step(..) | Kernel::Copy | Kernel::Poll, _) => false,
        };
        let at = self.kernels.iter().position(is_same).unwrap_or_else(|| {
            self.kernels.push(kernel);
            self.kernels.len() - 1
        });
        self.b.call(Call { kernel: at as u16, args: args.into() });
    }

    // Regions.

    /// What a region does.
    pub(super) fn region(&mut self, plan: &Arc<Plan>, frame: &Frame<'_>) {
        let around = std::mem::take(&mut self.windows);
        for at in 0..plan.steps.len() {
            self.step(plan, at, frame);
        }
        for (at, binding) in plan.results.iter().enumerate() {
            let from = match binding {
                ResultBinding::Computed => continue,
                ResultBinding::SameAs(first) => frame.results[*first].clone(),
                ResultBinding::Existing(buffer) | ResultBinding::Copied(buffer) => {
                    let home = self.place(plan, frame, *buffer);
                    self.seen(&home)
                }
            };
            let ty = plan.region.graph().ty(plan.region.results()[at]);
            self.copy(&from, &frame.results[at], ty);
        }
        self.windows = around;
    }

    /// The bits of a constant of a plan, so many bytes from a place on.
    fn constant(&self, place: &Place, bytes: usize) -> Option<u64> {
        let at = place.buffer.checked_sub(self.first_constant)?;
        let (plan, index) = &self.constants[usize::from(at)];
        let start = usize::try_from(place.offset).ok()?;
        let known = plan.constants[*index].window.bytes().get(start..start + bytes)?;
        Some(word(known))
    }

    fn step(&mut self, plan: &Arc<Plan>, at: usize, frame: &Frame<'_>) {
        let step = &plan.steps[at];
        let mut places = |refs: &[(Value, BufferRef)]| -> Vec<Place> {
            refs.iter().map(|&(_, buffer)| self.place(plan, frame, buffer)).collect()
        };
        let (inputs, outputs) = (places(&step.inputs), places(&step.outputs));
        self.before_writes(plan, at, frame, &outputs);
        let inputs: Vec<Place> = inputs.iter().map(|home| self.seen(home)).collect();
        let scratch = frame.arena.offset_by(step.scratch_offset);
        let graph = plan.region.graph();
        let of = |refs: &[(Value, BufferRef)]| -> Vec<TensorType> {
            refs.iter().map(|(value, _)| graph.ty(*value).clone()).collect()
        };
        let (operands, results) = (of(&step.inputs), of(&step.outputs));
        match &step.work {
            Work::Op if outputs.len() == 1 && self.window(plan, step, (&inputs, &operands), &outputs[0]) => {
                return;
            }
            Work::Op
                if outputs.len() == 1
                    && (self.moves(plan, step, (&inputs, &operands), &outputs[0])
                        || self.multiplies(plan, step, (&inputs, &operands), &outputs[0])
                        || self.solves(plan, step, (&inputs, &operands), &outputs[0])) => {}
            Work::Nest(nest) if nest.is_inlinable() => {
                self.nest(nest, (&inputs, &operands), (&outputs, &results), &scratch);
            }
            Work::Regions(regions) => {
                // What nobody needs is another value there.
                let operands = types(graph, &graph.nodes()[step.node].inputs);
                self.regions(regions, (&inputs, &operands), (&outputs, &results), scratch);
            }
            Work::Nest(_)
            | Work::Epilogue(_)
            | Work::BackToBackGemm(_)
            | Work::Op
            | Work::Hook { .. }
            | Work::Call { .. }
            | Work::Control(_) => {
                for (place, ty) in inputs.iter().zip(&operands) {
                    self.store(place, ty.byte_size());
                }
                let all = inputs.iter().chain(&outputs).chain([&scratch]);
                let args: Vec<CallArg> = all.map(|place| CallArg::Index(self.address(place))).collect();
                self.call(Kernel::Step(plan.clone(), at), &args);
                for (place, ty) in outputs.iter().zip(&results) {
                    self.scalars.forget(place, ty.byte_size());
                }
            }
        }
        self.after_writes(&outputs, &results);
    }

    /// A nest as a part of the function.
    fn nest(
        &mut self,
        nest: &Nest,
        (inputs, operands): (&[Place], &[TensorType]),
        (outputs, results): (&[Place], &[TensorType]),
        partial: &Place,
    ) {
        self.own_bytes = self.own_bytes.max(nest.own_bytes());
        for (function, steps) in nest.function_steps() {
            let original = Original::new(function, steps as i64, nest.elements <= MAX_UNROLLED);
            self.function(&original, (inputs, operands), (outputs, results), partial);
        }
    }

    /// A function of a nest.
    fn function(
        &mut self,
        original: &Original<'_>,
        (inputs, operands): (&[Place], &[TensorType]),
        (outputs, results): (&[Place], &[TensorType]),
        partial: &Place,
    ) {
        let mut bindings = Vec::new();
        for (place, ty) in inputs.iter().zip(operands) {
            let buffer = bindings.len() as u16;
            let words = elements_of(ty).filter(|words| original.reads_words(buffer, words));
            bindings.push(match words.and_then(|_| self.known(place, ty)) {
                Some(known) => Binding::Scalars(known),
                None => {
                    self.store(place, ty.byte_size());
                    Binding::Memory(place.clone())
                }
            });
        }
        for (place, ty) in outputs.iter().zip(results) {
            let buffer = bindings.len() as u16;
            let is_small = elements_of(ty).is_some() && original.stores_words(buffer);
            bindings.push(if is_small { Binding::Results } else { Binding::Memory(place.clone()) });
        }
        // Memory of each thread's own, and what pieces give.
        bindings.extend([&self.own, partial].map(|place| Binding::Memory(place.clone())));
        let stored = inline(&mut self.b, original, &bindings);
        for (at, (place, ty)) in outputs.iter().zip(results).enumerate() {
            let buffer = (inputs.len() + at) as u16;
            let own = stored.iter().filter(|(of, ..)| *of == buffer);
            let words: Vec<(i64, Val)> = own.map(|&(_, offset, value)| (offset, value)).collect();
            // Pieces are combined later.
            if original.stores(buffer) {
                self.scalars.forget(place, ty.byte_size());
                self.set_elements(place, words);
            }
        }
    }
}

/// Up to 8 bytes as a word.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
