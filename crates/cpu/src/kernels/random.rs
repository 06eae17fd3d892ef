//! Random bits: Threefry-2x32 with 20 rounds on many pairs of counters at once.
//!
//! After Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011). The order of the words
//! is that of the block's definition in the core.

use std::mem::MaybeUninit;
use std::ops::Range;

use defn_core::DType;

use super::Plain;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Pairs that go through the rounds together.
const LANES: usize = 16;

/// Pairs whose words wait in the first cache until they are made numbers.
const TILE: usize = 512;

/// Pairs below which a thread is not worth its waking.
const GRAIN: usize = 16 * TILE;

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

    /// Replaces counters by words, pair by pair.
    fn encrypt(self, left: &mut [u32], right: &mut [u32]) {
        debug_assert_eq!(left.len(), right.len());
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                // SAFETY: the processor has the instructions.
                return unsafe { encrypt_avx512(self, left, right) };
            }
            if std::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the instructions.
                return unsafe { encrypt_avx2(self, left, right) };
            }
        }
        self.encrypt_with(left, right);
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn encrypt_avx512(threefry: Threefry, left: &mut [u32], right: &mut [u32]) {
    threefry.encrypt_with(left, right);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn encrypt_avx2(threefry: Threefry, left: &mut [u32], right: &mut [u32]) {
    threefry.encrypt_with(left, right);
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

/// A pair of words for each pair of counters.
pub(crate) fn threefry(key: View<'_>, counters: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let threefry = Threefry::new(key);
    let counters = counters.slice::<u32>();
    let pairs = counters.len() / 2;
    let out = &*out;
    for_tiles(pairs, par, |tile, left, right| {
        left.copy_from_slice(&counters[tile.clone()]);
        right.copy_from_slice(&counters[pairs + tile.start..pairs + tile.end]);
        threefry.encrypt(left, right);
        // SAFETY: tiles are disjoint, so are the halves, and the view is borrowed mutably meanwhile.
        let (lefts, rights) =
            unsafe { (out.part(tile.start, tile.len()), out.part(pairs + tile.start, tile.len())) };
        write(lefts, left, |word| word);
        write(rights, right, |word| word);
    });
}

/// Random unsigned integers of the result's type.
pub(crate) fn bits(key: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let dtype = out.ty().dtype;
    // Elements of 2 and 4 bits have a byte each, of which the rest is 0.
    let mask = (u64::MAX >> (64 - dtype.bits())) as u8;
    match dtype.storage_bytes() {
        1 => narrow(key, out, par, |word| word as u8 & mask),
        2 => narrow(key, out, par, |word| word as u16),
        4 => narrow(key, out, par, |word| word),
        _ => wide(key, out, par, |word| word),
    }
}

/// Random f32 or f64 in [0, 1): bits in the fraction of a number between 1 and 2, less 1.
pub(crate) fn uniform(key: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    if out.ty().dtype == DType::F64 {
        wide(key, out, par, |word| f64::from_bits(word >> 12 | 1f64.to_bits()) - 1.0);
    } else {
        narrow(key, out, par, |word| f32::from_bits(word >> 9 | 1f32.to_bits()) - 1.0);
    }
}

/// Fills with what is made of single words: those of the first counters, then those of the second.
fn narrow<T: Plain>(key: View<'_>, out: &mut ViewMut<'_>, par: Par, finish: impl Fn(u32) -> T + Sync) {
    let threefry = Threefry::new(key);
    let (out, count) = (&*out, out.ty().size());
    let pairs = count.div_ceil(2);
    for_tiles(pairs, par, |tile, left, right| {
        number(left, tile.start);
        number(right, pairs + tile.start);
        // An odd number of words leaves one counter over, which is 0.
        let second = pairs + tile.start..count.min(pairs + tile.end);
        if second.len() < tile.len() {
            right[second.len()] = 0;
        }
        threefry.encrypt(left, right);
        // SAFETY: tiles are disjoint, so are the halves, and the view is borrowed mutably meanwhile.
        let (lefts, rights) =
            unsafe { (out.part(tile.start, tile.len()), out.part(second.start, second.len())) };
        write(lefts, left, &finish);
        write(rights, right, &finish);
    });
}

/// Fills with what is made of pairs of words, the first of which is the upper half.
fn wide<T: Plain>(key: View<'_>, out: &mut ViewMut<'_>, par: Par, finish: impl Fn(u64) -> T + Sync) {
    let threefry = Threefry::new(key);
    let (out, count) = (&*out, out.ty().size());
    for_tiles(count, par, |tile, left, right| {
        number(left, tile.start);
        number(right, count + tile.start);
        threefry.encrypt(left, right);
        // SAFETY: tiles are disjoint, and the view is borrowed mutably meanwhile.
        let numbers = unsafe { out.part(tile.start, tile.len()) };
        for ((number, &high), &low) in numbers.iter_mut().zip(&*left).zip(&*right) {
            number.write(finish(u64::from(high) << 32 | u64::from(low)));
        }
    });
}

/// Calls `work` with tiles of pairs, and room for the words of each.
fn for_tiles(pairs: usize, par: Par, work: impl Fn(Range<usize>, &mut [u32], &mut [u32]) + Sync) {
    par.for_chunks(pairs, GRAIN, |chunk| {
        let (mut left, mut right) = ([0; TILE], [0; TILE]);
        for start in chunk.clone().step_by(TILE) {
            let tile = start..chunk.end.min(start + TILE);
            let (left, right) = (&mut left[..tile.len()], &mut right[..tile.len()]);
            work(tile, left, right);
        }
    });
}

/// Counters from `start` on, modulo 2^32.
fn number(counters: &mut [u32], start: usize) {
    for (at, counter) in counters.iter_mut().enumerate() {
        *counter = (start as u32).wrapping_add(at as u32);
    }
}

/// Writes as many numbers as there is room for.
fn write<T>(out: &mut [MaybeUninit<T>], words: &[u32], finish: impl Fn(u32) -> T) {
    for (out, &word) in out.iter_mut().zip(words) {
        out.write(finish(word));
    }
}
