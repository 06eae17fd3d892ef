//! Discrete Fourier transforms along an axis, by rustfft.

mod long;
mod plan;
mod real;

pub(crate) use real::{RealDirection, RealTransform};

use std::mem::MaybeUninit;
use std::sync::Arc;

use defn_core::Result;
use defn_core::op::FftOp;
use num_complex::Complex;
use rustfft::Fft;

use crate::kernels::simd::vectorized;
use crate::kernels::{Element, scratch};
use crate::par::Par;
use crate::view::{View, ViewMut};
use long::{GAP, Split, gather, scatter};
pub(crate) use plan::FftFloat;
use plan::plan;

/// Elements that one thread transforms at a time, unless a line is longer.
const CHUNK: usize = 1 << 14;

/// The most lines of a batch. Lines across an axis are copied in batches of one or two cache lines' width.
const SIDE: usize = 16;

/// Lines along an axis: an operand `[outer][size][inner]`, a result `[outer][length][inner]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    pub(crate) outer: usize,
    pub(crate) size: usize,
    pub(crate) length: usize,
    pub(crate) inner: usize,
}

vectorized! {
    /// Multiplies a line by a factor.
    fn scale_line[T: FftFloat] of [T] (line: &mut [Complex<T>], factor: T) {
        for x in line {
            *x = Complex::new(x.re * factor, x.im * factor);
        }
    }
}

/// A transform of lines that are cut or zero-padded to a length. The inverse divides by the length.
pub(crate) struct Transform<T: FftFloat> {
    op: FftOp,
    lines: Lines,
    way: Method<T>,
}

/// Whether lines are split into a matrix.
enum Method<T: FftFloat> {
    Split(Split<T>),
    Whole(Arc<dyn Fft<T>>),
}

impl<T: FftFloat> Transform<T>
where
    Complex<T>: Element,
{
    /// Plans a transform.
    ///
    /// # Errors
    /// When there is no memory for the tables, which are cached.
    pub(crate) fn new(op: FftOp, lines: Lines) -> Result<Transform<T>> {
        let split = if lines.inner == 1 { Split::<T>::new(op, lines.length)? } else { None };
        let way = match split {
            Some(split) => Method::Split(split),
            None => Method::Whole(plan::<T>(op, lines.length)?),
        };
        Ok(Transform { op, lines, way })
    }

    /// The number of complex scratch elements that [`run`](Transform::run) needs.
    pub(crate) fn scratch(&self, par: Par) -> usize {
        match &self.way {
            Method::Split(split) => split.scratch(par),
            Method::Whole(plan) => LineBatches::new(self.lines, (self.lines.length, 0), &**plan).scratch(par),
        }
    }

    /// Transforms all lines. Operand, result and scratch have the same complex dtype.
    pub(crate) fn run(&self, x: View<'_>, out: &mut ViewMut<'_>, scratch: &mut ViewMut<'_>, par: Par) {
        let Lines { size, length, inner, .. } = self.lines;
        let x = x.slice::<Complex<T>>();
        let memory = scratch.slice::<Complex<T>>();
        let used = size.min(length);
        let scale = match self.op {
            FftOp::Fft => None,
            FftOp::Ifft => Some(T::nearest(1.0 / length as f64)),
        };
        let plan = match &self.way {
            Method::Whole(plan) => plan,
            Method::Split(split) => {
                let out = out.slice::<Complex<T>>();
                for (line, out) in out.chunks_exact_mut(length).enumerate() {
                    let x = &x[line * size..][..used];
                    let read = |at: usize, elements: &mut [Complex<T>]| {
                        let there = x.get(at..).unwrap_or_default();
                        let there = &there[..elements.len().min(there.len())];
                        elements[..there.len()].copy_from_slice(there);
                        elements[there.len()..].fill(Complex::<T>::ZERO);
                    };
                    split.run(read, scale, out, memory, par);
                }
                return;
            }
        };
        let out = &*out;
        let stride = length + GAP;
        let line_batches = LineBatches::new(self.lines, (length, 0), &**plan);
        line_batches.run(memory, par, |line, first, width, block, scratch| {
            read_batch(self.lines, (line, first, width), x, used, stride, block);
            for column in block.chunks_exact_mut(stride) {
                let column = &mut column[..length];
                column[used..].fill(Complex::<T>::ZERO);
                plan.process_with_scratch(column, scratch);
                if let Some(scale) = scale {
                    scale_line(column, scale);
                }
            }
            if inner == 1 {
                // SAFETY: each line belongs to one task, and the result is mutably borrowed during the call.
                unsafe { out.part::<Complex<T>>(line * length, length) }
                    .write_copy_of_slice(&block[..length]);
            } else {
                scatter(block, stride, length, width, |row, elements| {
                    // SAFETY: each batch of each line belongs to one task.
                    unsafe { out.part((line * length + row) * inner + first, width) }
                        .write_copy_of_slice(elements);
                });
            }
        });
    }
}

