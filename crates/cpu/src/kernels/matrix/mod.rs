//! Systems of equations and factorizations of one matrix after the other, in row-major order.
//!
//! All of them work by rows, which lie side by side. The matrices of a batch are shared among the threads; where
//! there are fewer, so are the products of matrices in one factorization. No result depends on the threads.

mod bidiagonal;
mod cholesky;
mod eigh;
mod field;
mod golub_kahan;
mod lu;
mod passes;
mod qr;
mod rotations;
mod rows;
mod semidefinite;
#[cfg(test)]
mod spectra;
mod svd;
#[cfg(test)]
mod tests;
mod triangular;

use std::mem::MaybeUninit;

use defn_core::op::{Block, QrMode, Transform};

pub(crate) use field::{Field, Products, RealField};
pub(crate) use triangular::Triangular;

use crate::kernels::Plain;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Multiplications of a factorization below which a thread does several.
const GRAIN: usize = 1 << 16;

/// What is done to each matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// `a`, `b`: the solution in the place of `b`.
    Triangular { system: Triangular, vector: bool },
    /// `a`, `b`: the solution in the place of `b`.
    Solve,
    /// `a`: the factor in its place.
    Cholesky,
    /// `a`: the permutation, and two factors.
    Lu,
    /// `a`: the determinant.
    Determinant,
    /// `a`: the orthogonal factor, and the triangular one.
    Qr(QrMode),
    /// `a`: the vectors on the left, the values, and the vectors on the right.
    Svd { full: bool },
    /// `a`: the values, and the vectors.
    Eigh { eps: f64 },
}

impl Task {
    /// The task of a block, where there is a kernel for it.
    pub(crate) fn of_block(block: &Block) -> Option<Task> {
        match block {
            Block::Solve => Some(Task::Solve),
            Block::Cholesky => Some(Task::Cholesky),
            Block::Lu => Some(Task::Lu),
            Block::Determinant => Some(Task::Determinant),
            Block::Qr { mode, eps: _ } => Some(Task::Qr(*mode)),
            Block::Svd { max_iter: _, full_matrices } => Some(Task::Svd { full: *full_matrices }),
            Block::Eigh { max_iter: _, eps } => Some(Task::Eigh { eps: eps.0 }),
            Block::Composite(_)
            | Block::Log2
            | Block::Log10
            | Block::Cumulative { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::TopK { .. }
            | Block::Fft2 { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. }
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => None,
        }
    }

    /// The task of a triangular system.
    pub(crate) fn of_triangular(lower: bool, left_side: bool, transform: Transform, vector: bool) -> Task {
        Task::Triangular { system: Triangular { lower, left_side, transform }, vector }
    }

    /// Whether the matrices are read only: all other tasks overwrite them.
    pub(crate) fn keeps_matrix(self) -> bool {
        match self {
            Task::Triangular { .. } => true,
            Task::Solve
            | Task::Cholesky
            | Task::Lu
            | Task::Determinant
            | Task::Qr(_)
            | Task::Svd { .. }
            | Task::Eigh { .. } => false,
        }
    }

    /// How many elements a matrix of these sizes needs beside its operands and results, whole lines of a cache; a
    /// right-hand side has so many elements.
    pub(crate) fn workspace<T: Field>(self, (rows, columns): (usize, usize), right: usize) -> usize {
        let (long, short) = (rows.max(columns), rows.min(columns));
        let count = match self {
            Task::Cholesky => cholesky::workspace::<T>(rows),
            Task::Triangular { system, vector } => system.workspace::<T>(rows, right, vector),
            Task::Solve => lu::solve_workspace::<T>(rows, right),
            Task::Lu | Task::Determinant => lu::workspace::<T>(rows),
            Task::Qr(mode) => qr::workspace((rows, columns), width(mode, rows, columns)),
            Task::Svd { full } => svd::workspace::<T::Real>(long, short, full),
            Task::Eigh { .. } => eigh::workspace::<T>(rows),
        };
        count.next_multiple_of(passes::LANES)
    }
}

/// The columns of the orthogonal factor.
fn width(mode: QrMode, rows: usize, columns: usize) -> usize {
    match mode {
        QrMode::Reduced => rows.min(columns),
        QrMode::Complete => rows,
    }
}

/// Parts of a batch, at most, each of which has a workspace.
const SHARES: usize = 32;

/// How many matrices of a batch follow each other on a thread, which uses the same workspace for them: as many as are
/// worth its waking, and few enough that threads which are free sooner than others find more. Memory is measured by
/// it, so that it does not depend on how many threads there are.
pub(crate) fn grain(batch: usize, (rows, columns): (usize, usize)) -> usize {
    let worth = GRAIN / (rows * columns).saturating_mul(rows.max(columns)).max(1);
    worth.max(batch.div_ceil(SHARES)).max(1)
}

/// Memory of a batch: `count` elements for each matrix, all written before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    view: &'a ViewMut<'a>,
    count: usize,
}

