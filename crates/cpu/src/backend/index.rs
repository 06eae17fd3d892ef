//! Gathers and scatters: choice of dtype and kernel.

use std::sync::atomic::AtomicBool;

use defn_core::backend::Buffers;
use defn_core::op::ScatterOp;
use defn_core::{Axis, DType, Kind, Result, TensorType};
use smallvec::SmallVec;

use super::OpRun;
use super::scratch_allocator::{Scratch, ScratchAllocator};
use crate::kernels::index::{self, AxisView, IndexedBlocks, OutOfRangeFlag};
use crate::kernels::linalg::compute_dtype;
use crate::par::Par;
use crate::view::{View, ViewMut};

fn positions(axes: &[Axis]) -> SmallVec<[usize; 6]> {
    axes.iter().map(|axis| axis.index()).collect()
}

/// The sizes of the axes that positions do not index.
fn others(x: &TensorType, axes: &[usize]) -> SmallVec<[usize; 6]> {
    x.shape
        .axes()
        .map(Axis::index)
        .filter(|axis| !axes.contains(axis))
        .map(|axis| x.shape.sizes()[axis])
        .collect()
}

/// The dtype in which elements are combined: sums of small floats are rounded once, and the bytes of 2- and 4-bit
/// integers cannot hold a sum.
fn scattered(op: ScatterOp, dtype: DType) -> DType {
    match op {
        ScatterOp::IndexedAdd => compute_dtype(dtype),
        ScatterOp::IndexedPut => dtype,
    }
}

/// Whether the result can overwrite the operand: the dtypes must be equal, and be computed in that dtype.
pub(super) fn stays(op: ScatterOp, operand: DType, result: DType) -> bool {
    scattered(op, result) == result && operand == result
}

/// Positions in a dtype that the kernels read, if they have another: signed, of 32 or 64 bits.
fn readable_positions<'a>(
    allocator: ScratchAllocator<'a>,
    indices: View<'_>,
    par: Par,
) -> Result<Option<Scratch<'a>>> {
    let dtype = indices.ty().dtype;
    let readable = match (dtype.bits(), dtype.kind() == Kind::Signed) {
        (32 | 64, true) => return Ok(None),
        (32 | 64, false) => DType::S64,
        (_, _) => DType::S32,
    };
    let mut positions = allocator.converted(indices, readable, par)?;
    if dtype == DType::U64 && allocator.runs() {
        index::saturate(&mut positions.view_mut(), par);
    }
    Ok(Some(positions))
}

