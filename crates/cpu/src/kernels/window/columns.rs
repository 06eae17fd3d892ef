//! The input elements under an element of the kernel.

use std::ops::Range;

use smallvec::SmallVec;

use super::ceil_div;
use super::conv::{Conv, Spatial};
use crate::kernels::Element;

type List = SmallVec<[usize; 4]>;

/// Iterates over places of the kernel in runs along the last spatial axis.
///
/// For one input channel and the kernel's element number `tap`, and each run `range` of the result's spatial positions,
/// counted from `places.start`: calls `zeros(range)` for places where this kernel element is over padding, and
/// `read(range, first, step)` for places where it is over input elements at distance `step`.
#[inline(always)]
pub(super) fn runs(
    conv: &Conv,
    tap: usize,
    places: Range<usize>,
    mut zeros: impl FnMut(Range<usize>),
    mut read: impl FnMut(Range<usize>, usize, usize),
) {
    let (last, leading) = conv.spatial.split_last().expect("there is a spatial axis");
    let mut offset: List = SmallVec::from_elem(0, leading.len());
    let mut rest = tap;
    let along = rest % last.kernel;
    rest /= last.kernel;
    for (offset, axis) in offset.iter_mut().zip(leading).rev() {
        *offset = rest % axis.kernel;
        rest /= axis.kernel;
    }
    let mut place = places.start;
    while place < places.end {
        let (line, first) = (place / last.out, place % last.out);
        let end = last.out.min(first + (places.end - place));
        let begin = place - places.start;
        let mut row = Some(0);
        let mut rest = line;
        for (&offset, axis) in offset.iter().zip(leading).rev() {
            let index = axis.position(rest % axis.out, offset);
            rest /= axis.out;
            row = row.zip(index).map(|(row, index)| row + index * axis.step);
        }
        match row {
            None => zeros(begin..begin + (end - first)),
            Some(row) => last.runs(along, first..end, |range, position| {
                let range = begin + (range.start - first)..begin + (range.end - first);
                match position {
                    None => zeros(range),
                    Some((position, step)) => read(range, row + position, step),
                }
            }),
        }
        place += end - first;
    }
}

impl Spatial {
    /// The input element under the kernel's element `offset` at a place, if there is one.
    fn position(&self, place: usize, offset: usize) -> Option<usize> {
        let dilated = (place * self.stride + offset * self.kernel_dilation) as i64 - self.low;
        let at = usize::try_from(dilated).ok()?;
        (at % self.input_dilation == 0 && at / self.input_dilation < self.size)
            .then_some(at / self.input_dilation)
    }

    /// Calls `run` for runs of places on this axis, with the first input element and the distance of the others, or
    /// with None.
    #[inline(always)]
    fn runs(
        &self,
        offset: usize,
        places: Range<usize>,
        mut run: impl FnMut(Range<usize>, Option<(usize, usize)>),
    ) {
        if self.input_dilation > 1 {
            for place in places {
                run(place..place + 1, self.position(place, offset).map(|at| (at, 1)));
            }
            return;
        }
        let shift = (offset * self.kernel_dilation) as i64 - self.low;
        let stride = self.stride as i64;
        let inside = |place: i64| place.clamp(places.start as i64, places.end as i64) as usize;
        let begin = inside(ceil_div(-shift, stride));
        let end = inside(ceil_div(self.size as i64 - shift, stride)).max(begin);
        if places.start < begin {
            run(places.start..begin, None);
        }
        if begin < end {
            run(begin..end, Some(((begin as i64 * stride + shift) as usize, self.stride)));
        }
        if end < places.end {
            run(end..places.end, None);
        }
    }
}

/// Writes the elements under the kernel's element `tap` at `places`; `x` is one input channel.
pub(super) fn fill_row<C: Element>(conv: &Conv, tap: usize, places: Range<usize>, x: &[C], row: &mut [C]) {
    let row = std::cell::RefCell::new(row);
    runs(
        conv,
        tap,
        places,
        |range| row.borrow_mut()[range].fill(C::ZERO),
        |range, first, step| {
            let out = &mut row.borrow_mut()[range];
            if step == 1 {
                let count = out.len();
                out.copy_from_slice(&x[first..first + count]);
            } else {
                for (out, &x) in out.iter_mut().zip(x[first..].iter().step_by(step)) {
                    *out = x;
                }
            }
        },
    );
}

/// Adds `weight` times the elements under the kernel's element `tap` at `places`.
pub(super) fn add_row<C: Element>(
    conv: &Conv,
    tap: usize,
    places: Range<usize>,
    x: &[C],
    weight: C,
    sums: &mut [C],
) {
    runs(
        conv,
        tap,
        places,
        |_| {},
        |range, first, step| {
            let out = &mut sums[range];
            if step == 1 {
                for (out, &x) in out.iter_mut().zip(&x[first..]) {
                    *out = out.plus(weight.times(x));
                }
            } else {
                for (out, &x) in out.iter_mut().zip(x[first..].iter().step_by(step)) {
                    *out = out.plus(weight.times(x));
                }
            }
        },
    );
}
