//! Ops that move elements.

use smallvec::SmallVec;

use super::{Arg, Builder, starts};
use crate::compose;
use crate::error::{ErrorKind, Result};
use crate::op::{Op, Padding, Starts};
use crate::shape::{Axes, Axis, AxisList, AxisRef, Name, Shape, Sizes, TensorType};

/// A size argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// The given size.
    Known(i64),
    /// The size that the other sizes leave.
    Auto,
}

/// -1 is [`Size::Auto`].
impl From<i64> for Size {
    fn from(size: i64) -> Size {
        if size == -1 { Size::Auto } else { Size::Known(size) }
    }
}

/// -1 is [`Size::Auto`].
impl From<i32> for Size {
    fn from(size: i32) -> Size {
        i64::from(size).into()
    }
}

impl From<usize> for Size {
    fn from(size: usize) -> Size {
        // A size beyond i64 is invalid for every tensor; it becomes the greatest i64, which is refused as well.
        Size::Known(i64::try_from(size).unwrap_or(i64::MAX))
    }
}

/// The start of a slice on one axis.
#[derive(Clone, Debug)]
pub enum Start<V> {
    /// A position.
    Index(i64),
    /// A scalar integer, which is evaluated when the op runs.
    Value(V),
}

impl<V> From<i64> for Start<V> {
    fn from(index: i64) -> Start<V> {
        Start::Index(index)
    }
}

impl<V> From<i32> for Start<V> {
    fn from(index: i32) -> Start<V> {
        Start::Index(i64::from(index))
    }
}

/// The position of a cut by `split`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// Before a position; a negative one counts from the end.
    At(i64),
    /// At this fraction of the size, rounded up.
    Share(f64),
}

/// The padding of `pad_outer`.
#[derive(Clone, Debug)]
pub enum PadMode<V> {
    /// The tensor repeated.
    Cyclic,
    /// The tensor and its mirror image in turn; the edge element appears twice.
    Mirror,
    /// The edge element repeated.
    Replicate,
    /// The tensor and its mirror image in turn; the edge element appears once.
    Reflect,
    /// A scalar.
    Value(Arg<V>),
}

/// Ops that change shapes.
pub trait BuildShape: Builder + Sized {
    /// The elements of `x`, in row-major order, with other sizes, one of which may be open. The names are `names`, or
    /// none.
    ///
    /// ```
    /// use defn_core::builder::{BuildCreate, BuildShape, Builder};
    /// use defn_core::graph::Graph;
    /// use defn_core::{DType, Shape};
    /// let mut graph = Graph::new();
    /// let x = graph.iota(Shape::new(&[6]), DType::S32, None)?;
    /// let y = graph.reshape(x, [2, -1], None)?;
    /// assert_eq!(Builder::ty(&graph, &y).to_string(), "s32[2][3]");
    /// # Ok::<(), defn_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of elements, more than one open size, an open size that is no integer, a negative size, and
    /// numbers of names and sizes that differ.
    fn reshape<S: Into<Size>>(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        sizes: impl IntoIterator<Item = S>,
        names: Option<&[Option<Name>]>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let sizes: SmallVec<[Size; 6]> = sizes.into_iter().map(Into::into).collect();
        let mut shape = fill_auto(&self.ty(&x), &sizes)?;
        if let Some(names) = names {
            shape = shape.with_names(names.iter().cloned())?;
        }
        self.reshape_to(x, shape)
    }

    /// The elements of `x`, in row-major order, with another shape, names included; `x` itself if it already has that
    /// shape.
    ///
    /// # Errors
    /// A number of elements that differs.
    fn reshape_to(&mut self, x: impl Into<Arg<Self::V>>, shape: Shape) -> Result<Self::V> {
        let x = self.operand(x)?;
        if self.ty(&x).shape == shape { Ok(x) } else { self.emit_one(Op::Reshape { shape }, &[x]) }
    }

    /// `x` with several axes merged into one without a name; the others keep their names. Merging all axes returns a
    /// vector.
    ///
    /// # Errors
    /// Axes that are not consecutive, that `x` does not have or that are repeated.
    fn flatten(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let ty = self.ty(&x);
        let axes = ty.shape.resolve_all("flatten", &axes.into())?;
        let shape = flattened(&ty, &axes)?;
        self.reshape_to(x, shape)
    }

    /// `x` without the given axes, whose sizes must be 1, or without all axes of size 1. The others keep their names.
    ///
    /// # Errors
    /// An axis of another size, and axes that `x` does not have or that are repeated.
    fn squeeze(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let shape = self.ty(&x).shape;
        let mut axes: AxisList = match axes.into() {
            Axes::All => shape.axes().filter(|&axis| shape[axis] == 1).collect(),
            Axes::List(list) => shape.resolve_all("squeeze", &Axes::List(list))?,
        };
        if axes.is_empty() {
            return Ok(x);
        }
        axes.sort_unstable();
        self.emit_one(Op::Squeeze { axes }, &[x])
    }

