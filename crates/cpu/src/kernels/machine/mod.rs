//! Functions of scalars as instructions on registers of 64 bits, for what is done to one element after the other.
//!
//! Each instruction computes what the kernels compute in a tile, by the same functions, and so gives the same bits.

mod action;
mod flow;
mod fuse;
mod steady;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use defn_core::op::{BinaryOp, UnaryOp};
use defn_core::{DType, Scalar};
use smallvec::SmallVec;

use super::elementwise::vector::Base;
use super::{Element, Real, is_computed_as_stored, with_real};
use crate::view::View;
pub(crate) use flow::{Env, Node, Program};

use action::{Action, Instruction, Role, Word};

/// How many registers there are.
const REGISTERS: usize = 256;

/// The registers of one run.
pub(crate) type Registers = [u64; REGISTERS];

/// A register that is written, and the type of what it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    at: u8,
    dtype: DType,
    /// The innermost list of those that are open in which it changes.
    level: u8,
}

impl Register {
    /// The element type.
    pub(crate) fn dtype(self) -> DType {
        self.dtype
    }
}

/// Steps that are being put together.
#[derive(Debug)]
struct List {
    nodes: Vec<Node>,
    /// Whether it may run several times, so that what does not change in it is better done before.
    repeats: bool,
}

/// A program as it is made.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Lists within each other, the outermost first; that of a fold has one for what does not change from element to
    /// element, and in it one for each element.
    lists: Vec<List>,
    words: Registers,
    used: usize,
    /// Whether ops without a result end the program.
    checked: bool,
}

impl Machine {
    /// A fold without instructions. The first input is the element, the second what was folded so far.
    pub(crate) fn new(checked: bool) -> Machine {
        let mut machine = Machine { lists: Vec::new(), words: [0; REGISTERS], used: 0, checked };
        machine.open(false);
        machine.open(true);
        machine
    }

    /// A program without instructions.
    pub(crate) fn program() -> Machine {
        let mut machine = Machine { lists: Vec::new(), words: [0; REGISTERS], used: 0, checked: false };
        machine.open(false);
        machine
    }

    /// The level of the innermost list.
    fn top(&self) -> u8 {
        u8::try_from(self.lists.len() - 1).expect("registers run out before lists do")
    }

    /// A register for a type, unless it is complex or there is none left.
    fn take(&mut self, dtype: DType, level: u8) -> Option<Register> {
        let at = u8::try_from(self.used).ok().filter(|_| !dtype.is_complex())?;
        self.used += 1;
        Some(Register { at, dtype, level })
    }

    /// A register for an input of a type, if elements of it fit as they lie.
    pub(crate) fn input(&mut self, dtype: DType, varied: bool) -> Option<Register> {
        let level = if varied { self.top() } else { 0 };
        if is_plain(dtype) { self.take(dtype, level) } else { None }
    }

    /// A register that holds a number.
    pub(crate) fn constant(&mut self, scalar: Scalar) -> Option<Register> {
        let register = self.take(scalar.dtype(), 0)?;
        self.words[usize::from(register.at)] = with_real!(scalar.dtype(), T => {
            // A smaller type's number in the type that it is computed in.
            let wide = Scalar::new(T::DTYPE, scalar.value()).expect("a number of a smaller type");
            T::from_word(read(&wide.to_bytes())).word()
        });
        Some(register)
    }

    /// A register that holds the only element of a view.
    pub(crate) fn capture(&mut self, x: View<'_>) -> Option<Register> {
        let register = self.input(x.ty().dtype, false)?;
        self.words[usize::from(register.at)] = word(x);
        Some(register)
    }

    /// Adds an instruction to a list.
    fn add(&mut self, level: u8, instruction: Instruction) {
        let nodes = &mut self.lists[usize::from(level)].nodes;
        match nodes.last_mut() {
            Some(Node::Straight(list)) => list.push(instruction),
            Some(Node::Call(..) | Node::Loop(_) | Node::Branches(_)) | None => {
                nodes.push(Node::Straight(vec![instruction]));
            }
        }
    }

    /// Adds an instruction with a result of a type, where what it reads is there; of loops, it is moved out.
    fn push(&mut self, run: Action, inputs: &[Register], dtype: DType) -> Option<Register> {
        self.push_as(run, Role::Pure, inputs, dtype, |_| {})
    }

