//! Conversions of elements.

use super::super::mir::{Conv, Elem};
use super::super::x86::opcode::{self, Opcode, by_width, float, widen};
use super::super::x86::{Rm, Vectors, slot};
use super::super::{Constraint, OperandLocation};
use super::{Emit, Evex, SPARE, length};

/// What a conversion asks of its operands.
pub(super) fn constraint(conv: Conv, from: Elem, to: Elem) -> Constraint {
    let none = Constraint::default();
    match conv {
        Conv::ZeroExtend | Conv::SignExtend | Conv::OfHalf => Constraint { slot: 0b1, ..none },
        Conv::FloatOfS | Conv::FloatOfU => Constraint { slot: 0b1, ..none },
        Conv::ToS => Constraint { mask_temps: 1, ..none },
        Conv::Bitcast if from == to => none,
        Conv::Bitcast => Constraint { tied: 0b1, ..none },
        Conv::Truncate
        | Conv::ToU
        | Conv::Float
        | Conv::ToHalf
        | Conv::OfBit
        | Conv::ToIndex
        | Conv::OfIndex => none,
    }
}

/// Converts integers of four or eight bytes to floats.
fn float_of(is_signed: bool, from: Elem, to: Elem) -> Opcode {
    match (is_signed, from == Elem::I64, to == Elem::F64) {
        (true, false, false) => opcode::I32_TO_SINGLE,
        (true, false, true) => opcode::I32_TO_DOUBLE,
        (true, true, false) => opcode::I32_TO_SINGLE.w(),
        (true, true, true) => opcode::I32_TO_DOUBLE.w(),
        (false, false, false) => Opcode::pf2(0x7a),
        (false, false, true) => Opcode::pf3(0x7a),
        (false, true, false) => Opcode::pf2(0x7a).w(),
        (false, true, true) => Opcode::pf3(0x7a).w(),
    }
}

/// Converts floats to integers of four or eight bytes. What does not fit has all bits set, or only the
/// highest where the integer is signed.
fn to_integer(is_signed: bool, from: Elem, to: Elem) -> Opcode {
    let op = match (is_signed, from == Elem::F64, to == Elem::I64) {
        (true, false, false) => opcode::SINGLE_TO_I32,
        (true, true, false) => opcode::DOUBLE_TO_I32,
        (true, _, true) => Opcode::p66(0x7a),
        (false, _, false) => Opcode::plain(0x78),
        (false, _, true) => Opcode::p66(0x78),
    };
    if from == Elem::F64 { op.w() } else { op }
}

impl Emit<'_> {
    pub(super) fn convert(&mut self, conv: Conv, from: Elem) {
        let inst = self.inst;
        let (to, dst) = (inst.elem, inst.dst);
        // Conversions have the length of the wider side.
        let bytes = length(inst.lanes, if from.bytes() > to.bytes() { from } else { to });
        self.bytes = bytes;
        match conv {
            Conv::ZeroExtend => self.convert_by(Opcode::p38(widen(from, to)), from),
            Conv::SignExtend => self.convert_by(Opcode::p38(widen(from, to) - 0x10), from),
            Conv::Truncate => {
                // The result is the r/m operand.
                self.op(Opcode::pf3_38(widen(to, from)), self.source(0), 0, Rm::Reg(dst));
            }
            Conv::FloatOfS => self.convert_by(float_of(true, from, to), from),
            Conv::FloatOfU => self.convert_by(float_of(false, from, to), from),
            Conv::ToS => self.signed_of(from),
            Conv::ToU => {
                // NaN and what is negative become 0; what is too large has all bits set already.
                let zero = if from == Elem::F64 { opcode::XOR.w() } else { opcode::XOR };
                self.asm.evex(zero, 16, SPARE, SPARE, Rm::Reg(SPARE), super::ALL, None);
                let is_scalar = inst.lanes == 1;
                let source = length(inst.lanes, from);
                let max = float(0x5f, from, is_scalar);
                self.asm.evex(max, source, SPARE, self.source(0), Rm::Reg(SPARE), super::ALL, None);
                self.op(to_integer(false, from, to), dst, 0, Rm::Reg(SPARE));
            }
            Conv::Float => {
                let is_scalar = inst.lanes == 1;
                let a = self.source(0);
                // The rest of a scalar is that of the operand.
                self.op(float(0x5a, from, is_scalar), dst, if is_scalar { a } else { 0 }, Rm::Reg(a));
            }
            Conv::OfHalf => self.convert_by(opcode::HALF_TO_SINGLE, from),
            Conv::ToHalf => self.op_by(opcode::SINGLE_TO_HALF, self.source(0), 0, Rm::Reg(dst), 0),
            Conv::Bitcast => self.copy(dst, self.source(0)),
            Conv::OfBit => {
                let one = match to {
                    Elem::F32 => u64::from(1f32.to_bits()),
                    Elem::F64 => 1f64.to_bits(),
                    Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => 1,
                };
                let (_, pooled) = self.asm.element(to, one);
                let op = by_width(to, opcode::BROADCAST);
                self.op_masked(op, dst, 0, Rm::Pool(pooled), self.source(0), true);
            }
            Conv::ToIndex | Conv::OfIndex => unreachable!("{inst:?} is on general registers"),
        }
    }

    /// A conversion of one instruction, from a register or a slot.
    fn convert_by(&mut self, op: Opcode, from: Elem) {
        let source = match self.inst.src[0] {
            OperandLocation::Slot(offset) => {
                let bytes = self.bytes * from.bytes() / from.bytes().max(self.inst.elem.bytes());
                Rm::At(slot(offset), bytes as u8)
            }
            OperandLocation::Reg(reg) => Rm::Reg(reg),
            OperandLocation::None | OperandLocation::Pool(_) => unreachable!("{:?}", self.inst),
        };
        self.op(op, self.inst.dst, 0, source);
    }

    /// NaN becomes 0, and what is too large the greatest integer. What is too small becomes the least by
    /// itself.
    fn signed_of(&mut self, from: Elem) {
        let (a, dst, to) = (self.source(0), self.inst.dst, self.inst.elem);
        let mask = self.inst.mask_temp;
        let bytes = length(self.inst.lanes, from);
        let is_scalar = self.inst.lanes == 1;
        let compare = float(0xc2, from, is_scalar);
        let limit = (1u64 << (8 * to.bytes() - 1)) as f64;
        let bits = if from == Elem::F64 { limit.to_bits() } else { (limit as f32).to_bits().into() };
        let (_, limit) = self.asm.element(from, bits);
        let limit = if is_scalar { Rm::Pool(limit) } else { Rm::Broadcast(limit) };
        // Not less; ordered and quiet.
        self.asm.evex(compare, bytes, super::SPARE_MASK, a, limit, super::ALL, Some(0x1d));
        self.asm.evex(compare, bytes, mask, a, Rm::Reg(a), super::ALL, Some(0x07));
        self.op_masked(to_integer(true, from, to), dst, 0, Rm::Reg(a), mask, true);
        Evex.copy_mask(self.asm, mask, super::SPARE_MASK);
        let (_, greatest) = self.asm.element(to, u64::MAX >> 1 >> (64 - 8 * to.bytes()));
        self.op_masked(by_width(to, opcode::BROADCAST), dst, 0, Rm::Pool(greatest), mask, false);
    }
}
