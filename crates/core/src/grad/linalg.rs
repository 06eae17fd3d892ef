//! Gradients of products. `g` is the cotangent of the result.

use smallvec::SmallVec;

use super::{Site, Vjp};
use crate::builder::Builder;
use crate::error::Result;
use crate::graph::Value;
use crate::op::Op;
use crate::shape::{Axis, AxisList};

/// The contracted and the batch axes of one factor.
type Side<'a> = (&'a [Axis], &'a [Axis]);

/// `y = dot(a, b)`: each factor gets `g` contracted with the other factor over that factor's free axes.
pub(super) fn dot(site: &mut Site<'_>, a_side: Side<'_>, b_side: Side<'_>, g: Value) -> Result<Vjp> {
    let ((contract_a, batch_a), (contract_b, batch_b)) = (a_side, b_side);
    let (a, b, g) = (site.input(0)?, site.input(1)?, site.as_factor(g)?);
    let rest = |value: Value, contract: &[Axis]| -> AxisList {
        let axes = site.graph.ty(value).shape.axes();
        axes.skip(batch_a.len()).filter(|axis| !contract.contains(axis)).collect()
    };
    let (rest_a, rest_b) = (rest(a, contract_a), rest(b, contract_b));
    let batch = batch_a.len();
    let of_g = |from: usize, count: usize| -> AxisList { (from..from + count).map(Axis).collect() };
    let batch_g: AxisList = of_g(0, batch);

    let to_a = if site.needs_gradient(0) {
        let op = Op::Dot {
            contract_a: of_g(batch + rest_a.len(), rest_b.len()),
            batch_a: batch_g.clone(),
            contract_b: rest_b.clone(),
            batch_b: batch_b.into(),
        };
        let contribution = site.graph.emit_one(op, &[g, b])?;
        // Batch, then the rest of `a`, then the axes that `b` contracted, in b's order.
        let after = batch + rest_a.len();
        let axes = restore(batch, &rest_a, batch, contract_a, contract_b, after);
        Some(site.graph.emit_one(Op::Transpose { axes }, &[contribution])?)
    } else {
        None
    };
    let to_b = if site.needs_gradient(1) {
        let op = Op::Dot {
            contract_a: rest_a.clone(),
            batch_a: batch_a.into(),
            contract_b: of_g(batch, rest_a.len()),
            batch_b: batch_g,
        };
        let contribution = site.graph.emit_one(op, &[a, g])?;
        // Batch, then the axes that `a` contracted, in a's order, then the rest of `b`.
        let after = batch + contract_a.len();
        let axes = restore(batch, &rest_b, after, contract_b, contract_a, batch);
        Some(site.graph.emit_one(Op::Transpose { axes }, &[contribution])?)
    } else {
        None
    };
    Ok(Vjp::flows([to_a, to_b]))
}

/// The permutation that restores a factor's order of axes. Batch axes are in place, `rest` begins at
/// `rest_at`, and the contracted axes begin at `contract_at`, in the other factor's ascending order.
fn restore(
    batch: usize,
    rest: &[Axis],
    rest_at: usize,
    contract: &[Axis],
    partners: &[Axis],
    contract_at: usize,
) -> AxisList {
    let mut axes: SmallVec<[Axis; 6]> = (0..batch + rest.len() + contract.len()).map(Axis).collect();
    for (position, axis) in rest.iter().enumerate() {
        axes[axis.index()] = Axis(rest_at + position);
    }
    for (axis, partner) in contract.iter().zip(partners) {
        let position = partners.iter().filter(|other| *other < partner).count();
        axes[axis.index()] = Axis(contract_at + position);
    }
    axes
}
