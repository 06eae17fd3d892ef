//! What is left out when the code of a function is read.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustc_hash::FxHashSet;

use super::FUNCTION_LIMIT;
use crate::error::{Fallible, if_there};
use crate::jit::guards::values::function_of;

/// Code and objects that only a run needs, and tracing does not.
#[derive(Default)]
pub(in crate::jit::guards) struct Excluded {
    pub(super) codes: FxHashSet<usize>,
    pub(super) objects: FxHashSet<usize>,
}

impl Excluded {
    /// The code and the objects of host functions.
    pub(in crate::jit::guards) fn of<'py>(
        functions: impl IntoIterator<Item = Bound<'py, PyAny>>,
    ) -> Fallible<Excluded> {
        let mut excluded = Excluded::default();
        let mut queue: Vec<Bound<'py, PyAny>> = functions.into_iter().collect();
        while let Some(value) = queue.pop() {
            let py = value.py();
            if !excluded.objects.insert(value.as_ptr() as usize) || excluded.objects.len() > FUNCTION_LIMIT {
                continue;
            }
            if let Some(function) = function_of(&value)? {
                excluded.codes.insert(function.getattr(intern!(py, "__code__"))?.as_ptr() as usize);
                let closure = function.getattr(intern!(py, "__closure__"))?;
                if !closure.is_none() {
                    let cells = closure.try_iter()?;
                    queue.extend(
                        cells.filter_map(|cell| cell.ok()?.getattr(intern!(py, "cell_contents")).ok()),
                    );
                }
            }
            for name in ["__self__", "func"] {
                if let Some(part) = if_there(py, value.getattr_opt(name))?.flatten() {
                    queue.push(part);
                }
            }
            if let Some(args) = if_there(py, value.getattr_opt(intern!(py, "args")))?.flatten()
                && let Ok(args) = args.cast_into::<PyTuple>()
            {
                queue.extend(args.iter());
            }
        }
        Ok(excluded)
    }

    pub(in crate::jit::guards) fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }
}
