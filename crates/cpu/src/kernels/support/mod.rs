//! Shared by kernels of all families: element types, tiles, vector code, stores, scratch memory.

pub(crate) mod cast;
mod dispatch;
mod element;
pub(crate) mod epilogue;
pub(crate) mod peak;
pub(crate) mod scratch;
mod send_ptr;
pub(crate) mod simd;
pub(crate) mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod thread_memory;
pub(super) mod tile;

pub(crate) use cast::CastFrom;
pub(crate) use dispatch::{
    with_complex, with_compute, with_integer, with_position, with_real, with_unsigned, with_width,
};
pub(crate) use element::{Element, Integer, Plain, Real};
pub(crate) use send_ptr::SendPtr;
pub(crate) use tile::{StridedView, TILE, fill_tiles};
