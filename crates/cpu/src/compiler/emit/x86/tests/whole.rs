//! Ops on vectors and masks as a whole, on the machine.

use super::harness::{Bytes, FunctionBuilder, Random, allocated_inst, mask_bytes};
use super::lanes::{ELEMS, constraint, lane_counts};
use super::reference::signed;
use crate::compiler::emit::mir::{Class, Elem, Op};
use crate::compiler::emit::{Action, AllocatedInst, Constant, OperandLocation, Target};

fn filled(random: &mut Random) -> Bytes {
    Bytes(std::array::from_fn(|_| random.next() as u8))
}

/// Lanes that are moved, and values from and to general registers.
pub(crate) fn check_vectors(target: &dyn Target) {
    let mut random = Random(5);
    for elem in ELEMS {
        for lanes in lane_counts(target, elem.bytes()) {
            for _ in 0..6 {
                check_moved(target, Op::Splat, elem, lanes, &mut random);
                if elem.bytes() >= 4 && lanes > 1 {
                    check_moved(target, Op::Reverse, elem, lanes, &mut random);
                    check_joined(target, elem, lanes, &mut random);
                    check_permuted(target, elem, lanes, &mut random);
                    if usize::from(lanes) * elem.bytes() >= 16 {
                        check_folded(target, elem, lanes, &mut random);
                    }
                }
                for upper in (0..6).map(|power| 1 << power).filter(|&upper| upper < lanes) {
                    check_moved(target, Op::Upper(upper), elem, lanes, &mut random);
                }
            }
        }
        for _ in 0..20 {
            if !elem.is_float() {
                check_general(target, elem, &mut random);
            }
        }
    }
}

fn check_moved(target: &dyn Target, op: Op, elem: Elem, lanes: u8, random: &mut Random) {
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let from = random.choose(target.limits().vectors);
    let dst = random.choose(target.limits().vectors);
    assert_eq!(constraint(target, op, elem, lanes).vector_temps, 0);
    builder.load(from, 0);
    let src = [OperandLocation::Reg(from), OperandLocation::None, OperandLocation::None];
    builder.push(AllocatedInst { dst, src, ..allocated_inst(op, elem, lanes) });
    builder.store(dst, 1);
    let (source, mut result) = (filled(random), Bytes([0; 64]));
    assert_eq!(builder.finish().run(&[&raw const source as u64, &raw mut result as u64]), 0);
    let (lanes, first) = (usize::from(lanes), if let Op::Upper(upper) = op { upper.into() } else { 0 });
    let from = |lane: usize| match op {
        Op::Upper(_) => first + lane,
        Op::Splat => 0,
        Op::Reverse => lanes - 1 - lane,
        _ => panic!("{op:?} moves no lanes"),
    };
    for lane in 0..lanes - first {
        let expected = source.lane(from(lane), elem);
        assert_eq!(result.lane(lane, elem), expected, "{op:?} {elem:?} {lanes} {dst}");
    }
}

/// Lanes of two vectors, parted and in turn.
fn check_joined(target: &dyn Target, elem: Elem, lanes: u8, random: &mut Random) {
    let count = usize::from(lanes);
    for odd in [false, true] {
        check_from_two(target, Op::Unzip(odd), elem, lanes, random, &|lane| {
            let from = 2 * lane + usize::from(odd);
            (from / count, from % count)
        });
        check_from_two(target, Op::Zip(odd), elem, lanes, random, &|lane| {
            (lane % 2, if odd { count / 2 } else { 0 } + lane / 2)
        });
    }
}

/// Lanes of two vectors that have a bit, or lack it.
fn check_folded(target: &dyn Target, elem: Elem, lanes: u8, random: &mut Random) {
    for by in (0..4).map(|power| 1 << power).filter(|&by| by < lanes) {
        let group = 16 / elem.bytes();
        let group = if usize::from(by) >= group { usize::from(lanes) } else { group };
        for has in [false, true] {
            let of_group = (0..group).filter(|lane| (lane & usize::from(by) != 0) == has);
            let expected = |lane: usize| {
                let (first, at) = (lane / group * group, lane % group);
                (2 * at / group, first + of_group.clone().nth(at % (group / 2)).expect("half of the lanes"))
            };
            check_from_two(target, Op::Fold { by, has }, elem, lanes, random, &expected);
        }
    }
}

