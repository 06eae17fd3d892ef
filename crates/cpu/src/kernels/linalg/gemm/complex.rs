//! Products of complex matrices, as real products of twice the width and twice the depth.
//!
//! A row of complex numbers in memory is a row of real ones with real and imaginary parts interleaved. The right
//! operand becomes a real matrix with two rows for each complex row `b`: `b` itself and `i b`. The real product is then
//! the complex product in memory.

use std::mem::MaybeUninit;
use std::ops::{Neg, Range};

use num_complex::Complex;

use super::GemmOutput;
use super::pack::{Load, Matrix, Operand};
use super::tile::{Accumulation, GemmElement, Kernels};
use crate::kernels::epilogue::{CompletedRows, EpilogueFn};
use crate::par::Par;

/// Complex numbers as a slice of their parts.
fn parts<C>(x: &[Complex<C>]) -> &[C] {
    // SAFETY: a complex number has the memory layout of two real ones.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<C>(), 2 * x.len()) }
}

/// The number of complex elements that [`multiply`] of these sizes needs for packing.
pub(crate) fn scratch<C: GemmElement>([m, n, k]: [usize; 3]) -> usize {
    super::scratch::<C>([m, 2 * n, 2 * k]).div_ceil(2)
}

/// As [`multiply`](super::multiply), for complex matrices.
///
/// # Safety
/// The result has room for `m` rows of `n` elements and has no runs. It is initialised if the product is added to it or
/// subtracted from it.
///
/// # Panics
/// When an operand is smaller than its size, or `space` is smaller than [`scratch`] says.
pub(crate) unsafe fn multiply<C: GemmElement + Load<C> + Neg<Output = C>>(
    [m, n, k]: [usize; 3],
    (a, b): (&Matrix<'_, Complex<C>>, &Matrix<'_, Complex<C>>),
    out: GemmOutput<'_, Complex<C>>,
    accumulation: Accumulation,
    space: &mut [MaybeUninit<Complex<C>>],
    par: Par,
) {
    let scratch_len = 2 * space.len();
    // SAFETY: a complex number that may be uninitialised is two real ones that may be.
    let space =
        unsafe { std::slice::from_raw_parts_mut(space.as_mut_ptr().cast::<MaybeUninit<C>>(), scratch_len) };
    let epilogue = out.epilogue();
    // Blocks hold whole complex numbers, because vectors do.
    let halved = |rows: CompletedRows| {
        let CompletedRows { first, count, len, row_stride } = rows;
        if let Some((epilogue, position)) = epilogue {
            epilogue(CompletedRows {
                first: position + first / 2,
                count,
                len: len / 2,
                row_stride: row_stride / 2,
            });
        }
    };
    // SAFETY: the caller guarantees it. Rows of complex numbers are rows of their parts.
    unsafe {
        let components = GemmOutput::new(out.start().cast::<C>(), 2 * out.stride());
        let out = components.with_epilogue(epilogue.is_some().then_some(&halved as EpilogueFn<'_>), 0);
        super::multiply([m, 2 * n, 2 * k], &Left(*a), &Right(*b), out, accumulation, space, par);
    }
}

/// The left operand as a real matrix.
#[derive(Clone, Copy, Debug)]
struct Left<'a, C>(Matrix<'a, Complex<C>>);

impl<'a, C> Left<'a, C> {
    /// Rows of contiguous elements, as rows of their parts.
    fn rows(&self) -> Option<Matrix<'a, C>> {
        let Matrix { elements, free, along } = self.0;
        (along == 1).then(|| Matrix { elements: parts(elements), free: 2 * free, along: 1 })
    }
}

impl<C: GemmElement + Load<C>> Operand<C> for Left<'_, C> {
    fn pack(
        &self,
        kernels: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        if let Some(rows) = self.rows() {
            rows.pack(kernels, free, along, width, to);
            return;
        }
        let elements = parts(self.0.elements);
        for (k, to) in along.zip(to.chunks_exact_mut(width)) {
            let (to, rest) = to.split_at_mut(free.len());
            for (to, i) in to.iter_mut().zip(free.clone()) {
                to.write(elements[2 * (i * self.0.free + k / 2 * self.0.along) + k % 2]);
            }
            rest.fill(MaybeUninit::new(C::EMPTY_SUM));
        }
    }

    fn in_place(&self) -> Option<Matrix<'_, C>> {
        self.rows()
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        self.0.holds(free, along.div_ceil(2))
    }
}

/// The right operand as a real matrix.
#[derive(Clone, Copy, Debug)]
struct Right<'a, C>(Matrix<'a, Complex<C>>);

impl<C: GemmElement + Load<C> + Neg<Output = C>> Operand<C> for Right<'_, C> {
    fn pack(
        &self,
        _: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        let rows = free.len();
        let whole = free.start.is_multiple_of(2) && rows.is_multiple_of(2);
        assert!(whole && rows <= width, "whole complex numbers");
        for (k, to) in along.zip(to.chunks_exact_mut(width)) {
            let from = &self.0.elements[k / 2 * self.0.along + free.start / 2 * self.0.free..];
            let (to, rest) = to.split_at_mut(rows);
            let to = to.as_chunks_mut::<2>().0;
            let turned = |x: Complex<C>| if k % 2 == 0 { [x.re, x.im] } else { [-x.im, x.re] };
            if self.0.free == 1 {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = turned(from).map(MaybeUninit::new);
                }
            } else {
                for (to, &from) in to.iter_mut().zip(from.iter().step_by(self.0.free)) {
                    *to = turned(from).map(MaybeUninit::new);
                }
            }
            rest.fill(MaybeUninit::new(C::EMPTY_SUM));
        }
    }

    fn in_place(&self) -> Option<Matrix<'_, C>> {
        None
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        self.0.holds(free.div_ceil(2), along.div_ceil(2))
    }
}
