//! Functions of scalars as instructions on registers of 64 bits, for what is done to one element after the other.
//!
//! Each instruction computes what the kernels compute in a tile, by the same functions, and so gives the same bits.

use std::mem::MaybeUninit;

use defn_core::op::{BinaryOp, UnaryOp};
use defn_core::{DType, Kind, Scalar};

use super::lanes::Lanes;
use super::math::Float;
use super::{CastFrom, Element, Integer, Real, with_real};
use crate::view::View;

/// How many registers there are.
const REGISTERS: usize = 256;

/// The registers of one run.
pub(crate) type Registers = [u64; REGISTERS];

/// A register that is written, and the type of what it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    at: u8,
    dtype: DType,
    /// Whether it changes from element to element.
    varied: bool,
}

impl Register {
    /// The element type.
    pub(crate) fn dtype(self) -> DType {
        self.dtype
    }
}

/// What an instruction does. It says whether the program may go on.
type Action = fn(&Instruction, &mut Registers) -> bool;

/// One step: an action and its registers.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    run: Action,
    unary: UnaryOp,
    binary: BinaryOp,
    a: u8,
    b: u8,
    c: u8,
    out: u8,
}

impl Instruction {
    #[inline(always)]
    fn one<A: Word, B: Word>(&self, words: &mut Registers, f: impl Fn(A) -> B) -> bool {
        words[self.out as usize] = f(A::from_word(words[self.a as usize])).word();
        true
    }

    #[inline(always)]
    fn two<A: Word, B: Word>(&self, words: &mut Registers, f: impl Fn(A, A) -> B) -> bool {
        let (a, b) = (A::from_word(words[self.a as usize]), A::from_word(words[self.b as usize]));
        words[self.out as usize] = f(a, b).word();
        true
    }
}

/// Elements that a register holds: integers extended by their sign, floats as their bits.
trait Word: Lanes + Real {
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
fn unary_tile<T: Word>(instruction: &Instruction, words: &mut Registers) -> bool {
    instruction.one(words, |x: T| {
        let mut out = [MaybeUninit::uninit()];
        T::unary(instruction.unary, T::DTYPE.bits() as u32, &[x], &mut out);
        let [out] = out;
        // SAFETY: the op writes every element of the tile.
        unsafe { out.assume_init() }
    })
}

/// An op of a tile on one pair of elements.
fn binary_tile<T: Word>(instruction: &Instruction, words: &mut Registers) -> bool {
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
        BinaryOp::Add => |i, words| i.two(words, T::plus),
        BinaryOp::Subtract => |i, words| i.two(words, T::minus),
        BinaryOp::Multiply => |i, words| i.two(words, T::times),
        BinaryOp::Quotient => |i, words| i.two(words, T::quotient),
        BinaryOp::Remainder => |i, words| i.two(words, T::remainder),
        BinaryOp::Max => |i, words| i.two(words, T::greater),
        BinaryOp::Min => |i, words| i.two(words, T::lesser),
        BinaryOp::BitwiseAnd => |i, words| i.two(words, T::both),
        BinaryOp::BitwiseOr => |i, words| i.two(words, T::either),
        BinaryOp::BitwiseXor => |i, words| i.two(words, T::one_of),
        BinaryOp::LeftShift => |i, words| i.two(words, T::shifted_left),
        BinaryOp::RightShift => |i, words| i.two(words, T::shifted_right),
        BinaryOp::Pow
        | BinaryOp::Divide
        | BinaryOp::Atan2
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => binary_tile::<T>,
    }
}

fn float_action<T: Word + Float>(op: BinaryOp) -> Action {
    match op {
        BinaryOp::Add => |i, words| i.two(words, T::plus),
        BinaryOp::Subtract => |i, words| i.two(words, T::minus),
        BinaryOp::Multiply => |i, words| i.two(words, T::times),
        BinaryOp::Divide => |i, words| i.two(words, T::over),
        BinaryOp::Remainder => |i, words| i.two(words, T::remainder),
        BinaryOp::Max => |i, words| i.two(words, T::greater),
        BinaryOp::Min => |i, words| i.two(words, T::lesser),
        BinaryOp::Pow
        | BinaryOp::Atan2
        | BinaryOp::Quotient
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => binary_tile::<T>,
    }
}

