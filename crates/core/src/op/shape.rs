//! Attributes of the ops that move elements.

use crate::error::{ErrorKind, Result};
use crate::shape::{Axis, Sizes, TensorType};

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

/// The start of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Starts {
    /// Known while tracing and in range.
    Static(Sizes),
    /// Scalar integer operands, one for each axis, clamped to the valid range when the op runs.
    Dynamic,
    /// Scalar integer operands, one for each axis; negative ones count from the end of the axis. A start that is
    /// still out of range is an error where positions are checked, and is clamped elsewhere.
    FromEnd,
}

impl Starts {
    /// Whether operands give the starts.
    pub fn are_operands(&self) -> bool {
        match self {
            Starts::Static(_) => false,
            Starts::Dynamic | Starts::FromEnd => true,
        }
    }

    /// Whether negative starts count from the end.
    pub fn count_from_end(&self) -> bool {
        match self {
            Starts::Static(_) | Starts::Dynamic => false,
            Starts::FromEnd => true,
        }
    }

    /// The start of a window of `length` elements on an axis of `size` (at least `length`) for the operand's value
    /// `start`, or `None` if it is out of range.
    pub fn exact(&self, start: i128, length: usize, size: usize) -> Option<usize> {
        let start = self.counted(start, size);
        usize::try_from(start).ok().filter(|&start| start <= size - length)
    }

    /// Like [`Starts::exact`], with a start out of range clamped to the valid range.
    pub fn nearest(&self, start: i128, length: usize, size: usize) -> usize {
        self.counted(start, size).clamp(0, (size - length) as i128) as usize
    }

    fn counted(&self, start: i128, size: usize) -> i128 {
        if start < 0 && self.count_from_end() { start + size as i128 } else { start }
    }

    /// Returns an error if a start is out of range on an axis of `x`; `op` is the op's name for the message.
    ///
    /// # Errors
    /// [`ErrorKind::StartRange`].
    pub fn require(
        &self,
        op: &'static str,
        start: i128,
        length: usize,
        (x, axis): (&TensorType, Axis),
    ) -> Result<()> {
        if self.exact(start, length, x.shape[axis]).is_some() {
            return Ok(());
        }
        let (axis, from_end, got) = (axis.index(), self.count_from_end(), x.clone());
        Err(ErrorKind::StartRange { op, start, axis, length, from_end, got }.into())
    }
}
