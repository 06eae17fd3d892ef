//! Builds the function of a nest.

use defn_core::DType;
use defn_core::graph::{Graph, Value, Values};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::access::ScratchLayout;
use super::domain::{Domain, Sizes, strides_along};
use super::domain_box::DomainBox;
use super::elements::{Element, Elements};
use super::merge::Reduction;
use super::narrow::{can_be_gathered, is_narrow};
use super::pairs::paired_sizes;
use super::passes::Passes;
use super::random::{draws_before, has_pairs};
use super::reads::{Generated, Reads, domain_of, generated};
use super::shape::{NestKind, NestShape, ThreadSplit};
use super::short::{across, has_records};
use crate::compiler::fusion_groups::{Elementwise, FusionGroups, elementwise};
use crate::compiler::ir::{Builder, Elem, Function, Val};
use crate::compiler::views::ValueView;
use crate::kernels::StridedView;

/// Elements of a row from which on its length is an argument, so that rows of other lengths share the code.
pub(in super::super) const LONG_ROW: usize = 512;

/// The role of a node in a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum NodeRole {
    /// An op on each element.
    Elements,
    /// An op on what each row has.
    Rows,
    /// A reduction of rows.
    Reduction(Reduction),
    /// A reduction across short rows: of the elements that neighbours have at the same place.
    Across(Reduction),
}

/// A nest, with where its operands come from.
#[derive(Debug)]
pub(in super::super) struct Fused {
    pub(in super::super) function: Function,
    /// The values whose memory the first buffers are.
    pub(in super::super) inputs: Vec<(Value, StridedView)>,
    /// The inputs of gathers, which no result may alias.
    pub(in super::super) unaliasable_inputs: SmallVec<[usize; 4]>,
    /// The results that may alias no input: inputs are read after these were written.
    pub(in super::super) unaliasable_results: SmallVec<[usize; 4]>,
    /// The values whose memory the next buffers are.
    pub(in super::super) results: Values,
    /// The bytes of the buffer behind them, which each thread has for itself; 0 if there is none.
    pub(in super::super) scratch: usize,
    /// The bytes of the last buffer, which has the results of pieces; 0 if there is no such buffer.
    pub(in super::super) partial: usize,
    /// The function that then combines partial results, with the same arguments, and its number of steps.
    pub(in super::super) combining: Option<(Function, usize)>,
    /// How many steps the axis has that threads divide: the function's arguments are the first of them, and how many.
    pub(in super::super) steps: usize,
    /// The fewest steps that threads should take: where they divide rows, whole lines of memory.
    pub(in super::super) least_steps: usize,
    /// Elements of the domain.
    pub(in super::super) elements: usize,
    /// How many instructions an element takes.
    pub(in super::super) cost: usize,
}

