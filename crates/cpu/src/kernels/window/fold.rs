//! Reductions of windows, one axis after the other: a window's reduction is the reduction along one axis of the
//! reductions along the others.
//!
//! Short windows are reduced element by element, for many places together. Long ones use recursive doubling (Hillis and
//! Steele, "Data parallel algorithms", 1986): the reductions of runs of 1, 2, 4, ... elements at every position are
//! each made of two of the previous level, and the runs for the binary digits of the window's length are joined.
//! Nothing is ever subtracted from a sum, so that float sums are as accurate as those of a tree.

use std::mem::MaybeUninit;
use std::ops::Range;

use defn_core::op::{Window, WindowOp};
use defn_core::{DType, Shape, TensorType};
use smallvec::SmallVec;

use super::{MAX_STRIDE, ceil_div};
use crate::kernels::{CastFrom, Element, Plain, Real, SendPtr, TILE, with_real, with_unsigned};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that are reduced in a chunk.
const CHUNK: usize = 32 * TILE;

/// Bytes that are gathered or joined at once.
const STAGE: usize = 4096;

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
    let is_product = op == WindowOp::WindowProduct;
    let mut run = |start: &[u8], join: &Join<'_>| {
        // An empty axis behind this one leaves nothing to reduce.
        if pass.inner == 0 {
            return;
        }
        let places = Places { pass, width: start.len(), start, join, par };
        // Recursive doubling pads with the neutral element. For products with a complex infinity it is not neutral.
        if pass.is_long() && !(is_product && dtype.is_complex() && pass.is_padded()) {
            places.recursive_doubling(x.bytes(), out, scratch);
        } else {
            places.direct(x.bytes(), out);
        }
    };
    match op {
        WindowOp::WindowSum => {
            with_unsigned!(dtype, C => run(bytes_of(&C::ZERO), &|out, x| join_all(out, x, C::plus)))
        }
        WindowOp::WindowProduct => {
            with_unsigned!(dtype, C => run(bytes_of(&C::ONE), &|out, x| join_all(out, x, C::times)))
        }
        WindowOp::WindowMax => with_real!(dtype, C => {
            run(bytes_of(&bound::<C>(dtype.lowest())), &|out, x| join_all(out, x, C::greater))
        }),
        WindowOp::WindowMin => with_real!(dtype, C => {
            run(bytes_of(&bound::<C>(dtype.highest())), &|out, x| join_all(out, x, C::lesser))
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

/// Joins elements with others, which are as many, by their bytes.
type Join<'a> = dyn Fn(&mut [u8], &[u8]) + Sync + 'a;

/// The bytes of an element.
fn bytes_of<C: Plain>(element: &C) -> &[u8] {
    // SAFETY: plain types have no padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(element).cast(), size_of::<C>()) }
}

/// The one function that is compiled for each type and operation.
fn join_all<C: Plain>(out: &mut [u8], x: &[u8], join: impl Fn(C, C) -> C) {
    // SAFETY: any bits are a valid element.
    let ([], out, []) = (unsafe { out.align_to_mut::<C>() }) else { unreachable!("whole elements") };
    // SAFETY: as above.
    let ([], x, []) = (unsafe { x.align_to::<C>() }) else { unreachable!("whole elements") };
    for (out, &x) in out.iter_mut().zip(x) {
        *out = join(*out, x);
    }
}

/// Memory in which elements that lie apart are gathered.
#[repr(align(16))]
struct Stage([MaybeUninit<u8>; STAGE]);

/// Copies places of `place` bytes, the first bytes of each `step` bytes.
fn gather<'a>(to: &'a mut [MaybeUninit<u8>], from: &[u8], place: usize, step: usize) -> &'a mut [u8] {
    match place {
        _ if place == step => {
            to.write_copy_of_slice(&from[..to.len()]);
        }
        1 => gather_places::<1>(to, from, step),
        2 => gather_places::<2>(to, from, step),
        4 => gather_places::<4>(to, from, step),
        8 => gather_places::<8>(to, from, step),
        16 => gather_places::<16>(to, from, step),
        _ => {
            for (to, from) in to.chunks_exact_mut(place).zip(from.chunks(step)) {
                to.write_copy_of_slice(&from[..place]);
            }
        }
    }
    // SAFETY: just written.
    unsafe { to.assume_init_mut() }
}

fn gather_places<const N: usize>(to: &mut [MaybeUninit<u8>], from: &[u8], step: usize) {
    for (to, from) in to.as_chunks_mut::<N>().0.iter_mut().zip(from.chunks(step)) {
        let from: &[u8; N] = from.first_chunk().expect("a place");
        to.write_copy_of_slice(from);
    }
}

/// Neighbouring places that are joined with one element of each of their windows.
struct Span {
    /// The first of them and their end, and how many of the first have no value yet.
    begin: usize,
    end: usize,
    fresh: usize,
    /// The position of the first one's element.
    position: usize,
}

/// A reduction along one axis of elements of any type, which are known by their bytes only.
struct Places<'a> {
    pass: &'a AxisPass,
    /// The bytes of an element, and the neutral one.
    width: usize,
    start: &'a [u8],
    join: &'a Join<'a>,
    par: Par,
}

