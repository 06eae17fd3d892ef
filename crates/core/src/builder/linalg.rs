//! Matrix products.

use super::{Arg, Builder};
use crate::compose;
use crate::error::Result;
use crate::op::Op;
use crate::shape::{Axes, AxisList, AxisRef};

/// The axes that [`BuildLinalg::tensordot`] sums over.
///
/// ```
/// use defn_core::builder::{BuildCreate, BuildLinalg, Builder};
/// use defn_core::graph::Graph;
/// use defn_core::{DType, Shape};
/// let mut graph = Graph::new();
/// let a = graph.iota(Shape::new(&[2, 3, 4]), DType::F32, None)?;
/// let b = graph.iota(Shape::new(&[3, 4, 5]), DType::F32, None)?;
/// let c = graph.tensordot(a, b, 2)?;
/// assert_eq!(Builder::ty(&graph, &c).to_string(), "f32[2][5]");
/// let c = graph.tensordot(a, b, (1, 0))?;
/// assert_eq!(Builder::ty(&graph, &c).to_string(), "f32[2][4][4][5]");
/// # Ok::<(), defn_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Contracted {
    /// This number of last axes of the first operand, and of first axes of the second.
    Last(i64),
    /// Axes of the first operand and of the second, pair by pair.
    Pairs(Axes, Axes),
}

impl From<i64> for Contracted {
    fn from(count: i64) -> Contracted {
        Contracted::Last(count)
    }
}

impl From<i32> for Contracted {
    fn from(count: i32) -> Contracted {
        Contracted::Last(count.into())
    }
}

impl<A: Into<Axes>, B: Into<Axes>> From<(A, B)> for Contracted {
    fn from((left, right): (A, B)) -> Contracted {
        Contracted::Pairs(left.into(), right.into())
    }
}

/// Matrix products and contractions.
pub trait BuildLinalg: Builder + Sized {
    /// Contracts the last axis of `a` with the last but one of `b`, or with its only axis. A scalar multiplies.
    ///
    /// The result has the other axes of `a`, then those of `b`, with their names.
    ///
    /// # Errors
    /// Sizes that differ, and a name that would be on two axes.
    fn dot(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        compose::linalg::dot(self, a.into(), b.into())
    }

    /// Contracts `axes_a` of `a` with `axes_b` of `b`, pair by pair.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildLinalg, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let a = graph.iota(Shape::new(&[2, 3]), DType::F32, None)?;
    /// let b = graph.iota(Shape::new(&[2, 5]), DType::F32, None)?;
    /// let c = graph.dot_axes(a, 0, b, 0)?;
    /// assert_eq!(Builder::ty(&graph, &c).to_string(), "f32[3][5]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`BuildLinalg::dot_general`].
    fn dot_axes(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        axes_a: impl Into<Axes>,
        b: impl Into<Arg<Self::V>>,
        axes_b: impl Into<Axes>,
    ) -> Result<Self::V> {
        let none = || Axes::List(Vec::new());
        self.dot_general(a, axes_a, none(), b, axes_b, none())
    }

    /// Sums over pairs of contracted axes; batch axes are paired and kept. The result has the batch axes, the other
    /// axes of `a`, then those of `b`. Batch axes are the leading ones, in order.
    ///
    /// # Errors
    /// Paired axes whose sizes differ; axes that are out of range, repeated, both contracted and batch, or unpaired;
    /// and a name that would be on two axes.
    fn dot_general(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        contract_a: impl Into<Axes>,
        batch_a: impl Into<Axes>,
        b: impl Into<Arg<Self::V>>,
        contract_b: impl Into<Axes>,
        batch_b: impl Into<Axes>,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair("dot", a, b)?;
        let (shape_a, shape_b) = (self.ty(&a).shape, self.ty(&b).shape);
        let contract_a: AxisList = shape_a.resolve_all("dot", &contract_a.into())?;
        let batch_a = shape_a.resolve_all("dot", &batch_a.into())?;
        let contract_b = shape_b.resolve_all("dot", &contract_b.into())?;
        let batch_b = shape_b.resolve_all("dot", &batch_b.into())?;
        self.emit_one(Op::Dot { contract_a, batch_a, contract_b, batch_b }, &[a, b])
    }

