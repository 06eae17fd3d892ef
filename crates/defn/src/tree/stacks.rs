//! Containers joined to one container of longer tensors, and taken apart again.

use defn_core as core;
use defn_core::builder::{BuildArrange, BuildShape};
use defn_core::compose::random;
use defn_core::{AxisRef, ErrorKind, Location, Result};

use super::{Computed, Leaf, Tree, failed, flatten, map, name_of};
use crate::ops::eager;

/// Stacks the corresponding leaves of containers, such as the parameters of layers for [`scan`](crate::scan).
///
/// - Shape: those of corresponding leaves are equal; each result has a new axis at position `axis`. Names merge.
/// - Dtypes: any; those of corresponding leaves are promoted.
/// - Gradient: each container receives its slices of `g`.
///
/// ```
/// use defn::prelude::*;
///
/// let layers = [(tensor![1.0, 2.0]?, Tensor::scalar(3.0)?), (tensor![4.0, 5.0]?, Tensor::scalar(6.0)?)];
/// let (weights, biases) = tree::stack(&layers, 0)?;
/// assert_eq!(weights.ty().to_string(), "f32[2][2]");
/// assert_eq!(biases.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Containers of another structure (`Container`), leaves with other shapes (`Shape`), whose name the error has, and a
/// position out of range (`Axis`).
///
/// # Panics
/// Without containers.
#[track_caller]
pub fn stack<T: Computed, A: Tree<T, Of<T> = A>>(trees: &[A], axis: i64) -> T::Made<A> {
    let at = Location::caller();
    let [first, ..] = trees else { panic!("stack: no container was given") };
    let stacked = columns(trees).and_then(|columns| {
        let stacked = columns.iter().enumerate().map(|(position, column)| {
            eager(at.clone(), |ops| ops.stack(column, axis, None))
                .map_err(|error| error.within(|| name_of(first, position)))
        });
        stacked.collect::<Result<Vec<_>>>()
    });
    let container =
        stacked.map_err(|error| error.at(Some(at))).map(|stacked| refill::<T, T, A>(first, stacked));
    T::give(container, |error| failed::<T, T, A>(first, error))
}

/// The tensors behind the leaves of containers, leaf by leaf.
fn columns<T: Computed, A: Tree<T>>(trees: &[A]) -> Result<Vec<Vec<core::Tensor>>> {
    let mut columns: Vec<Vec<core::Tensor>> = Vec::new();
    let mut structure = Vec::new();
    for (position, tree) in trees.iter().enumerate() {
        let (leaves, own) = flatten(tree);
        if position == 0 {
            columns.resize_with(leaves.len(), Vec::new);
            structure.clone_from(&own);
        }
        if leaves.len() != columns.len() || own != structure {
            let (what, got, expected) = ("container of another structure", leaves.len(), columns.len());
            return Err(ErrorKind::RegionResults { op: "stack", what, got, expected }.into());
        }
        for (column, leaf) in columns.iter_mut().zip(&leaves) {
            column.push(leaf.tensor()?);
        }
    }
    Ok(columns)
}

/// The containers of the slices of all leaves at each position of an axis; [`stack`] joins them.
///
/// - Shape: all leaves have the axis, with equal sizes; results are without it.
/// - Dtypes: any; unchanged.
/// - Gradient: the stacked cotangents of the results.
///
/// ```
/// use defn::prelude::*;
///
/// let layers = tree::unstack(&(tensor![[1.0, 2.0], [3.0, 4.0]]?, tensor![5, 6]?), 0)?;
/// assert_eq!(layers[1].0.to_vec::<f32>()?, [3.0, 4.0]);
/// assert_eq!(layers[1].1.item::<i32>()?, 6);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A leaf without the axis (`Axis`), axes of other sizes (`Shape`), and no leaves (`Shape`). Of expressions, the result is
/// then one container.
#[track_caller]
pub fn unstack<T: Computed, A: Tree<T, Of<T> = A>>(tree: &A, axis: impl Into<AxisRef>) -> T::Made<Vec<A>> {
    let at = Location::caller();
    let axis = axis.into();
    let parts = parts(tree, &axis, &at).map_err(|error| error.at(Some(at)));
    T::give(parts, |error| vec![failed::<T, T, A>(tree, error)])
}

fn parts<T: Computed, A: Tree<T, Of<T> = A>>(tree: &A, axis: &AxisRef, at: &Location) -> Result<Vec<A>> {
    let (leaves, _) = flatten(tree);
    let mut rows: Vec<Vec<core::Tensor>> = Vec::new();
    for (position, leaf) in leaves.iter().enumerate() {
        let leaf = leaf.tensor()?;
        let parts = eager(at.clone(), |ops| ops.unstack(&leaf, axis.clone()))
            .map_err(|error| error.within(|| name_of(tree, position)))?;
        if position == 0 {
            rows.resize_with(parts.len(), Vec::new);
        }
        if parts.len() != rows.len() {
            let (op, got) = ("unstack", leaf.ty().clone());
            let required = "the axis must have as many elements as that of the first leaf";
            let error = core::Error::from(ErrorKind::Rank { op, got, required });
            return Err(error.within(|| name_of(tree, position)));
        }
        for (row, part) in rows.iter_mut().zip(parts) {
            row.push(part);
        }
    }
    if leaves.is_empty() {
        return Err(ErrorKind::NoTensors { op: "unstack" }.into());
    }
    Ok(rows.into_iter().map(|row| refill::<T, T, A>(tree, row)).collect())
}

/// The same container with other tensors.
fn refill<T: Leaf, U: Computed, A: Tree<T>>(tree: &A, tensors: Vec<core::Tensor>) -> A::Of<U> {
    let mut tensors = tensors.into_iter();
    map(tree, |_| U::of(tensors.next().expect("a tensor for each leaf")))
}

/// A key for each leaf, split from one.
///
/// - Shape: the key is one vector of two u32, and so is each result.
/// - Dtypes: u32.
///
/// ```
/// use defn::prelude::*;
/// use defn::random;
///
/// let sizes = (Tensor::template(&[2, 3], DType::F32)?, Tensor::template(&[3], DType::F32)?);
/// let key = random::key(0)?;
/// let keys = tree::random_split(&key, &sizes)?;
/// assert_eq!(keys.0.to_vec::<u32>()?, random::split(&key, 2)?.to_vec::<u32>()?[..2]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A key that is not one vector of two u32 (`DType`).
#[track_caller]
pub fn random_split<K: Computed, T: Leaf, A: Tree<T>>(key: &K, tree: &A) -> K::Made<A::Of<K>> {
    let at = Location::caller();
    let count = flatten(tree).0.len();
    let keys = key.tensor().and_then(|key| {
        eager(at.clone(), |ops| {
            let keys = random::split(ops, &key, count)?;
            ops.unstack(&keys, 0)
        })
    });
    let container = keys.map_err(|error| error.at(Some(at))).map(|keys| refill(tree, keys));
    K::give(container, |error| failed(tree, error))
}
