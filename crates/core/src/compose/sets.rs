//! Positions of elements, and tensors as sets: functions whose sizes depend on values.
//!
//! Elements are sorted, so that equal ones are neighbours, and the wanted ones are compacted: a running count gives each
//! its position in the result, to which it is scattered.

use crate::builder::{
    Arg, BuildCreate, BuildElementwise, BuildIndex, BuildOrder, BuildReduce, BuildShape, Builder, Composite,
    UniqueOutputs, Uniques,
};
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::index_dtype;
use crate::op::{Block, CumulativeOp, Direction, Op};
use crate::scalar::Number;
use crate::shape::{Axes, Shape, TensorType};

/// The size of a result that is given, or `None` if the values decide it.
///
/// # Errors
/// A negative size, and no size where there are no values.
pub fn size_of<B: Builder>(b: &B, op: &'static str, x: &B::V, size: Option<i64>) -> Result<Option<usize>> {
    let Some(size) = size else {
        b.require_values(op, x)?;
        return Ok(None);
    };
    match usize::try_from(size) {
        Ok(size) => Ok(Some(size)),
        Err(_) => {
            let (option, given, required) = ("size", size.to_string(), "an integer of at least 0".to_owned());
            Err(ErrorKind::OptionValue { op, option, given, required }.into())
        }
    }
}

/// The elements as a vector without a name.
fn flat<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let size = b.ty(x).size();
    b.reshape_to(x, Shape::new(&[size]))
}

/// The positions at which a vector of bools is true, in ascending order, then `fill`. Without a size there are as many
/// as are true.
fn positions<B: Builder>(
    b: &mut B,
    op: &'static str,
    mask: &B::V,
    size: Option<usize>,
    fill: i64,
) -> Result<B::V> {
    let Some(size) = size else { return b.true_positions(op, mask) };
    let count = b.ty(mask).size();
    let wide = i32::try_from(fill).is_err() || index_dtype(size + 1) == DType::S64;
    let dtype = if wide { DType::S64 } else { index_dtype(count + 1) };
    let shape = Shape::new(&[size]);
    TensorType::new(dtype, shape.clone())?;
    if count == 0 || size == 0 {
        let filled = b.full(shape, dtype, fill)?;
        return b.vectorized_like(filled, mask);
    }
    let ones = b.as_type(mask, dtype)?;
    let rank = b.cumulative(CumulativeOp::CumulativeSum, ones, 0, false)?;
    let slot = b.subtract(rank, 1)?;
    // What is not true, or is beyond the size, is written to one more element, which is cut off.
    let beyond = Number::from(size);
    let slot = b.select(mask, slot, beyond)?;
    let slot = b.min(slot, beyond)?;
    let slot = b.reshape_to(slot, Shape::new(&[count, 1]))?;
    let target = b.full(Shape::new(&[size + 1]), dtype, fill)?;
    let target = b.vectorized_like(target, mask)?;
    let position = b.iota(Shape::new(&[count]), dtype, None)?;
    let filled = b.indexed_put(target, slot, position, 0)?;
    b.slice_along_axis(filled, 0, size as i64, 0, 1)
}

/// Where an element is not 0. NaN is not.
fn not_zero<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype == DType::Bool { Ok(x.clone()) } else { b.not_equal(x, 0) }
}

/// See [`crate::builder::BuildSets::flatnonzero`].
///
/// # Errors
/// As the method.
pub fn flatnonzero<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    size: Option<i64>,
    fill: i64,
) -> Result<B::V> {
    let size = size_of(b, op, x, size)?;
    let mask = not_zero(b, x)?;
    let mask = flat(b, &mask)?;
    positions(b, op, &mask, size, fill)
}

