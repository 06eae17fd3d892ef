//! Makes a graph of the fuzzer's bytes, and compares the evaluator, the portable executor and machine code on it.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match defn_cpu::check_bytes(bytes) {
        Ok(true) => Corpus::Keep,
        // Nothing to compare.
        Ok(false) => Corpus::Reject,
        Err(difference) => panic!("{difference}"),
    }
});
