//! How an error is printed: its message, what is known of its operands, and where it is.

use std::fmt;

use super::{Error, ErrorClass};
use crate::origin::{self, Origin};
use crate::shape::Shape;

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

/// A shape inside a sentence; a scalar's shape prints as `[]`.
pub(super) fn shape_text(shape: &Shape) -> String {
    if shape.rank() == 0 { "[]".to_owned() } else { shape.to_string() }
}
