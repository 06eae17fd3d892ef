//! What a nest reads from memory, and the axes that follow from it.

use defn_core::Scalar;
use defn_core::graph::{Graph, Value};
use defn_core::op::Op as GraphOp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::build::NodeRole;
use super::domain::{Axes, Domain, Sizes, strides_along};
use super::domain_box::DomainBox;
use super::gathers::GatherInputs;
use super::passes::Passes;
use super::random::RandomInputs;
use crate::compiler::fusion_groups::{FusionGroups, Role, random};
use crate::kernels::StridedView;

/// What a nest reads from memory.
pub(super) struct Reads {
    pub(super) domain: Domain,
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// How many of them are those of other boxes.
    first: usize,
    /// The input of each value and view, by whether it is read once for each group.
    pub(super) known: FxHashMap<(Value, StridedView, bool), usize>,
    /// Whether the domain has groups of several elements.
    pub(super) is_grouped: bool,
    /// For each input whether it is read once for each group.
    is_per_group: Vec<bool>,
    /// Numbers that are counted where they are read, as if they lay in memory once; and whether groups read them.
    pub(super) iota: FxHashMap<(usize, bool), StridedView>,
    /// What the nodes of random numbers are computed from.
    pub(super) random: FxHashMap<usize, RandomInputs>,
    /// The gathers, and whether groups read them.
    pub(super) gathers: FxHashMap<(usize, bool), GatherInputs>,
    /// The inputs of gathers: tables are not read as their views say.
    pub(super) unaliasable_inputs: SmallVec<[usize; 4]>,
}

