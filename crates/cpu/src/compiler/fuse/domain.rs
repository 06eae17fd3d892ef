//! Iteration domains: the axes that all operands of a nest have strides along.

use smallvec::SmallVec;

use super::pieces::chunk;
use super::short::LANES;
use crate::kernels::reduce::ReductionLayout;
use crate::kernels::{StridedView, TILE};

/// The most elements of short rows across which lanes reduce: each takes as many registers as a tile has vectors.
const MAX_ACROSS: usize = 4;

/// The elements that a nest is about, in groups: a reduction makes one element of each.
///
/// They are seen as `[outer][reduced][inner]`: a group has `reduced` elements, `inner` apart. A nest without reductions
/// has one element in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Domain {
    pub(in super::super) outer: usize,
    pub(in super::super) reduced: usize,
    pub(in super::super) inner: usize,
    /// Where this is not the order of the elements: the size of each axis, and how many elements one step of it passes.
    reordered: SmallVec<[(usize, usize); 6]>,
    /// Whether groups are apart in memory, but reduced in the order of rows.
    pub(super) is_turned: bool,
}

impl Domain {
    /// A domain in the order of its elements.
    pub(in super::super) fn in_order(outer: usize, reduced: usize, inner: usize) -> Domain {
        Domain { outer, reduced, inner, reordered: SmallVec::new(), is_turned: false }
    }

    /// The domain of element-wise ops.
    pub(in super::super) fn of_elements(count: usize) -> Domain {
        Domain::in_order(count, 1, 1)
    }

    /// The domain of a reduction.
    pub(in super::super) fn of_reduction(layout: &ReductionLayout) -> Domain {
        let (outer, reduced, inner) = layout.sizes();
        let reordered = if layout.is_in_order() { SmallVec::new() } else { layout.axes().collect() };
        Domain { outer, reduced, inner, reordered, is_turned: false }
    }

    /// That of a reduction of rows in order, of which so many lie beside each other in memory.
    pub(in super::super) fn turned(&self, columns: usize) -> Domain {
        let (outer, reduced) = (self.outer / columns, self.reduced);
        let axes = [(outer, columns * reduced), (reduced, 1), (columns, reduced)];
        let reordered = axes.into_iter().filter(|&(size, _)| size > 1).collect();
        Domain { outer, reduced, inner: columns, reordered, is_turned: true }
    }

    /// Whether its order is that of its elements.
    pub(in super::super) fn is_in_order(&self) -> bool {
        self.reordered.is_empty()
    }

    /// Whether its groups are rows that are reduced in pieces.
    pub(in super::super) fn is_long(&self) -> bool {
        self.inner == 1 && self.reduced > chunk()
    }

    /// How many neighbours a reduction joins that goes across the short rows of a nest, element by element, if lanes can:
    /// there are enough of them to fill a vector, and no more than one tile has.
    pub(in super::super) fn across(&self, rows: &Domain) -> Option<usize> {
        let is_of_rows = rows.is_in_order() && rows.inner == 1 && self.inner == 1;
        let [.., (length, 1), (neighbours, step)] = self.reordered[..] else { return None };
        let is_across = length == rows.reduced && step == length && neighbours == self.reduced;
        let fits = length <= MAX_ACROSS && (LANES..=TILE).contains(&neighbours);
        (is_of_rows && is_across && fits && self.elements() == rows.elements()).then_some(neighbours)
    }

    /// A view of all elements, in the order of the domain. None if its axes do not fit.
    pub(super) fn in_reduction_order(&self, view: StridedView) -> Option<StridedView> {
        if self.is_in_order() {
            return Some(view);
        }
        let mut axes = Axes::new(self.elements());
        for &(size, step) in &self.reordered {
            axes.divide(step);
            axes.divide(step * size);
        }
        axes.add(&view);
        let sizes = axes.sizes()?;
        let strides = strides_along(&view, &sizes);
        let mut step = self.elements();
        let steps: SmallVec<[usize; 6]> = sizes
            .iter()
            .map(|size| {
                step /= size;
                step
            })
            .collect();
        let (mut own, mut along): (Sizes, SmallVec<[isize; 6]>) = Default::default();
        for &(size, step) in &self.reordered {
            for axis in (0..sizes.len()).filter(|&axis| (step..step * size).contains(&steps[axis])) {
                own.push(sizes[axis]);
                along.push(strides[axis]);
            }
        }
        Some(StridedView::strided(view.offset(), &own, &along))
    }

