//! The positions of the extreme elements of windows, and the sums of values scattered to them.

use std::mem::MaybeUninit;

use defn_core::DType;
use defn_core::op::{Window, WindowScatterOp};
use smallvec::SmallVec;

use super::order::{Ordered, flips, with_ordered};
use super::pool::{self, Pool};
use super::{MAX_STRIDE, ceil_div};
use crate::kernels::{Element, SendPtr, with_compute};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that are compared in a chunk.
const CHUNK: usize = 1 << 15;

/// The position of padding.
const PADDING: u64 = u64::MAX;

/// Writes, for each place of a window, the row-major position of the extreme element, as u64; `PADDING` if there is
/// padding and the start is more extreme than any element. Of equal elements the last one is taken; NaN is the most
/// extreme. Operand and start have the dtype in which elements of `dtype` are computed.
pub(crate) fn choose(
    op: WindowScatterOp,
    dtype: DType,
    window: &Window,
    out_sizes: &[usize],
    (x, start): (View<'_>, View<'_>),
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let flips = flips(dtype, matches!(op, WindowScatterOp::WindowScatterMax));
    let sizes = x.ty().shape.sizes();
    with_ordered!(dtype, C => {
        let start = start.slice::<C>()[0].flipped(flips);
        run(window, sizes, out_sizes, out, par, &Compared { x: x.slice::<C>(), start, flips });
    });
}

type List = SmallVec<[usize; 6]>;

/// Elements that are compared, by their positions.
trait Compare: Sync {
    /// The position of the extreme element of a window, of which a part is inside the tensor.
    fn best(&self, cells: &WindowCells<'_>) -> usize;

    /// Whether the start is chosen instead of an element, which it follows or precedes.
    fn is_padding_chosen(&self, position: usize, is_later: bool) -> bool;
}

/// Elements of which the greatest is wanted once their bits are flipped, as those of the start are.
struct Compared<'a, C> {
    x: &'a [C],
    start: C,
    flips: u64,
}

impl<C: Ordered> Compare for Compared<'_, C> {
    fn best(&self, cells: &WindowCells<'_>) -> usize {
        let mut row: List = cells.from.into();
        let (step, count) = cells.along();
        let mut at = cells.position(&row);
        let (mut best, mut chosen) = (self.x[at].flipped(self.flips), at);
        loop {
            // The first cell is compared with itself, which changes nothing.
            for cell in 0..count {
                let x = self.x[at + cell * step].flipped(self.flips);
                if x.wins(best) {
                    (best, chosen) = (x, at + cell * step);
                }
            }
            if !cells.next_row(&mut row) {
                return chosen;
            }
            at = cells.position(&row);
        }
    }

    fn is_padding_chosen(&self, position: usize, is_later: bool) -> bool {
        let x = self.x[position].flipped(self.flips);
        if is_later { self.start.wins(x) } else { !x.wins(self.start) }
    }
}

fn run(
    window: &Window,
    sizes: &[usize],
    out_sizes: &[usize],
    out: &mut ViewMut<'_>,
    par: Par,
    compared: &dyn Compare,
) {
    let rank = sizes.len();
    let work = window
        .sizes
        .iter()
        .zip(sizes)
        .fold(1usize, |work, (&window, &size)| work.saturating_mul(window.min(size)));
    out.fill::<u64>(par, (CHUNK / work.max(1)).max(1), |first, chunk| {
        let mut out_index: List = SmallVec::from_elem(0, rank);
        // On each axis: where the window begins, and which of its cells are inside the tensor.
        let (mut begin, mut from, mut to) = ([0i64; 0].to_vec(), out_index.clone(), out_index.clone());
        for (flat, out) in (first..).zip(chunk) {
            let mut rest = flat;
            for axis in (0..rank).rev() {
                out_index[axis] = rest % out_sizes[axis];
                rest /= out_sizes[axis];
            }
            begin.clear();
            for axis in 0..rank {
                let dilation = window.dilations[axis].min(MAX_STRIDE) as i64;
                let low =
                    (out_index[axis] * window.strides[axis].min(MAX_STRIDE)) as i64 - window.padding[axis].0;
                let (length, size) = (window.sizes[axis] as i64, sizes[axis] as i64);
                from[axis] = ceil_div(-low, dilation).clamp(0, length) as usize;
                to[axis] = ceil_div(size - low, dilation).clamp(from[axis] as i64, length) as usize;
                begin.push(low);
            }
            let inside = WindowCells { window, sizes, begin: &begin, from: &from, to: &to };
            if inside.is_empty() {
                out.write(PADDING);
                continue;
            }
            let position = compared.best(&inside);
            let is_padding = inside.last_outside().is_some_and(|padding| {
                compared.is_padding_chosen(position, padding > inside.cell_of(position))
            });
            out.write(if is_padding { PADDING } else { position as u64 });
        }
    });
}

