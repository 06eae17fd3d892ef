//! Functions of one element, applied to many at once.

use defn_core as core;
use defn_core::vectorize::{self, Level, named};
use defn_core::{ErrorKind, Location, Name, Result};

use crate::Expr;
use crate::control::{Exprs, refill, tensors};
use crate::expr::{both, record};

/// A function of the parts of a container along the first axes of its tensors, applied to all parts at once. What the
/// function captures is the same for all parts. Calls may be nested. [`VmapOptions`] give the axis a name and a size.
///
/// - Shapes: the function takes tensors without the first axis; its results get one.
/// - Dtypes: any; unchanged.
/// - Gradient: through the function.
///
/// ```
/// use defn::prelude::*;
///
/// // The distance of each point to one point.
/// let distances = jit(|(points, to): (Expr, Expr)| {
///     vmap(points, |point| (point - &to).pow(2).sum(Axes::All, false).sqrt())
/// });
/// let points = tensor![[3.0, 4.0], [0.0, 1.0]]?;
/// assert_eq!(distances.call((points, tensor![0.0, 0.0]?))?.to_vec::<f32>()?, [5.0, 1.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// A scalar (`Axis`), and axes of different sizes (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn vmap<A: Exprs, R: Exprs>(over: A, fun: impl FnOnce(A) -> R) -> R {
    VmapOptions::new().vmap(over, fun)
}

/// As [`vmap`], along other axes: `axes` has one for each tensor of the container, negative from the end, and the results
/// get their axis at `out_axis`.
///
/// ```
/// use defn::prelude::*;
/// use defn::vmap_at;
///
/// // Each column of one matrix with each row of another.
/// let dots = jit(|(a, b): (Expr, Expr)| vmap_at((a, b), &[1, 0], 0, |(a, b)| (a * b).sum(Axes::All, false)));
/// let (a, b) = (tensor![[1.0, 2.0], [3.0, 4.0]]?, tensor![[1.0, 1.0], [10.0, 0.0]]?);
/// assert_eq!(dots.call((a, b))?.to_vec::<f32>()?, [4.0, 20.0]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Another number of axes than tensors (`Option`), an axis out of range (`Axis`), and axes of different sizes (`Option`).
/// The error comes out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn vmap_at<A: Exprs, R: Exprs>(over: A, axes: &[i64], out_axis: i64, fun: impl FnOnce(A) -> R) -> R {
    VmapOptions::new().vmap_at(over, axes, out_axis, fun)
}

/// Options of [`vmap`](fn@vmap), which its methods run: a name for the mapped axis, and its size.
///
/// With a name, [`Expr::all_reduce`], [`Expr::all_gather`], [`Expr::reduce_scatter`], [`Expr::collective_permute`],
/// [`Expr::mesh_index`] and [`Expr::mesh_size`] work along the axis as they do along an axis of a mesh.
///
/// ```
/// use defn::mesh::AllReduceOp;
/// use defn::prelude::*;
/// use defn::VmapOptions;
///
/// let share = |x: Expr| &x / x.all_reduce(AllReduceOp::Sum, "i");
/// let shares = jit(move |x: Expr| VmapOptions::new().with_axis_name("i").vmap(x, share));
/// assert_eq!(shares.call(tensor![1.0, 3.0]?)?.to_vec::<f32>()?, [0.25, 0.75]);
/// # Ok::<(), defn::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmapOptions {
    name: Option<Name>,
    size: Option<usize>,
}

