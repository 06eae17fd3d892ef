//! Sets of loops. Where the number of trips is known, they are followed one by one, so that a scan depends on the elements
//! that it reads at each. Otherwise the sets grow until a trip adds nothing.

use super::control::merge;
use super::known::{Known, KnownValues, deciding_state};
use super::sets::Id;
use super::{Dependence, Dependences, Input, Site};
use crate::error::Result;
use crate::grad::loops as reverse;
use crate::op::WhileOp;
use crate::region::Region;

/// Trips are followed one by one while the values that they computed have no more elements together. Beyond, it would take
/// longer than the loop.
const FOLLOWED_ELEMENTS: usize = 1 << 28;

/// The number of trips after which sets that still grow are replaced by their union.
const GROWING_TRIPS: usize = 64;

/// `(state, captures)`: the state after any number of trips.
pub(super) fn while_(site: &mut Site<'_, '_, '_>, op: &WhileOp, useful: &[bool]) -> Result<Dependences> {
    let decides = deciding_state(op);
    let inputs: Vec<Input> =
        (0..site.inputs.len()).map(|input| site.entering(input, decides[input])).collect();
    // A leaf of the state matters where a result does, or any other leaf: it may reach a result later.
    let useful = if useful.contains(&true) { vec![true; op.state] } else { useful.to_vec() };
    let mut found = match follow(site, op, inputs.clone(), &useful)? {
        Some(state) => state,
        None => grow(site, op, inputs, &useful)?,
    };
    found.truncate(op.state);
    Ok(found.into_iter().collect())
}

/// The number of elements that a trip computes, and some for each node.
fn elements(region: &Region) -> usize {
    let of = |node: &crate::graph::Node| -> usize {
        let outputs: usize = node.outputs.iter().map(|ty| ty.size()).sum();
        let inner: usize = node.op.regions().iter().map(|region| elements(region)).sum();
        outputs + inner + 64
    };
    region.graph().nodes().iter().map(of).sum()
}

/// The state after the last trip, if it is known which trip that is.
fn follow(
    site: &mut Site<'_, '_, '_>,
    op: &WhileOp,
    mut inputs: Vec<Input>,
    useful: &[bool],
) -> Result<Option<Vec<Dependence>>> {
    let constant = reverse::invariants(op);
    let most = FOLLOWED_ELEMENTS / elements(&op.body).max(1);
    if op.trips.is_some_and(|trips| trips > most as u64) {
        return Ok(None);
    }
    for trip in 0_usize.. {
        let goes_on = match op.trips {
            Some(trips) => (trip as u64) < trips,
            None => match predicate(site, op, &inputs)? {
                Some(goes_on) if trip < most => goes_on,
                Some(_) | None => return Ok(None),
            },
        };
        if !goes_on {
            break;
        }
        let (next, mut known) = site.analysis.region(&op.body, inputs.clone(), useful)?;
        // Known values that may differ at the next trip, such as a counter.
        let changes = |leaf: usize| inputs[leaf].known.is_some() && !constant.contains(&leaf);
        let is_same = next.iter().zip(&inputs).all(|(next, input)| *next == input.sets);
        if is_same && !(0..op.state).any(changes) {
            break;
        }
        let later: Vec<Option<Known>> = (0..op.state)
            .map(|leaf| match changes(leaf) {
                true => known.get(site.analysis.evaluate, op.body.results()[leaf]),
                false => inputs[leaf].known.clone(),
            })
            .collect();
        for (input, (sets, known)) in inputs.iter_mut().zip(next.into_iter().zip(later)) {
            *input = Input { sets, known };
        }
    }
    Ok(Some(inputs.into_iter().map(|input| input.sets).collect()))
}

/// Whether a loop goes on, where that is known.
fn predicate(site: &mut Site<'_, '_, '_>, op: &WhileOp, inputs: &[Input]) -> Result<Option<bool>> {
    let mut known = KnownValues::new(&op.cond, inputs.iter().map(|input| input.known.clone()).collect());
    let Some(predicate) = known.get(site.analysis.evaluate, op.cond.results()[0]) else { return Ok(None) };
    site.analysis.read.extend(predicate.inputs.iter().copied());
    Ok(Some(predicate.truths()?[0]))
}

/// The union of the states after all numbers of trips: the least sets to which another trip adds nothing.
fn grow(
    site: &mut Site<'_, '_, '_>,
    op: &WhileOp,
    mut inputs: Vec<Input>,
    useful: &[bool],
) -> Result<Vec<Dependence>> {
    let constant = reverse::invariants(op);
    for (leaf, input) in inputs[..op.state].iter_mut().enumerate() {
        input.known = input.known.take().filter(|_| constant.contains(&leaf));
    }
    for trip in 0_usize.. {
        let (next, _) = site.analysis.region(&op.body, inputs.clone(), useful)?;
        let mut growing = Vec::new();
        for (leaf, next) in next.iter().enumerate() {
            let before = inputs[leaf].sets.clone();
            merge(&mut site.analysis.sets, &mut inputs[leaf].sets, next);
            if inputs[leaf].sets != before {
                growing.push(leaf);
            }
        }
        if growing.is_empty() {
            break;
        }
        if trip < GROWING_TRIPS {
            continue;
        }
        // A set may grow by one column at each trip.
        let elements: Vec<Id> = growing
            .iter()
            .filter_map(|&leaf| inputs[leaf].sets.as_ref())
            .flat_map(|sets| sets.iter().copied())
            .collect();
        let union = site.analysis.sets.union_all(elements);
        for leaf in growing {
            let size = site.input_sizes(leaf).iter().product();
            inputs[leaf].sets = Some(vec![union; size].into());
        }
    }
    Ok(inputs.into_iter().map(|input| input.sets).collect())
}
