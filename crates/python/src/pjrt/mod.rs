//! Devices as Python has them: `defn.backends.PJRT`, the clients of this process, and the compiler `"pjrt"`.

mod caller;
mod clients;
mod options;

use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use defn_core::backend::{Backend, Buffer, Compiler, HostMemory};
use defn_core::{Tensor, TensorType};
use defn_pjrt::{
    CompilerOptions, MeshBackend, MeshCompiler, PjrtBackend, PjrtBuffer, PjrtCompiler, Target, TargetCompiler,
};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rustc_hash::FxHasher;

use crate::error::{Fallible, guard};
use crate::gil;
use crate::misuse::Misuse;
use crate::place;
pub(crate) use options::client_name;

use crate::pybackend;

/// A device as a place for tensors: that of a client, whose name is one of those that `dn.devices()` lists.
#[pyclass(frozen, weakref, name = "PJRT", module = "defn.backends")]
pub(crate) struct PyPjrt {
    backend: Arc<PjrtBackend>,
}

#[pymethods]
impl PyPjrt {
    #[new]
    #[pyo3(signature = (*, client = None, device_id = None, **unknown))]
    fn new(
        py: Python<'_>,
        client: Option<&Bound<'_, PyAny>>,
        device_id: Option<&Bound<'_, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<PyPjrt> {
        guard(|| {
            let client = client.map(|client| options::client_name("PJRT", client)).transpose()?;
            let device_id = device_id.map(|id| options::device_id("PJRT", id)).transpose()?;
            if let Some(option) = unknown.and_then(|unknown| unknown.keys().iter().next()) {
                let (option, known) = (option.str()?.to_string(), "client, device_id".to_owned());
                return Err(Misuse::UnknownOption { op: "PJRT", option, known }.into());
            }
            Ok(PyPjrt { backend: backend(py, client.as_deref(), device_id)? })
        })
    }

    /// The name of the client.
    #[getter]
    fn client(&self) -> &str {
        self.backend.runtime().name()
    }

    /// The device's number among those of the client.
    #[getter]
    fn device_id(&self) -> usize {
        self.backend.device_id()
    }

    /// The platform, such as `cpu` or `cuda`.
    #[getter]
    fn platform(&self) -> &str {
        self.backend.runtime().platform()
    }

    fn __repr__(&self) -> String {
        format!("PJRT(client='{}', device_id={})", self.client(), self.device_id())
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(other) = other.cast::<PyPjrt>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let same = self.backend.is_same_place(&*other.get().backend);
        match op {
            CompareOp::Eq => same.into_bound_py_any(py),
            CompareOp::Ne => (!same).into_bound_py_any(py),
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
                Ok(py.NotImplemented().into_bound(py))
            }
        }
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.client(), self.device_id()).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let make = py.import("defn.pjrt")?.getattr("_backend")?;
        PyTuple::new(py, [make, (self.client(), self.device_id()).into_bound_py_any(py)?])
    }
}

/// The backend of a device; of the default client, and of its first device, where none is named.
///
/// # Errors
/// No plugin, one that cannot start, an unknown client, and a device that it does not have.
pub(crate) fn backend(
    py: Python<'_>,
    client: Option<&str>,
    device_id: Option<i64>,
) -> Fallible<Arc<PjrtBackend>> {
    static DEFAULT: OnceLock<Arc<PjrtBackend>> = OnceLock::new();
    let is_default = client.is_none() && device_id.is_none();
    if let (true, Some(known)) = (is_default, DEFAULT.get()) {
        return Ok(known.clone());
    }
    clients::announce(py)?;
    let found = gil::detach(py, || defn_pjrt::backend("backend", client, device_id))?;
    Ok(if is_default { DEFAULT.get_or_init(|| found).clone() } else { found })
}

/// The backend that a Python object is, if it is one.
pub(crate) fn from_object(value: &Bound<'_, PyAny>) -> Option<Arc<dyn Backend>> {
    let object = value.cast::<PyPjrt>().ok()?;
    Some(object.get().backend.clone())
}

