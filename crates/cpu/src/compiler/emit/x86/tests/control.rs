//! General registers, jumps, calls and frames, on the machine.

use std::arch::asm;

use super::harness::{Bytes, Executable, FunctionBuilder, Random, allocated_inst, at};
use crate::compiler::emit::mir::{Class, Cond, Elem, Op};
use crate::compiler::emit::{Action, AllocatedInst, OperandLocation, Target};

const CONDITIONS: [Cond; 6] = [Cond::Eq, Cond::Ne, Cond::Lt, Cond::Le, Cond::Gt, Cond::Ge];

fn holds(cond: Cond, a: i64, b: i64) -> bool {
    match cond {
        Cond::Eq => a == b,
        Cond::Ne => a != b,
        Cond::Lt => a < b,
        Cond::Le => a <= b,
        Cond::Gt => a > b,
        Cond::Ge => a >= b,
    }
}

fn number(random: &mut Random) -> i64 {
    let any = random.next() as i64;
    match random.below(6) {
        0 => any,
        1 => any >> 40,
        2 => any >> 58,
        3 => i64::from(any as u32),
        4 => i64::from(any as i32),
        _ => random.choose(&[0, 1, -1, 127, 128, -128, -129, i64::MIN, i64::MAX, 1 << 31, 1 << 32]),
    }
}

/// An instruction of general registers.
fn general(op: Op, dst: u8, a: OperandLocation, b: OperandLocation) -> AllocatedInst {
    AllocatedInst { dst, src: [a, b, OperandLocation::None], ..allocated_inst(op, Elem::Index, 1) }
}

fn expected(op: Op, a: i64, b: i64) -> i64 {
    match op {
        Op::Number(number) => number,
        Op::AddNumber(number) => a.wrapping_add(number.into()),
        Op::MulNumber(number) => a.wrapping_mul(number.into()),
        Op::GeneralAdd => a.wrapping_add(b),
        Op::GeneralSub => a.wrapping_sub(b),
        Op::GeneralMul => a.wrapping_mul(b),
        Op::GeneralMin => a.min(b),
        Op::GeneralMax => a.max(b),
        _ => a,
    }
}

/// Ops on general registers.
pub(crate) fn check_generals(target: &dyn Target) {
    let mut random = Random(8);
    let generals = target.limits().generals;
    for _ in 0..3000 {
        let by = number(&mut random);
        let ops = [
            Op::Number(by),
            Op::AddNumber(by as i32),
            Op::MulNumber(random.choose(&[by as i32, 0, 1, 2, 8, 64, -1, 3])),
            Op::GeneralAdd,
            Op::GeneralSub,
            Op::GeneralMul,
            Op::GeneralMin,
            Op::GeneralMax,
        ];
        let op = random.choose(&ops);
        let [a, b, dst] = [0; 3].map(|_: u8| random.choose(generals));
        let inst = crate::compiler::emit::mir::Inst {
            op,
            elem: Elem::Index,
            lanes: 1,
            dst: super::harness::NONE,
            src: [super::harness::NONE; 3],
            mem: crate::compiler::emit::mir::Mem::NONE,
            part: crate::compiler::emit::mir::Part::All,
        };
        let slots = target.constraint(&inst).slot;
        let in_slot = random.below(3);
        let mut builder = FunctionBuilder::new(target, 1, 8);
        let mut locations = [OperandLocation::Reg(a), OperandLocation::Reg(b)];
        // The other operand may be in the register that the spilled one had.
        for operand in [in_slot, 1 - in_slot.min(1), 0, 1] {
            if operand > 1 || matches!(locations[operand], OperandLocation::Slot(_)) {
                continue;
            }
            builder.argument([a, b][operand], operand as u16);
            if slots >> operand & 1 != 0 && operand == in_slot {
                builder.spill(Class::General, 64 + 8 * operand as u32, [a, b][operand]);
                locations[operand] = OperandLocation::Slot(64 + 8 * operand as u32);
            }
        }
        builder.push(general(op, dst, locations[0], locations[1]));
        // The first register cannot be stored.
        builder.function.actions.push(Action::Move { class: Class::General, to: 1, from: dst });
        builder.store_general(1, 2);
        let code = builder.finish();
        for _ in 0..4 {
            let (mut x, y) = (number(&mut random), number(&mut random));
            if a == b && locations[0] == locations[1] {
                x = y;
            }
            let mut result = 0u64;
            assert_eq!(code.run(&[x as u64, y as u64, &raw mut result as u64]), 0);
            let expected = expected(op, x, y);
            assert_eq!(result as i64, expected, "{op:?} of {x} and {y}, {locations:?}, {dst}");
        }
    }
}

