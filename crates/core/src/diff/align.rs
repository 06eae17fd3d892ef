//! Matches the elements of two lists.

/// The largest number of insertions and deletions that is searched. Beyond it, the elements between the
/// common prefix and the common suffix stay unmatched.
const MAX_EDITS: usize = 1000;

/// Pairs of positions with equal labels, ascending on both sides: a longest common subsequence, up to the
/// limit (Myers, An O(ND) Difference Algorithm and Its Variations, 1986).
pub(super) fn align(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[prefix..], &new[prefix..]);
    let suffix = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let middle = align_middle(&old_rest[..old_rest.len() - suffix], &new_rest[..new_rest.len() - suffix]);
    let mut pairs: Vec<(usize, usize)> = (0..prefix).map(|at| (at, at)).collect();
    pairs.extend(middle.into_iter().map(|(a, b)| (prefix + a, prefix + b)));
    pairs.extend((0..suffix).map(|at| (old.len() - suffix + at, new.len() - suffix + at)));
    pairs
}

/// The same, without common prefix and suffix.
///
/// Diagonal k has the points with k more old elements passed than new ones. After d steps, each of which
/// passes one element of one list, diagonals -d, -d + 2, ..., d are reached; the farthest point of each is
/// kept.
fn align_middle(old: &[usize], new: &[usize]) -> Vec<(usize, usize)> {
    let (old_count, new_count) = (old.len() as isize, new.len() as isize);
    let limit = MAX_EDITS.min(old.len() + new.len()) as isize;
    let at = |diagonal: isize| (diagonal + limit + 1) as usize;
    let mut farthest = vec![0isize; (2 * limit + 3) as usize];
    let mut trace: Vec<Vec<isize>> = Vec::new();
    for steps in 0..=limit {
        trace.push(farthest[at(-steps - 1)..=at(steps + 1)].to_vec());
        for diagonal in (-steps..=steps).step_by(2) {
            let (below, above) = (farthest[at(diagonal - 1)], farthest[at(diagonal + 1)]);
            let mut x = if passes_new(diagonal, steps, below, above) { above } else { below + 1 };
            let mut y = x - diagonal;
            while x < old_count && y < new_count && old[x as usize] == new[y as usize] {
                (x, y) = (x + 1, y + 1);
            }
            farthest[at(diagonal)] = x;
            if x >= old_count && y >= new_count {
                return backtrack(&trace, old_count, new_count);
            }
        }
    }
    Vec::new()
}

/// Whether the last step to the farthest point of a diagonal passed a new element, rather than an old one.
fn passes_new(diagonal: isize, steps: isize, below: isize, above: isize) -> bool {
    diagonal == -steps || (diagonal != steps && below < above)
}

/// The pairs on the path that was found, from the points reached before each step.
fn backtrack(trace: &[Vec<isize>], mut x: isize, mut y: isize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (steps, farthest) in trace.iter().enumerate().rev() {
        let steps = steps as isize;
        let at = |diagonal: isize| farthest[(diagonal + steps + 1) as usize];
        let diagonal = x - y;
        let by_new = passes_new(diagonal, steps, at(diagonal - 1), at(diagonal + 1));
        let from = if by_new { diagonal + 1 } else { diagonal - 1 };
        let (from_x, from_y) = (at(from), at(from) - from);
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            pairs.push((x as usize, y as usize));
        }
        (x, y) = (from_x, from_y);
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of a longest common subsequence, by dynamic programming.
    fn longest(old: &[usize], new: &[usize]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let mut corner = 0;
            for (at, b) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { corner + 1 } else { above.max(row[at]) };
                corner = above;
            }
        }
        row[new.len()]
    }

    #[test]
    fn the_longest_list_is_found() {
        // A linear congruential generator, so that every run tests the same lists.
        let mut state = 1u64;
        let mut below = |count: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % count
        };
        for _ in 0..2000 {
            let mut list = || -> Vec<usize> {
                let len = below(12);
                (0..len).map(|_| below(4) as usize).collect()
            };
            let (old, new) = (list(), list());
            let pairs = align(&old, &new);
            assert!(pairs.iter().all(|&(a, b)| old[a] == new[b]), "{old:?} {new:?} {pairs:?}");
            assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            assert_eq!(pairs.len(), longest(&old, &new), "{old:?} {new:?} {pairs:?}");
        }
    }

    #[test]
    fn lists_that_differ_too_much_keep_their_ends() {
        let list = |middle: usize| -> Vec<usize> {
            [1, 2].into_iter().chain(std::iter::repeat_n(middle, MAX_EDITS)).chain([3]).collect()
        };
        assert_eq!(align(&list(8), &list(9)), [(0, 0), (1, 1), (MAX_EDITS + 2, MAX_EDITS + 2)]);
    }
}
