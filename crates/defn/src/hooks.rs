//! Functions of the program that a compiled function calls while it runs.
//!
//! A graph holds the number of a function. While [`jit`](crate::jit) traces, the functions are collected in a table,
//! which stays with the compiled program.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use defn_core as core;
use defn_core::backend::Hooks;
use defn_core::builder::{self, BuildControl, Tag};
use defn_core::collected::{Collecting, Lists};
use defn_core::vectorize::NamedAxes;
use defn_core::{ErrorKind, Location, Name, Result, TensorType, trace};

use crate::control::{Exprs, refill, results, tensors};
use crate::expr::record;
use crate::tree::{flatten, map};
use crate::{Expr, Tensor, Tree};

/// A function that receives the leaves of a value.
type Receive = Arc<dyn Fn(Vec<Tensor>) -> Result<()> + Send + Sync>;

/// A function that computes tensors from others.
type Compute = Arc<dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>> + Send + Sync>;

/// The functions for hooks that have a name.
pub(crate) type Named = HashMap<Name, Receive>;

/// An entry of a table.
#[derive(Clone)]
pub(crate) enum Slot {
    /// A hook: its name or its function, and the vectorized axes of the value's leaves.
    Hook { name: Option<Name>, fun: Option<Receive>, lanes: Vec<NamedAxes> },
    /// A function that computes values.
    Call(Compute),
    /// A block, which has no function here.
    Block,
}

/// The functions of one program.
pub(crate) type Table = Vec<Slot>;

thread_local! {
    static TABLES: Lists<Slot> = const { Lists::new() };
}

/// Collects the functions of what is traced on this thread until they are taken or dropped.
pub(crate) fn collect() -> Collecting<Slot> {
    Collecting::begin(&TABLES)
}

/// Adds an entry to the table of what is being traced, and returns its number.
fn push(op: &'static str, slot: Slot) -> Result<usize> {
    TABLES.with(|tables| tables.push(slot)).ok_or_else(|| {
        let required = "in a function that jit traces".to_owned();
        ErrorKind::OptionValue { op, option: "the call", given: "outside".to_owned(), required }.into()
    })
}

/// The functions of one run.
pub(crate) struct RunHooks<'a> {
    pub(crate) table: &'a Table,
    pub(crate) named: &'a Named,
}

impl Hooks for RunHooks<'_> {
    fn call(&self, slot: usize, values: &[core::Tensor]) -> Result<()> {
        let Some(Slot::Hook { name, fun, lanes }) = self.table.get(slot) else { return Ok(()) };
        let by_name = name.as_ref().and_then(|name| self.named.get(name));
        let Some(fun) = by_name.or(fun.as_ref()) else { return Ok(()) };
        let values = values.iter().zip(lanes);
        let values = values.map(|(value, lanes)| Tensor(value.clone().with_vectorized(lanes))).collect();
        // A trace may be open on this thread that does not belong to this run.
        trace::suspended(|| fun(values))
    }

    fn compute(
        &self,
        slot: usize,
        values: &[core::Tensor],
        outputs: &[TensorType],
    ) -> Result<Vec<core::Tensor>> {
        let Some(Slot::Call(fun)) = self.table.get(slot) else {
            return Err(ErrorKind::NoHostFunction { slot }.into());
        };
        let op = "runtime_call";
        let given = trace::suspended(|| fun(values.iter().cloned().map(Tensor).collect()))?;
        let (got, expected) = (given.len(), outputs.len());
        if got != expected {
            return Err(ErrorKind::RegionResults { op, what: "function", got, expected }.into());
        }
        for (index, (tensor, expected)) in given.iter().zip(outputs).enumerate() {
            if tensor.0.is_vectorized() || !expected.is_compatible(tensor.ty()) {
                let (got, expected) = (tensor.0.whole().clone(), expected.clone());
                return Err(ErrorKind::CallResult { op, index, got, expected }.into());
            }
        }
        Ok(given.into_iter().map(|tensor| tensor.0).collect())
    }
}

#[diagnostic::on_unimplemented(
    message = "the function of a hook returns nothing or `defn::Result<()>`, not `{Self}`",
    note = "an error of your own becomes one of `defn` by `defn::Error::other`"
)]
/// What the function of a hook returns: nothing, or a `Result` whose error stops the run and comes out of the call.
///
/// ```
/// use defn::prelude::*;
///
/// let checked = jit(|x: Expr| {
///     hook(x.sqrt(), |root: Tensor| {
///         let root = root.item::<f32>()?;
///         if root.is_nan() { Err(defn::Error::other("a negative number")) } else { Ok(()) }
///     })
/// });
/// assert_eq!(checked.call(Tensor::scalar(9.0)?)?.item::<f32>()?, 3.0);
/// let error = checked.call(Tensor::scalar(-9.0)?).unwrap_err();
/// assert!(error.to_string().starts_with("a negative number"));
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Outcome: sealed::Sealed {
    #[doc(hidden)]
    fn into_result(self) -> Result<()>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for defn_core::Result<()> {}
}