    /// `x` with a new axis of size 1 at a position of the result; -1 appends it.
    ///
    /// # Errors
    /// A position outside `-rank - 1 ..= rank`.
    fn new_axis(&mut self, x: impl Into<Arg<Self::V>>, axis: i64, name: Option<Name>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let shape = self.ty(&x).shape;
        let at = insertion_index("new_axis", axis, &shape)?;
        let mut entries: Vec<_> = shape.entries().collect();
        entries.insert(at, (1, name));
        self.reshape_to(x, Shape::from_axes(entries))
    }

    /// `x` with other names, one entry for each axis.
    ///
    /// # Errors
    /// Another number of names than axes.
    fn rename(&mut self, x: impl Into<Arg<Self::V>>, names: &[Option<Name>]) -> Result<Self::V> {
        let x = self.operand(x)?;
        let shape = self.ty(&x).shape.with_names(names.iter().cloned())?;
        self.reshape_to(x, shape)
    }

    /// `x` with its axes permuted, by default reversed. The names move with the axes.
    ///
    /// # Errors
    /// Axes that are no permutation of all axes.
    fn transpose(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let ty = self.ty(&x);
        let axes: AxisList = match axes.into() {
            Axes::All => ty.shape.axes().rev().collect(),
            Axes::List(list) => ty.shape.resolve_all("transpose", &Axes::List(list))?,
        };
        if axes.len() != ty.shape.rank() {
            let axes = axes_text(&axes);
            return Err(ErrorKind::Permutation { got: ty, axes }.into());
        }
        if axes.iter().copied().eq(ty.shape.axes()) {
            return Ok(x);
        }
        self.emit_one(Op::Transpose { axes }, &[x])
    }

    /// `x` broadcast to a shape, whose names the result has. `axes` are the axes of that shape for each axis of `x`,
    /// ascending; by default the last ones. Sizes are equal, or 1 in `x`.
    ///
    /// # Errors
    /// Sizes that do not match, another number of axes than the rank of `x`, and axes that do not ascend.
    fn broadcast(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        shape: Shape,
        axes: impl Into<Axes>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let ty = self.ty(&x);
        let axes: AxisList = match axes.into() {
            Axes::All => match shape.rank().checked_sub(ty.shape.rank()) {
                Some(lead) => shape.axes().skip(lead).collect(),
                None => {
                    let axes = "at the end".to_owned();
                    return Err(ErrorKind::BroadcastTo { got: ty, to: shape, axes }.into());
                }
            },
            Axes::List(list) => shape.resolve_all("broadcast", &Axes::List(list))?,
        };
        if ty.shape == shape && axes.iter().copied().eq(shape.axes()) {
            return Ok(x);
        }
        self.emit_one(Op::Broadcast { shape, axes }, &[x])
    }

    /// `x` repeated along each axis. Missing leading repetitions and missing leading axes count as 1. The result has
    /// no names.
    ///
    /// # Errors
    /// A repetition below 1.
    fn tile(&mut self, x: impl Into<Arg<Self::V>>, repetitions: &[i64]) -> Result<Self::V> {
        let x = self.operand(x)?;
        compose::shape::tile(self, &x, repetitions)
    }

    /// Tensors concatenated along an existing axis. Element types and names merge; a single tensor is returned
    /// unchanged.
    ///
    /// # Errors
    /// No tensor, shapes that differ on another axis, and an axis that they do not have.
    fn concatenate(&mut self, tensors: &[Self::V], axis: impl Into<AxisRef>) -> Result<Self::V> {
        let Some(first) = tensors.first() else {
            return Err(ErrorKind::NoTensors { op: "concatenate" }.into());
        };
        let axis = self.ty(first).shape.resolve("concatenate", &axis.into())?;
        if let [only] = tensors {
            return Ok(only.clone());
        }
        self.emit_one(Op::Concatenate { axis }, tensors)
    }

    /// Tensors of the same shape stacked along a new axis, at a position of the result; -1 appends it.
    ///
    /// # Errors
    /// No tensor, shapes that differ, and a position out of range.
    fn stack(&mut self, tensors: &[Self::V], axis: i64, name: Option<Name>) -> Result<Self::V> {
        let Some(first) = tensors.first() else {
            return Err(ErrorKind::NoTensors { op: "stack" }.into());
        };
        let axis = insertion_index("stack", axis, &self.ty(first).shape)?;
        self.emit_one(Op::Stack { axis, name }, tensors)
    }

    /// `x` cut into two parts along an axis.
    ///
    /// # Errors
    /// A cut that is not inside, and an axis that `x` does not have.
    fn split(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        cut: Cut,
        axis: impl Into<AxisRef>,
    ) -> Result<(Self::V, Self::V)> {
        let x = self.operand(x)?;
        compose::shape::split(self, &x, cut, &axis.into())
    }