/// Loops and conditions, near and far.
pub(crate) fn check_jumps(target: &dyn Target) {
    let mut random = Random(10);
    for cond in CONDITIONS {
        for far in [0, 60] {
            let mut builder = FunctionBuilder::new(target, 1, 8);
            builder.function.labels = 4;
            // A sum of 0, 1, .. up to the argument.
            let [sum, count, most, dst] = [1, 12, 8, 9];
            builder.argument(most, 0);
            builder.push(general(Op::Number(0), sum, OperandLocation::None, OperandLocation::None));
            builder.push(general(Op::Number(0), count, OperandLocation::None, OperandLocation::None));
            builder.function.actions.push(Action::Label(0));
            builder.push(general(
                Op::GeneralAdd,
                sum,
                OperandLocation::Reg(sum),
                OperandLocation::Reg(count),
            ));
            builder.push(general(
                Op::AddNumber(1),
                count,
                OperandLocation::Reg(count),
                OperandLocation::None,
            ));
            for _ in 0..far {
                builder.push(general(
                    Op::Number(i64::MAX),
                    dst,
                    OperandLocation::None,
                    OperandLocation::None,
                ));
            }
            let jump = Action::JumpIf {
                cond: Cond::Le,
                a: OperandLocation::Reg(count),
                b: OperandLocation::Reg(most),
                to: 0,
            };
            builder.function.actions.push(jump);
            builder.store_general(sum, 1);
            // And whether two numbers compare so.
            builder.argument(10, 2);
            builder.argument(13, 3);
            builder.push(general(Op::Number(0), dst, OperandLocation::None, OperandLocation::None));
            builder.function.actions.push(Action::JumpIf {
                cond,
                a: OperandLocation::Reg(10),
                b: OperandLocation::Reg(13),
                to: 2,
            });
            builder.function.actions.push(Action::Jump(1));
            builder.function.actions.push(Action::Label(2));
            builder.push(general(Op::Number(1), dst, OperandLocation::None, OperandLocation::None));
            builder.function.actions.push(Action::Label(1));
            builder.store_general(dst, 4);
            let code = builder.finish();
            for _ in 0..20 {
                let (a, b) = (number(&mut random), number(&mut random));
                let b = if random.below(2) == 0 { a } else { b };
                let (mut sum, mut result) = (0u64, 0u64);
                let args = [10, &raw mut sum as u64, a as u64, b as u64, &raw mut result as u64];
                assert_eq!(code.run(&args), 0);
                assert_eq!(sum, 55);
                assert_eq!(result != 0, holds(cond, a, b), "{a} {cond:?} {b}");
            }
        }
    }
}

/// Adds up its arguments to where its context points; the status is the first argument's upper half.
extern "C" fn kernel(context: *mut (), args: *const u64) -> u32 {
    // SAFETY: the test calls it with three arguments and a number as its context.
    let (args, sum) = unsafe { (std::slice::from_raw_parts(args, 3), &mut *context.cast::<u64>()) };
    *sum += args[0] + 10 * args[1] + 100 * args[2];
    // The arguments are behind slots, at the same distance from the end of the stack.
    assert_eq!(args.as_ptr() as u64 % 64, 0);
    (args[0] >> 32) as u32
}

/// Calls, and what they return.
pub(crate) fn check_calls(target: &dyn Target) {
    for status in [0u64, 7] {
        let mut builder = FunctionBuilder::new(target, 8, 5);
        builder.argument(6, 0);
        builder.argument(7, 1);
        builder.argument(13, 2);
        builder.spill(Class::General, 512, 7);
        let args = [OperandLocation::Reg(6), OperandLocation::Slot(512), OperandLocation::Reg(13)]
            .into_iter()
            .collect();
        builder.function.actions.push(Action::Call { kernel: 1, args });
        builder.push(general(Op::Number(3), 2, OperandLocation::None, OperandLocation::None));
        builder.store_general(2, 3);
        let (mut sum, mut done) = (0u64, 0u64);
        let kernel_at = kernel as *const () as u64;
        let mut args = [1 | status << 32, 2, 3, &raw mut done as u64, 0, 0, 0, 0, 0];
        args[7] = kernel_at;
        args[8] = &raw mut sum as u64;
        assert_eq!(u64::from(builder.finish().run(&args)), status);
        assert_eq!(sum as u32, 321);
        assert_eq!(done, if status == 0 { 3 } else { 0 });
    }
}

/// Adds its context's number to each lane.
extern "C" fn raise(context: *mut (), args: *const u64) -> u32 {
    // SAFETY: the test calls it with the address of lanes and their number.
    let lanes = unsafe {
        let (start, count) = (*args as *mut f32, *args.add(1) as usize);
        assert_eq!(start as u64 % 64, 0);
        std::slice::from_raw_parts_mut(start, count)
    };
    lanes.iter_mut().for_each(|lane| *lane += context.addr() as f32);
    0
}

