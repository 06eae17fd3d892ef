//! What a fusion group reads through: windows of joins, joins of joins, and slices of those, where nobody else needs
//! them in memory. In each box the group reads the values that they were made of.
//!
//! A stencil on a torus is such a group. It reads windows of an array that was padded with slices of itself: the inner
//! box reads the array where it is, and small boxes along the borders read its other side.

use defn_core::graph::{Graph, Node, Value};
use defn_core::op::{Op, Starts};
use smallvec::SmallVec;

use super::joins::{Positions, borders, is_join, parts, source_in_box};
use super::{BoxSource, MovementFuser, Sizes, has_shape, has_sizes};
use crate::compiler::fusion_groups::{FusionGroups, Role, random};

/// The most joins and slices that one fusion group reads through.
const MAX_MEMBERS: usize = 16;

/// The most parts of joins that are looked at for borders: a join may be several parts of another one.
const MAX_PARTS: usize = 256;

/// The most nodes in all boxes where joins are read by windows: the nodes of each box have instructions of their own.
pub(super) const MAX_NODES: usize = 512;

/// Domains of fewer elements read joins from memory: more boxes take more time to compile than they save.
const MIN_ELEMENTS: usize = 1 << 8;

/// The joins that a fusion group reads through.
#[derive(Debug)]
pub(super) struct ReadThrough {
    /// The joins and slices that need no memory.
    pub(super) members: SmallVec<[usize; 6]>,
    pub(super) reads: SmallVec<[JoinRead; 4]>,
}

/// An operand of a fusion group that is read through.
#[derive(Debug)]
pub(super) struct JoinRead {
    /// The node that stands for it in boxes: the operand itself, or the join, if it is the join as a whole.
    pub(super) key: usize,
    /// The join, and where the operand begins in it.
    join: usize,
    starts: Sizes,
}

/// The join that an operand of a fusion group is a window of, as large as the domain.
enum OfJoin {
    Window(JoinRead),
    /// It is some other view.
    Other,
}

impl ReadThrough {
    /// Joins that are read as a whole.
    pub(super) fn whole(graph: &Graph, joins: SmallVec<[usize; 4]>) -> ReadThrough {
        let read = |&join: &usize| {
            let rank = graph.nodes()[join].outputs[0].shape.sizes().len();
            JoinRead { key: join, join, starts: Sizes::from_elem(0, rank) }
        };
        let reads = joins.iter().map(read).collect();
        ReadThrough { members: joins.into_iter().collect(), reads }
    }

    /// Whether joins are read by windows, or joins of joins are read.
    pub(super) fn has_windows(&self) -> bool {
        self.members.len() != self.reads.len() || self.reads.iter().any(|read| read.key != read.join)
    }

    /// Where boxes begin along each axis, so that each lies within one part of what every operand is.
    pub(super) fn borders(
        &self,
        graph: &Graph,
        fusion: &FusionGroups,
        sizes: &[usize],
    ) -> Option<SmallVec<[Sizes; 6]>> {
        let mut found: SmallVec<[Sizes; 6]> = SmallVec::from_elem(Sizes::from_slice(&[0]), sizes.len());
        // What is left to look at: a node, where the domain begins in it, and which part of the domain reads it.
        let mut stack: Vec<(usize, Positions, SmallVec<[(i64, i64); 4]>)> = Vec::new();
        for read in &self.reads {
            let starts = read.starts.iter().map(|&start| start as i64).collect();
            stack.push((read.join, starts, sizes.iter().map(|&size| (0, size as i64)).collect()));
        }
        let mut looked_at = 0;
        while let Some((position, starts, within)) = stack.pop() {
            looked_at += 1;
            if looked_at > MAX_PARTS {
                return None;
            }
            let node = &graph.nodes()[position];
            let mut push = |operand: Value, starts: Positions, within: SmallVec<[(i64, i64); 4]>| {
                if let Some((inner, first)) = self.member(graph, fusion, operand) {
                    let starts = starts.iter().zip(first).map(|(start, first)| start + first as i64);
                    stack.push((inner, starts.collect(), within));
                }
            };
            if let Some(first) = unit_slice(node) {
                let starts = starts.iter().zip(first).map(|(start, &first)| start + first as i64);
                push(node.inputs[0], starts.collect(), within);
                continue;
            }
            for (axis, along) in borders(graph, node)?.into_iter().enumerate() {
                for border in along {
                    let at = border as i64 - starts[axis];
                    if within[axis].0 < at && at < within[axis].1 {
                        found[axis].push(at as usize);
                    }
                }
            }
            for (part, begin) in parts(graph, node) {
                let axes = starts.iter().zip(&begin).zip(graph.ty(part).shape.sizes()).zip(&within);
                let own: SmallVec<[(i64, i64); 4]> = axes
                    .map(|(((start, begin), &size), (low, high))| {
                        let first = begin - start;
                        (first.max(*low), (first + size as i64).min(*high))
                    })
                    .collect();
                if own.iter().all(|(low, high)| low < high) {
                    push(part, starts.iter().zip(&begin).map(|(start, begin)| start - begin).collect(), own);
                }
            }
        }
        Some(found)
    }

