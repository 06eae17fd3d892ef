//! Builds the function of a nest.

use defn_core::DType;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::ReduceOp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cut::Cut;
use super::domain::{Domain, Sizes};
use super::elements::{Element, Elements, computed};
use super::passes::Passes;
use super::reads::{Generated, Reads, domain_of, generated};
use super::shape::Shape;
use super::short::has_records;
use crate::compiler::cluster::{Clusters, Elementwise, elementwise};
use crate::compiler::ir::{Builder, Cmp, Conv, Elem, Function, Reduce, Val};
use crate::compiler::views::Seen;
use crate::kernels::StridedView;

/// Elements of a row from which on its length is an argument, so that rows of other lengths share the code.
pub(in super::super) const LONG_ROW: usize = 512;

/// What a node is in a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    /// An op on each element.
    Elements,
    /// An op on what each row has.
    Rows,
    /// A reduction of rows.
    Fold(ReduceOp),
}

/// A nest, with where its operands come from.
#[derive(Debug)]
pub(in super::super) struct Fused {
    pub(in super::super) function: Function,
    /// The values whose memory the first buffers are.
    pub(in super::super) inputs: Vec<(Value, StridedView)>,
    /// The inputs of gathers, in whose memory no result may lie.
    pub(in super::super) moved: SmallVec<[usize; 4]>,
    /// The results that may lie in no input's memory: inputs are read after they were written.
    pub(in super::super) early: SmallVec<[usize; 2]>,
    /// The values whose memory the next buffers are.
    pub(in super::super) results: Values,
    /// The bytes of the last buffer, which each thread has for itself; 0 if there is none.
    pub(in super::super) scratch: usize,
    /// How many steps the axis has that threads divide: the function's arguments are the first of them, and how many.
    pub(in super::super) steps: usize,
    /// The fewest steps that threads should take: where they divide rows, whole lines of memory.
    pub(in super::super) least_steps: usize,
    /// Elements of the domain.
    pub(in super::super) elements: usize,
    /// How many instructions an element takes.
    pub(in super::super) cost: usize,
}

/// The nest that computes some nodes, of which `results` are needed elsewhere, if the IR has all that it needs. It reads
/// at positions what the nodes `gathered` would give.
pub(in super::super) fn fuse(
    graph: &Graph,
    clusters: &Clusters,
    nodes: Vec<(usize, Part)>,
    domain: &Domain,
    results: &Values,
    gathered: &[usize],
    is_streaming: bool,
) -> Option<Fused> {
    // Accumulators have no complex numbers.
    let is_complex = |node: usize| graph.nodes()[node].outputs[0].dtype.is_complex();
    if nodes.iter().any(|&(node, part)| matches!(part, Part::Fold(_)) && is_complex(node)) {
        return None;
    }
    let passes = Passes::new(graph, clusters, nodes);
    let reads = Reads::new(graph, clusters, &passes, domain, gathered, None, Vec::new());
    let frame = Frame { graph, clusters, results, inputs: reads.inputs.len(), is_streaming };
    let mut b = Builder::new((frame.inputs + results.len()) as u16 + 1, 2, 0);
    let begin = b.param(0, Elem::Index);
    let count = b.param(1, Elem::Index);
    let body = Body::new(&frame, &passes, &reads, domain, None)?;
    let (b, scratch) = body.emit(b, (begin, count))?;
    let function = b.finish();
    let cost = function.insts.iter().filter(|inst| inst.ty.is_vector).count();
    // All elements of a short row have instructions of their own.
    let cost = if body.shape.is_short { cost.div_ceil(body.sizes[body.shape.row]) } else { cost };
    let (steps, least_steps) = (body.shape.steps(&body.sizes), body.shape.least_steps());
    let (inputs, results, elements) = (reads.inputs, results.clone(), domain.elements());
    let early = (0..results.len()).filter(|&at| passes.is_early(results[at].node as usize)).collect();
    let moved = reads.moved;
    Some(Fused { function, inputs, moved, early, results, scratch, steps, least_steps, elements, cost })
}

/// What all parts of a nest share.
pub(super) struct Frame<'a> {
    pub(super) graph: &'a Graph,
    pub(super) clusters: &'a Clusters,
    pub(super) results: &'a Values,
    /// How many inputs there are, and so which buffer is the first result's.
    pub(super) inputs: usize,
    pub(super) is_streaming: bool,
}

