//! Programs as they are made: ops on registers of which each is written once, then the registers' places.

mod join;

use defn_core::op::{BinaryOp, ElementCost, UnaryOp};
use defn_core::{DType, Scalar};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::action::{self, Action, Detail, Instruction};
use super::{Place, Program};
use crate::kernels::elementwise::vector::{self, Base};
use crate::kernels::{Element, TILE, is_computed_as_stored, with_compute};

/// The bytes of registers that the first cache holds beside what is read and written.
const CACHE: usize = 24 << 10;
/// The fewest elements of a tile: what an instruction costs beside its elements is spread over so many.
const LEAST: usize = 128;
/// Runs of fewer elements are spread out before they are read.
const RUN: usize = 16;

/// A register of a draft, and the type of its elements. They lie in the type in which that one is computed, and are
/// numbers of that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Register {
    at: u16,
    dtype: DType,
}

/// What an instruction may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// What was computed.
    Register(Register),
    /// An input of the program by its number, whose elements have a type. One that is `constant` has the same element
    /// for all of the result; one that has a `run` has another one for each so many in order.
    Input { index: usize, dtype: DType, constant: bool, run: Option<usize> },
}

impl Operand {
    /// The element type.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Operand::Register(register) => register.dtype,
            Operand::Input { dtype, .. } => dtype,
        }
    }
}

impl From<Register> for Operand {
    fn from(register: Register) -> Operand {
        Operand::Register(register)
    }
}

/// A program that is being made.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    made: Vec<Made>,
    /// Inputs that were read, by type.
    read: FxHashMap<(usize, DType), Register>,
    weight: usize,
    results: Vec<Stored>,
}

/// The instruction that writes a register.
#[derive(Debug)]
struct Made {
    instruction: Instruction,
    dtype: DType,
    /// Whether it is the same for all tiles.
    once: bool,
    /// Whether another does its work.
    is_gone: bool,
}

impl Made {
    /// Whether it fills a register with a number.
    fn is_number(&self) -> bool {
        match self.instruction.detail {
            Detail::Bytes(_) => true,
            Detail::None
            | Detail::Unary(..)
            | Detail::Binary(_)
            | Detail::Log(_)
            | Detail::Input(..)
            | Detail::To(..)
            | Detail::Count { .. }
            | Detail::With(..)
            | Detail::Runs { .. }
            | Detail::Chain(_) => false,
        }
    }

    /// The registers that are read.
    fn read(&self) -> impl Iterator<Item = usize> {
        self.instruction.read().map(usize::from)
    }
}

/// What becomes of a register at the end.
#[derive(Clone, Copy, Debug)]
struct Stored {
    register: u16,
    /// Bytes of an element as it lies in memory.
    width: usize,
}

impl Draft {
    fn push(
        &mut self,
        run: Action,
        detail: Detail,
        reads: &[Register],
        dtype: DType,
        weight: usize,
    ) -> Register {
        let at = u16::try_from(self.made.len()).expect("a draft has fewer instructions");
        let mut operands = [0; 3];
        for (operand, register) in operands.iter_mut().zip(reads) {
            *operand = register.at;
        }
        let once = !reads.is_empty() && reads.iter().all(|register| self.made[usize::from(register.at)].once);
        self.weight += if once { 0 } else { weight };
        let instruction = Instruction { run, detail, operands, reads: reads.len(), out: at };
        self.made.push(Made { instruction, dtype, once, is_gone: false });
        Register { at, dtype }
    }

    /// The elements of an input as ones of `dtype`.
    fn input(&mut self, input: usize, dtype: DType, constant: bool) -> Register {
        if let Some(&known) = self.read.get(&(input, dtype)) {
            return known;
        }
        let register = self.push(action::load(dtype), Detail::Input(input, dtype), &[], dtype, 1);
        if constant {
            self.made[usize::from(register.at)].once = true;
            self.weight -= 1;
        }
        self.read.insert((input, dtype), register);
        register
    }

