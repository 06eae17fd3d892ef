//! Reductions of windows, one axis after the other: a window's reduction is the reduction along one axis of the
//! reductions along the others.
//!
//! Short windows are reduced element by element, for many places together. Long ones use recursive doubling (Hillis and
//! Steele, "Data parallel algorithms", 1986): the reductions of runs of 1, 2, 4, ... elements at every position are
//! each made of two of the previous level, and the runs for the binary digits of the window's length are joined.
//! Nothing is ever subtracted from a sum, so that float sums are as accurate as those of a tree.

use std::mem::MaybeUninit;

use defn_core::op::{Window, WindowOp};
use defn_core::{DType, Shape, TensorType};
use smallvec::SmallVec;

use super::{MAX_STRIDE, ceil_div};
use crate::kernels::{CastFrom, Element, Real, SendPtr, TILE, with_compute, with_real};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that are reduced in a chunk.
const CHUNK: usize = 32 * TILE;

/// The least length of a window for recursive doubling.
const DOUBLING_WINDOW: usize = 48;

/// A reduction along one axis, from `[outer][size][inner]` to `[outer][count][inner]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisPass {
    outer: usize,
    size: usize,
    inner: usize,
    count: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    low: i64,
}

impl AxisPass {
    /// The passes that reduce the windows of a tensor of these sizes, with the sizes of their results.
    pub(crate) fn plan(
        sizes: &[usize],
        window: &Window,
        out_sizes: &[usize],
    ) -> SmallVec<[(AxisPass, Shape); 4]> {
        let mut current: SmallVec<[usize; 6]> = sizes.into();
        let mut passes = SmallVec::new();
        for axis in window.order(sizes, out_sizes) {
            let pass = AxisPass {
                outer: current[..axis].iter().product(),
                size: current[axis],
                inner: current[axis + 1..].iter().product(),
                count: out_sizes[axis],
                window: window.sizes[axis],
                stride: window.strides[axis].min(MAX_STRIDE),
                dilation: window.dilations[axis].min(MAX_STRIDE),
                low: window.padding[axis].0,
            };
            current[axis] = out_sizes[axis];
            passes.push((pass, Shape::new(&current)));
        }
        passes
    }

    /// The number of elements between the first and the last that a window reads, padding included.
    fn padded(&self) -> usize {
        (self.count - 1) * self.stride + (self.window - 1) * self.dilation + 1
    }

    /// Whether a window reaches beyond the tensor.
    fn is_padded(&self) -> bool {
        self.low > 0 || self.padded() as i64 > self.size as i64 + self.low
    }

    /// Whether recursive doubling is worth its memory.
    fn is_long(&self) -> bool {
        self.window >= DOUBLING_WINDOW && self.count > 1 && self.padded() <= 4 * self.size + self.window
    }
}

/// The scratch memory of [`fold`]: two levels of recursive doubling, possibly none.
pub(crate) fn doubling_scratch(pass: &AxisPass, dtype: DType) -> TensorType {
    let count = if pass.is_long() { 2 * pass.outer * pass.padded() * pass.inner } else { 0 };
    TensorType { dtype, shape: Shape::new(&[count]) }
}

/// Reduces along one axis. Operand and result have the dtype in which elements of `dtype` are computed.
pub(crate) fn fold(
    op: WindowOp,
    dtype: DType,
    pass: &AxisPass,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    scratch: &mut ViewMut<'_>,
    par: Par,
) {
    match op {
        WindowOp::WindowSum => {
            with_compute!(dtype, C => run((op, dtype), pass, x, out, scratch, par, (C::ZERO, C::plus)))
        }
        WindowOp::WindowProduct => {
            with_compute!(dtype, C => run((op, dtype), pass, x, out, scratch, par, (C::ONE, C::times)))
        }
        WindowOp::WindowMax => with_real!(dtype, C => {
            run((op, dtype), pass, x, out, scratch, par, (bound::<C>(dtype.lowest()), C::greater))
        }),
        WindowOp::WindowMin => with_real!(dtype, C => {
            run((op, dtype), pass, x, out, scratch, par, (bound::<C>(dtype.highest()), C::lesser))
        }),
    }
}

