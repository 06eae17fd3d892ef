//! Keys, and the random bits that are derived from them.
//!
//! The generator is Threefry-2x32 with 20 rounds, from Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As
//! Easy as 1, 2, 3 (2011).

use super::{Sample, check_key, wrong_dtype};
use crate::builder::{Arg, BuildControl, BuildCreate, BuildElementwise, BuildShape, Builder};
use crate::dtype::{DType, Kind};
use crate::error::{ErrorKind, Result};
use crate::op::{Block, Op};
use crate::scalar::{Number, Scalar};
use crate::shape::{Axes, AxisRef, Shape, TensorType};

/// The rotations, in bits, of the four rounds of a group. The groups alternate between both rows.
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];

/// The parity constant: the third key word is its XOR with the first two words.
const PARITY: u32 = 0x1BD1_1BDA;

/// See [`Block::Threefry`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn threefry<B: Builder>(b: &mut B, key: &B::V, counters: &B::V) -> Result<B::V> {
    let mut word = |at: i64| -> Result<B::V> {
        let word = b.slice_along_axis(key, at, 1, 0, 1)?;
        b.squeeze(word, 0)
    };
    let (first, second) = (word(0)?, word(1)?);
    let third = b.bitwise_xor(&first, &second)?;
    let third = b.bitwise_xor(third, PARITY)?;
    let words = [first, second, third];
    let mut row = |at: usize| -> Result<B::V> {
        let row = b.slice_along_axis(counters, at as i64, 1, 0, 1)?;
        b.add(row, &words[at])
    };
    let (mut left, mut right) = (row(0)?, row(1)?);
    for group in 1..=5 {
        for rotation in ROTATIONS[(group - 1) % 2] {
            left = b.add(left, &right)?;
            let high = b.left_shift(&right, rotation)?;
            let low = b.right_shift(&right, 32 - rotation)?;
            let rotated = b.bitwise_or(high, low)?;
            right = b.bitwise_xor(rotated, &left)?;
        }
        left = b.add(left, &words[group % 3])?;
        let word = b.add(&words[(group + 1) % 3], group)?;
        right = b.add(right, word)?;
    }
    b.concatenate(&[left, right], 0)
}

/// Words for the counters from 0 on. The first half of the counters is paired with the second half; an odd number is
/// padded with a counter of 0.
fn words<B: Builder>(b: &mut B, key: &B::V, count: usize) -> Result<B::V> {
    let pairs = count.div_ceil(2);
    let mut counters = b.iota(Shape::new(&[count]), DType::U32, None)?;
    if count % 2 == 1 {
        let zero = b.constant(DType::U32, 0)?;
        counters = b.pad(counters, zero, &[(0, 1, 0)])?;
    }
    let counters = b.reshape_to(counters, Shape::new(&[2, pairs]))?;
    let words = b.emit_one(Op::Block(Block::Threefry), &[key.clone(), counters])?;
    let words = b.reshape_to(words, Shape::new(&[2 * pairs]))?;
    b.slice_along_axis(words, 0, count as i64, 0, 1)
}

/// See [`Block::RandomBits`].
///
/// # Errors
/// The errors of the definition's ops.
pub fn plain_bits<B: Builder>(b: &mut B, key: &B::V, dtype: DType, count: usize) -> Result<B::V> {
    TensorType::new(dtype, Shape::new(&[count]))?;
    if dtype.bits() < 64 {
        let words = words(b, key, count)?;
        return b.as_type(words, dtype);
    }
    let words = words(b, key, 2 * count)?;
    let words = b.as_type(words, dtype)?;
    let high = b.slice_along_axis(&words, 0, count as i64, 0, 1)?;
    let low = b.slice_along_axis(words, count as i64, count as i64, 0, 1)?;
    let high = b.left_shift(high, 32)?;
    b.bitwise_or(high, low)
}

/// See [`Block::RandomUniform`]. The random bits become the mantissa of a float in [1, 2), from which 1 is
/// subtracted.
///
/// # Errors
/// The errors of the definition's ops.
pub fn plain_uniform<B: Builder>(b: &mut B, key: &B::V, dtype: DType, count: usize) -> Result<B::V> {
    let unsigned = DType::unsigned(dtype.bits());
    let draw = Op::Block(Block::RandomBits { dtype: unsigned, count });
    let bits = b.emit_one(draw, std::slice::from_ref(key))?;
    let spare = dtype.bits() - dtype.mantissa_bits();
    let mantissa = b.right_shift(bits, spare)?;
    let one = b.scalar(Scalar::from_bytes(unsigned, &Scalar::one(dtype).to_bytes()))?;
    let bits = b.bitwise_or(mantissa, one)?;
    let floats = b.bitcast(bits, dtype)?;
    b.subtract(floats, 1)
}

