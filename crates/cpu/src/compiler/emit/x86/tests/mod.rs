//! Tests of the emitters for x86-64: generated code against scalar Rust, and its bytes against a decoder.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test is of some of the ops")]

pub(crate) mod control;
pub(crate) mod decode;
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
    control::check_jumps(target);
    control::check_calls(target);
    control::check_applications(target);
    control::check_frames(target);
}

/// The form of a fused product and its operands: which one is overwritten, and which is in memory.
pub(crate) fn fused_text(suffix: &str, memory: Option<usize>, tied: &[usize]) -> Option<String> {
    // The last is preferred, since it leaves two operands for memory.
    let tied = if tied.contains(&2) { 2 } else { *tied.first()? };
    let (form, operands) = match (tied, memory) {
        (0, Some(1)) => (132, "C,B"),
        (0, _) => (213, "B,C"),
        (1, Some(0)) => (132, "C,A"),
        (1, _) => (213, "A,C"),
        (_, Some(0)) => (231, "B,A"),
        _ => (231, "A,B"),
    };
    Some(format!("{form}{suffix} D,{operands}"))
}
