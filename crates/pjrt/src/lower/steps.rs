//! The order in which a region is written: its nodes, and the kernels that compute several of them.
//!
//! XLA on the host computes a reduction of fused operands on one thread. So reductions of many elements become kernels,
//! with the element-wise ops that they need. Kernels must not depend on each other in a circle: the nodes are divided
//! into phases, each of which needs only those before it. A phase ends where a node is neither element-wise nor a
//! reduction, as at products, and each phase has one kernel at most.
//!
//! An element-wise result that is needed outside the kernel too is computed again there. To store it would take
//! longer: XLA fuses it with what uses it.

use defn_core::TensorType;
use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::op::{Op, OpClass, Primitive};
use defn_core::region::Region;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::kernel::{MIN_ELEMENTS, is_kernel};

/// The number of nodes from which a kernel computes nothing again that was computed before.
const MAX_NODES: usize = 64;

/// A part of a region that is written at once.
pub(super) enum Step {
    /// The node at a position.
    Node(usize),
    /// The nodes that are a kernel.
    Kernel(Box<KernelNodes>),
}

/// Nodes that are a kernel.
pub(super) struct KernelNodes {
    /// They, on parameters.
    pub program: Region,
    /// The values of the parameters in the whole region.
    pub inputs: Values,
    /// The values that the program returns, in the whole region.
    pub outputs: Values,
}

/// The steps of a region, each after those that it needs.
///
/// # Errors
/// Memory.
pub(super) fn steps(region: &Region, has_kernels: bool) -> defn_core::Result<Vec<Step>> {
    let (graph, nodes) = (region.graph(), region.graph().nodes());
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    if !has_kernels {
        return Ok(order.into_iter().map(Step::Node).collect());
    }
    let roles: Vec<Role> = nodes.iter().map(role).collect();
    let phases = phases(nodes, &roles);
    let in_kernel = in_kernels(graph, &roles, &phases);
    if in_kernel.contains(&true) {
        // What a phase's kernel needs of the phase itself are constants, and nodes that begin the phase.
        let place = |at: usize| match roles[at] {
            Role::Free | Role::Apart => 0,
            Role::Fusable if in_kernel[at] => 1,
            Role::Fusable => 2,
        };
        order.sort_by_key(|&at| (phases[at], place(at)));
    }
    let parts = Parts { region, roles, phases, in_kernel };
    let kernels = parts.kernels();
    let (needed, returned) = parts.needed_outside(&kernels, &order);
    let (mut steps, mut written) = (Vec::with_capacity(nodes.len()), FxHashSet::default());
    for at in order {
        if parts.in_kernel[at] && written.insert(parts.phases[at]) {
            let own = &kernels[&parts.phases[at]];
            let outputs = own.iter().flat_map(|&at| graph.outputs(at));
            steps.push(parts.kernel(own, outputs.filter(|value| returned.contains(value)).collect())?);
        }
        if is_kernel(graph, &nodes[at]) {
            steps.push(parts.kernel(&parts.with_fills(at), graph.outputs(at))?);
        } else if !parts.in_kernel[at] || needed[at] {
            steps.push(Step::Node(at));
        }
    }
    Ok(steps)
}

/// What a node can be for a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A constant, which each user may have for itself.
    Free,
    /// Element-wise, or a reduction.
    Fusable,
    /// Anything else.
    Apart,
}

fn role(node: &Node) -> Role {
    match node.op.class() {
        OpClass::Constant(_) => Role::Free,
        OpClass::Identity(_) => Role::Fusable,
        OpClass::Primitive(primitive) => match primitive {
            Primitive::Creation => Role::Free,
            Primitive::ElementWise(_) | Primitive::View | Primitive::Broadcast | Primitive::Reduction => {
                Role::Fusable
            }
            Primitive::Movement
            | Primitive::Selection
            | Primitive::Update
            | Primitive::Order
            | Primitive::Positions
            | Primitive::Window
            | Primitive::Contraction
            | Primitive::Transform
            | Primitive::Solve => Role::Apart,
        },
        OpClass::Block(block) if block.is_element_wise() => Role::Fusable,
        OpClass::Parameter { .. }
        | OpClass::Literal(_)
        | OpClass::Collective(_)
        | OpClass::Fold(_)
        | OpClass::WindowFold(_)
        | OpClass::Cond(_)
        | OpClass::While(_)
        | OpClass::CustomGrad(_)
        | OpClass::Implicit(_)
        | OpClass::Barrier
        | OpClass::Hook(_)
        | OpClass::RuntimeCall(_)
        | OpClass::Block(_)
        | OpClass::UserBlock(_) => Role::Apart,
    }
}