/// Whether windows are disjoint and have no padding.
pub(crate) fn are_disjoint(window: &Window) -> bool {
    let sizes = window.sizes.iter().zip(&window.strides).zip(window.padding.iter().zip(&window.dilations));
    sizes.into_iter().all(|((&size, &stride), (&padding, &dilation))| {
        padding == (0, 0) && size <= stride && (dilation == 1 || size == 1)
    })
}

/// [`choose`] and [`add_chosen`] in one, for windows that [are disjoint](are_disjoint) and operands of one dtype, in
/// which elements of `dtype` are computed.
pub(crate) fn scatter_disjoint(
    op: WindowScatterOp,
    dtype: DType,
    window: &Window,
    (x, source, start): (View<'_>, View<'_>, View<'_>),
    out: &mut ViewMut<'_>,
    par: Par,
) {
    debug_assert!(are_disjoint(window));
    let (sizes, out_sizes) = (x.ty().shape.sizes(), source.ty().shape.sizes());
    let is_max = matches!(op, WindowScatterOp::WindowScatterMax);
    if let Some(pool) = Pool::of(window, sizes, out_sizes, dtype) {
        return pool::send(is_max, &pool, (x, source, start), out, par);
    }
    let flips = flips(dtype, is_max);
    with_ordered!(dtype, C => {
        let (x, source, start) = (x.slice::<C>(), source.slice::<C>(), start.slice::<C>()[0]);
        out.fill::<C>(par, CHUNK, |_, chunk| chunk.fill(MaybeUninit::new(start)));
        let out = SendPtr::of(out.slice::<C>());
        scatter_largest(window, sizes, out_sizes, par, &Scattered { x, source, start, flips, out });
    });
}

/// Windows of a line: so many, a stride apart, with rows of so many elements at these offsets.
struct LineWindows<'a> {
    count: usize,
    stride: usize,
    wide: usize,
    rows: &'a [usize],
}

/// Elements that are sent to the extremes of windows.
trait Scatter: Sync {
    /// Sends those of a line, the first of which have these positions in the source and in the result.
    ///
    /// # Safety
    /// The result is as large as what is compared, and no other code uses the places of these windows.
    unsafe fn send(&self, windows: &LineWindows<'_>, first: usize, corner: usize);
}

/// What is sent, and where to. The greatest elements are wanted once their bits are flipped.
struct Scattered<'a, C> {
    x: &'a [C],
    source: &'a [C],
    start: C,
    flips: u64,
    out: SendPtr<C>,
}

impl<C: Ordered> Scatter for Scattered<'_, C> {
    unsafe fn send(&self, windows: &LineWindows<'_>, first: usize, corner: usize) {
        let &LineWindows { count, stride, wide, rows } = windows;
        for (column, &value) in self.source[first..][..count].iter().enumerate() {
            let first = corner + column * stride;
            let (mut best, mut at) = (self.x[first].flipped(self.flips), first);
            for &row in rows {
                for (cell, &x) in self.x[first + row..][..wide].iter().enumerate() {
                    // The first cell is compared again, which changes nothing.
                    let x = x.flipped(self.flips);
                    let is_better = x.wins(best);
                    at = if is_better { first + row + cell } else { at };
                    best = if is_better { x } else { best };
                }
            }
            // SAFETY: the position was read in `x`, which has the same size; no other window has it.
            unsafe { self.out.at(at).write(self.start.plus(value)) };
        }
    }
}

fn scatter_largest(window: &Window, sizes: &[usize], out_sizes: &[usize], par: Par, scattered: &dyn Scatter) {
    // A tensor without axes has one line of one window.
    let last = sizes.len().saturating_sub(1);
    let along = |of: &[usize]| of.last().map_or(1, |&last| last);
    let (wide, stride, count) = (along(&window.sizes), along(&window.strides), along(out_sizes));
    if out_sizes.contains(&0) {
        return;
    }
    let mut steps: List = SmallVec::from_elem(1, sizes.len());
    for axis in (0..last).rev() {
        steps[axis] = steps[axis + 1] * sizes[axis + 1];
    }
    // The offsets of a window's rows from its corner.
    let mut rows: SmallVec<[usize; 8]> = SmallVec::from_elem(0, 1);
    for axis in 0..last {
        rows = rows
            .iter()
            .flat_map(|&row| (0..window.sizes[axis]).map(move |at| (row, at)))
            .map(|(row, at)| row + at * steps[axis])
            .collect();
    }
    let cells = rows.len() * wide;
    let windows = LineWindows { count, stride, wide, rows: &rows };
    par.for_chunks(out_sizes[..last].iter().product(), (CHUNK / (count * cells)).max(1), |lines| {
        for line in lines {
            let mut rest = line;
            let mut corner = 0;
            for axis in (0..last).rev() {
                corner += rest % out_sizes[axis] * window.strides[axis] * steps[axis];
                rest /= out_sizes[axis];
            }
            // SAFETY: windows are disjoint, and all are inside the tensor, which is as large as the result.
            unsafe { scattered.send(&windows, line * count, corner) };
        }
    });
}

