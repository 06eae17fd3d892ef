//! Prepares a function: gives every value its slot in the frame, and every instruction its step.
//!
//! Scalars have slots of their own. Vectors share registers: a register is free again behind the last
//! instruction that reads its value, or behind the loop around that, if the value is older than the loop.

mod blocks;
mod live_ranges;

use super::super::ir::{Access, AccessId, CallArg, Elem, Function, Inst, Op, Ty, Val};
use super::Interpreter;
use super::lanes::{BLOCK, STEP};
use super::step::{KernelCall, NONE, ResolvedAccess, SPLAT, Slot, Step, Term, VIEW};
use super::table::{self, OpFunctions};
use blocks::{Kind, Open};
use live_ranges::{END, LiveRanges};

impl Interpreter {
    /// Prepares a function, which is one that `verify` accepts.
    pub(crate) fn new(function: &Function) -> Interpreter {
        let mut prepare = Prepare::new(function);
        for value in function.values() {
            prepare.instruction(value);
            prepare.release(value);
        }
        prepare.finish()
    }
}

/// The bits of an element in a frame: those of a predicate are a byte.
fn width(elem: Elem) -> u32 {
    elem.bytes().max(1) as u32
}

/// The distance of a shift by a constant.
pub(super) fn distance(op: Op) -> Option<u64> {
    if let Op::ShlBy(by) | Op::ShrBy(by) | Op::SarBy(by) | Op::RotBy(by) = op {
        Some(by.into())
    } else {
        None
    }
}

struct Prepare<'a> {
    function: &'a Function,
    constants: Vec<Step>,
    steps: Vec<Step>,
    accesses: Vec<ResolvedAccess>,
    terms: Vec<Term>,
    calls: Vec<KernelCall>,
    /// For each value its slot: of a vector the register.
    slots: Vec<Slot>,
    /// For each scalar where it is repeated, if it is, and for each vector that is a view its operand.
    repeated: Vec<Slot>,
    /// For the beginning of each block where it ends, and for an if where its other side begins.
    ends: Vec<u32>,
    /// For each vector where it is read last.
    last: Vec<u32>,
    /// For each instruction the next one behind it that may write to memory.
    writes: Vec<u32>,
    /// For each instruction the vectors that are not read behind it: the first of them, from where `next`
    /// leads on.
    dead: Vec<u32>,
    next: Vec<u32>,
    /// The value that has been stored when it was computed.
    stored: Val,
    /// The end of the frame.
    frame: u32,
    /// Free registers, by the logarithm of their bytes.
    free: [Vec<Slot>; 16],
    open: Vec<Open>,
    /// The accumulators of the next row, and how often each is added to for an element: not, once, or more.
    accumulators: Vec<(Val, u32)>,
    /// The lanes of accumulators.
    lanes: Vec<(Val, Slot)>,
}

