//! State of which a loop overwrites each element before anything reads it: what `scan` puts its rows into. Nobody needs
//! what it is before the loop.

use defn_core::Number;
use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{BinaryOp, Op, Starts, WhileOp};
use defn_core::region::Region;

use super::places::elements_of;
use super::regions::is_passed_through;

/// For each operand of a node, whether nobody needs it.
pub(in crate::compiler) fn overwritten(graph: &Graph, node: &Node) -> impl Fn(usize) -> bool {
    let unneeded: Vec<bool> = if let Op::While(op) = &node.op {
        (0..op.state).map(|at| is_overwritten(graph, node, op, at).unwrap_or(false)).collect()
    } else {
        Vec::new()
    };
    move |operand| unneeded.get(operand).copied().unwrap_or(false)
}

/// Whether each trip of a loop puts a row at its own position of a part of the state, which nothing else reads, and the
/// rows are all there are.
fn is_overwritten(graph: &Graph, node: &Node, op: &WhileOp, at: usize) -> Option<bool> {
    let body = op.body.graph();
    let last = op.body.results()[at];
    let put = body.node(last);
    let Op::PutSlice { starts: Starts::Dynamic | Starts::FromEnd } = &put.op else { return None };
    let is_state = |graph: &Graph, value: Value| is_passed_through(graph, value, at);
    let (others, results) = (body.nodes().iter().enumerate(), op.body.results().iter().enumerate());
    let others = others.filter(|(position, _)| *position != last.node as usize);
    let is_read = others.flat_map(|(_, node)| &node.inputs).chain(&put.inputs[1..]);
    let is_read = is_read.chain(results.filter(|(result, _)| *result != at).map(|(_, value)| value));
    if !is_state(body, put.inputs[0]) || is_read.copied().any(|value| is_state(body, value)) {
        return None;
    }
    if is_used(&op.cond, at) {
        return None;
    }
    // What is in registers is there before the loop.
    if elements_of(body.ty(last)).is_some() {
        return None;
    }
    let (sizes, window) = (body.ty(last).shape.sizes(), body.ty(put.inputs[1]).shape.sizes());
    let mut axes = sizes.iter().zip(window).enumerate().filter(|(_, (size, own))| size != own);
    let (Some((axis, (&size, 1))), None) = (axes.next(), axes.next()) else { return None };
    let size = i128::try_from(size).ok()?;
    if op.trips.map(i128::from) != Some(size) {
        return None;
    }
    // The position of the first trip, and how far the next is from it.
    let (counter, sign, offset) = position(body, put.inputs[2 + axis])?;
    let before = constant(graph, *node.inputs[..op.state].get(counter)?)?;
    let (again, forward, step) = position(body, op.body.results()[counter])?;
    if again != counter || forward != 1 {
        return None;
    }
    let (first, step) = (sign * before + offset, sign * step);
    let bits = body.ty(put.inputs[2 + axis]).dtype.bits() as u32;
    // Numbers up to the size are no less in the counter's dtype.
    let fits = bits >= 8 && size < 1 << (bits - 1);
    Some(fits && (first == 0 && step == 1 || first == size - 1 && step == -1))
}

/// A number that is a parameter, or its negative, and a constant: which parameter, the sign, and the constant.
fn position(graph: &Graph, value: Value) -> Option<(usize, i128, i128)> {
    let node = graph.node(value);
    if let Op::Parameter { index, .. } = node.op {
        return Some((index, 1, 0));
    }
    let Op::Binary(op @ (BinaryOp::ADD | BinaryOp::SUBTRACT)) = node.op else { return None };
    let sign = if op == BinaryOp::ADD { 1 } else { -1 };
    let (a, b) = (node.inputs[0], node.inputs[1]);
    match (constant(graph, a), constant(graph, b)) {
        (None, Some(number)) => Some(moved(position(graph, a)?, 1, sign * number)),
        (Some(number), None) => Some(moved(position(graph, b)?, sign, number)),
        (_, _) => None,
    }
}

/// A position or its negative, and a number.
fn moved((parameter, sign, offset): (usize, i128, i128), by: i128, number: i128) -> (usize, i128, i128) {
    (parameter, by * sign, by * offset + number)
}

fn constant(graph: &Graph, value: Value) -> Option<i128> {
    let Op::Constant(scalar) = graph.node(value).op else { return None };
    if let Number::Int(number) = scalar.value() { Some(number) } else { None }
}

/// Whether a region uses a parameter.
fn is_used(region: &Region, at: usize) -> bool {
    let graph = region.graph();
    let values = graph.nodes().iter().flat_map(|node| &node.inputs).chain(region.results());
    values.copied().any(|value| is_passed_through(graph, value, at))
}
