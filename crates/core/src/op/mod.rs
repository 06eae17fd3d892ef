//! The catalogue of operations: the ops that a node of a graph can have.
//!
//! `Op` has two levels: a variant for each form of operands and attributes, and small leaf enums inside. It is
//! deliberately not `#[non_exhaustive]`: each property of an op is one exhaustive match, so that the compiler lists
//! every match that a new op must extend.

mod block;
mod class;
mod collective;
mod control;
mod create;
mod elementwise;
mod examples;
mod fourier;
mod implicit;
mod index;
mod matrix;
mod order;
mod reduce;
mod rows;
mod shape;
mod traits;
mod window;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

pub use block::{Block, BlockTraits, CompositeBlock, CompositeTraits, UserBlockOp, Vectors};
pub use class::{ElementWise, Identity, OnScalars, OpClass, Primitive};
pub use collective::{AllReduceOp, Collective, CollectiveOp, DeviceGroups};
pub use control::{
    CondOp, CustomGradOp, CustomRules, FoldOp, HookOp, MemorySpace, RuntimeCallOp, WhileOp, WindowFoldOp,
};
pub use create::Literal;
pub use elementwise::{
    ArithmeticOp, BinaryOp, BinaryRule, BinaryTraits, BitsOp, BitwiseOp, ComparisonOp, Domain, ElementCost,
    FunctionOp, LogicalOp, OperandOrder, PartOp, Refused, RoundingOp, SignOp, TestOp, UnaryOp, UnaryRule,
    UnaryTraits,
};
pub use fourier::{Fft2Op, FftOp};
pub use implicit::{ImplicitOp, LinearMethod, LinearSolver};
pub use index::ScatterOp;
pub use matrix::{QrMode, Transform};
pub use order::Direction;
pub use reduce::{ArgOp, CumulativeOp, ReduceOp, TieBreak};
pub(crate) use rows::Row;
pub use shape::{Padding, Starts};
use traits::traits;
pub use traits::{CostClass, GradientFlow, PrimitiveTraits, VectorizeRule, View};
pub use window::{ConvOp, Window, WindowOp, WindowScatterOp};

use crate::dtype::DType;
use crate::error::Result;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::{Axis, AxisList, Name, Shape, Sizes, TensorType};

