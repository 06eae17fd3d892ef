//! The instructions of a tile program: what each does with one tile.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::{BinaryOp, UnaryOp};
use num_complex::Complex;
use smallvec::SmallVec;

use crate::kernels::chain::{self, Cheap, Link, Other};
use crate::kernels::elementwise::cast::nearest_bf16;
use crate::kernels::elementwise::vector::{self, Base, Lanes, Runs};
use crate::kernels::math::Float;
use crate::kernels::simd::{choose, each, each_pair};
use crate::kernels::{
    CastFrom, Element, Plain, Real, StridedOperand, create, with_compute, with_real, with_width,
};

/// One step of a program. Registers are numbers of the program's table.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub(super) run: Action,
    pub(super) detail: Detail,
    /// The registers that are read, of which there are so many; a chain's links have more.
    pub(super) operands: [u16; 3],
    pub(super) reads: usize,
    pub(super) out: u16,
}

impl Instruction {
    /// The steps of a chain.
    pub(super) fn chained(&self) -> Option<&[Joined]> {
        match &self.detail {
            Detail::Chain(links) => Some(links),
            Detail::None
            | Detail::Unary(..)
            | Detail::Binary(_)
            | Detail::Log(_)
            | Detail::Input(..)
            | Detail::To(..)
            | Detail::Count { .. }
            | Detail::Bytes(_)
            | Detail::With(..)
            | Detail::Runs { .. } => None,
        }
    }

    /// All registers that are read.
    pub(super) fn read(&self) -> impl Iterator<Item = u16> {
        let others = self.chained().unwrap_or_default();
        let others = others.iter().filter_map(|link| match *link {
            Joined::Op { op: _, with: With::Each(register) | With::First(register) } => Some(register),
            Joined::Aside(register) => Some(register),
            Joined::Op { op: _, with: With::Number(_) | With::Same } | Joined::Join(_) => None,
        });
        self.operands[..self.reads].iter().copied().chain(others)
    }
}

/// What an action has to know beside its registers.
#[derive(Clone, Debug)]
pub(super) enum Detail {
    None,
    /// An op of one operand, and the width of its dtype.
    Unary(UnaryOp, u32),
    Binary(BinaryOp),
    Log(Base),
    /// Which input, and the element type to read it as.
    Input(usize, DType),
    /// The element type to bring values to, and whether they were of floats.
    To(DType, bool),
    /// Counts along an axis: the distance of its elements, and how many they are.
    Count {
        step: usize,
        size: usize,
    },
    /// The bytes of an element.
    Bytes([u8; 16]),
    /// An op of elements and of one that is the same for all, the first operand or the second.
    With(BinaryOp, bool),
    /// The same with one for each run, of an input.
    Runs {
        op: BinaryOp,
        is_first: bool,
        input: usize,
        run: usize,
    },
    /// Cheap ops one after the other, the first of them of the first operand. They may write where they read.
    Chain(Box<[Joined]>),
}

/// A step of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Joined {
    /// An op of what was made so far and another operand.
    Op { op: Cheap, with: With },
    /// Puts that aside, and begins anew with a register.
    Aside(u16),
    /// An op of what was put aside and what was made since.
    Join(Cheap),
}

/// The other operand of an op of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum With {
    /// A register.
    Each(u16),
    /// The first element of a register.
    First(u16),
    /// A number.
    Number(f32),
    /// The same as the first operand.
    Same,
}

/// What is done with a tile.
pub(super) type Action = fn(&Instruction, &mut Tile<'_, '_>);

