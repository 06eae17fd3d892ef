//! Builds the function of a loop or a branch: what the steps of its regions do, one after the other.
//!
//! Nests that one thread runs are copied into the function. Everything else is a kernel that the function calls. The
//! scalars of the regions are in registers, and in memory only where a kernel reads them.

use std::sync::Arc;

use defn_core::TensorType;
use defn_core::graph::Value;

use super::inline::{Binding, Original, inline};
use super::places::{PerElement, Place, Scalars, elements_of};
use super::regions::{Cond, Kept, Regions, While, own_cost};
use crate::compiler::buffer_assignment::{BufferRef, ResultBinding};
use crate::compiler::ir::{Access, Builder, Call, CallArg, Cmp, Conv, Elem, Function, Op, Val};
use crate::compiler::nest::Nest;
use crate::compiler::plan::{Plan, Work};

/// What is counted down until the host is asked whether to go on: less than a millisecond.
const FUEL: i64 = 1 << 19;

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
struct Frame<'f> {
    arguments: &'f [Place],
    results: &'f [Place],
    arena: Place,
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
    fuel: Option<Val>,
}

/// Builds the function of regions between operands and results of such types.
pub(super) fn link(regions: &Regions, operands: &[TensorType], results: &[TensorType]) -> Linked {
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
    };
    if regions.polls() {
        linker.fuel = Some(linker.b.index(FUEL));
    }
    // Pointer 0 is that of addresses.
    let place = |at: usize| Place::new(at as u16 + 1, 0);
    let given: Vec<Place> = (0..operands.len()).map(place).collect();
    let made: Vec<Place> = (operands.len()..operands.len() + results.len()).map(place).collect();
    linker.regions(regions, (&given, operands), (&made, results), Place::new(scratch, 0));
    for (place, ty) in made.iter().zip(results) {
        linker.store(place, ty.byte_size());
    }
    let Linker { b, kernels, constants, own_bytes, .. } = linker;
    let buffers = usize::from(scratch) + 1 + constants.len();
    let function = b.finish_with(buffers as u16, buffers as u16, kernels.len() as u16);
    Linked { function, kernels, constants, scratch: beside + own_bytes }
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
    fn address(&mut self, place: &Place) -> Val {
        let base = match place.address {
            Some(address) => address,
            None => self.b.param(place.buffer, Elem::Index),
        };
        let offset = self.b.index(place.offset);
        self.b.computed(Op::Add, Elem::Index, [base, offset, Val::NONE])
    }

    /// Where a buffer of a plan is.
    fn place(&mut self, plan: &Arc<Plan>, frame: &Frame<'_>, buffer: BufferRef) -> Place {
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

    /// Whether a scalar is not zero.
    fn predicate(&mut self, place: &Place, ty: &TensorType) -> Val {
        let mut known = None;
        for (_, word) in self.elements(place, ty) {
            let zero = self.b.bits(self.b.ty(word).elem, 0);
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

    fn call(&mut self, kernel: Kernel, args: &[CallArg]) {
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
    fn region(&mut self, plan: &Arc<Plan>, frame: &Frame<'_>) {
        for at in 0..plan.steps.len() {
            self.step(plan, at, frame);
        }
        for (at, binding) in plan.results.iter().enumerate() {
            let from = match binding {
                ResultBinding::Computed => continue,
                ResultBinding::SameAs(first) => frame.results[*first].clone(),
                ResultBinding::Existing(buffer) | ResultBinding::Copied(buffer) => {
                    self.place(plan, frame, *buffer)
                }
            };
            let ty = plan.region.graph().ty(plan.region.results()[at]);
            self.copy(&from, &frame.results[at], ty);
        }
    }

    /// The bits of a constant of a plan, so many bytes from a place on.
    fn constant(&self, place: &Place, bytes: usize) -> Option<u64> {
        let at = place.buffer.checked_sub(self.first_constant)?;
        let (plan, index) = &self.constants[usize::from(at)];
        let start = usize::try_from(place.offset).ok()?;
        let known = plan.constants[*index].window.bytes().get(start..start + bytes)?;
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(known);
        Some(u64::from_le_bytes(word))
    }

    fn step(&mut self, plan: &Arc<Plan>, at: usize, frame: &Frame<'_>) {
        let step = &plan.steps[at];
        let mut places = |refs: &[(Value, BufferRef)]| -> Vec<Place> {
            refs.iter().map(|&(_, buffer)| self.place(plan, frame, buffer)).collect()
        };
        let (inputs, outputs) = (places(&step.inputs), places(&step.outputs));
        let scratch = frame.arena.offset_by(step.scratch_offset);
        let graph = plan.region.graph();
        let types = |refs: &[(Value, BufferRef)]| -> Vec<TensorType> {
            refs.iter().map(|(value, _)| graph.ty(*value).clone()).collect()
        };
        let (operands, results) = (types(&step.inputs), types(&step.outputs));
        match &step.work {
            Work::Op
                if outputs.len() == 1
                    && (self.moves(plan, step, (&inputs, &operands), &outputs[0])
                        || self.multiplies(plan, step, (&inputs, &operands), &outputs[0])) => {}
            Work::Nest(nest) if nest.is_inlinable() => {
                self.nest(nest, (&inputs, &operands), (&outputs, &results), &scratch);
            }
            Work::Regions(regions) => {
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

    // Control flow.

    /// A loop.
    fn repeat(
        &mut self,
        of: &While,
        polls: bool,
        (operands, types): (&[Place], &[TensorType]),
        (outputs, _): (&[Place], &[TensorType]),
        (scratch, inner): (Place, Place),
    ) {
        // What the regions are given. Captures stay as they are.
        let mut arguments = operands.to_vec();
        let mut carried: Vec<(Val, bool)> = Vec::new();
        for (at, kept) in of.state.iter().enumerate() {
            let ty = &types[at];
            match *kept {
                Kept::Constant => {}
                Kept::Scalar { given, .. } => {
                    let words = self.elements(&operands[at], ty);
                    carried.extend(words.iter().map(|&(_, value)| (value, false)));
                    arguments[at] = scratch.offset_by(given);
                }
                Kept::InPlace => {
                    self.copy(&operands[at], &outputs[at], ty);
                    arguments[at] = outputs[at].clone();
                }
                Kept::Alternating { other } => {
                    self.copy(&operands[at], &outputs[at], ty);
                    let (now, next) = (self.address(&outputs[at]), self.address(&scratch.offset_by(other)));
                    carried.extend([(now, false), (next, false)]);
                }
            }
        }
        // What is read often is in registers before the loop.
        for (place, ty) in operands.iter().zip(types) {
            if ty.size() == 1 {
                self.elements(place, ty);
            }
        }
        if polls {
            carried.extend(self.fuel.map(|fuel| (fuel, false)));
        }
        let trips = of.trips.map(|trips| self.b.index(trips as i64));
        let (_, carries) = self.b.begin_loop(trips, &carried);
        let around = self.scalars.clone();
        let mut values = carries.iter().copied();
        let mut next_places = outputs.to_vec();
        for (at, kept) in of.state.iter().enumerate() {
            match *kept {
                Kept::Constant | Kept::InPlace => {}
                Kept::Scalar { next, .. } => {
                    self.take_elements(&arguments[at], &types[at], &mut values);
                    next_places[at] = scratch.offset_by(next);
                }
                Kept::Alternating { .. } => {
                    let [now, next] = [(); 2].map(|()| values.next().expect("two addresses are carried"));
                    arguments[at] = Place::at_address(now);
                    next_places[at] = Place::at_address(next);
                }
            }
        }
        if polls {
            self.fuel = values.next().or(self.fuel);
        }
        if trips.is_none() {
            let predicate = [scratch.offset_by(of.predicate)];
            let frame = Frame { arguments: &arguments, results: &predicate, arena: inner.clone() };
            self.region(&of.cond, &frame);
            let goes_on = self.predicate(&predicate[0], of.predicate_type());
            self.b.while_(goes_on);
        }
        let frame = Frame { arguments: &arguments, results: &next_places, arena: inner };
        self.region(&of.body, &frame);
        let mut next: Vec<Val> = Vec::new();
        let mut values = carries.iter().copied();
        for (at, kept) in of.state.iter().enumerate() {
            match kept {
                Kept::Constant | Kept::InPlace => {}
                Kept::Scalar { .. } => {
                    let words = self.elements(&next_places[at], &types[at]);
                    values.by_ref().take(words.len()).for_each(drop);
                    next.extend(words.iter().map(|&(_, value)| value));
                }
                Kept::Alternating { .. } => {
                    let [now, other] = [(); 2].map(|()| values.next().expect("two addresses are carried"));
                    next.extend([other, now]);
                }
            }
        }
        if polls {
            next.extend(self.burn(own_cost(&of.cond) + own_cost(&of.body)));
        }
        let pairs: Vec<(Val, Val)> = carries.iter().copied().zip(next).collect();
        self.b.end_loop(&pairs);
        self.scalars = around;
        let mut values = carries.iter().copied();
        for (at, kept) in of.state.iter().enumerate() {
            let ty = &types[at];
            match kept {
                Kept::Constant => self.copy(&operands[at], &outputs[at], ty),
                Kept::InPlace => self.scalars.forget(&outputs[at], ty.byte_size()),
                Kept::Scalar { .. } => self.take_elements(&outputs[at], ty, &mut values),
                Kept::Alternating { .. } => {
                    let [now, _] = [(); 2].map(|()| values.next().expect("two addresses are carried"));
                    self.copy_if_elsewhere(now, &outputs[at], ty);
                }
            }
        }
        if polls {
            self.fuel = values.next().or(self.fuel);
        }
    }

    /// Takes the elements of a small value from values.
    fn take_elements(&mut self, place: &Place, ty: &TensorType, values: &mut impl Iterator<Item = Val>) {
        let words = elements_of(ty).expect("the value is small");
        let taken = |(offset, _)| (offset, values.next().expect("a value for each element"));
        let words: PerElement<Val> = words.into_iter().map(taken).collect();
        self.set_elements(place, words);
    }

    /// Copies an array from an address to a place, unless that is its address.
    fn copy_if_elsewhere(&mut self, now: Val, to: &Place, ty: &TensorType) {
        let home = self.address(to);
        let is_elsewhere = self.b.compare(Cmp::Ne, now, home);
        self.b.begin_if(is_elsewhere);
        self.copy(&Place::at_address(now), to, ty);
        self.b.end_if(&[]);
        self.scalars.forget(to, ty.byte_size());
    }

    /// Counts some work; asks the host if that is due. Gives what is left.
    fn burn(&mut self, cost: u64) -> Option<Val> {
        let fuel = self.fuel?;
        let (cost, none, full) = (self.b.index(cost as i64), self.b.index(0), self.b.index(FUEL));
        let left = self.b.sub(fuel, cost);
        let is_due = self.b.compare(Cmp::Lt, left, none);
        self.b.begin_if(is_due);
        self.call(Kernel::Poll, &[]);
        self.fuel = Some(self.b.end_if(&[(full, left)])[0]);
        self.fuel
    }

    /// Branches, of which the first whose predicate holds is run, or the last.
    fn branch(
        &mut self,
        of: &Cond,
        polls: bool,
        (operands, types): (&[Place], &[TensorType]),
        (outputs, results): (&[Place], &[TensorType]),
        inner: Place,
    ) {
        let tests = of.branches.len() - 1;
        let predicates: Vec<Val> = (0..tests).map(|at| self.predicate(&operands[at], &types[at])).collect();
        for (place, ty) in operands.iter().zip(types).skip(tests) {
            if ty.size() == 1 {
                self.elements(place, ty);
            }
        }
        let fuel = self.fuel.filter(|_| polls);
        let frame = Frame { arguments: &operands[tests..], results: outputs, arena: inner };
        let around = self.scalars.clone();
        // The sides that ran already, innermost last.
        let mut sides = Vec::new();
        for (branch, predicate) in of.branches.iter().zip(&predicates) {
            self.b.begin_if(*predicate);
            self.region(branch, &frame);
            sides.push(self.side(polls, &frame, results));
            self.scalars = around.clone();
            self.fuel = fuel.or(self.fuel);
            self.b.begin_else();
        }
        self.region(&of.branches[tests], &frame);
        let mut otherwise = self.side(polls, &frame, results);
        while let Some(then) = sides.pop() {
            let pairs: Vec<(Val, Val)> = then.into_iter().zip(otherwise).collect();
            otherwise = self.b.end_if(&pairs).to_vec();
        }
        self.scalars = around;
        let mut values = otherwise.into_iter();
        for (place, ty) in outputs.iter().zip(results) {
            if elements_of(ty).is_some() {
                self.take_elements(place, ty, &mut values);
            } else {
                self.scalars.forget(place, ty.byte_size());
            }
        }
        self.fuel = values.next().or(self.fuel);
    }

    /// What one side of a branch gives: scalars, and what is left until the host is asked.
    fn side(&mut self, polls: bool, frame: &Frame<'_>, results: &[TensorType]) -> Vec<Val> {
        let mut values = Vec::new();
        for (place, ty) in frame.results.iter().zip(results) {
            if elements_of(ty).is_some() {
                values.extend(self.elements(place, ty).iter().map(|&(_, value)| value));
            }
        }
        values.extend(self.fuel.filter(|_| polls));
        values
    }
}
