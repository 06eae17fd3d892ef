//! From graphs to loop nests: which nodes one nest computes, over which axes, and how it reads and writes memory.

mod domain;
mod elements;

use defn_core::graph::{Graph, Value, Values};
use defn_core::op::Op as GraphOp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cluster::{Cluster, Clusters, Elementwise, Role, elementwise};
use super::ir::{Access, Builder, Elem, Function, Val};
use crate::kernels::StridedView;
use domain::{Sizes, common_axes, strides_along};
use elements::{Element, Elements};

/// Elements of a row from which on its length is an argument, so that rows of other lengths share the code.
const LONG_ROW: usize = 512;

/// The least elements of a row that vectors are worth while for.
const SHORT_ROW: usize = 16;

/// A nest, with where its operands come from.
#[derive(Debug)]
pub(super) struct Fused {
    pub(super) function: Function,
    /// The values whose memory the first buffers are.
    pub(super) inputs: Vec<(Value, StridedView)>,
    /// The values whose memory the others are.
    pub(super) results: Values,
    /// How many steps the axis has that threads divide: the function's arguments are the first of them, and how many.
    pub(super) steps: usize,
    /// Elements of a step.
    pub(super) step: usize,
    pub(super) elements: usize,
    /// How many instructions an element takes.
    pub(super) cost: usize,
}

/// The nest of a cluster of element-wise ops that gives `results`, if the IR has all that it needs.
pub(super) fn element_nest(
    graph: &Graph,
    clusters: &Clusters,
    cluster: &Cluster,
    results: &Values,
    is_streaming: bool,
) -> Option<Fused> {
    let elements = graph.nodes()[cluster.nodes[0]].outputs[0].size();
    let mut reading = Reading { graph, clusters, place: clusters.place[cluster.nodes[0]], inputs: Vec::new(), known: FxHashMap::default() };
    for &position in &cluster.nodes {
        let node = &graph.nodes()[position];
        for &input in &node.inputs {
            reading.note(input, node.outputs[0].shape.sizes());
        }
    }
    let Reading { inputs, known, .. } = reading;
    let sizes = common_axes(elements, inputs.iter().map(|(_, view)| view))?;
    if sizes.len() > 1 && sizes[sizes.len() - 1] < SHORT_ROW {
        return None;
    }
    let buffers = (inputs.len() + results.len()) as u16;
    let mut b = Builder::new(buffers, 2, 0);
    let row = sizes[sizes.len() - 1];
    // Threads divide the longest axis: rows, if there are several.
    let outer = &sizes[..sizes.len() - 1];
    let split = outer.iter().enumerate().max_by_key(|(at, size)| (**size, std::cmp::Reverse(*at))).map(|(at, _)| at);
    let begin = b.param(0, Elem::Index);
    let count = b.param(1, Elem::Index);
    let mut counters: SmallVec<[Val; 4]> = SmallVec::new();
    for (axis, &size) in outer.iter().enumerate() {
        let trips = if Some(axis) == split { count } else { b.index(size as i64) };
        let (counter, _) = b.begin_loop(Some(trips), &[]);
        counters.push(if Some(axis) == split { b.add(begin, counter) } else { counter });
    }
    let extent = if split.is_none() && row >= LONG_ROW { count } else { b.index(row as i64) };
    if split.is_none() && row >= LONG_ROW {
        counters.push(begin);
    }
    let loops = outer.len();
    b.begin_lanes(extent);
    let mut making = Making {
        graph,
        clusters,
        place: clusters.place[cluster.nodes[0]],
        e: Elements { b },
        inputs: &inputs,
        known: &known,
        sizes: &sizes,
        counters: &counters,
        loaded: FxHashMap::default(),
        made: FxHashMap::default(),
    };
    for &position in &cluster.nodes {
        let element = making.node(position)?;
        making.made.insert(position, element);
    }
    let whole = StridedView::strided(0, &[elements], &[1]);
    for (at, result) in results.iter().enumerate() {
        let element = making.made[&(result.node as usize)];
        let width = graph.ty(*result).dtype.storage_bytes();
        let mut access = making.access((inputs.len() + at) as u16, &whole, width);
        access.is_streaming = is_streaming && access.lane == width as i64;
        making.e.store(element, access)?;
    }
    let mut b = making.e.b;
    b.end_lanes();
    (0..loops).for_each(|_| b.end_loop(&[]));
    let function = b.finish();
    let is_divided = split.is_some() || row >= LONG_ROW;
    let steps = match split {
        Some(axis) => outer[axis],
        None if is_divided => row,
        None => 1,
    };
    let cost = function.insts.iter().filter(|inst| inst.ty.is_vector).count();
    Some(Fused { function, inputs, results: results.clone(), steps, step: elements.div_ceil(steps.max(1)), elements, cost })
}

