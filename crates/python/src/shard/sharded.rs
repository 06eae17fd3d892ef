//! Sharded tensors, stored in blocks on the devices of a mesh.

use std::sync::Arc;

use defn_core::builder::{BuildShape, Ops, Source};
use defn_core::mesh::{MeshError, Spec};
use defn_core::{Error, Result, Tensor, TensorType};
use defn_pjrt::MeshBackend;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::PyMesh;
use super::spec;
use crate::backends;
use crate::error::{Fallible, Fault, guard};
use crate::gil;
use crate::location;
use crate::pjrt;
use crate::tensor::PyTensor;

/// A tensor in blocks, one on each device of a mesh.
#[pyclass(frozen, weakref, name = "Sharded", module = "defn")]
pub(crate) struct PySharded {
    /// The blocks, as one tensor on the mesh backend.
    pub(super) block: Tensor,
    pub(super) backend: Arc<MeshBackend>,
    pub(super) spec: Spec,
    /// The type of the whole tensor.
    pub(super) ty: TensorType,
}

/// The error of functions that do not take sharded tensors: only sharded functions do.
#[cold]
pub(crate) fn refuse(op: &str, sharded: &PySharded) -> Fault {
    Error::from(MeshError::Blocks { op: op.to_owned(), got: sharded.ty.clone() }).into()
}

impl PySharded {
    /// The whole tensor, gathered on the host.
    pub(super) fn whole(&self, py: Python<'_>) -> Fallible<Tensor> {
        let gather = || -> Result<Tensor> {
            let host = backends::host();
            let mut ops = Ops::new(host.clone(), Source::Lookup(location::ask));
            let blocks = MeshBackend::blocks(&self.block)?;
            let bring = |devices: &[usize]| {
                self.backend.shared_block("to_tensor", &blocks, devices)?.copy_to("to_tensor", &host)
            };
            let whole = self.spec.join(&mut ops, self.backend.mesh(), bring)?;
            ops.reshape_to(whole, self.ty.shape.clone())
        };
        Ok(gil::detach(py, gather)?)
    }

    /// A template of the whole tensor's type, for queries of the type.
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, PyTensor::new(Tensor::template(self.ty.clone())))?.into_any())
    }

    fn refused(&self, op: &str) -> Fallible<Py<PyAny>> {
        Err(refuse(op, self))
    }
}

#[pymethods]
impl PySharded {
    /// The sizes of the whole tensor.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.model(py)?.getattr(intern!(py, "shape"))
    }

    /// The element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.model(py)?.getattr(intern!(py, "dtype"))
    }

    /// The names of the axes.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.model(py)?.getattr(intern!(py, "names"))
    }

    /// The number of axes.
    #[getter]
    fn rank(&self) -> usize {
        self.ty.shape.rank()
    }

    /// The mesh on which the blocks are stored.
    #[getter]
    fn mesh(&self) -> PyMesh {
        PyMesh { backend: self.backend.clone() }
    }

    /// For each axis, the axes of the mesh over which it is sharded.
    #[getter]
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        spec::object(py, &self.spec)
    }

    /// The block of each device of this process, on that device.
    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyTuple>> {
        guard(|| {
            let blocks = MeshBackend::blocks(&self.block)?;
            Ok(PyTuple::new(py, blocks.into_iter().map(PyTensor::new))?)
        })
    }

    /// The whole tensor on the host.
    fn to_tensor(&self, py: Python<'_>) -> Fallible<PyTensor> {
        guard(|| Ok(PyTensor::new(self.whole(py)?)))
    }

    /// The whole tensor as a NumPy array.
    fn to_numpy<'py>(&self, py: Python<'py>) -> Fallible<Bound<'py, PyAny>> {
        let whole = Bound::new(py, self.to_tensor(py)?)?;
        Ok(whole.call_method0(intern!(py, "to_numpy"))?)
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let options = PyDict::new(py);
        options.set_item("dtype", dtype)?;
        options.set_item("copy", copy)?;
        let whole = Bound::new(py, self.to_tensor(py)?)?;
        Ok(whole.call_method(intern!(py, "__array__"), (), Some(&options))?)
    }

    /// Waits until every block is computed.
    fn block_until_ready(slf: Bound<'_, Self>) -> Fallible<Bound<'_, Self>> {
        guard(|| {
            for block in MeshBackend::blocks(&slf.get().block)? {
                pjrt::wait(slf.py(), &block)?;
            }
            Ok(slf)
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mesh = Bound::new(py, self.mesh())?;
        Ok(format!("Sharded({}, spec={}, mesh={})", self.ty, self.spec(py)?.repr()?, mesh.repr()?))
    }

    // Operators. Each raises an error that names its function.

    fn __add__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("add")
    }

    fn __radd__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("add")
    }

    fn __sub__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("subtract")
    }

    fn __rsub__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("subtract")
    }

    fn __mul__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("multiply")
    }

    fn __rmul__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("multiply")
    }

    fn __truediv__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("divide")
    }

    fn __rtruediv__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("divide")
    }

    fn __matmul__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("dot")
    }

    fn __rmatmul__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("dot")
    }

    fn __getitem__(&self, _other: &Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
        self.refused("index")
    }
}