/// What compares two elements, if the op does.
fn comparison<T: Word>(op: BinaryOp) -> Option<Action> {
    Some(match op {
        BinaryOp::Equal => |i, words| i.two(words, |a: T, b: T| u8::from(a == b)),
        BinaryOp::NotEqual => |i, words| i.two(words, |a: T, b: T| u8::from(a != b)),
        BinaryOp::Greater => |i, words| i.two(words, |a: T, b: T| u8::from(a > b)),
        BinaryOp::GreaterEqual => |i, words| i.two(words, |a: T, b: T| u8::from(a >= b)),
        BinaryOp::Less => |i, words| i.two(words, |a: T, b: T| u8::from(a < b)),
        BinaryOp::LessEqual => |i, words| i.two(words, |a: T, b: T| u8::from(a <= b)),
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Pow
        | BinaryOp::Atan2
        | BinaryOp::Quotient
        | BinaryOp::Remainder
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::LeftShift
        | BinaryOp::RightShift
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => return None,
    })
}

/// What the second of two integers must be for an op to have a result, where that is checked.
fn requirement(op: BinaryOp, dtype: DType) -> Option<Action> {
    match op {
        BinaryOp::Quotient | BinaryOp::Remainder => Some(|i, words| words[i.a as usize] != 0),
        BinaryOp::Pow | BinaryOp::LeftShift | BinaryOp::RightShift => {
            let not_negative: Action = |i, words| words[i.a as usize] as i64 >= 0;
            (dtype.kind() == Kind::Signed).then_some(not_negative)
        }
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::Atan2
        | BinaryOp::BitwiseAnd
        | BinaryOp::BitwiseOr
        | BinaryOp::BitwiseXor
        | BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::LogicalAnd
        | BinaryOp::LogicalOr
        | BinaryOp::LogicalXor
        | BinaryOp::Complex => None,
    }
}

/// A program for one element and what was folded so far.
#[derive(Debug)]
pub(crate) struct Machine {
    /// What does not change from element to element.
    once: Vec<Instruction>,
    each: Vec<Instruction>,
    words: Registers,
    used: usize,
    /// Whether ops without a result end the program.
    checked: bool,
}

impl Machine {
    /// A machine without instructions. The first input is the element, the second what was folded so far.
    pub(crate) fn new(checked: bool) -> Machine {
        Machine { once: Vec::new(), each: Vec::new(), words: [0; REGISTERS], used: 0, checked }
    }

    /// A register for an input of a type, if elements of it fit.
    pub(crate) fn input(&mut self, dtype: DType, varied: bool) -> Option<Register> {
        let plain = match dtype {
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => true,
            DType::S8 | DType::S16 | DType::S32 | DType::S64 => true,
            DType::F32 | DType::F64 => true,
            DType::U2 | DType::U4 | DType::S2 | DType::S4 => false,
            DType::F8E5M2 | DType::F8E4M3FN | DType::F16 | DType::BF16 | DType::C64 | DType::C128 => false,
        };
        let at = u8::try_from(self.used).ok().filter(|_| plain)?;
        self.used += 1;
        Some(Register { at, dtype, varied })
    }

    /// A register that holds a number.
    pub(crate) fn constant(&mut self, scalar: Scalar) -> Option<Register> {
        let register = self.input(scalar.dtype(), false)?;
        self.words[register.at as usize] = with_real!(scalar.dtype(), T => {
            let bytes = scalar.to_bytes();
            T::from_word(read(&bytes)).word()
        });
        Some(register)
    }

    /// A register that holds the only element of a view.
    pub(crate) fn capture(&mut self, x: View<'_>) -> Option<Register> {
        let register = self.input(x.ty().dtype, false)?;
        self.words[register.at as usize] = word(x);
        Some(register)
    }

    /// Adds an instruction with a result of a type.
    fn push(&mut self, run: Action, inputs: &[Register], dtype: DType) -> Option<Register> {
        let register = self.input(dtype, inputs.iter().any(|input| input.varied))?;
        let place = |input: usize| inputs.get(input).map_or(0, |register| register.at);
        let (unary, binary) = (UnaryOp::Negate, BinaryOp::Add);
        let [a, b, c] = [place(0), place(1), place(2)];
        let list = if register.varied { &mut self.each } else { &mut self.once };
        list.push(Instruction { run, unary, binary, a, b, c, out: register.at });
        Some(register)
    }

    /// The instruction that was added for a register.
    fn last(&mut self, register: Register) -> &mut Instruction {
        let list = if register.varied { &mut self.each } else { &mut self.once };
        list.last_mut().expect("an instruction was added")
    }

