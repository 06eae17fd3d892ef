//! A region as steps in execution order, with the buffers that they read and write.

use std::sync::Arc;

use defn_core::backend::Backend;
use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::mesh::MeshError;
use defn_core::op::{OpClass, Outputs};
use defn_core::region::Region;
use defn_core::{Error, Result, TensorType, memory, pass, profile};
use smallvec::SmallVec;

use super::back_to_back::{BackToBackGemm, fuse_back_to_back_gemms};
use super::buffer_assignment::{BufferRef, ConstantBuffer, MemoryPlan, ResultBinding, Slots};
use super::control::{Control, Regions, overwritten};
use super::data_movement::fuse_data_movement;
use super::epilogues::{OpWithEpilogue, fuse_epilogues};
use super::fusion_groups::{FusionGroups, Role};
use super::gathers::fuse_gathers;
use super::nest::Nest;
use super::recompute::recompute;
use super::row_blocks::{FusedKernel, fused_kernels};
use super::users::{Users, Uses};
use crate::backend::{may_overwrite, parallel, workspace};
use crate::par::Par;

/// The fewest bytes for which a nest writes in place of an input.
const MIN_IN_PLACE_BYTES: usize = 256 << 10;

/// The same, where no test says something else.
fn min_in_place_bytes() -> usize {
    #[cfg(all(any(test, fuzzing), target_os = "linux"))]
    if super::nest::test_hooks::writes_in_place() {
        return 0;
    }
    MIN_IN_PLACE_BYTES
}

/// A region, ready to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) region: Arc<Region>,
    pub(super) steps: Vec<Step>,
    /// The constants of the program.
    pub(super) constants: Vec<ConstantBuffer>,
    /// How each result gets its buffer.
    pub(super) results: Vec<ResultBinding>,
    /// For each result, whether it reuses the memory of the argument that was donated for it.
    pub(super) reuses_argument: Vec<bool>,
    /// The results that need memory of their own.
    pub(super) owned_results: Vec<OwnedResult>,
    /// The bytes of the arena of temporaries.
    pub(super) arena: usize,
    /// The node of the largest value in the arena.
    pub(super) largest_temporary: Option<usize>,
    /// The most bytes that an op takes beside while it runs.
    pub(super) workspace: usize,
    /// The inputs that something reads.
    pub(super) arguments: Vec<usize>,
}

/// A result with memory of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnedResult {
    /// Which of the results.
    pub(super) index: usize,
    pub(super) bytes: usize,
    /// The node that gives it.
    pub(super) node: usize,
}

/// One step of a compiled program.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) work: Work,
    /// The node whose line an error names.
    pub(super) node: usize,
    /// What is read.
    pub(super) inputs: SmallVec<[(Value, BufferRef); 4]>,
    /// What is written.
    pub(super) outputs: SmallVec<[(Value, BufferRef); 4]>,
    /// The operand of an op that its result aliases.
    pub(super) aliased_input: Option<usize>,
    /// Where the scratch memory of the step begins in the arena.
    pub(super) scratch_offset: usize,
    pub(super) par: Par,
}

/// The kind of work a step performs.
#[derive(Debug)]
pub(super) enum Work {
    /// A loop nest.
    Nest(Nest),
    /// An op of the backend with an epilogue.
    Epilogue(OpWithEpilogue),
    /// Two products, and the nest between them.
    BackToBackGemm(Box<BackToBackGemm>),
    /// One op of the backend.
    Op,
    /// Shows values to the host.
    Hook { slot: usize, types: Vec<TensorType> },
    /// Asks the host for values.
    Call { slot: usize, types: Vec<TensorType>, outputs: Outputs },
    /// A loop or branches.
    Control(Box<Control>),
    /// A loop or branches in a region of others, whose function does what they do.
    Regions(Box<Regions>),
}

impl Plan {
    /// Plans a region, of which what is written in the program is made on `backend`. `donations` says for each result
    /// whose argument's memory it may take, which is as large.
    pub(super) fn new(
        region: Arc<Region>,
        backend: &Arc<dyn Backend>,
        donations: &[Option<usize>],
    ) -> Result<Plan> {
        Plan::planned(region, backend, donations, false)
    }

