//! Tensors that are computed from nothing.

use defn_core as core;
use defn_core::builder::{Arg, BuildCreate};
use defn_core::{AxisRef, DType, Location, Number, Result, Shape};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

unary! {
    /// Zeros of the type of `x`, whose elements are not read.
    ///
    /// - Shape: that of `x`, with its names.
    /// - Dtypes: any; unchanged.
    /// - Gradient: zero.
    fn zeros_like;
    errors no_own_errors!();
    example { (x = f32[2] "3.0, f32::NAN") x.zeros_like() == f32[2] "0.0, 0.0" }

    /// Ones of the type of `x`, whose elements are not read.
    ///
    /// - Shape: that of `x`, with its names.
    /// - Dtypes: any; unchanged.
    /// - Gradient: zero.
    fn ones_like;
    errors no_own_errors!();
    example { (x = f32[2] "3.0, f32::NAN") x.ones_like() == f32[2] "1.0, 1.0" }
}

methods! {
    /// The matrix with zeros above diagonal `k` of the last two axes.
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any; bools become s32.
    /// - Gradient: `g` with zeros above the diagonal.
    fn tril(k: i64) |ops, x| ops.tril(x, k);
    errors "A rank below 2 (`Shape`).";
    example { (x = s32[2][2] "1, 2, 3, 4") x.tril("0") == s32[2][2] "1, 0, 3, 4" }

    /// The matrix with zeros below diagonal `k` of the last two axes.
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any; bools become s32.
    /// - Gradient: `g` with zeros below the diagonal.
    fn triu(k: i64) |ops, x| ops.triu(x, k);
    errors "A rank below 2 (`Shape`).";
    example { (x = s32[2][2] "1, 2, 3, 4") x.triu("1") == s32[2][2] "0, 2, 0, 0" }

    /// A square matrix with a vector on the diagonal `offset`, and zeros elsewhere.
    ///
    /// - Shape: both sizes are the length of the vector plus the magnitude of the offset.
    /// - Dtypes: any; bools become s32.
    /// - Gradient: the diagonal of `g`.
    fn make_diagonal(offset: i64) |ops, x| ops.make_diagonal(x, offset);
    errors "A rank other than 1 (`Shape`).";
    example { (x = s32[2] "5, 6") x.make_diagonal("0") == s32[2][2] "5, 0, 0, 6" }

    /// The diagonal `offset` of the last two axes.
    ///
    /// - Shape: the other axes, and then the diagonal; axis names are dropped.
    /// - Dtypes: any; unchanged.
    /// - Gradient: zeros with `g` on the diagonal.
    fn take_diagonal(offset: i64) |ops, x| ops.take_diagonal(x, offset);
    errors "A rank below 2 (`Shape`), and an offset outside of the matrix (`Option`).";
    example { (x = s32[2][2] "1, 2, 3, 4") x.take_diagonal("0") == s32[2] "1, 4" }
}

with_operands! {
    /// A scalar at every position of the tensor, whose elements are not read.
    ///
    /// - Shape: that of the tensor, with its names.
    /// - Dtypes: any; promoted. A plain number takes the dtype of the tensor.
    /// - Gradient: zero, and the sum of `g`.
    fn fill(value; ) |ops, x| ops.fill(x, value, None);
    errors "A value that is not a scalar (`Shape`).";
    example { (x = s32[2] "1, 2") x.fill("7") == s32[2] "7, 7" }


    /// The matrix with its diagonal `offset` replaced by a vector.
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any; promoted.
    /// - Gradient: `g` with zeros on the diagonal, and the diagonal of `g`.
    fn put_diagonal(diagonal; offset: i64) |ops, x| ops.put_diagonal(x, diagonal, offset);
    errors "A matrix of another rank than 2, and a diagonal of another length (`Shape`); an offset outside of the \
        matrix (`Option`).";
    example { (x = s32[2][2] "1, 2, 3, 4", d = s32[2] "8, 9") x.put_diagonal("&d, 0") == s32[2][2] "8, 2, 3, 9" }
}

