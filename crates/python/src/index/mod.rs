//! `tensor[...]`, as in Python and in NumPy: positions, slices, new axes, tensors of positions, and masks.

mod entries;
mod mask;
mod plan;
mod steps;
mod update;

use defn_core::builder::{BuildIndex, BuildShape};
use defn_core::{Shape, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::entries::{Entries, Entry};
use self::plan::Plan;
use crate::error::Fallible;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;

/// The selected elements of a tensor.
pub(crate) fn get(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Fallible<PyTensor> {
    let ty = tensor.ty();
    if let Some(positions) = only_positions(tensor, index) {
        return ops::on(tensor, move |ops, x| ops.take(x, positions, 0));
    }
    let entries = entries::read(ty, index)?;
    if has_advanced(&entries) {
        let mut plan = Plan::new(ty, entries, index.is_instance_of::<PyDict>())?;
        if let Some(mask) = plan.read_masks(tensor)? {
            let mask = mask.tensor.ty().to_string();
            return Err(Misuse::MaskIndex { mask, got: ty.clone() }.into());
        }
        return ops::on(tensor, move |ops, x| {
            let window = steps::get(ops, x, &plan.steps)?;
            plan.get(ops, &window)
        });
    }
    let (steps, new_axes) = plan::basic(ty, &entries)?;
    if let Some((first, shape)) = steps::contiguous_window(ty, &steps, &new_axes)
        && let Some(part) = ops::view_fast_path(tensor, first, shape)?
    {
        return Ok(PyTensor::new(part));
    }
    ops::on(tensor, move |ops, x| {
        let window = steps::get(ops, x, &steps)?;
        if new_axes.is_empty() {
            return Ok(window);
        }
        let entries = window.ty().shape.entries().collect();
        ops.reshape_to(window, steps::with_new_axes(entries, &new_axes))
    })
}

/// The positions along the first axis that a tensor is, if it is the whole index.
fn only_positions(tensor: &Tensor, index: &Bound<'_, PyAny>) -> Option<Tensor> {
    let indices = &index.cast::<PyTensor>().ok()?.get().tensor;
    let has_axes = indices.ty().shape.rank() > 0 && tensor.ty().shape.rank() > 0;
    (has_axes && indices.ty().dtype.is_integer()).then(|| indices.clone())
}

/// Whether an entry is a tensor of positions or a mask.
fn has_advanced(entries: &Entries<'_>) -> bool {
    entries.iter().any(|entry| match entry {
        Entry::At(pick) => pick.is_advanced(),
        Entry::New | Entry::Rest => false,
    })
}

/// Adds the functions of `tensor.at`.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    update::add(module)
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
