//! From loop nests to machine instructions: vectors of the machine's length, loops with their ends, addresses.
//!
//! * The number of lanes of a row is that of its widest elements that fill a vector register; sums in wider floats have
//!   several vectors for one of the row (`halves`).
//! * The body of a row is done for several vectors at once, one instruction of each after the other, so that they hide
//!   each other's latency; how many depends on how many registers its values take (`lanes`).
//! * The end of a row is done under a mask, or element by element through memory of the function's own (`lanes`).
//! * What does not change in a row is computed before it: scalars, addresses (`address`), broadcasts.
//! * Ops that a machine lacks are expanded to those that it has (`expand`).

mod address;
mod control;
mod dead;
mod expand;
mod extremes;
mod finish;
mod halves;
mod integers;
mod lanes;
mod ops;
mod pairs;
mod records;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::emit::mir::{Class, Code, Cond, Constant, Inst, ListId, Mem, Op, Part, Reg};
use super::emit::{Limits, Target};
use super::ir::{self, Applied, Cmp, Elem, Function, Val};

/// No row has vectors of fewer lanes, where the machine has longer ones.
const MIN_LANES: usize = 4;

/// The registers of a value, one for each vector that is done at once; one for a scalar.
type Copies = SmallVec<[Reg; 6]>;

/// A function that a target has no code for, and what it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported(pub(crate) String);

type Result<T> = std::result::Result<T, Unsupported>;

/// Lowers a function to machine instructions.
///
/// # Errors
/// The target lacks an op that cannot be expanded.
pub(crate) fn lower(function: &Function, target: &dyn Target) -> Result<Code> {
    let limits = target.limits();
    let is_dead = dead::dead(function);
    let ends = block_ends(function);
    let rows = (0..function.insts.len()).filter(|&at| function.insts[at].op == ir::Op::Lanes);
    let is_halved = halves::halved(function, &ends);
    let own = |at: usize| lanes_of(function, (at, ends[at] as usize), (&is_dead, &is_halved), target);
    let lanes = rows.map(own).max();
    let lanes = lanes.unwrap_or((limits.vector_bytes / Elem::F64.bytes()) as u8);
    let mut lowering = Lowering {
        function,
        target,
        limits,
        code: Code { lanes, ..Code::default() },
        made: Vec::new(),
        values: vec![Copies::new(); function.insts.len()],
        conditions: FxHashMap::default(),
        splats: vec![Reg::NONE; function.insts.len()],
        constants: FxHashMap::default(),
        numbers: FxHashMap::default(),
        arguments: FxHashMap::default(),
        pointers: FxHashMap::default(),
        strides: FxHashMap::default(),
        known: Vec::new(),
        is_hoisted: vec![false; function.insts.len()],
        mask_elems: FxHashMap::default(),
        row: None,
        accumulators: lanes::Accumulators::new(),
        ends,
        is_dead,
        is_halved,
        applied: function.applied(),
    };
    lowering.block(0, function.insts.len())?;
    // What is made again wherever it is used comes first, so that it is before every loop that uses it.
    let mut made = lowering.made;
    made.append(&mut lowering.code.insts);
    lowering.code.insts = made;
    Ok(lowering.code)
}

/// How many lanes the vectors of a row have, which begins and ends at such instructions.
fn lanes_of(
    function: &Function,
    (begin, end): (usize, usize),
    (is_dead, is_halved): (&[bool], &[bool]),
    target: &dyn Target,
) -> u8 {
    let row = &function.insts[begin + 1..end];
    let widths = (begin + 1..end).filter_map(|at| {
        let inst = &function.insts[at];
        if inst.op.is_given() || is_dead[at] || is_halved[at] {
            return None;
        }
        // Scalars of a row are broadcast where vectors use them.
        let elem = if let ir::Op::Compare(_) | ir::Op::Test = inst.op {
            function.ty(inst.args[0]).elem
        } else {
            inst.ty.elem
        };
        (elem != Elem::Index).then(|| integers::widest(inst.op, elem, target))
    });
    let widest = widths.max().unwrap_or(8).max(1);
    // A float is added to the lane that its position says.
    let accumulators = row.iter().filter_map(|inst| {
        let ir::Op::Reduce = inst.op else { return None };
        let accumulator = function.inst(inst.args[0]);
        let ir::Op::Accumulator(_, lanes) = accumulator.op else { return None };
        accumulator.ty.elem.is_float().then_some(usize::from(lanes))
    });
    let lanes = accumulators.fold(target.limits().vector_bytes / widest, usize::min);
    // A row that is shorter than a vector has a shorter one, which is stored and loaded as a whole.
    let extent = function.inst(function.insts[begin].args[0]).op.constant();
    let has_accumulators = row.iter().any(|inst| inst.op == ir::Op::Reduce);
    let fitting = extent.filter(|_| !has_accumulators).and_then(|extent| usize::try_from(extent).ok());
    fitting.map_or(lanes, |extent| lanes.min(extent.next_power_of_two().max(MIN_LANES))) as u8
}

