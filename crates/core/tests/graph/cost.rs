//! Costs of graphs, compared with hand counts.

use defn_core::builder::{BuildElementwise, BuildLinalg, BuildShape, Start};
use defn_core::cost::{Cost, NodeCost, cost};
use defn_core::graph::{Graph, Value};
use defn_core::op::{Block, Op, QrMode, Tolerance};
use defn_core::region::Region;
use defn_core::{DType, Result, Shape, TensorType};

fn ty(dtype: DType, sizes: &[usize]) -> TensorType {
    TensorType::new(dtype, Shape::new(sizes)).unwrap()
}

fn built(inputs: &[TensorType], body: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>>) -> Cost {
    let mut graph = Graph::new();
    let values: Vec<Value> =
        inputs.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let results = body(&mut graph, &values).unwrap();
    cost(&Region::new(graph, inputs.to_vec(), inputs.len(), results.into_iter().collect()))
}

fn parsed(text: &str) -> Cost {
    cost(&Region::from_text(&format!("defn-ir 1\n{text}")).unwrap())
}

/// The operations, bytes read and bytes written of one node on parameters.
fn one(inputs: &[TensorType], op: Op) -> [u64; 3] {
    let all = built(inputs, |g, v| Ok(g.push(op, v)?.into_vec()));
    let NodeCost { flops, read, written, .. } = *all.nodes.last().unwrap();
    assert_eq!([flops, read, written], [all.flops, all.read, all.written]);
    [flops, read, written]
}

#[test]
fn elements_and_bytes_are_counted() {
    let all = built(&[ty(DType::F32, &[10]), ty(DType::F64, &[])], |g, v| {
        let sum = g.add(v[0], v[1])?;
        let square = g.multiply(sum, sum)?;
        Ok(vec![g.as_type(square, DType::U8)?])
    });
    // 10 f32 and a f64 into 10 f64; they are read once; 10 bytes are written.
    assert_eq!((all.flops, all.read, all.written), (20, 48 + 80 + 80, 80 + 80 + 10));
    assert_eq!(all.nodes[2].work(), (48 + 80) * 16);
    assert_eq!(all.work(), (128 + 160 + 90) * 16);
    assert_eq!(all.assumed_loops, 0);
}

#[test]
fn complex_numbers_count_as_their_parts() {
    let c = ty(DType::C64, &[5]);
    let flops = |body: fn(&mut Graph, Value) -> Result<Value>| {
        built(std::slice::from_ref(&c), |g, v| Ok(vec![body(g, v[0])?])).flops
    };
    assert_eq!(flops(|g, x| g.add(x, x)), 10);
    assert_eq!(flops(|g, x| g.multiply(x, x)), 30);
    assert_eq!(flops(|g, x| g.divide(x, x)), 55);
    assert_eq!(flops(|g, x| g.dot(x, x)), 5 * 8);
}

#[test]
fn products_count_two_for_each_term() {
    let dot = built(&[ty(DType::F32, &[3, 4]), ty(DType::F32, &[4, 5])], |g, v| Ok(vec![g.dot(v[0], v[1])?]));
    assert_eq!(dot.flops, 2 * 3 * 4 * 5);
    assert_eq!(dot.nodes[2].work(), 16 * 4 * (12 + 20 + 15));
    // A large product takes longer to compute than its memory traffic.
    let n = 1 << 10;
    let large = built(&[ty(DType::F32, &[n, n])], |g, v| Ok(vec![g.dot(v[0], v[0])?]));
    assert_eq!(large.nodes[1].work(), 2 << 30);
}

