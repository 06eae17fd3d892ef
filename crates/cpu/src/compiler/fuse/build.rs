//! Builds the function of a nest.

use defn_core::DType;
use defn_core::graph::{Graph, Value, Values};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::domain::{Domain, Sizes};
use super::elements::{Element, Elements};
use super::joins::Reduction;
use super::passes::Passes;
use super::reads::{Generated, Reads, generated};
use super::shape::{COLUMNS_PART, Kind, SHORT_ROWS_PART, Shape, Split};
use super::short::has_records;
use crate::compiler::cluster::{Clusters, Elementwise, elementwise};
use crate::compiler::ir::{Builder, Conv, Elem, Function, Val};
use crate::kernels::StridedView;

/// The least elements of a chunk that begins within a row: whole lines of every type.
const CHUNK_LINES: usize = 1 << 12;

/// What a node is in a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Part {
    /// An op on each element.
    Elements,
    /// An op on what each row has.
    Rows,
    /// A reduction of rows.
    Fold(Reduction),
}

/// A nest, with where its operands come from.
#[derive(Debug)]
pub(in super::super) struct Fused {
    pub(in super::super) function: Function,
    /// The values whose memory the first buffers are.
    pub(in super::super) inputs: Vec<(Value, StridedView)>,
    /// The inputs of gathers, in whose memory no result may lie.
    pub(in super::super) moved: SmallVec<[usize; 4]>,
    /// The values whose memory the next buffers are.
    pub(in super::super) results: Values,
    /// The bytes of the buffer behind them, which each thread has for itself; 0 if there is none.
    pub(in super::super) scratch: usize,
    /// The bytes of the last buffer, which has the results of pieces; 0 if there is no such buffer.
    pub(in super::super) partial: usize,
    /// What joins the results of pieces after that, with the same arguments, and how many steps it has.
    pub(in super::super) joining: Option<(Function, usize)>,
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
    let passes = Passes::new(graph, clusters, nodes);
    let reads = Reads::new(graph, clusters, &passes, domain, gathered)?;
    let sizes = reads.sizes(domain)?;
    let is_one_pass = passes.nodes.iter().all(|&(node, part)| part == Part::Rows || passes.of(node) == 0);
    let shape = Shape::new(&sizes, domain, has_records(graph, &reads, results), is_one_pass)?;
    let whole = domain.turn(StridedView::strided(0, &[domain.elements()], &[1]))?;
    let elements = domain.elements();
    let nest =
        Nest { graph, clusters, passes: &passes, reads: &reads, results, sizes: &sizes, shape: &shape };
    let (mut making, loops, part) = nest.begin(&whole, is_streaming, shape.split);
    match shape.kind {
        Kind::Columns => making.columns(part)?,
        Kind::Short => making.short_rows(part)?,
        Kind::Rows if shape.pieces > 1 => making.pieces(part)?,
        Kind::Rows => making.rows(part)?,
    }
    let (scratch, partial) = (making.scratch.bytes, making.partial.bytes);
    let function = making.finish(loops);
    let joining = if shape.pieces > 1 {
        let split = shape.longest_kept(&sizes);
        let (mut making, loops, _) = nest.begin(&whole, false, split.map_or(Split::None, Split::Axis));
        match shape.kind {
            Kind::Columns => making.join_columns()?,
            Kind::Rows | Kind::Short => making.join_rows()?,
        }
        Some((making.finish(loops), split.map_or(1, |axis| sizes[axis])))
    } else {
        None
    };
    let steps = match shape.split {
        Split::Axis(axis) => sizes[axis],
        Split::Lanes => sizes[shape.lanes],
        Split::Pieces => shape.pieces,
        Split::None => 1,
    };
    let least_steps = match (shape.split, shape.kind) {
        (Split::Lanes, Kind::Columns) => COLUMNS_PART,
        (Split::Lanes, Kind::Short) => SHORT_ROWS_PART,
        (Split::Lanes, Kind::Rows) => CHUNK_LINES,
        (Split::Axis(_) | Split::Pieces | Split::None, _) => 1,
    };
    let cost = function.insts.iter().filter(|inst| inst.ty.is_vector).count();
    // All elements of a short row have instructions of their own.
    let cost = if shape.kind == Kind::Short { cost.div_ceil(sizes[sizes.len() - 1]) } else { cost };
    let (inputs, moved, results) = (reads.inputs, reads.moved, results.clone());
    Some(Fused {
        function,
        inputs,
        moved,
        results,
        scratch,
        partial,
        joining,
        steps,
        least_steps,
        elements,
        cost,
    })
}

