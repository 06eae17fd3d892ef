//! Masks in an index: the elements at which a bool tensor is true, as in NumPy. Their number depends on values,
//! so a mask becomes positions only if its values are known.

use defn_core::{DType, ErrorKind, Shape, Tensor, TensorType, trace, vectorize};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};

use crate::array;
use crate::backends;
use crate::build;
use crate::error::Fallible;

/// A mask, which stands for as many axes as it has.
pub(super) struct Mask {
    pub(super) tensor: Tensor,
    /// Whether it is a list or an array, whose values are known while a definition is traced.
    pub(super) is_known: bool,
}

/// The mask that a list or an array of bools is.
pub(super) fn listed(item: &Bound<'_, PyAny>) -> Fallible<Option<Mask>> {
    let tensor = if let Ok(list) = item.cast::<PyList>() {
        let is_mask = holds(list, &|entry| entry.is_instance_of::<PyBool>());
        if is_mask { Some(build::tensor(item, None, None, None, None)?.tensor) } else { None }
    } else if array::is_array(item) {
        let kind: String =
            item.getattr(intern!(item.py(), "dtype"))?.getattr(intern!(item.py(), "kind"))?.extract()?;
        if kind == "b" { build::from_array(item, None, &backends::host())? } else { None }
    } else {
        None
    };
    let tensor = tensor.filter(|tensor| tensor.ty().shape.rank() > 0);
    Ok(tensor.map(|tensor| Mask { tensor, is_known: true }))
}

/// The maximum nesting depth of lists.
const DEEPEST: usize = 64;

/// Whether a list holds only such entries, or such lists, and at least one.
pub(super) fn holds(list: &Bound<'_, PyList>, is_entry: &dyn Fn(&Bound<'_, PyAny>) -> bool) -> bool {
    fn search(list: &Bound<'_, PyList>, is_entry: &dyn Fn(&Bound<'_, PyAny>) -> bool, depth: usize) -> bool {
        let holds = |item: &Bound<'_, PyAny>| match item.cast::<PyList>() {
            Ok(inner) => depth > 0 && search(inner, is_entry, depth - 1),
            Err(_) => is_entry(item),
        };
        !list.is_empty() && list.iter().all(|item| holds(&item))
    }
    search(list, is_entry, DEEPEST)
}

impl Mask {
    /// Whether the elements of `tensor` at which the mask is true can be counted now.
    pub(super) fn is_readable(&self, tensor: &Tensor) -> bool {
        self.tensor.buffer().is_some() && (self.is_known || trace::depth() == 0 && tensor.buffer().is_some())
    }

    /// The flat row-major positions at which the mask is true, on the tensor's backend.
    pub(super) fn positions(&self, tensor: &Tensor) -> Fallible<Tensor> {
        if self.tensor.is_vectorized() {
            let axes = vectorize::vectorized_axes_text(self.tensor.vectorized_axes());
            return Err(ErrorKind::NotVectorizable { op: "index", what: "the mask", axes }.into());
        }
        let memory = self.tensor.host_bytes("index")?;
        let truths = memory.bytes();
        let count = truths.iter().filter(|&&truth| truth != 0).count();
        let ty = TensorType::new(DType::S64, Shape::new(&[count]))?;
        let mut bytes = defn_core::memory::with_capacity("index", ty.byte_size())?;
        for (position, _) in truths.iter().enumerate().filter(|&(_, &truth)| truth != 0) {
            bytes.extend_from_slice(&(position as i64).to_ne_bytes());
        }
        let backend = tensor.backend().map_or_else(backends::default, Ok)?;
        build::upload(&backend, ty, bytes)
    }
}