    /// A number that is the same for all elements.
    pub(crate) fn constant(&mut self, scalar: Scalar) -> Register {
        let dtype = scalar.dtype();
        // A smaller type's number in the type that it is computed in.
        let computed = with_compute!(dtype, C => C::DTYPE);
        let wide = Scalar::new(computed, scalar.value()).expect("a number of a smaller type");
        let mut bytes = [0; 16];
        let held = wide.to_bytes();
        bytes[..held.len()].copy_from_slice(&held);
        let register = self.push(action::constant(dtype), Detail::Bytes(bytes), &[], dtype, 0);
        self.made[usize::from(register.at)].once = true;
        register
    }

    /// Counts `(position / step) % size`, as elements of `dtype`.
    pub(crate) fn count(&mut self, step: usize, size: usize, dtype: DType) -> Register {
        let counted = self.push(action::count(dtype), Detail::Count { step, size }, &[], dtype, 1);
        self.fit(counted)
    }

    /// Brings what was computed to the precision and range of its type.
    fn fit(&mut self, x: Register) -> Register {
        if is_computed_as_stored(x.dtype) {
            return x;
        }
        let computed = with_compute!(x.dtype, C => C::DTYPE);
        let detail = Detail::To(x.dtype, false);
        self.push(action::convert(computed, x.dtype), detail, &[x], x.dtype, 1)
    }

    /// An operand in a register, as it is.
    pub(crate) fn load(&mut self, x: Operand) -> Register {
        self.convert(x, x.dtype())
    }

    /// Elements as those of another type.
    pub(crate) fn convert(&mut self, x: impl Into<Operand>, dtype: DType) -> Register {
        let x = match x.into() {
            Operand::Register(register) => register,
            Operand::Input { index, dtype: _, constant, run: _ } => {
                return self.input(index, dtype, constant);
            }
        };
        let computed = with_compute!(dtype, C => C::DTYPE);
        // Numbers of a smaller type lie as those of the type that it is computed in.
        if x.dtype == dtype || dtype == computed && with_compute!(x.dtype, C => C::DTYPE) == computed {
            return Register { at: x.at, dtype };
        }
        let detail = Detail::To(dtype, x.dtype.is_inexact());
        self.push(action::convert(x.dtype, dtype), detail, &[x], dtype, 1)
    }

    /// Whether elements count as true, 0 or 1.
    pub(crate) fn truth(&mut self, x: Operand) -> Register {
        let x = self.load(x);
        self.push(action::truth(x.dtype), Detail::None, &[x], DType::Bool, 1)
    }

    /// An op of one operand, with a result of `dtype`.
    pub(crate) fn unary(&mut self, op: UnaryOp, x: Operand, dtype: DType) -> Register {
        let weight = match op {
            UnaryOp::IS_NAN | UnaryOp::IS_INFINITY => {
                let x = self.load(x);
                let is = if op == UnaryOp::IS_NAN { action::is_nan } else { action::is_infinity };
                return self.push(is(x.dtype), Detail::None, &[x], dtype, 1);
            }
            UnaryOp::ABS | UnaryOp::REAL | UnaryOp::IMAG if x.dtype().is_complex() => {
                let x = self.load(x);
                let part = action::part(op, x.dtype).expect("a part of complex numbers");
                let made = self.push(part, Detail::None, &[x], x.dtype.to_real(), 1);
                return self.convert(made, dtype);
            }
            UnaryOp::REAL => return self.convert(x, dtype),
            UnaryOp::IMAG => return self.constant(Scalar::zero(dtype)),
            UnaryOp::CONJUGATE => {
                let x = self.convert(x, dtype);
                let part = action::part(op, dtype).expect("a part of complex numbers");
                return self.push(part, Detail::None, &[x], dtype, 1);
            }
            UnaryOp::Sign(_) | UnaryOp::Rounding(_) | UnaryOp::Bits(_) | UnaryOp::Function(_) => {
                op.traits().cost.instructions()
            }
        };
        let x = self.convert(x, dtype);
        let detail = Detail::Unary(op, dtype.bits() as u32);
        let made = self.push(action::unary(dtype), detail, &[x], dtype, weight);
        self.fit(made)
    }

    /// The logarithm to a base, with a result of `dtype`.
    pub(crate) fn log_to(&mut self, base: Base, x: Operand, dtype: DType) -> Register {
        let x = self.convert(x, dtype);
        let weight = ElementCost::Costly.instructions();
        let made = self.push(action::log_to(dtype), Detail::Log(base), &[x], dtype, weight);
        self.fit(made)
    }

