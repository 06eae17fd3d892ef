//! Products of matrices, triangular systems, and Fourier transforms.

use defn_core::op::{FftOp, Tolerance, Transform};
use defn_core::{Axis, DType, TensorType};

use super::text::{Dims, List, Ssa, Ty, Writer};
use super::value::{computed, half};
use super::{Lowering, Operands};
use crate::element::ElementType as E;

impl Lowering {
    pub(super) fn dot(&mut self, x: &Operands<'_>, axes: [&[Axis]; 4], out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        let operand = |w: &mut Writer, at: usize| w.load_as(&x.values[at], x.types[at].dtype, out.dtype);
        let (a, b) = (operand(w, 0), operand(w, 1));
        let [contract_a, batch_a, contract_b, batch_b] = axes.map(|axes| {
            let axes: Vec<usize> = axes.iter().map(|axis| axis.index()).collect();
            List(&axes).to_string()
        });
        let attributes = format!(
            "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{batch_a}], \
             rhs_batching_dimensions = [{batch_b}], lhs_contracting_dimensions = [{contract_a}], \
             rhs_contracting_dimensions = [{contract_b}]>, \
             precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
        );
        let ty = Ty::new(computed(out.dtype), out.shape.sizes());
        let product = w.op("dot_general", &[&a, &b], &attributes, ty);
        w.store(&product, out.dtype)
    }

    pub(super) fn triangular_solve(
        &mut self,
        x: &Operands<'_>,
        lower: bool,
        left_side: bool,
        transform: Transform,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let operand = |w: &mut Writer, at: usize| w.load_as(&x.values[at], x.types[at].dtype, out.dtype);
        let (a, b) = (operand(w, 0), operand(w, 1));
        // A vector is a matrix of one column, or of one row.
        let mut dims: Dims = b.dims().into();
        if b.ty.rank() < a.ty.rank() {
            dims.insert(if left_side { dims.len() } else { dims.len() - 1 }, 1);
        }
        let b = w.reshape(&b, &dims);
        let transform = match transform {
            Transform::None => "NO_TRANSPOSE",
            Transform::Transpose => "TRANSPOSE",
            Transform::Conjugate => "ADJOINT",
        };
        let attributes = format!(
            "left_side = {left_side}, lower = {lower}, unit_diagonal = false, \
             transpose_a = #stablehlo<transpose {transform}>"
        );
        let y = w.op("triangular_solve", &[&a, &b], &attributes, b.ty.clone());
        let y = w.reshape(&y, out.shape.sizes());
        w.store(&y, out.dtype)
    }

    pub(super) fn fft(
        &mut self,
        op: FftOp,
        x: &Operands<'_>,
        axis: Axis,
        length: usize,
        eps: Tolerance,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let element = computed(out.dtype);
        let z = w.load_as(&x.values[0], x.types[0].dtype, out.dtype);
        let (axis, rank) = (axis.index(), z.ty.rank());
        // Cut, or filled up with zeros.
        let mut config = vec![(0, 0, 0); rank];
        let signed = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        config[axis].1 = signed(length) - signed(z.dims()[axis]);
        let zero = w.number(element, 0);
        let z = w.pad(&z, &zero, &config);
        // The transform is along the last axis.
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(axis, rank - 1);
        let z = w.transpose(&z, &axes);
        let kind = match op {
            FftOp::Fft => "FFT",
            FftOp::Ifft => "IFFT",
        };
        let attributes = format!("fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>");
        let y = if z.dims().contains(&0) { z.clone() } else { w.op("fft", &[&z], &attributes, z.ty.clone()) };
        let y = w.transpose(&y, &axes);
        w.without_dust(&y, eps)
    }
}

impl Writer {
    /// Complex numbers whose parts smaller than a tolerance are 0.
    fn without_dust(&mut self, z: &Ssa, eps: Tolerance) -> Ssa {
        if eps.0 <= 0.0 {
            return z.clone();
        }
        let part = z.ty.of(half(z.element()));
        let dtype = if part.element == E::F64 { DType::F64 } else { DType::F32 };
        let bound = defn_core::Scalar::new(dtype, eps.0).expect("a float is a number of a float type");
        let bound = self.scalar(bound);
        let bound = self.splat(&bound, z.dims());
        let parts = ["real", "imag"].map(|name| {
            let x = self.op(name, &[z], "", part.clone());
            let size = self.op("abs", &[&x], "", part.clone());
            let small = self.compare(&size, &bound, "LT");
            let zero = self.number_like(&x, 0);
            self.choose(&small, &zero, &x)
        });
        self.op("complex", &[&parts[0], &parts[1]], "", z.ty.clone())
    }
}
