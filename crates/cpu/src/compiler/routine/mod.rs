//! Loops, branches and scalars that run in one call: scalars in the registers of a machine, and arrays that a thread
//! does alone in one piece of memory, at addresses that are registers too.
//!
//! The state of a loop that is an array lies in two places, which change roles from trip to trip; one into which single
//! elements or rows are put, in one.

mod apart;
mod make;
mod step;

use defn_core::backend::Poll;
use defn_core::graph::Values;
use defn_core::{DType, Result, TensorType};
use smallvec::SmallVec;

use crate::buffer::Storage;
use crate::kernels::elementwise::simple::Simple;
use crate::kernels::machine::{self, Env, Registers};
use crate::kernels::tiles::{self, Brief, Ready};
use crate::kernels::{StridedOperand, StridedView, trips};
use crate::view::{View, ViewMut};

pub(super) use make::{of_group, of_node};

/// What runs in one call.
#[derive(Debug)]
pub(super) struct Routine {
    program: machine::Program,
    units: Vec<Unit>,
    /// Registers that hold addresses before it runs, and of what.
    addresses: Vec<(usize, Home)>,
    /// Arrays that are written in the program.
    kept: Vec<Storage>,
    /// For each result that is an array, the register of its address in the end, and its bytes.
    arrays: Vec<(usize, usize, usize)>,
    /// Bytes of what lies between.
    pub(super) between: usize,
    /// How many of the first inputs are the state of a loop, which the first results are in the end.
    pub(super) state: usize,
    /// The values that are read.
    pub(super) inputs: Values,
    /// The values that are given.
    pub(super) results: Values,
}

/// What an address is of, before the routine runs.
#[derive(Clone, Copy, Debug)]
enum Home {
    Input(usize),
    Result(usize),
    Kept(usize),
    /// Memory of the routine's own, from an offset on.
    Between(usize),
}

/// What is done to arrays at once. Its registers are told by the program.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a routine has few")]
enum Unit {
    /// A tile program: registers of its operands, then of its results' addresses. Its own lie at an offset.
    Tiles {
        program: tiles::Program,
        operands: Vec<Operand>,
        elements: usize,
        bank: usize,
        /// How it runs where its operands lie as they are read.
        brief: Option<Brief>,
    },
    /// Copies so many bytes from one address to another.
    Copy { bytes: usize },
    /// Does two ops to each of some elements in place, in so many trips of which so many are done at once: registers
    /// of how often they were, of the address, and of the numbers beside the elements.
    Trips { ops: [Simple; 2], dtype: DType, elements: usize, trips: (usize, usize) },
}

/// An operand of a tile program.
#[derive(Debug)]
struct Operand {
    ty: TensorType,
    walk: StridedView,
    /// Whether its register is its address; else it is the element itself.
    is_array: bool,
}

