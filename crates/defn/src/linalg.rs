//! Linear algebra of expressions and of tensors, on the matrices in the last two axes.
//!
//! Every function takes tensors, whose result is a `Result`, and expressions, whose result is an expression: see
//! [`Matrices`]. Leading axes are a batch. Results are floats or complex, f32 for integers.
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

pub use defn_core::builder::NormOrder;
use defn_core::builder::{Arg, BuildMatrix, Builder};
pub use defn_core::op::{QrMode, Transform};
use defn_core::{Axes, Location};

use crate::expr::Operand;
pub use crate::values::Values as Matrices;
use crate::values::functions;

mod general;
mod solvers;

pub use general::{
    block_diag, cho_solve, eig, eigvals, expm, hessenberg, logm, lu_solve, schur, sqrtm, toeplitz,
};
pub(crate) use solvers::on_leaves;
pub use solvers::{Iterations, bicgstab, cg, gmres};

functions! {
    /// The conjugate transpose: the last two axes are exchanged, and complex elements conjugated.
    ///
    /// - Shape: the last two sizes and names are exchanged; vectors and scalars keep their shape.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g` transposed, and conjugated if the operand is complex.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(linalg::adjoint(&x)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// None of its own.
    fn adjoint() -> One, one |ops, x| ops.adjoint(x);

    /// The lower triangular `l` of `x = l adjoint(l)`, for symmetric or Hermitian matrices. Only the lower triangle is
    /// read.
    ///
    /// The factor of a matrix with a negative eigenvalue is NaN. That of a singular matrix has a column of zeros for
    /// each row that depends on the rows above it.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: two triangular solves; none for a singular matrix.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[4f32, 2.0, 2.0, 5.0], &[2, 2])?;
    /// assert_eq!(linalg::cholesky(&x)?.to_vec::<f32>()?, [2.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn cholesky() -> One, one |ops, x| ops.cholesky(x);

    /// The condition number: the quotient of the greatest and the least singular value. For another order than 2 and -2
    /// the norm of the matrix times that of its inverse. Infinite for singular matrices.
    ///
    /// - Shape: the leading axes, without names; a scalar for the orders of norms.
    /// - Dtypes: integers and floats, complex for the orders of norms; real, f32 for integers.
    /// - Gradient: through the definition.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[4f64, 0.0, 0.0, 2.0], &[2, 2])?;
    /// assert!((linalg::cond(&x, None)?.item::<f64>()? - 2.0).abs() < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2, a matrix without elements, and for the orders of norms several matrices or one that is not
    /// square (`Shape`); complex elements for the others (`DType`); an order that is not defined for matrices (`Option`).
    fn cond(order: Option<NormOrder>) -> One, one |ops, x| ops.cond(x, order);

    /// The determinant: in closed form for up to three rows, else through [`lu`].
    ///
    /// - Shape: the leading axes, without names.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: that of the closed form, or through [`lu`], which needs a nonsingular matrix.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(linalg::determinant(&x)?.item::<f32>()?, -2.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn determinant() -> One, one |ops, x| ops.determinant(x);

    /// The eigenvalues of symmetric or Hermitian matrices in ascending order, and the eigenvectors in columns.
    ///
    /// Vectors have length 1; their sign or phase is not specified. Values and elements of at most `eps` in magnitude
    /// become 0. `max_iter` limits the sweeps of backends that use Jacobi rotations.
    ///
    /// - Shape: `[..][n]` and `[..][n][n]`, without names.
    /// - Dtypes: any; integers become f32. The values keep the dtype of complex matrices.
    /// - Gradient: symmetrized; eigenvalues must differ if the vectors are used.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1f32, 0.0, 0.0, -2.0], &[2, 2])?;
    /// let (values, vectors) = linalg::eigh(&x, 1000, 0.0)?;
    /// assert_eq!(values.to_vec::<f32>()?, [-2.0, 1.0]);
    /// assert_eq!(vectors.abs()?.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`); a `max_iter` below 1, and a negative `eps`
    /// (`Option`).
    fn eigh(max_iter: usize, eps: f64) -> Two, two |ops, x| ops.eigh(x, max_iter, eps);

    /// The eigenvalues of symmetric or Hermitian matrices in ascending order, as those of [`eigh`].
    ///
    /// - Shape: `[..][n]`, without names.
    /// - Dtypes: any; integers become f32. The values of complex matrices are real.
    /// - Gradient: symmetrized.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1f32, 0.0, 0.0, -2.0], &[2, 2])?;
    /// assert_eq!(linalg::eigvalsh(&x)?.to_vec::<f32>()?, [-2.0, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn eigvalsh() -> One, one |ops, x| ops.eigvalsh(x);

    /// The sign of the determinant, for complex matrices its phase, and the logarithm of its magnitude, through [`lu`].
    /// They are 0 and negative infinity for singular matrices.
    ///
    /// - Shape: twice the leading axes, without names.
    /// - Dtypes: any; integers become f32. The logarithm is real.
    /// - Gradient: through [`lu`], which needs a nonsingular matrix.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[0f64, 1.0, 2.0, 0.0], &[2, 2])?;
    /// let (sign, log) = linalg::slogdet(&x)?;
    /// assert_eq!(sign.item::<f64>()?, -1.0);
    /// assert!((log.item::<f64>()? - 2f64.ln()).abs() < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn slogdet() -> Two, two |ops, x| ops.slogdet(x);

    /// The singular values in descending order, as those of [`svd`].
    ///
    /// - Shape: `[..][k]`, where k is the smaller side, without names.
    /// - Dtypes: any; the result is real, f32 for integers.
    /// - Gradient: that of the values alone, which need not be distinct.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[0f64, 2.0, 3.0, 0.0], &[2, 2])?;
    /// let s = linalg::svdvals(&x)?.to_vec::<f64>()?;
    /// assert!((s[0] - 3.0).abs() < 1e-12 && (s[1] - 2.0).abs() < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2 (`Shape`).
    fn svdvals() -> One, one |ops, x| ops.svdvals(x);

    /// The inverse. That of a singular matrix is NaN.
    ///
    /// - Shape: unchanged, without names.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: `-transpose(y) g transpose(y)`, where `y` is the inverse.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[2f32, 0.0, 0.0, 4.0], &[2, 2])?;
    /// assert_eq!(linalg::invert(&x)?.to_vec::<f32>()?, [0.5, 0.0, 0.0, 0.25]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn invert() -> One, one |ops, x| ops.invert(x);

    /// The factors of `x = p l u`: a permutation, a lower triangular matrix with ones on its diagonal, and an upper
    /// triangular one. Partial pivoting takes the pivot of the greatest magnitude.
    ///
    /// - Shape: three times that of `x`, without names.
    /// - Dtypes: any; `p` has the dtype of `x`, the factors are f32 for integers.
    /// - Gradient: two triangular solves; zero from `p`.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1, 2, 4, 4], &[2, 2])?;
    /// let (p, l, u) = linalg::lu(&x)?;
    /// assert_eq!(p.to_vec::<i32>()?, [0, 1, 1, 0]);
    /// assert_eq!(l.to_vec::<f32>()?, [1.0, 0.0, 0.25, 1.0]);
    /// assert_eq!(u.to_vec::<f32>()?, [4.0, 4.0, 0.0, 1.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn lu() -> Three, three |ops, x| ops.lu(x);

    /// The matrix raised to an integer power. A negative power inverts the matrix first; power 0 is the identity.
    ///
    /// - Shape: unchanged, without names.
    /// - Dtypes: any; unchanged for positive powers, where integers wrap and bools become s32; as [`invert`] for
    ///   negative ones; s32 for power 0.
    /// - Gradient: that of the products.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1, 1, 1, 0], &[2, 2])?;
    /// assert_eq!(linalg::matrix_power(&x, 10)?.to_vec::<i32>()?, [89, 55, 55, 34]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn matrix_power(power: i64) -> One, one |ops, x| ops.matrix_power(x, power);

    /// The number of singular values above `eps` times the longer side times the greatest of them.
    ///
    /// - Shape: the leading axes, without names.
    /// - Dtypes: any; the result is s32.
    /// - Gradient: zero.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1, 1, 1, 2, 2, 2, 1, 2, 3], &[3, 3])?;
    /// assert_eq!(linalg::matrix_rank(&x, 1e-7)?.item::<i32>()?, 2);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2 (`Shape`), and a negative `eps` (`Option`).
    fn matrix_rank(eps: f64) -> One, one |ops, x| ops.matrix_rank(x, eps);

    /// The norms of the vectors along one axis, or of the matrices in two axes, rows first: [`NormOrder`] lists them.
    /// Without an order it is the root of the sum of squares along any number of axes.
    ///
    /// - Shape: the other axes. `keep_axes` keeps reduced axes with size 1.
    /// - Dtypes: any. The result is real, f32 for integers.
    /// - Gradient: through the definition; infinite or NaN at 0.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg, linalg::NormOrder};
    /// let x = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(linalg::norm(&x, None, Axes::All, false)?.item::<f32>()?, 5.0);
    /// let x = Tensor::from_slice(&[1, -2, 3, 4], &[2, 2])?;
    /// let rows = linalg::norm(&x, Some(NormOrder::Infinity), Axes::All, false)?;
    /// assert_eq!(rows.item::<f32>()?, 7.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A scalar (`Shape`), an order for more than two axes (`Axis`), and an order that is not defined for vectors or for
    /// matrices (`Option`).
    fn norm(order: Option<NormOrder>, axes: impl Into<Axes>, keep_axes: bool) -> One, one
        |ops, x| ops.norm(x, order, axes, keep_axes);

    /// The pseudo-inverse: for a number its inverse, for a vector its adjoint over its squared norm, for matrices from
    /// the singular values, of which those of at most `eps` times the greatest count as 0.
    ///
    /// - Shape: the last two sizes are exchanged, without names; vectors and scalars keep their shape.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: through the definition, which needs singular values that differ.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[0f64, 4.0], &[2])?;
    /// assert_eq!(linalg::pinv(&x, 1e-10)?.to_vec::<f64>()?, [0.0, 0.25]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A negative `eps` (`Option`).
    fn pinv(eps: f64) -> One, one |ops, x| ops.pinv(x, eps);

    /// The factors of `x = q r`: `q` has orthonormal columns, `r` is upper triangular. The signs of its diagonal are
    /// not specified.
    ///
    /// A backend may treat columns smaller than `eps` as zero; the built-in ones do not.
    ///
    /// - Shape: `[..][m][k]` and `[..][k][n]`, where k is the smaller side, or `[..][m][m]` and `[..][m][n]` for
    ///   [`QrMode::Complete`]; without names.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: a triangular solve with the first columns of `r`, which must be independent.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg, linalg::QrMode};
    /// let x = Tensor::from_slice(&[3f64, 1.0, 4.0, 2.0], &[2, 2])?;
    /// let (q, r) = linalg::qr(&x, QrMode::Reduced, 1e-10)?;
    /// let difference = (&q.matmul(&r)? - &x)?.abs()?.reduce_max(Axes::All, false)?;
    /// assert!(difference.item::<f64>()? < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2 (`Shape`).
    fn qr(mode: QrMode, eps: f64) -> Two, two |ops, x| ops.qr(x, mode, eps);

    /// The factors of `x = u diag(s) vh`: the left singular vectors in columns, the singular values in descending
    /// order, and the right singular vectors in rows. The signs of vectors are not specified.
    ///
    /// `max_iter` limits the sweeps of backends that use Jacobi rotations.
    ///
    /// - Shape: `[..][m][m]`, `[..][k]` and `[..][n][n]`, where k is the smaller side; `[..][m][k]`, `[..][k]` and
    ///   `[..][k][n]` without `full_matrices`; without names.
    /// - Dtypes: any; integers become f32, and the values are real.
    /// - Gradient: singular values must differ if the vectors are used. The function must not depend on the phases of
    ///   complex vectors.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[0f64, 2.0, 3.0, 0.0], &[2, 2])?;
    /// let (_, s, _) = linalg::svd(&x, 100, true)?;
    /// let s = s.to_vec::<f64>()?;
    /// assert!((s[0] - 3.0).abs() < 1e-12 && (s[1] - 2.0).abs() < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2 (`Shape`), and a `max_iter` below 1 (`Option`).
    fn svd(max_iter: usize, full_matrices: bool) -> Three, three |ops, x| ops.svd(x, max_iter, full_matrices);
}

