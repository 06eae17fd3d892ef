//! Determines the trip counts of loops.

use super::simplify::constant;
use crate::graph::{Graph, Value};
use crate::op::{BinaryOp, Op, WhileOp};
use crate::region::Region;
use crate::scalar::Number;

/// The number of trips of a counting loop: an integer of the state starts at a constant, the body adds a
/// constant to it, and the condition compares it with a constant. `inputs` are the loop's operands in
/// `graph`.
pub(super) fn counted(graph: &Graph, op: &WhileOp, inputs: &[Value]) -> Option<u64> {
    let condition = op.cond.graph().node(op.cond.results()[0]);
    let Op::Binary(compare) = condition.op else { return None };
    let context = LoopContext { graph, inputs };
    // Normalised to a counter on the left of the comparison.
    let (a, b) = (condition.inputs[0], condition.inputs[1]);
    let (counter, limit, (goes_up, includes)) =
        match (parameter(&op.cond, a, op.state), parameter(&op.cond, b, op.state)) {
            (Some(counter), None) => (counter, b, order(compare)?),
            (None, Some(counter)) => {
                let (goes_up, includes) = order(compare)?;
                (counter, a, (!goes_up, includes))
            }
            (Some(_), Some(_)) | (None, None) => return None,
        };
    let start = integer(graph, inputs[counter])?;
    let limit = context.integer(&op.cond, limit)?;
    let step = context.step(&op.body, op.body.results()[counter], counter)?;
    if step == 0 || (step > 0) != goes_up {
        return None;
    }
    let span = if goes_up { limit - start } else { start - limit };
    let distance = span + i128::from(includes);
    let trips = if distance <= 0 { 0 } else { (distance + step.abs() - 1) / step.abs() };
    // A counter that wraps around continues.
    let dtype = graph.ty(inputs[counter]).dtype;
    let (Number::Int(lowest), Number::Int(highest)) = (dtype.lowest(), dtype.highest()) else { return None };
    let end = start.checked_add(step.checked_mul(trips)?)?;
    if (lowest..=highest).contains(&end) { u64::try_from(trips).ok() } else { None }
}

/// Whether a loop that compares its counter with a limit in this way counts up, and whether it makes a trip
/// at the limit too.
fn order(compare: BinaryOp) -> Option<(bool, bool)> {
    let orders = [
        (BinaryOp::LESS, (true, false)),
        (BinaryOp::LESS_EQUAL, (true, true)),
        (BinaryOp::GREATER, (false, false)),
        (BinaryOp::GREATER_EQUAL, (false, true)),
    ];
    orders.iter().find(|(op, _)| *op == compare).map(|(_, order)| *order)
}

/// The position among a region's first `count` inputs of a value that is one.
fn parameter(region: &Region, value: Value, count: usize) -> Option<usize> {
    let Op::Parameter { index, .. } = region.graph().node(value).op else { return None };
    (index < count).then_some(index)
}

fn integer(graph: &Graph, value: Value) -> Option<i128> {
    if graph.ty(value).shape.rank() > 0 {
        return None;
    }
    match constant(graph, value)?.value() {
        Number::Int(value) => Some(value),
        Number::Bool(_) | Number::Huge(_) | Number::Float(_) | Number::Complex(_) => None,
    }
}

/// The surroundings of a loop.
struct LoopContext<'a> {
    graph: &'a Graph,
    inputs: &'a [Value],
}

impl LoopContext<'_> {
    /// The integer constant that a value in a region of the loop is, inside the region or as an operand of
    /// the loop.
    fn integer(&self, region: &Region, value: Value) -> Option<i128> {
        if let Op::Parameter { index, .. } = region.graph().node(value).op {
            return integer(self.graph, self.inputs[index]);
        }
        integer(region.graph(), value)
    }

    /// The constant that the body adds to the counter.
    fn step(&self, body: &Region, next: Value, counter: usize) -> Option<i128> {
        let node = body.graph().node(next);
        let Op::Binary(op) = node.op else { return None };
        let (a, b) = (node.inputs[0], node.inputs[1]);
        let is_counter = |value| parameter(body, value, counter + 1) == Some(counter);
        match op {
            BinaryOp::ADD if is_counter(a) => self.integer(body, b),
            BinaryOp::ADD if is_counter(b) => self.integer(body, a),
            BinaryOp::SUBTRACT if is_counter(a) => self.integer(body, b).map(|step| -step),
            BinaryOp::Arithmetic(_)
            | BinaryOp::Comparison(_)
            | BinaryOp::Logical(_)
            | BinaryOp::Bitwise(_)
            | BinaryOp::Complex => None,
        }
    }
}
