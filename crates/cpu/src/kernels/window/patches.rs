//! The input elements under a kernel at each of its places, as an implicit matrix: products pack parts of it where they
//! need them (implicit GEMM: Chetlur et al., "cuDNN: efficient primitives for deep learning", 2014).

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::ceil_div;
use super::conv::{Conv, Spatial};
use crate::kernels::linalg::gemm::{self, GemmElement, Kernels, Matrix, Operand};
use crate::kernels::simd::vectorized;

/// Elements that are copied at once. The next copy overwrites those beyond the count.
const RUN: usize = 16;

/// The most elements of a panel's row.
const WIDTH: usize = 32;

/// The most pieces of rows that are stored for use in all channels.
const MAX_STORED_PIECES: usize = 384;

/// Elements of a column that are read before they are transposed into a panel.
const STAGE: usize = 64;

/// The number of kernel elements from which on columns are read instead of rows, if a row of places is shorter.
const COLUMN_PACKING_TAPS: usize = 8;

/// The matrix: its columns are the places of all items of a batch, its rows the kernel elements in all channels of a
/// group.
#[derive(Clone, Copy)]
pub(super) struct Patches<'a, C> {
    pub(super) conv: &'a Conv,
    /// The input from the group's first element on.
    pub(super) input: &'a [C],
}

/// Contiguous places of a row of places.
#[derive(Clone, Copy, Default)]
struct OutputRun {
    /// The first of them in the panel, and their number.
    at: u32,
    count: u32,
    /// The offset of the item.
    item: usize,
    /// The start of the kernel on the last axis.
    start: i64,
}

/// Contiguous elements of a row of a panel: zeros, or input elements of a channel.
#[derive(Clone, Copy, Default)]
struct RowPiece {
    at: u32,
    count: u32,
    /// [`ZEROS`], or the position of the first element.
    from: usize,
}

/// Contiguous elements of the kernel in a channel, along its last axis.
#[derive(Clone, Copy, Default)]
struct TapRun {
    /// The first of them in a stage, and on the kernel's last axis.
    at: usize,
    tap: usize,
    /// The offset of the channel.
    channel: usize,
}

/// The position of zeros.
const ZEROS: usize = usize::MAX;

/// The start of the kernel on the leading axes.
type Corners = SmallVec<[i64; 2 * WIDTH]>;

/// The position in `input` of the kernel element at distance `start` from the start of the axis, if it is inside.
#[inline(always)]
fn position(axis: &Spatial, start: i64) -> Option<usize> {
    let at = usize::try_from(start).ok()?;
    if axis.input_dilation == 1 {
        return (at < axis.size).then_some(at);
    }
    (at % axis.input_dilation == 0 && at / axis.input_dilation < axis.size).then(|| at / axis.input_dilation)
}

/// Copies `count` elements, or more if both sides have more, which is faster.
#[inline(always)]
fn copy<C: Copy>(from: &[C], to: &mut [MaybeUninit<C>], count: usize) {
    if let (Some(from), Some(to)) = (from.first_chunk::<WIDTH>(), to.first_chunk_mut::<WIDTH>())
        && count > RUN
    {
        *to = from.map(MaybeUninit::new);
        return;
    }
    let mut done = 0;
    while done < count {
        let (source, target) = (&from[done..], &mut to[done..]);
        match (source.first_chunk::<RUN>(), target.first_chunk_mut::<RUN>()) {
            (Some(source), Some(target)) => *target = source.map(MaybeUninit::new),
            (_, _) => {
                let count = (count - done).min(RUN);
                target[..count].write_copy_of_slice(&source[..count]);
            }
        }
        done += RUN;
    }
}

/// Writes `count` zeros, or more if there is room.
#[inline(always)]
fn clear<C: GemmElement>(to: &mut [MaybeUninit<C>], count: usize) {
    let mut done = 0;
    while done < count {
        match to[done..].first_chunk_mut::<RUN>() {
            Some(target) => *target = [MaybeUninit::new(C::EMPTY_SUM); RUN],
            None => to[done..count].fill(MaybeUninit::new(C::EMPTY_SUM)),
        }
        done += RUN;
    }
}