/// For each instruction that begins or divides a block the position of what ends it.
fn block_ends(function: &Function) -> Vec<u32> {
    let mut ends = vec![u32::MAX; function.insts.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, inst) in function.insts.iter().enumerate() {
        if let ir::Op::Else | ir::Op::EndLoop(_) | ir::Op::EndIf(_) | ir::Op::EndLanes = inst.op {
            ends[open.pop().expect("a block is open")] = at as u32;
        }
        if let ir::Op::Loop | ir::Op::If | ir::Op::Else | ir::Op::Lanes = inst.op {
            open.push(at);
        }
    }
    ends
}

struct Lowering<'a> {
    function: &'a Function,
    target: &'a dyn Target,
    limits: Limits,
    code: Code,
    /// The instructions of constants, numbers and arguments.
    made: Vec<Inst>,
    /// The registers of each value.
    values: Vec<Copies>,
    /// Scalar predicates that compare indices: a jump does the comparison.
    conditions: FxHashMap<Val, (Cond, Reg, Reg)>,
    /// For each scalar the register that has it in all lanes.
    splats: Vec<Reg>,
    constants: FxHashMap<Constant, Reg>,
    numbers: FxHashMap<i64, Reg>,
    arguments: FxHashMap<u16, Reg>,
    /// The pointers that are there: a buffer and terms.
    pointers: FxHashMap<address::Key, Reg>,
    /// The positions of the lanes of strided accesses, by their type and the stride in elements.
    strides: FxHashMap<(Elem, i64), Reg>,
    /// What is known in the open blocks.
    known: Vec<Known>,
    /// Scalars of a row that were computed before it.
    is_hoisted: Vec<bool>,
    /// The width of the vector that stands for a mask.
    mask_elems: FxHashMap<Reg, Elem>,
    /// The row that is done.
    row: Option<Row>,
    /// The accumulators of that row.
    accumulators: lanes::Accumulators,
    ends: Vec<u32>,
    /// The instructions whose values nothing needs.
    is_dead: Vec<bool>,
    /// The conversions that reductions do themselves, and those reductions.
    is_halved: Vec<bool>,
    /// What kernels behind the caller's compute.
    applied: Applied,
}

/// What is done of a row at once.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The vectors that are done together.
    copies: usize,
    /// The position in the row of the first of them, in elements: a register and a number.
    position: Option<Reg>,
    offset: i64,
    /// How many vectors of the same step come before it.
    first: usize,
    /// The lanes of the last vector of a row.
    end: Option<RowEnd>,
}

/// The lanes that are left at the end of a row.
#[derive(Clone, Copy, Debug)]
struct RowEnd {
    /// How many they are.
    count: Reg,
    /// The mask of them, for elements of the widest type.
    mask: Reg,
}

