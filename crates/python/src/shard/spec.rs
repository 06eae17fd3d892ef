//! Parsing of sharding specs for arguments and results.

use defn_core::Name;
use defn_core::mesh::{Mesh, Spec};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::containers::{self, Mode};
use crate::convert;
use crate::error::Fallible;
use crate::misuse::Misuse;

const REQUIRED: &str = "a tuple with the name of a mesh axis, a tuple of names or None for each axis, None, or a list or dict of these for a container";

/// The specs of a container: one for all of it, or one for each of its parts.
pub(super) enum Specs {
    One(Spec),
    List(Vec<Specs>),
    Dict(Vec<(Py<PyAny>, Specs)>),
}

fn entry(value: &Bound<'_, PyAny>) -> Option<Vec<Name>> {
    if value.is_none() {
        return Some(Vec::new());
    }
    if let Ok(name) = value.cast::<PyString>() {
        return Some(vec![name.to_str().ok()?.into()]);
    }
    let names = value.cast::<PyTuple>().ok()?;
    names.iter().map(|name| Some(name.cast::<PyString>().ok()?.to_str().ok()?.into())).collect()
}

impl Specs {
    /// Parses the spec of an argument or a result.
    ///
    /// # Errors
    /// A value that is not a spec, and an axis that the mesh does not have.
    pub(super) fn parse(what: &str, value: &Bound<'_, PyAny>, mesh: &Mesh) -> Fallible<Specs> {
        if value.is_none() {
            return Ok(Specs::One(Spec::default()));
        }
        if let Ok(entries) = value.cast::<PyTuple>() {
            let entries: Option<Vec<Vec<Name>>> = entries.iter().map(|value| entry(&value)).collect();
            if let Some(entries) = entries {
                let spec = Spec(entries).trimmed();
                spec.check(mesh)?;
                return Ok(Specs::One(spec));
            }
        } else if let Ok(parts) = value.cast::<PyList>() {
            let parts = parts.iter().map(|part| Specs::parse(what, &part, mesh));
            return Ok(Specs::List(parts.collect::<Fallible<_>>()?));
        } else if let Ok(parts) = value.cast::<PyDict>() {
            let parts = parts.iter().map(|(key, part)| Ok((key.unbind(), Specs::parse(what, &part, mesh)?)));
            return Ok(Specs::Dict(parts.collect::<Fallible<_>>()?));
        }
        Err(convert::bad("shard", &format!("the spec of {what}"), value, REQUIRED)?)
    }

    /// Appends the spec of each leaf of a value; `what` is its name in messages.
    ///
    /// # Errors
    /// A value that is not a container, or a container with other parts.
    pub(super) fn assign(&self, what: &str, value: &Bound<'_, PyAny>, specs: &mut Vec<Spec>) -> Fallible<()> {
        match self {
            Specs::One(spec) => {
                let count = containers::flatten("shard", Mode::State, value)?.leaves.len();
                specs.extend(std::iter::repeat_n(spec.clone(), count));
                Ok(())
            }
            Specs::List(parts) => {
                let items: Vec<Bound<'_, PyAny>> =
                    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
                        value.try_iter()?.collect::<PyResult<_>>()?
                    } else {
                        return Err(structure_error(what, value, "a tuple or list, as its specs are a list")?);
                    };
                if items.len() != parts.len() {
                    let (what, given, expected) = (what.to_owned(), parts.len(), items.len());
                    return Err(Misuse::SpecCount { what, given, expected }.into());
                }
                for (at, (part, item)) in parts.iter().zip(&items).enumerate() {
                    part.assign(&format!("{what}[{at}]"), item, specs)?;
                }
                Ok(())
            }
            Specs::Dict(parts) => {
                let Ok(items) = value.cast::<PyDict>() else {
                    return Err(structure_error(what, value, "a dict, as its specs are one")?);
                };
                if items.len() != parts.len() {
                    let (what, given, expected) = (what.to_owned(), parts.len(), items.len());
                    return Err(Misuse::SpecCount { what, given, expected }.into());
                }
                for (key, item) in items.iter() {
                    let mut found = None;
                    for (known, part) in parts {
                        if known.bind(value.py()).eq(&key)? {
                            found = Some(part);
                        }
                    }
                    let Some(part) = found else {
                        let key = key.repr()?.to_string();
                        return Err(Misuse::SpecKey { what: what.to_owned(), key }.into());
                    };
                    part.assign(&format!("{what}[{}]", key.repr()?), &item, specs)?;
                }
                Ok(())
            }
        }
    }
}

fn structure_error(what: &str, value: &Bound<'_, PyAny>, required: &str) -> Fallible<crate::error::Fault> {
    let (op, what) = ("shard".to_owned(), what.to_owned());
    let got = format!("of type {}", value.get_type().name()?);
    Ok(Misuse::BadArgument { op, what, got, required: required.to_owned() }.into())
}

/// A spec as a Python object.
pub(super) fn object<'py>(py: Python<'py>, spec: &Spec) -> PyResult<Bound<'py, PyTuple>> {
    let entry = |names: &Vec<Name>| -> PyResult<Bound<'py, PyAny>> {
        match &names[..] {
            [] => Ok(py.None().into_bound(py)),
            [name] => Ok(PyString::new(py, name).into_any()),
            names => Ok(PyTuple::new(py, names.iter().map(|name| &**name))?.into_any()),
        }
    };
    PyTuple::new(py, spec.0.iter().map(entry).collect::<PyResult<Vec<_>>>()?)
}
