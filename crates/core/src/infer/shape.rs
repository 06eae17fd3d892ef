//! Types of ops that move elements.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{Padding, Starts};
use crate::shape::{Axis, AxisRef, Name, Shape, TensorType, merge_names};

/// The numbers of elements are equal; the names are those of the new shape.
pub(super) fn reshape(x: &TensorType, shape: &Shape) -> Result<TensorType> {
    // The element count of the new shape may overflow, that of `x` does not.
    if shape.checked_size() != Some(x.size()) {
        TensorType::new(x.dtype, shape.clone())?;
        return Err(ErrorKind::ReshapeSize { got: x.clone(), to: shape.clone() }.into());
    }
    TensorType::new(x.dtype, shape.clone())
}

/// Only axes of size 1 are removed.
pub(super) fn squeeze(x: &TensorType, axes: &[Axis]) -> Result<TensorType> {
    for &axis in axes {
        let size = x.shape[axis];
        if size != 1 {
            return Err(ErrorKind::SqueezeSize { got: x.clone(), axis: axis.index(), size }.into());
        }
    }
    TensorType::new(x.dtype, x.shape.reduced(axes, false))
}

/// Each axis of `x` has the size of its target axis, or size 1; axes ascend.
pub(super) fn broadcast(x: &TensorType, shape: &Shape, axes: &[Axis]) -> Result<TensorType> {
    let fits = axes.len() == x.shape.rank()
        && axes.windows(2).all(|pair| pair[0] < pair[1])
        && axes.iter().all(|axis| axis.index() < shape.rank())
        && axes.iter().zip(x.shape.sizes()).all(|(&axis, &size)| size == 1 || size == shape[axis]);
    if !fits {
        let list: Vec<String> = axes.iter().map(Axis::to_string).collect();
        let unfit = |&(&axis, &size): &(&Axis, &usize)| {
            size != 1 && axis.index() < shape.rank() && size != shape[axis]
        };
        let axes = match axes.iter().zip(x.shape.sizes()).find(unfit) {
            Some((&axis, size)) => {
                format!("[{}], where size {size} meets {} on axis {axis}", list.join(", "), shape[axis])
            }
            None => format!("[{}]", list.join(", ")),
        };
        return Err(ErrorKind::BroadcastTo { got: x.clone(), to: shape.clone(), axes }.into());
    }
    TensorType::new(x.dtype, shape.clone())
}

/// `axes` is a permutation.
pub(super) fn transpose(x: &TensorType, axes: &[Axis]) -> Result<TensorType> {
    let is_permutation = axes.len() == x.shape.rank() && x.shape.axes().all(|axis| axes.contains(&axis));
    if !is_permutation {
        let list: Vec<String> = axes.iter().map(Axis::to_string).collect();
        let axes = format!("[{}]", list.join(", "));
        return Err(ErrorKind::Permutation { got: x.clone(), axes }.into());
    }
    TensorType::new(x.dtype, x.shape.permuted(axes))
}

/// One entry for each axis; cropping may not exceed the axis.
pub(super) fn pad(x: &TensorType, value: &TensorType, config: &[Padding]) -> Result<TensorType> {
    if value.shape.rank() != 0 {
        return Err(ErrorKind::NotScalar { op: "pad", what: "the padding value", got: value.clone() }.into());
    }
    if config.len() != x.shape.rank() {
        return Err(ErrorKind::PadCount { count: config.len(), got: x.clone() }.into());
    }
    let mut shape = x.shape.clone();
    for (axis, padding) in x.shape.axes().zip(config) {
        shape[axis] = padded_size(x.shape[axis], padding).ok_or_else(|| ErrorKind::PadConfig {
            low: padding.low,
            high: padding.high,
            interior: i64::try_from(padding.interior).unwrap_or(i64::MAX),
            axis: axis.index(),
            got: x.clone(),
        })?;
    }
    TensorType::new(x.dtype.merge(value.dtype), shape)
}

/// The size of a padded axis; None if negative. A size that overflows saturates: no memory suffices for it.
fn padded_size(size: usize, padding: &Padding) -> Option<usize> {
    // Sizes fit 63 bits, so that products stay below 127 bits.
    let interior = size.saturating_sub(1) as i128 * padding.interior as i128;
    let padded = size as i128 + interior + i128::from(padding.low) + i128::from(padding.high);
    // Cropping may not remove more elements than the axis has.
    if padded < 0 { None } else { Some(usize::try_from(padded).unwrap_or(usize::MAX)) }
}

/// The axes must exist; the type is kept.
pub(super) fn reverse(x: &TensorType, axes: &[Axis]) -> Result<TensorType> {
    for &axis in axes {
        x.shape.resolve("reverse", &AxisRef::from(axis))?;
    }
    Ok(x.clone())
}

/// Inputs have one rank and equal sizes except on `axis`, where sizes add up; dtypes and names merge.
pub(super) fn concatenate(inputs: &[&TensorType], axis: Axis) -> Result<TensorType> {
    let [first, rest @ ..] = inputs else {
        return Err(ErrorKind::NoTensors { op: "concatenate" }.into());
    };
    if first.shape.rank() == 0 {
        let required = "at least one axis is required; use stack to join scalars";
        return Err(ErrorKind::Rank { op: "concatenate", got: (*first).clone(), required }.into());
    }
    first.shape.resolve("concatenate", &AxisRef::from(axis))?;
    let (mut dtype, mut shape) = (first.dtype, first.shape.clone());
    for (i, ty) in rest.iter().enumerate() {
        let fits = ty.shape.rank() == first.shape.rank()
            && first.shape.axes().all(|a| a == axis || ty.shape[a] == first.shape[a]);
        let sum = fits.then(|| shape[axis].checked_add(ty.shape[axis])).flatten();
        let Some(sum) = sum else {
            return Err(ErrorKind::ConcatenateShapes {
                op: "concatenate",
                position: i + 1,
                got: (*ty).clone(),
                first: (*first).clone(),
                axis: axis.index(),
            }
            .into());
        };
        shape = merged_names("concatenate", &shape, &ty.shape)?;
        shape[axis] = sum;
        dtype = dtype.merge(ty.dtype);
    }
    TensorType::new(dtype, shape)
}

