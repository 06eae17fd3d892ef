//! Functions whose derivatives compute again what is inside of them.

use std::cell::RefCell;

use defn_core::Location;
use defn_core::builder;
use defn_core::op::MemorySpace;

use crate::control::{Exprs, refill, results};
use crate::expr::record;

/// What a function gives, whose derivatives compute again what is inside of it. The function itself, and its derivatives in
/// forward mode, are as without `checkpoint`.
///
/// A gradient reads values that were computed on the way to the loss. Each of them takes memory until the gradient comes to
/// it. Here only the expressions that the function captures, and its results, are kept, and what `kept` adds; other values
/// are computed again when they are needed. A network of checkpointed blocks takes the memory of the values between blocks
/// and of one block's inside.
///
/// The function is called once, while it is traced. Hooks in it run once.
///
/// - Shapes and dtypes: those of what the function gives.
/// - Gradient: that of the function, to any order.
///
/// ```
/// use defn::prelude::*;
/// use defn::{Kept, checkpoint};
///
/// // Only the states between the layers stay in memory.
/// let network = |w: Expr, x: &Expr| {
///     let layer = |x: Expr| checkpoint(&Kept::nothing(), || (&x * &w).tanh());
///     layer(layer(x.clone()))
/// };
/// let slope = jit(move |(w, x): (Expr, Expr)| grad(&w, |w| network(w, &x)));
/// let (w, x) = (0.5f32, 2.0f32);
/// let (inner, found) = ((w * x).tanh(), slope.call((Tensor::scalar(w)?, Tensor::scalar(x)?))?);
/// let by_hand = (1.0 - (w * inner).tanh().powi(2)) * (inner + w * x * (1.0 - inner * inner));
/// assert!((found.item::<f32>()? - by_hand).abs() < 1e-6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A name that no value of the function is marked with (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn checkpoint<R: Exprs>(kept: &Kept, function: impl FnOnce() -> R) -> R {
    let location = Location::caller();
    let (mut function, form) = (Some(function), RefCell::new(None));
    let outcome = record(location, |ops| {
        builder::checkpoint(ops, &kept.0, |_| {
            let function = function.take().expect("the function is traced once");
            let result = function();
            let leaves = results(&result);
            form.replace(Some(result));
            leaves
        })
    });
    // What keeps the function from being traced is an error; its container is wanted all the same.
    let form = form.into_inner().or_else(|| function.take().map(|function| function()));
    refill(&form.expect("the function was called"), outcome)
}

/// The values inside of a [`checkpoint`]ed function that its derivatives keep.
///
/// Values inside of branches and loops of the function are not kept, whatever their names.
///
/// ```
/// use defn::prelude::*;
/// use defn::{Kept, checkpoint};
///
/// // The products, which take the most time, are kept; the sines are computed again.
/// let layer = |x: &Expr, w: &Expr| checkpoint(&Kept::products(), || x.matmul(w).sin());
/// let slope = jit(move |(x, w): (Expr, Expr)| grad(&w, |w| layer(&x, &w)));
/// let found = slope.call((tensor![[1.0, 2.0]]?, tensor![[0.0], [0.0]]?))?;
/// assert_eq!(found.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept(builder::Kept);

impl Kept {
    /// No values but the inputs of the function.
    ///
    /// ```
    /// use defn::Kept;
    ///
    /// assert_eq!(Kept::nothing(), Kept::marked(&[]));
    /// ```
    pub fn nothing() -> Kept {
        Kept::marked(&[])
    }

    /// The values that [`Expr::mark`](crate::Expr::mark) gives one of these names.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::{Kept, checkpoint};
    ///
    /// let kept = Kept::marked(&["root"]);
    /// let slope = jit(move |x: Expr| grad(&x, |x| checkpoint(&kept, || x.sqrt().mark("root").sqrt())));
    /// assert_eq!(slope.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 0.25);
    /// // A name that there is not is an error.
    /// let wrong = jit(|x: Expr| checkpoint(&Kept::marked(&["rot"]), || x.sqrt().mark("root")));
    /// assert!(wrong.call(Tensor::scalar(1.0)?).unwrap_err().to_string().contains("\"root\""));
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn marked(names: &[&str]) -> Kept {
        let names = names.iter().map(|&name| (name.into(), MemorySpace::Device));
        Kept(builder::Kept::Marked(names.collect()))
    }

    /// As [`Kept::marked`], each name with the memory in which its values lie until the gradient comes to them. On the CPU
    /// both memories are the same.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::{Kept, MemorySpace, checkpoint};
    ///
    /// let kept = Kept::marked_in(&[("root", MemorySpace::Host)]);
    /// let slope = jit(move |x: Expr| grad(&x, |x| checkpoint(&kept, || x.sqrt().mark("root").sqrt())));
    /// assert_eq!(slope.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 0.25);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn marked_in(names: &[(&str, MemorySpace)]) -> Kept {
        let names = names.iter().map(|&(name, memory)| (name.into(), memory));
        Kept(builder::Kept::Marked(names.collect()))
    }

    /// The results of products and convolutions, which take the most time.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::{Kept, checkpoint};
    ///
    /// let norm = |x: &Expr| checkpoint(&Kept::products(), || x.dot(x).sqrt());
    /// let slope = jit(move |x: Expr| grad(&x, |x| norm(&x)));
    /// assert_eq!(slope.call(tensor![3.0, 4.0]?)?.to_vec::<f32>()?, [0.6, 0.8]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn products() -> Kept {
        Kept(builder::Kept::Products)
    }
}
