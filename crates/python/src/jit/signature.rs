//! The signature of a Python function: how it takes its arguments, and which of them are inputs.

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::declared::{Declared, Kind, declared};
use crate::annotations::{self, StaticDeclarations};
use crate::containers::{self, Flat, Mode};
use crate::error::{Fallible, if_there_or_defer};
use crate::misuse::Misuse;

/// The parameters of a function. Positional parameters are inputs, and keyword-only parameters are options.
pub(crate) struct Signature {
    /// The positional parameters, then the keyword-only ones.
    parameters: Vec<Parameter>,
    /// The number of positional parameters.
    positional: usize,
    /// The number of positional parameters that cannot be passed by name.
    positional_only: usize,
    /// The name of the parameter for further positional arguments.
    varargs: Option<String>,
    keywords: bool,
}

struct Parameter {
    name: Py<PyString>,
    mode: Mode,
    required: bool,
}

impl Signature {
    /// Inspects a function. The parameters named in `marked` are static, as are those that are annotated as static.
    ///
    /// # Errors
    /// A name that no parameter has.
    pub(crate) fn new(fun: &Bound<'_, PyAny>, marked: &[String]) -> Fallible<Signature> {
        let py = fun.py();
        let Some(declared) = declared(fun)? else {
            return Ok(Signature {
                parameters: Vec::new(),
                positional: 0,
                positional_only: 0,
                varargs: Some("args".to_owned()),
                keywords: true,
            });
        };
        let is_known = |name: &str| marked.iter().any(|known| known == name);
        let advice = ("pass static=\"", "\" to jit");
        let hints = if declared.iter().any(|parameter| parameter.annotation.is_some()) {
            annotations::resolve(fun, &StaticDeclarations { op: "jit", advice, is_marked: &is_known })?
        } else {
            PyDict::new(py)
        };
        let mut signature = Signature {
            parameters: Vec::new(),
            positional: 0,
            positional_only: 0,
            varargs: None,
            keywords: false,
        };
        for Declared { name, kind, annotation, is_required } in declared {
            let is_static = match (annotation, hints.get_item(&name)?) {
                (_, Some(annotation)) | (Some(annotation), None) => containers::is_marked(&annotation)?,
                (None, None) => false,
            };
            let is_static = is_static || marked.iter().any(|known| name == known.as_str());
            match kind {
                Kind::FurtherPositional => signature.varargs = Some(name.to_string()),
                Kind::FurtherNamed => signature.keywords = true,
                Kind::PositionalOnly | Kind::Positional => signature.positional += 1,
                Kind::KeywordOnly => {}
            }
            signature.positional_only += usize::from(kind == Kind::PositionalOnly);
            let mode = match kind {
                Kind::FurtherPositional | Kind::FurtherNamed => continue,
                _ if is_static => Mode::Static,
                Kind::KeywordOnly => Mode::Options,
                // The object of a method need not be a container.
                _ if signature.parameters.is_empty() && name == "self" => Mode::Receiver,
                Kind::PositionalOnly | Kind::Positional => Mode::Inputs,
            };
            signature.parameters.push(Parameter { name: name.unbind(), mode, required: is_required });
        }
        for name in marked {
            let is_known = signature.parameters.iter().any(|known| known.name.bind(py) == name.as_str());
            if !is_known && !signature.keywords {
                let known = signature.names(py);
                return Err(Misuse::UnknownStatic { name: name.clone(), known }.into());
            }
        }
        Ok(signature)
    }

    /// The signature of a definition that takes inputs of these names, by position.
    pub(crate) fn of_inputs(py: Python<'_>, names: &[&str]) -> Signature {
        let parameter = |name: &&str| Parameter {
            name: PyString::intern(py, name).unbind(),
            mode: Mode::Inputs,
            required: true,
        };
        Signature {
            parameters: names.iter().map(parameter).collect(),
            positional: names.len(),
            positional_only: names.len(),
            varargs: None,
            keywords: false,
        }
    }

    /// Whether the first parameter is the object of a method.
    pub(crate) fn takes_self(&self) -> bool {
        self.parameters.first().is_some_and(|parameter| parameter.mode == Mode::Receiver)
    }

    /// The names of the parameters, for messages.
    pub(crate) fn names(&self, py: Python<'_>) -> String {
        let names: Vec<String> =
            self.parameters.iter().map(|known| known.name.bind(py).to_string()).collect();
        if names.is_empty() { "no parameters".to_owned() } else { names.join(", ") }
    }

    /// Whether the function takes a positional argument at this position.
    pub(crate) fn has_position(&self, position: usize) -> bool {
        position < self.positional || self.varargs.is_some()
    }

    /// Whether the function takes an argument of this name.
    pub(crate) fn has_name(&self, py: Python<'_>, name: &str) -> bool {
        self.keywords || self.parameters.iter().any(|known| known.name.bind(py) == name)
    }

    /// The position of the positional parameter of this name.
    pub(crate) fn position(&self, py: Python<'_>, name: &str) -> Option<usize> {
        self.parameters[..self.positional].iter().position(|known| known.name.bind(py) == name)
    }

    /// The name of a positional parameter.
    pub(crate) fn name(&self, py: Python<'_>, position: usize) -> String {
        match self.parameters.get(position).filter(|_| position < self.positional) {
            Some(parameter) => parameter.name.bind(py).to_string(),
            None => {
                let name = self.varargs.as_deref().unwrap_or("args");
                format!("{name}[{}]", position.saturating_sub(self.positional))
            }
        }
    }

