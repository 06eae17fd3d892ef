use defn_core::{Axis, Number, Scalar};
use proptest::prelude::*;

use super::*;
use crate::compiler::OneProduct;
use crate::kernels::shape;
use crate::kernels::simd::at_every_level;
use crate::kernels::testing::{Array, COMPUTED, flat_of, index_of, noise};

fn axes(positions: &[usize]) -> Vec<Axis> {
    let shape = Shape::new(&[1; 8]);
    positions.iter().map(|&position| shape.axis(position).unwrap()).collect()
}

struct Case {
    a: Array,
    b: Array,
    contract_a: Vec<usize>,
    contract_b: Vec<usize>,
    batch: usize,
}

impl Case {
    fn free(&self, x: &Array, contract: &[usize]) -> Vec<usize> {
        (self.batch..x.ty.shape.rank()).filter(|axis| !contract.contains(axis)).collect()
    }

    /// The shape of the result.
    fn sizes(&self) -> Vec<usize> {
        let (a, b) = (self.a.ty.shape.sizes(), self.b.ty.shape.sizes());
        let rest = self.free(&self.a, &self.contract_a).into_iter().map(|axis| a[axis]);
        let other = self.free(&self.b, &self.contract_b).into_iter().map(|axis| b[axis]);
        a[..self.batch].iter().copied().chain(rest).chain(other).collect()
    }

    fn run(&self, par: Par) -> Array {
        let dtype = self.a.ty.dtype;
        let (contract_a, contract_b) = (axes(&self.contract_a), axes(&self.contract_b));
        let a = DotAxes { sizes: self.a.ty.shape.sizes(), contract: &contract_a, batch: self.batch };
        let b = DotAxes { sizes: self.b.ty.shape.sizes(), contract: &contract_b, batch: self.batch };
        let plan = Dot::new(a, b, !dtype.is_integer());
        let mut out = Array::unwritten(TensorType::new(dtype, Shape::new(&self.sizes())).unwrap());
        if plan.is_of_vector() {
            let types = [&self.a.ty, &self.b.ty];
            let product = OneProduct::new(types, [&contract_a, &contract_b], self.batch, &out.ty);
            let bytes = Shape::new(&[product.scratch()]);
            let mut scratch = Array::unwritten(TensorType::new(DType::U8, bytes).unwrap());
            product.run([self.a.view(), self.b.view()], &out.view_mut(), &scratch.view_mut(), par);
            return out;
        }
        let pack = |x: &Array, side: &OperandLayout| {
            let mut packed = Array::unwritten(x.ty.clone());
            match &side.pack {
                Some(pack) => shape::copy(pack, x.view(), &mut packed.view_mut(), par),
                None => shape::convert(x.view(), dtype, &mut packed.view_mut(), par),
            }
            packed
        };
        let (a, b) = (pack(&self.a, &plan.a), pack(&self.b, &plan.b));
        let mut scratch = Array::unwritten(dot_scratch(&plan, dtype));
        dot(&plan, a.view(), b.view(), (&mut out.view_mut(), None), &mut scratch.view_mut(), par);
        out
    }

