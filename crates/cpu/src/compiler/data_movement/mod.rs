//! Fusion of data movement: nests compute concatenations, paddings, updates of large windows and transpositions box by
//! box, without copies. Paddings and updates are treated as concatenations here.
//!
//! The only consumer of a concatenation reads its operands instead. The producer of an operand that has no other
//! consumer is computed in the operand's box. A concatenation that is a result, or has several consumers, is a nest of
//! its own if that nest computes operands, or reads what they are views of: they are then written to their final
//! addresses.
//!
//! A consumer may read windows of a concatenation, and a concatenation may be of others and of slices of them
//! (`through`). Then boxes are those in which each window lies within one operand.
//!
//! The only consumer of a transposition reads blocks of one cache line by as many rows, and transposes them in
//! registers.

mod joins;
#[cfg(test)]
mod tests;
mod through;

use defn_core::graph::{Graph, Node, Value, Values};
use defn_core::op::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::fuse::{BoxSource, DomainBox, Sizes, TransposeBlock};
use super::fusion_groups::{FusionGroups, Role};
use super::nest::Nest;
use super::row_blocks::FusedKernel;
use super::users::Uses;
use joins::is_join;
use through::{MAX_NODES, ReadThrough};

/// The most boxes of a nest: each has instructions of its own.
const MAX_BOXES: usize = 12;

/// The least elements of a box that should lie side by side: of fewer a vector would be mostly empty.
const MIN_RUN: usize = 16;

/// One of so many elements may be in a box where fewer do.
const MAX_SHORT_FRACTION: usize = 8;

/// The kernels, with concatenations and transpositions fused into the nests that read or write them.
pub(super) fn fuse_data_movement(
    graph: &Graph,
    fusion: &FusionGroups,
    uses: &dyn Uses,
    mut kernels: Vec<FusedKernel>,
) -> Vec<FusedKernel> {
    let is_done_here = |node: &Node| is_transposition(node) || is_join(graph, node);
    if !graph.nodes().iter().any(is_done_here) {
        return kernels;
    }
    let mut fuser = MovementFuser {
        graph,
        fusion,
        uses,
        single_groups: FxHashSet::default(),
        fused: FxHashSet::default(),
        seen_through: FxHashMap::default(),
    };
    fuser.single_groups = kernels.iter().filter_map(FusedKernel::single_group).collect();
    // Readers first: a concatenation that one of them does has no nest of its own.
    for is_reader in [true, false] {
        for kernel in kernels.iter_mut().rev() {
            if let FusedKernel::Single(index) = *kernel
                && !fuser.fused.contains(&index)
                && let Some(nest) = fuser
                    .concat_nest(index, is_reader)
                    .or_else(|| is_reader.then(|| fuser.transposition_nest(index))?)
            {
                fuser.single_groups.remove(&index);
                *kernel = FusedKernel::Nest(index, Box::new(nest), None);
            }
        }
    }
    fuser.drop_unread_views();
    let fused = fuser.fused;
    kernels.retain(|kernel| kernel.single_group().is_none_or(|index| !fused.contains(&index)));
    kernels
}

/// The lanes of a tile of transposed values: what it reads lies in as many pages.
const TRANSPOSE_TILE_LANES: usize = 128;

/// Bytes of a cache line.
const CACHE_LINE_BYTES: usize = 64;

/// Whether a node changes the order of axes.
fn is_transposition(node: &Node) -> bool {
    let Op::Transpose { .. } = node.op else { return false };
    true
}

struct MovementFuser<'a> {
    graph: &'a Graph,
    fusion: &'a FusionGroups,
    uses: &'a dyn Uses,
    /// The indices of fusion groups that are not fused further.
    single_groups: FxHashSet<usize>,
    /// Those that a nest does.
    fused: FxHashSet<usize>,
    /// For each view that has memory of its own, the fusion groups that read what it is a view of instead.
    seen_through: FxHashMap<usize, FxHashSet<usize>>,
}

