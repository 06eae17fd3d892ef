//! Definitions of matrix products by the general contraction.

use crate::builder::{Arg, BuildElementwise, BuildLinalg, BuildShape, Builder};
use crate::error::{ErrorKind, Result};
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