impl<'a> Part<'a> {
    /// The elements of a view, so many for each matrix.
    pub(crate) fn new(view: &'a ViewMut<'a>, count: usize) -> Part<'a> {
        Part { view, count }
    }

    /// The elements of one matrix.
    ///
    /// # Safety
    /// All elements of the view were written, and no other slice of this matrix's is alive.
    unsafe fn of<T: Plain>(&self, matrix: usize) -> &'a mut [T] {
        // SAFETY: as the caller promises; parts of different matrices do not overlap.
        let part = unsafe { self.view.part::<T>(matrix * self.count, self.count) };
        // SAFETY: the elements were written.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast::<T>(), part.len()) }
    }
}

/// Writes zeros over a whole view.
pub(crate) fn clear<T: Field>(view: &mut ViewMut<'_>, par: Par) {
    view.fill::<T>(par, 1 << 14, |_, chunk| chunk.fill(MaybeUninit::new(T::ZERO)));
}

/// The matrices of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Matrices<'a> {
    /// They are read only.
    Kept(View<'a>),
    /// They are overwritten.
    Lent(Part<'a>),
}

/// The memory that a task works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The matrices, kept where the task keeps them.
    pub a: Matrices<'a>,
    /// The right-hand sides of systems.
    pub b: Option<Part<'a>>,
    /// Results that have no operand's place.
    pub out: &'a [Part<'a>],
    /// The workspace: a part for every so many matrices as [`grain`] says.
    pub work: Part<'a>,
}

/// Runs a task on a batch of matrices of some rows and columns.
///
/// # Safety
/// All memory in `places` was written, holds elements of type `T`, and is accessed by nobody else meanwhile.
pub(crate) unsafe fn run<T: Field>(
    task: Task,
    batch: usize,
    (rows, columns): (usize, usize),
    places: Places<'_>,
    par: Par,
) {
    let inside = if batch < par.threads() { par } else { Par::Serial };
    let grain = grain(batch, (rows, columns));
    par.for_chunks(batch, grain, |chunk| {
        // SAFETY: as the caller promises; each part is used by one chunk.
        let work = unsafe { places.work.of::<T>(chunk.start / grain) };
        for matrix in chunk {
            // SAFETY: as the caller promises; each matrix is in one chunk.
            let b = places.b.map(|b| unsafe { b.of::<T>(matrix) });
            // SAFETY: as above; the outputs are different memory.
            let mut out = places.out.iter().map(|out| unsafe { out.of::<T>(matrix) });
            let mut next = || out.next().expect("a task has all its results");
            let count = rows * columns;
            let lent = match places.a {
                Matrices::Kept(view) => {
                    let a = &view.slice::<T>()[matrix * count..(matrix + 1) * count];
                    let Task::Triangular { system, vector } = task else {
                        unreachable!("{task:?} overwrites its matrix")
                    };
                    let b = b.expect("a system has a right-hand side");
                    system.solve(a, rows, b, vector, work, inside);
                    continue;
                }
                Matrices::Lent(part) => part,
            };
            // SAFETY: as above.
            let a = unsafe { lent.of::<T>(matrix) };
            match task {
                Task::Triangular { .. } => unreachable!("a triangle is kept"),
                Task::Solve => {
                    lu::solve(a, rows, b.expect("a system has a right-hand side"), work, inside);
                }
                Task::Cholesky => cholesky::factor(a, rows, work, inside),
                Task::Lu => {
                    let out = (next(), next(), next());
                    lu::factors(a, rows, out, work, inside);
                }
                Task::Determinant => next()[0] = lu::determinant(a, rows, work, inside),
                Task::Qr(mode) => {
                    let (q, r) = (next(), next());
                    let q = (q, width(mode, rows, columns));
                    qr::factors(a, (rows, columns), q, r, work, inside);
                }
                Task::Svd { full } => {
                    let (u, s, vh) = (next(), next(), next());
                    T::svd(a, (rows, columns), full, (u, s, vh), work, inside);
                }
                Task::Eigh { eps } => {
                    let (w, v) = (next(), next());
                    eigh::factors(a, rows, eps, (w, v), work, inside);
                }
            }
        }
    });
}

/// Splits room for so many elements off the front.
fn room<'a, T>(work: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (part, rest) = std::mem::take(work).split_at_mut(count);
    *work = rest;
    part
}

/// Two different rows of a matrix of so many columns.
fn two_rows<T>(x: &mut [T], columns: usize, first: usize, last: usize) -> (&mut [T], &mut [T]) {
    assert!(first < last, "rows in order");
    let (head, tail) = x.split_at_mut(last * columns);
    (&mut head[first * columns..(first + 1) * columns], &mut tail[..columns])
}