impl<'a> Prepare<'a> {
    fn new(function: &'a Function) -> Prepare<'a> {
        let count = function.insts.len();
        let LiveRanges { ends, last, writes, dead, next } = LiveRanges::new(function);
        let mut prepare = Prepare {
            function,
            constants: Vec::new(),
            steps: Vec::with_capacity(count + 1),
            accesses: Vec::with_capacity(function.accesses.len()),
            terms: Vec::new(),
            calls: Vec::new(),
            slots: (0..count as u32).map(|at| 8 * at).collect(),
            repeated: vec![NONE; count],
            ends,
            last,
            writes,
            dead,
            next,
            stored: Val::NONE,
            frame: (8 * count as u32).next_multiple_of(64),
            free: [const { Vec::new() }; 16],
            open: vec![Open { kind: Kind::Function, splats: Vec::new() }],
            accumulators: Vec::new(),
            lanes: Vec::new(),
        };
        for access in &function.accesses {
            prepare.resolve(access);
        }
        prepare
    }

    fn finish(mut self) -> Interpreter {
        self.constants.push(Step::Return);
        self.steps.push(Step::Return);
        Interpreter {
            constants: self.constants,
            steps: self.steps,
            accesses: self.accesses,
            terms: self.terms,
            calls: self.calls,
            lines: self.frame as usize / 64,
            words: usize::from(self.function.buffers) + usize::from(self.function.params),
            buffers: self.function.buffers.into(),
        }
    }

    fn resolve(&mut self, access: &Access) {
        let begin = self.terms.len() as u32;
        let term = |&(index, stride): &(Val, i64)| Term { index: self.slots[index.index()], stride };
        self.terms.extend(access.terms.iter().map(term));
        let terms = (begin, self.terms.len() as u32);
        let &Access { buffer, offset, lane, terms: _, is_streaming: _ } = access;
        self.accesses.push(ResolvedAccess { buffer: buffer.into(), terms, offset, lane });
    }

    // Registers.

    /// A register of so many bytes.
    fn register(&mut self, bytes: u32) -> Slot {
        let bytes = bytes.next_power_of_two().max(64);
        if let Some(register) = self.free[bytes.ilog2() as usize].pop() {
            return register;
        }
        let register = self.frame;
        self.frame = register.checked_add(bytes).expect("a frame of less than 4 GiB");
        register
    }

    fn free_register(&mut self, register: Slot, bytes: u32) {
        self.free[bytes.next_power_of_two().max(64).ilog2() as usize].push(register);
    }

    fn vector(&mut self, elem: Elem) -> Slot {
        self.register(BLOCK as u32 * width(elem))
    }

    /// Gives a value its register, if it is a vector.
    fn define(&mut self, value: Val) -> Slot {
        let ty = self.function.ty(value);
        if ty.is_vector {
            self.slots[value.index()] = self.vector(ty.elem);
        }
        self.slots[value.index()]
    }

    /// Frees the registers of values that are not read any more.
    fn release(&mut self, at: Val) {
        let mut value = self.dead[at.index()];
        while value != END {
            let (slot, elem) = (self.slots[value as usize], self.function.ty(Val(value)).elem);
            self.free_register(slot, BLOCK as u32 * width(elem));
            value = self.next[value as usize];
        }
    }

    /// The slot of an operand of a scalar instruction.
    fn scalar(&self, value: Val) -> Slot {
        if value.is_some() { self.slots[value.index()] } else { 0 }
    }

    /// The slot of an operand of a vector instruction; scalars are repeated.
    fn operand(&mut self, value: Val) -> Slot {
        if !value.is_some() {
            return SPLAT;
        }
        let inst = *self.function.inst(value);
        if inst.ty.is_vector {
            let view = self.repeated[value.index()];
            return if view == NONE { self.slots[value.index()] } else { view };
        }
        if self.repeated[value.index()] == NONE {
            let is_constant = inst.op.is_given();
            let splat = self.splat(self.slots[value.index()], inst.ty.elem, is_constant);
            self.repeated[value.index()] = splat;
            if !is_constant {
                let open = self.open.last_mut().expect("the function");
                open.splats.push((value, splat, STEP as u32 * width(inst.ty.elem)));
            }
        }
        self.repeated[value.index()] | SPLAT
    }

    /// Repeats a scalar, here or once a run.
    fn splat(&mut self, from: Slot, elem: Elem, is_constant: bool) -> Slot {
        let bytes = STEP as u32 * width(elem);
        let run = table::splat(elem).expect("every type is repeated");
        if is_constant {
            // It lives as long as the run, in no register that others have.
            let to = self.frame;
            self.frame += bytes.next_multiple_of(64);
            self.constants.push(Step::Splat { run, to, from });
            return to;
        }
        let to = self.register(bytes);
        self.steps.push(Step::Splat { run, to, from });
        to
    }

    /// A constant that the function does not have.
    fn constant(&mut self, elem: Elem, bits: u64, is_vector: bool) -> Slot {
        let slot = self.frame;
        self.frame += 64;
        self.constants.push(Step::Constant { to: slot, bits });
        if is_vector { self.splat(slot, elem, true) | SPLAT } else { slot }
    }

    // Instructions.

    fn instruction(&mut self, value: Val) {
        let inst = *self.function.inst(value);
        let [a, b, _] = inst.args;
        let elem = inst.ty.elem;
        match inst.op {
            Op::Const(bits) => {
                self.constants.push(Step::Constant { to: self.slots[value.index()], bits });
            }
            Op::Param(at) => {
                self.constants.push(Step::Param { to: self.slots[value.index()], at: at.into(), elem });
            }
            Op::Lane => {
                let run = table::positions(elem).expect("positions are integers");
                let to = self.define(value);
                self.steps.push(Step::Positions { run, to, bytes: width(elem) as u8 });
            }
            Op::Any if self.function.ty(a).is_vector => {
                let (from, to) = (self.slots[a.index()], self.slots[value.index()]);
                self.steps.push(Step::AnyLane { to, from });
            }
            Op::Any => self.copy(a, value),
            Op::Load(access) => self.load(value, access),
            Op::Store(_) if self.stored == a => {}
            Op::Store(access) => self.store(a, access),
            Op::Gather(access) => {
                let of = self.function.ty(a);
                let run = table::gather(elem, of.elem).expect("positions are integers");
                let positions = if of.is_vector { self.operand(a) } else { self.scalar(a) };
                let to = self.define(value);
                let is_block = of.is_vector;
                self.steps.push(Step::Gather { run, to, positions, access: access.0, is_block });
            }
            Op::Loop => self.begin_loop(value, a),
            Op::While => self.leave_unless(a),
            Op::EndLoop(list) => self.end_loop(list),
            Op::If => self.begin_if(value, a),
            Op::Else => self.begin_else(),
            Op::EndIf(_) => self.end_if(),
            Op::Accumulator(..) => self.accumulator(value, a),
            Op::Lanes => self.begin_lanes(value, a),
            Op::Reduce => self.reduce(a, b),
            Op::EndLanes => self.end_lanes(),
            Op::Call(call) => {
                let call = self.function.call(call);
                let args = call.args.iter().map(|CallArg::Index(index)| self.slots[index.index()]).collect();
                self.steps.push(Step::Call { call: self.calls.len() as u32 });
                self.calls.push(KernelCall { kernel: call.kernel.into(), args });
            }
            // They have been written by the beginning and the ends of their blocks.
            Op::Carry | Op::Join => {}
            Op::Apply(_)
            | Op::Not
            | Op::Sqrt
            | Op::Floor
            | Op::Ceil
            | Op::Trunc
            | Op::PopCount
            | Op::LeadingZeros
            | Op::Convert(_)
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Div
            | Op::DivS
            | Op::DivU
            | Op::RemS
            | Op::RemU
            | Op::Min
            | Op::Max
            | Op::MinU
            | Op::MaxU
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::AndNot
            | Op::Shl
            | Op::Shr
            | Op::Sar
            | Op::ShlBy(_)
            | Op::ShrBy(_)
            | Op::SarBy(_)
            | Op::RotBy(_)
            | Op::Scale
            | Op::Compare(_)
            | Op::Test
            | Op::Fma
            | Op::Fnma
            | Op::Flip
            | Op::Select => self.op(value, inst),
        }
    }

    /// An op of values.
    fn op(&mut self, value: Val, inst: Inst) {
        let last = inst.operands().last().expect("an op has operands");
        let from = self.function.ty(last).elem;
        let Some(functions) = table::functions(inst.op, from, inst.ty.elem) else {
            unreachable!("{:?} from {from} to {}", inst.op, inst.ty.elem)
        };
        let distance = distance(inst.op);
        let mut slots = if inst.ty.is_vector {
            inst.args.map(|arg| self.operand(arg))
        } else {
            inst.args.map(|arg| self.scalar(arg))
        };
        if let Some(by) = distance {
            slots[1] = self.constant(inst.ty.elem, by, inst.ty.is_vector);
        }
        let to = self.define(value);
        if inst.ty.is_vector
            && !slots.iter().any(|slot| slot & VIEW != 0)
            && let Some(access) = self.only_store(value)
        {
            self.stored = value;
            let (run, bytes) = (functions.vector, width(inst.ty.elem) as u8);
            self.steps.push(Step::VectorOpToMemory { run, bytes, to, from: slots, access: access.0 });
            return;
        }
        self.run(functions, to, slots, inst.ty);
    }

    fn run(&mut self, OpFunctions { vector, scalar }: OpFunctions, to: Slot, from: [Slot; 3], ty: Ty) {
        let bytes = width(ty.elem) as u8;
        self.steps.push(if !ty.is_vector {
            Step::ScalarOp { run: scalar, to, from }
        } else if from.iter().any(|slot| slot & VIEW != 0) {
            Step::VectorOpOfViews { run: vector, bytes, to, from }
        } else {
            Step::VectorOp { run: vector, bytes, to, from }
        });
    }

    /// Where a value is stored by the next instruction, to elements without gaps, if that is all that reads
    /// it. No view is alive then but the operands of the value's own instruction.
    fn only_store(&self, value: Val) -> Option<AccessId> {
        let next = self.function.insts.get(value.index() + 1)?;
        let Op::Store(access) = next.op else { return None };
        let is_dense = self.function.access(access).lane == next.ty.elem.bytes() as i64;
        let is_last = self.last[value.index()] == value.0 + 1;
        (next.args[0] == value && is_dense && is_last).then_some(access)
    }

    fn load(&mut self, value: Val, access: AccessId) {
        let ty = self.function.ty(value);
        let is_dense = self.function.access(access).lane == ty.elem.bytes() as i64;
        let register = self.define(value);
        let (access, is_block) = (access.0, ty.is_vector);
        if is_block && is_dense && self.writes[value.index()] > self.last[value.index()] {
            self.repeated[value.index()] = (8 * value.0) | VIEW;
            let bytes = width(ty.elem) as u8;
            self.steps.push(Step::View { to: 8 * value.0, register, access, bytes });
            return;
        }
        let run = table::load(ty.elem).expect("predicates are not in memory");
        self.steps.push(Step::Move { run, register, access, is_block });
    }

    /// Copies a value to the slot of another of the same type, repeating a scalar for a vector.
    fn copy(&mut self, from: Val, to: Val) {
        let ty = self.function.ty(to);
        let from = if ty.is_vector { self.operand(from) } else { self.scalar(from) };
        self.copy_slot(from, self.slots[to.index()], ty.elem, ty.is_vector);
    }

    fn copy_slot(&mut self, from: Slot, to: Slot, elem: Elem, is_vector: bool) {
        let functions = table::copy(elem).expect("every type is copied");
        let none = if is_vector { SPLAT } else { 0 };
        self.run(functions, to, [from, none, none], Ty { elem, is_vector });
    }

    fn store(&mut self, value: Val, access: AccessId) {
        let ty = self.function.ty(value);
        let run = table::store(ty.elem, ty.is_vector).expect("predicates are not in memory");
        let is_spread = self.is_in_lanes() && self.function.access(access).lane != 0;
        let is_block = ty.is_vector || is_spread;
        self.steps.push(Step::Move { run, register: self.slots[value.index()], access: access.0, is_block });
    }
}
