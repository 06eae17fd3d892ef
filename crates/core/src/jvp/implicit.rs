//! Tangents of values that a condition defines, by the implicit function theorem: see
//! [`grad`](crate::grad).

use std::sync::Arc;

use super::{Tangents, jvp_region, tangent_type};
use crate::builder::BuildElementwise;
use crate::dtype::DType;
use crate::error::Result;
use crate::grad::Site;
use crate::grad::region;
use crate::graph::{Value, Values};
use crate::op::ImplicitOp;
use crate::region::Region;
use crate::shape::TensorType;
use crate::solvers::{solve_derivative, with_inputs};

/// For `F(x, c) = 0`, the solution of `dF/dx t = -dF/dc dc`.
pub(super) fn implicit(site: &mut Site<'_>, op: &ImplicitOp, t: &[Option<Value>]) -> Result<Tangents> {
    let outputs = site.outputs.clone();
    let captures: Values = site.inputs[op.values..].into();
    let given: Values = outputs.iter().chain(&captures).copied().collect();
    let types: Vec<TensorType> = outputs.iter().map(|&x| unknown_type(site.graph.ty(x))).collect();

    let wrt: Vec<usize> = (op.values..site.inputs.len()).filter(|&input| t[input].is_some()).collect();
    let all: Vec<usize> = (0..op.values).collect();
    let push = jvp_region(&op.condition, &wrt, &all)?;
    let mut arguments = given.clone();
    for (&input, ty) in wrt.iter().zip(&push.inputs()[given.len()..]) {
        let tangent = t[input].expect("an input with a tangent");
        arguments.push(region::convert(site.graph, tangent, ty.dtype)?);
    }
    let moved = region::inline(site.graph, &push, &arguments)?;
    let mut rhs = Values::new();
    for (&moved, ty) in moved[op.values..].iter().zip(&types) {
        let moved = region::convert(site.graph, moved, ty.dtype)?;
        rhs.push(site.graph.negate(moved)?);
    }
    let found = solve_derivative(site.graph, op, &rhs, &given, |region| linearized(op, region, &types))?;
    Ok(found.into_iter().map(Some).collect())
}

/// The type of an unknown tangent: small floats would lose too much of it.
fn unknown_type(ty: &TensorType) -> TensorType {
    let tangent = tangent_type(ty);
    TensorType { dtype: DType::F32.merge(tangent.dtype), shape: tangent.shape }
}

/// The region from tangents, then the values and captures, to the product with the Jacobian of a region by its parameters.
fn linearized(op: &ImplicitOp, region: &Region, tangents: &[TensorType]) -> Result<Arc<Region>> {
    let all: Vec<usize> = (0..op.values).collect();
    let push = jvp_region(region, &all, &all)?;
    let types: Vec<TensorType> = tangents.iter().chain(region.inputs()).cloned().collect();
    with_inputs(&types, op.values, |graph, inputs| {
        let (tangents, given) = inputs.split_at(op.values);
        let mut arguments = given.to_vec();
        for (&tangent, ty) in tangents.iter().zip(&push.inputs()[given.len()..]) {
            arguments.push(region::convert(graph, tangent, ty.dtype)?);
        }
        let results = region::inline(graph, &push, &arguments)?;
        Ok(results[op.values..].into())
    })
}
