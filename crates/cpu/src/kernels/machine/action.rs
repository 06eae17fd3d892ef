//! The instructions of a machine: what each does with its registers.

use std::mem::MaybeUninit;

use defn_core::op::{BinaryOp, UnaryOp};
use defn_core::{DType, Kind};
use half::{bf16, f16};

use super::Registers;
use super::steady::Steady;
use crate::kernels::elementwise::cast::Small;
use crate::kernels::elementwise::vector::{Base, Lanes};
use crate::kernels::math::Float;
use crate::kernels::{CastFrom, E4m3, E5m2, Element, Integer, Plain, Real, with_real};

/// What an instruction does. It says whether the program may go on.
pub(crate) type Action = fn(&Instruction, &mut Registers) -> bool;

/// One step: an action and its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(super) run: Action,
    pub(super) role: Role,
    pub(super) unary: UnaryOp,
    pub(super) binary: BinaryOp,
    /// The type of the result; of what is compared; of what lies in memory.
    pub(super) dtype: DType,
    /// The registers that are read, of which there are so many.
    pub(super) operands: [u8; 4],
    pub(super) reads: u8,
    /// The registers that are written, of which there are so many.
    pub(super) out: [u8; 2],
    pub(super) writes: u8,
    /// What it does in many trips of a loop.
    pub(super) steady: Steady,
}

/// What an instruction is to those that put instructions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It only writes its result, which depends on registers alone.
    Pure,
    /// So does this; it is one op whose operands and result have one type.
    Arithmetic,
    /// So does this; it compares two elements of one type.
    Comparison,
    /// It says whether the program goes on.
    Test,
    /// It stays where it is: it reads or writes memory, or several registers.
    Fixed,
}

impl Instruction {
    /// An instruction that reads and writes registers.
    pub(super) fn new(run: Action, role: Role, inputs: &[u8], outputs: &[u8], dtype: DType) -> Instruction {
        let (mut operands, mut out) = ([0; 4], [0; 2]);
        operands[..inputs.len()].copy_from_slice(inputs);
        out[..outputs.len()].copy_from_slice(outputs);
        let (reads, writes) = (inputs.len() as u8, outputs.len() as u8);
        Instruction {
            run,
            role,
            unary: UnaryOp::NEGATE,
            binary: BinaryOp::ADD,
            dtype,
            operands,
            reads,
            out,
            writes,
            steady: Steady::Unknown,
        }
    }

    /// Goes on where a register is not zero.
    pub(super) fn testing(register: u8) -> Instruction {
        let run: Action = |i, words| words[usize::from(i.operands[0])] != 0;
        Instruction::new(run, Role::Test, &[register], &[], DType::U64)
    }

    /// The registers that are read.
    pub(super) fn inputs(&self) -> &[u8] {
        &self.operands[..usize::from(self.reads)]
    }

    /// The registers that are written.
    pub(super) fn outputs(&self) -> &[u8] {
        &self.out[..usize::from(self.writes)]
    }

    #[inline(always)]
    fn read<T: Word>(&self, operand: usize, words: &Registers) -> T {
        T::from_word(words[usize::from(self.operands[operand])])
    }

    #[inline(always)]
    fn write<T: Word>(&self, words: &mut Registers, x: T) {
        words[usize::from(self.out[0])] = x.word();
    }

    #[inline(always)]
    pub(super) fn one<A: Word, B: Word>(&self, words: &mut Registers, f: impl Fn(A) -> B) -> bool {
        let a = self.read(0, words);
        self.write(words, f(a));
        true
    }

    #[inline(always)]
    pub(super) fn two<A: Word, B: Word>(&self, words: &mut Registers, f: impl Fn(A, A) -> B) -> bool {
        let (a, b) = (self.read(0, words), self.read(1, words));
        self.write(words, f(a, b));
        true
    }

    /// Whether two elements are in a relation.
    #[inline(always)]
    pub(super) fn is<T: Word>(&self, words: &Registers, f: impl Fn(T, T) -> bool) -> bool {
        f(self.read(0, words), self.read(1, words))
    }

    #[inline(always)]
    pub(super) fn three<A: Word>(&self, words: &mut Registers, f: impl Fn(A, A, A) -> A) -> bool {
        let (a, b, c) = (self.read(0, words), self.read(1, words), self.read(2, words));
        self.write(words, f(a, b, c));
        true
    }
}

