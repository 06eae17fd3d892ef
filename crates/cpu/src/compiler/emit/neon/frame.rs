//! The frame of a function, and what the allocator adds to its instructions.
//!
//! From the stack pointer up there are the numbers for a call, the slots, and the registers that the caller
//! wants back. x29 points behind the slots.

use super::super::mir::{Class, Cond, Elem, Op};
use super::super::{Action, Allocated, AllocatedInst, OperandLocation};
use super::words as w;
use super::words::Condition;
use super::{ARGS, OTHER, SCRATCH, SCRATCH_V, Writer};

/// Where things are in the frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Bytes from the stack pointer to the slots, where the numbers for a call are.
    numbers: u32,
    /// Bytes from the stack pointer to x29.
    bytes: u32,
    /// The registers to keep, without x28.
    generals: Vec<u8>,
    vectors: Vec<u8>,
}

/// Bytes from x29 to the FPCR of the caller, and to the registers.
const FPCR: u32 = 16;
const SAVED: u32 = 24;
/// Bytes from the stack pointer to the lanes that a kernel computes anew: behind their address and number.
const APPLIED: u32 = 16;
/// The bytes of a page, each of which a frame touches in order, so that none steps over the guard of the
/// stack.
const PAGE: u32 = 4096;

/// Whether the result of an op is in a general register.
fn is_general(op: Op) -> bool {
    matches!(
        op,
        Op::Number(_)
            | Op::Argument(_)
            | Op::AddNumber(_)
            | Op::MulNumber(_)
            | Op::GeneralAdd
            | Op::GeneralSub
            | Op::GeneralMul
            | Op::GeneralMin
            | Op::GeneralMax
            | Op::ToGeneral
    )
}

impl Frame {
    /// The frame for a function.
    pub(super) fn of(function: &Allocated) -> Frame {
        let mut frame = Frame { numbers: 0, bytes: 0, generals: Vec::new(), vectors: Vec::new() };
        for action in &function.actions {
            match action {
                Action::Inst(inst) => frame.note_inst(inst),
                Action::Move { class, to, from: _ } | Action::Reload { class, to, slot: _ } => {
                    frame.note(*class, *to)
                }
                Action::Constant { to, constant: _ } => frame.note(Class::Vector, *to),
                Action::Call { kernel: _, args } => {
                    frame.numbers = frame.numbers.max((8 * args.len() as u32).next_multiple_of(16));
                }
                Action::Apply { to, .. } => {
                    frame.numbers = frame.numbers.max(APPLIED + 16);
                    frame.note(Class::Vector, *to);
                }
                Action::Spill { .. } | Action::Label(_) | Action::Jump(_) | Action::JumpIf { .. } => {}
                Action::JumpIfNone { .. } | Action::Nothing => {}
            }
        }
        frame.generals.sort_unstable();
        frame.vectors.sort_unstable();
        frame.bytes = (frame.numbers + function.slots).next_multiple_of(16);
        frame
    }

    fn note_inst(&mut self, inst: &AllocatedInst) {
        let class = if is_general(inst.op) { Class::General } else { Class::Vector };
        self.note(class, inst.dst);
        inst.general_temps.iter().for_each(|&temp| self.note(Class::General, temp));
        inst.vector_temps.iter().for_each(|&temp| self.note(Class::Vector, temp));
    }

    /// Notes that a register is written.
    fn note(&mut self, class: Class, reg: u8) {
        let (saved, regs) = match class {
            Class::General => (19..28, &mut self.generals),
            Class::Vector | Class::Mask => (8..16, &mut self.vectors),
        };
        if saved.contains(&reg) && !regs.contains(&reg) {
            regs.push(reg);
        }
    }

    /// The bytes from x29 to the end.
    fn saved_bytes(&self) -> u32 {
        (SAVED + 8 * (1 + self.generals.len() + self.vectors.len()) as u32).next_multiple_of(16)
    }
}

