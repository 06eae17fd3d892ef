//! Keys side by side in a register.
//!
//! What works on them is generic, and is compiled where their instructions are switched on.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(super) use {
    avx2::{Half32, Half64},
    avx512::{Wide32, Wide64},
};

use super::quick::Narrow;

/// As many keys as a register holds, a power of two.
///
/// # Safety
/// Every function needs a processor that has the instructions of the type; pointers are to be good for what is read
/// and written there.
pub(super) trait Vector: Copy {
    /// An unsigned integer.
    type Key: Narrow;
    /// How many there are.
    const LANES: usize;
    /// The greatest key.
    const GREATEST: Self::Key;

    /// The same key everywhere.
    unsafe fn splat(key: Self::Key) -> Self;
    /// All lanes.
    unsafe fn load(from: *const Self::Key) -> Self;
    /// The first `count` lanes, which alone are read; the others are those of `rest`.
    unsafe fn load_part(from: *const Self::Key, count: usize, rest: Self) -> Self;
    /// Writes the first `count` lanes.
    unsafe fn store_part(self, to: *mut Self::Key, count: usize);
    /// The lesser keys.
    unsafe fn min(self, other: Self) -> Self;
    /// The greater keys.
    unsafe fn max(self, other: Self) -> Self;
    /// The key of lane `i ^ DISTANCE` in lane `i`.
    unsafe fn across<const DISTANCE: usize>(self) -> Self;
    /// The lanes of `set` where the number of the lane has the bit, the others of `unset`.
    unsafe fn choose<const BIT: usize>(unset: Self, set: Self) -> Self;
    /// The lanes of both in turn: the first halves, and the second ones.
    unsafe fn interleave(self, other: Self) -> (Self, Self);
    /// Writes the keys up to `pivot` from `left` on, and the others so that they end before `right`. There is room for
    /// two vectors between them, of which what was not written may hold anything. Returns how many went to the left.
    unsafe fn split(self, pivot: Self, left: *mut Self::Key, right: *mut Self::Key) -> usize;
    /// As `split` for the first `count` lanes, with room for those only.
    unsafe fn split_part(
        self,
        count: usize,
        pivot: Self,
        left: *mut Self::Key,
        right: *mut Self::Key,
    ) -> usize;
    /// All lanes.
    unsafe fn store(self, to: *mut Self::Key);
}
