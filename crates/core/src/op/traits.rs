//! The traits in the rows of ops.

use super::{ConvOp, Primitive, ScatterOp, Window};
use crate::shape::{Axis, AxisList};

/// The facts about a primitive with attributes, which its row declares.
#[derive(Clone, Copy, Debug)]
pub struct PrimitiveTraits<'a> {
    /// Which elements of the operands an element of the result is computed from.
    pub class: Primitive,
    /// The operations that the op takes and the bytes that it reads, as a class.
    pub work: Work<'a>,
    /// The operands that a gradient reaches.
    pub flow: Flow,
}

/// The entry of a row.
pub(super) const fn traits(class: Primitive, work: Work<'_>, flow: Flow) -> PrimitiveTraits<'_> {
    PrimitiveTraits { class, work, flow }
}

/// Classes of cost. An op reads its operands whole and writes its result, unless its class says otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// None: the result is stored where the operand is.
    Nothing,
    /// It computes nothing.
    Moves,
    /// It computes nothing, and reads as many elements of the first operand as it writes.
    Selects,
    /// One operation for each element of the operand.
    Reduces,
    /// An update is written, or added.
    Scatters(ScatterOp),
    /// The comparisons of a sort along an axis.
    Sorts(Axis),
    /// One operation for each element of each window.
    Windows(&'a Window),
    /// One operation for each element of each window, and one for each element that is added.
    WindowScatters(&'a Window),
    /// A multiplication and an addition for each element of the result and each element of the contracted axes of the
    /// first operand.
    Products(&'a AxisList),
    /// A multiplication and an addition for each element of the result and each element of a kernel.
    Convolution(&'a ConvOp),
    /// A fast Fourier transform for each line along an axis.
    Transforms {
        /// The axis.
        axis: Axis,
        /// The length of a line.
        length: usize,
    },
    /// A multiplication and an addition for each element of the result and each element of half a row of the matrix.
    Solves,
}

/// The operands that a gradient reaches from the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// None.
    Nowhere,
    /// The first ones, so many. The others are positions.
    First(usize),
    /// All.
    All,
}
