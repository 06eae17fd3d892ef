//! Linear systems and determinants of up to three rows as instructions on scalars. They give the bits of the kernels
//! (`kernels/matrix/lu.rs`): the same operations in the same order.

use std::sync::Arc;

use defn_core::op::{Block, Op as GraphOp};
use defn_core::{DType, TensorType};

use super::link::Linker;
use super::places::{PerElement, Place, elements_of, parts_of};
use crate::compiler::ir::{Cmp, Elem, Op, Val};
use crate::compiler::plan::{Plan, Step};

/// The most rows.
const MAX_ROWS: usize = 3;

/// A matrix of scalars.
type Rows = Vec<Vec<Val>>;

impl Linker {
    /// What a step of an op does, if it solves a small system or computes a small determinant.
    pub(super) fn solves(
        &mut self,
        plan: &Arc<Plan>,
        step: &Step,
        (inputs, operands): (&[Place], &[TensorType]),
        output: &Place,
    ) -> bool {
        let node = &plan.region.graph().nodes()[step.node];
        let GraphOp::Block(block @ (Block::Solve | Block::Determinant)) = &node.op else { return false };
        let ty = &node.outputs[0];
        let is_real = ty.dtype == DType::F32 || ty.dtype == DType::F64;
        let sizes = operands[0].shape.sizes();
        if !is_real || sizes.len() != 2 || !(1..=MAX_ROWS).contains(&sizes[0]) || sizes[0] != sizes[1] {
            return false;
        }
        let is_small = |operand: &TensorType| operand.dtype == ty.dtype && elements_of(operand).is_some();
        if !operands.iter().all(is_small) || elements_of(ty).is_none() {
            return false;
        }
        let elem = parts_of(ty.dtype).0;
        let results: Vec<Val> = if let Block::Solve = block {
            let a = self.rows(&inputs[0], &operands[0], sizes[0]);
            let b = self.rows(&inputs[1], &operands[1], operands[1].size() / sizes[0]);
            self.solved(elem, a, b).concat()
        } else {
            let a = self.rows(&inputs[0], &operands[0], sizes[0]);
            vec![self.determinant(&a)]
        };
        let elements = elements_of(ty).expect("the result is small");
        let elements: PerElement<Val> =
            elements.iter().zip(results).map(|(&(offset, _), value)| (offset, value)).collect();
        self.set_elements(output, elements);
        true
    }

    fn rows(&mut self, place: &Place, ty: &TensorType, columns: usize) -> Rows {
        let elements = self.elements(place, ty);
        let values: Vec<Val> = elements.iter().map(|(_, value)| *value).collect();
        values.chunks(columns).map(<[Val]>::to_vec).collect()
    }

    /// The magnitude that pivots are compared by.
    fn size(&mut self, elem: Elem, x: Val) -> Val {
        let mask = self.b.bits(elem, u64::MAX >> (64 - 8 * elem.bytes()) >> 1);
        self.b.op(Op::And, [x, mask])
    }

    /// `a * b - c * d`.
    fn minor(&mut self, [a, b, c, d]: [Val; 4]) -> Val {
        let (first, second) = (self.b.mul(a, b), self.b.mul(c, d));
        self.b.sub(first, second)
    }

    fn determinant(&mut self, a: &Rows) -> Val {
        match a.len() {
            1 => a[0][0],
            2 => self.minor([a[0][0], a[1][1], a[0][1], a[1][0]]),
            _ => {
                let mut term = |at: usize, left: usize, right: usize| {
                    let minor = self.minor([a[1][left], a[2][right], a[1][right], a[2][left]]);
                    self.b.mul(a[0][at], minor)
                };
                let (first, second, third) = (term(0, 1, 2), term(1, 0, 2), term(2, 0, 1));
                let both = self.b.sub(first, second);
                self.b.add(both, third)
            }
        }
    }

    /// `x - factor * y`, rounded twice.
    fn reduced(&mut self, x: Val, factor: Val, y: Val) -> Val {
        let product = self.b.mul(factor, y);
        self.b.sub(x, product)
    }

    /// The unknowns of a system, by elimination with row pivoting.
    fn solved(&mut self, elem: Elem, mut a: Rows, mut b: Rows) -> Rows {
        let (n, zero) = (a.len(), self.b.float(elem, 0.0));
        for j in 0..n {
            self.pivot(elem, j, &mut a, &mut b);
            let pivot = a[j][j];
            let is_zero = self.b.compare(Cmp::Eq, pivot, zero);
            for i in j + 1..n {
                // A column of zeros stays as it is.
                let quotient = self.b.div(a[i][j], pivot);
                a[i][j] = self.b.select(is_zero, zero, quotient);
                for k in j + 1..n {
                    let less = self.reduced(a[i][k], a[i][j], a[j][k]);
                    a[i][k] = self.b.select(is_zero, a[i][k], less);
                }
            }
        }
        for column in 0..b[0].len() {
            for i in 0..n {
                for j in 0..i {
                    b[i][column] = self.reduced(b[i][column], a[i][j], b[j][column]);
                }
            }
            for i in (0..n).rev() {
                for j in i + 1..n {
                    b[i][column] = self.reduced(b[i][column], a[i][j], b[j][column]);
                }
                b[i][column] = self.b.div(b[i][column], a[i][i]);
            }
        }
        b
    }

    /// Exchanges a row with that at or below it which has the greatest element in its column, the first of several, or
    /// the first NaN.
    fn pivot(&mut self, elem: Elem, j: usize, a: &mut Rows, b: &mut Rows) {
        let n = a.len();
        let mut most = self.size(elem, a[j][j]);
        // For each row below whether it is the pivot.
        let mut is_pivot: Vec<Val> = Vec::new();
        for row in &a[j + 1..] {
            let size = self.size(elem, row[j]);
            let is_greater = self.b.compare(Cmp::Lt, most, size);
            let is_nan = self.b.compare(Cmp::Ne, size, size);
            let was_number = self.b.compare(Cmp::Eq, most, most);
            let is_first_nan = self.b.op(Op::And, [is_nan, was_number]);
            let is_better = self.b.op(Op::Or, [is_greater, is_first_nan]);
            for before in &mut is_pivot {
                *before = self.b.op(Op::AndNot, [*before, is_better]);
            }
            is_pivot.push(is_better);
            most = self.b.select(is_better, size, most);
        }
        for matrix in [a, b] {
            for column in 0..matrix[0].len() {
                let own = matrix[j][column];
                for (i, &is_pivot) in (j + 1..n).zip(&is_pivot) {
                    let below = matrix[i][column];
                    matrix[j][column] = self.b.select(is_pivot, below, matrix[j][column]);
                    matrix[i][column] = self.b.select(is_pivot, own, below);
                }
            }
        }
    }
}
