//! Products of small matrices as instructions.

use std::sync::Arc;

use defn_core::op::Op as GraphOp;
use defn_core::{DType, TensorType};
use smallvec::SmallVec;

use super::link::Linker;
use super::places::{PerElement, Place, elements_of, parts_of};
use crate::compiler::ir::{Access, Elem, Val};
use crate::compiler::plan::{Plan, Step};
use crate::kernels::simd::{Level, level};

/// A kernel multiplies what takes more multiplications.
const MAX_MULTIPLICATIONS: usize = 1 << 15;

/// The same where columns of the second matrix do not lie beside each other.
const MAX_TURNED: usize = 1 << 12;

/// Longer sums have an order of their own; `docs/order.md` has it.
const MAX_LENGTH: usize = 512;

/// The rows that are computed side by side.
const BLOCK_ROWS: usize = 4;

/// A product of so many multiplications has instructions for each.
const MAX_SCALAR: usize = 64;

/// The most multiplications of lanes that have instructions of their own.
const MAX_BLOCK: usize = 32;

/// The fewest columns that are worth a vector.
const MIN_VECTOR: usize = 4;

/// The sums of rows, and the terms of an address.
type Sums = SmallVec<[Val; BLOCK_ROWS]>;
type Terms = SmallVec<[(Val, i64); 3]>;

/// A matrix: the bytes from one row, and from one column, to the next.
struct Matrix<'m> {
    place: &'m Place,
    rows: i64,
    columns: i64,
}

impl Matrix<'_> {
    fn element(&self, row: usize, column: usize) -> i64 {
        row as i64 * self.rows + column as i64 * self.columns
    }
}

impl Linker {
    /// What a step of an op does, if it multiplies two small matrices. Each element of the result is a sum in order of
    /// fused products, as a kernel gives it where the processor has such.
    pub(super) fn multiplies(
        &mut self,
        plan: &Arc<Plan>,
        step: &Step,
        (inputs, operands): (&[Place], &[TensorType]),
        output: &Place,
    ) -> bool {
        let node = &plan.region.graph().nodes()[step.node];
        let GraphOp::Dot { contract_a, batch_a, contract_b, .. } = &node.op else { return false };
        let ty = &node.outputs[0];
        let ([a], [b]) = (&contract_a[..], &contract_b[..]) else { return false };
        let is_real = ty.dtype == DType::F32 || ty.dtype == DType::F64;
        let is_matrix = |operand: &TensorType| operand.dtype == ty.dtype && operand.shape.rank() == 2;
        if !is_real || !batch_a.is_empty() || !operands.iter().all(is_matrix) || level() == Level::Portable {
            return false;
        }
        let (x, y) = (operands[0].shape.sizes(), operands[1].shape.sizes());
        let (rows, length, columns) = (x[1 - a.index()], x[a.index()], y[1 - b.index()]);
        // What has one row or column is summed in another order.
        let most = if b.index() == 0 { MAX_MULTIPLICATIONS } else { MAX_TURNED };
        if rows < 2 || columns < 2 || !(2..=MAX_LENGTH).contains(&length) || rows * length * columns > most {
            return false;
        }
        let (elem, _) = parts_of(ty.dtype);
        let width = elem.bytes() as i64;
        let steps = |sizes: &[usize], is_turned: bool| {
            let row = sizes[1] as i64 * width;
            if is_turned { (width, row) } else { (row, width) }
        };
        let (a_steps, b_steps) = (steps(x, a.index() == 0), steps(y, b.index() == 1));
        let a = Matrix { place: &inputs[0], rows: a_steps.0, columns: a_steps.1 };
        let b = Matrix { place: &inputs[1], rows: b_steps.0, columns: b_steps.1 };
        let out = Matrix { place: output, rows: columns as i64 * width, columns: width };
        let are_known = inputs.iter().zip(operands).all(|(place, ty)| self.known(place, ty).is_some());
        let is_narrow = columns < MIN_VECTOR && rows * length * columns <= MAX_SCALAR;
        if elements_of(ty).is_some() && (are_known || is_narrow) {
            self.multiply_scalars(
                elem,
                (&a, &operands[0]),
                (&b, &operands[1]),
                &out,
                (rows, length, columns),
            );
            return true;
        }
        for (place, ty) in inputs.iter().zip(operands) {
            self.store(place, ty.byte_size());
        }
        self.scalars.forget(output, ty.byte_size());
        self.multiply_rows(elem, &a, &b, &out, (rows, length, columns));
        true
    }

