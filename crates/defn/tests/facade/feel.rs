//! How the crate reads in a program: printing, conversions, indexing, loops, and what errors say.

use defn::prelude::*;
use defn::{Error, ErrorClass, Jit, Shape, TensorType};

type Result<T = ()> = std::result::Result<T, Error>;

fn matrix() -> Result<Tensor> {
    tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
}

#[test]
fn values_may_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Tensor>();
    crosses::<Error>();
    crosses::<Shape>();
    crosses::<TensorType>();
    crosses::<Jit<fn(Expr) -> Expr, Tensor, Tensor>>();
}

#[test]
fn an_error_from_main_is_its_message_with_the_line() -> Result {
    let error = matrix()?.reshape(&[4]).unwrap_err();
    let text = format!("{error:?}");
    assert!(text.starts_with("reshape: "), "{text}");
    assert!(text.contains(&format!("{}:{}", file!(), line!() - 3)), "{text}");
    assert_eq!(text, error.to_string());
    Ok(())
}

#[test]
fn tensors_print_as_in_python() -> Result {
    assert_eq!(format!("{:>6}", Tensor::scalar(1.5)?), "   1.5");
    assert_eq!(Tensor::scalar(true)?.to_string(), "true");
    let text = matrix()?.to_string();
    assert_eq!(text, "Tensor<\n  f32[2][3]\n  [\n    [1.0, 2.0, 3.0],\n    [4.0, 5.0, 6.0]\n  ]\n>");
    let long = Tensor::iota(&[1000], DType::S32, None)?.to_string();
    assert!(long.contains("[0, 1, 2, ..., 997, 998, 999]"), "{long}");
    assert_eq!(format!("{:?}", matrix()?.shape()), "Shape([2][3])");
    let freed = matrix()?;
    freed.backend_deallocate()?;
    assert!(freed.to_string().contains("f32[2][3]"), "{freed}");
    assert_eq!(format!("{freed:?}"), "Tensor(f32[2][3])");
    Ok(())
}

#[test]
fn expressions_print_their_graphs_and_their_errors() -> Result {
    let f = jit(|x: Expr| {
        let y = &x + 1.0;
        assert_eq!(format!("{y:?}"), "Expr(f32[2][3])");
        assert!(y.to_string().contains("add"), "{y}");
        let wrong = x.reshape(&[5]);
        assert!(wrong.to_string().starts_with("reshape: "), "{wrong}");
        assert!(format!("{wrong:?}").starts_with("Expr(reshape: "), "{wrong:?}");
        y
    });
    assert_eq!(f.call(matrix()?).unwrap_err().class(), ErrorClass::Shape);
    Ok(())
}