/// The nest that computes some nodes, of which `results` are needed elsewhere, if the IR has all that it needs. It
/// reads at positions what the nodes `gathered` would give.
pub(in super::super) fn fuse(
    graph: &Graph,
    fusion: &FusionGroups,
    nodes: Vec<(usize, NodeRole)>,
    domain: &Domain,
    results: &Values,
    gathered: &[usize],
    is_streaming: bool,
) -> Option<Fused> {
    let passes = Passes::new(graph, fusion, nodes);
    let reads = Reads::new(graph, fusion, &passes, domain, gathered, None, Vec::new())?;
    let context = NestContext { graph, fusion, results, inputs: reads.inputs.len(), is_streaming };
    let mut body = Body::new(&context, &passes, &reads, domain, None)?;
    let own = if body.shape.pieces > 1 { 2 } else { 1 };
    let begin = || {
        let mut b = Builder::new((context.inputs + results.len()) as u16 + own, 2, 0);
        let steps = (b.param(0, Elem::Index), b.param(1, Elem::Index));
        (b, steps)
    };
    let (b, steps) = begin();
    let Emitted { b, mut scratch, partial } = body.emit(b, steps)?;
    let mut function = b.finish();
    let is_of_elements = matches!(body.shape.kind, NestKind::Rows | NestKind::Pairs) && domain.reduced == 1;
    if is_of_elements && !reads.random.is_empty() && draws_before(&function) {
        body.draws_before = true;
        let (b, steps) = begin();
        let emitted = body.emit(b, steps)?;
        (function, scratch) = (emitted.b.finish(), emitted.scratch);
    }
    let combining = if body.shape.pieces > 1 {
        let (b, steps) = begin();
        let split = body.shape.longest_kept(&body.sizes);
        Some((body.emit_combining(b, steps, split)?.b.finish(), split.map_or(1, |axis| body.sizes[axis])))
    } else {
        None
    };
    let cost = function.insts.iter().filter(|inst| inst.ty.is_vector).count();
    // All elements of a short row have instructions of their own, and so have those of pairs.
    let cost = match body.shape.kind {
        NestKind::Short => cost.div_ceil(body.sizes[body.shape.row]),
        NestKind::Pairs => cost.div_ceil(2),
        NestKind::Rows | NestKind::Columns => cost,
    };
    let (steps, least_steps) = (body.shape.steps(&body.sizes), body.shape.least_steps());
    let (results, elements) = (results.clone(), domain.elements());
    let unaliasable_results =
        (0..results.len()).filter(|&at| passes.is_unaliasable(results[at].node as usize)).collect();
    let whole = body.whole.clone();
    let (inputs, mut unaliasable_inputs) = (reads.inputs, reads.unaliasable_inputs);
    // What is read in another order than results are written.
    unaliasable_inputs.extend((0..inputs.len()).filter(|&at| inputs[at].1 != whole));
    Some(Fused {
        function,
        inputs,
        unaliasable_inputs,
        unaliasable_results,
        results,
        scratch,
        partial,
        combining,
        steps,
        least_steps,
        elements,
        cost,
    })
}

/// What all parts of a nest have in common.
pub(super) struct NestContext<'a> {
    pub(super) graph: &'a Graph,
    pub(super) fusion: &'a FusionGroups,
    pub(super) results: &'a Values,
    /// How many inputs there are, and so which buffer is the first result's.
    pub(super) inputs: usize,
    pub(super) is_streaming: bool,
}

/// The loops over one domain, or over one box of it.
pub(super) struct Body<'a> {
    pub(super) context: &'a NestContext<'a>,
    pub(super) passes: &'a Passes,
    pub(super) reads: &'a Reads,
    pub(super) domain_box: Option<&'a DomainBox>,
    /// Where the elements of results are.
    pub(super) whole: StridedView,
    /// Where the results of reductions across rows are.
    pub(super) across: Option<StridedView>,
    pub(super) sizes: Sizes,
    pub(super) shape: NestShape,
    /// Whether words of random numbers are drawn before what is made of them.
    pub(super) draws_before: bool,
}

/// What loops were added to, and the bytes of scratch memory and of the results of pieces.
pub(super) struct Emitted {
    pub(super) b: Builder,
    pub(super) scratch: usize,
    partial: usize,
}

