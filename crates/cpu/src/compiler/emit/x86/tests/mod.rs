//! Tests of the emitters for x86-64: generated code against scalar Rust, and its bytes against a decoder.

pub(crate) mod control;
pub(crate) mod harness;
pub(crate) mod lanes;
pub(crate) mod memory;
pub(crate) mod reference;
pub(crate) mod whole;

use crate::compiler::emit::Target;

/// All tests on the machine but those of ops lane by lane.
pub(crate) fn check_all(target: &dyn Target) {
    whole::check_vectors(target);
    whole::check_constants(target);
    whole::check_masks(target);
    memory::check_all(target);
    memory::check_parts(target);
    memory::check_gathers(target);
    control::check_generals(target);
    control::check_addresses(target);
    control::check_jumps(target);
    control::check_calls(target);
    control::check_frames(target);
}
