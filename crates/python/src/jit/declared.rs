//! The parameters that a function declares. What a plain function has of them in its code is read there: `inspect` takes
//! as long as tracing a few operations.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::error::Fallible;

/// The flag of code that takes further positional arguments: `CO_VARARGS` of `inspect`.
const TAKES_POSITIONAL: u32 = 4;
/// The flag of code that takes further named arguments: `CO_VARKEYWORDS`.
const TAKES_NAMED: u32 = 8;

/// How a parameter takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    PositionalOnly,
    Positional,
    /// All further positional arguments.
    FurtherPositional,
    KeywordOnly,
    /// All further named arguments.
    FurtherNamed,
}

/// A parameter as a function declares it.
pub(super) struct Declared<'py> {
    pub(super) name: Bound<'py, PyString>,
    pub(super) kind: Kind,
    pub(super) annotation: Option<Bound<'py, PyAny>>,
    pub(super) is_required: bool,
}

/// The parameters of a function, in their order. None for some functions written in C, which do not have a signature.
///
/// # Errors
/// What `inspect.signature` raises.
pub(super) fn declared<'py>(fun: &Bound<'py, PyAny>) -> Fallible<Option<Vec<Declared<'py>>>> {
    match plain(fun)? {
        Some(parameters) => Ok(Some(parameters)),
        None => inspected(fun),
    }
}

/// Those of a function of Python without decorators that say something else.
fn plain<'py>(fun: &Bound<'py, PyAny>) -> Fallible<Option<Vec<Declared<'py>>>> {
    static FUNCTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = fun.py();
    if !fun.get_type().is(FUNCTION.import(py, "types", "FunctionType")?) {
        return Ok(None);
    }
    let own = fun.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>().map_err(PyErr::from)?;
    if own.contains(intern!(py, "__wrapped__"))? || own.contains(intern!(py, "__signature__"))? {
        return Ok(None);
    }
    let code = fun.getattr(intern!(py, "__code__"))?;
    let count = |name: &Bound<'py, PyString>| code.getattr(name)?.extract::<usize>();
    let positional_only = count(intern!(py, "co_posonlyargcount"))?;
    let positional = count(intern!(py, "co_argcount"))?;
    let keyword_only = count(intern!(py, "co_kwonlyargcount"))?;
    let flags: u32 = code.getattr(intern!(py, "co_flags"))?.extract()?;
    let names = code.getattr(intern!(py, "co_varnames"))?.cast_into::<PyTuple>().map_err(PyErr::from)?;
    let defaults = fun.getattr(intern!(py, "__defaults__"))?;
    let defaults = if defaults.is_none() { 0 } else { defaults.len()? };
    let named_defaults = fun.getattr(intern!(py, "__kwdefaults__"))?;
    let annotations = fun.getattr(intern!(py, "__annotations__"))?;
    let declare = |position: usize, kind: Kind, is_required: bool| -> Fallible<Declared<'py>> {
        let name = names.get_item(position)?.cast_into::<PyString>().map_err(PyErr::from)?;
        let annotation = if annotations.contains(&name)? { Some(annotations.get_item(&name)?) } else { None };
        Ok(Declared { name, kind, annotation, is_required })
    };
    let mut parameters = Vec::new();
    for position in 0..positional {
        let kind = if position < positional_only { Kind::PositionalOnly } else { Kind::Positional };
        parameters.push(declare(position, kind, position + defaults < positional)?);
    }
    let mut further = positional + keyword_only;
    if flags & TAKES_POSITIONAL != 0 {
        parameters.push(declare(further, Kind::FurtherPositional, false)?);
        further += 1;
    }
    for position in positional..positional + keyword_only {
        let name = names.get_item(position)?;
        let has_default = !named_defaults.is_none() && named_defaults.contains(name)?;
        parameters.push(declare(position, Kind::KeywordOnly, !has_default)?);
    }
    if flags & TAKES_NAMED != 0 {
        parameters.push(declare(further, Kind::FurtherNamed, false)?);
    }
    Ok(Some(parameters))
}

/// Those that `inspect` finds.
fn inspected<'py>(fun: &Bound<'py, PyAny>) -> Fallible<Option<Vec<Declared<'py>>>> {
    let py = fun.py();
    let inspect = py.import("inspect")?;
    let signature = match inspect.call_method1(intern!(py, "signature"), (fun,)) {
        Ok(signature) => signature,
        Err(error) if error.is_instance_of::<PyValueError>(py) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let empty = inspect.getattr(intern!(py, "_empty"))?;
    let mut parameters = Vec::new();
    for parameter in signature.getattr("parameters")?.call_method0("values")?.try_iter()? {
        let parameter = parameter?;
        let name = parameter.getattr("name")?.cast_into::<PyString>().map_err(PyErr::from)?;
        let kind: String = parameter.getattr("kind")?.getattr("name")?.extract()?;
        let kind = match &*kind {
            "POSITIONAL_ONLY" => Kind::PositionalOnly,
            "VAR_POSITIONAL" => Kind::FurtherPositional,
            "KEYWORD_ONLY" => Kind::KeywordOnly,
            "VAR_KEYWORD" => Kind::FurtherNamed,
            _ => Kind::Positional,
        };
        let annotation = parameter.getattr("annotation")?;
        let annotation = if annotation.is(&empty) { None } else { Some(annotation) };
        let is_required = parameter.getattr("default")?.is(&empty);
        parameters.push(Declared { name, kind, annotation, is_required });
    }
    Ok(Some(parameters))
}
