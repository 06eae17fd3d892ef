//! Functions that put elements and tensors in another order: rolls, repeats, turns, pieces and grids.

use crate::builder::shape::axes_text;
use crate::builder::{BuildArrange, BuildCreate, BuildIndex, BuildShape, Builder, Indexing, Sections};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::memory;
use crate::op::Literal;
use crate::shape::{Axes, Axis, AxisList, AxisRef, Shape, TensorType};

/// See [`BuildArrange::moveaxis`].
///
/// # Errors
/// As the method.
pub fn moveaxis<B: Builder>(b: &mut B, x: &B::V, source: &Axes, destination: &Axes) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let from = shape.resolve_all("moveaxis", source)?;
    let to = shape.resolve_all("moveaxis", destination)?;
    if from.len() != to.len() {
        let (option, given) = ("destination", axes_text(&to));
        let required = format!("one position for each axis in source, {}", axes_text(&from));
        return Err(ErrorKind::OptionValue { op: "moveaxis", option, given, required }.into());
    }
    let mut order: Vec<Option<Axis>> = vec![None; shape.rank()];
    for (&from, to) in from.iter().zip(to) {
        order[to.index()] = Some(from);
    }
    let mut others = shape.axes().filter(|axis| !from.contains(axis));
    let order: AxisList = order.into_iter().filter_map(|axis| axis.or_else(|| others.next())).collect();
    b.transpose(x, order)
}

/// See [`BuildArrange::roll`].
///
/// # Errors
/// As the method.
pub fn roll<B: Builder>(b: &mut B, x: &B::V, shift: &[i64], axes: &Axes) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let (mut rolled, axes): (B::V, AxisList) = match axes {
        Axes::All => (b.flatten(x, Axes::All)?, AxisList::from_elem(Axis(0), 1)),
        Axes::List(_) => (x.clone(), shape.resolve_all("roll", axes)?),
    };
    if shift.len() != 1 && shift.len() != axes.len() {
        let (option, given) = ("shift", format!("{shift:?}"));
        let required = format!("one integer, or one for each of the axes {}", axes_text(&axes));
        return Err(ErrorKind::OptionValue { op: "roll", option, given, required }.into());
    }
    for (&axis, &shift) in axes.iter().zip(shift.iter().cycle()) {
        let size = b.ty(&rolled).shape[axis] as i64;
        let first = if size == 0 { 0 } else { shift.rem_euclid(size) };
        if first != 0 {
            let end = b.slice_along_axis(&rolled, size - first, first, axis, 1)?;
            let start = b.slice_along_axis(&rolled, 0, size - first, axis, 1)?;
            rolled = b.concatenate(&[end, start], axis)?;
        }
    }
    b.reshape_to(rolled, shape)
}

/// See [`BuildArrange::repeat`].
///
/// # Errors
/// As the method.
pub fn repeat<B: Builder>(b: &mut B, x: &B::V, repeats: &[i64], axis: Option<&AxisRef>) -> Result<B::V> {
    let (x, axis) = match axis {
        Some(axis) => (x.clone(), b.ty(x).shape.resolve("repeat", axis)?),
        None => (b.flatten(x, Axes::All)?, Axis(0)),
    };
    let got = b.ty(&x);
    let size = got.shape[axis];
    let refused = |required: String| {
        let many = repeats.len() > 8;
        let given = if many { format!("{} integers", repeats.len()) } else { format!("{repeats:?}") };
        ErrorKind::OptionValue { op: "repeat", option: "repeats", given, required }
    };
    let mut counts = Vec::with_capacity(repeats.len());
    for &count in repeats {
        match usize::try_from(count) {
            Ok(count) => counts.push(count),
            Err(_) => return Err(refused("integers of at least 0".to_owned()).into()),
        }
    }
    if counts.len() != 1 && counts.len() != size {
        let required = format!("one integer, or one for each of the {size} elements on axis {axis} of {got}");
        return Err(refused(required).into());
    }
    let too_large = || ErrorKind::TooLarge { dtype: got.dtype, shape: got.shape.clone() };
    let count = counts.first().copied().unwrap_or(1);
    let mut target = got.shape.clone();
    if counts.iter().all(|&other| other == count) {
        target[axis] = size.checked_mul(count).ok_or_else(too_large)?;
        // Each element gets an axis of its own for its copies. A reshape merges it.
        let mut split = got.shape.sizes().to_vec();
        split.insert(axis.index() + 1, count);
        let own = got.shape.axes().map(|own| own.index() + usize::from(own > axis));
        let own: Vec<AxisRef> = own.map(|axis| AxisRef::Index(axis as i64)).collect();
        let copies = b.broadcast(x, Shape::new(&split), own)?;
        return b.reshape_to(copies, target);
    }
    let total = counts.iter().try_fold(0usize, |total, &count| total.checked_add(count));
    target[axis] = total.ok_or_else(too_large)?;
    TensorType::new(got.dtype, target.clone())?;
    let elements = counts.iter().enumerate().flat_map(|(at, &count)| std::iter::repeat_n(at, count));
    let positions = positions(b, "repeat", elements, target[axis], index_dtype(size))?;
    b.take(x, positions, axis)
}

