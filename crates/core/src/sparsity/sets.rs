//! Sets of columns: each distinct set is stored once, as sorted ranges, and named by a number.

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// The number of a set. 0 is the empty set, and `1 + c` the set of column `c` alone, which takes no memory.
pub(super) type Id = u32;

/// The empty set.
pub(super) const EMPTY: Id = 0;

/// Columns from the first to before the second.
type Range = (u32, u32);

/// The sets that were met. Rows that depend on the same columns share one of them.
#[derive(Debug)]
pub(super) struct Sets {
    columns: u32,
    /// The ranges of all further sets, one set after the other: sorted, not empty, with gaps between them.
    ranges: Vec<Range>,
    /// Where each further set ends among the ranges.
    ends: Vec<usize>,
    /// The further sets by the hash of their ranges.
    by_hash: FxHashMap<u64, SmallVec<[Id; 1]>>,
    /// The unions of two sets that were computed before.
    unions: FxHashMap<(Id, Id), Id>,
}

impl Sets {
    /// The sets of this number of columns.
    pub(super) fn new(columns: u32) -> Sets {
        let (by_hash, unions) = (FxHashMap::default(), FxHashMap::default());
        Sets { columns, ranges: Vec::new(), ends: Vec::new(), by_hash, unions }
    }

    /// The set of one column.
    pub(super) fn single(column: u32) -> Id {
        column + 1
    }

    /// The columns of a set as sorted ranges.
    pub(super) fn ranges(&self, id: Id) -> SmallVec<[Range; 1]> {
        let mut ranges = SmallVec::new();
        self.extend(&mut ranges, id);
        ranges
    }

    fn extend<A: smallvec::Array<Item = Range>>(&self, ranges: &mut SmallVec<A>, id: Id) {
        if id == EMPTY {
            return;
        }
        match (id - 1).checked_sub(self.columns) {
            None => ranges.push((id - 1, id)),
            Some(further) => {
                let further = further as usize;
                let begin = if further == 0 { 0 } else { self.ends[further - 1] };
                ranges.extend_from_slice(&self.ranges[begin..self.ends[further]]);
            }
        }
    }

    /// The union of two sets.
    pub(super) fn union(&mut self, a: Id, b: Id) -> Id {
        if a == b || b == EMPTY {
            return a;
        }
        if a == EMPTY {
            return b;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let mut ranges: SmallVec<[Range; 16]> = SmallVec::new();
        self.extend(&mut ranges, a);
        self.extend(&mut ranges, b);
        let union = self.store(ranges);
        self.unions.insert(pair, union);
        union
    }

    /// The union of any number of sets.
    pub(super) fn union_all(&mut self, sets: impl IntoIterator<Item = Id>) -> Id {
        let mut distinct: SmallVec<[Id; 16]> = SmallVec::new();
        for id in sets {
            if id != EMPTY && distinct.last() != Some(&id) {
                distinct.push(id);
            }
        }
        distinct.sort_unstable();
        distinct.dedup();
        match distinct[..] {
            [] => EMPTY,
            [only] => only,
            [a, b] => self.union(a, b),
            _ => {
                let mut ranges: SmallVec<[Range; 16]> = SmallVec::new();
                distinct.iter().for_each(|&id| self.extend(&mut ranges, id));
                self.store(ranges)
            }
        }
    }

    /// The set of some ranges in any order.
    fn store(&mut self, mut ranges: SmallVec<[Range; 16]>) -> Id {
        ranges.sort_unstable();
        let mut merged: SmallVec<[Range; 16]> = SmallVec::new();
        for (begin, end) in ranges {
            match merged.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                Some(_) | None => merged.push((begin, end)),
            }
        }
        if let [(begin, end)] = merged[..]
            && end - begin == 1
        {
            return Sets::single(begin);
        }
        let mut hasher = FxHasher::default();
        merged.hash(&mut hasher);
        let hash = hasher.finish();
        let same = self.by_hash.get(&hash).and_then(|ids| {
            ids.iter().copied().find(|&id| {
                let further = (id - 1 - self.columns) as usize;
                let begin = if further == 0 { 0 } else { self.ends[further - 1] };
                self.ranges[begin..self.ends[further]] == merged[..]
            })
        });
        if let Some(id) = same {
            return id;
        }
        let id = 1 + self.columns + self.ends.len() as u32;
        self.ranges.extend_from_slice(&merged);
        self.ends.push(self.ranges.len());
        self.by_hash.entry(hash).or_default().push(id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_one_number() {
        let mut sets = Sets::new(10);
        let pair = sets.union(Sets::single(3), Sets::single(4));
        assert_eq!(sets.ranges(pair)[..], [(3, 5)]);
        assert_eq!(sets.union_all([Sets::single(4), EMPTY, Sets::single(3), pair]), pair);
        assert_eq!(sets.union(EMPTY, Sets::single(7)), Sets::single(7));
        let apart = sets.union_all([Sets::single(9), pair, Sets::single(0)]);
        assert_eq!(sets.ranges(apart)[..], [(0, 1), (3, 5), (9, 10)]);
        assert_eq!(sets.union_all([]), EMPTY);
    }
}
