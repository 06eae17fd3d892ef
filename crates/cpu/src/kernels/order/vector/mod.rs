//! Vector registers of sort keys.
//!
//! Code over [`Vector`] is generic and inlined. It is compiled in functions that enable the instructions.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(super) use {
    avx2::{Half32, Half64},
    avx512::{Wide32, Wide64},
};

use super::quicksort::Narrow;

/// A register of keys. The number of keys is a power of two.
///
/// # Safety
/// Every function requires a processor with the type's instructions. Pointers must be valid for the elements that are
/// read or written.
pub(super) trait Vector: Copy {
    /// An unsigned integer.
    type Key: Narrow;
    /// The number of keys.
    const LANES: usize;
    /// The greatest key.
    const GREATEST: Self::Key;

    /// All lanes hold `key`.
    unsafe fn splat(key: Self::Key) -> Self;
    /// Loads all lanes.
    unsafe fn load(from: *const Self::Key) -> Self;
    /// Loads the first `count` lanes and reads no others. The other lanes are those of `rest`.
    unsafe fn load_part(from: *const Self::Key, count: usize, rest: Self) -> Self;
    /// Writes the first `count` lanes.
    unsafe fn store_part(self, to: *mut Self::Key, count: usize);
    /// The smaller keys, lane by lane.
    unsafe fn min(self, other: Self) -> Self;
    /// The greater keys, lane by lane.
    unsafe fn max(self, other: Self) -> Self;
    /// Lane `i` gets the key of lane `i ^ DISTANCE`.
    unsafe fn across<const DISTANCE: usize>(self) -> Self;
    /// The lanes of `set` whose number has the bit, and the others of `unset`.
    unsafe fn choose<const BIT: usize>(unset: Self, set: Self) -> Self;
    /// The interleaved lanes of both: of the first halves, and of the second halves.
    unsafe fn interleave(self, other: Self) -> (Self, Self);
    /// Writes the keys up to `pivot` from `left` on, and the others so that they end before `right`. Between the two
    /// there is room for two vectors, and the unused part of it may be overwritten. Returns the number of keys on the
    /// left.
    unsafe fn split(self, pivot: Self, left: *mut Self::Key, right: *mut Self::Key) -> usize;
    /// As `split` for the first `count` lanes, with room for these only.
    unsafe fn split_part(
        self,
        count: usize,
        pivot: Self,
        left: *mut Self::Key,
        right: *mut Self::Key,
    ) -> usize;
    /// Stores all lanes.
    unsafe fn store(self, to: *mut Self::Key);
}
