//! Where in the user's program something was made.

use std::fmt;
use std::sync::Arc;

/// A file and a line. Locations are kept with nodes and errors and take part in no comparison of graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file as the host language names it.
    pub file: Arc<str>,
    /// The line, from 1 on.
    pub line: u32,
}

impl Location {
    /// The caller of the innermost `#[track_caller]` function.
    #[track_caller]
    pub fn caller() -> Location {
        let caller = std::panic::Location::caller();
        Location { file: caller.file().into(), line: caller.line() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
