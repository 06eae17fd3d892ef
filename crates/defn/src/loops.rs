//! Loops on expressions.

use std::cell::RefCell;
use std::ops::Range;

use defn_core as core;
use defn_core::builder::{self, Arg, BuildCreate, MOST_SNAPSHOTS, ScanOptions};
use defn_core::trace::Trace;
use defn_core::{DType, ErrorKind, Location, Result, Shape, TensorType};

use crate::Expr;
use crate::control::{Exprs, common_length, refill, require_structure, results, tensors};
use crate::expr::{both, record};

/// Repeats `body` on the state while `condition` computes a scalar that is not zero, and returns the last state.
///
/// Both functions are called once, while they are traced.
///
/// - Shapes and dtypes: those of the state, which the body must keep.
/// - Gradient: through all iterations. [`LoopOptions::with_snapshots`] bounds the memory that it takes.
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
    LoopOptions::new().while_(init, condition, body)
}

/// Repeats `body` on the state for each integer of a range, an s32, and returns the last state.
///
/// The function is called once, while it is traced.
///
/// - Shapes and dtypes: those of the state, which the body must keep.
/// - Gradient: through all iterations; as that of [`while_`].
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
pub fn for_<A: Exprs>(init: A, over: Range<i32>, body: impl FnMut(A, Expr) -> A) -> A {
    LoopOptions::new().for_(init, over, body)
}

/// Repeats `(state, output) = body(state, item)` for the items of a container along the first axes of its tensors, and
/// returns the last state and all outputs.
///
/// The function is called twice while it is traced: the types of the outputs are known from the first call.
///
/// - Shapes: those of the state, which the body must keep. Outputs get a new first axis.
/// - Dtypes: those of the state, which the body must keep.
/// - Gradient: through all iterations; as that of [`while_`].
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
    LoopOptions::new().scan(init, over, body)
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
    LoopOptions::new().scan_reverse(init, over, body)
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
pub fn scan_times<A: Exprs, O: Exprs>(init: A, length: usize, body: impl FnMut(A) -> (A, O)) -> (A, O) {
    LoopOptions::new().scan_times(init, length, body)
}

/// Options of loops, which its methods run.
///
/// The gradient of a loop keeps some states and computes the others again. [`LoopOptions::with_snapshots`] limits the number
/// of those that it keeps, which it chooses otherwise.
///
/// ```
/// use defn::prelude::*;
/// use defn::LoopOptions;
///
/// // The logistic map, whose gradient keeps 4 of 100 states.
/// let few = LoopOptions::new().with_snapshots(4);
/// let slope = jit(move |x: Expr| {
///     grad(&x, |x| few.for_(x, 0..100, |x, _| 3.2 * &x * (1.0 - x)))
/// });
/// let (x, mut by_hand) = (0.3f64, 1.0);
/// (0..100).fold(x, |x, _| {
///     by_hand *= 3.2 * (1.0 - 2.0 * x);
///     3.2 * x * (1.0 - x)
/// });
/// let found = slope.call(tensor![x; f64]?.reshape(&[])?)?.item::<f64>()?;
/// assert!((found - by_hand).abs() <= 1e-9 * by_hand.abs());
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopOptions {
    snapshots: Option<usize>,
}

