//! The singular values of bidiagonal matrices by implicit QR steps (Golub & Kahan 1965), with a zero shift where
//! another shift would make small values inaccurate (Demmel & Kahan, "Accurate singular values of bidiagonal matrices",
//! SIAM J. Sci. Stat. Comput. 11, 1990).

use super::RealField;
use super::rotations::{Rotations, rotation};
use crate::par::poll_within_chunk;

/// Most sweeps for one value before the iteration gives up; two or three are usual.
const MAX_SWEEPS: usize = 60;

/// The smaller singular value of `((f, g), (0, h))`.
fn lesser<R: RealField>(f: R, g: R, h: R) -> R {
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let (low, high) = if f < h { (f, h) } else { (h, f) };
    if low == R::ZERO {
        return R::ZERO;
    }
    let (sum, difference) = (R::ONE + low / high, (high - low) / high);
    if g < high {
        let ratio = (g / high) * (g / high);
        let roots = (sum * sum + ratio).sqrt() + (difference * difference + ratio).sqrt();
        return low * ((R::ONE + R::ONE) / roots);
    }
    let ratio = high / g;
    if ratio == R::ZERO {
        return low * high / g;
    }
    let (sum, difference) = (sum * ratio, difference * ratio);
    let roots = (R::ONE + sum * sum).sqrt() + (R::ONE + difference * difference).sqrt();
    let half = low * (R::ONE / roots) * ratio;
    half + half
}

/// Rows `first..=last` of the matrix, from the end at which a sweep begins. Read from its other end, the transpose of a
/// bidiagonal matrix is bidiagonal, too.
struct Block<'a, R> {
    diagonal: &'a mut [R],
    off_diagonal: &'a mut [R],
    first: usize,
    last: usize,
    ascends: bool,
}

impl<R: RealField> Block<'_, R> {
    /// The number of off-diagonal elements.
    fn len(&self) -> usize {
        self.last - self.first
    }

    /// The index of the sweep's row `i`.
    #[inline(always)]
    fn row(&self, i: usize) -> usize {
        if self.ascends { self.first + i } else { self.last - i }
    }

    #[inline(always)]
    fn d(&mut self, i: usize) -> &mut R {
        let row = self.row(i);
        &mut self.diagonal[row]
    }

    /// The element between the sweep's rows `i` and `i + 1`.
    #[inline(always)]
    fn e(&mut self, i: usize) -> &mut R {
        let index = if self.ascends { self.first + i } else { self.last - i - 1 };
        &mut self.off_diagonal[index]
    }

    /// Sets a negligible element to zero, if there is one, and returns `None`. Otherwise returns a lower estimate of
    /// the smallest value.
    fn split(&mut self, tolerance: R) -> Option<R> {
        let end = self.len();
        if self.e(end - 1).abs() <= tolerance * self.d(end).abs() {
            *self.e(end - 1) = R::ZERO;
            return None;
        }
        let mut bound = self.d(0).abs();
        let mut least = bound;
        for i in 0..end {
            let off = self.e(i).abs();
            if off <= tolerance * bound {
                *self.e(i) = R::ZERO;
                return None;
            }
            bound = self.d(i + 1).abs() * (bound / (bound + off));
            least = if bound < least { bound } else { least };
        }
        Some(least)
    }

    /// The shift of the next sweep, from the end at which the sweep ends.
    fn shift(&mut self, least: R, tolerance: R, order: R) -> R {
        let end = self.len();
        let mut greatest = self.d(end).abs();
        for i in 0..end {
            for size in [self.d(i).abs(), self.e(i).abs()] {
                greatest = if size > greatest { size } else { greatest };
            }
        }
        let hundredth = tolerance * R::from_f64(0.01);
        let bound = if hundredth > R::EPSILON { hundredth } else { R::EPSILON };
        if order * tolerance * (least / greatest) <= bound {
            return R::ZERO;
        }
        let (before, off, last) = (*self.d(end - 1), *self.e(end - 1), *self.d(end));
        let shift = lesser(before, off, last);
        let ratio = shift / self.d(0).abs();
        if ratio * ratio < R::EPSILON { R::ZERO } else { shift }
    }

    /// Logs the rotation of columns, then that of rows. For the transpose both are exchanged.
    #[inline(always)]
    fn note(&self, notes: &mut impl Rotations<R, 2>, columns: [R; 2], rows: [R; 2]) {
        notes.rotate(if self.ascends { [rows, columns] } else { [columns, rows] });
    }

    /// A sweep with zero shift.
    fn sweep_unshifted(&mut self, notes: &mut impl Rotations<R, 2>) {
        let end = self.len();
        let (mut old_c, mut old_s) = (R::ONE, R::ZERO);
        // The diagonal element times the cosine of the previous rotation.
        let mut d = *self.d(0);
        for i in 0..end {
            let (c, s, r) = rotation(d, *self.e(i));
            if i > 0 {
                *self.e(i - 1) = old_s * r;
            }
            let next = *self.d(i + 1);
            let value;
            (old_c, old_s, value) = rotation(old_c * r, next * s);
            *self.d(i) = value;
            self.note(notes, [c, s], [old_c, old_s]);
            d = next * c;
        }
        *self.d(end) = d * old_c;
        *self.e(end - 1) = d * old_s;
    }

    /// A sweep with a shift.
    fn sweep(&mut self, shift: R, notes: &mut impl Rotations<R, 2>) {
        let end = self.len();
        let mut d = *self.d(0);
        let sign = if d < R::ZERO { -R::ONE } else { R::ONE };
        let mut f = (d.abs() - shift) * (sign + shift / d);
        let mut e = *self.e(0);
        let mut g = e;
        for i in 0..end {
            let (c, s, r) = rotation(f, g);
            if i > 0 {
                *self.e(i - 1) = r;
            }
            f = c * d + s * e;
            e = c * e - s * d;
            let next = *self.d(i + 1);
            g = s * next;
            let next = c * next;
            let (other_c, other_s, r) = rotation(f, g);
            *self.d(i) = r;
            f = other_c * e + other_s * next;
            d = other_c * next - other_s * e;
            self.note(notes, [c, s], [other_c, other_s]);
            if i + 1 < end {
                let beyond = *self.e(i + 1);
                g = other_s * beyond;
                e = other_c * beyond;
            }
        }
        *self.d(end) = d;
        *self.e(end - 1) = f;
    }
}

