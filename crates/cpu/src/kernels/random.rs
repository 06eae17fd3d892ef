//! Random bits: Threefry-2x32 with 20 rounds on many pairs of counters at once.
//!
//! After Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011). The order of the words is
//! the one that the core defines for the block.

use std::mem::MaybeUninit;
use std::ops::Range;

use defn_core::{DType, ErrorKind, Result};

use super::simd::vectorized;
use super::{Plain, with_integer};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Pairs in one vectorized loop.
const LANES: usize = 32;

/// Pairs in a tile, whose words stay in the first-level cache until they are converted to numbers.
const TILE: usize = 512;

/// The pairs of a chunk: fewer are not worth waking a thread.
const RANDOM_CHUNK: usize = 16 * TILE;

/// The generator of one key.
#[derive(Clone, Copy, Debug)]
struct Threefry {
    words: [u32; 3],
}

impl Threefry {
    fn new(key: View<'_>) -> Threefry {
        let &[first, second] = key.slice::<u32>() else { unreachable!("a key is u32[2]") };
        Threefry { words: [first, second, first ^ second ^ 0x1BD1_1BDA] }
    }

    /// Replaces pairs of counters by pairs of words.
    fn encrypt(self, left: &mut [u32], right: &mut [u32]) {
        debug_assert_eq!(left.len(), right.len());
        encrypt(self, left, right);
    }

    #[inline(always)]
    fn encrypt_with(self, left: &mut [u32], right: &mut [u32]) {
        let (lefts, left_rest) = left.as_chunks_mut::<LANES>();
        let (rights, right_rest) = right.as_chunks_mut::<LANES>();
        for (left, right) in lefts.iter_mut().zip(rights) {
            self.rounds(left, right);
        }
        if !left_rest.is_empty() {
            let (mut left, mut right) = ([0; LANES], [0; LANES]);
            left[..left_rest.len()].copy_from_slice(left_rest);
            right[..right_rest.len()].copy_from_slice(right_rest);
            self.rounds(&mut left, &mut right);
            left_rest.copy_from_slice(&left[..left_rest.len()]);
            right_rest.copy_from_slice(&right[..right_rest.len()]);
        }
    }

    #[inline(always)]
    fn rounds(self, left: &mut [u32; LANES], right: &mut [u32; LANES]) {
        let words = self.words;
        let (mut x, mut y) = (*left, *right);
        add(&mut x, words[0]);
        add(&mut y, words[1]);
        four_rounds::<13, 15, 26, 6>(&mut x, &mut y);
        add(&mut x, words[1]);
        add(&mut y, words[2].wrapping_add(1));
        four_rounds::<17, 29, 16, 24>(&mut x, &mut y);
        add(&mut x, words[2]);
        add(&mut y, words[0].wrapping_add(2));
        four_rounds::<13, 15, 26, 6>(&mut x, &mut y);
        add(&mut x, words[0]);
        add(&mut y, words[1].wrapping_add(3));
        four_rounds::<17, 29, 16, 24>(&mut x, &mut y);
        add(&mut x, words[1]);
        add(&mut y, words[2].wrapping_add(4));
        four_rounds::<13, 15, 26, 6>(&mut x, &mut y);
        add(&mut x, words[2]);
        add(&mut y, words[0].wrapping_add(5));
        (*left, *right) = (x, y);
    }
}

vectorized! {
    /// As [`Threefry::encrypt`].
    fn encrypt[] of [] (threefry: Threefry, left: &mut [u32], right: &mut [u32]) {
        threefry.encrypt_with(left, right);
    }
}

#[inline(always)]
fn add(x: &mut [u32; LANES], word: u32) {
    for x in x {
        *x = x.wrapping_add(word);
    }
}

#[inline(always)]
fn four_rounds<const A: u32, const B: u32, const C: u32, const D: u32>(
    x: &mut [u32; LANES],
    y: &mut [u32; LANES],
) {
    round::<A>(x, y);
    round::<B>(x, y);
    round::<C>(x, y);
    round::<D>(x, y);
}

#[inline(always)]
fn round<const ROTATION: u32>(x: &mut [u32; LANES], y: &mut [u32; LANES]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x = x.wrapping_add(*y);
        *y = y.rotate_left(ROTATION) ^ *x;
    }
}

