//! Composites: functions over any builder, shared by eager calls, traces, gradient rules and block defaults. Callers
//! use the builder's methods of the same names.

pub mod arrange;
pub mod block;
pub mod create;
pub mod derived;
pub mod einsum;
pub mod elementwise;
pub mod fold;
pub mod fourier;
pub mod index;
pub mod linalg;
pub mod matrix;
pub mod missing;
pub mod nn;
pub mod optim;
pub mod order;
pub mod quantile;
pub mod random;
pub mod reduce;
pub mod search;
pub mod segment;
pub mod sequence;
pub mod sets;
pub mod shape;
pub mod special;
pub mod statistics;
pub mod transforms;
pub mod window;

use derived::merged_float;

use crate::builder::{BuildElementwise, BuildShape, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::infer::reduce::require_real;
use crate::shape::Axes;

/// The dtype in which a mean is summed. A sum of finite elements does not overflow there if their mean fits their own
/// dtype, and integers neither wrap nor lose digits before the division. For f64 there is no wider dtype.
pub(crate) fn accumulation_dtype(dtype: DType) -> DType {
    let float = dtype.to_float();
    if !dtype.is_inexact() {
        DType::F64
    } else if float.is_complex() {
        DType::C128
    } else if float.bits() < 32 && float != DType::BF16 {
        // The largest elements of these dtypes are far below those of f32.
        DType::F32
    } else {
        DType::F64
    }
}

/// The dtype in which a composite computes: f32 for floats of 8 and 16 bits, so that only the result is rounded.
pub(crate) fn working_dtype(dtype: DType) -> DType {
    let float = dtype.to_float();
    if float.is_float() && float.bits() < 32 { DType::F32 } else { float }
}

/// A function of a real operand, computed in f32 or f64. `op` is for the message.
fn of_real<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    function: impl FnOnce(&mut B, &B::V) -> Result<B::V>,
) -> Result<B::V> {
    let ty = b.ty(x);
    require_real(op, &ty)?;
    let dtype = ty.dtype.to_float();
    let x = b.as_type(x, working_dtype(dtype))?;
    let value = function(b, &x)?;
    b.as_type(value, dtype)
}

/// A function of two real operands, computed in f32 or f64 on operands of one shape. `op` is for the messages.
fn of_reals<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    y: &B::V,
    function: impl FnOnce(&mut B, &B::V, &B::V) -> Result<B::V>,
) -> Result<B::V> {
    let dtype = merged_float(b, op, x, y)?;
    let shape = b.ty(x).shape.broadcast_with(op, &b.ty(y).shape)?;
    let operand = |b: &mut B, x: &B::V| {
        let x = b.as_type(x, working_dtype(dtype))?;
        if b.ty(&x).shape == shape { Ok(x) } else { b.broadcast(x, shape.clone(), Axes::All) }
    };
    let (x, y) = (operand(b, x)?, operand(b, y)?);
    let value = function(b, &x, &y)?;
    b.as_type(value, dtype)
}

/// The elements without axis names.
fn unnamed<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let shape = b.ty(x).shape.without_names();
    b.reshape_to(x, shape)
}
