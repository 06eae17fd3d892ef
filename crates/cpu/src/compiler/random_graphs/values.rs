//! Elements: mostly small numbers, and special ones among them.

use defn_core::{DType, Kind, Number, Scalar, TensorType};

use super::generate::number_of;

/// Numbers that look random: xorshift (Marsaglia, 2003).
pub(crate) struct Mixed(u64);

impl Mixed {
    pub(crate) fn new(seed: u64) -> Mixed {
        Mixed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) as usize) % n
    }
}

const ODD: &[f64] = &[
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-40,
    -1e-310,
    6e-8,
    3e38,
    -1e300,
    65_519.0,
    1e10,
    -2_147_483_648.0,
    9.3e18,
    88.5,
    -745.0,
];
const ODD_INTEGERS: &[i128] =
    &[i128::MIN, i128::MIN + 1, -1, 0, 1, 7, 8, 31, 32, 63, 64, i128::MAX - 1, i128::MAX, i128::MAX / 2];

/// The number as an element of a type, if it has it or one near it.
pub(crate) fn scalar(dtype: DType, number: f64) -> Scalar {
    number_of(dtype, number)
        .or_else(|| number_of(dtype, 1.0))
        .unwrap_or_else(|| Scalar::new(dtype, Number::Bool(number != 0.0)).expect("a bool is a bool"))
}

/// Elements that a tensor is filled with: ordinary ones, then special ones.
fn pool(dtype: DType, mixed: &mut Mixed) -> (Vec<Vec<u8>>, usize) {
    let bytes = |scalar: Scalar| scalar.to_bytes().to_vec();
    let mut found: Vec<Vec<u8>> = Vec::new();
    let complex = |re, im| Scalar::new(dtype, Number::complex(re, im)).expect("all numbers are rounded");
    for _ in 0..24 {
        let number = mixed.below(4000) as f64 / 400.0 - 5.0;
        found.push(bytes(match dtype.kind() {
            Kind::Complex => complex(number, mixed.below(4000) as f64 / 1000.0 - 2.0),
            Kind::Float => scalar(dtype, number),
            Kind::Signed => scalar(dtype, number.trunc()),
            Kind::Unsigned => scalar(dtype, number.trunc().abs()),
            Kind::Bool => Scalar::new(dtype, Number::Bool(number > 0.0)).expect("a bool"),
        }));
    }
    let ordinary = found.len();
    match dtype.kind() {
        Kind::Bool => found.push(vec![1]),
        Kind::Signed | Kind::Unsigned => {
            let (Number::Int(low), Number::Int(high)) = (dtype.lowest(), dtype.highest()) else {
                return (found, ordinary);
            };
            let inside = ODD_INTEGERS.iter().map(|&number| match number {
                i128::MIN => low,
                number if number == i128::MIN + 1 => low + 1,
                i128::MAX => high,
                number if number == i128::MAX - 1 => high - 1,
                number if number == i128::MAX / 2 => high / 2,
                number => number.clamp(low, high),
            });
            found.extend(
                inside.map(|number| bytes(Scalar::new(dtype, Number::Int(number)).expect("it fits"))),
            );
        }
        Kind::Float => found.extend(ODD.iter().map(|&number| bytes(scalar(dtype, number)))),
        Kind::Complex => {
            for (at, &re) in ODD.iter().enumerate() {
                found.push(bytes(complex(re, ODD[(at * 7 + 3) % ODD.len()])));
                found.push(bytes(complex(re, 0.5)));
            }
        }
    }
    (found, ordinary)
}

/// The bytes of a tensor; of positions along an axis of `bound` elements, a few of which are out of range.
pub(crate) fn elements(ty: &TensorType, bound: Option<usize>, mixed: &mut Mixed) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ty.byte_size());
    if let Some(bound) = bound {
        for _ in 0..ty.size() {
            let position = mixed.below(bound + 2) as i128 - i128::from(mixed.below(4) == 0) * bound as i128;
            let highest = if let Number::Int(highest) = ty.dtype.highest() { highest } else { 1 };
            let lowest = if let Number::Int(lowest) = ty.dtype.lowest() { lowest } else { 0 };
            let number = Number::Int(position.clamp(lowest, highest));
            bytes.extend(Scalar::new(ty.dtype, number).expect("it fits").to_bytes());
        }
        return bytes;
    }
    let (pool, ordinary) = pool(ty.dtype, mixed);
    let rare = [4, 16, 1000][mixed.below(3)];
    for _ in 0..ty.size() {
        let among = if mixed.below(rare) == 0 { pool.len() } else { ordinary };
        bytes.extend(&pool[mixed.below(among)]);
    }
    bytes
}
