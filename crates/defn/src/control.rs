//! Branches and loops on expressions.

use std::cell::RefCell;
use std::ops::Range;

use defn_core as core;
use defn_core::builder::{self, Arg, BuildCreate, Ops, ScanOptions};
use defn_core::trace::Trace;
use defn_core::{DType, ErrorKind, Location, Result, Shape, TensorType};

use crate::expr::{both, record};
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
pub fn while_<A: Exprs>(init: A, condition: impl FnMut(A) -> Expr, body: impl FnMut(A) -> A) -> A {
    let location = Location::caller();
    repeat("while_", location, init, None, condition, body)
}

/// A loop of so many trips, if that is known.
fn repeat<A: Exprs>(
    op: &'static str,
    location: Location,
    init: A,
    trips: Option<u64>,
    mut condition: impl FnMut(A) -> Expr,
    mut body: impl FnMut(A) -> A,
) -> A {
    let outcome = tensors(&init).and_then(|state| {
        record(location, |ops| {
            builder::while_(
                ops,
                state,
                trips,
                |_, state| Ok(Arg::Value(condition(refill(&init, Ok(state.to_vec()))).0?)),
                |_, state| {
                    let next = body(refill(&init, Ok(state.to_vec())));
                    require_structure(op, "body's container of another structure", &init, &next)?;
                    results(&next)
                },
            )
        })
    });
    refill(&init, outcome)
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

/// Repeats `body` on the state for each integer of a range, an s32, and returns the last state.
///
/// The function is called once, while it is traced.
///
/// - Shapes and dtypes: those of the state, which the body must keep.
/// - Gradient: through all iterations.
///
/// ```
/// use defn::prelude::*;
///
/// let factorial = jit(|one: Expr| for_(one, 1..6, |product, i| product * i));
/// assert_eq!(factorial.call(Tensor::scalar(1)?)?.item::<i32>()?, 120);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A body that returns other types or another structure than it took (`Container`). The error comes out of
/// [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn for_<A: Exprs>(init: A, over: Range<i32>, mut body: impl FnMut(A, Expr) -> A) -> A {
    let location = Location::caller();
    let trips = (i64::from(over.end) - i64::from(over.start)).max(0) as u64;
    if trips == 0 {
        return init;
    }
    let start = Expr::make(location.clone(), |ops| ops.constant(DType::S32, over.start));
    let next = |(i, state): (Expr, A)| (i.add(1), body(state, i));
    repeat("for_", location, (start, init), Some(trips), |(i, _)| i.less(over.end), next).1
}

/// Repeats `(state, output) = body(state, item)` for the items of a container along the first axes of its tensors, and
/// returns the last state and all outputs.
///
/// The function is called twice while it is traced: the types of the outputs are known from the first call.
///
/// - Shapes: those of the state, which the body must keep. Outputs get a new first axis.
/// - Dtypes: those of the state, which the body must keep.
/// - Gradient: through all iterations.
///
/// ```
/// use defn::prelude::*;
///
/// let sums = jit(|x: Expr| scan(x.at(0).zeros_like(), &x, |sum, item| (&sum + &item, sum + item)));
/// let (total, partial) = sums.call(tensor![1, 2, 3]?)?;
/// assert_eq!(total.item::<i32>()?, 6);
/// assert_eq!(partial.to_vec::<i32>()?, [1, 3, 6]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Tensors of other lengths along the first axis, or without one (`Option`), and a body that returns other types or
/// another structure than it took (`Container`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn scan<A: Exprs, B: Exprs, O: Exprs>(init: A, over: &B, body: impl FnMut(A, B) -> (A, O)) -> (A, O) {
    scan_over(Location::caller(), init, over, None, false, body)
}

/// As [`scan`], from the last item to the first. Outputs stay in the order of the items.
///
/// ```
/// use defn::prelude::*;
/// use defn::scan_reverse;
///
/// // What is still to come at each position.
/// let rest = jit(|x: Expr| scan_reverse(x.at(0).zeros_like(), &x, |sum, item| (&sum + item, sum)).1);
/// assert_eq!(rest.call(tensor![1, 2, 3]?)?.to_vec::<i32>()?, [5, 3, 0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`scan`].
#[track_caller]
pub fn scan_reverse<A: Exprs, B: Exprs, O: Exprs>(
    init: A,
    over: &B,
    body: impl FnMut(A, B) -> (A, O),
) -> (A, O) {
    scan_over(Location::caller(), init, over, None, true, body)
}

