//! The clients of this process: their names, their devices, and their statistics.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use defn_pjrt::{ClientSpec, DeviceInfo, distributed};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString};

use super::library;
use super::options::{attribute, client_name};
use crate::convert;
use crate::error::{Fallible, guard};
use crate::gil;

/// The longest timeout, a year of seconds.
const MAX_TIMEOUT: f64 = 365.0 * 24.0 * 3600.0;

/// Registers the clients of all installed plugins, once.
///
/// # Errors
/// Any error of the search for plugins.
pub(super) fn register_plugins(py: Python<'_>) -> Fallible<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Acquire) {
        return Ok(());
    }
    for plugin in py.import("defn.pjrt")?.call_method0("plugins")?.try_iter()? {
        let plugin = plugin?;
        let client: String = plugin.getattr("client")?.extract()?;
        // A client that the user has described is not replaced.
        if !defn_pjrt::client_names().contains(&client) {
            let path: PathBuf = plugin.getattr("path")?.extract()?;
            library::register(py, &path)?;
            defn_pjrt::register(&client, ClientSpec::new(path))?;
        }
    }
    DONE.store(true, Ordering::Release);
    Ok(())
}

/// The client name for a plugin that is announced under this name.
#[pyfunction]
fn pjrt_client_name(name: PathBuf) -> String {
    defn_pjrt::client_name(&name)
}

/// The names of the clients with one plugin each, in order of preference.
#[pyfunction]
fn pjrt_preferred_clients() -> [&'static str; 4] {
    defn_pjrt::preferred_clients()
}

/// The client and the plugin file that the environment names.
#[pyfunction]
fn pjrt_named_plugin() -> Option<(String, PathBuf)> {
    defn_pjrt::named_plugin()
}

