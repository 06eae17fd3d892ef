//! Nests whose groups are columns: many adjacent ones are gone through together, row by row.
//!
//! Runs of rows are reduced in registers, one vector of columns after the other. The results of runs are joined
//! pairwise, as a counter in binary counts: level `l` has the join of `2^l` runs, if bit `l` of their number is set.
//! `docs/order.md` has the order of reductions.

use super::build::{NestBuilder, NodeRole, Position};
use super::merge::State;
use super::pieces::chunk;
use super::turned::TURNED_BLOCK;
use crate::compiler::ir::{Access, Cmp, Conv, Elem, Op, Val};
use crate::kernels::TILE;

/// Columns that are gone through together: a row of so many f32 is a page, which is read to its end before the next
/// row, as hardware prefetchers expect.
const COLUMN_BLOCK: usize = 1024;

/// The rows of a piece of columns, so many of which lie beside each other: a power of two of runs, so that the division
/// does not change the order.
pub(super) fn piece_rows(width: usize, is_turned: bool) -> usize {
    (2 * chunk() / width.min(COLUMN_BLOCK)).max(rows_per_run(is_turned)).next_power_of_two()
}

/// The rows of a run. Where columns are reduced in the order of rows, it is a tile of a row.
fn rows_per_run(is_turned: bool) -> usize {
    if is_turned { TILE } else { ROWS_PER_RUN }
}

/// Rows that are reduced in order.
const ROWS_PER_RUN: usize = 16;

/// Rows that are read together, as many streams as hardware prefetchers follow with ease.
const ROW_STREAMS: usize = 8;

/// The most nodes of a nest whose rows have instructions of their own in a run. Of others there is a loop.
const MAX_UNROLLED_NODES: usize = 6;

/// The most bytes that are kept for a block of columns; what would be more is computed again.
const MAX_SCRATCH_BYTES: usize = 256 << 10;

/// The level before the first: what is reduced of a run so far.
const SO_FAR: i64 = -1;

/// A piece of the columns, and where its results go.
type Piece<'p> = Option<(Val, &'p [[usize; 2]])>;

/// Where the levels of each part of each reduction begin.
pub(super) type Offsets = Vec<Vec<(usize, Elem)>>;

/// Values in the groups of states.
fn like(states: &[State], values: &[Val]) -> Vec<State> {
    let mut values = values.iter().copied();
    states.iter().map(|state| values.by_ref().take(state.len()).collect()).collect()
}

