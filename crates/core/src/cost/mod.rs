//! The cost of running a graph, estimated from types alone: operations, bytes moved, memory.
//!
//! The model describes no particular machine or compiler. Each op reads its operands and writes its results;
//! a compiler that fuses ops moves less, and one that works in place needs less memory.

mod block;
mod memory;
mod op;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::graph::Graph;
use crate::region::Region;

/// The number of operations that take as long as one byte from memory: measured on two cores of a CPU, with
/// 428 GFLOP/s for products of f32 matrices and 25 GB/s for an element-wise loop.
const OPERATIONS_PER_BYTE: u64 = 16;

/// The cost of one node, including the regions inside it. Counts saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCost {
    /// Operations on elements. An addition, a multiplication, a comparison or a sine counts as one; an
    /// operation on complex elements counts the operations on their parts. Operations on integers count too;
    /// moving and converting elements counts nothing.
    pub flops: u64,
    /// Bytes of the operands that are read, each operand once.
    pub read: u64,
    /// Bytes of the outputs that are written.
    pub written: u64,
    /// The most bytes that the regions inside need at one time, in addition to the node's operands and
    /// outputs.
    pub inside: u64,
    /// The number of loops inside, this one included, with unknown trip counts. They are counted as one trip.
    pub assumed_loops: u64,
}

impl NodeCost {
    /// An estimate of the time: operations or memory traffic, whichever takes longer. The unit is one
    /// operation; a byte takes as long as sixteen.
    pub fn work(&self) -> u64 {
        self.flops.max(self.read.saturating_add(self.written).saturating_mul(OPERATIONS_PER_BYTE))
    }

    /// The sum of two costs in sequence.
    fn then(self, next: NodeCost) -> NodeCost {
        NodeCost {
            flops: self.flops.saturating_add(next.flops),
            read: self.read.saturating_add(next.read),
            written: self.written.saturating_add(next.written),
            inside: self.inside.max(next.inside),
            assumed_loops: self.assumed_loops.saturating_add(next.assumed_loops),
        }
    }

    /// The cost times `count`.
    fn times(self, count: u64) -> NodeCost {
        NodeCost {
            flops: self.flops.saturating_mul(count),
            read: self.read.saturating_mul(count),
            written: self.written.saturating_mul(count),
            ..self
        }
    }
}

/// The cost of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Operations; see [`NodeCost::flops`].
    pub flops: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// The most bytes that are live at one time: inputs, computed results, and every other value from its
    /// node to its last use. Values that are an operand with another shape or name need no memory of their
    /// own.
    pub peak: u64,
    /// The number of loops with unknown trip counts, which are counted as one trip. Nested loops count once.
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

/// Estimates the cost of a region: all of its nodes, needed or not.
///
/// A loop counts all its trips where their number was known while tracing. Otherwise it counts one trip and
/// is recorded in [`Cost::assumed_loops`]. Of several branches the one with the most work counts.
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

/// The cost of one node of a graph, as in [`Cost::nodes`].
pub fn of_node(graph: &Graph, position: usize) -> NodeCost {
    op::count(&mut Costs::default(), graph, &graph.nodes()[position]).cost
}

/// The cost of a region inside a node.
#[derive(Clone, Copy)]
struct RegionCost {
    /// The sum over its nodes.
    cost: NodeCost,
    /// The most bytes at one time, in addition to the inputs.
    extra: u64,
}

/// A cache of region costs: one region may occur in many places. The cost of a region, and the most bytes
/// that it needs in addition to its inputs.
#[derive(Default)]
struct Costs {
    cached: FxHashMap<*const Region, RegionCost>,
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

    /// The cost of a region inside a node. The key is the region's address; it stays valid since the node
    /// owns the region.
    fn inner(&mut self, region: &Arc<Region>) -> RegionCost {
        let key = Arc::as_ptr(region);
        if let Some(&cached) = self.cached.get(&key) {
            return cached;
        }
        let (Cost { flops, read, written, assumed_loops, .. }, extra) = self.of(region);
        let cost = NodeCost { flops, read, written, inside: 0, assumed_loops };
        let inner = RegionCost { cost, extra };
        self.cached.insert(key, inner);
        inner
    }
}
