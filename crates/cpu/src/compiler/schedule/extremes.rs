//! Rows reduced to their least or greatest float, on machines with mask registers.
//!
//! The result is NaN if any element is, but a machine's minimum or maximum gives its second operand then. So each
//! vector of an accumulator has a mask beside it, of the lanes that have had numbers only: a comparison under a mask is
//! one instruction, and lanes are joined without a look at NaN.

use smallvec::SmallVec;

use super::super::emit::mir::{Class, Cmp, Constant, Inst, Mem, Op, Part, Reg};
use super::super::ir::{self, Elem, Reduce, Val};
use super::lanes::Accumulators;
use super::{Copies, Lowering, Result};

/// Masks of a row at most. The others are for what the row computes.
const MAX_MASKS: usize = 4;

impl Lowering<'_> {
    /// Puts the masks of a row's accumulators behind their vectors, if there are registers for all of them.
    pub(super) fn begin_masks(&mut self, accumulators: &Accumulators) {
        let is_extreme = |accumulator: Val| {
            let inst = self.function.inst(accumulator);
            let ir::Op::Accumulator(Reduce::Min | Reduce::Max, _) = inst.op else { return false };
            inst.ty.elem.is_float()
        };
        let extremes: SmallVec<[Val; 4]> =
            accumulators.iter().map(|&(accumulator, _)| accumulator).filter(|&at| is_extreme(at)).collect();
        let masks: usize = extremes.iter().map(|&at| self.values[at.index()].len()).sum();
        if masks > MAX_MASKS || self.limits.masks.is_empty() {
            return;
        }
        for accumulator in extremes {
            let elem = self.function.ty(accumulator).elem;
            let lanes = self.lanes_of_accumulator(accumulator);
            let neutral = self.values[accumulator.index()][0];
            let all = self.emit(Op::Compare(Cmp::Eq), elem, lanes, Class::Mask, &[neutral, neutral]);
            self.mask_elems.insert(all, elem.integer());
            let vectors = self.values[accumulator.index()].len();
            self.values[accumulator.index()].extend(std::iter::repeat_n(all, vectors));
        }
    }

    /// The vectors of an accumulator, without their masks.
    pub(super) fn vectors_in(&self, accumulator: Val) -> usize {
        let regs = &self.values[accumulator.index()];
        if self.has_masks(accumulator) { regs.len() / 2 } else { regs.len() }
    }

    /// Whether an accumulator has masks.
    pub(super) fn has_masks(&self, accumulator: Val) -> bool {
        let last = self.values[accumulator.index()].last();
        !self.limits.masks.is_empty() && last.is_some_and(|&last| self.code.class(last) == Class::Mask)
    }

    /// Takes a vector into one of an accumulator with masks.
    pub(super) fn reduce_under_mask(&mut self, accumulator: Val, at: usize, addend: Reg) -> Result<()> {
        let elem = self.function.ty(accumulator).elem;
        let lanes = self.lanes_of_accumulator(accumulator);
        let mask_at = self.vectors_in(accumulator) + at;
        let regs = &self.values[accumulator.index()];
        let (vector, mask) = (regs[at], regs[mask_at]);
        let dst = self.code.reg(Class::Mask);
        self.push(Inst {
            op: Op::Compare(Cmp::Eq),
            elem,
            lanes,
            dst,
            src: [addend, addend, Reg::NONE],
            mem: Mem::NONE,
            part: Part::Mask(mask),
        });
        self.mask_elems.insert(dst, elem.integer());
        let vector = self.machine(self.extreme(accumulator), elem, lanes, &[vector, addend])?;
        self.values[accumulator.index()][at] = vector;
        self.values[accumulator.index()][mask_at] = dst;
        Ok(())
    }

    /// Joins the lanes of an accumulator with masks.
    pub(super) fn finish_under_masks(&mut self, accumulator: Val) -> Result<()> {
        let elem = self.function.ty(accumulator).elem;
        let lanes = self.lanes_of_accumulator(accumulator);
        let mut vectors = std::mem::take(&mut self.values[accumulator.index()]);
        let masks: Copies = vectors.drain(vectors.len() / 2..).collect();
        let mut is_number = masks[0];
        for &mask in &masks[1..] {
            is_number = self.emit(Op::MaskAnd, elem.integer(), lanes, Class::Mask, &[is_number, mask]);
        }
        let is_nan = self.emit(Op::MaskNot, elem.integer(), lanes, Class::Mask, &[is_number]);
        let op = self.extreme(accumulator);
        let join = |lowering: &mut Self, lanes, a, b| lowering.machine(op, elem, lanes, &[a, b]);
        let extreme = self.join_lanes(vectors, elem, (lanes, 1), join)?;
        let bits = if elem == Elem::F32 { f32::NAN.to_bits().into() } else { f64::NAN.to_bits() };
        let nan = self.constant(Constant::Splat(elem, bits));
        // A branch, because it is hardly ever taken: nothing waits for the masks.
        self.control(Op::If, elem.integer(), lanes, &[is_nan]);
        self.control(Op::Else, Elem::Bit, 1, &[]);
        let result = self.code.reg(Class::Vector);
        let list = self.list([result, nan, extreme]);
        self.control(Op::EndIf(list), Elem::Bit, 1, &[]);
        self.values[accumulator.index()] = SmallVec::from_slice(&[result]);
        Ok(())
    }

    /// The machine's op of an accumulator with masks.
    fn extreme(&self, accumulator: Val) -> Op {
        let ir::Op::Accumulator(Reduce::Min, _) = self.function.inst(accumulator).op else { return Op::Max };
        Op::Min
    }
}
