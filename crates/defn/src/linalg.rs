//! Linear algebra of expressions and of tensors, on the matrices in the last two axes.
//!
//! Results are floats or complex. Of an expression comes an expression, of a tensor a result at once.
//!
//! ```
//! use defn::{Tensor, linalg};
//!
//! let a = Tensor::from_slice(&[4.0f32, 1.0, 1.0, 3.0], &[2, 2])?;
//! let b = Tensor::from_slice(&[9.0f32, 5.0], &[2])?;
//! let x = linalg::solve(&a, &b)?.to_vec::<f32>()?;
//! assert!((x[0] - 2.0).abs() < 1e-5 && (x[1] - 1.0).abs() < 1e-5);
//! let (values, _) = linalg::eigh(&a, 1000, 0.0)?;
//! assert_eq!(values.to_vec::<f32>()?.len(), 2);
//! # Ok::<(), defn::Error>(())
//! ```

use defn_core as core;
pub use defn_core::builder::NormOrder;
use defn_core::builder::{BuildMatrix, Ops};
pub use defn_core::op::{QrMode, Transform};
use defn_core::{Axes, Location, Result};

use crate::expr::{Operand, record};
use crate::ops::eager;
use crate::{Expr, Tensor};

type Two<T> = (T, T);
type Three<T> = (T, T, T);
type Core = core::Tensor;

/// What may have factors: an expression, or a tensor.
pub trait Matrices: sealed::Sealed {
    /// One result: an expression keeps its error, a tensor gives it.
    type One;
    /// Two results.
    type Two;
    /// Three results.
    type Three;

    #[doc(hidden)]
    fn one(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Core>) -> Self::One;

    #[doc(hidden)]
    fn two(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Two<Core>>) -> Self::Two;

    #[doc(hidden)]
    fn three(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Three<Core>>) -> Self::Three;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Expr {}
    impl Sealed for crate::Tensor {}
}

impl Expr {
    fn factors<R>(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<R>) -> Result<R> {
        match &self.0 {
            Ok(tensor) => record(at, |ops| run(ops, tensor)),
            Err(error) => Err(error.clone()),
        }
    }
}

impl Matrices for Expr {
    type One = Expr;
    type Two = (Expr, Expr);
    type Three = (Expr, Expr, Expr);

    fn one(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Core>) -> Expr {
        Expr(self.factors(at, run))
    }

    fn two(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Two<Core>>) -> Two<Expr> {
        match self.factors(at, run) {
            Ok((a, b)) => (Expr(Ok(a)), Expr(Ok(b))),
            Err(error) => (Expr(Err(error.clone())), Expr(Err(error))),
        }
    }

    fn three(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Three<Core>>) -> Three<Expr> {
        match self.factors(at, run) {
            Ok((a, b, c)) => (Expr(Ok(a)), Expr(Ok(b)), Expr(Ok(c))),
            Err(error) => (Expr(Err(error.clone())), Expr(Err(error.clone())), Expr(Err(error))),
        }
    }
}

impl Matrices for Tensor {
    type One = Result<Tensor>;
    type Two = Result<(Tensor, Tensor)>;
    type Three = Result<(Tensor, Tensor, Tensor)>;

    fn one(&self, at: Location, run: impl FnOnce(&mut Ops, &Core) -> Result<Core>) -> Result<Tensor> {
        eager(at, |ops| run(ops, &self.0)).map(Tensor)
    }

    fn two(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<Two<Core>>,
    ) -> Result<Two<Tensor>> {
        eager(at, |ops| run(ops, &self.0)).map(|(a, b)| (Tensor(a), Tensor(b)))
    }

    fn three(
        &self,
        at: Location,
        run: impl FnOnce(&mut Ops, &Core) -> Result<Three<Core>>,
    ) -> Result<Three<Tensor>> {
        eager(at, |ops| run(ops, &self.0)).map(|(a, b, c)| (Tensor(a), Tensor(b), Tensor(c)))
    }
}

/// `fn name(options) -> kind |builder, x| call`, for both kinds of value.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $kind:ident, $method:ident
        |$b:ident, $x:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<M: Matrices>(x: &M, $($arg: $ty),*) -> M::$kind {
            x.$method(Location::caller(), |$b, $x| $body)
        }
    )*};
}

functions! {
    /// The last two axes exchanged, and complex elements conjugated.
    fn adjoint() -> One, one |ops, x| ops.adjoint(x);
    /// The lower factor `l` of `l adjoint(l)`; NaN where a matrix is not positive definite.
    fn cholesky() -> One, one |ops, x| ops.cholesky(x);
    /// The determinant.
    fn determinant() -> One, one |ops, x| ops.determinant(x);
    /// The eigenvalues of symmetric or Hermitian matrices, ascending, and eigenvectors in columns.
    /// What is at most `eps` becomes 0.
    fn eigh(max_iter: usize, eps: f64) -> Two, two |ops, x| ops.eigh(x, max_iter, eps);
    /// The inverse; NaN where a matrix is singular.
    fn invert() -> One, one |ops, x| ops.invert(x);
    /// The permutation, the unit lower and the upper triangular factor.
    fn lu() -> Three, three |ops, x| ops.lu(x);
    /// The product of `power` times the matrix; the inverse of that for negative ones, the identity for 0.
    fn matrix_power(power: i64) -> One, one |ops, x| ops.matrix_power(x, power);
    /// How many singular values are above `eps` times the longer side times the greatest of them.
    fn matrix_rank(eps: f64) -> One, one |ops, x| ops.matrix_rank(x, eps);
    /// A norm of a vector or a matrix, or of the vectors along one axis of a matrix.
    fn norm(order: Option<NormOrder>, axes: impl Into<Axes>, keep_axes: bool) -> One, one
        |ops, x| ops.norm(x, order, axes, keep_axes);
    /// The pseudo-inverse, for which singular values below `eps` count as zero.
    fn pinv(eps: f64) -> One, one |ops, x| ops.pinv(x, eps);
    /// The orthogonal factor, and the upper triangular one. `eps` allows smaller columns to count as zero.
    fn qr(mode: QrMode, eps: f64) -> Two, two |ops, x| ops.qr(x, mode, eps);
    /// The singular vectors on the left, the values, descending, and the vectors on the right, in rows.
    fn svd(max_iter: usize, full_matrices: bool) -> Three, three |ops, x| ops.svd(x, max_iter, full_matrices);
}

/// The `x` of `a x = b`; `b` holds matrices, or one vector for each of those of `a`.
#[track_caller]
pub fn solve<M: Matrices>(a: &M, b: impl Into<Operand>) -> M::One {
    let b = b.into();
    a.one(Location::caller(), |ops, a| ops.solve(a, b.0?))
}

/// The `x` of `t(a) x = b`, or of `x t(a) = b`, for the lower or the upper triangle of `a`.
#[track_caller]
pub fn triangular_solve<M: Matrices>(
    a: &M,
    b: impl Into<Operand>,
    lower: bool,
    left_side: bool,
    transform: Transform,
) -> M::One {
    let b = b.into();
    a.one(Location::caller(), |ops, a| ops.triangular_solve(a, b.0?, lower, left_side, transform))
}

/// The shortest of the vectors `x` for which `a x` is closest to `b`.
#[track_caller]
pub fn least_squares<M: Matrices>(a: &M, b: impl Into<Operand>, eps: f64) -> M::One {
    let b = b.into();
    a.one(Location::caller(), |ops, a| ops.least_squares(a, b.0?, eps))
}
