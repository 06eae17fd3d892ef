//! Products of matrices. Those of floats are multiplied with packed panels and register tiles, complex ones as real
//! matrices of their parts, those of integers by a blocked loop. Products with a vector are loop nests.

mod back_to_back;
pub(crate) mod gemm;
mod integers;
mod mixed;
mod plan;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;
use std::ops::Range;

pub(crate) use back_to_back::BackToBackProducts;
use defn_core::{DType, Shape, TensorType};
pub(crate) use mixed::reads_narrow;
use num_complex::Complex;
pub(crate) use plan::{Dot, DotAxes, OperandLayout};

use crate::kernels::epilogue::{self, EpilogueFn};
use crate::kernels::{Element, SendPtr, with_compute};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Multiplications below which a further thread does not pay.
const PARALLEL_WORK: usize = 1 << 18;

/// The dtype in which a dot of `dtype` is computed: the operand and result dtype of [`dot`]. It is f32 for the small
/// floats and a byte for the integers that are narrower.
pub(crate) fn compute_dtype(dtype: DType) -> DType {
    with_compute!(dtype, C => C::DTYPE)
}

/// Whether the epilogue of a dot runs on complete elements while others are still being summed.
pub(crate) fn completes_blocks_early(plan: &Dot, dtype: DType) -> bool {
    let is_panelled = [DType::F32, DType::F64, DType::C64, DType::C128].contains(&dtype);
    is_panelled && !plan.is_empty() && !plan.is_of_vector()
}

/// The scratch memory of [`dot`]: partial results of `dtype`, possibly none.
pub(crate) fn dot_scratch(plan: &Dot, dtype: DType) -> TensorType {
    let sizes = [plan.m, plan.n, plan.k];
    let count = if plan.is_empty() {
        0
    } else if dtype == DType::F32 {
        gemm::scratch::<f32>(sizes)
    } else if dtype == DType::F64 {
        gemm::scratch::<f64>(sizes)
    } else if dtype == DType::C64 {
        gemm::complex::scratch::<f32>(sizes)
    } else if dtype == DType::C128 {
        gemm::complex::scratch::<f64>(sizes)
    } else {
        0
    };
    TensorType { dtype, shape: Shape::new(&[count]) }
}

/// The product of matrices stored as `plan` says, in one of the dtypes of [`compute_dtype`].
///
/// The epilogue runs once on each element. The caller provides all memory.
pub(crate) fn dot(
    plan: &Dot,
    a: View<'_>,
    b: View<'_>,
    (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    debug_assert_eq!(plan.batch * plan.m * plan.n, out.ty().size(), "{} and {}", a.ty(), b.ty());
    match out.ty().dtype {
        // Sums of products of integers of either sign have the same bits.
        DType::U8 | DType::S8 => run::<u8>(plan, a, b, (out, epilogue), scratch, par),
        DType::U16 | DType::S16 => run::<u16>(plan, a, b, (out, epilogue), scratch, par),
        DType::U32 | DType::S32 => run::<u32>(plan, a, b, (out, epilogue), scratch, par),
        DType::U64 | DType::S64 => run::<u64>(plan, a, b, (out, epilogue), scratch, par),
        DType::F32 if a.ty().dtype != DType::F32 || b.ty().dtype != DType::F32 => {
            mixed::multiply(plan, (a, b), (out, epilogue), scratch, par);
        }
        DType::F32 => run::<f32>(plan, a, b, (out, epilogue), scratch, par),
        DType::F64 => run::<f64>(plan, a, b, (out, epilogue), scratch, par),
        DType::C64 => run::<Complex<f32>>(plan, a, b, (out, epilogue), scratch, par),
        DType::C128 => run::<Complex<f64>>(plan, a, b, (out, epilogue), scratch, par),
        DType::Bool | DType::U2 | DType::U4 | DType::S2 | DType::S4 => {
            unreachable!("{} is computed in another type", out.ty())
        }
        DType::F8E5M2 | DType::F8E4M3FN | DType::F16 | DType::BF16 => {
            unreachable!("{} is computed in f32", out.ty())
        }
    }
}

fn run<C: Product>(
    plan: &Dot,
    a: View<'_>,
    b: View<'_>,
    (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let a = Matrices { elements: a.slice::<C>(), side: &plan.a };
    let b = Matrices { elements: b.slice::<C>(), side: &plan.b };
    if !plan.is_empty() {
        return C::matrices(plan, (a, b), (out, epilogue), scratch, par);
    }
    out.fill::<C>(par, PARALLEL_WORK, |_, chunk| {
        chunk.iter_mut().for_each(|x| {
            x.write(C::ZERO);
        });
    });
    epilogue::run_on_whole_result(epilogue, out.ty().size(), par);
}

/// The matrices of one operand.
pub(crate) struct Matrices<'a, C> {
    elements: &'a [C],
    side: &'a OperandLayout,
}

impl<C> Clone for Matrices<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Matrices<'_, C> {}

impl<'a, C> Matrices<'a, C> {
    fn matrix(self, batch: usize) -> gemm::Matrix<'a, C> {
        let &OperandLayout { free, along, .. } = self.side;
        let elements = &self.elements[self.element_offset(batch, 0)..];
        gemm::Matrix { elements, free: free as usize, along: along as usize }
    }

    /// The position of an element of a matrix: index `free` of the free axes, index 0 of the contracted ones.
    fn element_offset(self, batch: usize, free: usize) -> usize {
        batch * self.side.batch + free * self.side.free as usize
    }

    /// The `k` contracted elements at one index of the free axes. They are contiguous.
    fn row(self, batch: usize, free: usize, k: usize) -> &'a [C] {
        debug_assert!(k == 1 || self.side.along == 1);
        &self.elements[self.element_offset(batch, free)..][..k]
    }
}

