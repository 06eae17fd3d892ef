//! Tensors that are computed from nothing.

use defn_core::builder::BuildCreate;
use defn_core::{AxisRef, DType, Location, Number, Result, Shape};

use super::eager;
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