/// Declares a leaf enum with the names and the list of its variants.
macro_rules! catalogue {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$row:meta])* $variant:ident = $text:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$row])* $variant,)* }

        impl $name {
            /// Every variant, in the order of the catalogue.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The public name, the same in Rust, in Python, in graphs and in messages.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}
pub(crate) use catalogue;

/// A small float among the attributes of an op. Two are equal if their bits are equal.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance(pub f64);

impl PartialEq for Tolerance {
    fn eq(&self, other: &Tolerance) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Tolerance {}

impl Hash for Tolerance {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

rows::rows! {
    /// What a node computes. Operands are the node's inputs, in the order given here.
    ///
    /// Operands may differ in dtype and, where an op broadcasts, in shape. The node's type determines the dtype of
    /// the computation; the backend or the lowering converts and broadcasts the operands.
    pub enum Op: PrimitiveTraits<'_> {
        others: OpClass<'_> {
            /// An input of the region. The parameters come first, then the captures.
            Parameter {
                /// The position among parameters and captures.
                index: usize,
                /// The type that the caller must pass.
                ty: TensorType,
            } => OpClass::Parameter { index: *index, ty };
            /// A scalar constant of the program.
            Constant(scalar: Scalar) => OpClass::Constant(*scalar);
            /// A tensor constant of the program.
            Literal(literal: Literal) => OpClass::Literal(literal);

            /// `op(x)`.
            Unary(op: UnaryOp) => OpClass::element_wise(ElementWise::Unary(*op));
            /// `op(a, b)` with broadcasting.
            Binary(op: BinaryOp) => OpClass::element_wise(ElementWise::Binary(*op));
            /// `x` as another element type.
            AsType {
                /// The element type of the result.
                dtype: DType,
            } => OpClass::element_wise(ElementWise::AsType(*dtype));
            /// The bits of `x` read as another element type of the same width.
            Bitcast {
                /// The element type of the result.
                dtype: DType,
            } => OpClass::element_wise(ElementWise::Bitcast(*dtype));
            /// `(pred, a, b)`: `a` where `pred` is not zero, else `b`.
            Select => OpClass::element_wise(ElementWise::Select);
            /// `(x, lo, hi)`: `x` clamped to the bounds, which are scalars.
            Clip => OpClass::element_wise(ElementWise::Clip);

            /// A computation by the devices of a mesh together, each on its own block.
            Collective(op: CollectiveOp) => OpClass::Collective(op);
            /// A reduction by a function of two scalars.
            Fold(op: FoldOp) => OpClass::Fold(op);
            /// A reduction of windows by a function of two scalars.
            WindowFold(op: WindowFoldOp) => OpClass::WindowFold(op);
            /// Runs exactly one of several regions.
            Cond(op: CondOp) => OpClass::Cond(op);
            /// Repeats a region while another returns a value that is not zero.
            While(op: WhileOp) => OpClass::While(op);
            /// Values that carry their own gradient rule.
            CustomGrad(op: CustomGradOp) => OpClass::CustomGrad(op);
            /// Values that a condition defines, whose derivative is that of the implicit function.
            Implicit(op: ImplicitOp) => OpClass::Implicit(op);
            /// `x`, through which no gradient flows.
            StopGrad => OpClass::Identity(Identity::Constant);
            /// `x` with a name at which a graph may be cut.
            Mark {
                /// The name.
                name: Name,
            } => OpClass::Identity(Identity::Mark(name));
            /// `x`, in another memory of its device.
            Transfer {
                /// The memory.
                to: MemorySpace,
            } => OpClass::Identity(Identity::Transfer(*to));
            /// The operands. What is computed from the results is not merged with what is computed from the operands, and
            /// is computed when all operands are there.
            Barrier => OpClass::Barrier;
            /// The operands, which are also passed to a host function. An effect: never dropped, merged or reordered.
            Hook(op: HookOp) => OpClass::Hook(op);
            /// The results of a host function. An effect: never dropped, merged or reordered.
            RuntimeCall(op: RuntimeCallOp) => OpClass::RuntimeCall(op);
            /// A composite that a backend may run natively.
            Block(op: Block) => OpClass::Block(op);
            /// A composite that the user defines. A backend of the host language may run it natively.
            UserBlock(op: UserBlockOp) => OpClass::UserBlock(op);
        }
        units {}
        tuples {
            /// `(x, kernel)`: for each position of the kernel, the sum of products of its elements and the elements
            /// under it.
            Conv(op: Box<ConvOp>) = "conv" (x, kernel) => traits(Primitive::Contraction, CostClass::Convolution(op), GradientFlow::All)
                .vectorized_by(VectorizeRule::Conv(op));
        }
        structs {
            // create
            /// Indices along an axis, or flat indices.
            Iota = "iota" () {
                /// The shape of the result.
                result shape: Shape,
                /// The element type of the result.
                result dtype: DType,
                /// The axis to count along; `None` for the flat index.
                attribute axis: Option<Axis>,
            } => traits(Primitive::Creation, CostClass::Moves, GradientFlow::Nowhere);
            /// 1 where the last two indices are equal, else 0.
            Eye = "eye" () {
                /// The shape of the result, of rank 2 or more.
                result shape: Shape,
                /// The element type of the result.
                result dtype: DType,
            } => traits(Primitive::Creation, CostClass::Moves, GradientFlow::Nowhere);

            // shape
            /// The same elements in row-major order under another shape; also changes names.
            Reshape = "reshape" (x) {
                /// The shape of the result, names included.
                result shape: Shape,
            } => traits(Primitive::View, CostClass::Nothing, GradientFlow::All)
                .vectorized_by(VectorizeRule::Reshape(shape))
                .viewed_as(View::Reshape);
            /// `x` without axes of size 1.
            Squeeze = "squeeze" (x) {
                /// The axes to drop, ascending.
                attribute axes (ascending in x): AxisList,
            } => traits(Primitive::View, CostClass::Nothing, GradientFlow::All)
                .viewed_as(View::Reshape);
            /// `x` repeated along new axes and axes of size 1.
            Broadcast = "broadcast" (x) {
                /// The shape of the result, names included.
                attribute shape: Shape,
                /// The axis of the result for each axis of `x`, ascending.
                attribute axes: AxisList,
            } => traits(Primitive::Broadcast, CostClass::Moves, GradientFlow::All)
                .vectorized_by(VectorizeRule::Broadcast(shape, axes))
                .viewed_as(View::Broadcast(axes));
            /// `x` with its axes in another order.
            Transpose = "transpose" (x) {
                /// The axis of `x` that becomes axis i.
                attribute axes: AxisList,
            } => traits(Primitive::Movement, CostClass::Moves, GradientFlow::All)
                .vectorized_by(VectorizeRule::Transpose(axes))
                .viewed_as(View::Transpose(axes));
            /// `(x, value)`: `x` with `value` around and between its elements, or cropped.
            Pad = "pad" (x, value) {
                /// One entry for each axis.
                attribute config: SmallVec<[Padding; 4]>,
            } => traits(Primitive::Movement, CostClass::Moves, GradientFlow::All)
                .vectorized_by(VectorizeRule::Pad(config));
            /// `x` in reverse order along axes.
            Reverse = "reverse" (x) {
                /// The axes to reverse, ascending.
                attribute axes (ascending in x): AxisList,
            } => traits(Primitive::Movement, CostClass::Moves, GradientFlow::All)
                .viewed_as(View::Reverse(axes));
            /// The operands concatenated along an axis.
            Concatenate = "concatenate" (; tensors) {
                /// The axis along which the sizes add up.
                attribute axis: Axis,
            } => traits(Primitive::Movement, CostClass::Moves, GradientFlow::All);
            /// The operands stacked along a new axis.
            Stack = "stack" (; tensors) {
                /// The position of the new axis in the result.
                attribute axis (inserted in tensors): usize,
                /// Its name.
                result name: Option<Name>,
            } => traits(Primitive::Movement, CostClass::Moves, GradientFlow::All)
                .vectorized_by(VectorizeRule::Stack(*axis, name.as_ref()));
            /// A window of `x`. Operands: `x`, then one scalar per axis if the starts are dynamic.
            Slice = "slice" (x) {
                /// The start of the window.
                attribute starts: Starts,
                /// The number of elements that it spans, strides not counted.
                attribute lengths: Sizes,
                /// The step between the selected elements.
                attribute strides: Sizes,
            } => traits(Primitive::Selection, CostClass::Selects, GradientFlow::First(1))
                .vectorized_by(VectorizeRule::Slice { starts, lengths, strides })
                .viewed_as(View::Slice { starts, lengths, strides });
            /// `(x, update)`: `x` with a window overwritten; then one scalar per axis if the starts are dynamic.
            PutSlice = "put_slice" (x, update) {
                /// The start of the window.
                attribute starts (fitting in x): Starts,
            } => traits(Primitive::Update, CostClass::Moves, GradientFlow::First(2))
                .vectorized_by(VectorizeRule::PutSlice(starts));

            // reduce
            /// `x` reduced over axes.
            Reduce by
                /// The reduction.
                op: ReduceOp (x) {
                /// The axes, ascending.
                option axes (ascending in x): AxisList,
                /// Whether the axes are kept, with size 1.
                option keep_axes: bool,
            } => traits(Primitive::Reduction, CostClass::Reduces, op.flow());
            /// The index of an extreme element.
            ArgReduce by
                /// Which extreme.
                op: ArgOp (x) {
                /// Which of several equal elements is chosen.
                option tie_break: TieBreak,
                /// The axis; `None` for the flat index.
                option axis (valid in x): Option<Axis>,
                /// Whether the axis is kept, with size 1.
                option keep_axis: bool,
                /// The element type of the result.
                result dtype: DType,
            } => traits(Primitive::Positions, CostClass::Reduces, GradientFlow::Nowhere)
                .vectorized_by(VectorizeRule::ArgReduce {
                    op: *op,
                    axis: *axis,
                    keep_axis: *keep_axis,
                    tie_break: *tie_break,
                    dtype: *dtype,
                });

            // index
            /// `(x, indices)`: the elements of `x` at the positions in the last axis of `indices`, which has one
            /// entry for each of `axes`. Negative entries count from the end of their axis.
            Gather = "gather" (x, indices) {
                /// The axis of `x` for each entry of a position, ascending.
                option axes (ascending in x): AxisList,
            } => traits(Primitive::Selection, CostClass::Selects, GradientFlow::First(1))
                .vectorized_by(VectorizeRule::Gather(axes));
            /// `(x, indices, updates)`: `x` with the updates applied at the positions in the last axis of `indices`.
            /// Negative entries count from the end of their axis.
            Scatter by
                /// How an update changes the elements.
                op: ScatterOp (x, indices, updates) {
                /// The axis of `x` for each entry of a position, ascending.
                option axes (ascending in x): AxisList,
            } => traits(Primitive::Update, CostClass::Scatters(*op), GradientFlow::All)
                .vectorized_by(VectorizeRule::Scatter(*op, axes));

            // order
            /// `x` sorted along an axis.
            Sort = "sort" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// Which element comes first.
                option direction: Direction,
            } => traits(Primitive::Order, CostClass::Sorts(*axis), GradientFlow::All);
            /// The positions of the sorted elements before the sort.
            Argsort = "argsort" (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// Which element comes first.
                option direction: Direction,
                /// The element type of the result.
                result dtype: DType,
            } => traits(Primitive::Positions, CostClass::Sorts(*axis), GradientFlow::Nowhere);

            // window
            /// `x` reduced over each position of a window.
            Window by
                /// The reduction.
                op: WindowOp (x) {
                /// The window.
                attribute window (sliding in x): Box<Window>,
            } => traits(Primitive::Window, CostClass::Windows(window), GradientFlow::All);
            /// `(x, source, init)`: `init` everywhere, plus each element of `source`, added at the position of the
            /// extreme of its window in `x`.
            WindowScatter by
                /// Which extreme.
                op: WindowScatterOp (x, source, init) {
                /// The window.
                attribute window (sliding in x): Box<Window>,
            } => traits(Primitive::Window, CostClass::WindowScatters(window), GradientFlow::All)
                .vectorized_by(VectorizeRule::WindowScatter(*op, window));

            // fourier
            /// A discrete Fourier transform along an axis.
            Fft by
                /// The direction.
                op: FftOp (x) {
                /// The axis.
                option axis (valid in x): Axis,
                /// The length, to which `x` is cut or padded with zeros.
                option length: usize,
                /// Real and imaginary parts of the result below this may be set to 0.
                option eps: Tolerance,
            } => traits(Primitive::Transform, CostClass::Transforms { axis: *axis, length: *length }, GradientFlow::All);

            // linalg
            /// `(a, b)`: sums of products over contracted axes. The result has the batch axes first.
            Dot = "dot" (a, b at 3) {
                /// Axes of `a` that are summed over.
                attribute contract_a (distinct in a): AxisList,
                /// Batch axes of `a`, paired with those of `b`: 0..n in order.
                attribute batch_a (valid in a): AxisList,
                /// Axes of `b` that are summed over.
                attribute contract_b (distinct in b): AxisList,
                /// Batch axes of `b`: 0..n in order.
                attribute batch_b (valid in b): AxisList,
            } => traits(Primitive::Contraction, CostClass::Products(contract_a), GradientFlow::All)
                .vectorized_by(VectorizeRule::Dot { a: (contract_a, batch_a), b: (contract_b, batch_b) });
            /// `(a, b)`: the `x` of `t(a) x = b`, or of `x t(a) = b`, for triangular `a`.
            TriangularSolve = "triangular_solve" (a, b) {
                /// Whether the lower triangle of `a` is read, or the upper.
                option lower: bool,
                /// Whether `a` is on the left.
                option left_side: bool,
                /// The transform `t`.
                option transform_a: Transform,
            } => traits(Primitive::Solve, CostClass::Solves, GradientFlow::All);
        }
    }
}

