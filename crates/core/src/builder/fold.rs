//! Folds by user functions, which are traced once.

use std::sync::Arc;

use super::draft::{Draft, unify_captures};
use super::{Arg, BuildElementwise, Builder, Ops, WindowOptions, exact_scalar};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{FoldOp, Op, Window, WindowFoldOp};
use crate::region::Region;
use crate::shape::{Axes, AxisList, TensorType};
use crate::tensor::Tensor;
use crate::vectorize;

/// A function of an element and the accumulator, both scalars.
pub type FoldFunction<'a> = Box<dyn FnOnce(&mut Ops, &Tensor, &Tensor) -> Result<Arg<Tensor>> + 'a>;

/// Folds over existing regions.
pub(crate) trait BuildFold: Builder + Sized {
    /// `x` folded over axes, which ascend, with the initial accumulator `acc`.
    fn emit_fold(
        &mut self,
        fun: Arc<Region>,
        x: Self::V,
        acc: Self::V,
        captures: &[Self::V],
        axes: AxisList,
        keep_axes: bool,
    ) -> Result<Self::V> {
        let operands = [&[x, acc], captures].concat();
        self.emit_one(Op::Fold(FoldOp { axes, keep_axes, fun }), &operands)
    }

    /// `x` folded over each position of a window, with `acc` as initial accumulator and as padding.
    fn emit_window_fold(
        &mut self,
        fun: Arc<Region>,
        x: Self::V,
        acc: Self::V,
        captures: &[Self::V],
        window: Window,
    ) -> Result<Self::V> {
        let operands = [&[x, acc], captures].concat();
        self.emit_one(Op::WindowFold(WindowFoldOp { window: Box::new(window), fun }), &operands)
    }
}

impl<B: Builder> BuildFold for B {}

/// Folds `x` over axes in row-major order, with the initial accumulator `acc`: `fun` maps an element and the
/// accumulator to the next accumulator. It works on scalars of `dtype`, by default the merged dtype of `x` and `acc`;
/// a plain number is weak. An empty list of axes returns `x` unchanged.
///
/// A function that is one addition or multiplication may be applied in another order, as in `sum` and `product`. This
/// only affects the rounding of floats.
///
/// # Errors
/// Axes that `x` does not have or that are repeated, an accumulator that is no scalar, a function that does not
/// return a scalar of the dtype, and the errors of the function.
pub fn reduce(
    ops: &mut Ops,
    x: Arg<Tensor>,
    acc: Arg<Tensor>,
    axes: &Axes,
    keep_axes: bool,
    dtype: Option<DType>,
    fun: FoldFunction<'_>,
) -> Result<Tensor> {
    let (x, acc) = match (dtype, acc) {
        (Some(dtype), Arg::Number(number)) => {
            let x = ops.operand(x)?;
            let acc = exact_scalar("reduce", &x.ty().with_dtype(dtype)?, number)?;
            (x, ops.scalar(acc)?)
        }
        (Some(dtype), Arg::Value(acc)) if acc.is_weak() => (ops.operand(x)?, ops.as_type(acc, dtype)?),
        (Some(_) | None, acc) => ops.weak_pair("reduce", x, acc)?,
    };
    check_start("reduce", acc.ty())?;
    let mut resolved = x.ty().shape.resolve_all("reduce", axes)?;
    if let (Axes::List(_), true) = (axes, resolved.is_empty()) {
        return Ok(x);
    }
    resolved.sort_unstable();
    let dtype = dtype.unwrap_or_else(|| x.ty().dtype.merge(acc.ty().dtype));
    let (x, acc) = (ops.as_type(x, dtype)?, ops.as_type(acc, dtype)?);
    let (fun, captures) = trace(ops, "reduce", dtype, fun)?;
    ops.emit_fold(fun, x, acc, &captures, resolved, keep_axes)
}

/// Folds the elements in each position of a window over `x` in row-major order, with `acc` as initial accumulator and
/// as padding. The result has the element type of `x`.
///
/// # Errors
/// As [`reduce`], and as [`BuildWindow::window`](super::BuildWindow::window).
pub fn window_reduce(
    ops: &mut Ops,
    x: Arg<Tensor>,
    acc: Arg<Tensor>,
    window: &[i64],
    options: &WindowOptions,
    fun: FoldFunction<'_>,
) -> Result<Tensor> {
    let x = ops.operand(x)?;
    let dtype = x.ty().dtype;
    let acc = match acc {
        Arg::Number(number) => ops.scalar(exact_scalar("window_reduce", x.ty(), number)?)?,
        Arg::Value(acc) => ops.as_type(acc, dtype)?,
    };
    check_start("window_reduce", acc.ty())?;
    let window = options.resolve("window_reduce", x.ty(), window)?;
    let (fun, captures) = trace(ops, "window_reduce", dtype, fun)?;
    ops.emit_window_fold(fun, x, acc, &captures, window)
}

fn check_start(op: &'static str, acc: &TensorType) -> Result<()> {
    if acc.shape.rank() == 0 {
        return Ok(());
    }
    Err(ErrorKind::NotScalar { op, what: "the accumulator", got: acc.clone() }.into())
}

/// The function as a region, and its captures.
fn trace(
    ops: &mut Ops,
    op: &'static str,
    dtype: DType,
    fun: FoldFunction<'_>,
) -> Result<(Arc<Region>, Vec<Tensor>)> {
    let expected = TensorType::scalar(dtype);
    let parameters = [expected.clone(), expected.clone()];
    let draft =
        Draft::trace(ops, op, &parameters, |ops, scalars| Ok(vec![fun(ops, &scalars[0], &scalars[1])?]))?;
    if !draft.lanes(0).is_empty() {
        let axes = vectorize::vectorized_axes_text(draft.lanes(0));
        return Err(ErrorKind::NotVectorizable { op, what: "what the function gives", axes }.into());
    }
    let got = draft.result_type(0, dtype);
    // A narrower type widens without loss. The user must convert any other type.
    if got.shape.rank() != 0 || dtype.merge(got.dtype) != dtype {
        return Err(ErrorKind::FoldResult { op, got, expected }.into());
    }
    let (mut regions, captures) = unify_captures(vec![draft.close(ops, &[expected.into()])?]);
    Ok((Arc::new(regions.pop().expect("one region went in")), captures))
}