impl Writer<'_> {
    /// The whole function. None if it is too large for its jumps.
    pub(super) fn function(mut self) -> Option<Vec<u8>> {
        let leave = self.asm.label();
        self.enter();
        let function = self.function;
        for action in &function.actions {
            self.action(action, leave);
        }
        self.push(w::mov_part(w::MOVZ, 0, 0, 0));
        self.asm.bind(leave);
        self.leave();
        self.asm.finish()
    }

    /// Saves or loads what the caller wants back.
    fn keep(&mut self, general: (u32, u32), vector: (u32, u32)) {
        let frame = self.frame.clone();
        let generals: Vec<u8> = std::iter::once(ARGS).chain(frame.generals).collect();
        let mut at = SAVED / 8;
        for (regs, (one, two)) in [(generals, general), (frame.vectors, vector)] {
            for regs in regs.chunks(2) {
                self.push(match *regs {
                    [first, second] => w::pair(two, first, second, 29, at as i32),
                    _ => w::at_units(one, regs[0], 29, at),
                });
                at += regs.len() as u32;
            }
        }
    }

    fn enter(&mut self) {
        self.push(w::BTI_C);
        let saved = self.frame.saved_bytes() as i32;
        self.push(w::pair(w::STP_X_BEFORE, 29, 30, w::SP, -saved / 8));
        self.push(w::add_imm(29, w::SP, 0, false));
        self.keep((w::STR_X, w::STP_X), (w::str_v(3), w::STP_D));
        self.push(w::mov(ARGS, 0));
        // Results are those of the default modes. To write the register is slow, to read it is not.
        self.push(w::MRS_FPCR | u32::from(SCRATCH));
        self.push(w::at_units(w::STR_X, SCRATCH, 29, FPCR / 8));
        self.push(w::far(w::cbz(SCRATCH), 2));
        self.push(w::MSR_FPCR | u32::from(w::ZERO));
        let mut bytes = self.frame.bytes;
        while bytes > PAGE {
            self.push(w::sub_imm(w::SP, w::SP, PAGE >> 12, true));
            self.push(w::at_units(w::STR_X, w::ZERO, w::SP, 0));
            bytes -= PAGE;
        }
        if bytes == PAGE {
            self.push(w::sub_imm(w::SP, w::SP, 1, true));
        } else if bytes > 0 {
            self.push(w::sub_imm(w::SP, w::SP, bytes, false));
        }
    }

    /// Returns what is in w0.
    fn leave(&mut self) {
        self.push(w::at_units(w::LDR_X, SCRATCH, 29, FPCR / 8));
        self.push(w::far(w::cbz(SCRATCH), 2));
        self.push(w::MSR_FPCR | u32::from(SCRATCH));
        if self.frame.bytes > 0 {
            self.push(w::add_imm(w::SP, 29, 0, false));
        }
        self.keep((w::LDR_X, w::LDP_X), (w::ldr_v(3), w::LDP_D));
        let saved = self.frame.saved_bytes() as i32;
        self.push(w::pair(w::LDP_X_AFTER, 29, 30, w::SP, saved / 8));
        self.push(w::RET);
    }

    fn action(&mut self, action: &Action, leave: u32) {
        match action {
            Action::Inst(inst) => self.inst(inst),
            Action::Move { class: Class::General, to, from } => self.move_general(*to, *from),
            Action::Move { class: Class::Vector | Class::Mask, to, from } => self.move_vector(*to, *from),
            Action::Spill { class: Class::General, slot, from } => self.slot(w::STR_X, 3, *from, *slot),
            Action::Spill { class: Class::Vector | Class::Mask, slot, from } => {
                self.slot(w::str_v(4), 4, *from, *slot);
            }
            Action::Reload { class: Class::General, to, slot } => self.slot(w::LDR_X, 3, *to, *slot),
            Action::Reload { class: Class::Vector | Class::Mask, to, slot } => {
                self.slot(w::ldr_v(4), 4, *to, *slot);
            }
            Action::Constant { to, constant } => self.constant(*to, *constant),
            Action::Label(label) => self.asm.bind(*label),
            Action::Jump(label) => self.asm.jump(*label),
            Action::JumpIf { cond, a, b, to } => {
                // The allocator may have put the second into the scratch register.
                let a = self.general_operand(*a, OTHER);
                let b = self.general_operand(*b, SCRATCH);
                self.push(w::cmp(a, b));
                self.asm.jump_if(condition(*cond), *to);
            }
            Action::JumpIfNone { mask, elem, lanes, to } => self.jump_if_none(*mask, *elem, *lanes, *to),
            Action::Call { kernel, args } => self.call(*kernel, args, leave),
            Action::Apply { kernel, elem: _, lanes, to, from } => self.apply(*kernel, *lanes, *to, *from),
            Action::Nothing => {}
        }
    }

    /// The register of a general value, which is loaded to a free one from a slot.
    fn general_operand(&mut self, location: OperandLocation, free: u8) -> u8 {
        match location {
            OperandLocation::Slot(slot) => {
                self.slot(w::LDR_X, 3, free, slot);
                free
            }
            OperandLocation::Reg(_) | OperandLocation::Pool(_) | OperandLocation::None => location.reg(),
        }
    }

    pub(super) fn move_general(&mut self, to: u8, from: u8) {
        if to != from {
            self.push(w::mov(to, from));
        }
    }

    pub(super) fn move_vector(&mut self, to: u8, from: u8) {
        if to != from {
            self.push(w::v_mov(to, from));
        }
    }

    /// Loads or stores a slot, by no scratch register but x17.
    fn slot(&mut self, word: u32, size: u32, reg: u8, slot: u32) {
        self.frame_access(word, size, reg, self.frame.numbers + slot);
    }

    fn frame_access(&mut self, word: u32, size: u32, reg: u8, offset: u32) {
        if offset.trailing_zeros() >= size && offset >> size < 4096 {
            self.push(w::at_units(word, reg, w::SP, offset >> size));
        } else if offset < 256 {
            self.push(w::at_near(word, reg, w::SP, offset as i32));
        } else {
            self.number(OTHER, offset.into());
            self.push(w::at_index(word, reg, w::SP, OTHER, false));
        }
    }

    /// Jumps if none of the lanes of a mask is set.
    fn jump_if_none(&mut self, mask: u8, elem: Elem, lanes: u8, to: u32) {
        let size = (usize::from(lanes) * elem.bytes()).trailing_zeros();
        let scratch = SCRATCH;
        match size {
            4 => {
                // The greater ones of neighbours fit half a register.
                self.push(w::dnm(w::V_UMAXP | w::Q | 2 << 22, SCRATCH_V, mask, mask));
                self.push(w::dn(w::FMOV_X_D, scratch, SCRATCH_V));
                self.asm.jump_if_zero(scratch, to);
            }
            3 => {
                self.push(w::dn(w::FMOV_X_D, scratch, mask));
                self.asm.jump_if_zero(scratch, to);
            }
            2 => {
                self.push(w::dn(w::FMOV_W_S, scratch, mask));
                self.asm.jump_if_low_zero(scratch, to);
            }
            _ => {
                self.push(w::dn(w::V_UMOV | w::lane(size, 0), scratch, mask));
                self.asm.jump_if_low_zero(scratch, to);
            }
        }
    }

    /// Calls a kernel, and leaves if it does not return 0.
    fn call(&mut self, kernel: u16, args: &[OperandLocation], leave: u32) {
        for (position, arg) in args.iter().enumerate() {
            let reg = match *arg {
                OperandLocation::Reg(reg) => reg,
                OperandLocation::Slot(slot) => {
                    self.slot(w::LDR_X, 3, SCRATCH, slot);
                    SCRATCH
                }
                OperandLocation::None | OperandLocation::Pool(_) => unreachable!("{arg:?} is no number"),
            };
            self.frame_access(w::STR_X, 3, reg, 8 * position as u32);
        }
        self.call_kernel(kernel);
        self.asm.jump_unless_low_zero(0, leave);
    }

    /// Calls a kernel that computes the lanes of a vector anew, and always succeeds.
    fn apply(&mut self, kernel: u16, lanes: u8, to: u8, from: u8) {
        self.frame_access(w::str_v(4), 4, from, APPLIED);
        self.push(w::add_imm(SCRATCH, w::SP, APPLIED, false));
        self.frame_access(w::STR_X, 3, SCRATCH, 0);
        self.number(SCRATCH, lanes.into());
        self.frame_access(w::STR_X, 3, SCRATCH, 8);
        self.call_kernel(kernel);
        self.frame_access(w::ldr_v(4), 4, to, APPLIED);
    }

    /// Calls a kernel, whose arguments are there.
    fn call_kernel(&mut self, kernel: u16) {
        let word = self.function.words + 2 * u32::from(kernel);
        // The context first, as a far word needs x16.
        self.argument(0, word + 1);
        self.argument(SCRATCH, word);
        self.push(w::add_imm(1, w::SP, 0, false));
        self.push(w::dn(w::BLR, 0, SCRATCH));
    }
}

fn condition(cond: Cond) -> Condition {
    match cond {
        Cond::Eq => Condition::Eq,
        Cond::Ne => Condition::Ne,
        Cond::Lt => Condition::Lt,
        Cond::Le => Condition::Le,
        Cond::Gt => Condition::Gt,
        Cond::Ge => Condition::Ge,
    }
}