    /// What an operand is in a box of the domain, and the join that it is a part of.
    pub(super) fn source(
        &self,
        graph: &Graph,
        fusion: &FusionGroups,
        read: &JoinRead,
        (starts, sizes): (&[usize], &[usize]),
    ) -> Option<(BoxSource, usize)> {
        let mut position = read.join;
        let mut own: Sizes = starts.iter().zip(&read.starts).map(|(start, first)| start + first).collect();
        let mut last = position;
        loop {
            let node = &graph.nodes()[position];
            let value = if let Some(first) = unit_slice(node) {
                own.iter_mut().zip(first).for_each(|(own, first)| *own += first);
                node.inputs[0]
            } else {
                last = position;
                match source_in_box(graph, node, &own, sizes)? {
                    BoxSource::Operand { value, starts: Some(starts) } => {
                        own = starts;
                        value
                    }
                    BoxSource::Operand { value, starts: None } if has_shape(graph, value, sizes) => {
                        own.fill(0);
                        value
                    }
                    source @ (BoxSource::Operand { .. } | BoxSource::View { .. } | BoxSource::Transposed) => {
                        return Some((source, last));
                    }
                }
            };
            let Some((inner, first)) = self.member(graph, fusion, value) else {
                let starts = (!has_shape(graph, value, sizes)).then_some(own);
                return Some((BoxSource::Operand { value, starts }, last));
            };
            own.iter_mut().zip(first).for_each(|(own, first)| *own += first);
            position = inner;
        }
    }

    /// The join or slice that a value is a window of, and where it begins.
    fn member(&self, graph: &Graph, fusion: &FusionGroups, value: Value) -> Option<(usize, Sizes)> {
        window(graph, fusion, value).filter(|(node, _)| self.members.contains(node))
    }
}

/// Where a slice without steps begins, whose starts are known.
fn unit_slice(node: &Node) -> Option<&[usize]> {
    let Op::Slice { starts: Starts::Static(starts), strides, .. } = &node.op else { return None };
    strides.iter().all(|&stride| stride == 1).then_some(starts)
}

/// The node that has the memory of a value, if the value is a window of its elements, and where it begins.
fn window(graph: &Graph, fusion: &FusionGroups, value: Value) -> Option<(usize, Sizes)> {
    let view = fusion.view(graph, value);
    let starts = view.window_of(graph.ty(view.base).shape.sizes())?;
    (view.base.output == 0).then_some((view.base.node as usize, starts))
}

