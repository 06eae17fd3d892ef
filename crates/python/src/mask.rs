//! `tensor[mask]`: the elements at which a bool tensor is true, as in NumPy. Their number depends on values,
//! so this works only on concrete tensors.

use defn_core::builder::{BuildIndex, BuildShape};
use defn_core::{DType, ErrorKind, Name, Shape, Tensor, TensorType, trace, vectorize};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PySlice, PyTuple};

use crate::array;
use crate::backends;
use crate::build;
use crate::error::Fallible;
use crate::index;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// A mask in an index, and the entries before and after it.
pub(crate) struct Masked<'py> {
    mask: Tensor,
    before: Vec<Bound<'py, PyAny>>,
    after: Vec<Bound<'py, PyAny>>,
}

/// The mask in an index: a tensor, an array or a list of bools.
///
/// # Errors
/// Two masks.
pub(crate) fn find<'py>(ty: &TensorType, index: &Bound<'py, PyAny>) -> Fallible<Option<Masked<'py>>> {
    let Ok(entries) = index.cast::<PyTuple>() else {
        let mask = mask_of(index)?;
        return Ok(mask.map(|mask| Masked { mask, before: Vec::new(), after: Vec::new() }));
    };
    let mut found: Option<Masked<'py>> = None;
    for (position, entry) in entries.iter().enumerate() {
        let Some(mask) = mask_of(&entry)? else { continue };
        if found.is_some() {
            return Err(Misuse::TwoMasks { got: ty.clone() }.into());
        }
        let before = entries.iter().take(position).collect();
        let after = entries.iter().skip(position + 1).collect();
        found = Some(Masked { mask, before, after });
    }
    Ok(found)
}

fn mask_of(item: &Bound<'_, PyAny>) -> Fallible<Option<Tensor>> {
    if let Ok(tensor) = item.cast::<PyTensor>() {
        let mask = &tensor.get().tensor;
        return Ok((mask.ty().dtype.is_bool() && mask.ty().shape.rank() > 0).then(|| mask.clone()));
    }
    if holds_bools(item, DEEPEST) {
        let mask = build::tensor(item, None, None, None, None)?;
        return Ok(Some(mask.tensor));
    }
    if array::is_array(item) && item.getattr("dtype")?.getattr("kind")?.extract::<String>()? == "b" {
        let mask = build::from_array(item, None, &backends::host())?;
        return Ok(mask.filter(|mask| mask.ty().shape.rank() > 0));
    }
    Ok(None)
}

/// The maximum nesting depth of lists of bools.
const DEEPEST: usize = 64;

/// Whether an object is a list of bools, or of such lists.
fn holds_bools(item: &Bound<'_, PyAny>, depth: usize) -> bool {
    let holds = |entry: &Bound<'_, PyAny>| {
        entry.is_instance_of::<PyBool>() || depth > 0 && holds_bools(entry, depth - 1)
    };
    item.cast::<PyList>().is_ok_and(|list| !list.is_empty() && list.iter().all(|entry| holds(&entry)))
}

impl<'py> Masked<'py> {
    /// The selected elements of a tensor. The axes of the mask are replaced by one axis of the elements at
    /// which the mask is true.
    pub(crate) fn get(&self, py: Python<'py>, tensor: &Tensor) -> Fallible<PyTensor> {
        let mask = &self.mask;
        if trace::depth() > 0 || tensor.buffer().is_none() || mask.buffer().is_none() {
            return Err(Misuse::MaskIndex { mask: mask.ty().to_string(), got: tensor.ty().clone() }.into());
        }
        if mask.is_vectorized() {
            let axes = vectorize::vectorized_axes_text(mask.vectorized_axes());
            return Err(ErrorKind::NotVectorizable { op: "index", what: "the mask", axes }.into());
        }
        let rest = self.rest(py, tensor)?;
        let tensor = rest.as_ref().map_or(tensor, |rest| &rest.tensor);
        let first = self.axes_before(tensor.ty().shape.rank())?;
        let sizes = mask.ty().shape.sizes();
        let covered = tensor.ty().shape.sizes().get(first..first + sizes.len());
        if covered != Some(sizes) {
            let (mask, got) = (mask.ty().to_string(), tensor.ty().clone());
            return Err(Misuse::MaskShape { mask, axis: first, got }.into());
        }
        let positions = self.positions(tensor)?;
        let entries: Vec<(usize, Option<Name>)> = tensor.ty().shape.entries().collect();
        let (leading, others) = entries.split_at(first);
        let (own, trailing) = others.split_at(sizes.len());
        let name = if let [(_, name)] = own { name.clone() } else { None };
        let merged = (mask.ty().size(), name);
        let flat = Shape::from_axes(leading.iter().chain([&merged]).chain(trailing).cloned());
        ops::on(tensor, move |ops, x| {
            let x = ops.reshape_to(x, flat)?;
            ops.take(x, positions, first as i64)
        })
    }

