//! Loop nests that run on blocks of a value as these are completed.

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use smallvec::SmallVec;

use super::super::fuse::{Blocks, NodeRole, fuse_blocks};
use super::super::fusion_groups::FusionGroups;
use super::super::ir::Function;
use super::shared::{Runner, SharedCode};
use crate::kernels::StridedView;
use crate::kernels::epilogue::CompletedRows;
use crate::view::View;

/// A nest on blocks of a value, of parts of rows if it is element-wise, of whole rows if not.
#[derive(Debug)]
pub(in super::super) struct BlockNest {
    pub(in super::super) inputs: Vec<(Value, StridedView)>,
    /// The axes around a row.
    outer: SmallVec<[usize; 4]>,
    row: usize,
    /// The bytes that each call has for itself.
    pub(in super::super) scratch: usize,
    code: Arc<SharedCode>,
}

/// Where an input of a nest on blocks is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum BlockInput {
    /// It is the value whose blocks are completed.
    Completed,
    /// One of the step's inputs.
    Other(usize),
}

impl BlockInput {
    /// Where it begins, from where the completed value and the step's inputs do.
    pub(in super::super) fn start(self, completed: *mut u8, inputs: &[View<'_>]) -> *mut u8 {
        match self {
            BlockInput::Completed => completed,
            BlockInput::Other(at) => inputs[at].start().cast_mut(),
        }
    }
}

impl BlockNest {
    /// The nest of nodes that give `results`, on blocks of rows of so many elements.
    pub(in super::super) fn new(
        graph: &Graph,
        fusion: &FusionGroups,
        nodes: Vec<(usize, NodeRole)>,
        (elements, row): (usize, usize),
        results: &Values,
    ) -> Option<BlockNest> {
        let Blocks { function, inputs, sizes, scratch } =
            fuse_blocks(graph, fusion, nodes, (elements, row), results)?;
        let (&row, outer) = sizes.split_last().expect("there are rows");
        Some(BlockNest { inputs, outer: outer.into(), row, scratch, code: SharedCode::of(function) })
    }

    /// Where the inputs are, of which `completed` is the value whose blocks are completed. The others are added to the
    /// inputs of the step.
    pub(in super::super) fn locate_inputs(&self, completed: Value, inputs: &mut Values) -> Vec<BlockInput> {
        let mut located = Vec::with_capacity(self.inputs.len());
        for &(value, _) in &self.inputs {
            located.push(if value == completed {
                BlockInput::Completed
            } else {
                inputs.push(value);
                BlockInput::Other(inputs.len() - 1)
            });
        }
        located
    }

    /// What it computes.
    pub(in super::super) fn function(&self) -> &Function {
        &self.code.function
    }

    /// How many elements the whole value has.
    pub(in super::super) fn elements(&self) -> usize {
        self.outer.iter().product::<usize>() * self.row
    }

    /// The nest with pointers to its inputs, to its results, and to memory that it has for itself.
    pub(in super::super) fn with(&self, pointers: impl Iterator<Item = *mut u8>) -> BoundBlockNest<'_> {
        let mut args: SmallVec<[u64; 16]> =
            pointers.map(|pointer| pointer.expose_provenance() as u64).collect();
        let block_args = args.len();
        args.extend(std::iter::repeat_n(0, 2 + self.outer.len() + 1));
        args.extend_from_slice(&self.code.applied);
        BoundBlockNest { nest: self, args, block_args, runner: self.code.runner(self.elements()) }
    }
}

/// A nest that is run block by block.
pub(in super::super) struct BoundBlockNest<'n> {
    nest: &'n BlockNest,
    args: SmallVec<[u64; 16]>,
    /// Where the arguments that say which block begin.
    block_args: usize,
    runner: Runner<'n>,
}

impl BoundBlockNest<'_> {
    /// Runs it on a block.
    ///
    /// # Safety
    /// At the pointers are the elements of the inputs, and room for those of the results, of which nobody else uses
    /// those of the block.
    pub(in super::super) unsafe fn block(&self, rows: CompletedRows) {
        let (row, begin) = (self.nest.row, rows.first % self.nest.row);
        let mut args = self.args.clone();
        if rows.row_stride == row && begin + rows.len <= row {
            // SAFETY: as the caller promises.
            return unsafe { self.part(&mut args, (rows.first / row, rows.count), (begin, rows.len)) };
        }
        // The ends of a range may lie within rows.
        for range in rows.ranges() {
            let mut at = range.start;
            while at < range.end {
                let (begin, left) = (at % row, range.end - at);
                let (count, len) =
                    if begin == 0 && left >= row { (left / row, row) } else { (1, left.min(row - begin)) };
                // SAFETY: as the caller promises.
                unsafe { self.part(&mut args, (at / row, count), (begin, len)) };
                at += count * len;
            }
        }
    }

    /// Runs it on some whole rows.
    ///
    /// # Safety
    /// As for [`BoundBlockNest::block`].
    pub(in super::super) unsafe fn rows(&self, first: usize, count: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.part(&mut self.args.clone(), (first, count), (0, self.nest.row)) };
    }

    /// Runs it on some rows, and of each on elements from `begin` on.
    ///
    /// # Safety
    /// As for [`BoundBlockNest::block`].
    unsafe fn part(
        &self,
        args: &mut SmallVec<[u64; 16]>,
        (mut first, mut count): (usize, usize),
        (begin, len): (usize, usize),
    ) {
        let (&along, around) = self.nest.outer.split_last().expect("there are rows");
        while count > 0 {
            let (row, done) = (first % along, count.min(along - first % along));
            let block = [row, done, begin, len].map(|word| word as u64);
            args[self.block_args..][..4].copy_from_slice(&block);
            let mut rest = first / along;
            for (axis, &size) in around.iter().enumerate().rev() {
                args[self.block_args + 4 + axis] = (rest % size) as u64;
                rest /= size;
            }
            // SAFETY: as the caller promises.
            unsafe { self.runner.run(args) };
            (first, count) = (first + done, count - done);
        }
    }
}