impl<'a> Body<'a> {
    pub(super) fn new(
        context: &'a NestContext<'a>,
        passes: &'a Passes,
        reads: &'a Reads,
        domain: &Domain,
        domain_box: Option<&'a DomainBox>,
    ) -> Option<Body<'a>> {
        let whole = match domain_box {
            Some(domain_box) => domain_box.whole(),
            None => domain.in_reduction_order(StridedView::strided(0, &[domain.elements()], &[1]))?,
        };
        let is_of_elements =
            |result: &Value| passes.nodes.contains(&(result.node as usize, NodeRole::Elements));
        // A box may be a part of a join, which is no node of its own.
        let writes = domain_box.is_some() || context.results.iter().any(is_of_elements);
        let across = across(context.graph, passes, domain)?;
        let written = [writes.then_some(&whole), across.as_ref()];
        let mut sizes = reads.sizes(domain, domain_box, written, None)?;
        if domain_box.is_some()
            && is_narrow(context.graph, reads, context.results, &whole, &sizes)
            && !can_be_gathered(context.graph, reads, context.results, &sizes)
        {
            // Rows of one element each have scalars.
            sizes.push(1);
        }
        let block = domain_box.and_then(|domain_box| domain_box.block_axis(&sizes));
        if block.is_none() && domain_box.is_some_and(|domain_box| domain_box.block.is_some()) {
            return None;
        }
        let is_one_pass =
            passes.nodes.iter().all(|&(node, role)| role == NodeRole::Rows || passes.of(node) == 0);
        let has_records = has_records(context.graph, reads, context.results);
        let mut shape = NestShape::new(&sizes, domain, block, has_records, is_one_pass)?;
        let has_pairs = |&(node, _): &(usize, NodeRole)| has_pairs(&context.graph.nodes()[node]);
        if domain_box.is_none()
            && passes.nodes.iter().any(has_pairs)
            && let Some(paired) = paired_sizes(reads, domain, written, &sizes)
        {
            shape = NestShape::of_pairs(&paired);
            sizes = paired;
        }
        if across.as_ref().is_some_and(|across| !shape.has_across(&sizes, across)) {
            return None;
        }
        Some(Body { context, passes, reads, domain_box, whole, across, sizes, shape, draws_before: false })
    }

    /// What is built around a row at these positions, of which a part may begin within the row.
    pub(super) fn builder(
        &self,
        b: Builder,
        positions: SmallVec<[Position; 4]>,
        row_start: Option<Val>,
    ) -> NestBuilder<'_> {
        let Body { context, passes, reads, domain_box, whole, across, sizes, shape, .. } = self;
        NestBuilder {
            graph: context.graph,
            fusion: context.fusion,
            passes,
            roles: passes.nodes.iter().copied().collect(),
            e: Elements::new(b),
            reads,
            domain_box: *domain_box,
            results: context.results,
            inputs: context.inputs,
            sizes,
            shape,
            positions,
            row_start,
            whole,
            across: across.as_ref(),
            element: None,
            is_second_half: false,
            is_unpaired: false,
            draws_before: self.draws_before,
            drawn: FxHashMap::default(),
            columns_row: Position::default(),
            stages: FxHashMap::default(),
            scratch: ScratchLayout::default(),
            partial: ScratchLayout::default(),
            offsets: FxHashMap::default(),
            is_streaming: context.is_streaming,
            pass: 0,
            values: FxHashMap::default(),
            loaded: FxHashMap::default(),
            gathered_columns: FxHashMap::default(),
            result_columns: FxHashMap::default(),
            loaded_of_rows: Vec::new(),
            groups: FxHashMap::default(),
        }
    }

    /// Adds the loops over so many steps from one on.
    pub(super) fn emit(&self, b: Builder, (begin, count): (Val, Val)) -> Option<Emitted> {
        let (mut builder, loops) = self.begin(b, (begin, count), self.shape.split);
        let part = match self.shape.split {
            ThreadSplit::Lanes | ThreadSplit::Pieces => Some((begin, count)),
            ThreadSplit::Axis(_) | ThreadSplit::None => None,
        };
        match self.shape.kind {
            NestKind::Columns => builder.columns(part)?,
            NestKind::Short => builder.short_rows(part)?,
            NestKind::Pairs => builder.pairs(part)?,
            NestKind::Rows if self.shape.pieces > 1 => builder.pieces(part)?,
            NestKind::Rows => builder.rows(part)?,
        }
        Some(builder.end(loops))
    }

    /// Adds the loops that join the results of pieces; an axis is the one that threads divide.
    fn emit_combining(&self, b: Builder, steps: (Val, Val), split: Option<usize>) -> Option<Emitted> {
        let (mut builder, loops) = self.begin(b, steps, split.map_or(ThreadSplit::None, ThreadSplit::Axis));
        match self.shape.kind {
            NestKind::Columns => builder.combine_columns()?,
            NestKind::Rows | NestKind::Short | NestKind::Pairs => builder.combine_rows()?,
        }
        Some(builder.end(loops))
    }

    /// Begins the loops over the axes around the row; gives how many they are.
    fn begin(
        &self,
        mut b: Builder,
        (begin, count): (Val, Val),
        split: ThreadSplit,
    ) -> (NestBuilder<'_>, usize) {
        let Body { sizes, shape, .. } = self;
        let mut positions: SmallVec<[Position; 4]> = SmallVec::new();
        positions.resize(sizes.len(), Position::default());
        let mut loops = 0;
        // Tiles of blocks are around the blocks.
        let around: SmallVec<[usize; 4]> = if shape.is_block {
            let inner = shape.row.saturating_sub(1)..shape.row;
            (0..inner.start).chain(shape.row + 1..sizes.len()).chain(inner).collect()
        } else {
            (0..sizes.len()).collect()
        };
        for axis in around {
            if shape.reduced.contains(&axis) || axis == shape.lanes || axis == shape.row {
                continue;
            }
            loops += 1;
            let is_split = split == ThreadSplit::Axis(axis);
            let trips = if is_split { count } else { b.index(sizes[axis] as i64) };
            let (counter, _) = b.begin_loop(Some(trips), &[]);
            positions[axis] = Position::at(if is_split { b.add(begin, counter) } else { counter });
        }
        let row_start = (split == ThreadSplit::Lanes).then_some(begin);
        (self.builder(b, positions, row_start), loops)
    }
}

