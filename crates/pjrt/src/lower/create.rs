//! Tensors without operands.

use defn_core::{Axis, DType, Shape, TensorType};

use super::text::{Ssa, Ty, Writer};
use super::value::little_endian;
use super::{Lowering, tensor};
use crate::element::ElementType as E;

impl Lowering {
    /// A constant tensor.
    pub(super) fn literal(&mut self, bytes: Vec<u8>, out: &TensorType) -> Ssa {
        self.writer.literal(tensor(out), &little_endian(out.dtype, bytes))
    }

    /// Counts along an axis, or over the flat index.
    pub(super) fn iota(&mut self, shape: &Shape, dtype: DType, axis: Option<Axis>) -> Ssa {
        let w = &mut self.writer;
        let counted = match axis {
            Some(axis) => w.iota(Ty::new(E::S64, shape.sizes()), axis.index()),
            None => {
                let flat = w.iota(Ty::new(E::S64, &[shape.size()]), 0);
                w.op("reshape", &[&flat], "", Ty::new(E::S64, shape.sizes()))
            }
        };
        w.cast(&counted, DType::S64, dtype)
    }

    /// 1 where the last two indices are equal.
    pub(super) fn eye(&mut self, shape: &Shape, dtype: DType) -> Ssa {
        let w = &mut self.writer;
        let ty = Ty::new(E::S64, shape.sizes());
        let rank = shape.rank();
        let (rows, columns) = (w.iota(ty.clone(), rank - 2), w.iota(ty, rank - 1));
        let diagonal = w.compare(&rows, &columns, "EQ");
        w.cast(&diagonal, DType::Bool, dtype)
    }
}

impl Writer {
    /// Counts along an axis.
    pub fn iota(&mut self, ty: Ty, axis: usize) -> Ssa {
        self.op("iota", &[], &format!("iota_dimension = {axis} : i64"), ty)
    }
}
