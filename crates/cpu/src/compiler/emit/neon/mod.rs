//! Code for AArch64 with its vectors of 16 bytes.
//!
//! A mask is a vector: all bits of an element, or none. Vectors of eight bytes or less use the instructions
//! for half a register, and floats of one lane the scalar ones; what is above the last lane is garbage.
//!
//! x28 has the arguments for the whole function. x16, x17 and v31 are scratch: within an instruction, all
//! three; between instructions the allocator may keep something in x16 or v31, so that moves use only x17 to
//! reach far slots.

mod assembler;
mod constants;
mod convert;
mod frame;
mod general;
mod instruction;
mod memory;
#[cfg(test)]
mod tests;
mod vector;
mod words;

use super::mir::{Cmp, Elem, Inst, Op};
use super::{Allocated, Constraint, Limits, Target};
use assembler::Assembler;
use frame::Frame;

/// The second scratch register, beside those of [`Limits::scratch`].
const OTHER: u8 = 17;
const SCRATCH: u8 = 16;
const SCRATCH_V: u8 = 31;
/// What has the arguments.
const ARGS: u8 = 28;

/// AArch64.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Neon;

impl Target for Neon {
    fn name(&self) -> &'static str {
        "neon"
    }

    fn limits(&self) -> Limits {
        const GENERALS: [u8; 25] =
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25, 26, 27];
        const VECTORS: [u8; 31] = [
            0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 8, 9, 10, 11,
            12, 13, 14, 15,
        ];
        Limits {
            vector_bytes: 16,
            generals: &GENERALS,
            vectors: &VECTORS,
            masks: &[],
            scratch: [SCRATCH, SCRATCH_V, SCRATCH_V],
        }
    }

    fn has(&self, op: Op, elem: Elem) -> bool {
        let is_float = elem.is_float();
        let is_integer = matches!(elem, Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64);
        match op {
            Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest => is_float,
            Op::Div | Op::Fma | Op::Fnma | Op::Apply(_) => is_float,
            Op::PopCount | Op::LeadingZeros | Op::MinU | Op::MaxU | Op::Shl | Op::Shr | Op::Sar => is_integer,
            Op::ShlBy(_) | Op::ShrBy(_) | Op::SarBy(_) | Op::RotBy(_) | Op::Test => is_integer,
            Op::MaskAnd | Op::MaskOr | Op::MaskXor | Op::MaskAndNot | Op::MaskNot => is_integer,
            Op::MaskFirst | Op::MaskResize(_) | Op::MaskSplat => is_integer,
            Op::Not | Op::And | Op::Or | Op::Xor | Op::AndNot | Op::Flip => is_float || is_integer,
            Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max | Op::Select => is_float || is_integer,
            Op::Compare(Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le) => is_float || is_integer,
            Op::Compare(Cmp::LtU | Cmp::LeU) => is_integer,
            Op::Convert(conv, from) => convert::has(conv, from, elem),
            Op::Splat
            | Op::Upper(_)
            | Op::Load
            | Op::LoadSplat
            | Op::LoadPart
            | Op::Store
            | Op::StorePart => is_float || is_integer,
            Op::Unzip(_) | Op::Zip(_) | Op::Fold { .. } | Op::Reverse => {
                elem.bytes() >= 4 && (is_float || is_integer)
            }
            Op::Gather(from) => (is_float || is_integer) && matches!(from, Elem::I32 | Elem::I64),
            Op::Scale | Op::StoreStreaming | Op::Permute(_) => false,
            Op::Const(_) | Op::Number(_) | Op::Argument(_) | Op::AddNumber(_) | Op::MulNumber(_) => true,
            Op::GeneralAdd | Op::GeneralSub | Op::GeneralMul | Op::GeneralMin | Op::GeneralMax => true,
            Op::ToGeneral | Op::OfGeneral => true,
            Op::Loop(_) | Op::EndLoop(..) | Op::EndLoopAlways(_) | Op::While | Op::WhileGeneral(_) => true,
            Op::If | Op::IfGeneral(_) | Op::Else | Op::EndIf(_) | Op::Call(..) => true,
        }
    }

    fn has_masked_access(&self, _elem: Elem) -> bool {
        false
    }

    fn constraint(&self, inst: &Inst) -> Constraint {
        let one_lane = inst.lanes == 1;
        match inst.op {
            // Scalars have an addend of their own.
            Op::Fma | Op::Fnma if !one_lane => Constraint { tied: 0b100, ..Constraint::default() },
            Op::Select => Constraint { tied: 0b111, ..Constraint::default() },
            Op::RotBy(n) => Constraint { is_early: !vector::is_rev(inst.elem, n), ..Constraint::default() },
            Op::Gather(_) => Constraint { is_early: !one_lane, ..Constraint::default() },
            Op::Mul if inst.elem == Elem::I64 && !one_lane => {
                Constraint { is_early: true, vector_temps: 1, ..Constraint::default() }
            }
            Op::Fma | Op::Fnma | Op::Mul => Constraint::default(),
            Op::Not | Op::Sqrt | Op::Floor | Op::Ceil | Op::Trunc | Op::Nearest | Op::PopCount => {
                Constraint::default()
            }
            Op::LeadingZeros | Op::Add | Op::Sub | Op::Div | Op::Min | Op::Max | Op::MinU | Op::MaxU => {
                Constraint::default()
            }
            Op::And | Op::Or | Op::Xor | Op::AndNot | Op::Shl | Op::Shr | Op::Sar | Op::ShlBy(_) => {
                Constraint::default()
            }
            Op::ShrBy(_)
            | Op::SarBy(_)
            | Op::Scale
            | Op::Flip
            | Op::Compare(_)
            | Op::Test
            | Op::Convert(..) => Constraint::default(),
            Op::MaskAnd | Op::MaskOr | Op::MaskXor | Op::MaskAndNot | Op::MaskNot | Op::MaskFirst => {
                Constraint::default()
            }
            Op::MaskResize(_) | Op::MaskSplat | Op::Const(_) | Op::Splat | Op::Upper(_) | Op::Load => {
                Constraint::default()
            }
            Op::Unzip(_) | Op::Zip(_) | Op::Fold { .. } | Op::Reverse | Op::Permute(_) => {
                Constraint::default()
            }
            Op::LoadSplat | Op::LoadPart | Op::Store | Op::StoreStreaming | Op::StorePart | Op::Number(_) => {
                Constraint::default()
            }
            Op::Argument(_) | Op::AddNumber(_) | Op::MulNumber(_) | Op::GeneralAdd | Op::GeneralSub => {
                Constraint::default()
            }
            Op::GeneralMul | Op::GeneralMin | Op::GeneralMax | Op::ToGeneral => Constraint::default(),
            Op::OfGeneral | Op::Loop(_) | Op::EndLoop(..) | Op::EndLoopAlways(_) | Op::While => {
                Constraint::default()
            }
            Op::WhileGeneral(_)
            | Op::If
            | Op::IfGeneral(_)
            | Op::Else
            | Op::EndIf(_)
            | Op::Apply(_)
            | Op::Call(..) => Constraint::default(),
        }
    }

    fn encode(&self, function: &Allocated) -> Vec<u8> {
        let encode = |is_large| {
            let asm = Assembler::new(function.labels, is_large);
            Writer { asm, function, frame: Frame::of(function) }.function()
        };
        encode(false).or_else(|| encode(true)).expect("jumps reach 128 MiB")
    }
}

