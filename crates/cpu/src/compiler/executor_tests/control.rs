//! Loops, conditions, rows and calls in one function.

use smallvec::SmallVec;

use super::*;
use crate::compiler::ir::{Access, Builder, Call as IrCall, CallArg, Cmp, Conv, Op, Reduce, Val};

/// The elements of a buffer, one for each lane.
pub(super) fn row(buffer: u16, elem: Elem) -> Access {
    let lane = elem.bytes() as i64;
    Access { buffer, offset: 0, terms: SmallVec::new(), lane, is_streaming: false }
}

/// The element at a position.
pub(super) fn at(buffer: u16, elem: Elem, position: i64) -> Access {
    let offset = elem.bytes() as i64 * position;
    Access { buffer, offset, terms: SmallVec::new(), lane: 0, is_streaming: false }
}

/// An access so many elements further for each step of an index.
pub(super) fn stepped(mut access: Access, elem: Elem, index: Val, elements: usize) -> Access {
    access.terms.push((index, (elements * elem.bytes()) as i64));
    access
}

/// The sum of what the elements of a row give, as an accumulator of so many lanes has it.
pub(super) fn lane_sum<I: IntoIterator<Item = f32>>(
    row: &[f32],
    lanes: usize,
    of_element: impl Fn(&f32) -> I,
) -> f32 {
    let mut sums = vec![-0.0; lanes];
    for (at, x) in row.iter().enumerate() {
        of_element(x).into_iter().for_each(|x| sums[at % lanes] += x);
    }
    while sums.len() > 1 {
        let upper = sums.split_off(sums.len() / 2);
        sums.iter_mut().zip(upper).for_each(|(sum, x)| *sum += x);
    }
    sums[0]
}

/// Numbers whose sums depend on the order.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|at| (at * 37 % 101) as f32 * 0.173 - 8.3).collect()
}

/// A `while` over rows: each is summed, a condition on the sum decides what is stored, and a kernel says whether to go
/// on.
fn sums_of_rows(columns: usize, lanes: u16, is_known: bool) -> Function {
    let mut b = Builder::new(4, 3, 1);
    let (rows, limit) = (b.param(0, Elem::Index), b.param(2, Elem::F32));
    let extent = if is_known { b.index(columns as i64) } else { b.param(1, Elem::Index) };
    let (zero, none) = (b.f32(0.0), b.index(0));
    let (row_at, carried) = b.begin_loop(None, &[(zero, false), (none, false)]);
    let has_row = b.compare(Cmp::Lt, row_at, rows);
    b.while_(has_row);
    let is_below = b.compare(Cmp::Le, carried[0], limit);
    b.while_(is_below);
    let sum = b.accumulator(Reduce::Add, Elem::F32, lanes);
    b.begin_lanes(extent);
    let x = b.load(Elem::F32, stepped(row(0, Elem::F32), Elem::F32, row_at, columns));
    b.reduce(sum, x);
    b.end_lanes();
    let is_negative = b.compare(Cmp::Lt, sum, zero);
    b.begin_if(is_negative);
    let size = b.sub(zero, sum);
    let more = b.op(Op::Add, [carried[1], row_at]);
    b.begin_else();
    let half = b.f32(0.5);
    let half = b.mul(sum, half);
    let y = b.end_if(&[(size, half), (more, carried[1])]);
    b.store(y[0], stepped(at(2, Elem::F32, 0), Elem::F32, row_at, 1));
    let code = b.load(Elem::I64, stepped(at(1, Elem::I64, 0), Elem::I64, row_at, 1));
    let code = b.convert(Conv::ToIndex, Elem::Index, code);
    b.call(IrCall { kernel: 0, args: SmallVec::from_slice(&[CallArg::Index(code)]) });
    let total = b.add(carried[0], y[0]);
    b.end_loop(&[(carried[0], total), (carried[1], y[1])]);
    let total = b.convert(Conv::Float, Elem::F64, carried[0]);
    b.store(total, at(3, Elem::F64, 0));
    let negative = b.convert(Conv::OfIndex, Elem::I64, carried[1]);
    let negative = b.convert(Conv::FloatOfS, Elem::F64, negative);
    b.store(negative, at(3, Elem::F64, 1));
    let trips = b.convert(Conv::OfIndex, Elem::I64, row_at);
    let trips = b.convert(Conv::FloatOfS, Elem::F64, trips);
    b.store(trips, at(3, Elem::F64, 2));
    b.finish()
}

