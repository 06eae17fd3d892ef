//! Ops lane by lane, on the machine, with operands in all places that are allowed.

use super::harness::{Bytes, FunctionBuilder, NONE, Random, allocated_inst, mask_bytes};
use super::reference::{is_same, lane, operand};
use crate::compiler::emit::mir::{Class, Cmp, Conv, Elem, Inst, Mem, Op, Part};
use crate::compiler::emit::{AllocatedInst, Constant, Constraint, OperandLocation, Target};

pub(crate) const ELEMS: [Elem; 6] = [Elem::I8, Elem::I16, Elem::I32, Elem::I64, Elem::F32, Elem::F64];

/// All ops lane by lane, and how many operands they have.
pub(crate) fn ops() -> Vec<(Op, usize)> {
    let mut ops: Vec<(Op, usize)> = vec![(Op::Fma, 3), (Op::Fnma, 3), (Op::Flip, 3), (Op::Select, 3)];
    ops.extend([Op::Not, Op::Sqrt, Op::Floor, Op::Ceil, Op::Trunc, Op::Nearest].map(|op| (op, 1)));
    ops.extend([Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max, Op::MinU, Op::MaxU].map(|op| (op, 2)));
    ops.extend([Op::And, Op::Or, Op::Xor, Op::AndNot, Op::Shl, Op::Shr, Op::Sar].map(|op| (op, 2)));
    ops.extend([Op::Scale, Op::Test].map(|op| (op, 2)));
    ops.extend([Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::LtU, Cmp::LeU].map(|cmp| (Op::Compare(cmp), 2)));
    for by in [0, 1, 3, 7, 8, 15, 16, 31, 32, 63] {
        ops.extend([Op::ShlBy(by), Op::ShrBy(by), Op::SarBy(by), Op::RotBy(by)].map(|op| (op, 1)));
    }
    let conversions = [
        Conv::ZeroExtend,
        Conv::SignExtend,
        Conv::Truncate,
        Conv::FloatOfS,
        Conv::FloatOfU,
        Conv::ToS,
        Conv::ToU,
        Conv::Float,
        Conv::OfHalf,
        Conv::ToHalf,
        Conv::Bitcast,
    ];
    for conversion in conversions {
        ops.extend(ELEMS.map(|from| (Op::Convert(conversion, from), 1)));
    }
    ops.push((Op::Convert(Conv::OfBit, Elem::Bit), 1));
    ops
}

/// Whether an op makes sense for elements.
pub(crate) fn is_sensible(op: Op, elem: Elem) -> bool {
    match op {
        Op::ShlBy(by) | Op::ShrBy(by) | Op::SarBy(by) | Op::RotBy(by) => usize::from(by) < 8 * elem.bytes(),
        Op::Compare(Cmp::LtU | Cmp::LeU) => !elem.is_float(),
        _ => true,
    }
}

/// The elements of a source.
pub(crate) fn source_elem(op: Op, elem: Elem, source: usize) -> Elem {
    match op {
        Op::Convert(_, from) => from,
        Op::Select if source == 0 => Elem::Bit,
        _ => elem,
    }
}

/// Whether the result is a mask.
pub(crate) fn gives_mask(op: Op) -> bool {
    matches!(op, Op::Compare(_) | Op::Test)
}

/// The constraint of an instruction.
pub(crate) fn constraint(target: &dyn Target, op: Op, elem: Elem, lanes: u8) -> Constraint {
    target.constraint(&Inst { op, elem, lanes, dst: NONE, src: [NONE; 3], mem: Mem::NONE, part: Part::All })
}

/// Lanes that elements of so many bytes may have.
pub(crate) fn lane_counts(target: &dyn Target, bytes: usize) -> impl Iterator<Item = u8> {
    let most = target.limits().vector_bytes / bytes;
    (0..7).map(|power| 1u8 << power).filter(move |&lanes| usize::from(lanes) <= most)
}

