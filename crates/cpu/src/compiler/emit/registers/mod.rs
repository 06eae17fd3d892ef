//! The register allocator: one pass over structured code, which keeps in registers what is used next.
//!
//! Instructions are allocated in order. Where no register is free, the value whose next use is farthest leaves its
//! register (Belady, 1966); it is stored to a slot of the frame unless it is there already or can be made again. Control
//! flow is structured, so that locations are settled where paths meet:
//!
//! * A loop begins in the state that it was entered in, after values that it does not use have left their registers to
//!   those that it does. Its end restores that state, and what leaves the loop does, too.
//! * The second side of a condition begins as the first did, and ends as the first ended.
//!
//! An instruction may write to the register of a source that is used up, and has to where its encoding says so. The next
//! value of what a loop carries is allocated where the loop expects it, if that register is free.

mod liveness;
mod moves;
mod state;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use super::mir::{Class, Code, Cond, Elem, ListId, Mem, Op, Part, Reg};
use super::{Action, Address, Allocated, Constraint, Limits, Place, Placed, PlacedPart, Target, mask_class};
use liveness::Liveness;
use moves::Move;
use state::{Home, NO_REG, State};

/// Registers of a class that what loops carry, or conditions give, leaves to others.
const KEPT_FREE: usize = 3;

/// What an action stands for, for the checker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// The instruction at this position of the code.
    Inst(usize),
    /// Before this action, each first value of a pair begins to be in the locations of the second.
    Rename(Vec<(Reg, Reg)>),
    /// A move of a value, or a jump.
    Moved,
    /// A constant, a number or an argument is made again, by the instruction at this position.
    Again(usize),
}

/// Chooses registers. The origins tell for each action what it stands for, if they are asked for.
pub(crate) fn allocate(
    code: &Code,
    target: &dyn Target,
    words: u32,
    origins: Option<&mut Vec<Origin>>,
) -> Allocated {
    let limits = target.limits();
    let liveness = Liveness::new(code, &limits);
    let mut allocator = Allocator {
        code,
        target,
        limits,
        state: State::new(code.classes.len(), &limits),
        liveness,
        out: Vec::with_capacity(code.insts.len() + code.insts.len() / 4),
        origins,
        blocks: Vec::new(),
        labels: 0,
        at: 0,
    };
    for at in 0..code.insts.len() {
        allocator.at = at;
        allocator.instruction();
    }
    Allocated {
        actions: allocator.out,
        constants: code.constants.clone(),
        lanes: code.lanes,
        slots: allocator.state.frame_bytes(),
        labels: allocator.labels,
        words,
    }
}

/// An open block.
enum Block {
    Loop {
        header: u32,
        exit: u32,
        /// Where values are when a trip begins.
        entry: Vec<(Reg, Home)>,
    },
    If {
        /// The label of the second side, or of the end.
        other: u32,
        end: u32,
        /// Where values were when the condition was found.
        before: Vec<(Reg, Home)>,
        /// Where they are at the end of the first side, and where the results are.
        after: Option<(Vec<(Reg, Home)>, Vec<Home>)>,
    },
}

struct Allocator<'a> {
    code: &'a Code,
    target: &'a dyn Target,
    limits: Limits,
    liveness: Liveness,
    state: State,
    out: Vec<Action>,
    origins: Option<&'a mut Vec<Origin>>,
    blocks: Vec<Block>,
    labels: u32,
    /// The instruction that is allocated.
    at: usize,
}

