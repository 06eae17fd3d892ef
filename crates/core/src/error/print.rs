//! How an error is printed: its message, what is known of its operands, and where it is.

use std::fmt;

use super::{Error, ErrorClass};
use crate::origin::{self, Origin};
use crate::shape::{Shape, TensorType};

impl std::error::Error for Error {}

/// The message with the location, as a program prints it whose `main` returns the error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.kind.fmt(f)?;
        if self.shows_operands() {
            origin::write_all(f, &self.inner.operands)?;
        }
        self.write_trips(f)?;
        if let Some(part) = &self.inner.within {
            write!(f, "\n  in {part}")?;
        }
        if let Some(location) = &self.inner.location {
            write!(f, "\n  at {location}")?;
        }
        Ok(())
    }
}

impl Error {
    /// Whether the text continues with a line for each operand, where this adds information.
    fn shows_operands(&self) -> bool {
        let is_about_types = match self.class() {
            _ if self.inner.kind.is_of_state() => true,
            ErrorClass::Shape | ErrorClass::Axis | ErrorClass::DType | ErrorClass::Range => true,
            ErrorClass::Option
            | ErrorClass::Division
            | ErrorClass::NonFinite
            | ErrorClass::Convergence
            | ErrorClass::Container
            | ErrorClass::Bounds
            | ErrorClass::Trace
            | ErrorClass::Compile
            | ErrorClass::Backend
            | ErrorClass::Format
            | ErrorClass::OutOfMemory => false,
        };
        let is_known = self.inner.operands.iter().any(|operand| operand.origin != Origin::Unknown);
        is_about_types && (is_known || self.inner.kind.leaves_out_types())
    }
}

/// The valid start positions of windows of `length` elements on an axis; an element is a window of length 1.
pub(super) fn positions_text(ty: &TensorType, axis: usize, length: usize, from_end: bool) -> String {
    let size = ty.shape.sizes().get(axis).map_or(0, |&size| size as i128);
    let end = size - length as i128 + 1;
    match (length, from_end) {
        (1, true) => format!("{}..{size}", -size),
        (1, false) => format!("0..{end}"),
        (_, true) if size > 0 => {
            format!("0..{end} or {}..{} for a window of {length} elements", -size, 1 - length as i128)
        }
        (_, _) => format!("0..{end} for a window of {length} elements"),
    }
}

/// A shape inside a sentence; a scalar's shape prints as `[]`.
pub(super) fn shape_text(shape: &Shape) -> String {
    if shape.rank() == 0 { "[]".to_owned() } else { shape.to_string() }
}
