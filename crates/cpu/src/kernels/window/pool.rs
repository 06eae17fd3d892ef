//! Windows that lie side by side, as those of pooling: their extremes, and the values that are sent to these.
//!
//! Several windows that are neighbours on the last axis are done together: the last ones of a line overlap those before
//! them, and are written again. Rows are compared first, element by element, and then the columns of each window.

use std::mem::MaybeUninit;
use std::ops::Range;

use defn_core::DType;
use defn_core::op::{Window, WindowOp};
use smallvec::SmallVec;

use super::choose::are_disjoint;
use super::order::{Ordered, flips};
use crate::kernels::simd::vectorized;
use crate::kernels::{Plain, Real, SendPtr};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that are compared in a chunk.
const CHUNK: usize = 1 << 14;

/// Windows of a line that are done together.
const GROUP: usize = 16;

/// How windows lie side by side.
pub(crate) struct Pool {
    /// Elements of a window along the last axis, and between two windows.
    wide: usize,
    /// How many windows a line has, and how many lines there are.
    count: usize,
    lines: usize,
    /// The axes before the last one: lines, and the distance of their first elements.
    axes: SmallVec<[(usize, usize); 6]>,
    /// The offsets of a window's rows from its corner.
    rows: SmallVec<[usize; 8]>,
    /// Whether each element is in a window.
    covers: bool,
    /// Whether the extremes of windows are those of rows after those of columns, as in passes along each axis. It makes
    /// a difference for zeros of both signs.
    pub(crate) is_in_order: bool,
}

impl Pool {
    /// None for windows that are not side by side, or wider than three elements, and for dtypes without kernels.
    pub(crate) fn of(window: &Window, sizes: &[usize], out_sizes: &[usize], dtype: DType) -> Option<Pool> {
        let last = sizes.len().checked_sub(1)?;
        let (wide, is_float) = (window.sizes[last], matches!(dtype, DType::F32 | DType::F64));
        if !is_float || !(2..=3).contains(&wide) || window.strides[last] != wide || !are_disjoint(window) {
            return None;
        }
        if out_sizes.contains(&0) {
            return None;
        }
        let mut tall = (0..last).filter(|&axis| window.sizes[axis] != 1);
        let first = tall.next();
        let shrinks_first = |axis: usize| out_sizes[axis] * sizes[last] <= out_sizes[last] * sizes[axis];
        let is_in_order = tall.next().is_none() && first.is_none_or(shrinks_first);
        let covers = (0..=last).all(|axis| {
            window.strides[axis] == window.sizes[axis] && out_sizes[axis] * window.sizes[axis] == sizes[axis]
        });
        let mut axes: SmallVec<[(usize, usize); 6]> = SmallVec::from_elem((0, 0), last);
        let mut rows: SmallVec<[usize; 8]> = SmallVec::from_elem(0, 1);
        let mut step = sizes[last];
        for axis in (0..last).rev() {
            axes[axis] = (out_sizes[axis], window.strides[axis].saturating_mul(step));
            let offsets = 0..window.sizes[axis];
            rows = offsets.flat_map(|at| rows.iter().map(move |row| at * step + row)).collect();
            step *= sizes[axis];
        }
        let lines = out_sizes[..last].iter().product();
        Some(Pool { wide, count: out_sizes[last], lines, axes, rows, covers, is_in_order })
    }

    /// The lines whose elements are compared in a chunk.
    fn lines_of_chunk(&self) -> usize {
        CHUNK.div_ceil(self.count * self.wide * self.rows.len())
    }

    /// The first element of the first window of a line.
    fn corner(&self, line: usize) -> usize {
        let mut rest = line;
        let mut corner = 0;
        for &(count, step) in self.axes.iter().rev() {
            corner += rest % count * step;
            rest /= count;
        }
        corner
    }
}

/// The extremes of all windows. Operand and result are of the dtype that the pool was made for.
pub(crate) fn extremes(op: WindowOp, pool: &Pool, x: View<'_>, out: &mut ViewMut<'_>, par: Par) {
    debug_assert!(pool.is_in_order);
    let is_max = match op {
        WindowOp::WindowMax => true,
        WindowOp::WindowMin => false,
        WindowOp::WindowSum | WindowOp::WindowProduct => unreachable!("sums have no extremes"),
    };
    let flips = flips(x.ty().dtype, is_max);
    match (x.ty().dtype == DType::F32, pool.wide) {
        (true, 2) => run_extremes::<f32, 2>(pool, flips, x, out, par),
        (true, _) => run_extremes::<f32, 3>(pool, flips, x, out, par),
        (false, 2) => run_extremes::<f64, 2>(pool, flips, x, out, par),
        (false, _) => run_extremes::<f64, 3>(pool, flips, x, out, par),
    }
}

fn run_extremes<C: Ordered + Real, const WIDE: usize>(
    pool: &Pool,
    flips: u64,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let (x, out) = (x.slice::<C>(), &*out);
    par.for_chunks(pool.lines, pool.lines_of_chunk(), |lines| {
        // SAFETY: chunks are disjoint and in bounds of the result, which is borrowed mutably meanwhile.
        let out = unsafe { out.part::<C>(lines.start * pool.count, lines.len() * pool.count) };
        extremes_of_lines::<C, WIDE>(pool, flips, x, lines.start, out);
    });
}

