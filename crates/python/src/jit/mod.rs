//! Definitions: callables that trace a Python function once for each signature, and run the compiled trace.
//!
//! A call whose version is compiled already runs in Rust alone: the arguments are flattened, the version is looked
//! up, the program runs, and the results are put into their containers.

mod argument_names;
mod background;
mod cache;
mod call;
mod compile_lock;
mod compiled;
mod declared;
mod definition;
mod donate;
mod explain;
mod function;
mod guards;
pub(crate) mod leaf;
mod log;
mod memory;
mod profile;
mod program;
mod python;
mod saved;
mod settings;
mod signature;
pub(crate) mod staged;
mod statistics;
mod traced;
mod versions;

use std::ops::Deref;

use defn_core::trace;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::compilers::Choice;
use crate::convert;
use crate::error::{Fallible, guard};
use crate::fields::Fields;
use crate::grad::Gradient;
use crate::hooks;
use crate::misuse::Misuse;
use crate::recursion;
use crate::tensor::PyTensor;
pub(crate) use compiled::{flatten_arguments, named_type};
use definition::{Definition, Kind};
use function::WrappedFunction;
pub(crate) use leaf::{Borrowed, arguments as leaf_arguments, model as leaf_model, ty as leaf_type};
pub(crate) use log::warn_of;
pub(crate) use python::traced_by;
pub(crate) use settings::check_default;
use settings::{CompileMode, Conflict, Settings, compile_limit, marked_names};
use signature::Signature;
use statistics::Statistics;
use versions::Versions;
pub(crate) use {leaf::wrap, signature::function_name, traced::result_tensor};

/// A definition.
#[pyclass(frozen, dict, weakref, module = "defn._core")]
pub(crate) struct Jitted(Fields<Definition>);

impl Deref for Jitted {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0
    }
}

impl Jitted {
    /// The Python function.
    pub(crate) fn fun<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        self.function.bind(py)
    }

    /// A definition that differentiates a function.
    pub(crate) fn gradient(fun: &Bound<'_, PyAny>, gradient: Gradient) -> Fallible<Jitted> {
        let settings = Settings { conflict: Some(Conflict::Reuse), ..Settings::default() };
        let definition = Jitted::build(fun, false, Kind::Gradient(gradient), &[], settings)?;
        Ok(Jitted(definition.into()))
    }

    /// A definition of a function. The parameters that `marked` names are static.
    fn build(
        fun: &Bound<'_, PyAny>,
        convert: bool,
        kind: Kind,
        marked: &[String],
        settings: Settings,
    ) -> Fallible<Definition> {
        if !fun.is_callable() {
            return Err(convert::bad("jit", "the function", fun, "callable")?);
        }
        let signature = match &kind {
            Kind::Gradient(gradient) if gradient.takes_tangents() => {
                Signature::of_inputs(fun.py(), &["primals", "tangents"])
            }
            Kind::Gradient(_) | Kind::Plain => Signature::new(fun, marked)?,
        };
        let versions = Versions::of(fun, &kind, marked, &settings.donate)?;
        let function = WrappedFunction::new(fun, convert)?;
        Ok(Definition { function, kind, signature, settings, versions, statistics: Statistics::default() })
    }

    /// Calls the function, or its derivative, directly. Nothing is compiled. The arguments may be tensors of the open
    /// trace.
    fn apply<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let fun = self.function.called(args.py())?;
        match &self.kind {
            Kind::Plain => Ok(fun.call(args, kwargs)?),
            Kind::Gradient(gradient) => gradient.call(fun, args, kwargs),
        }
    }
}

