//! Discrete Fourier transforms of lines, by rustfft.

mod real;

pub(crate) use real::{Way, transform as transform_real};

use std::sync::{Arc, Mutex, PoisonError};

use defn_core::op::FftOp;
use defn_core::{DType, ErrorKind, Result};
use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

use crate::kernels::Element;
use crate::memory;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Elements that one thread transforms at a time, unless a line is longer.
const CHUNK: usize = 1 << 14;

/// Lines across an axis are moved side by side, as many as fill a cache line or two.
const SIDE: usize = 16;

/// How many plans are kept.
const KEPT: usize = 32;

/// Plans of longer transforms are not kept: their tables are as large as their lines.
const LONGEST_KEPT: usize = 1 << 17;

/// How often the memory of a line its transform may take, with the plan's tables: Bluestein's algorithm works on
/// a line of up to four times the length, beside two tables and two workspaces.
const SHARE: usize = 16;

/// Lines along an axis: an operand `[outer][size][inner]`, a result `[outer][length][inner]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    pub(crate) outer: usize,
    pub(crate) size: usize,
    pub(crate) length: usize,
    pub(crate) inner: usize,
}

/// Transforms lines that are cut, or filled up with zeros, to the result's length. Operand and result are of one
/// complex dtype. The inverse divides by the length.
///
/// # Errors
/// When there is no memory for the plan or for a thread's workspace.
pub(crate) fn transform(op: FftOp, lines: Lines, x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()> {
    if out.ty().dtype == DType::C64 {
        run::<f32>(op, lines, x, out, par)
    } else {
        run::<f64>(op, lines, x, out, par)
    }
}

/// The parts of complex numbers that are transformed, with the plans that are kept.
trait Part: FftNum {
    fn kept() -> &'static Plans<Self>;
}

/// Plans that were used lately, the last one at the end.
type Plans<T> = Mutex<Vec<((usize, FftOp), Arc<dyn Fft<T>>)>>;

macro_rules! part {
    ($($ty:ty),*) => {$(
        impl Part for $ty {
            fn kept() -> &'static Plans<$ty> {
                static KEPT: Plans<$ty> = Mutex::new(Vec::new());
                &KEPT
            }
        }
    )*};
}
part!(f32, f64);

/// Asks for memory that the allocator is about to be asked for.
fn reserve(op: FftOp, bytes: usize) -> Result<()> {
    memory::reserve(bytes)
        .map_err(|available| ErrorKind::OutOfMemory { op: op.name(), requested: bytes, available }.into())
}

/// Fills a vector with so many zeros.
fn workspace<T: Part>(op: FftOp, held: &mut Vec<Complex<T>>, count: usize) -> Result<()> {
    let requested = count.saturating_mul(size_of::<Complex<T>>());
    reserve(op, requested)?;
    let refused = ErrorKind::OutOfMemory { op: op.name(), requested, available: 0 };
    held.try_reserve_exact(count).map_err(|_| refused)?;
    held.resize(count, Complex::new(T::zero(), T::zero()));
    Ok(())
}

/// The plan for a length: a kept one, or a new one. A planner would keep all that it ever made.
fn plan<T: Part>(op: FftOp, length: usize) -> Result<Arc<dyn Fft<T>>> {
    let kept = || T::kept().lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut kept = kept();
        if let Some(at) = kept.iter().position(|(key, _)| *key == (length, op)) {
            let entry = kept.remove(at);
            let plan = entry.1.clone();
            kept.push(entry);
            return Ok(plan);
        }
    }
    reserve(op, length.saturating_mul(SHARE * size_of::<Complex<T>>()))?;
    let direction = match op {
        FftOp::Fft => FftDirection::Forward,
        FftOp::Ifft => FftDirection::Inverse,
    };
    let plan = FftPlanner::new().plan_fft(length, direction);
    if length <= LONGEST_KEPT {
        let mut kept = kept();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(((length, op), plan.clone()));
    }
    Ok(plan)
}

fn run<T: Part>(op: FftOp, lines: Lines, x: View<'_>, out: &mut ViewMut<'_>, par: Par) -> Result<()>
where
    Complex<T>: Element,
{
    let Lines { outer, size, length, inner } = lines;
    if out.ty().size() == 0 {
        return Ok(());
    }
    let plan = plan::<T>(op, length)?;
    let x = x.slice::<Complex<T>>();
    let scale = match op {
        FftOp::Fft => None,
        FftOp::Ifft => Some(T::one() / T::from_usize(length).expect("a float takes any length")),
    };
    let side = inner.min(SIDE);
    let strips = inner.div_ceil(side);
    let block = if inner == 1 { 0 } else { side * length };
    let room = block + plan.get_inplace_scratch_len();
    let failure = Mutex::new(None);
    let out = &*out;
    par.for_chunks(outer * strips, (CHUNK / (side * length)).max(1), |chunk| {
        let mut held = Vec::new();
        if let Err(error) = workspace(op, &mut held, room) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
        let (block, scratch) = held.split_at_mut(block);
        for task in chunk {
            let (line, strip) = (task / strips, task % strips);
            let taken = size.min(length);
            if inner == 1 {
                // SAFETY: each line belongs to one task, and the result is borrowed mutably meanwhile.
                let target = unsafe { out.part::<Complex<T>>(line * length, length) };
                target[..taken].write_copy_of_slice(&x[line * size..][..taken]);
                target[taken..].iter_mut().for_each(|out| {
                    out.write(Complex::<T>::ZERO);
                });
                // SAFETY: all of it was just written.
                let target = unsafe { target.assume_init_mut() };
                plan.process_with_scratch(target, scratch);
                if let Some(scale) = scale {
                    target.iter_mut().for_each(|x| *x = *x * scale);
                }
                continue;
            }
            let first = strip * side;
            let width = side.min(inner - first);
            let block = &mut block[..width * length];
            block.fill(Complex::<T>::ZERO);
            for row in 0..taken {
                let elements = &x[(line * size + row) * inner + first..][..width];
                for (column, &element) in elements.iter().enumerate() {
                    block[column * length + row] = element;
                }
            }
            plan.process_with_scratch(block, scratch);
            for row in 0..length {
                // SAFETY: each strip of each line belongs to one task.
                let target = unsafe { out.part::<Complex<T>>((line * length + row) * inner + first, width) };
                for (column, out) in target.iter_mut().enumerate() {
                    let value = block[column * length + row];
                    out.write(scale.map_or(value, |scale| value * scale));
                }
            }
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

    /// The transform by its definition.
    fn slow(op: FftOp, x: &[Complex<f64>], length: usize) -> Vec<Complex<f64>> {
        let sign = if op == FftOp::Fft { -1.0 } else { 1.0 };
        (0..length)
            .map(|k| {
                let terms = x.iter().take(length).enumerate().map(|(j, x)| {
                    let turn = (j * k % length) as f64 / length as f64;
                    x * Complex::from_polar(1.0, sign * std::f64::consts::TAU * turn)
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
                    transform(op, lines, operand.view(), &mut out.view_mut(), Par::Pool).unwrap();
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
    fn few_plans_are_kept() {
        for length in 1..100 {
            plan::<f64>(FftOp::Fft, length).unwrap();
        }
        assert_eq!(<f64 as Part>::kept().lock().unwrap().len(), KEPT);
        plan::<f32>(FftOp::Fft, LONGEST_KEPT + 1).unwrap();
        assert!(<f32 as Part>::kept().lock().unwrap().iter().all(|((length, _), _)| *length <= LONGEST_KEPT));
    }
}