    /// An element as one of another type.
    pub(crate) fn convert(&mut self, x: Register, dtype: DType) -> Option<Register> {
        if x.dtype == dtype {
            return Some(x);
        }
        // No register holds a complex number.
        let action = with_real!(x.dtype, S => with_real!(dtype, C => {
            (|i, words| i.one(words, |x: S| <C as CastFrom<S>>::cast_from(x))) as Action
        }, else _complex => return None));
        self.push(action, &[x], dtype)
    }

    /// The bits of an element as one of another type of its width.
    pub(crate) fn bits(&mut self, x: Register, dtype: DType) -> Option<Register> {
        let action = with_real!(dtype, C => {
            (|i, words| {
                words[i.out as usize] = C::from_word(words[i.a as usize]).word();
                true
            }) as Action
        }, else _complex => return None);
        self.push(action, &[x], dtype)
    }

    /// Whether an element counts as true, 0 or 1.
    fn truth(&mut self, x: Register) -> Option<Register> {
        let action =
            with_real!(x.dtype, T => (|i, words| i.one(words, |x: T| u8::from(x.truth()))) as Action);
        self.push(action, &[x], DType::U8)
    }

    /// An op of one element, with a result of a type.
    pub(crate) fn unary(&mut self, op: UnaryOp, x: Register, dtype: DType) -> Option<Register> {
        match op {
            UnaryOp::IsNan if dtype == DType::U8 => {
                let action =
                    with_real!(x.dtype, T => (|i, words| i.one(words, |x: T| u8::from(x.nan()))) as Action);
                return self.push(action, &[x], dtype);
            }
            UnaryOp::IsInfinity if dtype == DType::U8 => {
                let action = with_real!(x.dtype, T => (|i, words| i.one(words, |x: T| u8::from(x.infinite()))) as Action);
                return self.push(action, &[x], dtype);
            }
            UnaryOp::IsNan | UnaryOp::IsInfinity | UnaryOp::Imag | UnaryOp::Conjugate => return None,
            UnaryOp::Real => return self.convert(x, dtype),
            UnaryOp::Negate
            | UnaryOp::Abs
            | UnaryOp::Sign
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Round
            | UnaryOp::Sqrt
            | UnaryOp::BitwiseNot
            | UnaryOp::PopulationCount
            | UnaryOp::CountLeadingZeros
            | UnaryOp::Exp
            | UnaryOp::Expm1
            | UnaryOp::Log
            | UnaryOp::Log1p
            | UnaryOp::Sigmoid
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh
            | UnaryOp::Asin
            | UnaryOp::Acos
            | UnaryOp::Atan
            | UnaryOp::Asinh
            | UnaryOp::Acosh
            | UnaryOp::Atanh
            | UnaryOp::Rsqrt
            | UnaryOp::Cbrt
            | UnaryOp::Erf
            | UnaryOp::Erfc
            | UnaryOp::ErfInv => {}
        }
        let x = self.convert(x, dtype)?;
        let action = with_real!(dtype, T => unary_tile::<T> as Action);
        let register = self.push(action, &[x], dtype)?;
        self.last(register).unary = op;
        Some(register)
    }