    /// A window of `x`: from each start, every `stride`-th of `length` elements; the default strides are 1.
    ///
    /// Starts are clamped so that the window fits; negative ones are clamped to 0. If a start is a value or out of
    /// range, all become scalars of their merged element type.
    ///
    /// # Errors
    /// Another number of entries than axes, a length that is negative or above the size, a stride below 1,
    /// and a start that is no scalar integer.
    fn slice(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        starts: &[Start<Self::V>],
        lengths: &[i64],
        strides: Option<&[i64]>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        starts::window(self, "slice", x, starts, (lengths, strides), Starts::Dynamic)
    }

    /// Like [`BuildShape::slice`], but negative starts count from the end of their axis. A window that is not inside
    /// is an error if the op runs eagerly on the host, and is clamped to the inside in a compiled program.
    ///
    /// # Errors
    /// As [`BuildShape::slice`].
    fn slice_from_end(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        starts: &[Start<Self::V>],
        lengths: &[i64],
        strides: Option<&[i64]>,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        starts::window(self, "slice", x, starts, (lengths, strides), Starts::FromEnd)
    }

    /// A window of `x` on one axis, and all elements of the others. The start follows the rules of
    /// [`BuildShape::slice_from_end`].
    ///
    /// # Errors
    /// As [`BuildShape::slice`], and an axis that `x` does not have.
    fn slice_along_axis(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        start: impl Into<Start<Self::V>>,
        length: i64,
        axis: impl Into<AxisRef>,
        stride: i64,
    ) -> Result<Self::V> {
        let x = self.operand(x)?;
        let shape = self.ty(&x).shape;
        let axis = shape.resolve("slice_along_axis", &axis.into())?.index();
        let mut starts: Vec<Start<Self::V>> = vec![Start::Index(0); shape.rank()];
        let mut lengths: Vec<i64> = shape.sizes().iter().map(|&size| size as i64).collect();
        let mut strides = vec![1; shape.rank()];
        (starts[axis], lengths[axis], strides[axis]) = (start.into(), length, stride);
        starts::window(self, "slice", x, &starts, (&lengths, Some(&strides)), Starts::FromEnd)
    }

    /// `x` with the window at `starts` replaced by `update`, of the same rank; a scalar replaces the single element at
    /// `starts`. Element types and names merge. Starts follow the rules of [`BuildShape::slice_from_end`].
    ///
    /// # Errors
    /// Another number of starts than axes, ranks that differ, an update larger than `x`, and a start that is
    /// no scalar integer.
    fn put_slice(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        starts: &[Start<Self::V>],
        update: impl Into<Arg<Self::V>>,
    ) -> Result<Self::V> {
        let (x, mut update) = self.weak_pair("put_slice", x, update)?;
        let target = self.ty(&x);
        starts::check_count("put_slice", starts.len(), &target)?;
        if self.ty(&update).shape.rank() == 0 {
            let element = Sizes::from_elem(1, target.shape.rank());
            update = self.reshape_to(update, Shape::new(&element))?;
        }
        let slice = self.ty(&update);
        let fits = target.shape.rank() == slice.shape.rank()
            && target.shape.sizes().iter().zip(slice.shape.sizes()).all(|(x, update)| update <= x);
        if !fits {
            return Err(ErrorKind::PutSlice { target, slice }.into());
        }
        let lengths = slice.shape.sizes();
        let (starts, dynamic) = starts::lower(self, "put_slice", &target, starts, lengths, Starts::FromEnd)?;
        let mut operands = vec![x, update];
        operands.extend(dynamic);
        self.emit_one(Op::PutSlice { starts }, &operands)
    }

    /// `x` padded with the scalar `value` around and between its elements: `(low, high, interior)` for each axis.
    /// Negative `low` and `high` crop. A plain number takes the element type of `x`.
    ///
    /// # Errors
    /// Another number of entries than axes, a negative interior, a size below 0, and a value that is no
    /// scalar.
    fn pad(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        value: impl Into<Arg<Self::V>>,
        config: &[(i64, i64, i64)],
    ) -> Result<Self::V> {
        let (x, value) = self.weak_pair("pad", x, value)?;
        let got = self.ty(&x);
        if config.len() != got.shape.rank() {
            return Err(ErrorKind::PadCount { count: config.len(), got }.into());
        }
        let mut entries = SmallVec::new();
        for (axis, &(low, high, interior)) in config.iter().enumerate() {
            match usize::try_from(interior) {
                Ok(interior) => entries.push(Padding { low, high, interior }),
                Err(_) => {
                    return Err(ErrorKind::PadConfig { low, high, interior, axis, got }.into());
                }
            }
        }
        self.emit_one(Op::Pad { config: entries }, &[x, value])
    }

