//! Reductions of elements that are computed block by block and need not be in memory together. The order is the same as
//! for elements in memory.

use std::marker::PhantomData;

use defn_core::op::ReduceOp;
use defn_core::{Axis, DType, TensorType};

use super::columns::{self, DEPTH, PairwiseColumns, WIDTH, columns_scratch, fold_run, piece_rows};
use super::fold::{Cascade, RUN, Reduction, fold_slice};
use super::layout::{CHUNK, ReductionLayout};
use super::rows::{self, rows_scratch};
use super::{WithFold, accumulator, store, with_fold, write};
use crate::kernels::{Element, StridedOperand, TILE, TileLoader};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements of a block of a row: a few tiles, which fit the first-level cache.
const BLOCK: usize = 4 * TILE;

/// The division of contiguous elements into pieces, one thread each, and of pieces into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PiecePartition {
    outer: usize,
    reduced: usize,
    inner: usize,
    /// Rows of a piece of columns.
    height: usize,
}

/// `rows` rows of `width` elements. The first begins at the element `start`; rows are `step` elements apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementBlock {
    pub(crate) start: usize,
    pub(crate) step: usize,
    pub(crate) rows: usize,
    pub(crate) width: usize,
}

impl PiecePartition {
    fn new(folding: &ReductionLayout) -> PiecePartition {
        let &ReductionLayout { outer, reduced, inner, .. } = folding;
        PiecePartition { outer, reduced, inner, height: if inner > 1 { piece_rows(folding) } else { 1 } }
    }

    /// The number of pieces, which index results and partial results.
    pub(crate) fn pieces(&self) -> usize {
        if self.inner > 1 {
            self.outer * self.inner.div_ceil(WIDTH) * self.reduced.div_ceil(self.height)
        } else {
            self.outer * self.reduced.div_ceil(CHUNK)
        }
    }

    /// The approximate number of elements of a piece.
    pub(crate) fn piece(&self) -> usize {
        if self.inner > 1 {
            self.inner.min(WIDTH) * self.reduced.min(self.height)
        } else {
            self.reduced.min(CHUNK)
        }
    }

    /// Whether the elements of a block are contiguous in the operand.
    pub(crate) fn is_side_by_side(&self) -> bool {
        self.inner <= WIDTH
    }

    /// The most elements of a block.
    pub(crate) fn block(&self) -> usize {
        if self.inner > 1 {
            let width = self.inner.min(WIDTH);
            self.runs(width) * RUN * width
        } else {
            BLOCK.min(self.reduced)
        }
    }

    /// The number of runs of columns in a block.
    fn runs(&self, width: usize) -> usize {
        (TILE / (RUN * width)).clamp(1, self.reduced.min(self.height).div_ceil(RUN))
    }

    /// The start of a piece: the outer index, the reduced row, and the first column.
    fn origin(&self, piece: usize) -> (usize, usize, usize) {
        if self.inner > 1 {
            let (pieces, column_blocks) = (self.reduced.div_ceil(self.height), self.inner.div_ceil(WIDTH));
            (
                piece / pieces / column_blocks,
                piece % pieces * self.height,
                piece / pieces % column_blocks * WIDTH,
            )
        } else {
            let pieces = self.reduced.div_ceil(CHUNK);
            (piece / pieces, piece % pieces * CHUNK, 0)
        }
    }

    /// Calls `work` with the blocks of a piece in order.
    pub(crate) fn blocks(&self, piece: usize, mut work: impl FnMut(ElementBlock)) {
        let (outer, row, column) = self.origin(piece);
        let start = (outer * self.reduced + row) * self.inner + column;
        if self.inner > 1 {
            let (step, width) = (self.inner, WIDTH.min(self.inner - column));
            let (count, together) = (self.height.min(self.reduced - row), self.runs(width) * RUN);
            for first in (0..count).step_by(together) {
                let rows = together.min(count - first);
                work(ElementBlock { start: start + first * step, step, rows, width });
            }
        } else {
            let count = CHUNK.min(self.reduced - row);
            for first in (0..count).step_by(BLOCK) {
                let width = BLOCK.min(count - first);
                work(ElementBlock { start: start + first, step: width, rows: 1, width });
            }
        }
    }
}

/// A reduction by pieces.
#[derive(Debug)]
pub(crate) struct PiecewiseReduction {
    op: ReduceOp,
    from: DType,
    to: DType,
    folding: ReductionLayout,
    cut: PiecePartition,
}

/// Reduces pieces, one after the other. Each thread has its own.
pub(crate) trait PieceReducer {
    /// Takes the next block of a piece. `x` has its elements, row by row.
    fn take(&mut self, x: View<'_>, block: ElementBlock);
    /// Ends a piece, of which at least one block was taken.
    ///
    /// # Safety
    /// No other code writes the results of the piece, in `out` or in `partial`.
    unsafe fn finish(&mut self, piece: usize, out: &ViewMut<'_>, partial: &ViewMut<'_>);
}

impl PiecewiseReduction {
    /// The reduction of an operand over axes; None unless the axes need no reordering and rows have at least a tile.
    pub(crate) fn new(
        op: ReduceOp,
        operand: &TensorType,
        axes: &[Axis],
        out: &TensorType,
    ) -> Option<PiecewiseReduction> {
        let folding = ReductionLayout::new(operand.shape.sizes(), axes);
        let least = if folding.inner > 1 { 2 } else { TILE };
        if operand.size() == 0 || folding.reduced < least || !folding.is_in_order() {
            return None;
        }
        let cut = PiecePartition::new(&folding);
        Some(PiecewiseReduction { op, from: operand.dtype, to: out.dtype, folding, cut })
    }

