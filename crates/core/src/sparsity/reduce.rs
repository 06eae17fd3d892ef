//! Sets of reductions.

use super::sets::EMPTY;
use super::{Dependence, Site, axes};
use crate::op::{CumulativeOp, ReduceOp};
use crate::shape::Axis;

/// The unions over axes.
pub(super) fn reduce(site: &mut Site<'_, '_, '_>, op: ReduceOp, axes: &[Axis]) -> Dependence {
    match op {
        ReduceOp::Sum | ReduceOp::Product | ReduceOp::ReduceMax | ReduceOp::ReduceMin => over(site, axes),
        ReduceOp::All | ReduceOp::Any => None,
    }
}

/// The unions over axes.
pub(super) fn over(site: &mut Site<'_, '_, '_>, axes: &[Axis]) -> Dependence {
    site.inputs[0].as_ref()?;
    Some(site.reduced(0, axes).into())
}

/// `(x, init, captures)`: the elements over axes, and all that the function takes.
pub(super) fn fold(site: &mut Site<'_, '_, '_>, axes: &[Axis]) -> Dependence {
    let more = site.union_of(1..site.inputs.len());
    let mut found = site.reduced(0, axes);
    found.iter_mut().for_each(|id| *id = site.analysis.sets.union(*id, more));
    Some(found.into())
}

/// The elements up to each along an axis, or from each on.
pub(super) fn cumulative(
    site: &mut Site<'_, '_, '_>,
    op: CumulativeOp,
    axis: Axis,
    reverse: bool,
) -> Dependence {
    match op {
        CumulativeOp::CumulativeSum
        | CumulativeOp::CumulativeProduct
        | CumulativeOp::CumulativeMax
        | CumulativeOp::CumulativeMin => {}
    }
    let mut found = site.inputs[0].clone()?.to_vec();
    let (before, size, behind) = axes::around(site.input_sizes(0), axis.index());
    for block in 0..before {
        for inner in 0..behind {
            let mut so_far = EMPTY;
            for step in 0..size {
                let position = if reverse { size - 1 - step } else { step };
                let element = &mut found[(block * size + position) * behind + inner];
                so_far = site.analysis.sets.union(so_far, *element);
                *element = so_far;
            }
        }
    }
    Some(found.into())
}
