//! Definitions of matrix products by the general contraction.

use super::{einsum, working_dtype};
use crate::builder::{Arg, BuildElementwise, BuildLinalg, BuildShape, Builder, Contracted};
use crate::error::{ErrorKind, Result};
use crate::infer::reduce::require_number;
use crate::shape::{Axes, Axis, AxisRef, Shape};

/// See [`BuildLinalg::dot`].
///
/// # Errors
/// As the method.
pub fn dot<B: Builder>(b: &mut B, x: Arg<B::V>, y: Arg<B::V>) -> Result<B::V> {
    let rank = |b: &B, arg: &Arg<B::V>| match arg {
        Arg::Value(value) => b.ty(value).shape.rank(),
        Arg::Number(_) => 0,
    };
    let (rank_x, rank_y) = (rank(b, &x), rank(b, &y));
    if rank_x == 0 || rank_y == 0 {
        let product = b.multiply(x, y)?;
        // Products of bools are integers, whatever the shapes.
        let dtype = b.ty(&product).dtype.to_number();
        return b.as_type(product, dtype);
    }
    b.dot_axes(x, -1, y, rank_y.saturating_sub(2) as i64)
}

/// See [`BuildLinalg::outer`].
///
/// # Errors
/// As the method.
pub fn outer<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let (left, right) = (b.ty(x), b.ty(y));
    let name = |shape: &Shape, axis: Option<Axis>| axis.and_then(|axis| shape.name(axis).cloned());
    let rows = [name(&left.shape, left.shape.axis(0))];
    let columns = [name(&right.shape, right.shape.last_axis())];
    if let ([Some(row)], [Some(column)]) = (&rows, &columns)
        && row == column
    {
        return Err(ErrorKind::NamesRepeated { op: "outer", name: row.clone() }.into());
    }
    let complex = left.dtype.merge(right.dtype).is_complex();
    let y = if complex && right.dtype.is_complex() { b.conjugate(y)? } else { y.clone() };
    let x = b.reshape(x, [left.shape.size(), 1], Some(&[rows[0].clone(), None]))?;
    let y = b.reshape(y, [1, right.shape.size()], Some(&[None, columns[0].clone()]))?;
    let product = b.multiply(x, y)?;
    let dtype = b.ty(&product).dtype.to_number();
    b.as_type(product, dtype)
}

/// `x`, conjugated if it is complex.
fn conjugated<B: Builder>(b: &mut B, x: &B::V) -> Result<B::V> {
    if b.ty(x).dtype.is_complex() { b.conjugate(x) } else { Ok(x.clone()) }
}

fn references(axes: impl IntoIterator<Item = Axis>) -> Vec<AxisRef> {
    axes.into_iter().map(AxisRef::from).collect()
}

/// See [`BuildLinalg::tensordot`].
///
/// # Errors
/// As the method.
pub fn tensordot<B: Builder>(b: &mut B, x: &B::V, y: &B::V, axes: Contracted) -> Result<B::V> {
    let (op, option) = ("tensordot", "axes");
    let (left, right) = (b.ty(x), b.ty(y));
    let (axes_x, axes_y) = match axes {
        Contracted::Last(count) => {
            let most = left.shape.rank().min(right.shape.rank());
            let Some(count) = usize::try_from(count).ok().filter(|&count| count <= most) else {
                let required = format!("in 0..={most} for {left} and {right}");
                return Err(ErrorKind::OptionValue { op, option, given: count.to_string(), required }.into());
            };
            let last = left.shape.axes().skip(left.shape.rank() - count);
            (references(last), references(right.shape.axes().take(count)))
        }
        Contracted::Pairs(axes_x, axes_y) => (
            references(left.shape.resolve_all(op, &axes_x)?),
            references(right.shape.resolve_all(op, &axes_y)?),
        ),
    };
    if axes_x.len() != axes_y.len() {
        let given = format!("a pair of {} and {} axes", axes_x.len(), axes_y.len());
        let required = "a pair of equally many axes".to_owned();
        return Err(ErrorKind::OptionValue { op, option, given, required }.into());
    }
    b.dot_axes(x, axes_x, y, axes_y).map_err(|error| error.with_product_name(op))
}

