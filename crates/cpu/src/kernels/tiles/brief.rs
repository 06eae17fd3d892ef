//! Programs on so few elements that one tile has all of them: the way to them would take longer than they do.

use defn_core::DType;
use smallvec::SmallVec;

use super::action::{Detail, Instruction, Tile};
use super::{Place, Program, Ready};
use crate::kernels::is_computed_as_stored;

/// A program whose inputs are read as they lie, on one tile.
#[derive(Debug)]
pub(crate) struct Brief {
    /// The registers that are inputs, and which.
    loads: SmallVec<[(u16, usize); 4]>,
    /// What is done, in order; so many of the first depend on nothing.
    rest: Vec<Instruction>,
    fixed: usize,
    elements: usize,
}

impl Program {
    /// The program on `elements`, if they are one tile and every input is `is_plain`: its elements are of the dtype and
    /// lie in order.
    pub(crate) fn brief(&self, elements: usize, is_plain: impl Fn(usize, DType) -> bool) -> Option<Brief> {
        if elements > self.tile {
            return None;
        }
        let fixed = self.fixed.len();
        let mut brief = Brief { loads: SmallVec::new(), rest: Vec::new(), fixed, elements };
        for instruction in self.fixed.iter().chain(&self.once).chain(&self.each) {
            match &instruction.detail {
                Detail::Input(input, dtype) if is_computed_as_stored(*dtype) && is_plain(*input, *dtype) => {
                    brief.loads.push((instruction.out, *input));
                }
                Detail::Input(..) | Detail::Runs { .. } => return None,
                Detail::None
                | Detail::Unary(..)
                | Detail::Binary(_)
                | Detail::Log(_)
                | Detail::To(..)
                | Detail::Count { .. }
                | Detail::Bytes(_)
                | Detail::With(..)
                | Detail::Chain(_) => brief.rest.push(instruction.clone()),
            }
        }
        Some(brief)
    }
}

impl Ready<'_> {
    /// Writes all elements of the results, as [`Ready::run`] does. Inputs and results are where these say.
    ///
    /// # Safety
    /// The program was made brief. Where the inputs and the results begin there are the elements of each, aligned, and
    /// nobody else writes the ones or uses the others; they do not overlap.
    pub(crate) unsafe fn run_brief(
        &mut self,
        brief: &Brief,
        input: impl Fn(usize) -> *mut u8,
        result: impl Fn(usize) -> *mut u8,
    ) {
        let Ready { program, table } = self;
        for (register, place) in table.iter_mut().zip(&program.places) {
            match place {
                Place::Result { index, .. } => *register = result(*index),
                Place::Bank(_) => {}
            }
        }
        for &(register, index) in &brief.loads {
            table[usize::from(register)] = input(index);
        }
        let mut tile = Tile { table, inputs: &[], start: 0, len: brief.elements };
        for instruction in &brief.rest[brief.fixed..] {
            (instruction.run)(instruction, &mut tile);
        }
    }
}
