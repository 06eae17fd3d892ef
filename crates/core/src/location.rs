//! Where in the user's program something was made.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

thread_local! {
    /// The line whose call this thread is in, where it was said.
    static HERE: RefCell<Option<Location>> = const { RefCell::new(None) };
}

/// How the host language finds the line that its user is in.
static FINDER: OnceLock<fn() -> Option<Location>> = OnceLock::new();

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

    /// The line that the innermost [`during`] on this thread is for. To ask takes no locks.
    pub fn said() -> Option<Location> {
        HERE.with_borrow(Clone::clone)
    }

    /// The line of the user's that this thread is called from, where it is known: that of the innermost [`during`],
    /// else what the host language finds. To ask takes the host language's locks.
    pub fn of_user() -> Option<Location> {
        Location::said().or_else(|| FINDER.get()?())
    }
}

/// Runs `body` for a line of the user's, which [`Location::of_user`] gives meanwhile on this thread.
pub fn during<R>(location: Location, body: impl FnOnce() -> R) -> R {
    struct Before(Option<Location>);
    impl Drop for Before {
        fn drop(&mut self) {
            HERE.set(self.0.take());
        }
    }
    let _before = Before(HERE.replace(Some(location)));
    body()
}

/// Says how the host language finds its user's line. The first to say so is heard.
pub fn find_by(finder: fn() -> Option<Location>) {
    let _ = FINDER.set(finder);
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_line_holds() {
        let at = |line| Location { file: "user.rs".into(), line };
        assert_eq!(Location::of_user(), None);
        during(at(1), || {
            assert_eq!(during(at(2), Location::of_user), Some(at(2)));
            assert_eq!(Location::of_user(), Some(at(1)));
        });
        assert_eq!(Location::of_user(), None);
    }
}