    /// An op of two elements, with a result of a type.
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        a: Register,
        b: Register,
        dtype: DType,
    ) -> Option<Register> {
        // The only results that are not of the operands' type have eight bits.
        let logical = |run| (dtype == DType::U8).then_some(run);
        match op {
            BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterEqual
            | BinaryOp::Less
            | BinaryOp::LessEqual => {
                let both = a.dtype.compared(b.dtype)?;
                let (a, b) = (self.convert(a, both)?, self.convert(b, both)?);
                let action = logical(with_real!(both, T => comparison::<T>(op)?))?;
                self.push(action, &[a, b], dtype)
            }
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::LogicalXor => {
                let action: Action = if op == BinaryOp::LogicalAnd {
                    |i, words| i.two(words, |a: u8, b: u8| a & b)
                } else if op == BinaryOp::LogicalOr {
                    |i, words| i.two(words, |a: u8, b: u8| a | b)
                } else {
                    |i, words| i.two(words, |a: u8, b: u8| a ^ b)
                };
                let action = logical(action)?;
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                self.push(action, &[a, b], dtype)
            }
            BinaryOp::Complex => None,
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Pow
            | BinaryOp::Atan2
            | BinaryOp::Quotient
            | BinaryOp::Remainder
            | BinaryOp::Max
            | BinaryOp::Min
            | BinaryOp::BitwiseAnd
            | BinaryOp::BitwiseOr
            | BinaryOp::BitwiseXor
            | BinaryOp::LeftShift
            | BinaryOp::RightShift => {
                if self.checked
                    && dtype.is_integer()
                    && let Some(required) = requirement(op, b.dtype)
                {
                    self.push(required, &[b], b.dtype)?;
                }
                let (a, b) = (self.convert(a, dtype)?, self.convert(b, dtype)?);
                let action = with_real!(dtype, T => T::binary_action(op));
                let register = self.push(action, &[a, b], dtype)?;
                self.last(register).binary = op;
                Some(register)
            }
        }
    }

    /// `a` where `pred` is true, else `b`.
    pub(crate) fn select(
        &mut self,
        pred: Register,
        a: Register,
        b: Register,
        dtype: DType,
    ) -> Option<Register> {
        let pred = if pred.dtype.is_integer() { pred } else { self.truth(pred)? };
        let (a, b) = (self.convert(a, dtype)?, self.convert(b, dtype)?);
        let action: Action = |i, words| {
            let (a, b) = (words[i.b as usize], words[i.c as usize]);
            words[i.out as usize] = if words[i.a as usize] != 0 { a } else { b };
            true
        };
        self.push(action, &[pred, a, b], dtype)
    }

    /// `x` moved into `lo..=hi`.
    pub(crate) fn clip(&mut self, x: Register, lo: Register, hi: Register, dtype: DType) -> Option<Register> {
        let (x, lo, hi) = (self.convert(x, dtype)?, self.convert(lo, dtype)?, self.convert(hi, dtype)?);
        let action = with_real!(dtype, T => {
            (|i, words| {
                let hi = T::from_word(words[i.c as usize]);
                i.two(words, |x: T, lo: T| x.greater(lo).lesser(hi))
            }) as Action
        });
        self.push(action, &[x, lo, hi], dtype)
    }

    /// How many instructions an element takes.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    /// The registers before the first element, with `acc` in that of what was folded; or nothing, where an op has
    /// no result.
    pub(crate) fn start(&self, acc: View<'_>, folded: Register) -> Option<Registers> {
        let mut words = self.words;
        words[folded.at as usize] = word(acc);
        self.once.iter().all(|instruction| (instruction.run)(instruction, &mut words)).then_some(words)
    }

    /// Folds the elements `first`, `first + stride` and so on, `count` of them, and says whether all ops had a
    /// result. `roles` are the registers of the element, of what was folded so far, and of the program's result.
    pub(crate) fn fold(
        &self,
        words: &mut Registers,
        roles: [Register; 3],
        x: View<'_>,
        (first, stride, count): (usize, usize, usize),
    ) -> bool {
        with_real!(x.ty().dtype, T => self.fold_slice::<T>(words, roles, x.slice(), (first, stride, count)))
    }

    fn fold_slice<T: Word>(
        &self,
        words: &mut Registers,
        [element, folded, result]: [Register; 3],
        x: &[T],
        (first, stride, count): (usize, usize, usize),
    ) -> bool {
        for &x in x[first..].iter().step_by(stride.max(1)).take(count) {
            words[element.at as usize] = x.word();
            for instruction in &self.each {
                if !(instruction.run)(instruction, words) {
                    return false;
                }
            }
            words[folded.at as usize] = words[result.at as usize];
        }
        true
    }

    /// Writes the bytes of what was folded.
    pub(crate) fn finish(words: &Registers, folded: Register, out: &mut [MaybeUninit<u8>]) {
        debug_assert_eq!(out.len(), folded.dtype.storage_bytes());
        for (out, byte) in out.iter_mut().zip(words[folded.at as usize].to_le_bytes()) {
            out.write(byte);
        }
        if cfg!(target_endian = "big") {
            out.reverse();
        }
    }
}

/// The only element of a view in a register.
fn word(x: View<'_>) -> u64 {
    with_real!(x.ty().dtype, T => x.slice::<T>()[0].word())
}

/// The bytes of an element in memory order as the low ones of a number.
fn read(bytes: &[u8]) -> u64 {
    let fold = |word: u64, &byte: &u8| word << 8 | u64::from(byte);
    if cfg!(target_endian = "big") { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
}
