//! What an op is to a cut.

use crate::op::{Op, OpClass};

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
    match op.class() {
        OpClass::Parameter { .. } => Role::Input,
        OpClass::Constant(_) | OpClass::Literal(_) => Role::Written,
        OpClass::Cond(_) | OpClass::While(_) => Role::Whole,
        OpClass::Primitive(_)
        | OpClass::Identity { .. }
        | OpClass::Collective(_)
        | OpClass::Fold(_)
        | OpClass::WindowFold(_)
        | OpClass::CustomGrad(_)
        | OpClass::Hook(_)
        | OpClass::RuntimeCall(_)
        | OpClass::Block(_)
        | OpClass::UserBlock(_) => Role::Computes,
    }
}
