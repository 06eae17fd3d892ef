//! Copies the function of a nest into the function of a loop.
//!
//! What the nest reads and writes is elsewhere there: arrays at places of the loop, scalars in registers. Loops of one
//! trip and rows of one element are no loops any more.

use smallvec::SmallVec;

use super::places::{Place, Words};
use crate::compiler::ir::{Access, AccessId, Builder, Conv, Elem, Function, Inst, Op, Val};

/// What a pointer of the nest is.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    Memory(Place),
    /// A scalar in registers, which is only read.
    Scalar(Words),
    /// A scalar that is stored once, outside of loops.
    Result,
}

/// Whether a scalar's parts are what a function reads of a pointer: whole, and not converted by reading.
pub(super) fn reads_words(function: &Function, buffer: u16, words: &[(i64, Elem)]) -> bool {
    let is_known = |at: AccessId, elem: Elem| {
        let access = function.access(at);
        let fits = |(offset, own): &(i64, Elem)| *offset == access.offset && own.bytes() == elem.bytes();
        access.buffer != buffer || words.iter().any(fits)
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops read no memory")]
    function.insts.iter().all(|inst| match inst.op {
        Op::Load(access) | Op::Gather(access) => is_known(access, inst.ty.elem),
        Op::Store(access) => function.access(access).buffer != buffer,
        Op::Call(_) => false,
        _ => true,
    })
}

/// Whether everything that is stored into a scalar is there when the function ends: it is stored outside of loops.
pub(super) fn stores_at_end(function: &Function, buffer: u16, steps: i64) -> bool {
    let mut open: SmallVec<[bool; 8]> = SmallVec::new();
    for (at, inst) in function.insts.iter().enumerate() {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are no blocks and use no memory")]
        match inst.op {
            Op::Loop | Op::Lanes => open.push(!is_once(function, at, steps)),
            Op::If => open.push(true),
            Op::EndLoop(_) | Op::EndLanes | Op::EndIf(_) => drop(open.pop()),
            Op::Store(access) if function.access(access).buffer == buffer && open.contains(&true) => {
                return false;
            }
            Op::Load(access) | Op::Gather(access) if function.access(access).buffer == buffer => return false,
            _ => {}
        }
    }
    true
}

/// Whether the loop or the row that begins at a position has one trip or element, and is no loop in the copy. Rows
/// whose elements are added in loops keep their accumulators.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are no extents and begin no blocks")]
fn is_once(function: &Function, at: usize, steps: i64) -> bool {
    let inst = &function.insts[at];
    let extent = inst.args[0];
    let is_one = extent.is_some()
        && match function.inst(extent).op {
            Op::Const(bits) => bits == 1,
            Op::Param(1) => steps == 1,
            _ => false,
        };
    if inst.op == Op::Loop || !is_one {
        return is_one;
    }
    let mut blocks = 0;
    for inst in &function.insts[at..] {
        match inst.op {
            Op::Loop | Op::If => blocks += 1,
            Op::EndLoop(_) | Op::EndIf(_) => blocks -= 1,
            Op::Reduce if blocks > 0 => return false,
            Op::EndLanes => break,
            _ => {}
        }
    }
    true
}

/// Copies a function behind what was built, run for all of its `steps`. Gives what it stored into results that are
/// scalars: the pointer, the bytes before it, and the value.
pub(super) fn inline(
    b: &mut Builder,
    function: &Function,
    bindings: &[Binding],
    steps: i64,
) -> Vec<(u16, i64, Val)> {
    let values = vec![Val::NONE; function.insts.len()];
    let (open, stored) = (Vec::new(), Vec::new());
    let mut inliner = Inliner { b, function, bindings, steps, values, open, stored };
    let mut at = 0;
    while at < function.insts.len() {
        at = inliner.instruction(at);
    }
    inliner.stored
}

struct Inliner<'a> {
    b: &'a mut Builder,
    function: &'a Function,
    bindings: &'a [Binding],
    steps: i64,
    /// The values of the copy.
    values: Vec<Val>,
    open: Vec<Block>,
    stored: Vec<(u16, i64, Val)>,
}

/// A block of the original.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// It is one of the copy too.
    Kept,
    /// A loop of one trip.
    OnceLoop,
    /// A row of one element.
    OnceLanes,
}

