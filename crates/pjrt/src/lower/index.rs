//! Gather and scatter: reads and writes at positions given by a tensor.

use defn_core::op::ScatterOp;
use defn_core::{Axis, TensorType};

use super::reduce::combine;
use super::text::{List, RegionText, Ssa, Ty, Writer, array};
use super::value::{compute_type, storage_type};
use super::{LowerError, Lowering, Operands};
use crate::element::ElementType as E;

impl Lowering {
    /// Negative positions count from the end. Positions still out of range are moved to the nearest element, as
    /// StableHLO specifies.
    pub(super) fn gather(&mut self, x: &Operands<'_>, axes: &[Axis], out: &TensorType) -> Ssa {
        let value = &x.values[0];
        if out.shape.size() == 0 {
            // A slice of one element does not fit in an empty axis.
            let zero = self.writer.number(value.element(), 0);
            return self.writer.splat(&zero, out.shape.sizes());
        }
        let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
        let indices = self.writer.positions(&x.values[1], x.types[1].dtype, value.dims(), &axes);
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

    /// Negative positions count from the end. Updates at positions still out of range are dropped, as StableHLO
    /// specifies.
    pub(super) fn scatter(
        &mut self,
        op: ScatterOp,
        x: &Operands<'_>,
        axes: &[Axis],
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let mut axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
        let mut indices = w.positions(&x.values[1], x.types[1].dtype, out.shape.sizes(), &axes);
        let mut sizes = out.shape.sizes().to_vec();
        if axes.is_empty() {
            // XLA writes only one of several updates if positions have no entries, so they get one entry, which is 0.
            let zero = w.number(indices.element(), 0);
            indices = w.splat(&zero, &[indices.dims()[0], 1]);
            axes.push(0);
            sizes.insert(0, 1);
        }
        let into = |w: &mut Writer, into: &Ssa| w.reshape(into, &sizes);
        let operand_as = |w: &mut Writer, at: usize, element: E| {
            let value = w.cast(&x.values[at], x.types[at].dtype, out.dtype);
            w.convert(&value, element)
        };
        match op {
            ScatterOp::IndexedAdd => {
                // Sums are rounded once, after all additions.
                let element = compute_type(out.dtype);
                let (value, updates) = (operand_as(w, 0, element), operand_as(w, 2, element));
                let into = into(w, &value);
                let sums = w.write_at(&into, &indices, &updates, &axes, combine(element, "add"));
                let stored = w.store(&sums, out.dtype);
                w.reshape(&stored, out.shape.sizes())
            }
            ScatterOp::IndexedPut => {
                let element = storage_type(out.dtype);
                let (value, updates) = (operand_as(w, 0, element), operand_as(w, 2, element));
                let into = into(w, &value);
                let indices = w.last_of_each(&indices, &axes, into.dims());
                let put = RegionText {
                    arguments: vec![Ty::scalar(element), Ty::scalar(element)],
                    write: Box::new(|_: &mut Writer, arguments: &[Ssa]| Ok(vec![arguments[1].clone()])),
                };
                let put = w.write_at(&into, &indices, &updates, &axes, put);
                w.reshape(&put, out.shape.sizes())
            }
        }
    }
}

impl Writer {
    /// Combines updates with the elements at the positions in the rows of `indices`, along some axes.
    fn write_at(
        &mut self,
        into: &Ssa,
        indices: &Ssa,
        updates: &Ssa,
        axes: &[usize],
        region: RegionText<'_, LowerError>,
    ) -> Ssa {
        let first = updates.ty.rank() - (into.ty.rank() - axes.len());
        let attributes = format!(
            "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{}], inserted_window_dims = [{}], \
             scatter_dims_to_operand_dims = [{}], index_vector_dim = {}>, indices_are_sorted = false, \
             unique_indices = false",
            List(first..updates.ty.rank()),
            List(axes),
            List(axes),
            indices.ty.rank() - 1,
        );
        let ty = into.ty.clone();
        self.op_with("scatter", &[into, indices, updates], &attributes, vec![region], &[ty])
            .expect("an update is always written")
            .remove(0)
    }

    /// Moves repeated rows of indices out of range, except the last of each: devices write in any order.
    fn last_of_each(&mut self, indices: &Ssa, axes: &[usize], sizes: &[usize]) -> Ssa {
        let count = indices.dims()[0];
        let sizes: Vec<usize> = axes.iter().map(|&axis| sizes[axis]).collect();
        if count < 2 || sizes.contains(&0) {
            return indices.clone();
        }
        let numbers = self.iota(Ty::new(E::S64, &[count]), 0);
        let nowhere = self.number(E::S64, -1);
        let none = self.splat(&nowhere, &sizes);
        let all: Vec<usize> = (0..sizes.len()).collect();
        let last = self.write_at(&none, indices, &numbers, &all, combine(E::S64, "maximum"));
        let attributes = format!(
            "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [{}], start_index_map = [{}], \
             index_vector_dim = 1>, slice_sizes = {}, indices_are_sorted = false",
            List(&all),
            List(&all),
            array(sizes.iter().map(|_| 1)),
        );
        let last = self.op("gather", &[&last, indices], &attributes, numbers.ty.clone());
        let is_last = self.compare(&last, &numbers, "EQ");
        let is_last = self.broadcast_along(&is_last, &[0], indices.dims());
        let nowhere = self.number_like(indices, -1);
        self.choose(&is_last, indices, &nowhere)
    }
}