/// Lanes of two vectors, of which each lane of the result is one.
fn check_from_two(
    target: &dyn Target,
    op: Op,
    elem: Elem,
    lanes: u8,
    random: &mut Random,
    expected: &dyn Fn(usize) -> (usize, usize),
) {
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let vectors = target.limits().vectors;
    let (a, b) = (random.choose(vectors), random.choose(vectors));
    let other = random.choose(vectors);
    let dst = random.choose(&[a, b, other]);
    builder.load(a, 0);
    builder.load(b, 1);
    let src = [OperandLocation::Reg(a), OperandLocation::Reg(b), OperandLocation::None];
    builder.push(AllocatedInst { dst, src, ..allocated_inst(op, elem, lanes) });
    builder.store(dst, 2);
    let (one, other, mut result) = (filled(random), filled(random), Bytes([0; 64]));
    // Of sources in one register the last is loaded.
    let sources = [if a == b { other } else { one }, other];
    let args = [&raw const one as u64, &raw const other as u64, &raw mut result as u64];
    assert_eq!(builder.finish().run(&args), 0);
    for lane in 0..usize::from(lanes) {
        let (source, from) = expected(lane);
        let expected = sources[source].lane(from, elem);
        assert_eq!(result.lane(lane, elem), expected, "{op:?} {elem:?} {lanes} {dst} {a} {b}");
    }
}

/// Lanes of two vectors by their numbers.
fn check_permuted(target: &dyn Target, elem: Elem, lanes: u8, random: &mut Random) {
    let count = usize::from(lanes);
    let numbers = std::array::from_fn(|_| random.below(2 * count) as u8);
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let op = Op::Permute(builder.constant(Constant::Lanes(numbers)));
    let vectors = target.limits().vectors;
    let (a, b) = (random.choose(vectors), random.choose(vectors));
    let other = random.choose(vectors);
    let dst = random.choose(&[a, b, other]);
    let others: Vec<u8> = vectors.iter().copied().filter(|reg| ![a, b, dst].contains(reg)).collect();
    builder.load(a, 0);
    builder.load(b, 1);
    let src = [OperandLocation::Reg(a), OperandLocation::Reg(b), OperandLocation::None];
    let vector_temps = [random.choose(&others); 2];
    builder.push(AllocatedInst { dst, src, vector_temps, ..allocated_inst(op, elem, lanes) });
    builder.store(dst, 2);
    let (one, other, mut result) = (filled(random), filled(random), Bytes([0; 64]));
    // Of sources in one register the last is loaded.
    let sources = [if a == b { other } else { one }, other];
    let args = [&raw const one as u64, &raw const other as u64, &raw mut result as u64];
    assert_eq!(builder.finish().run(&args), 0);
    for (lane, &from) in numbers.iter().enumerate().take(count) {
        let from = usize::from(from);
        let expected = sources[from / count].lane(from % count, elem);
        assert_eq!(result.lane(lane, elem), expected, "{op:?} {elem:?} {lanes} {dst} {a} {b}");
    }
}

fn check_general(target: &dyn Target, elem: Elem, random: &mut Random) {
    let limits = target.limits();
    let mut builder = FunctionBuilder::new(target, 1, 8);
    let (vector, general) = (random.choose(limits.vectors), random.choose(&limits.generals[1..]));
    builder.load(vector, 0);
    let slot = 64 * random.below(20) as u32;
    let mut location = OperandLocation::Reg(vector);
    if random.below(2) == 0 {
        builder.spill(Class::Vector, slot, vector);
        location = OperandLocation::Slot(slot);
    }
    let src = [location, OperandLocation::None, OperandLocation::None];
    builder.push(AllocatedInst { dst: general, src, ..allocated_inst(Op::ToGeneral, elem, 1) });
    // And back, from a slot or the register.
    let mut location = OperandLocation::Reg(general);
    if random.below(2) == 0 {
        builder.spill(Class::General, slot + 8, general);
        location = OperandLocation::Slot(slot + 8);
    }
    let src = [location, OperandLocation::None, OperandLocation::None];
    builder.push(AllocatedInst { dst: vector, src, ..allocated_inst(Op::OfGeneral, elem, 1) });
    builder.store(vector, 1);
    builder.store_general(general, 2);
    let (source, mut result, mut number) = (filled(random), Bytes([0; 64]), 0u64);
    let args = [&raw const source as u64, &raw mut result as u64, &raw mut number as u64];
    assert_eq!(builder.finish().run(&args), 0);
    assert_eq!(number, signed(source.lane(0, elem), elem) as u64, "{elem:?} {general} {vector}");
    assert_eq!(result.lane(0, elem), source.lane(0, elem));
}

