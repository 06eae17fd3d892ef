//! What functions on containers compute with, and what they give.

use defn_core as core;
use defn_core::{Error, Result, trace};

use super::{Leaf, Tree, map, named_leaves};
use crate::{Expr, Tensor};

/// The leaves that functions on containers compute with: expressions, or tensors.
///
/// ```
/// use defn::prelude::*;
/// use defn::tree::Computed;
///
/// fn twice<T: Computed>(pair: &(T, T)) -> T::Made<(T, T)> {
///     tree::scale(2, pair)
/// }
/// let pair = (Tensor::scalar(1)?, Tensor::scalar(2)?);
/// assert_eq!(twice(&pair)?.1.item::<i32>()?, 4);
/// assert_eq!(jit(|pair: (Expr, Expr)| twice(&pair)).call(pair)?.1.item::<i32>()?, 4);
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Computed: Leaf {
    /// What a function gives: a container of expressions, which keep an error, or a `Result` of one of tensors.
    type Made<A>;

    #[doc(hidden)]
    fn of(tensor: core::Tensor) -> Self;

    #[doc(hidden)]
    fn tensor(&self) -> Result<core::Tensor>;

    #[doc(hidden)]
    fn give<A>(container: Result<A>, failed: impl FnOnce(&Error) -> A) -> Self::Made<A>;

    #[doc(hidden)]
    fn one(tensor: Result<core::Tensor>) -> Self::Made<Self>;
}

impl Computed for Expr {
    type Made<A> = A;

    fn of(tensor: core::Tensor) -> Expr {
        Expr(Ok(tensor))
    }

    fn tensor(&self) -> Result<core::Tensor> {
        self.0.clone()
    }

    fn give<A>(container: Result<A>, failed: impl FnOnce(&Error) -> A) -> A {
        container.unwrap_or_else(|error| {
            poison(&error);
            failed(&error)
        })
    }

    fn one(tensor: Result<core::Tensor>) -> Expr {
        Expr(tensor.inspect_err(poison))
    }
}

impl Computed for Tensor {
    type Made<A> = Result<A>;

    fn of(tensor: core::Tensor) -> Tensor {
        Tensor(tensor)
    }

    fn tensor(&self) -> Result<core::Tensor> {
        Ok(self.0.clone())
    }

    fn give<A>(container: Result<A>, _failed: impl FnOnce(&Error) -> A) -> Result<A> {
        container
    }

    fn one(tensor: Result<core::Tensor>) -> Result<Tensor> {
        tensor.map(Tensor)
    }
}

/// The error stays in the open trace: what has it may be dropped.
pub(super) fn poison(error: &Error) {
    if let Some(trace) = trace::current() {
        trace.poison(error.clone());
    }
}

/// The container with an error at each leaf.
pub(super) fn failed<T: Leaf, U: Leaf, A: Tree<T>>(tree: &A, error: &Error) -> A::Of<U> {
    map(tree, |_| U::of_error(error).unwrap_or_else(|| panic!("{error}")))
}

/// What an error says of the leaf at a position: its name.
pub(crate) fn name_of<T: Leaf, A: Tree<T>>(tree: &A, position: usize) -> String {
    let name = named_leaves(tree).into_iter().nth(position).map(|(name, _)| name);
    name.filter(|name| !name.is_empty())
        .map_or_else(|| "the container".to_owned(), |name| format!("the leaf {name}"))
}
