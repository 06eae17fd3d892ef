//! The limit on programs, set to a small number, with programs that XLA compiles.

use defn_core::builder::*;
use defn_core::{DType, Shape};

use super::*;
use crate::runtime::{ClientSpec, backend, register};
use crate::wheel;

/// The number of memory regions that this process maps, if the system reports it.
fn regions() -> Option<usize> {
    Some(std::fs::read_to_string("/proc/self/maps").ok()?.lines().count())
}

#[test]
fn programs_are_let_go_by_age_and_give_back_their_memory() {
    let clients = ["kept", "kept too"].map(|client| {
        register(client, ClientSpec::new(wheel::file("xla_cpu_pjrt.so"))).unwrap();
        let backend = backend("test", Some(client), None).unwrap();
        (backend.runtime(), Ops::new(backend, Source::Unknown))
    });
    let [(first, mut ops), (second, mut others)] = clients;
    let compile_iota = |ops: &mut Ops, size: usize| ops.iota(Shape::new(&[size]), DType::F32, None).unwrap();
    let mut before = None;
    for size in 2..=3 * MAX_PROGRAMS {
        compile_iota(&mut ops, size);
        // A program that is in use all the time, as an eager op.
        compile_iota(&mut ops, 1);
        assert!(first.cache_report().entries <= MAX_PROGRAMS);
        if size == MAX_PROGRAMS {
            before = regions();
        }
    }
    assert_eq!(first.cache_report().compiles, 3 * MAX_PROGRAMS as u64, "what is in use is compiled once");
    // The first client has filled the caches; the second one keeps a few programs all the same.
    for size in 1..=2 * MAX_PROGRAMS {
        compile_iota(&mut others, size);
        let (first, second) = (first.cache_report().entries, second.cache_report().entries);
        assert!(first + second <= MAX_PROGRAMS + PROTECTED_ENTRIES, "{first} and {second} programs");
    }
    // Other threads and tests take some.
    if let (Some(before), Some(after)) = (before, regions()) {
        assert!(
            after < before + MAX_PROGRAMS,
            "{before} regions with {MAX_PROGRAMS} programs, {after} at the end"
        );
    }
}
