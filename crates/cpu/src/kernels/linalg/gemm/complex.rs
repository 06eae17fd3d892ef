//! Products of complex matrices, as products of real ones that are twice as wide and twice as deep.
//!
//! In memory a row of complex numbers is a row of real ones, parts in turn. Its product with a real matrix that
//! has two rows for each row `b` of a complex one, `b` itself and `i b`, is the product with the complex one.

use std::mem::MaybeUninit;
use std::ops::{Neg, Range};

use num_complex::Complex;

use super::pack::{Load, Matrix, Operand};
use super::tile::{Fused, Kernels};

/// Complex numbers as their parts.
fn parts<C>(x: &[Complex<C>]) -> &[C] {
    // SAFETY: a complex number lies in memory as two real ones.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<C>(), 2 * x.len()) }
}

/// The left operand, whose summed elements lie side by side, as a real one.
///
/// # Panics
/// When they do not.
pub(crate) fn left<'a, C>(x: &Matrix<'a, Complex<C>>) -> Matrix<'a, C> {
    assert_eq!(x.along, 1, "rows of complex numbers");
    Matrix { elements: parts(x.elements), free: 2 * x.free, along: 1 }
}

/// The right operand, whose kept elements lie side by side, as a real one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Right<'a, C>(pub(crate) Matrix<'a, Complex<C>>);

impl<C: Fused + Load<C> + Neg<Output = C>> Operand<C> for Right<'_, C> {
    fn pack(
        &self,
        _: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        let (elements, rows) = (parts(self.0.elements), free.len());
        assert!(self.0.free == 1 && free.start % 2 == 0 && rows % 2 == 0 && rows <= width);
        for (k, to) in along.zip(to.chunks_exact_mut(width)) {
            let from = &elements[2 * (k / 2) * self.0.along + free.start..][..rows];
            let (to, rest) = to.split_at_mut(rows);
            if k % 2 == 0 {
                for (to, &from) in to.iter_mut().zip(from) {
                    to.write(from);
                }
            } else {
                for (to, &[re, im]) in to.as_chunks_mut::<2>().0.iter_mut().zip(from.as_chunks::<2>().0) {
                    *to = [MaybeUninit::new(-im), MaybeUninit::new(re)];
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