    /// `x` padded with a scalar or with its own elements: `(left, right)` for each axis.
    ///
    /// # Errors
    /// Another number of entries than axes, negative amounts (except for a scalar, where they crop), and an axis
    /// without elements to repeat.
    fn pad_outer(
        &mut self,
        x: impl Into<Arg<Self::V>>,
        mode: PadMode<Self::V>,
        config: &[(i64, i64)],
    ) -> Result<Self::V> {
        let (x, mode) = match mode {
            PadMode::Value(value) => {
                let (x, value) = self.weak_pair("pad_outer", x, value)?;
                (x, PadMode::Value(Arg::Value(value)))
            }
            PadMode::Cyclic | PadMode::Mirror | PadMode::Replicate | PadMode::Reflect => {
                (self.operand(x)?, mode)
            }
        };
        compose::shape::pad_outer(self, &x, mode, config)
    }

    /// `x` in reverse order along some axes, or along all.
    ///
    /// # Errors
    /// Axes that `x` does not have or that are repeated.
    fn reverse(&mut self, x: impl Into<Arg<Self::V>>, axes: impl Into<Axes>) -> Result<Self::V> {
        let x = self.operand(x)?;
        let mut axes = self.ty(&x).shape.resolve_all("reverse", &axes.into())?;
        if axes.is_empty() {
            return Ok(x);
        }
        axes.sort_unstable();
        self.emit_one(Op::Reverse { axes }, &[x])
    }
}

impl<B: Builder> BuildShape for B {}

/// Formats axes like `[0, 2]`, for messages.
pub(crate) fn axes_text(axes: &[Axis]) -> String {
    let list: Vec<String> = axes.iter().map(ToString::to_string).collect();
    format!("[{}]", list.join(", "))
}

/// Replaces the open size by the one that the other sizes leave.
fn fill_auto(ty: &TensorType, sizes: &[Size]) -> Result<Shape> {
    let text = || {
        let list: Vec<String> = sizes
            .iter()
            .map(|size| match size {
                Size::Known(size) => size.to_string(),
                Size::Auto => "-1".to_owned(),
            })
            .collect();
        format!("[{}]", list.join(", "))
    };
    let refused = || ErrorKind::ReshapeAuto { got: ty.clone(), sizes: text() };
    let mut filled = Sizes::new();
    let (mut open, mut known_product) = (None, 1usize);
    for (axis, size) in sizes.iter().enumerate() {
        match *size {
            Size::Auto if open.is_some() => return Err(refused().into()),
            Size::Auto => {
                open = Some(axis);
                filled.push(1);
            }
            Size::Known(size) => {
                let Ok(size_of_axis) = usize::try_from(size) else {
                    return Err(ErrorKind::NegativeSize { op: "reshape", size, axis }.into());
                };
                // Saturation is enough: an overflowing product divides no element count.
                known_product = known_product.saturating_mul(size_of_axis);
                filled.push(size_of_axis);
            }
        }
    }
    if let Some(axis) = open {
        if known_product == 0 || !ty.size().is_multiple_of(known_product) {
            return Err(refused().into());
        }
        filled[axis] = ty.size() / known_product;
    }
    Ok(Shape::new(&filled))
}

/// The shape with consecutive axes merged into one without a name.
fn flattened(ty: &TensorType, axes: &[Axis]) -> Result<Shape> {
    let Some(&first) = axes.iter().min() else {
        // A scalar flattens to one element; a tensor without axes to merge is unchanged.
        return Ok(if ty.shape.rank() == 0 { Shape::new(&[1]) } else { ty.shape.clone() });
    };
    let mut sorted: AxisList = axes.into();
    sorted.sort_unstable();
    if sorted.iter().enumerate().any(|(i, axis)| axis.index() != first.index() + i) {
        return Err(ErrorKind::OptionValue {
            op: "flatten",
            option: "axes",
            given: axes_text(axes),
            required: format!("consecutive axes of {ty}"),
        }
        .into());
    }
    let end = first.index() + sorted.len();
    let entries: Vec<_> = ty.shape.entries().collect();
    let merged = entries[first.index()..end].iter().map(|(size, _)| size).product();
    let mut out = entries[..first.index()].to_vec();
    out.push((merged, None));
    out.extend_from_slice(&entries[end..]);
    Ok(Shape::from_axes(out))
}

/// The position of a new axis.
pub(crate) fn insertion_index(op: &'static str, axis: i64, shape: &Shape) -> Result<usize> {
    let positions = shape.rank() as i64 + 1;
    if (-positions..positions).contains(&axis) {
        return Ok(axis.rem_euclid(positions) as usize);
    }
    Err(ErrorKind::NewAxisRange { op, axis, shape: shape.clone() }.into())
}
