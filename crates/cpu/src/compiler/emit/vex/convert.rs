//! Conversions of elements. Those that AVX2 lacks are made of integer and float instructions.

use super::super::mir::{Conv, Elem};
use super::super::x86::opcode::{self, Opcode, float, fused, wide, widen};
use super::super::x86::{Rm, slot};
use super::super::{Constraint, OperandLocation};
use super::{Emit, SPARE, length};

/// Chooses bytes within each 16.
const SHUFFLE_BYTES: Opcode = Opcode::p38(0x00);
/// Chooses doublewords within each 16 bytes.
const SHUFFLE4: Opcode = Opcode::p66(0x70);
/// Chooses quadwords.
const PERMUTE8: Opcode = Opcode::p3a(0x00).w();
/// Doublewords of two vectors in turn, and words.
const INTERLEAVE4: Opcode = Opcode::p66(0x62);
const INTERLEAVE2: Opcode = Opcode::p66(0x61);
/// Doublewords of two vectors by a constant.
const BLEND4: Opcode = Opcode::p3a(0x02);

/// Predicates of comparisons: not less, and neither is NaN.
const NOT_LESS: u8 = 0x1d;
const ORDERED: u8 = 0x07;

/// Digits of shifts by an immediate.
const SHL: u8 = 6;
const SHR: u8 = 2;

/// 2^52 as a double: integers below are the low bits of the sum.
const ULP1: u64 = 0x4330_0000_0000_0000;
/// 2^84, whose last bit counts 2^32.
const ULP32: u64 = 0x4530_0000_0000_0000;
/// 2^31 and 2^63, as singles and doubles.
const SINGLE_31: u64 = 0x4f00_0000;
const DOUBLE_63: u64 = 0x43e0_0000_0000_0000;

/// What a conversion asks of its operands.
pub(super) fn constraint(conv: Conv, from: Elem, to: Elem) -> Constraint {
    let none = Constraint::default();
    let slot = Constraint { slot: 0b1, ..none };
    let temps = |vector_temps| Constraint { vector_temps, ..none };
    let is_long = from == Elem::I64 || to == Elem::I64;
    match conv {
        Conv::ZeroExtend | Conv::SignExtend | Conv::OfHalf => slot,
        Conv::FloatOfS if !is_long => slot,
        Conv::FloatOfS | Conv::FloatOfU if is_long && to == Elem::F32 => temps(1),
        Conv::ToS | Conv::ToU if is_long => temps(2),
        Conv::ToS | Conv::ToU if from == Elem::F32 => temps(1),
        Conv::Bitcast if from == to => none,
        Conv::Bitcast => Constraint { tied: 0b1, ..none },
        Conv::FloatOfS
        | Conv::FloatOfU
        | Conv::ToS
        | Conv::ToU
        | Conv::Truncate
        | Conv::Float
        | Conv::ToHalf
        | Conv::OfBit
        | Conv::ToIndex
        | Conv::OfIndex => none,
    }
}

