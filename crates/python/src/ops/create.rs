//! Tensor creation.

use std::sync::Arc;

use defn_core::backend::Backend;
use defn_core::builder::{Arg, BuildCreate, Ops};
use defn_core::{AxisRef, DType, Name, Shape, Tensor, TensorType, vectorize};
use pyo3::prelude::*;

use super::functions;
use super::parse::Names;
use super::vectorize::WantedLanes;
use crate::backends;
use crate::build;
use crate::convert;
use crate::dtype;
use crate::error::{Fallible, guard};
use crate::tensor::PyTensor;

/// The backend of a `backend=` option, or the default backend.
struct CreationBackend(Arc<dyn Backend>);

impl CreationBackend {
    /// Makes it the backend of created tensors. While tracing, the backend is chosen for the whole program.
    fn set(self, ops: &mut Ops) {
        ops.backend = self.0;
    }
}

impl super::Parse for CreationBackend {
    fn parse(_: &'static str, _: &'static str, value: Option<&Bound<'_, PyAny>>) -> Fallible<Self> {
        backends::parse(value).map(CreationBackend)
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
         vectorized_axes: WantedLanes = None, backend: CreationBackend = None) => |ops| {
        backend.set(ops);
        let counted = ops.iota(named(shape, names)?, dtype.unwrap_or(DType::S32), axis)?;
        vectorize::broadcast_vectorized(ops, "iota", &counted, &vectorized_axes.0)
    };
    eye(shape: Square, offset: i64, dtype: Option<DType> = None, names: Names = None,
        vectorized_axes: WantedLanes = None, backend: CreationBackend = None) => |ops| {
        backend.set(ops);
        let dtype = dtype.unwrap_or(DType::S32);
        vectorize::eye(ops, named(shape.0, names)?, dtype, offset, &vectorized_axes.0)
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
        let is_side = value.map(convert::index).transpose()?.flatten().is_some();
        Ok(Square(if is_side { Shape::new(&[shape.sizes()[0]; 2]) } else { shape }))
    }
}

/// A tensor from a number, a nested list, an array, or a tensor.
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

/// A template: the type of a later tensor.
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

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_declared(module)?;
    module.add_function(wrap_pyfunction!(tensor, module)?)?;
    module.add_function(wrap_pyfunction!(to_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(template, module)?)
}