/// See [`BuildLinalg::inner`].
///
/// # Errors
/// As the method.
pub fn inner<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    if b.ty(x).shape.rank() == 0 || b.ty(y).shape.rank() == 0 {
        return dot(b, x.into(), y.into());
    }
    b.dot_axes(x, -1, y, -1).map_err(|error| error.with_product_name("inner"))
}

/// See [`BuildLinalg::vdot`].
///
/// # Errors
/// As the method.
pub fn vdot<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let x = conjugated(b, x)?;
    let (x, y) = (b.flatten(x, Axes::All)?, b.flatten(y, Axes::All)?);
    b.dot_axes(x, 0, y, 0).map_err(|error| error.with_product_name("vdot"))
}

/// The axis of the vectors in both operands.
fn axis_of_vectors<B: Builder>(
    b: &B,
    op: &'static str,
    x: &B::V,
    y: &B::V,
    axis: &AxisRef,
) -> Result<(Axis, Axis)> {
    let of = |value: &B::V| {
        let got = b.ty(value);
        if got.shape.rank() == 0 {
            let required = "at least one axis is required";
            return Err(ErrorKind::Rank { op, got, required }.into());
        }
        got.shape.resolve(op, axis)
    };
    Ok((of(x)?, of(y)?))
}

/// See [`BuildLinalg::vecdot`].
///
/// # Errors
/// As the method.
pub fn vecdot<B: Builder>(b: &mut B, x: &B::V, y: &B::V, axis: &AxisRef) -> Result<B::V> {
    let op = "vecdot";
    let (axis_x, axis_y) = axis_of_vectors(b, op, x, y, axis)?;
    let (left, right) = (b.ty(x), b.ty(y));
    if left.shape[axis_x] != right.shape[axis_y] {
        let (left_axis, right_axis) = (axis_x.index(), axis_y.index());
        let what = "contracted";
        return Err(ErrorKind::DotSizes { op, left, left_axis, right, right_axis, what }.into());
    }
    // Index 0 is summed over; the others count axes from the last one, because these broadcast.
    let term = |rank: usize, axis: Axis| {
        let mut term: Vec<usize> = (1..rank).rev().collect();
        term.insert(axis.index(), 0);
        term
    };
    let terms = vec![term(left.shape.rank(), axis_x), term(right.shape.rank(), axis_y)];
    let output = (1..left.shape.rank().max(right.shape.rank())).rev().collect();
    let x = conjugated(b, x)?;
    einsum::contract_indices(b, op, &[x, y.clone()], terms, output)
}

/// See [`BuildLinalg::kron`].
///
/// # Errors
/// As the method.
pub fn kron<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let (left, right) = (b.ty(x).shape, b.ty(y).shape);
    let rank = left.rank().max(right.rank());
    let padded = |shape: &Shape| -> Vec<usize> {
        let lead = std::iter::repeat_n(1, rank - shape.rank());
        lead.chain(shape.sizes().iter().copied()).collect()
    };
    let (left, right) = (padded(&left), padded(&right));
    // Each axis becomes two: one for the blocks, and one inside them.
    let blocks: Vec<usize> = left.iter().flat_map(|&size| [size, 1]).collect();
    let inside: Vec<usize> = right.iter().flat_map(|&size| [1, size]).collect();
    let x = b.reshape_to(x, Shape::new(&blocks))?;
    let y = b.reshape_to(y, Shape::new(&inside))?;
    let product = b.multiply(x, y)?;
    let dtype = b.ty(&product).dtype.to_number();
    let product = b.as_type(product, dtype)?;
    let sizes: Vec<usize> = left.iter().zip(&right).map(|(x, y)| x * y).collect();
    b.reshape_to(product, Shape::new(&sizes))
}

