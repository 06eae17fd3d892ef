//! Linear systems and factorizations of batches of row-major matrices.
//!
//! All algorithms work on contiguous rows. The matrices of a batch are shared among the threads. If there are fewer
//! matrices than threads, the matrix products inside a factorization use several threads, too. No result depends on the
//! number of threads.
//!
//! Eigenvalues and singular values come from a reduction to tridiagonal or bidiagonal form, followed by implicit QR
//! steps. A matrix that is not square is first factored by QR. Reflections pass over the matrix once (`passes`,
//! `bidiagonal`). Rotations are logged and applied later, two sweeps at a time (`rotations`). The QR steps start at the
//! larger end of a block (`golub_kahan`, `eigh`), so that graded matrices converge too.
//!
//! One-sided Jacobi takes several times as long; the definition in primitive ops uses it because its rotations are
//! independent. Divide and conquer needs much more code, and pays only for matrices that are rarely that large.

mod bidiagonal;
mod cholesky;
mod eigh;
mod field;
mod francis;
mod golub_kahan;
mod hessenberg;
mod lu;
mod passes;
mod qr;
mod rotations;
mod rows;
mod schur;
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
use schur::Wanted;
pub(crate) use triangular::Triangular;

use crate::kernels::Plain;
use crate::par::Par;
use crate::view::{View, ViewMut};

/// Multiplications per chunk: a thread does several factorizations that are smaller.
const CHUNK_WORK: usize = 1 << 16;

/// The operation on each matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// Operands `a`, `b`; the solution replaces `b`.
    Triangular { system: Triangular, vector: bool },
    /// Operands `a`, `b`; the solution replaces `b`.
    Solve,
    /// Operand `a`; the factor replaces it.
    Cholesky,
    /// Operand `a`; results: the permutation and the two factors.
    Lu,
    /// Operand `a`; result: the determinant.
    Determinant,
    /// Operand `a`; results: the orthogonal factor and the triangular one.
    Qr(QrMode),
    /// Operand `a`; results: the left singular vectors, the values and the right singular vectors.
    Svd { full: bool },
    /// Operand `a`; results: the eigenvalues and the eigenvectors.
    Eigh { eps: f64 },
    /// Operand `a`, complex; results: the eigenvalues and, if wanted, the eigenvectors.
    Eig { vectors: bool },
    /// Operand `a`, complex; results: the triangular and the unitary factor.
    Schur,
    /// Operand `a`; results: the factor with one subdiagonal and the unitary factor.
    Hessenberg,
    /// Operand `a`; result: the singular values.
    Svdvals,
    /// Operand `a`; result: the eigenvalues.
    Eigvalsh,
}