impl VmapOptions {
    /// The options of the functions of this crate.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::VmapOptions;
    ///
    /// let double = jit(|x: Expr| VmapOptions::new().vmap(x, |x| 2 * x));
    /// assert_eq!(double.call(tensor![1, 2]?)?.to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    pub const fn new() -> VmapOptions {
        VmapOptions { name: None, size: None }
    }

    /// The same options, with a name by which the function knows the mapped axis.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::VmapOptions;
    ///
    /// let place = VmapOptions::new().with_axis_name("i");
    /// let numbered = jit(move |x: Expr| place.vmap(x, |x| 10 * x + Expr::mesh_index("i")));
    /// assert_eq!(numbered.call(tensor![1, 2, 3]?)?.to_vec::<i32>()?, [10, 21, 32]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name of an axis of an argument, or of the mapped axis of an enclosing call (`Axis`). The error comes out of
    /// [`Jit::call`](crate::Jit::call).
    pub fn with_axis_name(self, name: &str) -> VmapOptions {
        VmapOptions { name: Some(name.into()), ..self }
    }

    /// The same options, with the size of the mapped axis, for a function that takes no tensor.
    ///
    /// ```
    /// use defn::prelude::*;
    /// use defn::VmapOptions;
    ///
    /// let squares = jit(|x: Expr| {
    ///     let options = VmapOptions::new().with_axis_name("i").with_axis_size(4);
    ///     options.vmap((), |()| &x + Expr::mesh_index("i").pow(2))
    /// });
    /// assert_eq!(squares.call(Tensor::scalar(1)?)?.to_vec::<i32>()?, [1, 2, 5, 10]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Tensors whose mapped axes have another size (`Option`). The error comes out of [`Jit::call`](crate::Jit::call).
    pub fn with_axis_size(self, size: usize) -> VmapOptions {
        VmapOptions { size: Some(size), ..self }
    }

    /// As the function [`vmap`](fn@vmap).
    ///
    /// ```
    /// use defn::mesh::AllReduceOp;
    /// use defn::prelude::*;
    /// use defn::VmapOptions;
    ///
    /// // Each row without the mean of all rows.
    /// let rows = VmapOptions::new().with_axis_name("rows");
    /// let centered = jit(move |x: Expr| {
    ///     rows.vmap(x, |row| {
    ///         let sum = row.all_reduce(AllReduceOp::Sum, "rows");
    ///         row - sum / Expr::mesh_size("rows") as i32
    ///     })
    /// });
    /// let found = centered.call(tensor![[1.0, 2.0], [3.0, 6.0]]?)?;
    /// assert_eq!(found.to_vec::<f32>()?, [-1.0, -2.0, 1.0, 2.0]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`vmap`](fn@vmap) and of the options.
    #[track_caller]
    pub fn vmap<A: Exprs, R: Exprs>(&self, over: A, fun: impl FnOnce(A) -> R) -> R {
        self.map_over(Location::caller(), over, None, 0, fun)
    }

    /// As the function [`vmap_at`].
    ///
    /// ```
    /// use defn::mesh::AllReduceOp;
    /// use defn::prelude::*;
    /// use defn::VmapOptions;
    ///
    /// // The greatest element of each row, from the columns.
    /// let columns = VmapOptions::new().with_axis_name("columns");
    /// let greatest = jit(move |x: Expr| {
    ///     columns.vmap_at(x, &[1], -1, |column| column.all_reduce(AllReduceOp::Max, "columns"))
    /// });
    /// let found = greatest.call(tensor![[1, 5], [7, 2]]?)?;
    /// assert_eq!(found.to_vec::<i32>()?, [5, 5, 7, 7]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`vmap_at`] and of the options.
    #[track_caller]
    pub fn vmap_at<A: Exprs, R: Exprs>(
        &self,
        over: A,
        axes: &[i64],
        out_axis: i64,
        fun: impl FnOnce(A) -> R,
    ) -> R {
        self.map_over(Location::caller(), over, Some(axes), out_axis, fun)
    }

    fn map_over<A: Exprs, R: Exprs>(
        &self,
        location: Location,
        over: A,
        axes: Option<&[i64]>,
        out_axis: i64,
        fun: impl FnOnce(A) -> R,
    ) -> R {
        let level = Level::enter();
        let entered = tensors(&over).and_then(|tensors| {
            record(location.clone(), |ops| {
                let (inner, name, size) = self.enter(ops, &level, &tensors, axes)?;
                let known = self.name.is_some().then(|| named::know(OP, name.clone(), size)).transpose()?;
                Ok((inner, (name, size, known)))
            })
        });
        let (inner, entered) = both(entered);
        let result = fun(refill(&over, inner));
        let leave = entered.map(|(name, size, known)| {
            drop(known);
            (name, size)
        });
        drop(level);
        let outcome = leave.and_then(|(name, size)| {
            let results = tensors(&result)?;
            record(location, |ops| {
                results
                    .iter()
                    .map(|x| vectorize::leave(ops, x, out_axis, &name, size))
                    .collect::<Result<Vec<_>>>()
            })
        });
        refill(&result, outcome)
    }

    /// The tensors with the mapped axes vectorized, the name of that axis, and its size.
    fn enter(
        &self,
        ops: &mut core::builder::Ops,
        level: &Level,
        tensors: &[core::Tensor],
        axes: Option<&[i64]>,
    ) -> Result<(Vec<core::Tensor>, Name, usize)> {
        let refuse = |option, given: String, required: String| {
            Err(ErrorKind::OptionValue { op: OP, option, given, required }.into())
        };
        if let Some(axes) = axes
            && axes.len() != tensors.len()
        {
            return refuse(
                "axes",
                format!("{} axes", axes.len()),
                format!("one for each of {} tensors", tensors.len()),
            );
        }
        let name = match &self.name {
            Some(name) => given_name(name, tensors)?,
            None => level.axis_name(OP, tensors),
        };
        let (mut inner, mut sizes) = (Vec::with_capacity(tensors.len()), Vec::with_capacity(tensors.len()));
        for (position, tensor) in tensors.iter().enumerate() {
            let axis = axes.and_then(|axes| axes.get(position)).copied().unwrap_or(0).into();
            sizes.push(tensor.ty().shape[tensor.ty().shape.resolve(OP, &axis)?]);
            inner.push(vectorize::enter(ops, tensor, &axis, &name)?);
        }
        match self.size.or(sizes.first().copied()) {
            None => {
                let required = "one with a tensor at least, or an axis size".to_owned();
                refuse("the container", "without a tensor".to_owned(), required)
            }
            Some(size) if sizes.iter().all(|&own| own == size) => Ok((inner, name, size)),
            Some(_) => {
                let required = self.size.map_or("equal".to_owned(), |size| format!("{size}, the axis size"));
                refuse("the sizes of the mapped axes", format!("{sizes:?}"), required)
            }
        }
    }
}