/// Makes the off-diagonal elements zero by rotations. Logs them, those of the left vectors first. Returns whether all
/// of the elements became negligible.
pub(super) fn iterate<R: RealField>(
    diagonal: &mut [R],
    off_diagonal: &mut [R],
    notes: &mut impl Rotations<R, 2>,
) -> bool {
    let n = diagonal.len();
    let order = R::from_f64(n as f64);
    let tolerance = R::EPSILON * R::from_f64(5.0);
    let mut bound = diagonal[0].abs();
    let mut least = bound;
    for i in 1..n {
        let whole = bound + off_diagonal[i - 1].abs();
        bound = if whole == R::ZERO { whole } else { diagonal[i].abs() * (bound / whole) };
        least = if bound < least { bound } else { least };
    }
    let least = tolerance * least / order.sqrt();
    let smallest = R::MIN_POSITIVE * order * order;
    let threshold = if least > smallest { least } else { smallest };

    let mut last = n - 1;
    let mut ascends = true;
    let mut last_block = (n, n);
    let mut sweeps = 0;
    while last > 0 {
        let mut first = last;
        while first > 0 && off_diagonal[first - 1].abs() > threshold {
            first -= 1;
        }
        if first > 0 {
            off_diagonal[first - 1] = R::ZERO;
        }
        if first == last {
            last -= 1;
            continue;
        }
        // Sweeps run towards the small values, which makes them converge. A block keeps its direction while it shrinks.
        if first > last_block.1 || last < last_block.0 {
            ascends = diagonal[first].abs() >= diagonal[last].abs();
        }
        last_block = (first, last);
        let mut block = Block { diagonal, off_diagonal, first, last, ascends };
        let Some(least) = block.split(tolerance) else {
            continue;
        };
        if sweeps == MAX_SWEEPS * n {
            return false;
        }
        sweeps += 1;
        poll_within_chunk();
        let shift = block.shift(least, tolerance, order);
        notes.begin(block.row(0), ascends, last - first);
        if shift == R::ZERO {
            block.sweep_unshifted(notes);
        } else {
            block.sweep(shift, notes);
        }
    }
    true
}
