//! Reductions of slices, in an order that depends only on the lengths.

use std::marker::PhantomData;

use crate::kernels::simd::vectorized;
use crate::kernels::{Element, Real};

/// A reduction: how elements are converted to the accumulator's type, and how two accumulators are joined.
///
/// Joining is associative except for rounding; the kernels here choose the order.
pub(crate) trait Reduction: 'static {
    /// The type of the elements.
    type Item: Element;
    /// The type of the accumulator.
    type Acc: Element;
    /// The kind of the reduction.
    const KIND: Kind;
    /// The neutral element.
    fn start() -> Self::Acc;
    /// The accumulator of one element.
    fn lift(item: Self::Item) -> Self::Acc;
    /// Joins two accumulators; the earlier elements are in the first.
    fn join(first: Self::Acc, second: Self::Acc) -> Self::Acc;
}

/// The kinds of reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sum,
    Product,
    Greatest,
    Least,
    All,
    Any,
}

/// `a + b`.
pub(crate) struct Sum<C>(PhantomData<C>);
/// `a * b`.
pub(super) struct Product<C>(PhantomData<C>);
/// The maximum.
pub(super) struct Greatest<C>(PhantomData<C>);
/// The minimum.
pub(super) struct Least<C>(PhantomData<C>);
/// 1 unless an element is 0.
pub(super) struct All<C>(PhantomData<C>);
/// 0 unless an element is not 0.
pub(super) struct Any<C>(PhantomData<C>);

macro_rules! fold {
    ($name:ident, $bound:ident, $acc:ty, $start:expr, $lift:expr, $join:expr) => {
        impl<C: $bound> Reduction for $name<C> {
            type Item = C;
            type Acc = $acc;
            const KIND: Kind = Kind::$name;
            #[inline(always)]
            fn start() -> $acc {
                $start
            }
            #[inline(always)]
            fn lift(item: C) -> $acc {
                $lift(item)
            }
            #[inline(always)]
            fn join(first: $acc, second: $acc) -> $acc {
                $join(first, second)
            }
        }
    };
}
fold!(Sum, Element, C, C::ZERO, std::convert::identity, C::plus);
fold!(Product, Element, C, C::ONE, std::convert::identity, C::times);
// The conversion saturates: the neutral elements are an integer's bounds, and infinities for floats.
fold!(Greatest, Real, C, C::cast_from(f64::NEG_INFINITY), std::convert::identity, C::greater);
fold!(Least, Real, C, C::cast_from(f64::INFINITY), std::convert::identity, C::lesser);
fold!(All, Element, u8, 1, |item: C| u8::from(item.truth()), |a, b| a & b);
fold!(Any, Element, u8, 0, |item: C| u8::from(item.truth()), |a, b| a | b);

/// How many rows of columns one accumulator adds before it is joined with others. The error of a float sum grows with this
/// and with the logarithm of the length, instead of with the length.
pub(crate) const RUN: usize = 16;

/// The lanes of short slices. Element `i` is added to lane `i` modulo their number.
pub(super) const FEW_LANES: usize = 16;
/// The elements from which on a slice has 256 bytes of lanes: enough to hide the latency of an addition.
pub(super) const LONG: usize = 256;

vectorized! {
    /// Reduces one slice of at most a tile: lanes in order, then the halves of the lanes until one is left.
    pub(super) fn fold_slice[F: Reduction] of [F] (items: &[F::Item]) -> F::Acc {
        if items.len() < LONG {
            fold_lanes::<F, FEW_LANES>(items)
        } else if size_of::<F::Acc>() <= 4 {
            fold_lanes::<F, 64>(items)
        } else if size_of::<F::Acc>() == 8 {
            fold_lanes::<F, 32>(items)
        } else {
            fold_lanes::<F, 16>(items)
        }
    }
}

#[inline(always)]
fn fold_lanes<F: Reduction, const N: usize>(items: &[F::Item]) -> F::Acc {
    let (lines, rest) = items.as_chunks::<N>();
    let mut lanes = [F::start(); N];
    let Some((first, others)) = lines.split_first() else { return fold_part::<F>(rest) };
    for (lane, &item) in lanes.iter_mut().zip(first) {
        *lane = F::lift(item);
    }
    for line in others {
        for (lane, &item) in lanes.iter_mut().zip(line) {
            *lane = F::join(*lane, F::lift(item));
        }
    }
    for (lane, &item) in lanes.iter_mut().zip(rest) {
        *lane = F::join(*lane, F::lift(item));
    }
    let mut width = N;
    while width > 1 {
        width /= 2;
        let (low, high) = lanes.split_at_mut(width);
        join_all::<F>(low, &high[..width]);
    }
    lanes[0]
}

