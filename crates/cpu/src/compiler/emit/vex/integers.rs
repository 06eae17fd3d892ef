//! Ops of integers that take several instructions.

use super::super::OperandLocation;
use super::super::mir::{Cmp, Elem, Op};
use super::super::x86::Rm;
use super::super::x86::opcode::{self, Opcode, by_width, wide};
use super::{Emit, SPARE};

/// Digits of shifts by an immediate.
const SHL: u8 = 6;
const SHR: u8 = 2;
const SAR: u8 = 4;

/// The products of the unsigned lower halves of long integers.
const MULTIPLY_LOW: Opcode = Opcode::p66(0xf4);

/// The sign of a long integer.
const SIGN: u64 = 1 << 63;

impl Emit<'_> {
    fn greater(&mut self, elem: Elem, to: u8, a: u8, b: Rm) {
        self.op(by_width(elem, opcode::GREATER), to, a, b);
    }

    /// Long integers with their sign flipped, which are in the order of unsigned ones.
    fn flip_sign(&mut self, to: u8, from: u8) {
        self.op_const(opcode::XOR, to, from, 8, SIGN);
    }

    /// Ops of long integers.
    pub(super) fn composed(&mut self) {
        let inst = self.inst;
        let (elem, dst, temp) = (inst.elem, inst.dst, inst.vector_temps[0]);
        let a = self.source(0);
        if inst.op == Op::Sar {
            // Flipped by their sign, numbers are shifted without it.
            self.zero(SPARE);
            self.greater(elem, SPARE, SPARE, Rm::Reg(a));
            self.op(opcode::XOR, temp, a, Rm::Reg(SPARE));
            let by = self.operand(inst.src[1], elem);
            self.op(wide(opcode::SHR, elem), temp, temp, by);
            return self.op(opcode::XOR, dst, temp, Rm::Reg(SPARE));
        }
        let b = self.source(1);
        if inst.op == Op::Mul {
            // The halves' products that reach the upper half, and the product of the lower ones.
            self.shift_by(elem, SHR, SPARE, a, 32);
            self.op(MULTIPLY_LOW, SPARE, SPARE, Rm::Reg(b));
            self.shift_by(elem, SHR, temp, b, 32);
            self.op(MULTIPLY_LOW, temp, temp, Rm::Reg(a));
            self.op(opcode::ADD[3], SPARE, SPARE, Rm::Reg(temp));
            self.shift_by(elem, SHL, SPARE, SPARE, 32);
            self.op(MULTIPLY_LOW, temp, a, Rm::Reg(b));
            return self.op(opcode::ADD[3], dst, SPARE, Rm::Reg(temp));
        }
        if let Op::MinU | Op::MaxU = inst.op {
            self.flip_sign(temp, a);
            self.flip_sign(SPARE, b);
            self.greater(elem, SPARE, temp, Rm::Reg(SPARE));
        } else {
            self.greater(elem, SPARE, a, Rm::Reg(b));
        }
        let is_min = inst.op == Op::Min || inst.op == Op::MinU;
        let (otherwise, greater) = if is_min { (a, b) } else { (b, a) };
        self.blend(elem, dst, otherwise, Rm::Reg(greater), SPARE);
    }

    /// A shift by an immediate of elements of two bytes or more.
    fn shift_by(&mut self, elem: Elem, digit: u8, to: u8, from: u8, by: u8) {
        let op = match elem.bytes() {
            1 | 2 => opcode::SHIFT16,
            4 => opcode::SHIFT32,
            _ => opcode::SHIFT64,
        };
        self.op_by(op, digit, to, Rm::Reg(from), by);
    }

    pub(super) fn shift_left(&mut self, by: u8) {
        let (elem, dst, a) = (self.inst.elem, self.inst.dst, self.source(0));
        self.shift_by(elem, SHL, dst, a, by);
        if elem == Elem::I8 {
            // Pairs of bytes are shifted together.
            self.op_const(opcode::AND, dst, dst, 1, (0xff << by) & 0xff);
        }
    }

    pub(super) fn shift_right(&mut self, by: u8) {
        let (elem, dst, a) = (self.inst.elem, self.inst.dst, self.source(0));
        self.shift_by(elem, SHR, dst, a, by);
        if elem == Elem::I8 {
            self.op_const(opcode::AND, dst, dst, 1, 0xff >> by);
        }
    }

    pub(super) fn shift_signed(&mut self, by: u8) {
        let (elem, dst, a) = (self.inst.elem, self.inst.dst, self.source(0));
        match elem.bytes() {
            1 => {
                // The sign is in a lower bit then: flip it and subtract it.
                self.shift_right(by);
                self.op_const(opcode::XOR, dst, dst, 1, 0x80 >> by);
                self.op_const(opcode::SUB[0], dst, dst, 1, 0x80 >> by);
            }
            8 => {
                self.zero(SPARE);
                self.greater(elem, SPARE, SPARE, Rm::Reg(a));
                self.shift_by(elem, SHL, SPARE, SPARE, 64 - by);
                self.shift_by(elem, SHR, dst, a, by);
                self.op(opcode::OR, dst, dst, Rm::Reg(SPARE));
            }
            _ => self.shift_by(elem, SAR, dst, a, by),
        }
    }

    pub(super) fn rotate(&mut self, by: u8) {
        let (elem, dst, a) = (self.inst.elem, self.inst.dst, self.source(0));
        let rest = 8 * elem.bytes() as u8 - by;
        self.shift_by(elem, SHL, SPARE, a, by);
        self.shift_by(elem, SHR, dst, a, rest);
        if elem == Elem::I8 {
            self.op_const(opcode::AND, SPARE, SPARE, 1, (0xff << by) & 0xff);
            self.op_const(opcode::AND, dst, dst, 1, 0xff >> rest.min(8));
        }
        self.op(opcode::OR, dst, dst, Rm::Reg(SPARE));
    }

    pub(super) fn compare(&mut self, cmp: Cmp) {
        let (elem, dst) = (self.inst.elem, self.inst.dst);
        let [a, b, _] = self.inst.src;
        match cmp {
            Cmp::Eq | Cmp::Ne => {
                let (a, b) = if matches!(a, OperandLocation::Reg(_)) { (a, b) } else { (b, a) };
                let rm = self.operand(b, elem);
                self.op(by_width(elem, opcode::EQUAL), dst, a.reg(), rm);
            }
            Cmp::Lt => {
                let rm = self.operand(a, elem);
                self.greater(elem, dst, b.reg(), rm);
            }
            Cmp::Le => {
                let rm = self.operand(b, elem);
                self.greater(elem, dst, a.reg(), rm);
            }
            Cmp::LtU | Cmp::LeU if elem == Elem::I64 => {
                // The operands are read before the result is written.
                self.flip_sign(SPARE, a.reg());
                self.flip_sign(dst, b.reg());
                let (greater, less) = if cmp == Cmp::LtU { (dst, SPARE) } else { (SPARE, dst) };
                self.greater(elem, dst, greater, Rm::Reg(less));
            }
            Cmp::LtU | Cmp::LeU => {
                // The first is the lesser one, or it is not the greater one.
                let least = if cmp == Cmp::LeU { opcode::MIN_U } else { opcode::MAX_U };
                let rm = self.operand(b, elem);
                self.op(by_width(elem, least), SPARE, a.reg(), rm);
                self.op(by_width(elem, opcode::EQUAL), dst, SPARE, Rm::Reg(a.reg()));
            }
        }
        let is_inverse = match cmp {
            Cmp::Ne | Cmp::Le => true,
            Cmp::LtU => elem != Elem::I64,
            Cmp::LeU => elem == Elem::I64,
            Cmp::Eq | Cmp::Lt => false,
        };
        if is_inverse {
            self.invert(dst, Rm::Reg(dst));
        }
    }

    /// Whether operands have a bit in common.
    pub(super) fn test(&mut self) {
        let (elem, dst) = (self.inst.elem, self.inst.dst);
        let [a, b, _] = self.inst.src;
        let (a, b) = if matches!(a, OperandLocation::Reg(_)) { (a, b) } else { (b, a) };
        let rm = self.operand(b, elem);
        self.op(opcode::AND, SPARE, a.reg(), rm);
        self.zero(dst);
        self.op(by_width(elem, opcode::EQUAL), dst, dst, Rm::Reg(SPARE));
        self.invert(dst, Rm::Reg(dst));
    }
}
