//! The cost of each op.

use super::block;
use super::{Costs, NodeCost, RegionCost};
use crate::dtype::DType;
use crate::graph::{Graph, Node};
use crate::op::{BinaryOp, Collective, CostClass, ElementWise, OpClass, Primitive, ScatterOp};
use crate::shape::{Axis, Shape, TensorType};

/// The cost of one node, and its memory aliases.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub cost: NodeCost,
    /// Whether the node is an input of its region.
    pub is_input: bool,
    /// The number of leading outputs that alias the operand at the same position.
    pub passes: usize,
}

/// Counts a node. By default an op costs reading its whole operands and writing its outputs.
pub(super) fn count(costs: &mut Costs, graph: &Graph, node: &Node) -> Count {
    let operands: Vec<&TensorType> = node.inputs.iter().map(|&input| graph.ty(input)).collect();
    let outputs = &node.outputs;
    let (read, written) = (distinct_bytes(graph, node), sum(outputs.iter().map(bytes)));
    let whole = |flops: u64| Count {
        cost: NodeCost { flops, read, written, ..NodeCost::default() },
        ..Count::default()
    };
    // One operation per element of the result, two for complex elements.
    let each =
        |factor: u64| whole(size(&outputs[0]).saturating_mul(factor).saturating_mul(parts(outputs[0].dtype)));
    let passes = |passes: usize| Count { passes, ..Count::default() };
    let first = || operands[0];
    match node.op.class() {
        OpClass::Parameter { .. } => Count { is_input: true, ..Count::default() },
        OpClass::Constant(_) | OpClass::Literal(_) => Count::default(),
        OpClass::Identity(_) => passes(1),
        OpClass::Barrier => passes(node.inputs.len()),
        // The gradient rule adds its own nodes when a gradient is taken.
        OpClass::CustomGrad(op) => passes(op.values),
        OpClass::Implicit(op) => passes(op.values),
        OpClass::Hook(_) => {
            let cost = NodeCost { read, ..NodeCost::default() };
            Count { cost, passes: outputs.len(), ..Count::default() }
        }
        // The cost of the host function is unknown.
        OpClass::RuntimeCall(_) => whole(0),
        OpClass::Primitive(Primitive::ElementWise(op)) => match op {
            ElementWise::Unary(_) | ElementWise::Select => each(1),
            ElementWise::Binary(op) => {
                each(1).with_flops(size(&outputs[0]).saturating_mul(binary(op, outputs[0].dtype)))
            }
            ElementWise::Clip => each(2),
            ElementWise::AsType(_) => whole(0),
            ElementWise::Bitcast(_) => passes(1),
        },
        OpClass::Primitive(_) => match node.op.work().expect("primitives with attributes have rows") {
            CostClass::Nothing => passes(1),
            CostClass::Moves | CostClass::Scatters(ScatterOp::IndexedPut) => whole(0),
            CostClass::Selects => {
                let positions = operands[1..].iter().copied().map(bytes);
                whole(0).with_read(written.saturating_add(sum(positions)))
            }
            CostClass::Reduces => whole(size(first()).saturating_mul(parts(outputs[0].dtype))),
            CostClass::Scatters(ScatterOp::IndexedAdd) => {
                whole(size(operands[2]).saturating_mul(parts(outputs[0].dtype)))
            }
            CostClass::Sorts(axis) => whole(sorting(first(), axis)),
            CostClass::Windows(window) => each(product(window.sizes.iter().copied())),
            CostClass::WindowScatters(window) => {
                let looks = product(window.sizes.iter().copied()).saturating_add(parts(outputs[0].dtype));
                whole(size(operands[1]).saturating_mul(looks))
            }
            CostClass::Products(contracted) => {
                let depth = product(contracted.iter().map(|&axis| first().shape[axis]));
                each(1).with_flops(
                    size(&outputs[0]).saturating_mul(depth).saturating_mul(multiply_add(outputs[0].dtype)),
                )
            }
            CostClass::Convolution(op) => {
                // Every element of the result is a sum over one kernel.
                let kernel = operands[1];
                let kernels = kernel.shape[op.kernel_permutation[0]];
                let depth = size(kernel).checked_div(kernels as u64).unwrap_or(0);
                whole(size(&outputs[0]).saturating_mul(depth).saturating_mul(multiply_add(outputs[0].dtype)))
            }
            CostClass::Transforms { axis, length } => whole(fft(&first().shape, axis, length)),
            // A multiplication and an addition for each entry of half a square.
            CostClass::Solves => {
                let rows = first().shape.sizes().last().copied().unwrap_or(0) as u64;
                whole(
                    size(&outputs[0]).saturating_mul(rows).saturating_mul(multiply_add(outputs[0].dtype) / 2),
                )
            }
        },
        OpClass::Collective(op) => match &op.kind {
            // Each device reduces its share of the elements.
            Collective::AllReduce { .. } | Collective::ReduceScatter { .. } => {
                whole(size(first()).saturating_mul(parts(outputs[0].dtype)))
            }
            Collective::AllGather { .. } | Collective::CollectivePermute { .. } | Collective::MeshIndex => {
                whole(0)
            }
        },
        OpClass::Fold(op) => {
            let each = costs.inner(&op.fun);
            whole(0).with_region(each, size(first()), written)
        }
        OpClass::WindowFold(op) => {
            let each = costs.inner(&op.fun);
            let elements = size(&outputs[0]).saturating_mul(product(op.window.sizes.iter().copied()));
            whole(0).with_region(each, elements, written)
        }
        OpClass::Cond(op) => {
            let branches: Vec<RegionCost> = op.branches.iter().map(|branch| costs.inner(branch)).collect();
            let extra = branches.iter().map(|branch| branch.extra).max().unwrap_or(0);
            let cost =
                branches.iter().map(|branch| branch.cost).max_by_key(NodeCost::work).unwrap_or_default();
            let assumed_loops = sum(branches.iter().map(|branch| branch.cost.assumed_loops));
            let inside = extra.saturating_sub(written);
            Count { cost: NodeCost { inside, assumed_loops, ..cost }, ..Count::default() }
        }
        OpClass::While(op) => {
            let (cond, body) = (costs.inner(&op.cond), costs.inner(&op.body));
            let trip = cond.cost.then(body.cost);
            // The condition runs once more than the body.
            let cost = trip.times(op.trips.unwrap_or(1)).then(NodeCost { assumed_loops: 0, ..cond.cost });
            let assumed_loops = trip.assumed_loops.saturating_add(u64::from(op.trips.is_none()));
            // The state is in the outputs' memory while the body computes the next state.
            let inside = cond.extra.max(body.extra);
            Count { cost: NodeCost { inside, assumed_loops, ..cost }, ..Count::default() }
        }
        OpClass::UserBlock(op) => {
            let default = costs.inner(&op.default);
            let inside = default.extra.saturating_sub(written);
            Count { cost: NodeCost { inside, ..default.cost }, ..Count::default() }
        }
        OpClass::Block(op) => {
            let mut count = whole(block::flops(op, &operands, outputs));
            if let Some(read) = block::read(op, &operands, outputs) {
                count = count.with_read(read);
            }
            count
        }
    }
}

