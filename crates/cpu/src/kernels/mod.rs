//! Kernels by op family: views in, views out. They neither allocate nor choose their threads.
//!
//! Callers lend their memory, so another thread may write an operand while a kernel reads it. Values may then be torn,
//! but no access is out of bounds: no kernel relies on two reads of one element being equal. Elements that are counted
//! first and moved later are copied once into the kernel's own memory. The code that uses a position brings it into
//! range.

#![allow(
    clippy::needless_range_loop,
    reason = "iterators are several times as much code to compile, for each type"
)]

pub(crate) mod create;
pub(crate) mod elementwise;
pub(crate) mod fourier;
pub(crate) mod index;
pub(crate) mod linalg;
pub(crate) mod matrix;
pub(crate) mod order;
pub(crate) mod reduce;
pub(crate) mod shape;
mod support;
pub(crate) mod window;

pub(crate) use support::simd;
#[cfg(test)]
pub(crate) use support::simd::{at_tested, tested};
#[cfg(test)]
pub(crate) use support::testing;
pub(crate) use support::{
    CastFrom, Element, Integer, Plain, Real, SendPtr, StridedView, TILE, cast, epilogue, fill_tiles, peak,
    scratch, stream, thread_memory, with_complex, with_compute, with_integer, with_position, with_real,
    with_unsigned, with_width,
};
