//! Compilers on the Python side: the compiler of each call by name or object, the compiler of the current
//! trace, and helpers for compilers written in Python.

use std::cell::RefCell;
use std::sync::Arc;

use defn_core::backend::{Backend, Checks, Compiler, Executable, Hooks};
use defn_core::builder::move_to_common_backend;
use defn_core::mesh::{self, Mesh};
use defn_core::op::UserBlockOp;
use defn_core::{ErrorKind, Tensor, TensorType, trace};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use crate::backends;
use crate::checks;
use crate::containers;
use crate::convert;
use crate::error::{Fallible, guard};
use crate::hooks;
use crate::jit::wrap;
use crate::misuse::Misuse;
use crate::nodes::Region;
use crate::options;
use crate::pjrt;
use crate::shard::{MeshCompilerHandle, PyMesh};

/// The compiler of a call.
#[derive(Clone)]
pub(crate) enum Choice {
    /// A compiler that is part of this build.
    BuiltIn(Arc<BuiltIn>),
    /// A compiler that is written in Python.
    Python(Arc<Custom>),
}

/// A compiler that is part of this build, with its options.
pub(crate) struct BuiltIn {
    name: &'static str,
    pub(crate) compiler: Arc<dyn Compiler>,
    /// The backend of the results where the arguments do not determine it.
    backend: Option<Arc<dyn Backend>>,
    options: Option<Py<PyDict>>,
    /// The mesh for which it compiles, if any.
    mesh: Option<Mesh>,
}

impl BuiltIn {
    pub(crate) fn new(
        name: &'static str,
        compiler: Arc<dyn Compiler>,
        backend: Option<Arc<dyn Backend>>,
    ) -> BuiltIn {
        BuiltIn { name, compiler, backend, options: None, mesh: None }
    }

    /// The compiler for a mesh, with further options.
    fn for_mesh(mesh: &Bound<'_, PyMesh>, options: Option<&Bound<'_, PyDict>>) -> Fallible<BuiltIn> {
        let backend = &mesh.get().backend;
        let compiler = pjrt::mesh_compiler(mesh.py(), backend, options)?;
        let options = options.map_or_else(|| Ok(PyDict::new(mesh.py())), |options| options.copy())?;
        options.set_item("mesh", mesh)?;
        let built_in = BuiltIn::new("pjrt", compiler, Some(backend.clone())).with_options(options.unbind());
        Ok(BuiltIn { mesh: Some(backend.mesh().clone()), ..built_in })
    }

    pub(crate) fn with_options(self, options: Py<PyDict>) -> BuiltIn {
        BuiltIn { options: Some(options), ..self }
    }

    /// Whether programs run on this machine in steps that can be timed one by one.
    pub(crate) fn runs_steps(&self) -> bool {
        self.name != "pjrt"
    }

    fn is_same(&self, py: Python<'_>, other: &BuiltIn) -> PyResult<bool> {
        if std::ptr::eq(self, other) {
            return Ok(true);
        }
        match (&self.options, &other.options) {
            (None, None) => Ok(self.name == other.name),
            (Some(a), Some(b)) => Ok(self.name == other.name && a.bind(py).eq(b)?),
            (Some(_), None) | (None, Some(_)) => Ok(false),
        }
    }
}

/// A compiler that is written in Python, with its options.
pub(crate) struct Custom {
    /// The object or class that the user passed.
    passed: Py<PyAny>,
    /// The object that has the callbacks.
    pub(crate) object: Py<PyAny>,
    /// For messages.
    pub(crate) name: String,
    options: Py<PyDict>,
}