/// The types of a node's outputs.
pub type Outputs = SmallVec<[TensorType; 1]>;

impl Op {
    /// Examples of ops and blocks that have a row, for operands of the type `x`, and the number of operands of each:
    /// for tests that cover all ops. An example need not be legal for its operands.
    #[doc(hidden)]
    pub fn examples(x: &TensorType) -> Vec<(Op, usize)> {
        let blocks = Block::row_examples(x).into_iter();
        let composites = CompositeBlock::row_examples(x).into_iter();
        let blocks = blocks.chain(composites.map(|(block, count)| (Block::Composite(block), count)));
        Op::row_examples(x)
            .into_iter()
            .chain(blocks.map(|(block, count)| (Op::Block(block), count)))
            .collect()
    }

    /// Whether running the op has an effect besides its outputs.
    pub fn has_effect(&self) -> bool {
        match self.class() {
            OpClass::Hook(_) | OpClass::RuntimeCall(_) => true,
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity(_)
            | OpClass::Barrier
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::CustomGrad(_)
            | OpClass::Implicit(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => self.regions().iter().any(|region| region.has_effects()),
        }
    }

    /// The op with each of its regions replaced by the result of `map`.
    ///
    /// # Errors
    /// The errors of `map`.
    pub fn map_regions(&self, mut map: impl FnMut(&Arc<Region>) -> Result<Arc<Region>>) -> Result<Op> {
        Ok(match self.class() {
            OpClass::Cond(op) => {
                Op::Cond(CondOp { branches: op.branches.iter().map(map).collect::<Result<_>>()? })
            }
            OpClass::While(op) => {
                let (cond, body) = (map(&op.cond)?, map(&op.body)?);
                Op::While(WhileOp { cond, body, ..*op })
            }
            OpClass::CustomGrad(op) => Op::CustomGrad(CustomGradOp { rules: op.rules.map(map)?, ..*op }),
            OpClass::Implicit(op) => {
                let condition = map(&op.condition)?;
                let preconditioner = op.preconditioner.as_ref().map(map).transpose()?;
                Op::Implicit(ImplicitOp { condition, preconditioner, ..op.clone() })
            }
            OpClass::Fold(op) => Op::Fold(FoldOp { fun: map(&op.fun)?, ..op.clone() }),
            OpClass::WindowFold(op) => Op::WindowFold(WindowFoldOp { fun: map(&op.fun)?, ..op.clone() }),
            OpClass::UserBlock(op) => Op::UserBlock(UserBlockOp { default: map(&op.default)?, ..op.clone() }),
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity(_)
            | OpClass::Barrier
            | OpClass::Collective(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_) => self.clone(),
        })
    }

    /// The regions inside the op.
    pub fn regions(&self) -> SmallVec<[&Arc<Region>; 2]> {
        match self.class() {
            OpClass::Cond(op) => op.branches.iter().collect(),
            OpClass::While(op) => [&op.cond, &op.body].into_iter().collect(),
            OpClass::CustomGrad(op) => op.rules.regions().collect(),
            OpClass::Implicit(op) => std::iter::once(&op.condition).chain(&op.preconditioner).collect(),
            OpClass::Fold(op) => std::iter::once(&op.fun).collect(),
            OpClass::WindowFold(op) => std::iter::once(&op.fun).collect(),
            OpClass::UserBlock(op) => std::iter::once(&op.default).collect(),
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity(_)
            | OpClass::Barrier
            | OpClass::Collective(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_) => SmallVec::new(),
        }
    }
}
