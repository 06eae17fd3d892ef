//! Loops, conditions, and calls of kernels.

use super::super::super::ir::{BoundKernel, Call, CallArg, Status};
use super::*;

/// Runs a function of one buffer of numbers.
fn run_on(b: Builder, numbers: &[i64], params: &[u64]) -> Vec<i64> {
    let mut buffers = [to_bytes(numbers)];
    run(&b.finish(), &mut buffers, params);
    from_bytes(&buffers[0])
}

/// The place of an element of the first buffer.
fn place(at: i64) -> Access {
    strided(0, 1 + 8 * at, 0)
}

#[test]
fn loops_carry_values_all_at_once() {
    // (a, b) becomes (b, a + b): the numbers of Fibonacci. Two others change places.
    let mut b = Builder::new(1, 1, 0);
    let trips = b.param(0, Elem::Index);
    let (zero, one) = (b.bits(Elem::I64, 0), b.bits(Elem::I64, 1));
    let (counter, carried) =
        b.begin_loop(Some(trips), &[(zero, false), (one, false), (zero, false), (one, false), (zero, false)]);
    let next = b.add(carried[0], carried[1]);
    let count = b.convert(Conv::OfIndex, Elem::I64, counter);
    let pairs = [
        (carried[0], carried[1]),
        (carried[1], next),
        (carried[2], carried[3]),
        (carried[3], carried[2]),
        (carried[4], count),
    ];
    b.end_loop(&pairs);
    for (at, &value) in carried.iter().enumerate() {
        b.store(value, place(at as i64));
    }
    let function = b.finish();
    for (trips, expected) in [
        (0, [0, 1, 0, 1, 0]),
        (1, [1, 1, 1, 0, 0]),
        (9, [34, 55, 1, 0, 8]),
        (10, [55, 89, 0, 1, 9]),
        (-3, [0, 1, 0, 1, 0]),
    ] {
        let mut buffers = [to_bytes(&[7_i64; 5])];
        run(&function, &mut buffers, &[trips as u64]);
        assert_eq!(from_bytes::<i64>(&buffers[0]), expected, "{trips}");
    }
}

#[test]
fn while_leaves_with_the_values_of_the_last_trip() {
    // The steps of a Collatz sequence, without an end but that.
    let mut b = Builder::new(1, 1, 0);
    let start = b.param(0, Elem::I64);
    let (zero, one) = (b.bits(Elem::I64, 0), b.bits(Elem::I64, 1));
    let (_, carried) = b.begin_loop(None, &[(start, false), (zero, false)]);
    let goes_on = b.compare(Cmp::Ne, carried[0], one);
    b.while_(goes_on);
    let is_odd = b.test(carried[0], one);
    b.begin_if(is_odd);
    let three = b.bits(Elem::I64, 3);
    let odd = b.mul(carried[0], three);
    let odd = b.add(odd, one);
    b.begin_else();
    let even = b.op(Op::ShrBy(1), [carried[0]]);
    let next = b.end_if(&[(odd, even)]);
    let steps = b.add(carried[1], one);
    b.end_loop(&[(carried[0], next[0]), (carried[1], steps)]);
    b.store(carried[0], place(0));
    b.store(carried[1], place(1));
    assert_eq!(run_on(b, &[0, 0], &[27]), [1, 111]);
}

#[test]
fn while_leaves_a_loop_of_trips() {
    let mut b = Builder::new(1, 2, 0);
    let (trips, most) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let zero = b.index(0);
    let (counter, carried) = b.begin_loop(Some(trips), &[(zero, false)]);
    let sum = b.add(carried[0], counter);
    let goes_on = b.compare(Cmp::Le, sum, most);
    b.while_(goes_on);
    b.end_loop(&[(carried[0], sum)]);
    let sum = b.convert(Conv::OfIndex, Elem::I64, carried[0]);
    b.store(sum, place(0));
    let function = b.finish();
    for (trips, most, expected) in [(5, 1000, 10), (100, 20, 15), (100, -1, 0), (0, 7, 0)] {
        let mut buffers = [to_bytes(&[7_i64])];
        run(&function, &mut buffers, &[trips, most as u64]);
        assert_eq!(from_bytes::<i64>(&buffers[0]), [expected]);
    }
}