impl Reads {
    /// What nodes of a nest read that it does not compute, of which it reads `gathered` at positions. The inputs of
    /// other boxes come before.
    pub(super) fn new(
        graph: &Graph,
        fusion: &FusionGroups,
        passes: &Passes,
        domain: &Domain,
        gathered: &[usize],
        domain_box: Option<&DomainBox>,
        before: Vec<(Value, StridedView)>,
    ) -> Option<Reads> {
        let mut reads = Reads {
            domain: domain.clone(),
            is_per_group: vec![false; before.len()],
            first: before.len(),
            inputs: before,
            known: FxHashMap::default(),
            is_grouped: domain.reduced > 1,
            iota: FxHashMap::default(),
            random: FxHashMap::default(),
            gathers: FxHashMap::default(),
            unaliasable_inputs: SmallVec::new(),
        };
        let own: FxHashMap<usize, NodeRole> = passes.nodes.iter().copied().collect();
        for &(position, role) in &passes.nodes {
            let node = &graph.nodes()[position];
            let domain_box = domain_box.filter(|domain_box| domain_box.nodes.contains(&position));
            if let Some(random) = random(&node.op) {
                reads.add_random(graph, fusion, position, random, (role, domain_box))?;
                continue;
            }
            for &input in &node.inputs {
                let mut value_view = fusion.view(graph, input);
                let base = value_view.base.node as usize;
                if own.contains_key(&base) {
                    continue;
                }
                let is_per_group = role == NodeRole::Rows && reads.is_grouped;
                if gathered.contains(&base) {
                    reads.add_gather(graph, base, is_per_group);
                    continue;
                }
                if domain_box.is_some_and(|domain_box| domain_box.concat(graph, fusion, input).is_some()) {
                    continue;
                }
                match generated(graph, fusion, base, domain_box) {
                    Some(Generated::Constant(_)) => continue,
                    Some(Generated::Iota(view)) => {
                        let view = if is_per_group { view } else { domain.in_reduction_order(view)? };
                        reads.iota.insert((base, is_per_group), view);
                        continue;
                    }
                    None => {}
                }
                let mut sizes = domain_of(graph, position, role);
                if let Some(domain_box) = domain_box {
                    (value_view, sizes) = (domain_box.of(&value_view), &domain_box.sizes);
                }
                let strided = value_view.strided_view(sizes);
                let view = if is_per_group { strided } else { domain.in_reduction_order(strided)? };
                reads.add((value_view.base, view, is_per_group));
            }
        }
        for &concat in domain_box.iter().flat_map(|domain_box| domain_box.sources.keys()) {
            let domain_box = domain_box.expect("concatenations are of boxes");
            let value_view = domain_box.source(graph, fusion, concat);
            let is_own = own.contains_key(&(value_view.base.node as usize));
            if !is_own && generated(graph, fusion, value_view.base.node as usize, None).is_none() {
                reads.add((value_view.base, value_view.strided_view(&domain_box.sizes), false));
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
        self.is_per_group.push(key.2);
        self.inputs.len() - 1
    }

    /// The inputs that are not those of other boxes.
    pub(super) fn own_inputs(&self) -> impl Iterator<Item = (usize, &(Value, StridedView))> {
        self.inputs.iter().enumerate().skip(self.first)
    }

    /// The inputs that lie side by side in each record of which an input reads one element, in their order in memory:
    /// schedules load them together (`schedule/records.rs`). A record is as long as the step from one element of a row
    /// to the next.
    pub(super) fn record_of(&self, at: usize, sizes: &[usize]) -> SmallVec<[usize; 4]> {
        let (value, view) = &self.inputs[at];
        let strides = strides_along(view, sizes);
        let step = strides[strides.len() - 1];
        if step < 2 {
            return SmallVec::from_slice(&[at]);
        }
        let others = self.inputs.iter().enumerate().skip(self.first).filter(|(other, (base, view))| {
            base == value && !self.is_per_group[*other] && strides_along(view, sizes) == strides
        });
        let mut others: SmallVec<[(usize, usize); 6]> =
            others.map(|(other, (_, view))| (view.offset(), other)).collect();
        others.sort_unstable();
        let mut record: SmallVec<[usize; 4]> = SmallVec::new();
        let (mut first, mut next) = (0, 0);
        for (offset, other) in others {
            if record.is_empty() || offset != next || offset - first >= step as usize {
                if record.contains(&at) {
                    break;
                }
                record.clear();
                first = offset;
            }
            record.push(other);
            next = offset + 1;
        }
        record
    }

    /// The axes of the domain, of whose elements some results are that lie in memory as views say. Halves are so many
    /// elements that others begin as many behind them.
    pub(super) fn sizes(
        &self,
        domain: &Domain,
        domain_box: Option<&DomainBox>,
        written: [Option<&StridedView>; 2],
        half: Option<usize>,
    ) -> Option<Sizes> {
        let mut axes = Axes::new(domain.elements());
        axes.divide(domain.inner);
        axes.divide(domain.inner * domain.reduced);
        let inputs =
            self.inputs.iter().map(|(_, view)| view).zip(self.is_per_group.iter().copied()).skip(self.first);
        let iota = self.iota.iter().map(|((_, is_per_group), view)| (view, *is_per_group));
        for (view, is_per_group) in inputs.chain(iota) {
            if is_per_group { axes.add_per_group(view, domain) } else { axes.add(view) }
        }
        written.into_iter().flatten().for_each(|view| axes.add(view));
        half.into_iter().for_each(|half| axes.divide(half));
        domain_box.into_iter().for_each(|domain_box| domain_box.divide(&mut axes));
        axes.sizes()
    }
}

/// The sizes that a node's operands are read in.
pub(super) fn domain_of(graph: &Graph, position: usize, role: NodeRole) -> &[usize] {
    let node = &graph.nodes()[position];
    match role {
        NodeRole::Reduction(_) | NodeRole::Across(_) => graph.ty(node.inputs[0]).shape.sizes(),
        NodeRole::Elements | NodeRole::Rows => node.outputs[0].shape.sizes(),
    }
}

/// A value that is made where it is read.
pub(super) enum Generated {
    Constant(Scalar),
    /// The numbers 0, 1, 2, ... along an axis: the positions that a view of them has.
    Iota(StridedView),
}

/// How a value is made where it is read, if it is; in a box, where one of its nodes reads it.
pub(super) fn generated(
    graph: &Graph,
    fusion: &FusionGroups,
    base: usize,
    domain_box: Option<&DomainBox>,
) -> Option<Generated> {
    let op = &graph.nodes()[base].op;
    if let GraphOp::Constant(scalar) = op {
        return Some(Generated::Constant(*scalar));
    }
    let (GraphOp::Iota { axis, shape, .. }, Role::Generated) = (op, &fusion.roles[base]) else {
        return None;
    };
    if let Some(domain_box) = domain_box {
        return Some(Generated::Iota(domain_box.iota_view(*axis)));
    }
    let size = shape.size();
    let (along, step) = match axis {
        Some(axis) => (shape[*axis], shape.sizes()[axis.index() + 1..].iter().product()),
        None => (size, 1),
    };
    let sizes = [size / (along * step), along, step];
    Some(Generated::Iota(StridedView::strided(0, &sizes, &[0, 1, 0])))
}
