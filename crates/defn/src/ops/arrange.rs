//! Rolls, repeats, pieces and grids.

use defn_core as core;
use defn_core::builder::{BuildArrange, Indexing, Sections};
use defn_core::{Axes, AxisRef, Location, Result};

use super::eager;
use crate::expr::record;
use crate::{Expr, Tensor};

methods! {
    /// The elements moved by `shift` positions along axes; those beyond the end return at the start. One shift serves all
    /// axes. [`Axes::All`] rolls all elements in row-major order.
    ///
    /// - Shape: unchanged; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g`, rolled back.
    fn roll(shift: &[i64], axes: impl Into<Axes>) |ops, x| ops.roll(x, shift, axes);
    errors "An axis that the tensor does not have, or that is given twice (`Axis`), and numbers of shifts and axes that \
        differ (`Option`).";
    example { (x = s32[4] "1, 2, 3, 4") x.roll("&[1], 0") == s32[4] "4, 1, 2, 3" }

    /// Each element repeated along an axis, or without an axis in row-major order. `repeats` has one number for all
    /// elements, or one for each.
    ///
    /// - Shape: the axis has the sum of the repeats and keeps its name; without an axis the result is a vector.
    /// - Dtypes: any; unchanged.
    /// - Gradient: the sum of `g` over the copies of an element.
    fn repeat(repeats: &[i64], axis: Option<AxisRef>) |ops, x| ops.repeat(x, repeats, axis);
    errors "A negative number, and numbers that are not one for each element (`Option`); an axis that the tensor does not \
        have (`Axis`), and too little memory (`OutOfMemory`).";
    example { (x = s32[3] "1, 2, 3") x.repeat("&[2, 0, 1], None") == s32[3] "1, 1, 3" }
}

/// The tensors behind expressions.
pub(super) fn tensors_of(exprs: &[Expr]) -> Result<Vec<core::Tensor>> {
    exprs.iter().map(|expr| expr.0.clone()).collect()
}

/// The expressions of several tensors. An error becomes the only one, so that the program goes on to where it comes out.
pub(super) fn exprs(made: Result<Vec<core::Tensor>>) -> Vec<Expr> {
    match made {
        Ok(tensors) => tensors.into_iter().map(|tensor| Expr(Ok(tensor))).collect(),
        Err(error) => vec![Expr(Err(error))],
    }
}

/// The tensors of the facade.
pub(super) fn own(tensors: Vec<core::Tensor>) -> Vec<Tensor> {
    tensors.into_iter().map(Tensor).collect()
}

