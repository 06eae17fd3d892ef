//! The role of an op when its graph is cut.

use crate::op::{Op, OpClass};

/// How a cut treats a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An input; it belongs to no stage.
    Input,
    /// A constant: every stage that uses it has a copy.
    CopiedConstant,
    /// A computation; it belongs to one stage.
    Computes,
    /// A loop or a branch; it is a computation that is cut out as a whole.
    Whole,
}

/// The role of an op.
pub(crate) fn role(op: &Op) -> Role {
    match op.class() {
        OpClass::Parameter { .. } => Role::Input,
        OpClass::Constant(_) | OpClass::Literal(_) => Role::CopiedConstant,
        OpClass::Cond(_) | OpClass::While(_) => Role::Whole,
        OpClass::Primitive(_)
        | OpClass::Identity(_)
        | OpClass::Barrier
        | OpClass::Collective(_)
        | OpClass::Fold(_)
        | OpClass::WindowFold(_)
        | OpClass::CustomGrad(_)
        | OpClass::Implicit(_)
        | OpClass::Hook(_)
        | OpClass::RuntimeCall(_)
        | OpClass::Block(_)
        | OpClass::UserBlock(_) => Role::Computes,
    }
}
