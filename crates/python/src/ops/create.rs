//! Tensors out of nothing.

use std::sync::Arc;

use defn_core::backend::{Backend, HostMemory};
use defn_core::builder::{Arg, BuildCreate};
use defn_core::scalar::wrap;
use defn_core::{AxisRef, DType, Name, Shape, Tensor, TensorType, vectorize};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::functions;
use super::parse::Names;
use super::vectorize::WantedLanes;
use crate::build;
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, guard};
use crate::misuse::Misuse;
use crate::place;
use crate::tensor::PyTensor;

/// A `backend=` option.
struct Place(Arc<dyn Backend>);

impl super::Parse for Place {
    fn parse(_: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        place::parse(value).map(Place)
    }
}

fn named(shape: Shape, names: Names) -> defn_core::Result<Shape> {
    match names {
        Some(names) => shape.with_names(names),
        None => Ok(shape),
    }
}

functions! {
    iota(shape: Shape, axis: Option<AxisRef> = None, dtype: Option<DType> = None, names: Names = None,
         backend: Place = None, vectorized_axes: WantedLanes = None) => |ops| {
        ops.backend = backend.0;
        let counted = ops.iota(named(shape, names)?, dtype.unwrap_or(DType::S32), axis)?;
        vectorize::spread_over(ops, "iota", &counted, &vectorized_axes.0)
    };
    eye(shape: Square, dtype: Option<DType> = None, names: Names = None, backend: Place = None,
        vectorized_axes: WantedLanes = None) => |ops| {
        ops.backend = backend.0;
        vectorize::eye(ops, named(shape.0, names)?, dtype.unwrap_or(DType::S32), &vectorized_axes.0)
    };
    tri(rows: usize, columns: usize, k: i64) => |ops| ops.tri(rows, columns, k);
    tril(tensor: Arg<Tensor>, k: i64) => |ops| ops.tril(tensor, k);
    triu(tensor: Arg<Tensor>, k: i64) => |ops| ops.triu(tensor, k);
    fill(tensor: Arg<Tensor>, value: Arg<Tensor>, dtype: Option<DType> = None)
        => |ops| ops.fill(tensor, value, dtype);
    linspace(start: Arg<Tensor>, stop: Arg<Tensor>, n: i64, name: Option<Name> = None,
             dtype: Option<DType> = None, endpoint: bool = None)
        => |ops| ops.linspace(start, stop, n, name, dtype.unwrap_or(DType::F32), endpoint);
    make_diagonal(tensor: Arg<Tensor>, offset: i64) => |ops| ops.make_diagonal(tensor, offset);
    take_diagonal(tensor: Arg<Tensor>, offset: i64) => |ops| ops.take_diagonal(tensor, offset);
    put_diagonal(tensor: Arg<Tensor>, diagonal: Arg<Tensor>, offset: i64)
        => |ops| ops.put_diagonal(tensor, diagonal, offset);
}

/// A shape in which a single int is the side of a square.
struct Square(Shape);

impl super::Parse for Square {
    fn parse(op: &'static str, what: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        let shape: Shape = super::Parse::parse(op, what, value)?;
        let is_side = value.is_some_and(|value| convert::index(value).is_some());
        Ok(Square(if is_side { Shape::new(&[shape.sizes()[0]; 2]) } else { shape }))
    }
}

/// A tensor of a number, a nested list, an array, or a tensor.
#[pyfunction]
#[pyo3(signature = (value, dtype = None, names = None, backend = None, copy = None))]
fn tensor(
    value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    names: Option<&Bound<'_, PyAny>>,
    backend: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> Fallible<PyTensor> {
    guard(|| build::tensor(value, dtype.map(dtype::parse).transpose()?, names, backend, copy))
}

/// An operand as a tensor.
#[pyfunction]
fn to_tensor(value: &Bound<'_, PyAny>) -> Fallible<PyTensor> {
    guard(|| convert::tensor("to_tensor", value).map(PyTensor::new))
}

/// A type to be expected later.
#[pyfunction]
#[pyo3(signature = (shape, dtype, names = None))]
fn template(
    shape: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    names: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    guard(|| {
        let shape = convert::named(convert::shape("template", shape)?, "template", names)?;
        Ok(PyTensor::new(Tensor::template(TensorType::new(dtype::parse(dtype)?, shape)?)))
    })
}

/// A vector of the elements that bytes hold; 2- and 4-bit elements are packed, the first one highest.
#[pyfunction]
#[pyo3(signature = (data, dtype, backend = None))]
fn from_binary(
    data: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    backend: Option<&Bound<'_, PyAny>>,
) -> Fallible<PyTensor> {
    guard(|| {
        let dtype = dtype::parse(dtype)?;
        let backend = place::parse(backend)?;
        let bytes: Vec<u8> = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes().to_vec(),
            Err(_) => pyo3::buffer::PyBuffer::<u8>::get(data)?.to_vec(data.py())?,
        };
        let bytes = if dtype.bits() < 8 { unpack(dtype, &bytes) } else { bytes };
        if bytes.is_empty() || bytes.len() % dtype.storage_bytes() != 0 {
            return Err(Misuse::BinaryLength { given: bytes.len(), dtype }.into());
        }
        let count = bytes.len() / dtype.storage_bytes();
        let ty = TensorType::new(dtype, Shape::new(&[count]))?;
        Ok(PyTensor::new(build::place(&backend, ty, bytes)?))
    })
}

/// The bytes of the elements in row-major order, at most `limit` of them.
#[pyfunction]
#[pyo3(signature = (tensor, limit = None))]
fn to_binary<'py>(tensor: &Bound<'py, PyTensor>, limit: Option<usize>) -> Fallible<Bound<'py, PyBytes>> {
    guard(|| {
        let inner = &tensor.get().tensor;
        let memory: HostMemory = inner.host_bytes("to_binary")?;
        let dtype = inner.ty().dtype;
        let count = limit.unwrap_or(usize::MAX).min(inner.whole().size());
        let bytes = &memory.bytes()[..count * dtype.storage_bytes()];
        Ok(if dtype.bits() < 8 {
            PyBytes::new(tensor.py(), &pack(dtype, bytes))
        } else {
            PyBytes::new(tensor.py(), bytes)
        })
    })
}

/// Elements of a byte each as 2- or 4-bit ones, the first one highest.
pub(crate) fn pack(dtype: DType, elements: &[u8]) -> Vec<u8> {
    let per_byte = 8 / dtype.bits();
    let mask = (1u8 << dtype.bits()) - 1;
    elements
        .chunks(per_byte)
        .map(|chunk| {
            let shifts = (0..per_byte).map(|at| 8 - dtype.bits() * (at + 1));
            chunk.iter().zip(shifts).fold(0, |byte, (element, shift)| byte | ((element & mask) << shift))
        })
        .collect()
}

/// Elements of 2 or 4 bits as bytes of their values.
pub(crate) fn unpack(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let per_byte = 8 / dtype.bits();
    bytes
        .iter()
        .flat_map(|byte| {
            (0..per_byte).map(move |at| wrap(dtype, i128::from(byte >> (8 - dtype.bits() * (at + 1)))) as u8)
        })
        .collect()
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(tensor, module)?)?;
    module.add_function(wrap_pyfunction!(to_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(template, module)?)?;
    module.add_function(wrap_pyfunction!(from_binary, module)?)?;
    module.add_function(wrap_pyfunction!(to_binary, module)?)
}
