//! Tests of the code: its text by objdump, and what it does under QEMU.

mod control;
mod memory;
mod ops;
mod reference;
mod text;

use super::super::mir::{Constant, Elem, Inst, Mem, Op, Part, Reg};
use super::super::neon_run::{self, Case, End, Word};
use super::super::{
    Action, Address, Allocated, AllocatedInst, AllocatedPart, Constraint, OperandLocation, Target,
};
use super::Neon;

/// Elements that vectors have.
const ELEMS: [Elem; 6] = [Elem::I8, Elem::I16, Elem::I32, Elem::I64, Elem::F32, Elem::F64];
const INTEGERS: [Elem; 4] = [Elem::I8, Elem::I16, Elem::I32, Elem::I64];

/// The numbers of lanes that vectors of a type may have.
fn lane_counts(elem: Elem) -> impl Iterator<Item = u8> {
    (0..5).map(|power| 1 << power).filter(move |&lanes| usize::from(lanes) * elem.bytes() <= 16)
}

/// An instruction without operands.
fn allocated_inst(op: Op, elem: Elem, lanes: u8) -> AllocatedInst {
    AllocatedInst {
        op,
        elem,
        lanes,
        dst: 0,
        src: [OperandLocation::None; 3],
        mem: Address::default(),
        part: AllocatedPart::All,
        vector_temps: [0; 2],
        general_temps: [0; 2],
        mask_temp: 0,
    }
}

/// An instruction on registers.
fn on(op: Op, elem: Elem, lanes: u8, dst: u8, src: &[u8]) -> Action {
    let mut inst = allocated_inst(op, elem, lanes);
    inst.dst = dst;
    for (location, &reg) in inst.src.iter_mut().zip(src) {
        *location = OperandLocation::Reg(reg);
    }
    Action::Inst(inst)
}

/// An instruction on general registers.
fn general(op: Op, dst: u8, src: &[u8]) -> Action {
    on(op, Elem::Index, 1, dst, src)
}

/// An instruction on memory.
fn at(op: Op, elem: Elem, lanes: u8, reg: u8, mem: Address) -> Action {
    let mut inst = allocated_inst(op, elem, lanes);
    inst.mem = mem;
    if matches!(op, Op::Store | Op::StorePart) {
        inst.src[0] = OperandLocation::Reg(reg);
    } else {
        inst.dst = reg;
    }
    Action::Inst(inst)
}

/// The address in a register, and bytes behind it.
fn near(base: u8, offset: i32) -> Address {
    Address { base, index: None, scale: 1, offset }
}

/// What the target asks for an instruction.
fn constraint(op: Op, elem: Elem, lanes: u8) -> Constraint {
    let (dst, src) = (Reg::NONE, [Reg::NONE; 3]);
    Neon.constraint(&Inst { op, elem, lanes, dst, src, mem: Mem::NONE, part: Part::All })
}

/// The code of actions.
fn code(actions: Vec<Action>, constants: Vec<Constant>, lanes: u8) -> Vec<u8> {
    Neon.encode(&Allocated { actions, constants, lanes, slots: 0, labels: 8, words: 0 })
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 32) as usize % end
    }
}