impl Allocator<'_> {
    fn emit(&mut self, action: Action, origin: impl FnOnce() -> Origin) {
        self.out.push(action);
        if let Some(origins) = &mut self.origins {
            origins.push(origin());
        }
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    /// The class of registers that a value is in.
    fn class(&self, reg: Reg) -> Class {
        match self.code.class(reg) {
            Class::Mask => mask_class(&self.limits),
            class @ (Class::General | Class::Vector) => class,
        }
    }

    /// Whether this is the last time that a value is needed.
    fn dies(&self, reg: Reg) -> bool {
        !self.liveness.lives_after(reg, self.at)
    }

    fn instruction(&mut self) {
        self.state.unlock_all();
        let inst = self.code.insts[self.at];
        match inst.op {
            // They are made where they are used.
            Op::Const(_) | Op::Number(_) | Op::Argument(_) => {}
            Op::Loop(list) => self.begin_loop(list),
            Op::EndLoop(list, cond) => self.end_loop(list, Some((cond, inst.src[0], inst.src[1]))),
            Op::EndLoopAlways(list) => self.end_loop(list, None),
            Op::While | Op::WhileGeneral(_) => self.leave_loop(),
            Op::If | Op::IfGeneral(_) => self.begin_if(),
            Op::Else => self.begin_else(),
            Op::EndIf(list) => self.end_if(list),
            Op::Call(kernel, list) => self.call(kernel, list),
            _ => self.plain(),
        }
    }

    /// An instruction without control flow.
    fn plain(&mut self) {
        let inst = self.code.insts[self.at];
        let constraint = self.target.constraint(&inst);
        let mut src = [Place::None; 3];
        let tied = self.tied_source(&inst.src, constraint);
        let in_memory = self.memory_source(&inst.src, constraint, tied);
        for (position, &reg) in inst.src.iter().enumerate() {
            if !reg.is_some() || Some(position) == tied {
                continue;
            }
            src[position] = match in_memory {
                Some((at, place)) if at == position => place,
                Some(_) | None => Place::Reg(self.in_register(reg)),
            };
        }
        let mem = self.address(inst.mem);
        let part = match inst.part {
            Part::All => PlacedPart::All,
            Part::Count(reg) => PlacedPart::Count(self.in_register(reg)),
            Part::Mask(reg) => PlacedPart::Mask(self.in_register(reg)),
        };
        let vector_temps = self.temps(Class::Vector, constraint.vector_temps);
        let general_temps = self.temps(Class::General, constraint.general_temps);
        let mask_temp = self.temps(mask_class(&self.limits), constraint.mask_temps)[0];
        // The tied source is in the result's register.
        let taken = tied.map(|at| self.take_over(inst.src[at], inst.dst, &inst.src, at));
        if let (Some(at), Some(reg)) = (tied, taken) {
            src[at] = Place::Reg(reg);
        }
        let others = |reg: &Reg| reg.is_some() && tied.is_none_or(|at| inst.src[at] != *reg);
        let read: SmallVec<[Reg; 6]> = inst.src.iter().chain(&[inst.mem.base, inst.mem.index]).copied().collect();
        let read = read.into_iter().chain(match inst.part {
            Part::All => None,
            Part::Count(reg) | Part::Mask(reg) => Some(reg),
        });
        let dead: SmallVec<[Reg; 6]> = read.filter(|reg| others(reg) && self.dies(*reg)).collect();
        // Their registers are free for the result. A slot that is read is not free before the instruction is over.
        if !constraint.is_early {
            for &reg in &dead {
                let class = self.class(reg);
                self.state.leave_register(reg, class);
            }
        }
        let dst = match (taken, inst.dst.is_some()) {
            (Some(reg), _) => reg,
            (None, true) => self.new_register(inst.dst),
            (None, false) => NO_REG,
        };
        dead.iter().for_each(|&reg| self.state.release(reg));
        self.state.free_temps();
        let placed = Placed {
            op: inst.op,
            elem: inst.elem,
            lanes: inst.lanes,
            dst,
            src,
            mem,
            part,
            vector_temps,
            general_temps,
            mask_temp,
        };
        let at = self.at;
        self.emit(Action::Inst(placed), || Origin::Inst(at));
        if inst.dst.is_some() && self.dies(inst.dst) {
            self.state.release(inst.dst);
        }
    }

    fn temps(&mut self, class: Class, count: u8) -> [u8; 2] {
        let mut temps = [NO_REG; 2];
        for temp in &mut temps[..usize::from(count)] {
            *temp = self.free_register(class);
            self.state.take_temp(class, *temp);
        }
        temps
    }

    fn address(&mut self, mem: Mem) -> Address {
        if !mem.base.is_some() {
            return Address::default();
        }
        let base = self.in_register(mem.base);
        let index = mem.index.is_some().then(|| self.in_register(mem.index));
        Address { base, index, scale: mem.scale, offset: mem.offset }
    }

    /// The source whose register the result takes.
    fn tied_source(&self, src: &[Reg; 3], constraint: Constraint) -> Option<usize> {
        let allowed = (0..3).filter(|at| constraint.tied >> at & 1 == 1 && src[*at].is_some());
        allowed.min_by_key(|&at| {
            let reg = src[at];
            let is_in_register = self.state.register(reg).is_some();
            let again = src.iter().filter(|other| **other == reg).count() > 1;
            match (self.dies(reg) && !self.code.insts[self.liveness.definition(reg)].op.is_made_again(), is_in_register) {
                (true, true) if !again || !constraint.is_early => 0,
                // It has to be brought to a register in any case.
                (_, false) => 1,
                (true | false, true) => 2,
            }
        })
    }

    /// The source that is read from memory, and where it is.
    fn memory_source(
        &self,
        src: &[Reg; 3],
        constraint: Constraint,
        tied: Option<usize>,
    ) -> Option<(usize, Place)> {
        let candidates = (0..3).filter(|&at| {
            let is_tied = tied.is_some_and(|tied| tied == at || src[tied] == src[at]);
            src[at].is_some() && !is_tied && self.state.register(src[at]).is_none()
        });
        let place = |at: usize| {
            let reg = src[at];
            let twice = src.iter().filter(|other| **other == reg).count() > 1;
            if twice {
                return None;
            }
            match self.code.insts[self.liveness.definition(reg)].op {
                Op::Const(constant) if constraint.pool >> at & 1 == 1 => Some(Place::Pool(constant)),
                Op::Const(_) | Op::Number(_) | Op::Argument(_) => None,
                _ if constraint.slot >> at & 1 == 1 => self.state.slot(reg).map(Place::Slot),
                _ => None,
            }
        };
        candidates.filter_map(|at| place(at).map(|place| (at, place))).next()
    }

    /// A register with the value, which stays there until the instruction is over.
    fn in_register(&mut self, reg: Reg) -> u8 {
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
    fn bring(&mut self, reg: Reg, class: Class, to: u8) {
        if self.is_made_again(reg) {
            return self.again(self.liveness.definition(reg), to);
        }
        let slot = self.state.slot(reg);
        let slot = slot.unwrap_or_else(|| panic!("{reg} is nowhere at {}", self.at));
        self.emit(Action::Reload { class, to, slot }, || Origin::Moved);
    }

    /// Gives the register of a tied source to the result; the source is copied first if it is needed later.
    fn take_over(&mut self, from: Reg, to: Reg, src: &[Reg; 3], at: usize) -> u8 {
        let class = self.class(to);
        let is_again = self.code.insts[self.liveness.definition(from)].op.is_made_again();
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
                if self.dies(from) && !is_again {
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
    fn new_register(&mut self, reg: Reg) -> u8 {
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
    fn free_register(&mut self, class: Class) -> u8 {
        if let Some(register) = self.state.free(class) {
            return register;
        }
        let held = self.state.unlocked(class);
        let far = held.max_by_key(|&(reg, _)| {
            let next = self.liveness.next_use(reg, self.at);
            // What need not be stored leaves more easily.
            let is_clean = self.state.slot(reg).is_some() || self.is_made_again(reg);
            (next + usize::from(is_clean) * 8, reg)
        });
        let (reg, register) = far.expect("an instruction has fewer operands than there are registers");
        self.evict(reg, class, register);
        register
    }

    fn is_made_again(&self, reg: Reg) -> bool {
        self.code.insts[self.liveness.definition(reg)].op.is_made_again()
    }

    /// Takes a value out of its register.
    fn evict(&mut self, reg: Reg, class: Class, register: u8) {
        if !self.is_made_again(reg) && self.state.slot(reg).is_none() {
            let slot = self.state.new_slot(reg, class);
            self.emit(Action::Spill { class, slot, from: register }, || Origin::Moved);
        }
        self.state.leave_register(reg, class);
    }

    // Control flow.

    fn begin_loop(&mut self, list: ListId) {
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
            if self.is_made_again(init) && self.state.register(init).is_none() {
                let to = self.free_register(class);
                self.again(self.liveness.definition(init), to);
                self.state.settle(carry, class, to);
                self.state.lock(class, to);
                continue;
            }
            let from = self.in_register(init);
            // A value that ends here leaves its register to the last that begins with it.
            let is_last = pairs[position + 1..].iter().all(|(_, other)| *other != init);
            if self.dies(init) && is_last && !self.is_made_again(init) {
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
            let room = count.saturating_sub(held + need);
            for reg in self.liveness.constants_of_loop(self.code, at, class, room) {
                if self.state.register(reg).is_none()
                    && let Some(register) = self.state.free(class)
                {
                    self.bring(reg, class, register);
                    self.state.settle(reg, class, register);
                }
            }
        }
    }

    fn end_loop(&mut self, list: ListId, condition: Option<(Cond, Reg, Reg)>) {
        let Some(Block::Loop { header, exit, entry }) = self.blocks.pop() else {
            unreachable!("a loop is open")
        };
        let pairs: Vec<(Reg, Reg)> = self.code.list(list).chunks(2).map(|pair| (pair[0], pair[1])).collect();
        let next_of = |reg: Reg| pairs.iter().find(|(carry, _)| *carry == reg).map(|(_, next)| *next);
        let mut moves = Vec::new();
        for &(reg, home) in &entry {
            let from = next_of(reg).unwrap_or(reg);
            self.restore(reg, from, home, &mut moves);
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
    fn loop_operand(&mut self, reg: Reg, pairs: &[(Reg, Reg)], entry: &[(Reg, Home)]) -> Place {
        let carry = pairs.iter().find(|(_, next)| *next == reg).map_or(reg, |(carry, _)| *carry);
        match entry.iter().find(|(other, _)| *other == carry) {
            Some((_, home)) => home.place(),
            None => {
                assert!(self.is_made_again(reg), "a loop ends by what it carries, or by what was before it");
                let scratch = self.limits.scratch[Class::General as usize];
                self.again(self.liveness.definition(reg), scratch);
                Place::Reg(scratch)
            }
        }
    }

    /// What has to move so that a value is again where a block expects it.
    fn restore(&mut self, reg: Reg, from: Reg, home: Home, moves: &mut Vec<Move>) {
        let class = self.class(reg);
        let now = self.state.home(from);
        let is_again = self.is_made_again(from);
        match (home, now) {
            (Home::Register(to), Some(now)) if now.register() != Some(to) => {
                let from = now.register().map_or(now, Home::Register);
                moves.push(Move { class, to: Home::Register(to), from });
            }
            (Home::Both(to, slot), Some(now)) => {
                if now.register() != Some(to) {
                    let from = now.register().map_or(now, Home::Register);
                    moves.push(Move { class, to: Home::Register(to), from });
                }
                if now.slot() != Some(slot) {
                    let from = now.register().map_or(now, Home::Register);
                    moves.push(Move { class, to: Home::Slot(slot), from });
                }
            }
            (Home::Slot(slot), Some(now)) if now.slot() != Some(slot) => {
                let from = now.register().map_or(now, Home::Register);
                moves.push(Move { class, to: Home::Slot(slot), from });
            }
            (Home::Register(_) | Home::Slot(_), Some(_)) => {}
            (home, None) => {
                // A constant, a number or an argument that has left its register.
                assert!(is_again, "{from:?} is nowhere");
                let definition = self.liveness.definition(from);
                moves.push(Move { class, to: home, from: Home::Again(definition) });
            }
            (Home::Again(_), Some(_)) => {}
        }
    }

    fn leave_loop(&mut self) {
        let inst = self.code.insts[self.at];
        let at = self.at;
        let innermost = self.blocks.iter().rposition(|block| matches!(block, Block::Loop { .. }));
        let innermost = innermost.expect("while is in a loop");
        let Block::Loop { exit, entry, .. } = &self.blocks[innermost] else { unreachable!() };
        let (exit, entry) = (*exit, entry.clone());
        // What is needed behind the loop.
        let end = self.liveness.end_of_block(at);
        let wanted: Vec<(Reg, Home)> =
            entry.into_iter().filter(|(reg, _)| self.liveness.end(*reg) > end).collect();
        let mut moves = Vec::new();
        for &(reg, home) in &wanted {
            self.restore(reg, reg, home, &mut moves);
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
    fn branch(&mut self, inst: &super::mir::Inst, to: u32, if_holds: bool) {
        let at = self.at;
        match inst.op {
            Op::WhileGeneral(cond) | Op::IfGeneral(cond) => {
                let (a, b) = (self.in_register(inst.src[0]), self.in_register(inst.src[1]));
                let cond = if if_holds { cond } else { cond.negated() };
                let (a, b) = (Place::Reg(a), Place::Reg(b));
                self.emit(Action::JumpIf { cond, a, b, to }, || Origin::Inst(at));
            }
            _ => {
                let mask = self.in_register(inst.src[0]);
                let (elem, lanes) = (inst.elem, inst.lanes);
                let jump = Action::JumpIfNone { mask, elem, lanes, to };
                if if_holds {
                    let over = self.label();
                    self.emit(Action::JumpIfNone { mask, elem, lanes, to: over }, || Origin::Inst(at));
                    self.emit(Action::Jump(to), || Origin::Moved);
                    self.emit(Action::Label(over), || Origin::Moved);
                } else {
                    self.emit(jump, || Origin::Inst(at));
                }
            }
        }
    }

    fn release_dead(&mut self, regs: &[Reg]) {
        for &reg in regs {
            if reg.is_some() && self.dies(reg) {
                self.state.release(reg);
            }
        }
    }

    fn begin_if(&mut self) {
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

    fn begin_else(&mut self) {
        let Some(Block::If { other, end, before, .. }) = self.blocks.pop() else {
            unreachable!("a condition is open")
        };
        let finish = self.liveness.end_of_block(self.at);
        let Op::EndIf(list) = self.code.insts[finish].op else { unreachable!("a condition ends") };
        let results = self.results(list);
        let mut homes = Vec::new();
        let mut kept = [0; 3];
        for &(result, then, _) in &results {
            let class = self.class(result);
            kept[class as usize] += 1;
            let from = self.in_register(then);
            if kept[class as usize] + KEPT_FREE > self.state.count(class).unwrap_or(0) {
                let slot = self.state.new_slot(result, class);
                self.emit(Action::Spill { class, slot, from }, || Origin::Moved);
                self.state.unlock(class, from);
                homes.push(Home::Slot(slot));
                continue;
            }
            let to = self.free_register(class);
            self.emit(Action::Move { class, to, from }, || Origin::Moved);
            self.state.settle(result, class, to);
            self.state.lock(class, to);
            self.state.unlock(class, from);
            homes.push(Home::Register(to));
        }
        let renamed = results.iter().map(|&(result, then, _)| (result, then)).collect();
        self.parallel(Vec::new(), renamed);
        // Results are noted apart.
        results.iter().for_each(|(result, ..)| self.state.release(*result));
        let after = self.state.snapshot(|reg| self.liveness.lives_after(reg, finish));
        self.emit(Action::Jump(end), || Origin::Moved);
        self.emit(Action::Label(other), || Origin::Moved);
        let at = self.at;
        self.state.reset(&before, |reg| self.liveness.lives_after(reg, at));
        self.blocks.push(Block::If { other, end, before, after: Some((after, homes)) });
    }

    fn end_if(&mut self, list: ListId) {
        let Some(Block::If { end, after, .. }) = self.blocks.pop() else {
            unreachable!("a condition is open")
        };
        let (after, homes) = after.expect("a condition has two sides");
        let results = self.results(list);
        let mut moves = Vec::new();
        for (&(result, _, otherwise), &home) in results.iter().zip(&homes) {
            self.restore(result, otherwise, home, &mut moves);
        }
        for &(reg, home) in &after {
            self.restore(reg, reg, home, &mut moves);
        }
        self.parallel(moves, results.iter().map(|&(result, _, otherwise)| (result, otherwise)).collect());
        self.emit(Action::Label(end), || Origin::Moved);
        let at = self.at;
        self.state.reset(&after, |reg| self.liveness.lives_after(reg, at));
        for (&(result, ..), &home) in results.iter().zip(&homes) {
            let class = self.class(result);
            if self.liveness.lives_after(result, at) {
                self.state.settle_home(result, class, home);
            }
        }
    }

    fn call(&mut self, kernel: u16, list: ListId) {
        let at = self.at;
        let regs = self.code.list(list).to_vec();
        let args: SmallVec<[Place; 6]> = regs
            .iter()
            .map(|&reg| match (self.state.register(reg), self.state.slot(reg)) {
                (None, Some(slot)) if !self.is_made_again(reg) => Place::Slot(slot),
                _ => Place::Reg(self.in_register(reg)),
            })
            .collect();
        for class in [Class::General, Class::Vector, Class::Mask] {
            if self.state.count(class).is_none() {
                continue;
            }
            let held: Vec<(Reg, u8)> = self.state.held(class).collect();
            for (reg, register) in held {
                if self.liveness.lives_after(reg, at) {
                    self.evict(reg, class, register);
                } else {
                    self.state.release(reg);
                }
            }
        }
        self.emit(Action::Call { kernel, args }, || Origin::Inst(at));
        self.release_dead(&regs);
    }
}
