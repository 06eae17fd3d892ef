//! Transforms between real elements and the first half of their frequencies.
//!
//! An even number of real elements is stored as half as many complex ones. The transform of half the length, followed
//! by one pass over pairs of frequencies, gives the transform of the elements (Cooley, Lewis and Welch, "The fast
//! Fourier transform algorithm: programming considerations in the calculation of sine, cosine and Laplace transforms",
//! 1970). Lines of odd length are transformed as complex ones.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use defn_core::Result;
use defn_core::op::FftOp;
use num_complex::Complex;
use rustfft::Fft;

use super::long::{GAP, Split, gather, scatter};
use super::plan::{FftFloat, plan, twiddles};
use super::{LineBatches, Lines, read_batch, scale_line};
use crate::kernels::simd::vectorized;
use crate::kernels::{Element, scratch};
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Pairs of frequencies that one thread takes at a time.
const PAIRS: usize = 1 << 13;

/// The direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RealDirection {
    /// From real elements, padded or cut to `length`, to `length / 2 + 1` frequencies.
    Forward,
    /// From `length / 2 + 1` frequencies to `length` real elements.
    Inverse,
}

/// A transform of lines that are cut or zero-padded to the size that `lines.length` real elements need.
pub(crate) struct RealTransform<T: FftFloat> {
    way: RealDirection,
    lines: Lines,
    long: Method<T>,
}

/// Whether lines are split into a matrix.
enum Method<T: FftFloat> {
    Split(Split<T>, Arc<Vec<Complex<T>>>),
    Whole(Half<T>),
}

impl<T: FftFloat + Element> RealTransform<T>
where
    Complex<T>: Element,
{
    /// Plans a transform.
    ///
    /// # Errors
    /// When there is no memory for the tables, which are cached.
    pub(crate) fn new(way: RealDirection, lines: Lines) -> Result<RealTransform<T>> {
        let Lines { length, inner, .. } = lines;
        let op = if way == RealDirection::Forward { FftOp::Fft } else { FftOp::Ifft };
        let is_even = inner == 1 && length.is_multiple_of(2);
        let split = if is_even { Split::<T>::new(op, length / 2)? } else { None };
        let long = match split {
            Some(split) => Method::Split(split, twiddles::<T>(op, length)?),
            None => Method::Whole(Half::new(op, length)?),
        };
        Ok(RealTransform { way, lines, long })
    }

    fn line_batches(&self, half: &Half<T>) -> LineBatches {
        let spare = if self.way == RealDirection::Forward { 0 } else { self.lines.length / 2 };
        LineBatches::new(self.lines, (half.line(), spare), &*half.plan)
    }

    /// The frequencies of a line that is copied and zero-padded before it is read; 0 if it is read in place.
    fn filled(&self) -> usize {
        let count = self.lines.length / 2 + 1;
        if self.way == RealDirection::Inverse && self.lines.size < count { count } else { 0 }
    }

    /// The number of complex scratch elements that [`run`](RealTransform::run) needs.
    pub(crate) fn scratch(&self, par: Par) -> usize {
        match &self.long {
            Method::Split(split, _) => self.filled() + split.scratch(par),
            Method::Whole(half) => self.line_batches(half).scratch(par),
        }
    }

    /// Transforms all lines. Real and complex elements have the same precision.
    pub(crate) fn run(&self, x: View<'_>, out: &mut ViewMut<'_>, scratch: &mut ViewMut<'_>, par: Par) {
        let memory = scratch.slice::<Complex<T>>();
        match self.way {
            RealDirection::Forward => self.forward(x.slice(), out, memory, par),
            RealDirection::Inverse => self.inverse(x.slice(), out, memory, par),
        }
    }
}

/// The transform of lines of one length that are not split.
struct Half<T: FftFloat> {
    plan: Arc<dyn Fft<T>>,
    length: usize,
    /// `exp(-2 pi i k / length)` for the frequencies of an even length; none for an odd one.
    twiddles: Option<Arc<Vec<Complex<T>>>>,
}

impl<T: FftFloat> Half<T> {
    fn new(op: FftOp, length: usize) -> Result<Half<T>> {
        let even = length.is_multiple_of(2);
        let plan = plan::<T>(op, if even { length / 2 } else { length })?;
        let twiddles = if even { Some(twiddles::<T>(op, length)?) } else { None };
        Ok(Half { plan, length, twiddles })
    }

    fn frequencies(&self) -> usize {
        self.length / 2 + 1
    }

    /// Complex elements that a line needs during its transform.
    fn line(&self) -> usize {
        if self.twiddles.is_none() { self.length } else { self.frequencies() }
    }

