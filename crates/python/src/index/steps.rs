//! The part of an index that selects a window: positions, slices and new axes, read and written.

use defn_core::builder::{Arg, BuildCreate, BuildElementwise, BuildShape, Ops, Start};
use defn_core::distance::distance;
use defn_core::{Axes, AxisRef, DType, Name, Number, Shape, Tensor, TensorType, trace, vectorize};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PySlice;
use smallvec::SmallVec;

use super::entries::Pick;
use crate::convert;
use crate::error::Fallible;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// The slicing of one axis.
pub(super) struct Step {
    pub(super) start: Start<Tensor>,
    /// The number of elements from the first selected one to the last.
    pub(super) length: usize,
    pub(super) stride: usize,
    pub(super) reversed: bool,
    pub(super) dropped: bool,
}

/// One step for each axis, stored inline if there are few.
pub(super) type Steps = SmallVec<[Step; 4]>;

impl Step {
    pub(super) fn whole(size: usize) -> Step {
        Step { start: Start::Index(0), length: size, stride: 1, reversed: false, dropped: false }
    }

    /// The number of selected elements.
    pub(super) fn count(&self) -> usize {
        self.length.div_ceil(self.stride)
    }

    /// Whether elements between the selected ones are left out.
    fn skips(&self) -> bool {
        self.stride > 1 && self.length > 1
    }

    fn is_whole(&self, size: usize) -> bool {
        !self.dropped && self.length == size && !self.skips() && !self.reversed
    }
}

/// Whether all elements are selected, in their order.
pub(super) fn are_whole(steps: &[Step], shape: &Shape) -> bool {
    steps.iter().zip(shape.sizes()).all(|(step, &size)| step.is_whole(size))
}

/// The sizes and the names of the selected axes.
pub(super) fn kept(steps: &[Step], shape: &Shape) -> SmallVec<[(usize, Option<Name>); 6]> {
    let axes = shape.axes().zip(steps).filter(|(_, step)| !step.dropped);
    axes.map(|(axis, step)| (step.count(), shape.name(axis).cloned())).collect()
}

