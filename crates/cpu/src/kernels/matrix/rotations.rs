//! Rotations of adjacent rows. They are logged first and applied later in batches, to rows that stay in a cache.
//!
//! A sweep along a bidiagonal or tridiagonal matrix creates a rotation for every pair of neighbours, and all of them
//! apply to the vectors. So the vectors are cut into panels a few registers wide, which fit in the L1 cache. All logged
//! rotations are applied to a panel, two sweeps at a time, the second one row behind the first. The row that both
//! rotate stays in registers, and each row is read and written once for the two (Van Zee, van de Geijn & Quintana-Orti,
//! "Restructuring the tridiagonal and bidiagonal QR algorithms for performance", ACM Trans. Math. Softw. 40, 2014). No
//! element depends on how the rows are cut or shared among threads.

use smallvec::SmallVec;

use super::field::multiplying;
use super::passes::{LANES, pieces, threads};
use super::{Products, RealField};
use crate::par::Par;

/// Most sweeps that are logged before they are applied.
const SWEEPS: usize = 64;

/// A row of a panel.
type Row<R, const VECTORS: usize> = [[R; LANES]; VECTORS];

/// Consecutive rotations of adjacent rows.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// The row that the sweep carries along from the start.
    start: usize,
    count: usize,
    /// Whether the row index increases along the sweep.
    ascends: bool,
    /// The index of its first rotation in the log.
    first: usize,
}

/// The cosine and sine of the rotation that maps `(f, g)` to `(r, 0)`, and `r`.
#[inline(always)]
pub(super) fn rotation<R: RealField>(f: R, g: R) -> (R, R, R) {
    let squares = f * f + g * g;
    // Squares near the smallest normal number would be inexact.
    if squares >= R::MIN_POSITIVE / R::EPSILON {
        let r = squares.sqrt();
        return (f / r, g / r, r);
    }
    careful_rotation(f, g)
}

/// As [`rotation`], for small numbers.
#[cold]
fn careful_rotation<R: RealField>(f: R, g: R) -> (R, R, R) {
    let greatest = if f.abs() > g.abs() { f.abs() } else { g.abs() };
    if greatest == R::ZERO {
        return (R::ONE, R::ZERO, R::ZERO);
    }
    let (f, g) = (f / greatest, g / greatest);
    let r = (f * f + g * g).sqrt();
    (f / r, g / r, r * greatest)
}

/// What becomes of the rotations of sweeps, by which each of `SIDES` sets of vectors is multiplied.
pub(super) trait Rotations<R, const SIDES: usize> {
    /// Begins a sweep of at most `most` rotations at row `start`.
    fn begin(&mut self, start: usize, ascends: bool, most: usize);

    /// The next rotation of each side, by its cosine `c` and sine `s`. With `x` the carried row and `y` the next,
    /// `c x + s y` replaces `x`, and `c y - s x` is carried on.
    fn rotate(&mut self, rotations: [[R; 2]; SIDES]);
}

/// Rotations of no vectors, where only values are wanted.
pub(super) struct NoVectors;

impl<R, const SIDES: usize> Rotations<R, SIDES> for NoVectors {
    #[inline(always)]
    fn begin(&mut self, _: usize, _: bool, _: usize) {}

    #[inline(always)]
    fn rotate(&mut self, _: [[R; 2]; SIDES]) {}
}

