//! Arithmetic of containers, as of vectors.

use defn_core as core;
use defn_core::builder::{Arg, BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, NormOrder, Ops};
use defn_core::dtype::Kind;
use defn_core::{Axes, DType, ErrorKind, Location, Result};

use super::{Computed, corresponding, failed, leaves, map, name_of};
use crate::ops::eager;
use crate::{Operand, Tree};

/// The container of what ops give for corresponding leaves.
pub(crate) fn combine<T: Computed, A: Tree<T, Of<T> = A>, const N: usize>(
    op: &'static str,
    at: Location,
    trees: [&A; N],
    mut apply: impl FnMut(&mut Ops, [core::Tensor; N]) -> Result<core::Tensor>,
) -> T::Made<A> {
    let [tree, ..] = &trees[..] else { unreachable!("every caller gives a container") };
    let results = rows(op, &trees).and_then(|rows| {
        let results = rows.into_iter().enumerate().map(|(position, row)| {
            eager(at.clone(), |ops| apply(ops, row))
                .map_err(|error| error.within(|| name_of(*tree, position)))
        });
        results.collect::<Result<Vec<_>>>()
    });
    let container = results.map_err(|error| error.at(Some(at))).map(|results| {
        let mut results = results.into_iter();
        map(*tree, |_| T::of(results.next().expect("a result for each leaf")))
    });
    T::give(container, |error| failed::<T, T, A>(*tree, error))
}

/// The tensors behind corresponding leaves.
fn rows<T: Computed, A: Tree<T>, const N: usize>(
    op: &'static str,
    trees: &[&A; N],
) -> Result<Vec<[core::Tensor; N]>> {
    let rows = corresponding(op, trees)?.map(|row| {
        let tensors = row.iter().map(Computed::tensor).collect::<Result<Vec<_>>>()?;
        Ok(tensors.try_into().unwrap_or_else(|_| unreachable!("a tensor for each of N leaves")))
    });
    rows.collect()
}

/// Floats of at least 32 bits, so that sums do not lose small terms.
fn wide(ops: &mut Ops, x: &core::Tensor) -> Result<core::Tensor> {
    let dtype = x.ty().dtype;
    if dtype.is_float() && dtype.bits() < 32 { ops.as_type(x, DType::F32) } else { Ok(x.clone()) }
}

/// The parts combined; zero if there are none.
fn total(
    ops: &mut Ops,
    parts: impl IntoIterator<Item = core::Tensor>,
    mut fun: impl FnMut(&mut Ops, core::Tensor, core::Tensor) -> Result<core::Tensor>,
) -> Result<core::Tensor> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return ops.constant(DType::F32, 0) };
    parts.try_fold(first, |sum, part| fun(ops, sum, part))
}

/// The product of a factor and a leaf. Of a factor that is a tensor, only the kind of the dtype counts.
fn scaled(ops: &mut Ops, factor: Arg<core::Tensor>, leaf: core::Tensor) -> Result<core::Tensor> {
    let dtype = leaf.ty().dtype;
    let factor = match factor {
        Arg::Value(factor) if dtype.kind() >= Kind::Float && factor.ty().dtype.kind() <= dtype.kind() => {
            Arg::Value(ops.as_type(factor, dtype)?)
        }
        factor @ (Arg::Value(_) | Arg::Number(_)) => factor,
    };
    ops.multiply(factor, leaf)
}

/// The sums of corresponding leaves.
///
/// - Shape: corresponding leaves broadcast together; names merge.
/// - Dtypes: any; those of corresponding leaves are promoted.
/// - Gradient: `g` to both containers.
///
/// ```
/// use defn::prelude::*;
///
/// let params = (tensor![1.0, 2.0]?, Tensor::scalar(3.0)?);
/// let sum = tree::add(&params, &params)?;
/// assert_eq!((sum.0.to_vec::<f32>()?, sum.1.item::<f32>()?), (vec![2.0, 4.0], 6.0));
/// let double = jit(|x: (Expr, Expr)| tree::add(&x, &x)).call(params)?;
/// assert_eq!(double.1.item::<f32>()?, 6.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Containers of another structure (`Container`), and leaves that do not broadcast (`Shape`), whose name the error has.
#[track_caller]
pub fn add<T: Computed, A: Tree<T, Of<T> = A>>(a: &A, b: &A) -> T::Made<A> {
    combine("add", Location::caller(), [a, b], |ops, [a, b]| ops.add(a, b))
}

