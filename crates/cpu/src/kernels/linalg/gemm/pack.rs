//! Operands of matrix products and their packing into panels.

use std::mem::MaybeUninit;
use std::ops::Range;

use half::{bf16, f16};

use super::tile::{GemmElement, Kernels};
use crate::kernels::cast::Small;
use crate::kernels::simd::vectorized;

/// A matrix as strided elements, indexed by `free` on the free axis and `along` on the contracted one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, S> {
    pub(crate) elements: &'a [S],
    /// Stride along the free axis.
    pub(crate) free: usize,
    /// Stride along the contracted axis.
    pub(crate) along: usize,
}

/// A matrix that can be read as elements of `C`, whatever its own dtype.
pub(crate) trait Operand<C: GemmElement>: Sync {
    /// Packs a part as a panel: `width` elements of the free axis for each index of the contracted one. Missing
    /// elements are zeros.
    ///
    /// # Panics
    /// When the part is not inside the matrix, or the panel has another size.
    fn pack(
        &self,
        kernels: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    );

    /// The elements and their strides for reading in place, if they are of type `C`.
    fn in_place(&self) -> Option<Matrix<'_, C>>;

    /// The strides along the free and the contracted axis, if elements of some type have such.
    fn strides(&self) -> Option<(usize, usize)> {
        None
    }

    /// Whether the matrix has at least these sizes.
    fn holds(&self, free: usize, along: usize) -> bool;
}

/// Elements that can be converted to `C`.
pub(crate) trait Load<C>: Copy + Sync {
    /// Converts one element.
    fn load(self) -> C;

    /// The same elements, if they are of type `C`.
    fn same(elements: &[Self]) -> Option<&[C]>
    where
        Self: Sized;
}

macro_rules! load {
    ($($C:ty: $($S:ty),*;)*) => {$(
        impl Load<$C> for $C {
            #[inline(always)]
            fn load(self) -> $C {
                self
            }
            fn same(elements: &[$C]) -> Option<&[$C]> {
                Some(elements)
            }
        }
        $(impl Load<$C> for $S {
            #[inline(always)]
            fn load(self) -> $C {
                Small::wide(self)
            }
            fn same(_: &[$S]) -> Option<&[$C]> {
                None
            }
        })*
    )*};
}
load! {
    f32: f16, bf16;
    f64: ;
}

macro_rules! load_integers {
    ($($S:ty),*) => {$(
        impl Load<f32> for $S {
            #[inline(always)]
            fn load(self) -> f32 {
                self.into()
            }
            fn same(_: &[$S]) -> Option<&[f32]> {
                None
            }
        }
    )*};
}
load_integers!(i8, u8);

/// Elements of a row that are converted before they are transposed into a panel.
const STAGE: usize = 64;

/// Rows that are converted before they are transposed.
const ROWS: usize = 32;

/// Elements that one step copies.
const RUN: usize = 16;

impl<C: GemmElement, S: Load<C>> Operand<C> for Matrix<'_, S> {
    fn pack(
        &self,
        kernels: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        let (rows, depth) = (free.len(), along.len());
        assert!(rows <= width && to.len() == width * depth && self.holds(free.end, along.end));
        if rows == 0 || depth == 0 {
            to.fill(MaybeUninit::new(C::EMPTY_SUM));
            return;
        }
        let start = free.start * self.free + along.start * self.along;
        let elements = &self.elements[start..];
        if self.free == 1 {
            if let Some(elements) = S::same(elements).filter(|_| rows == width) {
                copy_rows(kernels, elements, self.along, width, to);
                return;
            }
            copy_lines(elements, (self.along, rows), width, to);
        } else if self.along == 1 {
            match S::same(elements) {
                Some(elements) => pack_transposed(kernels, elements, (self.free, rows), width, to),
                None => self.pack_converted(kernels, elements, rows, width, to),
            }
        } else {
            for (k, to) in to.chunks_exact_mut(width).enumerate() {
                let (to, rest) = to.split_at_mut(rows);
                for (i, to) in to.iter_mut().enumerate() {
                    to.write(elements[k * self.along + i * self.free].load());
                }
                rest.fill(MaybeUninit::new(C::EMPTY_SUM));
            }
        }
    }

    fn in_place(&self) -> Option<Matrix<'_, C>> {
        let elements = S::same(self.elements)?;
        Some(Matrix { elements, free: self.free, along: self.along })
    }

    fn strides(&self) -> Option<(usize, usize)> {
        Some((self.free, self.along))
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        Matrix::holds(self, free, along)
    }
}

