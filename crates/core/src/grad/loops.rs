//! The reverse of a loop, in linear time, with static shapes and without a growing list.
//!
//! A second loop carries the cotangents of the state. It needs the states of the forward loop in reverse
//! order. Where the number of trips is known, the forward loop writes each state onto a tape of that length;
//! a trip then costs two evaluations of the body, the second inside its gradient. Where it is not known, see
//! [`checkpoint`](super::checkpoint).
//!
//! Only the values that a gradient needs are carried: of the state, the leaves that depend on a variable and
//! on which the differentiated results depend; of the captures, the variables. A leaf that the body passes on
//! unchanged counts as a capture. Tapes hold only leaves that the gradient of the body reads. Gradients of large captures
//! that are sums of products are computed for many trips at once, see [`products`](super::products).

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::binomial::{self, Snapshots};
use super::products::{Trips, reverse_tape};
use super::region::{self, Draft, HookCalls, Pullback, convert};
use super::{Contribution, Site, Vjp, checkpoint, cotangent_type, reach};
use crate::builder::{BuildElementwise, Builder};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Value, Values};
use crate::op::{Op, Starts, WhileOp};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::{Shape, Sizes, TensorType};

/// The target size in bytes of tapes and checkpoints of a loop.
pub(super) const TAPE_BYTES: usize = 64 << 20;

/// The number of trips up to which a tape may be longer than [`TAPE_BYTES`].
const FEW_TRIPS: usize = 1 << 12;

/// A loop prepared for its reverse. Its regions have inputs without names: the changing leaves of the state,
/// then the constants, which are the captures and the unchanged leaves.
pub(super) struct LoopPlan {
    state: usize,
    pub trips: Option<u64>,
    /// The number of snapshots, if the user chose it.
    snapshots: Option<usize>,
    /// The operands of the loop that are changing leaves.
    pub variant: Vec<usize>,
    /// The operands that are constants.
    pub constants: Vec<usize>,
    /// From leaves and constants to the predicate.
    pub cond: Region,
    /// From leaves and constants to the next leaves.
    pub body: Region,
    /// Positions in `variant` whose cotangents are carried.
    pub active: Vec<usize>,
    /// Positions in `constants` whose gradients accumulate.
    pub needed: Vec<usize>,
    /// From leaves, constants, and the cotangents of `active` and `needed`, to these cotangents one trip
    /// earlier.
    pub pullback: Region,
    /// Positions in `variant` that the pullback reads.
    pub taped: Vec<usize>,
}

/// The values that a forward loop keeps for its reverse.
pub(super) struct SavedLoop {
    plan: LoopPlan,
    /// The loop's operands, without names.
    operands: Values,
    states: SavedStates,
    node: u32,
}

impl SavedLoop {
    /// The node whose first outputs are the changing leaves.
    pub fn node(&self) -> u32 {
        self.node
    }
}

enum SavedStates {
    /// For each leaf in `taped`, its value before each trip.
    Tapes { tapes: Vec<Value>, length: usize },
    /// Some states; the others are recomputed from them.
    Checkpoints(Box<checkpoint::SavedStates>),
    /// The same, in a given number.
    Snapshots(Box<Snapshots>),
}

impl LoopPlan {
    /// Plans a loop on operands of the given types. `varied` marks the operands that depend on a variable,
    /// `useful` the outputs on which the differentiated results depend. None if no gradient passes.
    pub fn new(
        op: &WhileOp,
        types: &[&TensorType],
        varied: &[bool],
        useful: &[bool],
    ) -> Result<Option<LoopPlan>> {
        let invariant = invariants(op);
        let variant: Vec<usize> = (0..op.state).filter(|leaf| !invariant.contains(leaf)).collect();
        let constants: Vec<usize> = invariant.into_iter().chain(op.state..types.len()).collect();
        let step = reach::results(&op.body);
        let after = reach::trips(op.state, &step);
        let is_useful = |leaf: usize| (0..op.state).any(|output| useful[output] && after[output].has(leaf));
        let is_varied = |leaf: usize| (0..types.len()).any(|input| varied[input] && after[leaf].has(input));
        let active: Vec<usize> =
            (0..variant.len()).filter(|&leaf| is_useful(variant[leaf]) && is_varied(variant[leaf])).collect();
        let reaches = |input: usize| active.iter().any(|&leaf| step[variant[leaf]].has(input));
        let needed: Vec<usize> = (0..constants.len())
            .filter(|&constant| varied[constants[constant]] && reaches(constants[constant]))
            .collect();
        if active.is_empty() {
            return Ok(None);
        }
        let cond = normalised(&op.cond, types, (&variant, &constants), &[0])?;
        let body = normalised(&op.body, types, (&variant, &constants), &variant)?;
        let pullback = pullback(&body, variant.len(), &active, &needed)?;
        let used = region::used_inputs(&pullback);
        let taped = (0..variant.len()).filter(|&leaf| used[leaf]).collect();
        let (state, trips, snapshots) = (op.state, op.trips, op.snapshots);
        Ok(Some(LoopPlan {
            state,
            trips,
            snapshots,
            variant,
            constants,
            cond,
            body,
            active,
            needed,
            pullback,
            taped,
        }))
    }

