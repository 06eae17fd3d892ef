//! Running on devices: named clients, tensors on their devices, eager ops, and compiled programs.
//!
//! - State: clients (`registry`), those of several processes (`distributed`), tensors (`buffer`, `live`), meshes (`mesh`,
//!   `together`).
//! - Programs: eager ops (`eager`), steps and runs (`plan`, `execution`), caches (`programs`, `disk`), executables as
//!   bytes (`saved`) and for absent devices (`target`), and the kernels that the host's programs call (`kernels`).
//! - Waiting: the interpreter's lock (`caller`), helper threads (`helpers`), the end of the process (`shutdown`), forks
//!   (`process`).
//!
//! A client starts once and lives as long as the process, so that everything else refers to it by `&'static`. One
//! program serves every device of its client: it is compiled for the kind of device, and each run names the device. For
//! a client with one device it is compiled for that device, which makes each run cheaper, and once more for any device
//! when it is saved.
//!
//! A plugin may compute inside the call that starts a run. XLA on the CPU does so where it expects little work (it
//! counts one trip of a loop), and it blocks a caller while 32 runs are in flight. So no lock of ours is held across a
//! call except the one that orders runs on several devices, and the interpreter's lock is released.
//!
//! Plugins offer a running program no way to call the host or to stop. So the host runs loops with effects (`plan`),
//! and checks for positions and NaNs run op by op.

mod backend;
mod buffer;
mod caller;
mod compiler;
mod digest;
mod disk;
pub(crate) mod distributed;
mod eager;
mod execution;
mod failure;
mod helpers;
mod kernels;
mod library;
mod live;
mod machine;
mod mesh;
mod on_host;
mod options;
mod plan;
mod process;
mod program_cache;
mod programs;
mod registry;
mod saved;
mod shutdown;
mod target;
mod together;
mod wait;

use std::borrow::Borrow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use defn_core::device::DeviceError;
use defn_core::{Result, memory};

pub use backend::{HostCopy, PjrtBackend, set_host_copy};
pub use buffer::PjrtBuffer;
pub use caller::{Caller, set_caller};
pub use compiler::PjrtCompiler;
pub use execution::PjrtExecutable;
pub use kernels::set_kernel_compiler;
pub use library::{library_calls, set_library};
pub use mesh::MeshBackend;
pub use options::CompilerOptions;
pub use programs::CacheReport;
pub use registry::{
    ClientSpec, DeviceInfo, backend, client_name, client_names, default_client, devices, devices_of,
    named_plugin, preferred_clients, register, runtime, set_default_client,
};
pub use shutdown::end;
pub use target::{Target, TargetCompiler, TargetExecutable};
pub use together::MeshCompiler;

use crate::api::{Buffer, Buffers, Client, Device};
use crate::lower::Hardware;
use crate::plugin::Plugin;
use buffer::Elements;
use eager::Eager;
use live::Live;
use process::Process;
use programs::{Compiled, Programs};

/// The platform whose devices are the host's own processors.
const HOST: &str = "cpu";

/// If starting a run took longer, the next run of that program is started so that it can be interrupted.
const LONG_START: Duration = Duration::from_millis(5);

/// A running client, under its name: its devices, its compiled programs, and the tensors on its devices. It runs until
/// the process ends.
pub struct Runtime {
    name: String,
    plugin: Plugin,
    client: Client,
    platform: String,
    machine: String,
    hardware: Hardware,
    /// The devices of all processes.
    devices: Vec<Device>,
    /// For each device, the number of its process.
    processes: Vec<i32>,
    /// The indices of this process's devices.
    addressable: Vec<usize>,
    process: Process,
    backends: OnceLock<Vec<Arc<PjrtBackend>>>,
    programs: Programs,
    eager: Eager,
    live: Live,
    /// Locked while a run on several devices is started. Two such runs that reached the devices in different orders
    /// would wait for each other.
    multi_device_start: Mutex<()>,
}

