//! Default options of the process and of a context, which takes precedence, and the compilers that they name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use defn_core::evaluator::Evaluator;
use defn_core::{DType, ErrorKind};
use defn_cpu::CpuCompiler;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::backends;
use crate::compilers::{BuiltIn, Choice};
use crate::convert;
use crate::dtype::{self, PyDType};
use crate::error::{Fallible, Fault, guard, if_fits};
use crate::jit;
use crate::misuse::Misuse;
use crate::pjrt;
use crate::threads;

/// Compilers that are part of this build.
const COMPILERS: &[&str] = &["cpu", "evaluator", "pjrt"];
const DEFAULT: &str = "cpu";
/// The options that have defaults.
const KNOWN: &[&str] = &[
    "compiler",
    "backend",
    "threads",
    "max_compiles",
    "compile",
    "on_conflict",
    "print_limit",
    "print_place",
    "log_compiles",
    "default_float",
];

/// The default compiler without options.
static CPU: OnceLock<Arc<BuiltIn>> = OnceLock::new();

/// Whether any default was ever set. While it is false, calls skip the look-up.
static ANY_SET: AtomicBool = AtomicBool::new(false);

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// The built-in compiler of a name, with options for it.
///
/// # Errors
/// An unknown name, and options that the compiler does not take.
pub(crate) fn built_in(
    py: Python<'_>,
    name: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> Fallible<Arc<BuiltIn>> {
    static EVALUATOR: OnceLock<Arc<BuiltIn>> = OnceLock::new();
    static PJRT: OnceLock<Arc<BuiltIn>> = OnceLock::new();
    let options = options.filter(|options| !options.is_empty());
    match (name, options) {
        ("cpu", None) => {
            let make = || Arc::new(BuiltIn::new("cpu", Arc::new(CpuCompiler::new()), None));
            Ok(CPU.get_or_init(make).clone())
        }
        ("evaluator", None) => {
            let make =
                || Arc::new(BuiltIn::new("evaluator", Arc::new(Evaluator::new(backends::host())), None));
            Ok(EVALUATOR.get_or_init(make).clone())
        }
        ("cpu", Some(options)) => with_threads(py, options),
        ("evaluator", Some(options)) => {
            let option = options.keys().get_item(0)?.str()?.to_string();
            Err(Misuse::CompilerOption { name: name.to_owned(), option, known: "none" }.into())
        }
        ("pjrt", None) => {
            if let Some(known) = PJRT.get() {
                return Ok(known.clone());
            }
            // A failure is not cached: the plugin may start later.
            let (compiler, backend) = pjrt::compiler(py, None)?;
            let built_in = Arc::new(BuiltIn::new("pjrt", compiler, backend));
            Ok(PJRT.get_or_init(|| built_in).clone())
        }
        ("pjrt", Some(options)) => {
            let (compiler, backend) = pjrt::compiler(py, Some(options))?;
            Ok(Arc::new(BuiltIn::new("pjrt", compiler, backend).with_options(options.copy()?.unbind())))
        }
        (name, _) => {
            Err(ErrorKind::UnknownCompiler { name: name.to_owned(), known: quoted(COMPILERS) }.into())
        }
    }
}

/// The CPU compiler with its options. There is one object for each number of threads, so that later calls
/// find their cached programs.
fn with_threads(py: Python<'_>, options: &Bound<'_, PyDict>) -> Fallible<Arc<BuiltIn>> {
    static BY_THREADS: Mutex<BTreeMap<usize, Arc<BuiltIn>>> = Mutex::new(BTreeMap::new());
    let op = "compiler \"cpu\"";
    let mut count = None;
    for (option, value) in options.iter() {
        let option = option.str()?.to_string();
        if option != "threads" {
            return Err(Misuse::CompilerOption { name: "cpu".to_owned(), option, known: "threads" }.into());
        }
        let required = "an int from 1 to 1024, or None for as many as outside";
        count = threads::parse(op, "threads", &value, required)?;
    }
    let Some(count) = count else { return built_in(py, "cpu", None) };
    let compiler = CpuCompiler::new().with_threads(count)?;
    let known = PyDict::new(py);
    known.set_item("threads", count)?;
    let mut by_threads = BY_THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || Arc::new(BuiltIn::new("cpu", Arc::new(compiler), None).with_options(known.unbind()));
    Ok(by_threads.entry(count).or_insert_with(make).clone())
}

/// The default compiler, with the options that a definition has for it.
///
/// # Errors
/// A name in `DEFN_COMPILER` that is not a compiler's, and options that the compiler does not take.
pub(crate) fn default_compiler(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> Fallible<Choice> {
    if !ANY_SET.load(Ordering::Relaxed) {
        return Ok(Choice::BuiltIn(built_in(py, from_environment(), options)?));
    }
    let defaults = effective(py)?;
    let own = compiler_options(&defaults)?;
    if let Some(options) = options {
        own.update(options.as_mapping())?;
    }
    match defaults.get_item(intern!(py, "compiler"))? {
        Some(compiler) => Choice::of("jit", &compiler, Some(&own)),
        None => Ok(Choice::BuiltIn(built_in(py, from_environment(), Some(&own))?)),
    }
}

/// The default options that belong to the compiler.
fn compiler_options<'py>(options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let own = PyDict::new(options.py());
    for (name, value) in options.iter() {
        if !KNOWN.contains(&&*name.str()?.to_string_lossy()) {
            own.set_item(name, value)?;
        }
    }
    Ok(own)
}

/// Whether a compiler is the one that [`default_compiler`] returns without options. False once any default
/// was set, because the defaults must then be read.
pub(crate) fn is_default(compiler: &Choice) -> bool {
    match (compiler, CPU.get()) {
        (Choice::BuiltIn(known), Some(cpu)) => {
            Arc::ptr_eq(known, cpu) && !ANY_SET.load(Ordering::Relaxed) && from_environment() == DEFAULT
        }
        (Choice::BuiltIn(_) | Choice::Python(_), _) => false,
    }
}

/// `DEFN_COMPILER`, read once.
fn from_environment() -> &'static str {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var("DEFN_COMPILER").ok().filter(|name| !name.is_empty()))
        .as_deref()
        .unwrap_or(DEFAULT)
}