/// What a nest reads.
struct Reading<'a> {
    graph: &'a Graph,
    clusters: &'a Clusters,
    place: Option<usize>,
    inputs: Vec<(Value, StridedView)>,
    known: FxHashMap<(Value, StridedView), usize>,
}

impl Reading<'_> {
    /// Notes the memory that an operand is read from, if it is.
    fn note(&mut self, value: Value, sizes: &[usize]) {
        let seen = self.clusters.seen(self.graph, value);
        let base = seen.base.node as usize;
        let is_made = self.clusters.place[base].is_some() && self.clusters.place[base] == self.place;
        let op = &self.graph.nodes()[base].op;
        let is_counted = matches!((&self.clusters.roles[base], op), (Role::Generated, GraphOp::Iota { .. }));
        if is_made || is_counted || matches!(op, GraphOp::Constant(_)) {
            return;
        }
        let key = (seen.base, seen.walk(sizes));
        if !self.known.contains_key(&key) {
            self.known.insert(key.clone(), self.inputs.len());
            self.inputs.push(key);
        }
    }
}

struct Making<'a> {
    graph: &'a Graph,
    clusters: &'a Clusters,
    place: Option<usize>,
    e: Elements,
    inputs: &'a [(Value, StridedView)],
    known: &'a FxHashMap<(Value, StridedView), usize>,
    sizes: &'a Sizes,
    /// The positions along the outer axes, and what is added to that along the row.
    counters: &'a [Val],
    loaded: FxHashMap<usize, Element>,
    made: FxHashMap<usize, Element>,
}

impl Making<'_> {
    fn node(&mut self, position: usize) -> Option<Element> {
        let node = &self.graph.nodes()[position];
        let (sizes, dtype) = (node.outputs[0].shape.sizes(), node.outputs[0].dtype);
        let x: Option<SmallVec<[Element; 3]>> = node.inputs.iter().map(|&input| self.operand(input, sizes)).collect();
        let x = x?;
        match elementwise(&node.op).expect("clusters of several nodes are element-wise") {
            Elementwise::Unary(op) => self.e.unary(op, x[0], dtype),
            Elementwise::Binary(op) => self.e.binary(op, x[0], x[1], dtype),
            Elementwise::AsType => self.e.convert(x[0], dtype),
            Elementwise::Select => self.e.select(x[0], x[1], x[2], dtype),
            Elementwise::Clip => self.e.clip(x[0], x[1], x[2], dtype),
            Elementwise::Log(base) => self.e.log_to(base, x[0], dtype),
        }
    }

    /// A value as elements of a result of `sizes`.
    fn operand(&mut self, value: Value, sizes: &[usize]) -> Option<Element> {
        let seen = self.clusters.seen(self.graph, value);
        let base = seen.base.node as usize;
        let node = &self.graph.nodes()[base];
        if self.clusters.place[base] == self.place
            && let Some(&element) = self.made.get(&base)
        {
            return Some(element);
        }
        if let GraphOp::Constant(scalar) = &node.op {
            return self.e.constant(*scalar);
        }
        let dtype = self.graph.ty(seen.base).dtype;
        if let (Role::Generated, GraphOp::Iota { .. }) = (&self.clusters.roles[base], &node.op) {
            return None;
        }
        let at = self.known[&(seen.base, seen.walk(sizes))];
        if let Some(&element) = self.loaded.get(&at) {
            return Some(element);
        }
        let access = self.access(at as u16, &self.inputs[at].1, dtype.storage_bytes());
        let element = self.e.load(dtype, access)?;
        self.loaded.insert(at, element);
        Some(element)
    }

    /// Where a view's elements of a row are.
    fn access(&self, buffer: u16, view: &StridedView, width: usize) -> Access {
        let strides = strides_along(view, self.sizes);
        let bytes = |elements: isize| (elements * width as isize) as i64;
        let pairs = self.counters.iter().zip(&strides);
        let terms = pairs.filter(|(_, stride)| **stride != 0).map(|(&counter, &stride)| (counter, bytes(stride)));
        Access {
            buffer,
            offset: bytes(view.offset() as isize),
            terms: terms.collect(),
            lane: bytes(strides[strides.len() - 1]),
            is_streaming: false,
        }
    }
}

