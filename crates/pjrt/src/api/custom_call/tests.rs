//! Factorizations by calls of the solver's functions, on XLA's plugin for the CPU, with functions of our own under
//! their names: results that are unique are compared with the CPU's, others by what they must satisfy.

mod lapack;
mod library;
mod program;

use defn_core::DType;
use defn_core::builder::*;
use defn_core::op::QrMode;

use self::lapack::{Complex, Matrix};
use self::library::FAILING;
use self::program::{
    Array, Results, assert_close, assert_matrix, assert_orthonormal, is_finite, is_nan, run, tolerance,
};

const CHOLESKY: &[&str] = &["cusolver_potrf_ffi"];
const LU: &[&str] = &["cu_lu_pivots_to_permutation", "cusolver_getrf_ffi"];
const QR: &[&str] = &["cusolver_geqrf_ffi", "cusolver_orgqr_ffi"];
const EIGH: &[&str] = &["cusolver_syevd_ffi"];
const JACOBI: &[&str] = &["cusolver_gesvdj_ffi"];
const SVD: &[&str] = &["cusolver_gesvd_ffi"];

/// The sizes to test a type with: all for one type, and the last for the others, which have leading axes.
fn sizes<'a>(dtype: DType, all: &'a [&'a [usize]]) -> &'a [&'a [usize]] {
    if dtype == DType::F32 { all } else { &all[all.len() - 1..] }
}

/// The types that the library takes, and others, which are converted.
const REAL: [DType; 5] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::S32];
const COMPLEX: [DType; 2] = [DType::C64, DType::C128];

fn all_types() -> impl Iterator<Item = DType> {
    REAL.into_iter().chain(COMPLEX)
}

fn cholesky(x: &Array) -> Results {
    run(&[x], CHOLESKY, |ops, x| Ok(vec![ops.cholesky(&x[0])?]))
}

#[test]
fn cholesky_reads_and_writes_the_lower_triangle() {
    for dtype in all_types() {
        for dims in sizes(dtype, &[&[1, 1], &[4, 4], &[2, 3, 5, 5]]) {
            let results = cholesky(&Array::definite(dtype, dims, 1));
            results.assert_close();
            assert!(is_finite(&results.got[0].numbers));
            for factor in results.got[0].matrices() {
                let above = (0..factor.columns).flat_map(|j| (0..j).map(move |i| (i, j)));
                assert!(above.into_iter().all(|at| factor[at] == Complex::default()), "{}", results.text);
            }
        }
    }
}

#[test]
fn cholesky_of_singular_matrices_and_of_others_without_a_factor() {
    // Singular, not positive definite, definite, all zero, with a pivot of zero, and with NaN.
    let matrices = [
        [4.0, 0.0, 2.0, 1.0],
        [1.0, 0.0, 3.0, 1.0],
        [4.0, 9.0, 2.0, 5.0],
        [0.0; 4],
        [0.0, 0.0, 0.0, 9.0],
        [f64::NAN, 0.0, 1.0, 2.0],
    ];
    let bad = [false, true, false, false, false, true];
    for (numbers, is_bad) in matrices.iter().zip(bad) {
        let results = cholesky(&Array::real(DType::F32, &[2, 2], numbers));
        results.assert_close();
        let numbers = &results.got[0].numbers;
        assert!(if is_bad { is_nan(numbers) } else { is_finite(numbers) }, "{}", results.text);
    }
    for dtype in all_types().filter(|&dtype| dtype != DType::S32) {
        let results = cholesky(&Array::real(dtype, &[2, 3, 2, 2], matrices.as_flattened()));
        results.assert_close();
        let mut each = results.got[0].numbers.chunks_exact(4).zip(bad);
        assert!(each.all(|(x, is_bad)| if is_bad { is_nan(x) } else { is_finite(x) }), "{}", results.text);
    }
    let results = cholesky(&Array::real(DType::S32, &[3, 2, 2], matrices[..3].as_flattened()));
    results.assert_close().assert_nan_at(1, &[2]);
}

