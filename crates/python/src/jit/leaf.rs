//! The leaves of a call: their types, for keys and traces, and the tensors that a run takes.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use defn_core::backend::HostMemory;
use defn_core::scalar::Scalar;
use defn_core::tensor::Data;
use defn_core::vectorize::{NamedAxis, type_text};
use defn_core::weak::Weak;
use defn_core::{DType, ErrorKind, Number, Tensor, TensorType};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::array::{self, View};
use crate::backends;
use crate::build;
use crate::containers::{Leaves, Tree};
use crate::convert;
use crate::error::Fallible;
use crate::lazy;
use crate::misuse::Misuse;
use crate::pjrt;
use crate::shard::{PySharded, refuse};
use crate::tensor::PyTensor;

/// The types of leaves, encoded as words.
pub(super) type TypeWords = SmallVec<[u64; 32]>;

/// The type and the vectorized axes of the tensor that a leaf is or becomes, as a template.
pub(crate) fn model(op: &str, leaf: &Bound<'_, PyAny>) -> Fallible<Tensor> {
    if let Ok(tensor) = leaf.cast::<PyTensor>() {
        let tensor = &tensor.get().tensor;
        return Ok(Tensor::template(tensor.whole().clone()).with_vectorized(tensor.vectorized_axes()));
    }
    if let Some(leaf) = lazy::of(leaf) {
        return leaf.get().model(leaf.py());
    }
    match number_model(leaf)? {
        Some(model) => Ok(model),
        None => ty(op, leaf).map(Tensor::template),
    }
}

/// As [`model`], for a number that takes the dtype of its other operand.
pub(crate) fn number_model(leaf: &Bound<'_, PyAny>) -> Fallible<Option<Tensor>> {
    let template = |number: Number| Tensor::template(TensorType::scalar(number.dtype()));
    Ok(weak(leaf)?.map(|number| template(number).with_weak(Weak::argument())))
}

/// The number that a leaf is, if it takes the dtype of its other operand. A bool has a dtype of its own.
pub(crate) fn weak(leaf: &Bound<'_, PyAny>) -> Fallible<Option<Number>> {
    let number = convert::number(leaf)?;
    Ok(number.filter(|number| number.dtype() != DType::Bool))
}

/// The text of a type, where messages distinguish numbers from tensors.
pub(super) fn text(model: &Tensor) -> String {
    if model.is_weak() { format!("a number ({})", model.ty()) } else { type_text(model) }
}

/// As [`model`], for a tensor or an array that a function captured, and None for anything else. A number is not a
/// capture: it has a weak type, and a program that was traced with a tensor computes something else.
pub(super) fn captured_model(value: &Bound<'_, PyAny>) -> Fallible<Option<Tensor>> {
    if !value.is_instance_of::<PyTensor>() && convert::number(value)?.is_some() {
        return Ok(None);
    }
    // Every operation refuses a sharded tensor.
    if value.is_instance_of::<PySharded>() {
        return Ok(None);
    }
    model("jit", value).map(Some)
}

/// Whether two tensors have the same type and vectorized axes, and are both numbers or both no numbers.
pub(crate) fn same_model(a: &Tensor, b: &Tensor) -> bool {
    a.is_weak() == b.is_weak() && same_type(a, b)
}

/// Whether two tensors have the same type and vectorized axes.
pub(super) fn same_type(a: &Tensor, b: &Tensor) -> bool {
    a.ty() == b.ty() && a.vectorized_axes() == b.vectorized_axes()
}

/// The type of the tensor that a leaf is or becomes, without its vectorized axes.
pub(crate) fn ty(op: &str, leaf: &Bound<'_, PyAny>) -> Fallible<TensorType> {
    if let Ok(tensor) = leaf.cast::<PyTensor>() {
        return Ok(tensor.get().tensor.ty().clone());
    }
    if let Some(number) = convert::number(leaf)? {
        let dtype = number.dtype();
        build::check_range(number, dtype)?;
        return Ok(TensorType::scalar(dtype));
    }
    if let Ok(sharded) = leaf.cast::<PySharded>() {
        return Err(refuse(op, sharded.get()));
    }
    if let Some(leaf) = lazy::of(leaf) {
        return Ok(leaf.get().model(leaf.py())?.ty().clone());
    }
    if let Some(tensor) = convert::stand_in(leaf)? {
        return Ok(tensor.get().tensor.ty().clone());
    }
    match array::find(leaf)? {
        Some(array) => View::new(array)?.ty(),
        None => Err(not_a_leaf(op, leaf)?),
    }
}