/// What the functions of a nest are built of.
struct Nest<'a> {
    graph: &'a Graph,
    clusters: &'a Clusters,
    passes: &'a Passes,
    reads: &'a Reads,
    results: &'a Values,
    sizes: &'a Sizes,
    shape: &'a Shape,
}

/// Where a thread's part begins, and how many steps it has.
type Begun = Option<(Val, Val)>;

impl<'a> Nest<'a> {
    /// Begins a function, with loops over the axes around the row; gives how many they are, and the part of the row or
    /// of the pieces, if threads divide them.
    fn begin(&self, whole: &'a StridedView, is_streaming: bool, split: Split) -> (Making<'a>, usize, Begun) {
        let Nest { graph, clusters, passes, reads, results, sizes, shape } = *self;
        let own = if shape.pieces > 1 { 2 } else { 1 };
        let mut b = Builder::new((reads.inputs.len() + results.len()) as u16 + own, 2, 0);
        let begin = b.param(0, Elem::Index);
        let count = b.param(1, Elem::Index);
        let mut positions: SmallVec<[Position; 4]> = SmallVec::new();
        let mut loops = 0;
        for (axis, &size) in sizes.iter().enumerate() {
            if shape.reduced.contains(&axis) || axis == shape.lanes || axis == sizes.len() - 1 {
                positions.push(Position::default());
                continue;
            }
            loops += 1;
            let is_split = split == Split::Axis(axis);
            let trips = if is_split { count } else { b.index(size as i64) };
            let (counter, _) = b.begin_loop(Some(trips), &[]);
            positions.push(Position::at(if is_split { b.add(begin, counter) } else { counter }));
        }
        let part = match split {
            Split::Lanes | Split::Pieces => Some((begin, count)),
            Split::Axis(_) | Split::None => None,
        };
        let making = Making {
            graph,
            clusters,
            passes,
            parts: passes.nodes.iter().copied().collect(),
            e: Elements::new(b),
            reads,
            results,
            sizes,
            shape,
            whole,
            positions,
            row_start: if split == Split::Lanes { Some(begin) } else { None },
            element: None,
            row: Position::default(),
            stages: FxHashMap::default(),
            scratch: Scratch::default(),
            partial: Scratch::default(),
            homes: FxHashMap::default(),
            is_streaming,
            pass: 0,
            values: FxHashMap::default(),
            loaded: FxHashMap::default(),
            loaded_of_rows: Vec::new(),
            groups: FxHashMap::default(),
        };
        (making, loops, part)
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
    bytes: usize,
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
    clusters: &'a Clusters,
    pub(super) passes: &'a Passes,
    parts: FxHashMap<usize, Part>,
    pub(super) e: Elements,
    pub(super) reads: &'a Reads,
    results: &'a Values,
    pub(super) sizes: &'a Sizes,
    pub(super) shape: &'a Shape,
    /// Where the elements of results are.
    pub(super) whole: &'a StridedView,
    /// The positions along the axes around the row.
    pub(super) positions: SmallVec<[Position; 4]>,
    /// Where the part of the row begins that is done.
    pub(super) row_start: Option<Val>,
    /// The element of the group where the part of a row begins that is done, if the row is no group.
    pub(super) element: Option<Val>,
    /// The row of columns that is done.
    pub(super) row: Position,
    /// Where the elements of a tile are kept until they are reduced, by node and part.
    pub(super) stages: FxHashMap<(usize, usize), usize>,
    pub(super) scratch: Scratch,
    pub(super) partial: Scratch,
    /// Where values are kept in the scratch memory: those of elements for later passes, and those of columns.
    pub(super) homes: FxHashMap<usize, usize>,
    is_streaming: bool,
    pub(super) pass: usize,
    /// The elements of this pass, by node and by input.
    pub(super) values: FxHashMap<usize, Element>,
    pub(super) loaded: FxHashMap<usize, Element>,
    /// Inputs that were loaded now for all elements of short rows.
    pub(super) loaded_of_rows: Vec<(usize, Vec<Element>)>,
    /// What each group has.
    pub(super) groups: FxHashMap<usize, Element>,
}

impl Making<'_> {
    /// The function, of which so many loops are open.
    fn finish(self, loops: usize) -> Function {
        let mut b = self.e.b;
        (0..loops).for_each(|_| b.end_loop(&[]));
        b.finish()
    }