fn lu(x: &Array) -> Results {
    run(&[x], LU, |ops, x| {
        let (permutation, lower, upper) = ops.lu(&x[0])?;
        Ok(vec![permutation, lower, upper])
    })
}

/// `P L U` is the matrix, and the factors have their form.
fn assert_lu(x: &Array) -> Results {
    let results = lu(x);
    let [permutation, lower, upper] = &results.got[..] else { panic!("three factors") };
    assert_eq!(permutation.dtype, x.dtype);
    let close = tolerance(lower.dtype);
    let factors = permutation.matrices().into_iter().zip(lower.matrices()).zip(upper.matrices());
    for (((permutation, lower), upper), x) in factors.zip(x.matrices()) {
        let n = x.rows;
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let below = if i < j { Complex::default() } else { Complex::ONE };
            assert!(i > j || lower[(i, j)] == below, "{lower:?}");
            assert!(i <= j || upper[(i, j)] == Complex::default(), "{upper:?}");
            assert!(lower[(i, j)].abs() <= 1.5, "{lower:?}");
        }
        assert_orthonormal(&permutation, 0.0, &results.text);
        let product = permutation.product(&lower).product(&upper);
        assert_matrix(&product, &x, close, &results.text);
    }
    results
}

#[test]
fn lu_has_the_same_factors_in_order() {
    for dtype in all_types() {
        for dims in sizes(dtype, &[&[1, 1], &[5, 5], &[7, 7], &[2, 3, 5, 5]]) {
            let results = assert_lu(&Array::random(dtype, dims, 2));
            // LAPACK's pivots of complex matrices have the greatest sum of parts.
            if !dtype.is_complex() {
                results.assert_close();
            }
        }
    }
}

/// Row i of the product of the factors is row 1, 2, 3, 0 of the matrix: no permutation that is its own inverse.
#[test]
fn lu_permutes_rows_and_not_back() {
    let x = [[0.0, 0.0, 0.0, 7.0], [5.0, 1.0, 2.0, 3.0], [0.0, 5.0, 1.0, 2.0], [0.0, 0.0, 5.0, 1.0]];
    let results = assert_lu(&Array::real(DType::F32, &[4, 4], x.as_flattened()));
    results.assert_close();
    let ones: Vec<usize> =
        (0..16).filter(|&at| results.got[0].numbers[at] == Complex::ONE).map(|at| at % 4).collect();
    assert_eq!(ones, [3, 0, 1, 2]);
}

#[test]
fn lu_of_singular_matrices() {
    let matrices = [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 8.0, 5.0],
        [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 4.0, 8.0, 1.0],
    ];
    for dtype in all_types() {
        for matrix in &matrices {
            assert_lu(&Array::real(dtype, &[3, 3], matrix)).assert_close();
        }
        assert_lu(&Array::real(dtype, &[3, 3, 3], matrices.as_flattened())).assert_close();
    }
}

#[test]
fn lu_of_a_matrix_with_infinity_leaves_the_others_alone() {
    let mut x = Array::random(DType::F32, &[3, 4, 4], 3);
    let without = lu(&x);
    x.numbers[16 + 5] = f64::INFINITY.into();
    let with = lu(&x);
    for (with, without) in with.got.iter().zip(&without.got) {
        for other in [0, 2] {
            let part = other * 16..(other + 1) * 16;
            assert_eq!(with.numbers[part.clone()], without.numbers[part]);
        }
    }
}