    pub(in super::super) fn elements(&self) -> usize {
        self.outer * self.reduced * self.inner
    }

    /// How many groups there are.
    pub(in super::super) fn groups(&self) -> usize {
        self.outer * self.inner
    }

    /// Whether a view gives each element what its group has, of values that lie in the order of groups.
    pub(in super::super) fn is_per_group(&self, view: StridedView) -> bool {
        let &Domain { outer, reduced, inner, .. } = self;
        self.in_reduction_order(view).is_some_and(|view| {
            view == StridedView::strided(0, &[outer, reduced, inner], &[inner as isize, 0, 1])
        })
    }
}

/// Sizes of axes, outermost first.
pub(in super::super) type Sizes = SmallVec<[usize; 4]>;

/// Collects the axes of a domain.
#[derive(Clone)]
pub(super) struct Axes {
    elements: usize,
    /// How many elements one step of an axis passes.
    steps: SmallVec<[usize; 6]>,
}

impl Axes {
    /// A domain of so many elements, along one axis so far.
    pub(super) fn new(elements: usize) -> Axes {
        Axes { elements, steps: SmallVec::from_slice(&[1, elements]) }
    }

    /// Divides the elements into rows of `length`.
    pub(super) fn divide(&mut self, length: usize) {
        self.steps.push(length);
    }

    /// Adds the axes of a view of all elements.
    pub(super) fn add(&mut self, view: &StridedView) {
        let mut step = 1;
        for &(size, _) in view.dims().iter().rev() {
            self.steps.push(step);
            step *= size;
        }
    }

    /// Adds the axes of a view of the groups.
    pub(super) fn add_per_group(&mut self, view: &StridedView, domain: &Domain) {
        let mut step = 1;
        for &(size, _) in view.dims().iter().rev() {
            self.steps.push(if step < domain.inner { step } else { step * domain.reduced });
            step *= size;
        }
    }

    /// The fewest axes along which each of the views has strides; at least one. None if two views divide the elements
    /// so that no axes fit both.
    pub(super) fn sizes(mut self) -> Option<Sizes> {
        self.steps.sort_unstable();
        self.steps.dedup();
        debug_assert_eq!(self.steps.last(), Some(&self.elements));
        let pairs = self.steps.windows(2);
        let mut sizes: Sizes =
            pairs.map(|pair| if pair[1] % pair[0] == 0 { pair[1] / pair[0] } else { 0 }).collect();
        if sizes.contains(&0) {
            return None;
        }
        sizes.reverse();
        if sizes.is_empty() {
            sizes.push(1);
        }
        Some(sizes)
    }
}

