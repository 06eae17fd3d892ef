//! The input elements under an element of the kernel.

use std::ops::Range;

use smallvec::SmallVec;

use super::ceil_div;
use super::conv::{Conv, Spatial};
use crate::kernels::Element;

type List = SmallVec<[usize; 4]>;

/// Iterates over positions of the kernel in runs along the last spatial axis.
///
/// For one input channel and the kernel's element number `tap`, and each run `range` of the result's spatial positions,
/// counted from `out_positions.start`: calls `zeros(range)` for positions where this kernel element is over padding, and
/// `read(range, first, step)` for positions where it is over input elements at distance `step`.
#[inline(always)]
pub(super) fn runs(
    conv: &Conv,
    tap: usize,
    out_positions: Range<usize>,
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
    let mut out_position = out_positions.start;
    while out_position < out_positions.end {
        let (line, first) = (out_position / last.out, out_position % last.out);
        let end = last.out.min(first + (out_positions.end - out_position));
        let begin = out_position - out_positions.start;
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
        out_position += end - first;
    }
}

impl Spatial {
    /// The input element under the kernel's element `offset` at a place, if there is one.
    fn position(&self, out_position: usize, offset: usize) -> Option<usize> {
        let dilated = (out_position * self.stride + offset * self.kernel_dilation) as i64 - self.low;
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
        out_positions: Range<usize>,
        mut run: impl FnMut(Range<usize>, Option<(usize, usize)>),
    ) {
        if self.input_dilation > 1 {
            for out_position in out_positions {
                run(out_position..out_position + 1, self.position(out_position, offset).map(|at| (at, 1)));
            }
            return;
        }
        let shift = (offset * self.kernel_dilation) as i64 - self.low;
        let stride = self.stride as i64;
        let inside = |out_position: i64| {
            out_position.clamp(out_positions.start as i64, out_positions.end as i64) as usize
        };
        let begin = inside(ceil_div(-shift, stride));
        let end = inside(ceil_div(self.size as i64 - shift, stride)).max(begin);
        if out_positions.start < begin {
            run(out_positions.start..begin, None);
        }
        if begin < end {
            run(begin..end, Some(((begin as i64 * stride + shift) as usize, self.stride)));
        }
        if end < out_positions.end {
            run(end..out_positions.end, None);
        }
    }
}

/// Writes the elements under the kernel's element `tap` at `out_positions`; `x` is one input channel.
pub(super) fn fill_row<C: Element>(
    conv: &Conv,
    tap: usize,
    out_positions: Range<usize>,
    x: &[C],
    row: &mut [C],
) {
    let row = std::cell::RefCell::new(row);
    runs(
        conv,
        tap,
        out_positions,
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

/// Adds `weight` times the elements under the kernel's element `tap` at `out_positions`.
pub(super) fn add_row<C: Element>(
    conv: &Conv,
    tap: usize,
    out_positions: Range<usize>,
    x: &[C],
    weight: C,
    sums: &mut [C],
) {
    runs(
        conv,
        tap,
        out_positions,
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
