//! Machine instructions over virtual registers, before the register allocator.
//!
//! `schedule` makes them from the loop-nest IR: lanes have become vectors of one length, rows have become loops with
//! their ends, accesses have become addresses, and ops that a machine lacks have become those that it has. Control flow
//! is still structured. The list is what the three emitters and the allocator share; it knows nothing of encodings.
//!
//! A vector holds `lanes` elements of one type in the low bytes of its register. Every vector register holds one value,
//! whatever the width of its elements: the vectors of a row all have the same number of lanes, which is the number of
//! its widest elements that fill a register. Constants have those of the row with the most. What is above the last lane
//! is not specified.

use smallvec::SmallVec;

pub(crate) use super::super::ir::{Cmp, Conv, Elem};

/// The registers that a value may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Class {
    /// 64-bit integers: addresses, counters.
    General,
    Vector,
    /// A predicate for each lane. Machines without mask registers keep it in a vector: all bits of an element, or none.
    Mask,
}

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Reg(pub(crate) u32);

impl Reg {
    /// No register.
    pub(crate) const NONE: Reg = Reg(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_some(self) -> bool {
        self != Reg::NONE
    }
}

/// How general registers are compared: signed, or as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cond {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Cond {
    /// What holds of `b` and `a` where this holds of `a` and `b`.
    pub(crate) fn swapped(self) -> Cond {
        match self {
            Cond::Eq | Cond::Ne => self,
            Cond::Lt => Cond::Gt,
            Cond::Le => Cond::Ge,
            Cond::Gt => Cond::Lt,
            Cond::Ge => Cond::Le,
        }
    }

    /// What holds where this does not.
    pub(crate) fn negated(self) -> Cond {
        match self {
            Cond::Eq => Cond::Ne,
            Cond::Ne => Cond::Eq,
            Cond::Lt => Cond::Ge,
            Cond::Le => Cond::Gt,
            Cond::Gt => Cond::Le,
            Cond::Ge => Cond::Lt,
        }
    }
}

/// What an instruction does. Sources are `a`, `b`, `c` in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    // Vectors, lane by lane. `elem` is the type of the elements, of sources too.
    Not,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    Nearest,
    PopCount,
    LeadingZeros,
    Add,
    Sub,
    Mul,
    Div,
    /// `if a < b { a } else { b }` of floats; of signed integers the lesser.
    Min,
    /// `if a > b { a } else { b }` of floats; of signed integers the greater.
    Max,
    MinU,
    MaxU,
    And,
    Or,
    Xor,
    /// `a & !b`.
    AndNot,
    Shl,
    Shr,
    Sar,
    ShlBy(u8),
    ShrBy(u8),
    SarBy(u8),
    RotBy(u8),
    Scale,
    /// `a * b + c`.
    Fma,
    /// `c - a * b`.
    Fnma,
    /// `a ^ (b & c)`.
    Flip,
    /// A mask from elements. Machines with mask registers compare only the lanes of `part`, and clear the others.
    Compare(Cmp),
    Test,
    /// `b` where the mask `a` is set, else `c`.
    Select,
    /// From elements of the first type to elements of `elem`.
    Convert(Conv, Elem),
    /// The lanes of `a` as the kernel at this position leaves them, which is passed their address and their number.
    /// No register keeps its value.
    Apply(u16),

    // Masks. `elem` is the integer whose width a vector that stands for a mask has.
    MaskAnd,
    MaskOr,
    MaskXor,
    /// `a & !b`.
    MaskAndNot,
    MaskNot,
    /// The first lanes, as many as the general register `a` says: no less than 0, any number above.
    MaskFirst,
    /// The same lanes for elements of another width: from the first type to `elem`. Machines with mask registers have
    /// no use for it.
    MaskResize(Elem),
    /// Lane 0 for all lanes.
    MaskSplat,

    // Vectors as a whole.
    /// The constant of the pool at this index. It can be made again at any time.
    Const(u32),
    /// Lane 0 for all lanes.
    Splat,
    /// Every other lane of `a` and then of `b`: the even ones, or the odd ones. Elements have four bytes or
    /// eight, and vectors two lanes at least.
    Unzip(bool),
    /// Lanes of `a` and `b` in turn: those of the lower halves, or of the upper ones.
    Zip(bool),
    /// The lanes of `a` whose numbers lack the bit `by`, or have it, and then those of `b`: within each 16 bytes, or
    /// within all lanes where `by` lanes are 16 bytes or more. Elements have four bytes or eight, and all lanes 16
    /// bytes at least.
    Fold {
        by: u8,
        has: bool,
    },
    /// The lanes in reverse order. Elements have four bytes or eight, and vectors two lanes at least.
    Reverse,
    /// For each lane the lane of `a` and then of `b` that the constant at this index says. Elements have four bytes or
    /// eight, and vectors two lanes at least.
    Permute(u32),
    /// Lanes from `n` on, in the lanes from 0 on. The other lanes are not specified.
    Upper(u8),

    // Memory. The address is the instruction's `mem`.
    /// `lanes` elements.
    Load,
    /// One element, for all lanes.
    LoadSplat,
    /// The elements that `part` says; the other lanes are 0, and no byte of theirs is touched.
    LoadPart,
    Store,
    /// Past the caches.
    StoreStreaming,
    /// The elements that `part` says, and no other byte.
    StorePart,
    /// The element at `a` elements from the address, for each lane. `a` has I32 or I64, the first type.
    Gather(Elem),

    // General registers.
    /// This number. It can be made again at any time.
    Number(i64),
    /// The caller's argument at this position, in words of eight bytes: a pointer or a scalar. It can be made again.
    Argument(u16),
    AddNumber(i32),
    MulNumber(i32),
    GeneralAdd,
    GeneralSub,
    GeneralMul,
    GeneralMin,
    GeneralMax,
    /// Lane 0, an integer, sign-extended.
    ToGeneral,
    /// A vector whose lane 0 is the low bits.
    OfGeneral,

    // Control flow.
    /// Begins a loop; its list has pairs of what is carried and its first value.
    Loop(ListId),
    /// Ends a loop, which goes on if `a` and `b` compare so. The list has what is carried and its next value.
    EndLoop(ListId, Cond),
    /// Ends a loop that goes on always.
    EndLoopAlways(ListId),
    /// Leaves the innermost loop unless lane 0 of the mask `a` is set.
    While,
    /// Leaves the innermost loop unless `a` and `b` compare so.
    WhileGeneral(Cond),
    /// Begins what runs if any of the `lanes` lanes of the mask `a` is set.
    If,
    /// Begins what runs if `a` and `b` compare so.
    IfGeneral(Cond),
    Else,
    /// Ends a condition. The list has triples: the value behind it, and those of either side.
    EndIf(ListId),
    /// Calls the kernel at this position among the caller's, with the numbers of the list; returns what it returns if
    /// that is not 0.
    Call(u16, ListId),
}

