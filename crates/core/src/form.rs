//! The one map between an op and its public name, its operands and its attributes.

use crate::op::{Block, Op};

/// The public name of an op: the same in Rust, in Python, in graphs and in messages.
pub fn name(op: &Op) -> &'static str {
    match op {
        Op::Parameter { .. } => "parameter",
        Op::Constant(_) => "constant",
        Op::Literal(_) => "tensor",
        Op::Iota { .. } => "iota",
        Op::Eye { .. } => "eye",
        Op::Unary(op) => op.name(),
        Op::Binary(op) => op.name(),
        Op::AsType { .. } => "as_type",
        Op::Bitcast { .. } => "bitcast",
        Op::Select => "select",
        Op::Clip => "clip",
        Op::Reshape { .. } => "reshape",
        Op::Squeeze { .. } => "squeeze",
        Op::Broadcast { .. } => "broadcast",
        Op::Transpose { .. } => "transpose",
        Op::Pad { .. } => "pad",
        Op::Reverse { .. } => "reverse",
        Op::Concatenate { .. } => "concatenate",
        Op::Stack { .. } => "stack",
        Op::Slice { .. } => "slice",
        Op::PutSlice { .. } => "put_slice",
        Op::Reduce { op, .. } => op.name(),
        Op::ArgReduce { op, .. } => op.name(),
        Op::Dot { .. } => "dot",
        Op::Cond(_) => "cond",
        Op::While(_) => "while",
        Op::CustomGrad(_) => "custom_grad",
        Op::StopGrad => "stop_grad",
        Op::Mark { .. } => "mark",
        Op::Hook(_) => "hook",
        Op::Block(block) => block_name(block),
    }
}

/// The public name of a block.
pub fn block_name(block: &Block) -> &'static str {
    match block {
        Block::LogicalNot => "logical_not",
        Block::Phase => "phase",
        Block::Logsumexp { .. } => "logsumexp",
        Block::AllClose { .. } => "all_close",
    }
}
