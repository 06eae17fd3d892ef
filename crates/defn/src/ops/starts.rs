//! Windows: their starts are numbers, or scalars that are computed.

use defn_core as core;
use defn_core::builder::{Arg, BuildShape, Cut, Start};
use defn_core::{AxisRef, ErrorKind, Location, Number, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

/// A start from what a method was given.
fn start_of(op: &'static str, given: impl Into<Arg<core::Tensor>>) -> Result<Start<core::Tensor>> {
    match given.into() {
        Arg::Value(tensor) => Ok(Start::Value(tensor)),
        Arg::Number(Number::Int(position)) if i64::try_from(position).is_ok() => {
            Ok(Start::Index(position as i64))
        }
        Arg::Number(number) => {
            let (option, given) = ("a start", format!("a number ({})", number.dtype()));
            let required = "an integer or a scalar integer tensor".to_owned();
            Err(ErrorKind::OptionValue { op, option, given, required }.into())
        }
    }
}

/// Starts from the list that a method was given.
fn starts_of(op: &'static str, given: Vec<Arg<core::Tensor>>) -> Result<Vec<Start<core::Tensor>>> {
    given.into_iter().map(|start| start_of(op, start)).collect()
}

with_operands! {
    /// A window of the tensor: where it starts and its length, for each axis. A start is a number or a scalar of the same
    /// kind as the tensor; a start out of range is moved so that the window fits, and a negative one becomes 0.
    ///
    /// - Shape: the lengths; axis names are kept.
    /// - Dtypes: any; unchanged. Starts are integers.
    /// - Gradient: zeros with `g` in the window; zero to the starts.
    fn slice(; [starts]; lengths: &[i64])
        |ops, x| ops.slice(x, &starts_of("slice", starts)?, lengths, None);
    errors "Other than one entry per axis (`Axis`), a length that exceeds its axis (`Shape`), and a start that is no \
        integer (`Option`, `DType`).";
    example { (x = s32[2][3] "0, 1, 2, 3, 4, 5") x.slice("&[0, 1], &[2, 2]") == s32[2][2] "1, 2, 4, 5" }

    /// The tensor with the window that begins at `starts` replaced by another tensor, of the same rank or a scalar. A start
    /// is a number or a scalar of the same kind as the tensor; negative ones count from the end.
    ///
    /// - Shape: unchanged; axis names merge.
    /// - Dtypes: any; promoted. Starts are integers.
    /// - Gradient: `g` with zeros in the window, and the window of `g`; zero to the starts.
    fn put_slice(update; [starts];)
        |ops, x| ops.put_slice(x, &starts_of("put_slice", starts)?, update);
    errors "Other than one start per axis (`Axis`), another rank, and an update larger than the tensor (`Shape`); a start \
        that is no integer (`Option`, `DType`).";
    example { (x = s32[3] "1, 2, 3", u = s32[2] "8, 9") x.put_slice("&u, &[-2]") == s32[3] "1, 8, 9" }

    /// A window along one axis; the other axes are taken whole. The start is a number or a scalar of the same kind as the
    /// tensor; a negative one counts from the end.
    ///
    /// - Shape: the axis has `length` elements; axis names are kept.
    /// - Dtypes: any; unchanged. The start is an integer.
    /// - Gradient: zeros with `g` in the window; zero to the start.
    fn slice_along_axis(start; length: i64, axis: impl Into<AxisRef>)
        |ops, x| ops.slice_along_axis(x, start_of("slice_along_axis", start)?, length, axis, 1);
    errors "A length that exceeds the axis (`Shape`), an axis that the tensor does not have (`Axis`), a window \
        out of range (`Bounds`), and a start that is no integer (`Option`, `DType`).";
    example { (x = s32[2][3] "0, 1, 2, 3, 4, 5") x.slice_along_axis("-2, 2, 1") == s32[2][2] "1, 2, 4, 5" }
}

impl Expr {
    /// Both parts of the tensor around a cut along an axis: before position `at`, and from there. A negative position counts
    /// from the end.
    ///
    /// - Shapes: the sizes of the axis are those of the parts; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g` of each part in its place.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let halves = jit(|x: Expr| x.split(-1, 0));
    /// let (most, last) = halves.call(tensor![1, 2, 3]?)?;
    /// assert_eq!((most.to_vec::<i32>()?, last.to_vec::<i32>()?), (vec![1, 2], vec![3]));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A cut that is not inside (`Option`), and an axis that the tensor does not have (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn split(&self, at: i64, axis: impl Into<AxisRef>) -> (Expr, Expr) {
        Expr::both(self.record(Location::caller(), |ops, x| ops.split(x, Cut::At(at), axis)))
    }
}

impl Tensor {
    /// Both parts of the tensor around a cut along an axis: before position `at`, and from there. A negative position counts
    /// from the end.
    ///
    /// - Shapes: the sizes of the axis are those of the parts; axis names are kept.
    /// - Dtypes: any; unchanged.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// let (most, last) = tensor![1, 2, 3]?.split(-1, 0)?;
    /// assert_eq!((most.to_vec::<i32>()?, last.to_vec::<i32>()?), (vec![1, 2], vec![3]));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A cut that is not inside (`Option`), and an axis that the tensor does not have (`Axis`).
    #[track_caller]
    pub fn split(&self, at: i64, axis: impl Into<AxisRef>) -> Result<(Tensor, Tensor)> {
        let (before, after) = eager(Location::caller(), |ops| ops.split(&self.0, Cut::At(at), axis))?;
        Ok((Tensor(before), Tensor(after)))
    }
}