impl Outcome for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl Outcome for Result<()> {
    fn into_result(self) -> Result<()> {
        self
    }
}

/// The form of a container of expressions, which keeps nothing of its trace alive.
fn form_of<A: Exprs>(value: &A) -> A {
    refill(value, Err(core::Error::other("a form has no values")))
}

/// A container of tensors, from its leaves in order.
fn of_leaves<A: Tree<Expr>>(form: &A, leaves: Vec<Tensor>) -> A::Of<Tensor> {
    let mut leaves = leaves.into_iter();
    map(form, |_| leaves.next().expect("a tensor for each leaf"))
}

/// The value, which is also given to a function each time that the program gets there.
///
/// The function runs once for each trip of a loop, and in a branch only if that is taken; also if nothing uses the
/// value. It may return nothing, or a `Result`, whose error stops the run.
///
/// - Shapes and dtypes: those of the value.
/// - Gradient: `g`. The function is not called again.
///
/// ```
/// use std::sync::mpsc::channel;
///
/// use defn::prelude::*;
///
/// let (log, losses) = channel();
/// let step = jit(move |x: Expr| {
///     let log = log.clone();
///     let loss = hook((x - 1.0).pow(2), move |loss: Tensor| log.send(loss).unwrap());
///     loss * 2
/// });
/// assert_eq!(step.call(Tensor::scalar(3.0)?)?.item::<f32>()?, 8.0);
/// assert_eq!(losses.recv().unwrap().item::<f32>()?, 4.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A call outside of functions that [`jit`](crate::jit) traces (`Option`), and the error of the function. They come out
/// of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn hook<A, R>(value: A, fun: impl Fn(A::Of<Tensor>) -> R + Send + Sync + 'static) -> A
where
    A: Exprs + Send + Sync + 'static,
    R: Outcome,
{
    let form = form_of(&value);
    let fun = move |leaves: Vec<Tensor>| fun(of_leaves(&form, leaves)).into_result();
    place_hook(Location::caller(), value, None, Some(Arc::new(fun)))
}

/// The value, which is also given to the function that [`Jit::with_hook`](crate::Jit::with_hook) has for the name; without one,
/// nothing is called.
///
/// Shapes, dtypes and gradient are those of [`hook`].
///
/// ```
/// use defn::prelude::*;
/// use defn::named_hook;
///
/// let loss = |x: Expr| named_hook((x - 1.0).pow(2), "loss");
/// assert_eq!(jit(loss).call(Tensor::scalar(3.0)?)?.item::<f32>()?, 4.0);
/// let printed = jit(loss).with_hook("loss", |leaves| println!("loss {}", leaves[0]));
/// assert_eq!(printed.call(Tensor::scalar(3.0)?)?.item::<f32>()?, 4.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`hook`].
#[track_caller]
pub fn named_hook<A: Exprs>(value: A, name: &str) -> A {
    place_hook(Location::caller(), value, Some(name.into()), None)
}

fn place_hook<A: Exprs>(location: Location, value: A, name: Option<Name>, fun: Option<Receive>) -> A {
    let outcome = tensors(&value).and_then(|values| {
        record(location, |ops| {
            if trace::depth() == 0 {
                // The expressions are tensors that are there already.
                if let Some(fun) = fun {
                    fun(values.iter().cloned().map(Tensor).collect())?;
                }
                return Ok(values);
            }
            let lanes = values.iter().map(|x| x.vectorized_axes().into()).collect();
            let slot = push("hook", Slot::Hook { name: name.clone(), fun, lanes })?;
            Ok(ops.hook(slot, name, &values)?.into_vec())
        })
    });
    refill(&value, outcome)
}

impl Expr {
    /// The value, which is printed with a label each time that the program gets there.
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g`. Nothing is printed again.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let normalized = jit(|x: Expr| &x / x.sum(Axes::All, false).print_value("sum"));
    /// // Prints `sum: 4.0`.
    /// assert_eq!(normalized.call(tensor![1.0, 3.0]?)?.to_vec::<f32>()?, [0.25, 0.75]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`hook`]. The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn print_value(&self, label: &str) -> Expr {
        let label = label.to_owned();
        let print = move |leaves: Vec<Tensor>| {
            leaves.iter().for_each(|x| println!("{label}: {x}"));
            Ok(())
        };
        place_hook(Location::caller(), self.clone(), None, Some(Arc::new(print)))
    }

    /// The value, under a name at which a graph can be split ([`Rule::Marks`](crate::graph::Rule)).
    ///
    /// - Shape: unchanged.
    /// - Dtypes: any; unchanged.
    /// - Gradient: `g`.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let f = jit(|x: Expr| x.exp().mark("weights").sum(Axes::All, false));
    /// assert_eq!(f.call(tensor![0.0, 0.0]?)?.item::<f32>()?, 2.0);
    /// # Ok::<(), defn::Error>(())
    /// ```
    #[track_caller]
    pub fn mark(&self, name: &str) -> Expr {
        self.apply(|ops, x| ops.mark(x, name.into()))
    }
}

