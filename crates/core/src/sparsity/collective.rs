//! Sets of collectives. The variables of one device are its columns. Which block of the group is its own is not known.

use super::sets::Id;
use super::{Dependence, Site, axes};
use crate::op::{Collective, CollectiveOp};

pub(super) fn collective(site: &mut Site<'_, '_, '_>, op: &CollectiveOp) -> Dependence {
    match &op.kind {
        Collective::AllReduce { .. } | Collective::CollectivePermute { .. } => site.inputs[0].clone(),
        Collective::AllGather { axis } => {
            let (x, sizes) = (site.inputs[0].clone()?, site.input_sizes(0));
            let axis = axis.index();
            let along: Vec<Vec<Option<usize>>> = (sizes.iter().zip(site.output_sizes(0)).enumerate())
                .map(|(other, (&size, &length))| {
                    (0..length).map(|index| Some(if other == axis { index % size } else { index })).collect()
                })
                .collect();
            Some(axes::pick(&x, sizes, &along).into())
        }
        Collective::ReduceScatter { axis } => {
            let (x, sizes) = (site.inputs[0].clone()?, site.input_sizes(0));
            let axis = axis.index();
            let (size, length) = (sizes[axis], site.output_sizes(0)[axis]);
            let members: Vec<Vec<usize>> =
                (0..length).map(|index| (index..size).step_by(length).collect()).collect();
            let found: Vec<Id> = axes::join(&mut site.analysis.sets, &x, sizes, axis, &members);
            Some(found.into())
        }
        Collective::MeshIndex => None,
    }
}