#[test]
fn a_while_holds_a_condition_a_row_sum_and_a_call() {
    const ROWS: usize = 5;
    for (columns, lanes) in [(1, 16), (16, 16), (37, 16), (255, 16), (256, 64), (391, 64)] {
        let x = numbers(ROWS * columns);
        let mut trials = Vec::new();
        // How many rows, where the total ends the loop, and the kernel's answer to each row.
        for (rows, limit, codes) in [
            (ROWS, f32::INFINITY, [0; ROWS]),
            (0, f32::INFINITY, [7; ROWS]),
            (ROWS, -1.0, [7; ROWS]),
            (ROWS, 60.0, [0; ROWS]),
            (ROWS, f32::INFINITY, [0, 3, 0, 0, 4]),
            (ROWS, f32::INFINITY, [i64::from(u32::MAX), 3, 0, 0, 4]),
        ] {
            let call = |y: [f32; ROWS], numbers: [f64; 3], calls: u64| {
                Call::new()
                    .with(&x)
                    .with(&codes)
                    .with(&y)
                    .with(&numbers)
                    .param(rows as u64)
                    .param(columns as u64)
                    .param(limit.to_bits().into())
                    .kernel(TestKernel::Status, &[calls])
            };
            let (before, mut numbers) = ([0.25; ROWS], [-1.0; 3]);
            let (mut y, mut total, mut negative, mut calls, mut status) = (before, 0.0f32, 0, 0, 0);
            while calls < rows && total <= limit && status == 0 {
                let sum = lane_sum(&x[calls * columns..][..columns], lanes.into(), |&x| [x]);
                y[calls] = if sum < 0.0 { 0.0 - sum } else { sum * 0.5 };
                negative += if sum < 0.0 { calls } else { 0 };
                status = codes[calls] as Status;
                calls += 1;
                total += y[calls - 1];
            }
            if status == 0 {
                numbers = [total.into(), negative as f64, calls as f64];
            }
            let after = call(y, numbers, calls as u64);
            trials.push(Trial { call: call(before, [-1.0; 3], 0), after, status });
        }
        for is_known in [false, true] {
            check_all_executors(&sums_of_rows(columns, lanes, is_known), &trials);
        }
    }
}

#[test]
fn a_row_may_have_no_elements() {
    let mut b = Builder::new(1, 1, 0);
    let extent = b.param(0, Elem::Index);
    let (sum, least) = (b.accumulator(Reduce::Add, Elem::F32, 16), b.accumulator(Reduce::Min, Elem::F32, 16));
    b.begin_lanes(extent);
    let x = b.load(Elem::F32, row(0, Elem::F32));
    b.reduce(sum, x);
    b.reduce(least, x);
    b.store(x, row(0, Elem::F32));
    b.end_lanes();
    b.store(sum, at(0, Elem::F32, 0));
    b.store(least, at(0, Elem::F32, 1));
    let trial = |extent: i64| Trial {
        call: Call::new().with(&[5.0f32, 6.0]).param(extent as u64),
        after: Call::new().with(&[-0.0f32, f32::INFINITY]).param(extent as u64),
        status: 0,
    };
    check_all_executors(&b.finish(), &[trial(0), trial(-1), trial(-1000)]);
}