/// The part of a window that is inside the tensor.
struct WindowCells<'a> {
    window: &'a Window,
    sizes: &'a [usize],
    begin: &'a [i64],
    from: &'a [usize],
    to: &'a [usize],
}

impl WindowCells<'_> {
    /// Whether the whole window is padding.
    fn is_empty(&self) -> bool {
        self.from.iter().zip(self.to).any(|(from, to)| from >= to)
    }

    /// The distance of neighbours on the last axis, and their number.
    fn along(&self) -> (usize, usize) {
        let (Some(dilation), Some(from), Some(to)) =
            (self.window.dilations.last(), self.from.last(), self.to.last())
        else {
            return (1, 1);
        };
        ((*dilation).min(MAX_STRIDE), to - from)
    }

    /// The position of a cell.
    fn position(&self, cell: &[usize]) -> usize {
        (0..cell.len()).fold(0, |flat, axis| {
            let dilation = self.window.dilations[axis].min(MAX_STRIDE);
            let at = self.begin[axis] + (cell[axis] * dilation) as i64;
            flat * self.sizes[axis] + at as usize
        })
    }

    /// The cell at a position.
    fn cell_of(&self, position: usize) -> List {
        let mut cell: List = SmallVec::from_elem(0, self.sizes.len());
        let mut rest = position;
        for axis in (0..cell.len()).rev() {
            let at = (rest % self.sizes[axis]) as i64 - self.begin[axis];
            cell[axis] = at as usize / self.window.dilations[axis].min(MAX_STRIDE);
            rest /= self.sizes[axis];
        }
        cell
    }

    /// Goes on to the first cell of the next row, in row-major order; returns false after the last one.
    fn next_row(&self, cell: &mut [usize]) -> bool {
        let leading = cell.len().saturating_sub(1);
        let Some(axis) = (0..leading).rev().find(|&axis| cell[axis] + 1 < self.to[axis]) else {
            return false;
        };
        cell[axis] += 1;
        cell[axis + 1..].copy_from_slice(&self.from[axis + 1..]);
        true
    }

    /// The last cell, in row-major order, that is padding; None without padding.
    fn last_outside(&self) -> Option<List> {
        let last: List = self.window.sizes.iter().map(|&size| size - 1).collect();
        if last.iter().zip(self.to).any(|(&last, &to)| to <= last) {
            return Some(last);
        }
        // The last cell is inside, so that padding is only before the tensor.
        let axis = (0..last.len()).rev().find(|&axis| self.from[axis] > 0)?;
        let mut cell = last;
        cell[axis] = self.from[axis] - 1;
        Some(cell)
    }
}

