//! What an op is to passes, backends and compilers: the facts that many of them ask for, declared once.

use super::{
    BinaryOp, Block, CollectiveOp, CondOp, CustomGradOp, FoldOp, HookOp, Literal, Op, RuntimeCallOp, UnaryOp,
    UserBlockOp, WhileOp, WindowFoldOp,
};
use crate::dtype::DType;
use crate::scalar::Scalar;
use crate::shape::TensorType;

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
    Identity,
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
    /// One, in a position that follows from the op's attributes and from starts.
    Movement,
    /// That in the same position of the first operand, or one of another where that is written into the first.
    Update,
    /// One, in a position that an operand says.
    Indexing,
    /// All along some axes.
    Reduction,
    /// All along an axis, in another order.
    Sort,
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
            OpClass::Primitive(Primitive::View | Primitive::Update)
            | OpClass::Identity
            | OpClass::Block(Block::Log2 | Block::Log10) => &[0],
            OpClass::Primitive(
                Primitive::Creation
                | Primitive::Movement
                | Primitive::Indexing
                | Primitive::Reduction
                | Primitive::Sort
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

    /// The op by what it takes to run it.
    pub const fn class(&self) -> OpClass<'_> {
        OpClass::Primitive(match self {
            Op::Parameter { index, ty } => return OpClass::Parameter { index: *index, ty },
            Op::Constant(scalar) => return OpClass::Constant(*scalar),
            Op::Literal(literal) => return OpClass::Literal(literal),
            Op::StopGrad | Op::Mark { .. } => return OpClass::Identity,
            Op::Collective(op) => return OpClass::Collective(op),
            Op::Fold(op) => return OpClass::Fold(op),
            Op::WindowFold(op) => return OpClass::WindowFold(op),
            Op::Cond(op) => return OpClass::Cond(op),
            Op::While(op) => return OpClass::While(op),
            Op::CustomGrad(op) => return OpClass::CustomGrad(op),
            Op::Hook(op) => return OpClass::Hook(op),
            Op::RuntimeCall(op) => return OpClass::RuntimeCall(op),
            Op::Block(op) => return OpClass::Block(op),
            Op::UserBlock(op) => return OpClass::UserBlock(op),
            Op::Iota { .. } | Op::Eye { .. } => Primitive::Creation,
            Op::Unary(op) => Primitive::ElementWise(ElementWise::Unary(*op)),
            Op::Binary(op) => Primitive::ElementWise(ElementWise::Binary(*op)),
            Op::AsType { dtype } => Primitive::ElementWise(ElementWise::AsType(*dtype)),
            Op::Bitcast { dtype } => Primitive::ElementWise(ElementWise::Bitcast(*dtype)),
            Op::Select => Primitive::ElementWise(ElementWise::Select),
            Op::Clip => Primitive::ElementWise(ElementWise::Clip),
            Op::Reshape { .. } | Op::Squeeze { .. } => Primitive::View,
            Op::Broadcast { .. }
            | Op::Transpose { .. }
            | Op::Pad { .. }
            | Op::Reverse { .. }
            | Op::Concatenate { .. }
            | Op::Stack { .. }
            | Op::Slice { .. } => Primitive::Movement,
            Op::Gather { .. } => Primitive::Indexing,
            Op::PutSlice { .. } | Op::Scatter { .. } => Primitive::Update,
            Op::Reduce { .. } | Op::ArgReduce { .. } => Primitive::Reduction,
            Op::Sort { .. } | Op::Argsort { .. } => Primitive::Sort,
            Op::Window { .. } | Op::WindowScatter { .. } => Primitive::Window,
            Op::Dot { .. } | Op::Conv(_) => Primitive::Contraction,
            Op::Fft { .. } => Primitive::Transform,
            Op::TriangularSolve { .. } => Primitive::Solve,
        })
    }
}
