//! Ops with regions, and effects.
//!
//! A region is closed: values of the surrounding graph that it uses are captures. Captures follow the operands among
//! the node's inputs, and the parameters among the region's. All regions of one node have the same captures.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Outputs, Window, catalogue};
use crate::error::Result;
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
    /// The number of states that its gradient may keep, if the user chose it.
    pub snapshots: Option<usize>,
    /// The region from state and captures to one scalar predicate.
    pub cond: Arc<Region>,
    /// The region from state and captures to the next state, of the same types.
    pub body: Arc<Region>,
}

catalogue! {
    /// A memory in which a device reads values or keeps them.
    ///
    /// ```
    /// use defn_core::op::MemorySpace;
    /// assert_eq!(MemorySpace::Host.name(), "host");
    /// ```
    pub enum MemorySpace {
        /// The device's own memory, in which it computes.
        Device = "device",
        /// The memory of the host. Where the host is the device it is the same.
        Host = "host",
    }
}

/// Operands: the values, the inputs that they depend on, then the captures. Outputs: the values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomGradOp {
    /// The number of operands that are values.
    pub values: usize,
    /// The number of operands that are inputs.
    pub inputs: usize,
    /// The rules for their derivatives.
    pub rules: CustomRules,
}

/// Rules for the derivatives of values. If one for a mode is missing, it is the transpose of the other, which is linear
/// then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CustomRules {
    /// For reverse mode: the region from one cotangent for each value, and captures, to one cotangent for each input.
    Reverse(Arc<Region>),
    /// For forward mode: the region from one tangent for each input, and captures, to one tangent for each value.
    Forward(Arc<Region>),
    /// For each mode.
    Both {
        /// As that of `Reverse`.
        reverse: Arc<Region>,
        /// As that of `Forward`.
        forward: Arc<Region>,
    },
    /// The derivatives of the region from the inputs to the values. What they need of values inside of it is computed
    /// again, except for its last results.
    Recompute {
        /// The region, which has the inputs as its inputs.
        region: Arc<Region>,
        /// The number of results that are kept, which are values inside of the region.
        kept: usize,
        /// The number of the last of these that are kept on the host.
        offloaded: usize,
    },
}

impl CustomRules {
    /// The rule for reverse mode.
    pub fn reverse(&self) -> Option<&Arc<Region>> {
        match self {
            CustomRules::Reverse(rule) | CustomRules::Both { reverse: rule, .. } => Some(rule),
            CustomRules::Forward(_) | CustomRules::Recompute { .. } => None,
        }
    }

    /// The rule for forward mode.
    pub fn forward(&self) -> Option<&Arc<Region>> {
        match self {
            CustomRules::Forward(rule) | CustomRules::Both { forward: rule, .. } => Some(rule),
            CustomRules::Reverse(_) | CustomRules::Recompute { .. } => None,
        }
    }

    /// The region from inputs to values whose derivatives they have.
    pub fn recomputed(&self) -> Option<&Arc<Region>> {
        match self {
            CustomRules::Recompute { region, .. } => Some(region),
            CustomRules::Reverse(_) | CustomRules::Forward(_) | CustomRules::Both { .. } => None,
        }
    }

    /// All regions, that for reverse mode first.
    pub fn regions(&self) -> impl Iterator<Item = &Arc<Region>> {
        self.reverse().into_iter().chain(self.forward()).chain(self.recomputed())
    }

    /// The rules with each region replaced by the result of `map`.
    ///
    /// # Errors
    /// The errors of `map`.
    pub fn map(&self, mut map: impl FnMut(&Arc<Region>) -> Result<Arc<Region>>) -> Result<CustomRules> {
        Ok(match self {
            CustomRules::Reverse(rule) => CustomRules::Reverse(map(rule)?),
            CustomRules::Forward(rule) => CustomRules::Forward(map(rule)?),
            CustomRules::Both { reverse, forward } => {
                CustomRules::Both { reverse: map(reverse)?, forward: map(forward)? }
            }
            CustomRules::Recompute { region, kept, offloaded } => {
                CustomRules::Recompute { region: map(region)?, kept: *kept, offloaded: *offloaded }
            }
        })
    }
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