/// The step of a pick along one axis.
pub(super) fn step(ty: &TensorType, axis: usize, pick: &Pick<'_>) -> Fallible<Step> {
    let size = ty.shape.sizes()[axis];
    let whole = Step::whole(size);
    match pick {
        Pick::Full | Pick::Positions(_) | Pick::Mask(_) => Ok(whole),
        Pick::Dynamic(index) => {
            if size == 0 {
                let index = "a tensor".to_owned();
                return Err(Misuse::IndexRange { index, axis, size, got: ty.clone() }.into());
            }
            Ok(Step { start: Start::Value(index.clone()), length: 1, dropped: true, ..whole })
        }
        Pick::Position(value) => {
            let extent = size as i64;
            match convert::index(value)? {
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
        Pick::Range(slice) => range(ty, axis, slice),
    }
}

fn range(ty: &TensorType, axis: usize, slice: &Bound<'_, PySlice>) -> Fallible<Step> {
    let size = ty.shape.sizes()[axis];
    let whole = Step::whole(size);
    let step = slice.getattr(intern!(slice.py(), "step"))?;
    if !step.is_none() && convert::index(&step)? == Some(0) {
        return Err(Misuse::ZeroStep { axis, got: ty.clone() }.into());
    }
    if let Some(step) = traced_range(ty, axis, slice)? {
        return Ok(step);
    }
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
    Ok(Step { start: Start::Index(lowest as i64), length: span + 1, stride, reversed, dropped: false })
}

/// A slice whose bounds are traced or vectorized. Its length is known if the bounds differ by a constant.
fn traced_range(ty: &TensorType, axis: usize, slice: &Bound<'_, PySlice>) -> Fallible<Option<Step>> {
    let py = slice.py();
    let bound = |name| -> Fallible<Option<Tensor>> {
        let value = slice.getattr(name)?;
        let tensor = value.cast::<PyTensor>().ok().map(|tensor| tensor.get().tensor.clone());
        Ok(tensor.filter(|tensor| tensor.is_traced() || tensor.is_vectorized()))
    };
    let (start, stop) = (bound(intern!(py, "start"))?, bound(intern!(py, "stop"))?);
    let (name, first) = match (&start, &stop) {
        (None, None) => return Ok(None),
        (Some(start), _) => ("start", start),
        (None, Some(stop)) => ("stop", stop),
    };
    let kind = if first.is_traced() { "a traced " } else { "" };
    let got = format!("{kind}{}", vectorize::type_text(first));
    let refused = Misuse::TracedSlice { bound: name, axis, got, of: ty.clone() };
    let (Some(start), Some(stop)) = (start, stop) else { return Err(refused.into()) };
    let Some(distance) = distance_between(&start, &stop)? else { return Err(refused.into()) };
    let step = slice.getattr(intern!(py, "step"))?;
    let Some(stride) = (if step.is_none() { Some(1) } else { convert::index(&step)? }) else {
        return Err(refused.into());
    };
    let spanned = if stride < 0 { distance.saturating_neg() } else { distance };
    let whole = Step::whole(ty.shape.sizes()[axis]);
    let Some(last) = usize::try_from(spanned).ok().and_then(|spanned| spanned.checked_sub(1)) else {
        return Ok(Some(Step { length: 0, ..whole }));
    };
    let width = usize::try_from(stride.unsigned_abs()).unwrap_or(usize::MAX);
    let span = last - last % width;
    let size = ty.shape.sizes()[axis];
    if span >= size {
        return Err(Misuse::TracedSliceLength { length: span + 1, axis, size, of: ty.clone() }.into());
    }
    let start = if stride < 0 && span > 0 {
        ops::with(|ops| ops.subtract(&start, Arg::Number(Number::from(span))))?
    } else {
        start
    };
    let reversed = stride < 0 && span > 0;
    Ok(Some(Step {
        start: Start::Value(start),
        length: span + 1,
        stride: width.min(span + 1),
        reversed,
        dropped: false,
    }))
}

/// The distance of two bounds, if it is the same for all values of traced ones, or at all vectorized positions.
fn distance_between(start: &Tensor, stop: &Tensor) -> Fallible<Option<i64>> {
    if trace::depth() > 0 || start.is_traced() || stop.is_traced() {
        return Ok(distance(start, stop));
    }
    let distances = ops::with(|ops| {
        let (start, stop) = (ops.as_type(start, DType::S64)?, ops.as_type(stop, DType::S64)?);
        ops.subtract(stop, start)
    })?;
    let memory = distances.host_bytes("index")?;
    let mut distances =
        memory.bytes().chunks_exact(8).filter_map(|bytes| bytes.try_into().ok().map(i64::from_ne_bytes));
    let first = distances.next();
    Ok(first.filter(|first| distances.all(|distance| distance == *first)))
}

/// The axes whose steps are chosen.
fn chosen(steps: &[Step], pick: fn(&Step) -> bool) -> Axes {
    let axes = steps.iter().enumerate().filter(|(_, step)| pick(step));
    Axes::List(axes.map(|(axis, _)| AxisRef::Index(axis as i64)).collect())
}

fn starts(steps: &[Step]) -> Vec<Start<Tensor>> {
    steps.iter().map(|step| step.start.clone()).collect()
}

fn lengths(steps: &[Step]) -> Vec<i64> {
    steps.iter().map(|step| step.length as i64).collect()
}

/// The selected elements.
pub(super) fn get(ops: &mut Ops, x: &Tensor, steps: &[Step]) -> defn_core::Result<Tensor> {
    let mut out = x.clone();
    if steps
        .iter()
        .zip(x.ty().shape.sizes())
        .any(|(step, &size)| step.dropped || step.length != size || step.skips())
    {
        // A stride above the length selects one element, as a stride equal to the length does.
        let strides: Vec<i64> = steps.iter().map(|step| step.stride.min(step.length.max(1)) as i64).collect();
        out = ops.slice_from_end(out, &starts(steps), &lengths(steps), Some(&strides))?;
    }
    if steps.iter().any(|step| step.reversed) {
        out = ops.reverse(out, chosen(steps, |step| step.reversed))?;
    }
    if steps.iter().any(|step| step.dropped) {
        out = ops.squeeze(out, chosen(steps, |step| step.dropped))?;
    }
    Ok(out)
}

/// `x` with its selected elements replaced by `update`, which has their sizes.
pub(super) fn put(ops: &mut Ops, x: &Tensor, steps: &[Step], update: Tensor) -> defn_core::Result<Tensor> {
    let sizes: Vec<usize> = steps.iter().map(|step| if step.dropped { 1 } else { step.count() }).collect();
    let mut update = ops.reshape_to(update, Shape::new(&sizes))?;
    if steps.iter().any(|step| step.reversed) {
        update = ops.reverse(update, chosen(steps, |step| step.reversed))?;
    }
    if steps.iter().any(Step::skips) {
        let window = ops.slice_from_end(x, &starts(steps), &lengths(steps), None)?;
        update = spread(ops, &window, steps, update)?;
    }
    ops.put_slice(x, &starts(steps), update)
}

/// A window with the elements of `update` in the places that the strides select.
fn spread(ops: &mut Ops, window: &Tensor, steps: &[Step], update: Tensor) -> defn_core::Result<Tensor> {
    let config: Vec<(i64, i64, i64)> =
        steps.iter().map(|step| (0, 0, if step.skips() { step.stride as i64 - 1 } else { 0 })).collect();
    let dtype = update.ty().dtype;
    let zero = ops.constant(dtype, if dtype.is_bool() { Number::Bool(false) } else { Number::Int(0) })?;
    let update = ops.pad(update, zero, &config)?;
    let shape = window.ty().shape.without_names();
    let mut is_selected: Option<Tensor> = None;
    for (axis, step) in steps.iter().enumerate().filter(|(_, step)| step.skips()) {
        let places = ops.iota(Shape::new(&[step.length]), DType::S64, None)?;
        let rest = ops.remainder(places, Arg::Number(Number::from(step.stride)))?;
        let own = ops.equal(rest, 0)?;
        let own = ops.broadcast(own, shape.clone(), AxisRef::Index(axis as i64))?;
        is_selected = Some(match is_selected {
            Some(others) => ops.logical_and(others, own)?,
            None => own,
        });
    }
    match is_selected {
        Some(is_selected) => ops.select(is_selected, update, window),
        None => Ok(update),
    }
}

/// The shape of the selected axes with new axes of size 1 at positions of the result.
pub(super) fn with_new_axes(mut entries: SmallVec<[(usize, Option<Name>); 6]>, new_axes: &[usize]) -> Shape {
    for &axis in new_axes {
        entries.insert(axis, (1, None));
    }
    Shape::from_axes(entries)
}

/// The offset of the first selected element and the shape of the selection, if the selected elements are
/// contiguous in memory.
pub(super) fn contiguous_window(
    ty: &TensorType,
    steps: &[Step],
    new_axes: &[usize],
) -> Option<(usize, Shape)> {
    let sizes = ty.shape.sizes();
    // Whether each axis so far selects one position. Then the next axis may select a range; all later axes
    // must be full.
    let (mut first, mut is_one) = (0, true);
    for (step, &size) in steps.iter().zip(sizes) {
        let Start::Index(start) = &step.start else { return None };
        let is_full = step.length == size;
        if step.reversed || step.length == 0 || step.skips() || !is_one && !is_full {
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
    Some((first, with_new_axes(kept(steps, &ty.shape), new_axes)))
}