/// The solution `x` of `a x = b`, through [`lu`]. If a pivot is 0, elements of the result are infinite or NaN.
///
/// - Shape: `a` is `[..][n][n]`; `b` is `[..][n][k]`, or `[..][n]` with one vector for each matrix. The result has the
///   shape of `b`, without names.
/// - Dtypes: any; promoted, integers to f32.
/// - Gradient: the solution of the transposed system to `b`, minus its product with `x` to `a`.
///
/// ```
/// # use defn::{Axes, Tensor, linalg};
/// let a = Tensor::from_slice(&[2f32, 0.0, 0.0, 4.0], &[2, 2])?;
/// let b = Tensor::from_slice(&[2f32, 2.0], &[2])?;
/// assert_eq!(linalg::solve(&a, &b)?.to_vec::<f32>()?, [1.0, 0.5]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An `a` that is not square, and a `b` that does not fit (`Shape`).
#[track_caller]
pub fn solve<M: Matrices>(a: &M, b: impl Into<Operand>) -> M::One {
    let b = b.into();
    a.one(Location::caller(), |ops, a| ops.solve(a, b.0?))
}

/// The solution `x` of `t(a) x = b`, or of `x t(a) = b` without `left_side`, for triangular `a`. Only the lower
/// triangle is read if `lower`, else only the upper one.
///
/// A zero on the diagonal is refused on tensors; in a compiled function it produces infinities and NaN.
///
/// - Shape: `a` is `[..][n][n]`; `b` is `[..][n][k]`, `[..][k][n]` if `a` is on the right, or `[..][n]` with one
///   vector for each matrix. The result has the shape and names of `b`.
/// - Dtypes: any; promoted, integers to f32.
/// - Gradient: the solution of the transposed system to `b`, minus its product with `x` to the triangle of `a`.
///
/// ```
/// # use defn::{Axes, Tensor, linalg, linalg::Transform};
/// let a = Tensor::from_slice(&[2f32, 0.0, 1.0, 4.0], &[2, 2])?;
/// let b = Tensor::from_slice(&[2f32, 9.0], &[2])?;
/// let x = linalg::triangular_solve(&a, &b, true, true, Transform::None)?;
/// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// An `a` that is not square, and a `b` that does not fit (`Shape`); on tensors a zero on the diagonal (`Option`).
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

