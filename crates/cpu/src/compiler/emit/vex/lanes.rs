//! Ops lane by lane, those that move lanes, and masks.

use super::super::mir::{Cmp, Elem, Op};
use super::super::x86::opcode::{self, Opcode, Row, by_width, float, fused, wide};
use super::super::x86::{Assembler, Immediate, Rm, SCRATCH, Vectors, fused_form, predicates};
use super::super::{Constant, OperandLocation};
use super::{Emit, ROWS, SPARE, Vex, is_composed, mask_conversion};

/// `second` where the mask is set, else `first`; the mask is the fourth operand.
const BLEND: [Opcode; 4] = [Opcode::p3a(0x4c), Opcode::p3a(0x4c), Opcode::p3a(0x4a), Opcode::p3a(0x4b)];
/// Sets the flags to equal if the operands have no bit in common.
const TEST: Opcode = Opcode::p38(0x17);
/// Elements of the lower halves of each 16 bytes in turn, and of the upper ones.
const UNPACK4: [Opcode; 2] = [Opcode::plain(0x14), Opcode::plain(0x15)];
const UNPACK8: [Opcode; 2] = [Opcode::p66(0x14), Opcode::p66(0x15)];
/// Chooses doublewords within each 16 bytes.
const SHUFFLE4: Opcode = Opcode::p66(0x70);
/// Chooses doublewords by numbers.
const PERMUTE4: Opcode = Opcode::p38(0x36);
/// Doublewords of the second source where a bit is set, else of the first.
const BLEND4: Opcode = Opcode::p3a(0x02);
/// Chooses quadwords.
const PERMUTE8: Opcode = Opcode::p3a(0x00).w();
/// 16 bytes out of two vectors' for each half.
const PERMUTE16: Opcode = Opcode::p3a(0x46);

/// Digits of shifts by an immediate.
const SHIFT_BYTES_RIGHT: u8 = 3;
const SHIFT_BYTES_LEFT: u8 = 7;

/// Sets the flags to equal if the first bytes of a vector are 0.
pub(super) fn test_mask(asm: &mut Assembler, mask: u8, bytes: usize) {
    if bytes >= 16 {
        return asm.vex(TEST, bytes, mask, 0, Rm::Reg(mask), None);
    }
    let to_general = wide(opcode::TO_GENERAL, if bytes == 8 { Elem::I64 } else { Elem::I32 });
    asm.vex(to_general, 16, mask, 0, Rm::Reg(SCRATCH), None);
    let lanes = match bytes {
        1 => 0xff,
        2 => 0xffff,
        _ => return asm.legacy(bytes == 8, 0x85, SCRATCH, Rm::Reg(SCRATCH), Immediate::None),
    };
    asm.legacy(false, 0xf7, 0, Rm::Reg(SCRATCH), Immediate::Four(lanes));
}

