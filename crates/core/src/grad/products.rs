//! Products that the reverse of a loop adds to the gradient of a constant, such as a matrix of weights.
//!
//! A trip whose operands have few rows would read and write the whole gradient for little arithmetic. So the trips only
//! write the operands onto stacks of a fixed length. When these are full, one product, which contracts the stacks' rows
//! too, is the sum of the products of all those trips. The memory of the stacks does not depend on the number of trips.

use super::loops::{LoopPlan, buffer, integer, read, write};
use super::region;
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::graph::{Graph, Node, Value, Values};
use crate::op::{BinaryOp, Op};
use crate::pass;
use crate::region::Region;
use crate::shape::{Axis, AxisList, TensorType};

/// Elements that one product contracts at least, if there are as many: its arithmetic then takes longer than reading and
/// writing the gradient.
const DEPTH: usize = 256;

/// Most rows of a stack.
const MOST_ROWS: usize = 128;

/// Fewest rows of a stack that save more than they cost.
const FEWEST_ROWS: usize = 8;

/// Elements of a gradient from which on a trip better leaves it alone.
const MIN_ELEMENTS: usize = 1 << 10;

/// Most bytes of all stacks of a loop.
const MOST_BYTES: usize = 4 << 20;

/// The trips of a reverse.
#[derive(Clone, Copy)]
pub(super) struct Trips {
    /// Their number.
    pub count: Value,
    /// The same, if it is known.
    pub known: Option<u64>,
    /// A number that it is not above, if one is known.
    pub most: Option<usize>,
}

/// A pullback without its products.
pub(super) struct Collected {
    /// From what the pullback takes to the cotangents at `kept`, then the operands.
    trip: Region,
    /// The positions among the cotangents of those that a trip changes.
    kept: Vec<usize>,
    products: Vec<Product>,
    operands: Vec<TensorType>,
}

/// The products of one place in the body.
struct Product {
    /// The position among the cotangents of the one that they are added to.
    cotangent: usize,
    /// From stacks of operands to the sum of the products.
    op: Op,
    /// The positions of the stacks.
    operands: [usize; 2],
    /// From the sum to what is added, the first one last.
    views: Vec<Op>,
    /// The number of elements that one trip contracts.
    depth: usize,
}

/// What a pullback adds to a cotangent.
#[derive(Default)]
struct Terms {
    /// Products: the node of each, and the ops on it, the first one last.
    products: Vec<(Value, Vec<Op>)>,
    others: Vec<Value>,
}

impl Collected {
    /// The products that a plan's pullback adds to gradients of constants, if there are any that are better computed for
    /// many trips at once.
    fn of(plan: &LoopPlan) -> Result<Option<Collected>> {
        let (pullback, first) = (&plan.pullback, plan.variant.len() + plan.constants.len());
        let graph = pullback.graph();
        let uses = uses(pullback);
        let terms: Vec<Terms> = (0..pullback.results().len())
            .map(|position| match position < plan.active.len() {
                true => Terms::default(),
                false => terms(pullback, position, first + position, &uses).unwrap_or_default(),
            })
            .collect();
        let mut values: Vec<Value> = Vec::new();
        let mut products = Vec::new();
        for (cotangent, terms) in terms.iter().enumerate() {
            for (value, views) in &terms.products {
                let Node { op, inputs, .. } = graph.node(*value);
                let Op::Dot { contract_a, contract_b, .. } = op else { unreachable!("a product") };
                let shape = &graph.ty(inputs[0]).shape;
                let depth = contract_a.iter().map(|&axis| shape[axis]).product();
                let op = Op::Dot {
                    contract_a: stacked(contract_a),
                    batch_a: AxisList::new(),
                    contract_b: stacked(contract_b),
                    batch_b: AxisList::new(),
                };
                let operands = [inputs[0], inputs[1]].map(|operand| {
                    values.iter().position(|&value| value == operand).unwrap_or_else(|| {
                        values.push(operand);
                        values.len() - 1
                    })
                });
                products.push(Product { cotangent, op, operands, views: views.clone(), depth });
            }
        }
        if products.is_empty() {
            return Ok(None);
        }
        let operands = values.iter().map(|&value| graph.ty(value).clone()).collect();
        let (mut graph, inputs, parameters, old) = pullback.clone().into_parts();
        let (mut kept, mut results) = (Vec::new(), Values::new());
        for (position, (&result, terms)) in old.iter().zip(&terms).enumerate() {
            if terms.products.is_empty() {
                kept.push(position);
                results.push(result);
            } else if !terms.others.is_empty() {
                let before = graph.find_parameter(first + position).expect("it is added to");
                let sum = terms.others.iter().try_fold(before, |sum, &term| graph.add(sum, term))?;
                kept.push(position);
                results.push(sum);
            }
        }
        results.extend(values);
        let trip = pass::dce_owned(Region::new(graph, inputs, parameters, results))?;
        Ok(Some(Collected { trip, kept, products, operands }))
    }

