//! Eigenvalues of general matrices, functions of matrices, and solutions from factors.

use defn_core::Location;
use defn_core::builder::{Arg, BuildMatrix, Builder};

use super::Matrices;
use crate::expr::Operand;
use crate::values::functions;

functions! {
    /// The eigenvalues of square matrices, in no specified order, and unit eigenvectors in columns, whose element of the
    /// greatest magnitude is positive. Factors of a matrix with a NaN or an infinity are NaN.
    ///
    /// - Shape: `[..][n]` and `[..][n][n]`, without names.
    /// - Dtypes: any; the results are c64 for f32 and integers, c128 for f64.
    /// - Gradient: eigenvalues must differ if the vectors are used, and the function must not depend on the vectors'
    ///   phases.
    ///
    /// ```
    /// # use defn::{Tensor, linalg};
    /// let x = Tensor::from_slice(&[3f64, 1.0, 0.0, 2.0], &[2, 2])?;
    /// let (values, _) = linalg::eig(&x)?;
    /// let mut values = values.real()?.to_vec::<f64>()?;
    /// values.sort_by(f64::total_cmp);
    /// assert!((values[0] - 2.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn eig() -> Two, two |ops, x| ops.eig(x);

    /// The eigenvalues of square matrices, as those of [`eig`].
    ///
    /// - Shape: `[..][n]`, without names.
    /// - Dtypes: any; the results are c64 for f32 and integers, c128 for f64.
    /// - Gradient: through [`eig`], whose matrix of vectors must not be singular.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[0f64, -1.0, 1.0, 0.0], &[2, 2])?;
    /// let sizes = linalg::eigvals(&x)?.abs()?.to_vec::<f64>()?;
    /// assert!(sizes.iter().all(|size| (size - 1.0).abs() < 1e-12));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn eigvals() -> One, one |ops, x| ops.eigvals(x);

    /// The upper triangular `t`, with the eigenvalues on its diagonal, and the unitary `z` of `x = z t adjoint(z)`.
    ///
    /// - Shape: twice that of `x`, without names.
    /// - Dtypes: any; the results are c64 for f32 and integers, c128 for f64.
    /// - Gradient: none.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[3f64, 1.0, 4.0, 2.0], &[2, 2])?;
    /// let (t, z) = linalg::schur(&x)?;
    /// let difference = (&z.matmul(&t)?.matmul(&linalg::adjoint(&z)?)? - &x)?.abs()?;
    /// assert!(difference.reduce_max(Axes::All, false)?.item::<f64>()? < 1e-12);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn schur() -> Two, two |ops, x| ops.schur(x);

    /// The `h`, which is zero below its first subdiagonal, and the unitary `q` of `x = q h adjoint(q)`.
    ///
    /// - Shape: twice that of `x`, without names.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: through the reflections.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1f64, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0], &[3, 3])?;
    /// let (h, q) = linalg::hessenberg(&x)?;
    /// let difference = (&q.matmul(&h)?.matmul(&linalg::adjoint(&q)?)? - &x)?.abs()?;
    /// assert!(difference.reduce_max(Axes::All, false)?.item::<f64>()? < 1e-12);
    /// assert_eq!(h.to_vec::<f64>()?[6], 0.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn hessenberg() -> Two, two |ops, x| ops.hessenberg(x);

    /// The exponential of square matrices, by scaling and squaring (Higham, 2005).
    ///
    /// - Shape: unchanged, without names.
    /// - Dtypes: any; integers become f32.
    /// - Gradient: the exponential of a matrix of twice the size.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[0f64, 1.0, 0.0, 0.0], &[2, 2])?;
    /// let y = linalg::expm(&x)?.to_vec::<f64>()?;
    /// assert!(y.iter().zip([1.0, 1.0, 0.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-14));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn expm() -> One, one |ops, x| ops.expm(x);

    /// The principal square root of square matrices, from the triangular factor of [`schur`] (Björck & Hammarling, 1983).
    ///
    /// - Shape: unchanged, without names.
    /// - Dtypes: any; the result is c64 for f32 and integers, c128 for f64.
    /// - Gradient: the square root of a matrix of twice the size.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[4f64, 1.0, 0.0, 9.0], &[2, 2])?;
    /// let y = linalg::sqrtm(&x)?.real()?.to_vec::<f64>()?;
    /// assert!(y.iter().zip([2.0, 0.2, 0.0, 3.0]).all(|(y, want)| (y - want).abs() < 1e-12));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn sqrtm() -> One, one |ops, x| ops.sqrtm(x);

    /// The principal logarithm of square matrices, by inverse scaling and squaring (Higham, 2008). That of a singular
    /// matrix is NaN.
    ///
    /// - Shape: unchanged, without names.
    /// - Dtypes: any; the result is c64 for f32 and integers, c128 for f64.
    /// - Gradient: the logarithm of a matrix of twice the size.
    ///
    /// ```
    /// # use defn::{Axes, Tensor, linalg};
    /// let x = Tensor::from_slice(&[1f64, 1.0, 0.0, 1.0], &[2, 2])?;
    /// let y = linalg::logm(&x)?.real()?.to_vec::<f64>()?;
    /// assert!(y.iter().zip([0.0, 1.0, 0.0, 0.0]).all(|(y, want)| (y - want).abs() < 1e-12));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Matrices that are not square, and a rank below 2 (`Shape`).
    fn logm() -> One, one |ops, x| ops.logm(x);
}

