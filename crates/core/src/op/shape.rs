//! Attributes of the ops that move elements without computing.

use crate::shape::Sizes;

/// Padding of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Padding {
    /// Elements before the first; negative crops.
    pub low: i64,
    /// Elements after the last; negative crops.
    pub high: i64,
    /// Elements between two neighbours.
    pub interior: usize,
}

/// Where a slice begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Starts {
    /// Known while tracing and in range.
    Static(Sizes),
    /// Scalar integer operands, one for each axis, clamped into range when the op runs.
    Dynamic,
}