impl Inliner<'_> {
    fn value(&self, value: Val) -> Val {
        self.values[value.index()]
    }

    /// Whether the row around, if there is one, has one element: what is a vector there is a scalar here.
    fn is_in_one_element(&self) -> bool {
        self.open.contains(&Block::OnceLanes)
    }

    /// Copies the instruction at a position; gives the next position.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops only compute")]
    fn instruction(&mut self, at: usize) -> usize {
        let inst = self.function.insts[at];
        let mut next = at + 1;
        let value = match inst.op {
            Op::Param(0) => self.b.index(0),
            Op::Param(_) => self.b.index(self.steps),
            Op::Loop => {
                next = self.begin_loop(at, &inst);
                return next;
            }
            Op::While => {
                let predicate = self.value(inst.args[0]);
                self.b.while_(predicate);
                return next;
            }
            Op::EndLoop(list) => {
                let pairs = self.function.list(list).to_vec();
                if self.open.pop() == Some(Block::OnceLoop) {
                    for (carry, then) in pairs {
                        self.values[carry.index()] = self.value(then);
                    }
                } else {
                    let pairs: Vec<(Val, Val)> =
                        pairs.into_iter().map(|(carry, then)| (self.value(carry), self.value(then))).collect();
                    self.b.end_loop(&pairs);
                }
                return next;
            }
            Op::If => {
                let predicate = self.value(inst.args[0]);
                self.b.begin_if(predicate);
                self.open.push(Block::Kept);
                return next;
            }
            Op::Else => {
                self.b.begin_else();
                return next;
            }
            Op::EndIf(list) => {
                self.open.pop();
                let pairs = self.function.list(list).iter();
                let pairs: Vec<(Val, Val)> =
                    pairs.map(|&(then, other)| (self.value(then), self.value(other))).collect();
                for join in self.b.end_if(&pairs) {
                    self.values[next] = join;
                    next += 1;
                }
                return next;
            }
            Op::Lanes => {
                if is_once(self.function, at, self.steps) {
                    self.open.push(Block::OnceLanes);
                } else {
                    let extent = self.value(inst.args[0]);
                    self.b.begin_lanes(extent);
                    self.open.push(Block::Kept);
                }
                return next;
            }
            Op::EndLanes => {
                if self.open.pop() != Some(Block::OnceLanes) {
                    self.b.end_lanes();
                }
                return next;
            }
            Op::Accumulator(reduce, lanes) => {
                // Of one element it is a number to which the element is added.
                let is_once = self.next_row_is_once(at);
                let neutral = self.b.bits(inst.ty.elem, reduce.neutral(inst.ty.elem));
                if is_once { neutral } else { self.b.accumulator(reduce, inst.ty.elem, lanes) }
            }
            Op::Reduce if self.is_in_one_element() => {
                let accumulator = inst.args[0];
                let Op::Accumulator(reduce, _) = self.function.inst(accumulator).op else {
                    unreachable!("rows are reduced to accumulators")
                };
                let operands = [self.value(accumulator), self.value(inst.args[1])];
                self.values[accumulator.index()] = self.b.op(reduce.op(), operands);
                return next;
            }
            Op::Reduce => {
                let (accumulator, added) = (self.value(inst.args[0]), self.value(inst.args[1]));
                self.b.reduce(accumulator, added);
                return next;
            }
            Op::Lane if self.is_in_one_element() => self.b.bits(inst.ty.elem, 0),
            Op::Any if self.is_in_one_element() => self.value(inst.args[0]),
            Op::Load(access) => self.load(inst.ty.elem, access, None),
            Op::Gather(access) => {
                let position = self.value(inst.args[0]);
                self.load(inst.ty.elem, access, Some(position))
            }
            Op::Store(access) => {
                self.store(inst.args[0], access);
                return next;
            }
            Op::Call(_) => unreachable!("nests call no kernels"),
            _ => {
                let args = inst.args.map(|arg| if arg.is_some() { self.value(arg) } else { arg });
                self.b.computed(inst.op, inst.ty.elem, args)
            }
        };
        self.values[at] = value;
        next
    }

    fn begin_loop(&mut self, at: usize, inst: &Inst) -> usize {
        let carries = self.function.insts[at + 1..].iter().take_while(|inst| inst.op == Op::Carry).count();
        let carries = at + 1..at + 1 + carries;
        if is_once(self.function, at, self.steps) {
            self.open.push(Block::OnceLoop);
            self.values[at] = self.b.index(0);
            for carry in carries.clone() {
                self.values[carry] = self.value(self.function.insts[carry].args[0]);
            }
            return carries.end;
        }
        self.open.push(Block::Kept);
        let trips = inst.args[0].is_some().then(|| self.value(inst.args[0]));
        let is_one = self.is_in_one_element();
        let carried: Vec<(Val, bool)> = carries
            .clone()
            .map(|carry| {
                let carry = &self.function.insts[carry];
                (self.value(carry.args[0]), carry.ty.is_vector && !is_one)
            })
            .collect();
        let (counter, carried) = self.b.begin_loop(trips, &carried);
        self.values[at] = counter;
        for (carry, value) in carries.clone().zip(carried) {
            self.values[carry] = value;
        }
        carries.end
    }

    /// Whether the next row behind an instruction has one element.
    fn next_row_is_once(&self, at: usize) -> bool {
        let row = self.function.insts[at..].iter().position(|inst| inst.op == Op::Lanes);
        row.is_some_and(|row| is_once(self.function, at + row, self.steps))
    }

    /// The access of the copy.
    fn access(&self, access: &Access, place: &Place) -> Access {
        let terms = access.terms.iter().map(|&(term, by)| (self.value(term), by));
        let is_zero = |value: Val| self.b.constant_bits(value) == Some(0);
        let mut copied = place.access(access, terms.filter(|&(term, _)| !is_zero(term)));
        if self.is_in_one_element() {
            copied.lane = 0;
        }
        copied
    }

    fn load(&mut self, elem: Elem, access: AccessId, position: Option<Val>) -> Val {
        let access = self.function.access(access);
        match &self.bindings[usize::from(access.buffer)] {
            Binding::Memory(place) => {
                let access = self.access(access, place);
                match position {
                    None => self.b.load(elem, access),
                    Some(position) => self.b.gather(elem, position, access),
                }
            }
            Binding::Scalar(words) => {
                let word = words.iter().find(|(offset, _)| *offset == access.offset);
                let (_, value) = *word.expect("a scalar is read by its parts");
                self.b.convert(Conv::Bitcast, elem, value)
            }
            Binding::Result => unreachable!("results are not read"),
        }
    }

    fn store(&mut self, value: Val, access: AccessId) {
        let access = self.function.access(access);
        let value = self.value(value);
        match &self.bindings[usize::from(access.buffer)] {
            Binding::Memory(place) => {
                let access = self.access(access, place);
                self.b.store(value, access);
            }
            Binding::Scalar(_) => unreachable!("operands are not stored"),
            Binding::Result => self.stored.push((access.buffer, access.offset, value)),
        }
    }
}
