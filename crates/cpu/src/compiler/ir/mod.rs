//! The loop-nest IR: typed SSA over scalars, vectors and predicates, with structured control flow.
//!
//! A [`Function`] is a flat list of instructions. An instruction is also the value that it defines. Control flow is
//! structured: `loop ... end`, `if ... else ... end` and `lanes ... end` nest, and a value is visible from its
//! definition to the end of the block that holds it.
//!
//! `lanes` is the loop that is vectorized. Its body runs for each element of a row, for several elements at once; how
//! many is the executor's choice, and no result depends on it. A value inside it is a *vector* if it depends on the
//! element, else a *scalar*. An op with a vector among its operands gives a vector: scalars are broadcast.
//!
//! Every op has one meaning, which all executors share bit for bit:
//!
//! * Float arithmetic is that of IEEE 754, rounded to nearest, never contracted: [`Op::Fma`] is the only fused product.
//! * [`Op::Min`] and [`Op::Max`] of floats are NaN if either operand is, else `if a < b { a } else { b }`.
//! * Integers wrap. Division by zero gives all bits set, and the remainder by zero is the dividend. The quotient of the
//!   least integer by -1 wraps, and its remainder is 0.
//! * A shift by the width or more gives 0, or copies of the sign for [`Op::Sar`]. The distance is read as unsigned.
//! * Conversions from floats to integers truncate and saturate; NaN gives 0.
//! * [`Op::Scale`] is `a * 2^b` for an integral float `b`, rounded once.
//!
//! Signs and payloads of NaN are not specified.

mod builder;
mod folds;
mod forward;
pub(crate) mod functions;
mod known;
mod print;
#[cfg(test)]
pub(crate) mod random;
mod ranges;
mod rewrite;
mod rows;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use builder::Builder;
pub(crate) use print::constant;
#[cfg(test)]
pub(crate) use verify::verify;

use smallvec::SmallVec;

/// A value: the position of the instruction that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Val(pub(crate) u32);

impl Val {
    /// No operand.
    pub(crate) const NONE: Val = Val(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_some(self) -> bool {
        self != Val::NONE
    }
}

/// The type of an element. Integers have no sign; ops that depend on one name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Elem {
    /// A predicate.
    Bit,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    /// A 64-bit integer for counters and addresses. It is never a vector.
    Index,
}

impl Elem {
    /// The bytes of an element in memory. Predicates are not stored.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Elem::Bit => 0,
            Elem::I8 => 1,
            Elem::I16 => 2,
            Elem::I32 | Elem::F32 => 4,
            Elem::I64 | Elem::F64 | Elem::Index => 8,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        match self {
            Elem::F32 | Elem::F64 => true,
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => false,
        }
    }

    /// The integer of the same width.
    pub(crate) fn integer(self) -> Elem {
        match self {
            Elem::F32 => Elem::I32,
            Elem::F64 => Elem::I64,
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => self,
        }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ty {
    pub(crate) elem: Elem,
    /// Whether it has a value for each lane of the innermost `lanes` around it.
    pub(crate) is_vector: bool,
}

impl Ty {
    pub(crate) fn scalar(elem: Elem) -> Ty {
        Ty { elem, is_vector: false }
    }
}

/// How two values are compared. Comparisons of floats are false if either is NaN, but for `Ne`, which is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    /// Floats, or signed integers.
    Lt,
    Le,
    /// Unsigned integers.
    LtU,
    LeU,
}

/// A conversion from the operand's element type to the instruction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Conv {
    /// An integer to a wider one, by zeros.
    ZeroExtend,
    /// An integer to a wider one, by copies of the sign.
    SignExtend,
    /// The low bits of an integer.
    Truncate,
    /// A signed integer to a float, rounded once.
    FloatOfS,
    /// An unsigned integer to a float, rounded once.
    FloatOfU,
    /// A float to a signed integer.
    ToS,
    /// A float to an unsigned integer.
    ToU,
    /// f32 to f64, or f64 to f32.
    Float,
    /// The 16 bits of an IEEE half, in I16, to f32.
    OfHalf,
    /// f32 to the 16 bits of the nearest IEEE half, in I16.
    ToHalf,
    /// The same bits under a type of the same width.
    Bitcast,
    /// A predicate to 0 or 1.
    OfBit,
    /// A scalar integer, sign-extended, to an index.
    ToIndex,
    /// An index to a scalar integer.
    OfIndex,
}

/// Functions whose code is too long to be generated. They are computed in f64; for f32 the result is rounded once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rare {
    /// The sine of a number of any size.
    Sin,
    /// The cosine of a number of any size.
    Cos,
    /// The tangent of a number of any size.
    Tan,
}