/// The value of an environment variable that is set and not empty.
fn variable_set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn process_wide(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static OPTIONS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let make = || -> PyResult<Py<PyDict>> {
        let options = PyDict::new(py);
        for (variable, option) in [("DEFN_COMPILER", "compiler"), ("DEFN_BACKEND", "backend")] {
            if let Some(value) = variable_set(variable) {
                options.set_item(option, value)?;
            }
        }
        match variable_set("DEFN_LOG").as_deref() {
            None => {}
            Some("compiles") => options.set_item("log_compiles", true)?,
            Some(other) => {
                let (option, got) = ("DEFN_LOG".to_owned(), format!("\"{other}\""));
                let required = "\"compiles\" or not set".to_owned();
                return Err(Fault::from(Misuse::OptionValue { op: "options", option, got, required }).into());
            }
        }
        Ok(options.unbind())
    };
    Ok(OPTIONS.get_or_try_init(py, make)?.bind(py))
}

/// A context variable, made at its first use: threads and asynchronous tasks have their own values.
pub(crate) fn context_variable<'py>(
    py: Python<'py>,
    variable: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let make = || -> PyResult<Py<PyAny>> {
        Ok(py.import("contextvars")?.call_method1("ContextVar", (name,))?.unbind())
    };
    Ok(variable.get_or_try_init(py, make)?.bind(py))
}

fn of_context(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    context_variable(py, &VARIABLE, "defn_options")
}

/// Whether any default may differ from the built-in ones.
#[inline]
pub(crate) fn is_any_set() -> bool {
    static FROM_ENVIRONMENT: OnceLock<bool> = OnceLock::new();
    let read = || ["DEFN_BACKEND", "DEFN_LOG"].into_iter().any(|name| variable_set(name).is_some());
    ANY_SET.load(Ordering::Relaxed) || *FROM_ENVIRONMENT.get_or_init(read)
}

/// The value of an option in this context, if it was set.
pub(crate) fn get<'py>(py: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !is_any_set() {
        return Ok(None);
    }
    if let Some(here) = context(py)?
        && let Some(value) = here.get_item(name)?
    {
        return Ok(Some(value));
    }
    process_wide(py)?.get_item(name)
}

/// The data type of Python floats in the namespace of the array API standard.
#[inline]
pub(crate) fn default_float(py: Python<'_>) -> Fallible<DType> {
    // The usual case needs no look-up.
    if !is_any_set() {
        return Ok(DType::F64);
    }
    match get(py, intern!(py, "default_float"))? {
        Some(value) => parse_float("default_options", &value),
        None => Ok(DType::F64),
    }
}

fn parse_float(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<DType> {
    let found = dtype::parse(value)?;
    if [DType::F32, DType::F64].contains(&found) {
        return Ok(found);
    }
    let (option, got) = ("default_float".to_owned(), convert::text(value)?);
    Err(Misuse::OptionValue { op, option, got, required: "f32 or f64".to_owned() }.into())
}

/// Sets one option of this context, and keeps the others.
pub(crate) fn set<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyString>,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let options = match context(py)? {
        Some(here) => here.copy()?,
        None => PyDict::new(py),
    };
    options.set_item(name, value)?;
    replace(py, options.as_any())
}

/// The options that were set in this context.
fn context(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let here = of_context(py)?.call_method1(intern!(py, "get"), (py.None(),))?;
    Ok(here.cast_into::<PyDict>().ok())
}