    /// Computes the frequencies of a line's elements and stores them at its start.
    fn forward(&self, line: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let Some(twiddles) = &self.twiddles else {
            self.plan.process_with_scratch(line, scratch);
            return;
        };
        self.plan.process_with_scratch(&mut line[..self.length / 2], scratch);
        unpack(line, twiddles, Par::Serial);
    }

    /// Computes the scaled elements of a line's frequencies. `spare` has room for half the line.
    fn inverse(&self, line: &mut [Complex<T>], spare: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let scale = T::nearest(1.0 / self.length as f64);
        let Some(twiddles) = &self.twiddles else {
            for k in self.frequencies()..self.length {
                line[k] = line[self.length - k].conj();
            }
            self.plan.process_with_scratch(line, scratch);
            scale_line(line, scale);
            return;
        };
        let half = self.length / 2;
        pack(line, twiddles, 0, spare, scale);
        self.plan.process_with_scratch(spare, scratch);
        line[..half].copy_from_slice(spare);
    }
}

/// Computes the frequencies of a line from those of its pairs of elements.
fn unpack<T: FftFloat>(line: &mut [Complex<T>], twiddles: &[Complex<T>], par: Par) {
    let half = line.len() - 1;
    // The lowest and the highest frequency are real.
    let Complex { re, im } = line[0];
    line[0] = Complex::new(re + im, T::zero());
    line[half] = Complex::new(re - im, T::zero());
    if half.is_multiple_of(2) {
        line[half / 2].im = -line[half / 2].im;
    }
    let pairs = (half - 1) / 2;
    let (low, high) = line[1..half].split_at_mut(pairs);
    let (high, twiddles) = (&mut high[half - 1 - 2 * pairs..], &twiddles[1..=pairs]);
    let pair_blocks = low.chunks_mut(PAIRS).zip(high.rchunks_mut(PAIRS)).zip(twiddles.chunks(PAIRS));
    let pair_blocks = Mutex::new(pair_blocks);
    par.for_chunks(pairs, PAIRS, |_| {
        let next = pair_blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
        if let Some(((low, high), twiddles)) = next {
            unpack_pairs(low, high, twiddles);
        }
    });
}

vectorized! {
    /// Computes frequencies, in place, from pairs of them: `low` in ascending order, `high` in descending order.
    fn unpack_pairs[T: FftFloat] of [T] (low: &mut [Complex<T>], high: &mut [Complex<T>], twiddles: &[Complex<T>]) {
        let by_half = T::nearest(0.5);
        let pair = |a: Complex<T>, b: Complex<T>, twiddle: Complex<T>| {
            // The transforms of the elements at even positions, and of those at odd positions, multiplied by the root.
            let even = Complex::new((a.re + b.re) * by_half, (a.im - b.im) * by_half);
            let odd = Complex::new((a.re - b.re) * by_half, (a.im + b.im) * by_half);
            let re = odd.re * twiddle.im + odd.im * twiddle.re;
            let im = odd.im * twiddle.im - odd.re * twiddle.re;
            (Complex::new(even.re + re, even.im + im), Complex::new(even.re - re, im - even.im))
        };
        for ((low, high), &twiddle) in low.iter_mut().zip(high.iter_mut().rev()).zip(twiddles) {
            (*low, *high) = pair(*low, *high, twiddle);
        }
    }
}

/// Computes the input of the inverse transform of half the length, from position `at` on, from a line's frequencies.
fn pack<T: FftFloat>(
    line: &[Complex<T>],
    twiddles: &[Complex<T>],
    at: usize,
    out: &mut [Complex<T>],
    scale: T,
) {
    let half = line.len() - 1;
    if at > 0 {
        let end = at + out.len();
        pack_pairs(&line[at..end], &line[half + 1 - end..=half - at], &twiddles[at..end], out, scale);
    } else if let [first, rest @ ..] = out {
        // The imaginary parts of these two frequencies do not contribute to real elements.
        let (low, high) = (line[0].re, line[half].re);
        *first = Complex::new((low + high) * scale, (low - high) * scale);
        if !rest.is_empty() {
            pack(line, twiddles, 1, rest, scale);
        }
    }
}

vectorized! {
    /// Packs frequencies: `low` in ascending order, with `high` in descending order.
    fn pack_pairs[T: FftFloat] of [T] (
        low: &[Complex<T>],
        high: &[Complex<T>],
        twiddles: &[Complex<T>],
        out: &mut [Complex<T>],
        scale: T,
    ) {
        let pair = |a: Complex<T>, b: Complex<T>, twiddle: Complex<T>| {
            let even = Complex::new(a.re + b.re, a.im - b.im);
            let odd = Complex::new(a.re - b.re, a.im + b.im);
            let re = even.re + (odd.re * twiddle.im - odd.im * twiddle.re);
            let im = even.im + (odd.re * twiddle.re + odd.im * twiddle.im);
            Complex::new(re * scale, im * scale)
        };
        for (((&low, &high), &twiddle), out) in low.iter().zip(high.iter().rev()).zip(twiddles).zip(out) {
            *out = pair(low, high, twiddle);
        }
    }
}