/// The differences of corresponding leaves.
///
/// - Shape: corresponding leaves broadcast together; names merge.
/// - Dtypes: any; those of corresponding leaves are promoted.
/// - Gradient: `g` to `a`, `-g` to `b`.
///
/// ```
/// use defn::prelude::*;
///
/// let difference = tree::subtract(&[Tensor::scalar(5)?], &[Tensor::scalar(3)?])?;
/// assert_eq!(difference[0].item::<i32>()?, 2);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`add`].
#[track_caller]
pub fn subtract<T: Computed, A: Tree<T, Of<T> = A>>(a: &A, b: &A) -> T::Made<A> {
    combine("subtract", Location::caller(), [a, b], |ops, [a, b]| ops.subtract(a, b))
}

/// The products of corresponding leaves.
///
/// - Shape: corresponding leaves broadcast together; names merge.
/// - Dtypes: any; those of corresponding leaves are promoted.
/// - Gradient: `g * b` to `a`, `g * a` to `b`.
///
/// ```
/// use defn::prelude::*;
///
/// let product = tree::multiply(&[Tensor::scalar(5)?], &[Tensor::scalar(3)?])?;
/// assert_eq!(product[0].item::<i32>()?, 15);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`add`].
#[track_caller]
pub fn multiply<T: Computed, A: Tree<T, Of<T> = A>>(a: &A, b: &A) -> T::Made<A> {
    combine("multiply", Location::caller(), [a, b], |ops, [a, b]| ops.multiply(a, b))
}

/// Every leaf times one factor.
///
/// - Shape: the factor is a scalar, or broadcasts with each leaf.
/// - Dtypes: any. A factor that is a tensor widens leaves no more than a number does: a leaf of bf16 times a factor of
///   f32 is bf16. A float makes a float of an integer.
/// - Gradient: `factor * g` to the leaves; the sum of the products of `g` and the leaves to the factor.
///
/// ```
/// use defn::prelude::*;
///
/// let halves = tree::scale(0.5, &(tensor![1.0, 2.0]?, Tensor::scalar(4.0)?))?;
/// assert_eq!((halves.0.to_vec::<f32>()?, halves.1.item::<f32>()?), (vec![0.5, 1.0], 2.0));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A factor that does not broadcast with a leaf (`Shape`), whose name the error has.
#[track_caller]
pub fn scale<T: Computed, A: Tree<T, Of<T> = A>>(factor: impl Into<Operand>, tree: &A) -> T::Made<A> {
    let factor = factor.into().0;
    combine("scale", Location::caller(), [tree], |ops, [leaf]| scaled(ops, factor.clone()?, leaf))
}

/// `a + factor * b` for corresponding leaves, such as a step of gradient descent.
///
/// - Shape: corresponding leaves broadcast together; the factor broadcasts with those of `b`.
/// - Dtypes: those of [`scale`] and [`add`].
/// - Gradient: `g` to `a`, and those of [`scale`].
///
/// ```
/// use defn::prelude::*;
///
/// let step = jit(|params: (Expr, Expr)| {
///     let slopes = grad(&params, |(a, b)| &a * &a + b);
///     tree::add_scaled(&params, -0.5, &slopes)
/// });
/// let (a, b) = step.call((Tensor::scalar(3.0)?, Tensor::scalar(1.0)?))?;
/// assert_eq!((a.item::<f32>()?, b.item::<f32>()?), (0.0, 0.5));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`add`].
#[track_caller]
pub fn add_scaled<T: Computed, A: Tree<T, Of<T> = A>>(
    a: &A,
    factor: impl Into<Operand>,
    b: &A,
) -> T::Made<A> {
    let factor = factor.into().0;
    combine("add_scaled", Location::caller(), [a, b], |ops, [a, b]| {
        let step = scaled(ops, factor.clone()?, b)?;
        ops.add(a, step)
    })
}

/// The inner product: the sum of `conjugate(a) * b` over all elements of all leaves.
///
/// - Shape: corresponding leaves have equal shapes; the result is a scalar.
/// - Dtypes: any; promoted. Floats of 8 and 16 bits are multiplied and summed in f32. Without leaves it is f32.
/// - Gradient: `g * b` to `a`, `g * a` to `b`.
///
/// ```
/// use defn::prelude::*;
///
/// let a = (tensor![1.0, 2.0]?, Tensor::scalar(3.0)?);
/// assert_eq!(tree::dot(&a, &a)?.item::<f32>()?, 14.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Containers of another structure (`Container`), and leaves with other shapes (`Shape`), whose name the error has.
#[track_caller]
pub fn dot<T: Computed, A: Tree<T, Of<T> = A>>(a: &A, b: &A) -> T::Made<T> {
    let at = Location::caller();
    let product = rows("dot", &[a, b]).and_then(|rows| {
        eager(at.clone(), |ops| {
            let mut products = Vec::with_capacity(rows.len());
            for [x, y] in &rows {
                let (left, right) = (x.ty(), y.ty());
                if left.shape.sizes() != right.shape.sizes() {
                    let (left, right) = (left.clone(), right.clone());
                    let error = core::Error::from(ErrorKind::ShapesDiffer { op: "dot", left, right });
                    return Err(error.within(|| name_of(a, products.len())));
                }
                let (x, y) = (wide(ops, x)?, wide(ops, y)?);
                products.push(ops.vdot(x, y)?);
            }
            total(ops, products, |ops, a, b| ops.add(a, b))
        })
    });
    T::one(product.map_err(|error| error.at(Some(at))))
}

