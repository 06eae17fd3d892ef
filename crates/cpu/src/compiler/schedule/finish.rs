//! The ends of reductions: the lanes of each accumulator become one number, those of several accumulators together.

use smallvec::SmallVec;

use super::super::emit::mir::{Class, Inst, Op, Part, Reg};
use super::super::ir::{self, AccessId, Elem, Reduce, Val};
use super::lanes::Accumulators;
use super::{Copies, Lowering, Result};

/// The fewest accumulators whose lanes are joined together.
const MIN_TOGETHER: usize = 4;

/// What accumulators have in common whose lanes are joined together: the reduction, the elements and the lanes.
type Kind = (Reduce, Elem, u8);

impl Lowering<'_> {
    /// Joins the lanes of the accumulators of a row, which ends at a position.
    pub(super) fn finish_reductions(&mut self, accumulators: &Accumulators, end: usize) -> Result<()> {
        let mut left: SmallVec<[Val; 16]> =
            accumulators.iter().map(|(accumulator, _)| *accumulator).collect();
        while let Some(&first) = left.first() {
            let kind = self.kind_of(first);
            let is_of_kind = |accumulator: &Val| kind.is_some() && self.kind_of(*accumulator) == kind;
            let mut group: SmallVec<[Val; 16]> = left.iter().copied().filter(is_of_kind).collect();
            if let Some((reduce, elem, lanes)) = kind
                && group.len() >= MIN_TOGETHER
                && usize::from(lanes) >= MIN_TOGETHER
            {
                group.truncate(1 << group.len().min(lanes.into()).ilog2());
                let joined = self.joined_together(&group, (reduce, elem, lanes))?;
                self.assign_lanes(&group, joined, elem, end);
            } else {
                group.clear();
                group.push(first);
                self.finish_reduction(first)?;
            }
            left.retain(|accumulator| !group.contains(accumulator));
        }
        Ok(())
    }

    /// How an accumulator is reduced, if machines have what joins its lanes together with those of others.
    fn kind_of(&self, accumulator: Val) -> Option<Kind> {
        let inst = self.function.inst(accumulator);
        let ir::Op::Accumulator(reduce, _) = inst.op else { unreachable!("it is an accumulator") };
        let elem = inst.ty.elem;
        let fits = !self.has_masks(accumulator) && self.target.has(Op::Fold { by: 1, has: false }, elem);
        fits.then(|| (reduce, elem, self.lanes_of_accumulator(accumulator)))
    }

    /// A vector of as many lanes as there are accumulators, of which each is one's number: like a transposition, of which
    /// every stage joins the halves of lanes that it has brought together.
    fn joined_together(&mut self, group: &[Val], (reduce, elem, lanes): Kind) -> Result<Reg> {
        let count = group.len() as u8;
        let mut joined = Vec::with_capacity(group.len());
        // The last stages bring lanes beside each other within 16 bytes, those before bring these together.
        let within = group.len().min(16 / elem.bytes());
        for first in 0..within {
            for accumulator in group.iter().skip(first).step_by(within) {
                let vectors = std::mem::take(&mut self.values[accumulator.index()]);
                joined.push(self.narrowed(reduce, vectors, elem, lanes, count)?);
            }
        }
        let mut by = count;
        while joined.len() > 1 {
            by /= 2;
            let mut next = Vec::with_capacity(joined.len() / 2);
            for pair in joined.chunks(2) {
                let [lower, upper] = [false, true]
                    .map(|has| self.emit(Op::Fold { by, has }, elem, count, Class::Vector, pair));
                next.push(self.join(reduce, elem, count, lower, upper)?);
            }
            joined = next;
        }
        Ok(joined[0])
    }

    /// Gives each accumulator its lane, or stores all of them at once if nothing else is done with them.
    fn assign_lanes(&mut self, group: &[Val], joined: Reg, elem: Elem, end: usize) {
        if let Some((first, access)) = self.stored_together(group, elem, end) {
            let mem = self.address_of(access);
            let (src, lanes) = ([joined, Reg::NONE, Reg::NONE], group.len() as u8);
            self.push(Inst { op: Op::Store, elem, lanes, dst: Reg::NONE, src, mem, part: Part::All });
            self.is_dead[first..first + group.len()].fill(true);
            return;
        }
        for (lane, accumulator) in group.iter().enumerate() {
            let reg = match lane {
                0 => joined,
                _ => self.emit(Op::Upper(lane as u8), elem, group.len() as u8, Class::Vector, &[joined]),
            };
            self.values[accumulator.index()] = SmallVec::from_slice(&[reg]);
        }
    }

    /// The position of the first of the stores behind a row that are all that is done with its accumulators, and its
    /// access, if they store them beside each other.
    fn stored_together(&self, group: &[Val], elem: Elem, end: usize) -> Option<(usize, AccessId)> {
        let insts = &self.function.insts;
        let first =
            (end + 1..insts.len()).find(|&at| insts[at].operands().any(|operand| operand == group[0]))?;
        let ir::Op::Store(access) = insts[first].op else { return None };
        let known = self.function.access(access);
        let is_beside = |(at, accumulator): (usize, &Val)| {
            let Some(inst) = insts.get(first + at) else { return false };
            let ir::Op::Store(own) = inst.op else { return false };
            let own = self.function.access(own);
            inst.args[0] == *accumulator
                && (own.buffer, &own.terms, own.lane) == (known.buffer, &known.terms, 0)
                && !own.is_streaming
                && own.offset == known.offset + (at * elem.bytes()) as i64
        };
        // Nothing between the row and the stores may touch memory, or hold what the address is made of.
        let is_near = insts[end + 1..first].iter().all(|inst| inst.op.constant().is_some());
        if !is_near || !group.iter().enumerate().all(is_beside) {
            return None;
        }
        let is_in = |value: &Val| group.contains(value);
        let uses = insts[end + 1..].iter().flat_map(ir::Inst::operands).filter(is_in).count();
        // What is carried and what conditions give is named in lists.
        let is_listed = self.function.lists.iter().flatten().any(|(one, other)| is_in(one) || is_in(other));
        (uses == group.len() && !is_listed).then_some((first, access))
    }

    fn join(&mut self, reduce: Reduce, elem: Elem, lanes: u8, a: Reg, b: Reg) -> Result<Reg> {
        self.op(reduce.op(), elem, elem, lanes, &[a, b], [None; 3])
    }

    /// Joins the lanes of an accumulator.
    fn finish_reduction(&mut self, accumulator: Val) -> Result<()> {
        if self.has_masks(accumulator) {
            return self.finish_under_masks(accumulator);
        }
        let inst = *self.function.inst(accumulator);
        let ir::Op::Accumulator(reduce, count) = inst.op else { unreachable!("it is an accumulator") };
        let lanes = self.lanes_of_accumulator(accumulator);
        let elem = inst.ty.elem;
        // A float has at least as many lanes as the vector; the order of integers does not matter.
        debug_assert!(!elem.is_float() || count >= u16::from(lanes));
        let vectors = std::mem::take(&mut self.values[accumulator.index()]);
        let result = self.narrowed(reduce, vectors, elem, lanes, 1)?;
        self.values[accumulator.index()] = SmallVec::from_slice(&[result]);
        Ok(())
    }

    /// Joins vectors and then their lanes until so many are left.
    fn narrowed(&mut self, reduce: Reduce, vectors: Copies, elem: Elem, lanes: u8, until: u8) -> Result<Reg> {
        let join = |lowering: &mut Self, lanes, a, b| lowering.join(reduce, elem, lanes, a, b);
        self.join_lanes(vectors, elem, (lanes, until), join)
    }

    /// Joins vectors and then their lanes, the upper half with the lower one, until so many are left. Only the lanes that
    /// are left are moved: to move them between the halves of a large register takes longer.
    pub(super) fn join_lanes(
        &mut self,
        mut vectors: Copies,
        elem: Elem,
        (lanes, until): (u8, u8),
        mut join: impl FnMut(&mut Self, u8, Reg, Reg) -> Result<Reg>,
    ) -> Result<Reg> {
        while vectors.len() > 1 {
            let half = vectors.len() / 2;
            for at in 0..half {
                vectors[at] = join(self, lanes, vectors[at], vectors[at + half])?;
            }
            vectors.truncate(half);
        }
        let mut result = vectors[0];
        let mut width = lanes;
        while width > until {
            width /= 2;
            let upper = self.emit(Op::Upper(width), elem, 2 * width, Class::Vector, &[result]);
            result = join(self, width, result, upper)?;
        }
        Ok(result)
    }
}
