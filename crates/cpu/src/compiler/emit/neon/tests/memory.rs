//! Loads, stores, addresses, constants, and what moves lanes.

use super::super::super::{constant_bytes, neon_run::Outcome};
use super::reference::{low, signed};
use super::*;

/// What tells a byte of the data from others.
fn byte_at(position: usize) -> u8 {
    (position * 37 + position / 7) as u8
}

/// Bytes that differ.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(byte_at).collect()
}

/// Runs cases, each with the data that it must leave and a text for what it is.
fn check(cases: Vec<(Case, Vec<u8>, String)>) {
    let jobs: Vec<Case> = cases.iter().map(|(case, ..)| case.clone()).collect();
    let Some(outcomes) = neon_run::run(&jobs) else { return };
    for ((case, expected, name), Outcome { end, data }) in cases.iter().zip(outcomes) {
        let text = || neon_run::disassemble(&case.code).unwrap_or_default().join("\n");
        assert_eq!(end, End::Status(0), "{name}\n{}", text());
        assert_eq!(&data, expected, "{name}\n{}", text());
    }
}

/// A case on data whose address is the argument.
fn case(actions: Vec<Action>, constants: Vec<Constant>, lanes: u8, data: Vec<u8>) -> Case {
    Case { code: code(actions, constants, lanes), words: vec![Word::Data(0)], data, fpcr: 0 }
}

#[test]
fn every_form_of_an_address_is_reached() {
    // Where the accesses are, whatever the form.
    const GOAL: usize = 64;
    let offsets = [
        0,
        1,
        2,
        4,
        8,
        16,
        24,
        255,
        256,
        257,
        4095,
        4096,
        8191,
        32760,
        65520,
        65536,
        65537,
        1_000_000,
        20_000_008,
        i32::MAX,
        -1,
        -4,
        -16,
        -255,
        -256,
        -257,
        -4096,
        -65536,
        -1_000_001,
        -20_000_000,
        i32::MIN,
    ];
    let mut forms: Vec<Address> = offsets.iter().map(|&offset| near(2, offset)).collect();
    for scale in [1, 2, 4, 8] {
        forms.extend([0, 16, -3, 70_000].map(|offset| Address { base: 2, index: Some(3), scale, offset }));
    }
    let mut cases = Vec::new();
    for mem in forms {
        for index in [0_i64, 5, -12_345] {
            if index != 0 && mem.index.is_none() {
                continue;
            }
            let back = GOAL as i64 - i64::from(mem.offset) - index * i64::from(mem.scale);
            let start = |reg| {
                vec![
                    general(Op::Argument(0), 1, &[]),
                    general(Op::Number(back), 2, &[]),
                    general(Op::GeneralAdd, 2, &[1, 2]),
                    general(Op::Number(index), reg, &[]),
                ]
            };
            let mem_name = format!("{mem:?}, index {index}");
            for (elem, lanes) in
                ELEMS.into_iter().flat_map(|elem| lane_counts(elem).map(move |lanes| (elem, lanes)))
            {
                let count = elem.bytes() * usize::from(lanes);
                let data = bytes(256);
                let mut loads = start(3);
                loads.push(at(Op::Load, elem, lanes, 9, mem));
                loads.push(at(Op::Store, elem, lanes, 9, near(1, 0)));
                let mut expected = data.clone();
                expected.copy_within(GOAL..GOAL + count, 0);
                cases.push((
                    case(loads, vec![], lanes, data.clone()),
                    expected,
                    format!("load {elem:?} {mem_name}"),
                ));

                let mut stores = start(3);
                stores.push(at(Op::Load, elem, lanes, 31, near(1, 0)));
                stores.push(at(Op::Store, elem, lanes, 31, mem));
                let mut expected = data.clone();
                expected.copy_within(..count, GOAL);
                cases.push((
                    case(stores, vec![], lanes, data.clone()),
                    expected,
                    format!("store {elem:?} {mem_name}"),
                ));

                let mut splats = start(3);
                splats.push(at(Op::LoadSplat, elem, lanes, 9, mem));
                splats.push(at(Op::Store, elem, lanes, 9, near(1, 0)));
                let mut expected = data.clone();
                (0..lanes.into()).for_each(|lane| {
                    expected.copy_within(GOAL..GOAL + elem.bytes(), lane * elem.bytes());
                });
                cases.push((
                    case(splats, vec![], lanes, data),
                    expected,
                    format!("splat {elem:?} {mem_name}"),
                ));
            }
        }
    }
    check(cases);
}

