//! Builds the function of a nest.

use defn_core::DType;
use defn_core::graph::{Graph, Value, Values};
use defn_core::op::{Op as GraphOp, ReduceOp};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::domain::{Sizes, strides_along};
use super::elements::{Element, Elements, computed};
use super::passes::Passes;
use super::reads::{Reads, domain_of, is_generated};
use crate::compiler::cluster::{Clusters, Elementwise, elementwise};
use crate::compiler::ir::{Access, Builder, Cmp, Conv, Elem, Function, Reduce, Val};
use crate::kernels::{StridedView, TILE};

/// Elements of a row from which on its length is an argument, so that rows of other lengths share the code.
const LONG_ROW: usize = 512;

/// The least elements of a row that vectors are worth while for, where there are several rows.
const SHORT_ROW: usize = 16;

/// The most tiles of a row that is reduced.
const MOST_TILES: usize = 64;

/// Elements from which on a tile has 256 bytes of lanes; `docs/order.md` has the order of reductions.
const LONG_TILE: usize = 256;
const SHORT_LANES: u16 = 16;

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
    /// The values whose memory the next buffers are.
    pub(in super::super) results: Values,
    /// The bytes of the last buffer, which each thread has for itself; 0 if there is none.
    pub(in super::super) scratch: usize,
    /// How many steps the axis has that threads divide: the function's arguments are the first of them, and how many.
    pub(in super::super) steps: usize,
    /// Elements of the domain.
    pub(in super::super) elements: usize,
    /// How many instructions an element takes.
    pub(in super::super) cost: usize,
}

/// The nest that computes some nodes, of which `results` are needed elsewhere, if the IR has all that it needs. `rows`
/// says how many rows there are and how long they are, where nodes are more than element-wise.
pub(in super::super) fn fuse(
    graph: &Graph,
    clusters: &Clusters,
    nodes: Vec<(usize, Part)>,
    rows: Option<(usize, usize)>,
    results: &Values,
    is_streaming: bool,
) -> Option<Fused> {
    let is_complex = |value: &Value| graph.ty(*value).dtype.is_complex();
    if nodes.iter().any(|(node, _)| {
        let node = &graph.nodes()[*node];
        node.outputs[0].dtype.is_complex() || node.inputs.iter().any(is_complex)
    }) {
        return None;
    }
    let elements = match rows {
        Some((rows, length)) => rows * length,
        None => graph.nodes()[nodes[0].0].outputs[0].size(),
    };
    let passes = Passes::new(graph, clusters, nodes);
    let reads = Reads::new(graph, clusters, &passes, elements, rows);
    let sizes = reads.sizes(elements, rows)?;
    let length = sizes[sizes.len() - 1];
    if rows.is_some_and(|(_, row)| row != length) || sizes.len() > 1 && length < SHORT_ROW {
        return None;
    }
    let mut scratch = Scratch::default();
    let has_folds = passes.nodes.iter().any(|(_, part)| matches!(part, Part::Fold(_)));
    if has_folds && length.div_ceil(TILE) > MOST_TILES {
        return None;
    }
    let mut homes: FxHashMap<usize, usize> = FxHashMap::default();
    for &kept in &passes.kept {
        let width = graph.nodes()[kept].outputs[0].dtype.storage_bytes();
        homes.insert(kept, scratch.take(length * width));
    }
    if has_folds && length > TILE {
        scratch.tiles = scratch.take(0);
        let folds = passes.nodes.iter().filter(|(_, part)| matches!(part, Part::Fold(_))).count();
        scratch.take(folds * length.div_ceil(TILE) * 8);
    }
    let buffers = (reads.inputs.len() + results.len()) as u16 + 1;
    let mut b = Builder::new(buffers, 2, 0);
    let outer = &sizes[..sizes.len() - 1];
    // Threads divide the longest axis: rows, if there are several.
    let split = outer.iter().enumerate().max_by_key(|(at, size)| (**size, std::cmp::Reverse(*at)));
    let split = split.map(|(at, _)| at);
    let is_row_divided = split.is_none() && rows.is_none() && length >= LONG_ROW;
    let begin = b.param(0, Elem::Index);
    let count = b.param(1, Elem::Index);
    let mut counters: SmallVec<[Val; 4]> = SmallVec::new();
    for (axis, &size) in outer.iter().enumerate() {
        let trips = if Some(axis) == split { count } else { b.index(size as i64) };
        let (counter, _) = b.begin_loop(Some(trips), &[]);
        counters.push(if Some(axis) == split { b.add(begin, counter) } else { counter });
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
        counters,
        row_start: is_row_divided.then_some(begin),
        tile: None,
        scratch: &scratch,
        homes,
        is_streaming,
        pass: 0,
        values: FxHashMap::default(),
        loaded: FxHashMap::default(),
        rows: FxHashMap::default(),
        folded: 0,
    };
    let extent = if is_row_divided { Extent::Argument(count) } else { Extent::Known(length) };
    for pass in 0..passes.count {
        making.pass(pass, extent)?;
    }
    let mut b = making.e.b;
    outer.iter().for_each(|_| b.end_loop(&[]));
    let function = b.finish();
    let steps = match split {
        Some(axis) => outer[axis],
        None if is_row_divided => length,
        None => 1,
    };
    let cost = function.insts.iter().filter(|inst| inst.ty.is_vector).count();
    let (inputs, results) = (reads.inputs, results.clone());
    Some(Fused { function, inputs, results, scratch: scratch.bytes, steps, elements, cost })
}

