//! Triangular systems by substitution.

use defn_core::op::Transform;

use super::{Field, add_scaled, two_rows};

/// Which triangle, on which side, transformed how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangular {
    /// Whether the lower triangle is read.
    pub lower: bool,
    /// Whether the matrix is on the left of the unknowns.
    pub left_side: bool,
    /// What is done to the matrix first.
    pub transform: Transform,
}

impl Triangular {
    /// An element of the transformed matrix.
    fn at<T: Field>(self, a: &[T], n: usize, i: usize, j: usize) -> T {
        match self.transform {
            Transform::None => a[i * n + j],
            Transform::Transpose => a[j * n + i],
            Transform::Conjugate => a[j * n + i].conj(),
        }
    }

    /// Whether the transformed matrix is lower triangular.
    fn forward(self) -> bool {
        match self.transform {
            Transform::None => self.lower,
            Transform::Transpose | Transform::Conjugate => !self.lower,
        }
    }

    /// Solves a system of `n` unknowns in the place of the right-hand side, which is one vector or a matrix.
    pub(crate) fn solve<T: Field>(self, a: &[T], n: usize, b: &mut [T], vector: bool) {
        if n == 0 || b.is_empty() {
            return;
        }
        if self.left_side && !vector {
            self.solve_left(a, n, b);
        } else {
            // A vector on the right of the matrix solves the system of its transpose on its left.
            let turned =
                if self.left_side { self.mirrored() } else { Mirrored { system: self, swap: false } };
            for row in b.chunks_exact_mut(n) {
                turned.solve_row(a, n, row);
            }
        }
    }

    fn mirrored(self) -> Mirrored {
        Mirrored { system: self, swap: true }
    }

    /// `t x = b`, all columns of `b` at once.
    fn solve_left<T: Field>(self, a: &[T], n: usize, b: &mut [T]) {
        let columns = b.len() / n;
        let forward = self.forward();
        for step in 0..n {
            let i = if forward { step } else { n - 1 - step };
            let pivot = self.at(a, n, i, i);
            for x in &mut b[i * columns..(i + 1) * columns] {
                *x = x.over(pivot);
            }
            for rest in step + 1..n {
                let j = if forward { rest } else { n - 1 - rest };
                let factor = self.at(a, n, j, i);
                let (first, last) = two_rows(b, columns, i.min(j), i.max(j));
                let (known, open) = if i < j { (first, last) } else { (last, first) };
                add_scaled(open, -factor, known);
            }
        }
    }
}

/// A system of rows: `x t = b`, where `t` may be transposed once more.
#[derive(Clone, Copy, Debug)]
struct Mirrored {
    system: Triangular,
    swap: bool,
}

impl Mirrored {
    fn solve_row<T: Field>(self, a: &[T], n: usize, row: &mut [T]) {
        let forward = self.system.forward() == self.swap;
        let at = |i: usize, j: usize| {
            if self.swap { self.system.at(a, n, j, i) } else { self.system.at(a, n, i, j) }
        };
        for step in 0..n {
            let i = if forward { step } else { n - 1 - step };
            let known = row[i].over(at(i, i));
            row[i] = known;
            let open = if forward { i + 1..n } else { 0..i };
            for j in open {
                row[j] = row[j] - known * at(i, j);
            }
        }
    }
}