/// See [`crate::builder::BuildSets::nonzero`].
///
/// # Errors
/// As the method.
pub fn nonzero<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    size: Option<i64>,
    fill: i64,
) -> Result<Vec<B::V>> {
    let ty = b.ty(x);
    let rank = ty.shape.rank();
    if rank == 0 {
        let required = "at least one axis is required; compare it with 0";
        return Err(ErrorKind::Rank { op, got: ty, required }.into());
    }
    if rank == 1 {
        return Ok(vec![flatnonzero(b, op, x, size, fill)?]);
    }
    // The fill is the position after the last, which no element has.
    let beyond = ty.size();
    let found = flatnonzero(b, op, x, size, beyond as i64)?;
    let dtype = b.ty(&found).dtype;
    let is_found = if size.is_some() { Some(b.less(&found, Number::from(beyond))?) } else { None };
    let mut stride = beyond;
    let mut left = found;
    let mut entries = Vec::with_capacity(rank);
    for (at, &size) in ty.shape.sizes().iter().enumerate() {
        stride = stride.checked_div(size).unwrap_or(0);
        let is_last = at + 1 == rank;
        let entry =
            if is_last || stride <= 1 { left.clone() } else { b.quotient(&left, Number::from(stride))? };
        if !is_last {
            left =
                if stride <= 1 { b.multiply(&left, 0)? } else { b.remainder(&left, Number::from(stride))? };
        }
        let entry = match &is_found {
            Some(is_found) => b.select(is_found, entry, fill)?,
            None => entry,
        };
        entries.push(b.as_type(entry, dtype)?);
    }
    Ok(entries)
}

/// See [`crate::builder::BuildSets::argwhere`].
///
/// # Errors
/// As the method.
pub fn argwhere<B: Builder>(b: &mut B, x: &B::V, size: Option<i64>, fill: i64) -> Result<B::V> {
    let ty = b.ty(x);
    if ty.shape.rank() == 0 {
        // A scalar has one position, which has no entries.
        let found = flatnonzero(b, "argwhere", x, size, fill)?;
        let found = b.reshape(&found, [b.ty(&found).size() as i64, 1], None)?;
        return b.slice_along_axis(found, 0, 0, 1, 1);
    }
    let entries = nonzero(b, "argwhere", x, size, fill)?;
    b.stack(&entries, 1, None)
}

/// The positions that sort a vector. Complex numbers are ordered by their real parts first; NaN is last.
fn order<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if !b.ty(x).dtype.is_complex() {
        return b.argsort(x, 0, Direction::Asc, None);
    }
    let imag = b.imag(x)?;
    let real = real_key(b, x)?;
    b.lexsort(&[imag, real], 0)
}

/// The real part of complex numbers; NaN where a part is NaN, so that these are sorted behind all others.
fn real_key<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    let real = b.real(x)?;
    let is_nan = b.is_nan(x)?;
    b.select(is_nan, f64::NAN, real)
}

/// Where an element of a sorted vector differs from the one before it; the first one does.
fn is_first<B: Builder>(b: &mut B, ordered: &B::V, equal_nan: bool) -> Result<B::V> {
    let ty = b.ty(ordered);
    let count = ty.size();
    let first = b.full(Shape::new(&[count.min(1)]), DType::Bool, true)?;
    let first = b.vectorized_like(first, ordered)?;
    if count < 2 {
        return Ok(first);
    }
    let later = b.slice_along_axis(ordered, 1, count as i64 - 1, 0, 1)?;
    let earlier = b.slice_along_axis(ordered, 0, count as i64 - 1, 0, 1)?;
    let mut differs = b.not_equal(&later, &earlier)?;
    if equal_nan && (ty.dtype.is_float() || ty.dtype.is_complex()) {
        // NaNs are last, so that an element after a NaN is one.
        let is_nan = b.is_nan(&earlier)?;
        let is_number = b.logical_not(is_nan)?;
        differs = b.bitwise_and(differs, is_number)?;
    }
    b.concatenate(&[first, differs], 0)
}

/// The value that follows the elements of a result, in the dtype of the elements: by default the first of them, or 0.
fn fill_value<B: Builder>(
    b: &mut B,
    op: &'static str,
    ordered: &B::V,
    first: Option<&B::V>,
    fill: Option<Arg<B::V>>,
) -> Result<B::V> {
    let ty = b.ty(ordered);
    match fill {
        Some(Arg::Number(number)) => b.constant(ty.dtype, number),
        Some(Arg::Value(value)) => {
            let got = b.ty(&value);
            if got.shape.rank() != 0 {
                return Err(ErrorKind::NotScalar { op, what: "fill_value", got }.into());
            }
            b.as_type(value, ty.dtype)
        }
        None => match first {
            Some(at) if ty.size() > 0 => b.take(ordered, at, 0),
            _ => b.constant(ty.dtype, 0),
        },
    }
}