impl MovementFuser<'_> {
    /// The nest of a fusion group that reads concatenations, or of a concatenation.
    fn concat_nest(&mut self, index: usize, is_reader: bool) -> Option<Nest> {
        let nodes = &self.fusion.order[index].nodes;
        match (&self.fusion.roles[nodes[0]], is_reader) {
            (Role::Elementwise, true) => {
                let through = self.read_through(index).filter(ReadThrough::has_windows);
                through.and_then(|through| self.nest_through(index, is_reader, &through)).or_else(|| {
                    let whole = ReadThrough::whole(self.graph, self.concats(index)?);
                    self.nest_through(index, is_reader, &whole)
                })
            }
            (Role::Step, false) => {
                is_join(self.graph, &self.graph.nodes()[nodes[0]]).then_some(())?;
                let own = ReadThrough::whole(self.graph, SmallVec::from_slice(&[nodes[0]]));
                self.nest_through(index, is_reader, &own)
            }
            (Role::Elementwise, false)
            | (Role::Step, true)
            | (Role::Leaf | Role::View | Role::Generated, _) => None,
        }
    }

    /// The nest of a fusion group, box by box, or of a concatenation.
    fn nest_through(&mut self, index: usize, is_reader: bool, through: &ReadThrough) -> Option<Nest> {
        let (graph, fusion) = (self.graph, self.fusion);
        let nodes = &fusion.order[index].nodes;
        let first = &graph.nodes()[nodes[0]];
        let own: SmallVec<[usize; 6]> = if is_reader { nodes.as_slice().into() } else { SmallVec::new() };
        let sizes = first.outputs.first()?.shape.sizes();
        let divided = boxes(through.borders(graph, fusion, sizes)?, sizes)?;
        if through.has_windows() && divided.len() * nodes.len() > MAX_NODES {
            return None;
        }
        let (mut boxes, mut producers, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for (starts, own_sizes) in divided {
            let mut domain_box = DomainBox {
                domain: sizes.into(),
                starts,
                sizes: own_sizes,
                nodes: own.clone(),
                sources: FxHashMap::default(),
                block: None,
            };
            let mut computed: Vec<usize> = Vec::new();
            for read in &through.reads {
                let (mut source, join) =
                    through.source(graph, fusion, read, (&domain_box.starts, &domain_box.sizes))?;
                // What windows read is read in several boxes.
                let producer = if join == read.key { self.producer(&source, join) } else { None };
                if let Some(producer) = producer {
                    computed.extend(&fusion.order[producer].nodes);
                    producers.push(producer);
                } else if let Some((node, of)) = self.through(&source) {
                    seen.extend(fusion.group_of[join].map(|group| (node, group)));
                    source = of;
                }
                domain_box.sources.insert(read.key, source);
            }
            computed.extend(own.iter().copied());
            boxes.push((domain_box, computed));
        }
        // What is computed twice is not needed once only.
        let distinct: FxHashSet<usize> = producers.iter().copied().collect();
        if distinct.len() != producers.len() || !is_reader && producers.is_empty() && seen.is_empty() {
            return None;
        }
        let results: Values = if is_reader {
            self.uses.live_outs(index).clone()
        } else {
            std::iter::once(Value { node: nodes[0] as u32, output: 0 }).collect()
        };
        let nest = Nest::of_boxes(graph, fusion, &boxes, &results)?;
        if through.has_windows() {
            // Windows may read nothing of an operand.
            for &member in &through.members {
                for &value in &graph.nodes()[member].inputs {
                    let part = self.through(&BoxSource::Operand { value, starts: None });
                    seen.extend(part.and_then(|(node, _)| Some((node, fusion.group_of[member]?))));
                }
            }
        }
        for (node, group) in seen {
            self.seen_through.entry(node).or_default().insert(group);
        }
        self.fused.extend(producers);
        if is_reader {
            self.fused.extend(through.members.iter().filter_map(|&member| fusion.group_of[member]));
        }
        Some(nest)
    }

    /// What a view that has memory of its own is a view of, as the source of a box; with the view.
    fn through(&self, source: &BoxSource) -> Option<(usize, BoxSource)> {
        let BoxSource::Operand { value, starts } = source else { return None };
        let node = value.node as usize;
        let (Role::Step, true) = (&self.fusion.roles[node], self.graph.nodes()[node].op.view().is_some())
        else {
            return None;
        };
        let view = self.fusion.node_view(node)?.clone();
        // Counted numbers are not read as views say.
        let is_read = match self.fusion.roles[view.base.node as usize] {
            Role::Leaf | Role::Elementwise | Role::Step => true,
            Role::View | Role::Generated => false,
        };
        is_read.then(|| (node, BoxSource::View { view, starts: starts.clone() }))
    }

    /// Views whose readers all read what they are views of need no memory.
    fn drop_unread_views(&mut self) {
        for (&node, readers) in &self.seen_through {
            let value = Value { node: node as u32, output: 0 };
            let group = self.fusion.group_of[node].filter(|group| self.single_groups.contains(group));
            if !self.uses.is_live_outside(value, &|group| readers.contains(&group)) {
                self.fused.extend(group);
            }
        }
    }

    /// The nest of a fusion group that reads transposed values.
    fn transposition_nest(&mut self, index: usize) -> Option<Nest> {
        let (graph, fusion) = (self.graph, self.fusion);
        let nodes = &fusion.order[index].nodes;
        let first = &graph.nodes()[nodes[0]];
        let Role::Elementwise = fusion.roles[nodes[0]] else { return None };
        let sizes = first.outputs[0].shape.sizes();
        let last = sizes.len().checked_sub(1)?;
        // The first says along which axis blocks are.
        let mut block: Option<(usize, usize)> = None;
        let single_use_operands = self.single_use_operands(index, &mut |base| {
            let own = self.block(base, last);
            block = block.or(own);
            own.is_some() && own == block
        })?;
        let (axis, elements) = block?;
        let (axis_rest, rest) = (sizes[axis] % elements, sizes[last] % TRANSPOSE_TILE_LANES);
        let mut boxes = Vec::new();
        for (start, size) in [(0, sizes[axis] - axis_rest), (sizes[axis] - axis_rest, axis_rest)] {
            for (lane, lanes) in [(0, sizes[last] - rest), (sizes[last] - rest, rest)] {
                if size == 0 || lanes == 0 {
                    continue;
                }
                let mut starts = Sizes::from_elem(0, sizes.len());
                let mut own: Sizes = sizes.into();
                (starts[axis], starts[last], own[axis], own[last]) = (start, lane, size, lanes);
                let block = TransposeBlock {
                    axis,
                    elements: elements.min(size),
                    lanes: lanes.min(TRANSPOSE_TILE_LANES),
                };
                let domain_box = DomainBox {
                    domain: sizes.into(),
                    starts,
                    sizes: own,
                    nodes: nodes.as_slice().into(),
                    sources: single_use_operands.iter().map(|&base| (base, BoxSource::Transposed)).collect(),
                    // One row has no neighbours, and one column has no lanes beside the block.
                    block: (size > 1 && lanes > 1).then_some(block),
                };
                boxes.push((domain_box, nodes.clone()));
            }
        }
        let nest = Nest::of_boxes(graph, fusion, &boxes, self.uses.live_outs(index))?;
        self.fused.extend(single_use_operands.iter().filter_map(|&base| fusion.group_of[base]));
        Some(nest)
    }

    /// The axis along which a transposed value has its neighbours, and how many of them are in a line; if its rows are
    /// along another axis, and the machine can transpose its elements in registers.
    fn block(&self, base: usize, last: usize) -> Option<(usize, usize)> {
        let node = &self.graph.nodes()[base];
        let (ty, Role::Step) = (node.outputs.first()?, &self.fusion.roles[base]) else { return None };
        if !is_transposition(node) || ty.dtype.is_complex() || ty.dtype.storage_bytes() < 4 {
            return None;
        }
        // The group may read it with other axes, as a reshape of it.
        if ty.shape.rank() != last + 1 {
            return None;
        }
        let value_view = self.fusion.unfiltered_view(self.graph, base)?;
        if let Op::Constant(_) = self.graph.node(value_view.base).op {
            return None;
        }
        let strides = value_view.strides();
        let axis = (0..last).find(|&axis| strides[axis] == 1 && ty.shape.sizes()[axis] > 1)?;
        let elements = CACHE_LINE_BYTES / ty.dtype.storage_bytes();
        let is_long = ty.shape.sizes()[axis] >= elements && ty.shape.sizes()[last] >= elements;
        (is_long && strides[last] >= elements as isize).then_some((axis, elements))
    }

    /// The concatenations that nobody but a fusion group reads, element by element.
    fn concats(&self, index: usize) -> Option<SmallVec<[usize; 4]>> {
        self.single_use_operands(index, &mut |base| is_join(self.graph, &self.graph.nodes()[base]))
    }

    /// The steps of a kind that nobody but a fusion group reads, element by element.
    fn single_use_operands(
        &self,
        index: usize,
        is_wanted: &mut dyn FnMut(usize) -> bool,
    ) -> Option<SmallVec<[usize; 4]>> {
        let (graph, fusion) = (self.graph, self.fusion);
        let group = &fusion.order[index];
        let sizes = graph.nodes()[group.nodes[0]].outputs[0].shape.sizes();
        let mut single_use_operands: SmallVec<[usize; 4]> = SmallVec::new();
        for &position in &group.nodes {
            let node = &graph.nodes()[position];
            for &input in &node.inputs {
                let base = fusion.base(input).node as usize;
                let value = Value { node: base as u32, output: 0 };
                let is_concat = fusion.group_of[base]
                    .is_some_and(|other| self.single_groups.contains(&other))
                    && !self.uses.is_live_outside(value, &|other| other == index)
                    && is_wanted(base);
                if is_concat && !single_use_operands.contains(&base) {
                    single_use_operands.push(base);
                }
            }
        }
        if single_use_operands.is_empty() {
            return None;
        }
        // They are read as a whole, in order.
        let mut inputs = group.nodes.iter().flat_map(|&position| &graph.nodes()[position].inputs);
        let fits = self.fits(index, &single_use_operands)
            && inputs.all(|&input| {
                let is_wanted = single_use_operands.contains(&(fusion.base(input).node as usize));
                !is_wanted || self.is_in_order(input, sizes)
            });
        fits.then_some(single_use_operands)
    }

    /// The fusion group that computes a piece as a whole, for nobody else.
    fn producer(&self, source_in_box: &BoxSource, concat: usize) -> Option<usize> {
        let (graph, fusion) = (self.graph, self.fusion);
        let BoxSource::Operand { value, starts: None } = source_in_box else { return None };
        let value_view = fusion.view(graph, *value);
        let index = fusion.group_of[value_view.base.node as usize]?;
        let group = &fusion.order[index];
        let Role::Elementwise = fusion.roles[group.nodes[0]] else { return None };
        let needed = self.uses.live_outs(index);
        let is_free = self.single_groups.contains(&index)
            && !self.fused.contains(&index)
            && graph.ty(*value).size() == graph.ty(value_view.base).size()
            && graph.nodes()[concat]
                .inputs
                .iter()
                .filter(|input| fusion.base(**input) == value_view.base)
                .count()
                == 1
            && value_view.is_identity(graph)
            && needed.len() == 1
            && !self.uses.is_live_outside(value_view.base, &|other| Some(other) == fusion.group_of[concat]);
        is_free.then_some(index)
    }
}

