//! Containers of tensors: tuples, arrays, vectors, and structs of the user's.
//!
//! The functions of this module compute with containers as with vectors. Their results are containers of expressions, or
//! a `Result` of a container of tensors: see [`Computed`].
//!
//! ```
//! use defn::prelude::*;
//!
//! let params = (tensor![1.0, 2.0]?, Tensor::scalar(3.0)?);
//! let step = tree::scale(-0.5, &params)?;
//! assert_eq!(tree::add(&params, &step)?.1.item::<f32>()?, 1.5);
//! # Ok::<(), defn::Error>(())
//! ```

pub(crate) mod arithmetic;
mod computed;
mod stacks;

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use defn_core::{ErrorKind, Location, Result};

use crate::{Expr, Static, Tensor};

pub use arithmetic::{
    add, add_scaled, bytes, cast, dot, multiply, norm, ones_like, scale, select, size, subtract, zeros_like,
};
pub use computed::Computed;
pub(crate) use computed::name_of;
use computed::{failed, poison};
pub use stacks::{random_split, stack, unstack};

/// The leaves of a container: [`Expr`] while a function is traced, [`Tensor`] outside.
///
/// ```
/// use defn::prelude::*;
/// use defn::{Leaf, Tree};
///
/// fn last<T: Leaf>(pair: &(T, T)) -> T {
///     pair.1.clone()
/// }
/// let pair = (Tensor::scalar(1)?, Tensor::scalar(2)?);
/// assert_eq!(last(&pair).item::<i32>()?, 2);
/// assert_eq!(jit(|pair: (Expr, Expr)| last(&pair)).call(pair)?.item::<i32>()?, 2);
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Leaf: Clone + sealed::Sealed {}

impl Leaf for Expr {}
impl Leaf for Tensor {}

mod sealed {
    pub trait Sealed: Sized {
        /// A leaf that keeps an error; `None` where a leaf cannot.
        #[doc(hidden)]
        fn of_error(_error: &defn_core::Error) -> Option<Self> {
            None
        }
    }

    impl Sealed for crate::Tensor {}
    impl Sealed for super::Nothing {}
    impl Sealed for crate::Expr {
        fn of_error(error: &defn_core::Error) -> Option<crate::Expr> {
            super::poison(error);
            Some(crate::Expr(Err(error.clone())))
        }
    }
}

/// The leaf of a container of which only the leaves on the way are wanted.
#[derive(Clone)]
pub(crate) struct Nothing;

impl Leaf for Nothing {}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is no container of `{T}`",
    note = "containers are tensors or expressions, and tuples, arrays, vectors, options, maps, structs and enums of them",
    note = "a struct that is generic over its leaves becomes one by `#[derive(defn::Tree)]`"
)]
/// A container whose leaves are of type `T`: a leaf, or a tuple, array, vector, option, map, struct or enum of
/// containers.
///
/// A struct or an enum that is generic over its leaves becomes a container by `#[derive(Tree)]`, or by hand:
///
/// ```
/// use defn::{Leaf, Tree, Visit};
///
/// struct Layer<T> {
///     weight: T,
///     bias: T,
/// }
///
/// impl<T: Leaf> Tree<T> for Layer<T> {
///     type Of<U: Leaf> = Layer<U>;
///
///     fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Layer<U> {
///         Layer { weight: self.weight.visit(visit), bias: self.bias.visit(visit) }
///     }
/// }
/// # use defn::prelude::*;
/// let double = jit(|layer: Layer<Expr>| each([&layer], |[x]| 2 * x));
/// let layer = double.call(Layer { weight: Tensor::scalar(3)?, bias: Tensor::scalar(4)? })?;
/// assert_eq!((layer.weight.item::<i32>()?, layer.bias.item::<i32>()?), (6, 8));
/// # Ok::<(), defn::Error>(())
/// ```
pub trait Tree<T: Leaf>: Sized {
    /// The same container with other leaves.
    type Of<U: Leaf>: Tree<U>;

