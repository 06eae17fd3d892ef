//! The reverse of a loop with an unknown number of trips.
//!
//! The forward loop keeps up to `slots` checkpoints, a stride of trips apart. When all slots are taken, every
//! second checkpoint is dropped and the stride doubles, so that memory does not depend on the number of
//! trips.
//!
//! The reverse uses the checkpoints as a stack and repeats one step until no trip is left. The step looks at
//! the trips between the topmost checkpoint and the trips already reversed. If a tape of `slots` states can
//! hold them, they are recomputed onto the tape and reversed. If not, the free slots of the stack take new,
//! evenly spaced checkpoints; at least `slots` are free for the trips between two forward checkpoints. If no
//! slot is free either, the last trips that fit the tape are recomputed onto it and reversed, and the
//! checkpoint stays.
//!
//! A body is evaluated at most four times a trip, up to about `slots^3` trips: forward, towards new
//! checkpoints, onto the tape, and inside its gradient; three times up to `slots^2`. Beyond that the stack is
//! filled more than once, and the number of evaluations grows with the logarithm of the number of trips.

use super::loops::{LoopPlan, TAPE_BYTES, buffer, integer, read, write};
use super::products::{Trips, reverse_tape};
use super::region::{self, inline};
use crate::builder::{BuildElementwise, Builder};
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::Op;
use crate::region::Region;
use crate::shape::TensorType;

/// The values that the forward loop keeps.
pub(super) struct SavedStates {
    /// The number of trips.
    trips: Value,
    /// None if the gradient of the body reads no leaf.
    stack: Option<Stack>,
}

/// The leaves that are saved.
pub(super) struct Saved {
    /// Their positions among the changing leaves: those that the gradient reads, and all that are needed to recompute
    /// these.
    pub leaves: Vec<usize>,
    /// From leaves and constants to the next values of the saved leaves.
    step: Region,
}

struct Stack {
    slots: usize,
    saved: Saved,
    /// For each checkpoint, the number of trips before it.
    positions: Value,
    /// For each saved leaf, its value at each checkpoint.
    buffers: Vec<Value>,
    /// The number of checkpoints.
    count: Value,
}

/// The number of checkpoints, and of states on the tape, for states of so many bytes and a loop of so many trips. Even,
/// so that every second one can be dropped.
///
/// Of a known number of trips it is the square root: each trip is computed once more then. Of an unknown number it is what
/// a loop of few trips can allocate at no cost that matters.
fn slots(bytes: usize, trips: Option<u64>) -> usize {
    let most = (TAPE_BYTES / (3 * bytes.max(1))).max(32);
    let wanted = match trips {
        Some(trips) => (trips.isqrt() as usize).saturating_add(2),
        None => (SMALL_BYTES / bytes.max(1)).clamp(128, 1024),
    };
    wanted.clamp(32, most) & !1
}

/// The size in bytes up to which checkpoints of a loop are cheap to allocate, even if it has few trips.
const SMALL_BYTES: usize = 256 << 10;

pub(super) fn select(graph: &mut Graph, pred: Value, on_true: Value, on_false: Value) -> Result<Value> {
    graph.emit_one(Op::Select, &[pred, on_true, on_false])
}

