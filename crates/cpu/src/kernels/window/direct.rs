//! Direct convolutions, whose kernel slides over the input or over a zero-padded copy. The input elements under one
//! kernel element at neighbouring places are contiguous there, so that no columns are needed. If the last axis has a
//! stride, the copy stores each residue modulo the stride as a separate part.

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::ceil_div;
use super::conv::{Conv, Spatial};
use super::patches::Weights;
use crate::kernels::SendPtr;
use crate::kernels::linalg::gemm::{GemmElement, GemmOutput, Lines};
use crate::kernels::simd::vectorized;
use crate::par::Par;

/// The most kernel elements in a channel.
const TAPS: usize = 64;

/// The elements of items that are copied at once, if more than one item is.
const ITEMS: usize = 1 << 20;

/// The most elements of an item that is copied.
const LARGEST: usize = 1 << 22;

/// Elements behind the copies: tiles read beyond the last place.
const BEHIND: usize = 32;

/// Elements that are copied in a chunk.
const COPY_GRAIN: usize = 1 << 14;

/// The plan of a direct convolution.
pub(super) struct DirectConv<'c> {
    conv: &'c Conv,
    /// If the input is copied: the rows of the leading axes, and the number of parts of the last one.
    copied: Option<(SmallVec<[usize; 3]>, usize)>,
    /// The row stride of each leading axis, and the length of a part of the last axis.
    steps: SmallVec<[usize; 3]>,
    line: usize,
    /// The strides of items and of channels.
    item: usize,
    channel: usize,
    /// Items that are copied at once.
    items: usize,
}

impl Spatial {
    /// The number of input elements, padding included, under the kernel at all places.
    fn reach(&self) -> usize {
        let out_positions = (self.out - 1).saturating_mul(self.stride);
        out_positions.saturating_add((self.kernel - 1).saturating_mul(self.kernel_dilation)).saturating_add(1)
    }
}

