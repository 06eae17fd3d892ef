//! Nests whose groups are rows: each is gone through pass by pass.

use super::build::{LONG_ROW, Making, Part, Tile};
use crate::compiler::ir::{Access, Val};
use crate::kernels::TILE;

/// Elements from which on a tile has 256 bytes of lanes; `docs/order.md` has the order of reductions.
const LONG_TILE: usize = 256;
const SHORT_LANES: u16 = 16;

impl Making<'_> {
    /// The passes over a row, or over the part of it that begins at an argument and has as many elements as another
    /// says.
    pub(super) fn rows(&mut self, part: Option<(Val, Val)>) -> Option<()> {
        let length = self.sizes[self.sizes.len() - 1];
        self.keep(length)?;
        for pass in 0..self.passes.count {
            self.pass = pass;
            if pass == 0 {
                self.row_values(0)?;
            }
            let folds = self.nodes_of(pass, |part| matches!(part, Part::Fold(_)));
            let stored = self.stored_of(pass);
            if let Some((_, extent)) = part {
                self.lanes(&folds, &stored, extent, LONG_ROW)?;
            } else if !folds.is_empty() && length > TILE {
                self.tiles(&folds, &stored, length)?;
            } else if !folds.is_empty() || !stored.is_empty() {
                let extent = self.e.b.index(length as i64);
                let folded = self.lanes(&folds, &stored, extent, length)?;
                self.finish_folds(&folds, folded)?;
            }
            // What each row has after this pass is there in the next.
            self.row_values(pass + 1)?;
            folds.into_iter().try_for_each(|fold| self.store_group(fold))?;
        }
        Some(())
    }

    /// The values of the row that later passes read, as far as they are there.
    pub(super) fn row_values(&mut self, pass: usize) -> Option<()> {
        for node in self.nodes_of(pass, |part| part == Part::Rows) {
            let element = self.node(node, Part::Rows)?;
            self.groups.insert(node, element);
            self.store_group(node)?;
        }
        Some(())
    }

    /// The vectorized loop over the row or a tile of it; gives the accumulators.
    fn lanes(&mut self, folds: &[usize], stored: &[usize], extent: Val, length: usize) -> Option<Vec<Val>> {
        self.values.clear();
        self.loaded.clear();
        let mut accumulators = Vec::new();
        for &fold in folds {
            let (reduce, elem) = self.reduction(fold)?;
            let lanes = if length < LONG_TILE { SHORT_LANES } else { (256 / elem.bytes().max(4)) as u16 };
            accumulators.push(self.e.b.accumulator(reduce, elem, lanes));
        }
        self.e.b.begin_lanes(extent);
        for (&fold, &accumulator) in folds.iter().zip(&accumulators) {
            let value = self.folded_value(fold)?;
            self.e.b.reduce(accumulator, value);
        }
        self.store_elements(stored)?;
        self.e.b.end_lanes();
        Some(accumulators)
    }

    /// The tiles of a long row, whose results are then joined pairwise.
    fn tiles(&mut self, folds: &[usize], stored: &[usize], length: usize) -> Option<()> {
        let (whole, rest) = (length / TILE, length % TILE);
        let count = length.div_ceil(TILE);
        let homes = self.scratch.take(folds.len() * count * 8);
        let home = |at: usize| (homes + at * count * 8) as i64;
        let tile = self.e.b.index(TILE as i64);
        let trips = self.e.b.index(whole as i64);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        self.tile = Some(Tile::Counted(counter));
        let folded = self.lanes(folds, stored, tile, TILE)?;
        for (at, &value) in folded.iter().enumerate() {
            let access = self.word(home(at), Some(counter));
            self.e.b.store(value, access);
        }
        self.e.b.end_loop(&[]);
        if rest > 0 {
            self.tile = Some(Tile::Last(whole * TILE));
            let extent = self.e.b.index(rest as i64);
            let folded = self.lanes(folds, stored, extent, rest)?;
            for (at, &value) in folded.iter().enumerate() {
                let access = self.word(home(at) + 8 * whole as i64, None);
                self.e.b.store(value, access);
            }
        }
        self.tile = None;
        let mut joined = Vec::new();
        for (at, &fold) in folds.iter().enumerate() {
            let (reduce, elem) = self.reduction(fold)?;
            let mut values: Vec<Val> = Vec::new();
            for tile in 0..count {
                let access = self.word(home(at) + 8 * tile as i64, None);
                values.push(self.e.b.load(elem, access));
            }
            while values.len() > 1 {
                let pairs = values.chunks(2);
                let join = |pair: &[Val]| match *pair {
                    [a, b] => self.e.b.op(reduce.op(), [a, b]),
                    _ => pair[0],
                };
                values = pairs.map(join).collect();
            }
            joined.push(values[0]);
        }
        self.finish_folds(folds, joined)
    }

    /// A word of the scratch memory.
    fn word(&self, offset: i64, counter: Option<Val>) -> Access {
        let terms = counter.into_iter().map(|counter| (counter, 8)).collect();
        Access { buffer: self.scratch_buffer(), offset, terms, lane: 0, is_streaming: false }
    }
}
