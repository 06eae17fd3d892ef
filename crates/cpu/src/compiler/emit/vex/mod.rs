//! The emitter for x86-64 with AVX2, FMA, F16C and BMI2. Masks are vectors: all bits of an element, or none.

mod convert;
mod integers;
mod lanes;
mod memory;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use super::mir::{Cmp, Conv, Elem, Inst, Mem, Op, Part};
use super::x86::opcode::{self, Opcode, Row, Rows, by_width};
use super::x86::{self, Assembler, GENERALS, Rm, SCRATCH, general, slot};
use super::{Address, Allocated, AllocatedInst, Constant, Constraint, Limits, OperandLocation, Target};

/// x86-64 with AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vex;

/// The vector that is never allocated.
const SPARE: u8 = 15;

/// An instruction in the making.
struct Emit<'a> {
    asm: &'a mut Assembler,
    function: &'a Allocated,
    inst: &'a AllocatedInst,
    /// Bytes of the vectors: 16 or 32.
    bytes: usize,
}

/// Bytes of a register.
const VECTOR_BYTES: usize = 32;

/// Bytes of a vector instruction.
fn length(lanes: u8, elem: Elem) -> usize {
    (usize::from(lanes) * elem.bytes()).max(16)
}

/// The opcodes of ops of two operands, where one instruction does them.
static ROWS: Rows = {
    use opcode::{ADD, AND, AND_NOT, MAX, MAX_U, MIN, MIN_U, MUL16, MUL32, OR, SUB, XOR};
    use opcode::{SAR, SHL, SHR, floats};
    const NONE: Opcode = Opcode::NONE;
    const fn short([byte, word, double, _]: [Opcode; 4]) -> [Opcode; 4] {
        [byte, word, double, NONE]
    }
    const fn bits(op: Opcode, code: u8) -> Row {
        let [single, double, ..] = floats(code);
        Row::new([op; 4], [single, double, single, double])
    }
    Rows {
        add: Row::new(ADD, floats(0x58)),
        sub: Row::new(SUB, floats(0x5c)),
        mul: Row::new([NONE, MUL16, MUL32, NONE], floats(0x59)),
        div: Row::new([NONE; 4], floats(0x5e)),
        min: Row::new(short(MIN), floats(0x5d)),
        max: Row::new(short(MAX), floats(0x5f)),
        min_u: Row::integers(short(MIN_U)),
        max_u: Row::integers(short(MAX_U)),
        and: bits(AND, 0x54),
        or: bits(OR, 0x56),
        xor: bits(XOR, 0x57),
        and_not: bits(AND_NOT, 0x55),
        shl: Row::integers([NONE, NONE, SHL, SHL.w()]),
        shr: Row::integers([NONE, NONE, SHR, SHR.w()]),
        sar: Row::integers([NONE, NONE, SAR, NONE]),
        scale: Row::integers([NONE; 4]),
    }
};

/// Whether an op of two operands takes several instructions: those of long integers.
fn is_composed(op: Op, elem: Elem) -> bool {
    elem == Elem::I64 && [Op::Mul, Op::Min, Op::Max, Op::MinU, Op::MaxU, Op::Sar].contains(&op)
}