    /// Flattens the arguments of a call, as a tuple of the positional ones and a dict of the others. An argument that
    /// is passed by name counts as positional where all arguments before it are passed.
    ///
    /// # Errors
    /// The error that Python raises for the call.
    pub(crate) fn flatten<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Flat<'py>> {
        let mut flat = Flat::default();
        let passed_count = args.len();
        let kwargs = kwargs.filter(|kwargs| !kwargs.is_empty());
        let complete = self.parameters.iter().skip(passed_count).all(|parameter| !parameter.required);
        if kwargs.is_none() && complete && (passed_count <= self.positional || self.varargs.is_some()) {
            flat.begin_tuple(passed_count);
            for (position, value) in args.iter().enumerate() {
                flat.push("jit", self.mode(position), &value)?;
            }
            flat.begin_dict(std::iter::empty());
            return Ok(flat);
        }
        self.flatten_named(fun, args, kwargs)
    }

    /// Flattens positional arguments. The arguments of static parameters are static values.
    pub(crate) fn flatten_positional<'py>(
        &self,
        op: &str,
        args: &[Bound<'py, PyAny>],
    ) -> Fallible<Flat<'py>> {
        let mut flat = Flat::default();
        flat.begin_tuple(args.len());
        for (position, value) in args.iter().enumerate() {
            flat.push(op, self.mode(position), value)?;
        }
        flat.begin_dict(std::iter::empty());
        Ok(flat)
    }

    /// Whether an argument at this position, or a part of it, is an input.
    pub(crate) fn is_input(&self, op: &str, position: usize, value: &Bound<'_, PyAny>) -> Fallible<bool> {
        let mut flat = Flat::default();
        flat.push(op, self.mode(position), value)?;
        Ok(!flat.leaves.is_empty())
    }

    fn mode(&self, position: usize) -> Mode {
        if position < self.positional { self.parameters[position].mode } else { Mode::Inputs }
    }

    fn flatten_named<'py>(
        &self,
        fun: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Fallible<Flat<'py>> {
        let py = args.py();
        let passed_count = args.len();
        let mut named: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> =
            kwargs.map(|kwargs| kwargs.iter().collect()).unwrap_or_default();
        if passed_count > self.positional && self.varargs.is_none() {
            return Err(refuse(fun, args, kwargs));
        }
        let mut take = |name: &Bound<'py, PyString>| -> PyResult<Option<Bound<'py, PyAny>>> {
            for at in 0..named.len() {
                if named[at].0.eq(name)? {
                    return Ok(Some(named.remove(at).1));
                }
            }
            Ok(None)
        };
        let mut positional: Vec<Bound<'py, PyAny>> = args.iter().collect();
        let mut keywords: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>, Mode)> = Vec::new();
        for (position, parameter) in self.parameters.iter().enumerate() {
            let name = parameter.name.bind(py);
            let is_positional = position < self.positional;
            if position < self.positional_only && position >= passed_count {
                if parameter.required {
                    return Err(refuse(fun, args, kwargs));
                }
                continue;
            }
            if position < self.positional_only {
                continue;
            }
            match take(name)? {
                Some(_) if is_positional && position < passed_count => return Err(refuse(fun, args, kwargs)),
                Some(value) if is_positional && positional.len() == position => positional.push(value),
                Some(value) => keywords.push((name.clone().into_any(), value, parameter.mode)),
                None if parameter.required && !(is_positional && position < passed_count) => {
                    return Err(refuse(fun, args, kwargs));
                }
                None => {}
            }
        }
        if !named.is_empty() && !self.keywords {
            return Err(refuse(fun, args, kwargs));
        }
        keywords.extend(named.into_iter().map(|(name, value)| (name, value, Mode::Options)));
        let mut flat = Flat::default();
        flat.begin_tuple(positional.len());
        for (position, value) in positional.iter().enumerate() {
            flat.push("jit", self.mode(position), value)?;
        }
        flat.begin_dict(keywords.iter().map(|(name, _, _)| name.clone()));
        for (_, value, mode) in &keywords {
            flat.push("jit", *mode, value)?;
        }
        Ok(flat)
    }
}

/// The error that Python raises for arguments that do not fit.
fn refuse(
    fun: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> crate::error::Fault {
    let py = fun.py();
    let bind = || -> PyResult<()> {
        let signature = py.import("inspect")?.call_method1(intern!(py, "signature"), (fun,))?;
        match signature.call_method("bind", args, kwargs) {
            Ok(_) => Err(PyRuntimeError::new_err("arguments that fit were refused")),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let name = fun.getattr("__name__").and_then(|name| name.extract::<String>());
                let name = name.unwrap_or_else(|_| "the function".to_owned());
                Err(PyTypeError::new_err(format!("{name}: {}", error.value(py))))
            }
            Err(error) => Err(error),
        }
    };
    match bind() {
        Ok(()) => PyRuntimeError::new_err("arguments that fit were refused").into(),
        Err(error) => error.into(),
    }
}

/// The name of a function, for messages.
pub(crate) fn function_name(fun: &Bound<'_, PyAny>) -> String {
    let py = fun.py();
    let named = |name: &str| if_there_or_defer(py, fun.getattr_opt(name)).flatten();
    let name = named("__qualname__").or_else(|| named("__name__"));
    name.and_then(|name| name.extract::<String>().ok()).unwrap_or_else(|| "the function".to_owned())
}