    pub(super) fn part(&self, node: usize) -> Part {
        self.parts[&node]
    }

    /// The node whose elements a reduction reduces, seen in some way.
    pub(super) fn base_of(&self, fold: usize) -> usize {
        self.clusters.base(self.graph.nodes()[fold].inputs[0]).node as usize
    }

    /// Whether the nest computes a node.
    pub(super) fn is_own(&self, node: usize) -> bool {
        self.parts.contains_key(&node)
    }

    /// How many elements each group has.
    pub(super) fn reduced_size(&self) -> usize {
        self.sizes[self.shape.reduced.clone()].iter().product()
    }

    /// The nodes of a pass that are of a kind.
    pub(super) fn nodes_of(&self, pass: usize, is_of: impl Fn(Part) -> bool) -> Vec<usize> {
        let nodes = self.passes.nodes.iter();
        let nodes = nodes.filter(|(node, part)| is_of(*part) && self.passes.of(*node) == pass);
        nodes.map(|(node, _)| *node).collect()
    }

    /// The element-wise nodes of a pass that are stored.
    pub(super) fn stored_of(&self, pass: usize) -> Vec<usize> {
        let is_stored = |node: &usize| self.result_of(*node).is_some() || self.homes.contains_key(node);
        self.nodes_of(pass, |part| part == Part::Elements).into_iter().filter(is_stored).collect()
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
                let mut access = self.access(self.result_buffer(at), self.whole, width);
                // Rows that begin within a line are not stored past the caches, nor parts of rows.
                let length = self.sizes[self.sizes.len() - 1];
                let is_aligned = self.sizes.len() == 1 || (length * width).is_multiple_of(64);
                let is_aligned = is_aligned && self.element.is_none();
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

    pub(super) fn result_of(&self, position: usize) -> Option<usize> {
        self.results.iter().position(|result| result.node as usize == position)
    }

    pub(super) fn result_buffer(&self, result: usize) -> u16 {
        (self.reads.inputs.len() + result) as u16
    }

    pub(super) fn scratch_buffer(&self) -> u16 {
        (self.reads.inputs.len() + self.results.len()) as u16
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
            Some(_) | None => self.node(position, Part::Elements)?,
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
        let sizes = node.outputs[0].shape.sizes();
        let mut x: SmallVec<[Element; 3]> = SmallVec::new();
        for &input in &node.inputs {
            x.push(self.operand(input, sizes, part)?);
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

    /// A value as elements of a domain of `sizes`.
    pub(super) fn operand(&mut self, value: Value, sizes: &[usize], part: Part) -> Option<Element> {
        let seen = self.clusters.seen(self.graph, value);
        let base = seen.base.node as usize;
        match self.parts.get(&base) {
            Some(Part::Elements) => return self.element(base),
            Some(Part::Rows | Part::Fold(_)) => return self.group(base),
            None => {}
        }
        let dtype = self.graph.ty(seen.base).dtype;
        let is_of_groups = part == Part::Rows && self.reads.is_grouped;
        match generated(self.graph, self.clusters, base) {
            Some(Generated::Constant(scalar)) => return Some(self.e.constant(scalar)),
            Some(Generated::Counted(_)) => {
                let view = self.reads.counted[&(base, is_of_groups)].clone();
                return Some(self.counted(&view, is_of_groups, dtype));
            }
            None => {}
        }
        if let Some(element) = self.gathered(base, is_of_groups) {
            return element;
        }
        let walk = seen.walk(sizes);
        let walk = if is_of_groups { walk } else { self.reads.domain.turn(walk)? };
        let at = self.reads.known[&(seen.base, walk, is_of_groups)];
        let view = &self.reads.inputs[at].1;
        if is_of_groups {
            let access = self.group_access(at as u16, view, dtype.storage_bytes());
            return Some(self.e.load(dtype, access));
        }
        if let Some(&element) = self.loaded.get(&at) {
            return Some(element);
        }
        let element = if self.shape.kind == Kind::Short {
            let view = view.clone();
            self.load_rows(at, &view, dtype)
        } else {
            let access = self.access(at as u16, view, dtype.storage_bytes());
            self.e.load(dtype, access)
        };
        self.loaded.insert(at, element);
        Some(element)
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