    /// The matrix of products of each element of flattened `a` with each element of flattened `b`. For complex
    /// results `b` is conjugated. The names are those of the first axis of `a` and the last of `b`.
    ///
    /// # Errors
    /// A result too large to address, and names that are equal.
    fn outer(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair("outer", a, b)?;
        compose::linalg::outer(self, &a, &b)
    }

    /// The sum of products that an equation describes, in NumPy's notation: a letter for each axis of each operand, terms
    /// separated by commas, and after `->` the letters of the result. `...` stands for axes without letters, which
    /// broadcast. Letters that the result lacks are summed over; a letter that one operand has twice selects its
    /// diagonal. Without `->` the result has the letters that stand once, in alphabetical order. An axis of size 1
    /// is broadcast.
    ///
    /// Pairs of operands are contracted one after the other, in the order with the fewest products for up to six
    /// operands, else in a greedy one.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildLinalg, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let a = graph.iota(Shape::new(&[2, 3]), DType::F32, None)?;
    /// let b = graph.iota(Shape::new(&[5, 3]), DType::F32, None)?;
    /// let c = graph.einsum("ij,kj->ki", &[a, b])?;
    /// assert_eq!(Builder::ty(&graph, &c).to_string(), "f32[5][2]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// No operand; an equation with other characters, for another number of operands, without a letter for each axis, or
    /// with a letter of the result that stands twice or that no operand has; sizes of one letter that differ; names
    /// that differ, and a name that would be on two axes.
    fn einsum(&mut self, equation: &str, operands: &[Self::V]) -> Result<Self::V> {
        compose::einsum::einsum(self, equation, operands)
    }

    /// Sums of products over axes of `a` and of `b`, which are not conjugated. The result has the other axes of `a`, then
    /// those of `b`.
    ///
    /// # Errors
    /// A number of axes that is negative or above a rank, other numbers of axes, sizes that differ, and a name that
    /// would be on two axes.
    fn tensordot(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        axes: impl Into<Contracted>,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair("tensordot", a, b)?;
        compose::linalg::tensordot(self, &a, &b, axes.into())
    }

    /// The dot product of vectors along an axis of both, the first conjugated; the other axes broadcast.
    ///
    /// # Errors
    /// Scalars, an axis that an operand does not have, and sizes or names that do not fit.
    fn vecdot(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair("vecdot", a, b)?;
        compose::linalg::vecdot(self, &a, &b, &axis.into())
    }

    /// Sums of products over the last axes of both, which are not conjugated. A scalar multiplies.
    ///
    /// # Errors
    /// Last axes whose sizes differ, and a name that would be on two axes.
    fn inner(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair("inner", a, b)?;
        compose::linalg::inner(self, &a, &b)
    }

    /// The sum of products of the flattened operands, the first conjugated.
    ///
    /// # Errors
    /// Numbers of elements that differ.
    fn vdot(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair("vdot", a, b)?;
        compose::linalg::vdot(self, &a, &b)
    }

    /// The Kronecker product: each element of `a` times all of `b`, as blocks. Ranks are made equal by leading axes of
    /// size 1. The result has no names.
    ///
    /// # Errors
    /// A result too large to address.
    fn kron(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = self.weak_pair("kron", a, b)?;
        compose::linalg::kron(self, &a, &b)
    }

    /// The cross product of vectors of three elements along an axis of both; the other axes broadcast.
    ///
    /// # Errors
    /// Scalars, bools, an axis that an operand does not have or that has another size, and axes that do not broadcast.
    fn cross(
        &mut self,
        a: impl Into<Arg<Self::V>>,
        b: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let (a, b) = self.weak_pair("cross", a, b)?;
        compose::linalg::cross(self, &a, &b, &axis.into())
    }

    /// The matrix product over the last two axes; the leading axes broadcast as in NumPy's `@`. A vector counts as
    /// one row on the left and as one column on the right, and that axis is dropped from the result.
    ///
    /// # Errors
    /// Scalars, sizes or names that do not match, and leading axes that do not broadcast.
    fn matmul(&mut self, a: impl Into<Arg<Self::V>>, b: impl Into<Arg<Self::V>>) -> Result<Self::V> {
        let (a, b) = (self.operand(a)?, self.operand(b)?);
        compose::linalg::matmul(self, &a, &b)
    }
}

impl<B: Builder> BuildLinalg for B {}
