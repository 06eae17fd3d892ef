//! Both text forms, for a graph with each form of op.

use std::sync::Arc;

use defn_core::builder::{
    BuildCollective, BuildControl, BuildCreate, BuildElementwise, BuildLinalg, BuildReduce, BuildShape,
    Builder,
};
use defn_core::graph::{Graph, Value, Values};
use defn_core::mesh::Mesh;
use defn_core::op::{
    AllReduceOp, BinaryOp, CondOp, CustomGradOp, CustomRules, HookOp, Literal, Op, Starts, UserBlockOp,
    WhileOp,
};
use defn_core::print::display;
use defn_core::region::Region;
use defn_core::{DType, Location, Number, Result, Scalar, Shape, TensorType};
use insta::assert_snapshot;
use smallvec::{SmallVec, smallvec};

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

/// A region with these inputs, the last `captures` of which are captures.
fn region(
    inputs: &[TensorType],
    captures: usize,
    body: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>,
) -> Region {
    let mut graph = Graph::new();
    let values: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = body(&mut graph, &values).unwrap();
    Region::new(graph, inputs.to_vec(), inputs.len() - captures, results.into_iter().collect())
}

fn shown(region: &Region) -> String {
    display(region, region.results())
}

/// The IR text, checked to parse back.
fn text(region: &Region) -> String {
    let text = region.to_text();
    assert!(Region::from_text(&text).unwrap() == *region, "{text}");
    text
}

