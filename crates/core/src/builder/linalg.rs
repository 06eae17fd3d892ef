//! Matrix products.

use super::{Arg, Builder};
use crate::compose;
use crate::error::Result;
use crate::op::Op;
use crate::shape::{Axes, AxisList};

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
