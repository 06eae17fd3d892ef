//! Short rows of f32, a few vectors each, one row after the other: for a loop over the lanes of a row the compiler
//! emits vectors of two lanes. The order is that of [`fold_slice`](super::fold::fold_slice).

use super::fold::{FEW_LANES, Kind, LONG, Reduction};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::{Level, level};

/// Reduces rows of `length` elements, one for each result; returns false if there is no faster way than one by one.
#[cfg(target_arch = "x86_64")]
pub(super) fn fold_rows<F: Reduction>(items: &[F::Item], length: usize, results: &mut [F::Acc]) -> bool {
    use defn_core::DType;

    use crate::kernels::Element;

    let is_f32 = F::Item::DTYPE == DType::F32 && F::Acc::DTYPE == DType::F32;
    if !is_f32 || level() != Level::Avx512 || !(FEW_LANES..LONG).contains(&length) {
        return false;
    }
    assert!(items.len() >= results.len() * length, "{} rows of {length}", results.len());
    // SAFETY: both element types are f32, as their dtypes say.
    let (items, results) = unsafe {
        let items = std::slice::from_raw_parts(items.as_ptr().cast::<f32>(), items.len());
        (items, std::slice::from_raw_parts_mut(results.as_mut_ptr().cast::<f32>(), results.len()))
    };
    match F::KIND {
        // SAFETY: the level says that the processor has the instructions.
        Kind::Sum => unsafe { avx512::sum(items, length, results) },
        // SAFETY: as above.
        Kind::Greatest => unsafe { avx512::greatest(items, length, results) },
        // SAFETY: as above.
        Kind::Least => unsafe { avx512::least(items, length, results) },
        Kind::Product | Kind::All | Kind::Any => return false,
    }
    true
}

/// Without AVX-512 there is no faster way.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn fold_rows<F: Reduction>(_: &[F::Item], _: usize, _: &mut [F::Acc]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        _CMP_UNORD_Q, _mm_add_ps, _mm_add_ss, _mm_cmp_ps_mask, _mm_cvtss_f32, _mm_mask_mov_ps, _mm_max_ps,
        _mm_min_ps, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_ps, _mm256_castps256_ps128,
        _mm256_cmp_ps_mask, _mm256_extractf128_ps, _mm256_mask_mov_ps, _mm256_max_ps, _mm256_min_ps,
        _mm512_add_ps, _mm512_castps512_ps256, _mm512_cmp_ps_mask, _mm512_extractf32x8_ps, _mm512_loadu_ps,
        _mm512_mask_mov_ps, _mm512_maskz_loadu_ps, _mm512_max_ps, _mm512_min_ps,
    };

    /// Defines a reduction by the functions that join vectors of 16, 8 and 4 elements, and two elements.
    macro_rules! fold {
        ($name:ident, $join:expr, $half:expr, $quarter:expr, $last:expr) => {
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            pub(super) fn $name(items: &[f32], length: usize, results: &mut [f32]) {
                for (row, result) in items.chunks_exact(length).zip(results) {
                    let (lines, rest) = row.as_chunks::<16>();
                    // SAFETY: a line has 16 elements.
                    let load = |line: &[f32; 16]| unsafe { _mm512_loadu_ps(line.as_ptr()) };
                    let mut total = load(&lines[0]);
                    for line in &lines[1..] {
                        total = $join(total, load(line));
                    }
                    if !rest.is_empty() {
                        let mask = (1 << rest.len()) - 1;
                        // SAFETY: the mask limits the read to the elements that exist.
                        let line = unsafe { _mm512_maskz_loadu_ps(mask, rest.as_ptr()) };
                        total = _mm512_mask_mov_ps(total, mask, $join(total, line));
                    }
                    let half = $half(_mm512_castps512_ps256(total), _mm512_extractf32x8_ps::<1>(total));
                    let quarter = $quarter(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
                    let pair = $quarter(quarter, _mm_movehl_ps(quarter, quarter));
                    *result = _mm_cvtss_f32($last(pair, _mm_movehdup_ps(pair)));
                }
            }
        };
    }

    fold!(sum, _mm512_add_ps, _mm256_add_ps, _mm_add_ps, _mm_add_ss);

    // If either operand is NaN the instructions return the second; a NaN in the first must be kept explicitly.
    macro_rules! extreme {
        ($name:ident, $join:ident, $half:ident, $quarter:ident) => {
            fold!(
                $name,
                |a, b| _mm512_mask_mov_ps($join(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
                |a, b| _mm256_mask_mov_ps($half(a, b), _mm256_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
                |a, b| _mm_mask_mov_ps($quarter(a, b), _mm_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a),
                |a, b| _mm_mask_mov_ps($quarter(a, b), _mm_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a)
            );
        };
    }
    extreme!(greatest, _mm512_max_ps, _mm256_max_ps, _mm_max_ps);
    extreme!(least, _mm512_min_ps, _mm256_min_ps, _mm_min_ps);
}

#[cfg(test)]
mod tests {
    use super::super::fold::{Greatest, Least, Sum, fold_slice};
    use super::*;

    fn check<F: Reduction<Item = f32, Acc = f32>>(x: &[f32], length: usize) {
        let mut results = vec![0.0; x.len() / length];
        if fold_rows::<F>(x, length, &mut results) {
            for (row, result) in x.chunks(length).zip(results) {
                let right = fold_slice::<F>(row);
                assert!(result.to_bits() == right.to_bits() || result.is_nan() && right.is_nan(), "{length}");
            }
        }
    }

    #[test]
    fn several_rows_are_as_each() {
        for length in [16, 17, 31, 32, 33, 47, 48, 64, 100, 255] {
            let mut x: Vec<f32> = (0..9 * length).map(|at| (at * 7919 % 2003) as f32 - 1000.5).collect();
            for (row, (position, odd)) in
                [(0, f32::NAN), (length - 1, f32::NAN), (length / 2, f32::INFINITY)].into_iter().enumerate()
            {
                x[row * length + position] = odd;
            }
            x[5 * length..6 * length].iter_mut().enumerate().for_each(|(at, x)| {
                *x = if at % 3 == 0 { 0.0 } else { -0.0 };
            });
            check::<Sum<f32>>(&x, length);
            check::<Greatest<f32>>(&x, length);
            check::<Least<f32>>(&x, length);
        }
    }
}