#[test]
fn systems_and_determinants_by_lu() {
    let solve = |a: &Array, b: &Array| run(&[a, b], LU, |ops, x| Ok(vec![ops.solve(&x[0], &x[1])?]));
    let determinant = |x: &Array| run(&[x], LU, |ops, x| Ok(vec![ops.determinant(&x[0])?]));
    for dtype in all_types() {
        for (left, right) in [(&[4, 4][..], &[4][..]), (&[2, 3, 4, 4], &[2, 3, 4]), (&[3, 4, 4], &[3, 4, 2])]
        {
            let (a, b) = (Array::definite(dtype, left, 5), Array::random(dtype, right, 6));
            let results = solve(&a, &b);
            assert!(is_finite(&results.got[0].numbers));
            let (got, expected) = (&results.got[0].numbers, &results.expected[0].numbers);
            // The matrices are not as well conditioned as factors.
            assert_close(got, expected, 20.0 * tolerance(dtype), &results.text);
        }
        for dims in sizes(dtype, &[&[5, 5], &[6, 6], &[2, 3, 5, 5]]) {
            let results = determinant(&Array::random(dtype, dims, 7));
            assert!(results.got[0].numbers.iter().all(|x| x.abs() > 1e-3), "{:?}", results.got);
            results.assert_close();
        }
    }
    let mixed = solve(&Array::random(DType::S32, &[4, 4], 8), &Array::random(DType::F64, &[4], 9));
    mixed.assert_close();
    let singular = Array::real(DType::F32, &[2, 2], &[1.0, 2.0, 2.0, 4.0]);
    // The default graph of a singular system has NaN, and the CPU may have infinities.
    let results = solve(&singular, &Array::real(DType::F32, &[2], &[1.0, 1.0]));
    assert!(results.got[0].numbers.iter().all(|x| !x.re.is_finite()), "{:?}", results.got);
    let singular = Array::real(DType::F32, &[5, 5], &(0..25).map(f64::from).collect::<Vec<_>>());
    let numbers = &determinant(&singular).got[0].numbers;
    assert!(numbers[0].abs() < 1e-2, "{numbers:?}");
}

fn assert_qr(x: &Array, mode: QrMode) {
    let results = run(&[x], QR, |ops, x| {
        let (orthogonal, upper) = ops.qr(&x[0], mode, 1e-10)?;
        Ok(vec![orthogonal, upper])
    });
    let text = format!("{mode:?} {}", results.text);
    for (got, expected) in results.got.iter().zip(&results.expected) {
        assert_eq!((&got.dims, got.dtype), (&expected.dims, expected.dtype), "{text}");
    }
    let tolerance = tolerance(results.got[0].dtype);
    let factors = results.got[0].matrices().into_iter().zip(results.got[1].matrices());
    for ((orthogonal, upper), x) in factors.zip(x.matrices()) {
        assert_orthonormal(&orthogonal, tolerance, &text);
        let below = (0..upper.columns).flat_map(|j| (j + 1..upper.rows).map(move |i| (i, j)));
        assert!(below.into_iter().all(|at| upper[at] == Complex::default()), "{text}: {upper:?}");
        assert_matrix(&orthogonal.product(&upper), &x, tolerance, &text);
    }
}

#[test]
fn qr_has_an_orthogonal_and_an_upper_factor() {
    for dtype in all_types() {
        for &mode in QrMode::ALL {
            for dims in sizes(
                dtype,
                &[&[1, 1], &[1, 3], &[3, 1], &[4, 4], &[5, 3], &[3, 5], &[2, 3, 2, 5], &[2, 3, 5, 2]],
            ) {
                assert_qr(&Array::random(dtype, dims, 10), mode);
            }
            assert_qr(&Array::real(dtype, &[3, 2], &[0.0; 6]), mode);
            assert_qr(&Array::real(dtype, &[3, 3], &[0.0, 1.0, 2.0, 0.0, 2.0, 4.0, 0.0, 3.0, 6.0]), mode);
        }
    }
}

fn eigh(x: &Array, eps: f64) -> Results {
    run(&[x], EIGH, |ops, x| {
        let (values, vectors) = ops.eigh(&x[0], 1000, eps)?;
        Ok(vec![values, vectors])
    })
}

/// Eigenvalues of the CPU, and vectors that belong to them.
fn assert_eigh(x: &Array) -> Results {
    let results = eigh(x, 0.0);
    let (values, vectors) = (&results.got[0], &results.got[1]);
    let tolerance = tolerance(values.dtype);
    assert_eq!(values.dtype, results.expected[0].dtype);
    assert_close(&values.numbers, &results.expected[0].numbers, tolerance, &results.text);
    for ((values, vectors), x) in values.vectors().zip(vectors.matrices()).zip(x.matrices()) {
        assert_orthonormal(&vectors, tolerance, &results.text);
        let turned = x.adjoint();
        let hermitian = Matrix::from_fn(x.rows, x.rows, |i, j| x[(i, j)] * 0.5 + turned[(i, j)] * 0.5);
        let scaled = Matrix::from_fn(x.rows, x.rows, |i, j| vectors[(i, j)] * values[j]);
        assert_matrix(&scaled.product(&vectors.adjoint()), &hermitian, tolerance, &results.text);
    }
    results
}