#[test]
fn parts_touch_nothing_else() {
    let mut cases = Vec::new();
    for elem in ELEMS {
        for (lanes, count) in lane_counts(elem).flat_map(|lanes| (0..=lanes).map(move |count| (lanes, count)))
        {
            let part = usize::from(count) * elem.bytes();
            let whole = usize::from(lanes) * elem.bytes();
            // The part ends where the data does, behind which no byte can be touched.
            let data = bytes(128);
            let offset = 128 - part as i32;
            let start = || vec![general(Op::Argument(0), 1, &[]), general(Op::Number(count.into()), 19, &[])];
            let with_part = |op, reg, mem| {
                let Action::Inst(inst) = at(op, elem, lanes, reg, mem) else { unreachable!() };
                Action::Inst(AllocatedInst { part: AllocatedPart::Count(19), ..inst })
            };
            let mut loads = start();
            loads.push(with_part(Op::LoadPart, 8, near(1, offset)));
            loads.push(at(Op::Store, elem, lanes, 8, near(1, 0)));
            let mut expected = data.clone();
            expected[..whole].fill(0);
            expected[..part].copy_from_slice(&data[128 - part..]);
            let name = format!("{elem:?} {count} of {lanes}");
            cases.push((case(loads, vec![], lanes, data.clone()), expected, format!("load {name}")));

            let mut stores = start();
            stores.push(at(Op::Load, elem, lanes, 8, near(1, 0)));
            stores.push(with_part(Op::StorePart, 8, near(1, offset)));
            // The value is still there.
            stores.push(at(Op::Store, elem, lanes, 8, near(1, 16)));
            let mut expected = data.clone();
            expected.copy_within(..part, 128 - part);
            expected.copy_within(..whole, 16);
            cases.push((case(stores, vec![], lanes, data.clone()), expected, format!("store {name}")));

            // In the middle, nothing in front or behind changes.
            let mut stores = start();
            stores.push(at(Op::Load, elem, lanes, 8, near(1, 0)));
            stores.push(general(Op::Number(8), 4, &[]));
            let mem = Address { base: 1, index: Some(4), scale: 4, offset: 3 };
            stores.push(with_part(Op::StorePart, 8, mem));
            let mut expected = data.clone();
            expected.copy_within(..part, 35);
            cases.push((case(stores, vec![], lanes, data), expected, format!("store inside {name}")));
        }
    }
    check(cases);
}

#[test]
fn elements_are_gathered_from_both_sides() {
    let mut cases = Vec::new();
    let mut random = Random(7);
    for (elem, from) in ELEMS.iter().flat_map(|&elem| [Elem::I32, Elem::I64].map(|from| (elem, from))) {
        let widest = if elem.bytes() > from.bytes() { elem } else { from };
        for lanes in lane_counts(widest) {
            for (dst, positions) in [(0, 1), (30, 9), (0, 0)] {
                if constraint(Op::Gather(from), elem, lanes).is_early && dst == positions {
                    continue;
                }
                for mem in
                    [near(1, 0), near(1, 128), Address { base: 1, index: Some(2), scale: 8, offset: -72 }]
                {
                    let start = if mem.index.is_some() { 8 * 20 - 72 } else { mem.offset };
                    // Behind the positions, which are at 240.
                    let base = 256;
                    let mut data = bytes(512);
                    let mut result = Vec::new();
                    for lane in 0..usize::from(lanes) {
                        let position = random.below(16) as i64 - if start > 0 { 8 } else { 0 };
                        let at = 240 - 16 + lane * from.bytes();
                        data[at..at + from.bytes()].copy_from_slice(&position.to_le_bytes()[..from.bytes()]);
                        result.push((base + i64::from(start) + position * elem.bytes() as i64) as usize);
                    }
                    let mut expected = data.clone();
                    for (lane, &from) in result.iter().enumerate() {
                        expected[lane * elem.bytes()..][..elem.bytes()]
                            .copy_from_slice(&data[from..][..elem.bytes()]);
                    }
                    let Action::Inst(mut gather) = on(Op::Gather(from), elem, lanes, dst, &[positions])
                    else {
                        unreachable!()
                    };
                    gather.mem = mem;
                    let actions = vec![
                        general(Op::Argument(0), 4, &[]),
                        general(Op::AddNumber(base as i32), 1, &[4]),
                        general(Op::Number(20), 2, &[]),
                        at(Op::Load, from, lanes, positions, near(4, 224)),
                        Action::Inst(gather),
                        at(Op::Store, elem, lanes, dst, near(4, 0)),
                    ];
                    let name = format!("{elem:?} by {from:?} {lanes} at {mem:?}");
                    cases.push((case(actions, vec![], lanes, data), expected, name));
                }
            }
        }
    }
    check(cases);
}

