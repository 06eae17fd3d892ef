//! Runs of a program: on the leaves of one call or of several, on borrowed tensors, and on a given backend.

use std::borrow::Cow;
use std::sync::Arc;

use defn_core::Tensor;
use defn_core::backend::Backend;
use defn_core::builder::{common_backend, move_to_common_backend};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;

use super::super::guards::Capture;
use super::super::leaf::{self, Borrowed};
use super::{Output, PassedArguments, Program, result_object};
use crate::backends;
use crate::containers::Leaves;
use crate::error::Fallible;
use crate::hooks;

impl Program {
    /// Runs on the leaves of a call.
    pub(in crate::jit) fn run<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        captures: Vec<Tensor>,
        borrowed: Borrowed,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        self.run_or_take(py, leaves, captures, borrowed, hooks, None)
    }

    /// As [`Program::run`], but the results may be known already.
    pub(in crate::jit) fn run_or_take<'py>(
        &self,
        py: Python<'py>,
        leaves: &Leaves<'py>,
        captures: Vec<Tensor>,
        mut borrowed: Borrowed,
        hooks: Option<&Py<PyDict>>,
        computed: Option<Vec<Tensor>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        if self.has_fast_path
            && computed.is_none()
            && let Some(mut concrete) = leaf::concrete_tensors(leaves)
            && let Some(backend) = self.add_constants(&mut concrete)
        {
            return self.run_borrowed(py, &backend, &concrete, hooks);
        }
        let (tensors, passed) = self.gather(py, leaves, captures, &mut borrowed)?;
        let results = match computed {
            Some(results) => results,
            None => self.execute(py, tensors, &borrowed, hooks)?,
        };
        self.result_container(py, results, passed, &mut borrowed)
    }

    /// Whether the program can run on the tensors of a call without copies of them; see [`Program::run_borrowed`].
    pub(in crate::jit) fn has_fast_path(&self) -> bool {
        self.has_fast_path
    }

    /// Adds the constant inputs to the tensors of a call. Returns the backend of all of them, if there is one.
    pub(in crate::jit) fn add_constants<'a>(
        &'a self,
        tensors: &mut SmallVec<[&'a Tensor; 8]>,
    ) -> Option<Cow<'a, Arc<dyn Backend>>> {
        tensors.extend(self.captures.iter().filter_map(Capture::constant));
        common_backend(tensors)
    }

    /// Runs on borrowed tensors that are all on one backend.
    pub(in crate::jit) fn run_borrowed<'py>(
        &self,
        py: Python<'py>,
        backend: &Arc<dyn Backend>,
        tensors: &[&Tensor],
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let run = |hooks: &hooks::RunHooks<'_>| self.executable.run_borrowed(backend, tensors, hooks);
        let mut borrowed = Borrowed::default();
        let buffers = self.timed(py, &borrowed, hooks, run)?;
        let results = self.types.iter().zip(buffers);
        let mut results = results.map(|(ty, buffer)| Tensor::concrete(ty.clone(), buffer));
        // Fast path for the usual case of one result.
        if let [Output::Result(_, lanes)] = &*self.outputs
            && self.tree.is_leaf()
            && let Some(only) = results.next()
        {
            return Ok(result_object(py, only, lanes)?);
        }
        self.result_container(py, results, PassedArguments::new(), &mut borrowed)
    }

    /// As [`Program::run`], on the backend that holds the tensors, if there are any.
    pub(in crate::jit) fn run_at<'py>(
        &self,
        py: Python<'py>,
        backend: &Arc<dyn Backend>,
        leaves: &Leaves<'py>,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let mut borrowed = Borrowed::default();
        let (tensors, passed) = self.gather(py, leaves, Vec::new(), &mut borrowed)?;
        let run = |hooks: &hooks::RunHooks<'_>| self.executable.run(backend, tensors, hooks);
        let results = if self.is_trivial { Vec::new() } else { self.timed(py, &borrowed, hooks, run)? };
        self.result_container(py, results, passed, &mut borrowed)
    }

    /// Runs on the leaves of several calls, in parallel where the compiler supports that.
    pub(in crate::jit) fn run_each<'py>(
        &self,
        py: Python<'py>,
        calls: Vec<(Leaves<'py>, Vec<Tensor>, Borrowed)>,
        hooks: Option<&Py<PyDict>>,
    ) -> Fallible<Vec<Bound<'py, PyAny>>> {
        let (mut lists, mut rests) = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
        let default = backends::default()?;
        let mut all = Borrowed::default();
        for (leaves, captures, mut borrowed) in calls {
            let (mut tensors, passed) = self.gather(py, &leaves, captures, &mut borrowed)?;
            lists.push((move_to_common_backend("run", &mut tensors, &default)?, tensors));
            all.add(&borrowed);
            rests.push((passed, borrowed));
        }
        let results = match self.is_trivial {
            true => vec![Vec::new(); rests.len()],
            false => {
                let _showing = self.showing(py, hooks)?;
                self.with_hooks(py, &all, hooks, true, |hooks| self.executable.run_each(lists, hooks))?
            }
        };
        let each = results.into_iter().zip(rests);
        each.map(|(results, (passed, mut borrowed))| {
            self.result_container(py, results, passed, &mut borrowed)
        })
        .collect()
    }
}
