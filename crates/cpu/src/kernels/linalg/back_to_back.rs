//! Two stacks of products, of which the second has the rows of the first as its left operand after something was done
//! to them. Both are done for blocks of rows, so that the second cache holds what lies between them.

use defn_core::DType;

use super::{Dot, Matrices, Panels, gemm};
use crate::kernels::thread_memory::with_thread_memory;
use crate::kernels::{Plain, SendPtr};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The most elements of a block, and of its rows of the left operand.
const BLOCK: usize = 1 << 16;

/// The fewest rows of a block, if there are several: each packs the other operands again.
const MIN_ROWS: usize = 4 * ROWS;

/// The rows of a block are a multiple of this, but for the last: of what tiles have.
const ROWS: usize = 12;

/// Both products, with how their rows are divided.
#[derive(Debug)]
pub(crate) struct BackToBackProducts {
    first: Dot,
    second: Dot,
    dtype: DType,
    /// The rows of a block, and how many blocks a matrix has.
    height: usize,
    down: usize,
}

/// What is done to rows between the products: their first one's number and how many they are, where they lie, and
/// memory beside them.
pub(crate) type MiddleFn<'a> = &'a (dyn Fn((usize, usize), *mut u8, *mut u8) + Sync);

impl BackToBackProducts {
    /// None unless operands are read in place, and the second product's left operand lies as the first one's result.
    pub(crate) fn new(first: Dot, second: Dot, dtype: DType) -> Option<BackToBackProducts> {
        let is_in_place = [&first.a, &first.b, &second.b].iter().all(|side| side.pack.is_none());
        let (rows, row) = (first.batch * first.m, first.n);
        let left = &second.a;
        let fits = left.pack.is_none()
            && left.along == 1
            && left.free == row as isize
            && left.batch == second.m * second.k
            && (second.batch, second.m, second.k) == (first.batch, first.m, row);
        let is_product = |plan: &Dot| !plan.is_empty() && !plan.is_of_vector();
        if !is_in_place || !fits || !is_product(&first) || !is_product(&second) || rows == 0 {
            return None;
        }
        let most = BLOCK / first.n.max(first.k) / ROWS * ROWS;
        if !matches!(dtype, DType::F32 | DType::F64) || most < first.m.min(MIN_ROWS) || most == 0 {
            return None;
        }
        let height = first.m.div_ceil(first.m.div_ceil(most)).next_multiple_of(ROWS);
        let down = first.m.div_ceil(height);
        Some(BackToBackProducts { first, second, dtype, height, down })
    }

    /// Computes both. `beside` bytes are the memory beside rows.
    ///
    /// # Panics
    /// When views are not of the types of the products.
    pub(crate) fn run(
        &self,
        (a, b, other): (View<'_>, View<'_>, View<'_>),
        out: &mut ViewMut<'_>,
        (middle, beside): (MiddleFn<'_>, usize),
        par: Par,
    ) {
        if self.dtype == DType::F32 {
            self.run_as::<f32>((a.slice(), b.slice(), other.slice()), out, (middle, beside), par);
        } else {
            self.run_as::<f64>((a.slice(), b.slice(), other.slice()), out, (middle, beside), par);
        }
    }

    fn run_as<C: Panels>(
        &self,
        (a, b, other): (&[C], &[C], &[C]),
        out: &mut ViewMut<'_>,
        (middle, beside): (MiddleFn<'_>, usize),
        par: Par,
    ) {
        let BackToBackProducts { first, second, height, down, .. } = self;
        let (m, row, columns) = (first.m, first.n, second.n);
        let out = &*out;
        debug_assert_eq!(out.ty().size(), first.batch * m * columns);
        let target = SendPtr::new(out.start().cast::<C>());
        let bytes = (height * row * size_of::<C>()).next_multiple_of(64);
        let matrix = |elements, side, at, free| {
            let whole = Matrices { elements, side };
            gemm::Matrix { elements: &elements[whole.element_offset(at, free)..], ..whole.matrix(at) }
        };
        par.for_chunks(first.batch * down, 1, |tasks| {
            with_thread_memory(bytes + beside, |memory| {
                for task in tasks {
                    let (at, start) = (task / down, task % down * height);
                    let count = m.min(start + height) - start;
                    let left = matrix(a, &first.a, at, start);
                    // SAFETY: the memory has room for a block, and is this thread's. The result has rows of `columns`
                    // elements for all blocks, which are disjoint.
                    unsafe {
                        let block = gemm::GemmOutput::new(memory.cast::<C>(), row);
                        let right = matrix(b, &first.b, at, 0);
                        product([count, row, first.k], &left, &right, block);
                        middle((at * m + start, count), memory, memory.add(bytes));
                        let elements = std::slice::from_raw_parts(memory.cast::<C>(), count * row);
                        let left = gemm::Matrix { elements, free: row, along: 1 };
                        let to = gemm::GemmOutput::new(target.at((at * m + start) * columns), columns);
                        product([count, columns, row], &left, &matrix(other, &second.b, at, 0), to);
                    }
                }
            });
        });
    }
}

/// A product that needs no memory: its rows are few.
///
/// # Safety
/// As for [`gemm::multiply`].
unsafe fn product<C: Panels + Plain>(
    sizes: [usize; 3],
    a: &gemm::Matrix<'_, C>,
    b: &gemm::Matrix<'_, C>,
    out: gemm::GemmOutput<'_, C>,
) {
    debug_assert_eq!(C::scratch(sizes), 0);
    // SAFETY: as the caller promises.
    unsafe { C::multiply(sizes, (a, b), out, gemm::Accumulation::Nothing, &mut [], Par::Serial) };
}
