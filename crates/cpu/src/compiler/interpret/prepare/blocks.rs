//! Blocks: loops, conditions, and rows with their accumulators.

use super::super::super::ir::{ListId, Op, Val};
use super::super::lanes::{BLOCK, Reducer};
use super::super::step::{NONE, Slot, Step};
use super::super::table;
use super::{Prepare, width};

/// A block that has no end yet.
pub(super) struct Open {
    pub(super) kind: Kind,
    /// The scalars that were repeated in it.
    pub(super) splats: Vec<(Val, Slot, u32)>,
}

/// What a block is, and the instruction and the steps that begin it.
pub(super) enum Kind {
    Function,
    /// Its first step, and the steps that leave it.
    Loop {
        begin: Val,
        step: u32,
        exits: Vec<usize>,
    },
    /// What jumps to the other side, or behind it.
    If {
        begin: Val,
        jump: usize,
    },
    Else {
        begin: Val,
        jump: usize,
    },
    Lanes {
        begin: Val,
        step: u32,
    },
}

impl<'a> Prepare<'a> {
    fn begin(&mut self, kind: Kind) {
        self.open.push(Open { kind, splats: Vec::new() });
    }

    /// Ends a block: what was repeated in it was so only there.
    fn end(&mut self) -> Kind {
        let Open { kind, splats } = self.open.pop().expect("a block is open");
        for (value, slot, bytes) in splats {
            self.repeated[value.index()] = NONE;
            self.free_register(slot, bytes);
        }
        kind
    }

    pub(super) fn is_in_lanes(&self) -> bool {
        self.open.iter().any(|open| matches!(open.kind, Kind::Lanes { .. }))
    }

    /// Lets a step jump behind the last one.
    fn patch_jump(&mut self, step: usize) {
        let here = self.steps.len() as u32;
        match &mut self.steps[step] {
            Step::Jump { to } | Step::Unless { to, .. } => *to = here,
            Step::Loop { exit, .. } | Step::Lanes { exit, .. } => *exit = here,
            Step::Constant { .. }
            | Step::Param { .. }
            | Step::ScalarOp { .. }
            | Step::VectorOp { .. }
            | Step::VectorOpOfViews { .. }
            | Step::VectorOpToMemory { .. }
            | Step::View { .. }
            | Step::Splat { .. }
            | Step::Positions { .. }
            | Step::AnyLane { .. }
            | Step::Move { .. }
            | Step::Gather { .. }
            | Step::EndLoop { .. }
            | Step::EndLanes { .. }
            | Step::Fill { .. }
            | Step::Accumulate { .. }
            | Step::Combine { .. }
            | Step::Call { .. }
            | Step::Return => unreachable!("this step does not jump"),
        }
    }

    pub(super) fn begin_loop(&mut self, value: Val, trips: Val) {
        let counter = self.slots[value.index()];
        let trips = if trips.is_some() { self.slots[trips.index()] } else { NONE };
        for carry in self.behind(value.0 + 1, Op::Carry) {
            self.define(carry);
            self.copy(self.function.inst(carry).args[0], carry);
        }
        let exit = self.steps.len();
        self.steps.push(Step::Loop { counter, trips, exit: 0 });
        let step = self.steps.len() as u32;
        self.begin(Kind::Loop { begin: value, step, exits: vec![exit] });
    }

    pub(super) fn end_loop(&mut self, list: ListId) {
        let function = self.function;
        let pairs = || function.list(list).iter().filter(|(carry, next)| carry != next);
        let is_carried = |value: Val| pairs().any(|&(carry, _)| carry == value);
        // All are assigned at once: those whose next value is carried, too, are set aside before any is
        // written.
        let mut aside = Vec::new();
        let mut direct = Vec::new();
        for &(carry, next) in pairs() {
            let ty = function.ty(carry);
            let from = if ty.is_vector { self.operand(next) } else { self.scalar(next) };
            if is_carried(next) {
                let bytes = BLOCK as u32 * width(ty.elem);
                let to = self.register(bytes);
                self.copy_slot(from, to, ty.elem, ty.is_vector);
                aside.push((carry, to, bytes));
            } else {
                direct.push((carry, from));
            }
        }
        for (carry, from) in direct {
            let ty = function.ty(carry);
            self.copy_slot(from, self.slots[carry.index()], ty.elem, ty.is_vector);
        }
        for (carry, from, bytes) in aside {
            let ty = function.ty(carry);
            self.copy_slot(from, self.slots[carry.index()], ty.elem, ty.is_vector);
            self.free_register(from, bytes);
        }
        let Kind::Loop { begin, step, exits } = self.end() else { unreachable!("a loop ends") };
        let trips = function.inst(begin).args[0];
        let trips = if trips.is_some() { self.slots[trips.index()] } else { NONE };
        self.steps.push(Step::EndLoop { counter: self.slots[begin.index()], trips, begin: step });
        for exit in exits {
            self.patch_jump(exit);
        }
    }

    /// Leaves the innermost loop unless a predicate holds.
    pub(super) fn leave_unless(&mut self, predicate: Val) {
        let step = self.steps.len();
        self.steps.push(Step::Unless { predicate: self.scalar(predicate), to: 0 });
        let exits = self.open.iter_mut().rev().find_map(|open| match &mut open.kind {
            Kind::Loop { exits, .. } => Some(exits),
            Kind::Function | Kind::If { .. } | Kind::Else { .. } | Kind::Lanes { .. } => None,
        });
        exits.expect("a loop is open").push(step);
    }