#[test]
fn matrices_count_as_in_the_book() {
    let square = [ty(DType::F32, &[2, 6, 6])];
    let eps = Tolerance(0.0);
    let flops = |inputs: &[TensorType], block: Block| one(inputs, Op::Block(block))[0];
    // Two of each, of size 6: n³/3, 2n³/3, 9n³, 14mn² + 8n³.
    assert_eq!(flops(&square, Block::Cholesky), 2 * 72);
    assert_eq!(flops(&square, Block::Lu), 2 * 144);
    assert_eq!(flops(&square, Block::Determinant), 2 * 144);
    assert_eq!(flops(&square, Block::Eigh { max_iter: 9, eps }), 2 * 9 * 216);
    assert_eq!(flops(&square, Block::Eigvalsh), 2 * 288);
    assert_eq!(flops(&square, Block::Svdvals), 2 * 576);
    assert_eq!(flops(&square, Block::Svd { max_iter: 9, full_matrices: true }), 2 * (14 + 8) * 216);
    // 2n²(m - n/3) for both factors in reduced mode; 4(m²n - mn² + n³/3) for a square factor.
    let tall = [ty(DType::F32, &[9, 6])];
    let slim = 2 * 36 * 7;
    assert_eq!(flops(&tall, Block::Qr { mode: QrMode::Reduced, eps }), 2 * slim);
    let complete = 4 * (81 * 6 - 9 * 36 + 72);
    assert_eq!(flops(&tall, Block::Qr { mode: QrMode::Complete, eps }), slim + complete);
    // Complex elements cost four times as much.
    assert_eq!(flops(&[ty(DType::C64, &[6, 6])], Block::Cholesky), 4 * 72);
    // A factorization, and two triangular systems of n² for each of 3 columns.
    let system = [ty(DType::F32, &[6, 6]), ty(DType::F32, &[6, 3])];
    assert_eq!(flops(&system, Block::Solve), 144 + 2 * 36 * 3);
    let triangular =
        Op::TriangularSolve { lower: true, left_side: true, transform_a: defn_core::op::Transform::None };
    assert_eq!(one(&system, triangular)[0], 36 * 3);
}

#[test]
fn selections_and_counts_are_linear() {
    let inputs = [ty(DType::F32, &[3, 8]), ty(DType::F32, &[5])];
    let axis = inputs[0].shape.axis(1).unwrap();
    assert_eq!(one(&inputs[..1], Op::Block(Block::Partition { axis, kth: 2 }))[0], 3 * 24);
    assert_eq!(one(&inputs[..1], Op::Block(Block::Argpartition { axis, kth: 2 }))[0], 3 * 24);
    assert_eq!(one(&inputs, Op::Block(Block::Isin))[0], 24 + 5);
    assert_eq!(one(&[ty(DType::S32, &[9])], Op::Block(Block::Bincount { length: 4 }))[0], 9);
}

#[test]
fn reading_at_positions_reads_what_it_takes() {
    let inputs = [ty(DType::F32, &[1000, 8]), ty(DType::S64, &[3])];
    let axis = inputs[0].shape.axis(0).unwrap();
    assert_eq!(one(&inputs, Op::Block(Block::Take { axis })), [0, 3 * 8 * 4 + 3 * 8, 3 * 8 * 4]);
    let slice =
        built(&inputs, |g, v| Ok(vec![g.slice(v[0], &[Start::Index(0), Start::Index(0)], &[2, 8], None)?]));
    assert_eq!((slice.read, slice.written), (64, 64));
}

#[test]
fn shapes_names_and_marks_cost_nothing() {
    let all = parsed(
        r#"(f32[4]) {
            %0 = parameter {index: 0} : f32[4]
            %1 = reshape %0 : f32[2][2]
            %2 = mark %1 {name: "m"} : f32[2][2]
            %3 = stop_grad %2 : f32[2][2]
            %4 = constant {value: 1.0} : f32
            return %3 %4
        }"#,
    );
    assert_eq!((all.flops, all.read, all.written), (0, 0, 0));
    // The input, and the constant that is a result.
    assert_eq!(all.peak, 16 + 4);
}

#[test]
fn memory_is_what_lives_at_one_time() {
    // A chain holds two values at a time beside the input: the input 40, operand 40, result 40.
    let chain = built(&[ty(DType::F32, &[10])], |g, v| {
        let mut x = v[0];
        for _ in 0..5 {
            x = g.sin(x)?;
        }
        Ok(vec![x])
    });
    assert_eq!(chain.peak, 120);
    // A value with a late last use stays allocated until then, also with another shape.
    let cost_of = |reshaped: bool| {
        built(&[ty(DType::F32, &[10])], |g, v| {
            let first = g.sin(v[0])?;
            let result = if reshaped { g.reshape_to(first, Shape::new(&[2, 5]))? } else { first };
            let mut x = g.cos(first)?;
            for _ in 0..5 {
                x = g.sin(x)?;
            }
            Ok(vec![x, result])
        })
    };
    assert_eq!(cost_of(false).peak, 40 + 3 * 40);
    assert_eq!(cost_of(true).peak, 40 + 3 * 40);
    // Unused values are freed at once.
    let unused = built(&[ty(DType::F32, &[10])], |g, v| {
        g.sin(v[0])?;
        g.cos(v[0])?;
        Ok(vec![v[0]])
    });
    assert_eq!(unused.peak, 80);
}

