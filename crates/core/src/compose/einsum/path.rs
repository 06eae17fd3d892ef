//! The order in which operands are contracted, pair by pair.
//!
//! For few operands it is the cheapest of all orders, by dynamic programming over the subsets of the operands (R. N. C.
//! Pfeifer, J. Haegeman, F. Verstraete, "Faster identification of optimal contraction sequences for tensor networks",
//! Phys. Rev. E 90, 033315, 2014). For more operands it is greedy: each step contracts the pair whose result is the
//! smallest beside its operands (D. G. A. Smith, J. Gray, "opt_einsum", Journal of Open Source Software 3(26), 753,
//! 2018).

/// A set of indices, as bits.
pub(super) type Set = u128;

/// The most operands for which all orders are compared: 3^6 divisions into two parts.
const EXHAUSTIVE: usize = 6;

/// The set of some indices.
pub(super) fn set(indices: &[usize]) -> Set {
    indices.iter().fold(0, |set, &index| set | 1 << index)
}

/// The number of elements over a set of indices. Numbers beyond 2^53 are rounded.
fn elements(set: Set, sizes: &[usize]) -> f64 {
    let of = |(index, &size): (usize, &usize)| if set >> index & 1 == 1 { size as f64 } else { 1.0 };
    sizes.iter().enumerate().map(of).product()
}

/// The pairs to contract, in order. Operands have the numbers of their positions, and each result has the next number.
pub(super) fn order(terms: &[Set], output: Set, sizes: &[usize]) -> Vec<(usize, usize)> {
    match terms.len() {
        0 | 1 => Vec::new(),
        2 => vec![(0, 1)],
        3..=EXHAUSTIVE => cheapest(terms, output, sizes),
        _ => greedy(terms, output, sizes),
    }
}

/// The cost of contracting a set of operands.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Cost {
    /// The products of elements.
    products: f64,
    /// The elements of the results.
    stored: f64,
}

fn cheapest(terms: &[Set], output: Set, sizes: &[usize]) -> Vec<(usize, usize)> {
    let all = (1usize << terms.len()) - 1;
    let over = |members: usize| {
        let of = |(at, &term): (usize, &Set)| if members >> at & 1 == 1 { term } else { 0 };
        terms.iter().enumerate().map(of).fold(0, |union, term| union | term)
    };
    // The indices of the result for each subset of the operands: those that others or the output need.
    let results: Vec<Set> =
        (0..=all).map(|members| over(members) & (output | over(all & !members))).collect();
    let mut best = vec![(Cost { products: 0.0, stored: 0.0 }, 0usize); all + 1];
    for members in 1..=all {
        if members.is_power_of_two() {
            continue;
        }
        let stored = elements(results[members], sizes);
        let mut chosen = None::<(Cost, usize)>;
        // A part and the rest are one division: the part has the first operand.
        let first = members & members.wrapping_neg();
        let mut part = (members - 1) & members;
        while part > 0 {
            if part & first != 0 {
                let rest = members & !part;
                let (left, right) = (best[part].0, best[rest].0);
                let cost = Cost {
                    products: left.products + right.products + elements(results[part] | results[rest], sizes),
                    stored: left.stored + right.stored + stored,
                };
                if chosen.is_none_or(|(least, _)| cost < least) {
                    chosen = Some((cost, part));
                }
            }
            part = (part - 1) & members;
        }
        if let Some(chosen) = chosen {
            best[members] = chosen;
        }
    }
    let mut pairs = Vec::with_capacity(terms.len() - 1);
    walk(all, &best, terms.len(), &mut pairs);
    pairs
}

/// Appends the contractions of a set of operands; returns the number of the result.
fn walk(members: usize, best: &[(Cost, usize)], operands: usize, pairs: &mut Vec<(usize, usize)>) -> usize {
    if members.is_power_of_two() {
        return members.trailing_zeros() as usize;
    }
    let part = best[members].1;
    let left = walk(part, best, operands, pairs);
    let right = walk(members & !part, best, operands, pairs);
    pairs.push((left, right));
    operands + pairs.len() - 1
}

