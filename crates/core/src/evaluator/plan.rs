//! The plan of a region, made before it runs: how each node is run, and where each value has its last use.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::backend::{Backend, Buffer, Buffers};
use crate::compose;
use crate::error::Result;
use crate::graph::Value;
use crate::memory;
use crate::mesh::MeshError;
use crate::op::{Block, Op, OpClass, UserBlockOp};
use crate::region::Region;
use crate::shape::TensorType;

/// A region and how to run it.
#[derive(Debug)]
pub(super) struct Plan {
    pub region: Arc<Region>,
    pub nodes: Vec<PlannedNode>,
    /// The number of values in the region.
    pub slots: usize,
    /// For each input, whether anything uses it.
    pub used_inputs: Vec<bool>,
}

/// How one node is run.
#[derive(Debug)]
pub(super) struct PlannedNode {
    pub step: Step,
    /// For each input, whether this is the last use of its value.
    pub dies: SmallVec<[bool; 4]>,
    /// For each output, whether anything uses it.
    pub used: SmallVec<[bool; 1]>,
    first_slot: usize,
}

/// How a node is run.
#[derive(Debug)]
pub(super) enum Step {
    /// Fetch an argument; the last parameter of its index takes ownership.
    Parameter { index: usize, last: bool },
    /// Compute a constant once and keep it.
    CachedConstant(CachedConstant),
    /// One op of the backend.
    Backend,
    /// Pass the first operands through.
    Pass { count: usize },
    /// Pass the operands to a hook on the host.
    Hook { slot: usize, types: Vec<TensorType> },
    /// Call a host function for values of these types.
    Call { slot: usize, types: Vec<TensorType>, outputs: Vec<TensorType> },
    /// A user's block: the host language's native form for the run's backend, else the default.
    User { block: UserBlockOp, types: Vec<TensorType>, default: Plan },
    /// A block: the backend's native form, else the default graph.
    Block(BlockDefault),
    /// A fold, decomposed into other ops.
    Default(Plan),
    /// One of several regions.
    Cond { predicates: Vec<TensorType>, branches: Vec<Plan> },
    /// A loop of regions.
    While { state: usize, predicate: TensorType, cond: Plan, body: Plan },
}

/// A constant's buffer, computed in the first run. The plan owns it, so that no run reuses its memory.
#[derive(Debug, Default)]
pub(super) struct CachedConstant(OnceLock<Arc<dyn Buffer>>);

impl CachedConstant {
    /// The buffer on `backend`: the cached one, unless another backend computed it.
    pub fn get(
        &self,
        backend: &Arc<dyn Backend>,
        make: impl Fn() -> Result<Buffers>,
    ) -> Result<Arc<dyn Buffer>> {
        let buffer = match self.0.get() {
            Some(buffer) => buffer.clone(),
            None => {
                let buffer = make()?.remove(0);
                self.0.get_or_init(|| buffer).clone()
            }
        };
        if buffer.backend().is_same_device(&**backend) { Ok(buffer) } else { Ok(make()?.remove(0)) }
    }
}

/// The default graph of a block, planned when a backend without a native form first needs it.
#[derive(Debug)]
pub(super) struct BlockDefault {
    pub block: Block,
    types: Vec<TensorType>,
    plan: OnceLock<Box<Plan>>,
}

impl BlockDefault {
    /// The plan.
    pub fn plan(&self) -> Result<&Plan> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let types: Vec<&TensorType> = self.types.iter().collect();
        let plan = Box::new(Plan::new(Arc::new(compose::block::region(&self.block, &types)?))?);
        Ok(self.plan.get_or_init(|| plan))
    }
}

impl Plan {
    /// Plans a region.
    pub fn new(region: Arc<Region>) -> Result<Plan> {
        let graph = region.graph();
        memory::ahead("compile", graph.len())?;
        let mut nodes = memory::with_capacity("compile", graph.len())?;
        let mut slots = 0;
        for node in graph.nodes() {
            memory::check("compile")?;
            let types: SmallVec<[&TensorType; 4]> =
                node.inputs.iter().map(|&input| graph.ty(input)).collect();
            nodes.push(PlannedNode {
                step: Step::new(&node.op, &types)?,
                dies: smallvec::smallvec![false; node.inputs.len()],
                used: smallvec::smallvec![false; node.outputs.len()],
                first_slot: slots,
            });
            slots += node.outputs.len();
        }
        let mut plan = Plan { nodes, slots, region: region.clone(), used_inputs: Vec::new() };
        plan.find_last_uses();
        plan.find_last_parameters();
        Ok(plan)
    }