    /// An op of two operands, with a result of `dtype`.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: Operand, b: Operand, dtype: DType) -> Register {
        let weight = match op {
            BinaryOp::Comparison(_) => {
                let made = match a.dtype().compared(b.dtype()) {
                    Some(both) => {
                        let (a, b) = (self.convert(a, both), self.convert(b, both));
                        self.push(action::compare(both), Detail::Binary(op), &[a, b], DType::Bool, 1)
                    }
                    None => {
                        let is_unsigned = a.dtype() == DType::U64;
                        let (left, right) =
                            if is_unsigned { (DType::U64, DType::S64) } else { (DType::S64, DType::U64) };
                        let (a, b) = (self.convert(a, left), self.convert(b, right));
                        self.push(action::compare_mixed(left), Detail::Binary(op), &[a, b], DType::Bool, 4)
                    }
                };
                return self.convert(made, dtype);
            }
            BinaryOp::Logical(_) => {
                let (a, b) = (self.truth(a), self.truth(b));
                let run = action::logical(op).expect("a function of truths");
                let made = self.push(run, Detail::None, &[a, b], DType::Bool, 1);
                return self.convert(made, dtype);
            }
            BinaryOp::Complex => {
                let real = dtype.to_real();
                let (a, b) = (self.convert(a, real), self.convert(b, real));
                return self.push(action::complex(dtype), Detail::None, &[a, b], dtype, 1);
            }
            BinaryOp::Arithmetic(_) | BinaryOp::Bitwise(_) => op.traits().cost.instructions(),
        };
        if vector::is_simple(op, dtype) {
            for (x, other, is_first) in [(a, b, false), (b, a, true)] {
                if let Some(made) = self.binary_runs(op, x, other, is_first, dtype) {
                    return made;
                }
            }
        }
        let (a, b) = (self.convert(a, dtype), self.convert(b, dtype));
        let (is_a_once, is_b_once) = (self.is_once(a), self.is_once(b));
        if vector::is_simple(op, dtype) && is_a_once != is_b_once {
            let (x, with) = if is_a_once { (b, a) } else { (a, b) };
            return self.push(
                action::binary_with(dtype),
                Detail::With(op, is_a_once),
                &[x, with],
                dtype,
                weight,
            );
        }
        let made = self.push(action::binary(dtype), Detail::Binary(op), &[a, b], dtype, weight);
        self.fit(made)
    }

    /// Whether a register is the same for all tiles, so that all its elements are one.
    fn is_once(&self, register: Register) -> bool {
        self.made[usize::from(register.at)].once
    }

    /// An op of elements and an input of which each is for a run of them, if it is.
    fn binary_runs(
        &mut self,
        op: BinaryOp,
        x: Operand,
        other: Operand,
        is_first: bool,
        dtype: DType,
    ) -> Option<Register> {
        let Operand::Input { index: input, dtype: own, constant: false, run: Some(run) } = other else {
            return None;
        };
        if own != dtype || run < RUN {
            return None;
        }
        let x = self.convert(x, dtype);
        let detail = Detail::Runs { op, is_first, input, run };
        (!self.is_once(x)).then(|| self.push(action::binary_runs(dtype), detail, &[x], dtype, 1))
    }

    /// `a` where `pred` is true, else `b`.
    pub(crate) fn select(&mut self, pred: Operand, a: Operand, b: Operand, dtype: DType) -> Register {
        let pred = if size_of_computed(pred.dtype()) == 1 { self.load(pred) } else { self.truth(pred) };
        let (a, b) = (self.convert(a, dtype), self.convert(b, dtype));
        self.push(action::select(dtype), Detail::None, &[pred, a, b], dtype, 1)
    }

    /// `x` moved into `lo..=hi`, which are the same for all elements.
    pub(crate) fn clip(&mut self, x: Operand, lo: Operand, hi: Operand, dtype: DType) -> Register {
        let (x, lo, hi) = (self.convert(x, dtype), self.convert(lo, dtype), self.convert(hi, dtype));
        self.push(action::clip(dtype), Detail::None, &[x, lo, hi], dtype, 1)
    }

    /// Makes an operand the next result.
    pub(crate) fn store(&mut self, x: Operand) {
        let x = self.load(x);
        // What is written once, lies in an input, or is a result already is copied.
        let is_kept = self.made[usize::from(x.at)].once
            || self.read.values().any(|read| read.at == x.at)
            || self.results.iter().any(|stored| stored.register == x.at);
        let width = x.dtype.storage_bytes();
        let register = if !is_computed_as_stored(x.dtype) || is_kept {
            let detail = Detail::To(x.dtype, false);
            let register = self.push(action::store(x.dtype), detail, &[x], x.dtype, 1).at;
            self.made[usize::from(register)].once = false;
            register
        } else {
            x.at
        };
        self.results.push(Stored { register, width });
    }

    /// The program. It has an element type for each register and a place for as long as it is read.
    pub(crate) fn finish(mut self) -> Program {
        self.chain();
        self.drop_numbers();
        let count = self.made.len();
        // The last reader of each register; what is the same for all tiles stays.
        let mut last: Vec<usize> = (0..count).collect();
        for (at, made) in self.made.iter().enumerate().filter(|(_, made)| !made.is_gone) {
            made.read().for_each(|operand| last[operand] = at);
        }
        let mut places: Vec<Option<Place>> = vec![None; count];
        for (index, stored) in self.results.iter().enumerate() {
            places[usize::from(stored.register)] = Some(Place::Result { index, width: stored.width });
        }
        let mut slots = Slots::default();
        for (at, made) in self.made.iter().enumerate().filter(|(_, made)| made.once && !made.is_gone) {
            places[at] = Some(Place::Bank(slots.take(size_of_computed(made.dtype))));
        }
        let mut ends: Vec<SmallVec<[usize; 2]>> = vec![SmallVec::new(); count];
        for (at, made) in self.made.iter().enumerate().filter(|(_, made)| !made.once && !made.is_gone) {
            if places[at].is_none() {
                places[at] = Some(Place::Bank(slots.take(size_of_computed(made.dtype))));
                ends[last[at]].push(at);
            }
            for &ended in &ends[at] {
                if let Some(Place::Bank(offset)) = places[ended] {
                    slots.give(size_of_computed(self.made[ended].dtype), offset);
                }
            }
        }
        // Offsets are in elements of a tile so far.
        let mut tile = TILE;
        while tile > LEAST && slots.end * tile > CACHE {
            tile /= 2;
        }
        let place = |place: Option<Place>| match place {
            Some(Place::Bank(offset)) => Place::Bank(offset * tile),
            Some(result @ Place::Result { .. }) => result,
            // What nobody writes.
            None => Place::Bank(0),
        };
        let places = places.into_iter().map(place).collect();
        let (once, each): (Vec<Made>, Vec<Made>) =
            self.made.into_iter().filter(|made| !made.is_gone).partition(|made| made.once);
        // Numbers are filled in whole tiles, and need nothing else.
        let (fixed, once): (Vec<Made>, Vec<Made>) = once.into_iter().partition(Made::is_number);
        let instructions = |made: Vec<Made>| made.into_iter().map(|made| made.instruction).collect();
        Program {
            fixed: instructions(fixed),
            once: instructions(once),
            each: instructions(each),
            places,
            bank: slots.end * tile,
            tile,
            weight: self.weight.max(1),
        }
    }
}

/// Bytes of an element of the type that a dtype is computed in.
pub(super) fn size_of_computed(dtype: DType) -> usize {
    with_compute!(dtype, C => size_of::<C>())
}

/// Room for registers, in bytes for each element of a tile.
#[derive(Default)]
struct Slots {
    free: FxHashMap<usize, Vec<usize>>,
    end: usize,
}

impl Slots {
    fn take(&mut self, width: usize) -> usize {
        self.free.get_mut(&width).and_then(Vec::pop).unwrap_or_else(|| {
            let start = self.end;
            self.end += width;
            start
        })
    }

    fn give(&mut self, width: usize, start: usize) {
        self.free.entry(width).or_default().push(start);
    }
}
