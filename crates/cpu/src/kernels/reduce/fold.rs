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

/// How many elements one accumulator adds before it is joined with others. The error of a float sum grows with this and
/// with the logarithm of the length, instead of with the length.
pub(crate) const RUN: usize = 16;

/// Parallel accumulators: enough to fill vector registers and hide the latency of an addition; fewer for short slices.
pub(super) const LANES: usize = 64;
pub(super) const FEW_LANES: usize = 16;

vectorized! {
    /// Reduces one slice of at most a few tiles.
    pub(super) fn fold_slice[F: Reduction] of [F] (items: &[F::Item]) -> F::Acc {
        if items.len() >= 4 * LANES {
            fold_lanes::<F, LANES>(items)
        } else if items.len() >= 2 * FEW_LANES {
            fold_lanes::<F, FEW_LANES>(items)
        } else {
            // The first element is the start: `0 + -0` would lose the sign.
            let Some((&first, rest)) = items.split_first() else { return F::start() };
            let mut total = F::lift(first);
            for &item in rest {
                total = F::join(total, F::lift(item));
            }
            total
        }
    }
}

#[inline(always)]
fn fold_lanes<F: Reduction, const N: usize>(items: &[F::Item]) -> F::Acc {
    let (lines, rest) = items.as_chunks::<N>();
    let (first, others) = lines.split_at(RUN.min(lines.len()));
    let mut total = fold_lines::<F, N>(first);
    for run in others.chunks(RUN) {
        join_all::<F>(&mut total, &fold_lines::<F, N>(run));
    }
    for (lane, &item) in total.iter_mut().zip(rest) {
        *lane = F::join(*lane, F::lift(item));
    }
    let mut width = N;
    while width > 1 {
        width /= 2;
        let (low, high) = total.split_at_mut(width);
        join_all::<F>(low, &high[..width]);
    }
    total[0]
}

/// Reduces the lines of one run; there must be at least one.
#[inline(always)]
fn fold_lines<F: Reduction, const N: usize>(lines: &[[F::Item; N]]) -> [F::Acc; N] {
    let mut lanes = [F::start(); N];
    for (lane, &item) in lanes.iter_mut().zip(&lines[0]) {
        *lane = F::lift(item);
    }
    for line in &lines[1..] {
        for (lane, &item) in lanes.iter_mut().zip(line) {
            *lane = F::join(*lane, F::lift(item));
        }
    }
    lanes
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