/// Elements that a register holds: integers extended by their sign, floats as their bits.
pub(super) trait Word: Lanes + Real {
    /// The element of a register.
    fn from_word(word: u64) -> Self;
    /// The element in a register.
    fn word(self) -> u64;
    /// What computes an op of two elements of this type, whose result has it too.
    fn binary_action(op: BinaryOp) -> Action;
}

macro_rules! integer_words {
    ($($ty:ty),*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn from_word(word: u64) -> $ty { word as $ty }
            #[inline(always)]
            fn word(self) -> u64 { self as u64 }
            fn binary_action(op: BinaryOp) -> Action { integer_action::<$ty>(op) }
        }
    )*};
}
integer_words!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! float_words {
    ($($ty:ty, $bits:ty;)*) => {$(
        impl Word for $ty {
            #[inline(always)]
            fn from_word(word: u64) -> $ty { <$ty>::from_bits(word as $bits) }
            #[inline(always)]
            fn word(self) -> u64 { u64::from(self.to_bits()) }
            fn binary_action(op: BinaryOp) -> Action { float_action::<$ty>(op) }
        }
    )*};
}
float_words! {
    f32, u32;
    f64, u64;
}

/// An op of a tile on one element.
pub(super) fn unary_tile<T: Word>(instruction: &Instruction, words: &mut Registers) -> bool {
    instruction.one(words, |x: T| {
        let mut out = [MaybeUninit::uninit()];
        T::unary(instruction.unary, instruction.dtype.bits() as u32, &[x], &mut out);
        let [out] = out;
        // SAFETY: the op writes every element of the tile.
        unsafe { out.assume_init() }
    })
}

/// An op of a tile on one pair of elements.
pub(super) fn binary_tile<T: Word>(instruction: &Instruction, words: &mut Registers) -> bool {
    instruction.two(words, |a: T, b: T| {
        let mut out = [MaybeUninit::uninit()];
        T::binary(instruction.binary, &[a], &[b], &mut out);
        let [out] = out;
        // SAFETY: the op writes every element of the tile.
        unsafe { out.assume_init() }
    })
}

fn integer_action<T: Word + Integer>(op: BinaryOp) -> Action {
    match op {
        BinaryOp::ADD => |i, words| i.two(words, T::plus),
        BinaryOp::SUBTRACT => |i, words| i.two(words, T::minus),
        BinaryOp::MULTIPLY => |i, words| i.two(words, T::times),
        BinaryOp::QUOTIENT => |i, words| i.two(words, T::quotient),
        BinaryOp::REMAINDER => |i, words| i.two(words, T::remainder),
        BinaryOp::MAX => |i, words| i.two(words, T::greater),
        BinaryOp::MIN => |i, words| i.two(words, T::lesser),
        BinaryOp::BITWISE_AND => |i, words| i.two(words, T::both),
        BinaryOp::BITWISE_OR => |i, words| i.two(words, T::either),
        BinaryOp::BITWISE_XOR => |i, words| i.two(words, T::one_of),
        BinaryOp::LEFT_SHIFT => |i, words| i.two(words, T::shifted_left),
        BinaryOp::RIGHT_SHIFT => |i, words| i.two(words, T::shifted_right),
        BinaryOp::POW
        | BinaryOp::DIVIDE
        | BinaryOp::ATAN2
        | BinaryOp::EQUAL
        | BinaryOp::NOT_EQUAL
        | BinaryOp::GREATER
        | BinaryOp::GREATER_EQUAL
        | BinaryOp::LESS
        | BinaryOp::LESS_EQUAL
        | BinaryOp::LOGICAL_AND
        | BinaryOp::LOGICAL_OR
        | BinaryOp::LOGICAL_XOR
        | BinaryOp::Complex => binary_tile::<T>,
    }
}

