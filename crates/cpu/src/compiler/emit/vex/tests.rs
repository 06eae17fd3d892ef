//! Tests of the emitter for AVX2.

use super::Vex;
use crate::compiler::emit::x86::tests::{self, lanes};

/// Whether this machine can execute the code.
fn can_run() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2")
}

#[test]
fn ops_are_those_of_scalars() {
    if can_run() {
        lanes::check_all(&Vex);
    }
}

#[test]
fn code_does_what_it_should() {
    if can_run() {
        tests::check_all(&Vex);
    }
}
