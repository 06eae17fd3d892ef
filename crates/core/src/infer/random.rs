//! Types of blocks that generate random bits; their default graphs are long.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{Shape, TensorType};

/// The type of the counters.
pub(super) fn threefry(key: &TensorType, counters: &TensorType) -> Result<TensorType> {
    check(key, "threefry")?;
    let is_pairs = counters.dtype == DType::U32 && counters.shape.sizes().first() == Some(&2);
    if !is_pairs {
        let (op, got) = ("threefry", counters.clone());
        let required = "pairs of u32 on axis 0 are required";
        return Err(ErrorKind::Rank { op, got, required }.into());
    }
    counters.with_dtype(DType::U32).map(|ty| TensorType { shape: ty.shape.without_names(), ..ty })
}

/// A vector of random elements.
pub(super) fn drawn(op: &'static str, key: &TensorType, dtype: DType, count: usize) -> Result<TensorType> {
    check(key, op)?;
    TensorType::new(dtype, Shape::new(&[count]))
}

/// A vector of integers below a bound.
pub(super) fn below(key: &TensorType, bound: &TensorType, dtype: DType, count: usize) -> Result<TensorType> {
    if bound.dtype != DType::U64 || bound.shape.rank() != 0 {
        let (op, got) = ("random_below", bound.clone());
        return Err(
            ErrorKind::Rank { op, got, required: "a bound that is a scalar of u64 is required" }.into()
        );
    }
    drawn("random_below", key, dtype, count)
}

fn check(key: &TensorType, op: &'static str) -> Result<()> {
    if key.dtype == DType::U32 && key.shape.sizes() == [2] {
        return Ok(());
    }
    Err(ErrorKind::RandomKey { op, got: key.clone() }.into())
}