/// What a function of the program computes while the program runs, of the types of `output`, which may be templates.
///
/// The function is called at each run, once for each trip of a loop. It must give tensors of the types that `output` says.
///
/// - Shapes and dtypes: those of `output`.
/// - Gradient: none, it is refused; [`custom_grad`](crate::custom_grad) gives one.
///
/// ```
/// use defn::prelude::*;
/// use defn::runtime_call;
///
/// let prices = [10.0, 20.0, 30.0];
/// let price = Tensor::template(&[], DType::F32)?;
/// let total = jit(move |item: Expr| {
///     1.0 + runtime_call(&price, item, move |item: Tensor| {
///         let item = usize::try_from(item.item::<i32>()?).ok();
///         let price = item.and_then(|item| prices.get(item));
///         price.map_or(Err(defn::Error::other("no such item")), |&price| Tensor::scalar(price))
///     })
/// });
/// assert_eq!(total.call(Tensor::scalar(2)?)?.item::<f32>()?, 31.0);
/// assert!(total.call(Tensor::scalar(3)?).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A call outside of functions that [`jit`](crate::jit) traces (`Option`), vectorized values (`Axis`), the error of the
/// function, and results of other types (`Container`). They come out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn runtime_call<A, T>(
    output: &T,
    value: A,
    fun: impl Fn(A::Of<Tensor>) -> Result<T> + Send + Sync + 'static,
) -> T::Of<Expr>
where
    A: Exprs + Send + Sync + 'static,
    T: Tree<Tensor>,
{
    let form = form_of(&value);
    let (templates, lengths) = flatten(output);
    let types: Vec<TensorType> = templates.iter().map(|leaf| leaf.0.whole().clone()).collect();
    let count = templates.len();
    let fun = move |leaves: Vec<Tensor>| {
        let (found, now) = flatten(&fun(of_leaves(&form, leaves))?);
        if found.len() == count && now != lengths {
            let (op, what) = ("runtime_call", "function's container of another structure");
            return Err(ErrorKind::RegionResults { op, what, got: count, expected: count }.into());
        }
        Ok(found)
    };
    let location = Location::caller();
    let mut outcome = tensors(&value).and_then(|values| {
        record(location, |ops| {
            let slot = push("runtime_call", Slot::Call(Arc::new(fun)))?;
            Ok(ops.runtime_call(slot, &types, &values)?.into_iter())
        })
    });
    map(output, |_| match &mut outcome {
        Ok(found) => Expr(Ok(found.next().expect("a result for each template"))),
        Err(error) => Expr(Err(error.clone())),
    })
}

/// A function under a name: printed graphs, stages and compilers of one's own see one operation, which others compute by
/// the function.
///
/// - Shapes and dtypes: those of what the function returns.
/// - Gradient: that of the function.
///
/// ```
/// use defn::prelude::*;
/// use defn::block;
///
/// let gelu = |x: Expr| {
///     block("gelu", x, |x| 0.5 * &x * (1.0 + (&x / 2f64.sqrt()).erf()))
/// };
/// let f = jit(gelu).compile(tensor![0.0, 10.0]?)?;
/// assert!(f.to_string().contains("gelu"));
/// assert_eq!(f.call(tensor![0.0, 10.0]?)?.to_vec::<f32>()?, [0.0, 10.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[track_caller]
pub fn block<A: Exprs, R: Exprs>(name: &str, args: A, default: impl Fn(A) -> R) -> R {
    let location = Location::caller();
    let form: RefCell<Option<R>> = RefCell::new(None);
    let outcome = tensors(&args).and_then(|values| {
        record(location, |ops| {
            let tag = || {
                let slot = push("block", Slot::Block).unwrap_or_default();
                Tag { name: name.into(), attributes: "".into(), slot }
            };
            builder::block(ops, tag, values, None, |_, given| {
                let result = default(refill(&args, Ok(given.to_vec())));
                let leaves = results(&result);
                form.replace(Some(result));
                leaves
            })
        })
    });
    // An error in the arguments keeps the function from being traced; its container is wanted all the same.
    let form = form.into_inner().unwrap_or_else(|| default(form_of(&args)));
    refill(&form, outcome)
}