impl Runtime {
    /// Takes ownership of a new client. If it is `joined`, it has devices of other processes.
    fn new(name: String, plugin: Plugin, client: Client, joined: bool) -> crate::Result<&'static Runtime> {
        let platform = client.platform_name()?;
        let devices = if joined { client.devices()? } else { client.addressable_devices()? };
        let (mut processes, mut addressable) = (Vec::with_capacity(devices.len()), Vec::new());
        for (id, device) in devices.iter().enumerate() {
            processes.push(device.description()?.process_index);
            if !joined || device.is_addressable()? {
                addressable.push(id);
            }
        }
        let is_host = platform == HOST;
        let machine =
            if is_host { format!("{platform} ({})", machine::processor()) } else { platform.clone() };
        let hardware = if is_host {
            let has_kernels = kernels::are_there() && client.register_kernels(kernels::KERNELS);
            if has_kernels { Hardware::HostWithKernels } else { Hardware::Host }
        } else {
            library::hardware(&plugin)
        };
        let programs = Programs::new(&plugin, &client, &machine)?;
        let runtime: &'static Runtime = Box::leak(Box::new(Runtime {
            name,
            plugin,
            client,
            platform,
            machine,
            hardware,
            devices,
            processes,
            addressable,
            process: Process::this(),
            backends: OnceLock::new(),
            programs,
            eager: Eager::default(),
            live: Live::default(),
            multi_device_start: Mutex::new(()),
        }));
        shutdown::wait_at_exit(runtime);
        Ok(runtime)
    }

    /// The name by which users select the client.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The client's plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// The client itself.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The platform, such as `cpu` or `cuda`.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// The machine that saved executables are for: the platform, and on the host its processor too.
    fn machine(&self) -> &str {
        &self.machine
    }

    /// The kind of the devices, for messages; empty for the host's.
    fn kind(&self) -> String {
        let device = self.devices.first().filter(|_| !self.is_host());
        device.and_then(|device| device.description().ok()).map_or_else(String::new, |about| about.kind)
    }

    /// Whether the devices are the host's own processors. Tensors of such a client move to the device of another client
    /// if an op has operands on both.
    pub fn is_host(&self) -> bool {
        self.platform == HOST
    }

    /// Whether there is only one device, so that no program needs to run on another.
    fn is_single(&self) -> bool {
        self.devices.len() == 1
    }

    /// The hardware that programs for the client are lowered for.
    fn hardware(&self) -> Hardware {
        self.hardware
    }

    /// The devices, those of other processes too, by `device_id`.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The `device_id`s of the devices that this process can use.
    pub fn addressable(&self) -> &[usize] {
        &self.addressable
    }

    /// The number of the process that a device belongs to.
    ///
    /// # Panics
    /// There is no such device.
    pub fn process_index(&self, device_id: usize) -> i32 {
        self.processes[device_id]
    }

    /// Whether this process can use a device.
    pub fn is_addressable(&self, device_id: usize) -> bool {
        self.addressable.contains(&device_id)
    }

    /// Rejects a device of another process.
    ///
    /// # Errors
    /// As said.
    fn require_addressable(&self, op: &'static str, id: usize) -> Result<()> {
        if self.is_addressable(id) {
            return Ok(());
        }
        let list = |ids: &[usize]| ids.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let (client, own) = (self.name.clone(), list(&self.addressable));
        Err(DeviceError::OtherProcess { op, client, id, process: self.processes[id], own }.into())
    }

    /// The backend of each device, by `device_id`.
    pub fn backends(&'static self) -> &'static [Arc<PjrtBackend>] {
        self.backends
            .get_or_init(|| (0..self.devices.len()).map(|id| Arc::new(PjrtBackend::new(self, id))).collect())
    }

    /// The backend of the device `id`; `op` is for messages.
    ///
    /// # Errors
    /// There is no such device.
    pub fn backend(&'static self, op: &'static str, id: i64) -> Result<&'static Arc<PjrtBackend>> {
        let backend = usize::try_from(id).ok().and_then(|id| self.backends().get(id));
        backend.ok_or_else(|| {
            let (client, count) = (self.name.clone(), self.devices.len());
            DeviceError::DeviceRange { op, client, id, count }.into()
        })
    }

    /// The number of live tensors on the client's devices.
    pub fn live_buffers(&self) -> usize {
        self.live.count()
    }

    /// The statistics of the caches of compiled programs.
    pub fn cache_report(&self) -> CacheReport {
        self.programs.report()
    }

    /// Starts a run of a program on the device `device_id`; `op` is for messages. The arguments at the positions
    /// `non_donatable` are not donated. A plugin may compute before its call returns, or wait until it can queue one
    /// more run. A run that may take long is therefore started so that a user can interrupt the wait, which costs two
    /// thread switches. Without an interpreter the first run of a program on the host is waited for; see [`shutdown`].
    ///
    /// # Errors
    /// An error from the plugin. An interruption, after which the run continues and uses up its donated arguments.
    fn execute(
        &'static self,
        op: &'static str,
        program: &Arc<Compiled>,
        arguments: &[impl Borrow<Arc<Elements>> + Sync],
        non_donatable: &[i64],
        device_id: usize,
    ) -> Result<Buffers> {
        self.require_process(op)?;
        self.require_addressable(op, device_id)?;
        self.require_memory(op, program.bytes)?;
        program.touch(self.programs.now());
        let device = &self.devices[device_id];
        let started = if program.may_block.load(Ordering::Relaxed) {
            let (program, non_donatable) = (program.clone(), non_donatable.to_vec());
            let arguments: Vec<Arc<Elements>> =
                arguments.iter().map(|elements| elements.borrow().clone()).collect();
            caller::interruptible(move || {
                let arguments = arguments.iter().map(|elements| elements.raw());
                let start = Instant::now();
                let started = program.executable.run_on(arguments, &non_donatable, Some(device));
                if !program.has_unbounded_loop && start.elapsed() <= LONG_START {
                    program.may_block.store(false, Ordering::Relaxed);
                }
                started
            })?
        } else {
            let run = || {
                let raw = arguments.iter().map(|elements| elements.borrow().raw());
                program.executable.run_on(raw, non_donatable, Some(device))
            };
            if program.is_always_prompt() {
                // Releasing the interpreter's lock would take a part of the run's time.
                return run().map_err(|error| failure::device(op, self, error));
            }
            let start = Instant::now();
            let started = caller::without_lock(run);
            if start.elapsed() > LONG_START {
                program.may_block.store(true, Ordering::Relaxed);
            }
            started
        };
        if self.is_host() && !caller::is_there() && !program.was_run.swap(true, Ordering::Relaxed) {
            shutdown::wait_before_next_exit_handler(started.iter().flatten());
        }
        started.map_err(|error| failure::device(op, self, error))
    }

    /// Starts a run of a program on all the devices that it was compiled for, with one list of arguments for each, as
    /// [`Runtime::execute`] does on one device; returns the results of each device. On the host it waits for the end of
    /// the run.
    ///
    /// # Errors
    /// As [`Runtime::execute`].
    fn execute_on_all(
        &'static self,
        op: &'static str,
        program: &Arc<Compiled>,
        lists: Vec<Vec<Arc<Elements>>>,
        non_donatable: &[i64],
    ) -> Result<Vec<Vec<Buffer>>> {
        self.require_process(op)?;
        self.require_memory(op, program.bytes.saturating_mul(lists.len()))?;
        program.touch(self.programs.now());
        let may_block = program.may_block.load(Ordering::Relaxed);
        let (started, non_donatable) = (program.clone(), non_donatable.to_vec());
        // XLA on the host has one thread for each device. Devices in a collective keep their threads until all have
        // arrived. The start of one run too many keeps a thread too, and then none is left for the runs under way.
        let waits = self.is_host();
        let run = move || {
            let start_guard = self.multi_device_start.lock().unwrap_or_else(PoisonError::into_inner);
            let raw: Vec<Vec<&Buffer>> =
                lists.iter().map(|list| list.iter().map(|elements| elements.raw()).collect()).collect();
            let raw: Vec<&[&Buffer]> = raw.iter().map(Vec::as_slice).collect();
            let start = Instant::now();
            let wait_idle = |buffer: &Buffer| if waits { buffer.ready()?.wait() } else { Ok(()) };
            let mut inputs = raw.iter().copied().flatten();
            let results = inputs.try_for_each(|buffer| wait_idle(buffer)).and_then(|()| {
                let results = started.executable.run_all(&raw, &non_donatable)?;
                results.iter().flatten().try_for_each(wait_idle)?;
                Ok(results)
            });
            drop(start_guard);
            started
                .may_block
                .store(start.elapsed() > LONG_START || started.has_unbounded_loop, Ordering::Relaxed);
            results
        };
        let results = if may_block { caller::interruptible(run)? } else { caller::without_lock(run) };
        if self.is_host() && !caller::is_there() && !program.was_run.swap(true, Ordering::Relaxed) {
            shutdown::wait_before_next_exit_handler(results.iter().flatten().flatten());
        }
        results.map_err(|error| failure::device(op, self, error))
    }

    /// Rejects a run that needs more memory than the host has available, if the devices are the host's: the allocation
    /// would end the process. Other devices report such errors themselves.
    fn require_memory(&self, op: &'static str, bytes: usize) -> Result<()> {
        if !self.is_host() {
            return Ok(());
        }
        memory::reserve(bytes).map_err(|available| {
            let message = format!("{bytes} bytes are needed and {available} are available");
            let (client, live) = (self.name.clone(), self.live.text());
            DeviceError::Memory { op, client, message, live }.into()
        })
    }

    /// Rejects use in a process that was forked from the client's process.
    fn require_process(&self, op: &'static str) -> Result<()> {
        self.process.require(op, &self.name)
    }

    fn live(&self) -> &Live {
        &self.live
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Runtime({:?} on {}, {} devices)", self.name, self.platform, self.devices.len())
    }
}