/// Loops in loops: the trips of the inner one depend on the outer one, and both carry values, of which two change
/// places.
#[test]
fn loops_nest_and_carry_values() {
    let mut b = Builder::new(2, 2, 0);
    let (trips, most) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (zero, one, half) = (b.f64(0.0), b.f64(1.0), b.f64(0.5));
    let start = b.index(100);
    let (i, outer) = b.begin_loop(Some(trips), &[(zero, false), (one, false), (zero, false), (start, false)]);
    let (j, inner) = b.begin_loop(Some(i), &[(outer[0], false), (outer[3], false)]);
    let stops = b.compare(Cmp::Le, j, most);
    b.while_(stops);
    let x = b.load(Elem::F64, stepped(stepped(at(0, Elem::F64, 0), Elem::F64, i, 1), Elem::F64, j, 2));
    let next = b.fma(inner[0], half, x);
    let position = b.sub(inner[1], j);
    b.end_loop(&[(inner[0], next), (inner[1], position)]);
    // The counter stays behind the loop.
    let count = b.convert(Conv::OfIndex, Elem::I64, j);
    b.store(count, stepped(at(1, Elem::I64, 0), Elem::I64, i, 1));
    b.end_loop(&[(outer[0], inner[0]), (outer[1], outer[2]), (outer[2], outer[1]), (outer[3], inner[1])]);
    for (place, &value) in outer[..3].iter().enumerate() {
        let bits = b.to_bits(value);
        b.store(bits, at(1, Elem::I64, 8 + place as i64));
    }
    let position = b.convert(Conv::OfIndex, Elem::I64, outer[3]);
    b.store(position, at(1, Elem::I64, 11));
    let count = b.convert(Conv::OfIndex, Elem::I64, i);
    b.store(count, at(1, Elem::I64, 12));
    let function = b.finish();
    let x: Vec<f64> = (0..32).map(|x| f64::from(x * 7 % 13) / 3.0).collect();
    let trial = |trips: usize, most: i64| {
        let call = |y: [i64; 13]| Call::new().with(&x).with(&y).param(trips as u64).param(most as u64);
        let mut y = [-7; 13];
        let (mut sum, mut others, mut position) = (0.0f64, [1.0f64, 0.0], 100);
        for i in 0..trips {
            let mut j = 0;
            while j < i && j as i64 <= most {
                sum = sum.mul_add(0.5, x[i + 2 * j]);
                position -= j as i64;
                j += 1;
            }
            y[i] = j as i64;
            others.swap(0, 1);
        }
        let numbers = [sum, others[0], others[1]].map(|x| x.to_bits() as i64);
        y[8..].copy_from_slice(&[numbers[0], numbers[1], numbers[2], position, trips as i64]);
        Trial { call: call([-7; 13]), after: call(y), status: 0 }
    };
    check_all_executors(
        &function,
        &[trial(0, 99), trial(1, 99), trial(2, 99), trial(8, 99), trial(8, 2), trial(5, -1)],
    );
}

