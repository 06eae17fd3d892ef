//! The register allocator: one pass over structured code, which keeps in registers what is used next.
//!
//! Instructions are allocated in order. Where no register is free, the value whose next use is farthest leaves its
//! register (Belady, 1966); it is stored to a slot of the frame unless it is there already or can be made again.
//! Control flow is structured, so that locations are settled where paths meet:
//!
//! * A loop begins in the state that it was entered in, after values that it does not use have left their registers to
//!   those that it does. Its end restores that state, and what leaves the loop does, too.
//! * The second side of a condition begins as the first did, and ends as the first ended.
//!
//! An instruction may write to the register of a source that is used up, and has to where its encoding says so. The
//! next value of what a loop carries is allocated where the loop expects it, if that register is free.

mod blocks;
mod liveness;
mod moves;
mod operands;
mod state;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use super::mir::{Class, Code, Op, Part, Reg};
use super::{Action, Allocated, AllocatedInst, AllocatedPart, Limits, OperandLocation, Target, mask_class};
use blocks::Block;
use liveness::Liveness;
use state::{NO_REG, State};

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
    Rematerialized(usize),
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

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops have no control flow")]
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
            Op::Apply(kernel) => self.apply(kernel),
            _ => self.plain(),
        }
    }

    /// An instruction without control flow.
    fn plain(&mut self) {
        let inst = self.code.insts[self.at];
        let constraint = self.target.constraint(&inst);
        let mut src = [OperandLocation::None; 3];
        let tied = self.tied_source(&inst.src, constraint);
        let in_memory = self.memory_source(&inst.src, constraint, tied);
        for (position, &reg) in inst.src.iter().enumerate() {
            if !reg.is_some() || Some(position) == tied {
                continue;
            }
            src[position] = match in_memory {
                Some((at, location)) if at == position => location,
                Some(_) | None => OperandLocation::Reg(self.in_register(reg)),
            };
        }
        let mem = self.address(inst.mem);
        let part = match inst.part {
            Part::All => AllocatedPart::All,
            Part::Count(reg) => AllocatedPart::Count(self.in_register(reg)),
            Part::Mask(reg) => AllocatedPart::Mask(self.in_register(reg)),
        };
        let vector_temps = self.temps(Class::Vector, constraint.vector_temps);
        let general_temps = self.temps(Class::General, constraint.general_temps);
        let mask_temp = self.temps(mask_class(&self.limits), constraint.mask_temps)[0];
        // The tied source is in the result's register.
        let taken = tied.map(|at| self.take_over(inst.src[at], inst.dst, &inst.src, at));
        if let (Some(at), Some(reg)) = (tied, taken) {
            src[at] = OperandLocation::Reg(reg);
        }
        let others = |reg: &Reg| reg.is_some() && tied.is_none_or(|at| inst.src[at] != *reg);
        let read: SmallVec<[Reg; 6]> =
            inst.src.iter().chain(&[inst.mem.base, inst.mem.index]).copied().collect();
        let read = read.into_iter().chain(match inst.part {
            Part::All => None,
            Part::Count(reg) | Part::Mask(reg) => Some(reg),
        });
        let dead: SmallVec<[Reg; 6]> = read.filter(|reg| others(reg) && self.dies(*reg)).collect();
        // Their registers are free for the result. A slot that is read is not free before the instruction is over.
        if !constraint.is_early {
            for &reg in &dead {
                let class = self.class(reg);
                if let Some(register) = self.state.register(reg) {
                    self.state.leave_register(reg, class);
                    self.state.unlock(class, register);
                }
            }
        }
        let dst = match (taken, inst.dst.is_some()) {
            (Some(reg), _) => reg,
            (None, true) => self.new_register(inst.dst),
            (None, false) => NO_REG,
        };
        dead.iter().for_each(|&reg| self.state.release(reg));
        self.state.free_temps();
        let allocated_inst = AllocatedInst {
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
        self.emit(Action::Inst(allocated_inst), || Origin::Inst(at));
        if inst.dst.is_some() && self.dies(inst.dst) {
            self.state.release(inst.dst);
        }
    }
}