/// A bound of a dtype's range.
fn bound<C: Element + CastFrom<f64> + CastFrom<i64>>(number: defn_core::Number) -> C {
    match number {
        defn_core::Number::Bool(value) => C::cast_from(u64::from(value)),
        defn_core::Number::Int(value) => match u64::try_from(value) {
            Ok(value) => C::cast_from(value),
            Err(_) => C::cast_from(value as i64),
        },
        defn_core::Number::Huge(value) | defn_core::Number::Float(value) => C::cast_from(value),
        defn_core::Number::Complex(_) => unreachable!("complex numbers have no order"),
    }
}

fn run<C: Element>(
    (op, dtype): (WindowOp, DType),
    pass: &AxisPass,
    x: View<'_>,
    out: &mut ViewMut<'_>,
    scratch: &mut ViewMut<'_>,
    par: Par,
    (start, join): (C, impl Fn(C, C) -> C + Copy + Sync),
) {
    // An empty axis behind this one leaves nothing to reduce.
    if pass.inner == 0 {
        return;
    }
    // Recursive doubling pads with the neutral element. For products with a complex infinity it is not neutral.
    if pass.is_long() && !(op == WindowOp::WindowProduct && dtype.is_complex() && pass.is_padded()) {
        recursive_doubling(pass, x.slice(), out, scratch, par, start, join);
    } else {
        direct(pass, x.slice(), out, par, start, join);
    }
}

/// Reduces element by element of the window, for runs of contiguous places.
fn direct<C: Element>(
    pass: &AxisPass,
    x: &[C],
    out: &mut ViewMut<'_>,
    par: Par,
    start: C,
    join: impl Fn(C, C) -> C + Copy + Sync,
) {
    let &AxisPass { outer, size, inner, count, window, stride, dilation, low } = pass;
    let out = &*out;
    let work = inner.saturating_mul(window.min(size));
    par.for_chunks(outer * count, (CHUNK / work.max(1)).max(1), |rows| {
        let mut row = rows.start;
        while row < rows.end {
            let (line, first) = (row / count, row % count);
            let last = count.min(first + (rows.end - row));
            // SAFETY: chunks are disjoint and in bounds of the result, which the caller borrows mutably.
            let target = unsafe { out.part::<C>(row * inner, (last - first) * inner) };
            target.iter_mut().for_each(|out| {
                out.write(start);
            });
            // SAFETY: just written.
            let target = unsafe { target.assume_init_mut() };
            let line = &x[line * size * inner..][..size * inner];
            let (step, signed_dilation) = (stride as i64, dilation as i64);
            // Elements of the window that are inside the tensor for at least one of these places.
            let from = ceil_div(low - (last as i64 - 1) * step, signed_dilation).max(0);
            let to = ((size as i64 - 1 + low - first as i64 * step).div_euclid(signed_dilation) + 1)
                .min(window as i64);
            // Places from `begun` on have a value: their first element is copied instead of joined, as in other
            // reductions.
            let mut begun = last;
            for element in from..to {
                let shift = element * signed_dilation - low;
                let begin = ceil_div(-shift, step).clamp(first as i64, last as i64) as usize;
                let end = ceil_div(size as i64 - shift, step).clamp(first as i64, last as i64) as usize;
                if begin >= end {
                    continue;
                }
                let fresh = begun.clamp(begin, end) - begin;
                begun = begun.min(begin);
                let input_at = (begin as i64 * step + shift) as usize;
                let results = &mut target[(begin - first) * inner..(end - first) * inner];
                let (copied, results) = results.split_at_mut(fresh * inner);
                if stride == 1 {
                    copied.copy_from_slice(&line[input_at * inner..][..copied.len()]);
                } else {
                    for (at, out) in copied.chunks_exact_mut(inner).enumerate() {
                        out.copy_from_slice(&line[(input_at + at * stride) * inner..][..inner]);
                    }
                }
                if results.is_empty() {
                    continue;
                }
                let input_at = input_at + fresh * stride;
                if stride == 1 {
                    join_all(results, &line[input_at * inner..][..results.len()], join);
                } else if inner == 1 {
                    for (out, &x) in results.iter_mut().zip(line[input_at..].iter().step_by(stride)) {
                        *out = join(*out, x);
                    }
                } else {
                    for (at, out) in results.chunks_exact_mut(inner).enumerate() {
                        join_all(out, &line[(input_at + at * stride) * inner..][..inner], join);
                    }
                }
            }
            row += last - first;
        }
    });
}

