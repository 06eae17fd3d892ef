//! Matrices that stay the same in a loop, transposed before it where products in the loop read them across.

use super::{dce_owned, product_sizes};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Value, Values};
use crate::op::{Op, WhileOp};
use crate::region::Region;
use crate::shape::{Axis, AxisList};

/// Multiplications up to which a product is written as instructions of a loop, which read in any order.
const SMALL_WORK: usize = 1 << 12;

/// Most rows of the left operand. With more, it takes little of the time to bring the right one into order.
const MOST_ROWS: usize = 48;

/// Most bytes of a matrix. A larger one is read from far away, and brought into order meanwhile.
const MOST_BYTES: usize = 1 << 20;

/// The body of a loop whose products read copies. These are added to `graph`, and become further captures of the body
/// after `captures`.
///
/// The products of an element are added in the same order as before.
///
/// # Errors
/// When memory does not suffice.
pub(super) fn with_turned(
    graph: &mut Graph,
    body: Region,
    op: &WhileOp,
    captures: &[Value],
) -> Result<(Region, Values)> {
    let nodes = body.graph().nodes();
    let across: Vec<Option<usize>> =
        nodes.iter().map(|node| read_across(body.graph(), node, op.state)).collect();
    let mut further = Values::new();
    if across.iter().all(Option::is_none) || op.trips.is_some_and(|trips| trips < 2) {
        return Ok((body, further));
    }
    let mut types = body.inputs().to_vec();
    let mut inner = Graph::new();
    inner.reserve("compile", nodes.len())?;
    let mut values: Vec<Values> = Vec::with_capacity(nodes.len());
    // The inputs of which there are copies, in the order of these.
    let mut sources: Vec<usize> = Vec::new();
    for (node, across) in nodes.iter().zip(across) {
        let mut inputs: Values =
            node.inputs.iter().map(|input| values[input.node as usize][input.output as usize]).collect();
        let mut new_op = node.op.clone();
        if let Some(source) = across
            && let Op::Dot { contract_b, .. } = &mut new_op
        {
            *contract_b = AxisList::from_elem(Axis(0), 1);
            let at = sources.iter().position(|&other| other == source);
            let at = match at {
                Some(at) => at,
                None => {
                    graph.set_location(node.location.clone());
                    let axes = [Axis(1), Axis(0)].into_iter().collect();
                    let turned = graph.push(Op::Transpose { axes }, &[captures[source - op.state]])?[0];
                    types.push(graph.ty(turned).clone());
                    further.push(turned);
                    sources.push(source);
                    sources.len() - 1
                }
            };
            let index = body.inputs().len() + at;
            inputs[1] = match inner.find_parameter(index) {
                Some(copy) => copy,
                None => inner.parameter(index, types[index].clone()),
            };
        }
        inner.set_location(node.location.clone());
        values.push(inner.push_typed(new_op, inputs, node.outputs.clone())?);
    }
    let results =
        body.results().iter().map(|result| values[result.node as usize][result.output as usize]).collect();
    Ok((dce_owned(Region::new(inner, types, body.parameter_count(), results))?, further))
}

/// The input that a product reads across as its right operand, if it is a capture and a copy pays in each further trip.
fn read_across(graph: &Graph, node: &Node, state: usize) -> Option<usize> {
    let (Op::Dot { contract_a, batch_a, contract_b, .. }, &[a, b]) = (&node.op, &node.inputs[..]) else {
        return None;
    };
    let &Op::Parameter { index, .. } = &graph.node(b).op else { return None };
    let (left, right, dtype) = (graph.ty(a), graph.ty(b), node.outputs[0].dtype);
    let is_float = dtype == DType::F32 || dtype == DType::F64;
    let is_across = right.shape.rank() == 2 && contract_b[..] == [Axis(1)] && batch_a.is_empty();
    if index < state || !is_across || !is_float || right.dtype != dtype || right.byte_size() > MOST_BYTES {
        return None;
    }
    let [rows, columns, along] =
        product_sizes((left.shape.sizes(), contract_a), (right.shape.sizes(), contract_b), 0);
    // Products with vectors add in another order.
    let is_of_matrices = rows.min(columns).min(along) > 1;
    (is_of_matrices && rows <= MOST_ROWS && rows * columns * along > SMALL_WORK).then_some(index)
}