/// Fills the columns of a batch, `stride` elements apart, with the first `used` elements of their lines.
fn read_batch<T: FftFloat>(
    lines: Lines,
    (line, first, width): (usize, usize, usize),
    x: &[Complex<T>],
    used: usize,
    stride: usize,
    block: &mut [Complex<T>],
) {
    let Lines { size, inner, .. } = lines;
    if inner == 1 {
        block[..used].copy_from_slice(&x[line * size..][..used]);
        return;
    }
    gather(block, stride, used, width, |row, elements| {
        elements.copy_from_slice(&x[(line * size + row) * inner + first..][..width]);
    });
}

/// Batches of adjacent lines. The buffer of a batch holds its lines with a gap after each.
struct LineBatches {
    lines: Lines,
    /// The most lines of a batch.
    side: usize,
    /// The number of batches of one outer index.
    count: usize,
    /// Stride between the lines of a batch.
    stride: usize,
    /// Further elements that a thread needs.
    rest: usize,
    /// The bytes of an element.
    width: usize,
}

impl LineBatches {
    /// Batches for lines of `capacity` elements, with `spare` extra elements and the plan's scratch.
    fn new<T: FftFloat>(lines: Lines, (capacity, spare): (usize, usize), plan: &dyn Fft<T>) -> LineBatches {
        let side = lines.inner.min(SIDE);
        let rest = spare + plan.get_inplace_scratch_len();
        let (count, width) = (lines.inner.div_ceil(side.max(1)), size_of::<Complex<T>>());
        LineBatches { lines, side, count, stride: capacity + GAP, rest, width }
    }

    /// The number of elements of a thread's workspace.
    fn scratch_len(&self) -> usize {
        self.side * self.stride + self.rest
    }

    /// The number of batches that a thread takes at a time.
    fn grain(&self) -> usize {
        (CHUNK / (self.side * self.stride).max(1)).max(1)
    }

    /// The number of elements that [`run`](LineBatches::run) needs.
    fn scratch(&self, par: Par) -> usize {
        let Lines { outer, length, inner, .. } = self.lines;
        let tasks = (outer * self.count).div_ceil(self.grain());
        self.scratch_len()
            * scratch::count(tasks, self.scratch_len() * self.width, outer * length * inner * self.width, par)
    }

