//! The emitter for x86-64 with AVX-512: F, DQ, BW and VL.

mod convert;
mod lanes;
mod masks;
mod memory;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use super::mir::{Elem, Inst, Mem, Op, Part};
use super::x86::opcode::{self, Opcode, Row, Rows, by_width};
use super::x86::{self, Assembler, GENERALS, Masking, Rm, SCRATCH, general, slot};
use super::{Address, Allocated, AllocatedInst, Constant, Constraint, Limits, OperandLocation, Target};

/// x86-64 with AVX-512.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evex;

/// The vector that is never allocated.
const SPARE: u8 = 31;
/// The mask that is never allocated: no instruction can be masked by it.
const SPARE_MASK: u8 = 0;

/// No masking.
const ALL: Masking = Masking { mask: 0, is_zeroing: false };

const VECTORS: [u8; 31] = {
    let mut all = [0; 31];
    let mut at = 0;
    while at < 31 {
        all[at] = at as u8;
        at += 1;
    }
    all
};

/// An instruction in the making.
struct Emit<'a> {
    asm: &'a mut Assembler,
    function: &'a Allocated,
    inst: &'a AllocatedInst,
    /// Bytes of the vectors, no less than 16.
    bytes: usize,
}

/// Bytes of a register.
const VECTOR_BYTES: usize = 64;

/// Bytes of a vector instruction.
fn length(lanes: u8, elem: Elem) -> usize {
    (usize::from(lanes) * elem.bytes()).max(16)
}

/// The opcodes of ops of two operands.
static ROWS: Rows = {
    use opcode::{ADD, AND, AND_NOT, MAX, MAX_U, MIN, MIN_U, MUL16, MUL32, OR, SUB, XOR, floats};
    use opcode::{SAR, SAR16, SHL, SHL16, SHR, SHR16};
    const NONE: Opcode = Opcode::NONE;
    const fn bits(op: Opcode) -> Row {
        let both = [op, op.w(), op, op.w()];
        Row::new([op, op, op, op.w()], both)
    }
    const SCALE: [Opcode; 4] = {
        let (packed, scalar) = (Opcode::p38(0x2c), Opcode::p38(0x2d));
        [packed, packed.w(), scalar, scalar.w()]
    };
    Rows {
        add: Row::new(ADD, floats(0x58)),
        sub: Row::new(SUB, floats(0x5c)),
        mul: Row::new([NONE, MUL16, MUL32, MUL32.w()], floats(0x59)),
        div: Row::new([NONE; 4], floats(0x5e)),
        min: Row::new(MIN, floats(0x5d)),
        max: Row::new(MAX, floats(0x5f)),
        min_u: Row::integers(MIN_U),
        max_u: Row::integers(MAX_U),
        and: bits(AND),
        or: bits(OR),
        xor: bits(XOR),
        and_not: bits(AND_NOT),
        shl: Row::integers([NONE, SHL16, SHL, SHL.w()]),
        shr: Row::integers([NONE, SHR16, SHR, SHR.w()]),
        sar: Row::integers([NONE, SAR16, SAR, SAR.w()]),
        scale: Row::new([NONE; 4], SCALE),
    }
};