/// The device that a Python object is, if it is one.
pub(crate) fn device_of(value: &Bound<'_, PyAny>) -> Option<Arc<PjrtBackend>> {
    Some(value.cast::<PyPjrt>().ok()?.get().backend.clone())
}

/// The compiler for a mesh, with the options that a sharded function has for it.
///
/// # Errors
/// An unknown option, a device besides those of the mesh, and a value of another kind.
pub(crate) fn mesh_compiler(
    py: Python<'_>,
    place: &Arc<MeshBackend>,
    given: Option<&Bound<'_, PyDict>>,
) -> Fallible<Arc<dyn Compiler>> {
    let options::Given { client, device_id, target, compiler } =
        options::parse(py, given, CompilerOptions::KNOWN)?;
    let others =
        [("client", client.is_some()), ("device_id", device_id.is_some()), ("target", target.is_some())];
    if let Some((option, _)) = others.iter().find(|(_, is_given)| *is_given) {
        let (option, known) = ((*option).to_owned(), CompilerOptions::KNOWN.to_owned());
        return Err(Misuse::UnknownOption { op: "shard", option, known }.into());
    }
    Ok(Arc::new(MeshCompiler::new(place.clone(), place::host(), compiler)))
}

/// The Python object that a backend is, if it is a device's.
pub(crate) fn to_object<'py>(py: Python<'py>, backend: &dyn Backend) -> Option<PyResult<Bound<'py, PyAny>>> {
    let backend = PjrtBackend::of(backend)?;
    let shared = backend.runtime().backends()[backend.device_id()].clone();
    Some(Bound::new(py, PyPjrt { backend: shared }).map(Bound::into_any))
}

/// The compiler with the options that a definition has for it, and where its programs' results are, if that is here.
///
/// # Errors
/// As [`backend`], an unknown option or target, and a value of another kind.
pub(crate) fn compiler(
    py: Python<'_>,
    given: Option<&Bound<'_, PyDict>>,
) -> Fallible<(Arc<dyn Compiler>, Option<Arc<dyn Backend>>)> {
    let options::Given { client, device_id, target, compiler } = options::parse(py, given, options::KNOWN)?;
    if let Some(target) = target {
        let target = find_target(py, &target, client.as_deref().unwrap_or(TARGET_CLIENT))?;
        return Ok((Arc::new(TargetCompiler::new(target, place::host(), compiler)), None));
    }
    let place = backend(py, client.as_deref(), device_id)?;
    let compiler = PjrtCompiler::new(place.clone(), place::host(), compiler);
    Ok((Arc::new(compiler), Some(place)))
}

/// The client that drives targets, unless another is named.
const TARGET_CLIENT: &str = "cuda";

/// A target by the plugin of a client, made once for each.
fn find_target(py: Python<'_>, name: &str, client: &str) -> Fallible<Arc<Target>> {
    type Known = BTreeMap<(String, String), Arc<Target>>;
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let key = (name.to_owned(), client.to_owned());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(target) = known().get(&key).cloned() {
        return Ok(target);
    }
    clients::announce(py)?;
    let target = Arc::new(py.detach(|| Target::of_client(name, client))?);
    known().insert(key, target.clone());
    Ok(target)
}

/// What loads executables for the devices of a client, and the device on which what it needs beside them is kept.
///
/// # Errors
/// As [`backend`].
pub(crate) fn loader(
    py: Python<'_>,
    client: Option<&str>,
    device_id: Option<i64>,
) -> Fallible<(PjrtCompiler, Arc<dyn Backend>)> {
    let place = backend(py, client, device_id)?;
    Ok((PjrtCompiler::new(place.clone(), place::host(), CompilerOptions::default()), place))
}