fn is_reduction(node: &Node) -> bool {
    matches!(node.op.class(), OpClass::Primitive(Primitive::Reduction))
}

fn is_large_reduction(graph: &Graph, node: &Node) -> bool {
    is_reduction(node) && graph.ty(node.inputs[0]).size() >= MIN_ELEMENTS && node.outputs[0].size() > 0
}

/// The phase of each node: that of its operands, or the next where the node is apart. Nodes with effects and collectives
/// keep their order.
fn phases(nodes: &[Node], roles: &[Role]) -> Vec<usize> {
    let (mut phases, mut of_effects) = (Vec::with_capacity(nodes.len()), 0);
    for (node, role) in nodes.iter().zip(roles) {
        let needed = node.inputs.iter().map(|input| phases[input.node as usize]).max().unwrap_or(0);
        phases.push(match role {
            Role::Free | Role::Fusable => needed,
            Role::Apart if node.inputs.is_empty() => 0,
            Role::Apart => {
                let is_collective = matches!(node.op.class(), OpClass::Collective(_));
                let keeps_order = node.op.has_effect() || is_collective;
                let phase = if keeps_order { (needed + 1).max(of_effects) } else { needed + 1 };
                of_effects = if keeps_order { phase } else { of_effects };
                phase
            }
        });
    }
    phases
}

/// Whether each node is in its phase's kernel: large reductions, and what they need of their phase.
fn in_kernels(graph: &Graph, roles: &[Role], phases: &[usize]) -> Vec<bool> {
    let mut in_kernel = vec![false; graph.len()];
    for (at, node) in graph.nodes().iter().enumerate().rev() {
        if !in_kernel[at] && !is_large_reduction(graph, node) {
            continue;
        }
        in_kernel[at] = true;
        for input in node.inputs.iter().map(|input| input.node as usize) {
            if roles[input] == Role::Fusable && phases[input] == phases[at] {
                in_kernel[input] = true;
            }
        }
    }
    in_kernel
}

/// A region whose kernels are known.
struct Parts<'r> {
    region: &'r Region,
    roles: Vec<Role>,
    phases: Vec<usize>,
    in_kernel: Vec<bool>,
}

