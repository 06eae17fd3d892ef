//! Writes what would be ops by themselves as element-wise ones, for compilers that fuse those.
//!
//! The values keep their bits. What is written so costs no more than before, and nothing that only moves elements lies
//! between it and what is fused with it:
//!
//! * Additions of one element to each row of zeros become a comparison of positions (`one_hot`).
//! * Identity matrices become comparisons of positions (`eye`).
//! * Products with vectors become sums of products (`products`).
//! * Reductions of small windows become slices that are joined (`windows`).
//! * Folds by functions become loops.
//! * Slices of what is computed become computations of slices (`slices`).

mod eye;
mod one_hot;
mod products;
mod slices;
mod windows;

use std::sync::Arc;

use super::{dce_owned, finish, rebuild};
use crate::compose::fold;
use crate::error::Result;
use crate::graph::{Graph, Node, Value, Values};
use crate::op::{Op, Starts};
use crate::region::Region;
use crate::shape::{Shape, Sizes, TensorType};

/// Results of fewer elements are left as they are: a step more takes no longer than many small ops.
const FEW: usize = 1 << 10;

/// Writes ops as element-wise ones where that costs no more. Nested regions stay as they are.
///
/// # Errors
/// None is known; the signature is that of all passes.
///
/// # Panics
/// When verification is on and the pass has built an illegal region.
pub fn by_elements(region: &Arc<Region>) -> Result<Arc<Region>> {
    let mut has_changed = false;
    let nodes = region.graph().nodes();
    let mut new = None;
    let may_be_written = |node: &Node| {
        let (Op::Scatter { .. } | Op::Window { .. } | Op::Eye { .. } | Op::Fold(_)) = node.op else {
            return products::vector_sizes(region.graph(), node, &node.inputs).is_some();
        };
        true
    };
    if nodes.iter().any(may_be_written) {
        let identities = eye::read_by_elements(region);
        let rebuilt = rebuild(region, |graph, position, node, inputs| {
            let written = if identities.contains(&position) {
                eye::written(graph, node)?
            } else if let Some(written) = one_hot::written(graph, node, &inputs)? {
                Some(written)
            } else if let Op::Fold(op) = &node.op {
                Some(fold::fold(graph, op, &inputs)?)
            } else if let Some(written) = products::written(graph, node, &inputs)? {
                Some(written)
            } else {
                windows::written(graph, node, &inputs)?
            };
            has_changed |= written.is_some();
            match written {
                Some(value) => Ok(std::iter::once(value).collect()),
                None => graph.push_typed(node.op.clone(), inputs, node.outputs.clone()),
            }
        })?;
        if has_changed {
            new = Some(finish("by_elements", region, rebuilt));
        }
    }
    let moved = slices::moved(new.as_ref().unwrap_or(region))?;
    Ok(match moved.or(new) {
        Some(new) => Arc::new(dce_owned(new)?),
        None => region.clone(),
    })
}

/// Adds an op, and gives its result.
fn push(graph: &mut Graph, op: Op, inputs: &[Value]) -> Result<Value> {
    Ok(graph.push(op, inputs)?[0])
}

/// A static slice as an op.
fn slice(graph: &mut Graph, x: Value, cut: &Cut) -> Result<Value> {
    let Cut { starts, lengths, strides } = cut.clone();
    push(graph, Op::Slice { starts: Starts::Static(starts), lengths, strides }, &[x])
}

/// What a static slice selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cut {
    starts: Sizes,
    lengths: Sizes,
    strides: Sizes,
}

impl Cut {
    /// What a node selects, if it is a static slice.
    fn of(node: &Node) -> Option<Cut> {
        let Op::Slice { starts: Starts::Static(starts), lengths, strides } = &node.op else { return None };
        Some(Cut { starts: starts.clone(), lengths: lengths.clone(), strides: strides.clone() })
    }

    fn size(&self) -> usize {
        self.lengths.iter().zip(&self.strides).map(|(length, stride)| length.div_ceil(*stride)).product()
    }
}

/// A value in a shape of as many elements.
fn shaped(graph: &mut Graph, value: Value, shape: &Shape) -> Result<Value> {
    if graph.ty(value).shape == *shape {
        return Ok(value);
    }
    push(graph, Op::Reshape { shape: shape.clone() }, &[value])
}

/// The value with a type that differs from its own in names only.
fn named(graph: &mut Graph, value: Value, ty: &TensorType) -> Result<Value> {
    let value = shaped(graph, value, &ty.shape)?;
    debug_assert_eq!(graph.ty(value), ty);
    Ok(value)
}

/// For each node those that take its values.
fn users(region: &Region) -> Vec<Vec<u32>> {
    let nodes = region.graph().nodes();
    let mut users = vec![Vec::new(); nodes.len()];
    for (position, node) in nodes.iter().enumerate() {
        for input in &node.inputs {
            users[input.node as usize].push(position as u32);
        }
    }
    users
}

/// As a list of values.
fn one(value: Value) -> Values {
    std::iter::once(value).collect()
}
