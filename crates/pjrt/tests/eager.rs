//! Ops at once on devices, and moving tensors between them.

mod device;

use std::sync::Arc;

use defn_core::backend::{Backend, BufferState, HostMemory};
use defn_core::builder::*;
use defn_core::{DType, ErrorClass, Number, Scalar, Tensor};
use defn_cpu::cpu_backend;
use defn_pjrt::{PjrtBuffer, backend};

use device::{dynamic, floats, ops, own_place, place, read, ty};

#[test]
fn a_thousand_sums_of_one_signature_compile_once() {
    let place = own_place("sums");
    let mut ops = ops(&place);
    let one = floats(&*place, &[1.0, 2.0]);
    let mut sum = one.clone();
    for _ in 0..1000 {
        sum = ops.add(&sum, &one).unwrap();
    }
    assert_eq!(read(&sum), [1001.0, 2002.0]);
    assert_eq!(place.runtime().cache_report().compiles, 1);
}

#[test]
fn windows_anywhere_are_one_program() {
    let place = own_place("windows");
    let mut ops = ops(&place);
    let x = floats(&*place, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for start in 0..5_u8 {
        let window = ops.slice_along_axis(&x, i64::from(start), 2, 0, 1).unwrap();
        assert_eq!(read(&window), [f32::from(start), f32::from(start) + 1.0]);
    }
    assert_eq!(place.runtime().cache_report().compiles, 1);
}

#[test]
fn a_place_prints_its_client_and_device() {
    let place = place(2);
    assert_eq!(place.place(), "pjrt<host:2>");
    assert_eq!(place.name(), "pjrt");
    assert_eq!(format!("{place:?}"), "pjrt<host:2>");
}

#[test]
fn every_type_goes_there_and_back() {
    let place = place(0);
    for &dtype in DType::ALL {
        let number = Scalar::new(dtype, Number::Int(1)).unwrap();
        let bytes: Vec<u8> = number.to_bytes().repeat(3);
        let ty = ty(dtype, &[3]);
        let buffer = place.from_host(&ty, HostMemory::from(bytes.clone())).unwrap();
        let mut read = vec![0; bytes.len()];
        buffer.read(&mut read).unwrap();
        assert_eq!(read, bytes, "{dtype}");
        let each = dtype.storage_bytes();
        let mut first = vec![0; each];
        buffer.read(&mut first).unwrap();
        assert_eq!(first, bytes[..each], "{dtype}");
    }
}

#[test]
fn unused_bits_of_small_integers_are_of_no_account() {
    let place = place(0);
    let buffer = place.from_host(&ty(DType::S4, &[2]), HostMemory::from(vec![0x0f, 0xf1])).unwrap();
    let mut read = [0; 2];
    buffer.read(&mut read).unwrap();
    assert_eq!(read, [0xff, 0x01]);
}

#[test]
fn a_copy_at_the_same_place_outlives_its_source() {
    let place = place(0);
    let x = floats(&*place, &[1.0, 2.0]);
    let copy = x.copy_to("backend_copy", &dynamic(&place)).unwrap();
    assert!(x.buffer().unwrap().deallocate().unwrap());
    assert!(!x.buffer().unwrap().deallocate().unwrap());
    assert_eq!(x.buffer().unwrap().state(), BufferState::Freed);
    assert_eq!(read(&copy), [1.0, 2.0]);
    let error = x.host_bytes("to_binary").unwrap_err();
    assert_eq!(
        error.to_string(),
        "to_binary: the tensor's memory was freed; keep a copy, or do not use it after"
    );
}

#[test]
fn tensors_go_to_other_devices_other_clients_and_back() {
    let (first, second, other) = (place(0), place(3), own_place("other"));
    let x = floats(&*first, &[1.0, 2.0]);
    let there = x.copy_to("backend_copy", &dynamic(&second)).unwrap();
    assert_eq!(there.backend().unwrap().place(), "pjrt<host:3>");
    let elsewhere = there.transfer_to("backend_transfer", &dynamic(&other)).unwrap();
    assert_eq!(elsewhere.backend().unwrap().place(), "pjrt<other:0>");
    assert_eq!(there.buffer().unwrap().state(), BufferState::Freed);
    let host = elsewhere.transfer_to("backend_transfer", &(cpu_backend())).unwrap();
    assert_eq!(host.backend().unwrap().place(), "cpu");
    assert_eq!((read(&host), read(&x)), (vec![1.0, 2.0], vec![1.0, 2.0]));
    let same = x.transfer_to("backend_transfer", &dynamic(&first)).unwrap();
    assert_eq!(x.buffer().unwrap().state(), BufferState::Live);
    assert!(Arc::ptr_eq(same.buffer().unwrap(), x.buffer().unwrap()));
}

#[test]
fn tensors_of_the_host_come_to_the_device() {
    let place = place(1);
    let (here, host) = (floats(&*place, &[1.0]), floats(&*cpu_backend(), &[2.0]));
    for default in [dynamic(&place), cpu_backend()] {
        let mut ops = Ops::new(default, Source::Unknown);
        for (a, b) in [(&here, &host), (&host, &here)] {
            let sum = ops.add(a, b).unwrap();
            assert_eq!((read(&sum), sum.backend().unwrap().place()), (vec![3.0], "pjrt<host:1>".to_owned()));
        }
    }
}

#[test]
fn operands_on_two_devices_conflict() {
    let (first, second, third) = (place(0), place(1), place(2));
    let (a, b) = (floats(&*first, &[1.0]), floats(&*second, &[2.0]));
    let error = ops(&third).add(&a, &b).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Backend);
    assert_eq!(
        error.to_string(),
        "add: the operands are on pjrt<host:0> and pjrt<host:1>; move one with backend_copy or backend_transfer"
    );
    // The default one gives way.
    let sum = ops(&first).add(&a, &b).unwrap();
    assert_eq!(sum.backend().unwrap().place(), "pjrt<host:1>");
}