/// Describes a client. It starts when it is first needed.
#[pyfunction]
#[pyo3(signature = (name, plugin, memory_limit, local, options))]
fn pjrt_client(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    plugin: Option<PathBuf>,
    memory_limit: Option<&Bound<'_, PyAny>>,
    local: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> Fallible<()> {
    guard(|| {
        let name = &client_name("client", name)?;
        // Installed clients are registered first, so that this name does not become the default one.
        register_plugins(py)?;
        let plugin = match plugin {
            Some(plugin) => plugin,
            None => py.import("defn.pjrt")?.call_method1("_path", (name,))?.extract()?,
        };
        library::register(py, &plugin)?;
        let mut spec = ClientSpec::new(plugin);
        spec.memory_limit = match memory_limit {
            None => None,
            Some(limit) => match convert::index(limit)?.and_then(|limit| u64::try_from(limit).ok()) {
                Some(bytes) if bytes > 0 => Some(bytes),
                Some(_) | None => {
                    return Err(convert::bad("client", "memory_limit", limit, "a number of bytes")?);
                }
            },
        };
        spec.local = match local.cast::<PyBool>() {
            Ok(local) => local.is_true(),
            Err(_) => return Err(convert::bad("client", "local", local, "True or False")?),
        };
        for (option, value) in options {
            let option = option.str()?.to_string();
            let value = attribute("client", &option, &value)?;
            spec = spec.with(&option, value);
        }
        // The GIL is released because a client of this name may be starting.
        Ok(gil::detach(py, || defn_pjrt::register(name, spec))?)
    })
}

/// Joins this process to others, so that clients have the devices of all of them.
#[pyfunction]
#[pyo3(signature = (coordinator, rank, world, timeout))]
fn distributed_initialize(
    py: Python<'_>,
    coordinator: Option<&Bound<'_, PyAny>>,
    rank: Option<&Bound<'_, PyAny>>,
    world: Option<&Bound<'_, PyAny>>,
    timeout: &Bound<'_, PyAny>,
) -> Fallible<()> {
    guard(|| {
        let given = |value: Option<&Bound<'_, PyAny>>, option: &'static str| match value {
            None => Ok(None),
            Some(value) => match convert::index(value)? {
                Some(number) => Ok(Some(number)),
                None => Err(convert::bad("initialize", option, value, "an int")?),
            },
        };
        let coordinator = match coordinator {
            None => None,
            Some(address) => match address.extract::<String>() {
                Ok(address) => Some(address),
                Err(_) => {
                    return Err(convert::bad("initialize", "coordinator", address, "an address host:port")?);
                }
            },
        };
        let seconds = timeout.extract::<f64>().ok().filter(|_| !timeout.is_instance_of::<PyBool>());
        let duration = seconds.filter(|seconds| *seconds > 0.0 && *seconds <= MAX_TIMEOUT);
        let Some(timeout) = duration.map(Duration::from_secs_f64) else {
            return Err(convert::bad("initialize", "timeout", timeout, "a positive number of seconds")?);
        };
        let (rank, world) = (given(rank, "rank")?, given(world, "world")?);
        let options = distributed::Options { coordinator, rank, world, timeout };
        Ok(gil::detach(py, || distributed::initialize(&options))?)
    })
}

/// The names of all clients, the default one, and the devices of each, or the reason why it does not start.
#[pyfunction]
fn pjrt_devices(py: Python<'_>) -> Fallible<Bound<'_, PyList>> {
    guard(|| {
        register_plugins(py)?;
        let listed = PyList::empty(py);
        for (client, devices) in gil::detach(py, defn_pjrt::devices) {
            let devices = match devices {
                Ok(devices) => entries(py, devices)?.into_any(),
                Err(error) => PyString::new(py, &error.to_string()).into_any(),
            };
            listed.append((client, devices))?;
        }
        Ok(listed)
    })
}

/// The devices of one client. Only this client is started.
#[pyfunction]
fn pjrt_devices_of<'py>(py: Python<'py>, client: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyList>> {
    guard(|| {
        let client = client_name("devices", client)?;
        register_plugins(py)?;
        Ok(entries(py, gil::detach(py, || defn_pjrt::devices_of(&client))?)?)
    })
}

fn entries(py: Python<'_>, devices: Vec<DeviceInfo>) -> PyResult<Bound<'_, PyList>> {
    let devices: Vec<_> = devices.into_iter().map(|device| entry(py, device)).collect::<PyResult<_>>()?;
    PyList::new(py, devices)
}

/// A device as a dict; the keys are its attributes in Python.
fn entry(py: Python<'_>, device: DeviceInfo) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("client", device.client)?;
    entry.set_item("device_id", device.device_id)?;
    entry.set_item("process_index", device.process_index)?;
    entry.set_item("addressable", device.addressable)?;
    entry.set_item("platform", device.platform)?;
    entry.set_item("platform_version", device.platform_version)?;
    entry.set_item("kind", device.kind)?;
    entry.set_item("plugin", device.plugin)?;
    entry.set_item("interface", device.version.to_string())?;
    entry.set_item("memory_used", device.memory.as_ref().map(|memory| memory.bytes_in_use))?;
    entry.set_item("memory_limit", device.memory.as_ref().and_then(|memory| memory.bytes_limit))?;
    entry.set_item("kernels", device.kernels)?;
    entry.set_item("solver", device.solver)?;
    Ok(entry)
}

/// The statistics of a client's cache of compiled programs.
#[pyfunction]
#[pyo3(signature = (client = None))]
fn pjrt_cache_report<'py>(py: Python<'py>, client: Option<&str>) -> Fallible<Bound<'py, PyDict>> {
    guard(|| {
        register_plugins(py)?;
        let report = gil::detach(py, || defn_pjrt::runtime("cache_report", client))?.cache_report();
        let entry = PyDict::new(py);
        entry.set_item("memory_hits", report.memory_hits)?;
        entry.set_item("disk_hits", report.disk_hits)?;
        entry.set_item("disk_misses", report.disk_misses)?;
        entry.set_item("corrupt", report.corrupt)?;
        entry.set_item("compiles", report.compiles)?;
        entry.set_item("compile_seconds", report.compile_seconds)?;
        entry.set_item("entries", report.entries)?;
        entry.set_item("disk_entries", report.disk_entries)?;
        entry.set_item("disk_bytes", report.disk_bytes)?;
        Ok(entry)
    })
}

/// The number of live tensors on the devices of a client.
#[pyfunction]
#[pyo3(signature = (client = None))]
fn pjrt_live_buffers(py: Python<'_>, client: Option<&str>) -> Fallible<usize> {
    guard(|| {
        register_plugins(py)?;
        Ok(gil::detach(py, || defn_pjrt::runtime("live_buffers", client))?.live_buffers())
    })
}

/// Waits a few seconds at most until devices are idle, before the process ends.
#[pyfunction]
fn pjrt_settle(py: Python<'_>) {
    gil::detach(py, defn_pjrt::end);
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(distributed_initialize, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_client, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_client_name, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_preferred_clients, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_named_plugin, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_devices, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_devices_of, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_cache_report, module)?)?;
    module.add_function(wrap_pyfunction!(pjrt_live_buffers, module)?)?;
    let settle = wrap_pyfunction!(pjrt_settle, module)?;
    module.py().import("atexit")?.call_method1("register", (&settle,))?;
    Ok(())
}