/// The loops over one domain, or over one box of it.
pub(super) struct Body<'a> {
    pub(super) frame: &'a Frame<'a>,
    pub(super) passes: &'a Passes,
    pub(super) reads: &'a Reads,
    pub(super) cut: Option<&'a Cut>,
    pub(super) sizes: Sizes,
    pub(super) shape: Shape,
}

impl<'a> Body<'a> {
    pub(super) fn new(
        frame: &'a Frame<'a>,
        passes: &'a Passes,
        reads: &'a Reads,
        domain: &Domain,
        cut: Option<&'a Cut>,
    ) -> Option<Body<'a>> {
        let sizes = reads.sizes(domain, cut)?;
        let block = cut.and_then(|cut| cut.block_axis(&sizes));
        if block.is_none() && cut.is_some_and(|cut| cut.block.is_some()) {
            return None;
        }
        let shape = Shape::new(&sizes, domain, block, has_records(frame.graph, reads, frame.results))?;
        Some(Body { frame, passes, reads, cut, sizes, shape })
    }

    /// What is built around a row at these positions, of which a part may begin within the row.
    pub(super) fn making(
        &self,
        b: Builder,
        positions: SmallVec<[Position; 4]>,
        row_start: Option<Val>,
    ) -> Making<'_> {
        let Body { frame, passes, reads, cut, sizes, shape } = self;
        Making {
            graph: frame.graph,
            clusters: frame.clusters,
            passes,
            parts: passes.nodes.iter().copied().collect(),
            e: Elements::new(b),
            reads,
            cut: *cut,
            results: frame.results,
            inputs: frame.inputs,
            sizes,
            shape,
            positions,
            row_start,
            tile: None,
            scratch: Scratch::default(),
            homes: FxHashMap::default(),
            is_streaming: frame.is_streaming,
            pass: 0,
            values: FxHashMap::default(),
            loaded: FxHashMap::default(),
            loaded_of_rows: Vec::new(),
            groups: FxHashMap::default(),
        }
    }

    /// Adds the loops over so many steps from one on; gives the bytes of scratch memory too.
    pub(super) fn emit(&self, mut b: Builder, (begin, count): (Val, Val)) -> Option<(Builder, usize)> {
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
            if Some(axis) == shape.reduced || axis == shape.lanes || axis == shape.row {
                continue;
            }
            loops += 1;
            let is_split = Some(axis) == shape.split;
            let trips = if is_split { count } else { b.index(sizes[axis] as i64) };
            let (counter, _) = b.begin_loop(Some(trips), &[]);
            positions[axis] = Position::at(if is_split { b.add(begin, counter) } else { counter });
        }
        let mut making = self.making(b, positions, shape.is_row_divided.then_some(begin));
        let parts = shape.is_row_divided.then_some((begin, count));
        if shape.reduced.is_some() {
            making.columns(parts)?
        } else if shape.is_short {
            making.short_rows(parts)?
        } else {
            making.rows(parts)?
        }
        let scratch = making.scratch.bytes;
        let mut b = making.e.b;
        (0..loops).for_each(|_| b.end_loop(&[]));
        Some((b, scratch))
    }
}

/// A position along an axis: a number, and multiples of counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    pub(super) offset: i64,
    pub(super) terms: SmallVec<[(Val, i64); 2]>,
}

impl Position {
    pub(super) fn at(counter: Val) -> Position {
        Position { offset: 0, terms: SmallVec::from_slice(&[(counter, 1)]) }
    }
}

/// The memory that a thread has for a row.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) bytes: usize,
}

impl Scratch {
    pub(super) fn take(&mut self, bytes: usize) -> usize {
        let at = self.bytes;
        self.bytes += bytes.next_multiple_of(64);
        at
    }
}

/// A function that is being built.
pub(super) struct Making<'a> {
    pub(super) graph: &'a Graph,
    pub(super) clusters: &'a Clusters,
    pub(super) passes: &'a Passes,
    parts: FxHashMap<usize, Part>,
    pub(super) e: Elements,
    pub(super) reads: &'a Reads,
    /// The box of the domain that is done, if it is not the whole.
    pub(super) cut: Option<&'a Cut>,
    pub(super) results: &'a Values,
    pub(super) inputs: usize,
    pub(super) sizes: &'a Sizes,
    pub(super) shape: &'a Shape,
    /// The positions along the axes around the row.
    pub(super) positions: SmallVec<[Position; 4]>,
    /// Where the part of the row begins that is done.
    pub(super) row_start: Option<Val>,
    /// The tile of the row that is done.
    pub(super) tile: Option<Tile>,
    pub(super) scratch: Scratch,
    /// Where values are kept in the scratch memory: those of elements for later passes, and those of columns.
    pub(super) homes: FxHashMap<usize, usize>,
    pub(super) is_streaming: bool,
    pub(super) pass: usize,
    /// The elements of this pass, by node and by input.
    pub(super) values: FxHashMap<usize, Element>,
    pub(super) loaded: FxHashMap<usize, Element>,
    /// Inputs that were loaded now for all elements of short rows.
    pub(super) loaded_of_rows: Vec<(usize, Vec<Element>)>,
    /// What each group has.
    pub(super) groups: FxHashMap<usize, Element>,
}

