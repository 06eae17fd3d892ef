//! Sets of ops that move elements.

use super::sets::{EMPTY, Id};
use super::{Dependence, Site, axes};
use crate::error::Result;
use crate::op::{Padding, Starts};
use crate::shape::Axis;

/// The positions of axes.
pub(super) fn indices(axes: &[Axis]) -> Vec<usize> {
    axes.iter().map(|axis| axis.index()).collect()
}

/// All positions along an axis.
fn every(size: usize) -> Vec<Option<usize>> {
    (0..size).map(Some).collect()
}

/// Repeated along the axes that the operand lacks.
pub(super) fn broadcast(site: &Site<'_, '_, '_>, axes: &[Axis]) -> Dependence {
    let (x, to) = (site.inputs[0].as_ref()?, site.output_sizes(0));
    Some(axes::broadcast_axes(x, site.input_sizes(0), &indices(axes), to).into())
}

/// The axes in another order.
pub(super) fn transpose(site: &Site<'_, '_, '_>, axes: &[Axis]) -> Dependence {
    let x = site.inputs[0].as_ref()?;
    Some(axes::transpose(x, site.input_sizes(0), &indices(axes)).into())
}

/// Reversed along some axes.
pub(super) fn reverse(site: &Site<'_, '_, '_>, axes: &[Axis]) -> Dependence {
    let (x, sizes, reversed) = (site.inputs[0].as_ref()?, site.input_sizes(0), indices(axes));
    let along: Vec<_> = (sizes.iter().enumerate())
        .map(|(axis, &size)| {
            let mut positions = every(size);
            if reversed.contains(&axis) {
                positions.reverse();
            }
            positions
        })
        .collect();
    Some(axes::pick(x, sizes, &along).into())
}

/// `(x, value)`: the elements of `x`, and the value around and between them.
pub(super) fn pad(site: &Site<'_, '_, '_>, config: &[Padding]) -> Dependence {
    let (x, sizes, to) = (site.all(0), site.input_sizes(0), site.output_sizes(0));
    let along: Vec<Vec<Option<usize>>> = (sizes.iter().zip(to).zip(config))
        .map(|((&size, &length), padding)| {
            let step = padding.interior as i64 + 1;
            let position = |index: usize| {
                let from_first = index as i64 - padding.low;
                let position = usize::try_from(from_first / step).ok()?;
                (from_first >= 0 && from_first % step == 0 && position < size).then_some(position)
            };
            (0..length).map(position).collect()
        })
        .collect();
    let value = site.all(1)[0];
    if value == EMPTY {
        return Some(axes::pick(&x, sizes, &along).into());
    }
    // A mark at each element of `x` tells it from padding.
    let marks = axes::pick(&vec![EMPTY + 1; x.len()], sizes, &along);
    let picked = axes::pick(&x, sizes, &along);
    Some(picked.into_iter().zip(marks).map(|(id, mark)| if mark == EMPTY { value } else { id }).collect())
}

/// The operands one after the other along an axis.
pub(super) fn concatenate(site: &Site<'_, '_, '_>, axis: Axis) -> Dependence {
    let operands: Vec<_> = (0..site.inputs.len()).map(|input| site.all(input)).collect();
    let (before, _, _) = axes::around(site.output_sizes(0), axis.index());
    let mut found: Vec<Id> = Vec::with_capacity(site.output_sizes(0).iter().product());
    for block in 0..before {
        for operand in &operands {
            let length = operand.len() / before;
            found.extend_from_slice(&operand[block * length..(block + 1) * length]);
        }
    }
    Some(found.into())
}

/// The operands side by side along a new axis. They are broadcast to each other.
pub(super) fn stack(site: &Site<'_, '_, '_>, axis: usize) -> Dependence {
    let mut sizes = site.output_sizes(0).to_vec();
    sizes.remove(axis);
    let operands: Vec<Vec<Id>> = (0..site.inputs.len())
        .map(|input| axes::broadcast(&site.all(input), site.input_sizes(input), &sizes))
        .collect();
    let behind: usize = sizes[axis..].iter().product();
    let before: usize = sizes[..axis].iter().product();
    let mut found: Vec<Id> = Vec::with_capacity(before * operands.len() * behind);
    for block in 0..before {
        operands
            .iter()
            .for_each(|operand| found.extend_from_slice(&operand[block * behind..(block + 1) * behind]));
    }
    Some(found.into())
}

