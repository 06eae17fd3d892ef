//! Functions on containers: arithmetic, stacks, and the names of leaves in errors.

use defn::linalg::NormOrder;
use defn::prelude::*;
use defn::{Error, ErrorClass, half, random};

#[derive(Tree)]
struct Layer<T> {
    weight: T,
    bias: Option<T>,
}

fn layer(scale: f32) -> Result<Layer<Tensor>, Error> {
    Ok(Layer { weight: (tensor![[1f32, -2.0], [3.0, 4.0]]? * scale)?, bias: Some(Tensor::scalar(scale)?) })
}

fn numbers(layer: &Layer<Tensor>) -> Result<Vec<f32>, Error> {
    let mut numbers = layer.weight.to_vec::<f32>()?;
    if let Some(bias) = &layer.bias {
        numbers.push(bias.item()?);
    }
    Ok(numbers)
}

#[test]
fn containers_are_vectors() -> Result<(), Error> {
    let (a, b) = (layer(1.0)?, layer(3.0)?);
    let (x, y) = (numbers(&a)?, numbers(&b)?);
    let zip = |fun: fn(f32, f32) -> f32| x.iter().zip(&y).map(|(x, y)| fun(*x, *y)).collect::<Vec<_>>();
    assert_eq!(numbers(&tree::add(&a, &b)?)?, zip(|x, y| x + y));
    assert_eq!(numbers(&tree::subtract(&a, &b)?)?, zip(|x, y| x - y));
    assert_eq!(numbers(&tree::multiply(&a, &b)?)?, zip(|x, y| x * y));
    assert_eq!(numbers(&tree::scale(0.5, &a)?)?, zip(|x, _| 0.5 * x));
    assert_eq!(numbers(&tree::add_scaled(&a, 0.5, &b)?)?, zip(|x, y| x + 0.5 * y));
    let products = zip(|x, y| x * y);
    assert_eq!(tree::dot(&a, &b)?.item::<f32>()?, products.iter().sum::<f32>());
    assert_eq!(tree::norm(&a, None)?.item::<f32>()?, x.iter().map(|x| x * x).sum::<f32>().sqrt());
    assert_eq!(tree::norm(&a, Some(NormOrder::Power(1)))?.item::<f32>()?, x.iter().map(|x| x.abs()).sum());
    assert_eq!(tree::norm(&a, Some(NormOrder::Infinity))?.item::<f32>()?, 4.0);
    assert_eq!((tree::size(&a), tree::bytes(&a)), (5, 20));
    let error = tree::norm(&a, Some(NormOrder::Nuclear)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Option);
    Ok(())
}

#[test]
fn expressions_keep_the_structure_and_have_gradients() -> Result<(), Error> {
    let slope = jit(|layer: Layer<Expr>| grad(&layer, |layer| tree::dot(&layer, &layer)));
    assert_eq!(numbers(&slope.call(layer(1.0)?)?)?, [2.0, -4.0, 6.0, 8.0, 2.0]);
    let clipped = jit(|layer: Layer<Expr>| {
        let norm = tree::norm(&layer, None);
        tree::scale((1.0 / norm).min(1.0), &layer)
    });
    assert_eq!(tree::norm(&clipped.call(layer(2.0)?)?, None)?.item::<f32>()?, 1.0);
    Ok(())
}

#[test]
fn small_floats_are_kept_and_summed_in_f32() -> Result<(), Error> {
    let small = [Tensor::full(&[10_000], DType::BF16, 0.01)?];
    let each = f64::from(half::bf16::from_f64(0.01));
    let norm = tree::norm(&small, None)?;
    assert_eq!(norm.dtype(), DType::F32);
    assert!((f64::from(norm.item::<f32>()?) / (100.0 * each) - 1.0).abs() < 1e-5);
    assert_eq!(tree::scale(&Tensor::scalar(0.5f32)?, &small)?[0].dtype(), DType::BF16);
    Ok(())
}

#[test]
fn stacked_layers_are_scanned_and_taken_apart() -> Result<(), Error> {
    let layers = [layer(1.0)?, layer(0.5)?, layer(2.0)?];
    let stacked = tree::stack(&layers, 0)?;
    assert_eq!(stacked.weight.ty().to_string(), "f32[3][2][2]");
    let parts = tree::unstack(&stacked, 0)?;
    assert_eq!(parts.len(), 3);
    for (part, layer) in parts.iter().zip(&layers) {
        assert_eq!(numbers(part)?, numbers(layer)?);
    }
    let apply = |layer: &Layer<Expr>, x: &Expr| {
        let bias = layer.bias.clone().unwrap_or_else(|| x.zeros_like());
        layer.weight.dot(x) + bias
    };
    let scanned =
        jit(|(layers, x): (Layer<Expr>, Expr)| scan(x, &layers, |x, layer| (apply(&layer, &x), ())).0);
    let looped = jit(|(layers, x): (Layer<Expr>, Expr)| {
        tree::unstack(&layers, 0).iter().fold(x, |x, layer| apply(layer, &x))
    });
    let x = tensor![1f32, -1.0]?;
    let expected =
        looped.call((Layer { weight: stacked.weight.clone(), bias: stacked.bias.clone() }, x.clone()))?;
    assert_eq!(scanned.call((stacked, x))?.to_vec::<f32>()?, expected.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn each_leaf_has_its_key() -> Result<(), Error> {
    let key = random::key(7)?;
    let keys = tree::random_split(&key, &layer(1.0)?)?;
    let expected = random::split(&key, 2)?.to_vec::<u32>()?;
    assert_eq!(keys.weight.to_vec::<u32>()?, expected[..2]);
    assert_eq!(keys.bias.expect("a key").to_vec::<u32>()?, expected[2..]);
    Ok(())
}

#[test]
fn errors_name_the_leaf() -> Result<(), Error> {
    let with = |sizes: &[usize]| -> Result<Vec<Layer<Tensor>>, Error> {
        let bias = Some(Tensor::full(sizes, DType::F32, 0)?);
        Ok(vec![layer(1.0)?, Layer { weight: Tensor::full(&[2], DType::F32, 0)?, bias }])
    };
    let (a, b) = (with(&[2])?, with(&[3])?);
    for error in [
        tree::add(&a, &b).err(),
        tree::add_scaled(&a, 0.5, &b).err(),
        tree::select(1, &a, &b).err(),
        tree::dot(&a, &b).err(),
    ] {
        let error = error.expect("an error");
        assert_eq!(error.class(), ErrorClass::Shape);
        assert!(error.to_string().contains("in the leaf 1.bias"), "{error}");
        assert!(error.location().is_some());
    }
    let error = tree::stack(&[layer(1.0)?, Layer { weight: tensor![1f32]?, bias: None }], 0).err();
    assert_eq!(error.expect("another structure").class(), ErrorClass::Container);
    let error = tree::unstack(&b[1], 0).err().expect("other sizes");
    assert!(
        error.to_string().contains("the operand is f32[3], the axis must have as many elements as that of the first leaf\n  in the leaf bias"),
        "{error}"
    );
    let traced = jit(|(a, b): (Vec<Layer<Expr>>, Vec<Layer<Expr>>)| {
        let _dropped = tree::add(&a, &b);
        Expr::constant(DType::F32, 0)
    });
    let error = traced.call((a, b)).expect_err("the error of a container that is dropped");
    assert!(error.to_string().contains("in the leaf 1.bias"), "{error}");
    Ok(())
}
