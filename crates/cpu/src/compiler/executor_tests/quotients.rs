//! Quotients and remainders by divisors that are known: machine code multiplies by reciprocals.

use super::control::row;
use super::*;
use crate::compiler::ir::{Builder, Op};

/// A signed integer of an element's width, from its low bits.
fn signed(elem: Elem, bits: u64) -> i64 {
    let unused = 64 - 8 * elem.bytes() as u32;
    (bits << unused) as i64 >> unused
}

fn unsigned(elem: Elem, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - 8 * elem.bytes()))
}

/// What an op gives by a divisor that is not 0.
fn expected(op: Op, elem: Elem, dividend: u64, divisor: u64) -> u64 {
    let (a, b) = (signed(elem, dividend), signed(elem, divisor));
    let (x, y) = (unsigned(elem, dividend), unsigned(elem, divisor));
    if op == Op::DivS {
        a.wrapping_div(b) as u64
    } else if op == Op::RemS {
        a.wrapping_rem(b) as u64
    } else if op == Op::DivU {
        x / y
    } else {
        x % y
    }
}

#[test]
fn known_divisors_give_the_quotients_of_integers() {
    let ops = [Op::DivS, Op::RemS, Op::DivU, Op::RemU];
    for elem in [Elem::I8, Elem::I16, Elem::I32, Elem::I64] {
        let bits = 8 * elem.bytes() as u32;
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let near = |power: u32| [(1_u64 << power).wrapping_sub(1), 1 << power, (1 << power) + 1];
        let mut divisors: Vec<u64> = [bits - 1, bits / 2, bits / 2 + 3].into_iter().flat_map(near).collect();
        divisors.extend([1, 2, 3, 5, 7, 10, 49, 97, 100]);
        divisors.extend((0..12).map(|at| next() >> (64 - bits + at % bits)));
        divisors.extend(divisors.clone().into_iter().map(u64::wrapping_neg));
        divisors.retain(|&divisor| unsigned(elem, divisor) != 0);
        for divisor in divisors {
            let mut dividends: Vec<u64> = vec![0, 1, u64::MAX, 1 << (bits - 1), (1 << (bits - 1)) - 1];
            for _ in 0..24 {
                let multiple = (next() >> (64 - bits) >> (next() % u64::from(bits))).wrapping_mul(divisor);
                dividends.extend([next(), multiple, multiple.wrapping_sub(1), multiple.wrapping_add(1)]);
            }
            let mut b = Builder::new(5, 1, 0);
            let extent = b.param(0, Elem::Index);
            b.begin_lanes(extent);
            let a = b.load(elem, row(0, elem));
            let known = b.bits(elem, divisor);
            for (at, op) in ops.into_iter().enumerate() {
                let result = b.op(op, [a, known]);
                b.store(result, row(at as u16 + 1, elem));
            }
            b.end_lanes();
            let function = b.finish();
            let call = |results: &dyn Fn(Op, u64) -> u64| {
                let mut call = Call::new();
                call.buffer(elem, 1, dividends.iter().copied());
                for (at, op) in ops.into_iter().enumerate() {
                    call.buffer(elem, at, dividends.iter().map(|&dividend| results(op, dividend)));
                }
                call.param(dividends.len() as u64)
            };
            let after = call(&|op, dividend| expected(op, elem, dividend, divisor));
            let trials = [Trial { call: call(&|_, _| 0), after, status: 0 }];
            check_all_executors(&function, &trials);
        }
    }
}
