//! Objects with a `__dict__`, which the collector may visit before their fields are written.

use std::ops::Deref;

/// The fields of a class of Python's that has a `__dict__` and a `__traverse__`.
///
/// CPython 3.11 makes the `__dict__` while it allocates the object, and that may start the garbage collector. The collector
/// then visits an object whose memory is all zeros. Zeros are `None` here, so that there is nothing to visit; they are no valid
/// value of most other types.
pub(crate) struct Fields<T>(Option<Box<T>>);

impl<T> Fields<T> {
    /// The fields, unless they are still to be written. `__traverse__` and `__clear__` read them by this alone.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }
}

impl<T> From<T> for Fields<T> {
    fn from(fields: T) -> Self {
        Fields(Some(Box::new(fields)))
    }
}

impl<T> Deref for Fields<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.get().expect("an object is whole before anything but the collector sees it")
    }
}
