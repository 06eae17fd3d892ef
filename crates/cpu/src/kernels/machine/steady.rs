//! Loops of two ops on one number and of a count: how often they run is known before, and the number stays in a
//! register of the processor from trip to trip.

use super::Registers;
use super::action::{Instruction, Word};
use super::fuse::Fun;

/// What an instruction does in many trips.
#[derive(Clone, Copy, Debug)]
pub(super) enum Steady {
    /// That is not known.
    Unknown,
    /// It changes one number, so many times.
    Change(fn(&Instruction, &mut Registers, usize)),
    /// It adds to a count of this many bits, with a sign, and goes on where the sum is less than another number.
    Count { bits: u32 },
}

/// How often a loop of these two instructions runs, if they are a change of a number and a count, apart from each
/// other.
pub(super) fn trips(step: &Instruction, test: &Instruction, words: &Registers) -> Option<usize> {
    let (Steady::Change(_), Steady::Count { bits }) = (step.steady, test.steady) else { return None };
    let ([made, between], [x, y, other, _]) = (step.out, step.operands);
    // The number is one operand of the first op, and nothing else changes.
    let is_number = (x == made) != (y == made) && other != made;
    let ([count, ..], [from, by, end, _]) = (test.out, test.operands);
    let is_count = from == count && by != count && end != count;
    let changed = [made, between, count];
    let is_apart = made != between && ![x, y, other].contains(&between) && ![x, y, other].contains(&count);
    if !is_number || !is_count || !is_apart || [made, between].contains(&count) {
        return None;
    }
    if changed.contains(&by) || changed.contains(&end) {
        return None;
    }
    let [first, by, end] = [from, by, end].map(|at| i128::from(words[usize::from(at)] as i64));
    if by <= 0 {
        return None;
    }
    let trips = ((end - first + by - 1) / by).max(1);
    // A count that begins anew is left to the instructions.
    (first + trips * by < 1 << (bits - 1)).then_some(usize::try_from(trips).ok()?)
}

/// Runs a loop of these two instructions so many times, which is no more than [`trips`] says.
pub(super) fn run(step: &Instruction, test: &Instruction, trips: usize, words: &mut Registers) {
    let Steady::Change(change) = step.steady else { unreachable!("a number changes") };
    change(step, words, trips);
    let [count, by] = [test.out[0], test.operands[1]].map(usize::from);
    words[count] = words[count].wrapping_add(words[by].wrapping_mul(trips as u64));
}

/// Two ops on a number, which the first has on its left or right and the second on the right where `RIGHT` is set, so
/// many times.
pub(super) fn change<T: Word, F: Fun, G: Fun, const RIGHT: bool>(
    i: &Instruction,
    words: &mut Registers,
    times: usize,
) {
    let [number, between] = i.out.map(usize::from);
    let [a, b, other, _] = i.operands.map(usize::from);
    let (x, other) = (T::from_word(words[number]), T::from_word(words[other]));
    let then = |made: T| if RIGHT { G::of(other, made) } else { G::of(made, other) };
    let (made, x) = if a == number {
        let b = T::from_word(words[b]);
        repeat(x, times, |x| F::of(x, b), then)
    } else {
        let a = T::from_word(words[a]);
        repeat(x, times, |x| F::of(a, x), then)
    };
    if times > 0 {
        (words[between], words[number]) = (made.word(), x.word());
    }
}

/// What both functions make of a number at last.
#[inline(always)]
fn repeat<T: Copy>(mut x: T, times: usize, first: impl Fn(T) -> T, then: impl Fn(T) -> T) -> (T, T) {
    let mut made = x;
    for _ in 0..times {
        made = first(x);
        x = then(made);
    }
    (made, x)
}