impl MovementFuser<'_> {
    /// The joins that a fusion group reads through, if there are any.
    pub(super) fn read_through(&self, index: usize) -> Option<ReadThrough> {
        let (graph, fusion) = (self.graph, self.fusion);
        let nodes = &fusion.order[index].nodes;
        let sizes = graph.nodes()[nodes[0]].outputs[0].shape.sizes();
        if sizes.iter().product::<usize>() < MIN_ELEMENTS {
            return None;
        }
        let mut members: SmallVec<[usize; 6]> = SmallVec::new();
        // The joins among the operands, and how they are read.
        let mut operands: SmallVec<[(usize, OfJoin); 8]> = SmallVec::new();
        for &position in nodes {
            for &input in &graph.nodes()[position].inputs {
                let base = fusion.base(input).node as usize;
                if !self.may_be_read_through(base) {
                    continue;
                }
                operands.push((base, self.of_join(input, base, sizes)));
                if !members.contains(&base) {
                    members.push(base);
                }
            }
        }
        let mut at = 0;
        while let Some(&member) = members.get(at) {
            let node = &graph.nodes()[member];
            for &input in &node.inputs {
                let base = fusion.base(input).node as usize;
                let has_dtype = graph.nodes()[base].outputs[0].dtype == node.outputs[0].dtype;
                if has_dtype && self.may_be_read_through(base) && !members.contains(&base) {
                    members.push(base);
                }
            }
            at += 1;
            if members.len() > MAX_MEMBERS {
                return None;
            }
        }
        self.retain_unneeded(index, &operands, &mut members);
        let is_whole = |member: usize, members: &[usize]| {
            let is_read = |other: &&usize| {
                let inputs = &graph.nodes()[**other].inputs;
                inputs.iter().any(|&input| fusion.base(input).node as usize == member)
            };
            let is_window = |(base, of): &(usize, OfJoin)| match of {
                OfJoin::Window(read) => *base == member && read.key != member,
                OfJoin::Other => false,
            };
            members.iter().find(is_read).is_none() && !operands.iter().any(is_window)
        };
        // What a join by itself would compute in its place is not computed elsewhere to be read through.
        let has_producer = |member: usize| {
            graph.nodes()[member]
                .inputs
                .iter()
                .any(|&value| self.producer(&BoxSource::Operand { value, starts: None }, member).is_some())
        };
        let stay: SmallVec<[usize; 4]> = members
            .iter()
            .copied()
            .filter(|&member| !is_whole(member, &members) && has_producer(member))
            .collect();
        if !stay.is_empty() {
            members.retain(|member| !stay.contains(member));
            self.retain_unneeded(index, &operands, &mut members);
        }
        let mut reads: SmallVec<[JoinRead; 4]> = SmallVec::new();
        for (base, of) in operands {
            if let OfJoin::Window(read) = of
                && members.contains(&base)
                && reads.iter().all(|other| other.key != read.key)
            {
                reads.push(read);
            }
        }
        (!reads.is_empty() && self.fits(index, &members)).then_some(ReadThrough { members, reads })
    }

    /// Whether a node is a join or a slice by itself.
    fn may_be_read_through(&self, position: usize) -> bool {
        let node = &self.graph.nodes()[position];
        self.fusion.group_of[position].is_some_and(|group| self.single_groups.contains(&group))
            && (is_join(self.graph, node) || unit_slice(node).is_some())
            && node.outputs[0].size() > 0
    }

    fn of_join(&self, value: Value, base: usize, sizes: &[usize]) -> OfJoin {
        let graph = self.graph;
        match window(graph, self.fusion, value) {
            Some((_, starts)) if has_shape(graph, value, sizes) && is_join(graph, &graph.nodes()[base]) => {
                let key = if has_sizes(graph, base, sizes) { base } else { value.node as usize };
                OfJoin::Window(JoinRead { key, join: base, starts })
            }
            Some(_) | None => OfJoin::Other,
        }
    }

    /// Keeps those that nobody needs in memory but for a fusion group and others of them, which can read them through.
    fn retain_unneeded(
        &self,
        index: usize,
        operands: &[(usize, OfJoin)],
        members: &mut SmallVec<[usize; 6]>,
    ) {
        let (graph, fusion) = (self.graph, self.fusion);
        loop {
            let all = members.clone();
            let is_within = |group: usize| {
                group == index || all.iter().any(|&member| fusion.group_of[member] == Some(group))
            };
            members.retain(|member| {
                let position = *member;
                let node = &graph.nodes()[position];
                let dtype = node.outputs[0].dtype;
                let is_needed = |other: &usize| {
                    let other = &graph.nodes()[*other];
                    other.inputs.iter().any(|&input| {
                        fusion.base(input).node as usize == position
                            && (other.outputs[0].dtype != dtype || window(graph, fusion, input).is_none())
                    })
                };
                let is_other = |(base, of): &(usize, OfJoin)| match of {
                    OfJoin::Other => *base == position,
                    OfJoin::Window(_) => false,
                };
                // Slices of what is in memory are seen through where boxes read them.
                let is_of_member = unit_slice(node).is_none()
                    || window(graph, fusion, node.inputs[0]).is_some_and(|(base, _)| all.contains(&base));
                is_of_member
                    && !self.uses.is_live_outside(Value { node: position as u32, output: 0 }, &is_within)
                    && !all.iter().any(is_needed)
                    && !operands.iter().any(is_other)
            });
            if members.len() == all.len() {
                return;
            }
        }
    }

    /// Whether a nest can go through boxes of the domain of a fusion group: all that it reads is there as it is, or has
    /// the order of the domain.
    pub(super) fn fits(&self, index: usize, members: &[usize]) -> bool {
        let (graph, fusion) = (self.graph, self.fusion);
        let nodes = &fusion.order[index].nodes;
        let sizes = graph.nodes()[nodes[0]].outputs[0].shape.sizes();
        nodes.iter().all(|&position| {
            let node = &graph.nodes()[position];
            let is_random = random(&node.op).is_some();
            let is_read = |&input: &Value| {
                let base = fusion.base(input).node as usize;
                if members.contains(&base) {
                    return !is_random;
                }
                let is_generated = matches!(fusion.roles[base], Role::Generated);
                let is_own = fusion.group_of[base] == Some(index) || is_generated;
                !is_own || self.is_in_order(input, sizes)
            };
            has_sizes(graph, position, sizes) && node.inputs.iter().all(is_read)
        })
    }

    /// Whether a value has the order and the sizes of a domain, and so has what it is a view of.
    pub(super) fn is_in_order(&self, value: Value, sizes: &[usize]) -> bool {
        let view = self.fusion.view(self.graph, value);
        has_shape(self.graph, value, sizes)
            && view.is_identity(self.graph)
            && has_sizes(self.graph, view.base.node as usize, sizes)
    }
}
