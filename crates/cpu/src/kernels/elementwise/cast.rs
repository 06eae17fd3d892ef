//! Conversions of elements, by the rules of `as_type`.
//!
//! Integers wrap. Floats become integers by truncation, saturating, NaN as 0. Floats round to the nearest, ties to
//! even. Complex numbers lose their imaginary part if the target is real.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::scalar::{E4M3FN, E5M2, Float8};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use num_complex::Complex;

use super::TILE;
use crate::kernels::simd::vectorized;

/// The conversion of one element.
pub(crate) trait CastFrom<S> {
    /// Converts.
    fn cast_from(x: S) -> Self;

    /// Converts; if the target is f32 and cannot hold the value, returns the neighbour whose last bit is
    /// 1. A second rounding to 22 bits or fewer then gives the same as rounding the value once.
    fn cast_odd(x: S) -> Self;
}

macro_rules! cast {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl CastFrom<$from> for $to {
            #[inline(always)]
            fn cast_from(x: $from) -> $to { x as $to }
            #[inline(always)]
            fn cast_odd(x: $from) -> $to { x as $to }
        }
    )*)*};
}
// `as` between numbers follows the rules above.
cast! {
    u8 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    u16 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    u32 => u8, u16, u32, u64, i8, i16, i32, i64, f64;
    u64 => u8, u16, u32, u64, i8, i16, i32, i64, f64;
    i8 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    i16 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    i32 => u8, u16, u32, u64, i8, i16, i32, i64, f64;
    i64 => u8, u16, u32, u64, i8, i16, i32, i64, f64;
    f32 => u32, u64, i64, f32, f64;
    f64 => u32, u64, i64, f64;
}

/// As `as`, in steps that vectorise: the value is first clamped to the range.
macro_rules! cast_float {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl CastFrom<$from> for $to {
            #[inline(always)]
            fn cast_from(x: $from) -> $to {
                // The bounds are exact floats: they are powers of two, or have fewer digits than either type.
                let low = <$to>::MIN as $from;
                let above = if x > low { x } else { low };
                let inside = if above < <$to>::MAX as $from { above } else { <$to>::MAX as $from };
                let inside = if x.is_nan() { 0.0 } else { inside };
                // SAFETY: the number is in the range of an integer type that i32 includes.
                let whole = unsafe { inside.to_int_unchecked::<i32>() };
                whole as $to
            }
            #[inline(always)]
            fn cast_odd(x: $from) -> $to { CastFrom::cast_from(x) }
        }
    )*)*};
}
cast_float! {
    f32 => u8, u16, i8, i16;
    f64 => u8, u16, i8, i16, i32;
}

impl CastFrom<f32> for i32 {
    #[inline(always)]
    fn cast_from(x: f32) -> i32 {
        // f32 holds not the greatest integer but the next one; values of at least that are replaced afterwards.
        const END: f32 = 2_147_483_648.0;
        let above = if x > -END { x } else { -END };
        let inside = if above < END { above } else { 0.0 };
        let inside = if x.is_nan() { 0.0 } else { inside };
        // SAFETY: the number is at least the least i32, and less than the greatest plus 1.
        let whole = unsafe { inside.to_int_unchecked::<i32>() };
        if x >= END { i32::MAX } else { whole }
    }
    #[inline(always)]
    fn cast_odd(x: f32) -> i32 {
        CastFrom::cast_from(x)
    }
}

macro_rules! cast_odd {
    ($($from:ty, $back:ty;)*) => {$(
        impl CastFrom<$from> for f32 {
            #[inline(always)]
            fn cast_from(x: $from) -> f32 { x as f32 }

            fn cast_odd(x: $from) -> f32 {
                let near = x as f32;
                let back = near as $back;
                let exact = x as $back;
                // NaN is unequal to itself, and keeps its bits; the odd neighbour of an overflow is finite.
                if back == exact || near.is_nan() || near.to_bits() & 1 == 1 {
                    return near;
                }
                // For floats of one sign the bits grow with the magnitude.
                let grows = near == 0.0 || (exact > back) == (near > 0.0);
                f32::from_bits(if grows { near.to_bits() + 1 } else { near.to_bits() - 1 })
            }
        }
    )*};
}
cast_odd! {
    u32, f64;
    i32, f64;
    u64, i128;
    i64, i128;
    f64, f64;
}

