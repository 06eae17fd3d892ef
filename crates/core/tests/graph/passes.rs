//! Tests of each pass, from text to text.

use std::sync::Arc;

use crate::common::scalars;
use defn_core::builder::{BuildCreate, BuildElementwise, BuildShape, Builder};
use defn_core::graph::{Graph, Value};
use defn_core::op::{BinaryOp, Op};
use defn_core::region::Region;
use defn_core::shape::Axes;
use defn_core::{DType, Result, Shape, TensorType, pass, verify};
use insta::assert_snapshot;

fn parse(text: &str) -> Region {
    verify::set_always(true);
    Region::from_text(&format!("defn-ir 1\n{text}")).unwrap()
}

fn dce(text: &str) -> String {
    pass::dce(&parse(text)).unwrap().to_text()
}

fn cse(text: &str) -> String {
    pass::cse(&parse(text)).unwrap().to_text()
}

fn fold(text: &str) -> String {
    pass::fold(&parse(text), &scalars()).unwrap().to_text()
}

fn simplify(text: &str) -> String {
    pass::simplify(&parse(text), &scalars()).unwrap().to_text()
}

fn expand(text: &str) -> String {
    pass::expand(&parse(text), &scalars()).unwrap().to_text()
}

#[test]
fn products_read_transposed_matrices_as_they_lie() {
    let text = "(f32[30][4], f32[5][30][7]) {
        %0 = parameter {index: 0} : f32[30][4]
        %1 = parameter {index: 1} : f32[5][30][7]
        %2 = transpose %0 {axes: [1, 0]} : f32[4][30]
        %3 = transpose %1 {axes: [1, 0, 2]} : f32[30][5][7]
        %4 = dot %2 %3 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[4][5][7]
        return %4
    }";
    assert_snapshot!(expand(text), @r"
    defn-ir 1
    (f32[30][4], f32[5][30][7]) {
      %0 = parameter {index: 0} : f32[30][4]
      %1 = parameter {index: 1} : f32[5][30][7]
      %2 = dot %0 %1 {contract_a: [0], batch_a: [], contract_b: [1], batch_b: []} : f32[4][5][7]
      return %2
    }
    ");
    // The axes of the result would have another order, or those of the batch.
    for (axes, shape, rest) in [
        (
            "[1, 2, 0]",
            "[30][7][5]",
            "contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[4][7][5]",
        ),
        (
            "[1, 0, 2]",
            "[30][5][7]",
            "contract_a: [], batch_a: [0], contract_b: [], batch_b: [0]} : f32[30][4][5][7]",
        ),
    ] {
        let left = if rest.starts_with("contract_a: []") { "%0" } else { "%2" };
        let text = format!(
            "(f32[30][4], f32[5][30][7]) {{
                %0 = parameter {{index: 0}} : f32[30][4]
                %1 = parameter {{index: 1}} : f32[5][30][7]
                %2 = transpose %0 {{axes: [1, 0]}} : f32[4][30]
                %3 = transpose %1 {{axes: {axes}}} : f32{shape}
                %4 = dot {left} %3 {{{rest}
                return %4
            }}"
        );
        assert!(expand(&text).contains(&format!("transpose %1 {{axes: {axes}}}")), "{text}");
    }
    // The order of additions is that of the matrix.
    let vector = "(f32[30][4], f32[30]) {
        %0 = parameter {index: 0} : f32[30][4]
        %1 = parameter {index: 1} : f32[30]
        %2 = transpose %0 {axes: [1, 0]} : f32[4][30]
        %3 = dot %2 %1 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[4]
        return %3
    }";
    assert_eq!(expand(vector), parse(vector).to_text());
}

