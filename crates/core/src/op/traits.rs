//! The traits that the rows of ops declare.

use smallvec::SmallVec;

use super::{ArgOp, ConvOp, Padding, Primitive, ScatterOp, Starts, TieBreak, Window, WindowScatterOp};
use crate::dtype::DType;
use crate::shape::{Axis, AxisList, Name, Shape, Sizes};

/// The properties of a primitive with attributes, as its row declares them.
#[derive(Clone, Copy, Debug)]
pub struct PrimitiveTraits<'a> {
    /// The elements of the operands on which an element of the result depends.
    pub class: Primitive,
    /// The cost class: the operations that the op performs and the bytes that it reads.
    pub work: CostClass<'a>,
    /// The operands to which gradients propagate.
    pub flow: GradientFlow,
    /// How the op is rewritten for vectorized operands.
    pub vectorize: VectorizeRule<'a>,
    /// The view of the first operand that the result is, if its elements are the operand's.
    pub view: Option<View<'a>>,
}

/// Constructs the traits of a row, with [`VectorizeRule::ShiftAxes`] and without a view.
pub(super) const fn traits(class: Primitive, work: CostClass<'_>, flow: GradientFlow) -> PrimitiveTraits<'_> {
    PrimitiveTraits { class, work, flow, vectorize: VectorizeRule::ShiftAxes, view: None }
}

impl<'a> PrimitiveTraits<'a> {
    /// The traits with another rule for vectorized operands.
    pub(super) const fn vectorized_by(self, vectorize: VectorizeRule<'a>) -> PrimitiveTraits<'a> {
        PrimitiveTraits { vectorize, ..self }
    }

    /// The traits of an op whose result is a view.
    pub(super) const fn viewed_as(self, view: View<'a>) -> PrimitiveTraits<'a> {
        PrimitiveTraits { view: Some(view), ..self }
    }
}

/// Views: the ways in which an op's result may be the elements of its first operand in the operand's own memory.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// The same elements in row-major order under the shape of the result.
    Reshape,
    /// Each axis of the operand is an axis of the result, at these positions; other axes repeat elements.
    Broadcast(&'a AxisList),
    /// The axes in this order.
    Transpose(&'a AxisList),
    /// Reverse order along these axes.
    Reverse(&'a AxisList),
    /// A window.
    Slice {
        /// The start of the window.
        starts: &'a Starts,
        /// The number of elements that it spans, strides not counted.
        lengths: &'a Sizes,
        /// The step between the selected elements.
        strides: &'a Sizes,
    },
}

/// The rules by which an op on vectorized operands becomes plain ops on operands whose leading axes are the
/// vectorized ones. A rule other than the first has the attributes of the ops that follow it.
#[derive(Clone, Copy, Debug)]
pub enum VectorizeRule<'a> {
    /// All operands are broadcast to all vectorized axes, and attributes that name axes still name the same axes.
    ShiftAxes,
    /// The shape of the result is extended.
    Reshape(&'a Shape),
    /// The shape of the result is extended, and the vectorized axes stay in front.
    Broadcast(&'a Shape, &'a AxisList),
    /// The vectorized axes stay in front.
    Transpose(&'a AxisList),
    /// Padding values may differ between positions.
    Pad(&'a SmallVec<[Padding; 4]>),
    /// The position of the new axis is shifted.
    Stack(usize, Option<&'a Name>),
    /// Starts may differ between positions.
    Slice {
        /// The start of the window.
        starts: &'a Starts,
        /// The number of elements that it spans, strides not counted.
        lengths: &'a Sizes,
        /// The step between the selected elements.
        strides: &'a Sizes,
    },
    /// Starts may differ between positions.
    PutSlice(&'a Starts),
    /// A flat index refers to the inner elements.
    ArgReduce {
        /// Which extreme.
        op: ArgOp,
        /// The axis; `None` for the flat index.
        axis: Option<Axis>,
        /// Whether the axis is kept, with size 1.
        keep_axis: bool,
        /// Which of several equal elements is chosen.
        tie_break: TieBreak,
        /// The element type of the result.
        dtype: DType,
    },
    /// Indices may differ between positions.
    Gather(&'a AxisList),
    /// Indices may differ between positions.
    Scatter(ScatterOp, &'a AxisList),
    /// The initial value is the same for all positions.
    WindowScatter(WindowScatterOp, &'a Window),
    /// The vectorized axes become part of the batch, the channels or the groups.
    Conv(&'a ConvOp),
    /// The vectorized axes become batch axes or axes of the result.
    Dot {
        /// The contracted and the batch axes of the first operand.
        a: (&'a AxisList, &'a AxisList),
        /// Those of the second operand.
        b: (&'a AxisList, &'a AxisList),
    },
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