/// The start of a window along each axis, None where it is not known. The operands from `first` on give the starts.
fn starts(
    site: &mut Site<'_, '_, '_>,
    starts: &Starts,
    (sizes, lengths): (&[usize], &[usize]),
    first: usize,
) -> Result<Vec<Option<usize>>> {
    let operands = match starts {
        Starts::Static(starts) => return Ok(starts.iter().copied().map(Some).collect()),
        Starts::Dynamic | Starts::FromEnd => first..first + sizes.len(),
    };
    let mut found = Vec::with_capacity(sizes.len());
    for (input, (&size, &length)) in operands.zip(sizes.iter().zip(lengths)) {
        let start = match size == length {
            true => Some(0),
            false => site.integers(input)?.map(|start| starts.nearest(start[0], length, size)),
        };
        found.push(start);
    }
    Ok(found)
}

/// A window of the operand; the union of all windows along an axis whose start is not known.
pub(super) fn slice(
    site: &mut Site<'_, '_, '_>,
    starts: &Starts,
    lengths: &[usize],
    strides: &[usize],
) -> Result<Dependence> {
    let Some(x) = site.inputs[0].clone() else { return Ok(None) };
    let mut sizes = site.input_sizes(0).to_vec();
    let starts = self::starts(site, starts, (&sizes, lengths), 1)?;
    let to = site.output_sizes(0);
    let mut along = Vec::with_capacity(sizes.len());
    let mut found = x.to_vec();
    for (axis, start) in starts.iter().enumerate() {
        along.push(match *start {
            Some(start) => (0..to[axis]).map(|index| Some(start + index * strides[axis])).collect(),
            None => {
                let windows = sizes[axis] - lengths[axis] + 1;
                let members =
                    |index: usize| (index * strides[axis]..index * strides[axis] + windows).collect();
                let members: Vec<Vec<usize>> = (0..to[axis]).map(members).collect();
                found = axes::join(&mut site.analysis.sets, &found, &sizes, axis, &members);
                sizes[axis] = to[axis];
                every(to[axis])
            }
        });
    }
    Ok(Some(axes::pick(&found, &sizes, &along).into()))
}

/// `(x, update)`: `x` with a window replaced; what may be either where a start is not known.
pub(super) fn put_slice(site: &mut Site<'_, '_, '_>, starts: &Starts) -> Result<Dependence> {
    let (sizes, mut lengths) = (site.input_sizes(0), site.input_sizes(1).to_vec());
    let starts = self::starts(site, starts, (sizes, &lengths), 2)?;
    let is_known = starts.iter().all(Option::is_some);
    let mut update = site.all(1).to_vec();
    let mut along: Vec<Vec<Option<usize>>> = Vec::with_capacity(sizes.len());
    for (axis, start) in starts.iter().enumerate() {
        let (size, length) = (sizes[axis], lengths[axis]);
        along.push(match *start {
            Some(start) => {
                let within = |index: usize| index.checked_sub(start).filter(|&position| position < length);
                (0..size).map(within).collect()
            }
            None => {
                // A window begins at `size - length` at most.
                let members =
                    |index: usize| (index.saturating_sub(size - length)..length.min(index + 1)).collect();
                let members: Vec<Vec<usize>> = (0..size).map(members).collect();
                update = axes::join(&mut site.analysis.sets, &update, &lengths, axis, &members);
                lengths[axis] = size;
                every(size)
            }
        });
    }
    let x = site.all(0);
    let written = axes::pick(&update, &lengths, &along);
    if is_known {
        let marks = axes::pick(&vec![EMPTY + 1; update.len()], &lengths, &along);
        let found = x.iter().zip(written.iter().zip(marks));
        return Ok(Some(found.map(|(&x, (&new, mark))| if mark == EMPTY { x } else { new }).collect()));
    }
    let mut found = x.to_vec();
    axes::unite(&mut site.analysis.sets, &mut found, &written);
    Ok(Some(found.into()))
}

/// Each element of a line along an axis from the first `used` elements of the line of the operand.
pub(super) fn lines(site: &mut Site<'_, '_, '_>, axis: usize, used: usize) -> Dependence {
    let (x, sizes) = (site.inputs[0].clone()?, site.input_sizes(0));
    let lengths = (used.min(sizes[axis]), site.output_sizes(0)[axis]);
    Some(axes::lines(&mut site.analysis.sets, &x, sizes, axis, lengths).into())
}