/// The `x` that minimizes the norm of `a x - b`; of several, the one of the least norm. `eps` is that of [`pinv`].
///
/// - Shape: `a` is `[m][n]` and `b` is `[m]`; the result is `[n]`, without a name.
/// - Dtypes: any; promoted, integers to f32.
/// - Gradient: through [`pinv`].
///
/// ```
/// # use defn::{Axes, Tensor, linalg};
/// let a = Tensor::from_slice(&[1f64, 0.0, 0.0, 2.0, 0.0, 0.0], &[3, 2])?;
/// let b = Tensor::from_slice(&[3f64, 4.0, 5.0], &[3])?;
/// let x = linalg::least_squares(&a, &b, 1e-15)?.to_vec::<f64>()?;
/// assert!((x[0] - 3.0).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Other ranks or sizes (`Shape`), and a negative `eps` (`Option`).
#[track_caller]
pub fn least_squares<M: Matrices>(a: &M, b: impl Into<Operand>, eps: f64) -> M::One {
    let b = b.into();
    a.one(Location::caller(), |ops, a| ops.least_squares(a, b.0?, eps))
}

/// The product of a matrix and others, in the order of multiplication with the fewest products of elements, found by
/// dynamic programming. The first may be a vector, as a row, and the last one, as a column.
///
/// - Shape: the rows of the first and the columns of the last, with their names. The axes of vectors are dropped.
/// - Dtypes: any; promoted, bools count in s32. Floats of 8 and 16 bits are rounded once; integers wrap.
/// - Gradient: that of the products.
///
/// ```
/// # use defn::{Axes, Tensor, linalg};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
/// let y = Tensor::from_slice(&[1, 10], &[2])?;
/// assert_eq!(linalg::multi_dot(&x, &[&x, &y])?.to_vec::<i32>()?, [107, 235]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Other ranks, and sizes that do not match (`Shape`); a name that the result would have twice (`Axis`).
#[track_caller]
pub fn multi_dot<M: Matrices>(first: &M, others: &[impl Into<Operand> + Clone]) -> M::One {
    let others: Vec<Operand> = others.iter().map(|other| other.clone().into()).collect();
    first.one(Location::caller(), |ops, first| {
        let mut tensors = vec![Arg::Value(first.clone())];
        for other in others {
            tensors.push(other.0?);
        }
        let tensors = ops.weak_all("multi_dot", tensors)?;
        ops.multi_dot(&tensors)
    })
}
