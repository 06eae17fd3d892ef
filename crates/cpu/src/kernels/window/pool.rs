//! Windows that lie side by side, as those of pooling: their extremes, and the values that are sent to these.
//!
//! Several windows that are neighbours on the last axis are done together, always as many as a vector has: the last
//! ones of a line overlap those before them, and are written again.

use std::mem::MaybeUninit;
use std::ops::Range;

use defn_core::DType;
use defn_core::op::{Window, WindowOp};
use smallvec::SmallVec;

use super::choose::are_disjoint;
use super::order::{Ordered, flips};
use crate::kernels::simd::vectorized;
use crate::kernels::{Real, SendPtr};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that are compared in a chunk.
const CHUNK: usize = 1 << 14;

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
    match (x.ty().dtype == DType::F32, pool.wide) {
        (true, 2) => run_extremes::<f32, 2>(pool, is_max, x, out, par),
        (true, _) => run_extremes::<f32, 3>(pool, is_max, x, out, par),
        (false, 2) => run_extremes::<f64, 2>(pool, is_max, x, out, par),
        (false, _) => run_extremes::<f64, 3>(pool, is_max, x, out, par),
    }
}

fn run_extremes<C: Real, const WIDE: usize>(
    pool: &Pool,
    is_max: bool,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    par: Par,
) {
    let (x, out) = (x.slice::<C>(), &*out);
    par.for_chunks(pool.lines, pool.lines_of_chunk(), |lines| {
        // SAFETY: chunks are disjoint and in bounds of the result, which is borrowed mutably meanwhile.
        let out = unsafe { out.part::<C>(lines.start * pool.count, lines.len() * pool.count) };
        extremes_of_lines::<C, WIDE>(pool, is_max, x, lines.start, out);
    });
}

vectorized! {
    fn extremes_of_lines[C: Real, const WIDE: usize] of [C, WIDE] (
        pool: &Pool,
        is_max: bool,
        x: &[C],
        first: usize,
        out: &mut [MaybeUninit<C>],
    ) {
        for (line, out) in (first..).zip(out.chunks_exact_mut(pool.count)) {
            let x = &x[pool.corner(line)..];
            match (out.len(), is_max) {
                (16.., true) => extremes_of_line::<C, WIDE, 16>(&pool.rows, x, out, C::greater),
                (16.., false) => extremes_of_line::<C, WIDE, 16>(&pool.rows, x, out, C::lesser),
                (4.., true) => extremes_of_line::<C, WIDE, 4>(&pool.rows, x, out, C::greater),
                (4.., false) => extremes_of_line::<C, WIDE, 4>(&pool.rows, x, out, C::lesser),
                _ => extremes_of_few(pool, is_max, x, out),
            }
        }
    }
}

/// Where groups of `group` of so many windows begin: the last one overlaps.
#[inline(always)]
fn groups(count: usize, group: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(group).map(move |at| at.min(count - group))
}

#[inline(always)]
fn extremes_of_line<C: Real, const WIDE: usize, const GROUP: usize>(
    rows: &[usize],
    x: &[C],
    out: &mut [MaybeUninit<C>],
    join: impl Fn(C, C) -> C,
) {
    for at in groups(out.len(), GROUP) {
        let cells = |row: usize| x[row + at * WIDE..][..GROUP * WIDE].as_chunks::<WIDE>().0;
        let mut columns = [[C::ZERO; GROUP]; WIDE];
        for (place, cell) in cells(rows[0]).iter().enumerate() {
            for (column, &x) in columns.iter_mut().zip(cell) {
                column[place] = x;
            }
        }
        for &row in &rows[1..] {
            for (place, cell) in cells(row).iter().enumerate() {
                for (column, &x) in columns.iter_mut().zip(cell) {
                    column[place] = join(column[place], x);
                }
            }
        }
        let (best, others) = columns.split_first().expect("a window has elements");
        let mut best = *best;
        for other in others {
            for (best, &x) in best.iter_mut().zip(other) {
                *best = join(*best, x);
            }
        }
        out[at..][..GROUP].write_copy_of_slice(&best);
    }
}

/// The extremes of a line of fewer windows than a group has.
#[inline(never)]
fn extremes_of_few<C: Real>(pool: &Pool, is_max: bool, x: &[C], out: &mut [MaybeUninit<C>]) {
    let join = |a: C, b: C| if is_max { a.greater(b) } else { a.lesser(b) };
    for (place, out) in out.iter_mut().enumerate() {
        let x = &x[place * pool.wide..];
        let mut best = C::ZERO;
        for column in 0..pool.wide {
            let mut extreme = x[pool.rows[0] + column];
            for &row in &pool.rows[1..] {
                extreme = join(extreme, x[row + column]);
            }
            best = if column == 0 { extreme } else { join(best, extreme) };
        }
        out.write(best);
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
    // Of f32 the minima are the maxima of flipped elements. With f64 the flips take time.
    let flips = flips(out.ty().dtype, is_max);
    let flip = |x: f32| x.flipped(flips);
    match (out.ty().dtype == DType::F32, pool.wide, is_max) {
        (true, 2, _) => run_scatter::<f32, _, 2>(pool, flip, operands, out, par),
        (true, _, _) => run_scatter::<f32, _, 3>(pool, flip, operands, out, par),
        (false, 2, true) => run_scatter::<f64, _, 2>(pool, |x| x, operands, out, par),
        (false, _, true) => run_scatter::<f64, _, 3>(pool, |x| x, operands, out, par),
        (false, 2, false) => run_scatter::<f64, _, 2>(pool, |x: f64| -x, operands, out, par),
        (false, _, false) => run_scatter::<f64, _, 3>(pool, |x: f64| -x, operands, out, par),
    }
}

/// What is sent, and where from.
#[derive(Clone, Copy)]
struct ScatterInputs<'a, C, F> {
    x: &'a [C],
    /// Makes the most extreme element the greatest.
    flip: F,
    source: &'a [C],
    start: C,
    out: &'a SendPtr<C>,
}

