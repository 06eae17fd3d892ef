//! A program as steps: segments that the device runs, and between them the host's work.
//!
//! Without effects in loops and branches there is one segment, and its hooks are called after it has run. The host runs
//! loops and branches with effects: it reads the compiled condition, and runs the segments of the body.

use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::infer::infer;
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{DType, Location, Result, TensorType, compose};
use rustc_hash::{FxHashMap, FxHashSet};

/// The plan of a region, to run on values of its inputs, which have the slots from 0 on.
#[derive(Debug)]
pub(super) struct Plan<P> {
    pub steps: Vec<Step<P>>,
    /// The number of slots.
    pub slots: usize,
    /// The slots of the results.
    pub results: Vec<usize>,
    /// For each input, whether anything uses it.
    pub used: Vec<bool>,
}

/// One step of a plan.
#[derive(Debug)]
pub(super) struct Step<P> {
    pub work: Work<P>,
    /// The slots that it reads.
    pub inputs: Vec<usize>,
    /// The slots that it writes, in order.
    pub outputs: Vec<usize>,
    /// The slots that no later step reads.
    pub last_uses: Vec<usize>,
    pub location: Option<Location>,
}

/// The kind of work of a step.
#[derive(Debug)]
pub(super) enum Work<P> {
    /// Runs a program on the device. The values after its outputs are for the hooks.
    Device { program: P, hooks: Vec<(usize, Vec<TensorType>)> },
    /// Calls a host function that computes values.
    Call { slot: usize, inputs: Vec<TensorType>, outputs: Vec<TensorType> },
    /// Runs one of several plans, selected by the first inputs, which are predicates.
    Cond { predicates: Vec<DType>, branches: Vec<Plan<P>> },
    /// Runs a plan repeatedly, on the state, which is the first inputs, and the other inputs.
    While { state: usize, predicate: DType, cond: Plan<P>, body: Plan<P> },
    /// Runs a plan.
    Inline(Plan<P>),
}

/// A segment: its region, the slots of its inputs, and the types of its hooks' values.
pub(super) struct Segment<'a> {
    pub region: Region,
    pub inputs: &'a [usize],
    pub hooks: &'a [(usize, Vec<TensorType>)],
}

/// Compiles a segment. Segments come in the order of the program, so two plans of one program have the same segments.
pub(super) type Compile<'a, P> = &'a mut dyn FnMut(Segment<'_>) -> Result<P>;

/// Plans a region; `compile` compiles its segments. The inputs at `required_inputs` become inputs of every segment, even
/// if nothing uses them.
pub(super) fn plan<P>(
    region: &Region,
    required_inputs: &[usize],
    compile: Compile<'_, P>,
) -> Result<Plan<P>> {
    Planner::new(region, required_inputs).finish(compile)
}

/// Whether the host runs a part of the region.
pub(super) fn has_host_steps(region: &Region) -> bool {
    region.graph().nodes().iter().any(runs_on_host)
}

impl<P> Plan<P> {
    /// Visits the segments' programs, in the order in which they were compiled.
    pub fn each(&self, visit: &mut dyn FnMut(&P) -> Result<()>) -> Result<()> {
        for step in &self.steps {
            match &step.work {
                Work::Device { program, .. } => visit(program)?,
                Work::Call { .. } => {}
                Work::Cond { branches, .. } => {
                    for branch in branches {
                        branch.each(visit)?;
                    }
                }
                Work::While { cond, body, .. } => {
                    cond.each(visit)?;
                    body.each(visit)?;
                }
                Work::Inline(inner) => inner.each(visit)?,
            }
        }
        Ok(())
    }
}

struct Planner<'a> {
    region: &'a Region,
    /// Inputs that every segment takes, even if nothing uses them.
    required_inputs: &'a [usize],
    /// For each node, the index of its group; see `PARAMETER`.
    group_of: Vec<usize>,
    groups: Vec<Group>,
    slots: FxHashMap<Value, usize>,
    count: usize,
}

/// Nodes that run together.
enum Group {
    Device(Vec<usize>),
    Host(usize),
}

const PARAMETER: usize = usize::MAX;

/// Whether the host runs a node.
fn runs_on_host(node: &Node) -> bool {
    if let Op::Hook(_) | Op::CustomGrad(_) | Op::Implicit(_) = node.op { false } else { node.op.has_effect() }
}