/// A position along an axis: a number, and multiples of counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    pub(super) offset: i64,
    pub(super) terms: SmallVec<[(Val, i64); 3]>,
}

impl Position {
    pub(super) fn at(counter: Val) -> Position {
        Position { offset: 0, terms: SmallVec::from_slice(&[(counter, 1)]) }
    }
}

/// Builds the function of a nest.
pub(super) struct NestBuilder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) fusion: &'a FusionGroups,
    pub(super) passes: &'a Passes,
    roles: FxHashMap<usize, NodeRole>,
    pub(super) e: Elements,
    pub(super) reads: &'a Reads,
    /// The box of the domain that is done, if it is not the whole.
    pub(super) domain_box: Option<&'a DomainBox>,
    pub(super) results: &'a Values,
    pub(super) inputs: usize,
    pub(super) sizes: &'a Sizes,
    pub(super) shape: &'a NestShape,
    /// The positions along the axes around the row.
    pub(super) positions: SmallVec<[Position; 4]>,
    /// Where the part of the row begins that is done.
    pub(super) row_start: Option<Val>,
    /// Where the elements of results are.
    pub(super) whole: &'a StridedView,
    /// Where the results of reductions across rows are.
    pub(super) across: Option<&'a StridedView>,
    /// The element of the group where the part of a row begins that is done, if the row is no group.
    pub(super) element: Option<Val>,
    /// Whether it is the second half whose element is done, and whether nothing is beside it.
    pub(super) is_second_half: bool,
    pub(super) is_unpaired: bool,
    /// Whether words are drawn before what is made of them, and where those of each node and half are.
    pub(super) draws_before: bool,
    pub(super) drawn: FxHashMap<(usize, bool), usize>,
    /// The row of columns that is done.
    pub(super) columns_row: Position,
    /// Where the elements of a tile are kept until they are reduced, by node and part.
    pub(super) stages: FxHashMap<(usize, usize), usize>,
    pub(super) scratch: ScratchLayout,
    pub(super) partial: ScratchLayout,
    /// The offsets of values in the scratch memory: those of elements for later passes, and those of columns.
    pub(super) offsets: FxHashMap<usize, usize>,
    pub(super) is_streaming: bool,
    pub(super) pass: usize,
    /// The elements of this pass, by node and by input.
    pub(super) values: FxHashMap<usize, Element>,
    pub(super) loaded: FxHashMap<usize, Element>,
    /// Where inputs and results of a narrow column are in the scratch memory.
    pub(super) gathered_columns: FxHashMap<usize, usize>,
    pub(super) result_columns: FxHashMap<usize, usize>,
    /// Inputs that were loaded now for all elements of short rows.
    pub(super) loaded_of_rows: Vec<(usize, Vec<Element>)>,
    /// What each group has.
    pub(super) groups: FxHashMap<usize, Element>,
}

