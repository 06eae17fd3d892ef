//! Reads at positions that a tensor has, as operands of a nest: nothing between lies in memory.
//!
//! A position is loaded once for all elements that it selects, or lane by lane where each element has its own. It is
//! clamped by arithmetic on what was loaded: another thread may write the tensor meanwhile.

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{Block, Op as GraphOp};
use defn_core::{Axis, DType, Kind};
use smallvec::SmallVec;

use super::build::{NestBuilder, NodeRole};
use super::elements::{Element, computed};
use super::reads::{Reads, domain_of};
use crate::compiler::fusion_groups::{FusionGroups, Role, random};
use crate::compiler::ir::{Conv, Elem, Op, Val};
use crate::compiler::users::Uses;
use crate::kernels::StridedView;
use crate::kernels::shape::Layout;

/// What an element is read by: where it would lie if all positions were 0, and the positions.
pub(super) struct Gather {
    /// The view of the table, in the order of the result.
    pub(super) table: StridedView,
    pub(super) entries: SmallVec<[Entry; 2]>,
    /// How many elements the table has.
    size: usize,
}

/// A position along an axis of the table.
pub(super) struct Entry {
    /// The view of the positions, in the order of the result.
    pub(super) view: StridedView,
    /// The size of the axis, and how many elements of the table one step of it passes.
    size: usize,
    step: usize,
}

/// The inputs of a nest that a gather reads: the table, and the positions of each entry.
pub(super) struct GatherInputs {
    pub(super) table: usize,
    pub(super) entries: SmallVec<[usize; 4]>,
}

/// How a node reads a table at positions, if that is what it does.
pub(super) fn gather(graph: &Graph, node: &Node) -> Option<Gather> {
    let (axes, leads): (&[Axis], Leads) = if let GraphOp::Gather { axes } = &node.op {
        (axes, Leads::First)
    } else if let GraphOp::Block(Block::Take { axis }) = &node.op {
        (std::slice::from_ref(axis), Leads::InPlace)
    } else if let GraphOp::Block(Block::TakeAlongAxis { axis }) = &node.op {
        (std::slice::from_ref(axis), Leads::Everywhere)
    } else {
        return None;
    };
    let [x, positions] = [0, 1].map(|operand| graph.ty(node.inputs[operand]).shape.sizes());
    let result = node.outputs[0].shape.sizes();
    if result.contains(&0) || x.contains(&0) {
        return None;
    }
    let own = Layout::contiguous(x).strides;
    let at = Layout::contiguous(positions).strides;
    let is_indexed = |axis: &usize| axes.iter().any(|indexed| indexed.index() == *axis);
    let kept = || (0..x.len()).filter(|axis| !is_indexed(axis));
    let (mut table, mut along): (SmallVec<[isize; 6]>, SmallVec<[isize; 6]>) = Default::default();
    match leads {
        Leads::First => {
            let counted = &at[..at.len() - 1];
            table.extend(counted.iter().map(|_| 0).chain(kept().map(|axis| own[axis])));
            along.extend(counted.iter().copied().chain(kept().map(|_| 0)));
        }
        Leads::InPlace => {
            let axis = axes[0].index();
            let (before, after) = (&own[..axis], &own[axis + 1..]);
            table.extend(before.iter().copied().chain(at.iter().map(|_| 0)).chain(after.iter().copied()));
            let none = |strides: &[isize]| std::iter::repeat_n(0, strides.len());
            along.extend(none(before).chain(at.iter().copied()).chain(none(after)));
        }
        Leads::Everywhere => {
            let strides = own.iter().enumerate();
            table.extend(strides.map(|(axis, &stride)| if is_indexed(&axis) { 0 } else { stride }));
            along.extend(at.iter().copied());
        }
    }
    let entries = axes.iter().enumerate().map(|(entry, axis)| Entry {
        view: StridedView::strided(entry, result, &along),
        size: x[axis.index()],
        step: own[axis.index()] as usize,
    });
    let entries = entries.collect();
    Some(Gather { table: StridedView::strided(0, result, &table), entries, size: x.iter().product() })
}

/// Where the axes of positions are in the result.
enum Leads {
    /// First; the last has the entries of a position.
    First,
    /// In the place of the axis that is indexed.
    InPlace,
    /// Everywhere: each element has its own.
    Everywhere,
}

/// The gathers that nobody but the nodes of a nest reads, and those as they come.
pub(in super::super) fn gathered(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    nodes: &[(usize, NodeRole)],
) -> SmallVec<[usize; 4]> {
    let mut found: SmallVec<[usize; 4]> = SmallVec::new();
    let mut refused: SmallVec<[usize; 4]> = SmallVec::new();
    for &(position, role) in nodes {
        for &input in &graph.nodes()[position].inputs {
            let value_view = fusion.view(graph, input);
            let (base, node) = (value_view.base.node as usize, &graph.nodes()[value_view.base.node as usize]);
            let (Role::Step, Some(gather)) = (&fusion.roles[base], gather(graph, node)) else { continue };
            // A constant has no memory that could be read at a position.
            let is_there = |input: &Value| {
                let GraphOp::Constant(_) = graph.nodes()[input.node as usize].op else { return true };
                false
            };
            let size: usize = domain_of(graph, position, role).iter().product();
            let is_in_order = value_view.is_identity(graph) && graph.ty(value_view.base).size() == size;
            let is_element = random(&graph.nodes()[position].op).is_none();
            if !is_in_order
                || !is_element
                || !node.inputs.iter().all(is_there)
                || gather.size > isize::MAX as usize / 16
            {
                refused.push(base);
            } else if !found.contains(&base) {
                found.push(base);
            }
        }
    }
    let is_own = |place: usize| {
        let first = fusion.order[place].nodes[0];
        nodes.iter().any(|(node, _)| *node == first)
    };
    found.retain(|base| {
        let value = Value { node: *base as u32, output: 0 };
        !refused.contains(base) && !uses.is_live_outside(value, &is_own)
    });
    found
}

