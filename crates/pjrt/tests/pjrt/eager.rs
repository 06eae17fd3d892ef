//! Eager ops on devices, and moving tensors between them.

use std::any::Any;
use std::sync::Arc;

use defn_core::backend::{
    Backend, Buffer, BufferState, Buffers, Checks, Compiler, Gone, HostMemory, Operand,
};
use defn_core::builder::*;
use defn_core::location::during;
use defn_core::op::{Block, Op};
use defn_core::{DType, ErrorClass, ErrorKind, Location, Number, Result, Scalar, Tensor, TensorType};
use defn_cpu::cpu_backend;
use defn_pjrt::{PjrtBuffer, backend};
use smallvec::SmallVec;

use crate::device::{compiler, dynamic, floats, host_backend, ops, own_backend, read, run, trace, ty};

fn pjrt_buffer(tensor: &Tensor) -> &PjrtBuffer {
    tensor.buffer().unwrap().as_any().downcast_ref().unwrap()
}

#[test]
fn a_thousand_sums_of_one_signature_compile_once() {
    let backend = own_backend("sums");
    let mut ops = ops(&backend);
    let one = floats(&*backend, &[1.0, 2.0]);
    let mut sum = one.clone();
    for _ in 0..1000 {
        sum = ops.add(&sum, &one).unwrap();
    }
    assert_eq!(read(&sum), [1001.0, 2002.0]);
    assert_eq!(backend.runtime().cache_report().compiles, 1);
}

