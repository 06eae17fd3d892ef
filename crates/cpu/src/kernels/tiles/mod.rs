//! Programs over tiles: element-wise ops that are done one after the other on a piece of their operands which the first
//! cache holds, so that what lies between them never comes to memory.
//!
//! Each instruction is a loop of the kernels, by which the same op is done alone: results have the same bits.

mod action;
mod brief;
mod draft;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ops::Range;
use std::thread::LocalKey;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

pub(crate) use brief::Brief;
pub(crate) use draft::{Draft, Operand, Register};

use super::stream::{self, StoreKind};
use super::{StridedOperand, TILE};
use crate::par::Par;
use crate::view::ViewMut;
use action::{Detail, Instruction, Tile};

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
    /// Writes all elements of the results, of which each has `size`. Inputs are as the draft was told, broadcast to the
    /// result.
    pub(crate) fn run(&self, inputs: &[StridedOperand<'_>], results: &[ViewMut<'_>], size: usize, par: Par) {
        let grain = (GRAIN / self.weight).next_multiple_of(self.tile);
        let in_place = |result: &ViewMut<'_>| inputs.iter().any(|input| input.may_alias(result));
        let stores = if results.iter().any(in_place) {
            StoreKind::Cached
        } else {
            let written = results.iter().map(|result| result.ty().byte_size()).sum();
            StoreKind::for_transfer(inputs.iter().map(StridedOperand::byte_size).sum(), written)
        };
        par.for_chunks(size, grain, |chunk| {
            let starts: SmallVec<[*mut u8; 4]> = results.iter().map(ViewMut::start).collect();
            // SAFETY: the views have room for all elements, chunks are disjoint, and each result is one register's.
            unsafe { self.run_part(inputs, &starts, chunk, stores) };
            stores.finish();
        });
    }

    /// Writes the elements `part` of the results on this thread; `starts` is where the first element of each result
    /// lies, or would. Who stores them past the caches finishes that.
    ///
    /// # Safety
    /// Where the elements of the part then lie there is room for them, aligned, and nobody else uses it; inputs have
    /// the elements that are read for them.
    pub(crate) unsafe fn run_part(
        &self,
        inputs: &[StridedOperand<'_>],
        starts: &[*mut u8],
        part: Range<usize>,
        stores: StoreKind,
    ) {
        // SAFETY: the caller's promise.
        self.start(inputs, part.len(), stores, |running| unsafe { running.part(starts, part) });
    }

    /// Gets ready to run parts of up to `longest` elements on this thread, and calls `work` with what runs them.
    pub(crate) fn start(
        &self,
        inputs: &[StridedOperand<'_>],
        longest: usize,
        stores: StoreKind,
        work: impl FnOnce(&mut Running<'_, '_>),
    ) {
        // What goes past the caches is made behind the registers.
        let made =
            if stores == StoreKind::NonTemporal { self.widths().sum::<usize>() * self.tile } else { 0 };
        with_bank(&BANK, self.bank + made, |bank| {
            let mut table: SmallVec<[*mut u8; 64]> = SmallVec::new();
            table.extend(self.places.iter().map(|place| match place {
                // SAFETY: the bank has room for all registers.
                Place::Bank(offset) => unsafe { bank.add(*offset) },
                Place::Result { .. } => std::ptr::null_mut(),
            }));
            let mut tile = Tile { table: &mut table, inputs, start: 0, len: self.tile.min(longest) };
            for instruction in self.fixed.iter().chain(&self.once) {
                (instruction.run)(instruction, &mut tile);
            }
            // SAFETY: the bank has room behind the registers for what is made there.
            let behind = unsafe { bank.add(self.bank) };
            work(&mut Running { program: self, tile, behind, stores });
        });
    }

    /// Reads these inputs before anything of a tile is written: results may lie in their memory then, element by element.
    pub(crate) fn read_first(&mut self, inputs: &[usize]) {
        let is_early = |instruction: &Instruction| match instruction.detail {
            Detail::Input(input, dtype) => inputs.contains(&input).then_some(dtype),
            Detail::None
            | Detail::Unary(..)
            | Detail::Binary(_)
            | Detail::Log(_)
            | Detail::To(..)
            | Detail::Count { .. }
            | Detail::Bytes(_)
            | Detail::With(..)
            | Detail::Runs { .. }
            | Detail::Chain(_) => None,
        };
        let is_written = |instruction: &Instruction| match self.places[usize::from(instruction.out)] {
            Place::Result { .. } => true,
            Place::Bank(_) => false,
        };
        // From there on results are written: by a chain, which reads each element before it writes it.
        let first = self.each.iter().position(is_written).unwrap_or(self.each.len());
        let stays = first + usize::from(self.each.get(first).is_some_and(|i| i.chained().is_some()));
        let late: FxHashSet<u16> = self.each[stays..].iter().flat_map(Instruction::read).collect();
        for instruction in &mut self.each {
            if let Some(dtype) = is_early(instruction) {
                // What is lent as it lies would be read when it is written already.
                if late.contains(&instruction.out) {
                    instruction.run = action::copy(dtype);
                }
                // What lies where something else has lain before would be too.
                self.places[usize::from(instruction.out)] = Place::Bank(self.bank);
                self.bank += (draft::size_of_computed(dtype) * self.tile).next_multiple_of(LINE);
            }
        }
        self.each.sort_by_key(|instruction| is_early(instruction).is_none());
    }

    /// The bytes of an element of each result.
    fn widths(&self) -> impl Iterator<Item = usize> {
        self.places.iter().filter_map(|place| match place {
            Place::Result { index: _, width } => Some(*width),
            Place::Bank(_) => None,
        })
    }

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
    /// As [`Program::run_part`].
    ///
    /// # Safety
    /// As there.
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
        let behind = std::ptr::null_mut();
        // SAFETY: as the caller promises; nothing is made behind the registers.
        unsafe { Running { program, tile, behind, stores: StoreKind::Cached }.part(starts, part) };
    }
}

