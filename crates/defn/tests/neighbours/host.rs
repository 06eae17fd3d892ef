//! Vectors that become tensors, and tensors that are read as slices.

use std::sync::Arc;

use defn::core;
use defn::core::backend::HostMemory;
use defn::half::{bf16, f16};
use defn::num_complex::Complex;
use defn::{DType, Element, Result, Shape, Tensor, TensorType, default_backend};
use proptest::prelude::*;

use crate::refused;

/// The vector's memory is the tensor's and the slice's, and each copy has the same elements.
fn moves<T: Element + PartialEq + std::fmt::Debug>(elements: Vec<T>) -> Result<()> {
    let (copy, address) = (elements.clone(), elements.as_ptr());
    let tensor = Tensor::from_vec(elements, &[copy.len()])?;
    let slice = tensor.host_slice::<T>()?;
    assert_eq!(slice.as_ptr() == address, T::DTYPE != DType::Bool, "{}", T::DTYPE);
    assert_eq!(*slice, copy[..]);
    assert_eq!(tensor.to_vec::<T>()?, copy);
    let copied = Tensor::from_slice(&copy, &[copy.len()])?;
    assert_eq!(copied.to_vec::<T>()?, copy);
    let mut bytes = Vec::new();
    copy.iter().for_each(|element| element.write(&mut bytes));
    assert_eq!(copied.core().host_bytes("test")?.bytes(), bytes);
    let read: Vec<T> = bytes.chunks_exact(size_of::<T>()).map(T::read).collect();
    assert_eq!(read, copy);
    // The slice outlives the tensor, even where the elements are freed.
    tensor.backend_deallocate()?;
    drop(tensor);
    assert_eq!(*slice, copy[..]);
    Ok(())
}

#[test]
fn vectors_of_every_type_move() -> Result<()> {
    moves(vec![true, false, true])?;
    moves(vec![1u8, 2, 255])?;
    moves(vec![1u16, 2, u16::MAX])?;
    moves(vec![1u32, 2, u32::MAX])?;
    moves(vec![1u64, 2, u64::MAX])?;
    moves(vec![1i8, -2, i8::MIN])?;
    moves(vec![1i16, -2, i16::MIN])?;
    moves(vec![1i32, -2, i32::MIN])?;
    moves(vec![1i64, -2, i64::MIN])?;
    moves([0.5, -1.0, f32::INFINITY].map(f16::from_f32).to_vec())?;
    moves([0.5, -1.0, f32::INFINITY].map(bf16::from_f32).to_vec())?;
    moves(vec![0.5f32, -0.0, f32::INFINITY])?;
    moves(vec![0.5f64, -0.0, f64::INFINITY])?;
    moves(vec![Complex::new(1f32, -2.0), Complex::new(0.0, f32::INFINITY)])?;
    moves(vec![Complex::new(1f64, -2.0), Complex::new(0.0, f64::INFINITY)])?;
    moves(Vec::<f32>::new())
}

#[test]
fn elements_of_half_and_complex_types_compute() -> Result<()> {
    let x = Tensor::from_vec(vec![Complex::new(1f64, 2.0), Complex::new(3.0, -1.0)], &[2])?;
    let product = x.multiply(&x)?.to_vec::<Complex<f64>>()?;
    assert_eq!(product, [Complex::new(-3.0, 4.0), Complex::new(8.0, -6.0)]);
    let half = Tensor::from_slice(&[f16::from_f32(0.1)], &[1])?;
    assert_eq!(half.as_type(DType::F32)?.to_vec::<f32>()?, [f16::from_f32(0.1).to_f32()]);
    assert_eq!(half.item::<f16>()?, f16::from_f32(0.1));
    assert_eq!(
        refused(half.to_vec::<bf16>()),
        "to_vec: the operand is f16[1], it must be bf16; convert it with as_type"
    );
    Ok(())
}

