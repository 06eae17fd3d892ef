//! Programs over tiles: element-wise ops that are done one after the other on a piece of their operands which the first
//! cache holds, so that what lies between them never comes to memory.
//!
//! Each instruction is a loop of the kernels, by which the same op is done alone: results have the same bits.

mod action;
mod brief;
mod draft;
#[cfg(test)]
mod tests;

use std::ops::Range;

use smallvec::SmallVec;

pub(crate) use brief::Brief;
pub(crate) use draft::{Draft, Operand, Register};

use super::{StridedOperand, TILE};
use action::{Instruction, Tile};

/// Cheap instructions on elements that one thread does at a time.
const GRAIN: usize = 64 * TILE;

/// Ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    /// What depends on nothing.
    fixed: Vec<Instruction>,
    /// What does not change from tile to tile.
    once: Vec<Instruction>,
    each: Vec<Instruction>,
    /// Where in the bank each register lies; those of results lie in the result.
    places: Vec<Place>,
    /// The bytes of registers.
    bank: usize,
    /// Elements of a tile.
    tile: usize,
    /// How many cheap instructions take the time of all, for each element.
    weight: usize,
}

/// Where a register lies.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At an offset of the bank.
    Bank(usize),
    /// In a result, whose elements have so many bytes.
    Result { index: usize, width: usize },
}

impl Program {
    /// How many bytes [`Program::ready`] needs, from an address on that is a multiple of 64.
    pub(crate) fn bank(&self) -> usize {
        self.bank
    }

    /// Whether so many elements are done by one thread alone.
    pub(crate) fn is_short(&self, size: usize) -> bool {
        size <= (GRAIN / self.weight).next_multiple_of(self.tile)
    }

    /// The program with registers of its own, to run several times on `most` elements or fewer.
    ///
    /// # Safety
    /// At `bank` there is room for them, aligned to lines of the cache, which nobody else uses as long as it runs.
    pub(crate) unsafe fn ready(&self, bank: *mut u8, most: usize) -> Ready<'_> {
        let mut table: SmallVec<[*mut u8; 64]> = SmallVec::new();
        table.extend(self.places.iter().map(|place| match place {
            // SAFETY: the bank has room for all registers.
            Place::Bank(offset) => unsafe { bank.add(*offset) },
            Place::Result { .. } => std::ptr::null_mut(),
        }));
        let mut tile = Tile { table: &mut table, inputs: &[], start: 0, len: self.tile.min(most) };
        for instruction in &self.fixed {
            (instruction.run)(instruction, &mut tile);
        }
        Ready { program: self, table }
    }
}

/// A program with registers of its own, to run several times.
pub(crate) struct Ready<'p> {
    program: &'p Program,
    /// Where each register lies.
    table: SmallVec<[*mut u8; 64]>,
}

impl Ready<'_> {
    /// Writes the elements `part` of the results on this thread; `starts` is where the first element of each result lies,
    /// or would. Inputs are as the draft was told, broadcast to the result.
    ///
    /// # Safety
    /// Where the elements of the part then lie there is room for them, aligned, and nobody else uses it; inputs have
    /// the elements that are read for them.
    pub(crate) unsafe fn run(
        &mut self,
        inputs: &[StridedOperand<'_>],
        starts: &[*mut u8],
        part: Range<usize>,
    ) {
        let Ready { program, table } = self;
        let len = program.tile.min(part.len());
        let mut tile = Tile { table, inputs, start: part.start, len };
        for instruction in &program.once {
            (instruction.run)(instruction, &mut tile);
        }
        for start in part.clone().step_by(program.tile) {
            (tile.start, tile.len) = (start, program.tile.min(part.end - start));
            for (register, place) in tile.table.iter_mut().zip(&program.places) {
                if let Place::Result { index, width } = place {
                    *register = starts[*index].wrapping_add(start * width);
                }
            }
            for instruction in &program.each {
                (instruction.run)(instruction, &mut tile);
            }
        }
    }
}
