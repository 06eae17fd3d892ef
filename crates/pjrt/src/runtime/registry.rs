//! The clients of this process, by name. Each is started once, when it is first needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use defn_core::device::DeviceError;
use defn_core::{ErrorKind, Result};

use super::process::Process;
use super::{PjrtBackend, Runtime, caller, distributed, failure};
use crate::api::{KeyValues, MemoryStats};
use crate::lower::Hardware;
use crate::plugin::{Attribute, Plugin, Version};

/// The environment variable that names a plugin's file.
const VARIABLE: &str = "DEFN_PJRT_PLUGIN";
/// The only option of XLA's plugin for the CPU: the number of its devices.
const CPU_COUNT: &str = "cpu_device_count";

/// The specification of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSpec {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// Options of the plugin, such as `cpu_device_count`.
    pub options: Vec<(String, Attribute)>,
    /// The limit on the bytes in use on each device; without a limit, memory is allocated as it is needed.
    pub memory_limit: Option<u64>,
    /// Whether it is a client of this process alone, also after [`initialize`](crate::distributed::initialize).
    pub local: bool,
}

impl ClientSpec {
    /// A client of a plugin, without options.
    pub fn new(plugin: impl Into<PathBuf>) -> ClientSpec {
        ClientSpec { plugin: plugin.into(), options: Vec::new(), memory_limit: None, local: false }
    }

    /// Adds an option.
    #[must_use]
    pub fn with(mut self, name: &str, value: Attribute) -> ClientSpec {
        self.options.push((name.to_owned(), value));
        self
    }
}

/// A device in a list of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// The name of the client.
    pub client: String,
    /// The device's index in the client.
    pub device_id: usize,
    /// The number of the process that it belongs to.
    pub process_index: i32,
    /// Whether this process can use it.
    pub addressable: bool,
    /// The platform, such as `cpu` or `cuda`.
    pub platform: String,
    /// The platform's version, in human-readable text.
    pub platform_version: String,
    /// The vendor's name for the device.
    pub kind: String,
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The version of the PJRT C API that the plugin implements.
    pub version: Version,
    /// The usage of its memory, if the plugin reports it.
    pub memory: Option<MemoryStats>,
    /// Whether programs call kernels of this process ([`set_kernel_compiler`](crate::set_kernel_compiler)).
    pub kernels: bool,
    /// Whether programs call a library for factorizations ([`set_library`](crate::set_library)).
    pub solver: bool,
}

/// A client that can be started.
struct RegisteredClient {
    spec: ClientSpec,
    /// Locked while the client starts, so that it starts once.
    running: Arc<Mutex<Option<&'static Runtime>>>,
    /// The process in which it was registered.
    process: Process,
}

impl RegisteredClient {
    fn new(spec: ClientSpec) -> RegisteredClient {
        RegisteredClient { spec, running: Arc::default(), process: Process::this() }
    }

    /// Moves it to this process, if it was registered before a fork and not started there.
    ///
    /// # Errors
    /// A thread of the other process was starting it.
    fn adopt(&mut self, op: &'static str, client: &str) -> Result<()> {
        if self.process.is_this() {
            return Ok(());
        }
        let is_started = match self.running.try_lock() {
            Ok(running) => running.is_some(),
            Err(TryLockError::Poisoned(running)) => running.into_inner().is_some(),
            // The thread that holds the lock is not in this process.
            Err(TryLockError::WouldBlock) => return self.process.require(op, client),
        };
        if !is_started {
            *self = RegisteredClient::new(self.spec.clone());
        }
        Ok(())
    }
}

struct Registry {
    clients: BTreeMap<String, RegisteredClient>,
    /// The names in the order of registration.
    order: Vec<String>,
    default: Option<String>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { clients: BTreeMap::new(), order: Vec::new(), default: None });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    fn add(&mut self, name: &str, spec: ClientSpec) {
        if !self.order.iter().any(|known| known == name) {
            self.order.push(name.to_owned());
        }
        self.clients.insert(name.to_owned(), RegisteredClient::new(spec));
    }

    /// Adds the client that the environment variable names, if it does and there is none of that name.
    fn add_from_environment(&mut self) {
        if let Some((name, path)) = named_plugin()
            && !self.clients.contains_key(&name)
        {
            self.add(&name, ClientSpec::new(path));
            // Setting the variable also selects the default client.
            self.default.get_or_insert(name);
        }
    }
}