#[test]
fn nested_numbers_become_tensors() -> Result {
    assert_eq!(tensor![1, 2, 3]?.ty().to_string(), "s32[3]");
    assert_eq!(tensor![[true], [false]]?.ty().to_string(), "bool[2][1]");
    assert_eq!(tensor![1.0, 2.0; f64]?.to_vec::<f64>()?, [1.0, 2.0]);
    assert_eq!(Tensor::try_from([[1u8, 2], [3, 4]])?.ty().to_string(), "u8[2][2]");
    assert_eq!(Tensor::try_from(vec![1.0f64, 2.0])?.ty().to_string(), "f64[2]");
    assert_eq!(Tensor::try_from(&[7i64, 8][..])?.ty().to_string(), "s64[2]");
    assert_eq!(Vec::<f32>::try_from(&matrix()?)?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(Tensor::try_from(Vec::<f32>::new())?.ty().to_string(), "f32[0]");
    Ok(())
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let class = |made: Result<Tensor>| made.unwrap_err().class();
    assert_eq!(class(tensor![1i64 << 40]), ErrorClass::Range);
    assert_eq!(class(tensor![-1; u8]), ErrorClass::Range);
    assert_eq!(class(tensor![1.5; i32]), ErrorClass::DType);
    assert_eq!(class(Tensor::try_from(vec![vec![1, 2], vec![3]])), ErrorClass::Option);
    assert_eq!(class(Tensor::try_from(vec![vec![], vec![3]])), ErrorClass::Option);
    assert!(Vec::<f64>::try_from(&matrix().unwrap()).is_err());
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "a negative end counts from the end of the axis")]
fn indices_are_those_of_python() -> Result {
    let x = matrix()?;
    assert_eq!(x.at(-1)?.to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    assert_eq!(x.at((.., 1..))?.to_vec::<f32>()?, [2.0, 3.0, 5.0, 6.0]);
    assert_eq!(x.at((0, -2..-1))?.to_vec::<f32>()?, [2.0]);
    assert_eq!(x.at((1, ..=1))?.to_vec::<f32>()?, [4.0, 5.0]);
    assert_eq!(x.at((1, 1..=-1))?.to_vec::<f32>()?, [5.0, 6.0]);
    assert_eq!(x.at(5..)?.ty().to_string(), "f32[0][3]");
    assert_eq!(x.at((0usize, 2usize))?.item::<f32>()?, 3.0);
    assert_eq!(x.at(2).unwrap_err().class(), ErrorClass::Bounds);
    assert_eq!(x.at((0, 0, 0)).unwrap_err().class(), ErrorClass::Axis);
    let last = jit(|x: Expr| x.at((.., -1)));
    assert_eq!(last.call(x)?.to_vec::<f32>()?, [3.0, 6.0]);
    Ok(())
}

#[test]
fn rows_are_iterated() -> Result {
    let x = matrix()?;
    let sums: Result<Vec<f32>> = x.iter().map(|row| row?.sum(Axes::All, false)?.item()).collect();
    assert_eq!(sums?, [6.0, 15.0]);
    assert_eq!(x.iter().next_back().unwrap()?.to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    assert_eq!(Tensor::scalar(1)?.iter().len(), 0);
    Ok(())
}

#[test]
fn loops_over_ranges_and_items() -> Result {
    let powers = jit(|x: Expr| for_((x.zeros_like(), x), 0..4, |(sum, x), i| (sum + &x * i, 2.0 * x)).0);
    assert_eq!(powers.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 34.0);
    let none = jit(|x: Expr| for_(x, 3..3, |x, _| x + 1.0));
    assert_eq!(none.call(Tensor::scalar(1.0)?)?.item::<f32>()?, 1.0);
    // The gradient of a sum of products along the rows.
    let slope = jit(|x: Expr| {
        grad(&x, |x| {
            let one = x.at((0, 0)).ones_like();
            scan(one, &x, |product, row| (&product * row.sum(Axes::All, false), product)).0
        })
    });
    assert_eq!(slope.call(matrix()?)?.to_vec::<f32>()?, [15.0, 15.0, 15.0, 6.0, 6.0, 6.0]);
    let pairs = jit(|(x, y): (Expr, Expr)| {
        scan((), &(x, y), |(), (x, y)| ((), (&x + &y, x.sum(Axes::All, false)))).1
    });
    let (sums, totals) = pairs.call((matrix()?, matrix()?))?;
    assert_eq!(sums.ty().to_string(), "f32[2][3]");
    assert_eq!(totals.to_vec::<f32>()?, [6.0, 15.0]);
    Ok(())
}

#[test]
fn scans_say_what_is_wrong() -> Result {
    let uneven = jit(|(x, y): (Expr, Expr)| scan(x.at((0, 0)), &(x, y), |s, (x, _)| (s, x)).1);
    let error = uneven.call((matrix()?, tensor![1.0]?)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Option);
    assert!(error.to_string().contains("f32[2][3], f32[1]"), "{error}");
    assert!(error.to_string().contains(&format!("{}:{}", file!(), line!() - 4)), "{error}");
    let grown = jit(|x: Expr| scan(x.at((0, 0)), &x, |s, row| (&s + &row, s)).0);
    assert_eq!(grown.call(matrix()?).unwrap_err().class(), ErrorClass::Container);
    let inner = jit(|x: Expr| scan(x.at((0, 0)), &x, |s, row| (s, row.reshape(&[7]))).1);
    assert_eq!(inner.call(matrix()?).unwrap_err().class(), ErrorClass::Shape);
    Ok(())
}

#[test]
fn operators_take_tensors_and_numbers_in_every_order() {
    let x = || tensor![6, 10].unwrap();
    let found = |result: defn::Result<Tensor>| result.unwrap().to_vec::<i32>().unwrap();
    assert_eq!(found(x() + x()), [12, 20]);
    assert_eq!(found(&x() + &x()), [12, 20]);
    assert_eq!(found(x() - &x()), [0, 0]);
    assert_eq!(found(&x() * x()), [36, 100]);
    assert_eq!(found(x() * 2), [12, 20]);
    assert_eq!(found(2 * x()), [12, 20]);
    assert_eq!(found(20 - &x()), [14, 10]);
    assert_eq!(found(x() % 4), [2, 2]);
    assert_eq!(found(x() & 3), [2, 2]);
    assert_eq!(found(&x() | 1), [7, 11]);
    assert_eq!(found(x() ^ x()), [0, 0]);
    assert_eq!(found(x() << 1), [12, 20]);
    assert_eq!(found(&x() >> 1), [3, 5]);
    assert_eq!(found(1 << x()), [64, 1024]);
    assert_eq!(found(-x()), [-6, -10]);
    let floats = |result: defn::Result<Tensor>| result.unwrap().to_vec::<f32>().unwrap();
    assert_eq!(floats(x() / 4), [1.5, 2.5]);
    assert_eq!(floats(0.5 * x()), [3.0, 5.0]);
    assert_eq!(floats(x() + 0.5), [6.5, 10.5]);
}
