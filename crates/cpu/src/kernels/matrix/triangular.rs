//! Triangular systems: substitution in blocks, joined by matrix products.

use defn_core::op::Transform;

use super::Field;
use super::rows::{LANES, subtract_few, subtract_rows, sums, transpose_into};
use crate::kernels::linalg::gemm::Matrix;
use crate::kernels::simd::vectorized;
use crate::par::Par;

/// Unknowns of a block that is solved by substitution.
const BLOCK: usize = 32;

/// Unknowns of a vector whose dot products are computed in parallel.
const LINES: usize = 4;

/// The triangle, the side and the transform of a system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangular {
    /// Whether the lower triangle is read.
    pub lower: bool,
    /// Whether the matrix is on the left of the unknowns.
    pub left_side: bool,
    /// The transform that is applied to the matrix first.
    pub transform: Transform,
}

impl Triangular {
    /// Workspace elements that [`solve`](Triangular::solve) needs for `n` unknowns and a right-hand side of `count`
    /// elements.
    pub(crate) fn workspace<T: Field>(self, n: usize, count: usize, vector: bool) -> usize {
        let columns = count.checked_div(n).unwrap_or(0);
        let turned = if self.left_side || vector || columns == 1 { 0 } else { count };
        turned + space::<T>(n, columns)
    }

    /// Solves a system of `n` unknowns in place of the right-hand side, which is one vector or a matrix.
    pub(crate) fn solve<T: Field>(
        self,
        a: &[T],
        n: usize,
        b: &mut [T],
        vector: bool,
        work: &mut [T],
        par: Par,
    ) {
        if n == 0 || b.is_empty() {
            return;
        }
        let columns = b.len() / n;
        let (turned, conjugates) = match self.transform {
            Transform::None => (false, false),
            Transform::Transpose => (true, false),
            Transform::Conjugate => (false, T::COMPLEX),
            Transform::Adjoint => (true, T::COMPLEX),
        };
        // A row of unknowns on the left of a matrix is a column of unknowns on the right of its transpose.
        let swaps = turned == self.left_side;
        let (row, column) = if swaps { (1, n) } else { (n, 1) };
        let system = System { elements: a, row, column, forward: self.lower != swaps, unit: false };
        if conjugates {
            b.iter_mut().for_each(|x| *x = x.conj());
        }
        if self.left_side || vector || columns == 1 {
            system.solve(n, b, (columns, columns), work, par);
        } else {
            let (across, work) = work.split_at_mut(b.len());
            transpose_into(b, n, (columns, n), across, columns);
            system.solve(n, across, (columns, columns), work, par);
            transpose_into(across, columns, (n, columns), b, n);
        }
        if conjugates {
            b.iter_mut().for_each(|x| *x = x.conj());
        }
    }
}

/// Elements of the space that [`System::solve`] needs.
pub(super) fn space<T: Field>(n: usize, columns: usize) -> usize {
    if n <= BLOCK || columns <= 1 { 0 } else { T::product_space([half(n), columns, half(n)]) }
}

/// Where a system is cut in two.
fn half(n: usize) -> usize {
    n.div_ceil(2).next_multiple_of(BLOCK)
}

/// A triangular matrix on the left of the unknowns, with its memory layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct System<'a, T> {
    /// The elements from the matrix's first one on.
    pub(super) elements: &'a [T],
    /// The strides between rows and between columns. One of both is 1.
    pub(super) row: usize,
    pub(super) column: usize,
    /// Whether the first unknown is solved first.
    pub(super) forward: bool,
    /// Whether all diagonal elements are 1 and are not read.
    pub(super) unit: bool,
}