impl<S> Matrix<'_, S> {
    /// Whether the matrix has at least these sizes.
    pub(super) fn holds(&self, free: usize, along: usize) -> bool {
        free == 0 || along == 0 || (free - 1) * self.free + (along - 1) * self.along < self.elements.len()
    }

    /// Packs rows of another dtype: some are converted, then transposed.
    fn pack_converted<C: GemmElement>(
        &self,
        kernels: &Kernels<C>,
        elements: &[S],
        rows: usize,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) where
        S: Load<C>,
    {
        let mut staged = [C::EMPTY_SUM; STAGE * ROWS];
        for (block, to) in to.chunks_mut(STAGE * width).enumerate() {
            let depth = to.len() / width;
            for first in (0..width).step_by(ROWS) {
                let across = ROWS.min(width - first);
                let lines = ROWS.min(rows.saturating_sub(first));
                if lines > 0 {
                    let from = &elements[first * self.free + block * STAGE..];
                    stage_lines(from, (self.free, depth), &mut staged[..lines * STAGE]);
                }
                if across == width {
                    pack_transposed(kernels, &staged, (STAGE, lines), width, to);
                    continue;
                }
                let mut turned = [MaybeUninit::uninit(); STAGE * ROWS];
                let turned = &mut turned[..across * depth];
                pack_transposed(kernels, &staged, (STAGE, lines), across, turned);
                for (to, from) in to.chunks_exact_mut(width).zip(turned.chunks_exact(across)) {
                    to[first..first + across].copy_from_slice(from);
                }
            }
        }
    }
}

/// Transposes rows, a stride apart, into a panel.
///
/// # Panics
/// When the rows are outside `from`, or there are more of them than the panel is wide.
pub(crate) fn pack_transposed<C: GemmElement>(
    kernels: &Kernels<C>,
    from: &[C],
    (stride, rows): (usize, usize),
    width: usize,
    to: &mut [MaybeUninit<C>],
) {
    let depth = to.len() / width;
    assert!(rows <= width && (rows == 0 || (rows - 1) * stride + depth <= from.len()));
    // SAFETY: the rows are inside by the assertion, and the panel has room for them. The processor has the kernels'
    // instructions.
    unsafe { (kernels.pack_transposed)(from.as_ptr(), stride, rows, depth, width, to.as_mut_ptr()) };
}

/// Copies rows of the panel's width, a stride apart, to the panel, one behind the other.
///
/// # Panics
/// When the rows are outside `from`, or the width is neither a tile's width nor a tile's height.
fn copy_rows<C: GemmElement>(
    kernels: &Kernels<C>,
    from: &[C],
    stride: usize,
    width: usize,
    to: &mut [MaybeUninit<C>],
) {
    let depth = to.len() / width;
    assert!(width.is_multiple_of(kernels.rows) && (depth - 1) * stride + width <= from.len());
    // SAFETY: the rows are inside by the assertion, and the panel has room for them. The processor has the kernels'
    // instructions.
    unsafe { (kernels.copy_rows)(from.as_ptr(), stride, depth, width, to.as_mut_ptr()) };
}

vectorized! {
    /// Copies lines of elements, a stride apart, and pads each with zeros to a width.
    fn copy_lines[C: GemmElement, S: Load<C>] of [C, S] (
        from: &[S],
        line: (usize, usize),
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        let (stride, count) = line;
        for (k, to) in to.chunks_exact_mut(width).enumerate() {
            copy(&from[k * stride..][..count], to);
        }
    }
}

vectorized! {
    /// Converts lines of elements, a stride apart, to lines of [`STAGE`].
    fn stage_lines[C: GemmElement, S: Load<C>] of [C, S] (from: &[S], line: (usize, usize), to: &mut [C]) {
        let (stride, count) = line;
        for (i, to) in to.chunks_exact_mut(STAGE).enumerate() {
            let from = &from[i * stride..][..count];
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.load());
        }
    }
}

/// Copies contiguous elements and pads with zeros.
#[inline(always)]
fn copy<C: GemmElement, S: Load<C>>(from: &[S], to: &mut [MaybeUninit<C>]) {
    let (to, rest) = to.split_at_mut(from.len());
    if let Some(from) = S::same(from) {
        let (from_runs, from_rest) = from.as_chunks::<RUN>();
        let (to_runs, to_rest) = to.as_chunks_mut::<RUN>();
        for (to, from) in to_runs.iter_mut().zip(from_runs) {
            *to = from.map(MaybeUninit::new);
        }
        for (to, &from) in to_rest.iter_mut().zip(from_rest) {
            to.write(from);
        }
    } else {
        for (to, from) in to.iter_mut().zip(from) {
            to.write(from.load());
        }
    }
    rest.fill(MaybeUninit::new(C::EMPTY_SUM));
}