/// What instructions work on. Its registers are as a program's draft has them: each lies in memory of its own as long
/// as anything reads it, aligned and with room for the tile in its type, and is written before it is read.
pub(super) struct Tile<'t, 'a> {
    /// Where each register lies.
    pub(super) table: &'t mut [*mut u8],
    pub(super) inputs: &'t [StridedOperand<'a>],
    /// The position of the first element among those of the result.
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Tile<'_, '_> {
    fn read<T: Plain>(&self, register: u16) -> &[T] {
        // SAFETY: as the type says; nothing writes the register while the tile is borrowed.
        unsafe { std::slice::from_raw_parts(self.table[usize::from(register)].cast(), self.len) }
    }

    /// Calls `f` with what an instruction writes.
    #[inline(always)]
    fn fill<T: Plain>(&self, i: &Instruction, f: impl FnOnce(&mut [MaybeUninit<T>])) {
        let start = self.table[usize::from(i.out)].cast();
        // SAFETY: as the type says; an instruction that comes here writes no register that it reads.
        f(unsafe { std::slice::from_raw_parts_mut(start, self.len) });
    }

    #[inline(always)]
    fn one<A: Plain, B: Plain>(&self, i: &Instruction, f: impl FnOnce(&[A], &mut [MaybeUninit<B>])) {
        self.fill(i, |out| f(self.read(i.operands[0]), out));
    }

    #[inline(always)]
    fn two<A: Plain, B: Plain, C: Plain>(
        &self,
        i: &Instruction,
        f: impl FnOnce(&[A], &[B], &mut [MaybeUninit<C>]),
    ) {
        self.fill(i, |out| f(self.read(i.operands[0]), self.read(i.operands[1]), out));
    }

    #[inline(always)]
    fn three<A: Plain, B: Plain, C: Plain, D: Plain>(
        &self,
        i: &Instruction,
        f: impl FnOnce(&[A], &[B], &[C], &mut [MaybeUninit<D>]),
    ) {
        let [a, b, c] = i.operands;
        self.fill(i, |out| f(self.read(a), self.read(b), self.read(c), out));
    }
}

/// Reads an input, where it lies if nothing has to be done to its elements.
pub(super) fn load(dtype: DType) -> Action {
    fn of<C: Element>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Input(input, dtype) = i.detail else { unreachable!("an input is read as a type") };
        let source = &tile.inputs[input];
        match source.borrowed::<C>(dtype) {
            // Nothing writes a register that is loaded.
            Some(first) => tile.table[usize::from(i.out)] = first.wrapping_add(tile.start).cast_mut().cast(),
            None => tile.fill(i, |out| source.read::<C>(dtype, tile.start, out)),
        }
    }
    with_compute!(dtype, C => of::<C>)
}

/// Fills with one element.
pub(super) fn constant(dtype: DType) -> Action {
    fn of<C: Element>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Bytes(bytes) = i.detail else { unreachable!("a constant has bytes") };
        // SAFETY: any bits are a `C`, which has 16 bytes at most.
        let value = unsafe { bytes.as_ptr().cast::<C>().read_unaligned() };
        tile.fill(i, |out| {
            out.iter_mut().for_each(|out| {
                out.write(value);
            });
        });
    }
    with_compute!(dtype, C => of::<C>)
}

/// Counts along an axis, in the type that a dtype is computed in.
pub(super) fn count(dtype: DType) -> Action {
    fn of<C: Element>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Count { step, size } = i.detail else { unreachable!("what counts has a step") };
        tile.fill::<C>(i, |out| create::count(step, size, tile.start, out));
    }
    with_compute!(dtype, C => of::<C>)
}

/// An op whose result has the type of its operand.
pub(super) fn unary(dtype: DType) -> Action {
    fn of<C: Lanes>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Unary(op, bits) = i.detail else { unreachable!("an op of one operand") };
        tile.one(i, |x: &[C], out: &mut [MaybeUninit<C>]| C::unary(op, bits, x, out));
    }
    with_compute!(dtype, C => of::<C>)
}

/// A logarithm to a base.
pub(super) fn log_to(dtype: DType) -> Action {
    fn of<C: Lanes>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Log(base) = i.detail else { unreachable!("a logarithm has a base") };
        tile.one(i, |x: &[C], out: &mut [MaybeUninit<C>]| C::log_to(base, x, out));
    }
    with_compute!(dtype, C => of::<C>)
}

/// Whether elements are no numbers.
pub(super) fn is_nan(from: DType) -> Action {
    with_compute!(from, C => {
        |i, tile| tile.one(i, |x: &[C], out| each(x, out, |x| u8::from(x.nan())))
    })
}

/// Whether elements are infinite.
pub(super) fn is_infinity(from: DType) -> Action {
    with_compute!(from, C => {
        |i, tile| tile.one(i, |x: &[C], out| each(x, out, |x| u8::from(x.infinite())))
    })
}

/// Whether elements count as true, 0 or 1.
pub(super) fn truth(from: DType) -> Action {
    with_compute!(from, C => {
        |i, tile| tile.one(i, |x: &[C], out| each(x, out, |x| u8::from(x.truth())))
    })
}

