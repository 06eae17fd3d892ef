//! The layout of an operand for a reduction.

use defn_core::Axis;
use smallvec::SmallVec;

use crate::kernels::shape::Layout;
use crate::kernels::{StridedView, TILE};

/// Elements of a chunk. It does not depend on the number of threads, and so neither do results.
pub(crate) const CHUNK: usize = 64 * TILE;

/// From this number on, contiguous kept elements are reduced as columns.
pub(crate) const MIN_INNER: usize = 8;

/// An operand seen as `[outer][reduced][inner]`: for each outer and inner index, all elements along `reduced` are
/// reduced. The result's order is `[outer][inner]`.
#[derive(Clone, Debug)]
pub(crate) struct ReductionLayout {
    outer: usize,
    reduced: usize,
    inner: usize,
    sizes: SmallVec<[usize; 6]>,
    strides: SmallVec<[isize; 6]>,
}

impl ReductionLayout {
    /// The layout of `sizes` for a reduction over `axes`. Axes of one element make no difference.
    pub(crate) fn new(sizes: &[usize], axes: &[Axis]) -> ReductionLayout {
        let layout = Layout::contiguous(sizes);
        let reduces = |axis: usize| sizes[axis] != 1 && axes.iter().any(|reduced| reduced.index() == axis);
        let rank = sizes.len();
        // Trailing kept axes, if they are wide enough together; the others are moved to the front.
        let mut first_inner = (0..rank).rev().find(|&axis| reduces(axis)).map_or(rank, |axis| axis + 1);
        if sizes[first_inner..].iter().product::<usize>() < MIN_INNER {
            first_inner = rank;
        }
        let parts = [
            (0..first_inner).filter(|&axis| !reduces(axis)).collect::<SmallVec<[usize; 6]>>(),
            (0..first_inner).filter(|&axis| reduces(axis)).collect(),
            (first_inner..rank).collect(),
        ];
        let count = |part: &[usize]| part.iter().map(|&axis| sizes[axis]).product();
        let order = parts.iter().flatten();
        ReductionLayout {
            outer: count(&parts[0]),
            reduced: count(&parts[1]),
            inner: count(&parts[2]),
            sizes: order.clone().map(|&axis| sizes[axis]).collect(),
            strides: order.map(|&axis| layout.strides[axis]).collect(),
        }
    }

    /// Whether that order is the one in memory.
    pub(crate) fn is_in_order(&self) -> bool {
        let count = self.sizes.iter().product();
        StridedView::strided(0, &self.sizes, &self.strides) == StridedView::strided(0, &[count], &[1])
    }

    /// The size of each axis that has several elements, and how many elements one step of it passes.
    pub(crate) fn axes(&self) -> impl Iterator<Item = (usize, usize)> {
        let axes = self.sizes.iter().zip(&self.strides);
        axes.filter(|(size, _)| **size != 1).map(|(&size, &stride)| (size, stride as usize))
    }

    /// How many elements there are: outer, reduced and inner ones.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        (self.outer, self.reduced, self.inner)
    }
}
