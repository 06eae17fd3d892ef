//! Loads and stores, and values of general registers.

use super::super::mir::Elem;
use super::super::x86::opcode::{self, Opcode, by_width};
use super::super::x86::{Rm, SCRATCH, Vectors, general, general_operand, slot};
use super::super::{Address, AllocatedPart, OperandLocation};
use super::{ALL, Emit, Evex, Masking, length, masks};

/// Loads of a vector by elements; the stores have the opcode 7F.
const LOAD: [Opcode; 4] =
    [Opcode::pf2(0x6f), Opcode::pf2(0x6f).w(), Opcode::pf3(0x6f), Opcode::pf3(0x6f).w()];
const STORE: [Opcode; 4] =
    [Opcode::pf2(0x7f), Opcode::pf2(0x7f).w(), Opcode::pf3(0x7f), Opcode::pf3(0x7f).w()];

impl Emit<'_> {
    /// The bytes of all lanes, which may be less than an instruction's.
    fn total(&self) -> usize {
        usize::from(self.inst.lanes) * self.inst.elem.bytes()
    }

    pub(super) fn load_splat(&mut self) {
        if self.inst.lanes == 1 {
            return self.load();
        }
        let from = Rm::At(self.inst.mem, self.inst.elem.bytes() as u8);
        self.op(by_width(self.inst.elem, opcode::BROADCAST), self.inst.dst, 0, from);
    }

    pub(super) fn store_streaming(&mut self) {
        if self.total() < 16 {
            return self.store();
        }
        self.asm.is_streaming = true;
        let to = Rm::At(self.inst.mem, self.bytes as u8);
        self.op(opcode::STORE_STREAMING, self.source(0), 0, to);
    }

    pub(super) fn load(&mut self) {
        let total = self.total();
        let Self { asm, inst, .. } = self;
        let from = Rm::At(inst.mem, total as u8);
        match total {
            1 | 2 => {
                let code = if total == 1 { general::LOAD1 } else { general::LOAD2 };
                asm.general(code, SCRATCH, from);
                asm.evex(opcode::OF_GENERAL, 16, inst.dst, 0, Rm::Reg(SCRATCH), ALL, None);
            }
            4 => asm.evex(opcode::LOAD4, 16, inst.dst, 0, from, ALL, None),
            8 => asm.evex(opcode::LOAD8, 16, inst.dst, 0, from, ALL, None),
            _ => Evex.load(asm, total, inst.dst, inst.mem),
        }
    }

    pub(super) fn store(&mut self) {
        let total = self.total();
        let from = self.source(0);
        let Self { asm, inst, .. } = self;
        let to = Rm::At(inst.mem, total as u8);
        match total {
            1 => asm.evex(opcode::EXTRACT1, 16, from, 0, to, ALL, Some(0)),
            2 => asm.evex(opcode::EXTRACT2, 16, from, 0, to, ALL, Some(0)),
            4 => asm.evex(opcode::STORE4, 16, from, 0, to, ALL, None),
            8 => asm.evex(opcode::STORE8, 16, from, 0, to, ALL, None),
            _ => Evex.store(asm, total, inst.mem, from),
        }
    }

    pub(super) fn load_part(&mut self) {
        let total = self.total();
        let AllocatedPart::Mask(mask) = self.inst.part else { return self.load() };
        let mask = self.limited(mask, total < 16);
        let from = Rm::At(self.inst.mem, self.bytes as u8);
        self.op_masked(by_width(self.inst.elem, LOAD), self.inst.dst, 0, from, mask, true);
    }

    pub(super) fn store_part(&mut self) {
        let total = self.total();
        let AllocatedPart::Mask(mask) = self.inst.part else { return self.store() };
        let mask = self.limited(mask, total < 16);
        let to = Rm::At(self.inst.mem, self.bytes as u8);
        self.op_masked(by_width(self.inst.elem, STORE), self.source(0), 0, to, mask, false);
    }

    pub(super) fn gather(&mut self, from: Elem) {
        let inst = self.inst;
        let size = inst.elem.bytes() as u8;
        let position = self.source(0);
        if inst.lanes == 1 && inst.part == AllocatedPart::All {
            self.general_of(from, SCRATCH, Rm::Reg(position));
            let mut address = inst.mem;
            if inst.mem.index.is_some() {
                let base = inst.general_temps[0];
                self.asm.address(base, inst.mem);
                address = Address { base, index: None, scale: 1, offset: 0 };
            }
            let at = Rm::At(Address { index: Some(SCRATCH), scale: size, ..address }, size);
            let op = if size == 4 { opcode::LOAD4 } else { opcode::LOAD8 };
            return self.asm.evex(op, 16, inst.dst, 0, at, ALL, None);
        }
        // An instruction on 16 bytes may have more lanes than there are: those must not be read.
        let width = inst.elem.bytes().max(from.bytes());
        let total = usize::from(inst.lanes) * width;
        let mask = inst.mask_temp;
        match inst.part {
            AllocatedPart::Mask(given) if total < 16 => masks::only(self.asm, mask, given, inst.lanes),
            AllocatedPart::Mask(given) => Evex.copy_mask(self.asm, mask, given),
            AllocatedPart::All | AllocatedPart::Count(_) => {
                masks::all(self.asm, mask);
                if total < 16 {
                    masks::only(self.asm, mask, mask, inst.lanes);
                }
            }
        }
        let mut address = inst.mem;
        if inst.mem.index.is_some() {
            self.asm.address(SCRATCH, inst.mem);
            address = Address { base: SCRATCH, index: None, scale: 1, offset: 0 };
        }
        // Other lanes keep what the register has: this also ends the wait for that.
        self.op(opcode::XOR, inst.dst, inst.dst, Rm::Reg(inst.dst));
        let code = if from == Elem::I32 { 0x90 } else { 0x91 };
        let op = opcode::wide(Opcode::p38(code), inst.elem);
        let at = Rm::At(Address { index: Some(position & 15), scale: size, ..address }, size);
        let masking = Masking { mask, is_zeroing: false };
        self.asm.evex(op, length(inst.lanes, elem_of(width)), inst.dst, position & 16, at, masking, None);
    }

    /// Lane 0 of an integer, sign-extended, in a general register.
    fn general_of(&mut self, elem: Elem, to: u8, from: Rm) {
        let extend = match elem.bytes() {
            1 => general::SIGN1,
            2 => general::SIGN2,
            4 => general::SIGN4,
            _ => general::MOV,
        };
        let Rm::Reg(from) = from else { return self.asm.general(extend, to, from) };
        self.asm.names_general(to);
        if elem.bytes() == 8 {
            return self.asm.evex(opcode::TO_GENERAL.w(), 16, from, 0, Rm::Reg(to), ALL, None);
        }
        self.asm.evex(opcode::TO_GENERAL, 16, from, 0, Rm::Reg(to), ALL, None);
        self.asm.general(extend, to, Rm::Reg(to));
    }

    pub(super) fn general_of_lane(&mut self) {
        let from = match self.inst.src[0] {
            OperandLocation::Slot(offset) => Rm::At(slot(offset), self.inst.elem.bytes() as u8),
            OperandLocation::Reg(reg) => Rm::Reg(reg),
            OperandLocation::None | OperandLocation::Pool(_) => unreachable!("{:?}", self.inst),
        };
        self.general_of(self.inst.elem, self.inst.dst, from);
    }

    pub(super) fn lane_of_general(&mut self) {
        let from = general_operand(self.inst.src[0]);
        self.asm.evex(opcode::OF_GENERAL.w(), 16, self.inst.dst, 0, from, ALL, None);
    }
}

/// The integer of four or eight bytes.
fn elem_of(bytes: usize) -> Elem {
    if bytes == 4 { Elem::I32 } else { Elem::I64 }
}