impl LoopOptions {
    /// The options of the functions of this crate.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// let double = jit(|x: Expr| LoopOptions::new().for_(x, 0..3, |x, _| 2 * x));
    /// assert_eq!(double.call(Tensor::scalar(1)?)?.item::<i32>()?, 8);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub const fn new() -> LoopOptions {
        LoopOptions { snapshots: None }
    }

    /// The same options, with the number of states that the gradient of the loop may keep, from 1 on. Few take more time.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// let slope = |options: LoopOptions| {
    ///     jit(move |x: Expr| grad(&x, |x| options.for_(x, 0..5, |x, _| x.sin())))
    /// };
    /// let x = Tensor::scalar(1.0)?;
    /// let one = slope(LoopOptions::new().with_snapshots(1)).call(x.clone())?;
    /// assert_eq!(one.item::<f32>()?, slope(LoopOptions::new()).call(x.clone())?.item::<f32>()?);
    /// let error = slope(LoopOptions::new().with_snapshots(0)).call(x).unwrap_err();
    /// assert!(error.to_string().starts_with("for_: snapshots is 0"));
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// 0, and more than there is memory for (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
    pub const fn with_snapshots(self, count: usize) -> LoopOptions {
        LoopOptions { snapshots: Some(count) }
    }

    /// As the function [`while_`].
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// let few = LoopOptions::new().with_snapshots(3);
    /// let slope = jit(move |x: Expr| grad(&x, |x| few.while_(x, |x| x.less(100.0), |x| 2.0 * x)));
    /// assert_eq!(slope.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 128.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`while_`] and of the options.
    #[track_caller]
    pub fn while_<A: Exprs>(self, init: A, condition: impl FnMut(A) -> Expr, body: impl FnMut(A) -> A) -> A {
        let (op, location) = ("while_", Location::caller());
        match record(location.clone(), |_| self.snapshots(op)) {
            Ok(snapshots) => {
                let options = builder::LoopOptions { trips: None, snapshots };
                repeat(op, location, init, options, condition, body)
            }
            Err(error) => refill(&init, Err(error)),
        }
    }

    /// As the function [`for_`].
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// let few = LoopOptions::new().with_snapshots(2);
    /// let slope = jit(move |x: Expr| grad(&x, |x| few.for_(x, 1..6, |x, i| x * i)));
    /// assert_eq!(slope.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 120.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`for_`] and of the options.
    #[track_caller]
    pub fn for_<A: Exprs>(self, init: A, over: Range<i32>, mut body: impl FnMut(A, Expr) -> A) -> A {
        let (op, location) = ("for_", Location::caller());
        let snapshots = match record(location.clone(), |_| self.snapshots(op)) {
            Ok(snapshots) => snapshots,
            Err(error) => return refill(&init, Err(error)),
        };
        let trips = (i64::from(over.end) - i64::from(over.start)).max(0) as u64;
        if trips == 0 {
            return init;
        }
        let start = Expr::make(location.clone(), |ops| ops.constant(DType::S32, over.start));
        let next = |(i, state): (Expr, A)| (i.add(1), body(state, i));
        let options = builder::LoopOptions { trips: Some(trips), snapshots };
        repeat(op, location, (start, init), options, |(i, _)| i.less(over.end), next).1
    }

    /// As the function [`scan`].
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// let few = LoopOptions::new().with_snapshots(2);
    /// let product = move |x: Expr| few.scan(x.at(0).ones_like(), &x, |y, x| (&y * x, y)).0;
    /// let slope = jit(move |x: Expr| grad(&x, product));
    /// assert_eq!(slope.call(tensor![2.0, 3.0, 5.0]?)?.to_vec::<f32>()?, [15.0, 10.0, 6.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scan`] and of the options.
    #[track_caller]
    pub fn scan<A: Exprs, B: Exprs, O: Exprs>(
        self,
        init: A,
        over: &B,
        body: impl FnMut(A, B) -> (A, O),
    ) -> (A, O) {
        scan_over(Location::caller(), init, (over, None), false, self, body)
    }

    /// As the function [`scan_reverse`].
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// // A polynomial by Horner's rule, from the last coefficient on: 1 + 2x + 3x^2.
    /// let few = LoopOptions::new().with_snapshots(1);
    /// let slope = jit(move |(c, x): (Expr, Expr)| {
    ///     grad(&x, |x| few.scan_reverse(x.zeros_like(), &c, |y, c| (&y * &x + c, y)).0)
    /// });
    /// let slope = slope.call((tensor![1.0, 2.0, 3.0]?, Tensor::scalar(10.0)?))?;
    /// assert_eq!(slope.item::<f32>()?, 62.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scan_reverse`] and of the options.
    #[track_caller]
    pub fn scan_reverse<A: Exprs, B: Exprs, O: Exprs>(
        self,
        init: A,
        over: &B,
        body: impl FnMut(A, B) -> (A, O),
    ) -> (A, O) {
        scan_over(Location::caller(), init, (over, None), true, self, body)
    }

    /// As the function [`scan_times`].
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::LoopOptions;
    ///
    /// // The sum of x, x^2, x^4 and x^8.
    /// let few = LoopOptions::new().with_snapshots(2);
    /// let sum = move |x: Expr| few.scan_times(x, 4, |x| (&x * &x, x)).1.sum(Axes::All, false);
    /// let slope = jit(move |x: Expr| grad(&x, sum));
    /// assert_eq!(slope.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 15.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scan_times`] and of the options.
    #[track_caller]
    pub fn scan_times<A: Exprs, O: Exprs>(
        self,
        init: A,
        length: usize,
        mut body: impl FnMut(A) -> (A, O),
    ) -> (A, O) {
        scan_over(Location::caller(), init, (&(), Some(length)), false, self, |state, ()| body(state))
    }

    /// The number of snapshots, which is refused if it is out of range.
    fn snapshots(self, op: &'static str) -> Result<Option<usize>> {
        match self.snapshots {
            Some(count) if !(1..=MOST_SNAPSHOTS).contains(&count) => {
                let (option, given) = ("snapshots", count.to_string());
                let required = format!("from 1 to {MOST_SNAPSHOTS}");
                Err(ErrorKind::OptionValue { op, option, given, required }.into())
            }
            snapshots => Ok(snapshots),
        }
    }
}

/// A loop of the core.
fn repeat<A: Exprs>(
    op: &'static str,
    location: Location,
    init: A,
    options: builder::LoopOptions,
    mut condition: impl FnMut(A) -> Expr,
    mut body: impl FnMut(A) -> A,
) -> A {
    let outcome = tensors(&init).and_then(|state| {
        record(location, |ops| {
            builder::while_(
                ops,
                state,
                options,
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

/// A scan of so many trips, which are those of the items unless there are none.
fn scan_over<A: Exprs, B: Exprs, O: Exprs>(
    location: Location,
    init: A,
    (over, length): (&B, Option<usize>),
    reverse: bool,
    options: LoopOptions,
    mut body: impl FnMut(A, B) -> (A, O),
) -> (A, O) {
    let form: RefCell<Option<O>> = RefCell::new(None);
    let outcome = tensors(&init).and_then(|state| {
        record(location, |ops| {
            let snapshots = options.snapshots("scan")?;
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
            let options = ScanOptions { counter, trips, reverse, snapshots };
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