impl Expr {
    /// A scalar of a dtype.
    ///
    /// - Shape: a scalar.
    /// - Dtypes: the given one. Integers wrap, floats are rounded, and everything but 0 becomes true.
    ///
    /// ```
    /// # use defn::{Axes, DType, Expr, Tensor, jit};
    /// let power = jit(|n: Expr| Expr::constant(DType::F32, 2.0).pow(n));
    /// assert_eq!(power.call(Tensor::scalar(10)?)?.item::<f32>()?, 1024.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A float for an integer dtype, and a complex number for a real one (`DType`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn constant(dtype: DType, number: impl Into<Number>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.constant(dtype, number))
    }

    /// One number at every position of a shape.
    ///
    /// - Shape: the given sizes.
    /// - Dtypes: the given one. Integers wrap, floats are rounded, and everything but 0 becomes true.
    ///
    /// ```
    /// # use defn::{Axes, DType, Expr, Tensor, jit};
    /// let shifted = jit(|x: Expr| x + Expr::full(&[2], DType::F32, 0.5));
    /// let x = Tensor::from_slice(&[1f32, 2.0], &[2])?;
    /// assert_eq!(shifted.call(x)?.to_vec::<f32>()?, [1.5, 2.5]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A float for an integer dtype, and a complex number for a real one (`DType`); a shape that is too large (`Shape`,
    /// `OutOfMemory`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn full(sizes: &[usize], dtype: DType, number: impl Into<Number>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.full(Shape::new(sizes), dtype, number))
    }

    /// Numbers from 0 on along an axis, or without an axis over all axes in row-major order.
    ///
    /// - Shape: the given sizes.
    /// - Dtypes: the given one.
    ///
    /// ```
    /// # use defn::{Axes, DType, Expr, Tensor, jit};
    /// let index = jit(|x: Expr| x * Expr::iota(&[3], DType::S32, None));
    /// let x = Tensor::from_slice(&[5, 5, 5], &[3])?;
    /// assert_eq!(index.call(x)?.to_vec::<i32>()?, [0, 5, 10]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the shape does not have (`Axis`), and a shape that is too large (`Shape`, `OutOfMemory`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn iota(sizes: &[usize], dtype: DType, axis: Option<AxisRef>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.iota(Shape::new(sizes), dtype, axis))
    }

    /// Numbers at equal distances, of which the last is `stop` with `endpoint`, and else the one before it.
    ///
    /// - Shape: one axis of `count` elements.
    /// - Dtypes: the given one, a float or complex.
    ///
    /// ```
    /// # use defn::{DType, Expr, Tensor, jit};
    /// let grid = jit(|x: Expr| x + Expr::linspace(0.0, 1.0, 3, DType::F32, true));
    /// assert_eq!(grid.call(Tensor::scalar(1.0)?)?.to_vec::<f32>()?, [1.0, 1.5, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A count below 1 (`Option`), and a dtype that is no float (`DType`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn linspace(start: f64, stop: f64, count: i64, dtype: DType, endpoint: bool) -> Expr {
        Expr::make(Location::caller(), |ops| ops.linspace(start, stop, count, None, dtype, endpoint))
    }

    /// A matrix that is true on and below the diagonal `k`.
    ///
    /// - Shape: so many rows and columns.
    /// - Dtypes: bool.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let mask = jit(|x: Expr| Expr::tri(2, 2, 0).select(x, 0));
    /// assert_eq!(mask.call(Tensor::scalar(7)?)?.to_vec::<i32>()?, [7, 0, 7, 7]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that is too large (`Shape`, `OutOfMemory`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn tri(rows: usize, columns: usize, k: i64) -> Expr {
        Expr::make(Location::caller(), |ops| ops.tri(rows, columns, k))
    }

    /// 1 where the last two indices are equal, else 0.
    ///
    /// - Shape: the given sizes, at least two.
    /// - Dtypes: the given one.
    ///
    /// ```
    /// # use defn::{Axes, DType, Expr, Tensor, jit};
    /// let trace = jit(|x: Expr| (x * Expr::eye(&[2, 2], DType::F32)).sum(Axes::All, false));
    /// let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(trace.call(x)?.item::<f32>()?, 5.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2, and a shape that is too large (`Shape`, `OutOfMemory`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn eye(sizes: &[usize], dtype: DType) -> Expr {
        Expr::make(Location::caller(), |ops| ops.eye(Shape::new(sizes), dtype))
    }
}

