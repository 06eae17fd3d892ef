//! The catalogue of operations: what a node of a graph can be.
//!
//! `Op` has two levels: a variant for each form of operands and attributes, and small leaf enums inside.
//! It is deliberately not `#[non_exhaustive]`: every question that an op must answer is one exhaustive
//! match, so that the compiler lists what a new op lacks.

mod block;
mod class;
mod collective;
mod control;
mod create;
mod elementwise;
mod fourier;
mod index;
mod linalg;
mod order;
mod reduce;
mod shape;
mod window;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

pub use block::{Block, UserBlockOp};
pub use class::{ElementWise, OpClass, Primitive};
pub use collective::{AllReduceOp, Collective, CollectiveOp, Over};
pub use control::{CondOp, CustomGradOp, FoldOp, HookOp, RuntimeCallOp, WhileOp, WindowFoldOp};
pub use create::Literal;
pub use elementwise::{
    ArithmeticOp, BinaryOp, BinaryRule, BinaryTraits, BitsOp, BitwiseOp, ComparisonOp, Domain, ElementCost,
    FunctionOp, LogicalOp, OperandOrder, PartOp, Refused, RoundingOp, SignOp, TestOp, UnaryOp, UnaryRule,
    UnaryTraits,
};
pub use fourier::FftOp;
pub use index::ScatterOp;
pub use linalg::{QrMode, Transform};
pub use order::Direction;
pub use reduce::{ArgOp, CumulativeOp, ReduceOp, TieBreak};
pub use shape::{Padding, Starts};
pub use window::{ConvOp, Window, WindowOp, WindowScatterOp};

use crate::dtype::DType;
use crate::error::Result;
use crate::region::Region;
use crate::scalar::Scalar;
use crate::shape::{Axis, AxisList, Name, Shape, Sizes, TensorType};

/// Makes a leaf enum with the names and the list of its variants.
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

/// A small float among the attributes of an op, equal to another by its bits.
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