/// A vector of positions that are known before the run, of s32 or s64.
pub(super) fn positions<B: Builder>(
    b: &mut B,
    op: &'static str,
    values: impl Iterator<Item = usize>,
    count: usize,
    dtype: DType,
) -> Result<B::V> {
    let ty = TensorType::new(dtype, Shape::new(&[count]))?;
    let mut bytes = memory::with_capacity(op, ty.byte_size())?;
    for value in values {
        if dtype == DType::S32 {
            bytes.extend_from_slice(&(value as i32).to_ne_bytes());
        } else {
            bytes.extend_from_slice(&(value as i64).to_ne_bytes());
        }
    }
    b.literal(Literal::new(ty, bytes))
}

/// See [`BuildArrange::rot90`].
///
/// # Errors
/// As the method.
pub fn rot90<B: Builder>(b: &mut B, x: &B::V, k: i64, axes: &Axes) -> Result<B::V> {
    let shape = b.ty(x).shape;
    let plane = shape.resolve_all("rot90", axes)?;
    let &[first, second] = &plane[..] else {
        let (given, required) = (plane.len(), "the two axes of the plane are required");
        return Err(ErrorKind::AxesCount { op: "rot90", given, shape, required }.into());
    };
    let turns = k.rem_euclid(4);
    if turns % 2 == 0 {
        return if turns == 0 { Ok(x.clone()) } else { b.reverse(x, plane) };
    }
    let mut order: AxisList = shape.axes().collect();
    order.swap(first.index(), second.index());
    let swapped = b.transpose(x, order)?;
    b.reverse(swapped, if turns == 1 { first } else { second })
}

/// See [`BuildArrange::unstack`].
///
/// # Errors
/// As the method.
pub fn unstack<B: Builder>(b: &mut B, x: &B::V, axis: &AxisRef) -> Result<Vec<B::V>> {
    let shape = b.ty(x).shape;
    let axis = shape.resolve("unstack", axis)?;
    let part = shape.reduced(&[axis], false);
    let at = |at: usize| {
        let slice = b.slice_along_axis(x, at as i64, 1, axis, 1)?;
        b.reshape_to(slice, part.clone())
    };
    (0..shape[axis]).map(at).collect()
}

/// See [`BuildArrange::broadcast_arrays`].
///
/// # Errors
/// As the method.
pub fn broadcast_arrays<B: Builder>(b: &mut B, tensors: &[B::V]) -> Result<Vec<B::V>> {
    let mut shape = Shape::scalar();
    for tensor in tensors {
        shape = shape.broadcast_with("broadcast_arrays", &b.ty(tensor).shape)?;
    }
    tensors.iter().map(|tensor| b.broadcast(tensor, shape.clone(), Axes::All)).collect()
}

/// See [`BuildArrange::atleast_1d`], [`BuildArrange::atleast_2d`] and [`BuildArrange::atleast_3d`].
///
/// # Errors
/// As the methods.
pub fn at_least<B: Builder>(b: &mut B, x: &B::V, rank: usize) -> Result<B::V> {
    let mut entries: Vec<_> = b.ty(x).shape.entries().collect();
    if entries.len() >= rank {
        return Ok(x.clone());
    }
    while entries.len() < rank {
        // A vector is a row of a matrix, and lies on the middle one of three axes.
        let at = if entries.len() == 2 { 2 } else { 0 };
        entries.insert(at, (1, None));
    }
    b.reshape_to(x, Shape::from_axes(entries))
}

