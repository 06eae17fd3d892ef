//! Plans and tables of transforms, cached by length.

use std::any::Any;
use std::f64::consts::FRAC_PI_2;
use std::sync::{Arc, Mutex, PoisonError};

use defn_core::op::FftOp;
use defn_core::{ErrorKind, Result, memory};
use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner, FftPlannerScalar};

use crate::settings::{Instructions, instructions};

/// The most cached plans.
const MAX_PLANS: usize = 32;

/// The most bytes of all cached plans' tables together.
const MAX_PLAN_BYTES: usize = 64 << 20;

/// The real and imaginary parts of the complex numbers that are transformed.
pub(crate) trait FftFloat: FftNum {
    /// The nearest number of this type.
    fn nearest(x: f64) -> Self;
}

impl FftFloat for f32 {
    #[inline(always)]
    fn nearest(x: f64) -> f32 {
        x as f32
    }
}

impl FftFloat for f64 {
    #[inline(always)]
    fn nearest(x: f64) -> f64 {
        x
    }
}

/// The kind of a cached plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanKind {
    /// A transform of complex lines.
    Complex(FftOp),
    /// The roots of unity for the frequencies of real lines.
    Twiddles,
}

/// A cached plan. Its key is the kind, the length and the bytes of a part.
struct Entry {
    key: (PlanKind, usize, usize),
    bytes: usize,
    plan: Arc<dyn Any + Send + Sync>,
}

/// Cached plans in order of use, the most recent last.
static PLANS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Returns a cached plan, or a new one, which is cached if its tables, of `bytes` bytes, fit into [`MAX_PLAN_BYTES`].
fn cached<P: Send + Sync + Clone + 'static>(
    key: (PlanKind, usize, usize),
    bytes: usize,
    make: impl FnOnce() -> Result<P>,
) -> Result<P> {
    let plans = || PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut plans = plans();
        if let Some(at) = plans.iter().position(|entry| entry.key == key) {
            let entry = plans.remove(at);
            let plan = entry.plan.downcast_ref::<P>().expect("plans of one use are of one type").clone();
            plans.push(entry);
            return Ok(plan);
        }
    }
    let plan = make()?;
    if bytes <= MAX_PLAN_BYTES {
        let mut plans = plans();
        plans.push(Entry { key, bytes, plan: Arc::new(plan.clone()) });
        while plans.len() > MAX_PLANS || plans.iter().map(|entry| entry.bytes).sum::<usize>() > MAX_PLAN_BYTES
        {
            plans.remove(0);
        }
    }
    Ok(plan)
}

/// Memory of a transform with its tables, as a multiple of a line's memory, at most: Bluestein's algorithm uses a line
/// of up to four times the length, two tables and two workspaces.
const SHARE: usize = 16;

/// The plan for a length, by a new planner: a planner keeps every plan that it made.
pub(super) fn plan<T: FftFloat>(op: FftOp, length: usize) -> Result<Arc<dyn Fft<T>>> {
    let line = length.saturating_mul(size_of::<Complex<T>>());
    // Tables of lengths without large prime factors are about as long as the line.
    let bytes = if is_smooth(length) { line } else { line.saturating_mul(SHARE / 2) };
    cached((PlanKind::Complex(op), length, size_of::<T>()), bytes, || {
        reserve(op, line.saturating_mul(SHARE))?;
        // The planner aborts if an allocation fails. Allocating and freeing this memory first shows that it is
        // available.
        std::hint::black_box(memory::with_capacity::<u8>(op.name(), bytes.saturating_mul(2))?);
        let direction = match op {
            FftOp::Fft => FftDirection::Forward,
            FftOp::Ifft => FftDirection::Inverse,
        };
        Ok(match (cfg!(target_arch = "x86_64"), instructions()) {
            (true, Instructions::Portable) => FftPlannerScalar::new().plan_fft(length, direction),
            (true, Instructions::Avx2 | Instructions::Avx512) | (false, _) => {
                FftPlanner::new().plan_fft(length, direction)
            }
        })
    })
}

/// `exp(-2 pi i k / length)` for `k` from 0 to `length / 2`.
pub(super) fn twiddles<T: FftFloat>(op: FftOp, length: usize) -> Result<Arc<Vec<Complex<T>>>> {
    let count = length / 2 + 1;
    let bytes = count.saturating_mul(size_of::<Complex<T>>());
    cached((PlanKind::Twiddles, length, size_of::<T>()), bytes, || {
        let mut twiddles = Vec::new();
        workspace(op, &mut twiddles, count)?;
        let roots = Roots::new(length, FftOp::Fft);
        for (at, run) in twiddles.chunks_mut(RUN).enumerate() {
            let first = roots.at(at * RUN);
            for (twiddle, &root) in run.iter_mut().zip(&roots.fine) {
                let root = first * root;
                *twiddle = Complex::new(T::nearest(root.re), T::nearest(root.im));
            }
        }
        Ok(Arc::new(twiddles))
    })
}

