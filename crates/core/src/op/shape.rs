//! Attributes of the ops that move elements without computing.

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

/// Where a slice begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Starts {
    /// Known while tracing and in range.
    Static(Sizes),
    /// Scalar integer operands, one for each axis, clamped into range when the op runs.
    Dynamic,
    /// Scalar integer operands, one for each axis, of which those below 0 count from the end of the axis. What is
    /// still out of range is an error where positions are looked at, and clamped elsewhere.
    FromEnd,
}

impl Starts {
    /// Whether operands say where a slice begins.
    pub fn are_operands(&self) -> bool {
        match self {
            Starts::Static(_) => false,
            Starts::Dynamic | Starts::FromEnd => true,
        }
    }

    /// Whether starts below 0 count from the end.
    pub fn count_from_end(&self) -> bool {
        match self {
            Starts::Static(_) | Starts::Dynamic => false,
            Starts::FromEnd => true,
        }
    }

    /// Where a window of `length` elements begins on an axis of `size`, which is not less, for the start of an
    /// operand: none for one out of range.
    pub fn exact(&self, start: i128, length: usize, size: usize) -> Option<usize> {
        let start = self.counted(start, size);
        usize::try_from(start).ok().filter(|&start| start <= size - length)
    }

    /// As [`Starts::exact`], with a start out of range moved to the nearest.
    pub fn nearest(&self, start: i128, length: usize, size: usize) -> usize {
        self.counted(start, size).clamp(0, (size - length) as i128) as usize
    }

    fn counted(&self, start: i128, size: usize) -> i128 {
        if start < 0 && self.count_from_end() { start + size as i128 } else { start }
    }

    /// Refuses a start out of range on an axis of `x`, of the op of that name.
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