/// A kernel is called with addresses and an index, in the inner of two loops and under a condition; values of all kinds
/// live on across the call.
#[test]
fn kernels_get_addresses_and_indices() {
    const ROWS: usize = 3;
    let mut b = Builder::new(3, 4, 2);
    let (trips, length) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (read, written) = (b.param(2, Elem::Index), b.param(3, Elem::Index));
    let (zero, one) = (b.f64(0.0), b.f64(1.0));
    let (i, outer) = b.begin_loop(Some(trips), &[(zero, false)]);
    let x = b.load(Elem::F64, stepped(at(0, Elem::F64, 0), Elem::F64, i, 4));
    let is_large = b.compare(Cmp::Lt, one, x);
    let (j, inner) = b.begin_loop(Some(length), &[(outer[0], false)]);
    b.begin_if(is_large);
    let [two, eight, long] = [2, 8, 32].map(|bytes| b.index(bytes));
    let (before, short) = (b.mul(i, eight), b.mul(j, two));
    let to = b.add(written, before);
    let to = b.add(to, short);
    let before = b.mul(i, long);
    let from = b.add(read, before);
    let bytes = b.add(j, length);
    b.call(IrCall { kernel: 0, args: SmallVec::from_slice(&[to, from, bytes].map(CallArg::Index)) });
    b.end_if(&[]);
    let twice = b.add(x, x);
    let y = b.select(is_large, twice, x);
    let sum = b.add(inner[0], y);
    b.end_loop(&[(inner[0], sum)]);
    let place = b.sub(trips, i);
    let minus = b.index(-1);
    let below = b.add(i, minus);
    b.call(IrCall {
        kernel: 1,
        args: SmallVec::from_slice(&[CallArg::Index(place), CallArg::Index(below), CallArg::Index(length)]),
    });
    b.end_loop(&[(outer[0], inner[0])]);
    b.store(outer[0], at(2, Elem::F64, 0));
    let function = b.finish();
    let x: Vec<f64> = (0..4 * ROWS).map(|at| [0.5, 3.25, 1.5][at / 4] + at as f64 % 4.0).collect();
    let trial = |trips: usize, length: usize| {
        let call = |bytes: &[i8], sum: f64, mixed: u64, record: &[u64]| {
            let call = Call::new().with(&x).with(bytes).with(&[sum]);
            call.param(trips as u64)
                .param(length as u64)
                .address_of(0)
                .address_of(1)
                .kernel(TestKernel::Mix, &[mixed])
                .kernel(TestKernel::Record, record)
        };
        let before: Vec<i8> = (0..8 * ROWS + 8).map(|at| at as i8).collect();
        let (mut bytes, mut sum, mut mixed) = (before.clone(), 0.0, 0);
        let mut record = vec![0; 2 + 3 * ROWS];
        record[0] = 3;
        let first = record.clone();
        for i in 0..trips {
            let number = x[4 * i];
            for j in 0..length {
                if number > 1.0 {
                    let from: Vec<u8> = x[4 * i..].iter().flat_map(|x| x.to_le_bytes()).collect();
                    for at in 0..j + length {
                        let to = &mut bytes[8 * i + 2 * j + at];
                        *to = to.wrapping_mul(31).wrapping_add(from[at] as i8);
                    }
                    mixed += (j + length) as u64;
                }
                sum += if number > 1.0 { number + number } else { number };
            }
            record[1] += 1;
            record[2 + 3 * i..][..3].copy_from_slice(&[
                (trips - i) as u64,
                (i as u64).wrapping_sub(1),
                length as u64,
            ]);
        }
        let after = call(&bytes, sum, mixed, &record);
        Trial { call: call(&before, -1.0, 0, &first), after, status: 0 }
    };
    check_all_executors(
        &function,
        &[trial(0, 2), trial(1, 3), trial(ROWS, 0), trial(ROWS, 1), trial(ROWS, 4)],
    );
}

/// A kernel that fails in the second trip of two loops, under a condition, ends the function at once: nothing behind
/// the call is done, neither in the loop nor behind it.
#[test]
fn a_kernel_that_fails_ends_the_function() {
    let mut b = Builder::new(2, 2, 1);
    let (trips, fails_at) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (zero, one) = (b.bits(Elem::I64, 0), b.bits(Elem::I64, 1));
    let (i, outer) = b.begin_loop(Some(trips), &[(zero, false)]);
    let two = b.index(2);
    let (j, inner) = b.begin_loop(Some(two), &[(outer[0], false)]);
    let count = b.add(inner[0], one);
    b.store(count, at(1, Elem::I64, 0));
    let is_there = b.compare(Cmp::Eq, i, fails_at);
    b.begin_if(is_there);
    let status = b.load(Elem::I64, stepped(at(0, Elem::I64, 0), Elem::I64, j, 1));
    let status = b.convert(Conv::ToIndex, Elem::Index, status);
    b.call(IrCall { kernel: 0, args: SmallVec::from_slice(&[CallArg::Index(status)]) });
    b.begin_else();
    b.store(count, at(1, Elem::I64, 1));
    b.end_if(&[]);
    b.store(count, at(1, Elem::I64, 2));
    b.end_loop(&[(inner[0], count)]);
    b.end_loop(&[(outer[0], inner[0])]);
    b.store(outer[0], at(1, Elem::I64, 3));
    let function = b.finish();
    let trial = |trips: i64, fails_at: i64, statuses: [i64; 2]| {
        let call = |y: [i64; 4], calls: u64| {
            let call = Call::new().with(&statuses).with(&y);
            let call = call.param(trips as u64).param(fails_at as u64);
            call.kernel(TestKernel::Status, &[calls])
        };
        let (mut y, mut calls, mut status) = ([-7; 4], 0, 0);
        'all: {
            let mut count = 0;
            for i in 0..trips {
                for code in statuses {
                    count += 1;
                    y[0] = count;
                    if i == fails_at {
                        calls += 1;
                        status = code as Status;
                        if status != 0 {
                            break 'all;
                        }
                    } else {
                        y[1] = count;
                    }
                    y[2] = count;
                }
            }
            y[3] = count;
        }
        Trial { call: call([-7; 4], 0), after: call(y, calls), status }
    };
    let last = i64::from(u32::MAX);
    check_all_executors(
        &function,
        &[
            trial(3, 1, [0, 0]),
            trial(3, 1, [5, 0]),
            trial(3, 1, [0, 1 << 31]),
            trial(3, 0, [0, last]),
            trial(3, 2, [0, 9]),
            trial(3, 4, [9, 9]),
            trial(0, 0, [9, 9]),
        ],
    );
}

