//! Devices that need not be there: programs are compiled for them here and run where they are.

use std::path::Path;
use std::sync::Arc;

use defn_core::Result;
use defn_core::backend::Backend;
use defn_core::device::DeviceError;
use defn_core::region::Region;

use super::compiler::prepare;
use super::saved::Saved;
use super::{CompilerOptions, failure, registry};
use crate::api::Topology;
use crate::plugin::Attribute;

/// What XLA asks of a GPU that is not there, in the words of its `GpuTargetConfigProto`: NVIDIA's figures for it.
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

/// The targets: their names, and what their plugins are told.
const TARGETS: &[(&str, &str)] = &[("h200", H200)];

/// A device to compile for.
pub struct Target {
    name: &'static str,
    topology: Topology,
}

impl Target {
    /// The target of a name, by a plugin for its platform, from the plugin's file. XLA's CUDA plugin calls NVIDIA's
    /// tools: `ptxas` is looked for on `PATH`, and the folder that holds `nvvm/libdevice` is named in `XLA_FLAGS` by
    /// `--xla_gpu_cuda_data_dir=`.
    ///
    /// # Errors
    /// A name that is unknown, a file that is no plugin, and a plugin that knows no such device.
    pub fn new(name: &str, plugin: impl AsRef<Path>) -> Result<Target> {
        let Some((name, config)) = TARGETS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = TARGETS.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            let (target, known) = (name.to_owned(), known.join(", "));
            return Err(DeviceError::UnknownTarget { target, known }.into());
        };
        let options = [
            ("target_config".to_owned(), Attribute::Text((*config).to_owned())),
            ("topology".to_owned(), Attribute::Text("1x1x1".to_owned())),
        ];
        let plugin = registry::load(plugin.as_ref())?;
        let topology = plugin.topology("", &options).map_err(failure::plugin)?;
        Ok(Target { name, topology })
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.name
    }

    /// The device as the plugin describes it.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Compiles, folding scalar constants on `fold`, and gives the executable as bytes, which
    /// [`PjrtCompiler::load`](super::PjrtCompiler::load) takes where the device is. The arguments at the positions
    /// `donate` are used up by runs.
    ///
    /// # Errors
    /// What the graph or the plugin has against it, and an argument whose memory no result can take.
    pub fn compile(
        &self,
        program: &Region,
        fold: &Arc<dyn Backend>,
        options: &CompilerOptions,
        donate: &[usize],
    ) -> Result<Vec<u8>> {
        let options = options.to_compile();
        let platform = self.topology.platform_name().map_err(failure::plugin)?;
        let mut saved = Saved::new(&platform, program, donate);
        prepare(program, fold, donate, &mut |piece| {
            let made = self.topology.compile(piece.text.as_bytes(), &options).map_err(failure::plugin)?;
            saved.add(&piece.text, made.serialize().map_err(failure::plugin)?);
            Ok(())
        })?;
        Ok(saved.to_bytes())
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({:?})", self.name)
    }
}