fn float_action<T: Word + Float>(op: BinaryOp) -> Action {
    match op {
        BinaryOp::ADD => |i, words| i.two(words, T::plus),
        BinaryOp::SUBTRACT => |i, words| i.two(words, T::minus),
        BinaryOp::MULTIPLY => |i, words| i.two(words, T::times),
        BinaryOp::DIVIDE => |i, words| i.two(words, T::over),
        BinaryOp::REMAINDER => |i, words| i.two(words, T::remainder),
        BinaryOp::MAX => |i, words| i.two(words, T::greater),
        BinaryOp::MIN => |i, words| i.two(words, T::lesser),
        BinaryOp::POW
        | BinaryOp::ATAN2
        | BinaryOp::QUOTIENT
        | BinaryOp::BITWISE_AND
        | BinaryOp::BITWISE_OR
        | BinaryOp::BITWISE_XOR
        | BinaryOp::LEFT_SHIFT
        | BinaryOp::RIGHT_SHIFT
        | BinaryOp::EQUAL
        | BinaryOp::NOT_EQUAL
        | BinaryOp::GREATER
        | BinaryOp::GREATER_EQUAL
        | BinaryOp::LESS
        | BinaryOp::LESS_EQUAL
        | BinaryOp::LOGICAL_AND
        | BinaryOp::LOGICAL_OR
        | BinaryOp::LOGICAL_XOR
        | BinaryOp::Complex => binary_tile::<T>,
    }
}

/// What compares two elements, if the op does.
pub(super) fn comparison<T: Word>(op: BinaryOp) -> Option<Action> {
    Some(match op {
        BinaryOp::EQUAL => |i, words| i.two(words, |a: T, b: T| u8::from(a == b)),
        BinaryOp::NOT_EQUAL => |i, words| i.two(words, |a: T, b: T| u8::from(a != b)),
        BinaryOp::GREATER => |i, words| i.two(words, |a: T, b: T| u8::from(a > b)),
        BinaryOp::GREATER_EQUAL => |i, words| i.two(words, |a: T, b: T| u8::from(a >= b)),
        BinaryOp::LESS => |i, words| i.two(words, |a: T, b: T| u8::from(a < b)),
        BinaryOp::LESS_EQUAL => |i, words| i.two(words, |a: T, b: T| u8::from(a <= b)),
        BinaryOp::ADD
        | BinaryOp::SUBTRACT
        | BinaryOp::MULTIPLY
        | BinaryOp::DIVIDE
        | BinaryOp::POW
        | BinaryOp::ATAN2
        | BinaryOp::QUOTIENT
        | BinaryOp::REMAINDER
        | BinaryOp::MAX
        | BinaryOp::MIN
        | BinaryOp::BITWISE_AND
        | BinaryOp::BITWISE_OR
        | BinaryOp::BITWISE_XOR
        | BinaryOp::LEFT_SHIFT
        | BinaryOp::RIGHT_SHIFT
        | BinaryOp::LOGICAL_AND
        | BinaryOp::LOGICAL_OR
        | BinaryOp::LOGICAL_XOR
        | BinaryOp::Complex => return None,
    })
}

/// What the second of two integers must be for an op to have a result, where that is checked.
pub(super) fn requirement(op: BinaryOp, dtype: DType) -> Option<Action> {
    match op {
        BinaryOp::QUOTIENT | BinaryOp::REMAINDER => Some(|i, words| words[usize::from(i.operands[0])] != 0),
        BinaryOp::POW | BinaryOp::LEFT_SHIFT | BinaryOp::RIGHT_SHIFT => {
            let not_negative: Action = |i, words| words[usize::from(i.operands[0])] as i64 >= 0;
            (dtype.kind() == Kind::Signed).then_some(not_negative)
        }
        BinaryOp::ADD
        | BinaryOp::SUBTRACT
        | BinaryOp::MULTIPLY
        | BinaryOp::DIVIDE
        | BinaryOp::MAX
        | BinaryOp::MIN
        | BinaryOp::ATAN2
        | BinaryOp::BITWISE_AND
        | BinaryOp::BITWISE_OR
        | BinaryOp::BITWISE_XOR
        | BinaryOp::EQUAL
        | BinaryOp::NOT_EQUAL
        | BinaryOp::GREATER
        | BinaryOp::GREATER_EQUAL
        | BinaryOp::LESS
        | BinaryOp::LESS_EQUAL
        | BinaryOp::LOGICAL_AND
        | BinaryOp::LOGICAL_OR
        | BinaryOp::LOGICAL_XOR
        | BinaryOp::Complex => None,
    }
}

