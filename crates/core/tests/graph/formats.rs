//! Files: round trips in every dtype, and all kinds of damage.

use std::sync::Arc;

use defn_core::backend::HostMemory;
use defn_core::format::native::{Form, Object, Value};
use defn_core::format::{Array, native, npy, npz, safetensors};
use defn_core::{DType, Error, ErrorClass, Name, Shape, TensorType};
use proptest::prelude::*;

const OP: &str = "load";

/// Ascending elements, masked to the dtype's width.
fn array(dtype: DType, sizes: &[usize]) -> Array {
    let ty = TensorType::new(dtype, Shape::new(sizes)).unwrap();
    let mask = if dtype.bits() < 8 { (1u8 << (dtype.bits() - 1)) - 1 } else { 0xFF };
    let bytes: Vec<u8> = (0..ty.byte_size()).map(|at| at as u8 & mask).collect();
    Array::new(ty, bytes.into())
}

fn memory(bytes: &[u8]) -> HostMemory {
    HostMemory::new(Arc::new(bytes.to_vec()))
}

fn is_same(a: &Array, b: &Array) -> bool {
    a.ty == b.ty && a.vectorized == b.vectorized && a.memory.bytes() == b.memory.bytes()
}

type Parse = fn(&HostMemory) -> Result<Vec<(String, Array)>, Error>;

/// A small file of each format, and its parser.
fn files() -> Vec<(&'static str, Vec<u8>, Parse)> {
    let pair = || {
        vec![
            ("a".to_owned(), array(DType::F32, &[2, 3])),
            ("b".to_owned(), array(DType::U8, &[5])),
            ("c".to_owned(), array(DType::S64, &[])),
        ]
    };
    let one: Parse = |file| Ok(vec![(String::new(), npy::parse(OP, file, None)?)]);
    let archive: Parse = |file| npz::parse(OP, file, None, 1 << 20);
    let tensors: Parse = |file| safetensors::parse(OP, file);
    let own: Parse = |file| native::parse(OP, file).map(|value| vec![(String::new(), first(value))]);
    vec![
        ("npy", npy::write(OP, &array(DType::F64, &[3, 2])).unwrap(), one),
        ("npz", npz::write(OP, &pair(), false).unwrap(), archive),
        ("npz deflated", npz::write(OP, &pair(), true).unwrap(), archive),
        ("safetensors", safetensors::write(OP, &pair()).unwrap(), tensors),
        ("native", native::write(OP, &everything()).unwrap(), own),
    ]
}

/// The first tensor of a value, or an empty one.
fn first(value: Value) -> Array {
    match value {
        Value::Tensor(array) => *array,
        Value::Tuple(mut items) | Value::List(mut items) if !items.is_empty() => first(items.remove(0)),
        Value::Tuple(_)
        | Value::List(_)
        | Value::Dict(_)
        | Value::Object(_)
        | Value::None
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Complex(..)
        | Value::Text(_)
        | Value::Bytes(_) => array(DType::U8, &[0]),
    }
}

fn everything() -> Value {
    let named =
        TensorType::new(DType::U4, Shape::named(&[3, 2, 1], &[None, Some("x"), None]).unwrap()).unwrap();
    let bytes: Vec<u8> = (0..6).collect();
    let lanes = [(Name::from("v"), 3)];
    let vectorized = Array { ty: named, vectorized: lanes.as_slice().into(), memory: bytes.into() };
    let object = Object {
        module: "module".to_owned(),
        class: "Class".to_owned(),
        form: Form::Fields,
        parts: vec![("field".to_owned(), Value::Float(0.5))],
    };
    Value::List(vec![
        Value::Tensor(Box::new(vectorized)),
        Value::Dict(vec![(Value::Text("key".to_owned()), Value::Integer("-ff".to_owned()))]),
        Value::Tuple(vec![Value::None, Value::Bool(true), Value::Bool(false)]),
        Value::Object(Box::new(object)),
        Value::Complex(1.0, -1.0),
        Value::Bytes(vec![1, 2, 3]),
        Value::Tensor(Box::new(array(DType::C128, &[2]))),
    ])
}

