//! Several rows at once: unroll and jam (Allen and Cocke, *A catalogue of optimizing transformations*, 1971) of loops
//! over rows that are reduced.
//!
//! To join the lanes of an accumulator takes as long as to add several vectors to it. The lanes of several rows are
//! joined together, and what is the same for all of them is loaded once.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::rewrite::Rewriter;
use super::{Access, AccessId, Conv, Elem, Function, Inst, Op, Ty, Val};

/// The numbers of rows that are done at once. To do two takes as long as one after the other.
const ROWS: [usize; 3] = [16, 8, 4];

/// In longer rows the lanes are few beside the elements.
const MAX_LENGTH: u64 = 255;

/// The most instructions of rows that are done at once.
const MAX_INSTS: usize = 256;

/// A loop over rows: where it ends, and how many are done at once.
#[derive(Clone, Copy)]
struct Rows {
    end: usize,
    count: usize,
}

/// What an instruction of a row is for several rows.
enum RowValue {
    /// The same for all.
    Same(Val),
    /// An index: that of the first row, and the step from row to row.
    Affine(Val, i64),
    Each(SmallVec<[Val; 16]>),
}

impl Function {
    /// The function with several rows at once in its loops over rows, whose trips are independent. Their accumulators
    /// may take so many vectors of so many bytes.
    pub(crate) fn with_rows_together(self, vectors: usize, vector_bytes: usize) -> Function {
        let together = |(start, end)| {
            let count = self.rows_together(start, end, vectors, vector_bytes)?;
            Some((start, Rows { end, count }))
        };
        let found: FxHashMap<usize, Rows> = self.blocks().filter_map(together).collect();
        if found.is_empty() {
            return self;
        }
        let mut to = Rewriter::new(&self);
        let mut at = 0;
        while at < self.insts.len() {
            if let Some(&rows) = found.get(&at) {
                loop_over_rows(&mut to, at, rows);
                at = rows.end + 1;
            } else {
                to.copy(at);
                at += 1;
            }
        }
        to.new.verified()
    }

    /// How many trips of the loop between two instructions are to be done at once, if it is one over rows.
    fn rows_together(&self, start: usize, end: usize, vectors: usize, vector_bytes: usize) -> Option<usize> {
        let begin = &self.insts[start];
        let trips =
            if begin.op == Op::Loop && begin.args[0].is_some() { begin.args[0] } else { return None };
        let body = &self.insts[start + 1..end];
        let (mut rows, mut registers) = (0, 0);
        let (mut loaded, mut stored) = (SmallVec::<[u16; 8]>::new(), SmallVec::<[u16; 8]>::new());
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops compute")]
        for inst in body {
            match inst.op {
                Op::Loop | Op::Carry | Op::While | Op::If | Op::Any | Op::Call(_) => return None,
                Op::Lanes => {
                    let length = self.inst(inst.args[0]).op.constant()?;
                    if !(1..=MAX_LENGTH).contains(&length) {
                        return None;
                    }
                    rows += 1;
                }
                Op::Accumulator(_, lanes) if inst.ty.elem.bytes() >= 4 => {
                    registers += (usize::from(lanes) * inst.ty.elem.bytes()).div_ceil(vector_bytes);
                }
                Op::Accumulator(..) => return None,
                Op::Load(access) | Op::Gather(access) => loaded.push(self.access(access).buffer),
                Op::Store(access) => stored.push(self.access(access).buffer),
                _ => {}
            }
        }
        if rows != 1 || registers == 0 || stored.iter().any(|buffer| loaded.contains(buffer)) {
            return None;
        }
        let trips = self.inst(trips).op.constant().unwrap_or(u64::MAX);
        ROWS.into_iter().find(|&count| {
            count as u64 <= trips && count * registers <= vectors && count * body.len() <= MAX_INSTS
        })
    }
}

/// Copies a loop over rows, with several at once and then those that are left.
fn loop_over_rows(to: &mut Rewriter<'_>, start: usize, rows: Rows) {
    let count = rows.count as i64;
    let trips = to.value(to.old.insts[start].args[0]);
    let known = to.new.inst(trips).op.constant().map(|trips| trips as i64);
    let by = to.index(count);
    let index = |to: &mut Rewriter<'_>, op: Op, a: Val, b: Val| {
        to.push(op, Ty::scalar(Elem::Index), [a, b, Val::NONE])
    };
    let blocks = match known {
        Some(trips) => to.index(trips / count),
        None => {
            let long = Ty::scalar(Elem::I64);
            let of = to.push(Op::Convert(Conv::OfIndex), long, [trips, Val::NONE, Val::NONE]);
            let shift = Op::ShrBy(count.ilog2() as u8);
            let blocks = to.push(shift, long, [of, Val::NONE, Val::NONE]);
            index(to, Op::Convert(Conv::ToIndex), blocks, Val::NONE)
        }
    };
    let block = index(to, Op::Loop, blocks, Val::NONE);
    let first = index(to, Op::Mul, block, by);
    Body::copy(to, start, rows, first);
    if known.is_some_and(|trips| trips % count == 0) {
        return;
    }
    let done = index(to, Op::Mul, blocks, by);
    let left = index(to, Op::Sub, trips, done);
    let counter = index(to, Op::Loop, left, Val::NONE);
    let row = index(to, Op::Add, done, counter);
    Body::copy(to, start, Rows { count: 1, ..rows }, row);
}

/// The body of a loop over rows as it is copied.
struct Body<'t, 'f> {
    to: &'t mut Rewriter<'f>,
    /// The position of the loop, which is the row's number.
    start: usize,
    /// What the loop and the instructions behind it are.
    values: Vec<RowValue>,
}