#[inline(always)]
fn join_all<C: Element>(out: &mut [C], x: &[C], join: impl Fn(C, C) -> C) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = join(*out, x);
    }
}

/// Recursive doubling.
fn recursive_doubling<C: Element>(
    pass: &AxisPass,
    x: &[C],
    out: &mut ViewMut<'_>,
    scratch: &mut ViewMut<'_>,
    par: Par,
    start: C,
    join: impl Fn(C, C) -> C + Copy + Sync,
) {
    let &AxisPass { outer, size, inner, count, window, stride, dilation, low } = pass;
    let length = pass.padded();
    let line = length * inner;
    let out = &*out;
    let scratch = &*scratch;
    // SAFETY: the caller lends the scratch for this call, and its halves are disjoint.
    let (mut level, mut next) =
        unsafe { (scratch.part::<C>(0, outer * line), scratch.part::<C>(outer * line, outer * line)) };
    // The first level: the elements, padded with the neutral element.
    fill(level, par, |at, piece| {
        for (at, out) in (at..).zip(piece) {
            let position = (at % line / inner) as i64 - low;
            let inside = position >= 0 && position < size as i64;
            out.write(if inside {
                x[(at / line * size + position as usize) * inner + at % inner]
            } else {
                start
            });
        }
    });
    let (mut run, mut done) = (1, 0);
    loop {
        // SAFETY: each level is written completely.
        let current: &[C] = unsafe { level.assume_init_ref() };
        if window & run != 0 {
            let first = done == 0;
            let skip = done * dilation;
            par.for_chunks(outer * count, (CHUNK / inner).max(1), |rows| {
                for row in rows {
                    let input_at = row / count * line + (row % count * stride + skip) * inner;
                    // SAFETY: chunks are disjoint and in bounds of the result, which the caller borrows mutably.
                    let target = unsafe { out.part::<C>(row * inner, inner) };
                    for (out, &x) in target.iter_mut().zip(&current[input_at..]) {
                        // SAFETY: the first joined run has written every place.
                        out.write(if first { x } else { join(unsafe { out.assume_init_read() }, x) });
                    }
                }
            });
            done += run;
        }
        if done == window {
            return;
        }
        let reach = run * dilation * inner;
        fill(next, par, |at, piece| {
            let end = at + piece.len();
            let mut at = at;
            let mut piece = piece;
            while at < end {
                // No window reads the runs that reach beyond their line.
                let within = at % line;
                let stop = end.min(at - within + line);
                let both = stop.min(at - within + line.saturating_sub(reach)).max(at) - at;
                let (joined, rest) = piece.split_at_mut(both);
                for ((out, &a), &b) in
                    joined.iter_mut().zip(&current[at..]).zip(current.get(at + reach..).unwrap_or(&[]))
                {
                    out.write(join(a, b));
                }
                let alone = stop - at - both;
                let (single, others) = rest.split_at_mut(alone);
                single.write_copy_of_slice(&current[at + both..][..alone]);
                (at, piece) = (stop, others);
            }
        });
        std::mem::swap(&mut level, &mut next);
        run *= 2;
    }
}