impl Tensor {
    /// One number at every position of a shape.
    ///
    /// - Shape: the given sizes.
    /// - Dtypes: the given one. Integers wrap, floats are rounded, and everything but 0 becomes true.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::full(&[2, 2], DType::U8, 7)?;
    /// assert_eq!(x.ty().to_string(), "u8[2][2]");
    /// assert_eq!(x.to_vec::<u8>()?, [7, 7, 7, 7]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A float for an integer dtype, and a complex number for a real one (`DType`); a shape that is too large (`Shape`,
    /// `OutOfMemory`).
    #[track_caller]
    pub fn full(sizes: &[usize], dtype: DType, number: impl Into<Number>) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.full(Shape::new(sizes), dtype, number)).map(Tensor)
    }

    /// Numbers from 0 on along an axis, or without an axis over all axes in row-major order.
    ///
    /// - Shape: the given sizes.
    /// - Dtypes: the given one.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let columns = Tensor::iota(&[2, 3], DType::S32, Some(1.into()))?;
    /// assert_eq!(columns.to_vec::<i32>()?, [0, 1, 2, 0, 1, 2]);
    /// let all = Tensor::iota(&[2, 3], DType::S32, None)?;
    /// assert_eq!(all.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the shape does not have (`Axis`), and a shape that is too large (`Shape`, `OutOfMemory`).
    #[track_caller]
    pub fn iota(sizes: &[usize], dtype: DType, axis: Option<AxisRef>) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.iota(Shape::new(sizes), dtype, axis)).map(Tensor)
    }

    /// Numbers at equal distances, of which the last is `stop` with `endpoint`, and else the one before it.
    ///
    /// - Shape: one axis of `count` elements.
    /// - Dtypes: the given one, a float or complex.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let grid = Tensor::linspace(0.0, 1.0, 5, DType::F32, true)?;
    /// assert_eq!(grid.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// let open = Tensor::linspace(0.0, 1.0, 4, DType::F64, false)?;
    /// assert_eq!(open.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A count below 1 (`Option`), and a dtype that is no float (`DType`).
    #[track_caller]
    pub fn linspace(start: f64, stop: f64, count: i64, dtype: DType, endpoint: bool) -> Result<Tensor> {
        let make = |ops: &mut _| BuildCreate::linspace(ops, start, stop, count, None, dtype, endpoint);
        eager(Location::caller(), make).map(Tensor)
    }

    /// A matrix that is true on and below the diagonal `k`.
    ///
    /// - Shape: so many rows and columns.
    /// - Dtypes: bool.
    ///
    /// ```
    /// # use defn::Tensor;
    /// assert_eq!(Tensor::tri(2, 3, 0)?.to_vec::<bool>()?, [true, false, false, true, true, false]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A shape that is too large (`Shape`, `OutOfMemory`).
    #[track_caller]
    pub fn tri(rows: usize, columns: usize, k: i64) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.tri(rows, columns, k)).map(Tensor)
    }

    /// 1 where the last two indices are equal, else 0.
    ///
    /// - Shape: the given sizes, at least two.
    /// - Dtypes: the given one.
    ///
    /// ```
    /// # use defn::{DType, Tensor};
    /// let x = Tensor::eye(&[2, 3], DType::S32)?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 0, 0, 0, 1, 0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank below 2, and a shape that is too large (`Shape`, `OutOfMemory`).
    #[track_caller]
    pub fn eye(sizes: &[usize], dtype: DType) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.eye(Shape::new(sizes), dtype)).map(Tensor)
    }
}
