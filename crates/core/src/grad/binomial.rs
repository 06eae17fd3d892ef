//! The reverse of a loop with a given number of snapshots of its state.
//!
//! Snapshots are a stack; the lowest one is the initial state. The reverse repeats one step until no trip is left. The
//! step looks at the trips between the topmost snapshot and the trips already reversed:
//!
//! - If the free snapshots can hold the state before each trip, they do, and all these trips are reversed.
//! - If not, and a snapshot is free, it takes the state in between from which both parts need the fewest evaluations.
//! - If none is free, the last trip is reversed, after all before it have run.
//!
//! With `s` snapshots, `C(s + r, s)` trips need at most `r` evaluations of each besides its gradient. That is the least
//! possible (Griewank and Walther, Algorithm 799: Revolve, 2000).

use super::checkpoint::{self, Saved, repeat, select};
use super::loops::{LoopPlan, buffer, integer, read, write};
use super::products::reverse_span;
use super::region;
use crate::builder::BuildElementwise;
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::shape::TensorType;

/// The values that the forward loop keeps.
pub(super) struct Snapshots {
    /// The number of trips.
    trips: Value,
    saved: Saved,
    count: usize,
    /// The position of the topmost snapshot on the stack.
    top: Value,
    /// For each snapshot, the number of trips before it.
    positions: Value,
    /// For each saved leaf, its value in each snapshot.
    buffers: Vec<Value>,
}

/// The next step of the reverse, or of the forward loop.
struct Step {
    /// Whether a snapshot is taken after the trips to run.
    splits: Value,
    /// Whether the free snapshots hold the states of all trips.
    fits: Value,
    /// The number of trips to run from the topmost snapshot.
    advance: Value,
}

/// The step for `distance` trips after the topmost snapshot, with `free` snapshots above it.
fn step(graph: &mut Graph, distance: Value, free: Value) -> Result<Step> {
    let (zero, one) = (integer(graph, 0)?, integer(graph, 1)?);
    let own = graph.add(free, 1)?;
    let fits = graph.less_equal(distance, own)?;
    let is_free = graph.greater(free, 0)?;
    let long = graph.logical_not(fits)?;
    let splits = graph.logical_and(long, is_free)?;
    let length = select(graph, splits, distance, one)?;
    let split = split(graph, length, own)?;
    let before = graph.subtract(distance, 1)?;
    let rest = select(graph, fits, zero, before)?;
    Ok(Step { splits, fits, advance: select(graph, splits, split, rest)? })
}

/// Where to split so many trips for so many snapshots, the one before them included.
fn split(graph: &mut Graph, trips: Value, snapshots: Value) -> Result<Value> {
    // The smallest r for which C(s + r, s) trips are enough.
    let (zero, one) = (integer(graph, 0)?, integer(graph, 1)?);
    let outputs = region::while_(
        graph,
        None,
        &[zero, one],
        &[trips, snapshots],
        |graph, state, captures| graph.less(state[1], captures[0]),
        |graph, state, captures| {
            let r = graph.add(state[0], 1)?;
            let sum = graph.add(captures[1], r)?;
            let product = graph.multiply(state[1], sum)?;
            Ok(vec![r, graph.quotient(product, r)?])
        },
    )?;
    let (r, most) = (outputs[0], outputs[1]);
    let sum = graph.add(snapshots, r)?;
    // C(s - 1 + r, s - 1): the trips after the split that the other snapshots can reverse.
    let product = graph.multiply(most, snapshots)?;
    let after = graph.quotient(product, sum)?;
    let least = graph.subtract(trips, after)?;
    // C(s + r - 2, s): fewer trips before the split would be evaluated less often than they may.
    let product = graph.multiply(most, r)?;
    let before = graph.quotient(product, sum)?;
    let r = graph.subtract(r, 1)?;
    let sum = graph.subtract(sum, 1)?;
    let product = graph.multiply(before, r)?;
    let enough = graph.quotient(product, sum)?;
    graph.max(least, enough)
}