/// Elements whose matrices are multiplied with packed panels.
pub(crate) trait Panels: Element {
    /// Small products that are computed without packing, if there is a kernel for them.
    fn direct<'a>(
        _: [usize; 3],
        _: Matrices<'a, Self>,
        _: Matrices<'a, Self>,
    ) -> Option<gemm::Batch<'a, Self>>;

    /// Writes some of these products. The target has no runs.
    ///
    /// # Safety
    /// The result has room for all products of the batch.
    unsafe fn multiply_directly(
        batch: &gemm::Batch<'_, Self>,
        indices: Range<usize>,
        out: gemm::GemmOutput<'_, Self>,
    );

    /// The number of scratch elements that [`multiply`](Panels::multiply) needs.
    fn scratch(sizes: [usize; 3]) -> usize;

    /// Multiplies as [`gemm::multiply`] does. The target has no runs.
    ///
    /// # Safety
    /// The result has room for the product. It is initialised if the product is added to it or subtracted from it.
    unsafe fn multiply(
        sizes: [usize; 3],
        operands: (&gemm::Matrix<'_, Self>, &gemm::Matrix<'_, Self>),
        out: gemm::GemmOutput<'_, Self>,
        accumulation: gemm::Accumulation,
        space: &mut [MaybeUninit<Self>],
        par: Par,
    );
}

macro_rules! panels {
    ($($ty:ident),*) => {$(
        impl Panels for $ty {
            fn direct<'a>(
                sizes: [usize; 3],
                a: Matrices<'a, $ty>,
                b: Matrices<'a, $ty>,
            ) -> Option<gemm::Batch<'a, $ty>> {
                let strides = (a.side.batch, b.side.batch);
                let batch = gemm::Batch { sizes, a: a.matrix(0), b: b.matrix(0), strides };
                batch.is_direct().then_some(batch)
            }
            unsafe fn multiply_directly(
                batch: &gemm::Batch<'_, $ty>,
                indices: Range<usize>,
                out: gemm::GemmOutput<'_, $ty>,
            ) {
                // SAFETY: the caller guarantees it, and the products are direct ones.
                unsafe { batch.multiply(indices, out) }
            }
            fn scratch(sizes: [usize; 3]) -> usize {
                gemm::scratch::<$ty>(sizes)
            }
            unsafe fn multiply(
                sizes: [usize; 3],
                (a, b): (&gemm::Matrix<'_, $ty>, &gemm::Matrix<'_, $ty>),
                out: gemm::GemmOutput<'_, $ty>,
                accumulation: gemm::Accumulation,
                space: &mut [MaybeUninit<$ty>],
                par: Par,
            ) {
                // SAFETY: the caller guarantees it.
                unsafe { gemm::multiply(sizes, a, b, out, accumulation, space, par) }
            }
        }
        impl Panels for Complex<$ty> {
            fn direct<'a>(
                _: [usize; 3],
                _: Matrices<'a, Self>,
                _: Matrices<'a, Self>,
            ) -> Option<gemm::Batch<'a, Self>> {
                None
            }
            unsafe fn multiply_directly(
                _: &gemm::Batch<'_, Self>,
                _: Range<usize>,
                _: gemm::GemmOutput<'_, Self>,
            ) {
                unreachable!("complex products are those of their parts")
            }
            fn scratch(sizes: [usize; 3]) -> usize {
                gemm::complex::scratch::<$ty>(sizes)
            }
            unsafe fn multiply(
                sizes: [usize; 3],
                operands: (&gemm::Matrix<'_, Self>, &gemm::Matrix<'_, Self>),
                out: gemm::GemmOutput<'_, Self>,
                accumulation: gemm::Accumulation,
                space: &mut [MaybeUninit<Self>],
                par: Par,
            ) {
                // SAFETY: the caller guarantees it.
                unsafe { gemm::complex::multiply(sizes, operands, out, accumulation, space, par) }
            }
        }
    )*};
}
panels!(f32, f64);