    /// The same container, with what the visitor returns for each leaf in its place. Leaves are visited in order.
    ///
    /// ```
    /// # use defn::prelude::*;
    /// # use defn::{Leaf, Tree, Visit};
    /// struct Wrapped<T>(T, Vec<T>);
    /// impl<T: Leaf> Tree<T> for Wrapped<T> {
    ///     type Of<U: Leaf> = Wrapped<U>;
    ///     fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Wrapped<U> {
    ///         Wrapped(self.0.visit(visit), self.1.visit(visit))
    ///     }
    /// }
    /// let next = jit(|x: Wrapped<Expr>| each([&x], |[x]| x + 1));
    /// let x = next.call(Wrapped(Tensor::scalar(1)?, vec![Tensor::scalar(2)?]))?;
    /// assert_eq!((x.0.item::<i32>()?, x.1[0].item::<i32>()?), (2, 3));
    /// # Ok::<(), defn::Error>(())
    /// ```
    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U>;
}

/// The function that is applied to each leaf of a container; a [`Tree`] hands it on to its parts.
///
/// ```
/// use defn::{Expr, Leaf, Tree, Visit, jit, Tensor};
///
/// struct Only<T>(T);
/// impl<T: Leaf> Tree<T> for Only<T> {
///     type Of<U: Leaf> = Only<U>;
///     fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Only<U> {
///         Only(self.0.visit(visit))
///     }
/// }
/// let square = jit(|x: Only<Expr>| &x.0 * &x.0);
/// assert_eq!(square.call(Only(Tensor::scalar(3)?))?.item::<i32>()?, 9);
/// # Ok::<(), defn::Error>(())
/// ```
pub struct Visit<'a, T, U> {
    leaf: &'a mut dyn FnMut(&T) -> U,
    /// The lengths of vectors on the way, variants and values: what leaves alone do not tell of the structure.
    lengths: Vec<usize>,
    /// The names of the leaves, where they are wanted.
    names: Option<Names>,
}

/// The names of the leaves that were visited.
#[derive(Default)]
struct Names {
    /// The names of the parts on the way, with dots in between.
    path: String,
    leaves: Vec<String>,
}

/// Adds the name of a part to that of its container.
pub(crate) fn add_part(path: &mut String, part: impl Display) {
    let dot = if path.is_empty() { "" } else { "." };
    write!(path, "{dot}{part}").expect("strings take everything");
}

impl<T, U> Visit<'_, T, U> {
    /// Visits a part that has a name, or a position, in its container: [`named_leaves`] names leaves by their parts.
    /// Without it, `part.visit(visit)` does the same, and the part has no name of its own.
    ///
    /// ```
    /// use defn::{Leaf, Tensor, Tree, Visit};
    ///
    /// struct Affine<T> {
    ///     weight: T,
    ///     biases: Vec<T>,
    /// }
    ///
    /// impl<T: Leaf> Tree<T> for Affine<T> {
    ///     type Of<U: Leaf> = Affine<U>;
    ///
    ///     fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Affine<U> {
    ///         Affine { weight: visit.part("weight", &self.weight), biases: visit.part("biases", &self.biases) }
    ///     }
    /// }
    /// let affine = Affine { weight: Tensor::scalar(1)?, biases: vec![Tensor::scalar(2)?] };
    /// let names: Vec<String> = defn::named_leaves(&affine).into_iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["weight", "biases.0"]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub fn part<A: Tree<T>>(&mut self, name: impl Display, part: &A) -> A::Of<U>
    where
        T: Leaf,
        U: Leaf,
    {
        let Some(names) = &mut self.names else { return part.visit(self) };
        let end = names.path.len();
        add_part(&mut names.path, name);
        let of = part.visit(self);
        if let Some(names) = &mut self.names {
            names.path.truncate(end);
        }
        of
    }

    /// Tells which of several forms a container has, such as the variant of an enum.
    ///
    /// ```
    /// use defn::{Leaf, Tree, Visit};
    ///
    /// enum Either<T> {
    ///     One(T),
    ///     Two(T, T),
    /// }
    ///
    /// impl<T: Leaf> Tree<T> for Either<T> {
    ///     type Of<U: Leaf> = Either<U>;
    ///
    ///     fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Either<U> {
    ///         match self {
    ///             Either::One(x) => {
    ///                 visit.variant(0);
    ///                 Either::One(x.visit(visit))
    ///             }
    ///             Either::Two(x, y) => {
    ///                 visit.variant(1);
    ///                 Either::Two(x.visit(visit), y.visit(visit))
    ///             }
    ///         }
    ///     }
    /// }
    /// ```
    pub fn variant(&mut self, index: usize) {
        self.lengths.push(index);
    }

    /// The same value, which is no leaf, and a part of the structure.
    ///
    /// ```
    /// use defn::{Leaf, Tree, Visit};
    ///
    /// struct Scaled<T>(T, f64);
    ///
    /// impl<T: Leaf> Tree<T> for Scaled<T> {
    ///     type Of<U: Leaf> = Scaled<U>;
    ///
    ///     fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Scaled<U> {
    ///         Scaled(self.0.visit(visit), visit.keep(&self.1))
    ///     }
    /// }
    /// ```
    pub fn keep<S: Static>(&mut self, value: &S) -> S {
        value.words(&mut self.lengths);
        value.clone()
    }
}