/// A part of complex elements, or what is made of both: by the op.
pub(super) fn part(op: UnaryOp, from: DType) -> Option<Action> {
    fn of<T: Float>(op: UnaryOp) -> Option<Action>
    where
        Complex<T>: Plain,
    {
        if op == UnaryOp::REAL {
            Some(|i, tile| tile.one(i, |x: &[Complex<T>], out| each(x, out, |z| z.re)))
        } else if op == UnaryOp::IMAG {
            Some(|i, tile| tile.one(i, |x: &[Complex<T>], out| each(x, out, |z| z.im)))
        } else if op == UnaryOp::ABS {
            Some(|i, tile| tile.one(i, |x: &[Complex<T>], out| each(x, out, vector::abs::<T>)))
        } else if op == UnaryOp::CONJUGATE {
            Some(|i, tile| {
                tile.one(i, |x: &[Complex<T>], out| each(x, out, |z| Complex::new(z.re, z.im.negated())))
            })
        } else {
            None
        }
    }
    if from == DType::C128 { of::<f64>(op) } else { of::<f32>(op) }
}

/// An op whose result has the type of its operands.
pub(super) fn binary(dtype: DType) -> Action {
    fn of<C: Lanes>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Binary(op) = i.detail else { unreachable!("an op of two operands") };
        tile.two(i, |a: &[C], b: &[C], out: &mut [MaybeUninit<C>]| C::binary(op, a, b, out));
    }
    with_compute!(dtype, C => of::<C>)
}

/// An op of the first register, and of what is the same for all elements in the second.
pub(super) fn binary_with(dtype: DType) -> Action {
    fn of<C: Lanes>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::With(op, is_first) = i.detail else { unreachable!("an op with one element") };
        tile.two(i, |x: &[C], with: &[C], out| {
            let runs = Runs { x, with: &with[..1], first: x.len(), each: x.len() };
            C::binary_with(op, runs, is_first, out);
        });
    }
    with_compute!(dtype, C => of::<C>)
}

/// An op of a register, and of an input of which each element is for a run of those.
pub(super) fn binary_runs(dtype: DType) -> Action {
    fn of<C: Lanes>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Runs { op, is_first, input, run } = i.detail else { unreachable!("an op with runs") };
        let with = tile.inputs[input].runs::<C>(run, tile.start, tile.len);
        tile.one(i, |x: &[C], out| {
            let runs = Runs { x, with, first: run - tile.start % run, each: run };
            C::binary_with(op, runs, is_first, out);
        });
    }
    with_compute!(dtype, C => of::<C>)
}

/// Cheap ops one after the other.
pub(super) fn chain(i: &Instruction, tile: &mut Tile<'_, '_>) {
    let Detail::Chain(links) = &i.detail else { unreachable!("a chain has links") };
    let start = |register: u16| tile.table[usize::from(register)].cast::<f32>().cast_const();
    // One after the other: to collect what is so short takes longer than to push it.
    let mut all: SmallVec<[Link; 16]> = SmallVec::new();
    for link in links {
        all.push(match *link {
            Joined::Op { op, with } => {
                let other = match with {
                    With::Each(register) => Other::Each(start(register)),
                    With::First(register) => Other::All(tile.read(register)[0]),
                    With::Number(number) => Other::All(number),
                    With::Same => Other::Same,
                };
                Link::Op { op, other }
            }
            Joined::Aside(register) => Link::Aside(start(register)),
            Joined::Join(op) => Link::Join(op),
        });
    }
    let out = tile.table[usize::from(i.out)].cast();
    // SAFETY: the registers have as many elements; that which is written may be one that is read.
    unsafe { chain::chain(start(i.operands[0]), &all, out, tile.len) };
}

/// A comparison of elements of one type.
pub(super) fn compare(dtype: DType) -> Action {
    fn of<C: Lanes>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Binary(BinaryOp::Comparison(op)) = i.detail else { unreachable!("a comparison") };
        tile.two(i, |a: &[C], b: &[C], out| C::compare(op, a, b, out));
    }
    with_compute!(dtype, C => of::<C>)
}

