//! Objects with a `__dict__`, which the garbage collector may visit before their fields are written.

use std::ops::Deref;

/// The fields of a Python class that has a `__dict__` and a `__traverse__`.
///
/// CPython 3.11 creates the `__dict__` while it allocates the object, which may start the garbage collector.
/// The collector then visits an object whose memory is all zeros. Here zeros are `None`, so that there is
/// nothing to visit. For most other types zeros are no valid value.
pub(crate) struct Fields<T>(Option<Box<T>>);

impl<T> Fields<T> {
    /// The fields; `None` before they are written. `__traverse__` and `__clear__` must use only this
    /// function.
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
