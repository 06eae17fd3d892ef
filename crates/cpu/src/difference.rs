//! How results of one program differ.

use defn_core::{Scalar, TensorType};

/// How results differ, if they do. All NaNs are the same.
pub(crate) fn difference(ty: &TensorType, want: &[u8], got: &[u8]) -> Option<String> {
    if want == got {
        return None;
    }
    let width = ty.dtype.storage_bytes();
    let mut pairs = want.chunks_exact(width).zip(got.chunks_exact(width)).enumerate();
    let real = ty.dtype.to_real();
    let part = real.storage_bytes();
    let is_nan = |bytes: &[u8]| Scalar::from_bytes(real, bytes).value().to_f64().is_nan();
    let differ = |want: &[u8], got: &[u8]| {
        let mut parts = want.chunks_exact(part).zip(got.chunks_exact(part));
        want != got && parts.any(|(want, got)| want != got && !(is_nan(want) && is_nan(got)))
    };
    let (at, (want, got)) = pairs.find(|(_, (want, got))| differ(want, got))?;
    let [want, got] = [want, got].map(|bytes| Scalar::from_bytes(ty.dtype, bytes));
    Some(format!("has {got} and not {want} at {at}"))
}