impl Places<'_> {
    /// The bytes of a place: the elements behind the axis.
    fn place(&self) -> usize {
        self.pass.inner * self.width
    }

    /// Writes the neutral element.
    fn clear(&self, to: &mut [MaybeUninit<u8>]) {
        if self.start.iter().all(|&byte| byte == self.start[0]) {
            return to.fill(MaybeUninit::new(self.start[0]));
        }
        let done = self.width.min(to.len());
        to[..done].write_copy_of_slice(&self.start[..done]);
        let mut done = done;
        while done < to.len() {
            let (written, rest) = to.split_at_mut(done);
            let count = rest.len().min(done);
            rest[..count].copy_from_slice(&written[..count]);
            done += count;
        }
    }

    /// Joins neighbouring places with elements a stride apart.
    fn join(&self, out: &mut [u8], from: &[u8]) {
        let (place, stride) = (self.place(), self.pass.stride);
        if stride == 1 {
            return (self.join)(out, &from[..out.len()]);
        }
        let step = place.saturating_mul(stride);
        if place > STAGE / 8 {
            for (out, from) in out.chunks_exact_mut(place).zip(from.chunks(step)) {
                (self.join)(out, &from[..place]);
            }
            return;
        }
        let mut stage = Stage([MaybeUninit::uninit(); STAGE]);
        let many = STAGE / place;
        for (out, from) in out.chunks_mut(many * place).zip(from.chunks(many.saturating_mul(step))) {
            (self.join)(out, gather(&mut stage.0[..out.len()], from, place, step));
        }
    }

    /// The next spans of `places` of a line, for elements of the window from `*element` on.
    fn spans(
        &self,
        places: &Range<usize>,
        element: &mut usize,
        begun: &mut usize,
        to: &mut SmallVec<[Span; 16]>,
    ) {
        let &AxisPass { size, window, stride, dilation, low, .. } = self.pass;
        let (step, dilation) = (stride as i64, dilation as i64);
        let (first, last) = (places.start as i64, places.end as i64);
        to.clear();
        // Elements of the window that are inside the tensor for at least one of these places.
        let from = ceil_div(low - (last - 1) * step, dilation).max(*element as i64);
        let end = ((size as i64 - 1 + low - first * step).div_euclid(dilation) + 1).min(window as i64);
        *element = window;
        for at in from..end {
            if to.len() == to.inline_size() {
                *element = at as usize;
                return;
            }
            let shift = at * dilation - low;
            let begin = ceil_div(-shift, step).clamp(first, last) as usize;
            let end = ceil_div(size as i64 - shift, step).clamp(first, last) as usize;
            if begin >= end {
                continue;
            }
            let fresh = (*begun).clamp(begin, end) - begin;
            *begun = begin.min(*begun);
            let position = (begin as i64 * step + shift) as usize;
            to.push(Span { begin: begin - places.start, end: end - places.start, fresh, position });
        }
    }

    /// Reduces element by element of the window, for runs of contiguous places.
    fn direct(&self, x: &[u8], out: &mut ViewMut<'_>) {
        let &AxisPass { outer, size, inner, count, window, stride, .. } = self.pass;
        let (out, place) = (&*out, self.place());
        let work = inner.saturating_mul(window.min(size));
        self.par.for_chunks(outer * count, (CHUNK / work.max(1)).max(1), |rows| {
            let mut spans = SmallVec::new();
            // The places whose spans these are, if they are all of their spans.
            let mut known = 0..0;
            let mut row = rows.start;
            while row < rows.end {
                let (line, first) = (row / count, row % count);
                let places = first..count.min(first + (rows.end - row));
                // SAFETY: chunks are disjoint and in bounds of the result, which the caller borrows mutably.
                let target = unsafe { out.part_bytes(row * place, places.len() * place) };
                let line = &x[line * size * place..][..size * place];
                // Places from `begun` on have a value: their first element is copied instead of joined, as in other
                // reductions.
                let (mut element, mut begun) = (0, places.end);
                if known != places {
                    self.spans(&places, &mut element, &mut begun, &mut spans);
                    known = if element == window { places.clone() } else { 0..0 };
                } else {
                    element = window;
                }
                // Nothing is to clear if an element is copied to each place.
                if spans.iter().map(|span| span.fresh).sum::<usize>() < places.len() {
                    self.clear(target);
                }
                loop {
                    for span in &spans {
                        let target = &mut target[span.begin * place..span.end * place];
                        let (copied, joined) = target.split_at_mut(span.fresh * place);
                        if !copied.is_empty() {
                            gather(
                                copied,
                                &line[span.position * place..],
                                place,
                                place.saturating_mul(stride),
                            );
                        }
                        if !joined.is_empty() {
                            // SAFETY: places that are not fresh have a value.
                            let joined = unsafe { joined.assume_init_mut() };
                            self.join(joined, &line[(span.position + span.fresh * stride) * place..]);
                        }
                    }
                    if element == window {
                        break;
                    }
                    self.spans(&places, &mut element, &mut begun, &mut spans);
                }
                row += places.len();
            }
        });
    }

    /// Recursive doubling.
    fn recursive_doubling(&self, x: &[u8], out: &mut ViewMut<'_>, scratch: &mut ViewMut<'_>) {
        let &AxisPass { outer, inner, count, window, stride, dilation, .. } = self.pass;
        let place = self.place();
        let line = self.pass.padded() * place;
        let out = &*out;
        let scratch = &*scratch;
        // SAFETY: the caller lends the scratch for this call, and its halves are disjoint.
        let (mut level, mut next) =
            unsafe { (scratch.part_bytes(0, outer * line), scratch.part_bytes(outer * line, outer * line)) };
        self.first_level(x, level);
        let (mut run, mut done) = (1, 0);
        loop {
            // SAFETY: each level is written completely.
            let current: &[u8] = unsafe { level.assume_init_ref() };
            if window & run != 0 {
                let (is_first, skip) = (done == 0, done * dilation);
                self.par.for_chunks(outer * count, (CHUNK / inner).max(1), |rows| {
                    let mut row = rows.start;
                    while row < rows.end {
                        let many = (count - row % count).min(rows.end - row);
                        let from = &current[row / count * line + (row % count * stride + skip) * place..];
                        // SAFETY: chunks are disjoint and in bounds of the result, which the caller borrows mutably.
                        let target = unsafe { out.part_bytes(row * place, many * place) };
                        if is_first {
                            gather(target, from, place, place.saturating_mul(stride));
                        } else {
                            // SAFETY: the first joined run has written every place.
                            self.join(unsafe { target.assume_init_mut() }, from);
                        }
                        row += many;
                    }
                });
                done += run;
            }
            if done == window {
                return;
            }
            self.next_level(current, line, run * dilation * place, next);
            std::mem::swap(&mut level, &mut next);
            run *= 2;
        }
    }

    /// The elements, padded with the neutral element.
    fn first_level(&self, x: &[u8], to: &mut [MaybeUninit<u8>]) {
        let place = self.place();
        let (line, size) = (self.pass.padded() * place, self.pass.size * place);
        let low = self.pass.low.saturating_mul(place as i64);
        let from = low.clamp(0, line as i64) as usize;
        let end = (low + size as i64).clamp(from as i64, line as i64) as usize;
        self.fill(to, |at, mut piece| {
            let (mut row, mut within) = (at / line, at % line);
            while !piece.is_empty() {
                for (stop, is_inside) in [(from, false), (end, true), (line, false)] {
                    let count = stop.saturating_sub(within).min(piece.len());
                    let (part, rest) = piece.split_at_mut(count);
                    if is_inside && count > 0 {
                        part.write_copy_of_slice(&x[row * size + (within as i64 - low) as usize..][..count]);
                    } else {
                        self.clear(part);
                    }
                    (piece, within) = (rest, within + count);
                }
                (row, within) = (row + 1, 0);
            }
        });
    }

    /// The reductions of runs that are twice as long as those in `current`, whose second halves are `reach` bytes
    /// behind the first ones.
    fn next_level(&self, current: &[u8], line: usize, reach: usize, to: &mut [MaybeUninit<u8>]) {
        self.fill(to, |at, mut piece| {
            let mut at = at;
            while !piece.is_empty() {
                // No window reads the runs that reach beyond their line.
                let within = at % line;
                let count = piece.len().min(line - within);
                let both = count.min(line.saturating_sub(reach).saturating_sub(within));
                let (part, rest) = piece.split_at_mut(count);
                for begin in (0..count).step_by(STAGE) {
                    let end = count.min(begin + STAGE);
                    let part = part[begin..end].write_copy_of_slice(&current[at + begin..at + end]);
                    if begin < both {
                        let joined = end.min(both) - begin;
                        (self.join)(&mut part[..joined], &current[at + begin + reach..][..joined]);
                    }
                }
                (piece, at) = (rest, at + count);
            }
        });
    }

    /// Writes a whole level, chunk by chunk.
    fn fill(&self, target: &mut [MaybeUninit<u8>], work: impl Fn(usize, &mut [MaybeUninit<u8>]) + Sync) {
        let start = SendPtr::of(target);
        self.par.for_chunks(target.len(), CHUNK * self.width, |chunk| {
            // SAFETY: chunks are disjoint parts of the slice, which is borrowed mutably meanwhile.
            let piece = unsafe { start.part(chunk.start, chunk.len()) };
            work(chunk.start, piece);
        });
    }
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