impl Emit<'_> {
    pub(super) fn convert(&mut self, conv: Conv, from: Elem) {
        let inst = self.inst;
        let (to, dst) = (inst.elem, inst.dst);
        // Conversions have the length of the wider side.
        self.bytes = length(inst.lanes, if from.bytes() > to.bytes() { from } else { to });
        match conv {
            Conv::ZeroExtend => self.convert_by(Opcode::p38(widen(from, to))),
            Conv::SignExtend => self.convert_by(Opcode::p38(widen(from, to) - 0x10)),
            Conv::Truncate => self.truncate(from, to, dst, self.source(0)),
            Conv::FloatOfS | Conv::FloatOfU if from == Elem::I64 => {
                self.float_of_long(conv == Conv::FloatOfS, to);
            }
            Conv::FloatOfS if to == Elem::F32 => self.convert_by(opcode::I32_TO_SINGLE),
            Conv::FloatOfS => self.convert_by(opcode::I32_TO_DOUBLE),
            Conv::FloatOfU if to == Elem::F32 => self.single_of_unsigned(),
            Conv::FloatOfU => {
                self.op(Opcode::p38(widen(from, to)), dst, 0, Rm::Reg(self.source(0)));
                self.op_const(opcode::OR, dst, dst, 8, ULP1);
                self.op_const(float(0x5c, to, false), dst, dst, 8, ULP1);
            }
            Conv::ToS | Conv::ToU if to == Elem::I64 => self.long_of(conv == Conv::ToS, from),
            Conv::ToS if from == Elem::F32 => self.signed_of_single(),
            Conv::ToS => self.signed_of_double(),
            Conv::ToU if from == Elem::F32 => self.unsigned_of_single(),
            Conv::ToU => self.unsigned_of_double(),
            Conv::Float => self.float_of_float(from, dst, self.source(0)),
            Conv::OfHalf => self.convert_by(opcode::HALF_TO_SINGLE),
            Conv::ToHalf => self.op_by(opcode::SINGLE_TO_HALF, self.source(0), 0, Rm::Reg(dst), 0),
            Conv::Bitcast => self.copy(dst, self.source(0)),
            Conv::OfBit => {
                let one = match to {
                    Elem::F32 => 1f32.to_bits().into(),
                    Elem::F64 => 1f64.to_bits(),
                    Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => 1,
                };
                self.op_const(opcode::AND, dst, self.source(0), to.bytes(), one);
            }
            Conv::ToIndex | Conv::OfIndex => unreachable!("{inst:?} is on general registers"),
        }
    }

    /// A conversion of one instruction, from a register or a slot.
    fn convert_by(&mut self, op: Opcode) {
        let source = match self.inst.src[0] {
            OperandLocation::Slot(offset) => Rm::At(slot(offset), 1),
            OperandLocation::Reg(reg) => Rm::Reg(reg),
            OperandLocation::None | OperandLocation::Pool(_) => unreachable!("{:?}", self.inst),
        };
        self.op(op, self.inst.dst, 0, source);
    }

    /// Between singles and doubles.
    fn float_of_float(&mut self, from: Elem, to: u8, a: u8) {
        let is_scalar = self.inst.lanes == 1;
        // The rest of a scalar is that of the operand.
        self.op(float(0x5a, from, is_scalar), to, if is_scalar { a } else { 0 }, Rm::Reg(a));
    }

    /// The low parts of elements, which fill half of a vector or less.
    fn truncate(&mut self, from: Elem, to: Elem, dst: u8, a: u8) {
        let (width, bytes) = (from.bytes(), to.bytes());
        let is_long = self.bytes == 32;
        if width == 8 && bytes == 4 && !is_long {
            return self.op_by(SHUFFLE4, dst, 0, Rm::Reg(a), 0x08);
        }
        if width == 8 && bytes == 4 {
            self.asm.vex(opcode::EXTRACT16, 32, a, 0, Rm::Reg(SPARE), Some(1));
            return self.asm.vex(opcode::SHUFFLE_TWO, 16, dst, a, Rm::Reg(SPARE), Some(0x88));
        }
        // Within each 16 bytes first; a high bit gives 0.
        let chosen = |at: usize| {
            let at = at % 16;
            if at < 16 / width * bytes { (at / bytes * width + at % bytes) as u8 } else { 0x80 }
        };
        let chosen = Rm::Pool(self.asm.vector(std::array::from_fn(chosen)));
        if !is_long {
            return self.op(SHUFFLE_BYTES, dst, a, chosen);
        }
        self.op(SHUFFLE_BYTES, SPARE, a, chosen);
        if width == 2 * bytes {
            return self.op_by(PERMUTE8, dst, 0, Rm::Reg(SPARE), 0x08);
        }
        let interleave = if width == 4 * bytes { INTERLEAVE4 } else { INTERLEAVE2 };
        self.asm.vex(opcode::EXTRACT16, 32, SPARE, 0, Rm::Reg(dst), Some(1));
        self.asm.vex(interleave, 16, dst, SPARE, Rm::Reg(dst), None);
    }

    /// Halves of 16 bits are exact; a fused product joins them.
    fn single_of_unsigned(&mut self) {
        let (dst, a) = (self.inst.dst, self.source(0));
        self.op_by(opcode::SHIFT32, SHR, SPARE, Rm::Reg(a), 16);
        self.op_const(opcode::AND, dst, a, 4, 0xffff);
        self.op(opcode::I32_TO_SINGLE, SPARE, 0, Rm::Reg(SPARE));
        self.op(opcode::I32_TO_SINGLE, dst, 0, Rm::Reg(dst));
        let scale = 65536f32.to_bits();
        self.op_const(fused(0xb8, Elem::F32, false), dst, SPARE, 4, scale.into());
    }

    fn float_of_long(&mut self, is_signed: bool, to: Elem) {
        let (dst, a, temp) = (self.inst.dst, self.source(0), self.inst.vector_temps[0]);
        if to == Elem::F64 {
            return self.double_of_long(is_signed, dst, SPARE, a);
        }
        // Numbers that no double holds keep only the bits above 11, and whether there were others: a single
        // is the same for both.
        let add = opcode::ADD[3];
        self.op_const(opcode::AND, SPARE, a, 8, 0x7ff);
        self.op_const(add, SPARE, SPARE, 8, 0x7ff);
        self.op(opcode::OR, SPARE, SPARE, Rm::Reg(a));
        self.op_const(opcode::AND, SPARE, SPARE, 8, !0x7ff);
        let mut large = a;
        if is_signed {
            self.op_const(add, temp, a, 8, 1 << 52);
            large = temp;
        }
        self.op_by(opcode::SHIFT64, SHR, temp, Rm::Reg(large), 53);
        // The sign, which blends look at, of what is not 0.
        self.op_const(add, temp, temp, 8, u64::MAX >> 1);
        self.blend(Elem::I64, SPARE, a, Rm::Reg(SPARE), temp);
        self.double_of_long(is_signed, dst, temp, SPARE);
        self.float_of_float(Elem::F64, dst, dst);
    }

    /// Puts both halves into the mantissas of large doubles, whose sum is rounded once.
    fn double_of_long(&mut self, is_signed: bool, dst: u8, low: u8, a: u8) {
        let sign = if is_signed { 1 << 31 } else { 0 };
        let ulp1 = Rm::Pool(self.asm.splat(8, ULP1));
        self.op_by(BLEND4, low, a, ulp1, 0b1010_1010);
        self.op_by(opcode::SHIFT64, SHR, dst, Rm::Reg(a), 32);
        self.op_const(opcode::XOR, dst, dst, 8, ULP32 | sign);
        // With the sign flipped the upper half is too large by 2^63.
        self.op_const(float(0x5c, Elem::F64, false), dst, dst, 8, ULP32 | sign | 1 << 20);
        self.op(float(0x58, Elem::F64, false), dst, dst, Rm::Reg(low));
    }

    /// A comparison with a constant.
    fn compare_const(&mut self, elem: Elem, to: u8, a: u8, bits: u64, predicate: u8) {
        let constant = Rm::Pool(self.asm.splat(elem.bytes(), bits));
        self.op_by(float(0xc2, elem, false), to, a, constant, predicate);
    }

    /// All bits where an operand is no NaN.
    fn ordered(&mut self, elem: Elem, to: u8, a: u8) {
        self.op_by(float(0xc2, elem, false), to, a, Rm::Reg(a), ORDERED);
    }

    /// The greater of a float and 0, which is 0 for NaN.
    fn positive(&mut self, elem: Elem, to: u8, a: u8) {
        self.zero(SPARE);
        self.op(float(0x5f, elem, false), to, a, Rm::Reg(SPARE));
    }

    /// What does not fit is converted to the least integer: this is flipped where it should be the greatest,
    /// and cleared for NaN.
    fn signed_of_single(&mut self) {
        let (dst, a, temp) = (self.inst.dst, self.source(0), self.inst.vector_temps[0]);
        self.op(opcode::SINGLE_TO_I32, SPARE, 0, Rm::Reg(a));
        self.compare_const(Elem::F32, temp, a, SINGLE_31, NOT_LESS);
        self.op(opcode::XOR, SPARE, SPARE, Rm::Reg(temp));
        self.ordered(Elem::F32, dst, a);
        self.op(opcode::AND, dst, dst, Rm::Reg(SPARE));
    }

    /// The greatest integer is a double; NaN is cleared before.
    fn signed_of_double(&mut self) {
        let (dst, a) = (self.inst.dst, self.source(0));
        self.ordered(Elem::F64, SPARE, a);
        self.op(opcode::AND, SPARE, SPARE, Rm::Reg(a));
        let greatest = f64::from(i32::MAX).to_bits();
        self.op_const(float(0x5d, Elem::F64, false), SPARE, SPARE, 8, greatest);
        self.op(opcode::DOUBLE_TO_I32, dst, 0, Rm::Reg(SPARE));
    }

    /// From 2^31 on, that is subtracted, and its bit is set again; from 2^32 on all bits are.
    fn unsigned_of_single(&mut self) {
        let (dst, a, temp) = (self.inst.dst, self.source(0), self.inst.vector_temps[0]);
        self.positive(Elem::F32, SPARE, a);
        self.compare_const(Elem::F32, temp, SPARE, SINGLE_31, NOT_LESS);
        self.op_const(opcode::AND, dst, temp, 4, SINGLE_31);
        self.op(float(0x5c, Elem::F32, false), dst, SPARE, Rm::Reg(dst));
        self.op(opcode::SINGLE_TO_I32, dst, 0, Rm::Reg(dst));
        self.op_by(opcode::SHIFT32, SHL, temp, Rm::Reg(temp), 31);
        self.op(opcode::XOR, dst, dst, Rm::Reg(temp));
        self.compare_const(Elem::F32, SPARE, SPARE, 0x4f80_0000, NOT_LESS);
        self.op(opcode::OR, dst, dst, Rm::Reg(SPARE));
    }

    /// The integer is the low half of the sum with 2^52.
    fn unsigned_of_double(&mut self) {
        let (dst, a) = (self.inst.dst, self.source(0));
        self.positive(Elem::F64, SPARE, a);
        let greatest = f64::from(u32::MAX).to_bits();
        self.op_const(float(0x5d, Elem::F64, false), SPARE, SPARE, 8, greatest);
        // Toward zero.
        self.op_by(opcode::round(Elem::F64, false), SPARE, 0, Rm::Reg(SPARE), 11);
        self.op_const(float(0x58, Elem::F64, false), dst, SPARE, 8, ULP1);
        self.truncate(Elem::I64, Elem::I32, dst, dst);
    }

    /// The mantissa is shifted from the upper end of the integer to its place.
    fn long_of(&mut self, is_signed: bool, from: Elem) {
        let dst = self.inst.dst;
        let [value, bits] = self.inst.vector_temps;
        let mut a = self.source(0);
        if from == Elem::F32 {
            self.float_of_float(from, dst, a);
            a = dst;
        }
        if is_signed {
            // What is less than the least integer becomes that, and so does NaN.
            self.op_const(float(0x5f, Elem::F64, false), value, a, 8, DOUBLE_63 | 1 << 63);
        } else {
            self.positive(Elem::F64, value, a);
        }
        self.op_by(opcode::SHIFT64, SHL, bits, Rm::Reg(value), 1);
        self.op_by(opcode::SHIFT64, SHR, bits, Rm::Reg(bits), 53);
        // With the exponent of 2^63 the mantissa stays; a distance below 0 gives 0 as one above 63.
        let most = Rm::Pool(self.asm.splat(8, 1086));
        self.op(opcode::LOAD, SPARE, 0, most);
        self.op(opcode::SUB[3], SPARE, SPARE, Rm::Reg(bits));
        self.op_by(opcode::SHIFT64, SHL, bits, Rm::Reg(value), 11);
        self.op_const(opcode::OR, bits, bits, 8, 1 << 63);
        self.op(wide(opcode::SHR, Elem::I64), bits, bits, Rm::Reg(SPARE));
        if !is_signed {
            self.compare_const(Elem::F64, value, value, DOUBLE_63 + (1 << 52), NOT_LESS);
            return self.op(opcode::OR, dst, bits, Rm::Reg(value));
        }
        self.zero(SPARE);
        self.op(opcode::GREATER[3], SPARE, SPARE, Rm::Reg(value));
        self.op(opcode::XOR, bits, bits, Rm::Reg(SPARE));
        self.op(opcode::SUB[3], bits, bits, Rm::Reg(SPARE));
        self.compare_const(Elem::F64, value, a, DOUBLE_63, NOT_LESS);
        let greatest = Rm::Pool(self.asm.splat(8, u64::MAX >> 1));
        self.blend(Elem::I64, bits, bits, greatest, value);
        self.ordered(Elem::F64, value, a);
        self.op(opcode::AND, dst, bits, Rm::Reg(value));
    }
}
