//! Ops that create tensors, and their composites.

use super::{Arg, BuildElementwise, BuildShape, Builder};
use crate::compose;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Literal, Op};
use crate::scalar::{Number, Scalar};
use crate::shape::{Axes, AxisRef, Name, Shape};

/// Ops that create tensors.
pub trait BuildCreate: Builder + Sized {
    /// A scalar of a given element type. Integers wrap, floats round to the nearest.
    ///
    /// # Errors
    /// A float for an integer type, or a complex number for a type that is not complex.
    fn constant(&mut self, dtype: DType, number: impl Into<Number>) -> Result<Self::V> {
        self.scalar(Scalar::new(dtype, number)?)
    }

    /// A tensor constant of the program.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn literal(&mut self, literal: Literal) -> Result<Self::V> {
        self.emit_one(Op::Literal(literal), &[])
    }

    /// Indices from 0 along `axis`, or flat indices if it is `None`.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let rows = graph.iota(Shape::new(&[2, 3]), DType::S32, Some(0.into()))?;
    /// assert_eq!(Builder::ty(&graph, &rows).to_string(), "s32[2][3]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the shape does not have, and a shape too large to address.
    fn iota(&mut self, shape: Shape, dtype: DType, axis: Option<AxisRef>) -> Result<Self::V> {
        let axis = axis.map(|axis| shape.resolve("iota", &axis)).transpose()?;
        let counted = if dtype.is_bool() { DType::S32 } else { dtype };
        let counts = self.emit_one(Op::Iota { shape, dtype: counted, axis }, &[])?;
        self.as_type(counts, dtype)
    }

    /// Ones where the last two indices are equal, else zeros.
    ///
    /// # Errors
    /// A shape of rank below 2, or too large to address.
    fn eye(&mut self, shape: Shape, dtype: DType) -> Result<Self::V> {
        self.emit_one(Op::Eye { shape, dtype }, &[])
    }

    /// Ones on diagonal `offset` of the last two axes, else zeros.
    ///
    /// # Errors
    /// A shape of rank below 2, or too large to address.
    fn eye_with_offset(&mut self, shape: Shape, dtype: DType, offset: i64) -> Result<Self::V> {
        compose::create::eye_with_offset(self, shape, dtype, offset)
    }

    /// A tensor that is filled with one number.
    ///
    /// # Errors
    /// As [`BuildCreate::constant`], and a shape too large to address.
    fn full(&mut self, shape: Shape, dtype: DType, number: impl Into<Number>) -> Result<Self::V> {
        let scalar = self.constant(dtype, number)?;
        if shape.rank() == 0 { Ok(scalar) } else { self.broadcast(scalar, shape, Axes::All) }
    }

    /// Zeros of the type of `x`, names included.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn zeros_like(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let ty = self.ty(&x);
        let zeros = self.full(ty.shape, ty.dtype, 0)?;
        self.vectorized_like(zeros, &x)
    }

    /// Ones of the type of `x`, names included.
    ///
    /// # Errors
    /// As [`Builder::emit`].
    fn ones_like(&mut self, x: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let ty = self.ty(&x);
        let ones = self.full(ty.shape, ty.dtype, 1)?;
        self.vectorized_like(ones, &x)
    }

    /// The scalar `value`, broadcast to the shape of `x`, names included. A plain number takes the element type of
    /// `x`; a tensor's element type merges with it. `dtype` overrides both.
    ///
    /// # Errors
    /// A value that is no scalar, or a number of another kind than `dtype`.
    fn fill(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        value: impl Into<Arg<Self::V>>,
        dtype: Option<DType>,
    ) -> Result<Self::V> {
        compose::create::fill(self, x.into(), value.into(), dtype)
    }

    /// A bool matrix that is true on and below diagonal `k`: where `row >= column - k`.
    ///
    /// # Errors
    /// A shape too large to address.
    fn tri(&mut self, rows: usize, columns: usize, k: i64) -> Result<Self::V> {
        compose::create::tri(self, rows, columns, k)
    }

    /// `x` with zeros above diagonal `k` of its last two axes. The element type merges with s32.
    ///
    /// # Errors
    /// Rank below 2.
    fn tril(&mut self, x: impl Into<Arg<Self::V>>, k: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::create::tril(self, &x, k)
    }

    /// `x` with zeros below diagonal `k` of its last two axes. The element type merges with s32.
    ///
    /// # Errors
    /// Rank below 2.
    fn triu(&mut self, x: impl Into<Arg<Self::V>>, k: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::create::triu(self, &x, k)
    }

    /// `count` evenly spaced values from `start` to `stop` along a new last axis.
    ///
    /// `start` and `stop` have the same shape. With `endpoint` the last value is exactly `stop`; without it, `stop`
    /// would be the next value. If `count` is 1, the value is `start`.
    ///
    /// # Errors
    /// A count below 1, or shapes that differ.
    fn linspace(
        &mut self,
        start: impl Into<Arg<Self::V>>,
        stop: impl Into<Arg<Self::V>>,
        count: i64,
        name: Option<Name>,
        dtype: DType,
        endpoint: bool,
    ) -> Result<Self::V> {
        compose::create::linspace(self, start.into(), stop.into(), count, name, dtype, endpoint)
    }

    /// A square matrix with the vector `x` on diagonal `offset` and zeros elsewhere. The element type merges
    /// with s32; the side is the length of `x` plus `|offset|`.
    ///
    /// # Errors
    /// Rank other than 1.
    fn make_diagonal(&mut self, x: impl Into<Arg<Self::V>>, offset: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::create::make_diagonal(self, &x, offset)
    }

    /// Diagonal `offset` of the last two axes of `x`: the other axes, then the diagonal; without names. It is empty
    /// outside the matrix.
    ///
    /// # Errors
    /// Rank below 2.
    fn take_diagonal(&mut self, x: impl Into<Arg<Self::V>>, offset: i64) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::create::take_diagonal(self, &x, offset)
    }

    /// The matrix `x` with diagonal `offset` replaced by the vector `diagonal`. Element types merge.
    ///
    /// # Errors
    /// A rank other than 2 or 1, a diagonal of another length, or an offset outside the matrix.
    fn put_diagonal(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        diagonal: impl Into<Arg<Self::V>>,
        offset: i64,
    ) -> Result<Self::V> {
        let (x, diagonal) = self.weak_pair("put_diagonal", x, diagonal)?;
        compose::create::put_diagonal(self, &x, &diagonal, offset)
    }
}

impl<B: Builder> BuildCreate for B {}
