//! Builds the function of a nest.

use defn_core::DType;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::ReduceOp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::domain::{Domain, Sizes, strides_along};
use super::elements::{Element, Elements, computed};
use super::passes::Passes;
use super::reads::{Generated, Reads, domain_of, generated};
use super::short::has_records;
use crate::compiler::cluster::{Clusters, Elementwise, elementwise};
use crate::compiler::ir::{Access, Builder, Cmp, Conv, Elem, Function, Reduce, Val};
use crate::kernels::{StridedView, TILE};

/// Elements of a row from which on its length is an argument, so that rows of other lengths share the code.
pub(super) const LONG_ROW: usize = 512;

/// The elements of a row from which on it has vectors of its own. Of shorter ones each lane has one.
const SHORT_ROW: usize = 16;

/// The least short rows that a thread takes, where there are several parts.
const SHORT_ROWS_PART: usize = 256;

/// The least columns that a thread reduces, where there are several parts.
const COLUMNS_PART: usize = 512;

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
    let reads = Reads::new(graph, clusters, &passes, domain, gathered);
    let sizes = reads.sizes(domain)?;
    let shape = Shape::new(&sizes, domain)?;
    if shape.is_short && !has_records(graph, &reads, results) {
        return None;
    }
    let mut b = Builder::new((reads.inputs.len() + results.len()) as u16 + 1, 2, 0);
    let (begin, count) = (b.param(0, Elem::Index), b.param(1, Elem::Index));
    let (mut positions, mut loops): (SmallVec<[Position; 4]>, usize) = (SmallVec::new(), 0);
    for (axis, &size) in sizes.iter().enumerate() {
        if Some(axis) == shape.reduced || axis == shape.lanes || axis == sizes.len() - 1 {
            positions.push(Position::default());
            continue;
        }
        loops += 1;
        let trips = if Some(axis) == shape.split { count } else { b.index(size as i64) };
        let (counter, _) = b.begin_loop(Some(trips), &[]);
        positions.push(Position::at(if Some(axis) == shape.split { b.add(begin, counter) } else { counter }));
    }
    let mut making = Making {
        graph,
        clusters,
        passes: &passes,
        parts: passes.nodes.iter().copied().collect(),
        e: Elements::new(b),
        reads: &reads,
        results,
        sizes: &sizes,
        shape: &shape,
        positions,
        row_start: shape.is_row_divided.then_some(begin),
        tile: None,
        scratch: Scratch::default(),
        homes: FxHashMap::default(),
        is_streaming,
        pass: 0,
        values: FxHashMap::default(),
        loaded: FxHashMap::default(),
        loaded_of_rows: Vec::new(),
        groups: FxHashMap::default(),
    };
    let parts = shape.is_row_divided.then_some((begin, count));
    if shape.reduced.is_some() {
        making.columns(parts)?
    } else if shape.is_short {
        making.short_rows(parts)?
    } else {
        making.rows(parts)?
    }
    let (scratch, mut b) = (making.scratch.bytes, making.e.b);
    (0..loops).for_each(|_| b.end_loop(&[]));
    let function = b.finish();
    let steps = match shape.split {
        Some(axis) => sizes[axis],
        None if shape.is_row_divided => sizes[shape.lanes],
        None => 1,
    };
    let least_steps = match (shape.is_row_divided, shape.reduced) {
        (true, Some(_)) => COLUMNS_PART,
        (true, None) if shape.is_short => SHORT_ROWS_PART,
        (true, None) => CHUNK_LINES,
        (false, _) => 1,
    };
    let cost = function.insts.iter().filter(|inst| inst.ty.is_vector).count();
    // All elements of a short row have instructions of their own.
    let cost = if shape.is_short { cost.div_ceil(sizes[sizes.len() - 1]) } else { cost };
    let early = (0..results.len()).filter(|&at| passes.is_early(results[at].node as usize)).collect();
    let Reads { inputs, moved, .. } = reads;
    let (results, elements) = (results.clone(), domain.elements());
    Some(Fused { function, inputs, moved, early, results, scratch, steps, least_steps, elements, cost })
}

/// How the axes of a domain are gone through.
pub(super) struct Shape {
    /// The axis that is reduced, if it is not the row.
    pub(super) reduced: Option<usize>,
    /// The axis around the row that threads divide.
    pub(super) split: Option<usize>,
    /// Whether threads divide the lanes.
    pub(super) is_row_divided: bool,
    /// Whether rows are so short that lanes are along another axis.
    pub(super) is_short: bool,
    /// The axis that lanes are along: the row, if it is not short.
    pub(super) lanes: usize,
}

