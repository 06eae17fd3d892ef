//! Containers that are derived, and what makes a function be compiled again.

use std::collections::BTreeMap;

use defn::prelude::*;
use defn::{Error, Leaf, Static};

#[derive(Tree)]
struct Dense<T> {
    weight: T,
    bias: Option<T>,
    #[tree(static)]
    slope: f64,
    #[tree(static)]
    name: &'static str,
}

#[derive(Tree)]
struct Pair<T>(T, #[tree(static)] usize);

#[derive(Tree)]
struct Stack<T, const N: usize>
where
    T: Clone,
{
    layers: [Dense<T>; N],
}

#[derive(Tree)]
enum Optimizer<T> {
    Plain,
    Momentum { velocity: T },
    Adam(T, T),
}

fn dense(weight: f64, bias: Option<f64>, slope: f64) -> Result<Dense<Tensor>, Error> {
    let bias = bias.map(Tensor::scalar).transpose()?;
    Ok(Dense { weight: Tensor::scalar(weight)?, bias, slope, name: "dense" })
}

fn apply(layer: &Dense<Expr>, x: &Expr) -> Expr {
    assert_eq!(layer.name, "dense");
    let y = layer.slope * (&layer.weight * x);
    match &layer.bias {
        Some(bias) => y + bias,
        None => y,
    }
}

#[test]
fn other_forms_and_values_are_other_programs() -> Result<(), Error> {
    let f = jit(|(layer, x): (Dense<Expr>, Expr)| apply(&layer, &x));
    let call =
        |weight, bias, slope| f.call((dense(weight, bias, slope)?, Tensor::scalar(10.0)?))?.item::<f32>();
    assert_eq!(call(2.0, None, 1.0)?, 20.0);
    assert_eq!(call(3.0, None, 1.0)?, 30.0);
    assert_eq!(f.programs(), 1);
    assert_eq!(call(3.0, Some(1.0), 1.0)?, 31.0);
    assert_eq!(f.programs(), 2);
    // Values that differ in their last bit.
    assert_eq!(call(3.0, None, 2.0)?, 60.0);
    assert_eq!(call(3.0, None, 2.0f64.next_up())?, 60.0);
    assert_eq!(f.programs(), 4);
    Ok(())
}

#[test]
fn structs_are_updated_by_their_gradients() -> Result<(), Error> {
    let step = jit(|(stack, x): (Stack<Expr, 2>, Expr)| {
        let slopes = grad(&stack, |stack| stack.layers.iter().fold(x.clone(), |x, layer| apply(layer, &x)));
        each([&stack, &slopes], |[value, slope]| value - slope)
    });
    let stack = Stack { layers: [dense(2.0, Some(1.0), 1.0)?, dense(3.0, None, 1.0)?] };
    let stack = step.call((stack, Tensor::scalar(10.0)?))?;
    // 3 * (2 * 10 + 1)
    assert_eq!(stack.layers[0].weight.item::<f32>()?, 2.0 - 30.0);
    assert_eq!(stack.layers[0].bias.as_ref().map(Tensor::item::<f32>).transpose()?, Some(1.0 - 3.0));
    assert_eq!(stack.layers[1].weight.item::<f32>()?, 3.0 - 21.0);
    assert_eq!((stack.layers[1].slope, stack.layers[1].name), (1.0, "dense"));
    Ok(())
}

#[test]
fn variants_have_their_own_leaves() -> Result<(), Error> {
    fn double<T: Leaf>(state: &Optimizer<T>) -> usize {
        match state {
            Optimizer::Plain => 0,
            Optimizer::Momentum { .. } => 1,
            Optimizer::Adam(..) => 2,
        }
    }
    let f = jit(|state: Optimizer<Expr>| each([&state], |[x]| 2.0 * x));
    assert_eq!(double(&f.call(Optimizer::Plain)?), 0);
    let one = f.call(Optimizer::Momentum { velocity: Tensor::scalar(1.0)? })?;
    assert!(matches!(&one, Optimizer::Momentum { velocity } if velocity.item::<f32>().ok() == Some(2.0)));
    let two = f.call(Optimizer::Adam(Tensor::scalar(1.0)?, Tensor::scalar(2.0)?))?;
    assert!(matches!(&two, Optimizer::Adam(_, second) if second.item::<f32>().ok() == Some(4.0)));
    assert_eq!(f.programs(), 3);
    Ok(())
}

#[test]
fn maps_have_their_names() -> Result<(), Error> {
    let f = jit(|params: BTreeMap<String, Pair<Expr>>| {
        params.values().fold(Expr::constant(DType::F32, 0), |sum, pair| sum + &pair.0 * pair.1 as i32)
    });
    let call = |name: &str, times| {
        let params = BTreeMap::from([(name.to_owned(), Pair(Tensor::scalar(1.5)?, times))]);
        f.call(params)?.item::<f32>()
    };
    assert_eq!(call("a", 2)?, 3.0);
    assert_eq!(call("a", 3)?, 4.5);
    assert_eq!(call("b", 2)?, 3.0);
    assert_eq!(f.programs(), 3);
    Ok(())
}

#[test]
fn values_have_words_of_their_own() {
    fn words(value: impl Static) -> Vec<usize> {
        let mut words = Vec::new();
        value.words(&mut words);
        words
    }
    assert_ne!(words(0.0f64), words(-0.0f64));
    assert_ne!(words((vec![1, 2], vec![3])), words((vec![1], vec![2, 3])));
    assert_ne!(words(Some(())), words(None::<()>));
    assert_ne!(words(("ab", "c")), words(("a", "bc")));
    assert_ne!(words(u64::MAX), words(u64::MAX >> 1));
}
