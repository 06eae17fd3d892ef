//! Factorizations by kernels and by their definitions in primitive ops, checked by the properties of the factors.

use std::any::Any;
use std::sync::Arc;

use crate::common::place;
use defn_core::backend::{Backend, Buffer, Buffers, Checks, HostMemory, NoHooks, Operand};
use defn_core::evaluator::run_op;
use defn_core::infer::infer;
use defn_core::op::{Block, Op, QrMode, Tolerance, Transform};
use defn_core::{DType, ErrorKind, Number, Result, Scalar, Shape, TensorType};
use defn_cpu::cpu_backend;
use num_complex::Complex;
use smallvec::SmallVec;

type C = Complex<f64>;

/// The CPU without native blocks: it runs their definitions.
#[derive(Debug)]
struct Plain;

impl Backend for Plain {
    fn name(&self) -> &str {
        "cpu"
    }

    fn from_host(&self, ty: &TensorType, bytes: HostMemory) -> Result<Arc<dyn Buffer>> {
        cpu_backend().from_host(ty, bytes)
    }

    fn run(&self, op: &Op, operands: SmallVec<[Operand; 3]>, outputs: &[TensorType]) -> Result<Buffers> {
        cpu_backend().run(op, operands, outputs)
    }

    fn has_native(&self, _: &Block) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn backends() -> [(&'static str, Arc<dyn Backend>); 2] {
    [("native", cpu_backend()), ("default", Arc::new(Plain))]
}

/// A matrix of f64 or complex f64 numbers.
#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    columns: usize,
    elements: Vec<C>,
}

impl Matrix {
    fn from_fn(rows: usize, columns: usize, element: impl Fn(usize, usize) -> C) -> Matrix {
        let elements = (0..rows * columns).map(|at| element(at / columns, at % columns)).collect();
        Matrix { rows, columns, elements }
    }

    fn eye(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| C::from(f64::from(i == j)))
    }

    fn at(&self, i: usize, j: usize) -> C {
        self.elements[i * self.columns + j]
    }

    fn times(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.columns, other.rows);
        Matrix::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }

    fn adjoint(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }

    fn plus(&self, other: &Matrix) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) + other.at(i, j))
    }

    fn columns_scaled(&self, by: &[C]) -> Matrix {
        Matrix::from_fn(self.rows, self.columns, |i, j| self.at(i, j) * by[j])
    }

    fn first_columns(&self, count: usize) -> Matrix {
        Matrix::from_fn(self.rows, count, |i, j| self.at(i, j))
    }

    fn first_rows(&self, count: usize) -> Matrix {
        Matrix::from_fn(count, self.columns, |i, j| self.at(i, j))
    }

    fn size(&self) -> f64 {
        self.elements.iter().map(|x| x.norm()).fold(0.0, f64::max)
    }

    fn distance(&self, other: &Matrix) -> f64 {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns));
        self.elements
            .iter()
            .zip(&other.elements)
            .map(|(x, y)| (x - y).norm())
            .fold(0.0, |most, x| if x.is_nan() { f64::INFINITY } else { most.max(x) })
    }

    fn is_nan(&self) -> bool {
        self.elements.iter().all(|x| x.re.is_nan() || x.im.is_nan())
    }
}

/// Rounds to a dtype.
fn rounded(dtype: DType, x: &Matrix) -> Matrix {
    let (bytes, wide) = (bytes_of(dtype, &x.elements), x.clone());
    Matrix { elements: read_bytes(dtype, &bytes), ..wide }
}

fn bytes_of(dtype: DType, elements: &[C]) -> Vec<u8> {
    let number = |x: &C| {
        if dtype.is_complex() { Number::complex(x.re, x.im) } else { Number::Float(x.re) }
    };
    elements.iter().flat_map(|x| Scalar::new(dtype, number(x)).unwrap().to_bytes()).collect()
}

fn read_bytes(dtype: DType, bytes: &[u8]) -> Vec<C> {
    let element = |bytes: &[u8]| match Scalar::from_bytes(dtype, bytes).value() {
        Number::Bool(value) => C::from(f64::from(u8::from(value))),
        Number::Int(value) => C::from(value as f64),
        Number::Huge(value) | Number::Float(value) => C::from(value),
        Number::Complex(value) => value,
    };
    bytes.chunks_exact(dtype.storage_bytes()).map(element).collect()
}

