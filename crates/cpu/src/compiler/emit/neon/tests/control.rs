//! Control flow, calls, frames and general registers.

use super::super::super::mir::{Class, Cond};
use super::super::super::neon_run::TestKernel;
use super::*;

/// A function with slots.
fn with_slots(actions: Vec<Action>, slots: u32, words: u32) -> Vec<u8> {
    Neon.encode(&Allocated { actions, constants: vec![], lanes: 1, slots, labels: 8, words })
}

/// Stores a general register to a word behind x1, by v0.
fn keep(reg: u8, position: usize) -> [Action; 2] {
    [on(Op::OfGeneral, Elem::I64, 1, 0, &[reg]), at(Op::Store, Elem::I64, 1, 0, near(1, 8 * position as i32))]
}

/// The words of data.
fn words(data: &[u8]) -> Vec<i64> {
    data.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
}

/// Runs one case, which must end well.
fn outcome(code: Vec<u8>, words: Vec<Word>, data: Vec<u8>) -> Option<Vec<u8>> {
    let text = neon_run::disassemble(&code)?.join("\n");
    let outcome = neon_run::run(&[Case { code, words, data, fpcr: 0 }])?.pop()?;
    assert_eq!(outcome.end, End::Status(0), "{text}");
    Some(outcome.data)
}

#[test]
fn numbers_are_made_and_computed() {
    let numbers = [
        0,
        1,
        -1,
        2,
        0xffff,
        0x1_0000,
        -0x1_0000,
        0x1234_5678,
        -0x1234_5678,
        i64::from(i32::MIN),
        i64::from(i32::MAX),
        0x1_0000_0000,
        -0x1_0000_0001,
        0x1234_0000_5678,
        i64::MIN,
        i64::MAX,
        0x7fff_0000_ffff_0000,
        -4096,
        4095,
        0xfff_fff,
    ];
    let mut actions = vec![general(Op::Argument(0), 1, &[])];
    let mut expected = Vec::new();
    let mut store = |actions: &mut Vec<Action>, reg, value: i64| {
        actions.extend(keep(reg, expected.len()));
        expected.push(value);
    };
    for number in numbers {
        actions.push(general(Op::Number(number), 5, &[]));
        store(&mut actions, 5, number);
        for small in
            numbers.iter().filter_map(|&n| i32::try_from(n).ok()).chain([3, 5, 9, 10, 64, -8, 1 << 30])
        {
            actions.push(general(Op::AddNumber(small), 6, &[5]));
            store(&mut actions, 6, number.wrapping_add(small.into()));
            actions.push(general(Op::AddNumber(0), 6, &[5]));
            actions.push(general(Op::AddNumber(small), 6, &[6]));
            store(&mut actions, 6, number.wrapping_add(small.into()));
            actions.push(general(Op::MulNumber(small), 6, &[5]));
            store(&mut actions, 6, number.wrapping_mul(small.into()));
        }
        for other in numbers {
            actions.push(general(Op::Number(other), 19, &[]));
            actions.push(general(Op::GeneralAdd, 6, &[5, 19]));
            store(&mut actions, 6, number.wrapping_add(other));
            actions.push(general(Op::GeneralSub, 6, &[5, 19]));
            store(&mut actions, 6, number.wrapping_sub(other));
            actions.push(general(Op::GeneralMul, 6, &[5, 19]));
            store(&mut actions, 6, number.wrapping_mul(other));
            actions.push(general(Op::GeneralMin, 6, &[5, 19]));
            store(&mut actions, 6, number.min(other));
            actions.push(general(Op::GeneralMax, 19, &[5, 19]));
            store(&mut actions, 19, number.max(other));
        }
    }
    let data = vec![0; 8 * expected.len()];
    let Some(data) = outcome(with_slots(actions, 0, 1), vec![Word::Data(0)], data) else { return };
    assert_eq!(words(&data), expected);
}