/// The key of a seed, a 64-bit integer: its upper and its lower half. A negative seed is in two's complement.
///
/// # Errors
/// A number that is no 64-bit integer, and a tensor that is no scalar of u64 or s64.
pub fn key<B: Builder>(b: &mut B, seed: &Arg<B::V>) -> Result<B::V> {
    let refuse = |got: String| Err(ErrorKind::RandomSeed { got }.into());
    let seed = match seed {
        Arg::Number(Number::Int(seed)) => {
            if !(i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(seed) {
                return refuse(seed.to_string());
            }
            b.constant(DType::U64, Number::Int(*seed))?
        }
        Arg::Number(Number::Bool(seed)) => return refuse(seed.to_string()),
        Arg::Number(Number::Huge(seed)) => return refuse(format!("{seed:e}")),
        Arg::Number(Number::Float(seed)) => return refuse(seed.to_string()),
        Arg::Number(Number::Complex(seed)) => return refuse(seed.to_string()),
        Arg::Value(seed) => {
            let got = b.ty(seed);
            if got.shape.rank() != 0 || !got.dtype.is_integer() || got.dtype.bits() != 64 {
                return refuse(got.to_string());
            }
            b.bitcast(seed, DType::U64)?
        }
    };
    let (high, low) = halves(b, &seed)?;
    let key = b.stack(&[high, low], 0, None)?;
    b.stop_grad(key)
}

/// The upper and the lower half of 64-bit integers.
fn halves<B: Builder>(b: &mut B, x: &B::V) -> Result<(B::V, B::V)> {
    let high = b.right_shift(x, 32)?;
    Ok((b.as_type(high, DType::U32)?, b.as_type(x, DType::U32)?))
}

/// `parts` new keys, stacked along axis 0.
///
/// # Errors
/// A value that is no key.
pub fn split<B: Builder>(b: &mut B, key: &B::V, parts: usize) -> Result<B::V> {
    check_key(b, "split", key)?;
    let shape = Shape::new(&[parts, 2]);
    let count = TensorType::new(DType::U32, shape.clone())?.size();
    let draw = Op::Block(Block::RandomBits { dtype: DType::U32, count });
    let flat = b.emit_one(draw, std::slice::from_ref(key))?;
    b.reshape_to(flat, shape)
}

/// Splits a key into one to use and the next one: the second and the first of its two parts.
///
/// # Errors
/// A value that is no key; `op` is for the message.
pub fn fresh<B: Builder>(b: &mut B, op: &'static str, key: &B::V) -> Result<(B::V, B::V)> {
    check_key(b, op, key)?;
    let draw = Op::Block(Block::RandomBits { dtype: DType::U32, count: 4 });
    let flat = b.emit_one(draw, std::slice::from_ref(key))?;
    let next = b.slice_along_axis(&flat, 0, 2, 0, 1)?;
    let used = b.slice_along_axis(flat, 2, 2, 0, 1)?;
    Ok((used, next))
}

/// New keys derived from a key and integers, one key for each integer. The words of a key are on a new last axis.
///
/// # Errors
/// A value that is no key, and data that are no integers.
pub fn fold_in<B: Builder>(b: &mut B, key: &B::V, data: &Arg<B::V>) -> Result<B::V> {
    let value = folded(b, key, data)?;
    b.order_vectorized_axes(value, &[&key.into(), data])
}

fn folded<B: Builder>(b: &mut B, key: &B::V, data: &Arg<B::V>) -> Result<B::V> {
    check_key(b, "fold_in", key)?;
    let data = match data {
        Arg::Number(number @ Number::Int(_)) => b.constant(DType::U64, *number)?,
        Arg::Number(_) | Arg::Value(_) => {
            let data = b.operand(data.clone())?;
            let got = b.ty(&data);
            if !got.dtype.is_integer() {
                let (op, required, hint) = ("fold_in", "an integer", "; convert it with as_type");
                return Err(ErrorKind::OperandDType { op, got, required, hint }.into());
            }
            let data = b.reshape_to(data, got.shape.without_names())?;
            b.as_type(data, DType::U64)?
        }
    };
    let (high, low) = halves(b, &data)?;
    let counters = b.stack(&[high, low], 0, None)?;
    let keys = b.emit_one(Op::Block(Block::Threefry), &[key.clone(), counters])?;
    let rank = b.ty(&keys).shape.rank() as i64;
    let order = (1..rank).chain([0]).map(AxisRef::Index).collect();
    let keys = b.transpose(keys, Axes::List(order))?;
    b.stop_grad(keys)
}

/// Random bits as unsigned integers, by default u32.
///
/// # Errors
/// A value that is no key, and an element type that is not unsigned.
pub fn bits<B: Builder>(b: &mut B, key: &B::V, sample: &Sample) -> Result<B::V> {
    check_key(b, "bits", key)?;
    let dtype = sample.dtype.unwrap_or(DType::U32);
    if dtype.kind() != Kind::Unsigned {
        return Err(wrong_dtype("bits", dtype, "an unsigned dtype"));
    }
    let count = TensorType::new(dtype, sample.shape.clone())?.size();
    let draw = Op::Block(Block::RandomBits { dtype, count });
    let flat = b.emit_one(draw, std::slice::from_ref(key))?;
    b.reshape_to(flat, sample.shape.clone())
}
