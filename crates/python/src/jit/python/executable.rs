//! Programs from compilers that are written in Python: their arguments and their results.

use std::fmt;
use std::sync::{Arc, OnceLock};

use defn_core::backend::{Backend, Executable, Hooks};
use defn_core::op::Op;
use defn_core::region::Region;
use defn_core::{Result, Tensor, TensorType, trace};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::{Thunk, Traceable};
use crate::build;
use crate::compilers::Custom;
use crate::containers::{self, Flat, Leaves, Mode};
use crate::convert;
use crate::error::Fallible;
use crate::jit::leaf::wrap;
use crate::jit::program::Output;
use crate::jit::traced::TracedFunction;
use crate::misuse::Misuse;
use crate::pybackend::enter;
use crate::tensor::PyTensor;

/// A program from a compiler that is written in Python.
pub(super) struct PythonExecutable {
    region: Arc<Region>,
    compiler: Arc<Custom>,
    /// The result of `compile`. Without it, the compiler's `jit` runs each call.
    compiled: Option<Py<PyAny>>,
    traceable: Py<Traceable>,
    key: Py<PyAny>,
    /// Whether each input is used. The argument for an unused input is a template.
    used: Vec<bool>,
    /// One program for each partition that the compiler distributes several lists over, after the compiler was asked.
    /// The list is empty where there is one partition.
    parts: OnceLock<Vec<Py<PyAny>>>,
}

impl fmt::Debug for PythonExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PythonExecutable({})", self.compiler.name)
    }
}

impl Executable for PythonExecutable {
    fn program(&self) -> &Arc<Region> {
        &self.region
    }

    fn uses(&self, input: usize) -> bool {
        self.used[input]
    }

    fn run(&self, _: &Arc<dyn Backend>, arguments: Vec<Tensor>, _: &dyn Hooks) -> Result<Vec<Tensor>> {
        enter(|py| {
            let mut results = self.call(py, self.compiled.as_ref(), vec![arguments])?;
            Ok(results.pop().expect("results held as many lists as there were"))
        })
    }

    fn run_each(
        &self,
        lists: Vec<(Arc<dyn Backend>, Vec<Tensor>)>,
        _: &dyn Hooks,
    ) -> Result<Vec<Vec<Tensor>>> {
        let mut lists: Vec<_> = lists.into_iter().map(|(_, list)| list).collect();
        enter(|py| {
            let parts = if lists.len() > 1 { self.parts(py)? } else { &[] };
            if parts.is_empty() {
                return self.call(py, self.compiled.as_ref(), lists);
            }
            // The lists are distributed over the partitions round robin. The results are in the order of the lists.
            let mut results = vec![Vec::new(); lists.len()];
            for (at, part) in parts.iter().enumerate() {
                let dealt = lists.iter_mut().skip(at).step_by(parts.len()).map(std::mem::take).collect();
                let computed = self.call(py, Some(part), dealt)?;
                results
                    .iter_mut()
                    .skip(at)
                    .step_by(parts.len())
                    .zip(computed)
                    .for_each(|(to, from)| *to = from);
            }
            Ok(results)
        })
    }
}

impl PythonExecutable {
    pub(super) fn new(
        compiler: &Arc<Custom>,
        compiled: Option<Py<PyAny>>,
        traceable: Py<Traceable>,
        key: Py<PyAny>,
    ) -> PythonExecutable {
        let traced = traceable.get().traced.get().expect("it was traced when it was compiled");
        let (region, used) = (traced.region.clone(), traced.used());
        let (compiler, parts) = (compiler.clone(), OnceLock::new());
        PythonExecutable { region, compiler, compiled, traceable, key, used, parts }
    }

    /// Calls a program, or the compiler's `jit`, with all lists at once.
    fn call(
        &self,
        py: Python<'_>,
        program: Option<&Py<PyAny>>,
        lists: Vec<Vec<Tensor>>,
    ) -> Fallible<Vec<Vec<Tensor>>> {
        let traceable = self.traceable.get();
        let traced = traceable.traced.get().expect("it was traced when it was compiled");
        let count = lists.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let argument_lists = PyList::empty(py);
        let (callback, results) = match program {
            Some(program) => {
                for list in lists {
                    argument_lists.append(PyList::new(py, wrap(py, list.into_iter())?)?)?;
                }
                ("compile", program.bind(py).call1((argument_lists,))?)
            }
            None => {
                for list in lists {
                    let thunks = list.into_iter().map(|tensor| Bound::new(py, Thunk::of_tensor(tensor)));
                    argument_lists.append(PyList::new(py, thunks.collect::<PyResult<Vec<_>>>()?)?)?;
                }
                let vars = PyList::new(py, traceable.vars.bind(py))?;
                let arguments =
                    (&self.key, vars, &self.traceable, argument_lists, self.compiler.options(py)?);
                ("jit", self.compiler.call("jit", arguments, py)?)
            }
        };
        traced.results(py, &self.compiler, callback, count, &results)
    }

    /// The programs of the partitions that the compiler's `partitions_options` names. They are compiled when they are
    /// first needed.
    fn parts(&self, py: Python<'_>) -> Fallible<&[Py<PyAny>]> {
        if let Some(parts) = self.parts.get() {
            return Ok(parts);
        }
        let parts = self.compile_parts(py)?;
        Ok(self.parts.get_or_init(|| parts))
    }

