//! Memory of tensors: sharing, freeing, reuse, and running out of it.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::common::*;
use defn_core::backend::{Buffer, BufferState, Gone, HostMemory, Operand};
use defn_core::op::{BinaryOp, Literal, Op, UnaryOp};
use defn_core::{DType, ErrorClass, ErrorKind, Scalar, Shape, TensorType};
use defn_cpu::{CpuBuffer, cpu_backend};

/// Elements in memory that the backend has allocated.
fn own(dtype: DType, sizes: &[usize]) -> Operand {
    run(&Op::Iota { shape: Shape::new(sizes), dtype, axis: None }, &[]).unwrap()
}

#[test]
fn an_operand_that_nobody_else_holds_is_overwritten() {
    let x = own(DType::F32, &[3000]);
    let at = address(&x.buffer);
    let x = run_owned(&Op::Unary(UnaryOp::NEGATE), vec![x]).unwrap();
    assert_eq!(address(&x.buffer), at);
    // Another type of the same width, and the second operand.
    let x = run_owned(&Op::AsType { dtype: DType::S32 }, vec![x]).unwrap();
    let x = run_owned(&Op::Binary(BinaryOp::SUBTRACT), vec![scalar(DType::S32, 7), x]).unwrap();
    assert_eq!(address(&x.buffer), at);
    let want: Vec<i128> = (0..3000).map(|i| 7 + i).collect();
    assert_eq!(integers(&x), want);
}

#[test]
fn an_operand_that_somebody_holds_is_kept() {
    let x = own(DType::F32, &[5]);
    for hold in ["buffer", "memory", "reshape", "twice"] {
        let held = x.buffer.host().unwrap().unwrap();
        let shared = run(&Op::Reshape { shape: Shape::new(&[5, 1]) }, &[&x]).unwrap();
        assert_eq!(address(&shared.buffer), address(&x.buffer), "a reshape shares storage");
        let operands = match hold {
            "buffer" => vec![x.clone()],
            "memory" | "reshape" => {
                let ty = x.ty.clone();
                vec![Operand { ty, buffer: shared.buffer }]
            }
            _ => vec![x.clone(), x.clone()],
        };
        let op = if operands.len() == 2 { Op::Binary(BinaryOp::ADD) } else { Op::Unary(UnaryOp::NEGATE) };
        let y = run_owned(&op, operands).unwrap();
        assert_ne!(address(&y.buffer), address(&x.buffer), "{hold}");
        assert_eq!(floats(&x), [0.0, 1.0, 2.0, 3.0, 4.0], "{hold}");
        assert_eq!(held.bytes().len(), 20);
    }
}

#[test]
fn host_memory_that_was_given_is_never_written() {
    let bytes: Vec<u8> = [1f32, 2.0, 3.0].into_iter().flat_map(f32::to_ne_bytes).collect();
    let owner = Arc::new(bytes.clone());
    let ty = TensorType::new(DType::F32, Shape::new(&[3])).unwrap();
    let buffer = cpu_backend().from_host(&ty, HostMemory::new(owner.clone())).unwrap();
    let y = run_owned(&Op::Unary(UnaryOp::NEGATE), vec![Operand { ty, buffer }]).unwrap();
    assert_eq!(floats(&y), [-1.0, -2.0, -3.0]);
    assert_eq!(*owner, bytes);
}

#[test]
fn host_memory_is_kept_where_it_is_aligned_and_copied_elsewhere() {
    struct From(Vec<u8>, usize);
    impl AsRef<[u8]> for From {
        fn as_ref(&self) -> &[u8] {
            &self.0[self.1..]
        }
    }
    for (offset, shared) in [(0, true), (8, true), (4, false), (1, false)] {
        let bytes: Vec<u8> = (0..64).collect();
        let aligned = bytes.as_ptr().align_offset(8);
        let memory = HostMemory::new(Arc::new(From(bytes, aligned + offset)));
        let at = memory.bytes().as_ptr();
        let first = memory.bytes()[..16].to_vec();
        let ty = TensorType::new(DType::S64, Shape::new(&[2])).unwrap();
        let buffer = cpu_backend().from_host(&ty, memory).unwrap();
        assert_eq!(address(&buffer) == at, shared, "offset {offset}");
        assert_eq!(buffer.host().unwrap().unwrap().bytes(), first);
    }
}

#[test]
fn freed_elements_are_gone_but_for_those_who_hold_them() {
    let x = own(DType::S32, &[4]);
    let held = x.buffer.host().unwrap().unwrap();
    assert!(x.buffer.deallocate().unwrap());
    assert!(!x.buffer.deallocate().unwrap());
    assert_eq!(x.buffer.state(), BufferState::Gone(Gone { how: "freed", by: None }));
    assert_eq!(held.bytes().len(), 16);
    assert_eq!(held.bytes()[4], 1);
    let error = run(&Op::Unary(UnaryOp::NEGATE), &[&x]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "negate: the tensor's memory was freed; keep a copy, or do not use it after"
    );
    assert!(run_owned(&Op::Unary(UnaryOp::NEGATE), vec![x]).is_err());
}