impl Lowering<'_> {
    fn block(&mut self, from: usize, to: usize) -> Result<()> {
        let mut at = from;
        while at < to {
            at = self.instruction(at)?;
        }
        Ok(())
    }

    /// Lowers the instruction at a position, and the block that it begins; gives the next position.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other ops are of values")]
    fn instruction(&mut self, at: usize) -> Result<usize> {
        let (value, inst) = (Val(at as u32), self.function.insts[at]);
        if let ir::Op::Load(_) | ir::Op::Store(_) = inst.op
            && let Some(access) = self.pair_at(at)
            && self.has_use(at, 2)
        {
            match inst.op {
                ir::Op::Load(_) => self.load_pairs(at, access)?,
                _ => self.store_pairs(at, access)?,
            }
            return Ok(at + 2);
        }
        if let Some(record) = self.record_at(at)
            && self.has_use(at, record.count)
        {
            if let ir::Op::Load(_) = inst.op {
                self.load_records(at, record)?;
            } else {
                self.store_records(at, record)?;
            }
            return Ok(at + record.count);
        }
        if self.is_dead[at] {
            return Ok(at + 1);
        }
        match inst.op {
            ir::Op::Loop => return self.loop_(at),
            ir::Op::If => return self.if_(at),
            ir::Op::Lanes => return self.lanes(at),
            ir::Op::Accumulator(..) | ir::Op::Carry | ir::Op::Join => {}
            ir::Op::While => self.while_(inst.args[0])?,
            ir::Op::Call(call) => self.call(call)?,
            // Its reduction converts it.
            ir::Op::Convert(_) if self.is_halved[at] => {}
            _ if self.is_hoisted[at] => {}
            ir::Op::Load(_) | ir::Op::Store(_) | ir::Op::Gather(_) => self.memory(value)?,
            ir::Op::Reduce => self.reduce(value)?,
            _ => self.value(value)?,
        }
        Ok(at + 1)
    }

    /// Whether one of so many instructions gives something that is needed, or stores it.
    fn has_use(&self, at: usize, count: usize) -> bool {
        self.is_dead[at..at + count].iter().any(|is_dead| !is_dead)
    }

    // Building.

    fn push(&mut self, inst: Inst) {
        self.code.insts.push(inst);
    }

    /// An instruction without memory.
    fn emit(&mut self, op: Op, elem: Elem, lanes: u8, class: Class, src: &[Reg]) -> Reg {
        let dst = self.code.reg(class);
        let mut all = [Reg::NONE; 3];
        all[..src.len()].copy_from_slice(src);
        self.push(Inst { op, elem, lanes, dst, src: all, mem: Mem::NONE, part: Part::All });
        dst
    }

    /// An instruction without operands, which can be made anywhere.
    fn make(&mut self, op: Op, elem: Elem, lanes: u8, class: Class) -> Reg {
        let dst = self.code.reg(class);
        let src = [Reg::NONE; 3];
        self.made.push(Inst { op, elem, lanes, dst, src, mem: Mem::NONE, part: Part::All });
        dst
    }

    /// An instruction of general registers.
    fn general(&mut self, op: Op, src: &[Reg]) -> Reg {
        self.emit(op, Elem::Index, 1, Class::General, src)
    }

    /// An instruction of control flow.
    fn control(&mut self, op: Op, elem: Elem, lanes: u8, src: &[Reg]) {
        let mut all = [Reg::NONE; 3];
        all[..src.len()].copy_from_slice(src);
        self.push(Inst { op, elem, lanes, dst: Reg::NONE, src: all, mem: Mem::NONE, part: Part::All });
    }

    fn list(&mut self, regs: impl IntoIterator<Item = Reg>) -> ListId {
        self.code.lists.push(regs.into_iter().collect());
        ListId(self.code.lists.len() as u32 - 1)
    }

    /// A register that is defined anywhere, since it is made where it is used.
    fn constant(&mut self, constant: Constant) -> Reg {
        if let Some(&reg) = self.constants.get(&constant) {
            return reg;
        }
        let elem = match constant {
            Constant::Splat(elem, _) | Constant::Iota(elem) => elem,
            Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
        };
        self.code.constants.push(constant);
        let at = self.code.constants.len() as u32 - 1;
        let lanes = self.code.lanes;
        let reg = self.make(Op::Const(at), elem, lanes, Class::Vector);
        self.constants.insert(constant, reg);
        reg
    }

    fn number(&mut self, number: i64) -> Reg {
        if let Some(&reg) = self.numbers.get(&number) {
            return reg;
        }
        let reg = self.make(Op::Number(number), Elem::Index, 1, Class::General);
        self.numbers.insert(number, reg);
        reg
    }

    fn argument(&mut self, word: u16) -> Reg {
        if let Some(&reg) = self.arguments.get(&word) {
            return reg;
        }
        let reg = self.make(Op::Argument(word), Elem::Index, 1, Class::General);
        self.arguments.insert(word, reg);
        reg
    }

    // Values.

    /// The register of a scalar.
    fn scalar(&mut self, value: Val) -> Reg {
        let inst = self.function.inst(value);
        match (inst.op, inst.ty.elem) {
            (ir::Op::Const(bits), Elem::Index) => self.number(bits as i64),
            (ir::Op::Const(bits), Elem::Bit) => self.constant_predicate(bits != 0, 1),
            (ir::Op::Const(bits), elem) => self.constant(Constant::Splat(elem, bits)),
            (_, Elem::Bit) if self.values[value.index()].is_empty() => {
                // A comparison of indices that more than a jump needs.
                let (cond, a, b) = self.conditions[&value];
                let reg = self.predicate_of(cond, a, b);
                self.values[value.index()] = SmallVec::from_slice(&[reg]);
                self.known.push(Known::Predicate(value));
                reg
            }
            _ => self.values[value.index()][0],
        }
    }

    /// The register of an operand for one of the copies: scalars in all lanes.
    fn vector(&mut self, value: Val, copy: usize) -> Reg {
        let inst = self.function.inst(value);
        match inst.op.constant() {
            Some(bits) if inst.ty.elem == Elem::Bit => self.constant_predicate(bits != 0, self.code.lanes),
            Some(bits) => self.constant(Constant::Splat(inst.ty.elem, bits)),
            None if inst.ty.is_vector => self.values[value.index()][copy],
            None => self.splat(value),
        }
    }

    /// A scalar in all lanes.
    fn splat(&mut self, value: Val) -> Reg {
        if self.splats[value.index()].is_some() {
            return self.splats[value.index()];
        }
        let (elem, from) = (self.function.ty(value).elem, self.scalar(value));
        let lanes = self.code.lanes;
        let reg = if elem == Elem::Bit {
            // A wider one has no room for all lanes.
            let (own, most) = (self.mask_elem(from), self.lane_elem());
            let width = if own.bytes() > most.bytes() { most } else { own };
            let from = self.mask_for(from, width, 1);
            let reg = self.emit(Op::MaskSplat, width, lanes, Class::Mask, &[from]);
            self.mask_elems.insert(reg, width);
            reg
        } else {
            self.emit(Op::Splat, elem, lanes, Class::Vector, &[from])
        };
        self.splats[value.index()] = reg;
        self.known.push(Known::Splat(value));
        reg
    }

    /// The integer of the width that each lane has in a full vector.
    fn lane_elem(&self) -> Elem {
        match self.limits.vector_bytes / usize::from(self.code.lanes) {
            1 => Elem::I8,
            2 => Elem::I16,
            4 => Elem::I32,
            _ => Elem::I64,
        }
    }

    /// The width of the elements that a mask was made of.
    fn mask_elem(&self, mask: Reg) -> Elem {
        self.mask_elems.get(&mask).copied().unwrap_or(Elem::I32)
    }

    /// A mask for elements of a type.
    fn mask_for(&mut self, mask: Reg, elem: Elem, lanes: u8) -> Reg {
        let (from, to) = (self.mask_elem(mask), elem.integer());
        if from == to || !self.limits.masks.is_empty() {
            return mask;
        }
        let resized = self.emit(Op::MaskResize(from), to, lanes, Class::Mask, &[mask]);
        self.mask_elems.insert(resized, to);
        resized
    }

    // Blocks.

    /// Begins a block: what is computed in it is not there behind it.
    fn enter(&mut self) -> Scope {
        Scope { known: self.known.len() }
    }

    fn leave(&mut self, scope: Scope) {
        for known in self.known.drain(scope.known..) {
            match known {
                Known::Pointer(key) => drop(self.pointers.remove(&key)),
                Known::Splat(value) => self.splats[value.index()] = Reg::NONE,
                Known::Predicate(value) => self.values[value.index()].clear(),
                Known::Strides(key) => drop(self.strides.remove(&key)),
            }
        }
    }

    /// Computes what a block needs and does not change, before it begins.
    fn prepare(&mut self, from: usize, to: usize) -> Result<()> {
        for at in from..to {
            let (ir::Op::Load(access) | ir::Op::Store(access) | ir::Op::Gather(access)) =
                self.function.insts[at].op
            else {
                continue;
            };
            let access = self.function.access(access);
            if !self.is_dead[at] && access.terms.iter().all(|(term, _)| term.index() < from) {
                self.pointer(access.clone());
            }
        }
        Ok(())
    }
}

/// How much was known where a block began.
struct Scope {
    known: usize,
}

/// Something that was computed and is there until its block ends.
enum Known {
    Pointer(address::Key),
    Splat(Val),
    /// A comparison of indices as a mask.
    Predicate(Val),
    Strides((Elem, i64)),
}

/// The comparison of indices.
fn cond_of(cmp: Cmp) -> Option<Cond> {
    match cmp {
        Cmp::Eq => Some(Cond::Eq),
        Cmp::Ne => Some(Cond::Ne),
        Cmp::Lt => Some(Cond::Lt),
        Cmp::Le => Some(Cond::Le),
        Cmp::LtU | Cmp::LeU => None,
    }
}