impl Routine {
    /// Runs all. `inputs` and `results` are as the routine lists them.
    ///
    /// # Errors
    /// What `poll` gives, which is asked now and then.
    ///
    /// # Safety
    /// At `memory` there are the bytes that the routine says, aligned to lines of the cache. They and the results
    /// overlap nothing else, but for each part of the state, whose result may be its input.
    pub(super) unsafe fn run(
        &self,
        inputs: &[View<'_>],
        results: &[ViewMut<'_>],
        memory: *mut u8,
        poll: Poll<'_>,
    ) -> Result<()> {
        let mut words = self.program.start();
        for (register, home) in &self.addresses {
            let address = match *home {
                Home::Input(at) => inputs[at].start(),
                Home::Result(at) => results[at].start().cast_const(),
                Home::Kept(at) => self.kept[at].start(),
                Home::Between(offset) => memory.wrapping_add(offset).cast_const(),
            };
            words[*register] = address.expose_provenance() as u64;
        }
        let mut running: SmallVec<[Running<'_>; 4]> =
            self.units.iter().map(|unit| Running::new(unit, memory)).collect();
        let mut call = |unit: usize, registers: &[u8], words: &Registers| running[unit].run(registers, words);
        self.program.run(&mut words, &mut Env { call: &mut call, poll })?;
        for &(result, register, bytes) in &self.arrays {
            let (from, to) = (pointer(words[register]).cast_const(), results[result].start());
            if from != to.cast_const() {
                // SAFETY: an array of the result's type lies there, in memory that is not the result's.
                unsafe { from.copy_to_nonoverlapping(to, bytes) };
            }
        }
        Ok(())
    }
}

/// An address that a register holds.
fn pointer(word: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(word as usize)
}

/// A unit with the memory that it runs in.
#[expect(clippy::large_enum_variant, reason = "a routine has few, on the stack")]
enum Running<'a> {
    Tiles {
        ready: Ready<'a>,
        sources: SmallVec<[StridedOperand<'a>; 4]>,
        operands: &'a [Operand],
        elements: usize,
    },
    Brief {
        ready: Ready<'a>,
        brief: &'a Brief,
        operands: usize,
    },
    Copy {
        bytes: usize,
    },
    Trips {
        ops: [Simple; 2],
        dtype: DType,
        elements: usize,
        trips: (usize, usize),
    },
}

impl<'a> Running<'a> {
    fn new(unit: &'a Unit, memory: *mut u8) -> Running<'a> {
        match unit {
            Unit::Tiles { program, operands, elements, bank, brief } => {
                // SAFETY: the routine's memory has room for the registers there, and no other unit has it.
                let ready = unsafe { program.ready(memory.wrapping_add(*bank), *elements) };
                if let Some(brief) = brief {
                    return Running::Brief { ready, brief, operands: operands.len() };
                }
                let source = |operand: &'a Operand| {
                    // SAFETY: nothing is read there before the source is moved to the operand.
                    let view = unsafe { View::of_part(&operand.ty, memory) };
                    StridedOperand::with_strided_view(view, &operand.walk)
                };
                let sources = operands.iter().map(source).collect();
                Running::Tiles { ready, sources, operands, elements: *elements }
            }
            Unit::Copy { bytes } => Running::Copy { bytes: *bytes },
            &Unit::Trips { ops, dtype, elements, trips } => Running::Trips { ops, dtype, elements, trips },
        }
    }

    fn run(&mut self, registers: &[u8], words: &Registers) {
        match self {
            Running::Tiles { ready, sources, operands, elements } => {
                let (read, written) = registers.split_at(operands.len());
                for ((source, operand), register) in sources.iter_mut().zip(*operands).zip(read) {
                    let word = &words[usize::from(*register)];
                    let start = if operand.is_array {
                        pointer(*word).cast_const()
                    } else {
                        let skipped = if cfg!(target_endian = "big") {
                            size_of::<u64>() - operand.ty.dtype.storage_bytes()
                        } else {
                            0
                        };
                        std::ptr::from_ref(word).cast::<u8>().wrapping_add(skipped)
                    };
                    // SAFETY: the operand lies there: in a register, or at the address that one holds.
                    unsafe { source.relocate(start) };
                }
                let starts: SmallVec<[*mut u8; 4]> =
                    written.iter().map(|register| pointer(words[usize::from(*register)])).collect();
                // SAFETY: each result has memory of its own for all elements, in which no operand lies.
                unsafe { ready.run(sources, &starts, 0..*elements) };
            }
            Running::Brief { ready, brief, operands } => {
                let (read, written) = registers.split_at(*operands);
                let address = |register: u8| pointer(words[usize::from(register)]);
                // SAFETY: operands and results are arrays, each result in memory of its own.
                unsafe { ready.run_brief(brief, |at| address(read[at]), |at| address(written[at])) };
            }
            Running::Copy { bytes } => {
                let [from, to] = [0, 1].map(|at| pointer(words[usize::from(registers[at])]));
                // SAFETY: both places have so many bytes; they may overlap.
                unsafe { from.cast_const().copy_to(to, *bytes) };
            }
            Running::Trips { ops: [first, second], dtype, elements, trips: (trips, chunk) } => {
                let [done, start, a, b] = [0, 1, 2, 3].map(|at| words[usize::from(registers[at])]);
                let now = (*trips - done as usize * *chunk).min(*chunk);
                if *dtype == DType::F32 {
                    // SAFETY: so many elements lie there, in memory of the routine's own or of its result.
                    let x =
                        unsafe { std::slice::from_raw_parts_mut(pointer(start).cast::<f32>(), *elements) };
                    let [a, b] = [a, b].map(|word| f32::from_bits(word as u32));
                    trips::trips(x, (*first, a), (*second, b), now);
                } else {
                    // SAFETY: as above.
                    let x =
                        unsafe { std::slice::from_raw_parts_mut(pointer(start).cast::<f64>(), *elements) };
                    trips::trips(x, (*first, f64::from_bits(a)), (*second, f64::from_bits(b)), now);
                }
            }
        }
    }
}