/// Fills the result with the start, and adds each element of `source` at its chosen position. All have the dtype in
/// which elements of `dtype` are computed.
pub(crate) fn add_chosen(
    dtype: DType,
    chosen: View<'_>,
    source: View<'_>,
    start: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    with_compute!(dtype, C => {
        let start = start.slice::<C>()[0];
        out.fill::<C>(par, CHUNK, |_, chunk| chunk.fill(MaybeUninit::new(start)));
        // SAFETY: every element was just written.
        let sums = unsafe { out.slice::<C>().assume_init_mut() };
        for (&position, &value) in chosen.slice::<u64>().iter().zip(source.slice::<C>()) {
            if position != PADDING {
                let sum = &mut sums[position as usize];
                *sum = sum.plus(value);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use defn_core::{Shape, TensorType};
    use smallvec::smallvec;

    use super::*;
    use crate::kernels::testing::Array;

    fn chosen(x: &[f64], start: f64, window: usize, padding: (i64, i64), count: usize) -> Vec<Option<u64>> {
        let window = Window {
            sizes: smallvec![window],
            strides: smallvec![1],
            padding: smallvec![padding],
            dilations: smallvec![1],
        };
        let x = Array::new(DType::F64, &[x.len()], x.iter().map(|&x| x.into()));
        let start = Array::new(DType::F64, &[], [start.into()]);
        let mut out = Array::unwritten(TensorType::new(DType::U64, Shape::new(&[count])).unwrap());
        let op = WindowScatterOp::WindowScatterMax;
        choose(op, DType::F64, &window, &[count], (x.view(), start.view()), &mut out.view_mut(), Par::Serial);
        out.view().slice::<u64>().iter().map(|&at| (at != PADDING).then_some(at)).collect()
    }

    #[test]
    fn the_last_of_equal_elements_is_chosen() {
        assert_eq!(chosen(&[1.0, 2.0, 2.0, 0.0], 0.0, 2, (0, 0), 3), [Some(1), Some(2), Some(2)]);
        assert_eq!(chosen(&[f64::NAN, 2.0, f64::NAN], 0.0, 2, (0, 0), 2), [Some(0), Some(2)]);
    }

    /// The results for disjoint windows, by both functions.
    fn sent(x: &[f64], window: Window, sizes: &[usize], out_sizes: &[usize]) -> [Vec<f64>; 2] {
        let x = Array::new(DType::F64, sizes, x.iter().map(|&x| x.into()));
        let start = Array::new(DType::F64, &[], [0.5.into()]);
        let count = out_sizes.iter().product::<usize>();
        let source = Array::new(DType::F64, out_sizes, (1..=count).map(|at| (at as f64).into()));
        let out = || Array::unwritten(TensorType::new(DType::F64, Shape::new(sizes)).unwrap());
        let (mut one, mut two) = (out(), out());
        let op = WindowScatterOp::WindowScatterMin;
        let mut chosen = Array::unwritten(TensorType::new(DType::U64, Shape::new(out_sizes)).unwrap());
        let both = (x.view(), start.view());
        choose(op, DType::F64, &window, out_sizes, both, &mut chosen.view_mut(), Par::Pool);
        let all = (chosen.view(), source.view(), start.view());
        add_chosen(DType::F64, all.0, all.1, all.2, &mut one.view_mut(), Par::Pool);
        assert!(are_disjoint(&window));
        let all = (x.view(), source.view(), start.view());
        scatter_disjoint(op, DType::F64, &window, all, &mut two.view_mut(), Par::Pool);
        [one, two].map(|out| out.view().slice::<f64>().to_vec())
    }

    #[test]
    fn places_that_are_apart_need_no_positions() {
        let mut random = crate::kernels::testing::noise(3);
        for (sizes, window, strides) in [
            ([2, 3, 8, 8], [1, 1, 2, 2], [1, 1, 2, 2]),
            ([1, 7, 9, 5], [1, 2, 3, 1], [2, 3, 3, 1]),
            ([4, 1, 6, 70], [2, 1, 1, 5], [2, 1, 1, 7]),
            ([1, 2, 5, 39], [1, 1, 2, 2], [1, 1, 2, 2]),
            ([3, 2, 7, 29], [1, 2, 3, 3], [1, 2, 3, 3]),
            ([1, 2, 3, 9], [1, 1, 1, 3], [1, 1, 2, 3]),
        ] {
            let count = sizes.iter().product();
            // Few different numbers, so that many are equal, and some NaN.
            let x: Vec<f64> = (0..count)
                .map(|_| match random.next().unwrap() % 7 {
                    0 => f64::NAN,
                    other => other as f64,
                })
                .collect();
            let out_sizes: Vec<usize> =
                (0..4).map(|axis| (sizes[axis] - window[axis]) / strides[axis] + 1).collect();
            let window = Window {
                sizes: SmallVec::from_slice(&window),
                strides: SmallVec::from_slice(&strides),
                padding: smallvec![(0, 0); 4],
                dilations: smallvec![1; 4],
            };
            let [one, two] = sent(&x, window, &sizes, &out_sizes);
            assert_eq!(one, two, "{sizes:?}");
            assert_eq!(one.iter().filter(|&&x| x != 0.5).count(), out_sizes.iter().product::<usize>());
        }
    }

    #[test]
    fn padding_takes_part_as_the_start() {
        // Padding before: a tie goes to the later element. Padding after: it goes to the padding.
        assert_eq!(chosen(&[0.0, -1.0], 0.0, 2, (1, 1), 3), [Some(0), Some(0), None]);
        assert_eq!(chosen(&[0.0], 0.0, 2, (0, 1), 1), [None]);
        assert_eq!(chosen(&[1.0], 2.0, 2, (1, 0), 1), [None]);
        assert_eq!(chosen(&[1.0], f64::NAN, 2, (1, 0), 1), [None]);
        assert_eq!(chosen(&[1.0], 2.0, 2, (3, -1), 2), [None, None]);
    }
}