    /// The number of rows of the stacks for so many trips. None if stacks do not pay.
    fn rows(&self, trips: Trips) -> Option<usize> {
        let least = self.products.iter().map(|product| product.depth.max(1)).min()?;
        let bytes: usize = self.operands.iter().map(TensorType::byte_size).sum();
        let rows = DEPTH.div_ceil(least).min(MOST_ROWS).min(MOST_BYTES / bytes.max(1));
        let most = trips.most.unwrap_or(usize::MAX);
        if rows.min(most) < FEWEST_ROWS {
            return None;
        }
        if most <= rows || trips.known.is_none() {
            return Some(rows.min(most));
        }
        // As equal as possible, best without a shorter one.
        let chunks = most.div_ceil(rows);
        let chunks = (chunks..=2 * chunks).find(|chunks| most.is_multiple_of(*chunks)).unwrap_or(chunks);
        Some(most.div_ceil(chunks))
    }

    /// The cotangents with the products of operands on stacks added.
    fn add(&self, graph: &mut Graph, cotangents: &mut [Value], stacks: &[Value]) -> Result<()> {
        for Product { cotangent, op, operands, views, .. } in &self.products {
            let operands = operands.map(|operand| stacks[operand]);
            let mut sum = graph.emit_one(op.clone(), &operands)?;
            for view in views.iter().rev() {
                sum = graph.emit_one(view.clone(), &[sum])?;
            }
            cotangents[*cotangent] = graph.add(cotangents[*cotangent], sum)?;
        }
        Ok(())
    }
}

/// Axes of an operand on a stack of operands, whose rows come first.
fn stacked(axes: &[Axis]) -> AxisList {
    std::iter::once(Axis(0)).chain(axes.iter().map(|axis| Axis(axis.index() + 1))).collect()
}

/// How often each value is used, by node and output.
fn uses(region: &Region) -> Vec<Vec<usize>> {
    let nodes = region.graph().nodes();
    let mut uses: Vec<Vec<usize>> = nodes.iter().map(|node| vec![0; node.outputs.len()]).collect();
    for value in nodes.iter().flat_map(|node| &node.inputs).chain(region.results()) {
        uses[value.node as usize][value.output as usize] += 1;
    }
    uses
}

/// What is added to an input to give a result, if nothing else uses the input and all sums on the way.
fn terms(region: &Region, result: usize, input: usize, uses: &[Vec<usize>]) -> Option<Terms> {
    let graph = region.graph();
    let is_used_once = |value: Value| uses[value.node as usize][value.output as usize] == 1;
    let mut value = region.results()[result];
    let (mut terms, ty) = (Terms::default(), &region.inputs()[input]);
    while let Node { op: Op::Binary(BinaryOp::ADD), inputs, .. } = graph.node(value) {
        let &[before, term] = &inputs[..] else { return None };
        if !is_used_once(value) || graph.ty(before) != ty || graph.ty(term) != ty {
            return None;
        }
        let mut views = Vec::new();
        let mut from = term;
        while is_used_once(from)
            && let Node { op, inputs, .. } = graph.node(from)
            && let Op::Reshape { .. } | Op::Transpose { .. } | Op::AsType { .. } = op
        {
            views.push(op.clone());
            from = inputs[0];
        }
        match is_used_once(from) && is_better_collected(graph, from) {
            true => terms.products.push((from, views)),
            false => terms.others.push(term),
        }
        value = before;
    }
    // The sums began with the last term.
    terms.products.reverse();
    terms.others.reverse();
    let is_input =
        if let Op::Parameter { index, .. } = graph.node(value).op { index == input } else { false };
    (is_input && is_used_once(value)).then_some(terms)
}