#[test]
fn conditions_nest_and_have_values() {
    // The sign of a number by two conditions, the inner one without another side.
    let mut b = Builder::new(1, 1, 0);
    let x = b.param(0, Elem::I64);
    let zero = b.bits(Elem::I64, 0);
    let is_negative = b.compare(Cmp::Lt, x, zero);
    b.begin_if(is_negative);
    let minus = b.bits(Elem::I64, u64::MAX);
    b.begin_else();
    let is_positive = b.compare(Cmp::Lt, zero, x);
    b.begin_if(is_positive);
    let one = b.bits(Elem::I64, 1);
    let inner = b.end_if(&[(one, zero)]);
    let sign = b.end_if(&[(minus, inner[0])]);
    b.store(sign[0], place(0));
    let function = b.finish();
    for x in [-5_i64, 0, 9] {
        let mut buffers = [to_bytes(&[7_i64])];
        run(&function, &mut buffers, &[x as u64]);
        assert_eq!(from_bytes::<i64>(&buffers[0]), [x.signum()]);
    }
}

/// In a row: loops that carry vectors, from scalars, which change places; conditions of scalars that give
/// vectors.
#[test]
fn blocks_in_rows() {
    for length in [1, BLOCK, BLOCK + 70] {
        let mut b = Builder::new(2, 3, 0);
        let (extent, trips, choice) =
            (b.param(0, Elem::Index), b.param(1, Elem::Index), b.param(2, Elem::Bit));
        b.begin_lanes(extent);
        let x = b.load(Elem::F64, row(0, Elem::F64));
        let one = b.f64(1.0);
        let (_, carried) = b.begin_loop(Some(trips), &[(x, true), (one, true), (one, false)]);
        let sum = b.add(carried[0], carried[1]);
        let double = b.add(carried[2], carried[2]);
        // The second is a vector that becomes a scalar's copies.
        b.end_loop(&[(carried[0], sum), (carried[1], carried[2]), (carried[2], double)]);
        b.begin_if(choice);
        let product = b.mul(carried[0], carried[2]);
        b.begin_else();
        let other = b.add(carried[2], one);
        let y = b.end_if(&[(product, other), (one, carried[1])]);
        let y = b.add(y[0], y[1]);
        b.store(y, row(1, Elem::F64));
        b.end_lanes();
        let function = b.finish();
        let x: Vec<f64> = (0..length).map(|x| x as f64 / 4.0).collect();
        for (trips, choice) in [(0, 0), (0, 1), (1, 0), (1, 1), (5, 0), (5, 1)] {
            let mut buffers = [to_bytes(&x), to_bytes(&x)];
            run(&function, &mut buffers, &[length as u64, trips, choice]);
            let expected: Vec<f64> = x
                .iter()
                .map(|&x| {
                    let mut carried = (x, 1.0, 1.0);
                    for _ in 0..trips {
                        carried = (carried.0 + carried.1, carried.2, carried.2 * 2.0);
                    }
                    let (sum, last, double) = carried;
                    if choice == 1 { sum * double + 1.0 } else { double + 1.0 + last }
                })
                .collect();
            assert_eq!(from_bytes::<f64>(&buffers[1]), expected, "{length} {trips} {choice}");
        }
    }
}

/// A scalar that is repeated on one side of a condition only is repeated again behind it.
#[test]
fn a_side_that_does_not_run_repeats_nothing() {
    for has_else in [false, true] {
        for choice in [0, 1] {
            let mut b = Builder::new(2, 3, 0);
            let (extent, choice_in) = (b.param(0, Elem::Index), b.param(1, Elem::Bit));
            let p = b.param(2, Elem::I32);
            b.begin_lanes(extent);
            let x = b.load(Elem::I32, row(0, Elem::I32));
            let (s, t) = (b.add(p, p), b.mul(p, p));
            b.begin_if(choice_in);
            if has_else {
                b.begin_else();
            }
            // Of either side a vector and a scalar.
            let joined = b.end_if(&[(s, x), (x, t)]);
            let y = b.add(joined[0], joined[1]);
            let y = b.mul(y, x);
            let y = b.add(y, s);
            let y = b.sub(y, t);
            b.store(y, row(1, Elem::I32));
            b.end_lanes();
            let x: Vec<i32> = (0..100).collect();
            let mut buffers = [to_bytes(&x), to_bytes(&x)];
            run(&b.finish(), &mut buffers, &[100, choice, 5]);
            let other = if choice == 1 { 10 } else { 25 };
            let expected: Vec<i32> = x.iter().map(|x| (x + other) * x + 10 - 25).collect();
            assert_eq!(from_bytes::<i32>(&buffers[1]), expected, "{has_else} {choice}");
        }
    }
}