impl DirectConv<'_> {
    /// The plan, if it pays with vectors of `lanes` elements.
    pub(super) fn of(conv: &Conv, lanes: usize) -> Option<DirectConv<'_>> {
        let (last, leading) = conv.spatial.split_last()?;
        let taps = conv.taps();
        if conv.rows() == 0 || conv.out_positions() == 0 || conv.batch == 0 || taps > TAPS {
            return None;
        }
        // Vectors must be nearly full.
        let is_full = last.out * 8 >= last.out.next_multiple_of(lanes) * 7;
        if !is_full || conv.spatial.iter().any(|axis| axis.input_dilation > 1) {
            return None;
        }
        let inside = |axis: &Spatial| axis.low == 0 && axis.reach() <= axis.size;
        if conv.spatial.iter().all(inside) && last.stride == 1 && last.out.is_multiple_of(lanes) {
            let steps = leading.iter().map(|axis| axis.step).collect();
            let (item, channel) = conv.input;
            return Some(DirectConv { conv, copied: None, steps, line: 0, item, channel, items: conv.batch });
        }
        let reach = (last.kernel - 1).saturating_mul(last.kernel_dilation);
        let phases = last.stride.min(reach.saturating_add(1));
        let line = last.out.saturating_add(reach / last.stride);
        let rows: SmallVec<[usize; 3]> = leading.iter().map(Spatial::reach).collect();
        let mut steps: SmallVec<[usize; 3]> = SmallVec::from_elem(0, leading.len());
        let mut channel = phases.saturating_mul(line);
        for (step, rows) in steps.iter_mut().zip(&rows).rev() {
            *step = channel;
            channel = channel.saturating_mul(*rows);
        }
        let item = channel.saturating_mul(conv.depth);
        let items = (ITEMS / item.max(1)).clamp(1, conv.batch);
        (item <= LARGEST).then_some(DirectConv {
            conv,
            copied: Some((rows, phases)),
            steps,
            line,
            item,
            channel,
            items,
        })
    }

    /// Elements of the copy.
    fn copied_len(&self) -> usize {
        if self.copied.is_some() { self.items * self.item + BEHIND } else { 0 }
    }

    /// The number of scratch elements of [`run`](DirectConv::run).
    pub(super) fn scratch<C: GemmElement>(&self) -> usize {
        self.copied_len() + Lines::<C>::scratch(self.conv.features, self.conv.rows())
    }

    /// The offsets of the kernel's elements from a line's start, in a channel.
    fn taps(&self) -> SmallVec<[usize; 16]> {
        let (last, leading) = self.conv.spatial.split_last().expect("there is a spatial axis");
        (0..self.conv.taps())
            .map(|tap| {
                let along = tap % last.kernel * last.kernel_dilation;
                let mut offset = match self.copied {
                    Some(_) => along % last.stride * self.line + along / last.stride,
                    None => along,
                };
                let mut rest = tap / last.kernel;
                for (axis, step) in leading.iter().zip(&self.steps).rev() {
                    offset += rest % axis.kernel * axis.kernel_dilation * step;
                    rest /= axis.kernel;
                }
                offset
            })
            .collect()
    }

    /// Writes the convolution of a group, at whose first elements the slices begin.
    ///
    /// # Safety
    /// The result has room for it at the convolution's strides, and no other code uses that memory.
    pub(super) unsafe fn run<C: GemmElement>(
        &self,
        input: &[C],
        weights: &Weights<'_, C>,
        out: GemmOutput<'_, C>,
        space: &mut [MaybeUninit<C>],
        par: Par,
    ) {
        let conv = self.conv;
        let (last, leading) = conv.spatial.split_last().expect("there is a spatial axis");
        let taps = self.taps();
        let lines = conv.out_positions() / last.out;
        let starts = |index: usize| {
            let (item, line) = (index / lines, index % lines);
            let (mut from, mut rest) = (item * self.item, line);
            for (axis, step) in leading.iter().zip(&self.steps).rev() {
                from += rest % axis.out * axis.stride * step;
                rest /= axis.out;
            }
            (from, item * conv.out.0 + line * last.out)
        };
        let (copies, space) = space.split_at_mut(self.copied_len());
        for first in (0..conv.batch).step_by(self.items) {
            let items = first..conv.batch.min(first + self.items);
            let elements = match &self.copied {
                Some((rows, phases)) => {
                    self.copy(input, items.clone(), (rows, *phases), copies, par);
                    // SAFETY: these items were written, and so was the space behind them.
                    unsafe { copies[..items.len() * self.item + BEHIND].assume_init_ref() }
                }
                None => &input[first * self.item..],
            };
            let sliding = Lines {
                elements,
                taps: &taps,
                channels: (conv.depth, self.channel),
                count: items.len() * lines,
                width: last.out,
                starts: &starts,
            };
            // SAFETY: the caller's promise; lines of items and features are disjoint.
            unsafe {
                let out = out.from(first * conv.out.0);
                sliding.multiply(conv.features, weights, out, space, par);
            }
        }
    }

    /// Copies items with zero padding.
    fn copy<C: GemmElement>(
        &self,
        input: &[C],
        items: Range<usize>,
        (rows, phases): (&[usize], usize),
        to: &mut [MaybeUninit<C>],
        par: Par,
    ) {
        let conv = self.conv;
        let (last, leading) = conv.spatial.split_last().expect("there is a spatial axis");
        let (long, all): (usize, usize) = (phases * self.line, rows.iter().product());
        let count = items.len() * self.item;
        to[count..count + BEHIND].fill(MaybeUninit::new(C::EMPTY_SUM));
        assert!(count == items.len() * conv.depth * all * long, "whole rows");
        let to = SendPtr::of(to);
        par.for_chunks(count / long, COPY_GRAIN.div_ceil(long), |chunk| {
            for index in chunk {
                let (plane, mut rest) = (index / all, index % all);
                let (item, channel) = (items.start + plane / conv.depth, plane % conv.depth);
                let mut row = Some(item * conv.input.0 + channel * conv.input.1);
                for (axis, rows) in leading.iter().zip(rows).rev() {
                    let at = usize::try_from((rest % rows) as i64 - axis.low).ok();
                    let at = at.filter(|at| *at < axis.size);
                    row = row.zip(at).map(|(row, at)| row + at * axis.step);
                    rest /= rows;
                }
                let from = row.map_or(&[][..], |row| &input[row..][..last.size]);
                // SAFETY: the row is in bounds, and belongs to one chunk.
                let to = unsafe { to.part(index * long, long) };
                copy_row(from, last.low, last.stride, self.line, to);
            }
        });
    }
}

vectorized! {
    /// Writes a zero-padded row in parts of `phase_len` elements, one for each residue modulo the stride.
    fn copy_row[C: GemmElement] of [C] (
        from: &[C],
        low: i64,
        stride: usize,
        phase_len: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        for (phase, to) in to.chunks_exact_mut(phase_len).enumerate() {
            // The position of the part's first element, which may be out of bounds.
            let start = phase as i64 - low;
            let bound = |at: i64| ceil_div(at - start, stride as i64).clamp(0, phase_len as i64) as usize;
            let (first, stop) = (bound(0), bound(from.len() as i64));
            to[..first].fill(MaybeUninit::new(C::EMPTY_SUM));
            to[stop.max(first)..].fill(MaybeUninit::new(C::EMPTY_SUM));
            if stop <= first {
                continue;
            }
            let from = &from[(start + (first * stride) as i64) as usize..];
            let to = &mut to[first..stop];
            if stride == 1 {
                to.write_copy_of_slice(&from[..to.len()]);
            } else if stride == 2 {
                let (pairs, rest) = from.as_chunks::<2>();
                for (to, &[x, _]) in to.iter_mut().zip(pairs) {
                    to.write(x);
                }
                if let (Some(to), Some(&x)) = (to.get_mut(pairs.len()), rest.first()) {
                    to.write(x);
                }
            } else {
                for (to, &x) in to.iter_mut().zip(from.iter().step_by(stride)) {
                    to.write(x);
                }
            }
        }
    }
}