    /// The plan of a region of a loop or a branch.
    pub(super) fn of_region(
        region: Arc<Region>,
        backend: &Arc<dyn Backend>,
        donations: &[Option<usize>],
    ) -> Result<Plan> {
        Plan::planned(region, backend, donations, true)
    }

    fn planned(
        region: Arc<Region>,
        backend: &Arc<dyn Backend>,
        donations: &[Option<usize>],
        is_inner: bool,
    ) -> Result<Plan> {
        memory::ahead("compile", region.graph().len())?;
        let (region, fusion) = recompute(pass::by_elements(&region)?)?;
        let mut slots = Slots::new(&region);
        let mut steps = steps(&region, &fusion, backend, &mut slots, is_inner)?;
        let MemoryPlan { constants, results, reuses_argument, arena, largest_temporary, arguments } =
            MemoryPlan::new(&region, &fusion, &slots, &mut steps, backend, donations)?;
        let workspace = steps.iter().map(|step| step.workspace(region.graph())).max().unwrap_or(0);
        let is_owned = |(binding, reuses_argument): (&ResultBinding, &bool)| match binding {
            ResultBinding::Computed => !*reuses_argument,
            ResultBinding::Copied(_) => true,
            ResultBinding::SameAs(_) | ResultBinding::Existing(_) => false,
        };
        let owned_results = (0..results.len()).filter(|&at| is_owned((&results[at], &reuses_argument[at])));
        let owned_results = owned_results.map(|at| {
            let value = region.results()[at];
            OwnedResult { index: at, bytes: region.graph().ty(value).byte_size(), node: value.node as usize }
        });
        let owned_results = owned_results.collect();
        Ok(Plan {
            steps,
            constants,
            results,
            reuses_argument,
            owned_results,
            arena,
            largest_temporary,
            workspace,
            arguments,
            region,
        })
    }
}

/// A step for each piece that does anything.
fn steps(
    region: &Region,
    fusion: &FusionGroups,
    backend: &Arc<dyn Backend>,
    slots: &mut Slots,
    is_inner: bool,
) -> Result<Vec<Step>> {
    let graph = region.graph();
    let users = Users::new(region, fusion);
    let mut steps = Vec::with_capacity(fusion.order.len());
    let kernels = fuse_gathers(graph, fusion, &users, fused_kernels(graph, fusion, &users));
    let kernels = fuse_data_movement(graph, fusion, &users, kernels);
    let kernels = fuse_back_to_back_gemms(graph, fusion, &users, kernels);
    for kernel in fuse_epilogues(graph, fusion, &users, kernels) {
        let group_index = match &kernel {
            FusedKernel::Single(index) => *index,
            FusedKernel::Nest(index, ..) => *index,
            FusedKernel::Epilogue(built) => built.group_index,
            FusedKernel::BackToBackGemm(built) => built.group_index,
        };
        let group = &fusion.order[group_index];
        let first = group.nodes[0];
        let (work, inputs, outputs): (Work, Values, Values) = match (kernel, &fusion.roles[first]) {
            (FusedKernel::Nest(_, built, _), _) => {
                let inputs = built.inputs.iter().map(|(value, _)| *value).collect();
                let outputs = built.results.clone();
                (Work::Nest(*built), inputs, outputs)
            }
            (FusedKernel::Epilogue(built), _) => {
                let (inputs, outputs) = (built.inputs.clone(), built.results.clone());
                (Work::Epilogue(*built), inputs, outputs)
            }
            (FusedKernel::BackToBackGemm(built), _) => {
                let (inputs, outputs) = (built.inputs.clone(), graph.outputs(built.node));
                (Work::BackToBackGemm(built), inputs, outputs)
            }
            (FusedKernel::Single(_), Role::Elementwise) => {
                let built = Nest::of_elements(graph, fusion, &users, group, users.live_outs(group_index));
                let built = built.expect("the nodes of a fusion group share the axes of a nest");
                let inputs = built.inputs.iter().map(|(value, _)| *value).collect();
                let outputs = built.results.clone();
                (Work::Nest(built), inputs, outputs)
            }
            (FusedKernel::Single(_), Role::Leaf | Role::View | Role::Generated | Role::Step) => {
                let node = &graph.nodes()[first];
                // A hook is shown what goes through it.
                if slots.alias(graph, fusion, first) && !node.op.has_effect() {
                    continue;
                }
                let work = Work::of(graph, first, backend, is_inner)?;
                let outputs = if let Work::Hook { .. } = work { Values::new() } else { graph.outputs(first) };
                // What nobody needs has no memory: another operand stands for it, such as the counter.
                let is_overwritten = overwritten(graph, node);
                let other = (0..node.inputs.len()).find(|&at| !is_overwritten(at));
                let read = |(at, &input)| {
                    let other = other.filter(|_| is_overwritten(at));
                    other.map_or(input, |other| node.inputs[other])
                };
                (work, node.inputs.iter().enumerate().map(read).collect(), outputs)
            }
        };
        let types = inputs.iter().chain(&outputs).map(|&value| graph.ty(value));
        let mut par = parallel(types);
        let mut node = group.nodes[group.nodes.len() - 1];
        // The op says what memory is taken, and fails if one does.
        if let Work::Epilogue(built) = &work {
            node = built.op;
            let node = &graph.nodes()[node];
            par = parallel(operand_types(graph, node).into_iter().chain(&node.outputs));
        }
        let unassigned = |value| (value, BufferRef::Arena(0));
        let inputs = inputs.into_iter().map(unassigned).collect();
        let outputs = outputs.into_iter().map(unassigned).collect();
        if is_inner && work.nest().is_some_and(|nest| !nest.is_worth_threads_in_loops()) {
            par = Par::Serial;
        }
        steps.push(Step { work, node, inputs, outputs, aliased_input: None, scratch_offset: 0, par });
    }
    Ok(steps)
}

