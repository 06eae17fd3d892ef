//! Transforms between real elements and the first half of their frequencies.
//!
//! An even number of real elements is half as many complex ones, of which the transform of half the length
//! gives that of the elements after one pass over pairs of frequencies (Cooley, Lewis and Welch, "The fast
//! Fourier transform algorithm: programming considerations in the calculation of sine, cosine and Laplace
//! transforms", 1970). Lines of odd length are transformed as complex ones.

use std::sync::{Arc, Mutex, PoisonError};

use defn_core::op::FftOp;
use defn_core::{DType, Result};
use num_complex::Complex;
use rustfft::Fft;

use super::{CHUNK, Lines, Part, SIDE, plan, workspace};
use crate::kernels::Element;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From real elements, of which `length` are transformed, to `length / 2 + 1` frequencies.
    Forth,
    /// From so many frequencies to `length` real elements.
    Back,
}

/// Transforms lines that are cut, or filled up with zeros, to what `lines.length` elements need. Real and complex
/// elements are of one precision.
///
/// # Errors
/// When there is no memory for the plan or for a thread's workspace.
pub(crate) fn transform(way: Way, lines: Lines, x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    let complex = if way == Way::Forth { out.ty().dtype } else { x.ty().dtype };
    match (way, complex == DType::C64) {
        (Way::Forth, true) => forth::<f32>(lines, x.slice(), out, par),
        (Way::Forth, false) => forth::<f64>(lines, x.slice(), out, par),
        (Way::Back, true) => back::<f32>(lines, x.slice(), out, par),
        (Way::Back, false) => back::<f64>(lines, x.slice(), out, par),
    }
}

/// How lines of one length are transformed.
struct Half<T: Part> {
    plan: Arc<dyn Fft<T>>,
    length: usize,
    /// `exp(-2 pi i k / length)` for the frequencies of an even length; empty for an odd one.
    turns: Vec<Complex<T>>,
}

impl<T: Part> Half<T>
where
    Complex<T>: Element,
{
    fn new(op: FftOp, length: usize) -> Result<Half<T>> {
        let even = length.is_multiple_of(2);
        let plan = plan::<T>(op, if even { length / 2 } else { length })?;
        let mut turns = Vec::new();
        if even {
            workspace(op, &mut turns, length / 2 + 1)?;
            for (k, turn) in turns.iter_mut().enumerate() {
                let (sin, cos) = (-std::f64::consts::TAU * k as f64 / length as f64).sin_cos();
                *turn = Complex::new(part(cos), part(sin));
            }
        }
        Ok(Half { plan, length, turns })
    }

    fn frequencies(&self) -> usize {
        self.length / 2 + 1
    }

    /// Complex numbers that a line takes while it is transformed.
    fn line(&self) -> usize {
        if self.turns.is_empty() { self.length } else { self.frequencies() }
    }

    /// Where a real element lies in a line.
    fn set(&self, line: &mut [Complex<T>], at: usize, value: T) {
        if self.turns.is_empty() {
            line[at] = Complex::new(value, T::zero());
        } else if at.is_multiple_of(2) {
            line[at / 2].re = value;
        } else {
            line[at / 2].im = value;
        }
    }

    fn get(&self, line: &[Complex<T>], at: usize) -> T {
        if self.turns.is_empty() {
            line[at].re
        } else if at.is_multiple_of(2) {
            line[at / 2].re
        } else {
            line[at / 2].im
        }
    }

    /// Makes frequencies, the first ones of the line, of elements.
    fn forth(&self, line: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        if self.turns.is_empty() {
            self.plan.process_with_scratch(line, scratch);
            return;
        }
        let half = self.length / 2;
        self.plan.process_with_scratch(&mut line[..half], scratch);
        let by_half = part::<T>(0.5);
        // The lowest and the highest frequency are real.
        let Complex { re, im } = line[0];
        line[0] = Complex::new(re + im, T::zero());
        line[half] = Complex::new(re - im, T::zero());
        for k in 1..=half / 2 {
            let (a, b) = (line[k], line[half - k].conj());
            // The transforms of the elements at even places and, turned, of those at odd ones.
            let (even, odd) = ((a + b) * by_half, (a - b) * by_half);
            let turned = odd * self.turns[k] * Complex::new(T::zero(), -T::one());
            line[k] = even + turned;
            line[half - k] = (even - turned).conj();
        }
    }

    /// Makes elements, scaled, of frequencies.
    fn back(&self, line: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        let scale = T::one() / part::<T>(self.length as f64);
        if self.turns.is_empty() {
            for k in self.frequencies()..self.length {
                line[k] = line[self.length - k].conj();
            }
            self.plan.process_with_scratch(line, scratch);
            line.iter_mut().for_each(|x| *x = *x * scale);
            return;
        }
        let half = self.length / 2;
        // Of these two the imaginary parts have no part in real elements.
        line[0].im = T::zero();
        line[half].im = T::zero();
        for k in 0..=half / 2 {
            let (a, b) = (line[k], line[half - k].conj());
            let (even, odd) = (a + b, (a - b) * self.turns[k].conj());
            let turned = odd * Complex::new(T::zero(), T::one());
            line[k] = even + turned;
            line[half - k] = (even - turned).conj();
        }
        self.plan.process_with_scratch(&mut line[..half], scratch);
        line[..half].iter_mut().for_each(|x| *x = *x * scale);
    }
}

