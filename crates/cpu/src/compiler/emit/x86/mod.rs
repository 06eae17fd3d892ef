//! What the emitters for x86-64 share: an assembler, general registers, frames, jumps, calls and constants.

mod body;
mod encode;
mod frame;
mod fused;
pub(crate) mod general;
pub(crate) mod opcode;
mod ops;
mod pool;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod tests;

pub(crate) use body::{Vectors, encode};
pub(crate) use encode::Rm;
pub(crate) use encode::{Condition, Immediate, Masking};
pub(crate) use fused::fused_form;
pub(crate) use ops::{has_conversion, is_of_elements, is_swappable, predicates};
pub(crate) use pool::Pooled;

use pool::Pool;

use super::{Address, OperandLocation};

/// General registers with a task, by number.
pub(crate) const RAX: u8 = 0;
pub(crate) const RBX: u8 = 3;
pub(crate) const RSP: u8 = 4;
pub(crate) const RBP: u8 = 5;
pub(crate) const RSI: u8 = 6;
pub(crate) const RDI: u8 = 7;
/// The general register that is never allocated.
pub(crate) const SCRATCH: u8 = 11;

/// General registers that may be allocated: first those that the caller saves.
pub(crate) const GENERALS: [u8; 12] = [0, 1, 2, 6, 7, 8, 9, 10, 12, 13, 14, 15];

/// Bytes of the frame's line for the ends of rows, which is at its start.
pub(crate) const LINE: u32 = 64;

/// Where a displacement to a constant is, to be set once the code's length is known.
#[derive(Clone, Copy, Debug)]
struct Fixup {
    /// The displacement.
    at: u32,
    /// The end of its instruction, which the displacement counts from.
    end: u32,
    constant: Pooled,
}

/// Code in the making.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// The code.
    bytes: Vec<u8>,
    fixups: Vec<Fixup>,
    pool: Pool,
    /// Where the function's constants are in the pool: as one element, and as a vector.
    constants: Vec<[Option<Pooled>; 2]>,
    /// Where labels are; `u32::MAX` before.
    labels: Vec<u32>,
    /// Whether there are jumps forward to a label.
    is_forward: Vec<bool>,
    /// Displacements of jumps forward, of four bytes, and their labels.
    jumps: Vec<(u32, u32)>,
    /// Displacements of jumps to the exit.
    exits: Vec<u32>,
    /// The most arguments of a call.
    outgoing: u32,
    /// General registers that are named, as bits.
    generals: u16,
    /// Whether stores past the caches need a fence.
    pub(crate) is_streaming: bool,
}

impl Assembler {
    /// An empty one for code of about so many bytes.
    fn new(bytes: usize, labels: u32, constants: usize) -> Assembler {
        Assembler {
            bytes: Vec::with_capacity(bytes),
            fixups: Vec::new(),
            pool: Pool::default(),
            constants: vec![[None; 2]; constants],
            labels: vec![u32::MAX; labels as usize],
            is_forward: vec![false; labels as usize],
            jumps: Vec::new(),
            exits: Vec::new(),
            outgoing: 0,
            generals: 0,
            is_streaming: false,
        }
    }

    /// A constant of four bytes.
    pub(crate) fn word(&mut self, bits: u32) -> Pooled {
        self.pool.word(bits)
    }

    /// A constant of eight bytes.
    pub(crate) fn long(&mut self, bits: u64) -> Pooled {
        self.pool.long(bits)
    }

    /// A constant as large as a vector.
    pub(crate) fn vector(&mut self, bytes: [u8; 64]) -> Pooled {
        self.pool.vector(bytes)
    }

    /// A vector of equal elements of so many bytes.
    pub(crate) fn splat(&mut self, bytes: usize, bits: u64) -> Pooled {
        self.vector(pool::splat(bytes, bits))
    }
}

/// The address of a slot.
pub(crate) fn slot(offset: u32) -> Address {
    Address { base: RSP, index: None, scale: 1, offset: (LINE + offset) as i32 }
}

/// A general register, or the slot of one.
pub(crate) fn general_operand(location: OperandLocation) -> Rm {
    match location {
        OperandLocation::Reg(reg) => Rm::Reg(reg),
        OperandLocation::Slot(offset) => Rm::At(slot(offset), 8),
        OperandLocation::None | OperandLocation::Pool(_) => {
            unreachable!("{location:?} is no general operand")
        }
    }
}

/// The address of the line for the ends of rows.
pub(crate) fn line() -> Address {
    Address { base: RSP, index: None, scale: 1, offset: 0 }
}
