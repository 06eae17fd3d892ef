//! Tests of the emitter for AVX-512.

use super::Evex;
use crate::compiler::emit::x86::tests::{self, lanes};

/// Whether this machine can execute the code.
fn can_run() -> bool {
    ["avx512f", "avx512bw", "avx512dq", "avx512vl", "bmi2"].iter().all(|feature| match *feature {
        "avx512f" => is_x86_feature_detected!("avx512f"),
        "avx512bw" => is_x86_feature_detected!("avx512bw"),
        "avx512dq" => is_x86_feature_detected!("avx512dq"),
        "avx512vl" => is_x86_feature_detected!("avx512vl"),
        _ => is_x86_feature_detected!("bmi2"),
    })
}

#[test]
fn ops_are_those_of_scalars() {
    if can_run() {
        lanes::check_all(&Evex);
    }
}

#[test]
fn code_does_what_it_should() {
    if can_run() {
        tests::check_all(&Evex);
    }
}