/// The memory that a thread has for a row.
#[derive(Debug, Default)]
struct Scratch {
    bytes: usize,
    /// Where the results of tiles begin.
    tiles: usize,
}

impl Scratch {
    fn take(&mut self, bytes: usize) -> usize {
        let at = self.bytes;
        self.bytes += bytes.next_multiple_of(64);
        at
    }
}

/// The length of a row.
#[derive(Clone, Copy)]
enum Extent {
    Known(usize),
    Argument(Val),
}

struct Making<'a> {
    graph: &'a Graph,
    clusters: &'a Clusters,
    passes: &'a Passes,
    parts: FxHashMap<usize, Part>,
    e: Elements,
    reads: &'a Reads,
    results: &'a Values,
    sizes: &'a Sizes,
    /// The positions along the outer axes.
    counters: SmallVec<[Val; 4]>,
    /// Where the part of the row begins that is done.
    row_start: Option<Val>,
    /// The tile of the row that is done: a counter, or the elements before it.
    tile: Option<Tile>,
    scratch: &'a Scratch,
    /// Where the kept values are in the scratch memory.
    homes: FxHashMap<usize, usize>,
    is_streaming: bool,
    pass: usize,
    /// The elements of this pass, by node and by input.
    values: FxHashMap<usize, Element>,
    loaded: FxHashMap<usize, Element>,
    /// What each row has.
    rows: FxHashMap<usize, Element>,
    /// How many reductions had memory for their tiles.
    folded: usize,
}

#[derive(Clone, Copy)]
enum Tile {
    Counted(Val),
    Last(usize),
}

