//! Gradients of branches and of functions with a user's own rule.

use super::region::{self, Draft, Pullback};
use super::{Site, Vjp};
use crate::builder::Builder;
use crate::error::{ErrorKind, Result};
use crate::graph::{Value, Values};
use crate::op::{CondOp, CustomGradOp, Op};
use crate::region::Region;
use crate::shape::{AxisList, TensorType};

/// A new conditional on the same predicates. Each new branch computes the gradients of the captures through
/// the branch at its position, and zeros where that branch does not depend on a capture.
pub(super) fn cond(site: &mut Site<'_>, op: &CondOp, g: &[Option<Value>]) -> Result<Vjp> {
    let predicates: Values = site.inputs[..op.branches.len() - 1].into();
    let mut captures: Values = site.inputs[predicates.len()..].into();
    let count = captures.len();
    let wrt: Vec<usize> =
        (0..count).filter(|&capture| site.needs_gradient(predicates.len() + capture)).collect();
    let cotangents: Vec<Option<TensorType>> =
        g.iter().map(|g| g.map(|value| site.graph.ty(value).clone())).collect();
    captures.extend(g.iter().copied().flatten());
    let types: Vec<TensorType> = captures.iter().map(|&value| site.graph.ty(value).clone()).collect();

    let seeds = vec![None; wrt.len()];
    let pullbacks = op
        .branches
        .iter()
        .map(|branch| Pullback::new(branch, &wrt, &cotangents, &seeds))
        .collect::<Result<Vec<_>>>()?;
    let gradients: Vec<Option<TensorType>> =
        wrt.iter().enumerate().map(|(position, _)| common_type(&pullbacks, position)).collect();
    if gradients.iter().all(Option::is_none) {
        return Ok(Vjp::Zero);
    }
    let branches = pullbacks
        .iter()
        .map(|pullback| branch(pullback, &types, &gradients))
        .collect::<Result<Vec<Region>>>()?;
    let mut results = region::cond(site.graph, &predicates, &captures, &branches)?.into_iter();
    let mut contributions = vec![None; site.inputs.len()];
    for (&capture, gradient) in wrt.iter().zip(&gradients) {
        if gradient.is_some() {
            contributions[predicates.len() + capture] = results.next();
        }
    }
    Ok(Vjp::flows(contributions))
}

/// The common type of a variable's gradients from all branches; None if no branch has one.
fn common_type(pullbacks: &[Pullback], variable: usize) -> Option<TensorType> {
    let mut common: Option<TensorType> = None;
    for pullback in pullbacks.iter().filter(|pullback| pullback.flows[variable]) {
        let result = pullback.flows[..variable].iter().filter(|flows| **flows).count();
        let here = pullback.region.result_types().nth(result).expect("a result for each gradient");
        let dtype = common.map_or(here.dtype, |common| common.dtype.merge(here.dtype));
        common = Some(TensorType { dtype, shape: here.shape.clone() });
    }
    common
}

/// A branch that returns every gradient of `gradients`.
fn branch(pullback: &Pullback, inputs: &[TensorType], gradients: &[Option<TensorType>]) -> Result<Region> {
    let mut draft = Draft::new();
    let arguments: Vec<Value> = inputs.iter().map(|ty| draft.input(ty.clone())).collect();
    let graph = &mut draft.graph;
    let mut flowing = region::inline(graph, &pullback.region, &arguments)?.into_iter();
    let mut results = Values::new();
    for (&flows, ty) in pullback.flows.iter().zip(gradients) {
        let gradient = if flows { flowing.next() } else { None };
        let Some(ty) = ty else { continue };
        results.push(match gradient {
            Some(gradient) => region::convert(graph, gradient, ty.dtype)?,
            None => region::zeros(graph, ty)?,
        });
    }
    draft.close(0, &results)
}

/// Applies the user's rule to the cotangents of the values; no gradient flows into the values.
pub(super) fn custom_grad(site: &mut Site<'_>, op: &CustomGradOp, g: &[Option<Value>]) -> Result<Vjp> {
    let mut arguments: Vec<Value> = Vec::with_capacity(op.rule.inputs().len());
    for (g, ty) in g.iter().zip(op.rule.inputs()) {
        let value = match g {
            Some(value) => region::convert(site.graph, *value, ty.dtype)?,
            None => region::zeros(site.graph, ty)?,
        };
        let shape = ty.shape.clone();
        arguments.push(site.graph.emit_one(Op::Reshape { shape }, &[value])?);
    }
    arguments.extend(&site.inputs[op.values + op.inputs..]);
    let results = region::inline(site.graph, &op.rule, &arguments)?;
    let mut contributions = vec![None; site.inputs.len()];
    for (position, result) in results.into_iter().enumerate() {
        let input = op.values + position;
        let contribution = region::nameless(site.graph, result)?;
        contributions[input] = Some(broadcast_to_input(site, contribution, input)?);
    }
    Ok(Vjp::flows(contributions))
}

/// A gradient from the user's rule, broadcast to the sizes of its input.
fn broadcast_to_input(site: &mut Site<'_>, contribution: Value, input: usize) -> Result<Value> {
    let (got, expected) = (site.graph.ty(contribution).clone(), site.input_ty(input));
    let shape = expected.shape.without_names();
    if got.shape == shape {
        return Ok(contribution);
    }
    let fits = got.shape.broadcast_with("custom_grad", &shape).is_ok_and(|both| both == shape);
    if !fits {
        return Err(ErrorKind::ShapesDiffer { op: "custom_grad", left: got, right: expected }.into());
    }
    let added = shape.rank() - got.shape.rank();
    let axes: AxisList = shape.axes().skip(added).collect();
    site.graph.emit_one(Op::Broadcast { shape, axes }, &[contribution])
}