impl Choice {
    /// The compiler that a user names, with the compiler's own options.
    ///
    /// # Errors
    /// An unknown name, an object without callbacks, or options for a compiler that takes none.
    pub(crate) fn of(
        op: &'static str,
        value: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<Choice> {
        let py = value.py();
        let name = match value.cast::<PyString>() {
            Ok(name) => Some(name.to_str()?.to_owned()),
            Err(_) => built_in_name(value)?,
        };
        if let Some(name) = name {
            return Ok(Choice::BuiltIn(options::built_in(py, &name, options)?));
        }
        if let Ok(handle) = value.cast::<MeshCompilerHandle>() {
            let mesh = handle.get().0.bind(py);
            return Ok(Choice::BuiltIn(Arc::new(BuiltIn::for_mesh(mesh, options)?)));
        }
        let has = |callback: &str| value.hasattr(callback);
        if !has("compile")? && !has("jit")? {
            let required = "the name of a compiler, or an object with the callbacks of dn.Compiler";
            return Err(convert::bad(op, "the compiler", value, required)?);
        }
        let object = if value.is_instance_of::<PyType>() { value.call0()? } else { value.clone() };
        let name =
            object.getattr_opt(intern!(py, "__name__"))?.unwrap_or(object.get_type().name()?.into_any());
        let options = match options {
            Some(options) => options.copy()?,
            None => PyDict::new(py),
        };
        Ok(Choice::Python(Arc::new(Custom {
            passed: value.clone().unbind(),
            name: name.str()?.to_string(),
            object: object.unbind(),
            options: options.unbind(),
        })))
    }

    /// Whether two calls are compiled by one compiler with equal options.
    pub(crate) fn is_same(&self, py: Python<'_>, other: &Choice) -> PyResult<bool> {
        match (self, other) {
            (Choice::BuiltIn(a), Choice::BuiltIn(b)) => a.is_same(py, b),
            (Choice::Python(a), Choice::Python(b)) => Ok(Arc::ptr_eq(a, b)
                || (a.passed.is(&b.passed) || a.passed.bind(py).eq(&b.passed)?)
                    && a.options.bind(py).eq(&b.options)?),
            (Choice::BuiltIn(_) | Choice::Python(_), _) => Ok(false),
        }
    }

    /// The first property in which two different compilers differ, and its value in each.
    pub(crate) fn difference(
        &self,
        py: Python<'_>,
        other: &Choice,
    ) -> PyResult<(&'static str, String, String)> {
        let same = match (self, other) {
            (Choice::Python(a), Choice::Python(b)) => a.passed.bind(py).eq(&b.passed)?,
            (Choice::BuiltIn(a), Choice::BuiltIn(b)) => a.name == b.name,
            (Choice::Python(_) | Choice::BuiltIn(_), _) => false,
        };
        if same {
            let (a, b) = (self.options_text(py), other.options_text(py));
            return Ok(("the options of the compiler", a, b));
        }
        let (a, b) = (format!("\"{}\"", self.name()), format!("\"{}\"", other.name()));
        let b = if a == b { format!("another {b}") } else { b };
        Ok(("the compiler", a, b))
    }

    fn options_text(&self, py: Python<'_>) -> String {
        match self {
            Choice::BuiltIn(built_in) => match &built_in.options {
                Some(options) => containers::value_text(options.bind(py)),
                None => "{}".to_owned(),
            },
            Choice::Python(custom) => containers::value_text(custom.options.bind(py)),
        }
    }

    /// The device of a built-in compiler whose options select one.
    pub(crate) fn chosen_backend(&self) -> Option<Arc<dyn Backend>> {
        match self {
            Choice::BuiltIn(built_in) => built_in.options.as_ref().and(built_in.backend.clone()),
            Choice::Python(_) => None,
        }
    }

    /// For messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Choice::BuiltIn(built_in) => built_in.name,
            Choice::Python(custom) => &custom.name,
        }
    }

    /// The Python object of the compiler.
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Choice::BuiltIn(built_in) => {
                py.import("defn.compilers")?.call_method1(intern!(py, "get"), (built_in.name,))
            }
            Choice::Python(custom) => Ok(custom.object.bind(py).clone()),
        }
    }
}

/// The name of a compiler object that `defn.compilers.get` returned.
fn built_in_name(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = value.py();
    let class = py.import("defn.compilers")?.getattr(intern!(py, "BuiltIn"))?;
    if !value.is_instance(&class)? {
        return Ok(None);
    }
    Ok(Some(value.getattr(intern!(py, "name"))?.extract()?))
}