/// Writes a whole slice, chunk by chunk.
fn fill<C: Element>(
    target: &mut [MaybeUninit<C>],
    par: Par,
    work: impl Fn(usize, &mut [MaybeUninit<C>]) + Sync,
) {
    let start = SendPtr::of(target);
    par.for_chunks(target.len(), CHUNK, |chunk| {
        // SAFETY: chunks are disjoint parts of the slice, which is borrowed mutably meanwhile.
        let piece = unsafe { start.part(chunk.start, chunk.len()) };
        work(chunk.start, piece);
    });
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::kernels::testing::{Array, noise};

    /// The reductions of `[outer][size][inner]` integers, by the definition.
    fn slow(x: &[i64], pass: &AxisPass, op: WindowOp) -> Vec<i64> {
        let &AxisPass { outer, size, inner, count, window, stride, dilation, low } = pass;
        let mut out = Vec::new();
        for index in 0..outer * count * inner {
            let (line, out_position, column) = (index / inner / count, index / inner % count, index % inner);
            let inputs = (0..window).filter_map(|element| {
                let position = (out_position * stride + element * dilation) as i64 - low;
                let at = usize::try_from(position).ok().filter(|&at| at < size)?;
                Some(x[(line * size + at) * inner + column])
            });
            out.push(match op {
                WindowOp::WindowSum => inputs.fold(0, i64::wrapping_add),
                WindowOp::WindowProduct => inputs.fold(1, i64::wrapping_mul),
                WindowOp::WindowMax => inputs.fold(i64::MIN, i64::max),
                WindowOp::WindowMin => inputs.fold(i64::MAX, i64::min),
            });
        }
        out
    }

    #[test]
    fn short_and_long_windows_are_as_defined() {
        let mut random = noise(7);
        let mut below = |count: u64| (random.next().unwrap() % count) as usize;
        let (mut longs, mut shorts) = (0, 0);
        for _ in 0..400 {
            let long = below(2) == 1;
            let window = if long { DOUBLING_WINDOW + below(40) } else { 1 + below(6) };
            let (dilation, stride) = (1 + below(3), 1 + below(3));
            let (low, high) = (below(9) as i64 - 4, below(9) as i64 - 4);
            let reach = (window - 1) * dilation + 1;
            let size = (reach as i64 - low - high).max(1) as usize + below(20);
            let padded = size as i64 + low + high;
            let count = ((padded - reach as i64) / stride as i64 + 1) as usize;
            let (outer, inner) = (1 + below(3), 1 + below(3));
            let pass = AxisPass { outer, size, inner, count, window, stride, dilation, low };
            let x: Vec<i64> =
                noise(window as u64).take(outer * size * inner).map(|x| x as i64 >> 40).collect();
            let operand = Array::new(DType::S64, &[x.len()], x.iter().map(|&x| x.into()));
            if pass.is_long() {
                longs += 1
            } else {
                shorts += 1
            }
            for &op in WindowOp::ALL {
                for par in [Par::Serial, Par::Pool] {
                    let shape = Shape::new(&[outer * count * inner]);
                    let mut out = Array::unwritten(TensorType::new(DType::S64, shape).unwrap());
                    let mut scratch = Array::unwritten(doubling_scratch(&pass, DType::S64));
                    fold(
                        op,
                        DType::S64,
                        &pass,
                        operand.view(),
                        &mut out.view_mut(),
                        &mut scratch.view_mut(),
                        par,
                    );
                    let want = slow(&x, &pass, op);
                    assert_eq!(out.view().slice::<i64>(), want, "{op:?} {pass:?}");
                }
            }
        }
        assert!(longs > 50 && shorts > 50, "{longs} long windows and {shorts} short ones");
    }

    #[test]
    fn an_enormous_window_costs_what_the_tensor_has() {
        let window = Window {
            sizes: smallvec![1 << 40],
            strides: smallvec![1 << 60],
            padding: smallvec![(1 << 40, 0)],
            dilations: smallvec![1],
        };
        let passes = AxisPass::plan(&[3], &window, &[1]);
        let [(pass, _)] = passes.as_slice() else { panic!("one axis, one pass") };
        let x = Array::new(DType::S64, &[3], [1, 2, 3].map(|x: i64| x.into()));
        let mut out = Array::unwritten(TensorType::new(DType::S64, Shape::new(&[1])).unwrap());
        let mut scratch = Array::unwritten(doubling_scratch(pass, DType::S64));
        let (mut out_view, mut scratch_view) = (out.view_mut(), scratch.view_mut());
        fold(WindowOp::WindowSum, DType::S64, pass, x.view(), &mut out_view, &mut scratch_view, Par::Serial);
        // The window begins at the first place of padding and ends before the first element.
        assert_eq!(out.view().slice::<i64>(), [0]);
    }
}
