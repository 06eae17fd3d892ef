//! The CPU backend: buffers, kernels, a compiler and a thread pool.
//!
//! [`cpu_backend`] is all that most programs need: it places tensors and runs one op at a time.

mod backend;
mod buffer;
mod compiler;
#[cfg(any(test, fuzzing))]
mod difference;
mod kernels;
mod memory;
mod modes;
mod par;
mod roofline;
mod settings;
mod stack;
mod view;

#[doc(hidden)]
pub use backend::with_epilogues_always;
pub use backend::{CpuBackend, cpu_backend};
pub use buffer::{CpuBuffer, host_copy};
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub use compiler::random_graphs::check_bytes;
#[doc(hidden)]
pub use compiler::refused_memory_for_code;
pub use compiler::{CpuCompiler, machine_code};
pub use defn_core::memory::available as available_memory;
pub use memory::{Allocator, MemoryReport, held_bytes, live_bytes, memory_report, peak_bytes, reset_peak};
pub use modes::DefaultModes;
pub use par::{ThreadCount, set_poll, set_threads, threads, with_threads};
pub use roofline::Roofline;
pub use settings::MAX_THREADS;