impl Step {
    /// What the step has to do, for who measures it.
    #[cold]
    pub(super) fn profiled(&self, graph: &Graph) -> profile::Work {
        let values = |refs: &[(Value, BufferRef)]| refs.iter().map(|(value, _)| *value).collect::<Values>();
        let work = profile::work(graph, &values(&self.inputs), &values(&self.outputs), self.node);
        let bytes = if self.aliased_input == Some(0) { profile::in_place(graph, self.node) } else { None };
        profile::Work { bytes: bytes.unwrap_or(work.bytes), ..work }
    }

    /// The outputs that may alias an input of the same size: pairs of both.
    pub(super) fn alias_candidates(&self, graph: &Graph) -> SmallVec<[(usize, usize); 4]> {
        match &self.work {
            Work::Op => {
                let node = &graph.nodes()[self.node];
                let inputs = may_overwrite(&node.op, &operand_types(graph, node), &node.outputs);
                inputs.into_iter().map(|input| (0, input)).collect()
            }
            // A loop begins with the state that it was given.
            Work::Control(control) => (0..control.state()).map(|part| (part, part)).collect(),
            Work::Regions(regions) => (0..regions.state()).map(|part| (part, part)).collect(),
            Work::Nest(nest) => nest.alias_candidates().collect(),
            Work::Epilogue(epilogue) => epilogue.alias_candidates(),
            Work::BackToBackGemm(_) | Work::Hook { .. } | Work::Call { .. } => SmallVec::new(),
        }
    }

    /// Whether it pays to alias an output of this size with an input.
    pub(super) fn benefits_from_aliasing(&self, bytes: usize) -> bool {
        match &self.work {
            // To read what is small before it is written takes longer than to write elsewhere.
            Work::Nest(_) => bytes >= min_in_place_bytes(),
            // The product lies in a result that does not lie over anything.
            Work::Epilogue(_) => false,
            Work::Op
            | Work::Control(_)
            | Work::Regions(_)
            | Work::BackToBackGemm(_)
            | Work::Hook { .. }
            | Work::Call { .. } => true,
        }
    }