/// Whether a value is a product whose operands are much smaller than itself.
fn is_better_collected(graph: &Graph, value: Value) -> bool {
    let Node { op: Op::Dot { batch_a, .. }, inputs, outputs, .. } = graph.node(value) else { return false };
    let (size, operands) = (outputs[0].size(), inputs.iter().map(|&input| graph.ty(input)));
    let has_names = operands.clone().any(|ty| ty.shape != ty.shape.without_names());
    let read: usize = operands.map(TensorType::size).sum();
    batch_a.is_empty() && !has_names && size >= MIN_ELEMENTS && 2 * read <= size
}

/// Carries cotangents through all trips, the last first; the leaves are read from tapes.
pub(super) fn reverse_tape(
    graph: &mut Graph,
    plan: &LoopPlan,
    trips: Trips,
    tapes: &[Value],
    constants: &[Value],
    carried: &[Value],
) -> Result<Vec<Value>> {
    let sources = (tapes, constants);
    let collected = Collected::of(plan)?;
    let rows = collected.as_ref().and_then(|collected| collected.rows(trips));
    let (Some(collected), Some(rows)) = (&collected, rows) else {
        return Ok(reverse_trips(graph, plan, None, (trips.known, trips.count, None), sources, carried)?.0);
    };
    if trips.most.is_some_and(|most| most <= rows) {
        let span = (trips.known, trips.count, None);
        return reverse_chunk(graph, plan, (collected, rows), span, sources, carried);
    }
    // Trips of a known number that are left over come first, so that the number of each loop's trips is known.
    let known = trips.known.map(|known| (known / rows as u64, known % rows as u64));
    let (mut count, mut carried) = (trips.count, carried.to_vec());
    if let Some((_, rest)) = known.filter(|(_, rest)| *rest > 0) {
        let length = integer(graph, rest as usize)?;
        let begin = graph.subtract(count, length)?;
        let (stacks, span) = ((collected, rest as usize), (Some(rest), count, Some(begin)));
        carried = reverse_chunk(graph, plan, stacks, span, sources, &carried)?;
        count = begin;
    }
    let state: Vec<Value> = std::iter::once(count).chain(carried).collect();
    let captures: Vec<Value> = tapes.iter().chain(constants).copied().collect();
    let outputs = region::while_(
        graph,
        known.map(|(chunks, _)| chunks),
        &state,
        &captures,
        |graph, state, _| graph.greater(state[0], 0),
        |graph, state, captures| {
            let length = integer(graph, rows)?;
            let end = state[0];
            let (known, begin) = if known.is_some() {
                (Some(rows as u64), graph.subtract(end, length)?)
            } else {
                // The first ones are fewer, so that all others fill the stacks.
                let last = graph.subtract(end, 1)?;
                let chunks = graph.quotient(last, length)?;
                (None, graph.multiply(chunks, length)?)
            };
            let span = (known, end, Some(begin));
            let sources = captures.split_at(tapes.len());
            let next = reverse_chunk(graph, plan, (collected, rows), span, sources, &state[1..])?;
            Ok(std::iter::once(begin).chain(next).collect())
        },
    )?;
    Ok(outputs[1..].to_vec())
}

/// Carries cotangents from the trip before `end` down to `begin`, at most `most` trips.
pub(super) fn reverse_span(
    graph: &mut Graph,
    plan: &LoopPlan,
    most: usize,
    (begin, end): (Value, Value),
    sources: (&[Value], &[Value]),
    carried: &[Value],
) -> Result<Vec<Value>> {
    let span = (None, end, Some(begin));
    let collected = Collected::of(plan)?;
    let trips = Trips { count: end, known: None, most: Some(most) };
    let rows = collected.as_ref().and_then(|collected| collected.rows(trips)).filter(|&rows| most <= rows);
    match (&collected, rows) {
        (Some(collected), Some(rows)) => {
            reverse_chunk(graph, plan, (collected, rows), span, sources, carried)
        }
        _ => Ok(reverse_trips(graph, plan, None, span, sources, carried)?.0),
    }
}

