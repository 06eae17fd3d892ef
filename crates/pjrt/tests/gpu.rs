//! Every operation compiles for an H200, on a machine that need not have one.
//!
//! `./dev test gpu-compile` installs what this needs and runs it; `cargo test` alone leaves it out, since the
//! packages are large.

mod rows;

use std::collections::BTreeSet;
use std::path::PathBuf;

use defn_core::{DType, form};
use defn_pjrt::{Attribute, CompileOptions, Plugin, Topology, lower};
use rows::{FAMILIES, Row, program};

/// What XLA has to know of an H200, as its text of a `GpuTargetConfigProto`.
const H200: &str = r#"gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
  shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 minor: 0 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 12 } device_description_str: "H200""#;

/// The folder of the packages `jax-cuda13-pjrt`, `nvidia-cuda-nvcc` and `nvidia-nvvm`.
fn packages() -> PathBuf {
    let folder = std::env::var_os("DEFN_CUDA_PACKAGES");
    folder.map(PathBuf::from).expect("`./dev test gpu-compile` sets DEFN_CUDA_PACKAGES")
}

fn compile(topology: &Topology, rows: &[Row], refused: &mut Vec<String>) -> usize {
    let text = lower(&program(rows).0, &[]).expect("every row has a lowering").text;
    match topology.compile(text.as_bytes(), &CompileOptions::default()) {
        Ok(executable) => {
            let bytes = executable.serialize().expect("an executable is written");
            assert!(bytes.windows(5).any(|part| part == b"sm_90"), "an executable for an H200 names it");
            bytes.len()
        }
        Err(error) if rows.len() == 1 => {
            refused.push(format!("{}: {error}", rows[0].name()));
            0
        }
        Err(_) => {
            let (first, second) = rows.split_at(rows.len() / 2);
            compile(topology, first, refused) + compile(topology, second, refused)
        }
    }
}

#[test]
fn every_operation_compiles_for_an_h200() {
    let plugin = Plugin::load(packages().join("jax_plugins/xla_cuda13/xla_cuda_plugin.so")).unwrap();
    let options = [("target_config", H200), ("topology", "1x1x1")]
        .map(|(name, value)| (name.to_owned(), Attribute::Text(value.to_owned())));
    let topology = plugin.topology("", &options).unwrap();
    let (mut refused, mut count) = (Vec::new(), 0);
    for family in FAMILIES {
        let start = std::time::Instant::now();
        let mut bytes = 0;
        for &dtype in DType::ALL {
            // One row of each operation: the device's compiler does not look at the elements.
            let mut names = BTreeSet::new();
            let mut rows = (family.rows)(dtype).rows;
            rows.retain(|row| names.insert(form::name(&row.op)));
            if !rows.is_empty() {
                bytes += compile(&topology, &rows, &mut refused);
            }
            count += rows.len();
            println!("{} {dtype}: {:.1} s", family.name, start.elapsed().as_secs_f64());
        }
        println!("{}: {bytes} bytes in {:.0} s", family.name, start.elapsed().as_secs_f64());
    }
    assert!(refused.is_empty(), "{} of {count} rows are refused:\n{}", refused.len(), refused.join("\n"));
}