#[test]
fn an_owner_may_look_at_the_buffer_while_its_memory_is_freed() {
    /// Memory whose destructor reads the state of the buffer.
    struct Watched {
        bytes: [u8; 4],
        buffer: Arc<OnceLock<Weak<dyn Buffer>>>,
        seen: Arc<Mutex<Option<BufferState>>>,
    }
    impl AsRef<[u8]> for Watched {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    impl Drop for Watched {
        fn drop(&mut self) {
            let buffer = self.buffer.get().and_then(Weak::upgrade);
            *self.seen.lock().unwrap() = buffer.map(|buffer| buffer.state());
        }
    }
    let (cell, seen) = (Arc::new(OnceLock::new()), Arc::new(Mutex::new(None)));
    let owner = Watched { bytes: [1; 4], buffer: cell.clone(), seen: seen.clone() };
    let ty = TensorType::new(DType::U8, Shape::new(&[4])).unwrap();
    let buffer = cpu_backend().from_host(&ty, HostMemory::new(Arc::new(owner))).unwrap();
    assert!(cell.set(Arc::downgrade(&buffer)).is_ok());
    assert!(buffer.deallocate().unwrap());
    assert_eq!(*seen.lock().unwrap(), Some(BufferState::Gone(Gone { how: "freed", by: None })));
}

#[test]
fn donated_elements_move() {
    let x = own(DType::S32, &[4]);
    let buffer = x.buffer.as_any().downcast_ref::<CpuBuffer>().unwrap();
    let moved = Operand { ty: x.ty.clone(), buffer: Arc::new(buffer.donate().unwrap()) };
    assert_eq!(integers(&moved), [0, 1, 2, 3]);
    assert_eq!(x.buffer.state(), BufferState::Gone(Gone { how: "donated", by: None }));
    assert!(!x.buffer.deallocate().unwrap());
    assert!(run(&Op::Unary(UnaryOp::NEGATE), &[&x]).is_err());
}

#[test]
fn too_large_a_result_is_an_error() {
    let op = Op::Iota { shape: Shape::new(&[1 << 20, 1 << 28]), dtype: DType::F64, axis: None };
    let error = run(&op, &[]).unwrap_err();
    assert_eq!(error.class(), ErrorClass::OutOfMemory);
    let ErrorKind::OutOfMemory { op, requested, available } = error.kind() else { panic!("{error}") };
    assert_eq!((*op, *requested), ("iota", 1 << 51));
    assert!(*available < 1 << 51);
    // The next call succeeds.
    assert_eq!(integers(&own(DType::S32, &[2])), [0, 1]);
}

#[test]
fn tensors_out_of_nothing() {
    // Iota has no bool.
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_bool()) {
        let counted = run(&Op::Iota { shape: Shape::new(&[3, 2]), dtype, axis: None }, &[]).unwrap();
        let want: Vec<Scalar> = (0..6).map(|i| Scalar::new(dtype, i).unwrap()).collect();
        assert_eq!(elements(&counted), want, "{dtype}");
        let shape = Shape::new(&[2, 2, 3]);
        let eye = run(&Op::Eye { shape: shape.clone(), dtype }, &[]).unwrap();
        let (zero, one) = (Scalar::zero(dtype), Scalar::one(dtype));
        assert_eq!(elements(&eye), [[one, zero, zero, zero, one, zero]; 2].concat(), "{dtype}");
        let by_axis = run(&Op::Iota { axis: shape.axis(1), shape, dtype }, &[]).unwrap();
        assert_eq!(elements(&by_axis), [[zero, zero, zero, one, one, one]; 2].concat(), "{dtype}");
        let bytes: Vec<u8> = want.iter().flat_map(|x| x.to_bytes()).collect();
        let literal = run(&Op::Literal(Literal::new(counted.ty.clone(), bytes)), &[]).unwrap();
        assert_eq!(elements(&literal), want, "{dtype}");
        for x in edges(dtype) {
            let constant = run(&Op::Constant(x), &[]).unwrap();
            assert_eq!(elements(&constant)[0].to_bytes(), x.to_bytes(), "{dtype} {x}");
        }
    }
    let eye = run(&Op::Eye { shape: Shape::new(&[2, 2]), dtype: DType::Bool }, &[]).unwrap();
    assert_eq!(integers(&eye), [1, 0, 0, 1]);
    assert_eq!(integers(&run(&Op::Constant(Scalar::one(DType::Bool)), &[]).unwrap()), [1]);
    assert!(
        elements(&run(&Op::Eye { shape: Shape::new(&[0, 3]), dtype: DType::F32 }, &[]).unwrap()).is_empty()
    );
}
