//! `tensor[...]`: Python's rules for positions and slices, implemented with `slice`, `reverse` and `squeeze`.
//! A tensor of positions gathers along the first axis; a tensor of bools is a mask.

use defn_core::builder::{BuildIndex, BuildShape, Ops, Start};
use defn_core::{Axes, AxisRef, Name, Shape, Tensor, TensorType};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyEllipsis, PyInt, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use crate::array;
use crate::backends;
use crate::build;
use crate::convert;
use crate::error::Fallible;
use crate::mask;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// One entry of an index.
enum Entry<'py> {
    /// An entry for one axis.
    At(Pick<'py>),
    /// A new axis of size 1.
    New,
    /// An ellipsis: full axes for all axes without an entry.
    Rest,
}

/// The selection along one axis.
enum Pick<'py> {
    Position(Bound<'py, PyAny>),
    Dynamic(Tensor),
    Range(Bound<'py, PySlice>),
    Full,
}

/// The slicing of one axis.
struct Step {
    start: Start<Tensor>,
    length: usize,
    stride: usize,
    reversed: bool,
    dropped: bool,
}

/// One entry for each axis, stored inline if there are few.
type Picks<'py> = SmallVec<[Pick<'py>; 4]>;
type Steps = SmallVec<[Step; 4]>;

/// The offset of the first selected element and the shape of the selection, if the selected elements are
/// contiguous in memory.
fn contiguous_window(ty: &TensorType, steps: &[Step], new_axes: &[usize]) -> Option<(usize, Shape)> {
    let sizes = ty.shape.sizes();
    // Whether each axis so far selects one position. Then the next axis may select a range; all later axes
    // must be full.
    let (mut first, mut is_one) = (0, true);
    for (step, &size) in steps.iter().zip(sizes) {
        let Start::Index(start) = &step.start else { return None };
        let is_whole = step.length == size;
        if step.reversed || step.length == 0 || step.length > 1 && step.stride > 1 || !is_one && !is_whole {
            return None;
        }
        first = first * size + usize::try_from(*start).ok()?;
        is_one &= step.length == 1;
    }
    // An index that selects everything returns the tensor itself.
    if new_axes.is_empty()
        && steps.iter().zip(sizes).all(|(step, &size)| !step.dropped && step.length == size)
    {
        return None;
    }
    let mut entries: SmallVec<[(usize, Option<Name>); 6]> = SmallVec::new();
    for (axis, step) in ty.shape.axes().zip(steps) {
        if !step.dropped {
            entries.push((step.length, ty.shape.name(axis).cloned()));
        }
    }
    for &axis in new_axes {
        entries.insert(axis, (1, None));
    }
    Some((first, Shape::from_axes(entries)))
}

