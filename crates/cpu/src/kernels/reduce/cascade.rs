//! Pairwise sums of what pieces give: their error grows with the logarithm of the number of pieces.

use crate::kernels::Element;

/// The levels of a cascade: it takes `2^LEVELS - 1` results.
const LEVELS: usize = 24;

/// Adds a sequence of results pairwise: pairs, pairs of pairs and so on.
pub(crate) struct Cascade<A> {
    /// Level i holds the sum of `2^i` results if bit i of `count` is set.
    levels: [A; LEVELS],
    count: usize,
}

impl<A: Element> Cascade<A> {
    pub(crate) fn new() -> Cascade<A> {
        Cascade { levels: [A::ZERO; LEVELS], count: 0 }
    }

    /// Takes the next result.
    #[inline]
    pub(crate) fn push(&mut self, mut value: A) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            value = self.levels[level].plus(value);
            level += 1;
        }
        self.levels[level] = value;
        self.count += 1;
    }

    /// The sum of all results; 0 if there are none.
    pub(crate) fn finish(self) -> A {
        let mut set = (0..LEVELS).filter(|level| self.count >> level & 1 == 1);
        let Some(lowest) = set.next() else { return A::ZERO };
        set.fold(self.levels[lowest], |sum, level| self.levels[level].plus(sum))
    }
}