/// Matrices as one operand of rank 3.
fn operand(dtype: DType, batch: &[Matrix]) -> Operand {
    let sizes = [batch.len(), batch[0].rows, batch[0].columns];
    let elements: Vec<C> = batch.iter().flat_map(|x| x.elements.clone()).collect();
    place(TensorType::new(dtype, Shape::new(&sizes)).unwrap(), bytes_of(dtype, &elements))
}

/// The results of an op, one list of matrices each; vectors count as rows.
fn results(backend: &Arc<dyn Backend>, op: &Op, operands: &[Operand]) -> Result<Vec<Vec<Matrix>>> {
    let types: Vec<&TensorType> = operands.iter().map(|operand| &operand.ty).collect();
    let outputs = infer(op, &types)?;
    let operands = operands.iter().cloned().collect();
    let buffers = run_op(backend, op, operands, &outputs, &NoHooks, Checks::default())?;
    let read = |(ty, buffer): (&TensorType, Arc<dyn Buffer>)| {
        let mut bytes = vec![0; ty.byte_size()];
        buffer.read(&mut bytes).unwrap();
        let elements = read_bytes(ty.dtype, &bytes);
        let (rows, columns) = match ty.shape.sizes() {
            [_, rows, columns] => (*rows, *columns),
            [_, columns] => (1, *columns),
            [_] => (1, 1),
            other => panic!("a result of sizes {other:?}"),
        };
        let count = ty.shape.sizes()[0];
        (0..count)
            .map(|at| Matrix {
                rows,
                columns,
                elements: elements[at * rows * columns..(at + 1) * rows * columns].to_vec(),
            })
            .collect()
    };
    Ok(outputs.iter().zip(buffers).map(read).collect())
}

/// Pseudo-random numbers, the same in every run.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        // Knuth's MMIX generator; its high bits are the most random.
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn matrix(&mut self, dtype: DType, rows: usize, columns: usize) -> Matrix {
        let elements = (0..rows * columns)
            .map(|_| C::new(self.next(), if dtype.is_complex() { self.next() } else { 0.0 }))
            .collect();
        rounded(dtype, &Matrix { rows, columns, elements })
    }
}

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