/// As [`scan`], so many times and without items: repeats `(state, output) = body(state)`.
///
/// ```
/// use defn::prelude::*;
/// use defn::scan_times;
///
/// let powers = jit(|x: Expr| scan_times(x, 4, |power| (2 * &power, power)).1);
/// assert_eq!(powers.call(Tensor::scalar(1)?)?.to_vec::<i32>()?, [1, 2, 4, 8]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A body that returns other types or another structure than it took (`Container`). The error comes out of
/// [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn scan_times<A: Exprs, O: Exprs>(init: A, length: usize, mut body: impl FnMut(A) -> (A, O)) -> (A, O) {
    scan_over(Location::caller(), init, &(), Some(length), false, |state, ()| body(state))
}

/// A scan of so many trips, which are those of the items unless there are none.
fn scan_over<A: Exprs, B: Exprs, O: Exprs>(
    location: Location,
    init: A,
    over: &B,
    length: Option<usize>,
    reverse: bool,
    mut body: impl FnMut(A, B) -> (A, O),
) -> (A, O) {
    let form: RefCell<Option<O>> = RefCell::new(None);
    let outcome = tensors(&init).and_then(|state| {
        record(location, |ops| {
            let over_tensors = tensors(over)?;
            let trips = match length {
                Some(length) => length,
                None => common_length("scan", &over_tensors)?,
            };
            let counter = if i32::try_from(trips).is_ok() { DType::S32 } else { DType::S64 };
            let outputs = output_types(&state, &over_tensors, |state, items| {
                let (_, out) = body(refill(&init, Ok(state)), refill(over, Ok(items)));
                let types = tensors(&out)?.iter().map(|tensor| tensor.ty().clone()).collect();
                form.replace(Some(out));
                Ok(types)
            })?;
            let options = ScanOptions { counter, trips, reverse, snapshots: None };
            builder::scan(ops, options, state, outputs, |ops, position, state| {
                let items = over_tensors.iter().map(|tensor| builder::item(ops, tensor, position));
                let items = items.collect::<Result<Vec<_>>>()?;
                let (next, out) = body(refill(&init, Ok(state.to_vec())), refill(over, Ok(items)));
                require_structure("scan", "body's container of another structure", &init, &next)?;
                if let Some(first) = &*form.borrow() {
                    require_structure("scan", "body's output of another structure", first, &out)?;
                }
                Ok((self::results(&next)?, self::results(&out)?))
            })
        })
    });
    let (state, outputs) = both(outcome);
    // A bad operand keeps the body from being traced; its container is wanted all the same.
    let form = form.into_inner().unwrap_or_else(|| {
        let error = match &outputs {
            Ok(_) => unreachable!("the body was traced"),
            Err(error) => error.clone(),
        };
        body(refill(&init, Err(error.clone())), refill(over, Err(error))).1
    });
    (refill(&init, state), refill(&form, outputs))
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
fn common_length(op: &'static str, over: &[core::Tensor]) -> Result<usize> {
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

/// The types that `body` gives for the outputs, which it is traced for.
fn output_types(
    state: &[core::Tensor],
    over: &[core::Tensor],
    body: impl FnOnce(Vec<core::Tensor>, Vec<core::Tensor>) -> Result<Vec<TensorType>>,
) -> Result<Vec<TensorType>> {
    let mut models = state.to_vec();
    for tensor in over {
        let ty = tensor.ty();
        let shape = Shape::from_axes(ty.shape.entries().skip(1));
        models.push(core::Tensor::template(TensorType::new(ty.dtype, shape)?));
    }
    let (tracing, mut parameters) = Trace::begin_like(&models);
    let items = parameters.split_off(state.len());
    let types = body(parameters, items);
    drop(tracing);
    types
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