/// The forward loop, and the values that it keeps.
pub(super) fn forward(
    graph: &mut Graph,
    plan: &LoopPlan,
    leaves: &[Value],
    constants: &[Value],
) -> Result<(Values, SavedStates)> {
    let saved = Saved::new(plan)?;
    let count = leaves.len();
    let zero = integer(graph, 0)?;
    if saved.leaves.is_empty() {
        let (finals, trips) = counted(graph, plan, leaves, constants)?;
        return Ok((finals, SavedStates { trips, stack: None }));
    }

    let continues = goes_on(graph, plan, leaves, constants)?;
    let types: Vec<&TensorType> = saved.leaves.iter().map(|&leaf| &plan.body.inputs()[leaf]).collect();
    let slots = slots(types.iter().map(|ty| ty.byte_size()).sum(), plan.trips);
    // The reverse needs `slots` more, and one slot for writes that are discarded.
    let capacity = 2 * slots + 1;
    let stride = integer(graph, slots)?;
    let mut state: Vec<Value> = leaves.iter().copied().chain([continues, zero, zero, stride]).collect();
    state.push(buffer(graph, capacity, &TensorType::scalar(graph.ty(zero).dtype))?);
    for ty in types {
        state.push(buffer(graph, capacity, ty)?);
    }
    let outputs = region::while_(
        graph,
        None,
        &state,
        constants,
        |_, state, _| Ok(state[count]),
        |graph, state, constants| {
            let [trips, stored, stride] = [state[count + 1], state[count + 2], state[count + 3]];
            let (most, half, zero) = (integer(graph, slots)?, integer(graph, slots / 2)?, integer(graph, 0)?);
            let full = graph.equal(stored, most)?;
            let moves = select(graph, full, half, zero)?;
            let buffers = thin_out(graph, &state[count + 4..], moves)?;
            let stored = select(graph, full, half, stored)?;
            let twice = graph.multiply(stride, 2)?;
            let stride = select(graph, full, twice, stride)?;
            let values = std::iter::once(trips).chain(saved.leaves.iter().map(|&leaf| state[leaf]));
            let buffers = buffers
                .into_iter()
                .zip(values)
                .map(|(buffer, value)| write(graph, buffer, stored, value))
                .collect::<Result<Vec<_>>>()?;

            let inner: Vec<Value> = state[..=count].iter().copied().chain([zero]).collect();
            let mut next = run(graph, plan, &inner, constants, Some(stride))?.to_vec();
            let here = next.pop().expect("the trips are counted");
            next.push(graph.add(trips, here)?);
            next.push(graph.add(stored, 1)?);
            next.push(stride);
            next.extend(buffers);
            Ok(next)
        },
    )?;
    let stack = Stack {
        slots,
        saved,
        positions: outputs[count + 4],
        buffers: outputs[count + 5..].to_vec(),
        count: outputs[count + 2],
    };
    let trips = outputs[count + 1];
    Ok((outputs[..count].into(), SavedStates { trips, stack: Some(stack) }))
}

/// Whether the loop has a trip from these leaves.
fn goes_on(graph: &mut Graph, plan: &LoopPlan, leaves: &[Value], constants: &[Value]) -> Result<Value> {
    let arguments: Vec<Value> = leaves.iter().chain(constants).copied().collect();
    Ok(inline(graph, &plan.cond, &arguments)?[0])
}

/// The loop without anything kept: its last leaves, and the number of its trips.
pub(super) fn counted(
    graph: &mut Graph,
    plan: &LoopPlan,
    leaves: &[Value],
    constants: &[Value],
) -> Result<(Values, Value)> {
    let (continues, zero) = (goes_on(graph, plan, leaves, constants)?, integer(graph, 0)?);
    let state: Vec<Value> = leaves.iter().copied().chain([continues, zero]).collect();
    let outputs = run(graph, plan, &state, constants, None)?;
    Ok((outputs[..leaves.len()].into(), outputs[leaves.len() + 1]))
}

/// Runs at most `stride` trips of the loop. State: the leaves, their predicate, the trips so far.
fn run(
    graph: &mut Graph,
    plan: &LoopPlan,
    state: &[Value],
    constants: &[Value],
    stride: Option<Value>,
) -> Result<Values> {
    let count = state.len() - 2;
    let captures: Vec<Value> = stride.into_iter().chain(constants.iter().copied()).collect();
    let bounds = captures.len() - constants.len();
    region::while_(
        graph,
        None,
        state,
        &captures,
        |graph, state, captures| {
            let continues = state[count];
            match &captures[..bounds] {
                [stride] => {
                    let in_bounds = graph.less(state[count + 1], *stride)?;
                    graph.logical_and(continues, in_bounds)
                }
                _ => Ok(continues),
            }
        },
        |graph, state, captures| {
            let constants = &captures[bounds..];
            let arguments: Vec<Value> = state[..count].iter().chain(constants).copied().collect();
            let leaves = inline(graph, &plan.body, &arguments)?;
            let arguments: Vec<Value> = leaves.iter().chain(constants).copied().collect();
            let continues = inline(graph, &plan.cond, &arguments)?[0];
            let trips = graph.add(state[count + 1], 1)?;
            Ok(leaves.into_iter().chain([continues, trips]).collect())
        },
    )
}