    /// Splits the loop's operands into changing leaves and constants.
    fn split(&self, operands: &[Value]) -> (Vec<Value>, Vec<Value>) {
        let pick = |positions: &[usize]| positions.iter().map(|&position| operands[position]).collect();
        (pick(&self.variant), pick(&self.constants))
    }

    /// The size of one state in bytes.
    fn state_bytes(&self, leaves: &[usize]) -> usize {
        leaves.iter().map(|&leaf| self.body.inputs()[leaf].byte_size()).sum()
    }

    /// The number of trips, if tapes for all of them are kept.
    fn tape_length(&self) -> Option<usize> {
        let trips = usize::try_from(self.trips?).ok()?;
        let bytes = self.state_bytes(&self.taped).checked_mul(trips)?;
        // A longer tape would leave too little memory for the computation itself. Few trips have large states, whose
        // second evaluation takes long.
        let most = if trips <= FEW_TRIPS { 16 * TAPE_BYTES } else { TAPE_BYTES };
        (bytes <= most).then_some(trips)
    }
}

/// A region of a loop with inputs without names, in the order of the plan.
fn normalised(
    region: &Region,
    types: &[&TensorType],
    (variant, constants): (&[usize], &[usize]),
    results: &[usize],
) -> Result<Region> {
    let mut draft = Draft::new();
    let mut arguments: FxHashMap<usize, Value> = FxHashMap::default();
    for &operand in variant.iter().chain(constants) {
        let ty = types[operand];
        let plain = TensorType { dtype: ty.dtype, shape: ty.shape.without_names() };
        let input = draft.input(plain);
        let named = draft.graph.emit_one(Op::Reshape { shape: ty.shape.clone() }, &[input])?;
        arguments.insert(operand, named);
    }
    let arguments: Vec<Value> = (0..types.len()).map(|operand| arguments[&operand]).collect();
    let graph = &mut draft.graph;
    let values = region::replay(graph, region, &arguments, HookCalls::Keep, None)?.results;
    let results: Values = results
        .iter()
        .map(|&result| region::nameless(&mut draft.graph, values[result]))
        .collect::<Result<_>>()?;
    draft.close(variant.len(), &results)
}

/// The gradient of one trip. Gradients of constants accumulate over the trips.
fn pullback(body: &Region, leaves: usize, active: &[usize], needed: &[usize]) -> Result<Region> {
    let wrt: Vec<usize> = active.iter().copied().chain(needed.iter().map(|&c| leaves + c)).collect();
    let carried: Vec<TensorType> = wrt.iter().map(|&input| cotangent_type(&body.inputs()[input])).collect();
    let mut cotangents = vec![None; leaves];
    for (&leaf, ty) in active.iter().zip(&carried) {
        cotangents[leaf] = Some(ty.clone());
    }
    let seeds: Vec<Option<TensorType>> = carried
        .iter()
        .enumerate()
        .map(|(position, ty)| (position >= active.len()).then(|| ty.clone()))
        .collect();
    let pullback = Pullback::new(body, &wrt, &cotangents, &seeds)?;

    let mut draft = Draft::new();
    let types = body.inputs().iter().chain(&carried);
    let arguments: Vec<Value> = types.map(|ty| draft.input(ty.clone())).collect();
    let graph = &mut draft.graph;
    let mut gradients = region::inline(graph, &pullback.region, &arguments)?.into_iter();
    let mut results = Values::new();
    for (&flows, ty) in pullback.flows.iter().zip(&carried) {
        let gradient = if flows { gradients.next() } else { None };
        results.push(match gradient {
            Some(gradient) => convert(graph, gradient, ty.dtype)?,
            None => region::zeros(graph, ty)?,
        });
    }
    let count = arguments.len();
    draft.close(count, &results)
}