/// See [`BuildArrange::column_stack`].
///
/// # Errors
/// As the method.
pub fn column_stack<B: Builder>(b: &mut B, tensors: &[B::V]) -> Result<B::V> {
    if tensors.is_empty() {
        return Err(ErrorKind::NoTensors { op: "column_stack" }.into());
    }
    let mut columns = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let mut entries: Vec<_> = b.ty(tensor).shape.entries().collect();
        entries.extend((entries.len()..2).map(|_| (1, None)));
        columns.push(b.reshape_to(tensor, Shape::from_axes(entries))?);
    }
    joined(b, "column_stack", &columns, 1)
}

/// See [`BuildArrange::dstack`].
///
/// # Errors
/// As the method.
pub fn dstack<B: Builder>(b: &mut B, tensors: &[B::V]) -> Result<B::V> {
    if tensors.is_empty() {
        return Err(ErrorKind::NoTensors { op: "dstack" }.into());
    }
    let deep: Vec<B::V> = tensors.iter().map(|tensor| b.atleast_3d(tensor)).collect::<Result<_>>()?;
    joined(b, "dstack", &deep, 2)
}

/// Tensors concatenated along an axis; errors name the function `op`.
fn joined<B: Builder>(b: &mut B, op: &'static str, tensors: &[B::V], axis: i64) -> Result<B::V> {
    b.concatenate(tensors, axis).map_err(|error| {
        let mut kind = error.kind().clone();
        if let ErrorKind::ConcatenateShapes { op: named, .. } | ErrorKind::NamesConflict { op: named, .. } =
            &mut kind
        {
            *named = op;
            return kind.into();
        }
        error
    })
}

/// See [`BuildArrange::array_split`].
///
/// # Errors
/// As the method.
pub fn array_split<B: Builder>(
    b: &mut B,
    x: &B::V,
    sections: &Sections,
    axis: &AxisRef,
) -> Result<Vec<B::V>> {
    let shape = b.ty(x).shape;
    let axis = shape.resolve("array_split", axis)?;
    let size = shape[axis];
    let position = |at: i64| {
        let at = if at < 0 { at.saturating_add(size as i64) } else { at };
        at.clamp(0, size as i64)
    };
    let mut begin = 0;
    let mut bounds = Vec::new();
    match sections {
        Sections::Count(count) => {
            let Some(count) = usize::try_from(*count).ok().filter(|&count| count >= 1) else {
                let (option, given) = ("sections_or_indices", count.to_string());
                let required = "an integer of at least 1, or a sequence of positions".to_owned();
                return Err(ErrorKind::OptionValue { op: "array_split", option, given, required }.into());
            };
            memory::grow("array_split", &mut bounds, count)?;
            for part in 0..count {
                let length = (size / count + usize::from(part < size % count)) as i64;
                bounds.push((begin, length));
                begin += length;
            }
        }
        Sections::At(cuts) => {
            let ends = cuts.iter().map(|&cut| position(cut)).chain([size as i64]);
            for end in ends {
                bounds.push((begin, (end - begin).max(0)));
                begin = end;
            }
        }
    }
    let part = |(begin, length): (i64, i64)| b.slice_along_axis(x, begin, length, axis, 1);
    bounds.into_iter().map(part).collect()
}

/// See [`BuildArrange::meshgrid`].
///
/// # Errors
/// As the method.
pub fn meshgrid<B: Builder>(b: &mut B, tensors: &[B::V], indexing: Indexing) -> Result<Vec<B::V>> {
    let place = |at: usize| match indexing {
        Indexing::Xy if at < 2 && tensors.len() >= 2 => 1 - at,
        Indexing::Xy | Indexing::Ij => at,
    };
    let mut entries = vec![(1, None); tensors.len()];
    for (at, tensor) in tensors.iter().enumerate() {
        let got = b.ty(tensor);
        if got.shape.rank() > 1 {
            let required = "vectors are required; flatten it";
            return Err(ErrorKind::Rank { op: "meshgrid", got, required }.into());
        }
        let Some((size, name)) = got.shape.entries().next() else { continue };
        if let Some(name) =
            name.clone().filter(|name| entries.iter().any(|(_, own)| own.as_ref() == Some(name)))
        {
            return Err(ErrorKind::NamesRepeated { op: "meshgrid", name }.into());
        }
        entries[place(at)] = (size, name);
    }
    let shape = Shape::from_axes(entries);
    let mut grids = Vec::with_capacity(tensors.len());
    for (at, tensor) in tensors.iter().enumerate() {
        let vector = b.atleast_1d(tensor)?;
        grids.push(b.broadcast(vector, shape.clone(), AxisRef::Index(place(at) as i64))?);
    }
    Ok(grids)
}
