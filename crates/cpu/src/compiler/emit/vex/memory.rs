//! Loads and stores, and values of general registers.

use super::super::mir::Elem;
use super::super::x86::opcode::{self, Opcode, by_width, wide};
use super::super::x86::{Condition, Rm, SCRATCH, Vectors, general, general_operand, line, slot};
use super::super::{Address, AllocatedPart, OperandLocation};
use super::{Emit, SPARE, Vex, length};

/// Loads and stores of the elements that a mask says, of four bytes, or eight with W.
const LOAD_MASKED: Opcode = Opcode::p38(0x8c);
const STORE_MASKED: Opcode = Opcode::p38(0x8e);

impl Emit<'_> {
    /// The bytes of all lanes, which may be less than an instruction's.
    fn total(&self) -> usize {
        usize::from(self.inst.lanes) * self.inst.elem.bytes()
    }

    pub(super) fn load_splat(&mut self) {
        if self.inst.lanes == 1 {
            return self.load();
        }
        let from = Rm::At(self.inst.mem, 1);
        self.op(by_width(self.inst.elem, opcode::BROADCAST), self.inst.dst, 0, from);
    }

    pub(super) fn store_streaming(&mut self) {
        if self.total() < 16 {
            return self.store();
        }
        self.asm.is_streaming = true;
        let to = Rm::At(self.inst.mem, 1);
        self.op(opcode::STORE_STREAMING, self.source(0), 0, to);
    }

    pub(super) fn load(&mut self) {
        let total = self.total();
        let Self { asm, inst, .. } = self;
        let from = Rm::At(inst.mem, 1);
        match total {
            1 | 2 => {
                asm.general(if total == 1 { general::LOAD1 } else { general::LOAD2 }, SCRATCH, from);
                asm.vex(opcode::OF_GENERAL, 16, inst.dst, 0, Rm::Reg(SCRATCH), None);
            }
            4 => asm.vex(opcode::LOAD4, 16, inst.dst, 0, from, None),
            8 => asm.vex(opcode::LOAD8, 16, inst.dst, 0, from, None),
            _ => Vex.load(asm, total, inst.dst, inst.mem),
        }
    }

    pub(super) fn store(&mut self) {
        let total = self.total();
        let from = self.source(0);
        let Self { asm, inst, .. } = self;
        let to = Rm::At(inst.mem, 1);
        match total {
            1 => asm.vex(opcode::EXTRACT1, 16, from, 0, to, Some(0)),
            2 => asm.vex(opcode::EXTRACT2, 16, from, 0, to, Some(0)),
            4 => asm.vex(opcode::STORE4, 16, from, 0, to, None),
            8 => asm.vex(opcode::STORE8, 16, from, 0, to, None),
            _ => Vex.store(asm, total, inst.mem, from),
        }
    }

    pub(super) fn load_part(&mut self) {
        let total = self.total();
        let inst = self.inst;
        match inst.part {
            AllocatedPart::All => self.load(),
            AllocatedPart::Mask(mask) => {
                let mask = self.limited(mask, total);
                self.op(wide(LOAD_MASKED, inst.elem), inst.dst, mask, Rm::At(inst.mem, 1));
            }
            AllocatedPart::Count(count) => {
                self.zero(SPARE);
                Vex.store(self.asm, 32, line(), SPARE);
                self.copy_elements(count, true);
                Vex.load(self.asm, self.bytes, inst.dst, line());
            }
        }
    }

    pub(super) fn store_part(&mut self) {
        let total = self.total();
        let inst = self.inst;
        match inst.part {
            AllocatedPart::All => self.store(),
            AllocatedPart::Mask(mask) => {
                let mask = self.limited(mask, total);
                self.op(wide(STORE_MASKED, inst.elem), self.source(0), mask, Rm::At(inst.mem, 1));
            }
            AllocatedPart::Count(count) => {
                Vex.store(self.asm, self.bytes, line(), self.source(0));
                self.copy_elements(count, false);
            }
        }
    }

    /// Copies so many elements of one or two bytes between the frame's line and the address, the last first.
    fn copy_elements(&mut self, count: u8, is_load: bool) {
        let inst = self.inst;
        let [base, data] = inst.general_temps;
        let size = inst.elem.bytes() as u8;
        let before = |address: Address| {
            let offset = address.offset - i32::from(size);
            Rm::At(Address { index: Some(SCRATCH), scale: size, offset, ..address }, size)
        };
        let memory = before(Address { base, index: None, scale: 1, offset: 0 });
        let (from, to) = if is_load { (memory, before(line())) } else { (before(line()), memory) };
        let asm = &mut *self.asm;
        asm.address(base, inst.mem);
        asm.general_copy(SCRATCH, Rm::Reg(count));
        asm.test(SCRATCH);
        let is_empty = asm.skip(Condition::Equal);
        let next = asm.here();
        asm.general(if size == 1 { general::LOAD1 } else { general::LOAD2 }, data, from);
        asm.store_low(size, to, data);
        asm.add_number(SCRATCH, -1);
        asm.back(Condition::NotEqual, next);
        asm.bind_skip(is_empty);
    }

    pub(super) fn gather(&mut self, from: Elem) {
        let inst = self.inst;
        let size = inst.elem.bytes() as u8;
        let position = self.source(0);
        let mut address = inst.mem;
        if inst.lanes == 1 && inst.part == AllocatedPart::All {
            self.general_of(from, SCRATCH, Rm::Reg(position));
            if inst.mem.index.is_some() {
                let base = inst.general_temps[0];
                self.asm.address(base, inst.mem);
                address = Address { base, index: None, scale: 1, offset: 0 };
            }
            let at = Rm::At(Address { index: Some(SCRATCH), scale: size, ..address }, size);
            let op = if size == 4 { opcode::LOAD4 } else { opcode::LOAD8 };
            return self.asm.vex(op, 16, inst.dst, 0, at, None);
        }
        let mask = inst.vector_temps[0];
        let total = usize::from(inst.lanes) * usize::from(size);
        match inst.part {
            AllocatedPart::Mask(given) => {
                let given = self.limited(given, total);
                self.copy(mask, given);
            }
            AllocatedPart::All | AllocatedPart::Count(_) => {
                self.op(opcode::EQUAL[2], mask, mask, Rm::Reg(mask));
                // An instruction on 16 bytes may have more lanes than there are: those must not be read.
                let given = self.limited(mask, total);
                self.copy(mask, given);
            }
        }
        if inst.mem.index.is_some() {
            self.asm.address(SCRATCH, inst.mem);
            address = Address { base: SCRATCH, index: None, scale: 1, offset: 0 };
        }
        // Other lanes keep what the register has: this also ends the wait for that.
        self.zero(inst.dst);
        let op = wide(Opcode::p38(if from == Elem::I32 { 0x90 } else { 0x91 }), inst.elem);
        let at = Rm::At(Address { index: Some(position), scale: size, ..address }, size);
        let bytes = length(inst.lanes, inst.elem).max(length(inst.lanes, from));
        self.asm.vex(op, bytes, inst.dst, mask, at, None);
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
        self.asm.vex(wide(opcode::TO_GENERAL, elem), 16, from, 0, Rm::Reg(to), None);
        if elem.bytes() < 8 {
            self.asm.general(extend, to, Rm::Reg(to));
        }
    }

    pub(super) fn general_of_lane(&mut self) {
        let from = match self.inst.src[0] {
            OperandLocation::Slot(offset) => Rm::At(slot(offset), 1),
            OperandLocation::Reg(reg) => Rm::Reg(reg),
            OperandLocation::None | OperandLocation::Pool(_) => unreachable!("{:?}", self.inst),
        };
        self.general_of(self.inst.elem, self.inst.dst, from);
    }

    pub(super) fn lane_of_general(&mut self) {
        let from = general_operand(self.inst.src[0]);
        self.asm.vex(opcode::OF_GENERAL.w(), 16, self.inst.dst, 0, from, None);
    }
}