impl Shape {
    /// None if elements of a group are along several axes.
    fn new(sizes: &Sizes, domain: &Domain) -> Option<Shape> {
        let row = sizes.len() - 1;
        let length = sizes[row];
        let reduced = if domain.inner > 1 && domain.reduced > 1 {
            let axis = (0..row).rev().find(|&axis| sizes[axis..].iter().product::<usize>() > domain.inner)?;
            if sizes[axis] != domain.reduced {
                return None;
            }
            Some(axis)
        } else {
            if domain.reduced > 1 && domain.reduced != length {
                return None;
            }
            None
        };
        let is_short = reduced.is_none() && row > 0 && length < SHORT_ROW;
        let longest = |axes: &mut dyn Iterator<Item = usize>| {
            axes.max_by_key(|&axis| (sizes[axis], std::cmp::Reverse(axis)))
        };
        let lanes = if is_short { longest(&mut (0..row))? } else { row };
        // Threads divide the longest axis: rows, if there are several.
        let split = longest(&mut (0..row).filter(|&axis| Some(axis) != reduced && axis != lanes));
        let is_row_divided = match split {
            None if is_short => sizes[lanes] >= 2 * SHORT_ROWS_PART,
            Some(_) if is_short => sizes[lanes] >= 4 * SHORT_ROWS_PART,
            None if reduced.is_some() => length >= 2 * COLUMNS_PART,
            None => domain.reduced == 1 && length >= LONG_ROW,
            Some(axis) => reduced.is_some() && length / COLUMNS_PART > sizes[axis],
        };
        Some(Shape { reduced, split: split.filter(|_| !is_row_divided), is_row_divided, is_short, lanes })
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
    pub(super) parts: FxHashMap<usize, Part>,
    pub(super) e: Elements,
    pub(super) reads: &'a Reads,
    pub(super) results: &'a Values,
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
                let whole = StridedView::strided(0, &[self.sizes.iter().product()], &[1]);
                let mut access = self.access(self.result_buffer(at), &whole, width);
                // Rows that begin within a line are not stored past the caches.
                let length = self.sizes[self.sizes.len() - 1];
                let is_aligned = self.sizes.len() == 1 || (length * width).is_multiple_of(64);
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

    /// The axes of the groups.
    fn group_sizes(&self) -> Sizes {
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
        (self.reads.inputs.len() + result) as u16
    }

    pub(super) fn scratch_buffer(&self) -> u16 {
        (self.reads.inputs.len() + self.results.len()) as u16
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
        let x = self.operand(input, domain_of(self.graph, fold, part), part)?;
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
    fn operand(&mut self, value: Value, sizes: &[usize], part: Part) -> Option<Element> {
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
        let element = if self.shape.is_short {
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

    /// Where the elements of an input are, of the row or of groups.
    pub(super) fn input_access(&self, at: usize, is_of_groups: bool, width: usize) -> Access {
        let view = &self.reads.inputs[at].1;
        if is_of_groups {
            self.group_access(at as u16, view, width)
        } else {
            self.access(at as u16, view, width)
        }
    }

    /// Where a view's elements of the row are.
    pub(super) fn access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, self.sizes);
        let positions = self.positions.iter().zip(&strides);
        self.placed(buffer, view.offset(), positions, strides[self.shape.lanes], width)
    }

    /// Where a view's elements of groups are: one, or those of a row of columns.
    fn group_access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, &self.group_sizes());
        let Some(reduced) = self.shape.reduced else {
            let lane = if self.shape.is_short { strides[self.shape.lanes] } else { 0 };
            return self.placed(buffer, view.offset(), self.positions.iter().zip(&strides), lane, width);
        };
        let positions = self.positions.iter().enumerate().filter(|(axis, _)| *axis != reduced);
        let positions = positions.map(|(_, position)| position).zip(&strides);
        self.placed(buffer, view.offset(), positions, strides[strides.len() - 1], width)
    }

    /// An access by positions and strides, in elements of `width` bytes.
    fn placed<'p>(
        &self,
        buffer: u16,
        offset: usize,
        positions: impl Iterator<Item = (&'p Position, &'p isize)>,
        lane: isize,
        width: usize,
    ) -> Access {
        let width = width as i64;
        let mut offset = offset as i64 * width;
        let mut terms = SmallVec::new();
        for (position, &stride) in positions.filter(|(_, stride)| **stride != 0) {
            let stride = stride as i64 * width;
            offset += position.offset * stride;
            terms.extend(position.terms.iter().map(|&(counter, by)| (counter, by * stride)));
        }
        let lane = lane as i64 * width;
        self.within_row(Access { buffer, offset, terms, lane, is_streaming: false })
    }

    /// An access of the row from where it is done on.
    fn within_row(&self, mut access: Access) -> Access {
        if access.lane == 0 {
            return access;
        }
        if let Some(start) = self.row_start {
            access.terms.push((start, access.lane));
        }
        match self.tile {
            Some(Tile::Counted(counter)) => access.terms.push((counter, access.lane * TILE as i64)),
            Some(Tile::Last(before)) => access.offset += access.lane * before as i64,
            None => {}
        }
        access
    }

    /// Where a kept value is: of the row, or of the rows that are reduced together.
    fn kept_access(&self, home: usize, width: usize) -> Access {
        let Some(reduced) = self.shape.reduced else {
            return self.within_row(self.column_access(home, width));
        };
        let mut access = self.column_access(home, width);
        let (position, stride) = (&self.positions[reduced], (self.block_width() * width) as i64);
        access.offset += position.offset * stride;
        access.terms.extend(position.terms.iter().map(|&(counter, by)| (counter, by * stride)));
        access
    }

    /// Elements of the scratch memory, one after the other.
    pub(super) fn column_access(&self, home: usize, width: usize) -> Access {
        let (buffer, lane) = (self.scratch_buffer(), width as i64);
        Access { buffer, offset: home as i64, terms: SmallVec::new(), lane, is_streaming: false }
    }
}