/// The name of the op in messages.
const OP: &str = "vmap";

/// A name of the mapped axis that no axis of the tensors has.
fn given_name(name: &Name, tensors: &[core::Tensor]) -> Result<Name> {
    let has_name = |tensor: &core::Tensor| {
        let is_vectorized = tensor.vectorized_axes().iter().any(|axis| axis.0 == *name);
        is_vectorized || tensor.ty().shape.names().flatten().any(|own| own == name)
    };
    if tensors.iter().any(has_name) {
        return Err(ErrorKind::VectorizedName { op: OP, name: name.clone() }.into());
    }
    Ok(name.clone())
}

/// Gives each tensor of a container the vectorized axes of all, in full size. With `align_ranks` shapes get leading axes of
/// size 1 up to the greatest rank.
///
/// ```
/// use defn::prelude::*;
/// use defn::broadcast_vectors;
///
/// let f = jit(|(a, b): (Expr, Expr)| broadcast_vectors((a, b), false).1);
/// let a = tensor![1, 2, 3]?.vectorize(&["x"])?;
/// assert_eq!(f.call((a, Tensor::scalar(7)?))?.to_vec::<i32>()?, [7, 7, 7]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// Axes of one name with different sizes other than 1 (`Shape`), and a name that stands on two axes (`Axis`). The error comes
/// out of [`Jit::call`](crate::Jit::call).
#[track_caller]
pub fn broadcast_vectors<A: Exprs>(container: A, align_ranks: bool) -> A {
    let location = Location::caller();
    let joined = tensors(&container)
        .and_then(|x| record(location, |ops| vectorize::broadcast_vectors(ops, &x, align_ranks)));
    refill(&container, joined)
}

/// Gives each tensor of a container the vectorized axes of all, with size 1 where it lacks one. With `align_ranks` shapes
/// get leading axes of size 1 up to the greatest rank.
///
/// ```
/// use defn::prelude::*;
/// use defn::reshape_vectors;
///
/// let f = jit(|(a, b): (Expr, Expr)| reshape_vectors((a, b), false).1);
/// let a = tensor![1, 2, 3]?.vectorize(&["x"])?;
/// let b = f.call((a, Tensor::scalar(7)?))?;
/// assert_eq!(b.vectorized_axes(), [("x".into(), 1)]);
/// # Ok::<(), defn::Error>(())
/// ```
///
/// # Errors
/// As [`broadcast_vectors`].
#[track_caller]
pub fn reshape_vectors<A: Exprs>(container: A, align_ranks: bool) -> A {
    let location = Location::caller();
    let joined = tensors(&container)
        .and_then(|x| record(location, |ops| vectorize::reshape_vectors(ops, &x, align_ranks)));
    refill(&container, joined)
}

impl Expr {
    /// A function of one element, applied to every element. It must return a scalar.
    ///
    /// - Shape: unchanged; names are kept.
    /// - Dtypes: that of the result of the function.
    /// - Gradient: through the function.
    ///
    /// ```
    /// use defn::prelude::*;
    ///
    /// let halves = jit(|x: Expr| {
    ///     x.map(|n| while_(n, |n| (n % 2).equal(0), |n| n.quotient(2)))
    /// });
    /// assert_eq!(halves.call(tensor![[12, 7], [8, 6]]?)?.to_vec::<i32>()?, [3, 7, 1, 3]);
    /// # Ok::<(), defn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A function that does not return a scalar (`Shape`). The error comes out of [`Jit::call`](crate::Jit::call).
    #[track_caller]
    pub fn map(&self, fun: impl FnOnce(Expr) -> Expr) -> Expr {
        let location = Location::caller();
        let level = Level::enter();
        let begun = self.0.clone().and_then(|x| {
            let name = level.axis_name("map", std::slice::from_ref(&x));
            let element = record(location.clone(), |ops| vectorize::elements(ops, &x, &name))?;
            Ok((x, name, element))
        });
        let (x, name, element) = match begun {
            Ok(begun) => begun,
            Err(error) => return fun(Expr(Err(error))),
        };
        let result = fun(Expr(Ok(element)));
        drop(level);
        match result.0 {
            Ok(result) => Expr::make(location, |ops| vectorize::from_elements(ops, &x, &name, &result)),
            Err(error) => Expr(Err(error)),
        }
    }
}
