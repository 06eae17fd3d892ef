//! Composites with a name, which a backend may run natively instead of by their default graph.

use std::hash::{Hash, Hasher};

use crate::shape::AxisList;

/// What a block computes. Its default, in primitive ops, is in `compose::block`.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// 1 where `x` is zero.
    LogicalNot,
    /// The angle of a complex number.
    Phase,
    /// `log(sum(exp(x)))`, without overflow.
    Logsumexp {
        /// The axes, ascending.
        axes: AxisList,
        /// Whether the axes stay, with size 1.
        keep_axes: bool,
    },
    /// `(a, b)`: 1 if all elements agree within `atol + rtol * |b|`.
    AllClose {
        /// Whether NaN agrees with NaN.
        equal_nan: bool,
        /// The relative tolerance.
        rtol: f64,
        /// The absolute tolerance.
        atol: f64,
    },
}

impl Eq for Block {}

impl Hash for Block {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Block::LogicalNot | Block::Phase => {}
            Block::Logsumexp { axes, keep_axes } => (axes, keep_axes).hash(state),
            Block::AllClose { equal_nan, rtol, atol } => {
                (equal_nan, rtol.to_bits(), atol.to_bits()).hash(state);
            }
        }
    }
}
