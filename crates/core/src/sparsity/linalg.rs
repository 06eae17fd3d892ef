//! Sets of products.

use super::sets::Id;
use super::{Dependence, Site};
use crate::shape::Axis;

/// A row of `a` and a column of `b`: the batch axes, the other axes of `a`, then those of `b`.
pub(super) fn dot(
    site: &mut Site<'_, '_, '_>,
    (contract_a, contract_b): (&[Axis], &[Axis]),
    batch: usize,
) -> Dependence {
    let (rows, columns) = (site.reduced(0, contract_a), site.reduced(1, contract_b));
    let batch: usize = site.output_sizes(0)[..batch].iter().product();
    let mut found: Vec<Id> = Vec::with_capacity(site.output_sizes(0).iter().product());
    let of = |all: &[Id], item: usize| {
        let count = all.len() / batch;
        item * count..(item + 1) * count
    };
    for item in 0..batch {
        for &row in &rows[of(&rows, item)] {
            found.extend(
                columns[of(&columns, item)].iter().map(|&column| site.analysis.sets.union(row, column)),
            );
        }
    }
    Some(found.into())
}
