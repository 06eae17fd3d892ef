//! The traits that the rows of ops declare.

use super::{ConvOp, Primitive, ScatterOp, Window};
use crate::shape::{Axis, AxisList};

/// The properties of a primitive with attributes, as its row declares them.
#[derive(Clone, Copy, Debug)]
pub struct PrimitiveTraits<'a> {
    /// The elements of the operands on which an element of the result depends.
    pub class: Primitive,
    /// The cost class: the operations that the op performs and the bytes that it reads.
    pub work: CostClass<'a>,
    /// The operands to which gradients propagate.
    pub flow: GradientFlow,
}

/// Constructs the traits of a row.
pub(super) const fn traits(class: Primitive, work: CostClass<'_>, flow: GradientFlow) -> PrimitiveTraits<'_> {
    PrimitiveTraits { class, work, flow }
}

/// Cost classes. An op reads all of its operands and writes its result, unless its class says otherwise.
#[derive(Clone, Copy, Debug)]
pub enum CostClass<'a> {
    /// No cost: the result is the operand's memory.
    Nothing,
    /// The op moves elements without arithmetic.
    Moves,
    /// The op moves elements without arithmetic. It reads as many elements of the first operand as it writes.
    Selects,
    /// One operation for each element of the operand.
    Reduces,
    /// The op writes or adds an update.
    Scatters(ScatterOp),
    /// The comparisons of a sort along an axis.
    Sorts(Axis),
    /// One operation for each element of each window.
    Windows(&'a Window),
    /// One operation for each element of each window, and one for each element that is added.
    WindowScatters(&'a Window),
    /// A multiplication and an addition for each pair of an element of the result and an element of the contracted
    /// axes of the first operand.
    Products(&'a AxisList),
    /// A multiplication and an addition for each pair of an element of the result and an element of a kernel.
    Convolution(&'a ConvOp),
    /// A fast Fourier transform for each line along an axis.
    Transforms {
        /// The axis.
        axis: Axis,
        /// The length of a line.
        length: usize,
    },
    /// A multiplication and an addition for each pair of an element of the result and an element of half a row of the
    /// matrix.
    Solves,
}

/// The operands to which gradients propagate from the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientFlow {
    /// None.
    Nowhere,
    /// The first n operands. The others are positions.
    First(usize),
    /// All.
    All,
}