impl<T: Field> System<'_, T> {
    fn at(&self, i: usize, j: usize) -> T {
        self.elements[i * self.row + j * self.column]
    }

    /// The subsystem from an unknown on.
    fn from(&self, first: usize) -> Self {
        System { elements: &self.elements[first * (self.row + self.column)..], ..*self }
    }

    /// Solves for `n` rows of unknowns in place of the right-hand sides. Rows are `stride` elements apart.
    pub(super) fn solve(
        &self,
        n: usize,
        b: &mut [T],
        (columns, stride): (usize, usize),
        space: &mut [T],
        par: Par,
    ) {
        if columns == 1 && stride == 1 {
            if self.column == 1 {
                vector_by_rows(*self, n, b);
            } else {
                vector_by_columns(*self, n, b);
            }
            return;
        }
        if n <= BLOCK {
            block(*self, n, b, columns, stride);
            return;
        }
        let middle = half(n);
        let (first, last) = b.split_at_mut(middle * stride);
        let rest = n - middle;
        let start = if self.forward { middle * self.row } else { middle * self.column };
        let across = Matrix { elements: &self.elements[start..], free: self.row, along: self.column };
        let solved = |elements| Matrix { elements, free: 1, along: stride };
        if self.forward {
            self.solve(middle, first, (columns, stride), space, par);
            let sizes = [rest, columns, middle];
            T::subtract_product(sizes, (&across, &solved(first)), last, stride, space, par);
            self.from(middle).solve(rest, last, (columns, stride), space, par);
        } else {
            self.from(middle).solve(rest, last, (columns, stride), space, par);
            let sizes = [middle, columns, rest];
            T::subtract_product(sizes, (&across, &solved(last)), first, stride, space, par);
            self.solve(middle, first, (columns, stride), space, par);
        }
    }
}

vectorized! {
    /// A block of at most [`BLOCK`] rows of unknowns.
    fn block[T: Field] of [T] (system: System<'_, T>, n: usize, b: &mut [T], columns: usize, stride: usize) {
        let mut factors = [T::ZERO; BLOCK];
        for step in 0..n {
            let i = if system.forward { step } else { n - 1 - step };
            let solved = if system.forward { 0..i } else { i + 1..n };
            let factors = &mut factors[..solved.len()];
            for (factor, j) in factors.iter_mut().zip(solved) {
                *factor = system.at(i, j);
            }
            let (before, rest) = b.split_at_mut(i * stride);
            let (open, behind) = rest.split_at_mut(rest.len().min(stride));
            let (open, solved) = (&mut open[..columns], if system.forward { before } else { behind });
            if columns < LANES {
                subtract_few(open, factors, solved, stride);
            } else {
                subtract_rows(open, factors, solved, stride);
            }
            if !system.unit {
                let pivot = system.at(i, i);
                open.iter_mut().for_each(|x| *x = x.over(pivot));
            }
        }
    }
}

vectorized! {
    /// One vector of unknowns, for a matrix with contiguous rows.
    fn vector_by_rows[T: Field] of [T] (system: System<'_, T>, n: usize, x: &mut [T]) {
        for step in (0..n).step_by(LINES) {
            let count = LINES.min(n - step);
            // These unknowns are open; the known ones are before or after them.
            let first = if system.forward { step } else { n - step - count };
            let solved = if system.forward { 0..first } else { first + count..n };
            let mut open = [T::ZERO; LINES];
            open[..count].copy_from_slice(&x[first..first + count]);
            let rows = &system.elements[first * system.row + solved.start.min(n - 1)..];
            let solved = &x[solved];
            // Those of the last row repeat if there are fewer.
            let mut starts = [0; LINES];
            for (row, start) in starts.iter_mut().enumerate() {
                *start = row.min(count - 1) * system.row;
            }
            let sums = sums(rows, starts, solved);
            for (open, sum) in open.iter_mut().zip(sums) {
                *open = *open - sum;
            }
            for step in 0..count {
                let i = if system.forward { step } else { count - 1 - step };
                let before = if system.forward { 0..i } else { i + 1..count };
                for j in before {
                    open[i] = open[i] - system.at(first + i, first + j) * open[j];
                }
                if !system.unit {
                    open[i] = open[i].over(system.at(first + i, first + i));
                }
            }
            x[first..first + count].copy_from_slice(&open[..count]);
        }
    }
}

/// One vector of unknowns, for a matrix with contiguous columns.
fn vector_by_columns<T: Field>(system: System<'_, T>, n: usize, x: &mut [T]) {
    for step in (0..n).step_by(BLOCK) {
        let count = BLOCK.min(n - step);
        let first = if system.forward { step } else { n - step - count };
        let (before, rest) = x.split_at_mut(first);
        let (open, behind) = rest.split_at_mut(count);
        for step in 0..count {
            let i = if system.forward { step } else { count - 1 - step };
            if !system.unit {
                open[i] = open[i].over(system.at(first + i, first + i));
            }
            let rest = if system.forward { i + 1..count } else { 0..i };
            for j in rest {
                open[j] = open[j] - system.at(first + j, first + i) * open[i];
            }
        }
        let column = first * system.column;
        if system.forward {
            if !behind.is_empty() {
                subtract_rows(behind, open, &system.elements[column + first + count..], system.column);
            }
        } else if first > 0 {
            subtract_rows(before, open, &system.elements[column..], system.column);
        }
    }
}