/// A loop over `f32[10]` whose body computes the sine and whose condition computes a sum.
fn sines(trips: &str) -> Cost {
    parsed(&format!(
        "(f32[10]) {{
            %0 = parameter {{index: 0}} : f32[10]
            %1 = while %0 {{state: 1, trips: {trips}}} : f32[10]
              cond (f32[10]) {{
                %0 = parameter {{index: 0}} : f32[10]
                %1 = sum %0 {{axes: [0], keep_axes: false}} : f32
                return %1
              }}
              body (f32[10]) {{
                %0 = parameter {{index: 0}} : f32[10]
                %1 = sin %0 : f32[10]
                %2 = cos %1 : f32[10]
                return %2
              }}
            return %1
        }}"
    ))
}

#[test]
fn loops_cost_their_trips_where_they_are_known() {
    let known = sines("7");
    // Seven times the body, eight times the condition.
    assert_eq!(known.flops, 7 * 20 + 8 * 10);
    assert_eq!((known.read, known.written), (7 * 80 + 8 * 40, 7 * 80 + 8 * 4));
    assert_eq!(known.assumed_loops, 0);
    // The input, the state, and the two values of the body.
    assert_eq!(known.peak, 40 + 40 + 80);
    let unknown = sines("none");
    assert_eq!(unknown.flops, 20 + 2 * 10);
    assert_eq!((unknown.assumed_loops, unknown.nodes[1].assumed_loops), (1, 1));
    assert_eq!(sines("0").flops, 10);
    assert_eq!(sines(&u64::MAX.to_string()).flops, u64::MAX);
}

#[test]
fn the_branch_with_the_most_work_counts() {
    let all = parsed(
        "(u8, f32[10]) {
            %0 = parameter {index: 0} : u8
            %1 = parameter {index: 1} : f32[10]
            %2 = cond %0 %1 : f32[10]
              branch (; f32[10]) {
                %0 = parameter {index: 0} : f32[10]
                %1 = sin %0 : f32[10]
                %2 = sin %1 : f32[10]
                %3 = add %1 %2 : f32[10]
                return %3
              }
              branch (; f32[10]) {
                %0 = parameter {index: 0} : f32[10]
                return %0
              }
            return %2
        }",
    );
    assert_eq!(all.flops, 30);
    // Both inputs, and three values of the branch, one of which is the result.
    assert_eq!(all.peak, 1 + 40 + 120);
    assert_eq!(all.nodes[2].inside, 80);
}

#[test]
fn functions_that_fold_run_for_each_element() {
    let all = parsed(
        "(f32[10], f32) {
            %0 = parameter {index: 0} : f32[10]
            %1 = parameter {index: 1} : f32
            %2 = reduce %0 %1 {axes: [0], keep_axes: false} : f32
              fun (f32, f32) {
                %0 = parameter {index: 0} : f32
                %1 = parameter {index: 1} : f32
                %2 = sin %0 : f32
                %3 = add %2 %1 : f32
                return %3
              }
            return %2
        }",
    );
    assert_eq!((all.flops, all.read, all.written), (20, 44, 4));
}

#[test]
fn regions_in_many_places_are_counted_once() {
    // Each level contains the one below twice: there are 2^60 nodes in all.
    use defn_core::op::CondOp;
    use std::sync::Arc;
    let x = ty(DType::F32, &[]);
    let mut inner = {
        let mut graph = Graph::new();
        let value = graph.parameter(0, x.clone());
        let results = graph.push(Op::Unary(defn_core::op::UnaryOp::SIN), &[value]).unwrap();
        Arc::new(Region::new(graph, vec![x.clone()], 0, results))
    };
    for _ in 0..60 {
        let mut graph = Graph::new();
        let value = graph.parameter(0, x.clone());
        let branches = [inner.clone(), inner.clone()].into_iter().collect();
        let results = graph.push(Op::Cond(CondOp { branches }), &[value, value]).unwrap();
        inner = Arc::new(Region::new(graph, vec![x.clone()], 0, results));
    }
    assert_eq!(cost(&inner).flops, 1);
}
