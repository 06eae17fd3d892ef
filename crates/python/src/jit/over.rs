//! What sharded functions need of definitions: calls taken apart, and graphs on other types than those of a call.

use std::sync::Arc;

use defn_core::Tensor;
use defn_core::region::Region;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::Jitted;
use super::program::{Source, Traced};
use crate::born;
use crate::compilers::Choice;
use crate::containers::{Flat, Tree};
use crate::error::Fallible;
use crate::options;

impl Jitted {
    /// The arguments of a call taken apart.
    pub(crate) fn take_apart<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Flat<'py>> {
        self.signature.flatten(self.fun.bind(py), args, kwargs)
    }

    /// The name of a positional argument.
    pub(crate) fn argument_name(&self, py: Python<'_>, position: usize) -> String {
        self.signature.name(py, position)
    }

    /// The graph of the function on arguments of a structure and types; nothing is compiled.
    pub(crate) fn region(slf: &Bound<'_, Jitted>, tree: &Tree, models: &[Tensor]) -> Fallible<Arc<Region>> {
        let (py, this) = (slf.py(), slf.get());
        let definition = slf.clone().unbind();
        let call = move |args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>| {
            Ok(definition.get().apply(args, Some(kwargs))?.unbind())
        };
        let source = Source::new(this.op(), this.fun.bind(py), Arc::new(call));
        let compiler: Choice = match &this.compiler {
            Some(choice) => choice.clone(),
            None => options::default_compiler(py, None)?,
        };
        let traced = Traced::of(py, &source, tree, models, &compiler);
        born::forget();
        Ok(traced?.region)
    }
}
