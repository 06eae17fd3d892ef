//! Scans with an associative function, in logarithmic depth.

use super::{BuildShape, Ops};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// So few elements are combined one after the other: with no more calls, and fewer combinations.
const FEW: usize = 8;

/// Combines two lists of slices, the first of which come before the second, element by element.
pub type Combine<'a> = &'a mut dyn FnMut(&mut Ops, Vec<Tensor>, Vec<Tensor>) -> Result<Vec<Tensor>>;

/// The combinations of the elements of tensors up to each position of an axis, one for each tensor and of equal sizes. With
/// `reverse` it begins at the end.
///
/// Neighbours are combined in pairs, the pairs are scanned in the same way, and the elements between are combined with what
/// came before them (Blelloch, Prefix Sums and Their Applications, 1990). Both halves of the work are one call of the
/// function for each power of 2, on vectors of elements.
///
/// # Errors
/// Those of `combine`, whose results must have the types of what it takes.
pub fn associative_scan(
    ops: &mut Ops,
    tensors: Vec<Tensor>,
    axes: &[usize],
    reverse: bool,
    combine: Combine<'_>,
) -> Result<Vec<Tensor>> {
    if tensors.iter().zip(axes).all(|(x, &axis)| size(x, axis) < 2) {
        return Ok(tensors);
    }
    if !reverse {
        return scan(ops, &tensors, axes, combine);
    }
    let turned = turn(ops, &tensors, axes)?;
    let scanned = scan(ops, &turned, axes, combine)?;
    turn(ops, &scanned, axes)
}

fn turn(ops: &mut Ops, tensors: &[Tensor], axes: &[usize]) -> Result<Vec<Tensor>> {
    tensors.iter().zip(axes).map(|(x, &axis)| ops.reverse(x, axis as i64)).collect()
}

fn size(x: &Tensor, axis: usize) -> usize {
    x.ty().shape.sizes()[axis]
}

/// Scans one element at least.
fn scan(ops: &mut Ops, tensors: &[Tensor], axes: &[usize], combine: Combine<'_>) -> Result<Vec<Tensor>> {
    let count = tensors.iter().zip(axes).map(|(x, &axis)| size(x, axis)).next().unwrap_or(0);
    if count <= FEW {
        let mut scanned = vec![slices(ops, tensors, axes, 0, 1)?];
        for position in 1..count {
            let next = slices(ops, tensors, axes, position, 1)?;
            scanned.push(combine(ops, scanned[position - 1].clone(), next)?);
        }
        let join = |(leaf, &axis): (usize, &usize)| {
            let parts: Vec<Tensor> = scanned.iter().map(|step| step[leaf].clone()).collect();
            ops.concatenate(&parts, axis as i64)
        };
        return axes.iter().enumerate().map(join).collect();
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (x, &axis) in tensors.iter().zip(axes) {
        let (even, odd) = halves(ops, x, axis)?;
        first.push(even);
        second.push(odd);
    }
    let (pairs, rest) = (count / 2, (count - 1) / 2);
    let even = slices(ops, &first, axes, 0, pairs)?;
    let paired = combine(ops, even, second)?;
    let odd = scan(ops, &paired, axes, &mut *combine)?;
    let (before, after) = (slices(ops, &odd, axes, 0, rest)?, slices(ops, &first, axes, 1, rest)?);
    let even = combine(ops, before, after)?;
    let parts = first.iter().zip(&even).zip(&odd).zip(axes);
    parts.map(|(((before, even), odd), &axis)| joined(ops, before, even, odd, axis)).collect()
}

fn slices(
    ops: &mut Ops,
    tensors: &[Tensor],
    axes: &[usize],
    start: usize,
    length: usize,
) -> Result<Vec<Tensor>> {
    tensors.iter().zip(axes).map(|(x, &axis)| slice(ops, x, start, length, axis)).collect()
}

fn slice(ops: &mut Ops, x: &Tensor, start: usize, length: usize, axis: usize) -> Result<Tensor> {
    if length == size(x, axis) {
        return Ok(x.clone());
    }
    ops.slice_along_axis(x, start as i64, length as i64, axis as i64, 1)
}

/// The elements at even and at odd positions.
fn halves(ops: &mut Ops, x: &Tensor, axis: usize) -> Result<(Tensor, Tensor)> {
    let size = size(x, axis);
    if size % 2 == 1 {
        let even = ops.slice_along_axis(x, 0, size as i64, axis as i64, 2)?;
        return Ok((even, ops.slice_along_axis(x, 1, size as i64 - 1, axis as i64, 2)?));
    }
    // Slices of pairs are read faster than strided ones.
    let entries = x.ty().shape.entries().enumerate();
    let split = entries.flat_map(|(at, (size, name))| match at == axis {
        true => vec![(size / 2, name), (2, None)],
        false => vec![(size, name)],
    });
    let pairs = ops.reshape_to(x, Shape::from_axes(split))?;
    let mut half = |at| {
        let part = slice(ops, &pairs, at, 1, axis + 1)?;
        ops.squeeze(part, axis as i64 + 1)
    };
    Ok((half(0)?, half(1)?))
}

/// The first element of `before`, then those of `odd` and `even` in turn.
fn joined(ops: &mut Ops, before: &Tensor, even: &Tensor, odd: &Tensor, axis: usize) -> Result<Tensor> {
    let pairs = size(odd, axis);
    let first = slice(ops, before, 0, 1, axis)?;
    let rest = slice(ops, even, 0, pairs - 1, axis)?;
    let left = ops.concatenate(&[first, rest], axis as i64)?;
    let both = ops.stack(&[left, odd.clone()], axis as i64 + 1, None)?;
    let entries = both.ty().shape.entries().enumerate().filter(|(at, _)| *at != axis + 1);
    let merged = entries.map(|(at, (size, name))| if at == axis { (2 * size, name) } else { (size, name) });
    let both = ops.reshape_to(&both, Shape::from_axes(merged))?;
    if size(even, axis) < pairs {
        return Ok(both);
    }
    let last = slice(ops, even, pairs - 1, 1, axis)?;
    ops.concatenate(&[both, last], axis as i64)
}
