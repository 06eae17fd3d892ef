//! Tensors from Python values: numbers, nested lists, arrays.

use std::sync::Arc;

use defn_core::backend::{Backend, HostMemory};
use defn_core::builder::BuildElementwise;
use defn_core::scalar::Scalar;
use defn_core::{DType, ErrorKind, Kind, Number, Shape, Tensor, TensorType};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array::{self, View};
use crate::backends;
use crate::convert;
use crate::dlpack;
use crate::error::Fallible;
use crate::misuse::Misuse;
use crate::ops;
use crate::tensor::PyTensor;
use crate::trace_allocations;

/// Lists nested deeper than this are refused. NumPy arrays have the same limit of 64 axes.
const DEPTH_LIMIT: usize = 64;

/// Implements `dn.tensor`.
pub(crate) fn tensor(
    value: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    names: Option<&Bound<'_, PyAny>>,
    backend: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> Fallible<PyTensor> {
    let requested = backend.filter(|backend| !backend.is_none());
    let backend = backends::parse(requested)?;
    if let Ok(tensor) = value.cast::<PyTensor>() {
        let tensor = &tensor.get().tensor;
        if let Some(there) =
            tensor.backend().filter(|there| requested.is_some() && !there.is_same_device(&*backend))
        {
            let (got, device, requested) = (tensor.ty().clone(), there.device_name(), backend.device_name());
            return Err(Misuse::TensorBackend { got, device, requested }.into());
        }
        return from_tensor(tensor, dtype, names);
    }
    if let Some(tensor) = convert::stand_in(value)? {
        return self::tensor(&tensor, dtype, names, requested, copy);
    }
    let number = convert::element(value)?;
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if copy == Some(false) && (number.is_some() || is_list) {
        let why = "numbers and lists have no memory to share".to_owned();
        return Err(Misuse::MustCopy { why }.into());
    }
    let tensor = if let Some(number) = number {
        let natural = number.dtype();
        if dtype.is_none() {
            check_range(number, natural)?;
        }
        let scalar = Scalar::new(dtype.unwrap_or(natural), number)?;
        upload(&backend, TensorType::scalar(scalar.dtype()), scalar.to_bytes())?
    } else if is_list {
        from_list(value, dtype, &backend)?
    } else if let Some(tensor) = from_array(value, copy, &backend)? {
        match dtype {
            Some(dtype) if dtype != tensor.ty().dtype && copy == Some(false) => {
                let why = format!("elements of {} have to be converted to {dtype}", tensor.ty().dtype);
                return Err(Misuse::MustCopy { why }.into());
            }
            Some(dtype) if dtype != tensor.ty().dtype => converted(tensor, dtype)?,
            Some(_) | None => tensor,
        }
    } else {
        let got = value.get_type().name()?.to_string();
        return Err(Misuse::NotANumber { path: "the value".to_owned(), got }.into());
    };
    let shape = convert::named(tensor.ty().shape.clone(), "tensor", names)?;
    let ty = TensorType { dtype: tensor.ty().dtype, shape };
    Ok(PyTensor::new(retyped(tensor, ty)?))
}

/// A tensor from an array of NumPy or of another library; `None` for any other object.
pub(crate) fn from_array(
    value: &Bound<'_, PyAny>,
    copy: Option<bool>,
    backend: &Arc<dyn Backend>,
) -> Fallible<Option<Tensor>> {
    if value.is_instance_of::<PyString>() {
        return Ok(None);
    }
    // A NumPy array gives more information than a DLPack capsule: its byte order, and whether its memory is
    // writeable.
    let is_numpys = array::is_array(value) || array::is_scalar(value);
    if !is_numpys && dlpack::is_offered(value)? {
        require_shared_memory(copy, backend)?;
        if let Some((ty, memory)) = dlpack::take(value, copy)? {
            let buffer = backend.from_host(&ty, memory)?;
            return Ok(Some(trace_allocations::note(Tensor::concrete(ty, buffer))));
        }
    }
    match array::find(value)? {
        Some(array) => from_view(&View::new(array)?, copy, backend).map(Some),
        None => Ok(None),
    }
}

/// A tensor from a tensor: its axis names are dropped, and the given names must merge with them.
fn from_tensor(
    tensor: &Tensor,
    dtype: Option<DType>,
    names: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    if let (Some(dtype), Some(number)) = (dtype, tensor.weakness())
        && (dtype.is_bool() || dtype.merge_weak(number) == dtype)
    {
        // A weak tensor is converted as a plain number would be.
        return ops::on(tensor, |ops, x| ops.as_type(x, dtype));
    }
    let (tensor, got) = (tensor.clone().strong(), tensor.ty());
    if let Some(dtype) = dtype.filter(|dtype| *dtype != got.dtype) {
        return Err(Misuse::TensorDType { got: got.clone(), dtype }.into());
    }
    let shape = convert::named(got.shape.without_names(), "tensor", names)?;
    // Broadcasting a shape with itself merges its names, or reports which ones differ.
    shape.broadcast_with("tensor", &got.shape)?;
    retyped(tensor, TensorType { dtype: got.dtype, shape }).map(PyTensor::new)
}

/// The same elements under another type of the same size.
fn retyped(tensor: Tensor, ty: TensorType) -> Fallible<Tensor> {
    if *tensor.ty() == ty {
        return Ok(tensor);
    }
    match tensor.buffer() {
        Some(buffer) if !tensor.is_vectorized() => Ok(Tensor::concrete(ty, buffer.clone())),
        Some(_) | None => ops::with(|ops| {
            defn_core::builder::Builder::emit_one(
                ops,
                defn_core::op::Op::Reshape { shape: ty.shape.clone() },
                &[tensor],
            )
        }),
    }
}

/// Refuses an integer that the dtype cannot represent, unless the user requested the dtype.
pub(crate) fn check_range(number: Number, dtype: DType) -> Fallible<()> {
    if dtype.lacks(number) {
        return Err(ErrorKind::IntegerRange { number, dtype }.into());
    }
    Ok(())
}

/// A scalar on the default backend.
pub(crate) fn scalar(scalar: Scalar) -> Fallible<Tensor> {
    upload(&backends::default()?, TensorType::scalar(scalar.dtype()), scalar.to_bytes())
}

/// A tensor with these bytes as elements.
pub(crate) fn upload(backend: &Arc<dyn Backend>, ty: TensorType, bytes: Vec<u8>) -> Fallible<Tensor> {
    let buffer = backend.from_host(&ty, HostMemory::new(Arc::new(bytes)))?;
    Ok(trace_allocations::note(Tensor::concrete(ty, buffer)))
}

/// A tensor with an array's elements. They are copied unless the array is immutable or `copy` is false.
pub(crate) fn from_view(view: &View<'_>, copy: Option<bool>, backend: &Arc<dyn Backend>) -> Fallible<Tensor> {
    require_shared_memory(copy, backend)?;
    let obstacle = view.obstacle();
    if let (Some(false), Some(why)) = (copy, obstacle) {
        return Err(Misuse::MustCopy { why: why.to_owned() }.into());
    }
    let alias = match copy {
        Some(copy) => !copy,
        None => obstacle.is_none() && view.is_immutable(),
    };
    let tensor = match obstacle {
        None if alias => borrow_array(view, backend)?,
        None => {
            let ty = view.ty()?;
            let buffer = backend.from_host_copy(&ty, view.borrow()?.bytes())?;
            Tensor::concrete(ty, buffer)
        }
        Some(_) => upload(backend, view.ty()?, view.copy()?)?,
    };
    Ok(trace_allocations::note_array(tensor, view.array()))
}

/// Refuses `copy=False` on a backend with its own memory.
fn require_shared_memory(copy: Option<bool>, backend: &Arc<dyn Backend>) -> Fallible<()> {
    if copy == Some(false) && backend.name() != "cpu" {
        let why = format!("the elements of a tensor on {} are copied to there", backend.device_name());
        return Err(Misuse::MustCopy { why }.into());
    }
    Ok(())
}

/// A tensor that borrows an array's memory.
fn borrow_array(view: &View<'_>, backend: &Arc<dyn Backend>) -> Fallible<Tensor> {
    let ty = view.ty()?;
    let buffer = backend.from_host(&ty, view.borrow()?)?;
    Ok(Tensor::concrete(ty, buffer))
}

/// An array's elements converted to another dtype, unless that would drop a fraction or an imaginary part.
fn converted(tensor: Tensor, dtype: DType) -> Fallible<Tensor> {
    let from = tensor.ty().dtype.kind();
    let loses = match dtype.kind() {
        Kind::Unsigned | Kind::Signed => matches!(from, Kind::Float | Kind::Complex),
        Kind::Float => from == Kind::Complex,
        // Every number converts to bool (nonzero is true), as in NumPy.
        Kind::Bool | Kind::Complex => false,
    };
    if loses {
        return Err(Misuse::TensorDType { got: tensor.ty().clone(), dtype }.into());
    }
    ops::with(|ops| ops.as_type(tensor, dtype))
}

/// The leaves of a nested list, in order.
struct Leaves {
    shape: Vec<usize>,
    numbers: Vec<Number>,
    dtype: Option<DType>,
    path: Vec<usize>,
}

/// A snapshot of the items of a list or a tuple: converting a leaf may run code that changes a list. The
/// stored items are read, not the results of overridden `__len__` or `__getitem__`, so that every read sees
/// the same items.
fn entries<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = value.cast::<PyList>() {
        return Some(list.iter().collect());
    }
    value.cast::<PyTuple>().ok().map(|tuple| tuple.iter().collect())
}

