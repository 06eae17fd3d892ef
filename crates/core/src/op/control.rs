//! Ops with regions, and effects.
//!
//! A region is closed: values of the surrounding graph that it uses are captures. Captures follow the operands among
//! the node's inputs, and the parameters among the region's. All regions of one node have the same captures.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Outputs, Window};
use crate::region::Region;
use crate::shape::{AxisList, Name};

/// Operands: one scalar predicate for each branch but the last, then the captures.
///
/// Exactly one branch runs: that of the first predicate that is not zero, or the last branch if all are zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CondOp {
    /// At least two branches, with captures but no parameters. All have the same result types.
    pub branches: SmallVec<[Arc<Region>; 2]>,
}

/// Operands: the state, then the captures. Outputs: the state for which `cond` first returns zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WhileOp {
    /// The number of operands that are state.
    pub state: usize,
    /// The trip count, if it was known while tracing.
    pub trips: Option<u64>,
    /// The region from state and captures to one scalar predicate.
    pub cond: Arc<Region>,
    /// The region from state and captures to the next state, of the same types.
    pub body: Arc<Region>,
}

/// Operands: the values, the inputs that they depend on, then the captures. Outputs: the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomGradOp {
    /// The number of operands that are values.
    pub values: usize,
    /// The number of operands that are inputs.
    pub inputs: usize,
    /// The region from one cotangent for each value, and captures, to one cotangent for each input.
    pub rule: Arc<Region>,
}

/// Operands: the tensor, the initial scalar, then the captures. Output: the tensor folded over axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FoldOp {
    /// The axes, ascending.
    pub axes: AxisList,
    /// Whether the axes are kept, with size 1.
    pub keep_axes: bool,
    /// The region from an element, the accumulator and captures to the next accumulator, a scalar of the initial
    /// scalar's type.
    pub fun: Arc<Region>,
}

/// Operands: the tensor, the scalar that is both initial value and padding, then the captures. Output: a fold of each
/// window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowFoldOp {
    /// The window.
    pub window: Box<Window>,
    /// The region from an element, the accumulator and captures to the next accumulator, a scalar of the initial
    /// scalar's type.
    pub fun: Arc<Region>,
}

/// Operands: the values that a host function receives. Outputs: the same values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HookOp {
    /// The index of the host function in the run's table.
    pub slot: usize,
    /// The name by which a caller supplies the host function.
    pub name: Option<Name>,
}

/// Operands: the arguments of a host function. Outputs: its results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeCallOp {
    /// The index of the host function in the run's table.
    pub slot: usize,
    /// The types of its results.
    pub outputs: Outputs,
}
