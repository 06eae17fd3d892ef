//! Reductions over axes, in an order that depends only on the shape: results do not depend on the number of threads.
//!
//! An operand is seen as `[outer][reduced][inner]`. Small floats accumulate in f32 and are rounded once. Float sums are
//! pairwise sums of short runs, so that their error does not grow with the length.

mod arg;
mod columns;
mod fold;
mod layout;
mod rows;
mod scan;
mod short;
#[cfg(test)]
mod tests;

pub(crate) use arg::{arg_reduce, arg_scratch};
pub(crate) use fold::{Cascade, Sum};
pub(crate) use layout::{CHUNK, ReductionLayout};
pub(crate) use scan::scan;

use defn_core::op::ReduceOp;
use defn_core::{Axis, DType, Shape, TensorType};
use fold::{All, Any, Greatest, Least, Product, Reduction};

use crate::kernels::{Element, with_compute, with_real};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// The dtype of accumulators for results of `dtype`.
fn accumulator(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits() < 32 { DType::F32 } else { dtype }
}

/// The scratch memory of [`reduce`]: partial results of a dtype, possibly none.
pub(crate) fn reduce_scratch(operand: &TensorType, axes: &[Axis], out: &TensorType) -> TensorType {
    let folding = ReductionLayout::new(operand.shape.sizes(), axes);
    let count = if folding.reduced == 0 || folding.outputs() == 0 {
        0
    } else if folding.inner > 1 {
        columns::columns_scratch(&folding)
    } else {
        rows::rows_scratch(&folding)
    };
    let dtype = accumulator(out.dtype);
    TensorType { dtype, shape: Shape::new(&[count]) }
}

/// Reduces `x` over `axes`. If there are no elements to reduce, results are the neutral element: 0 for a sum.
pub(crate) fn reduce(
    op: ReduceOp,
    x: View<'_>,
    axes: &[Axis],
    out: &mut ViewMut<'_>,
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    let folding = ReductionLayout::new(x.ty().shape.sizes(), axes);
    debug_assert_eq!(folding.outputs(), out.ty().size(), "{} over {axes:?}", x.ty());
    let (from, to) = (x.ty().dtype, out.ty().dtype);
    with_fold(op, from, to, ReduceCall { x, folding, out, scratch, par });
}

/// A function that is generic over the reduction.
trait WithFold {
    type Output;
    /// Runs it with the reduction, whose elements are read as ones of `dtype`.
    fn with<F: Reduction>(self, dtype: DType) -> Self::Output;
}

/// Calls `work` with the reduction of an op from elements of one dtype to results of another.
fn with_fold<W: WithFold>(op: ReduceOp, from: DType, to: DType, work: W) -> W::Output {
    let to = accumulator(to);
    match op {
        ReduceOp::Sum => with_compute!(to, C => work.with::<Sum<C>>(to)),
        ReduceOp::Product => with_compute!(to, C => work.with::<Product<C>>(to)),
        ReduceOp::ReduceMax => with_real!(to, C => work.with::<Greatest<C>>(to)),
        ReduceOp::ReduceMin => with_real!(to, C => work.with::<Least<C>>(to)),
        ReduceOp::All => with_compute!(from, C => work.with::<All<C>>(from)),
        ReduceOp::Any => with_compute!(from, C => work.with::<Any<C>>(from)),
    }
}

/// One reduction.
struct ReduceCall<'r, 'a> {
    x: View<'a>,
    folding: ReductionLayout,
    out: &'r ViewMut<'a>,
    scratch: &'r ViewMut<'a>,
    par: Par,
}

impl WithFold for ReduceCall<'_, '_> {
    type Output = ();

    fn with<F: Reduction>(self, dtype: DType) {
        let ReduceCall { x, folding, out, scratch, par } = self;
        if folding.outputs() == 0 {
            return;
        }
        if folding.reduced == 0 {
            for output in 0..folding.outputs() {
                // SAFETY: the view is borrowed mutably, and one thread writes.
                unsafe { store(out, output, &[F::start()]) };
            }
            return;
        }
        let source = folding.source(x);
        if folding.inner > 1 {
            columns::columns::<F>(&source, dtype, &folding, out, scratch, par);
        } else {
            rows::rows::<F>(&source, dtype, &folding, out, scratch, par);
        }
    }
}

/// Writes results from position `start` on, rounded to the result's dtype.
///
/// # Safety
/// No other code uses these elements of the result.
unsafe fn store<C: Element>(out: &ViewMut<'_>, start: usize, values: &[C]) {
    let dtype = out.ty().dtype;
    if C::stores(dtype) {
        // SAFETY: the caller's promise.
        unsafe { write(out, start, values) };
    } else {
        let width = dtype.storage_bytes();
        // SAFETY: the caller's promise.
        C::encode(values, dtype, unsafe { out.part_bytes(start * width, values.len() * width) });
    }
}

/// Writes elements without conversion.
///
/// # Safety
/// No other code uses these elements.
unsafe fn write<C: Element>(out: &ViewMut<'_>, start: usize, values: &[C]) {
    // SAFETY: the caller's promise.
    unsafe { out.part(start, values.len()) }.write_copy_of_slice(values);
}

/// Elements that were written.
///
/// # Safety
/// They are initialised, and nobody writes them while the slice lives.
unsafe fn read<'a, C: Element>(scratch: &'a ViewMut<'_>, start: usize, len: usize) -> &'a [C] {
    // SAFETY: the caller's promise.
    unsafe { scratch.part::<C>(start, len).assume_init_ref() }
}
