//! Composites: functions over any builder, so that eager calls, traces, gradient rules and block defaults share
//! them. The builder's methods of the same names are the way to call them.

pub mod block;
pub mod create;
pub mod elementwise;
pub mod factor;
pub mod fold;
pub mod fourier;
pub mod index;
pub mod linalg;
pub(crate) mod matrices;
pub mod matrix;
pub mod order;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod spectral;
pub mod statistics;
pub mod window;

use crate::dtype::DType;

/// Where a composite computes: floats of 8 and 16 bits in f32, so that only its result is rounded.
pub(crate) fn working_dtype(dtype: DType) -> DType {
    let float = dtype.to_float();
    if float.is_float() && float.bits() < 32 { DType::F32 } else { float }
}