/// What a node computes. Operands are the node's inputs, in the order given here.
///
/// Operands may differ in dtype and, where an op broadcasts, in shape: the node's type says what the
/// op computes in, and whoever runs or lowers the node converts and broadcasts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    // create
    /// An input of the region: the parameters first, the captures after them.
    Parameter {
        /// The position among both.
        index: usize,
        /// The type that the caller has to pass.
        ty: TensorType,
    },
    /// A scalar written in the program.
    Constant(Scalar),
    /// A tensor written in the program.
    Literal(Literal),
    /// Counts along an axis, or over the flat index.
    Iota {
        /// The shape of the result.
        shape: Shape,
        /// The element type of the result.
        dtype: DType,
        /// The axis to count along; the flat index where there is none.
        axis: Option<Axis>,
    },
    /// 1 where the last two indices agree, else 0.
    Eye {
        /// The shape of the result, of rank 2 or more.
        shape: Shape,
        /// The element type of the result.
        dtype: DType,
    },

    // elementwise
    /// `op(x)`.
    Unary(UnaryOp),
    /// `op(a, b)` with broadcasting.
    Binary(BinaryOp),
    /// `x` as another element type.
    AsType {
        /// The element type of the result.
        dtype: DType,
    },
    /// The bits of `x` read as another element type of the same width.
    Bitcast {
        /// The element type of the result.
        dtype: DType,
    },
    /// `(pred, a, b)`: `a` where `pred` is not zero, else `b`.
    Select,
    /// `(x, lo, hi)`: `x` moved into the bounds, which are scalars.
    Clip,

    // shape
    /// The same elements in row-major order under another shape; also changes names.
    Reshape {
        /// The shape of the result, names included.
        shape: Shape,
    },
    /// `x` without axes of size 1.
    Squeeze {
        /// The axes to drop, ascending.
        axes: AxisList,
    },
    /// `x` repeated along new axes and axes of size 1.
    Broadcast {
        /// The shape of the result, names included.
        shape: Shape,
        /// Where each axis of `x` goes, ascending.
        axes: AxisList,
    },
    /// `x` with its axes in another order.
    Transpose {
        /// The axis of `x` that becomes axis i.
        axes: AxisList,
    },
    /// `(x, value)`: `x` with `value` around and between its elements, or cropped.
    Pad {
        /// One entry for each axis.
        config: SmallVec<[Padding; 4]>,
    },
    /// `x` read backwards.
    Reverse {
        /// The axes to reverse, ascending.
        axes: AxisList,
    },
    /// The operands one after the other.
    Concatenate {
        /// The axis whose sizes add up.
        axis: Axis,
    },
    /// The operands side by side along a new axis.
    Stack {
        /// The position of the new axis in the result.
        axis: usize,
        /// Its name.
        name: Option<Name>,
    },
    /// A window of `x`. Operands: `x`, then one scalar per axis where the starts are dynamic.
    Slice {
        /// Where the window begins.
        starts: Starts,
        /// How many elements it spans, strides not counted.
        lengths: Sizes,
        /// The distance of the elements taken.
        strides: Sizes,
    },
    /// `(x, update)`: `x` with a window overwritten; then one scalar per axis where the starts are dynamic.
    PutSlice {
        /// Where the window begins.
        starts: Starts,
    },

    // reduce
    /// `x` folded over axes.
    Reduce {
        /// The fold.
        op: ReduceOp,
        /// The axes, ascending.
        axes: AxisList,
        /// Whether the axes stay, with size 1.
        keep_axes: bool,
    },
    /// The index of an extreme element.
    ArgReduce {
        /// Which extreme.
        op: ArgOp,
        /// Along which axis; over the flat index where there is none.
        axis: Option<Axis>,
        /// Whether the axis stays, with size 1.
        keep_axis: bool,
        /// Which of several equal elements.
        tie_break: TieBreak,
        /// The element type of the result.
        dtype: DType,
    },

    // index
    /// `(x, indices)`: `x` at the positions that the last axis of `indices` holds, one entry for each of `axes`. Entries
    /// below 0 count from the end of their axis.
    Gather {
        /// The axes that the entries of a position are along, ascending.
        axes: AxisList,
    },
    /// `(x, indices, updates)`: `x` with the updates at the positions that the rows of `indices` hold. Entries below 0
    /// count from the end of their axis.
    Scatter {
        /// What becomes of the elements there.
        op: ScatterOp,
        /// The axes that the entries of a position are along, ascending.
        axes: AxisList,
    },

    // order
    /// `x` in order along an axis.
    Sort {
        /// The axis.
        axis: Axis,
        /// Which element comes first.
        direction: Direction,
    },
    /// Where the elements in order come from.
    Argsort {
        /// The axis.
        axis: Axis,
        /// Which element comes first.
        direction: Direction,
        /// The element type of the result.
        dtype: DType,
    },

    // window
    /// `x` with one element for each place of a window.
    Window {
        /// What is made of the elements in it.
        op: WindowOp,
        /// The window.
        window: Window,
    },
    /// `(x, source, init)`: `init` everywhere, and each element of `source` added where the extreme of its
    /// window in `x` is.
    WindowScatter {
        /// Which extreme.
        op: WindowScatterOp,
        /// The window.
        window: Window,
    },
    /// `(x, kernel)`: sums of products of a kernel and what it lies over.
    Conv(ConvOp),

    // fourier
    /// A discrete Fourier transform along an axis.
    Fft {
        /// The direction.
        op: FftOp,
        /// The axis.
        axis: Axis,
        /// The length, to which `x` is cut or filled up with zeros.
        length: usize,
        /// Parts of the result smaller than this may be 0.
        eps: Tolerance,
    },

    // linalg
    /// `(a, b)`: sums of products over contracted axes, batch axes first.
    Dot {
        /// Axes of `a` that are summed over.
        contract_a: AxisList,
        /// Axes of `a` that are kept together with those of `b`: 0..n in order.
        batch_a: AxisList,
        /// Axes of `b` that are summed over.
        contract_b: AxisList,
        /// Axes of `b`: 0..n in order.
        batch_b: AxisList,
    },
    /// `(a, b)`: the `x` of `t(a) x = b`, or of `x t(a) = b`, for triangular `a`.
    TriangularSolve {
        /// Whether the lower triangle of `a` is read, or the upper.
        lower: bool,
        /// Whether `a` stands on the left.
        left_side: bool,
        /// What `t` is.
        transform: Transform,
    },

    // collective
    /// What the devices of a mesh make of their blocks together.
    Collective(CollectiveOp),

    // control
    /// A fold by a function of two scalars.
    Fold(FoldOp),
    /// A fold of windows by a function of two scalars.
    WindowFold(WindowFoldOp),
    /// Runs exactly one of several regions.
    Cond(CondOp),
    /// Repeats a region while another gives a value that is not zero.
    While(WhileOp),
    /// Values that carry their own gradient rule.
    CustomGrad(CustomGradOp),
    /// `x`, through which no gradient flows.
    StopGrad,
    /// `x` under a name, where a graph may be cut.
    Mark {
        /// The name.
        name: Name,
    },
    /// The operands, shown to a host function on the way. An effect: never dropped, merged or reordered.
    Hook(HookOp),
    /// What a host function makes of the operands. An effect: never dropped, merged or reordered.
    RuntimeCall(RuntimeCallOp),

    // block
    /// A composite that a backend may run natively.
    Block(Block),
    /// A composite of the user's, which a backend of the host language may run natively.
    UserBlock(UserBlockOp),
}