impl OpRun<'_> {
    /// Runs a kernel that reads at the positions in the second operand. If `checked`, a position out of range is an
    /// error, and the elements written by then are dropped.
    fn reading(
        self,
        axes: &[usize],
        kernel: impl FnOnce(View<'_>, View<'_>, &mut ViewMut<'_>, OutOfRangeFlag<'_>, Par),
    ) -> Result<Buffers> {
        let (allocator, checked) = (self.allocator, self.checked);
        let op = allocator.op;
        self.run_with_scratch(|views: &[View<'_>], out, par| {
            let (x, indices) = (views[0], views[1]);
            let readable = readable_positions(allocator, indices, par)?;
            if !allocator.runs() {
                return Ok(());
            }
            // An empty result reads nothing.
            if checked && out.ty().size() == 0 {
                return index::check(op, x.ty(), axes, indices, par);
            }
            let some = AtomicBool::new(false);
            // SAFETY: the conversion has written every position.
            let positions = readable.as_ref().map_or(indices, |readable| unsafe { readable.view() });
            kernel(x, positions, out, OutOfRangeFlag::new(checked.then_some(&some)), par);
            if some.into_inner() { index::check(op, x.ty(), axes, indices, par) } else { Ok(()) }
        })
    }

    pub(super) fn read(self, axes: &[Axis]) -> Result<Buffers> {
        let axes = positions(axes);
        let x = self.operand(0);
        let blocks = IndexedBlocks::new(x.shape.sizes(), &axes, &others(x, &axes));
        self.reading(&axes, |x, indices, out, watch, par| blocks.gather(x, indices, out, watch, par))
    }

    pub(super) fn take_at(self, axis: Axis) -> Result<Buffers> {
        let along = AxisView::new(self.operand(0).shape.sizes(), axis.index());
        self.reading(&[axis.index()], |x, indices, out, watch, par| along.take(x, indices, out, watch, par))
    }

    pub(super) fn take_along_axis(self, axis: Axis) -> Result<Buffers> {
        let along = AxisView::new(self.operand(0).shape.sizes(), axis.index());
        self.reading(&[axis.index()], |x, indices, out, watch, par| {
            along.take_along(x, indices, out, watch, par)
        })
    }

    /// How often each integer from 0 on occurs.
    pub(super) fn count(self) -> Result<Buffers> {
        let allocator = self.allocator;
        self.run_with_scratch(|views, out, par| {
            let readable = readable_positions(allocator, views[0], par)?;
            let mut tables = allocator.scratch(index::tables_scratch(views[0].ty(), out.ty()))?;
            if allocator.runs() {
                // SAFETY: the conversion has written every integer.
                let ids = readable.as_ref().map_or(views[0], |readable| unsafe { readable.view() });
                index::count(ids, out, &mut tables.view_mut(), par);
            }
            Ok(())
        })
    }

    pub(super) fn scatter(self, scatter: ScatterOp, axes: &[Axis]) -> Result<Buffers> {
        let (allocator, checked, axes) = (self.allocator, self.checked, positions(axes));
        let dtype = self.output(0).dtype;
        let blocks = {
            let [x, updates] = [0, 2].map(|operand| self.operand(operand).shape.sizes());
            IndexedBlocks::new(x, &axes, &updates[1..])
        };
        let computed = scattered(scatter, dtype);
        let is_same_dtype = computed == dtype;
        let candidates: &[usize] = if stays(scatter, self.operand(0).dtype, dtype) { &[0] } else { &[] };
        self.run_with_scratch_in_place(candidates, |views, out, par| {
            let (x, indices, updates) = (views[0], views[1], views[2]);
            if checked && allocator.runs() {
                index::check(allocator.op, out.ty(), &axes, indices, par)?;
            }
            let readable = readable_positions(allocator, indices, par)?;
            // SAFETY: the conversion has written every position.
            let indices = readable.as_ref().map_or(indices, |readable| unsafe { readable.view() });
            let mut converted = None;
            let updates = if updates.ty().dtype == computed {
                updates
            } else {
                let mut scratch = allocator.scratch(updates.ty().with_dtype(computed)?)?;
                allocator.convert(updates, dtype, &mut scratch.view_mut(), par);
                // SAFETY: the conversion writes every element.
                unsafe { converted.insert(scratch).view() }
            };
            let write = |out: &mut ViewMut<'_>| {
                if allocator.runs() {
                    match scatter {
                        ScatterOp::IndexedAdd => blocks.add(indices, updates, out, par),
                        ScatterOp::IndexedPut => blocks.put(indices, updates, out, par),
                    }
                }
            };
            if !x.is_aliased() {
                let mut wide = (!is_same_dtype)
                    .then(|| allocator.scratch(out.ty().with_dtype(computed)?))
                    .transpose()?;
                if let Some(wide) = &mut wide {
                    allocator.convert(x, dtype, &mut wide.view_mut(), par);
                    write(&mut wide.view_mut());
                    // SAFETY: the conversion has written every element.
                    allocator.convert(unsafe { wide.view() }, dtype, out, par);
                    return Ok(());
                }
                // The updates read the result again, which takes far longer from memory than from the caches.
                out.store_to_caches();
                let (elements, bytes) = (out.ty().size(), out.ty().byte_size());
                let before = blocks.par_before(updates.ty().size(), elements, bytes, par);
                allocator.convert(x, dtype, out, before);
            }
            write(out);
            Ok(())
        })
    }
}