/// Writes a pair of words for each pair of counters.
pub(crate) fn threefry(key: View<'_>, counters: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let threefry = Threefry::new(key);
    let counters = counters.slice::<u32>();
    let pairs = counters.len() / 2;
    let out = &*out;
    for_tiles(pairs, par, |tile, left, right| {
        left.copy_from_slice(&counters[tile.clone()]);
        right.copy_from_slice(&counters[pairs + tile.start..pairs + tile.end]);
        threefry.encrypt(left, right);
        // SAFETY: tiles are disjoint, and so are the halves; the view is borrowed mutably meanwhile.
        let (lefts, rights) =
            unsafe { (out.part(tile.start, tile.len()), out.part(pairs + tile.start, tile.len())) };
        write(lefts, left, |word| word);
        write(rights, right, |word| word);
    });
}

/// Writes random unsigned integers of the result's type.
pub(crate) fn bits(key: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let dtype = out.ty().dtype;
    // Elements of 2 and 4 bits are stored in a byte each, whose other bits are 0.
    let mask = (u64::MAX >> (64 - dtype.bits())) as u8;
    match dtype.storage_bytes() {
        1 => narrow(key, out, par, |word| word as u8 & mask),
        2 => narrow(key, out, par, |word| word as u16),
        4 => narrow(key, out, par, |word| word),
        _ => wide(key, out, par, |word| word),
    }
}

/// Writes random f32 or f64 in [0, 1): random fraction bits make a number in [1, 2), from which 1 is subtracted.
pub(crate) fn uniform(key: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    if out.ty().dtype == DType::F64 {
        wide(key, out, par, |word| f64::from_bits(word >> 12 | 1f64.to_bits()) - 1.0);
    } else {
        narrow(key, out, par, |word| f32::from_bits(word >> 9 | 1f32.to_bits()) - 1.0);
    }
}

/// Writes random integers below a bound, a u64 scalar: two words of the integer's width, the upper one first, modulo
/// the bound. Words of 64 bits are combined modulo 2^64.
///
/// # Errors
/// A bound of 0, if `checked`. If not, a number modulo 0 is itself.
pub(crate) fn below(
    key: View<'_>,
    bound: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
    checked: bool,
) -> Result<()> {
    let bound = bound.slice::<u64>()[0];
    if bound == 0 && checked && out.ty().size() > 0 {
        return Err(ErrorKind::DivisionByZero { op: "remainder" }.into());
    }
    let modulus = Modulus::new(bound);
    let bits = out.ty().dtype.bits();
    with_integer!(out.ty().dtype, I => match bits {
        64 => widest::<I>(key, modulus, out, par, |x| x as I),
        32 => pairs::<I>(key, out, par, |left, right, out| {
            modulus.reduce_each(left, right, 32, u32::MAX, out, |x| x as I);
        }),
        bits => pairs::<I>(key, out, par, |left, right, out| {
            modulus.reduce_each(left, right, bits as u32, u32::MAX >> (32 - bits), out, |x| x as I);
        }),
    });
    Ok(())
}

/// The same for words of 64 bits. Each is a pair of words; the pairs of the upper halves come first.
fn widest<T: Plain>(
    key: View<'_>,
    modulus: Modulus,
    out: &mut ViewMut<'_>,
    par: Par,
    finish: impl Fn(u64) -> T + Sync + Copy,
) {
    let threefry = Threefry::new(key);
    let (out, count) = (&*out, out.ty().size());
    for_tiles(count, par, |tile, left, right| {
        let (mut low_left, mut low_right) = ([0; TILE], [0; TILE]);
        let (low_left, low_right) = (&mut low_left[..tile.len()], &mut low_right[..tile.len()]);
        number(left, tile.start);
        number(right, 2 * count + tile.start);
        threefry.encrypt(left, right);
        number(low_left, count + tile.start);
        number(low_right, 3 * count + tile.start);
        threefry.encrypt(low_left, low_right);
        // SAFETY: tiles are disjoint, and the view is borrowed mutably meanwhile.
        let numbers = unsafe { out.part(tile.start, tile.len()) };
        modulus.reduce_wide([left, right, low_left, low_right], numbers, finish);
    });
}

/// A modulus, with constants for fast reduction.
#[derive(Clone, Copy, Debug)]
struct Modulus {
    number: u64,
    /// `2^32` and `2^64` modulo the number; the latter is computed as the square of the former, modulo 2^64 in between.
    half: u64,
    whole: u64,
    /// `2^64 / number`, rounded down.
    reciprocal: u64,
    /// `1 / number`.
    inverse: f64,
    /// `2^96`, `2^64` and `2^32` modulo the number, if that is tiny.
    powers: [u32; 3],
}