/// Operands of an instruction, in places that its constraint allows, chosen by numbers without order.
pub(crate) struct Operands {
    pub(crate) inst: AllocatedInst,
    /// The register of each operand before it is spilled.
    pub(crate) registers: [u8; 3],
    pub(crate) constants: Vec<Constant>,
}

/// Chooses places. `memory` says which operand is to be in memory: a slot below 3, else the pool.
pub(crate) fn choose(
    target: &dyn Target,
    random: &mut Random,
    op: Op,
    count: usize,
    elem: Elem,
    lanes: u8,
    memory: Option<usize>,
) -> Option<Operands> {
    let limits = target.limits();
    let constraint = constraint(target, op, elem, lanes);
    let (slot, pool) = (memory.filter(|&at| at < 3), memory.and_then(|at| at.checked_sub(3)));
    let in_memory = slot.or(pool);
    let allowed = if slot.is_some() { constraint.slot } else { constraint.pool };
    if in_memory.is_some_and(|at| allowed >> at & 1 == 0) {
        return None;
    }
    let has_masks = !limits.masks.is_empty();
    let is_mask = |at| has_masks && source_elem(op, elem, at) == Elem::Bit;
    let mut vectors = limits.vectors.to_vec();
    let mut masks = limits.masks.to_vec();
    let mut generals = limits.generals.to_vec();
    let take = |random: &mut Random, from: &mut Vec<u8>| {
        let at = random.below(from.len());
        from.swap_remove(at)
    };
    let mut inst = allocated_inst(op, elem, lanes);
    let mut registers = [0; 3];
    for at in 0..count {
        registers[at] = take(random, if is_mask(at) { &mut masks } else { &mut vectors });
        inst.src[at] = OperandLocation::Reg(registers[at]);
        // Sometimes operands are the same.
        if at > 0 && op != Op::Scale && source_elem(op, elem, at - 1) == elem && random.below(6) == 0 {
            registers[at] = registers[at - 1];
            inst.src[at] = inst.src[at - 1];
        }
    }
    let tied: Vec<usize> =
        (0..count).filter(|&at| constraint.tied >> at & 1 != 0 && in_memory != Some(at)).collect();
    let dst_is_mask = has_masks && gives_mask(op);
    inst.dst = if !tied.is_empty() {
        registers[random.choose(&tied)]
    } else {
        let same: Vec<usize> =
            (0..count).filter(|&at| is_mask(at) == dst_is_mask && in_memory != Some(at)).collect();
        if !constraint.is_early && !same.is_empty() && random.below(2) == 0 {
            registers[random.choose(&same)]
        } else {
            take(random, if dst_is_mask { &mut masks } else { &mut vectors })
        }
    };
    for at in 0..usize::from(constraint.vector_temps) {
        inst.vector_temps[at] = take(random, &mut vectors);
    }
    for at in 0..usize::from(constraint.general_temps) {
        inst.general_temps[at] = take(random, &mut generals);
    }
    if constraint.mask_temps > 0 {
        inst.mask_temp = take(random, &mut masks);
    }
    let mut constants = Vec::new();
    if let Some(at) = slot {
        inst.src[at] = OperandLocation::Slot(64 * random.below(30) as u32);
    }
    if let Some(at) = pool {
        let of = source_elem(op, elem, at);
        let is_iota = !of.is_float() && random.below(4) == 0;
        constants.push(Constant::Splat(Elem::I64, 0));
        constants.push(if is_iota {
            Constant::Iota(of)
        } else {
            Constant::Splat(of, operand(random, op, of, at))
        });
        inst.src[at] = OperandLocation::Pool(1);
    }
    Some(Operands { inst, registers, constants })
}

/// Runs an op in all forms and compares it with scalar Rust.
pub(crate) fn check(target: &dyn Target, op: Op, count: usize, elem: Elem, random: &mut Random) {
    let bytes = (0..count).map(|at| source_elem(op, elem, at).bytes()).fold(elem.bytes(), usize::max);
    for lanes in lane_counts(target, bytes) {
        for memory in [None, None, None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
            if let Some(operands) = choose(target, random, op, count, elem, lanes, memory) {
                run(target, &operands, count, random);
            }
        }
    }
}

