//! Sets of branches, of values with a user's own gradient rule, and of host functions.

use smallvec::smallvec;

use super::known::deciding_inputs;
use super::sets::{EMPTY, Id, Sets};
use super::{Analysis, Dependence, Dependences, Input, Site, axes};
use crate::error::Result;
use crate::op::{CondOp, CustomGradOp};
use crate::region::Region;

/// The union of the branches, up to one of which it is known that it runs.
pub(super) fn cond(site: &mut Site<'_, '_, '_>, op: &CondOp, useful: &[bool]) -> Result<Dependences> {
    let predicates = op.branches.len() - 1;
    let mut found: Dependences = smallvec![None; useful.len()];
    for (position, branch) in op.branches.iter().enumerate() {
        let runs = match position < predicates {
            true => site.value(position).map(|known| known.truths()).transpose()?.map(|truths| truths[0]),
            false => None,
        };
        if runs == Some(false) {
            continue;
        }
        let decides = deciding_inputs(branch, &[]);
        let captures = predicates..site.inputs.len();
        let inputs: Vec<Input> =
            captures.zip(decides).map(|(input, decides)| site.entering(input, decides)).collect();
        let (results, _) = site.analysis.region(branch, inputs, useful)?;
        found
            .iter_mut()
            .zip(&results)
            .for_each(|(found, result)| merge(&mut site.analysis.sets, found, result));
        if runs == Some(true) {
            break;
        }
    }
    Ok(found)
}

/// Adds the sets of a value to those of another one of the same type.
pub(super) fn merge(sets: &mut Sets, found: &mut Dependence, more: &Dependence) {
    let Some(more) = more else { return };
    match found {
        Some(known) if known == more => {}
        Some(known) => {
            let mut union = known.to_vec();
            axes::unite(sets, &mut union, more);
            *found = Some(union.into());
        }
        None => *found = Some(more.clone()),
    }
}

/// The values depend on the inputs as the rules for their derivatives say, in either mode.
pub(super) fn custom_grad(site: &mut Site<'_, '_, '_>, op: &CustomGradOp) -> Result<Dependences> {
    if let Some(region) = op.rules.recomputed() {
        let decides = deciding_inputs(region, &[]);
        let inputs = decides.iter().enumerate();
        let inputs = inputs.map(|(input, &decides)| site.entering(op.values + input, decides)).collect();
        return Ok(site.analysis.region(region, inputs, &vec![true; op.values])?.0.into_iter().collect());
    }
    let mut found: Dependences = smallvec![None; op.values];
    let forward = op.rules.forward().map(|rule| pushed(site, op, rule)).transpose()?;
    let reverse = op.rules.reverse().map(|rule| pulled(site, op, rule)).transpose()?;
    for values in forward.into_iter().chain(reverse) {
        found.iter_mut().zip(&values).for_each(|(found, value)| merge(&mut site.analysis.sets, found, value));
    }
    Ok(found)
}

/// The captures of a node with a user's rules, for the rule that takes so many parameters.
fn captures(site: &mut Site<'_, '_, '_>, op: &CustomGradOp, rule: &Region) -> Vec<Input> {
    let decides = deciding_inputs(rule, &[]);
    let captures = (op.values + op.inputs..site.inputs.len()).zip(&decides[rule.parameter_count()..]);
    captures.map(|(input, &decides)| Input { sets: None, ..site.entering(input, decides) }).collect()
}

/// The sets of the values by a rule for forward mode: those of the tangents that it computes.
fn pushed(site: &mut Site<'_, '_, '_>, op: &CustomGradOp, rule: &Region) -> Result<Dependences> {
    let tangents = (op.values..op.values + op.inputs).map(|input| site.inputs[input].clone());
    let mut given: Vec<Input> = tangents.map(|sets| Input { sets, known: None }).collect();
    given.extend(captures(site, op, rule));
    let (results, _) = site.analysis.region(rule, given, &vec![true; op.values])?;
    let types = rule.result_types().map(|ty| ty.shape.sizes());
    let values = results.into_iter().zip(types).enumerate();
    // A rule may give one number for all elements of a value.
    let whole = |(value, (sets, sizes)): (usize, (Dependence, &[usize]))| {
        sets.map(|sets| axes::broadcast(&sets, sizes, site.output_sizes(value)).into())
    };
    Ok(values.map(whole).collect())
}

/// The sets of the values by a rule for reverse mode, whose pattern is the transpose.
fn pulled(site: &mut Site<'_, '_, '_>, op: &CustomGradOp, rule: &Region) -> Result<Dependences> {
    let mut given: Vec<Input> = Vec::with_capacity(rule.inputs().len());
    let mut columns = 0;
    for ty in rule.parameters() {
        let cotangents = (columns..columns + ty.size()).map(|column| Sets::single(column as u32));
        given.push(Input { sets: Some(cotangents.collect()), known: None });
        columns += ty.size();
    }
    given.extend(captures(site, op, rule));
    let useful: Vec<bool> = (0..op.inputs).map(|input| site.inputs[op.values + input].is_some()).collect();
    let sets = Sets::new(columns as u32);
    let mut reverse = Analysis { sets, evaluate: site.analysis.evaluate, read: Vec::new() };
    let (pulled, _) = reverse.region(rule, given, &useful)?;
    site.analysis.read.append(&mut reverse.read);

    // For each element of the values, the sets of the elements of the inputs whose cotangents depend on its own.
    let mut reached: Vec<Vec<Id>> = vec![Vec::new(); columns];
    for ((input, pulled), ty) in pulled.iter().enumerate().zip(rule.result_types()) {
        let (Some(from), Some(pulled)) = (&site.inputs[op.values + input], pulled) else { continue };
        // A rule may give one number for all elements of an input.
        let pulled = axes::broadcast(pulled, ty.shape.sizes(), site.input_sizes(op.values + input));
        for (&set, &cotangents) in from.iter().zip(&pulled) {
            for (begin, end) in reverse.sets.ranges(cotangents) {
                reached[begin as usize..end as usize].iter_mut().for_each(|sets| sets.push(set));
            }
        }
    }
    let mut reached = reached.into_iter().map(|sets| site.analysis.sets.union_all(sets));
    Ok(rule.parameters().iter().map(|ty| Some(reached.by_ref().take(ty.size()).collect())).collect())
}

/// Each output may depend on all that the inputs from `first` on depend on: what a host function returns on all that it
/// receives, values that a condition defines on all that it captures.
pub(super) fn everything(site: &mut Site<'_, '_, '_>, first: usize) -> Dependences {
    let all = site.union_of(first..site.inputs.len());
    let output = |output| {
        let size: usize = site.output_sizes(output).iter().product();
        (all != EMPTY).then(|| vec![all; size].into())
    };
    (0..site.node.outputs.len()).map(output).collect()
}