    /// The division of the elements.
    pub(crate) fn cut(&self) -> PiecePartition {
        self.cut
    }

    /// The partial results: their dtype and number, possibly 0.
    pub(crate) fn partial(&self) -> (DType, usize) {
        let is_columns = self.folding.inner > 1;
        let count = if is_columns { columns_scratch(&self.folding) } else { rows_scratch(&self.folding) };
        (accumulator(self.to), count)
    }

    /// The state of one thread.
    pub(crate) fn folder(&self) -> Box<dyn PieceReducer + '_> {
        with_fold(self.op, self.from, self.to, ReducePieces(self))
    }

    /// Joins the partial results of the pieces, if there are any.
    pub(crate) fn join(&self, out: &ViewMut<'_>, partial: &ViewMut<'_>, par: Par) {
        if self.partial().1 > 0 {
            with_fold(self.op, self.from, self.to, JoinPieces { folding: &self.folding, out, partial, par });
        }
    }
}

struct ReducePieces<'p>(&'p PiecewiseReduction);

impl<'p> WithFold for ReducePieces<'p> {
    type Output = Box<dyn PieceReducer + 'p>;

    fn with<F: Reduction>(self, dtype: DType) -> Box<dyn PieceReducer + 'p> {
        let cut = self.0.cut;
        let has_pieces = self.0.partial().1 > 0;
        if cut.inner > 1 {
            let total = vec![F::Acc::ZERO; cut.inner.min(WIDTH)];
            Box::new(Columns::<F> { cut, dtype, has_pieces, total, width: 0, levels: Vec::new(), count: 0 })
        } else {
            Box::new(Row::<F> { dtype, has_pieces, cascade: Cascade::new(), fold: PhantomData })
        }
    }
}

struct JoinPieces<'r, 'a> {
    folding: &'r ReductionLayout,
    out: &'r ViewMut<'a>,
    partial: &'r ViewMut<'a>,
    par: Par,
}

impl WithFold for JoinPieces<'_, '_> {
    type Output = ();

    fn with<F: Reduction>(self, _dtype: DType) {
        if self.folding.inner > 1 {
            columns::join_pieces::<F>(self.folding, self.out, self.partial, self.par);
        } else {
            rows::join_pieces::<F>(self.folding, self.out, self.partial);
        }
    }
}

/// Reduces pieces of rows.
struct Row<F: Reduction> {
    dtype: DType,
    has_pieces: bool,
    cascade: Cascade<F::Acc>,
    fold: PhantomData<F>,
}

impl<F: Reduction> PieceReducer for Row<F> {
    fn take(&mut self, x: View<'_>, block: ElementBlock) {
        let source = StridedOperand::strided(x, 0, &[block.width], &[1]);
        let mut loader = TileLoader::new(&source, self.dtype);
        for first in (0..block.width).step_by(TILE) {
            loader.seek(first, TILE.min(block.width - first));
            self.cascade.push::<F>(fold_slice::<F>(loader.tile()));
        }
    }

    unsafe fn finish(&mut self, piece: usize, out: &ViewMut<'_>, partial: &ViewMut<'_>) {
        let value = std::mem::replace(&mut self.cascade, Cascade::new()).finish::<F>();
        // SAFETY: the caller's promise.
        unsafe {
            if self.has_pieces {
                write(partial, piece, &[value]);
            } else {
                store(out, piece, &[value]);
            }
        }
    }
}

/// Reduces pieces of columns.
struct Columns<F: Reduction> {
    cut: PiecePartition,
    dtype: DType,
    has_pieces: bool,
    total: Vec<F::Acc>,
    /// The number of columns of the piece.
    width: usize,
    levels: Vec<[F::Acc; WIDTH]>,
    count: usize,
}

impl<F: Reduction> PieceReducer for Columns<F> {
    fn take(&mut self, x: View<'_>, block: ElementBlock) {
        let source = StridedOperand::strided(x, 0, &[x.ty().size()], &[1]);
        let mut loader = TileLoader::new(&source, self.dtype);
        self.width = block.width;
        let total = &mut self.total[..self.width];
        if self.levels.is_empty() && self.cut.reduced > RUN {
            self.levels = vec![[F::Acc::ZERO; WIDTH]; DEPTH];
        }
        for first in (0..block.rows).step_by(RUN) {
            let rows = RUN.min(block.rows - first);
            fold_run::<F>(&mut loader, first * self.width, self.width, rows, total);
            if self.cut.reduced > RUN {
                let mut runs = PairwiseColumns::<F> { levels: &mut self.levels, count: self.count };
                runs.push(total);
                self.count = runs.count;
            }
        }
    }

    unsafe fn finish(&mut self, piece: usize, out: &ViewMut<'_>, partial: &ViewMut<'_>) {
        let total = &mut self.total[..self.width];
        if self.cut.reduced > RUN {
            PairwiseColumns::<F> { levels: &mut self.levels, count: self.count }.finish(total);
            self.count = 0;
        }
        let (outer, row, column) = self.cut.origin(piece);
        // SAFETY: the caller's promise.
        unsafe {
            if self.has_pieces {
                let pieces = self.cut.reduced.div_ceil(self.cut.height);
                let at = outer * pieces + row / self.cut.height;
                write(partial, at * self.cut.inner + column, total);
            } else {
                store(out, outer * self.cut.inner + column, total);
            }
        }
    }
}