/// Constants, moves and spills.
pub(crate) fn check_constants(target: &dyn Target) {
    let mut random = Random(6);
    for elem in ELEMS {
        for lanes in lane_counts(target, elem.bytes()) {
            for bits in [0, u64::MAX, 0x0123_4567_89ab_cdef, 1] {
                check_constant(target, Constant::Splat(elem, bits), elem, lanes, &mut random);
            }
            if !elem.is_float() {
                check_constant(target, Constant::Iota(elem), elem, lanes, &mut random);
            }
        }
    }
}

fn check_constant(target: &dyn Target, constant: Constant, elem: Elem, lanes: u8, random: &mut Random) {
    let vectors = target.limits().vectors;
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    builder.constant(Constant::Splat(Elem::F64, 7));
    let at = builder.constant(constant);
    let (to, other) = (random.choose(vectors), random.choose(vectors));
    let class = Class::Vector;
    if random.below(2) == 0 {
        builder.function.actions.push(Action::Constant { to, constant: at });
    } else {
        builder.push(AllocatedInst { dst: to, ..allocated_inst(Op::Const(at), elem, lanes) });
    }
    builder.function.actions.push(Action::Move { class, to: other, from: to });
    builder.spill(class, 1024, other);
    builder.reload(class, to, 1024);
    builder.store(to, 0);
    let mut result = Bytes([0; 64]);
    assert_eq!(builder.finish().run(&[&raw mut result as u64]), 0);
    for lane in 0..usize::from(lanes) {
        let mut expected = Bytes([0; 64]);
        expected.set(
            0,
            elem,
            match constant {
                Constant::Splat(_, bits) => bits,
                Constant::Iota(_) => lane as u64,
                Constant::Lanes(_) => unreachable!("no register has numbers of lanes"),
            },
        );
        assert_eq!(result.lane(lane, elem), expected.lane(0, elem), "{constant:?} {lanes}");
    }
}

/// Masks.
pub(crate) fn check_masks(target: &dyn Target) {
    let mut random = Random(7);
    let ops = [Op::MaskAnd, Op::MaskOr, Op::MaskXor, Op::MaskAndNot, Op::MaskNot, Op::MaskSplat];
    for elem in [Elem::I8, Elem::I16, Elem::I32, Elem::I64] {
        for lanes in lane_counts(target, elem.bytes()) {
            for _ in 0..8 {
                for op in ops {
                    check_mask(target, op, elem, lanes, elem, &mut random);
                }
                for from in [Elem::I8, Elem::I16, Elem::I32, Elem::I64] {
                    if usize::from(lanes) * from.bytes() <= target.limits().vector_bytes {
                        check_mask(target, Op::MaskResize(from), elem, lanes, from, &mut random);
                    }
                }
                check_first(target, elem, lanes, &mut random);
                check_any(target, elem, lanes, &mut random);
            }
        }
    }
}

/// The bits of a mask that code has stored.
fn mask_bits(result: &Bytes, has_masks: bool, elem: Elem, lanes: u8) -> u64 {
    if has_masks {
        return result.lane(0, Elem::I64) & (u64::MAX >> (64 - lanes));
    }
    let bit = |lane| {
        let set = u64::MAX >> (64 - 8 * elem.bytes());
        let got = result.lane(lane, elem);
        assert!(got == 0 || got == set, "{got:x} is no mask");
        (got & 1) << lane
    };
    (0..usize::from(lanes)).map(bit).sum()
}

fn mask_registers(target: &dyn Target) -> &'static [u8] {
    let limits = target.limits();
    if limits.masks.is_empty() { limits.vectors } else { limits.masks }
}

