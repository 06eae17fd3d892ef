//! Arrays of sets, one set for each element of a value in row-major order, and how ops move and join them along axes.

use super::sets::{EMPTY, Id, Sets};

/// The row-major strides of an array.
pub(super) fn strides(sizes: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; sizes.len()];
    for axis in (1..sizes.len()).rev() {
        strides[axis - 1] = strides[axis] * sizes[axis];
    }
    strides
}

/// For each element of an array of `sizes`, the position that it has where a step along each axis moves by `steps`.
pub(super) fn positions(sizes: &[usize], steps: &[usize]) -> Vec<usize> {
    let mut found = Vec::with_capacity(sizes.iter().product());
    found.push(0);
    for (&size, &step) in sizes.iter().zip(steps) {
        let before = std::mem::take(&mut found);
        found.reserve(before.len() * size);
        found.extend(before.iter().flat_map(|start| (0..size).map(move |index| start + index * step)));
    }
    found
}

/// The sizes before an axis together, the axis's own, and those behind it.
pub(super) fn around(sizes: &[usize], axis: usize) -> (usize, usize, usize) {
    (sizes[..axis].iter().product(), sizes[axis], sizes[axis + 1..].iter().product())
}

/// The elements at positions along each axis; the empty set where there is no position.
pub(super) fn pick(x: &[Id], sizes: &[usize], along: &[Vec<Option<usize>>]) -> Vec<Id> {
    let mut found = vec![Some(0)];
    for (positions, stride) in along.iter().zip(strides(sizes)) {
        let before = std::mem::take(&mut found);
        found = before
            .iter()
            .flat_map(|start| positions.iter().map(move |position| Some((*start)? + (*position)? * stride)))
            .collect();
    }
    found.into_iter().map(|position| position.map_or(EMPTY, |position| x[position])).collect()
}

/// The elements with their axes in another order.
pub(super) fn transpose(x: &[Id], sizes: &[usize], order: &[usize]) -> Vec<Id> {
    let from = strides(sizes);
    let steps: Vec<usize> = order.iter().map(|&axis| from[axis]).collect();
    let sizes: Vec<usize> = order.iter().map(|&axis| sizes[axis]).collect();
    positions(&sizes, &steps).into_iter().map(|position| x[position]).collect()
}

/// The elements of an operand in the shape to which it is broadcast from the right.
pub(super) fn broadcast(x: &[Id], sizes: &[usize], to: &[usize]) -> Vec<Id> {
    let lead = to.len() - sizes.len();
    let axes: Vec<usize> = (lead..to.len()).collect();
    broadcast_axes(x, sizes, &axes, to)
}

/// The elements in a larger shape, of which `axes` are the operand's; other axes repeat elements, and so do axes of size 1.
pub(super) fn broadcast_axes(x: &[Id], sizes: &[usize], axes: &[usize], to: &[usize]) -> Vec<Id> {
    if sizes == to {
        return x.to_vec();
    }
    let mut steps = vec![0; to.len()];
    for ((&axis, &size), stride) in axes.iter().zip(sizes).zip(strides(sizes)) {
        steps[axis] = if size == 1 { 0 } else { stride };
    }
    positions(to, &steps).into_iter().map(|position| x[position]).collect()
}

/// The unions over axes, which are left out.
pub(super) fn reduce(sets: &mut Sets, x: &[Id], sizes: &[usize], axes: &[usize]) -> Vec<Id> {
    let strides = strides(sizes);
    let part = |reduced: bool| {
        let axes: Vec<usize> = (0..sizes.len()).filter(|axis| axes.contains(axis) == reduced).collect();
        let (sizes, steps): (Vec<usize>, Vec<usize>) =
            axes.iter().map(|&axis| (sizes[axis], strides[axis])).unzip();
        positions(&sizes, &steps)
    };
    let (kept, reduced) = (part(false), part(true));
    kept.into_iter().map(|start| sets.union_all(reduced.iter().map(|more| x[start + more]))).collect()
}

/// For each position along the new axis, the union of the elements at some positions along an axis.
pub(super) fn join(
    sets: &mut Sets,
    x: &[Id],
    sizes: &[usize],
    axis: usize,
    members: &[Vec<usize>],
) -> Vec<Id> {
    let (before, size, behind) = around(sizes, axis);
    let mut found = Vec::with_capacity(before * members.len() * behind);
    for block in 0..before {
        for members in members {
            for inner in 0..behind {
                let at = |&member: &usize| x[(block * size + member) * behind + inner];
                found.push(sets.union_all(members.iter().map(at)));
            }
        }
    }
    found
}

/// The union of the first `used` elements of each line along an axis, repeated `length` times.
pub(super) fn lines(
    sets: &mut Sets,
    x: &[Id],
    sizes: &[usize],
    axis: usize,
    (used, length): (usize, usize),
) -> Vec<Id> {
    let joined = join(sets, x, sizes, axis, &[(0..used).collect()]);
    let (_, _, behind) = around(sizes, axis);
    joined
        .chunks(behind.max(1))
        .flat_map(|line| std::iter::repeat_n(line, length).flatten().copied())
        .collect()
}

/// The unions of two arrays of the same sizes.
pub(super) fn unite(sets: &mut Sets, x: &mut [Id], other: &[Id]) {
    for (a, &b) in x.iter_mut().zip(other) {
        *a = sets.union(*a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_move_along_axes() {
        let (x, sizes): (Vec<Id>, _) = ((1..=6).collect(), [2, 3]);
        assert_eq!(transpose(&x, &sizes, &[1, 0]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(broadcast(&x[..3], &[3], &[2, 3]), [1, 2, 3, 1, 2, 3]);
        assert_eq!(pick(&x, &sizes, &[vec![Some(1), None], vec![Some(2), Some(0)]]), [6, 4, EMPTY, EMPTY]);
        let mut sets = Sets::new(6);
        let columns = reduce(&mut sets, &x, &sizes, &[0]);
        assert_eq!(sets.ranges(columns[1])[..], [(1, 2), (4, 5)]);
        let rows = lines(&mut sets, &x, &sizes, 1, (2, 2));
        assert_eq!(sets.ranges(rows[0])[..], [(0, 2)]);
        assert_eq!((rows.len(), rows[0], rows[2]), (4, rows[1], rows[3]));
    }
}
