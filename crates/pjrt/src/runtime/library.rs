//! Functions of libraries that a plugin's programs call, such as factorizations by cuSOLVER.
//!
//! A plugin for CUDA has none for factorizations: XLA would run them as loops. JAX's package beside the plugin has
//! functions that call cuSOLVER. They are given to the plugin before its first program is compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::CustomCall;
use crate::lower::{Hardware, SOLVER_CALLS};
use crate::plugin::Plugin;

/// XLA's name of the platform of NVIDIA's GPUs.
const PLATFORM: &str = "CUDA";

enum Library {
    /// The functions, which the plugin does not know yet.
    Found(Vec<CustomCall>),
    /// Whether the plugin has taken all that programs need.
    Registered(bool),
}

static LIBRARIES: Mutex<BTreeMap<PathBuf, Library>> = Mutex::new(BTreeMap::new());

fn libraries() -> MutexGuard<'static, BTreeMap<PathBuf, Library>> {
    LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names of the functions that programs for NVIDIA's GPUs call for factorizations, if [`set_library`] gives all of
/// them. They are those of JAX's package `jax-cuda13-plugin`, or of the same package for another version of CUDA.
pub fn library_calls() -> &'static [&'static str] {
    &SOLVER_CALLS
}

/// Gives a plugin for CUDA, by its file, the functions that its programs call ([`library_calls`]). The first call for a
/// plugin counts. It has an effect on clients that start later, and on targets that are made later.
pub fn set_library(plugin: impl AsRef<Path>, calls: Vec<CustomCall>) {
    libraries().entry(plugin.as_ref().to_owned()).or_insert(Library::Found(calls));
}

/// What a plugin's devices run.
pub(super) fn hardware(plugin: &Plugin) -> Hardware {
    if has_solver(plugin) { Hardware::DeviceWithSolver } else { Hardware::Device }
}

/// Whether programs of a plugin can call the solver's functions, which the plugin is given at the first call.
fn has_solver(plugin: &Plugin) -> bool {
    let mut libraries = libraries();
    let Some(library) = libraries.get_mut(plugin.path()) else { return false };
    let registered = match library {
        Library::Registered(registered) => *registered,
        Library::Found(calls) => SOLVER_CALLS.iter().all(|name| {
            let call = calls.iter().find(|call| call.name() == *name);
            call.is_some_and(|call| plugin.register_library_call(PLATFORM, call))
        }),
    };
    *library = Library::Registered(registered);
    registered
}
