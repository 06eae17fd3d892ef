//! Devices that need not be present: programs are compiled for them here, and run where they are.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Checks, Compiler, Executable, Hooks};
use defn_core::background::First;
use defn_core::device::DeviceError;
use defn_core::region::Region;
use defn_core::{Result, Tensor};

use super::compiler::{PjrtCompiler, prepare};
use super::execution::PjrtExecutable;
use super::saved::Saved;
use super::{CompilerOptions, HOST, failure, library, machine, registry};
use crate::api::Topology;
use crate::lower::Hardware;
use crate::plugin::Attribute;

/// XLA's description of a GPU that is not present, as text of its `GpuTargetConfigProto`, with NVIDIA's figures.
const H200: &str = r#"
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 150000000000 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 minor: 0 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 }
device_description_str: "NVIDIA H200"
"#;

/// The targets: their names, and their descriptions for the plugin.
const TARGETS: &[(&str, &str)] = &[("h200", H200)];

/// A device to compile for.
pub struct Target {
    name: &'static str,
    /// The name of the client that drives such a device where it is present.
    client: String,
    topology: Topology,
    hardware: Hardware,
}

impl Target {
    /// The target of a name, by the file of a plugin for its platform. `client` names the client that drives such a
    /// device, where programs run. XLA's CUDA plugin calls NVIDIA's tools `ptxas` and `nvvm/libdevice`. It finds them
    /// in NVIDIA's packages that are installed beside its own, on `PATH`, and in the folder that
    /// `--xla_gpu_cuda_data_dir=` names in `XLA_FLAGS`.
    ///
    /// # Errors
    /// An unknown name, a file that is not a plugin, or a plugin without such a device.
    pub fn new(name: &str, client: &str, plugin: impl AsRef<Path>) -> Result<Target> {
        let Some((name, config)) = TARGETS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = TARGETS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            let (target, known) = (name.to_owned(), known.join(", "));
            return Err(DeviceError::UnknownTarget { op: "compile", target, known }.into());
        };
        let options = [
            ("target_config".to_owned(), Attribute::Text((*config).to_owned())),
            ("topology".to_owned(), Attribute::Text("1x1x1".to_owned())),
        ];
        let plugin = registry::load(plugin.as_ref())?;
        let topology = plugin.topology("", &options).map_err(failure::plugin)?;
        let hardware = library::hardware(&plugin);
        Ok(Target { name, client: client.to_owned(), topology, hardware })
    }

    /// The target of a name, by the plugin of a client, which is not started.
    ///
    /// # Errors
    /// As [`Target::new`], or an unknown client.
    pub fn of_client(name: &str, client: &str) -> Result<Target> {
        Target::new(name, client, registry::plugin_file("compile", client)?)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What its programs may call.
    pub fn hardware(&self) -> Hardware {
        self.hardware
    }

    /// The plugin's description of the device.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({:?})", self.name)
    }
}

/// Compiles for a device that need not be present.
#[derive(Debug)]
pub struct TargetCompiler {
    target: Arc<Target>,
    fold: Arc<dyn Backend>,
    options: CompilerOptions,
}

impl TargetCompiler {
    /// A compiler for a target. It folds scalar constants on `fold`, a backend of the host. It does not store programs
    /// in a folder.
    pub fn new(target: Arc<Target>, fold: Arc<dyn Backend>, options: CompilerOptions) -> TargetCompiler {
        TargetCompiler { target, fold, options }
    }

    /// Compiles, as [`Compiler::compile_donating`] does.
    ///
    /// # Errors
    /// As there.
    pub fn executable(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<TargetExecutable> {
        if checks != Checks::default() {
            return Err(failure::not_written());
        }
        let options = self.options.to_compile();
        let topology = &self.target.topology;
        let platform = topology.platform_name().map_err(failure::plugin)?.to_lowercase();
        let hardware = self.target.hardware;
        let mut saved = Saved::new(&platform, self.target.name, hardware, &program, donate);
        let plan = prepare(&program, &self.fold, donate, hardware, &mut |segment| {
            let executable =
                topology.compile(segment.program.text.as_bytes(), &options).map_err(|error| {
                    let rejected = failure::rejected_flag(&self.target.client, &options, &error);
                    rejected.unwrap_or_else(|| failure::plugin(error))
                })?;
            let bytes = executable.serialize().map_err(failure::plugin)?;
            saved.add(segment.digest(), bytes);
            Ok(())
        })?;
        let (fold, options, client) = (self.fold.clone(), self.options.clone(), self.target.client.clone());
        let used = (0..plan.used.len()).map(|input| plan.used[input] || donate.contains(&input)).collect();
        Ok(TargetExecutable { program, saved, used, client, fold, options, loaded: OnceLock::new() })
    }
}

impl Compiler for TargetCompiler {
    fn name(&self) -> &str {
        "pjrt"
    }

    fn compile_donating(
        &self,
        program: Arc<Region>,
        checks: Checks,
        donate: &[usize],
    ) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(self.executable(program, checks, donate)?))
    }

    fn in_background(&self, _: &Arc<Region>, _: Checks, _: &[usize]) -> Result<Option<First>> {
        Err(failure::not_in_background("a target"))
    }
}

/// A program that was compiled for a target. It runs where a client of the target's platform can start.
pub struct TargetExecutable {
    program: Arc<Region>,
    saved: Saved,
    /// For each input, whether a run uses it.
    used: Vec<bool>,
    client: String,
    fold: Arc<dyn Backend>,
    options: CompilerOptions,
    loaded: OnceLock<PjrtExecutable>,
}

impl TargetExecutable {
    /// The program, loaded on the device, which must be present.
    fn loaded(&self) -> Result<&PjrtExecutable> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let backend = registry::backend("run", Some(&self.client), None).map_err(|error| {
            let here = format!("{HOST} ({}), and {}", machine::processor(), error.kind());
            let required = "that device is required; save the executable, and load it where the device is";
            self.saved.mismatch("run", here, required)
        })?;
        let compiler = PjrtCompiler::new(backend, self.fold.clone(), self.options.clone());
        let loaded = compiler.restore(&self.saved)?;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

impl Executable for TargetExecutable {
    fn program(&self) -> &Arc<Region> {
        &self.program
    }

    fn uses(&self, input: usize) -> bool {
        self.used[input]
    }

    fn run(
        &self,
        backend: &Arc<dyn Backend>,
        arguments: Vec<Tensor>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Tensor>> {
        self.loaded()?.run(backend, arguments, hooks)
    }

    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        hooks: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        self.loaded()?.run_each(lists, hooks)
    }

    fn to_bytes(&self, note: &[u8]) -> Result<Vec<u8>> {
        Ok(self.saved.to_bytes(note))
    }
}

impl fmt::Debug for TargetExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetExecutable({:?} for {:?})", self.program, self.saved)
    }
}