/// A number as a part.
fn part<T: Part>(number: f64) -> T {
    T::from_f64(number).expect("a float takes any float")
}

fn forth<T: Part + Element>(lines: Lines, x: &[T], out: &mut ViewMut<'_>, par: Par) -> Result<()>
where
    Complex<T>: Element,
{
    let Lines { size, length, inner, .. } = lines;
    let half = Half::<T>::new(FftOp::Fft, length)?;
    let (taken, count) = (size.min(length), half.frequencies());
    let out = &*out;
    each_strip(FftOp::Fft, lines, &half, par, |line, first, width, block, scratch| {
        block.fill(Complex::<T>::ZERO);
        for row in 0..taken {
            let elements = &x[(line * size + row) * inner + first..][..width];
            for (column, &element) in elements.iter().enumerate() {
                half.set(&mut block[column * half.line()..], row, element);
            }
        }
        for column in block.chunks_exact_mut(half.line()) {
            half.forth(column, scratch);
        }
        for row in 0..count {
            // SAFETY: each strip of each line belongs to one task, and the result is borrowed mutably meanwhile.
            let target = unsafe { out.part::<Complex<T>>((line * count + row) * inner + first, width) };
            for (column, out) in target.iter_mut().enumerate() {
                out.write(block[column * half.line() + row]);
            }
        }
    })
}

fn back<T: Part + Element>(lines: Lines, x: &[Complex<T>], out: &mut ViewMut<'_>, par: Par) -> Result<()>
where
    Complex<T>: Element,
{
    let Lines { size, length, inner, .. } = lines;
    let half = Half::<T>::new(FftOp::Ifft, length)?;
    let taken = size.min(half.frequencies());
    let out = &*out;
    each_strip(FftOp::Ifft, lines, &half, par, |line, first, width, block, scratch| {
        block.fill(Complex::<T>::ZERO);
        for row in 0..taken {
            let elements = &x[(line * size + row) * inner + first..][..width];
            for (column, &element) in elements.iter().enumerate() {
                block[column * half.line() + row] = element;
            }
        }
        for column in block.chunks_exact_mut(half.line()) {
            half.back(column, scratch);
        }
        for row in 0..length {
            // SAFETY: each strip of each line belongs to one task, and the result is borrowed mutably meanwhile.
            let target = unsafe { out.part::<T>((line * length + row) * inner + first, width) };
            for (column, out) in target.iter_mut().enumerate() {
                out.write(half.get(&block[column * half.line()..], row));
            }
        }
    })
}

/// Calls `work(line, first, width, block, scratch)` for strips of `width` lines side by side, from column `first`
/// on, with room for their lines and for the transform.
fn each_strip<T: Part>(
    op: FftOp,
    lines: Lines,
    half: &Half<T>,
    par: Par,
    work: impl Fn(usize, usize, usize, &mut [Complex<T>], &mut [Complex<T>]) + Sync,
) -> Result<()>
where
    Complex<T>: Element,
{
    let Lines { outer, inner, .. } = lines;
    let side = inner.min(SIDE);
    let strips = inner.div_ceil(side.max(1));
    let (room, scratch) = (side * half.line(), half.plan.get_inplace_scratch_len());
    let failure = Mutex::new(None);
    par.for_chunks(outer * strips, (CHUNK / room.max(1)).max(1), |chunk| {
        let mut held = Vec::new();
        if let Err(error) = workspace(op, &mut held, room + scratch) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
        let (block, scratch) = held.split_at_mut(room);
        for task in chunk {
            let (line, first) = (task / strips, task % strips * side);
            let width = side.min(inner - first);
            work(line, first, width, &mut block[..width * half.line()], scratch);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use defn_core::{Number, Shape, TensorType};

    use super::*;
    use crate::kernels::testing::{Array, noise};

    fn run(way: Way, lines: Lines, x: &Array, dtype: DType, count: usize) -> Vec<Number> {
        let shape = Shape::new(&[lines.outer * count * lines.inner]);
        let mut out = Array::unwritten(TensorType::new(dtype, shape).unwrap());
        transform(way, lines, x.view(), &mut out.view_mut(), Par::Pool).unwrap();
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
            let got = run(Way::Forth, lines, &real, DType::C128, length / 2 + 1);
            for (at, got) in got.iter().enumerate() {
                let (line, k, column) =
                    (at / inner / (length / 2 + 1), at / inner % (length / 2 + 1), at % inner);
                let terms = (0..size.min(length)).map(|j| {
                    let turn = -std::f64::consts::TAU * (j * k % length) as f64 / length as f64;
                    Complex::from_polar(numbers[(line * size + j) * inner + column], turn)
                });
                let want: Complex<f64> = terms.sum();
                let Number::Complex(got) = *got else { panic!("a complex result") };
                assert!((got - want).norm() < 1e-13 * length as f64, "{lines:?} at {at}: {got} and {want}");
            }
            // And back again, but for what was cut off.
            let count = length / 2 + 1;
            let halves = Array::new(DType::C128, &[got.len()], got);
            let again = run(Way::Back, Lines { size: count, ..lines }, &halves, DType::F64, length);
            for (at, got) in again.iter().enumerate() {
                let (line, row, column) = (at / inner / length, at / inner % length, at % inner);
                let want = if row < size { numbers[(line * size + row) * inner + column] } else { 0.0 };
                assert!((got.to_f64() - want).abs() < 1e-13 * length as f64, "{lines:?} at {at}");
            }
        }
    }
}
