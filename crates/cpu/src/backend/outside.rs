//! Bytes from outside, which may be no valid elements.

use defn_core::{DType, Kind, Result, TensorType};

/// The byte type for elements of less than a byte that come from outside. Kernels use the unused bits as an extension
/// of the element, but in these bytes they may have any value.
pub(super) fn whole_bytes(ty: &TensorType) -> Result<TensorType> {
    ty.with_dtype(if ty.dtype.kind() == Kind::Signed { DType::S8 } else { DType::U8 })
}