impl<T: Leaf> Tree<T> for T {
    type Of<U: Leaf> = U;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> U {
        if let Some(names) = &mut visit.names {
            names.leaves.push(names.path.clone());
        }
        (visit.leaf)(self)
    }
}

impl<T: Leaf, A: Tree<T>> Tree<T> for Vec<A> {
    type Of<U: Leaf> = Vec<A::Of<U>>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Vec<A::Of<U>> {
        visit.lengths.push(self.len());
        self.iter().enumerate().map(|(at, item)| visit.part(at, item)).collect()
    }
}

impl<T: Leaf, A: Tree<T>, const N: usize> Tree<T> for [A; N] {
    type Of<U: Leaf> = [A::Of<U>; N];

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> [A::Of<U>; N] {
        let mut at = 0..N;
        self.each_ref().map(|item| visit.part(at.next().expect("N positions"), item))
    }
}

impl<T: Leaf, A: Tree<T>> Tree<T> for Option<A> {
    type Of<U: Leaf> = Option<A::Of<U>>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Option<A::Of<U>> {
        visit.variant(self.is_some().into());
        self.as_ref().map(|item| item.visit(visit))
    }
}

/// Parameters by their names, in the order of these.
impl<T: Leaf, A: Tree<T>> Tree<T> for BTreeMap<String, A> {
    type Of<U: Leaf> = BTreeMap<String, A::Of<U>>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> BTreeMap<String, A::Of<U>> {
        visit.variant(self.len());
        self.iter().map(|(name, item)| (visit.keep(name), visit.part(name, item))).collect()
    }
}

/// No leaves: the state of a loop that carries nothing.
impl<T: Leaf> Tree<T> for () {
    type Of<U: Leaf> = ();

    fn visit<U: Leaf>(&self, _visit: &mut Visit<'_, T, U>) {}
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => {$(
        impl<T: Leaf, $($name: Tree<T>),+> Tree<T> for ($($name,)+) {
            type Of<U: Leaf> = ($($name::Of<U>,)+);

            fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Self::Of<U> {
                ($(visit.part($index, &self.$index),)+)
            }
        }
    )*};
}
for_tuples! { tuples }

/// Makes a struct that is generic over its leaves a [`Tree`](crate::Tree): name the struct and its fields, which are
/// leaves or containers.
///
/// ```
/// struct Params<T> {
///     weight: T,
///     biases: Vec<T>,
/// }
/// defn::tree!(Params { weight, biases });
/// # use defn::prelude::*;
/// let affine = jit(|(p, x): (Params<Expr>, Expr)| &p.weight * x + &p.biases[0]);
/// let params = Params { weight: Tensor::scalar(2)?, biases: vec![Tensor::scalar(1)?] };
/// assert_eq!(affine.call((params, Tensor::scalar(5)?))?.item::<i32>()?, 11);
/// # Ok::<(), defn::Error>(())
/// ```
#[macro_export]
macro_rules! tree {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl<T: $crate::Leaf> $crate::Tree<T> for $name<T> {
            type Of<U: $crate::Leaf> = $name<U>;

            fn visit<U: $crate::Leaf>(&self, visit: &mut $crate::Visit<'_, T, U>) -> $name<U> {
                $name { $($field: visit.part(stringify!($field), &self.$field)),+ }
            }
        }
    };
}

