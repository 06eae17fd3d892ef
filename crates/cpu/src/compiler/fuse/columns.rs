//! Nests whose groups are columns: many adjacent ones are gone through together, row by row.
//!
//! Runs of rows are reduced in registers, one vector of columns after the other. The results of runs are joined
//! pairwise, as a counter in binary counts: level `l` has the join of `2^l` runs, if bit `l` of their number is set.
//! `docs/order.md` has the order of reductions.

use super::build::{Making, Part, Position};
use super::merge::State;
use super::pieces::chunk;
use crate::compiler::ir::{Access, Cmp, Conv, Elem, Op, Val};

/// Columns that are gone through together: a row of so many f32 is a page, which is read to its end before the next
/// row, as hardware prefetchers expect.
const BLOCK: usize = 1024;

/// The rows of a piece of columns, so many of which lie beside each other: a power of two of runs, so that the division
/// does not change the order.
pub(super) fn piece_rows(width: usize) -> usize {
    (2 * chunk() / width.min(BLOCK)).max(RUN).next_power_of_two()
}

/// Rows that are reduced in order.
const RUN: usize = 16;

/// Rows that are read together, as many streams as hardware prefetchers follow with ease.
const TOGETHER: usize = 8;

/// The most nodes of a nest whose rows have instructions of their own in a run. Of others there is a loop.
const FEW_NODES: usize = 6;

/// The most bytes that are kept for a block of columns; what would be more is computed again.
const MOST_KEPT: usize = 256 << 10;

/// The level before the first: what is reduced of a run so far.
const SO_FAR: i64 = -1;

/// A piece of the columns, and where its results go.
type Piece<'p> = Option<(Val, &'p [[usize; 2]])>;

/// Where the levels of each part of each reduction begin.
type Homes = Vec<Vec<(usize, Elem)>>;

/// Values in the groups of states.
fn like(states: &[State], values: &[Val]) -> Vec<State> {
    let mut values = values.iter().copied();
    states.iter().map(|state| values.by_ref().take(state.len()).collect()).collect()
}

