//! How reads and writes at positions run.

use defn_core::backend::Buffers;
use defn_core::op::ScatterOp;
use defn_core::{Axis, Result, TensorType};
use smallvec::SmallVec;

use super::Run;
use super::structural::Scratch;
use crate::kernels::index::{self, Along, Places};
use crate::kernels::linalg::compute_dtype;
use crate::kernels::shape;
use crate::par::Par;
use crate::view::{View, ViewMut};

fn positions(axes: &[Axis]) -> SmallVec<[usize; 6]> {
    axes.iter().map(|axis| axis.index()).collect()
}

/// The sizes of the axes that no entry of a position is along.
fn others(x: &TensorType, axes: &[usize]) -> SmallVec<[usize; 6]> {
    x.shape
        .axes()
        .map(Axis::index)
        .filter(|axis| !axes.contains(axis))
        .map(|axis| x.shape.sizes()[axis])
        .collect()
}

impl Run<'_> {
    /// A kernel that reads at the positions in the second operand, after these were checked.
    fn reading(
        self,
        axes: &[usize],
        kernel: impl FnOnce(View<'_>, View<'_>, &mut ViewMut<'_>, Par),
    ) -> Result<Buffers> {
        let (op, checked) = (self.op, self.checked);
        self.fresh(|views: &[View<'_>], out, par| {
            if checked {
                index::check(op, views[0].ty(), axes, views[1])?;
            }
            kernel(views[0], views[1], out, par);
            Ok(())
        })
    }

    pub(super) fn read(self, axes: &[Axis]) -> Result<Buffers> {
        let axes = positions(axes);
        let x = &self.operands[0].ty;
        let places = Places::new(x.shape.sizes(), &axes, &others(x, &axes));
        self.reading(&axes, |x, indices, out, par| places.gather(x, indices, out, par))
    }

    pub(super) fn take_at(self, axis: Axis) -> Result<Buffers> {
        let along = Along::new(self.operands[0].ty.shape.sizes(), axis.index());
        self.reading(&[axis.index()], |x, indices, out, par| along.take(x, indices, out, par))
    }

    pub(super) fn take_along_axis(self, axis: Axis) -> Result<Buffers> {
        let along = Along::new(self.operands[0].ty.shape.sizes(), axis.index());
        self.reading(&[axis.index()], |x, indices, out, par| along.take_along(x, indices, out, par))
    }

    pub(super) fn scatter(self, scatter: ScatterOp, axes: &[Axis]) -> Result<Buffers> {
        let (op, checked, axes) = (self.op, self.checked, positions(axes));
        let dtype = self.outputs[0].dtype;
        let places = {
            let [x, updates] = [0, 2].map(|operand| self.operands[operand].ty.shape.sizes());
            Places::new(x, &axes, &updates[1..])
        };
        // Sums of small floats are rounded once; the bytes of 2- and 4-bit integers hold no sum.
        let computed = match scatter {
            ScatterOp::IndexedAdd => compute_dtype(dtype),
            ScatterOp::IndexedPut => dtype,
        };
        let direct = computed == dtype;
        // Only elements of the result's dtype can stay where they are.
        let candidates: &[usize] = if direct && self.operands[0].ty.dtype == dtype { &[0] } else { &[] };
        self.in_place(candidates, |views, out, par| {
            let (x, indices, updates) = (views[0], views[1], views[2]);
            if checked {
                index::check(op, out.ty(), &axes, indices)?;
            }
            let mut held = None;
            let updates = if updates.ty().dtype == computed {
                updates
            } else {
                let mut scratch = Scratch::new(op, updates.ty().with_dtype(computed)?)?;
                shape::convert(updates, dtype, &mut scratch.view_mut(), par);
                // SAFETY: the conversion writes every element.
                unsafe { held.insert(scratch).view() }
            };
            let write = |out: &mut ViewMut<'_>| match scatter {
                ScatterOp::IndexedAdd => places.add(indices, updates, out, par),
                ScatterOp::IndexedPut => places.put(indices, updates, out, par),
            };
            if !x.is_aliased() {
                let mut wide =
                    (!direct).then(|| Scratch::new(op, out.ty().with_dtype(computed)?)).transpose()?;
                if let Some(wide) = &mut wide {
                    shape::convert(x, dtype, &mut wide.view_mut(), par);
                    write(&mut wide.view_mut());
                    // SAFETY: the conversion has written every element.
                    shape::convert(unsafe { wide.view() }, dtype, out, par);
                    return Ok(());
                }
                shape::convert(x, dtype, out, par);
            }
            write(out);
            Ok(())
        })
    }
}
