//! Integrals, slopes, convolutions and polynomials.

use defn_core as core;
use defn_core::builder::{Arg, BuildOrder, BuildSequence, Overlap};
use defn_core::{Axes, AxisRef, Location, Result};

use super::arrange::{exprs, own, tensors_of};
use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

defn_core::sequence_functions!(shared);

methods! {
    /// The integral along an axis by the trapezoidal rule, of samples at the distance `dx`.
    ///
    /// - Shape: `axis` is removed.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: `g` times `dx`, half of it to the first and the last element.
    fn trapezoid(dx: f64, axis: impl Into<AxisRef>) |ops, x| ops.trapezoid(x, None, dx, axis);
    errors "An axis that the tensor does not have (`Axis`).";
    example { (x = f32[3] "1.0, 2.0, 4.0") x.trapezoid("2.0, 0") == f32 "9.0" }

    /// The elements along an axis with those at the positions `kth` where a sort would put them, lower ones before them
    /// and higher ones behind. Elements between these positions keep their order; equal ones are as in a stable sort.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; unchanged.
    /// - Gradient: `g` in the former order of the elements.
    fn partition(kth: &[i64], axis: impl Into<AxisRef>) |ops, x| ops.partition(x, kth, axis);
    errors "Complex elements (`DType`), an axis that the tensor does not have (`Axis`), and positions that the axis does not \
        have (`Option`).";
    example { (x = s32[3] "3, 1, 2") x.partition("&[1], 0") == s32[3] "1, 2, 3" }

    /// The positions from which the elements of [`partition`](Self::partition) come.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
    /// - Gradient: zero.
    fn argpartition(kth: &[i64], axis: impl Into<AxisRef>) |ops, x| ops.argpartition(x, kth, axis);
    errors "Complex elements (`DType`), an axis that the tensor does not have (`Axis`), and positions that the axis does not \
        have (`Option`).";
    example { (x = s32[3] "3, 1, 2") x.argpartition("&[1], 0") == s32[3] "1, 2, 0" }
}

impl Expr {
    /// The slopes along axes, by central differences at the distance 1, and by differences of neighbours at the ends.
    ///
    /// - Shape: one tensor for each axis; unchanged, axis names are kept.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: through the definition.
    ///
    /// ```
    /// # use defn::{Axes, Expr, Tensor, jit};
    /// let f = jit(|x: Expr| x.gradient(Axes::All));
    /// let slopes = f.call(Tensor::from_slice(&[1.0f32, 2.0, 5.0], &[3])?)?;
    /// assert_eq!(slopes[0].to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Axes that the tensor does not have, or that are given twice (`Axis`), and an axis of one element (`Option`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn gradient(&self, axes: impl Into<Axes>) -> Vec<Expr> {
        exprs(self.record(Location::caller(), |ops, x| ops.gradient(x, &[], axes, 1)))
    }

    /// The positions along an axis that sort elements by several keys: by the last one first, among equal ones by the key
    /// before.
    ///
    /// - Shape: that of the keys, with the names of the first.
    /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
    /// - Gradient: zero.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::lexsort(&[x, y], 0));
    /// let x = Tensor::from_slice(&[3, 1, 2], &[3])?;
    /// let y = Tensor::from_slice(&[1, 1, 0], &[3])?;
    /// assert_eq!(f.call((x, y))?.to_vec::<i32>()?, [2, 1, 0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No key and keys of other shapes (`Shape`), complex elements (`DType`), and an axis that they do not have (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn lexsort(keys: &[Expr], axis: impl Into<AxisRef>) -> Expr {
        let location = Location::caller();
        match tensors_of(keys) {
            Ok(keys) => Expr::make(location, |ops| ops.lexsort(&keys, axis)),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The slopes along axes, by central differences at the distance 1, and by differences of neighbours at the ends.
    ///
    /// - Shape: one tensor for each axis; unchanged, axis names are kept.
    /// - Dtypes: any; integers and bools become f32.
    /// - Gradient: through the definition.
    ///
    /// ```
    /// # use defn::{Axes, Tensor};
    /// let slopes = Tensor::from_slice(&[1.0f32, 2.0, 5.0], &[3])?.gradient(Axes::All)?;
    /// assert_eq!(slopes[0].to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Axes that the tensor does not have, or that are given twice (`Axis`), and an axis of one element (`Option`).
    #[track_caller]
    pub fn gradient(&self, axes: impl Into<Axes>) -> Result<Vec<Tensor>> {
        eager(Location::caller(), |ops| ops.gradient(&self.0, &[], axes, 1)).map(own)
    }

    /// The positions along an axis that sort elements by several keys: by the last one first, among equal ones by the key
    /// before.
    ///
    /// - Shape: that of the keys, with the names of the first.
    /// - Dtypes: any but complex; the result is s32, or s64 where the axis needs it.
    /// - Gradient: zero.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[3, 1, 2], &[3])?;
    /// let y = Tensor::from_slice(&[1, 1, 0], &[3])?;
    /// assert_eq!(Tensor::lexsort(&[x, y], 0)?.to_vec::<i32>()?, [2, 1, 0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No key and keys of other shapes (`Shape`), complex elements (`DType`), and an axis that they do not have (`Axis`).
    #[track_caller]
    pub fn lexsort(keys: &[Tensor], axis: impl Into<AxisRef>) -> Result<Tensor> {
        let keys: Vec<core::Tensor> = keys.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.lexsort(&keys, axis)).map(Tensor)
    }
}
