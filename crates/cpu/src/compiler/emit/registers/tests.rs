//! Allocations of random functions for machines with few registers and odd rules.

use super::super::check::check;
use super::*;
use crate::compiler::emit::Constraint;
use crate::compiler::emit::mir::{Elem, Inst};
use crate::compiler::ir::Conv;
use crate::compiler::ir::random::{Limits as Kinds, Random, case};
use crate::compiler::schedule::lower;

/// A machine that has every op, and no code.
struct Fake {
    limits: Limits,
    /// Decides what instructions ask for.
    seed: u64,
}

impl Target for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn has(&self, _: Op, _: Elem) -> bool {
        true
    }

    fn has_masked_access(&self, elem: Elem) -> bool {
        elem.bytes() >= 4
    }

    fn constraint(&self, inst: &Inst) -> Constraint {
        // The same for each op, as for a real machine.
        let name = format!("{:?}{:?}{}", inst.op, inst.elem, self.seed);
        let hash =
            name.bytes().fold(self.seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3));
        let bit = |at: u32| hash >> (at + 20) & 1 == 1;
        let is_vector = |at: usize| inst.src[at].is_some();
        let mut constraint = Constraint { is_early: bit(0), ..Constraint::default() };
        let takes_class = |op: Op| {
            matches!(
                op,
                Op::Compare(_) | Op::Test | Op::Select | Op::MaskFirst | Op::ToGeneral | Op::OfGeneral
            ) || matches!(op, Op::Convert(Conv::OfBit, _) | Op::MaskSplat | Op::MaskResize(_))
        };
        if inst.dst.is_some() && is_vector(0) && bit(1) && !takes_class(inst.op) {
            constraint.tied = if is_vector(1) && bit(2) { 0b11 } else { 0b1 };
        }
        constraint.vector_temps = u8::from(bit(3)) + u8::from(bit(4));
        constraint.general_temps = u8::from(bit(5));
        if bit(6) && !takes_class(inst.op) {
            constraint.slot = 0b110;
            constraint.pool = 0b110;
        }
        constraint
    }

    fn encode(&self, _: &Allocated) -> Vec<u8> {
        Vec::new()
    }
}

#[test]
fn random_functions_find_their_operands() {
    let machines = [
        Limits {
            vector_bytes: 64,
            generals: &[0, 1, 2, 6, 7, 8],
            vectors: &[0, 1, 2, 3, 4, 5],
            masks: &[1, 2, 3],
            scratch: [11, 31, 0],
        },
        Limits {
            vector_bytes: 16,
            generals: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            vectors: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
            masks: &[],
            scratch: [16, 31, 31],
        },
    ];
    let kinds = Kinds { size: 40, reach: 30, elems: &[Elem::F32, Elem::I32, Elem::F64, Elem::I8] };
    let mut lowered = 0;
    for seed in 0..600 {
        let mut random = Random(seed);
        let case = case(&mut random, kinds, 1 + seed as usize % 150);
        let target = Fake { limits: machines[seed as usize % 2], seed };
        let code = lower(&case.function, &target).unwrap_or_else(|problem| panic!("{seed}: {problem:?}"));
        let mut origins = Vec::new();
        let allocated = allocate(&code, &target, 0, Some(&mut origins));
        if let Err(problem) = check(&code, &allocated, &origins, &target) {
            panic!("{seed}: {problem}\n{}", case.function);
        }
        lowered += 1;
    }
    assert_eq!(lowered, 600);
}