impl NestBuilder<'_> {
    /// The columns that are gone through together.
    pub(super) fn block_width(&self) -> usize {
        self.sizes[self.sizes.len() - 1].min(self.most_columns())
    }

    /// The most columns of a block.
    fn most_columns(&self) -> usize {
        if self.shape.is_turned { TURNED_BLOCK } else { COLUMN_BLOCK }
    }

    /// The passes over all columns, or over those that begin at an argument and are as many as another says; or over
    /// the pieces of columns that these give.
    pub(super) fn columns(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        if self.shape.pieces == 1 {
            return self.blocks(part, None);
        }
        let reductions = self.nodes_of(0, |role| matches!(role, NodeRole::Reduction(_)));
        let offsets = self.partial_offsets(&reductions);
        let piece = self.begin_pieces(part);
        self.blocks(None, Some((piece, &offsets)))?;
        self.e.b.end_loop(&[]);
        Some(())
    }

    /// The passes over columns, block by block.
    fn blocks(&mut self, part: Option<(Val, Val)>, piece: Piece<'_>) -> Option<()> {
        let width = self.sizes[self.sizes.len() - 1];
        if part.is_none() && width <= self.most_columns() {
            let extent = self.e.b.index(width as i64);
            return self.block(extent, piece);
        }
        let zero = self.e.b.index(0);
        let (begin, count) = part.unwrap_or_else(|| (zero, self.e.b.index(width as i64)));
        let step = self.e.b.index(self.most_columns() as i64);
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
        let kept = rows * self.block_width() * self.passes.materialized.len() * 8;
        if kept <= MAX_SCRATCH_BYTES {
            self.reserve_materialized(rows * self.block_width())?;
        }
        for pass in 0..self.passes.count {
            self.pass = pass;
            if pass == 0 && self.passes.nodes.iter().any(|&(node, role)| self.is_ready(node, role, 0)) {
                self.begin(extent);
                self.column_values(0)?;
                self.e.b.end_lanes();
            }
            let reductions = self.nodes_of(pass, |role| matches!(role, NodeRole::Reduction(_)));
            let stored = self.stored_of(pass);
            if !reductions.is_empty() {
                match piece {
                    None => self.reduce_columns(&reductions, &stored, rows, extent)?,
                    Some((piece, offsets)) => {
                        self.reduce_piece(&reductions, &stored, (piece, offsets), extent)?
                    }
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

    fn is_ready(&self, node: usize, role: NodeRole, pass: usize) -> bool {
        role == NodeRole::Rows && self.passes.of(node) == pass
    }

    /// Begins a loop over the columns of the block.
    pub(super) fn begin(&mut self, extent: Val) {
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
        let coordinates = self.coordinates(number);
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
        for node in self.nodes_of(pass, |role| role == NodeRole::Rows) {
            let element = self.node(node, NodeRole::Rows)?;
            self.groups.insert(node, element);
            self.store_column(node)?;
        }
        Some(())
    }

    /// Stores what each column has, as a result and for other loops over the columns.
    fn store_column(&mut self, node: usize) -> Option<()> {
        self.store_group(node)?;
        if self.passes.is_kept(node) {
            let element = self.groups[&node];
            let width = element.dtype.storage_bytes();
            let offset = self.scratch.take(self.block_width() * width);
            self.offsets.insert(node, offset);
            let access = self.column_access(offset, width);
            self.e.store(element, access);
        }
        Some(())
    }

    /// Reduces the columns of the block, and computes what they have then.
    fn reduce_columns(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        rows: usize,
        extent: Val,
    ) -> Option<()> {
        let run = rows_per_run(self.shape.is_turned);
        let (whole, rest, runs) = (rows / run, rows % run, rows.div_ceil(run));
        if runs == 1 && !self.shape.is_turned {
            self.begin(extent);
            let folded = self.run(reductions, stored, (Position::default(), 1), rows, None)?;
            self.finish_columns(reductions, folded)?;
            self.e.b.end_lanes();
            return Some(());
        }
        let offsets = self.level_offsets(reductions, runs);
        let trips = self.e.b.index(whole as i64);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        let first = Position { offset: 0, terms: [(counter, run as i64)].into_iter().collect() };
        self.whole_run(reductions, stored, &offsets, (counter, first), extent)?;
        self.e.b.end_loop(&[]);
        self.begin_rest(reductions, stored, (rest, whole * run), extent)?;
        let states = self.combine_levels(reductions, stored, &offsets, (whole, rest), whole * run)?;
        self.finish_columns(reductions, states)?;
        self.e.b.end_lanes();
        Some(())
    }

    /// Reduces a piece of the columns of the block.
    fn reduce_piece(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        (piece, partial): (Val, &[[usize; 2]]),
        extent: Val,
    ) -> Option<()> {
        let (rows, height, pieces) = (self.reduced_size(), self.shape.piece, self.shape.pieces);
        let run = rows_per_run(self.shape.is_turned);
        let (whole, rest, runs) = (rows / run, rows % run, height / run);
        let offsets = self.level_offsets(reductions, runs);
        let [all, most] = [whole, runs].map(|count| self.e.b.index(count as i64));
        let before = self.e.b.mul(piece, most);
        let left = self.e.b.sub(all, before);
        let trips = self.e.b.op(Op::Min, [left, most]);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        let terms = [(counter, run as i64), (piece, height as i64)].into_iter().collect();
        self.whole_run(reductions, stored, &offsets, (counter, Position { offset: 0, terms }), extent)?;
        self.e.b.end_loop(&[]);
        let in_last = (whole - (pieces - 1) * runs, rest);
        let last = self.e.b.index(pieces as i64 - 1);
        let is_last = self.e.b.compare(Cmp::Eq, piece, last);
        if in_last != (runs, 0) {
            self.e.b.begin_if(is_last);
            self.begin_rest(reductions, stored, (rest, whole * run), extent)?;
            let states = self.combine_levels(reductions, stored, &offsets, in_last, whole * run)?;
            self.store_partial(reductions, partial, &states, piece);
            self.e.b.end_lanes();
            self.e.b.begin_else();
        }
        self.begin(extent);
        let states = self.combine_levels(reductions, stored, &offsets, (runs, 0), 0)?;
        self.store_partial(reductions, partial, &states, piece);
        self.e.b.end_lanes();
        if in_last != (runs, 0) {
            self.e.b.end_if(&[]);
        }
        Some(())
    }

    /// Room for the levels of so many runs, and before them for what is reduced of a run so far.
    fn level_offsets(&mut self, reductions: &[usize], runs: usize) -> Offsets {
        let levels = usize::BITS as usize - runs.leading_zeros() as usize;
        let mut offsets = Offsets::new();
        for &reduction in reductions {
            let mut of_parts = Vec::new();
            for elem in self.merge_of(reduction).parts() {
                let bytes = self.block_width() * elem.bytes();
                of_parts.push((self.scratch.take((1 + levels) * bytes) + bytes, elem));
            }
            offsets.push(of_parts);
        }
        offsets
    }

    /// Joins the levels of so many runs, and so many rows behind them, which begin at a row.
    fn combine_levels(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        offsets: &Offsets,
        (whole, rest): (usize, usize),
        row: usize,
    ) -> Option<Vec<State>> {
        let mut combined: Option<Vec<State>> = None;
        if rest > 0 {
            let start = Position { offset: row as i64, terms: Default::default() };
            combined = Some(if self.shape.is_turned {
                self.tile_of_lanes(reductions)
            } else {
                self.run(reductions, stored, (start, 1), rest, None)?
            });
            self.values.clear();
            self.loaded.clear();
        }
        // What is left of the runs before, from the last to the first.
        for level in (0..usize::BITS as usize).filter(|level| whole >> level & 1 == 1) {
            let mut next = Vec::new();
            for (at, of_parts) in offsets.iter().enumerate() {
                let before = self.load_level(of_parts, level as i64, None);
                let how = self.merge_of(reductions[at]);
                next.push(match &combined {
                    None => before,
                    Some(combined) => self.merge(how, &before, &combined[at]),
                });
            }
            combined = Some(next);
        }
        combined
    }

    /// Reduces the rows of a run, a few at a time over the whole block, and joins the result with those before.
    fn whole_run(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        offsets: &Offsets,
        (number, start): (Val, Position),
        extent: Val,
    ) -> Option<()> {
        if self.shape.is_turned {
            self.turned_tile(reductions, stored, (start, TILE), extent)?;
            self.begin(extent);
            let states = self.tile_of_lanes(reductions);
            self.count_run(reductions, offsets, states, number)?;
            self.e.b.end_lanes();
            return Some(());
        }
        self.begin(extent);
        let states = self.run(reductions, stored, (start.clone(), 1), ROW_STREAMS, None)?;
        self.store_levels(offsets, &states, None);
        self.e.b.end_lanes();
        let trips = self.e.b.index((ROWS_PER_RUN / ROW_STREAMS) as i64 - 1);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        self.begin(extent);
        let before: Vec<State> = offsets.iter().map(|offset| self.load_level(offset, SO_FAR, None)).collect();
        let mut next = start;
        next.offset = ROW_STREAMS as i64;
        next.terms.push((counter, ROW_STREAMS as i64));
        let states = self.run(reductions, stored, (next, 1), ROW_STREAMS, Some(before))?;
        self.store_levels(offsets, &states, None);
        self.e.b.end_lanes();
        self.e.b.end_loop(&[]);
        self.begin(extent);
        let states: Vec<State> = offsets.iter().map(|offset| self.load_level(offset, SO_FAR, None)).collect();
        self.count_run(reductions, offsets, states, number)?;
        self.e.b.end_lanes();
        Some(())
    }

    /// Begins the loop over the columns of the block in which levels are combined, with what lies behind whole runs: so
    /// many rows from one on.
    fn begin_rest(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        (rest, row): (usize, usize),
        extent: Val,
    ) -> Option<()> {
        if self.shape.is_turned && rest > 0 {
            let start = Position { offset: row as i64, terms: Default::default() };
            self.turned_tile(reductions, stored, (start, rest), extent)?;
        }
        self.begin(extent);
        Some(())
    }

    /// Reduces so many rows in order, from a position on and so far apart: alone, or behind what was reduced before.
    pub(super) fn run(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        (start, step): (Position, i64),
        rows: usize,
        before: Option<Vec<State>>,
    ) -> Option<Vec<State>> {
        let mut row = start;
        let mut left = rows;
        let states = match before {
            Some(before) => before,
            None => {
                self.set_row(row.clone());
                let states = self.row_states(reductions)?;
                self.store_elements(stored)?;
                row.offset += step;
                left -= 1;
                states
            }
        };
        if left == 0 {
            return Some(states);
        }
        if self.passes.nodes.len() <= MAX_UNROLLED_NODES {
            let mut combined = states;
            for _ in 0..left {
                self.values.clear();
                self.loaded.clear();
                self.set_row(row.clone());
                let states = self.row_states(reductions)?;
                for ((&reduction, before), state) in reductions.iter().zip(&mut combined).zip(&states) {
                    let how = self.merge_of(reduction);
                    *before = self.merge(how, before, state);
                }
                self.store_elements(stored)?;
                row.offset += step;
            }
            return Some(combined);
        }
        // What is computed in the loop is not there behind it, nor what was loaded for the first row in it.
        let known = (self.loaded.clone(), self.groups.clone());
        self.values.clear();
        self.loaded.clear();
        let trips = self.e.b.index(left as i64);
        let carried: Vec<(Val, bool)> = states.iter().flatten().map(|&value| (value, true)).collect();
        let (counter, carried) = self.e.b.begin_loop(Some(trips), &carried);
        row.terms.push((counter, step));
        self.set_row(row);
        let carried = like(&states, &carried);
        let states = self.row_states(reductions)?;
        let mut next = Vec::new();
        for ((&reduction, before), state) in reductions.iter().zip(&carried).zip(&states) {
            let how = self.merge_of(reduction);
            let combined = self.merge(how, before, state);
            next.extend(before.iter().copied().zip(combined));
        }
        self.store_elements(stored)?;
        self.e.b.end_loop(&next);
        self.values.clear();
        (self.loaded, self.groups) = known;
        Some(carried)
    }

    /// The states of the elements of a row of the columns.
    fn row_states(&mut self, reductions: &[usize]) -> Option<Vec<State>> {
        reductions.iter().map(|&reduction| self.state_at(reduction, Self::row_number)).collect()
    }

    /// Joins the result of the run with this number with those before that it completes a pair with, and keeps it.
    fn count_run(
        &mut self,
        reductions: &[usize],
        offsets: &Offsets,
        states: Vec<State>,
        number: Val,
    ) -> Option<()> {
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
        for ((&reduction, offset), state) in reductions.iter().zip(offsets).zip(&states) {
            let before = self.load_level(offset, 0, Some(level));
            let how = self.merge_of(reduction);
            let combined = self.merge(how, &before, state);
            next.extend(state.iter().copied().zip(combined));
        }
        self.e.b.end_loop(&next);
        self.store_levels(offsets, &states, Some(level));
        Some(())
    }

    /// Where a level of the columns is.
    pub(super) fn level(&self, offset: usize, elem: Elem, level: i64, counter: Option<Val>) -> Access {
        let bytes = (self.block_width() * elem.bytes()) as i64;
        let mut access = self.column_access(offset, elem.bytes());
        access.offset += level * bytes;
        access.terms.extend(counter.map(|counter| (counter, bytes)));
        access
    }

    pub(super) fn load_level(&mut self, offset: &[(usize, Elem)], level: i64, counter: Option<Val>) -> State {
        let mut state = State::new();
        for &(offset, elem) in offset {
            let access = self.level(offset, elem, level, counter);
            state.push(self.e.b.load(elem, access));
        }
        state
    }

    /// Stores states as a level, or as what is reduced so far.
    fn store_levels(&mut self, offsets: &Offsets, states: &[State], counter: Option<Val>) {
        let level = if counter.is_some() { 0 } else { SO_FAR };
        for (offset, state) in offsets.iter().zip(states) {
            for (&(offset, elem), &value) in offset.iter().zip(state) {
                let access = self.level(offset, elem, level, counter);
                self.e.b.store(value, access);
            }
        }
    }

    /// Notes the results of reductions, and what follows from them, in the loop over the columns.
    fn finish_columns(&mut self, reductions: &[usize], states: Vec<State>) -> Option<()> {
        self.finish_reductions(reductions, states)?;
        reductions.iter().try_for_each(|&reduction| self.store_column(reduction))?;
        self.column_values(self.pass + 1)
    }
}
