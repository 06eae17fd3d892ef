//! Tangents through branches and through values with a user's own rule. `t` are the tangents of the operands.

use super::{Control, Pushed, Tangents, materialized, push, tangent_type};
use crate::builder::Builder;
use crate::error::{ErrorKind, Result};
use crate::grad::Site;
use crate::grad::region::{self, Draft, Pullback};
use crate::graph::{Graph, Value, Values};
use crate::op::{CondOp, CustomGradOp, Op};
use crate::region::Region;
use crate::shape::TensorType;

/// A conditional on the same predicates whose branches compute the tangents beside the values.
pub(super) fn cond(
    graph: &mut Graph,
    op: &CondOp,
    inputs: &[Value],
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<(Values, Tangents)> {
    let (predicates, captures) = inputs.split_at(op.branches.len() - 1);
    let t = &t[predicates.len()..];
    let operands: Values = captures.iter().chain(t.iter().flatten()).copied().collect();
    let types: Vec<TensorType> = operands.iter().map(|&value| graph.ty(value).clone()).collect();
    let drafts = op.branches.iter().map(|branch| {
        let mut draft = Draft::new();
        let arguments: Vec<Value> = types.iter().map(|ty| draft.input(ty.clone())).collect();
        let (values, rest) = arguments.split_at(captures.len());
        let mut rest = rest.iter().copied();
        let tangents: Vec<Option<Value>> = t.iter().map(|t| t.and_then(|_| rest.next())).collect();
        let pushed = push(&mut draft.graph, branch, values, &tangents, varied, Control::Joint)?;
        Ok((draft, pushed))
    });
    let drafts: Vec<(Draft, Pushed)> = drafts.collect::<Result<_>>()?;
    // A result has a tangent if it has one in some branch.
    let flows: Vec<bool> = (0..varied.len())
        .map(|result| varied[result] && drafts.iter().any(|(_, pushed)| pushed.tangents[result].is_some()))
        .collect();
    let branches = drafts.into_iter().map(|(mut draft, pushed)| {
        let mut results = pushed.results.clone();
        for (result, _) in flows.iter().enumerate().filter(|(_, flows)| **flows) {
            let ty = tangent_type(draft.graph.ty(pushed.results[result]));
            results.push(materialized(&mut draft.graph, pushed.tangents[result], &ty)?);
        }
        draft.close(0, &results)
    });
    let branches: Vec<Region> = branches.collect::<Result<_>>()?;
    let mut outputs = region::cond(graph, predicates, &operands, &branches)?.into_iter();
    let values = outputs.by_ref().take(flows.len()).collect();
    Ok((values, flows.iter().map(|&flows| if flows { outputs.next() } else { None }).collect()))
}

/// The transpose of the user's rule, which maps cotangents of the values to cotangents of the inputs and must be linear.
pub(super) fn custom_grad(
    site: &mut Site<'_>,
    op: &CustomGradOp,
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<Tangents> {
    let (mut given, mut types) = (Values::new(), vec![None; op.rule.results().len()]);
    for (result, ty) in op.rule.result_types().enumerate() {
        let Some(tangent) = t[op.values + result] else { continue };
        // A rule may give one number for all elements of an input.
        let tangent = region::unbroadcast(site.graph, tangent, ty.shape.sizes())?;
        types[result] = Some(site.graph.ty(tangent).clone());
        given.push(tangent);
    }
    let wrt: Vec<usize> = (0..op.values).collect();
    let transpose = Pullback::new(&op.rule, &wrt, &types, &vec![None; wrt.len()])?;
    if region::used_inputs(&transpose.region)[..op.values].contains(&true) {
        let hint = "its rule is not linear in the cotangent, so that there is no forward mode; differentiate in reverse";
        return Err(ErrorKind::NoGradient { op: "custom_grad", hint }.into());
    }
    let mut operands = Values::new();
    for ty in &op.rule.inputs()[..op.values] {
        operands.push(region::zeros(site.graph, ty)?);
    }
    operands.extend(site.inputs[op.values + op.inputs..].iter().copied());
    operands.extend(given);
    let mut tangents = region::inline(site.graph, &transpose.region, &operands)?.into_iter();
    let mut found = Tangents::new();
    for (value, &flows) in transpose.flows.iter().enumerate() {
        let tangent = if flows { tangents.next() } else { None };
        let shape = site.output_ty(value).shape.without_names();
        let tangent = tangent.filter(|_| varied[value]);
        found.push(tangent.map(|t| site.graph.emit_one(Op::Reshape { shape }, &[t])).transpose()?);
    }
    Ok(found)
}