    fn push_as(
        &mut self,
        run: Action,
        role: Role,
        inputs: &[Register],
        dtype: DType,
        with: impl FnOnce(&mut Instruction),
    ) -> Option<Register> {
        let known = inputs.iter().map(|input| input.level).max().unwrap_or(0);
        let mut level = self.top();
        while level > known && self.lists[usize::from(level)].repeats {
            level -= 1;
        }
        let register = self.take(dtype, level)?;
        let places: SmallVec<[u8; 4]> = inputs.iter().map(|input| input.at).collect();
        let mut instruction = Instruction::new(run, role, &places, &[register.at], dtype);
        with(&mut instruction);
        self.add(level, instruction);
        Some(register)
    }

    /// Brings what was computed to the precision and range of its type.
    fn fit(&mut self, x: Register, from_float: bool) -> Option<Register> {
        match action::fit(x.dtype, from_float) {
            Some(action) => self.push(action, &[x], x.dtype),
            None => Some(x),
        }
    }

    /// An element as one of another type.
    pub(crate) fn convert(&mut self, x: Register, dtype: DType) -> Option<Register> {
        if dtype.is_complex() {
            return None;
        }
        let computed = |dtype: DType| with_real!(dtype, T => T::DTYPE);
        // Numbers of a smaller type are those of the type that it is computed in.
        if x.dtype == dtype || dtype == computed(dtype) && computed(x.dtype) == dtype {
            return Some(Register { dtype, ..x });
        }
        let action = with_real!(x.dtype, S => with_real!(dtype, C => action::convert::<S, C>(dtype)));
        let converted = self.push(action, &[x], dtype)?;
        self.fit(converted, x.dtype.is_inexact())
    }

    /// The bits of an element as one of another type of its width.
    pub(crate) fn bits(&mut self, x: Register, dtype: DType) -> Option<Register> {
        if !is_plain(x.dtype) || !is_plain(dtype) {
            return None;
        }
        let action = with_real!(dtype, C => {
            (|i, words| {
                let word = words[usize::from(i.operands[0])];
                words[usize::from(i.out[0])] = C::from_word(word).word();
                true
            }) as Action
        });
        self.push(action, &[x], dtype)
    }

    /// Whether an element counts as true, 0 or 1.
    fn truth(&mut self, x: Register) -> Option<Register> {
        let action =
            with_real!(x.dtype, T => (|i, words| i.one(words, |x: T| u8::from(x.truth()))) as Action);
        self.push(action, &[x], DType::Bool)
    }

    /// An op of one element, with a result of a type.
    pub(crate) fn unary(&mut self, op: UnaryOp, x: Register, dtype: DType) -> Option<Register> {
        if dtype.is_complex() {
            return None;
        }
        match op {
            UnaryOp::IS_NAN if dtype.is_bool() => {
                let action =
                    with_real!(x.dtype, T => (|i, words| i.one(words, |x: T| u8::from(x.nan()))) as Action);
                return self.push(action, &[x], dtype);
            }
            UnaryOp::IS_INFINITY if dtype.is_bool() => {
                let action = with_real!(x.dtype, T => (|i, words| i.one(words, |x: T| u8::from(x.infinite()))) as Action);
                return self.push(action, &[x], dtype);
            }
            UnaryOp::IS_NAN | UnaryOp::IS_INFINITY | UnaryOp::IMAG | UnaryOp::CONJUGATE => return None,
            UnaryOp::REAL => return self.convert(x, dtype),
            UnaryOp::Sign(_) | UnaryOp::Rounding(_) | UnaryOp::Bits(_) | UnaryOp::Function(_) => {}
        }
        let x = self.convert(x, dtype)?;
        let action = with_real!(dtype, T => action::unary_tile::<T> as Action);
        let made = self.push_as(action, Role::Pure, &[x], dtype, |made| made.unary = op)?;
        self.fit(made, false)
    }

    /// The logarithm to a base, with a result of a type.
    pub(crate) fn log_to(&mut self, base: Base, x: Register, dtype: DType) -> Option<Register> {
        let x = self.convert(x, dtype)?;
        let made = self.push(with_real!(dtype, T => action::log_to::<T>(base)), &[x], dtype)?;
        self.fit(made, false)
    }