#[test]
fn dce_keeps_effects_and_the_numbers_of_inputs() {
    let text = "(f32, f32, f32) {
        %0 = parameter {index: 0} : f32
        %1 = parameter {index: 1} : f32
        %2 = parameter {index: 2} : f32
        %3 = sin %0 : f32
        %4 = cos %1 : f32
        %5 = hook %4 {slot: 1, name: none} : f32
        %6 = hook %4 {slot: 0, name: none} : f32
        %7 = sin %2 : f32
        return %7
    }";
    assert_snapshot!(dce(text), @r"
    defn-ir 1
    (f32, f32, f32) {
      %0 = parameter {index: 1} : f32
      %1 = parameter {index: 2} : f32
      %2 = cos %0 : f32
      %3 = hook %2 {slot: 1, name: none} : f32
      %4 = hook %2 {slot: 0, name: none} : f32
      %5 = sin %1 : f32
      return %5
    }
    ");
}

#[test]
fn cse_merges_equal_regions_and_no_effects() {
    let branch = "branch (; f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            return %1
        }";
    let text = format!(
        "(f32) {{
        %0 = parameter {{index: 0}} : f32
        %1 = sin %0 : f32
        %2 = sin %0 : f32
        %3 = cond %1 %0 : f32 {branch} {branch}
        %4 = cond %2 %0 : f32 {branch} {branch}
        %5 = hook %3 {{slot: 0, name: none}} : f32
        %6 = hook %4 {{slot: 0, name: none}} : f32
        %7 = add %5 %6 : f32
        return %7
    }}"
    );
    assert_snapshot!(cse(&text), @r"
    defn-ir 1
    (f32) {
      %0 = parameter {index: 0} : f32
      %1 = sin %0 : f32
      %2 = cond %1 %0 : f32
        branch (; f32) {
          %0 = parameter {index: 0} : f32
          %1 = sin %0 : f32
          return %1
        }
        branch (; f32) {
          %0 = parameter {index: 0} : f32
          %1 = sin %0 : f32
          return %1
        }
      %3 = hook %2 {slot: 0, name: none} : f32
      %4 = hook %2 {slot: 0, name: none} : f32
      %5 = add %3 %4 : f32
      return %5
    }
    ");
}

#[test]
fn folding_goes_through_the_backend_and_through_broadcasts() {
    let text = "() {
        %0 = constant {value: 2.0} : f32
        %1 = constant {value: 0.1} : f64
        %2 = multiply %0 %1 : f64
        %3 = as_type %2 : f32
        %4 = broadcast %3 {shape: [2], axes: []} : f32[\"x\": 2]
        %5 = add %4 %0 : f32[\"x\": 2]
        %6 = sin %0 : f32
        return %5 %6
    }";
    assert_snapshot!(fold(text), @r#"
    defn-ir 1
    () {
      %0 = constant {value: 2.0} : f32
      %1 = constant {value: 0.1} : f64
      %2 = constant {value: 0.2} : f64
      %3 = constant {value: 0.20000000298023224} : f32
      %4 = broadcast %3 {shape: [2], axes: []} : f32["x": 2]
      %5 = constant {value: 2.200000047683716} : f32
      %6 = broadcast %5 {shape: [2], axes: []} : f32["x": 2]
      %7 = sin %0 : f32
      return %6 %7
    }
    "#);
}

#[test]
fn known_branches_are_inlined_and_loops_without_a_trip_vanish() {
    let text = "(f32, u8) {
        %0 = parameter {index: 0} : f32
        %1 = parameter {index: 1} : u8
        %2 = constant {value: 1} : s32
        %3 = constant {value: 2} : s32
        %4 = less %3 %2 : bool
        %5 = cond %4 %1 %2 %0 : f32
          branch (; f32) {
            %0 = parameter {index: 0} : f32
            %1 = tan %0 : f32
            return %1
          }
          branch (; f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            return %1
          }
          branch (; f32) {
            %0 = parameter {index: 0} : f32
            %1 = hook %0 {slot: 0, name: none} : f32
            %2 = constant {value: 0.0} : f32
            %3 = add %1 %2 : f32
            return %3
          }
          branch (; f32) {
            %0 = parameter {index: 0} : f32
            return %0
          }
        %6 = while %5 {state: 1, trips: none} : f32
          cond (f32) {
            %0 = parameter {index: 0} : f32
            %1 = constant {value: -0.0} : f32
            return %1
          }
          body (f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            return %1
          }
        %7 = cond %2 %6 : f32
          branch (; f32) {
            %0 = parameter {index: 0} : f32
            %1 = cos %0 : f32
            return %1
          }
          branch (; f32) {
            %0 = parameter {index: 0} : f32
            return %0
          }
        return %7
    }";
    assert_snapshot!(simplify(text), @r"
    defn-ir 1
    (f32, u8) {
      %0 = parameter {index: 0} : f32
      %1 = parameter {index: 1} : u8
      %2 = cond %1 %0 : f32
        branch (; f32) {
          %0 = parameter {index: 0} : f32
          %1 = sin %0 : f32
          return %1
        }
        branch (; f32) {
          %0 = parameter {index: 0} : f32
          %1 = hook %0 {slot: 0, name: none} : f32
          return %1
        }
      %3 = cos %2 : f32
      return %3
    }
    ");
}

/// The text of a loop over a counter and a float, with the counter's type and start, the condition and the
/// step.
fn counting(dtype: &str, start: &str, compare: &str, limit: &str, step: (&str, &str)) -> String {
    let (op, by) = step;
    format!(
        "(f32, {dtype}) {{
        %0 = parameter {{index: 0}} : f32
        %1 = constant {{value: {start}}} : {dtype}
        %2 = parameter {{index: 1}} : {dtype}
        %3 = while %1 %0 %2 {{state: 2, trips: none}} : {dtype}, f32
          cond ({dtype}, f32; {dtype}) {{
            %0 = parameter {{index: 0}} : {dtype}
            %1 = constant {{value: {limit}}} : {dtype}
            %2 = {compare} : bool
            return %2
          }}
          body ({dtype}, f32; {dtype}) {{
            %0 = parameter {{index: 0}} : {dtype}
            %1 = constant {{value: {by}}} : {dtype}
            %2 = {op} %0 %1 : {dtype}
            %3 = parameter {{index: 1}} : f32
            %4 = sin %3 : f32
            return %2 %4
          }}
        return %3.1
    }}"
    )
}