impl Task {
    /// The task of a block, if there is a kernel for it.
    pub(crate) fn of_block(block: &Block) -> Option<Task> {
        match block {
            Block::Solve => Some(Task::Solve),
            Block::Cholesky => Some(Task::Cholesky),
            Block::Lu => Some(Task::Lu),
            Block::Determinant => Some(Task::Determinant),
            Block::Qr { mode, eps: _ } => Some(Task::Qr(*mode)),
            Block::Svd { max_iter: _, full_matrices } => Some(Task::Svd { full: *full_matrices }),
            Block::Eigh { max_iter: _, eps } => Some(Task::Eigh { eps: eps.0 }),
            Block::Eig { vectors } => Some(Task::Eig { vectors: *vectors }),
            Block::Schur => Some(Task::Schur),
            Block::Hessenberg => Some(Task::Hessenberg),
            Block::Svdvals => Some(Task::Svdvals),
            Block::Eigvalsh => Some(Task::Eigvalsh),
            Block::Composite(_)
            | Block::Log2
            | Block::Log10
            | Block::Cumulative { .. }
            | Block::Take { .. }
            | Block::TakeAlongAxis { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Isin
            | Block::Bincount { .. }
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

    /// Whether real matrices are computed as complex ones.
    pub(crate) fn is_complex(self) -> bool {
        match self {
            Task::Eig { .. } | Task::Schur => true,
            Task::Triangular { .. }
            | Task::Solve
            | Task::Cholesky
            | Task::Lu
            | Task::Determinant
            | Task::Qr(_)
            | Task::Svd { .. }
            | Task::Eigh { .. }
            | Task::Hessenberg
            | Task::Svdvals
            | Task::Eigvalsh => false,
        }
    }

    /// Whether the matrices are only read. All other tasks overwrite them.
    pub(crate) fn keeps_matrix(self) -> bool {
        match self {
            Task::Triangular { .. } => true,
            Task::Solve
            | Task::Cholesky
            | Task::Lu
            | Task::Determinant
            | Task::Qr(_)
            | Task::Svd { .. }
            | Task::Eigh { .. }
            | Task::Eig { .. }
            | Task::Schur
            | Task::Hessenberg
            | Task::Svdvals
            | Task::Eigvalsh => false,
        }
    }

    /// Workspace elements of one matrix of these sizes, beside its operands and results, rounded up to
    /// [`passes::LANES`]. `right` is the number of elements of a right-hand side.
    pub(crate) fn workspace<T: Field>(self, (rows, columns): (usize, usize), right: usize) -> usize {
        let (long, short) = (rows.max(columns), rows.min(columns));
        let count = match self {
            Task::Cholesky => cholesky::workspace::<T>(rows),
            Task::Triangular { system, vector } => system.workspace::<T>(rows, right, vector),
            Task::Solve => lu::solve_workspace::<T>(rows, right),
            Task::Lu | Task::Determinant => lu::workspace::<T>(rows),
            Task::Qr(mode) => qr::workspace((rows, columns), width(mode, rows, columns)),
            Task::Svd { full } => svd::workspace::<T>(long, short, full),
            Task::Eigh { .. } => eigh::workspace::<T>(rows),
            Task::Eig { .. } | Task::Schur => schur::workspace::<T>(rows),
            Task::Hessenberg => hessenberg::workspace(rows),
            Task::Svdvals => svd::values_workspace(long, short),
            Task::Eigvalsh => eigh::values_workspace(rows),
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

/// Most chunks of a batch. Each chunk has a workspace.
const SHARES: usize = 32;

/// How many consecutive matrices of a batch a thread takes at a time, with one workspace for all: enough to pay for the
/// thread, and few enough to balance the load. The workspace's size follows from it, so it does not depend on the
/// number of threads.
pub(crate) fn grain(batch: usize, (rows, columns): (usize, usize)) -> usize {
    let worth = CHUNK_WORK / (rows * columns).saturating_mul(rows.max(columns)).max(1);
    worth.max(batch.div_ceil(SHARES)).max(1)
}

/// Memory of a batch: `count` initialised elements for each matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchBuffer<'a> {
    view: &'a ViewMut<'a>,
    count: usize,
}

impl<'a> BatchBuffer<'a> {
    /// The elements of a view, `count` for each matrix.
    pub(crate) fn new(view: &'a ViewMut<'a>, count: usize) -> BatchBuffer<'a> {
        BatchBuffer { view, count }
    }

    /// The elements of one matrix.
    ///
    /// # Safety
    /// All elements of the view are initialised, and no other slice of this matrix's elements is alive.
    unsafe fn of<T: Plain>(&self, matrix: usize) -> &'a mut [T] {
        // SAFETY: as the caller guarantees. Parts of different matrices do not overlap.
        let part = unsafe { self.view.part::<T>(matrix * self.count, self.count) };
        // SAFETY: the elements are initialised.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast::<T>(), part.len()) }
    }
}

/// Fills a whole view with zeros.
pub(crate) fn clear<T: Field>(view: &mut ViewMut<'_>, par: Par) {
    view.fill::<T>(par, 1 << 14, |_, chunk| chunk.fill(MaybeUninit::new(T::ZERO)));
}

/// The matrices of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Matrices<'a> {
    /// They are only read.
    ReadOnly(View<'a>),
    /// They are overwritten.
    Overwritten(BatchBuffer<'a>),
}

/// The buffers of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskMemory<'a> {
    /// The matrices; [`Matrices::ReadOnly`] if [`Task::keeps_matrix`].
    pub a: Matrices<'a>,
    /// The right-hand sides of systems.
    pub b: Option<BatchBuffer<'a>>,
    /// Results that do not replace an operand.
    pub out: &'a [BatchBuffer<'a>],
    /// The workspace: one part for each chunk of [`grain`] matrices.
    pub work: BatchBuffer<'a>,
}

/// Runs a task on a batch of matrices of the given size.
///
/// # Safety
/// All memory in `memory` is initialised and holds elements of type `T`, and no other thread accesses it during the
/// call.
pub(crate) unsafe fn run<T: Field>(
    task: Task,
    batch: usize,
    (rows, columns): (usize, usize),
    memory: TaskMemory<'_>,
    par: Par,
) {
    let inside = if batch < par.threads() { par } else { Par::Serial };
    let grain = grain(batch, (rows, columns));
    par.for_chunks(batch, grain, |chunk| {
        // SAFETY: as the caller guarantees; each part is used by one chunk.
        let work = unsafe { memory.work.of::<T>(chunk.start / grain) };
        for matrix in chunk {
            // SAFETY: as the caller guarantees; each matrix is in one chunk.
            let b = memory.b.map(|b| unsafe { b.of::<T>(matrix) });
            // SAFETY: as above; the outputs are different memory.
            let mut out = memory.out.iter().map(|out| unsafe { out.of::<T>(matrix) });
            let mut next = || out.next().expect("a task has all its results");
            let count = rows * columns;
            let matrices = match memory.a {
                Matrices::ReadOnly(view) => {
                    let a = &view.slice::<T>()[matrix * count..(matrix + 1) * count];
                    let Task::Triangular { system, vector } = task else {
                        unreachable!("{task:?} overwrites its matrix")
                    };
                    let b = b.expect("a system has a right-hand side");
                    system.solve(a, rows, b, vector, work, inside);
                    continue;
                }
                Matrices::Overwritten(part) => part,
            };
            // SAFETY: as above.
            let a = unsafe { matrices.of::<T>(matrix) };
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
                    svd::factors(a, (rows, columns), full, (u, s, vh), work, inside);
                }
                Task::Eigh { eps } => {
                    let (w, v) = (next(), next());
                    eigh::factors(a, rows, eps, (w, v), work, inside);
                }
                Task::Eig { vectors } => {
                    let w = next();
                    let v = vectors.then(&mut next);
                    T::schur(a, rows, Wanted::Eigenvalues, (w, v), work, inside);
                }
                Task::Schur => {
                    let (t, z) = (next(), next());
                    T::schur(a, rows, Wanted::Factors, (t, Some(z)), work, inside);
                }
                Task::Hessenberg => {
                    let (h, q) = (next(), next());
                    hessenberg::factors(a, rows, (h, q), work, inside);
                }
                Task::Svdvals => svd::values(a, (rows, columns), next(), work),
                Task::Eigvalsh => eigh::values(a, rows, next(), work),
            }
        }
    });
}

/// A power of two near the greatest magnitude of the elements, so that division by it is exact; `None` if an element is
/// not finite. It is 1 if all are zero, or if a magnitude of finite parts overflows.
fn scale_of<T: Field>(a: &[T]) -> Option<T::Real> {
    let zero = <T::Real as Field>::ZERO;
    let mut greatest = zero;
    for x in a {
        if !x.is_finite() {
            return None;
        }
        if x.abs() > greatest {
            greatest = x.abs();
        }
    }
    let is_usual = greatest > zero && greatest.is_finite();
    Some(if is_usual { greatest.power_of_two() } else { <T::Real as Field>::ONE })
}

/// Splits `count` elements off the front of the workspace.
fn split_workspace<'a, T>(work: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (part, rest) = std::mem::take(work).split_at_mut(count);
    *work = rest;
    part
}

/// Two different rows of a matrix with `columns` columns.
fn two_rows<T>(x: &mut [T], columns: usize, first: usize, last: usize) -> (&mut [T], &mut [T]) {
    assert!(first < last, "rows in order");
    let (head, tail) = x.split_at_mut(last * columns);
    (&mut head[first * columns..(first + 1) * columns], &mut tail[..columns])
}