/// Whether a length has no prime factor above 13.
pub(super) fn is_smooth(length: usize) -> bool {
    let without = |length: usize, factor: usize| {
        let mut rest = length;
        while rest.is_multiple_of(factor) {
            rest /= factor;
        }
        rest
    };
    length > 0 && [2, 3, 5, 7, 11, 13].into_iter().fold(length, without) == 1
}

/// Checks that this memory is available before it is allocated.
fn reserve(op: FftOp, bytes: usize) -> Result<()> {
    memory::reserve(bytes)
        .map_err(|available| ErrorKind::OutOfMemory { op: op.name(), requested: bytes, available }.into())
}

/// Fills an empty vector with `count` zeros.
pub(super) fn workspace<T: FftFloat>(op: FftOp, buffer: &mut Vec<Complex<T>>, count: usize) -> Result<()> {
    let requested = count.saturating_mul(size_of::<Complex<T>>());
    reserve(op, requested)?;
    let refused = ErrorKind::OutOfMemory { op: op.name(), requested, available: 0 };
    buffer.try_reserve_exact(count).map_err(|_| refused)?;
    buffer.resize(count, Complex::new(T::zero(), T::zero()));
    Ok(())
}

/// The number of roots that share one coarse factor.
pub(super) const RUN: usize = 16;

/// The roots of unity of an order, as products of entries of two tables.
pub(super) struct Roots {
    /// The powers from 0 up to the coarse step.
    pub(super) fine: Vec<Complex<f64>>,
    coarse: Vec<Complex<f64>>,
    shift: u32,
}

impl Roots {
    /// The roots of an order above 0, clockwise for the forward transform and anticlockwise for the inverse.
    pub(super) fn new(order: usize, op: FftOp) -> Roots {
        let shift = (order.ilog2() / 2).max(RUN.ilog2());
        let root = |power: usize| {
            let root = root(power, order);
            if op == FftOp::Fft { root } else { root.conj() }
        };
        let fine = (0..1 << shift).map(root).collect();
        let coarse = (0..=order >> shift).map(|step| root(step << shift)).collect();
        Roots { fine, coarse, shift }
    }

    /// The root to a power that is at most the order.
    #[inline(always)]
    pub(super) fn at(&self, power: usize) -> Complex<f64> {
        self.coarse[power >> self.shift] * self.fine[power & ((1 << self.shift) - 1)]
    }
}

/// `exp(-2 pi i power / order)`, computed from an angle of at most an eighth of a turn.
fn root(power: usize, order: usize) -> Complex<f64> {
    let (power, order) = (power as u128 * 4, order as u128);
    let (quarter, rest) = (power / order % 4, power % order);
    let beyond = 2 * rest > order;
    let angle = FRAC_PI_2 * (if beyond { order - rest } else { rest }) as f64 / order as f64;
    let (sin, cos) = angle.sin_cos();
    let (re, im) = if beyond { (sin, -cos) } else { (cos, -sin) };
    match quarter {
        0 => Complex::new(re, im),
        1 => Complex::new(im, -re),
        2 => Complex::new(-re, -im),
        _ => Complex::new(-im, re),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_plans_are_kept() {
        for length in 1..100 {
            plan::<f64>(FftOp::Fft, length).unwrap();
        }
        plan::<f32>(FftOp::Fft, 1 << 20).unwrap();
        let plans = PLANS.lock().unwrap();
        assert!(plans.len() <= MAX_PLANS);
        assert!(plans.iter().map(|entry| entry.bytes).sum::<usize>() <= MAX_PLAN_BYTES);
    }

    #[test]
    fn roots_are_powers() {
        for order in [1, 2, 3, 4, 12, 100, 1 << 12, 5040, 99_991] {
            let roots = Roots::new(order, FftOp::Fft);
            for power in (0..=order).step_by(order / 50 + 1) {
                let want = Complex::from_polar(1.0, -std::f64::consts::TAU * power as f64 / order as f64);
                assert!((roots.at(power) - want).norm() < 3e-15, "{power} of {order}");
            }
        }
    }
}
