//! What an op is to a cut.

use crate::op::Op;

/// What becomes of a node when its graph is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is an input, and belongs to no stage.
    Input,
    /// It is written in the program: every stage that uses it has its own.
    Written,
    /// It computes, and belongs to one stage.
    Computes,
    /// It is a loop or a branch, which computes and is cut out whole.
    Whole,
}

/// The role of an op.
pub(crate) fn role(op: &Op) -> Role {
    match op {
        Op::Parameter { .. } => Role::Input,
        Op::Constant(_) | Op::Literal(_) => Role::Written,
        Op::Cond(_) | Op::While(_) => Role::Whole,
        Op::Iota { .. }
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
        | Op::Dot { .. }
        | Op::Gather { .. }
        | Op::Scatter { .. }
        | Op::Sort { .. }
        | Op::Argsort { .. }
        | Op::Window { .. }
        | Op::WindowScatter { .. }
        | Op::Conv(_)
        | Op::Fft { .. }
        | Op::TriangularSolve { .. }
        | Op::Collective(_)
        | Op::Fold(_)
        | Op::WindowFold(_)
        | Op::CustomGrad(_)
        | Op::StopGrad
        | Op::Mark { .. }
        | Op::Hook(_)
        | Op::RuntimeCall(_)
        | Op::Block(_)
        | Op::UserBlock(_) => Role::Computes,
    }
}