impl Target for Vex {
    fn name(&self) -> &'static str {
        "avx2"
    }

    fn limits(&self) -> Limits {
        Limits {
            vector_bytes: VECTOR_BYTES,
            generals: &GENERALS,
            vectors: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
            masks: &[],
            scratch: [SCRATCH, SPARE, SPARE],
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
            Op::PopCount | Op::LeadingZeros | Op::Scale => false,
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
            | Op::Sar => ROWS.has(op, elem) || is_composed(op, elem),
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

    fn has_masked_access(&self, elem: Elem) -> bool {
        elem.bytes() >= 4
    }

    fn constraint(&self, inst: &Inst) -> Constraint {
        let Inst { op, elem, lanes, .. } = *inst;
        let is_scalar = lanes == 1 && elem.is_float();
        let none = Constraint::default();
        let either = |set| Constraint { slot: set, pool: set, ..none };
        let slot = |set| Constraint { slot: set, ..none };
        let temps = |vector_temps| Constraint { vector_temps, ..none };
        match op {
            // Scalars are merged into a register, which should be the operand.
            Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest if is_scalar => none,
            Op::Not | Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest => slot(0b1),
            Op::AndNot => either(0b1),
            Op::Min | Op::Max if is_composed(op, elem) => none,
            Op::Mul | Op::MinU | Op::MaxU if is_composed(op, elem) => temps(1),
            Op::Sar if is_composed(op, elem) => Constraint { vector_temps: 1, ..either(0b10) },
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
            | Op::Sar => either(if x86::is_swappable(op, elem) { 0b11 } else { 0b10 }),
            Op::Fma | Op::Fnma => Constraint { tied: 0b111, ..either(0b111) },
            Op::Flip => either(0b111),
            Op::Compare(Cmp::LtU | Cmp::LeU) if elem == Elem::I64 => none,
            Op::Compare(Cmp::Eq | Cmp::Ne) => either(0b11),
            Op::Compare(_) if elem.is_float() => either(0b11),
            Op::Compare(Cmp::Lt) => either(0b1),
            Op::Compare(Cmp::Le | Cmp::LtU | Cmp::LeU) => either(0b10),
            Op::Test => either(0b11),
            Op::Select => either(0b10),
            Op::Convert(conv, from) => convert::constraint(conv, from, elem),
            Op::MaskResize(from) => convert::constraint(mask_conversion(from, elem), from, elem),
            Op::LoadPart | Op::StorePart => {
                Constraint { general_temps: if elem.bytes() < 4 { 2 } else { 0 }, ..none }
            }
            Op::Gather(_) => {
                let is_vector = lanes > 1 || inst.part != Part::All;
                let has_index = inst.mem != Mem::NONE && inst.mem.index.is_some();
                Constraint {
                    is_early: is_vector,
                    vector_temps: is_vector.into(),
                    general_temps: (!is_vector && has_index).into(),
                    ..none
                }
            }
            Op::Permute(_) => temps(1),
            Op::ToGeneral | Op::OfGeneral => slot(0b1),
            Op::AddNumber(_)
            | Op::MulNumber(_)
            | Op::GeneralAdd
            | Op::GeneralSub
            | Op::GeneralMul
            | Op::GeneralMin
            | Op::GeneralMax => general::constraint(op),
            Op::ShlBy(_)
            | Op::ShrBy(_)
            | Op::SarBy(_)
            | Op::RotBy(_)
            | Op::Scale
            | Op::PopCount
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

/// The conversion that makes a mask's elements wider or narrower.
fn mask_conversion(from: Elem, to: Elem) -> Conv {
    match from.bytes().cmp(&to.bytes()) {
        std::cmp::Ordering::Less => Conv::SignExtend,
        std::cmp::Ordering::Equal => Conv::Bitcast,
        std::cmp::Ordering::Greater => Conv::Truncate,
    }
}

impl x86::Vectors for Vex {
    fn inst(&self, asm: &mut Assembler, function: &Allocated, inst: &AllocatedInst) {
        let bytes = length(inst.lanes, inst.elem);
        Emit { asm, function, inst, bytes }.inst();
    }

    fn copy(&self, asm: &mut Assembler, bytes: usize, to: u8, from: u8) {
        if to != from {
            asm.vex(opcode::COPY, bytes, to, 0, Rm::Reg(from), None);
        }
    }

    fn load(&self, asm: &mut Assembler, bytes: usize, to: u8, from: Address) {
        asm.vex(opcode::LOAD, bytes, to, 0, Rm::At(from, bytes as u8), None);
    }

    fn store(&self, asm: &mut Assembler, bytes: usize, to: Address, from: u8) {
        asm.vex(opcode::STORE, bytes, from, 0, Rm::At(to, bytes as u8), None);
    }

    fn copy_mask(&self, asm: &mut Assembler, to: u8, from: u8) {
        self.copy(asm, 32, to, from);
    }

    fn load_mask(&self, asm: &mut Assembler, to: u8, from: Address) {
        self.load(asm, 32, to, from);
    }

    fn store_mask(&self, asm: &mut Assembler, to: Address, from: u8) {
        self.store(asm, 32, to, from);
    }

    fn constant(&self, asm: &mut Assembler, function: &Allocated, to: u8, constant: u32) {
        let constant = function.constants[constant as usize];
        let (elem, bits) = match constant {
            Constant::Splat(elem, bits) => (elem, bits),
            Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
            Constant::Iota(elem) => {
                let pooled = asm.constant_vector(constant);
                let bytes = length(function.lanes, elem).min(VECTOR_BYTES);
                return asm.vex(opcode::LOAD, bytes, to, 0, Rm::Pool(pooled), None);
            }
        };
        // Rows of narrow vectors may be beside wider ones, or have wider scalars.
        let bytes = length(function.lanes, elem).min(VECTOR_BYTES);
        let ones = u64::MAX >> (64 - 8 * elem.bytes());
        if bits & ones == 0 {
            asm.vex(opcode::XOR, 16, to, to, Rm::Reg(to), None);
        } else if bits & ones == ones {
            asm.vex(opcode::EQUAL[2], bytes, to, to, Rm::Reg(to), None);
        } else {
            let (elem, pooled) = asm.element(elem, bits);
            asm.vex(by_width(elem, opcode::BROADCAST), bytes, to, 0, Rm::Pool(pooled), None);
        }
    }

    fn test_mask(&self, asm: &mut Assembler, mask: u8, elem: Elem, lanes: u8) {
        lanes::test_mask(asm, mask, usize::from(lanes) * elem.bytes());
    }
}

impl Emit<'_> {
    /// An operand that may be in memory, of elements of a type.
    fn operand(&mut self, location: OperandLocation, elem: Elem) -> Rm {
        match location {
            OperandLocation::Reg(reg) => Rm::Reg(reg),
            OperandLocation::Slot(offset) => Rm::At(slot(offset), 1),
            OperandLocation::Pool(at) => {
                // One float is enough for a scalar; other instructions on one lane read 16 bytes.
                let is_scalar = self.inst.lanes == 1 && elem.is_float();
                let single = if is_scalar { self.asm.known_element(self.function, at, elem) } else { None };
                Rm::Pool(single.unwrap_or_else(|| self.asm.known_vector(self.function, at)))
            }
            OperandLocation::None => unreachable!("an operand is missing: {:?}", self.inst),
        }
    }

    /// An operand of an instruction on bits that has no scalar form.
    fn bits(&mut self, location: OperandLocation) -> Rm {
        self.operand(location, self.inst.elem.integer())
    }

    /// The register of a source.
    fn source(&self, at: usize) -> u8 {
        self.inst.src[at].reg()
    }

    /// An instruction on vectors as long as the result.
    fn op(&mut self, op: Opcode, reg: u8, v: u8, rm: Rm) {
        self.asm.vex(op, self.bytes, reg, v, rm, None);
    }

    /// One with an immediate.
    fn op_by(&mut self, op: Opcode, reg: u8, v: u8, rm: Rm, immediate: u8) {
        self.asm.vex(op, self.bytes, reg, v, rm, Some(immediate));
    }

    /// One with a constant for all elements of so many bytes.
    fn op_const(&mut self, op: Opcode, reg: u8, v: u8, bytes: usize, bits: u64) {
        let constant = Rm::Pool(self.asm.splat(bytes, bits));
        self.op(op, reg, v, constant);
    }

    /// Copies a vector, where the registers differ.
    fn copy(&mut self, to: u8, from: u8) {
        if to != from {
            self.op(opcode::COPY, to, 0, Rm::Reg(from));
        }
    }

    /// Clears a vector.
    fn zero(&mut self, to: u8) {
        self.asm.vex(opcode::XOR, 16, to, to, Rm::Reg(to), None);
    }

    /// Inverts a vector, which the scratch register is not.
    fn invert(&mut self, to: u8, from: Rm) {
        self.op(opcode::EQUAL[2], SPARE, SPARE, Rm::Reg(SPARE));
        self.op(opcode::XOR, to, SPARE, from);
    }

    /// Whether the instruction is of one float.
    fn is_scalar(&self) -> bool {
        self.inst.lanes == 1 && self.inst.elem.is_float()
    }
}
