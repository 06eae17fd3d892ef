//! Iteration domains: the axes that all operands of a nest have strides along.

use smallvec::SmallVec;

use crate::kernels::StridedView;

/// Sizes of axes, outermost first.
pub(super) type Sizes = SmallVec<[usize; 4]>;

/// Collects the axes of a domain.
pub(super) struct Axes {
    elements: usize,
    /// How many elements one step of an axis passes.
    steps: SmallVec<[usize; 8]>,
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

    /// Adds the axes of a view, each of whose elements is for `run` elements of the domain.
    pub(super) fn add(&mut self, view: &StridedView, run: usize) {
        let mut step = run;
        for &(size, _) in view.dims().iter().rev() {
            self.steps.push(step);
            step *= size;
        }
    }

    /// The fewest axes along which each of the views has strides; at least one. None if two views divide the elements so
    /// that no axes fit both.
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
pub(super) fn strides_along(view: &StridedView, sizes: &[usize]) -> SmallVec<[isize; 4]> {
    let mut strides: SmallVec<[isize; 4]> = SmallVec::new();
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
        views.iter().for_each(|view| axes.add(view, 1));
        axes.sizes()
    }

    #[test]
    fn axes_are_those_of_all_views() {
        let whole = StridedView::strided(0, &[4, 6], &[6, 1]);
        let rows = StridedView::strided(0, &[4, 6], &[1, 0]);
        let columns = StridedView::strided(3, &[4, 6], &[0, 1]);
        let turned = StridedView::strided(0, &[4, 2, 3], &[1, 12, 4]);
        assert_eq!(common_axes(24, &[&whole]).unwrap().as_slice(), [24]);
        assert_eq!(common_axes(24, &[&whole, &rows]).unwrap().as_slice(), [4, 6]);
        let sizes = common_axes(24, &[&whole, &rows, &columns, &turned]).unwrap();
        assert_eq!(sizes.as_slice(), [4, 2, 3]);
        assert_eq!(strides_along(&whole, &sizes).as_slice(), [6, 3, 1]);
        assert_eq!(strides_along(&rows, &sizes).as_slice(), [1, 0, 0]);
        assert_eq!(strides_along(&columns, &sizes).as_slice(), [0, 3, 1]);
        assert_eq!(strides_along(&turned, &sizes).as_slice(), [1, 12, 4]);
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
        axes.add(&view, 6);
        let sizes = axes.sizes().unwrap();
        assert_eq!(sizes.as_slice(), [2, 2, 6]);
        assert_eq!(strides_along(&view, &sizes[..2]).as_slice(), [1, 5]);
    }
}