    /// The tensor after all other entries of the index are applied, if there are any.
    fn rest(&self, py: Python<'py>, tensor: &Tensor) -> Fallible<Option<PyTensor>> {
        if self.before.is_empty() && self.after.is_empty() {
            return Ok(None);
        }
        // NumPy moves the axis of the mask to the front if a slice is between it and a position.
        let is_position = |entry: &Bound<'_, PyAny>| {
            !entry.is_none() && !entry.is_instance_of::<PySlice>() && !entry.is_instance_of::<PyEllipsis>()
        };
        let is_interrupted = |entries: &mut dyn Iterator<Item = &Bound<'_, PyAny>>| {
            entries.skip_while(|entry| is_position(entry)).any(is_position)
        };
        if is_interrupted(&mut self.before.iter().rev()) || is_interrupted(&mut self.after.iter()) {
            return Err(Misuse::MaskApart { got: tensor.ty().clone() }.into());
        }
        let whole = PySlice::full(py).into_any();
        let own = std::iter::repeat_n(&whole, self.mask.ty().shape.rank());
        let others: Vec<_> = self.before.iter().chain(own).chain(&self.after).collect();
        let others = PyTuple::new(py, others)?;
        index::get(tensor, others.as_any()).map(Some)
    }

    /// The number of axes before those of the mask, after the other entries are applied.
    fn axes_before(&self, rank: usize) -> Fallible<usize> {
        let keeps_axis = |entry: &Bound<'_, PyAny>| entry.is_none() || entry.is_instance_of::<PySlice>();
        let is_rest = |entry: &Bound<'_, PyAny>| entry.is_instance_of::<PyEllipsis>();
        if self.before.iter().any(is_rest) {
            let after =
                self.after.iter().filter(|entry| keeps_axis(entry)).count() + self.mask.ty().shape.rank();
            return Ok(rank.saturating_sub(after));
        }
        Ok(self.before.iter().filter(|entry| keeps_axis(entry)).count())
    }

    /// The flat row-major positions at which the mask is true, on the tensor's backend.
    fn positions(&self, tensor: &Tensor) -> Fallible<Tensor> {
        let memory = self.mask.host_bytes("index")?;
        let truths = memory.bytes();
        let count = truths.iter().filter(|&&truth| truth != 0).count();
        let ty = TensorType::new(DType::S64, Shape::new(&[count]))?;
        let mut bytes = defn_core::tensor::host_memory("index", ty.byte_size())?;
        for (position, _) in truths.iter().enumerate().filter(|&(_, &truth)| truth != 0) {
            bytes.extend_from_slice(&(position as i64).to_ne_bytes());
        }
        let backend = tensor.backend().unwrap_or_else(backends::host);
        build::upload(&backend, ty, bytes)
    }
}

/// Whether an entry of an index may be a mask, decided without reading its elements.
pub(crate) fn may_be(item: &Bound<'_, PyAny>) -> bool {
    if let Ok(entries) = item.cast::<PyTuple>() {
        return entries.iter_borrowed().any(|entry| may_be_entry(&entry));
    }
    may_be_entry(item)
}

fn may_be_entry(item: &Bound<'_, PyAny>) -> bool {
    match item.cast::<PyTensor>() {
        Ok(tensor) => tensor.get().tensor.ty().dtype.is_bool(),
        Err(_) => item.is_instance_of::<PyList>() || array::is_array(item),
    }
}
