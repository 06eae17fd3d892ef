//! Creates, moves and joins vectorized axes.

use smallvec::SmallVec;

use super::{NamedAxes, NamedAxis, align, broadcast_lanes, join, position, vectorized_axes_text};
use crate::builder::{BuildCreate, BuildShape, Ops, Size};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::shape::{Name, Shape};
use crate::tensor::{Data, Tensor};
use crate::trace;

/// A vectorized axis in the user's notation: its name, and optionally its size.
pub type AxisRequest = (Name, Option<usize>);

/// Vectorizes the leading axes of `x`; they come after its existing vectorized axes.
///
/// # Errors
/// More axes than `x` has, a size other than the given one, and a name on two axes.
pub fn vectorize(ops: &mut Ops, x: &Tensor, requests: &[AxisRequest]) -> Result<Tensor> {
    if requests.is_empty() {
        return Ok(x.clone());
    }
    let shape = &x.ty().shape;
    if requests.len() > shape.rank() {
        let (count, got) = (requests.len(), x.ty().clone());
        return Err(ErrorKind::VectorizeRank { count, got }.into());
    }
    let mut lanes: NamedAxes = x.vectorized_axes().into();
    for ((name, size), &found) in requests.iter().zip(shape.sizes()) {
        if let Some(size) = *size
            && size != found
        {
            let (name, got) = (name.clone(), x.ty().clone());
            return Err(ErrorKind::VectorizeSize { name, size, found, got }.into());
        }
        if lanes.iter().any(|(known, _)| known == name) {
            return Err(ErrorKind::VectorizedName { op: "vectorize", name: name.clone() }.into());
        }
        lanes.push((name.clone(), found));
    }
    let inner: Vec<_> = shape.entries().skip(requests.len()).collect();
    if let Some(name) = clash(&lanes, inner.iter().filter_map(|(_, name)| name.as_ref())) {
        return Err(ErrorKind::VectorizedName { op: "vectorize", name }.into());
    }
    let target = super::with_lead(&lanes, &Shape::from_axes(inner));
    Ok(rename(ops, x, target)?.with_vectorized(&lanes))
}

/// The same elements with another shape of the same sizes; also for a template.
fn rename(ops: &mut Ops, x: &Tensor, shape: Shape) -> Result<Tensor> {
    match x.data() {
        Data::Template => {
            let dtype = x.ty().dtype;
            Ok(Tensor::template(crate::shape::TensorType::new(dtype, shape)?))
        }
        Data::Buffer(_) | Data::Traced { .. } => ops.reshape_to(x.flat(), shape),
    }
}

/// `x` with its vectorized axes as leading axes, with or without their names.
///
/// # Errors
/// Those of the builder.
pub fn devectorize(ops: &mut Ops, x: &Tensor, keep_names: bool) -> Result<Tensor> {
    if !x.is_vectorized() {
        return Ok(x.clone());
    }
    if !keep_names {
        return Ok(x.flat());
    }
    rename(ops, x, named_shape(x))
}

/// The shape with the vectorized axes first, under their names.
pub fn named_shape(x: &Tensor) -> Shape {
    let lead = x.vectorized_axes().iter().map(|(name, size)| (*size, Some(name.clone())));
    Shape::from_axes(lead.chain(x.ty().shape.entries()))
}

/// The shape of the elements of a tensor with these vectorized axes: they come first, without their names.
pub fn whole_shape(axes: &[NamedAxis], inner: &Shape) -> Shape {
    Shape::from_axes(axes.iter().map(|&(_, size)| (size, None)).chain(inner.entries()))
}

/// The elements of `x` in row-major order with other vectorized axes and another shape, by default its own.
/// At most one size is left open.
///
/// # Errors
/// Sizes that do not fit, more than one open size, duplicate names, and a number of names other than that of
/// the sizes.
pub fn revectorize(
    ops: &mut Ops,
    x: &Tensor,
    axes: &[(Name, Size)],
    shape: Option<&[Size]>,
    names: Option<&[Option<Name>]>,
) -> Result<Tensor> {
    let own: Vec<Size>;
    let own_names: Vec<Option<Name>>;
    let (inner, inner_names) = match shape {
        Some(sizes) => {
            own_names = match names {
                Some(names) => names.to_vec(),
                None => vec![None; sizes.len()],
            };
            (sizes, own_names)
        }
        None => {
            own = x.ty().shape.sizes().iter().map(|&size| Size::from(size)).collect();
            own_names = match names {
                Some(names) => names.to_vec(),
                None => x.ty().shape.names().map(|name| name.cloned()).collect(),
            };
            (own.as_slice(), own_names)
        }
    };
    let sizes = axes.iter().map(|(_, size)| *size).chain(inner.iter().copied());
    let names: Vec<Option<Name>> = std::iter::repeat_n(None, axes.len()).chain(inner_names).collect();
    let plain = ops.reshape(x.flat(), sizes, Some(&names))?;
    let requests: Vec<AxisRequest> = axes.iter().map(|(name, _)| (name.clone(), None)).collect();
    vectorize(ops, &plain, &requests)
}

/// Gives each tensor the vectorized axes of all, with size 1 where it lacks one. With `align_ranks` inner
/// shapes get leading axes of size 1 up to the greatest rank.
///
/// # Errors
/// Axes of one name whose sizes differ, and a name that an inner axis has too.
pub fn reshape_vectors(ops: &mut Ops, tensors: &[Tensor], align_ranks: bool) -> Result<Vec<Tensor>> {
    together(ops, "reshape_vectors", tensors, align_ranks, |ops, x, axes, rank| {
        let lead = align::lead(ops, &x.flat(), x.vectorized_axes(), axes, rank)?;
        let sizes = lead.ty().shape.sizes();
        let own: NamedAxes = axes.iter().zip(sizes).map(|((name, _), &size)| (name.clone(), size)).collect();
        Ok(lead.with_vectorized(&own))
    })
}

