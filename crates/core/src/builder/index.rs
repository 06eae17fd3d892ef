//! Reads and writes at positions given by a tensor.

use super::{Arg, BuildShape, Builder};
use crate::compose;
use crate::compose::segment::{self, Reduction};
use crate::error::{ErrorKind, Result};
use crate::infer;
use crate::op::{Block, Op, ScatterOp};
use crate::shape::{Axes, AxisList, AxisRef, Shape, TensorType};

/// Reads and writes at positions given by a tensor of integers.
///
/// A negative position counts from the end. A position that is still out of range is an error if the op runs eagerly
/// on the host. In a compiled program and on a device, a read is clamped to the nearest element, and a write is
/// dropped.
pub trait BuildIndex: Builder + Sized {
    /// `x` at positions. The last axis of `indices` has one entry for each of `axes`, by default the first axes of
    /// `x`. The result has the other axes of `indices`, then the axes of `x` without an entry, and no names.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildIndex, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::{Axes, DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[4, 3]), DType::F32, None)?;
    /// let rows = graph.iota(Shape::new(&[2, 1]), DType::S32, None)?;
    /// let y = graph.gather(x, rows, Axes::All)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "f32[2][3]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Indices that are no integers or a scalar, a last axis longer than the rank of `x`, axes that do not ascend or
    /// whose number is not that of the entries, and an axis without elements to read.
    fn gather(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
    ) -> Result<Self::V> {
        let (x, indices) = (self.operand(x)?, self.operand(indices)?);
        let axes = entry_axes("gather", &self.ty(&x), &self.ty(&indices), &axes.into())?;
        self.emit_one(Op::Gather { axes }, &[x, indices])
    }

    /// `x` at positions along an axis, which is replaced by the axes of `indices`, names included. If `indices` has
    /// one axis, the axis keeps its name, merged.
    ///
    /// # Errors
    /// Indices that are no integers, an axis that `x` does not have or that has no elements to read, and names that
    /// differ.
    fn take(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let (x, indices) = (self.operand(x)?, self.operand(indices)?);
        let axis = self.ty(&x).shape.resolve("take", &axis.into())?;
        self.emit_one(Op::Block(Block::Take { axis }), &[x, indices])
    }

    /// For each position along the other axes, the elements of `x` at their own positions along an axis. `indices`
    /// has the sizes of `x` except on that axis. The result has the sizes of `indices` and the names of `x`.
    ///
    /// # Errors
    /// Indices that are no integers or differ in another axis, and an axis that `x` does not have or that has no
    /// elements to read.
    fn take_along_axis(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let (x, indices) = (self.operand(x)?, self.operand(indices)?);
        let axis = self.ty(&x).shape.resolve("take_along_axis", &axis.into())?;
        self.emit_one(Op::Block(Block::TakeAlongAxis { axis }), &[x, indices])
    }

    /// `x` with updates added at the positions in the rows of `indices`, which have one entry for each of `axes`, by
    /// default the first axes of `x`. Updates of one element add up. An update may be smaller than the axes of `x`
    /// without an entry: it is then added to the first elements of those axes.
    ///
    /// A vector with one entry for each axis of `x` and a scalar update are a single position and its update.
    ///
    /// # Errors
    /// Indices that are no integers or have more than two axes, numbers of updates and rows that differ, updates
    /// whose axes differ from the remaining axes of `x` or are larger, and axes that do not ascend or whose number is
    /// not that of the entries.
    fn indexed_add(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
        updates: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
    ) -> Result<Self::V> {
        scatter(self, ScatterOp::IndexedAdd, x.into(), indices.into(), updates.into(), &axes.into())
    }

    /// `x` with elements replaced by updates, at positions as in [`BuildIndex::indexed_add`]. Of several updates of
    /// one element the last one wins.
    ///
    /// # Errors
    /// As [`BuildIndex::indexed_add`].
    fn indexed_put(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
        updates: impl Into<Arg<Self::V>>,
        axes: impl Into<Axes>,
    ) -> Result<Self::V> {
        scatter(self, ScatterOp::IndexedPut, x.into(), indices.into(), updates.into(), &axes.into())
    }

    /// `x` with values in the place of the elements at positions along an axis, each position for its own place along the
    /// other axes, as [`BuildIndex::take_along_axis`] reads them. The values broadcast to the shape of `indices`.
    ///
    /// # Errors
    /// Indices that are no integers or differ in another axis, values that do not broadcast, and an axis that `x` does
    /// not have or that has no elements.
    fn put_along_axis(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        indices: impl Into<Arg<Self::V>>,
        values: impl Into<Arg<Self::V>>,
        axis: impl Into<AxisRef>,
    ) -> Result<Self::V> {
        let indices = self.operand(indices)?;
        compose::index::put_along_axis(self, x.into(), &indices, values.into(), &axis.into())
    }

    /// The sums of the elements along the first axis of `x` that have the same id, for the ids below `count`. An
    /// element with another id is left out. The result has `count` in the place of the first axis, without its name.
    /// Bools are counted as s32.
    ///
    /// # Errors
    /// Ids that are no integers, or not one for each element of the first axis.
    fn segment_sum(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        ids: impl Into<Arg<Self::V>>,
        count: usize,
    ) -> Result<Self::V> {
        let (x, ids) = (self.operand(x)?, self.operand(ids)?);
        segment::sum(self, &x, &ids, count)
    }

