//! Sine, cosine and tangent of numbers of any size, as compiled code: what
//! [`Op::Apply`](super::super::Op::Apply) calls.
//!
//! Large numbers are reduced by the method of Payne and Hanek, Radian Reduction for Trigonometric Functions
//! (1983). No product is fused, so that all processors give the same bits.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use super::super::{BoundKernel, Elem, Kernel, Rare, Status};
use super::tables::{DOUBLE, HALF_PI_1, HALF_PI_2, HALF_PI_3, HALF_PI_LOW, TWO_OVER_PI};
use super::trig::LIMIT;

impl Rare {
    /// The function of a number; NaN of an infinite one.
    #[cold]
    pub(crate) fn of(self, x: f64) -> f64 {
        if !x.is_finite() {
            return f64::NAN;
        }
        let magnitude = x.abs();
        let r = if magnitude > LIMIT { reduce_far(magnitude) } else { reduce_near(magnitude) };
        let (sin, cos) = (r.turned(0), r.turned(1));
        let sin = if x.is_sign_negative() { -sin } else { sin };
        match self {
            Rare::Sin => sin,
            Rare::Cos => cos,
            Rare::Tan => sin / cos,
        }
    }

    /// The same for f32.
    pub(crate) fn of_f32(self, x: f32) -> f32 {
        self.of(x.into()) as f32
    }
}

/// What machine code calls for [`Op::Apply`](super::super::Op::Apply) of a type: a kernel whose context is the
/// function, and whose arguments are the address of the lanes, which it computes anew, and their number.
pub(crate) fn applied(rare: Rare, elem: Elem) -> BoundKernel {
    let run: Kernel = if elem == Elem::F32 { apply::<f32> } else { apply::<f64> };
    BoundKernel { run, context: std::ptr::without_provenance_mut(rare as usize) }
}

/// Computes lanes anew, in place.
///
/// # Safety
/// The context is a function's number. The arguments are an address and how many numbers are there.
unsafe extern "C" fn apply<T: Lane>(context: *mut (), args: *const u64) -> Status {
    // SAFETY: as the caller says.
    let lanes = unsafe {
        let start = std::ptr::with_exposed_provenance_mut::<T>(*args as usize);
        std::slice::from_raw_parts_mut(start, *args.add(1) as usize)
    };
    let rare = match context.addr() {
        0 => Rare::Sin,
        1 => Rare::Cos,
        _ => Rare::Tan,
    };
    lanes.iter_mut().for_each(|x| *x = x.applied(rare));
    0
}

/// A type of lanes.
trait Lane: Copy {
    fn applied(self, rare: Rare) -> Self;
}

impl Lane for f32 {
    fn applied(self, rare: Rare) -> f32 {
        rare.of_f32(self)
    }
}

impl Lane for f64 {
    fn applied(self, rare: Rare) -> f64 {
        rare.of(self)
    }
}

/// A reduced number: the remainder in a high and a low part, and the number of quadrants in the low bits.
struct Reduced {
    high: f64,
    low: f64,
    quadrants: u64,
}

impl Reduced {
    /// Sine of the number plus `more` quadrants.
    fn turned(&self, more: u64) -> f64 {
        let quadrants = self.quadrants.wrapping_add(more);
        let value = if quadrants & 1 == 0 { self.sin() } else { self.cos() };
        if quadrants & 2 == 0 { value } else { -value }
    }

    /// Sine of the remainder.
    fn sin(&self) -> f64 {
        let z = self.high * self.high;
        let cube = z * self.high;
        self.high + (cube * poly(z, DOUBLE.sin) + (-0.5 * z * self.low + self.low))
    }

    /// Cosine of the remainder.
    fn cos(&self) -> f64 {
        let z = self.high * self.high;
        let half = 0.5 * z;
        let near = 1.0 - half;
        near + (((1.0 - near) - half) + (z * z * poly(z, DOUBLE.cos) - self.high * self.low))
    }
}

/// The polynomial with these coefficients, lowest first.
fn poly(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().copied().reduce(|sum, coefficient| sum * x + coefficient).unwrap_or(0.0)
}

/// As the ops of [`super::trig`] reduce numbers up to the limit.
fn reduce_near(x: f64) -> Reduced {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let raised = x * FRAC_2_PI + ROUND;
    let n = raised - ROUND;
    let first = x - n * HALF_PI_1;
    let second = n * HALF_PI_2;
    let near = first - second;
    let back = near - first;
    let lost = (first - (near - back)) - (second + back);
    let rest = lost - n * HALF_PI_3;
    let high = near + rest;
    Reduced { high, low: (near - high) + rest, quadrants: raised.to_bits() }
}

/// Reduces any finite number from 2^19 on.
fn reduce_far(x: f64) -> Reduced {
    // x = mantissa * 2^power.
    let power = (x.to_bits() >> 52) as isize - 1075;
    let mantissa = u128::from(x.to_bits() << 12 >> 12 | 1 << 52);
    // Bits of 2 / pi before this one contribute multiples of four quadrants. The next 192 bits suffice: no
    // f64 is closer to a multiple of a quadrant than about 2^-62.
    let start = (power - 2 + 64) as usize;
    let (first, offset) = (start / 64, start % 64);
    let window = |k: usize| {
        let (high, low) = (TWO_OVER_PI[first + k], TWO_OVER_PI[first + k + 1]);
        // With offset 0 no bits come from `low`. It is shifted in two steps, because a shift by 64 is not
        // allowed.
        u128::from(high << offset | low >> 1 >> (63 - offset))
    };
    // The product modulo 2^192 without its last 62 bits: two bits of quadrants, then the fraction.
    let low = mantissa * window(2);
    let middle = mantissa * window(1) + (low >> 64);
    let high = (mantissa * window(0) + (middle >> 64)) as u64;
    let middle = middle as u64;
    let floor = high >> 62;
    let fraction =
        (u128::from(high << 2 | middle >> 62) << 64 | u128::from(middle << 2 | low as u64 >> 62)) as i128;
    // As a signed number, the fraction is relative to the nearest quadrant.
    let quadrants = floor + u64::from(fraction < 0);
    let above = fraction as f64;
    let below = (fraction - above as i128) as f64;
    // The product with pi / 2 in two parts, after Dekker, A Floating-Point Technique (1971).
    let product = above * FRAC_PI_2;
    let (a, b) = (head(above), head(FRAC_PI_2));
    let (c, d) = (above - a, FRAC_PI_2 - b);
    let lost = ((a * b - product) + a * d + c * b) + c * d;
    let rest = lost + (above * HALF_PI_LOW + below * FRAC_PI_2);
    let high = product + rest;
    // 2^-128 scales the integer to a fraction.
    const UNIT: f64 = 2.938_735_877_055_719e-39;
    Reduced { high: high * UNIT, low: ((product - high) + rest) * UNIT, quadrants }
}

/// `x` without its low 27 bits: products of two such numbers are exact.
fn head(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & (u64::MAX << 27))
}