/// A program that is ready on this thread.
pub(crate) struct Running<'t, 'a> {
    program: &'t Program,
    tile: Tile<'t, 'a>,
    /// The memory behind the registers.
    behind: *mut u8,
    stores: StoreKind,
}

impl Running<'_, '_> {
    /// Writes the elements `part` of the results, no more than it was started for, as [`Program::run_part`] does.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn part(&mut self, starts: &[*mut u8], part: Range<usize>) {
        let &mut Running { program, ref mut tile, behind, stores } = self;
        for start in part.clone().step_by(program.tile) {
            (tile.start, tile.len) = (start, program.tile.min(part.end - start));
            let mut behind = behind;
            for (register, place) in tile.table.iter_mut().zip(&program.places) {
                if let Place::Result { index, width } = place {
                    *register = match stores {
                        StoreKind::Cached => starts[*index].wrapping_add(start * width),
                        StoreKind::NonTemporal => behind,
                    };
                    behind = behind.wrapping_add(width * program.tile);
                }
            }
            for instruction in &program.each {
                (instruction.run)(instruction, tile);
            }
            if stores == StoreKind::NonTemporal {
                for (register, place) in tile.table.iter().zip(&program.places) {
                    if let Place::Result { index, width } = place {
                        let (bytes, to) = (tile.len * width, starts[*index].wrapping_add(start * width));
                        // SAFETY: the instructions have written the elements behind the registers, and the result has
                        // room for them.
                        unsafe {
                            let from = std::slice::from_raw_parts(register.cast_const(), bytes);
                            stream::copy(from, std::slice::from_raw_parts_mut(to.cast(), bytes));
                        }
                    }
                }
            }
        }
    }
}

/// A line of the cache, which registers begin at.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE],
}

/// Bytes of a line.
const LINE: usize = 64;

thread_local! {
    /// The memory of the programs that this thread has run.
    static BANK: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    /// The memory for what lies between the programs that this thread has run one after the other.
    static BETWEEN: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with memory of this thread's own for what programs pass on to each other.
pub(crate) fn with_memory_between(bytes: usize, work: impl FnOnce(*mut u8)) {
    with_bank(&BETWEEN, bytes, work);
}

/// Calls `work` with memory of this thread's own, all of which has been written once.
fn with_bank(memory: &'static LocalKey<Cell<Vec<Line>>>, bytes: usize, work: impl FnOnce(*mut u8)) {
    let mut bank = memory.take();
    let lines = bytes.div_ceil(LINE);
    if bank.len() < lines {
        bank.resize(lines, Line { _bytes: [0; LINE] });
    }
    work(bank.as_mut_ptr().cast());
    memory.set(bank);
}
