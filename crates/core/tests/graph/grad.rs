//! The nodes that the reverse pass appends, as text.

use defn_core::builder::{BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, BuildShape};
use defn_core::grad::value_and_grad;
use defn_core::graph::{Graph, Value};
use defn_core::region::Region;
use defn_core::{Axes, DType, Location, Result, Shape, TensorType};

fn named(sizes: &[usize], names: &[Option<&str>]) -> TensorType {
    TensorType::new(DType::F32, Shape::named(sizes, names).unwrap()).unwrap()
}

fn region(types: &[TensorType], build: impl FnOnce(&mut Graph, &[Value]) -> Result<Value>) -> Region {
    let mut graph = Graph::new();
    let inputs: Vec<Value> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let result = build(&mut graph, &inputs).unwrap();
    Region::new(graph, types.to_vec(), types.len(), [result].into_iter().collect())
}

fn gradient(types: &[TensorType], build: impl FnOnce(&mut Graph, &[Value]) -> Result<Value>) -> String {
    let wrt: Vec<usize> = (0..types.len()).collect();
    value_and_grad(&region(types, build), 0, &wrt).unwrap().to_text()
}

#[test]
fn the_forward_result_is_reused() {
    insta::assert_snapshot!(gradient(&[named(&[3], &[None])], |g, x| g.exp(x[0])), @r#"
    defn-ir 1
    (f32[3]) {
      %0 = parameter {index: 0} : f32[3]
      %1 = exp %0 : f32[3]
      return %1 %1
    }
    "#);
}

#[test]
fn names_are_left_out_and_come_back() {
    let types = [named(&[2, 3], &[Some("row"), Some("col")]), named(&[3], &[Some("col")])];
    insta::assert_snapshot!(gradient(&types, |g, x| g.multiply(x[0], x[1])), @r#"
    defn-ir 1
    (f32["row": 2]["col": 3], f32["col": 3]) {
      %0 = parameter {index: 0} : f32["row": 2]["col": 3]
      %1 = parameter {index: 1} : f32["col": 3]
      %2 = multiply %0 %1 : f32["row": 2]["col": 3]
      %3 = constant {value: 1.0} : f32
      %4 = broadcast %3 {shape: [2, 3], axes: []} : f32[2][3]
      %5 = reshape %0 : f32[2][3]
      %6 = reshape %1 : f32[3]
      %7 = multiply %4 %6 : f32[2][3]
      %8 = sum %5 {axes: [0], keep_axes: false} : f32[3]
      %9 = reshape %7 : f32["row": 2]["col": 3]
      %10 = reshape %8 : f32["col": 3]
      return %2 %9 %10
    }
    "#);
}

#[test]
fn a_product_needs_no_transpose() {
    let types = [named(&[2, 3], &[None, None]), named(&[3, 4], &[None, None])];
    insta::assert_snapshot!(gradient(&types, |g, x| g.dot(x[0], x[1])), @r#"
    defn-ir 1
    (f32[2][3], f32[3][4]) {
      %0 = parameter {index: 0} : f32[2][3]
      %1 = parameter {index: 1} : f32[3][4]
      %2 = dot %0 %1 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[2][4]
      %3 = constant {value: 1.0} : f32
      %4 = broadcast %3 {shape: [2, 4], axes: []} : f32[2][4]
      %5 = dot %4 %1 {contract_a: [1], batch_a: [], contract_b: [1], batch_b: []} : f32[2][3]
      %6 = dot %0 %4 {contract_a: [0], batch_a: [], contract_b: [0], batch_b: []} : f32[3][4]
      return %2 %5 %6
    }
    "#);
}

#[test]
fn products_of_bf16_multiply_cotangents_in_bf16() {
    let products = |dtype: DType| -> Vec<String> {
        let types = [[4, 3], [3, 2]].map(|sizes| TensorType::new(dtype, Shape::new(&sizes)).unwrap());
        let text = gradient(&types, |g, x| {
            let product = g.dot(x[0], x[1])?;
            g.tanh(product)
        });
        text.lines().filter(|line| line.contains(" = dot ")).map(|line| line.to_owned()).collect()
    };
    let bf16 = products(DType::BF16);
    assert_eq!(bf16.len(), 3);
    assert!(bf16.iter().all(|line| line.contains(" : bf16[")), "{bf16:?}");
    // In f16 a cotangent could be beyond the largest number.
    let f16 = products(DType::F16);
    assert_eq!(f16.iter().filter(|line| line.contains(" : f32[")).count(), 2, "{f16:?}");
}

#[test]
fn constants_get_nothing_computed() {
    let types = [named(&[2], &[None])];
    insta::assert_snapshot!(gradient(&types, |g, x| {
        let zeros = g.full(Shape::new(&[2]), DType::F32, 0)?;
        let active = g.max(x[0], zeros)?;
        g.sum(active, Axes::All, false)
    }), @r#"
    defn-ir 1
    (f32[2]) {
      %0 = parameter {index: 0} : f32[2]
      %1 = constant {value: 0.0} : f32
      %2 = broadcast %1 {shape: [2], axes: []} : f32[2]
      %3 = max %0 %2 : f32[2]
      %4 = sum %3 {axes: [0], keep_axes: false} : f32
      %5 = constant {value: 1.0} : f32
      %6 = broadcast %5 {shape: [2], axes: []} : f32[2]
      %7 = equal %0 %2 : bool[2]
      %8 = constant {value: 0.5} : f32
      %9 = multiply %6 %8 : f32[2]
      %10 = greater %0 %2 : bool[2]
      %11 = select %10 %6 %1 : f32[2]
      %12 = select %7 %9 %11 : f32[2]
      return %4 %12
    }
    "#);
}

#[test]
fn a_refusal_names_the_line() {
    let types = [TensorType::new(DType::S32, Shape::new(&[2])).unwrap()];
    let program = region(&types, |g, x| {
        g.set_location(Some(Location { file: "model.py".into(), line: 7 }));
        let whole = g.quotient(x[0], 2)?;
        g.reshape_to(whole, Shape::new(&[2, 1]))
    });
    let error = value_and_grad(&program, 0, &[0]).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    quotient: no derivative passes through it; use divide, or cut the gradient with stop_grad or custom_grad
      at model.py:7
    "#);
}