#[test]
fn elementwise() {
    let region = region(&[ty(DType::S32, &[]), ty(DType::F32, &[2, 3])], 0, |g, v| {
        let a = g.negate(v[0])?;
        let b = g.sin(a)?;
        let c = g.add(b, v[1])?;
        let d = g.multiply(c, 2.5)?;
        let pred = g.greater(d, 0)?;
        let e = g.select(pred, d, v[0])?;
        let f = g.clip(e, -1, 1.0)?;
        Ok(vec![g.as_type(f, DType::F16)?])
    });
    assert_snapshot!(shown(&region), @r"
    parameter a:0           s32
    parameter d:1           f32[2][3]
    b = negate a            s32
    c = sin b               f32
    e = add c, d            f32[2][3]
    f = multiply e, 2.5     f32[2][3]
    g = greater f, 0.0      bool[2][3]
    h = select g, f, a      f32[2][3]
    i = clip h, -1.0, 1.0   f32[2][3]
    j = as_type i           f16[2][3]
    ");
    assert_snapshot!(text(&region), @r"
    defn-ir 1
    (s32, f32[2][3]) {
      %0 = parameter {index: 0} : s32
      %1 = parameter {index: 1} : f32[2][3]
      %2 = negate %0 : s32
      %3 = sin %2 : f32
      %4 = add %3 %1 : f32[2][3]
      %5 = constant {value: 2.5} : f32
      %6 = multiply %4 %5 : f32[2][3]
      %7 = constant {value: 0.0} : f32
      %8 = greater %6 %7 : bool[2][3]
      %9 = select %8 %6 %0 : f32[2][3]
      %10 = constant {value: -1.0} : f32
      %11 = constant {value: 1.0} : f32
      %12 = clip %9 %10 %11 : f32[2][3]
      %13 = as_type %12 : f16[2][3]
      return %13
    }
    ");
}

#[test]
fn letters_go_in_order_of_first_visit() {
    let region = region(&[ty(DType::S32, &[]), ty(DType::F32, &[])], 0, |g, v| {
        let unused = g.sin(v[0])?;
        g.cos(unused)?;
        let b = g.cos(v[1])?;
        Ok(vec![g.add(b, v[0])?])
    });
    assert_snapshot!(shown(&region), @r"
    parameter a:1   f32
    parameter c:0   s32
    b = cos a       f32
    d = add b, c    f32
    ");
}

#[test]
fn letters_go_on_with_two() {
    let region = region(&[ty(DType::F32, &[])], 0, |g, v| {
        let mut x = v[0];
        for _ in 0..703 {
            x = g.sin(x)?;
        }
        Ok(vec![x])
    });
    let lines = shown(&region);
    let starts: Vec<&str> = lines.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(starts[25..28], ["z", "aa", "ab"]);
    assert_eq!(starts[701..], ["zz", "aaa", "aab"]);
}

#[test]
fn creation() {
    let named = Shape::named(&[2, 2], &[Some("row"), None]).unwrap();
    let region = region(&[], 0, |g, _| {
        let literal = Literal::new(ty(DType::S16, &[2]), 258i16.to_ne_bytes().repeat(2));
        let a = g.literal(literal)?;
        let b = g.iota(named.clone(), DType::S32, Some("row".into()))?;
        let c = g.eye(named, DType::U8)?;
        let d = g.full(Shape::new(&[2]), DType::BF16, 0.1)?;
        let e = g.constant(DType::C64, Number::complex(1.0, -2.5))?;
        Ok(vec![a, b, c, d, e])
    });
    assert_snapshot!(shown(&region), @r"
    tensor a                     s16[2]
    b = iota 0                   s32[2][2]
    c = eye                      u8[2][2]
    d = broadcast 0.1, [2], []   bf16[2]
    e = constant 1.0-2.5i        c64
    ");
    assert_snapshot!(text(&region), @r#"
    defn-ir 1
    () {
      %0 = tensor {bytes: x"02010201"} : s16[2]
      %1 = iota {axis: 0} : s32["row": 2][2]
      %2 = eye : u8["row": 2][2]
      %3 = constant {value: 0.10009765625} : bf16
      %4 = broadcast %3 {shape: [2], axes: []} : bf16[2]
      %5 = constant {value: (1.0, -2.5)} : c64
      return %0 %1 %2 %4 %5
    }
    "#);
}

#[test]
fn shapes() {
    let x = TensorType::new(DType::F32, Shape::named(&[2, 3], &[Some("a \"b\""), None]).unwrap()).unwrap();
    let region = region(&[x, ty(DType::S32, &[])], 0, |g, v| {
        let a = g.transpose(v[0], [1, 0])?;
        let b = g.reverse(a, [1])?;
        let c = g.pad(b, 0.0, &[(1, 0, 2), (-1, 0, 0)])?;
        let d = g.reshape_to(c, Shape::new(&[8, 1]))?;
        let e = g.squeeze(d, [1])?;
        let f = g.concatenate(&[e, e], 0)?;
        let h = g.stack(&[f, f], 0, Some("pair".into()))?;
        let op = Op::Slice {
            starts: Starts::Static(smallvec![0, 2]),
            lengths: smallvec![2, 4],
            strides: smallvec![1, 2],
        };
        let i = g.emit_one(op, &[h])?;
        let op = Op::Slice { starts: Starts::Dynamic, lengths: smallvec![1, 2], strides: smallvec![1, 1] };
        let j = g.emit_one(op, &[i, v[1], v[1]])?;
        let k = g.emit_one(Op::PutSlice { starts: Starts::Static(smallvec![0, 0]) }, &[i, j])?;
        Ok(vec![g.emit_one(Op::PutSlice { starts: Starts::Dynamic }, &[k, j, v[1], v[1]])?])
    });
    assert_snapshot!(shown(&region), @r"
    parameter a:0                             f32[2][3]
    parameter j:1                             s32
    b = transpose a, [1, 0]                   f32[3][2]
    c = reverse b, [1]                        f32[3][2]
    d = pad c, 0.0, [(1, 0, 2), (-1, 0, 0)]   f32[8][1]
    e = reshape d                             f32[8][1]
    f = squeeze e, [1]                        f32[8]
    g = concatenate [f, f], 0                 f32[16]
    h = stack [g, g], 0                       f32[2][16]
    i = slice h, [0, 2], [2, 4], [1, 2]       f32[2][2]
    k = slice i, [j, j], [1, 2], [1, 1]       f32[1][2]
    l = put_slice i, k, [0, 0]                f32[2][2]
    m = put_slice l, k, [j, j]                f32[2][2]
    ");
    assert_snapshot!(text(&region), @r#"
    defn-ir 1
    (f32["a \"b\"": 2][3], s32) {
      %0 = parameter {index: 0} : f32["a \"b\"": 2][3]
      %1 = parameter {index: 1} : s32
      %2 = transpose %0 {axes: [1, 0]} : f32[3]["a \"b\"": 2]
      %3 = reverse %2 {axes: [1]} : f32[3]["a \"b\"": 2]
      %4 = constant {value: 0.0} : f32
      %5 = pad %3 %4 {config: [(1, 0, 2), (-1, 0, 0)]} : f32[8]["a \"b\"": 1]
      %6 = reshape %5 : f32[8][1]
      %7 = squeeze %6 {axes: [1]} : f32[8]
      %8 = concatenate %7 %7 {axis: 0} : f32[16]
      %9 = stack %8 %8 {axis: 0} : f32["pair": 2][16]
      %10 = slice %9 {starts: [0, 2], lengths: [2, 4], strides: [1, 2]} : f32["pair": 2][2]
      %11 = slice %10 %1 %1 {lengths: [1, 2], strides: [1, 1]} : f32["pair": 1][2]
      %12 = put_slice %10 %11 {starts: [0, 0]} : f32["pair": 2][2]
      %13 = put_slice %12 %11 %1 %1 : f32["pair": 2][2]
      return %13
    }
    "#);
}

#[test]
fn reductions_and_products() {
    let region = region(&[ty(DType::F32, &[4, 2, 3])], 0, |g, v| {
        let a = g.sum(v[0], [1], true)?;
        let b = g.argmax(v[0], Some((-1).into()), false, defn_core::op::TieBreak::High, DType::S32)?;
        let c = g.dot_general(a, [2], [0], v[0], [2], [0])?;
        let d = g.logsumexp(c, defn_core::shape::Axes::All, false, None)?;
        Ok(vec![d, b])
    });
    assert_snapshot!(shown(&region), @r#"
    parameter a:0                                                f32[4][2][3]
    b = sum a, axes: [1], keep_axes: true                        f32[4][1][3]
    c = dot b, [2], [0], a, [2], [0]                             f32[4][1][2]
    d = logsumexp c, axes: [0, 1, 2], keep_axes: false           f32
    e = argmax a, tie_break: "high", axis: 2, keep_axis: false   s32[4][2]
    "#);
    assert_snapshot!(text(&region), @r#"
    defn-ir 1
    (f32[4][2][3]) {
      %0 = parameter {index: 0} : f32[4][2][3]
      %1 = sum %0 {axes: [1], keep_axes: true} : f32[4][1][3]
      %2 = argmax %0 {tie_break: "high", axis: 2, keep_axis: false} : s32[4][2]
      %3 = dot %1 %0 {contract_a: [2], batch_a: [0], contract_b: [2], batch_b: [0]} : f32[4][1][2]
      %4 = logsumexp %3 {axes: [0, 1, 2], keep_axes: false} : f32
      return %4 %2
    }
    "#);
}

/// `while i < n: i, x = i + 1, x * y`, a cond, and ops that pass values on.
fn control() -> Region {
    let (i, x) = (ty(DType::S32, &[]), ty(DType::F32, &[2]));
    let inputs = [i.clone(), x.clone(), x.clone()];
    region(&[i.clone(), x.clone(), x], 1, |g, v| {
        let cond = region(&inputs, 1, |g, v| Ok(vec![g.less(v[0], 10)?]));
        let body = region(&inputs, 1, |g, v| Ok(vec![g.add(v[0], 1)?, g.multiply(v[1], v[2])?]));
        let op =
            WhileOp { state: 2, trips: None, snapshots: None, cond: Arc::new(cond), body: Arc::new(body) };
        let ended = g.emit(Op::While(op), &[v[0], v[1], v[2]])?;
        let branch = |op: BinaryOp| {
            Arc::new(region(&inputs[1..], 2, |g, v| {
                let both = g.binary(op, v[0], v[1])?;
                Ok(vec![g.sin(both)?])
            }))
        };
        let op = CondOp { branches: [branch(BinaryOp::ADD), branch(BinaryOp::DIVIDE)].into_iter().collect() };
        let chosen = g.emit_one(Op::Cond(op), &[ended[0], ended[1], v[2]])?;
        let rule = Arc::new(region(&inputs[1..2], 0, |_, v| Ok(v.to_vec())));
        let op = Op::CustomGrad(CustomGradOp { values: 1, inputs: 1, rules: CustomRules::Reverse(rule) });
        let ruled = g.emit_one(op, &[chosen, v[1]])?;
        let marked = g.mark(ruled, "here".into())?;
        let stopped = g.stop_grad(marked)?;
        let op = Op::Hook(HookOp { slot: 0, name: Some("loss".into()) });
        Ok(vec![g.emit_one(op, &[stopped])?])
    })
}

#[test]
fn blocks_of_the_users_and_calls() {
    let x = ty(DType::F32, &[2]);
    let pair = [x.clone(), x.clone()];
    let region = region(&pair, 1, |g, v| {
        let default = region(&pair, 1, |g, v| {
            let both = g.add(v[0], v[1])?;
            Ok(vec![g.sin(both)?])
        });
        let (name, attributes) = ("Softmax".into(), "axis=1, of=\"x\"".into());
        let op = UserBlockOp { name, attributes, slot: 1, args: 1, default: Arc::new(default) };
        let block = g.emit_one(Op::UserBlock(op), v)?;
        let called = g.runtime_call(0, &[ty(DType::S32, &[]), x.clone()], &[block])?;
        Ok(called.to_vec())
    });
    assert_snapshot!(shown(&region), @r#"
    parameter a:0                            f32[2]
    tensor b                                 f32[2]
    c = block Softmax a, b, axis=1, of="x"   f32[2]
    d = runtime_call [c], slot: 0            tuple2
    e = elem d, 0                            s32
    f = elem d, 1                            f32[2]
    "#);
    assert_snapshot!(text(&region), @r#"
    defn-ir 1
    (f32[2]; f32[2]) {
      %0 = parameter {index: 0} : f32[2]
      %1 = parameter {index: 1} : f32[2]
      %2 = block %0 %1 {name: "Softmax", attributes: "axis=1, of=\"x\"", args: 1, slot: 1} : f32[2]
        default (f32[2]; f32[2]) {
          %0 = parameter {index: 0} : f32[2]
          %1 = parameter {index: 1} : f32[2]
          %2 = add %0 %1 : f32[2]
          %3 = sin %2 : f32[2]
          return %3
        }
      %3 = runtime_call %2 {slot: 0} : s32, f32[2]
      return %3 %3.1
    }
    "#);
}

#[test]
fn exchanges() {
    let mesh = Mesh::new(vec![("data".into(), 2), ("model".into(), 2)]).unwrap();
    let region = region(&[ty(DType::F32, &[4])], 0, |g, v| {
        let (data, all) = (mesh.device_groups("test", &["data".into()])?, mesh.device_groups("test", &[])?);
        let a = g.all_reduce(v[0], AllReduceOp::Sum, &all)?;
        let b = g.all_gather(a, 0, &data)?;
        let c = g.reduce_scatter(b, 0, &all)?;
        let d = g.collective_permute(c, &[(0, 1)], &data)?;
        let at = g.mesh_index(&data)?;
        Ok(vec![g.add(d, at)?])
    });
    assert_snapshot!(shown(&region), @r#"
    parameter a:0                                                                                f32[4]
    b = all_reduce a, op: "sum", over: "data, model", groups: [0, 1, 2, 3], size: 4              f32[4]
    c = all_gather b, axis: 0, over: "data", groups: [0, 2, 1, 3], size: 2                       f32[8]
    d = reduce_scatter c, axis: 0, over: "data, model", groups: [0, 1, 2, 3], size: 4            f32[2]
    e = collective_permute d, pairs: [0, 2, 1, 3], over: "data", groups: [0, 2, 1, 3], size: 2   f32[2]
    f = mesh_index over: "data", groups: [0, 2, 1, 3], size: 2                                   s32
    g = add e, f                                                                                 f32[2]
    "#);
    assert_snapshot!(text(&region), @r#"
    defn-ir 1
    (f32[4]) {
      %0 = parameter {index: 0} : f32[4]
      %1 = all_reduce %0 {op: "sum", over: "data, model", groups: [0, 1, 2, 3], size: 4} : f32[4]
      %2 = all_gather %1 {axis: 0, over: "data", groups: [0, 2, 1, 3], size: 2} : f32[8]
      %3 = reduce_scatter %2 {axis: 0, over: "data, model", groups: [0, 1, 2, 3], size: 4} : f32[2]
      %4 = collective_permute %3 {pairs: [0, 2, 1, 3], over: "data", groups: [0, 2, 1, 3], size: 2} : f32[2]
      %5 = mesh_index {over: "data", groups: [0, 2, 1, 3], size: 2} : s32
      %6 = add %4 %5 : f32[2]
      return %6
    }
    "#);
}

#[test]
fn control_flow() {
    assert_snapshot!(shown(&control()), @r#"
    parameter a:0                         s32
    parameter b:1                         f32[2]
    tensor f                              f32[2]
    c = while {a, b}                      tuple2
    d = elem c, 0                         s32
    e = elem c, 1                         f32[2]
    g = add e, f                          f32[2]
    h = sin g                             f32[2]
    i = divide e, f                       f32[2]
    j = sin i                             f32[2]
    k = cond d -> h, true -> j            f32[2]
    l = mark k, "here"                    f32[2]
    m = hook [l], slot: 0, name: "loss"   f32[2]
    "#);
    assert_snapshot!(text(&control()), @r#"
    defn-ir 1
    (s32, f32[2]; f32[2]) {
      %0 = parameter {index: 0} : s32
      %1 = parameter {index: 1} : f32[2]
      %2 = parameter {index: 2} : f32[2]
      %3 = while %0 %1 %2 {state: 2, trips: none} : s32, f32[2]
        cond (s32, f32[2]; f32[2]) {
          %0 = parameter {index: 0} : s32
          %1 = parameter {index: 1} : f32[2]
          %2 = parameter {index: 2} : f32[2]
          %3 = constant {value: 10} : s32
          %4 = less %0 %3 : bool
          return %4
        }
        body (s32, f32[2]; f32[2]) {
          %0 = parameter {index: 0} : s32
          %1 = parameter {index: 1} : f32[2]
          %2 = parameter {index: 2} : f32[2]
          %3 = constant {value: 1} : s32
          %4 = add %0 %3 : s32
          %5 = multiply %1 %2 : f32[2]
          return %4 %5
        }
      %4 = cond %3 %3.1 %2 : f32[2]
        branch (; f32[2], f32[2]) {
          %0 = parameter {index: 0} : f32[2]
          %1 = parameter {index: 1} : f32[2]
          %2 = add %0 %1 : f32[2]
          %3 = sin %2 : f32[2]
          return %3
        }
        branch (; f32[2], f32[2]) {
          %0 = parameter {index: 0} : f32[2]
          %1 = parameter {index: 1} : f32[2]
          %2 = divide %0 %1 : f32[2]
          %3 = sin %2 : f32[2]
          return %3
        }
      %5 = custom_grad %4 %1 {values: 1, inputs: 1} : f32[2]
        rule (f32[2]) {
          %0 = parameter {index: 0} : f32[2]
          return %0
        }
      %6 = mark %5 {name: "here"} : f32[2]
      %7 = stop_grad %6 : f32[2]
      %8 = hook %7 {slot: 0, name: "loss"} : f32[2]
      return %8
    }
    "#);
}

#[test]
fn locations_are_comments() {
    let mut graph = Graph::new();
    graph.set_location(Some(Location { file: "model.py".into(), line: 7 }));
    let x = graph.parameter(0, ty(DType::F32, &[]));
    let region = Region::new(graph, vec![ty(DType::F32, &[])], 1, SmallVec::from_elem(x, 1));
    assert_snapshot!(region.to_text_with_locations(), @r"
    defn-ir 1
    (f32) {
      %0 = parameter {index: 0} : f32 // model.py:7
      return %0
    }
    ");
    assert!(!region.to_text().contains("model.py"));
}

#[test]
fn floats_survive_to_the_bit() {
    let bits = [
        0.0f64.to_bits(),
        (-0.0f64).to_bits(),
        f64::INFINITY.to_bits(),
        0x7ff0_0000_0000_0001,
        0xfff8_dead_beef_0001,
        1,
        0.1f64.to_bits(),
        f64::MAX.to_bits(),
    ];
    for bits in bits {
        let scalar = Scalar::from_bytes(DType::F64, &bits.to_ne_bytes());
        let mut graph = Graph::new();
        let results: Values = graph.push(Op::Constant(scalar), &[]).unwrap();
        let region = Region::new(graph, Vec::new(), 0, results);
        let back = Region::from_text(&region.to_text()).unwrap();
        assert!(back == region, "{}", region.to_text());
    }
}

#[test]
fn a_long_chain_prints_and_parses() {
    let region = region(&[ty(DType::F32, &[])], 0, |g, v| {
        let mut x = v[0];
        for _ in 0..20_000 {
            x = g.sin(x)?;
        }
        Ok(vec![x])
    });
    assert_eq!(shown(&region).lines().count(), 20_001);
    text(&region);
}

fn problem(lines: &str) -> String {
    let text = format!(
        "defn-ir 1\n(f32[2], s32; u8) {{\n  %0 = parameter {{index: 0}} : f32[2]\n{lines}\n  return %0\n}}\n"
    );
    Region::from_text(&text).unwrap_err().to_string()
}

#[test]
fn problems_name_the_line() {
    let problems: Vec<String> = [
        "  %1 = sinn %0 : f32[2]",
        "  %1 = sin %0 : f32[3]",
        "  %1 = sin %0 : f33[2]",
        "  %1 = sin %1 : f32[2]",
        "  %1 = sin %0.1 : f32[2]",
        "  %2 = sin %0 : f32[2]",
        "  %1 = sin %0 %0 : f32[2]",
        "  %1 = sin %0 {axis: 1} : f32[2]",
        "  %1 = sum %0 {axes: [1], keep_axes: false} : f32",
        "  %1 = sum %0 {axes: [0]} : f32",
        "  %1 = sum %0 {axes: 0, keep_axes: false} : f32",
        "  %1 = constant {value: 300} : u8",
        "  %1 = constant {value: nan(0x1)} : f32",
        "  %1 = parameter {index: 1} : f32[2]",
        "  %1 = parameter {index: 3} : f32[2]",
        "  %1 = tensor {bytes: x\"00\"} : s16",
        "  %1 = tensor {bytes: x\"ff\"} : u4",
        "  %1 = tensor {bytes: x\"0\"} : u8",
        "  %1 = mark %0 {name: \"x} : f32[2]",
        "  %1 = mark %0 {name: \"\\q\"} : f32[2]",
        "  %1 = iota {axis: none} : f32[4611686018427387904][8]",
        "  %1 = add %0 %0 : f32[2]\n  %2 = concatenate %1 {axis: 1} : f32[2]",
        "  %1 = put_slice %0 %0 {starts: [18446744073709551615]} : f32[2]",
        "  %1 = while %0 {state: 1, trips: none} : f32[2]\n    cond (f32[2]) {\n      return %0\n    }",
        "  %1 = while %0 {state: 1, trips: none} : f32[2]\n    cond () {\n      %0 = constant {value: 1} : u8\n      return %0\n    }\n    body () {\n      return\n    }",
        "  %1 = cond %0 : f32[2]\n    branch () {\n      return\n    }",
        "  %1 = sin",
        "  return %0\n}\n}",
    ]
    .into_iter()
    .map(problem)
    .collect();
    assert_snapshot!(problems.join("\n"), @r#"
    from_text: line 4: sinn: "sinn" is no op
    from_text: line 4: sin: it gives (f32[2]), the text says (f32[3])
    from_text: line 4: "f33" is no dtype
    from_text: line 4: %1.0 is no value of an earlier node
    from_text: line 4: %0.1 is no value of an earlier node
    from_text: line 4: %2, the next value is %1
    from_text: line 4: sin: the operands are (f32[2], f32[2]), 1 must be given
    from_text: line 4: sin: the attributes are {axis: 1}, they must be {}
    from_text: line 4: sum: axis 1 is beyond the rank 1
    from_text: line 4: sum: the attribute keep_axes is missing
    from_text: line 4: sum: axes is 0, a list of integers is required
    from_text: line 4: constant: the attributes are {value: 300}, they must be {value: 44}
    from_text: line 4: "0x1" are not the bits of a NaN
    from_text: line 4: parameter: input 1 of the region is not f32[2]
    from_text: line 4: parameter: input 3 of the region is not f32[2]
    from_text: line 4: tensor: the elements have 1 bytes, s16 has 2
    from_text: line 4: tensor: a byte is out of the range of u4
    from_text: line 4: bytes must be pairs of hexadecimal digits in quotes
    from_text: line 4: a name has no closing quote on its line
    from_text: line 4: an escape in a name is unknown
    from_text: line 4: tensor: f32[4611686018427387904][8] has more bytes than memory can address; use smaller sizes
    from_text: line 5: concatenate: axis 1 is out of range for the shape [2], it must be in -1..1
    from_text: line 4: put_slice: f32[2] does not fit at [18446744073709551615]
    from_text: line 7: %0.0 is no value of an earlier node
    from_text: line 4: while: the condition takes 0 parameters of (), the node passes 1 of (f32[2])
    from_text: line 4: cond: 1 branches, at least 2 are required
    from_text: line 5: "r", ":" is required
    from_text: line 6: "}" after the end of the region
    "#);
    let whole = ["", "defn-ir 2\n() {\n  return\n}", "() {}", "defn-ir 1\n() {\n  return\n"];
    let problems = whole.map(|text| Region::from_text(text).unwrap_err().to_string());
    assert_snapshot!(problems.join("\n"), @r#"
    from_text: line 1: the end, a word is required
    from_text: line 1: version 2, this build reads version 1
    from_text: line 1: "(", a word is required
    from_text: line 4: the end, "}" is required
    "#);
}

#[test]
fn nesting_has_a_limit() {
    let open = "%0 = custom_grad {values: 0, inputs: 0} : () rule () {\n".repeat(100_000);
    let error = Region::from_text(&format!("defn-ir 1\n() {{\n{open}")).unwrap_err().to_string();
    assert!(error.contains("nest deeper"), "{error}");
}
