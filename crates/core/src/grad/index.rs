//! Gradients of reads and writes at positions. `g` is the cotangent of the result.

use smallvec::SmallVec;

use super::region::{self, window};
use super::{Site, Vjp};
use crate::builder::Builder;
use crate::error::Result;
use crate::graph::Value;
use crate::op::{Op, ScatterOp, Starts};
use crate::shape::{Axis, AxisList, Shape, Sizes, TensorType};

/// Adds `g` at the positions that were read.
pub(super) fn gather(site: &mut Site<'_>, axes: &[Axis], g: Value) -> Result<Vjp> {
    let indices = site.input(1)?;
    let (x, index_shape) = (site.input_ty(0), site.graph.ty(indices).shape.clone());
    let entries = axes.len();
    let count = index_shape.sizes()[..index_shape.rank() - 1].iter().product();
    let rows = Op::Reshape { shape: Shape::new(&[count, entries]) };
    let indices = site.graph.emit_one(rows, &[indices])?;
    let rest = x.shape.axes().filter(|axis| !axes.contains(axis)).map(|axis| x.shape[axis]);
    let sizes: Vec<usize> = std::iter::once(count).chain(rest).collect();
    let dtype = site.graph.ty(g).dtype;
    let updates = site.graph.emit_one(Op::Reshape { shape: Shape::new(&sizes) }, &[g])?;
    let zeros = region::zeros(site.graph, &TensorType { dtype, shape: x.shape.without_names() })?;
    let op = Op::Scatter { op: ScatterOp::IndexedAdd, axes: axes.into() };
    let contribution = site.graph.emit_one(op, &[zeros, indices, updates])?;
    Ok(Vjp::flows([Some(contribution), None]))
}

/// The target gets `g`, with zeros where elements were replaced. Each update gets `g` from its position,
/// although of several updates of one position only one took effect.
pub(super) fn scatter(site: &mut Site<'_>, op: ScatterOp, axes: &[Axis], g: Value) -> Result<Vjp> {
    let indices = site.input(1)?;
    let shape = site.input_ty(2).shape.without_names();
    let axes: AxisList = axes.into();
    let dtype = site.graph.ty(g).dtype;
    let zeros = TensorType { dtype, shape };
    let x = site.input_ty(0).shape;
    let updates = if !site.needs_gradient(2) {
        None
    } else if axes.iter().any(|&axis| x[axis] == 0) {
        // Nothing can have been written.
        Some(region::zeros(site.graph, &zeros)?)
    } else {
        let gathered = site.graph.emit_one(Op::Gather { axes: axes.clone() }, &[g, indices])?;
        let lengths: Sizes = zeros.shape.sizes().into();
        let starts = Starts::Static(SmallVec::from_elem(0, lengths.len()));
        Some(window(site.graph, gathered, starts, &[], lengths)?)
    };
    let target = if site.needs_gradient(0) {
        Some(match op {
            ScatterOp::IndexedAdd => g,
            ScatterOp::IndexedPut => {
                let zeros = region::zeros(site.graph, &zeros)?;
                site.graph.emit_one(Op::Scatter { op, axes }, &[g, indices, zeros])?
            }
        })
    } else {
        None
    };
    Ok(Vjp::flows([target, None, updates]))
}
