//! The location of the wheel of XLA's plugin for the CPU.

use std::path::{Path, PathBuf};

/// A file of the wheel `xla-cpu-pjrt`: in the folder that `DEFN_PJRT_WHEEL` names, else in the repository's `.venv`,
/// where `./dev test` installs it.
pub fn file(name: &str) -> PathBuf {
    let folder = std::env::var_os("DEFN_PJRT_WHEEL").map(PathBuf::from).or_else(|| {
        let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
        let pythons = std::fs::read_dir(lib).ok()?;
        pythons
            .flatten()
            .map(|python| python.path().join("site-packages/xla_plugins/xla_cpu_pjrt"))
            .find(|folder| folder.is_dir())
    });
    folder
        .expect("the wheel xla-cpu-pjrt is in .venv, by `./dev test`, or where DEFN_PJRT_WHEEL says")
        .join(name)
}
