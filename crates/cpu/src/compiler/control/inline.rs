//! Copies the function of a nest into the function of a loop.
//!
//! What the nest reads and writes is elsewhere there: arrays at places of the loop, scalars in registers. Loops of one
//! trip and rows of one element are no loops any more, and a nest of few elements has instructions for each.

use smallvec::SmallVec;

use super::places::{PerElement, Place, with_terms};
use crate::compiler::ir::{Access, AccessId, Builder, Conv, Elem, Function, Inst, Op, Reduce, Val};

/// What a pointer of the nest is.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    Memory(Place),
    /// Scalars in registers, which are only read.
    Scalars(PerElement<Val>),
    /// Scalars that are stored once.
    Results,
}

/// A function that is copied.
pub(super) struct Original<'f> {
    pub(super) function: &'f Function,
    /// The number of steps that it is told, for which it is run at once.
    steps: i64,
    /// Whether each of its elements has instructions of its own.
    is_unrolled: bool,
    /// For each instruction that begins or divides a block the position of what ends it.
    ends: Vec<usize>,
}

impl<'f> Original<'f> {
    /// A function that is run for so many steps, with so many elements of its domain that each has its own
    /// instructions if `is_small`.
    pub(super) fn new(function: &'f Function, steps: i64, is_small: bool) -> Original<'f> {
        let mut ends = vec![usize::MAX; function.insts.len()];
        let mut open: SmallVec<[usize; 6]> = SmallVec::new();
        for (at, inst) in function.insts.iter().enumerate() {
            if let Op::Else | Op::EndLoop(_) | Op::EndIf(_) | Op::EndLanes = inst.op {
                ends[open.pop().expect("a block is open")] = at;
            }
            if let Op::Loop | Op::If | Op::Else | Op::Lanes = inst.op {
                open.push(at);
            }
        }
        Original { function, steps, is_unrolled: is_small, ends }
    }

    /// The trips of the loop, or the elements of the row, that begins at a position, if it is no loop in the copy.
    /// Rows whose elements are added in loops keep their accumulators.
    fn unrolled(&self, at: usize) -> Option<i64> {
        let inst = &self.function.insts[at];
        let extent = inst.args[0];
        if !extent.is_some() {
            return None;
        }
        let extent = self.function.inst(extent).op;
        let count = if let Op::Param(1) = extent { self.steps } else { extent.constant()? as i64 };
        if count != 1 && !self.is_unrolled {
            return None;
        }
        let is_left = inst.op == Op::Loop && self.has_in_blocks(at, Op::While, |blocks| blocks == 0);
        let adds = inst.op == Op::Lanes && self.has_in_blocks(at, Op::Reduce, |blocks| blocks > 0);
        (!is_left && !adds).then_some(count)
    }

    /// Whether the block that begins at a position has an instruction in as many loops and conditions as is asked for.
    fn has_in_blocks(&self, at: usize, op: Op, is_in: impl Fn(usize) -> bool) -> bool {
        let mut blocks = 0;
        self.function.insts[at + 1..self.ends[at]].iter().any(|inst| {
            if let Op::Loop | Op::If = inst.op {
                blocks += 1;
            } else if let Op::EndLoop(_) | Op::EndIf(_) = inst.op {
                blocks -= 1;
            }
            inst.op == op && is_in(blocks)
        })
    }

    /// Whether all that is loaded of a pointer is words of it, at places that are known, and nothing is stored.
    pub(super) fn reads_words(&self, buffer: u16, words: &[(i64, Elem)]) -> bool {
        self.uses_words(buffer, |inst| {
            let Op::Load(_) = inst.op else { return false };
            words.iter().any(|(_, elem)| elem.bytes() == inst.ty.elem.bytes())
        })
    }

    /// Whether something is stored at a pointer, at places that are known, and is there when the function ends, and
    /// nothing is loaded.
    pub(super) fn stores_words(&self, buffer: u16) -> bool {
        let stores_all = self.uses_words(buffer, |inst| {
            let Op::Store(_) = inst.op else { return false };
            true
        });
        stores_all && self.stores(buffer)
    }

    /// Whether something is stored at a pointer.
    pub(super) fn stores(&self, buffer: u16) -> bool {
        self.function.insts.iter().any(|inst| {
            let Op::Store(access) = inst.op else { return false };
            self.function.access(access).buffer == buffer
        })
    }

    /// Whether every use of a pointer is such an instruction, at places that are known. What is stored must not be in a
    /// loop.
    fn uses_words(&self, buffer: u16, fits: impl Fn(&Inst) -> bool) -> bool {
        let mut kept: SmallVec<[bool; 8]> = SmallVec::new();
        for (at, inst) in self.function.insts.iter().enumerate() {
            if let Op::Loop | Op::Lanes = inst.op {
                kept.push(self.unrolled(at).is_none());
            } else if inst.op == Op::If {
                kept.push(true);
            } else if let Op::EndLoop(_) | Op::EndLanes | Op::EndIf(_) = inst.op {
                kept.pop();
            }
            let (Op::Load(access) | Op::Store(access) | Op::Gather(access)) = inst.op else { continue };
            let access = self.function.access(access);
            if access.buffer != buffer {
                continue;
            }
            let is_kept = kept.contains(&true);
            let is_known = access.terms.iter().all(|&(term, _)| self.is_known(term));
            // A row that is kept reads the same in all lanes.
            if !fits(inst) || !is_known || is_kept && (!reads(inst.op) || access.lane != 0) {
                return false;
            }
        }
        true
    }

    /// Whether an index is a constant in the copy.
    fn is_known(&self, index: Val) -> bool {
        let inst = self.function.inst(index);
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are not folded")]
        match inst.op {
            Op::Const(_) | Op::Param(_) => true,
            Op::Loop => self.unrolled(index.index()).is_some(),
            Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max => {
                inst.operands().all(|operand| self.is_known(operand))
            }
            _ => false,
        }
    }
}

/// What was stored into results that are scalars: the pointer, the bytes before it, and the value.
pub(super) type Stored = Vec<(u16, i64, Val)>;

/// Copies a function behind what was built.
pub(super) fn inline(b: &mut Builder, original: &Original<'_>, bindings: &[Binding]) -> Stored {
    let values = vec![Val::NONE; original.function.insts.len()];
    let (function, stored) = (original.function, Stored::new());
    let mut inliner =
        Inliner { b, original, function, bindings, values, element: None, lanes: Vec::new(), stored };
    inliner.block(0, function.insts.len());
    inliner.stored
}

struct Inliner<'a> {
    b: &'a mut Builder,
    original: &'a Original<'a>,
    function: &'a Function,
    bindings: &'a [Binding],
    /// The values of the copy.
    values: Vec<Val>,
    /// The element of the row around that is done, if its elements are done one by one.
    element: Option<i64>,
    /// What the elements of that row have added to accumulators.
    lanes: Vec<(Val, Vec<Option<Val>>)>,
    stored: Stored,
}

