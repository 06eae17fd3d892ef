//! The tests of the facade, as one program: each program would be compiled and linked on its own.
//!
//! The programs beside it run the compiler, or have features of their own.

mod background;
mod checkpoints;
mod data;
mod derivatives;
#[cfg(feature = "pjrt")]
mod devices;
mod documented;
mod feel;
mod files;
mod linalg;
mod memory;
mod programs;
mod traced;
mod tree_functions;
mod trees;
mod vectorized;
#[cfg(feature = "pjrt")]
#[path = "../../../pjrt/tests/wheel/mod.rs"]
mod wheel;