/// Whether recomputing a node is cheaper than passing it from one segment to another.
fn is_free(node: &Node) -> bool {
    let (Op::Constant(_) | Op::Iota { .. } | Op::Eye { .. }) = node.op else { return false };
    true
}

impl<'a> Planner<'a> {
    fn new(region: &'a Region, required_inputs: &'a [usize]) -> Planner<'a> {
        let nodes = region.graph().nodes();
        let mut planner = Planner {
            region,
            required_inputs,
            group_of: vec![PARAMETER; nodes.len()],
            groups: Vec::new(),
            slots: FxHashMap::default(),
            count: region.inputs().len(),
        };
        for (at, node) in nodes.iter().enumerate() {
            if let Op::Parameter { index, .. } = &node.op {
                planner.slots.insert(Value { node: at as u32, output: 0 }, *index);
                continue;
            }
            if runs_on_host(node) {
                planner.groups.push(Group::Host(at));
            } else if let Some(Group::Device(segment)) = planner.groups.last_mut() {
                segment.push(at);
            } else {
                planner.groups.push(Group::Device(vec![at]));
            }
            planner.group_of[at] = planner.groups.len() - 1;
        }
        planner
    }

    /// The values that are needed outside the segment that computes them.
    fn live_out(&self) -> FxHashSet<Value> {
        let nodes = self.region.graph().nodes();
        let mut live_out: FxHashSet<Value> = self.region.results().iter().copied().collect();
        for (at, node) in nodes.iter().enumerate() {
            for &input in &node.inputs {
                let source = input.node as usize;
                let is_rematerialized = is_free(&nodes[source]) && !runs_on_host(node);
                if self.group_of[source] != self.group_of[at] && !is_rematerialized {
                    live_out.insert(input);
                }
            }
        }
        live_out
    }

    fn finish<P>(mut self, compile: Compile<'_, P>) -> Result<Plan<P>> {
        let graph = self.region.graph();
        let live_out = self.live_out();
        let mut steps = Vec::new();
        for group in std::mem::take(&mut self.groups) {
            match group {
                Group::Device(nodes) => {
                    let mut outputs: Vec<Value> = nodes.iter().flat_map(|&at| graph.outputs(at)).collect();
                    outputs.retain(|value| live_out.contains(value));
                    steps.extend(self.device(&nodes, &outputs, compile)?);
                }
                Group::Host(at) => steps.push(self.host(at, compile)?),
            }
        }
        let results: Vec<usize> = self.region.results().iter().map(|value| self.slots[value]).collect();
        let mut read_later: FxHashSet<usize> = results.iter().copied().collect();
        let mut used = vec![false; self.region.inputs().len()];
        for &slot in &results {
            if slot < used.len() {
                used[slot] = true;
            }
        }
        for step in steps.iter_mut().rev() {
            for &slot in &step.inputs {
                if slot < used.len() {
                    used[slot] = true;
                }
                if read_later.insert(slot) {
                    step.last_uses.push(slot);
                }
            }
        }
        Ok(Plan { steps, slots: self.count, results, used })
    }

    /// A segment for the device; `None` if it would compute nothing.
    fn device<P>(
        &mut self,
        nodes: &[usize],
        outputs: &[Value],
        compile: Compile<'_, P>,
    ) -> Result<Option<Step<P>>> {
        let graph = self.region.graph();
        let mut hooks = Vec::new();
        for &at in nodes {
            let node = &graph.nodes()[at];
            if let Op::Hook(op) = &node.op {
                hooks.push((op.slot, node.inputs.iter().map(|&input| graph.ty(input).clone()).collect()));
            }
        }
        if outputs.is_empty() && hooks.is_empty() {
            return Ok(None);
        }
        let (region, inputs) = self.segment(nodes, outputs)?;
        let outputs: Vec<usize> = outputs.iter().map(|&value| self.slot(value)).collect();
        let program = compile(Segment { region, inputs: &inputs, hooks: &hooks })?;
        let work = Work::Device { program, hooks };
        Ok(Some(Step { work, inputs, outputs, last_uses: Vec::new(), location: None }))
    }

    /// The region of some nodes, and the slots of its inputs.
    fn segment(&mut self, nodes: &[usize], outputs: &[Value]) -> Result<(Region, Vec<usize>)> {
        let source = self.region.graph();
        let (mut graph, mut types, mut inputs) = (Graph::new(), Vec::new(), Vec::new());
        let mut mapped: FxHashMap<Value, Value> = FxHashMap::default();
        let mut parameters: FxHashMap<usize, Value> = FxHashMap::default();
        for &index in self.required_inputs {
            let ty = self.region.inputs()[index].clone();
            parameters.insert(index, graph.parameter(inputs.len(), ty.clone()));
            inputs.push(index);
            types.push(ty);
        }
        for &at in nodes {
            let node = &source.nodes()[at];
            let mut operands = Values::new();
            for &input in &node.inputs {
                let operand = match mapped.get(&input).copied() {
                    Some(value) => value,
                    None if is_free(source.node(input)) => {
                        let rematerialized = graph.push(source.node(input).op.clone(), &[])?[0];
                        mapped.insert(input, rematerialized);
                        rematerialized
                    }
                    None => {
                        let slot = self.slots[&input];
                        *parameters.entry(slot).or_insert_with(|| {
                            let ty = source.ty(input).clone();
                            inputs.push(slot);
                            types.push(ty.clone());
                            graph.parameter(inputs.len() - 1, ty)
                        })
                    }
                };
                operands.push(operand);
            }
            graph.set_location(node.location.clone());
            let new_values = graph.push(node.op.clone(), &operands)?;
            mapped.extend(source.outputs(at).into_iter().zip(new_values));
        }
        let results: Values = outputs.iter().map(|value| mapped[value]).collect();
        let count = types.len();
        Ok((Region::new(graph, types, count, results), inputs))
    }

    /// A node that the host runs.
    fn host<P>(&mut self, at: usize, compile: Compile<'_, P>) -> Result<Step<P>> {
        let graph = self.region.graph();
        let node = &graph.nodes()[at];
        let types = |values: &[Value]| -> Vec<TensorType> {
            values.iter().map(|&value| graph.ty(value).clone()).collect()
        };
        let mut inner = |region: &Region| plan(region, &[], &mut *compile);
        let work = if let Op::RuntimeCall(op) = &node.op {
            Work::Call { slot: op.slot, inputs: types(&node.inputs), outputs: op.outputs.to_vec() }
        } else if let Op::Cond(op) = &node.op {
            let count = op.branches.len() - 1;
            Work::Cond {
                predicates: types(&node.inputs[..count]).iter().map(|ty| ty.dtype).collect(),
                branches: op.branches.iter().map(|branch| inner(branch)).collect::<Result<_>>()?,
            }
        } else if let Op::While(op) = &node.op {
            Work::While {
                state: op.state,
                predicate: op.cond.graph().ty(op.cond.results()[0]).dtype,
                cond: inner(&op.cond)?,
                body: inner(&op.body)?,
            }
        } else if let Op::UserBlock(op) = &node.op {
            Work::Inline(inner(&op.default)?)
        } else {
            Work::Inline(inner(&fold_default(&node.op, &types(&node.inputs))?)?)
        };
        let inputs = node.inputs.iter().map(|value| self.slots[value]).collect();
        let location = node.location.clone();
        let outputs = graph.outputs(at).iter().map(|&value| self.slot(value)).collect();
        Ok(Step { work, inputs, outputs, last_uses: Vec::new(), location })
    }

    /// Assigns a slot to a value.
    fn slot(&mut self, value: Value) -> usize {
        let slot = self.count;
        self.count += 1;
        self.slots.insert(value, slot);
        slot
    }
}

/// The default graph of a fold whose function has effects.
fn fold_default(op: &Op, types: &[TensorType]) -> Result<Region> {
    let mut graph = Graph::new();
    let operands: Vec<Value> =
        types.iter().enumerate().map(|(index, ty)| graph.parameter(index, ty.clone())).collect();
    let result = if let Op::Fold(op) = op {
        compose::fold::fold(&mut graph, op, &operands)?
    } else if let Op::WindowFold(fold) = op {
        let shape = infer(op, &types.iter().collect::<Vec<_>>())?.remove(0).shape;
        compose::fold::window_fold(&mut graph, fold, &operands, &shape)?
    } else {
        unreachable!("{op:?} has no effects")
    };
    Ok(Region::new(graph, types.to_vec(), types.len(), [result].into_iter().collect()))
}