/// The forward loop, and the values that it keeps: of a known number of trips the first snapshots, else the initial state.
pub(super) fn forward(
    graph: &mut Graph,
    plan: &LoopPlan,
    leaves: &[Value],
    constants: &[Value],
    count: usize,
) -> Result<(Values, Snapshots)> {
    let saved = Saved::new(plan)?;
    let zero = integer(graph, 0)?;
    let mut positions = buffer(graph, count + 1, &TensorType::scalar(graph.ty(zero).dtype))?;
    let mut buffers = Vec::new();
    for &leaf in &saved.leaves {
        let empty = buffer(graph, count + 1, &plan.body.inputs()[leaf])?;
        buffers.push(write(graph, empty, zero, leaves[leaf])?);
    }
    let Some(known) = plan.trips else {
        let (finals, trips) = checkpoint::counted(graph, plan, leaves, constants)?;
        return Ok((finals, Snapshots { trips, saved, count, top: zero, positions, buffers }));
    };
    let trips = integer(graph, known as usize)?;
    let changing = leaves.len();
    let mut state: Vec<Value> = leaves.to_vec();
    state.extend([zero, zero, positions]);
    state.extend(&buffers);
    let outputs = region::while_(
        graph,
        None,
        &state,
        constants,
        |graph, state, _| graph.less(state[changing], known as i64),
        |graph, state, constants| {
            let (here, top, positions) = (state[changing], state[changing + 1], state[changing + 2]);
            let last = integer(graph, count - 1)?;
            let free = graph.subtract(last, top)?;
            let trips = integer(graph, known as usize)?;
            let distance = graph.subtract(trips, here)?;
            let Step { splits, advance, .. } = step(graph, distance, free)?;
            let trips = select(graph, splits, advance, distance)?;
            let mut next =
                repeat(graph, &state[..changing], trips, constants, |graph, leaves, constants| {
                    let arguments: Vec<Value> = leaves.iter().chain(constants).copied().collect();
                    region::inline(graph, &plan.body, &arguments)
                })?;
            let there = graph.add(here, trips)?;
            let above = graph.add(top, 1)?;
            let scratch = integer(graph, count)?;
            let slot = select(graph, splits, above, scratch)?;
            let positions = write(graph, positions, slot, there)?;
            let mut buffers = Vec::new();
            for (&leaf, &buffer) in saved.leaves.iter().zip(&state[changing + 3..]) {
                buffers.push(write(graph, buffer, slot, next[leaf])?);
            }
            next.extend([there, select(graph, splits, above, top)?, positions]);
            next.extend(buffers);
            Ok(next)
        },
    )?;
    positions = outputs[changing + 2];
    buffers = outputs[changing + 3..].to_vec();
    let top = outputs[changing + 1];
    Ok((outputs[..changing].into(), Snapshots { trips, saved, count, top, positions, buffers }))
}

/// Carries cotangents through all trips, the last first.
pub(super) fn reverse(
    graph: &mut Graph,
    plan: &LoopPlan,
    snapshots: &Snapshots,
    constants: &[Value],
    carried: &[Value],
) -> Result<Vec<Value>> {
    let Snapshots { saved, count, .. } = snapshots;
    let mut state = vec![snapshots.trips, snapshots.top, snapshots.positions];
    state.extend(&snapshots.buffers);
    let carried_at = state.len();
    state.extend(carried);
    let outputs = region::while_(
        graph,
        None,
        &state,
        constants,
        |graph, state, _| graph.greater(state[0], 0),
        |graph, state, constants| {
            let (end, top, positions) = (state[0], state[1], state[2]);
            let buffers = &state[3..carried_at];
            let here = read(graph, positions, top)?;
            let leaves: Vec<Value> =
                buffers.iter().map(|&buffer| read(graph, buffer, top)).collect::<Result<_>>()?;
            let last = integer(graph, count - 1)?;
            let free = graph.subtract(last, top)?;
            let distance = graph.subtract(end, here)?;
            let Step { splits, fits, advance } = step(graph, distance, free)?;

            // The state after these trips is a snapshot, or the first state on the tape of the trips to reverse. A tape is
            // made of the free snapshots; without any it is one state beside them.
            let (zero, one, scratch) = (integer(graph, 0)?, integer(graph, 1)?, integer(graph, *count)?);
            let (above, below) = (graph.add(top, 1)?, graph.subtract(top, 1)?);
            let alone = select(graph, fits, top, scratch)?;
            let first = select(graph, splits, above, alone)?;
            let alone = select(graph, fits, distance, one)?;
            let chunk = select(graph, splits, zero, alone)?;
            let leaves = saved.advance(graph, plan, &leaves, advance, constants)?;
            let there = graph.add(here, advance)?;
            let positions = write(graph, positions, first, there)?;
            let tapes = (&saved.leaves[..], buffers);
            let buffers = saved.tape(graph, plan, &leaves, tapes, (first, chunk), constants)?;

            let tapes: Vec<Value> = plan.taped.iter().map(|&leaf| buffers[saved.position(leaf)]).collect();
            let end_of_tape = graph.add(first, chunk)?;
            let span = (first, end_of_tape);
            let carried = reverse_span(graph, plan, *count, span, (&tapes, constants), &state[carried_at..])?;
            let end = graph.subtract(end, chunk)?;
            let popped = select(graph, fits, below, top)?;
            let top = select(graph, splits, above, popped)?;
            Ok([end, top, positions].into_iter().chain(buffers).chain(carried).collect())
        },
    )?;
    Ok(outputs[carried_at..].to_vec())
}