/// The name of a plugin's client, by a part of the plugin's name, in order of preference as the default client.
const CLIENTS: [(&str, &str); 4] = [("cuda", "cuda"), ("rocm", "rocm"), ("tpu", "tpu"), ("cpu", "host")];

/// The names of the clients that stand for one plugin each, in order of preference.
pub fn preferred_clients() -> [&'static str; 4] {
    CLIENTS.map(|(_, name)| name)
}

/// The name of a plugin's client, from the name of its file or its entry point: `cuda`, `rocm`, `tpu`, `host` for the
/// CPU, or that name itself.
pub fn client_name(plugin: &Path) -> String {
    let file = plugin.file_stem().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    CLIENTS
        .iter()
        .find(|(fragment, _)| file.contains(fragment))
        .map_or(file.clone(), |(_, name)| (*name).to_owned())
}

/// The plugin that `DEFN_PJRT_PLUGIN` names, with its client's name.
pub fn named_plugin() -> Option<(String, PathBuf)> {
    let path = PathBuf::from(std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?);
    Some((client_name(&path), path))
}

/// Registers a client under a name; it starts when it is first needed. A repeated registration has no effect.
///
/// # Errors
/// The client is running with other options.
pub fn register(name: &str, spec: ClientSpec) -> Result<()> {
    let mut registry = registry();
    if let Some(known) = registry.clients.get_mut(name) {
        known.adopt("client", name)?;
        if known.spec == spec {
            return Ok(());
        }
        if known.running.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            let required = "the same options are required until the process ends; choose another name";
            return Err(DeviceError::ClientRuns { op: "client", client: name.to_owned(), required }.into());
        }
    }
    registry.add(name, spec);
    Ok(())
}

/// The names of the registered clients, in the order of registration.
pub fn client_names() -> Vec<String> {
    let mut registry = registry();
    registry.add_from_environment();
    registry.order.clone()
}

/// The default client: the one that was set, else that of `DEFN_PJRT_PLUGIN`, else the first.
pub fn default_client() -> Option<String> {
    let mut registry = registry();
    registry.add_from_environment();
    registry.default.clone().or_else(|| registry.order.first().cloned())
}

/// Sets the default client.
///
/// # Errors
/// There is no client of that name.
pub fn set_default_client(name: &str) -> Result<()> {
    let mut registry = registry();
    registry.add_from_environment();
    if !registry.clients.contains_key(name) {
        return Err(unknown("client", name, &registry.order));
    }
    registry.default = Some(name.to_owned());
    Ok(())
}

fn unknown(op: &'static str, name: &str, known: &[String]) -> defn_core::Error {
    if known.is_empty() {
        return DeviceError::NoPlugin { op }.into();
    }
    let known: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
    let hint = match name {
        "host" => "; install XLA's plugin for the CPU by pip install 'defn[xla]'",
        "cuda" => "; install a plugin for it by pip install 'defn[cuda13]' or 'defn[cuda12]'",
        "tpu" => "; install a plugin for it by pip install libtpu",
        _ => "",
    };
    DeviceError::UnknownClient { op, client: name.to_owned(), known: known.join(", "), hint }.into()
}