/// Broadcasts each tensor to the vectorized axes of all. With `align_ranks` inner shapes get leading axes of
/// size 1 up to the greatest rank.
///
/// # Errors
/// As [`reshape_vectors`].
pub fn broadcast_vectors(ops: &mut Ops, tensors: &[Tensor], align_ranks: bool) -> Result<Vec<Tensor>> {
    together(ops, "broadcast_vectors", tensors, align_ranks, |ops, x, axes, rank| {
        let shape = &x.ty().shape;
        let filled = rank.saturating_sub(shape.rank());
        let inner = Shape::from_axes(std::iter::repeat_n((1, None), filled).chain(shape.entries()));
        Ok(broadcast_lanes(ops, &x.flat(), x.vectorized_axes(), axes, &inner)?.with_vectorized(axes))
    })
}

fn together(
    ops: &mut Ops,
    op: &'static str,
    tensors: &[Tensor],
    align_ranks: bool,
    change: impl Fn(&mut Ops, &Tensor, &[NamedAxis], usize) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let tensors = position::read_all(ops, tensors)?;
    tensors.iter().filter(|tensor| tensor.is_vectorized()).for_each(trace::note_vectorized);
    let axes = join(op, &tensors)?;
    if axes.is_empty() {
        return Ok(tensors.into_vec());
    }
    for tensor in &tensors {
        check_inner(op, &axes, tensor)?;
    }
    let rank = if align_ranks { tensors.iter().map(|x| x.ty().shape.rank()).max().unwrap_or(0) } else { 0 };
    tensors.iter().map(|x| change(ops, x, &axes, rank)).collect()
}

/// Checks that no inner axis has the name of a vectorized one.
fn check_inner(op: &'static str, axes: &[NamedAxis], x: &Tensor) -> Result<()> {
    match clash(axes, x.ty().shape.names().flatten()) {
        Some(name) => Err(ErrorKind::VectorizedName { op, name }.into()),
        None => Ok(()),
    }
}

/// Checks that none of the future names of `x` is that of a vectorized axis.
///
/// # Errors
/// A name that is.
pub fn check_names(op: &'static str, x: &Tensor, names: &[Option<Name>]) -> Result<()> {
    match clash(x.vectorized_axes(), names.iter().flatten()) {
        Some(name) => Err(ErrorKind::VectorizedName { op, name }.into()),
        None => Ok(()),
    }
}

/// The first of some names that is also the name of a vectorized axis.
pub(super) fn clash<'a>(axes: &[NamedAxis], mut names: impl Iterator<Item = &'a Name>) -> Option<Name> {
    names.find(|known| axes.iter().any(|(name, _)| name == *known)).cloned()
}

/// The union of the vectorized axes of several tensors, in the order of first appearance.
///
/// # Errors
/// Axes of one name whose sizes differ, neither being 1.
pub fn union(op: &'static str, tensors: &[Tensor]) -> Result<NamedAxes> {
    join(op, tensors)
}

/// `x` broadcast to vectorized axes, which include its own.
///
/// # Errors
/// A name that an inner axis has too, a duplicate name, and a result too large to address.
pub fn broadcast_vectorized(
    ops: &mut Ops,
    op: &'static str,
    x: &Tensor,
    axes: &[NamedAxis],
) -> Result<Tensor> {
    for (at, (name, _)) in axes.iter().enumerate() {
        if axes[..at].iter().any(|(known, _)| known == name) {
            return Err(ErrorKind::VectorizedName { op, name: name.clone() }.into());
        }
    }
    if x.vectorized_axes() == axes {
        return Ok(x.clone());
    }
    check_inner(op, axes, x)?;
    trace::note_vectorized(x);
    Ok(broadcast_lanes(ops, &x.flat(), x.vectorized_axes(), axes, &x.ty().shape)?.with_vectorized(axes))
}

/// 1 on diagonal `offset` of the last two axes, else 0, for each position on vectorized axes. With vectorized
/// axes, a shape of one axis is a matrix of one row.
///
/// # Errors
/// Fewer than two axes without vectorized ones, a duplicate name, and a result too large to address.
pub fn eye(ops: &mut Ops, shape: Shape, dtype: DType, offset: i64, axes: &[NamedAxis]) -> Result<Tensor> {
    let plain = if let (&[size], false) = (shape.sizes(), axes.is_empty()) {
        let row = ops.eye_with_offset(Shape::new(&[1, size]), dtype, offset)?;
        ops.reshape_to(row, shape)?
    } else {
        ops.eye_with_offset(shape, dtype, offset)?
    };
    broadcast_vectorized(ops, "eye", &plain, axes)
}

/// The vectorized axes and the inner type as text, as tensors print them.
pub fn type_text(x: &Tensor) -> String {
    if x.is_vectorized() {
        format!("{} {}", vectorized_axes_text(x.vectorized_axes()), x.ty())
    } else {
        x.ty().to_string()
    }
}

/// A name that no axis of the tensors has: `<stem>`, or the stem with the least free number.
pub fn fresh_name(stem: &str, tensors: &[Tensor]) -> Name {
    let used_names: SmallVec<[&Name; 8]> = tensors
        .iter()
        .flat_map(|x| x.vectorized_axes().iter().map(|(name, _)| name).chain(x.ty().shape.names().flatten()))
        .collect();
    let is_free = |candidate: &str| used_names.iter().all(|name| &***name != candidate);
    let numbered = (1..).map(|number: u64| format!("{stem}{number}"));
    let mut names = std::iter::once(stem.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).expect("there are more numbers than names").into()
}
