//! Gradients of branches and of functions with a user's own rule.

use super::region::{self, Draft, Pullback};
use super::{Site, Vjp};
use crate::builder::Builder;
use crate::error::{ErrorKind, Result};
use crate::graph::{Graph, Value, Values};
use crate::op::{CondOp, CustomGradOp, CustomRules, MemorySpace, Op};
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

/// Applies the user's rule, or the transpose of the rule for forward mode, to the cotangents of the values; no gradient
/// flows into the values.
pub(super) fn custom_grad(site: &mut Site<'_>, op: &CustomGradOp, g: &[Option<Value>]) -> Result<Vjp> {
    let captures: Values = site.inputs[op.values + op.inputs..].into();
    let results = match &op.rules {
        CustomRules::Reverse(rule) | CustomRules::Both { reverse: rule, .. } => {
            apply_rule(site.graph, rule, g, &captures)?.into_iter().map(Some).collect()
        }
        CustomRules::Forward(rule) => {
            let hint = "its rule is not linear in the tangents, so that there is no reverse mode; differentiate forward, \
                        or give it a rule for each mode with custom_grad";
            transpose_rule(site.graph, rule, g, &captures, hint)?
        }
        CustomRules::Recompute { region, kept, offloaded } => {
            recomputed(site, op, region, (*kept, *offloaded), g)?
        }
    };
    let mut contributions = vec![None; site.inputs.len()];
    for (position, result) in results.into_iter().enumerate() {
        let Some(result) = result else { continue };
        let input = op.values + position;
        let contribution = region::nameless(site.graph, result)?;
        contributions[input] = Some(broadcast_to_input(site, contribution, input)?);
    }
    Ok(Vjp::flows(contributions))
}

/// The cotangents of the inputs of a region, from those of its results. Values inside of it are computed again from
/// inputs behind a barrier: they would be merged with those that are there, and keep their memory.
fn recomputed(
    site: &mut Site<'_>,
    op: &CustomGradOp,
    region: &Region,
    (kept, offloaded): (usize, usize),
    g: &[Option<Value>],
) -> Result<Vec<Option<Value>>> {
    let wrt: Vec<usize> = (0..op.inputs).filter(|&input| site.needs_gradient(op.values + input)).collect();
    let types: Vec<Option<TensorType>> =
        g.iter().map(|g| g.map(|value| site.graph.ty(value).clone())).collect();
    let pullback = Pullback::keeping(region, &wrt, &types, &vec![None; wrt.len()], kept)?;
    let mut arguments: Values = site.inputs[op.values..].into();
    arguments.extend(g.iter().copied().flatten());
    arguments.extend(site.outputs[op.values - kept..].iter().copied());
    let is_used = region::used_inputs(&pullback.region);
    let used: Vec<usize> = (0..arguments.len()).filter(|&input| is_used[input]).collect();
    let behind: Values = used.iter().map(|&input| arguments[input]).collect();
    for (&input, value) in used.iter().zip(site.graph.emit(Op::Barrier, &behind)?) {
        arguments[input] = value;
    }
    let on_host = arguments.len() - offloaded;
    for argument in &mut arguments[on_host..] {
        *argument = site.graph.emit_one(Op::Transfer { to: MemorySpace::Device }, &[*argument])?;
    }
    let mut gradients = region::inline(site.graph, &pullback.region, &arguments)?.into_iter();
    let mut found = vec![None; op.inputs];
    for (&input, &flows) in wrt.iter().zip(&pullback.flows) {
        found[input] = if flows { gradients.next() } else { None };
    }
    Ok(found)
}

/// A user's rule, applied to cotangents or tangents; those that are None are zero.
pub(crate) fn apply_rule(
    graph: &mut Graph,
    rule: &Region,
    given: &[Option<Value>],
    captures: &[Value],
) -> Result<Values> {
    let mut arguments: Vec<Value> = Vec::with_capacity(rule.inputs().len());
    for (given, ty) in given.iter().zip(rule.inputs()) {
        let value = match given {
            Some(value) => region::convert(graph, *value, ty.dtype)?,
            None => region::zeros(graph, ty)?,
        };
        arguments.push(graph.emit_one(Op::Reshape { shape: ty.shape.clone() }, &[value])?);
    }
    arguments.extend(captures);
    region::inline(graph, rule, &arguments)
}

/// The transpose of a user's rule, applied to one value for each of its results; those that are None are zero. It gives
/// one value for each parameter of the rule, None where that is zero.
///
/// # Errors
/// A rule that is not linear, with the hint.
pub(crate) fn transpose_rule(
    graph: &mut Graph,
    rule: &Region,
    given: &[Option<Value>],
    captures: &[Value],
    hint: &'static str,
) -> Result<Vec<Option<Value>>> {
    let (mut seeds, mut types) = (Values::new(), vec![None; rule.results().len()]);
    for (result, ty) in rule.result_types().enumerate() {
        let Some(value) = given[result] else { continue };
        // A rule may give one number for all elements.
        let value = region::unbroadcast(graph, value, ty.shape.sizes())?;
        types[result] = Some(graph.ty(value).clone());
        seeds.push(value);
    }
    let count = rule.parameter_count();
    let transpose = Pullback::new(rule, &(0..count).collect::<Vec<_>>(), &types, &vec![None; count])?;
    if region::used_inputs(&transpose.region)[..count].contains(&true) {
        return Err(ErrorKind::NoGradient { op: "custom_grad", hint }.into());
    }
    let mut operands = Values::new();
    for ty in &rule.inputs()[..count] {
        operands.push(region::zeros(graph, ty)?);
    }
    operands.extend(captures.iter().copied());
    operands.extend(seeds);
    let mut results = region::inline(graph, &transpose.region, &operands)?.into_iter();
    Ok(transpose.flows.iter().map(|&flows| if flows { results.next() } else { None }).collect())
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
