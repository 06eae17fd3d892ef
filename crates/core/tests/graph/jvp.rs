//! The nodes that forward mode adds, as text, and what it refuses.

use defn_core::builder::{BuildControl, BuildCreate, BuildElementwise, BuildReduce};
use defn_core::graph::{Graph, Value};
use defn_core::jvp::jvp_region;
use defn_core::region::Region;
use defn_core::{Axes, DType, ErrorKind, Result, Shape, TensorType};

fn named(sizes: &[usize], names: &[Option<&str>]) -> TensorType {
    TensorType::new(DType::F32, Shape::named(sizes, names).unwrap()).unwrap()
}

fn region(types: &[TensorType], build: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>) -> Region {
    let mut graph = Graph::new();
    let inputs: Vec<Value> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = build(&mut graph, &inputs).unwrap();
    Region::new(graph, types.to_vec(), types.len(), results.into())
}

#[test]
fn the_value_is_used_for_the_tangent() {
    let program = region(&[named(&[3], &[None])], |g, x| Ok(vec![g.exp(x[0])?]));
    insta::assert_snapshot!(jvp_region(&program, &[0], &[0]).unwrap().to_text(), @r#"
    defn-ir 1
    (f32[3], f32[3]) {
      %0 = parameter {index: 0} : f32[3]
      %1 = parameter {index: 1} : f32[3]
      %2 = exp %0 : f32[3]
      %3 = multiply %1 %2 : f32[3]
      return %2 %3
    }
    "#);
}

#[test]
fn names_are_those_of_the_value_only() {
    let types = [named(&[2, 3], &[Some("row"), Some("col")]), named(&[3], &[Some("col")])];
    let program = region(&types, |g, x| Ok(vec![g.multiply(x[0], x[1])?]));
    insta::assert_snapshot!(jvp_region(&program, &[1], &[0]).unwrap().to_text(), @r#"
    defn-ir 1
    (f32["row": 2]["col": 3], f32["col": 3], f32[3]) {
      %0 = parameter {index: 0} : f32["row": 2]["col": 3]
      %1 = parameter {index: 1} : f32["col": 3]
      %2 = parameter {index: 2} : f32[3]
      %3 = multiply %0 %1 : f32["row": 2]["col": 3]
      %4 = reshape %0 : f32[2][3]
      %5 = multiply %4 %2 : f32[2][3]
      return %3 %5
    }
    "#);
}

#[test]
fn nothing_is_added_for_results_and_inputs_without_tangents() {
    let types = [named(&[3], &[None]), named(&[3], &[None])];
    let program = region(&types, |g, x| {
        let (sum, product) = (g.add(x[0], x[1])?, g.multiply(x[0], x[1])?);
        Ok(vec![g.sum(sum, Axes::All, false)?, product])
    });
    insta::assert_snapshot!(jvp_region(&program, &[0], &[0]).unwrap().to_text(), @r#"
    defn-ir 1
    (f32[3], f32[3], f32[3]) {
      %0 = parameter {index: 0} : f32[3]
      %1 = parameter {index: 1} : f32[3]
      %2 = parameter {index: 2} : f32[3]
      %3 = add %0 %1 : f32[3]
      %4 = multiply %0 %1 : f32[3]
      %5 = sum %3 {axes: [0], keep_axes: false} : f32
      %6 = sum %2 {axes: [0], keep_axes: false} : f32
      return %5 %4 %6
    }
    "#);
    // Zeros for a result that does not depend on the input.
    let program = region(&types, |g, x| Ok(vec![g.sin(x[1])?]));
    insta::assert_snapshot!(jvp_region(&program, &[0], &[0]).unwrap().to_text(), @r#"
    defn-ir 1
    (f32[3], f32[3], f32[3]) {
      %0 = parameter {index: 1} : f32[3]
      %1 = sin %0 : f32[3]
      %2 = constant {value: 0.0} : f32
      %3 = broadcast %2 {shape: [3], axes: []} : f32[3]
      return %1 %3
    }
    "#);
}

#[test]
fn an_op_without_a_derivative_is_refused_only_on_the_way() {
    let types = [named(&[3], &[None])];
    let program = region(&types, |g, x| {
        let whole = g.as_type(x[0], DType::S32)?;
        let two = g.constant(DType::S32, 2)?;
        Ok(vec![g.quotient(whole, two)?, g.sin(x[0])?])
    });
    assert!(jvp_region(&program, &[0], &[1]).is_ok());
    let error = jvp_region(&program, &[0], &[0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoGradient { op: "quotient", .. }), "{error}");
    let stopped = region(&types, |g, x| {
        let whole = g.stop_grad(x[0])?;
        let whole = g.as_type(whole, DType::S32)?;
        let two = g.constant(DType::S32, 2)?;
        Ok(vec![g.quotient(whole, two)?])
    });
    assert!(jvp_region(&stopped, &[0], &[0]).is_ok());
}