#[test]
fn windows_anywhere_are_one_program() {
    let backend = own_backend("windows");
    let mut ops = ops(&backend);
    let x = floats(&*backend, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for start in 0..5_u8 {
        let window = ops.slice_along_axis(&x, i64::from(start), 2, 0, 1).unwrap();
        assert_eq!(read(&window), [f32::from(start), f32::from(start) + 1.0]);
    }
    assert_eq!(backend.runtime().cache_report().compiles, 1);
}

#[test]
fn a_device_name_has_its_client_and_its_number() {
    let backend = host_backend(2);
    assert_eq!(backend.device_name(), "pjrt<host:2>");
    assert_eq!(backend.name(), "pjrt");
    assert_eq!(format!("{backend:?}"), "pjrt<host:2>");
}

#[test]
fn every_type_goes_there_and_back() {
    let backend = host_backend(0);
    for &dtype in DType::ALL {
        let number = Scalar::new(dtype, Number::Int(1)).unwrap();
        let bytes: Vec<u8> = number.to_bytes().repeat(3);
        let ty = ty(dtype, &[3]);
        let buffer = backend.from_host(&ty, HostMemory::from(bytes.clone())).unwrap();
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
    let backend = host_backend(0);
    let buffer = backend.from_host(&ty(DType::S4, &[2]), HostMemory::from(vec![0x0f, 0xf1])).unwrap();
    let mut read = [0; 2];
    buffer.read(&mut read).unwrap();
    assert_eq!(read, [0xff, 0x01]);
}

#[test]
fn a_copy_at_the_same_place_has_memory_of_its_own() {
    let backend = own_backend("copies");
    let x = floats(&*backend, &[1.0, 2.0]);
    let copy = x.copy_to("backend_copy", &dynamic(&backend)).unwrap();
    assert_eq!(backend.runtime().live_buffers(), 2);
    assert_ne!(pjrt_buffer(&x).pointer(&|| Ok(())).unwrap(), pjrt_buffer(&copy).pointer(&|| Ok(())).unwrap());
    assert_ne!(pjrt_buffer(&x).number(), pjrt_buffer(&copy).number());
    let at = Location { file: "user.rs".into(), line: 3 };
    assert!(during(at.clone(), || x.buffer().unwrap().deallocate()).unwrap());
    assert!(!x.buffer().unwrap().deallocate().unwrap());
    assert_eq!(x.buffer().unwrap().state(), BufferState::Gone(Gone { how: "freed", by: Some(at) }));
    assert_eq!((backend.runtime().live_buffers(), pjrt_buffer(&x).number()), (1, None));
    assert_eq!(read(&copy), [1.0, 2.0]);
    let error = x.host_bytes("to_binary").unwrap_err();
    assert_eq!(
        error.to_string(),
        "to_binary: the tensor's memory was freed at user.rs:3; keep a copy, or do not use it after"
    );
}

/// A backend that rejects all tensors.
#[derive(Debug)]
struct Full;

impl Backend for Full {
    fn name(&self) -> &str {
        "full"
    }

    fn device_name(&self) -> String {
        "full".to_owned()
    }

    fn from_host(&self, ty: &TensorType, _: HostMemory) -> Result<Arc<dyn Buffer>> {
        Err(ErrorKind::OutOfMemory { op: "full", requested: ty.byte_size(), available: 0 }.into())
    }

    fn run(&self, _: &Op, _: SmallVec<[Operand; 3]>, _: &[TensorType]) -> Result<Buffers> {
        unreachable!("nothing is there to run on")
    }

    fn has_native(&self, _: &Block) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn moving_frees_the_source_also_when_it_fails() {
    let (backend, full): (_, Arc<dyn Backend>) = (own_backend("failing"), Arc::new(Full));
    let x = floats(&*backend, &[1.0, 2.0]);
    assert_eq!(x.copy_to("backend_copy", &full).unwrap_err().class(), ErrorClass::OutOfMemory);
    assert_eq!(x.buffer().unwrap().state(), BufferState::Live);
    assert_eq!(x.transfer_to("backend_transfer", &full).unwrap_err().class(), ErrorClass::OutOfMemory);
    assert_eq!(x.buffer().unwrap().state(), BufferState::Gone(Gone { how: "freed", by: None }));
    assert_eq!(backend.runtime().live_buffers(), 0);
}

#[test]
fn the_host_reads_a_tensor_where_it_lies() {
    let backend = own_backend("views");
    let x = floats(&*backend, &[1.0, 2.0, 3.0]);
    let address = pjrt_buffer(&x).pointer(&|| Ok(())).unwrap();
    let views: Vec<HostMemory> = (0..3).map(|_| x.buffer().unwrap().host().unwrap().unwrap()).collect();
    for view in &views {
        assert_eq!((view.bytes().as_ptr().addr(), view.bytes().len()), (address, 12));
    }
    x.buffer().unwrap().deallocate().unwrap();
    assert_eq!(backend.runtime().live_buffers(), 1, "who reads it holds it");
    assert_eq!(views[2].bytes()[4..8], 2f32.to_ne_bytes());
    drop(views);
    assert_eq!(backend.runtime().live_buffers(), 0);
    // The plugin chooses the layout of elements of less than a byte.
    let small = backend.from_host(&ty(DType::S4, &[2]), HostMemory::from(vec![1, 2])).unwrap();
    assert!(small.host().unwrap().is_none());
    let none = backend.from_host(&ty(DType::F32, &[0]), HostMemory::from(Vec::new())).unwrap();
    assert!(none.host().unwrap().unwrap().bytes().is_empty());
}

#[test]
fn memory_of_the_host_is_read_where_it_lies() {
    /// The floats 1, 2, 3 and 4, aligned as programs need.
    #[repr(align(64))]
    struct Constant([u8; 16]);
    static CONSTANT: Constant = Constant([0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64]);
    /// Memory whose release the test can observe.
    struct BorrowedMemory(Arc<()>);
    impl AsRef<[u8]> for BorrowedMemory {
        fn as_ref(&self) -> &[u8] {
            assert!(Arc::strong_count(&self.0) > 1);
            &CONSTANT.0
        }
    }
    let backend = own_backend("borrowed");
    let owner = Arc::new(());
    let memory = HostMemory::new(Arc::new(BorrowedMemory(owner.clone())));
    let address = memory.bytes().as_ptr().addr();
    let sizes = ty(DType::F32, &[4]);
    let x = Tensor::concrete(sizes.clone(), backend.borrow(&sizes, memory.clone()).unwrap());
    assert_eq!(pjrt_buffer(&x).pointer(&|| Ok(())).unwrap(), address);
    assert_eq!(read(&ops(&backend).add(&x, &x).unwrap()), [2.0, 4.0, 6.0, 8.0]);
    // A program that donates its argument gets a copy of borrowed memory.
    let region = trace(&[sizes], |ops, x| Ok(vec![ops.add(&x[0], &x[0])?]));
    let program = compiler(&backend).compile_donating(region, Checks::default(), &[0]).unwrap();
    let out = run(&*program, &backend, vec![x.clone()]).unwrap();
    assert_eq!(read(&out[0]), [2.0, 4.0, 6.0, 8.0]);
    assert_ne!(pjrt_buffer(&out[0]).pointer(&|| Ok(())).unwrap(), address);
    assert_eq!(memory.bytes()[4..8], 2f32.to_ne_bytes());
    drop((x, memory));
    for _ in 0..1000 {
        if Arc::strong_count(&owner) == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(Arc::strong_count(&owner), 1, "it is let go with the last tensor");
    let odd = HostMemory::from(vec![0; 17]).part(1..17);
    let x = backend.borrow(&ty(DType::F32, &[4]), odd.clone()).unwrap();
    assert_ne!(x.host().unwrap().unwrap().bytes().as_ptr(), odd.bytes().as_ptr(), "it is not aligned");
}

#[test]
fn of_two_clients_of_the_host_the_first_operands_is_picked() {
    let (first, second) = (own_backend("one"), own_backend("two"));
    let (a, b) = (floats(&*first, &[1.0]), floats(&*second, &[2.0]));
    for (left, right, expected_device) in [(&a, &b, "pjrt<one:0>"), (&b, &a, "pjrt<two:0>")] {
        let sum = ops(&first).add(left, right).unwrap();
        assert_eq!(
            (read(&sum), sum.backend().unwrap().device_name()),
            (vec![3.0], expected_device.to_owned())
        );
    }
}

#[test]
fn tensors_go_to_other_devices_other_clients_and_back() {
    let (first, second, other) = (host_backend(0), host_backend(3), own_backend("other"));
    let x = floats(&*first, &[1.0, 2.0]);
    let moved = x.copy_to("backend_copy", &dynamic(&second)).unwrap();
    assert_eq!(moved.backend().unwrap().device_name(), "pjrt<host:3>");
    let elsewhere = moved.transfer_to("backend_transfer", &dynamic(&other)).unwrap();
    assert_eq!(elsewhere.backend().unwrap().device_name(), "pjrt<other:0>");
    assert_eq!(moved.buffer().unwrap().state(), BufferState::Gone(Gone { how: "freed", by: None }));
    let host = elsewhere.transfer_to("backend_transfer", &(cpu_backend())).unwrap();
    assert_eq!(host.backend().unwrap().device_name(), "cpu");
    assert_eq!((read(&host), read(&x)), (vec![1.0, 2.0], vec![1.0, 2.0]));
    let same = x.transfer_to("backend_transfer", &dynamic(&first)).unwrap();
    assert_eq!(x.buffer().unwrap().state(), BufferState::Live);
    assert!(Arc::ptr_eq(same.buffer().unwrap(), x.buffer().unwrap()));
}

#[test]
fn tensors_of_the_host_come_to_the_device() {
    let backend = host_backend(1);
    let (here, host) = (floats(&*backend, &[1.0]), floats(&*cpu_backend(), &[2.0]));
    for default in [dynamic(&backend), cpu_backend()] {
        let mut ops = Ops::new(default, Source::Unknown);
        for (a, b) in [(&here, &host), (&host, &here)] {
            let sum = ops.add(a, b).unwrap();
            assert_eq!(
                (read(&sum), sum.backend().unwrap().device_name()),
                (vec![3.0], "pjrt<host:1>".to_owned())
            );
        }
    }
}

#[test]
fn operands_on_two_devices_conflict() {
    let (first, second, third) = (host_backend(0), host_backend(1), host_backend(2));
    let (a, b) = (floats(&*first, &[1.0]), floats(&*second, &[2.0]));
    let error = ops(&third).add(&a, &b).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Backend);
    assert_eq!(
        error.to_string(),
        "add: the operands are on pjrt<host:0> and pjrt<host:1>; move one with backend_copy or backend_transfer"
    );
    // The default device gives way to the operands' device.
    let sum = ops(&first).add(&a, &b).unwrap();
    assert_eq!(sum.backend().unwrap().device_name(), "pjrt<host:1>");
}

#[test]
fn what_is_not_held_is_freed() {
    let backend = own_backend("freed");
    let runtime = backend.runtime();
    let x = floats(&*backend, &[1.0; 64]);
    assert_eq!(runtime.live_buffers(), 1);
    let mut ops = ops(&backend);
    let y = ops.exp(&x).unwrap();
    let z = ops.reshape(&y, [64_i64], None).unwrap();
    assert_eq!(runtime.live_buffers(), 2, "a tensor of the same sizes takes no memory");
    drop((x, y));
    assert_eq!(runtime.live_buffers(), 1);
    drop(z);
    assert_eq!(runtime.live_buffers(), 0);
}

#[test]
fn positions_out_of_range_are_moved() {
    let backend = host_backend(0);
    let x = floats(&*backend, &[1.0, 2.0]);
    let at = |index: i64| {
        let bytes = HostMemory::from(index.to_ne_bytes().to_vec());
        Tensor::concrete(ty(DType::S64, &[1]), backend.from_host(&ty(DType::S64, &[1]), bytes).unwrap())
    };
    let mut ops = ops(&backend);
    assert_eq!(read(&ops.take(&x, at(1), 0).unwrap()), [2.0]);
    // A check would have to wait for the device: reads take the nearest element, as in compiled programs.
    assert_eq!(read(&ops.take(&x, at(-2), 0).unwrap()), [1.0]);
    assert_eq!(read(&ops.take(&x, at(2), 0).unwrap()), [2.0]);
    assert_eq!(read(&ops.take(&x, at(-3), 0).unwrap()), [1.0]);
}

#[test]
fn a_tensor_is_waited_for() {
    let backend = host_backend(0);
    let x = floats(&*backend, &[1.0]);
    let buffer = x.buffer().unwrap().as_any().downcast_ref::<PjrtBuffer>().unwrap();
    buffer.block_until_ready(&|| Ok(())).unwrap();
    assert_ne!(buffer.pointer(&|| Ok(())).unwrap(), 0);
}

#[test]
fn devices_out_of_range_are_named() {
    host_backend(0);
    let error = backend("backend", Some("host"), Some(4)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "backend: device_id is 4, the client \"host\" has 4 devices; it must be in 0..4"
    );
    let error = backend("backend", Some("nowhere"), None).unwrap_err();
    assert!(error.to_string().starts_with("backend: the client \"nowhere\" is unknown, it must be one of "));
}