impl Modulus {
    /// Up to this number, f64 holds the product of two remainders plus a word exactly.
    const SMALL: u64 = 1 << 26;

    /// Up to this number, f64 holds the sum of three products of a word and a remainder plus a word exactly.
    const TINY: u64 = 1 << 19;

    fn new(number: u64) -> Modulus {
        let modulo = |x: u64| x.checked_rem(number).unwrap_or(x);
        let half = modulo(1 << 32);
        let reciprocal = u64::MAX.checked_div(number).unwrap_or(0);
        let whole = modulo(half.wrapping_mul(half));
        let powers = if number <= Modulus::TINY { [modulo(half * whole), whole, half] } else { [0; 3] };
        let inverse = 1.0 / number as f64;
        Modulus { number, half, whole, reciprocal, inverse, powers: powers.map(|power| power as u32) }
    }

    /// Whether 32-bit words need only one division together.
    fn is_tiny(self) -> bool {
        (1..=Modulus::TINY).contains(&self.number)
    }

    /// Whether f64 holds all intermediate results exactly.
    fn is_small(self) -> bool {
        (1..=Modulus::SMALL).contains(&self.number)
    }

    /// `x` modulo a small number, for `x` below 2^53 minus that number. Vector units divide only floats.
    #[inline(always)]
    fn reduce_small(self, x: u64) -> u64 {
        let (x, number) = (x as f64, self.number as f64);
        // Both are integers below 2^53, and so exact. The quotient may be off by one.
        let rest = x - (x * self.inverse).trunc() * number;
        let rest = if rest < 0.0 { rest + number } else { rest };
        let rest = if rest >= number { rest - number } else { rest };
        // SAFETY: the value is in 0..2^26.
        unsafe { rest.to_int_unchecked::<i64>() as u64 }
    }

    /// `2^32 high + low` modulo a small number.
    #[inline(always)]
    fn reduce_pair(self, high: u32, low: u32) -> u64 {
        self.reduce_small(self.reduce_small(u64::from(high)) * self.half + u64::from(low))
    }

    /// `x` modulo the number: the product with `reciprocal` gives the quotient or one less.
    #[inline(always)]
    fn reduce(self, x: u64) -> u64 {
        if self.number == 0 {
            return x;
        }
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x - quotient * self.number;
        if rest >= self.number { rest - self.number } else { rest }
    }

    /// Writes `2^bits left + right` modulo the number, for words of `bits` bits, which are those of `mask`.
    fn reduce_each<T: Copy>(
        self,
        left: &[u32],
        right: &[u32],
        bits: u32,
        mask: u32,
        out: &mut [MaybeUninit<T>],
        finish: impl Fn(u64) -> T,
    ) {
        if self.is_tiny() && bits == 32 {
            let [.., power] = self.powers.map(u64::from);
            words(left, right, out, |left, right| {
                finish(self.reduce_small(u64::from(left) * power + u64::from(right)))
            });
        } else if self.is_small() && bits == 32 {
            words(left, right, out, |left, right| finish(self.reduce_pair(left, right)));
        } else if self.is_small() {
            words(left, right, out, |left, right| {
                finish(self.reduce_small(u64::from((left & mask) << bits | (right & mask))))
            });
        } else {
            words(left, right, out, |left, right| {
                finish(self.reduce(u64::from(left & mask) << bits | u64::from(right & mask)))
            });
        }
    }

    /// Writes two 64-bit words, each given by two 32-bit parts, modulo the number.
    fn reduce_wide<T: Copy>(
        self,
        [left, right, low_left, low_right]: [&[u32]; 4],
        out: &mut [MaybeUninit<T>],
        finish: impl Fn(u64) -> T,
    ) {
        if self.is_tiny() {
            let powers = self.powers.map(u64::from);
            quads([left, right, low_left, low_right], out, |left, right, low_left, low_right| {
                let products = [left, right, low_left].map(u64::from);
                let products = [0, 1, 2].map(|word| products[word] * powers[word]);
                finish(self.reduce_small(products[0] + products[1] + products[2] + u64::from(low_right)))
            });
        } else if self.is_small() {
            quads([left, right, low_left, low_right], out, |left, right, low_left, low_right| {
                let (high, low) = (self.reduce_pair(left, right), self.reduce_pair(low_left, low_right));
                finish(self.reduce_small(high * self.whole + low))
            });
        } else {
            let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
            quads([left, right, low_left, low_right], out, |left, right, low_left, low_right| {
                let (high, low) = (self.reduce(wide(left, right)), self.reduce(wide(low_left, low_right)));
                finish(self.reduce(high.wrapping_mul(self.whole).wrapping_add(low)))
            });
        }
    }
}