/// How the elements of a row are reduced to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduce {
    Add,
    Mul,
    Min,
    Max,
    MinU,
    MaxU,
    And,
    Or,
}

/// What an instruction does. `a`, `b` and `c` are its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    // Values.
    /// The constant with these bits.
    Const(u64),
    /// A scalar that the caller passes, by its position among the arguments.
    Param(u16),
    /// The position of the element in its row, in I32 or I64.
    Lane,

    // Of one operand.
    Not,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    PopCount,
    LeadingZeros,
    Convert(Conv),
    /// A function of f32 or f64 that compiled Rust code computes, one element after the other: for what is rare.
    Apply(Rare),

    // Of two.
    Add,
    Sub,
    Mul,
    /// The quotient of floats.
    Div,
    DivS,
    DivU,
    RemS,
    RemU,
    /// The lesser of floats or signed integers.
    Min,
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
    /// Shifts by a constant below the width.
    ShlBy(u8),
    ShrBy(u8),
    SarBy(u8),
    /// Rotates to the left by a constant below the width.
    RotBy(u8),
    /// `a * 2^b`.
    Scale,
    Compare(Cmp),
    /// Whether `a & b` is not zero.
    Test,
    /// Whether a vector predicate holds for any of the lanes that are executed together. It may only decide whether to
    /// skip work that would change nothing: how many lanes these are differs between executors.
    Any,

    // Of three.
    /// `a * b + c`, rounded once.
    Fma,
    /// `c - a * b`, rounded once.
    Fnma,
    /// `a ^ (b & c)`.
    Flip,
    /// `b` where the predicate `a` holds, else `c`.
    Select,

    // Memory.
    /// Loads an element, or one for each lane.
    Load(AccessId),
    /// Stores `a`.
    Store(AccessId),
    /// Loads the element of a buffer at the position `a`, which counts elements from the access' own position.
    Gather(AccessId),

    // Control flow.
    /// Begins a loop of `a` trips, or without an end. The value is the counter.
    Loop,
    /// A value that a loop carries, right behind its `Loop`: `a` before the first trip. Behind the loop it has the value
    /// of the last trip.
    Carry,
    /// Leaves the innermost loop unless the scalar predicate `a` holds; what is carried keeps its values.
    While,
    /// Ends a loop. The list has pairs of what is carried and its next value.
    EndLoop(ListId),
    /// Begins what runs if the scalar predicate `a` holds.
    If,
    Else,
    /// Ends a condition. The list has pairs of values of either side.
    EndIf(ListId),
    /// The value of a condition, right behind its `EndIf`: `a` or `b`, a pair of the list.
    Join,
    /// An accumulator of so many lanes for the elements of the next `Lanes`, before which it stands: element `i` is
    /// added to lane `i` modulo their number, and the halves of the lanes are then joined until one is left. Behind the
    /// `Lanes` the value is the result. Without elements it is `a`, the neutral element, which lanes start from.
    Accumulator(Reduce, u16),
    /// Begins the vectorized loop over a row of `a` elements.
    Lanes,
    /// Adds `b` to the accumulator `a`.
    Reduce,
    EndLanes,
    /// Calls a kernel of the function; if it returns a number other than 0 the function returns that at once.
    Call(CallId),
}

/// An index to [`Function::accesses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AccessId(pub(crate) u32);

/// An index to [`Function::lists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListId(pub(crate) u32);

/// An index to [`Function::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId(pub(crate) u32);

/// An instruction, and the value that it defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    pub(crate) ty: Ty,
    pub(crate) args: [Val; 3],
}

/// Where elements are in memory: an affine map from counters and the lane to bytes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    /// Which pointer of the caller's.
    pub(crate) buffer: u16,
    /// Bytes from the pointer to the first element.
    pub(crate) offset: i64,
    /// Index values, and the bytes that each step of one is.
    pub(crate) terms: SmallVec<[(Val, i64); 3]>,
    /// Bytes from a lane's element to the next lane's. 0 loads one element for all.
    pub(crate) lane: i64,
    /// Whether what is stored is not read again soon and should go past the caches.
    pub(crate) is_streaming: bool,
}

/// A call of a kernel: a function of the caller's that takes addresses and scalars.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// Which function of the caller's.
    pub(crate) kernel: u16,
    /// What it is passed.
    pub(crate) args: SmallVec<[CallArg; 4]>,
}

/// An argument of a [`Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallArg {
    /// An index, which may be an address.
    Index(Val),
}

