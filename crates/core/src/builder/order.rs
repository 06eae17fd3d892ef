//! Ops that sort.

use super::{Arg, Builder};
use crate::compose::order;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::op::{Block, Direction, Op};
use crate::shape::AxisRef;

/// Ops that sort. NaN is above every number, -0.0 equals 0.0, and sorts are stable.
pub trait BuildOrder: Builder + Sized {
    /// `x` sorted along an axis.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildOrder, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::op::Direction;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[2, 3]), DType::F32, None)?;
    /// let y = graph.sort(x, 0, Direction::Desc)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[2][3]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Complex elements, and an axis that `x` does not have.
    fn sort(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        direction: Direction,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let axis = self.ty(&x).shape.resolve("sort", &axis.into())?;
        self.emit_one(Op::Sort { axis, direction }, &[x])
    }

    /// The positions of the sorted elements along an axis before the sort, as integers of `dtype`; by default s32, or
    /// s64 if the axis needs it.
    ///
    /// # Errors
    /// Complex elements, an axis that `x` does not have, and a dtype that is not an integer type or cannot hold the
    /// last index.
    fn argsort(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
        direction: Direction,
        dtype: impl Into<Option<DType>>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let shape = self.ty(&x).shape;
        let axis = shape.resolve("argsort", &axis.into())?;
        let dtype = dtype.into().unwrap_or_else(|| index_dtype(shape[axis]));
        self.emit_one(Op::Argsort { axis, direction, dtype }, &[x])
    }

    /// The `k` greatest elements along the last axis, descending, and their positions, as s32 or, if the axis needs
    /// it, s64. Equal elements are in order of their positions.
    ///
    /// # Errors
    /// Complex elements, a scalar, and a `k` below 1 or above the size of the axis.
    fn top_k(&mut self, x: impl Into<Arg<Self::V>>, k: i64) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        // A negative `k` is refused like 0, with the given number in the message.
        let Ok(k) = usize::try_from(k) else {
            let (option, given) = ("k", k.to_string());
            let required = format!("at least 1 and at most the size of the last axis of {}", self.ty(&x));
            return Err(ErrorKind::OptionValue { op: "top_k", option, given, required }.into());
        };
        let mut outputs = self.emit(Op::Block(Block::TopK { k }), &[x])?;
        let (indices, values) = (outputs.pop(), outputs.pop());
        Ok(values.zip(indices).expect("values and places"))
    }

    /// The positions along an axis that sort elements by several keys of one shape: by the last key first, among equal
    /// ones by the key before.
    ///
    /// # Errors
    /// No key, complex elements, keys of other shapes, and an axis that they do not have.
    fn lexsort(&mut self, keys: &[Self::V], axis: impl Into<AxisRef>) -> Result<Self::V> {
        order::lexsort(self, keys, &axis.into())
    }

    /// `x` with the elements at the positions `kth` of an axis where a sort would put them, lower ones before and higher
    /// ones behind. Elements between these positions keep their order; equal ones are as in a stable sort.
    ///
    /// # Errors
    /// Complex elements, an axis that `x` does not have, and positions that the axis does not have.
    fn partition(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        kth: &[i64],
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        order::partition(self, &x, kth, &axis.into())
    }

    /// The positions of the elements of [`BuildOrder::partition`] before it, as s32, or s64 where the axis needs it.
    ///
    /// # Errors
    /// As [`BuildOrder::partition`].
    fn argpartition(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        kth: &[i64],
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        order::argpartition(self, &x, kth, &axis.into())
    }
}

impl<B: Builder> BuildOrder for B {}