fn run(target: &dyn Target, operands: &Operands, count: usize, random: &mut Random) {
    let AllocatedInst { op, elem, lanes, src, dst, .. } = operands.inst;
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    builder.function.constants.clone_from(&operands.constants);
    let of = |at| source_elem(op, elem, at);
    // A spilled operand may share its register with another one, which is loaded later.
    let order = (0..count).filter(|&at| matches!(src[at], OperandLocation::Slot(_)));
    for at in order.chain((0..count).filter(|&at| matches!(src[at], OperandLocation::Reg(_)))) {
        if of(at) == Elem::Bit {
            builder.load_mask(operands.registers[at], at as u16);
        } else {
            builder.load(operands.registers[at], at as u16);
        }
        if let OperandLocation::Slot(slot) = src[at] {
            builder.function.lanes = 64;
            builder.spill(Class::Vector, slot, operands.registers[at]);
        }
    }
    builder.push(operands.inst);
    if gives_mask(op) {
        builder.store_mask(dst, 3);
    } else {
        builder.store(dst, 3);
    }
    let code = builder.finish();
    // Conversions have more places where something changes.
    for _ in 0..if matches!(op, Op::Convert(..)) { 100 } else { 6 } {
        let mut sources: [Bytes; 3] =
            std::array::from_fn(|_| Bytes(std::array::from_fn(|_| random.next() as u8)));
        let mut masks = [0; 3];
        for at in 0..count {
            let is_mask = of(at) == Elem::Bit;
            masks[at] = random.next();
            if is_mask {
                sources[at] = mask_bytes(masks[at], elem.integer(), lanes.into(), random);
            }
            for lane in 0..usize::from(lanes) {
                if !is_mask {
                    sources[at].set(lane, of(at), operand(random, op, of(at), at));
                }
            }
            for before in 0..at {
                if src[at] == src[before]
                    && matches!(src[at], OperandLocation::Reg(_))
                    && !is_mask
                    && of(before) != Elem::Bit
                {
                    sources[at] = sources[before];
                }
            }
        }
        let mut result = Bytes([0; 64]);
        let mut args: Vec<u64> = sources.iter().map(|bytes| bytes as *const Bytes as u64).collect();
        for at in 0..count {
            if builder.has_masks() && of(at) == Elem::Bit {
                args[at] = masks[at];
            }
        }
        args.push(&raw mut result as u64);
        assert_eq!(code.run(&args), 0);
        for at in 0..usize::from(lanes) {
            let inputs = std::array::from_fn(|source| {
                if source >= count {
                    return 0;
                }
                match src[source] {
                    OperandLocation::Pool(constant) => match operands.constants[constant as usize] {
                        Constant::Splat(_, bits) => bits,
                        Constant::Iota(_) => at as u64,
                        Constant::Lanes(_) => unreachable!("no operand has numbers of lanes"),
                    },
                    _ if of(source) == Elem::Bit => masks[source] >> at & 1,
                    _ => sources[source].lane(at, of(source)),
                }
            });
            let expected = lane(op, elem, inputs);
            let got = if !gives_mask(op) {
                result.lane(at, elem)
            } else if builder.has_masks() {
                result.lane(0, Elem::I64) >> at & 1
            } else {
                let got = result.lane(at, elem);
                let ones = u64::MAX >> (64 - 8 * elem.bytes());
                assert!(got == 0 || got == ones, "{:?} {got:x}", operands.inst);
                got & 1
            };
            assert!(
                is_same(op, elem, expected, got),
                "{:?}\nof {inputs:x?} is {got:x}, not {expected:x}, in lane {at}",
                operands.inst
            );
        }
    }
}

/// All ops of a target.
pub(crate) fn check_all(target: &dyn Target) {
    let mut random = Random(1);
    for (op, count) in ops() {
        for elem in ELEMS {
            if is_sensible(op, elem) && target.has(op, elem) {
                check(target, op, count, elem, &mut random);
            }
        }
    }
}
