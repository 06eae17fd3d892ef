//! Differences of neighbours.

use crate::builder::{BuildElementwise, BuildShape, Builder};
use crate::error::{ErrorKind, Result};
use crate::shape::AxisRef;

/// See [`BuildReduce::diff`](crate::builder::BuildReduce::diff).
///
/// # Errors
/// As the method's.
pub fn diff<B: Builder>(b: &mut B, x: &B::V, order: i64, axis: &AxisRef) -> Result<B::V> {
    let got = b.ty(x);
    if got.shape.rank() == 0 {
        let required = "at least one axis is required";
        return Err(ErrorKind::Rank { op: "diff", got, required }.into());
    }
    let axis = got.shape.resolve("diff", axis)?;
    let size = got.shape[axis] as i64;
    if !(0..=size).contains(&order) {
        let given = order.to_string();
        let required = format!("an integer in 0..={size}, the size of axis {} of {got}", axis.index());
        return Err(ErrorKind::OptionValue { op: "diff", option: "order", given, required }.into());
    }
    let mut x = x.clone();
    for left in (size - order..size).rev() {
        let later = b.slice_along_axis(&x, 1, left, axis, 1)?;
        let earlier = b.slice_along_axis(&x, 0, left, axis, 1)?;
        x = b.subtract(later, earlier)?;
    }
    Ok(x)
}