/// The norm of the vector of all elements of all leaves: the global norm. `Power(2)`, which is also meant by `None`, is
/// the root of the sum of squared magnitudes, `Power(1)` the sum of magnitudes, `Infinity` the greatest magnitude.
///
/// - Shape: any leaves; the result is a scalar.
/// - Dtypes: any. The result is real and at least f32: magnitudes of 8 and 16 bits are summed in f32.
/// - Gradient: through the definition; singular where the root of zero is taken.
///
/// ```
/// use defn::linalg::NormOrder;
/// use defn::prelude::*;
///
/// let grads = (tensor![3.0, 0.0]?, Tensor::scalar(-4.0)?);
/// assert_eq!(tree::norm(&grads, None)?.item::<f32>()?, 5.0);
/// assert_eq!(tree::norm(&grads, Some(NormOrder::Infinity))?.item::<f32>()?, 4.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another order (`Option`).
#[track_caller]
pub fn norm<T: Computed, A: Tree<T, Of<T> = A>>(tree: &A, order: Option<NormOrder>) -> T::Made<T> {
    let at = Location::caller();
    let result = rows("norm", &[tree]).and_then(|rows| eager(at.clone(), |ops| norm_of(ops, &rows, order)));
    T::one(result.map_err(|error| error.at(Some(at))))
}

fn norm_of(ops: &mut Ops, rows: &[[core::Tensor; 1]], order: Option<NormOrder>) -> Result<core::Tensor> {
    let mut parts = Vec::with_capacity(rows.len());
    for [x] in rows {
        let x = if x.ty().dtype.kind() < Kind::Float { ops.as_type(x, DType::F32)? } else { wide(ops, x)? };
        let magnitudes = ops.abs(&x)?;
        match order {
            None | Some(NormOrder::Power(2)) => {
                let square = ops.vdot(&x, &x)?;
                parts.push(ops.real(square)?);
            }
            Some(NormOrder::Power(1)) => parts.push(ops.sum(magnitudes, Axes::All, false)?),
            Some(NormOrder::Infinity) if x.ty().shape.size() == 0 => {}
            Some(NormOrder::Infinity) => parts.push(ops.reduce_max(magnitudes, Axes::All, false)?),
            Some(
                NormOrder::Power(_)
                | NormOrder::Real(_)
                | NormOrder::NegInfinity
                | NormOrder::Frobenius
                | NormOrder::Nuclear,
            ) => break,
        }
    }
    match order {
        None | Some(NormOrder::Power(2)) => {
            let square = total(ops, parts, |ops, a, b| ops.add(a, b))?;
            ops.sqrt(square)
        }
        Some(NormOrder::Power(1)) => total(ops, parts, |ops, a, b| ops.add(a, b)),
        Some(NormOrder::Infinity) => total(ops, parts, |ops, a, b| ops.max(a, b)),
        Some(
            order @ (NormOrder::Power(_)
            | NormOrder::Real(_)
            | NormOrder::NegInfinity
            | NormOrder::Frobenius
            | NormOrder::Nuclear),
        ) => {
            let (given, required) = (format!("{order:?}"), "Power(1), Power(2) or Infinity".to_owned());
            Err(ErrorKind::OptionValue { op: "norm", option: "order", given, required }.into())
        }
    }
}

/// A zero for each element of each leaf.
///
/// - Shape: those of the leaves, with their names.
/// - Dtypes: those of the leaves.
/// - Gradient: zero.
///
/// ```
/// use defn::prelude::*;
///
/// let velocity = tree::zeros_like(&(tensor![1.0, 2.0]?, Tensor::scalar(3)?))?;
/// assert_eq!((velocity.0.to_vec::<f32>()?, velocity.1.item::<i32>()?), (vec![0.0, 0.0], 0));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Too little memory (`OutOfMemory`).
#[track_caller]
pub fn zeros_like<T: Computed, A: Tree<T, Of<T> = A>>(tree: &A) -> T::Made<A> {
    combine("zeros_like", Location::caller(), [tree], |ops, [x]| {
        let dtype = x.ty().dtype;
        ops.fill(x, 0, Some(dtype))
    })
}