    /// Records which outputs alias which inputs.
    pub(super) fn finalize_aliasing(&mut self, graph: &Graph, aliases: &[(usize, usize)]) {
        match &mut self.work {
            Work::Nest(nest) => {
                if !aliases.is_empty() {
                    nest.disable_streaming();
                }
            }
            Work::Epilogue(epilogue) => epilogue.finalize_aliasing(graph, aliases),
            Work::Op => self.aliased_input = aliases.first().map(|(_, input)| *input),
            Work::Control(_)
            | Work::Regions(_)
            | Work::BackToBackGemm(_)
            | Work::Hook { .. }
            | Work::Call { .. } => {}
        }
    }

    /// The bytes of scratch memory that the step needs in the arena.
    pub(super) fn scratch_bytes(&self, graph: &Graph) -> usize {
        match &self.work {
            Work::Control(control) => control.scratch_bytes(),
            Work::Regions(regions) => regions.scratch_bytes(),
            Work::Nest(nest) => nest.scratch_bytes(),
            Work::Epilogue(epilogue) => epilogue.scratch_bytes(graph),
            Work::BackToBackGemm(_) | Work::Op | Work::Hook { .. } | Work::Call { .. } => 0,
        }
    }

    /// The most bytes that are allocated while the step runs, and freed again.
    fn workspace(&self, graph: &Graph) -> usize {
        let copies = |types: &[TensorType]| types.iter().map(TensorType::byte_size).sum();
        match &self.work {
            Work::Op | Work::Epilogue(_) => {
                let node = &graph.nodes()[self.node];
                workspace(&node.op, &operand_types(graph, node), &node.outputs)
            }
            Work::Hook { types, .. } | Work::Call { types, .. } => copies(types),
            Work::Control(control) => control.plans().map(|plan| plan.workspace).max().unwrap_or(0),
            Work::Regions(regions) => regions.plans().map(|plan| plan.workspace).max().unwrap_or(0),
            Work::Nest(_) | Work::BackToBackGemm(_) => 0,
        }
    }
}

impl Work {
    /// The nest, if that is all of the work.
    pub(super) fn nest(&self) -> Option<&Nest> {
        match self {
            Work::Nest(nest) => Some(nest),
            Work::Epilogue(_)
            | Work::BackToBackGemm(_)
            | Work::Control(_)
            | Work::Regions(_)
            | Work::Op
            | Work::Hook { .. }
            | Work::Call { .. } => None,
        }
    }

    /// How a node is run by itself.
    fn of(graph: &Graph, position: usize, backend: &Arc<dyn Backend>, is_inner: bool) -> Result<Work> {
        let node: &Node = &graph.nodes()[position];
        if let Some(regions) = Regions::of_node(graph, node, backend)? {
            return Ok(match is_inner {
                true => Work::Regions(Box::new(regions)),
                false => Work::Control(Box::new(Control::new(regions, graph, node))),
            });
        }
        let types =
            |count: usize| node.inputs[..count].iter().map(|&input| graph.ty(input).clone()).collect();
        Ok(match node.op.class() {
            OpClass::Hook(op) => Work::Hook { slot: op.slot, types: types(node.inputs.len()) },
            OpClass::RuntimeCall(op) => {
                Work::Call { slot: op.slot, types: types(node.inputs.len()), outputs: node.outputs.clone() }
            }
            OpClass::Collective(op) => {
                let (executor, count) = ("the CPU".to_owned(), op.groups.devices().len());
                let alone = MeshError::Alone { op: op.kind.name(), executor, count };
                return Err(Error::from(alone).at(node.location.clone()));
            }
            OpClass::While(_) | OpClass::Cond(_) => unreachable!("they are regions"),
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity(_)
            | OpClass::Barrier
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::CustomGrad(_)
            | OpClass::Implicit(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => Work::Op,
        })
    }
}

/// The types of a node's operands.
fn operand_types<'g>(graph: &'g Graph, node: &Node) -> SmallVec<[&'g TensorType; 4]> {
    node.inputs.iter().map(|&input| graph.ty(input)).collect()
}
