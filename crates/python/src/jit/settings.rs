//! What definitions and default options are given, read and checked.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::containers;
use crate::convert;
use crate::error::{Fallible, if_fits};
use crate::misuse::Misuse;

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

/// How often a function may be compiled; None is as often as needed.
pub(super) fn compile_limit(op: &'static str, limit: &Bound<'_, PyAny>) -> Fallible<Option<usize>> {
    if limit.is_none() {
        return Ok(None);
    }
    match convert::index(limit)?.map(usize::try_from) {
        Some(Ok(count)) => Ok(Some(count)),
        Some(Err(_)) | None => Err(convert::bad(op, "max_compiles", limit, "an int of at least 0")?),
    }
}

/// Refuses values of default options that are read when a definition is called.
pub(crate) fn check_default(op: &'static str, name: &str, value: &Bound<'_, PyAny>) -> Fallible<()> {
    match name {
        "on_conflict" => Conflict::of(op, value).map(|_| ()),
        "max_compiles" => compile_limit(op, value).map(|_| ()),
        _ => Ok(()),
    }
}

/// The parameters that are named as static.
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
