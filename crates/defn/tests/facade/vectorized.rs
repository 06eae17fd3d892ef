//! Vectorized axes in Rust programs: eager, compiled, and differentiated.

use defn::mesh::AllReduceOp;
use defn::{
    Axes, ErrorClass, Expr, Result, Tensor, VmapOptions, grad, hessian, jacfwd, jacrev, jit, tensor, vjp,
    vmap,
};

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

#[test]
fn exchanges_along_a_named_axis() -> Result<()> {
    let f = jit(|x: Expr| {
        VmapOptions::new().with_axis_name("i").vmap(x, |x| {
            assert_eq!(Expr::mesh_size("i"), 2);
            (
                x.all_reduce(AllReduceOp::Sum, "i"),
                x.all_reduce(AllReduceOp::Min, "i"),
                x.all_gather(0, "i"),
                x.reduce_scatter(0, "i"),
                x.collective_permute(&[(0, 1)], "i"),
                Expr::mesh_index("i"),
            )
        })
    });
    let (sum, least, all, part, moved, index) = f.call(tensor![[1, 5], [4, 2]]?)?;
    assert_eq!(sum.to_vec::<i32>()?, [5, 7, 5, 7]);
    assert_eq!(least.to_vec::<i32>()?, [1, 2, 1, 2]);
    assert_eq!(all.ty().to_string(), "s32[2][4]");
    assert_eq!(all.to_vec::<i32>()?, [1, 5, 4, 2, 1, 5, 4, 2]);
    assert_eq!(part.ty().to_string(), "s32[2][1]");
    assert_eq!(part.to_vec::<i32>()?, [5, 7]);
    assert_eq!(moved.to_vec::<i32>()?, [0, 0, 1, 5]);
    assert_eq!(index.to_vec::<i32>()?, [0, 1]);
    Ok(())
}

#[test]
fn exchanges_along_several_axes() -> Result<()> {
    let (outer, inner) = (VmapOptions::new().with_axis_name("i"), VmapOptions::new().with_axis_name("j"));
    let f = jit(move |x: Expr| {
        outer.vmap(x, |x| {
            inner.vmap(x, |x| {
                assert_eq!((Expr::mesh_size("i"), Expr::mesh_size(["i", "j"])), (2, 6));
                let total = x.all_reduce(AllReduceOp::Sum, ["i", "j"]);
                (total, Expr::mesh_index(["i", "j"]), Expr::mesh_index(["j", "i"]))
            })
        })
    });
    let (total, by_rows, by_columns) = f.call(tensor![[1, 2, 3], [4, 5, 6]]?)?;
    assert_eq!(total.to_vec::<i32>()?, [21; 6]);
    assert_eq!(by_rows.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5]);
    assert_eq!(by_columns.to_vec::<i32>()?, [0, 2, 4, 1, 3, 5]);
    Ok(())
}

#[test]
fn gradients_of_exchanges() -> Result<()> {
    let named = || VmapOptions::new().with_axis_name("i");
    let x = [1.0f32, 2.0, 3.0];
    let given = || tensor![x[0], x[1], x[2]];
    // From outside: of the sum of x_k * s, where s is the sum of x, which is s^2.
    let outside =
        jit(move |x: Expr| grad(&x, |x| named().vmap(x, |x| &x * x.all_reduce(AllReduceOp::Sum, "i"))));
    assert_eq!(outside.call(given()?)?.to_vec::<f32>()?, [12.0; 3]);
    // From inside each position has a loss, as each device of a mesh has: the gradient is that of the sum of them.
    let inside =
        jit(move |x: Expr| named().vmap(x, |x| grad(&x, |x| &x * x.all_reduce(AllReduceOp::Sum, "i"))));
    assert_eq!(inside.call(given()?)?.to_vec::<f32>()?, [12.0; 3]);
    // Even if the loss is the same at all positions: 3 times s^2.
    let equal =
        jit(move |x: Expr| named().vmap(x, |x| grad(&x, |x| x.all_reduce(AllReduceOp::Sum, "i").pow(2))));
    assert_eq!(equal.call(given()?)?.to_vec::<f32>()?, [36.0; 3]);
    // And if the variable comes from outside: at each position 3 times x_k.
    let captured = jit(move |(w, x): (Expr, Expr)| {
        named().vmap(x, |x| grad(&w, |w| (w * &x).all_reduce(AllReduceOp::Sum, "i")))
    });
    let found = captured.call((Tensor::scalar(2.0)?, given()?))?;
    assert_eq!(found.to_vec::<f32>()?, x.map(|x| 3.0 * x));
    Ok(())
}

#[test]
fn wrong_names_and_sizes_are_refused() -> Result<()> {
    let named = |name: &str| VmapOptions::new().with_axis_name(name);
    let sum = |x: Expr, name: &str| x.all_reduce(AllReduceOp::Sum, name);
    let x = || tensor![[1.0, 2.0], [3.0, 4.0]];
    let refused = |fun: &dyn Fn(Expr) -> Expr, x: Tensor, class: ErrorClass, text: &str| {
        let error = jit(fun).call(x).unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(error.to_string().starts_with(text), "{error}");
    };
    let own = "vmap: the name \"rows\" would stand on two axes";
    refused(&|x| named("rows").vmap(x, |x| x), rows()?, ErrorClass::Axis, own);
    refused(&|x| named("rows").vmap(x, |x| x), rows()?.devectorize()?, ErrorClass::Axis, own);
    let twice = "vmap: axis_name is \"i\", the name of an axis of an enclosing vmap";
    refused(
        &|x| named("i").vmap(x, |x| named("i").with_axis_size(2).vmap((), |()| x)),
        x()?,
        ErrorClass::Axis,
        twice,
    );
    let unknown = "all_reduce: no enclosing vmap or mesh has an axis \"j\", it must be one of \"i\"";
    refused(&|x| named("i").vmap(x, |x| sum(x, "j")), x()?, ErrorClass::Axis, unknown);
    // The name is known inside of the function only.
    let after = "all_reduce: there is no mesh here";
    refused(&|x| sum(named("i").vmap(x, |x| x), "i"), x()?, ErrorClass::Trace, after);
    let size = "vmap: the sizes of the mapped axes is [2], it must be 3, the axis size";
    refused(&|x| VmapOptions::new().with_axis_size(3).vmap(x, |x| x), x()?, ErrorClass::Option, size);
    let none = "vmap: the container is without a tensor";
    refused(&|x| vmap((), |()| x.clone()), x()?, ErrorClass::Option, none);
    Ok(())
}

#[test]
fn a_compiled_function_is_of_the_named_axes_around_its_call() -> Result<()> {
    let counted = jit(|x: Expr| x * Expr::mesh_size("i") as i32);
    let call = |x: i32| counted.call(Tensor::scalar(x)?)?.item::<i32>();
    for size in [2, 5] {
        let options = VmapOptions::new().with_axis_name("i").with_axis_size(size);
        options.vmap((), |()| assert_eq!(call(10).unwrap(), 10 * size as i32));
    }
    assert_eq!(counted.programs(), 2);
    assert!(call(10).unwrap_err().to_string().starts_with("mesh_size: there is no mesh here"));
    let text = "compiles: the named axes around the call changed from i: 5 to none";
    assert_eq!(counted.explain(&Tensor::scalar(1)?), text);
    Ok(())
}
