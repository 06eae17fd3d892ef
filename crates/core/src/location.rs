//! Locations in the user's program.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

thread_local! {
    /// The user's line that is running on this thread, where it was set.
    static HERE: RefCell<Option<Location>> = const { RefCell::new(None) };
}

/// The host language's function that finds the user's line.
static FINDER: OnceLock<fn() -> Option<Location>> = OnceLock::new();

/// A file and a line. Nodes and errors have locations; comparisons of graphs ignore them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as named by the host language.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl Location {
    /// The caller of the innermost `#[track_caller]` function.
    #[track_caller]
    pub fn caller() -> Location {
        let caller = std::panic::Location::caller();
        Location { file: caller.file().into(), line: caller.line() }
    }

    /// The location of the innermost [`during`] on this thread. Takes no locks.
    pub fn current_line() -> Option<Location> {
        HERE.with_borrow(Clone::clone)
    }

    /// The user's line that is running on this thread, if known: that of the innermost [`during`], else the
    /// one that the host language finds, which takes the host language's locks.
    pub fn of_user() -> Option<Location> {
        Location::current_line().or_else(|| FINDER.get()?())
    }
}

/// Runs `body` with [`Location::of_user`] returning `location` on this thread.
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

/// Sets the host language's function that finds the user's line. Only the first call has an effect.
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