fn run_scatter<C: Ordered, F: Fn(C) -> C + Copy + Sync, const WIDE: usize>(
    pool: &Pool,
    flip: F,
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
    let inputs = ScatterInputs { x, flip, source, start, out: &out };
    par.for_chunks(pool.lines, pool.lines_of_chunk(), |lines| {
        scatter_lines::<C, F, WIDE>(pool, inputs, lines);
    });
}

vectorized! {
    fn scatter_lines[C: Ordered, F: Fn(C) -> C + Copy, const WIDE: usize] of [C, F, WIDE] (
        pool: &Pool,
        inputs: ScatterInputs<'_, C, F>,
        lines: Range<usize>,
    ) {
        for line in lines {
            match pool.count {
                16.. => scatter_line::<C, F, WIDE, 16>(pool, inputs, line),
                4.. => scatter_line::<C, F, WIDE, 4>(pool, inputs, line),
                _ => scatter_few(pool, inputs, line),
            }
        }
    }
}

#[inline(always)]
fn scatter_line<C: Ordered, F: Fn(C) -> C, const WIDE: usize, const GROUP: usize>(
    pool: &Pool,
    inputs: ScatterInputs<'_, C, F>,
    line: usize,
) {
    let corner = pool.corner(line);
    let source = &inputs.source[line * pool.count..][..pool.count];
    for at in groups(pool.count, GROUP) {
        let first = corner + at * WIDE;
        let cells = |row: usize| inputs.x[first + row..][..GROUP * WIDE].as_chunks::<WIDE>().0;
        // The cell of each window that is the most extreme so far.
        let (mut best, mut chosen) = ([C::ZERO; GROUP], [0u32; GROUP]);
        for (place, cell) in cells(pool.rows[0]).iter().enumerate() {
            best[place] = (inputs.flip)(cell[0]);
        }
        for (number, &row) in (0..).step_by(WIDE).zip(&pool.rows) {
            let cells = cells(row);
            for column in 0..WIDE {
                for (place, cell) in cells.iter().enumerate() {
                    // The first cell is compared with itself, which changes nothing.
                    let x = (inputs.flip)(cell[column]);
                    let is_better = x.wins(best[place]);
                    chosen[place] = if is_better { number + column as u32 } else { chosen[place] };
                    best[place] = if is_better { x } else { best[place] };
                }
            }
        }
        let mut values = [C::ZERO; GROUP];
        for (value, &source) in values.iter_mut().zip(&source[at..][..GROUP]) {
            *value = inputs.start.plus(source);
        }
        for (number, &row) in (0..).step_by(WIDE).zip(&pool.rows) {
            // SAFETY: the row was read in `x`, which has the same size; no other line has it.
            let out = unsafe { inputs.out.part(first + row, GROUP * WIDE) };
            for (place, out) in out.as_chunks_mut::<WIDE>().0.iter_mut().enumerate() {
                for (column, out) in out.iter_mut().enumerate() {
                    let is_chosen = chosen[place] == number + column as u32;
                    out.write(if is_chosen { values[place] } else { inputs.start });
                }
            }
        }
    }
}

/// As [`scatter_line`], for a line of fewer windows than a group has.
#[inline(never)]
fn scatter_few<C: Ordered, F: Fn(C) -> C>(pool: &Pool, inputs: ScatterInputs<'_, C, F>, line: usize) {
    let corner = pool.corner(line);
    for (place, &source) in inputs.source[line * pool.count..][..pool.count].iter().enumerate() {
        let first = corner + place * pool.wide;
        let (mut best, mut chosen) = ((inputs.flip)(inputs.x[first]), first);
        for &row in &pool.rows {
            for at in first + row..first + row + pool.wide {
                let x = (inputs.flip)(inputs.x[at]);
                (best, chosen) = if x.wins(best) { (x, at) } else { (best, chosen) };
                // SAFETY: the position was read in `x`, which has the same size; no other window has it.
                unsafe { inputs.out.at(at).write(inputs.start) };
            }
        }
        // SAFETY: as above.
        unsafe { inputs.out.at(chosen).write(inputs.start.plus(source)) };
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