/// The selected elements of a tensor.
pub(crate) fn get(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Fallible<PyTensor> {
    let ty = tensor.ty();
    if mask::may_be(index)
        && let Some(masked) = mask::find(ty, index)?
    {
        return masked.get(index.py(), tensor);
    }
    if let Some(indices) = positions(ty, index)? {
        return ops::on(tensor, move |ops, x| ops.take(x, indices, 0));
    }
    let (picks, new_axes) = match index.cast::<PyDict>() {
        Ok(by_name) => (by_axis(ty, by_name)?, SmallVec::new()),
        Err(_) => in_order(ty, index)?,
    };
    let mut steps: Steps = SmallVec::new();
    for (axis, pick) in picks.into_iter().enumerate() {
        steps.push(step(ty, axis, pick)?);
    }
    if let Some((first, shape)) = contiguous_window(ty, &steps, &new_axes)
        && let Some(part) = ops::view_fast_path(tensor, first, shape)?
    {
        return Ok(PyTensor::new(part));
    }
    ops::on(tensor, move |ops, x| apply(ops, x, &steps, &new_axes))
}

/// Refuses a slice whose bounds are unknown while tracing: the size of the result would be unknown too.
fn require_concrete(slice: &Bound<'_, PySlice>) -> Fallible<()> {
    let py = slice.py();
    for (bound, name) in [("start", intern!(py, "start")), ("stop", intern!(py, "stop"))] {
        let value = slice.getattr(name)?;
        if let Ok(tensor) = value.cast::<PyTensor>()
            && tensor.get().tensor.is_traced()
        {
            return Err(Misuse::TracedSlice { bound, got: tensor.get().tensor.ty().clone() }.into());
        }
    }
    Ok(())
}

/// Positions along the first axis: a tensor, an array or a list as the only index.
fn positions(ty: &TensorType, index: &Bound<'_, PyAny>) -> Fallible<Option<Tensor>> {
    let indices = match index.cast::<PyTensor>() {
        Ok(tensor) => tensor.get().tensor.clone(),
        Err(_) => match listed(index)? {
            Some(listed) => listed,
            None => return Ok(None),
        },
    };
    // A scalar position is an ordinary index.
    let is_list = indices.ty().shape.rank() > 0 && indices.ty().dtype.is_integer();
    Ok((is_list && ty.shape.rank() > 0).then_some(indices))
}

/// The integers of a NumPy array or a list.
fn listed(index: &Bound<'_, PyAny>) -> Fallible<Option<Tensor>> {
    let py = index.py();
    if array::is_array(index) {
        let kind: String = index.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
        let is_integer = kind == "i" || kind == "u";
        return if is_integer { build::from_array(index, None, &backends::default()?) } else { Ok(None) };
    }
    let Ok(list) = index.cast_exact::<PyList>() else { return Ok(None) };
    if list.is_empty() || !list.iter().all(|item| item.is_exact_instance_of::<PyInt>()) {
        return Ok(None);
    }
    let array = py.import("numpy")?.call_method1(intern!(py, "asarray"), (index,))?;
    build::from_array(&array, None, &backends::default()?)
}

/// The slice at one position of the first axis, without that axis.
pub(crate) fn row(tensor: &Tensor, position: usize) -> Fallible<PyTensor> {
    let shape = &tensor.ty().shape;
    let rest = Shape::from_axes(shape.entries().skip(1));
    if rest.size() > 0
        && let Some(part) = ops::view_fast_path(tensor, position * rest.size(), rest)?
    {
        return Ok(PyTensor::new(part));
    }
    ops::on(tensor, move |ops, x| {
        let row = ops.slice_along_axis(x, position as i64, 1, 0, 1)?;
        ops.squeeze(row, 0)
    })
}

/// An index by position: entries for the leading axes. Also returns the positions of new axes in the result.
fn in_order<'py>(ty: &TensorType, index: &Bound<'py, PyAny>) -> Fallible<(Picks<'py>, SmallVec<[usize; 4]>)> {
    let mut entries: SmallVec<[Entry<'py>; 4]> = SmallVec::new();
    if index.is_instance_of::<PyTuple>() {
        for item in index.try_iter()? {
            entries.push(entry(ty, &item?)?);
        }
    } else {
        entries.push(entry(ty, index)?);
    }
    let rests = entries.iter().filter(|entry| matches!(entry, Entry::Rest)).count();
    if rests > 1 {
        return Err(Misuse::TwoEllipses { got: ty.clone() }.into());
    }
    if rests == 0 {
        entries.push(Entry::Rest);
    }
    let given = entries.iter().filter(|entry| matches!(entry, Entry::At(_))).count();
    let rank = ty.shape.rank();
    if given > rank {
        return Err(Misuse::TooManyIndices { given, got: ty.clone() }.into());
    }
    let (mut picks, mut new_axes) = (Picks::new(), SmallVec::new());
    let mut axis = 0;
    for entry in entries {
        match entry {
            Entry::At(pick) => {
                if !pick.drops() {
                    axis += 1;
                }
                picks.push(pick);
            }
            Entry::New => {
                new_axes.push(axis);
                axis += 1;
            }
            Entry::Rest => {
                picks.extend((0..rank - given).map(|_| Pick::Full));
                axis += rank - given;
            }
        }
    }
    Ok((picks, new_axes))
}

/// An index by axis name or number; the other axes are full.
fn by_axis<'py>(ty: &TensorType, index: &Bound<'py, PyDict>) -> Fallible<Picks<'py>> {
    let mut picks: Vec<Option<Pick<'py>>> = (0..ty.shape.rank()).map(|_| None).collect();
    let entries: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = index.iter().collect();
    for (key, value) in entries {
        let axis = ty.shape.resolve("index", &convert::axis("index", &key)?)?.index();
        match entry(ty, &value)? {
            Entry::At(_) if picks[axis].is_some() => {
                let axis = AxisRef::Index(axis as i64);
                let shape = ty.shape.clone();
                return Err(defn_core::ErrorKind::AxisRepeated { op: "index", axis, shape }.into());
            }
            Entry::At(pick) => picks[axis] = Some(pick),
            Entry::New | Entry::Rest => return Err(bad(ty, &value)?),
        }
    }
    Ok(picks.into_iter().map(|pick| pick.unwrap_or(Pick::Full)).collect())
}

impl Pick<'_> {
    /// Whether the axis is removed.
    fn drops(&self) -> bool {
        match self {
            Pick::Position(_) | Pick::Dynamic(_) => true,
            Pick::Range(_) | Pick::Full => false,
        }
    }
}

fn entry<'py>(ty: &TensorType, item: &Bound<'py, PyAny>) -> Fallible<Entry<'py>> {
    if item.is_none() {
        return Ok(Entry::New);
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Ok(Entry::Rest);
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        return Ok(Entry::At(Pick::Range(slice.clone())));
    }
    if let Ok(tensor) = item.cast::<PyTensor>() {
        return dynamic(ty, &tensor.get().tensor).map(Entry::At);
    }
    if array::is_array(item) && item.getattr("ndim")?.extract::<usize>()? > 0
        || array::is_array(item) && convert::index(item)?.is_none()
    {
        let kind: String = item.getattr("dtype")?.getattr("kind")?.extract()?;
        let text = format!("{}{}", item.getattr("dtype")?, item.getattr("shape")?);
        return match &*kind {
            "i" | "u" => Err(Misuse::ArrayIndex { indices: text }.into()),
            _ => Err(bad(ty, item)?),
        };
    }
    if item.is_instance_of::<PyList>() {
        return Err(Misuse::ArrayIndex { indices: convert::describe(item)? }.into());
    }
    if !item.is_instance_of::<PyBool>() && convert::index(item)?.is_some() {
        return Ok(Entry::At(Pick::Position(item.clone())));
    }
    Err(bad(ty, item)?)
}