/// Scratch memory of a transform.
type FftScratch<'m, T> = &'m mut [MaybeUninit<Complex<T>>];

impl<T: FftFloat + Element> RealTransform<T>
where
    Complex<T>: Element,
{
    fn forward(&self, x: &[T], out: &mut ViewMut<'_>, memory: FftScratch<'_, T>, par: Par) {
        let Lines { size, length, inner, .. } = self.lines;
        let (used, count) = (size.min(length), length / 2 + 1);
        let zero = Complex::<T>::ZERO;
        let half = match &self.long {
            Method::Whole(half) => half,
            Method::Split(split, twiddles) => {
                let out = out.slice::<Complex<T>>();
                for (line, out) in out.chunks_exact_mut(count).enumerate() {
                    let x = &x[line * size..][..used];
                    let read = |at: usize, elements: &mut [Complex<T>]| {
                        pairs(x.get(2 * at..).unwrap_or_default(), elements);
                    };
                    split.run(read, None, &mut out[..length / 2], memory, par);
                    out[length / 2].write(zero);
                    // SAFETY: the transform wrote all elements but the last, which was set to zero.
                    unpack(unsafe { out.assume_init_mut() }, twiddles, par);
                }
                return;
            }
        };
        let stride = half.line() + GAP;
        let out = &*out;
        self.line_batches(half).run(memory, par, |line, first, width, block, scratch| {
            let row = |row: usize| &x[(line * size + row) * inner + first..][..width];
            match (&half.twiddles, inner) {
                (Some(_), 1) => pairs(&x[line * size..][..used], &mut block[..length / 2]),
                (Some(_), _) => gather(block, stride, length / 2, width, |at, elements| {
                    elements.fill(zero);
                    if 2 * at < used {
                        elements.iter_mut().zip(row(2 * at)).for_each(|(x, &re)| x.re = re);
                    }
                    if 2 * at + 1 < used {
                        elements.iter_mut().zip(row(2 * at + 1)).for_each(|(x, &im)| x.im = im);
                    }
                }),
                (None, _) => gather(block, stride, length, width, |at, elements| {
                    elements.fill(zero);
                    if at < used {
                        elements.iter_mut().zip(row(at)).for_each(|(x, &re)| x.re = re);
                    }
                }),
            }
            for column in block.chunks_exact_mut(stride) {
                half.forward(&mut column[..half.line()], scratch);
            }
            if inner == 1 {
                // SAFETY: each line belongs to one task, and the result is mutably borrowed during the call.
                unsafe { out.part::<Complex<T>>(line * count, count) }.write_copy_of_slice(&block[..count]);
            } else {
                scatter(block, stride, count, width, |row, elements| {
                    // SAFETY: each batch of each line belongs to one task.
                    unsafe { out.part((line * count + row) * inner + first, width) }
                        .write_copy_of_slice(elements);
                });
            }
        });
    }

    fn inverse(&self, x: &[Complex<T>], out: &mut ViewMut<'_>, memory: FftScratch<'_, T>, par: Par) {
        let Lines { size, length, inner, .. } = self.lines;
        let count = length / 2 + 1;
        let used = size.min(count);
        let zero = Complex::<T>::ZERO;
        let half = match &self.long {
            Method::Whole(half) => half,
            Method::Split(split, twiddles) => {
                let scale = T::nearest(1.0 / length as f64);
                let (filled, memory) = memory.split_at_mut(self.filled());
                let filled = scratch::filled(filled, zero);
                for (line, out) in out.slice::<T>().chunks_exact_mut(length).enumerate() {
                    let mut x = &x[line * size..][..used];
                    if used < count {
                        filled[..used].copy_from_slice(x);
                        x = &*filled;
                    }
                    // SAFETY: a complex number has the memory layout and the alignment of two consecutive reals.
                    let out = unsafe {
                        let start = out.as_mut_ptr().cast::<MaybeUninit<Complex<T>>>();
                        std::slice::from_raw_parts_mut(start, length / 2)
                    };
                    split.run(|at, elements| pack(x, twiddles, at, elements, scale), None, out, memory, par);
                }
                return;
            }
        };
        let stride = half.line() + GAP;
        let out = &*out;
        self.line_batches(half).run(memory, par, |line, first, width, block, scratch| {
            let (spare, scratch) = scratch.split_at_mut(length / 2);
            read_batch(self.lines, (line, first, width), x, used, stride, block);
            for column in block.chunks_exact_mut(stride) {
                column[used..].fill(zero);
                half.inverse(&mut column[..half.line()], spare, scratch);
            }
            // SAFETY: each batch of each line belongs to one task, and the result is mutably borrowed during the call.
            let row = |row: usize| unsafe { out.part::<T>((line * length + row) * inner + first, width) };
            if half.twiddles.is_none() {
                scatter(block, stride, length, width, |at, elements| {
                    row(at).iter_mut().zip(elements).for_each(|(out, x)| {
                        out.write(x.re);
                    });
                });
            } else if inner == 1 {
                // SAFETY: as above.
                let out = unsafe { out.part::<T>(line * length, length) };
                for (out, x) in out.as_chunks_mut::<2>().0.iter_mut().zip(&*block) {
                    out[0].write(x.re);
                    out[1].write(x.im);
                }
            } else {
                scatter(block, stride, length / 2, width, |at, elements| {
                    row(2 * at).iter_mut().zip(elements).for_each(|(out, x)| {
                        out.write(x.re);
                    });
                    row(2 * at + 1).iter_mut().zip(elements).for_each(|(out, x)| {
                        out.write(x.im);
                    });
                });
            }
        });
    }
}

