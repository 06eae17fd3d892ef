//! Kernels: parts of the host's programs that the compiler of this process runs, where it is faster than XLA.
//!
//! A program has each kernel as text, so that it can be kept in a file and run in another process. The text is compiled
//! when it is first called.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use defn_core::Result;
use defn_core::backend::{Checks, Compiler, Executable};
use defn_core::region::Region;
use rustc_hash::FxHashMap;

use super::program_cache::MAX_PROGRAMS;
use crate::api::Kernels;
use crate::lower::{PROGRAM, TARGET};

static COMPILER: OnceLock<Arc<dyn Compiler>> = OnceLock::new();

/// Sets the compiler of kernels, whose programs run on bytes of the host
/// ([`Executable::run_on_bytes`]), once for the process; later calls have no effect. Clients that have started before
/// run no kernels.
pub fn set_kernel_compiler(compiler: Arc<dyn Compiler>) {
    COMPILER.get_or_init(|| compiler);
}

/// Whether there is a compiler of kernels.
pub(super) fn are_there() -> bool {
    COMPILER.get().is_some()
}

/// How the host's programs call kernels.
pub(super) const KERNELS: Kernels = Kernels { target: TARGET, attribute: PROGRAM, run };

/// The compiled kernels by their texts.
static COMPILED: OnceLock<RwLock<FxHashMap<Box<str>, Arc<dyn Executable>>>> = OnceLock::new();

/// Runs the kernel of a text.
///
/// # Errors
/// The text of an error of the compiler or of the kernel.
fn run(text: &str, arguments: &[&[u8]], results: &mut [&mut [u8]]) -> std::result::Result<(), String> {
    let mut run = || compiled(text)?.run_on_bytes(arguments, results);
    run().map_err(|error| error.to_string())
}

fn compiled(text: &str) -> Result<Arc<dyn Executable>> {
    let kernels = COMPILED.get_or_init(RwLock::default);
    if let Some(kernel) = kernels.read().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Ok(kernel.clone());
    }
    let compiler = COMPILER.get().expect("only clients with a compiler of kernels call them");
    let kernel = compiler.compile(Arc::new(Region::from_text(text)?), Checks::default())?;
    let mut kernels = kernels.write().unwrap_or_else(PoisonError::into_inner);
    if kernels.len() >= MAX_PROGRAMS {
        // Programs that still call them compile them again.
        kernels.clear();
    }
    Ok(kernels.entry(text.into()).or_insert(kernel).clone())
}