/// The logarithm to a base.
pub(super) fn log_to<T: Word>(base: Base) -> Action {
    fn of<T: Word>(base: Base, x: T) -> T {
        let mut out = [MaybeUninit::uninit()];
        T::log_to(base, &[x], &mut out);
        let [out] = out;
        // SAFETY: the op writes every element of the tile.
        unsafe { out.assume_init() }
    }
    match base {
        Base::Two => |i, words| i.one(words, |x: T| of(Base::Two, x)),
        Base::Ten => |i, words| i.one(words, |x: T| of(Base::Ten, x)),
    }
}

/// A comparison of a signed and an unsigned integer of 64 bits, by their values.
pub(super) fn compare_mixed(op: BinaryOp, is_left_signed: bool) -> Option<Action> {
    #[inline(always)]
    fn compare(i: &Instruction, words: &mut Registers, f: impl Fn(i128, i128) -> bool) -> bool {
        let [a, b] = [0, 1].map(|operand| words[usize::from(i.operands[operand])]);
        // Which side is signed is in the type: that of the left.
        let (a, b) = if i.dtype == DType::S64 {
            (i128::from(a as i64), i128::from(b))
        } else {
            (i128::from(a), i128::from(b as i64))
        };
        i.write(words, u8::from(f(a, b)));
        true
    }
    debug_assert!(comparison::<i64>(op).is_some() || !is_left_signed);
    if op == BinaryOp::EQUAL {
        Some(|i, words| compare(i, words, |a, b| a == b))
    } else if op == BinaryOp::NOT_EQUAL {
        Some(|i, words| compare(i, words, |a, b| a != b))
    } else if op == BinaryOp::GREATER {
        Some(|i, words| compare(i, words, |a, b| a > b))
    } else if op == BinaryOp::GREATER_EQUAL {
        Some(|i, words| compare(i, words, |a, b| a >= b))
    } else if op == BinaryOp::LESS {
        Some(|i, words| compare(i, words, |a, b| a < b))
    } else if op == BinaryOp::LESS_EQUAL {
        Some(|i, words| compare(i, words, |a, b| a <= b))
    } else {
        None
    }
}

/// The bits of a number as an element of a small float, and the number that they are.
#[inline(always)]
fn round(x: f32, dtype: DType) -> (u64, f32) {
    if dtype == DType::F16 {
        let x = f16::from_f32(x);
        return (u64::from(x.to_bits()), x.wide());
    }
    if dtype == DType::BF16 {
        let x = bf16::from_f32(x);
        return (u64::from(x.to_bits()), x.wide());
    }
    let mut code = [MaybeUninit::uninit()];
    f32::encode(&[x], dtype, &mut code);
    // SAFETY: the element is encoded in this byte.
    let code = unsafe { code[0].assume_init() };
    // SAFETY: any byte is an element of either type.
    let wide = unsafe {
        if dtype == DType::F8E5M2 {
            std::mem::transmute::<u8, E5m2>(code).wide()
        } else {
            std::mem::transmute::<u8, E4m3>(code).wide()
        }
    };
    (u64::from(code), wide)
}

/// Brings a number to the precision and range of a type that is computed in another, if it is one. It was converted
/// from a float if `from_float` is set.
pub(super) fn fit(dtype: DType, from_float: bool) -> Option<Action> {
    fn integer<T: Word, const FLOAT: bool>(i: &Instruction, words: &mut Registers) -> bool {
        i.one(words, |mut x: T| {
            T::fit(std::slice::from_mut(&mut x), i.dtype, FLOAT);
            x
        })
    }
    with_real!(dtype, T => {
        if T::stores(dtype) {
            None
        } else if dtype.is_float() {
            Some(|i, words| i.one(words, |x: f32| round(x, i.dtype).1))
        } else if from_float {
            Some(integer::<T, true>)
        } else {
            Some(integer::<T, false>)
        }
    })
}

/// An element of type `S` as one of a dtype that is computed in `C`, which [`fit`] then brings into it.
pub(super) fn convert<S: Word, C: Word + CastFrom<S>>(dtype: DType) -> Action {
    // Only into the small floats would f32 in between round twice.
    if C::COMPUTES_SMALL_FLOATS && dtype != C::DTYPE {
        |i, words| i.one(words, |x: S| <C as CastFrom<S>>::cast_odd(x))
    } else {
        |i, words| i.one(words, |x: S| <C as CastFrom<S>>::cast_from(x))
    }
}