/// The leaves after some trips, of which each is computed by `next`.
pub(super) fn repeat(
    graph: &mut Graph,
    leaves: &[Value],
    trips: Value,
    constants: &[Value],
    next: impl FnOnce(&mut Graph, &[Value], &[Value]) -> Result<Values>,
) -> Result<Vec<Value>> {
    let state: Vec<Value> = std::iter::once(trips).chain(leaves.iter().copied()).collect();
    let outputs = region::while_(
        graph,
        None,
        &state,
        constants,
        |graph, state, _| graph.greater(state[0], 0),
        |graph, state, constants| {
            let remaining = graph.subtract(state[0], 1)?;
            Ok(std::iter::once(remaining).chain(next(graph, &state[1..], constants)?).collect())
        },
    )?;
    Ok(outputs[1..].to_vec())
}

/// Moves the values at positions 0, 2, 4 ... of each buffer to 0, 1, 2 ..., `moves` values in all.
fn thin_out(graph: &mut Graph, buffers: &[Value], moves: Value) -> Result<Vec<Value>> {
    let zero = integer(graph, 0)?;
    let state: Vec<Value> = std::iter::once(zero).chain(buffers.iter().copied()).collect();
    let outputs = region::while_(
        graph,
        None,
        &state,
        &[moves],
        |graph, state, captures| graph.less(state[0], captures[0]),
        |graph, state, _| {
            let from = graph.multiply(state[0], 2)?;
            let mut next = vec![graph.add(state[0], 1)?];
            for &buffer in &state[1..] {
                let value = read(graph, buffer, from)?;
                next.push(write(graph, buffer, state[0], value)?);
            }
            Ok(next)
        },
    )?;
    Ok(outputs[1..].to_vec())
}

/// Carries cotangents through all trips, the last first.
pub(super) fn reverse(
    graph: &mut Graph,
    plan: &LoopPlan,
    saved: &SavedStates,
    constants: &[Value],
    carried: &[Value],
) -> Result<Vec<Value>> {
    let Some(stack) = &saved.stack else {
        let trips = Trips { count: saved.trips, known: None, most: None };
        return reverse_tape(graph, plan, trips, &[], constants, carried);
    };
    let mut state = vec![saved.trips, graph.subtract(stack.count, 1)?, stack.positions];
    state.extend(&stack.buffers);
    for &leaf in &plan.taped {
        state.push(buffer(graph, stack.slots, &plan.body.inputs()[leaf])?);
    }
    let tapes_at = state.len() - plan.taped.len();
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
            let buffers = &state[3..tapes_at];
            let here = read(graph, positions, top)?;
            let leaves: Vec<Value> =
                buffers.iter().map(|&buffer| read(graph, buffer, top)).collect::<Result<_>>()?;

            let schedule = stack.schedule(graph, end, top, here)?;
            let leaves = stack.saved.advance(graph, plan, &leaves, schedule.advance, constants)?;
            let above = graph.add(top, 1)?;
            let there = graph.add(here, schedule.advance)?;
            let mut pushed = vec![write(graph, positions, above, there)?];
            for (&buffer, &leaf) in buffers.iter().zip(&leaves) {
                pushed.push(write(graph, buffer, above, leaf)?);
            }
            let (tapes, zero) = ((&plan.taped[..], &state[tapes_at..carried_at]), integer(graph, 0)?);
            let tapes = stack.saved.tape(graph, plan, &leaves, tapes, (zero, schedule.chunk), constants)?;
            let trips = Trips { count: schedule.chunk, known: None, most: Some(stack.slots) };
            let carried = reverse_tape(graph, plan, trips, &tapes, constants, &state[carried_at..])?;

            let end = graph.subtract(end, schedule.chunk)?;
            let below = graph.subtract(top, 1)?;
            let done = graph.equal(end, here)?;
            let popped = select(graph, done, below, top)?;
            let top = select(graph, schedule.splits, above, popped)?;
            Ok([end, top].into_iter().chain(pushed).chain(tapes).chain(carried).collect())
        },
    )?;
    Ok(outputs[carried_at..].to_vec())
}

/// One step of the reverse.
struct Schedule {
    /// Whether the step creates a new checkpoint rather than reverses trips.
    splits: Value,
    /// The number of trips to run from the topmost checkpoint.
    advance: Value,
    /// The number of trips after these to reverse.
    chunk: Value,
}

