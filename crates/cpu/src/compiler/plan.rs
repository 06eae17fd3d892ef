//! A region as steps: what is done in which order, from which values, and which of them are not needed any more.

use std::sync::Arc;

use defn_core::backend::{Backend, Buffer};
use defn_core::graph::{Graph, Value, Values};
use defn_core::mesh::MeshError;
use defn_core::op::{Op, Outputs};
use defn_core::region::Region;
use defn_core::{Error, Result, TensorType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cluster::{Clusters, Role};
use super::group::{Group, group};
use super::strip::{Strip, Uses};
use super::strips::{self, Piece, pieces};

/// A region, ready to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) region: Arc<Region>,
    pub(super) steps: Vec<Step>,
    /// How many values there are.
    pub(super) slots: usize,
    /// The slot of each node's first output.
    first_slot: Vec<usize>,
    /// Where each argument goes that is used.
    pub(super) arguments: Vec<(usize, usize)>,
    /// What is written in the program, and where it goes.
    pub(super) kept: Vec<(usize, Arc<dyn Buffer>)>,
    /// The slot of each result, and whether it is the last that is given from there.
    pub(super) results: Vec<(usize, bool)>,
}

/// What is done at once.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) work: Work,
    /// The node whose line an error names.
    pub(super) node: usize,
    /// The slots that are read, and whether nothing reads them later.
    pub(super) inputs: SmallVec<[(usize, bool); 4]>,
    /// The slots that are written, where anything reads them.
    pub(super) outputs: SmallVec<[Option<usize>; 2]>,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Work {
    /// Element-wise ops, together.
    Group(Group),
    /// Clusters that go through rows together.
    Strip(Strip),
    /// One op of the backend.
    Op,
    /// Shows values to the host.
    Hook { slot: usize, types: Vec<TensorType> },
    /// Asks the host for values.
    Call { slot: usize, types: Vec<TensorType>, outputs: Outputs },
    /// One of several regions.
    Cond { predicates: Vec<TensorType>, branches: Vec<Plan> },
    /// A region over and over.
    While { state: usize, predicate: TensorType, cond: Box<Plan>, body: Box<Plan> },
}

impl Plan {
    /// Plans a region, of which what is written in the program is made on `backend`.
    pub(super) fn new(region: Arc<Region>, backend: &Arc<dyn Backend>) -> Result<Plan> {
        let clusters = Clusters::new(&region);
        let graph = region.graph();
        let mut slots = 0;
        let first_slot: Vec<usize> = graph
            .nodes()
            .iter()
            .map(|node| {
                slots += node.outputs.len();
                slots - node.outputs.len()
            })
            .collect();
        let mut plan = Plan {
            steps: Vec::with_capacity(clusters.order.len()),
            slots,
            first_slot,
            arguments: Vec::new(),
            kept: Vec::new(),
            results: Vec::new(),
            region: region.clone(),
        };
        let given = plan.add_steps(graph, &clusters, backend)?;
        plan.find_last_uses();
        plan.fetch(graph, &clusters, backend, &given)?;
        Ok(plan)
    }

    fn slot(&self, value: Value) -> usize {
        self.first_slot[value.node as usize] + value.output as usize
    }

    /// Adds a step for each cluster. For each slot, whether a step or a result reads it.
    fn add_steps(
        &mut self,
        graph: &Graph,
        clusters: &Clusters,
        backend: &Arc<dyn Backend>,
    ) -> Result<Vec<bool>> {
        let users = Users::new(&self.region, clusters);
        let mut read = vec![false; self.slots];
        for piece in pieces(graph, clusters) {
            let place = match &piece {
                Piece::One(place) => *place,
                Piece::Strip(strip) => strip.parts[strip.parts.len() - 1].0,
            };
            let cluster = &clusters.order[place];
            let first = cluster.nodes[0];
            let (work, inputs, outputs) = match (&piece, &clusters.roles[first]) {
                (Piece::Strip(found), _) => {
                    let made = Strip::new(graph, clusters, &users, found);
                    let (inputs, outputs) = (made.inputs.clone(), made.results.clone());
                    (Work::Strip(made), inputs, outputs)
                }
                (Piece::One(_), Role::Elementwise) => {
                    let made = group(graph, clusters, cluster, users.of(place).clone());
                    let inputs = made.inputs.iter().map(|(value, _)| *value).collect();
                    let outputs = made.results.clone();
                    (Work::Group(made), inputs, outputs)
                }
                (Piece::One(_), Role::Given | Role::View | Role::Generated | Role::Step) => {
                    let node = &graph.nodes()[first];
                    (Work::of(graph, first, backend)?, node.inputs.clone(), graph.outputs(first))
                }
            };
            let inputs: SmallVec<[(usize, bool); 4]> =
                inputs.iter().map(|&input| (self.slot(input), false)).collect();
            inputs.iter().for_each(|&(slot, _)| read[slot] = true);
            let outputs = outputs.iter().map(|&output| Some(self.slot(output))).collect();
            let node = cluster.nodes[cluster.nodes.len() - 1];
            self.steps.push(Step { work, node, inputs, outputs });
        }
        for &result in self.region.results() {
            let slot = self.slot(result);
            read[slot] = true;
            for (other, is_last) in &mut self.results {
                *is_last &= *other != slot;
            }
            self.results.push((slot, true));
        }
        Ok(read)
    }

