//! The settings of a definition, and the checks of the values that users pass for them.

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use smallvec::SmallVec;

use super::donate::{self, Donated};
use super::signature::Signature;
use crate::compilers::Choice;
use crate::containers::{self, Tree};
use crate::convert;
use crate::error::{Fallible, if_fits};
use crate::misuse::Misuse;
use crate::options;

/// The settings of a definition. The default options decide what the definition leaves open.
#[derive(Default)]
pub(crate) struct Settings {
    pub(super) conflict: Option<Conflict>,
    pub(super) compiler: Option<Choice>,
    /// Options for the default compiler.
    pub(super) options: Option<Py<PyDict>>,
    pub(super) max_compiles: Option<usize>,
    /// When programs are compiled.
    pub(super) compile: Option<CompileMode>,
    /// The parameters whose memory runs reuse.
    pub(super) donate: Vec<Donated>,
    /// Functions for hooks by their names.
    pub(super) hooks: Option<Py<PyDict>>,
}

impl Settings {
    /// What a call does while another definition is traced.
    pub(super) fn conflict(&self, py: Python<'_>) -> Fallible<Conflict> {
        match (self.conflict, options::get(py, intern!(py, "on_conflict"))?) {
            (Some(conflict), _) => Ok(conflict),
            (None, Some(value)) => Conflict::of("default_options", &value),
            (None, None) => Ok(Conflict::Raise),
        }
    }

    /// The compiler of a call: that of the definition, or the default one where the call is made.
    pub(super) fn compiler(&self, py: Python<'_>) -> Fallible<Choice> {
        match &self.compiler {
            Some(choice) => Ok(choice.clone()),
            None => options::default_compiler(py, self.options.as_ref().map(|options| options.bind(py))),
        }
    }

    /// Whether [`Settings::compiler`] would return this compiler. The usual cases are decided without a copy of the
    /// choice.
    pub(super) fn would_choose(&self, py: Python<'_>, other: &Choice) -> Fallible<bool> {
        match (&self.compiler, &self.options) {
            (Some(choice), _) => Ok(choice.is_same(py, other)?),
            (None, None) if options::is_default(other) => Ok(true),
            (None, _) => Ok(self.compiler(py)?.is_same(py, other)?),
        }
    }

    /// When the program of a call is compiled: as the definition says, or by default where the call is made.
    #[inline]
    pub(super) fn compile_mode(&self, py: Python<'_>) -> Fallible<CompileMode> {
        match self.compile {
            Some(mode) => Ok(mode),
            // The usual case needs no look-up.
            None if !options::is_any_set() => Ok(CompileMode::Now),
            None => CompileMode::default_here(py),
        }
    }

    /// The number of times that the function may be compiled, if that is limited.
    pub(super) fn max_compiles(&self, py: Python<'_>) -> Fallible<Option<usize>> {
        match self.max_compiles {
            Some(limit) => Ok(Some(limit)),
            None => match options::get(py, intern!(py, "max_compiles"))? {
                Some(limit) => compile_limit("default_options", &limit),
                None => Ok(None),
            },
        }
    }

    /// The positions of the leaves of donated arguments among those of a call.
    pub(super) fn donated_leaves(
        &self,
        py: Python<'_>,
        signature: &Signature,
        tree: &Tree,
    ) -> SmallVec<[usize; 8]> {
        donate::leaves(py, &self.donate, signature, tree)
    }

    pub(super) fn hooks(&self) -> Option<&Py<PyDict>> {
        self.hooks.as_ref()
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hooks)?;
        visit.call(&self.options)
    }
}

/// What a call does while another definition is traced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    Raise,
    Reuse,
    Force,
}

impl Conflict {
    pub(super) fn of(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<Conflict> {
        match value.extract::<&str>() {
            Ok("raise") => Ok(Conflict::Raise),
            Ok("reuse") => Ok(Conflict::Reuse),
            Ok("force") => Ok(Conflict::Force),
            Ok(_) | Err(_) => {
                let (option, got) = ("on_conflict".to_owned(), containers::value_text(value));
                let required = "\"raise\", \"reuse\" or \"force\"".to_owned();
                Err(Misuse::OptionValue { op, option, got, required }.into())
            }
        }
    }
}

/// When a program is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CompileMode {
    /// Before its first call runs.
    Now,
    /// While its first calls run.
    Background,
}

impl CompileMode {
    pub(super) fn of(op: &'static str, value: &Bound<'_, PyAny>) -> Fallible<CompileMode> {
        match value.extract::<&str>() {
            Ok("now") => Ok(CompileMode::Now),
            Ok("background") => Ok(CompileMode::Background),
            Ok(_) | Err(_) => {
                let (option, got) = ("compile".to_owned(), containers::value_text(value));
                let required = "\"now\" or \"background\"".to_owned();
                Err(Misuse::OptionValue { op, option, got, required }.into())
            }
        }
    }

    /// The mode that the caller asks for, if any.
    pub(super) fn requested(
        op: &'static str,
        value: Option<&Bound<'_, PyAny>>,
    ) -> Fallible<Option<CompileMode>> {
        value.filter(|value| !value.is_none()).map(|value| CompileMode::of(op, value)).transpose()
    }

    /// The mode of this context.
    pub(super) fn default_here(py: Python<'_>) -> Fallible<CompileMode> {
        match options::get(py, intern!(py, "compile"))? {
            Some(value) => CompileMode::of("default_options", &value),
            None => Ok(CompileMode::Now),
        }
    }

    /// For messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            CompileMode::Now => "now",
            CompileMode::Background => "background",
        }
    }
}

/// The number of times that a function may be compiled. None is no limit.
pub(super) fn compile_limit(op: &'static str, limit: &Bound<'_, PyAny>) -> Fallible<Option<usize>> {
    if limit.is_none() {
        return Ok(None);
    }
    match convert::index(limit)?.map(usize::try_from) {
        Some(Ok(count)) => Ok(Some(count)),
        Some(Err(_)) | None => Err(convert::bad(op, "max_compiles", limit, "an int of at least 0")?),
    }
}

/// Refuses default options with bad values. These options are otherwise read only when a definition is called.
pub(crate) fn check_default(op: &'static str, name: &str, value: &Bound<'_, PyAny>) -> Fallible<()> {
    match name {
        "on_conflict" => Conflict::of(op, value).map(|_| ()),
        "compile" => CompileMode::of(op, value).map(|_| ()),
        "max_compiles" => compile_limit(op, value).map(|_| ()),
        _ => Ok(()),
    }
}

/// The parameters that the user names as static.
pub(super) fn marked_names(value: Option<&Bound<'_, PyAny>>) -> Fallible<Vec<String>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(Vec::new());
    };
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(vec![name.to_str()?.to_owned()]);
    }
    match if_fits(value.py(), value.extract())? {
        Some(names) => Ok(names),
        None => Err(convert::bad("jit", "static", value, "a sequence of parameter names")?),
    }
}
