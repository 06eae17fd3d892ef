//! Sets of linear systems and factorizations: an element of a matrix may depend on all elements of the matrices from which it
//! is computed.

use super::sets::Id;
use super::{Dependence, Dependences, Site, axes};

/// The union of the elements of each matrix in the last two axes.
fn whole(site: &mut Site<'_, '_, '_>, input: usize) -> Vec<Id> {
    let rank = site.input_sizes(input).len();
    let (x, sizes) = (site.all(input), site.input_sizes(input));
    axes::reduce(&mut site.analysis.sets, &x, sizes, &[rank - 2, rank - 1])
}

/// Outputs of one matrix, each element of which depends on all of the matrix's. The outputs in `constant` have no derivative.
pub(super) fn factors(site: &mut Site<'_, '_, '_>, constant: &[usize]) -> Dependences {
    let matrices = whole(site, 0);
    let output = |output: usize| -> Dependence {
        let size: usize = site.output_sizes(output).iter().product();
        let each = size.checked_div(matrices.len()).unwrap_or(0);
        let repeated = matrices.iter().flat_map(|&id| std::iter::repeat_n(id, each));
        (!constant.contains(&output)).then(|| repeated.collect())
    };
    (0..site.node.outputs.len()).map(output).collect()
}

/// `(a, b)`: the solution of a system depends on its matrix, and on the column of `b` that it solves, or the row where the
/// matrix is on the right.
pub(super) fn solve(site: &mut Site<'_, '_, '_>, left_side: bool) -> Dependence {
    let matrices = whole(site, 0);
    let sizes = site.input_sizes(1);
    let is_vector = sizes.len() + 1 == site.input_sizes(0).len();
    let axis = if is_vector || !left_side { sizes.len() - 1 } else { sizes.len() - 2 };
    let (size, b) = (sizes[axis], site.all(1));
    let mut found = axes::lines(&mut site.analysis.sets, &b, sizes, axis, (size, size));
    let each = found.len().checked_div(matrices.len()).unwrap_or(0);
    for (position, id) in found.iter_mut().enumerate() {
        *id = site.analysis.sets.union(*id, matrices[position / each]);
    }
    Some(found.into())
}
