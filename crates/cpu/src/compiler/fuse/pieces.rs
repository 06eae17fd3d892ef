//! Long groups: threads reduce their pieces, and a second function joins the results of those.

use super::build::{NestBuilder, NodeRole};
use super::merge::{Merge, State};
use crate::compiler::ir::{Access, Cmp, Op, Val};
#[cfg(all(any(test, fuzzing), target_os = "linux"))]
use crate::compiler::nest::test_hooks;
use crate::kernels::TILE;
#[cfg(not(all(any(test, fuzzing), target_os = "linux")))]
use crate::kernels::reduce::CHUNK;

/// The most partial results of rows that are combined without a loop.
const MAX_UNROLLED_ROWS: usize = 64;

/// The most partial results of columns that are combined without a loop.
const MAX_UNROLLED_COLUMNS: usize = 8;

/// The elements of a piece of a row, on which results depend. Tests have smaller ones.
pub(in super::super) fn chunk() -> usize {
    #[cfg(all(any(test, fuzzing), target_os = "linux"))]
    return test_hooks::chunk();
    #[cfg(not(all(any(test, fuzzing), target_os = "linux")))]
    CHUNK
}

impl NestBuilder<'_> {
    /// Reduces the pieces of a row, or those that begin at an argument and are as many as another says.
    pub(super) fn pieces(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        let (length, pieces) = (self.reduced_size(), self.shape.pieces);
        let tiles = self.shape.piece / TILE;
        let (whole, rest) = (length / TILE, length % TILE);
        let reductions = self.nodes_of(0, |role| matches!(role, NodeRole::Reduction(_)));
        let stored = self.stored_of(0);
        let partial = self.partial_offsets(&reductions);
        let offsets = self.tile_offsets(&reductions, tiles);
        let piece = self.begin_pieces(part);
        let [tile, chunk, most, all, first] =
            [TILE, self.shape.piece, tiles, whole, tiles].map(|n| self.e.b.index(n as i64));
        let start = self.e.b.mul(piece, chunk);
        let before = self.e.b.mul(piece, first);
        let left = self.e.b.sub(all, before);
        let trips = self.e.b.op(Op::Min, [left, most]);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        let passed = self.e.b.mul(counter, tile);
        let at = self.e.b.add(start, passed);
        let states = self.tile(&reductions, &stored, Some(at), TILE)?;
        self.store_tile(&offsets, &states, Some(counter), 0);
        self.e.b.end_loop(&[]);
        let last = self.e.b.index(pieces as i64 - 1);
        let is_last = self.e.b.compare(Cmp::Eq, piece, last);
        let in_last = (length - (pieces - 1) * self.shape.piece).div_ceil(TILE);
        if rest > 0 {
            self.e.b.begin_if(is_last);
            let at = self.e.b.index((whole * TILE) as i64);
            let states = self.tile(&reductions, &stored, Some(at), rest)?;
            self.store_tile(&offsets, &states, None, in_last - 1);
            self.e.b.end_if(&[]);
        }
        if in_last == tiles {
            let states = self.combined_tiles(&reductions, &offsets, tiles);
            self.store_partial(&reductions, &partial, &states, piece);
        } else {
            self.e.b.begin_if(is_last);
            let states = self.combined_tiles(&reductions, &offsets, in_last);
            self.store_partial(&reductions, &partial, &states, piece);
            self.e.b.begin_else();
            let states = self.combined_tiles(&reductions, &offsets, tiles);
            self.store_partial(&reductions, &partial, &states, piece);
            self.e.b.end_if(&[]);
        }
        self.e.b.end_loop(&[]);
        Some(())
    }

    /// Begins the loop over pieces.
    pub(super) fn begin_pieces(&mut self, part: Option<(Val, Val)>) -> Val {
        let trips = part.map_or_else(|| self.e.b.index(self.shape.pieces as i64), |(_, count)| count);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        part.map_or(counter, |(begin, _)| self.e.b.add(begin, counter))
    }

    /// Room for the results of the pieces of all groups.
    pub(super) fn partial_offsets(&mut self, reductions: &[usize]) -> Vec<[usize; 2]> {
        let count = self.sizes.iter().product::<usize>() / self.reduced_size() * self.shape.pieces;
        let mut offsets = Vec::new();
        for &reduction in reductions {
            let parts = self.merge_of(reduction).parts();
            offsets.push([0, 1].map(|part| match parts.get(part) {
                Some(elem) => self.partial.take(count * elem.bytes()),
                None => 0,
            }));
        }
        offsets
    }

    /// Stores the results of a piece.
    pub(super) fn store_partial(
        &mut self,
        reductions: &[usize],
        offsets: &[[usize; 2]],
        states: &[State],
        piece: Val,
    ) {
        for ((&reduction, offset), state) in reductions.iter().zip(offsets).zip(states) {
            for (part, elem) in self.merge_of(reduction).parts().into_iter().enumerate() {
                let access = self.partial_access(offset[part], elem.bytes(), 0, Some((piece, 1)));
                self.e.b.store(state[part], access);
            }
        }
    }

    fn load_partial(
        &mut self,
        how: Merge,
        offset: [usize; 2],
        at: usize,
        counter: Option<(Val, i64)>,
    ) -> State {
        let mut state = State::new();
        for (part, elem) in how.parts().into_iter().enumerate() {
            let access = self.partial_access(offset[part], elem.bytes(), at, counter);
            state.push(self.e.b.load(elem, access));
        }
        state
    }

    /// Joins results in memory until no more than `few` are left; gives how many.
    fn combine_in_memory(
        &mut self,
        how: Merge,
        offset: [usize; 2],
        few: usize,
        extent: Option<Val>,
    ) -> usize {
        let mut left = self.shape.pieces;
        let begin =
            |builder: &mut Self| extent.into_iter().for_each(|extent| builder.e.b.begin_lanes(extent));
        let end = |builder: &mut Self| {
            if extent.is_some() {
                builder.e.b.end_lanes();
            }
        };
        let store = |builder: &mut Self, state: State, at: usize, counter: Option<(Val, i64)>| {
            for (part, elem) in how.parts().into_iter().enumerate() {
                let access: Access = builder.partial_access(offset[part], elem.bytes(), at, counter);
                builder.e.b.store(state[part], access);
            }
        };
        while left > few {
            let pairs = left / 2;
            let trips = self.e.b.index(pairs as i64);
            let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
            begin(self);
            let [a, b] = [0, 1].map(|at| self.load_partial(how, offset, at, Some((counter, 2))));
            let combined = self.merge(how, &a, &b);
            store(self, combined, 0, Some((counter, 1)));
            end(self);
            self.e.b.end_loop(&[]);
            if left % 2 == 1 {
                begin(self);
                let state = self.load_partial(how, offset, left - 1, None);
                store(self, state, pairs, None);
                end(self);
            }
            left = left.div_ceil(2);
        }
        left
    }

    /// Joins what is left.
    fn combine_rest(&mut self, how: Merge, offset: [usize; 2], left: usize) -> State {
        let states = (0..left).map(|at| self.load_partial(how, offset, at, None)).collect();
        self.merge_pairwise(how, states)
    }

    /// Joins the results of the pieces of a row, and computes what follows from them.
    pub(super) fn combine_rows(&mut self) -> Option<()> {
        let reductions = self.nodes_of(0, |role| matches!(role, NodeRole::Reduction(_)));
        let offsets = self.partial_offsets(&reductions);
        let mut states = Vec::new();
        for (&reduction, &offset) in reductions.iter().zip(&offsets) {
            let how = self.merge_of(reduction);
            let left = self.combine_in_memory(how, offset, MAX_UNROLLED_ROWS, None);
            states.push(self.combine_rest(how, offset, left));
        }
        self.finish_reductions(&reductions, states)?;
        reductions.into_iter().try_for_each(|reduction| self.store_group(reduction))?;
        (0..self.passes.count).try_for_each(|pass| self.row_values(pass))
    }

    /// Joins the results of the pieces of columns, and computes what follows from them.
    pub(super) fn combine_columns(&mut self) -> Option<()> {
        let reductions = self.nodes_of(0, |role| matches!(role, NodeRole::Reduction(_)));
        let offsets = self.partial_offsets(&reductions);
        let extent = self.e.b.index(self.sizes[self.sizes.len() - 1] as i64);
        let mut left = Vec::new();
        for (&reduction, &offset) in reductions.iter().zip(&offsets) {
            let how = self.merge_of(reduction);
            left.push(self.combine_in_memory(how, offset, MAX_UNROLLED_COLUMNS, Some(extent)));
        }
        self.e.b.begin_lanes(extent);
        let mut states = Vec::new();
        for ((&reduction, &offset), &left) in reductions.iter().zip(&offsets).zip(&left) {
            let how = self.merge_of(reduction);
            states.push(self.combine_rest(how, offset, left));
        }
        self.finish_reductions(&reductions, states)?;
        reductions.into_iter().try_for_each(|reduction| self.store_group(reduction))?;
        (0..self.passes.count).try_for_each(|pass| self.row_values(pass))?;
        self.e.b.end_lanes();
        Some(())
    }
}
