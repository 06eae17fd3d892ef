//! Parsing of device and compiler options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use defn_pjrt::{Attribute, CompilerOptions};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::convert;
use crate::error::{Fallible, if_fits};
use crate::jit::warn_of;
use crate::misuse::Misuse;

/// The compiler options of a definition.
#[derive(Default)]
pub(super) struct ParsedOptions {
    pub client: Option<String>,
    pub device_id: Option<i64>,
    /// The device to compile for. It need not be present.
    pub target: Option<String>,
    pub compiler: CompilerOptions,
}

/// The options of the compiler for one device, for messages.
pub(super) const KNOWN: &str =
    "\"client\", \"device_id\", \"target\", \"cache_dir\" and XLA's flags, which begin with \"xla_\"";

/// Parses options. The error for an unknown option lists `known`.
///
/// # Errors
/// An unknown option, and a value of the wrong type.
pub(super) fn parse(
    py: Python<'_>,
    options: Option<&Bound<'_, PyDict>>,
    known: &'static str,
) -> Fallible<ParsedOptions> {
    let mut parsed = ParsedOptions::default();
    let mut others = Vec::new();
    for (name, value) in options.into_iter().flatten() {
        let name = name.str()?.to_string();
        if value.is_none() {
            continue;
        }
        match &*name {
            "client" => match value.cast::<PyString>() {
                Ok(text) => parsed.client = Some(text.to_string()),
                Err(_) => return Err(convert::bad("jit", "client", &value, "the name of a client")?),
            },
            "target" => match value.cast::<PyString>() {
                Ok(text) => parsed.target = Some(text.to_string()),
                Err(_) => return Err(convert::bad("compile", "target", &value, "the name of a device")?),
            },
            "device_id" => match convert::index(&value)? {
                Some(id) => parsed.device_id = Some(id),
                None => return Err(convert::bad("jit", "device_id", &value, "an int")?),
            },
            "cache_dir" => {
                let path = value.py().import("os")?.call_method1("fspath", (&value,))?;
                others.push((name, attribute("jit", "cache_dir", &path)?));
            }
            flag if !flag.starts_with("xla_") => {
                return Err(Misuse::CompilerOption { name: "pjrt".to_owned(), option: name, known }.into());
            }
            _ => {
                let value = attribute("jit", &name, &value)?;
                others.push((name, value));
            }
        }
    }
    parsed.compiler = CompilerOptions::parse(&others)?;
    if let Some((folder, why)) = parsed.compiler.refused_folder() {
        warn(py, &folder, &why)?;
    }
    let is_here =
        [("device_id", parsed.device_id.is_some()), ("cache_dir", parsed.compiler.cache_dir.is_some())];
    if let (Some(target), Some((option, _))) =
        (&parsed.target, is_here.iter().find(|(_, is_given)| *is_given))
    {
        let (option, got) = ((*option).to_owned(), format!("given for the target \"{target}\""));
        let required = "left out: a target has neither a device nor a folder here".to_owned();
        return Err(Misuse::OptionValue { op: "compile", option, got, required }.into());
    }
    Ok(parsed)
}

/// Warns once that a folder of compiled programs is not used.
fn warn(py: Python<'_>, folder: &Path, why: &str) -> Fallible<()> {
    static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned()) {
        return Ok(());
    }
    let text = format!(
        "the folder {} of compiled programs {why} and is not used, one of the user's own that nobody else may write is required",
        folder.display()
    );
    warn_of(py, &py.get_type::<PyRuntimeWarning>(), &text)
}

/// The name of a client.
///
/// # Errors
/// A value that is not a str.
pub(crate) fn client_name(op: &str, value: &Bound<'_, PyAny>) -> Fallible<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Err(convert::bad(op, "client", value, "the name of a client")?),
    }
}

/// The index of a device.
///
/// # Errors
/// A value that is not an int.
pub(super) fn device_id(op: &str, value: &Bound<'_, PyAny>) -> Fallible<i64> {
    match convert::index(value)? {
        Some(id) => Ok(id),
        None => Err(convert::bad(op, "device_id", value, "an int")?),
    }
}

/// A value in the form that a plugin takes.
///
/// # Errors
/// A value that is not a str, a number, a bool or a list of ints.
pub(super) fn attribute(op: &str, name: &str, value: &Bound<'_, PyAny>) -> Fallible<Attribute> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Attribute::Bool(value.is_true()));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(Attribute::Text(value.to_string()));
    }
    if value.is_instance_of::<PyInt>()
        && let Ok(value) = value.extract()
    {
        return Ok(Attribute::Int(value));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Attribute::Float(value.extract()?));
    }
    match if_fits(value.py(), value.extract())? {
        Some(values) => Ok(Attribute::Ints(values)),
        None => Err(convert::bad(op, name, value, "a text, a number, True, False or a list of ints")?),
    }
}