/// The solution `x` of `a x = b` from the factors `(p, l, u)` of `a` that [`lu`](super::lu) returns; NaN if `a` is singular.
///
/// - Shape: as that of [`solve`](super::solve).
/// - Dtypes: any; promoted, integers to f32.
/// - Gradient: through two triangular systems.
///
/// ```
/// # use defn::{Tensor, linalg};
/// let a = Tensor::from_slice(&[0f64, 2.0, 4.0, 0.0], &[2, 2])?;
/// let b = Tensor::from_slice(&[2f64, 4.0], &[2])?;
/// let (p, l, u) = linalg::lu(&a)?;
/// assert_eq!(linalg::lu_solve(&p, &l, &u, &b)?.to_vec::<f64>()?, [1.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Factors that are not square or whose shapes differ, and a `b` that does not fit (`Shape`).
#[track_caller]
pub fn lu_solve<M: Matrices>(
    p: &M,
    l: impl Into<Operand>,
    u: impl Into<Operand>,
    b: impl Into<Operand>,
) -> M::One {
    let (l, u, b) = (l.into(), u.into(), b.into());
    p.one(Location::caller(), |ops, p| ops.lu_solve(p, l.0?, u.0?, b.0?))
}

/// The solution `x` of `a x = b` from the factor of `a` that [`cholesky`](super::cholesky) returns, or without `lower` from the upper
/// factor `u` of `a = adjoint(u) u`.
///
/// - Shape: as that of [`solve`](super::solve).
/// - Dtypes: any; promoted, integers to f32.
/// - Gradient: through two triangular systems.
///
/// ```
/// # use defn::{Tensor, linalg};
/// let a = Tensor::from_slice(&[4f64, 0.0, 0.0, 9.0], &[2, 2])?;
/// let b = Tensor::from_slice(&[4f64, 18.0], &[2])?;
/// let l = linalg::cholesky(&a)?;
/// assert_eq!(linalg::cho_solve(&l, &b, true)?.to_vec::<f64>()?, [1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A factor that is not square, and a `b` that does not fit (`Shape`); on tensors a zero on the diagonal (`Option`).
#[track_caller]
pub fn cho_solve<M: Matrices>(factor: &M, b: impl Into<Operand>, lower: bool) -> M::One {
    let b = b.into();
    factor.one(Location::caller(), |ops, factor| ops.cho_solve(factor, b.0?, lower))
}

/// The matrix with the given matrices along its diagonal and zeros elsewhere. A vector is one row, a scalar one element.
///
/// - Shape: the sums of the rows and of the columns, without names.
/// - Dtypes: any; promoted.
/// - Gradient: the blocks.
///
/// ```
/// # use defn::{Tensor, linalg};
/// let x = Tensor::from_slice(&[1, 2], &[2, 1])?;
/// let y = Tensor::from_slice(&[3, 4], &[1, 2])?;
/// let z = linalg::block_diag(&x, &[&y])?;
/// assert_eq!(z.to_vec::<i32>()?, [1, 0, 0, 2, 0, 0, 0, 3, 4]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A rank above 2 (`Shape`).
#[track_caller]
pub fn block_diag<M: Matrices>(first: &M, others: &[impl Into<Operand> + Clone]) -> M::One {
    let others: Vec<Operand> = others.iter().map(|other| other.clone().into()).collect();
    first.one(Location::caller(), |ops, first| {
        let mut tensors = vec![Arg::Value(first.clone())];
        for other in others {
            tensors.push(other.0?);
        }
        let tensors = ops.weak_all("block_diag", tensors)?;
        ops.block_diag(&tensors)
    })
}

/// The matrix with equal elements along each diagonal, from its first column and its first row, whose first element is
/// not used.
///
/// - Shape: the lengths of the column and of the row, without names.
/// - Dtypes: any; promoted.
/// - Gradient: the sums along the diagonals.
///
/// ```
/// # use defn::{Tensor, linalg};
/// let column = Tensor::from_slice(&[1, 2], &[2])?;
/// let row = Tensor::from_slice(&[1, 3, 4], &[3])?;
/// assert_eq!(linalg::toeplitz(&column, &row)?.to_vec::<i32>()?, [1, 3, 4, 2, 1, 3]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another rank than 1 (`Shape`).
#[track_caller]
pub fn toeplitz<M: Matrices>(column: &M, row: impl Into<Operand>) -> M::One {
    let row = row.into();
    column.one(Location::caller(), |ops, column| {
        let (column, row) = ops.weak_pair("toeplitz", column, row.0?)?;
        ops.toeplitz(column, Some(row.into()))
    })
}
