//! Ops lane by lane, and those that move lanes.

use super::super::mir::{Cmp, Constant, Elem, Op};
use super::super::x86::opcode::{self, Opcode, Row, by_width, float, fused, wide};
use super::super::x86::{Rm, Vectors, fused_form, predicates};
use super::super::{AllocatedPart, OperandLocation};
use super::{ALL, Emit, Evex, Masking, ROWS, SPARE, masks};

/// Any function of three bits, by its table.
pub(super) const TERNARY: Opcode = Opcode::p3a(0x25);
/// `second` where the mask is set, else `first`.
const BLEND: [Opcode; 4] =
    [Opcode::p38(0x66), Opcode::p38(0x66).w(), Opcode::p38(0x64), Opcode::p38(0x64).w()];
/// Comparisons of integers: signed ones, unsigned ones.
const COMPARE: [Opcode; 4] =
    [Opcode::p3a(0x3f), Opcode::p3a(0x3f).w(), Opcode::p3a(0x1f), Opcode::p3a(0x1f).w()];
const COMPARE_U: [Opcode; 4] =
    [Opcode::p3a(0x3e), Opcode::p3a(0x3e).w(), Opcode::p3a(0x1e), Opcode::p3a(0x1e).w()];
const TEST: [Opcode; 4] =
    [Opcode::p38(0x26), Opcode::p38(0x26).w(), Opcode::p38(0x27), Opcode::p38(0x27).w()];
/// Doublewords of two vectors as one, shifted.
const ALIGN: Opcode = Opcode::p3a(0x03);
/// Lanes of two vectors, at the positions that the result has before.
const PERMUTE_TWO: Opcode = Opcode::p38(0x77);
/// 16 bytes of one vector and then of another one.
const SHUFFLE16: Opcode = Opcode::p3a(0x23).w();
/// Halves of each 16 bytes of one vector and then of another one.
const UNPACK8: [Opcode; 2] = [Opcode::p66(0x14).w(), Opcode::p66(0x15).w()];
/// 32 bytes of a vector.
const EXTRACT32: Opcode = Opcode::p3a(0x3b).w();

/// Digits of shifts by an immediate.
const SHL: u8 = 6;
const SHR: u8 = 2;
const SAR: u8 = 4;
const ROTATE: u8 = 1;

