//! Columns that are reduced in the order of rows (`transposed`): tile by tile, and in a tile lane by lane. Each lane of
//! each column has a place in scratch memory.

use super::build::{NestBuilder, Position};
use super::columns::Offsets;
use super::merge::{Merge, State};
use super::rows::lanes_of;
use crate::compiler::ir::Val;

/// Columns that are gone through together: their lanes stay in the L1 cache.
pub(super) const TURNED_BLOCK: usize = 128;

impl NestBuilder<'_> {
    /// Reduces a tile of each column of the block, which begins at a position: the first lane has the result then.
    pub(super) fn turned_tile(
        &mut self,
        reductions: &[usize],
        stored: &[usize],
        (start, length): (Position, usize),
        extent: Val,
    ) -> Option<()> {
        let lanes = self.turned_lanes(reductions, length)?;
        let offsets = self.lane_offsets(reductions);
        let (whole, longer) = (length / lanes, length % lanes);
        let used = length.min(lanes);
        // How many elements a lane has.
        let count = |lane: usize| whole + usize::from(lane < longer);
        // The first half of the lanes, each with the one that is added to it, in ranges of as many elements.
        let half = lanes / 2;
        let mut first = 0;
        for end in 1..=used.min(half) {
            let of = |lane: usize| (count(lane), if lane + half < used { count(lane + half) } else { 0 });
            if end < used.min(half) && of(end) == of(first) {
                continue;
            }
            let trips = self.e.b.index((end - first) as i64);
            let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
            self.begin(extent);
            let lane = |offset: usize| {
                let mut at = start.clone();
                at.offset += (first + offset) as i64;
                at.terms.push((counter, 1));
                (at, lanes as i64)
            };
            let (own, other) = of(first);
            let mut states = self.run(reductions, stored, lane(0), own, None)?;
            if other > 0 {
                self.begin_elements();
                let others = self.run(reductions, stored, lane(half), other, None)?;
                states = self.merge_all(reductions, &states, &others);
            }
            self.store_lanes(&offsets, &states, (first, Some(counter)));
            self.e.b.end_lanes();
            self.e.b.end_loop(&[]);
            first = end;
        }
        let mut used = used.min(half);
        let mut half = half;
        while half > 1 {
            half /= 2;
            if used > half {
                let trips = self.e.b.index((used - half) as i64);
                let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
                self.begin(extent);
                let states = self.load_lanes(&offsets, (0, Some(counter)));
                let others = self.load_lanes(&offsets, (half, Some(counter)));
                let states = self.merge_all(reductions, &states, &others);
                self.store_lanes(&offsets, &states, (0, Some(counter)));
                self.e.b.end_lanes();
                self.e.b.end_loop(&[]);
                used = half;
            }
        }
        Some(())
    }

    /// What the last tile was reduced to.
    pub(super) fn tile_of_lanes(&mut self, reductions: &[usize]) -> Vec<State> {
        let offsets = self.lane_offsets(reductions);
        self.load_lanes(&offsets, (0, None))
    }

    /// The lanes of a tile of so many rows, if all reductions have as many.
    fn turned_lanes(&self, reductions: &[usize], length: usize) -> Option<usize> {
        let mut lanes = reductions.iter().map(|&reduction| lanes_of(self.merge_of(reduction), length));
        let first = lanes.next()?;
        lanes.all(|other| other == first).then_some(first)
    }

    fn merge_all(&mut self, reductions: &[usize], states: &[State], others: &[State]) -> Vec<State> {
        let mut merged = Vec::new();
        for ((&reduction, a), b) in reductions.iter().zip(states).zip(others) {
            let how: Merge = self.merge_of(reduction);
            merged.push(self.merge(how, a, b));
        }
        merged
    }

    /// Room for the first half of the lanes of each part of each reduction.
    fn lane_offsets(&mut self, reductions: &[usize]) -> Offsets {
        let mut offsets = Offsets::new();
        for &reduction in reductions {
            let how = self.merge_of(reduction);
            let mut of_parts = Vec::new();
            for (part, elem) in how.parts().into_iter().enumerate() {
                let bytes = lanes_of(how, usize::MAX) / 2 * self.block_width() * elem.bytes();
                let offset = match self.stages.get(&(reduction, part)) {
                    Some(&offset) => offset,
                    None => {
                        let offset = self.scratch.take(bytes);
                        self.stages.insert((reduction, part), offset);
                        offset
                    }
                };
                of_parts.push((offset, elem));
            }
            offsets.push(of_parts);
        }
        offsets
    }

    fn load_lanes(&mut self, offsets: &Offsets, (lane, counter): (usize, Option<Val>)) -> Vec<State> {
        offsets.iter().map(|of_parts| self.load_level(of_parts, lane as i64, counter)).collect()
    }

    fn store_lanes(&mut self, offsets: &Offsets, states: &[State], (lane, counter): (usize, Option<Val>)) {
        for (of_parts, state) in offsets.iter().zip(states) {
            for (&(offset, elem), &value) in of_parts.iter().zip(state) {
                let access = self.level(offset, elem, lane as i64, counter);
                self.e.b.store(value, access);
            }
        }
    }
}