#[pymethods]
impl Jitted {
    #[new]
    #[pyo3(signature = (fun, *, inline = false, r#static = None, on_conflict = None, compiler = None,
                        max_compiles = None, options = None, convert = false, hooks = None, donate = None,
                        compile = None))]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a definition")]
    fn new(
        fun: &Bound<'_, PyAny>,
        inline: bool,
        r#static: Option<&Bound<'_, PyAny>>,
        on_conflict: Option<&Bound<'_, PyAny>>,
        compiler: Option<&Bound<'_, PyAny>>,
        max_compiles: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
        convert: bool,
        hooks: Option<&Bound<'_, PyAny>>,
        donate: Option<&Bound<'_, PyAny>>,
        compile: Option<&Bound<'_, PyAny>>,
    ) -> Fallible<Jitted> {
        guard(|| {
            let compile = CompileMode::requested("jit", compile)?;
            let conflict = match on_conflict.filter(|value| !inline && !value.is_none()) {
                Some(value) => Some(Conflict::of("jit", value)?),
                None => inline.then_some(Conflict::Reuse),
            };
            let compiler = compiler.filter(|compiler| !compiler.is_none());
            let compiler = compiler.map(|compiler| Choice::of("jit", compiler, options)).transpose()?;
            let max_compiles = max_compiles.map(|limit| compile_limit("jit", limit)).transpose()?.flatten();
            // A definition of a plain definition wraps the function of that definition.
            let (fun, convert) = match fun.cast::<Jitted>() {
                Ok(inner) if matches!(inner.get().kind, Kind::Plain) => {
                    (inner.get().fun(fun.py()).clone(), convert || inner.get().function.converts)
                }
                Ok(_) | Err(_) => (fun.clone(), convert),
            };
            let marked = marked_names(r#static)?;
            let hooks = hooks::named("jit", hooks)?;
            let options = options.map(|options| options.clone().unbind());
            let donate_later = Vec::new();
            let settings =
                Settings { conflict, compiler, options, max_compiles, compile, hooks, donate: donate_later };
            let mut definition = Jitted::build(&fun, convert, Kind::Plain, &marked, settings)?;
            let donate = donate::parse("jit", donate)?;
            if !donate.is_empty() {
                donate::check(fun.py(), &donate, &definition.signature)?;
                definition.versions = Versions::of(&fun, &Kind::Plain, &marked, &donate)?;
                definition.settings.donate = donate;
            }
            Ok(Jitted(definition.into()))
        })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let this = slf.get();
        guard(|| {
            if trace::depth() == 0 {
                return Jitted::run(slf, args, kwargs);
            }
            match this.settings.conflict(slf.py())? {
                Conflict::Reuse => {
                    // Nothing is compiled, but unknown options are an error wherever the call is.
                    if this.settings.options.is_some() {
                        this.settings.compiler(slf.py())?;
                    }
                    let _call = recursion::enter(this.kind.op())?;
                    this.apply(args, kwargs)
                }
                Conflict::Raise => {
                    let fun = this.function.name(args.py());
                    Err(Misuse::Conflict { fun }.into())
                }
                Conflict::Force => {
                    let is_traced = |value: Bound<'_, PyAny>| {
                        value.cast::<PyTensor>().is_ok_and(|tensor| tensor.get().tensor.is_traced())
                    };
                    if args.iter().any(is_traced) {
                        let fun = this.function.name(args.py());
                        return Err(Misuse::ForcedTraced { op: "jit", fun }.into());
                    }
                    Jitted::run(slf, args, kwargs)
                }
            }
        })
    }

    /// Runs a call and measures its steps.
    #[pyo3(signature = (*args, **kwargs))]
    fn profile<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Bound<'py, PyAny>> {
        let chosen = || slf.get().settings.compiler(slf.py()).map(Some);
        profile::profile(slf.py(), chosen, || Jitted::run(slf, args, kwargs))
    }

    /// The memory that a call would allocate. The call does not run.
    #[pyo3(signature = (*args, **kwargs))]
    fn memory(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<memory::PyMemoryNeed> {
        memory::memory(slf, args, kwargs)
    }

    /// The loop nests of the program for a call, and their machine code. The call does not run.
    #[pyo3(signature = (*args, instructions=None, **kwargs))]
    fn asm(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        instructions: Option<&str>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Fallible<String> {
        memory::with_version(slf, args, kwargs, |executable| Ok(executable.assembly(instructions)?))
    }

    /// Binds the definition to an object, so that it works as a method.
    fn __get__<'py>(
        slf: Bound<'py, Self>,
        instance: Option<Bound<'py, PyAny>>,
        _owner: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match instance.filter(|instance| !instance.is_none()) {
            Some(instance) => function::method_class(py)?.call1((slf, instance)),
            None => Ok(slf.into_any()),
        }
    }

    /// A definition is pickled as a function is: by its name in its module.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr(intern!(slf.py(), "__qualname__"))
    }

    #[getter(fun)]
    fn function(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.bind(py).clone().unbind()
    }

    /// The number of calls that found a compiled version, the number of calls that compiled one, the seconds spent on
    /// compiling, the number of versions that are kept, the limit of that number, and how many of them are compiled in the
    /// background at this moment.
    fn cache_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (size, limit) = (self.versions.shared.len(), self.versions.limit());
        self.statistics.cache_info(py, size, limit, self.versions.shared.compiling())
    }

    /// Waits until the versions that are compiled in the background are there.
    fn wait(&self, py: Python<'_>) -> Fallible<()> {
        guard(|| {
            let entries = self.versions.shared.all().into_iter().filter_map(|(_, entry)| entry);
            entries.into_iter().try_for_each(|entry| background::wait(py, &**entry.program.executable()))
        })
    }

    /// Forgets every compiled version and the statistics of the definition.
    fn cache_clear(&self) {
        self.versions.clear();
        self.statistics.clear();
    }

    /// Why each version was compiled, the oldest first.
    fn explain(&self) -> Vec<String> {
        self.statistics.reasons()
    }

    /// The function that the definition wraps, and the annotations and attributes of that function.
    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.function.attribute(name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.get().map_or(Ok(()), |definition| definition.traverse(&visit))
    }

    fn __clear__(&self) {
        if let Some(definition) = self.0.get() {
            definition.clear();
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (op, name, size) = (self.kind.op(), self.function.name(py), self.versions.shared.len());
        let about = (op, name, self.function.bind(py), size);
        py.import("defn._describe")?.call_method1("definition", about)?.extract()
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Jitted>()?;
    python::add(module)?;
    saved::add(module)?;
    profile::add(module)?;
    memory::add(module)?;
    guards::add(module)?;
    compiled::add(module)
}
