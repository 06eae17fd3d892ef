//! Ops that move elements without arithmetic. The kernels depend only on the width of the elements.
//!
//! Every op is one or more [`StridedCopy`]: those of [`gather`] read in any order and write the whole result, those of
//! [`scatter`] write a part of it. Operands have the result's element type.

pub(crate) mod gather;
pub(crate) mod scatter;
mod strided;

pub(crate) use strided::{Layout, StridedCopy};

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::Op;
use smallvec::SmallVec;

use crate::compiler::{convert_in_order, run_elementwise};
use crate::kernels::stream::Lines;
use crate::kernels::{TILE, with_width};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Runs a copy from an operand to a result of the same element type.
pub(crate) fn copy(plan: &StridedCopy, from: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let (from_dtype, dtype) = (from.ty().dtype, out.ty().dtype);
    assert_eq!(from_dtype.storage_bytes(), dtype.storage_bytes(), "{from_dtype} moves to {dtype}");
    with_width!(dtype, T => plan.run::<T>(from.slice(), out.slice(), par));
}

/// Writes a scalar to every element of the result.
pub(crate) fn fill(value: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    let sizes = [out.ty().size()];
    let from = Layout { offset: 0, strides: smallvec::smallvec![0] };
    copy(&StridedCopy::new(&sizes, &from, &Layout::contiguous(&sizes)), value, out, par);
}

/// Rows of a result that concatenate one row of each operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConcatRows {
    /// The number of rows.
    pub(crate) count: usize,
    /// The length of a row of the result.
    pub(crate) len: usize,
}

impl ConcatRows {
    /// Whether rows are long enough for a loop over all operands in each, and numerous enough for several threads.
    pub(crate) fn are_long(self, dtype: DType) -> bool {
        self.count >= 32 && self.len * dtype.storage_bytes() >= 512
    }
}

/// Concatenates row by row, so that cache lines with parts of two operands are completed in the first-level cache.
pub(crate) fn join(rows: ConcatRows, operands: &[View<'_>], out: &mut ViewMut<'_>, par: Par) {
    with_width!(out.ty().dtype, T => {
        let parts = operands.iter().map(|x| x.slice()).filter(|x| !x.is_empty()).collect::<SmallVec<[&[T]; 8]>>();
        let grain = (strided::COPY_GRAIN_BYTES / size_of::<T>()).div_ceil(rows.len) * rows.len;
        out.fill(par, grain, |start, out| {
            for (row, mut out) in out.chunks_exact_mut(rows.len).enumerate() {
                let row = start / rows.len + row;
                for part in &parts {
                    let len = part.len() / rows.count;
                    let (now, later) = out.split_at_mut(len);
                    let part = &part[row * len..][..len];
                    if len < 16 {
                        // A call of memcpy costs more than a few elements.
                        now.iter_mut().zip(part).for_each(|(to, &from)| {
                            to.write(from);
                        });
                    } else {
                        now.write_copy_of_slice(part);
                    }
                    out = later;
                }
            }
        });
    });
}

/// Elements of a chunk of a conversion.
const CONVERT_CHUNK: usize = 32 * TILE;

/// Converts an operand to elements of `dtype`, in order. The result's dtype is `dtype` or the one in which `dtype` is
/// computed. The result does not overwrite the operand.
pub(crate) fn convert(x: View<'_>, dtype: DType, out: &mut ViewMut<'_>, par: Par) {
    let (from, to) = (x.ty().dtype, out.ty().dtype);
    if from == dtype || to == dtype {
        return run_elementwise(&Op::AsType { dtype: to }, &[x], out, par);
    }
    let (own, wide) = (from.storage_bytes(), to.storage_bytes());
    assert!(dtype.storage_bytes() <= 2, "{dtype} is computed in itself");
    let out = &*out;
    par.for_chunks(out.ty().size(), CONVERT_CHUNK, |chunk| {
        let mut small = Lines([MaybeUninit::<u16>::uninit(); TILE]);
        let small = small.0.as_mut_ptr().cast();
        for start in chunk.clone().step_by(TILE) {
            let len = TILE.min(chunk.end - start);
            // SAFETY: chunks and the tiles in them are disjoint and in bounds, and an element of `dtype` has at most two
            // bytes.
            unsafe {
                let result = out.part_bytes(start * wide, len * wide).as_mut_ptr().cast();
                convert_in_order((from, x.start().add(start * own)), (dtype, small), len);
                convert_in_order((dtype, small), (to, result), len);
            }
        }
    });
}

#[cfg(test)]
mod tests_support {
    use std::mem::MaybeUninit;

    use super::*;

    /// The value of result elements that were not written.
    pub(super) const UNTOUCHED: usize = usize::MAX;

    /// Copies a tensor whose elements are their own row-major positions.
    pub(super) fn run(plan: &StridedCopy, operand: &[usize], result: &[usize]) -> Vec<usize> {
        let from: Vec<u64> = (0..operand.iter().product::<usize>() as u64).collect();
        let mut out = vec![MaybeUninit::new(UNTOUCHED as u64); result.iter().product()];
        plan.run(&from, &mut out, Par::Serial);
        // SAFETY: every element was initialised.
        out.into_iter().map(|x| unsafe { x.assume_init() } as usize).collect()
    }
}