impl Emit<'_> {
    /// The instruction.
    pub(super) fn inst(mut self) {
        let inst = self.inst;
        let (elem, dst) = (inst.elem, inst.dst);
        match inst.op {
            Op::Not => {
                let from = self.bits(inst.src[0]);
                self.invert(dst, from);
            }
            Op::Sqrt => self.unary_float(float(0x51, elem, self.is_scalar()), None),
            // The upper bit suppresses the exception for inexact results.
            Op::Nearest => self.round(8),
            Op::Floor => self.round(9),
            Op::Ceil => self.round(10),
            Op::Trunc => self.round(11),
            Op::Mul | Op::Min | Op::Max | Op::MinU | Op::MaxU | Op::Sar if is_composed(inst.op, elem) => {
                self.composed();
            }
            Op::Add => self.binary(&ROWS.add),
            Op::Sub => self.binary(&ROWS.sub),
            Op::Mul => self.binary(&ROWS.mul),
            Op::Div => self.binary(&ROWS.div),
            Op::Min => self.binary(&ROWS.min),
            Op::Max => self.binary(&ROWS.max),
            Op::MinU => self.binary(&ROWS.min_u),
            Op::MaxU => self.binary(&ROWS.max_u),
            Op::And => self.binary_bits(&ROWS.and, inst.src[0], inst.src[1]),
            Op::Or => self.binary_bits(&ROWS.or, inst.src[0], inst.src[1]),
            Op::Xor => self.binary_bits(&ROWS.xor, inst.src[0], inst.src[1]),
            Op::AndNot => self.binary_bits(&ROWS.and_not, inst.src[1], inst.src[0]),
            Op::Shl => self.binary(&ROWS.shl),
            Op::Shr => self.binary(&ROWS.shr),
            Op::Sar => self.binary(&ROWS.sar),
            Op::ShlBy(by) => self.shift_left(by),
            Op::ShrBy(by) => self.shift_right(by),
            Op::SarBy(by) => self.shift_signed(by),
            Op::RotBy(by) => self.rotate(by),
            Op::Fma => self.fused(false),
            Op::Fnma => self.fused(true),
            Op::Flip => self.flip(),
            Op::Compare(cmp) if elem.is_float() => self.compare_floats(cmp),
            Op::Compare(cmp) => self.compare(cmp),
            Op::Test => self.test(),
            Op::Select => {
                let chosen = self.bits(inst.src[1]);
                let (mask, other) = (self.source(0), self.source(2));
                self.blend(elem, dst, other, chosen, mask);
            }
            Op::Convert(conv, from) => self.convert(conv, from),
            Op::MaskAnd => self.masks(opcode::AND, 0, 1),
            Op::MaskOr => self.masks(opcode::OR, 0, 1),
            Op::MaskXor => self.masks(opcode::XOR, 0, 1),
            Op::MaskAndNot => self.masks(opcode::AND_NOT, 1, 0),
            Op::MaskNot => self.invert(dst, Rm::Reg(self.source(0))),
            Op::MaskFirst => self.mask_first(),
            Op::MaskResize(from) => self.convert(mask_conversion(from, elem), from),
            Op::Const(constant) => Vex.constant(self.asm, self.function, dst, constant),
            Op::Splat | Op::MaskSplat if inst.lanes == 1 => self.copy(dst, self.source(0)),
            Op::Splat | Op::MaskSplat => {
                let from = Rm::Reg(self.source(0));
                self.op(by_width(elem, opcode::BROADCAST), dst, 0, from);
            }
            Op::Unzip(odd) => self.unzip(odd),
            Op::Zip(upper) => self.zip(upper),
            Op::Fold { by, has } => self.fold(usize::from(by) * elem.bytes(), has),
            Op::Reverse => self.reverse(),
            Op::Permute(constant) => self.permute(constant),
            Op::Upper(lanes) => self.upper(usize::from(lanes) * elem.bytes()),
            Op::Load => self.load(),
            Op::LoadSplat => self.load_splat(),
            Op::LoadPart => self.load_part(),
            Op::Store => self.store(),
            Op::StoreStreaming => self.store_streaming(),
            Op::StorePart => self.store_part(),
            Op::Gather(from) => self.gather(from),
            Op::ToGeneral => self.general_of_lane(),
            Op::OfGeneral => self.lane_of_general(),
            Op::Number(_)
            | Op::Argument(_)
            | Op::AddNumber(_)
            | Op::MulNumber(_)
            | Op::GeneralAdd
            | Op::GeneralSub
            | Op::GeneralMul
            | Op::GeneralMin
            | Op::GeneralMax => self.asm.general_inst(inst),
            Op::PopCount
            | Op::LeadingZeros
            | Op::Scale
            | Op::Loop(_)
            | Op::EndLoop(..)
            | Op::EndLoopAlways(_)
            | Op::While
            | Op::WhileGeneral(_)
            | Op::If
            | Op::IfGeneral(_)
            | Op::Else
            | Op::EndIf(_)
            | Op::Apply(_)
            | Op::Call(..) => unreachable!("{:?} is not for this emitter", inst.op),
        }
    }

    /// An op of one float operand; scalars take the rest of the result from it.
    fn unary_float(&mut self, op: Opcode, immediate: Option<u8>) {
        let rm = self.operand(self.inst.src[0], self.inst.elem);
        let v = if self.is_scalar() { self.source(0) } else { 0 };
        self.asm.vex(op, self.bytes, self.inst.dst, v, rm, immediate);
    }

    fn round(&mut self, mode: u8) {
        let op = opcode::round(self.inst.elem, self.is_scalar());
        self.unary_float(op, Some(mode));
    }

    /// An op of two operands. Only where they may be swapped is the first in memory.
    fn binary(&mut self, row: &Row) {
        let inst = self.inst;
        let op = row.at(inst.elem, self.is_scalar());
        match (inst.src[0], inst.src[1]) {
            (OperandLocation::Reg(a), OperandLocation::Reg(b)) => self.op(op, inst.dst, a, Rm::Reg(b)),
            (OperandLocation::Reg(reg), memory) | (memory, OperandLocation::Reg(reg)) => {
                let rm = self.operand(memory, inst.elem);
                self.op(op, inst.dst, reg, rm);
            }
            (a, b) => unreachable!("{a:?} and {b:?} are both in memory"),
        }
    }

    /// An op of two operands on bits, which has no scalar form.
    fn binary_bits(&mut self, row: &Row, a: OperandLocation, b: OperandLocation) {
        let inst = self.inst;
        let (a, b) = if matches!(a, OperandLocation::Reg(_)) { (a, b) } else { (b, a) };
        let rm = self.bits(b);
        self.op(row.at(inst.elem, false), inst.dst, a.reg(), rm);
    }

    fn fused(&mut self, is_negated: bool) {
        let (code, second, third) = fused_form(self.inst, is_negated);
        let op = fused(code, self.inst.elem, self.is_scalar());
        let third = self.operand(third, self.inst.elem);
        self.op(op, self.inst.dst, second, third);
    }

    fn flip(&mut self) {
        let inst = self.inst;
        let [a, mut b, mut c] = inst.src;
        if !matches!(b, OperandLocation::Reg(_)) {
            (b, c) = (c, b);
        }
        let c = self.bits(c);
        self.op(ROWS.and.at(inst.elem, false), SPARE, b.reg(), c);
        let a = self.bits(a);
        self.op(ROWS.xor.at(inst.elem, false), inst.dst, SPARE, a);
    }

    /// Every other lane: within each 16 bytes, whose halves are then put in order.
    fn unzip(&mut self, odd: bool) {
        let (dst, a, b) = (self.inst.dst, self.source(0), Rm::Reg(self.source(1)));
        let is_whole = self.bytes == 32;
        let to = if is_whole { SPARE } else { dst };
        match self.inst.elem.bytes() {
            // A vector of two lanes has them side by side then.
            4 if self.inst.lanes == 2 => {
                self.op(UNPACK4[0], dst, a, b);
                if odd {
                    self.op_by(opcode::SHIFT128, 3, dst, Rm::Reg(dst), 8);
                }
                return;
            }
            4 => self.op_by(opcode::SHUFFLE_TWO, to, a, b, if odd { 0xdd } else { 0x88 }),
            _ => self.op(UNPACK8[usize::from(odd)], to, a, b),
        }
        if is_whole {
            self.op_by(PERMUTE8, dst, 0, Rm::Reg(SPARE), 0xd8);
        }
    }

    /// Lanes in turn: within each 16 bytes, of which the lower ones or the upper ones are then joined.
    fn zip(&mut self, upper: bool) {
        let (dst, a, b) = (self.inst.dst, self.source(0), Rm::Reg(self.source(1)));
        let unpack = if self.inst.elem.bytes() == 4 { UNPACK4 } else { UNPACK8 };
        if self.bytes == 32 {
            self.op(unpack[0], SPARE, a, b);
            self.op(unpack[1], dst, a, b);
            return self.op_by(PERMUTE16, dst, SPARE, Rm::Reg(dst), if upper { 0x31 } else { 0x20 });
        }
        let is_short = usize::from(self.inst.lanes) * self.inst.elem.bytes() < 16;
        self.op(unpack[usize::from(upper && !is_short)], dst, a, b);
        if upper && is_short {
            self.op_by(opcode::SHIFT128, 3, dst, Rm::Reg(dst), 8);
        }
    }

    /// The lanes of both sources whose numbers lack a bit, or have it, which counts so many bytes.
    fn fold(&mut self, by: usize, has: bool) {
        let (dst, a, b) = (self.inst.dst, self.source(0), Rm::Reg(self.source(1)));
        match by {
            4 => self.op_by(opcode::SHUFFLE_TWO, dst, a, b, if has { 0xdd } else { 0x88 }),
            8 => self.op(UNPACK8[usize::from(has)], dst, a, b),
            _ => self.op_by(PERMUTE16, dst, a, b, if has { 0x31 } else { 0x20 }),
        }
    }

    /// Lanes in reverse order: within each 16 bytes, which then change places.
    fn reverse(&mut self) {
        let (dst, from) = (self.inst.dst, Rm::Reg(self.source(0)));
        let order = match (self.inst.elem.bytes(), self.inst.lanes) {
            (4, 2) => 0b11_10_00_01,
            (4, _) => 0b00_01_10_11,
            _ => 0b01_00_11_10,
        };
        self.op_by(SHUFFLE4, dst, 0, from, order);
        if self.bytes == 32 {
            self.op_by(PERMUTE8, dst, 0, Rm::Reg(dst), 0b01_00_11_10);
        }
    }

    /// For each lane that of either source that numbers say: those of each by themselves, of which a lane then has one.
    fn permute(&mut self, constant: u32) {
        let Constant::Lanes(numbers) = self.function.constants[constant as usize] else {
            unreachable!("a permutation has numbers of lanes")
        };
        let (inst, words) = (self.inst, self.inst.elem.bytes() / 4);
        let lanes = usize::from(inst.lanes);
        // For each four bytes the lane that they are of, and which of its four bytes these are.
        let number = |word: usize| if word / words < lanes { usize::from(numbers[word / words]) } else { 0 };
        let chosen = |source: usize, word: usize| number(word) / lanes == source;
        for (source, to) in [(1, inst.vector_temps[0]), (0, SPARE)] {
            let position = |word: usize| match chosen(source, word) {
                true => number(word) % lanes * words + word % words,
                false => 0,
            };
            let bytes = std::array::from_fn(|at| position(at / 4 % 8).to_le_bytes()[at % 4]);
            let positions = Rm::Pool(self.asm.vector(bytes));
            self.asm.vex(opcode::LOAD, 32, to, 0, positions, None);
            self.asm.vex(PERMUTE4, 32, to, to, Rm::Reg(self.source(source)), None);
        }
        let of_second = (0..8).filter(|&word| chosen(1, word)).fold(0, |mask, word| mask | 1 << word);
        self.asm.vex(BLEND4, 32, inst.dst, SPARE, Rm::Reg(inst.vector_temps[0]), Some(of_second));
    }

    /// `chosen` where the mask is set, else `other`.
    pub(super) fn blend(&mut self, elem: Elem, to: u8, other: u8, chosen: Rm, mask: u8) {
        self.op_by(by_width(elem, BLEND), to, other, chosen, mask << 4);
    }

    fn compare_floats(&mut self, cmp: Cmp) {
        let inst = self.inst;
        let (plain, swapped) = predicates(cmp, true);
        let [a, b, _] = inst.src;
        let (a, b, predicate) =
            if matches!(a, OperandLocation::Reg(_)) { (a, b, plain) } else { (b, a, swapped) };
        let rm = self.operand(b, inst.elem);
        self.op_by(float(0xc2, inst.elem, self.is_scalar()), inst.dst, a.reg(), rm, predicate);
    }

    /// An op of two masks.
    fn masks(&mut self, op: Opcode, a: usize, b: usize) {
        let (a, b) = (self.source(a), self.source(b));
        self.op(op, self.inst.dst, a, Rm::Reg(b));
    }

    /// Whether each lane's number is below the count.
    fn mask_first(&mut self) {
        let (elem, dst) = (self.inst.elem.integer(), self.inst.dst);
        self.asm.clamp(self.source(0), self.inst.lanes);
        self.asm.vex(opcode::OF_GENERAL, 16, SPARE, 0, Rm::Reg(SCRATCH), None);
        if self.inst.lanes > 1 {
            self.op(by_width(elem, opcode::BROADCAST), SPARE, 0, Rm::Reg(SPARE));
        }
        let iota = Rm::Pool(self.asm.constant_vector(Constant::Iota(elem)));
        self.op(by_width(elem, opcode::GREATER), dst, SPARE, iota);
    }

    /// Moves what is from so many bytes on to the start.
    fn upper(&mut self, offset: usize) {
        let (from, dst) = (self.source(0), self.inst.dst);
        match (offset, self.bytes) {
            (16, _) => self.asm.vex(opcode::EXTRACT16, 32, from, 0, Rm::Reg(dst), Some(1)),
            (_, 16) => {
                let op = opcode::SHIFT128;
                self.op_by(op, SHIFT_BYTES_RIGHT, dst, Rm::Reg(from), offset as u8);
            }
            _ => {
                // The upper half below zeros, then both shifted together.
                self.op_by(PERMUTE16, SPARE, from, Rm::Reg(from), 0x81);
                self.op_by(opcode::ALIGN_BYTES, dst, SPARE, Rm::Reg(from), offset as u8);
            }
        }
    }

    /// A mask of so many bytes, less than 16, in the scratch register with all other bytes 0.
    pub(super) fn limited(&mut self, mask: u8, bytes: usize) -> u8 {
        if bytes >= 16 {
            return mask;
        }
        let by = Some(16 - bytes as u8);
        self.asm.vex(opcode::SHIFT128, 16, SHIFT_BYTES_LEFT, SPARE, Rm::Reg(mask), by);
        self.asm.vex(opcode::SHIFT128, 16, SHIFT_BYTES_RIGHT, SPARE, Rm::Reg(SPARE), by);
        SPARE
    }
}