#[test]
fn eigh_of_the_hermitian_part() {
    for dtype in all_types() {
        for dims in sizes(dtype, &[&[1, 1], &[2, 2], &[5, 5], &[2, 3, 4, 4]]) {
            assert_eigh(&Array::random(dtype, dims, 11));
        }
        assert_eigh(&Array::real(dtype, &[3, 3], &[2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]));
    }
    // The sum of both triangles is more than the greatest number.
    let large = [3e38, 1e38, 1e38, -3e38];
    let results = assert_eigh(&Array::real(DType::F32, &[2, 2], &large));
    assert!(is_finite(&results.got[0].numbers));
}

#[test]
fn eigh_replaces_magnitudes_up_to_eps() {
    let numbers = [1.0, 1e-3, 0.0, 1e-3, 2.0, 0.0, 0.0, 0.0, 1e-4];
    for dtype in [DType::F32, DType::F64, DType::C64, DType::S32] {
        let numbers = numbers.map(|x| if dtype == DType::S32 { x * 1e5 } else { x });
        let eps = if dtype == DType::S32 { 10.0 } else { 2e-3 };
        let x = Array::real(dtype, &[3, 3], &numbers);
        let (exact, results) = (eigh(&x, 0.0), eigh(&x, eps));
        let mut replaced = 0;
        for (exact, got) in exact.got.iter().zip(&results.got) {
            for (exact, got) in exact.numbers.iter().zip(&got.numbers) {
                let is_small = exact.abs() <= eps;
                assert_eq!(*got, if is_small { Complex::default() } else { *exact }, "{}", results.text);
                replaced += usize::from(is_small && exact.abs() > 0.0);
            }
        }
        assert!(replaced > 0, "{}", results.text);
    }
}

/// A batch whose second matrix has an element that is not finite, and one whose second matrix makes the call fail.
fn bad_batches(dtype: DType, rows: usize, columns: usize) -> impl Iterator<Item = Array> {
    let numbers = [(1, f64::INFINITY), (0, f64::NAN), (2, f64::NEG_INFINITY), (0, FAILING)];
    numbers.into_iter().map(move |(at, number)| {
        let mut x = Array::random(dtype, &[3, rows, columns], 12);
        x.numbers[rows * columns + at] = number.into();
        x
    })
}

#[test]
fn eigh_of_a_bad_matrix_is_nan() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::C64] {
        for x in bad_batches(dtype, 4, 4) {
            eigh(&x, 1e-7).assert_nan_at(1, &[1, 2]);
        }
    }
    let mut imaginary = Array::random(DType::C64, &[3, 4, 4], 12);
    imaginary.numbers[17].im = f64::INFINITY;
    eigh(&imaginary, 1e-7).assert_nan_at(1, &[1, 2]);
}

fn svd(x: &Array, calls: &[&str], full_matrices: bool) -> Results {
    run(&[x], calls, |ops, x| {
        let (left, values, right) = ops.svd(&x[0], 100, full_matrices)?;
        Ok(vec![left, values, right])
    })
}

fn assert_svd(x: &Array, calls: &[&str], full_matrices: bool) -> Results {
    let results = svd(x, calls, full_matrices);
    let text = format!("{} with full matrices: {full_matrices}", results.text);
    for (got, expected) in results.got.iter().zip(&results.expected) {
        assert_eq!((&got.dims, got.dtype), (&expected.dims, expected.dtype), "{text}");
    }
    let tolerance = tolerance(results.got[0].dtype);
    let [left, values, right] = &results.got[..] else { panic!("three results") };
    assert_close(&values.numbers, &results.expected[1].numbers, tolerance, &text);
    let vectors = left.matrices().into_iter().zip(right.matrices());
    for (((left, right), values), x) in vectors.zip(values.vectors()).zip(x.matrices()) {
        assert_orthonormal(&left, tolerance, &text);
        assert_orthonormal(&right.adjoint(), tolerance, &text);
        let scaled = Matrix::from_fn(x.rows, values.len(), |i, j| left[(i, j)] * values[j]);
        let first = Matrix::from_fn(values.len(), x.columns, |i, j| right[(i, j)]);
        assert_matrix(&scaled.product(&first), &x, tolerance, &text);
    }
    results
}