macro_rules! cast_complex {
    ($($part:ty: $($real:ty),*;)*) => {$(
        $(
            impl CastFrom<Complex<$part>> for $real {
                fn cast_from(x: Complex<$part>) -> $real { CastFrom::cast_from(x.re) }
                fn cast_odd(x: Complex<$part>) -> $real { CastFrom::cast_odd(x.re) }
            }

            impl CastFrom<$real> for Complex<$part> {
                fn cast_from(x: $real) -> Self { Complex::new(CastFrom::cast_from(x), 0.0) }
                fn cast_odd(x: $real) -> Self { CastFrom::cast_from(x) }
            }
        )*
    )*};
}
cast_complex! {
    f32: u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    f64: u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
}

macro_rules! cast_parts {
    ($($from:ty => $to:ty;)*) => {$(
        impl CastFrom<Complex<$from>> for Complex<$to> {
            fn cast_from(x: Complex<$from>) -> Self { Complex::new(x.re as $to, x.im as $to) }
            fn cast_odd(x: Complex<$from>) -> Self { CastFrom::cast_from(x) }
        }
    )*};
}
cast_parts! {
    f32 => f32;
    f32 => f64;
    f64 => f32;
    f64 => f64;
}

/// An element of `f8_e5m2`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct E5m2(u8);

/// An element of `f8_e4m3fn`.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct E4m3(u8);

/// A small float, which computes as f32.
pub(crate) trait Small: Copy {
    /// The exact value.
    fn wide(self) -> f32;
}

impl Small for E5m2 {
    fn wide(self) -> f32 {
        DECODED[0][usize::from(self.0)]
    }
}

impl Small for E4m3 {
    fn wide(self) -> f32 {
        DECODED[1][usize::from(self.0)]
    }
}

impl Small for f16 {
    // The steps vectorise on every processor.
    #[inline(always)]
    fn wide(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let magnitude = bits & 0x7FFF;
        // The bits of exponent and fraction are shifted to their places; the factor 2^112 corrects the exponent's bias.
        const SCALE: f32 = f32::from_bits((127 + 112) << 23);
        let finite = (f32::from_bits(magnitude << 13) * SCALE).to_bits();
        let special = magnitude << 13 | 0x7F80_0000 | u32::from(magnitude > 0x7C00) << 22;
        let absolute = if magnitude >= 0x7C00 { special } else { finite };
        f32::from_bits(absolute | (bits & 0x8000) << 16)
    }
}

impl Small for bf16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

/// The bits of the nearest bf16, ties to even; NaN stays NaN. The steps vectorise.
#[inline(always)]
fn bf16_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    if x.is_nan() { quiet } else { nearest }
}

/// The value of the nearest bf16.
#[inline(always)]
pub(crate) fn nearest_bf16(x: f32) -> f32 {
    f32::from_bits(bf16_bits(x) << 16)
}

vectorized! {
    /// Rounds to the nearest bf16.
    fn round_bf16[] of [] (tile: &mut [f32]) {
        tile.iter_mut().for_each(|x| *x = nearest_bf16(*x));
    }
}

vectorized! {
    /// Rounds to elements of bf16.
    fn encode_bf16[] of [] (tile: &[f32], out: &mut [[MaybeUninit<u8>; 2]]) {
        for (&x, out) in tile.iter().zip(out) {
            *out = (bf16_bits(x) as u16).to_ne_bytes().map(MaybeUninit::new);
        }
    }
}

/// The values of all codes of both 8-bit floats.
static DECODED: std::sync::LazyLock<[[f32; 256]; 2]> = std::sync::LazyLock::new(|| {
    let table = |format: Float8| std::array::from_fn(|code| format.decode(code as u8) as f32);
    [table(E5M2), table(E4M3FN)]
});

