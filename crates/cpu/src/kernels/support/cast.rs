//! Conversions of elements that kernels do on their way.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::scalar::{E4M3FN, E5M2, Float8};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use num_complex::Complex;

use super::TILE;
use crate::kernels::simd::vectorized;

/// The conversion of one number, as `as` does it.
pub(crate) trait CastFrom<S> {
    /// Converts.
    fn cast_from(x: S) -> Self;
}

macro_rules! cast {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl CastFrom<$from> for $to {
            #[inline(always)]
            fn cast_from(x: $from) -> $to { x as $to }
        }
    )*)*};
}
cast! {
    u32 => i32, i64;
    u64 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    i64 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
    f64 => u8, u16, u32, u64, i8, i16, i32, i64, f32, f64;
}

macro_rules! cast_complex {
    ($($part:ty),*) => {$(
        impl CastFrom<u64> for Complex<$part> {
            fn cast_from(x: u64) -> Self { Complex::new(CastFrom::cast_from(x), 0.0) }
        }
    )*};
}
cast_complex!(f32, f64);

/// A small float, which computes as f32.
pub(crate) trait Small: Copy {
    /// The exact value.
    fn wide(self) -> f32;
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

vectorized! {
    /// Rounds to elements of bf16.
    fn encode_bf16[] of [] (tile: &[f32], out: &mut [[MaybeUninit<u8>; 2]]) {
        for (&x, out) in tile.iter().zip(out) {
            *out = (bf16_bits(x) as u16).to_ne_bytes().map(MaybeUninit::new);
        }
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
            let mut encoded = vec![MaybeUninit::uninit(); 2 * x.len()];
            encode_small(&x, DType::BF16, &mut encoded);
            for (&x, encoded) in x.iter().zip(encoded.as_chunks::<2>().0) {
                let right = bf16::from_f32(x);
                // SAFETY: all were written.
                let encoded = encoded.map(|byte| unsafe { byte.assume_init() });
                assert_eq!(u16::from_ne_bytes(encoded), right.to_bits(), "{x}");
            }
        });
    }
}
