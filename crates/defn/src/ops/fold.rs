//! Reductions by a function.

use defn_core as core;
use defn_core::builder::{self, Arg, FoldFunction, Ops, WindowOptions};
use defn_core::{Axes, Location, Result};

use super::{eager, pair};
use crate::expr::Operand;
use crate::{Expr, Tensor};

/// The user's function as the core takes it.
fn folding<'a>(fun: impl FnOnce(Expr, Expr) -> Expr + 'a) -> FoldFunction<'a> {
    Box::new(|_: &mut Ops, element, acc| {
        let result = fun(Expr(Ok(element.clone())), Expr(Ok(acc.clone())));
        Ok(Arg::Value(result.0?))
    })
}

impl Expr {
    /// The elements folded over axes with `fun`, which gets an element and the value so far, from `acc` on.
    ///
    /// Elements are folded in row-major order. For a single addition or multiplication the order may differ, as in
    /// [`sum`](Self::sum). The function is called once, while it is traced.
    ///
    /// - Shape: `axes` are removed, or with `keep_axes` have size 1. `acc` is a scalar.
    /// - Dtypes: any; the operand and `acc` are promoted, and `fun` works on scalars of that dtype.
    /// - Gradient: none, it is refused.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, jit};
    /// let number = jit(|x: Expr| x.reduce(0, 0, false, |digit, number| number * 10 + digit));
    /// let digits = Tensor::from_slice(&[1, 2, 3], &[3])?;
    /// assert_eq!(number.call(digits)?.item::<i32>()?, 123);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the tensor does not have, or that is given twice (`Axis`); an `acc` that is not a scalar, and a
    /// function whose result is not one of that dtype (`Shape`, `DType`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn reduce(
        &self,
        acc: impl Into<Operand>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let location = Location::caller();
        match pair(self, acc.into()) {
            Ok((x, acc)) => Expr::make(location, |ops| {
                builder::reduce(ops, Arg::Value(x), acc, &axes.into(), keep_axes, None, folding(fun))
            }),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The elements at each position of a window folded with `fun`, which gets an element and the value so far, from
    /// `acc` on. Padding counts as `acc`.
    ///
    /// The order of the elements and the function are as for [`reduce`](Self::reduce).
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. `acc` is a scalar.
    /// - Dtypes: any; unchanged. `acc` has the dtype of the operand.
    /// - Gradient: none, it is refused.
    ///
    /// ```
    /// # use defn::{Expr, Tensor, WindowOptions, jit};
    /// let options = WindowOptions::default();
    /// let pairs = jit(|x: Expr| x.window_reduce(0, &[2], &options, |x, acc| x + 2 * acc));
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[4])?;
    /// assert_eq!(pairs.call(x)?.to_vec::<i32>()?, [4, 7, 10]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An option without one entry per axis, a window that does not fit once, and an `acc` or a result of `fun` that is
    /// not a scalar of the dtype (`Shape`, `DType`); an entry below 1 (`Option`).
    /// The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn window_reduce(
        &self,
        acc: impl Into<Operand>,
        window: &[i64],
        options: &WindowOptions,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let location = Location::caller();
        match pair(self, acc.into()) {
            Ok((x, acc)) => Expr::make(location, |ops| {
                builder::window_reduce(ops, Arg::Value(x), acc, window, options, folding(fun))
            }),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The elements folded over axes with `fun`, which gets an element and the value so far, from `acc` on.
    ///
    /// Elements are folded in row-major order. For a single addition or multiplication the order may differ, as in
    /// [`sum`](Self::sum). The function is called once, while it is traced.
    ///
    /// - Shape: `axes` are removed, or with `keep_axes` have size 1. `acc` is a scalar.
    /// - Dtypes: any; the operand and `acc` are promoted, and `fun` works on scalars of that dtype.
    /// - Gradient: none, it is refused.
    ///
    /// ```
    /// # use defn::Tensor;
    /// let digits = Tensor::from_slice(&[1, 2, 3], &[3])?;
    /// let number = digits.reduce(0, 0, false, |digit, number| number * 10 + digit)?;
    /// assert_eq!(number.item::<i32>()?, 123);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis that the tensor does not have, or that is given twice (`Axis`); an `acc` that is not a scalar, and a
    /// function whose result is not one of that dtype (`Shape`, `DType`).
    #[track_caller]
    pub fn reduce(
        &self,
        acc: impl Into<Arg<core::Tensor>>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let x = Arg::Value(self.0.clone());
        eager(Location::caller(), |ops| {
            builder::reduce(ops, x, acc.into(), &axes.into(), keep_axes, None, folding(fun))
        })
        .map(Tensor)
    }

    /// The elements at each position of a window folded with `fun`, which gets an element and the value so far, from
    /// `acc` on. Padding counts as `acc`.
    ///
    /// The order of the elements and the function are as for [`reduce`](Self::reduce).
    ///
    /// - Shape: one size per axis in `window`; the result has one element per position of the window, as `options` say.
    ///   Axis names are kept. `acc` is a scalar.
    /// - Dtypes: any; unchanged. `acc` has the dtype of the operand.
    /// - Gradient: none, it is refused.
    ///
    /// ```
    /// # use defn::{Tensor, WindowOptions};
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], &[4])?;
    /// let pairs = x.window_reduce(0, &[2], &WindowOptions::default(), |x, acc| x + 2 * acc)?;
    /// assert_eq!(pairs.to_vec::<i32>()?, [4, 7, 10]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// An option without one entry per axis, a window that does not fit once, and an `acc` or a result of `fun` that is
    /// not a scalar of the dtype (`Shape`, `DType`); an entry below 1 (`Option`).
    #[track_caller]
    pub fn window_reduce(
        &self,
        acc: impl Into<Arg<core::Tensor>>,
        window: &[i64],
        options: &WindowOptions,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Result<Tensor> {
        let x = Arg::Value(self.0.clone());
        eager(Location::caller(), |ops| {
            builder::window_reduce(ops, x, acc.into(), window, options, folding(fun))
        })
        .map(Tensor)
    }
}
