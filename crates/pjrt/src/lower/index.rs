//! Reads and writes at positions that a tensor holds.

use defn_core::op::ScatterOp;
use defn_core::{Axis, TensorType};

use super::reduce::combine;
use super::text::{List, RegionText, Ssa, Ty, Writer, array};
use super::value::{computed, held};
use super::{Lowering, Operands};

impl Lowering {
    /// Positions out of range are moved to the nearest element, as StableHLO prescribes.
    pub(super) fn gather(&mut self, x: &Operands<'_>, axes: &[Axis], out: &TensorType) -> Ssa {
        let value = &x.values[0];
        if out.shape.size() == 0 {
            // A slice of an element does not fit where there is none.
            let zero = self.writer.number(value.element(), 0);
            return self.writer.splat(&zero, out.shape.sizes());
        }
        let indices = self.writer.index(&x.values[1], x.types[1].dtype);
        let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
        let batch = indices.ty.rank() - 1;
        let sizes =
            value.dims().iter().enumerate().map(|(axis, &size)| if axes.contains(&axis) { 1 } else { size });
        let attributes = format!(
            "dimension_numbers = #stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{}], \
             start_index_map = [{}], index_vector_dim = {batch}>, slice_sizes = {}, indices_are_sorted = false",
            List(batch..out.shape.rank()),
            List(&axes),
            List(&axes),
            array(sizes),
        );
        self.writer.op("gather", &[value, &indices], &attributes, Ty::new(value.element(), out.shape.sizes()))
    }

    /// Positions out of range are dropped, as StableHLO prescribes.
    pub(super) fn scatter(
        &mut self,
        op: ScatterOp,
        x: &Operands<'_>,
        axes: &[Axis],
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let indices = w.index(&x.values[1], x.types[1].dtype);
        let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
        // Sums are rounded once, at the end.
        let element = match op {
            ScatterOp::IndexedAdd => computed(out.dtype),
            ScatterOp::IndexedPut => held(out.dtype),
        };
        let part = |w: &mut Writer, at: usize| {
            let value = w.cast(&x.values[at], x.types[at].dtype, out.dtype);
            w.convert(&value, element)
        };
        let (into, updates) = (part(w, 0), part(w, 2));
        let region = match op {
            ScatterOp::IndexedAdd => combine(element, "add"),
            ScatterOp::IndexedPut => RegionText {
                arguments: vec![Ty::scalar(element), Ty::scalar(element)],
                write: Box::new(|_: &mut Writer, arguments: &[Ssa]| Ok(vec![arguments[1].clone()])),
            },
        };
        let first = updates.ty.rank() - (into.ty.rank() - axes.len());
        let attributes = format!(
            "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{}], inserted_window_dims = [{}], \
             scatter_dims_to_operand_dims = [{}], index_vector_dim = {}>, indices_are_sorted = false, \
             unique_indices = false",
            List(first..updates.ty.rank()),
            List(&axes),
            List(&axes),
            indices.ty.rank() - 1,
        );
        let ty = into.ty.clone();
        let written = w
            .op_with("scatter", &[&into, &indices, &updates], &attributes, vec![region], &[ty])
            .expect("an update is always written")
            .remove(0);
        w.store(&written, out.dtype)
    }
}
