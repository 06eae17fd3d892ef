//! The tests of what is public, as one program: each program would be optimised and linked on its own.
//!
//! The programs beside it count the allocations of their whole process.

mod background;
mod buffers;
mod calls;
mod common;
mod compiled;
mod composites;
mod convert;
mod elementwise;
mod evaluator;
mod fast_path;
mod gathers;
mod grad;
#[path = "../../../core/tests/graph/common/mod.rs"]
mod graphs;
mod linalg;
mod loops;
mod positions;
mod random;
mod simplified;
mod structural;