/// A value that nobody needs is read in a loop, at a position that nothing else needs.
#[test]
fn what_nobody_needs_has_no_address() {
    let mut b = Builder::new(1, 2, 0);
    let (trips, skew) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let position = b.add(trips, skew);
    let (i, _) = b.begin_loop(Some(trips), &[]);
    b.load(Elem::F32, stepped(at(0, Elem::F32, 0), Elem::F32, position, 1));
    let x = b.f32(2.0);
    b.store(x, stepped(at(0, Elem::F32, 0), Elem::F32, i, 1));
    b.end_loop(&[]);
    let trial = Trial {
        call: Call::new().with(&[5.0f32, 6.0, 7.0]).param(2).param(-1i64 as u64),
        after: Call::new().with(&[2.0f32, 2.0, 7.0]).param(2).param(-1i64 as u64),
        status: 0,
    };
    check_all_executors(&b.finish(), &[trial]);
}

/// A recurrence through memory: `y[i + by] = y[i] / 2 + x[i]` for a number of trips; with a kernel's call in each of them
/// if `calls`.
fn recurrence(trips: i64, by: usize, calls: bool) -> Function {
    let mut b = Builder::new(3, 0, u16::from(calls));
    let extent = b.index(trips);
    let (i, _) = b.begin_loop(Some(extent), &[]);
    let element = |buffer, position| stepped(at(buffer, Elem::F32, position), Elem::F32, i, 1);
    let (x, y) = (b.load(Elem::F32, element(1, 0)), b.load(Elem::F32, element(2, 0)));
    let half = b.f32(0.5);
    let halved = b.mul(half, y);
    let next = b.add(halved, x);
    if calls {
        b.call(IrCall { kernel: 0, args: [CallArg::Index(i)].into_iter().collect() });
    }
    b.store(next, element(2, by as i64));
    b.end_loop(&[]);
    b.finish()
}

#[test]
fn what_the_trip_before_stored_is_carried() {
    const TRIPS: usize = 37;
    let x = numbers(TRIPS);
    for (by, forwards) in [(1, true), (2, false), (0, false)] {
        let function = recurrence(TRIPS as i64, by, false);
        let forwarded = function.clone().with_forwarded_stores(0, None);
        assert_eq!(forwarded.insts.len() - function.insts.len(), usize::from(forwards), "by {by}");
        assert_eq!(forwarded.to_string().matches(" = load ").count(), 2);
        let before = [0.75f32; TRIPS + 2];
        let mut after = before;
        for i in 0..TRIPS {
            after[i + by] = 0.5 * after[i] + x[i];
        }
        let call = |y: [f32; TRIPS + 2]| Call::new().with(&[0f32; 0]).with(&x).with(&y);
        let trials = [Trial { call: call(before), after: call(after), status: 0 }];
        check_all_executors(&function, &trials);
        check_all_executors(&forwarded, &trials);
    }
    // A kernel could read and write the memory.
    let function = recurrence(3, 1, true);
    assert_eq!(function.clone().with_forwarded_stores(0, None), function);
}