impl Making<'_> {
    /// One pass over the row, and what each row has after it.
    fn pass(&mut self, pass: usize, extent: Extent) -> Option<()> {
        self.pass = pass;
        let of_pass = |part: &dyn Fn(Part) -> bool| -> Vec<usize> {
            let nodes =
                self.passes.nodes.iter().filter(|(node, own)| part(*own) && self.passes.of(*node) == pass);
            nodes.map(|(node, _)| *node).collect()
        };
        let folds = of_pass(&|part| matches!(part, Part::Fold(_)));
        let stored: Vec<usize> = of_pass(&|part| part == Part::Elements)
            .into_iter()
            .filter(|node| self.result_of(*node).is_some() || self.homes.contains_key(node))
            .collect();
        if pass == 0 {
            self.row_values(0)?;
        }
        if !folds.is_empty() || !stored.is_empty() {
            match extent {
                Extent::Known(length) if !folds.is_empty() && length > TILE => {
                    self.tiles(&folds, &stored, length)?
                }
                Extent::Known(length) => {
                    let extent = self.e.b.index(length as i64);
                    let folded = self.lanes(&folds, &stored, extent, length)?;
                    self.finish_folds(&folds, folded)?;
                }
                Extent::Argument(extent) => drop(self.lanes(&folds, &stored, extent, LONG_ROW)?),
            }
        }
        // What each row has after this pass is there in the next.
        self.row_values(pass + 1)?;
        for fold in folds {
            self.store_row(fold)?;
        }
        Some(())
    }

    /// The values of the row that later passes read, as far as they are there.
    fn row_values(&mut self, pass: usize) -> Option<()> {
        let nodes: Vec<usize> = self
            .passes
            .nodes
            .iter()
            .filter(|(node, part)| *part == Part::Rows && self.passes.of(*node) == pass)
            .map(|(node, _)| *node)
            .collect();
        for node in nodes {
            let element = self.node(node, Part::Rows)?;
            self.rows.insert(node, element);
            self.store_row(node)?;
        }
        Some(())
    }

    /// Stores what a row has, if it is a result.
    fn store_row(&mut self, position: usize) -> Option<()> {
        let Some(at) = self.result_of(position) else { return Some(()) };
        let element = self.rows[&position];
        let width = self.graph.nodes()[position].outputs[0].dtype.storage_bytes();
        let rows: usize = self.sizes[..self.sizes.len() - 1].iter().product();
        let whole = StridedView::strided(0, &[rows], &[1]);
        let access = self.row_access((self.reads.inputs.len() + at) as u16, &whole, width);
        self.e.store(element, access);
        Some(())
    }

    fn result_of(&self, position: usize) -> Option<usize> {
        self.results.iter().position(|result| result.node as usize == position)
    }

    /// The vectorized loop over the row or a tile of it; gives the accumulators.
    fn lanes(&mut self, folds: &[usize], stored: &[usize], extent: Val, length: usize) -> Option<Vec<Val>> {
        self.values.clear();
        self.loaded.clear();
        let mut accumulators = Vec::new();
        for &fold in folds {
            let (reduce, elem) = self.reduction(fold)?;
            let lanes = if length < LONG_TILE { SHORT_LANES } else { (256 / elem.bytes().max(4)) as u16 };
            accumulators.push(self.e.b.accumulator(reduce, elem, lanes));
        }
        self.e.b.begin_lanes(extent);
        for (&fold, &accumulator) in folds.iter().zip(&accumulators) {
            let value = self.folded_value(fold)?;
            self.e.b.reduce(accumulator, value);
        }
        let mut stores = Vec::new();
        for &node in stored {
            stores.push((node, self.element(node)?));
        }
        for (node, element) in stores {
            let width = element.dtype.storage_bytes();
            if let Some(at) = self.result_of(node) {
                let whole = StridedView::strided(0, &[self.sizes.iter().product()], &[1]);
                let mut access = self.access((self.reads.inputs.len() + at) as u16, &whole, width);
                // Rows that begin within a line are not stored past the caches.
                let length = self.sizes[self.sizes.len() - 1];
                let is_aligned = self.sizes.len() == 1 || (length * width).is_multiple_of(64);
                access.is_streaming = self.is_streaming && is_aligned;
                self.e.store(element, access);
            }
            if let Some(&home) = self.homes.get(&node) {
                let access = self.scratch_access(home, width);
                self.e.store(element, access);
            }
        }
        self.e.b.end_lanes();
        Some(accumulators)
    }

    /// The tiles of a long row, whose results are then joined pairwise.
    fn tiles(&mut self, folds: &[usize], stored: &[usize], length: usize) -> Option<()> {
        let (whole, rest) = (length / TILE, length % TILE);
        let count = length.div_ceil(TILE);
        let first = self.folded;
        self.folded += folds.len();
        let home = |this: &Self, at: usize| (this.scratch.tiles + (first + at) * count * 8) as i64;
        let tile = self.e.b.index(TILE as i64);
        let trips = self.e.b.index(whole as i64);
        let (counter, _) = self.e.b.begin_loop(Some(trips), &[]);
        self.tile = Some(Tile::Counted(counter));
        let folded = self.lanes(folds, stored, tile, TILE)?;
        for (at, &value) in folded.iter().enumerate() {
            let access = self.word(home(self, at), Some(counter));
            self.e.b.store(value, access);
        }
        self.e.b.end_loop(&[]);
        if rest > 0 {
            self.tile = Some(Tile::Last(whole * TILE));
            let extent = self.e.b.index(rest as i64);
            let folded = self.lanes(folds, stored, extent, rest)?;
            for (at, &value) in folded.iter().enumerate() {
                let access = self.word(home(self, at) + 8 * whole as i64, None);
                self.e.b.store(value, access);
            }
        }
        self.tile = None;
        let mut joined = Vec::new();
        for (at, &fold) in folds.iter().enumerate() {
            let (reduce, elem) = self.reduction(fold)?;
            let mut values: Vec<Val> = Vec::new();
            for tile in 0..count {
                let access = self.word(home(self, at) + 8 * tile as i64, None);
                values.push(self.e.b.load(elem, access));
            }
            while values.len() > 1 {
                let pairs = values.chunks(2);
                let join = |pair: &[Val]| match *pair {
                    [a, b] => self.e.b.op(reduce.op(), [a, b]),
                    _ => pair[0],
                };
                values = pairs.map(join).collect();
            }
            joined.push(values[0]);
        }
        self.finish_folds(folds, joined)
    }

    /// A word of the scratch memory.
    fn word(&self, offset: i64, counter: Option<Val>) -> Access {
        let terms = counter.into_iter().map(|counter| (counter, 8)).collect();
        Access { buffer: self.scratch_buffer(), offset, terms, lane: 0, is_streaming: false }
    }

    fn scratch_buffer(&self) -> u16 {
        (self.reads.inputs.len() + self.results.len()) as u16
    }

    /// What joins elements, and the type in which it does.
    fn reduction(&self, fold: usize) -> Option<(Reduce, Elem)> {
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
    fn folded_value(&mut self, fold: usize) -> Option<Val> {
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

    /// Notes the results of reductions.
    fn finish_folds(&mut self, folds: &[usize], values: Vec<Val>) -> Option<()> {
        for (&fold, value) in folds.iter().zip(values) {
            let (dtype, to) = (self.accumulation(fold), self.graph.nodes()[fold].outputs[0].dtype);
            let value = if dtype.is_bool() {
                let zero = self.e.b.bits(Elem::I8, 0);
                self.e.b.compare(Cmp::Ne, value, zero)
            } else {
                value
            };
            let element = self.e.convert(Element::new(value, dtype), to);
            self.rows.insert(fold, element);
        }
        Some(())
    }

    /// An element-wise node's elements in this pass.
    fn element(&mut self, position: usize) -> Option<Element> {
        if let Some(&known) = self.values.get(&position) {
            return Some(known);
        }
        let dtype = self.graph.nodes()[position].outputs[0].dtype;
        let element = match self.homes.get(&position) {
            Some(&home) if self.passes.of(position) < self.pass => {
                let access = self.scratch_access(home, dtype.storage_bytes());
                self.e.load(dtype, access)
            }
            Some(_) | None => self.node(position, Part::Elements)?,
        };
        self.values.insert(position, element);
        Some(element)
    }

    /// The op of a node.
    fn node(&mut self, position: usize, part: Part) -> Option<Element> {
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
            Some(Part::Rows | Part::Fold(_)) => return Some(self.rows[&base]),
            None => {}
        }
        let node = &self.graph.nodes()[base];
        if let GraphOp::Constant(scalar) = &node.op {
            return Some(self.e.constant(*scalar));
        }
        if is_generated(self.graph, self.clusters, base) {
            return None;
        }
        let dtype = self.graph.ty(seen.base).dtype;
        let rows: usize = self.sizes[..self.sizes.len() - 1].iter().product();
        let is_of_rows = part == Part::Rows && rows != self.sizes.iter().product::<usize>();
        let at = self.reads.known[&(seen.base, seen.walk(sizes), is_of_rows)];
        let view = &self.reads.inputs[at].1;
        if part == Part::Rows {
            let access = self.row_access(at as u16, view, dtype.storage_bytes());
            return Some(self.e.load(dtype, access));
        }
        if let Some(&element) = self.loaded.get(&at) {
            return Some(element);
        }
        let access = self.access(at as u16, view, dtype.storage_bytes());
        let element = self.e.load(dtype, access);
        self.loaded.insert(at, element);
        Some(element)
    }

    /// Where a view's elements of the row are.
    fn access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, self.sizes);
        let bytes = |elements: isize| (elements * width as isize) as i64;
        let lane = bytes(strides[strides.len() - 1]);
        let pairs = self.counters.iter().zip(&strides).filter(|(_, stride)| **stride != 0);
        let terms = pairs.map(|(&counter, &stride)| (counter, bytes(stride))).collect();
        let access =
            Access { buffer, offset: bytes(view.offset() as isize), terms, lane, is_streaming: false };
        self.within_row(access)
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

    /// Where a view's element of the row is.
    fn row_access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, &self.sizes[..self.sizes.len() - 1]);
        let bytes = |elements: isize| (elements * width as isize) as i64;
        let pairs = self.counters.iter().zip(&strides).filter(|(_, stride)| **stride != 0);
        let terms = pairs.map(|(&counter, &stride)| (counter, bytes(stride))).collect();
        Access { buffer, offset: bytes(view.offset() as isize), terms, lane: 0, is_streaming: false }
    }

    /// Where a kept value of the row is.
    fn scratch_access(&self, home: usize, width: usize) -> Access {
        let (buffer, lane) = (self.scratch_buffer(), width as i64);
        let access =
            Access { buffer, offset: home as i64, terms: SmallVec::new(), lane, is_streaming: false };
        self.within_row(access)
    }
}
