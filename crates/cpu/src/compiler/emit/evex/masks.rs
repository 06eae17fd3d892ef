//! Mask registers. Bits above the lanes are not specified.

use super::super::x86::opcode::Opcode;
use super::super::x86::{Assembler, Immediate, Rm, SCRATCH};
use super::Emit;

/// All 64 bits between masks, and from memory.
pub(super) const MOVE: Opcode = Opcode::plain(0x90).w();
/// To memory.
pub(super) const STORE: Opcode = Opcode::plain(0x91).w();
pub(super) const AND: Opcode = Opcode::plain(0x41).w();
/// `!a & b`.
pub(super) const AND_NOT: Opcode = Opcode::plain(0x42).w();
const NOT: Opcode = Opcode::plain(0x44).w();
pub(super) const OR: Opcode = Opcode::plain(0x45).w();
const SAME: Opcode = Opcode::plain(0x46).w();
pub(super) const XOR: Opcode = Opcode::plain(0x47).w();
/// From and to general registers: all bits, and the low 32.
pub(super) const OF_GENERAL: Opcode = Opcode::pf2(0x92).w();
const TO_GENERAL: Opcode = Opcode::pf2(0x93);
/// Shifts of the low eight bits.
const SHIFT_LEFT8: Opcode = Opcode::p3a(0x32);
const SHIFT_RIGHT8: Opcode = Opcode::p3a(0x30);
/// Clears the bits of a general register from a position on.
const LOW_BITS: Opcode = Opcode::new(0, 2, 0xf5).w();

/// An op on two masks.
fn two(asm: &mut Assembler, op: Opcode, to: u8, a: u8, b: u8) {
    asm.vex(op, 32, to, a, Rm::Reg(b), None);
}

/// Sets the flags to equal if none of the lanes is set.
pub(super) fn test(asm: &mut Assembler, mask: u8, lanes: u8) {
    let op = match lanes {
        64 => Opcode::plain(0x98).w(),
        32 => Opcode::p66(0x98).w(),
        16 => Opcode::plain(0x98),
        8 => Opcode::p66(0x98),
        _ => {
            asm.vex(TO_GENERAL, 16, SCRATCH, 0, Rm::Reg(mask), None);
            let lanes = Immediate::Byte((1 << lanes) - 1);
            return asm.legacy(false, 0xf6, 0, Rm::Reg(SCRATCH), lanes);
        }
    };
    asm.vex(op, 16, mask, 0, Rm::Reg(mask), None);
}

/// Sets all bits.
pub(super) fn all(asm: &mut Assembler, to: u8) {
    two(asm, SAME, to, to, to);
}

/// Copies the lanes of a mask, of which there are no more than eight, and clears the rest.
pub(super) fn only(asm: &mut Assembler, to: u8, from: u8, lanes: u8) {
    if lanes == 8 {
        // This copies eight bits.
        return asm.vex(Opcode::p66(0x90), 16, to, 0, Rm::Reg(from), None);
    }
    asm.vex(SHIFT_LEFT8, 16, to, 0, Rm::Reg(from), Some(8 - lanes));
    asm.vex(SHIFT_RIGHT8, 16, to, 0, Rm::Reg(to), Some(8 - lanes));
}

impl Emit<'_> {
    /// An op on two masks.
    pub(super) fn masks(&mut self, op: Opcode, a: usize, b: usize) {
        let (a, b) = (self.source(a), self.source(b));
        two(self.asm, op, self.inst.dst, a, b);
    }

    pub(super) fn mask_not(&mut self) {
        let a = Rm::Reg(self.source(0));
        self.asm.vex(NOT, 16, self.inst.dst, 0, a, None);
    }

    /// As many ones as the count says, or all.
    pub(super) fn mask_first(&mut self) {
        self.asm.clamp(self.source(0), self.inst.lanes);
        let ones = Rm::Pool(self.asm.long(u64::MAX));
        self.asm.vex(LOW_BITS, 16, SCRATCH, SCRATCH, ones, None);
        self.asm.vex(OF_GENERAL, 16, self.inst.dst, 0, Rm::Reg(SCRATCH), None);
    }

    /// 0 minus the lowest bit.
    pub(super) fn mask_splat(&mut self) {
        self.asm.vex(TO_GENERAL, 16, SCRATCH, 0, Rm::Reg(self.source(0)), None);
        self.asm.legacy(false, 0x83, 4, Rm::Reg(SCRATCH), Immediate::Byte(1));
        self.asm.legacy(true, 0xf7, 3, Rm::Reg(SCRATCH), Immediate::None);
        self.asm.vex(OF_GENERAL, 16, self.inst.dst, 0, Rm::Reg(SCRATCH), None);
    }

    /// A mask with no more lanes than there are, where an instruction on 16 bytes would have more.
    pub(super) fn limited(&mut self, mask: u8, is_short: bool) -> u8 {
        if !is_short {
            return mask;
        }
        let to = self.inst.mask_temp;
        only(self.asm, to, mask, self.inst.lanes);
        to
    }
}