/// Appends the type of a leaf to a key. Equal words mean equal types, except that names are only hashed.
pub(super) fn push_type_words(leaf: &Bound<'_, PyAny>, words: &mut impl Extend<u64>) -> Fallible<()> {
    if let Ok(tensor) = leaf.cast_exact::<PyTensor>() {
        let tensor = &tensor.get().tensor;
        push_type(tensor.ty(), tensor.vectorized_axes(), words);
        return Ok(());
    }
    if let Some(number) = weak(leaf)? {
        // The type of a tensor never has this bit.
        words.extend([1 << 63 | number.dtype() as u64]);
        return Ok(());
    }
    if let Some(leaf) = lazy::of(leaf) {
        let model = leaf.get().model(leaf.py())?;
        push_type(model.ty(), model.vectorized_axes(), words);
        return Ok(());
    }
    push_type(&ty("jit", leaf)?, &[], words);
    Ok(())
}

fn push_type(ty: &TensorType, lanes: &[NamedAxis], words: &mut impl Extend<u64>) {
    let named = ty.shape.has_names();
    let counts = (ty.shape.rank() as u64) << 8 | (lanes.len() as u64) << 33;
    words.extend([ty.dtype as u64 | counts | u64::from(named) << 32]);
    if !lanes.is_empty() {
        words.extend(lanes.iter().map(|&(_, size)| size as u64));
        let mut hasher = FxHasher::default();
        lanes.iter().for_each(|(name, _)| name.hash(&mut hasher));
        words.extend([hasher.finish()]);
    }
    words.extend(ty.shape.sizes().iter().map(|&size| size as u64));
    if named {
        let mut hasher = FxHasher::default();
        ty.shape.names().for_each(|name| name.hash(&mut hasher));
        words.extend([hasher.finish()]);
    }
}

/// The memory of arrays that a run borrows.
#[derive(Default)]
pub(crate) struct Borrowed {
    ranges: SmallVec<[(usize, usize); 4]>,
    /// Whether arrays are copied instead of borrowed.
    copies: bool,
}

impl Borrowed {
    /// Borrows nothing, for a receiver that may keep its tensors. Writable arrays are copied.
    pub(super) fn copying() -> Borrowed {
        Borrowed { copies: true, ..Borrowed::default() }
    }

    /// Borrows nothing from now on.
    pub(super) fn copy_from_now_on(&mut self) {
        self.copies = true;
    }

    /// The tensor that a run takes for a leaf. The memory of an array is borrowed where it can be read in place.
    pub(super) fn tensor(&mut self, leaf: &Bound<'_, PyAny>) -> Fallible<Tensor> {
        if let Ok(tensor) = leaf.cast_exact::<PyTensor>() {
            let tensor = &tensor.get().tensor;
            return match tensor.data() {
                Data::Buffer(_) => Ok(tensor.clone()),
                Data::Template => {
                    Err(Misuse::TemplateArgument { op: "jit", got: tensor.ty().clone() }.into())
                }
                Data::Traced { trace, .. } => Err(trace.not_open_error("jit", tensor.ty()).into()),
            };
        }
        if let Some(number) = convert::number(leaf)? {
            return build::scalar(number_scalar(number)?);
        }
        if let Some(leaf) = lazy::of(leaf) {
            return leaf.get().read(leaf.py());
        }
        match array::find(leaf)? {
            Some(array) => self.array(array),
            None => Err(not_a_leaf("jit", leaf)?),
        }
    }

    /// As [`Borrowed::tensor`], but a number takes the given dtype. `position` is the position of the leaf.
    pub(super) fn input(
        &mut self,
        leaf: &Bound<'_, PyAny>,
        position: usize,
        dtype: DType,
    ) -> Fallible<Tensor> {
        match weak(leaf)? {
            Some(number) => number_in("jit", position, dtype, number),
            None => self.tensor(leaf),
        }
    }

    fn array(&mut self, array: Bound<'_, PyUntypedArray>) -> Fallible<Tensor> {
        let view = View::new(array)?;
        if self.copies || view.obstacle().is_some() {
            return build::from_view(&view, None, &backends::default()?);
        }
        let memory = view.borrow()?;
        let start = memory.bytes().as_ptr() as usize;
        self.ranges.push((start, start + memory.bytes().len()));
        let ty = view.ty()?;
        let buffer = backends::default()?.from_host(&ty, memory)?;
        Ok(Tensor::concrete(ty, buffer))
    }

    /// Adds what another run borrows.
    pub(super) fn add(&mut self, other: &Borrowed) {
        self.ranges.extend_from_slice(&other.ranges);
    }