/// Inputs have one shape, which gets a new axis; dtypes and names merge.
pub(super) fn stack(inputs: &[&TensorType], axis: usize, name: Option<&Name>) -> Result<TensorType> {
    let [first, rest @ ..] = inputs else {
        return Err(ErrorKind::NoTensors { op: "stack" }.into());
    };
    let (mut dtype, mut shape) = (first.dtype, first.shape.clone());
    for (i, ty) in rest.iter().enumerate() {
        if ty.shape.sizes() != first.shape.sizes() {
            return Err(ErrorKind::StackShapes {
                position: i + 1,
                got: (*ty).clone(),
                first: (*first).clone(),
            }
            .into());
        }
        shape = merged_names("stack", &shape, &ty.shape)?;
        dtype = dtype.merge(ty.dtype);
    }
    let mut entries: Vec<_> = shape.entries().collect();
    assert!(axis <= entries.len(), "stack: the new axis is resolved by the builder");
    entries.insert(axis, (inputs.len(), name.cloned()));
    TensorType::new(dtype, Shape::from_axes(entries))
}

/// The sizes of `a` with the merged names of both; the ranks are equal.
fn merged_names(op: &'static str, a: &Shape, b: &Shape) -> Result<Shape> {
    if !a.has_names() && !b.has_names() {
        return Ok(a.clone());
    }
    let mut names = Vec::with_capacity(a.rank());
    for axis in a.axes() {
        let (left, right) = (a.name(axis).cloned(), b.name(axis).cloned());
        names.push(merge_names(op, (left, Some(axis)), (right, Some(axis)))?);
    }
    a.with_names(names)
}

/// Lengths do not exceed the sizes; static starts are already in range; the result's sizes take the strides
/// into account.
pub(super) fn slice(
    x: &TensorType,
    dynamic: &[&TensorType],
    starts: &Starts,
    lengths: &[usize],
    strides: &[usize],
) -> Result<TensorType> {
    check_starts("slice", x, dynamic, starts)?;
    if lengths.len() != x.shape.rank() || strides.len() != x.shape.rank() {
        let required = "one start, length and stride for each axis is required";
        return Err(ErrorKind::Rank { op: "slice", got: x.clone(), required }.into());
    }
    let mut shape = x.shape.clone();
    for axis in x.shape.axes() {
        let (length, stride) = (lengths[axis.index()], strides[axis.index()]);
        let start = match starts {
            Starts::Static(starts) => starts[axis.index()],
            Starts::Dynamic | Starts::FromEnd => 0,
        };
        if stride < 1 {
            return Err(ErrorKind::Stride { op: "slice", stride: 0, axis: axis.index() }.into());
        }
        if start.checked_add(length).is_none_or(|end| end > x.shape[axis]) {
            return Err(ErrorKind::SliceLength {
                op: "slice",
                got: x.clone(),
                axis: axis.index(),
                start: start as i64,
                length: length as i64,
            }
            .into());
        }
        shape[axis] = length.div_ceil(stride);
    }
    TensorType::new(x.dtype, shape)
}

/// The update has the target's rank and fits into it; dtypes and names merge.
pub(super) fn put_slice(
    x: &TensorType,
    update: &TensorType,
    dynamic: &[&TensorType],
    starts: &Starts,
) -> Result<TensorType> {
    let within = |start: &[usize]| {
        x.shape.axes().all(|axis| start[axis.index()] + update.shape[axis] <= x.shape[axis])
    };
    let fits = update.shape.rank() == x.shape.rank()
        && x.shape.axes().all(|axis| update.shape[axis] <= x.shape[axis]);
    if !fits {
        return Err(ErrorKind::PutSlice { target: x.clone(), slice: update.clone() }.into());
    }
    check_starts("put_slice", x, dynamic, starts)?;
    if let Starts::Static(starts) = starts {
        assert!(within(starts), "put_slice: the builder clamps static starts");
    }
    let shape = merged_names("put_slice", &x.shape, &update.shape)?;
    TensorType::new(x.dtype.merge(update.dtype), shape)
}

/// One start for each axis; dynamic ones are integer scalars.
fn check_starts(op: &'static str, x: &TensorType, dynamic: &[&TensorType], starts: &Starts) -> Result<()> {
    let count = match starts {
        Starts::Static(starts) => starts.len(),
        Starts::Dynamic | Starts::FromEnd => dynamic.len(),
    };
    if count != x.shape.rank() {
        let required = "one start for each axis is required";
        return Err(ErrorKind::Rank { op, got: x.clone(), required }.into());
    }
    for (axis, ty) in dynamic.iter().enumerate() {
        let is_index = |dtype: DType| dtype.is_integer();
        if ty.shape.rank() != 0 || !is_index(ty.dtype) {
            return Err(ErrorKind::StartIndex { op, axis, got: (*ty).clone() }.into());
        }
    }
    Ok(())
}
