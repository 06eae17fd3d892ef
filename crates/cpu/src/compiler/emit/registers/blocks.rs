//! Control flow: where values are when blocks begin and end.

use smallvec::SmallVec;

use super::super::mir::{Class, Cond, Inst, ListId, Op, Reg};
use super::super::{Action, OperandLocation};
use super::moves::Move;
use super::state::ValueLocation;
use super::{Allocator, Origin};

/// Registers of a class that what loops carry, or conditions give, leaves to others.
const KEPT_FREE: usize = 3;

/// An open block.
pub(super) enum Block {
    Loop {
        header: u32,
        exit: u32,
        /// Where values are when a trip begins.
        entry: Vec<(Reg, ValueLocation)>,
    },
    If {
        /// The label of the second side, or of the end.
        other: u32,
        end: u32,
        /// Where values were when the condition was found.
        before: Vec<(Reg, ValueLocation)>,
        /// Where they are at the end of the first side, and where the results are.
        after: Option<(Vec<(Reg, ValueLocation)>, Vec<ValueLocation>)>,
    },
}

impl Allocator<'_> {
    /// Begins a loop, with what it carries where it is from then on.
    pub(super) fn begin_loop(&mut self, list: ListId) {
        let at = self.at;
        self.make_room(at);
        let pairs: Vec<(Reg, Reg)> = self.code.list(list).chunks(2).map(|pair| (pair[0], pair[1])).collect();
        let mut kept = [0; 3];
        for (position, &(carry, init)) in pairs.iter().enumerate() {
            let class = self.class(carry);
            kept[class as usize] += 1;
            if kept[class as usize] + KEPT_FREE > self.state.count(class).unwrap_or(0) {
                self.begin_in_slot(carry, init, class);
                continue;
            }
            if self.is_rematerialized(init) && self.state.register(init).is_none() {
                let to = self.free_register(class);
                self.rematerialize(self.liveness.definition(init), to);
                self.state.settle(carry, class, to);
                self.state.lock(class, to);
                continue;
            }
            let from = self.in_register(init);
            // A value that ends here leaves its register to the last that begins with it.
            let is_last = pairs[position + 1..].iter().all(|(_, other)| *other != init);
            if self.dies(init) && is_last && !self.is_rematerialized(init) {
                self.state.release(init);
                self.state.settle(carry, class, from);
                self.state.lock(class, from);
            } else {
                let to = self.free_register(class);
                self.state.settle(carry, class, to);
                self.state.lock(class, to);
                // The source may leave its register for others.
                self.emit(Action::Move { class, to, from }, || Origin::Moved);
                self.state.unlock(class, from);
            }
        }
        let renamed = pairs.clone();
        let header = self.label();
        let exit = self.label();
        self.parallel(Vec::new(), renamed);
        self.preload(at);
        // What no trip reads has a home, too, if it is needed behind the loop.
        let is_carried = |reg: Reg| pairs.iter().any(|(carry, _)| *carry == reg);
        let is_needed = |reg: Reg| self.liveness.lives_after(reg, at) || is_carried(reg);
        let entry = self.state.snapshot(is_needed);
        for &(carry, _) in &pairs {
            if self.dies(carry) {
                self.state.release(carry);
            }
        }
        self.emit(Action::Label(header), || Origin::Moved);
        self.blocks.push(Block::Loop { header, exit, entry });
    }

    /// Begins what a loop carries in a slot.
    fn begin_in_slot(&mut self, carry: Reg, init: Reg, class: Class) {
        let from = self.in_register(init);
        let slot = self.state.new_slot(carry, class);
        self.emit(Action::Spill { class, slot, from }, || Origin::Moved);
        self.state.unlock(class, from);
    }

    /// Before a loop: values that it uses less than others leave their registers, as far as it needs them.
    fn make_room(&mut self, at: usize) {
        for class in [Class::General, Class::Vector, Class::Mask] {
            let Some(count) = self.state.count(class) else { continue };
            let need = self.liveness.pressure(at, class) + 1;
            let mut held: Vec<(usize, Reg, u8)> = self
                .state
                .held(class)
                .filter(|(reg, _)| self.liveness.lives_after(*reg, at))
                .map(|(reg, register)| (self.liveness.uses_in_loop(reg, at), reg, register))
                .collect();
            held.sort_unstable();
            let mut left = held.len();
            for (_, reg, register) in held {
                if left + need <= count {
                    break;
                }
                self.evict(reg, class, register);
                left -= 1;
            }
        }
    }

    /// Before a loop: constants that it uses come to registers that it leaves free.
    fn preload(&mut self, at: usize) {
        for class in [Class::Vector, Class::General] {
            let Some(count) = self.state.count(class) else { continue };
            let need = self.liveness.pressure(at, class) + 1;
            let held = self.state.held(class).count();
            let free = count.saturating_sub(held + need);
            for reg in self.liveness.constants_of_loop(self.code, at, class, free) {
                if self.state.register(reg).is_none()
                    && let Some(register) = self.state.free(class)
                {
                    self.bring(reg, class, register);
                    self.state.settle(reg, class, register);
                }
            }
        }
    }

    /// Ends a loop: values go back to where a trip begins with them.
    pub(super) fn end_loop(&mut self, list: ListId, condition: Option<(Cond, Reg, Reg)>) {
        let Some(Block::Loop { header, exit, entry }) = self.blocks.pop() else {
            unreachable!("a loop is open")
        };
        let pairs: Vec<(Reg, Reg)> = self.code.list(list).chunks(2).map(|pair| (pair[0], pair[1])).collect();
        let next_of = |reg: Reg| pairs.iter().find(|(carry, _)| *carry == reg).map(|(_, next)| *next);
        let mut moves = Vec::new();
        for &(reg, location) in &entry {
            let from = next_of(reg).unwrap_or(reg);
            self.restore(reg, from, location, &mut moves);
        }
        self.parallel(moves, pairs.clone());
        // What decides is a value that was just moved, or one that is where the loop found it.
        match condition {
            Some((cond, a, b)) => {
                let (a, b) = (self.loop_operand(a, &pairs, &entry), self.loop_operand(b, &pairs, &entry));
                self.emit(Action::JumpIf { cond, a, b, to: header }, || Origin::Moved);
            }
            None => self.emit(Action::Jump(header), || Origin::Moved),
        }
        self.emit(Action::Label(exit), || Origin::Moved);
        let at = self.at;
        self.state.reset(&entry, |reg| self.liveness.lives_after(reg, at));
    }

    /// Where an operand is that decides whether a loop goes on.
    fn loop_operand(
        &mut self,
        reg: Reg,
        pairs: &[(Reg, Reg)],
        entry: &[(Reg, ValueLocation)],
    ) -> OperandLocation {
        let carry = pairs.iter().find(|(_, next)| *next == reg).map_or(reg, |(carry, _)| *carry);
        match entry.iter().find(|(other, _)| *other == carry) {
            Some((_, location)) => location.operand(),
            None => {
                assert!(
                    self.is_rematerialized(reg),
                    "a loop ends by what it carries, or by what was before it"
                );
                let scratch = self.limits.scratch[Class::General as usize];
                self.rematerialize(self.liveness.definition(reg), scratch);
                OperandLocation::Reg(scratch)
            }
        }
    }

    /// What has to move so that a value is again where a block expects it.
    fn restore(&mut self, reg: Reg, from: Reg, location: ValueLocation, moves: &mut Vec<Move>) {
        let class = self.class(reg);
        let now = self.state.location(from);
        let can_rematerialize = self.is_rematerialized(from);
        match (location, now) {
            (ValueLocation::Register(to), Some(now)) if now.register() != Some(to) => {
                let from = now.register().map_or(now, ValueLocation::Register);
                moves.push(Move { class, to: ValueLocation::Register(to), from });
            }
            (ValueLocation::Both(to, slot), Some(now)) => {
                if now.register() != Some(to) {
                    let from = now.register().map_or(now, ValueLocation::Register);
                    moves.push(Move { class, to: ValueLocation::Register(to), from });
                }
                if now.slot() != Some(slot) {
                    let from = now.register().map_or(now, ValueLocation::Register);
                    moves.push(Move { class, to: ValueLocation::Slot(slot), from });
                }
            }
            (ValueLocation::Slot(slot), Some(now)) if now.slot() != Some(slot) => {
                let from = now.register().map_or(now, ValueLocation::Register);
                moves.push(Move { class, to: ValueLocation::Slot(slot), from });
            }
            (ValueLocation::Register(_) | ValueLocation::Slot(_), Some(_)) => {}
            (location, None) => {
                // A constant, a number or an argument that has left its register.
                assert!(can_rematerialize, "{from:?} is nowhere");
                let definition = self.liveness.definition(from);
                moves.push(Move { class, to: location, from: ValueLocation::Rematerialize(definition) });
            }
            (ValueLocation::Rematerialize(_), Some(_)) => {}
        }
    }

    /// Leaves the innermost loop, with values where its end has them, unless a condition holds.
    pub(super) fn leave_loop(&mut self) {
        let inst = self.code.insts[self.at];
        let at = self.at;
        let innermost = self.blocks.iter().rev().find_map(|block| match block {
            Block::Loop { exit, entry, .. } => Some((*exit, entry.clone())),
            Block::If { .. } => None,
        });
        let (exit, entry) = innermost.expect("while is in a loop");
        // What is needed behind the loop.
        let end = self.liveness.end_of_block(at);
        let wanted: Vec<(Reg, ValueLocation)> =
            entry.into_iter().filter(|(reg, _)| self.liveness.end(*reg) > end).collect();
        let mut moves = Vec::new();
        for &(reg, location) in &wanted {
            self.restore(reg, reg, location, &mut moves);
        }
        let stay = self.label();
        if moves.is_empty() {
            self.branch(&inst, exit, false);
        } else {
            self.branch(&inst, stay, true);
            self.parallel(moves, Vec::new());
            self.emit(Action::Jump(exit), || Origin::Moved);
            self.emit(Action::Label(stay), || Origin::Moved);
        }
        self.release_dead(&inst.src);
    }

    /// Jumps if the condition of an instruction holds, or if it does not.
    fn branch(&mut self, inst: &Inst, to: u32, if_holds: bool) {
        let at = self.at;
        if let Op::WhileGeneral(cond) | Op::IfGeneral(cond) = inst.op {
            let (a, b) = (self.in_register(inst.src[0]), self.in_register(inst.src[1]));
            let cond = if if_holds { cond } else { cond.negated() };
            let (a, b) = (OperandLocation::Reg(a), OperandLocation::Reg(b));
            self.emit(Action::JumpIf { cond, a, b, to }, || Origin::Inst(at));
            return;
        }
        let mask = self.in_register(inst.src[0]);
        let (elem, lanes) = (inst.elem, inst.lanes);
        if if_holds {
            let over = self.label();
            self.emit(Action::JumpIfNone { mask, elem, lanes, to: over }, || Origin::Inst(at));
            self.emit(Action::Jump(to), || Origin::Moved);
            self.emit(Action::Label(over), || Origin::Moved);
        } else {
            self.emit(Action::JumpIfNone { mask, elem, lanes, to }, || Origin::Inst(at));
        }
    }

    /// Forgets the values that are used up.
    fn release_dead(&mut self, regs: &[Reg]) {
        for &reg in regs {
            if reg.is_some() && self.dies(reg) {
                self.state.release(reg);
            }
        }
    }

    /// Begins the first side of a condition.
    pub(super) fn begin_if(&mut self) {
        let inst = self.code.insts[self.at];
        let (other, end) = (self.label(), self.label());
        // Operands come to registers before the state is noted.
        for reg in inst.src {
            if reg.is_some() {
                self.in_register(reg);
            }
        }
        self.branch(&inst, other, false);
        self.release_dead(&inst.src);
        let at = self.at;
        let before = self.state.snapshot(|reg| self.liveness.lives_after(reg, at));
        self.blocks.push(Block::If { other, end, before, after: None });
    }

    /// The triples of the condition that is open: what it gives, and the values of either side.
    fn results(&self, list: ListId) -> Vec<(Reg, Reg, Reg)> {
        self.code.list(list).chunks(3).map(|triple| (triple[0], triple[1], triple[2])).collect()
    }

    /// Ends the first side of a condition, and begins the second in the state that the first began in.
    pub(super) fn begin_else(&mut self) {
        let Some(Block::If { other, end, before, .. }) = self.blocks.pop() else {
            unreachable!("a condition is open")
        };
        let finish = self.liveness.end_of_block(self.at);
        let Op::EndIf(list) = self.code.insts[finish].op else { unreachable!("a condition ends") };
        let results = self.results(list);
        let mut locations = Vec::new();
        let mut kept = [0; 3];
        for &(result, then, otherwise) in &results {
            let class = self.class(result);
            kept[class as usize] += 1;
            let from = self.in_register(then);
            if kept[class as usize] + KEPT_FREE > self.state.count(class).unwrap_or(0) {
                let slot = self.state.new_slot(result, class);
                self.emit(Action::Spill { class, slot, from }, || Origin::Moved);
                self.state.unlock(class, from);
                locations.push(ValueLocation::Slot(slot));
                continue;
            }
            let to = self.result_location(otherwise, class, finish, &before);
            self.emit(Action::Move { class, to, from }, || Origin::Moved);
            self.state.settle(result, class, to);
            self.state.lock(class, to);
            self.state.unlock(class, from);
            locations.push(ValueLocation::Register(to));
        }
        let renamed = results.iter().map(|&(result, then, _)| (result, then)).collect();
        self.parallel(Vec::new(), renamed);
        if finish == self.at + 1 {
            self.bring_back(&before, finish);
        }
        // Results are noted apart.
        results.iter().for_each(|(result, ..)| self.state.release(*result));
        let after = self.state.snapshot(|reg| self.liveness.lives_after(reg, finish));
        self.emit(Action::Jump(end), || Origin::Moved);
        self.emit(Action::Label(other), || Origin::Moved);
        let at = self.at;
        self.state.reset(&before, |reg| self.liveness.lives_after(reg, at));
        self.blocks.push(Block::If { other, end, before, after: Some((after, locations)) });
    }

    /// A register for a result of a condition: the one that has its value on the second side, if that ends with it.
    fn result_location(
        &mut self,
        otherwise: Reg,
        class: Class,
        finish: usize,
        before: &[(Reg, ValueLocation)],
    ) -> u8 {
        let own =
            before.iter().find(|(reg, _)| *reg == otherwise).and_then(|(_, location)| location.register());
        match own {
            Some(own) if !self.liveness.lives_after(otherwise, finish) && self.state.is_free(class, own) => {
                own
            }
            Some(_) | None => self.free_register(class),
        }
    }

    /// At the end of a first side whose second side is empty: values that have left their registers come back to them,
    /// so that the way around the first side, which is mostly rare, has nothing to move.
    fn bring_back(&mut self, before: &[(Reg, ValueLocation)], finish: usize) {
        for &(reg, location) in before {
            let (class, Some(register)) = (self.class(reg), location.register()) else { continue };
            let has_left = self.state.register(reg).is_none() && self.state.is_free(class, register);
            if !has_left || !self.liveness.lives_after(reg, finish) {
                continue;
            }
            self.bring(reg, class, register);
            if location.slot().is_none() {
                self.state.release(reg);
            }
            self.state.settle(reg, class, register);
        }
    }

    /// Ends a condition: values go to where the first side left them.
    pub(super) fn end_if(&mut self, list: ListId) {
        let Some(Block::If { end, after, .. }) = self.blocks.pop() else {
            unreachable!("a condition is open")
        };
        let (after, locations) = after.expect("a condition has two sides");
        let results = self.results(list);
        let mut moves = Vec::new();
        for (&(result, _, otherwise), &location) in results.iter().zip(&locations) {
            self.restore(result, otherwise, location, &mut moves);
        }
        for &(reg, location) in &after {
            self.restore(reg, reg, location, &mut moves);
        }
        self.parallel(moves, results.iter().map(|&(result, _, otherwise)| (result, otherwise)).collect());
        self.emit(Action::Label(end), || Origin::Moved);
        let at = self.at;
        self.state.reset(&after, |reg| self.liveness.lives_after(reg, at));
        for (&(result, ..), &location) in results.iter().zip(&locations) {
            let class = self.class(result);
            if self.liveness.lives_after(result, at) {
                self.state.set_location(result, class, location);
            }
        }
    }

    /// Calls a kernel; no register keeps its value.
    pub(super) fn call(&mut self, kernel: u16, list: ListId) {
        let at = self.at;
        let regs = self.code.list(list).to_vec();
        let args: SmallVec<[OperandLocation; 6]> = regs
            .iter()
            .map(|&reg| match (self.state.register(reg), self.state.slot(reg)) {
                (None, Some(slot)) if !self.is_rematerialized(reg) => OperandLocation::Slot(slot),
                _ => OperandLocation::Reg(self.in_register(reg)),
            })
            .collect();
        self.leave_registers();
        self.emit(Action::Call { kernel, args }, || Origin::Inst(at));
        self.release_dead(&regs);
    }

    /// Calls a kernel that computes the lanes of a vector anew.
    pub(super) fn apply(&mut self, kernel: u16) {
        let at = self.at;
        let inst = self.code.insts[at];
        let from = self.in_register(inst.src[0]);
        self.leave_registers();
        self.state.unlock_all();
        let to = self.new_register(inst.dst);
        let (elem, lanes) = (inst.elem, inst.lanes);
        self.emit(Action::Apply { kernel, elem, lanes, to, from }, || Origin::Inst(at));
        self.release_dead(&inst.src);
        if self.dies(inst.dst) {
            self.state.release(inst.dst);
        }
    }

    /// Before a call: what is needed behind it goes to slots.
    fn leave_registers(&mut self) {
        for class in [Class::General, Class::Vector, Class::Mask] {
            if self.state.count(class).is_none() {
                continue;
            }
            let held: Vec<(Reg, u8)> = self.state.held(class).collect();
            for (reg, register) in held {
                if self.liveness.lives_after(reg, self.at) {
                    self.evict(reg, class, register);
                } else {
                    self.state.release(reg);
                }
            }
        }
    }
}
