//! What functions of expressions do, and how their errors come out.

use defn::prelude::*;
use defn::{Direction, ErrorClass, Leaf, Tree, Visit};

fn vector(elements: &[f32]) -> Tensor {
    Tensor::from_slice(elements, &[elements.len()]).unwrap()
}

#[test]
fn the_first_error_comes_out_with_its_line() {
    let line = line!() + 2;
    let fun = jit(|(a, b): (Expr, Expr)| {
        let sum = &a + &b;
        let worse = sum.reshape(&[7]).matmul(&b);
        worse + a.as_type(DType::C64).floor()
    });
    let error = fun.call((vector(&[1.0, 2.0]), vector(&[1.0, 2.0, 3.0]))).unwrap_err();
    assert_eq!(error.kind().class(), ErrorClass::Shape);
    let location = error.location().expect("the caller's line");
    assert!(location.file.ends_with("traced.rs"), "{location}");
    assert_eq!(location.line, line);
    let text = format!(
        "add: shapes [2] and [3] do not broadcast, axis 0 of the result has sizes 2 and 3; sizes must be \
         equal or 1\n  left: f32[2], an input\n  right: f32[3], an input\n  at {location}"
    );
    assert_eq!(error.to_string(), text);
    assert_eq!(fun.programs(), 0);
    // What was valid before an error is valid after it.
    let good = fun.call((vector(&[1.0]), vector(&[2.0]))).unwrap_err();
    assert!(good.to_string().starts_with("reshape: "), "{good}");
}

#[test]
fn an_error_says_where_the_operands_were_made() {
    let line = line!() + 3;
    let outside = vector(&[1.0, 2.0]);
    let made = jit(|a: Expr| {
        let longer = a.exp();
        &longer + &outside.clone()
    });
    let error = made.call(vector(&[1.0, 2.0, 3.0])).unwrap_err();
    let file = &error.location().expect("the caller's line").file;
    let lines = format!(
        "  left: f32[3], made at {file}:{line}\n  right: f32[2], from outside the function\n  at {file}:{}",
        line + 1
    );
    assert!(error.to_string().ends_with(&lines), "{error}");
}

#[test]
fn an_error_that_no_result_depends_on_comes_out_too() {
    let fun = jit(|x: Expr| {
        let _ = x.reshape(&[5]);
        x
    });
    assert!(fun.call(vector(&[1.0])).unwrap_err().to_string().starts_with("reshape: "));
}

#[test]
fn errors_come_out_of_regions_and_gradients() {
    let in_body = jit(|x: Expr| while_(x, |x| x.sum(Axes::All, false).less(3), |x| x.reshape(&[5])));
    assert!(in_body.call(vector(&[1.0])).unwrap_err().to_string().starts_with("reshape: "));

    let in_branch = jit(|x: Expr| cond(&x.sum(Axes::All, false), || x.reshape(&[5]), || x.clone()));
    assert!(in_branch.call(vector(&[1.0])).unwrap_err().to_string().starts_with("reshape: "));

    let predicate = jit(|x: Expr| cond(&x, || vec![x.clone()], || vec![-&x]));
    let error = predicate.call(vector(&[1.0, 2.0])).unwrap_err();
    assert!(error.to_string().contains("the predicate is f32[2]"), "{error}");

    let in_grad = jit(|x: Expr| grad(&x, |x| x.reshape(&[5])));
    assert!(in_grad.call(vector(&[1.0])).unwrap_err().to_string().starts_with("reshape: "));
}

#[test]
fn an_expression_of_another_function_is_refused() {
    let kept = std::sync::Mutex::new(None);
    let first = jit(|x: Expr| {
        *kept.lock().unwrap() = Some(x.clone());
        x
    });
    first.call(vector(&[1.0])).unwrap();
    let leaked = kept.lock().unwrap().take().unwrap();
    let error = jit(|x: Expr| x + &leaked).call(vector(&[1.0])).unwrap_err();
    assert_eq!(error.kind().class(), ErrorClass::Trace);
    assert!(error.to_string().starts_with("add: the tensor f32[1] belongs to a definition that has ended"));
}