impl Parts<'_> {
    /// The nodes of each phase's kernel, in order. Besides the phase's own they are element-wise ones of phases before
    /// that nothing stores: the kernel computes them again.
    fn kernels(&self) -> FxHashMap<usize, Vec<usize>> {
        let graph = self.region.graph();
        let mut is_stored = vec![false; graph.len()];
        self.region.results().iter().for_each(|result| is_stored[result.node as usize] = true);
        let mut kernels: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for (at, node) in graph.nodes().iter().enumerate() {
            if self.in_kernel[at] {
                kernels.entry(self.phases[at]).or_default().push(at);
            }
            if self.roles[at] == Role::Apart {
                node.inputs.iter().for_each(|input| is_stored[input.node as usize] = true);
            }
        }
        for nodes in kernels.values_mut() {
            let mut known: FxHashSet<usize> = nodes.iter().copied().collect();
            let mut next = 0;
            while let Some(&at) = nodes.get(next) {
                next += 1;
                for &input in &graph.nodes()[at].inputs {
                    let again = input.node as usize;
                    let can_rematerialize = self.roles[again] == Role::Fusable
                        && !is_stored[again]
                        && !is_reduction(&graph.nodes()[again])
                        && graph.ty(input).size() >= MIN_ELEMENTS
                        && known.len() < MAX_NODES;
                    if can_rematerialize && known.insert(again) {
                        nodes.push(again);
                    }
                }
            }
            nodes.sort_unstable();
        }
        kernels
    }

    /// The nodes of kernels that are computed outside of them too, and the values that kernels return: reductions, and
    /// small ones.
    fn needed_outside(
        &self,
        kernels: &FxHashMap<usize, Vec<usize>>,
        order: &[usize],
    ) -> (Vec<bool>, FxHashSet<Value>) {
        let graph = self.region.graph();
        let (mut needed, mut returned) = (vec![false; graph.len()], FxHashSet::default());
        let mut need = |value: Value, needed: &mut Vec<bool>| {
            let at = value.node as usize;
            if self.in_kernel[at] {
                if is_reduction(graph.node(value)) || graph.ty(value).size() < MIN_ELEMENTS {
                    returned.insert(value);
                } else {
                    needed[at] = true;
                }
            }
        };
        self.region.results().iter().for_each(|&value| need(value, &mut needed));
        for nodes in kernels.values() {
            let inputs = nodes.iter().flat_map(|&node| &graph.nodes()[node].inputs);
            inputs
                .filter(|input| nodes.binary_search(&(input.node as usize)).is_err())
                .for_each(|&input| need(input, &mut needed));
        }
        // Nodes that are computed outside need others, of their own phase and of those before.
        for &at in order.iter().rev() {
            if !self.in_kernel[at] || needed[at] {
                graph.nodes()[at].inputs.iter().for_each(|&value| need(value, &mut needed));
            }
        }
        (needed, returned)
    }

    /// A node, after those of its operands that are one number, repeated: its kernel needs no copy of them.
    fn with_fills(&self, at: usize) -> SmallVec<[usize; 4]> {
        let nodes = self.region.graph().nodes();
        let is_fill = |node: &usize| {
            let inputs = &nodes[*node].inputs;
            self.roles[*node] == Role::Fusable
                && !inputs.is_empty()
                && inputs.iter().all(|input| self.roles[input.node as usize] == Role::Free)
        };
        let inputs = nodes[at].inputs.iter().map(|input| input.node as usize);
        let mut all: SmallVec<[usize; 4]> = inputs.filter(is_fill).chain([at]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Nodes as a kernel that returns `outputs`, with the constants that they use. Names of axes would only make more
    /// programs.
    fn kernel(&self, nodes: &[usize], outputs: Values) -> defn_core::Result<Step> {
        let graph = self.region.graph();
        let (mut inner, mut inputs, mut types) = (Graph::new(), Values::new(), Vec::new());
        let mut known: FxHashMap<Value, Value> = FxHashMap::default();
        for &at in nodes {
            let node = &graph.nodes()[at];
            let mut operands = Values::new();
            for &input in &node.inputs {
                let operand = match known.get(&input) {
                    Some(&operand) => operand,
                    None if self.roles[input.node as usize] == Role::Free => {
                        inner.push(unnamed(&graph.node(input).op), &[])?[0]
                    }
                    None => {
                        let TensorType { dtype, shape } = graph.ty(input);
                        let ty = TensorType { dtype: *dtype, shape: shape.without_names() };
                        inputs.push(input);
                        types.push(ty.clone());
                        inner.parameter(inputs.len() - 1, ty)
                    }
                };
                known.insert(input, operand);
                operands.push(operand);
            }
            let results = inner.push(unnamed(&node.op), &operands)?;
            known.extend(graph.outputs(at).into_iter().zip(results));
        }
        let (count, results) = (types.len(), outputs.iter().map(|output| known[output]).collect());
        let program = Region::new(inner, types, count, results);
        Ok(Step::Kernel(Box::new(KernelNodes { program, inputs, outputs })))
    }
}

/// An op whose result has no names of axes.
fn unnamed(op: &Op) -> Op {
    let mut op = op.clone();
    if let Op::Reshape { shape }
    | Op::Broadcast { shape, .. }
    | Op::Iota { shape, .. }
    | Op::Eye { shape, .. } = &mut op
    {
        *shape = shape.without_names();
    }
    op
}