#[test]
fn arguments_are_found() {
    let positions = [0, 1, 7, 4095, 4096, 5000];
    let mut args = vec![Word::Data(0)];
    args.extend((1..=5000).map(|n| Word::Number(n * 3)));
    let mut actions = vec![general(Op::Argument(0), 1, &[])];
    for (at, &position) in positions.iter().enumerate() {
        actions.push(general(Op::Argument(position), 27, &[]));
        if position == 0 {
            actions.push(general(Op::GeneralSub, 27, &[27, 1]));
        }
        actions.extend(keep(27, at));
    }
    let Some(data) = outcome(with_slots(actions, 0, 1), args, vec![0; 64]) else { return };
    assert_eq!(words(&data)[..6], positions.map(|position| 3 * i64::from(position)));
}

#[test]
fn jumps_go_where_the_comparison_says() {
    const CONDS: [Cond; 6] = [Cond::Eq, Cond::Ne, Cond::Lt, Cond::Le, Cond::Gt, Cond::Ge];
    let numbers = [0, 1, -1, i64::MIN, i64::MAX];
    let mut cases = Vec::new();
    for (a, b) in numbers.iter().flat_map(|&a| numbers.map(|b| (a, b))) {
        for cond in CONDS {
            let holds = match cond {
                Cond::Eq => a == b,
                Cond::Ne => a != b,
                Cond::Lt => a < b,
                Cond::Le => a <= b,
                Cond::Gt => a > b,
                Cond::Ge => a >= b,
            };
            let mut actions = vec![
                general(Op::Argument(0), 1, &[]),
                general(Op::Number(a), 2, &[]),
                general(Op::Number(b), 3, &[]),
                general(Op::Number(7), 4, &[]),
                Action::JumpIf { cond, a: OperandLocation::Reg(2), b: OperandLocation::Reg(3), to: 1 },
                general(Op::Number(8), 4, &[]),
                Action::Jump(2),
                general(Op::Number(9), 4, &[]),
                Action::Label(1),
                Action::Label(2),
            ];
            actions.extend(keep(4, 0));
            cases.push((actions, if holds { 7 } else { 8 }, format!("{a} {cond:?} {b}")));
        }
    }
    // Which lanes of a mask count: `lanes` of an element, and none above.
    for (elem, lanes) in
        INTEGERS.into_iter().flat_map(|elem| lane_counts(elem).map(move |lanes| (elem, lanes)))
    {
        let held = 16 / elem.bytes() as u8;
        for set in 0..=held {
            let mut actions = vec![general(Op::Argument(0), 1, &[]), general(Op::Number(7), 4, &[])];
            let lane = (i32::from(set) + 1) * elem.bytes() as i32;
            // The data has a lane of ones at 32; behind the lanes there are zeros.
            actions.push(at(Op::Load, Elem::I8, 16, 12, near(1, 32 - lane + elem.bytes() as i32)));
            actions.push(Action::JumpIfNone { mask: 12, elem, lanes, to: 1 });
            actions.push(general(Op::Number(8), 4, &[]));
            actions.push(Action::Label(1));
            actions.extend(keep(4, 0));
            cases.push((actions, if set < lanes { 8 } else { 7 }, format!("lane {set} of {lanes} {elem:?}")));
        }
    }
    for is_large in [false, true] {
        let run = |(actions, ..): &(Vec<Action>, i64, String)| {
            let mut data = vec![0; 64];
            // A lane of ones of any type; lanes before it are not read by the narrower types.
            data[32..40].fill(0xff);
            let mut actions = actions.clone();
            if is_large {
                // More than a conditional jump reaches.
                let far = std::iter::repeat_n(general(Op::GeneralAdd, 9, &[9, 9]), 300_000);
                let at =
                    actions.iter().position(|action| matches!(action, Action::Label(_))).expect("a label");
                actions.splice(at..at, [Action::Jump(5)].into_iter().chain(far).chain([Action::Label(5)]));
            }
            Case { code: with_slots(actions, 0, 1), words: vec![Word::Data(0)], data, fpcr: 0 }
        };
        let few = if is_large { 40 } else { 1 };
        let cases: Vec<_> = cases.iter().step_by(few).collect();
        let jobs: Vec<Case> = cases.iter().map(|case| run(case)).collect();
        let Some(outcomes) = neon_run::run(&jobs) else { return };
        for ((_, expected, name), outcome) in cases.iter().zip(outcomes) {
            assert_eq!((outcome.end, words(&outcome.data)[0]), (End::Status(0), *expected), "{name}");
        }
    }
}