#[test]
fn captured_tensors_are_inputs() {
    let weights = vector(&[2.0, 3.0]);
    let fun = jit(|x: Expr| (x * &weights).sum(Axes::All, false));
    assert_eq!(fun.call(vector(&[10.0, 1.0])).unwrap().item::<f32>().unwrap(), 23.0);
    assert_eq!(fun.call(vector(&[0.0, 1.0])).unwrap().item::<f32>().unwrap(), 3.0);
    assert_eq!(fun.programs(), 1);
}

struct Layer<T> {
    weight: T,
    biases: Vec<T>,
}

impl<T: Leaf> Tree<T> for Layer<T> {
    type Of<U: Leaf> = Layer<U>;

    fn visit<U: Leaf>(&self, visit: &mut Visit<'_, T, U>) -> Layer<U> {
        Layer { weight: self.weight.visit(visit), biases: self.biases.visit(visit) }
    }
}

#[test]
fn containers_keep_their_structure() {
    let fun = jit(|(layers, x): ([Vec<Layer<Expr>>; 2], Expr)| {
        let [first, second] = &layers;
        let total = |layers: &[Layer<Expr>]| {
            layers
                .iter()
                .fold(x.clone(), |x, layer| layer.biases.iter().fold(x * &layer.weight, |x, bias| x + bias))
        };
        (total(first), vec![total(second), x.clone()])
    });
    let layer = |weight: f32, biases: &[f32]| Layer {
        weight: vector(&[weight]),
        biases: biases.iter().map(|&bias| vector(&[bias])).collect(),
    };
    let run = |first: Vec<Layer<Tensor>>, second| {
        let (a, rest) = fun.call(([first, second], vector(&[10.0]))).unwrap();
        let item = |tensor: &Tensor| tensor.item::<f32>().unwrap();
        (item(&a), rest.iter().map(item).collect::<Vec<f32>>())
    };
    assert_eq!(run(vec![layer(2.0, &[1.0])], vec![layer(3.0, &[])]), (21.0, vec![30.0, 10.0]));
    // The same leaves in another structure are another program.
    assert_eq!(run(vec![layer(2.0, &[])], vec![layer(1.0, &[3.0])]), (20.0, vec![13.0, 10.0]));
    assert_eq!(run(vec![layer(3.0, &[])], vec![layer(1.0, &[4.0])]), (30.0, vec![14.0, 10.0]));
    assert_eq!(fun.programs(), 2);
}

#[test]
fn a_new_type_compiles_anew() {
    let fun = jit(|x: Expr| &x * &x);
    assert_eq!(fun.call(vector(&[3.0])).unwrap().to_vec::<f32>().unwrap(), [9.0]);
    assert_eq!(fun.call(Tensor::scalar(4).unwrap()).unwrap().item::<i32>().unwrap(), 16);
    assert_eq!(fun.programs(), 2);
}

#[test]
fn gradients_of_containers_keep_the_value() {
    let fun = jit(|(w, b, x): (Expr, Expr, Expr)| {
        value_and_grad_of(
            &(w, [b]),
            |(w, [b])| {
                let y = w * &x + b;
                ((&y * &y).sum(Axes::All, false), y)
            },
            |(loss, _)| loss.clone(),
        )
    });
    let arguments = (vector(&[2.0]), vector(&[1.0]), vector(&[3.0]));
    let ((loss, y), (w, [b])) = fun.call(arguments).unwrap();
    let item = |tensor: &Tensor| tensor.item::<f32>().unwrap();
    assert_eq!([item(&loss), item(&y), item(&w), item(&b)], [49.0, 7.0, 42.0, 14.0]);
}

#[test]
fn tensors_and_functions_cross_threads() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    let fun = shared(jit(|x: Expr| x.exp().sum(Axes::All, false)));
    let x = shared(vector(&[0.0; 100]));
    std::thread::scope(|scope| {
        let run = || fun.call(x.clone()).unwrap().item::<f32>().unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 100.0);
        }
    });
    assert_eq!(fun.programs(), 1);
}