#[test]
fn svd_of_small_matrices() {
    for dtype in REAL {
        for full in [true, false] {
            for dims in sizes(
                dtype,
                &[&[1, 1], &[1, 3], &[3, 1], &[4, 4], &[5, 3], &[3, 5], &[2, 3, 4, 2], &[2, 3, 2, 4]],
            ) {
                assert_svd(&Array::random(dtype, dims, 13), JACOBI, full);
            }
            assert_svd(&Array::real(dtype, &[3, 2], &[0.0; 6]), JACOBI, full);
            assert_svd(
                &Array::real(dtype, &[3, 3], &[1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 3.0, 3.0, 6.0]),
                JACOBI,
                full,
            );
        }
    }
}

#[test]
fn svd_of_greater_matrices() {
    // Vectors are complete if a side has at most 32 elements, and cut off where they are not asked for.
    for dims in
        [&[40, 34][..], &[34, 40], &[33, 33], &[2, 33, 35], &[40, 32], &[32, 40], &[1024, 3], &[3, 1024]]
    {
        let results = assert_svd(&Array::random(DType::F32, dims, 14), JACOBI, false);
        let is_complete = dims.iter().rev().take(2).any(|&size| size <= 32);
        assert!(results.program.contains(&format!("full_matrices = {is_complete}")), "{}", results.text);
    }
    for dims in [[40, 34], [34, 40]] {
        assert_svd(&Array::random(DType::F64, &dims, 14), JACOBI, true);
    }
}

#[test]
fn svd_of_long_matrices() {
    for dtype in REAL {
        for dims in sizes(dtype, &[&[1030, 3], &[3, 1030], &[2, 1025, 2], &[2, 2, 1025]]) {
            assert_svd(&Array::random(dtype, dims, 15), SVD, false);
        }
    }
    for dims in [[1025, 2], [2, 1025]] {
        assert_svd(&Array::random(DType::F64, &dims, 15), SVD, true);
    }
}

#[test]
fn svd_of_a_bad_matrix_is_nan() {
    for (rows, columns, calls) in [(4, 3, JACOBI), (3, 4, JACOBI), (1030, 2, SVD), (2, 1030, SVD)] {
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            for x in bad_batches(dtype, rows, columns) {
                svd(&x, calls, false).assert_nan_at(1, &[2, 1, 2]);
            }
        }
    }
}

#[test]
fn empty_matrices_have_the_default_results_without_calls() {
    for dims in [[0, 0].as_slice(), &[2, 0, 0], &[0, 3, 3]] {
        let x = &Array::real(DType::F32, dims, &[]);
        let results = run(&[x], &[], |ops, x| {
            let x = &x[0];
            let (permutation, lower, upper) = ops.lu(x)?;
            let (values, vectors) = ops.eigh(x, 100, 1e-7)?;
            let rest = [ops.cholesky(x)?, ops.determinant(x)?];
            Ok([permutation, lower, upper, values, vectors].into_iter().chain(rest).collect())
        });
        results.assert_close();
    }
    for dims in [[0, 3].as_slice(), &[3, 0], &[2, 0, 3], &[0, 3, 2]] {
        for full in [false, true] {
            let x = &Array::real(DType::F32, dims, &[]);
            let mode = if full { QrMode::Complete } else { QrMode::Reduced };
            let results = run(&[x], &[], |ops, x| {
                let (left, values, right) = ops.svd(&x[0], 100, full)?;
                let (orthogonal, upper) = ops.qr(&x[0], mode, 1e-10)?;
                Ok(vec![left, values, right, orthogonal, upper])
            });
            results.assert_close();
        }
    }
}
