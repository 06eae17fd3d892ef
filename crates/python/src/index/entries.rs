//! The entries of an index, read against the type of the tensor that it indexes.

use defn_core::{AxisRef, ErrorKind, Tensor, TensorType, trace};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyEllipsis, PyInt, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

use super::mask::{self, Mask};
use crate::array;
use crate::backends;
use crate::build;
use crate::convert;
use crate::error::{Fallible, Fault};
use crate::misuse::Misuse;
use crate::tensor::PyTensor;

/// One entry of an index.
pub(super) enum Entry<'py> {
    /// An entry for one axis, or for the axes of a mask.
    At(Pick<'py>),
    /// A new axis of size 1.
    New,
    /// An ellipsis: full axes for all axes without an entry.
    Rest,
}

/// The selection along one axis, or along the axes of a mask.
pub(super) enum Pick<'py> {
    Position(Bound<'py, PyAny>),
    Dynamic(Tensor),
    Range(Bound<'py, PySlice>),
    Full,
    Positions(Positions),
    Mask(Mask),
}

/// Integers that have axes of their own.
pub(super) struct Positions {
    pub(super) tensor: Tensor,
    /// The least and the greatest, where they are known while a definition is traced.
    pub(super) extremes: Option<(i64, i64)>,
}

/// The entries of an index, at most one of them a [`Entry::Rest`].
pub(super) type Entries<'py> = SmallVec<[Entry<'py>; 4]>;

impl Pick<'_> {
    /// The number of axes that the pick is for.
    pub(super) fn axes(&self) -> usize {
        match self {
            Pick::Position(_) | Pick::Dynamic(_) | Pick::Range(_) | Pick::Full | Pick::Positions(_) => 1,
            Pick::Mask(mask) => mask.tensor.ty().shape.rank(),
        }
    }

    /// Whether the elements are picked by positions with axes of their own, or by a mask.
    pub(super) fn is_advanced(&self) -> bool {
        match self {
            Pick::Positions(_) | Pick::Mask(_) => true,
            Pick::Position(_) | Pick::Dynamic(_) | Pick::Range(_) | Pick::Full => false,
        }
    }

    /// Whether the axis stays in the result.
    pub(super) fn keeps_axis(&self) -> bool {
        match self {
            Pick::Range(_) | Pick::Full => true,
            Pick::Position(_) | Pick::Dynamic(_) | Pick::Positions(_) | Pick::Mask(_) => false,
        }
    }
}

/// The entries of an index, by position or by axis. They are for all axes of the tensor.
pub(super) fn read<'py>(ty: &TensorType, index: &Bound<'py, PyAny>) -> Fallible<Entries<'py>> {
    match index.cast::<PyDict>() {
        Ok(by_name) => by_axis(ty, by_name),
        Err(_) => in_order(ty, index),
    }
}

/// An index by position: entries for the leading axes, and full axes in the place of the ellipsis or at the end.
fn in_order<'py>(ty: &TensorType, index: &Bound<'py, PyAny>) -> Fallible<Entries<'py>> {
    let mut entries = Entries::new();
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
    let axes = |entry: &Entry<'py>| match entry {
        Entry::At(pick) => pick.axes(),
        Entry::New | Entry::Rest => 0,
    };
    let given: usize = entries.iter().map(axes).sum();
    if given > ty.shape.rank() {
        return Err(Misuse::TooManyIndices { given, got: ty.clone() }.into());
    }
    Ok(entries)
}

