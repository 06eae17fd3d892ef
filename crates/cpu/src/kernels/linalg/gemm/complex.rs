//! Products of complex matrices, as products of real ones that are twice as wide and twice as deep.
//!
//! In memory a row of complex numbers is a row of real ones, parts in turn. Its product with a real matrix that
//! has two rows for each row `b` of a complex one, `b` itself and `i b`, is the product with the complex one.

use std::mem::MaybeUninit;
use std::ops::{Neg, Range};

use num_complex::Complex;

use super::Target;
use super::pack::{Load, Matrix, Operand};
use super::tile::{Fused, Kernels, Onto};
use crate::kernels::epilogue::{Rows, Tail};
use crate::par::Par;

/// Complex numbers as their parts.
fn parts<C>(x: &[Complex<C>]) -> &[C] {
    // SAFETY: a complex number lies in memory as two real ones.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<C>(), 2 * x.len()) }
}

/// The elements that [`multiply`] of these sizes needs to lay its operands out.
pub(crate) fn scratch<C: Fused>([m, n, k]: [usize; 3]) -> usize {
    super::scratch::<C>([m, 2 * n, 2 * k]).div_ceil(2)
}

/// As [`multiply`](super::multiply), of complex matrices.
///
/// # Safety
/// The result, whose rows are not in runs, holds `m` rows of `n` elements. They are initialised where the product is
/// put onto them.
///
/// # Panics
/// When an operand is smaller, or `space` is less than [`scratch`] says.
pub(crate) unsafe fn multiply<C: Fused + Load<C> + Neg<Output = C>>(
    [m, n, k]: [usize; 3],
    (a, b): (&Matrix<'_, Complex<C>>, &Matrix<'_, Complex<C>>),
    out: Target<'_, Complex<C>>,
    onto: Onto,
    space: &mut [MaybeUninit<Complex<C>>],
    par: Par,
) {
    let room = 2 * space.len();
    // SAFETY: a complex number that may not be initialised is two real ones that may not be.
    let space = unsafe { std::slice::from_raw_parts_mut(space.as_mut_ptr().cast::<MaybeUninit<C>>(), room) };
    let tail = out.tail();
    // Blocks are of whole complex numbers, as vectors are.
    let halved = |rows: Rows| {
        let Rows { first, count, len, apart } = rows;
        if let Some((tail, position)) = tail {
            tail(Rows { first: position + first / 2, count, len: len / 2, apart: apart / 2 });
        }
    };
    // SAFETY: the caller's promise; rows of complex numbers are rows of their parts.
    unsafe {
        let parts = Target::new(out.start().cast::<C>(), 2 * out.stride());
        let out = parts.with_tail(tail.is_some().then_some(&halved as Tail<'_>), 0);
        super::multiply([m, 2 * n, 2 * k], &Left(*a), &Right(*b), out, onto, space, par);
    }
}

/// The left operand as a real one.
#[derive(Clone, Copy, Debug)]
struct Left<'a, C>(Matrix<'a, Complex<C>>);

impl<'a, C> Left<'a, C> {
    /// Rows whose elements lie side by side, as rows of their parts.
    fn rows(&self) -> Option<Matrix<'a, C>> {
        let Matrix { elements, free, along } = self.0;
        (along == 1).then(|| Matrix { elements: parts(elements), free: 2 * free, along: 1 })
    }
}

impl<C: Fused + Load<C>> Operand<C> for Left<'_, C> {
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
            rest.fill(MaybeUninit::new(C::NOTHING));
        }
    }

    fn lying(&self) -> Option<Matrix<'_, C>> {
        self.rows()
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        self.0.holds(free, along.div_ceil(2))
    }
}

/// The right operand as a real one.
#[derive(Clone, Copy, Debug)]
struct Right<'a, C>(Matrix<'a, Complex<C>>);

impl<C: Fused + Load<C> + Neg<Output = C>> Operand<C> for Right<'_, C> {
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
            rest.fill(MaybeUninit::new(C::NOTHING));
        }
    }

    fn lying(&self) -> Option<Matrix<'_, C>> {
        None
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        self.0.holds(free.div_ceil(2), along.div_ceil(2))
    }
}
