//! Tests of the emitters for x86-64: generated code against scalar Rust, and its bytes against a decoder.

pub(crate) mod harness;
pub(crate) mod lanes;
pub(crate) mod memory;
pub(crate) mod reference;
