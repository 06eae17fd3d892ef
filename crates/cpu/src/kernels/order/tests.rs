//! Rows of every dtype, with lengths around every change of algorithm, compared with the comparison that defines the
//! order.

use std::cmp::Ordering;

use defn_core::op::Direction;
use defn_core::{DType, Number, Scalar, Shape, TensorType};

use super::*;
use crate::kernels::simd::at_every_level;
use crate::kernels::testing::{Array, noise};

/// Numbers with repetitions, and arbitrary bit patterns.
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
        (Number::Bool(a), Number::Bool(b)) => a.cmp(&b),
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

/// The positions of a row's elements in sorted order.
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
        let positions = positions(&input, &ty, direction, DType::S64, par);
        for row in 0..rows {
            let bytes = &input.bytes()[row * len * width..][..len * width];
            let want = sorted(dtype, bytes, direction);
            let moved: Vec<u8> =
                want.iter().flat_map(|&at| bytes[at * width..][..width].iter().copied()).collect();
            assert!(out.bytes()[row * len * width..][..len * width] == moved, "{dtype} {len} {direction:?}");
            let want: Vec<u8> = want.iter().flat_map(|&at| (at as i64).to_ne_bytes()).collect();
            assert!(positions.bytes()[row * len * 8..][..len * 8] == want, "{dtype} {len} {direction:?}");
        }
    }
}

/// The output of `argsort`, as a dtype.
fn positions(input: &Array, ty: &TensorType, direction: Direction, to: DType, par: Par) -> Array {
    let mut positions = Array::unwritten(ty.with_dtype(to).unwrap());
    let mut counts = Array::unwritten(counts_scratch(ty));
    let [mut a, mut b] = [(); 2].map(|()| Array::unwritten(pairs_scratch(ty)));
    let pairs = [&mut a.view_mut(), &mut b.view_mut()];
    argsort(input.view(), direction, &mut positions.view_mut(), pairs, &mut counts.view_mut(), par);
    positions
}

#[test]
fn long_rows_of_near_and_of_far_keys_are_sorted_stably() {
    let len = MIN_SHARED_ROW + 77;
    let ty = TensorType::new(DType::U32, Shape::new(&[len])).unwrap();
    // Close values beside one far outlier, and values of which a bucket holds only one.
    let outlier = (0..len as u32).map(|index| if index == 9 { u32::MAX } else { index % 1000 });
    let steps = (0..len as u32).map(|index| index.wrapping_mul(0x9E37_79B9) >> 7 << 7);
    let near = (0..len as u32).map(|index| (index * 7919) % 100 + 50);
    let rows: [Vec<u32>; 3] = [outlier.collect(), steps.collect(), near.collect()];
    for row in rows.into_iter().chain(patterns::<u32>(len, |draw| draw as u32)) {
        let mut want: Vec<usize> = (0..len).collect();
        want.sort_by_key(|&at| row[at]);
        let input =
            Array::of_bytes(ty.clone(), &row.iter().flat_map(|key| key.to_ne_bytes()).collect::<Vec<u8>>());
        at_every_level(|| {
            let positions = positions(&input, &ty, Direction::Asc, DType::S32, Par::Pool);
            let bytes: Vec<u8> = want.iter().flat_map(|&at| (at as i32).to_ne_bytes()).collect();
            assert!(positions.bytes() == bytes, "{:?}", &row[..8]);
        });
    }
}

#[test]
fn rows_of_every_dtype_and_length_are_sorted_stably() {
    at_every_level(|| {
        for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex()) {
            for (rows, len) in
                [(3, 0), (0, 3), (2, 1), (5, 2), (40, 30), (3, 65), (2, 512), (2, 513), (3, 5000)]
            {
                check(dtype, rows, len, Par::Pool);
            }
        }
    });
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex()) {
        check(dtype, 1, 20_000, Par::Serial);
        check(dtype, 2, MIN_SHARED_ROW + 12_345, Par::Pool);
    }
}

/// Keys in orders that are hard for quicksort, and keys in random order.
fn patterns<T: Key>(len: usize, of: fn(u64) -> T) -> impl Iterator<Item = Vec<T>> {
    let draws = noise(len as u64).take(len).collect::<Vec<_>>();
    (0..9).map(move |pattern| {
        let key = |(index, &draw): (usize, &u64)| match pattern {
            0 => draw,
            1 => index as u64,
            2 => (len - index) as u64,
            3 => draw % 3,
            4 => 7,
            5 if draw % 2 == 0 => u64::MAX,
            5 => draw,
            6 => draw % 50 + 100,
            7 => index as u64 % 17,
            _ => index.abs_diff(len / 2) as u64,
        };
        draws.iter().enumerate().map(key).map(of).collect()
    })
}

fn check_quick<T: Key + std::fmt::Debug>(len: usize, of: fn(u64) -> T) {
    let Some(functions) = T::functions() else { return };
    for keys in patterns(len, of) {
        let mut want = keys.clone();
        want.sort_unstable();
        let mut tmp = vec![MaybeUninit::uninit(); len];
        let mut sorted = keys.clone();
        functions.sort(&mut sorted, &mut tmp);
        assert!(sorted == want, "{len}: {keys:?}");
        if len < 10_000 {
            continue;
        }
        for par in [Par::Serial, Par::Pool] {
            let mut out = vec![MaybeUninit::uninit(); len];
            let read = |start: usize, part: &mut [MaybeUninit<T>]| {
                part.write_copy_of_slice(&keys[start..start + part.len()]);
            };
            functions.sort_shared(par, &read, &|_| {}, &mut out, &mut tmp);
            // SAFETY: every key was written.
            assert!(unsafe { out.assume_init_ref() } == want, "{len}, {par:?}");
        }
    }
}

