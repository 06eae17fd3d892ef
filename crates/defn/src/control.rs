//! Branches and loops on expressions.

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
fn results<A: Exprs>(tree: &A) -> Result<Vec<Arg<core::Tensor>>> {
    Ok(tensors(tree)?.into_iter().map(Arg::Value).collect())
}

/// Repeats `body` on the state while `condition` computes a scalar that is not zero, and returns the last state.
///
/// Both functions are called once, while they are traced.
///
/// - Shapes and dtypes: those of the state, which the body must keep.
/// - Gradient: through all iterations, in memory that does not depend on their number.
///
/// ```
/// use defn::prelude::*;
///
/// let collatz = jit(|n: Expr| {
///     let (_, steps) = while_(
///         (n.clone(), n.zeros_like()),
///         |(n, _)| n.greater(1),
///         |(n, steps)| {
///             let half = n.quotient(2);
///             ((&n % 2).select(3 * &n + 1, half), steps + 1)
///         },
///     );
///     steps
/// });
/// assert_eq!(collatz.call(Tensor::scalar(27)?)?.item::<i32>()?, 111);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A body that returns other types or another structure than it took (`Container`), and a condition that is not a
/// scalar (`Shape`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn while_<A: Exprs>(init: A, mut condition: impl FnMut(A) -> Expr, mut body: impl FnMut(A) -> A) -> A {
    let outcome = tensors(&init).and_then(|state| {
        record(Location::caller(), |ops| {
            builder::while_(
                ops,
                state,
                None,
                |_, state| Ok(Arg::Value(condition(refill(&init, Ok(state.to_vec()))).0?)),
                |_, state| {
                    let (expected, lengths) = flatten(&init);
                    let next = body(refill(&init, Ok(state.to_vec())));
                    // Vectors may have grown; leaves that are equally many may stand elsewhere.
                    let (leaves, now) = flatten(&next);
                    if leaves.len() == expected.len() && now != lengths {
                        let (got, expected) = (leaves.len(), expected.len());
                        let what = "body's container of another structure";
                        return Err(ErrorKind::RegionResults { op: "while_", what, got, expected }.into());
                    }
                    results(&next)
                },
            )
        })
    });
    refill(&init, outcome)
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