/// The elements of a vector at positions, of which those that are `beyond` or more stand for the fill. Without a size
/// there are none.
fn filled<B: Builder>(
    b: &mut B,
    op: &'static str,
    ordered: &B::V,
    at: &B::V,
    has_fill: bool,
    fill: Option<Arg<B::V>>,
) -> Result<B::V> {
    let count = b.ty(ordered).size();
    let shape = b.ty(at).shape;
    if !has_fill {
        return b.take(ordered, at, 0);
    }
    if count == 0 || shape.size() == 0 {
        let fill = fill_value(b, op, ordered, None, fill)?;
        let filled = b.broadcast(fill, shape, Axes::All)?;
        return b.vectorized_like(filled, at);
    }
    let first = b.slice_along_axis(at, 0, 1, 0, 1)?;
    let first = b.reshape_to(first, Shape::scalar())?;
    let any = b.less(&first, Number::from(count))?;
    let first = b.min(first, Number::from(count - 1))?;
    let fill = match fill {
        Some(fill) => fill_value(b, op, ordered, None, Some(fill))?,
        None => {
            let first = fill_value(b, op, ordered, Some(&first), None)?;
            let zero = b.constant(b.ty(ordered).dtype, 0)?;
            b.select(any, first, zero)?
        }
    };
    let is_found = b.less(at, Number::from(count))?;
    let at = b.min(at, Number::from(count - 1))?;
    let values = b.take(ordered, at, 0)?;
    b.select(is_found, values, fill)
}

/// See [`crate::builder::BuildSets::unique`].
///
/// # Errors
/// As the method.
pub fn unique<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: &B::V,
    outputs: UniqueOutputs,
    equal_nan: bool,
    size: Option<i64>,
    fill: Option<Arg<B::V>>,
) -> Result<Uniques<B::V>> {
    let size = size_of(b, op, x, size)?;
    let shape = b.ty(x).shape.clone();
    let elements = flat(b, x)?;
    let count = b.ty(&elements).size();
    let needs_order = outputs.indices || outputs.inverse || b.ty(x).dtype.is_complex();
    let order = if needs_order { Some(order(b, &elements)?) } else { None };
    let ordered = match &order {
        Some(order) => b.take(&elements, order, 0)?,
        None => b.sort(&elements, 0, Direction::Asc)?,
    };
    let is_first = is_first(b, &ordered, equal_nan)?;
    let (starts, ends) = match size {
        // The start after the last of the wanted ones may be that of another.
        Some(size) if outputs.counts => {
            let all = positions(b, op, &is_first, Some(size + 1), count as i64)?;
            let starts = b.slice_along_axis(&all, 0, size as i64, 0, 1)?;
            (starts, Some(b.slice_along_axis(&all, 1, size as i64, 0, 1)?))
        }
        Some(_) | None => (positions(b, op, &is_first, size, count as i64)?, None),
    };
    let values = filled(b, op, &ordered, &starts, size.is_some(), fill)?;
    let mut found = Uniques { values, indices: None, inverse: None, counts: None };
    if outputs.indices
        && let Some(order) = &order
    {
        found.indices = Some(filled(b, op, order, &starts, size.is_some(), None)?);
    }
    if outputs.inverse
        && let Some(order) = &order
    {
        let dtype = index_dtype(count + 1);
        let groups = b.as_type(&is_first, dtype)?;
        let groups = b.cumulative(CumulativeOp::CumulativeSum, groups, 0, false)?;
        let groups = b.subtract(groups, 1)?;
        let target = b.zeros_like(&groups)?;
        let at = b.reshape_to(order, Shape::new(&[count, 1]))?;
        let inverse = if count == 0 { target } else { b.indexed_put(target, at, groups, 0)? };
        found.inverse = Some(b.reshape_to(inverse, shape)?);
    }
    if outputs.counts {
        let ends = match ends {
            Some(ends) => ends,
            None => {
                let ty = b.ty(&starts);
                let length = ty.size().saturating_sub(1);
                let later = b.slice_along_axis(&starts, ty.size().min(1) as i64, length as i64, 0, 1)?;
                let end = b.full(Shape::new(&[ty.size().min(1)]), ty.dtype, Number::from(count))?;
                b.concatenate(&[later, end], 0)?
            }
        };
        found.counts = Some(b.subtract(ends, &starts)?);
    }
    Ok(found)
}