    /// Each element by definition. The numbers are small integers, so all sums are exact.
    fn check(&self) {
        let dtype = self.a.ty.dtype;
        let (a, b) = (self.a.scalars(), self.b.scalars());
        let (a_sizes, b_sizes) = (self.a.ty.shape.sizes(), self.b.ty.shape.sizes());
        let (a_free, b_free) = (self.free(&self.a, &self.contract_a), self.free(&self.b, &self.contract_b));
        let summed: Vec<usize> = self.contract_a.iter().map(|&axis| a_sizes[axis]).collect();
        let sizes = self.sizes();
        let got = self.run(Par::Pool).scalars();
        assert_eq!(got.len(), sizes.iter().product::<usize>());
        for (flat, got) in got.into_iter().enumerate() {
            let index = index_of(&sizes, flat);
            let (batch, rest) = index.split_at(self.batch);
            let (mut i, mut j) = (vec![0; a_sizes.len()], vec![0; b_sizes.len()]);
            i[..self.batch].copy_from_slice(batch);
            j[..self.batch].copy_from_slice(batch);
            a_free.iter().zip(rest).for_each(|(&axis, &at)| i[axis] = at);
            b_free.iter().zip(&rest[a_free.len()..]).for_each(|(&axis, &at)| j[axis] = at);
            let (mut exact, mut sum) = (0i128, Complex::new(0.0, 0.0));
            for step in 0..summed.iter().product() {
                let at = index_of(&summed, step);
                self.contract_a.iter().zip(&at).for_each(|(&axis, &at)| i[axis] = at);
                self.contract_b.iter().zip(&at).for_each(|(&axis, &at)| j[axis] = at);
                let complex = |number| match number {
                    Number::Complex(value) => value,
                    Number::Bool(_) | Number::Int(_) | Number::Huge(_) | Number::Float(_) => {
                        Complex::new(number.to_f64(), 0.0)
                    }
                };
                let (x, y) = (a[flat_of(a_sizes, &i)].value(), b[flat_of(b_sizes, &j)].value());
                if let (Number::Int(x), Number::Int(y)) = (x, y) {
                    exact = exact.wrapping_add(x.wrapping_mul(y));
                }
                sum += complex(x) * complex(y);
            }
            let want = match got.value() {
                Number::Bool(_) => unreachable!("products of bools are counted in s32"),
                Number::Int(_) => Number::Int(exact),
                Number::Huge(_) | Number::Float(_) => Number::Float(sum.re),
                Number::Complex(_) => Number::Complex(sum),
            };
            let want = Scalar::new(dtype, want).unwrap();
            assert_eq!(got.value(), want.value(), "{} and {} at {index:?}", self.a.ty, self.b.ty);
        }
    }
}

fn array(dtype: DType, sizes: &[usize], seed: u64) -> Array {
    let small = |bits: u64| i128::from(bits % 7) - 3;
    let numbers = noise(seed).map(|bits| match dtype.is_complex() {
        true => Number::complex(small(bits) as f64, small(bits >> 8) as f64),
        false => Number::Int(small(bits)),
    });
    Array::new(dtype, sizes, numbers.take(sizes.iter().product()))
}

/// An `m` by `k` and a `k` by `n` matrix, either or both stored transposed.
fn product(dtype: DType, (m, k, n): (usize, usize, usize), (turn_a, turn_b): (bool, bool)) -> Case {
    Case {
        a: array(dtype, &if turn_a { [k, m] } else { [m, k] }, 1),
        b: array(dtype, &if turn_b { [n, k] } else { [k, n] }, 2),
        contract_a: vec![usize::from(!turn_a)],
        contract_b: vec![usize::from(turn_b)],
        batch: 0,
    }
}

proptest! {
    #[test]
    fn sums_over_any_axes(
        dtype in prop::sample::select(COMPUTED.as_slice()),
        batch in prop::collection::vec(0usize..4, 0..2),
        kept in (prop::collection::vec(0usize..5, 0..3), prop::collection::vec(0usize..5, 0..3)),
        summed in prop::collection::vec(0usize..5, 0..3),
        order in any::<(u64, u64)>(),
    ) {
        // Each operand's axes after the batch in any order: every choice of free axes and of contracted pairs.
        let build = |kept: &[usize], order: u64, seed: u64| {
            let mut axes: Vec<(usize, Option<usize>)> = kept.iter().map(|&size| (size, None)).collect();
            axes.extend(summed.iter().enumerate().map(|(pair, &size)| (size, Some(pair))));
            let mut keyed: Vec<_> = axes.into_iter().zip(noise(order)).collect();
            keyed.sort_by_key(|entry| entry.1);
            let axes: Vec<_> = keyed.into_iter().map(|entry| entry.0).collect();
            let sizes: Vec<usize> = batch.iter().copied().chain(axes.iter().map(|axis| axis.0)).collect();
            let axis_of = |pair| batch.len() + axes.iter().position(|axis| axis.1 == Some(pair)).unwrap();
            (array(dtype, &sizes, seed), (0..summed.len()).map(axis_of).collect::<Vec<_>>())
        };
        let (a, contract_a) = build(&kept.0, order.0, 1);
        let (b, contract_b) = build(&kept.1, order.1, 2);
        Case { a, b, contract_a, contract_b, batch: batch.len() }.check();
    }
}