/// A function over buffers, pure but for what it stores and calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub(crate) insts: Vec<Inst>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) lists: Vec<Vec<(Val, Val)>>,
    pub(crate) calls: Vec<Call>,
    /// How many pointers the caller passes.
    pub(crate) buffers: u16,
    /// How many scalars the caller passes, behind the pointers. Each is eight bytes.
    pub(crate) params: u16,
    /// How many kernels the caller passes, behind the scalars.
    pub(crate) kernels: u16,
}

/// Functions that compiled code computes, and the types of their elements.
pub(crate) type Applied = SmallVec<[(Rare, Elem); 3]>;

/// The status that a kernel returns, and the function: 0 for success.
pub(crate) type Status = u32;

/// A kernel that a function calls, with its arguments as 64-bit numbers: addresses and indices.
pub(crate) type Kernel = unsafe extern "C" fn(context: *mut (), args: *const u64) -> Status;

/// A kernel, and what it is passed first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct BoundKernel {
    pub(crate) run: Kernel,
    pub(crate) context: *mut (),
}

impl Function {
    pub(crate) fn inst(&self, value: Val) -> &Inst {
        &self.insts[value.index()]
    }

    pub(crate) fn ty(&self, value: Val) -> Ty {
        self.insts[value.index()].ty
    }

    pub(crate) fn access(&self, id: AccessId) -> &Access {
        &self.accesses[id.0 as usize]
    }

    pub(crate) fn list(&self, id: ListId) -> &[(Val, Val)] {
        &self.lists[id.0 as usize]
    }

    pub(crate) fn call(&self, id: CallId) -> &Call {
        &self.calls[id.0 as usize]
    }

    /// The first and the last instruction of each loop, condition and `lanes`, the inner ones first.
    fn blocks(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut open: SmallVec<[usize; 6]> = SmallVec::new();
        self.insts.iter().enumerate().filter_map(move |(at, inst)| {
            if let Op::Loop | Op::If | Op::Lanes = inst.op {
                open.push(at);
            } else if let Op::EndLoop(_) | Op::EndIf(_) | Op::EndLanes = inst.op {
                return Some((open.pop().expect("a block is open"), at));
            }
            None
        })
    }

    /// What [`Op::Apply`] computes in the function, each once. Machine code calls a kernel for it: those kernels stand
    /// behind the caller's, in this order.
    pub(crate) fn applied(&self) -> Applied {
        let mut applied = Applied::new();
        for inst in &self.insts {
            if let Op::Apply(rare) = inst.op
                && !applied.contains(&(rare, inst.ty.elem))
            {
                applied.push((rare, inst.ty.elem));
            }
        }
        applied
    }

    /// The values of instructions, in order.
    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = Val> + use<> {
        (0..self.insts.len() as u32).map(Val)
    }
}

impl Inst {
    /// The operands that exist.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Val> + use<> {
        self.args.into_iter().filter(|value| value.is_some())
    }
}

impl Op {
    /// The bits of a constant.
    pub(crate) fn constant(self) -> Option<u64> {
        if let Op::Const(bits) = self { Some(bits) } else { None }
    }

    /// Whether the value is known before the function begins: a constant, or an argument.
    pub(crate) fn is_given(self) -> bool {
        let (Op::Const(_) | Op::Param(_)) = self else { return false };
        true
    }
}

impl Reduce {
    /// The op that joins two values.
    pub(crate) fn op(self) -> Op {
        match self {
            Reduce::Add => Op::Add,
            Reduce::Mul => Op::Mul,
            Reduce::Min => Op::Min,
            Reduce::Max => Op::Max,
            Reduce::MinU => Op::MinU,
            Reduce::MaxU => Op::MaxU,
            Reduce::And => Op::And,
            Reduce::Or => Op::Or,
        }
    }

    /// The bits of the neutral element. For sums of floats it is -0: `0 + -0` would lose the sign.
    pub(crate) fn neutral(self, elem: Elem) -> u64 {
        let all = u64::MAX >> (64 - 8 * elem.bytes());
        let least = 1 << (8 * elem.bytes() - 1);
        let float = |single: f32, double: f64| match elem {
            Elem::F32 => Some(u64::from(single.to_bits())),
            Elem::F64 => Some(double.to_bits()),
            Elem::Bit | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => None,
        };
        match self {
            Reduce::Add => float(-0.0, -0.0).unwrap_or(0),
            Reduce::Mul => float(1.0, 1.0).unwrap_or(1),
            Reduce::Min => float(f32::INFINITY, f64::INFINITY).unwrap_or(all ^ least),
            Reduce::Max => float(f32::NEG_INFINITY, f64::NEG_INFINITY).unwrap_or(least),
            Reduce::MinU | Reduce::And => all,
            Reduce::MaxU | Reduce::Or => 0,
        }
    }
}