/// The client of a name, or the default one; it is started if it does not run yet. `op` is for messages.
///
/// # Errors
/// No such client or no plugin at all, a file that is not a plugin, a plugin of another version, a missing device or
/// driver, or a process that was forked from the one that started the client.
pub fn runtime(op: &'static str, name: Option<&str>) -> Result<&'static Runtime> {
    let chosen = match name {
        Some(name) => name.to_owned(),
        None => default_client().ok_or(DeviceError::NoPlugin { op })?,
    };
    let (spec, running) = {
        let mut registry = registry();
        registry.add_from_environment();
        match registry.clients.get_mut(&chosen) {
            Some(known) => {
                known.adopt(op, &chosen)?;
                (known.spec.clone(), known.running.clone())
            }
            None => return Err(unknown(op, &chosen, &registry.order)),
        }
    };
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = match *running {
        Some(runtime) => runtime,
        None => start(&chosen, &spec)?,
    };
    *running = Some(runtime);
    drop(running);
    runtime.require_process(op)?;
    Ok(runtime)
}

/// A client that was started in this process and is not local to it.
pub(super) fn running_client() -> Option<String> {
    let is_running = |client: &RegisteredClient| match client.running.try_lock() {
        Ok(running) => running.is_some(),
        Err(TryLockError::Poisoned(running)) => running.into_inner().is_some(),
        // It is starting.
        Err(TryLockError::WouldBlock) => true,
    };
    let registry = registry();
    let running = registry
        .clients
        .iter()
        .find(|(_, client)| !client.spec.local && client.process.is_this() && is_running(client));
    running.map(|(name, _)| name.clone())
}

/// The plugin's file of a client, which is not started.
///
/// # Errors
/// No such client or no plugin at all.
pub(super) fn plugin_file(op: &'static str, name: &str) -> Result<PathBuf> {
    let mut registry = registry();
    registry.add_from_environment();
    let known = registry.clients.get(name);
    known.map(|known| known.spec.plugin.clone()).ok_or_else(|| unknown(op, name, &registry.order))
}

/// The backend of a device of the named client or of the default one; without `device_id` it is the first device of this
/// process.
///
/// # Errors
/// As [`runtime`], or a device that the client does not have.
pub fn backend(op: &'static str, client: Option<&str>, device_id: Option<i64>) -> Result<Arc<PjrtBackend>> {
    let runtime = runtime(op, client)?;
    let first = || runtime.addressable().first().and_then(|&id| i64::try_from(id).ok()).unwrap_or(0);
    Ok(runtime.backend(op, device_id.unwrap_or_else(first))?.clone())
}

/// The devices of every registered client, or the error why it cannot start.
pub fn devices() -> Vec<(String, Result<Vec<DeviceInfo>>)> {
    let each = |name: String| {
        let listed = devices_of(&name);
        (name, listed)
    };
    client_names().into_iter().map(each).collect()
}

/// The devices of one client; no other client is started.
///
/// # Errors
/// As [`runtime`].
pub fn devices_of(client: &str) -> Result<Vec<DeviceInfo>> {
    let runtime = runtime("devices", Some(client))?;
    let failed = |error| failure::device("devices", runtime, error);
    let platform_version = runtime.client().platform_version().map_err(failed)?;
    let each = |(device_id, device): (usize, &crate::api::Device)| {
        let addressable = runtime.is_addressable(device_id);
        Ok(DeviceInfo {
            client: runtime.name().to_owned(),
            device_id,
            process_index: runtime.process_index(device_id),
            addressable,
            platform: runtime.platform().to_owned(),
            platform_version: platform_version.clone(),
            kind: device.description().map_err(failed)?.kind,
            plugin: runtime.plugin().path().to_owned(),
            version: runtime.plugin().version(),
            // Some plugins keep no statistics.
            memory: if addressable { device.memory_stats().ok() } else { None },
            kernels: runtime.hardware() == Hardware::HostWithKernels,
            solver: runtime.hardware() == Hardware::DeviceWithSolver,
        })
    };
    runtime.devices().iter().enumerate().map(each).collect()
}

/// Rejects options that XLA's plugin for the CPU does not reject itself: it ignores an unknown name, and a value of the
/// wrong type ends the process.
fn check_options(client: &str, spec: &ClientSpec) -> Result<()> {
    if client_name(&spec.plugin) != "host" {
        return Ok(());
    }
    for (option, value) in &spec.options {
        if option != CPU_COUNT {
            let (client, option) = (client.to_owned(), option.clone());
            return Err(
                DeviceError::UnknownOption { client, option, known: format!("\"{CPU_COUNT}\"") }.into()
            );
        }
        let is_count = if let Attribute::Int(count) = value { (1..=1024).contains(count) } else { false };
        if !is_count {
            let (given, required) = (value.to_string(), "an integer in 1..=1024".to_owned());
            return Err(ErrorKind::OptionValue { op: "client", option: CPU_COUNT, given, required }.into());
        }
    }
    Ok(())
}

fn start(name: &str, spec: &ClientSpec) -> Result<&'static Runtime> {
    check_options(name, spec)?;
    let plugin = load(&spec.plugin)?;
    let failed = |error: crate::Error| {
        let why = if let crate::Error::Plugin { message, .. } = &error {
            message.trim_end().trim_end_matches('.').to_owned()
        } else {
            error.to_string()
        };
        let plugin = spec.plugin.display().to_string();
        defn_core::Error::from(DeviceError::Start { client: name.to_owned(), plugin, why })
    };
    let mut options = spec.options.clone();
    let takes_all = matches!(client_name(&spec.plugin).as_str(), "cuda" | "rocm");
    let is_open = !options.iter().any(|(option, _)| option == "preallocate");
    if takes_all && is_open {
        // By default such a plugin allocates three quarters of the memory at its start.
        options.push(("preallocate".to_owned(), Attribute::Bool(false)));
    }
    match spec.memory_limit {
        None => {}
        Some(limit) if takes_all => options.push(memory_fraction(&plugin, &options, limit).map_err(failed)?),
        Some(_) => {
            let platform = client_name(&spec.plugin);
            return Err(DeviceError::NoLimit { client: name.to_owned(), platform }.into());
        }
    }
    let member = if spec.local { None } else { distributed::joined()? };
    let Some(member) = member else {
        let client = plugin.client(&options).map_err(failed)?;
        return Runtime::new(name.to_owned(), plugin, client, false).map_err(failed);
    };
    let key_values = KeyValues::leak(member.clone(), name);
    let given = if takes_all { distributed::client_options(&member).to_vec() } else { Vec::new() };
    options.extend_from_slice(&given);
    let (starting, start_options) = (plugin.clone(), options);
    // It waits until the other processes start this client too, which may never be.
    let client = caller::interruptible(move || starting.joined_client(&start_options, key_values))?;
    let client = client.map_err(failed)?;
    let file = spec.plugin.display().to_string();
    distributed::require_all((name, &file), &client, &member, (key_values, &given))?;
    Runtime::new(name.to_owned(), plugin, client, true).map_err(failed)
}

