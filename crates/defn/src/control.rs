//! Branches on expressions, and the containers of expressions.

use std::cell::RefCell;

use defn_core as core;
use defn_core::builder::{self, Arg, Ops};
use defn_core::{ErrorKind, Location, Result};

use crate::expr::record;
use crate::tree::{flatten, map};
use crate::{Expr, Tree};

/// A container of expressions, whose leaves other expressions can replace: the state of a loop, or the variables of a
/// gradient. Every [`Tree`] of expressions is one.
///
/// ```
/// use defn::prelude::*;
/// use defn::Exprs;
///
/// fn descend<A: Exprs>(at: &A, loss: impl Fn(A) -> Expr) -> A {
///     each([at, &grad(at, loss)], |[x, g]| x - 0.5 * g)
/// }
/// let step = jit(|at: (Expr, Expr)| descend(&at, |(a, b)| &a * &a + b));
/// let (a, b) = step.call((Tensor::scalar(3.0)?, Tensor::scalar(1.0)?))?;
/// assert_eq!((a.item::<f32>()?, b.item::<f32>()?), (0.0, 0.5));
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Exprs: Tree<Expr, Of<Expr> = Self> {}

impl<A: Tree<Expr, Of<Expr> = A>> Exprs for A {}

/// The tensors behind the leaves.
pub(crate) fn tensors<A: Exprs>(tree: &A) -> Result<Vec<core::Tensor>> {
    flatten(tree).0.into_iter().map(|leaf| leaf.0).collect()
}

/// A container in the form of `tree` with tensors, or one error, at its leaves.
pub(crate) fn refill<A: Exprs>(tree: &A, tensors: Result<Vec<core::Tensor>>) -> A {
    let mut tensors = tensors.map(Vec::into_iter);
    map(tree, |_| match &mut tensors {
        Ok(tensors) => Expr(Ok(tensors.next().expect("a tensor for each leaf"))),
        Err(error) => Expr(Err(error.clone())),
    })
}

/// What a region gives: the tensors behind the leaves.
pub(crate) fn results<A: Exprs>(tree: &A) -> Result<Vec<Arg<core::Tensor>>> {
    Ok(tensors(tree)?.into_iter().map(Arg::Value).collect())
}

/// Refuses a container of another structure: vectors may have grown, and leaves that are equally many may stand
/// elsewhere. Another number of leaves is an error of the loop itself.
pub(crate) fn require_structure<A: Exprs>(
    op: &'static str,
    what: &'static str,
    expected: &A,
    got: &A,
) -> Result<()> {
    let ((leaves, lengths), (own, now)) = (flatten(expected), flatten(got));
    if own.len() != leaves.len() || now == lengths {
        return Ok(());
    }
    Err(ErrorKind::RegionResults { op, what, got: own.len(), expected: leaves.len() }.into())
}

/// The combinations of the items of a container up to each position of the first axes of its tensors, in logarithmic depth.
///
/// `combine(a, b)` combines two containers of slices element by element, where `a` comes before `b`. It must be
/// associative, and keep shapes and dtypes. It is called about twice for each power of 2 up to the number of items.
///
/// - Shapes and dtypes: those of the container.
/// - Gradient: through the function.
///
/// ```
/// use defn::prelude::*;
/// use defn::associative_scan;
///
/// // The states of x = a * x + b, from the maps of all steps.
/// let states = jit(|maps: (Expr, Expr)| {
///     associative_scan(maps, |(a, b), (c, d)| (&c * a, c * b + d)).1
/// });
/// let maps = (tensor![2.0, 3.0, 1.0]?, tensor![1.0, 0.0, 5.0]?);
/// assert_eq!(states.call(maps)?.to_vec::<f32>()?, [1.0, 3.0, 8.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Tensors of other lengths along the first axis, or without one (`Option`), and a function that returns other types or
/// another structure than it took (`Container`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn associative_scan<A: Exprs>(over: A, mut combine: impl FnMut(A, A) -> A) -> A {
    let (location, op) = (Location::caller(), "associative_scan");
    let outcome = tensors(&over).and_then(|leaves| {
        record(location, |ops| {
            common_length(op, &leaves)?;
            let axes = vec![0; leaves.len()];
            let mut combine = |_: &mut Ops, before, after: Vec<core::Tensor>| {
                let combined = combine(refill(&over, Ok(before)), refill(&over, Ok(after.clone())));
                require_structure(op, "function's container of another structure", &over, &combined)?;
                let combined = tensors(&combined)?;
                if combined.len() != after.len() {
                    let (what, got, expected) = ("function", combined.len(), after.len());
                    return Err(ErrorKind::RegionResults { op, what, got, expected }.into());
                }
                for (index, (got, expected)) in combined.iter().zip(&after).enumerate() {
                    if got.ty() != expected.ty() {
                        let (got, expected) = (got.ty().clone(), expected.ty().clone());
                        return Err(ErrorKind::CallResult { op, index, got, expected }.into());
                    }
                }
                Ok(combined)
            };
            builder::associative_scan(ops, leaves, &axes, false, &mut combine)
        })
    });
    refill(&over, outcome)
}

/// The length of all tensors along their first axes.
pub(crate) fn common_length(op: &'static str, over: &[core::Tensor]) -> Result<usize> {
    let lengths: Vec<Option<usize>> = over.iter().map(|x| x.ty().shape.sizes().first().copied()).collect();
    match lengths.first() {
        Some(&Some(length)) if lengths.iter().all(|other| *other == Some(length)) => Ok(length),
        Some(_) | None => {
            let types: Vec<String> = over.iter().map(|tensor| tensor.ty().to_string()).collect();
            let given = if types.is_empty() { "without a tensor".to_owned() } else { types.join(", ") };
            let required = "a container of tensors of one length along their first axes".to_owned();
            Err(ErrorKind::OptionValue { op, option: "over", given, required }.into())
        }
    }
}

/// The result of `then` if the predicate is not zero, else that of `otherwise`. Only one of them runs.
///
/// Both functions are called once, while they are traced. [`Expr::select`] chooses elements instead.
///
/// - Shapes: the predicate is a scalar. Both results have one structure; their tensors broadcast together.
/// - Dtypes: any for the predicate; the results are promoted.
/// - Gradient: through the branch that ran; zero to the predicate.
///
/// ```
/// use defn::prelude::*;
///
/// let root = jit(|x: Expr| cond(&x.less(0.0), || x.zeros_like(), || x.sqrt()));
/// assert_eq!(root.call(Tensor::scalar(9.0)?)?.item::<f32>()?, 3.0);
/// assert_eq!(root.call(Tensor::scalar(-9.0)?)?.item::<f32>()?, 0.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A predicate that is not a scalar, and results that do not broadcast (`Shape`); results of another structure
/// (`Container`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn cond<R: Exprs>(predicate: &Expr, then: impl Fn() -> R, otherwise: impl FnOnce() -> R) -> R {
    let first: RefCell<Option<R>> = RefCell::new(None);
    let outcome = predicate.0.clone().and_then(|predicate| {
        record(Location::caller(), |ops| {
            let then = |_: &mut Ops| {
                let result = then();
                let leaves = results(&result);
                first.replace(Some(result));
                leaves
            };
            let clauses: Vec<builder::Clause<'_>> = vec![(predicate, Box::new(then))];
            builder::cond(ops, clauses, Box::new(|_| results(&otherwise())))
        })
    });
    // A bad predicate keeps the branch from being traced; its container is wanted all the same.
    let form = first.into_inner().unwrap_or_else(&then);
    refill(&form, outcome)
}