/// The options of each part that programs are divided into: those that are given, for each device of the client.
#[pyfunction]
#[pyo3(signature = (options = None))]
fn pjrt_partitions<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> Fallible<Vec<Bound<'py, PyDict>>> {
    guard(|| {
        let given = options::parse(py, options, options::KNOWN)?;
        let count = backend(py, given.client.as_deref(), None)?.runtime().devices().len();
        let part = |id: usize| -> PyResult<Bound<'py, PyDict>> {
            let part = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
            part.set_item("device_id", id)?;
            Ok(part)
        };
        Ok((0..count).map(part).collect::<PyResult<_>>()?)
    })
}

/// Waits until a tensor is computed, if it is on a device; whether it is.
///
/// # Errors
/// What computing it failed with, and an interruption.
pub(crate) fn wait(py: Python<'_>, tensor: &Tensor) -> Fallible<bool> {
    let Some(own) = of(tensor) else { return Ok(false) };
    let poll = || gil::attach(|py| py.check_signals()).map_err(pybackend::carry);
    gil::detach(py, || own.block_until_ready(&poll))?;
    Ok(true)
}

/// Refuses options that the compiler for devices does not take.
pub(crate) fn check_options(py: Python<'_>, options: &Bound<'_, PyDict>) -> Fallible<()> {
    options::parse(py, Some(options), options::KNOWN).map(drop)
}

/// Where a tensor's elements lie, for its printed form: the device, and a number that tells its memory from others.
pub(crate) fn signature(tensor: &Tensor) -> Option<String> {
    let own = of(tensor)?;
    let (client, device) = (own.place().runtime().name(), own.place().device_id());
    Some(match own.number() {
        Some(number) => format!("PJRT<{client}:{device}, {number}>"),
        None => format!("PJRT<{client}:{device}>"),
    })
}

/// The buffer of a tensor that is on a device.
pub(crate) fn of(tensor: &Tensor) -> Option<&PjrtBuffer> {
    tensor.buffer()?.as_any().downcast_ref()
}

/// A tensor's elements in the memory of a device that the host does not read, for another library there.
pub(crate) struct OnDevice {
    /// The kind of the device and its number, as DLPack has them.
    pub device: (i32, i32),
    pub address: usize,
    pub keeper: Box<dyn Any + Send + Sync>,
}

/// Where DLPack says that a tensor is, if that is a device that the host does not read the memory of; none there for
/// devices that DLPack does not know.
///
/// # Errors
/// What the plugin fails with.
pub(crate) fn dlpack_device(tensor: &Tensor) -> Fallible<Option<Option<(i32, i32)>>> {
    let Some(own) = of(tensor).filter(|own| !own.place().runtime().is_host()) else { return Ok(None) };
    let kind = match own.place().runtime().platform() {
        "cuda" => 2,
        "rocm" => 10,
        _ => return Ok(Some(None)),
    };
    Ok(Some(Some((kind, own.hardware_id()?))))
}

/// A tensor's elements where they lie on a device, computed.
///
/// # Errors
/// They were freed or donated, what computing them failed with, and an interruption.
pub(crate) fn on_device(py: Python<'_>, tensor: &Tensor) -> Fallible<Option<OnDevice>> {
    let (Some(own), Some(Some(device))) = (of(tensor), dlpack_device(tensor)?) else { return Ok(None) };
    let poll = || gil::attach(|py| py.check_signals()).map_err(pybackend::carry);
    let keeper = own.hold()?;
    let address = gil::detach(py, || own.pointer(&poll))?;
    Ok(Some(OnDevice { device, address, keeper }))
}

/// A tensor of memory at an address, which the device reads as it lies where it can.
///
/// # Errors
/// What the plugin has against it.
pub(crate) fn borrow(
    backend: &dyn Backend,
    ty: &TensorType,
    memory: &HostMemory,
) -> Option<defn_core::Result<Arc<dyn Buffer>>> {
    Some(PjrtBackend::of(backend)?.borrow(ty, memory.clone()))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    defn_pjrt::set_caller(&caller::Interpreter);
    module.add_class::<PyPjrt>()?;
    module.add_function(wrap_pyfunction!(pjrt_partitions, module)?)?;
    clients::add(module)
}
