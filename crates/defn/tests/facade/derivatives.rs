//! Jacobians, vector-Jacobian products and second derivatives.

use defn::prelude::*;
use defn::{Error, ErrorClass};

type Result<T = ()> = std::result::Result<T, Error>;

fn assert_near(found: &Tensor, expected: &[f32]) -> Result {
    let found = found.to_vec::<f32>()?;
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() < 1e-5, "{found:?} {expected:?}");
    }
    Ok(())
}

#[test]
fn jacobians_are_of_each_variable() -> Result {
    // The product of a matrix and a vector: by the matrix each row has the vector, by the vector it is the matrix.
    let f = jit(|(a, x): (Expr, Expr)| jacobian(&(a, x), |(a, x)| a.matmul(&x)));
    let a = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]?;
    let (by_a, by_x) = f.call((a.clone(), tensor![7.0, 8.0, 9.0]?))?;
    assert_eq!(by_a.ty().to_string(), "f32[2][2][3]");
    assert_near(&by_a, &[7.0, 8.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 8.0, 9.0])?;
    assert_eq!(by_x.to_vec::<f32>()?, a.to_vec::<f32>()?);
    let constant = jit(|x: Expr| jacobian(&x, |x| x.zeros_like()));
    assert_near(&constant.call(tensor![1.0, 2.0]?)?, &[0.0; 4])
}

#[test]
fn second_derivatives_are_symmetric() -> Result {
    let f = jit(|x: Expr| hessian(&x, |x| (x.at(0) * x.at(1)).exp() + x.at(1).pow(3)));
    let (a, b) = (0.3f32, 0.7f32);
    let e = (a * b).exp();
    let mixed = e * (1.0 + a * b);
    assert_near(&f.call(tensor![a, b]?)?, &[b * b * e, mixed, mixed, a * a * e + 6.0 * b])
}

#[test]
fn pullbacks_are_linear_and_may_be_used_again() -> Result {
    let f = jit(|(x, g): (Expr, Expr)| {
        let (value, pull) = vjp(&(x.clone(), x), |(x, y)| (x.sin(), x * y));
        let (by_x, _) = pull.call(&(g.clone(), g.zeros_like()));
        let (both, by_y) = pull.call(&(&g + &g, g));
        (value.0, by_x, both, by_y)
    });
    let x = [0.5f32, 1.5];
    let (value, by_x, both, by_y) = f.call((tensor![x[0], x[1]]?, tensor![1.0, 10.0]?))?;
    let g = [1.0f32, 10.0];
    assert_near(&value, &x.map(f32::sin))?;
    assert_near(&by_x, &[x[0].cos(), 10.0 * x[1].cos()])?;
    assert_near(&both, &[0, 1].map(|at| 2.0 * g[at] * x[at].cos() + g[at] * x[at]))?;
    assert_near(&by_y, &[0, 1].map(|at| g[at] * x[at]))
}

#[test]
fn wrong_cotangents_are_refused() -> Result {
    let f = jit(|x: Expr| {
        let (_, pull) = vjp(&x, |x| x.pow(2));
        pull.call(&Expr::full(&[3], DType::F32, 1))
    });
    let error = f.call(tensor![1.0, 2.0]?).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Shape);
    assert!(error.to_string().starts_with("vjp: "), "{error}");
    let inner = jit(|x: Expr| jacobian(&x, |x| x.reshape(&[5])));
    let error = inner.call(tensor![1.0, 2.0]?).unwrap_err();
    assert!(error.to_string().starts_with("reshape: "), "{error}");
    Ok(())
}
