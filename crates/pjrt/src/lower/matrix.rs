//! Triangular systems and factorizations.

use defn_core::op::Transform;
use defn_core::{TensorType, compose};

use super::block::defined;
use super::text::{Dims, Ssa, Writer};
use super::value::half;
use super::{Lowering, Operands, Result};
use crate::element::ElementType as E;

impl Lowering {
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
        // A vector is a matrix with one column, or with one row.
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

    /// The lower factor.
    pub(super) fn cholesky(&mut self, operands: &Operands<'_>, out: &TensorType) -> Result<Ssa> {
        let w = &mut self.writer;
        let x = w.load_as(&operands.values[0], operands.types[0].dtype, out.dtype);
        if x.dims().contains(&0) {
            return Ok(w.store(&x, out.dtype));
        }
        let factor = w.op("cholesky", &[&x], "lower = true", x.ty.clone());
        self.complete_cholesky(operands, &factor, None, out)
    }

    /// The lower factor, whose elements above the diagonal may be anything. If a pivot is not positive, or the predicate
    /// does not hold for a matrix, the definition decides whether the matrix is singular or has no factor.
    pub(super) fn complete_cholesky(
        &mut self,
        operands: &Operands<'_>,
        factor: &Ssa,
        succeeded: Option<&Ssa>,
        out: &TensorType,
    ) -> Result<Ssa> {
        let w = &mut self.writer;
        let (rank, element) = (factor.ty.rank(), factor.element());
        let (lower, off) = (w.triangle(factor, "GE"), w.triangle(factor, "NE"));
        let zero = w.number_like(factor, 0);
        let factor = w.choose(&lower, factor, &zero);
        // A matrix is good if all its pivots are positive.
        let real = if out.dtype.is_complex() {
            w.op("real", &[&factor], "", factor.ty.of(half(element)))
        } else {
            factor.clone()
        };
        let none = w.number_like(&real, 0);
        let positive = w.compare(&real, &none, "GT");
        let good = w.op("or", &[&positive, &off], "", off.ty.clone());
        let yes = w.number(E::Pred, 1);
        let good = w.fold(&good, &yes, &[rank - 2, rank - 1], "and");
        let good = match succeeded {
            Some(succeeded) => w.op("and", &[&good, succeeded], "", good.ty.clone()),
            None => good,
        };
        let batch: Vec<usize> = (0..rank - 2).collect();
        let all = w.fold(&good, &yes, &batch, "and");
        let good = w.for_each_matrix(&good, &factor);
        let factor = w.store(&factor, out.dtype);
        let definition = defined(operands, |graph, x| {
            Ok(vec![compose::matrix::factor::cholesky_of_singular(graph, &x[0])?])
        })?;
        let other = self.value_or_region(&all, &factor, &definition, &operands.values)?;
        Ok(self.writer.choose(&good, &factor, &other))
    }
}