impl Custom {
    /// Whether the compiler overrides a callback of the base class.
    pub(crate) fn defines(&self, py: Python<'_>, callback: &'static str) -> PyResult<bool> {
        let object = self.object.bind(py);
        let base = py.import("defn.compilers")?.getattr(intern!(py, "Compiler"))?;
        if object.is_instance(&base)? {
            return Ok(!object.get_type().getattr(callback)?.is(&base.getattr(callback)?));
        }
        object.hasattr(callback)
    }

    /// Calls a callback.
    ///
    /// # Errors
    /// The compiler lacks the callback, or the callback raises.
    pub(crate) fn call<'py>(
        &self,
        callback: &'static str,
        args: impl pyo3::call::PyCallArgs<'py>,
        py: Python<'py>,
    ) -> Fallible<Bound<'py, PyAny>> {
        match self.object.bind(py).getattr_opt(callback)? {
            Some(method) => Ok(method.call1(args)?),
            None => Err(Misuse::CompilerCallback { callback, compiler: self.name.clone() }.into()),
        }
    }

    /// A copy of the options, which the compiler may change.
    pub(crate) fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.options.bind(py).copy()
    }

    /// Refuses checks that the compiler does not support. It lists the supported ones in its attribute
    /// `checks`.
    pub(crate) fn refuse_checks(&self, py: Python<'_>, checks: Checks) -> Fallible<()> {
        for kind in kinds(checks) {
            let supported = self.object.bind(py).getattr_opt(intern!(py, "checks"))?;
            if !supported.map(|supported| supported.contains(kind)).transpose()?.unwrap_or(false) {
                return Err(Misuse::CompilerChecks { compiler: self.name.clone(), kind }.into());
            }
        }
        Ok(())
    }
}

/// The requested checks by name.
fn kinds(checks: Checks) -> impl Iterator<Item = &'static str> {
    [("nan", checks.nan), ("inf", checks.inf), ("index", checks.index)]
        .into_iter()
        .filter(|(_, on)| *on)
        .map(|(kind, _)| kind)
}

thread_local! {
    static TRACING: RefCell<Vec<Choice>> = const { RefCell::new(Vec::new()) };
}

/// While this guard lives, its compiler is the current one.
pub(crate) struct Current(#[expect(dead_code, reason = "it is held")] Option<mesh::Entered>);

/// Makes a compiler the current one of this thread's traces until the result is dropped.
pub(crate) fn enter(choice: Choice) -> Current {
    let entered = match &choice {
        Choice::BuiltIn(built_in) => built_in.mesh.clone().map(mesh::enter),
        Choice::Python(_) => None,
    };
    TRACING.with_borrow_mut(|stack| stack.push(choice));
    Current(entered)
}

impl Drop for Current {
    fn drop(&mut self) {
        // The entry is dropped outside the borrow, since dropping it may run Python code.
        let ended = TRACING.with_borrow_mut(Vec::pop);
        drop(ended);
    }
}

/// The compiler of the current trace on this thread.
#[pyfunction]
fn current_compiler(py: Python<'_>) -> Fallible<Option<Bound<'_, PyAny>>> {
    if trace::depth() == 0 {
        return Ok(None);
    }
    let current = TRACING.with_borrow(|stack| stack.last().cloned());
    Ok(current.map(|choice| choice.object(py)).transpose()?)
}

/// Whether a definition is traced on this thread.
#[pyfunction]
fn is_tracing() -> bool {
    trace::depth() > 0
}

/// The name of the selected built-in compiler and the backend of its results, or the compiler object and
/// `None`.
#[pyfunction]
#[pyo3(signature = (value = None, options = None))]
fn find_compiler<'py>(
    py: Python<'py>,
    value: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> Fallible<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
    guard(|| {
        let choice = match value.filter(|value| !value.is_none()) {
            Some(value) => Choice::of("compiler", value, options)?,
            None => options::default_compiler(py, options)?,
        };
        match &choice {
            Choice::BuiltIn(built_in) => {
                let backend = match &built_in.backend {
                    Some(backend) => backend.clone(),
                    None => backends::default()?,
                };
                Ok((PyString::new(py, built_in.name).into_any(), Some(backends::object(py, &*backend)?)))
            }
            Choice::Python(custom) => Ok((custom.object.bind(py).clone(), None)),
        }
    })
}

/// The checks that are requested in this context.
#[pyfunction]
fn checks_asked(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, kinds(checks::current()).collect::<Vec<_>>())
}