#[test]
fn matrices_and_vectors_of_every_size_and_order() {
    for dtype in [DType::F32, DType::U8, DType::S64, DType::C64, DType::F64] {
        for sizes in [(1, 1000, 1), (300, 70, 1), (1, 70, 300), (1, 2100, 5), (5, 2100, 1), (33, 65, 40)] {
            for transposed in [(false, false), (false, true), (true, false), (true, true)] {
                product(dtype, sizes, transposed).check();
            }
        }
    }
    // Several blocks of rows or columns, and several pieces of a long sum.
    for (sizes, transposed) in [
        ((700, 20, 10), (false, true)),
        ((10, 20, 700), (true, false)),
        ((1, 140_000, 1), (false, false)),
        ((1, 140_000, 3), (false, false)),
        ((2, 140_000, 1), (true, false)),
    ] {
        product(DType::F32, sizes, transposed).check();
    }
}

/// A product of matrices of fractions, whose sums are rounded.
fn rounded(sizes: (usize, usize, usize), transposed: (bool, bool)) -> Case {
    let mut case = product(DType::F32, sizes, transposed);
    let random = |bits: u64| Number::Float((bits >> 11) as f64 / (1u64 << 53) as f64 - 0.3);
    for x in [&mut case.a, &mut case.b] {
        let sizes = x.ty.shape.sizes().to_vec();
        *x = Array::new(DType::F32, &sizes, noise(9).map(random).take(x.ty.size()));
    }
    case
}

#[test]
fn results_do_not_depend_on_the_threads() {
    for sizes in [(300, 200, 100), (100, 200, 900), (1, 200_000, 1), (1, 3000, 400), (400, 3000, 1)] {
        for transposed in [(false, false), (true, true)] {
            let case = rounded(sizes, transposed);
            assert_eq!(
                case.run(Par::Serial).bytes(),
                case.run(Par::Pool).bytes(),
                "{sizes:?} {transposed:?}"
            );
        }
    }
}

#[test]
fn sums_of_rows_do_not_depend_on_the_width_of_vectors() {
    for k in [33, 64, 1100] {
        let case = rounded((39, k, 1), (false, false));
        let mut all = Vec::new();
        at_every_level(|| all.push(case.run(Par::Serial)));
        // The portable kernels round products before they sum them.
        for pair in all[1..].windows(2) {
            assert_eq!(pair[0].bytes(), pair[1].bytes(), "{k}");
        }
    }
}

/// The layout of plain matrices is the one that any operand gets.
#[test]
fn plain_matrices_lie_in_place() {
    let sides = [[1, 1], [1, 5], [5, 1], [3, 5]];
    for (sizes, position) in sides.into_iter().flat_map(|sizes| [(sizes, 0), (sizes, 1)]) {
        let contract = axes(&[position + 1]);
        let sizes = [4, sizes[0], sizes[1]];
        let axes = DotAxes { sizes: &sizes, contract: &contract, batch: 1 };
        let (free, along, layout) = axes.matrices().unwrap();
        assert_eq!([free, along], [sizes[2 - position], sizes[1 + position]]);
        let general = axes.side(&[0], false);
        assert_eq!((layout.batch, layout.free, layout.along), (general.batch, general.free, general.along));
        assert!(layout.pack.is_none() && general.pack.is_none());
    }
}
