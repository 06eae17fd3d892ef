//! Tensors that are computed from nothing.

use defn_core::builder::BuildCreate;
use defn_core::{AxisRef, DType, Location, Number, Result, Shape};

use super::eager;
use crate::{Expr, Tensor};

unary! {
    /// Zeros of the type of `x`.
    fn zeros_like;
    /// Ones of the type of `x`.
    fn ones_like;
}

impl Expr {
    /// A scalar of an element type.
    #[track_caller]
    pub fn constant(dtype: DType, number: impl Into<Number>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.constant(dtype, number))
    }

    /// One number everywhere in a shape.
    #[track_caller]
    pub fn full(sizes: &[usize], dtype: DType, number: impl Into<Number>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.full(Shape::new(sizes), dtype, number))
    }

    /// Counts from 0 along an axis, or over the flat index.
    #[track_caller]
    pub fn iota(sizes: &[usize], dtype: DType, axis: Option<AxisRef>) -> Expr {
        Expr::make(Location::caller(), |ops| ops.iota(Shape::new(sizes), dtype, axis))
    }

    /// Ones where the last two indices agree, else zeros.
    #[track_caller]
    pub fn eye(sizes: &[usize], dtype: DType) -> Expr {
        Expr::make(Location::caller(), |ops| ops.eye(Shape::new(sizes), dtype))
    }
}

impl Tensor {
    /// One number everywhere in a shape.
    ///
    /// # Errors
    /// A float for integers, or a shape too large.
    #[track_caller]
    pub fn full(sizes: &[usize], dtype: DType, number: impl Into<Number>) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.full(Shape::new(sizes), dtype, number)).map(Tensor)
    }

    /// Counts from 0 along an axis, or over the flat index.
    ///
    /// # Errors
    /// An axis that the shape does not have, or a shape too large.
    #[track_caller]
    pub fn iota(sizes: &[usize], dtype: DType, axis: Option<AxisRef>) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.iota(Shape::new(sizes), dtype, axis)).map(Tensor)
    }

    /// Ones where the last two indices agree, else zeros.
    ///
    /// # Errors
    /// A shape of rank below 2, or too large.
    #[track_caller]
    pub fn eye(sizes: &[usize], dtype: DType) -> Result<Tensor> {
        eager(Location::caller(), |ops| ops.eye(Shape::new(sizes), dtype)).map(Tensor)
    }
}