/// Whether a node has these sizes.
fn has_sizes(graph: &Graph, node: usize, sizes: &[usize]) -> bool {
    has_shape(graph, Value { node: node as u32, output: 0 }, sizes)
}

/// Whether a value has these sizes.
fn has_shape(graph: &Graph, value: Value, sizes: &[usize]) -> bool {
    graph.ty(value).shape.sizes() == sizes
}

/// The boxes that borders along each axis divide a domain into, where each begins and its sizes.
fn boxes(borders: SmallVec<[Sizes; 6]>, sizes: &[usize]) -> Option<Vec<(Sizes, Sizes)>> {
    let mut boxes: Vec<(Sizes, Sizes)> = vec![(Sizes::new(), Sizes::new())];
    for (mut borders, &size) in borders.into_iter().zip(sizes) {
        borders.retain(|border| *border < size);
        borders.push(size);
        borders.sort_unstable();
        borders.dedup();
        let parts = borders.windows(2).map(|pair| (pair[0], pair[1] - pair[0]));
        let parts: SmallVec<[(usize, usize); 4]> = parts.collect();
        if boxes.len() * parts.len() > MAX_BOXES {
            return None;
        }
        let divided = boxes.iter().flat_map(|(starts, sizes)| {
            parts.iter().map(move |&(start, size)| {
                let with = |all: &Sizes, one: usize| all.iter().copied().chain([one]).collect::<Sizes>();
                (with(starts, start), with(sizes, size))
            })
        });
        boxes = divided.collect();
    }
    // Elements in boxes of which few lie side by side in the result.
    let is_short = |own: &Sizes| {
        let whole = own.iter().zip(sizes).rev().take_while(|(own, size)| own == size).count();
        let run: usize = own[own.len().saturating_sub(whole + 1)..].iter().product();
        run < MIN_RUN
    };
    let short = boxes.iter().filter(|(_, own)| is_short(own));
    let short: usize = short.map(|(_, own)| own.iter().product::<usize>()).sum();
    let is_fast = short * MAX_SHORT_FRACTION <= sizes.iter().product();
    (is_fast && !boxes.is_empty()).then_some(boxes)
}