fn greedy(terms: &[Set], output: Set, sizes: &[usize]) -> Vec<(usize, usize)> {
    let mut live: Vec<(usize, Set)> = terms.iter().copied().enumerate().collect();
    let mut pairs = Vec::with_capacity(terms.len() - 1);
    while live.len() > 1 {
        // Outer products come last: then a pair without a common index is preferred only to its like.
        let mut chosen = None::<((bool, f64, f64), usize, usize)>;
        for (i, &(_, left)) in live.iter().enumerate() {
            for (j, &(_, right)) in live.iter().enumerate().skip(i + 1) {
                let result = (left | right) & needed(&live, output, i, j);
                let saved = elements(left, sizes) + elements(right, sizes);
                let growth = elements(result, sizes) - saved;
                let cost = (left & right == 0, growth, elements(left | right, sizes));
                if chosen.is_none_or(|(least, ..)| cost < least) {
                    chosen = Some((cost, i, j));
                }
            }
        }
        // The loop above finds a pair whenever there are two operands.
        let (i, j) = chosen.map_or((0, 1), |(_, i, j)| (i, j));
        let result = (live[i].1 | live[j].1) & needed(&live, output, i, j);
        let ((right, _), (left, _)) = (live.remove(j), live.remove(i));
        pairs.push((left, right));
        live.push((terms.len() + pairs.len() - 1, result));
    }
    pairs
}

/// The indices that the output or another operand than these two has.
fn needed(live: &[(usize, Set)], output: Set, i: usize, j: usize) -> Set {
    let others = live.iter().enumerate().filter(|&(at, _)| at != i && at != j);
    others.fold(output, |needed, (_, &(_, term))| needed | term)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The products of elements of an order, and whether it ends in the output.
    fn products(terms: &[Set], output: Set, sizes: &[usize], pairs: &[(usize, usize)]) -> f64 {
        let mut live: Vec<Option<Set>> = terms.iter().copied().map(Some).collect();
        let mut sum = 0.0;
        for &(i, j) in pairs {
            let (left, right) = (live[i].take().unwrap(), live[j].take().unwrap());
            let needed = live.iter().flatten().fold(output, |needed, term| needed | term);
            sum += elements(left | right, sizes);
            live.push(Some((left | right) & needed));
        }
        let left: Vec<Set> = live.into_iter().flatten().collect();
        assert_eq!(left, [output & terms.iter().fold(0, |union, term| union | term)]);
        sum
    }

    #[test]
    fn a_chain_is_contracted_from_its_small_end() {
        // ab,bc,cd,d: three products of a matrix and a vector.
        let terms = [0b0011, 0b0110, 0b1100, 0b1000];
        let sizes = [10, 20, 30, 40];
        let pairs = order(&terms, 0b0001, &sizes);
        assert_eq!(products(&terms, 0b0001, &sizes, &pairs), (30 * 40 + 20 * 30 + 10 * 20) as f64);
        assert_eq!(pairs[0], (2, 3));
    }

    #[test]
    fn the_cheapest_order_is_never_above_the_greedy_one() {
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let sizes: Vec<usize> = (0..6).map(|_| 1 + next(9) as usize).collect();
            let count = 3 + next(4) as usize;
            let output = next(64) as Set;
            let terms: Vec<Set> = (0..count).map(|_| next(64) as Set).collect();
            // Indices of one operand alone are summed out before.
            let alone = |at: usize| {
                let others = terms.iter().enumerate().filter(|&(other, _)| other != at);
                terms[at] & others.fold(output, |union, (_, term)| union | term)
            };
            let terms: Vec<Set> = (0..count).map(alone).collect();
            let best = products(&terms, output, &sizes, &cheapest(&terms, output, &sizes));
            let quick = products(&terms, output, &sizes, &greedy(&terms, output, &sizes));
            assert!(best <= quick, "{best} {quick} for {terms:?} {output:b} {sizes:?}");
        }
    }
}
