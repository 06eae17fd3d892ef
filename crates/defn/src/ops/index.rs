//! Reads and writes at positions held in a tensor.

use defn_core as core;
use defn_core::builder::{Arg, BuildIndex};
use defn_core::{Axes, AxisRef, Location, Result, Shape};

use super::arrange::{exprs, own};
use super::eager;
use crate::expr::{Operand, record};
use crate::{Expr, Tensor};

defn_core::index_functions!(shared);

impl Expr {
    /// The indices on each axis of a shape, from positions of elements in row-major order, such as
    /// [`argmax`](Self::argmax) of all elements. A position below 0 counts from the end. One out of range is moved to
    /// the nearest.
    ///
    /// - Shape: one expression for each axis, of the shape of the positions, with their names.
    /// - Dtypes: integers; the result is s32, or s64 where the number of elements needs it.
    /// - Gradient: zero.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| x.unravel_index(&[2, 3]));
    /// let x = Tensor::from_slice(&[0, 5, -2], &[3])?;
    /// let entries = f.call(x)?;
    /// assert_eq!(entries[0].to_vec::<i32>()?, [0, 1, 1]);
    /// assert_eq!(entries[1].to_vec::<i32>()?, [0, 2, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Positions that are not integers (`DType`), and a position in a shape without elements (`Shape`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn unravel_index(&self, sizes: &[usize]) -> Vec<Expr> {
        exprs(self.record(Location::caller(), |ops, x| ops.unravel_index(x, &Shape::new(sizes))))
    }

    /// The positions on and below diagonal `offset` of a matrix of `n` rows and `m` columns: their rows and their
    /// columns, in row-major order.
    ///
    /// - Shape: two vectors with one element for each position.
    /// - Dtypes: s32, or s64 where a size needs it.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| {
    ///     let (rows, columns) = Expr::tril_indices(2, 2, 0);
    ///     x.gather(Expr::stack(&[rows, columns], 1), [0, 1])
    /// });
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(f.call(x)?.to_vec::<i32>()?, [1, 3, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sizes that are too large (`Shape`, `OutOfMemory`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn tril_indices(n: usize, m: usize, offset: i64) -> (Expr, Expr) {
        Expr::both(record(Location::caller(), |ops| ops.tril_indices(n, m, offset)))
    }

    /// The positions on and above diagonal `offset` of a matrix of `n` rows and `m` columns: their rows and their
    /// columns, in row-major order.
    ///
    /// - Shape: two vectors with one element for each position.
    /// - Dtypes: s32, or s64 where a size needs it.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| {
    ///     let (rows, columns) = Expr::triu_indices(2, 2, 0);
    ///     x.gather(Expr::stack(&[rows, columns], 1), [0, 1])
    /// });
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(f.call(x)?.to_vec::<i32>()?, [1, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sizes that are too large (`Shape`, `OutOfMemory`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn triu_indices(n: usize, m: usize, offset: i64) -> (Expr, Expr) {
        Expr::both(record(Location::caller(), |ops| ops.triu_indices(n, m, offset)))
    }
}

impl Tensor {
    /// The indices on each axis of a shape, from positions of elements in row-major order, such as
    /// [`argmax`](Self::argmax) of all elements. A position below 0 counts from the end. One out of range is
    /// refused.
    ///
    /// - Shape: one tensor for each axis, of the shape of the positions, with their names.
    /// - Dtypes: integers; the result is s32, or s64 where the number of elements needs it.
    /// - Gradient: zero.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[0, 5, -2], &[3])?;
    /// let entries = x.unravel_index(&[2, 3])?;
    /// assert_eq!(entries[0].to_vec::<i32>()?, [0, 1, 1]);
    /// assert_eq!(entries[1].to_vec::<i32>()?, [0, 2, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Positions that are not integers (`DType`), and a position in a shape without elements (`Shape`), and one out of range (`Bounds`).
    #[track_caller]
    pub fn unravel_index(&self, sizes: &[usize]) -> Result<Vec<Tensor>> {
        eager(Location::caller(), |ops| ops.unravel_index(&self.0, &Shape::new(sizes))).map(own)
    }

    /// The positions on and below diagonal `offset` of a matrix of `n` rows and `m` columns: their rows and their
    /// columns, in row-major order.
    ///
    /// - Shape: two vectors with one element for each position.
    /// - Dtypes: s32, or s64 where a size needs it.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let (rows, columns) = Tensor::tril_indices(2, 2, 0)?;
    /// assert_eq!(rows.to_vec::<i32>()?, [0, 1, 1]);
    /// assert_eq!(columns.to_vec::<i32>()?, [0, 0, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sizes that are too large (`Shape`, `OutOfMemory`).
    #[track_caller]
    pub fn tril_indices(n: usize, m: usize, offset: i64) -> Result<(Tensor, Tensor)> {
        let (rows, columns) = eager(Location::caller(), |ops| ops.tril_indices(n, m, offset))?;
        Ok((Tensor(rows), Tensor(columns)))
    }

    /// The positions on and above diagonal `offset` of a matrix of `n` rows and `m` columns: their rows and their
    /// columns, in row-major order.
    ///
    /// - Shape: two vectors with one element for each position.
    /// - Dtypes: s32, or s64 where a size needs it.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let (rows, columns) = Tensor::triu_indices(2, 2, 0)?;
    /// assert_eq!(rows.to_vec::<i32>()?, [0, 0, 1]);
    /// assert_eq!(columns.to_vec::<i32>()?, [0, 1, 1]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Sizes that are too large (`Shape`, `OutOfMemory`).
    #[track_caller]
    pub fn triu_indices(n: usize, m: usize, offset: i64) -> Result<(Tensor, Tensor)> {
        let (rows, columns) = eager(Location::caller(), |ops| ops.triu_indices(n, m, offset))?;
        Ok((Tensor(rows), Tensor(columns)))
    }
}