#[test]
fn trips_of_loops_that_count_are_counted() {
    let trips = |dtype, start, compare, limit, step| {
        let text = simplify(&counting(dtype, start, compare, limit, step));
        let found = text.split("trips: ").nth(1).map(|rest| rest.split('}').next().unwrap().to_owned());
        found.unwrap_or_else(|| "0".to_owned())
    };
    let (up, down) = (("add", "1"), ("subtract", "1"));
    assert_eq!(trips("s32", "0", "less %0 %1", "10", up), "10");
    assert_eq!(trips("s32", "0", "less_equal %0 %1", "10", up), "11");
    assert_eq!(trips("s32", "0", "greater %1 %0", "10", ("add", "3")), "4");
    assert_eq!(trips("s32", "0", "greater_equal %1 %0", "9", ("add", "3")), "4");
    assert_eq!(trips("s32", "10", "greater %0 %1", "0", down), "10");
    assert_eq!(trips("s64", "10", "greater_equal %0 %1", "-1", ("add", "-2")), "6");
    assert_eq!(trips("u8", "0", "less %0 %1", "250", ("add", "5")), "50");
    assert_eq!(trips("s32", "10", "less %0 %1", "10", up), "0");
    // The counter wraps, moves away from the limit, is compared otherwise, or is no integer.
    for (dtype, start, compare, limit, step) in [
        ("u8", "0", "less %0 %1", "255", ("add", "2")),
        ("u8", "0", "less_equal %0 %1", "255", up),
        ("s32", "0", "less %0 %1", "10", down),
        ("s32", "0", "less %0 %1", "10", ("add", "0")),
        ("s32", "0", "not_equal %0 %1", "10", up),
        ("s32", "0", "less %0 %0", "10", up),
        ("f32", "0.0", "less %0 %1", "10.0", ("add", "1.0")),
        ("s32", "1", "less %0 %1", "10", ("multiply", "2")),
    ] {
        assert_eq!(
            trips(dtype, start, compare, limit, step),
            "none",
            "{dtype} {start} {compare} {limit} {step:?}"
        );
    }
}