fn from_list(value: &Bound<'_, PyAny>, dtype: Option<DType>, backend: &Arc<dyn Backend>) -> Fallible<Tensor> {
    let mut leaves = Leaves { shape: Vec::new(), numbers: Vec::new(), dtype: None, path: Vec::new() };
    let mut first = value.clone();
    while let Some(entries) = entries(&first) {
        leaves.shape.push(entries.len());
        if leaves.shape.len() > DEPTH_LIMIT {
            break;
        }
        match entries.into_iter().next() {
            Some(entry) => first = entry,
            None => break,
        }
    }
    if leaves.shape.len() > DEPTH_LIMIT {
        return Err(Misuse::TooDeep { op: "tensor", limit: DEPTH_LIMIT }.into());
    }
    leaves.collect(value)?;
    let natural = match (dtype, leaves.dtype) {
        (Some(dtype), _) | (None, Some(dtype)) => dtype,
        (None, None) => return Err(Misuse::EmptyList.into()),
    };
    let ty = TensorType::new(natural, Shape::new(&leaves.shape))?;
    let mut bytes = Vec::with_capacity(ty.byte_size());
    for &number in &leaves.numbers {
        if dtype.is_none() {
            check_range(number, natural)?;
        }
        push(natural, number, &mut bytes)?;
    }
    upload(backend, ty, bytes)
}