/// A comparison of signed and unsigned elements of 64 bits.
pub(super) fn compare_mixed(left: DType) -> Action {
    fn unsigned_left(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Binary(BinaryOp::Comparison(op)) = i.detail else { unreachable!("a comparison") };
        tile.two(i, |a: &[u64], b: &[i64], out| vector::compare(op, a, b, out, i128::from, i128::from));
    }
    fn signed_left(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::Binary(BinaryOp::Comparison(op)) = i.detail else { unreachable!("a comparison") };
        tile.two(i, |a: &[i64], b: &[u64], out| vector::compare(op, a, b, out, i128::from, i128::from));
    }
    if left == DType::U64 { unsigned_left } else { signed_left }
}

/// A complex element of two real ones.
pub(super) fn complex(to: DType) -> Action {
    if to == DType::C128 {
        |i, tile| tile.two(i, |a: &[f64], b: &[f64], out| each_pair(a, b, out, Complex::new))
    } else {
        |i, tile| tile.two(i, |a: &[f32], b: &[f32], out| each_pair(a, b, out, Complex::new))
    }
}

/// A function of what counts as true: 0 or 1 on either side.
pub(super) fn logical(op: BinaryOp) -> Option<Action> {
    if op == BinaryOp::LOGICAL_AND {
        Some(|i, tile| tile.two(i, |a: &[u8], b: &[u8], out| each_pair(a, b, out, |a, b| a & b)))
    } else if op == BinaryOp::LOGICAL_OR {
        Some(|i, tile| tile.two(i, |a: &[u8], b: &[u8], out| each_pair(a, b, out, |a, b| a | b)))
    } else if op == BinaryOp::LOGICAL_XOR {
        Some(|i, tile| tile.two(i, |a: &[u8], b: &[u8], out| each_pair(a, b, out, |a, b| a ^ b)))
    } else {
        None
    }
}

/// The second where the first is not zero, else the third.
pub(super) fn select(dtype: DType) -> Action {
    with_compute!(dtype, C => {
        |i, tile| tile.three(i, |picks: &[u8], a: &[C], b: &[C], out| choose(picks, a, b, out))
    })
}

/// The first moved between the first elements of the others.
pub(super) fn clip(dtype: DType) -> Action {
    with_real!(dtype, C => {
        |i, tile| tile.three(i, |x: &[C], lo: &[C], hi: &[C], out| {
            let (lo, hi) = (lo[0], hi[0]);
            each(x, out, |x| x.greater(lo).lesser(hi));
        })
    })
}

/// Elements as those of another type, for which both are computed in types of their own.
pub(super) fn convert(from: DType, to: DType) -> Action {
    fn of<S: Element, C: Element + CastFrom<S>>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::To(dtype, from_float) = i.detail else { unreachable!("a conversion has a type") };
        tile.one(i, |x: &[S], out: &mut [MaybeUninit<C>]| {
            // Only into the small floats would f32 in between round twice.
            if C::COMPUTES_SMALL_FLOATS && dtype.is_float() && dtype != C::DTYPE {
                each(x, out, C::cast_odd);
            } else {
                each(x, out, C::cast_from);
            }
            if !C::stores(dtype) {
                // SAFETY: all elements were written.
                C::fit(unsafe { out.assume_init_mut() }, dtype, from_float);
            }
        });
    }
    // What lies as f32 and stays so is rounded on the way.
    if to == DType::BF16 && with_compute!(from, S => S::DTYPE == DType::F32) {
        return |i, tile| tile.one(i, |x: &[f32], out| each(x, out, nearest_bf16));
    }
    with_compute!(from, S => with_compute!(to, C => of::<S, C>))
}

/// Writes elements as they lie in memory.
pub(super) fn store(dtype: DType) -> Action {
    fn plain<C: Element>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        tile.one(i, |x: &[C], out: &mut [MaybeUninit<C>]| {
            out.write_copy_of_slice(x);
        });
    }
    fn narrow<C: Element, T: Plain>(i: &Instruction, tile: &mut Tile<'_, '_>) {
        let Detail::To(dtype, _) = i.detail else { unreachable!("a conversion has a type") };
        tile.one(i, |x: &[C], out: &mut [MaybeUninit<T>]| {
            let bytes = size_of_val(out);
            // SAFETY: the same memory as bytes.
            let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), bytes) };
            C::encode(x, dtype, out);
        });
    }
    with_compute!(dtype, C => {
        if C::stores(dtype) { plain::<C> } else { with_width!(dtype, T => narrow::<C, T>) }
    })
}