vectorized! {
    fn extremes_of_lines[C: Ordered + Real, const WIDE: usize] of [C, WIDE] (
        pool: &Pool,
        flips: u64,
        x: &[C],
        first: usize,
        out: &mut [MaybeUninit<C>],
    ) {
        for (line, out) in (first..).zip(out.chunks_exact_mut(pool.count)) {
            let x = &x[pool.corner(line)..];
            for at in groups(pool.count) {
                let count = GROUP.min(pool.count);
                // The extremes of each window's columns.
                let mut columns = [[C::ZERO; WIDE]; GROUP];
                let mut padded = columns;
                for (number, &row) in pool.rows.iter().enumerate() {
                    let cells = cells(x, row + at * WIDE, count, &mut padded);
                    for (column, &x) in columns.as_flattened_mut().iter_mut().zip(cells.as_flattened()) {
                        let x = x.flipped(flips);
                        *column = if number == 0 { x } else { column.greater(x) };
                    }
                }
                let mut best = [C::ZERO; GROUP];
                for (best, columns) in best.iter_mut().zip(&columns) {
                    *best = columns[1..].iter().fold(columns[0], |best, &x| best.greater(x)).flipped(flips);
                }
                store(&mut out[at..][..count], &best);
            }
        }
    }
}

/// Where groups of so many windows begin: the last one overlaps, or is the only one and has fewer.
#[inline(always)]
fn groups(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(GROUP).map(move |at| at.min(count.saturating_sub(GROUP)))
}

/// The cells of `count` windows in a row that begins at `first`, and any elements for other windows.
#[inline(always)]
fn cells<'a, C: Plain, const WIDE: usize>(
    x: &'a [C],
    first: usize,
    count: usize,
    padded: &'a mut [[C; WIDE]; GROUP],
) -> &'a [[C; WIDE]; GROUP] {
    let x = &x[first..];
    if let Some(cells) = x.as_chunks::<WIDE>().0.first_chunk::<GROUP>() {
        return cells;
    }
    padded[..count].as_flattened_mut().copy_from_slice(&x[..count * WIDE]);
    padded
}

/// Writes the first of the elements, as many as there is room for.
#[inline(always)]
fn store<C: Plain>(out: &mut [MaybeUninit<C>], elements: &[C]) {
    if out.len() == elements.len() {
        // The number is known when this is compiled.
        out[..elements.len()].write_copy_of_slice(elements);
    } else {
        out.write_copy_of_slice(&elements[..out.len()]);
    }
}

/// Adds values to a start, at the places of the extremes of their windows, which have one value each. All are of the
/// dtype that the pool was made for. Of equal elements the last one is taken; NaN is the most extreme.
pub(crate) fn send(
    is_max: bool,
    pool: &Pool,
    operands: (View<'_>, View<'_>, View<'_>),
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let flips = flips(out.ty().dtype, is_max);
    match (out.ty().dtype == DType::F32, pool.wide) {
        (true, 2) => run_scatter::<f32, 2>(pool, flips, operands, out, par),
        (true, _) => run_scatter::<f32, 3>(pool, flips, operands, out, par),
        (false, 2) => run_scatter::<f64, 2>(pool, flips, operands, out, par),
        (false, _) => run_scatter::<f64, 3>(pool, flips, operands, out, par),
    }
}

/// What is sent, and where from.
#[derive(Clone, Copy)]
struct ScatterInputs<'a, C> {
    x: &'a [C],
    flips: u64,
    source: &'a [C],
    start: C,
    out: &'a SendPtr<C>,
}