fn dynamic<'py>(ty: &TensorType, index: &Tensor) -> Fallible<Pick<'py>> {
    let got = index.ty();
    if !got.dtype.is_integer() {
        return Err(Misuse::BadIndex { index: got.to_string(), got: ty.clone() }.into());
    }
    if got.shape.rank() > 0 {
        return Err(Misuse::ArrayIndex { indices: got.to_string() }.into());
    }
    Ok(Pick::Dynamic(index.clone()))
}

fn bad(ty: &TensorType, item: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
    Ok(Misuse::BadIndex { index: convert::describe(item)?, got: ty.clone() }.into())
}

fn step(ty: &TensorType, axis: usize, pick: Pick<'_>) -> Fallible<Step> {
    let size = ty.shape.sizes()[axis];
    let whole = Step { start: Start::Index(0), length: size, stride: 1, reversed: false, dropped: false };
    match pick {
        Pick::Full => Ok(whole),
        Pick::Dynamic(index) => {
            if size == 0 {
                let index = "a tensor".to_owned();
                return Err(Misuse::IndexRange { index, axis, size, got: ty.clone() }.into());
            }
            Ok(Step { start: Start::Value(index), length: 1, dropped: true, ..whole })
        }
        Pick::Position(value) => {
            let extent = size as i64;
            match convert::index(&value)? {
                Some(position) if (-extent..extent).contains(&position) => {
                    let start = Start::Index(position.rem_euclid(extent));
                    Ok(Step { start, length: 1, dropped: true, ..whole })
                }
                Some(_) | None => {
                    let index = value.str()?.to_string();
                    Err(Misuse::IndexRange { index, axis, size, got: ty.clone() }.into())
                }
            }
        }
        Pick::Range(slice) => {
            let zero = slice.getattr(intern!(slice.py(), "step"))?;
            if !zero.is_none() && convert::index(&zero)? == Some(0) {
                return Err(Misuse::ZeroStep { axis, got: ty.clone() }.into());
            }
            require_concrete(&slice)?;
            let range = slice.indices(size as isize)?;
            let (count, stride) = (range.slicelength, range.step.unsigned_abs());
            if count == 0 {
                return Ok(Step { length: 0, ..whole });
            }
            // A negative step selects the same elements as a positive one from the lowest position, in
            // reverse order.
            let span = (count - 1) * stride;
            let lowest = if range.step < 0 { range.start - span as isize } else { range.start };
            let reversed = range.step < 0 && count > 1;
            Ok(Step {
                start: Start::Index(lowest as i64),
                length: span + 1,
                stride,
                reversed,
                dropped: false,
            })
        }
    }
}

fn apply(ops: &mut Ops, x: &Tensor, steps: &[Step], new_axes: &[usize]) -> defn_core::Result<Tensor> {
    let mut out = x.clone();
    let is_whole = |(step, &size): (&Step, &usize)| {
        !step.dropped && step.length == size && step.stride == 1 && !step.reversed
    };
    if !steps.iter().zip(x.ty().shape.sizes()).all(is_whole) {
        let starts: Vec<Start<Tensor>> = steps.iter().map(|step| step.start.clone()).collect();
        let lengths: Vec<i64> = steps.iter().map(|step| step.length as i64).collect();
        // A stride above the length selects one element, as a stride equal to the length does.
        let strides: Vec<i64> = steps.iter().map(|step| step.stride.min(step.length.max(1)) as i64).collect();
        out = ops.slice_from_end(out, &starts, &lengths, Some(&strides))?;
    }
    let chosen = |pick: fn(&Step) -> bool| -> Axes {
        let axes: Vec<AxisRef> = steps
            .iter()
            .enumerate()
            .filter(|(_, step)| pick(step))
            .map(|(axis, _)| AxisRef::Index(axis as i64))
            .collect();
        Axes::List(axes)
    };
    if steps.iter().any(|step| step.reversed) {
        out = ops.reverse(out, chosen(|step| step.reversed))?;
    }
    if steps.iter().any(|step| step.dropped) {
        out = ops.squeeze(out, chosen(|step| step.dropped))?;
    }
    if !new_axes.is_empty() {
        let mut entries: Vec<_> = out.ty().shape.entries().collect();
        for &axis in new_axes {
            entries.insert(axis, (1, None));
        }
        out = ops.reshape_to(out, Shape::from_axes(entries))?;
    }
    Ok(out)
}