impl Target for Evex {
    fn name(&self) -> &'static str {
        "avx512"
    }

    fn limits(&self) -> Limits {
        Limits {
            vector_bytes: VECTOR_BYTES,
            generals: &GENERALS,
            vectors: &VECTORS,
            masks: &[1, 2, 3, 4, 5, 6, 7],
            scratch: [SCRATCH, SPARE, SPARE_MASK],
        }
    }

    fn has(&self, op: Op, elem: Elem) -> bool {
        if matches!(elem, Elem::Bit | Elem::Index) && x86::is_of_elements(op) {
            return false;
        }
        match op {
            Op::Apply(_) | Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest | Op::Fma | Op::Fnma => {
                elem.is_float()
            }
            Op::PopCount | Op::LeadingZeros => false,
            Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Min
            | Op::Max
            | Op::MinU
            | Op::MaxU
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::AndNot
            | Op::Shl
            | Op::Shr
            | Op::Sar
            | Op::Scale => ROWS.has(op, elem),
            Op::ShlBy(_) | Op::ShrBy(_) | Op::SarBy(_) | Op::RotBy(_) | Op::Test => !elem.is_float(),
            Op::Not | Op::Flip | Op::Compare(_) | Op::Select => true,
            Op::Convert(conv, from) => x86::has_conversion(conv, from, elem),
            Op::Gather(from) => elem.bytes() >= 4 && matches!(from, Elem::I32 | Elem::I64),
            Op::Unzip(_) | Op::Zip(_) | Op::Fold { .. } | Op::Reverse | Op::Permute(_) => elem.bytes() >= 4,
            Op::MaskAnd
            | Op::MaskOr
            | Op::MaskXor
            | Op::MaskAndNot
            | Op::MaskNot
            | Op::MaskFirst
            | Op::MaskResize(_)
            | Op::MaskSplat
            | Op::Const(_)
            | Op::Splat
            | Op::Upper(_)
            | Op::Load
            | Op::LoadSplat
            | Op::LoadPart
            | Op::Store
            | Op::StoreStreaming
            | Op::StorePart
            | Op::Number(_)
            | Op::Argument(_)
            | Op::AddNumber(_)
            | Op::MulNumber(_)
            | Op::GeneralAdd
            | Op::GeneralSub
            | Op::GeneralMul
            | Op::GeneralMin
            | Op::GeneralMax
            | Op::ToGeneral
            | Op::OfGeneral
            | Op::Loop(_)
            | Op::EndLoop(..)
            | Op::EndLoopAlways(_)
            | Op::While
            | Op::WhileGeneral(_)
            | Op::If
            | Op::IfGeneral(_)
            | Op::Else
            | Op::EndIf(_)
            | Op::Call(..) => true,
        }
    }

    fn has_masked_access(&self, _: Elem) -> bool {
        true
    }

    fn constraint(&self, inst: &Inst) -> Constraint {
        let Inst { op, elem, lanes, .. } = *inst;
        let is_scalar = lanes == 1 && elem.is_float();
        let none = Constraint::default();
        let either = |set| Constraint { slot: set, pool: set, ..none };
        match op {
            Op::Not => Constraint { tied: 0b1, ..none },
            // Scalars are merged into a register, which should be the operand.
            Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest if is_scalar => none,
            Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest => Constraint { slot: 0b1, ..none },
            Op::AndNot => either(0b1),
            Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::Min
            | Op::Max
            | Op::MinU
            | Op::MaxU
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Shl
            | Op::Shr
            | Op::Sar
            | Op::Scale => either(if x86::is_swappable(op, elem) { 0b11 } else { 0b10 }),
            Op::ShlBy(_) | Op::ShrBy(_) | Op::SarBy(_) => Constraint { slot: 0b1, ..none },
            Op::RotBy(_) if elem.bytes() >= 4 => Constraint { slot: 0b1, ..none },
            Op::RotBy(_) => none,
            Op::Fma | Op::Fnma | Op::Flip => Constraint { tied: 0b111, ..either(0b111) },
            Op::Compare(_) | Op::Test => either(0b11),
            Op::Select => either(0b10),
            Op::Convert(conv, from) => convert::constraint(conv, from, elem),
            Op::MaskResize(_) => Constraint { tied: 0b1, ..none },
            Op::LoadPart | Op::StorePart => {
                let is_short = usize::from(lanes) * elem.bytes() < 16;
                Constraint { mask_temps: is_short.into(), ..none }
            }
            Op::Gather(_) => {
                let is_vector = lanes > 1 || inst.part != Part::All;
                let has_index = inst.mem != Mem::NONE && inst.mem.index.is_some();
                Constraint {
                    is_early: is_vector,
                    mask_temps: is_vector.into(),
                    general_temps: (!is_vector && has_index).into(),
                    ..none
                }
            }
            Op::ToGeneral | Op::OfGeneral => Constraint { slot: 0b1, ..none },
            Op::AddNumber(_)
            | Op::MulNumber(_)
            | Op::GeneralAdd
            | Op::GeneralSub
            | Op::GeneralMul
            | Op::GeneralMin
            | Op::GeneralMax => general::constraint(op),
            Op::PopCount
            | Op::LeadingZeros
            | Op::MaskAnd
            | Op::MaskOr
            | Op::MaskXor
            | Op::MaskAndNot
            | Op::MaskNot
            | Op::MaskFirst
            | Op::MaskSplat
            | Op::Const(_)
            | Op::Splat
            | Op::Unzip(_)
            | Op::Zip(_)
            | Op::Fold { .. }
            | Op::Reverse
            | Op::Permute(_)
            | Op::Upper(_)
            | Op::Load
            | Op::LoadSplat
            | Op::Store
            | Op::StoreStreaming
            | Op::Number(_)
            | Op::Argument(_)
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
            | Op::Call(..) => none,
        }
    }

    fn encode(&self, function: &Allocated) -> Vec<u8> {
        x86::encode(self, function)
    }
}

impl x86::Vectors for Evex {
    fn inst(&self, asm: &mut Assembler, function: &Allocated, inst: &AllocatedInst) {
        let bytes = length(inst.lanes, inst.elem);
        Emit { asm, function, inst, bytes }.inst();
    }

    fn copy(&self, asm: &mut Assembler, bytes: usize, to: u8, from: u8) {
        if to != from {
            asm.evex(opcode::COPY, bytes, to, 0, Rm::Reg(from), ALL, None);
        }
    }