    /// A product of so few elements that each is a scalar.
    fn multiply_scalars(
        &mut self,
        elem: Elem,
        (a, a_type): (&Matrix<'_>, &TensorType),
        (b, b_type): (&Matrix<'_>, &TensorType),
        out: &Matrix<'_>,
        (rows, length, columns): (usize, usize, usize),
    ) {
        let (x, y) = (self.all_elements(elem, a.place, a_type), self.all_elements(elem, b.place, b_type));
        let find = |words: &[(i64, Val)], offset: i64| {
            words.iter().find(|(own, _)| *own == offset).expect("an element of the matrix").1
        };
        let zero = self.b.float(elem, 0.0);
        let mut words: SmallVec<[(i64, Val); 9]> = SmallVec::new();
        for row in 0..rows {
            for column in 0..columns {
                let sum = (0..length).fold(zero, |sum, at| {
                    let (x, y) = (find(&x, a.element(row, at)), find(&y, b.element(at, column)));
                    self.b.fma(x, y, sum)
                });
                words.push((out.element(row, column), sum));
            }
        }
        self.set_elements(out.place, words);
    }

    /// All elements of a value, however many, loaded where they are not in registers.
    fn all_elements(&mut self, elem: Elem, place: &Place, ty: &TensorType) -> PerElement<Val> {
        if elements_of(ty).is_some() {
            return self.elements(place, ty);
        }
        self.store(place, ty.byte_size());
        let offsets = (0..ty.size()).map(|at| (at * elem.bytes()) as i64);
        offsets.map(|offset| (offset, self.b.load(elem, place.element(offset)))).collect()
    }

    /// A product row by row, whose elements are lanes.
    fn multiply_rows(
        &mut self,
        elem: Elem,
        a: &Matrix<'_>,
        b: &Matrix<'_>,
        out: &Matrix<'_>,
        (rows, length, columns): (usize, usize, usize),
    ) {
        let extent = self.b.index(columns as i64);
        let zero = self.b.float(elem, 0.0);
        let with = |own: Access, terms: &[(Val, i64)], lane: i64| {
            let terms = own.terms.iter().chain(terms).copied().collect();
            Access { terms, lane, ..own }
        };
        if rows * length <= MAX_BLOCK {
            self.b.begin_lanes(extent);
            let of_b = |at: usize| with(b.place.element(b.element(at, 0)), &[], b.columns);
            let of_b: SmallVec<[Val; 16]> = (0..length).map(|at| self.b.load(elem, of_b(at))).collect();
            for row in 0..rows {
                let sum = of_b.iter().enumerate().fold(zero, |sum, (at, &y)| {
                    let x = self.b.load(elem, a.place.element(a.element(row, at)));
                    self.b.fma(x, y, sum)
                });
                self.b.store(sum, with(out.place.element(out.element(row, 0)), &[], out.columns));
            }
            self.b.end_lanes();
            return;
        }
        // Rows side by side read each row of the other matrix once.
        let whole = rows / BLOCK_ROWS * BLOCK_ROWS;
        for (first, blocks, count) in [(0, rows / BLOCK_ROWS, BLOCK_ROWS), (whole, 1, rows - whole)] {
            if blocks == 0 || count == 0 {
                continue;
            }
            let trips = self.b.index(blocks as i64);
            let (block, _) = self.b.begin_loop(Some(trips), &[]);
            self.b.begin_lanes(extent);
            // The terms of the sums of all rows at a place of the contracted axis, which a counter says.
            let terms = |linker: &mut Self, at: usize, counter: Option<Val>, sums: &[Val]| -> Sums {
                let along = |by: i64| counter.map(|counter| (counter, by));
                let y = with(b.place.element(b.element(at, 0)), along(b.rows).as_slice(), b.columns);
                let y = linker.b.load(elem, y);
                let add = |(row, &sum): (usize, &Val)| {
                    let own = a.place.element(a.element(first + row, at));
                    let blocks = [(block, count as i64 * a.rows)];
                    let x = with(own, &blocks.into_iter().chain(along(a.columns)).collect::<Terms>(), 0);
                    let x = linker.b.load(elem, x);
                    linker.b.fma(x, y, sum)
                };
                sums.iter().enumerate().map(add).collect()
            };
            let mut sums = Sums::from_elem(zero, count);
            if length * count <= MAX_BLOCK {
                for at in 0..length {
                    sums = terms(self, at, None, &sums);
                }
            } else {
                let trips = self.b.index(length as i64);
                let zeros: SmallVec<[(Val, bool); 4]> = SmallVec::from_elem((zero, true), count);
                let (at, carried) = self.b.begin_loop(Some(trips), &zeros);
                let next = terms(self, 0, Some(at), &carried);
                self.b.end_loop(&carried.iter().copied().zip(next).collect::<SmallVec<[_; 4]>>());
                sums = carried.into_iter().collect();
            }
            for (row, sum) in sums.into_iter().enumerate() {
                let own = out.place.element(out.element(first + row, 0));
                self.b.store(sum, with(own, &[(block, count as i64 * out.rows)], out.columns));
            }
            self.b.end_lanes();
            self.b.end_loop(&[]);
        }
    }
}