fn replace(py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<()> {
    ANY_SET.store(true, Ordering::Relaxed);
    of_context(py)?.call_method1(intern!(py, "set"), (options,))?;
    Ok(())
}

/// The options that were set in this context, or None.
#[pyfunction]
fn context_options(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    context(py)
}

/// Restores the options of this context that [`context_options`] returned.
#[pyfunction]
fn restore_context_options(py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<()> {
    replace(py, options)
}

/// The effective options: those of the context over those of the process.
fn effective(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let merged = process_wide(py)?.copy()?;
    if let Some(here) = context(py)? {
        merged.update(here.as_mapping())?;
    }
    Ok(merged)
}

/// The error for options that a compiler refuses. An option that the PJRT compiler does not take either is
/// reported as unknown, with a list of all known options.
fn refused(op: &'static str, own: &Bound<'_, PyDict>, refusal: Fault) -> Fault {
    let unknown = |fault: &Fault| match fault {
        Fault::Misuse(misuse) => {
            if let Misuse::CompilerOption { option, .. } = &**misuse {
                Some(option.clone())
            } else {
                None
            }
        }
        Fault::Core(_) | Fault::Python(_) => None,
    };
    let by_pjrt = unknown(&refusal).and_then(|_| pjrt::check_options(own.py(), own).err());
    match by_pjrt.as_ref().and_then(unknown) {
        Some(option) => {
            let known = format!("{}, and options of the compiler", KNOWN.join(", "));
            Misuse::UnknownOption { op, option, known }.into()
        }
        None => refusal,
    }
}

fn check(op: &'static str, options: &Bound<'_, PyDict>, outside: &Bound<'_, PyDict>) -> Fallible<()> {
    let py = options.py();
    let own = compiler_options(options)?;
    let compiler = match options.get_item(intern!(py, "compiler"))? {
        Some(compiler) => Some(compiler),
        None => outside.get_item(intern!(py, "compiler"))?,
    };
    let refusal = match compiler {
        Some(compiler) => Choice::of(op, &compiler, Some(&own)).err(),
        None => pjrt::check_options(py, &own).err(),
    };
    if let Some(refusal) = refusal {
        return Err(refused(op, &own, refusal));
    }
    for (name, value) in options.iter() {
        let name = name.str()?.to_string();
        match &*name {
            "compiler" => {}
            "backend" => {
                backends::parse(Some(&value))?;
            }
            "threads" => threads::check(op, &value)?,
            "default_float" => {
                parse_float(op, &value)?;
            }
            "log_compiles" | "print_place" if value.is_instance_of::<PyBool>() => {}
            "log_compiles" | "print_place" => {
                let (option, got, required) = (name, convert::text(&value)?, "True or False".to_owned());
                return Err(Misuse::OptionValue { op, option, got, required }.into());
            }
            "print_limit" if value.is_none() || if_fits(value.py(), value.extract::<usize>())?.is_some() => {}
            "print_limit" => {
                let (option, got) = (name, convert::text(&value)?);
                let required = "an int that is at least 0, or None for all elements".to_owned();
                return Err(Misuse::OptionValue { op, option, got, required }.into());
            }
            known if KNOWN.contains(&known) => jit::check_default(op, known, &value)?,
            _ => {}
        }
    }
    ANY_SET.store(true, Ordering::Relaxed);
    Ok(())
}

/// Reads the options, or replaces those of this context and returns the previous ones.
#[pyfunction]
#[pyo3(signature = (options = None))]
fn default_options<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> Fallible<Bound<'py, PyDict>> {
    guard(|| {
        let before = effective(py)?;
        if let Some(options) = options {
            // The options of the process stay in effect with them.
            check("default_options", options, process_wide(py)?)?;
            of_context(py)?.call_method1(intern!(py, "set"), (options.copy()?,))?;
        }
        Ok(before)
    })
}

/// Reads the process-wide options, or replaces them and returns the previous ones.
#[pyfunction]
#[pyo3(signature = (options = None))]
fn global_default_options<'py>(
    py: Python<'py>,
    options: Option<&Bound<'py, PyDict>>,
) -> Fallible<Bound<'py, PyDict>> {
    guard(|| {
        let known = process_wide(py)?;
        let before = known.copy()?;
        if let Some(options) = options {
            check("global_default_options", options, &PyDict::new(py))?;
            let options = options.copy()?;
            known.clear();
            known.update(options.as_mapping())?;
        }
        Ok(before)
    })
}

/// The options with defaults that do not belong to a compiler.
#[pyfunction]
fn option_names() -> Vec<&'static str> {
    KNOWN.to_vec()
}

/// The data type of Python floats in the namespace of the array API standard.
#[pyfunction(name = "default_float")]
fn default_float_of_namespace(py: Python<'_>) -> Fallible<Bound<'_, PyDType>> {
    guard(|| Ok(dtype::object(py, default_float(py)?)?.clone()))
}

/// The names of the compilers of this build.
#[pyfunction]
fn compiler_names() -> Vec<&'static str> {
    COMPILERS.to_vec()
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(default_options, module)?)?;
    module.add_function(wrap_pyfunction!(global_default_options, module)?)?;
    module.add_function(wrap_pyfunction!(context_options, module)?)?;
    module.add_function(wrap_pyfunction!(restore_context_options, module)?)?;
    module.add_function(wrap_pyfunction!(option_names, module)?)?;
    module.add_function(wrap_pyfunction!(default_float_of_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(compiler_names, module)?)
}