/// Calls that compute the lanes of a vector anew.
pub(crate) fn check_applications(target: &dyn Target) {
    let most = target.limits().vector_bytes / 4;
    for lanes in [1, most / 2, most] {
        let lanes = lanes as u8;
        let mut builder = FunctionBuilder::new(target, most as u8, 2);
        builder.load(7, 0);
        builder.spill(Class::Vector, 64, 7);
        builder.function.actions.push(Action::Apply { kernel: 1, elem: Elem::F32, lanes, to: 9, from: 7 });
        builder.reload(Class::Vector, 7, 64);
        let src = [OperandLocation::Reg(9), OperandLocation::Reg(7), OperandLocation::None];
        builder.push(AllocatedInst { dst: 3, src, ..allocated_inst(Op::Sub, Elem::F32, most as u8) });
        builder.store(3, 1);
        let from = Bytes(std::array::from_fn(|at| (at as f32 / 4.0).to_le_bytes()[at % 4]));
        let mut to = Bytes([0; 64]);
        let kernel = raise as *const () as u64;
        let args = [&raw const from as u64, &raw mut to as u64, 0, 0, kernel, 5];
        assert_eq!(builder.finish().run(&args), 0);
        for lane in 0..usize::from(lanes) {
            assert_eq!(f32::from_bits(to.lane(lane, Elem::F32) as u32), 5.0, "{lane} of {lanes}");
        }
    }
}

/// Functions keep the registers and the floating-point control of the caller, and have their own.
pub(crate) fn check_frames(target: &dyn Target) {
    for slots in [0u32, 64, 8192, 100_000] {
        for used in [&[0u8, 1][..], &[12, 14], &[12, 13, 14, 15]] {
            let mut builder = FunctionBuilder::new(target, 1, 8);
            builder.function.slots = slots.max(64);
            for &reg in used {
                builder.push(general(Op::Number(-5), reg, OperandLocation::None, OperandLocation::None));
            }
            // A product that is below the normal numbers.
            builder.argument(0, 0);
            builder.push(AllocatedInst { dst: 3, mem: at(0), ..allocated_inst(Op::Load, Elem::F32, 1) });
            let src = [OperandLocation::Reg(3), OperandLocation::Reg(3), OperandLocation::None];
            builder.push(AllocatedInst { dst: 3, src, ..allocated_inst(Op::Mul, Elem::F32, 1) });
            builder.argument(0, 1);
            let src = [OperandLocation::Reg(3), OperandLocation::None, OperandLocation::None];
            builder.push(AllocatedInst { src, mem: at(0), ..allocated_inst(Op::Store, Elem::F32, 1) });
            if slots > 64 {
                builder.spill(Class::Vector, slots / 64 * 64 - 64, 3);
            }
            let code = builder.finish();
            for control in [0x1f80u32, 0x9fc0, 0x7f80, 0x1fbf] {
                let (small, mut result) = (1e-20f32, 0f32);
                let after = run_kept(&code, control, &[&raw const small as u64, &raw mut result as u64]);
                assert_eq!(result, 1e-20f32 * 1e-20f32);
                assert_eq!(after & 0xffc0, control & 0xffc0);
            }
        }
    }
}

/// Runs code with numbers in the registers that it must keep, and a floating-point control; gives the latter.
fn run_kept(code: &Executable, control: u32, args: &[u64]) -> u32 {
    let (mut after, mut before) = (control, 0u32);
    let mut kept = [11u64, 12, 13, 14, 15, 16];
    // SAFETY: the block keeps the registers that it changes, and the stack is aligned for the call.
    unsafe {
        asm!(
            "stmxcsr [rdx]",
            "ldmxcsr [rcx]",
            "push rbx",
            "push rbp",
            "push rsi",
            "push rdx",
            "push rcx",
            "push rsi",
            "mov rbx, [rsi]",
            "mov rbp, [rsi + 8]",
            "mov r12, [rsi + 16]",
            "mov r13, [rsi + 24]",
            "mov r14, [rsi + 32]",
            "mov r15, [rsi + 40]",
            "call rax",
            "pop rax",
            "mov [rax], rbx",
            "mov [rax + 8], rbp",
            "mov [rax + 16], r12",
            "mov [rax + 24], r13",
            "mov [rax + 32], r14",
            "mov [rax + 40], r15",
            "pop rax",
            "stmxcsr [rax]",
            "pop rax",
            "ldmxcsr [rax]",
            "pop rax",
            "pop rbp",
            "pop rbx",
            in("rdi") args.as_ptr(),
            inlateout("rax") code.entry() => _,
            in("rsi") kept.as_mut_ptr(),
            in("rdx") &raw mut before,
            in("rcx") &raw mut after,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            clobber_abi("sysv64"),
        );
    }
    assert_eq!(kept, [11, 12, 13, 14, 15, 16]);
    after
}