/// A loop in a row that goes on while any lane wants it to; those that do not are left as they are.
#[test]
fn lanes_go_on_while_any_does() {
    let mut b = Builder::new(2, 1, 0);
    let extent = b.param(0, Elem::Index);
    b.begin_lanes(extent);
    let x = b.load(Elem::I32, row(0, Elem::I32));
    let (zero, one) = (b.bits(Elem::I32, 0), b.bits(Elem::I32, 1));
    let (_, carried) = b.begin_loop(None, &[(x, true), (zero, true)]);
    let is_left = b.compare(Cmp::Lt, zero, carried[0]);
    let any = b.any(is_left);
    b.while_(any);
    let less = b.sub(carried[0], one);
    let less = b.select(is_left, less, carried[0]);
    let more = b.add(carried[1], one);
    let more = b.select(is_left, more, carried[1]);
    b.end_loop(&[(carried[0], less), (carried[1], more)]);
    b.store(carried[1], row(1, Elem::I32));
    b.end_lanes();
    let function = b.finish();
    for length in [1, 63, BLOCK - 1, BLOCK, BLOCK + 1] {
        let x: Vec<i32> = (0..length as i32).map(|x| x * 7 % 41 - 5).collect();
        let mut buffers = [to_bytes(&x), to_bytes(&x)];
        run(&function, &mut buffers, &[length as u64]);
        let expected: Vec<i32> = x.iter().map(|&x| x.max(0)).collect();
        assert_eq!(from_bytes::<i32>(&buffers[1]), expected);
    }
}

/// What a test's kernel has been called with.
#[derive(Default)]
struct Calls {
    numbers: Vec<[i64; 2]>,
    /// The call that fails, and how.
    fails: Option<(usize, Status)>,
}

/// Notes the number at an address and an index.
unsafe extern "C" fn note(context: *mut (), args: *const u64) -> Status {
    // SAFETY: the tests pass such a context, an address of a number, and an index.
    let (calls, number, index) = unsafe {
        (&mut *context.cast::<Calls>(), (*args as *const i64).read_unaligned(), *args.add(1) as i64)
    };
    calls.numbers.push([number, index]);
    calls.fails.filter(|(at, _)| *at + 1 == calls.numbers.len()).map_or(0, |(_, status)| status)
}

/// Notes, too, and runs another function on this thread.
unsafe extern "C" fn note_and_run(context: *mut (), args: *const u64) -> Status {
    let mut b = Builder::new(1, 0, 0);
    let x = b.load(Elem::I64, place(0));
    let x = b.add(x, x);
    b.store(x, place(0));
    let mut buffers = [to_bytes(&[21_i64])];
    run(&b.finish(), &mut buffers, &[]);
    assert_eq!(from_bytes::<i64>(&buffers[0]), [42]);
    // SAFETY: as there.
    unsafe { note(context, args) }
}

#[test]
fn kernels_are_called_until_one_fails() {
    // A loop of calls of the second kernel with the address of an element, and the double of its position.
    let mut b = Builder::new(1, 2, 2);
    let (trips, start, bytes) = (b.param(0, Elem::Index), b.param(1, Elem::Index), b.index(8));
    let (counter, _) = b.begin_loop(Some(trips), &[]);
    let double = b.add(counter, counter);
    let before = b.mul(counter, bytes);
    let address = b.add(start, before);
    let args = [address, double].map(CallArg::Index).into_iter().collect();
    b.call(Call { kernel: 1, args });
    b.end_loop(&[]);
    let one = b.bits(Elem::I64, 1);
    b.store(one, place(0));
    let function = b.finish();
    let interpreter = Interpreter::new(&function);
    for fails in [None, Some((0, 9)), Some((2, 1 << 31))] {
        let mut calls = Calls { fails, ..Calls::default() };
        let mut numbers = to_bytes(&[10_i64, 20, 30, 40]);
        let kernels = [
            BoundKernel { run: note, context: std::ptr::null_mut() },
            BoundKernel { run: note_and_run, context: (&raw mut calls).cast() },
        ];
        let words = kernels.map(|kernel| [kernel.run as usize as u64, kernel.context as u64]);
        // The numbers begin behind a byte.
        let start = numbers.as_mut_ptr() as u64;
        let args: Vec<u64> = [start, 4, start + 1].into_iter().chain(words.into_iter().flatten()).collect();
        // SAFETY: the arguments are the function's.
        let status = unsafe { interpreter.run(args.as_ptr()) };
        let made = fails.map_or(4, |(at, _)| at + 1);
        assert_eq!(status, fails.map_or(0, |(_, status)| status));
        assert_eq!(calls.numbers, [[10, 0], [20, 2], [30, 4], [40, 6]][..made]);
        // Nothing behind a call that fails is done.
        assert_eq!(from_bytes::<i64>(&numbers)[0], if fails.is_some() { 10 } else { 1 });
    }
}