impl Emit<'_> {
    /// The instruction.
    pub(super) fn inst(mut self) {
        let inst = self.inst;
        let (elem, dst) = (inst.elem, inst.dst);
        match inst.op {
            Op::Not => self.op_by(wide(TERNARY, elem), dst, dst, Rm::Reg(dst), 0x55),
            Op::Sqrt => self.unary_float(float(0x51, elem, self.is_scalar()), None),
            // The upper bit suppresses the exception for inexact results.
            Op::Nearest => self.round(8),
            Op::Floor => self.round(9),
            Op::Ceil => self.round(10),
            Op::Trunc => self.round(11),
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
            Op::Scale => self.binary(&ROWS.scale),
            Op::ShlBy(by) => self.shift(SHL, by),
            Op::ShrBy(by) => self.shift(SHR, by),
            Op::SarBy(by) => self.shift(SAR, by),
            Op::RotBy(by) => self.rotate(by),
            Op::Fma => self.fused(false),
            Op::Fnma => self.fused(true),
            Op::Flip => self.flip(),
            Op::Compare(cmp) => self.compare(cmp),
            Op::Test => self.test(),
            Op::Select => {
                let chosen = self.bits(inst.src[1]);
                let (mask, other) = (self.source(0), self.source(2));
                self.op_masked(by_width(elem, BLEND), dst, other, chosen, mask, false);
            }
            Op::Convert(conv, from) => self.convert(conv, from),
            Op::MaskAnd => self.masks(masks::AND, 0, 1),
            Op::MaskOr => self.masks(masks::OR, 0, 1),
            Op::MaskXor => self.masks(masks::XOR, 0, 1),
            Op::MaskAndNot => self.masks(masks::AND_NOT, 1, 0),
            Op::MaskNot => self.mask_not(),
            Op::MaskFirst => self.mask_first(),
            Op::MaskResize(_) => Evex.copy_mask(self.asm, dst, self.source(0)),
            Op::MaskSplat => self.mask_splat(),
            Op::Const(constant) => Evex.constant(self.asm, self.function, dst, constant),
            Op::Splat if inst.lanes == 1 => self.copy(dst, self.source(0)),
            Op::Splat => {
                let from = Rm::Reg(self.source(0));
                self.op(by_width(elem, opcode::BROADCAST), dst, 0, from);
            }
            Op::Unzip(odd) => self.permute(1, |lane, count| 2 * lane % (2 * count) + usize::from(odd)),
            Op::Zip(upper) => {
                let first = if upper { usize::from(inst.lanes) / 2 } else { 0 };
                self.permute(1, |lane, count| lane % 2 * count + first + lane / 2);
            }
            Op::Fold { by, has } => self.fold(usize::from(by) * elem.bytes(), has),
            Op::Reverse => self.permute(0, |lane, count| count - 1 - lane),
            Op::Permute(constant) => {
                let Constant::Lanes(lanes) = self.function.constants[constant as usize] else {
                    unreachable!("a permutation has numbers of lanes")
                };
                self.permute(1, |lane, _| usize::from(lanes[lane]));
            }
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
        self.asm.evex(op, self.bytes, self.inst.dst, v, rm, super::ALL, immediate);
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

    /// A shift by an immediate from and to registers, or from memory.
    fn shift_by(&mut self, elem: Elem, digit: u8, to: u8, from: Rm, by: u8) {
        let op = match elem.bytes() {
            1 | 2 => opcode::SHIFT16,
            4 => opcode::SHIFT32,
            // The last has no arithmetic shift and no rotation: those are of the other group.
            _ if matches!(digit, SAR | ROTATE) => opcode::SHIFT32.w(),
            _ => opcode::SHIFT64,
        };
        self.op_by(op, digit, to, from, by);
    }

    fn shift(&mut self, digit: u8, by: u8) {
        let inst = self.inst;
        let from = self.operand(inst.src[0], inst.elem);
        if inst.elem != Elem::I8 {
            return self.shift_by(inst.elem, digit, inst.dst, from, by);
        }
        // Shifted in pairs; the bits of the other byte are cleared.
        let kept = if digit == SHL { 0xff << by } else { 0xff >> by };
        self.shift_by(Elem::I16, if digit == SHL { SHL } else { SHR }, SPARE, from, by);
        let kept = self.bytes_of(kept);
        if digit != SAR {
            return self.op(opcode::AND, inst.dst, SPARE, kept);
        }
        // The sign is in the lower bit now: flip it and subtract it.
        let sign = 0x80 >> by;
        self.op(opcode::AND, SPARE, SPARE, kept);
        let flip = self.bytes_of(sign);
        self.op(opcode::XOR, SPARE, SPARE, flip);
        let sign = Rm::Pool(self.asm.splat(1, sign.into()));
        self.op(opcode::SUB[0], inst.dst, SPARE, sign);
    }

    /// A byte for all lanes, as an operand of four-byte elements.
    fn bytes_of(&mut self, byte: u8) -> Rm {
        Rm::Broadcast(self.asm.word(u32::from_le_bytes([byte; 4])))
    }

    fn rotate(&mut self, by: u8) {
        let (elem, dst) = (self.inst.elem, self.inst.dst);
        let from = self.operand(self.inst.src[0], elem);
        match elem.bytes() {
            2 => {
                self.shift_by(elem, SHL, SPARE, from, by);
                self.shift_by(elem, SHR, dst, from, 16 - by);
                self.op(opcode::OR, dst, dst, Rm::Reg(SPARE));
            }
            1 => {
                self.shift_by(elem, SHL, SPARE, from, by);
                self.shift_by(elem, SHR, dst, from, 8 - by);
                // The third operand chooses the second, else the first.
                let upper = self.bytes_of(0xff << by);
                self.op_by(TERNARY, dst, SPARE, upper, 0xd8);
            }
            _ => self.shift_by(elem, ROTATE, dst, from, by),
        }
    }

    fn fused(&mut self, is_negated: bool) {
        let (code, second, third) = fused_form(self.inst, is_negated);
        let op = fused(code, self.inst.elem, self.is_scalar());
        let third = self.operand(third, self.inst.elem);
        self.op(op, self.inst.dst, second, third);
    }

    fn flip(&mut self) {
        let inst = self.inst;
        let [a, b, c] = inst.src;
        let dst = OperandLocation::Reg(inst.dst);
        let is_register = |location: OperandLocation| matches!(location, OperandLocation::Reg(_));
        let (second, third, table) = if a == dst {
            if is_register(b) { (b, c, 0x78) } else { (c, b, 0x78) }
        } else {
            let other = if b == dst { c } else { b };
            if is_register(other) { (other, a, 0x6a) } else { (a, other, 0x6c) }
        };
        // The operation is on bits, so that floats can use it too.
        let third = self.bits(third);
        self.op_by(wide(TERNARY, inst.elem), inst.dst, second.reg(), third, table);
    }

    /// An operand of an instruction on bits that has no scalar form.
    fn bits(&mut self, location: OperandLocation) -> Rm {
        self.operand(location, self.inst.elem.integer())
    }

    fn compare(&mut self, cmp: Cmp) {
        let inst = self.inst;
        let elem = inst.elem;
        let (plain, swapped) = predicates(cmp, elem.is_float());
        let [a, b, _] = inst.src;
        let (a, b, predicate) =
            if matches!(a, OperandLocation::Reg(_)) { (a, b, plain) } else { (b, a, swapped) };
        let op = match (elem.is_float(), cmp) {
            (true, _) => float(0xc2, elem, self.is_scalar()),
            (false, Cmp::LtU | Cmp::LeU) => by_width(elem, COMPARE_U),
            (false, Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le) => by_width(elem, COMPARE),
        };
        let rm = self.operand(b, elem);
        let masking = match inst.part {
            AllocatedPart::Mask(mask) => Masking { mask, is_zeroing: false },
            AllocatedPart::All | AllocatedPart::Count(_) => ALL,
        };
        self.asm.evex(op, self.bytes, inst.dst, a.reg(), rm, masking, Some(predicate));
    }

    fn test(&mut self) {
        let [a, b, _] = self.inst.src;
        let (a, b) = if matches!(a, OperandLocation::Reg(_)) { (a, b) } else { (b, a) };
        let rm = self.operand(b, self.inst.elem);
        self.op(by_width(self.inst.elem, TEST), self.inst.dst, a.reg(), rm);
    }

    /// Moves what is from so many bytes on to the start.
    fn upper(&mut self, offset: usize) {
        let (from, dst) = (self.source(0), self.inst.dst);
        let is_half = usize::from(self.inst.lanes) * self.inst.elem.bytes() <= 2 * offset;
        match offset {
            32 if is_half => self.extract(EXTRACT32, 64),
            16 if is_half => self.extract(opcode::EXTRACT16, 32),
            _ if offset.is_multiple_of(4) => self.op_by(ALIGN, dst, from, Rm::Reg(from), (offset / 4) as u8),
            _ if self.bytes == 16 => self.op_by(opcode::SHIFT128, 3, dst, Rm::Reg(from), offset as u8),
            _ => {
                self.op_by(ALIGN, SPARE, from, Rm::Reg(from), 4);
                self.op_by(opcode::ALIGN_BYTES, dst, SPARE, Rm::Reg(from), offset as u8);
            }
        }
    }

    /// For each lane the lane of the first source and of another one that `of` says, which is passed how many lanes a
    /// source has: the other's follow behind the first's.
    fn permute(&mut self, other: usize, of: impl Fn(usize, usize) -> usize) {
        let (elem, bytes) = (self.inst.elem, self.inst.elem.bytes());
        let (lanes, held) = (usize::from(self.inst.lanes), self.bytes / bytes);
        // A register holds more lanes than a short vector has.
        let from = |lane: usize| {
            let from = of(lane, lanes);
            if from < lanes { from } else { from - lanes + held }
        };
        let position = |at: usize| if at / bytes < lanes { from(at / bytes) } else { 0 };
        let positions = std::array::from_fn(|at| (position(at) as u64).to_le_bytes()[at % bytes]);
        let positions = Rm::Pool(self.asm.vector(positions));
        self.op(opcode::LOAD, SPARE, 0, positions);
        let second = Rm::Reg(self.source(other));
        self.op(wide(PERMUTE_TWO, elem), SPARE, self.source(0), second);
        self.copy(self.inst.dst, SPARE);
    }

    /// The lanes of both sources whose numbers lack a bit, or have it, which counts so many bytes.
    fn fold(&mut self, by: usize, has: bool) {
        let (dst, a, b) = (self.inst.dst, self.source(0), Rm::Reg(self.source(1)));
        match (by, self.bytes) {
            (4, _) => self.op_by(opcode::SHUFFLE_TWO, dst, a, b, if has { 0xdd } else { 0x88 }),
            (8, _) => self.op(UNPACK8[usize::from(has)], dst, a, b),
            (16, 32) => self.op_by(SHUFFLE16, dst, a, b, if has { 0b11 } else { 0b00 }),
            (16, _) => self.op_by(SHUFFLE16, dst, a, b, if has { 0xdd } else { 0x88 }),
            _ => self.op_by(SHUFFLE16, dst, a, b, if has { 0xee } else { 0x44 }),
        }
    }

    /// The upper half of the source, which has so many bytes.
    fn extract(&mut self, op: Opcode, bytes: usize) {
        let (from, to) = (self.source(0), Rm::Reg(self.inst.dst));
        self.asm.evex(op, bytes, from, 0, to, super::ALL, Some(1));
    }
}