/// Writes a function.
struct Writer<'a> {
    asm: Assembler,
    function: &'a Allocated,
    frame: Frame,
}

/// The registers of an instruction and the form of its vectors.
#[derive(Clone, Copy)]
struct Shape {
    /// The bytes of an element, as a power of two.
    size: u32,
    /// The bit that says whether the whole register is used.
    q: u32,
    /// Whether this is one float.
    is_scalar: bool,
}

/// The bytes of an element, as a power of two.
fn size_of(elem: Elem) -> u32 {
    elem.bytes().trailing_zeros()
}

impl Shape {
    /// That of vectors of so many elements of a type.
    fn of(elem: Elem, lanes: u8) -> Shape {
        let bytes = usize::from(lanes) * elem.bytes();
        debug_assert!(bytes.is_power_of_two() && bytes <= 16, "{lanes} elements of {elem:?}");
        // There are no half registers of 64-bit elements.
        let is_whole = bytes > 8 || elem.bytes() == 8;
        let q = if is_whole { words::Q } else { 0 };
        Shape { size: size_of(elem), q, is_scalar: lanes == 1 && elem.is_float() }
    }

    /// The bits of the form of an instruction on integers.
    fn integer(self) -> u32 {
        self.q | self.size << 22
    }

    /// The bits of the form of an instruction on floats.
    fn float(self) -> u32 {
        self.q | (self.size & 1) << 22
    }
}