/// Reads an element where an address says.
pub(super) fn load(dtype: DType) -> Action {
    fn of<T: Plain, C: Word>(i: &Instruction, words: &mut Registers, f: impl Fn(T) -> C) -> bool {
        let address = words[usize::from(i.operands[0])] as usize;
        let address = std::ptr::with_exposed_provenance::<T>(address);
        // SAFETY: who makes programs gives addresses of elements of the type, which are written and aligned.
        let x = unsafe { address.read() };
        i.write(words, f(x));
        true
    }
    if dtype == DType::F16 {
        |i, words| of(i, words, |x: f16| x.wide())
    } else if dtype == DType::BF16 {
        |i, words| of(i, words, |x: bf16| x.wide())
    } else if dtype == DType::F8E5M2 {
        |i, words| of(i, words, |x: E5m2| x.wide())
    } else if dtype == DType::F8E4M3FN {
        |i, words| of(i, words, |x: E4m3| x.wide())
    } else {
        with_real!(dtype, T => |i, words| of(i, words, |x: T| x))
    }
}

/// Writes the second register's element where the address in the first says.
pub(super) fn store(dtype: DType) -> Action {
    #[inline(always)]
    fn of<C: Word, T: Plain>(i: &Instruction, words: &mut Registers, f: impl Fn(C) -> T) -> bool {
        let address = words[usize::from(i.operands[0])] as usize;
        let address = std::ptr::with_exposed_provenance_mut::<T>(address);
        let x = f(i.read(1, words));
        // SAFETY: who makes programs gives addresses with room for an element of the type, aligned, which nothing
        // else uses meanwhile.
        unsafe { address.write(x) };
        true
    }
    if dtype.is_float() && dtype.bits() == 16 {
        |i, words| of(i, words, |x: f32| round(x, i.dtype).0 as u16)
    } else if dtype.is_float() && dtype.bits() == 8 {
        |i, words| of(i, words, |x: f32| round(x, i.dtype).0 as u8)
    } else {
        // Integers of less than a byte are extended in theirs, as they are in registers.
        with_real!(dtype, T => |i, words| of(i, words, |x: T| x))
    }
}

/// An element's bits as they lie in memory, where those are not the register's low ones.
pub(super) fn encode(dtype: DType) -> Option<Action> {
    let is_small = dtype.is_float() && dtype.bits() < 32;
    is_small.then_some(|i, words| {
        let x: f32 = i.read(0, words);
        words[usize::from(i.out[0])] = round(x, i.dtype).0;
        true
    })
}

/// Moves an address: by the first register, an integer of a type, moved into the range up to the second, times the
/// third, from the fourth on.
pub(super) fn advance(dtype: DType) -> Action {
    #[inline(always)]
    fn by(i: &Instruction, words: &mut Registers, f: impl Fn(u64, u64) -> u64) -> bool {
        let [position, room, step, from] = i.operands.map(|operand| words[usize::from(operand)]);
        words[usize::from(i.out[0])] = from.wrapping_add(f(position, room).wrapping_mul(step));
        true
    }
    if dtype.kind() == Kind::Signed {
        |i, words| by(i, words, |position, room| (position as i64).clamp(0, room as i64) as u64)
    } else {
        |i, words| by(i, words, u64::min)
    }
}

/// The first register, a signed integer, plus the second where it is below 0.
pub(super) fn counted(i: &Instruction, words: &mut Registers) -> bool {
    let [position, size] = [0, 1].map(|operand| words[usize::from(i.operands[operand])] as i64);
    words[usize::from(i.out[0])] = (position + if position < 0 { size } else { 0 }) as u64;
    true
}

/// The register as it is.
pub(super) fn copy(i: &Instruction, words: &mut Registers) -> bool {
    words[usize::from(i.out[0])] = words[usize::from(i.operands[0])];
    true
}

/// Exchanges two registers.
pub(super) fn swap(i: &Instruction, words: &mut Registers) -> bool {
    words.swap(usize::from(i.out[0]), usize::from(i.out[1]));
    true
}