impl Body<'_, '_> {
    /// Copies the body and the end of a loop that has begun, from a row on.
    fn copy(to: &mut Rewriter<'_>, start: usize, Rows { end, count }: Rows, first: Val) {
        let mut values: Vec<RowValue> = (start..end).map(|_| RowValue::Same(Val::NONE)).collect();
        values[0] = RowValue::Affine(first, 1);
        let mut body = Body { to, start, values };
        let mut from = start + 1;
        // Row by row between the beginning and the end of the lanes.
        while from < end {
            let is_end = |inst: &Inst| inst.op == Op::Lanes || inst.op == Op::EndLanes;
            let length = body.to.old.insts[from..end].iter().position(is_end);
            let until = length.map_or(end, |length| from + length);
            let is_stored = |at: usize| {
                let Op::Store(_) = body.to.old.insts[at].op else { return false };
                until == end
            };
            // What is stored behind the lanes is stored together.
            let (stores, others): (Vec<usize>, Vec<usize>) = (from..until).partition(|&at| is_stored(at));
            for row in 0..count {
                others.iter().for_each(|&at| body.instruction(at, row));
            }
            for at in stores {
                (0..count).for_each(|row| body.instruction(at, row));
            }
            if until < end {
                body.instruction(until, 0);
            }
            from = until + 1;
        }
        body.to.copy(end);
    }

    /// Copies an instruction for a row.
    fn instruction(&mut self, at: usize, row: usize) {
        let inst = self.to.old.insts[at];
        if row == 0 {
            self.values[at - self.start] = self.first(at);
            return;
        }
        if let RowValue::Each(_) = self.values[at - self.start] {
            let args = inst.args.map(|arg| self.value(arg, row));
            let op = self.op(inst.op, row);
            let value = self.to.push(op, inst.ty, args);
            let RowValue::Each(values) = &mut self.values[at - self.start] else { unreachable!("see above") };
            values.push(value);
        }
    }

    /// Copies an instruction for the first row.
    fn first(&mut self, at: usize) -> RowValue {
        let inst = self.to.old.insts[at];
        let steps = inst.args.map(|arg| self.step(arg));
        let args = inst.args.map(|arg| self.value(arg, 0));
        let op = self.op(inst.op, 0);
        let value = self.to.push(op, inst.ty, args);
        let factor = |arg: Val| self.to.old.inst(arg).op.constant().map(|factor| factor as i64);
        let step = match (inst.op, steps) {
            (Op::Accumulator(..) | Op::Reduce | Op::Store(_), _) => None,
            (Op::Load(id) | Op::Gather(id), steps) => {
                let access = self.to.old.access(id);
                let is_same = access.terms.iter().all(|&(term, _)| self.step(term) == Some(0));
                (is_same && steps[0] == Some(0)).then_some(0)
            }
            (Op::Add, [Some(a), Some(b), _]) if inst.ty.elem == Elem::Index => Some(a + b),
            (Op::Sub, [Some(a), Some(b), _]) if inst.ty.elem == Elem::Index => Some(a - b),
            (Op::Mul, [Some(a), Some(0), _]) if inst.ty.elem == Elem::Index => {
                if a == 0 {
                    Some(0)
                } else {
                    factor(inst.args[1]).map(|factor| a * factor)
                }
            }
            (_, steps) => (steps == [Some(0); 3]).then_some(0),
        };
        match step {
            Some(0) => RowValue::Same(value),
            Some(step) => RowValue::Affine(value, step),
            None => RowValue::Each(SmallVec::from_slice(&[value])),
        }
    }

    /// What a value is for the rows, if it is one of the loop.
    fn known(&self, value: Val) -> Option<&RowValue> {
        value.is_some().then(|| value.index().checked_sub(self.start)).flatten().map(|at| &self.values[at])
    }

    /// By how much a value of the old function grows from row to row, if that is always the same.
    fn step(&self, value: Val) -> Option<i64> {
        match self.known(value) {
            None | Some(RowValue::Same(_)) => Some(0),
            Some(RowValue::Affine(_, step)) => Some(*step),
            Some(RowValue::Each(_)) => None,
        }
    }

    /// A value of the old function in a row.
    fn value(&mut self, value: Val, row: usize) -> Val {
        match self.known(value) {
            None => self.to.value(value),
            Some(RowValue::Same(value)) => *value,
            Some(RowValue::Each(values)) => values[row],
            Some(&RowValue::Affine(first, step)) => {
                if row == 0 {
                    return first;
                }
                let more = self.to.index(step * row as i64);
                self.to.push(Op::Add, Ty::scalar(Elem::Index), [first, more, Val::NONE])
            }
        }
    }

    /// An op with the access of a row.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops have no access")]
    fn op(&mut self, op: Op, row: usize) -> Op {
        match op {
            Op::Load(id) => Op::Load(self.access(id, row)),
            Op::Store(id) => Op::Store(self.access(id, row)),
            Op::Gather(id) => Op::Gather(self.access(id, row)),
            _ => op,
        }
    }

    fn access(&mut self, id: AccessId, row: usize) -> AccessId {
        let old = self.to.old.access(id);
        let mut access = Access { terms: SmallVec::new(), ..old.clone() };
        for &(term, by) in &old.terms {
            // What an index grows by from row to row is an offset.
            let first = match self.step(term) {
                Some(step) => {
                    access.offset += step * row as i64 * by;
                    self.value(term, 0)
                }
                None => self.value(term, row),
            };
            access.terms.push((first, by));
        }
        self.to.push_access(access)
    }
}