#[test]
fn literals_of_large_functions_are_near() {
    let constants = vec![Constant::Splat(Elem::I64, 0x0123_4567_89ab_cdef), Constant::Iota(Elem::I32)];
    let mut actions = vec![general(Op::Argument(0), 1, &[])];
    for constant in 0..2 {
        actions.push(Action::Constant { to: 3, constant });
        actions.push(at(Op::Store, Elem::I64, 2, 3, near(1, 16 * constant as i32)));
    }
    actions.extend(std::iter::repeat_n(general(Op::GeneralAdd, 9, &[9, 9]), 300_000));
    let code = Neon.encode(&Allocated { actions, constants, lanes: 2, slots: 0, labels: 0, words: 1 });
    assert!(code.len() > 1 << 20);
    let Some(outcome) =
        neon_run::run(&[Case { code, words: vec![Word::Data(0)], data: vec![0; 64], fpcr: 0 }])
    else {
        return;
    };
    let splat = 0x0123_4567_89ab_cdef;
    assert_eq!(words(&outcome[0].data)[..4], [splat, splat, 1 << 32, 3 << 32 | 2]);
}

#[test]
fn slots_keep_registers_wherever_they_are() {
    // Near and far, and where a vector has half its alignment.
    let slots = [0, 16, 24, 40, 256, 4096, 16384, 32752, 32776, 65536, 65544, 200_000];
    let mut actions = vec![general(Op::Argument(0), 1, &[])];
    let all: Vec<u8> = (2..16).chain(19..28).collect();
    for (number, &slot) in slots.iter().enumerate() {
        // Each loses x16 and v31 only if it is what is moved.
        actions.push(general(Op::Number(100 + number as i64), 16, &[]));
        actions.push(on(Op::OfGeneral, Elem::I64, 1, 31, &[16]));
        actions.push(Action::Spill { class: Class::General, slot, from: 16 });
        actions.push(Action::Spill { class: Class::Vector, slot: slot + 300_000, from: 31 });
        actions.extend(keep(16, 2 * slots.len()));
        actions.push(at(Op::Store, Elem::I64, 1, 31, near(1, 8 * (2 * slots.len()) as i32)));
    }
    for &reg in &all {
        actions.push(general(Op::Number(-1), reg, &[]));
    }
    for reg in 2..31 {
        actions.push(on(Op::OfGeneral, Elem::I64, 1, reg, &[2]));
    }
    for (number, &slot) in slots.iter().enumerate() {
        actions.push(Action::Reload { class: Class::General, to: 16, slot });
        actions.push(Action::Reload { class: Class::Mask, to: 30, slot: slot + 300_000 });
        actions.extend(keep(16, 2 * number));
        actions.push(Action::Move { class: Class::Mask, to: 9, from: 30 });
        actions.push(Action::Move { class: Class::Vector, to: 10, from: 9 });
        actions.push(at(Op::Store, Elem::I64, 1, 10, near(1, 8 * (2 * number + 1) as i32)));
    }
    let data = vec![0; 256];
    let Some(data) = outcome(with_slots(actions, 600_000, 1), vec![Word::Data(0)], data) else { return };
    let expected: Vec<i64> = (0..2 * slots.len() as i64).map(|at| 100 + at / 2).collect();
    assert_eq!(words(&data)[..2 * slots.len()], expected);
}

