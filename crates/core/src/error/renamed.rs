//! Errors of the op that a function is made of, as errors of the function that the user called.

use super::{Error, ErrorKind};

impl Error {
    /// Adds the public name of the loop, and the location in the state of the leaf whose type changed, which
    /// the error identifies only by its number.
    #[must_use]
    pub fn with_loop_name(mut self, name: &'static str, path_text: impl FnOnce(usize) -> String) -> Error {
        if let ErrorKind::LoopState { index, expected, got, hint, .. } = &self.inner.kind {
            let (expected, got, hint, path) = (expected.clone(), got.clone(), *hint, path_text(*index));
            self.inner.kind = ErrorKind::StateType { op: name, path, expected, got, hint };
        }
        self
    }

    /// Renames the op of an error about a product to the product that the user called.
    #[must_use]
    pub(crate) fn with_product_name(mut self, name: &'static str) -> Error {
        if let ErrorKind::DotSizes { op, .. } | ErrorKind::NamesRepeated { op, .. } = &mut self.inner.kind {
            *op = name;
        }
        self
    }
}
