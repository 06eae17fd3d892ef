//! Ops that go to the backend at once give what they give on the long way, and nothing where that fails.

use std::sync::Arc;

use defn_core::backend::{HostMemory, Operand};
use defn_core::builder::{Arg, BuildElementwise, Ops, Source, at_once};
use defn_core::infer::infer;
use defn_core::op::{BinaryOp, Op, UnaryOp};
use defn_core::{DType, Number, Scalar, Shape, Tensor, TensorType};
use defn_cpu::cpu_backend;

const DTYPES: [DType; 7] =
    [DType::F32, DType::F64, DType::BF16, DType::S32, DType::U8, DType::U4, DType::C64];

/// Zeros, negative numbers and ones among others.
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

/// What the backend makes of an op.
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
                match (at_once(&op, &args), long(&op, operands)) {
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
    let op = Op::Binary(BinaryOp::Subtract);
    let short = at_once(&op, &[Arg::Value(&a), Arg::Value(&b)]).unwrap();
    let long = long(&op, &[&a, &b]).unwrap();
    assert_eq!((short.ty().to_string(), bytes(&short)), ("f32[3][4]".to_owned(), bytes(&long)));
}

#[test]
fn freed_elements_are_left_to_who_says_so() {
    let a = tensor(DType::F32, &[3], 1);
    a.buffer().unwrap().deallocate().unwrap();
    assert!(at_once(&Op::Unary(UnaryOp::Exp), &[Arg::Value(&a)]).is_none());
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
            let Some(short) = at_once(&Op::Binary(op), &args) else { continue };
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
    assert!(done > 200, "{done} were done");
}
