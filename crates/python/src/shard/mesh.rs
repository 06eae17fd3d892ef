//! Meshes as Python objects.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use defn_core::Name;
use defn_core::backend::Backend;
use defn_core::mesh::{Mesh, MeshError};
use defn_pjrt::{MeshBackend, PjrtBackend};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rustc_hash::FxHasher;

use crate::backends;
use crate::convert;
use crate::error::{Fallible, guard, if_fits};
use crate::misuse::Misuse;
use crate::pjrt;

/// Devices of one client in a grid with named axes.
#[pyclass(frozen, weakref, name = "Mesh", module = "defn")]
pub(crate) struct PyMesh {
    pub(crate) backend: Arc<MeshBackend>,
}

/// The compiler for a mesh, as it is passed to the definition of a sharded function. Users cannot pass it as
/// a compiler.
#[pyclass(frozen, module = "defn._core")]
pub(crate) struct MeshCompilerHandle(pub(crate) Py<PyMesh>);

/// The axes in a dict from names to sizes.
fn axes(value: &Bound<'_, PyAny>) -> Fallible<Vec<(Name, usize)>> {
    let required = "a dict from the names of axes to how many devices are along each";
    let Ok(dict) = value.cast::<PyDict>() else {
        return Err(convert::bad("mesh", "axes", value, required)?);
    };
    let mut axes = Vec::with_capacity(dict.len());
    for (name, size) in dict.iter() {
        let Ok(name) = name.cast::<PyString>() else {
            return Err(convert::bad("mesh", "axes", value, required)?);
        };
        match convert::index(&size)?.map(usize::try_from) {
            Some(Ok(size)) => axes.push((Name::from(name.to_str()?), size)),
            Some(Err(_)) | None => return Err(convert::bad("mesh", "axes", value, required)?),
        }
    }
    Ok(axes)
}

/// A device: a backend object, an entry of `dn.devices()`, or an index in a client.
fn device(value: &Bound<'_, PyAny>, client: Option<&str>) -> Fallible<Arc<PjrtBackend>> {
    let py = value.py();
    if let Some(id) = convert::index(value)? {
        return pjrt::backend(py, client, Some(id));
    }
    let listed = value.getattr_opt(intern!(py, "backend"))?;
    match pjrt::device_of(value).or_else(|| pjrt::device_of(listed.as_ref()?)) {
        Some(device) => Ok(device),
        None => Err(convert::bad(
            "mesh",
            "a device",
            value,
            "dn.backends.PJRT(...), an entry of dn.devices(), or a device_id",
        )?),
    }
}

#[pymethods]
impl PyMesh {
    #[new]
    #[pyo3(signature = (axes, devices = None, *, client = None, **unknown))]
    fn new(
        axes: &Bound<'_, PyAny>,
        devices: Option<&Bound<'_, PyAny>>,
        client: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<PyMesh> {
        guard(|| {
            let py = axes.py();
            if let Some(option) = unknown.and_then(|unknown| unknown.keys().iter().next()) {
                let (option, known) = (option.str()?.to_string(), "devices, client".to_owned());
                return Err(Misuse::UnknownOption { op: "mesh", option, known }.into());
            }
            let mesh = Mesh::new(self::axes(axes)?)?;
            let client = match client.filter(|client| !client.is_none()) {
                Some(client) => Some(pjrt::client_name("mesh", client)?),
                None => None,
            };
            let devices = match devices.filter(|devices| !devices.is_none()) {
                Some(devices) => {
                    let Some(each) = if_fits(py, devices.try_iter())? else {
                        return Err(convert::bad("mesh", "devices", devices, "a sequence of devices")?);
                    };
                    each.map(|each| device(&each?, client.as_deref())).collect::<Fallible<Vec<_>>>()?
                }
                None => {
                    let first = pjrt::backend(py, client.as_deref(), None)?;
                    let all = first.runtime().backends();
                    match all.get(..mesh.count()) {
                        Some(devices) => devices.to_vec(),
                        None => {
                            let (count, there) = (mesh.count(), all.len());
                            let mesh = mesh.to_string();
                            return Err(
                                defn_core::Error::from(MeshError::Devices { mesh, count, there }).into()
                            );
                        }
                    }
                }
            };
            Ok(PyMesh { backend: MeshBackend::new(mesh, devices)? })
        })
    }

    /// The number of devices along each axis.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let axes = PyDict::new(py);
        for (name, size) in self.backend.mesh().axes() {
            axes.set_item(&**name, size)?;
        }
        Ok(axes)
    }

    /// The devices in row-major order of the axes.
    #[getter]
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let devices = self.backend.backends().iter().map(|device| backends::object(py, &**device));
        PyTuple::new(py, devices.collect::<PyResult<Vec<_>>>()?)
    }

    /// The number of devices.
    #[getter]
    fn size(&self) -> usize {
        self.backend.mesh().count()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let ids: Vec<String> =
            self.backend.backends().iter().map(|device| device.device_id().to_string()).collect();
        let client = self.backend.runtime().name();
        Ok(format!("Mesh({}, devices=[{}], client='{client}')", self.axes(py)?.repr()?, ids.join(", ")))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyMesh>().is_ok_and(|other| other.get().backend.is_same_device(&*self.backend))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.backend.device_name().hash(&mut hasher);
        hasher.finish()
    }
}