/// Appends one element. Common types do not go through a `Scalar`.
fn push(dtype: DType, number: Number, bytes: &mut Vec<u8>) -> Fallible<()> {
    match (dtype, number) {
        (DType::F32, Number::Float(value)) => bytes.extend_from_slice(&(value as f32).to_ne_bytes()),
        (DType::F64, Number::Float(value)) => bytes.extend_from_slice(&value.to_ne_bytes()),
        (DType::S32, Number::Int(value)) => bytes.extend_from_slice(&(value as i32).to_ne_bytes()),
        (DType::S64, Number::Int(value)) => bytes.extend_from_slice(&(value as i64).to_ne_bytes()),
        (dtype, number) => bytes.extend_from_slice(&Scalar::new(dtype, number)?.to_bytes()),
    }
    Ok(())
}

impl Leaves {
    fn collect(&mut self, value: &Bound<'_, PyAny>) -> Fallible<()> {
        let depth = self.path.len();
        let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
        if is_list != (depth < self.shape.len()) {
            return Err(self.ragged(if is_list { "is a list" } else { "is a number" }, value)?);
        }
        if !is_list {
            return self.leaf(value);
        }
        let entries = entries(value).unwrap_or_default();
        if entries.len() != self.shape[depth] {
            return Err(self.ragged(&format!("has length {}", entries.len()), value)?);
        }
        for (position, entry) in entries.iter().enumerate() {
            self.path.push(position);
            self.collect(entry)?;
            self.path.pop();
        }
        Ok(())
    }

    fn leaf(&mut self, value: &Bound<'_, PyAny>) -> Fallible<()> {
        let (number, dtype) = match convert::element(value)? {
            Some(number) => (number, number.dtype()),
            None if value.is_instance_of::<PyTensor>() => {
                return Err(Misuse::TensorInside { path: self.path() }.into());
            }
            None if array::is_scalar(value) => {
                let found = array::find(value)?;
                let Some(view) = found.map(View::new).transpose()? else {
                    return Err(self.not_a_number(value)?);
                };
                let dtype = view.ty()?.dtype;
                (Scalar::from_bytes(dtype, &view.copy()?).value(), dtype)
            }
            None => return Err(self.not_a_number(value)?),
        };
        self.dtype = Some(self.dtype.map_or(dtype, |merged| merged.merge(dtype)));
        self.numbers.push(number);
        Ok(())
    }

    fn not_a_number(&self, value: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
        let got = value.get_type().name()?.to_string();
        Ok(Misuse::NotANumber { path: self.path(), got }.into())
    }

    /// The path of the current leaf, such as `[1][0]`.
    fn path(&self) -> String {
        if self.path.is_empty() { "the value".to_owned() } else { path_text(&self.path) }
    }

    fn ragged(&self, got: &str, value: &Bound<'_, PyAny>) -> Fallible<crate::error::Fault> {
        let depth = self.path.len();
        if value.is_instance_of::<PyTensor>() {
            return Ok(Misuse::TensorInside { path: self.path() }.into());
        }
        let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
        if !is_list && convert::number(value)?.is_none() {
            return self.not_a_number(value);
        }
        let expected = match self.shape.get(depth) {
            Some(size) => format!("has length {size}"),
            None => "is a number".to_owned(),
        };
        let first = path_text(&vec![0; depth]);
        Ok(Misuse::Ragged { path: self.path(), got: got.to_owned(), first, expected }.into())
    }
}

fn path_text(path: &[usize]) -> String {
    path.iter().map(|position| format!("[{position}]")).collect()
}
