//! Devices as Python objects: `defn.backends.PJRT`, the clients of this process, and the compiler `"pjrt"`.

mod caller;
mod clients;
mod library;
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

use crate::backends;
use crate::error::{Fallible, guard};
use crate::gil;
use crate::misuse::Misuse;
pub(crate) use options::client_name;

use crate::pybackend;

/// A device as a backend for tensors. Its client is one of those that `dn.devices()` lists.
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

    /// The device's index in the client.
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
        let same = self.backend.is_same_device(&*other.get().backend);
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

/// The backend of a device. By default, it is the first device of the default client.
///
/// # Errors
/// No plugin, a plugin that cannot start, an unknown client, and a device that the client does not have.
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
    clients::register_plugins(py)?;
    let found = gil::detach(py, || defn_pjrt::backend("backend", client, device_id))?;
    Ok(if is_default { DEFAULT.get_or_init(|| found).clone() } else { found })
}

/// The backend of a Python object, if the object is a device.
pub(crate) fn from_object(value: &Bound<'_, PyAny>) -> Option<Arc<dyn Backend>> {
    let object = value.cast::<PyPjrt>().ok()?;
    Some(object.get().backend.clone())
}

/// The device of a Python object, if the object is a device.
pub(crate) fn device_of(value: &Bound<'_, PyAny>) -> Option<Arc<PjrtBackend>> {
    Some(value.cast::<PyPjrt>().ok()?.get().backend.clone())
}

/// The compiler for a mesh, with the options of a sharded function for it.
///
/// # Errors
/// An unknown option, a device option (the mesh determines the devices), and a value of the wrong type.
pub(crate) fn mesh_compiler(
    py: Python<'_>,
    backend: &Arc<MeshBackend>,
    options: Option<&Bound<'_, PyDict>>,
) -> Fallible<Arc<dyn Compiler>> {
    let options::ParsedOptions { client, device_id, target, compiler } =
        options::parse(py, options, CompilerOptions::KNOWN)?;
    let others =
        [("client", client.is_some()), ("device_id", device_id.is_some()), ("target", target.is_some())];
    if let Some((option, _)) = others.iter().find(|(_, is_given)| *is_given) {
        let (option, known) = ((*option).to_owned(), CompilerOptions::KNOWN.to_owned());
        return Err(Misuse::UnknownOption { op: "shard", option, known }.into());
    }
    Ok(Arc::new(MeshCompiler::new(backend.clone(), backends::host(), compiler)))
}

/// The Python object of a backend, if the backend is a device.
pub(crate) fn to_object<'py>(py: Python<'py>, backend: &dyn Backend) -> Option<PyResult<Bound<'py, PyAny>>> {
    let backend = PjrtBackend::of(backend)?;
    let shared = backend.runtime().backends()[backend.device_id()].clone();
    Some(Bound::new(py, PyPjrt { backend: shared }).map(Bound::into_any))
}

/// The compiler with a definition's options, and the backend of its programs' results, if they run in this
/// process.
///
/// # Errors
/// As [`backend`], an unknown option or target, and a value of the wrong type.
pub(crate) fn compiler(
    py: Python<'_>,
    options: Option<&Bound<'_, PyDict>>,
) -> Fallible<(Arc<dyn Compiler>, Option<Arc<dyn Backend>>)> {
    let options::ParsedOptions { client, device_id, target, compiler } =
        options::parse(py, options, options::KNOWN)?;
    if let Some(target) = target {
        let target = find_target(py, &target, client.as_deref().unwrap_or(TARGET_CLIENT))?;
        return Ok((Arc::new(TargetCompiler::new(target, backends::host(), compiler)), None));
    }
    let backend = backend(py, client.as_deref(), device_id)?;
    let compiler = PjrtCompiler::new(backend.clone(), backends::host(), compiler);
    Ok((Arc::new(compiler), Some(backend)))
}

/// The client whose plugin compiles for targets, unless another is named.
const TARGET_CLIENT: &str = "cuda";

/// A target, compiled for by the plugin of a client. There is one object for each pair of them.
fn find_target(py: Python<'_>, name: &str, client: &str) -> Fallible<Arc<Target>> {
    type Known = BTreeMap<(String, String), Arc<Target>>;
    static KNOWN: Mutex<Known> = Mutex::new(Known::new());
    let key = (name.to_owned(), client.to_owned());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(target) = known().get(&key).cloned() {
        return Ok(target);
    }
    clients::register_plugins(py)?;
    let target = Arc::new(py.detach(|| Target::of_client(name, client))?);
    known().insert(key, target.clone());
    Ok(target)
}