/// An index by axis name or number; the other axes are full.
fn by_axis<'py>(ty: &TensorType, index: &Bound<'py, PyDict>) -> Fallible<Entries<'py>> {
    let mut picks: Vec<Option<Pick<'py>>> = (0..ty.shape.rank()).map(|_| None).collect();
    let repeated = |axis: usize| {
        let axis = AxisRef::Index(axis as i64);
        Fault::from(ErrorKind::AxisRepeated { op: "index", axis, shape: ty.shape.clone() })
    };
    let entries: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = index.iter().collect();
    for (key, value) in entries {
        let axis = ty.shape.resolve("index", &convert::axis("index", &key)?)?.index();
        match entry(ty, &value)? {
            Entry::At(_) if picks[axis].is_some() => return Err(repeated(axis)),
            Entry::At(pick) => picks[axis] = Some(pick),
            Entry::New | Entry::Rest => return Err(bad(ty, &value)?),
        }
    }
    let mut entries = Entries::new();
    let mut covered = 0;
    for (axis, pick) in picks.into_iter().enumerate() {
        match pick {
            Some(_) if covered > axis => return Err(repeated(axis)),
            None if covered > axis => {}
            pick => {
                let pick = pick.unwrap_or(Pick::Full);
                covered = axis + pick.axes();
                entries.push(Entry::At(pick));
            }
        }
    }
    Ok(entries)
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
        return by_tensor(ty, &tensor.get().tensor).map(Entry::At);
    }
    if item.is_exact_instance_of::<PyInt>() {
        return Ok(Entry::At(Pick::Position(item.clone())));
    }
    if let Some(mask) = mask::listed(item)? {
        return Ok(Entry::At(Pick::Mask(mask)));
    }
    if let Some(positions) = listed(item)? {
        return Ok(Entry::At(Pick::Positions(positions)));
    }
    if array::is_array(item) && convert::index(item)?.is_none() || item.is_instance_of::<PyBool>() {
        return Err(bad(ty, item)?);
    }
    if convert::index(item)?.is_some() {
        return Ok(Entry::At(Pick::Position(item.clone())));
    }
    Err(bad(ty, item)?)
}

fn by_tensor<'py>(ty: &TensorType, index: &Tensor) -> Fallible<Pick<'py>> {
    let got = index.ty();
    if got.dtype.is_bool() && got.shape.rank() > 0 {
        return Ok(Pick::Mask(Mask { tensor: index.clone(), is_known: false }));
    }
    if !got.dtype.is_integer() {
        return Err(Misuse::BadIndex { index: got.to_string(), got: ty.clone() }.into());
    }
    if got.shape.rank() > 0 {
        return Ok(Pick::Positions(Positions { tensor: index.clone(), extremes: None }));
    }
    Ok(Pick::Dynamic(index.clone()))
}

/// The integers of a NumPy array with axes, or of nested lists.
fn listed(item: &Bound<'_, PyAny>) -> Fallible<Option<Positions>> {
    let py = item.py();
    let array = if array::is_array(item) {
        item.clone()
    } else if let Ok(list) = item.cast_exact::<PyList>() {
        if !mask::holds(list, &|entry| entry.is_exact_instance_of::<PyInt>()) && !list.is_empty() {
            return Ok(None);
        }
        // An empty list has no dtype of its own; NumPy would take floats.
        let dtype = list.is_empty().then_some("int64");
        let array = py.import("numpy")?.call_method1(intern!(py, "asarray"), (item, dtype));
        match array {
            Ok(array) => array,
            // A ragged list is no array.
            Err(error) if error.is_instance_of::<PyValueError>(py) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    } else {
        return Ok(None);
    };
    let kind: String = array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
    if kind != "i" && kind != "u" || array.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0 {
        return Ok(None);
    }
    let Some(tensor) = build::from_array(&array, None, &backends::default()?)? else { return Ok(None) };
    // An eager read checks its positions itself.
    let is_checked = trace::depth() > 0 && tensor.ty().size() > 0;
    let extremes = if is_checked {
        let extreme = |name| -> Fallible<i64> {
            // Beyond s64 every position is out of range.
            Ok(array.call_method0(name)?.extract::<i64>().unwrap_or(i64::MAX))
        };
        Some((extreme(intern!(py, "min"))?, extreme(intern!(py, "max"))?))
    } else {
        None
    };
    Ok(Some(Positions { tensor, extremes }))
}

pub(super) fn bad(ty: &TensorType, item: &Bound<'_, PyAny>) -> Fallible<Fault> {
    Ok(Misuse::BadIndex { index: convert::describe(item)?, got: ty.clone() }.into())
}