#[test]
fn lanes_are_parted_and_joined() {
    let mut cases = Vec::new();
    for elem in [Elem::I32, Elem::F32, Elem::I64, Elem::F64] {
        for lanes in lane_counts(elem).filter(|&lanes| lanes > 1) {
            let (each, count) = (elem.bytes(), usize::from(lanes));
            for dst in [7, 9, 20] {
                let is_whole = count * each == 16;
                let folds = [false, true].into_iter().flat_map(|has| {
                    [1, 2].into_iter().map(move |by| Op::Fold { by, has }).take(if is_whole {
                        count / 2
                    } else {
                        0
                    })
                });
                let ops = [Op::Unzip(false), Op::Unzip(true), Op::Zip(false), Op::Zip(true)];
                for op in ops.into_iter().chain(folds) {
                    let actions = vec![
                        general(Op::Argument(0), 1, &[]),
                        at(Op::Load, elem, lanes, 7, near(1, 0)),
                        at(Op::Load, elem, lanes, 9, near(1, 16)),
                        on(op, elem, lanes, dst, &[7, 9]),
                        at(Op::Store, elem, lanes, dst, near(1, 32)),
                    ];
                    let data = bytes(64);
                    let lane = |source: usize, lane: usize| &data[16 * source + lane * each..][..each];
                    let mut expected = data.clone();
                    for at in 0..count {
                        let from = if let Op::Unzip(odd) = op {
                            let from = 2 * at + usize::from(odd);
                            lane(from / count, from % count)
                        } else if let Op::Fold { by, has } = op {
                            let mut of_half = (0..count).filter(|lane| (lane & usize::from(by) != 0) == has);
                            let from = of_half.nth(at % (count / 2)).expect("half of the lanes");
                            lane(2 * at / count, from)
                        } else {
                            lane(at % 2, at / 2 + if op == Op::Zip(true) { count / 2 } else { 0 })
                        };
                        expected[32 + at * each..][..each].copy_from_slice(from);
                    }
                    cases.push((
                        case(actions, vec![], lanes, data),
                        expected,
                        format!("{op:?} {elem:?} {lanes}"),
                    ));
                }
            }
        }
    }
    check(cases);
}

#[test]
fn lanes_move_as_they_say() {
    let mut cases = Vec::new();
    for (elem, lanes) in ELEMS.into_iter().flat_map(|elem| lane_counts(elem).map(move |lanes| (elem, lanes)))
    {
        let (each, whole) = (elem.bytes(), elem.bytes() * usize::from(lanes));
        for dst in [7, 20] {
            let mut push = |op: Op, stored: usize, result: Vec<u8>| {
                let stored = if stored == 1 { 1 } else { lanes };
                let actions = vec![
                    general(Op::Argument(0), 1, &[]),
                    at(Op::Load, elem, lanes, 7, near(1, 0)),
                    on(op, elem, lanes, dst, &[7]),
                    at(Op::Store, elem, stored, dst, near(1, 64)),
                ];
                let mut expected = bytes(128);
                expected[64..64 + result.len()].copy_from_slice(&result);
                let mut found = case(actions, vec![], lanes, bytes(128));
                // Lanes that are not specified are not compared.
                let rest = each * usize::from(stored) - result.len();
                if rest > 0 {
                    let keep = near(1, 64 + result.len() as i32);
                    let actions = vec![
                        general(Op::Argument(0), 1, &[]),
                        at(Op::Load, elem, lanes, 7, near(1, 0)),
                        at(Op::Load, Elem::I8, 16, 19, keep),
                        on(op, elem, lanes, dst, &[7]),
                        at(Op::Store, elem, stored, dst, near(1, 64)),
                        at(Op::Store, Elem::I8, 16, 19, keep),
                    ];
                    found = case(actions, vec![], lanes, bytes(128));
                }
                cases.push((found, expected, format!("{op:?} {elem:?} {lanes}")));
            };
            push(Op::Splat, 0, bytes(each).repeat(lanes.into()));
            if !elem.is_float() {
                push(Op::MaskSplat, 0, bytes(each).repeat(lanes.into()));
            }
            if each >= 4 && lanes > 1 {
                push(Op::Reverse, 0, bytes(whole).chunks(each).rev().flatten().copied().collect());
            }
            for n in 0..lanes {
                push(Op::Upper(n), 0, bytes(whole)[usize::from(n) * each..].to_vec());
            }
        }
        if elem.is_float() {
            continue;
        }
        for bits in [0x8182_8384_8586_8788_u64, 0x1122_3344_5566_7708] {
            let mut data = bytes(64);
            data[..8].copy_from_slice(&bits.to_le_bytes());
            let mut expected = data.clone();
            expected[16..24].copy_from_slice(&signed(elem, low(elem, bits)).to_le_bytes());
            expected[32..32 + each].copy_from_slice(&bits.to_le_bytes()[..each]);
            let actions = vec![
                general(Op::Argument(0), 1, &[]),
                at(Op::Load, elem, lanes.min(8 / each as u8).max(1), 7, near(1, 0)),
                on(Op::ToGeneral, elem, lanes, 27, &[7]),
                on(Op::OfGeneral, Elem::I64, 1, 3, &[27]),
                at(Op::Store, Elem::I64, 1, 3, near(1, 16)),
                on(Op::OfGeneral, elem, lanes, 4, &[27]),
                at(Op::Store, elem, 1, 4, near(1, 32)),
            ];
            cases.push((case(actions, vec![], lanes, data), expected, format!("general {elem:?} {lanes}")));
        }
        for count in [0, 1, 2, 3, i64::from(lanes) - 1, lanes.into(), 17, 256, 0x1_0000_0000, i64::MAX] {
            let actions = vec![
                general(Op::Argument(0), 1, &[]),
                general(Op::Number(count.max(0)), 2, &[]),
                on(Op::MaskFirst, elem, lanes, 9, &[2]),
                at(Op::Store, elem, lanes, 9, near(1, 0)),
            ];
            let mut expected = bytes(64);
            (0..usize::from(lanes)).for_each(|lane| {
                let byte = if (lane as i64) < count { 0xff } else { 0 };
                expected[lane * each..][..each].fill(byte);
            });
            cases.push((
                case(actions, vec![], lanes, bytes(64)),
                expected,
                format!("first {count} {elem:?} {lanes}"),
            ));
        }
    }
    check(cases);
}

