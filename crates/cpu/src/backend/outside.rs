//! Bytes from outside, which need not be those of elements.

use defn_core::{DType, Kind, Result, TensorType};

/// The type of bytes from outside for elements of less than a byte: kernels count on the unused bits to extend the
/// element, and these bytes may hold any.
pub(super) fn whole_bytes(ty: &TensorType) -> Result<TensorType> {
    ty.with_dtype(if ty.dtype.kind() == Kind::Signed { DType::S8 } else { DType::U8 })
}