impl Reads {
    /// Adds what a gather reads.
    pub(super) fn add_gather(&mut self, graph: &Graph, base: usize, is_per_group: bool) {
        if self.gathers.contains_key(&(base, is_per_group)) {
            return;
        }
        let node = &graph.nodes()[base];
        let Gather { table, entries, size: _ } = gather(graph, node).expect("it was found so");
        let table = self.add((node.inputs[0], table, is_per_group));
        let entries = entries.into_iter().map(|entry| self.add((node.inputs[1], entry.view, is_per_group)));
        let entries: SmallVec<[usize; 4]> = entries.collect();
        self.unaliasable_inputs.push(table);
        self.unaliasable_inputs.extend_from_slice(&entries);
        self.gathers.insert((base, is_per_group), GatherInputs { table, entries });
    }
}

impl NestBuilder<'_> {
    /// What a gather gives, if the nest reads one there.
    pub(super) fn gathered(&mut self, base: usize, is_per_group: bool) -> Option<Option<Element>> {
        self.reads.gathers.contains_key(&(base, is_per_group)).then(|| self.gather(base, is_per_group))
    }

    fn gather(&mut self, base: usize, is_per_group: bool) -> Option<Element> {
        if !is_per_group && let Some(&known) = self.values.get(&base) {
            return Some(known);
        }
        let (graph, reads) = (self.graph, self.reads);
        let node = &graph.nodes()[base];
        let gather = gather(graph, node).expect("it was found so");
        let inputs = &reads.gathers[&(base, is_per_group)];
        let dtype = graph.ty(node.inputs[1]).dtype;
        let is_long = gather.size > i32::MAX as usize || dtype.storage_bytes() > 4;
        let mut position: Option<Val> = None;
        for (entry, &input) in gather.entries.iter().zip(&inputs.entries) {
            let access = self.input_access(input, is_per_group, dtype.storage_bytes());
            let width = dtype.storage_bytes() as i64;
            if width < 4 && access.lane != 0 && access.lane != width {
                // Vectors of what is narrow are side by side.
                return None;
            }
            let index = self.e.load(dtype, access);
            let clamped = self.clamped(index, entry.size, is_long);
            let elem = self.e.b.ty(clamped).elem;
            let step = self.e.b.bits(elem, entry.step as u64);
            let moved = if entry.step == 1 { clamped } else { self.e.b.mul(clamped, step) };
            position = Some(position.map_or(moved, |position| self.e.b.add(position, moved)));
        }
        let dtype = node.outputs[0].dtype;
        let width = dtype.storage_bytes();
        let mut access = self.input_access(inputs.table, is_per_group, width);
        let Some(mut position) = position else { return Some(self.e.load(dtype, access)) };
        let element = if self.e.b.ty(position).is_vector {
            if dtype.is_complex() || width < 4 {
                return None;
            }
            let (elem, along) = (self.e.b.ty(position).elem, access.lane / width as i64);
            access.lane = 0;
            if along != 0 {
                let (lane, along) = (self.e.b.lane(elem), self.e.b.bits(elem, along as u64));
                let along = self.e.b.mul(lane, along);
                position = self.e.b.add(position, along);
            }
            Element::new(self.e.b.gather(computed(dtype), position, access), dtype)
        } else {
            let index = self.e.b.convert(Conv::ToIndex, Elem::Index, position);
            access.terms.push((index, width as i64));
            self.e.load(dtype, access)
        };
        if !is_per_group {
            self.values.insert(base, element);
        }
        Some(element)
    }

    /// A position along an axis of `size`. Negative ones count from the end; then it is the nearest that there is.
    fn clamped(&mut self, index: Element, size: usize, is_long: bool) -> Val {
        let is_signed = index.dtype.kind() == Kind::Signed;
        let to = match (is_signed, is_long) {
            (true, false) => DType::S32,
            (true, true) => DType::S64,
            (false, false) => DType::U32,
            (false, true) => DType::U64,
        };
        let index = self.e.convert(index, to).value;
        let elem = computed(to);
        let last = self.e.b.bits(elem, size as u64 - 1);
        if !is_signed {
            return self.e.b.op(Op::MinU, [index, last]);
        }
        let sign = self.e.b.op(Op::SarBy(8 * elem.bytes() as u8 - 1), [index]);
        let size = self.e.b.bits(elem, size as u64);
        let from_end = self.e.b.op(Op::And, [sign, size]);
        let position = self.e.b.add(index, from_end);
        let zero = self.e.b.bits(elem, 0);
        let least = self.e.b.op(Op::Max, [position, zero]);
        self.e.b.op(Op::Min, [least, last])
    }
}
