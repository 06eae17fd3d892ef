//! Solutions from factors, and matrices that are built of others.

use super::batch::{constant_like, product, transposed};
use super::square_size;
use crate::builder::{BuildCreate, BuildElementwise, BuildIndex, BuildMatrix, BuildShape, Builder};
use crate::compose::working_dtype;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::Transform;
use crate::shape::{Axes, Shape, TensorType};

/// Requires a right-hand side with the leading axes of `a` and as many rows, or one vector for each matrix. Returns
/// whether it holds vectors.
fn right_side(op: &'static str, a: &TensorType, y: &TensorType) -> Result<bool> {
    let n = square_size(op, a.clone())?;
    let lead = &a.shape.sizes()[..a.shape.rank() - 2];
    match y.shape.sizes().strip_prefix(lead) {
        Some(&[size]) if size == n => Ok(true),
        Some(&[rows, _]) if rows == n => Ok(false),
        Some(_) | None => {
            let required =
                "leading axes must be equal, followed by a vector of its size or a matrix of as many rows";
            Err(ErrorKind::System { op, left: a.clone(), right: y.clone(), required }.into())
        }
    }
}

/// `x` in a dtype, without names.
fn plain<B: Builder>(b: &mut B, x: &B::V, dtype: DType) -> Result<B::V> {
    let shape = b.ty(x).shape.without_names();
    let x = b.as_type(x.clone(), dtype)?;
    b.reshape_to(x, shape)
}

/// See [`BuildMatrix::lu_solve`].
///
/// # Errors
/// As the method.
pub fn lu_solve<B: Builder>(b: &mut B, factors: [&B::V; 3], y: &B::V) -> Result<B::V> {
    let op = "lu_solve";
    let types = factors.map(|factor| b.ty(factor));
    let right = b.ty(y);
    for ty in &types {
        square_size(op, ty.clone())?;
    }
    for ty in &types[1..] {
        if ty.shape.sizes() != types[0].shape.sizes() {
            let (left, right) = (types[0].clone(), ty.clone());
            let required = "the factors must have the same shape";
            return Err(ErrorKind::System { op, left, right, required }.into());
        }
    }
    let vector = right_side(op, &types[1], &right)?;
    let dtype = types[1].dtype.merge(types[2].dtype).merge(right.dtype).to_float();
    let working = working_dtype(dtype);
    let [p, l, u] = factors;
    let (p, l, u) = (plain(b, p, working)?, plain(b, l, working)?, plain(b, u, working)?);
    let y = plain(b, y, working)?;
    let shape = b.ty(&y).shape;
    let y = if vector { b.new_axis(y, -1, None)? } else { y };
    let p = transposed(b, &p)?;
    let y = product(b, &p, &y)?;
    let y = b.triangular_solve(l, y, true, true, Transform::None)?;
    // The solution for a singular matrix is NaN, while a triangular system with a zero on its diagonal is an error.
    let square = b.ty(&u).shape;
    let diagonal = b.eye(square, DType::Bool)?;
    let zero = b.equal(u.clone(), 0)?;
    let singular = b.logical_and(diagonal, zero)?;
    let nan = constant_like(b, &u, f64::NAN)?;
    let u = b.select(singular, nan, u)?;
    let y = b.triangular_solve(u, y, false, true, Transform::None)?;
    let y = b.reshape_to(y, shape)?;
    b.as_type(y, dtype)
}

/// See [`BuildMatrix::cho_solve`].
///
/// # Errors
/// As the method.
pub fn cho_solve<B: Builder>(b: &mut B, factor: &B::V, y: &B::V, lower: bool) -> Result<B::V> {
    let (left, right) = (b.ty(factor), b.ty(y));
    right_side("cho_solve", &left, &right)?;
    let dtype = left.dtype.merge(right.dtype).to_float();
    let working = working_dtype(dtype);
    let (factor, y) = (plain(b, factor, working)?, plain(b, y, working)?);
    let (first, last) =
        if lower { (Transform::None, Transform::Adjoint) } else { (Transform::Adjoint, Transform::None) };
    let y = b.triangular_solve(factor.clone(), y, lower, true, first)?;
    let y = b.triangular_solve(factor, y, lower, true, last)?;
    b.as_type(y, dtype)
}

/// See [`BuildMatrix::block_diag`].
///
/// # Errors
/// As the method.
pub fn block_diag<B: Builder>(b: &mut B, tensors: &[B::V]) -> Result<B::V> {
    let op = "block_diag";
    let types: Vec<TensorType> = tensors.iter().map(|tensor| b.ty(tensor)).collect();
    let Some(dtype) = types.iter().map(|ty| ty.dtype).reduce(DType::merge) else {
        return Err(ErrorKind::NoTensors { op }.into());
    };
    let mut sizes = Vec::with_capacity(types.len());
    for ty in &types {
        sizes.push(match *ty.shape.sizes() {
            [] => (1, 1),
            [size] => (1, size),
            [rows, columns] => (rows, columns),
            [..] => {
                let (got, required) = (ty.clone(), "at most two axes are required");
                return Err(ErrorKind::Rank { op, got, required }.into());
            }
        });
    }
    let width: usize = sizes.iter().map(|&(_, columns)| columns).sum();
    let mut before = 0;
    let mut blocks = Vec::with_capacity(tensors.len());
    for (tensor, &(rows, columns)) in tensors.iter().zip(&sizes) {
        let block = b.as_type(tensor.clone(), dtype)?;
        let block = b.reshape_to(block, Shape::new(&[rows, columns]))?;
        let zero = b.constant(dtype, 0)?;
        let after = width - before - columns;
        blocks.push(b.pad(block, zero, &[(0, 0, 0), (before as i64, after as i64, 0)])?);
        before += columns;
    }
    b.concatenate(&blocks, 0)
}

/// See [`BuildMatrix::toeplitz`].
///
/// # Errors
/// As the method.
pub fn toeplitz<B: Builder>(b: &mut B, column: &B::V, row: Option<&B::V>) -> Result<B::V> {
    let op = "toeplitz";
    let row = match row {
        Some(row) => row.clone(),
        None => super::batch::conjugated(b, column)?,
    };
    let (of_column, of_row) = (b.ty(column), b.ty(&row));
    let (&[rows], &[columns]) = (of_column.shape.sizes(), of_row.shape.sizes()) else {
        let got = if of_column.shape.rank() == 1 { of_row } else { of_column };
        let required = "a vector is required; use vmap for several";
        return Err(ErrorKind::Rank { op, got, required }.into());
    };
    let dtype = of_column.dtype.merge(of_row.dtype);
    if rows == 0 || columns == 0 {
        return b.full(Shape::new(&[rows, columns]), dtype, 0);
    }
    let (column, row) = (plain(b, column, dtype)?, plain(b, &row, dtype)?);
    // Element (i, j) is number rows - 1 - i + j of the column, upwards, and the rest of the row.
    let upwards = b.reverse(column, Axes::All)?;
    let rest = b.slice_along_axis(row, 1, columns as i64 - 1, 0, 1)?;
    let elements = b.concatenate(&[upwards, rest], 0)?;
    let from = b.iota(Shape::new(&[rows, 1]), DType::S64, Some(0.into()))?;
    let to = b.iota(Shape::new(&[1, columns]), DType::S64, Some(1.into()))?;
    let positions = b.subtract(to, from)?;
    let positions = b.add(positions, rows as i64 - 1)?;
    b.take(elements, positions, 0)
}