#[test]
fn constants_are_made_as_they_are() {
    let mut random = Random(11);
    let mut numbers = vec![
        0,
        1,
        u64::MAX,
        0x80,
        0xff00,
        0x00ff_0000,
        0xff00_ff00_ff00_ff00,
        0x3f80_0000,
        0xbf80_0000,
        0x4000_0000,
        0x41f8_0000,
        0xc1f8_0000,
        0x3e00_0000,
        0x3f82_0000,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0000,
        0x403f_0000_0000_0000,
        0x3fc0_0000_0000_0000,
        0xc03f_0000_0000_0000,
        0x3ff1_1000_0000_0000,
        0x12ff,
        0x12_ffff,
        0xffff_ed00,
        0xffed_0000,
        0xed00,
        0xffed,
        0xffff_ffed,
        0x8000_0000,
        0x7fff_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x1234_5678,
        0x0101_0101_0101_0101,
        0x7f7f,
        0xabab,
        0xab00_ab00,
        0xff12_ff12,
        0x12ff_12ff,
        1 << 63,
        i64::MAX as u64,
    ];
    // Next to what has an immediate.
    numbers.extend([0x4208_0000, 0x3d80_0000, 0x4040_0000_0000_0000, 0x3fb0_0000_0000_0000, 0x3f84_0000]);
    numbers.extend([0x3ff0_8000_0000_0000, 0x0012_0fff, 0x127f, !0x0012_0fff, !0x127f]);
    numbers.extend((0..40).map(|_| random.next()));
    numbers.extend((0..64).map(|_| (random.next() & 0xff) << random.below(57)));
    numbers.extend((0..64).map(|_| !((random.next() & 0xff) << random.below(57))));
    let mut cases = Vec::new();
    for (elem, lanes) in ELEMS.into_iter().flat_map(|elem| lane_counts(elem).map(move |lanes| (elem, lanes)))
    {
        let mut constants = vec![Constant::Iota(elem)];
        constants.extend(numbers.iter().map(|&bits| Constant::Splat(elem, low(elem, bits))));
        let each = elem.bytes() * usize::from(lanes);
        let mut actions = vec![general(Op::Argument(0), 1, &[])];
        let mut expected = Vec::new();
        for (position, &constant) in constants.iter().enumerate() {
            let position = position as u32;
            // The two ways to ask for one.
            actions.push(match position % 2 {
                0 => Action::Constant { to: 13, constant: position },
                _ => on(Op::Const(position), elem, lanes, 13, &[]),
            });
            actions.push(at(Op::Store, elem, lanes, 13, near(1, (position as usize * each) as i32)));
            expected.extend(constant_bytes(constant, lanes));
        }
        cases.push((
            case(actions, constants, lanes, vec![0xee; expected.len()]),
            expected,
            format!("{elem:?} {lanes}"),
        ));
    }
    check(cases);
}
