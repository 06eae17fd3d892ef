//! Loops and branches as plans of their regions, and the memory that they have beside their operands and results.

use std::sync::Arc;

use defn_core::backend::Backend;
use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{BinaryOp, CondOp, Op, WhileOp};
use defn_core::region::Region;
use defn_core::{Kind, Number, Result, TensorType};

use super::overwritten::overwritten;
use super::places::elements_of;
use crate::compiler::arena::rounded;
use crate::compiler::plan::{Plan, Step, Work};

/// What a step counts of the time until the host is asked whether to go on, beside its elements.
const STEP_COST: u64 = 16;

/// What a kernel counts.
const KERNEL_COST: u64 = 1 << 10;

/// A loop without a question to the host takes no longer than this counts: about a millisecond.
const MAX_UNPOLLED_COST: u64 = 1 << 20;

/// Regions that are run under conditions or over and over.
#[derive(Debug)]
pub(in crate::compiler) enum Regions {
    While(While),
    Cond(Cond),
}

/// A loop.
#[derive(Debug)]
pub(in crate::compiler) struct While {
    pub(super) trips: Option<u64>,
    pub(super) cond: Arc<Plan>,
    pub(super) body: Arc<Plan>,
    /// How each part of the state is kept.
    pub(super) state: Vec<Kept>,
    /// For each part, whether nobody needs what it is before the loop.
    overwritten: Vec<bool>,
    /// Where the predicate is, if it is in memory.
    pub(super) predicate: usize,
    /// Where the memory of the regions begins.
    inner: usize,
}

/// How a part of the state is kept. Offsets are those of the loop's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// No trip changes it.
    Constant,
    /// Small: in registers. Kernels find it in memory: what a trip was given, and what it gives.
    Scalar { given: usize, next: usize },
    /// A trip changes it where it is.
    InPlace,
    /// It is in the result's memory and in this one by turns.
    Alternating { other: usize },
    /// What comes next is another part as the trip was given it, whose memory it takes.
    Rotated { from: usize },
}

/// Branches.
#[derive(Debug)]
pub(in crate::compiler) struct Cond {
    pub(super) branches: Vec<Arc<Plan>>,
}

impl Regions {
    /// The regions of a node of control flow.
    pub(in crate::compiler) fn of_node(
        graph: &Graph,
        node: &Node,
        backend: &Arc<dyn Backend>,
    ) -> Result<Option<Regions>> {
        Ok(if let Op::While(op) = &node.op {
            let is_overwritten = overwritten(graph, node);
            let overwritten = (0..op.state).map(is_overwritten).collect();
            Some(Regions::While(While::new(op, overwritten, backend)?))
        } else if let Op::Cond(op) = &node.op {
            Some(Regions::Cond(Cond::new(op, backend)?))
        } else {
            None
        })
    }

    /// How many of the first operands are the state of a loop, which the first results are in the end.
    pub(in crate::compiler) fn state(&self) -> usize {
        match self {
            Regions::While(of) => of.state.len(),
            Regions::Cond(_) => 0,
        }
    }

    pub(in crate::compiler) fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        let (cond, body, branches) = match self {
            Regions::While(of) => (Some(&of.cond), Some(&of.body), None),
            Regions::Cond(of) => (None, None, Some(&of.branches)),
        };
        cond.into_iter().chain(body).chain(branches.into_iter().flatten())
    }

    /// The bytes that the regions need beside operands and results.
    pub(in crate::compiler) fn scratch_bytes(&self) -> usize {
        let arenas = self.plans().map(|plan| plan.arena).max().unwrap_or(0);
        self.inner() + arenas
    }

    /// Where the memory of the regions begins.
    pub(super) fn inner(&self) -> usize {
        match self {
            Regions::While(of) => of.inner,
            Regions::Cond(_) => 0,
        }
    }

    /// What the regions count, if that is known: about as many nanoseconds, or fewer.
    fn cost(&self) -> Option<u64> {
        let costs = self.plans().map(|plan| cost(plan)).collect::<Option<Vec<u64>>>()?;
        match self {
            Regions::While(of) => {
                let trip: u64 = costs.iter().sum();
                of.trips?.checked_mul(trip.max(1)).filter(|cost| *cost <= MAX_UNPOLLED_COST)
            }
            Regions::Cond(_) => costs.into_iter().max(),
        }
    }

    /// Whether the host has to be asked while they run.
    pub(super) fn polls(&self) -> bool {
        self.cost().is_none()
    }
}

/// What a plan counts, if that is known.
fn cost(plan: &Plan) -> Option<u64> {
    plan.steps.iter().map(|step| step_cost(plan, step)).sum()
}

/// What a step counts, if that is known.
fn step_cost(plan: &Plan, step: &Step) -> Option<u64> {
    match &step.work {
        Work::Nest(nest) => Some(STEP_COST + nest.elements as u64),
        Work::Regions(regions) => regions.cost(),
        Work::Op => Some(moved(plan, step).map_or(KERNEL_COST, |elements| STEP_COST + elements)),
        Work::Epilogue(_)
        | Work::BackToBackGemm(_)
        | Work::Hook { .. }
        | Work::Call { .. }
        | Work::Control(_) => Some(KERNEL_COST),
    }
}

/// The elements that a step moves, if it does nothing else.
fn moved(plan: &Plan, step: &Step) -> Option<u64> {
    let graph = plan.region.graph();
    let node = &graph.nodes()[step.node];
    if let Op::PutSlice { .. } = node.op {
        // Unless the tensor is changed where it is, it is copied.
        let counted = usize::from(step.aliased_input.is_some());
        return Some(graph.ty(node.inputs[counted]).size() as u64);
    }
    node.op.view().map(|_| node.outputs[0].size() as u64)
}