/// A program of a built-in compiler; it computes the results of one region.
#[pyclass(frozen, module = "defn._core")]
struct BuiltInProgram {
    executable: Arc<dyn Executable>,
}

/// The hooks of the run to which a Python compiler's program belongs, if any.
struct RunHooks<'py>(Option<Bound<'py, hooks::RunTable>>);

impl Hooks for RunHooks<'_> {
    fn call(&self, slot: usize, values: &[Tensor]) -> defn_core::Result<()> {
        match &self.0 {
            Some(table) => table.get().show(table.py(), slot, values).map_err(crate::pybackend::carry),
            None => Ok(()),
        }
    }

    fn compute(
        &self,
        slot: usize,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> defn_core::Result<Vec<Tensor>> {
        match &self.0 {
            Some(table) => {
                let computed = table.get().compute_tensors(table.py(), slot, values, outputs);
                computed.map_err(crate::pybackend::carry)
            }
            None => Err(ErrorKind::NoHostFunction { slot }.into()),
        }
    }

    fn native(
        &self,
        block: &UserBlockOp,
        backend: &Arc<dyn Backend>,
        values: &[Tensor],
        outputs: &[TensorType],
    ) -> defn_core::Result<Option<Vec<Tensor>>> {
        match &self.0 {
            Some(table) => {
                let native = table.get().native(table.py(), block, backend, values, outputs);
                native.map_err(crate::pybackend::carry)
            }
            None => Ok(None),
        }
    }

    fn poll(&self) -> defn_core::Result<()> {
        Python::attach(|py| py.check_signals()).map_err(crate::pybackend::carry)
    }
}

#[pymethods]
impl BuiltInProgram {
    /// The results of the region for a list of arguments.
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyAny>) -> Fallible<Bound<'py, PyList>> {
        guard(|| {
            let mut tensors = Vec::new();
            for arg in args.try_iter()? {
                tensors.push(convert::tensor("compile", &arg?)?.flat());
            }
            let backend = move_to_common_backend("run", &mut tensors, &backends::default()?)?;
            let hooks = RunHooks(hooks::current_run(py)?);
            let results = self.executable.run(&backend, tensors, &hooks)?;
            Ok(PyList::new(py, wrap(py, results.into_iter())?)?)
        })
    }

    /// The results of the region for each of several lists of arguments.
    fn run_each<'py>(
        &self,
        py: Python<'py>,
        args_list: &Bound<'py, PyAny>,
    ) -> Fallible<Vec<Bound<'py, PyList>>> {
        guard(|| {
            let mut lists = Vec::new();
            for args in args_list.try_iter()? {
                let mut tensors = Vec::new();
                for arg in args?.try_iter()? {
                    tensors.push(convert::tensor("compile", &arg?)?.flat());
                }
                lists.push((move_to_common_backend("run", &mut tensors, &backends::default()?)?, tensors));
            }
            let hooks = RunHooks(hooks::current_run(py)?);
            let results = self.executable.run_each(lists, &hooks)?;
            let each = results.into_iter().map(|list| Ok(PyList::new(py, wrap(py, list.into_iter())?)?));
            each.collect()
        })
    }
}

/// Compiles a region with a built-in compiler.
#[pyfunction]
#[pyo3(signature = (name, region, options = None))]
fn compile_region(
    name: &str,
    region: &Bound<'_, Region>,
    options: Option<&Bound<'_, PyDict>>,
) -> Fallible<BuiltInProgram> {
    guard(|| {
        let program = Arc::new(region.get().closed());
        let built_in = options::built_in(region.py(), name, options)?;
        let executable = built_in.compiler.compile(program, checks::current())?;
        Ok(BuiltInProgram { executable })
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BuiltInProgram>()?;
    module.add_function(wrap_pyfunction!(current_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(is_tracing, module)?)?;
    module.add_function(wrap_pyfunction!(find_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(checks_asked, module)?)?;
    module.add_function(wrap_pyfunction!(compile_region, module)?)
}