/// See [`BuildLinalg::cross`].
///
/// # Errors
/// As the method.
pub fn cross<B: Builder>(b: &mut B, x: &B::V, y: &B::V, axis: &AxisRef) -> Result<B::V> {
    let op = "cross";
    let (axis_x, axis_y) = axis_of_vectors(b, op, x, y, axis)?;
    let (left, right) = (b.ty(x), b.ty(y));
    let dtype = left.dtype.merge(right.dtype);
    require_number(op, &left, dtype)?;
    for (got, axis) in [(&left, axis_x), (&right, axis_y)] {
        if got.shape[axis] != 3 {
            let (got, required) = (got.clone(), "three elements along the axis are required");
            return Err(ErrorKind::Rank { op, got, required }.into());
        }
    }
    // Other axes broadcast from the last one on, so that those of the vectors must be equally far from it.
    let from_end = (left.shape.rank() - axis_x.index(), right.shape.rank() - axis_y.index());
    let aligned = from_end.0 == from_end.1;
    let working = if dtype.is_float() { working_dtype(dtype) } else { dtype };
    let mut vectors = Vec::with_capacity(2);
    for (value, axis) in [(x, axis_x), (y, axis_y)] {
        let value = b.as_type(value, working)?;
        vectors.push(if aligned { value } else { with_axis_last(b, value, axis)? });
    }
    b.ty(&vectors[0]).shape.broadcast_with(op, &b.ty(&vectors[1]).shape)?;
    let along = if aligned { -(from_end.0 as i64) } else { -1 };
    // Component i is x[i + 1] y[i + 2] - x[i + 2] y[i + 1], modulo 3.
    let mut components = Vec::with_capacity(3);
    for at in 0..3 {
        let (next, last) = ((at + 1) % 3, (at + 2) % 3);
        let mut term = |first: i64, second: i64| {
            let first = b.slice_along_axis(&vectors[0], first, 1, along, 1)?;
            let second = b.slice_along_axis(&vectors[1], second, 1, along, 1)?;
            b.multiply(first, second)
        };
        let (plus, minus) = (term(next, last)?, term(last, next)?);
        components.push(b.subtract(plus, minus)?);
    }
    let product = b.concatenate(&components, along)?;
    let product = b.as_type(product, dtype)?;
    if aligned {
        return Ok(product);
    }
    // The vectors go back to the axis of the operand with the most axes.
    let rank = b.ty(&product).shape.rank();
    let at = if left.shape.rank() >= right.shape.rank() { axis_x } else { axis_y };
    let mut order: Vec<usize> = (0..rank - 1).collect();
    order.insert(at.index(), rank - 1);
    b.transpose(product, references(order.into_iter().map(Axis)))
}

/// `x` with an axis moved behind all others.
fn with_axis_last<B: Builder>(b: &mut B, x: B::V, axis: Axis) -> Result<B::V> {
    let axes = b.ty(&x).shape.axes();
    let order = axes.filter(|&other| other != axis).chain([axis]);
    b.transpose(x, references(order))
}

/// See [`BuildLinalg::matmul`].
///
/// # Errors
/// As the method.
pub fn matmul<B: Builder>(b: &mut B, x: &B::V, y: &B::V) -> Result<B::V> {
    let (left, right) = (b.ty(x).shape, b.ty(y).shape);
    for operand in [x, y] {
        let got = b.ty(operand);
        if got.shape.rank() == 0 {
            let required = "at least one axis is required; use multiply to scale by a number";
            return Err(ErrorKind::Rank { op: "matmul", got, required }.into());
        }
    }
    if right.rank() <= 2 {
        // If the right operand has no batch axes, every row of the left operand is multiplied by the same matrix.
        return dot(b, x.into(), y.into()).map_err(|error| error.with_product_name("matmul"));
    }
    let (lead_x, lead_y) = (leading(&left), leading(&right));
    let batch = lead_x.broadcast_with("matmul", &lead_y)?;
    let x = broadcast_batch_axes(b, x, &left, &lead_x, &batch)?;
    let y = broadcast_batch_axes(b, y, &right, &lead_y, &batch)?;
    let axes: Vec<AxisRef> = batch.axes().map(AxisRef::from).collect();
    let contract_y = batch.rank() as i64;
    let product = b.dot_general(x, -1, axes.clone(), y, contract_y, axes);
    product.map_err(|error| error.with_product_name("matmul"))
}

/// The axes before the last two; no axes for a vector.
fn leading(shape: &Shape) -> Shape {
    Shape::from_axes(shape.entries().take(shape.rank().saturating_sub(2)))
}

/// `x` with its leading axes broadcast to `batch`; the last one or two axes are unchanged.
fn broadcast_batch_axes<B: Builder>(
    b: &mut B,
    x: &B::V,
    shape: &Shape,
    lead: &Shape,
    batch: &Shape,
) -> Result<B::V> {
    let last = shape.entries().skip(lead.rank());
    let target = Shape::from_axes(batch.entries().chain(last));
    b.broadcast(x, target, Axes::All)
}
