//! Rows of every dtype and of lengths around every change of method, beside the comparison that the order is
//! defined by.

use std::cmp::Ordering;

use defn_core::op::Direction;
use defn_core::{DType, Number, Scalar, Shape, TensorType};

use super::*;
use crate::kernels::testing::{Array, noise};

/// Numbers with repetitions, and bits of all kinds.
fn bytes(dtype: DType, count: usize) -> Vec<u8> {
    let mut noise = noise(count as u64);
    let mut next = || noise.next().expect("it goes on");
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0];
    (0..count)
        .flat_map(|_| {
            let draw = next();
            let scalar = match draw % 4 {
                0 if dtype.is_float() => Scalar::new(dtype, special[(draw >> 8) as usize % 8]).unwrap(),
                _ => Scalar::from_bytes(dtype, &next().to_ne_bytes()[..dtype.storage_bytes()]),
            };
            scalar.to_bytes().to_vec()
        })
        .collect()
}

fn compare(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(&b),
        (Number::Float(a), Number::Float(b)) => match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => a.partial_cmp(&b).unwrap(),
        },
        _ => unreachable!("{a:?} and {b:?} are of one dtype"),
    }
}

/// The positions of a row's elements in order.
fn sorted(dtype: DType, row: &[u8], direction: Direction) -> Vec<usize> {
    let values: Vec<Number> =
        row.chunks(dtype.storage_bytes()).map(|bytes| Scalar::from_bytes(dtype, bytes).value()).collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| match direction {
        Direction::Asc => compare(values[a], values[b]),
        Direction::Desc => compare(values[b], values[a]),
    });
    order
}

fn check(dtype: DType, rows: usize, len: usize, par: Par) {
    let ty = TensorType::new(dtype, Shape::new(&[rows, len])).unwrap();
    let width = dtype.storage_bytes();
    let input = Array::of_bytes(ty.clone(), &bytes(dtype, rows * len));
    for &direction in Direction::ALL {
        let [mut out, mut tmp] = [(); 2].map(|()| Array::unwritten(ty.clone()));
        let mut counts = Array::unwritten(counts_scratch(&ty));
        sort(input.view(), direction, &mut out.view_mut(), &mut tmp.view_mut(), &mut counts.view_mut(), par);
        let mut places = Array::unwritten(ty.with_dtype(DType::S64).unwrap());
        let [mut a, mut b] = [(); 2].map(|()| Array::unwritten(pairs_scratch(&ty)));
        let pairs = [&mut a.view_mut(), &mut b.view_mut()];
        argsort(input.view(), direction, &mut places.view_mut(), pairs, &mut counts.view_mut(), par);
        for row in 0..rows {
            let bytes = &input.bytes()[row * len * width..][..len * width];
            let want = sorted(dtype, bytes, direction);
            let moved: Vec<u8> =
                want.iter().flat_map(|&at| bytes[at * width..][..width].iter().copied()).collect();
            assert!(out.bytes()[row * len * width..][..len * width] == moved, "{dtype} {len} {direction:?}");
            let want: Vec<u8> = want.iter().flat_map(|&at| (at as i64).to_ne_bytes()).collect();
            assert!(places.bytes()[row * len * 8..][..len * 8] == want, "{dtype} {len} {direction:?}");
        }
    }
}

#[test]
fn rows_of_every_dtype_and_length_are_sorted_stably() {
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex()) {
        for (rows, len) in [(3, 0), (0, 3), (2, 1), (5, 2), (40, 30), (3, 65), (2, 512), (2, 513), (3, 5000)]
        {
            check(dtype, rows, len, Par::Pool);
        }
        check(dtype, 1, 20_000, Par::Serial);
        check(dtype, 2, LONG + 12_345, Par::Pool);
    }
}
