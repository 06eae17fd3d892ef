//! Random loops with bounded trip counts.

use std::sync::Arc;

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{BinaryOp, Op, WhileOp};
use defn_core::region::Region;
use defn_core::{DType, Scalar, TensorType};

/// The region with the trips of every loop limited by an additional counter in its state.
pub fn bounded(region: &Region, trips: i32) -> Region {
    let parameters: Vec<usize> = (0..region.inputs().len()).collect();
    let inputs = region.inputs().to_vec();
    let (graph, results) = copy(region, &parameters, trips);
    Region::new(graph, inputs, region.parameter_count(), results)
}

/// The nodes of a region with bounded loops, and its results; input i becomes `positions[i]`.
fn copy(region: &Region, positions: &[usize], trips: i32) -> (Graph, Values) {
    let mut graph = Graph::new();
    let mut moved: Vec<Values> = Vec::new();
    let find = |moved: &[Values], value: &Value| moved[value.node as usize][value.output as usize];
    for node in region.graph().nodes() {
        let mut operands: Values = node.inputs.iter().map(|value| find(&moved, value)).collect();
        graph.set_location(node.location.clone());
        let op = if let Op::Parameter { index, ty } = &node.op {
            Op::Parameter { index: positions[*index], ty: ty.clone() }
        } else if let Op::While(op) = &node.op {
            operands.insert(op.state, push(&mut graph, Op::Constant(number(0)), &[]));
            Op::While(counted(op, trips))
        } else {
            node.op.map_regions(|inner| Ok(Arc::new(bounded(inner, trips)))).unwrap()
        };
        let mut outputs = graph.push(op, &operands).unwrap();
        outputs.truncate(node.outputs.len());
        moved.push(outputs);
    }
    graph.set_location(None);
    let results = region.results().iter().map(|value| find(&moved, value)).collect();
    (graph, results)
}

fn counted(op: &WhileOp, trips: i32) -> WhileOp {
    let state = op.state;
    let counter = TensorType::scalar(DType::S32);
    // The counter comes after the state and before the captures.
    let open = |region: &Region| {
        let positions: Vec<usize> =
            (0..region.inputs().len()).map(|index| if index < state { index } else { index + 1 }).collect();
        let mut inputs = region.inputs().to_vec();
        inputs.insert(state, counter.clone());
        let (mut graph, results) = copy(region, &positions, trips);
        let count = graph.parameter(state, counter.clone());
        (graph, inputs, results, count)
    };
    let (mut graph, inputs, results, count) = open(&op.cond);
    let limit = push(&mut graph, Op::Constant(number(trips)), &[]);
    let goes_on = push(&mut graph, Op::Binary(BinaryOp::LESS), &[count, limit]);
    let verdict = push(&mut graph, Op::Binary(BinaryOp::LOGICAL_AND), &[results[0], goes_on]);
    let cond = Region::new(graph, inputs, state + 1, [verdict].into_iter().collect());
    let (mut graph, inputs, mut results, count) = open(&op.body);
    let one = push(&mut graph, Op::Constant(number(1)), &[]);
    results.push(push(&mut graph, Op::Binary(BinaryOp::ADD), &[count, one]));
    let body = Region::new(graph, inputs, state + 1, results);
    WhileOp { state: state + 1, trips: None, snapshots: None, cond: Arc::new(cond), body: Arc::new(body) }
}

fn number(value: i32) -> Scalar {
    Scalar::new(DType::S32, value).unwrap()
}

fn push(graph: &mut Graph, op: Op, operands: &[Value]) -> Value {
    graph.push(op, operands).unwrap()[0]
}
