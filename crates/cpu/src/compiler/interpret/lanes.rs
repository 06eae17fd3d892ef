//! Loops over the lanes of a block.
//!
//! A vector is in a register of [`BLOCK`] elements. Its ops run over whole steps of [`STEP`] elements, so
//! that the loops have no rest: what is behind the last lane of a block has any value, and no op fails on
//! one. A scalar that is an operand beside vectors is repeated for one step, which each step reads again.

use super::level::vectorized;
use super::scalars::{Binary, Element, Integer, Ternary, Unary};

/// The most lanes that are executed together: a step of a program takes some ns beside its loop, and the
/// registers that are alive should be in the first-level cache.
pub(super) const BLOCK: usize = 512;

/// The lanes of a step.
pub(super) const STEP: usize = 64;

/// An op on the lanes of a block. Its arguments are the bytes of the result, the operands, and a set of those
/// operands, bit by bit, that are one step for all. All are passed in registers, and the reference says that
/// the result is apart from the operands, without which the loops would be checked for it.
///
/// The result is whole steps of the op's type. The operands that the op has are as many steps, or one; all
/// are aligned, and initialized.
pub(super) type VectorFn = fn(&mut [u8], *const u8, *const u8, *const u8, u32);

/// An op on scalars: the result, and as many operands as it has.
///
/// # Safety
/// All point to values of the op's types.
pub(super) type ScalarFn = unsafe fn(*mut u8, *const u8, *const u8, *const u8);

/// An operand of an op, and how many steps it goes on for each step.
struct Operand<T> {
    at: *const [T; STEP],
    by: usize,
}

impl<T: Element> Operand<T> {
    #[inline(always)]
    fn new(at: *const u8, is_splat: bool) -> Operand<T> {
        Operand { at: at.cast(), by: usize::from(!is_splat) }
    }

    /// The next step.
    ///
    /// # Safety
    /// There is one, or it is the same again.
    #[inline(always)]
    unsafe fn next<'a>(&mut self) -> &'a [T; STEP] {
        // SAFETY: as the caller says, and every bit pattern is a value of an `Element`.
        let step = unsafe { &*self.at };
        self.at = self.at.wrapping_add(self.by);
        step
    }
}

/// The steps of a result.
#[inline(always)]
fn steps<T: Element>(out: &mut [u8]) -> &mut [[T; STEP]] {
    // SAFETY: results are aligned, and every bit pattern is a value of an `Element`.
    unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len() / size_of::<[T; STEP]>()) }
}

/// Defines the loop of ops with these operands, each with its bit in the set of repeated ones.
macro_rules! loops {
    (
        $(#[$meta:meta])*
        $name:ident[$trait:ident<$($generic:ident),*>] $($arg:ident: $T:ident $bit:literal),*
    ) => {
        $(#[$meta])*
        #[inline(always)]
        fn $name<K: $trait<$($generic),*>, $($generic: Element),*>(
            out: &mut [u8],
            $($arg: *const u8,)*
            splats: u32,
        ) {
            $(let mut $arg = Operand::<$T>::new($arg, splats & $bit != 0);)*
            for out in steps(out) {
                // SAFETY: each operand has as many steps as the result, or one.
                $(let $arg = unsafe { $arg.next() };)*
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = K::apply($($arg[lane]),*);
                }
            }
        }
    };
}

loops! {
    /// Ops of one operand.
    loop_1[Unary<A, Y>] a: A 1
}
loops! {
    /// Ops of two.
    loop_2[Binary<T, Y>] a: T 1, b: T 2
}
loops! {
    /// Ops of three.
    loop_3[Ternary<A, T>] a: A 1, b: T 2, c: T 4
}

vectorized! {
    /// An op of one operand.
    pub(super) fn each_1[K: Unary<A, Y>, A: Element, Y: Element] of [K, A, Y] (
        out: &mut [u8],
        a: *const u8,
        _b: *const u8,
        _c: *const u8,
        splats: u32,
    ) {
        loop_1::<K, A, Y>(out, a, splats);
    }
}

vectorized! {
    /// An op of two operands.
    pub(super) fn each_2[K: Binary<T, Y>, T: Element, Y: Element] of [K, T, Y] (
        out: &mut [u8],
        a: *const u8,
        b: *const u8,
        _c: *const u8,
        splats: u32,
    ) {
        loop_2::<K, T, Y>(out, a, b, splats);
    }
}

vectorized! {
    /// An op of three operands.
    pub(super) fn each_3[K: Ternary<A, T>, A: Element, T: Element] of [K, A, T] (
        out: &mut [u8],
        a: *const u8,
        b: *const u8,
        c: *const u8,
        splats: u32,
    ) {
        loop_3::<K, A, T>(out, a, b, c, splats);
    }
}

/// An op of one operand that processors lack for vectors: one loop serves all levels.
pub(super) fn plain_1<K: Unary<A, Y>, A: Element, Y: Element>(
    out: &mut [u8],
    a: *const u8,
    _: *const u8,
    _: *const u8,
    splats: u32,
) {
    loop_1::<K, A, Y>(out, a, splats);
}

/// As [`plain_1`], of two operands.
pub(super) fn plain_2<K: Binary<T, Y>, T: Element, Y: Element>(
    out: &mut [u8],
    a: *const u8,
    b: *const u8,
    _: *const u8,
    splats: u32,
) {
    loop_2::<K, T, Y>(out, a, b, splats);
}

/// An op of one scalar.
///
/// # Safety
/// As [`ScalarFn`] says.
pub(super) unsafe fn one_1<K: Unary<A, Y>, A: Element, Y: Element>(
    out: *mut u8,
    a: *const u8,
    _: *const u8,
    _: *const u8,
) {
    // SAFETY: as the caller says.
    unsafe { out.cast::<Y>().write(K::apply(a.cast::<A>().read())) };
}

/// An op of two scalars.
///
/// # Safety
/// As [`ScalarFn`] says.
pub(super) unsafe fn one_2<K: Binary<T, Y>, T: Element, Y: Element>(
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
) {
    // SAFETY: as the caller says.
    unsafe { out.cast::<Y>().write(K::apply(a.cast::<T>().read(), b.cast::<T>().read())) };
}

/// An op of three scalars.
///
/// # Safety
/// As [`ScalarFn`] says.
pub(super) unsafe fn one_3<K: Ternary<A, T>, A: Element, T: Element>(
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
) {
    // SAFETY: as the caller says.
    unsafe {
        out.cast::<T>().write(K::apply(a.cast::<A>().read(), b.cast::<T>().read(), c.cast::<T>().read()))
    };
}

/// Repeats a scalar `count` times.
///
/// # Safety
/// `from` is one, and `out` has room for so many, and neither overlaps the other.
pub(super) unsafe fn splat<T: Element>(from: *const u8, out: *mut u8, count: usize) {
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), count).fill(from.cast::<T>().read()) };
}