#[test]
fn a_condition_with_an_effect_is_seen_once() {
    let text = "(f32) {
        %0 = parameter {index: 0} : f32
        %1 = while %0 {state: 1, trips: 0} : f32
          cond (f32) {
            %0 = parameter {index: 0} : f32
            %1 = hook %0 {slot: 0, name: none} : f32
            %2 = constant {value: 0} : u8
            return %2
          }
          body (f32) {
            %0 = parameter {index: 0} : f32
            return %0
          }
        return %1
    }";
    assert!(simplify(text).contains("while"));
}

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

/// The nodes that a function adds to x: f32[2], n: s32[2] and y: f32[2].
fn built(body: impl FnOnce(&mut Graph, Value, Value, Value) -> Result<Value>) -> String {
    let mut graph = Graph::new();
    let inputs = vec![ty(DType::F32, &[2]), ty(DType::S32, &[2]), ty(DType::F32, &[2])];
    let values: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let result = body(&mut graph, values[0], values[1], values[2]).unwrap();
    let region = Region::new(graph, inputs, 3, [result].into_iter().collect());
    let text = pass::dce(&region).unwrap().to_text();
    let lines = text.lines().skip(2).filter(|line| !line.contains("= parameter") && *line != "}");
    let lines: Vec<&str> = lines.map(str::trim).collect();
    lines.join("; ")
}

#[test]
fn identities_return_the_operand() {
    type Case = fn(&mut Graph, Value, Value, Value) -> Result<Value>;
    let same: [Case; 14] = [
        |g, x, _, _| g.add(x, 0),
        |g, x, _, _| g.add(0, x),
        |g, x, _, _| g.subtract(x, 0),
        |g, x, _, _| g.multiply(x, 1),
        |g, x, _, _| g.multiply(1.0, x),
        |g, x, _, _| g.divide(x, 1),
        |g, x, _, _| g.pow(x, 1),
        |g, x, _, _| g.as_type(x, DType::F32),
        |g, x, _, _| g.transpose(x, [0]),
        |g, x, _, _| g.reshape_to(x, Shape::new(&[2])),
        |g, x, _, _| g.reverse(x, Axes::List(Vec::new())),
        |g, x, _, _| g.concatenate(&[x], 0),
        |g, x, _, _| {
            let wide = g.as_type(x, DType::F64)?;
            g.as_type(wide, DType::F32)
        },
        |g, x, _, _| {
            let zeros = g.full(Shape::new(&[2]), DType::F32, 0.0)?;
            g.add(x, zeros)
        },
    ];
    for (position, case) in same.into_iter().enumerate() {
        assert_eq!(built(case), "return %0", "case {position}");
    }
    // The result's type differs from the operand's.
    assert_snapshot!(built(|g, _, n, _| g.divide(n, 1)), @"%1 = as_type %0 : f32[2]; return %1");
    assert_snapshot!(built(|g, _, n, _| g.add(n, 0.0)), @"%1 = as_type %0 : f32[2]; return %1");
}

#[test]
fn negated_sums_and_inverted_products_become_one_op() {
    assert_snapshot!(built(|g, x, _, y| {
        let minus = g.subtract(0.0, y)?;
        g.add(x, minus)
    }), @"%2 = subtract %0 %1 : f32[2]; return %2");
    assert_snapshot!(built(|g, x, _, y| {
        let inverse = g.divide(1, y)?;
        g.multiply(inverse, x)
    }), @"%2 = divide %0 %1 : f32[2]; return %2");
    // 1 / n is computed in f32, and so is x * (1 / n).
    assert_snapshot!(built(|g, x, n, _| {
        let inverse = g.divide(1, n)?;
        g.multiply(x, inverse)
    }), @"%2 = divide %0 %1 : f32[2]; return %2");
    // The narrow difference wraps, that of the wide types does not.
    assert_snapshot!(built(|g, _, n, _| {
        let narrow = g.as_type(n, DType::U8)?;
        let minus = g.subtract(0, narrow)?;
        g.add(n, minus)
    }), @"%1 = as_type %0 : u8[2]; %2 = constant {value: 0} : u8; %3 = subtract %2 %1 : u8[2]; %4 = add %0 %3 : s32[2]; return %4");
}

