//! Cuts a chain of ops into stages of nearly equal work.

use crate::cost::cost;
use crate::region::Region;

/// The heaviest stage may exceed its least possible work by this fraction (one in `SLACK`), to reduce the
/// traffic between stages.
const SLACK: u128 = 10;

/// The cuts for a number of stages, as numbers of ops before each cut; there are at least as many ops as
/// stages.
///
/// Bisection finds the least possible work of the heaviest stage. Each try takes one greedy walk: a stage
/// takes ops as long as they fit. A slightly larger limit leaves a choice at most cuts. Each cut is then made
/// where the fewest bytes cross it; among equal ones, where the work so far is closest to its proportional
/// share.
pub(super) fn balanced(region: &Region, ops: &[usize], stages: usize) -> Vec<usize> {
    let cost = cost(region);
    // The cumulative work by number of ops. One more for each op, so that none has zero work.
    let mut cumulative: Vec<u128> = vec![0];
    for &op in ops {
        cumulative.push(cumulative[cumulative.len() - 1] + u128::from(cost.nodes[op].work()) + 1);
    }
    choose(&cumulative, &crossing(region, ops), stages)
}

/// The cuts, from the cumulative work and the bytes that cross a cut, both by the number of ops before it.
fn choose(cumulative: &[u128], bytes: &[u128], stages: usize) -> Vec<usize> {
    let ops = cumulative.len() - 1;
    let least = least_limit(cumulative, stages);
    let limit = least + least / SLACK;
    let needed = stages_from(cumulative, limit);
    let mut cuts = Vec::with_capacity(stages - 1);
    let mut start = 0;
    for cut in 1..stages {
        let remaining = stages - cut;
        let target = cumulative[ops] * cut as u128 / stages as u128;
        // The remaining ops must fit into the remaining stages, with at least one op each.
        let candidates = (start + 1..=ops - remaining)
            .take_while(|&position| cumulative[position] - cumulative[start] <= limit);
        let best = candidates
            .filter(|&position| needed[position] <= remaining)
            .min_by_key(|&position| (bytes[position], cumulative[position].abs_diff(target)));
        start = best.expect("a walk with this limit has a position here");
        cuts.push(start);
    }
    cuts
}