    /// Like [`BuildIndex::segment_sum`], the products; 1 where there is no element.
    ///
    /// # Errors
    /// As [`BuildIndex::segment_sum`].
    fn segment_product(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        ids: impl Into<Arg<Self::V>>,
        count: usize,
    ) -> Result<Self::V> {
        let (x, ids) = (self.operand(x)?, self.operand(ids)?);
        segment::reduce(self, Reduction::Product, &x, &ids, count)
    }

    /// Like [`BuildIndex::segment_sum`], the greatest elements; where there is none, the least value of the type. Bools
    /// stay bools.
    ///
    /// # Errors
    /// As [`BuildIndex::segment_sum`], and complex elements.
    fn segment_max(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        ids: impl Into<Arg<Self::V>>,
        count: usize,
    ) -> Result<Self::V> {
        let (x, ids) = (self.operand(x)?, self.operand(ids)?);
        segment::reduce(self, Reduction::Max, &x, &ids, count)
    }

    /// Like [`BuildIndex::segment_max`], the least elements; where there is none, the greatest value of the type.
    ///
    /// # Errors
    /// As [`BuildIndex::segment_max`].
    fn segment_min(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        ids: impl Into<Arg<Self::V>>,
        count: usize,
    ) -> Result<Self::V> {
        let (x, ids) = (self.operand(x)?, self.operand(ids)?);
        segment::reduce(self, Reduction::Min, &x, &ids, count)
    }

    /// The entries of positions in a tensor of a shape, from the positions of its elements in row-major order. They are
    /// s32, or s64 where the number of elements needs it.
    ///
    /// # Errors
    /// Indices that are no integers, and a shape without elements.
    fn unravel_index(&mut self, indices: impl Into<Arg<Self::V>>, shape: &Shape) -> Result<Vec<Self::V>> {
        let indices = self.operand(indices)?;
        compose::index::unravel_index(self, &indices, shape)
    }

    /// The rows and the columns of the elements on and below diagonal `offset` of a matrix, in row-major order.
    ///
    /// # Errors
    /// Sizes that are too large.
    fn tril_indices(&mut self, n: usize, m: usize, offset: i64) -> Result<(Self::V, Self::V)> {
        compose::index::triangle(self, ("tril_indices", true), [n, m], offset)
    }

    /// The rows and the columns of the elements on and above diagonal `offset` of a matrix, in row-major order.
    ///
    /// # Errors
    /// Sizes that are too large.
    fn triu_indices(&mut self, n: usize, m: usize, offset: i64) -> Result<(Self::V, Self::V)> {
        compose::index::triangle(self, ("triu_indices", false), [n, m], offset)
    }
}

impl<B: Builder> BuildIndex for B {}

fn scatter<B: Builder>(
    b: &mut B,
    op: ScatterOp,
    x: Arg<B::V>,
    indices: Arg<B::V>,
    updates: Arg<B::V>,
    axes: &Axes,
) -> Result<B::V> {
    let (x, mut updates) = b.weak_pair(op.name(), x, updates)?;
    let mut indices = b.operand(indices)?;
    let target = b.ty(&x);
    let got = b.ty(&indices);
    if let &[entries] = got.shape.sizes() {
        infer::index::require_integers(op.name(), &got)?;
        if entries != target.shape.rank() {
            let rank = target.shape.rank();
            let required = format!("a single position in {target} has {rank} entries");
            return Err(ErrorKind::Indices { op: op.name(), got, required }.into());
        }
        let update = b.ty(&updates);
        if update.shape.rank() != 0 {
            let required = "a single position takes a scalar".to_owned();
            return Err(ErrorKind::Updates { op: op.name(), got: update, required }.into());
        }
        indices = b.reshape(indices, [1, entries], None)?;
        updates = b.reshape(updates, [1usize], None)?;
    }
    let axes = entry_axes(op.name(), &target, &b.ty(&indices), axes)?;
    b.emit_one(Op::Scatter { op, axes }, &[x, indices, updates])
}

/// The axes of `x` for the entries of positions. `infer` checks the shape of the indices itself.
fn entry_axes(op: &'static str, x: &TensorType, indices: &TensorType, axes: &Axes) -> Result<AxisList> {
    let entries = indices.shape.sizes().last().copied().unwrap_or(0);
    match axes {
        Axes::All => {
            if entries > x.shape.rank() {
                infer::index::require_integers(op, indices)?;
                let required = format!("positions in {x} have at most {} entries", x.shape.rank());
                return Err(ErrorKind::Indices { op, got: indices.clone(), required }.into());
            }
            Ok(x.shape.axes().take(entries).collect())
        }
        Axes::List(list) => {
            let resolved = x.shape.resolve_all(op, axes)?;
            let ascends = resolved.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascends || resolved.len() != entries {
                let given: Vec<String> = list.iter().map(ToString::to_string).collect();
                return Err(ErrorKind::OptionValue {
                    op,
                    option: "axes",
                    given: format!("[{}]", given.join(", ")),
                    required: format!("ascending axes of {x}, one for each entry of a position in {indices}"),
                }
                .into());
            }
            Ok(resolved)
        }
    }
}