/// A tile of a row: by a counter, or by the elements before it.
#[derive(Clone, Copy)]
pub(super) enum Tile {
    Counted(Val),
    Last(usize),
}

impl Making<'_> {
    /// The nodes of a pass that are of a kind.
    pub(super) fn nodes_of(&self, pass: usize, is_of: impl Fn(Part) -> bool) -> Vec<usize> {
        let nodes = self.passes.nodes.iter();
        let nodes = nodes.filter(|(node, part)| is_of(*part) && self.passes.of(*node) == pass);
        nodes.map(|(node, _)| *node).collect()
    }

    /// The element-wise nodes of a pass that are stored.
    pub(super) fn stored_of(&self, pass: usize) -> Vec<usize> {
        let is_stored = |node: &usize| self.result_of(*node).is_some() || self.homes.contains_key(node);
        let nodes = self.nodes_of(pass, |part| part == Part::Elements).into_iter();
        let joins = self.cut.iter().flat_map(|cut| cut.sources.keys().copied());
        nodes.chain(joins).filter(is_stored).collect()
    }

    /// Keeps what later passes would have to compute again, in so much memory that each has `elements`.
    pub(super) fn keep(&mut self, elements: usize) -> Option<()> {
        for &kept in &self.passes.kept {
            let width = self.graph.nodes()[kept].outputs[0].dtype.storage_bytes();
            let home = self.scratch.take(elements * width);
            self.homes.insert(kept, home);
        }
        Some(())
    }

    /// Stores the elements of nodes.
    pub(super) fn store_elements(&mut self, nodes: &[usize]) -> Option<()> {
        let mut elements = Vec::new();
        for &node in nodes {
            elements.push((node, self.element(node)?));
        }
        for (node, element) in elements {
            let width = element.dtype.storage_bytes();
            if let Some(at) = self.result_of(node) {
                let mut access = self.access(self.result_buffer(at), &self.whole(), width);
                // Rows that begin within a line are not stored past the caches.
                let length = self.sizes[self.sizes.len() - 1];
                let is_aligned = match self.cut {
                    None => self.sizes.len() == 1 || (length * width).is_multiple_of(64),
                    Some(cut) => cut.is_aligned(width),
                };
                access.is_streaming = self.is_streaming && is_aligned;
                self.e.store(element, access);
            }
            if let Some(&home) = self.homes.get(&node) {
                let access = self.kept_access(home, width);
                self.e.store(element, access);
            }
        }
        Some(())
    }

    /// The view of a result of the domain.
    pub(super) fn whole(&self) -> StridedView {
        match self.cut {
            Some(cut) => cut.whole(),
            None => StridedView::strided(0, &[self.sizes.iter().product()], &[1]),
        }
    }

    /// Stores what each group has, if it is a result.
    pub(super) fn store_group(&mut self, position: usize) -> Option<()> {
        let Some(at) = self.result_of(position) else { return Some(()) };
        let element = self.groups[&position];
        let width = element.dtype.storage_bytes();
        let whole = StridedView::strided(0, &[self.group_sizes().iter().product()], &[1]);
        let access = self.group_access(self.result_buffer(at), &whole, width);
        self.e.store(element, access);
        Some(())
    }

    /// The axes of the groups.
    pub(super) fn group_sizes(&self) -> Sizes {
        let reduced = self.shape.reduced.unwrap_or(self.sizes.len() - 1);
        let axes = self.sizes.iter().enumerate().filter(|(axis, _)| *axis != reduced);
        axes.map(|(_, size)| *size).collect()
    }

    pub(super) fn result_of(&self, position: usize) -> Option<usize> {
        self.results.iter().position(|result| result.node as usize == position)
    }

    /// Notes the results of reductions.
    pub(super) fn finish_folds(&mut self, folds: &[usize], values: Vec<Val>) -> Option<()> {
        for (&fold, value) in folds.iter().zip(values) {
            let (dtype, to) = (self.accumulation(fold), self.graph.nodes()[fold].outputs[0].dtype);
            let value = if dtype.is_bool() {
                let zero = self.e.b.bits(Elem::I8, 0);
                self.e.b.compare(Cmp::Ne, value, zero)
            } else {
                value
            };
            let element = self.e.convert(Element::new(value, dtype), to);
            self.groups.insert(fold, element);
        }
        Some(())
    }

    pub(super) fn result_buffer(&self, result: usize) -> u16 {
        (self.inputs + result) as u16
    }

    pub(super) fn scratch_buffer(&self) -> u16 {
        (self.inputs + self.results.len()) as u16
    }

    /// What joins elements, and the type in which it does.
    pub(super) fn reduction(&self, fold: usize) -> Option<(Reduce, Elem)> {
        let Part::Fold(op) = self.parts[&fold] else { unreachable!("it is a reduction") };
        let dtype = self.accumulation(fold);
        let elem = if dtype.is_bool() { Elem::I8 } else { computed(dtype) };
        let is_unsigned = dtype.is_bool() || dtype.kind() == defn_core::Kind::Unsigned;
        let reduce = match op {
            ReduceOp::Sum => Reduce::Add,
            ReduceOp::Product => Reduce::Mul,
            ReduceOp::ReduceMax if is_unsigned => Reduce::MaxU,
            ReduceOp::ReduceMin if is_unsigned => Reduce::MinU,
            ReduceOp::ReduceMax => Reduce::Max,
            ReduceOp::ReduceMin => Reduce::Min,
            ReduceOp::All => Reduce::And,
            ReduceOp::Any => Reduce::Or,
        };
        Some((reduce, elem))
    }

    /// The dtype in which a reduction accumulates.
    fn accumulation(&self, fold: usize) -> DType {
        let to = self.graph.nodes()[fold].outputs[0].dtype;
        if to.is_float() && to.bits() < 32 { DType::F32 } else { to }
    }

    /// What a reduction adds.
    pub(super) fn folded_value(&mut self, fold: usize) -> Option<Val> {
        let (input, part) = (self.graph.nodes()[fold].inputs[0], self.parts[&fold]);
        let x = self.operand(fold, input, part)?;
        let Part::Fold(op) = part else { unreachable!("it is a reduction") };
        let x = match op {
            ReduceOp::All | ReduceOp::Any => self.e.truth(x),
            ReduceOp::Sum | ReduceOp::Product | ReduceOp::ReduceMax | ReduceOp::ReduceMin => {
                let dtype = self.accumulation(fold);
                self.e.convert(x, dtype)
            }
        };
        let is_bit = self.e.b.ty(x.value).elem == Elem::Bit;
        Some(if is_bit { self.e.b.convert(Conv::OfBit, Elem::I8, x.value) } else { x.value })
    }

    /// An element-wise node's elements in this pass.
    pub(super) fn element(&mut self, position: usize) -> Option<Element> {
        if let Some(&known) = self.values.get(&position) {
            return Some(known);
        }
        let dtype = self.graph.nodes()[position].outputs[0].dtype;
        let element = match self.homes.get(&position) {
            Some(&home) if self.passes.of(position) < self.pass => {
                let access = self.kept_access(home, dtype.storage_bytes());
                self.e.load(dtype, access)
            }
            Some(_) | None if self.parts.contains_key(&position) => self.node(position, Part::Elements)?,
            Some(_) | None => self.join(position)?,
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
        let access = self.column_access(self.homes[&position], dtype.storage_bytes());
        let element = self.e.load(dtype, access);
        self.groups.insert(position, element);
        Some(element)
    }

    /// The op of a node.
    pub(super) fn node(&mut self, position: usize, part: Part) -> Option<Element> {
        let graph = self.graph;
        let node = &graph.nodes()[position];
        let dtype = node.outputs[0].dtype;
        let mut x: SmallVec<[Element; 3]> = SmallVec::new();
        for &input in &node.inputs {
            x.push(self.operand(position, input, part)?);
        }
        Some(match elementwise(&node.op).expect("nodes of nests are element-wise") {
            Elementwise::Unary(op) => self.e.unary(op, x[0], dtype),
            Elementwise::Binary(op) => self.e.binary(op, x[0], x[1], dtype),
            Elementwise::AsType => self.e.convert(x[0], dtype),
            Elementwise::Select => self.e.select(x[0], x[1], x[2], dtype),
            Elementwise::Clip => self.e.clip(x[0], x[1], x[2], dtype),
            Elementwise::Log(base) => self.e.log_to(base, x[0], dtype),
        })
    }

    /// An operand of a node as elements of the domain.
    fn operand(&mut self, position: usize, value: Value, part: Part) -> Option<Element> {
        let cut = self.cut.filter(|cut| cut.nodes.contains(&position));
        if let Some(join) = cut.and_then(|cut| cut.join(self.graph, self.clusters, value)) {
            return self.element(join);
        }
        let seen = self.clusters.seen(self.graph, value);
        match cut {
            Some(cut) => self.seen(&cut.of(&seen), &cut.sizes, part, Some(cut)),
            None => self.seen(&seen, domain_of(self.graph, position, part), part, None),
        }
    }

    /// What a concatenation or a padding is in the box.
    fn join(&mut self, join: usize) -> Option<Element> {
        let cut = self.cut.expect("joins are of boxes");
        let seen = cut.source(self.graph, self.clusters, join);
        let x = self.seen(&seen, &cut.sizes, Part::Elements, None)?;
        Some(self.e.convert(x, self.graph.nodes()[join].outputs[0].dtype))
    }

    /// A value as elements of a domain of `sizes`.
    fn seen(&mut self, seen: &Seen, sizes: &[usize], part: Part, cut: Option<&Cut>) -> Option<Element> {
        let base = seen.base.node as usize;
        match self.parts.get(&base) {
            Some(Part::Elements) => return self.element(base),
            Some(Part::Rows | Part::Fold(_)) => return self.group(base),
            None => {}
        }
        let dtype = self.graph.ty(seen.base).dtype;
        let is_of_groups = part == Part::Rows && self.reads.is_grouped;
        match generated(self.graph, self.clusters, base, cut) {
            Some(Generated::Constant(scalar)) => return Some(self.e.constant(scalar)),
            Some(Generated::Counted(view)) => return Some(self.counted(&view, is_of_groups, dtype)),
            None => {}
        }
        if let Some(element) = self.gathered(base, is_of_groups) {
            return element;
        }
        let at = self.reads.known[&(seen.base, seen.walk(sizes), is_of_groups)];
        let view = &self.reads.inputs[at].1;
        if is_of_groups {
            let access = self.group_access(at as u16, view, dtype.storage_bytes());
            return Some(self.e.load(dtype, access));
        }
        if let Some(&element) = self.loaded.get(&at) {
            return Some(element);
        }
        let is_record = self.shape.is_short && (!self.shape.is_block || self.has_strided_lanes(view));
        let element = if is_record {
            let view = view.clone();
            self.load_rows(at, &view, dtype)
        } else {
            return Some(self.load_record(at, dtype));
        };
        self.loaded.insert(at, element);
        Some(element)
    }

    /// Loads an element, and with it those that lie between its element and the next one's.
    fn load_record(&mut self, at: usize, dtype: DType) -> Element {
        let reads = self.reads;
        for input in reads.record_of(at, self.sizes) {
            let access = self.access(input as u16, &reads.inputs[input].1, dtype.storage_bytes());
            let element = self.e.load(dtype, access);
            self.loaded.insert(input, element);
        }
        self.loaded[&at]
    }

    /// The positions that a view has, as elements of a dtype.
    fn counted(&mut self, view: &StridedView, is_of_groups: bool, dtype: DType) -> Element {
        let access = if is_of_groups { self.group_access(0, view, 1) } else { self.access(0, view, 1) };
        let most: usize = view.dims().iter().map(|&(size, _)| size).product();
        let elem = if most <= i32::MAX as usize { Elem::I32 } else { Elem::I64 };
        let mut first = self.e.b.index(access.offset);
        for (counter, by) in access.terms {
            let by = self.e.b.index(by);
            let passed = self.e.b.mul(counter, by);
            first = self.e.b.add(first, passed);
        }
        let mut number = self.e.b.convert(Conv::OfIndex, elem, first);
        if access.lane != 0 {
            let (lane, by) = (self.e.b.lane(elem), self.e.b.bits(elem, access.lane as u64));
            let along = self.e.b.mul(lane, by);
            number = self.e.b.add(number, along);
        }
        self.e.counted(number, dtype)
    }
}
