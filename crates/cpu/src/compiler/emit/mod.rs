//! Machine code: instructions over virtual registers (`mir`), the register allocator (`registers`), the check of what
//! it has done (`check`), and an emitter for each instruction set.
//!
//! An emitter answers three questions: what registers there are ([`Target::limits`]), what an instruction asks of its
//! operands ([`Target::constraint`]), and which bytes an allocated instruction is ([`Target::encode`]).
//!
//! Generated functions are called as [`Entry`]. The frame has 64-byte aligned slots for spilled registers, a line for
//! the ends of rows and room for the arguments of a call. One register of each class is never allocated: emitters and
//! the allocator's moves use it as scratch.

pub(crate) mod check;
pub(crate) mod evex;
pub(crate) mod mir;
pub(crate) mod neon;
#[cfg(test)]
pub(crate) mod neon_run;
pub(crate) mod registers;
pub(crate) mod vex;
pub(crate) mod x86;

use smallvec::SmallVec;

use super::ir::Status;
use mir::{Class, Cond, Constant, Elem, Inst, Op};

/// A generated function: the arguments are the pointers, the scalars and the kernels that the IR function has, in this
/// order, eight bytes each; a kernel is a function and its context, sixteen bytes.
pub(crate) type Entry = unsafe extern "C" fn(args: *const u64) -> Status;

/// The registers of an instruction set. Numbers are those of encodings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a vector.
    pub(crate) vector_bytes: usize,
    /// The registers that values may be in, those first that are better.
    pub(crate) generals: &'static [u8],
    pub(crate) vectors: &'static [u8],
    /// Empty where masks are vectors.
    pub(crate) masks: &'static [u8],
    /// The registers that are never allocated, of each class in order.
    pub(crate) scratch: [u8; 3],
}

/// What an instruction asks of the allocator. Bit `i` of a set stands for source `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// The result is in the register of one of these sources, whose value is lost; the allocator copies it first where
    /// it is needed later. Empty: any register.
    pub(crate) tied: u8,
    /// One of these sources, but not the tied one, may be a spilled value in its slot.
    pub(crate) slot: u8,
    /// One of these, but not the tied one, may be a constant of the pool, in place of a slot. Both sets allow one
    /// operand in memory together.
    pub(crate) pool: u8,
    /// The result must not be in the register of any source, but for the tied one: it is written before all are read.
    pub(crate) is_early: bool,
    /// Registers that are needed while it runs, beside the scratch one.
    pub(crate) vector_temps: u8,
    pub(crate) general_temps: u8,
    pub(crate) mask_temps: u8,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum OperandLocation {
    #[default]
    None,
    Reg(u8),
    /// Bytes from the first slot of the frame. Slots of vectors are as large as a vector, others have eight bytes.
    Slot(u32),
    /// A constant of [`mir::Code::constants`].
    Pool(u32),
}

impl OperandLocation {
    /// The register. Constraints say which operands are in one.
    pub(crate) fn reg(self) -> u8 {
        match self {
            OperandLocation::Reg(reg) => reg,
            OperandLocation::None | OperandLocation::Slot(_) | OperandLocation::Pool(_) => {
                unreachable!("{self:?} is no register")
            }
        }
    }
}

/// An address: `base + index * scale + offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: u8,
    pub(crate) index: Option<u8>,
    pub(crate) scale: u8,
    pub(crate) offset: i32,
}

/// Which lanes an instruction has, as [`mir::Part`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AllocatedPart {
    #[default]
    All,
    /// By a general register.
    Count(u8),
    /// By a mask register, or the vector that stands for one.
    Mask(u8),
}

/// An instruction of `mir` with registers. It has no control flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AllocatedInst {
    pub(crate) op: Op,
    pub(crate) elem: Elem,
    pub(crate) lanes: u8,
    /// The register of the result, if there is one.
    pub(crate) dst: u8,
    pub(crate) src: [OperandLocation; 3],
    pub(crate) mem: Address,
    pub(crate) part: AllocatedPart,
    pub(crate) vector_temps: [u8; 2],
    pub(crate) general_temps: [u8; 2],
    pub(crate) mask_temp: u8,
}

/// What is done after allocation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Inst(AllocatedInst),
    /// Between registers of a class.
    Move {
        class: Class,
        to: u8,
        from: u8,
    },
    Spill {
        class: Class,
        slot: u32,
        from: u8,
    },
    Reload {
        class: Class,
        to: u8,
        slot: u32,
    },
    /// Makes a constant of the pool in a vector register.
    Constant {
        to: u8,
        constant: u32,
    },
    Label(u32),
    Jump(u32),
    /// Jumps if general values, in registers or slots, compare so.
    JumpIf {
        cond: Cond,
        a: OperandLocation,
        b: OperandLocation,
        to: u32,
    },
    /// Jumps if none of the lanes of a mask is set; `elem` is the integer of its width.
    JumpIfNone {
        mask: u8,
        elem: Elem,
        lanes: u8,
        to: u32,
    },
    /// Calls a kernel with these numbers, which are general registers or slots. No register keeps its value.
    Call {
        kernel: u16,
        args: SmallVec<[OperandLocation; 6]>,
    },
    /// Calls a kernel with the address of a vector's lanes and their number; it computes them anew. No register keeps
    /// its value.
    Apply {
        kernel: u16,
        elem: Elem,
        lanes: u8,
        to: u8,
        from: u8,
    },
    /// Does nothing: the checker learns something here.
    Nothing,
}

/// A function with registers chosen.
#[derive(Debug, Default)]
pub(crate) struct Allocated {
    pub(crate) actions: Vec<Action>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) lanes: u8,
    /// The bytes of all slots.
    pub(crate) slots: u32,
    pub(crate) labels: u32,
    /// How many pointers and scalars there are before the first kernel among the arguments.
    pub(crate) words: u32,
}

/// An instruction set.
pub(crate) trait Target {
    /// The name of the instruction set.
    fn name(&self) -> &'static str;

    fn limits(&self) -> Limits;

    /// Whether there is code for an op of vectors of this element type. `schedule` expands others.
    fn has(&self, op: Op, elem: Elem) -> bool;

    /// Whether [`Op::LoadPart`] and [`Op::StorePart`] of this element type take a mask; else they take a count.
    fn has_masked_access(&self, elem: Elem) -> bool;

    /// What an instruction, which the target has, asks of its operands.
    fn constraint(&self, inst: &Inst) -> Constraint;

    /// The bytes of a function: code first, then constants. It can be executed at any address that is a multiple of 64.
    fn encode(&self, function: &Allocated) -> Vec<u8>;
}

/// The class of registers where an emitter keeps a mask.
pub(crate) fn mask_class(limits: &Limits) -> Class {
    if limits.masks.is_empty() { Class::Vector } else { Class::Mask }
}

/// The bytes of a constant of `lanes` lanes.
pub(crate) fn constant_bytes(constant: Constant, lanes: u8) -> Vec<u8> {
    let (elem, at): (Elem, &dyn Fn(u64) -> u64) = match &constant {
        Constant::Splat(elem, bits) => (*elem, &|_| *bits),
        Constant::Iota(elem) => (*elem, &|lane| lane),
        Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
    };
    (0..u64::from(lanes)).flat_map(|lane| at(lane).to_le_bytes().into_iter().take(elem.bytes())).collect()
}
