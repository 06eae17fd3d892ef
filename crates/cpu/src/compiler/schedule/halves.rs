//! Sums in wider floats: a row of f32 that is added up in f64 has as many lanes as f32 has, and each of its vectors is
//! converted in two halves. Otherwise all arithmetic before the sum would have half the lanes.

use smallvec::SmallVec;

use super::super::emit::mir::{Class, Op, Reg};
use super::super::ir::{self, Conv, Elem, Function, Val};
use super::{Lowering, Result};

/// For each instruction whether it is the conversion of what a row is reduced to, or that reduction. Such values are
/// converted where they are added.
pub(super) fn halved(function: &Function, ends: &[u32]) -> Vec<bool> {
    let insts = &function.insts;
    let mut is_halved = vec![false; insts.len()];
    let mut uses: Option<Vec<u32>> = None;
    for at in (0..insts.len()).filter(|&at| insts[at].op == ir::Op::Lanes) {
        let end = ends[at] as usize;
        // In a block a reduction carries registers of its own.
        if insts[at + 1..end].iter().any(|inst| inst.op == ir::Op::Loop || inst.op == ir::Op::If) {
            continue;
        }
        for reduce in (at + 1..end).filter(|&reduce| insts[reduce].op == ir::Op::Reduce) {
            let value = insts[reduce].args[1].index();
            let is_wider = insts[value].op == ir::Op::Convert(Conv::Float)
                && insts[value].ty.is_vector
                && insts[value].ty.elem == Elem::F64
                && function.ty(insts[value].args[0]).elem == Elem::F32
                && function.ty(insts[value].args[0]).is_vector;
            if value > at && is_wider && uses.get_or_insert_with(|| count_uses(function))[value] == 1 {
                (is_halved[value], is_halved[reduce]) = (true, true);
            }
        }
    }
    is_halved
}

fn count_uses(function: &Function) -> Vec<u32> {
    let mut uses = vec![0; function.insts.len()];
    let operands = function.insts.iter().flat_map(ir::Inst::operands);
    let listed = function.lists.iter().flatten().flat_map(|&(a, b)| [a, b]);
    for operand in operands.chain(listed) {
        uses[operand.index()] += 1;
    }
    uses
}

impl Lowering<'_> {
    /// How many vectors of an accumulator have the elements of one vector of the row.
    pub(super) fn vectors_of_accumulator(&self, accumulator: Val) -> usize {
        let bytes = self.function.ty(accumulator).elem.bytes() * usize::from(self.code.lanes);
        (bytes / self.limits.vector_bytes).max(1)
    }

    /// The vectors that are added to an accumulator for a vector of the row, which are conversions of it if the value
    /// is one.
    pub(super) fn addends(
        &mut self,
        accumulator: Val,
        value: Val,
        vector: Reg,
    ) -> Result<SmallVec<[Reg; 6]>> {
        if !self.is_halved[value.index()] {
            return Ok(SmallVec::from_slice(&[vector]));
        }
        let (narrow, wide) = (Elem::F32, Elem::F64);
        let parts = self.vectors_of_accumulator(accumulator);
        let lanes = self.code.lanes / parts as u8;
        let mut addends = SmallVec::new();
        for part in 0..parts as u8 {
            let half = match part {
                0 => vector,
                _ => self.emit(Op::Upper(part * lanes), narrow, self.code.lanes, Class::Vector, &[vector]),
            };
            addends.push(self.op(ir::Op::Convert(Conv::Float), wide, narrow, lanes, &[half], [None; 3])?);
        }
        Ok(addends)
    }
}