fn run_scatter<C: Ordered, const WIDE: usize>(
    pool: &Pool,
    flips: u64,
    (x, source, start): (View<'_>, View<'_>, View<'_>),
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let (x, source, start) = (x.slice::<C>(), source.slice::<C>(), start.slice::<C>()[0]);
    // What lies in no window is the start.
    if !pool.covers {
        out.fill::<C>(par, CHUNK, |_, chunk| chunk.fill(MaybeUninit::new(start)));
    }
    let out = SendPtr::of(out.slice::<C>());
    let inputs = ScatterInputs { x, flips, source, start, out: &out };
    par.for_chunks(pool.lines, pool.lines_of_chunk(), |lines| {
        scatter_lines::<C, WIDE>(pool, inputs, lines);
    });
}

/// The number of a row that no window has.
const NO_ROW: u32 = u32::MAX;

vectorized! {
    fn scatter_lines[C: Ordered, const WIDE: usize] of [C, WIDE] (
        pool: &Pool,
        inputs: ScatterInputs<'_, C>,
        lines: Range<usize>,
    ) {
        let ScatterInputs { x, flips, start, .. } = inputs;
        for line in lines {
            let corner = pool.corner(line);
            let source = &inputs.source[line * pool.count..][..pool.count];
            for at in groups(pool.count) {
                let first = corner + at * WIDE;
                let count = GROUP.min(pool.count);
                // The most extreme cell of each window's columns so far, and its row.
                let mut best = [[C::ZERO; WIDE]; GROUP];
                let mut rows = [[0u32; WIDE]; GROUP];
                let mut padded = best;
                for (number, &row) in (0..).zip(&pool.rows) {
                    let cells = cells(x, first + row, count, &mut padded);
                    let both = best.as_flattened_mut().iter_mut().zip(rows.as_flattened_mut());
                    for ((best, row), &x) in both.zip(cells.as_flattened()) {
                        let x = x.flipped(flips);
                        let is_better = (number == 0) | x.wins(*best);
                        *row = if is_better { number } else { *row };
                        *best = if is_better { x } else { *best };
                    }
                }
                let mut values = [start; GROUP];
                for (value, &source) in values.iter_mut().zip(&source[at..][..count]) {
                    *value = start.plus(source);
                }
                // The row of each window's choice in its column, and the value there.
                let mut sent = [[C::ZERO; WIDE]; GROUP];
                for place in 0..GROUP {
                    let (best, rows) = (&best[place], &mut rows[place]);
                    let (mut chosen, mut extreme, mut last) = (0, best[0], rows[0]);
                    for column in 1..WIDE {
                        let (x, row) = (best[column], rows[column]);
                        // Which of both is the later one, in row-major order.
                        let is_later = row >= last;
                        let is_better = (is_later & x.wins(extreme)) | (!is_later & !extreme.wins(x));
                        chosen = if is_better { column } else { chosen };
                        extreme = if is_better { x } else { extreme };
                        last = if is_better { row } else { last };
                    }
                    for column in 0..WIDE {
                        rows[column] = if column == chosen { last } else { NO_ROW };
                        sent[place][column] = values[place];
                    }
                }
                for (number, &row) in (0..).zip(&pool.rows) {
                    let mut to = [[start; WIDE]; GROUP];
                    let chosen = rows.as_flattened().iter().zip(sent.as_flattened());
                    for (to, (&row, &value)) in to.as_flattened_mut().iter_mut().zip(chosen) {
                        *to = if row == number { value } else { start };
                    }
                    // SAFETY: the row was read in `x`, which has the same size; no other line has it.
                    let out = unsafe { inputs.out.part(first + row, count * WIDE) };
                    store(out, to.as_flattened());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use defn_core::{Shape, TensorType};
    use smallvec::smallvec;

    use super::*;
    use crate::kernels::testing::{Array, noise};
    use crate::kernels::window::{AxisPass, doubling_scratch, fold};

    /// The extremes of windows, by passes along one axis after the other.
    fn in_passes(
        op: WindowOp,
        dtype: DType,
        window: &Window,
        x: Array,
        sizes: &[usize],
        out: &[usize],
    ) -> Array {
        AxisPass::plan(sizes, window, out).iter().fold(x, |x, (pass, shape)| {
            let mut next = Array::unwritten(TensorType::new(dtype, shape.clone()).unwrap());
            let mut scratch = Array::unwritten(doubling_scratch(pass, dtype));
            fold(op, dtype, pass, x.view(), &mut next.view_mut(), &mut scratch.view_mut(), Par::Serial);
            next
        })
    }

    #[test]
    fn extremes_are_those_of_passes_along_each_axis() {
        let mut random = noise(5);
        let mut done = 0;
        for (rows, columns) in [(1, 2), (2, 2), (3, 2), (3, 3), (4, 3), (1, 3)] {
            for size in [columns, 7, 11, 28, 32, 39, 101] {
                let sizes = [2, 3, rows * 2 + 1, size];
                let window = Window {
                    sizes: smallvec![1, 1, rows, columns],
                    strides: smallvec![1, 1, rows, columns],
                    padding: smallvec![(0, 0); 4],
                    dilations: smallvec![1; 4],
                };
                let out = [2, 3, 2, size / columns];
                for (op, dtype) in [
                    (WindowOp::WindowMax, DType::F32),
                    (WindowOp::WindowMin, DType::F32),
                    (WindowOp::WindowMax, DType::F64),
                ] {
                    // Few numbers, with zeros of both signs and NaN.
                    let mut element = || match random.next().unwrap() % 9 {
                        0 => f64::NAN,
                        1 | 2 => -0.0,
                        other => other as f64 / 2.0 - 1.5,
                    };
                    let count = sizes.iter().product::<usize>();
                    let x = Array::new(dtype, &sizes, (0..count).map(|_| element().into()));
                    let pool = Pool::of(&window, &sizes, &out, dtype).unwrap();
                    if !pool.is_in_order {
                        continue;
                    }
                    done += 1;
                    let ty = TensorType::new(dtype, Shape::new(&out)).unwrap();
                    let mut got = Array::unwritten(ty);
                    extremes(op, &pool, x.view(), &mut got.view_mut(), Par::Pool);
                    let want = in_passes(op, dtype, &window, x, &sizes, &out);
                    assert_eq!(got.bytes(), want.bytes(), "{op:?} {dtype} {window:?} {sizes:?}");
                }
            }
        }
        assert!(done > 30, "{done}");
    }
}