/// The same container with each leaf mapped.
pub(crate) fn map<T: Leaf, U: Leaf, A: Tree<T>>(tree: &A, mut leaf: impl FnMut(&T) -> U) -> A::Of<U> {
    tree.visit(&mut Visit { leaf: &mut leaf, lengths: Vec::new(), names: None })
}

/// The leaves in order, and the lengths of vectors on the way.
pub(crate) fn flatten<T: Leaf, A: Tree<T>>(tree: &A) -> (Vec<T>, Vec<usize>) {
    let mut leaves = Vec::new();
    let mut push = |leaf: &T| {
        leaves.push(leaf.clone());
        Nothing
    };
    let mut visit = Visit { leaf: &mut push, lengths: Vec::new(), names: None };
    tree.visit(&mut visit);
    let lengths = visit.lengths;
    (leaves, lengths)
}

/// The leaves of a container, in order.
///
/// ```
/// use defn::prelude::*;
/// use defn::leaves;
///
/// let params = (Tensor::scalar(1.0)?, vec![tensor![2.0, 3.0]?]);
/// let size: usize = leaves(&params).iter().map(|leaf| leaf.shape().size()).sum();
/// assert_eq!(size, 3);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn leaves<T: Leaf, A: Tree<T>>(tree: &A) -> Vec<T> {
    flatten(tree).0
}

/// The leaves of a container, in order, with the names of the fields, keys and positions that lead to them, with dots in
/// between. A container that is a leaf has an empty name. [`Visit::part`] gives names to the parts of a container that
/// is written by hand.
///
/// ```
/// use defn::prelude::*;
/// use defn::named_leaves;
///
/// #[derive(Tree)]
/// struct Layer<T> {
///     weight: T,
///     bias: Option<T>,
/// }
/// let layer = Layer { weight: tensor![1.0, 2.0]?, bias: Some(Tensor::scalar(3.0)?) };
/// let names: Vec<String> = named_leaves(&vec![layer]).into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["0.weight", "0.bias"]);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn named_leaves<T: Leaf, A: Tree<T>>(tree: &A) -> Vec<(String, T)> {
    let mut nothing = |_: &T| Nothing;
    let mut visit = Visit { leaf: &mut nothing, lengths: Vec::new(), names: Some(Names::default()) };
    tree.visit(&mut visit);
    visit.names.into_iter().flat_map(|names| names.leaves).zip(leaves(tree)).collect()
}

/// Applies a function to the corresponding leaves of containers of one structure; the results have that structure.
///
/// ```
/// use defn::prelude::*;
///
/// let decay = jit(|(old, new): ((Expr, Expr), (Expr, Expr))| {
///     each([&old, &new], |[old, new]| 0.9 * old + 0.1 * new)
/// });
/// let tensor = |x: f32| Tensor::scalar(x);
/// let (a, _) = decay.call(((tensor(1.0)?, tensor(2.0)?), (tensor(11.0)?, tensor(0.0)?)))?;
/// assert_eq!(a.item::<f32>()?, 2.0);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Containers of another structure (`Container`): the error comes out of [`Jit::call`](crate::Jit::call).
///
/// # Panics
/// If the results are tensors and the containers have another structure; [`try_each`] returns the error.
#[track_caller]
pub fn each<T: Leaf, U: Leaf, A: Tree<T>, const N: usize>(
    trees: [&A; N],
    mut fun: impl FnMut([&T; N]) -> U,
) -> A::Of<U> {
    let location = Location::caller();
    let [tree, ..] = &trees[..] else { panic!("each: no container was given") };
    match corresponding("each", &trees) {
        Ok(leaves) => {
            let mut results = leaves.map(|leaves| fun(leaves.each_ref()));
            map(*tree, |_| results.next().expect("a result for each leaf"))
        }
        Err(error) => {
            let error = error.at(Some(location));
            failed(*tree, &error)
        }
    }
}