/// The vectors of each side, and the logged rotations that are not applied yet.
pub(super) struct RotationLog<'a, R, const SIDES: usize> {
    panels: [&'a mut [R]; SIDES],
    rotations: [&'a mut [[R; 2]]; SIDES],
    used: usize,
    sweeps: SmallVec<[Sweep; SWEEPS]>,
    rows: usize,
    par: Par,
}

/// Numbers in a row of a panel: one or two cache lines.
const fn width<R>() -> usize {
    LANES * 8 / size_of::<R>()
}

/// Numbers in the panels of a matrix of these sizes.
pub(super) fn panels<R>(rows: usize, columns: usize) -> usize {
    rows * columns.next_multiple_of(width::<R>())
}

/// Numbers in each side's log for `rows` rows.
pub(super) fn notes(rows: usize) -> usize {
    2 * SWEEPS * rows
}

impl<'a, R: RealField, const SIDES: usize> RotationLog<'a, R, SIDES> {
    /// Copies rows, a stride apart, to panels. Each side's log has the size that [`notes`] returns.
    pub(super) fn new(
        sides: [&[R]; SIDES],
        (rows, stride): (usize, usize),
        mut panels: [&'a mut [R]; SIDES],
        notes: [&'a mut [R]; SIDES],
        par: Par,
    ) -> Self {
        let width = width::<R>();
        for (from, to) in sides.into_iter().zip(&mut panels) {
            pieces(to, rows * width, threads(par, rows * stride), |panel, to| {
                for (to, from) in to.chunks_exact_mut(width).zip(from.chunks_exact(stride)) {
                    let from = &from[panel * width..];
                    let (own, rest) = to.split_at_mut(width.min(from.len()));
                    own.copy_from_slice(&from[..own.len()]);
                    rest.fill(R::ZERO);
                }
            });
        }
        let rotations = notes.map(|notes| notes.as_chunks_mut().0);
        RotationLog { panels, rotations, used: 0, sweeps: SmallVec::new(), rows, par }
    }

    /// Applies all logged rotations.
    pub(super) fn apply(&mut self) {
        let (used, rows) = (self.used, self.rows);
        let (sweeps, par) = (&self.sweeps, threads(self.par, used * rows));
        for (panels, rotations) in self.panels.iter_mut().zip(&self.rotations) {
            let rotations = &rotations[..used];
            pieces(panels, rows * width::<R>(), par, |_, panel| {
                if const { width::<R>() == LANES } {
                    rotate_panel::<R, 1>(panel, sweeps, rotations);
                } else {
                    rotate_panel::<R, 2>(panel, sweeps, rotations);
                }
            });
        }
        self.used = 0;
        self.sweeps.clear();
    }

    /// Writes a side's rows, in the given order, as columns of a matrix with `columns` elements in a row. An element
    /// has `parts` numbers: 1 if real, 2 if complex.
    pub(super) fn write_columns(
        &self,
        side: usize,
        order: &[usize],
        parts: usize,
        to: &mut [R],
        columns: usize,
    ) {
        let width = width::<R>();
        let high = width / parts;
        for (panel, lines) in to.chunks_mut(high * columns * parts).enumerate() {
            let panel = &self.panels[side][panel * self.rows * width..][..self.rows * width];
            for (i, line) in lines.chunks_exact_mut(columns * parts).enumerate() {
                for (to, &row) in line.chunks_exact_mut(parts).zip(order) {
                    to.copy_from_slice(&panel[row * width + i * parts..][..parts]);
                }
            }
        }
    }

    /// Negates a row of a side.
    pub(super) fn negate(&mut self, side: usize, row: usize) {
        let width = width::<R>();
        for panel in self.panels[side].chunks_exact_mut(self.rows * width) {
            for x in &mut panel[row * width..(row + 1) * width] {
                *x = -*x;
            }
        }
    }

    /// Copies a row of a side to `to`.
    pub(super) fn read(&self, side: usize, row: usize, to: &mut [R]) {
        let width = width::<R>();
        for (panel, to) in to.chunks_mut(width).enumerate() {
            let start = (panel * self.rows + row) * width;
            to.copy_from_slice(&self.panels[side][start..start + to.len()]);
        }
    }
}

impl<R: RealField, const SIDES: usize> Rotations<R, SIDES> for RotationLog<'_, R, SIDES> {
    fn begin(&mut self, start: usize, ascends: bool, most: usize) {
        if self.sweeps.len() == SWEEPS || self.used + most > self.rotations[0].len() {
            self.apply();
        }
        self.sweeps.push(Sweep { start, count: 0, ascends, first: self.used });
    }

    #[inline(always)]
    fn rotate(&mut self, rotations: [[R; 2]; SIDES]) {
        for (notes, rotation) in self.rotations.iter_mut().zip(rotations) {
            notes[self.used] = rotation;
        }
        self.used += 1;
        if let Some(sweep) = self.sweeps.last_mut() {
            sweep.count += 1;
        }
    }
}

/// Rotates two rows: the row that is complete, and the one that is carried on.
#[inline(always)]
fn rotate_rows<P: Products, R: RealField, const VECTORS: usize>(
    x: &Row<R, VECTORS>,
    y: &Row<R, VECTORS>,
    [c, s]: [R; 2],
) -> (Row<R, VECTORS>, Row<R, VECTORS>) {
    let (mut stays, mut goes) = (*x, *y);
    for vector in 0..VECTORS {
        for i in 0..LANES {
            let (x, y) = (x[vector][i], y[vector][i]);
            stays[vector][i] = (x * c).plus_product::<P>(y, s);
            goes[vector][i] = (y * c).plus_product::<P>(x, -s);
        }
    }
    (stays, goes)
}

/// The row after `row` along a sweep.
#[inline(always)]
fn next(row: usize, ascends: bool) -> usize {
    if ascends { row + 1 } else { row.wrapping_sub(1) }
}

/// Applies rotations of one sweep that begins at `row`.
#[inline(always)]
fn apply_sweep<P: Products, R: RealField, const VECTORS: usize>(
    panel: &mut [Row<R, VECTORS>],
    mut row: usize,
    ascends: bool,
    rotations: &[[R; 2]],
) {
    if rotations.is_empty() {
        return;
    }
    let mut carried = panel[row];
    for &rotation in rotations {
        let after = next(row, ascends);
        let (stays, goes) = rotate_rows::<P, R, VECTORS>(&carried, &panel[after], rotation);
        panel[row] = stays;
        (row, carried) = (after, goes);
    }
    panel[row] = carried;
}

/// Applies equally many rotations of two sweeps. The first sweep carries `row`, the second carries the row before it.
#[inline(always)]
fn apply_sweep_pair<P: Products, R: RealField, const VECTORS: usize>(
    panel: &mut [Row<R, VECTORS>],
    mut row: usize,
    ascends: bool,
    first: &[[R; 2]],
    second: &[[R; 2]],
) {
    let mut before = next(row, !ascends);
    let (mut carried, mut follows) = (panel[row], panel[before]);
    for (&rotation, &other) in first.iter().zip(second) {
        let after = next(row, ascends);
        let (stays, goes) = rotate_rows::<P, R, VECTORS>(&carried, &panel[after], rotation);
        let (ends, moves) = rotate_rows::<P, R, VECTORS>(&follows, &stays, other);
        panel[before] = ends;
        (before, row) = (row, after);
        (carried, follows) = (goes, moves);
    }
    panel[before] = follows;
    panel[row] = carried;
}

multiplying! {
    /// Applies sweeps to a panel.
    fn rotate_panel[P; R: RealField, const VECTORS: usize] of [R, VECTORS] (
        panel: &mut [R],
        sweeps: &[Sweep],
        rotations: &[[R; 2]],
    ) {
        let panel = panel.as_chunks_mut::<LANES>().0.as_chunks_mut::<VECTORS>().0;
        let own = |sweep: Sweep| &rotations[sweep.first..sweep.first + sweep.count];
        let mut rest = sweeps;
        while let [sweep, after @ ..] = rest {
            let (start, ascends) = (sweep.start, sweep.ascends);
            let distance = |row: usize| if ascends { row } else { usize::MAX - row };
            let rotations = own(*sweep);
            let follower = after.first().filter(|other| {
                // The sweep begins on a row that the first sweep rotates, so that it can run directly behind it.
                let begins = distance(other.start).wrapping_sub(distance(start));
                other.ascends == ascends && distance(other.start) >= distance(start) && begins < rotations.len()
            });
            // First the rotations of the first sweep alone, then those of both, then what is left of either.
            let (mut parts, mut both): ([(_, &[[R; 2]]); 3], _) = ([(start, rotations), (start, &[]), (start, &[])], 0);
            let (mut ahead, mut shared, mut followers): (_, &[[R; 2]], &[[R; 2]]) = (start, &[], &[]);
            rest = after;
            if let Some(other) = follower {
                let begins = distance(other.start) - distance(start);
                let alone;
                (alone, shared) = rotations.split_at(begins + 1);
                followers = own(*other);
                both = shared.len().min(followers.len());
                ahead = next(other.start, ascends);
                let moved = |row: usize| if ascends { row + both } else { row - both };
                parts =
                    [(start, alone), (moved(ahead), &shared[both..]), (moved(other.start), &followers[both..])];
                rest = &after[1..];
            }
            for (part, (row, rotations)) in parts.into_iter().enumerate() {
                apply_sweep::<P, R, VECTORS>(panel, row, ascends, rotations);
                if part == 0 && both > 0 {
                    apply_sweep_pair::<P, R, VECTORS>(panel, ahead, ascends, &shared[..both], &followers[..both]);
                }
            }
        }
    }
}
