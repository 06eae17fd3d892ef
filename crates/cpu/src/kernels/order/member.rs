//! Which elements are among others: keys are looked up in a bitmap if those of the others are close together, else in a
//! hash table with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm L).

use std::mem::MaybeUninit;

use defn_core::op::Direction;
use defn_core::{DType, Shape, TensorType};

use super::keys::{Bits, Code};
use crate::kernels::TILE;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that a thread looks up at a time.
const CHUNK: usize = 4 * TILE;

/// The multiplier of the hash function: 2^64 over the golden ratio (Knuth, section 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bits of a word of the table.
const WORD: u64 = u64::BITS as u64;

/// The least number of words of the table: the bitmap of all keys of 8 bits.
const MIN_WORDS: usize = 4;

/// The table: as many words as hold twice the others, so that at least half of a hash table is free.
pub(crate) fn table_scratch(among: &TensorType) -> TensorType {
    let words = match among.dtype.storage_bytes() {
        1 => MIN_WORDS,
        2 => 1 << 10,
        _ => (2 * among.size()).next_power_of_two().max(MIN_WORDS),
    };
    TensorType { dtype: DType::U64, shape: Shape::new(&[words]) }
}

/// Writes whether elements of `x` are among others of the same dtype. NaN is not.
pub(crate) fn isin(x: View<'_>, among: View<'_>, out: &mut ViewMut<'_>, table: &mut ViewMut<'_>, par: Par) {
    let dtype = x.ty().dtype;
    with_bits!(dtype, T => {
        let code = Code::<T>::new(dtype, Direction::Asc);
        let (x, among): (&[T], &[T]) = (x.slice(), among.slice());
        // NaN has the greatest key, which is not looked up. For other dtypes it is a key like others.
        let missing = dtype.is_float().then(|| code.nan());
        let keys = || among.iter().map(|&bits| code.key(bits)).filter(|&key| Some(key) != missing);
        let ends = keys().fold(None, |ends: Option<(T, T)>, key| {
            Some(ends.map_or((key, key), |(least, greatest)| (least.min(key), greatest.max(key))))
        });
        let table = table.slice::<u64>();
        match ends {
            None => look_up(code, x, out, par, |_| false),
            Some((least, greatest)) if greatest.wide() - least.wide() < table.len() as u64 * WORD => {
                let bitmap = Bitmap::new(table, least.wide(), greatest.wide(), keys().map(Bits::wide));
                look_up(code, x, out, par, |key| bitmap.has(key.wide()));
            }
            Some((least, _)) => {
                let table = HashTable::new(table, least.wide(), keys().map(Bits::wide));
                look_up(code, x, out, par, |key| Some(key) != missing && table.has(key.wide()));
            }
        }
    });
}

/// Writes whether each element has a key that is a member.
fn look_up<T: Bits>(
    code: Code<T>,
    x: &[T],
    out: &ViewMut<'_>,
    par: Par,
    is_member: impl Fn(T) -> bool + Sync,
) {
    par.for_chunks(x.len(), CHUNK, |chunk| {
        // SAFETY: chunks are disjoint and inside, and the caller has borrowed the view mutably.
        let out = unsafe { out.part::<u8>(chunk.start, chunk.len()) };
        for (out, &bits) in out.iter_mut().zip(&x[chunk]) {
            out.write(u8::from(is_member(code.key(bits))));
        }
    });
}

/// A bit for each key from the least to the greatest one.
struct Bitmap<'a> {
    words: &'a [u64],
    least: u64,
    span: u64,
}

impl<'a> Bitmap<'a> {
    fn new(
        table: &'a mut [MaybeUninit<u64>],
        least: u64,
        greatest: u64,
        keys: impl Iterator<Item = u64>,
    ) -> Bitmap<'a> {
        let span = greatest - least;
        let words = &mut table[..(span / WORD) as usize + 1];
        words.fill(MaybeUninit::new(0));
        // SAFETY: they were filled.
        let words = unsafe { words.assume_init_mut() };
        for key in keys {
            // Another thread may have written the elements since the ends were found.
            let at = key.wrapping_sub(least).min(span);
            words[(at / WORD) as usize] |= 1 << (at % WORD);
        }
        Bitmap { words, least, span }
    }

    #[inline(always)]
    fn has(&self, key: u64) -> bool {
        let at = key.wrapping_sub(self.least);
        let is_inside = at <= self.span;
        // Without a branch, which may be unpredictable.
        let at = if is_inside { at } else { 0 };
        is_inside & (self.words[(at / WORD) as usize] >> (at % WORD) & 1 != 0)
    }
}

/// The keys at the slots of their hashes, or behind. A slot without a key has the first one, which is a member, so
/// that a search that meets it ends in any case.
struct HashTable<'a> {
    slots: &'a [u64],
    first: u64,
    shift: u32,
}

impl<'a> HashTable<'a> {
    /// The number of slots is a power of two, and larger than that of keys.
    fn new(table: &'a mut [MaybeUninit<u64>], first: u64, keys: impl Iterator<Item = u64>) -> HashTable<'a> {
        table.fill(MaybeUninit::new(first));
        let shift = u64::BITS - table.len().ilog2();
        // SAFETY: they were filled.
        let slots = unsafe { table.assume_init_mut() };
        for key in keys {
            let at = find(slots, first, shift, key);
            slots[at] = key;
        }
        HashTable { slots, first, shift }
    }

    #[inline(always)]
    fn has(&self, key: u64) -> bool {
        self.slots[find(self.slots, self.first, self.shift, key)] == key
    }
}

/// The slot of a key, or a free one where it can be put.
#[inline(always)]
fn find(slots: &[u64], first: u64, shift: u32, key: u64) -> usize {
    let mask = slots.len() - 1;
    let mut at = ((key ^ key >> 32).wrapping_mul(GOLDEN) >> shift) as usize & mask;
    while slots[at] != key && slots[at] != first {
        at = (at + 1) & mask;
    }
    at
}