    fn load(&self, asm: &mut Assembler, bytes: usize, to: u8, from: Address) {
        asm.evex(opcode::LOAD, bytes, to, 0, Rm::At(from, bytes as u8), ALL, None);
    }

    fn store(&self, asm: &mut Assembler, bytes: usize, to: Address, from: u8) {
        asm.evex(opcode::STORE, bytes, from, 0, Rm::At(to, bytes as u8), ALL, None);
    }

    fn copy_mask(&self, asm: &mut Assembler, to: u8, from: u8) {
        if to != from {
            asm.vex(masks::MOVE, 16, to, 0, Rm::Reg(from), None);
        }
    }

    fn load_mask(&self, asm: &mut Assembler, to: u8, from: Address) {
        asm.vex(masks::MOVE, 16, to, 0, Rm::At(from, 8), None);
    }

    fn store_mask(&self, asm: &mut Assembler, to: Address, from: u8) {
        asm.vex(masks::STORE, 16, from, 0, Rm::At(to, 8), None);
    }

    fn constant(&self, asm: &mut Assembler, function: &Allocated, to: u8, constant: u32) {
        let constant = function.constants[constant as usize];
        let (elem, bits) = match constant {
            Constant::Splat(elem, bits) => (elem, bits),
            Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
            Constant::Iota(elem) => {
                let bytes = length(function.lanes, elem).min(VECTOR_BYTES);
                let pooled = asm.constant_vector(constant);
                return asm.evex(opcode::LOAD, bytes, to, 0, Rm::Pool(pooled), ALL, None);
            }
        };
        // Rows of narrow vectors may be beside wider ones, or have wider scalars.
        let bytes = length(function.lanes, elem).min(VECTOR_BYTES);
        let ones = u64::MAX >> (64 - 8 * elem.bytes());
        if bits & ones == 0 && to < 16 {
            asm.vex(opcode::XOR, 16, to, to, Rm::Reg(to), None);
        } else if bits & ones == 0 {
            asm.evex(opcode::XOR, 16, to, to, Rm::Reg(to), ALL, None);
        } else if bits & ones == ones {
            asm.evex(lanes::TERNARY, bytes, to, to, Rm::Reg(to), ALL, Some(0xff));
        } else {
            let (elem, pooled) = asm.element(elem, bits);
            let op = by_width(elem, opcode::BROADCAST);
            asm.evex(op, bytes, to, 0, Rm::Pool(pooled), ALL, None);
        }
    }

    fn test_mask(&self, asm: &mut Assembler, mask: u8, _: Elem, lanes: u8) {
        masks::test(asm, mask, lanes);
    }
}

impl Emit<'_> {
    /// An operand that may be in memory, of elements of a type.
    fn operand(&mut self, location: OperandLocation, elem: Elem) -> Rm {
        let is_scalar = self.inst.lanes == 1 && elem.is_float();
        match location {
            OperandLocation::Reg(reg) => Rm::Reg(reg),
            OperandLocation::Slot(offset) => {
                let bytes = if is_scalar { elem.bytes() } else { length(self.inst.lanes, elem) };
                Rm::At(slot(offset), bytes as u8)
            }
            OperandLocation::Pool(at) => match self.asm.known_element(self.function, at, elem) {
                Some(pooled) if is_scalar => Rm::Pool(pooled),
                Some(pooled) => Rm::Broadcast(pooled),
                None => Rm::Pool(self.asm.known_vector(self.function, at)),
            },
            OperandLocation::None => unreachable!("an operand is missing: {:?}", self.inst),
        }
    }

    /// The register of a source.
    fn source(&self, at: usize) -> u8 {
        self.inst.src[at].reg()
    }

    /// An instruction on vectors as long as the result.
    fn op(&mut self, op: Opcode, reg: u8, v: u8, rm: Rm) {
        self.asm.evex(op, self.bytes, reg, v, rm, ALL, None);
    }

    /// One with an immediate.
    fn op_by(&mut self, op: Opcode, reg: u8, v: u8, rm: Rm, immediate: u8) {
        self.asm.evex(op, self.bytes, reg, v, rm, ALL, Some(immediate));
    }

    /// One with a masked result.
    fn op_masked(&mut self, op: Opcode, reg: u8, v: u8, rm: Rm, mask: u8, is_zeroing: bool) {
        self.asm.evex(op, self.bytes, reg, v, rm, Masking { mask, is_zeroing }, None);
    }

    /// Copies a vector, where the registers differ.
    fn copy(&mut self, to: u8, from: u8) {
        if to != from {
            self.op(opcode::COPY, to, 0, Rm::Reg(from));
        }
    }

    /// Whether the instruction is of one float.
    fn is_scalar(&self) -> bool {
        self.inst.lanes == 1 && self.inst.elem.is_float()
    }
}
