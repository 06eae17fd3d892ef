//! What a prepared function consists of.

use smallvec::SmallVec;

use super::super::ir::Elem;
use super::access::{GatherFn, MoveFn};
use super::lanes::{Reducer, ScalarFn, VectorFn};

/// Bytes from the start of the frame. Those of operands of vector ops are multiples of 8, beside [`SPLAT`]
/// and [`VIEW`].
pub(super) type Slot = u32;

/// No slot.
pub(super) const NONE: Slot = Slot::MAX;

/// An operand that is one step for all steps.
pub(super) const SPLAT: Slot = 1;

/// An operand that is where the slot says: in memory, if it could be read there, else in a register.
pub(super) const VIEW: Slot = 2;

/// One step of a prepared function. Targets of jumps are positions among the steps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Constant {
        to: Slot,
        bits: u64,
    },
    Param {
        to: Slot,
        at: u32,
        elem: Elem,
    },
    /// An op of scalars.
    ScalarOp {
        run: ScalarFn,
        to: Slot,
        from: [Slot; 3],
    },
    /// An op of vectors, whose elements have so many bytes.
    VectorOp {
        run: VectorFn,
        bytes: u8,
        to: Slot,
        from: [Slot; 3],
    },
    /// As `VectorOp`, of operands some of which are views.
    VectorOpOfViews {
        run: VectorFn,
        bytes: u8,
        to: Slot,
        from: [Slot; 3],
    },
    /// As `VectorOp`, and stores the result, which has no other use, to elements without gaps.
    VectorOpToMemory {
        run: VectorFn,
        bytes: u8,
        to: Slot,
        from: [Slot; 3],
        access: u32,
    },
    /// Repeats a scalar for a step.
    Splat {
        run: unsafe fn(*const u8, *mut u8, usize),
        to: Slot,
        from: Slot,
    },
    /// The positions of the block's elements.
    Positions {
        run: fn(&mut [u8], usize),
        to: Slot,
        bytes: u8,
    },
    AnyLane {
        to: Slot,
        from: Slot,
    },
    /// Loads or stores a scalar, or the lanes of the block.
    Move {
        run: MoveFn,
        register: Slot,
        access: u32,
        is_block: bool,
    },
    /// Loads the lanes of the block from elements without gaps, which are not written while the value is
    /// used: where it can, it only writes the address to a slot.
    View {
        to: Slot,
        register: Slot,
        access: u32,
        bytes: u8,
    },
    /// Loads elements at positions.
    Gather {
        run: GatherFn,
        to: Slot,
        positions: Slot,
        access: u32,
        is_block: bool,
    },
    /// Begins a loop: leaves it if there are no trips.
    Loop {
        counter: Slot,
        trips: Slot,
        exit: u32,
    },
    EndLoop {
        counter: Slot,
        trips: Slot,
        begin: u32,
    },
    Jump {
        to: u32,
    },
    /// Jumps unless the predicate holds.
    Unless {
        predicate: Slot,
        to: u32,
    },
    /// Begins a row of blocks of at most so many elements: leaves it if there are no elements.
    Lanes {
        extent: Slot,
        exit: u32,
        most: u32,
    },
    /// Goes on with the next block.
    EndLanes {
        extent: Slot,
        begin: u32,
        most: u32,
    },
    /// Fills the lanes of an accumulator.
    Fill {
        reducer: &'static Reducer,
        from: Slot,
        lanes: Slot,
        count: u32,
    },
    Accumulate {
        reducer: &'static Reducer,
        lanes: Slot,
        count: u32,
        value: Slot,
        bytes: u8,
    },
    /// Joins the lanes of an accumulator; the result is the first one.
    Combine {
        reducer: &'static Reducer,
        lanes: Slot,
        count: u32,
        to: Slot,
    },
    Call {
        call: u32,
    },
    Return,
}

/// An access to memory, whose indices are slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedAccess {
    pub(super) buffer: u32,
    /// A range of the terms.
    pub(super) terms: (u32, u32),
    pub(super) offset: i64,
    pub(super) lane: i64,
}

/// An index, and the bytes that each step of it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) index: Slot,
    pub(super) stride: i64,
}

/// A call of a kernel.
#[derive(Debug)]
pub(super) struct KernelCall {
    pub(super) kernel: usize,
    /// The indices that it is passed.
    pub(super) args: SmallVec<[Slot; 4]>,
}
