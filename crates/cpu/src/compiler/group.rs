//! Clusters of element-wise ops as programs over tiles, which routines run.

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cluster::{Cluster, Clusters, Elementwise, Role, elementwise};
use crate::kernels::StridedView;
use crate::kernels::tiles::{Draft, Operand, Program, Register};

/// A program, with where its operands come from.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) program: Program,
    /// For each input the value whose memory is read, and how.
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The values that are given, each with `elements` elements.
    pub(super) results: Values,
    pub(super) elements: usize,
}

/// Makes the program of a cluster that gives `results`.
pub(super) fn group(graph: &Graph, clusters: &Clusters, cluster: &Cluster, results: Values) -> Group {
    let first = &graph.nodes()[cluster.nodes[0]];
    let mut making = Making {
        graph,
        clusters,
        draft: Draft::default(),
        inputs: Vec::new(),
        known: FxHashMap::default(),
        registers: FxHashMap::default(),
        place: clusters.place[cluster.nodes[0]],
    };
    for &position in &cluster.nodes {
        let register = making.node(position);
        making.registers.insert(position, register);
    }
    for result in &results {
        let register = making.registers[&(result.node as usize)];
        making.draft.store(register.into());
    }
    let Making { draft, inputs, .. } = making;
    let (program, elements) = (draft.finish(), first.outputs[0].size());
    Group { program, inputs, results, elements }
}

struct Making<'a> {
    graph: &'a Graph,
    clusters: &'a Clusters,
    draft: Draft,
    inputs: Vec<(Value, StridedView)>,
    known: FxHashMap<(Value, StridedView), usize>,
    registers: FxHashMap<usize, Register>,
    place: Option<usize>,
}

impl Making<'_> {
    /// Adds a node's op.
    fn node(&mut self, position: usize) -> Register {
        let node = &self.graph.nodes()[position];
        let (sizes, dtype) = (node.outputs[0].shape.sizes(), node.outputs[0].dtype);
        let x: SmallVec<[Operand; 3]> = node.inputs.iter().map(|&input| self.operand(input, sizes)).collect();
        match elementwise(&node.op).expect("clusters of several nodes are element-wise") {
            Elementwise::Unary(op) => self.draft.unary(op, x[0], dtype),
            Elementwise::Binary(op) => self.draft.binary(op, x[0], x[1], dtype),
            Elementwise::AsType => self.draft.convert(x[0], dtype),
            Elementwise::Select => self.draft.select(x[0], x[1], x[2], dtype),
            Elementwise::Clip => self.draft.clip(x[0], x[1], x[2], dtype),
            Elementwise::Log(base) => self.draft.log_to(base, x[0], dtype),
            Elementwise::Random(_) => unreachable!("nests compute random numbers"),
        }
    }

    /// A value as elements of a result of `sizes`.
    fn operand(&mut self, value: Value, sizes: &[usize]) -> Operand {
        let seen = self.clusters.seen(self.graph, value);
        let base = &self.graph.nodes()[seen.base.node as usize];
        if self.clusters.place[seen.base.node as usize] == self.place
            && let Some(&register) = self.registers.get(&(seen.base.node as usize))
        {
            return register.into();
        }
        if let Op::Constant(scalar) = &base.op {
            return self.draft.constant(*scalar).into();
        }
        let walk = seen.walk(sizes);
        let dtype = self.graph.ty(seen.base).dtype;
        if let (Role::Generated, Op::Iota { axis, shape, .. }) =
            (&self.clusters.roles[seen.base.node as usize], &base.op)
        {
            let (step, size) = match axis {
                Some(axis) => (shape.sizes()[axis.index() + 1..].iter().product(), shape[*axis]),
                None => (1, shape.size()),
            };
            return self.draft.count(step, size, dtype).into();
        }
        let (constant, run) = (walk.is_constant(), walk.run());
        let key = (seen.base, walk);
        let index = match self.known.get(&key) {
            Some(&index) => index,
            None => {
                self.inputs.push(key.clone());
                self.known.insert(key, self.inputs.len() - 1);
                self.inputs.len() - 1
            }
        };
        Operand::Input { index, dtype, constant, run }
    }
}