/// As [`each`] with one container, where the function receives the name of the leaf first, as [`named_leaves`] gives it.
///
/// ```
/// use defn::prelude::*;
///
/// let params = ((tensor![1.0, 2.0]?, Tensor::scalar(3.0)?), Tensor::scalar(4.0)?);
/// let frozen = jit(|params: ((Expr, Expr), Expr)| {
///     tree::each_named(&params, |name, x| if name.starts_with("0.") { x.stop_grad() } else { x.clone() })
/// });
/// assert_eq!(frozen.call(params)?.1.item::<f32>()?, 4.0);
/// # Ok::<(), defn::Error>(())
/// ```
pub fn each_named<T: Leaf, U: Leaf, A: Tree<T>>(tree: &A, mut fun: impl FnMut(&str, &T) -> U) -> A::Of<U> {
    let names = named_leaves(tree);
    let mut names = names.iter();
    map(tree, |leaf| fun(&names.next().expect("a name for each leaf").0, leaf))
}

/// As [`each`], with a function that may fail, such as an operation on tensors.
///
/// ```
/// use defn::prelude::*;
/// use defn::try_each;
///
/// let (old, new) = ((Tensor::scalar(1)?, tensor![2, 3]?), (Tensor::scalar(4)?, tensor![5, 6]?));
/// let sum = try_each([&old, &new], |[old, new]| old + new)?;
/// assert_eq!(sum.1.to_vec::<i32>()?, [7, 9]);
/// assert!(try_each([&vec![old.0], &vec![]], |[old, _]| Ok(old.clone())).is_err());
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// The first error of the function, and containers of another structure (`Container`).
#[track_caller]
pub fn try_each<T: Leaf, U: Leaf, A: Tree<T>, const N: usize>(
    trees: [&A; N],
    mut fun: impl FnMut([&T; N]) -> Result<U>,
) -> Result<A::Of<U>> {
    let location = Location::caller();
    let [tree, ..] = &trees[..] else { panic!("try_each: no container was given") };
    let leaves = corresponding("try_each", &trees).map_err(|error| error.at(Some(location)))?;
    let mut results = leaves.map(|leaves| fun(leaves.each_ref())).collect::<Result<Vec<U>>>()?.into_iter();
    Ok(map(*tree, |_| results.next().expect("a result for each leaf")))
}

/// The corresponding leaves of some containers.
fn corresponding<T: Leaf, A: Tree<T>, const N: usize>(
    op: &'static str,
    trees: &[&A; N],
) -> Result<impl Iterator<Item = [T; N]> + use<T, A, N>> {
    let flat = trees.map(|tree| flatten(tree));
    let ((first, structure), rest) = flat.split_first().expect("a container at least");
    for (leaves, other) in rest {
        if leaves.len() != first.len() || other != structure {
            let (what, got, expected) = ("container of another structure", leaves.len(), first.len());
            return Err(ErrorKind::RegionResults { op, what, got, expected }.into());
        }
    }
    let mut leaves = flat.map(|(leaves, _)| leaves.into_iter());
    Ok(std::iter::from_fn(move || {
        let next = leaves.each_mut().map(Iterator::next);
        next.iter().all(Option::is_some).then(|| next.map(|leaf| leaf.expect("a leaf of each")))
    }))
}
