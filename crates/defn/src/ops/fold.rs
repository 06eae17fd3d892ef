//! Reductions by a function.

use defn_core as core;
use defn_core::builder::{self, Arg, FoldFunction, Ops, WindowOptions};
use defn_core::{Axes, Location, Result};

use super::eager;
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
    /// The elements folded over axes by a function of an element and of what was folded so far, from `acc` on.
    #[track_caller]
    pub fn reduce(
        &self,
        acc: impl Into<Operand>,
        axes: impl Into<Axes>,
        keep_axes: bool,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let location = Location::caller();
        let operands: Result<_> = (|| Ok((self.0.clone()?, acc.into().0?)))();
        match operands {
            Ok((x, acc)) => Expr::make(location, |ops| {
                builder::reduce(ops, Arg::Value(x), acc, &axes.into(), keep_axes, None, folding(fun))
            }),
            Err(error) => Expr(Err(error)),
        }
    }

    /// The elements in each place of a window folded by a function of an element and of what was folded so far,
    /// from `acc` on, which is also what stands around.
    #[track_caller]
    pub fn window_reduce(
        &self,
        acc: impl Into<Operand>,
        window: &[i64],
        options: &WindowOptions,
        fun: impl FnOnce(Expr, Expr) -> Expr,
    ) -> Expr {
        let location = Location::caller();
        let operands: Result<_> = (|| Ok((self.0.clone()?, acc.into().0?)))();
        match operands {
            Ok((x, acc)) => Expr::make(location, |ops| {
                builder::window_reduce(ops, Arg::Value(x), acc, window, options, folding(fun))
            }),
            Err(error) => Expr(Err(error)),
        }
    }
}

impl Tensor {
    /// The elements folded over axes by a function of an element and of what was folded so far, from `acc` on.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let digits = Tensor::from_slice(&[1, 2, 3], &[3])?;
    /// let number = digits.reduce(0, 0, false, |digit, number| number * 10 + digit)?;
    /// assert_eq!(number.item::<i32>()?, 123);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Axes that the tensor does not have, an accumulator that is no scalar, and a function that gives none of
    /// its element type.
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

    /// The elements in each place of a window folded by a function of an element and of what was folded so far,
    /// from `acc` on, which is also what stands around.
    ///
    /// # Errors
    /// As [`Tensor::reduce`], and a window that does not fit.
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