/// The types of a node's outputs.
pub type Outputs = SmallVec<[TensorType; 1]>;

impl Op {
    /// Whether running the op can be observed other than by its outputs.
    pub fn has_effect(&self) -> bool {
        match self.class() {
            OpClass::Hook(_) | OpClass::RuntimeCall(_) => true,
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity
            | OpClass::Collective(_)
            | OpClass::Fold(_)
            | OpClass::WindowFold(_)
            | OpClass::Cond(_)
            | OpClass::While(_)
            | OpClass::CustomGrad(_)
            | OpClass::Block(_)
            | OpClass::UserBlock(_) => self.regions().iter().any(|region| region.has_effects()),
        }
    }

    /// The op with each of its closed graphs replaced by what `map` makes of it.
    ///
    /// # Errors
    /// What `map` has against a graph.
    pub fn map_regions(&self, mut map: impl FnMut(&Arc<Region>) -> Result<Arc<Region>>) -> Result<Op> {
        Ok(match self.class() {
            OpClass::Cond(op) => {
                Op::Cond(CondOp { branches: op.branches.iter().map(map).collect::<Result<_>>()? })
            }
            OpClass::While(op) => {
                let (cond, body) = (map(&op.cond)?, map(&op.body)?);
                Op::While(WhileOp { cond, body, ..*op })
            }
            OpClass::CustomGrad(op) => Op::CustomGrad(CustomGradOp { rule: map(&op.rule)?, ..*op }),
            OpClass::Fold(op) => Op::Fold(FoldOp { fun: map(&op.fun)?, ..op.clone() }),
            OpClass::WindowFold(op) => Op::WindowFold(WindowFoldOp { fun: map(&op.fun)?, ..op.clone() }),
            OpClass::UserBlock(op) => Op::UserBlock(UserBlockOp { default: map(&op.default)?, ..op.clone() }),
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity
            | OpClass::Collective(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_) => self.clone(),
        })
    }

    /// The closed graphs inside the op.
    pub fn regions(&self) -> SmallVec<[&Arc<Region>; 2]> {
        match self.class() {
            OpClass::Cond(op) => op.branches.iter().collect(),
            OpClass::While(op) => [&op.cond, &op.body].into_iter().collect(),
            OpClass::CustomGrad(op) => std::iter::once(&op.rule).collect(),
            OpClass::Fold(op) => std::iter::once(&op.fun).collect(),
            OpClass::WindowFold(op) => std::iter::once(&op.fun).collect(),
            OpClass::UserBlock(op) => std::iter::once(&op.default).collect(),
            OpClass::Parameter { .. }
            | OpClass::Constant(_)
            | OpClass::Literal(_)
            | OpClass::Primitive(_)
            | OpClass::Identity
            | OpClass::Collective(_)
            | OpClass::Hook(_)
            | OpClass::RuntimeCall(_)
            | OpClass::Block(_) => SmallVec::new(),
        }
    }
}
