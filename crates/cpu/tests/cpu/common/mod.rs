//! Helpers: tensors from numbers, ops on them, and numbers back.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use defn_core::backend::{Buffer, HostMemory, Operand};
use defn_core::infer::infer;
use defn_core::op::Op;
use defn_core::{DType, Number, Result, Scalar, Shape, TensorType};
use defn_cpu::cpu_backend;

/// Puts elements on the backend.
pub fn tensor(dtype: DType, sizes: &[usize], elements: &[Scalar]) -> Operand {
    let ty = TensorType::new(dtype, Shape::new(sizes)).unwrap();
    assert_eq!(ty.size(), elements.len());
    let bytes: Vec<u8> = elements.iter().flat_map(|x| x.to_bytes()).collect();
    place(ty, bytes)
}

/// Puts bytes on the backend.
pub fn place(ty: TensorType, bytes: Vec<u8>) -> Operand {
    let buffer = cpu_backend().from_host(&ty, HostMemory::new(Arc::new(bytes))).unwrap();
    Operand { ty, buffer }
}

/// A vector.
pub fn vector<T: Into<Number> + Copy>(dtype: DType, elements: &[T]) -> Operand {
    let scalars: Vec<Scalar> = elements.iter().map(|&x| Scalar::new(dtype, x).unwrap()).collect();
    tensor(dtype, &[elements.len()], &scalars)
}

/// A scalar.
pub fn scalar(dtype: DType, element: impl Into<Number>) -> Operand {
    tensor(dtype, &[], &[Scalar::new(dtype, element).unwrap()])
}

/// Runs an op of one output.
pub fn run(op: &Op, operands: &[&Operand]) -> Result<Operand> {
    run_owned(op, operands.iter().map(|&x| x.clone()).collect())
}

/// Runs an op of one output on operands that it may reuse.
pub fn run_owned(op: &Op, operands: Vec<Operand>) -> Result<Operand> {
    let types: Vec<&TensorType> = operands.iter().map(|x| &x.ty).collect();
    let outputs = infer(op, &types)?;
    let mut buffers = cpu_backend().run(op, operands.into(), &outputs)?;
    Ok(Operand { ty: outputs[0].clone(), buffer: buffers.remove(0) })
}

/// Runs an op of one output as compiled programs do.
pub fn unchecked(op: &Op, operands: &[&Operand]) -> Operand {
    let types: Vec<_> = operands.iter().map(|x| &x.ty).collect();
    let outputs = infer(op, &types).unwrap();
    let operands = operands.iter().map(|&x| x.clone()).collect();
    let buffer = cpu_backend().run_unchecked(op, operands, &outputs).unwrap().remove(0);
    Operand { ty: outputs[0].clone(), buffer }
}

/// The elements.
pub fn elements(x: &Operand) -> Vec<Scalar> {
    let mut bytes = vec![0; x.ty.byte_size()];
    x.buffer.read(&mut bytes).unwrap();
    bytes.chunks_exact(x.ty.dtype.storage_bytes()).map(|x_| Scalar::from_bytes(x.ty.dtype, x_)).collect()
}

/// The elements as numbers.
pub fn numbers(x: &Operand) -> Vec<Number> {
    elements(x).into_iter().map(Scalar::value).collect()
}

/// The elements as floats.
pub fn floats(x: &Operand) -> Vec<f64> {
    numbers(x).into_iter().map(Number::to_f64).collect()
}

/// The elements as integers.
pub fn integers(x: &Operand) -> Vec<i128> {
    let integer = |number| match number {
        Number::Int(value) => value,
        Number::Bool(value) => i128::from(value),
        Number::Huge(_) | Number::Float(_) | Number::Complex(_) => panic!("{number:?} is no integer"),
    };
    numbers(x).into_iter().map(integer).collect()
}

/// The address of the elements.
pub fn address(x: &Arc<dyn Buffer>) -> *const u8 {
    x.host().unwrap().unwrap().bytes().as_ptr()
}

/// Values at the edges of a type: small ones, the bounds, and the special ones of floats.
pub fn edges(dtype: DType) -> Vec<Scalar> {
    let make = |number: Number| Scalar::new(dtype, number).unwrap();
    let mut found: Vec<Scalar> = match dtype.kind() {
        defn_core::Kind::Bool => [false, true].map(|x| make(Number::Bool(x))).to_vec(),
        defn_core::Kind::Unsigned | defn_core::Kind::Signed => {
            let Number::Int(low) = dtype.lowest() else { unreachable!() };
            let Number::Int(high) = dtype.highest() else { unreachable!() };
            let middle = high / 2 + 1;
            [low, low + 1, -3, -2, -1, 0, 1, 2, 3, 5, 7, middle - 1, middle, high - 1, high]
                .into_iter()
                .filter(|x| (low..=high).contains(x))
                .map(|x| make(Number::Int(x)))
                .collect()
        }
        defn_core::Kind::Float => {
            let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
            let plain = [1.0, -1.0, 0.5, -1.5, 2.5, 3.0, -7.25, 100.0, 300.0, -1e-3, 1e-7, 6e4, -1e30, 1e300];
            special.into_iter().chain(plain).map(|x| make(Number::Float(x))).collect()
        }
        defn_core::Kind::Complex => {
            let parts = [0.0, -0.0, 1.0, -2.5, 1e-3, 3e4];
            let pairs = parts.iter().flat_map(|&re| parts.iter().map(move |&im| Number::complex(re, im)));
            let special = [
                Number::complex(f64::NAN, 1.0),
                Number::complex(1.0, f64::INFINITY),
                Number::complex(f64::NEG_INFINITY, 0.0),
            ];
            pairs.chain(special).map(make).collect()
        }
    };
    found.dedup();
    found
}