#[test]
fn eager_operations_return_their_errors() {
    let line = line!() + 1;
    let error = vector(&[1.0, 2.0]).add(vector(&[1.0, 2.0, 3.0])).unwrap_err();
    assert_eq!(error.location().map(|location| location.line), Some(line));

    let error = Tensor::from_slice(&[1, 2, 3], &[2]).unwrap_err();
    let text = "from_slice: the shape is s32[2], it must be of the 3 elements given";
    assert!(error.to_string().starts_with(text), "{error}");

    let error = vector(&[1.0]).to_vec::<i32>().unwrap_err();
    let text = "to_vec: the operand is f32[1], it must be s32; convert it with as_type";
    assert!(error.to_string().starts_with(text), "{error}");

    let error = vector(&[1.0, 2.0]).item::<f32>().unwrap_err();
    assert!(error.to_string().starts_with("item: the tensor is f32[2], it must be a scalar"), "{error}");

    let huge = Tensor::full(&[usize::MAX, usize::MAX], DType::F32, 0).unwrap_err();
    assert_eq!(huge.kind().class(), ErrorClass::OutOfMemory);
}

#[test]
fn positions_are_checked_at_once_and_moved_into_range_when_compiled() {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let at = Tensor::from_slice(&[1i32, 5], &[2]).unwrap();
    let text = "take: index 5 on axis 1 of f32[2][3], it must be in -3..3";
    assert!(x.take(&at, 1).unwrap_err().to_string().starts_with(text));
    let taken = jit(|(x, at): (Expr, Expr)| x.take(at, 1)).call((x.clone(), at)).unwrap();
    assert_eq!(taken.to_vec::<f32>().unwrap(), [2.0, 3.0, 5.0, 6.0]);

    let rows = Tensor::from_slice(&[0i32, 2, 7, 7], &[2, 2]).unwrap();
    let updates = vector(&[10.0, 10.0]);
    let add = jit(|(x, rows, updates): (Expr, Expr, Expr)| x.indexed_add(rows, updates, Axes::All));
    let added = add.call((x.clone(), rows, updates)).unwrap();
    assert_eq!(added.to_vec::<f32>().unwrap(), [1.0, 2.0, 13.0, 4.0, 5.0, 6.0]);

    let order = x.argsort(-1, Direction::Desc).unwrap();
    assert_eq!(
        x.take_along_axis(&order, -1).unwrap().to_vec::<f32>().unwrap(),
        [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]
    );
    assert_eq!(x.sort(-1, Direction::Desc).unwrap().to_vec::<f32>().unwrap(), [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
    let (values, places) = jit(|x: Expr| x.top_k(2)).call(x.clone()).unwrap();
    assert_eq!(values.to_vec::<f32>().unwrap(), [3.0, 2.0, 6.0, 5.0]);
    assert_eq!(places.to_vec::<i32>().unwrap(), [2, 1, 2, 1]);
    assert!(x.top_k(4).unwrap_err().to_string().starts_with("top_k: k is 4"));
    assert_eq!(x.cumulative_sum(0, true).unwrap().to_vec::<f32>().unwrap(), [5.0, 7.0, 9.0, 4.0, 5.0, 6.0]);
}

#[test]
fn plain_numbers_give_way_in_every_op() {
    let wide = Tensor::from_slice(&[1.0f64, 2.0], &[2]).unwrap();
    let run = jit(|x: Expr| (x.clip(1.1, 1.7), x.less(1.5).select(&x, 0.1)));
    let (clipped, chosen) = run.call(wide.clone()).unwrap();
    let clipped_at_once = wide.clip(1.1, 1.7).unwrap();
    let chosen_at_once = wide.less(1.5).unwrap().select(&wide, 0.1).unwrap();
    for (result, elements) in [
        (clipped, [1.1, 1.7]),
        (clipped_at_once, [1.1, 1.7]),
        (chosen, [1.0, 0.1]),
        (chosen_at_once, [1.0, 0.1]),
    ] {
        assert_eq!(result.to_vec::<f64>().unwrap(), elements);
    }
    let bytes = Tensor::from_slice(&[1u8, 2], &[2]).unwrap();
    let error = bytes.clone().add(300).unwrap_err();
    assert_eq!(error.kind().class(), ErrorClass::Range);
    let traced = jit(|x: Expr| x + 300).call(bytes).unwrap_err();
    assert_eq!(traced.kind().class(), ErrorClass::Range);
    let text = "add: the integer 300 beside u8[2], an integer from 0 to 255 is required";
    assert!(traced.to_string().starts_with(text), "{traced}");
}
