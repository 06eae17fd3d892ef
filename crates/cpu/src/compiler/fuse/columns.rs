//! Nests whose groups are columns: many adjacent ones are gone through together, row by row.
//!
//! Runs of rows are reduced in registers, one vector of columns after the other. The results of runs are joined
//! pairwise, as a counter in binary counts: level `l` has the join of `2^l` runs, if bit `l` of their number is set.
//! `docs/order.md` has the order of reductions.

use super::build::{Making, Part, Position};
use crate::compiler::ir::{Access, Cmp, Conv, Elem, Op, Val};

/// Columns that are gone through together: a row of so many f32 is a page, which is read to its end before the next
/// row, as hardware prefetchers expect.
const BLOCK: usize = 1024;

/// Rows that are reduced in order.
const RUN: usize = 16;

/// Rows that are read together, as many streams as hardware prefetchers follow with ease.
const TOGETHER: usize = 4;

/// The most bytes that are kept for a block of columns; what would be more is computed again.
const MOST_KEPT: usize = 256 << 10;

impl Making<'_> {
    /// The columns that are gone through together.
    pub(super) fn block_width(&self) -> usize {
        self.sizes[self.sizes.len() - 1].min(BLOCK)
    }

    /// The passes over all columns, or over those that begin at an argument and are as many as another says.
    pub(super) fn columns(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        let width = self.sizes[self.sizes.len() - 1];
        if part.is_none() && width <= BLOCK {
            let extent = self.e.b.index(width as i64);
            return self.block(extent);
        }
        let zero = self.e.b.index(0);
        let (begin, count) = part.unwrap_or_else(|| (zero, self.e.b.index(width as i64)));
        let step = self.e.b.index(BLOCK as i64);
        let (_, carried) = self.e.b.begin_loop(None, &[(zero, false)]);
        let position = carried[0];
        let is_left = self.e.b.compare(Cmp::Lt, position, count);
        self.e.b.while_(is_left);
        let left = self.e.b.sub(count, position);
        let extent = self.e.b.op(Op::Min, [left, step]);
        self.row_start = Some(self.e.b.add(begin, position));
        self.block(extent)?;
        let next = self.e.b.add(position, step);
        self.e.b.end_loop(&[(position, next)]);
        Some(())
    }

    /// The passes over a block of columns.
    fn block(&mut self, extent: Val) -> Option<()> {
        let rows = self.sizes[self.shape.reduced.expect("columns are reduced")];
        let kept = rows * self.block_width() * self.passes.kept.len() * 8;
        if kept <= MOST_KEPT {
            self.keep(rows * self.block_width())?;
        }
        for pass in 0..self.passes.count {
            self.pass = pass;
            if pass == 0 && self.passes.nodes.iter().any(|&(node, part)| self.is_ready(node, part, 0)) {
                self.begin(extent);
                self.column_values(0)?;
                self.e.b.end_lanes();
            }
            let folds = self.nodes_of(pass, |part| matches!(part, Part::Fold(_)));
            let stored = self.stored_of(pass);
            if !folds.is_empty() {
                self.fold_columns(&folds, &stored, rows, extent)?;
            } else if !stored.is_empty() {
                let trips = self.e.b.index(rows as i64);
                let (row, _) = self.e.b.begin_loop(Some(trips), &[]);
                self.set_row(Position::at(row));
                self.begin(extent);
                self.store_elements(&stored)?;
                self.e.b.end_lanes();
                self.e.b.end_loop(&[]);
            }
        }
        Some(())
    }

    fn is_ready(&self, node: usize, part: Part, pass: usize) -> bool {
        part == Part::Rows && self.passes.of(node) == pass
    }

    /// Begins a loop over the columns of the block.
    fn begin(&mut self, extent: Val) {
        self.values.clear();
        self.loaded.clear();
        self.groups.clear();
        self.e.b.begin_lanes(extent);
    }

    fn set_row(&mut self, row: Position) {
        let reduced = self.shape.reduced.expect("columns are reduced");
        self.positions[reduced] = row;
    }

    /// The values of columns that are there before a pass, in the loop over the columns.
    fn column_values(&mut self, pass: usize) -> Option<()> {
        for node in self.nodes_of(pass, |part| part == Part::Rows) {
            let element = self.node(node, Part::Rows)?;
            self.groups.insert(node, element);
            self.store_column(node)?;
        }
        Some(())
    }

    /// Stores what each column has, as a result and for later passes.
    fn store_column(&mut self, node: usize) -> Option<()> {
        self.store_group(node)?;
        if self.pass + 1 < self.passes.count || self.passes.of(node) == 0 {
            let element = self.groups[&node];
            let width = element.dtype.storage_bytes();
            let home = self.scratch.take(self.block_width() * width);
            self.homes.insert(node, home);
            let access = self.column_access(home, width);
            self.e.store(element, access);
        }
        Some(())
    }

    /// Reduces the columns of the block, and computes what they have then.
    fn fold_columns(&mut self, folds: &[usize], stored: &[usize], rows: usize, extent: Val) -> Option<()> {
        let (whole, rest, runs) = (rows / RUN, rows % RUN, rows.div_ceil(RUN));
        if runs == 1 {
            self.begin(extent);
            let folded = self.run(folds, stored, Position::default(), rows, None)?;
            self.finish_columns(folds, folded)?;
            self.e.b.end_lanes();
            return Some(());
        }
        let levels = usize::BITS as usize - runs.leading_zeros() as usize;
        // The levels, and before them what is reduced of a run so far.
        let mut homes = Vec::new();
        for &fold in folds {
            let (_, elem) = self.reduction(fold)?;
            let bytes = self.block_width() * elem.bytes();
            homes.push((self.scratch.take((1 + levels) * bytes) + bytes, elem));
        }
        let trips = self.e.b.index(whole as i64);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        self.whole_run(folds, stored, &homes, counter, extent)?;
        self.e.b.end_loop(&[]);
        self.begin(extent);
        let mut joined: Option<Vec<Val>> = None;
        if rest > 0 {
            let start = Position { offset: (whole * RUN) as i64, terms: Default::default() };
            joined = Some(self.run(folds, stored, start, rest, None)?);
            self.values.clear();
            self.loaded.clear();
        }
        // What is left of the runs before, from the last to the first.
        for level in (0..levels).filter(|level| whole >> level & 1 == 1) {
            let mut next = Vec::new();
            for (at, &(home, elem)) in homes.iter().enumerate() {
                let access = self.level(home, elem, level, None);
                let before = self.e.b.load(elem, access);
                let (reduce, _) = self.reduction(folds[at])?;
                next.push(match &joined {
                    None => before,
                    Some(joined) => self.e.b.op(reduce.op(), [before, joined[at]]),
                });
            }
            joined = Some(next);
        }
        self.finish_columns(folds, joined.expect("there is a run"))?;
        self.e.b.end_lanes();
        Some(())
    }

    /// Reduces the rows of a run, a few at a time over the whole block, and joins the result with those before.
    fn whole_run(
        &mut self,
        folds: &[usize],
        stored: &[usize],
        homes: &[(usize, Elem)],
        number: Val,
        extent: Val,
    ) -> Option<()> {
        // What is reduced so far has the place before the levels.
        let so_far = |making: &Self, home: usize, elem: Elem| {
            making.column_access(home - making.block_width() * elem.bytes(), elem.bytes())
        };
        let start = Position { offset: 0, terms: [(number, RUN as i64)].into_iter().collect() };
        self.begin(extent);
        let folded = self.run(folds, stored, start.clone(), TOGETHER, None)?;
        for (&value, &(home, elem)) in folded.iter().zip(homes) {
            let access = so_far(self, home, elem);
            self.e.b.store(value, access);
        }
        self.e.b.end_lanes();
        let trips = self.e.b.index((RUN / TOGETHER) as i64 - 1);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        self.begin(extent);
        let before: Vec<Val> = homes
            .iter()
            .map(|&(home, elem)| {
                let access = so_far(self, home, elem);
                self.e.b.load(elem, access)
            })
            .collect();
        let mut next = start;
        next.offset = TOGETHER as i64;
        next.terms.push((counter, TOGETHER as i64));
        let folded = self.run(folds, stored, next, TOGETHER, Some(before))?;
        for (&value, &(home, elem)) in folded.iter().zip(homes) {
            let access = so_far(self, home, elem);
            self.e.b.store(value, access);
        }
        self.e.b.end_lanes();
        self.e.b.end_loop(&[]);
        self.begin(extent);
        let folded: Vec<Val> = homes
            .iter()
            .map(|&(home, elem)| {
                let access = so_far(self, home, elem);
                self.e.b.load(elem, access)
            })
            .collect();
        self.count_run(folds, homes, folded, number)?;
        self.e.b.end_lanes();
        Some(())
    }

    /// Reduces so many rows in order, from a position on: alone, or behind what was reduced before.
    fn run(
        &mut self,
        folds: &[usize],
        stored: &[usize],
        start: Position,
        rows: usize,
        before: Option<Vec<Val>>,
    ) -> Option<Vec<Val>> {
        let mut row = start;
        let mut left = rows;
        let folded = match before {
            Some(before) => before,
            None => {
                self.set_row(row.clone());
                let mut folded = Vec::new();
                for &fold in folds {
                    folded.push(self.folded_value(fold)?);
                }
                self.store_elements(stored)?;
                row.offset += 1;
                left -= 1;
                folded
            }
        };
        if left == 0 {
            return Some(folded);
        }
        // What is computed in the loop is not there behind it, nor what was loaded for the first row in it.
        let known = (self.loaded.clone(), self.groups.clone());
        self.values.clear();
        self.loaded.clear();
        let trips = self.e.b.index(left as i64);
        let carried: Vec<(Val, bool)> = folded.iter().map(|&value| (value, true)).collect();
        let (counter, carried) = self.e.b.begin_loop(Some(trips), &carried);
        row.terms.push((counter, 1));
        self.set_row(row);
        let mut next = Vec::new();
        for (&fold, &before) in folds.iter().zip(&carried) {
            let (reduce, _) = self.reduction(fold)?;
            let value = self.folded_value(fold)?;
            next.push((before, self.e.b.op(reduce.op(), [before, value])));
        }
        self.store_elements(stored)?;
        self.e.b.end_loop(&next);
        self.values.clear();
        (self.loaded, self.groups) = known;
        Some(carried.into_vec())
    }

    /// Joins the result of the run with this number with those before that it completes a pair with, and keeps it.
    fn count_run(
        &mut self,
        folds: &[usize],
        homes: &[(usize, Elem)],
        folded: Vec<Val>,
        number: Val,
    ) -> Option<()> {
        let number = self.e.b.convert(Conv::OfIndex, Elem::I64, number);
        let zero = self.e.b.index(0);
        let one = self.e.b.index(1);
        let carried: Vec<(Val, bool)> = [(number, false), (zero, false)]
            .into_iter()
            .chain(folded.into_iter().map(|value| (value, true)))
            .collect();
        let (_, carried) = self.e.b.begin_loop(None, &carried);
        let (bits, level) = (carried[0], carried[1]);
        let (bit, none) = (self.e.b.bits(Elem::I64, 1), self.e.b.bits(Elem::I64, 0));
        let low = self.e.b.op(Op::And, [bits, bit]);
        let is_set = self.e.b.compare(Cmp::Ne, low, none);
        self.e.b.while_(is_set);
        let shifted = self.e.b.op(Op::ShrBy(1), [bits]);
        let above = self.e.b.add(level, one);
        let mut next = vec![(bits, shifted), (level, above)];
        for (at, &(home, elem)) in homes.iter().enumerate() {
            let access = self.level(home, elem, 0, Some(level));
            let before = self.e.b.load(elem, access);
            let (reduce, _) = self.reduction(folds[at])?;
            next.push((carried[2 + at], self.e.b.op(reduce.op(), [before, carried[2 + at]])));
        }
        self.e.b.end_loop(&next);
        for (at, &(home, elem)) in homes.iter().enumerate() {
            let access = self.level(home, elem, 0, Some(level));
            self.e.b.store(carried[2 + at], access);
        }
        Some(())
    }

    /// Where a level of the columns is.
    fn level(&self, home: usize, elem: Elem, level: usize, counter: Option<Val>) -> Access {
        let bytes = self.block_width() * elem.bytes();
        let mut access = self.column_access(home + level * bytes, elem.bytes());
        access.terms.extend(counter.map(|counter| (counter, bytes as i64)));
        access
    }

    /// Notes the results of reductions, and what follows from them, in the loop over the columns.
    fn finish_columns(&mut self, folds: &[usize], folded: Vec<Val>) -> Option<()> {
        self.finish_folds(folds, folded)?;
        folds.iter().try_for_each(|&fold| self.store_column(fold))?;
        self.column_values(self.pass + 1)
    }
}
