//! What an op is to passes, backends and compilers: the facts that many of them ask for, declared once.

use super::{
    BinaryOp, Block, CollectiveOp, CondOp, CustomGradOp, Flow, FoldOp, HookOp, Literal, Op, Row,
    RuntimeCallOp, UnaryOp, UserBlockOp, WhileOp, WindowFoldOp, Work,
};
use crate::dtype::DType;
use crate::scalar::Scalar;
use crate::shape::{Name, TensorType};

/// An op by what it takes to run it.
#[derive(Clone, Copy, Debug)]
pub enum OpClass<'a> {
    /// An input of the region.
    Parameter {
        /// The position among parameters and captures.
        index: usize,
        /// The type that the caller has to pass.
        ty: &'a TensorType,
    },
    /// A scalar written in the program.
    Constant(Scalar),
    /// A tensor written in the program.
    Literal(&'a Literal),
    /// A backend computes it from the elements of its operands.
    Primitive(Primitive),
    /// Its operand.
    Identity {
        /// The name under which it may be found.
        mark: Option<&'a Name>,
    },
    /// The devices of a mesh compute it together.
    Collective(&'a CollectiveOp),
    /// A reduction by a function of two scalars.
    Fold(&'a FoldOp),
    /// A reduction of windows by a function of two scalars.
    WindowFold(&'a WindowFoldOp),
    /// A branch.
    Cond(&'a CondOp),
    /// A loop.
    While(&'a WhileOp),
    /// Values that carry their own gradient rule.
    CustomGrad(&'a CustomGradOp),
    /// Operands that a host function is shown.
    Hook(&'a HookOp),
    /// Results of a host function.
    RuntimeCall(&'a RuntimeCallOp),
    /// A composite of the catalogue.
    Block(&'a Block),
    /// A composite of the user's.
    UserBlock(&'a UserBlockOp),
}

/// Which elements of the operands an element of a primitive's result is computed from.
#[derive(Clone, Copy, Debug)]
pub enum Primitive {
    /// None: the result follows from the op's attributes.
    Creation,
    /// Those in the same position.
    ElementWise(ElementWise),
    /// One, and all of them are in the same row-major order.
    View,
    /// One, of which there may be several copies, in the same row-major order.
    Broadcast,
    /// One, in a position that follows from the op's attributes.
    Movement,
    /// One, in a position that follows from the op's attributes and from operands.
    Selection,
    /// That in the same position of the first operand, or one of another where that is written into the first.
    Update,
    /// All along some axes.
    Reduction,
    /// All along an axis, in another order.
    Order,
    /// All along an axis, of which the result is positions.
    Positions,
    /// Those in a window.
    Window,
    /// Products of elements of two operands, summed.
    Contraction,
    /// All along an axis, by a Fourier transform.
    Transform,
    /// All of a matrix.
    Solve,
}

/// An element-wise primitive.
#[derive(Clone, Copy, Debug)]
pub enum ElementWise {
    /// `op(x)`.
    Unary(UnaryOp),
    /// `op(a, b)`.
    Binary(BinaryOp),
    /// `x` as another element type.
    AsType(DType),
    /// The bits of `x` read as another element type.
    Bitcast(DType),
    /// `(pred, a, b)`.
    Select,
    /// `(x, lo, hi)`.
    Clip,
}

impl ElementWise {
    /// How many operands there are.
    pub const fn operand_count(self) -> usize {
        match self {
            ElementWise::Unary(_) | ElementWise::AsType(_) | ElementWise::Bitcast(_) => 1,
            ElementWise::Binary(_) => 2,
            ElementWise::Select | ElementWise::Clip => 3,
        }
    }

    /// The operands in whose memory the result may be written, the best first.
    pub const fn in_place(self) -> &'static [usize] {
        match self {
            ElementWise::Unary(_) | ElementWise::AsType(_) | ElementWise::Bitcast(_) | ElementWise::Clip => {
                &[0]
            }
            ElementWise::Binary(_) => &[0, 1],
            ElementWise::Select => &[1, 2, 0],
        }
    }
}

impl Op {
    /// The operands in whose memory the result may be written, the best first. That of a write into a part of an operand
    /// may where both have one dtype.
    pub const fn in_place(&self) -> &'static [usize] {
        match self.class() {
            OpClass::Primitive(Primitive::ElementWise(op)) => op.in_place(),
            OpClass::Primitive(Primitive::View | Primitive::Update) | OpClass::Identity { .. } => &[0],
            OpClass::Block(block) if block.is_element_wise() => &[0],
            OpClass::Primitive(
                Primitive::Creation
                | Primitive::Broadcast
                | Primitive::Movement
                | Primitive::Selection
                | Primitive::Reduction
                | Primitive::Order
                | Primitive::Positions
                | Primitive::Window
                | Primitive::Contraction
                | Primitive::Transform
                | Primitive::Solve,
            )
            | OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::CustomGrad(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => &[],
        }
    }

    /// The class of cost of a primitive that is not element-wise.
    pub const fn work(&self) -> Option<Work<'_>> {
        match self.row() {
            Row::Declared(traits) => Some(traits.work),
            Row::Other(_) => None,
        }
    }

    /// The operands of a primitive that is not element-wise that a gradient reaches.
    pub const fn flow(&self) -> Option<Flow> {
        match self.row() {
            Row::Declared(traits) => Some(traits.flow),
            Row::Other(_) => None,
        }
    }

    /// The op by what it takes to run it.
    pub const fn class(&self) -> OpClass<'_> {
        match self.row() {
            Row::Declared(traits) => OpClass::Primitive(traits.class),
            Row::Other(class) => class,
        }
    }
}

impl OpClass<'_> {
    pub(super) const fn element_wise(op: ElementWise) -> Self {
        OpClass::Primitive(Primitive::ElementWise(op))
    }
}