#[test]
fn what_would_differ_stays() {
    type Case = fn(&mut Graph, Value, Value, Value) -> Result<Value>;
    let unchanged: [(Case, &str); 8] = [
        (|g, x, _, _| g.multiply(x, 0), "multiply"),
        (|g, x, _, _| g.subtract(x, -0.0), "subtract"),
        (|g, x, _, _| g.subtract(0, x), "subtract"),
        (|g, x, _, _| g.divide(1, x), "divide"),
        (|g, x, _, _| g.pow(x, 0), "pow"),
        // The constant makes the result larger.
        (
            |g, x, _, _| {
                let zeros = g.full(Shape::new(&[3, 2]), DType::F32, 0.0)?;
                g.add(x, zeros)
            },
            "add",
        ),
        // The constant adds a name.
        (
            |g, x, _, _| {
                let zeros = g.full(Shape::named(&[2], &[Some("x")])?, DType::F32, 0.0)?;
                g.add(x, zeros)
            },
            "add",
        ),
        // The intermediate type is narrower.
        (
            |g, x, _, _| {
                let narrow = g.as_type(x, DType::F16)?;
                g.as_type(narrow, DType::F32)
            },
            "as_type",
        ),
    ];
    for (case, op) in unchanged {
        let text = built(case);
        assert!(text.contains(&format!(" = {op} ")), "{op}: {text}");
    }
}

#[test]
fn parameters_and_constants_are_one_value_each() {
    let mut graph = Graph::new();
    let scalar = |g: &mut Graph, number: f64| g.constant(DType::F32, number).unwrap();
    assert_eq!(scalar(&mut graph, 1.5), scalar(&mut graph, 1.5));
    assert_ne!(scalar(&mut graph, 0.0), scalar(&mut graph, -0.0));
    assert_eq!(scalar(&mut graph, f64::NAN), scalar(&mut graph, f64::NAN));
    let parameter = Op::Parameter { index: 0, ty: ty(DType::F32, &[]) };
    let first = graph.emit_one(parameter.clone(), &[]).unwrap();
    assert_eq!(graph.emit_one(parameter, &[]).unwrap(), first);
}

#[test]
fn long_chains_and_shared_regions_cost_what_they_are() {
    let body = Arc::new(parse(
        "(f32) {
            %0 = parameter {index: 0} : f32
            %1 = sin %0 : f32
            return %1
        }",
    ));
    let mut graph = Graph::new();
    let mut x = graph.parameter(0, ty(DType::F32, &[]));
    for _ in 0..20_000 {
        let rules = defn_core::op::CustomRules::Reverse(body.clone());
        let op = defn_core::op::CustomGradOp { values: 1, inputs: 1, rules };
        x = graph.emit_one(Op::CustomGrad(op), &[x, x]).unwrap();
        x = graph.emit_one(Op::Binary(BinaryOp::MAX), &[x, x]).unwrap();
    }
    let region = Region::new(graph, vec![ty(DType::F32, &[])], 1, [x].into_iter().collect());
    let simple = pass::simplify(&region, &scalars()).unwrap();
    assert!(simple == region);
}

