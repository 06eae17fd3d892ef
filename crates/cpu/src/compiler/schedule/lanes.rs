//! Rows: the vectorized loop over their elements, their ends, and reductions of them.

use smallvec::SmallVec;

use super::super::emit::mir::{Class, Cond, Constant, Op, Reg};
use super::super::ir::{self, Elem, Val};
use super::{Copies, Lowering, Result, Row, RowEnd, Unsupported};

/// The most vectors that are done together: enough to hide the latency of arithmetic.
const MAX_COPIES: usize = 4;

/// The accumulators of a row, and how many vectors of the row there are for them.
pub(super) type Accumulators = SmallVec<[(Val, usize); 6]>;

impl Lowering<'_> {
    /// Lowers a row.
    pub(super) fn lanes(&mut self, at: usize) -> Result<usize> {
        let end = self.ends[at] as usize;
        let own = super::lanes_of(self.function, (at, end), (&self.is_dead, &self.is_halved), self.target);
        let most = std::mem::replace(&mut self.code.lanes, own);
        let accumulators = self.accumulators(at, end);
        self.accumulators.clone_from(&accumulators);
        let extent = self.function.insts[at].args[0];
        let scope = self.enter();
        self.prepare(at, end)?;
        self.hoist(at, end)?;
        for &(accumulator, vectors) in &accumulators {
            let neutral = self.scalar(self.function.inst(accumulator).args[0]);
            let vectors = vectors * self.vectors_of_accumulator(accumulator);
            self.values[accumulator.index()] = std::iter::repeat_n(neutral, vectors).collect();
        }
        self.begin_masks(&accumulators);
        let copies = self.copies(at, end, &accumulators);
        let step = accumulators.iter().map(|(_, vectors)| *vectors).max().unwrap_or(1).max(copies);
        let range = (at + 1, end);
        match self.function.inst(extent).op.constant() {
            Some(extent) => self.known_row(range, extent as i64, copies, step, &accumulators)?,
            None => self.row_of_any_length(range, extent, copies, step, &accumulators)?,
        }
        self.row = None;
        self.accumulators.clear();
        self.finish_reductions(&accumulators, end)?;
        self.leave(scope);
        self.code.lanes = most;
        Ok(end + 1)
    }

    /// The accumulators that the body of a row adds to.
    fn accumulators(&self, at: usize, end: usize) -> Accumulators {
        let mut found = Accumulators::new();
        for inst in &self.function.insts[at..end] {
            let accumulator = inst.args[0];
            if let ir::Op::Reduce = inst.op
                && found.iter().all(|(known, _)| *known != accumulator)
            {
                let ir::Op::Accumulator(_, lanes) = self.function.inst(accumulator).op else {
                    unreachable!("a row is reduced to an accumulator")
                };
                found.push((accumulator, usize::from(lanes).div_ceil(usize::from(self.code.lanes))));
            }
        }
        found
    }

    /// Computes the scalars of a row, and broadcasts those that its vectors use, before it begins.
    fn hoist(&mut self, at: usize, end: usize) -> Result<()> {
        let function = self.function;
        let mut position = at + 1;
        while position < end {
            let (value, inst) = (Val(position as u32), function.insts[position]);
            let is_block = self.ends[position] != u32::MAX;
            let is_ready = |operand: Val| {
                operand.index() < at || self.is_hoisted[operand.index()] || self.is_constant(operand)
            };
            let is_pure = if let ir::Op::Load(access) = inst.op {
                let access = function.access(access);
                access.terms.iter().all(|(term, _)| is_ready(*term))
                    && !self.stores_to(at, end, access.buffer)
            } else {
                !is_block && !is_bound(inst.op)
            };
            if !inst.ty.is_vector && is_pure && inst.operands().all(is_ready) && !self.is_dead[position] {
                self.instruction(position)?;
                self.is_hoisted[position] = true;
            }
            if is_block {
                // Blocks in a row compute their scalars themselves.
                position = self.ends[position] as usize;
                while let ir::Op::Else = function.insts[position].op {
                    position = self.ends[position] as usize;
                }
            }
            debug_assert!(value.index() <= position);
            position += 1;
        }
        for position in at + 1..end {
            let inst = &function.insts[position];
            let is_used = is_vector_op(inst) && !self.is_dead[position];
            for operand in inst.operands().filter(|_| is_used) {
                let is_scalar = !function.ty(operand).is_vector && !self.is_constant(operand);
                let is_there = operand.index() < at || self.is_hoisted[operand.index()];
                // Those of rows before have their results.
                let is_accumulator = self.accumulators.iter().any(|(own, _)| *own == operand);
                if is_scalar && is_there && !is_accumulator {
                    self.splat(operand);
                }
            }
        }
        Ok(())
    }

    fn is_constant(&self, value: Val) -> bool {
        self.function.inst(value).op.constant().is_some()
    }

    fn stores_to(&self, at: usize, end: usize, buffer: u16) -> bool {
        self.function.insts[at..end].iter().any(|inst| {
            if let ir::Op::Call(_) = inst.op {
                return true;
            }
            let ir::Op::Store(access) = inst.op else { return false };
            self.function.access(access).buffer == buffer
        })
    }

    /// How many vectors are done together: as many as registers allow.
    fn copies(&self, at: usize, end: usize, accumulators: &Accumulators) -> usize {
        let pinned: usize = accumulators.iter().map(|(value, _)| self.vectors_in(*value)).sum();
        let registers = self.limits.vectors.len().saturating_sub(pinned + 2);
        let pressure = self.pressure(at, end);
        let copies = [MAX_COPIES, 2].into_iter().find(|copies| copies * pressure <= registers).unwrap_or(1);
        // A lane gets all that an element gives it before it gets anything of the next: the copies then have lanes of
        // their own.
        let several =
            accumulators.iter().filter(|(accumulator, _)| self.times_reduced(at, end, *accumulator) > 1);
        several.map(|(_, vectors)| *vectors).fold(copies, usize::min)
    }

    /// How often an element is added to an accumulator: once, or more often.
    fn times_reduced(&self, at: usize, end: usize, accumulator: Val) -> usize {
        let (mut times, mut loops) = (0, 0);
        for inst in &self.function.insts[at..end] {
            if let ir::Op::Loop = inst.op {
                loops += 1;
            } else if let ir::Op::EndLoop(_) = inst.op {
                loops -= 1;
            } else if inst.op == ir::Op::Reduce && inst.args[0] == accumulator {
                times += 1 + loops;
            }
        }
        times
    }

    /// The most vectors of one copy that live at the same time, with those of the constants that have to be in a
    /// register.
    fn pressure(&self, at: usize, end: usize) -> usize {
        let mut is_live = vec![false; end - at];
        let (mut live, mut most) = (0usize, 1);
        for position in (at + 1..end).rev() {
            let inst = self.function.insts[position];
            if std::mem::replace(&mut is_live[position - at], false) {
                live -= 1;
            }
            for operand in inst.operands() {
                let ty = self.function.ty(operand);
                let counts = ty.is_vector && (ty.elem != Elem::Bit || self.limits.masks.is_empty());
                if counts
                    && operand.index() > at
                    && !std::mem::replace(&mut is_live[operand.index() - at], true)
                {
                    live += 1;
                }
            }
            most = most.max(live);
        }
        most
    }

    /// A row whose length is known.
    fn known_row(
        &mut self,
        range: (usize, usize),
        extent: i64,
        copies: usize,
        step: usize,
        accumulators: &Accumulators,
    ) -> Result<()> {
        let lanes = i64::from(self.code.lanes);
        let elements = step as i64 * lanes;
        let trips = extent / elements;
        if trips == 1 {
            self.steps(range, None, 0, copies, step)?;
        } else if trips > 1 {
            let (carried, list) = self.begin_step_loop(accumulators);
            self.control(Op::Loop(list), Elem::Bit, 1, &[]);
            self.steps(range, Some(carried), 0, copies, step)?;
            let end = self.number(trips * elements);
            self.end_step_loop(carried, elements, Some(end), accumulators)?;
        }
        let mut offset = trips * elements;
        let mut first = 0;
        while extent - offset >= lanes {
            let left = ((extent - offset) / lanes) as usize;
            let together = [copies, 2, 1].into_iter().find(|count| *count <= left.min(copies)).unwrap_or(1);
            self.once(range, Row { copies: together, position: None, offset, first, end: None })?;
            offset += together as i64 * lanes;
            first += together;
        }
        if extent > offset {
            let count = self.number(extent - offset);
            let end = self.row_end(count);
            self.once(range, Row { copies: 1, position: None, offset, first, end: Some(end) })?;
        }
        Ok(())
    }

    /// A row whose length is a value.
    fn row_of_any_length(
        &mut self,
        range: (usize, usize),
        extent: Val,
        copies: usize,
        step: usize,
        accumulators: &Accumulators,
    ) -> Result<()> {
        let extent = self.scalar(extent);
        let lanes = i64::from(self.code.lanes);
        let elements = step as i64 * lanes;
        // Whole steps.
        let last = self.general(Op::AddNumber(-(elements as i32)), &[extent]);
        let (position, list) = self.begin_step_loop(accumulators);
        self.control(Op::Loop(list), Elem::Bit, 1, &[]);
        self.control(Op::WhileGeneral(Cond::Le), Elem::Index, 1, &[position, last]);
        self.steps(range, Some(position), 0, copies, step)?;
        self.end_step_loop(position, elements, None, accumulators)?;
        if accumulators.is_empty() {
            // Whole vectors.
            let mut position = position;
            if step > 1 {
                let last = self.general(Op::AddNumber(-(lanes as i32)), &[extent]);
                let (inner, list) = self.begin_step_loop_from(position, accumulators);
                self.control(Op::Loop(list), Elem::Bit, 1, &[]);
                self.control(Op::WhileGeneral(Cond::Le), Elem::Index, 1, &[inner, last]);
                self.steps(range, Some(inner), 0, 1, 1)?;
                self.end_step_loop(inner, lanes, None, accumulators)?;
                position = inner;
            }
            return self.last_vector(range, position, extent, 0);
        }
        // Each vector has an accumulator of its own.
        let mut position = position;
        for first in 0..step {
            self.last_vector(range, position, extent, first)?;
            position = self.general(Op::AddNumber(lanes as i32), &[position]);
        }
        Ok(())
    }

    /// The vector at a position, as far as the row has its elements.
    fn last_vector(&mut self, range: (usize, usize), position: Reg, extent: Reg, first: usize) -> Result<()> {
        let before = self.accumulated();
        self.control(Op::IfGeneral(Cond::Lt), Elem::Index, 1, &[position, extent]);
        let scope = self.enter();
        let left = self.general(Op::GeneralSub, &[extent, position]);
        let most = self.number(i64::from(self.code.lanes));
        let count = self.general(Op::GeneralMin, &[left, most]);
        let end = self.row_end(count);
        self.row = Some(Row { copies: 1, position: Some(position), offset: 0, first, end: Some(end) });
        self.block(range.0, range.1)?;
        self.leave(scope);
        self.control(Op::Else, Elem::Bit, 1, &[]);
        let then = self.set_accumulated(before);
        let mut triples: SmallVec<[Reg; 6]> = SmallVec::new();
        self.join_accumulated(then, &mut triples);
        let list = self.list(triples);
        self.control(Op::EndIf(list), Elem::Bit, 1, &[]);
        Ok(())
    }

    /// The registers of the row's accumulators.
    pub(super) fn accumulated(&self) -> Vec<Copies> {
        self.accumulators.iter().map(|(value, _)| self.values[value.index()].clone()).collect()
    }

    /// Changes them; gives what they were.
    pub(super) fn set_accumulated(&mut self, to: Vec<Copies>) -> Vec<Copies> {
        let pairs = self.accumulators.iter().zip(to);
        pairs.map(|((value, _), to)| std::mem::replace(&mut self.values[value.index()], to)).collect()
    }

    /// Joins the accumulators at the end of a condition: those of the first side are given, the others are current.
    pub(super) fn join_accumulated(&mut self, then: Vec<Copies>, triples: &mut SmallVec<[Reg; 6]>) {
        for (&(value, _), then) in self.accumulators.iter().zip(then) {
            for (current, then) in self.values[value.index()].iter_mut().zip(then) {
                if *current != then {
                    let joined = self.code.reg(self.code.class(then));
                    triples.extend([joined, then, *current]);
                    *current = joined;
                }
            }
        }
    }

    /// Makes a loop in a row carry the accumulators that it adds to.
    pub(super) fn carry_accumulators(
        &mut self,
        at: usize,
        end: usize,
        pairs: &mut SmallVec<[Reg; 6]>,
    ) -> Result<()> {
        let Some(row) = self.row else { return Ok(()) };
        let is_reduced = |inst: &ir::Inst, value: Val| inst.op == ir::Op::Reduce && inst.args[0] == value;
        let body = &self.function.insts[at..end];
        let first = body.iter().position(|inst| inst.op == ir::Op::Reduce);
        let last = body.iter().rposition(|inst| inst.op == ir::Op::While);
        if first.is_some_and(|first| last.is_some_and(|last| first < last)) {
            // What is carried is left as it was when the trip began.
            return Err(Unsupported("reductions before a loop is left".to_owned()));
        }
        for &(value, vectors) in &self.accumulators {
            if !body.iter().any(|inst| is_reduced(inst, value)) {
                continue;
            }
            for copy in 0..row.copies.min(vectors) {
                let at = (row.first + copy) % vectors;
                let masks = self.has_masks(value).then_some(vectors + at);
                for at in std::iter::once(at).chain(masks) {
                    let current = self.values[value.index()][at];
                    let carry = self.code.reg(self.code.class(current));
                    pairs.extend([carry, current]);
                    self.values[value.index()][at] = carry;
                }
            }
        }
        Ok(())
    }

    /// What they are after a trip; behind the loop they are what it carries.
    pub(super) fn next_accumulators(&mut self, carried: Vec<Copies>, pairs: &mut SmallVec<[Reg; 6]>) {
        let next = self.set_accumulated(carried);
        for (&(value, _), next) in self.accumulators.iter().zip(next) {
            let changed = self.values[value.index()].iter().zip(next);
            pairs.extend(
                changed.filter(|(carry, next)| **carry != *next).flat_map(|(carry, next)| [*carry, next]),
            );
        }
    }

    /// The mask of the first lanes.
    fn row_end(&mut self, count: Reg) -> RowEnd {
        let elem = self.lane_elem();
        let mask = self.emit(Op::MaskFirst, elem, self.code.lanes, Class::Mask, &[count]);
        self.mask_elems.insert(mask, elem);
        RowEnd { count, mask }
    }

    /// All vectors of a step, `copies` at once.
    fn steps(
        &mut self,
        range: (usize, usize),
        position: Option<Reg>,
        offset: i64,
        copies: usize,
        step: usize,
    ) -> Result<()> {
        let lanes = i64::from(self.code.lanes);
        for first in (0..step).step_by(copies) {
            let offset = offset + first as i64 * lanes;
            self.once(range, Row { copies, position, offset, first, end: None })?;
        }
        Ok(())
    }

    /// The body of a row once. What it computes is not there behind it: counters of its loops are others then.
    fn once(&mut self, range: (usize, usize), row: Row) -> Result<()> {
        let scope = self.enter();
        self.row = Some(row);
        self.block(range.0, range.1)?;
        self.leave(scope);
        Ok(())
    }

    /// What a loop over steps carries: the position and the accumulators.
    fn begin_step_loop(&mut self, accumulators: &Accumulators) -> (Reg, super::ListId) {
        let zero = self.number(0);
        self.begin_step_loop_from(zero, accumulators)
    }

    fn begin_step_loop_from(&mut self, start: Reg, accumulators: &Accumulators) -> (Reg, super::ListId) {
        let position = self.code.reg(Class::General);
        let mut pairs: SmallVec<[Reg; 6]> = SmallVec::from_slice(&[position, start]);
        for &(value, _) in accumulators {
            for at in 0..self.values[value.index()].len() {
                let current = self.values[value.index()][at];
                let carry = self.code.reg(self.code.class(current));
                pairs.extend([carry, current]);
                self.values[value.index()][at] = carry;
            }
        }
        (position, self.list(pairs))
    }

    /// Ends it; `end` is where the position stops, if the loop has a trip at least.
    fn end_step_loop(
        &mut self,
        position: Reg,
        elements: i64,
        end: Option<Reg>,
        accumulators: &Accumulators,
    ) -> Result<()> {
        let begin = self.code.insts.iter().rposition(|inst| {
            let Op::Loop(list) = inst.op else { return false };
            self.code.list(list)[0] == position
        });
        let Some(Op::Loop(begun)) = begin.map(|at| self.code.insts[at].op) else {
            unreachable!("the loop has begun")
        };
        let carries: SmallVec<[Reg; 6]> = self.code.list(begun).chunks(2).map(|pair| pair[0]).collect();
        let next = self.general(Op::AddNumber(elements as i32), &[position]);
        let mut pairs: SmallVec<[Reg; 6]> = SmallVec::from_slice(&[position, next]);
        let mut carry = carries[1..].iter();
        for &(value, _) in accumulators {
            for at in 0..self.values[value.index()].len() {
                let carry = *carry.next().expect("each accumulator is carried");
                pairs.extend([carry, self.values[value.index()][at]]);
                self.values[value.index()][at] = carry;
            }
        }
        let list = self.list(pairs);
        match end {
            Some(end) => self.control(Op::EndLoop(list, Cond::Lt), Elem::Index, 1, &[next, end]),
            None => self.control(Op::EndLoopAlways(list), Elem::Bit, 1, &[]),
        }
        Ok(())
    }

    /// Adds the vectors of a value to an accumulator.
    pub(super) fn reduce(&mut self, value: Val) -> Result<()> {
        let inst = *self.function.inst(value);
        let (accumulator, elem) = (inst.args[0], inst.ty.elem);
        let row = self.row.expect("reductions are of rows");
        let ir::Op::Accumulator(reduce, _) = self.function.inst(accumulator).op else {
            unreachable!("a row is reduced to an accumulator")
        };
        let lanes = self.code.lanes;
        let neutral = self.scalar(self.function.inst(accumulator).args[0]);
        let is_halved = self.is_halved[inst.args[1].index()];
        let added = if is_halved { self.function.inst(inst.args[1]).args[0] } else { inst.args[1] };
        for copy in 0..row.copies {
            let mut operand = self.vector(added, copy);
            if let Some(end) = row.end {
                // What is not there changes nothing.
                let elem = self.function.ty(added).elem;
                let neutral = self.constant(Constant::Splat(elem, reduce.neutral(elem)));
                let mask = self.mask_for(end.mask, elem, lanes);
                operand = self.emit(Op::Select, elem, lanes, Class::Vector, &[mask, operand, neutral]);
            }
            let addends = self.addends(accumulator, inst.args[1], operand)?;
            let first = (row.first + copy) * addends.len() % self.vectors_in(accumulator);
            let lanes = lanes / addends.len() as u8;
            for (at, addend) in (first..).zip(addends) {
                if self.has_masks(accumulator) {
                    self.reduce_under_mask(accumulator, at, addend)?;
                    continue;
                }
                let before = self.values[accumulator.index()][at];
                // What a lane begins with changes nothing.
                let after = match before == neutral {
                    true => addend,
                    false => self.op(reduce.op(), elem, elem, lanes, &[before, addend], [None; 3])?,
                };
                self.values[accumulator.index()][at] = after;
            }
        }
        Ok(())
    }

    /// The lanes of an accumulator's vectors.
    pub(super) fn lanes_of_accumulator(&self, accumulator: Val) -> u8 {
        self.code.lanes / self.vectors_of_accumulator(accumulator) as u8
    }
}

/// Whether an instruction has vectors as operands.
fn is_vector_op(inst: &ir::Inst) -> bool {
    if let ir::Op::Reduce | ir::Op::Store(_) = inst.op { true } else { inst.ty.is_vector }
}

/// Whether an instruction is none of values, or cannot be done before the row.
fn is_bound(op: ir::Op) -> bool {
    matches!(
        op,
        ir::Op::Const(_)
            | ir::Op::Any
            | ir::Op::Loop
            | ir::Op::Carry
            | ir::Op::While
            | ir::Op::EndLoop(_)
            | ir::Op::If
            | ir::Op::Else
            | ir::Op::EndIf(_)
            | ir::Op::Join
            | ir::Op::Accumulator(..)
            | ir::Op::Lanes
            | ir::Op::Reduce
            | ir::Op::EndLanes
            | ir::Op::Call(_)
            | ir::Op::Store(_)
            | ir::Op::Gather(_)
    )
}
