//! Positions in an ordered vector, counts and interpolation.

use defn_core as core;
use defn_core::builder::{Arg, Bins, BuildSearch, Side};
use defn_core::{Location, Result};

use super::eager;
use crate::expr::Operand;
use crate::{Expr, Tensor};

defn_core::search_functions!(shared);

methods! {
    /// The number of each integer from 0 to `length - 1` among the elements of a vector. Other integers are left out.
    /// [`segment_sum`](Self::segment_sum) adds up weights of the integers.
    ///
    /// - Shape: a vector of `length`, without a name.
    /// - Dtypes: integers; the result is s32, or s64 where the size of the vector needs it.
    /// - Gradient: zero.
    fn bincount(length: usize) |ops, x| ops.bincount(x, None, length);
    errors "Elements that are not integers (`DType`), and another rank than 1 (`Shape`).";
    example { (x = s32[4] "1, 3, 1, 7") x.bincount("4") == s32[4] "0, 2, 0, 1" }
}

impl Expr {
    /// The number of elements in each of `bins` bins of equal widths, and the edges of the bins. They reach from the least
    /// element to the greatest, or over a range. A bin has its lower edge, the last one also its upper edge. Elements
    /// outside and NaN are left out. With `density` the numbers are divided by their sum and by the widths. For other
    /// edges, [`digitize`](Self::digitize) gives what [`bincount`](Self::bincount) counts.
    ///
    /// - Shape: `bins` numbers, and one more edge.
    /// - Dtypes: any but complex. The numbers are s32, or s64 where the tensor needs it; densities and edges have the
    ///   dtype of the tensor, f32 for integers and bools.
    /// - Gradient: that of the edges, to the least and the greatest element.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| x.histogram(2, Some((0.0, 4.0)), false));
    /// let x = Tensor::from_slice(&[0.5f32, 1.0, 4.0, 9.0], &[4])?;
    /// let (counts, edges) = f.call(x)?;
    /// assert_eq!(counts.to_vec::<i32>()?, [2, 1]);
    /// assert_eq!(edges.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Complex elements (`DType`), fewer bins than 1, and a range that is not finite or descends (`Option`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn histogram(&self, bins: i64, range: Option<(f64, f64)>, density: bool) -> (Expr, Expr) {
        Expr::both(
            self.record(Location::caller(), |ops, x| {
                ops.histogram(x, Bins::Count(bins), range, density, None)
            }),
        )
    }
}

impl Tensor {
    /// The number of elements in each of `bins` bins of equal widths, and the edges of the bins. They reach from the least
    /// element to the greatest, or over a range. A bin has its lower edge, the last one also its upper edge. Elements
    /// outside and NaN are left out. With `density` the numbers are divided by their sum and by the widths. For other
    /// edges, [`digitize`](Self::digitize) gives what [`bincount`](Self::bincount) counts.
    ///
    /// - Shape: `bins` numbers, and one more edge.
    /// - Dtypes: any but complex. The numbers are s32, or s64 where the tensor needs it; densities and edges have the
    ///   dtype of the tensor, f32 for integers and bools.
    /// - Gradient: that of the edges, to the least and the greatest element.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[0.5f32, 1.0, 4.0, 9.0], &[4])?;
    /// let (counts, edges) = x.histogram(2, Some((0.0, 4.0)), false)?;
    /// assert_eq!(counts.to_vec::<i32>()?, [2, 1]);
    /// assert_eq!(edges.to_vec::<f32>()?, [0.0, 2.0, 4.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Complex elements (`DType`), fewer bins than 1, and a range that is not finite or descends (`Option`).
    #[track_caller]
    pub fn histogram(&self, bins: i64, range: Option<(f64, f64)>, density: bool) -> Result<(Tensor, Tensor)> {
        let (counts, edges) =
            eager(Location::caller(), |ops| ops.histogram(&self.0, Bins::Count(bins), range, density, None))?;
        Ok((Tensor(counts), Tensor(edges)))
    }
}
