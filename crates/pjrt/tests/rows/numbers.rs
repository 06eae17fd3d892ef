//! Elements of operands: small numbers, and special values of functions.

use defn_core::{DType, Kind, Number, Scalar};

use super::{Operand, ty};

fn bytes(dtype: DType, numbers: impl IntoIterator<Item = Number>) -> Vec<u8> {
    numbers
        .into_iter()
        .flat_map(|number| Scalar::new(dtype, number).expect("a number of the type").to_bytes())
        .collect()
}

/// Given numbers.
pub fn operand_from(dtype: DType, sizes: &[usize], numbers: &[f64]) -> Operand {
    let number = |&number: &f64| {
        if dtype.is_integer() { Number::Int(number as i128) } else { Number::Float(number) }
    };
    Operand { ty: ty(dtype, sizes), bytes: bytes(dtype, numbers.iter().map(number)) }
}

/// Small numbers: halves between -4 and 4 for floats, wrapped integers of the same size. Their order depends on
/// `which`, the number of the operand.
pub fn small(dtype: DType, sizes: &[usize], which: u64) -> Operand {
    let ty = ty(dtype, sizes);
    let mut state = which.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = || {
        // Steele, Lea and Flood 2014: SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 17
    };
    let mut number = || {
        let half = draw() as f64 / 2.0 - 4.0;
        match dtype.kind() {
            Kind::Bool => Number::Bool(half > 0.0),
            Kind::Unsigned => Number::Int(half.abs() as i128),
            Kind::Signed => Number::Int(half as i128),
            Kind::Float => Number::Float(half),
            Kind::Complex => Number::complex(half, draw() as f64 / 2.0 - 4.0),
        }
    };
    let numbers: Vec<Number> = (0..ty.size()).map(|_| number()).collect();
    let numbers = numbers.into_iter().map(|number| wrapped(dtype, number));
    Operand { bytes: bytes(dtype, numbers.collect::<Vec<_>>()), ty }
}

fn wrapped(dtype: DType, number: Number) -> Number {
    match number {
        Number::Int(value) => Number::Int(defn_core::scalar::wrap(dtype, value)),
        Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => number,
    }
}

/// The special values of functions, and some other numbers.
pub fn special(dtype: DType) -> Vec<Number> {
    let normal = |number: Number| number.to_f64();
    match dtype.kind() {
        Kind::Bool => vec![Number::Bool(false), Number::Bool(true)],
        Kind::Unsigned | Kind::Signed => {
            let (Number::Int(least), Number::Int(most)) = (dtype.lowest(), dtype.highest()) else {
                unreachable!("limits of integers are integers")
            };
            let near = [least, least + 1, most - 1, most];
            let mut all: Vec<i128> =
                near.into_iter().chain([-7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 64, 100]).collect();
            all.retain(|&value| (least..=most).contains(&value));
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(Number::Int).collect()
        }
        Kind::Float => {
            let most = normal(dtype.greatest_finite());
            let tiny = normal(dtype.smallest_normal());
            let mut all = vec![
                0.0,
                0.25,
                0.5,
                0.75,
                0.984375,
                1.0,
                1.5,
                2.0,
                2.5,
                3.0,
                5.5,
                9.0,
                17.25,
                40.0,
                88.0,
                1e-3,
                most,
                tiny,
                most / 2.0,
            ];
            if dtype.has_infinity() {
                all.push(f64::INFINITY);
            }
            let negative: Vec<f64> = all.iter().map(|value| -value).collect();
            all.extend(negative);
            all.push(f64::NAN);
            all.into_iter().map(|value| Number::Float(defn_core::scalar::round_float(dtype, value))).collect()
        }
        Kind::Complex => {
            let parts = [0.0, 0.5, 1.0, -1.0, -2.5, 9.0, -0.0];
            let mut all: Vec<Number> =
                parts.iter().flat_map(|&re| parts.map(|im| Number::complex(re, im))).collect();
            all.extend([
                Number::complex(f64::NAN, 1.0),
                Number::complex(1.0, f64::NAN),
                Number::complex(1e-3, -1e-3),
                Number::complex(30.0, 0.25),
                Number::complex(-30.0, 2.0),
            ]);
            all
        }
    }
}

/// The special values as a vector.
pub fn specials(dtype: DType) -> Operand {
    let numbers = special(dtype);
    Operand { ty: ty(dtype, &[numbers.len()]), bytes: bytes(dtype, numbers) }
}

/// The special values as a column.
pub fn column(dtype: DType) -> Operand {
    let numbers = special(dtype);
    Operand { ty: ty(dtype, &[numbers.len(), 1]), bytes: bytes(dtype, numbers) }
}

/// A symmetric or Hermitian matrix with a dominant diagonal.
pub fn definite(dtype: DType, batch: usize, n: usize) -> Operand {
    let mut numbers = Vec::new();
    for which in 0..batch {
        for i in 0..n {
            for j in 0..n {
                let off = ((i * j + i + j + which) % 3) as f64 / 2.0 - 0.5;
                let off = if dtype.kind() == Kind::Unsigned { off.abs() } else { off };
                let value = if i == j { (n + i + 2) as f64 } else { off };
                numbers.push(match dtype.kind() {
                    Kind::Bool => Number::Bool(i == j),
                    Kind::Unsigned | Kind::Signed => {
                        Number::Int(defn_core::scalar::wrap(dtype, value as i128))
                    }
                    Kind::Float => Number::Float(value),
                    Kind::Complex => Number::complex(value, (i as f64 - j as f64) / 4.0),
                });
            }
        }
    }
    Operand { ty: ty(dtype, &[batch, n, n]), bytes: bytes(dtype, numbers) }
}

/// An unstructured matrix with well-separated singular values.
pub fn general(dtype: DType, rows: usize, columns: usize) -> Operand {
    let mut operand = small(dtype, &[rows, columns], 5);
    let each = dtype.storage_bytes();
    for at in 0..rows.min(columns) {
        let offset = (at * columns + at) * each;
        let value = 5 + 2 * at as i128;
        let number = if dtype.is_integer() {
            Number::Int(defn_core::scalar::wrap(dtype, value))
        } else {
            Number::Float(value as f64)
        };
        let scalar = Scalar::new(dtype, number).expect("a small number").to_bytes();
        operand.bytes[offset..offset + each].copy_from_slice(&scalar);
    }
    operand
}