    /// An op of two elements, with a result of a type.
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        a: Register,
        b: Register,
        dtype: DType,
    ) -> Option<Register> {
        if dtype.is_complex() {
            return None;
        }
        // The only results that are not of the operands' type are bools.
        let logical = |run| dtype.is_bool().then_some(run);
        match op {
            BinaryOp::Comparison(_) => {
                let Some(both) = a.dtype.compared(b.dtype) else {
                    let is_left_signed = a.dtype != DType::U64;
                    let left = if is_left_signed { DType::S64 } else { DType::U64 };
                    let right = if is_left_signed { DType::U64 } else { DType::S64 };
                    let (a, b) = (self.convert(a, left)?, self.convert(b, right)?);
                    let action = logical(action::compare_mixed(op, is_left_signed)?)?;
                    return self.push_as(action, Role::Pure, &[a, b], dtype, |made| made.dtype = left);
                };
                let (a, b) = (self.convert(a, both)?, self.convert(b, both)?);
                let action = logical(with_real!(both, T => action::comparison::<T>(op)?))?;
                self.push_as(action, Role::Comparison, &[a, b], dtype, |made| {
                    (made.binary, made.dtype) = (op, both);
                })
            }
            BinaryOp::LOGICAL_AND | BinaryOp::LOGICAL_OR | BinaryOp::LOGICAL_XOR => {
                let action: Action = if op == BinaryOp::LOGICAL_AND {
                    |i, words| i.two(words, |a: u8, b: u8| a & b)
                } else if op == BinaryOp::LOGICAL_OR {
                    |i, words| i.two(words, |a: u8, b: u8| a | b)
                } else {
                    |i, words| i.two(words, |a: u8, b: u8| a ^ b)
                };
                let action = logical(action)?;
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                self.push(action, &[a, b], dtype)
            }
            BinaryOp::Complex => None,
            BinaryOp::Arithmetic(_) | BinaryOp::Bitwise(_) => {
                if self.checked
                    && dtype.is_integer()
                    && let Some(required) = action::requirement(op, b.dtype)
                {
                    self.push(required, &[b], b.dtype)?;
                }
                let (a, b) = (self.convert(a, dtype)?, self.convert(b, dtype)?);
                let action = with_real!(dtype, T => T::binary_action(op));
                let made = self.push_as(action, Role::Arithmetic, &[a, b], dtype, |made| made.binary = op)?;
                self.fit(made, false)
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
        let pred = if !pred.dtype.is_inexact() { pred } else { self.truth(pred)? };
        let (a, b) = (self.convert(a, dtype)?, self.convert(b, dtype)?);
        let action: Action = |i, words| {
            let [pred, a, b, _] = i.operands.map(usize::from);
            words[usize::from(i.out[0])] = if words[pred] != 0 { words[a] } else { words[b] };
            true
        };
        self.push(action, &[pred, a, b], dtype)
    }

    /// `x` moved into `lo..=hi`.
    pub(crate) fn clip(&mut self, x: Register, lo: Register, hi: Register, dtype: DType) -> Option<Register> {
        let (x, lo, hi) = (self.convert(x, dtype)?, self.convert(lo, dtype)?, self.convert(hi, dtype)?);
        let action = with_real!(dtype, T => {
            (|i, words| i.three(words, |x: T, lo: T, hi: T| x.greater(lo).lesser(hi))) as Action
        });
        self.push(action, &[x, lo, hi], dtype)
    }

    /// The instructions of a list of a fold, which has no others than those one after the other.
    fn straight(&self, level: usize) -> &[Instruction] {
        match self.lists[level].nodes.first() {
            Some(Node::Straight(list)) => list,
            Some(Node::Call(..) | Node::Loop(_) | Node::Branches(_)) | None => &[],
        }
    }

    /// How many instructions an element takes.
    pub(crate) fn len(&self) -> usize {
        self.straight(1).len()
    }

    /// The registers before the first element, with `acc` in that of what was folded; or nothing, where an op has
    /// no result.
    pub(crate) fn start(&self, acc: View<'_>, folded: Register) -> Option<Registers> {
        let mut words = self.words;
        words[usize::from(folded.at)] = word(acc);
        self.straight(0).iter().all(|instruction| (instruction.run)(instruction, &mut words)).then_some(words)
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
        roles: [Register; 3],
        x: &[T],
        (first, stride, count): (usize, usize, usize),
    ) -> bool {
        let [element, folded, result] = roles.map(|register| usize::from(register.at));
        let each = self.straight(1);
        for &x in x[first..].iter().step_by(stride.max(1)).take(count) {
            words[element] = x.word();
            for instruction in each {
                if !(instruction.run)(instruction, words) {
                    return false;
                }
            }
            words[folded] = words[result];
        }
        true
    }

    /// Writes the bytes of what was folded.
    pub(crate) fn finish(words: &Registers, folded: Register, out: &mut [MaybeUninit<u8>]) {
        debug_assert_eq!(out.len(), folded.dtype.storage_bytes());
        for (out, byte) in out.iter_mut().zip(words[usize::from(folded.at)].to_le_bytes()) {
            out.write(byte);
        }
        if cfg!(target_endian = "big") {
            out.reverse();
        }
    }
}

/// Whether elements of a type lie in memory as registers hold them.
fn is_plain(dtype: DType) -> bool {
    !dtype.is_complex() && is_computed_as_stored(dtype)
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