impl Conv {
    /// The places of a panel in runs along the last axis, and the corner of each.
    fn lines(&self, columns: Range<usize>, corners: &mut Corners) -> ([OutputRun; WIDTH], usize) {
        let (last, leading) = self.spatial.split_last().expect("there is a spatial axis");
        let out_positions = self.out_positions();
        let mut lines = [OutputRun::default(); WIDTH];
        let (mut count, mut column) = (0, columns.start);
        while column < columns.end {
            let (item, out_position) = (column / out_positions, column % out_positions);
            let (mut line, first) = (out_position / last.out, out_position % last.out);
            let run = (last.out - first).min(columns.end - column);
            let before = corners.len();
            corners.resize(before + leading.len(), 0);
            for (corner, axis) in corners[before..].iter_mut().zip(leading).rev() {
                *corner = (line % axis.out * axis.stride) as i64 - axis.low;
                line /= axis.out;
            }
            lines[count] = OutputRun {
                at: (column - columns.start) as u32,
                count: run as u32,
                item: item * self.input.0,
                start: (first * last.stride) as i64 - last.low,
            };
            count += 1;
            column += run;
        }
        (lines, count)
    }

    /// The pieces of each line for one kernel element; stops when there is no room.
    ///
    /// Returns the number of pieces, or None if they are too many.
    fn pieces(
        &self,
        tap: usize,
        (lines, corners): (&[OutputRun], &Corners),
        width: usize,
        pieces: &mut [RowPiece],
    ) -> Option<usize> {
        let (last, leading) = self.spatial.split_last().expect("there is a spatial axis");
        let mut offsets: SmallVec<[i64; 4]> = SmallVec::from_elem(0, leading.len());
        let mut rest = tap / last.kernel;
        for (offset, axis) in offsets.iter_mut().zip(leading).rev() {
            *offset = (rest % axis.kernel * axis.kernel_dilation) as i64;
            rest /= axis.kernel;
        }
        let along = (tap % last.kernel * last.kernel_dilation) as i64;
        let mut count = 0;
        let mut add = |at: usize, end: usize, from: Option<usize>| {
            if at == end {
                return Some(());
            }
            let from = from.unwrap_or(ZEROS);
            *pieces.get_mut(count)? = RowPiece { at: at as u32, count: (end - at) as u32, from };
            count += 1;
            Some(())
        };
        let mut end = 0;
        for (index, line) in lines.iter().enumerate() {
            let (at, many) = (line.at as usize, line.count as usize);
            end = at + many;
            let corner = &corners[index * leading.len()..];
            let mut row = Some(line.item);
            for ((axis, &corner), &offset) in leading.iter().zip(corner).zip(&offsets) {
                row = row.zip(position(axis, corner + offset)).map(|(row, index)| row + index * axis.step);
            }
            let Some(row) = row else {
                add(at, end, None)?;
                continue;
            };
            let start = line.start + along;
            if last.input_dilation > 1 {
                for out_position in 0..many {
                    let input_position = position(last, start + (out_position * last.stride) as i64);
                    add(
                        at + out_position,
                        at + out_position + 1,
                        input_position.map(|input_position| row + input_position),
                    )?;
                }
                continue;
            }
            let (first, stop) = if last.stride == 1 {
                (-start, last.size as i64 - start)
            } else {
                let stride = last.stride as i64;
                (ceil_div(-start, stride), ceil_div(last.size as i64 - start, stride))
            };
            let first = first.clamp(0, many as i64) as usize;
            let stop = stop.clamp(first as i64, many as i64) as usize;
            add(at, at + first, None)?;
            if first < stop {
                let from = row + (start + (first * last.stride) as i64) as usize;
                add(at + first, at + stop, Some(from))?;
            }
            add(at + stop, end, None)?;
        }
        add(end, width, None)?;
        Some(count)
    }

    /// The kernel elements `first..first + depth`, of all channels, in runs along the kernel's last axis. Writes the
    /// offsets on the leading axes of each; returns their number.
    fn tap_runs(
        &self,
        first: usize,
        depth: usize,
        runs: &mut [TapRun; STAGE],
        offsets: &mut SmallVec<[i64; 32]>,
    ) -> usize {
        let (last, leading) = self.spatial.split_last().expect("there is a spatial axis");
        let taps = self.taps();
        let (mut many, mut at) = (0, 0);
        offsets.clear();
        while at < depth {
            let (channel, tap) = ((first + at) / taps, (first + at) % taps);
            let start = tap % last.kernel;
            runs[many] = TapRun { at, tap: start, channel: channel * self.input.1 };
            let before = offsets.len();
            offsets.resize(before + leading.len(), 0);
            let mut rest = tap / last.kernel;
            for (offset, axis) in offsets[before..].iter_mut().zip(leading).rev() {
                *offset = (rest % axis.kernel * axis.kernel_dilation) as i64;
                rest /= axis.kernel;
            }
            many += 1;
            at += last.kernel - start;
        }
        many
    }
}