impl Op {
    /// Whether the value can be made at any place, so that it is never stored.
    pub(crate) fn is_rematerialized(self) -> bool {
        let (Op::Const(_) | Op::Number(_) | Op::Argument(_)) = self else { return false };
        true
    }
}

/// An index to [`Code::lists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListId(pub(crate) u32);

/// An address: `base + index * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mem {
    pub(crate) base: Reg,
    pub(crate) index: Reg,
    /// 1, 2, 4 or 8.
    pub(crate) scale: u8,
    pub(crate) offset: i32,
}

/// Which lanes an instruction has, where not all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    All,
    /// The first ones, by a general register: at least 0, and no more than there are.
    Count(Reg),
    /// Those of a mask register.
    Mask(Reg),
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    pub(crate) elem: Elem,
    /// 1 for scalars.
    pub(crate) lanes: u8,
    pub(crate) dst: Reg,
    pub(crate) src: [Reg; 3],
    pub(crate) mem: Mem,
    pub(crate) part: Part,
}

impl Mem {
    /// No address.
    pub(crate) const NONE: Mem = Mem { base: Reg::NONE, index: Reg::NONE, scale: 1, offset: 0 };
}

/// A constant: its lanes as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// The same element for all lanes.
    Splat(Elem, u64),
    /// 0, 1, 2 and so on.
    Iota(Elem),
    /// Numbers of lanes. No register has it.
    Lanes([u8; 16]),
}

/// A function as machine instructions.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) insts: Vec<Inst>,
    /// The class of each virtual register.
    pub(crate) classes: Vec<Class>,
    /// Registers that control flow and calls read and write.
    pub(crate) lists: Vec<SmallVec<[Reg; 6]>>,
    pub(crate) constants: Vec<Constant>,
    /// The most lanes that the vectors of a row have.
    pub(crate) lanes: u8,
}

impl Code {
    pub(crate) fn list(&self, id: ListId) -> &[Reg] {
        &self.lists[id.0 as usize]
    }

    pub(crate) fn class(&self, reg: Reg) -> Class {
        self.classes[reg.index()]
    }

    /// A new virtual register.
    pub(crate) fn reg(&mut self, class: Class) -> Reg {
        self.classes.push(class);
        Reg(self.classes.len() as u32 - 1)
    }
}

impl std::fmt::Display for Reg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_some() { write!(f, "v{}", self.0) } else { f.write_str("-") }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut depth = 1;
        for (at, inst) in self.insts.iter().enumerate() {
            if let Op::Else | Op::EndIf(_) | Op::EndLoop(..) | Op::EndLoopAlways(_) = inst.op {
                depth -= 1;
            }
            write!(f, "{at:4}:{:1$}", "", 2 * depth)?;
            if inst.dst.is_some() {
                write!(f, "{} = ", inst.dst)?;
            }
            write!(f, "{:?} {}x{}", inst.op, inst.elem, inst.lanes)?;
            for reg in inst.src.iter().filter(|reg| reg.is_some()) {
                write!(f, " {reg}")?;
            }
            if inst.mem.base.is_some() {
                write!(
                    f,
                    " [{} + {} * {} + {}]",
                    inst.mem.base, inst.mem.index, inst.mem.scale, inst.mem.offset
                )?;
            }
            match inst.part {
                Part::All => {}
                Part::Count(reg) => write!(f, " count {reg}")?,
                Part::Mask(reg) => write!(f, " mask {reg}")?,
            }
            if let Op::Loop(list)
            | Op::EndLoop(list, _)
            | Op::EndLoopAlways(list)
            | Op::EndIf(list)
            | Op::Call(_, list) = inst.op
            {
                self.list(list).iter().try_for_each(|reg| write!(f, " {reg}"))?;
            }
            writeln!(f)?;
            if let Op::Else | Op::If | Op::IfGeneral(_) | Op::Loop(_) = inst.op {
                depth += 1;
            }
        }
        Ok(())
    }
}