fn check_mask(target: &dyn Target, op: Op, elem: Elem, lanes: u8, from: Elem, random: &mut Random) {
    let masks = mask_registers(target);
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let [a, b] = [0; 2].map(|_: u8| random.choose(masks));
    let constraint = constraint(target, op, elem, lanes);
    let dst = if constraint.tied != 0 { a } else { random.choose(masks) };
    assert_eq!((constraint.vector_temps, constraint.mask_temps, constraint.general_temps), (0, 0, 0));
    if constraint.is_early && (dst == a || dst == b) {
        return;
    }
    builder.load_mask(b, 1);
    builder.load_mask(a, 0);
    let src = [OperandLocation::Reg(a), OperandLocation::Reg(b), OperandLocation::None];
    builder.push(AllocatedInst { dst, src, ..allocated_inst(op, elem, lanes) });
    builder.store_mask(dst, 2);
    let mut bits = [random.next(), random.next()];
    let bytes = bits.map(|bits| mask_bytes(bits, from, lanes.into(), random));
    let mut result = Bytes([0; 64]);
    let given = |at: usize| if builder.has_masks() { bits[at] } else { &raw const bytes[at] as u64 };
    assert_eq!(builder.finish().run(&[given(0), given(1), &raw mut result as u64]), 0);
    if a == b {
        bits[1] = bits[0];
    }
    let expected = match op {
        Op::MaskAnd => bits[0] & bits[1],
        Op::MaskOr => bits[0] | bits[1],
        Op::MaskXor => bits[0] ^ bits[1],
        Op::MaskAndNot => bits[0] & !bits[1],
        Op::MaskNot => !bits[0],
        Op::MaskSplat => 0u64.wrapping_sub(bits[0] & 1),
        _ => bits[0],
    };
    let got = mask_bits(&result, builder.has_masks(), elem, lanes);
    assert_eq!(got, expected & (u64::MAX >> (64 - lanes)), "{op:?} {elem:?} {lanes}");
}

fn check_first(target: &dyn Target, elem: Elem, lanes: u8, random: &mut Random) {
    let limits = target.limits();
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    let dst = random.choose(mask_registers(target));
    let mut generals = limits.generals.to_vec();
    let mut take = || generals.swap_remove(random.below(generals.len()));
    let (count, temps) = (take(), [take(), take()]);
    builder.argument(count, 0);
    let src = [OperandLocation::Reg(count), OperandLocation::None, OperandLocation::None];
    builder.push(AllocatedInst {
        dst,
        src,
        general_temps: temps,
        ..allocated_inst(Op::MaskFirst, elem, lanes)
    });
    builder.store_mask(dst, 1);
    let code = builder.finish();
    for count in (0..=65).chain([127, 128, 255, 256, 257, 1 << 32, 1 << 40, (1 << 62) + 3]) {
        let mut result = Bytes([0; 64]);
        assert_eq!(code.run(&[count, &raw mut result as u64]), 0);
        let expected = u64::MAX.checked_shr(64 - count.min(lanes.into()) as u32).unwrap_or(0);
        assert_eq!(
            mask_bits(&result, builder.has_masks(), elem, lanes),
            expected,
            "{elem:?} {lanes} {count}"
        );
    }
}

/// Jumps on masks.
fn check_any(target: &dyn Target, elem: Elem, lanes: u8, random: &mut Random) {
    let mask = random.choose(mask_registers(target));
    let mut builder = FunctionBuilder::new(target, lanes, 8);
    builder.function.labels = 1;
    builder.load_mask(mask, 0);
    builder.function.actions.push(Action::JumpIfNone { mask, elem, lanes, to: 0 });
    builder.push(AllocatedInst { dst: 2, ..allocated_inst(Op::Number(1), Elem::Index, 1) });
    builder.store_general(2, 1);
    builder.function.actions.push(Action::Label(0));
    let code = builder.finish();
    let all = u64::MAX >> (64 - lanes);
    for bits in [0, 1 << (lanes - 1), 1, all, !all, random.next()] {
        let bytes = mask_bytes(bits, elem, lanes.into(), random);
        let mut result = 0u64;
        let given = if builder.has_masks() { bits } else { &raw const bytes as u64 };
        assert_eq!(code.run(&[given, &raw mut result as u64]), 0);
        assert_eq!(result, u64::from(bits & all != 0), "{elem:?} {lanes} {bits:x}");
    }
}
