//! The tests of what is public, as one program: each program would be optimised and linked on its own.
//!
//! The programs beside it choose a compiler of kernels for their whole process, run as their own children, or need
//! packages of a gigabyte.

mod background;
mod compiled;
#[path = "../device/mod.rs"]
mod device;
mod eager;
mod many;
mod mesh;
mod plugin;
mod refusals;
mod xla;
