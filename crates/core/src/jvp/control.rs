//! Tangents through branches and through values with a user's own rule. `t` are the tangents of the operands.

use super::{Control, Pushed, Tangents, materialized, push, tangent_type};
use crate::error::Result;
use crate::grad::Site;
use crate::grad::control::{apply_rule, transpose_rule};
use crate::grad::region::{self, Draft};
use crate::graph::{Graph, Value, Values};
use crate::op::{CondOp, CustomGradOp, CustomRules};
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

/// Applies the user's rule, or the transpose of the rule for reverse mode, to the tangents of the inputs.
pub(super) fn custom_grad(
    site: &mut Site<'_>,
    op: &CustomGradOp,
    t: &[Option<Value>],
    varied: &[bool],
) -> Result<Tangents> {
    let captures: Values = site.inputs[op.values + op.inputs..].into();
    let t = &t[op.values..op.values + op.inputs];
    let tangents = match &op.rules {
        CustomRules::Forward(rule) | CustomRules::Both { forward: rule, .. } => {
            apply_rule(site.graph, rule, t, &captures)?.into_iter().map(Some).collect()
        }
        CustomRules::Reverse(rule) => {
            let hint = "its rule is not linear in the cotangent, so that there is no forward mode; differentiate in \
                        reverse, or give it a rule for each mode";
            transpose_rule(site.graph, rule, t, &captures, hint)?
        }
        CustomRules::Recompute { region, .. } => {
            let inputs: Values = site.inputs[op.values..].into();
            let region = region::without_hook_calls(region)?;
            push(site.graph, &region, &inputs, t, varied, Control::Joint)?.tangents.into_vec()
        }
    };
    let mut found = Tangents::new();
    for (value, tangent) in tangents.into_iter().enumerate() {
        let tangent = tangent.filter(|_| varied[value]);
        found.push(tangent.map(|tangent| region::nameless(site.graph, tangent)).transpose()?);
    }
    Ok(found)
}
