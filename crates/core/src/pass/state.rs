//! State of loops that nobody needs: what a trip computes anew and only the trip itself reads, as Python's variables in the
//! body of a loop.

use std::sync::Arc;

use super::dce_owned;
use crate::error::Result;
use crate::graph::{Value, Values};
use crate::op::WhileOp;
use crate::region::Region;

/// For each part of the state whether somebody needs it: the values behind the loop of which that is said, the condition,
/// an effect, or the next value of a part that is needed.
pub(super) fn needed(op: &WhileOp, is_used: &[bool]) -> Vec<bool> {
    let mut needed = is_used.to_vec();
    mark_parameters(&op.cond, op.cond.results(), &mut needed);
    loop {
        let before = needed.clone();
        let results = op.body.results().iter().zip(&before).filter(|(_, is_needed)| **is_needed);
        let results: Values = results.map(|(value, _)| *value).collect();
        mark_parameters(&op.body, &results, &mut needed);
        if needed == before {
            return needed;
        }
    }
}

/// Marks the state that values of a region need, and its effects.
fn mark_parameters(region: &Region, values: &[Value], needed: &mut [bool]) {
    let found = region.graph().needed_inputs(values, region.inputs().len());
    needed.iter_mut().zip(found).for_each(|(is_needed, more)| *is_needed |= more);
}

/// The loop with only the state that is needed.
///
/// # Errors
/// When memory does not suffice.
pub(super) fn without_others(op: &WhileOp, needed: &[bool]) -> Result<WhileOp> {
    let count = needed.iter().filter(|is_needed| **is_needed).count();
    let is_kept = |at: usize| needed.get(at).copied().unwrap_or(true);
    let kept = |region: &Region, results: Values| -> Result<Arc<Region>> {
        let (graph, inputs, parameters, _) = region.clone().into_parts();
        // The parameters that are not needed go with what used them.
        let region = dce_owned(Region::new(graph, inputs, parameters, results))?;
        let (mut graph, inputs, _, results) = region.into_parts();
        graph.renumber_parameters(|index| (0..index).filter(|&at| is_kept(at)).count());
        let inputs =
            inputs.into_iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(_, ty)| ty).collect();
        Ok(Arc::new(Region::new(graph, inputs, count, results)))
    };
    let results = op.body.results().iter().zip(needed).filter(|(_, is_needed)| **is_needed);
    let body = kept(&op.body, results.map(|(value, _)| *value).collect())?;
    Ok(WhileOp {
        state: count,
        cond: kept(&op.cond, op.cond.results().clone())?,
        body,
        trips: op.trips,
        snapshots: op.snapshots,
    })
}