vectorized! {
    /// Writes a function of each pair of words.
    fn words[T, F: Fn(u32, u32) -> T] of [T, F] (
        left: &[u32],
        right: &[u32],
        out: &mut [MaybeUninit<T>],
        finish: F,
    ) {
        for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
            out.write(finish(left, right));
        }
    }
}

vectorized! {
    /// Writes a function of each four words.
    fn quads[T, F: Fn(u32, u32, u32, u32) -> T] of [T, F] (
        words: [&[u32]; 4],
        out: &mut [MaybeUninit<T>],
        finish: F,
    ) {
        let [a, b, c, d] = words;
        for ((((out, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            out.write(finish(a, b, c, d));
        }
    }
}

/// Fills the result with a function of single words: those of the first counters, then those of the second.
fn narrow<T: Plain>(key: View<'_>, out: &mut ViewMut<'_>, par: Par, finish: impl Fn(u32) -> T + Sync) {
    let threefry = Threefry::new(key);
    let (out, count) = (&*out, out.ty().size());
    let pairs = count.div_ceil(2);
    for_tiles(pairs, par, |tile, left, right| {
        number(left, tile.start);
        number(right, pairs + tile.start);
        // If the number of words is odd, the last counter is 0.
        let second = pairs + tile.start..count.min(pairs + tile.end);
        if second.len() < tile.len() {
            right[second.len()] = 0;
        }
        threefry.encrypt(left, right);
        // SAFETY: tiles are disjoint, and so are the halves; the view is borrowed mutably meanwhile.
        let (lefts, rights) =
            unsafe { (out.part(tile.start, tile.len()), out.part(second.start, second.len())) };
        write(lefts, left, &finish);
        write(rights, right, &finish);
    });
}

/// Fills the result with a function of pairs of words, whose first word is the upper half.
fn wide<T: Plain>(key: View<'_>, out: &mut ViewMut<'_>, par: Par, finish: impl Fn(u64) -> T + Sync) {
    pairs(key, out, par, |high, low, numbers| {
        words(high, low, numbers, |high, low| finish(u64::from(high) << 32 | u64::from(low)));
    });
}

/// Fills the result tile by tile: `finish` converts the words of pairs.
fn pairs<T: Plain>(
    key: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
    finish: impl Fn(&[u32], &[u32], &mut [MaybeUninit<T>]) + Sync,
) {
    let threefry = Threefry::new(key);
    let (out, count) = (&*out, out.ty().size());
    for_tiles(count, par, |tile, left, right| {
        number(left, tile.start);
        number(right, count + tile.start);
        threefry.encrypt(left, right);
        // SAFETY: tiles are disjoint, and the view is borrowed mutably meanwhile.
        finish(left, right, unsafe { out.part(tile.start, tile.len()) });
    });
}

/// Calls `work` with tiles of pairs and buffers for their words.
fn for_tiles(pairs: usize, par: Par, work: impl Fn(Range<usize>, &mut [u32], &mut [u32]) + Sync) {
    par.for_chunks(pairs, RANDOM_CHUNK, |chunk| {
        let (mut left, mut right) = ([0; TILE], [0; TILE]);
        for start in chunk.clone().step_by(TILE) {
            let tile = start..chunk.end.min(start + TILE);
            let (left, right) = (&mut left[..tile.len()], &mut right[..tile.len()]);
            work(tile, left, right);
        }
    });
}

/// Fills with counters from `start` on, modulo 2^32.
fn number(counters: &mut [u32], start: usize) {
    count(counters, start as u32);
}

vectorized! {
    /// Fills with counters from `start` on, modulo 2^32.
    fn count[] of [] (counters: &mut [u32], start: u32) {
        for (at, counter) in counters.iter_mut().enumerate() {
            *counter = start.wrapping_add(at as u32);
        }
    }
}

vectorized! {
    /// Fills `out` with a function of the words.
    fn write[T, F: Fn(u32) -> T] of [T, F] (out: &mut [MaybeUninit<T>], words: &[u32], finish: F) {
        for (out, &word) in out.iter_mut().zip(words) {
            out.write(finish(word));
        }
    }
}
