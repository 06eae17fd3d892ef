//! Vectorized axes in Rust programs: eager, compiled, and differentiated.

use defn::{Axes, Expr, Result, Tensor, grad, hessian, jacfwd, jacrev, jit, vjp, vmap};

fn rows() -> Result<Tensor> {
    Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?.vectorize(&["rows"])
}

#[test]
fn operations_work_at_each_position() -> Result<()> {
    let sums = rows()?.sum(Axes::All, false)?;
    assert_eq!(sums.vectorized_axes(), &[("rows".into(), 2)]);
    assert_eq!(sums.shape().rank(), 0);
    assert_eq!(sums.to_vec::<f32>()?, [6.0, 15.0]);
    let plain = rows()?.devectorize()?;
    assert_eq!(plain.ty().to_string(), "f32[rows: 2][3]");
    let refused = rows()?.vectorize(&["rows"]).unwrap_err();
    assert!(refused.to_string().contains("\"rows\""));
    Ok(())
}

#[test]
fn compiled_functions_know_the_axes() -> Result<()> {
    let sum = jit(|x: Expr| x.sum(Axes::All, false));
    let sums = sum.call(rows()?)?;
    assert_eq!(sums.vectorized_axes().len(), 1);
    assert_eq!(sums.to_vec::<f32>()?, [6.0, 15.0]);
    // The same elements without the axes are another program.
    let total = sum.call(rows()?.devectorize()?)?;
    assert_eq!(total.to_vec::<f32>()?, [21.0]);
    assert_eq!(sum.programs(), 2);
    Ok(())
}

#[test]
fn a_gradient_has_the_axes_of_its_variable() -> Result<()> {
    let gradient = jit(|x: Expr| grad(&x, |x| (&x * &x).sum(Axes::All, false)));
    let slopes = gradient.call(rows()?)?;
    assert_eq!(slopes.vectorized_axes().len(), 1);
    assert_eq!(slopes.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    Ok(())
}

#[test]
fn a_mapped_gradient_is_that_of_each_position() -> Result<()> {
    // What is mapped may come in by a capture: the variable is one for all, its gradients are not.
    let xs = [1.0f32, 2.0, 3.0];
    let x = || Tensor::from_slice(&xs, &[3]);
    let squares = jit(|(w, x): (Expr, Expr)| vmap(x, |x| grad(&w, |w| (w * &x).pow(2))));
    let w = Tensor::scalar(0.5)?;
    assert_eq!(squares.call((w.clone(), x()?))?.to_vec::<f32>()?, xs.map(|x| x * x));
    let pulled = jit(|(w, x): (Expr, Expr)| {
        vmap(x, |x| {
            let (value, pullback) = vjp(&w, |w| w * &x);
            pullback.call(&value.ones_like())
        })
    });
    assert_eq!(pulled.call((w.clone(), x()?))?.to_vec::<f32>()?, xs);
    let both = jit(|(w, x): (Expr, Expr)| {
        vmap(x, |x| (jacfwd(&w, |w| w * &x), jacrev(&w, |w| w * &x), hessian(&w, |w| (w * &x).pow(2))))
    });
    let (forward, reverse, second) = both.call((w, x()?))?;
    assert_eq!(forward.to_vec::<f32>()?, xs);
    assert_eq!(reverse.to_vec::<f32>()?, xs);
    assert_eq!(second.to_vec::<f32>()?, xs.map(|x| 2.0 * x * x));
    Ok(())
}