    pub(super) fn begin_if(&mut self, value: Val, predicate: Val) {
        for join in self.joins(value) {
            self.define(join);
        }
        let jump = self.steps.len();
        self.steps.push(Step::Unless { predicate: self.scalar(predicate), to: 0 });
        self.begin(Kind::If { begin: value, jump });
    }

    pub(super) fn begin_else(&mut self) {
        let Some(&Open { kind: Kind::If { begin, jump }, .. }) = self.open.last() else {
            unreachable!("a condition is open")
        };
        // What this repeats belongs to the block that ends here.
        self.join(begin, 0);
        self.end();
        let over = self.steps.len();
        self.steps.push(Step::Jump { to: 0 });
        self.patch_jump(jump);
        self.begin(Kind::Else { begin, jump: over });
    }

    pub(super) fn end_if(&mut self) {
        let Some(Open { kind, .. }) = self.open.last() else { unreachable!("a condition is open") };
        match *kind {
            Kind::Else { begin, jump } => {
                self.join(begin, 1);
                self.end();
                self.patch_jump(jump);
            }
            Kind::If { begin, .. } if self.joins(begin).next().is_some() => {
                self.begin_else();
                self.end_if();
            }
            Kind::If { jump, .. } => {
                self.end();
                self.patch_jump(jump);
            }
            Kind::Function | Kind::Loop { .. } | Kind::Lanes { .. } => unreachable!("a condition is open"),
        }
    }

    /// The values of an op that stand from a position on.
    fn behind(&self, from: u32, op: Op) -> impl Iterator<Item = Val> + use<'a> {
        let function = self.function;
        let has = move |at: &u32| function.insts.get(*at as usize).is_some_and(|inst| inst.op == op);
        (from..).take_while(has).map(Val)
    }

    /// The values of a condition.
    fn joins(&self, begin: Val) -> impl Iterator<Item = Val> + use<'a> {
        let end = self.ends[begin.index()];
        let is_else = self.function.insts[end as usize].op == Op::Else;
        let end = if is_else { self.ends[end as usize] } else { end };
        self.behind(end + 1, Op::Join)
    }

    /// Writes the values of a condition from one of its sides.
    fn join(&mut self, begin: Val, side: usize) {
        for join in self.joins(begin) {
            self.copy(self.function.inst(join).args[side], join);
        }
    }

    // Rows.

    pub(super) fn begin_lanes(&mut self, value: Val, extent: Val) {
        let step = self.steps.len() as u32;
        self.steps.push(Step::Lanes { extent: self.slots[extent.index()], exit: 0, most: BLOCK as u32 });
        self.begin(Kind::Lanes { begin: value, step });
    }

    fn reducer(&self, accumulator: Val) -> (&'static Reducer, u32) {
        let inst = self.function.inst(accumulator);
        let Op::Accumulator(reduce, count) = inst.op else { unreachable!("{accumulator} is no accumulator") };
        let Some(reducer) = table::reducer(reduce, inst.ty.elem) else {
            unreachable!("{reduce:?} of {}", inst.ty.elem)
        };
        (reducer, count.into())
    }

    pub(super) fn accumulator(&mut self, value: Val, neutral: Val) {
        let (reducer, count) = self.reducer(value);
        let elem = self.function.ty(value).elem;
        let lanes = self.frame;
        self.frame += (count * width(elem)).next_multiple_of(64);
        self.lanes.push((value, lanes));
        self.accumulators.push((value, 0));
        // It is the result if there are no elements.
        self.copy(neutral, value);
        self.steps.push(Step::Fill { reducer, from: self.slots[value.index()], lanes, count });
    }

    fn lanes_of(&self, accumulator: Val) -> Slot {
        let lanes = self.lanes.iter().find(|(value, _)| *value == accumulator);
        lanes.expect("an accumulator has lanes").1
    }

    pub(super) fn reduce(&mut self, accumulator: Val, value: Val) {
        let (reducer, count) = self.reducer(accumulator);
        let in_loop = self.open.iter().rev().map_while(|open| match open.kind {
            Kind::Loop { .. } => Some(true),
            Kind::If { .. } | Kind::Else { .. } => Some(false),
            Kind::Function | Kind::Lanes { .. } => None,
        });
        let times = if in_loop.into_iter().any(|is_loop| is_loop) { 2 } else { 1 };
        let known = self.accumulators.iter_mut().find(|(known, _)| *known == accumulator);
        known.expect("it stands before its row").1 += times;
        let value = self.operand(value);
        let bytes = width(self.function.ty(accumulator).elem) as u8;
        self.steps.push(Step::Accumulate { reducer, lanes: self.lanes_of(accumulator), count, value, bytes });
    }

    pub(super) fn end_lanes(&mut self) {
        let Kind::Lanes { begin, step } = self.end() else { unreachable!("a row ends") };
        let extent = self.slots[self.function.inst(begin).args[0].index()];
        let accumulators = std::mem::take(&mut self.accumulators);
        let mut most = BLOCK as u32;
        for &(accumulator, times) in &accumulators {
            // A lane gets the values of an element before those of the next one. If there are several for an
            // element, blocks have no lane twice. Integers have the same result in any order.
            if times > 1 && self.function.ty(accumulator).elem.is_float() {
                most = most.min(self.reducer(accumulator).1);
            }
        }
        if let Step::Lanes { most: block, .. } = &mut self.steps[step as usize] {
            *block = most;
        }
        self.steps.push(Step::EndLanes { extent, begin: step + 1, most });
        for (accumulator, _) in accumulators {
            let (reducer, count) = self.reducer(accumulator);
            let (lanes, to) = (self.lanes_of(accumulator), self.slots[accumulator.index()]);
            self.steps.push(Step::Combine { reducer, lanes, count, to });
        }
        self.patch_jump(step as usize);
    }
}
