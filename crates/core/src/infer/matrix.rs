//! Types of linear systems and factorizations.

use smallvec::smallvec;

use crate::error::{ErrorKind, Result};
use crate::op::{Outputs, QrMode};
use crate::shape::{Shape, TensorType};

/// The sizes of the matrices in the last two axes.
fn matrix(op: &'static str, got: &TensorType) -> Result<(usize, usize)> {
    match got.shape.sizes() {
        [.., rows, columns] => Ok((*rows, *columns)),
        [] | [_] => {
            let required = "at least two axes are required";
            Err(ErrorKind::Rank { op, got: got.clone(), required }.into())
        }
    }
}

/// The size of the square matrices in the last two axes.
fn square(op: &'static str, got: &TensorType) -> Result<usize> {
    match matrix(op, got)? {
        (rows, columns) if rows == columns => Ok(rows),
        _ => Err(ErrorKind::NotSquare { op, got: got.clone() }.into()),
    }
}

/// A right-hand side fits a system of `a` if it has the same batch and as many rows as `a`, or as many
/// columns where `a` is on its right; or if it is one vector for each matrix.
fn system(op: &'static str, a: &TensorType, b: &TensorType, left_side: bool) -> Result<()> {
    let n = square(op, a)?;
    let batch = &a.shape.sizes()[..a.shape.rank() - 2];
    let fits = match b.shape.sizes().strip_prefix(batch) {
        Some([size]) => *size == n,
        Some([rows, columns]) => n == if left_side { *rows } else { *columns },
        Some(_) | None => false,
    };
    if fits {
        return Ok(());
    }
    let required = if left_side {
        "leading axes must be equal, followed by a vector of its size or a matrix of as many rows"
    } else {
        "leading axes must be equal, followed by a vector of its size or a matrix of as many columns"
    };
    Err(ErrorKind::System { op, left: a.clone(), right: b.clone(), required }.into())
}

/// The shape and names of `b` in the merged float dtype.
pub(super) fn triangular_solve(a: &TensorType, b: &TensorType, left_side: bool) -> Result<TensorType> {
    system("triangular_solve", a, b, left_side)?;
    TensorType::new(a.dtype.merge(b.dtype).to_float(), b.shape.clone())
}

/// The shape of `b`, without names, in the merged float dtype.
pub(super) fn solve(a: &TensorType, b: &TensorType) -> Result<TensorType> {
    system("solve", a, b, true)?;
    TensorType::new(a.dtype.merge(b.dtype).to_float(), b.shape.without_names())
}

/// The type of `x`, converted to a float dtype.
pub(super) fn cholesky(x: &TensorType) -> Result<TensorType> {
    square("cholesky", x)?;
    TensorType::new(x.dtype.to_float(), x.shape.clone())
}

/// The leading axes.
pub(super) fn determinant(x: &TensorType) -> Result<TensorType> {
    square("determinant", x)?;
    batch_of(x, &[])
}

/// The orthogonal factor, and the triangular one.
pub(super) fn qr(x: &TensorType, mode: QrMode) -> Result<Outputs> {
    let (m, n) = matrix("qr", x)?;
    let width = match mode {
        QrMode::Reduced => m.min(n),
        QrMode::Complete => m,
    };
    Ok(smallvec![batch_of(x, &[m, width])?, batch_of(x, &[width, n])?])
}

/// The permutation in the dtype of `x`, and the two triangular factors.
pub(super) fn lu(x: &TensorType) -> Result<Outputs> {
    let n = square("lu", x)?;
    let factor = batch_of(x, &[n, n])?;
    Ok(smallvec![factor.with_dtype(x.dtype)?, factor.clone(), factor])
}

/// The left vectors, the values, and the right vectors.
pub(super) fn svd(x: &TensorType, full: bool) -> Result<Outputs> {
    let (m, n) = matrix("svd", x)?;
    let k = m.min(n);
    let (rows, columns) = if full { (m, n) } else { (k, k) };
    let values = batch_of(x, &[k])?;
    let values = values.with_dtype(values.dtype.to_real())?;
    Ok(smallvec![batch_of(x, &[m, rows])?, values, batch_of(x, &[columns, n])?])
}

/// The real singular values.
pub(super) fn svdvals(x: &TensorType) -> Result<TensorType> {
    let (m, n) = matrix("svdvals", x)?;
    let values = batch_of(x, &[m.min(n)])?;
    values.with_dtype(values.dtype.to_real())
}

/// The complex values, and the complex vectors.
pub(super) fn eig(x: &TensorType, vectors: bool) -> Result<Outputs> {
    let n = square("eig", x)?;
    let dtype = x.dtype.to_complex();
    let values = batch_of(x, &[n])?.with_dtype(dtype)?;
    if !vectors {
        return Ok(smallvec![values]);
    }
    Ok(smallvec![values, batch_of(x, &[n, n])?.with_dtype(dtype)?])
}

/// The complex triangular factor, and the complex unitary one.
pub(super) fn schur(x: &TensorType) -> Result<Outputs> {
    let n = square("schur", x)?;
    let factor = batch_of(x, &[n, n])?.with_dtype(x.dtype.to_complex())?;
    Ok(smallvec![factor.clone(), factor])
}

/// The Hessenberg factor, and the unitary one.
pub(super) fn hessenberg(x: &TensorType) -> Result<Outputs> {
    let n = square("hessenberg", x)?;
    let factor = batch_of(x, &[n, n])?;
    Ok(smallvec![factor.clone(), factor])
}

/// The type of a function of matrices, such as the exponential.
pub(super) fn function(op: &'static str, x: &TensorType, complex: bool) -> Result<TensorType> {
    let n = square(op, x)?;
    let ty = batch_of(x, &[n, n])?;
    if complex { ty.with_dtype(x.dtype.to_complex()) } else { Ok(ty) }
}

/// The values, and the vectors.
pub(super) fn eigh(x: &TensorType) -> Result<Outputs> {
    let n = square("eigh", x)?;
    Ok(smallvec![batch_of(x, &[n])?, batch_of(x, &[n, n])?])
}

/// The real eigenvalues.
pub(super) fn eigvalsh(x: &TensorType) -> Result<TensorType> {
    let n = square("eigvalsh", x)?;
    let values = batch_of(x, &[n])?;
    values.with_dtype(values.dtype.to_real())
}

/// The leading axes of `x`, then the axes `last`, without names, in the float dtype.
fn batch_of(x: &TensorType, last: &[usize]) -> Result<TensorType> {
    let sizes = x.shape.sizes();
    let sizes: Vec<usize> = sizes[..sizes.len() - 2].iter().chain(last).copied().collect();
    TensorType::new(x.dtype.to_float(), Shape::new(&sizes))
}
