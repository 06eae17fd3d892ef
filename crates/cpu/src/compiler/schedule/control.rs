//! Control flow: loops, conditions, and calls of kernels.

use smallvec::SmallVec;

use super::super::emit::mir::{Class, Cond, Op, Reg};
use super::super::ir::{self, Elem, Val};
use super::{Copies, Lowering, Result};

/// What a jump depends on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    General(Cond, Reg, Reg),
    /// Any of the lanes.
    Mask(Reg, u8),
}

impl Lowering<'_> {
    /// The condition of a jump: a comparison of indices, or a mask.
    pub(super) fn condition(&mut self, predicate: Val) -> Result<Condition> {
        if let Some(&(cond, a, b)) = self.conditions.get(&predicate) {
            return Ok(Condition::General(cond, a, b));
        }
        let inst = self.function.inst(predicate);
        let lanes = if let ir::Op::Any = inst.op { self.code.lanes } else { 1 };
        let mask = self.scalar(predicate);
        Ok(Condition::Mask(mask, lanes))
    }

    pub(super) fn while_(&mut self, predicate: Val) -> Result<()> {
        match self.condition(predicate)? {
            Condition::General(cond, a, b) => self.control(Op::WhileGeneral(cond), Elem::Index, 1, &[a, b]),
            Condition::Mask(mask, lanes) => {
                let elem = self.mask_elem(mask);
                self.control(Op::While, elem, lanes, &[mask]);
            }
        }
        Ok(())
    }

    /// Begins what runs under a condition.
    pub(super) fn begin_if(&mut self, condition: Condition) {
        match condition {
            Condition::General(cond, a, b) => self.control(Op::IfGeneral(cond), Elem::Index, 1, &[a, b]),
            Condition::Mask(mask, lanes) => {
                let elem = self.mask_elem(mask);
                self.control(Op::If, elem, lanes, &[mask]);
            }
        }
    }

    pub(super) fn if_(&mut self, at: usize) -> Result<usize> {
        let condition = self.condition(self.function.insts[at].args[0])?;
        let first_end = self.ends[at] as usize;
        self.begin_if(condition);
        let before = self.accumulated();
        let has_else = self.function.insts[first_end].op == ir::Op::Else;
        let end = if has_else { self.ends[first_end] as usize } else { first_end };
        let ir::Op::EndIf(list) = self.function.insts[end].op else { unreachable!("a condition ends") };
        let pairs = self.function.list(list).to_vec();
        let results: Vec<Val> = (0..pairs.len()).map(|at| Val((end + 1 + at) as u32)).collect();
        let scope = self.enter();
        self.block(at + 1, first_end)?;
        let then: Vec<Copies> =
            pairs.iter().zip(&results).map(|(pair, &result)| self.side(pair.0, result)).collect();
        self.leave(scope);
        let after_then = self.set_accumulated(before);
        self.control(Op::Else, Elem::Bit, 1, &[]);
        let scope = self.enter();
        if has_else {
            self.block(first_end + 1, end)?;
        }
        let mut triples: SmallVec<[Reg; 6]> = SmallVec::new();
        for ((pair, &result), then) in pairs.iter().zip(&results).zip(then) {
            let otherwise = self.side(pair.1, result);
            let mut joined = Copies::new();
            for (then, otherwise) in then.into_iter().zip(otherwise) {
                let otherwise = self.same_width(otherwise, then, self.function.ty(result).is_vector);
                let class = self.code.class(then);
                let reg = self.code.reg(class);
                if class == Class::Mask {
                    self.mask_elems.insert(reg, self.mask_elem(then));
                }
                joined.push(reg);
                triples.extend([reg, then, otherwise]);
            }
            self.values[result.index()] = joined;
        }
        self.leave(scope);
        self.join_accumulated(after_then, &mut triples);
        let list = self.list(triples);
        self.control(Op::EndIf(list), Elem::Bit, 1, &[]);
        Ok(end + 1)
    }

    /// What one side of a condition gives for a result.
    pub(super) fn side(&mut self, value: Val, result: Val) -> Copies {
        if !self.function.ty(result).is_vector {
            return SmallVec::from_slice(&[self.scalar(value)]);
        }
        let copies = self.row.map_or(1, |row| row.copies);
        (0..copies).map(|copy| self.vector(value, copy)).collect()
    }

    /// A mask in the width of another.
    pub(super) fn same_width(&mut self, mask: Reg, other: Reg, is_vector: bool) -> Reg {
        if self.code.class(mask) != Class::Mask {
            return mask;
        }
        let (elem, lanes) = (self.mask_elem(other), if is_vector { self.code.lanes } else { 1 });
        self.mask_for(mask, elem, lanes)
    }

    pub(super) fn loop_(&mut self, at: usize) -> Result<usize> {
        let inst = self.function.insts[at];
        let end = self.ends[at] as usize;
        let ir::Op::EndLoop(list) = self.function.insts[end].op else { unreachable!("a loop ends") };
        let next_of = self.function.list(list).to_vec();
        let body = (at + 1..end).find(|&at| self.function.insts[at].op != ir::Op::Carry);
        let body = body.unwrap_or(end);
        self.prepare(at, end)?;
        let counter = self.code.reg(Class::General);
        let zero = self.number(0);
        let mut pairs: SmallVec<[Reg; 6]> = SmallVec::from_slice(&[counter, zero]);
        let trips = inst.args[0].is_some().then(|| self.scalar(inst.args[0]));
        for carry in (at + 1..body).map(|at| Val(at as u32)) {
            let (ty, init) = (self.function.ty(carry), self.function.inst(carry).args[0]);
            let copies = if ty.is_vector { self.row.as_ref().map_or(1, |row| row.copies) } else { 1 };
            let mut regs = Copies::new();
            for copy in 0..copies {
                let init = if ty.is_vector { self.vector(init, copy) } else { self.scalar(init) };
                let class = self.code.class(init);
                let reg = self.code.reg(class);
                if class == Class::Mask {
                    self.mask_elems.insert(reg, self.mask_elem(init));
                }
                pairs.extend([reg, init]);
                regs.push(reg);
            }
            self.values[carry.index()] = regs;
        }
        self.carry_accumulators(at, end, &mut pairs)?;
        self.values[at] = SmallVec::from_slice(&[counter]);
        let carried_accumulators = self.accumulated();
        let saved = self.enter();
        let list = self.list(pairs);
        self.control(Op::Loop(list), Elem::Bit, 1, &[]);
        // A loop of at least one trip asks at its end.
        let asks_at_end = inst.args[0].is_some()
            && self.function.inst(inst.args[0]).op.constant().is_some_and(|trips| trips as i64 > 0);
        if let (Some(trips), false) = (trips, asks_at_end) {
            self.control(Op::WhileGeneral(Cond::Lt), Elem::Index, 1, &[counter, trips]);
        }
        self.block(body, end)?;
        let next_counter = self.general(Op::AddNumber(1), &[counter]);
        let mut pairs: SmallVec<[Reg; 6]> = SmallVec::from_slice(&[counter, next_counter]);
        for (carry, next) in next_of {
            let ty = self.function.ty(carry);
            for copy in 0..self.values[carry.index()].len() {
                let to = self.values[carry.index()][copy];
                let next = if ty.is_vector { self.vector(next, copy) } else { self.scalar(next) };
                let next = self.same_width(next, to, ty.is_vector);
                pairs.extend([to, next]);
            }
        }
        self.next_accumulators(carried_accumulators, &mut pairs);
        let list = self.list(pairs);
        match trips {
            Some(trips) if asks_at_end => {
                self.control(Op::EndLoop(list, Cond::Lt), Elem::Index, 1, &[next_counter, trips]);
            }
            Some(_) | None => self.control(Op::EndLoopAlways(list), Elem::Bit, 1, &[]),
        }
        self.leave(saved);
        Ok(end + 1)
    }

    pub(super) fn call(&mut self, call: ir::CallId) -> Result<()> {
        let call = self.function.call(call).clone();
        let args: SmallVec<[Reg; 6]> =
            call.args.iter().map(|&ir::CallArg::Index(index)| self.scalar(index)).collect();
        let list = self.list(args);
        self.control(Op::Call(call.kernel, list), Elem::Bit, 1, &[]);
        Ok(())
    }
}