/// The strides of a view along such axes, in elements.
pub(super) fn strides_along(view: &StridedView, sizes: &[usize]) -> SmallVec<[isize; 6]> {
    let mut strides: SmallVec<[isize; 6]> = SmallVec::new();
    let mut dims = view.dims().iter().rev().copied();
    let mut open = dims.next();
    // How many elements the axes of the view's open axis have passed.
    let mut passed = 1;
    for &size in sizes.iter().rev() {
        let Some((own, stride)) = open else {
            strides.push(0);
            continue;
        };
        strides.push(stride * passed as isize);
        passed *= size;
        if passed >= own {
            (open, passed) = (dims.next(), 1);
        }
    }
    strides.reverse();
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common_axes(elements: usize, views: &[&StridedView]) -> Option<Sizes> {
        let mut axes = Axes::new(elements);
        views.iter().for_each(|view| axes.add(view));
        axes.sizes()
    }

    #[test]
    fn axes_are_those_of_all_views() {
        let whole = StridedView::strided(0, &[4, 6], &[6, 1]);
        let rows = StridedView::strided(0, &[4, 6], &[1, 0]);
        let columns = StridedView::strided(3, &[4, 6], &[0, 1]);
        let reordered = StridedView::strided(0, &[4, 2, 3], &[1, 20, 4]);
        assert_eq!(common_axes(24, &[&whole]).unwrap().as_slice(), [24]);
        assert_eq!(common_axes(24, &[&whole, &rows]).unwrap().as_slice(), [4, 6]);
        let sizes = common_axes(24, &[&whole, &rows, &columns, &reordered]).unwrap();
        assert_eq!(sizes.as_slice(), [4, 2, 3]);
        assert_eq!(strides_along(&whole, &sizes).as_slice(), [6, 3, 1]);
        assert_eq!(strides_along(&rows, &sizes).as_slice(), [1, 0, 0]);
        assert_eq!(strides_along(&columns, &sizes).as_slice(), [0, 3, 1]);
        assert_eq!(strides_along(&reordered, &sizes).as_slice(), [1, 20, 4]);
        // 6 elements as 2 by 3 and as 3 by 2.
        let two = StridedView::strided(0, &[2, 3], &[1, 2]);
        let three = StridedView::strided(0, &[3, 2], &[1, 3]);
        assert_eq!(common_axes(6, &[&two, &three]), None);
        assert_eq!(common_axes(1, &[]).unwrap().as_slice(), [1]);
    }

    #[test]
    fn rows_divide_a_domain() {
        // One element for each row of 6, in two groups of rows.
        let view = StridedView::strided(0, &[2, 2], &[1, 5]);
        let mut axes = Axes::new(24);
        axes.divide(6);
        axes.add_per_group(&view, &Domain::in_order(4, 6, 1));
        let sizes = axes.sizes().unwrap();
        assert_eq!(sizes.as_slice(), [2, 2, 6]);
        assert_eq!(strides_along(&view, &sizes[..2]).as_slice(), [1, 5]);
    }

    #[test]
    fn views_are_turned_to_the_order_of_a_reduction() {
        // [2][3][4] of which the first and the last axis are reduced.
        let reordered = SmallVec::from_slice(&[(3, 4), (2, 12), (4, 1)]);
        let domain = Domain { outer: 3, reduced: 8, inner: 1, reordered, is_turned: false };
        let whole = domain.in_reduction_order(StridedView::strided(0, &[24], &[1])).unwrap();
        assert_eq!(whole, StridedView::strided(0, &[3, 2, 4], &[4, 12, 1]));
        let last = domain.in_reduction_order(StridedView::strided(1, &[6, 4], &[0, 1])).unwrap();
        assert_eq!(last, StridedView::strided(1, &[6, 4], &[0, 1]));
        assert_eq!(domain.in_reduction_order(StridedView::strided(0, &[8, 3], &[3, 0])), None);
    }

    #[test]
    fn groups_have_their_elements_apart() {
        // 2 outer, 5 reduced, 6 inner; the view has other values for each half of a row.
        let domain = Domain::in_order(2, 5, 6);
        let view = StridedView::strided(0, &[2, 2, 3], &[1, 2, 0]);
        let mut axes = Axes::new(60);
        axes.divide(6);
        axes.divide(30);
        axes.add_per_group(&view, &domain);
        assert_eq!(axes.sizes().unwrap().as_slice(), [2, 5, 2, 3]);
        assert_eq!(strides_along(&view, &[2, 2, 3]).as_slice(), [1, 2, 0]);
        let sums = StridedView::strided(0, &[2, 5, 6], &[6, 0, 1]);
        assert!(domain.is_per_group(sums));
        assert!(!domain.is_per_group(StridedView::strided(0, &[2, 5, 6], &[30, 6, 1])));
    }
}
