//! What a nest reads from memory, and the axes that follow from it.

use defn_core::Scalar;
use defn_core::graph::{Graph, Value};
use defn_core::op::Op as GraphOp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::build::Part;
use super::domain::{Axes, Domain, Sizes};
use super::gathers::GatherInputs;
use super::passes::Passes;
use crate::compiler::cluster::{Clusters, Role};
use crate::kernels::StridedView;

/// What a nest reads from memory.
pub(super) struct Reads {
    pub(super) domain: Domain,
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The input of each value and view, by whether it is read once for each group.
    pub(super) known: FxHashMap<(Value, StridedView, bool), usize>,
    /// Whether the domain has groups of several elements.
    pub(super) is_grouped: bool,
    /// For each input whether it is read once for each group.
    is_of_groups: Vec<bool>,
    /// Numbers that are counted where they are read, as if they lay in memory once; and whether groups read them.
    pub(super) counted: FxHashMap<(usize, bool), StridedView>,
    /// The gathers, and whether groups read them.
    pub(super) gathers: FxHashMap<(usize, bool), GatherInputs>,
    /// The inputs of gathers: tables are not read as their views say.
    pub(super) moved: SmallVec<[usize; 4]>,
}

impl Reads {
    /// What nodes of a nest read that it does not compute, of which it reads `gathered` at positions.
    pub(super) fn new(
        graph: &Graph,
        clusters: &Clusters,
        passes: &Passes,
        domain: &Domain,
        gathered: &[usize],
    ) -> Option<Reads> {
        let mut reads = Reads {
            domain: domain.clone(),
            inputs: Vec::new(),
            known: FxHashMap::default(),
            is_grouped: domain.reduced > 1,
            is_of_groups: Vec::new(),
            counted: FxHashMap::default(),
            gathers: FxHashMap::default(),
            moved: SmallVec::new(),
        };
        let own: FxHashMap<usize, Part> = passes.nodes.iter().copied().collect();
        for &(position, part) in &passes.nodes {
            let node = &graph.nodes()[position];
            for &input in &node.inputs {
                let seen = clusters.seen(graph, input);
                let base = seen.base.node as usize;
                if own.contains_key(&base) {
                    continue;
                }
                let is_of_groups = part == Part::Rows && reads.is_grouped;
                if gathered.contains(&base) {
                    reads.add_gather(graph, base, is_of_groups);
                    continue;
                }
                match generated(graph, clusters, base) {
                    Some(Generated::Constant(_)) => continue,
                    Some(Generated::Counted(view)) => {
                        let view = if is_of_groups { view } else { domain.turn(view)? };
                        reads.counted.insert((base, is_of_groups), view);
                        continue;
                    }
                    None => {}
                }
                let walk = seen.walk(domain_of(graph, position, part));
                let view = if is_of_groups { walk } else { domain.turn(walk)? };
                reads.add((seen.base, view, is_of_groups));
            }
        }
        Some(reads)
    }

    /// The input that a view of a value is.
    pub(super) fn add(&mut self, key: (Value, StridedView, bool)) -> usize {
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.known.insert(key.clone(), self.inputs.len());
        self.inputs.push((key.0, key.1));
        self.is_of_groups.push(key.2);
        self.inputs.len() - 1
    }

    /// The axes of the domain.
    pub(super) fn sizes(&self, domain: &Domain) -> Option<Sizes> {
        let mut axes = Axes::new(domain.elements());
        axes.divide(domain.inner);
        axes.divide(domain.inner * domain.reduced);
        let inputs = self.inputs.iter().map(|(_, view)| view).zip(self.is_of_groups.iter().copied());
        let counted = self.counted.iter().map(|((_, is_of_groups), view)| (view, *is_of_groups));
        for (view, is_of_groups) in inputs.chain(counted) {
            if is_of_groups { axes.add_of_groups(view, domain) } else { axes.add(view) }
        }
        axes.sizes()
    }
}

/// The sizes that a node's operands are read in.
pub(super) fn domain_of(graph: &Graph, position: usize, part: Part) -> &[usize] {
    let node = &graph.nodes()[position];
    match part {
        Part::Fold(_) => graph.ty(node.inputs[0]).shape.sizes(),
        Part::Elements | Part::Rows => node.outputs[0].shape.sizes(),
    }
}

/// A value that is made where it is read.
pub(super) enum Generated {
    Constant(Scalar),
    /// The numbers 0, 1, 2, ... along an axis: the positions that a view of them has.
    Counted(StridedView),
}

/// How a value is made where it is read, if it is.
pub(super) fn generated(graph: &Graph, clusters: &Clusters, base: usize) -> Option<Generated> {
    let op = &graph.nodes()[base].op;
    if let GraphOp::Constant(scalar) = op {
        return Some(Generated::Constant(*scalar));
    }
    let (GraphOp::Iota { axis, shape, .. }, Role::Generated) = (op, &clusters.roles[base]) else {
        return None;
    };
    let size = shape.size();
    let (along, step) = match axis {
        Some(axis) => (shape[*axis], shape.sizes()[axis.index() + 1..].iter().product()),
        None => (size, 1),
    };
    let sizes = [size / (along * step), along, step];
    Some(Generated::Counted(StridedView::strided(0, &sizes, &[0, 1, 0])))
}