    /// Calls `work(line, first, width, block, scratch)` for batches of `width` adjacent lines from column `first` on.
    /// `block` has room for the lines, `scratch` for the spare elements and the plan. `memory` has the size that
    /// [`scratch`](LineBatches::scratch) returns.
    fn run<T: FftFloat>(
        &self,
        memory: &mut [MaybeUninit<Complex<T>>],
        par: Par,
        work: impl Fn(usize, usize, usize, &mut [Complex<T>], &mut [Complex<T>]) + Sync,
    ) where
        Complex<T>: Element,
    {
        let (all, grain) = (self.lines.outer * self.count, self.grain());
        scratch::share(par, all.div_ceil(grain), (memory, self.scratch_len()), |own, tasks| {
            let own = scratch::filled(own, Complex::<T>::ZERO);
            let (block, scratch) = own.split_at_mut(self.side * self.stride);
            for batch in tasks.flat_map(|task| task * grain..all.min((task + 1) * grain)) {
                let (line, first) = (batch / self.count, batch % self.count * self.side);
                let width = self.side.min(self.lines.inner - first);
                work(line, first, width, &mut block[..width * self.stride], scratch);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use defn_core::{DType, Number, Shape, TensorType};

    use super::*;
    use crate::kernels::testing::{Array, noise};

    fn transform(op: FftOp, lines: Lines, x: View<'_>, out: &mut ViewMut<'_>, par: Par) {
        fn run<T: FftFloat>(op: FftOp, lines: Lines, x: View<'_>, out: &mut ViewMut<'_>, par: Par)
        where
            Complex<T>: Element,
        {
            let transform = Transform::<T>::new(op, lines).unwrap();
            let shape = Shape::new(&[transform.scratch(par)]);
            let mut scratch = Array::unwritten(TensorType::new(x.ty().dtype, shape).unwrap());
            transform.run(x, out, &mut scratch.view_mut(), par);
        }
        if out.ty().dtype == DType::C64 {
            run::<f32>(op, lines, x, out, par);
        } else {
            run::<f64>(op, lines, x, out, par);
        }
    }

    /// The transform by definition.
    fn slow(op: FftOp, x: &[Complex<f64>], length: usize) -> Vec<Complex<f64>> {
        let sign = if op == FftOp::Fft { -1.0 } else { 1.0 };
        (0..length)
            .map(|k| {
                let terms = x.iter().take(length).enumerate().map(|(j, x)| {
                    let angle = (j * k % length) as f64 / length as f64;
                    x * Complex::from_polar(1.0, sign * std::f64::consts::TAU * angle)
                });
                let sum: Complex<f64> = terms.sum();
                if op == FftOp::Fft { sum } else { sum / length as f64 }
            })
            .collect()
    }

    #[test]
    fn transforms_are_as_defined() {
        for (size, length, inner) in [(8, 8, 1), (7, 7, 3), (5, 12, 20), (30, 13, 1), (1, 1, 4), (97, 97, 2)]
        {
            let lines = Lines { outer: 3, size, length, inner };
            let part = |x: u64| (x >> 40) as f64 / (1 << 24) as f64 - 0.5;
            let random: Vec<f64> = noise(length as u64).take(3 * size * inner * 2).map(part).collect();
            let x: Vec<Complex<f64>> = random.chunks(2).map(|pair| Complex::new(pair[0], pair[1])).collect();
            for &op in FftOp::ALL {
                for (dtype, error) in [(DType::C128, 1e-13), (DType::C64, 1e-5)] {
                    let operand = Array::new(dtype, &[x.len()], x.iter().map(|&x| Number::Complex(x)));
                    let shape = Shape::new(&[3 * length * inner]);
                    let mut out = Array::unwritten(TensorType::new(dtype, shape).unwrap());
                    transform(op, lines, operand.view(), &mut out.view_mut(), Par::Pool);
                    let got = out.scalars();
                    for (line, column) in (0..3).flat_map(|line| (0..inner).map(move |column| (line, column)))
                    {
                        let own = |row: usize| x[(line * size + row) * inner + column];
                        let want = slow(op, &(0..size).map(own).collect::<Vec<_>>(), length);
                        for (row, want) in want.into_iter().enumerate() {
                            let Number::Complex(got) = got[(line * length + row) * inner + column].value()
                            else {
                                panic!("a complex result")
                            };
                            assert!(
                                (got - want).norm() <= error * length as f64,
                                "{lines:?}: {got} and {want}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn long_lines_are_those_of_short_ones() {
        // A cosine and a constant, whose frequencies are known.
        for length in [1 << 16, 3 * 5 * 7 * 11 * 64] {
            for &op in FftOp::ALL {
                let wave = |at: usize| {
                    let angle = (at * 1234 % length) as f64 / length as f64;
                    Complex::new(0.5 + (std::f64::consts::TAU * angle).cos(), 0.25)
                };
                // The operand's lines are longer than the transform, and there are two of them.
                let x: Vec<Complex<f64>> = (0..2 * (length + 3)).map(|at| wave(at % (length + 3))).collect();
                let operand = Array::new(DType::C128, &[x.len()], x.into_iter().map(Number::Complex));
                let lines = Lines { outer: 2, size: length + 3, length, inner: 1 };
                let ty = TensorType::new(DType::C128, Shape::new(&[2 * length])).unwrap();
                let mut both = [Par::Serial, Par::Pool].map(|par| {
                    let mut out = Array::unwritten(ty.clone());
                    transform(op, lines, operand.view(), &mut out.view_mut(), par);
                    out.scalars()
                });
                assert_eq!(both[0], both[1]);
                let scale = if op == FftOp::Fft { length as f64 } else { 1.0 };
                for (at, got) in both[0].drain(..).enumerate() {
                    let want = match at % length {
                        0 => Complex::new(0.5, 0.25),
                        k if k == 1234 || k == length - 1234 => Complex::new(0.5, 0.0),
                        _ => Complex::ZERO,
                    };
                    let Number::Complex(got) = got.value() else { panic!("a complex result") };
                    assert!((got / scale - want).norm() < 1e-13, "{at}: {got} and {want}");
                }
            }
        }
    }
}
