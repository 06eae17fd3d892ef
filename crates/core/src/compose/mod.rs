//! Composites: functions over any builder, so that eager calls, traces, gradient rules and block defaults share
//! them. The builder's methods of the same names are the way to call them.

pub mod block;
pub mod create;
pub mod elementwise;
pub mod fold;
pub mod fourier;
pub mod index;
pub mod linalg;
pub mod matrix;
pub mod order;
pub mod random;
pub mod reduce;
pub mod shape;
pub mod statistics;
pub mod window;

use crate::dtype::DType;

/// Where a mean adds up: no sum of finite elements overflows there that has a mean in their own type, and integers
/// neither wrap nor lose digits before the division. Sums of f64 have nothing wider.
pub(crate) fn summing_dtype(dtype: DType) -> DType {
    let float = dtype.to_float();
    if !dtype.is_inexact() {
        DType::F64
    } else if float.is_complex() {
        DType::C128
    } else if float.bits() < 32 && float != DType::BF16 {
        // Their greatest elements are far below those of f32.
        DType::F32
    } else {
        DType::F64
    }
}

/// Where a composite computes: floats of 8 and 16 bits in f32, so that only its result is rounded.
pub(crate) fn working_dtype(dtype: DType) -> DType {
    let float = dtype.to_float();
    if float.is_float() && float.bits() < 32 { DType::F32 } else { float }
}