impl Expr {
    /// The parts at each position of an axis.
    ///
    /// - Shape: without the axis; other axes keep their names.
    /// - Dtypes: any; unchanged.
    /// - Gradient: that of the parts, stacked.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| x.unstack(0));
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// let parts = f.call(x)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the tensor does not have (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn unstack(&self, axis: impl Into<AxisRef>) -> Vec<Expr> {
        exprs(self.record(Location::caller(), |ops, x| ops.unstack(x, axis)))
    }

    /// The parts between cuts along an axis: so many parts, of which the first have one element more where the size does
    /// not divide evenly, or those before and after positions. Negative positions count from the end, and those beyond an
    /// end are moved to it.
    ///
    /// - Shape: the sizes of the parts on the axis; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: those of the parts, concatenated.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|x: Expr| x.array_split(2, 0));
    /// let x = Tensor::from_slice(&[1, 2, 3], &[3])?;
    /// let parts = f.call(x)?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A number of parts below 1 (`Option`), and an axis that the tensor does not have (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn array_split(&self, sections: impl Into<Sections>, axis: impl Into<AxisRef>) -> Vec<Expr> {
        exprs(self.record(Location::caller(), |ops, x| ops.array_split(x, sections, axis)))
    }

    /// Tensors broadcast to their common shape.
    ///
    /// - Shape: sizes align at the end and are equal or 1; names merge.
    /// - Dtypes: any; each keeps its own.
    /// - Gradient: the sum of `g` over the axes that are new or were stretched.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::broadcast_arrays(&[x, y]));
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2, 1])?;
    /// let parts = f.call((x, y))?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 2, 1, 2]);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 3, 4, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn broadcast_arrays(list: &[Expr]) -> Vec<Expr> {
        let location = Location::caller();
        exprs(tensors_of(list).and_then(|list| record(location, |ops| ops.broadcast_arrays(&list))))
    }

    /// The grid of several vectors: each is repeated along the axes of the others. With [`Indexing::Xy`] the first two axes
    /// change places.
    ///
    /// - Shape: one axis for each vector, with its name. A scalar counts as a vector of one element.
    /// - Dtypes: any; each keeps its own.
    /// - Gradient: the sum of `g` over the other axes.
    ///
    /// ```
    /// # use defn::{Expr, Indexing, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::meshgrid(&[x, y], Indexing::Xy));
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// let parts = f.call((x, y))?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 2, 1, 2]);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 3, 4, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor with several axes (`Shape`), and an axis name of two vectors (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn meshgrid(list: &[Expr], indexing: Indexing) -> Vec<Expr> {
        let location = Location::caller();
        exprs(tensors_of(list).and_then(|list| record(location, |ops| ops.meshgrid(&list, indexing))))
    }

    /// Vectors as the columns of a matrix, and the columns of matrices, side by side.
    ///
    /// - Shape: the second axis has the sum of the columns; other axes are equal. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its columns of `g`.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::column_stack(&[x, y]));
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(f.call((x, y))?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensor, or another axis that differs (`Shape`); names that differ (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn column_stack(list: &[Expr]) -> Expr {
        let location = Location::caller();
        match tensors_of(list) {
            Ok(list) => Expr::make(location, |ops| ops.column_stack(&list)),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The tensors one after the other along a third axis, after [`atleast_3d`](Self::atleast_3d).
    ///
    /// - Shape: the sizes of the third axis add up; other axes are equal. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its slice of `g`.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let f = jit(|(x, y): (Expr, Expr)| Expr::dstack(&[x, y]));
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(f.call((x, y))?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensor, or another axis that differs (`Shape`); names that differ (`Axis`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn dstack(list: &[Expr]) -> Expr {
        let location = Location::caller();
        match tensors_of(list) {
            Ok(list) => Expr::make(location, |ops| ops.dstack(&list)),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The parts at each position of an axis.
    ///
    /// - Shape: without the axis; other axes keep their names.
    /// - Dtypes: any; unchanged.
    /// - Gradient: that of the parts, stacked.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// let parts = x.unstack(0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the tensor does not have (`Axis`).
    #[track_caller]
    pub fn unstack(&self, axis: impl Into<AxisRef>) -> Result<Vec<Tensor>> {
        eager(Location::caller(), |ops| ops.unstack(&self.0, axis)).map(own)
    }

    /// The parts between cuts along an axis: so many parts, of which the first have one element more where the size does
    /// not divide evenly, or those before and after positions. Negative positions count from the end, and those beyond an
    /// end are moved to it.
    ///
    /// - Shape: the sizes of the parts on the axis; axis names are kept.
    /// - Dtypes: any; unchanged.
    /// - Gradient: those of the parts, concatenated.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2, 3], &[3])?;
    /// let parts = x.array_split(2, 0)?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 2]);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A number of parts below 1 (`Option`), and an axis that the tensor does not have (`Axis`).
    #[track_caller]
    pub fn array_split(
        &self,
        sections: impl Into<Sections>,
        axis: impl Into<AxisRef>,
    ) -> Result<Vec<Tensor>> {
        eager(Location::caller(), |ops| ops.array_split(&self.0, sections, axis)).map(own)
    }

    /// Tensors broadcast to their common shape.
    ///
    /// - Shape: sizes align at the end and are equal or 1; names merge.
    /// - Dtypes: any; each keeps its own.
    /// - Gradient: the sum of `g` over the axes that are new or were stretched.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2, 1])?;
    /// let parts = Tensor::broadcast_arrays(&[x, y])?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 2, 1, 2]);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 3, 4, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Shapes that do not broadcast (`Shape`), and axis names that differ (`Axis`).
    #[track_caller]
    pub fn broadcast_arrays(list: &[Tensor]) -> Result<Vec<Tensor>> {
        let list: Vec<core::Tensor> = list.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.broadcast_arrays(&list)).map(own)
    }

    /// The grid of several vectors: each is repeated along the axes of the others. With [`Indexing::Xy`] the first two axes
    /// change places.
    ///
    /// - Shape: one axis for each vector, with its name. A scalar counts as a vector of one element.
    /// - Dtypes: any; each keeps its own.
    /// - Gradient: the sum of `g` over the other axes.
    ///
    /// ```
    /// # use defn::{Indexing, Tensor};
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// let parts = Tensor::meshgrid(&[x, y], Indexing::Xy)?;
    /// assert_eq!(parts[0].to_vec::<i32>()?, [1, 2, 1, 2]);
    /// assert_eq!(parts[1].to_vec::<i32>()?, [3, 3, 4, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A tensor with several axes (`Shape`), and an axis name of two vectors (`Axis`).
    #[track_caller]
    pub fn meshgrid(list: &[Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        let list: Vec<core::Tensor> = list.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.meshgrid(&list, indexing)).map(own)
    }

    /// Vectors as the columns of a matrix, and the columns of matrices, side by side.
    ///
    /// - Shape: the second axis has the sum of the columns; other axes are equal. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its columns of `g`.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(Tensor::column_stack(&[x, y])?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensor, or another axis that differs (`Shape`); names that differ (`Axis`).
    #[track_caller]
    pub fn column_stack(list: &[Tensor]) -> Result<Tensor> {
        let list: Vec<core::Tensor> = list.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.column_stack(&list)).map(Tensor)
    }

    /// The tensors one after the other along a third axis, after [`atleast_3d`](Self::atleast_3d).
    ///
    /// - Shape: the sizes of the third axis add up; other axes are equal. Names merge.
    /// - Dtypes: any; promoted.
    /// - Gradient: each receives its slice of `g`.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let x = Tensor::from_slice(&[1, 2], &[2])?;
    /// let y = Tensor::from_slice(&[3, 4], &[2])?;
    /// assert_eq!(Tensor::dstack(&[x, y])?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// No tensor, or another axis that differs (`Shape`); names that differ (`Axis`).
    #[track_caller]
    pub fn dstack(list: &[Tensor]) -> Result<Tensor> {
        let list: Vec<core::Tensor> = list.iter().map(|tensor| tensor.0.clone()).collect();
        eager(Location::caller(), |ops| ops.dstack(&list)).map(Tensor)
    }
}