/// Products of float matrices. Small products of a batch are spread over the threads; each large product uses all
/// threads.
///
/// `space` has the size that [`dot_scratch`] returns.
fn panelled<C: Panels>(
    plan: &Dot,
    (a, b): (Matrices<'_, C>, Matrices<'_, C>),
    (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
    space: &mut [MaybeUninit<C>],
    par: Par,
) {
    let &Dot { batch, m, n, k, .. } = plan;
    let (sizes, work) = ([m, n, k], m * n * k);
    let target = SendPtr::new(out.start().cast::<C>());
    if let Some(products) = C::direct(sizes, a, b).filter(|_| batch > 1 || work <= 2 * PARALLEL_WORK) {
        par.for_chunks(batch, (2 * PARALLEL_WORK).div_ceil(work), |chunk| {
            // SAFETY: products are disjoint and inside the result, which has `batch * m * n` elements.
            unsafe {
                let out = gemm::GemmOutput::new(target.at(0), n).with_epilogue(epilogue, 0);
                C::multiply_directly(&products, chunk, out);
            }
        });
        return;
    }
    let multiply = |index: usize, space: &mut [MaybeUninit<C>], par: Par| {
        // SAFETY: products are disjoint and inside the result, which has `batch * m * n` elements.
        unsafe {
            let out =
                gemm::GemmOutput::new(target.at(index * m * n), n).with_epilogue(epilogue, index * m * n);
            let operands = (&a.matrix(index), &b.matrix(index));
            C::multiply(sizes, operands, out, gemm::Accumulation::Nothing, space, par);
        }
    };
    if batch > 1 && space.is_empty() && work < 4 * PARALLEL_WORK {
        par.for_chunks(batch, (2 * PARALLEL_WORK).div_ceil(work), |chunk| {
            chunk.for_each(|index| multiply(index, &mut [], Par::Serial));
        });
    } else {
        (0..batch).for_each(|index| multiply(index, space, par));
    }
}

/// Elements whose matrices can be multiplied.
trait Product: Element {
    /// Writes the products of batches of matrices and runs the epilogue. `scratch` has the size that [`dot_scratch`]
    /// returns.
    fn matrices(
        plan: &Dot,
        operands: (Matrices<'_, Self>, Matrices<'_, Self>),
        out: (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
        scratch: &mut ViewMut<'_>,
        par: Par,
    );
}

macro_rules! product_by_panels {
    ($($ty:ty),*) => {$(
        impl Product for $ty {
            fn matrices(
                plan: &Dot,
                operands: (Matrices<'_, $ty>, Matrices<'_, $ty>),
                out: (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
                scratch: &mut ViewMut<'_>,
                par: Par,
            ) {
                panelled(plan, operands, out, scratch.slice(), par);
            }
        }
    )*};
}
product_by_panels!(f32, f64, Complex<f32>, Complex<f64>);

macro_rules! product_of_integers {
    ($($ty:ty),*) => {$(
        impl Product for $ty {
            fn matrices(
                plan: &Dot,
                (a, b): (Matrices<'_, $ty>, Matrices<'_, $ty>),
                (out, epilogue): (&mut ViewMut<'_>, Option<EpilogueFn<'_>>),
                _: &mut ViewMut<'_>,
                par: Par,
            ) {
                integers::products(plan, a, b, out, par);
                epilogue::run_on_whole_result(epilogue, out.ty().size(), par);
            }
        }
    )*};
}
product_of_integers!(u8, u16, u32, u64);