/// Fills `out` with pairs of reals as complex numbers, zero-padded.
fn pairs<T: FftFloat>(x: &[T], out: &mut [Complex<T>]) {
    let (whole, rest) = x.as_chunks::<2>();
    for (out, &[re, im]) in out.iter_mut().zip(whole) {
        *out = Complex::new(re, im);
    }
    if let Some((last, zeros)) = out.get_mut(whole.len()..).and_then(<[_]>::split_first_mut) {
        *last = Complex::new(rest.first().copied().unwrap_or_else(T::zero), T::zero());
        zeros.fill(Complex::new(T::zero(), T::zero()));
    }
}

#[cfg(test)]
mod tests {
    use defn_core::{DType, Number, Shape, TensorType};

    use super::*;
    use crate::kernels::testing::{Array, noise};

    fn run(way: RealDirection, lines: Lines, x: &Array, dtype: DType, count: usize) -> Vec<Number> {
        let shape = Shape::new(&[lines.outer * count * lines.inner]);
        let mut out = Array::unwritten(TensorType::new(dtype, shape).unwrap());
        let transform = RealTransform::<f64>::new(way, lines).unwrap();
        let shape = Shape::new(&[transform.scratch(Par::Pool)]);
        let mut scratch = Array::unwritten(TensorType::new(DType::C128, shape).unwrap());
        transform.run(x.view(), &mut out.view_mut(), &mut scratch.view_mut(), Par::Pool);
        out.scalars().iter().map(|scalar| scalar.value()).collect()
    }

    #[test]
    fn real_transforms_are_halves_of_complex_ones() {
        for (size, length, inner) in
            [(8, 8, 1), (7, 7, 3), (5, 12, 20), (30, 13, 1), (1, 1, 4), (9, 2, 2), (90, 90, 2)]
        {
            let lines = Lines { outer: 2, size, length, inner };
            let number = |x: u64| (x >> 40) as f64 / (1 << 24) as f64 - 0.5;
            let numbers: Vec<f64> = noise(length as u64).take(2 * size * inner).map(number).collect();
            let real = Array::new(DType::F64, &[numbers.len()], numbers.iter().map(|&x| x.into()));
            let got = run(RealDirection::Forward, lines, &real, DType::C128, length / 2 + 1);
            for (at, got) in got.iter().enumerate() {
                let (line, k, column) =
                    (at / inner / (length / 2 + 1), at / inner % (length / 2 + 1), at % inner);
                let terms = (0..size.min(length)).map(|j| {
                    let angle = -std::f64::consts::TAU * (j * k % length) as f64 / length as f64;
                    Complex::from_polar(numbers[(line * size + j) * inner + column], angle)
                });
                let want: Complex<f64> = terms.sum();
                let Number::Complex(got) = *got else { panic!("a complex result") };
                assert!((got - want).norm() < 1e-13 * length as f64, "{lines:?} at {at}: {got} and {want}");
            }
            // The inverse restores all elements that were not cut off.
            let count = length / 2 + 1;
            let halves = Array::new(DType::C128, &[got.len()], got);
            let again =
                run(RealDirection::Inverse, Lines { size: count, ..lines }, &halves, DType::F64, length);
            for (at, got) in again.iter().enumerate() {
                let (line, row, column) = (at / inner / length, at / inner % length, at % inner);
                let want = if row < size { numbers[(line * size + row) * inner + column] } else { 0.0 };
                assert!((got.to_f64() - want).abs() < 1e-13 * length as f64, "{lines:?} at {at}");
            }
        }
    }
}