/// Adds a loop that keeps the values for its reverse. Returns the loop's outputs without names.
pub(super) fn forward(graph: &mut Graph, plan: LoopPlan, operands: Values) -> Result<(Values, SavedLoop)> {
    let (leaves, constants) = plan.split(&operands);
    let (finals, states) = match (plan.snapshots, plan.tape_length()) {
        (Some(count), length) if length.is_none_or(|length| length > count) && !plan.taped.is_empty() => {
            let (finals, snapshots) = binomial::forward(graph, &plan, &leaves, &constants, count)?;
            (finals, SavedStates::Snapshots(Box::new(snapshots)))
        }
        (_, Some(length)) => {
            let (finals, tapes) = taping(graph, &plan, &leaves, &constants, length)?;
            (finals, SavedStates::Tapes { tapes, length })
        }
        (_, None) => {
            let (finals, states) = checkpoint::forward(graph, &plan, &leaves, &constants)?;
            (finals, SavedStates::Checkpoints(Box::new(states)))
        }
    };
    let mut outputs: Values = operands[..plan.state].into();
    for (&leaf, &value) in plan.variant.iter().zip(&finals) {
        outputs[leaf] = value;
    }
    let node = finals[0].node;
    Ok((outputs, SavedLoop { plan, operands, states, node }))
}

/// A scalar of the type of counters and positions.
pub(super) fn integer(graph: &mut Graph, value: usize) -> Result<Value> {
    graph.scalar(Scalar::new(DType::S64, value as i64)?)
}

/// A buffer for `count` values of one type, filled with zeros.
pub(super) fn buffer(graph: &mut Graph, count: usize, ty: &TensorType) -> Result<Value> {
    let sizes: Sizes = std::iter::once(count).chain(ty.shape.sizes().iter().copied()).collect();
    region::zeros(graph, &TensorType::new(ty.dtype, Shape::new(&sizes))?)
}

fn at(graph: &mut Graph, position: Value, rank: usize) -> Result<Values> {
    let zero = integer(graph, 0)?;
    Ok(std::iter::once(position).chain(std::iter::repeat_n(zero, rank)).collect())
}

/// The value at a position of a buffer.
pub(super) fn read(graph: &mut Graph, buffer: Value, position: Value) -> Result<Value> {
    let sizes: Sizes = graph.ty(buffer).shape.sizes()[1..].into();
    let starts = at(graph, position, sizes.len())?;
    let lengths: Sizes = std::iter::once(1).chain(sizes.iter().copied()).collect();
    let row = region::window(graph, buffer, Starts::Dynamic, &starts, lengths)?;
    graph.emit_one(Op::Reshape { shape: Shape::new(&sizes) }, &[row])
}

/// A buffer with the value at a position replaced.
pub(super) fn write(graph: &mut Graph, buffer: Value, position: Value, value: Value) -> Result<Value> {
    let sizes: Sizes = graph.ty(value).shape.sizes().into();
    let starts = at(graph, position, sizes.len())?;
    let row: Sizes = std::iter::once(1).chain(sizes).collect();
    let row = graph.emit_one(Op::Reshape { shape: Shape::new(&row) }, &[value])?;
    let operands: Values = [buffer, row].into_iter().chain(starts).collect();
    graph.emit_one(Op::PutSlice { starts: Starts::Dynamic }, &operands)
}

/// The forward loop with a tape for each leaf in `taped`.
fn taping(
    graph: &mut Graph,
    plan: &LoopPlan,
    leaves: &[Value],
    constants: &[Value],
    length: usize,
) -> Result<(Values, Vec<Value>)> {
    let count = leaves.len();
    let mut state = leaves.to_vec();
    if !plan.taped.is_empty() {
        state.push(integer(graph, 0)?);
        for &leaf in &plan.taped {
            // A loop without trips also gets a tape, to which nothing is written.
            state.push(buffer(graph, length.max(1), &plan.body.inputs()[leaf])?);
        }
    }
    let arguments = |state: &[Value], constants: &[Value]| -> Vec<Value> {
        state[..count].iter().chain(constants).copied().collect()
    };
    let outputs = region::while_(
        graph,
        plan.trips,
        &state,
        constants,
        |graph, state, constants| Ok(region::inline(graph, &plan.cond, &arguments(state, constants))?[0]),
        |graph, state, constants| {
            let mut next: Vec<Value> =
                region::inline(graph, &plan.body, &arguments(state, constants))?.into_iter().collect();
            if let Some(&trip) = state.get(count) {
                next.push(graph.add(trip, 1)?);
                for (&leaf, &tape) in plan.taped.iter().zip(&state[count + 1..]) {
                    next.push(write(graph, tape, trip, state[leaf])?);
                }
            }
            Ok(next)
        },
    )?;
    let tapes = outputs.iter().copied().skip(count + 1).collect();
    Ok((outputs[..count].into(), tapes))
}