impl Count {
    fn with_flops(mut self, flops: u64) -> Count {
        self.cost.flops = flops;
        self
    }

    fn with_read(mut self, read: u64) -> Count {
        self.cost.read = read;
        self
    }

    /// Counts a region that runs on one element at a time: its temporaries are a few numbers in registers or
    /// cache.
    fn with_region(mut self, each: RegionCost, times: u64, written: u64) -> Count {
        self.cost.flops = each.cost.times(times).flops;
        self.cost.assumed_loops = each.cost.assumed_loops;
        self.cost.inside = each.extra.saturating_sub(written);
        self
    }
}

/// The bytes of a node's inputs, each value once.
fn distinct_bytes(graph: &Graph, node: &Node) -> u64 {
    let inputs = &node.inputs;
    let distinct = inputs.iter().enumerate().filter(|&(at, input)| !inputs[..at].contains(input));
    sum(distinct.map(|(_, &input)| bytes(graph.ty(input))))
}

/// Operations per element of a binary op.
fn binary(op: BinaryOp, dtype: DType) -> u64 {
    if !dtype.is_complex() {
        return 1;
    }
    match op {
        // Four products and two sums.
        BinaryOp::MULTIPLY => 6,
        // Six products, three sums and two quotients.
        BinaryOp::DIVIDE => 11,
        BinaryOp::Arithmetic(_)
        | BinaryOp::Bitwise(_)
        | BinaryOp::Comparison(_)
        | BinaryOp::Logical(_)
        | BinaryOp::Complex => 2,
    }
}

/// The number of comparisons for sorting along an axis.
pub(super) fn sorting(ty: &TensorType, axis: Axis) -> u64 {
    size(ty).saturating_mul(log2(ty.shape[axis]))
}

/// Operations of transforms along an axis: 5 n log2(n) each, the usual figure for complex transforms of any
/// length (Frigo and Johnson, The Design and Implementation of FFTW3, 2005).
pub(super) fn fft(shape: &Shape, axis: Axis, length: usize) -> u64 {
    let lines = product(shape.axes().filter(|&other| other != axis).map(|other| shape[other]));
    lines.saturating_mul(5).saturating_mul(length as u64).saturating_mul(log2(length))
}

/// The logarithm to base 2, rounded up.
fn log2(count: usize) -> u64 {
    count
        .checked_next_power_of_two()
        .map_or(u64::from(usize::BITS), |power| u64::from(power.trailing_zeros()))
}

/// Operations of a multiply-add.
pub(super) fn multiply_add(dtype: DType) -> u64 {
    if dtype.is_complex() { 8 } else { 2 }
}

/// The number of real parts of an element.
pub(super) fn parts(dtype: DType) -> u64 {
    if dtype.is_complex() { 2 } else { 1 }
}

pub(super) fn size(ty: &TensorType) -> u64 {
    ty.size() as u64
}

pub(super) fn bytes(ty: &TensorType) -> u64 {
    ty.byte_size() as u64
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

pub(super) fn product(sizes: impl Iterator<Item = usize>) -> u64 {
    sizes.fold(1, |product, size| product.saturating_mul(size as u64))
}
