//! Classes of ops for passes, backends and compilers: the properties that several of them need, declared once.

use super::{
    BinaryOp, Block, CollectiveOp, CondOp, CostClass, CustomGradOp, ElementCost, FoldOp, GradientFlow,
    HookOp, ImplicitOp, Literal, MemorySpace, Op, Row, RuntimeCallOp, UnaryOp, UserBlockOp, View, WhileOp,
    WindowFoldOp,
};
use crate::dtype::DType;
use crate::scalar::Scalar;
use crate::shape::{Name, TensorType};

/// An op, classified by how it is run.
#[derive(Clone, Copy, Debug)]
pub enum OpClass<'a> {
    /// An input of the region.
    Parameter {
        /// The position among parameters and captures.
        index: usize,
        /// The type that the caller must pass.
        ty: &'a TensorType,
    },
    /// A scalar constant of the program.
    Constant(Scalar),
    /// A tensor constant of the program.
    Literal(&'a Literal),
    /// A backend computes the result from the elements of the operands.
    Primitive(Primitive),
    /// The result is the operand.
    Identity(Identity<'a>),
    /// The results are the operands.
    Barrier,
    /// The devices of a mesh compute the result together.
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
    /// Values that a condition defines.
    Implicit(&'a ImplicitOp),
    /// Operands that are passed to a host function.
    Hook(&'a HookOp),
    /// Results of a host function.
    RuntimeCall(&'a RuntimeCallOp),
    /// A composite of the catalogue.
    Block(&'a Block),
    /// A composite that the user defines.
    UserBlock(&'a UserBlockOp),
}

/// What an op means whose result is its operand.
#[derive(Clone, Copy, Debug)]
pub enum Identity<'a> {
    /// No gradient flows through it.
    Constant,
    /// A name at which a graph may be cut.
    Mark(&'a Name),
    /// It lies in another memory.
    Transfer(MemorySpace),
}

/// The elements of the operands on which an element of a primitive's result depends.
#[derive(Clone, Copy, Debug)]
pub enum Primitive {
    /// None: the op's attributes determine the result.
    Creation,
    /// The elements in the same position.
    ElementWise(ElementWise),
    /// One element; the row-major order stays the same.
    View,
    /// One element, which may be repeated; the row-major order stays the same.
    Broadcast,
    /// One element, in a position that the op's attributes determine.
    Movement,
    /// One element, in a position that the op's attributes and operands determine.
    Selection,
    /// The element of the first operand in the same position, or the element of another operand that is written
    /// there.
    Update,
    /// All elements along some axes.
    Reduction,
    /// All elements along an axis, which are reordered.
    Order,
    /// All elements along an axis; the result is positions.
    Positions,
    /// The elements in a window.
    Window,
    /// Products of elements of two operands, summed.
    Contraction,
    /// All elements along an axis, by a Fourier transform.
    Transform,
    /// All elements of a matrix.
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
    /// The cost of one element.
    ///
    /// ```
    /// use defn_core::op::{ElementCost, ElementWise, UnaryOp};
    /// assert_eq!(ElementWise::Unary(UnaryOp::SIN).cost(), ElementCost::Costly);
    /// assert_eq!(ElementWise::Select.cost(), ElementCost::Cheap);
    /// ```
    pub fn cost(self) -> ElementCost {
        match self {
            ElementWise::Unary(op) => op.traits().cost,
            ElementWise::Binary(op) => op.traits().cost,
            ElementWise::AsType(_) | ElementWise::Bitcast(_) | ElementWise::Select | ElementWise::Clip => {
                ElementCost::Cheap
            }
        }
    }
}

/// What an op computes on scalars, in a function that is applied to elements.
#[derive(Clone, Copy, Debug)]
pub enum OnScalars<'a> {
    /// An input of the function, at this position.
    Input(usize),
    /// A constant.
    Constant(Scalar),
    /// The operand: scalars keep their shape and their elements.
    Operand,
    /// An element-wise op of the operands.
    ElementWise(ElementWise),
    /// A composite of the catalogue.
    Block(&'a Block),
    /// Something else.
    Other,
}

impl ElementWise {
    /// The number of operands.
    pub const fn operand_count(self) -> usize {
        match self {
            ElementWise::Unary(_) | ElementWise::AsType(_) | ElementWise::Bitcast(_) => 1,
            ElementWise::Binary(_) => 2,
            ElementWise::Select | ElementWise::Clip => 3,
        }
    }

    /// The operands whose memory the result may reuse, in order of preference.
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
    /// The operands whose memory the result may reuse, in order of preference. An update may reuse that of its first
    /// operand if operand and result have the same dtype.
    pub const fn in_place(&self) -> &'static [usize] {
        match self.class() {
            OpClass::Primitive(Primitive::ElementWise(op)) => op.in_place(),
            OpClass::Primitive(Primitive::View | Primitive::Update) | OpClass::Identity(_) => &[0],
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
            | OpClass::Implicit(_)
            | OpClass::Barrier
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => &[],
        }
    }

    /// What the op computes on scalars.
    #[inline]
    pub const fn on_scalars(&self) -> OnScalars<'_> {
        match self.class() {
            OpClass::Parameter { index, .. } => OnScalars::Input(index),
            OpClass::Constant(scalar) => OnScalars::Constant(scalar),
            OpClass::Identity(_) | OpClass::Primitive(Primitive::View | Primitive::Broadcast) => {
                OnScalars::Operand
            }
            OpClass::Primitive(Primitive::ElementWise(op)) => OnScalars::ElementWise(op),
            OpClass::Block(block) => OnScalars::Block(block),
            OpClass::Primitive(
                Primitive::Creation
                | Primitive::Movement
                | Primitive::Selection
                | Primitive::Update
                | Primitive::Reduction
                | Primitive::Order
                | Primitive::Positions
                | Primitive::Window
                | Primitive::Contraction
                | Primitive::Transform
                | Primitive::Solve,
            )
            | OpClass::Literal(_)
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::CustomGrad(_)
            | OpClass::Implicit(_)
            | OpClass::Barrier
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::UserBlock(_) => OnScalars::Other,
        }
    }

    /// The view of its first operand that the op's result is, if its elements are the operand's.
    pub const fn view(&self) -> Option<View<'_>> {
        match self.row() {
            Row::Declared(traits) => traits.view,
            Row::Other(_) => None,
        }
    }

    /// The cost class of a primitive that is not element-wise.
    pub const fn work(&self) -> Option<CostClass<'_>> {
        match self.row() {
            Row::Declared(traits) => Some(traits.work),
            Row::Other(_) => None,
        }
    }

    /// The operands of a primitive that is not element-wise to which gradients propagate.
    pub const fn flow(&self) -> Option<GradientFlow> {
        match self.row() {
            Row::Declared(traits) => Some(traits.flow),
            Row::Other(_) => None,
        }
    }

    /// The class of the op.
    #[inline]
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