/// A tensor of bytes that begin after some others: in memory that is not aligned where `offset` is odd.
fn shifted(dtype: DType, bytes: &[u8], offset: usize) -> Result<(Tensor, *const u8)> {
    let mut memory = vec![0; offset];
    memory.extend_from_slice(bytes);
    let memory = HostMemory::from(memory).part(offset..offset + bytes.len());
    let address = memory.bytes().as_ptr();
    let ty = TensorType::new(dtype, Shape::new(&[bytes.len() / dtype.storage_bytes()]))?;
    let buffer = default_backend()?.from_host(&ty, memory)?;
    Ok((core::Tensor::concrete(ty, buffer).into(), address))
}

#[test]
fn memory_that_is_not_aligned_is_copied() -> Result<()> {
    let bytes: Vec<u8> = [1u16, 2, 300].iter().flat_map(|x| x.to_ne_bytes()).collect();
    for offset in [0, 1, 2, 3] {
        let (tensor, address) = shifted(DType::U16, &bytes, offset)?;
        let slice = tensor.host_slice::<u16>()?;
        assert_eq!(*slice, [1, 2, 300]);
        assert_eq!(slice.as_ptr().cast() == address, address.addr().is_multiple_of(2), "{offset}");
    }
    // A buffer on the CPU that begins at any byte, as parts of one may: the slice is a copy.
    let (whole, _) = shifted(DType::U8, &bytes, 0)?;
    let buffer = whole.core().require_buffer("test", "")?.part(1, 4).expect("a part of a buffer");
    let expected = [&bytes[1..3], &bytes[3..5]].map(u16::read);
    let part = Tensor::from(core::Tensor::concrete(TensorType::new(DType::U16, Shape::new(&[2]))?, buffer));
    let slice = part.host_slice::<u16>()?;
    assert_eq!(*slice, expected);
    let address = part.core().host_bytes("test")?.bytes().as_ptr();
    assert!(!address.addr().is_multiple_of(2) && slice.as_ptr().is_aligned());
    assert_eq!(part.to_vec::<u16>()?, expected);
    Ok(())
}

#[test]
fn bytes_that_are_no_bools_are_true() -> Result<()> {
    let memory = HostMemory::new(Arc::new(vec![0u8, 1, 2, 255]));
    let ty = TensorType::new(DType::Bool, Shape::new(&[4]))?;
    let tensor: Tensor =
        core::Tensor::concrete(ty.clone(), default_backend()?.from_host(&ty, memory)?).into();
    assert_eq!(*tensor.host_slice::<bool>()?, [false, true, true, true]);
    assert_eq!(tensor.to_vec::<bool>()?, [false, true, true, true]);
    Ok(())
}

#[test]
fn wrong_shapes_are_refused() -> Result<()> {
    let error = refused(Tensor::from_vec(vec![1u8, 2, 3], &[2, 2]));
    assert_eq!(error, "from_vec: the shape is u8[2][2], it must be of the 3 elements given");
    assert!(
        refused(Tensor::from_vec(vec![1u8], &[usize::MAX, 2])).contains("more bytes than memory can address")
    );
    let pair = Tensor::from_vec(vec![1u8, 2], &[2])?;
    assert_eq!(refused(pair.item::<u8>()), "item: the tensor is u8[2], it must be a scalar");
    assert!(refused(pair.host_slice::<i8>()).starts_with("host_slice: the operand is u8[2], it must be s8"));
    pair.backend_deallocate()?;
    assert!(refused(pair.host_slice::<u8>()).contains("freed at"));
    Ok(())
}

proptest! {
    #[test]
    fn shapes_and_elements_are_kept(sizes in prop::collection::vec(0usize..5, 0..5)) {
        let count = sizes.iter().product::<usize>();
        let elements: Vec<i64> = (0..count as i64).collect();
        let tensor = Tensor::from_vec(elements.clone(), &sizes)?;
        let slice = tensor.host_slice::<i64>()?;
        prop_assert_eq!(slice.shape().sizes(), &sizes[..]);
        prop_assert_eq!(&slice[..], &elements[..]);
    }
}
