//! Products of matrices, triangular systems, and Fourier transforms.

use defn_core::op::{FftOp, Tolerance, Transform};
use defn_core::{Axis, DType, TensorType, compose};

use super::control::defined;
use super::text::{Dims, List, Ssa, Ty, Writer, array};
use super::value::{computed, half, held};
use super::{Lowering, Operands, Result};
use crate::element::ElementType as E;

impl Lowering {
    pub(super) fn dot(&mut self, x: &Operands<'_>, axes: [&[Axis]; 4], out: &TensorType) -> Ssa {
        let w = &mut self.writer;
        // Products of small floats are exact in f32, and devices have units that form and add them.
        let narrow = match out.dtype {
            DType::F16 | DType::BF16 => Some(held(out.dtype)),
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
        let (transform, conjugates) = match transform {
            Transform::None => ("NO_TRANSPOSE", false),
            Transform::Transpose => ("TRANSPOSE", false),
            Transform::Conjugate => ("NO_TRANSPOSE", out.dtype.is_complex()),
            Transform::Adjoint => ("ADJOINT", false),
        };
        let a = if conjugates { w.conjugate(&a) } else { a };
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
        let y = w.transform(kind, &z, axes, lengths, &Ty::new(computed(out.dtype), out.shape.sizes()));
        w.without_dust(&y, eps)
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
        let y = w.transform("RFFT", &x, &[axis], &[length], &Ty::new(computed(out.dtype), out.shape.sizes()));
        w.without_dust(&y, eps)
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
        let ty = Ty::new(computed(out.dtype), out.shape.sizes());
        let y = w.transform("IRFFT", &z, &[axis], &[length], &ty);
        let y = w.part_without_dust(&y, eps);
        w.store(&y, out.dtype)
    }

    /// The lower factor. Where a pivot is not positive the definition says whether the matrix is singular, or has no
    /// factor.
    pub(super) fn cholesky(&mut self, operands: &Operands<'_>, out: &TensorType) -> Result<Ssa> {
        let w = &mut self.writer;
        let x = w.load_as(&operands.values[0], operands.types[0].dtype, out.dtype);
        if x.dims().contains(&0) {
            return Ok(w.store(&x, out.dtype));
        }
        let factor = w.op("cholesky", &[&x], "lower = true", x.ty.clone());
        let (rank, element) = (x.ty.rank(), x.element());
        let places = x.ty.of(E::S64);
        let (rows, columns) = (w.iota(places.clone(), rank - 2), w.iota(places, rank - 1));
        let (lower, on) = (w.compare(&rows, &columns, "GE"), w.compare(&rows, &columns, "EQ"));
        let zero = w.number_like(&factor, 0);
        let factor = w.choose(&lower, &factor, &zero);
        // A matrix is good if no pivot is other than positive.
        let real = if out.dtype.is_complex() {
            w.op("real", &[&factor], "", x.ty.of(half(element)))
        } else {
            factor.clone()
        };
        let none = w.number_like(&real, 0);
        let positive = w.compare(&real, &none, "GT");
        let off = w.op("not", &[&on], "", on.ty.clone());
        let good = w.op("or", &[&positive, &off], "", on.ty.clone());
        let yes = w.number(E::Pred, 1);
        let good = w.fold(&good, &yes, &[rank - 2, rank - 1], "and");
        let batch: Vec<usize> = (0..rank - 2).collect();
        let all = w.fold(&good, &yes, &batch, "and");
        let good = w.broadcast_along(&good, &batch, x.dims());
        let factor = w.store(&factor, out.dtype);
        let definition = defined(operands, |graph, x| Ok(vec![compose::factor::cholesky(graph, &x[0])?]))?;
        let other = self.unless(&all, &factor, &definition, &operands.values)?;
        Ok(self.writer.choose(&good, &factor, &other))
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

    /// A transform along some axes, each of which is cut or filled up with zeros to its length first; that back to
    /// real elements needs a half of the frequencies.
    fn transform(&mut self, kind: &str, x: &Ssa, axes: &[Axis], lengths: &[usize], out: &Ty) -> Ssa {
        let rank = x.ty.rank();
        let signed = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        let mut config = vec![(0, 0, 0); rank];
        for (axis, &length) in axes.iter().zip(lengths) {
            let taken = if kind == "IRFFT" { length / 2 + 1 } else { length };
            config[axis.index()].1 = signed(taken) - signed(x.dims()[axis.index()]);
        }
        if out.dims.contains(&0) {
            let zero = self.number(out.element, 0);
            return self.splat(&zero, &out.dims);
        }
        let zero = self.number(x.element(), 0);
        let x = self.pad(x, &zero, &config);
        // The transform is along the last axes.
        let is_kept = |axis: &usize| axes.iter().all(|other| other.index() != *axis);
        let order: Vec<usize> =
            (0..rank).filter(is_kept).chain(axes.iter().map(|axis| axis.index())).collect();
        let x = self.transpose(&x, &order);
        let mut ty = Ty::new(out.element, x.dims());
        ty.dims[rank - 1] = out.dims[order[rank - 1]];
        let attributes = format!("fft_type = #stablehlo<fft_type {kind}>, fft_length = {}", array(lengths));
        let y = self.op("fft", &[&x], &attributes, ty);
        let mut back = vec![0; rank];
        order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
        self.transpose(&y, &back)
    }

    /// Floats, of which those smaller than a tolerance are 0.
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
}

impl Writer {
    /// Complex numbers whose parts smaller than a tolerance are 0.
    fn without_dust(&mut self, z: &Ssa, eps: Tolerance) -> Ssa {
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