#[test]
fn every_type_comes_back() {
    for &dtype in DType::ALL {
        for sizes in [&[][..], &[0], &[3], &[2, 3], &[2, 0, 2]] {
            let x = array(dtype, sizes);
            let value = Value::Tensor(Box::new(x.clone()));
            let back = native::parse(OP, &memory(&native::write(OP, &value).unwrap())).unwrap();
            assert!(is_same(&first(back), &x), "{}", x.ty);
            if let Ok(bytes) = npy::write(OP, &x) {
                assert!(is_same(&npy::parse(OP, &memory(&bytes), None).unwrap(), &x), "{}", x.ty);
            } else {
                assert!(dtype.bits() < 8 || dtype == DType::F8E4M3FN, "{dtype}");
            }
            if let Ok(bytes) = safetensors::write(OP, &[("x".to_owned(), x.clone())]) {
                assert!(is_same(&safetensors::parse(OP, &memory(&bytes)).unwrap()[0].1, &x), "{}", x.ty);
            } else {
                assert!(dtype.bits() < 8 || dtype == DType::C128, "{dtype}");
            }
        }
    }
    let value = everything();
    let back = native::parse(OP, &memory(&native::write(OP, &value).unwrap())).unwrap();
    assert_eq!(without_memory(&back), without_memory(&value));
}

/// A value as text; the memory of tensors prints as its length.
fn without_memory(value: &Value) -> String {
    format!("{value:?}")
}

#[test]
fn every_truncation_is_an_error() {
    for (name, bytes, parse) in files() {
        assert!(parse(&memory(&bytes)).is_ok(), "{name}");
        for len in 0..bytes.len() {
            let error = parse(&memory(&bytes[..len])).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Format, "{name} of {len} bytes: {error}");
        }
    }
}

#[test]
fn every_changed_bit_is_an_error_or_a_value() {
    for (name, bytes, parse) in files() {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                check(name, parse, &changed);
            }
        }
    }
}

/// Checks for panics, and that the result is not larger than the file, except for inflated data.
fn check(name: &str, parse: Parse, bytes: &[u8]) {
    if let Ok(arrays) = parse(&memory(bytes)) {
        for (_, array) in arrays {
            assert!(array.memory.bytes().len() <= 1032 * bytes.len(), "{name}");
            assert_eq!(array.memory.bytes().len(), array.ty.byte_size(), "{name}");
        }
    }
}

#[test]
fn archives_inflate_to_no_more_than_is_allowed() {
    let large = [("a".to_owned(), array(DType::U8, &[100_000]))];
    let bytes = npz::write(OP, &large, true).unwrap();
    assert!(bytes.len() < 10_000);
    assert!(npz::parse(OP, &memory(&bytes), None, 200_000).is_ok());
    let error = npz::parse(OP, &memory(&bytes), None, 50_000).unwrap_err();
    assert_eq!(error.class(), ErrorClass::OutOfMemory);
    let stored = npz::write(OP, &large, false).unwrap();
    assert!(npz::parse(OP, &memory(&stored), None, 0).is_ok(), "what is stored takes no memory");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_do_no_harm(which in 0usize..5, changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6)) {
        let (name, mut bytes, parse) = files().swap_remove(which);
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        check(name, parse, &bytes);
        if name == "native" {
            // With a correct checksum, the parser reaches the structure.
            let end = bytes.len() - 4;
            let checksum = crc32fast::hash(&bytes[..end]);
            bytes[end..].copy_from_slice(&checksum.to_le_bytes());
            check(name, parse, &bytes);
        }
    }

    #[test]
    fn noise_is_an_error(which in 0usize..5, noise in prop::collection::vec(any::<u8>(), 0..200), keep in 0usize..40) {
        let (_, bytes, parse) = files().swap_remove(which);
        let mut bytes = bytes[..keep.min(bytes.len())].to_vec();
        bytes.extend(noise);
        prop_assert!(parse(&memory(&bytes)).is_err());
    }
}