/// Rounds f32 values to a smaller float type.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other types are not computed in f32")]
pub(crate) fn round_small(tile: &mut [f32], dtype: DType) {
    match dtype {
        DType::F16 => {
            let mut narrow = [f16::ZERO; TILE];
            for part in tile.chunks_mut(TILE) {
                narrow[..part.len()].convert_from_f32_slice(part);
                narrow[..part.len()].convert_to_f32_slice(part);
            }
        }
        DType::BF16 => round_bf16(tile),
        DType::F8E5M2 => tile.iter_mut().for_each(|x| *x = E5m2(E5M2.encode(f64::from(*x))).wide()),
        DType::F8E4M3FN => tile.iter_mut().for_each(|x| *x = E4m3(E4M3FN.encode(f64::from(*x))).wide()),
        other => unreachable!("{other} is not computed in f32"),
    }
}

/// Rounds f32 values to elements of a smaller float type, one byte or two each.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other types are not computed in f32")]
pub(crate) fn encode_small(tile: &[f32], dtype: DType, out: &mut [MaybeUninit<u8>]) {
    match dtype {
        DType::F16 => {
            let mut narrow = [f16::ZERO; TILE];
            for (part, out) in tile.chunks(TILE).zip(out.chunks_mut(2 * TILE)) {
                narrow[..part.len()].convert_from_f32_slice(part);
                for (x, out) in narrow[..part.len()].iter().zip(out.as_chunks_mut::<2>().0) {
                    *out = x.to_ne_bytes().map(MaybeUninit::new);
                }
            }
        }
        DType::BF16 => encode_bf16(tile, out.as_chunks_mut::<2>().0),
        DType::F8E5M2 => encode_bytes(tile, E5M2, out),
        DType::F8E4M3FN => encode_bytes(tile, E4M3FN, out),
        other => unreachable!("{other} is not computed in f32"),
    }
}

fn encode_bytes(tile: &[f32], format: Float8, out: &mut [MaybeUninit<u8>]) {
    for (&x, out) in tile.iter().zip(out) {
        out.write(format.encode(f64::from(x)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_round_to_bf16_as_one_by_one() {
        let bits = (0..=0xFFFF_u32).flat_map(|high| {
            let low = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF];
            low.map(|low| high << 16 | low)
        });
        let x: Vec<f32> = bits.map(f32::from_bits).collect();
        crate::kernels::simd::at_every_level(|| {
            let mut rounded = x.clone();
            round_small(&mut rounded, DType::BF16);
            let mut encoded = vec![MaybeUninit::uninit(); 2 * x.len()];
            encode_small(&x, DType::BF16, &mut encoded);
            for ((&x, &rounded), encoded) in x.iter().zip(&rounded).zip(encoded.as_chunks::<2>().0) {
                let right = bf16::from_f32(x);
                assert_eq!(rounded.to_bits(), right.to_f32().to_bits(), "{x}");
                // SAFETY: all were written.
                let encoded = encoded.map(|byte| unsafe { byte.assume_init() });
                assert_eq!(u16::from_ne_bytes(encoded), right.to_bits(), "{x}");
            }
        });
    }

    #[test]
    fn floats_saturate_as_the_language_says() {
        let ends =
            [0.0, 1.0, 127.0, 128.0, 255.0, 256.0, 32768.0, 65536.0, 2_147_483_648.0, 1e30, f64::INFINITY];
        for end in ends {
            for x in [end - 1.0, end - 0.5, end, end + 0.5, end + 1.0, f64::NAN] {
                for x in [x, -x, f64::from(x as f32), f64::from((x as f32).next_down())] {
                    assert_eq!(<i32 as CastFrom<f64>>::cast_from(x), x as i32, "{x}");
                    assert_eq!(<u16 as CastFrom<f64>>::cast_from(x), x as u16, "{x}");
                    assert_eq!(<i8 as CastFrom<f64>>::cast_from(x), x as i8, "{x}");
                    let y = x as f32;
                    assert_eq!(<i32 as CastFrom<f32>>::cast_from(y), y as i32, "{y}");
                    assert_eq!(<u8 as CastFrom<f32>>::cast_from(y), y as u8, "{y}");
                    assert_eq!(<i16 as CastFrom<f32>>::cast_from(y), y as i16, "{y}");
                    assert_eq!(<u16 as CastFrom<f32>>::cast_from(y), y as u16, "{y}");
                    assert_eq!(<i8 as CastFrom<f32>>::cast_from(y), y as i8, "{y}");
                }
            }
        }
    }
}