#[test]
fn kernels_are_called_with_registers_and_slots() {
    // The data has the context of `record` at 0, which keeps nine numbers of each of two calls, and that of
    // `status` at 256.
    let mut data = vec![0; 320];
    data[0] = 9;
    let kernel = |kernel, context| [Word::Kernel(kernel), Word::Data(context)];
    let arguments = |stop: u64| {
        let mut words = vec![Word::Number(stop), Word::Data(0)];
        words.extend(kernel(TestKernel::Record, 0));
        words.extend(kernel(TestKernel::Status, 256));
        words
    };
    // In reverse, so that the numbers of the call would overwrite slots that were at the same place.
    let slot = |at: u8| 8 * u32::from(8 - at);
    let location = |at: u8| {
        if at.is_multiple_of(2) { OperandLocation::Reg(at) } else { OperandLocation::Slot(slot(at)) }
    };
    let mut actions = Vec::new();
    for call in 0..2 {
        for at in 0..9_u8 {
            actions.push(general(Op::Number(i64::from(at) + 10 * call), 19, &[]));
            actions.push(Action::Spill { class: Class::General, slot: slot(at), from: 19 });
            actions.push(Action::Move { class: Class::General, to: at, from: 19 });
        }
        actions.push(Action::Call { kernel: 0, args: (0..9).map(location).collect() });
        actions.push(general(Op::Argument(0), 27, &[]));
        actions.push(Action::Spill { class: Class::General, slot: 4096, from: 27 });
        actions.push(Action::Call { kernel: 1, args: [OperandLocation::Slot(4096)].into_iter().collect() });
    }
    let code = with_slots(actions, 4104, 2);
    let case = |stop| Case { code: code.clone(), words: arguments(stop), data: data.clone(), fpcr: 0 };
    let Some(outcomes) = neon_run::run(&[case(0), case(77)]) else { return };
    let numbers = |base: i64| (base..base + 9).collect::<Vec<_>>();
    assert_eq!(outcomes[0].end, End::Status(0));
    let found = words(&outcomes[0].data);
    assert_eq!((found[0], found[1], found[32]), (9, 2, 2));
    assert_eq!(found[2..20], [numbers(0), numbers(10)].concat());
    // The first status that is not 0 is that of the function.
    assert_eq!(outcomes[1].end, End::Status(77));
    let found = words(&outcomes[1].data);
    assert_eq!((found[1], found[32]), (1, 1));
    assert_eq!(found[2..11], numbers(0));
}

/// The form of a call that computes a vector anew: the lanes are behind their address and their number.
#[test]
fn vectors_are_passed_to_kernels_by_their_address() {
    let actions = vec![Action::Apply { kernel: 1, elem: Elem::F64, lanes: 2, to: 9, from: 20 }];
    let Some(text) = neon_run::disassemble(&with_slots(actions, 4096, 3)) else { return };
    let text = text.join("\n");
    let expected = "str q20, [sp, #16]\nadd x16, sp, #0x10\nstr x16, [sp]\nmov x16, #0x2\nstr x16, [sp, #8]\n\
        ldr x0, [x28, #48]\nldr x16, [x28, #40]\nmov x1, sp\nblr x16\nldr q9, [sp, #16]\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn vectors_are_computed_anew_by_kernels() {
    // `record` keeps the number of lanes of each call, and loses all registers; the lanes stay.
    let mut data = vec![0; 256];
    data[0] = 2;
    data[128..144].copy_from_slice(&[7; 16]);
    let mut actions = vec![general(Op::Argument(0), 1, &[]), at(Op::Load, Elem::F32, 4, 12, near(1, 0))];
    actions.push(Action::Apply { kernel: 0, elem: Elem::F32, lanes: 4, to: 3, from: 12 });
    actions.push(general(Op::Argument(0), 1, &[]));
    actions.push(at(Op::Store, Elem::F32, 4, 3, near(1, 16)));
    let words_of = vec![Word::Data(128), Word::Kernel(TestKernel::Record), Word::Data(0)];
    let Some(found) = outcome(with_slots(actions, 64, 1), words_of, data) else { return };
    assert_eq!(found[144..160], [7; 16]);
    assert_eq!((words(&found)[1], words(&found)[3]), (1, 4));
}