/// A loop, inside another one if `is_nested`, in which `rows` rows are multiplied with a matrix that is read across.
fn reading_across(rows: usize, trips: &str, is_nested: bool) -> String {
    let inner = |indent: &str| {
        format!(
            "%0 = parameter {{index: 0}} : f32[{rows}][64]
            %1 = parameter {{index: 1}} : f32[64][64]
            {indent} = while %0 %1 {{state: 1, trips: {trips}}} : f32[{rows}][64]
              cond (f32[{rows}][64]; f32[64][64]) {{
                %0 = parameter {{index: 0}} : f32[{rows}][64]
                %1 = slice %0 {{starts: [0, 0], lengths: [1, 1], strides: [1, 1]}} : f32[1][1]
                %2 = reshape %1 : f32
                return %2
              }}
              body (f32[{rows}][64]; f32[64][64]) {{
                %0 = parameter {{index: 0}} : f32[{rows}][64]
                %1 = parameter {{index: 1}} : f32[64][64]
                %2 = dot %0 %1 {{contract_a: [1], batch_a: [], contract_b: [1], batch_b: []}} : f32[{rows}][64]
                return %2
              }}"
        )
    };
    if !is_nested {
        return format!("(f32[{rows}][64], f32[64][64]) {{ {} return %2 }}", inner("%2"));
    }
    format!(
        "(f32[{rows}][64], f32[64][64]) {{
            %0 = parameter {{index: 0}} : f32[{rows}][64]
            %1 = parameter {{index: 1}} : f32[64][64]
            %2 = while %0 %1 {{state: 1, trips: none}} : f32[{rows}][64]
              cond (f32[{rows}][64]; f32[64][64]) {{
                %0 = parameter {{index: 0}} : f32[{rows}][64]
                %1 = slice %0 {{starts: [0, 0], lengths: [1, 1], strides: [1, 1]}} : f32[1][1]
                %2 = reshape %1 : f32
                return %2
              }}
              body (f32[{rows}][64]; f32[64][64]) {{ {} return %2 }}
            return %2
        }}",
        inner("%2")
    )
}

#[test]
fn loops_read_matrices_that_were_transposed_before_them() {
    let hoisted = |text: &str| pass::hoist(&Arc::new(parse(text))).unwrap().to_text();
    for is_nested in [false, true] {
        let text = hoisted(&reading_across(4, "none", is_nested));
        assert_eq!(text.matches("transpose").count(), 1, "{text}");
        assert!(text.find("transpose") < text.find("while"), "{text}");
        assert!(text.contains("contract_b: [0]"), "{text}");
    }
    // A single trip, so many rows that the order of the matrix does not matter, and one: its sums have another order.
    for (rows, trips) in [(4, "1"), (400, "none"), (1, "none")] {
        let text = hoisted(&reading_across(rows, trips, false));
        assert!(!text.contains("transpose") && text.contains("contract_b: [1]"), "{text}");
    }
}

/// A loop that uses an array of zeros from outside, as `used` says.
fn using_zeros(used: &str) -> String {
    format!(
        "(f32[64]) {{
            %0 = parameter {{index: 0}} : f32[64]
            %1 = constant {{value: 0.0}} : f32
            %2 = broadcast %1 {{shape: [64], axes: []}} : f32[64]
            %3 = while %0 %2 {{state: 1, trips: none}} : f32[64]
              cond (f32[64]; f32[64]) {{
                %0 = parameter {{index: 0}} : f32[64]
                %1 = slice %0 {{starts: [0], lengths: [1], strides: [1]}} : f32[1]
                %2 = reshape %1 : f32
                return %2
              }}
              body (f32[64]; f32[64]) {{
                %0 = parameter {{index: 0}} : f32[64]
                %1 = parameter {{index: 1}} : f32[64]
                {used}
                return %3
              }}
            return %3
        }}"
    )
}

#[test]
fn loops_make_equal_elements_that_they_read_one_by_one() {
    let hoisted = |used: &str| pass::hoist(&Arc::new(parse(&using_zeros(used)))).unwrap().to_text();
    let joined = "%2 = concatenate %0 %1 {axis: 0} : f32[128]
        %3 = slice %2 {starts: [32], lengths: [64], strides: [1]} : f32[64]";
    for used in ["%2 = exp %0 : f32[64] %3 = add %2 %1 : f32[64]", joined] {
        let text = hoisted(used);
        assert!(text.find("while") < text.find("broadcast"), "{text}");
        assert!(text.contains("body (f32[64])"), "{text}");
    }
    // A product would need them in memory, in each trip.
    let dot = "%2 = dot %1 %0 {contract_a: [0], batch_a: [], contract_b: [0], batch_b: []} : f32";
    let text = hoisted(&format!("{dot} %3 = add %0 %2 : f32[64]"));
    assert!(text.find("broadcast") < text.find("while"), "{text}");
}
