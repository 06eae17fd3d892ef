//! Direct convolution as a matrix product: the rows of the right operand are read in place, from the memory that the
//! kernel slides over, as in Georganas et al., "Anatomy of high-performance deep learning convolutions on SIMD
//! architectures" (2018).

use std::mem::MaybeUninit;
use std::ops::Range;

use super::tile::{Accumulation, GemmElement, Step};
use super::{DEPTH, GemmOutput, MIN_EPILOGUE_ROW, Operand, PARALLEL_WORK, Panels, blocks_of, tile};
use crate::par::Par;

/// The columns of a product: lines of output positions of a sliding kernel.
pub(crate) struct Lines<'a, C> {
    pub(crate) elements: &'a [C],
    /// Offsets, from the start of a line, of the elements under the kernel's elements at the line's first position in
    /// one channel. The elements for the next positions are contiguous with them.
    pub(crate) taps: &'a [usize],
    /// The number of channels and the stride between them.
    pub(crate) channels: (usize, usize),
    /// The number of lines and the positions of each.
    pub(crate) count: usize,
    pub(crate) width: usize,
    /// Maps a line to the position where its elements begin and to the offset of its first position in each result row.
    pub(crate) starts: &'a (dyn Fn(usize) -> (usize, usize) + Sync),
}

impl<C: GemmElement> Lines<'_, C> {
    /// The number of products that are summed in each element.
    fn depth(&self) -> usize {
        self.taps.len() * self.channels.0
    }

    /// The most elements that are read from the start of a line on.
    fn reach(&self) -> usize {
        let last = self.taps.iter().max().copied().unwrap_or(0);
        let (channels, channel_stride) = self.channels;
        last + (channels - 1) * channel_stride + self.width.next_multiple_of(C::kernels()[0].lanes)
    }

    /// The number of elements that [`multiply`](Lines::multiply) by a matrix of `m` rows needs for packing.
    pub(crate) fn scratch(m: usize, depth: usize) -> usize {
        m.next_multiple_of(C::kernels()[0].rows) * depth
    }

    /// Writes the product of a matrix of `m` rows and the elements under the kernel. The contracted axis lists the
    /// channels, and in each channel the kernel's elements.
    ///
    /// # Safety
    /// The result has `m` rows, a stride apart, that contain all lines. Lines do not overlap.
    ///
    /// # Panics
    /// When the matrix is smaller than its sizes, a line reaches beyond the elements, or `space` is less than
    /// [`scratch`](Lines::scratch) says.
    pub(crate) unsafe fn multiply(
        &self,
        m: usize,
        a: &dyn Operand<C>,
        out: GemmOutput<'_, C>,
        space: &mut [MaybeUninit<C>],
        par: Par,
    ) {
        let (kernels, depth, taps) = (C::kernels()[0], self.depth(), self.taps.len());
        assert!(a.holds(m, depth), "{m} by {depth} of a matrix that is smaller");
        let (high, wide) = (kernels.most_rows(), kernels.most_columns());
        // Parts of whole channels, as equal as possible.
        let channels = self.channels.0;
        let part_depth = channels.div_ceil(channels.div_ceil((DEPTH / taps).max(1))) * taps;
        let panels = Panels::new(space, (0..m, 0..depth), (kernels.rows, high), part_depth);
        par.for_chunks(panels.count().1, 8, |chunk| {
            for index in chunk {
                // SAFETY: each panel is written once, before any is read.
                unsafe { panels.write(kernels, a, index) };
            }
        });
        let reach = self.reach();
        let part_of = |part: usize, range: Range<usize>| {
            for line in range {
                let (from, to) = (self.starts)(line);
                assert!(
                    from + reach <= self.elements.len(),
                    "line {line} of {} elements",
                    self.elements.len()
                );
                // SAFETY: the caller guarantees it.
                let out = unsafe { out.from(to) };
                for columns in blocks_of(0..self.width, wide) {
                    for rows in blocks_of(0..m, high) {
                        let (a, a_step, depth) = panels.panel(part, rows.start / high);
                        let start = from + part * (part_depth / taps) * self.channels.1 + columns.start;
                        // SAFETY: it is inside by the assertion.
                        let b = unsafe { self.elements.as_ptr().add(start + self.taps[0]) };
                        // The rows of one channel are found by their offsets in `taps`.
                        let rows_per_step = if taps > 1 { taps } else { 0 };
                        let step = Step {
                            depth,
                            a: a.cast(),
                            a_row: 1,
                            a_step,
                            b: if taps > 1 { b.wrapping_sub(self.taps[0]) } else { b },
                            b_step: self.channels.1,
                            row_offsets: self.taps.as_ptr(),
                            rows_per_step,
                            next: b,
                            out: out.start(),
                            out_row: out.stride(),
                            accumulation: if part == 0 { Accumulation::Nothing } else { Accumulation::Plus },
                        };
                        // SAFETY: the tile is inside the line, which no other thread uses, and the panels are written.
                        unsafe { tile(kernels, &out, step, rows, columns.clone()) };
                    }
                }
            }
        };
        // The epilogue is faster on long parts of rows.
        let least = if out.has_epilogue() { MIN_EPILOGUE_ROW.div_ceil(self.width) } else { 1 };
        let grain = (PARALLEL_WORK / (m * depth * self.width)).max(least);
        par.for_chunks(self.count, grain, |chunk| {
            (0..depth.div_ceil(part_depth)).for_each(|part| part_of(part, chunk.clone()));
            if !out.has_epilogue() {
                return;
            }
            // Lines that are contiguous in the result are joined into one.
            let (mut start, mut columns) = (0, 0);
            for line in chunk {
                let (_, to) = (self.starts)(line);
                if columns > 0 && to != start + columns {
                    // SAFETY: a line begins there.
                    unsafe { out.from(start) }.complete(&(0..m), &(0..columns));
                    columns = 0;
                }
                if columns == 0 {
                    start = to;
                }
                columns += self.width;
            }
            // SAFETY: as above.
            unsafe { out.from(start) }.complete(&(0..m), &(0..columns));
        });
    }
}