/// The option by which each device provides at most `limit` bytes. The plugin takes a fraction of the total memory, which
/// a temporary first client reports.
fn memory_fraction(
    plugin: &Plugin,
    options: &[(String, Attribute)],
    limit: u64,
) -> crate::Result<(String, Attribute)> {
    let fraction = |fraction: f32| ("memory_fraction".to_owned(), Attribute::Float(fraction));
    let first = plugin.client(&[options, &[fraction(1.0)]].concat())?;
    let mut total: Option<i64> = None;
    for device in first.addressable_devices()? {
        total = total.max(device.memory_stats()?.bytes_limit);
    }
    drop(first);
    let part = limit as f64 / total.unwrap_or(i64::MAX).max(1) as f64;
    Ok(fraction(part.min(1.0) as f32))
}

/// Loads a plugin, once for each file.
pub(super) fn load(path: &Path) -> Result<Plugin> {
    static LOADED: Mutex<BTreeMap<PathBuf, Plugin>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plugin) = loaded.get(path) {
        return Ok(plugin.clone());
    }
    let plugin = Plugin::load(path).map_err(failure::plugin)?;
    loaded.insert(path.to_owned(), plugin.clone());
    Ok(plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_the_names_of_their_clients() {
        assert_eq!(client_name(Path::new("a/xla_cpu_pjrt.so")), "host");
        assert_eq!(client_name(Path::new("a/xla_cuda_plugin.so")), "cuda");
        assert_eq!(client_name(Path::new("libtpu.so")), "tpu");
        assert_eq!(client_name(Path::new("metal.dylib")), "metal");
    }
}