    /// Walks backwards: the first use that is met is the last one to run.
    fn find_last_uses(&mut self) {
        let mut seen = vec![false; self.slots];
        self.results.iter().for_each(|&(slot, _)| seen[slot] = true);
        for step in self.steps.iter_mut().rev() {
            for output in &mut step.outputs {
                *output = output.filter(|&slot| seen[slot]);
            }
            // The last of equal operands takes the value, after the others have borrowed it.
            for (slot, dies) in step.inputs.iter_mut().rev() {
                *dies = !std::mem::replace(&mut seen[*slot], true);
            }
        }
    }

    /// Finds where arguments go, and makes what is written in the program.
    fn fetch(
        &mut self,
        graph: &Graph,
        clusters: &Clusters,
        backend: &Arc<dyn Backend>,
        read: &[bool],
    ) -> Result<()> {
        for (position, node) in graph.nodes().iter().enumerate() {
            let slot = self.first_slot[position];
            if clusters.place[position].is_some() || !read.get(slot).is_some_and(|read| *read) {
                continue;
            }
            if let Op::Parameter { index, ty: _ } = &node.op {
                self.arguments.push((*index, slot));
            } else {
                let made = backend.run(&node.op, SmallVec::new(), &node.outputs);
                self.kept.push((slot, made.map_err(|error| error.at(node.location.clone()))?.remove(0)));
            }
        }
        Ok(())
    }
}

/// Who needs the values of clusters.
struct Users {
    /// For each cluster, the values that others or the results take from it.
    needed: Vec<Values>,
    /// For each such value the clusters that take it, and whether it is a result.
    by: FxHashMap<Value, (SmallVec<[usize; 4]>, bool)>,
}

impl Users {
    fn new(region: &Region, clusters: &Clusters) -> Users {
        let mut users = Users { needed: vec![Values::new(); clusters.order.len()], by: FxHashMap::default() };
        for (position, node) in region.graph().nodes().iter().enumerate() {
            if let Some(place) = clusters.place[position] {
                node.inputs.iter().for_each(|&input| users.add(clusters, input, Some(place)));
            }
        }
        region.results().iter().for_each(|&result| users.add(clusters, result, None));
        users
    }

    fn add(&mut self, clusters: &Clusters, value: Value, by: Option<usize>) {
        let base = clusters.base(value);
        let Some(place) = clusters.place[base.node as usize].filter(|place| Some(*place) != by) else {
            return;
        };
        let (users, is_result) = self.by.entry(base).or_insert_with(|| {
            self.needed[place].push(base);
            (SmallVec::new(), false)
        });
        match by {
            Some(by) => users.push(by),
            None => *is_result = true,
        }
    }
}

impl Uses for Users {
    fn of(&self, place: usize) -> &Values {
        &self.needed[place]
    }

    fn is_needed_beyond(&self, value: Value, strip: &strips::Strip) -> bool {
        let Some((users, is_result)) = self.by.get(&value) else { return false };
        *is_result || users.iter().any(|&user| !strip.has(user))
    }
}

impl Work {
    /// How a node is run by itself.
    fn of(graph: &Graph, position: usize, backend: &Arc<dyn Backend>) -> Result<Work> {
        let node = &graph.nodes()[position];
        let types =
            |count: usize| node.inputs[..count].iter().map(|&input| graph.ty(input).clone()).collect();
        Ok(match &node.op {
            Op::Hook(op) => Work::Hook { slot: op.slot, types: types(node.inputs.len()) },
            Op::RuntimeCall(op) => {
                Work::Call { slot: op.slot, types: types(node.inputs.len()), outputs: node.outputs.clone() }
            }
            Op::Cond(op) => {
                let plans = op.branches.iter().map(|branch| Plan::new(branch.clone(), backend));
                Work::Cond {
                    predicates: types(op.branches.len() - 1),
                    branches: plans.collect::<Result<_>>()?,
                }
            }
            Op::While(op) => {
                let predicate = op.cond.graph().ty(op.cond.results()[0]).clone();
                let cond = Box::new(Plan::new(op.cond.clone(), backend)?);
                let body = Box::new(Plan::new(op.body.clone(), backend)?);
                Work::While { state: op.state, predicate, cond, body }
            }
            Op::Collective(op) => {
                let (place, count) = ("the CPU".to_owned(), op.over.devices().len());
                let alone = MeshError::Alone { op: op.kind.name(), place, count };
                return Err(Error::from(alone).at(node.location.clone()));
            }
            Op::Parameter { .. }
            | Op::Constant(_)
            | Op::Literal(_)
            | Op::Iota { .. }
            | Op::Eye { .. }
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::AsType { .. }
            | Op::Bitcast { .. }
            | Op::Select
            | Op::Clip
            | Op::Reshape { .. }
            | Op::Squeeze { .. }
            | Op::Broadcast { .. }
            | Op::Transpose { .. }
            | Op::Pad { .. }
            | Op::Reverse { .. }
            | Op::Concatenate { .. }
            | Op::Stack { .. }
            | Op::Slice { .. }
            | Op::PutSlice { .. }
            | Op::Reduce { .. }
            | Op::ArgReduce { .. }
            | Op::Gather { .. }
            | Op::Scatter { .. }
            | Op::Sort { .. }
            | Op::Argsort { .. }
            | Op::Window { .. }
            | Op::WindowScatter { .. }
            | Op::Conv(_)
            | Op::Fft { .. }
            | Op::Dot { .. }
            | Op::TriangularSolve { .. }
            | Op::Fold(_)
            | Op::WindowFold(_)
            | Op::CustomGrad(_)
            | Op::StopGrad
            | Op::Mark { .. }
            | Op::Block(_)
            | Op::UserBlock(_) => Work::Op,
        })
    }
}