/// The most elements that are compared one by one rather than sorted and searched.
const FEW: usize = 8;

/// Whether elements of a sorted vector are before values in its order.
fn precedes<B: Builder>(b: &mut B, element: &B::V, value: &B::V) -> Result<B::V> {
    if !b.ty(element).dtype.is_complex() {
        return b.less(element, value);
    }
    let (real, imag) = (b.real(element)?, b.imag(element)?);
    let (other_real, other_imag) = (b.real(value)?, b.imag(value)?);
    let before = b.less(&real, &other_real)?;
    let equal = b.equal(real, other_real)?;
    let then = b.less(imag, other_imag)?;
    let then = b.bitwise_and(equal, then)?;
    let before = b.bitwise_or(before, then)?;
    let is_nan = b.is_nan(element)?;
    let is_number = b.logical_not(is_nan)?;
    b.bitwise_and(before, is_number)
}

/// Where values belong in a sorted vector, before equal elements: the range of each is halved in all at the same time.
fn lower_bound<B: Builder>(b: &mut B, ordered: &B::V, values: &B::V) -> Result<B::V> {
    let count = b.ty(ordered).size();
    let dtype = index_dtype(2 * count + 1);
    let mut low = b.full(b.ty(values).shape.clone(), dtype, 0)?;
    // The elements before `low` precede the value. Steps that halve keep it in range without an upper bound.
    let mut step = count.next_power_of_two();
    while step > 0 {
        let next = b.add(&low, Number::from(step))?;
        let is_inside = b.less_equal(&next, Number::from(count))?;
        let at = b.subtract(&next, 1)?;
        let at = b.min(at, Number::from(count - 1))?;
        let element = b.take(ordered, at, 0)?;
        let goes_up = precedes(b, &element, values)?;
        let goes_up = b.bitwise_and(goes_up, is_inside)?;
        low = b.select(goes_up, next, low)?;
        step /= 2;
    }
    Ok(low)
}

/// See [`crate::builder::BuildSets::isin`].
///
/// # Errors
/// As the method.
pub fn isin<B: Builder>(
    b: &mut B,
    op: &'static str,
    x: Arg<B::V>,
    among: Arg<B::V>,
    invert: bool,
) -> Result<B::V> {
    let (x, among) = common(b, op, x, among)?;
    let operands = [x, among];
    let found =
        b.composite(Composite::new("isin", &[]), operands, &|b, [x, among]| is_member(b, x, among))?;
    if invert { b.logical_not(found) } else { Ok(found) }
}

/// Two operands in their common dtype.
fn common<B: Builder>(b: &mut B, op: &'static str, x: Arg<B::V>, y: Arg<B::V>) -> Result<(B::V, B::V)> {
    let (x, y) = b.weak_pair(op, x, y)?;
    let dtype = b.ty(&x).dtype.merge(b.ty(&y).dtype);
    Ok((b.as_type(x, dtype)?, b.as_type(y, dtype)?))
}

