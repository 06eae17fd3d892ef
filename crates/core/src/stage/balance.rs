//! Where to cut a chain of ops into stages of nearly equal work.

use crate::cost::cost;
use crate::region::Region;

/// How much more work than it must the heaviest stage may have, so that less travels: one part in so many.
const SLACK: u128 = 10;

/// After how many ops to cut for a number of stages, no more than there are ops.
///
/// The least work that the heaviest stage must have is sought by bisection, which needs one walk for each try: a
/// stage takes ops as long as they fit. With a little more than that there is a choice at most cuts; each is then
/// made where the fewest bytes cross it, and among equal ones nearest to where the work done is in proportion.
pub(super) fn balanced(region: &Region, ops: &[usize], stages: usize) -> Vec<usize> {
    let cost = cost(region);
    // The work of the first ops, by their number. One more for each, so that none is nothing.
    let mut done: Vec<u128> = vec![0];
    for &op in ops {
        done.push(done[done.len() - 1] + u128::from(cost.nodes[op].work()) + 1);
    }
    let limit = least_limit(&done, stages);
    let limit = limit + limit / SLACK;
    let rest = stages_from(&done, limit);
    let bytes = crossing(region, ops);

    let mut cuts = Vec::with_capacity(stages - 1);
    let mut start = 0;
    for cut in 1..stages {
        let left = stages - cut;
        let target = done[ops.len()] * cut as u128 / stages as u128;
        // What is left must fit into the stages that are left, with an op for each.
        let fits = |place: &usize| done[*place] - done[start] <= limit && rest[*place] <= left;
        let places = (start + 1..=ops.len() - left).filter(fits);
        let best = places.min_by_key(|&place| (bytes[place], done[place].abs_diff(target)));
        start = best.expect("a walk with this limit has a place here");
        cuts.push(start);
    }
    cuts
}

/// The least limit on a stage's work with which so many stages suffice.
fn least_limit(done: &[u128], stages: usize) -> u128 {
    let (mut low, mut high) = (0, done[done.len() - 1]);
    while low < high {
        let middle = low + (high - low) / 2;
        let fits = done.windows(2).all(|pair| pair[1] - pair[0] <= middle);
        if fits && stages_from(done, middle)[0] <= stages {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The least number of stages for the ops from each place on, no op having more work than the limit.
fn stages_from(done: &[u128], limit: u128) -> Vec<usize> {
    let end = done.len() - 1;
    let mut stages = vec![0; end + 1];
    let mut reach = end;
    for place in (0..end).rev() {
        while done[reach] - done[place] > limit {
            reach -= 1;
        }
        stages[place] = stages[reach] + 1;
    }
    stages
}

/// How many bytes cross a cut after so many ops.
fn crossing(region: &Region, ops: &[usize]) -> Vec<u128> {
    let graph = region.graph();
    let mut place_of = vec![None; graph.len()];
    for (place, &op) in ops.iter().enumerate() {
        place_of[op] = Some(place);
    }
    // For each value that an op makes, the place of its last use; results are used at the end.
    let mut last: Vec<Vec<usize>> = ops.iter().map(|&op| vec![0; graph.nodes()[op].outputs.len()]).collect();
    let mut used = |value: &crate::graph::Value, by: usize| {
        if let Some(place) = place_of[value.node as usize] {
            let last: &mut usize = &mut last[place][value.output as usize];
            *last = by.max(*last);
        }
    };
    for (place, &op) in ops.iter().enumerate() {
        graph.nodes()[op].inputs.iter().for_each(|value| used(value, place));
    }
    region.results().iter().for_each(|value| used(value, ops.len()));
    let (mut begins, mut ends) = (vec![0u128; ops.len() + 1], vec![0u128; ops.len() + 1]);
    for (place, &op) in ops.iter().enumerate() {
        for (ty, &last) in graph.nodes()[op].outputs.iter().zip(&last[place]) {
            if last > place {
                begins[place + 1] += ty.byte_size() as u128;
                ends[last] += ty.byte_size() as u128;
            }
        }
    }
    let mut alive = 0;
    let cross = |place: usize| {
        alive += begins[place];
        let here = alive;
        alive -= ends[place];
        here
    };
    (0..=ops.len()).map(cross).collect()
}