    /// Walks backwards: the first use found is the last one to run. Results live to the end.
    fn find_last_uses(&mut self) {
        let graph = self.region.graph();
        let mut used_later = vec![false; self.slots];
        for &result in self.region.results() {
            used_later[self.nodes[result.node as usize].first_slot + result.output as usize] = true;
        }
        for (position, node) in graph.nodes().iter().enumerate().rev() {
            // The last of equal operands takes the value, after the others have borrowed it.
            for (at, input) in node.inputs.iter().enumerate().rev() {
                let slot = self.nodes[input.node as usize].first_slot + input.output as usize;
                self.nodes[position].dies[at] = !std::mem::replace(&mut used_later[slot], true);
            }
            let first = self.nodes[position].first_slot;
            let count = node.outputs.len();
            self.nodes[position].used = used_later[first..first + count].iter().copied().collect();
        }
    }

    fn find_last_parameters(&mut self) {
        let mut used = vec![false; self.region.inputs().len()];
        for node in self.nodes.iter_mut().rev() {
            if let Step::Parameter { index, last } = &mut node.step {
                *last = !std::mem::replace(&mut used[*index], true);
            }
        }
        self.used_inputs = used;
    }

    /// The slot of a value.
    pub fn slot(&self, value: Value) -> usize {
        self.first_slot(value.node as usize) + value.output as usize
    }

    /// The slot of a node's first output.
    pub fn first_slot(&self, node: usize) -> usize {
        self.nodes[node].first_slot
    }
}

impl Step {
    /// How an op on operands of the given types is run.
    pub fn new(op: &Op, types: &[&TensorType]) -> Result<Step> {
        let plan = |region: &Arc<Region>| Plan::new(region.clone());
        Ok(match op.class() {
            OpClass::Parameter { index, .. } => Step::Parameter { index, last: false },
            OpClass::Constant(_) | OpClass::Literal(_) => Step::CachedConstant(CachedConstant::default()),
            OpClass::Cond(op) => {
                let count = op.branches.len() - 1;
                Step::Cond {
                    predicates: types[..count].iter().map(|ty| (*ty).clone()).collect(),
                    branches: op.branches.iter().map(plan).collect::<Result<_>>()?,
                }
            }
            OpClass::While(op) => Step::While {
                state: op.state,
                predicate: op.cond.graph().ty(op.cond.results()[0]).clone(),
                cond: plan(&op.cond)?,
                body: plan(&op.body)?,
            },
            OpClass::CustomGrad(op) => Step::Pass { count: op.values },
            OpClass::Implicit(op) => Step::Pass { count: op.values },
            OpClass::Identity(_) => Step::Pass { count: 1 },
            OpClass::Barrier => Step::Pass { count: types.len() },
            OpClass::Hook(op) => {
                Step::Hook { slot: op.slot, types: types.iter().map(|ty| (*ty).clone()).collect() }
            }
            OpClass::RuntimeCall(op) => Step::Call {
                slot: op.slot,
                types: types.iter().map(|ty| (*ty).clone()).collect(),
                outputs: op.outputs.to_vec(),
            },
            OpClass::UserBlock(op) => Step::User {
                block: op.clone(),
                types: types.iter().map(|ty| (*ty).clone()).collect(),
                default: plan(&op.default)?,
            },
            OpClass::Block(block) => {
                let types = types.iter().map(|ty| (*ty).clone()).collect();
                Step::Block(BlockDefault { block: block.clone(), types, plan: OnceLock::new() })
            }
            OpClass::Fold(_) | OpClass::WindowFold(_) => {
                let default = compose::fold::region(op, types)?.expect("a fold");
                Step::Default(plan(&Arc::new(default))?)
            }
            OpClass::Collective(op) => {
                let (executor, count) = ("the evaluator".to_owned(), op.groups.devices().len());
                return Err(MeshError::Alone { op: op.kind.name(), executor, count }.into());
            }
            OpClass::Primitive(_) => Step::Backend,
        })
    }
}