impl Inliner<'_> {
    fn value(&self, value: Val) -> Val {
        self.values[value.index()]
    }

    fn block(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            at = self.instruction(at);
        }
    }

    /// Copies the instruction at a position, and the block that it begins; gives the next position.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops only compute")]
    fn instruction(&mut self, at: usize) -> usize {
        let inst = self.function.insts[at];
        let value = match inst.op {
            Op::Param(0) => self.b.index(0),
            Op::Param(_) => self.b.index(self.original.steps),
            Op::Loop => return self.loop_(at, &inst),
            Op::If => return self.if_(at, &inst),
            Op::Lanes => return self.row(at, &inst),
            Op::While => {
                let predicate = self.value(inst.args[0]);
                self.b.while_(predicate);
                return at + 1;
            }
            Op::Accumulator(reduce, lanes) => {
                let row = self.function.insts[at..].iter().position(|inst| inst.op == Op::Lanes);
                if row.is_some_and(|row| self.original.unrolled(at + row).is_some()) {
                    self.b.bits(inst.ty.elem, reduce.neutral(inst.ty.elem))
                } else {
                    self.b.accumulator(reduce, inst.ty.elem, lanes)
                }
            }
            Op::Reduce => {
                self.reduce(&inst);
                return at + 1;
            }
            Op::Lane => match self.element {
                Some(element) => self.b.bits(inst.ty.elem, element as u64),
                None => self.b.lane(inst.ty.elem),
            },
            Op::Any if self.element.is_some() => self.value(inst.args[0]),
            Op::Load(access) => self.load(inst.ty.elem, access, None),
            Op::Gather(access) => {
                let position = self.value(inst.args[0]);
                self.load(inst.ty.elem, access, Some(position))
            }
            Op::Store(access) => {
                self.store(inst.args[0], access);
                return at + 1;
            }
            Op::Call(_) => unreachable!("nests call no kernels"),
            _ => {
                let args = inst.args.map(|arg| if arg.is_some() { self.value(arg) } else { arg });
                self.b.computed(inst.op, inst.ty.elem, args)
            }
        };
        self.values[at] = value;
        at + 1
    }

    // Control flow.

    fn loop_(&mut self, at: usize, inst: &Inst) -> usize {
        let end = self.original.ends[at];
        let Op::EndLoop(list) = self.function.insts[end].op else { unreachable!("a loop ends") };
        let next = self.function.list(list);
        let carries = self.function.insts[at + 1..].iter().take_while(|inst| inst.op == Op::Carry).count();
        let carries = at + 1..at + 1 + carries;
        let inits: Vec<Val> =
            carries.clone().map(|carry| self.value(self.function.insts[carry].args[0])).collect();
        let trips = inst.args[0].is_some().then(|| self.value(inst.args[0]));
        // A loop may turn out to have one trip or none.
        let is_short =
            |trips: &u64| *trips <= 1 && !self.original.has_in_blocks(at, Op::While, |blocks| blocks == 0);
        let most_one = trips.and_then(|trips| self.b.constant_bits(trips)).filter(is_short);
        if let Some(trips) = self.original.unrolled(at).or(most_one.map(|trips| trips as i64)) {
            for (carry, init) in carries.clone().zip(inits) {
                self.values[carry] = init;
            }
            for trip in 0..trips {
                self.values[at] = self.b.index(trip);
                self.block(carries.end, end);
                let then: Vec<Val> = next.iter().map(|&(_, then)| self.value(then)).collect();
                for (&(carry, _), then) in next.iter().zip(then) {
                    self.values[carry.index()] = then;
                }
            }
            return end + 1;
        }
        let is_vector = |carry: usize| self.function.insts[carry].ty.is_vector && self.element.is_none();
        let carried: Vec<(Val, bool)> =
            carries.clone().zip(inits).map(|(carry, init)| (init, is_vector(carry))).collect();
        let (counter, carried) = self.b.begin_loop(trips, &carried);
        self.values[at] = counter;
        for (carry, value) in carries.clone().zip(carried) {
            self.values[carry] = value;
        }
        self.block(carries.end, end);
        let pairs: Vec<(Val, Val)> =
            next.iter().map(|&(carry, then)| (self.value(carry), self.value(then))).collect();
        self.b.end_loop(&pairs);
        end + 1
    }

    fn if_(&mut self, at: usize, inst: &Inst) -> usize {
        let predicate = self.value(inst.args[0]);
        self.b.begin_if(predicate);
        let mut end = self.original.ends[at];
        self.block(at + 1, end);
        if self.function.insts[end].op == Op::Else {
            self.b.begin_else();
            let from = end + 1;
            end = self.original.ends[end];
            self.block(from, end);
        }
        let Op::EndIf(list) = self.function.insts[end].op else { unreachable!("a condition ends") };
        let pairs = self.function.list(list).iter();
        let pairs: Vec<(Val, Val)> =
            pairs.map(|&(then, other)| (self.value(then), self.value(other))).collect();
        let joins = self.b.end_if(&pairs);
        let count = joins.len();
        for (at, join) in joins.into_iter().enumerate() {
            self.values[end + 1 + at] = join;
        }
        end + 1 + count
    }

    fn row(&mut self, at: usize, inst: &Inst) -> usize {
        let end = self.original.ends[at];
        if let Some(count) = self.original.unrolled(at) {
            for element in 0..count {
                self.element = Some(element);
                self.block(at + 1, end);
            }
            self.element = None;
            for (accumulator, lanes) in std::mem::take(&mut self.lanes) {
                self.join(accumulator, lanes);
            }
        } else {
            let extent = self.value(inst.args[0]);
            self.b.begin_lanes(extent);
            self.block(at + 1, end);
            self.b.end_lanes();
        }
        end + 1
    }

    // Reductions.

    fn reduce(&mut self, inst: &Inst) {
        let (accumulator, added) = (inst.args[0], self.value(inst.args[1]));
        let Some(element) = self.element else {
            let accumulator = self.value(accumulator);
            self.b.reduce(accumulator, added);
            return;
        };
        let (reduce, count) = self.accumulator(accumulator);
        let known = self.lanes.iter().position(|(known, _)| *known == accumulator);
        let at = known.unwrap_or_else(|| {
            self.lanes.push((accumulator, vec![None; count]));
            self.lanes.len() - 1
        });
        // What a lane begins with changes nothing.
        let lane = element as usize % count;
        let before = self.lanes[at].1[lane];
        let after = before.map_or(added, |before| self.b.op(reduce.op(), [before, added]));
        self.lanes[at].1[lane] = Some(after);
    }

    fn accumulator(&self, accumulator: Val) -> (Reduce, usize) {
        let Op::Accumulator(reduce, lanes) = self.function.inst(accumulator).op else {
            unreachable!("rows are reduced to accumulators")
        };
        (reduce, usize::from(lanes))
    }

    /// Joins the halves of lanes until one is left.
    fn join(&mut self, accumulator: Val, mut lanes: Vec<Option<Val>>) {
        let (reduce, _) = self.accumulator(accumulator);
        while lanes.len() > 1 {
            let upper = lanes.split_off(lanes.len() / 2);
            for (lower, upper) in lanes.iter_mut().zip(upper) {
                *lower = match (*lower, upper) {
                    (Some(lower), Some(upper)) => Some(self.b.op(reduce.op(), [lower, upper])),
                    (one, other) => one.or(other),
                };
            }
        }
        if let Some(joined) = lanes[0] {
            self.values[accumulator.index()] = joined;
        }
    }

    // Memory.

    /// The access of the copy, as if the place were a buffer of its own.
    fn access(&self, access: &Access) -> Access {
        let own = Access { terms: SmallVec::new(), ..access.clone() };
        let terms = access.terms.iter().map(|&(term, by)| (self.value(term), by));
        let mut copied = with_terms(self.b, own, terms);
        if let Some(element) = self.element {
            copied.offset += element * copied.lane;
            copied.lane = 0;
        }
        copied
    }

    fn load(&mut self, elem: Elem, access: AccessId, position: Option<Val>) -> Val {
        let access = self.function.access(access);
        let copied = self.access(access);
        match &self.bindings[usize::from(access.buffer)] {
            Binding::Memory(place) => {
                let access = place.access(&copied, copied.terms.iter().copied());
                match position {
                    None => self.b.load(elem, access),
                    Some(position) => self.b.gather(elem, position, access),
                }
            }
            Binding::Scalars(words) => {
                let word = words.iter().find(|(offset, _)| *offset == copied.offset);
                let (_, value) = *word.expect("scalars are read by their parts");
                self.b.convert(Conv::Bitcast, elem, value)
            }
            Binding::Results => unreachable!("results are not read"),
        }
    }

    fn store(&mut self, value: Val, access: AccessId) {
        let access = self.function.access(access);
        let (value, copied) = (self.value(value), self.access(access));
        match &self.bindings[usize::from(access.buffer)] {
            Binding::Memory(place) => {
                let access = place.access(&copied, copied.terms.iter().copied());
                self.b.store(value, access);
            }
            Binding::Scalars(_) => unreachable!("operands are not stored"),
            Binding::Results => self.stored.push((access.buffer, copied.offset, value)),
        }
    }
}

/// Whether an access loads.
fn reads(op: Op) -> bool {
    let (Op::Load(_) | Op::Gather(_)) = op else { return false };
    true
}
