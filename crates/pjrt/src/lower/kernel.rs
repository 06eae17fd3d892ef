//! Kernels: nodes that the host's program has run by a compiler of this process, as custom calls.
//!
//! They are what XLA on the host writes as loops or runs on one thread: factorizations, systems of equations, sorts,
//! transforms, running sums, random numbers, windows, convolutions. Element-wise ops are kernels only as
//! operands of a reduction (`steps`).

use defn_core::graph::{Graph, Node};
use defn_core::op::{Block, CompositeBlock, Op};
use defn_core::region::Region;
use defn_core::{Axis, DType, TensorType};

use super::text::{List, Ssa, Ty, layout};
use super::{Lowering, tensor};

/// The name under which programs call kernels.
pub(crate) const TARGET: &str = "defn.kernel";
/// The name of the attribute with the kernel's program.
pub(crate) const PROGRAM: &str = "program";

impl Lowering {
    /// A call of a kernel.
    pub(super) fn kernel(&mut self, program: &Region, operands: &[Ssa]) -> Vec<Ssa> {
        let layout = |ty: &TensorType| layout(&(0..ty.shape.rank()).rev().collect::<Vec<_>>());
        let attributes = format!(
            "call_target_name = \"{TARGET}\", api_version = 4 : i32, backend_config = {{{PROGRAM} = \"{}\"}}, \
             operand_layouts = [{}], result_layouts = [{}]",
            escaped(&program.to_text()),
            List(program.inputs().iter().map(layout)),
            List(program.result_types().map(layout).collect::<Vec<_>>()),
        );
        let types: Vec<Ty> = program.result_types().map(tensor).collect();
        let operands: Vec<&Ssa> = operands.iter().collect();
        self.writer.ops("custom_call", &operands, &attributes, &types)
    }
}

/// A text as the contents of a string in MLIR.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\22"),
            '\\' => out.push_str("\\5C"),
            '\n' => out.push_str("\\0A"),
            other => out.push(other),
        }
    }
    out
}

/// Whether our kernel is faster than what XLA makes of the op.
pub(super) fn is_kernel(graph: &Graph, node: &Node) -> bool {
    let (operand, result) = (|at: usize| graph.ty(node.inputs[at]), &node.outputs[0]);
    let inputs = node.inputs.iter().map(|&input| graph.ty(input));
    if inputs.chain(&node.outputs).any(|ty| ty.size() == 0) {
        return false;
    }
    let is_long = |ty: &TensorType| ty.size() >= MIN_ELEMENTS;
    match &node.op {
        Op::TriangularSolve { .. } | Op::Sort { .. } | Op::Argsort { .. } | Op::Fft { .. } => true,
        Op::Dot { contract_a, batch_a, .. } => {
            is_kernel_product([operand(0), operand(1)], [contract_a, batch_a], result)
        }
        Op::Window { .. } | Op::WindowScatter { .. } => is_long(operand(0)),
        // XLA is as fast at many updates.
        Op::Scatter { .. } => is_long(operand(0)) && operand(2).size() <= operand(0).size() / 8,
        Op::Conv(conv) => {
            let kernel = operand(1);
            let channels = kernel.shape.sizes()[conv.kernel_permutation[0].index()];
            result.size().saturating_mul(kernel.size() / channels) >= MIN_PRODUCT
        }
        Op::Block(block) => match block {
            Block::Cholesky
            | Block::Solve
            | Block::Lu
            | Block::Determinant
            | Block::Qr { .. }
            | Block::Svd { .. }
            | Block::Eigh { .. }
            | Block::Eig { .. }
            | Block::Schur
            | Block::Hessenberg
            | Block::Svdvals
            | Block::Eigvalsh
            | Block::Cumulative { .. }
            | Block::TopK { .. }
            | Block::Partition { .. }
            | Block::Argpartition { .. }
            | Block::Isin
            | Block::Bincount { .. }
            | Block::Fft2 { .. }
            | Block::Rfft { .. }
            | Block::Irfft { .. }
            | Block::Threefry
            | Block::RandomBits { .. }
            | Block::RandomUniform { .. }
            | Block::RandomBelow { .. } => true,
            Block::Composite(composite) => match composite {
                CompositeBlock::Logsumexp { .. } => true,
                CompositeBlock::LogicalNot
                | CompositeBlock::Phase
                | CompositeBlock::AllClose { .. }
                | CompositeBlock::Expm
                | CompositeBlock::Sqrtm
                | CompositeBlock::Logm => false,
            },
            Block::Take { .. } => result.size() >= MIN_TAKEN,
            Block::TakeAlongAxis { .. } | Block::Log2 | Block::Log10 => false,
        },
        Op::Parameter { .. }
        | Op::Constant(_)
        | Op::Literal(_)
        | Op::Iota { .. }
        | Op::Eye { .. }
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::AsType { .. }
        | Op::Bitcast { .. }
        | Op::Select
        | Op::Clip
        | Op::Reshape { .. }
        | Op::Squeeze { .. }
        | Op::Broadcast { .. }
        | Op::Transpose { .. }
        | Op::Pad { .. }
        | Op::Reverse { .. }
        | Op::Concatenate { .. }
        | Op::Stack { .. }
        | Op::Slice { .. }
        | Op::PutSlice { .. }
        | Op::Reduce { .. }
        | Op::ArgReduce { .. }
        | Op::Gather { .. }
        | Op::StopGrad
        | Op::Mark { .. }
        | Op::Transfer { .. }
        | Op::Barrier
        | Op::CustomGrad(_)
        | Op::Implicit(_)
        | Op::Collective(_)
        | Op::Fold(_)
        | Op::WindowFold(_)
        | Op::Cond(_)
        | Op::While(_)
        | Op::Hook(_)
        | Op::RuntimeCall(_)
        | Op::UserBlock(_) => false,
    }
}

/// The number of elements from which an op is a kernel that XLA could fuse with others.
pub(super) const MIN_ELEMENTS: usize = 8 << 10;
/// The number of elements from which taking them is a kernel. XLA fuses fewer with what uses them.
const MIN_TAKEN: usize = 64 << 10;
/// The number of multiplications from which a product may be a kernel.
const MIN_PRODUCT: usize = 1 << 15;
/// The least size of a matrix of doubles that XLA multiplies slowly: products with a vector are limited by memory.
const MIN_WIDE: usize = 8;

/// Whether a product is a kernel. XLA is fast at one of floats of up to 32 bits, which it fuses with what follows.
fn is_kernel_product(x: [&TensorType; 2], axes_of_a: [&[Axis]; 2], out: &TensorType) -> bool {
    let sizes = x[0].shape.sizes();
    let [depth, count] = axes_of_a.map(|axes| axes.iter().map(|axis| sizes[axis.index()]).product::<usize>());
    let [rows, columns] = x.map(|ty| ty.size() / (depth * count));
    if out.size().saturating_mul(depth) < MIN_PRODUCT {
        return false;
    }
    match out.dtype {
        DType::F64 | DType::C64 | DType::C128 => rows.min(columns) >= MIN_WIDE,
        DType::F32 => count > 1,
        DType::Bool
        | DType::U2
        | DType::U4
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::S2
        | DType::S4
        | DType::S8
        | DType::S16
        | DType::S32
        | DType::S64
        | DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F16
        | DType::BF16 => false,
    }
}