/// The least limit on a stage's work with which `stages` stages are enough.
fn least_limit(cumulative: &[u128], stages: usize) -> u128 {
    let (mut low, mut high) = (0, cumulative[cumulative.len() - 1]);
    while low < high {
        let middle = low + (high - low) / 2;
        let fits = cumulative.windows(2).all(|pair| pair[1] - pair[0] <= middle);
        if fits && stages_from(cumulative, middle)[0] <= stages {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The least number of stages for the ops from each position on; no op has more work than the limit.
fn stages_from(cumulative: &[u128], limit: u128) -> Vec<usize> {
    let end = cumulative.len() - 1;
    let mut stages = vec![0; end + 1];
    let mut reach = end;
    for position in (0..end).rev() {
        while cumulative[reach] - cumulative[position] > limit {
            reach -= 1;
        }
        stages[position] = stages[reach] + 1;
    }
    stages
}

/// The number of bytes that cross a cut, by the number of ops before it.
fn crossing(region: &Region, ops: &[usize]) -> Vec<u128> {
    let graph = region.graph();
    let mut position_of = vec![None; graph.len()];
    for (position, &op) in ops.iter().enumerate() {
        position_of[op] = Some(position);
    }
    // For each value of an op, the position of its last use; results are used at the end.
    let mut last: Vec<Vec<usize>> = ops.iter().map(|&op| vec![0; graph.nodes()[op].outputs.len()]).collect();
    let mut used = |value: &crate::graph::Value, by: usize| {
        if let Some(position) = position_of[value.node as usize] {
            let last: &mut usize = &mut last[position][value.output as usize];
            *last = by.max(*last);
        }
    };
    for (position, &op) in ops.iter().enumerate() {
        graph.nodes()[op].inputs.iter().for_each(|value| used(value, position));
    }
    region.results().iter().for_each(|value| used(value, ops.len()));
    let (mut begins, mut ends) = (vec![0u128; ops.len() + 1], vec![0u128; ops.len() + 1]);
    for (position, &op) in ops.iter().enumerate() {
        for (ty, &last) in graph.nodes()[op].outputs.iter().zip(&last[position]) {
            if last > position {
                begins[position + 1] += ty.byte_size() as u128;
                ends[last] += ty.byte_size() as u128;
            }
        }
    }
    let mut alive = 0;
    let cross = |position: usize| {
        alive += begins[position];
        let bytes = alive;
        alive -= ends[position];
        bytes
    };
    (0..=ops.len()).map(cross).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least work of the heaviest of `stages` stages from a position on, by exhaustive search.
    fn tried(cumulative: &[u128], start: usize, stages: usize) -> u128 {
        let end = cumulative.len() - 1;
        if stages == 1 {
            return cumulative[end] - cumulative[start];
        }
        let heaviest = |position: usize| {
            (cumulative[position] - cumulative[start]).max(tried(cumulative, position, stages - 1))
        };
        (start + 1..=end - (stages - 1)).map(heaviest).min().expect("each cut has a position")
    }

    #[test]
    fn the_least_limit_is_found_and_kept() {
        let mut state = 7u128;
        let mut next = || {
            state = (state * 48_271) % 0x7fff_ffff;
            state
        };
        for _ in 0..300 {
            let mut cumulative = vec![0];
            for _ in 0..8 {
                cumulative.push(cumulative[cumulative.len() - 1] + 1 + next() % 50);
            }
            let bytes: Vec<u128> = cumulative.iter().map(|_| next() % 4).collect();
            for stages in 1..=8 {
                let least = tried(&cumulative, 0, stages);
                assert_eq!(least_limit(&cumulative, stages), least, "{cumulative:?} {stages}");
                let cuts = choose(&cumulative, &bytes, stages);
                assert_eq!(cuts.len(), stages - 1);
                let bounds: Vec<usize> = [0].into_iter().chain(cuts).chain([8]).collect();
                for pair in bounds.windows(2) {
                    assert!(pair[0] < pair[1], "{bounds:?}");
                    assert!(
                        cumulative[pair[1]] - cumulative[pair[0]] <= least + least / SLACK,
                        "{cumulative:?} {bounds:?}"
                    );
                }
            }
        }
    }

    /// A chain of sines whose values are large, except after the first op and in the middle.
    #[test]
    fn little_travels_where_work_allows_it() {
        let mut text = "defn-ir 1 (f32[64]) { %0 = parameter {index: 0} : f32[64]".to_owned();
        let mut at = 0;
        for _ in 0..2 {
            text += &format!(" %{} = sum %{at} {{axes: [0], keep_axes: true}} : f32[1]", at + 1);
            text += &format!(" %{} = broadcast %{} {{shape: [64], axes: [0]}} : f32[64]", at + 2, at + 1);
            for sine in at + 3..at + 9 {
                text += &format!(" %{sine} = sin %{} : f32[64]", sine - 1);
            }
            at += 8;
        }
        let region = Region::from_text(&format!("{text} return %{at} }}")).unwrap();
        let ops: Vec<usize> = (1..=at).collect();
        let bytes = [0, 4, 256, 256, 256, 256, 256, 256, 256, 4, 256, 256, 256, 256, 256, 256, 256];
        assert_eq!(crossing(&region, &ops), bytes);
        // Half of the work is done after 8 ops; one more op is less than a tenth of it, and fewer bytes
        // cross.
        assert_eq!(balanced(&region, &ops, 2), [9]);
        assert_eq!(balanced(&region, &ops, 1), []);
        assert_eq!(balanced(&region, &ops, at), (1..at).collect::<Vec<_>>());
    }
}
