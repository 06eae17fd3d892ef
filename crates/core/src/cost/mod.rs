//! What running a graph costs, as far as its types tell: operations, bytes moved, memory.
//!
//! The model knows nothing of a machine or a compiler. Each op reads its operands and writes its results; a compiler
//! that fuses ops moves less, and one that reuses memory in place needs less.

mod block;
mod memory;
mod op;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::graph::Graph;
use crate::region::Region;

/// How many operations take the time in which a byte comes from memory: measured with two cores of a CPU, 428 GFLOP/s
/// of products of f32 matrices and 25 GB/s of an element-wise loop.
const OPERATIONS_PER_BYTE: u64 = 16;

/// What one node costs, the regions inside it included. Counts that are too large stay at the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCost {
    /// Operations on elements: an addition, a comparison, a sine are one each, and so is a multiplication; on complex
    /// elements they are as many as those on their parts. Operations on integers count like others; moving and
    /// converting elements are none.
    pub flops: u64,
    /// Bytes of the operands that are read, of each operand once.
    pub read: u64,
    /// Bytes of the outputs that are written.
    pub written: u64,
    /// The most bytes that regions inside need at one time besides operands and outputs of the node.
    pub inside: u64,
    /// How many loops inside, this one included, have unknown trips and are counted as if they had one.
    pub assumed_loops: u64,
}

impl NodeCost {
    /// One number for how long it takes: operations, or moving bytes, whichever takes longer. It is in operations,
    /// of which sixteen take as long as a byte.
    pub fn work(&self) -> u64 {
        self.flops.max(self.read.saturating_add(self.written).saturating_mul(OPERATIONS_PER_BYTE))
    }

    /// Costs one after the other.
    fn then(self, next: NodeCost) -> NodeCost {
        NodeCost {
            flops: self.flops.saturating_add(next.flops),
            read: self.read.saturating_add(next.read),
            written: self.written.saturating_add(next.written),
            inside: self.inside.max(next.inside),
            assumed_loops: self.assumed_loops.saturating_add(next.assumed_loops),
        }
    }

    /// The cost so many times over.
    fn times(self, count: u64) -> NodeCost {
        NodeCost {
            flops: self.flops.saturating_mul(count),
            read: self.read.saturating_mul(count),
            written: self.written.saturating_mul(count),
            ..self
        }
    }
}

/// What a region costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Operations; see [`NodeCost::flops`].
    pub flops: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// The most bytes that are there at one time: inputs, results once they are computed, and every other value from
    /// its node to its last use. Values that are an operand under another shape or name take none of their own.
    pub peak: u64,
    /// How many loops have unknown trips and are counted as if they had one, those in loops once.
    pub assumed_loops: u64,
    /// The cost of each node, in the order of the graph.
    pub nodes: Vec<NodeCost>,
}

impl Cost {
    /// The work of all nodes; see [`NodeCost::work`].
    pub fn work(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.work()))
    }
}

/// Estimates what a region costs: every node of it, needed or not.
///
/// A loop costs its trips where they were known while tracing, and one trip where not, which is counted in
/// [`Cost::assumed_loops`]. Of several branches the one with the most work counts.
///
/// ```
/// use defn_core::cost::cost;
/// use defn_core::region::Region;
/// let region = Region::from_text("defn-ir 1
///     (f32[8][16], f32[16][4]) {
///       %0 = parameter {index: 0} : f32[8][16]
///       %1 = parameter {index: 1} : f32[16][4]
///       %2 = dot %0 %1 {contract_a: [1], batch_a: [], contract_b: [0], batch_b: []} : f32[8][4]
///       return %2
///     }")?;
/// assert_eq!(cost(&region).flops, 2 * 8 * 16 * 4);
/// # Ok::<(), defn_core::Error>(())
/// ```
pub fn cost(region: &Region) -> Cost {
    Costs::default().of(region).0
}

/// What one node of a graph costs, as [`Cost::nodes`] has it.
pub fn of_node(graph: &Graph, position: usize) -> NodeCost {
    op::count(&mut Costs::default(), graph, &graph.nodes()[position]).cost
}

/// What a region costs that stands inside a node.
#[derive(Clone, Copy)]
struct Inner {
    /// All of its nodes.
    cost: NodeCost,
    /// The most bytes at one time besides the inputs.
    extra: u64,
}

/// Regions whose cost is known: one may stand in many places.
#[derive(Default)]
struct Costs {
    known: FxHashMap<*const Region, Inner>,
}

impl Costs {
    /// The cost of a region, and the most bytes that it needs besides its inputs.
    fn of(&mut self, region: &Region) -> (Cost, u64) {
        let graph = region.graph();
        let counts: Vec<op::Count> = graph.nodes().iter().map(|node| op::count(self, graph, node)).collect();
        let nodes: Vec<NodeCost> = counts.iter().map(|count| count.cost).collect();
        let all = nodes.iter().copied().fold(NodeCost::default(), NodeCost::then);
        let extra = memory::extra(region, &counts);
        let inputs: u64 = region.inputs().iter().map(|ty| ty.byte_size() as u64).fold(0, u64::saturating_add);
        let NodeCost { flops, read, written, inside: _, assumed_loops } = all;
        (Cost { flops, read, written, peak: inputs.saturating_add(extra), assumed_loops, nodes }, extra)
    }

    /// The cost of a region inside a node. The region is held by it, so that its address is its own.
    fn inner(&mut self, region: &Arc<Region>) -> Inner {
        let key = Arc::as_ptr(region);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let (Cost { flops, read, written, assumed_loops, .. }, extra) = self.of(region);
        let cost = NodeCost { flops, read, written, inside: 0, assumed_loops };
        let inner = Inner { cost, extra };
        self.known.insert(key, inner);
        inner
    }
}
