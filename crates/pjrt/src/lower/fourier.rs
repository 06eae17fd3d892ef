//! Fourier transforms.

use defn_core::op::{FftOp, Tolerance};
use defn_core::{Axis, DType, TensorType};

use super::text::{Ssa, Ty, Writer, array};
use super::value::{compute_type, half};
use super::{Lowering, Operands};
use crate::element::ElementType as E;

impl Lowering {
    pub(super) fn fft(
        &mut self,
        op: FftOp,
        x: &Operands<'_>,
        axis: Axis,
        length: usize,
        eps: Tolerance,
        out: &TensorType,
    ) -> Ssa {
        self.fft_along(op, x, &[axis], &[length], eps, out)
    }

    /// A transform along some axes.
    pub(super) fn fft_along(
        &mut self,
        op: FftOp,
        x: &Operands<'_>,
        axes: &[Axis],
        lengths: &[usize],
        eps: Tolerance,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let z = w.load_as(&x.values[0], x.types[0].dtype, out.dtype);
        let kind = match op {
            FftOp::Fft => "FFT",
            FftOp::Ifft => "IFFT",
        };
        let y = w.transform(kind, &z, axes, lengths, &Ty::new(compute_type(out.dtype), out.shape.sizes()));
        w.zero_below_tolerance(&y, eps)
    }

    /// The first half of the frequencies of real elements.
    pub(super) fn rfft(
        &mut self,
        x: &Operands<'_>,
        axis: Axis,
        length: usize,
        eps: Tolerance,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let real = out.dtype.to_real();
        let x = w.load_as(&x.values[0], x.types[0].dtype, real);
        let y =
            w.transform("RFFT", &x, &[axis], &[length], &Ty::new(compute_type(out.dtype), out.shape.sizes()));
        w.zero_below_tolerance(&y, eps)
    }

    /// Real elements from the first half of their frequencies.
    pub(super) fn irfft(
        &mut self,
        x: &Operands<'_>,
        axis: Axis,
        length: usize,
        eps: Tolerance,
        out: &TensorType,
    ) -> Ssa {
        let w = &mut self.writer;
        let z = w.load_as(&x.values[0], x.types[0].dtype, out.dtype.to_complex());
        let ty = Ty::new(compute_type(out.dtype), out.shape.sizes());
        let y = w.transform("IRFFT", &z, &[axis], &[length], &ty);
        let y = w.part_without_dust(&y, eps);
        w.store(&y, out.dtype)
    }
}

impl Writer {
    /// A transform along some axes. Each axis is cut or padded with zeros to its length first. The transform back to
    /// real elements needs only half of the frequencies.
    fn transform(&mut self, kind: &str, x: &Ssa, axes: &[Axis], lengths: &[usize], out: &Ty) -> Ssa {
        let rank = x.ty.rank();
        let signed = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        let mut config = vec![(0, 0, 0); rank];
        for (axis, &length) in axes.iter().zip(lengths) {
            let used_length = if kind == "IRFFT" { length / 2 + 1 } else { length };
            config[axis.index()].1 = signed(used_length) - signed(x.dims()[axis.index()]);
        }
        if out.dims.contains(&0) {
            let zero = self.number(out.element, 0);
            return self.splat(&zero, &out.dims);
        }
        let zero = self.number(x.element(), 0);
        let x = self.pad(x, &zero, &config);
        // The operation transforms the last axes.
        let is_kept = |axis: &usize| axes.iter().all(|other| other.index() != *axis);
        let order: Vec<usize> =
            (0..rank).filter(is_kept).chain(axes.iter().map(|axis| axis.index())).collect();
        let x = self.transpose(&x, &order);
        let mut ty = Ty::new(out.element, x.dims());
        ty.dims[rank - 1] = out.dims[order[rank - 1]];
        let attributes = format!("fft_type = #stablehlo<fft_type {kind}>, fft_length = {}", array(lengths));
        let y = self.op("fft", &[&x], &attributes, ty);
        let mut inverse = vec![0; rank];
        order.iter().enumerate().for_each(|(at, &axis)| inverse[axis] = at);
        self.transpose(&y, &inverse)
    }

    /// Floats, with those smaller than a tolerance set to 0.
    fn part_without_dust(&mut self, x: &Ssa, eps: Tolerance) -> Ssa {
        if eps.0 <= 0.0 {
            return x.clone();
        }
        let dtype = if x.element() == E::F64 { DType::F64 } else { DType::F32 };
        let bound = defn_core::Scalar::new(dtype, eps.0).expect("a float is a number of a float type");
        let bound = self.scalar(bound);
        let bound = self.splat(&bound, x.dims());
        let size = self.op("abs", &[x], "", x.ty.clone());
        let small = self.compare(&size, &bound, "LT");
        let zero = self.number_like(x, 0);
        self.choose(&small, &zero, x)
    }

    /// Complex numbers, with the parts smaller than a tolerance set to 0.
    fn zero_below_tolerance(&mut self, z: &Ssa, eps: Tolerance) -> Ssa {
        if eps.0 <= 0.0 {
            return z.clone();
        }
        let part = z.ty.of(half(z.element()));
        let parts = ["real", "imag"].map(|name| {
            let x = self.op(name, &[z], "", part.clone());
            self.part_without_dust(&x, eps)
        });
        self.op("complex", &[&parts[0], &parts[1]], "", z.ty.clone())
    }
}