impl<C: GemmElement> Patches<'_, C> {
    /// Writes a row of a panel; it may overwrite the beginning of the next.
    #[inline(always)]
    fn row(&self, pieces: &[RowPiece], channel: usize, to: &mut [MaybeUninit<C>]) {
        let step = self.conv.spatial.last().map_or(1, |last| last.stride);
        for piece in pieces {
            let (at, count) = (piece.at as usize, piece.count as usize);
            if piece.from == ZEROS {
                clear(&mut to[at..], count);
                continue;
            }
            let from = &self.input[channel + piece.from..];
            if step == 1 || count == 1 {
                copy(from, &mut to[at..], count);
            } else {
                for (to, &from) in to[at..at + count].iter_mut().zip(from.iter().step_by(step)) {
                    to.write(from);
                }
            }
        }
    }

    /// Packs a panel row by row.
    #[inline(always)]
    fn by_rows(&self, columns: Range<usize>, along: Range<usize>, width: usize, to: &mut [MaybeUninit<C>]) {
        let taps = self.conv.taps();
        let mut corners = Corners::new();
        let (lines, count) = self.conv.lines(columns, &mut corners);
        let lines = &lines[..count];
        let mut pieces = [RowPiece::default(); MAX_STORED_PIECES];
        // The ranges of the pieces of each kernel element, if there is room for all.
        let mut ends: SmallVec<[u16; 64]> = SmallVec::new();
        if along.len() > taps && taps < ends.inline_size() {
            let mut used = 0;
            for tap in 0..taps {
                let Some(count) = self.conv.pieces(tap, (lines, &corners), width, &mut pieces[used..]) else {
                    break;
                };
                used += count;
                ends.push(used as u16);
            }
        }
        let has_all_pieces = ends.len() == taps;
        let (mut channel, mut tap) = (along.start / taps * self.conv.input.1, along.start % taps);
        for index in 0..along.len() {
            let to = &mut to[index * width..];
            if has_all_pieces {
                let first = if tap == 0 { 0 } else { usize::from(ends[tap - 1]) };
                self.row(&pieces[first..usize::from(ends[tap])], channel, to);
            } else {
                let count = self.conv.pieces(tap, (lines, &corners), width, &mut pieces);
                let count = count.expect("there are no more pieces than elements");
                self.row(&pieces[..count], channel, to);
            }
            tap += 1;
            if tap == taps {
                (tap, channel) = (0, channel + self.conv.input.1);
            }
        }
    }

    /// Packs a panel column by column: runs along the kernel's last axis are read and transposed.
    #[inline(always)]
    fn by_columns(
        &self,
        kernels: &Kernels<C>,
        columns: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        let conv = self.conv;
        let (last, leading) = conv.spatial.split_last().expect("there is a spatial axis");
        // The start of the kernel for each column.
        let mut corners = Corners::new();
        let (lines, count) = self.conv.lines(columns.clone(), &mut corners);
        let mut staged = [C::EMPTY_SUM; STAGE * WIDTH];
        debug_assert!(columns.len() <= WIDTH && conv.out_positions() > 0);
        let mut runs = [TapRun::default(); STAGE];
        let mut offsets: SmallVec<[i64; 32]> = SmallVec::new();
        for (stage, to) in to.chunks_mut(STAGE * width).enumerate() {
            let depth = to.len() / width;
            let first = along.start + stage * STAGE;
            let many = conv.tap_runs(first, depth, &mut runs, &mut offsets);
            for (index, line) in lines[..count].iter().enumerate() {
                let corner = &corners[index * leading.len()..][..leading.len()];
                for out_position in 0..line.count as usize {
                    let start = line.start + (out_position * last.stride) as i64;
                    let column = &mut staged[(line.at as usize + out_position) * STAGE..][..STAGE];
                    for (index, &TapRun { at, tap, channel }) in runs[..many].iter().enumerate() {
                        let end = runs[..many].get(index + 1).map_or(depth, |next| next.at);
                        let offsets = &offsets[index * leading.len()..][..leading.len()];
                        let mut row = Some(line.item + channel);
                        for ((axis, &corner), &offset) in leading.iter().zip(corner).zip(offsets) {
                            row = row
                                .zip(position(axis, corner + offset))
                                .map(|(row, index)| row + index * axis.step);
                        }
                        let column = &mut column[at..end];
                        let start = start + (tap * last.kernel_dilation) as i64;
                        match row {
                            Some(row) => self.run(last, row, start, column),
                            None => column.fill(C::EMPTY_SUM),
                        }
                    }
                }
            }
            gemm::pack_transposed(kernels, &staged, (STAGE, columns.len()), width, to);
        }
    }

    /// Reads the input elements under neighbours on the kernel's last axis; the first is at `start`.
    #[inline(always)]
    fn run(&self, axis: &Spatial, row: usize, start: i64, column: &mut [C]) {
        let dilation = axis.kernel_dilation;
        if axis.input_dilation > 1 {
            for (tap, to) in column.iter_mut().enumerate() {
                let input_position = position(axis, start + (tap * dilation) as i64);
                *to = input_position.map_or(C::EMPTY_SUM, |at| self.input[row + at]);
            }
            return;
        }
        let (first, stop) = if dilation == 1 {
            (-start, axis.size as i64 - start)
        } else {
            (ceil_div(-start, dilation as i64), ceil_div(axis.size as i64 - start, dilation as i64))
        };
        let first = first.clamp(0, column.len() as i64) as usize;
        let stop = stop.clamp(first as i64, column.len() as i64) as usize;
        column[..first].fill(C::EMPTY_SUM);
        column[stop..].fill(C::EMPTY_SUM);
        if first == stop {
            return;
        }
        let from = &self.input[row + (start + (first * dilation) as i64) as usize..];
        let to = &mut column[first..stop];
        if dilation == 1 {
            to.copy_from_slice(&from[..to.len()]);
        } else if dilation == 2 {
            // In pairs, which the compiler turns into vector shuffles.
            let (pairs, rest) = from.as_chunks::<2>();
            to.iter_mut().zip(pairs).for_each(|(to, &[x, _])| *to = x);
            if let (Some(to), Some(&x)) = (to.get_mut(pairs.len()), rest.first()) {
                *to = x;
            }
        } else {
            for (to, &from) in to.iter_mut().zip(from.iter().step_by(dilation)) {
                *to = from;
            }
        }
    }
}