/// What a plan counts without the loops that ask themselves.
pub(super) fn own_cost(plan: &Plan) -> u64 {
    plan.steps.iter().filter_map(|step| step_cost(plan, step)).sum::<u64>().max(1)
}

impl While {
    fn new(op: &WhileOp, overwritten: Vec<bool>, backend: &Arc<dyn Backend>) -> Result<While> {
        let cond = Plan::of_region(op.cond.clone(), backend, &[])?;
        // Each next state may take the place of the one before.
        let offered: Vec<Option<usize>> = (0..op.state).map(Some).collect();
        let body = Plan::of_region(op.body.clone(), backend, &offered)?;
        let mut end = 0;
        let mut take = |bytes: usize| {
            end += rounded(bytes);
            end - rounded(bytes)
        };
        let state = (0..op.state).map(|at| {
            let ty = &op.body.inputs()[at];
            if is_passed_through(body.region.graph(), body.region.results()[at], at) {
                Kept::Constant
            } else if elements_of(ty).is_some() {
                let given = take(ty.byte_size());
                let next = if body.reuses_argument[at] { given } else { take(ty.byte_size()) };
                Kept::Scalar { given, next }
            } else if body.reuses_argument[at] {
                Kept::InPlace
            } else {
                Kept::Alternating { other: take(ty.byte_size()) }
            }
        });
        let mut state: Vec<Kept> = state.collect();
        rotate(&body.region, &mut state);
        let predicate = take(1);
        let has_effect = op.cond.graph().nodes().iter().any(|node| node.op.has_effect());
        Ok(While {
            trips: op.trips.filter(|_| !has_effect),
            cond: Arc::new(cond),
            body: Arc::new(body),
            state,
            overwritten,
            predicate,
            inner: end,
        })
    }

    /// The parts whose memory goes round, each after the one that it takes over, of one that is kept by turns.
    pub(super) fn chain(&self, root: usize) -> Vec<usize> {
        chain(&self.state, root)
    }

    /// Whether nobody needs what an operand is before the loop.
    pub(super) fn is_overwritten(&self, operand: usize) -> bool {
        self.overwritten.get(operand).copied().unwrap_or(false)
    }

    /// What each trip adds to a part of the state, if it is a signed integer, or an unsigned one, to which a constant is
    /// added.
    pub(super) fn step(&self, at: usize) -> Option<i64> {
        let region = &self.body.region;
        let graph = region.graph();
        let ty = &region.inputs()[at];
        let (Kind::Signed | Kind::Unsigned) = ty.dtype.kind() else { return None };
        let next = graph.node(region.results()[at]);
        let Op::Binary(BinaryOp::ADD) = next.op else { return None };
        let is_own = |value: Value| is_passed_through(graph, value, at);
        let (a, b) = (next.inputs[0], next.inputs[1]);
        let step = if is_own(a) { b } else { Some(a).filter(|_| is_own(b))? };
        let Op::Constant(scalar) = graph.node(step).op else { return None };
        // Elements of fewer bits than a byte wrap earlier than what they are computed in.
        if ty.dtype.bits() < 8 || scalar.dtype() != ty.dtype {
            return None;
        }
        let Number::Int(step) = scalar.value() else { return None };
        i64::try_from(step).ok()
    }

    /// The type of the predicate.
    pub(super) fn predicate_type(&self) -> &TensorType {
        let region = &self.cond.region;
        region.graph().ty(region.results()[0])
    }
}

/// Finds the parts of the state that are other parts one trip later: those that end in one that is kept by turns, each
/// taken over once.
fn rotate(body: &Region, state: &mut [Kept]) {
    let by_turns = |kept: &Kept| matches!(kept, Kept::Alternating { .. });
    let found: Vec<Option<usize>> = (0..state.len())
        .map(|at| {
            let of = (0..state.len()).find(|&part| is_passed_through(body.graph(), body.results()[at], part));
            of.filter(|&part| part != at && by_turns(&state[at]) && by_turns(&state[part]))
        })
        .collect();
    for (at, from) in found.iter().enumerate() {
        let Some(from) = *from else { continue };
        let is_taken = (0..at).any(|other| state[other] == Kept::Rotated { from });
        let before = std::mem::replace(&mut state[at], Kept::Rotated { from });
        // Round in a circle there is none whose memory is free.
        let is_in_chain = |root: usize| by_turns(&state[root]) && chain(state, root).contains(&at);
        if is_taken || !(0..state.len()).any(is_in_chain) {
            state[at] = before;
        }
    }
}

/// A part, and those that take over the memory of the one before.
fn chain(state: &[Kept], root: usize) -> Vec<usize> {
    let mut chain = vec![root];
    while let Some(next) =
        state.iter().position(|kept| *kept == Kept::Rotated { from: chain[chain.len() - 1] })
    {
        chain.push(next);
    }
    chain
}

impl Cond {
    fn new(op: &CondOp, backend: &Arc<dyn Backend>) -> Result<Cond> {
        let plan = |branch| Plan::of_region(Arc::clone(branch), backend, &[]).map(Arc::new);
        Ok(Cond { branches: op.branches.iter().map(plan).collect::<Result<_>>()? })
    }
}

/// Whether a result of a region is one of its parameters.
pub(super) fn is_passed_through(graph: &Graph, result: Value, at: usize) -> bool {
    if let Op::Parameter { index, ty: _ } = graph.node(result).op { index == at } else { false }
}
