//! Which elements have no result.

/// Where `fusion_groups` finds the bases of logarithms.
pub(crate) mod vector {
    pub(crate) use crate::compiler::Base;
}

use std::sync::atomic::{AtomicUsize, Ordering};

use defn_core::op::{BinaryOp, Refused};
use defn_core::{ErrorKind, Kind, Number, Result, Scalar, TensorType};

use super::{Plain, TILE};
use crate::par::Par;
use crate::view::View;

/// Elements that one thread looks at.
const CHUNK: usize = 1 << 16;

/// Fails if an integer op has no result for an element of its second operand, where the result has this type.
///
/// # Errors
/// Integer division by zero, and negative exponents and shifts of integers. Without this check a quotient by zero has all
/// bits set, and a remainder by zero is the dividend; a shift by a negative number counts as one by more bits than there
/// are, and a negative exponent is read as unsigned.
pub(crate) fn check_operand(op: BinaryOp, b: View<'_>, result: &TensorType, par: Par) -> Result<()> {
    // An empty result uses no element of an operand.
    if !result.dtype.is_integer() || result.size() == 0 {
        return Ok(());
    }
    let Some(refused) = op.traits().refused else { return Ok(()) };
    let error = match refused {
        Refused::ZeroDivisor => has_zero(b, par).then_some(ErrorKind::DivisionByZero { op: op.name() }),
        Refused::NegativeExponent => {
            first_negative(b, par).map(|value| ErrorKind::NegativeExponent { value })
        }
        Refused::NegativeShift => {
            first_negative(b, par).map(|value| ErrorKind::NegativeShift { op: op.name(), value })
        }
    };
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// The first element of a view that is refused, also of one that the result will overwrite.
fn first<T: Plain>(x: View<'_>, par: Par, is_refused: impl Fn(T) -> bool + Sync) -> Option<usize> {
    let count = x.ty().size();
    // SAFETY: a view has its elements, aligned, and the result is not written yet.
    let is_refused_at = |at: usize| is_refused(unsafe { x.start().cast::<T>().add(at).read() });
    let first = AtomicUsize::new(count);
    par.for_chunks(count, CHUNK, |chunk| {
        for begin in chunk.clone().step_by(TILE) {
            let mut tile = begin..chunk.end.min(begin + TILE);
            // Most have none, which a loop without a branch tells sooner.
            if tile.clone().fold(false, |any, at| any | is_refused_at(at))
                && let Some(at) = tile.find(|&at| is_refused_at(at))
            {
                first.fetch_min(at, Ordering::Relaxed);
                return;
            }
        }
    });
    Some(first.into_inner()).filter(|&first| first < count)
}

/// Whether any integer is zero.
fn has_zero(x: View<'_>, par: Par) -> bool {
    let position = match x.ty().dtype.storage_bytes() {
        1 => first(x, par, |x: u8| x == 0),
        2 => first(x, par, |x: u16| x == 0),
        4 => first(x, par, |x: u32| x == 0),
        _ => first(x, par, |x: u64| x == 0),
    };
    position.is_some()
}

/// The first negative integer.
fn first_negative(x: View<'_>, par: Par) -> Option<i128> {
    let dtype = x.ty().dtype;
    if dtype.kind() != Kind::Signed {
        return None;
    }
    let width = dtype.storage_bytes();
    let position = match width {
        1 => first(x, par, |x: i8| x < 0),
        2 => first(x, par, |x: i16| x < 0),
        4 => first(x, par, |x: i32| x < 0),
        _ => first(x, par, |x: i64| x < 0),
    }?;
    let mut bytes = [0; 8];
    for (at, byte) in bytes[..width].iter_mut().enumerate() {
        // SAFETY: as for `first`.
        *byte = unsafe { x.start().add(position * width + at).read() };
    }
    match Scalar::from_bytes(dtype, &bytes[..width]).value() {
        Number::Int(value) => Some(value),
        Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => {
            unreachable!("{dtype} has integers")
        }
    }
}