/// The compiler that loads executables for the devices of a client, and the device that stores their captured
/// tensors.
///
/// # Errors
/// As [`backend`].
pub(crate) fn loader(
    py: Python<'_>,
    client: Option<&str>,
    device_id: Option<i64>,
) -> Fallible<(PjrtCompiler, Arc<dyn Backend>)> {
    let backend = backend(py, client, device_id)?;
    Ok((PjrtCompiler::new(backend.clone(), backends::host(), CompilerOptions::default()), backend))
}

/// The options for each partition of a program: the given options, once for each device of the client
/// in this process.
#[pyfunction]
#[pyo3(signature = (options = None))]
fn pjrt_partitions<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> Fallible<Vec<Bound<'py, PyDict>>> {
    guard(|| {
        let parsed = options::parse(py, options, options::KNOWN)?;
        let runtime = backend(py, parsed.client.as_deref(), None)?.runtime();
        let with_device = |id: usize| -> PyResult<Bound<'py, PyDict>> {
            let device_options = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
            device_options.set_item("device_id", id)?;
            Ok(device_options)
        };
        Ok(runtime.addressable().iter().copied().map(with_device).collect::<PyResult<_>>()?)
    })
}

/// Waits until a tensor on a device is computed. Returns whether the tensor is on a device.
///
/// # Errors
/// A failure of the computation, and an interruption.
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

/// The location of a tensor on a device, for its printed form: the device, and a number that identifies its
/// memory.
pub(crate) fn signature(tensor: &Tensor) -> Option<String> {
    let own = of(tensor)?;
    let (client, device) = (own.pjrt_backend().runtime().name(), own.pjrt_backend().device_id());
    Some(match own.number() {
        Some(number) => format!("PJRT<{client}:{device}, {number}>"),
        None => format!("PJRT<{client}:{device}>"),
    })
}

/// The buffer of a tensor that is on a device.
pub(crate) fn of(tensor: &Tensor) -> Option<&PjrtBuffer> {
    tensor.buffer()?.as_any().downcast_ref()
}

/// A tensor's elements in device memory that the host cannot read, for another library on the device.
pub(crate) struct OnDevice {
    /// The kind and index of the device, as DLPack numbers them.
    pub device: (i32, i32),
    pub address: usize,
    pub keeper: Box<dyn Any + Send + Sync>,
}

/// The DLPack device of a tensor whose memory the host cannot read; the outer `None` for other tensors, the
/// inner one for devices that DLPack does not number.
///
/// # Errors
/// Any error of the plugin.
pub(crate) fn dlpack_device(tensor: &Tensor) -> Fallible<Option<Option<(i32, i32)>>> {
    let Some(own) = of(tensor).filter(|own| !own.pjrt_backend().runtime().is_host()) else { return Ok(None) };
    let kind = match own.pjrt_backend().runtime().platform() {
        "cuda" => 2,
        "rocm" => 10,
        _ => return Ok(Some(None)),
    };
    Ok(Some(Some((kind, own.hardware_id()?))))
}

/// A tensor's elements in device memory, after their computation has ended.
///
/// # Errors
/// The elements were freed or donated, their computation failed, or an interruption.
pub(crate) fn on_device(py: Python<'_>, tensor: &Tensor) -> Fallible<Option<OnDevice>> {
    let (Some(own), Some(Some(device))) = (of(tensor), dlpack_device(tensor)?) else { return Ok(None) };
    let poll = || gil::attach(|py| py.check_signals()).map_err(pybackend::carry);
    let keeper = own.hold()?;
    let address = gil::detach(py, || own.pointer(&poll))?;
    Ok(Some(OnDevice { device, address, keeper }))
}

/// A tensor over memory at an address. The device reads the memory in place if it can.
///
/// # Errors
/// Any error of the plugin.
pub(crate) fn borrow(
    backend: &dyn Backend,
    ty: &TensorType,
    memory: &HostMemory,
) -> Option<defn_core::Result<Arc<dyn Buffer>>> {
    Some(PjrtBackend::of(backend)?.borrow(ty, memory.clone()))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    defn_pjrt::set_caller(&caller::Interpreter);
    defn_pjrt::set_kernel_compiler(Arc::new(defn_cpu::CpuCompiler::new()));
    defn_pjrt::set_host_copy(defn_cpu::host_copy);
    module.add_class::<PyPjrt>()?;
    module.add_function(wrap_pyfunction!(pjrt_partitions, module)?)?;
    clients::add(module)
}