#[test]
fn what_is_not_held_is_freed() {
    let place = own_place("freed");
    let runtime = place.runtime();
    let x = floats(&*place, &[1.0; 64]);
    assert_eq!(runtime.live_buffers(), 1);
    let mut ops = ops(&place);
    let y = ops.exp(&x).unwrap();
    let z = ops.reshape(&y, [64_i64], None).unwrap();
    assert_eq!(runtime.live_buffers(), 2, "a tensor of the same sizes takes no memory");
    drop((x, y));
    assert_eq!(runtime.live_buffers(), 1);
    drop(z);
    assert_eq!(runtime.live_buffers(), 0);
}

#[test]
fn positions_out_of_range_are_errors() {
    let place = place(0);
    let x = floats(&*place, &[1.0, 2.0]);
    let at = |index: i64| {
        let bytes = HostMemory::from(index.to_ne_bytes().to_vec());
        Tensor::concrete(ty(DType::S64, &[1]), place.from_host(&ty(DType::S64, &[1]), bytes).unwrap())
    };
    let mut ops = ops(&place);
    assert_eq!(read(&ops.take(&x, at(1), 0).unwrap()), [2.0]);
    let error = ops.take(&x, at(2), 0).unwrap_err();
    assert_eq!(error.to_string(), "take: index 2 on axis 0 of f32[2], it must be in 0..2");
}

#[test]
fn a_tensor_is_waited_for() {
    let place = place(0);
    let x = floats(&*place, &[1.0]);
    let buffer = x.buffer().unwrap().as_any().downcast_ref::<PjrtBuffer>().unwrap();
    buffer.block_until_ready(&|| Ok(())).unwrap();
    assert_ne!(buffer.pointer(&|| Ok(())).unwrap(), 0);
}

#[test]
fn devices_out_of_range_are_named() {
    place(0);
    let error = backend("backend", Some("host"), Some(4)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "backend: device_id is 4, the client \"host\" has 4 devices; it must be in 0..4"
    );
    let error = backend("backend", Some("nowhere"), None).unwrap_err();
    assert!(error.to_string().starts_with("backend: the client \"nowhere\" is unknown, it must be one of "));
}
