//! Values with the derivatives of an implicit function.

use defn_core::Location;
use defn_core::builder::{self, LinearOptions};

use crate::control::{Exprs, refill, tensors};
use crate::expr::record;
use crate::linalg::on_leaves;

/// The value, which is a container, with the derivative that the implicit function theorem gives: `condition` is zero at it.
/// Derivatives flow to the expressions that the condition captures, and not through what computed the value.
///
/// `options` choose how the linear systems of the derivative are solved: `LinearOptions::gmres(20)` fits most conditions,
/// and `LinearOptions::dense()` those of few unknowns.
///
/// - Shapes and dtypes: those of the value, floats or complex; the condition keeps them.
/// - Gradient: that of the implicit function, in both modes and of any order. It is NaN where a system is not solved.
///
/// ```
/// use defn::prelude::*;
/// use defn::{LinearOptions, implicit};
///
/// // A fixed point of the cosine, by iterations that are not differentiated.
/// let slope = jit(|scale: Expr| {
///     grad(&scale, |scale| {
///         let x = for_(scale.stop_grad(), 0..100, |x, _| (&scale * x).cos());
///         implicit(x, &LinearOptions::gmres(20), |x| (&scale * &x).cos() - x)
///     })
/// });
/// let slope = slope.call(Tensor::scalar(1.0)?)?.item::<f32>()?;
/// let (x, sine) = (0.739_085_1f32, 0.673_612_03);
/// assert!((slope + x * sine / (1.0 + sine)).abs() < 1e-5);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Integers (`DType`), a condition whose residuals have other types (`Shape`, `DType`) or another structure (`Container`),
/// and options out of range (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn implicit<A: Exprs>(value: A, options: &LinearOptions, condition: impl FnMut(A) -> A) -> A {
    let location = Location::caller();
    let outcome = tensors(&value).and_then(|values| {
        record(location, |ops| {
            builder::implicit(ops, &values, options, &mut on_leaves("implicit", &value, condition))
        })
    });
    refill(&value, outcome)
}
