//! Nests whose groups are rows: each is gone through pass by pass, and reduced tile by tile.

use super::build::{NestBuilder, NodeRole, Position};
use super::merge::{Merge, State};
use crate::compiler::ir::{Access, Cmp, Conv, Elem, Op, Reduce, Val};
use crate::kernels::TILE;

/// Elements from which on a tile has 256 bytes of lanes; `docs/order.md` has the order of reductions.
const LONG_TILE: usize = 256;
const SHORT_LANES: usize = 16;

/// The lanes of a tile of so many elements.
pub(super) fn lanes_of(how: Merge, length: usize) -> usize {
    if length < LONG_TILE { SHORT_LANES } else { 256 / how.bytes().max(4) }
}

/// The lanes in which positions are compared.
const POSITION_LANES: u16 = 64;

impl NestBuilder<'_> {
    /// The passes over a row, or over the part of it that begins at an argument and has as many elements as another
    /// says.
    pub(super) fn rows(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        let length = self.row_length();
        self.reserve_materialized(length)?;
        for pass in 0..self.passes.count {
            self.pass = pass;
            if pass == 0 {
                self.row_values(0)?;
            }
            let reductions = self.nodes_of(pass, |role| matches!(role, NodeRole::Reduction(_)));
            let stored = self.stored_of(pass);
            if self.draws_before {
                self.begin_elements();
                let part = match part {
                    Some((begin, count)) => (Some(begin), count),
                    None => (None, self.e.b.index(length as i64)),
                };
                self.each_drawn(part, &[false], &mut |builder, _| builder.store_elements(&stored))?;
            } else if self.is_narrow_column() {
                let extent = part.map_or_else(|| self.e.b.index(length as i64), |(_, extent)| extent);
                self.narrow_column(extent, &stored)?;
            } else if let Some((_, extent)) = part {
                self.begin_elements();
                self.e.b.begin_lanes(extent);
                self.store_elements(&stored)?;
                self.e.b.end_lanes();
            } else if !reductions.is_empty() {
                let states = if length > TILE {
                    let states = self.tiles(&reductions, &stored, length)?;
                    self.combined_tiles(&reductions, &states, length.div_ceil(TILE))
                } else {
                    self.tile(&reductions, &stored, None, length)?
                };
                self.finish_reductions(&reductions, states)?;
            } else if !stored.is_empty() {
                self.begin_elements();
                if self.has_unit_rows() {
                    self.store_elements(&stored)?;
                } else {
                    let extent = self.e.b.index(length as i64);
                    self.each(None, extent, &mut |builder, _| builder.store_elements(&stored))?;
                }
            }
            // What each row has after this pass is there in the next.
            self.row_values(pass + 1)?;
            reductions.into_iter().try_for_each(|reduction| self.store_group(reduction))?;
        }
        Some(())
    }

    /// Whether each row is one element, a scalar: lanes would be a mask of one.
    fn has_unit_rows(&self) -> bool {
        self.sizes.len() > 1 && self.sizes[self.shape.lanes] == 1 && self.reads.random.is_empty()
    }

    /// The elements of a row.
    fn row_length(&self) -> usize {
        if self.reads.is_grouped { self.reduced_size() } else { self.sizes[self.sizes.len() - 1] }
    }

    /// The values of the row that later passes read, as far as they are there.
    pub(super) fn row_values(&mut self, pass: usize) -> Option<()> {
        for node in self.nodes_of(pass, |role| role == NodeRole::Rows) {
            let element = self.node(node, NodeRole::Rows)?;
            self.groups.insert(node, element);
            self.store_group(node)?;
        }
        Some(())
    }

    /// Forgets the elements of before.
    pub(super) fn begin_elements(&mut self) {
        self.values.clear();
        self.loaded.clear();
    }

    /// Whether the elements of a row are along several axes.
    fn has_several_axes(&self) -> bool {
        self.shape.reduced.len() > 1
    }

    /// Does something with the elements of a row, `extent` of them from `start` on; without a start these are all of
    /// them. It is told how many come before those that are done at once.
    fn each(
        &mut self,
        start: Option<Val>,
        extent: Val,
        work: &mut dyn FnMut(&mut Self, Option<Val>) -> Option<()>,
    ) -> Option<()> {
        if !self.has_several_axes() {
            self.row_start = start;
            self.e.b.begin_lanes(extent);
            work(self, None)?;
            self.e.b.end_lanes();
            self.row_start = None;
            return Some(());
        }
        let Some(start) = start else { return self.each_of_whole_row(work) };
        let axes = self.shape.reduced.clone();
        let last = axes.end - 1;
        let sizes: Vec<i64> = axes.clone().map(|axis| self.sizes[axis] as i64).collect();
        let coordinates = self.coordinates(start);
        let zero = self.e.b.index(0);
        let one = self.e.b.index(1);
        let carried: Vec<(Val, bool)> =
            std::iter::once(zero).chain(coordinates).map(|value| (value, false)).collect();
        let (_, carried) = self.e.b.begin_loop(None, &carried);
        let (done, at) = (carried[0], &carried[1..]);
        let is_left = self.e.b.compare(Cmp::Lt, done, extent);
        self.e.b.while_(is_left);
        for (axis, &position) in axes.clone().zip(at) {
            self.positions[axis] = Position::at(position);
        }
        self.positions[last] = Default::default();
        let column = at[at.len() - 1];
        self.row_start = Some(column);
        self.element = Some(self.e.b.add(start, done));
        let left = self.e.b.sub(extent, done);
        let length = self.e.b.index(sizes[sizes.len() - 1]);
        let remaining = self.e.b.sub(length, column);
        let count = self.e.b.op(Op::Min, [left, remaining]);
        self.begin_elements();
        self.e.b.begin_lanes(count);
        work(self, Some(done))?;
        self.e.b.end_lanes();
        // The next position, as an odometer counts.
        let mut next = vec![(done, self.e.b.add(done, count))];
        let mut by = count;
        for (at, &size) in at.iter().zip(&sizes).rev() {
            let moved = self.e.b.add(*at, by);
            let size = self.e.b.index(size);
            // 0 where the axis is at its end, else 1.
            let remaining = self.e.b.sub(size, moved);
            let is_within = self.e.b.op(Op::Min, [remaining, one]);
            let wrapped = self.e.b.sub(one, is_within);
            let back = self.e.b.mul(wrapped, size);
            next.push((*at, self.e.b.sub(moved, back)));
            by = wrapped;
        }
        self.e.b.end_loop(&next);
        self.row_start = None;
        self.element = None;
        self.begin_elements();
        Some(())
    }

    /// Does something with all elements of a row that are along several axes, as loops over the axes.
    fn each_of_whole_row(
        &mut self,
        work: &mut dyn FnMut(&mut Self, Option<Val>) -> Option<()>,
    ) -> Option<()> {
        let axes = self.shape.reduced.clone();
        let last = axes.end - 1;
        let mut done = self.e.b.index(0);
        for axis in axes.start..last {
            let trips = self.e.b.index(self.sizes[axis] as i64);
            let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
            self.positions[axis] = Position::at(counter);
            let before = self.e.b.mul(done, trips);
            done = self.e.b.add(before, counter);
        }
        let extent = self.e.b.index(self.sizes[last] as i64);
        let done = self.e.b.mul(done, extent);
        self.positions[last] = Position::default();
        self.element = Some(done);
        self.begin_elements();
        self.e.b.begin_lanes(extent);
        work(self, Some(done))?;
        self.e.b.end_lanes();
        (axes.start..last).for_each(|_| self.e.b.end_loop(&[]));
        self.element = None;
        self.begin_elements();
        Some(())
    }

    /// The position along each reduced axis of an element of the row.
    pub(super) fn coordinates(&mut self, element: Val) -> Vec<Val> {
        let axes = self.shape.reduced.clone();
        let mut left = self.e.b.convert(Conv::OfIndex, Elem::I64, element);
        let mut coordinates = Vec::new();
        for axis in axes.clone().rev() {
            let position = if axis == axes.start {
                left
            } else {
                let size = self.e.b.bits(Elem::I64, self.sizes[axis] as u64);
                let quotient = self.e.b.op(Op::DivU, [left, size]);
                let passed = self.e.b.mul(quotient, size);
                let rest = self.e.b.sub(left, passed);
                left = quotient;
                rest
            };
            coordinates.push(self.e.b.convert(Conv::ToIndex, Elem::Index, position));
        }
        coordinates.reverse();
        coordinates
    }

    /// Where the elements of a tile are kept until they are reduced.
    fn stage(&mut self, node: usize, part: usize, elem: Elem) -> Access {
        let offset = match self.stages.get(&(node, part)) {
            Some(&offset) => offset,
            None => {
                let offset = self.scratch.take(TILE * elem.bytes());
                self.stages.insert((node, part), offset);
                offset
            }
        };
        self.column_access(offset, elem.bytes())
    }

    /// Reduces a tile of a row, which begins at an element of it.
    pub(super) fn tile(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        start: Option<Val>,
        length: usize,
    ) -> Option<Vec<State>> {
        self.begin_elements();
        let merges: Vec<Merge> = reductions.iter().map(|&reduction| self.merge_of(reduction)).collect();
        let lanes = |how: &Merge| lanes_of(*how, length);
        let is_apart = self.has_several_axes();
        let mut is_staged = Vec::new();
        for (&reduction, how) in reductions.iter().zip(&merges) {
            let base = self.base_of(reduction);
            is_staged.push(match how {
                Merge::Product(_) => true,
                // It is read twice, where the result of the nest may lie in its place meanwhile.
                Merge::Extreme { .. } => is_apart || self.is_own(base) || !stored.is_empty(),
                Merge::One(..) | Merge::Sums(_) => is_apart,
            });
        }
        let extent = self.e.b.index(length as i64);
        if is_apart {
            self.each(start, extent, &mut |builder, done| {
                builder.stage_elements(reductions, &merges, &is_staged, done)?;
                builder.store_elements(stored)
            })?;
        }
        let mut accumulators: Vec<State> = Vec::new();
        for how in &merges {
            let count = lanes(how) as u16;
            accumulators.push(match *how {
                Merge::One(reduce, elem) | Merge::Extreme { reduce, elem, .. } => {
                    std::iter::once(self.e.b.accumulator(reduce, elem, count)).collect()
                }
                Merge::Sums(elem) => (0..2).map(|_| self.e.b.accumulator(Reduce::Add, elem, count)).collect(),
                Merge::Product(_) => State::new(),
            });
        }
        if !is_apart {
            self.row_start = start;
        }
        self.e.b.begin_lanes(extent);
        for (at, &reduction) in reductions.iter().enumerate() {
            let elements =
                if is_apart { self.staged(reduction, merges[at]) } else { self.lifted(reduction)? };
            for (&accumulator, &element) in accumulators[at].iter().zip(&elements) {
                self.e.b.reduce(accumulator, element);
            }
        }
        if !is_apart {
            self.stage_elements(reductions, &merges, &is_staged, None)?;
            self.store_elements(stored)?;
        }
        self.e.b.end_lanes();
        let mut states = Vec::new();
        for (at, &reduction) in reductions.iter().enumerate() {
            states.push(match merges[at] {
                Merge::One(..) | Merge::Sums(_) => accumulators[at].clone(),
                Merge::Product(_) => self.product(reduction, merges[at], lanes(&merges[at]), length),
                Merge::Extreme { elem, position, is_last, .. } => {
                    let extreme = (accumulators[at][0], elem, is_last);
                    let local = self.position_of(reduction, merges[at], is_staged[at], extreme, extent)?;
                    let local = self.e.b.convert(Conv::SignExtend, position, local);
                    let at = match start {
                        Some(start) => {
                            let start = self.e.b.convert(Conv::OfIndex, position, start);
                            self.e.b.add(start, local)
                        }
                        None => local,
                    };
                    State::from_slice(&[accumulators[states.len()][0], at])
                }
            });
        }
        self.row_start = None;
        Some(states)
    }

    /// The parts of the elements that are kept.
    fn staged(&mut self, reduction: usize, how: Merge) -> State {
        let elems = how.parts();
        let count = if let Merge::Extreme { .. } = how { 1 } else { elems.len() };
        let mut state = State::new();
        for (part, &elem) in elems[..count].iter().enumerate() {
            let access = self.stage(reduction, part, elem);
            state.push(self.e.b.load(elem, access));
        }
        state
    }

    /// Keeps elements until the tile is reduced.
    fn stage_elements(
        &mut self,
        reductions: &[usize],
        merges: &[Merge],
        is_staged: &[bool],
        done: Option<Val>,
    ) -> Option<()> {
        for (at, &reduction) in reductions.iter().enumerate().filter(|(at, _)| is_staged[*at]) {
            let elements = self.lifted(reduction)?;
            for (part, (&element, &elem)) in elements.iter().zip(&merges[at].parts()).enumerate() {
                let mut access = self.stage(reduction, part, elem);
                access.terms.extend(done.map(|done| (done, elem.bytes() as i64)));
                self.e.b.store(element, access);
            }
        }
        Some(())
    }

    /// The position in a tile of its extreme, which is known: the first or the last one.
    fn position_of(
        &mut self,
        reduction: usize,
        how: Merge,
        is_staged: bool,
        (extreme, elem, is_last): (Val, Elem, bool),
        extent: Val,
    ) -> Option<Val> {
        let reduce = if is_last { Reduce::Max } else { Reduce::Min };
        let search = |builder: &mut Self, cmp: Cmp| {
            builder.begin_elements();
            let accumulator = builder.e.b.accumulator(reduce, Elem::I32, POSITION_LANES);
            builder.e.b.begin_lanes(extent);
            let state = if is_staged { builder.staged(reduction, how) } else { builder.lifted(reduction)? };
            let (x, build) = (state[0], &mut builder.e.b);
            let is_it = build.compare(cmp, x, if cmp == Cmp::Eq { extreme } else { x });
            let lane = build.lane(Elem::I32);
            let none = build.bits(Elem::I32, reduce.neutral(Elem::I32));
            let position = build.select(is_it, lane, none);
            build.reduce(accumulator, position);
            build.end_lanes();
            builder.begin_elements();
            Some(accumulator)
        };
        if !elem.is_float() {
            return search(self, Cmp::Eq);
        }
        // If an element is NaN, so is the extreme, and nothing is equal to it.
        let is_number = self.e.b.compare(Cmp::Eq, extreme, extreme);
        self.e.b.begin_if(is_number);
        let of_number = search(self, Cmp::Eq)?;
        self.e.b.begin_else();
        let of_nan = search(self, Cmp::Ne)?;
        Some(self.e.b.end_if(&[(of_number, of_nan)])[0])
    }

    /// The product of the elements of a tile, which are kept, in lanes in memory.
    fn product(&mut self, reduction: usize, how: Merge, lanes: usize, length: usize) -> State {
        let whole = length / lanes;
        let step = self.e.b.index(lanes as i64);
        if whole > 1 {
            let trips = self.e.b.index(whole as i64 - 1);
            let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
            self.multiply(reduction, how, step, |elem| {
                let bytes = (lanes * elem.bytes()) as i64;
                (bytes, Some((counter, bytes)))
            });
            self.e.b.end_loop(&[]);
        }
        let rest = length % lanes;
        if whole > 0 && rest > 0 {
            let extent = self.e.b.index(rest as i64);
            self.multiply(reduction, how, extent, |elem| ((whole * lanes * elem.bytes()) as i64, None));
        }
        let mut left = length.min(lanes);
        let mut width = lanes;
        while width > 1 {
            width /= 2;
            if left > width {
                let extent = self.e.b.index((left - width) as i64);
                self.multiply(reduction, how, extent, |elem| ((width * elem.bytes()) as i64, None));
                left = width;
            }
        }
        let mut state = State::new();
        for (part, elem) in how.parts().into_iter().enumerate() {
            let access = Access { lane: 0, ..self.stage(reduction, part, elem) };
            state.push(self.e.b.load(elem, access));
        }
        state
    }

    /// Joins the first elements that are kept with others.
    fn multiply(
        &mut self,
        reduction: usize,
        how: Merge,
        extent: Val,
        other: impl Fn(Elem) -> (i64, Option<(Val, i64)>),
    ) {
        self.e.b.begin_lanes(extent);
        let first = self.staged(reduction, how);
        let mut second = State::new();
        for (part, elem) in how.parts().into_iter().enumerate() {
            let mut access = self.stage(reduction, part, elem);
            let (offset, term) = other(elem);
            access.offset += offset;
            access.terms.extend(term);
            second.push(self.e.b.load(elem, access));
        }
        let combined = self.merge(how, &first, &second);
        for (part, elem) in how.parts().into_iter().enumerate() {
            let access = self.stage(reduction, part, elem);
            self.e.b.store(combined[part], access);
        }
        self.e.b.end_lanes();
    }

    /// Reduces the tiles of a row; gives where their results are.
    fn tiles(&mut self, reductions: &[usize], stored: &[usize], length: usize) -> Option<Vec<usize>> {
        let (whole, rest) = (length / TILE, length % TILE);
        let offsets = self.tile_offsets(reductions, length.div_ceil(TILE));
        let trips = self.e.b.index(whole as i64);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        let tile = self.e.b.index(TILE as i64);
        let start = self.e.b.mul(counter, tile);
        let states = self.tile(reductions, stored, Some(start), TILE)?;
        self.store_tile(&offsets, &states, Some(counter), 0);
        self.e.b.end_loop(&[]);
        if rest > 0 {
            let start = self.e.b.index((whole * TILE) as i64);
            let states = self.tile(reductions, stored, Some(start), rest)?;
            self.store_tile(&offsets, &states, None, whole);
        }
        Some(offsets)
    }

    /// Room for the results of so many tiles, a word for each part.
    pub(super) fn tile_offsets(&mut self, reductions: &[usize], count: usize) -> Vec<usize> {
        reductions.iter().map(|_| self.scratch.take(2 * count * 8)).collect()
    }

    /// Stores the results of a tile.
    pub(super) fn store_tile(
        &mut self,
        offsets: &[usize],
        states: &[State],
        counter: Option<Val>,
        at: usize,
    ) {
        for (&offset, state) in offsets.iter().zip(states) {
            for (part, &value) in state.iter().enumerate() {
                let access = self.word((offset + 16 * at + 8 * part) as i64, counter);
                self.e.b.store(value, access);
            }
        }
    }

    /// Joins the results of so many tiles pairwise.
    pub(super) fn combined_tiles(
        &mut self,
        reductions: &[usize],
        offsets: &[usize],
        count: usize,
    ) -> Vec<State> {
        let mut combined = Vec::new();
        for (&reduction, &offset) in reductions.iter().zip(offsets) {
            let how = self.merge_of(reduction);
            let mut states: Vec<State> = Vec::new();
            for tile in 0..count {
                let mut state = State::new();
                for (part, elem) in how.parts().into_iter().enumerate() {
                    let access = self.word((offset + 16 * tile + 8 * part) as i64, None);
                    state.push(self.e.b.load(elem, access));
                }
                states.push(state);
            }
            combined.push(self.merge_pairwise(how, states));
        }
        combined
    }

    /// A word of the scratch memory.
    fn word(&self, offset: i64, counter: Option<Val>) -> Access {
        let terms = counter.into_iter().map(|counter| (counter, 16)).collect();
        Access { buffer: self.scratch_buffer(), offset, terms, lane: 0, is_streaming: false }
    }
}