#[test]
fn modes_of_the_caller_do_not_matter() {
    let constants = vec![
        Constant::Splat(Elem::F32, 1),
        Constant::Splat(Elem::F32, u64::from(1.0_f32.to_bits())),
        Constant::Splat(Elem::F32, u64::from(1e-10_f32.to_bits())),
    ];
    let mut actions = vec![general(Op::Argument(0), 1, &[])];
    actions.extend((0..3).map(|constant| Action::Constant { to: constant as u8, constant }));
    // Subnormals are kept, and sums are rounded to nearest.
    actions.push(on(Op::Add, Elem::F32, 4, 3, &[0, 0]));
    actions.push(on(Op::Add, Elem::F32, 1, 4, &[1, 2]));
    actions.push(at(Op::Store, Elem::F32, 1, 3, near(1, 0)));
    actions.push(at(Op::Store, Elem::F32, 1, 4, near(1, 4)));
    let code = Neon.encode(&Allocated { actions, constants, lanes: 4, slots: 0, labels: 0, words: 1 });
    // Flush to zero, and the modes of rounding.
    let modes = [0, 1 << 24, 1 << 22, 2 << 22, 3 << 22, 1 << 24 | 1 << 22];
    let case = |fpcr| Case { code: code.clone(), words: vec![Word::Data(0)], data: vec![0; 8], fpcr };
    let Some(outcomes) = neon_run::run(&modes.map(case)) else { return };
    for outcome in outcomes {
        assert_eq!(outcome.end, End::Status(0));
        assert_eq!(words(&outcome.data), [i64::from(1.0_f32.to_bits()) << 32 | 2]);
    }
}

#[test]
fn the_runner_sees_what_goes_wrong() {
    let raw = |words: &[u32]| Case {
        code: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ..Case::default()
    };
    let ret = 0xd65f_03c0;
    let cases = [
        // mov w0, #3
        raw(&[0x5280_0060, ret]),
        // ldr x0, [xzr], by a register that is 0
        raw(&[0xd280_0001, 0xf940_0020, ret]),
        // udf
        raw(&[0]),
        // mov x19, #0
        raw(&[0xd280_0013, ret]),
        // movi v15.2d, #0
        raw(&[0x6f00_e40f, ret]),
        // sub sp, sp, #16
        raw(&[0xd100_43ff, ret]),
        // ldr w0, [x0]: no words, but the runner has room for one
        raw(&[0xb940_0000, ret]),
    ];
    let Some(outcomes) = neon_run::run(&cases) else { return };
    let ends: Vec<End> = outcomes.iter().map(|outcome| outcome.end).collect();
    let (segv, ill) = (11, 4);
    let expected = [
        End::Status(3),
        End::Signal(segv),
        End::Signal(ill),
        End::Lost(1),
        End::Lost(18),
        End::Lost(20),
        End::Status(0),
    ];
    assert_eq!(ends, expected);
}

#[test]
fn kernels_do_the_same_on_both_machines() {
    // Contexts of three kernels at 0, 64 and 128, and 40 bytes at 200 to mix into those at 256.
    let mut data: Vec<u8> = (0..320).map(|at| if at < 192 { 0 } else { at as u8 }).collect();
    data[0] = 2;
    let mut args = vec![Word::Number(3), Word::Number(40), Word::Data(256), Word::Data(200), Word::Number(0)];
    for (kernel, context) in [(TestKernel::Record, 0), (TestKernel::Mix, 64), (TestKernel::Status, 128)] {
        args.extend([Word::Kernel(kernel), Word::Data(context)]);
    }
    let call = |kernel, words: &[u8]| {
        let mut actions: Vec<Action> =
            words.iter().map(|&word| general(Op::Argument(word.into()), word + 1, &[])).collect();
        let args = words.iter().map(|&word| OperandLocation::Reg(word + 1)).collect();
        actions.push(Action::Call { kernel, args });
        actions
    };
    let actions = [call(0, &[0, 1]), call(1, &[2, 3, 1]), call(2, &[4]), call(0, &[1, 4])].concat();
    let Some(found) = outcome(with_slots(actions, 0, 5), args, data.clone()) else { return };

    let start = data.as_mut_ptr();
    let context = |at| start.wrapping_add(at).cast::<()>();
    let address = |at| start.wrapping_add(at) as u64;
    // SAFETY: contexts and bytes are parts of the data, as their kernels ask.
    let statuses = unsafe {
        [
            neon_run::record(context(0), [3, 40].as_ptr()),
            neon_run::mix(context(64), [address(256), address(200), 40].as_ptr()),
            neon_run::status(context(128), [0].as_ptr()),
            neon_run::record(context(0), [40, 0].as_ptr()),
        ]
    };
    assert_eq!((statuses, found), ([0; 4], data));
}