/// A one for each element of each leaf.
///
/// - Shape: those of the leaves, with their names.
/// - Dtypes: those of the leaves.
/// - Gradient: zero.
///
/// ```
/// use defn::prelude::*;
///
/// let ones = tree::ones_like(&(tensor![3.0, 2.0]?, Tensor::scalar(3)?))?;
/// assert_eq!((ones.0.to_vec::<f32>()?, ones.1.item::<i32>()?), (vec![1.0, 1.0], 1));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Too little memory (`OutOfMemory`).
#[track_caller]
pub fn ones_like<T: Computed, A: Tree<T, Of<T> = A>>(tree: &A) -> T::Made<A> {
    combine("ones_like", Location::caller(), [tree], |ops, [x]| {
        let dtype = x.ty().dtype;
        ops.fill(x, 1, Some(dtype))
    })
}

/// The container with its leaves of floats converted to a dtype of floats. Leaves of integers, bools and complex numbers
/// stay as they are: counters and keys survive.
///
/// - Shape: unchanged; names are kept.
/// - Dtypes: any; `dtype` is a float.
/// - Gradient: `g`, converted back.
///
/// ```
/// use defn::prelude::*;
///
/// let half = tree::cast(&(tensor![1.0, 2.0]?, Tensor::scalar(3)?), DType::BF16)?;
/// assert_eq!((half.0.dtype(), half.1.dtype()), (DType::BF16, DType::S32));
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A dtype that is no float (`Option`).
#[track_caller]
pub fn cast<T: Computed, A: Tree<T, Of<T> = A>>(tree: &A, dtype: DType) -> T::Made<A> {
    let at = Location::caller();
    if !dtype.is_float() {
        let (given, required) = (dtype.to_string(), "a float".to_owned());
        let error = ErrorKind::OptionValue { op: "cast", option: "dtype", given, required };
        return T::give(Err(core::Error::from(error).at(Some(at))), |error| failed::<T, T, A>(tree, error));
    }
    combine(
        "cast",
        at,
        [tree],
        |ops, [x]| if x.ty().dtype.is_float() { ops.as_type(x, dtype) } else { Ok(x) },
    )
}

/// The leaves of `a` where the predicate is not zero, else those of `b`.
///
/// - Shape: the predicate is a scalar, or broadcasts with each pair of corresponding leaves.
/// - Dtypes: any; those of corresponding leaves are promoted.
/// - Gradient: `g` to the container that is chosen, zero to the other one.
///
/// ```
/// use defn::prelude::*;
///
/// let (old, new) = ([tensor![1.0, 2.0]?], [tensor![3.0, 4.0]?]);
/// let chosen = tree::select(&Tensor::scalar(true)?, &new, &old)?;
/// assert_eq!(chosen[0].to_vec::<f32>()?, [3.0, 4.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`add`].
#[track_caller]
pub fn select<T: Computed, A: Tree<T, Of<T> = A>>(pred: impl Into<Operand>, a: &A, b: &A) -> T::Made<A> {
    let pred = pred.into().0;
    combine("select", Location::caller(), [a, b], |ops, [a, b]| ops.select(pred.clone()?, a, b))
}

/// The number of elements of all leaves, such as the number of parameters. A leaf that is an error counts as none.
///
/// ```
/// use defn::prelude::*;
///
/// assert_eq!(tree::size(&(tensor![1.0, 2.0]?, Tensor::scalar(3)?)), 3);
/// # Ok::<(), defn::Error>(())
/// ```
#[must_use]
pub fn size<T: Computed, A: Tree<T>>(tree: &A) -> usize {
    leaves(tree).iter().flat_map(Computed::tensor).map(|x| x.ty().shape.size()).sum()
}

/// The number of bytes of all leaves. A leaf that is an error counts as none.
///
/// ```
/// use defn::prelude::*;
///
/// assert_eq!(tree::bytes(&(tensor![1.0, 2.0]?, Tensor::scalar(3)?)), 12);
/// # Ok::<(), defn::Error>(())
/// ```
#[must_use]
pub fn bytes<T: Computed, A: Tree<T>>(tree: &A) -> usize {
    leaves(tree).iter().flat_map(Computed::tensor).map(|x| x.ty().byte_size()).sum()
}