impl Stack {
    /// The next step: trips from `here`, the position of the checkpoint at `top`, to `end` remain to be
    /// reversed.
    fn schedule(&self, graph: &mut Graph, end: Value, top: Value, here: Value) -> Result<Schedule> {
        let tape = integer(graph, self.slots)?;
        let zero = integer(graph, 0)?;
        let last = integer(graph, 2 * self.slots - 1)?;
        let distance = graph.subtract(end, here)?;
        let free_slots = graph.subtract(last, top)?;
        let (is_long, has_free_slots) = (graph.greater(distance, tape)?, graph.greater(free_slots, 0)?);
        let splits = graph.logical_and(is_long, has_free_slots)?;
        // The new checkpoints split the trips into free_slots + 1 segments, each a multiple of the tape's length.
        let segments = graph.add(free_slots, 1)?;
        let width = graph.multiply(segments, tape)?;
        let rounded = graph.add(distance, width)?;
        let rounded = graph.subtract(rounded, 1)?;
        let tapes = graph.quotient(rounded, width)?;
        let segment = graph.multiply(tapes, tape)?;
        let fits = graph.min(distance, tape)?;
        let before = graph.subtract(distance, fits)?;
        Ok(Schedule {
            splits,
            advance: select(graph, splits, segment, before)?,
            chunk: select(graph, splits, zero, fits)?,
        })
    }
}

impl Saved {
    /// The leaves that must be saved, and the part of the body that computes them.
    pub fn new(plan: &LoopPlan) -> Result<Saved> {
        let mut leaves = plan.taped.clone();
        let body = region::without_hook_calls(&plan.body)?;
        loop {
            let step = region::with_results(&body, &leaves)?;
            let used = region::used_inputs(&step);
            let more: Vec<usize> =
                (0..plan.variant.len()).filter(|leaf| used[*leaf] || leaves.contains(leaf)).collect();
            if more == leaves {
                return Ok(Saved { leaves, step });
            }
            leaves = more;
        }
    }

    /// The position of a changing leaf among those that are saved.
    pub fn position(&self, leaf: usize) -> usize {
        self.leaves.iter().position(|other| *other == leaf).expect("what the gradient reads is kept")
    }

    /// The saved leaves one trip later.
    fn next(
        &self,
        graph: &mut Graph,
        plan: &LoopPlan,
        leaves: &[Value],
        constants: &[Value],
    ) -> Result<Values> {
        // The step takes all leaves of the loop and reads the saved ones.
        let mut arguments = vec![leaves[0]; plan.variant.len()];
        for (&leaf, &value) in self.leaves.iter().zip(leaves) {
            arguments[leaf] = value;
        }
        arguments.extend(constants);
        inline(graph, &self.step, &arguments)
    }

    /// The saved leaves some trips later.
    pub fn advance(
        &self,
        graph: &mut Graph,
        plan: &LoopPlan,
        leaves: &[Value],
        trips: Value,
        constants: &[Value],
    ) -> Result<Vec<Value>> {
        repeat(graph, leaves, trips, constants, |graph, leaves, constants| {
            self.next(graph, plan, leaves, constants)
        })
    }

    /// Writes leaves before each of some trips onto tapes, from the position `first` on; those that the trips begin with in
    /// any case. The tapes come with their leaves, which are among the saved ones.
    pub fn tape(
        &self,
        graph: &mut Graph,
        plan: &LoopPlan,
        leaves: &[Value],
        (taped, tapes): (&[usize], &[Value]),
        (first, trips): (Value, Value),
        constants: &[Value],
    ) -> Result<Vec<Value>> {
        let written = |graph: &mut Graph, tapes: &[Value], position: Value, leaves: &[Value]| {
            let pairs = tapes.iter().zip(taped);
            let writes =
                pairs.map(|(&tape, &leaf)| write(graph, tape, position, leaves[self.position(leaf)]));
            writes.collect::<Result<Vec<_>>>()
        };
        let mut state = vec![first];
        state.extend(leaves);
        state.extend(written(graph, tapes, first, leaves)?);
        let end = graph.add(first, trips)?;
        let last = graph.subtract(end, 1)?;
        let captures: Vec<Value> = std::iter::once(last).chain(constants.iter().copied()).collect();
        let tapes_at = 1 + leaves.len();
        let outputs = region::while_(
            graph,
            None,
            &state,
            &captures,
            |graph, state, captures| graph.less(state[0], captures[0]),
            |graph, state, captures| {
                let position = graph.add(state[0], 1)?;
                let leaves = self.next(graph, plan, &state[1..tapes_at], &captures[1..])?;
                let tapes = written(graph, &state[tapes_at..], position, &leaves)?;
                Ok(std::iter::once(position).chain(leaves).chain(tapes).collect())
            },
        )?;
        Ok(outputs[tapes_at..].to_vec())
    }
}
