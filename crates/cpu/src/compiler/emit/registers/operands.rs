//! The registers of operands and results.

use super::super::mir::{Class, Mem, Op, Reg};
use super::super::{Action, Address, Constraint, OperandLocation};
use super::blocks::Block;
use super::state::NO_REG;
use super::{Allocator, Origin};

impl Allocator<'_> {
    /// Registers that an instruction needs while it runs.
    pub(super) fn temps(&mut self, class: Class, count: u8) -> [u8; 2] {
        let mut temps = [NO_REG; 2];
        for temp in &mut temps[..usize::from(count)] {
            *temp = self.free_register(class);
            self.state.take_temp(class, *temp);
        }
        temps
    }

    /// An address with its registers.
    pub(super) fn address(&mut self, mem: Mem) -> Address {
        if !mem.base.is_some() {
            return Address::default();
        }
        let base = self.in_register(mem.base);
        let index = mem.index.is_some().then(|| self.in_register(mem.index));
        Address { base, index, scale: mem.scale, offset: mem.offset }
    }

    /// The source whose register the result takes.
    pub(super) fn tied_source(&self, src: &[Reg; 3], constraint: Constraint) -> Option<usize> {
        let allowed = (0..3).filter(|at| constraint.tied >> at & 1 == 1 && src[*at].is_some());
        allowed.min_by_key(|&at| {
            let reg = src[at];
            let is_in_register = self.state.register(reg).is_some();
            let rematerialize = src.iter().filter(|other| **other == reg).count() > 1;
            match (
                self.dies(reg) && !self.code.insts[self.liveness.definition(reg)].op.is_rematerialized(),
                is_in_register,
            ) {
                (true, true) if !rematerialize || !constraint.is_early => 0,
                // It has to be brought to a register in any case.
                (_, false) => 1,
                (true | false, true) => 2,
            }
        })
    }

    /// The source that is read from memory, and where it is.
    pub(super) fn memory_source(
        &self,
        src: &[Reg; 3],
        constraint: Constraint,
        tied: Option<usize>,
    ) -> Option<(usize, OperandLocation)> {
        let candidates = (0..3).filter(|&at| {
            let is_tied = tied.is_some_and(|tied| tied == at || src[tied] == src[at]);
            src[at].is_some() && !is_tied && self.state.register(src[at]).is_none()
        });
        let location = |at: usize| {
            let reg = src[at];
            let twice = src.iter().filter(|other| **other == reg).count() > 1;
            if twice {
                return None;
            }
            let op = self.code.insts[self.liveness.definition(reg)].op;
            if let Op::Const(constant) = op {
                return (constraint.pool >> at & 1 == 1).then_some(OperandLocation::Pool(constant));
            }
            let may_be_spilled = constraint.slot >> at & 1 == 1 && !op.is_rematerialized();
            self.state.slot(reg).filter(|_| may_be_spilled).map(OperandLocation::Slot)
        };
        candidates.filter_map(|at| location(at).map(|location| (at, location))).next()
    }

    /// A register with the value, which stays there until the instruction is over.
    pub(super) fn in_register(&mut self, reg: Reg) -> u8 {
        let class = self.class(reg);
        if let Some(register) = self.state.register(reg) {
            self.state.lock(class, register);
            return register;
        }
        let to = self.free_register(class);
        self.bring(reg, class, to);
        self.state.settle(reg, class, to);
        self.state.lock(class, to);
        to
    }

    /// Brings a value that is in no register to one.
    pub(super) fn bring(&mut self, reg: Reg, class: Class, to: u8) {
        if self.is_rematerialized(reg) {
            return self.rematerialize(self.liveness.definition(reg), to);
        }
        let slot = self.state.slot(reg);
        let slot = slot.unwrap_or_else(|| {
            let definition = self.code.insts[self.liveness.definition(reg)];
            panic!("{reg} is nowhere at {}: {definition:?}", self.at)
        });
        self.emit(Action::Reload { class, to, slot }, || Origin::Moved);
    }

    /// Gives the register of a tied source to the result; the source is copied first if it is needed later.
    pub(super) fn take_over(&mut self, from: Reg, to: Reg, src: &[Reg; 3], at: usize) -> u8 {
        let class = self.class(to);
        let can_rematerialize = self.code.insts[self.liveness.definition(from)].op.is_rematerialized();
        let others = src.iter().enumerate().filter(|(other, reg)| *other != at && **reg == from).count();
        match self.state.register(from) {
            Some(register) if self.dies(from) && others == 0 => {
                self.state.release(from);
                self.state.settle(to, class, register);
                self.state.lock(class, register);
                register
            }
            Some(register) => {
                self.state.lock(class, register);
                let own = self.register_for(to, class);
                self.emit(Action::Move { class, to: own, from: register }, || Origin::Moved);
                if self.dies(from) && !can_rematerialize {
                    self.state.release(from);
                }
                self.state.settle(to, class, own);
                self.state.lock(class, own);
                own
            }
            None => {
                let own = self.register_for(to, class);
                self.bring(from, class, own);
                if self.dies(from) && others == 0 {
                    self.state.release(from);
                }
                self.state.settle(to, class, own);
                self.state.lock(class, own);
                own
            }
        }
    }

    /// A register for a result.
    pub(super) fn new_register(&mut self, reg: Reg) -> u8 {
        let class = self.class(reg);
        let register = self.register_for(reg, class);
        self.state.settle(reg, class, register);
        self.state.lock(class, register);
        register
    }

    /// A free register for a value: the one that a loop expects it in, if that is free.
    fn register_for(&mut self, reg: Reg, class: Class) -> u8 {
        if let Some(hint) = self.hint(reg)
            && self.state.is_free(class, hint)
        {
            return hint;
        }
        self.free_register(class)
    }

    /// Where a loop expects the next value of what it carries.
    fn hint(&self, reg: Reg) -> Option<u8> {
        let carry = self.liveness.carry_of(reg)?;
        self.blocks.iter().rev().find_map(|block| match block {
            Block::Loop { entry, .. } => entry.iter().find(|(other, _)| *other == carry)?.1.register(),
            Block::If { .. } => None,
        })
    }

    /// A register that is free, after a value has left it if none was.
    pub(super) fn free_register(&mut self, class: Class) -> u8 {
        if let Some(register) = self.state.free(class) {
            return register;
        }
        let held = self.state.unlocked(class);
        let far = held.max_by_key(|&(reg, _)| {
            let next = self.liveness.next_use(reg, self.at);
            // What need not be stored leaves more easily.
            let is_clean = self.state.slot(reg).is_some() || self.is_rematerialized(reg);
            (next + usize::from(is_clean) * 8, reg)
        });
        let (reg, register) = far.expect("an instruction has fewer operands than there are registers");
        self.evict(reg, class, register);
        register
    }

    /// Whether a value is a constant, a number or an argument, which is never stored.
    pub(super) fn is_rematerialized(&self, reg: Reg) -> bool {
        self.code.insts[self.liveness.definition(reg)].op.is_rematerialized()
    }

    /// Takes a value out of its register.
    pub(super) fn evict(&mut self, reg: Reg, class: Class, register: u8) {
        if !self.is_rematerialized(reg) && self.state.slot(reg).is_none() {
            let slot = self.state.new_slot(reg, class);
            self.emit(Action::Spill { class, slot, from: register }, || Origin::Moved);
        }
        self.state.leave_register(reg, class);
    }
}