impl Making<'_> {
    /// The columns that are gone through together.
    pub(super) fn block_width(&self) -> usize {
        self.sizes[self.sizes.len() - 1].min(BLOCK)
    }

    /// The passes over all columns, or over those that begin at an argument and are as many as another says; or over
    /// the pieces of columns that these give.
    pub(super) fn columns(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        if self.shape.pieces == 1 {
            return self.blocks(part, None);
        }
        let folds = self.nodes_of(0, |part| matches!(part, Part::Fold(_)));
        let homes = self.partial_homes(&folds);
        let piece = self.begin_pieces(part);
        self.blocks(None, Some((piece, &homes)))?;
        self.e.b.end_loop(&[]);
        Some(())
    }

    /// The passes over columns, block by block.
    fn blocks(&mut self, part: Option<(Val, Val)>, piece: Piece<'_>) -> Option<()> {
        let width = self.sizes[self.sizes.len() - 1];
        if part.is_none() && width <= BLOCK {
            let extent = self.e.b.index(width as i64);
            return self.block(extent, piece);
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
        self.block(extent, piece)?;
        let next = self.e.b.add(position, step);
        self.e.b.end_loop(&[(position, next)]);
        Some(())
    }

    /// The passes over a block of columns.
    fn block(&mut self, extent: Val, piece: Piece<'_>) -> Option<()> {
        let rows = self.reduced_size();
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
                match piece {
                    None => self.fold_columns(&folds, &stored, rows, extent)?,
                    Some((piece, homes)) => self.fold_piece(&folds, &stored, (piece, homes), extent)?,
                }
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
        self.columns_row = row;
        let reduced = self.shape.reduced.clone();
        if reduced.len() == 1 {
            self.positions[reduced.start] = self.columns_row.clone();
            return;
        }
        let number = self.row_number();
        let coordinates = self.coordinates(Some(number));
        for (axis, coordinate) in reduced.zip(coordinates) {
            self.positions[axis] = Position::at(coordinate);
        }
    }

    /// The number of the row.
    fn row_number(&mut self) -> Val {
        let Position { offset, terms } = self.columns_row.clone();
        let mut number = self.e.b.index(offset);
        for (counter, by) in terms {
            let by = self.e.b.index(by);
            let passed = self.e.b.mul(counter, by);
            number = self.e.b.add(passed, number);
        }
        number
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
        let homes = self.level_homes(folds, runs);
        let trips = self.e.b.index(whole as i64);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        let first = Position { offset: 0, terms: [(counter, RUN as i64)].into_iter().collect() };
        self.whole_run(folds, stored, &homes, (counter, first), extent)?;
        self.e.b.end_loop(&[]);
        self.begin(extent);
        let states = self.join_levels(folds, stored, &homes, (whole, rest), whole * RUN)?;
        self.finish_columns(folds, states)?;
        self.e.b.end_lanes();
        Some(())
    }

    /// Reduces a piece of the columns of the block.
    fn fold_piece(
        &mut self,
        folds: &[usize],
        stored: &[usize],
        (piece, partial): (Val, &[[usize; 2]]),
        extent: Val,
    ) -> Option<()> {
        let (rows, height, pieces) = (self.reduced_size(), self.shape.piece, self.shape.pieces);
        let (whole, rest, runs) = (rows / RUN, rows % RUN, height / RUN);
        let homes = self.level_homes(folds, runs);
        let [all, most] = [whole, runs].map(|count| self.e.b.index(count as i64));
        let before = self.e.b.mul(piece, most);
        let left = self.e.b.sub(all, before);
        let trips = self.e.b.op(Op::Min, [left, most]);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        let terms = [(counter, RUN as i64), (piece, height as i64)].into_iter().collect();
        self.whole_run(folds, stored, &homes, (counter, Position { offset: 0, terms }), extent)?;
        self.e.b.end_loop(&[]);
        let in_last = (whole - (pieces - 1) * runs, rest);
        let last = self.e.b.index(pieces as i64 - 1);
        let is_last = self.e.b.compare(Cmp::Eq, piece, last);
        if in_last != (runs, 0) {
            self.e.b.begin_if(is_last);
            self.begin(extent);
            let states = self.join_levels(folds, stored, &homes, in_last, whole * RUN)?;
            self.store_partial(folds, partial, &states, piece);
            self.e.b.end_lanes();
            self.e.b.begin_else();
        }
        self.begin(extent);
        let states = self.join_levels(folds, stored, &homes, (runs, 0), 0)?;
        self.store_partial(folds, partial, &states, piece);
        self.e.b.end_lanes();
        if in_last != (runs, 0) {
            self.e.b.end_if(&[]);
        }
        Some(())
    }

    /// Room for the levels of so many runs, and before them for what is reduced of a run so far.
    fn level_homes(&mut self, folds: &[usize], runs: usize) -> Homes {
        let levels = usize::BITS as usize - runs.leading_zeros() as usize;
        let mut homes = Homes::new();
        for &fold in folds {
            let mut of_parts = Vec::new();
            for elem in self.merge_of(fold).parts() {
                let bytes = self.block_width() * elem.bytes();
                of_parts.push((self.scratch.take((1 + levels) * bytes) + bytes, elem));
            }
            homes.push(of_parts);
        }
        homes
    }

    /// Joins the levels of so many runs, and so many rows behind them, which begin at a row.
    fn join_levels(
        &mut self,
        folds: &[usize],
        stored: &[usize],
        homes: &Homes,
        (whole, rest): (usize, usize),
        row: usize,
    ) -> Option<Vec<State>> {
        let mut joined: Option<Vec<State>> = None;
        if rest > 0 {
            let start = Position { offset: row as i64, terms: Default::default() };
            joined = Some(self.run(folds, stored, start, rest, None)?);
            self.values.clear();
            self.loaded.clear();
        }
        // What is left of the runs before, from the last to the first.
        for level in (0..usize::BITS as usize).filter(|level| whole >> level & 1 == 1) {
            let mut next = Vec::new();
            for (at, of_parts) in homes.iter().enumerate() {
                let before = self.load_level(of_parts, level as i64, None);
                let how = self.merge_of(folds[at]);
                next.push(match &joined {
                    None => before,
                    Some(joined) => self.merge(how, &before, &joined[at]),
                });
            }
            joined = Some(next);
        }
        joined
    }

    /// Reduces the rows of a run, a few at a time over the whole block, and joins the result with those before.
    fn whole_run(
        &mut self,
        folds: &[usize],
        stored: &[usize],
        homes: &Homes,
        (number, start): (Val, Position),
        extent: Val,
    ) -> Option<()> {
        self.begin(extent);
        let states = self.run(folds, stored, start.clone(), TOGETHER, None)?;
        self.store_levels(homes, &states, None);
        self.e.b.end_lanes();
        let trips = self.e.b.index((RUN / TOGETHER) as i64 - 1);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        self.begin(extent);
        let before: Vec<State> = homes.iter().map(|home| self.load_level(home, SO_FAR, None)).collect();
        let mut next = start;
        next.offset = TOGETHER as i64;
        next.terms.push((counter, TOGETHER as i64));
        let states = self.run(folds, stored, next, TOGETHER, Some(before))?;
        self.store_levels(homes, &states, None);
        self.e.b.end_lanes();
        self.e.b.end_loop(&[]);
        self.begin(extent);
        let states: Vec<State> = homes.iter().map(|home| self.load_level(home, SO_FAR, None)).collect();
        self.count_run(folds, homes, states, number)?;
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
        before: Option<Vec<State>>,
    ) -> Option<Vec<State>> {
        let mut row = start;
        let mut left = rows;
        let states = match before {
            Some(before) => before,
            None => {
                self.set_row(row.clone());
                let states = self.row_states(folds)?;
                self.store_elements(stored)?;
                row.offset += 1;
                left -= 1;
                states
            }
        };
        if left == 0 {
            return Some(states);
        }
        if self.passes.nodes.len() <= FEW_NODES {
            let mut joined = states;
            for _ in 0..left {
                self.values.clear();
                self.loaded.clear();
                self.set_row(row.clone());
                let states = self.row_states(folds)?;
                for ((&fold, before), state) in folds.iter().zip(&mut joined).zip(&states) {
                    let how = self.merge_of(fold);
                    *before = self.merge(how, before, state);
                }
                self.store_elements(stored)?;
                row.offset += 1;
            }
            return Some(joined);
        }
        // What is computed in the loop is not there behind it, nor what was loaded for the first row in it.
        let known = (self.loaded.clone(), self.groups.clone());
        self.values.clear();
        self.loaded.clear();
        let trips = self.e.b.index(left as i64);
        let carried: Vec<(Val, bool)> = states.iter().flatten().map(|&value| (value, true)).collect();
        let (counter, carried) = self.e.b.begin_loop(Some(trips), &carried);
        row.terms.push((counter, 1));
        self.set_row(row);
        let carried = like(&states, &carried);
        let states = self.row_states(folds)?;
        let mut next = Vec::new();
        for ((&fold, before), state) in folds.iter().zip(&carried).zip(&states) {
            let how = self.merge_of(fold);
            let joined = self.merge(how, before, state);
            next.extend(before.iter().copied().zip(joined));
        }
        self.store_elements(stored)?;
        self.e.b.end_loop(&next);
        self.values.clear();
        (self.loaded, self.groups) = known;
        Some(carried)
    }

    /// The states of the elements of a row of the columns.
    fn row_states(&mut self, folds: &[usize]) -> Option<Vec<State>> {
        folds.iter().map(|&fold| self.state_at(fold, Self::row_number)).collect()
    }

    /// Joins the result of the run with this number with those before that it completes a pair with, and keeps it.
    fn count_run(&mut self, folds: &[usize], homes: &Homes, states: Vec<State>, number: Val) -> Option<()> {
        let number = self.e.b.convert(Conv::OfIndex, Elem::I64, number);
        let zero = self.e.b.index(0);
        let one = self.e.b.index(1);
        let carried: Vec<(Val, bool)> = [(number, false), (zero, false)]
            .into_iter()
            .chain(states.iter().flatten().map(|&value| (value, true)))
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
        let states = like(&states, &carried[2..]);
        for ((&fold, home), state) in folds.iter().zip(homes).zip(&states) {
            let before = self.load_level(home, 0, Some(level));
            let how = self.merge_of(fold);
            let joined = self.merge(how, &before, state);
            next.extend(state.iter().copied().zip(joined));
        }
        self.e.b.end_loop(&next);
        self.store_levels(homes, &states, Some(level));
        Some(())
    }

    /// Where a level of the columns is.
    fn level(&self, home: usize, elem: Elem, level: i64, counter: Option<Val>) -> Access {
        let bytes = (self.block_width() * elem.bytes()) as i64;
        let mut access = self.column_access(home, elem.bytes());
        access.offset += level * bytes;
        access.terms.extend(counter.map(|counter| (counter, bytes)));
        access
    }

    fn load_level(&mut self, home: &[(usize, Elem)], level: i64, counter: Option<Val>) -> State {
        let mut state = State::new();
        for &(home, elem) in home {
            let access = self.level(home, elem, level, counter);
            state.push(self.e.b.load(elem, access));
        }
        state
    }

    /// Stores states as a level, or as what is reduced so far.
    fn store_levels(&mut self, homes: &Homes, states: &[State], counter: Option<Val>) {
        let level = if counter.is_some() { 0 } else { SO_FAR };
        for (home, state) in homes.iter().zip(states) {
            for (&(home, elem), &value) in home.iter().zip(state) {
                let access = self.level(home, elem, level, counter);
                self.e.b.store(value, access);
            }
        }
    }

    /// Notes the results of reductions, and what follows from them, in the loop over the columns.
    fn finish_columns(&mut self, folds: &[usize], states: Vec<State>) -> Option<()> {
        self.finish_reductions(folds, states)?;
        folds.iter().try_for_each(|&fold| self.store_column(fold))?;
        self.column_values(self.pass + 1)
    }
}
