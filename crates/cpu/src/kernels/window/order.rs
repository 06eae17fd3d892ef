//! The order of elements in either direction, with few types: bits are flipped so that the most extreme element is the
//! greatest float or the greatest unsigned integer.

use defn_core::{DType, Kind};

use crate::kernels::Element;

/// Floats and unsigned integers.
pub(super) trait Ordered: Element + PartialOrd {
    /// The element with some of its bits flipped, which are the low bits of `flips`.
    fn flipped(self, flips: u64) -> Self;

    /// Whether this element replaces an earlier one, if the greatest is wanted and of equal ones the last. NaN counts
    /// as the greatest.
    fn wins(self, earlier: Self) -> bool {
        self.nan() | (self >= earlier)
    }
}

impl Ordered for u8 {
    fn flipped(self, flips: u64) -> u8 {
        self ^ flips as u8
    }
}

impl Ordered for u16 {
    fn flipped(self, flips: u64) -> u16 {
        self ^ flips as u16
    }
}

impl Ordered for u32 {
    fn flipped(self, flips: u64) -> u32 {
        self ^ flips as u32
    }
}

impl Ordered for u64 {
    fn flipped(self, flips: u64) -> u64 {
        self ^ flips
    }
}

impl Ordered for f32 {
    fn flipped(self, flips: u64) -> f32 {
        f32::from_bits(self.to_bits() ^ flips as u32)
    }
}

impl Ordered for f64 {
    fn flipped(self, flips: u64) -> f64 {
        f64::from_bits(self.to_bits() ^ flips)
    }
}

/// The bits of elements that are flipped so that the maximum, or else the minimum, is the greatest. Elements have the
/// dtype in which those of `dtype` are computed.
pub(super) fn flips(dtype: DType, is_max: bool) -> u64 {
    let is_float = dtype.kind() == Kind::Float;
    let bits = dtype.bits().max(if is_float { 32 } else { 8 });
    let top = 1 << (bits - 1);
    match (dtype.kind(), is_max) {
        (Kind::Float | Kind::Bool | Kind::Unsigned, true) => 0,
        (Kind::Float, false) | (Kind::Signed, true) => top,
        (Kind::Bool | Kind::Unsigned, false) => !0,
        (Kind::Signed, false) => !top,
        (Kind::Complex, _) => unreachable!("{dtype} has no order"),
    }
}

/// Runs the body with `$C` as the [`Ordered`] type that has the bits in which elements of an ordered dtype are computed.
macro_rules! with_ordered {
    ($dtype:expr, $C:ident => $body:expr) => {
        $crate::kernels::with_unsigned!(
            $dtype, $C => $body, else other => unreachable!("{other} has no order")
        )
    };
}
pub(super) use with_ordered;
