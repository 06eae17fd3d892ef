//! Ops that hold regions, and effects.
//!
//! A region is closed: what it uses of the graph around it are captures, which follow the operands among
//! the node's inputs and the parameters among the region's. All regions of one node take the same captures.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Outputs, Window};
use crate::region::Region;
use crate::shape::{AxisList, Name};

/// Operands: one scalar predicate for each branch but the last, then the captures.
///
/// Exactly one branch runs: that of the first predicate that is not zero, else the last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CondOp {
    /// At least two; no parameters, only captures; results of one list of types.
    pub branches: SmallVec<[Arc<Region>; 2]>,
}

/// Operands: the state, then the captures. Outputs: the state when `cond` gives zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WhileOp {
    /// How many operands are state.
    pub state: usize,
    /// The number of trips, where it was known while tracing.
    pub trips: Option<u64>,
    /// From state and captures to one scalar predicate.
    pub cond: Arc<Region>,
    /// From state and captures to the next state, of the same types.
    pub body: Arc<Region>,
}

/// Operands: the values, the inputs that they depend on, then the captures. Outputs: the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomGradOp {
    /// How many operands are values.
    pub values: usize,
    /// How many operands are inputs.
    pub inputs: usize,
    /// From one cotangent for each value, and captures, to one cotangent for each input.
    pub rule: Arc<Region>,
}

/// Operands: the tensor, the scalar to start from, then the captures. Output: the tensor folded over axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FoldOp {
    /// The axes, ascending.
    pub axes: AxisList,
    /// Whether the axes stay, with size 1.
    pub keep_axes: bool,
    /// From an element, what was folded so far, and captures, to one scalar of the start's type.
    pub fun: Arc<Region>,
}

/// Operands: the tensor, the scalar to start from and to pad with, then the captures. Output: a fold of each
/// window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowFoldOp {
    /// The window.
    pub window: Window,
    /// From an element, what was folded so far, and captures, to one scalar of the start's type.
    pub fun: Arc<Region>,
}

/// Operands: the values to show. Outputs: the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HookOp {
    /// Which entry of the run's table of host functions is called.
    pub slot: usize,
    /// The name by which a caller fills it.
    pub name: Option<Name>,
}

/// Operands: the values that a host function is given. Outputs: what it makes of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuntimeCallOp {
    /// Which entry of the run's table of host functions is called.
    pub slot: usize,
    /// The types of what it gives.
    pub outputs: Outputs,
}