vectorized! {
    /// The positions of a block's elements, which begins at `start`.
    pub(super) fn positions[T: Integer] of [T] (out: &mut [u8], start: usize) {
        for (lane, out) in steps::<T>(out).as_flattened_mut().iter_mut().enumerate() {
            *out = T::low((start + lane) as u64);
        }
    }
}

vectorized! {
    /// Whether any of these bytes is not zero.
    pub(super) fn any[] of [] (predicates: &[u8]) -> bool {
        predicates.iter().fold(0, |all, &one| all | one) != 0
    }
}

/// The lanes of an accumulator that a loop keeps in registers.
const GROUP: usize = 16;

vectorized! {
    /// Adds values to the lanes of an accumulator, the first of them to lane `first`, which is none of those
    /// behind it after the lanes have been gone through.
    fn add_to_lanes[K: Binary<T, T>, T: Element] of [K, T] (lanes: &mut [T], values: &[T], first: usize) {
        let (count, mut first, mut values) = (lanes.len(), first, values);
        if first == 0 && count.is_multiple_of(GROUP) {
            let (whole, rest) = values.split_at(values.len() / count * count);
            for (group, lanes) in lanes.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
                let mut sums = *lanes;
                for row in whole.chunks_exact(count) {
                    let row = &row.as_chunks::<GROUP>().0[group];
                    for (sum, &value) in sums.iter_mut().zip(row) {
                        *sum = K::apply(*sum, value);
                    }
                }
                *lanes = sums;
            }
            values = rest;
        }
        while !values.is_empty() {
            let (now, later) = values.split_at(values.len().min(count - first));
            for (lane, &value) in lanes[first..].iter_mut().zip(now) {
                *lane = K::apply(*lane, value);
            }
            (values, first) = (later, 0);
        }
    }
}

/// The functions of an accumulator.
#[derive(Debug)]
pub(super) struct Reducer {
    /// Adds so many values from a register to so many lanes, the first of which is for the row's element at
    /// this position.
    pub(super) add:
        unsafe fn(lanes: *mut u8, count: usize, values: *const u8, number: usize, position: usize),
    /// Joins the halves of lanes until one is left.
    pub(super) join: unsafe fn(lanes: *mut u8, count: usize),
    /// Fills the lanes.
    pub(super) fill: unsafe fn(from: *const u8, lanes: *mut u8, count: usize),
}

impl Reducer {
    /// The functions for an op.
    pub(super) fn of<K: Binary<T, T>, T: Element>() -> &'static Reducer {
        const { &Reducer { add: add::<K, T>, join: join::<K, T>, fill: splat::<T> } }
    }
}

/// # Safety
/// The lanes and values are so many of the op's type.
unsafe fn add<K: Binary<T, T>, T: Element>(
    lanes: *mut u8,
    count: usize,
    values: *const u8,
    number: usize,
    position: usize,
) {
    // SAFETY: as the caller says; lanes are no register.
    let (lanes, values) = unsafe {
        (
            std::slice::from_raw_parts_mut(lanes.cast::<T>(), count),
            std::slice::from_raw_parts(values.cast::<T>(), number),
        )
    };
    add_to_lanes::<K, T>(lanes, values, position % count);
}

/// # Safety
/// The lanes are so many of the op's type.
unsafe fn join<K: Binary<T, T>, T: Element>(lanes: *mut u8, count: usize) {
    // SAFETY: as the caller says.
    let mut lanes = unsafe { std::slice::from_raw_parts_mut(lanes.cast::<T>(), count) };
    while lanes.len() > 1 {
        let (lower, upper) = lanes.split_at_mut(lanes.len() / 2);
        for (lower, &mut upper) in lower.iter_mut().zip(upper) {
            *lower = K::apply(*lower, upper);
        }
        lanes = lower;
    }
}
