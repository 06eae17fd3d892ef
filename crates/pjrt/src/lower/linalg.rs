//! Matrix products.

use defn_core::{Axis, DType, TensorType};

use super::text::{List, Ssa, Ty, Writer};
use super::value::{compute_type, half, storage_type};
use super::{Lowering, Operands};
use crate::element::ElementType as E;

impl Lowering {
    pub(super) fn dot(&mut self, x: &Operands<'_>, axes: [&[Axis]; 4], out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        // Products of small floats are exact in f32, and devices have units that multiply and accumulate them.
        let narrow = match out.dtype {
            DType::F16 | DType::BF16 => Some(storage_type(out.dtype)),
            DType::F8E5M2 | DType::F8E4M3FN => Some(E::F16),
            DType::Bool
            | DType::U2
            | DType::U4
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::S2
            | DType::S4
            | DType::S8
            | DType::S16
            | DType::S32
            | DType::S64
            | DType::F32
            | DType::F64
            | DType::C64
            | DType::C128 => None,
        };
        let operand = |w: &mut Writer, at: usize| match narrow {
            Some(element) => {
                let narrow = w.cast(&x.values[at], x.types[at].dtype, out.dtype);
                w.convert(&narrow, element)
            }
            None => w.load_as(&x.values[at], x.types[at].dtype, out.dtype),
        };
        let precision = if narrow.is_some() { "DEFAULT" } else { "HIGHEST" };
        let (a, b) = (operand(w, 0), operand(w, 1));
        let [contract_a, batch_a, contract_b, batch_b] = axes.map(|axes| {
            let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
            List(&axes).to_string()
        });
        let attributes = format!(
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{batch_a}], \
             rhs_batching_dimensions = [{batch_b}], lhs_contracting_dimensions = [{contract_a}], \
             rhs_contracting_dimensions = [{contract_b}]>, \
             precision_config = [#stablehlo<precision {precision}>, #stablehlo<precision {precision}>]"
        );
        let ty = Ty::new(compute_type(out.dtype), out.shape.sizes());
        let product = w.op("dot_general", &[&a, &b], &attributes, ty);
        w.store(&product, out.dtype)
    }
}

impl Writer {
    /// The conjugates of complex numbers.
    pub fn conjugate(&mut self, z: &Ssa) -> Ssa {
        let part = z.ty.of(half(z.element()));
        let (re, im) = (self.op("real", &[z], "", part.clone()), self.op("imag", &[z], "", part.clone()));
        let im = self.op("negate", &[&im], "", part);
        self.op("complex", &[&re, &im], "", z.ty.clone())
    }
}