    /// Whether any memory is borrowed.
    pub(super) fn is_any(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Copies a result that is stored in borrowed memory, because the array may change after the call.
    pub(crate) fn own(&self, result: Tensor) -> Fallible<Tensor> {
        // Reading the memory of a device would wait for the device. The device has copied what it borrowed.
        if !self.is_any() || pjrt::of(&result).is_some() {
            return Ok(result);
        }
        let Some(buffer) = result.buffer() else {
            return Ok(result);
        };
        let Some(memory) = buffer.host()? else {
            return Ok(result);
        };
        let start = memory.bytes().as_ptr() as usize;
        let has_start = |&(from, to): &(usize, usize)| from <= start && start < to;
        if memory.bytes().is_empty() || !self.ranges.iter().any(has_start) {
            return Ok(result);
        }
        let bytes = HostMemory::new(Arc::new(memory.bytes().to_vec()));
        let buffer = buffer.backend().from_host(result.whole(), bytes)?;
        let owned = Tensor::concrete(result.whole().clone(), buffer);
        Ok(owned.with_vectorized(result.vectorized_axes()))
    }

    /// As [`Borrowed::own`], for values that are shown to a host function, which may keep them.
    pub(crate) fn own_all<'a>(&self, values: &'a [Tensor]) -> Fallible<Cow<'a, [Tensor]>> {
        if !self.is_any() {
            return Ok(Cow::Borrowed(values));
        }
        values.iter().map(|value| self.own(value.clone())).collect::<Fallible<Vec<_>>>().map(Cow::Owned)
    }
}

fn number_scalar(number: Number) -> Fallible<Scalar> {
    let dtype: DType = number.dtype();
    build::check_range(number, dtype)?;
    Ok(Scalar::new(dtype, number)?)
}

/// A tensor for an input of a type. A number takes the dtype of the input, where that dtype is of the number's kind.
pub(crate) fn input(
    op: &'static str,
    leaf: &Bound<'_, PyAny>,
    position: usize,
    ty: &TensorType,
) -> Fallible<Tensor> {
    match weak(leaf)? {
        Some(number) if ty.shape.rank() == 0 && ty.dtype.merge_weak(number) == ty.dtype => {
            number_in(op, position, ty.dtype, number)
        }
        Some(_) | None => convert::tensor(op, leaf),
    }
}

/// The number at the position of an argument, as a tensor of the dtype of its other operand.
///
/// # Errors
/// An integer that does not fit.
pub(super) fn number_in(op: &'static str, position: usize, dtype: DType, number: Number) -> Fallible<Tensor> {
    if dtype.lacks(number) {
        return Err(ErrorKind::ArgumentRange { op, argument: position.into(), number, dtype }.into());
    }
    build::scalar(Scalar::new(dtype, number)?)
}

fn not_a_leaf(op: &str, leaf: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
    let got = leaf.get_type().name()?.to_string();
    let path = "a value".to_owned();
    Ok(Misuse::NotAContainer { op: op.to_owned(), path, got }.into())
}

/// The tensors that the leaves are, if all leaves are tensors with elements.
pub(super) fn concrete_tensors<'a>(leaves: &'a Leaves<'_>) -> Option<SmallVec<[&'a Tensor; 8]>> {
    leaves.iter().map(|leaf| concrete_tensor(leaf.as_borrowed())).collect()
}

/// The tensor that a leaf is, if it is a tensor with elements.
pub(super) fn concrete_tensor<'a>(leaf: pyo3::Borrowed<'a, '_, PyAny>) -> Option<&'a Tensor> {
    let tensor = &leaf.cast_exact::<PyTensor>().ok()?.get().tensor;
    match tensor.data() {
        Data::Buffer(_) => Some(tensor),
        Data::Traced { .. } | Data::Template => None,
    }
}

/// Tensors as Python objects.
pub(crate) fn wrap<'py>(py: Python<'py>, tensors: impl Iterator<Item = Tensor>) -> PyResult<Leaves<'py>> {
    tensors.map(|tensor| Ok(Bound::new(py, PyTensor::new(tensor))?.into_any())).collect()
}

/// Whether two traced tensors are the same value with the same type.
pub(super) fn is_same_value(a: &Tensor, b: &Tensor) -> bool {
    if !same_model(a, b) {
        return false;
    }
    match (a.data(), b.data()) {
        (Data::Traced { trace: left, value: x }, Data::Traced { trace: right, value: y }) => {
            Arc::ptr_eq(left, right) && x == y
        }
        (Data::Buffer(_) | Data::Template | Data::Traced { .. }, _) => false,
    }
}

/// The positional arguments and keywords of a call, from its leaves.
pub(crate) fn arguments<'py>(
    py: Python<'py>,
    tree: &Tree,
    leaves: impl Iterator<Item = Bound<'py, PyAny>>,
) -> Fallible<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let mut leaves = leaves;
    let (args, kwargs) = tree.unflatten_pair(py, &mut leaves)?;
    Ok((
        args.cast_into::<PyTuple>().map_err(PyErr::from)?,
        kwargs.cast_into::<PyDict>().map_err(PyErr::from)?,
    ))
}