vectorized! {
    /// Packs a panel row by row.
    fn pack_rows[C: GemmElement] of [C] (
        patches: &Patches<'_, C>,
        columns: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        patches.by_rows(columns, along, width, to);
    }
}

vectorized! {
    /// Packs a panel column by column.
    fn pack_columns[C: GemmElement] of [C] (
        patches: &Patches<'_, C>,
        kernels: &Kernels<C>,
        columns: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        patches.by_columns(kernels, columns, along, width, to);
    }
}

impl<C: GemmElement> Operand<C> for Patches<'_, C> {
    fn pack(
        &self,
        kernels: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        assert!(free.len() <= width && width <= WIDTH && to.len() == width * along.len());
        let last = self.conv.spatial.last().expect("there is a spatial axis");
        if last.kernel >= COLUMN_PACKING_TAPS && last.kernel > last.out {
            pack_columns(self, kernels, free, along, width, to);
        } else {
            pack_rows(self, free, along, width, to);
        }
    }

    fn in_place(&self) -> Option<Matrix<'_, C>> {
        None
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        let conv = self.conv;
        free <= conv.batch * conv.out_positions() && along <= conv.rows()
    }
}

/// A kernel as a matrix: its rows are features, its columns the elements in all channels.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a, C> {
    pub(super) conv: &'a Conv,
    /// The kernel from the group's first element on.
    pub(super) kernel: &'a [C],
}

impl<C: GemmElement> Operand<C> for Weights<'_, C> {
    fn pack(
        &self,
        kernels: &Kernels<C>,
        free: Range<usize>,
        along: Range<usize>,
        width: usize,
        to: &mut [MaybeUninit<C>],
    ) {
        assert!(free.len() <= width && to.len() == width * along.len());
        let taps = self.conv.taps();
        let (feature, channel) = self.conv.kernel;
        let mut at = along.start;
        let mut to = to;
        while at < along.end {
            let count = (taps - at % taps).min(along.end - at);
            let from = free.start * feature + at / taps * channel + at % taps;
            let (panel, rest) = to.split_at_mut(count * width);
            gemm::pack_transposed(kernels, &self.kernel[from..], (feature, free.len()), width, panel);
            (to, at) = (rest, at + count);
        }
    }

    fn in_place(&self) -> Option<Matrix<'_, C>> {
        let (feature, channel) = self.conv.kernel;
        // One channel, or contiguous channels, count as one.
        let (taps, depth) = (self.conv.taps(), self.conv.depth);
        let along = if taps == 1 { channel } else { 1 };
        let plain = depth == 1 || taps == 1 || channel == taps;
        plain.then_some(Matrix { elements: self.kernel, free: feature, along })
    }

    fn holds(&self, free: usize, along: usize) -> bool {
        let (feature, channel) = self.conv.kernel;
        let Conv { features, depth, .. } = *self.conv;
        let (free, along) = (free <= features, along <= self.conv.rows());
        let last = (features.max(1) - 1) * feature + (depth.max(1) - 1) * channel + self.conv.taps();
        free && along && last <= self.kernel.len()
    }
}
