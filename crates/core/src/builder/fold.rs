//! Folds by functions of the user's, which are traced once.

use std::sync::Arc;

use super::draft::{Draft, unify_captures};
use super::{Arg, BuildElementwise, Builder, Ops, WindowOptions, exact};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::op::{FoldOp, Op, Window, WindowFoldOp};
use crate::region::Region;
use crate::shape::{Axes, AxisList, TensorType};
use crate::tensor::Tensor;
use crate::vectorize;

/// A function of an element and of what was folded so far, both scalars.
pub type FoldFunction<'a> = Box<dyn FnOnce(&mut Ops, &Tensor, &Tensor) -> Result<Arg<Tensor>> + 'a>;

/// Folds over ready functions.
pub(crate) trait BuildFold: Builder + Sized {
    /// `x` folded over axes, which ascend, from `acc` on.
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

    /// Each place of a window over `x` folded from `acc` on, which is also what stands around `x`.
    fn emit_window_fold(
        &mut self,
        fun: Arc<Region>,
        x: Self::V,
        acc: Self::V,
        captures: &[Self::V],
        window: Window,
    ) -> Result<Self::V> {
        let operands = [&[x, acc], captures].concat();
        self.emit_one(Op::WindowFold(WindowFoldOp { window, fun }), &operands)
    }
}

impl<B: Builder> BuildFold for B {}

/// Folds `x` over axes from `acc` on, in row-major order: `fun` makes of an element and of what was folded so
/// far what is folded now. It works on scalars of `dtype`, which is that of `x` and `acc` together unless it is
/// given; a plain number gives way. An empty list of axes folds nothing and gives `x` back.
///
/// A function that is one addition or multiplication may take the elements in another order, as `sum` and
/// `product` do, which shows in the rounding of floats only.
///
/// # Errors
/// Axes that `x` does not have or that are given twice, an accumulator that is no scalar, a function that gives
/// no scalar of the dtype, and what it raises.
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
            let acc = exact("reduce", &x.ty().with_dtype(dtype)?, number)?;
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

/// Folds the elements in each place of a window over `x` from `acc` on, in row-major order; `acc` is also what
/// stands around `x`. The result has the element type of `x`.
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
        Arg::Number(number) => ops.scalar(exact("window_reduce", x.ty(), number)?)?,
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
        let axes = vectorize::lanes_text(draft.lanes(0));
        return Err(ErrorKind::NotVectorizable { op, what: "what the function gives", axes }.into());
    }
    let got = draft.result_type(0, dtype);
    // A narrower type widens without loss; another is the user's to convert.
    if got.shape.rank() != 0 || dtype.merge(got.dtype) != dtype {
        return Err(ErrorKind::FoldResult { op, got, expected }.into());
    }
    let (mut regions, captures) = unify_captures(vec![draft.close(ops, &[expected.into()])?]);
    Ok((Arc::new(regions.pop().expect("one region went in")), captures))
}
