//! Sets of reads and writes at positions.

use super::sets::{EMPTY, Id};
use super::shape::indices;
use super::{Dependence, Site, axes};
use crate::error::Result;
use crate::op::ScatterOp;
use crate::shape::Axis;

/// The axes of a tensor that are indexed, the others, and the strides of all.
struct Indexed {
    axes: Vec<usize>,
    rest: Vec<usize>,
    strides: Vec<usize>,
}

impl Indexed {
    fn new(sizes: &[usize], axes: &[Axis]) -> Indexed {
        let axes = indices(axes);
        let rest = (0..sizes.len()).filter(|axis| !axes.contains(axis)).collect();
        Indexed { axes, rest, strides: axes::strides(sizes) }
    }

    /// The positions of the first elements along the other axes, `sizes` of them.
    fn offsets(&self, sizes: &[usize]) -> Vec<usize> {
        let steps: Vec<usize> = self.rest.iter().map(|&axis| self.strides[axis]).collect();
        axes::positions(sizes, &steps)
    }

    /// The position of the entries of an index, each of which `place` puts on its axis.
    fn start(
        &self,
        entries: &[i128],
        sizes: &[usize],
        place: fn(i128, usize) -> Option<usize>,
    ) -> Option<usize> {
        let mut start = 0;
        for (&entry, &axis) in entries.iter().zip(&self.axes) {
            let size = sizes[axis];
            let counted = if entry < 0 { entry + size as i128 } else { entry };
            start += place(counted, size)? * self.strides[axis];
        }
        Some(start)
    }
}

/// `(x, indices)`: the elements at the positions; any along the indexed axes where they are not known.
pub(super) fn gather(site: &mut Site<'_, '_, '_>, axes: &[Axis]) -> Result<Dependence> {
    let Some(x) = site.inputs[0].clone() else { return Ok(None) };
    let sizes = site.input_sizes(0);
    let count: usize = site.output_sizes(0).iter().product();
    let Some(integers) = site.integers(1)? else {
        let row = site.reduced(0, axes);
        return Ok(Some(row.iter().copied().cycle().take(count).collect()));
    };
    let indexed = Indexed::new(sizes, axes);
    let rest: Vec<usize> = indexed.rest.iter().map(|&axis| sizes[axis]).collect();
    let offsets = indexed.offsets(&rest);
    // Reads are clamped to the axes.
    let clamp = |entry: i128, size: usize| Some(entry.clamp(0, size as i128 - 1) as usize);
    let mut found: Vec<Id> = Vec::with_capacity(count);
    for lead in 0..count.checked_div(offsets.len()).unwrap_or(0) {
        let entries = &integers[lead * axes.len()..][..axes.len()];
        let start = indexed.start(entries, sizes, clamp).unwrap_or(0);
        found.extend(offsets.iter().map(|offset| x[start + offset]));
    }
    Ok(Some(found.into()))
}

/// `(x, indices, updates)`. Several updates of one element all count: in reverse mode each has the gradient.
pub(super) fn scatter(site: &mut Site<'_, '_, '_>, op: ScatterOp, axes: &[Axis]) -> Result<Dependence> {
    let (sizes, mut found) = (site.input_sizes(0), site.all(0).to_vec());
    let (updates, update_sizes) = (site.all(2), site.input_sizes(2));
    let indexed = Indexed::new(sizes, axes);
    let offsets = indexed.offsets(&update_sizes[1..]);
    let Some(integers) = site.integers(1)? else {
        // Any update may be at any position.
        let row = site.reduced(2, &[Axis(0)]);
        let (along, steps): (Vec<usize>, Vec<usize>) =
            indexed.axes.iter().map(|&axis| (sizes[axis], indexed.strides[axis])).unzip();
        for start in axes::positions(&along, &steps) {
            for (offset, &update) in offsets.iter().zip(&row) {
                let element = &mut found[start + offset];
                *element = site.analysis.sets.union(*element, update);
            }
        }
        return Ok(Some(found.into()));
    };
    // A write outside of the axes is left out.
    let inside = |entry: i128, size: usize| usize::try_from(entry).ok().filter(|&entry| entry < size);
    let entries = |update: usize| &integers[update * axes.len()..][..axes.len()];
    let starts: Vec<Option<usize>> =
        (0..update_sizes[0]).map(|update| indexed.start(entries(update), sizes, inside)).collect();
    match op {
        ScatterOp::IndexedAdd => {}
        ScatterOp::IndexedPut => {
            for start in starts.iter().flatten() {
                offsets.iter().for_each(|offset| found[start + offset] = EMPTY);
            }
        }
    }
    for (start, update) in starts.iter().zip(updates.chunks(offsets.len().max(1))) {
        let Some(start) = start else { continue };
        for (offset, &update) in offsets.iter().zip(update) {
            let element = &mut found[start + offset];
            *element = site.analysis.sets.union(*element, update);
        }
    }
    Ok(Some(found.into()))
}