#[test]
fn vectors_sort_keys_of_every_length_and_pattern() {
    at_every_level(|| {
        for len in (0..270).chain((270..600).step_by(11)).chain([2047, 10_000, 100_001]) {
            check_quick::<u32>(len, |key| key as u32);
            check_quick::<u64>(len, |key| key);
        }
    });
}

fn check_top_k(dtype: DType, rows: usize, len: usize, k: usize, rising: bool) {
    let ty = TensorType::new(dtype, Shape::new(&[rows, len])).unwrap();
    let width = dtype.storage_bytes();
    let mut bytes = bytes(dtype, rows * len);
    if rising {
        // Every element is a candidate.
        let order = sorted(dtype, &bytes, Direction::Asc);
        bytes = order.iter().flat_map(|&at| bytes[at * width..][..width].to_vec()).collect();
    }
    let input = Array::of_bytes(ty.clone(), &bytes);
    let few = TensorType::new(dtype, Shape::new(&[rows, k])).unwrap();
    let mut positions = Array::unwritten(few.with_dtype(DType::S32).unwrap());
    let mut values = Array::unwritten(few);
    assert!(selection_is_faster(&ty, k));
    let mut candidates = Array::unwritten(candidates_scratch(&ty, k));
    let (values_view, places_view) = (&mut values.view_mut(), &mut positions.view_mut());
    top_k(input.view(), k, values_view, places_view, &mut candidates.view_mut(), Par::Pool);
    for row in 0..rows {
        let bytes = &bytes[row * len * width..][..len * width];
        let want = &sorted(dtype, bytes, Direction::Desc)[..k];
        let got: Vec<usize> =
            positions.scalars()[row * k..][..k].iter().map(|place| place.value().to_f64() as usize).collect();
        assert!(got == want, "{dtype} {len} {k}: {got:?}");
        let moved: Vec<u8> = want.iter().flat_map(|&at| bytes[at * width..][..width].to_vec()).collect();
        assert!(values.bytes()[row * k * width..][..k * width] == moved, "{dtype} {len} {k}");
    }
}

#[test]
fn the_greatest_few_are_found_in_order() {
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex()) {
        for (rows, len, k) in [(3, 8, 2), (2, 300, 7), (2, 5000, 1), (1, 5000, 300), (2, 70_000, 10)] {
            check_top_k(dtype, rows, len, k, false);
            check_top_k(dtype, rows, len, k, true);
        }
    }
    check_top_k(DType::F32, 1, 300_000, 10, false);
    check_top_k(DType::F64, 1, 300_000, 500, true);
}

/// Partitions at a position, compared with the sides of a sort in the order of the elements.
fn check_partition(dtype: DType, rows: usize, len: usize, kth: usize, bytes: &[u8]) {
    let ty = TensorType::new(dtype, Shape::new(&[rows, len])).unwrap();
    let width = dtype.storage_bytes();
    let input = Array::of_bytes(ty.clone(), bytes);
    let mut out = Array::unwritten(ty.clone());
    let mut positions = Array::unwritten(ty.with_dtype(DType::S64).unwrap());
    let [mut a, mut b] = [(); 2].map(|()| Array::unwritten(keys_scratch(&ty)));
    partition(input.view(), kth, &mut out.view_mut(), [&mut a.view_mut(), &mut b.view_mut()], Par::Pool);
    let keys = [&mut a.view_mut(), &mut b.view_mut()];
    argpartition(input.view(), kth, &mut positions.view_mut(), keys, Par::Pool);
    for row in 0..rows {
        let bytes = &bytes[row * len * width..][..len * width];
        let mut want = sorted(dtype, bytes, Direction::Asc);
        want[..kth].sort_unstable();
        want[kth + 1..].sort_unstable();
        let moved: Vec<u8> = want.iter().flat_map(|&at| bytes[at * width..][..width].to_vec()).collect();
        assert!(out.bytes()[row * len * width..][..len * width] == moved, "{dtype} {len} {kth}");
        let want: Vec<u8> = want.iter().flat_map(|&at| (at as i64).to_ne_bytes()).collect();
        assert!(positions.bytes()[row * len * 8..][..len * 8] == want, "{dtype} {len} {kth}");
    }
}

#[test]
fn rows_of_every_dtype_and_length_are_partitioned_stably() {
    at_every_level(|| {
        for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex()) {
            for (rows, len) in [(2, 1), (5, 2), (40, 30), (2, 513), (3, 5000), (2, 20_000)] {
                for kth in [0, len / 3, len / 2, len - 1] {
                    check_partition(dtype, rows, len, kth, &bytes(dtype, rows * len));
                }
            }
        }
    });
    for &dtype in DType::ALL.iter().filter(|dtype| !dtype.is_complex()) {
        for kth in [0, 40_000, MIN_SHARED_ROW + 12_344] {
            check_partition(dtype, 1, MIN_SHARED_ROW + 12_345, kth, &bytes(dtype, MIN_SHARED_ROW + 12_345));
        }
    }
}

#[test]
fn rows_in_hard_orders_are_partitioned() {
    let len = MIN_SHARED_ROW + 77;
    at_every_level(|| {
        for kth in [0, 3, len / 2, len - 1] {
            for row in patterns::<u32>(len, |draw| draw as u32) {
                let bytes: Vec<u8> = row.iter().flat_map(|key| key.to_ne_bytes()).collect();
                check_partition(DType::U32, 1, len, kth, &bytes);
            }
            for row in patterns::<u64>(len, |draw| draw) {
                let bytes: Vec<u8> = row.iter().flat_map(|key| key.to_ne_bytes()).collect();
                check_partition(DType::U64, 1, len, kth, &bytes);
            }
        }
    });
}
