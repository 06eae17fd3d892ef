//! Gradients of values that a condition defines, by the implicit function theorem.
//!
//! For `F(x, c) = 0`, `dx = -(dF/dx)^-1 dF/dc dc`. The transpose maps a cotangent `g` of `x` to `-(dF/dc)^T u`, where
//! `(dF/dx)^T u = g`. The solution `u` is implicit again, so that it has derivatives of its own.

use std::sync::Arc;

use super::{Site, Vjp, cotangent_type, region, vjp_region};
use crate::builder::BuildElementwise;
use crate::error::Result;
use crate::graph::{Value, Values};
use crate::op::ImplicitOp;
use crate::region::Region;
use crate::shape::TensorType;
use crate::solvers::{solve_derivative, with_inputs};

/// The solution of the transposed linear system, and what it contributes to the captures.
pub(super) fn implicit(site: &mut Site<'_>, op: &ImplicitOp, g: &[Option<Value>]) -> Result<Vjp> {
    let outputs = site.outputs.clone();
    let captures: Values = site.inputs[op.values..].into();
    let given: Values = outputs.iter().chain(&captures).copied().collect();
    let types: Vec<TensorType> = outputs.iter().map(|&x| cotangent_type(site.graph.ty(x))).collect();
    let mut rhs = Values::new();
    for (g, ty) in g.iter().zip(&types) {
        rhs.push(match g {
            Some(g) => region::convert(site.graph, *g, ty.dtype)?,
            None => region::zeros(site.graph, ty)?,
        });
    }
    let found = solve_derivative(site.graph, op, &rhs, &given, |region| transposed(op, region, &types))?;

    let wrt: Vec<usize> =
        (op.values..site.inputs.len()).filter(|&input| site.needs_gradient(input)).collect();
    let pullback = vjp_region(&op.condition, &wrt)?;
    let mut arguments = given;
    for u in found {
        arguments.push(site.graph.negate(u)?);
    }
    let gradients = region::inline(site.graph, &pullback, &arguments)?;
    let mut contributions = vec![None; site.inputs.len()];
    for (&input, gradient) in wrt.iter().zip(gradients) {
        contributions[input] = Some(region::nameless(site.graph, gradient)?);
    }
    Ok(Vjp::flows(contributions))
}

/// The region from cotangents, then the values and captures, to the product with the transposed Jacobian of a region by its
/// parameters.
fn transposed(op: &ImplicitOp, region: &Region, cotangents: &[TensorType]) -> Result<Arc<Region>> {
    let wrt: Vec<usize> = (0..op.values).collect();
    let pullback = vjp_region(region, &wrt)?;
    let types: Vec<TensorType> = cotangents.iter().chain(region.inputs()).cloned().collect();
    with_inputs(&types, op.values, |graph, inputs| {
        let (cotangents, given) = inputs.split_at(op.values);
        region::inline(graph, &pullback, &given.iter().chain(cotangents).copied().collect::<Vec<_>>())
    })
}