/// Carries cotangents through as many trips as stacks have rows, or fewer.
fn reverse_chunk(
    graph: &mut Graph,
    plan: &LoopPlan,
    (collected, rows): (&Collected, usize),
    span: (Option<u64>, Value, Option<Value>),
    sources: (&[Value], &[Value]),
    carried: &[Value],
) -> Result<Vec<Value>> {
    // What no trip writes adds nothing.
    let stacks = collected.operands.iter().map(|ty| buffer(graph, rows, ty)).collect::<Result<Vec<_>>>()?;
    let kept: Vec<Value> = collected.kept.iter().map(|&position| carried[position]).collect();
    let (kept, stacks) = reverse_trips(graph, plan, Some((collected, &stacks)), span, sources, &kept)?;
    let mut next = carried.to_vec();
    collected.kept.iter().zip(kept).for_each(|(&position, value)| next[position] = value);
    collected.add(graph, &mut next, &stacks)?;
    Ok(next)
}

/// Carries cotangents from the trip before `end` down to `begin`, or to the first one. With stacks, only the kept
/// cotangents are carried, and the stacks are returned too.
fn reverse_trips(
    graph: &mut Graph,
    plan: &LoopPlan,
    collected: Option<(&Collected, &[Value])>,
    (trips, end, begin): (Option<u64>, Value, Option<Value>),
    (tapes, constants): (&[Value], &[Value]),
    carried: &[Value],
) -> Result<(Vec<Value>, Vec<Value>)> {
    let stacks = collected.map_or(&[][..], |(_, stacks)| stacks);
    let state: Vec<Value> = [end].iter().chain(carried).chain(stacks).copied().collect();
    let captures: Vec<Value> = begin.iter().chain(tapes).chain(constants).copied().collect();
    let from = usize::from(begin.is_some());
    let stacks_at = 1 + carried.len();
    let outputs = region::while_(
        graph,
        trips,
        &state,
        &captures,
        |graph, state, captures| match begin {
            Some(_) => graph.greater(state[0], captures[0]),
            None => graph.greater(state[0], 0),
        },
        |graph, state, captures| {
            let (tapes, constants) = captures[from..].split_at(tapes.len());
            let trip = graph.subtract(state[0], 1)?;
            let mut leaves: Vec<Value> = Vec::with_capacity(plan.variant.len());
            let mut tapes = tapes.iter();
            for leaf in 0..plan.variant.len() {
                leaves.push(if plan.taped.contains(&leaf) {
                    read(graph, *tapes.next().expect("a tape for each leaf in taped"), trip)?
                } else {
                    // The pullback does not read this leaf.
                    trip
                });
            }
            let (cotangents, stacks) = state[1..].split_at(stacks_at - 1);
            let arguments = leaves.iter().chain(constants);
            let Some((collected, _)) = collected else {
                let arguments: Vec<Value> = arguments.chain(cotangents).copied().collect();
                let next = region::inline(graph, &plan.pullback, &arguments)?;
                return Ok(std::iter::once(trip).chain(next).collect());
            };
            // A trip does not read the cotangents that it does not change.
            let mut all = vec![trip; plan.active.len() + plan.needed.len()];
            collected.kept.iter().zip(cotangents).for_each(|(&position, &value)| all[position] = value);
            let arguments: Vec<Value> = arguments.chain(&all).copied().collect();
            let next = region::inline(graph, &collected.trip, &arguments)?;
            let (next, operands) = next.split_at(cotangents.len());
            let row = if begin.is_some() { graph.subtract(trip, captures[0])? } else { trip };
            let mut results: Vec<Value> = [trip].iter().chain(next).copied().collect();
            for (&stack, &operand) in stacks.iter().zip(operands) {
                results.push(write(graph, stack, row, operand)?);
            }
            Ok(results)
        },
    )?;
    Ok((outputs[1..stacks_at].to_vec(), outputs[stacks_at..].to_vec()))
}
