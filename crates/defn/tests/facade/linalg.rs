//! Linear algebra in Rust programs: at once, compiled, differentiated, and refused.

use defn::linalg::{self, NormOrder, QrMode, Transform};
use defn::prelude::*;
use defn::{ErrorClass, Result};

fn matrix(elements: &[f64], rows: usize) -> Tensor {
    Tensor::from_slice(elements, &[rows, elements.len() / rows]).unwrap()
}

#[track_caller]
fn assert_close(got: Result<Tensor>, want: &[f64]) {
    let got = got.unwrap().to_vec::<f64>().unwrap();
    assert_eq!(got.len(), want.len());
    let close = got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12);
    assert!(close, "{got:?} and {want:?}");
}

#[test]
fn every_function_works_on_tensors() {
    let a = matrix(&[4.0, 2.0, 2.0, 5.0], 2);
    let b = Tensor::from_slice(&[2.0, 1.0], &[2]).unwrap();
    assert_close(linalg::adjoint(&matrix(&[1.0, 2.0, 3.0, 4.0], 2)), &[1.0, 3.0, 2.0, 4.0]);
    assert_close(linalg::cholesky(&a), &[2.0, 0.0, 1.0, 2.0]);
    assert_close(linalg::determinant(&a), &[16.0]);
    assert_close(linalg::invert(&a), &[5.0 / 16.0, -0.125, -0.125, 0.25]);
    assert_close(linalg::solve(&a, &b), &[0.5, 0.0]);
    let upper = matrix(&[2.0, 1.0, f64::NAN, 1.0], 2);
    assert_close(linalg::triangular_solve(&upper, &b, false, true, Transform::None), &[0.5, 1.0]);
    assert_close(linalg::least_squares(&a, &b, 1e-15), &[0.5, 0.0]);
    assert_close(linalg::matrix_power(&a, 2), &[20.0, 18.0, 18.0, 29.0]);
    assert_close(linalg::norm(&a, None, Axes::All, false), &[7.0]);
    assert_close(linalg::norm(&a, Some(NormOrder::Infinity), 1, false), &[4.0, 5.0]);
    assert_close(linalg::pinv(&b, 1e-10), &[0.4, 0.2]);
    assert_eq!(linalg::matrix_rank(&a, 1e-7).unwrap().item::<i32>().unwrap(), 2);
    // The eigenvalues of a symmetric matrix are (9 - sqrt(17)) / 2 and (9 + sqrt(17)) / 2.
    let root = 17.0f64.sqrt();
    let values = [(9.0 + root) / 2.0, (9.0 - root) / 2.0];
    assert_close(linalg::eigh(&a, 1000, 0.0).map(|(values, _)| values), &[values[1], values[0]]);
    assert_close(linalg::svd(&a, 100, true).map(|(_, values, _)| values), &values);
    let (p, l, u) = linalg::lu(&matrix(&[1.0, 2.0, 4.0, 4.0], 2)).unwrap();
    assert_close(Ok(p), &[0.0, 1.0, 1.0, 0.0]);
    assert_close(Ok(l), &[1.0, 0.0, 0.25, 1.0]);
    assert_close(Ok(u), &[4.0, 4.0, 0.0, 1.0]);
    let (q, r) = linalg::qr(&a, QrMode::Reduced, 1e-10).unwrap();
    assert_close(q.matmul(&r), &[4.0, 2.0, 2.0, 5.0]);
}

#[test]
fn factors_are_compiled_and_differentiated() {
    let a = matrix(&[4.0, 2.0, 2.0, 5.0], 2);
    let back = jit(|a: Expr| {
        let (u, s, vh) = linalg::svd(&a, 100, false);
        (u * s).matmul(vh)
    });
    assert_close(back.call(a.clone()), &[4.0, 2.0, 2.0, 5.0]);
    // The gradient of the logarithm of a determinant is the inverse, transposed.
    let gradient = jit(|a: Expr| grad(&a, |a: Expr| linalg::determinant(&a).log()));
    assert_close(gradient.call(a), &[5.0 / 16.0, -0.125, -0.125, 0.25]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let wide = matrix(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2);
    assert_eq!(linalg::cholesky(&wide).unwrap_err().kind().class(), ErrorClass::Shape);
    let fun = jit(|x: Expr| linalg::lu(&x).1);
    let error = fun.call(wide).unwrap_err();
    assert!(error.to_string().starts_with("lu: the operand is f64[2][3]"), "{error}");
    assert!(error.location().is_some_and(|location| location.file.ends_with("linalg.rs")));
}