/// Whether elements are among others of the same dtype.
fn is_member<B: Builder>(b: &mut B, x: &B::V, among: &B::V) -> Result<B::V> {
    let among = flat(b, among)?;
    let shape = b.ty(x).shape;
    let count = b.ty(&among).size();
    if count == 0 {
        let none = b.full(shape, DType::Bool, false)?;
        let none = b.vectorized_like(none, x)?;
        return b.vectorized_like(none, &among);
    }
    if count <= FEW {
        let column = b.new_axis(x, -1, None)?;
        let equal = b.equal(column, among)?;
        return b.any(equal, Axes::from(-1), false);
    }
    if b.ty(x).dtype.is_complex() {
        return found_in(b, x, &among);
    }
    b.emit_one(Op::Block(Block::Isin), &[x.clone(), among])
}

/// Whether elements are among those of a vector, which is sorted and searched: the definition of [`Block::Isin`].
///
/// # Errors
/// As the ops.
pub(crate) fn found_in<B: Builder>(b: &mut B, x: &B::V, among: &B::V) -> Result<B::V> {
    let dtype = b.ty(x).dtype.merge(b.ty(among).dtype);
    let (x, among) = (&b.as_type(x, dtype)?, &b.as_type(among, dtype)?);
    let count = b.ty(among).size();
    if count == 0 {
        return b.not_equal(x, x);
    }
    let order = if dtype.is_complex() { Some(order(b, among)?) } else { None };
    let ordered = match order {
        Some(order) => b.take(among, order, 0)?,
        None => b.sort(among, 0, Direction::Asc)?,
    };
    let at = lower_bound(b, &ordered, x)?;
    let at = b.min(at, Number::from(count - 1))?;
    let nearest = b.take(ordered, at, 0)?;
    b.equal(nearest, x)
}

/// The distinct elements of `x` that are among those of `y`, or are not.
fn chosen<B: Builder>(
    b: &mut B,
    op: &'static str,
    (x, y): (Arg<B::V>, Arg<B::V>),
    wants_members: bool,
    size: Option<i64>,
    fill: Option<Arg<B::V>>,
) -> Result<B::V> {
    let (x, y) = common(b, op, x, y)?;
    let size_here = size_of(b, op, &x, size)?;
    size_of(b, op, &y, size)?;
    let elements = flat(b, &x)?;
    let ordered = if b.ty(&x).dtype.is_complex() {
        let order = order(b, &elements)?;
        b.take(&elements, order, 0)?
    } else {
        b.sort(&elements, 0, Direction::Asc)?
    };
    let is_first = is_first(b, &ordered, true)?;
    let is_member = is_member(b, &ordered, &y)?;
    let is_wanted = if wants_members { is_member } else { b.logical_not(is_member)? };
    let keep = b.bitwise_and(is_first, is_wanted)?;
    let count = b.ty(&ordered).size();
    let at = positions(b, op, &keep, size_here, count as i64)?;
    filled(b, op, &ordered, &at, size.is_some(), fill)
}

/// See [`crate::builder::BuildSets::setdiff1d`].
///
/// # Errors
/// As the method.
pub fn setdiff1d<B: Builder>(
    b: &mut B,
    x: Arg<B::V>,
    y: Arg<B::V>,
    size: Option<i64>,
    fill: Option<Arg<B::V>>,
) -> Result<B::V> {
    chosen(b, "setdiff1d", (x, y), false, size, fill)
}

/// See [`crate::builder::BuildSets::intersect1d`].
///
/// # Errors
/// As the method.
pub fn intersect1d<B: Builder>(
    b: &mut B,
    x: Arg<B::V>,
    y: Arg<B::V>,
    size: Option<i64>,
    fill: Option<Arg<B::V>>,
) -> Result<B::V> {
    chosen(b, "intersect1d", (x, y), true, size, fill)
}

/// See [`crate::builder::BuildSets::union1d`].
///
/// # Errors
/// As the method.
pub fn union1d<B: Builder>(
    b: &mut B,
    x: Arg<B::V>,
    y: Arg<B::V>,
    size: Option<i64>,
    fill: Option<Arg<B::V>>,
) -> Result<B::V> {
    let (x, y) = common(b, "union1d", x, y)?;
    let (x, y) = (flat(b, &x)?, flat(b, &y)?);
    let both = b.concatenate(&[x, y], 0)?;
    Ok(unique(b, "union1d", &both, UniqueOutputs::default(), true, size, fill)?.values)
}