    fn compile_parts(&self, py: Python<'_>) -> Fallible<Vec<Py<PyAny>>> {
        let callback = "partitions_options";
        // A compiler of another class may lack the callback. It has one partition.
        if self.compiled.is_none() || !self.compiler.object.bind(py).hasattr(callback)? {
            return Ok(Vec::new());
        }
        let partitions = self.compiler.call(callback, (self.compiler.options(py)?,), py)?;
        let options =
            partitions.extract::<Vec<Bound<'_, PyDict>>>().ok().filter(|options| !options.is_empty());
        let Some(options) = options else {
            let (got, expected) =
                (convert::describe(&partitions)?, "a list of at least one dict of options".to_owned());
            let compiler = self.compiler.name.clone();
            return Err(Misuse::CompilerResult { callback, compiler, got, expected }.into());
        };
        if options.len() == 1 {
            return Ok(Vec::new());
        }
        let mut parts = Vec::with_capacity(options.len());
        for options in options {
            let vars = PyList::new(py, self.traceable.get().vars.bind(py))?;
            let arguments = (&self.key, vars, &self.traceable, options);
            let compiled = trace::suspended(|| self.compiler.call("compile", arguments, py))?;
            parts.push(checked(&self.compiler, compiled)?);
        }
        Ok(parts)
    }
}

/// Checks that the result of a compiler's `compile` is a function.
pub(super) fn checked(compiler: &Custom, compiled: Bound<'_, PyAny>) -> Fallible<Py<PyAny>> {
    if compiled.is_callable() {
        return Ok(compiled.unbind());
    }
    let (callback, compiler) = ("compile", compiler.name.clone());
    let (got, expected) = (convert::describe(&compiled)?, "a function of lists of arguments".to_owned());
    Err(Misuse::CompilerResult { callback, compiler, got, expected }.into())
}

impl TracedFunction {
    /// For each input, whether a result or an effect depends on it.
    fn used(&self) -> Vec<bool> {
        let graph = self.region.graph();
        let mut needed = vec![false; graph.len()];
        self.region.results().iter().for_each(|value| needed[value.node as usize] = true);
        let mut used = vec![false; self.region.inputs().len()];
        for (position, node) in graph.nodes().iter().enumerate().rev() {
            if !needed[position] && !node.op.has_effect() {
                continue;
            }
            node.inputs.iter().for_each(|input| needed[input.node as usize] = true);
            if let Op::Parameter { index, .. } = &node.op {
                used[*index] = true;
            }
        }
        for output in &self.outputs {
            if let Output::Argument(position) = output {
                used[*position] = true;
            }
        }
        used
    }

    /// The tensors that a compiler's program returned for each list of arguments, after a check of their types.
    /// Outputs that are arguments of the call are left out.
    pub(super) fn results(
        &self,
        py: Python<'_>,
        compiler: &Custom,
        callback: &'static str,
        count: usize,
        results: &Bound<'_, PyAny>,
    ) -> Fallible<Vec<Vec<Tensor>>> {
        let is_list = results.is_instance_of::<PyList>() || results.is_instance_of::<PyTuple>();
        if !is_list || results.len()? != count {
            let got =
                if is_list { format!("{} results", results.len()?) } else { convert::describe(results)? };
            let expected = "a list with one result for each list of arguments".to_owned();
            let compiler = compiler.name.clone();
            return Err(Misuse::CompilerResult { callback, compiler, got, expected }.into());
        }
        results.try_iter()?.map(|result| self.result(py, compiler, callback, &result?)).collect()
    }

    /// The tensors of one result.
    fn result(
        &self,
        py: Python<'_>,
        compiler: &Custom,
        callback: &'static str,
        result: &Bound<'_, PyAny>,
    ) -> Fallible<Vec<Tensor>> {
        let refuse = |got: String, expected: String| -> Misuse {
            Misuse::CompilerResult { callback, compiler: compiler.name.clone(), got, expected }
        };
        let Flat { leaves, tree, .. } = match containers::flatten(callback, Mode::State, result) {
            Ok(flat) => flat,
            Err(_) => {
                let expected = format!("the structure {}", self.tree.text(py)?);
                return Err(refuse(convert::describe(result)?, expected).into());
            }
        };
        let leaves: Leaves<'_> = if tree.equals(py, &self.tree)? {
            leaves
        } else if let Some(positions) = self.tree.leaf_positions_in(py, &tree)? {
            positions.into_iter().map(|position| leaves[position].clone()).collect()
        } else {
            let expected = format!("the structure {}", self.tree.text(py)?);
            return Err(refuse(format!("the structure {}", tree.text(py)?), expected).into());
        };
        let mut tensors = Vec::new();
        let mut backend: Option<Bound<'_, PyAny>> = None;
        for (output, leaf) in self.outputs.iter().zip(&leaves) {
            let Output::Result(position, _) = output else { continue };
            let ty: &TensorType = self.region.graph().ty(self.region.results()[*position]);
            let tensor = match leaf.cast::<PyTensor>() {
                Ok(tensor) => tensor.get().tensor.flat(),
                Err(_) => {
                    if backend.is_none() && compiler.object.bind(py).hasattr(intern!(py, "to_backend"))? {
                        backend = Some(compiler.call("to_backend", (compiler.options(py)?,), py)?);
                    }
                    build::tensor(leaf, None, None, backend.as_ref(), None)?.tensor
                }
            };
            let Some(buffer) = tensor.buffer() else {
                return Err(refuse("a tensor without values".to_owned(), ty.to_string()).into());
            };
            if tensor.ty().dtype != ty.dtype || tensor.ty().shape.sizes() != ty.shape.sizes() {
                return Err(refuse(tensor.ty().to_string(), ty.to_string()).into());
            }
            tensors.push(Tensor::concrete(ty.clone(), buffer.clone()));
        }
        Ok(tensors)
    }
}