/// Reduces fewer elements than there are lanes: what has no partner stays.
#[inline(always)]
fn fold_part<F: Reduction>(items: &[F::Item]) -> F::Acc {
    let mut lanes = [F::start(); FEW_LANES];
    for (lane, &item) in lanes.iter_mut().zip(items) {
        *lane = F::lift(item);
    }
    let (mut present, mut width) = (items.len(), FEW_LANES);
    while width > 1 {
        width /= 2;
        for low in 0..present.saturating_sub(width) {
            lanes[low] = F::join(lanes[low], lanes[low + width]);
        }
        present = present.min(width);
    }
    lanes[0]
}

vectorized! {
    /// Joins the elements of all rows but the first to a row of results, sequentially. Rows are `step` elements apart.
    pub(super) fn fold_down[F: Reduction] of [F] (total: &mut [F::Acc], items: &[F::Item], step: usize, rows: usize) {
        let mut next = 1;
        // Several rows are read at once, while results stay in registers.
        while next + 4 <= rows {
            let row = |index: usize| &items[(next + index) * step..][..total.len()];
            let rows = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
            for (total, (((&a, &b), &c), &d)) in total.iter_mut().zip(rows) {
                let first = F::join(F::join(*total, F::lift(a)), F::lift(b));
                *total = F::join(F::join(first, F::lift(c)), F::lift(d));
            }
            next += 4;
        }
        for row in next..rows {
            for (total, &item) in total.iter_mut().zip(&items[row * step..]) {
                *total = F::join(*total, F::lift(item));
            }
        }
    }
}

vectorized! {
    /// Joins each result with one of later elements.
    pub(super) fn join_rows[F: Reduction] of [F] (first: &mut [F::Acc], second: &[F::Acc]) {
        join_all::<F>(first, second);
    }
}

vectorized! {
    /// Joins each result with one of earlier elements.
    pub(super) fn join_before[F: Reduction] of [F] (first: &[F::Acc], second: &mut [F::Acc]) {
        for (&first, second) in first.iter().zip(second) {
            *second = F::join(first, *second);
        }
    }
}

vectorized! {
    /// Joins one more element to each result.
    pub(super) fn join_row[F: Reduction] of [F] (total: &mut [F::Acc], row: &[F::Item]) {
        for (total, &item) in total.iter_mut().zip(row) {
            *total = F::join(*total, F::lift(item));
        }
    }
}

/// Joins two rows of results, element by element.
#[inline(always)]
pub(super) fn join_all<F: Reduction>(first: &mut [F::Acc], second: &[F::Acc]) {
    for (a, &b) in first.iter_mut().zip(second) {
        *a = F::join(*a, b);
    }
}

/// The levels of a cascade: it takes `2^LEVELS - 1` results.
pub(super) const LEVELS: usize = 24;

/// Joins a sequence of results pairwise: pairs, pairs of pairs and so on.
pub(crate) struct Cascade<A> {
    /// Level i holds the join of `2^i` results if bit i of `count` is set.
    levels: [A; LEVELS],
    count: usize,
}

impl<A: Element> Cascade<A> {
    pub(crate) fn new() -> Cascade<A> {
        Cascade { levels: [A::ZERO; LEVELS], count: 0 }
    }

    /// Takes the next result.
    #[inline]
    pub(crate) fn push<F: Reduction<Acc = A>>(&mut self, mut value: A) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            value = F::join(self.levels[level], value);
            level += 1;
        }
        self.levels[level] = value;
        self.count += 1;
    }

    /// The join of all results; the neutral element if there are none.
    pub(crate) fn finish<F: Reduction<Acc = A>>(self) -> A {
        let mut set = (0..LEVELS).filter(|level| self.count >> level & 1 == 1);
        let Some(lowest) = set.next() else { return F::start() };
        set.fold(self.levels[lowest], |acc, level| F::join(self.levels[level], acc))
    }
}
