//! The fast path of eager ops gives the results of the general path, and none where that fails.

use std::sync::Arc;

use defn_core::backend::{HostMemory, Operand};
use defn_core::builder::{
    Arg, BuildElementwise, BuildLinalg, BuildShape, Ops, Source, fast_path, matmul_fast_path, view_fast_path,
};
use defn_core::infer::infer;
use defn_core::op::{BinaryOp, Op, UnaryOp};
use defn_core::{DType, Number, Scalar, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;

/// More bytes than any operand here has.
const MOST: usize = 1 << 20;

const DTYPES: [DType; 7] =
    [DType::F32, DType::F64, DType::BF16, DType::S32, DType::U8, DType::U4, DType::C64];

/// Elements with zeros, ones and negative numbers.
fn tensor(dtype: DType, sizes: &[usize], seed: usize) -> Tensor {
    let ty = TensorType::new(dtype, Shape::new(sizes)).unwrap();
    let element = |position: usize| {
        let step = (5 * position + 3 * seed) % 9;
        let number = match dtype.is_integer() {
            true if dtype == DType::S32 => Number::Int(step as i128 - 3),
            true => Number::Int(step as i128),
            false => Number::Float(step as f64 / 2.0 - 1.5),
        };
        Scalar::new(dtype, number).unwrap().to_bytes()
    };
    let bytes: Vec<u8> = (0..ty.size()).flat_map(element).collect();
    let memory = HostMemory::new(Arc::new(bytes));
    let buffer = cpu_backend().from_host(&ty, memory).unwrap();
    Tensor::concrete(ty, buffer)
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = vec![0; tensor.ty().byte_size()];
    tensor.buffer().unwrap().read(&mut bytes).unwrap();
    bytes
}

/// The result of the general path.
fn long(op: &Op, operands: &[&Tensor]) -> Option<Tensor> {
    let types: Vec<&TensorType> = operands.iter().map(|tensor| tensor.ty()).collect();
    let outputs = infer(op, &types).ok()?;
    let held = operands
        .iter()
        .map(|tensor| Operand { ty: tensor.ty().clone(), buffer: tensor.buffer().unwrap().clone() });
    let made = cpu_backend().run(op, held.collect(), &outputs).ok()?;
    Some(Tensor::concrete(outputs[0].clone(), made[0].clone()))
}

#[test]
fn every_elementwise_op_gives_the_same_at_once() {
    let (unary, binary) = (UnaryOp::ALL.iter(), BinaryOp::ALL.iter());
    let ops = unary.map(|op| (Op::Unary(*op), 1)).chain(binary.map(|op| (Op::Binary(*op), 2)));
    let mut done = 0;
    for (op, count) in ops {
        for (left, right) in DTYPES.into_iter().flat_map(|left| DTYPES.map(|right| (left, right))) {
            for sizes in [&[][..], &[7], &[2, 3], &[0], &[1500]] {
                let (a, b) = (tensor(left, sizes, 1), tensor(right, sizes, 2));
                let operands = &[&a, &b][..count];
                let args: Vec<Arg<&Tensor>> = operands.iter().map(|tensor| Arg::Value(*tensor)).collect();
                match (fast_path(&op, &args, MOST), long(&op, operands)) {
                    (Some(short), Some(long)) => {
                        assert_eq!(short.ty(), long.ty(), "{op:?}");
                        assert_eq!(bytes(&short), bytes(&long), "{op:?} of {left} and {right} {sizes:?}");
                        done += 1;
                    }
                    (None, None) => {}
                    (short, long) => panic!("{op:?} of {left} and {right}: {short:?}, {long:?}"),
                }
            }
        }
    }
    assert!(done > 5_000, "{done} were done");
}

#[test]
fn what_is_broadcast_has_the_long_ways_bits() {
    let (a, b) = (tensor(DType::F32, &[3, 1], 1), tensor(DType::F32, &[4], 2));
    let op = Op::Binary(BinaryOp::SUBTRACT);
    let short = fast_path(&op, &[Arg::Value(&a), Arg::Value(&b)], MOST).unwrap();
    let long = long(&op, &[&a, &b]).unwrap();
    assert_eq!((short.ty().to_string(), bytes(&short)), ("f32[3][4]".to_owned(), bytes(&long)));
}

#[test]
fn what_is_longer_than_the_most_goes_the_long_way() {
    let (a, b) = (tensor(DType::F32, &[8], 1), tensor(DType::F32, &[1], 2));
    let op = Op::Binary(BinaryOp::ADD);
    assert!(fast_path(&op, &[Arg::Value(&a), Arg::Value(&a)], 64).is_none());
    assert!(fast_path(&op, &[Arg::Value(&a), Arg::Value(&b)], 36).is_none());
    assert!(fast_path(&op, &[Arg::Value(&a), Arg::Value(&b)], 37).is_some());
}

#[test]
fn an_operand_may_stand_on_both_sides() {
    for (op, dtype) in BinaryOp::ALL.iter().flat_map(|op| DTYPES.map(|dtype| (Op::Binary(*op), dtype))) {
        let x = tensor(dtype, &[7], 1);
        // A second tensor with the same buffer.
        let again = Tensor::concrete(x.ty().clone(), x.buffer().unwrap().clone());
        for y in [&x, &again] {
            let short = fast_path(&op, &[Arg::Value(&x), Arg::Value(y)], MOST);
            let long = long(&op, &[&x, y]);
            let both = (short.map(|short| bytes(&short)), long.map(|long| bytes(&long)));
            assert_eq!(both.0, both.1, "{op:?} of {dtype}");
        }
    }
}

#[test]
fn results_are_shared_freed_and_used_again() {
    let a = tensor(DType::F32, &[3], 1);
    let twice = fast_path(&Op::Binary(BinaryOp::ADD), &[Arg::Value(&a), Arg::Value(&a)], MOST).unwrap();
    let before = bytes(&twice);
    let part = view_fast_path(&twice, 1, Shape::new(&[2])).unwrap();
    assert_eq!(bytes(&part), before[4..]);
    assert!(twice.buffer().unwrap().deallocate().unwrap());
    assert!(!twice.buffer().unwrap().deallocate().unwrap());
    assert_eq!(bytes(&part), before[4..]);
    assert!(view_fast_path(&twice, 1, Shape::new(&[2])).is_none());
    assert!(fast_path(&Op::Unary(UnaryOp::EXP), &[Arg::Value(&twice)], MOST).is_none());
    // An op may overwrite a result without other owners.
    let made = fast_path(&Op::Unary(UnaryOp::NEGATE), &[Arg::Value(&a)], MOST).unwrap();
    let expected = long(&Op::Unary(UnaryOp::EXP), &[&made]).unwrap();
    let held = Operand { ty: made.ty().clone(), buffer: made.into_buffer().unwrap() };
    let outputs = [held.ty.clone()];
    let over = cpu_backend().run(&Op::Unary(UnaryOp::EXP), [held].into_iter().collect(), &outputs).unwrap();
    assert_eq!(bytes(&Tensor::concrete(outputs[0].clone(), over[0].clone())), bytes(&expected));
}

#[test]
fn threads_that_use_the_same_operands_wait_for_nobody() {
    let (a, b) = (tensor(DType::F32, &[7], 1), tensor(DType::F32, &[7], 2));
    let mut ops = Ops::new(cpu_backend(), Source::Unknown);
    let expected = bytes(&ops.add(&a, &b).unwrap());
    std::thread::scope(|scope| {
        for (x, y) in [(&a, &b), (&b, &a), (&a, &b), (&b, &a)] {
            let expected = &expected;
            scope.spawn(move || {
                let op = Op::Binary(BinaryOp::ADD);
                for _ in 0..2_000 {
                    // There may be no fast path while another thread has the lock of an operand.
                    let made = fast_path(&op, &[Arg::Value(x), Arg::Value(y)], MOST);
                    assert_eq!(bytes(&made.or_else(|| long(&op, &[x, y])).unwrap()), *expected);
                }
            });
        }
    });
}

#[test]
fn products_give_the_same_at_once() {
    let mut ops = Ops::new(cpu_backend(), Source::Unknown);
    let shapes = [&[][..], &[4], &[4, 3], &[3, 4], &[2, 3, 4], &[2, 4, 3], &[5]];
    let mut done = 0;
    for (left, right) in shapes.into_iter().flat_map(|left| shapes.map(|right| (left, right))) {
        for dtype in [DType::F32, DType::S32, DType::C64] {
            let (a, b) = (tensor(dtype, left, 1), tensor(dtype, right, 2));
            let Some(short) = matmul_fast_path(&a, &b, MOST) else { continue };
            let long = ops.matmul(&a, &b).unwrap();
            assert_eq!((short.ty(), bytes(&short)), (long.ty(), bytes(&long)), "{left:?} {right:?}");
            done += 1;
        }
    }
    assert!(done > 20, "{done} were done");
}

#[test]
fn what_only_looks_at_memory_copies_none() {
    let mut ops = Ops::new(cpu_backend(), Source::Unknown);
    let x = tensor(DType::F32, &[2, 3], 1);
    let at = |tensor: &Tensor| tensor.buffer().unwrap().host().unwrap().unwrap().bytes().as_ptr();
    let flat = ops.reshape(&x, [6], None).unwrap();
    assert_eq!((at(&flat), bytes(&flat)), (at(&x), bytes(&x)));
    let row = view_fast_path(&x, 3, Shape::new(&[3])).unwrap();
    assert_eq!((at(&row), row.ty().to_string()), (at(&x).wrapping_add(12), "f32[3]".to_owned()));
    x.buffer().unwrap().deallocate().unwrap();
    let error = ops.reshape(&x, [6], None).unwrap_err();
    assert!(error.to_string().starts_with("reshape"), "{error}");
}

#[test]
fn freed_elements_are_left_to_who_says_so() {
    let a = tensor(DType::F32, &[3], 1);
    a.buffer().unwrap().deallocate().unwrap();
    assert!(fast_path(&Op::Unary(UnaryOp::EXP), &[Arg::Value(&a)], MOST).is_none());
}

#[test]
fn numbers_give_way_as_they_do_on_the_long_way() {
    let numbers =
        [Number::Float(0.5), Number::Float(-3.0), Number::Int(3), Number::Int(-2), Number::Int(300)];
    let mut done = 0;
    for (&op, dtype) in BinaryOp::ALL.iter().flat_map(|op| DTYPES.map(|dtype| (op, dtype))) {
        let x = tensor(dtype, &[5], 1);
        for (number, is_first) in numbers.iter().flat_map(|number| [(*number, true), (*number, false)]) {
            let args = match is_first {
                true => [Arg::Number(number), Arg::Value(&x)],
                false => [Arg::Value(&x), Arg::Number(number)],
            };
            let Some(short) = fast_path(&Op::Binary(op), &args, MOST) else { continue };
            let held = args.map(|arg| match arg {
                Arg::Value(tensor) => Arg::Value(tensor.clone()),
                Arg::Number(number) => Arg::Number(number),
            });
            let [a, b] = held;
            let long = Ops::new(cpu_backend(), Source::Unknown).binary(op, a, b).unwrap();
            assert_eq!(short.ty(), long.ty(), "{op:?}");
            assert_eq!(bytes(&short), bytes(&long), "{op:?} of {dtype} and {number:?}");
            done += 1;
        }
    }
    assert!(done > 300, "{done} were done");
}