/// The reverse of a loop.
pub(super) fn while_(
    site: &mut Site<'_>,
    op: &WhileOp,
    g: &[Option<Value>],
    saved: Option<SavedLoop>,
) -> Result<Vjp> {
    // A loop that was added for reversal returns its changing leaves first; constants are not among its
    // outputs.
    if let Some(saved) = saved {
        let targets = saved.operands.clone();
        let g: Vec<Option<Value>> = g[..saved.plan.variant.len()].to_vec();
        return reverse(site.graph, &saved, &targets, &g, &[]);
    }
    // The loop has run already; the rerun for the reverse calls no hooks.
    let without_hook_calls = region::without_hooks(&Op::While(op.clone()))?;
    let op = if let Op::While(op) = &without_hook_calls { op } else { op };
    let types: Vec<TensorType> = (0..site.inputs.len()).map(|input| site.input_ty(input)).collect();
    let types: Vec<&TensorType> = types.iter().collect();
    let useful: Vec<bool> = g.iter().map(Option::is_some).collect();
    let targets = site.inputs.clone();
    let seeds: Vec<(usize, Value)> =
        invariants(op).into_iter().filter_map(|leaf| Some((leaf, g[leaf]?))).collect();
    let Some(plan) = LoopPlan::new(op, &types, &site.needed, &useful)? else {
        let passed = seeds.into_iter().map(|(leaf, g)| (targets[leaf], Contribution::Whole(g)));
        return Ok(Vjp::To(passed.collect()));
    };
    let operands = (0..site.inputs.len()).map(|input| site.input(input)).collect::<Result<_>>()?;
    let (_, saved) = forward(site.graph, plan, operands)?;
    let through: Vec<Option<Value>> = saved.plan.variant.iter().map(|&leaf| g[leaf]).collect();
    reverse(site.graph, &saved, &targets, &through, &seeds)
}

/// The cotangents of the operands, from the cotangents `g` of the changing leaves. `seeds` are cotangents
/// that constants already have; `targets` are the values that receive the contributions, one for each operand.
fn reverse(
    graph: &mut Graph,
    saved: &SavedLoop,
    targets: &[Value],
    g: &[Option<Value>],
    seeds: &[(usize, Value)],
) -> Result<Vjp> {
    let plan = &saved.plan;
    let (_, constants) = plan.split(&saved.operands);
    let seed = |operand: usize| seeds.iter().find(|seed| seed.0 == operand).map(|seed| seed.1);
    let leaves = plan.active.iter().map(|&leaf| (leaf, g[leaf]));
    let captures = plan.needed.iter().map(|&c| (plan.variant.len() + c, seed(plan.constants[c])));
    let mut carried = Vec::with_capacity(plan.active.len() + plan.needed.len());
    for (input, cotangent) in leaves.chain(captures) {
        let ty = cotangent_type(&plan.body.inputs()[input]);
        carried.push(match cotangent {
            Some(cotangent) => convert(graph, cotangent, ty.dtype)?,
            None => region::zeros(graph, &ty)?,
        });
    }
    let gradients = match &saved.states {
        SavedStates::Tapes { tapes, length } => {
            let count = integer(graph, *length)?;
            let trips = Trips { count, known: plan.trips, most: Some(*length) };
            reverse_tape(graph, plan, trips, tapes, &constants, &carried)?
        }
        SavedStates::Checkpoints(states) => checkpoint::reverse(graph, plan, states, &constants, &carried)?,
        SavedStates::Snapshots(states) => binomial::reverse(graph, plan, states, &constants, &carried)?,
    };
    let leaves = plan.active.iter().map(|&leaf| plan.variant[leaf]);
    let captures = plan.needed.iter().map(|&constant| plan.constants[constant]);
    let operands: Vec<usize> = leaves.chain(captures).collect();
    let mut contributions: SmallVec<[(Value, Contribution); 3]> = operands
        .iter()
        .zip(gradients)
        .map(|(&operand, g)| (targets[operand], Contribution::Whole(g)))
        .collect();
    for &(operand, g) in seeds.iter().filter(|seed| !operands.contains(&seed.0)) {
        contributions.push((targets[operand], Contribution::Whole(g)));
    }
    Ok(Vjp::To(contributions))
}

/// The leaves that the body passes on unchanged.
pub(crate) fn invariants(op: &WhileOp) -> Vec<usize> {
    let results = op.body.results().iter().enumerate();
    let is_unchanged = |leaf: usize, value: Value| {
        if let Op::Parameter { index, .. } = &op.body.graph().node(value).op { *index == leaf } else { false }
    };
    results.filter(|&(leaf, &value)| is_unchanged(leaf, value)).map(|(leaf, _)| leaf).collect()
}