impl NestBuilder<'_> {
    /// Ends so many loops.
    fn end(self, loops: usize) -> Emitted {
        let (mut b, scratch, partial) = (self.e.b, self.scratch.bytes, self.partial.bytes);
        (0..loops).for_each(|_| b.end_loop(&[]));
        Emitted { b, scratch, partial }
    }

    pub(super) fn role(&self, node: usize) -> NodeRole {
        self.roles[&node]
    }

    /// The node whose elements a reduction reduces, seen in some way.
    pub(super) fn base_of(&self, reduction: usize) -> usize {
        self.fusion.base(self.graph.nodes()[reduction].inputs[0]).node as usize
    }

    /// Whether the nest computes a node.
    pub(super) fn is_own(&self, node: usize) -> bool {
        self.roles.contains_key(&node)
    }

    /// How many elements each group has.
    pub(super) fn reduced_size(&self) -> usize {
        self.sizes[self.shape.reduced.clone()].iter().product()
    }

    /// The nodes of a pass that are of a kind.
    pub(super) fn nodes_of(&self, pass: usize, is_of: impl Fn(NodeRole) -> bool) -> Vec<usize> {
        let nodes = self.passes.nodes.iter();
        let nodes = nodes.filter(|(node, role)| is_of(*role) && self.passes.of(*node) == pass);
        nodes.map(|(node, _)| *node).collect()
    }

    /// The element-wise nodes of a pass that are stored.
    pub(super) fn stored_of(&self, pass: usize) -> Vec<usize> {
        let is_stored = |node: &usize| self.result_of(*node).is_some() || self.offsets.contains_key(node);
        let nodes = self.nodes_of(pass, |role| role == NodeRole::Elements).into_iter();
        let concats = self.domain_box.iter().flat_map(|domain_box| domain_box.sources.keys().copied());
        nodes.chain(concats).filter(is_stored).collect()
    }

    /// Reserves scratch memory for the values that later passes read again: `elements` of each.
    pub(super) fn reserve_materialized(&mut self, elements: usize) -> Option<()> {
        for &materialized in &self.passes.materialized {
            let width = self.graph.nodes()[materialized].outputs[0].dtype.storage_bytes();
            let offset = self.scratch.take(elements * width);
            self.offsets.insert(materialized, offset);
        }
        Some(())
    }

    /// An element-wise node's elements in this pass.
    pub(super) fn element(&mut self, position: usize) -> Option<Element> {
        if let Some(&known) = self.values.get(&position) {
            return Some(known);
        }
        let dtype = self.graph.nodes()[position].outputs[0].dtype;
        let element = match self.offsets.get(&position) {
            Some(&offset) if self.passes.of(position) < self.pass => {
                let access = self.scratch_access(offset, dtype.storage_bytes());
                self.e.load(dtype, access)
            }
            Some(_) | None if self.roles.contains_key(&position) => {
                self.node(position, NodeRole::Elements)?
            }
            Some(_) | None => self.concat(position)?,
        };
        self.values.insert(position, element);
        Some(element)
    }

    /// What each group has of a node.
    fn group(&mut self, position: usize) -> Option<Element> {
        if let Some(&known) = self.groups.get(&position) {
            return Some(known);
        }
        // Columns have it in memory.
        let dtype = self.graph.nodes()[position].outputs[0].dtype;
        let access = self.column_access(self.offsets[&position], dtype.storage_bytes());
        let element = self.e.load(dtype, access);
        self.groups.insert(position, element);
        Some(element)
    }

    /// The op of a node.
    pub(super) fn node(&mut self, position: usize, role: NodeRole) -> Option<Element> {
        let graph = self.graph;
        let node = &graph.nodes()[position];
        let dtype = node.outputs[0].dtype;
        let mut x: SmallVec<[Element; 3]> = SmallVec::new();
        let op = elementwise(&node.op).expect("nodes of nests are element-wise");
        if let Elementwise::Random(random) = op {
            return self.random(position, random, role);
        }
        for &input in &node.inputs {
            x.push(self.operand(position, input, role)?);
        }
        Some(match op {
            Elementwise::Unary(op) => self.e.unary(op, x[0], dtype),
            Elementwise::Binary(op) => self.e.binary(op, x[0], x[1], dtype),
            Elementwise::AsType => self.e.convert(x[0], dtype),
            Elementwise::Select => self.e.select(x[0], x[1], x[2], dtype),
            Elementwise::Clip => self.e.clip(x[0], x[1], x[2], dtype),
            Elementwise::Log(base) => self.e.log_to(base, x[0], dtype),
            Elementwise::Random(_) => unreachable!("done above"),
        })
    }

    /// An operand of a node as elements of the domain.
    pub(super) fn operand(&mut self, position: usize, value: Value, role: NodeRole) -> Option<Element> {
        let domain_box = self.domain_box.filter(|domain_box| domain_box.nodes.contains(&position));
        if let Some(concat) =
            domain_box.and_then(|domain_box| domain_box.concat(self.graph, self.fusion, value))
        {
            return self.element(concat);
        }
        let value_view = self.fusion.view(self.graph, value);
        match domain_box {
            Some(domain_box) => {
                self.read_view(&domain_box.of(&value_view), &domain_box.sizes, role, Some(domain_box))
            }
            None => self.read_view(&value_view, domain_of(self.graph, position, role), role, None),
        }
    }

    /// What a concatenation or a padding is in the box.
    fn concat(&mut self, concat: usize) -> Option<Element> {
        let domain_box = self.domain_box.expect("concatenations are of boxes");
        let value_view = domain_box.source(self.graph, self.fusion, concat);
        let x = self.read_view(&value_view, &domain_box.sizes, NodeRole::Elements, None)?;
        Some(self.e.convert(x, self.graph.nodes()[concat].outputs[0].dtype))
    }

    /// A value as elements of a domain of `sizes`.
    fn read_view(
        &mut self,
        value_view: &ValueView,
        sizes: &[usize],
        role: NodeRole,
        domain_box: Option<&DomainBox>,
    ) -> Option<Element> {
        let base = value_view.base.node as usize;
        match self.roles.get(&base) {
            Some(NodeRole::Elements) => return self.element(base),
            Some(NodeRole::Rows | NodeRole::Reduction(_) | NodeRole::Across(_)) => return self.group(base),
            None => {}
        }
        let dtype = self.graph.ty(value_view.base).dtype;
        let is_per_group = role == NodeRole::Rows && self.reads.is_grouped;
        match generated(self.graph, self.fusion, base, domain_box) {
            Some(Generated::Constant(scalar)) => return Some(self.e.constant(scalar)),
            Some(Generated::Iota(view)) => {
                let view = if is_per_group { view } else { self.reads.domain.in_reduction_order(view)? };
                return Some(self.iota(&view, is_per_group, dtype));
            }
            None => {}
        }
        if let Some(element) = self.gathered(base, is_per_group) {
            return element;
        }
        let strided = value_view.strided_view(sizes);
        let strided = if is_per_group { strided } else { self.reads.domain.in_reduction_order(strided)? };
        let at = self.reads.known[&(value_view.base, strided, is_per_group)];
        Some(self.input(at, is_per_group, dtype))
    }

    /// An input as elements of the domain, or of groups.
    pub(super) fn input(&mut self, at: usize, is_per_group: bool, dtype: DType) -> Element {
        let view = &self.reads.inputs[at].1;
        if is_per_group {
            let access = self.group_access(at as u16, view, dtype.storage_bytes());
            return self.e.load(dtype, access);
        }
        if let Some(&element) = self.loaded.get(&at) {
            return element;
        }
        if let Some(element) = self.gathered_column(at, dtype) {
            return element;
        }
        let is_record =
            self.shape.kind == NestKind::Short && (!self.shape.is_block || self.has_strided_lanes(view));
        if is_record {
            let view = view.clone();
            let element = self.load_rows(at, &view, dtype);
            self.loaded.insert(at, element);
            return element;
        }
        let element = self.load_record(at, dtype);
        if self.shape.kind == NestKind::Pairs && strides_along(&self.reads.inputs[at].1, self.sizes)[0] == 0 {
            // Both halves have it.
            self.loaded_of_rows.push((at, vec![element; 2]));
        }
        element
    }

    /// Loads an element, and with it those that lie between its element and the next one's.
    fn load_record(&mut self, at: usize, dtype: DType) -> Element {
        let reads = self.reads;
        let record = reads.record_of(at, self.sizes);
        // All are of one value: schedules know the accesses of a record by their buffer.
        let buffer = record[0] as u16;
        for input in record {
            let access = self.access(buffer, &reads.inputs[input].1, dtype.storage_bytes());
            let element = self.e.load(dtype, access);
            self.loaded.insert(input, element);
        }
        self.loaded[&at]
    }
}