fn epsilon(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// Matrices of given sizes: random and ill-conditioned ones.
fn matrices(dtype: DType, rows: usize, columns: usize) -> Vec<Matrix> {
    let mut draws = Draws(7 + rows as u64 * 31 + columns as u64);
    let random = draws.matrix(dtype, rows, columns);
    let hilbert = Matrix::from_fn(rows, columns, |i, j| C::from(1.0 / (i + j + 1) as f64));
    let ones = Matrix::from_fn(rows, columns, |_, _| C::from(1.0));
    let zeros = Matrix::from_fn(rows, columns, |_, _| C::from(0.0));
    let eye = Matrix::from_fn(rows, columns, |i, j| C::from(f64::from(i == j)));
    let scaled = |by: f64| Matrix::from_fn(rows, columns, |i, j| random.at(i, j) * by);
    let steep = Matrix::from_fn(rows, columns, |i, j| random.at(i, j) * 10f64.powi(-4 * j as i32));
    let all = [random.clone(), hilbert, ones, zeros, eye, scaled(1e30), scaled(1e-30), steep];
    all.iter().map(|x| rounded(dtype, x)).collect()
}

#[track_caller]
fn assert_close(what: &str, got: &Matrix, want: &Matrix, tolerance: f64) {
    let distance = got.distance(want);
    assert!(distance <= tolerance, "{what}: {distance:e} above {tolerance:e}\n{got:?}\n{want:?}");
}

#[track_caller]
fn assert_orthonormal(what: &str, columns: &Matrix, tolerance: f64) {
    let gram = columns.adjoint().times(columns);
    assert_close(&format!("{what} is orthonormal"), &gram, &Matrix::eye(columns.columns), tolerance);
}

const SIDES: [(usize, usize); 9] = [(1, 1), (2, 2), (3, 3), (4, 4), (7, 7), (5, 3), (3, 5), (1, 4), (6, 1)];

#[test]
fn qr_gives_an_orthogonal_and_a_triangular_factor() {
    for dtype in DTYPES {
        for (m, n) in SIDES {
            let batch = matrices(dtype, m, n);
            for mode in [QrMode::Reduced, QrMode::Complete] {
                let op = Op::Block(Block::Qr { mode, eps: Tolerance(1e-10) });
                for (name, backend) in backends() {
                    let found = results(&backend, &op, &[operand(dtype, &batch)]).unwrap();
                    for ((a, q), r) in batch.iter().zip(&found[0]).zip(&found[1]) {
                        let what = format!("{name} qr {mode:?} of {dtype} {m}x{n}");
                        let tolerance = 20.0 * (m + n) as f64 * epsilon(dtype);
                        assert_orthonormal(&what, q, tolerance);
                        assert_close(&what, &q.times(r), a, tolerance * a.size());
                        for i in 0..r.rows {
                            for j in 0..i.min(r.columns) {
                                assert_eq!(r.at(i, j), C::from(0.0), "{what}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn lu_gives_a_permutation_and_triangles() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 5, 8] {
            let batch = matrices(dtype, n, n);
            for (name, backend) in backends() {
                let found = results(&backend, &Op::Block(Block::Lu), &[operand(dtype, &batch)]).unwrap();
                for (at, a) in batch.iter().enumerate() {
                    let (p, l, u) = (&found[0][at], &found[1][at], &found[2][at]);
                    let what = format!("{name} lu of {dtype} {n}x{n}, matrix {at}");
                    let tolerance = 20.0 * n as f64 * epsilon(dtype) * a.size();
                    assert_close(&what, &p.times(l).times(u), a, tolerance);
                    assert_eq!(p.times(&p.adjoint()).distance(&Matrix::eye(n)), 0.0, "{what}");
                    for i in 0..n {
                        assert_eq!(l.at(i, i), C::from(1.0), "{what}");
                        for j in 0..n {
                            let none = if j > i {
                                l.at(i, j)
                            } else if j < i {
                                u.at(i, j)
                            } else {
                                continue;
                            };
                            assert_eq!(none, C::from(0.0), "{what}");
                            assert!(l.at(i, j).norm() <= 1.0 + 1e-5, "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn cholesky_gives_a_lower_factor_or_nan() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 6] {
            let mut batch: Vec<Matrix> = Vec::new();
            for by in [1.0, 1e15, 1e-15] {
                let x = Draws(3 + n as u64).matrix(dtype, n, n);
                let definite = x.times(&x.adjoint()).plus(&Matrix::eye(n));
                batch.push(rounded(dtype, &Matrix::from_fn(n, n, |i, j| definite.at(i, j) * by)));
            }
            let mut indefinite = batch[0].clone();
            indefinite.elements[n * n - 1] = C::from(-1.0);
            let mut broken = batch[0].clone();
            broken.elements[n * (n - 1)] = C::from(f64::NAN);
            let good = batch.len();
            batch.extend([indefinite, broken]);
            for (name, backend) in backends() {
                let op = Op::Block(Block::Cholesky);
                let found = results(&backend, &op, &[operand(dtype, &batch)]).unwrap();
                for (at, (a, l)) in batch.iter().zip(&found[0]).enumerate() {
                    let what = format!("{name} cholesky of {dtype} {n}x{n}, matrix {at}");
                    if at >= good {
                        assert!(l.is_nan(), "{what}: {l:?}");
                        continue;
                    }
                    let tolerance = 20.0 * n as f64 * epsilon(dtype) * a.size();
                    assert_close(&what, &l.times(&l.adjoint()), a, tolerance);
                    for i in 0..n {
                        assert!(l.at(i, i).re > 0.0 && l.at(i, i).im == 0.0, "{what}");
                        assert!((i + 1..n).all(|j| l.at(i, j) == C::from(0.0)), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn cholesky_of_singular_semidefinite_matrices_is_finite() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 6] {
            let column = Draws(5).matrix(dtype, n, 1);
            let zeros = Matrix::from_fn(n, n, |_, _| C::from(0.0));
            let batch = [zeros, rounded(dtype, &column.times(&column.adjoint()))];
            for (name, backend) in backends() {
                let op = Op::Block(Block::Cholesky);
                let found = results(&backend, &op, &[operand(dtype, &batch)]).unwrap();
                for (at, (a, l)) in batch.iter().zip(&found[0]).enumerate() {
                    let what = format!("{name} cholesky of {dtype} {n}x{n}, matrix {at}");
                    // The rounding error of a pivot enters by its root.
                    let tolerance = 20.0 * n as f64 * epsilon(dtype).sqrt() * a.size();
                    assert_close(&what, &l.times(&l.adjoint()), a, tolerance);
                }
            }
        }
    }
}

#[test]
fn eigh_gives_ascending_values_and_vectors() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 4, 5, 8] {
            let batch: Vec<Matrix> = matrices(dtype, n, n)
                .iter()
                .map(|x| {
                    let sum = x.plus(&x.adjoint());
                    rounded(dtype, &Matrix::from_fn(n, n, |i, j| sum.at(i, j) * 0.5))
                })
                .collect();
            let mut known: Vec<Vec<f64>> = vec![Vec::new(); batch.len()];
            for (name, backend) in backends() {
                let op = Op::Block(Block::Eigh { max_iter: 1000, eps: Tolerance(0.0) });
                let found = results(&backend, &op, &[operand(dtype, &batch)]).unwrap();
                for (at, a) in batch.iter().enumerate() {
                    let (w, v) = (&found[0][at].elements, &found[1][at]);
                    let what = format!("{name} eigh of {dtype} {n}x{n}, matrix {at}");
                    let tolerance = 40.0 * n as f64 * epsilon(dtype);
                    assert_orthonormal(&what, v, tolerance);
                    let back = v.columns_scaled(w).times(&v.adjoint());
                    assert_close(&what, &back, a, tolerance * a.size());
                    let values: Vec<f64> = w.iter().map(|w| w.re).collect();
                    assert!(w.iter().all(|w| w.im == 0.0), "{what}: {w:?}");
                    assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{what}: {w:?}");
                    let before = std::mem::replace(&mut known[at], values.clone());
                    for (before, now) in before.iter().zip(&values) {
                        assert!((before - now).abs() <= tolerance * a.size(), "{what}: {before} {now}");
                    }
                }
            }
        }
    }
}

#[test]
fn eigh_cuts_what_is_small() {
    let a = Matrix::from_fn(2, 2, |i, j| C::from([[2.0, 0.0], [0.0, 1e-5]][i][j]));
    for (name, backend) in backends() {
        for (eps, want) in [(0.0, 1e-5), (1e-4, 0.0)] {
            let op = Op::Block(Block::Eigh { max_iter: 1000, eps: Tolerance(eps) });
            let found = results(&backend, &op, &[operand(DType::F64, std::slice::from_ref(&a))]).unwrap();
            assert_eq!(found[0][0].elements, [C::from(want), C::from(2.0)], "{name}");
        }
    }
}

#[test]
fn svd_gives_descending_values_and_vectors() {
    for dtype in [DType::F32, DType::F64] {
        for (m, n) in SIDES {
            let k = m.min(n);
            let batch = matrices(dtype, m, n);
            for full_matrices in [true, false] {
                let op = Op::Block(Block::Svd { max_iter: 100, full_matrices });
                let mut values: Vec<Vec<f64>> = vec![Vec::new(); batch.len()];
                for (name, backend) in backends() {
                    let found = results(&backend, &op, &[operand(dtype, &batch)]).unwrap();
                    for (at, a) in batch.iter().enumerate() {
                        let (u, s, vh) = (&found[0][at], &found[1][at].elements, &found[2][at]);
                        let what =
                            format!("{name} svd of {dtype} {m}x{n}, full {full_matrices}, matrix {at}");
                        let tolerance = 40.0 * (m + n) as f64 * epsilon(dtype);
                        assert_orthonormal(&what, u, tolerance);
                        assert_orthonormal(&what, &vh.adjoint(), tolerance);
                        let back = u.first_columns(k).columns_scaled(s).times(&vh.first_rows(k));
                        assert_close(&what, &back, a, tolerance * a.size());
                        let s: Vec<f64> = s.iter().map(|s| s.re).collect();
                        assert!(
                            s.windows(2).all(|pair| pair[0] >= pair[1]) && s[k - 1] >= 0.0,
                            "{what}: {s:?}"
                        );
                        let before = std::mem::replace(&mut values[at], s.clone());
                        for (before, now) in before.iter().zip(&s) {
                            assert!((before - now).abs() <= tolerance * a.size(), "{what}: {before} {now}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn elements_that_are_not_finite_give_nan_and_end() {
    for dtype in DTYPES {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut x = Draws(5).matrix(dtype, 4, 4);
            let good = x.clone();
            x.elements[6] = C::from(bad);
            let batch = operand(dtype, &[x, good]);
            for (name, backend) in backends() {
                let mut ops = vec![Op::Block(Block::Eigh { max_iter: 1000, eps: Tolerance(0.0) })];
                if !dtype.is_complex() {
                    ops.push(Op::Block(Block::Svd { max_iter: 100, full_matrices: true }));
                }
                for op in ops {
                    let found = results(&backend, &op, std::slice::from_ref(&batch)).unwrap();
                    for factor in found {
                        assert!(factor[0].is_nan(), "{name} {op:?} of {bad}: {factor:?}");
                        assert!(!factor[1].elements.iter().any(|x| x.re.is_nan()), "{name} {op:?} of {bad}");
                    }
                }
                // These have no iteration that could fail to end; their results are not NaN everywhere.
                for block in [Block::Lu, Block::Qr { mode: QrMode::Complete, eps: Tolerance(0.0) }] {
                    results(&backend, &Op::Block(block), std::slice::from_ref(&batch)).unwrap();
                }
            }
        }
    }
}

#[test]
fn solutions_solve() {
    for dtype in DTYPES {
        for n in [1, 2, 4, 7] {
            let mut draws = Draws(11 + n as u64);
            let a = [draws.matrix(dtype, n, n), draws.matrix(dtype, n, n)];
            let b = [draws.matrix(dtype, n, 3), draws.matrix(dtype, n, 3)];
            let operands = [operand(dtype, &a), operand(dtype, &b)];
            for (name, backend) in backends() {
                let x = results(&backend, &Op::Block(Block::Solve), &operands).unwrap().remove(0);
                for ((a, x), b) in a.iter().zip(&x).zip(&b) {
                    let tolerance = 50.0 * n as f64 * epsilon(dtype) * x.size().max(1.0);
                    assert_close(&format!("{name} solve in {dtype}"), &a.times(x), b, tolerance);
                }
            }
        }
    }
}

#[test]
fn triangular_systems_read_one_triangle() {
    for dtype in DTYPES {
        for lower in [true, false] {
            for left_side in [true, false] {
                for &transform in Transform::ALL {
                    let n = 4;
                    let mut draws = Draws(13);
                    let full = draws
                        .matrix(dtype, n, n)
                        .plus(&Matrix::from_fn(n, n, |i, j| C::from(3.0 * f64::from(i == j))));
                    let full = rounded(dtype, &full);
                    let b = if left_side { draws.matrix(dtype, n, 3) } else { draws.matrix(dtype, 3, n) };
                    let op = Op::TriangularSolve { lower, left_side, transform_a: transform };
                    let mut junk = full.clone();
                    for i in 0..n {
                        for j in 0..n {
                            if if lower { j > i } else { j < i } {
                                junk.elements[i * n + j] = C::from(f64::NAN);
                            }
                        }
                    }
                    let operands = [operand(dtype, &[junk]), operand(dtype, std::slice::from_ref(&b))];
                    let x = results(&cpu_backend(), &op, &operands).unwrap().remove(0).remove(0);
                    let triangle = Matrix::from_fn(n, n, |i, j| {
                        let kept = if lower { j <= i } else { j >= i };
                        if kept { full.at(i, j) } else { C::from(0.0) }
                    });
                    let t = match transform {
                        Transform::None => triangle,
                        Transform::Transpose => Matrix::from_fn(n, n, |i, j| triangle.at(j, i)),
                        Transform::Conjugate => Matrix::from_fn(n, n, |i, j| triangle.at(i, j).conj()),
                        Transform::Adjoint => triangle.adjoint(),
                    };
                    let back = if left_side { t.times(&x) } else { x.times(&t) };
                    assert_close(&format!("{op:?} in {dtype}"), &back, &b, 100.0 * epsilon(dtype));
                }
            }
        }
    }
}

#[test]
fn a_zero_on_the_diagonal_is_an_error_where_elements_are_checked() {
    let a = Matrix::from_fn(2, 2, |i, j| C::from([[1.0, 0.0], [1.0, 0.0]][i][j]));
    let b = Matrix::from_fn(2, 1, |_, _| C::from(1.0));
    let operands: SmallVec<[Operand; 3]> =
        [operand(DType::F32, &[a]), operand(DType::F32, &[b])].into_iter().collect();
    let op = Op::TriangularSolve { lower: true, left_side: true, transform_a: Transform::None };
    let outputs = [operands[1].ty.clone()];
    let refused = cpu_backend().run(&op, operands.clone(), &outputs).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::ZeroDiagonal { .. }), "{refused}");
    let buffers = cpu_backend().run_unchecked(&op, operands, &outputs).unwrap();
    let mut bytes = [0; 8];
    buffers[0].read(&mut bytes).unwrap();
    let x = read_bytes(DType::F32, &bytes);
    assert_eq!(x[0], C::from(1.0));
    assert!(!x[1].re.is_finite());
}

#[test]
fn determinants_agree_with_the_expansion_by_rows() {
    fn expansion(x: &Matrix) -> C {
        let n = x.rows;
        if n == 0 {
            return C::from(1.0);
        }
        (0..n)
            .map(|column| {
                let minor = Matrix::from_fn(n - 1, n - 1, |i, j| x.at(i + 1, j + usize::from(j >= column)));
                let sign = if column % 2 == 0 { 1.0 } else { -1.0 };
                x.at(0, column) * sign * expansion(&minor)
            })
            .sum()
    }
    for dtype in DTYPES {
        for n in [1, 2, 3, 4, 5, 6] {
            let x = Draws(17 + n as u64).matrix(dtype, n, n);
            for (name, backend) in backends() {
                let op = Op::Block(Block::Determinant);
                let got = results(&backend, &op, &[operand(dtype, std::slice::from_ref(&x))]).unwrap();
                let distance = (got[0][0].elements[0] - expansion(&x)).norm();
                assert!(distance <= 50.0 * epsilon(dtype), "{name} {dtype} {n}: {distance:e}");
            }
        }
    }
}

#[test]
fn matrices_without_elements_have_factors() {
    for (count, m, n) in [(2, 0, 0), (0, 3, 3), (2, 0, 3), (2, 3, 0)] {
        let ty = TensorType::new(DType::F32, Shape::new(&[count, m, n])).unwrap();
        let x = place(ty, Vec::new());
        let mut blocks = vec![
            Block::Qr { mode: QrMode::Reduced, eps: Tolerance(0.0) },
            Block::Qr { mode: QrMode::Complete, eps: Tolerance(0.0) },
            Block::Svd { max_iter: 1, full_matrices: true },
            Block::Svd { max_iter: 1, full_matrices: false },
        ];
        if m == n {
            let eigh = Block::Eigh { max_iter: 1, eps: Tolerance(0.0) };
            blocks.extend([Block::Cholesky, Block::Lu, Block::Determinant, eigh]);
        }
        for block in blocks {
            let mut seen: Vec<Vec<Vec<C>>> = Vec::new();
            for (name, backend) in backends() {
                let found = results(&backend, &Op::Block(block.clone()), std::slice::from_ref(&x))
                    .unwrap_or_else(|error| panic!("{name} {block:?} of [{count}][{m}][{n}]: {error}"));
                seen.push(
                    found.iter().map(|x| x.iter().flat_map(|x| x.elements.clone()).collect()).collect(),
                );
            }
            assert_eq!(seen[0], seen[1], "{block:?} of [{count}][{m}][{n}]");
        }
    }
}
